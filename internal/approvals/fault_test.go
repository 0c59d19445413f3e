package approvals

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"approvalbot/internal/ledger"
	"approvalbot/internal/ledger/ledgertest"
)

// While nothing can be recorded nothing is decided, and the ask waits on.
func TestJournalCantBeWritten(t *testing.T) {
	faults := map[string]func(*world) (release func()){
		"full disk": func(w *world) func() {
			w.journal.set(func(s *spoilt) { s.fail = true })
			return func() { w.journal.set(func(s *spoilt) { s.fail = false }) }
		},
		"locked by another program": func(w *world) func() { return ledgertest.Lock(w, w.dir) },
	}
	for name, spoil := range faults {
		t.Run(name, func(t *testing.T) { synctest.Test(t, func(t *testing.T) { unwritable(newWorld(t), spoil) }) })
	}
}

func unwritable(w *world, spoil func(*world) (release func())) {
	p := w.open("run", "call")
	wait := w.wait(w.ctx(), p)
	before := w.Pending("")

	release := spoil(w)
	for _, d := range []Decision{approve(bob), deny(bob, "")} {
		if _, err := w.ResolveByID(w.ctx(), p.ID(), d); !errors.Is(err, ledger.ErrNotRecorded) {
			w.Errorf("a decision: %v", err)
		}
	}
	if err := w.Shown(w.ctx(), p.ID(), card); !errors.Is(err, ledger.ErrNotRecorded) {
		w.Errorf("a showing: %v", err)
	}
	if _, err := w.Open(w.ctx(), request("run", "other")); !errors.Is(err, ledger.ErrNotRecorded) {
		w.Errorf("another ask: %v", err)
	}
	if diff := cmp.Diff(before, w.Pending("")); diff != "" {
		w.Error("memory is ahead of the journal:", diff)
	}

	release()
	if _, err := w.ResolveByID(w.ctx(), p.ID(), approve(bob)); err != nil {
		w.Error("the journal is well again:", err)
	}
	if res := wait(); res.Type != ledger.Approved {
		w.Errorf("resolution: %+v", res)
	}
	w.abort(w.open("run", "other"))
	w.empty()
}

// The wait is over and that can't be recorded: a denial that says so, and no decision counts afterwards.
func TestEndCantBeRecorded(t *testing.T) {
	ends := map[string]func(w *world, p *Pending) Resolution{
		"deadline": func(w *world, p *Pending) Resolution { return p.Wait(w.ctx()) },
		"abort":    func(w *world, p *Pending) Resolution { return w.abort(p) },
		"unshowable": func(w *world, p *Pending) Resolution {
			w.Unshowable(w.ctx(), p.ID(), "slack", "is_archived")
			return p.Wait(w.ctx())
		},
	}
	for name, end := range ends {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				time.Sleep(time.Millisecond)
				p := w.open("run", "call")
				w.journal.set(func(s *spoilt) { s.fail = true })
				res := end(w, p)
				if res.Recorded() || res.Type != ledger.Denied || res.Reason == "" {
					t.Errorf("resolution: %+v", res)
				}
				w.empty()
				w.journal.set(func(s *spoilt) { s.fail = false })
				for range 2 {
					_, err := w.ResolveByID(t.Context(), p.ID(), approve(bob))
					e, ok := errors.AsType[*ExpiredError](err)
					if !ok || e.Resolution.Recorded() || e.Resolution.Reason != "its end could not be recorded" {
						t.Errorf("a click after it: %v", err)
					}
				}
			})
		})
	}
}

// The commit reported an error but took place. Nobody was told that it counted, so the next one to ask finds out.
func TestCommitThatSeemedToFail(t *testing.T) {
	next := map[string]struct {
		quorum int
		do     func(w *world, p *Pending) string
		want   string
		end    string
	}{
		"same person again": {1, func(w *world, p *Pending) string {
			return told(w.ResolveByID(w.ctx(), p.ID(), approve(bob)))
		}, "approved by UBOB", "approved user UBOB"},
		"same person otherwise": {1, func(w *world, p *Pending) string {
			return told(w.ResolveByID(w.ctx(), p.ID(), deny(bob, "")))
		}, "conflict: approved by UBOB", "approved user UBOB"},
		"somebody else": {1, func(w *world, p *Pending) string {
			return told(w.ResolveByID(w.ctx(), p.ID(), deny(carol, "")))
		}, "conflict: approved by UBOB", "approved user UBOB"},
		"the deadline": {1, func(w *world, p *Pending) string { time.Sleep(time.Hour); return "" }, "", "approved user UBOB"},
		"a vote, again": {2, func(w *world, p *Pending) string {
			return told(w.ResolveByID(w.ctx(), p.ID(), approve(bob)))
		}, "1 of 2", "denied abort"},
		"a vote, and another's": {2, func(w *world, p *Pending) string {
			_, _ = w.ResolveByID(w.ctx(), p.ID(), approve(bob))
			return told(w.ResolveByID(w.ctx(), p.ID(), approve(carol)))
		}, "approved by UCAROL", "approved user UCAROL"},
		"a vote, and a deny": {2, func(w *world, p *Pending) string {
			return told(w.ResolveByID(w.ctx(), p.ID(), deny(bob, "")))
		}, "denied by UBOB", "denied user UBOB"},
	}
	for name, tt := range next {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, approvers(t, "UBOB", "UCAROL"), quorum(tt.quorum))
				p := w.open("run", "call")
				w.journal.set(func(s *spoilt) { s.lose = true })
				if _, err := w.ResolveByID(t.Context(), p.ID(), approve(bob)); !errors.Is(err, ledger.ErrNotRecorded) {
					t.Fatal(err)
				}
				w.journal.set(func(s *spoilt) { s.lose = false })
				if got := tt.do(w, p); got != tt.want {
					t.Errorf("told %q, want %q", got, tt.want)
				}
				if got := ended(w.abort(p)); got != tt.end {
					t.Errorf("it ended as %q, want %q", got, tt.end)
				}
			})
		})
	}
}

// A showing whose commit seemed to fail is there, and reporting it again is fine.
func TestShowingThatSeemedToFail(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		p := w.open("run", "call")
		wait := w.wait(t.Context(), p)
		w.journal.set(func(s *spoilt) { s.lose = true })
		if err := w.Shown(t.Context(), p.ID(), card); err == nil {
			t.Fatal("no error")
		}
		w.journal.set(func(s *spoilt) { s.lose = false })
		start := time.Now()
		time.Sleep(time.Second)
		w.shown(p, card)
		w.shown(p, card)
		if n := len(p.Snapshot().Ask.Shown); n != 1 {
			t.Errorf("%d showings", n)
		}
		if res := wait(); res.Source != ledger.SourceTimeout || time.Since(start) != 2*time.Minute {
			t.Errorf("after %v: %+v", time.Since(start), res)
		}
	})
}

// Somebody else wrote the resolution: recovery, or another registry on the same journal.
func TestResolvedBehindOurBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		p := w.open("run", "call")
		behind := ending{ledger.SourceAbort, "approvalbot restarted"}
		if _, err := w.journal.Append(t.Context(), p.a.event(ledger.System, behind.body(p.ID()))); err != nil {
			t.Fatal(err)
		}
		if got := told(w.ResolveByID(t.Context(), p.ID(), approve(bob))); got != "expired: abort" {
			t.Errorf("told %q", got)
		}
		if res := p.Wait(t.Context()); res.Reason != "approvalbot restarted" || !res.Recorded() {
			t.Errorf("resolution: %+v", res)
		}
	})
}

func TestJournalCantBeRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		p := w.open("run", "call")
		w.abort(p)
		w.journal.set(func(s *spoilt) { s.unread = true })
		for _, err := range []error{
			second(w.ResolveByID(t.Context(), p.ID(), approve(bob))),
			second(w.Resolve(t.Context(), p.a.Key, approve(bob))),
			w.Shown(t.Context(), p.ID(), card),
		} {
			if !errors.Is(err, ledger.ErrNotRecorded) || !errors.Is(err, errDisk) {
				t.Errorf("got %v", err)
			}
		}
	})
}

// Once a decision is with the journal, the clicker going away doesn't take it back. Before that it does.
func TestClickerGoesAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, approvers(t, "UBOB", "UCAROL"))
		p := w.open("run", "call")
		hold := make(chan struct{})
		w.journal.set(func(s *spoilt) { s.hold, s.arrived = hold, make(chan struct{}, 9) })
		ctx, leave := context.WithCancel(t.Context())
		first, later := make(chan error, 1), make(chan error, 1)
		go func() { first <- second(w.ResolveByID(ctx, p.ID(), approve(bob))) }()
		<-w.journal.arrived
		go func() { later <- second(w.ResolveByID(ctx, p.ID(), deny(carol, ""))) }()
		synctest.Wait()
		leave()
		if err := <-later; !errors.Is(err, context.Canceled) {
			t.Errorf("the one who was still waiting: %v", err)
		}
		close(hold)
		if err := <-first; err != nil {
			t.Errorf("the one whose decision was on its way: %v", err)
		}
		if res := w.abort(p); res.Type != ledger.Approved {
			t.Errorf("resolution: %+v", res)
		}
	})
}

// The deadline passes while a decision is being written: the decision was first.
func TestDeadlineDuringCommit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		p := w.open("run", "call")
		wait := w.wait(t.Context(), p)
		hold := make(chan struct{})
		w.journal.set(func(s *spoilt) { s.hold, s.arrived = hold, make(chan struct{}, 9) })
		clicked := make(chan error, 1)
		go func() { clicked <- second(w.ResolveByID(t.Context(), p.ID(), approve(bob))) }()
		time.Sleep(time.Hour)
		close(hold)
		if err, res := <-clicked, wait(); err != nil || res.Type != ledger.Approved {
			t.Errorf("%v, %+v", err, res)
		}
	})
}

// An ask that turns out to be shown just as the time for that runs out goes on.
func TestShownAtTheLastMoment(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		start := time.Now()
		p := w.open("run", "call")
		wait := w.wait(t.Context(), p)
		hold := make(chan struct{})
		w.journal.set(func(s *spoilt) { s.hold, s.arrived = hold, make(chan struct{}, 9) })
		shown := make(chan error, 1)
		go func() { shown <- w.Shown(t.Context(), p.ID(), card) }()
		time.Sleep(90 * time.Second)
		close(hold)
		if err := <-shown; err != nil {
			t.Error(err)
		}
		if res := wait(); res.Source != ledger.SourceTimeout || time.Since(start) != 2*time.Minute {
			t.Errorf("after %v: %+v", time.Since(start), res)
		}
	})
}

// Somebody who can't wait for their turn to say that it can't be shown has still said it.
func TestUnshowableWithoutWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		p := w.open("run", "call")
		if err := p.a.lock(t.Context()); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		w.Unshowable(ctx, p.ID(), "slack", "is_archived")
		p.a.unlock()
		start := time.Now()
		if res := p.Wait(t.Context()); res.Reason != "is_archived" || time.Since(start) != 0 {
			t.Errorf("after %v: %+v", time.Since(start), res)
		}
	})
}
