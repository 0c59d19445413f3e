package approvals

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"approvalbot/internal/ledger"
)

// ErrNoMoreTime: the deadline is as late as it can be.
var ErrNoMoreTime = errors.New("approvals: the deadline can't be moved any further")

// sameClick is how long after giving more time the same person doing so again is one click that was made twice.
const sameClick = 3 * time.Second

// Extend gives people more time for an ask: its own timeout once more, as far as its limit allows. It returns the new
// deadline. Who may approve may do so, and of those who asked and may not, one of them once.
//
// [*ConflictError], [*ExpiredError], [ErrNotFound]: it is over, or never was. [*RefusedError]: this person may not.
// [ErrNoMoreTime]: its limit is reached. [ledger.ErrNotRecorded]: the deadline stands as it was.
func (r *Registry) Extend(ctx context.Context, approvalID string, by ledger.Actor) (time.Time, error) {
	return r.extendClaimed(ctx, r.find(approvalID), ledger.ClaimApproval(approvalID), by)
}

// ExtendCall is Extend for those who name the tool call.
func (r *Registry) ExtendCall(ctx context.Context, k Key, by ledger.Actor) (time.Time, error) {
	r.mu.Lock()
	a := r.byKey[k]
	r.mu.Unlock()
	return r.extendClaimed(ctx, a, ledger.ClaimAsk(k.Run, k.Call), by)
}

func (r *Registry) extendClaimed(ctx context.Context, a *ask, request ledger.Claim, by ledger.Actor) (time.Time, error) {
	a, err := r.held(ctx, a, request)
	if err != nil {
		return time.Time{}, err
	}
	return r.extend(ctx, a, by)
}

func (r *Registry) extend(ctx context.Context, a *ask, by ledger.Actor) (time.Time, error) {
	came := clock()
	by, err := r.mayExtend(ctx, r.who(a), by)
	if err != nil {
		return time.Time{}, err
	}
	if err := a.lock(ctx); err != nil {
		return time.Time{}, fmt.Errorf("no time was given: %w", err)
	}
	defer a.unlock()
	if err := r.lapse(ctx, a, came); err != nil {
		return time.Time{}, err
	}
	for {
		n, until, known, err := r.longer(a, by)
		if known || err != nil {
			return until, err
		}
		e := a.event(by, &ledger.ApprovalExtended{Approval: a.id, N: n, Until: until})
		committed, err := r.journal.Append(context.WithoutCancel(ctx), e)
		if lost, ok := errors.AsType[*ledger.ConflictError](err); ok && r.apply(a, lost.Winner) {
			continue // an earlier append that seemed to have failed; the question is a new one
		}
		if err != nil {
			return time.Time{}, fmt.Errorf("give more time: %w", err)
		}
		r.apply(a, committed...)
		a.wake()
		return until, nil
	}
}

// longer is the next move of the deadline, or why there is none. Known: this click was recorded before.
func (r *Registry) longer(a *ask, by ledger.Actor) (n int, until time.Time, known bool, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case !a.opened():
		return 0, time.Time{}, false, ErrNotFound // its Open failed
	case a.over != nil:
		return 0, time.Time{}, false, over(a.snapshot(), *a.over)
	case len(a.state.Shown) == 0:
		return 0, time.Time{}, false, fmt.Errorf("%w: it hasn't been shown to anyone, so its time hasn't begun", ErrInvalid)
	}
	until, moves := a.state.Until(), a.state.Extended
	if len(moves) > 0 {
		last := moves[len(moves)-1]
		if samePerson(last.By.Person(), by.Person()) && clock().Sub(last.At) < sameClick {
			return 0, until, true, nil
		}
	}
	byRequester := func(e ledger.Extended) bool { return a.who.asked(e.By.Person()) }
	limit := a.state.Limit()
	switch {
	case a.who.asked(by.Person()) && !a.who.list.requester && slices.ContainsFunc(moves, byRequester):
		return 0, time.Time{}, false, a.who.refuse("Whoever asked can give this more time once, and that has been done. Those who may approve it can do so again.")
	case !until.Before(limit):
		return 0, time.Time{}, false, ErrNoMoreTime
	}
	until = until.Add(a.timeout)
	if until.After(limit) {
		until = limit
	}
	return len(moves) + 1, until, false, nil
}

// mayExtend tells whether somebody may give an ask more time: whoever may approve it, and whoever asked. How often they
// may is another question.
func (r *Registry) mayExtend(ctx context.Context, q question, by ledger.Actor) (ledger.Actor, error) {
	q.act, q.quorum = "give this more time", 1 // a token that names no person decides nothing by this
	d := Decision{Type: ledger.Approved, By: by}
	if q.asked(by.Person()) {
		d.Type = ledger.Denied // as little as that
	}
	return r.mayDecide(ctx, q, d)
}
