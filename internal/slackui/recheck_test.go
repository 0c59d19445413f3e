package slackui

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"approvalbot/internal/devslack"
	"approvalbot/internal/language"
	"approvalbot/internal/ledger"
	"approvalbot/internal/redact"
)

// renderings are the hashes of everything that each version says in a last state, for the stories that the cards are
// tested with.
var renderings = map[int]string{
	1: "74562d3dad8d2dfa1581ce4ab1463e9aeb1648c0c7d5709e2a0b21f16f314e88",
}

// What people were shown can be computed again only by the version that showed it. If this fails because a card, a
// progress message or an answer has changed: raise rendererVersion (unless that version was never released) and write down
// the hash.
func TestRendererVersion(t *testing.T) {
	h := sha256.New()
	for _, name := range slices.Sorted(maps.Keys(cardStories)) {
		s := cardStories[name]()
		if endingOf(s.call("call_1")) == endPending {
			continue
		}
		s.end(ledger.RunCancelled, "It is **done**.", "it was stopped")
		all := append([]rendering{s.card(), anyones.progress(message("do it"), &s.run)}, anyones.answer(&s.run)...)
		for _, r := range all {
			fmt.Fprintln(h, name, r.thing.Kind, r.hash(), plain(r).hash())
		}
	}
	if got := hex.EncodeToString(h.Sum(nil)); got != renderings[rendererVersion] {
		t.Errorf("renderer version %d renders %s, not %s", rendererVersion, got, renderings[rendererVersion])
	}
}

// recheck renders what stands in Slack again, from the journal alone.
func (w *world) recheck() *Recheck {
	w.t.Helper()
	c := &Recheck{}
	report, err := w.journal.Verify(w.t.Context(), ledger.VerifyOptions{Check: c.Event})
	if err != nil || !report.OK() {
		w.t.Errorf("%v %v", err, report.Problem)
	}
	if len(c.book.runs)+len(c.book.things)+len(c.book.mail) != 0 {
		w.t.Errorf("it remembers %v %v %v of runs that are settled", c.book.runs, c.book.things, c.book.mail)
	}
	return c
}

// What Slack confirmed can be computed again, years later and without the tokens of the time.
func TestRecheck(t *testing.T) {
	inWorld(t, func(w *world) {
		thread := w.say("alice", "@bot `date`")
		w.click("bob", w.card(thread, 0), actionApprove)
		w.settled()
		thread = w.say("alice", "@bot `rm -rf build`")
		w.click("bob", w.card(thread, 0), actionDeny)
		w.settled()
		if c := w.recheck(); c.Renderings != 6 || c.Other != 0 {
			t.Errorf("%d renderings computed again, %d not, want 6 and 0", c.Renderings, c.Other)
		}
	})
}

// What was rendered in another language is computed again in that one, as the journal says.
func TestRecheckInAnotherLanguage(t *testing.T) {
	inWorld(t, func(w *world) {
		thread := w.say("alice", "@bot `date`")
		w.click("bob", w.card(thread, 0), actionDeny)
		w.settled()
		if c := w.recheck(); c.Renderings != 3 || c.Other != 0 {
			t.Errorf("%d renderings computed again, %d not, want 3 and 0", c.Renderings, c.Other)
		}
		n := 0
		for e, err := range w.journal.Read(t.Context(), 0, ledger.Filter{}) {
			if b, ok := e.Body.(*ledger.MessageSettled); ok && err == nil {
				n++
				if b.Language != string(language.Chinese) {
					t.Errorf("the %s is recorded in the language %q", b.Thing.Kind, b.Language)
				}
			}
		}
		if n != 3 {
			t.Errorf("%d messages are settled", n)
		}
	}, func(w *world) {
		w.config = func(c *Config) { c.Language = language.Chinese }
	})
}

// A rendering in which one of our own tokens was hidden can't be computed when that isn't known any more. Nobody changed it.
func TestRecheckWithoutTheTokensOfTheTime(t *testing.T) {
	inWorld(t, func(w *world) {
		thread := w.say("alice", "@bot `echo our-own-secret-token`")
		w.click("bob", w.card(thread, 0), actionDeny)
		w.settled()
		if c := w.recheck(); c.Renderings != 1 || c.Other != 2 { // the answer, but not the card and the progress
			t.Errorf("%d renderings computed again, %d not\n%s", c.Renderings, c.Other, w.dump())
		}
	}, func(w *world) {
		w.config = func(c *Config) { c.Redactor = redact.New("our-own-secret-token") }
	})
}

// Plain blocks are computed again, too.
func TestRecheckOfPlainBlocks(t *testing.T) {
	inWorld(t, func(w *world) {
		w.fault(devslack.Fault{Method: "chat.postMessage", Match: `"kind":"card"`, Times: 1, Error: "invalid_blocks"})
		thread := w.say("alice", "@bot `date`")
		w.click("bob", w.card(thread, 0), actionDeny)
		w.settled()
		if c := w.recheck(); c.Renderings != 3 || c.Other != 0 {
			t.Errorf("%d renderings computed again, %d not\n%s", c.Renderings, c.Other, w.dump())
		}
	})
}

// A rendering that isn't the journal's is named, and one of another version isn't taken for it.
func TestRecheckNamesAWrongRendering(t *testing.T) {
	for _, c := range []struct {
		what, says string
		change     func(*ledger.MessageSettled)
	}{
		{"as it was", "", func(*ledger.MessageSettled) {}},
		{"another rendering", "not what Slack confirmed", func(b *ledger.MessageSettled) { b.Rendering = strings.Repeat("0", 64) }},
		{"another version", "", func(b *ledger.MessageSettled) { b.Rendering, b.Renderer = strings.Repeat("0", 64), 99 }},
		{"a language of a later version", "", func(b *ledger.MessageSettled) { b.Rendering, b.Language = strings.Repeat("0", 64), "tlh" }},
		{"another language than was rendered", "not what Slack confirmed", func(b *ledger.MessageSettled) { b.Language = "zh" }},
		{"a card that is nobody's", "none of its run's", func(b *ledger.MessageSettled) { b.Thing.ID = "other" }},
		{"gone", "", func(b *ledger.MessageSettled) { b.Rendering, b.Gone = strings.Repeat("0", 64), "message_not_found" }},
	} {
		s := askedShell("date").deny("call_1", bob, "no")
		a := s.call("call_1").Approval
		b := &ledger.MessageSettled{Thing: ledger.Thing{Kind: kindCard, ID: a.Approval}, Channel: "C0GENERAL", TS: "1.2",
			Rendering: anyones.card(&s.run, s.call("call_1"), a.Until()).hash(), Renderer: rendererVersion}
		c.change(b)
		r := &Recheck{}
		var err error
		for _, e := range append(s.events, ledger.Event{Seq: s.seq + 1, Run: "run-1", Call: "call_1", Body: b}) {
			if started, ok := e.Body.(*ledger.RunStarted); ok {
				started.Place = ledger.Place{Team: "T0TEAM", Channel: "C0GENERAL"}
			}
			if err = r.Event(e); err != nil {
				break
			}
		}
		switch {
		case c.says == "" && err != nil:
			t.Errorf("%s: %v", c.what, err)
		case c.says != "" && (err == nil || !strings.Contains(err.Error(), c.says)):
			t.Errorf("%s: %v, want %q", c.what, err, c.says)
		}
	}
}
