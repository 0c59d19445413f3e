package approvals

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"approvalbot/internal/ledger"
)

// happened lists the events of one run since the beginning, but for the request and the showing, with how long after the
// beginning each came.
func (w *world) happened(began time.Time, run string) (all []string) {
	w.Helper()
	j := w.journal.Journal.(interface {
		Read(context.Context, int64, ledger.Filter) iter.Seq2[ledger.Event, error]
	})
	for e, err := range j.Read(w.ctx(), 0, ledger.Filter{Run: run}) {
		if err != nil {
			w.Fatal(err)
		}
		at := e.Time.Sub(began)
		switch b := e.Body.(type) {
		case *ledger.ApprovalReminded:
			s := fmt.Sprintf("%s reminded %d: %s", at, b.N, strings.Join(b.To, " "))
			if b.Direct {
				s += " directly"
			}
			all = append(all, s)
		case *ledger.ApprovalEscalated:
			s := fmt.Sprintf("%s escalated %d: %s", at, b.Level, strings.Join(b.Approvers, " "))
			if len(b.To) > 0 {
				s += ", written to " + strings.Join(b.To, " ")
			}
			all = append(all, s)
		case *ledger.ApprovalExtended:
			all = append(all, fmt.Sprintf("%s extended %d to %s by %s", at, b.N, b.Until.Sub(began), e.Actor.ID))
		case *ledger.ApprovalResolved:
			all = append(all, fmt.Sprintf("%s %s by %s: %s", at, b.Type, b.Source, b.Reason))
		}
	}
	return all
}

func (w *world) wantHappened(began time.Time, want ...string) {
	w.Helper()
	if diff := cmp.Diff(want, w.happened(began, "run")); diff != "" {
		w.Errorf("what happened (-want +got):\n%s", diff)
	}
}

func patient(s *Settings) { s.Timeout, s.Remind, s.MoreTime = 10*time.Minute, 50, 25*time.Minute }

// steps of an escalation that several tests have.
func escalates(q *Request) {
	q.Escalate = []ledger.Escalation{
		{After: 6 * time.Minute, Approvers: []string{"UCAROL"}},
		{After: 8 * time.Minute, Approvers: []string{"SONCALL", "UDAVE"}},
	}
}

// Everything happens at its moment, to the nanosecond, counted from the first showing and not from the opening.
func TestClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, patient, approvers(t, "UBOB", "channel"))
		p := w.open("run", "call", escalates)
		wait := w.wait(t.Context(), p)
		time.Sleep(17 * time.Second)
		began := time.Now()
		w.shown(p, card)
		time.Sleep(30 * time.Second)
		w.shown(p, Showing{Surface: "slack", Channel: "CPRIVATE", TS: "3.0"}) // starts nothing anew
		if res := wait(); res.Source != ledger.SourceTimeout {
			t.Errorf("%+v", res)
		}
		w.wantHappened(began,
			"5m0s reminded 1: UBOB channel",
			"6m0s escalated 1: UCAROL, written to UCAROL",
			"7m30s reminded 2: UBOB UCAROL directly",
			"8m0s escalated 2: SONCALL UDAVE, written to UCAROL UDAVE",
			"10m0s denied by timeout: nobody answered within 10 minutes",
		)
		w.empty()
	})
}

// Who has voted or can't approve isn't reminded.
func TestRemindedAreThoseWhoAreMissing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, patient, approvers(t, "UALICE", "UBOB", "UCAROL", "UGUEST", "SONCALL"), quorum(2))
		p := w.open("run", "call")
		began := time.Now()
		wait := w.wait(t.Context(), p)
		w.shown(p, card)
		if _, err := w.ResolveByID(t.Context(), p.ID(), approve(bob)); err != nil {
			t.Fatal(err)
		}
		wait()
		w.wantHappened(began,
			"5m0s reminded 1: UCAROL UGUEST SONCALL",
			"7m30s reminded 2: UCAROL directly",
			"10m0s denied by timeout: nobody answered within 10 minutes",
		)
	})
}

// Nothing happens after any end, and no timer is left.
func TestNothingAfterTheEnd(t *testing.T) {
	for name, end := range map[string]func(*world, *Pending, func()){
		"approved": func(w *world, p *Pending, _ func()) { _, _ = w.ResolveByID(w.ctx(), p.ID(), approve(bob)) },
		"denied":   func(w *world, p *Pending, _ func()) { _, _ = w.ResolveByID(w.ctx(), p.ID(), deny(alice, "")) },
		"aborted":  func(_ *world, _ *Pending, stop func()) { stop() },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, patient)
				ctx, stop := stoppable()
				defer stop()
				p := w.open("run", "call", escalates)
				wait := w.wait(ctx, p)
				w.shown(p, card)
				time.Sleep(5*time.Minute - 1)
				end(w, p, stop)
				wait()
				time.Sleep(time.Hour)
				if n := len(w.happened(time.Now(), "run")); n != 1 {
					t.Errorf("%d things happened: %v", n, w.happened(time.Now(), "run"))
				}
			})
		})
	}
}

// In the very moment of a step both may come; what is resolved isn't reminded of.
func TestAnsweredInTheMomentOfAReminder(t *testing.T) {
	for range 50 {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, patient)
			p := w.open("run", "call")
			began := time.Now()
			wait := w.wait(t.Context(), p)
			w.shown(p, card)
			time.Sleep(5 * time.Minute)
			if _, err := w.ResolveByID(t.Context(), p.ID(), approve(bob)); err != nil {
				t.Fatal(err)
			}
			wait()
			got := w.happened(began, "run")
			if last := got[len(got)-1]; len(got) > 2 || !strings.Contains(last, "approved by user") {
				t.Errorf("happened: %v", got)
			}
		})
	}
}

// Level 2 may decide from its moment on, not before, and the requester may as little as ever.
func TestEscalation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, patient, approvers(t, "UBOB"))
		p := w.open("run", "call", func(q *Request) {
			q.Escalate = []ledger.Escalation{{After: time.Minute, Approvers: []string{"UCAROL"}}, {After: 2 * time.Minute, Approvers: []string{"UDAVE", "UALICE"}}}
		})
		wait := w.wait(t.Context(), p)
		w.shown(p, card)
		refused := func(by ledger.Actor) {
			t.Helper()
			_, err := w.ResolveByID(t.Context(), p.ID(), approve(by))
			wantRefused(t, err)
		}
		time.Sleep(time.Minute - 1)
		refused(carol)
		time.Sleep(2 * time.Nanosecond)
		refused(dave)
		_, err := w.ResolveByID(t.Context(), p.ID(), approve(dave))
		if got := wantRefused(t, err).Allowed; !slices.Equal(got, []string{"UBOB", "UCAROL"}) {
			t.Errorf("those who may are said to be %v", got)
		}
		time.Sleep(time.Minute)
		refused(alice) // whoever asked, also if it is escalated to them
		if s := p.Snapshot().Ask; !slices.Equal(s.Approvers, []string{"UBOB", "UCAROL", "UDAVE", "UALICE"}) || len(s.Escalated) != 2 {
			t.Errorf("the ask is %v, %d levels up", s.Approvers, len(s.Escalated))
		}
		if _, err := w.ResolveByID(t.Context(), p.ID(), approve(dave)); err != nil {
			t.Fatal(err)
		}
		if res := wait(); res.Type != ledger.Approved {
			t.Errorf("%+v", res)
		}
	})
}

// An ask that nobody of the first level could approve isn't hopeless if somebody of the next could.
func TestEscalationIsHope(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, patient, approvers(t, "UGONE"))
		p := w.open("run", "call", func(q *Request) {
			q.Escalate = []ledger.Escalation{{After: time.Minute, Approvers: []string{"UCAROL"}}}
		})
		if d := p.Snapshot().Ask.Dismissed; d != "" {
			t.Errorf("dismissed: %s", d)
		}
		w.abort(p)
	})
}

// What can't be recorded is tried again with the next step, and the deadline stands.
func TestAStepThatCantBeRecorded(t *testing.T) {
	for _, c := range []struct {
		name  string
		spoil func(*spoilt, bool)
	}{
		{"it fails", func(s *spoilt, on bool) { s.fail = on }},
		{"it takes place and seems to fail", func(s *spoilt, on bool) { s.lose = on }},
		{"the journal can't be read", func(s *spoilt, on bool) { s.unread = on }},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, patient, approvers(t, "UBOB", "channel"))
				p := w.open("run", "call", escalates)
				began := time.Now()
				wait := w.wait(t.Context(), p)
				w.shown(p, card)
				time.Sleep(5*time.Minute - 1)
				w.journal.set(func(s *spoilt) { c.spoil(s, true) })
				time.Sleep(90 * time.Second) // over the reminder and the first escalation
				w.journal.set(func(s *spoilt) { c.spoil(s, false) })
				wait()
				var kinds []string
				for _, h := range w.happened(began, "run") {
					kinds = append(kinds, strings.Join(strings.Fields(h)[1:3], " "))
				}
				want := []string{"reminded 1:", "escalated 1:", "reminded 2:", "escalated 2:", "denied by"}
				if diff := cmp.Diff(want, kinds); diff != "" {
					t.Errorf("(-want +got):\n%s", diff)
				}
			})
		})
	}
	t.Run("never again", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, patient, approvers(t, "UBOB", "channel"))
			p := w.open("run", "call", escalates)
			began := time.Now()
			wait := w.wait(t.Context(), p)
			w.shown(p, card)
			w.journal.set(func(s *spoilt) { s.fail = true })
			if res := wait(); res.Recorded() || res.Type != ledger.Denied || time.Since(began) != 10*time.Minute {
				t.Errorf("%+v after %s", res, time.Since(began))
			}
		})
	})
	t.Run("a disk that hangs", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, patient, approvers(t, "UBOB", "channel"))
			p := w.open("run", "call")
			wait := w.wait(t.Context(), p)
			w.shown(p, card)
			hold := make(chan struct{})
			w.journal.set(func(s *spoilt) { s.hold, s.arrived = hold, make(chan struct{}, 9) })
			time.Sleep(6 * time.Minute) // the reminder's append waits
			w.journal.set(func(s *spoilt) { s.hold = nil })
			close(hold)
			if _, err := w.ResolveByID(t.Context(), p.ID(), approve(bob)); err != nil {
				t.Error(err)
			}
			wait()
		})
	})
}

// An end that is in the journal and not in memory is learnt before people are reminded of it.
func TestNoReminderOfWhatHasEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, patient)
		p := w.open("run", "call")
		began := time.Now()
		wait := w.wait(t.Context(), p)
		w.shown(p, card)
		w.journal.set(func(s *spoilt) { s.lose = true })
		if _, err := w.ResolveByID(t.Context(), p.ID(), approve(bob)); err == nil {
			t.Fatal("it was to seem lost")
		}
		w.journal.set(func(s *spoilt) { s.lose = false })
		if res := wait(); res.Type != ledger.Approved || time.Since(began) != 5*time.Minute {
			t.Errorf("%+v after %s", res, time.Since(began))
		}
		w.wantHappened(began, "0s approved by user: ")
	})
}

func TestReminderMoments(t *testing.T) {
	for _, c := range []struct {
		remind  Reminder
		timeout time.Duration
		want    []time.Duration
	}{
		{Reminder{}, time.Hour, nil},
		{Reminder{Part: 50}, time.Hour, []time.Duration{30 * time.Minute, 45 * time.Minute}},
		{Reminder{Part: 50}, 2 * time.Minute, []time.Duration{time.Minute, 90 * time.Second}},
		{Reminder{Part: 50}, time.Minute, []time.Duration{30 * time.Second}},
		{Reminder{Part: 50}, 59 * time.Second, nil},
		{Reminder{Part: 99}, 2 * time.Minute, nil},
		{Reminder{After: 10 * time.Second}, 20 * time.Second, []time.Duration{10 * time.Second}},
		{Reminder{After: 20 * time.Second}, 20 * time.Second, nil},
		{Reminder{Part: 50, After: 10 * time.Minute}, time.Hour, []time.Duration{10 * time.Minute, 35 * time.Minute}},
		{Reminder{Part: 10, After: 10 * time.Minute}, time.Hour, []time.Duration{6 * time.Minute, 33 * time.Minute}},
		{Reminder{Part: 50, Never: true}, time.Hour, nil},
	} {
		if diff := cmp.Diff(c.want, reminders(c.remind.in(c.timeout), c.timeout)); diff != "" {
			t.Errorf("%+v of %s (-want +got):\n%s", c.remind, c.timeout, diff)
		}
	}
}

// Whatever the times are: steps come in order, before the deadline, each once, and none at a moment that isn't its own.
func TestClockProperty(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		timeout := time.Duration(rapid.IntRange(1, 600).Draw(rt, "timeout")) * time.Second
		remind := Reminder{Part: rapid.IntRange(0, 99).Draw(rt, "part"), After: time.Duration(rapid.IntRange(0, 700).Draw(rt, "after")) * time.Second}
		var steps []ledger.Escalation
		at := time.Duration(0)
		for range rapid.IntRange(0, 3).Draw(rt, "steps") {
			at += time.Duration(rapid.IntRange(1, 400).Draw(rt, "step")) * time.Second
			steps = append(steps, ledger.Escalation{After: at, Approvers: []string{"UCAROL"}})
		}
		answer := time.Duration(rapid.IntRange(0, 700).Draw(rt, "answer")) * time.Second
		var got []string
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, patient)
			p := w.open("run", "call", func(q *Request) { q.Timeout, q.Remind, q.Escalate = timeout, remind, steps })
			wait := w.wait(t.Context(), p)
			began := time.Now()
			w.shown(p, card)
			time.Sleep(answer + 1)
			_, _ = w.ResolveByID(t.Context(), p.ID(), approve(bob))
			wait()
			got = w.happened(began, "run")
		})
		end := min(answer+1, timeout)
		want := 1
		if remind == (Reminder{}) {
			remind = Reminder{Part: 50}
		}
		for i, m := range reminders(remind.in(timeout), timeout) {
			if m < end && i == 0 {
				want++ // the second one is for people by name, and there may be none before it was escalated
			}
		}
		for _, s := range steps {
			if s.After < end {
				want++
			}
		}
		second := slices.ContainsFunc(got, func(s string) bool { return strings.Contains(s, "reminded 2") })
		if second {
			want++
		}
		if len(got) != want {
			rt.Fatalf("%d things happened until %s, want %d: %v", len(got), end, want, got)
		}
		last := time.Duration(0)
		for _, h := range got {
			at, err := time.ParseDuration(strings.Fields(h)[0])
			if err != nil || at < last || at > end {
				rt.Fatalf("out of order: %v", got)
			}
			last = at
		}
	})
}
