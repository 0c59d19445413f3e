package slackui

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"approvalbot/internal/language"
	"approvalbot/internal/ledger"
)

// urgentStory is an ask that was reminded of twice, escalated and given more time.
func urgentStory(command string, change func(*ledger.ApprovalRequested)) (*story, string) {
	s := newStory()
	raw, _ := json.Marshal(map[string]string{"command": command})
	s.calls("", toolCall("call_1", "shell", string(raw)))
	s.ask("call_1", func(q *ledger.ApprovalRequested) {
		q.Preview = ledger.Preview{Kind: "command", Summary: "Run " + command, Target: "sh", Body: command}
		q.Place, q.Site = ledger.Place{Team: "T0TEAM", Channel: "C0GENERAL", Thread: "1.1"}, "https://local.slack.test/"
		q.Approvers, q.Timeout, q.MoreTime = []string{"U0BOB", "S0CALL", "channel"}, 10*time.Minute, 15*time.Minute
		q.Offers = []ledger.Offer{ledger.OfferMoreTime, ledger.OfferAskAgain}
		q.Escalate = []ledger.Escalation{{After: 6 * time.Minute, Approvers: []string{"U0CAROL", "S0LEADS"}}}
		if change != nil {
			change(q)
		}
	})
	id := s.run.Call("call_1").Approval.Approval
	s.add("call_1", ledger.System, &ledger.ApprovalShown{Approval: id, Surface: surface, Channel: "C0GENERAL", TS: "1.2", Until: s.now.Add(10 * time.Minute)})
	s.now = s.now.Add(5 * time.Minute)
	s.add("call_1", ledger.System, &ledger.ApprovalReminded{Approval: id, N: 1, To: []string{"U0BOB", "S0CALL", "channel"}})
	s.add("call_1", ledger.System, &ledger.ApprovalReminded{Approval: id, N: 2, To: []string{"U0BOB"}, Direct: true})
	s.add("call_1", ledger.System, &ledger.ApprovalEscalated{Approval: id, Level: 1, Approvers: []string{"U0CAROL", "S0LEADS"}, To: []string{"U0CAROL"}})
	s.add("call_1", alice, &ledger.ApprovalExtended{Approval: id, N: 1, Until: s.run.Call("call_1").Approval.Until().Add(10 * time.Minute)})
	return s, id
}

// Each nudge says what it is about, to whom, until when, and leads to the card; afterwards it is one line.
func TestNudges(t *testing.T) {
	s, id := urgentStory("printf ok > proof.txt", nil)
	v := testRenderer()
	c := s.call("call_1")
	want := map[string]struct {
		says  string
		users []string
	}{
		id + "/1":          {"still waiting for an answer", []string{"U0BOB", "S0CALL"}},
		id + "/2/U0BOB":    {"This waits for your answer", []string{"U0ALICE"}},
		id + "/e1":         {"may approve this, too", []string{"U0CAROL", "S0LEADS"}},
		id + "/e1/U0CAROL": {"you may approve this, too", []string{"U0ALICE"}},
	}
	all := nudges(c.Approval)
	if len(all) != len(want) {
		t.Fatalf("%d nudges: %v", len(all), all)
	}
	for _, n := range all {
		w, known := want[n.id()]
		out, final := v.nudge(&s.run, c, n.id())
		checked := checkMessage(out)
		for _, p := range checked.problems {
			t.Errorf("%s: %s", n.id(), p)
		}
		if !known || final || len(checked.actions) > 0 {
			t.Errorf("%s: known %t, final %t, to click %v", n.id(), known, final, checked.actions)
		}
		raw, _ := json.Marshal(out.blocks)
		link := "https://local.slack.test/archives/C0GENERAL/p12?thread_ts=1.1\\u0026cid=C0GENERAL"
		if shown := checked.shown.String(); !strings.Contains(shown, w.says) || !strings.Contains(shown, "Run printf ok > proof.txt") || !strings.Contains(string(raw), link) {
			t.Errorf("%s says %s in %s", n.id(), shown, raw)
		}
		for _, u := range w.users {
			if !checked.users[u] {
				t.Errorf("%s doesn't mention %s but %v", n.id(), u, checked.users)
			}
		}
		if at := n.place(ledger.Place{Channel: "C0GENERAL"}); n.user != "" && at.Channel != n.user || n.user == "" && at.Channel != "C0GENERAL" {
			t.Errorf("%s belongs to %+v", n.id(), at)
		}
	}
	if out, _ := v.nudge(&s.run, c, id+"/1"); !strings.HasPrefix(out.text, "Still waiting for an answer, 14 minutes left: Run printf") {
		t.Errorf("a notification reads %q", out.text)
	}
}

// The last state of a nudge depends on nothing but the end: not on us, not on the workspace.
func TestNudgesAfterTheEnd(t *testing.T) {
	for says, end := range map[string]func(*story) *story{
		"Answered by ": func(s *story) *story { return s.approve("call_1", bob) },
		"Nobody answered.": func(s *story) *story {
			return s.lapse("call_1", ledger.SourceTimeout, "nobody answered within 20 minutes")
		},
		"This isn't asked any more.": func(s *story) *story { return s.lapse("call_1", ledger.SourceAbort, "stopped by alice") },
	} {
		s, _ := urgentStory("date", nil)
		end(s)
		c := s.call("call_1")
		for _, n := range nudges(c.Approval) {
			v := testRenderer()
			out, final := v.nudge(&s.run, c, n.id())
			again, _ := anyones.nudge(&s.run, c, n.id())
			shown := checkMessage(out).shown.String()
			if !final || out.hash() != again.hash() || !strings.Contains(shown, says) || !strings.Contains(shown, "Run date") || !strings.Contains(out.text, "Run date") {
				t.Errorf("%s: final %t, computable %t: %s", n.id(), final, out.hash() == again.hash(), shown)
			}
		}
	}
}

// lapse ends an ask without people.
func (s *story) lapse(call string, source ledger.Source, reason string) *story {
	id := s.run.Call(call).Approval.Approval
	return s.add(call, ledger.System, &ledger.ApprovalResolved{Approval: id, Type: ledger.Denied, Source: source, Reason: reason})
}

// The card of such an ask says all of it, and offers more time while there is some.
func TestUrgencyOnTheCard(t *testing.T) {
	s, id := urgentStory("date", nil)
	show := func() (string, string) {
		out := testRenderer().card(&s.run, s.call("call_1"), s.call("call_1").Approval.Until())
		for _, p := range checkMessage(out).problems {
			t.Error(p)
		}
		raw, _ := json.Marshal(out.blocks)
		return checkMessage(out).shown.String(), string(raw)
	}
	shown, raw := show()
	for _, w := range []string{"Reminded:", "may approve, too, since", "moved the deadline to"} {
		if !strings.Contains(shown, w) {
			t.Errorf("it doesn't say %q: %s", w, shown)
		}
	}
	if !strings.Contains(raw, `"more_time.`+id) || strings.Contains(shown, "latest") {
		t.Errorf("more time isn't offered: %s", raw)
	}
	s.add("call_1", bob, &ledger.ApprovalExtended{Approval: id, N: 2, Until: s.call("call_1").Approval.Limit()})
	shown, raw = show()
	if strings.Contains(raw, `"more_time.`) || !strings.Contains(shown, "the latest there can be") {
		t.Errorf("the limit is reached: %s", raw)
	}
}

// A card that nobody answered offers to be asked again, until somebody has done so.
func TestAskAgainOnTheCard(t *testing.T) {
	for reason, offered := range map[string]bool{
		"nobody answered within 10 minutes": true, "approvalbot was stopped": true, "Approvalbot restarted before anyone answered.": true,
		"stopped by approvalbot (not the bot)": false, "the run ended": false,
	} {
		s, id := urgentStory("date", nil)
		source := ledger.SourceAbort
		if strings.HasPrefix(reason, "nobody") {
			source = ledger.SourceTimeout
		}
		s.lapse("call_1", source, reason)
		card := func() *blockChecker {
			out := testRenderer().card(&s.run, s.call("call_1"), time.Time{})
			checked := checkMessage(out)
			for _, p := range checked.problems {
				t.Error(p)
			}
			return checked
		}
		if got := fmt.Sprint(card().actions); strings.Contains(got, actionAskAgain) != offered {
			t.Errorf("%s: offered %s, want %t", reason, got, offered)
		}
		if s.run.Stop = (&ledger.StopRequest{By: carol}); source == ledger.SourceAbort && slices.Contains(card().actions, actionAskAgain) {
			t.Errorf("%s: offered although somebody stopped the run", reason)
		}
		s.add("call_1", carol, &ledger.ApprovalAskedAgain{Approval: id, Message: 99})
		if checked := card(); len(checked.actions) != 0 || !strings.Contains(checked.shown.String(), "Asked again by") {
			t.Errorf("%s: after it was asked again: %v %s", reason, checked.actions, checked.shown.String())
		}
	}
}

// Whatever is asked, in every language: what Slack gets is valid, and shows text of others only where that is harmless.
func TestUrgencyProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		command := rapid.OneOf(rapid.String(), rapid.StringMatching("[<&>\u202E`*~_ !@#a-z\n]{0,400}")).Draw(t, "command")
		long := rapid.IntRange(0, 3).Draw(t, "long")
		words := []string{"requester", "channel"}
		for i := range rapid.IntRange(0, 40).Draw(t, "approvers") {
			words = append(words, fmt.Sprintf("U0%d", i))
		}
		s, id := urgentStory(command+strings.Repeat("<&>", long*2000), func(q *ledger.ApprovalRequested) { q.Approvers = words })
		s.add("call_1", ledger.System, &ledger.ApprovalReminded{Approval: id, N: 3, To: words})
		switch rapid.IntRange(0, 3).Draw(t, "end") {
		case 1:
			s.lapse("call_1", ledger.SourceTimeout, command)
		case 2:
			s.lapse("call_1", ledger.SourceAbort, "approvalbot "+command)
		case 3:
			s.add("call_1", bob, &ledger.ApprovalResolved{Approval: id, Type: ledger.Denied, Source: ledger.SourceUser, Reason: command, By: &bob})
		}
		if rapid.Bool().Draw(t, "again") {
			s.add("call_1", bob, &ledger.ApprovalAskedAgain{Approval: id, Message: 99})
		}
		for _, l := range language.All {
			v := testRenderer()
			v.lang = l
			all := []rendering{v.card(&s.run, s.call("call_1"), time.Time{})}
			for _, n := range nudges(s.call("call_1").Approval) {
				out, _ := v.nudge(&s.run, s.call("call_1"), n.id())
				all = append(all, out)
			}
			for _, out := range all {
				for _, p := range checkMessage(out).problems {
					t.Errorf("%s %s in %s: %s", out.thing.Kind, out.thing.ID, l, p)
				}
			}
		}
	})
}
