package agent

import (
	"context"
	"errors"

	"approvalbot/internal/approvals"
	"approvalbot/internal/ledger"
)

// What a pause holds back in the agent: the start of runs, and of calls that people have allowed. What the policy allows by
// itself goes on in the runs that there are.

// turn takes a message when its turn has come and nothing is paused. Nil: it was taken before, or it waits in the journal
// for the next process.
func (a *Agent) turn(ctx context.Context, msg ledger.Event) (*run, error) {
	for {
		if _, paused := a.Approvals.Paused(); paused {
			select {
			case <-a.Approvals.Resumed():
			case <-a.closed:
				return nil, nil
			case <-ctx.Done():
				return nil, nil
			}
		}
		r, err := a.take(ctx, msg)
		if _, paused := errors.AsType[*approvals.PausedError](err); !paused {
			return r, err
		}
	}
}

// start records the start of a call. One that goes back to what people said, now or in advance, doesn't start in a pause.
func (r *run) start(before []ledger.Event, record func() error) error {
	if allowedByPolicy(before) {
		return record()
	}
	return r.Approvals.Unpaused(record)
}

// allowedByPolicy tells whether the decision that is recorded with a call's start is the policy's own.
func allowedByPolicy(before []ledger.Event) bool {
	for _, e := range before {
		if d, ok := e.Body.(*ledger.PermissionDecided); ok && d.Grant == "" {
			return true
		}
	}
	return false
}

// pausedReason is the sentence for a call that people approved and that a pause kept from starting.
func pausedReason(e *approvals.PausedError) string {
	return "It was not started, because " + sentence(e.Pause.Clause())
}
