package approvals

import (
	"context"
	"errors"
	"fmt"

	"approvalbot/internal/ledger"
)

// Check looks up everyone whom a list names, and tells all that is wrong: an id with a typing error would otherwise show
// only when it is needed, and a quorum that can't be met only when somebody waits for it. team is our workspace; quorum
// is how many of the list it takes, 0 where the list is about something else.
func Check(ctx context.Context, d Directory, team string, list Approvers, quorum int) []error {
	c := roll{d: d, team: team, members: map[string]bool{}}
	// Words that stand for whoever is there, or has asked, may stand for any number of people.
	c.unbounded = list.requester || list.channel || list.members
	for _, id := range list.users {
		c.user(ctx, id)
	}
	for _, id := range list.groups {
		c.group(ctx, id, quorum)
	}
	if c.unbounded || len(c.members) >= quorum {
		return c.wrong
	}
	if n := len(c.members); n > 0 {
		c.say("%d people have to approve, and only %d of those who are listed could", quorum, n)
	} else if len(c.wrong) == 0 {
		c.wrong = append(c.wrong, ErrNobody)
	}
	return c.wrong
}

// ErrNobody: of those who are listed, nobody counts.
var ErrNobody = errors.New("none of those who are listed could approve: only full members of the workspace count")

// A roll is what is known of a list after its people were looked up.
type roll struct {
	d         Directory
	team      string
	members   map[string]bool // who is a full member, or may be one
	unbounded bool            // there may be any number of others
	wrong     []error
}

func (c *roll) say(format string, args ...any) {
	c.wrong = append(c.wrong, fmt.Errorf(format, args...))
}

func (c *roll) person(ctx context.Context, id string) (Profile, error) {
	p, err := c.d.Person(ctx, ledger.Person{Team: c.team, ID: id})
	if err == nil && p.Kind == FullMember || err != nil && !errors.Is(err, ErrNoSuch) {
		c.members[id] = true
	}
	return p, err
}

func (c *roll) user(ctx context.Context, id string) {
	p, err := c.person(ctx, id)
	switch {
	case errors.Is(err, ErrNoSuch):
		c.say(`there is nobody with the id %s: Slack shows a person's under "Copy member ID" in their profile`, id)
	case err != nil:
		c.say("%s can't be looked up: %w", id, err)
	case p.Kind != FullMember:
		c.say("%s (%s) is %s: only full members of the workspace count", id, p.Name, p.Kind.words())
	}
}

// group looks up a group, and of its members as many as the quorum needs.
func (c *roll) group(ctx context.Context, id string, quorum int) {
	members, err := c.d.Group(ctx, id)
	switch {
	case errors.Is(err, ErrNoSuch):
		c.say(`there is no user group with the id %s: Slack shows a group's under "Copy group ID"`, id)
	case err != nil:
		c.unbounded = true
		c.say("the user group %s can't be looked up: %w", id, err)
	case len(members) == 0:
		c.say("%s", emptyGroup(id))
	}
	for _, user := range members {
		if c.unbounded || len(c.members) >= quorum {
			return
		}
		_, _ = c.person(ctx, user) // who of them can't be found is Slack's affair, not the list's
	}
}

// A Forecast is what would become of an ask that somebody makes who isn't an approver themselves.
type Forecast struct {
	Approvers []string // who would count there, as in a list
	Hopeless  string   // why nobody could approve it; empty: somebody could, or it isn't known
}

// Foresee tells what would become of an ask in a conversation under the settings.
func (r *Registry) Foresee(ctx context.Context, place ledger.Place) Forecast {
	q := r.at(ctx, question{list: r.settings.Approvers, origin: settingApprovers, quorum: r.settings.Quorum, place: place, channels: r.anywhere(ctx, place)})
	c := census{r: r, q: q, able: map[string]bool{}}
	c.maybe = q.list.requester // whoever will ask
	c.count(ctx)
	f := Forecast{Approvers: q.counting()}
	if !c.enough() {
		f.Hopeless = c.reason()
	}
	return f
}
