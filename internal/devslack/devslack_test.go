package devslack

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/slack-go/slack"
	"github.com/slack-go/slack/slackevents"
	"github.com/slack-go/slack/socketmode"
)

func card(text string) []slack.Block {
	return []slack.Block{
		slack.NewSectionBlock(slack.NewTextBlockObject("mrkdwn", text, false, false), nil, nil),
		slack.NewActionBlock("ask-1",
			slack.NewButtonBlockElement("approve", "ap-1", slack.NewTextBlockObject("plain_text", "Approve", false, false)).WithStyle(slack.StylePrimary),
			slack.NewButtonBlockElement("deny", "ap-1", slack.NewTextBlockObject("plain_text", "Deny", false, false))),
	}
}

// A mention arrives as app_mention and as message, and once acknowledged it
// does not come again.
func TestMentionReachesTheBotTwiceWithDifferentEventIDs(t *testing.T) {
	bubble(t, Options{}, func(t *testing.T, b *bench) {
		bot := b.connect(ackAll)
		ts, err := b.srv.SendMessage(MessageRequest{User: b.user("alice"), Channel: b.channel("general"),
			Text: "<@" + b.w.App.BotUserID + "> run `a < b` & see <!channel>"})
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		events := bot.of(socketmode.EventTypeEventsAPI)
		if len(events) != 2 {
			t.Fatalf("got %d events, want app_mention and message", len(events))
		}
		first := events[0].Data.(slackevents.EventsAPIEvent)
		second := events[1].Data.(slackevents.EventsAPIEvent)
		mention := first.InnerEvent.Data.(*slackevents.AppMentionEvent)
		message := second.InnerEvent.Data.(*slackevents.MessageEvent)
		want := "<@" + b.w.App.BotUserID + "> run `a &lt; b` &amp; see &lt;!channel&gt;"
		if mention.Text != want || message.Text != want {
			t.Errorf("texts %q and %q, want %q", mention.Text, message.Text, want)
		}
		if mention.TimeStamp != ts || message.TimeStamp != ts || message.ChannelType != "channel" {
			t.Errorf("mention %s, message %s (%s), want ts %s", mention.TimeStamp, message.TimeStamp, message.ChannelType, ts)
		}
		if a, b := first.Data.(*slackevents.EventsAPICallbackEvent).EventID, second.Data.(*slackevents.EventsAPICallbackEvent).EventID; a == b {
			t.Errorf("both events have the id %s", a)
		}
	})
}

// The life of a card: posted, clicked, acknowledged, updated.
func TestCardClickAndUpdate(t *testing.T) {
	bubble(t, Options{}, func(t *testing.T, b *bench) {
		var clicks []slack.InteractionCallback
		b.connect(func(evt socketmode.Event) (bool, any) {
			if evt.Type == socketmode.EventTypeInteractive {
				clicks = append(clicks, evt.Data.(slack.InteractionCallback))
			}
			return true, nil
		})
		general := b.channel("general")
		_, ts, err := b.api.PostMessage(general, slack.MsgOptionText("Run it?", false), slack.MsgOptionBlocks(card("Run it?")...))
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(14 * time.Minute)
		receipt, err := b.srv.Click(t.Context(), ActionRequest{User: b.user("bob"), Channel: general, TS: ts, ActionID: "approve"})
		if err != nil {
			t.Fatal(err)
		}
		if !receipt.OK || !receipt.Delivered || !receipt.Acked {
			t.Errorf("receipt %+v", receipt)
		}
		if len(clicks) != 1 {
			t.Fatalf("%d clicks arrived", len(clicks))
		}
		c := clicks[0]
		if c.User.ID != b.user("bob") || c.Container.MessageTs != ts || c.Channel.ID != general || c.APIAppID != b.w.App.ID ||
			c.Team.ID != b.w.Team.ID || c.Message.User != b.w.App.BotUserID {
			t.Errorf("payload %+v", c)
		}
		if got := c.ActionCallback.BlockActions; len(got) != 1 || got[0].ActionID != "approve" || got[0].Value != "ap-1" || got[0].BlockID != "ask-1" {
			t.Errorf("actions %+v", got)
		}
		if _, _, _, err := b.api.UpdateMessage(general, ts, slack.MsgOptionText("Approved.", false), slack.MsgOptionBlocks()); err != nil {
			t.Fatal(err)
		}
		messages, err := b.srv.Messages(general, "")
		if err != nil {
			t.Fatal(err)
		}
		last := messages[len(messages)-1]
		if last.Text != "Approved." || last.Blocks != nil || last.Edited == nil {
			t.Errorf("after the update: %+v", last)
		}
		if _, err := b.srv.Click(t.Context(), ActionRequest{User: b.user("bob"), Channel: general, TS: ts, ActionID: "approve"}); err == nil {
			t.Error("a button that is gone was clicked")
		}
	})
}
