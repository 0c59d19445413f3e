package approvals

import (
	"context"
	"errors"
	"fmt"
	"time"

	"approvalbot/internal/ledger"
)

// Wait returns how the ask ended: by people, by the clock, or because ctx ended. It always returns a resolution, and
// after it the ask is no longer in memory. If the resolution could not be recorded it is a denial with Seq 0, and
// nothing may follow from it.
func (p *Pending) Wait(ctx context.Context) Resolution {
	defer p.r.forget(p.a)
	var tried time.Time
	for {
		timer := time.NewTimer(time.Until(p.r.nextAt(p.a, tried)))
		select {
		case <-p.a.done:
		case <-p.a.moved:
		case <-timer.C:
			tried = p.r.tick(ctx, p.a)
		case <-ctx.Done():
			p.r.end(p.a, func() (ending, bool) { return ending{ledger.SourceAbort, abortReason(ctx)}, true })
		}
		timer.Stop()
		if res := p.r.resolution(p.a); res != nil {
			return *res
		}
	}
}

func abortReason(ctx context.Context) string {
	if e, ok := errors.AsType[*AbortError](context.Cause(ctx)); ok && e.Reason != "" {
		return e.Reason
	}
	return "the run ended"
}

func (r *Registry) dueAt(a *ask) time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	return a.due()
}

// overdue tells whether the ask's time has come, and as what it ends.
func (r *Registry) overdue(a *ask, now time.Time) (ending, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return a.lapse(), !now.Before(a.due())
}

// past tells whether the ask is open although its time is over.
func (r *Registry) past(a *ask, now time.Time) (ending, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !a.opened() || a.over != nil {
		return ending{}, false
	}
	return a.lapse(), now.After(a.due())
}

func (r *Registry) resolution(a *ask) *Resolution {
	r.mu.Lock()
	defer r.mu.Unlock()
	return a.over
}

// end ends the ask for its waiter, who goes away after it: if the ending can't be recorded, the ask is over all the
// same. The ending is asked for when it is the waiter's turn, because it may have lapsed by then.
func (r *Registry) end(a *ask, as func() (ending, bool)) {
	ctx := context.Background() // an ending is recorded whatever became of the caller
	_ = a.lock(ctx)             // can't fail: this context doesn't end
	defer a.unlock()
	e, still := as()
	if !still || r.resolution(a) != nil {
		return
	}
	err := r.record(ctx, a, e)
	if err == nil {
		return
	}
	a.ids().logger(r.log).Error("an approval's end could not be recorded; nothing will be performed",
		"source", e.source, "reason", e.reason, "error", err)
	r.mu.Lock()
	defer r.mu.Unlock()
	a.finish(Resolution{ApprovalResolved: *e.body(a.id), At: clock()})
}

// record writes an ending that nobody decided. Nil means that the ask is over, by this ending or by the one that won.
// The caller has the ask's turn.
func (r *Registry) record(ctx context.Context, a *ask, e ending) error {
	committed, err := r.journal.Append(context.WithoutCancel(ctx), a.event(ledger.System, e.body(a.id)))
	if lost, ok := errors.AsType[*ledger.ConflictError](err); ok && r.apply(a, lost.Winner) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("end an approval: %w", err)
	}
	r.apply(a, committed...)
	return nil
}

// Shown records where people can see the ask. The first showing sets the deadline, which is never later than the
// timeout counted from now; a showing that is known already changes nothing. An ask that is over is a typed error that
// [Ended] reads.
func (r *Registry) Shown(ctx context.Context, approvalID string, s Showing) error {
	a, err := r.held(ctx, r.find(approvalID), ledger.ClaimApproval(approvalID))
	if err != nil {
		return err
	}
	if err := a.lock(ctx); err != nil {
		return fmt.Errorf("record a showing: %w", err)
	}
	defer a.unlock()
	known, err := r.showable(ctx, a, s)
	if known || err != nil {
		return err
	}
	committed, err := r.journal.Append(context.WithoutCancel(ctx), a.event(ledger.System, r.showing(a, s)))
	if lost, ok := errors.AsType[*ledger.ConflictError](err); ok && r.apply(a, lost.Winner) {
		committed, err = nil, nil
	}
	if err != nil {
		return fmt.Errorf("record a showing: %w", err)
	}
	r.apply(a, committed...)
	a.wake()
	return nil
}

// showable tells whether a showing is known already, or why there can't be another.
func (r *Registry) showable(ctx context.Context, a *ask, s Showing) (known bool, err error) {
	if err := r.lapse(ctx, a, clock()); err != nil {
		return false, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case !a.opened():
		return false, ErrNotFound
	case a.shownAt(s.Channel, s.TS):
		return true, nil
	case a.over != nil:
		return false, over(a.snapshot(), *a.over)
	}
	return false, nil
}

// showing is the event of a showing.
func (r *Registry) showing(a *ask, s Showing) *ledger.ApprovalShown {
	r.mu.Lock()
	defer r.mu.Unlock()
	until := clock().Add(a.timeout)
	if len(a.state.Shown) > 0 {
		until = a.state.Until()
	} else if !s.Until.IsZero() && s.Until.Before(until) {
		until = s.Until.UTC().Round(0)
	}
	return &ledger.ApprovalShown{Approval: a.id, Surface: s.Surface, Channel: s.Channel, TS: s.TS, Until: until}
}

// lapse ends an ask whose time is past, for those who come before its waiter wakes up: nothing that came after the
// deadline counts. At the deadline itself the journal decides. The caller has the ask's turn.
func (r *Registry) lapse(ctx context.Context, a *ask, came time.Time) error {
	as, past := r.past(a, came)
	if !past {
		return nil
	}
	return r.record(ctx, a, as)
}

// Unshowable notes that a surface can't show the ask. Once all have said so and none has shown it, the ask ends,
// as undeliverable for these reasons.
func (r *Registry) Unshowable(ctx context.Context, approvalID, surface, reason string) {
	a := r.find(approvalID)
	if a == nil {
		return
	}
	r.mu.Lock()
	if a.unshowable == nil {
		a.unshowable = map[string]string{}
	}
	a.unshowable[surface] = reason
	r.mu.Unlock()
	// If this can't wait or can't be recorded, the waiter sees it as due and ends it.
	defer a.wake()
	if err := a.lock(ctx); err != nil {
		return
	}
	defer a.unlock()
	if err := r.lapse(ctx, a, clock()); err != nil {
		a.ids().logger(r.log).Warn("an approval that can't be shown could not be ended yet", "error", err)
	}
}
