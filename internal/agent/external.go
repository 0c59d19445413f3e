package agent

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/google/jsonschema-go/jsonschema"

	"approvalbot/internal/ledger"
	"approvalbot/internal/tools"
)

// A program that asks for permission gets a run like any other, without a model: one call, one tool. The tool is the
// program itself. What [run.call] does with a call (the policy, the ask, the second look before the start) it does with
// this one, too; where another tool would act, this one waits for the program's word:
//
//	call_requested ── permission_decided ── ask, as ever ── tool_started: the program may act
//	        tool_finished ◄── outcome_reported ◄── by the program, or by us when its time is over
//
// outcome_reported is claimed once, so a report that comes in the moment in which we stop waiting either counts or is
// told that it came too late, and what was reported survives a crash before the call's own end is written.

// What ends a call that another program performs, besides what ends every other.
const (
	codeNoOutcome     = "NO_OUTCOME"     // it was allowed to act and didn't say how it went
	codeProgramFailed = "PROGRAM_FAILED" // it said that it failed
)

// codeNotApproved is the code of the run of an ask that got a no.
const codeNotApproved = "NOT_APPROVED"

// externalCall is the toolCallId of the one call of such a run.
const externalCall = "call_1"

// What [Agent.Report] says besides the journal's errors.
var (
	// ErrNoAsk: there is no such run, or it isn't the ask of a program.
	ErrNoAsk = errors.New("there is no such ask of a program")
	// ErrNotStarted: nobody has allowed it, so there is nothing to report.
	ErrNotStarted = errors.New("it was not approved")
)

// An act is an action that another program was allowed to perform and has not reported on.
type act struct {
	reported chan struct{} // closed when the report is on disk
	done     chan struct{} // closed when the call has its end
}

// external takes the one call to its terminal state; the run's end follows from it.
func (r *run) external(ctx context.Context) (*ledger.RunFinished, error) {
	own := &program{run: r, act: &act{reported: make(chan struct{}), done: make(chan struct{})}}
	tc := ledger.ToolCall{ID: externalCall, Name: r.asked.Tool, Arguments: r.asked.Arguments}
	var err error
	if r.tools, err = tools.NewSet(own); err != nil {
		return &ledger.RunFinished{Status: ledger.RunFailed, Code: codeToolFailed, Reason: err.Error()}, nil
	}
	by, _, err := r.Ledger.Event(context.WithoutCancel(ctx), r.started.Message)
	if err != nil {
		return nil, halted(err)
	}
	_, err = r.Ledger.Append(context.WithoutCancel(ctx), r.target(tc).event(by.Actor, &ledger.CallRequested{
		Call: tc, Reason: r.asked.Reason, Cwd: r.asked.Cwd,
	}))
	if err != nil {
		return nil, halted(err)
	}
	r.expect(own.act)
	defer r.performed(own.act)
	if err := r.call(ctx, &ledger.Run{}, tc); err != nil {
		return nil, err
	}
	state, ok, err := r.Ledger.LoadRun(context.WithoutCancel(ctx), r.id)
	if err != nil || !ok {
		return nil, halted(errors.Join(err, ctx.Err()))
	}
	return externalEnd(ctx, state), nil
}

func (r *run) expect(a *act) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.acts[r.id] = a
}

func (r *run) performed(a *act) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.acts, r.id)
	close(a.done)
}

// externalEnd is how the run ends, given how its call did.
func externalEnd(ctx context.Context, state *ledger.Run) *ledger.RunFinished {
	f := state.Calls[0].Finished
	switch {
	case f == nil: // can't be: the call has returned
		return &ledger.RunFinished{Status: ledger.RunFailed, Code: codeToolFailed, Reason: "its call has no end"}
	case f.State == ledger.OutputAvailable:
		return &ledger.RunFinished{Status: ledger.RunSucceeded}
	case f.State == ledger.OutputDenied && ctx.Err() != nil:
		return interrupted(ctx)
	case f.State == ledger.OutputDenied:
		return &ledger.RunFinished{Status: ledger.RunCancelled, Code: codeNotApproved, Reason: f.Reason}
	}
	return &ledger.RunFinished{Status: ledger.RunFailed, Code: f.Code, Reason: f.Reason}
}

// A program is the tool that another program is.
type program struct {
	run *run
	act *act
}

// Spec claims nothing: what the program does is not known here, so it counts as everything that a policy may worry about.
func (p *program) Spec() tools.Spec {
	return tools.Spec{
		Name:        p.run.asked.Tool,
		Description: "An action that the program " + p.run.asked.Program + " performs itself.",
		InputSchema: &jsonschema.Schema{Type: "object"},
	}
}

func (p *program) Describe(args json.RawMessage) (tools.Preview, error) {
	var body bytes.Buffer
	if err := json.Indent(&body, args, "", "  "); err != nil {
		return tools.Preview{}, err
	}
	return tools.Preview{
		Summary: fmt.Sprintf("%s will run %s", p.run.asked.Program, p.run.asked.Tool),
		Target:  p.run.asked.Tool, Kind: tools.KindJSON, Body: body.String(),
	}, nil
}

// Call waits until the program has said how it went, or nobody waits any longer.
func (p *program) Call(ctx context.Context, _ json.RawMessage) (tools.Output, error) {
	timer := time.NewTimer(p.run.Outcome)
	defer timer.Stop()
	why := ""
	select {
	case <-p.act.reported:
	case <-timer.C:
		why = "none came within " + p.run.Outcome.String()
	case <-ctx.Done():
		why = "it was stopped before one came"
		if cause := (*endedError)(nil); errors.As(context.Cause(ctx), &cause) {
			why = cause.reason + " before one came"
		}
	}
	t := p.run.target(ledger.ToolCall{ID: externalCall})
	o, err := p.run.outcome(ctx, t, why)
	if err != nil {
		return tools.Output{}, err
	}
	return o.result(p.run.asked.Program)
}

// outcome gives what the program reported; if that is nothing, it is recorded that no more is waited for, and why. If the
// journal can't be written it waits for that: what the program did can't be undone.
func (a *Agent) outcome(ctx context.Context, t target, why string) (*outcome, error) {
	for {
		e, err := a.claimOutcome(context.WithoutCancel(ctx), t, why)
		if errors.Is(err, ledger.ErrNotRecorded) && a.Ledger.WaitWritable(ctx) == nil {
			continue
		}
		if err != nil {
			return nil, err
		}
		o, ok := e.Body.(*ledger.OutcomeReported)
		if !ok {
			return nil, fmt.Errorf("what was reported of %s was erased", t.run)
		}
		return &outcome{o}, nil
	}
}

func (a *Agent) claimOutcome(ctx context.Context, t target, why string) (ledger.Event, error) {
	e, found, err := a.Ledger.Claimed(ctx, ledger.ClaimOutcome(t.run, t.call.ID))
	if found || err != nil {
		return e, err
	}
	written, err := a.Ledger.Append(ctx, t.event(ledger.System, &ledger.OutcomeReported{Outcome: ledger.OutcomeNone, Reason: why}))
	var conflict *ledger.ConflictError
	switch {
	case errors.As(err, &conflict):
		return conflict.Winner, nil
	case err != nil:
		return ledger.Event{}, err
	}
	return written[0], nil
}

// An outcome is what is known of another program's action.
type outcome struct{ *ledger.OutcomeReported }

// result is the outcome as a tool's: the same for the same report, whoever reads it.
func (o *outcome) result(program string) (tools.Output, error) {
	switch o.Outcome {
	case ledger.OutcomeDone:
		return tools.Output{Text: o.Output}, nil
	case ledger.OutcomeFailed:
		return tools.Output{}, &tools.Error{Code: codeProgramFailed, Message: program + " reported that it failed.", Output: o.Output}
	}
	return tools.Output{}, &tools.Error{Code: codeNoOutcome, Message: "No outcome reported: " + sentence(firstOf(o.Reason, "none came")) +
		" Whether " + program + " did it is not known."}
}

// closeExternal ends a call that another program was performing when the process ended, or when the journal couldn't be
// written: as it was reported, or else as not known.
func (a *Agent) closeExternal(ctx context.Context, t target, program, why string) error {
	o, err := a.outcome(ctx, t, why+" before one came")
	if err != nil {
		return err
	}
	out, err := o.result(program)
	if err != nil {
		return a.finish(ctx, t, toolFailure(ctx, err))
	}
	return a.finish(ctx, t, &ledger.ToolFinished{State: ledger.OutputAvailable, Output: out.Text})
}

// Report records how an action went that a program was allowed to perform (done or failed), and returns when its call
// has its end. What was reported before comes back as [*ledger.ConflictError]; that nothing was in time, too.
func (a *Agent) Report(ctx context.Context, id string, by ledger.Actor, o *ledger.OutcomeReported) error {
	state, ok, err := a.Ledger.LoadRun(ctx, id)
	switch {
	case err != nil:
		return err
	case !ok || state.Started == nil || state.Started.Program == "":
		return ErrNoAsk
	case len(state.Calls) == 0 || state.Calls[0].StartedAt.IsZero():
		return ErrNotStarted
	case state.Calls[0].Finished != nil && state.Calls[0].Outcome == nil:
		return ErrNoAsk // its end was written without waiting for a report, which can't be unless the journal failed
	}
	a.mu.Lock()
	waiting := a.acts[id]
	a.mu.Unlock()
	_, err = a.Ledger.Append(ctx, ledger.Event{Session: state.Session, Run: id, Call: state.Calls[0].ID, Actor: by, Body: o})
	if err != nil || waiting == nil { // without one, whoever ends the halted run finds the report
		return err
	}
	close(waiting.reported) // once: the report can be recorded once
	select {
	case <-waiting.done:
	case <-ctx.Done():
	}
	return nil
}
