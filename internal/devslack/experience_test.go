package devslack

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
	"github.com/slack-go/slack"
	"github.com/slack-go/slack/slackevents"
	"github.com/slack-go/slack/socketmode"
)

const testManifest = `
display_information: {name: approvalbot, description: Asks before it acts}
features:
  app_home: {home_tab_enabled: true, messages_tab_enabled: true, messages_tab_read_only_enabled: false}
  bot_user: {display_name: approvalbot, always_online: true}
  slash_commands:
    - {command: /approvals, description: What waits, usage_hint: "[mine|all]", should_escape: true}
  shortcuts:
    - {name: Ask about this, type: message, callback_id: ask_about, description: Asks the agent about a message}
  agent_view:
    agent_description: Asks before it acts
    suggested_prompts: [{title: Read, message: read README.md}]
oauth_config:
  scopes: {bot: [app_mentions:read, assistant:write, chat:write, commands, files:read, im:history, im:write]}
settings:
  event_subscriptions: {bot_events: [app_home_opened, app_mention, assistant_thread_started, message.im, agent_session_stopped]}
  interactivity: {is_enabled: true}
  socket_mode_enabled: true
`

// installed is a bench with the app of the manifest.
func installed(t *testing.T, b *bench) {
	t.Helper()
	app, err := ReadManifest([]byte(testManifest))
	if err != nil {
		t.Fatal(err)
	}
	b.srv.InstallApp(app)
}

func TestManifestIsRead(t *testing.T) {
	app, err := ReadManifest([]byte(testManifest))
	if err != nil {
		t.Fatal(err)
	}
	want := App{
		BotScopes: []string{"app_mentions:read", "assistant:write", "chat:write", "commands", "files:read", "im:history", "im:write"},
		BotEvents: []string{"app_home_opened", "app_mention", "assistant_thread_started", "message.im", "agent_session_stopped"},
		Commands:  []string{"/approvals"}, Usage: map[string]Usage{"/approvals": {"What waits", "[mine|all]"}},
		Shortcuts: []Shortcut{{"Ask about this", "ask_about", "Asks the agent about a message", "message"}},
		HomeTab:   true, MessagesTab: true, AgentView: true, Prompts: []Prompt{{"Read", "read README.md"}},
	}
	if diff := cmp.Diff(want, app); diff != "" {
		t.Error(diff)
	}
}

// What Slack refuses to install is refused here, with a sentence that names it.
func TestManifestIsChecked(t *testing.T) {
	for name, test := range map[string]struct{ old, new, want string }{
		"misspelt":         {"home_tab_enabled", "home_tab_enable", "home_tab_enable"},
		"no socket":        {"socket_mode_enabled: true", "socket_mode_enabled: false", "socket_mode_enabled"},
		"no scope":         {"app_mentions:read, ", "", "app_mention needs the scope app_mentions:read"},
		"unknown scope":    {"im:write", "im:wrote", `"im:wrote"`},
		"unknown event":    {"message.im,", "message.dm,", `"message.dm"`},
		"no commands":      {"commands, ", "", "need the scope commands"},
		"long name":        {"name: Ask about this", "name: Ask approvalbot about this message", "has 34 characters"},
		"command":          {"command: /approvals", "command: approvals", "must begin with /"},
		"type of shortcut": {"type: message", "type: thread", "message or global"},
		"no bot":           {"display_name: approvalbot", "display_name: ''", "bot_user.display_name"},
	} {
		if !strings.Contains(testManifest, test.old) {
			t.Fatalf("%s: %q is not in the manifest", name, test.old)
		}
		_, err := ReadManifest([]byte(strings.Replace(testManifest, test.old, test.new, 1)))
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v, want it to say %q", name, err, test.want)
		}
	}
}

func TestShortcutOfAMessage(t *testing.T) {
	bubble(t, Options{}, func(t *testing.T, b *bench) {
		installed(t, b)
		var got slack.InteractionCallback
		b.connect(func(evt socketmode.Event) (bool, any) {
			if c, ok := evt.Data.(slack.InteractionCallback); ok {
				got = c
				if _, err := b.api.OpenView(c.TriggerID, review("About this")); err != nil {
					t.Error(err)
				}
			}
			return true, nil
		})
		ts, err := b.srv.SendMessage(MessageRequest{User: b.user("alice"), Channel: b.channel("random"), Text: "prod is down"})
		if err != nil {
			t.Fatal(err)
		}
		var receipt Receipt
		request := ShortcutRequest{User: b.user("bob"), Channel: b.channel("random"), TS: ts, CallbackID: "ask_about"}
		if status := b.control("POST", "_dev/shortcuts", request, &receipt); status != 200 || !receipt.Acked {
			t.Fatalf("%d %+v", status, receipt)
		}
		if got.Type != slack.InteractionTypeMessageAction || got.CallbackID != "ask_about" || got.Message.Text != "prod is down" ||
			got.MessageTs != ts || got.User.ID != b.user("bob") || got.Channel.ID != b.channel("random") || got.APIAppID != b.w.App.ID {
			t.Errorf("payload %+v", got)
		}
		if views, err := b.srv.Views(b.user("bob")); err != nil || len(views) != 1 {
			t.Errorf("views %v, %v", views, err)
		}
		// The bot is not in that channel; the response URL reaches it all the same.
		res, err := b.http.Post(got.ResponseURL, "application/json", strings.NewReader(`{"text":"only for you"}`))
		if err != nil || res.StatusCode != 200 {
			t.Fatalf("%v, %v", res, err)
		}
		res.Body.Close()
		messages, err := b.srv.Messages(b.channel("random"), "")
		if err != nil || len(messages) != 2 || messages[1].EphemeralTo != b.user("bob") {
			t.Errorf("messages %s, %v", encode(messages), err)
		}
		for name, bad := range map[string]ShortcutRequest{
			"unknown_shortcut":    {User: request.User, Channel: request.Channel, TS: ts, CallbackID: "other"},
			"message_not_found":   {User: request.User, Channel: request.Channel, TS: "1.000001", CallbackID: "ask_about"},
			"user_not_in_channel": {User: b.user("carol"), Channel: b.channel("ops-private"), TS: ts, CallbackID: "ask_about"},
		} {
			var refused *ControlError
			if _, err := b.srv.Shortcut(bad); !errors.As(err, &refused) || refused.Code != name {
				t.Errorf("%v, want %s", err, name)
			}
		}
	})
}

// A person's files come with the event, and are there for the bot alone.
func TestFilesFromPeople(t *testing.T) {
	bubble(t, Options{}, func(t *testing.T, b *bench) {
		installed(t, b)
		bot := b.connect(ackAll)
		im := b.imOf("alice")
		var sent struct{ TS string }
		status := b.control("POST", "_dev/messages", MessageRequest{User: b.user("alice"), Channel: im, Text: "look",
			Files: []Attachment{{Name: "report.html", Content: []byte("<b>1</b>")}}}, &sent)
		if status != 200 {
			t.Fatal(status)
		}
		synctest.Wait()
		message := bot.of(socketmode.EventTypeEventsAPI)[0].Data.(slackevents.EventsAPIEvent).InnerEvent.Data.(*slackevents.MessageEvent)
		if message.SubType != "file_share" || message.Text != "look" || message.Message == nil || len(message.Message.Files) != 1 {
			t.Fatalf("event %+v", message)
		}
		f := message.Message.Files[0]
		if f.Name != "report.html" || f.Mimetype != "text/html" || f.Size != 8 || f.User != b.user("alice") {
			t.Errorf("file %+v", f)
		}
		var down bytes.Buffer
		if err := b.api.GetFile(f.URLPrivateDownload, &down); err != nil || down.String() != "<b>1</b>" {
			t.Errorf("downloaded %q, %v", down.String(), err)
		}
		app, err := ReadManifest([]byte(strings.Replace(testManifest, "files:read, ", "", 1)))
		if err != nil {
			t.Fatal(err)
		}
		b.srv.InstallApp(app)
		down.Reset()
		if err := b.api.GetFile(f.URLPrivateDownload, &down); err == nil || !strings.Contains(err.Error(), "sign-in") || down.Len() > 0 {
			t.Errorf("without files:read: %q, %v", down.String(), err)
		}
		if _, _, _, err := b.api.GetFileInfo(f.ID, 0, 0); err == nil || err.Error() != "missing_scope" {
			t.Errorf("files.info without files:read: %v", err)
		}
		if status := b.control("POST", "_dev/messages", MessageRequest{User: b.user("alice"), Channel: im, Files: []Attachment{{Name: "empty"}}}, &sent); status != 400 {
			t.Errorf("an empty file: %d", status)
		}
	})
}

// A mention with files is an app_mention that carries them, and no file_share.
func TestMentionWithFiles(t *testing.T) {
	bubble(t, Options{}, func(t *testing.T, b *bench) {
		bot := b.connect(ackAll)
		if _, err := b.srv.SendMessage(MessageRequest{User: b.user("alice"), Channel: b.channel("general"), Text: "<@" + b.w.App.BotUserID + "> see",
			Files: []Attachment{{Name: "a.csv", Content: []byte("1,2")}}}); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		subtypes := map[string]string{}
		for _, e := range bot.of(socketmode.EventTypeEventsAPI) {
			var event struct {
				Event struct {
					Type, Subtype string
					Files         []File
				}
			}
			if err := json.Unmarshal(e.Request.Payload, &event); err != nil || len(event.Event.Files) != 1 {
				t.Errorf("%s, %v", e.Request.Payload, err)
			}
			subtypes[event.Event.Type] = event.Event.Subtype
		}
		if diff := cmp.Diff(map[string]string{"app_mention": "", "message": "file_share"}, subtypes); diff != "" {
			t.Error(diff)
		}
	})
}

// Bots mention the app: an app's bot names its user, a workflow's doesn't.
func TestBotsMention(t *testing.T) {
	bubble(t, Options{}, func(t *testing.T, b *bench) {
		for name, want := range map[string]struct {
			user    bool
			subtype string
		}{"deploybot": {true, ""}, "weekly-report": {false, "bot_message"}} {
			bot := b.connect(ackAll)
			if _, err := b.srv.SendMessage(MessageRequest{User: b.user(name), Channel: b.channel("general"), Text: "<@" + b.w.App.BotUserID + "> deploy"}); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			for _, e := range bot.of(socketmode.EventTypeEventsAPI) {
				mention, ok := e.Data.(slackevents.EventsAPIEvent).InnerEvent.Data.(*slackevents.AppMentionEvent)
				if !ok {
					continue
				}
				var event struct {
					Event struct {
						Subtype string      `json:"subtype"`
						Profile *BotProfile `json:"bot_profile"`
					}
				}
				if err := json.Unmarshal(e.Request.Payload, &event); err != nil {
					t.Fatal(err)
				}
				if mention.BotID == "" || (mention.User != "") != want.user || event.Event.Subtype != want.subtype ||
					event.Event.Profile == nil || event.Event.Profile.Workflow == want.user {
					t.Errorf("%s: %s", name, e.Request.Payload)
				}
			}
			bot.stop()
		}
	})
}

// The assistant's pane: a thread begins, has a title, prompts and a status, and
// can be stopped.
func TestAssistantPane(t *testing.T) {
	bubble(t, Options{}, func(t *testing.T, b *bench) {
		installed(t, b)
		bot := b.connect(ackAll)
		alice := b.user("alice")
		im := b.imOf("alice")
		var begun struct {
			Channel  string
			ThreadTS string `json:"thread_ts"`
		}
		if status := b.control("POST", "_dev/assistant", AssistantRequest{User: alice, Channel: b.channel("general")}, &begun); status != 200 || begun.Channel != im {
			t.Fatalf("%d %+v", status, begun)
		}
		synctest.Wait()
		started := bot.of(socketmode.EventTypeEventsAPI)[0].Data.(slackevents.EventsAPIEvent).InnerEvent.Data.(*slackevents.AssistantThreadStartedEvent)
		if started.AssistantThread.ThreadTimeStamp != begun.ThreadTS || started.AssistantThread.UserID != alice || started.AssistantThread.Context.ChannelID != b.channel("general") {
			t.Errorf("event %+v", started)
		}
		prompts := slack.AssistantThreadsSetSuggestedPromptsParameters{ChannelID: im, ThreadTS: begun.ThreadTS, Title: "Try"}
		prompts.AddPrompt("List", "list files")
		for name, err := range map[string]error{
			"title":   b.api.SetAssistantThreadsTitle(slack.AssistantThreadsSetTitleParameters{ChannelID: im, ThreadTS: begun.ThreadTS, Title: "Files"}),
			"prompts": b.api.SetAssistantThreadsSuggestedPrompts(prompts),
			"status":  b.api.SetAssistantThreadsStatus(slack.AssistantThreadsSetStatusParameters{ChannelID: im, ThreadTS: begun.ThreadTS, Status: "is reading…"}),
		} {
			if err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
		threads, err := b.srv.AgentThreads(alice)
		want := []AgentThread{{Channel: im, Prompts: []Prompt{{"Read", "read README.md"}}},
			{Channel: im, ThreadTS: begun.ThreadTS, Title: "Files", Status: "is reading…", PromptTitle: "Try", Prompts: []Prompt{{"List", "list files"}}}}
		if diff := cmp.Diff(want, threads); diff != "" || err != nil {
			t.Error(diff, err)
		}
		if other, err := b.srv.AgentThreads(b.user("bob")); err != nil || len(other) != 1 || other[0].Title != "" {
			t.Errorf("bob sees %+v, %v", other, err)
		}
		if err := b.srv.StopAgent(MessageRef{User: alice, Channel: im, TS: begun.ThreadTS}); err != nil {
			t.Fatal(err)
		}
		if err := b.srv.OpenTab(HomeRequest{User: alice, Tab: "messages"}); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		events := bot.of(socketmode.EventTypeEventsAPI)
		if stopped, ok := events[1].Data.(slackevents.EventsAPIEvent).InnerEvent.Data.(*slackevents.AgentSessionStoppedEvent); !ok || stopped.ThreadTimestamp != begun.ThreadTS || stopped.User != alice {
			t.Errorf("event %+v", events[1].Data)
		}
		if opened, ok := events[2].Data.(slackevents.EventsAPIEvent).InnerEvent.Data.(*slackevents.AppHomeOpenedEvent); !ok || opened.Tab != "messages" {
			t.Errorf("event %+v", events[2].Data)
		}
	})
}

// A plain app has no pane, and says so.
func TestNoAssistant(t *testing.T) {
	bubble(t, Options{}, func(t *testing.T, b *bench) {
		if _, _, err := b.srv.StartAssistant(AssistantRequest{User: b.user("alice")}); err == nil {
			t.Error("it began")
		}
		prompts := slack.AssistantThreadsSetSuggestedPromptsParameters{ChannelID: b.imOf("alice")}
		prompts.AddPrompt("a", "b")
		if err := b.api.SetAssistantThreadsSuggestedPrompts(prompts); err == nil || err.Error() != "not_agent_app" {
			t.Errorf("prompts: %v", err)
		}
	})
}

// A bot goes into a public channel by itself, and into no other.
func TestBotJoins(t *testing.T) {
	bubble(t, Options{}, func(t *testing.T, b *bench) {
		if _, _, _, err := b.api.JoinConversation(b.channel("random")); err != nil {
			t.Fatal(err)
		}
		if _, _, err := b.api.PostMessage(b.channel("random"), slack.MsgOptionText("here", false)); err != nil {
			t.Error(err)
		}
		secret, err := b.srv.CreateChannel(ChannelRequest{Name: "secret", Kind: KindPrivate, Members: []string{b.user("alice")}})
		if err != nil {
			t.Fatal(err)
		}
		if _, _, _, err := b.api.JoinConversation(secret.ID); err == nil || err.Error() != "channel_not_found" {
			t.Errorf("joining a private channel: %v", err)
		}
		if _, err := b.srv.CreateChannel(ChannelRequest{Name: "secret"}); err == nil {
			t.Error("a name was given twice")
		}
	})
}

func (b *bench) imOf(name string) string {
	b.t.Helper()
	for _, c := range b.w.Channels {
		if c.Kind == KindIM && c.User == b.user(name) {
			return c.ID
		}
	}
	b.t.Fatalf("no conversation with %s", name)
	return ""
}

// What a client finds wrong with an input is never sent.
func TestInputsHaveBounds(t *testing.T) {
	for name, test := range map[string]struct{ element, value, want string }{
		"whole":        {`{"type":"number_input","is_decimal_allowed":false}`, "1.5", "Enter a whole number."},
		"number":       {`{"type":"number_input","is_decimal_allowed":true}`, "1/2", "Enter a number."},
		"least":        {`{"type":"number_input","is_decimal_allowed":true,"min_value":"2"}`, "1.9", "Enter a number of at least 2."},
		"most":         {`{"type":"number_input","is_decimal_allowed":true,"max_value":"2"}`, "2.1", "Enter a number of at most 2."},
		"fits":         {`{"type":"number_input","is_decimal_allowed":true,"min_value":"-3","max_value":"2"}`, "-2.5", ""},
		"email":        {`{"type":"email_text_input"}`, "somebody", "Enter a valid email address."},
		"url":          {`{"type":"url_text_input"}`, "example", "Enter a valid URL."},
		"short":        {`{"type":"plain_text_input","min_length":3}`, "ab", "Enter at least 3 characters."},
		"long":         {`{"type":"plain_text_input","max_length":3}`, "äöüß", "Enter at most 3 characters."},
		"long but ok":  {`{"type":"plain_text_input","max_length":4}`, "äöüß", ""},
		"plain number": {`{"type":"number_input","is_decimal_allowed":false}`, "12", ""},
	} {
		fields := map[string]any{}
		if err := decode([]byte(test.element), &fields); err != nil {
			t.Fatal(err)
		}
		e := element{kind: fields["type"].(string), fields: fields}
		if got := e.unfit(test.value, nil); got != test.want {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
}

func TestValidate(t *testing.T) {
	section := func(text string) json.RawMessage {
		return encode([]any{map[string]any{"type": "section", "text": map[string]any{"type": "mrkdwn", "text": text}}})
	}
	for name, test := range map[string]struct {
		text   string
		blocks json.RawMessage
		want   string
	}{
		"good":             {"a card", section("x"), ""},
		"no blocks":        {"a notice", nil, ""},
		"nothing":          {"", nil, "no_text"},
		"no fallback":      {"", section("x"), "no_text"},
		"after escaping":   {"a card", section(strings.Repeat("<", 751)), "invalid_blocks"},
		"update's text":    {strings.Repeat("&", 801), nil, "msg_too_long"},
		"blocks as a list": {"a card", json.RawMessage(`{}`), "invalid_blocks"},
		"whole": {"a card", encode([]any{map[string]any{"type": "rich_text", "elements": []any{map[string]any{"type": "rich_text_preformatted",
			"elements": []any{map[string]any{"type": "text", "text": strings.Repeat("x", 13_200)}}}}}}), "msg_blocks_too_long"},
	} {
		err := ValidateMessage(test.text, test.blocks)
		var found *Invalid
		if errors.As(err, &found); (err == nil) != (test.want == "") || found != nil && found.Code != test.want {
			t.Errorf("%s: %v, want %q", name, err, test.want)
		}
	}
	if err := ValidateView(json.RawMessage(`{"type":"modal","title":{"type":"plain_text","text":"` + strings.Repeat("x", 25) + `"},"blocks":[]}`)); err == nil || !strings.Contains(err.Error(), "/view/title/text") {
		t.Errorf("a long title: %v", err)
	}
	if err := ValidateView(json.RawMessage(`{"type":"home","blocks":[]}`)); err != nil {
		t.Error(err)
	}
}

// Slack shows errors below inputs. One for anything else is no answer.
func TestErrorsNeedAnInput(t *testing.T) {
	bubble(t, Options{}, func(t *testing.T, b *bench) {
		bot := b.modalBot()
		v := b.opened(bot)
		for block, ok := range map[string]bool{"why": true, "buttons": false, "nothing": false} {
			bot.answer = map[string]any{"response_action": "errors", "errors": map[string]string{block: "No."}}
			result, err := b.srv.SubmitView(v.ID, SubmitRequest{User: b.user("bob"), Values: map[string]map[string]any{"why": {"reason": "because"}}})
			if (err == nil) != ok || ok && result.Errors[block] != "No." {
				t.Errorf("%s: %+v, %v", block, result, err)
			}
		}
	})
}
