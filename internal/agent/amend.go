package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"approvalbot/internal/approvals"
	"approvalbot/internal/fields"
	"approvalbot/internal/ledger"
	"approvalbot/internal/policy"
	"approvalbot/internal/tools"
)

// People who may approve a call may change its arguments first. What they make of it is a call like any other: read as a
// model's are, described by the tool, judged by the policy. Then it is what is asked, and, once it is approved, what runs.
// The model is told in the first line of the result that it isn't what it wrote.

// Amend changes the arguments of a pending ask for somebody. Besides what [approvals.Registry.Amend] says, the error can be
// an [*approvals.UnfitError]: the tool doesn't take them; or an [*approvals.RefusedError]: the policy forbids the changed
// call, or it can't be changed at all.
func (a *Agent) Amend(ctx context.Context, approvalID string, e approvals.Edit) (approvals.Outcome, error) {
	// First whether they may: what is wrong with a call isn't told to anybody else.
	if err := a.Approvals.MayDecide(ctx, approvalID, ledger.Approved, e.By); err != nil {
		return approvals.Outcome{}, err
	}
	ask, ok := a.Approvals.Find(approvalID)
	if !ok {
		return approvals.Outcome{}, approvals.ErrNotFound
	}
	a.mu.Lock()
	r := a.runs[ask.Run]
	a.mu.Unlock()
	if r == nil || r.asked != nil {
		return approvals.Outcome{}, refused("The arguments of this request can't be changed.")
	}
	m, err := r.amendment(ctx, ask.Ask.ApprovalRequested, e)
	if err != nil {
		return approvals.Outcome{}, err
	}
	return a.Approvals.Amend(ctx, approvalID, *m)
}

func refused(format string, args ...any) error {
	return &approvals.RefusedError{Reason: fmt.Sprintf(format, args...)}
}

// amendment reads, describes and judges changed arguments.
func (r *run) amendment(ctx context.Context, ask *ledger.ApprovalRequested, e approvals.Edit) (*approvals.Amendment, error) {
	tool, ok := r.tools.Get(ask.Tool)
	if !ok {
		return nil, refused("The arguments of this request can't be changed.")
	}
	if why := r.changed(ask.Tool); why != "" {
		return nil, &approvals.RefusedError{Reason: why}
	}
	args, err := tools.ParseArguments(tool.Spec(), []byte(e.Arguments))
	if err != nil {
		return nil, unfit(err)
	}
	p, err := tool.Describe(args)
	if err != nil {
		return nil, unfit(err)
	}
	rules := r.inForce()
	d := rules.Decide(r.policyCall(tool, args))
	if d.Denied() {
		return nil, refused("The policy forbids the changed call: %s", sentence(firstOf(d.Reason, "no reason was given")))
	}
	m := &approvals.Amendment{
		Edit: e, Preview: PreviewOf(p), Reason: d.Reason, Rule: d.Rule, Risk: string(d.Risk), Confirm: d.Confirm,
		PolicyHash: rules.Hash(), Approvers: d.Approvers, Quorum: d.Quorum,
	}
	m.Arguments = string(args)
	if d.Allowed() {
		// Nobody would be asked about it, had the model written it. It was asked about, so it stays asked.
		m.Reason, m.Rule = "it was asked about before it was changed; like this the policy would allow it", ask.Rule
		m.Approvers, m.Quorum = ask.Approvers, ask.Quorum
	}
	return m, r.annotate(ctx, ask.Tool, ask.ToolHash, &m.Preview)
}

// PreviewOf is a tool's preview as it is recorded.
func PreviewOf(p tools.Preview) ledger.Preview {
	return ledger.Preview{Summary: p.Summary, Target: p.Target, Kind: string(p.Kind), Body: p.Body, Notes: p.Notes, RunsAs: p.RunsAs}
}

// member finds, in what a schema says of arguments, the one that it is about.
var member = regexp.MustCompile(`/properties/([^/:\s]+)`)

func unfit(err error) error {
	wrong, ok := errors.AsType[*tools.Error](err)
	if !ok {
		return refused("The changed call can't be shown to people, so it can't be approved: %s", sentence(err.Error()))
	}
	u := &approvals.UnfitError{Reason: wrong.Message}
	if m := member.FindStringSubmatch(wrong.Message); m != nil {
		u.Member = strings.NewReplacer("~1", "/", "~0", "~").Replace(m[1])
	}
	return u
}

// offers are what the card of a call lets people do besides approving and denying.
func (r *run) offers(t target, args json.RawMessage, surfaces []string) (offers []ledger.Offer) {
	if slices.Contains(surfaces, "slack") && r.editable(t.call.Name, args) {
		offers = append(offers, ledger.OfferEdit)
	}
	if r.asked == nil && r.started.Place.Channel != "" { // what nobody answered can be asked again where a model does it, in a thread
		offers = append(offers, ledger.OfferAskAgain)
	}
	return offers
}

// editable tells whether people can be shown a form for a call.
func (r *run) editable(name string, args json.RawMessage) bool {
	tool, ok := r.tools.Get(name)
	return ok && r.asked == nil && (r.Hides == nil || !r.Hides(string(args))) && Editable(tool, args)
}

// Editable tells whether a form can show all that a call's arguments are.
func Editable(tool tools.Tool, args json.RawMessage) bool {
	schema, err := tool.Spec().Schema()
	if err != nil {
		return false
	}
	_, err = fields.Of(schema, args)
	return err == nil
}

// maxToldArguments is how much of changed arguments the model is told, in bytes; of larger ones it gets the digest.
const maxToldArguments = 4000

// changedWords is what the model is told first of a call that people changed.
func changedWords(by ledger.Actor, arguments string) string {
	what := "these instead: " + arguments
	if len(arguments) > maxToldArguments {
		what = fmt.Sprintf("others instead (%d bytes, SHA-256 %.8s…).", len(arguments), digest([]byte(arguments)))
	}
	return by.DisplayName() + " changed the arguments of this call before it was approved; it ran with " + what + "\n"
}

// digests are of the forms that a call had: as the model wrote it, and as people changed it last.
func digests(c *ledger.Call) []string {
	var all []string
	if c.Decision != nil {
		all = append(all, c.Decision.Digest)
	}
	if c.Approval != nil && c.Approval.Revision() > 0 && !slices.Contains(all, c.Approval.Digest) {
		all = append(all, c.Approval.Digest)
	}
	return all
}

// stillEnough tells whether an approved call has to be held against what the policy wants now, because that may be more.
func stillEnough(t target, asked approvals.Request, now policy.Wanted) bool {
	return t.changed == "" && !mayBeStricter(asked, now)
}
