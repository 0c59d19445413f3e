package approvals

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"approvalbot/internal/ledger"
)

// A Roster is a directory that can also say who is in a channel. With one, an ask in a channel where nobody could
// approve is known to be hopeless; without one, somebody could be there.
type Roster interface {
	Members(ctx context.Context, channel string) ([]string, error)
}

// surfaceHTTP is the surface where programs with a token decide.
const surfaceHTTP = "http"

// hopeless tells why nobody could approve, so that people aren't kept waiting for an answer that can't come. It is
// empty if somebody could, or if that can't be found out: only a decision needs certainty. The look-ups also warm the
// directory for the click that follows.
func (r *Registry) hopeless(ctx context.Context, q question, surfaces []string) string {
	if len(surfaces) == 0 {
		return "there is nowhere to ask"
	}
	if q.list.Empty() {
		return shutNobody
	}
	c := census{r: r, q: q, able: map[string]bool{}}
	c.maybe = q.quorum <= 1 && slices.Contains(surfaces, surfaceHTTP)
	c.count(ctx)
	if c.enough() {
		return ""
	}
	return c.reason()
}

// A census counts who could approve, at most: whoever can't be looked up is counted as one who could.
type census struct {
	r     *Registry
	q     question
	able  map[string]bool // user ids of those who could
	maybe bool            // nobody knows how many others could
	why   []string        // why some of those who are listed could not

	within map[string]bool // only these people are counted; nil: all
}

func (c *census) enough() bool { return c.maybe || len(c.able) >= c.q.quorum }

func (c *census) count(ctx context.Context) {
	if c.q.list.channel {
		c.channels(ctx)
	}
	for _, u := range c.q.list.users {
		c.listed(ctx, u)
	}
	for _, g := range c.q.list.groups {
		c.group(ctx, g)
	}
	if c.q.list.requester {
		for _, p := range c.q.requesters {
			c.requester(ctx, p)
		}
	}
}

func (c *census) channels(ctx context.Context) {
	all := c.q.inChannels()
	if len(all) == 0 {
		c.because("it stands in no channel")
	}
	for _, id := range all {
		c.channel(ctx, id)
	}
}

func (c *census) channel(ctx context.Context, id string) {
	info, err := c.r.directory.Channel(ctx, id)
	if err != nil {
		c.maybe = true
		return
	}
	counts, err := c.r.membersCount(id, info)
	switch {
	case err != nil:
		c.maybe = true
	case info.Archived:
		c.because("the channel is archived")
	case !counts:
		c.because(shutPublic)
	default:
		c.members(ctx, id, info.Kind)
	}
}

// members counts who is in a channel, as far as the directory can tell.
func (c *census) members(ctx context.Context, id string, kind ChannelKind) {
	if roster, ok := c.r.directory.(Roster); ok {
		users, err := roster.Members(ctx, id)
		c.maybe = c.maybe || err != nil
		for _, u := range users {
			c.user(ctx, u)
		}
		return
	}
	// In a direct message there is one person besides the bot.
	alone := false
	for _, p := range c.q.requesters {
		in, err := c.r.directory.Member(ctx, id, p.ID)
		alone = alone || in && err == nil && kind == DirectMessage
	}
	if alone {
		c.because("nobody else is in this conversation")
		return
	}
	c.maybe = true
}

func (c *census) group(ctx context.Context, id string) {
	users, err := c.r.directory.Group(ctx, id)
	switch {
	case errors.Is(err, ErrNoSuch):
		c.because(c.named(noSuchGroup(id)))
	case err != nil:
		c.maybe = true
	case len(users) == 0:
		c.because(c.named(emptyGroup(id)))
	}
	for _, u := range users {
		c.user(ctx, u)
	}
}

func (c *census) requester(ctx context.Context, p ledger.Person) {
	if strings.HasPrefix(p.ID, string(ledger.ActorToken)+":") {
		c.maybe = c.maybe || c.q.quorum <= 1
		return
	}
	if samePerson(p, ledger.Person{Team: c.q.home(c.r.settings), ID: p.ID}) {
		c.user(ctx, p.ID)
	}
}

// listed counts somebody who is listed by their id, and says why they don't count.
func (c *census) listed(ctx context.Context, id string) {
	if kind := c.user(ctx, id); kind != "" {
		c.because(c.named(noApprover(id, kind)))
	}
}

// absent is the kind of somebody who isn't there.
const absent PersonKind = "absent"

// user counts one user, unless there are enough already. If they can't approve because of what they are, it says what.
func (c *census) user(ctx context.Context, id string) PersonKind {
	if c.enough() || c.able[id] || c.within != nil && !c.within[id] {
		return ""
	}
	p := ledger.Person{Team: c.q.home(c.r.settings), ID: id}
	if c.q.asked(p) && !c.q.list.requester {
		c.because(shutRequester)
		return ""
	}
	who, err := c.r.directory.Person(ctx, p)
	switch {
	case errors.Is(err, ErrNoSuch):
		return absent
	case err != nil || who.Kind == UnknownPerson || who.Kind == FullMember:
		c.able[id] = true
		return ""
	}
	return who.Kind
}

// named adds what lists somebody to what is wrong with them.
func (c *census) named(what string) string {
	if c.q.origin == "" {
		return what
	}
	return what + " (" + c.q.origin + ")"
}

func noSuchGroup(id string) string { return "there is no user group with the id " + id }
func emptyGroup(id string) string  { return "the user group " + id + " has no members" }

// noApprover says why somebody of a kind can't approve, who is named by their id.
func noApprover(id string, kind PersonKind) string {
	if kind == absent {
		return "there is nobody with the id " + id
	}
	return id + " is " + kind.words() + ", and only full members count"
}

// words say what somebody is.
func (k PersonKind) words() string {
	switch k {
	case FullMember:
		return "a full member"
	case Guest:
		return "a guest"
	case Bot:
		return "a bot"
	case External:
		return "of another organization"
	case Deactivated:
		return "deactivated"
	}
	return "of a kind that isn't known"
}

func (c *census) because(reason string) {
	if !slices.Contains(c.why, reason) {
		c.why = append(c.why, reason)
	}
}

// reason is what stands behind "nobody could be asked".
func (c *census) reason() string {
	why := strings.Join(c.why, "; ")
	if n := len(c.able); n > 0 {
		reason := fmt.Sprintf("%d people have to approve, and only %d could", c.q.quorum, n)
		if why != "" {
			reason += ": " + why
		}
		return reason
	}
	if why == "" {
		return "none of those who are listed could approve it"
	}
	return why
}
