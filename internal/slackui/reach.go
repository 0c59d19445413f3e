package slackui

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/slack-go/slack"

	"approvalbot/internal/approvals"
)

// Where we can write to: what decides where an ask stands besides the conversation in which it came up.

// CanPost tells whether we can write into a channel: it isn't archived, and the bot is in it.
func (d *directory) CanPost(ctx context.Context, channel string) (bool, error) {
	c, err := d.Channel(ctx, channel)
	switch {
	case err != nil:
		return false, err
	case c.Archived:
		return false, nil
	}
	return d.Member(ctx, channel, d.client.BotUser)
}

// unwritable are the codes of conversations.open that won't change by themselves.
var unwritable = []string{
	"user_disabled", "user_not_visible", "cannot_dm_bot", "messages_tab_disabled", "missing_scope", "not_allowed_token_type",
	"method_not_supported_for_channel_type", "channel_not_found",
}

// DirectMessage is our conversation with a person. Opening it shows them nothing.
func (d *directory) DirectMessage(ctx context.Context, user string) (string, error) {
	channel, err := look(ctx, d, "im "+user, func(ctx context.Context) (string, error) {
		c, _, _, err := d.client.api.OpenConversationContext(ctx, &slack.OpenConversationParameters{Users: []string{user}})
		switch code := errorCode(err); {
		case slices.Contains(unwritable, code):
			return "", fmt.Errorf("%w (%s)", approvals.ErrNoWay, code)
		case err != nil:
			return "", err
		case c == nil || c.ID == "":
			return "", errors.New("Slack named no conversation")
		}
		return c.ID, nil
	})
	if err != nil {
		return "", fmt.Errorf("write to %s: %w", user, err)
	}
	return channel, nil
}
