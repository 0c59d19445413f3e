package approvals

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"approvalbot/internal/ledger"
)

// What happens to an ask by itself while nobody decides: those who may are reminded, then more people may decide. It is
// the business of the one who waits ([Pending.Wait]): between two clicks there is nobody else.
//
//	first showing ── Remind ── approval_reminded 1 ── half of what is left ── approval_reminded 2 ── deadline
//	             └── Escalate[0].After ── approval_escalated 1 ── Escalate[1].After ── approval_escalated 2 ──┘
//
// All of it is counted from the first showing, by what was recorded when the ask was opened. A deadline that people move
// moves nothing else. A step is taken once, by its claim in the journal, and never after the end. One that can't be
// recorded is tried again with the next; nothing of this keeps the deadline waiting.

// leastNotice is how long before the end a reminder still helps. A part of a short time comes too late for that.
const leastNotice = 30 * time.Second

// fewMembers is how many members a group may have for each of them to be written to. A larger one is mentioned.
const fewMembers = 5

// A Reminder says when those who may approve are reminded. The zero value leaves it to the settings. With both a part and
// a time, the earlier one holds.
type Reminder struct {
	Part  int           // percent of the time that people have
	After time.Duration // from the first showing
	Never bool
}

// in is when the reminder comes, of that much time; 0: never.
func (m Reminder) in(timeout time.Duration) time.Duration {
	if m.Never {
		return 0
	}
	at := time.Duration(m.Part) * timeout / 100
	if timeout-at < leastNotice {
		at = 0
	}
	if m.After > 0 && (at == 0 || m.After < at) {
		at = m.After
	}
	if at >= timeout {
		return 0
	}
	return at
}

// reminders are the moments of all reminders, given the first: another one after half of what is left, where it helps.
func reminders(first, timeout time.Duration) []time.Duration {
	if first <= 0 {
		return nil
	}
	second := first + (timeout-first)/2
	if timeout-second < leastNotice {
		return []time.Duration{first}
	}
	return []time.Duration{first, second}
}

// A step is one thing that happens to an ask by itself. It is a reminder or an escalation; the other number is 0.
type step struct {
	at       time.Time
	reminder int // from 1
	level    int // from 1
}

// coming are the steps that the ask hasn't taken, in their order. r.mu is held.
func (a *ask) coming() (all []step) {
	since := a.state.Since()
	if since.IsZero() || a.over != nil {
		return nil
	}
	moments := reminders(a.state.Remind, a.state.Timeout)
	for n := len(a.state.Reminded) + a.unsaid; n < len(moments); n++ {
		all = append(all, step{at: since.Add(moments[n]), reminder: n + 1})
	}
	for n := len(a.state.Escalated); n < len(a.state.Escalate); n++ {
		all = append(all, step{at: since.Add(a.state.Escalate[n].After), level: n + 1})
	}
	slices.SortStableFunc(all, func(x, y step) int { return x.at.Compare(y.at) })
	return all
}

// stepsDue are the steps whose time has come. One that falls on the deadline comes too late.
func (r *Registry) stepsDue(a *ask, now time.Time) (steps []step) {
	r.mu.Lock()
	defer r.mu.Unlock()
	end := a.due()
	for _, s := range a.coming() {
		if !s.at.After(now) && s.at.Before(end) {
			steps = append(steps, s)
		}
	}
	return steps
}

// nextAt is when the waiter has something to do: the next step after what was tried, or the end.
func (r *Registry) nextAt(a *ask, tried time.Time) time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	end := a.due()
	for _, s := range a.coming() {
		if s.at.After(tried) && s.at.Before(end) {
			return s.at
		}
	}
	return end
}

// tick does what is due, for the waiter. It returns up to when there is nothing left to be tried.
func (r *Registry) tick(ctx context.Context, a *ask) time.Time {
	now := clock()
	if _, over := r.overdue(a, now); over {
		r.end(a, func() (ending, bool) { return r.overdue(a, clock()) })
		return now
	}
	if err := r.proceed(ctx, a, now); err != nil && ctx.Err() == nil {
		a.ids().logger(r.log).Warn("a reminder or escalation of an approval could not be recorded; it is tried again with the next", "error", err)
	}
	return now
}

// proceed takes the steps that are due. Whom they are for is looked up before it is our turn, because
// that can take seconds and clicks don't wait for it.
func (r *Registry) proceed(ctx context.Context, a *ask, now time.Time) error {
	steps := r.stepsDue(a, now)
	if len(steps) == 0 {
		return nil
	}
	ctx, cancel := context.WithDeadline(ctx, r.dueAt(a))
	defer cancel()
	direct := map[step]addressees{}
	for _, s := range steps {
		direct[s] = r.addressed(ctx, a, s)
	}
	if err := a.lock(ctx); err != nil {
		return err
	}
	defer a.unlock()
	if err := r.learn(ctx, a); err != nil {
		return err
	}
	for _, s := range r.stepsDue(a, now) { // none, if it has ended
		if err := r.take(ctx, a, s, direct[s]); err != nil {
			return err
		}
	}
	return nil
}

// take takes one step. The caller has the ask's turn.
func (r *Registry) take(ctx context.Context, a *ask, s step, direct addressees) error {
	e := r.taking(a, s, direct)
	if e == nil {
		return nil
	}
	committed, err := r.journal.Append(ctx, *e)
	if lost, ok := errors.AsType[*ledger.ConflictError](err); ok && r.apply(a, lost.Winner) {
		return nil // it is recorded already, by an append that seemed to have failed
	}
	if err != nil {
		return err
	}
	r.apply(a, committed...)
	return nil
}

// learn asks the journal whether the ask has an end that memory lacks. The caller has the ask's turn.
func (r *Registry) learn(ctx context.Context, a *ask) error {
	e, found, err := r.journal.Claimed(ctx, ledger.ClaimResolution(a.id))
	if err != nil {
		return fmt.Errorf("look up an approval: %w", err)
	}
	if found {
		r.apply(a, e)
	}
	return nil
}

// taking is the event of a step; nil if it is a reminder for nobody, which is not a step.
func (r *Registry) taking(a *ask, s step, direct addressees) *ledger.Event {
	r.mu.Lock()
	defer r.mu.Unlock()
	var b ledger.Body
	switch {
	case s.level > 0:
		b = &ledger.ApprovalEscalated{
			Approval: a.id, Level: s.level, Approvers: a.state.Escalate[s.level-1].Approvers, Elsewhere: direct.cards, To: direct.users,
		}
	case s.reminder == 1:
		b = &ledger.ApprovalReminded{Approval: a.id, N: s.reminder, To: a.missing()}
	case len(direct.users) == 0:
		a.unsaid++
		return nil
	default:
		b = &ledger.ApprovalReminded{Approval: a.id, N: s.reminder, To: direct.users, Direct: true}
	}
	e := a.event(ledger.System, b)
	return &e
}

// missing are those who may approve, as they are listed, without who has voted and who asked but may not. r.mu is held.
func (a *ask) missing() []string {
	var words []string
	for _, word := range a.state.Approvers {
		if userID.MatchString(word) && a.idle(word) {
			continue
		}
		words = append(words, word)
	}
	return words
}

// idle tells whether somebody has nothing to say to the ask (any more): they have voted, or asked and may not approve.
func (a *ask) idle(user string) bool {
	p := ledger.Person{Team: a.state.Place.Team, ID: user}
	return a.voted(p) || a.who.asked(p) && !a.who.list.requester
}

// Addressees are those who are written to with a step.
type addressees struct {
	users []string       // who get a line that leads to the card
	cards []ledger.Place // direct messages in which the card stands itself: for those who can't see where it stands
}

// addressed are the people who are written to with a step. At the second reminder these are all who are named, in an
// escalation those whom a mention doesn't reach because they are in none of the channels in which the ask has buttons:
// there they couldn't use them, either.
func (r *Registry) addressed(ctx context.Context, a *ask, s step) (to addressees) {
	r.mu.Lock()
	state := a.state
	requesters := a.who.requesters
	r.mu.Unlock()
	words, channels := state.Approvers, standsIn(&state)
	conversation := strings.HasPrefix(state.Place.Channel, "D")
	if s.level > 0 {
		words = state.Escalate[s.level-1].Approvers
	}
	inSlack := slices.Contains(state.Surfaces, surfaceSlack) && len(channels) > 0
	if !inSlack || s.reminder == 1 || s.reminder > 1 && conversation { // they have read it in that conversation
		return to
	}
	ctx, cancel := context.WithTimeout(ctx, lookupLimit)
	defer cancel()
	for _, u := range r.named(ctx, words, requesters, state.Place.Team) {
		in := s.level > 0 && slices.ContainsFunc(channels, func(channel string) bool {
			in, err := r.directory.Member(ctx, channel, u)
			return in && err == nil
		})
		written := slices.ContainsFunc(state.Elsewhere, func(p ledger.Place) bool { return p.User == u })
		if in || s.level > 0 && written || r.isIdle(a, u) || slices.Contains(to.users, u) {
			continue
		}
		to.users = append(to.users, u)
	}
	if s.level > 0 {
		to = r.cardsFor(ctx, to.users, state)
	}
	return to
}

// cardsFor has the card itself stand in the direct messages with some people, as far as there are ways to them and it
// doesn't stand in too many.
func (r *Registry) cardsFor(ctx context.Context, users []string, a ledger.Approval) (to addressees) {
	courier, ok := r.directory.(Courier)
	if !ok {
		return addressees{users: users}
	}
	for _, u := range users {
		if len(a.Elsewhere)+len(to.cards) >= directMost {
			to.users = append(to.users, u)
			continue
		}
		channel, err := courier.DirectMessage(ctx, u)
		switch {
		case err == nil:
			to.cards = append(to.cards, ledger.Place{Team: a.Place.Team, Channel: channel, User: u})
		case errors.Is(err, ErrNoWay), errors.Is(err, ErrNoSuch):
			r.log.Warn("somebody to whom an approval is escalated can't be written to", "user", u, "error", err)
		default:
			to.users = append(to.users, u) // it is tried again with the line that leads to the card
		}
	}
	return to
}

func (r *Registry) isIdle(a *ask, user string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return a.idle(user)
}

// named are the people whom a list names, those of small groups and the requesters included. Whoever is known not to be
// a full member is left out; they couldn't decide.
func (r *Registry) named(ctx context.Context, words []string, requesters []ledger.Person, team string) (users []string) {
	add := func(u string) {
		who, err := r.directory.Person(ctx, ledger.Person{Team: team, ID: u})
		if errors.Is(err, ErrNoSuch) || err == nil && who.Kind != FullMember {
			return
		}
		users = append(users, u)
	}
	for _, word := range words {
		switch {
		case userID.MatchString(word):
			add(word)
		case groupID.MatchString(word):
			members, err := r.directory.Group(ctx, word)
			if err != nil || len(members) > fewMembers {
				continue
			}
			for _, u := range members {
				add(u)
			}
		case word == "requester":
			for _, p := range requesters {
				if userID.MatchString(p.ID) {
					add(p.ID)
				}
			}
		}
	}
	return users
}

// escalation checks the steps of a request.
func escalation(steps []ledger.Escalation) error {
	var before time.Duration
	for i, s := range steps {
		if s.After <= before {
			return fmt.Errorf("%w: step %d of an escalation comes after %s, which is not later than the one before", ErrInvalid, i+1, s.After)
		}
		before = s.After
		for _, word := range s.Approvers {
			if !userID.MatchString(word) && !groupID.MatchString(word) {
				return fmt.Errorf("%w: %q can't be escalated to: name user ids (U…) or user group ids (S…)", ErrInvalid, word)
			}
		}
	}
	return nil
}

// eventually is the list with everybody to whom it may be escalated.
func eventually(list Approvers, steps []ledger.Escalation) Approvers {
	for _, s := range steps {
		list = list.and(s.Approvers)
	}
	return list
}
