package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/google/uuid"

	"approvalbot/internal/ledger"
	"approvalbot/internal/model"
	"approvalbot/internal/policy"
	"approvalbot/internal/tools"
)

// The codes of run_finished.
const (
	codeStopped          = "STOPPED"            // a person stopped it
	codeShutdown         = "SHUTDOWN"           // approvalbot was stopped
	codeRestarted        = "RESTARTED"          // ended by recovery
	codeModelError       = "MODEL_ERROR"        // the model didn't answer
	codeRoundLimit       = "ROUND_LIMIT"        // too many rounds
	codeRepeated         = "REPEATED_TOOL_CALL" // the same call with the same result again and again
	codeDenied           = "DENIED_REPEATEDLY"  // people keep saying no
	codeProfile          = "PROFILE_UNUSABLE"   // what is set for its place can't be used
	codeApprovalRequired = "APPROVAL_REQUIRED"  // an ask that can't be shown to anyone (fail_closed)
)

// ApprovalRequiredError ends a run whose mode is fail_closed: a call needs approval and there is no way to ask.
type ApprovalRequiredError struct {
	Run, Call, Tool, Reason string
}

func (e *ApprovalRequiredError) Error() string {
	return fmt.Sprintf("%s needs approval and nobody can be asked here: %s", e.Tool, e.Reason)
}

// errHalted says that the run can't go on because the journal couldn't be written or read. What it left open is closed
// as after a crash.
var errHalted = errors.New("the journal could not be written")

func halted(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%w: %w", errHalted, err)
}

// run is one run in progress. Its fields don't change while its calls run, but for the counter.
type run struct {
	*Agent
	id      string
	session string
	started *ledger.RunStarted
	policy  *policy.Policy
	profile Profile
	unfit   error // why it can't begin; nil: it can
	tools   *tools.Set
	asked   *ledger.ProgramAsk // what another program wants to do; nil in a run with a model
	asks    atomic.Int64
}

func (r *run) target(c ledger.ToolCall) target { return target{session: r.session, run: r.id, call: c} }

// work takes a message and works it off to its end, whatever happens on the way.
func (a *Agent) work(ctx context.Context, msg ledger.Event) {
	defer a.done(msg)
	r, err := a.turn(ctx, msg)
	if err != nil || r == nil {
		if err != nil {
			a.Logger.Error("a message could not be taken; it waits in the journal", "session", msg.Session, "message", msg.Seq, "error", err)
		}
		return
	}
	defer r.profile.release()
	runCtx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	a.begin(ctx, r, msg, cancel)
	defer a.end(r.id)

	end, err := r.workOff(runCtx)
	if err == nil {
		_, err = a.Ledger.Append(context.WithoutCancel(ctx), ledger.Event{Session: r.session, Run: r.id, Actor: ledger.System, Body: end})
	}
	if err != nil {
		a.Logger.Error("a run was halted", "session", r.session, "run", r.id, "error", err)
		a.settle(ctx, r.session, r.id)
	}
}

// workOff does what the run is for. An error means that the run is halted.
func (r *run) workOff(ctx context.Context) (*ledger.RunFinished, error) {
	switch {
	case r.unfit != nil:
		return unusable(r.unfit), nil
	case r.asked != nil:
		return r.external(ctx)
	}
	return r.rounds(ctx)
}

// beginning is what the run begins with.
func (r *run) beginning(message int64, m *ledger.MessageReceived, people []ledger.Person, specs json.RawMessage) *ledger.RunStarted {
	settings := r.policy.Settings()
	b := &ledger.RunStarted{
		Message: message, Place: m.Place, Requesters: people,
		Model: r.profile.Model.Name(), System: systemPrompt(r.profile.Instructions), Tools: specs,
		Profile: r.profile.Name,
		Mode:    firstOf(m.Mode, ledger.ModeFailClosed), Policy: string(settings.ApprovalPolicy),
		Sandbox: string(settings.SandboxMode), PolicyHash: r.policy.Hash(),
		Surface: m.Surface, Detach: m.Detach,
	}
	if r.profile.Workspace != r.Workspace {
		b.Workspace = r.profile.Workspace
	}
	if m.Ask != nil {
		b.Program, b.Model, b.System, b.Tools = m.Ask.Program, "", "", nil
	}
	return b
}

// take records that the message's turn has come. It returns nil if the message was taken before.
func (a *Agent) take(ctx context.Context, msg ledger.Event) (_ *run, err error) {
	m := msg.Body.(*ledger.MessageReceived)
	taken := false
	r := &run{Agent: a, id: firstOf(m.RunID, "run_"+uuid.NewString()), session: msg.Session, asked: m.Ask}
	r.profile, r.unfit = a.profileOf(ctx, msg.Session, m)
	defer func() {
		if !taken {
			r.profile.release()
		}
	}()
	r.policy, r.tools = tightened(a.policyFor(m), r.profile.Settings), r.profile.Tools.Set()
	specs, err := toolSpecs(r.tools)
	if err != nil {
		return nil, err
	}
	for {
		if err := r.attachments(ctx, msg); errors.Is(err, ledger.ErrNotRecorded) {
			if err := a.Ledger.WaitWritable(ctx); err != nil {
				return nil, err
			}
			continue
		} else if err != nil {
			return nil, err
		}
		people, err := a.requesters(ctx, msg)
		if err != nil {
			return nil, err
		}
		r.started = r.beginning(msg.Seq, m, people, specs)
		err = a.Approvals.Unpaused(func() error {
			_, err := a.Ledger.Append(ctx, ledger.Event{Session: r.session, Run: r.id, Actor: msg.Actor, Body: r.started})
			return err
		})
		var conflict *ledger.ConflictError
		switch {
		case err == nil:
			taken = true
			return r, nil
		case errors.As(err, &conflict):
			return nil, nil
		case !errors.Is(err, ledger.ErrNotRecorded):
			return nil, err
		}
		if err := a.Ledger.WaitWritable(ctx); err != nil {
			return nil, err
		}
	}
}

// requesters are everyone whose words are in the session's instructions when the message's turn comes. Whoever had
// something asked again has said nothing: the words of such a message are ours.
func (a *Agent) requesters(ctx context.Context, msg ledger.Event) ([]ledger.Person, error) {
	var people []ledger.Person
	seen := map[ledger.Person]bool{}
	add := func(e ledger.Event) {
		if p := e.Actor.Person(); !seen[p] {
			seen[p] = true
			people = append(people, p)
		}
	}
	messages := map[int64]ledger.Event{}
	kinds := []string{"message_received", "message_withdrawn"}
	for e, err := range a.Ledger.Read(ctx, 0, ledger.Filter{Session: msg.Session, Kinds: kinds}) {
		if err != nil {
			return nil, err
		}
		switch b := e.Body.(type) {
		case *ledger.MessageReceived:
			if b.Again == "" && (b.Disposition == ledger.Context || b.Disposition == ledger.Starts && e.Seq <= msg.Seq) {
				messages[e.Seq] = e
			}
		case *ledger.MessageWithdrawn: // its words never came into the instructions
			delete(messages, b.Message)
		}
	}
	for _, seq := range slices.Sorted(maps.Keys(messages)) {
		add(messages[seq])
	}
	if m, ok := msg.Body.(*ledger.MessageReceived); !ok || m.Again == "" || len(people) == 0 {
		add(msg)
	}
	return people, nil
}

// rounds samples and executes until the run has an end. An error means that the run is halted.
func (r *run) rounds(ctx context.Context) (*ledger.RunFinished, error) {
	end, err := r.untilEnd(ctx)
	if err != nil {
		return nil, err
	}
	state, ok, err := r.Ledger.LoadRun(context.WithoutCancel(ctx), r.id)
	if err != nil || !ok {
		return nil, halted(errors.Join(err, ctx.Err()))
	}
	end.Usage = state.Usage()
	return end, nil
}

func (r *run) untilEnd(ctx context.Context) (*ledger.RunFinished, error) {
	for round := 1; ; round++ {
		if round > r.MaxRounds {
			return &ledger.RunFinished{Status: ledger.RunFailed, Code: codeRoundLimit, Rounds: round - 1,
				Reason: fmt.Sprintf("It was still not done after %d rounds, which is the limit.", r.MaxRounds)}, nil
		}
		sample, end, err := r.sample(ctx, round)
		if err == nil && end == nil {
			end, err = r.afterSample(ctx, sample)
		}
		if err != nil {
			return nil, err
		}
		if end != nil {
			end.Rounds = round
			return end, nil
		}
	}
}

// afterSample executes a sample's calls; it returns the run's end if this was it.
func (r *run) afterSample(ctx context.Context, sample *ledger.ModelCompleted) (*ledger.RunFinished, error) {
	if len(sample.ToolCalls) == 0 {
		if ctx.Err() != nil { // stopped while the last words were being recorded
			return interrupted(ctx), nil
		}
		return &ledger.RunFinished{
			Status: ledger.RunSucceeded, Answer: sample.Text, Truncated: sample.StopReason == model.StopMaxTokens,
		}, nil
	}
	required, err := r.execute(ctx, sample)
	if err != nil {
		return nil, err
	}
	if required != nil {
		return &ledger.RunFinished{Status: ledger.RunFailed, Code: codeApprovalRequired, Reason: required.Error()}, nil
	}
	if ctx.Err() != nil {
		return interrupted(ctx), nil
	}
	state, ok, err := r.Ledger.LoadRun(ctx, r.id)
	if err != nil || !ok {
		return nil, halted(errors.Join(err, ctx.Err()))
	}
	return guard(state), nil
}

// interrupted is the end of a run whose context was ended from outside.
func interrupted(ctx context.Context) *ledger.RunFinished {
	end := &ledger.RunFinished{Status: ledger.RunCancelled, Code: codeStopped, Reason: "it was stopped"}
	var cause *endedError
	if errors.As(context.Cause(ctx), &cause) {
		end.Code, end.Reason = cause.code, cause.reason
	}
	return end
}

// transcript folds what the session's journal says so far.
func (r *run) transcript(ctx context.Context) (*Transcript, error) {
	t := &Transcript{}
	for e, err := range r.Ledger.Read(ctx, 0, ledger.Filter{Session: r.session}) {
		if err != nil {
			return nil, err
		}
		if err := t.Apply(e); err != nil {
			return nil, err
		}
	}
	return t, nil
}

// identify gives every call an id that is its own within the run: the provider's, or a fresh one where that is empty or
// was used before.
func (r *run) identify(ctx context.Context, calls []model.ToolCall) ([]ledger.ToolCall, error) {
	if len(calls) == 0 {
		return nil, nil
	}
	state, _, err := r.Ledger.LoadRun(ctx, r.id)
	if err != nil {
		return nil, err
	}
	used := map[string]bool{"": true}
	for _, c := range state.Calls {
		used[c.ID] = true
	}
	out := make([]ledger.ToolCall, len(calls))
	for i, c := range calls {
		out[i] = ledger.ToolCall{ID: c.ID, Name: c.Name, Arguments: c.Arguments}
		if used[c.ID] {
			out[i].ID, out[i].ProviderID = "call_"+uuid.NewString(), c.ID
		}
		used[out[i].ID] = true
	}
	return out, nil
}

// execute runs a round's calls side by side and returns when each has its terminal state. One call's ending does nothing
// to the others. If the mode is fail_closed and a call would have to ask, that call is the result.
func (r *run) execute(ctx context.Context, sample *ledger.ModelCompleted) (*ApprovalRequiredError, error) {
	calls := sample.ToolCalls
	earlier, _, err := r.Ledger.LoadRun(context.WithoutCancel(ctx), r.id)
	if err != nil {
		return nil, halted(err)
	}
	haltCtx, halt := context.WithCancelCause(ctx)
	defer halt(nil)
	errs := make([]error, len(calls))
	var wg sync.WaitGroup
	for i, c := range calls {
		wg.Go(func() {
			if i == len(calls)-1 && sample.StopReason == model.StopMaxTokens {
				errs[i] = halted(r.finish(haltCtx, r.target(c), failed(codeCutOff, cutOff, "")))
			} else {
				errs[i] = r.call(haltCtx, earlier, c)
			}
			if errors.Is(errs[i], errHalted) { // the others can't go on either
				halt(&endedError{code: codeRestarted, reason: errHalted.Error()})
			}
		})
	}
	wg.Wait()
	var required *ApprovalRequiredError
	for _, err := range errs {
		switch {
		case errors.Is(err, errHalted):
			return nil, err
		case required == nil:
			errors.As(err, &required)
		}
	}
	return required, nil
}

// cutOff is what the model is told of a call in whose middle it may have stopped: what would run is not what it meant.
const cutOff = "Your answer reached the limit of its length at this call, which may be cut off, so it was not performed. Make it again, shorter: in several calls if need be."

// deniedBefore tells whether the same call was denied or left unanswered before in this run, so that nobody is asked twice.
// The words of the reason don't matter, the canonical bytes do: those that the model wrote, and those that people made of
// them.
func deniedBefore(state *ledger.Run, tool, digest string) bool {
	for _, c := range state.Calls {
		if c.State == ledger.OutputDenied && c.Name == tool && slices.Contains(digests(c), digest) {
			return true
		}
	}
	return false
}
