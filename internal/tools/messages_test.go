package tools

import (
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// A recorder is a messenger that keeps what it is given. The real one is tested against the local Slack.
type recorder struct {
	posts  []Message
	people []Contact
	more   bool
	err    error
}

func (r *recorder) Post(_ context.Context, m Message) (Posted, error) {
	r.posts = append(r.posts, m)
	return Posted{Channel: "C1", TS: "1700000000.000100", Hidden: 1}, r.err
}

func (r *recorder) Find(context.Context, string) ([]Contact, bool, error) {
	return r.people, r.more, r.err
}

func TestPostMessage(t *testing.T) {
	r := &recorder{}
	tool := &postMessage{m: r}
	ctx := WithCaller(t.Context(), Caller{Run: "run_1", Call: "c1", Requesters: []string{"U1"}})
	args := arguments(t, tool, members{"to": "U0BOB", "name": "Bob", "text": "Hi <@U2> <@U3>, <@U2> and <!channel>"})
	p, err := tool.Describe(args)
	if err != nil {
		t.Fatal(err)
	}
	want := Preview{
		Summary: "Post a message to Bob (U0BOB)", Target: "U0BOB", Kind: KindText, Body: "Hi <@U2> <@U3>, <@U2> and <!channel>",
		Notes: []string{
			`Only if U0BOB is called "Bob".`, "It mentions U2, U3, who will be notified.",
			"What reads like a mention of a channel or a group stays text and notifies nobody.",
			"It can't be taken back. Under it stands on whose behalf it was posted.",
		},
	}
	if diff := cmp.Diff(want, p); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	out, err := tool.Call(ctx, args)
	if err != nil || out.Text != "Posted to Bob (U0BOB) (channel C1, message 1700000000.000100). Of 1 secret only the length was posted." {
		t.Errorf("got %q, %v", out.Text, err)
	}
	sent := []Message{{To: "U0BOB", Name: "Bob", Text: "Hi <@U2> <@U3>, <@U2> and <!channel>", Mention: []string{"U2", "U3"}, Caller: CallerOf(ctx)}}
	if diff := cmp.Diff(sent, r.posts); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if d := DemandsOf(tool); !d.Ask || d.Risk != "high" {
		t.Errorf("it demands %+v", d)
	}
	if a := tool.Spec().Annotations; a.ReadOnly() || a.Idempotent() || !a.OpenWorld() {
		t.Error("it calls itself harmless")
	}
	if f := FactsOf(tool, args); f.Host != "slack.com" {
		t.Errorf("facts %+v", f)
	}

	r.err = errorf(CodeUnknown, "Nobody knows.")
	_, err = tool.Call(ctx, args)
	wantCode(t, err, CodeUnknown)

	n := len(r.posts)
	for _, tt := range []struct {
		args members
		text string
	}{
		{members{"to": "general", "text": "x"}, "#name"},
		{members{"to": "D0123", "name": "x", "text": "x"}, "#name"},
		{members{"to": "bob@example.com", "text": "x"}, "#name"},
		{members{"to": "#a b", "text": "x"}, "#name"},
		{members{"to": "#<!channel>", "text": "x"}, "#name"},
		{members{"to": "U0BOB", "text": "x"}, "give its name"},
		{members{"to": "C0", "name": " ", "text": "x"}, "give its name"},
		{members{"to": "#general", "name": "x", "text": "x"}, "needs none"},
		{members{"to": "U0BOB", "name": "Bob\nDeny", "text": "x"}, "control character"},
		{members{"to": "U0BOB", "name": "Bob", "thread": "1700000000.000100", "text": "x"}, "not with a person"},
		{members{"to": "#general", "text": " \n"}, "blank"},
	} {
		a := arguments(t, tool, tt.args)
		_, err := tool.Describe(a)
		if e := wantCode(t, err, CodeInvalidArguments); !strings.Contains(e.Message, tt.text) {
			t.Errorf("%v: %q", tt.args, e.Message)
		}
		_, err = tool.Call(ctx, a)
		wantCode(t, err, CodeInvalidArguments)
	}
	stopped, cancel := context.WithCancel(ctx)
	cancel()
	_, err = tool.Call(stopped, args)
	wantCode(t, err, CodeAborted)
	if len(r.posts) != n {
		t.Error("something was posted")
	}
}

// What will be posted, where, and whom it notifies, can be read from the preview.
func TestPostPreviewIsComplete(t *testing.T) {
	tool := &postMessage{}
	rapid.Check(t, func(rt *rapid.T) {
		m := members{"text": "x" + rapid.StringOfN(rapid.Rune(), 0, 100, -1).Draw(rt, "text")}
		switch rapid.IntRange(0, 2).Draw(rt, "to") {
		case 0:
			m["to"] = "#" + rapid.StringMatching(`[a-z0-9_-]{1,20}`).Draw(rt, "channel")
		case 1:
			m["to"], m["name"] = "U0BOB", rapid.StringMatching(`[A-Za-z]( ?[A-Za-z"\\]){0,20}`).Draw(rt, "name")
		case 2:
			m["to"], m["name"], m["thread"] = "C0X", "general", "1700000000.000100"
		}
		args := arguments(t, tool, m)
		p, err := tool.Describe(args)
		if err != nil {
			rt.Fatal(err)
		}
		all := p.Summary + "\n" + strings.Join(p.Notes, "\n")
		for _, name := range []string{"to", "thread", "name"} {
			if v, ok := m[name].(string); ok && !strings.Contains(all, v) {
				rt.Fatalf("%s %q isn't in %q", name, v, all)
			}
		}
		if p.Body != m["text"] || strings.Contains(p.Summary, "\n") {
			rt.Fatalf("%q is shown as %+v", m["text"], p)
		}
	})
}

func TestLookupUser(t *testing.T) {
	r := &recorder{people: []Contact{{"U1", "Alice A.", "alice", "full member"}, {"U2", "Alice\nB", "al", "guest"}}, more: true}
	tool := &lookupUser{m: r}
	out, err := tool.Call(t.Context(), arguments(t, tool, members{"query": "@alice"}))
	if err != nil || out.Text != "U1: Alice A. (@alice), full member\nU2: Alice … (@al), guest\n[There are more; give more of the name.]" || !out.Truncated {
		t.Errorf("got %+v, %v", out, err)
	}
	for query, want := range map[string]string{"<@U123>": "U123", " @bob ": "bob", "U123": "U123", "Bob B": "Bob B"} {
		if a, err := tool.parse(arguments(t, tool, members{"query": query})); err != nil || a.Query != want {
			t.Errorf("%q is %q, %v", query, a.Query, err)
		}
	}
	for _, query := range []string{" ", "@", "a@b.example", "a\x00"} {
		_, err := tool.Call(t.Context(), arguments(t, tool, members{"query": query}))
		wantCode(t, err, CodeInvalidArguments)
	}
	r.people = nil
	_, err = tool.Call(t.Context(), arguments(t, tool, members{"query": "nobody"}))
	wantCode(t, err, CodeNotFound)
	// It is a look at what everyone in the workspace sees.
	if a := tool.Spec().Annotations; !a.ReadOnly() || a.Destructive() || a.OpenWorld() {
		t.Error("it asks")
	}
}

// What a policy gets to know of a path is relative, clean, and there for every file tool.
func TestPathFacts(t *testing.T) {
	for _, tool := range []Tool{&readFile{&workspace{}}, &writeFile{&workspace{}}, &editFile{&workspace{}}, &listFiles{&workspace{}}, &searchFiles{&workspace{}}} {
		for path, want := range map[string]string{"a": "a", "./a//b/": "a/b", "../x": "", "/etc/passwd": "", "a\nb": ""} {
			if got := FactsOf(tool, []byte(`{"path":`+quoted(path)+`}`)); got.Path != want {
				t.Errorf("%s %q: %q, want %q", tool.Spec().Name, path, got.Path, want)
			}
		}
	}
	if got := FactsOf(&listFiles{&workspace{}}, []byte(`{}`)); got.Path != "." {
		t.Errorf("got %q", got.Path)
	}
}

func quoted(s string) string { return `"` + strings.ReplaceAll(s, "\n", `\n`) + `"` }
