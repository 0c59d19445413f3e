package approvals

import (
	"context"
	"fmt"

	"approvalbot/internal/ledger"
)

// Check looks up everyone whom a list names: an id with a typing error would otherwise show only when it is needed. team
// is our workspace.
func Check(ctx context.Context, d Directory, team string, list Approvers) error {
	for _, id := range list.users {
		p, err := d.Person(ctx, ledger.Person{Team: team, ID: id})
		if err != nil {
			return fmt.Errorf("%s can't be looked up: %w", id, err)
		}
		if p.Kind != FullMember {
			return fmt.Errorf("%s (%s) is listed but is %s: only full members of the workspace count", id, p.Name, p.Kind)
		}
	}
	for _, id := range list.groups {
		members, err := d.Group(ctx, id)
		if err != nil {
			return fmt.Errorf("the group %s can't be looked up: %w", id, err)
		}
		if len(members) == 0 {
			return fmt.Errorf("the group %s has no members", id)
		}
	}
	return nil
}
