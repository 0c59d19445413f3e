package slackui

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"approvalbot/internal/approvals"
	"approvalbot/internal/devslack"
	"approvalbot/internal/ledger"
	"approvalbot/internal/ledger/ledgertest"
)

// forge makes a click carry another value.
func forge(value string) func(*devslack.ActionRequest) {
	return func(r *devslack.ActionRequest) { r.Value = value }
}

// claim makes a click's payload say something else.
func claim(patch map[string]any) func(*devslack.ActionRequest) {
	return func(r *devslack.ActionRequest) { r.Forge = patch }
}

func approvalOf(m devslack.Message) string { _, id := kind(m); return id }

func (w *world) resolutions() map[string]ledger.ApprovalResolved {
	out := map[string]ledger.ApprovalResolved{}
	for _, e := range w.events("approval_resolved") {
		b := *e.Body.(*ledger.ApprovalResolved)
		out[b.Approval] = b
	}
	return out
}

// whispered waits until somebody was told something privately that contains a phrase.
func (w *world) whispered(user, phrase string) {
	w.t.Helper()
	w.eventually(user+" is told "+phrase, func() bool {
		return strings.Contains(strings.Join(w.whispers(user), "\n"), phrase)
	})
}

func TestDenyEndsTheCardWithoutAStart(t *testing.T) {
	inWorld(t, func(w *world) {
		root := w.say("alice", "@bot `rm x`")
		w.click("bob", w.card(root, 0), actionDeny)
		w.settled()
		w.isOver(w.cards(root)[0])
		if len(w.agent.ran()) != 0 {
			t.Error("started although it was denied")
		}
	})
}

// Scenario 13: the click arrives while the answer to the post is still on its way.
func TestAClickBeforeThePostIsAnswered(t *testing.T) {
	inWorld(t, func(w *world) {
		w.fault(devslack.Fault{Method: "chat.postMessage", Match: `"kind":"card"`, DelayMS: 5000})
		root := w.say("alice", "@bot `ls`")
		card := w.card(root, 0)
		r := w.click("bob", card, actionApprove)
		if !r.Acked {
			t.Fatal("the click was not acknowledged")
		}
		w.after(time.Millisecond)
		shown, resolved := w.events("approval_shown"), w.events("approval_resolved")
		if len(shown) != 1 || len(resolved) != 1 || shown[0].Seq > resolved[0].Seq {
			t.Fatalf("shown %v, resolved %v: the click has to record both, in this order, before the post is answered", shown, resolved)
		}
		if got := shown[0].Body.(*ledger.ApprovalShown).TS; got != card.TS {
			t.Errorf("shown at %s, want %s", got, card.TS)
		}
		w.settled()
		w.isOver(w.cards(root)[0])
		if len(w.cards(root)) != 1 || len(w.agent.ran()) != 1 {
			t.Errorf("%d cards, started %v", len(w.cards(root)), w.agent.ran())
		}
	})
}

// Scenarios 35 and 36.
func TestThoseWhoMayNotDecideAreToldPrivately(t *testing.T) {
	for _, who := range []string{"alice", "gus", "erin", "deploybot"} {
		t.Run(who, func(t *testing.T) {
			inWorld(t, func(w *world) {
				root := w.say("alice", "@bot `ls`")
				card := w.card(root, 0)
				before := w.cards(root)[0]
				if r := w.click(who, card, actionApprove); !r.Acked {
					t.Error("not acknowledged")
				}
				w.eventually("a private refusal", func() bool { return len(w.whispers(who)) == 1 })
				w.after(10 * time.Second)
				if diff := cmp.Diff(string(before.Blocks), string(w.cards(root)[0].Blocks)); diff != "" {
					t.Errorf("the card changed:\n%s", diff)
				}
				if len(w.resolutions()) != 0 {
					t.Error("it was resolved")
				}
			})
		})
	}
}

// Scenario 37.
func TestForgedClicksBurnNothing(t *testing.T) {
	for name, forgery := range map[string]func(w *world, other devslack.Message) func(*devslack.ActionRequest){
		"the value of another ask":     func(_ *world, other devslack.Message) func(*devslack.ActionRequest) { return forge(approvalOf(other)) },
		"a value that never existed":   func(*world, devslack.Message) func(*devslack.ActionRequest) { return forge("nonsense") },
		"no value":                     func(*world, devslack.Message) func(*devslack.ActionRequest) { return forge("") },
		"another workspace":            claimed(map[string]any{"team": map[string]any{"id": "T0OTHER"}}),
		"no workspace":                 claimed(map[string]any{"team": nil}),
		"another app":                  claimed(map[string]any{"api_app_id": "A0OTHER"}),
		"another channel":              claimed(map[string]any{"container": map[string]any{"channel_id": "C0OTHER"}}),
		"another thread":               claimed(map[string]any{"container": map[string]any{"thread_ts": "1.000001"}}),
		"another author":               claimed(map[string]any{"message": map[string]any{"bot_id": "B0OTHER", "user": "U0OTHER"}}),
		"an ephemeral":                 claimed(map[string]any{"container": map[string]any{"is_ephemeral": true}}),
		"the message of another ask":   func(w *world, other devslack.Message) func(*devslack.ActionRequest) { return claim(w.at(other.TS)) },
		"a message that doesn't exist": func(w *world, _ devslack.Message) func(*devslack.ActionRequest) { return claim(w.at("1.000002")) },
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				root := w.say("alice", "@bot `one` and `two`")
				other := w.card(root, 1)
				mine := w.card(root, 0)
				if r := w.click("bob", mine, actionApprove, forgery(w, other)); !r.Acked {
					t.Error("not acknowledged")
				}
				w.after(5 * time.Second)
				if got := w.resolutions(); len(got) != 0 {
					t.Fatalf("resolved: %v", got)
				}
				// Both can still be decided, with the result that each click says.
				w.click("bob", mine, actionApprove)
				w.click("carol", other, actionDeny)
				w.settled()
				if diff := cmp.Diff(1, len(w.agent.ran())); diff != "" {
					t.Error(diff)
				}
			})
		})
	}
}

// at makes a payload be of another message of ours.
func (w *world) at(ts string) map[string]any {
	return map[string]any{
		"container": map[string]any{"message_ts": ts},
		"message":   map[string]any{"ts": ts, "bot_id": w.ws.App.BotID, "user": w.ws.App.BotUserID},
	}
}

func claimed(patch map[string]any) func(*world, devslack.Message) func(*devslack.ActionRequest) {
	return func(*world, devslack.Message) func(*devslack.ActionRequest) { return claim(patch) }
}

func TestACardThatNobodyKnowsIsMadeTerminal(t *testing.T) {
	inWorld(t, func(w *world) {
		root := w.say("alice", "@bot `ls`")
		card := w.card(root, 0)
		w.halt()
		// The journal is lost; Slack still shows the card.
		w.dir = t.TempDir()
		w.start()
		w.click("bob", card, actionApprove)
		w.whispered("bob", "don't know this request")
		w.eventually("no buttons", func() bool { return !hasButton(w.thread(root)[1], actionApprove) })
	})
}

func TestOfTwoWhoClickOneIsTold(t *testing.T) {
	inWorld(t, func(w *world) {
		root := w.say("alice", "@bot `ls`")
		card := w.card(root, 0)
		done := make(chan devslack.Receipt, 2)
		go func() { done <- w.click("bob", card, actionApprove) }()
		go func() { done <- w.click("carol", card, actionDeny) }()
		for range 2 {
			if r := <-done; !r.Acked {
				t.Error("not acknowledged")
			}
		}
		w.settled()
		w.eventually("one of them is told", func() bool { return len(w.whispers("bob"))+len(w.whispers("carol")) == 1 })
		if len(w.resolutions()) != 1 {
			t.Errorf("resolved %d times", len(w.resolutions()))
		}
	})
}

func TestALateClickIsToldThatNobodyAnswered(t *testing.T) {
	inWorld(t, func(w *world) {
		root := w.say("alice", "@bot `ls`")
		card := w.card(root, 0)
		w.settled() // the timeout ends it
		w.isOver(w.cards(root)[0])
		w.click("bob", card, actionApprove, forge(approvalOf(card)))
		w.eventually("bob is told", func() bool { return len(w.whispers("bob")) == 1 })
		if len(w.agent.ran()) != 0 {
			t.Error("started after the timeout")
		}
	})
}

// A slow directory must not cost the acknowledgement, and a late decision still counts.
func TestASlowDirectoryIsARefusalNotAWarning(t *testing.T) {
	inWorld(t, func(w *world) {
		root := w.say("alice", "@bot `ls`")
		card := w.card(root, 0)
		w.after(61 * time.Second) // what was known is forgotten
		w.fault(devslack.Fault{Method: "users.info", Times: -1, DelayMS: 20_000})
		w.fault(devslack.Fault{Method: "conversations.members", Times: -1, DelayMS: 20_000})
		if r := w.click("bob", card, actionApprove); !r.Acked || r.AckMS > 2500 {
			t.Errorf("acknowledged like this: %+v", r)
		}
		w.eventually("bob is told", func() bool { return len(w.whispers("bob")) == 1 })
		if len(w.resolutions()) != 0 {
			t.Error("resolved although it isn't known who clicked")
		}
	})
}

func TestStopEndsEveryCard(t *testing.T) {
	inWorld(t, func(w *world) {
		root := w.say("alice", "@bot `one` `two` `three`")
		w.card(root, 2)
		progress := w.things(root, kindProgress)[0]
		if r := w.click("gus", progress, actionStop, forge(w.run())); !r.Acked {
			t.Error("not acknowledged")
		}
		w.eventually("gus is refused", func() bool { return len(w.whispers("gus")) == 1 })
		run := w.run()
		other := w.card(w.say("bob", "@bot `four`"), 0)
		w.click("alice", other, actionStop, forge(run)) // a message of another run
		w.eventually("alice is refused", func() bool { return len(w.whispers("alice")) == 1 })
		if len(w.events("run_stop_requested")) != 0 {
			t.Fatal("stopped by a click that doesn't fit")
		}
		w.click("alice", w.cards(root)[0], actionStop, forge(run))
		w.eventually("the run is over", func() bool { return len(w.events("run_finished")) == 1 })
		w.eventually("its cards are over", func() bool {
			return !slices.ContainsFunc(w.cards(root), func(m devslack.Message) bool { return hasButton(m, actionDeny) })
		})
		if !hasButton(other, actionDeny) {
			t.Error("another run was stopped")
		}
		w.click("alice", progress, actionStop, forge("run-that-never-was"))
		w.whispered("alice", "this run")
	})
}

// What takes longer than Slack's patience is acknowledged in time, and counts.
func TestASlowEffectIsAcknowledgedInTime(t *testing.T) {
	inWorld(t, func(w *world) {
		w.agent.slow = 8 * time.Second
		root := w.say("alice", "@bot `one`")
		w.card(root, 0)
		if r := w.click("alice", w.things(root, kindProgress)[0], actionStop); !r.Acked || r.AckMS != ackBy.Milliseconds() {
			t.Errorf("acknowledged like this: %+v", r)
		}
		w.settled()
		if len(w.events("run_stop_requested")) != 1 {
			t.Error("not stopped")
		}
	})
}

// run is the id of the only run.
func (w *world) run() string { return w.events("run_started")[0].Run }

// A journal that can't be written: the click is answered so, the buttons stay, and it works again afterwards.
func TestAClickThatCantBeRecorded(t *testing.T) {
	inWorld(t, func(w *world) {
		root := w.say("alice", "@bot `ls`")
		card := w.card(root, 0)
		w.after(time.Second)
		release := ledgertest.Lock(t, w.dir)
		w.click("bob", card, actionApprove)
		w.whispered("bob", "can't record")
		if !hasButton(w.cards(root)[0], actionApprove) {
			t.Error("the buttons are gone")
		}
		release()
		w.click("bob", card, actionApprove)
		w.settled()
		if len(w.agent.ran()) != 1 {
			t.Error("not started after the journal could be written again")
		}
	}, func(w *world) { w.settings.Timeout = time.Hour })
}

func TestUnknownActionsAndInteractionsAreAcknowledged(t *testing.T) {
	inWorld(t, func(w *world) {
		root := w.say("alice", "@bot `ls`")
		card := w.card(root, 0)
		if r := w.click("bob", card, "frobnicate", forge("x")); !r.Acked {
			t.Error("an unknown action was not acknowledged")
		}
		for _, e := range []devslack.EnvelopeRequest{
			{Type: "interactive", Payload: map[string]any{"type": "shortcut", "callback_id": "x"}},
			{Type: "interactive", Payload: map[string]any{"type": "block_actions"}},
			{Type: "interactive", Payload: map[string]any{"type": "block_actions", "actions": []any{map[string]any{"block_id": "b", "action_id": "approve", "type": "button"}}}},
			{Type: "interactive", Payload: []any{"what"}},
			{Type: "slash_commands", Payload: map[string]any{"command": "/x"}},
			{Type: "events_api", Payload: map[string]any{"type": "event_callback", "event": map[string]any{"type": "never_heard_of"}}},
			{Type: "events_api", Payload: map[string]any{"type": "event_callback", "event": map[string]any{"type": "message", "blocks": "no list"}}},
			{Type: "events_api", Payload: map[string]any{"type": "event_callback", "api_app_id": w.ws.App.ID, "event": map[string]any{"type": "message", "channel": "C1"}}},
			{Type: "something_new", Payload: map[string]any{}},
			{Type: "something_else", Payload: "text"},
		} {
			r, err := w.slack.SendEnvelope(e)
			if err != nil || !r.Acked {
				t.Errorf("%s %v: %+v %v", e.Type, e.Payload, r, err)
			}
		}
		w.click("bob", card, actionApprove)
		w.settled()
	})
}

func TestADecisionOverHTTPEndsTheCard(t *testing.T) {
	inWorld(t, func(w *world) {
		w.agent.http = true
		root := w.say("alice", "@bot `ls`")
		card := w.card(root, 0)
		_, err := w.registry.ResolveByID(w.t.Context(), approvalOf(card), approvals.Decision{
			Type: ledger.Denied, By: ledger.Actor{Kind: ledger.ActorUser, Team: w.ws.Team.ID, ID: w.user("bob"), Via: "http"},
		})
		if err != nil {
			t.Fatal(err)
		}
		w.settled()
		w.isOver(w.cards(root)[0])
	})
}

// Who approves twice while a second person is needed is told so, and counts once.
func TestApprovingTwice(t *testing.T) {
	inWorld(t, func(w *world) {
		root := w.say("alice", "@bot `ls`")
		card := w.card(root, 0)
		w.click("bob", card, actionApprove)
		if n := len(w.whispers("bob")); n != 0 {
			t.Errorf("%d private sentences for a first vote", n)
		}
		w.click("bob", card, actionApprove)
		w.whispered("bob", "You have approved this already; 1 more is needed.")
		if len(w.resolutions()) != 0 {
			t.Fatal("one person was two")
		}
		w.click("carol", card, actionApprove)
		w.settled()
		if len(w.agent.ran()) != 1 {
			t.Error("not started")
		}
	}, func(w *world) { w.settings.Quorum = 2 })
}
