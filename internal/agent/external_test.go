package agent

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"approvalbot/internal/ledger"
	"approvalbot/internal/ledger/ledgertest"
	"approvalbot/internal/rapidtest"
)

var deployCI = ledger.Actor{Kind: ledger.ActorToken, ID: "deploy-ci", Name: "deploy-ci", Via: "http"}

// wants has a program ask for permission, in a session of its own.
func (s *stand) wants(run, key string) {
	s.t.Helper()
	_, err := s.agent.Receive(s.t.Context(), ledger.Event{Session: "ask/" + run, Actor: deployCI, Body: &ledger.MessageReceived{
		Origin: ledger.Origin{Kind: "http", Token: "deploy-ci", Key: key}, Disposition: ledger.Starts, Text: "deploy", Place: ledger.Place{Team: team, Channel: "C1"},
		Mode: ledger.ModeInteractive, Surface: ledger.SurfaceHTTP, Detach: true, RunID: run,
		Ask: &ledger.ProgramAsk{Program: "deploy-ci", Tool: "deploy", Arguments: `{"to":"production"}`, Reason: "the release", Timeout: time.Minute},
	}})
	if err != nil {
		s.t.Fatal(err)
	}
	synctest.Wait()
}

func (s *stand) reports(run string, o ledger.OutcomeType, output string) error {
	defer synctest.Wait()
	return s.agent.Report(context.Background(), run, deployCI, &ledger.OutcomeReported{Outcome: o, Output: output})
}

const noModel = `{"turns":[{"text":"nobody asks it"}]}`

// However much of the journal of an ask is there: recovery gives everything its end, once; what was reported counts, and
// nothing is called done that nobody reported.
func TestAnyPrefixOfAnAskRecovers(t *testing.T) {
	dir := t.TempDir()
	var rows int64
	synctest.Test(t, func(t *testing.T) {
		s := open(t, dir, noModel)
		s.wants("run_1", "")
		if err := s.reports("run_1", ledger.OutcomeDone, "x"); !errors.Is(err, ErrNotStarted) {
			t.Errorf("before the approval: %v", err)
		}
		s.decide(externalCall, bob, ledger.Approved, "")
		if err := s.reports("run_1", ledger.OutcomeDone, "deployed"); err != nil {
			t.Error(err)
		}
		run := s.run()
		if d := cmp.Diff("output-available deployed succeeded", string(run.Calls[0].State)+" "+run.Calls[0].Finished.Output+" "+string(run.Status())); d != "" {
			t.Error(d)
		}
		head, err := s.journal.Head(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		rows = head.Seq
		s.check()
		s.stop()
	})
	for n := int64(0); n <= rows; n++ {
		cut := t.TempDir()
		ledgertest.Prefix(t, dir, cut, n)
		synctest.Test(t, func(t *testing.T) {
			s := open(t, cut, noModel)
			synctest.Wait()
			for _, run := range s.runs() {
				for _, c := range run.Calls {
					reported := c.Outcome != nil && c.Outcome.Outcome == ledger.OutcomeDone
					if done := c.State == ledger.OutputAvailable; done != reported {
						t.Errorf("after %d rows: %s, reported: %v", n, c.State, reported)
					}
					if started := !c.StartedAt.IsZero(); started == (c.State == ledger.OutputDenied) {
						t.Errorf("after %d rows: %s, started: %v", n, c.State, started)
					}
				}
			}
			first := ledgerRows(t, s)
			s.check()
			s.stop()
			again := open(t, cut, noModel)
			synctest.Wait()
			if diff := cmp.Diff(first, ledgerRows(t, again)); diff != "" {
				t.Errorf("after %d rows a second recovery changed something: %s", n, diff)
			}
			again.stop()
		})
	}
}

// Whatever comes in whatever order, an ask ends once, a report counts only after an approval, and the first one stays.
func TestAskProperty(t *testing.T) {
	rapidtest.Checks(t, 30)
	rapid.Check(t, func(rt *rapid.T) {
		steps := rapid.SliceOfN(rapid.SampledFrom([]string{"approve", "deny", "done", "failed", "minute", "hour", "stop", "restart"}), 0, 7).Draw(rt, "steps")
		dir := t.TempDir()
		synctest.Test(t, func(t *testing.T) {
			s := open(t, dir, noModel)
			s.wants("run_1", "k")
			accepted := []ledger.OutcomeType{}
			for _, step := range steps {
				switch step {
				case "approve", "deny":
					what := map[string]ledger.ResolutionType{"approve": ledger.Approved, "deny": ledger.Denied}[step]
					if len(s.reg.Pending("run_1")) > 0 {
						s.decide(externalCall, bob, what, "")
					}
				case "done", "failed":
					if err := s.reports("run_1", ledger.OutcomeType(step), step); err == nil {
						accepted = append(accepted, ledger.OutcomeType(step))
					}
				case "minute":
					time.Sleep(time.Minute)
				case "hour":
					time.Sleep(time.Hour)
				case "stop":
					_ = s.agent.Stop(t.Context(), "run_1", deployCI) // of one that is over it is refused
				case "restart":
					s.stop()
					s = open(t, dir, noModel)
				}
				synctest.Wait()
			}
			time.Sleep(2 * time.Hour)
			synctest.Wait()
			c := s.run().Calls[0]
			switch {
			case !c.State.Terminal() || len(accepted) > 1:
				t.Errorf("%v: %s, accepted %v", steps, c.State, accepted)
			case len(accepted) == 1 && (c.Outcome == nil || c.Outcome.Outcome != accepted[0]):
				t.Errorf("%v: %v was accepted and %+v stands there", steps, accepted, c.Outcome)
			case c.State == ledger.OutputAvailable && (len(accepted) == 0 || c.Approval.Resolved.Type != ledger.Approved):
				t.Errorf("%v: done without approval and report", steps)
			}
			s.check()
			s.stop()
		})
	})
}

// Two reports at once: one counts, the other is told which.
func TestReportsAtOnce(t *testing.T) {
	scenario(t, noModel, func(t *testing.T, s *stand) {
		s.wants("run_1", "")
		s.decide(externalCall, bob, ledger.Approved, "")
		errs := make(chan error, 8)
		for range cap(errs) {
			go func() {
				errs <- s.agent.Report(context.Background(), "run_1", deployCI, &ledger.OutcomeReported{Outcome: ledger.OutcomeDone})
			}()
		}
		won := 0
		for range cap(errs) {
			err := <-errs
			var lost *ledger.ConflictError
			switch {
			case err == nil:
				won++
			case !errors.As(err, &lost):
				t.Error(err)
			}
		}
		if won != 1 {
			t.Errorf("%d counted", won)
		}
		if err := s.reports("run_none", ledger.OutcomeDone, ""); !errors.Is(err, ErrNoAsk) {
			t.Error(err)
		}
		s.check()
	})
}

// Asks don't wait for each other, nor for other sessions.
func TestAsksSideBySide(t *testing.T) {
	scenario(t, noModel, func(t *testing.T, s *stand) {
		for _, run := range []string{"run_1", "run_2", "run_3"} {
			s.wants(run, "")
		}
		if n := len(s.reg.Pending("")); n != 3 {
			t.Errorf("%d are pending", n)
		}
	})
}
