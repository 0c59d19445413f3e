package approvals

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"time"

	"approvalbot/internal/ledger"
)

// People who may approve an ask may also change its arguments. A change is an event like a vote, and makes a new question
// of the ask: what people said to the old one is void, and whoever approves from then on approves the new one. The change,
// its author's vote, and the resolution, if that ends it, are one append. From then on it takes no fewer people than
// before, and those whom the policy wants for the changed call; where it would let in more than before, those of before.

// An Edit is somebody's change of an ask's arguments.
type Edit struct {
	Arguments string       // as they shall be; canonical where the registry gets them
	Revision  int          // which form of the arguments its author had before them
	By        ledger.Actor //
	Received  time.Time    // when it reached us; zero: now
}

// An Amendment is an edit as the tool describes it and as the policy judges it.
type Amendment struct {
	Edit
	Preview    ledger.Preview
	Reason     string // why it asks, or that it would not
	Rule       string
	Risk       string
	Confirm    bool
	PolicyHash string

	// What the policy wants for the changed call. Nil or zero: what the registry's settings say.
	Approvers []string
	Quorum    int
}

// ErrUnchanged: the arguments are what they were.
var ErrUnchanged = errors.New("approvals: the arguments are the same")

// A ChangedError says that the arguments were changed since whoever decided has seen them. Nothing was decided.
type ChangedError struct{ Snapshot Snapshot }

func (e *ChangedError) Error() string {
	return fmt.Sprintf("approvals: the arguments of %s were changed meanwhile (revision %d)", e.Snapshot.ID, e.Snapshot.Ask.Revision())
}

// By is who changed them last.
func (e *ChangedError) By() ledger.Actor {
	if n := len(e.Snapshot.Ask.Amended); n > 0 {
		return e.Snapshot.Ask.Amended[n-1].By
	}
	return ledger.Actor{}
}

// An UnfitError says that the tool doesn't take the arguments. Nothing was changed.
type UnfitError struct {
	Member string // which of them, where that is known
	Reason string // a sentence
}

func (e *UnfitError) Error() string { return "approvals: " + e.Reason }

// Find returns a pending ask as it stands.
func (r *Registry) Find(approvalID string) (Snapshot, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	a := r.byID[approvalID]
	if a == nil || !a.opened() || a.over != nil {
		return Snapshot{}, false
	}
	return a.snapshot(), true
}

// MayDecide tells whether somebody may decide so, before they are shown a form for it; what counts is what the decision
// itself is answered. The error is a [*RefusedError], or says that there is nothing to decide.
func (r *Registry) MayDecide(ctx context.Context, approvalID string, t ledger.ResolutionType, by ledger.Actor) error {
	a, err := r.undecided(ctx, approvalID)
	if err != nil {
		return err
	}
	_, err = r.mayDecide(ctx, r.who(a), Decision{Type: t, By: by})
	return err
}

// undecided is an ask that still waits; if it is over, the error says how it ended.
func (r *Registry) undecided(ctx context.Context, approvalID string) (*ask, error) {
	a, err := r.held(ctx, r.find(approvalID), ledger.ClaimApproval(approvalID))
	if err == nil && r.resolution(a) != nil {
		err = r.overNow(a)
	}
	return a, err
}

// overNow is the error that says how an ask ended that is over.
func (r *Registry) overNow(a *ask) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return over(a.snapshot(), *a.over)
}

// Amend takes somebody's change of the arguments and, where they may approve the changed call and need not confirm it,
// their approval of it.
//
// Nil: the change stands; the outcome says whether their approval counted with it, and whether that ended it.
// [*ChangedError]: somebody else changed it first. [ErrUnchanged]: there is nothing to change. All else is as of Resolve.
func (r *Registry) Amend(ctx context.Context, approvalID string, m Amendment) (Outcome, error) {
	a, err := r.undecided(ctx, approvalID)
	if err != nil {
		return Outcome{}, err
	}
	next, votes, err := r.requestion(ctx, a, &m)
	if err != nil {
		return Outcome{}, err
	}
	if err := a.lock(ctx); err != nil {
		return Outcome{}, fmt.Errorf("not changed: %w", err)
	}
	defer a.unlock()
	d := Decision{Type: ledger.Approved, By: m.By, Received: m.Received, Revision: m.Revision + 1}
	if err := r.lapse(ctx, a, d.receivedBy(clock())); err != nil {
		return Outcome{}, err
	}
	if err := r.catchUp(ctx, a); err != nil {
		return Outcome{}, err
	}
	// A change is its author's approval, so it is none in a pause.
	err = r.unpaused(d, func() error { return r.change(context.WithoutCancel(ctx), a, m, next, votes) })
	if _, paused := errors.AsType[*PausedError](err); paused && r.resolution(a) != nil {
		return Outcome{}, r.overNow(a) // which says more
	}
	if err != nil {
		return Outcome{}, err
	}
	return r.answer(a, d, false)
}

// requestion finds out who may approve the changed call, and whether its author may. It fills in who the author is.
func (r *Registry) requestion(ctx context.Context, a *ask, m *Amendment) (next question, votes bool, err error) {
	r.mu.Lock()
	before, state := a.who, a.snapshot().Ask
	r.mu.Unlock()
	d := Decision{Type: ledger.Approved, By: m.By}
	if m.By, err = r.mayDecide(ctx, before, d); err != nil {
		return next, false, err
	}
	if state.Revision() != m.Revision { // what is found out here is about this one
		return next, false, r.changedNow(a)
	}
	lookups, cancel := context.WithTimeout(ctx, lookupLimit)
	defer cancel()
	if next, err = r.stricter(lookups, before, state, m); err != nil {
		return next, false, err
	}
	if why := r.hopeless(lookups, next, state.Surfaces); why != "" {
		return next, false, before.refuse("Changed like this, nobody could approve it: %s.", why)
	}
	_, refused := r.mayDecide(ctx, next, d)
	if ctx.Err() != nil {
		return next, false, fmt.Errorf("not changed: %w", context.Cause(ctx))
	}
	return next, refused == nil && m.Risk != riskCritical, nil
}

// stricter is the question of a changed call: the policy's for it, where that isn't looser than the one before.
func (r *Registry) stricter(ctx context.Context, before question, state ledger.Approval, m *Amendment) (question, error) {
	next := before
	next.quorum = max(before.quorum, m.Quorum, r.settings.Quorum)
	words := r.settings.Approvers.List()
	if m.Approvers != nil {
		words = slices.Clone(m.Approvers)
	}
	for _, e := range state.Escalated { // who was added because nobody answered stays
		for _, word := range e.Approvers {
			if !slices.Contains(words, word) {
				words = append(words, word)
			}
		}
	}
	if len(words) == 0 || !slices.ContainsFunc(before.list.words, func(word string) bool { return !slices.Contains(words, word) }) {
		return next, nil // nobody is kept out who might before
	}
	list, err := ParseApprovers(words)
	if err != nil {
		return next, before.refuse("Who has to approve the changed call can't be read, so it can't be changed like this.")
	}
	next.list, next.counts, next.shut = list, nil, ""
	return r.at(ctx, next), nil
}

// amended is the question after a change that the journal has.
func (q question) amended(b *ledger.ApprovalAmended) question {
	q.quorum = b.Quorum
	if slices.Equal(b.Approvers, q.counting()) {
		return q
	}
	q.list, _ = ParseApprovers(b.Approvers) // an empty list is nobody
	q.counts, q.shut = nil, ""
	return q
}

// change brings a change into the journal. The caller has the ask's turn.
func (r *Registry) change(ctx context.Context, a *ask, m Amendment, next question, votes bool) error {
	for {
		events, err := r.amending(a, m, next, votes)
		if err != nil {
			return err
		}
		committed, err := r.journal.Append(ctx, events...)
		if err == nil {
			r.apply(a, committed...)
			return nil
		}
		lost, ok := errors.AsType[*ledger.ConflictError](err)
		if !ok {
			a.doubt = true
		}
		if !ok || !r.apply(a, lost.Winner) {
			return fmt.Errorf("record a change of the arguments: %w", err)
		}
	}
}

// amending are the events of a change.
func (r *Registry) amending(a *ask, m Amendment, next question, votes bool) ([]ledger.Event, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case !a.opened():
		return nil, ErrNotFound
	case a.over != nil:
		return nil, over(a.snapshot(), *a.over)
	case a.state.Revision() != m.Revision:
		return nil, &ChangedError{Snapshot: a.snapshot()}
	case a.state.Arguments == m.Arguments:
		return nil, ErrUnchanged
	}
	digest := sha256.Sum256([]byte(m.Arguments))
	body := &ledger.ApprovalAmended{
		Approval: a.id, Revision: m.Revision + 1, Arguments: m.Arguments, Digest: hex.EncodeToString(digest[:]),
		Preview: m.Preview, Reason: m.Reason, Rule: m.Rule, Risk: m.Risk, Confirm: m.Confirm,
		Approvers: next.counting(), Quorum: next.quorum, PolicyHash: m.PolicyHash,
	}
	events := []ledger.Event{a.event(m.By, body)}
	if !votes {
		return events, nil
	}
	events = append(events, a.event(m.By, &ledger.ApprovalVoted{Approval: a.id, Type: ledger.Approved, Revision: body.Revision}))
	if next.quorum <= 1 {
		by := m.By
		events = append(events, a.event(m.By, &ledger.ApprovalResolved{
			Approval: a.id, Type: ledger.Approved, Source: ledger.SourceUser, By: &by,
			Arguments: body.Arguments, Digest: body.Digest, EditedBy: &by,
		}))
	}
	return events, nil
}

// catchUp looks for a change that may be in the journal although its append failed: whoever decides now must not decide
// about arguments that aren't asked about any more. The caller has the ask's turn.
func (r *Registry) catchUp(ctx context.Context, a *ask) error {
	if !a.doubt {
		return nil
	}
	r.mu.Lock()
	next := ledger.ClaimAmendment(a.id, a.state.Revision()+1)
	r.mu.Unlock()
	e, found, err := r.read(ctx, next)
	if err != nil {
		return err
	}
	if found {
		r.apply(a, e)
		if e, found, err = r.read(ctx, ledger.ClaimResolution(a.id)); err != nil {
			return err
		}
		if found { // it was in the same append
			r.apply(a, e)
		}
	}
	a.doubt = false
	return nil
}
