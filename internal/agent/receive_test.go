package agent

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"approvalbot/internal/ledger"
	"approvalbot/internal/policy"
)

// program sends a message as a program over HTTP does.
func (s *stand) program(m ledger.MessageReceived) (ledger.Event, error) {
	s.t.Helper()
	m.Origin, m.Disposition, m.Text = ledger.Origin{Kind: "http", Token: "ci"}, ledger.Starts, "go"
	e, err := s.agent.Receive(s.t.Context(), ledger.Event{
		Session: "s1", Actor: ledger.Actor{Kind: ledger.ActorToken, ID: "ci", Via: "http"}, Body: &m,
	})
	synctest.Wait()
	return e, err
}

const readThenAct = `{"turns":[
	{"toolCalls":[{"id":"c1","name":"read","arguments":{"n":1}},{"id":"c2","name":"act","arguments":{"n":1}}]},
	{"text":"finished"}]}`

// Weaker settings start nothing and leave nothing; stricter ones hold for that run alone, under the id that was given.
func TestStricterSettings(t *testing.T) {
	scenario(t, readThenAct, func(t *testing.T, s *stand) {
		for _, weak := range []ledger.MessageReceived{{Policy: "never"}, {Sandbox: "danger_full_access"}} {
			_, err := s.program(weak)
			var weaker *policy.WeakerError
			if !errors.As(err, &weaker) {
				t.Errorf("%+v: %v", weak, err)
			}
		}
		if _, err := s.program(ledger.MessageReceived{Policy: "unheard"}); err == nil {
			t.Error("an unknown word was taken")
		}
		if head, _ := s.journal.Head(t.Context()); head.Seq != 0 {
			t.Fatalf("%d events were recorded", head.Seq)
		}
		if _, err := s.program(ledger.MessageReceived{RunID: "run_mine", Policy: "strict", Sandbox: "read_only", Mode: ledger.ModeFailClosed}); err != nil {
			t.Fatal(err)
		}
		run := s.run()
		if d := cmp.Diff([]string{"run_mine", "strict", "read_only"}, []string{run.ID, run.Started.Policy, run.Started.Sandbox}); d != "" {
			t.Error(d)
		}
		if d := cmp.Diff(map[string]string{"c1": "output-denied undeliverable", "c2": "output-denied policy"}, states(run)); d != "" {
			t.Error(d)
		}
		if s.calls.count("read")+s.calls.count("act") != 0 {
			t.Error("something ran")
		}
		s.check()
	})
}

// What a queued message asks for is measured again when its turn comes: the settings may have become stricter, never
// weaker.
func TestPolicyForQueued(t *testing.T) {
	for _, c := range []struct {
		policy        policy.ApprovalPolicy
		sandbox       policy.SandboxMode
		m             ledger.MessageReceived
		wantP, wantSb string
	}{
		{policy.OnRequest, policy.WorkspaceWrite, ledger.MessageReceived{}, "on_request", "workspace_write"},
		{policy.OnRequest, policy.WorkspaceWrite, ledger.MessageReceived{Policy: "strict"}, "strict", "workspace_write"},
		{policy.Strict, policy.ReadOnly, ledger.MessageReceived{Policy: "on_request", Sandbox: "workspace_write"}, "strict", "read_only"},
		{policy.OnRequest, policy.ReadOnly, ledger.MessageReceived{Policy: "strict", Sandbox: "workspace_write"}, "strict", "read_only"},
		{policy.Never, policy.DangerFullAccess, ledger.MessageReceived{Policy: "nonsense"}, "", ""},
	} {
		p, err := policy.New(c.policy, c.sandbox)
		if err != nil {
			t.Fatal(err)
		}
		got := (&Agent{Config: Config{Policy: p}}).policyFor(&c.m)
		if s := got.Settings(); string(s.ApprovalPolicy) != c.wantP || string(s.SandboxMode) != c.wantSb {
			t.Errorf("%+v under %s, %s: %+v", c.m, c.policy, c.sandbox, s)
		}
	}
}

// The sender goes away: what runs is stopped, what waits never begins, what is over stays.
func TestWithdraw(t *testing.T) {
	script := `{"turns":[{"toolCalls":[{"id":"c1","name":"act","arguments":{"n":1}}]},{"text":"finished"}]}`
	scenario(t, script, func(t *testing.T, s *stand) {
		first, err := s.program(ledger.MessageReceived{Mode: ledger.ModeInteractive, Surface: "http"})
		if err != nil {
			t.Fatal(err)
		}
		second, err := s.program(ledger.MessageReceived{Mode: ledger.ModeInteractive, Surface: "http"})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.agent.ReceiveIfIdle(t.Context(), ledger.Event{Session: "s1", Body: &ledger.MessageReceived{Disposition: ledger.Starts}}); !errors.Is(err, ErrBusy) {
			t.Errorf("a busy session: %v", err)
		}
		for _, e := range []ledger.Event{second, first, first} {
			if err := s.agent.Withdraw(t.Context(), e, "its caller disconnected"); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
		}
		runs := s.runs()
		if len(runs) != 2 {
			t.Fatalf("%d runs", len(runs))
		}
		for i, run := range runs {
			if run.Status() != ledger.RunCancelled || run.Stop == nil || run.Stop.By.ID != "ci" || run.Finished.Reason != "its caller disconnected" {
				t.Errorf("run %d: %s %+v %+v", i, run.Status(), run.Stop, run.Finished)
			}
		}
		if len(runs[0].Calls) != 1 || len(runs[1].Rounds) != 0 {
			t.Error("the one that waited was begun")
		}
		if err := s.agent.Withdraw(t.Context(), first, "again"); err != nil {
			t.Error(err)
		}
		if _, err := s.agent.ReceiveIfIdle(t.Context(), ledger.Event{Session: "s1", Actor: alice, Body: &ledger.MessageReceived{
			Origin: ledger.Origin{Kind: "http", Token: "ci"}, Disposition: ledger.Starts}}); err != nil {
			t.Errorf("an idle session: %v", err)
		}
		synctest.Wait()
		s.check()
		if len(s.agent.jobs)+len(s.agent.load)+len(s.agent.active) != 0 {
			t.Errorf("left over: %v %v", s.agent.jobs, s.agent.load)
		}
	})
}

// A message over HTTP that an earlier process received: its sender is gone, unless it said that it would be.
func TestInherited(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		j, err := ledger.Open(t.Context(), dir, ledger.Options{})
		if err != nil {
			t.Fatal(err)
		}
		for _, detach := range []bool{false, true} {
			if _, err := j.Append(t.Context(), ledger.Event{Session: "s1", Actor: ledger.Actor{Kind: ledger.ActorToken, ID: "ci"}, Body: &ledger.MessageReceived{
				Origin: ledger.Origin{Kind: "http", Token: "ci"}, Disposition: ledger.Starts, Text: "go", Detach: detach}}); err != nil {
				t.Fatal(err)
			}
		}
		if err := j.Close(); err != nil {
			t.Fatal(err)
		}
		s := open(t, dir, `{"turns":[{"text":"finished"}]}`)
		synctest.Wait()
		runs := s.runs()
		if len(runs) != 2 || runs[0].Status() != ledger.RunCancelled || len(runs[0].Rounds) != 0 || runs[1].Status() != ledger.RunSucceeded {
			t.Errorf("%d runs: %+v", len(runs), runs[0].Finished)
		}
		s.check()
		s.stop()
	})
}

// A message that comes while those from before are being read is this process's own: it isn't withdrawn as one whose sender
// is gone.
func TestReceivedBeforeTheAgentRuns(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		s := open(t, dir, `{"turns":[{"text":"finished"}]}`)
		s.stop()
		journal, err := ledger.Open(t.Context(), dir, ledger.Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer journal.Close()
		cfg := s.agent.Config
		cfg.Ledger = journal
		a, err := New(cfg)
		if err != nil {
			t.Fatal(err)
		}
		if err := a.Recover(t.Context()); err != nil {
			t.Fatal(err)
		}
		go a.Receive(context.Background(), ledger.Event{Session: "s1", Actor: alice, Body: &ledger.MessageReceived{
			Origin: ledger.Origin{Kind: "http", Token: "ci"}, Text: "go", Disposition: ledger.Starts,
		}})
		synctest.Wait() // it is recorded, and waits for Run
		ctx, stop := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		wg.Go(func() {
			if err := a.Run(ctx); err != nil {
				t.Error(err)
			}
		})
		synctest.Wait()
		stop()
		wg.Wait()
		s.journal = journal
		if runs := s.runs(); len(runs) != 1 || runs[0].Status() != ledger.RunSucceeded {
			t.Errorf("%d runs, the last ended as %+v", len(runs), s.run().Finished)
		}
	})
}
