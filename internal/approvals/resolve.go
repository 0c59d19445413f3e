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

// question is who may decide the ask now.
func (r *Registry) question(a *ask) question {
	r.mu.Lock()
	defer r.mu.Unlock()
	return a.who
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
	d.Reason = strings.TrimSpace(strings.ToValidUTF8(d.Reason, "\uFFFD"))
	if runes := []rune(d.Reason); len(runes) > maxReason {
		d.Reason = string(runes[:maxReason]) + " […]"
	}
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
	by, err := r.mayDecide(ctx, r.question(a), d)
	if err != nil {
		return Outcome{}, err
	}
	d.By = by
	if err := a.lock(ctx); err != nil {
		return Outcome{}, fmt.Errorf("not decided: %w", err)
	}
	defer a.unlock()
	if err := r.lapse(ctx, a, d.receivedBy(clock())); err != nil {
		return Outcome{}, err
	}
	repeated, err := r.vote(context.WithoutCancel(ctx), a, d)
	if err != nil {
		return Outcome{}, err
	}
	return r.answer(a, d, repeated)
}

// vote brings the decision into the journal, or finds out that there is nothing to add. The caller has the ask's turn.
func (r *Registry) vote(ctx context.Context, a *ask, d Decision) (repeated bool, err error) {
	for {
		events := r.ballot(a, d)
		if len(events) == 0 {
			return true, nil
		}
		committed, err := r.journal.Append(ctx, events...)
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
// vote: the denial is in the resolution.
func (r *Registry) ballot(a *ask, d Decision) []ledger.Event {
	r.mu.Lock()
	defer r.mu.Unlock()
	if a.over != nil || !a.opened() {
		return nil
	}
	var events []ledger.Event
	approvals := a.approvals()
	if !a.voted(d.By.Person()) {
		events = append(events, a.event(d.By, &ledger.ApprovalVoted{Approval: a.id, Type: d.Type, Reason: d.Reason}))
		if d.Type == ledger.Approved {
			approvals++
		}
	}
	if d.Type == ledger.Denied || approvals >= a.who.quorum {
		events = append(events, a.event(d.By, &ledger.ApprovalResolved{
			Approval: a.id, Type: d.Type, Source: ledger.SourceUser, Reason: d.Reason, By: &d.By,
		}))
	}
	return events
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
	if res.Source != ledger.SourceUser || res.Type != d.Type {
		return Outcome{}, over(out.Snapshot, res)
	}
	out.Resolution = &res
	return out, nil
}

// over is the error that says how an ask ended.
func over(s Snapshot, res Resolution) error {
	if res.Source == ledger.SourceUser {
		return &ConflictError{Resolution: res, Snapshot: s}
	}
	return &ExpiredError{Resolution: res, Snapshot: s}
}
