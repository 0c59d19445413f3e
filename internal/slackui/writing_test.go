package slackui

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"approvalbot/internal/ledger"
)

// What a model writes is shown as it begins: whole words, without secrets, and gone with the next event of the run.
func TestWriting(t *testing.T) {
	v := testRenderer()
	for name, c := range map[string]struct{ said, want string }{
		"a word that isn't whole":  {"Deploy", "Writing (6 characters so far)"},
		"words":                    {"The deploy is do", "Writing: “The deploy is” (16 characters so far)"},
		"lines":                    {"# Plan\n\n1. Look at\tit ", "Writing: “# Plan 1. Look at it” (22 characters so far)"},
		"a secret":                 {"It is our-own-secret-token now ", "Writing: “It is ‹secret, 20 characters› now” (31 characters so far)"},
		"half a secret":            {"It is our-own-secret", "Writing: “It is” (20 characters so far)"},
		"a key over many lines":    {"-----BEGIN PRIVATE KEY-----\nabc def ", "Writing (36 characters so far)"},
		"characters of many bytes": {"日本 語", "Writing: “日本” (4 characters so far)"},
	} {
		s := newStory()
		w := &writing{said: c.said, chars: len([]rune(c.said))}
		r := v.progressNow(message("x"), &s.run, w)
		check := checkMessage(r)
		shown := check.shown.String()
		if len(check.problems) > 0 || !strings.Contains(shown, c.want) {
			t.Errorf("%s: %q %q, want %q", name, check.problems, shown, c.want)
		}
		if !strings.Contains(fmt.Sprint(check.actions), actionStop) {
			t.Errorf("%s: there is no Stop", name)
		}
		s.end(ledger.RunSucceeded, "ok", "")
		if got, want := v.progressNow(message("x"), &s.run, w).hash(), v.progress(message("x"), &s.run).hash(); got != want {
			t.Errorf("%s: what was on its way is in the last state", name)
		}
	}
}

// However long the text becomes, little of it is kept, and it is cut between characters.
func TestWritingIsBounded(t *testing.T) {
	b, s := newBook(), newStory()
	b.runs["run-1"] = &s.run
	now := start
	for range 1000 {
		b.write("run-1", "wörter 日本 ", 7, now)
		b.write("another", "unheard", 7, now)
	}
	w := b.writing["run-1"]
	if len(w.said) > maxHeard || w.chars != 10_000 || len(b.writing) != 1 {
		t.Errorf("%d bytes of %d characters are kept, of %d runs", len(w.said), w.chars, len(b.writing))
	}
	if got := w.beginning(testRenderer()); strings.Contains(got, "\uFFFD") || strings.Contains(got, `\x{`) {
		t.Errorf("%q", got)
	}
	for _, e := range []struct {
		seq  int64
		body ledger.Body
		ends bool
	}{{7, &ledger.ModelCompleted{}, false}, {8, &ledger.MessagePosted{}, false}, {8, &ledger.ModelFailed{}, true}} {
		b.apply(ledger.Event{Seq: e.seq, Run: "run-1", Body: e.body}, testRenderer())
		if _, on := b.writing["run-1"]; on == e.ends {
			t.Errorf("event %d (%s): still on its way %t", e.seq, e.body.Kind(), on)
		}
	}
}

// In Slack: seldom, after what people wait for, and replaced by the end.
func TestWritingInSlack(t *testing.T) {
	inWorld(t, func(w *world) {
		w.agent.hold = make(chan struct{})
		thread := w.say("alice", "@bot `date`")
		close(w.agent.hold)
		card := w.card(thread, 0)
		run := w.events("run_started")[0].Run
		updates := w.calls("chat.update", 0)
		for range 300 { // half a minute of a stream
			w.ui.Delta(run, "word ")
			w.after(100 * time.Millisecond)
		}
		if n := w.calls("chat.update", 0) - updates; n < 5 || n > 11 {
			t.Errorf("%d updates within 30 seconds", n)
		}
		progress := func() string { return string(w.things(thread, kindProgress)[0].Blocks) }
		if !strings.Contains(progress(), "Writing: “word word") {
			t.Error(progress())
		}
		w.click("bob", card, actionApprove)
		w.settled()
		if strings.Contains(progress(), "Writing") {
			t.Error("it still writes:", progress())
		}
		if len(w.ui.outbox.book.writing) != 0 {
			t.Error("a run that is over is remembered")
		}
		w.ui.Delta(run, "too late ")
		if c := w.recheck(); c.Other != 0 {
			t.Errorf("%d renderings can't be computed again", c.Other)
		}
	})
}
