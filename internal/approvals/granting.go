package approvals

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"approvalbot/internal/ledger"
)

// How far a grant may reach.
const (
	MaxGrantUses   = 1000
	MaxThreadGrant = 7 * 24 * time.Hour
	MaxAlwaysGrant = 30 * 24 * time.Hour
)

// Terms are what somebody allows, on a card, besides the call that it is about.
type Terms struct {
	Scope    ledger.GrantScope
	Revision int       // of the arguments that they saw
	Any      []string  // arguments that may be anything; the others have to be as they are
	Until    time.Time //
	Uses     int       // how often at most
	Summary  string    // what it covers, as it was shown
}

// ErrChanged: the arguments of an ask are not any more what somebody saw when they decided. Nothing was decided.
var ErrChanged = errors.New("approvals: the arguments were changed meanwhile")

// ErrOutdated: the tool or the rules are others by now, so that a grant would allow nothing. Nothing was decided.
var ErrOutdated = errors.New("approvals: the tool or the policy has changed meanwhile")

// ErrNotGiven: the ask was decided before, so nothing was given.
var ErrNotGiven = errors.New("approvals: decided before, so nothing was granted")

// ErrTerms: terms that make no grant. Nothing was changed.
var ErrTerms = errors.New("approvals: these terms make no grant")

// A granting is a grant that is being given with an approval.
type granting struct {
	id    string
	terms Terms
	body  *ledger.GrantGiven // once it is known what it is about

	// outdated says of what it is about why a grant of that would allow nothing; empty: it would.
	outdated func(*ledger.GrantGiven) string
}

// Give approves an ask and allows more of its kind, as one: if the approval doesn't count, nothing is granted either.
// Besides what [Registry.ResolveByID] says, the error is [ErrNotGiven] where the ask was approved before, [ErrChanged]
// where its arguments are others than the terms are about, [ErrOutdated], or [ErrTerms].
func (g *Grants) Give(ctx context.Context, approvalID string, t Terms, d Decision) (Grant, error) {
	if g == nil || g.journal == nil {
		return Grant{}, (question{}).refuse("Nobody can allow calls in advance here.")
	}
	d.Type, d.Revision = ledger.Approved, t.Revision
	d.grant = &granting{id: uuid.NewString(), terms: t, outdated: g.outdated}
	out, err := g.registry.ResolveByID(ctx, approvalID, d)
	if err != nil {
		return Grant{}, err
	}
	if res := out.Resolution; res == nil || res.Granted == nil || res.Granted.Grant != d.grant.id {
		return Grant{}, ErrNotGiven
	}
	if err := g.catchUp(context.WithoutCancel(ctx)); err != nil { // it is given all the same, and read with the next
		g.log.Warn("a grant that was given could not be read back yet", "grant", d.grant.id, "error", err)
	}
	return Grant{
		ID: d.grant.id, Body: *d.grant.body, By: out.Resolution.granter(), At: out.Resolution.At, Session: out.Snapshot.Session,
	}, nil
}

func (r Resolution) granter() ledger.Actor {
	if r.By == nil {
		return ledger.Actor{}
	}
	return *r.By
}

// brief is what the resolution says of the grant.
func (n *granting) brief() *ledger.Granted {
	if n == nil || n.body == nil {
		return nil
	}
	return &ledger.Granted{Grant: n.id, Scope: n.body.Scope, Uses: n.body.Uses, Until: n.body.Until}
}

// events are the grant. It belongs to the session and to no run: it outlives the run, and what is erased of it.
func (n *granting) events(a *ask, by ledger.Actor) []ledger.Event {
	if n == nil || n.body == nil {
		return nil
	}
	return []ledger.Event{{Session: a.session, Actor: by, Body: n.body}}
}

// grantable tells why what is to be given with a decision can't be, and writes down what it is about. The caller has the
// ask's turn.
func (r *Registry) grantable(a *ask, d Decision) error {
	if d.grant == nil {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if a.over != nil || !a.opened() {
		return nil // there is nothing to decide: it is answered with what was
	}
	body, err := d.grant.about(&a.state, clock())
	if err != nil {
		return err
	}
	if why := d.grant.outdated(body); why != "" {
		return fmt.Errorf("%w: %s", ErrOutdated, why)
	}
	d.grant.body = body
	return nil
}

// about is the grant, on the ask as it stands.
func (n *granting) about(a *ledger.Approval, now time.Time) (*ledger.GrantGiven, error) {
	t := n.terms
	if t.Revision != a.Revision() {
		return nil, ErrChanged
	}
	offer, longest := ledger.OfferGrantThread, MaxThreadGrant
	if t.Scope == ledger.GrantAlways {
		offer, longest = ledger.OfferGrantAlways, MaxAlwaysGrant
	} else if t.Scope != ledger.GrantThread {
		return nil, fmt.Errorf("%w: the scope is thread or always, not %q", ErrTerms, t.Scope)
	}
	args, ok := members(a.Arguments)
	switch {
	case !ok || !slices.Contains(a.Offers, offer) || a.Quorum > 1 || unfit(a.Risk, a.Confirm) != "":
		return nil, fmt.Errorf("%w: a call of this kind can't be allowed in advance like that", ErrTerms)
	case t.Uses < 1 || t.Uses > MaxGrantUses:
		return nil, fmt.Errorf("%w: the count has to be between 1 and %d", ErrTerms, MaxGrantUses)
	case !t.Until.After(now) || t.Until.After(now.Add(longest)):
		return nil, fmt.Errorf("%w: it has to end within %s", ErrTerms, inWords(longest))
	case len(t.Any) > 0 && ExactOnly(a):
		return nil, fmt.Errorf("%w: only this exact command can be allowed in advance", ErrTerms)
	}
	loose := slices.Compact(slices.Sorted(slices.Values(t.Any)))
	for _, name := range loose {
		if _, there := args[name]; !there {
			return nil, fmt.Errorf("%w: the call has no argument %q", ErrTerms, name)
		}
	}
	maps.DeleteFunc(args, func(name string, _ json.RawMessage) bool { return slices.Contains(loose, name) })
	return &ledger.GrantGiven{
		Grant: n.id, Scope: t.Scope, Place: a.Place, Cwd: a.Cwd, Tool: a.Tool, ToolHash: a.ToolHash, Arguments: args, Any: loose,
		Requesters: a.Requesters, PolicyHash: a.PolicyHash, Approval: a.ApprovalRequested.Approval,
		Summary: words(t.Summary), Uses: t.Uses, Until: t.Until.UTC().Round(0),
	}, nil
}

// commandPreview is the kind of preview of a call that is a command.
const commandPreview = "command"

// ExactOnly tells whether a grant of an ask can be about exactly its arguments only. What is a command now has the same
// arguments tomorrow, or is another command.
func ExactOnly(a *ledger.Approval) bool { return a.Exact || a.Preview.Kind == commandPreview }

// grants are the grants that an ask lets people give.
func (r *Registry) grants(a *ask, q Request) []ledger.Offer {
	if _, object := members(q.Arguments); !object || r.ungrantable(q, a.who.quorum) != "" || !slices.Contains(q.Surfaces, "slack") {
		return nil
	}
	var offers []ledger.Offer
	if !strings.HasPrefix(q.Session, programSession) {
		offers = append(offers, ledger.OfferGrantThread)
	}
	if r.settings.Grants == ledger.GrantAlways {
		offers = append(offers, ledger.OfferGrantAlways)
	}
	return offers
}

// programSession begins the session of another program's ask, which doesn't go on.
const programSession = "ask/"

// ungrantable says why no grant can be about a call; empty: one can.
func (r *Registry) ungrantable(q Request, quorum int) string {
	switch {
	case r.settings.Grantors.Empty():
		return "nobody may allow calls in advance"
	case !q.Grantable:
		return "it can't be allowed in advance"
	case quorum > 1:
		return "it takes more than one person"
	case q.ToolHash == "" || q.PolicyHash == "" || len(q.Requesters) == 0:
		return "not enough is known of it"
	}
	return unfit(q.Risk, q.Confirm)
}

// unfit says why a call is one that has to be looked at each time; empty: it isn't.
func unfit(risk string, confirm bool) string {
	switch risk {
	case "", "low", "medium", "high":
	default: // critical, and what a newer version may call worse
		return "its risk is " + risk
	}
	if confirm {
		return "a click on it has to be confirmed"
	}
	return ""
}

func (r *Registry) quorum(q Request) int { return max(q.Quorum, r.settings.Quorum) }

// MayGrant tells whether somebody may approve an ask and allow more of its kind. If not, the error is a [*RefusedError],
// or says that the ask is over.
func (r *Registry) MayGrant(ctx context.Context, approvalID string, by ledger.Actor) error {
	a, err := r.undecided(ctx, approvalID)
	if err != nil {
		return err
	}
	by, err = r.mayDecide(ctx, r.who(a), Decision{Type: ledger.Approved, By: by})
	if err != nil {
		return err
	}
	return r.mayGrant(ctx, r.who(a), by)
}

// mayGrant tells whether somebody who may approve an ask may also grant. The right is one of its own: whoever asked has
// it as one of those who asked, or by name.
func (r *Registry) mayGrant(ctx context.Context, q question, by ledger.Actor) error {
	const act = "allow calls in advance here"
	q.list, q.origin, q.counts, q.shut, q.act = r.settings.Grantors, "APPROVALBOT_GRANTORS", nil, "", act
	lookups, cancel := context.WithTimeout(ctx, lookupLimit)
	defer cancel()
	q = r.at(lookups, q)
	switch {
	case by.Kind != ledger.ActorUser:
		return q.refuse("Only people can %s.", act)
	case q.list.Empty():
		return q.refuse("Nobody can %s.", act)
	case q.list.requester && q.asked(by.Person()):
		return nil
	}
	_, err := r.fullMember(lookups, q, by.Person(), act)
	if err == nil {
		err = r.mayListed(lookups, q, by.Person(), act)
	}
	if err == nil && lookups.Err() != nil {
		err = r.unknown(q, by.Person(), act, lookups.Err())
	}
	return err
}

// grantorMay tells whether the one who gave a grant could approve this call now, and may still grant: a grant is their
// answer, given before. The channels that count are those in which its card would have buttons; of a run that stands
// nowhere in Slack, those where the grant was given.
func (r *Registry) grantorMay(ctx context.Context, one *grant, q Request) bool {
	list, origin := r.settings.Approvers, settingApprovers
	if q.Approvers != nil {
		origin = q.origin()
		var err error
		if list, err = ParseApprovers(q.Approvers); err != nil {
			return false
		}
	}
	place := q.Place
	if place.Channel == "" {
		place = one.Place
	}
	lookups, cancel := context.WithTimeout(ctx, lookupLimit)
	defer cancel()
	channels := r.anywhere(lookups, q.Place)
	if len(channels) == 0 {
		channels = r.anywhere(lookups, place)
	}
	own := question{
		list: list, origin: origin, quorum: r.quorum(q), requesters: q.Requesters, place: place, channels: channels,
		ids: ids{session: q.Session, run: q.Run, call: q.Call},
	}
	_, err := r.mayDecide(ctx, own, Decision{Type: ledger.Approved, By: one.by})
	if err == nil {
		err = r.mayGrant(ctx, own, one.by)
	}
	if err != nil {
		own.ids.logger(r.log).Info("a grant doesn't count here, because whoever gave it could not approve this call",
			"grant", one.Grant, "error", err)
	}
	return err == nil
}

// mayRevoke tells whether somebody may end a grant: who gave it, who may grant where it was given, and operators. A token
// of the HTTP API is a key that the operator gave to a program, and a revocation allows nothing.
func (r *Registry) mayRevoke(ctx context.Context, one *grant, by ledger.Actor) error {
	const act = "revoke this grant"
	switch {
	case by.Kind == ledger.ActorOperator, by.Kind == ledger.ActorToken && by.ID != "":
		return nil
	case by.Kind != ledger.ActorUser || by.ID == "":
		return (question{}).refuse("Only people can %s.", act)
	case by.Person() == one.by.Person():
		return nil
	}
	lookups, cancel := context.WithTimeout(ctx, lookupLimit)
	defer cancel()
	q := question{requesters: one.Requesters, place: one.Place, channels: r.anywhere(lookups, one.Place), act: act}
	if _, err := r.fullMember(lookups, q, by.Person(), act); err != nil {
		return err
	}
	q.list = r.settings.Operators
	in, failed := r.listed(lookups, q, by.Person())
	if in && lookups.Err() == nil {
		return nil
	}
	q.list = r.settings.Grantors
	if q.list.requester && q.asked(by.Person()) {
		return nil
	}
	q = r.at(lookups, q)
	err := r.mayListed(lookups, q, by.Person(), act)
	if err != nil && failed != nil || lookups.Err() != nil {
		return r.unknown(q, by.Person(), act, errors.Join(failed, lookups.Err()))
	}
	return err
}

// words are somebody's, as they are kept.
func words(s string) string {
	s = strings.TrimSpace(strings.ToValidUTF8(s, "\uFFFD"))
	if runes := []rune(s); len(runes) > maxReason {
		s = string(runes[:maxReason]) + " […]"
	}
	return s
}
