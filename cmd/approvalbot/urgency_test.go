package main

import (
	"context"
	"fmt"
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

func inUrgentWorld(t *testing.T, change, body func(w *world)) {
	t.Helper()
	inChangedWorld(t, func(w *world) {
		urgent(&w.settings)
		change(w)
	}, body)
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
	if im := w.conversation(user); im != "" {
		return w.nudges(im, "")
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
	inUrgentWorld(t, func(w *world) { w.settings.Approvers = []string{w.user("bob")} }, func(w *world) {
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
			if !strings.Contains(n.text, "Answered by") || !strings.Contains(n.text, "Run printf ok > proof.txt") {
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

// Two levels: each may approve from its moment on and is told so; before that it is refused.
func TestEscalatedTwice(t *testing.T) {
	inUrgentWorld(t, func(w *world) {
		w.settings.Approvers = []string{w.user("alice")} // who asks, and can't approve
		w.settings.PolicyFile = rules(t, fmt.Sprintf(`rules:
- name: on-call
  tool: shell
  effect: ask
  approvers: [%s]
  remind: 0%%
  escalate:
  - {after: 2m, approvers: [%s]}
  - {after: 4m, approvers: [%s]}
`, w.user("bob"), w.user("carol"), w.user("alice")))
	}, func(w *world) {
		thread := w.ask("alice", proof)
		w.click("carol", w.card(thread), "approve")
		mustSay(t, w.privately(thread, "carol"), "You are not one of those who can approve this")
		w.pass(2 * time.Minute)
		nudges := w.nudges(w.general(), thread)
		if len(nudges) != 1 {
			t.Fatalf("%d messages about it", len(nudges))
		}
		mustSay(t, nudges[0].text, "Nobody has answered yet", "may approve this, too", w.user("carol"))
		mustSay(t, w.card(thread).text, "may approve, too, since", w.user("carol"))
		if n := w.letters("carol"); len(n) != 0 {
			t.Errorf("carol reads the channel, and was written to: %v", n)
		}
		w.pass(2 * time.Minute)
		w.click("alice", w.card(thread), "approve")
		mustSay(t, w.privately(thread, "alice"), "You asked for this, so somebody else has to approve it")
		w.click("carol", w.card(thread), "approve")
		if !w.exists("proof.txt") {
			t.Errorf("it didn't run: %s", w.card(thread).text)
		}
		mustSay(t, w.card(thread).text, "pproved by", w.user("carol"))
		run := w.runs()[0]
		if a := run.Calls[0].Approval; len(a.Escalated) != 2 || len(a.Reminded) != 0 {
			t.Errorf("%d levels, %d reminders", len(a.Escalated), len(a.Reminded))
		}
	})
}

// Between approval and start the rules are asked again: who was added counts only while they are still to be added.
func TestEscalationThatRulesTookBack(t *testing.T) {
	file := ""
	text := func(w *world, steps string) string {
		return fmt.Sprintf("rules:\n- {name: one, tool: shell, effect: ask, approvers: [%s], quorum: 2, escalate: [%s]}\n", w.user("bob")+", "+w.user("alice"), steps)
	}
	inUrgentWorld(t, func(w *world) {
		w.hangups = make(chan os.Signal, 1)
		file = rules(t, text(w, fmt.Sprintf("{after: 1m, approvers: [%s]}", w.user("carol"))))
		w.settings.PolicyFile = file
	}, func(w *world) {
		thread := w.ask("alice", proof)
		w.pass(time.Minute)
		w.click("carol", w.card(thread), "approve")
		if err := os.WriteFile(file, []byte(text(w, "{after: 1m, approvers: [S0NOBODY]}")), 0o600); err != nil {
			t.Fatal(err)
		}
		w.hangups <- os.Interrupt
		w.pass(5 * time.Second)
		w.click("bob", w.card(thread), "approve")
		if w.exists("proof.txt") {
			t.Error("it ran with the approval of somebody who isn't added any more")
		}
		mustSay(t, w.card(thread).text, "The policy has changed since this was approved")
	})
}

// More time: the card's deadline moves, whoever asked has one go, and the menu goes when the limit is reached.
func TestGivenMoreTime(t *testing.T) {
	inUrgentWorld(t, func(w *world) {
		w.settings.Approvers, w.settings.MoreTime = []string{w.user("bob")}, 25*time.Minute
	}, func(w *world) {
		thread := w.ask("alice", proof)
		w.pick("alice", w.card(thread), "more_time")
		mustSay(t, w.card(thread).text, "moved the deadline to", w.user("alice"))
		w.pick("alice", w.card(thread), "more_time")
		mustSay(t, w.privately(thread, "alice"), "Whoever asked can give this more time once")
		w.pick("carol", w.card(thread), "more_time")
		mustSay(t, w.privately(thread, "carol"), "You are not one of those who can give this more time", w.user("bob"))
		w.pass(10 * time.Minute)
		if w.card(thread).buttons["approve"] == "" {
			t.Fatalf("it is over: %s", w.card(thread).text)
		}
		w.pick("bob", w.card(thread), "more_time")
		if !w.offers(thread, "more_time") {
			t.Error("there are 5 more minutes to be had")
		}
		w.pick("bob", w.card(thread), "more_time")
		if w.offers(thread, "more_time") {
			t.Error("the limit is reached, and it is still offered")
		}
		mustSay(t, w.card(thread).text, "the latest there can be")
		w.pass(30 * time.Minute)
		mustSay(t, w.card(thread).text, "Nobody answered until")
		w.deniedOnce("timeout")
		mustSay(t, w.audit(w.runs()[0].ID), "more time")
	})
}

// again finds the button of a card that ended.
func (w *world) askAgain(user, thread string) {
	w.t.Helper()
	c := w.cards(thread)[0]
	if c.buttons["ask_again"] == "" {
		w.t.Fatalf("it isn't offered: %s %v", c.text, c.buttons)
	}
	w.click(user, c, "ask_again")
	w.pass(5 * time.Second)
}

// Nobody answered; somebody has it asked again, once, and may approve it, because they said nothing to the agent.
func TestAskedAgain(t *testing.T) {
	inUrgentWorld(t, func(w *world) { w.settings.Approvers = []string{w.user("bob")} }, func(w *world) {
		thread := w.ask("alice", proof)
		w.pass(11 * time.Minute)
		first := w.card(thread)
		mustSay(t, first.text, "obody answered")
		w.click("gus", first, "ask_again") // may not start runs
		if len(w.runs()) != 1 || w.privately(thread, "gus") == "" {
			t.Fatalf("%d runs; the guest was told %q", len(w.runs()), w.privately(thread, "gus"))
		}
		w.askAgain("bob", thread)
		cards := w.cards(thread)
		if len(cards) != 2 || cards[0].buttons["ask_again"] != "" {
			t.Fatalf("%d cards, the first has %v", len(cards), cards[0].buttons)
		}
		mustSay(t, cards[0].text, "obody answered", "Asked again by", w.user("bob"))
		mustSay(t, cards[1].text, "Run printf ok > proof.txt", w.user("alice"))
		if _, err := w.slack.Click(context.Background(), devslack.ActionRequest{ // from a screen that is behind
			User: w.user("carol"), Channel: w.general(), TS: first.ts, ActionID: "ask_again", Value: first.buttons["ask_again"],
			Forge: map[string]any{"actions": []any{map[string]any{
				"type": "button", "action_id": "ask_again", "value": first.buttons["ask_again"], "block_id": first.buttons["ask_again"] + ".again",
			}}},
		}); err != nil {
			t.Fatal(err)
		}
		w.pass(5 * time.Second)
		mustSay(t, w.privately(thread, "carol"), "has had this asked again already", w.user("bob"))
		w.click("bob", cards[1], "approve")
		if !w.exists("proof.txt") || len(w.runs()) != 2 {
			t.Errorf("it ran: %t; %d runs", w.exists("proof.txt"), len(w.runs()))
		}
		second := w.runs()[1]
		if who := second.Started.Requesters; len(who) != 1 || who[0].ID != w.user("alice") || second.StartedBy.ID != w.user("bob") {
			t.Errorf("requesters %v, started by %s", who, second.StartedBy.ID)
		}
		mustSay(t, w.audit(w.runs()[0].ID), "asked again")
	})
}

// Two people click Ask Again in the same moment: one run.
func TestAskedAgainByTwo(t *testing.T) {
	inUrgentWorld(t, func(w *world) {}, func(w *world) {
		thread := w.ask("alice", proof)
		w.pass(11 * time.Minute)
		c := w.card(thread)
		done := make(chan error, 2)
		for _, user := range []string{"bob", "carol"} {
			go func() {
				_, err := w.slack.Click(context.Background(), devslack.ActionRequest{User: w.user(user), Channel: w.general(), TS: c.ts, ActionID: "ask_again"})
				done <- err
			}()
		}
		for range 2 {
			if err := <-done; err != nil {
				t.Error(err)
			}
		}
		w.pass(5 * time.Second)
		if n := len(w.runs()); n != 2 {
			t.Errorf("%d runs", n)
		}
		w.click("bob", w.cards(thread)[1], "deny")
	})
}

// The process dies between a reminder and the next step: the ask ends, the reminder says so, and it can be asked again.
func TestRestartedBetweenReminders(t *testing.T) {
	inUrgentWorld(t, func(w *world) { w.settings.Approvers = []string{w.user("bob")} }, func(w *world) {
		thread := w.ask("alice", proof)
		w.pass(5 * time.Minute)
		if len(w.nudges(w.general(), thread)) != 1 {
			t.Fatal("no reminder")
		}
		w.crash()
		w.start()
		w.pass(time.Hour)
		nudges := w.nudges(w.general(), thread)
		if len(nudges) != 1 || len(w.letters("bob")) != 0 {
			t.Errorf("%d reminders in the thread, %d direct ones", len(nudges), len(w.letters("bob")))
		}
		mustSay(t, nudges[0].text, "This isn't asked any more")
		mustSay(t, w.card(thread).text, "restarted")
		w.askAgain("alice", thread)
		w.click("bob", w.cards(thread)[1], "approve")
		if !w.exists("proof.txt") {
			t.Error("it didn't run")
		}
	})
}

// What a person stopped or denied isn't lost, so it can't be asked again.
func TestNothingToAskAgain(t *testing.T) {
	inUrgentWorld(t, func(w *world) {}, func(w *world) {
		thread := w.ask("alice", proof)
		w.click("bob", w.card(thread), "deny")
		stopped := w.ask("alice", proof)
		w.click("alice", w.thread(stopped)[0], "stop")
		for _, thread := range []string{thread, stopped} {
			c := w.card(thread)
			if c.buttons["ask_again"] != "" {
				t.Errorf("it is offered: %s", c.text)
			}
			_, _ = w.slack.Click(context.Background(), devslack.ActionRequest{ // forged
				User: w.user("carol"), Channel: w.general(), TS: c.ts, ActionID: "ask_again", Value: w.runs()[0].Calls[0].Approval.ApprovalRequested.Approval,
			})
			w.pass(5 * time.Second)
		}
		if n := len(w.runs()); n != 2 {
			t.Errorf("%d runs", n)
		}
	})
}

// Many asks that are reminded of at the same moment: everything keeps to Slack's limits, and what people decide meanwhile
// isn't held up by it.
func TestManyRemindersAtOnce(t *testing.T) {
	inUrgentWorld(t, func(w *world) {
		w.settings.Approvers, w.settings.Timeout, w.settings.MaxAsks = []string{w.user("bob")}, time.Hour, 300
	}, func(w *world) {
		const threads, each = 10, 20
		var all []string
		for i := range threads {
			var text strings.Builder
			text.WriteString("run")
			for n := range each {
				fmt.Fprintf(&text, " `printf %d > f%d_%d`", n, i, n)
			}
			all = append(all, w.ask("alice", text.String()))
			w.pass(20 * time.Second)
		}
		w.pass(20 * time.Minute)
		// While nothing can be posted all reminders come due.
		if err := w.slack.SetFault(devslack.Fault{Method: "chat.postMessage", Times: 1 << 20, Error: "accesslimited"}); err != nil {
			t.Fatal(err)
		}
		w.pass(10 * time.Minute)
		if n := len(w.nudges(w.general(), all[0])); n != 0 {
			t.Fatalf("%d reminders came through", n)
		}
		w.slack.ClearFaults()
		late := w.ask("alice", proof)
		w.click("bob", w.card(late), "approve")
		w.pass(5 * time.Second)
		if !w.exists("proof.txt") {
			t.Error("a decision had to wait for reminders")
		}
		w.pass(20 * time.Minute)
		n := 0
		for _, thread := range all {
			n += len(w.nudges(w.general(), thread))
		}
		if n != threads*each || len(w.letters("bob")) == 0 {
			t.Errorf("%d reminders, want %d; %d direct ones", n, threads*each, len(w.letters("bob")))
		}
		for _, c := range w.slack.Calls(0) {
			if c.Kind == "api" && c.Status == 429 {
				t.Errorf("%s was too much for Slack", c.Name)
			}
		}
		w.pass(40 * time.Minute)
	})
}

// Over HTTP: the deadline moves as far as it can, and the answer says where it is.
func TestMoreTimeOverHTTP(t *testing.T) {
	inUrgentWorld(t, func(w *world) { w.settings.MoreTime = 15 * time.Minute }, func(w *world) {
		thread := w.ask("alice", proof)
		run := w.runs()[0]
		path := "/api/agent/approvals/" + run.ID + "/" + run.Calls[0].ID + "/extend"
		p := w.client("local-test")
		first := run.Calls[0].Approval.Until()
		for _, more := range []time.Duration{10 * time.Minute, 15 * time.Minute} {
			a := p.do("POST", path, "").must(t, 200, "")
			if at, err := time.Parse(time.RFC3339Nano, a.str("expiresAt")); err != nil || !at.Equal(first.Add(more)) {
				t.Errorf("it expires %v after the first deadline, want %s: %v", at.Sub(first), more, err)
			}
			w.pass(time.Minute)
		}
		p.do("POST", path, "{}").must(t, 403, "NO_MORE_TIME")
		p.do("POST", path, `{"by":"me"}`).must(t, 400, "INVALID_REQUEST")
		mustSay(t, w.card(thread).text, "the API token", "moved the deadline to", "the latest there can be")
		w.click("bob", w.card(thread), "deny")
		p.do("POST", path, "").must(t, 409, "ALREADY_DECIDED")
		p.do("POST", "/api/agent/approvals/none/none/extend", "").must(t, 404, "NOT_FOUND")
	})
}
