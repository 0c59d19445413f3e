package slackui

import (
	"context"
	"slices"

	"github.com/slack-go/slack"
	"github.com/slack-go/slack/slackevents"
)

// The pane of an agent is the direct message with it, and Slack tells of it by events of its own: somebody opened it, or
// pressed Stop in it. What people write there comes as any other direct message.

// maxPrompts is how many prompts Slack shows.
const maxPrompts = 4

// pane takes in the events of the pane; false: it is none. What concerns the Home tab is none of ours.
func (u *UI) pane(ctx context.Context, d eventDelivery) bool {
	app := u.client.appID()
	if app == "" || d.event.APIAppID != app {
		return false
	}
	switch e := d.event.InnerEvent.Data.(type) {
	case *slackevents.AssistantThreadStartedEvent:
		d.receipt.ack()
		u.suggest(ctx, e.AssistantThread.ChannelID, e.AssistantThread.ThreadTimeStamp)
	case *slackevents.AppHomeOpenedEvent:
		if e.Tab != "messages" {
			return false
		}
		d.receipt.ack()
		u.suggest(ctx, e.Channel, "")
	case *slackevents.AgentSessionStoppedEvent:
		n := remark{team: d.event.TeamID, user: e.User, channel: e.Channel, ts: e.EventTimestamp, thread: e.ThreadTimestamp, direct: true, receipt: d.receipt}
		if n.user == "" || n.channel == "" {
			d.receipt.ack()
			return true
		}
		ids := []string{"user", n.user, "channel", n.channel, "thread", n.thread}
		u.inLane(ctx, "session/"+n.session(u.client.Team), d.receipt, ids, func(ctx context.Context) { u.agentStopped(ctx, n) })
	case *slackevents.AssistantThreadContextChangedEvent, *slackevents.AgentSessionTitleChangedEvent:
		d.receipt.ack()
	default:
		return false
	}
	return true
}

// suggest shows what one could ask, in the pane that somebody has opened.
func (u *UI) suggest(ctx context.Context, channel, thread string) {
	prompts := u.renderer.prompts(u.tools())
	if channel == "" || len(prompts) == 0 {
		return
	}
	u.signs.beside(ctx, "pane/"+channel+"/"+thread, func(ctx context.Context) {
		p := slack.AssistantThreadsSetSuggestedPromptsParameters{ChannelID: channel, ThreadTS: thread, Prompts: prompts}
		_ = u.signs.paced(ctx, &u.signs.pane, paneWait, "assistant.threads.setSuggestedPrompts", func() error {
			return u.client.api.SetAssistantThreadsSuggestedPromptsContext(ctx, p)
		})
	})
}

// prompts are sentences to try, of what the tools that there are can do.
func (v *renderer) prompts(tools []string) (all []slack.AssistantThreadsPrompt) {
	add := func(tool, title, message string) {
		if len(all) < maxPrompts && (tool == "" || slices.Contains(tools, tool)) {
			all = append(all, slack.AssistantThreadsPrompt{Title: title, Message: message})
		}
	}
	add("list_files", v.t("See what is in the workspace"), v.t("Which files are in the workspace, and what is each for?"))
	add("shell", v.t("Run a command"), v.t("Run `uname -a` and tell me what it says."))
	add("write_file", v.t("Write a file"), v.t("Write a file notes.md with a short plan for today."))
	add("http_request", v.t("Look at a web page"), v.t("Fetch https://example.com and tell me what it says."))
	add("", v.t("Ask what I can do"), v.t("What can you do here, and what do you ask about first?"))
	return all
}
