package approvals

import (
	"context"
	"fmt"
	"strings"

	"approvalbot/internal/ledger"
)

// Enough tells whether what people said to an ask is enough for what is wanted now: another list of approvers, another
// quorum, as the policy may want between the approval and the start. Nil and 0 are what the settings say; those to whom
// it was escalated come on top. Each approval
// counts if that person could give it under the new list, by the same rules as a click. If it isn't enough the error is
// a [*RefusedError], whose reason is for everybody to read.
func (r *Registry) Enough(ctx context.Context, run *ledger.Run, a *ledger.Approval, approvers []string, quorum int, escalated ...string) error {
	list := r.settings.Approvers
	if approvers != nil {
		var err error
		if list, err = ParseApprovers(approvers); err != nil {
			return &RefusedError{Reason: "Who has to approve this now can't be read, so it counts as not approved."}
		}
	}
	list = list.and(escalated)
	quorum = max(quorum, r.settings.Quorum)
	q := question{
		list: list, quorum: quorum, requesters: a.Requesters, place: a.Place, channels: standsIn(a),
		ids: ids{session: run.Session, run: run.ID, approval: a.ApprovalRequested.Approval},
	}
	lookups, cancel := context.WithTimeout(ctx, lookupLimit)
	defer cancel()
	q = r.at(lookups, q)
	n := 0
	for _, v := range a.Votes {
		if v.Type != ledger.Approved {
			continue
		}
		if _, err := r.mayDecide(ctx, q, Decision{Type: ledger.Approved, By: v.By}); err == nil {
			n++
		}
	}
	if n >= quorum {
		return nil
	}
	return q.refuse("It now takes %s (%s), and it has %d that count.", people(quorum), among(q.counting()), n)
}

func people(n int) string {
	if n == 1 {
		return "the approval of 1 person"
	}
	return fmt.Sprintf("the approvals of %d people", n)
}

func among(list []string) string {
	if len(list) == 0 {
		return "nobody could give one here"
	}
	return strings.Join(list, ", ")
}
