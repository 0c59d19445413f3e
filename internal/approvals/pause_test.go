package approvals

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"approvalbot/internal/ledger"
)

var root = ledger.Actor{Kind: ledger.ActorOperator, ID: "root", Via: "command line"}

func operators(t testing.TB, words ...string) func(*Settings) {
	return func(s *Settings) { s.Operators = list(t, words...) }
}

// log is the journal as pauses are read from it.
func (w *world) journalLog() Log { return w.journal.Journal.(Log) }

func (w *world) pauseBy(by ledger.Actor, reason string) Pause {
	w.Helper()
	p, before, err := w.Pause(w.ctx(), by, reason)
	if err != nil || before {
		w.Fatalf("pause: %v, before %v", err, before)
	}
	return p
}

func wantPaused(t testing.TB, err error, ask bool) {
	t.Helper()
	e, ok := errors.AsType[*PausedError](err)
	if !ok || e.Ask != ask {
		t.Fatalf("got %v, want a refusal because of the pause (of an ask: %v)", err, ask)
	}
	wantRefused(t, err) // surfaces that don't know pauses
}

// While it is paused nobody is asked and nothing is approved; what waits can be denied, and its time runs on.
func TestPauseHoldsApprovals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, operators(t, "UCAROL"))
		first, second, third := w.open("run", "1"), w.open("run", "2"), w.open("run", "3")
		waits := []func() Resolution{w.wait(t.Context(), first), w.wait(t.Context(), second), w.wait(t.Context(), third)}
		for i, p := range []*Pending{first, second, third} {
			w.shown(p, Showing{Surface: "slack", Channel: "CPRIVATE", TS: fmt.Sprintf("2.%d", i)})
		}
		if p := w.pauseBy(carol, "the database is on fire"); p.By.Name != "name of UCAROL" || p.Reason != "the database is on fire" || p.Seq == 0 {
			t.Errorf("the pause: %+v", p)
		}
		_, err := w.ResolveByID(t.Context(), first.ID(), approve(bob))
		wantPaused(t, err, true)
		if !strings.Contains(err.Error(), "name of UCAROL") || !strings.Contains(wantRefused(t, err).Reason, "You can deny this") {
			t.Errorf("it says %q", wantRefused(t, err).Reason)
		}
		_, err = w.Open(t.Context(), request("run", "4"))
		wantPaused(t, err, false)
		if _, ok, _ := w.journal.Claimed(t.Context(), ledger.ClaimAsk("run", "4")); ok {
			t.Error("somebody was asked")
		}
		if _, err := w.ResolveByID(t.Context(), second.ID(), deny(bob, "")); err != nil {
			t.Error(err)
		}
		if res := waits[1](); res.Type != ledger.Denied || res.Source != ledger.SourceUser {
			t.Errorf("denied: %+v", res)
		}
		if p, was, err := w.Resume(t.Context(), carol); err != nil || !was || p.Reason == "" {
			t.Errorf("resume: %+v %v %v", p, was, err)
		}
		if _, err := w.ResolveByID(t.Context(), first.ID(), approve(bob)); err != nil {
			t.Error(err)
		}
		if res := waits[0](); res.Type != ledger.Approved {
			t.Errorf("approved: %+v", res)
		}
		w.pauseBy(carol, "")
		if res := waits[2](); res.Source != ledger.SourceTimeout { // its time ran on
			t.Errorf("nobody answered: %+v", res)
		}
		_, err = w.ResolveByID(t.Context(), third.ID(), approve(bob))
		if _, _, over := Ended(err); !over {
			t.Errorf("an ask that is over says %v", err)
		}
		w.empty()
	})
}

// Who may pause: those who are listed and whoever is on the machine; nobody else, and nobody whom nobody knows.
func TestWhoMayOperate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, operators(t, "UCAROL", "SONCALL", "UGUEST", "UNOBODY"))
		for name, c := range map[string]struct {
			by  ledger.Actor
			may bool
		}{
			"listed": {carol, true}, "in the group": {alice, true}, "on the machine": {root, true},
			"not listed": {bob, false}, "a guest who is listed": {guest, false}, "nobody": {nobody, false},
			"of another workspace": {foreign, false}, "a token": {token, false}, "the bot": {bot, false},
			"the model": {ledger.Actor{Kind: ledger.ActorModel}, false}, "the system": {ledger.System, false},
		} {
			_, err := w.MayOperate(t.Context(), c.by)
			if c.may != (err == nil) {
				t.Errorf("%s: %v", name, err)
			}
			if !c.may {
				wantRefused(t, err)
				_, _, err = w.Pause(t.Context(), c.by, "")
				wantRefused(t, err)
				_, _, err = w.Resume(t.Context(), c.by)
				wantRefused(t, err)
			}
		}
		if _, paused := w.Paused(); paused {
			t.Error("somebody who may not has paused")
		}
		w.book.spoil(0, errors.New("slack is down"))
		_, err := w.MayOperate(t.Context(), carol)
		wantRefused(t, err)
		w.pauseBy(root, "") // also while Slack is down
		w.book.spoil(0, nil)

		none := newWorld(t)
		_, err = none.MayOperate(t.Context(), carol)
		if !strings.Contains(wantRefused(t, err).Reason, "APPROVALBOT_OPERATORS") {
			t.Errorf("%v doesn't say what to set", err)
		}
		none.pauseBy(root, "")
	})
}

// A restart finds what was recorded, by whichever process.
func TestPauseIsOfTheJournal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, operators(t, "UCAROL"))
		w.restart()
		if err := w.LoadPause(t.Context(), w.journalLog()); err != nil {
			t.Fatal(err)
		}
		if _, paused := w.Paused(); paused {
			t.Fatal("paused by nobody")
		}
		w.pauseBy(carol, "why")
		again, before, err := w.Pause(t.Context(), root, "another reason")
		if err != nil || !before || again.Reason != "why" {
			t.Errorf("paused twice: %+v %v %v", again, before, err)
		}
		w.restart()
		if err := w.LoadPause(t.Context(), w.journalLog()); err != nil {
			t.Fatal(err)
		}
		p, paused := w.Paused()
		if !paused || p.Reason != "why" || p.By.ID != "UCAROL" {
			t.Errorf("after the restart: %+v, %v", p, paused)
		}
		select {
		case <-w.Resumed():
			t.Error("resumed by nobody")
		default:
		}
		over := w.Resumed()
		// Another process has written it, and this one hears of it.
		events, err := w.journal.Append(t.Context(), ResumeEvent(root))
		if err != nil {
			t.Fatal(err)
		}
		w.Heard(events[0])
		w.Heard(ledger.Event{Seq: p.Seq, Body: &ledger.Paused{}}) // old news
		<-over
		if _, paused := w.Paused(); paused {
			t.Error("an old event counts again")
		}
		<-w.Resumed()
		if _, was, err := w.Resume(t.Context(), carol); was || err != nil {
			t.Errorf("resumed twice: %v %v", was, err)
		}
	})
}

// A pause that can't be recorded isn't one, and one that seemed not to be is known when it is heard of.
func TestPauseThatCantBeRecorded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.journal.set(func(s *spoilt) { s.fail = true })
		if _, _, err := w.Pause(t.Context(), root, ""); !errors.Is(err, ledger.ErrNotRecorded) {
			t.Errorf("got %v", err)
		}
		if _, paused := w.Paused(); paused {
			t.Error("paused, and the journal doesn't know")
		}
		w.journal.set(func(s *spoilt) { s.fail, s.lose = false, true })
		if _, _, err := w.Pause(t.Context(), root, ""); !errors.Is(err, ledger.ErrNotRecorded) {
			t.Errorf("got %v", err)
		}
		w.journal.set(func(s *spoilt) { s.lose = false })
		for e, err := range w.journalLog().Read(t.Context(), 0, ledger.Filter{}) {
			if err != nil {
				t.Fatal(err)
			}
			w.Heard(e)
		}
		if _, paused := w.Paused(); !paused {
			t.Error("the journal says that it is paused")
		}
	})
}

// In the journal's order nothing that a pause forbids stands behind one, however everybody races.
func TestNothingOvertakesAPause(t *testing.T) {
	w := newWorld(t, approvers(t, "UBOB", "UCAROL"))
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			for i := range 25 {
				switch rand.IntN(4) {
				case 0:
					_, _, _ = w.Pause(ctx, root, "")
				case 1:
					_, _, _ = w.Resume(ctx, root)
				default:
					p, err := w.Open(ctx, request(fmt.Sprintf("run-%d", g), fmt.Sprint(i)))
					if err != nil {
						continue
					}
					_ = w.Shown(ctx, p.ID(), Showing{Surface: "slack", Channel: "CPRIVATE", TS: fmt.Sprintf("%d.%d", g, i)})
					_, err = w.ResolveByID(ctx, p.ID(), approve(bob))
					if err != nil {
						_, _ = w.ResolveByID(ctx, p.ID(), deny(bob, ""))
					}
					p.Wait(ctx)
				}
				_ = w.Unpaused(func() error {
					_, err := w.journal.Append(ctx, ledger.Event{Run: fmt.Sprintf("started-%d-%d", g, i), Actor: ledger.System, Body: &ledger.RunStarted{}})
					return err
				})
			}
		})
	}
	wg.Wait()
	paused, pauses, starts := false, 0, 0
	for e, err := range w.journalLog().Read(t.Context(), 0, ledger.Filter{}) {
		if err != nil {
			t.Fatal(err)
		}
		switch b := e.Body.(type) {
		case *ledger.Paused:
			if paused {
				t.Errorf("row %d pauses what is paused", e.Seq)
			}
			paused = true
			pauses++
		case *ledger.Resumed:
			if !paused {
				t.Errorf("row %d resumes what isn't paused", e.Seq)
			}
			paused = false
		case *ledger.RunStarted, *ledger.ApprovalRequested:
			starts++
			if paused {
				t.Errorf("row %d: %s in a pause", e.Seq, e.Kind())
			}
		case *ledger.ApprovalVoted:
			if paused && b.Type == ledger.Approved {
				t.Errorf("row %d: approved in a pause", e.Seq)
			}
		}
	}
	if pauses == 0 || starts == 0 {
		t.Errorf("%d pauses and %d starts prove nothing", pauses, starts)
	}
	w.empty()
}

// Operators, those on the machine, and whoever may decide an ask of the run may stop it, whatever the settings' list says.
func TestWhoElseMayStop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, approvers(t, "UBOB"), operators(t, "UDAVE"))
		p := w.open("run", "call", func(q *Request) { q.Approvers = []string{"UCAROL"} })
		run := &ledger.Run{ID: "run", Session: "session", Started: &ledger.RunStarted{
			Requesters: []ledger.Person{alice.Person()}, Place: ledger.Place{Team: team, Channel: "CPRIVATE"}}}
		for name, by := range map[string]ledger.Actor{"the requester": alice, "an approver": bob, "one of the ask's": carol, "an operator": dave, "the machine": root} {
			if err := w.MayStop(t.Context(), by, run); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
		wantRefused(t, w.MayStop(t.Context(), guest, run))
		wantRefused(t, w.MayStop(t.Context(), foreign, run))
		if err := w.MayDecide(t.Context(), p.ID(), ledger.Approved, carol); err != nil {
			t.Error(err)
		}
		wantRefused(t, w.MayDecide(t.Context(), p.ID(), ledger.Approved, bob))
		ctx, stop := stoppable()
		stop()
		p.Wait(ctx)
		wantRefused(t, w.MayStop(t.Context(), carol, run))
		if err := w.MayDecide(t.Context(), p.ID(), ledger.Approved, carol); !hasEnded(err) {
			t.Errorf("an ask that is over: %v", err)
		}
	})
}

// hasEnded tells whether an error says that an ask is over.
func hasEnded(err error) bool {
	_, _, over := Ended(err)
	return over
}
