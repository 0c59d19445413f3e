package agent

import (
	"context"
	"errors"
	"fmt"

	"approvalbot/internal/ledger"
	"approvalbot/internal/policy"
)

// ErrBusy says that a session works on something already.
var ErrBusy = errors.New("the session is busy")

// A job is a message that this process has to work off, from its receipt to the end of its run.
type job struct {
	message   ledger.Event
	cancel    context.CancelCauseFunc // nil until its turn has come
	withdrawn *endedError             // why it isn't wanted any more; nil while it is

	withdrawnBy ledger.Actor // who says so
}

// Receive records a message ([*ledger.MessageReceived]) and, if it starts a run, queues it. It returns when the message
// is on disk; from then on it is worked off, after a restart if need be. A message that was received before comes back
// as [*ledger.ConflictError] and starts nothing; so does one that wants weaker settings than those in force, as
// [*policy.WeakerError]. Between the beginning of [Agent.Run] and its end Receive never waits for a run.
func (a *Agent) Receive(ctx context.Context, e ledger.Event) (ledger.Event, error) {
	return a.receive(ctx, e, false)
}

// ReceiveIfIdle is Receive for a message that doesn't want to wait: if its session has work, it is [ErrBusy] and nothing
// is recorded.
func (a *Agent) ReceiveIfIdle(ctx context.Context, e ledger.Event) (ledger.Event, error) {
	return a.receive(ctx, e, true)
}

func (a *Agent) receive(ctx context.Context, e ledger.Event, idle bool) (ledger.Event, error) {
	m, ok := e.Body.(*ledger.MessageReceived)
	if !ok {
		return ledger.Event{}, fmt.Errorf("agent: a %s is not a message", e.Kind())
	}
	if _, err := a.Policy.Current().Tighten(stricter(m)); err != nil {
		return ledger.Event{}, err
	}
	if m.Disposition != ledger.Starts {
		return a.record(ctx, e)
	}
	if !a.occupy(e.Session, idle) {
		return ledger.Event{}, ErrBusy
	}
	written, err := a.record(ctx, e)
	if err != nil {
		a.vacate(e.Session)
		return ledger.Event{}, err
	}
	a.mu.Lock()
	a.jobs[written.Seq] = &job{message: written}
	a.mu.Unlock()
	select {
	case a.incoming <- written:
	case <-a.closed: // it waits in the journal for the next process
	}
	return written, nil
}

func (a *Agent) record(ctx context.Context, e ledger.Event) (ledger.Event, error) {
	written, err := a.Ledger.Append(ctx, e)
	if err != nil {
		return ledger.Event{}, err
	}
	return written[0], nil
}

// stricter is what a message asks of the policy.
func stricter(m *ledger.MessageReceived) policy.Settings {
	return policy.Settings{ApprovalPolicy: policy.ApprovalPolicy(m.Policy), SandboxMode: policy.SandboxMode(m.Sandbox)}
}

// policyFor is the policy of the run that a message starts. Between its receipt and its turn there may have been a
// restart with stricter settings: then those hold, each where it is the stricter one. What can't be read denies.
func (a *Agent) policyFor(m *ledger.MessageReceived) *policy.Policy {
	return tightened(a.Policy.Current(), stricter(m))
}

// tightened is p with what is stricter in want.
func tightened(p *policy.Policy, want policy.Settings) *policy.Policy {
	for _, s := range []policy.Settings{{ApprovalPolicy: want.ApprovalPolicy}, {SandboxMode: want.SandboxMode}} {
		tighter, err := p.Tighten(s)
		var weaker *policy.WeakerError
		switch {
		case err == nil:
			p = tighter
		case !errors.As(err, &weaker):
			return nil
		}
	}
	return p
}

// occupy counts a message to its session; false if it is to be the only one and isn't.
func (a *Agent) occupy(session string, alone bool) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if alone && a.load[session] > 0 {
		return false
	}
	a.load[session]++
	return true
}

func (a *Agent) vacate(session string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.load[session]--; a.load[session] <= 0 {
		delete(a.load, session)
	}
}

// inherit takes over a message that an earlier process has received. Whoever sent it over HTTP and waited for the run is
// gone with that process: the run is ended as soon as it begins, unless it was to go on without them.
func (a *Agent) inherit(e ledger.Event) {
	j := &job{message: e, withdrawnBy: e.Actor}
	m, ok := e.Body.(*ledger.MessageReceived)
	switch {
	case ok && m.Ask != nil: // the process that took it is gone, so the answer is no
		j.withdrawn = &endedError{code: codeRestarted, reason: "approvalbot restarted before people were asked"}
	case ok && m.Origin.Kind == "http" && !m.Detach && m.Place.Channel == "":
		j.withdrawn = &endedError{code: codeRestarted, reason: "approvalbot restarted before its turn came, and nobody waits for it any more"}
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.jobs[e.Seq] = j
	a.load[e.Session]++
}

// Withdraw ends what a message started, or will start when its turn comes, because its sender is gone or somebody stopped
// it. It is journalled as the stop of the message's Actor: the sender, or who the caller put there. A message whose run is over is left as it is.
func (a *Agent) Withdraw(ctx context.Context, message ledger.Event, reason string) error {
	a.mu.Lock()
	j := a.jobs[message.Seq]
	if j == nil || j.withdrawn != nil {
		a.mu.Unlock()
		return nil
	}
	j.withdrawn, j.withdrawnBy = &endedError{code: codeStopped, reason: reason}, message.Actor
	running := j.cancel != nil
	a.mu.Unlock()
	if !running {
		return nil // begin does it
	}
	return a.stopWithdrawn(ctx, j)
}

// stopWithdrawn records the stop of a message's run that has been registered, and stops it.
func (a *Agent) stopWithdrawn(ctx context.Context, j *job) error {
	var err error
	if run, ok, findErr := a.Ledger.Claimed(ctx, ledger.ClaimTaken(j.message.Seq)); ok {
		_, err = a.Ledger.Append(ctx, ledger.Event{
			Session: run.Session, Run: run.Run, Actor: j.withdrawnBy, Body: &ledger.RunStopRequested{Reason: j.withdrawn.reason},
		})
	} else {
		err = findErr
	}
	j.cancel(j.withdrawn) // stopping is the safe side: it happens even if it can't be recorded
	return err
}

// begin notes that a message's turn has come; end takes it back. A message that was withdrawn while it waited is stopped
// before its first sample.
func (a *Agent) begin(ctx context.Context, r *run, message ledger.Event, cancel context.CancelCauseFunc) {
	a.mu.Lock()
	a.active[r.id], a.runs[r.id] = cancel, r
	j := a.jobs[message.Seq]
	if j != nil {
		j.cancel = cancel
	}
	withdrawn := j != nil && j.withdrawn != nil
	a.mu.Unlock()
	if !withdrawn {
		return
	}
	if err := a.stopWithdrawn(context.WithoutCancel(ctx), j); err != nil {
		a.Logger.Error("the stop of a run could not be recorded", "run", r.id, "error", err)
	}
}

func (a *Agent) end(run string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.active, run)
	delete(a.runs, run)
}

// done forgets a message that was worked off.
func (a *Agent) done(message ledger.Event) {
	a.mu.Lock()
	delete(a.jobs, message.Seq)
	a.mu.Unlock()
	a.vacate(message.Session)
}
