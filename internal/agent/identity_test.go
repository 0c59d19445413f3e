package agent

import (
	"context"
	"encoding/json"
	"errors"
	"testing"

	"approvalbot/internal/approvals"
	"approvalbot/internal/ledger"
	"approvalbot/internal/policy"
	"approvalbot/internal/tools"
)

// Scenario 10: a provider repeats a call's id, or sends none. Each call gets an identity of its own, and the first one
// keeps its waiter.
func TestEachCallHasItsOwnIdentity(t *testing.T) {
	const script = `{"turns":[
		{"toolCalls":[
			{"id":"c1","name":"act","arguments":{"n":1}},
			{"id":"c1","name":"act","arguments":{"n":2}},
			{"id":"","name":"act","arguments":{"n":3}}]},
		{"toolCalls":[{"id":"c1","name":"act","arguments":{"n":4}}]},
		{"text":"finished"}]}`
	scenario(t, script, func(t *testing.T, s *stand) {
		s.say(alice, "go")
		first := s.run().Calls
		if len(first) != 3 || len(s.reg.Pending("")) != 3 {
			t.Fatalf("%d calls, %d asks, want 3 of each", len(first), len(s.reg.Pending("")))
		}
		if first[0].ID != "c1" || first[1].ProviderID != "c1" || first[2].ProviderID != "" || first[2].ID == "" {
			t.Errorf("ids: %+v", []ledger.ToolCall{first[0].ToolCall, first[1].ToolCall, first[2].ToolCall})
		}
		s.decide(first[1].ID, bob, ledger.Approved, "")
		if s.calls.count("act") != 1 || s.run().Call("c1").State != ledger.ApprovalRequest {
			t.Error("the second call's approval went to the first")
		}
		s.decide("c1", bob, ledger.Denied, "")
		s.decide(first[2].ID, bob, ledger.Approved, "")
		last := s.run().Calls[3]
		if last.ID == "c1" || last.ProviderID != "c1" {
			t.Errorf("an id of an earlier round came again as %+v", last.ToolCall)
		}
		s.decide(last.ID, bob, ledger.Approved, "")
		s.check()
	})
}

// Scenarios 11 and 22: between the approval and the start the run is stopped, the policy changes, or what would run isn't
// what people saw. Then it doesn't start, and has one end that says why.
func TestApprovedAndNotStarted(t *testing.T) {
	readOnly, err := policy.New(policy.OnRequest, policy.ReadOnly)
	if err != nil {
		t.Fatal(err)
	}
	stopped, cancel := context.WithCancelCause(t.Context())
	cancel(&endedError{code: codeStopped, reason: "stopped by Bob"})
	shown := json.RawMessage(`{"n":1}`)
	for name, c := range map[string]struct {
		ctx    context.Context
		policy *policy.Policy
		args   json.RawMessage
		hash   func(string) string
		want   string
	}{
		"stopped":          {ctx: stopped, want: "output-denied abort"},
		"policy changed":   {policy: readOnly, want: "output-denied policy"},
		"other arguments":  {args: json.RawMessage(`{"n":2}`), want: "output-denied policy"},
		"other definition": {hash: func(h string) string { return "x" + h }, want: "output-denied policy"},
		"nothing":          {want: "output-available"},
	} {
		t.Run(name, func(t *testing.T) {
			s := open(t, t.TempDir(), `{"turns":[{"text":"unused"}]}`)
			r := &run{Agent: s.agent, profile: Profile{Model: s.agent.Model, Tools: s.agent.Tools, Workspace: s.agent.Workspace}, id: "r", session: "s1", started: &ledger.RunStarted{}, policy: s.agent.Policy.Current(), tools: s.agent.Tools.Set()}
			tc := ledger.ToolCall{ID: "c1", Name: "act", Arguments: string(shown)}
			tool, _ := s.agent.Tools.Set().Get("act")
			hash, _ := s.agent.Tools.Set().Hash("act")
			req := approvals.Request{ToolHash: hash, Arguments: string(shown)}
			args, ctx := shown, t.Context()
			if c.ctx != nil {
				ctx = c.ctx
			}
			if c.policy != nil {
				s.agent.Policy = c.policy
			}
			if c.args != nil {
				args = c.args
			}
			if c.hash != nil {
				req.ToolHash = c.hash(hash)
			}
			if err := s.begun(r, tc); err != nil {
				t.Fatal(err)
			}
			if err := r.approved(ctx, r.target(tc), tool, args, req); err != nil {
				t.Fatal(err)
			}
			state, _, err := s.journal.LoadRun(context.Background(), "r")
			if err != nil {
				t.Fatal(err)
			}
			if got := states(state)["c1"]; got != c.want || s.calls.count("act") != map[bool]int{true: 1}[name == "nothing"] {
				t.Errorf("it ended as %s and ran %d times, want %s", got, s.calls.count("act"), c.want)
			}
		})
	}
}

// begun writes what the journal has of a run whose call was just approved.
func (s *stand) begun(r *run, tc ledger.ToolCall) error {
	_, err := s.journal.Append(context.Background(),
		ledger.Event{Session: r.session, Run: r.id, Body: r.started},
		ledger.Event{Session: r.session, Run: r.id, Body: &ledger.ModelCompleted{Round: 1, ToolCalls: []ledger.ToolCall{tc}}})
	return err
}

// A tool that says itself why it failed is believed; one that fails because its run was ended was stopped.
func TestToolFailure(t *testing.T) {
	ended, cancel := context.WithCancelCause(t.Context())
	cancel(&endedError{code: codeStopped, reason: "stopped by Bob"})
	for _, c := range []struct {
		ctx  context.Context
		err  error
		want string
	}{
		{t.Context(), &tools.Error{Code: tools.CodeNotFound, Message: "There is no such file."}, "NOT_FOUND"},
		{ended, &tools.Error{Code: tools.CodeAborted, Message: "Stopped."}, "ABORTED"},
		{ended, context.Canceled, "ABORTED"},
		{t.Context(), errors.New("it broke"), "TOOL_FAILED"},
	} {
		if got := toolFailure(c.ctx, c.err); got.Code != c.want || got.State != ledger.OutputError {
			t.Errorf("%v: %s %s, want %s", c.err, got.State, got.Code, c.want)
		}
	}
}
