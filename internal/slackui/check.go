package slackui

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/slack-go/slack"

	"approvalbot/internal/approvals"
	"approvalbot/internal/language"
	"approvalbot/internal/ledger"
	"approvalbot/internal/redact"
)

// CheckScopes compares what the bot token may do with what the manifest asks for and needs.
func (c *Client) CheckScopes() error {
	if c.Scopes == nil {
		return fmt.Errorf("Slack didn't say which scopes the bot token has; compare the app's page \"OAuth & Permissions\" with: approvalbot manifest")
	}
	missing := slices.DeleteFunc(scopes(), func(s string) bool { return optional(s) || slices.Contains(c.Scopes, s) })
	if len(missing) > 0 {
		return fmt.Errorf("the bot token lacks %s: add them on the app's page \"OAuth & Permissions\", then reinstall the app", strings.Join(missing, ", "))
	}
	return nil
}

// Granted is what the manifest asks for: the scopes of the bot token, and the events.
func Granted() (botScopes, botEvents []string) {
	return scopes(), slices.Sorted(maps.Keys(eventScopes))
}

// Commands are the slash commands that the manifest has.
func Commands() []string { return []string{commandName} }

// PublicChannels lists those that the bot is in.
func (c *Client) PublicChannels(ctx context.Context) (in []approvals.ChannelInfo, err error) {
	all, err := c.conversations(ctx, "public_channel")
	for _, channel := range all {
		if channel.IsMember {
			in = append(in, approvals.ChannelInfo{ID: channel.ID, Name: channel.Name, Kind: channelKind(&channel)})
		}
	}
	return in, err
}

// A Test is a card that asks nothing, with the settings that real ones will have.
type Test struct {
	Approvers []string
	Quorum    int
	Timeout   time.Duration
	Hopeless  string // why a real one would be denied at once, where it stands; empty: it would wait for people
	Language  language.Language
}

// SendTest posts a card as people will see it, without buttons: there is nothing to decide. That it is a test is the
// first thing that it says, also on a lock screen.
func (c *Client) SendTest(ctx context.Context, channel string, t Test) error {
	_, _, err := c.api.PostMessageContext(ctx, channel, slack.MsgOptionText(t.Language.T("A test of approvalbot: nothing is asked"), false),
		slack.MsgOptionBlocks(c.testCard(t, time.Now())...), slack.MsgOptionParse(false), slack.MsgOptionDisableLinkUnfurl(), slack.MsgOptionDisableMediaUnfurl())
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

func (c *Client) testCard(t Test, now time.Time) []slack.Block {
	v := &renderer{redactor: redact.New(), lang: t.Language, team: c.Team, botUser: c.BotUser}
	run, call := sample(t)
	r := v.card(run, call, now.Add(t.Timeout))
	would := v.t("A request looks like what follows, with the buttons Approve and Deny.")
	if t.Hopeless != "" {
		would = v.t("A request in this channel would be denied at once, as follows.")
	}
	first := v.phrase().form("*This is a test by approvalbot doctor: nothing is asked and nothing will run.*", nil).next().say(would)
	blocks := []slack.Block{richText(first.section())}
	for _, b := range r.blocks {
		if b.BlockType() != slack.MBTAction {
			blocks = append(blocks, b)
		}
	}
	return blocks
}

// sample is an ask that nobody asks.
func sample(t Test) (*ledger.Run, *ledger.Call) {
	arguments := `{"command":"echo test"}`
	run := &ledger.Run{}
	events := []ledger.Event{
		{Seq: 1, Run: "test", Body: &ledger.RunStarted{}},
		{Seq: 2, Run: "test", Body: &ledger.ModelCompleted{Round: 1, ToolCalls: []ledger.ToolCall{{ID: "c1", Name: "shell", Arguments: arguments}}}},
		{Seq: 3, Run: "test", Call: "c1", Body: &ledger.ApprovalRequested{
			Approval: "test", Tool: "shell", Arguments: arguments, Digest: strings.Repeat("0", 64), Reason: t.Language.T("This is where a request says why it asks."),
			Preview:   ledger.Preview{Summary: t.Language.T("Run echo test"), Target: "echo", Kind: "command", Body: "echo test"},
			Approvers: t.Approvers, Quorum: t.Quorum, Timeout: t.Timeout,
		}},
	}
	if t.Hopeless != "" {
		events = append(events,
			ledger.Event{Seq: 4, Run: "test", Call: "c1", Body: &ledger.ApprovalResolved{
				Approval: "test", Type: ledger.Denied, Source: ledger.SourceUndeliverable, Reason: t.Hopeless,
			}},
			ledger.Event{Seq: 5, Run: "test", Call: "c1", Body: &ledger.ToolFinished{
				Tool: "shell", State: ledger.OutputDenied, Source: ledger.SourceUndeliverable, Reason: t.Hopeless,
			}})
	}
	for _, e := range events {
		run.Apply(e)
	}
	return run, run.Call("c1")
}
