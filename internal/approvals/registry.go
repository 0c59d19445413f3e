package approvals

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"

	"approvalbot/internal/ledger"
)

// A Registry keeps the pending approvals of this process. It starts no goroutine.
type Registry struct {
	journal   Journal
	directory Directory
	settings  Settings
	log       *slog.Logger
	began     time.Time // asks that were recorded before are of an earlier process

	// mu guards the maps and the state of the asks in them. It is never held while anything is waited for.
	mu    sync.Mutex
	byID  map[string]*ask
	byKey map[Key]*ask
	byRun map[string]map[string]*ask

	pauses pauses
}

// New makes a registry without pending approvals.
func New(j Journal, d Directory, s Settings, log *slog.Logger) *Registry {
	if s.Quorum <= 0 {
		s.Quorum = defaultQuorum
	}
	if s.Timeout <= 0 {
		s.Timeout = defaultTimeout
	}
	if s.ShowWithin <= 0 {
		s.ShowWithin = defaultShowWithin
	}
	if s.Requesters.Empty() {
		s.Requesters = Approvers{words: []string{"members"}, members: true}
	}
	return &Registry{
		journal: j, directory: d, settings: s, log: log, began: time.Now(),
		byID: map[string]*ask{}, byKey: map[Key]*ask{}, byRun: map[string]map[string]*ask{},
	}
}

// A Pending is an open ask, in the hands of the one who waits for its resolution.
type Pending struct {
	r *Registry
	a *ask
}

// ID is the approvalId.
func (p *Pending) ID() string { return p.a.id }

// Snapshot is the ask as it stands.
func (p *Pending) Snapshot() Snapshot {
	p.r.mu.Lock()
	defer p.r.mu.Unlock()
	return p.a.snapshot()
}

// Open asks. Once it returns, Resolve finds the ask; Wait must follow, or the ask stays for ever. If nobody could be
// asked or could approve, the ask is recorded together with its denial, and Wait returns that at once. During a pause nobody
// is asked, and nothing is recorded: that is a [*PausedError].
func (r *Registry) Open(ctx context.Context, q Request) (*Pending, error) {
	lookups, cancel := context.WithTimeout(ctx, lookupLimit)
	defer cancel()
	a, stand, err := r.prepare(lookups, q)
	if err != nil {
		return nil, err
	}
	if err := r.add(a); err != nil {
		return nil, err
	}
	defer a.unlock() // add has taken the turn
	defer r.openingEnds(a)
	events := r.opening(lookups, a, stand, q)
	var committed []ledger.Event
	err = r.Unpaused(func() (err error) {
		committed, err = r.journal.Append(ctx, events...)
		return err
	})
	if err != nil {
		r.forget(a)
		if paused, ok := errors.AsType[*PausedError](err); ok {
			return nil, paused
		}
		if _, taken := errors.AsType[*ledger.ConflictError](err); taken {
			return nil, fmt.Errorf("%w: run %q, tool call %q", ErrAsked, q.Run, q.Call)
		}
		return nil, fmt.Errorf("open an approval: %w", err)
	}
	r.apply(a, committed...)
	return &Pending{r: r, a: a}, nil
}

// prepare checks a request and fills in what the settings say. ctx bounds the look-ups.
func (r *Registry) prepare(ctx context.Context, q Request) (*ask, stand, error) {
	if q.Run == "" || q.Call == "" {
		return nil, stand{}, fmt.Errorf("%w: an ask needs a run and a tool call", ErrInvalid)
	}
	list, origin := r.settings.Approvers, settingApprovers
	if q.Approvers != nil {
		origin = q.origin()
		var err error
		if list, err = ParseApprovers(q.Approvers); err != nil {
			return nil, stand{}, err
		}
	}
	a := newAsk(q.Key, uuid.NewString(), q.Session)
	a.timeout = r.settings.Timeout
	if q.Timeout > 0 {
		a.timeout = q.Timeout
	}
	// A call may want more people than the settings, and not fewer: of two rules, one may leave it to the settings.
	if err := escalation(q.Escalate); err != nil {
		return nil, stand{}, err
	}
	a.who = question{list: list, origin: origin, quorum: max(q.Quorum, r.settings.Quorum), requesters: q.Requesters, place: q.Place, ids: a.ids()}
	where, who := r.place(ctx, q, a.who)
	a.who = r.at(ctx, who)
	where.surfaces = q.Surfaces
	if len(where.elsewhere) > 0 && !slices.Contains(where.surfaces, surfaceSlack) {
		where.surfaces = append(slices.Clone(where.surfaces), surfaceSlack)
	}
	return a, where, nil
}

// settingApprovers lists who may approve where the request doesn't.
const settingApprovers = "APPROVALBOT_APPROVERS"

// origin is what lists the request's own approvers: the rules that ask, or else the tool's definition.
func (q Request) origin() string {
	if strings.HasPrefix(q.Rule, "rules: ") {
		return q.Rule
	}
	return "tool: " + q.Tool
}

// openingEnds wakes those who wait for an ask to be opened, or not.
func (r *Registry) openingEnds(a *ask) {
	r.mu.Lock()
	defer r.mu.Unlock()
	close(a.opening)
	a.opening = nil
}

// add puts the ask into memory, with its turn taken.
func (r *Registry) add(a *ask) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.byKey[a.Key] != nil {
		return fmt.Errorf("%w: run %q, tool call %q", ErrAsked, a.Run, a.Call)
	}
	a.turn <- struct{}{}
	r.byKey[a.Key], r.byID[a.id] = a, a
	if r.byRun[a.Run] == nil {
		r.byRun[a.Run] = map[string]*ask{}
	}
	r.byRun[a.Run][a.id] = a
	return nil
}

func (r *Registry) forget(a *ask) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.byID[a.id] != a {
		return
	}
	delete(r.byKey, a.Key) // add made sure that it is this one's
	delete(r.byID, a.id)
	delete(r.byRun[a.Run], a.id)
	if len(r.byRun[a.Run]) == 0 {
		delete(r.byRun, a.Run)
	}
}

// opening makes the events of an ask: the request, and its denial where it can't have another end. ctx bounds the look-ups.
func (r *Registry) opening(ctx context.Context, a *ask, where stand, q Request) []ledger.Event {
	ever := a.who
	ever.list = eventually(ever.list, q.Escalate)
	dismissed := r.hopeless(ctx, ever, where.surfaces)
	if programs := a.who.quorum <= 1 && slices.Contains(where.surfaces, surfaceHTTP); dismissed == "" && !programs {
		dismissed = where.shut
	}
	digest := sha256.Sum256([]byte(q.Arguments))
	events := []ledger.Event{a.event(ledger.System, &ledger.ApprovalRequested{
		Approval: a.id, Tool: q.Tool, ToolHash: q.ToolHash, Arguments: q.Arguments,
		Digest: hex.EncodeToString(digest[:]), Preview: q.Preview, Reason: q.Reason, Place: q.Place,
		Requesters: q.Requesters, Approvers: a.who.counting(), Quorum: a.who.quorum, Surfaces: where.surfaces,
		ShowBy: clock().Add(r.settings.ShowWithin), Timeout: a.timeout,
		PolicyHash: q.PolicyHash, Cwd: q.Cwd, Dismissed: dismissed,
		Risk: q.Risk, Confirm: q.Confirm, Rule: q.Rule,
		Remind: r.reminder(q).in(a.timeout), Escalate: q.Escalate, MoreTime: r.settings.MoreTime, Offers: r.offers(a, q), Exact: q.Exact,
		Elsewhere: where.elsewhere, Only: where.only, Away: where.away, Together: r.settings.Together,
		Notify: r.settings.notify(), Names: where.names, Site: r.settings.Site,
	})}
	if dismissed != "" {
		events = append(events, a.event(ledger.System, ending{ledger.SourceUndeliverable, dismissed}.body(a.id)))
	}
	return events
}

// reminder is when people are reminded: what the request says, or else the settings.
func (r *Registry) reminder(q Request) Reminder {
	if q.Remind == (Reminder{}) {
		return Reminder{Part: r.settings.Remind}
	}
	return q.Remind
}

// offers are what people may do with an ask besides approving and denying.
func (r *Registry) offers(a *ask, q Request) []ledger.Offer {
	offers := append(slices.Clip(q.Offers), r.grants(a, q)...)
	if r.settings.MoreTime > 0 {
		offers = append(offers, ledger.OfferMoreTime)
	}
	return offers
}

func (a *ask) event(by ledger.Actor, b ledger.Body) ledger.Event {
	return ledger.Event{Session: a.session, Run: a.Run, Call: a.Call, Actor: by, Body: b}
}

// clock is the time as it is written down: in UTC, without the monotonic part that a record can't have.
func clock() time.Time { return time.Now().UTC().Round(0) }

// apply takes committed events into the ask and reports whether they changed it.
func (r *Registry) apply(a *ask, events ...ledger.Event) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	changed := false
	for _, e := range events {
		changed = a.apply(e) || changed
	}
	return changed
}

// Pending lists the open asks of a run in the order in which they were opened; of all runs if runID is empty.
//
// Followers hear of an ask in the moment of its commit, which is before Open does. So that whoever has seen an ask finds
// it here, those that are being opened are waited for, but no longer than a look-up may take: a disk may hang.
func (r *Registry) Pending(runID string) []Snapshot {
	ctx, cancel := context.WithTimeout(context.Background(), lookupLimit)
	defer cancel()
	for _, opening := range r.underWay(runID) {
		select {
		case <-opening:
		case <-ctx.Done():
		}
	}
	r.mu.Lock()
	list := make([]Snapshot, 0, len(r.asks(runID)))
	for _, a := range r.asks(runID) {
		if a.opened() && a.over == nil {
			list = append(list, a.snapshot())
		}
	}
	r.mu.Unlock()
	slices.SortFunc(list, func(x, y Snapshot) int { return cmp.Compare(x.Ask.Seq, y.Ask.Seq) })
	return list
}

// asks are those of a run, or all. r.mu is held.
func (r *Registry) asks(runID string) map[string]*ask {
	if runID == "" {
		return r.byID
	}
	return r.byRun[runID]
}

// underWay are the openings of asks that have not come to their end.
func (r *Registry) underWay(runID string) (all []<-chan struct{}) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, a := range r.asks(runID) {
		if !a.opened() && a.opening != nil {
			all = append(all, a.opening)
		}
	}
	return all
}

// Waiting tells how many asks are pending, and since when the oldest of them is.
func (r *Registry) Waiting() (open int, oldest time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, a := range r.byID {
		if !a.opened() || a.over != nil {
			continue
		}
		if open++; open == 1 || a.state.At.Before(oldest) {
			oldest = a.state.At
		}
	}
	return open, oldest
}

// Deadline is until when people can decide a pending ask: as recorded with its first showing, or, while it hasn't been
// shown, what a showing now would make it. It is false for an ask that isn't pending.
func (r *Registry) Deadline(approvalID string) (time.Time, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	a := r.byID[approvalID]
	if a == nil || !a.opened() || a.over != nil {
		return time.Time{}, false
	}
	if len(a.state.Shown) > 0 {
		return a.state.Until(), true
	}
	return clock().Add(a.timeout), true
}
