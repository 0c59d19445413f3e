package slackui

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/slack-go/slack"
	"golang.org/x/sync/singleflight"

	"approvalbot/internal/approvals"
	"approvalbot/internal/ledger"
)

const (
	// keepFor is how long an answer is good: long enough that the approver's click needs no look-up, short enough that
	// somebody who left doesn't decide for long.
	keepFor = time.Minute

	// lookUpLimit bounds one look-up. It goes on when the first who asked has given up, for those who ask again.
	lookUpLimit = 5 * time.Second

	// keepMost bounds the memory of the directory; beyond it, it starts over.
	keepMost = 10_000

	// membersMost is how many members of a channel are read before we say that we don't know.
	membersMost = 20_000
	membersPage = 1000
)

// A directory asks Slack who somebody is and keeps the answer for a minute. Errors aren't kept: not knowing is a no, and
// the next click may ask again. Questions that are asked at the same time are put once.
type directory struct {
	client *Client
	flight singleflight.Group

	mu   sync.Mutex
	kept map[string]answered
}

type answered struct {
	value any
	until time.Time
}

func newDirectory(c *Client) *directory { return &directory{client: c, kept: map[string]answered{}} }

// Person tells what somebody is in our workspace.
func (d *directory) Person(ctx context.Context, p ledger.Person) (approvals.Profile, error) {
	u, err := look(ctx, d, "user "+p.ID, func(ctx context.Context) (*slack.User, error) {
		return d.client.api.GetUserInfoContext(ctx, p.ID)
	})
	if err != nil {
		return approvals.Profile{}, fmt.Errorf("who %s is: %w", p.ID, err)
	}
	if u.ID != p.ID {
		return approvals.Profile{}, fmt.Errorf("who %s is: Slack answered about %q", p.ID, u.ID)
	}
	return approvals.Profile{ID: p, Name: displayName(u), Kind: d.kind(p, u)}, nil
}

// kind tells the people of a workspace apart. The order matters: whatever makes somebody less than a full member counts
// first.
func (d *directory) kind(p ledger.Person, u *slack.User) approvals.PersonKind {
	switch {
	case u.Deleted:
		return approvals.Deactivated
	case u.IsBot, u.IsAppUser, u.IsWorkflowBot, u.IsConnectorBot, u.ID == "USLACKBOT":
		return approvals.Bot
	case u.IsStranger, !d.ours(p, u):
		return approvals.External
	case u.IsRestricted, u.IsUltraRestricted, u.IsInvitedUser:
		return approvals.Guest
	}
	return approvals.FullMember
}

// ours tells whether a user belongs to our workspace: directly, or, in an organization, as one of its teams.
func (d *directory) ours(p ledger.Person, u *slack.User) bool {
	team := d.client.Team
	inOrganization := p.Team == u.Enterprise.EnterpriseID || slices.Contains(u.Enterprise.Teams, p.Team)
	if p.Team != "" && p.Team != team && !inOrganization {
		return false
	}
	return u.TeamID == team || slices.Contains(u.Enterprise.Teams, team)
}

func displayName(u *slack.User) string {
	for _, name := range []string{u.Profile.DisplayName, u.RealName, u.Name} {
		if name != "" {
			return name
		}
	}
	return u.ID
}

// Channel tells what a conversation is.
func (d *directory) Channel(ctx context.Context, channel string) (approvals.ChannelInfo, error) {
	c, err := look(ctx, d, "channel "+channel, func(ctx context.Context) (*slack.Channel, error) {
		return d.client.api.GetConversationInfoContext(ctx, &slack.GetConversationInfoInput{ChannelID: channel})
	})
	if err != nil {
		return approvals.ChannelInfo{}, fmt.Errorf("what %s is: %w", channel, err)
	}
	if c.ID != channel {
		return approvals.ChannelInfo{}, fmt.Errorf("what %s is: Slack answered about %q", channel, c.ID)
	}
	return approvals.ChannelInfo{
		ID: c.ID, Name: c.Name, Kind: channelKind(c), Archived: c.IsArchived,
		Shared: c.IsExtShared || c.IsPendingExtShared,
	}, nil
}

func channelKind(c *slack.Channel) approvals.ChannelKind {
	switch {
	case c.IsIM:
		return approvals.DirectMessage
	case c.IsMpIM:
		return approvals.GroupMessage
	case c.IsPrivate, c.IsGroup:
		return approvals.PrivateChannel
	case c.IsChannel:
		return approvals.PublicChannel
	}
	return approvals.UnknownChannel
}

// Member tells whether somebody is in a conversation.
func (d *directory) Member(ctx context.Context, channel, user string) (bool, error) {
	in, err := look(ctx, d, "members "+channel, func(ctx context.Context) (map[string]bool, error) {
		return d.members(ctx, channel)
	})
	if err != nil {
		return false, fmt.Errorf("who is in %s: %w", channel, err)
	}
	return in[user], nil
}

// Members lists who is in a conversation.
func (d *directory) Members(ctx context.Context, channel string) ([]string, error) {
	in, err := look(ctx, d, "members "+channel, func(ctx context.Context) (map[string]bool, error) {
		return d.members(ctx, channel)
	})
	if err != nil {
		return nil, fmt.Errorf("who is in %s: %w", channel, err)
	}
	return slices.Sorted(maps.Keys(in)), nil
}

// members reads all pages of a conversation's members. Half an answer would be a wrong one.
func (d *directory) members(ctx context.Context, channel string) (map[string]bool, error) {
	in := map[string]bool{}
	cursor := ""
	for {
		page, next, err := d.client.api.GetUsersInConversationContext(ctx,
			&slack.GetUsersInConversationParameters{ChannelID: channel, Cursor: cursor, Limit: membersPage})
		if err != nil {
			return nil, err
		}
		for _, user := range page {
			in[user] = true
		}
		if next == "" {
			return in, nil
		}
		if next == cursor || len(in) > membersMost {
			return nil, fmt.Errorf("more than %d members, too many to tell", membersMost)
		}
		cursor = next
	}
}

// Group lists the members of a user group.
func (d *directory) Group(ctx context.Context, group string) ([]string, error) {
	users, err := look(ctx, d, "group "+group, func(ctx context.Context) ([]string, error) {
		return d.client.api.GetUserGroupMembersContext(ctx, group)
	})
	if err != nil {
		return nil, fmt.Errorf("who is in the group %s: %w", group, err)
	}
	return slices.Clone(users), nil
}

// GroupName is the handle of a user group, which people write after an @.
func (d *directory) GroupName(ctx context.Context, group string) (string, error) {
	groups, err := look(ctx, d, "groups", func(ctx context.Context) (map[string]string, error) {
		all, err := d.client.api.GetUserGroupsContext(ctx)
		handles := make(map[string]string, len(all))
		for _, g := range all {
			handles[g.ID] = cmp.Or(g.Handle, g.Name)
		}
		return handles, err
	})
	if err != nil {
		return "", fmt.Errorf("what the group %s is called: %w", group, err)
	}
	return groups[group], nil
}

// look answers a question from what is kept or from Slack. The caller's ctx ends its waiting, not the question: a slow
// answer is then there for the next who asks.
func look[T any](ctx context.Context, d *directory, key string, ask func(context.Context) (T, error)) (T, error) {
	return lookFor(ctx, d, key, lookUpLimit, ask)
}

// lookFor is look for a question whose answer may take longer.
func lookFor[T any](ctx context.Context, d *directory, key string, limit time.Duration, ask func(context.Context) (T, error)) (T, error) {
	if v, ok := d.recall(key); ok {
		return v.(T), nil
	}
	found := d.flight.DoChan(key, func() (any, error) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), limit)
		defer cancel()
		v, err := ask(ctx)
		if err == nil {
			d.keep(key, v)
		}
		return v, lasting(err)
	})
	var none T
	select {
	case <-ctx.Done():
		return none, ctx.Err()
	case r := <-found:
		if r.Err != nil {
			return none, r.Err
		}
		return r.Val.(T), nil
	}
}

// lasting tells the errors that answer a question, by saying that there is nothing of that name, from those that don't.
func lasting(err error) error {
	switch errorCode(err) {
	case "user_not_found", "no_such_subteam", "subteam_not_found", "channel_not_found":
		return fmt.Errorf("%w (%w)", approvals.ErrNoSuch, err)
	}
	return err
}

func (d *directory) recall(key string) (any, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	a, ok := d.kept[key]
	if !ok || !time.Now().Before(a.until) {
		delete(d.kept, key)
		return nil, false
	}
	return a.value, true
}

func (d *directory) keep(key string, v any) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.kept) >= keepMost {
		clear(d.kept)
	}
	d.kept[key] = answered{value: v, until: time.Now().Add(keepFor)}
}
