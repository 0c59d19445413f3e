package main

import (
	"context"
	"strings"
	"testing"
	"time"

	"approvalbot/internal/devslack"
	"approvalbot/internal/ledger"
	"approvalbot/internal/slackui"
)

// clickAt clicks in another channel than the first one.
func (w *world) clickAt(user, channel string, m shown, action string) {
	w.t.Helper()
	_, err := w.slack.Click(context.Background(), devslack.ActionRequest{User: w.user(user), Channel: channel, TS: m.ts, ActionID: action})
	if err != nil {
		w.t.Fatalf("%s clicks %s: %v", user, action, err)
	}
	w.pass(5 * time.Second)
}

// An ask that stood in two places and was lost is asked again in one of them: the button goes from the other one, too,
// whether that is settled by then, was so before a restart, or is just being brought to its end.
func TestAskedAgainInAnotherPlace(t *testing.T) {
	for _, when := range []string{"settled", "restarted", "on its way"} {
		t.Run(when, func(t *testing.T) {
			inApprovalsChannel(t, false, urgent, func(w *world) {
				thread := w.ask("alice", proof)
				if when == "on its way" {
					w.pass(9 * time.Minute)
					w.fault(devslack.Fault{Method: "chat.update", Match: `"kind":"card"`, DelayMS: 8000, Times: 1})
					for range 70 { // until the copy has ended; the card's update is on its way then
						if w.pass(time.Second); w.inOps("copy")[0].buttons["ask_again"] != "" {
							break
						}
					}
				} else {
					w.pass(20 * time.Minute)
				}
				if when == "restarted" {
					w.stop()
					w.start()
				}
				w.clickAt("bob", w.ops(), w.inOps("copy")[0], "ask_again")
				w.pass(30 * time.Second)
				for _, m := range []shown{w.cards(thread)[0], w.inOps("copy")[0]} {
					mustSay(t, m.text, "Asked again by", w.user("bob"))
					if m.buttons["ask_again"] != "" {
						t.Errorf("it is still offered: %s", m.text)
					}
				}
				if n := len(w.runs()); n != 2 {
					t.Fatalf("%d runs", n)
				}
				w.click("carol", w.cards(thread)[1], "approve")
				if !w.exists("proof.txt") {
					t.Error("it didn't run")
				}
			})
		})
	}
}

// In a pause nothing is asked again, and who tries is told why; the button stays for later.
func TestAskedAgainWhilePaused(t *testing.T) {
	inUrgentWorld(t, operated, func(w *world) {
		thread := w.ask("alice", proof)
		w.pass(11 * time.Minute)
		w.approvals("carol", "pause maintenance")
		w.click("bob", w.card(thread), "ask_again")
		mustSay(t, w.privately(thread, "bob"), "approvalbot was paused by", "Maintenance", "Nothing starts until it is resumed")
		if n := len(w.kinds("message_received")); n != 1 {
			t.Errorf("%d messages were received", n)
		}
		w.approvals("carol", "resume")
		w.askAgain("bob", thread)
		w.click("bob", w.cards(thread)[1], "approve")
		if !w.exists("proof.txt") {
			t.Error("it didn't run")
		}
	})
}

// What waits is listed wherever it stands: in a set, and where there is no thread, in the approvals channel alone. The link
// leads to where the person can read it.
func TestAsksAreListedWhereverTheyStand(t *testing.T) {
	inApprovalsChannel(t, false, func(s *Settings) { s.Sets = true }, func(w *world) {
		w.ask("alice", "`touch one` `touch two`")
		l := w.client("local-test").listen("POST", "/api/agent/stream", order("`touch three`"))
		l.until("approvalRequired")
		w.pass(3 * time.Second)
		said, view := w.home("bob")
		mustSay(t, said, "Run touch one", "Run touch two", "Run touch three")
		mustSay(t, w.approvals("bob", "all"), "3 requests wait", "touch one", "touch two", "touch three")
		if said := w.approvals("carol", "all"); strings.Contains(said, "three") || strings.Contains(said, "/archives/"+w.ops()) || !strings.Contains(said, "touch two") {
			t.Errorf("carol, who isn't in the approvals channel, is told: %s", said)
		}
		id := w.runs()[0].Calls[0].Approval.ApprovalRequested.Approval
		if _, err := w.slack.ViewAction(view.ID, devslack.ActionRequest{User: w.user("bob"), ActionID: "approve", Value: id}); err != nil {
			t.Fatal(err)
		}
		w.pass(5 * time.Second)
		if !w.exists("one") || w.exists("two") || w.exists("three") {
			t.Error("one and nothing else should have been run")
		}
		if said, _ := w.homeNow("bob"); strings.Contains(said, "Waiting for you\nRun touch one") {
			t.Errorf("bob's Home tab says %s", said)
		}
		w.pass(3 * time.Minute)
		l.until("done")
	})
}

// Somebody has it asked again between Slack's confirmation of a card's end and its record: the renderings can be computed
// all the same.
func TestAskedAgainBeforeTheEndIsRecorded(t *testing.T) {
	inUrgentWorld(t, func(w *world) {}, func(w *world) {
		thread := w.ask("alice", proof)
		w.pass(11 * time.Minute)
		w.askAgain("bob", thread)
		w.click("bob", w.cards(thread)[1], "deny")
		w.pass(time.Minute)
		again := w.kinds("approval_asked_again")[0]
		moved := int64(0) // by how much what follows is later than it was
		check := &slackui.Recheck{}
		for _, e := range w.everything() {
			b, ok := e.Body.(*ledger.MessageSettled)
			if ok && b.Thing.Kind == "card" && moved == 0 {
				moved = 1
				earlier := again
				earlier.Seq = e.Seq
				if err := check.Event(earlier); err != nil {
					t.Error(err)
				}
			}
			if e.Seq == again.Seq {
				moved = 0
				continue
			}
			e.Seq += moved
			if err := check.Event(e); err != nil {
				t.Error(err)
			}
			if e.Seq > again.Seq {
				break // the first run is over
			}
		}
		if check.Renderings == 0 || check.Other != 0 {
			t.Errorf("%+v", check)
		}
	})
}

// Who may approve from a moment on and can't see the conversation gets the card itself, with its buttons; also where the
// requests of a round stand together, and where they stand in the approvals channel only.
func TestEscalatedToSomebodyElsewhere(t *testing.T) {
	for _, where := range []string{"private channel", "sets", "only in the approvals channel", "over HTTP"} {
		t.Run(where, func(t *testing.T) {
			inUrgentWorld(t, func(w *world) {
				w.settings.Sets = where == "sets"
				if where == "only in the approvals channel" || where == "over HTTP" {
					w.settings.ApprovalsChannel, w.settings.OnlyThere = w.ops(), true
				}
				w.settings.PolicyFile = rules(t, "rules:\n- {name: ladder, tool: shell, effect: ask, remind: 0%, approvers: ["+w.user("bob")+
					"], escalate: [{after: 2m, approvers: ["+w.user("carol")+"]}]}\n")
			}, func(w *world) {
				at := w.ops()
				if where == "only in the approvals channel" {
					at = w.general()
				}
				if where == "over HTTP" {
					l := w.client("local-test").listen("POST", "/api/agent/stream", order("`touch one` `touch two`"))
					l.until("approvalRequired")
				} else if _, err := w.slack.SendMessage(devslack.MessageRequest{
					User: w.user("alice"), Channel: at, Text: "<@" + w.ws.App.BotUserID + "> `touch one` `touch two`",
				}); err != nil {
					t.Fatal(err)
				}
				w.pass(2*time.Minute + 10*time.Second)
				im := w.conversation("carol")
				if im == "" {
					t.Fatal("carol wasn't written to")
				}
				for _, command := range []string{"one", "two"} {
					m := w.saying(im, "touch "+command)
					mustSay(t, m.text, "may approve, too, since")
					w.clickAt("carol", im, m, "approve")
					w.pass(5 * time.Second)
					mustSay(t, w.saying(im, "touch "+command).text, "Approved by", "Done in")
					if !w.exists(command) {
						t.Errorf("%s didn't run", command)
					}
				}
			})
		})
	}
}

// saying is the one message of a channel that says something.
func (w *world) saying(channel, words string) shown {
	w.t.Helper()
	messages, err := w.slack.Messages(channel, "")
	if err != nil {
		w.t.Fatal(err)
	}
	for _, m := range messages {
		if s := read(m); strings.Contains(s.text, words) {
			return s
		}
	}
	w.t.Fatalf("nothing in %s says %q", channel, words)
	return shown{}
}
