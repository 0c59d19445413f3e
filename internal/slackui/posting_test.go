package slackui

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"approvalbot/internal/devslack"
)

// posts are the bot's messages that tools wrote, in a conversation.
func (w *world) posts(channel string) (out []devslack.Message) {
	w.t.Helper()
	messages, err := w.slack.Messages(channel, "")
	if err != nil {
		w.t.Fatal(err)
	}
	for _, m := range messages {
		if strings.Contains(string(m.Metadata), `"post"`) {
			out = append(out, m)
		}
	}
	return out
}

func (w *world) post(p Post) (Posted, error) {
	w.t.Helper()
	posted, err := w.ui.Post(w.t.Context(), p)
	synctest.Wait()
	return posted, err
}

// unposts checks that a message is refused in words; asked says that only Slack can know.
func (w *world) unposts(p Post, words string, asked bool) *PostError {
	w.t.Helper()
	before := w.calls("chat.postMessage", 0)
	_, err := w.post(p)
	e, ok := errors.AsType[*PostError](err)
	if !ok || !strings.Contains(e.Message, words) {
		w.t.Errorf("%+v: %v, want %q", p, err, words)
		return &PostError{}
	}
	if n := w.calls("chat.postMessage", 0); n != before && !asked {
		w.t.Errorf("%+v: Slack was asked to post it", p)
	}
	return e
}

// A message stands where it was meant to, says exactly what it should, and whose it is.
func TestPost(t *testing.T) {
	inWorld(t, func(w *world) {
		t := w.t
		general := w.channel("general")
		bob := w.user("bob")
		posted, err := w.post(Post{
			To: "#general", Text: "Deployed <@" + bob + "> <@" + w.user("alice") + "> <!channel> @here & <https://x.example|good>: see https://ci.example/1?a=b.\t\nOr not. \n",
			Mention: []string{bob}, For: []string{w.user("alice"), "token:ci"}, Run: "run_1",
		})
		if err != nil || posted.Channel != general || posted.TS == "" {
			t.Fatalf("%+v, %v", posted, err)
		}
		m := w.posts(general)
		if len(m) != 1 {
			t.Fatalf("%d messages", len(m))
		}
		var blocks []struct {
			Type     string
			Elements []struct {
				Type, Text string
				Elements   []struct {
					Type, Text, URL string
					UserID          string `json:"user_id"`
				}
			}
		}
		if err := json.Unmarshal(m[0].Blocks, &blocks); err != nil {
			t.Fatal(err)
		}
		var said strings.Builder
		for _, e := range blocks[0].Elements[0].Elements {
			said.WriteString("[" + e.Type + " " + e.Text + e.UserID + "]")
		}
		want := "[text Deployed ][user " + bob + "][text  ][text <@" + w.user("alice") + ">][text  <!channel> @here & <][link https://x.example][text |good>: see ][link https://ci.example/1?a=b][text .\nOr not.]"
		if said.String() != want {
			t.Errorf("it says  %s\nnot      %s", said.String(), want)
		}
		if by := blocks[1].Elements[0].Text; by != "Posted by an agent for alice, ci (over HTTP)." || blocks[1].Elements[0].Type != "plain_text" {
			t.Errorf("it is by %q", by)
		}
		if !strings.Contains(m[0].Text, "&lt;!channel&gt;") || strings.Contains(m[0].Text, "<!channel>") {
			t.Errorf("the fallback is %q", m[0].Text)
		}
		// To a person, by their id and any of their names; in a thread of a channel, by its id and name.
		if posted, err = w.post(Post{To: bob, Name: "@BOB", Text: "Hi"}); err != nil || len(w.posts(posted.Channel)) != 1 {
			t.Errorf("%+v, %v", posted, err)
		}
		posted, err = w.post(Post{To: general, Name: "#general", Thread: m[0].TS, Text: "More"})
		if replies, _ := w.slack.Messages(general, m[0].TS); err != nil || len(replies) != 2 || replies[1].TS != posted.TS {
			t.Errorf("%+v, %v, %d in the thread", posted, err, len(replies))
		}
	})
}

// Secrets stay here, and what can't be seen is shown.
func TestPostHidesSecrets(t *testing.T) {
	inWorld(t, func(w *world) {
		t := w.t
		posted, err := w.post(Post{To: "#general", Text: "password=correct-horse-battery-staple \u202ex"})
		if err != nil || posted.Hidden != 1 {
			t.Fatalf("%+v, %v", posted, err)
		}
		m := w.posts(posted.Channel)[0]
		if all := m.Text + string(m.Blocks); strings.Contains(all, "battery") || strings.Contains(all, "\u202e") {
			t.Errorf("got %s", all)
		}
	})
}

// What isn't as the call says is refused before anything is sent.
func TestPostIsRefused(t *testing.T) {
	inWorld(t, func(w *world) {
		bob, general := w.user("bob"), w.channel("general")
		kinds := map[devslack.Kind]string{}
		for _, u := range w.ws.Users {
			kinds[u.Kind] = u.ID
		}
		nameOf := func(id string) string {
			for _, u := range w.ws.Users {
				if u.ID == id {
					return u.Name
				}
			}
			return ""
		}
		w.unposts(Post{To: bob, Name: "alice", Text: "x"}, "is bob, not alice", false)
		w.unposts(Post{To: "U0NOBODY", Name: "x", Text: "x"}, "nobody in Slack", false)
		w.unposts(Post{To: "#nowhere", Text: "x"}, "no channel #nowhere", false)
		w.unposts(Post{To: general, Name: "random", Text: "x"}, "is called #general, not #random", false)
		w.unposts(Post{To: "C0NOWHERE", Name: "x", Text: "x"}, "no channel C0NOWHERE", false)
		w.unposts(Post{To: "#general", Text: "x", Mention: []string{"U0NOBODY"}}, "nobody in Slack", false)
		w.unposts(Post{To: "#general", Text: "x", Mention: make([]string, 11)}, "10 is the most", false)
		w.unposts(Post{To: kinds[devslack.KindBot], Name: nameOf(kinds[devslack.KindBot]), Text: "x"}, "is a bot", false)
		w.unposts(Post{To: kinds[devslack.KindExternal], Name: nameOf(kinds[devslack.KindExternal]), Text: "x"}, "another organization", false)
		w.unposts(Post{To: kinds[devslack.KindDeactivated], Name: nameOf(kinds[devslack.KindDeactivated]), Text: "x"}, "deactivated", false)
		w.unposts(Post{To: "#general", Thread: "1700000000.000100", Text: "x"}, "can't be replied to", true)
		if e := w.unposts(Post{To: "#general", Text: strings.Repeat("&", 12_000)}, "too long", false); e.Unknown {
			t.Error("it is known")
		}
		w.fault(devslack.Fault{Method: "chat.postMessage", Error: "not_in_channel"})
		w.unposts(Post{To: "#general", Text: "x"}, "/invite @", true)
		w.fault(devslack.Fault{Method: "chat.postMessage", Error: "never_heard_of"})
		w.unposts(Post{To: "#general", Text: "x"}, "Slack didn't take the message (never_heard_of)", true)
		if n := len(w.posts(general)); n != 0 {
			t.Errorf("%d messages were posted", n)
		}
	})
}

// Slack's limits are kept, also with those of the cards; a "too many requests" is waited for.
func TestPostKeepsToTheRate(t *testing.T) {
	inWorld(t, func(w *world) {
		t := w.t
		began := time.Now()
		for range 6 {
			if _, err := w.post(Post{To: "#general", Text: "x"}); err != nil {
				t.Fatal(err)
			}
		}
		if d := time.Since(began); d < 4*time.Second || d > 5*time.Second {
			t.Errorf("6 messages took %s", d)
		}
		if n := w.calls("chat.postMessage", 429); n != 0 {
			t.Errorf("Slack said %d times that it is too much", n)
		}
		three := 3
		w.fault(devslack.Fault{Method: "chat.postMessage", RetryAfter: &three})
		began = time.Now()
		if _, err := w.post(Post{To: "#general", Text: "x"}); err != nil || time.Since(began) < 3*time.Second {
			t.Errorf("%v after %s", err, time.Since(began))
		}
		hour := 3600
		w.fault(devslack.Fault{Method: "chat.postMessage", RetryAfter: &hour})
		w.unposts(Post{To: "#general", Text: "x"}, "Slack takes no more messages", true)
		if n := len(w.posts(w.channel("general"))); n != 7 {
			t.Errorf("%d messages", n)
		}
	})
}

// A message whose post isn't answered is found, or its outcome is said to be unknown. It is never sent twice.
func TestPostIsSentOnce(t *testing.T) {
	inWorld(t, func(w *world) {
		t := w.t
		general, bob := w.channel("general"), w.user("bob")
		posted := func() int { return len(w.posts(general)) }

		w.fault(devslack.Fault{Method: "chat.postMessage", DropResponse: true})
		p, err := w.post(Post{To: "#general", Text: "one"})
		if err != nil || posted() != 1 || p.TS != w.posts(general)[0].TS {
			t.Fatalf("%+v, %v, %d messages", p, err, posted())
		}
		// In a thread, and to a person.
		root := p.TS
		w.fault(devslack.Fault{Method: "chat.postMessage", DropResponse: true})
		if p, err = w.post(Post{To: "#general", Thread: root, Text: "two"}); err != nil || p.TS == "" {
			t.Errorf("%+v, %v", p, err)
		}
		w.fault(devslack.Fault{Method: "chat.postMessage", DropResponse: true})
		if p, err = w.post(Post{To: bob, Name: "bob", Text: "three"}); err != nil || len(w.posts(p.Channel)) != 1 {
			t.Errorf("%+v, %v", p, err)
		}
		// It didn't get there, and nobody can know.
		calls := w.calls("chat.postMessage", 0)
		w.fault(devslack.Fault{Method: "chat.postMessage", Error: "fatal_error"})
		if e := w.unposts(Post{To: "#general", Text: "four"}, "isn't known whether", true); !e.Unknown {
			t.Error("it isn't said to be unknown")
		}
		w.fault(devslack.Fault{Method: "chat.postMessage", DropResponse: true})
		w.fault(devslack.Fault{Method: "conversations.history", Times: 2, Error: "fatal_error"})
		w.unposts(Post{To: "#general", Text: "five"}, "isn't known whether", true)
		if n := w.calls("chat.postMessage", 0) - calls; n > 2 {
			t.Errorf("%d calls for two messages", n)
		}
		// A stop while it is under way doesn't make it unknown.
		w.fault(devslack.Fault{Method: "chat.postMessage", DelayMS: 500})
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		if _, err := w.ui.Post(ctx, Post{To: "#general", Text: "six"}); err != nil {
			t.Error(err)
		}
		var texts []string
		for _, m := range w.posts(general) {
			texts = append(texts, m.Text)
		}
		if got := strings.Join(texts, " "); got != "one two five six" && got != "one five six" {
			t.Errorf("there stands %q", got)
		}
	})
}

func TestFind(t *testing.T) {
	inWorld(t, func(w *world) {
		t := w.t
		people, more, err := w.ui.Find(t.Context(), "ALICE")
		if err != nil || more || len(people) != 1 || people[0].ID != w.user("alice") || people[0].Kind != "full member" {
			t.Errorf("%+v, %t, %v", people, more, err)
		}
		if people, _, err = w.ui.Find(t.Context(), w.user("bob")); err != nil || len(people) != 1 || people[0].Handle != "bob" {
			t.Errorf("%+v, %v", people, err)
		}
		for _, u := range w.ws.Users {
			people, _, err := w.ui.Find(t.Context(), u.Name)
			if err != nil {
				t.Error(err)
			}
			found := len(people) > 0 && people[0].ID == u.ID
			if listed := u.Kind != devslack.KindDeactivated && u.Kind != devslack.KindExternal; found != listed {
				t.Errorf("%s (%s): %+v", u.Name, u.Kind, people)
			}
			// By id anyone is found, and what they are is said.
			if people, _, err := w.ui.Find(t.Context(), u.ID); err != nil || len(people) != 1 || people[0].Kind == "unknown" {
				t.Errorf("%s: %+v, %v", u.ID, people, err)
			}
		}
		if people, _, err = w.ui.Find(t.Context(), "U0NOBODY"); err != nil || len(people) != 0 {
			t.Errorf("%+v, %v", people, err)
		}
		w.fault(devslack.Fault{Method: "users.list", Error: "fatal_error"})
		if _, _, err = w.ui.Find(t.Context(), "carl"); err != nil {
			t.Errorf("the list is kept for a minute: %v", err)
		}
		w.after(2 * time.Minute)
		if _, _, err = w.ui.Find(t.Context(), "carl"); err == nil || !strings.Contains(err.Error(), "fatal_error") {
			t.Errorf("got %v", err)
		}
	})
}
