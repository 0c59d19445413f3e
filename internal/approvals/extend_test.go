package approvals

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"approvalbot/internal/ledger"
)

// More time: once the timeout per click, up to the limit, and the deadline that is written everywhere is the one that
// holds.
func TestMoreTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, patient, approvers(t, "UBOB"))
		p := w.open("run", "call")
		began := time.Now()
		if _, err := w.Extend(t.Context(), p.ID(), bob); !errors.Is(err, ErrInvalid) {
			t.Errorf("before it was shown: %v", err)
		}
		wait := w.wait(t.Context(), p)
		w.shown(p, card)
		extend := func(by ledger.Actor, want time.Duration) {
			t.Helper()
			until, err := w.Extend(t.Context(), p.ID(), by)
			if err != nil || !until.Equal(began.Add(want)) {
				t.Errorf("until %s, %v", until.Sub(began), err)
			}
			if at, ok := w.Deadline(p.ID()); !ok || !at.Equal(began.Add(want)) {
				t.Errorf("the deadline is %v", at)
			}
		}
		extend(bob, 20*time.Minute)
		extend(bob, 20*time.Minute) // a double click is one
		time.Sleep(9 * time.Minute)
		if until, err := w.ExtendCall(t.Context(), Key{"run", "call"}, bob); err != nil || !until.Equal(began.Add(30*time.Minute)) {
			t.Errorf("until %s, %v", until.Sub(began), err)
		}
		time.Sleep(time.Minute)
		extend(bob, 35*time.Minute) // the limit: 25 minutes beyond the first deadline
		time.Sleep(time.Minute)
		if _, err := w.Extend(t.Context(), p.ID(), bob); !errors.Is(err, ErrNoMoreTime) {
			t.Errorf("beyond the limit: %v", err)
		}
		if a := p.Snapshot().Ask; a.Extensible() {
			t.Error("it says that there is more time")
		}
		res := wait()
		if res.Source != ledger.SourceTimeout || time.Since(began) != 35*time.Minute {
			t.Errorf("%+v after %s", res, time.Since(began))
		}
		w.wantHappened(began,
			"0s extended 1 to 20m0s by UBOB",
			"5m0s reminded 1: UBOB", // as it stood
			"7m30s reminded 2: UBOB directly",
			"9m0s extended 2 to 30m0s by UBOB",
			"10m0s extended 3 to 35m0s by UBOB",
			"35m0s denied by timeout: nobody answered within 35 minutes",
		)
		_, err := w.Extend(t.Context(), p.ID(), bob)
		if _, _, over := Ended(err); !over {
			t.Errorf("after the end: %v", err)
		}
		if _, err := w.Extend(t.Context(), "nothing", bob); !errors.Is(err, ErrNotFound) {
			t.Errorf("an ask that there never was: %v", err)
		}
	})
}

// Whoever asked has one go, altogether; strangers have none; a token that names nobody may where the quorum lets it not
// even vote, for it decides nothing.
func TestWhoMayGiveMoreTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, patient, approvers(t, "UBOB"), quorum(1))
		p := w.open("run", "call", func(q *Request) {
			q.Requesters = append(q.Requesters, carol.Person())
		})
		wait := w.wait(t.Context(), p)
		w.shown(p, card)
		for _, by := range []ledger.Actor{dave, guest, bot, gone, foreign, nobody} {
			_, err := w.Extend(t.Context(), p.ID(), by)
			wantRefused(t, err)
		}
		if _, err := w.Extend(t.Context(), p.ID(), alice); err != nil {
			t.Error("whoever asked, once:", err)
		}
		time.Sleep(time.Minute)
		for _, by := range []ledger.Actor{alice, carol} {
			_, err := w.Extend(t.Context(), p.ID(), by)
			wantRefused(t, err)
		}
		for _, by := range []ledger.Actor{bob, token} {
			if _, err := w.Extend(t.Context(), p.ID(), by); err != nil {
				t.Errorf("%s: %v", by.ID, err)
			}
		}
		w.wantRecorded(p, 3)
		_, _ = w.ResolveByID(t.Context(), p.ID(), deny(bob, ""))
		wait()
	})
}

func (w *world) wantRecorded(p *Pending, n int) {
	w.Helper()
	if got := len(p.Snapshot().Ask.Extended); got != n {
		w.Errorf("the deadline was moved %d times, want %d", got, n)
	}
}

// Requesters who may approve are approvers.
func TestARequesterWhoMayApproveGivesTimeAsOftenAsAnybody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, patient, approvers(t, "requester"))
		p := w.open("run", "call")
		wait := w.wait(t.Context(), p)
		w.shown(p, card)
		for range 2 {
			if _, err := w.Extend(t.Context(), p.ID(), alice); err != nil {
				t.Error(err)
			}
			time.Sleep(time.Minute)
		}
		w.wantRecorded(p, 2)
		_, _ = w.ResolveByID(t.Context(), p.ID(), deny(alice, ""))
		wait()
	})
}

// A click in the very moment of the deadline: it has more time, or it is over and whoever clicked is told so. Never both.
func TestMoreTimeInTheLastMoment(t *testing.T) {
	won, lost := 0, 0
	for i := range 200 {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, patient, approvers(t, "UBOB"))
			p := w.open("run", "call")
			began := time.Now()
			wait := w.wait(t.Context(), p)
			w.shown(p, card)
			err := make(chan error, 1)
			time.AfterFunc(10*time.Minute+time.Duration(i%2-1), func() { // on it, or a nanosecond before
				_, e := w.Extend(w.ctx(), p.ID(), bob)
				err <- e
			})
			e := <-err
			res := wait()
			switch _, _, over := Ended(e); {
			case e == nil && time.Since(began) == 20*time.Minute:
				won++
			case over && time.Since(began) == 10*time.Minute && i%2 == 1:
				lost++
			default:
				t.Errorf("%v, and it ended after %s: %+v", e, time.Since(began), res)
			}
		})
	}
	t.Logf("%d were in time, %d weren't", won, lost)
}

func TestMoreTimeThatCantBeRecorded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, patient, approvers(t, "UBOB"))
		p := w.open("run", "call")
		began := time.Now()
		wait := w.wait(t.Context(), p)
		w.shown(p, card)
		w.journal.set(func(s *spoilt) { s.fail = true })
		if _, err := w.Extend(t.Context(), p.ID(), bob); !errors.Is(err, ledger.ErrNotRecorded) {
			t.Errorf("it was not recorded: %v", err)
		}
		w.journal.set(func(s *spoilt) { s.fail, s.lose = false, true })
		if _, err := w.Extend(t.Context(), p.ID(), bob); !errors.Is(err, ledger.ErrNotRecorded) {
			t.Errorf("it seemed not to be recorded: %v", err)
		}
		w.journal.set(func(s *spoilt) { s.lose = false })
		until, err := w.Extend(t.Context(), p.ID(), bob) // it stands already
		if err != nil || !until.Equal(began.Add(20*time.Minute)) {
			t.Errorf("until %s, %v", until.Sub(began), err)
		}
		wait()
		if time.Since(began) != 20*time.Minute {
			t.Errorf("it ended after %s", time.Since(began))
		}
	})
}

func TestNoMoreTimeWhereTheOperatorGivesNone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, approvers(t, "UBOB"))
		p := w.open("run", "call")
		w.shown(p, card)
		if _, err := w.Extend(t.Context(), p.ID(), bob); !errors.Is(err, ErrNoMoreTime) {
			t.Errorf("%v", err)
		}
		if a := p.Snapshot().Ask; len(a.Offers) != 0 || a.Extensible() {
			t.Errorf("it is offered: %v", a.Offers)
		}
		w.abort(p)
	})
}
