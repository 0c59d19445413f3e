package slackui

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"approvalbot/internal/devslack"
	"approvalbot/internal/ledger"
	"approvalbot/internal/rapidtest"
)

// inSets puts the asks of a round into one message.
func inSets(w *world) { w.settings.Together, w.settings.Site = true, "http://slack.test/" }

// askedFor is the approvalId of the ask about a command.
func (w *world) askedFor(command string) string {
	w.t.Helper()
	for _, e := range w.events("approval_requested") {
		if b := e.Body.(*ledger.ApprovalRequested); b.Preview.Body == command {
			return b.Approval
		}
	}
	w.t.Fatalf("nobody was asked about %s", command)
	return ""
}

// carrying is the message whose blocks have a title.
func (w *world) carrying(title string) standingMessage {
	w.t.Helper()
	for _, m := range append(w.everywhere(kindSet), w.everywhere(kindCard)...) {
		if strings.Contains(wordsOf(m.Message)+" ", title+" ") {
			return m
		}
	}
	w.t.Fatalf("no message has %q", title)
	return standingMessage{}
}

// clickOn uses a button of one of a set's asks.
func (w *world) clickOn(user string, m standingMessage, command, action string) {
	w.t.Helper()
	id := w.askedFor(command)
	w.clickIn(user, m, action, func(r *devslack.ActionRequest) { r.Value, r.BlockID = id, id+".0" })
}

// The asks of one round stand in one message, each with its own end.
func TestASet(t *testing.T) {
	inWorld(t, func(w *world) {
		w.say("alice", "@bot `one` `two` `three`")
		set := w.stands(kindSet, 0)
		w.says(set.Message, "3 requests, each decided on its own", "Run one", "Run two", "Run three", "Approve All Shown (3)")
		if !strings.HasPrefix(set.Text, "3 approvals needed: Run ") {
			t.Errorf("a notification says %q", set.Text)
		}
		if n := strings.Count(string(set.Blocks), `"style":"primary"`); n != 1 {
			t.Errorf("%d primary buttons", n)
		}
		if n := len(w.events("approval_shown")); n != 3 {
			t.Errorf("shown: %d asks", n)
		}
		w.clickOn("bob", set, "one", actionApprove)
		w.clickOn("carol", set, "two", actionDeny)
		w.eventually("two are over", func() bool { return strings.Contains(wordsOf(w.stands(kindSet, 0).Message), "Denied by") })
		w.after(5 * time.Second)
		set = w.stands(kindSet, 0)
		w.says(set.Message, "Done in", "Denied by", "Run three")
		if hasButton(set.Message, actionApproveAll) {
			t.Error("one is left, and all can be approved")
		}
		w.sound(3) // the third one's time runs out
		w.says(w.stands(kindSet, 0).Message, "3 requests, all decided", "obody answered")
		if diff := cmp.Diff([]string{"one"}, w.agent.ran()); diff != "" {
			t.Error(diff)
		}
		if len(w.everywhere(kindCard)) != 0 || len(w.everywhere(kindSet)) != 1 {
			t.Errorf("%d cards, %d sets", len(w.everywhere(kindCard)), len(w.everywhere(kindSet)))
		}
	}, inSets)
}

// One ask alone looks like a card.
func TestASetOfOne(t *testing.T) {
	inWorld(t, func(w *world) {
		began := time.Now()
		w.say("alice", "@bot `one`")
		set := w.stands(kindSet, 0)
		if took := time.Since(began); took > 500*time.Millisecond {
			t.Errorf("it waited for others for %s", took)
		}
		w.says(set.Message, "Exactly what", "Approve")
		if strings.Contains(wordsOf(set.Message), "request") && strings.Contains(wordsOf(set.Message), "decided on its own") {
			t.Error("it says that it is a set")
		}
		w.clickIn("bob", set, actionApprove)
		w.sound(3)
	}, inSets)
}

// Approve All Shown is one decision for each.
func TestApproveAllShown(t *testing.T) {
	inWorld(t, func(w *world) {
		w.say("alice", "@bot `one` `two` `three`")
		w.clickIn("bob", w.stands(kindSet, 0), actionApproveAll)
		w.sound(3)
		if diff := cmp.Diff([]string{"one", "three", "two"}, w.agent.ran()); diff != "" {
			t.Error(diff)
		}
		for id, r := range w.resolutions() {
			if r.By == nil || r.By.ID != w.user("bob") || r.Source != ledger.SourceUser {
				t.Errorf("%s: %+v", id, r)
			}
		}
		if n := len(w.events("approval_voted")); n != 3 {
			t.Errorf("%d votes", n)
		}
	}, inSets)
}

// What isn't as it was shown isn't approved: neither what was decided meanwhile nor the rest.
func TestApproveAllOfWhatHasChanged(t *testing.T) {
	inWorld(t, func(w *world) {
		w.say("alice", "@bot `one` `two` `three`")
		before := w.stands(kindSet, 0)
		w.clickOn("carol", before, "two", actionDeny)
		w.eventually("it is shown", func() bool { return strings.Contains(wordsOf(w.stands(kindSet, 0).Message), "Denied by") })
		state := buttonBlock(before.Message, actionApproveAll)
		w.clickIn("bob", before, actionApproveAll, func(r *devslack.ActionRequest) { r.BlockID = state; r.Value = setIDOf(before.Message) })
		w.whispered("bob", "This has changed since it was shown to you")
		if len(w.agent.ran()) != 0 {
			t.Errorf("ran %v", w.agent.ran())
		}
		w.clickIn("bob", w.stands(kindSet, 0), actionApproveAll)
		w.sound(3)
		if diff := cmp.Diff([]string{"one", "three"}, w.agent.ran()); diff != "" {
			t.Error(diff)
		}
	}, inSets)
}

// buttonBlock is the block_id of a button's block.
func buttonBlock(m devslack.Message, action string) string {
	s := string(m.Blocks)
	i := strings.Index(s, `"block_id":"`+setPrefix)
	if i < 0 || action != actionApproveAll {
		return ""
	}
	s = s[i+len(`"block_id":"`):]
	return s[:strings.IndexByte(s, '"')]
}

func setIDOf(m devslack.Message) string {
	_, id := kind(m)
	return id
}

// One is denied in the same moment in which all are approved: whichever is first, each ask has one outcome and everybody
// is told.
func TestApproveAllWhileOneIsDenied(t *testing.T) {
	inWorld(t, func(w *world) {
		w.say("alice", "@bot `one` `two` `three`")
		set := w.stands(kindSet, 0)
		id := w.askedFor("two")
		w.clicks.Go(func() {
			_, _ = w.slack.Click(w.t.Context(), devslack.ActionRequest{
				User: w.user("carol"), Channel: set.in, TS: set.TS, ActionID: actionDeny, Value: id, BlockID: id + ".0"})
		})
		w.clickIn("bob", set, actionApproveAll)
		w.sound(3)
		res := w.resolutions()
		if len(res) != 3 {
			t.Errorf("%d resolutions", len(res))
		}
		ran := w.agent.ran()
		if denied := res[id].Type == ledger.Denied; denied == slices.Contains(ran, "two") {
			t.Errorf("denied: %v, ran %v", denied, ran)
		}
		told := len(w.whispers("bob")) + len(w.whispers("carol"))
		if told > 1 || res[id].Type == ledger.Denied && len(ran) < 2 && len(w.whispers("bob")) == 0 {
			t.Errorf("told bob %q, carol %q", w.whispers("bob"), w.whispers("carol"))
		}
	}, inSets)
}

// Somebody who may not is told so once, and nothing happens.
func TestApproveAllBySomebodyWhoMayNot(t *testing.T) {
	inWorld(t, func(w *world) {
		w.say("alice", "@bot `one` `two`")
		set := w.stands(kindSet, 0)
		w.clickIn("alice", set, actionApproveAll)
		w.whispered("alice", "somebody else has to approve it")
		w.clickIn("gus", set, actionApproveAll)
		w.whispered("gus", "Guests can't approve this")
		if len(w.whispers("alice")) != 1 || len(w.whispers("gus")) != 1 || len(w.agent.ran()) != 0 {
			t.Errorf("told %q %q, ran %v", w.whispers("alice"), w.whispers("gus"), w.agent.ran())
		}
		// Nor does it count from another message, or with another state.
		w.say("alice", "@bot `three` `four`")
		other := w.stands(kindSet, 1)
		w.clickIn("bob", other, actionApproveAll, func(r *devslack.ActionRequest) {
			r.Value, r.BlockID = setIDOf(set.Message), buttonBlock(set.Message, actionApproveAll)
		})
		w.clickIn("bob", set, actionApproveAll, func(r *devslack.ActionRequest) {
			r.Value, r.BlockID = setIDOf(set.Message), setPrefix+"0123456789abcdef"
		})
		w.after(time.Second)
		if len(w.agent.ran()) != 0 {
			t.Errorf("ran %v", w.agent.ran())
		}
		w.clickIn("bob", set, actionApproveAll)
		w.clickIn("bob", other, actionApproveAll)
		w.sound(6)
	}, inSets)
}

// What is too long for company has a card of its own; many are split.
func TestSetsAreSplit(t *testing.T) {
	inWorld(t, func(w *world) {
		long := strings.Repeat("x", 3800)
		text := "@bot `" + long + "`"
		for i := range 10 {
			text += " `c" + string(rune('a'+i)) + "`"
		}
		w.say("alice", text)
		w.eventually("all are shown", func() bool { return len(w.events("approval_shown")) == 11 })
		w.after(3 * time.Second)
		if n := len(w.everywhere(kindSet)) + len(w.everywhere(kindCard)); n < 3 || n > 4 {
			t.Errorf("%d messages", n)
		}
		for _, m := range w.everywhere(kindSet) {
			if hasButton(m.Message, actionApproveAll) {
				w.clickIn("bob", m, actionApproveAll)
			} else {
				w.clickIn("bob", m, actionApprove)
			}
		}
		for _, m := range w.everywhere(kindCard) {
			w.clickIn("bob", m, actionApprove)
		}
		w.settled()
		if n := len(w.agent.ran()); n != 11 {
			t.Errorf("%d ran", n)
		}
	}, inSets)
}

// A set of {approve, deny, timeout, too long}.
func TestASetOfEverything(t *testing.T) {
	inWorld(t, func(w *world) {
		w.agent.argument = ""
		w.say("alice", "@bot `yes` `no` `never` `"+strings.Repeat("y", 3900)+"`")
		w.eventually("all are shown", func() bool { return len(w.events("approval_shown")) == 4 })
		w.stands(kindSet, 0)
		w.clickOn("bob", w.carrying("Run yes"), "yes", actionApprove)
		w.clickOn("bob", w.carrying("Run no"), "no", actionDeny)
		w.settled()
		for _, m := range append(w.everywhere(kindSet), w.everywhere(kindCard)...) {
			w.isOver(m.Message)
		}
		if diff := cmp.Diff([]string{"yes"}, w.agent.ran()); diff != "" {
			t.Error(diff)
		}
	}, inSets)
}

// With an approvals channel the set stands in both places.
func TestASetInTheApprovalsChannel(t *testing.T) {
	for _, only := range []bool{false, true} {
		inWorld(t, func(w *world) {
			w.say("alice", "@bot `one` `two`")
			w.eventually("the copy stands there", func() bool {
				return slices.ContainsFunc(w.everywhere(kindSet), func(m standingMessage) bool { return m.in == w.channel("ops-private") })
			})
			for _, m := range w.everywhere(kindSet) {
				if m.in == w.channel("ops-private") {
					w.clickIn("bob", m, actionApproveAll)
				}
			}
			want := int64(4)
			if only {
				want = 5
			}
			w.sound(want)
			if len(w.agent.ran()) != 2 {
				t.Errorf("ran %v", w.agent.ran())
			}
		}, inSets, inOps, func(w *world) { w.settings.Only = only })
	}
}

// A set whose post was never answered is clicked, or found again after a restart.
func TestASetWhoseAnswerIsLost(t *testing.T) {
	inWorld(t, func(w *world) {
		w.fault(devslack.Fault{Method: "chat.postMessage", Match: `"kind":"set"`, DropResponse: true})
		w.say("alice", "@bot `one` `two`")
		w.clickIn("bob", w.stands(kindSet, 0), actionApproveAll)
		w.sound(3)
		if len(w.agent.ran()) != 2 || len(w.everywhere(kindSet)) != 1 {
			t.Errorf("ran %v, %d sets", w.agent.ran(), len(w.everywhere(kindSet)))
		}
	}, inSets)
	inWorld(t, func(w *world) {
		w.fault(devslack.Fault{Method: "chat.postMessage", Match: `"kind":"set"`, DropResponse: true})
		w.say("alice", "@bot `one` `two`")
		w.stands(kindSet, 0)
		w.crash()
		w.start2()
		w.sound(3)
		if n := len(w.everywhere(kindSet)); n != 1 {
			t.Errorf("%d sets", n)
		}
	}, inSets)
}

// High and critical risk, and what is to be confirmed, isn't approved together with others; what isn't shown whole isn't either.
func TestWhatIsEasy(t *testing.T) {
	rapidtest.Checks(t, 100)
	rapid.Check(t, func(rt *rapid.T) {
		s := newStory()
		n := rapid.IntRange(2, 8).Draw(rt, "asks")
		var calls []ledger.ToolCall
		for i := range n {
			calls = append(calls, toolCall("call_"+string(rune('1'+i)), "shell", "{}"))
		}
		s.calls("", calls...)
		risks := map[string]string{}
		for _, c := range calls {
			s.ask(c.ID, func(r *ledger.ApprovalRequested) {
				shell(strings.Repeat(rapid.SampledFrom([]string{"a", "<", "“", "&"}).Draw(rt, "of"), rapid.SampledFrom([]int{1, 20, 200, 900, 3000}).Draw(rt, "long")))(r)
				r.Risk = rapid.SampledFrom([]string{"", "low", "medium", "high", "critical"}).Draw(rt, "risk")
				r.Confirm = rapid.Bool().Draw(rt, "confirm")
				r.Together = true
				risks[r.Approval] = r.Risk
				if r.Confirm {
					risks[r.Approval] = "confirm"
				}
			})
		}
		v := testRenderer().standing(&s.run, 0)
		view := v.set(&s.run, asksInOrder(&s.run), nil)
		if w := weight(view.blocks...); w > maxMessage || len(view.blocks) > 50 {
			rt.Fatalf("%d blocks weigh %d", len(view.blocks), w)
		}
		raw := blocksAsText(view.blocks)
		for _, id := range view.all {
			if r := risks[id]; r == "high" || r == "critical" || r == "confirm" {
				rt.Errorf("%s is %s and can be approved together with others", id, r)
			}
		}
		for _, c := range s.run.Calls {
			if slices.Contains(view.all, c.Approval.Approval) && !strings.Contains(raw, c.Approval.Preview.Body) {
				rt.Errorf("%s isn't shown whole and can be approved together with others", c.ID)
			}
		}
	})
}

// In which message an ask stands doesn't depend on what is asked, decided or posted later.
func TestAnAsksPlaceStays(t *testing.T) {
	rapidtest.Checks(t, 100)
	rapid.Check(t, func(rt *rapid.T) {
		s := newStory()
		var calls []ledger.ToolCall
		n := rapid.IntRange(1, 12).Draw(rt, "asks")
		for i := range n {
			calls = append(calls, toolCall("call_"+string(rune('a'+i)), "shell", "{}"))
		}
		s.calls("", calls...)
		b := newBook()
		b.runs["run-1"] = &s.run
		s.run.Started.Place = ledger.Place{Channel: "C0GENERAL", Thread: "1.1"}
		where := map[string]ledger.Thing{}
		for _, c := range rapid.Permutation(calls).Draw(rt, "order") {
			s.now = s.now.Add(rapid.SampledFrom([]time.Duration{-time.Second, -time.Second, -900 * time.Millisecond, 0}).Draw(rt, "later"))
			s.ask(c.ID, func(r *ledger.ApprovalRequested) {
				shell(strings.Repeat("a", rapid.SampledFrom([]int{1, 1, 2000, 7000}).Draw(rt, "long")))(r)
				r.Together = rapid.IntRange(0, 9).Draw(rt, "alone") > 0
			})
			b.sync(&s.run, testRenderer())
			if rapid.Bool().Draw(rt, "decided") {
				s.deny(c.ID, bob, "no")
				b.sync(&s.run, testRenderer())
			}
			for _, c := range asksInOrder(&s.run) {
				things := b.byAsk[c.Approval.Approval]
				if len(things) != 1 {
					rt.Fatalf("%s stands in %d messages", c.ID, len(things))
				}
				if was, ok := where[c.ID]; ok && was != things[0].Thing {
					rt.Fatalf("%s moved from %v to %v", c.ID, was, things[0].Thing)
				}
				where[c.ID] = things[0].Thing
				if len(things[0].calls) > setMost {
					rt.Fatalf("%d asks in one message", len(things[0].calls))
				}
			}
		}
	})
}

// A quorum is one vote each, also by Approve All Shown.
func TestApproveAllOfAQuorum(t *testing.T) {
	inWorld(t, func(w *world) {
		w.say("alice", "@bot `one` `two`")
		w.clickIn("bob", w.stands(kindSet, 0), actionApproveAll)
		w.after(3 * time.Second)
		if len(w.agent.ran()) != 0 {
			t.Fatalf("ran %v", w.agent.ran())
		}
		w.clickIn("carol", w.stands(kindSet, 0), actionApproveAll)
		w.sound(3)
		if len(w.agent.ran()) != 2 {
			t.Errorf("ran %v", w.agent.ran())
		}
	}, inSets, func(w *world) { w.settings.Quorum = 2 })
}

// What waits for somebody is found whichever kind of message it stands in, and leads to one that they can see.
func TestWhatWaitsInSetsAndElsewhere(t *testing.T) {
	inWorld(t, func(w *world) {
		w.say("alice", "@bot `one` `two`")
		w.eventually("both places have it", func() bool { return len(w.everywhere(kindSet)) == 2 })
		w.after(5 * time.Second)
		var there standingMessage
		for _, m := range w.everywhere(kindSet) {
			if m.in == w.channel("ops-private") {
				there = m
			}
		}
		bob := ledger.Actor{Kind: ledger.ActorUser, Team: w.slack.Workspace().Team.ID, ID: w.user("bob"), Via: surface}
		waits, cut := w.ui.waitingFor(context.Background(), bob)
		if len(waits) != 2 || cut {
			t.Fatalf("%d requests wait for bob", len(waits))
		}
		for _, s := range waits {
			if want := permalink(w.ui.client.URL, there.in, there.TS, ""); s.link != want {
				t.Errorf("it leads to %s, not to %s", s.link, want)
			}
		}
		w.clickIn("bob", there, actionApproveAll)
		w.sound(4)
		if waits, _ := w.ui.waitingFor(context.Background(), bob); len(waits) != 0 {
			t.Errorf("%d requests wait for bob after they were approved", len(waits))
		}
	}, inSets, inOps)
}
