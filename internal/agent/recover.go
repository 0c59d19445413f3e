package agent

import (
	"context"
	"errors"
	"fmt"

	"approvalbot/internal/ledger"
)

// Recover ends every run that an earlier process left open, before anything else starts. What had not started is denied,
// what had started and has no end is of unknown outcome and never run again, and the run is cancelled. It can be
// interrupted at any point and called again: any prefix of a journal recovers to the same endings.
func (a *Agent) Recover(ctx context.Context) error {
	head, err := a.Ledger.Head(ctx)
	if err != nil {
		return fmt.Errorf("reading the journal's head: %w", err)
	}
	a.before = head.Seq
	open, err := a.Ledger.UnfinishedRuns(ctx)
	if err != nil {
		return fmt.Errorf("reading the runs that were interrupted: %w", err)
	}
	for _, id := range open {
		session, err := a.closeRun(ctx, id, "approvalbot restarted")
		if err != nil {
			return fmt.Errorf("ending the interrupted run %s: %w", id, err)
		}
		a.Logger.Info("an interrupted run was ended", "session", session, "run", id)
	}
	return nil
}

// settle ends a halted run as soon as the journal can be written again, or leaves that to the next process.
func (a *Agent) settle(ctx context.Context, session, id string) {
	for {
		if err := a.Ledger.WaitWritable(ctx); err != nil {
			return
		}
		_, err := a.closeRun(ctx, id, "approvalbot could not write its journal")
		if err == nil {
			return
		}
		a.Logger.Error("a halted run could not be ended yet", "session", session, "run", id, "error", err)
		if !errors.Is(err, ledger.ErrNotRecorded) {
			return // it can't be read; the next process tries again
		}
	}
}

// closeRun gives everything in a run that is open its end, and tells the run's session. why is a clause without a
// subject of its own.
func (a *Agent) closeRun(ctx context.Context, id, why string) (session string, err error) {
	state, ok, err := a.Ledger.LoadRun(ctx, id)
	if err != nil || !ok {
		return "", err
	}
	if state.Status().Ended() {
		return state.Session, nil
	}
	for _, c := range state.Calls {
		if c.State.Terminal() {
			continue
		}
		if err := a.closeCall(ctx, state, c, why); err != nil {
			return state.Session, err
		}
	}
	_, err = a.Ledger.Append(context.WithoutCancel(ctx), ledger.Event{
		Session: state.Session, Run: id, Actor: ledger.System,
		Body: &ledger.RunFinished{Status: ledger.RunCancelled, Code: codeRestarted, Reason: why + " before it was done", Rounds: len(state.Rounds), Usage: state.Usage()},
	})
	return state.Session, unlessConflict(err)
}

func (a *Agent) closeCall(ctx context.Context, state *ledger.Run, c *ledger.Call, why string) error {
	t := target{session: state.Session, run: state.ID, call: c.ToolCall}
	if !c.StartedAt.IsZero() && state.Started.Program != "" {
		return a.closeExternal(ctx, t, state.Started.Program, why)
	}
	if !c.StartedAt.IsZero() {
		f := failed(codeUnknown, sentence(why+" while this was running")+
			" Whether it was performed, wholly or in part, is not known. It is not run again by itself; check before you do.", "")
		if a := c.Approval; a != nil && a.Resolved != nil && a.Resolved.EditedBy != nil {
			f.Output = changedWords(*a.Resolved.EditedBy, a.Resolved.Arguments) + f.Output
		}
		return a.finish(ctx, t, f)
	}
	reason := sentence(why + " before this call could start")
	if c.Approval.Open() {
		reason = sentence(why + " before anyone answered")
		_, err := a.Ledger.Append(context.WithoutCancel(ctx), t.event(ledger.System, &ledger.ApprovalResolved{
			Approval: c.Approval.ApprovalRequested.Approval, Type: ledger.Denied, Source: ledger.SourceAbort, Reason: reason,
		}))
		if unlessConflict(err) != nil {
			return err
		}
	}
	return a.deny(ctx, t, ledger.SourceAbort, reason)
}

// unlessConflict passes over the error that says that it was done before.
func unlessConflict(err error) error {
	var conflict *ledger.ConflictError
	if errors.As(err, &conflict) {
		return nil
	}
	return err
}
