package approvals

import (
	"context"

	"approvalbot/internal/ledger"
)

// A question is who may decide something.
type question struct {
	list       Approvers
	quorum     int
	requesters []ledger.Person
	place      ledger.Place
}

// mayDecide tells whether somebody may decide, and returns them as they are to be recorded.
func (r *Registry) mayDecide(ctx context.Context, q question, d Decision) (ledger.Actor, error) {
	return ledger.Actor{}, &RefusedError{Reason: "Nobody may decide yet.", Allowed: q.list.List()}
}

// hopeless tells why nobody could approve; empty if somebody could, or if that isn't known.
func (r *Registry) hopeless(ctx context.Context, q question, surfaces []string) string {
	return ""
}

// MayStart tells whether somebody may start runs in a channel.
func (r *Registry) MayStart(ctx context.Context, person ledger.Person, channel string) error {
	return &RefusedError{Reason: "Nobody may start runs yet.", Allowed: r.settings.Requesters.List()}
}

// MayStop tells whether somebody may stop a run: its requesters and those who may decide.
func (r *Registry) MayStop(ctx context.Context, by ledger.Actor, requesters []ledger.Person, place ledger.Place) error {
	return &RefusedError{Reason: "Nobody may stop runs yet.", Allowed: r.settings.Approvers.List()}
}
