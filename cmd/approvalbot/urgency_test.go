package main

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"approvalbot/internal/devslack"
)

// urgent are the settings that serve has by default, for scenarios in which nobody answers at first.
func urgent(s *Settings) {
	s.Timeout, s.Remind, s.MoreTime = 10*time.Minute, 50, time.Hour
}

// pick chooses an entry of a card's menu.
func (w *world) pick(user string, c shown, action string) devslack.Receipt {
	w.t.Helper()
	r, err := w.slack.Click(context.Background(), devslack.ActionRequest{
		User: w.user(user), Channel: w.general(), TS: c.ts, ActionID: "more", Value: action + "." + c.buttons["deny"],
	})
	if err != nil {
		w.t.Fatalf("%s picks %s: %v", user, action, err)
	}
	w.pass(5 * time.Second)
	return r
}

// offers tells whether a card's menu has an entry.
func (w *world) offers(thread, action string) bool {
	w.t.Helper()
	messages, err := w.slack.Messages(w.general(), thread)
	if err != nil {
		w.t.Fatal(err)
	}
	for _, m := range messages {
		if strings.Contains(string(m.Metadata), `"card"`) && strings.Contains(string(m.Blocks), `"value":"`+action+".") {
			return true
		}
	}
	return false
}

// nudges are the messages of a conversation that say that something waits, or did.
func (w *world) nudges(channel, thread string) (all []shown) {
	w.t.Helper()
	messages, err := w.slack.Messages(channel, thread)
	if err != nil {
		w.t.Fatal(err)
	}
	for _, m := range messages {
		if strings.Contains(string(m.Metadata), `"nudge"`) {
			all = append(all, read(m))
		}
	}
	return all
}

// letters are the nudges that somebody got as direct messages.
func (w *world) letters(user string) []shown {
	w.t.Helper()
	for _, c := range w.slack.Workspace().Channels {
		if c.Kind == "im" && len(c.Members) > 0 && strings.Contains(strings.Join(c.Members, " "), w.user(user)) {
			return w.nudges(c.ID, "")
		}
	}
	return nil
}

// rules writes a policy file.
func rules(t testing.TB, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "policy.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// A reminder in the thread, one by direct message, then an answer: both end as one quiet line.
func TestRemindedThenAnswered(t *testing.T) {
	inWorld(t, func(s *Settings) {
		urgent(s)
	}, func(w *world) {
		w.settings.Approvers = []string{w.user("bob")}
		w.stop()
		w.start()
		thread := w.ask("alice", proof)
		if n := w.nudges(w.general(), thread); len(n) != 0 {
			t.Fatalf("a reminder at once: %v", n)
		}
		w.pass(5 * time.Minute)
		nudges := w.nudges(w.general(), thread)
		if len(nudges) != 1 {
			t.Fatalf("%d reminders after half of the time", len(nudges))
		}
		mustSay(t, nudges[0].text, "till waiting for an answer, 5 minutes left", "Run printf ok > proof.txt", w.user("bob"), "/archives/"+w.general())
		mustSay(t, w.card(thread).text, "Reminded:")
		if n := w.letters("bob"); len(n) != 0 {
			t.Errorf("written to already: %v", n)
		}
		w.pass(3 * time.Minute)
		direct := w.letters("bob")
		if len(direct) != 1 || len(w.letters("alice")) != 0 {
			t.Fatalf("bob got %v, alice %v", direct, w.letters("alice"))
		}
		mustSay(t, direct[0].text, "This waits for your answer", w.user("alice"), "Run printf ok > proof.txt")
		w.click("bob", w.card(thread), "approve")
		w.pass(5 * time.Second)
		for _, n := range append(w.nudges(w.general(), thread), w.letters("bob")...) {
			if !strings.Contains(n.text, "Answered by") || strings.Contains(n.text, "proof") {
				t.Errorf("a reminder of what was answered says %q", n.text)
			}
		}
		if !w.exists("proof.txt") {
			t.Error("it didn't run")
		}
		w.pass(time.Hour)
		if n := len(w.nudges(w.general(), thread)) + len(w.letters("bob")); n != 2 {
			t.Errorf("%d reminders in the end", n)
		}
		mustSay(t, w.audit(w.runs()[0].ID), "reminded")
	})
}
