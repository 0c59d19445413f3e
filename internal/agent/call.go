package agent

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"approvalbot/internal/approvals"
	"approvalbot/internal/ledger"
	"approvalbot/internal/policy"
	"approvalbot/internal/tools"
)

// The codes of output-error that are not a tool's own.
const (
	codeUnknownTool = "UNKNOWN_TOOL"
	codeAborted     = "ABORTED"         // it was running when the run was ended; may be partly performed
	codeUnknown     = "OUTCOME_UNKNOWN" // approvalbot ended while it was running
	codeToolFailed  = "TOOL_FAILED"
	codeCutOff      = "CUT_OFF" // the model reached the limit of its answer in it
)

// call takes one tool call to its terminal state. It returns nil when the call has it, an *ApprovalRequiredError when it
// has it and the run must end, and errHalted when it may be without.
func (r *run) call(ctx context.Context, earlier *ledger.Run, tc ledger.ToolCall) error {
	t := r.target(tc)
	tool, ok := r.tools.Get(tc.Name)
	if !ok {
		return halted(r.finish(ctx, t, failed(codeUnknownTool, fmt.Sprintf("There is no tool called %q.", tc.Name), "")))
	}
	args, err := tools.ParseArguments(tool.Spec(), []byte(tc.Arguments))
	if err != nil {
		return halted(r.finish(ctx, t, toolFailure(ctx, err)))
	}
	if ctx.Err() != nil {
		return halted(r.deny(ctx, t, ledger.SourceAbort, abortReason(ctx)))
	}
	preview, undescribed := tool.Describe(args)
	if wrong, ok := errors.AsType[*tools.Error](undescribed); ok { // the tool itself finds the arguments impossible
		return halted(r.finish(ctx, t, toolFailure(ctx, wrong)))
	}
	rules := r.inForce()
	d := rules.Decide(r.policyCall(tool, args))
	decision := &ledger.PermissionDecided{
		Tool: tc.Name, Type: ledger.DecisionType(d.Type), Source: string(d.Source), Reason: d.Reason, Rule: d.Rule,
		PolicyHash: rules.Hash(), Digest: digest(args), Summary: preview.Summary, Risk: string(d.Risk),
	}
	decided := t.event(ledger.System, decision)
	if d.Allowed() {
		return r.perform(ctx, t, tool, args, decided) // it starts at once, so both are one commit
	}
	req := r.request(t, preview, args, d, rules.Hash())
	if d.NeedsApproval() && undescribed == nil && !deniedBefore(earlier, tc.Name, digest(args)) {
		if done, err := r.performByGrant(ctx, t, tool, args, req, decision); done {
			return err
		}
	}
	if _, err := r.Ledger.Append(context.WithoutCancel(ctx), decided); err != nil {
		return halted(err)
	}
	switch {
	case d.NeedsApproval() && undescribed != nil:
		return halted(r.finish(ctx, t, failed(codeToolFailed, "The call can't be shown to people, so it can't be approved: "+sentence(undescribed.Error()), "")))
	case d.NeedsApproval():
		return r.ask(ctx, earlier, t, tool, args, req)
	}
	return halted(r.deny(ctx, t, ledger.SourcePolicy, policyReason(d)))
}

func policyReason(d policy.Decision) string {
	return "The policy forbids it: " + sentence(firstOf(d.Reason, "no reason was given"))
}

// inForce is the policy that holds for this run now: the operator's of this moment, with what was stricter at the run's
// start.
func (r *run) inForce() *policy.Policy {
	return tightened(r.Policy.Current(), policy.Settings{
		ApprovalPolicy: policy.ApprovalPolicy(r.started.Policy), SandboxMode: policy.SandboxMode(r.started.Sandbox),
	})
}

// policyCall is all that a policy gets to know of a call.
func (r *run) policyCall(tool tools.Tool, args json.RawMessage) policy.Call {
	c := PolicyCall(tool, args)
	c.Channel, c.Session, c.Now = r.started.Place.Channel, r.session, time.Now()
	c.Language = r.Language
	for _, p := range r.started.Requesters {
		c.Requesters = append(c.Requesters, p.ID)
	}
	return c
}

// PolicyCall is what a policy gets to know of a call by the tool that is called: all but who wants it, where and when.
func PolicyCall(tool tools.Tool, args json.RawMessage) policy.Call {
	spec, facts, demands := tool.Spec(), tools.FactsOf(tool, args), tools.DemandsOf(tool)
	return policy.Call{
		Tool: spec.Name, Args: args,
		ReadOnly:    spec.Annotations.ReadOnly(),
		Destructive: spec.Annotations.Destructive(),
		OpenWorld:   spec.Annotations.OpenWorld(),
		Programs:    facts.Programs, Parsed: facts.Parsed, ReadOnlyCommand: facts.ReadOnly,
		Path: facts.Path, Host: facts.Host,
		Ask: demands.Ask, AskWhy: demands.Why,
		Wanted: policy.Wanted{
			Risk: policy.Risk(demands.Risk), Approvers: demands.Approvers, Quorum: demands.Quorum,
			Timeout: demands.Timeout, Confirm: demands.Confirm,
		},
	}
}

// ask puts the call before people and does what they say.
func (r *run) ask(ctx context.Context, earlier *ledger.Run, t target, tool tools.Tool, args json.RawMessage, req approvals.Request) error {
	if r.started.Mode != ledger.ModeInteractive {
		if err := r.deny(ctx, t, ledger.SourceUndeliverable, "Nobody could be asked: this run has no way to show a request for approval."); err != nil {
			return halted(err)
		}
		return &ApprovalRequiredError{Run: r.id, Call: t.call.ID, Tool: t.call.Name, Reason: req.Reason}
	}
	if deniedBefore(earlier, t.call.Name, digest(args)) {
		return halted(r.deny(ctx, t, ledger.SourceLoopGuard, "The same call was denied or not answered before in this run, so nobody was asked again."))
	}
	if why := r.changed(t.call.Name); why != "" {
		return halted(r.deny(ctx, t, ledger.SourcePolicy, why))
	}
	if r.asks.Add(1) > int64(r.MaxAsks) {
		return halted(r.deny(ctx, t, ledger.SourceLoopGuard, fmt.Sprintf("This run has asked people %d times already, which is its limit.", r.MaxAsks)))
	}
	if err := r.annotate(ctx, req.Tool, req.ToolHash, &req.Preview); err != nil {
		return halted(err)
	}
	pending, err := r.Approvals.Open(ctx, req)
	switch {
	case withdrawn(ctx, err):
		return halted(r.deny(ctx, t, ledger.SourceAbort, abortReason(ctx)))
	case errors.Is(err, ledger.ErrNotRecorded):
		return halted(err)
	case err != nil:
		return halted(r.deny(ctx, t, ledger.SourceUndeliverable, denialReason(ledger.SourceUndeliverable, err.Error(), nil)))
	}
	res := pending.Wait(ctx)
	switch {
	case !res.Recorded():
		return halted(fmt.Errorf("the resolution of %s is not recorded", t.call.ID))
	case res.Type != ledger.Approved:
		return halted(r.deny(ctx, t, res.Source, denialReason(res.Source, res.Reason, res.By)))
	}
	r.Definitions.approve(req.Tool, req.ToolHash)
	if res.EditedBy != nil {
		t.changed = changedWords(*res.EditedBy, res.Arguments)
		args, req.Arguments = json.RawMessage(res.Arguments), res.Arguments
		if digest(args) != res.Digest {
			return halted(r.deny(ctx, t, ledger.SourcePolicy, "What would run is not what was approved."))
		}
	}
	return r.approved(ctx, t, tool, args, req)
}

// annotate adds to a preview what people should know of the tool's definition.
func (r *run) annotate(ctx context.Context, tool, hash string, p *ledger.Preview) error {
	note, err := r.Definitions.note(context.WithoutCancel(ctx), tool, hash)
	if err == nil && note != "" {
		p.Notes = append([]string{note}, p.Notes...)
	}
	return err
}

// request is what people are asked: the call as the tool describes it.
func (r *run) request(t target, p tools.Preview, args json.RawMessage, d policy.Decision, policyHash string) approvals.Request {
	hash, _ := r.tools.Hash(t.call.Name)
	cwd, timeout := r.profile.Workspace, d.Timeout
	if p.Dir != "" {
		cwd = p.Dir
	}
	if r.asked != nil {
		cwd = r.asked.Cwd
		if r.asked.Timeout > 0 && (timeout == 0 || r.asked.Timeout < timeout) { // a rule's limit is the longest
			timeout = r.asked.Timeout
		}
	}
	var surfaces []string
	if r.started.Place.Channel != "" {
		surfaces = append(surfaces, "slack")
	}
	if r.started.Surface == ledger.SurfaceHTTP {
		surfaces = append(surfaces, ledger.SurfaceHTTP)
	}
	return approvals.Request{
		Key: approvals.Key{Run: r.id, Call: t.call.ID}, Session: r.session,
		Tool: t.call.Name, ToolHash: hash, Arguments: string(args), Reason: d.Reason,
		Preview:    PreviewOf(p),
		Place:      r.started.Place,
		Requesters: r.started.Requesters,
		Surfaces:   surfaces,
		PolicyHash: policyHash,
		Cwd:        cwd,
		Rule:       d.Rule, Risk: string(d.Risk), Confirm: d.Confirm,
		Offers:    r.offers(t, args, surfaces),
		Approvers: d.Approvers, Quorum: d.Quorum, Timeout: timeout,
		Grantable: policyHash == r.Policy.Current().Hash() && !r.hides(p, args),
		Exact:     p.Kind == tools.KindCommand || t.call.Name == shell || r.asked != nil,
		Remind:    approvals.Reminder(d.Remind), Escalate: steps(d.Escalate),
	}
}

// steps are a policy's escalation as it is recorded.
func steps(of []policy.Step) (all []ledger.Escalation) {
	for _, s := range of {
		all = append(all, ledger.Escalation(s))
	}
	return all
}

// approved runs an approved call, if it is still what people approved: nothing ended the run meanwhile, the policy
// doesn't forbid it now, tool and bytes are those that were shown.
func (r *run) approved(ctx context.Context, t target, tool tools.Tool, args json.RawMessage, req approvals.Request) error {
	if ctx.Err() != nil {
		return halted(r.deny(ctx, t, ledger.SourceAbort, abortReason(ctx)))
	}
	d := r.inForce().Decide(r.policyCall(tool, args))
	if d.Denied() {
		return halted(r.deny(ctx, t, ledger.SourcePolicy, policyReason(d)))
	}
	if d.NeedsApproval() && !stillEnough(t, req, d.Wanted) {
		refused, err := r.notEnough(ctx, t, d.Wanted)
		switch {
		case ctx.Err() != nil:
			return halted(r.deny(ctx, t, ledger.SourceAbort, abortReason(ctx)))
		case err != nil:
			return halted(err)
		case refused != "":
			return halted(r.deny(ctx, t, ledger.SourcePolicy, refused))
		}
	}
	if hash, _ := r.tools.Hash(t.call.Name); hash != req.ToolHash || digest(args) != digest([]byte(req.Arguments)) {
		return halted(r.deny(ctx, t, ledger.SourcePolicy, "What would run is not what was approved."))
	}
	return r.perform(ctx, t, tool, json.RawMessage(req.Arguments))
}

// mayBeStricter tells whether what a policy wants for an ask now may let fewer people approve it than what it was asked
// with. What the settings say (nil, 0) isn't known here, so against anything else it may be.
func mayBeStricter(asked approvals.Request, now policy.Wanted) bool {
	switch {
	case asked.Quorum != now.Quorum && (asked.Quorum == 0 || now.Quorum == 0 || now.Quorum > asked.Quorum):
		return true
	case (asked.Approvers == nil) != (now.Approvers == nil):
		return true
	}
	return slices.ContainsFunc(asked.Approvers, func(who string) bool { return !slices.Contains(now.Approvers, who) }) ||
		slices.ContainsFunc(asked.Escalate, func(s ledger.Escalation) bool { return !escalates(now.Escalate, s) })
}

// escalates tells whether everybody of a step may approve in one that comes no later.
func escalates(steps []policy.Step, s ledger.Escalation) bool {
	var by []string
	for _, now := range steps {
		if now.After <= s.After {
			by = append(by, now.Approvers...)
		}
	}
	return !slices.ContainsFunc(s.Approvers, func(who string) bool { return !slices.Contains(by, who) })
}

// escalated are those who were added to an ask and whom a policy would add now, too.
func escalated(a *ledger.Approval, now policy.Wanted) (words []string) {
	for _, e := range a.Escalated {
		for _, who := range e.Approvers {
			if slices.ContainsFunc(now.Escalate, func(s policy.Step) bool { return slices.Contains(s.Approvers, who) }) {
				words = append(words, who)
			}
		}
	}
	return words
}

// notEnough says why the approvals that a call got are not enough for what is wanted now; "" if they are.
func (r *run) notEnough(ctx context.Context, t target, now policy.Wanted) (string, error) {
	state, ok, err := r.Ledger.LoadRun(context.WithoutCancel(ctx), r.id)
	if err != nil || !ok {
		return "", errors.Join(err, ctx.Err())
	}
	c := state.Call(t.call.ID)
	if c == nil || c.Approval == nil {
		return "What was approved is not in the journal.", nil
	}
	err = r.Approvals.Enough(ctx, state, c.Approval, now.Approvers, now.Quorum, escalated(c.Approval, now)...)
	if err == nil {
		return "", nil
	}
	reason := "It could not be found out whether it still is."
	if refused, ok := errors.AsType[*approvals.RefusedError](err); ok {
		reason = refused.Reason
	}
	return "The policy has changed since this was approved. " + reason, nil
}

// changed says why the tool of a call is not any more what it was when the run began; empty if it is.
func (r *run) changed(name string) string {
	then, _ := r.tools.Hash(name)
	now, ok := r.current().Hash(name)
	switch {
	case !ok:
		return "The tool " + name + " is not there any more, so the call was not started."
	case now != then:
		return "The definition of the tool " + name + " has changed since this run began, so the call was not started. The next run has the new definition."
	}
	return ""
}

// current are the tools there are now: those of the run, as far as they are still what they were.
func (r *run) current() *tools.Set {
	if r.asked != nil {
		return r.tools // the program itself
	}
	return r.profile.Tools.Set()
}

// perform starts a call and takes it to its end. before is what is recorded together with its start. Nothing starts that
// isn't any more what it was: people, or the policy, decided about that.
func (r *run) perform(ctx context.Context, t target, tool tools.Tool, args json.RawMessage, before ...ledger.Event) error {
	if ctx.Err() != nil {
		return r.notStarted(ctx, t, before, ledger.SourceAbort, abortReason(ctx))
	}
	if why := r.changed(t.call.Name); why != "" {
		return r.notStarted(ctx, t, before, ledger.SourcePolicy, why)
	}
	err := r.start(before, func() error {
		_, err := r.Ledger.Append(ctx, append(before, t.event(ledger.System, &ledger.ToolStarted{Tool: t.call.Name, Digest: digest(args)}))...)
		return err
	})
	var conflict *ledger.ConflictError
	var paused *approvals.PausedError
	switch {
	case errors.As(err, &paused):
		return r.notStarted(ctx, t, before, ledger.SourceAbort, pausedReason(paused))
	case errors.As(err, &conflict) && conflict.Winner.Kind() != "permission_decided":
		return nil // it has ended, or runs already: once is enough
	case withdrawn(ctx, err):
		return r.notStarted(ctx, t, before, ledger.SourceAbort, abortReason(ctx))
	case err != nil:
		return halted(err)
	}
	return r.carryOut(ctx, t, tool, args, len(before) > 0)
}

// carryOut is the one place where a tool is called: that of a call that has started, which it ends. unasked says that
// nobody was asked about it.
func (r *run) carryOut(ctx context.Context, t target, tool tools.Tool, args json.RawMessage, unasked bool) error {
	start := time.Now()
	out, err := callTool(tools.WithCaller(ctx, r.caller(t, tool, args, unasked)), tool, args)
	f := &ledger.ToolFinished{State: ledger.OutputAvailable, Output: out.Text}
	if err != nil {
		f = toolFailure(ctx, err)
	}
	f.Elapsed, f.Output = time.Since(start), t.changed+f.Output
	return halted(r.finishStarted(ctx, t, f))
}

// caller is who a call is made for; unasked says that nobody was asked about it.
func (r *run) caller(t target, tool tools.Tool, args json.RawMessage, unasked bool) tools.Caller {
	c := tools.Caller{Run: r.id, Call: t.call.ID, Withheld: r.withheld(tool, args, unasked)}
	for _, p := range r.started.Requesters {
		c.Requesters = append(c.Requesters, p.ID)
	}
	return c
}

// reader is the tool whose rules say what of a file may be read, whichever tool reads it.
const reader = "read_file"

// withheld tells of a file that the operator's rules keep from a call: they deny this call, or read_file, for that file.
// Where nobody was asked about the call, files about which a rule would ask are kept from it, too.
func (r *run) withheld(tool tools.Tool, args json.RawMessage, unasked bool) func(path string) bool {
	rules := r.inForce()
	if rules.Rules().Len() == 0 {
		return nil
	}
	own := r.policyCall(tool, args)
	keeps := func(c policy.Call) bool {
		d := rules.Decide(c)
		return d.Source == policy.SourceRules && (d.Denied() || unasked && d.NeedsApproval())
	}
	return func(path string) bool {
		c := own
		c.Path = path
		if keeps(c) {
			return true
		}
		read, ok := r.tools.Get(reader)
		if !ok {
			return false
		}
		named, err := json.Marshal(map[string]string{"path": path})
		return err != nil || keeps(r.policyCall(read, named))
	}
}

// notStarted records what was to be recorded with a call's start, and that there was none.
func (r *run) notStarted(ctx context.Context, t target, before []ledger.Event, source ledger.Source, reason string) error {
	if len(before) > 0 {
		if _, err := r.Ledger.Append(context.WithoutCancel(ctx), before...); err != nil {
			return halted(err)
		}
	}
	return halted(r.deny(ctx, t, source, reason))
}

// withdrawn tells whether an append failed only because the run ended while it was still queued: nothing was written.
func withdrawn(ctx context.Context, err error) bool {
	return err != nil && ctx.Err() != nil && errors.Is(err, ctx.Err())
}

// How long a tool that was told to stop may take before its run goes on without it.
const stopGrace = 10 * time.Second

// errUnstoppable says that a tool didn't stop when it was told to.
var errUnstoppable = errors.New("the tool did not stop")

// callTool calls a tool and shields the run from what one tool does wrong. A panic is its failure. A tool that doesn't
// stop (a file system that hangs holds it in the kernel) is left behind after a grace, the one goroutine that nobody
// waits for: otherwise Stop and the end of the process would wait for it for ever.
func callTool(ctx context.Context, tool tools.Tool, args json.RawMessage) (tools.Output, error) {
	type result struct {
		out tools.Output
		err error
	}
	done := make(chan result, 1)
	go func() {
		var r result
		defer func() {
			if p := recover(); p != nil {
				r.err = fmt.Errorf("the tool crashed (%v) and may have performed a part", p)
			}
			done <- r
		}()
		r.out, r.err = tool.Call(ctx, args)
	}()
	select {
	case r := <-done:
		return r.out, r.err
	case <-ctx.Done():
	}
	grace := time.NewTimer(stopGrace)
	defer grace.Stop()
	select {
	case r := <-done:
		return r.out, r.err
	case <-grace.C:
		return tools.Output{}, errUnstoppable
	}
}

// toolFailure is the ending that an error of a tool, or of its arguments, makes.
func toolFailure(ctx context.Context, err error) *ledger.ToolFinished {
	var e *tools.Error
	switch {
	case errors.As(err, &e):
		return failed(string(e.Code), e.Message, e.Text())
	case errors.Is(err, errUnstoppable):
		return failed(codeUnknown, fmt.Sprintf("It was told to stop (%s) and had not after %s. It may still be running; whether it is performed is not known.",
			cause(ctx), stopGrace), "")
	case ctx.Err() != nil:
		return failed(codeAborted, "It was stopped while it ran ("+cause(ctx)+") and may be partly performed.", "")
	}
	return failed(codeToolFailed, sentence(err.Error()), "")
}

// abortReason is the sentence for a call that the run's end kept from starting.
func abortReason(ctx context.Context) string {
	return "The run was ended before this call could start: " + sentence(cause(ctx))
}

// cause says in a clause what ended the run.
func cause(ctx context.Context) string {
	var ended *endedError
	if errors.As(context.Cause(ctx), &ended) {
		return ended.reason
	}
	return "it was stopped"
}

func digest(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}
