package agent

import (
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"approvalbot/internal/ledger"
	"approvalbot/internal/model"
	"approvalbot/internal/policy"
)

var onMachine = ledger.Actor{Kind: ledger.ActorOperator, ID: "root", Name: "Root"}

func (s *stand) pause(reason string) {
	s.t.Helper()
	if _, _, err := s.reg.Pause(s.t.Context(), onMachine, reason); err != nil {
		s.t.Fatal(err)
	}
	synctest.Wait()
}

func (s *stand) resume() {
	s.t.Helper()
	if _, _, err := s.reg.Resume(s.t.Context(), onMachine); err != nil {
		s.t.Fatal(err)
	}
	synctest.Wait()
}

// A message whose turn comes in a pause waits, over a restart too, and starts when it is resumed.
func TestMessagesWaitForTheEndOfAPause(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		const script = `{"turns":[{"text":"hello"}]}`
		s := open(t, dir, script)
		s.pause("")
		s.say(alice, "do it")
		if n := len(s.runs()); n != 0 {
			t.Fatalf("%d runs have started in a pause", n)
		}
		s.stop() // it doesn't wait for what isn't to start
		m, err := model.ParseScript("test", []byte(script))
		if err != nil {
			t.Fatal(err)
		}
		s = openWith(t, dir, m, func(c *Config) {
			if err := c.Approvals.LoadPause(t.Context(), c.Ledger); err != nil {
				t.Fatal(err)
			}
		})
		time.Sleep(time.Minute)
		if n := len(s.runs()); n != 0 {
			t.Fatalf("%d runs have started in a pause, after a restart", n)
		}
		s.resume()
		if n := len(s.runs()); n != 1 {
			t.Errorf("%d runs after it was resumed, want 1", n)
		}
		s.stop()
	})
}

// In a pause nobody is asked: the model is told why, and what needs no approval goes on.
func TestNobodyIsAskedInAPause(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		m, err := model.ParseScript("test", []byte(`{"turns":[
			{"toolCalls":[{"id":"1","name":"act","arguments":{}}]},
			{"toolCalls":[{"id":"2","name":"act","arguments":{"n":2}},{"id":"3","name":"read","arguments":{}}]},
			{"text":"over"}]}`))
		if err != nil {
			t.Fatal(err)
		}
		s := openWith(t, dir, m, func(*Config) {})
		s.say(alice, "go")
		s.pause("the disk is full")
		s.decide("1", bob, ledger.Denied, "")
		time.Sleep(time.Second)
		run := s.run()
		if got := states(run); got["2"] != "output-denied undeliverable" || got["3"] != "output-available" {
			t.Errorf("the calls ended like this: %v", got)
		}
		if out := run.Call("2").Finished.Output; !strings.Contains(out, "Nobody could be asked: approvalbot was paused by Root: the disk is full. The action was not performed.") {
			t.Errorf("the model is told %q", out)
		}
		if run.Status() != ledger.RunSucceeded || run.Call("2").Approval != nil {
			t.Errorf("the run: %s, asked: %v", run.Status(), run.Call("2").Approval)
		}
		s.check()
		s.stop()
	})
}

// A policy source at which something happens between an approval and the start of its call.
type between struct {
	*policy.Policy
	do atomic.Pointer[func()]
}

func (b *between) Current() *policy.Policy {
	if do := b.do.Swap(nil); do != nil {
		(*do)()
	}
	return b.Policy
}

// What was approved and hasn't started when it is paused doesn't start.
func TestApprovedCallsDontStartInAPause(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		m, err := model.ParseScript("test", []byte(`{"turns":[{"toolCalls":[{"id":"1","name":"act","arguments":{}}]},{"text":"over"}]}`))
		if err != nil {
			t.Fatal(err)
		}
		rules, err := policy.New(policy.OnRequest, policy.WorkspaceWrite)
		if err != nil {
			t.Fatal(err)
		}
		source := &between{Policy: rules}
		s := openWith(t, dir, m, func(c *Config) { c.Policy = source })
		s.say(alice, "go")
		pause := func() {
			if _, _, err := s.reg.Pause(t.Context(), onMachine, ""); err != nil {
				t.Error(err)
			}
		}
		source.do.Store(&pause)
		s.decide("1", bob, ledger.Approved, "")
		c := s.run().Call("1")
		if s.calls.count("act") != 0 || c.State != ledger.OutputDenied || c.Finished.Source != ledger.SourceAbort {
			t.Fatalf("it ran %d times and ended as %s", s.calls.count("act"), c.State)
		}
		if !strings.Contains(c.Finished.Reason, "approvalbot was paused by Root") || c.Approval.Resolved.Type != ledger.Approved {
			t.Errorf("it says %q", c.Finished.Reason)
		}
		s.check()
		s.stop()
	})
}
