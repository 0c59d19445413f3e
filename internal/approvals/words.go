package approvals

import (
	"context"
	"slices"

	"approvalbot/internal/ledger"
)

// Who may do with messages what isn't deciding itself, but is next to it.

// MayUseWords tells whether somebody may do something with a message that another person wrote while an ask was open: deny
// the ask with its words, or let it wait. Its author may, and whoever may approve the ask. Whether they may deny is asked
// again when they do. If not, the error is a [*RefusedError].
func (r *Registry) MayUseWords(ctx context.Context, approvalID string, author ledger.Person, by ledger.Actor) error {
	if by.Kind == ledger.ActorUser && by.ID != "" && by.Person() == author {
		return nil
	}
	a := r.find(approvalID)
	if a == nil {
		return ErrNotFound
	}
	q := r.who(a)
	q.act = "decide about another person's message"
	_, err := r.mayDecide(ctx, q, Decision{Type: ledger.Approved, By: by})
	return err
}

// MayBotStart tells whether another bot, or a workflow, may start runs: only one that the operator listed. If not, the
// error is a [*RefusedError]. That bots decide nothing is in mayDecide.
func (r *Registry) MayBotStart(bot string) error {
	if bot != "" && slices.Contains(r.settings.Bots, bot) {
		return nil
	}
	return &RefusedError{Reason: "This bot is not one of those who can start runs.", Allowed: slices.Clone(r.settings.Bots)}
}
