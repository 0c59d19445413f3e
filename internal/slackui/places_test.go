package slackui

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"approvalbot/internal/approvals"
	"approvalbot/internal/devslack"
	"approvalbot/internal/ledger"
)

// A standing message is one of ours, with the channel that it is in.
type standingMessage struct {
	devslack.Message
	in string
}

// everywhere lists our messages of a kind, in all channels.
func (w *world) everywhere(want string) []standingMessage {
	w.t.Helper()
	var out []standingMessage
	for _, c := range w.slack.Workspace().Channels {
		all, err := w.slack.Messages(c.ID, "")
		if err != nil {
			w.t.Fatal(err)
		}
		for _, m := range all {
			if k, _ := kind(m); k == want && m.EphemeralTo == "" {
				out = append(out, standingMessage{m, c.ID})
			}
		}
	}
	return out
}

// stands waits for the n-th message of a kind.
func (w *world) stands(want string, n int) standingMessage {
	w.t.Helper()
	w.eventually(fmt.Sprintf("%s %d stands there", want, n), func() bool { return len(w.everywhere(want)) > n })
	return w.everywhere(want)[n]
}

func (w *world) clickIn(user string, m standingMessage, action string, forge ...func(*devslack.ActionRequest)) {
	w.t.Helper()
	w.click(user, m.Message, action, append(forge, func(r *devslack.ActionRequest) { r.Channel = m.in })...)
}

// wordsOf are all texts of a message's blocks.
func wordsOf(m devslack.Message) string {
	var out strings.Builder
	var walk func(v any)
	walk = func(v any) {
		switch v := v.(type) {
		case []any:
			for _, x := range v {
				walk(x)
			}
		case map[string]any:
			for _, key := range []string{"text", "url", "channel_id", "user_id"} {
				if s, ok := v[key].(string); ok {
					out.WriteString(s + " ")
				}
			}
			for _, x := range v {
				walk(x)
			}
		}
	}
	var blocks any
	_ = json.Unmarshal(m.Blocks, &blocks)
	walk(blocks)
	return out.String()
}

func (w *world) says(m devslack.Message, want ...string) {
	w.t.Helper()
	for _, s := range want {
		if !strings.Contains(wordsOf(m), s) {
			w.t.Errorf("the message doesn't say %q: %s", s, wordsOf(m))
		}
	}
}

// inOps has #ops-private as the approvals channel.
func inOps(w *world) {
	w.settings.Channel, w.settings.Site = w.channel("ops-private"), "http://slack.test/"
}

func nameOf(users ...string) func(*world) {
	return func(w *world) {
		var ids []string
		for _, u := range users {
			ids = append(ids, w.user(u))
		}
		w.settings.Approvers, _ = approvals.ParseApprovers(ids)
		w.settings.Site = "http://slack.test/"
	}
}

// sound checks what holds when all is over: each message ended, was recorded, and can be computed again.
func (w *world) sound(renderings int64) {
	w.t.Helper()
	w.settled()
	for _, kind := range kinds {
		for _, m := range w.everywhere(kind) {
			w.isOver(m.Message)
			if hasButton(m.Message, actionApproveAll) {
				w.t.Errorf("everything is over and %s has Approve All Shown", kind)
			}
		}
	}
	if c := w.recheck(); c.Renderings != renderings || c.Other != 0 {
		w.t.Errorf("%d renderings computed again, %d not, want %d and 0", c.Renderings, c.Other, renderings)
	}
}

// An ask stands in its thread and in the approvals channel, linked both ways. The decision shows in both.
func TestApprovalsChannel(t *testing.T) {
	for _, place := range []string{kindCard, kindCopy} {
		t.Run(place, func(t *testing.T) {
			inWorld(t, func(w *world) {
				root := w.say("alice", "@bot `ls`")
				card, copied := w.stands(kindCard, 0), w.stands(kindCopy, 0)
				if copied.in != w.channel("ops-private") || card.ThreadTS != root || copied.ThreadTS != "" {
					t.Errorf("the card stands in %s %s, its copy in %s %s", card.in, card.ThreadTS, copied.in, copied.ThreadTS)
				}
				w.says(card.Message, "/archives/"+copied.in+"/p"+strings.Replace(copied.TS, ".", "", 1))
				w.says(copied.Message, "/archives/"+card.in+"/p"+strings.Replace(root, ".", "", 1)+"?thread_ts="+root)
				shown := w.events("approval_shown")
				if len(shown) != 2 || !shown[0].Body.(*ledger.ApprovalShown).Until.Equal(shown[1].Body.(*ledger.ApprovalShown).Until) {
					t.Errorf("shown %d times", len(shown))
				}
				if n := w.calls("chat.update", 0); n > 1 { // the progress
					t.Errorf("%d updates before anybody decided", n)
				}
				w.clickIn("bob", w.stands(place, 0), actionApprove)
				w.sound(4)
				w.says(w.stands(kindCard, 0).Message, "Done in")
				w.says(w.stands(kindCopy, 0).Message, "Done in", "U")
				if len(w.agent.ran()) != 1 || len(w.everywhere(kindCard)) != 1 || len(w.everywhere(kindCopy)) != 1 {
					t.Errorf("ran %v", w.agent.ran())
				}
			}, inOps)
		})
	}
}

// Two people decide in the two places in the same moment: one outcome, and both places show it.
func TestDecisionsInTwoPlaces(t *testing.T) {
	inWorld(t, func(w *world) {
		w.say("alice", "@bot `ls`")
		card, copied := w.stands(kindCard, 0), w.stands(kindCopy, 0)
		w.meanwhile("carol", card.Message, actionDeny)
		w.clickIn("bob", copied, actionApprove)
		w.sound(4)
		res := w.resolutions()
		if len(res) != 1 {
			t.Fatalf("%d resolutions", len(res))
		}
		for _, m := range []standingMessage{w.stands(kindCard, 0), w.stands(kindCopy, 0)} {
			if denied := strings.Contains(wordsOf(m.Message), "Denied by"); denied != (len(w.agent.ran()) == 0) {
				t.Errorf("it ran: %v, and it is told: %s", w.agent.ran(), wordsOf(m.Message))
			}
		}
	}, inOps)
}

// Members of the approvals channel count there although nobody listed it, also if it is public; those of a thread in
// another public channel don't.
func TestMembersOfTheApprovalsChannel(t *testing.T) {
	inWorld(t, func(w *world) {
		w.say("alice", "@bot `ls`")
		card := w.stands(kindCard, 0)
		w.says(card.Message, "full members of the channels where this stands")
		w.clickIn("carol", card, actionApprove) // in the thread's channel, which doesn't count
		w.whispered("carol", "You are not one of those who can approve this")
		if len(w.agent.ran()) != 0 {
			t.Errorf("ran %v", w.agent.ran())
		}
		w.clickIn("bob", card, actionApprove) // in the approvals channel, wherever he clicks
		w.sound(4)
		if len(w.agent.ran()) != 1 {
			t.Error("it didn't run")
		}
	}, inOps, func(w *world) { w.settings.OpenChannels = nil })
}

// Only there: the thread has a small message without buttons that leads to the card.
func TestOnlyThere(t *testing.T) {
	inWorld(t, func(w *world) {
		w.say("alice", "@bot `ls`")
		pointer, copied := w.stands(kindCard, 0), w.stands(kindCopy, 0)
		w.isOver(pointer.Message)
		w.says(pointer.Message, "Waiting for approval.", "Run ls", "/archives/"+copied.in+"/p"+strings.Replace(copied.TS, ".", "", 1))
		if n := len(w.events("approval_shown")); n != 1 {
			t.Errorf("shown %d times, want in one place", n)
		}
		_, id := kind(pointer.Message)
		w.clickIn("carol", pointer, actionApprove, func(r *devslack.ActionRequest) { r.Value, r.BlockID = id, id+".0" })
		w.whispered("carol", "You are not one of those who can approve this") // being in #general doesn't count
		if len(w.agent.ran()) != 0 {
			t.Fatal("approved by somebody who isn't in the approvals channel")
		}
		w.clickIn("bob", copied, actionApprove)
		w.sound(4)
		w.says(w.stands(kindCard, 0).Message, "Done in")
	}, inOps, func(w *world) { w.settings.Only = true })
}

// Where the approvals channel takes no message, the thread's message gets the buttons.
func TestOnlyThereAndItCantBePosted(t *testing.T) {
	inWorld(t, func(w *world) {
		w.fault(devslack.Fault{Method: "chat.postMessage", Match: `"kind":"copy"`, Times: -1, Error: "is_archived"})
		w.say("alice", "@bot `ls`")
		w.eventually("the thread's message has buttons", func() bool {
			cards := w.everywhere(kindCard)
			return len(cards) == 1 && hasButton(cards[0].Message, actionApprove)
		})
		card := w.stands(kindCard, 0)
		w.says(card.Message, "it could not be posted there")
		w.clickIn("bob", card, actionApprove)
		w.sound(3)
		if len(w.agent.ran()) != 1 {
			t.Errorf("ran %v, %s", w.agent.ran(), w.stands(kindCard, 0).Blocks)
		}
	}, inOps, func(w *world) { w.settings.Only = true })
}

// The approvals channel is busy for a minute: the thread's card doesn't wait for it.
func TestTheApprovalsChannelIsLimited(t *testing.T) {
	inWorld(t, func(w *world) {
		w.fault(devslack.Fault{Method: "chat.postMessage", Match: `"kind":"copy"`, RetryAfter: after(60)})
		began := time.Now()
		w.say("alice", "@bot `ls`")
		w.stands(kindCard, 0)
		if took := time.Since(began); took > 3*time.Second {
			t.Errorf("the card came after %s", took)
		}
		copied := w.stands(kindCopy, 0)
		if took := time.Since(began); took < 59*time.Second || took > 64*time.Second {
			t.Errorf("the copy came after %s", took)
		}
		var until []time.Time
		for _, e := range w.events("approval_shown") {
			until = append(until, e.Body.(*ledger.ApprovalShown).Until)
		}
		if len(until) != 2 || !until[0].Equal(until[1]) {
			t.Errorf("deadlines %v", until)
		}
		w.clickIn("bob", copied, actionDeny)
		w.sound(4)
	}, inOps)
}

// An ask that ends before its copy could be posted isn't posted there any more.
func TestACopyThatComesTooLate(t *testing.T) {
	inWorld(t, func(w *world) {
		w.fault(devslack.Fault{Method: "chat.postMessage", Match: `"kind":"copy"`, RetryAfter: after(60)})
		w.say("alice", "@bot `ls`")
		w.clickIn("bob", w.stands(kindCard, 0), actionApprove)
		w.sound(3)
		if n := len(w.everywhere(kindCopy)); n != 0 {
			t.Errorf("%d copies of what was over", n)
		}
	}, inOps)
}

// The bot isn't in the approvals channel: the thread's card has the buttons, and nothing waits.
func TestTheBotIsNotInTheApprovalsChannel(t *testing.T) {
	inWorld(t, func(w *world) {
		w.say("alice", "@bot `ls`")
		w.clickIn("bob", w.stands(kindCard, 0), actionApprove)
		w.sound(3)
		if len(w.agent.ran()) != 1 || len(w.everywhere(kindCopy)) != 0 {
			t.Errorf("ran %v, %d copies", w.agent.ran(), len(w.everywhere(kindCopy)))
		}
	}, func(w *world) {
		w.settings.Channel, w.settings.Only = w.channel("random"), true
	})
}

// Nowhere can it be posted: then the ask ends, and says so.
func TestNowhereToStand(t *testing.T) {
	inWorld(t, func(w *world) {
		for _, kind := range []string{kindCard, kindCopy} {
			w.fault(devslack.Fault{Method: "chat.postMessage", Match: `"kind":"` + kind + `"`, Times: -1, Error: "is_archived"})
		}
		w.say("alice", "@bot `ls`")
		w.sound(2)
		if got := w.resolutions(); len(got) != 1 || w.events("approval_resolved")[0].Body.(*ledger.ApprovalResolved).Source != ledger.SourceUndeliverable {
			t.Errorf("%v", got)
		}
	}, inOps)
}

// Nobody where it was asked may approve: the card says so, and those who may are written to.
func TestThoseWhoMayAreWrittenTo(t *testing.T) {
	inWorld(t, func(w *world) {
		ops := w.channel("ops-private")
		root := w.say("alice", "@bot `ls`", ops)
		card, letter := w.stands(kindCard, 0), w.stands(kindCopy, 0)
		if n := len(w.everywhere(kindCopy)); n != 1 {
			t.Errorf("%d were written to: dora is deactivated, alice asked", n)
		}
		im, err := w.slack.Messages(letter.in, "")
		if err != nil || !strings.HasPrefix(letter.in, "D") || len(im) != 1 {
			t.Errorf("it stands in %s: %v", letter.in, err)
		}
		w.says(card.Message, "Those who may approve this are not in this conversation.", "/archives/"+letter.in+"/p")
		if !strings.Contains(wordsOf(card.Message), "@carol") && !strings.Contains(wordsOf(card.Message), "@Carol") {
			t.Errorf("it doesn't say who: %s", wordsOf(card.Message))
		}
		w.says(letter.Message, "You are asked directly", "/archives/"+ops+"/p"+strings.Replace(root, ".", "", 1))
		w.clickIn("carol", letter, actionApprove)
		w.sound(4)
		if len(w.agent.ran()) != 1 {
			t.Errorf("ran %v", w.agent.ran())
		}
	}, nameOf("carol", "dora", "alice"))
}

// Where they can't be written to for good, nobody is kept waiting.
func TestThoseWhoMayCantBeWrittenTo(t *testing.T) {
	inWorld(t, func(w *world) {
		w.fault(devslack.Fault{Method: "conversations.open", Times: -1, Error: "missing_scope"})
		w.say("alice", "@bot `ls`", w.channel("ops-private"))
		w.sound(3)
		e := w.events("approval_resolved")[0].Body.(*ledger.ApprovalResolved)
		if e.Source != ledger.SourceUndeliverable || !strings.Contains(e.Reason, "missing_scope") {
			t.Errorf("%s: %s", e.Source, e.Reason)
		}
	}, nameOf("carol"))
}

// Where that isn't known, the card waits where it was asked.
func TestThoseWhoMayAreNotReachedNow(t *testing.T) {
	inWorld(t, func(w *world) {
		w.fault(devslack.Fault{Method: "conversations.open", Times: -1, Status: 503})
		w.say("alice", "@bot `ls`", w.channel("ops-private"))
		card := w.stands(kindCard, 0)
		w.says(card.Message, "could not be written to")
		w.clickIn("bob", card, actionDeny)
		w.clickIn("alice", card, actionDeny)
		w.sound(3)
	}, nameOf("carol"))
}

// Whom a card mentions, and how often.
func TestNotify(t *testing.T) {
	mentioned := func(m devslack.Message, user string) bool {
		return strings.Contains(string(m.Blocks), `"user_id":"`+user+`"`)
	}
	for _, c := range []struct {
		notify     []string
		card, copy []string // who is mentioned
	}{
		{nil, []string{"alice"}, []string{"alice", "bob"}},
		{[]string{"approvers"}, []string{"alice"}, []string{"alice", "bob"}},
		{[]string{"none"}, []string{"alice"}, []string{"alice"}},
		{[]string{"carol"}, []string{"alice"}, []string{"alice", "carol"}},
		{[]string{"approvers", "carol"}, []string{"alice"}, []string{"alice", "bob", "carol"}},
	} {
		t.Run(fmt.Sprint(c.notify), func(t *testing.T) {
			inWorld(t, func(w *world) {
				w.say("alice", "@bot `ls`")
				for kind, want := range map[string][]string{kindCard: c.card, kindCopy: c.copy} {
					var got []string
					for _, u := range []string{"alice", "bob", "carol"} {
						if mentioned(w.stands(kind, 0).Message, w.user(u)) {
							got = append(got, u)
						}
					}
					if diff := cmp.Diff(want, got); diff != "" {
						t.Errorf("%s: %s", kind, diff)
					}
				}
				w.clickIn("carol", w.stands(kindCard, 0), actionApprove)
				w.whispered("carol", "You are not one of those who can approve this")
				if len(w.agent.ran()) != 0 {
					t.Error("a mention made somebody an approver")
				}
				w.clickIn("bob", w.stands(kindCopy, 0), actionApprove)
				w.sound(4)
			}, nameOf("bob"), inOps, func(w *world) {
				for _, n := range c.notify {
					if n == "carol" {
						n = w.user(n)
					}
					w.settings.Notify = append(w.settings.Notify, n)
				}
			})
		})
	}
}

// The process ends between the two posts. Both are found, or not posted any more, and both end.
func TestACrashBetweenTwoPlaces(t *testing.T) {
	for _, lost := range []string{kindCard, kindCopy} {
		for name, f := range map[string]devslack.Fault{
			"not posted":           {Status: 500, Times: -1},
			"posted, not answered": {DelayMS: 9000},
			"posted, answer lost":  {DropResponse: true},
		} {
			t.Run(lost+" "+name, func(t *testing.T) {
				inWorld(t, func(w *world) {
					f.Method, f.Match = "chat.postMessage", `"kind":"`+lost+`"`
					w.fault(f)
					w.say("alice", "@bot `ls`")
					other := map[string]string{kindCard: kindCopy, kindCopy: kindCard}[lost]
					w.stands(other, 0)
					w.after(time.Second)
					w.crash()
					w.slack.ClearFaults()
					w.start2()
					w.settled()
					for _, kind := range []string{kindCard, kindCopy} {
						all := w.everywhere(kind)
						if want := 1; len(all) > want || kind == other && len(all) != want {
							t.Errorf("%d messages of kind %s", len(all), kind)
						}
						for _, m := range all {
							w.isOver(m.Message)
						}
					}
				}, inOps)
			})
		}
	}
}

// A click on the copy counts although its post was never answered.
func TestAClickOnACopyBeforeItsAnswer(t *testing.T) {
	inWorld(t, func(w *world) {
		w.fault(devslack.Fault{Method: "chat.postMessage", Match: `"kind":"copy"`, DropResponse: true})
		w.say("alice", "@bot `ls`")
		w.clickIn("bob", w.stands(kindCopy, 0), actionApprove)
		w.sound(4)
		if len(w.agent.ran()) != 1 || len(w.everywhere(kindCopy)) != 1 {
			t.Errorf("ran %v, %d copies", w.agent.ran(), len(w.everywhere(kindCopy)))
		}
	}, inOps)
}

// A click in one place doesn't count for a message of another.
func TestClicksThatDontFitTheirPlace(t *testing.T) {
	inWorld(t, func(w *world) {
		w.say("alice", "@bot `one`")
		first := w.stands(kindCopy, 0)
		w.say("alice", "@bot `two`")
		second := w.stands(kindCopy, 1)
		_, id := kind(second.Message)
		id, _, _ = strings.Cut(id, "/")
		w.clickIn("bob", first, actionApprove, func(r *devslack.ActionRequest) { r.Value = id })
		w.clickIn("bob", first, actionApprove, func(r *devslack.ActionRequest) { r.Value, r.BlockID = id, id+".0" })
		if len(w.agent.ran()) != 0 {
			t.Fatalf("ran %v", w.agent.ran())
		}
		w.clickIn("bob", second, actionDeny)
		w.clickIn("bob", first, actionDeny)
		w.sound(8)
	}, inOps)
}
