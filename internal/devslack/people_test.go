package devslack

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/slack-go/slack"
	"github.com/slack-go/slack/slackevents"
	"github.com/slack-go/slack/socketmode"
)

// rawEvents are the events_api payloads that a bare socket receives and
// acknowledges, as the generic JSON that they are.
func (b *bench) rawEvents(do func()) []map[string]any {
	b.t.Helper()
	ws := b.rawSocket("")
	readFrame(b.t, ws)
	done := make(chan []map[string]any)
	go func() {
		var out []map[string]any
		for {
			var e struct {
				EnvelopeID string         `json:"envelope_id"`
				Payload    map[string]any `json:"payload"`
			}
			if ws.ReadJSON(&e) != nil {
				done <- out
				return
			}
			out = append(out, e.Payload)
			if ws.WriteJSON(map[string]string{"envelope_id": e.EnvelopeID}) != nil {
				done <- out
				return
			}
		}
	}()
	do()
	synctest.Wait()
	ws.Close()
	return <-done
}

func keys(m map[string]any) map[string]bool {
	out := map[string]bool{}
	for k := range m {
		out[k] = true
	}
	return out
}

// The outer and inner shapes of events have exactly Slack's fields.
func TestEventShapes(t *testing.T) {
	bubble(t, Options{}, func(t *testing.T, b *bench) {
		events := b.rawEvents(func() {
			if _, err := b.srv.SendMessage(MessageRequest{User: b.user("alice"), Channel: b.channel("general"), Text: "<@" + b.w.App.BotUserID + "> hi"}); err != nil {
				t.Error(err)
			}
			b.postCard("ops-private")
		})
		if len(events) != 3 {
			t.Fatalf("%d events", len(events))
		}
		outer := map[string]bool{"token": true, "team_id": true, "context_team_id": true, "context_enterprise_id": true, "api_app_id": true,
			"event": true, "type": true, "event_id": true, "event_time": true, "authorizations": true, "is_ext_shared_channel": true, "event_context": true}
		user := map[string]bool{"type": true, "user": true, "text": true, "ts": true, "client_msg_id": true, "team": true, "blocks": true, "channel": true, "event_ts": true}
		message := map[string]bool{"channel_type": true}
		for k := range user {
			message[k] = true
		}
		bot := map[string]bool{"type": true, "user": true, "bot_id": true, "app_id": true, "bot_profile": true, "text": true, "ts": true,
			"team": true, "blocks": true, "channel": true, "channel_type": true, "event_ts": true}
		for i, want := range []map[string]bool{user, message, bot} {
			if diff := cmp.Diff(outer, keys(events[i])); diff != "" {
				t.Errorf("event %d, outer fields (-want +got):\n%s", i, diff)
			}
			inner, _ := events[i]["event"].(map[string]any)
			if diff := cmp.Diff(want, keys(inner)); diff != "" {
				t.Errorf("event %d, %v, fields (-want +got):\n%s", i, inner["type"], diff)
			}
		}
		inner, _ := events[0]["event"].(map[string]any)
		wantBlocks := []any{map[string]any{"type": "rich_text_section", "elements": []any{
			map[string]any{"type": "user", "user_id": b.w.App.BotUserID}, map[string]any{"type": "text", "text": " hi"}}}}
		block := inner["blocks"].([]any)[0].(map[string]any)
		if diff := cmp.Diff(wantBlocks, block["elements"]); diff != "" || block["type"] != "rich_text" {
			t.Errorf("blocks (-want +got):\n%s", diff)
		}
		if events[0]["is_ext_shared_channel"] != true || events[2]["is_ext_shared_channel"] != false {
			t.Error("only general has somebody from another organization in it")
		}
	})
}

// An edit and a deletion are events without a user of their own; so are the
// bot's updates.
func TestChangesAreHiddenEvents(t *testing.T) {
	bubble(t, Options{}, func(t *testing.T, b *bench) {
		general := b.channel("general")
		var ts, card string
		events := b.rawEvents(func() {
			var err error
			if ts, err = b.srv.SendMessage(MessageRequest{User: b.user("alice"), Channel: general, Text: "before"}); err != nil {
				t.Fatal(err)
			}
			if err := b.srv.EditMessage(MessageRef{User: b.user("alice"), Channel: general, TS: ts, Text: "after <b>"}); err != nil {
				t.Fatal(err)
			}
			if err := b.srv.DeleteMessage(MessageRef{User: b.user("alice"), Channel: general, TS: ts}); err != nil {
				t.Fatal(err)
			}
			card = b.postCard("general")
			b.call("chat.update", map[string]string{"channel": general, "ts": card, "text": "done"})
		})
		var got []string
		for _, e := range events {
			inner := e["event"].(map[string]any)
			changed, _ := inner["message"].(map[string]any)
			previous, _ := inner["previous_message"].(map[string]any)
			text := func(m map[string]any) string { s, _ := m["text"].(string); return s }
			subtype, _ := inner["subtype"].(string)
			got = append(got, strings.Join([]string{subtype, text(changed), text(previous)}, "|"))
			if subtype != "" && (inner["hidden"] != true || inner["user"] != nil || inner["ts"] == ts) {
				t.Errorf("%s: %s", subtype, encode(inner))
			}
		}
		want := []string{"||", "message_changed|after &lt;b&gt;|before", "message_deleted||after &lt;b&gt;", "||", "message_changed|done|Run it?"}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("events (-want +got):\n%s", diff)
		}
	})
}

// Events go only to who is subscribed, and only from channels the bot is in.
func TestSubscriptions(t *testing.T) {
	bubble(t, Options{}, func(t *testing.T, b *bench) {
		app := DefaultApp()
		app.BotEvents = []string{"app_mention", "message.im"}
		b.srv.InstallApp(app)
		bot := b.connect(ackAll)
		mention := "<@" + b.w.App.BotUserID + "> hi"
		for channel, text := range map[string]string{"general": "no mention", "random": mention, "ops-private": mention, "bob": mention} {
			user := b.user("bob")
			if _, err := b.srv.SendMessage(MessageRequest{User: user, Channel: b.channel(channel), Text: text}); err != nil {
				t.Fatal(err)
			}
		}
		synctest.Wait()
		got := map[string]int{}
		for _, e := range bot.of(socketmode.EventTypeEventsAPI) {
			switch inner := e.Data.(slackevents.EventsAPIEvent).InnerEvent.Data.(type) {
			case *slackevents.AppMentionEvent:
				got["mention in "+inner.Channel]++
			case *slackevents.MessageEvent:
				got["message in "+inner.Channel]++
			}
		}
		want := map[string]int{"mention in " + b.channel("ops-private"): 1, "message in " + b.channel("bob"): 1}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("events (-want +got):\n%s", diff)
		}
	})
}

func TestOtherBotAndExternalPerson(t *testing.T) {
	bubble(t, Options{}, func(t *testing.T, b *bench) {
		bot := b.connect(ackAll)
		for _, name := range []string{"deploybot", "erin"} {
			if _, err := b.srv.SendMessage(MessageRequest{User: b.user(name), Channel: b.channel("general"), Text: "<@" + b.w.App.BotUserID + "> go"}); err != nil {
				t.Fatal(err)
			}
		}
		synctest.Wait()
		var mentions []*slackevents.AppMentionEvent
		for _, e := range bot.of(socketmode.EventTypeEventsAPI) {
			if m, ok := e.Data.(slackevents.EventsAPIEvent).InnerEvent.Data.(*slackevents.AppMentionEvent); ok {
				mentions = append(mentions, m)
			}
		}
		if len(mentions) != 2 || mentions[0].BotID == "" || mentions[1].BotID != "" || mentions[1].UserTeam == b.w.Team.ID || mentions[1].UserTeam == "" {
			t.Errorf("mentions %s", encode(mentions))
		}
	})
}

// Joining and leaving is a message with a subtype and an event, and decides
// what the bot hears.
func TestMembership(t *testing.T) {
	bubble(t, Options{}, func(t *testing.T, b *bench) {
		random := b.channel("random")
		events := b.rawEvents(func() {
			for _, join := range []bool{true, false} {
				req := MembershipRequest{User: b.w.App.BotUserID, Channel: random}
				var err error
				if join {
					err = b.srv.Join(req)
				} else {
					err = b.srv.Leave(req)
				}
				if err != nil {
					t.Fatal(err)
				}
				if got := b.call("chat.postMessage", map[string]string{"channel": random, "text": "x"}); (got.err() == "") != join {
					t.Errorf("joined %t: %v", join, got.body)
				}
			}
		})
		var got []string
		for _, e := range events {
			inner := e["event"].(map[string]any)
			subtype, _ := inner["subtype"].(string)
			got = append(got, inner["type"].(string)+" "+subtype)
		}
		if diff := cmp.Diff([]string{"member_joined_channel ", "message channel_join", "message "}, got); diff != "" {
			t.Errorf("events (-want +got):\n%s", diff)
		}
	})
}

func TestWhoCanWriteWhere(t *testing.T) {
	bubble(t, Options{}, func(t *testing.T, b *bench) {
		for name, test := range map[string]struct {
			req  MessageRequest
			code string
		}{
			"nobody":          {MessageRequest{User: "U0", Channel: b.channel("general"), Text: "x"}, "user_not_found"},
			"nowhere":         {MessageRequest{User: b.user("bob"), Channel: "C0", Text: "x"}, "channel_not_found"},
			"deactivated":     {MessageRequest{User: b.user("dora"), Channel: b.channel("general"), Text: "x"}, "user_deactivated"},
			"not a member":    {MessageRequest{User: b.user("carol"), Channel: b.channel("ops-private"), Text: "x"}, "user_not_in_channel"},
			"somebody's DM":   {MessageRequest{User: b.user("carol"), Channel: b.channel("bob"), Text: "x"}, "user_not_in_channel"},
			"the app":         {MessageRequest{User: b.w.App.BotUserID, Channel: b.channel("general"), Text: "x"}, "user_is_app"},
			"nothing":         {MessageRequest{User: b.user("bob"), Channel: b.channel("general")}, "no_text"},
			"no such thread":  {MessageRequest{User: b.user("bob"), Channel: b.channel("general"), Text: "x", ThreadTS: "1.000000"}, "thread_not_found"},
			"the guest may":   {MessageRequest{User: b.user("gus"), Channel: b.channel("general"), Text: "x"}, ""},
			"a long argument": {MessageRequest{User: b.user("bob"), Channel: b.channel("general"), Text: strings.Repeat("x", maxPostText+1)}, "msg_too_long"},
		} {
			_, err := b.srv.SendMessage(test.req)
			code := ""
			if refused, ok := err.(*ControlError); ok {
				code = refused.Code
			}
			if code != test.code || (err == nil) != (test.code == "") {
				t.Errorf("%s: %v, want %q", name, err, test.code)
			}
		}
	})
}

// An ephemeral is seen by one person, through the control plane only; it can
// be clicked by that person, who sends no message along.
func TestEphemeral(t *testing.T) {
	bubble(t, Options{}, func(t *testing.T, b *bench) {
		var clicks []slack.InteractionCallback
		b.connect(func(evt socketmode.Event) (bool, any) {
			if evt.Type == socketmode.EventTypeInteractive {
				clicks = append(clicks, evt.Data.(slack.InteractionCallback))
			}
			return true, nil
		})
		general := b.channel("general")
		ts, err := b.api.PostEphemeral(general, b.user("bob"), slack.MsgOptionText("only you", false), slack.MsgOptionBlocks(card("only you")...))
		if err != nil {
			t.Fatal(err)
		}
		if m := b.message(general, ts); m == nil || m.EphemeralTo != b.user("bob") {
			t.Errorf("in the control plane: %s", encode(m))
		}
		if got := b.pages("conversations.history", map[string]string{"channel": general}); len(got) != 0 {
			t.Errorf("in the history: %v", got)
		}
		if _, err := b.srv.Click(t.Context(), ActionRequest{User: b.user("alice"), Channel: general, TS: ts, ActionID: "approve"}); err == nil {
			t.Error("alice clicked what she can't see")
		}
		if r, err := b.srv.Click(t.Context(), ActionRequest{User: b.user("bob"), Channel: general, TS: ts, ActionID: "approve"}); err != nil || !r.Acked {
			t.Fatalf("%+v, %v", r, err)
		}
		c := clicks[0]
		if !c.Container.IsEphemeral || c.Message.Timestamp != "" || c.Container.MessageTs != ts {
			t.Errorf("payload %+v", c.Container)
		}
	})
}

func (b *bench) respond(url, body string) (int, string) {
	b.t.Helper()
	res, err := b.http.Post(url, "application/json", strings.NewReader(body))
	if err != nil {
		b.t.Fatal(err)
	}
	defer res.Body.Close()
	var out struct{ Error string }
	if err := json.NewDecoder(res.Body).Decode(&out); err != nil {
		b.t.Fatal(err)
	}
	return res.StatusCode, out.Error
}

// A response_url works five times in half an hour, privately unless it says
// otherwise.
func TestResponseURL(t *testing.T) {
	bubble(t, Options{}, func(t *testing.T, b *bench) {
		var urls []string
		b.connect(func(evt socketmode.Event) (bool, any) {
			if evt.Type == socketmode.EventTypeInteractive {
				urls = append(urls, evt.Data.(slack.InteractionCallback).ResponseURL)
			}
			return true, nil
		})
		general := b.channel("general")
		ts := b.postCard("general")
		click := func() string {
			if _, err := b.srv.Click(t.Context(), ActionRequest{User: b.user("bob"), Channel: general, TS: ts, ActionID: "approve"}); err != nil {
				t.Fatal(err)
			}
			return urls[len(urls)-1]
		}
		url := click()
		for i, body := range []string{`{"text":"psst"}`, `{"text":"all","response_type":"in_channel"}`, `{"text":"new","replace_original":true,"blocks":[]}`, `{"delete_original":true}`, `{}`} {
			status, code := b.respond(url, body)
			if ok := i < 4; (status == http.StatusOK) != ok || (code == "no_text") == ok {
				t.Errorf("use %d: %d %s", i+1, status, code)
			}
			if m := b.message(general, ts); i == 2 && (m.Text != "new" || m.Blocks != nil) || i == 3 && m != nil {
				t.Errorf("after use %d the message is %s", i+1, encode(m))
			}
		}
		if status, code := b.respond(url, `{"text":"x"}`); status != http.StatusNotFound || code != "used_url" {
			t.Errorf("a sixth use: %d %s", status, code)
		}
		messages, err := b.srv.Messages(general, "")
		if err != nil || len(messages) != 2 || messages[0].EphemeralTo != b.user("bob") || messages[1].EphemeralTo != "" {
			t.Errorf("messages %s, %v", encode(messages), err)
		}
		ts = b.postCard("general")
		url = click()
		time.Sleep(responseLife + time.Second)
		if status, code := b.respond(url, `{"text":"x"}`); status != http.StatusNotFound || code != "expired_url" {
			t.Errorf("too late: %d %s", status, code)
		}
	})
}

func TestCommand(t *testing.T) {
	bubble(t, Options{}, func(t *testing.T, b *bench) {
		var got []slack.SlashCommand
		b.connect(func(evt socketmode.Event) (bool, any) {
			if evt.Type == socketmode.EventTypeSlashCommand {
				got = append(got, evt.Data.(slack.SlashCommand))
				return true, map[string]any{"text": "nothing waits & nobody asks"}
			}
			return true, nil
		})
		var receipt Receipt
		if status := b.control("POST", "_dev/commands", CommandRequest{User: b.user("bob"), Channel: b.channel("general"), Command: "/approvals", Text: "mine <now>"}, &receipt); status != 200 || !receipt.Acked {
			t.Fatalf("%d %+v", status, receipt)
		}
		if c := got[0]; c.Command != "/approvals" || c.Text != "mine &lt;now&gt;" || c.UserID != b.user("bob") || c.TriggerID == "" || c.ResponseURL == "" {
			t.Errorf("command %+v", c)
		}
		messages, err := b.srv.Messages(b.channel("general"), "")
		if err != nil || len(messages) != 1 || messages[0].EphemeralTo != b.user("bob") || messages[0].Text != "nothing waits &amp; nobody asks" {
			t.Errorf("answered with %s, %v", encode(messages), err)
		}
		app := DefaultApp()
		app.Commands = []string{"/approvals"}
		b.srv.InstallApp(app)
		if _, err := b.srv.Command(CommandRequest{User: b.user("bob"), Channel: b.channel("general"), Command: "/other"}); err == nil {
			t.Error("a command that the app doesn't have was given")
		}
	})
}

// A forged value and forged fields go out as they are told, for elements and
// messages that don't exist, too; without them that is refused.
func TestForgedClicks(t *testing.T) {
	bubble(t, Options{}, func(t *testing.T, b *bench) {
		var got []slack.InteractionCallback
		b.connect(func(evt socketmode.Event) (bool, any) {
			if evt.Type == socketmode.EventTypeInteractive {
				got = append(got, evt.Data.(slack.InteractionCallback))
			}
			return true, nil
		})
		general, ts := b.channel("general"), b.postCard("general")
		for _, req := range []ActionRequest{
			{TS: ts, ActionID: "approve", Value: "ap-2"},
			{TS: ts, ActionID: "launch", Value: "ap-1"},
			{TS: "1111111111.000001", ActionID: "approve", Value: "ap-1"},
			{TS: ts, ActionID: "approve", Forge: map[string]any{"team": map[string]any{"id": "T0EVIL"}, "api_app_id": "A0EVIL", "message": nil}},
		} {
			req.User, req.Channel = b.user("bob"), general
			if r, err := b.srv.Click(t.Context(), req); err != nil || !r.Acked {
				t.Fatalf("%+v: %+v, %v", req, r, err)
			}
		}
		var values []string
		for _, c := range got {
			a := c.ActionCallback.BlockActions[0]
			values = append(values, strings.Join([]string{a.ActionID, a.Value, a.BlockID, c.Message.Timestamp}, " "))
		}
		want := []string{"approve ap-2 ask-1 " + ts, "launch ap-1 forged " + ts, "approve ap-1 forged ", "approve ap-1 ask-1 "}
		if diff := cmp.Diff(want, values); diff != "" {
			t.Errorf("clicks (-want +got):\n%s", diff)
		}
		if last := got[3]; last.Team.ID != "T0EVIL" || last.Team.Domain != "local" || last.APIAppID != "A0EVIL" {
			t.Errorf("forged %+v", last)
		}
		for name, req := range map[string]ActionRequest{
			"no such element": {User: b.user("bob"), Channel: general, TS: ts, ActionID: "launch"},
			"no such message": {User: b.user("bob"), Channel: general, TS: "1111111111.000001", ActionID: "approve"},
			"no such channel": {User: b.user("bob"), Channel: "C0", TS: ts, ActionID: "approve"},
			"no such person":  {User: "U0", Channel: general, TS: ts, ActionID: "approve"},
			"deactivated":     {User: b.user("dora"), Channel: general, TS: ts, ActionID: "approve"},
		} {
			if _, err := b.srv.Click(t.Context(), req); err == nil {
				t.Errorf("%s: accepted", name)
			}
		}
	})
}

// What somebody chose in a message goes with their next click, and not with
// anybody else's.
func TestStateOfMessages(t *testing.T) {
	bubble(t, Options{}, func(t *testing.T, b *bench) {
		var got []slack.InteractionCallback
		b.connect(func(evt socketmode.Event) (bool, any) {
			if evt.Type == socketmode.EventTypeInteractive {
				got = append(got, evt.Data.(slack.InteractionCallback))
			}
			return true, nil
		})
		option := func(v string) *slack.OptionBlockObject { return slack.NewOptionBlockObject(v, label(v), nil) }
		_, ts, err := b.api.PostMessage(b.channel("general"), slack.MsgOptionText("choose", false), slack.MsgOptionBlocks(slack.NewActionBlock("row",
			slack.NewOptionsSelectBlockElement("static_select", label("how long"), "span", option("once"), option("day")),
			slack.NewCheckboxGroupsBlockElement("which", option("a"), option("b")),
			slack.NewButtonBlockElement("go", "v", label("Go")))))
		if err != nil {
			t.Fatal(err)
		}
		for _, req := range []ActionRequest{
			{User: b.user("bob"), ActionID: "span", Value: "day"},
			{User: b.user("bob"), ActionID: "which", Value: []any{"b"}},
			{User: b.user("bob"), ActionID: "go"},
			{User: b.user("alice"), ActionID: "go"},
		} {
			req.Channel, req.TS = b.channel("general"), ts
			if _, err := b.srv.Click(t.Context(), req); err != nil {
				t.Fatal(err)
			}
		}
		if a := got[0].ActionCallback.BlockActions[0]; a.SelectedOption.Value != "day" {
			t.Errorf("the choice itself: %+v", a)
		}
		bobs, alices := got[2].BlockActionState.Values["row"], got[3].BlockActionState.Values["row"]
		if bobs["span"].SelectedOption.Value != "day" || len(bobs["which"].SelectedOptions) != 1 || alices["span"].SelectedOption.Value != "" {
			t.Errorf("bob's state %+v, alice's %+v", bobs, alices)
		}
	})
}

// The log has every call and frame, and no secret.
func TestCallsWithoutSecrets(t *testing.T) {
	bubble(t, Options{}, func(t *testing.T, b *bench) {
		b.connect(ackAll)
		b.clickCard("general")
		var out struct{ Calls []Call }
		b.control("GET", "_dev/calls?after=1", nil, &out)
		names := map[string]bool{}
		for i, c := range out.Calls {
			if c.Seq != int64(i+2) {
				t.Fatalf("entry %d has the number %d", i, c.Seq)
			}
			names[c.Kind+" "+c.Name] = true
		}
		for _, want := range []string{"frame_out hello", "api chat.postMessage", "frame_out interactive", "frame_in ack"} {
			if !names[want] {
				t.Errorf("no %s among %v", want, names)
			}
		}
		all := encode(b.srv.Calls(0))
		for _, secret := range []string{b.w.App.BotToken, b.w.App.AppToken} {
			if bytes.Contains(all, []byte(secret)) {
				t.Errorf("%s is in the log", secret)
			}
		}
		for url := range b.srv.responses {
			if bytes.Contains(all, []byte(url)) {
				t.Error("a response URL is in the log")
			}
		}
	})
}

func TestCallLogIsBounded(t *testing.T) {
	l := &callLog{added: func(Call) {}}
	for range maxCalls + 25 {
		l.add(Call{Kind: "api"})
	}
	got := l.after(0)
	if len(got) != maxCalls || got[0].Seq != 26 || got[len(got)-1].Seq != maxCalls+25 {
		t.Errorf("%d entries from %d to %d", len(got), got[0].Seq, got[len(got)-1].Seq)
	}
	if rest := l.after(maxCalls + 24); len(rest) != 1 {
		t.Errorf("%d entries after the last but one", len(rest))
	}
}
