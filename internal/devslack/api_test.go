package devslack

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/slack-go/slack"
	"pgregory.net/rapid"
)

func TestTokens(t *testing.T) {
	bubble(t, Options{}, func(t *testing.T, b *bench) {
		app := b.w.App
		for name, test := range map[string]struct{ method, body, bearer, want string }{
			"none":                     {"auth.test", "", "", "not_authed"},
			"unknown":                  {"auth.test", "token=xoxb-0", "", "invalid_auth"},
			"in the body":              {"auth.test", "token=" + app.BotToken, "", ""},
			"bearer":                   {"auth.test", "", app.BotToken, ""},
			"app token for a method":   {"chat.postMessage", "", app.AppToken, "not_allowed_token_type"},
			"bot token for the socket": {"apps.connections.open", "", app.BotToken, "not_allowed_token_type"},
			"app token in the body":    {"apps.connections.open", "token=" + app.AppToken, "", "not_authed"},
			"app token":                {"apps.connections.open", "", app.AppToken, ""},
			"no token needed":          {"api.test", "", "", ""},
			"an error asked for":       {"api.test", "error=my_error", "", "my_error"},
			"unknown method":           {"chat.postMassage", "", app.BotToken, "unknown_method"},
		} {
			got := b.send(test.method, "application/x-www-form-urlencoded", test.body, test.bearer)
			if got.status != http.StatusOK || got.err() != test.want || got.body["ok"] != (test.want == "") {
				t.Errorf("%s: %d %v, want error %q", name, got.status, got.body, test.want)
			}
		}
	})
}

// The same call in every form in which official clients send it.
func TestArgumentsInEveryForm(t *testing.T) {
	bubble(t, Options{NoRateLimits: true}, func(t *testing.T, b *bench) {
		channel := b.channel("general")
		blocks := `[{"type":"section","block_id":"b","text":{"type":"plain_text","text":"hi","emoji":true}}]`
		form := map[string]string{"channel": channel, "text": "a & b", "blocks": blocks}
		var multi bytes.Buffer
		w := multipart.NewWriter(&multi)
		for k, v := range form {
			if err := w.WriteField(k, v); err != nil {
				t.Fatal(err)
			}
		}
		w.Close()
		nested := string(encode(map[string]any{"channel": channel, "text": "a & b", "blocks": json.RawMessage(blocks), "thread_ts": nil}))
		get, err := http.NewRequest("GET", benchURL+"api/chat.postMessage?channel="+channel+"&text=a+%26+b&blocks="+strings.NewReplacer(`"`, "%22", " ", "+").Replace(blocks), nil)
		if err != nil {
			t.Fatal(err)
		}
		get.Header.Set("Authorization", "Bearer "+b.w.App.BotToken)
		for name, got := range map[string]answer{
			"form":           b.call("chat.postMessage", form),
			"JSON":           b.send("chat.postMessage", "application/json; charset=utf-8", nested, b.w.App.BotToken),
			"JSON in JSON":   b.send("chat.postMessage", "application/json", string(encode(form)), b.w.App.BotToken),
			"multipart form": b.send("chat.postMessage", w.FormDataContentType(), multi.String(), b.w.App.BotToken),
			"query":          b.do(get),
		} {
			message, _ := got.body["message"].(map[string]any)
			if message["text"] != "a &amp; b" || string(encode(message["blocks"])) != `[{"block_id":"b","text":{"emoji":true,"text":"hi","type":"plain_text"},"type":"section"}]` {
				t.Errorf("%s: %s", name, encode(got.body))
			}
		}
		for body, want := range map[string]string{`{`: "invalid_json", `[]`: "json_not_object"} {
			if got := b.send("auth.test", "application/json", body, b.w.App.BotToken); got.err() != want {
				t.Errorf("%s: %v", body, got.body)
			}
		}
		if got := b.send("auth.test", "text/xml", "<a/>", b.w.App.BotToken); got.err() != "invalid_post_type" {
			t.Errorf("XML: %v", got.body)
		}
	})
}

func TestMissingScope(t *testing.T) {
	bubble(t, Options{}, func(t *testing.T, b *bench) {
		app := DefaultApp()
		app.BotScopes = []string{"channels:history", "users:read"}
		b.srv.InstallApp(app)
		for method, needed := range map[string]string{"chat.postMessage": "chat:write", "conversations.open": "im:write"} {
			got := b.call(method, map[string]string{"channel": b.channel("general")})
			if got.err() != "missing_scope" || got.body["needed"] != needed || got.body["provided"] != "channels:history,users:read" {
				t.Errorf("%s: %v", method, got.body)
			}
		}
		if got := b.call("conversations.history", map[string]string{"channel": b.channel("general")}); got.err() != "" {
			t.Errorf("public history: %v", got.body)
		}
		got := b.call("conversations.history", map[string]string{"channel": b.channel("ops-private")})
		if got.err() != "missing_scope" || got.body["needed"] != "groups:history" {
			t.Errorf("private history: %v", got.body)
		}
	})
}

// Slack says with every accepted token what it may do; tools compare that with what they need.
func TestScopeHeaders(t *testing.T) {
	bubble(t, Options{}, func(t *testing.T, b *bench) {
		app := DefaultApp()
		app.BotScopes = []string{"chat:write", "users:read"}
		b.srv.InstallApp(app)
		channel := map[string]string{"channel": b.channel("general")}
		form := "application/x-www-form-urlencoded"
		for _, test := range []struct {
			name             string
			got              answer
			granted, accepts []string
		}{
			{"nothing needed", b.call("auth.test", nil), []string{"chat:write,users:read"}, nil},
			{"one needed", b.call("chat.postMessage", channel), []string{"chat:write,users:read"}, []string{"chat:write"}},
			{"one missing", b.call("conversations.history", channel), []string{"chat:write,users:read"}, []string{"channels:history,groups:history,im:history"}},
			{"app token", b.send("apps.connections.open", form, "", b.w.App.AppToken), []string{"connections:write"}, []string{"connections:write"}},
			{"unknown token", b.send("auth.test", form, "", "xoxb-other"), nil, nil},
			{"no token", b.send("chat.postMessage", form, "", ""), nil, nil},
			{"token of the wrong kind", b.send("apps.connections.open", form, "", b.w.App.BotToken), nil, nil},
			{"unknown method", b.call("no.such", nil), nil, nil},
		} {
			if diff := cmp.Diff(test.granted, test.got.header["X-Oauth-Scopes"]); diff != "" {
				t.Errorf("%s: granted (-want +got):\n%s", test.name, diff)
			}
			if diff := cmp.Diff(test.accepts, test.got.header["X-Accepted-Oauth-Scopes"]); diff != "" {
				t.Errorf("%s: accepted (-want +got):\n%s", test.name, diff)
			}
		}
	})
}

// Every refusal of the chat methods, by its code.
func TestChatErrors(t *testing.T) {
	bubble(t, Options{NoRateLimits: true}, func(t *testing.T, b *bench) {
		general := b.channel("general")
		ours := b.postCard("general")
		theirs, err := b.srv.SendMessage(MessageRequest{User: b.user("alice"), Channel: general, Text: "mine"})
		if err != nil {
			t.Fatal(err)
		}
		hidden := b.call("chat.postEphemeral", map[string]string{"channel": general, "user": b.user("bob"), "text": "psst"}).body["message_ts"].(string)
		reply := b.call("chat.postMessage", map[string]string{"channel": general, "text": "x", "thread_ts": ours}).body["ts"].(string)
		for _, test := range []struct {
			name, method string
			args         map[string]string
			want         string
		}{
			{"no channel", "chat.postMessage", map[string]string{"text": "x"}, "channel_not_found"},
			{"no such channel", "chat.postMessage", map[string]string{"channel": "C0", "text": "x"}, "channel_not_found"},
			{"not a member", "chat.postMessage", map[string]string{"channel": b.channel("random"), "text": "x"}, "not_in_channel"},
			{"nothing to say", "chat.postMessage", map[string]string{"channel": general}, "no_text"},
			{"empty blocks", "chat.postMessage", map[string]string{"channel": general, "blocks": "[]"}, "no_text"},
			{"blocks that are no list", "chat.postMessage", map[string]string{"channel": general, "blocks": "{}"}, "invalid_blocks_format"},
			{"unknown block", "chat.postMessage", map[string]string{"channel": general, "blocks": `[{"type":"nonsense"}]`}, "invalid_blocks"},
			{"metadata without type", "chat.postMessage", map[string]string{"channel": general, "text": "x", "metadata": `{"event_payload":{}}`}, "invalid_metadata_schema"},
			{"markdown and text", "chat.postMessage", map[string]string{"channel": general, "text": "x", "markdown_text": "y"}, "markdown_text_conflict"},
			{"thread of nothing", "chat.postMessage", map[string]string{"channel": general, "text": "x", "thread_ts": "1234567890.000001"}, "cannot_reply_to_message"},
			{"thread of a reply", "chat.postMessage", map[string]string{"channel": general, "text": "x", "thread_ts": reply}, "cannot_reply_to_message"},
			{"thread of nonsense", "chat.postMessage", map[string]string{"channel": general, "text": "x", "thread_ts": "now"}, "invalid_thread_ts"},
			{"a deactivated person", "chat.postMessage", map[string]string{"channel": b.user("dora"), "text": "x"}, "user_disabled"},
			{"ephemeral to an absent person", "chat.postEphemeral", map[string]string{"channel": b.channel("ops-private"), "user": b.user("carol"), "text": "x"}, "user_not_in_channel"},
			{"update of nothing", "chat.update", map[string]string{"channel": general, "ts": "1234567890.000001", "text": "x"}, "message_not_found"},
			{"update of an ephemeral", "chat.update", map[string]string{"channel": general, "ts": hidden, "text": "x"}, "message_not_found"},
			{"update of somebody's message", "chat.update", map[string]string{"channel": general, "ts": theirs, "text": "x"}, "cant_update_message"},
			{"a long update", "chat.update", map[string]string{"channel": general, "ts": ours, "text": strings.Repeat("&", 801)}, "msg_too_long"},
			{"an update to nothing", "chat.update", map[string]string{"channel": general, "ts": ours, "blocks": "[]"}, "no_text"},
			{"deleting somebody's message", "chat.delete", map[string]string{"channel": general, "ts": theirs}, "cant_delete_message"},
			{"a link to nothing", "chat.getPermalink", map[string]string{"channel": general, "message_ts": "1.000000"}, "message_not_found"},
			{"reaction twice", "reactions.add", map[string]string{"channel": general, "timestamp": ours, "name": ":x:"}, "invalid_name"},
		} {
			if got := b.call(test.method, test.args); got.err() != test.want {
				t.Errorf("%s: %v, want %s", test.name, got.body, test.want)
			}
		}
	})
}

// The errors of blocks name the place, on posts and on updates; what counts is
// the escaped length.
func TestBlockErrorsNameThePlace(t *testing.T) {
	bubble(t, Options{}, func(t *testing.T, b *bench) {
		ts := b.postCard("general")
		blocks := `[{"type":"divider"},{"type":"section","text":{"type":"mrkdwn","text":"` + strings.Repeat("&", 601) + `"}}]`
		want := "[ERROR] must be less than 3001 characters [json-pointer:/blocks/1/text/text]"
		for _, method := range []string{"chat.postMessage", "chat.update"} {
			got := b.call(method, map[string]string{"channel": b.channel("general"), "ts": ts, "text": "x", "blocks": blocks})
			metadata, _ := got.body["response_metadata"].(map[string]any)
			if got.err() != "invalid_blocks" || !cmp.Equal(metadata["messages"], []any{want}) {
				t.Errorf("%s: %s", method, encode(got.body))
			}
		}
	})
}

// What chat.update keeps and what it drops.
func TestUpdateSemantics(t *testing.T) {
	const blocks = `[{"type":"section","block_id":"new","text":{"type":"plain_text","text":"new","emoji":true}}]`
	for name, test := range map[string]struct {
		args                       map[string]string
		text                       string
		blocks, attached, metadata bool
	}{
		"text alone drops blocks":       {map[string]string{"text": "new"}, "new", false, true, true},
		"blocks with text":              {map[string]string{"text": "new", "blocks": blocks}, "new", true, true, true},
		"blocks alone":                  {map[string]string{"blocks": blocks}, noFallback, true, true, true},
		"empty blocks drop them":        {map[string]string{"text": "new", "blocks": "[]"}, "new", false, true, true},
		"attachments alone keep blocks": {map[string]string{"attachments": `[{"text":"b"}]`}, "old", true, true, true},
		"empty attachments drop them":   {map[string]string{"text": "new", "attachments": "[]"}, "new", false, false, true},
		"empty metadata clears it":      {map[string]string{"text": "new", "metadata": "{}"}, "new", false, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, Options{}, func(t *testing.T, b *bench) {
				general := b.channel("general")
				posted := b.call("chat.postMessage", map[string]string{"channel": general, "text": "old", "attachments": `[{"text":"a"}]`,
					"blocks": `[{"type":"divider"}]`, "metadata": `{"event_type":"ask","event_payload":{"id":"1"}}`})
				ts, _ := posted.body["ts"].(string)
				test.args["channel"], test.args["ts"] = general, ts
				if got := b.call("chat.update", test.args); got.err() != "" {
					t.Fatal(got.body)
				}
				m := b.message(general, ts)
				if m.Text != test.text || (m.Blocks != nil) != test.blocks || (m.Attachments != nil) != test.attached || (m.Metadata != nil) != test.metadata {
					t.Errorf("after the update: %s", encode(m))
				}
				if m.Edited == nil {
					t.Error("not marked as edited")
				}
			})
		})
	}
}

func TestLongTextIsCutWithAWarning(t *testing.T) {
	bubble(t, Options{}, func(t *testing.T, b *bench) {
		got := b.call("chat.postMessage", map[string]string{"channel": b.channel("general"), "text": strings.Repeat("é", maxPostText-2) + "&&&"})
		message, _ := got.body["message"].(map[string]any)
		text, _ := message["text"].(string)
		if got.body["warning"] != "message_truncated" || text != strings.Repeat("é", maxPostText-2) {
			t.Errorf("warning %v, %d characters ending in %q", got.body["warning"], len([]rune(text)), text[len(text)-8:])
		}
	})
}

func TestMetadataIsReturnedOnlyWhenAskedFor(t *testing.T) {
	bubble(t, Options{}, func(t *testing.T, b *bench) {
		general := b.channel("general")
		parent := b.postCard("general")
		b.call("chat.postMessage", map[string]string{"channel": general, "text": "x", "thread_ts": parent,
			"metadata": `{"event_type":"ask","event_payload":{"id":"7"}}`})
		for _, all := range []bool{false, true} {
			messages, _, _, err := b.api.GetConversationReplies(&slack.GetConversationRepliesParameters{ChannelID: general, Timestamp: parent, IncludeAllMetadata: all})
			if err != nil {
				t.Fatal(err)
			}
			if got := messages[1].Metadata.EventType == "ask"; got != all {
				t.Errorf("include_all_metadata %t: metadata %+v", all, messages[1].Metadata)
			}
		}
	})
}

// A thread's parent counts its replies; the replies know their parent.
func TestThreads(t *testing.T) {
	bubble(t, Options{}, func(t *testing.T, b *bench) {
		general := b.channel("general")
		parent := b.postCard("general")
		if m := b.message(general, parent); m.ThreadTS != "" || m.ReplyCount != 0 {
			t.Errorf("a parent without replies: %s", encode(m))
		}
		var last string
		for _, name := range []string{"alice", "bob", "alice"} {
			ts, err := b.srv.SendMessage(MessageRequest{User: b.user(name), Channel: general, Text: "reply", ThreadTS: parent})
			if err != nil {
				t.Fatal(err)
			}
			last = ts
		}
		m := b.message(general, parent)
		if m.ThreadTS != parent || m.ReplyCount != 3 || m.LatestReply != last || m.ReplyUsersCount != 2 {
			t.Errorf("the parent: %s", encode(m))
		}
		if r := b.message(general, last); r.ThreadTS != parent || r.ParentUserID != b.w.App.BotUserID {
			t.Errorf("a reply: %s", encode(r))
		}
		history, err := b.api.GetConversationHistory(&slack.GetConversationHistoryParameters{ChannelID: general})
		if err != nil || len(history.Messages) != 1 {
			t.Errorf("history has %d messages (%v), want the parent alone", len(history.Messages), err)
		}
		b.call("chat.delete", map[string]string{"channel": general, "ts": parent})
		if m := b.message(general, parent); m == nil || m.Subtype != "tombstone" || m.ReplyCount != 3 {
			t.Errorf("a deleted parent leaves %s", encode(m))
		}
	})
}

// Whatever the page size, the pages of history and of a thread together are
// all of it, once, in order.
func TestPagesAreComplete(t *testing.T) {
	bubble(t, Options{NoRateLimits: true}, func(t *testing.T, b *bench) {
		general := b.channel("general")
		parent := b.postCard("general")
		var top, thread []string
		top, thread = append(top, parent), append(thread, parent)
		for n := range 25 {
			req := MessageRequest{User: b.user("bob"), Channel: general, Text: strconv.Itoa(n)}
			if n%2 == 0 {
				req.ThreadTS = parent
			}
			ts, err := b.srv.SendMessage(req)
			if err != nil {
				t.Fatal(err)
			}
			if n%2 == 0 {
				thread = append(thread, ts)
			} else {
				top = append(top, ts)
			}
		}
		slices.Reverse(top)
		for limit := 1; limit <= 30; limit++ {
			for method, want := range map[string][]string{"conversations.history": top, "conversations.replies": thread} {
				got := b.pages(method, map[string]string{"channel": general, "ts": parent, "limit": strconv.Itoa(limit)})
				if diff := cmp.Diff(want, got); diff != "" {
					t.Fatalf("%s by %d (-want +got):\n%s", method, limit, diff)
				}
			}
		}
		if got := b.call("conversations.history", map[string]string{"channel": general, "cursor": "nonsense"}); got.err() != "invalid_cursor" {
			t.Errorf("a wrong cursor: %v", got.body)
		}
	})
}

// pages follows the cursors and returns all ts.
func (b *bench) pages(method string, args map[string]string) []string {
	b.t.Helper()
	var out []string
	for range 100 {
		got := b.call(method, args)
		messages, _ := got.body["messages"].([]any)
		for _, m := range messages {
			out = append(out, m.(map[string]any)["ts"].(string))
		}
		more, _ := got.body["has_more"].(bool)
		metadata, _ := got.body["response_metadata"].(map[string]any)
		cursor, _ := metadata["next_cursor"].(string)
		if more != (cursor != "") {
			b.t.Fatalf("has_more %t with the cursor %q", more, cursor)
		}
		if !more {
			return out
		}
		args["cursor"] = cursor
	}
	b.t.Fatal("the pages don't end")
	return nil
}

func TestHistoryWindow(t *testing.T) {
	bubble(t, Options{NoRateLimits: true}, func(t *testing.T, b *bench) {
		general := b.channel("general")
		var ts []string
		for range 4 {
			ts = append(ts, b.postCard("general"))
			time.Sleep(time.Second)
		}
		for _, test := range []struct {
			oldest, latest, inclusive string
			want                      []string
		}{
			{ts[1], "", "", []string{ts[3], ts[2]}},
			{ts[1], ts[3], "true", []string{ts[3], ts[2], ts[1]}},
			{"", ts[1], "", []string{ts[0]}},
			{"0", "", "", []string{ts[3], ts[2], ts[1], ts[0]}},
		} {
			got := b.pages("conversations.history", map[string]string{"channel": general, "oldest": test.oldest, "latest": test.latest, "inclusive": test.inclusive})
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("%+v (-want +got):\n%s", test, diff)
			}
		}
	})
}

func TestPeople(t *testing.T) {
	bubble(t, Options{}, func(t *testing.T, b *bench) {
		type facts struct{ Deleted, Bot, Restricted, Ultra, Stranger, OtherTeam bool }
		for name, want := range map[string]facts{
			"alice": {}, "bob": {}, "carol": {},
			"gus":       {Restricted: true},
			"erin":      {Stranger: true, OtherTeam: true},
			"dora":      {Deleted: true},
			"deploybot": {Bot: true},
		} {
			u, err := b.api.GetUserInfo(b.user(name))
			if err != nil {
				t.Fatal(err)
			}
			got := facts{u.Deleted, u.IsBot, u.IsRestricted, u.IsUltraRestricted, u.IsStranger, u.TeamID != b.w.Team.ID}
			if got != want {
				t.Errorf("%s: %+v, want %+v", name, got, want)
			}
		}
		if _, err := b.api.GetUserInfo("U0"); err == nil || err.Error() != "user_not_found" {
			t.Errorf("nobody: %v", err)
		}
		members, _, err := b.api.GetUsersInConversation(&slack.GetUsersInConversationParameters{ChannelID: b.channel("general")})
		if err != nil || len(members) != 8 || slices.Contains(members, b.user("dora")) {
			t.Errorf("members of general: %v, %v", members, err)
		}
		groups, err := b.api.GetUserGroups()
		if err != nil || len(groups) != 1 {
			t.Fatalf("groups %v, %v", groups, err)
		}
		in, err := b.api.GetUserGroupMembers(groups[0].ID)
		if err != nil || !cmp.Equal(in, []string{b.user("bob"), b.user("carol")}) {
			t.Errorf("group members %v, %v", in, err)
		}
		if known := b.srv.Workspace().Usergroups; len(known) != 1 || known[0].ID != groups[0].ID || !cmp.Equal(known[0].Users, in) {
			t.Errorf("the control plane knows the groups %v", known)
		}
	})
}

func TestDirectMessages(t *testing.T) {
	bubble(t, Options{}, func(t *testing.T, b *bench) {
		im, _, already, err := b.api.OpenConversation(&slack.OpenConversationParameters{Users: []string{b.user("bob")}, ReturnIM: true})
		if err != nil || !already || !im.IsIM || im.User != b.user("bob") {
			t.Errorf("opened %+v, already %t, %v", im, already, err)
		}
		channel, _, err := b.api.PostMessage(b.user("bob"), slack.MsgOptionText("hello", false))
		if err != nil || channel != im.ID {
			t.Errorf("a post to a person went to %s, %v; want %s", channel, err, im.ID)
		}
		for users, want := range map[string]string{"U0": "user_not_found", b.user("dora"): "user_disabled", "": "users_list_not_supplied", "a,b": "missing_scope"} {
			if got := b.call("conversations.open", map[string]string{"users": users}); got.err() != want {
				t.Errorf("opening %q: %v, want %s", users, got.body, want)
			}
		}
	})
}

// One message a second in a channel passes for ever; more is told how long to
// wait, and another channel isn't affected.
func TestRateLimitOfPosts(t *testing.T) {
	bubble(t, Options{}, func(t *testing.T, b *bench) {
		post := func(channel string) answer {
			return b.call("chat.postMessage", map[string]string{"channel": b.channel(channel), "text": "x"})
		}
		for n := range 120 {
			if got := post("general"); got.err() != "" {
				t.Fatalf("post %d at one a second: %v", n, got.body)
			}
			time.Sleep(time.Second)
		}
		passed := 0
		var refused answer
		for range 10 {
			if refused = post("general"); refused.err() == "" {
				passed++
			}
		}
		if passed != int(tierPost.burst) {
			t.Errorf("%d passed at once", passed)
		}
		if refused.status != http.StatusTooManyRequests || refused.header.Get("Retry-After") != "1" || refused.err() != "ratelimited" {
			t.Errorf("refused with %d, Retry-After %q, %v", refused.status, refused.header.Get("Retry-After"), refused.body)
		}
		if got := post("ops-private"); got.err() != "" {
			t.Errorf("another channel: %v", got.body)
		}
		time.Sleep(time.Second)
		if got := post("general"); got.err() != "" {
			t.Errorf("after Retry-After: %v", got.body)
		}
	})
}

// For any times of calls, no more pass in a span than the burst and the rate allow.
func TestRateLimitHolds(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		gaps := rapid.SliceOfN(rapid.IntRange(0, 4000), 1, 60).Draw(rt, "gaps")
		var broken string
		synctest.Test(t, func(*testing.T) { broken = overruns(gaps) })
		if broken != "" {
			rt.Fatal(broken)
		}
	})
}

// overruns makes calls with these gaps between them and says where more passed
// than may.
func overruns(gapsMS []int) string {
	s := &Server{limits: map[string]*bucket{}}
	c := &apiCall{method: "chat.postMessage", args: args{"channel": "C"}}
	start, passed := time.Now(), 0
	for _, ms := range gapsMS {
		time.Sleep(time.Duration(ms) * time.Millisecond)
		wait := s.limited(c, tierPost)
		if wait == 0 {
			passed++
		}
		if most := tierPost.burst + time.Since(start).Seconds()*tierPost.perMinute/60; float64(passed) > most+1e-6 {
			return fmt.Sprintf("%d calls passed in %v", passed, time.Since(start))
		}
		if wait < 0 || wait > 1 {
			return fmt.Sprintf("told to wait %d seconds", wait)
		}
	}
	return ""
}

func TestPermalink(t *testing.T) {
	bubble(t, Options{}, func(t *testing.T, b *bench) {
		ts := b.postCard("general")
		link, err := b.api.GetPermalink(&slack.PermalinkParameters{Channel: b.channel("general"), Ts: ts})
		want := fmt.Sprintf("%sarchives/%s/p%s", benchURL, b.channel("general"), strings.ReplaceAll(ts, ".", ""))
		if err != nil || link != want {
			t.Errorf("%s, %v; want %s", link, err, want)
		}
		b.http.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
		for path, want := range map[string]string{link: "/#/" + b.channel("general") + "@" + ts, link + "?thread_ts=" + ts: "/#/" + b.channel("general") + "/" + ts + "@" + ts,
			link + "?thread_ts=//x": "", benchURL + "archives/C0/p1": ""} {
			res, err := b.http.Get(path)
			if err != nil {
				t.Fatal(err)
			}
			res.Body.Close()
			if got := res.Header.Get("Location"); got != want {
				t.Errorf("%s leads to %q, want %q", path, got, want)
			}
		}
	})
}

func TestReactions(t *testing.T) {
	bubble(t, Options{}, func(t *testing.T, b *bench) {
		ts := b.postCard("general")
		ref := slack.NewRefToMessage(b.channel("general"), ts)
		if err := b.api.AddReaction("eyes", ref); err != nil {
			t.Fatal(err)
		}
		if err := b.api.AddReaction("eyes", ref); err == nil || err.Error() != "already_reacted" {
			t.Errorf("the same again: %v", err)
		}
		if err := b.srv.React(MessageRef{User: b.user("bob"), Channel: b.channel("general"), TS: ts, Name: "eyes"}); err != nil {
			t.Fatal(err)
		}
		want := []Reaction{{Name: "eyes", Users: []string{b.w.App.BotUserID, b.user("bob")}, Count: 2}}
		if diff := cmp.Diff(want, b.message(b.channel("general"), ts).Reactions); diff != "" {
			t.Errorf("reactions (-want +got):\n%s", diff)
		}
	})
}

// A file goes up, is shared in a thread, and comes down again for the token.
func TestFiles(t *testing.T) {
	bubble(t, Options{}, func(t *testing.T, b *bench) {
		parent := b.postCard("general")
		content := strings.Repeat("all of it\n", 7000)
		f, err := b.api.UploadFile(slack.UploadFileParameters{Channel: b.channel("general"), ThreadTimestamp: parent, Filename: "args.json",
			Title: "Arguments", Content: content, FileSize: len(content), InitialComment: "the <whole> thing"})
		if err != nil {
			t.Fatal(err)
		}
		info, _, _, err := b.api.GetFileInfo(f.ID, 0, 0)
		if err != nil {
			t.Fatal(err)
		}
		var down bytes.Buffer
		if err := b.api.GetFile(info.URLPrivateDownload, &down); err != nil || down.String() != content {
			t.Errorf("downloaded %d bytes, %v", down.Len(), err)
		}
		messages, err := b.srv.Messages(b.channel("general"), parent)
		if err != nil || len(messages) != 2 || messages[1].Subtype != "file_share" || messages[1].Text != "the &lt;whole&gt; thing" || messages[1].Files[0].Title != "Arguments" {
			t.Errorf("shared as %s, %v", encode(messages), err)
		}
		res, err := b.http.Get(info.URLPrivate)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		if page, err := io.ReadAll(res.Body); err != nil || !strings.Contains(string(page), "Sign in") || strings.Contains(string(page), content) {
			t.Errorf("without a token: %s, %v", page, err)
		}
	})
}
