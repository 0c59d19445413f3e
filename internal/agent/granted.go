package agent

import (
	"context"
	"encoding/json"
	"errors"

	"approvalbot/internal/approvals"
	"approvalbot/internal/ledger"
	"approvalbot/internal/tools"
)

// A call that the policy would ask about may have been allowed before, by somebody's grant. It is looked for after the
// policy has spoken, and before the question is put down: the decision on a call is journalled once. Where a grant covers
// the call, the decision and the start are one append, under the number of this use. Nothing can come between them, so
// what is revoked before never starts.

// shell is the built-in tool whose argument is a program. A grant is never for it as a whole.
const shell = "shell"

// performByGrant starts a call by a grant that covers it and takes it to its end. done is false where there is none; then
// people are asked, as ever. asked is the decision as the policy made it.
func (r *run) performByGrant(ctx context.Context, t target, tool tools.Tool, args json.RawMessage, req approvals.Request, asked *ledger.PermissionDecided) (done bool, err error) {
	used, err := r.Grants.Use(ctx, req, func(u approvals.Use) error {
		if r.changed(t.call.Name) != "" || ctx.Err() != nil {
			return errNotNow
		}
		allowed := *asked
		u.Decide(&allowed)
		decided := t.event(ledger.System, &allowed)
		return r.start([]ledger.Event{decided}, func() error {
			_, err := r.Ledger.Append(ctx, decided, t.event(ledger.System, &ledger.ToolStarted{Tool: t.call.Name, Digest: digest(args)}))
			return err
		})
	})
	var conflict *ledger.ConflictError
	var paused *approvals.PausedError
	switch {
	case used:
		return true, r.carryOut(ctx, t, tool, args, true)
	case err == nil:
		return false, nil
	case errors.As(err, &conflict) && conflict.Winner.Kind() != "permission_decided":
		return true, nil // it has ended, or runs already: once is enough
	case withdrawn(ctx, err), ctx.Err() != nil && errors.Is(err, errNotNow):
		return true, r.notStarted(ctx, t, []ledger.Event{t.event(ledger.System, asked)}, ledger.SourceAbort, abortReason(ctx))
	case errors.As(err, &paused), errors.Is(err, errNotNow):
		return false, nil // the question says why it can't be asked
	}
	return true, halted(err)
}

// errNotNow keeps a use from being recorded that would start nothing.
var errNotNow = errors.New("the call can't start")

// hides tells whether there is a secret in what a call is about: people can't grant what they can't see.
func (r *run) hides(p tools.Preview, args json.RawMessage) bool {
	if r.Hides == nil {
		return true
	}
	for _, text := range append([]string{p.Summary, p.Target, p.Body, string(args)}, p.Notes...) {
		if r.Hides(text) {
			return true
		}
	}
	var all any
	return json.Unmarshal(args, &all) != nil || r.hidesIn(all)
}

// hidesIn looks at texts as they are, and not as JSON writes them.
func (r *run) hidesIn(v any) bool {
	switch v := v.(type) {
	case string:
		return r.Hides(v)
	case []any:
		for _, one := range v {
			if r.hidesIn(one) {
				return true
			}
		}
	case map[string]any:
		for name, one := range v {
			if r.Hides(name) || r.hidesIn(one) {
				return true
			}
		}
	}
	return false
}
