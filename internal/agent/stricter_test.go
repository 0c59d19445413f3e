package agent

import (
	"encoding/json"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"approvalbot/internal/approvals"
	"approvalbot/internal/ledger"
	"approvalbot/internal/policy"
)

func TestMayBeStricter(t *testing.T) {
	for name, c := range map[string]struct {
		asked approvals.Request
		now   policy.Wanted
		want  bool
	}{
		"the settings, both times": {approvals.Request{}, policy.Wanted{}, false},
		"the same":                 {approvals.Request{Approvers: []string{"U1", "S1"}, Quorum: 2}, policy.Wanted{Approvers: []string{"S1", "U1"}, Quorum: 2}, false},
		"more may approve":         {approvals.Request{Approvers: []string{"U1"}}, policy.Wanted{Approvers: []string{"U1", "U2"}}, false},
		"fewer may":                {approvals.Request{Approvers: []string{"U1", "U2"}}, policy.Wanted{Approvers: []string{"U1"}}, true},
		"others may":               {approvals.Request{Approvers: []string{"U1"}}, policy.Wanted{Approvers: []string{"U2"}}, true},
		"fewer people":             {approvals.Request{Quorum: 3}, policy.Wanted{Quorum: 2}, false},
		"more people":              {approvals.Request{Quorum: 1}, policy.Wanted{Quorum: 2}, true},
		"a rule came":              {approvals.Request{}, policy.Wanted{Approvers: []string{"U1"}}, true},
		"a rule went":              {approvals.Request{Approvers: []string{"U1"}}, policy.Wanted{}, true},
		"a quorum came":            {approvals.Request{}, policy.Wanted{Quorum: 1}, true},
		"a quorum went":            {approvals.Request{Quorum: 2}, policy.Wanted{}, true},
		"nobody may any more":      {approvals.Request{Approvers: []string{"U1"}}, policy.Wanted{Approvers: []string{}}, true},
		"only how it looks":        {approvals.Request{Approvers: []string{"U1"}, Risk: "low"}, policy.Wanted{Approvers: []string{"U1"}, Risk: policy.RiskHigh}, false},
	} {
		if got := mayBeStricter(c.asked, c.now); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

// Whoever could have approved it then, and couldn't now, is a reason to look.
func TestMayBeStricterMissesNobody(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		list := rapid.SliceOfN(rapid.SampledFrom([]string{"requester", "channel", "U1", "U2", "S1"}), 0, 4)
		asked := approvals.Request{Approvers: list.Draw(t, "then"), Quorum: rapid.IntRange(0, 3).Draw(t, "of")}
		now := policy.Wanted{Approvers: list.Draw(t, "now"), Quorum: rapid.IntRange(0, 3).Draw(t, "of now")}
		if mayBeStricter(asked, now) {
			return
		}
		for _, who := range asked.Approvers {
			if !slices.Contains(now.Approvers, who) {
				t.Fatalf("%s could approve it", who)
			}
		}
		if now.Quorum != asked.Quorum && (now.Quorum == 0 || now.Quorum > asked.Quorum) {
			t.Fatalf("%d were enough, and it takes %d", asked.Quorum, now.Quorum)
		}
	})
}

// A call that was asked with other approvers than are wanted now starts only if those who approved it are among them.
func TestApprovedByOthersThanNow(t *testing.T) {
	for name, c := range map[string]struct {
		votes []ledger.Actor
		want  string
	}{
		"who approved may still":       {[]ledger.Actor{bob}, "output-available"},
		"who approved is of elsewhere": {[]ledger.Actor{{Kind: ledger.ActorUser, Team: "T2", ID: "UBOB"}}, "output-denied policy"},
		"nobody is recorded":           {nil, "output-denied policy"},
	} {
		t.Run(name, func(t *testing.T) {
			s := open(t, t.TempDir(), `{"turns":[{"text":"unused"}]}`)
			r := &run{Agent: s.agent, profile: Profile{Model: s.agent.Model, Tools: s.agent.Tools, Workspace: s.agent.Workspace}, id: "r", session: "s1", started: &ledger.RunStarted{}, policy: s.agent.Policy.Current(), tools: s.agent.Tools.Set()}
			tc := ledger.ToolCall{ID: "c1", Name: "act", Arguments: `{}`}
			tool, _ := s.agent.Tools.Set().Get("act")
			hash, _ := s.agent.Tools.Set().Hash("act")
			req := approvals.Request{ToolHash: hash, Arguments: `{}`, Approvers: []string{"UCAROL"}} // a rule that is gone
			if err := s.begun(r, tc); err != nil {
				t.Fatal(err)
			}
			events := []ledger.Event{r.target(tc).event(ledger.System, &ledger.ApprovalRequested{
				Approval: "a", Arguments: `{}`, Digest: digest([]byte(`{}`)), Place: ledger.Place{Team: team, Channel: channel},
			})}
			for _, v := range c.votes {
				events = append(events, r.target(tc).event(v, &ledger.ApprovalVoted{Approval: "a", Type: ledger.Approved}))
			}
			if _, err := s.journal.Append(t.Context(), events...); err != nil {
				t.Fatal(err)
			}
			if err := r.approved(t.Context(), r.target(tc), tool, json.RawMessage(`{}`), req); err != nil {
				t.Fatal(err)
			}
			state, _, err := s.journal.LoadRun(t.Context(), "r")
			if err != nil {
				t.Fatal(err)
			}
			if got := states(state)["c1"]; got != c.want {
				t.Errorf("it ended as %s (%s), want %s", got, state.Call("c1").Finished.Reason, c.want)
			}
		})
	}
}
