package approvals

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"approvalbot/internal/ledger"
)

// Resolve takes somebody's decision on the ask about a tool call.
//
// Nil: it counted, or the same was said before. [*ConflictError], [*ExpiredError], [ErrNotFound]: there is nothing to
// decide any more, or never was. [*RefusedError]: this person may not. [ledger.ErrNotRecorded]: nothing was decided and
// the ask is still open. The end of ctx withdraws a decision only before it is handed to the journal.
func (r *Registry) Resolve(ctx context.Context, k Key, d Decision) (Outcome, error) {
	d, err := d.checked()
	if err != nil {
		return Outcome{}, err
	}
	r.mu.Lock()
	a := r.byKey[k]
	r.mu.Unlock()
	if a == nil {
		return r.decidePast(ctx, ledger.ClaimAsk(k.Run, k.Call), d)
	}
	return r.decide(ctx, a, d)
}

// ResolveByID is Resolve for those who have the approvalId: the buttons of a card.
func (r *Registry) ResolveByID(ctx context.Context, approvalID string, d Decision) (Outcome, error) {
	d, err := d.checked()
	if err != nil {
		return Outcome{}, err
	}
	a := r.find(approvalID)
	if a == nil {
		return r.decidePast(ctx, ledger.ClaimApproval(approvalID), d)
	}
	return r.decide(ctx, a, d)
}

// question is who may decide the ask now, and the revision of its arguments that this is about.
func (r *Registry) question(a *ask) (question, int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return a.who, a.state.Revision()
}

// who is who may decide the ask now.
func (r *Registry) who(a *ask) question {
	q, _ := r.question(a)
	return q
}

// changedNow says that the arguments are others by now.
func (r *Registry) changedNow(a *ask) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return &ChangedError{Snapshot: a.snapshot()}
}

func (r *Registry) find(approvalID string) *ask {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.byID[approvalID]
}

// maxReason is how much of somebody's reason is kept, in characters.
const maxReason = 2000

func (d Decision) checked() (Decision, error) {
	if d.Type != ledger.Approved && d.Type != ledger.Denied {
		return d, fmt.Errorf("%w: a decision is approved or denied, not %q", ErrInvalid, d.Type)
	}
	d.Reason = words(d.Reason)
	return d, nil
}

// receivedBy is when the decision came, now at the latest.
func (d Decision) receivedBy(now time.Time) time.Time {
	if d.Received.IsZero() || d.Received.After(now) {
		return now
	}
	return d.Received.UTC().Round(0)
}

// decide takes a decision on an ask that is in memory.
func (r *Registry) decide(ctx context.Context, a *ask, d Decision) (Outcome, error) {
	if res := r.resolution(a); res != nil {
		return r.answer(a, d, true)
	}
	// Looking people up can take seconds, so it happens before it is our turn.
	who, asked := r.question(a)
	by, err := r.mayDecide(ctx, who, d)
	if err != nil {
		return Outcome{}, err
	}
	d.By = by
	if d.grant != nil {
		if err := r.mayGrant(ctx, who, d.By); err != nil {
			return Outcome{}, err
		}
	}
	if err := a.lock(ctx); err != nil {
		return Outcome{}, fmt.Errorf("not decided: %w", err)
	}
	defer a.unlock()
	if err := r.lapse(ctx, a, d.receivedBy(clock())); err != nil {
		return Outcome{}, err
	}
	if err := r.catchUp(ctx, a); err != nil {
		return Outcome{}, err
	}
	if _, now := r.question(a); now != asked && d.Type == ledger.Approved && r.resolution(a) == nil {
		// Changed while they were looked up: whether they may approve what it is now, nobody has found out.
		return Outcome{}, r.changedNow(a)
	}
	var repeated bool
	err = r.unpaused(d, func() (err error) {
		repeated, err = r.vote(context.WithoutCancel(ctx), a, d)
		return err
	})
	if _, paused := errors.AsType[*PausedError](err); paused && r.resolution(a) != nil {
		return r.answer(a, d, true) // it is over, which says more than that nothing can be approved now
	}
	if err != nil {
		return Outcome{}, err
	}
	return r.answer(a, d, repeated)
}

// vote brings the decision into the journal, or finds out that there is nothing to add. The caller has the ask's turn.
func (r *Registry) vote(ctx context.Context, a *ask, d Decision) (repeated bool, err error) {
	for {
		if err := r.grantable(a, d); err != nil {
			return false, err
		}
		events, err := r.ballot(a, d)
		if err != nil {
			return false, err
		}
		if len(events) == 0 {
			return true, nil
		}
		committed, err := r.journal.Append(ctx, append(events, d.With...)...)
		if err == nil {
			r.apply(a, committed...)
			return false, nil
		}
		// Somebody's event is in the journal that memory doesn't know: the commit of an earlier append that seemed to
		// have failed. With it in memory the question is a new one; each round has learnt something, so this ends.
		lost, ok := errors.AsType[*ledger.ConflictError](err)
		if !ok || !r.apply(a, lost.Winner) {
			return false, fmt.Errorf("record a decision: %w", err)
		}
	}
}

// ballot is what the decision adds to the journal: the person's vote, and the resolution if that ends it. Both are one
// append, so that there is never a last vote without its resolution. Somebody who approved and now denies has had their
// vote: the denial is in the resolution. An error says that the decision isn't about what stands there now, or that it
// was not confirmed.
func (r *Registry) ballot(a *ask, d Decision) ([]ledger.Event, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if a.over != nil || !a.opened() {
		return nil, nil
	}
	if err := a.fits(d); err != nil {
		return nil, err
	}
	var events []ledger.Event
	approvals := a.approvals()
	if !a.voted(d.By.Person()) {
		events = append(events, a.event(d.By, &ledger.ApprovalVoted{
			Approval: a.id, Type: d.Type, Reason: d.Reason, Revision: a.state.Revision(),
		}))
		if d.Type == ledger.Approved {
			approvals++
		}
	}
	if d.Type == ledger.Denied || approvals >= a.who.quorum {
		events = append(events, a.event(d.By, a.verdict(d)))
		events = append(events, d.grant.events(a, d.By)...)
	}
	return events, nil
}

// fits tells whether a decision is about the arguments as they stand, and whether one of critical risk was confirmed.
func (a *ask) fits(d Decision) error {
	if d.Revision != a.state.Revision() && (d.Type == ledger.Approved || d.Revision != AnyRevision) {
		return &ChangedError{Snapshot: a.snapshot()}
	}
	if word, _ := Confirmation(a.state.ApprovalRequested); d.Type == ledger.Approved && word != "" && strings.TrimSpace(d.Confirmed) != word {
		return &UnconfirmedError{Snapshot: a.snapshot(), Typed: strings.TrimSpace(d.Confirmed)}
	}
	return nil
}

// verdict is how the ask ends by somebody's decision. An approval says which arguments it is about, where they were
// changed.
func (a *ask) verdict(d Decision) *ledger.ApprovalResolved {
	b := &ledger.ApprovalResolved{Approval: a.id, Type: d.Type, Source: ledger.SourceUser, Reason: d.Reason, By: &d.By, Granted: d.grant.brief()}
	if n := a.state.Revision(); n > 0 && d.Type == ledger.Approved {
		editor := a.state.Amended[n-1].By
		b.Arguments, b.Digest, b.EditedBy = a.state.Arguments, a.state.Digest, &editor
	}
	return b
}

// answer tells somebody what their decision came to, from what is recorded.
func (r *Registry) answer(a *ask, d Decision, repeated bool) (Outcome, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !a.opened() {
		return Outcome{}, ErrNotFound // its Open failed
	}
	out := Outcome{Snapshot: a.snapshot(), Approvals: a.approvals(), Quorum: a.who.quorum, Repeated: repeated}
	if a.over == nil {
		return out, nil
	}
	return settled(out, *a.over, d)
}

// settled is the answer of an ask that is over.
func settled(out Outcome, res Resolution, d Decision) (Outcome, error) {
	if res.Source != ledger.SourceUser || res.Type != d.Type || !d.about(out.Snapshot, res) {
		return Outcome{}, over(out.Snapshot, res)
	}
	out.Resolution = &res
	return out, nil
}

// about tells whether an approval is of the arguments that were approved. Of an ask that has left memory it isn't known
// which change of them that was, only that there was one.
func (d Decision) about(s Snapshot, res Resolution) bool {
	switch n := s.Ask.Revision(); {
	case d.Type != ledger.Approved:
		return true
	case n > 0:
		return d.Revision == n
	}
	return (d.Revision > 0) == (res.EditedBy != nil)
}

// over is the error that says how an ask ended.
func over(s Snapshot, res Resolution) error {
	if res.Source == ledger.SourceUser {
		return &ConflictError{Resolution: res, Snapshot: s}
	}
	return &ExpiredError{Resolution: res, Snapshot: s}
}
