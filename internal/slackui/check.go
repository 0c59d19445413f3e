package slackui

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/slack-go/slack"

	"approvalbot/internal/ledger"
	"approvalbot/internal/redact"
)

// CheckScopes compares what the bot token may do with what the manifest asks for.
func (c *Client) CheckScopes() error {
	if c.Scopes == nil {
		return fmt.Errorf("Slack didn't say which scopes the bot token has; compare the app's page \"OAuth & Permissions\" with: approvalbot manifest")
	}
	missing := slices.DeleteFunc(scopes(), func(s string) bool { return slices.Contains(c.Scopes, s) })
	if len(missing) > 0 {
		return fmt.Errorf("the bot token lacks %s: add them on the app's page \"OAuth & Permissions\", then reinstall the app", strings.Join(missing, ", "))
	}
	return nil
}

// Granted is what the manifest asks for: the scopes of the bot token, and the events.
func Granted() (botScopes, botEvents []string) {
	return scopes(), slices.Sorted(maps.Keys(eventScopes))
}

// SendTest posts a card as people will see it, without buttons: there is nothing to decide.
func (c *Client) SendTest(ctx context.Context, channel string) error {
	v := &renderer{redactor: redact.New(), team: c.Team, botUser: c.BotUser}
	run, call := sample()
	r := v.card(run, call, time.Now().Add(call.Approval.Timeout))
	blocks := slices.DeleteFunc(r.blocks, func(b slack.Block) bool { return b.BlockType() == slack.MBTAction })
	blocks = append(blocks, slack.NewContextBlock("", slack.NewTextBlockObject(slack.PlainTextType,
		"This is a test of approvalbot doctor. A real request has buttons here.", false, false)))
	_, _, err := c.api.PostMessageContext(ctx, channel, slack.MsgOptionText("A test card of approvalbot", false),
		slack.MsgOptionBlocks(blocks...), slack.MsgOptionParse(false), slack.MsgOptionDisableLinkUnfurl(), slack.MsgOptionDisableMediaUnfurl())
	switch code := fmt.Sprint(err); {
	case err == nil:
		return nil
	case code == "not_in_channel":
		return fmt.Errorf("the bot is not in %s: invite it there with /invite @%s", channel, c.BotName)
	case code == "channel_not_found":
		return fmt.Errorf("there is no channel %s, or it is private and the bot is not in it; a channel is named by its id (C…)", channel)
	}
	return fmt.Errorf("Slack refused the card: %w", err)
}

// sample is an ask that nobody asks.
func sample() (*ledger.Run, *ledger.Call) {
	arguments := `{"command":"echo test"}`
	run := &ledger.Run{}
	events := []ledger.Event{
		{Seq: 1, Run: "test", Body: &ledger.RunStarted{}},
		{Seq: 2, Run: "test", Body: &ledger.ModelCompleted{Round: 1, ToolCalls: []ledger.ToolCall{{ID: "c1", Name: "shell", Arguments: arguments}}}},
		{Seq: 3, Run: "test", Call: "c1", Body: &ledger.ApprovalRequested{
			Approval: "test", Tool: "shell", Arguments: arguments, Digest: strings.Repeat("0", 64), Reason: "This is how a request looks.",
			Preview:   ledger.Preview{Summary: "Run echo test", Target: "echo", Kind: "command", Body: "echo test"},
			Approvers: []string{"channel"}, Quorum: 1, Timeout: 2 * time.Minute,
		}},
	}
	for _, e := range events {
		run.Apply(e)
	}
	return run, run.Call("c1")
}
