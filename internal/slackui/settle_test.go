package slackui

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"approvalbot/internal/devslack"
	"approvalbot/internal/ledger"
)

// goneThings lists what is settled as gone: kind and code.
func (w *world) goneThings() []string {
	var gone []string
	for _, e := range w.events("message_settled") {
		if b := e.Body.(*ledger.MessageSettled); b.Gone != "" {
			gone = append(gone, b.Thing.Kind+" "+b.Gone)
		}
	}
	return gone
}

// refusedUpdates makes Slack say no to updates of cards; times is -1 for ever.
func (w *world) refusedUpdates(code string, times int) {
	w.fault(devslack.Fault{Method: "chat.update", Match: `"kind":"card"`, Times: times, Error: code})
}

// cardUpdates counts the updates of cards.
func (w *world) cardUpdates() int {
	n := 0
	for _, c := range w.slack.Calls(0) {
		if c.Kind == "api" && c.Name == "chat.update" && strings.Contains(strings.ReplaceAll(string(c.Request), `\`, ""), `"kind":"card"`) {
			n++
		}
	}
	return n
}

// Codes of which nobody knows that they stay. invalid_blocks is among them once the blocks are as plain as can be.
var puzzles = []string{
	"access_denied", "org_login_required", "ekm_access_denied", "missing_scope", "not_in_channel", "invalid_arguments",
	"restricted_action", "is_inactive", "never_heard_of", "invalid_blocks",
}

// No code that isn't certain to be the end leaves a card with buttons that do nothing.
func TestAnUpdateThatSlackRefusesIsTriedAgain(t *testing.T) {
	for _, code := range puzzles {
		t.Run(code, func(t *testing.T) {
			inWorld(t, func(w *world) {
				root := w.say("alice", "@bot `ls`")
				card := w.card(root, 0)
				w.refusedUpdates(code, 6)
				w.click("bob", card, actionApprove)
				w.eventually("it ran", func() bool { return len(w.agent.ran()) == 1 })
				w.settled()
				w.isOver(w.cards(root)[0])
				if len(w.cards(root)) != 1 || len(w.goneThings()) != 0 {
					t.Errorf("%d cards, gone: %v", len(w.cards(root)), w.goneThings())
				}
			})
		})
	}
}

// While it lasts Slack isn't flooded; a restart begins anew and ends the card once Slack takes it.
func TestARefusedUpdateOutlivesARestart(t *testing.T) {
	inWorld(t, func(w *world) {
		root := w.say("alice", "@bot `ls`")
		card := w.card(root, 0)
		w.refusedUpdates("access_denied", -1)
		w.click("bob", card, actionApprove)
		w.after(6 * time.Hour)
		if n := w.cardUpdates(); n < 30 || n > 60 {
			t.Errorf("%d updates in six hours", n)
		}
		if !hasButton(w.cards(root)[0], actionApprove) || len(w.goneThings()) != 0 {
			t.Fatalf("gone: %v", w.goneThings())
		}
		began := time.Now()
		if err := w.stop(); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(began); took > time.Second {
			t.Errorf("stopping waited %s for what Slack won't take", took)
		}
		w.slack.ClearFaults()
		w.start()
		w.settled()
		w.isOver(w.cards(root)[0])
		if len(w.cards(root)) != 1 || len(w.goneThings()) != 0 {
			t.Errorf("%d cards, gone: %v", len(w.cards(root)), w.goneThings())
		}
	})
}

// Whatever Slack said of the update after the first of two votes: when the second one is cast and the tool runs, the card
// doesn't say any more that approval is needed.
func TestWhatIsSaidOfAPendingCardIsNotTheEndOfIt(t *testing.T) {
	for _, code := range append([]string{"message_not_found", "channel_not_found", "is_archived", "cant_update_message", "edit_window_closed"}, puzzles...) {
		t.Run(code, func(t *testing.T) {
			inWorld(t, func(w *world) {
				root := w.say("alice", "@bot `ls`")
				card := w.card(root, 0)
				w.refusedUpdates(code, -1)
				w.click("bob", card, actionApprove)
				w.after(20 * time.Minute)
				updates := w.cardUpdates()
				w.slack.ClearFaults()
				w.click("carol", card, actionApprove)
				clicked := time.Now()
				w.eventually("no buttons", func() bool { return !hasButton(w.cards(root)[0], actionApprove) })
				if took := time.Since(clicked); took > 3*time.Second {
					t.Errorf("the buttons stayed for %s", took)
				}
				w.settled()
				if len(w.agent.ran()) != 1 || len(w.cards(root)) != 1 || len(w.goneThings()) != 0 {
					t.Errorf("ran %v, %d cards, gone: %v", w.agent.ran(), len(w.cards(root)), w.goneThings())
				}
				if updates > 15 {
					t.Errorf("%d updates of a pending card", updates)
				}
			}, func(w *world) { w.settings.Quorum, w.settings.Timeout = 2, time.Hour })
		})
	}
}

// A message that is certainly gone is tried once for the last state, and settled.
func TestWhatIsCertainlyGoneIsSettled(t *testing.T) {
	for _, code := range []string{"message_not_found", "channel_not_found", "is_archived"} {
		t.Run(code, func(t *testing.T) {
			inWorld(t, func(w *world) {
				root := w.say("alice", "@bot `ls`")
				card := w.card(root, 0)
				w.refusedUpdates(code, -1)
				w.click("bob", card, actionApprove)
				w.click("carol", card, actionApprove)
				w.settled()
				if diff := cmp.Diff([]string{"card " + code}, w.goneThings()); diff != "" {
					t.Error(diff)
				}
				if n := w.cardUpdates(); n > 3 {
					t.Errorf("%d updates of a message that is gone", n)
				}
				if n := len(w.cards(root)); n != 1 {
					t.Errorf("%d cards", n)
				}
			}, func(w *world) { w.settings.Quorum = 2 })
		})
	}
}

// Where a card can't be edited any more, how it ended is said in a new message, and the old one is settled with the code.
func TestWhatCantBeEditedIsSaidAnew(t *testing.T) {
	for _, code := range []string{"cant_update_message", "edit_window_closed"} {
		for _, action := range []string{actionApprove, actionDeny, ""} {
			t.Run(code+" "+action, func(t *testing.T) {
				inWorld(t, func(w *world) {
					root := w.say("alice", "@bot `ls`")
					card := w.card(root, 0)
					w.refusedUpdates(code, -1)
					if action != "" {
						w.click("bob", card, action)
					}
					w.settled()
					if diff := cmp.Diff([]string{"card " + code}, w.goneThings()); diff != "" {
						t.Error(diff)
					}
					cards := w.cards(root)
					if len(cards) != 2 || approvalOf(cards[1]) != approvalOf(card) {
						t.Fatalf("%d cards, want the old one and one about the same", len(cards))
					}
					w.isOver(cards[1])
					// A click on the old one is answered.
					other := actionApprove
					if action == actionApprove {
						other = actionDeny
					}
					w.click("carol", card, other)
					w.eventually("carol is told", func() bool { return len(w.whispers("carol")) == 1 })
				})
			})
		}
	}
}

// The same when the process ends between the two messages: the new one is posted once, whether or not it was known that
// it was.
func TestWhatCantBeEditedIsSaidAnewAfterARestart(t *testing.T) {
	for name, f := range map[string]devslack.Fault{
		"not posted":           {Status: 500, Times: -1},
		"posted, not answered": {DelayMS: 9000},
		"posted, answer lost":  {DropResponse: true},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				root := w.say("alice", "@bot `ls`")
				card := w.card(root, 0)
				w.refusedUpdates("cant_update_message", 1)
				f.Method, f.Match = "chat.postMessage", `"kind":"card"`
				w.fault(f)
				w.click("bob", card, actionDeny)
				w.eventually("the old one is settled", func() bool { return len(w.goneThings()) == 1 })
				w.after(time.Second)
				w.crash()
				w.slack.ClearFaults()
				w.start2()
				w.settled()
				cards := w.cards(root)
				if len(cards) != 2 {
					t.Fatalf("%d cards, want 2", len(cards))
				}
				w.isOver(cards[1])
				if diff := cmp.Diff([]string{"card cant_update_message"}, w.goneThings()); diff != "" {
					t.Error(diff)
				}
			})
		})
	}
}

// A progress message that can't be edited is said anew, an answer isn't: it says all that it ever will.
func TestProgressThatCantBeEdited(t *testing.T) {
	inWorld(t, func(w *world) {
		root := w.say("alice", "@bot `ls`")
		card := w.card(root, 0)
		w.fault(devslack.Fault{Method: "chat.update", Match: `"kind":"progress"`, Times: -1, Error: "edit_window_closed"})
		w.click("bob", card, actionApprove)
		w.settled()
		progress := w.things(root, kindProgress)
		if len(progress) != 2 || hasButton(progress[1], actionStop) {
			t.Errorf("%d progress messages", len(progress))
		}
		if len(w.things(root, kindAnswer)) != 1 {
			t.Error("not one answer")
		}
	})
}

// Blocks that Slack takes in no form leave no buttons: the last state is said without any.
func TestAnEndThatSlackTakesInNoBlocks(t *testing.T) {
	inWorld(t, func(w *world) {
		root := w.say("alice", "@bot `ls`")
		card := w.card(root, 0)
		w.fault(devslack.Fault{Method: "chat.update", Match: `"type":"rich_text"`, Times: -1, Error: "invalid_blocks"})
		w.click("bob", card, actionDeny)
		w.settled()
		over := w.cards(root)[0]
		w.isOver(over)
		if !strings.Contains(string(over.Blocks), "Denied by @bob") && !strings.Contains(string(over.Blocks), "Not performed") {
			t.Errorf("the card doesn't say how it ended: %s", over.Blocks)
		}
	})
}

// A post that Slack refuses with a code that nobody knows is tried again for some seconds.
func TestAPostThatSlackRefusesIsTriedAgain(t *testing.T) {
	for _, code := range []string{"access_denied", "org_login_required", "never_heard_of"} {
		t.Run(code, func(t *testing.T) {
			inWorld(t, func(w *world) {
				w.fault(devslack.Fault{Method: "chat.postMessage", Match: `"kind":"card"`, Times: askNoes - 1, Error: code})
				root := w.say("alice", "@bot `ls`")
				w.click("bob", w.card(root, 0), actionApprove)
				w.settled()
				w.isOver(w.cards(root)[0])
				if len(w.agent.ran()) != 1 {
					t.Error("not started")
				}
			})
		})
	}
}

// And if Slack doesn't come round, the ask ends with that code, while there is time to do something else.
func TestAPostThatSlackKeepsRefusingEndsTheAsk(t *testing.T) {
	inWorld(t, func(w *world) {
		w.fault(devslack.Fault{Method: "chat.postMessage", Match: `"kind":"card"`, Times: -1, Error: "never_heard_of"})
		root := w.say("alice", "@bot `ls`")
		w.eventually("it is resolved", func() bool { return len(w.resolutions()) == 1 })
		e, asked := w.events("approval_resolved")[0], w.events("approval_requested")[0]
		b := e.Body.(*ledger.ApprovalResolved)
		if b.Source != ledger.SourceUndeliverable || !strings.Contains(b.Reason, "never_heard_of") {
			t.Errorf("resolved by %s: %s", b.Source, b.Reason)
		}
		if took := e.Time.Sub(asked.Time); took < 5*time.Second || took > 10*time.Second {
			t.Errorf("after %s", took)
		}
		w.settled()
		if len(w.cards(root)) != 0 || len(w.things(root, kindAnswer)) != 1 {
			t.Errorf("%d cards, %d answers", len(w.cards(root)), len(w.things(root, kindAnswer)))
		}
	})
}

// An answer isn't given up for a code that may pass.
func TestAnAnswerIsPostedWhenSlackTakesItAgain(t *testing.T) {
	inWorld(t, func(w *world) {
		root := w.say("alice", "@bot `ls`")
		card := w.card(root, 0)
		w.fault(devslack.Fault{Method: "chat.postMessage", Match: `"kind":"answer"`, Times: otherNoes - 1, Error: "access_denied"})
		w.click("bob", card, actionApprove)
		w.settled()
		if n := len(w.things(root, kindAnswer)); n != 1 {
			t.Errorf("%d answers", n)
		}
	})
}

// Looking for a message in vain doesn't go on for ever.
func TestLookingForAMessageEnds(t *testing.T) {
	inWorld(t, func(w *world) {
		w.fault(devslack.Fault{Method: "conversations.replies", Times: -1, Error: "never_heard_of"})
		w.fault(devslack.Fault{Method: "chat.postMessage", Match: `"kind":"answer"`, Status: 500})
		root := w.say("alice", "@bot `ls`")
		w.click("bob", w.card(root, 0), actionApprove)
		w.settled()
		if n := len(w.things(root, kindAnswer)); n != 1 {
			t.Errorf("%d answers", n)
		}
	})
}
