package main

import (
	"context"
	"strings"
	"testing"
	"time"

	"approvalbot/internal/devslack"
	"approvalbot/internal/ledger"
	"approvalbot/internal/ledger/ledgertest"
)

const proof = "run `printf ok > proof.txt`"

func mustSay(t testing.TB, text string, words ...string) {
	t.Helper()
	for _, w := range words {
		if !strings.Contains(text, w) {
			t.Errorf("%q isn't said in:\n%s", w, text)
		}
	}
}

// A person asks, another approves: the whole path.
func TestApprovedAndDone(t *testing.T) {
	inWorld(t, nil, func(w *world) {
		thread := w.ask("alice", proof)
		card := w.card(thread)
		mustSay(t, card.text, "printf ok > proof.txt", w.user("alice"))
		if w.exists("proof.txt") {
			t.Error("it ran before anybody approved")
		}
		if card.buttons["approve"] == "" || card.buttons["deny"] != card.buttons["approve"] {
			t.Errorf("buttons %v", card.buttons)
		}
		if r := w.click("bob", card, "approve"); !r.Acked {
			t.Errorf("the click was not acknowledged: %+v", r)
		}
		if !w.exists("proof.txt") {
			t.Error("it didn't run")
		}
		after := w.card(thread)
		if len(after.buttons) != 0 {
			t.Errorf("buttons are left: %v", after.buttons)
		}
		mustSay(t, after.text, "pproved by", w.user("bob"))
		said := w.thread(thread)
		if len(said) != 3 { // progress, card, answer
			t.Errorf("%d messages of ours, want progress, card and answer:\n%v", len(said), said)
		}
	})
}

// A denial is the same in the transcript, in Slack and in the journal, once.
func TestDenied(t *testing.T) {
	inWorld(t, nil, func(w *world) {
		thread := w.ask("alice", proof)
		w.click("bob", w.card(thread), "deny")
		if w.exists("proof.txt") {
			t.Error("it ran")
		}
		mustSay(t, w.card(thread).text, "enied by", w.user("bob"))
		w.deniedOnce("user")
	})
}

// Nobody answers: no.
func TestNobodyAnswers(t *testing.T) {
	inWorld(t, func(s *Settings) { s.Timeout = time.Minute }, func(w *world) {
		thread := w.ask("alice", proof)
		w.pass(2 * time.Minute)
		if w.exists("proof.txt") || w.card(thread).decidable() {
			t.Error("it ran, or the buttons are left")
		}
		mustSay(t, w.card(thread).text, "obody answered")
		w.deniedOnce("timeout")
	})
}

// Stop ends what was open.
func TestStopped(t *testing.T) {
	inWorld(t, nil, func(w *world) {
		thread := w.ask("alice", proof)
		progress := w.thread(thread)[0]
		if progress.buttons["stop"] == "" {
			t.Fatalf("the first message is no progress with Stop: %v", progress)
		}
		w.click("alice", progress, "stop")
		if len(w.card(thread).buttons) != 0 || w.exists("proof.txt") {
			t.Error("it ran, or the buttons are left")
		}
		mustSay(t, w.card(thread).text, "topped")
		w.deniedOnce("abort")
	})
}

// The bot dies while it waits, and is started again.
func TestKilledWhileWaiting(t *testing.T) {
	inWorld(t, nil, func(w *world) {
		thread := w.ask("alice", proof)
		card := w.card(thread)
		w.crash()
		if w.card(thread).buttons["approve"] == "" {
			t.Fatal("a killed process can't have updated its card")
		}
		w.start()
		w.pass(10 * time.Second)
		after := w.card(thread)
		if after.ts != card.ts || after.decidable() || w.exists("proof.txt") {
			t.Errorf("the same card has to be at its end: %v", after)
		}
		mustSay(t, after.text, "restarted")
		w.deniedOnce("abort")
	})
}

// deniedOnce checks the last run's only call: denied everywhere, with one result for the model.
func (w *world) deniedOnce(source string) {
	w.t.Helper()
	runs := w.runs()
	run := runs[len(runs)-1]
	if len(run.Calls) != 1 {
		w.t.Fatalf("%d calls", len(run.Calls))
	}
	c := run.Calls[0]
	if c.State != ledger.OutputDenied || string(c.Finished.Source) != source {
		w.t.Errorf("the call ended as %s (%s), want output-denied (%s)", c.State, c.Finished.Source, source)
	}
	audit := w.audit(run.ID)
	if n := strings.Count(audit, "Error [APPROVAL_DENIED]"); n != 1 {
		w.t.Errorf("the denial stands %d times in the transcript:\n%s", n, audit)
	}
}

// Three calls in one message: three cards, decided in any order, each with its own end.
func TestThreeAtOnce(t *testing.T) {
	inWorld(t, nil, func(w *world) {
		thread := w.ask("alice", "run `printf 1 > one` and `printf 2 > two` and `printf 3 > three`")
		w.pass(5 * time.Second)
		if n := len(w.cards(thread)); n != 3 {
			t.Fatalf("%d cards", n)
		}
		w.click("bob", w.cardOf(thread, "> three"), "approve")
		w.click("carol", w.cardOf(thread, "> one"), "deny")
		if w.exists("two") || !w.exists("three") {
			t.Error("one card's decision touched another")
		}
		w.click("alice", w.cardOf(thread, "> two"), "approve")
		if !w.exists("two") || w.exists("one") {
			t.Error("the outcomes are mixed up")
		}
		mustSay(t, w.cardOf(thread, "> one").text, "enied by", w.user("carol"))
		mustSay(t, w.cardOf(thread, "> three").text, "pproved by", w.user("bob"))
	})
}

// Who may not decide is told so privately, and the card stays as it is.
func TestWrongPeopleClick(t *testing.T) {
	inWorld(t, nil, func(w *world) {
		thread := w.ask("alice", proof)
		before := w.card(thread)
		for _, name := range []string{"gus", "erin", "deploybot"} {
			w.click(name, before, "approve")
			if w.privately(thread, name) == "" {
				t.Errorf("%s was not told why not", name)
			}
		}
		if after := w.card(thread); after.text != before.text || w.exists("proof.txt") {
			t.Errorf("the card changed:\n%s\n%s", before.text, after.text)
		}
		w.click("bob", before, "deny")
	})
}

// The approvalId of another pending ask as the button's value: refused, both unharmed.
func TestForgedValue(t *testing.T) {
	inWorld(t, nil, func(w *world) {
		thread := w.ask("alice", "run `printf 1 > one` and `printf 2 > two`")
		w.pass(3 * time.Second)
		one, two := w.cardOf(thread, "> one"), w.cardOf(thread, "> two")
		_, err := w.slack.Click(context.Background(), devslack.ActionRequest{
			User: w.user("bob"), Channel: w.general(), TS: one.ts, ActionID: "approve", Value: two.buttons["approve"],
		})
		if err != nil {
			t.Fatal(err)
		}
		w.pass(5 * time.Second)
		if w.exists("one") || w.exists("two") || len(w.app.approvals.Pending("")) != 2 {
			t.Error("a forged click did something")
		}
		w.click("bob", one, "approve")
		w.click("bob", two, "deny")
		if !w.exists("one") || w.exists("two") {
			t.Error("the asks were harmed")
		}
	})
}

// Two people click at the same moment: one wins, the other is told who.
func TestTwoAtOnce(t *testing.T) {
	inWorld(t, nil, func(w *world) {
		thread := w.ask("alice", proof)
		card := w.card(thread)
		done := make(chan error, 2)
		for user, action := range map[string]string{"bob": "approve", "carol": "deny"} {
			go func() {
				_, err := w.slack.Click(context.Background(), devslack.ActionRequest{User: w.user(user), Channel: w.general(), TS: card.ts, ActionID: action})
				done <- err
			}()
		}
		for range 2 {
			if err := <-done; err != nil {
				t.Error(err)
			}
		}
		w.pass(10 * time.Second)
		run := w.runs()[0]
		winner, loser := "bob", "carol"
		if run.Calls[0].Approval.Resolved.Type == ledger.Denied {
			winner, loser = loser, winner
		}
		mustSay(t, w.card(thread).text, w.user(winner))
		mustSay(t, w.privately(thread, loser), w.user(winner))
		if w.exists("proof.txt") != (winner == "bob") {
			t.Error("what happened isn't what was decided")
		}
	})
}

// The journal can't be written: nothing is shown, nothing starts, a click is told so and the buttons stay.
func TestDiskFull(t *testing.T) {
	inWorld(t, nil, func(w *world) {
		thread := w.ask("alice", proof)
		release := ledgertest.Lock(t, w.settings.journalDir())
		w.click("bob", w.card(thread), "approve")
		mustSay(t, w.privately(thread, "bob"), "record")
		if w.card(thread).buttons["approve"] == "" || w.exists("proof.txt") {
			t.Error("the buttons went, or it ran")
		}
		if w.app.writable() == nil {
			t.Error("readiness doesn't say it")
		}
		release()
		w.click("bob", w.card(thread), "approve")
		if !w.exists("proof.txt") || w.app.writable() != nil {
			t.Error("it doesn't work after the journal can be written again")
		}
	})
}

// SIGTERM while an ask is open: aborted, told, and recorded before the process ends.
func TestSIGTERM(t *testing.T) {
	inWorld(t, nil, func(w *world) {
		thread := w.ask("alice", proof)
		w.stop()
		if w.card(thread).decidable() {
			t.Error("the card was not brought to its end")
		}
		w.deniedOnce("abort")
		w.start()
	})
}
