package slackui

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"approvalbot/internal/approvals"
	"approvalbot/internal/ledger"
)

func TestEndings(t *testing.T) {
	for name, want := range map[string]string{
		"starting":           "Approved by @bob, 2026-03-04 09:30 UTC. About to start.",
		"running":            "Approved by @bob, 2026-03-04 09:30 UTC. Running.",
		"done":               "Approved by @bob, 2026-03-04 09:30 UTC. Done in 1.2 s.",
		"failed":             "Approved by @bob, 2026-03-04 09:30 UTC. It failed after 1 min 30 s: The command ended with status 1.",
		"not_performed":      "Approved by @bob, 2026-03-04 09:30 UTC, but not performed: the policy changed since it was asked.",
		"stopped":            "Approved by @bob, 2026-03-04 09:30 UTC. Stopped while it was running. It may be partly performed.",
		"unknown":            "Approved by @bob, 2026-03-04 09:30 UTC. Outcome unknown: approvalbot ended while it was running. It may have been performed, and will not be run again.",
		"denied":             "Denied by @bob, 2026-03-04 09:30 UTC: not on a Friday. Not performed.",
		"unanswered":         "Nobody answered within 2 minutes. Not performed.",
		"aborted_by_person":  "The run was stopped by @carol. Not performed.",
		"aborted_by_restart": "The run was stopped: approvalbot restarted before anybody decided. Not performed.",
		"undeliverable":      "Nobody could be asked: the channel is archived. Not performed.",
	} {
		s := cardStories[name]()
		if got := testRenderer().outcome(s.call("call_1"), &s.run).plain.String(); got != want {
			t.Errorf("%s:\n got %s\nwant %s", name, got, want)
		}
	}
}

// Why nobody knows is what is recorded: not every end of which nothing is known is an end of ours.
func TestWhyTheOutcomeIsUnknown(t *testing.T) {
	for reason, want := range map[string]string{
		"The MCP server files ended while it worked on the call. Whether the call was performed is not known.": "The MCP server files ended while it worked on the call.",
		"Approvalbot restarted while this was running. Whether it was performed is not known.":                 "Approvalbot restarted while this was running.",
	} {
		s := askedShell("date").approve("call_1", bob).started("call_1").finish("call_1", ledger.ToolFinished{State: ledger.OutputError, Code: codeUnknown, Reason: reason})
		want = "Approved by @bob, 2026-03-04 09:30 UTC. Outcome unknown: " + want + " It may have been performed, and will not be run again."
		if got := testRenderer().outcome(s.call("call_1"), &s.run).plain.String(); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
}

// TestEndingsThatCantBe: a journal that can't be is shown as what it says, and
// never as more than that.
func TestEndingsThatCantBe(t *testing.T) {
	v := testRenderer()
	unresolved := askedShell("date").finish("call_1", ledger.ToolFinished{State: ledger.OutputDenied, Reason: "approvalbot restarted"})
	ran := askedShell("date").started("call_1").done("call_1", "x")
	odd := askedShell("date").resolve("call_1", ledger.Denied, "who knows", "", nil)
	for want, s := range map[string]*story{
		"No decision is recorded: approvalbot restarted. Not performed.": unresolved,
		"No decision is recorded. Done in 1.2 s.":                        ran,
		"The run was stopped. Not performed.":                            odd,
	} {
		r := s.card()
		if got := v.outcome(s.call("call_1"), &s.run).plain.String(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
		if c := checkMessage(r); len(c.problems) > 0 || len(c.actions) > 0 {
			t.Errorf("%q, buttons %v", c.problems, c.actions)
		}
	}
}

func TestVoters(t *testing.T) {
	s := quorumStory().vote("call_1", carol, ledger.Approved, "")
	a := s.call("call_1").Approval
	if got := names(approversOf(a)); !slices.Equal(got, []string{"bob", "carol"}) {
		t.Errorf("approvers %v", got)
	}
	s.deny("call_1", bob, "changed my mind")
	if got := names(approversOf(a)); !slices.Equal(got, []string{"carol"}) {
		t.Errorf("approvers after a change of mind %v", got)
	}
	if got := names(deniersOf(a)); !slices.Equal(got, []string{"bob"}) {
		t.Errorf("deniers %v", got)
	}
}

func names(actors []ledger.Actor) []string {
	var out []string
	for _, a := range actors {
		out = append(out, a.Name)
	}
	return out
}

func TestMayApprove(t *testing.T) {
	for _, c := range []struct {
		approvers []string
		want      string
	}{
		{[]string{"channel"}, "full members of this channel, but not the person who asked"},
		{[]string{"requester"}, "whoever asked"},
		{[]string{"U0BOB", "S0ONCALL", "channel"}, "<U0BOB>, <S0ONCALL> and full members of this channel, but not the person who asked"},
		{[]string{"U0ALICE", "U0BOB"}, "<U0BOB>, but not the person who asked"}, // alice asked
		{[]string{"U0ALICE", "requester"}, "<U0ALICE> and whoever asked"},
		{[]string{"<!channel>", "@here"}, "nobody"},
		{nil, "nobody"},
		{slices.Repeat([]string{"U0BOB"}, 40), strings.Repeat("<U0BOB>, ", 19) + "<U0BOB> and 20 more, but not the person who asked"},
	} {
		a := &ledger.Approval{ApprovalRequested: &ledger.ApprovalRequested{Approvers: c.approvers, Requesters: []ledger.Person{alice.Person()}}}
		if d := cmp.Diff(c.want, words(testRenderer().mayApprove(a))); d != "" {
			t.Errorf("%v (-want +got):\n%s", c.approvers, d)
		}
	}
}

func TestTook(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "under 0.1 s", 40 * time.Millisecond: "under 0.1 s", 940 * time.Millisecond: "0.9 s", 2 * time.Second: "2 s", 2500 * time.Millisecond: "2.5 s",
		12 * time.Second: "12 s", 90 * time.Second: "1 min 30 s", 3*time.Hour + 5*time.Minute: "3 h 5 min", -time.Second: "under 0.1 s",
	} {
		if got := took(d); got != want {
			t.Errorf("took(%v) = %q, want %q", d, got, want)
		}
	}
	for n, want := range map[int]string{1: "1 cat", 0: "0 cats", 999: "999 cats", 1000: "1,000 cats", 1234567: "1,234,567 cats"} {
		if got := count(n, "cat", "cats"); got != want {
			t.Errorf("count(%d) = %q", n, got)
		}
	}
}

func TestRefusal(t *testing.T) {
	at := start
	resolution := func(typ ledger.ResolutionType, source ledger.Source, reason string, by *ledger.Actor) approvals.Resolution {
		return approvals.Resolution{ApprovalResolved: ledger.ApprovalResolved{Type: typ, Source: source, Reason: reason, By: by}, At: at, Seq: 9}
	}
	date := "<!date^1772616600^{date_short_pretty} at {time}|2026-03-04 09:30 UTC>"
	for _, c := range []struct {
		name string
		err  error
		want string
	}{
		{"may not", &approvals.RefusedError{Reason: "You are not one of those who can approve this.", Allowed: []string{"U0BOB", "S0ONCALL", "channel"}},
			"You are not one of those who can approve this. Those who can: <@U0BOB>, <!subteam^S0ONCALL> and full members of this channel."},
		{"may not, wrapped and hostile", fmt.Errorf("x: %w", &approvals.RefusedError{Reason: "no <!channel>", Allowed: []string{"<!here>"}}), "No &lt;!channel&gt;."},
		{"conflict", &approvals.ConflictError{Resolution: resolution(ledger.Approved, ledger.SourceUser, "", &bob)}, "Already decided: <@U0BOB> approved this, " + date + ". Your click changed nothing."},
		{"conflict with a token", &approvals.ConflictError{Resolution: resolution(ledger.Denied, ledger.SourceUser, "", &ledger.Actor{Kind: ledger.ActorToken, ID: "<c&i>"})}, "Already decided: the API token “&lt;c&amp;i&gt;” denied this, " + date + ". Your click changed nothing."},
		{"timeout", &approvals.ExpiredError{Resolution: resolution(ledger.Denied, ledger.SourceTimeout, "nobody answered within 2 minutes", nil)}, "This request is over, " + date + ": Nobody answered within 2 minutes. It was not performed, and your click changed nothing."},
		{"restart", &approvals.ExpiredError{Resolution: resolution(ledger.Denied, ledger.SourceAbort, "approvalbot restarted", nil)}, "This request is over, " + date + ": Approvalbot restarted. It was not performed, and your click changed nothing."},
		{"undeliverable", &approvals.ExpiredError{Resolution: resolution(ledger.Denied, ledger.SourceUndeliverable, "the channel is archived", nil)}, "This request is over, " + date + ": Nobody could be asked: the channel is archived. It was not performed, and your click changed nothing."},
		{"not recorded", fmt.Errorf("x: %w", ledger.ErrNotRecorded), "I can't record this, so nothing is approved. The buttons stay; try again."},
		{"unknown", approvals.ErrNotFound, "I don't know this request, so nothing was changed."},
		{"anything", errors.New("<boom>"), "Something went wrong on my side, so nothing was decided. The buttons stay; try again."},
	} {
		t.Run(c.name, func(t *testing.T) {
			if d := cmp.Diff(c.want, testRenderer().refusal(c.err)); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
		})
	}
}

// words writes elements down for comparison, mentions as <ID>.
func words(elements []element) string {
	var b strings.Builder
	for _, e := range elements {
		b.WriteString(word(e))
	}
	return b.String()
}

// Whoever decides in a modal is told what.
func TestDecision(t *testing.T) {
	a := *askedShell("echo <!channel>").call("call_1").Approval
	res := func(typ ledger.ResolutionType) *approvals.Resolution {
		return &approvals.Resolution{ApprovalResolved: ledger.ApprovalResolved{Type: typ}, Seq: 9}
	}
	for want, out := range map[string]approvals.Outcome{
		"You approved this: Run echo <!channel>. The card shows how it goes on.":                         {Resolution: res(ledger.Approved), Approvals: 1, Quorum: 1},
		"You denied this: Run echo <!channel>. It will not be performed.":                                {Resolution: res(ledger.Denied), Quorum: 1},
		"You approved this: Run echo <!channel>. 1 more is needed before it is performed.":               {Approvals: 1, Quorum: 2},
		"You have approved this already: Run echo <!channel>. 2 more are needed before it is performed.": {Approvals: 1, Quorum: 3, Repeated: true},
	} {
		out.Snapshot.Ask = a
		p := testRenderer().decision(out)
		if got := p.plain.String(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
		if c := checkModal(lastModal(richText(paragraph(p.elements...)))); len(c.problems) > 0 {
			t.Errorf("%q", c.problems)
		}
	}
}

func TestExpiry(t *testing.T) {
	for timeout, want := range map[time.Duration]string{
		0:                "Expires <!date^1772616600^{date_short_pretty} at {time}|2026-03-04 09:30 UTC>. No answer means no.",
		10 * time.Second: "Expires <!date^1772616600^{date_short_pretty} at {time_secs}|2026-03-04 09:30 UTC>. No answer means no.",
		2 * time.Minute:  "Expires <!date^1772616600^{date_short_pretty} at {time}|2026-03-04 09:30 UTC>. No answer means no.",
	} {
		if got := expiry(start, timeout); got != want {
			t.Errorf("%s: %s", timeout, got)
		}
	}
}

// What a card says is settled with its call: a stop that is recorded after the ask's end, at the very same time, changes
// nothing of it.
func TestAStopBehindTheAsksEndIsNotItsReason(t *testing.T) {
	run := &ledger.Run{}
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	stop := &ledger.RunStopRequested{Reason: "stopped by bob"}
	bob := ledger.Actor{Kind: ledger.ActorUser, Team: "T1", ID: "UBOB"}
	for i, e := range []ledger.Event{
		{Body: &ledger.RunStarted{}},
		{Body: &ledger.ModelCompleted{Round: 1, ToolCalls: []ledger.ToolCall{{ID: "c1", Name: "shell"}}}},
		{Call: "c1", Body: &ledger.ApprovalRequested{Approval: "a1", Tool: "shell", Quorum: 1}},
		{Call: "c1", Body: &ledger.ApprovalResolved{Approval: "a1", Type: ledger.Denied, Source: ledger.SourceAbort, Reason: "approvalbot was stopped"}},
		{Call: "c1", Body: &ledger.ToolFinished{State: ledger.OutputDenied, Source: ledger.SourceAbort}},
		{Actor: bob, Body: stop},
	} {
		e.Seq, e.Time, e.Run = int64(i+1), at, "r"
		before := ""
		if e.Body == stop {
			before = testRenderer().card(run, run.Call("c1"), at).hash()
		}
		run.Apply(e)
		if e.Body == stop && testRenderer().card(run, run.Call("c1"), at).hash() != before {
			t.Error("the card changed")
		}
	}
}
