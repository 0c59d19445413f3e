package approvals

import (
	"context"
	"fmt"

	"approvalbot/internal/ledger"
)

// decidePast answers a decision on an ask that isn't in memory, named by a claim of its request.
func (r *Registry) decidePast(ctx context.Context, request ledger.Claim, d Decision) (Outcome, error) {
	snap, res, opened, err := r.recall(ctx, request)
	if err != nil {
		return Outcome{}, err
	}
	if opened != nil {
		return r.decide(ctx, opened, d)
	}
	return settled(Outcome{Snapshot: snap, Quorum: snap.Ask.Quorum, Repeated: true}, res, d)
}

// held is the ask as it is in memory: the one that was found there, or the one that a claim of its request names. One that
// isn't in memory is over, and the error says how it ended.
func (r *Registry) held(ctx context.Context, found *ask, request ledger.Claim) (*ask, error) {
	if found != nil {
		return found, nil
	}
	snap, res, opened, err := r.recall(ctx, request)
	if err == nil && opened == nil {
		err = over(snap, res)
	}
	return opened, err
}

// recall reads an ask and its end from the journal. It may have been opened since it was looked for in memory; then it
// is returned as it is there.
func (r *Registry) recall(ctx context.Context, request ledger.Claim) (Snapshot, Resolution, *ask, error) {
	e, found, err := r.read(ctx, request)
	if err != nil {
		return Snapshot{}, Resolution{}, nil, err
	}
	b, ok := e.Body.(*ledger.ApprovalRequested)
	if !found || !ok { // an erased request is as good as none
		return Snapshot{}, Resolution{}, nil, ErrNotFound
	}
	// An ask leaves memory only after its end is in the journal, so memory has to be asked before the journal.
	if a := r.find(b.Approval); a != nil {
		return Snapshot{}, Resolution{}, a, nil
	}
	snap := Snapshot{
		Key: Key{e.Run, e.Call}, ID: b.Approval, Session: e.Session,
		Ask: ledger.Approval{ApprovalRequested: b, Seq: e.Seq, At: e.Time},
	}
	res, err := r.recallEnd(ctx, snap)
	if res.Recorded() {
		snap.Ask.Resolved, snap.Ask.ResolvedAt = &res.ApprovalResolved, res.At
	}
	return snap, res, nil, err
}

// recallEnd reads how an ask ended. One that has no end in the journal and isn't in memory is a promise that nobody
// keeps any more: its answer is no.
func (r *Registry) recallEnd(ctx context.Context, s Snapshot) (Resolution, error) {
	e, found, err := r.read(ctx, ledger.ClaimResolution(s.ID))
	if err != nil {
		return Resolution{}, err
	}
	if b, ok := e.Body.(*ledger.ApprovalResolved); found && ok {
		return Resolution{ApprovalResolved: *b, At: e.Time, Seq: e.Seq}, nil
	}
	reason := "its end could not be recorded"
	if s.Ask.At.Before(r.began) {
		reason = "approvalbot restarted"
	}
	lost := ending{ledger.SourceAbort, reason}
	return Resolution{ApprovalResolved: *lost.body(s.ID), At: clock()}, nil
}

func (r *Registry) read(ctx context.Context, c ledger.Claim) (ledger.Event, bool, error) {
	e, found, err := r.journal.Claimed(ctx, c)
	if err != nil {
		// Whoever wanted to decide something has decided nothing.
		return e, false, fmt.Errorf("look up an approval: %w: %w", ledger.ErrNotRecorded, err)
	}
	return e, found, nil
}
