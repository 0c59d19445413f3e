package approvals

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"approvalbot/internal/ledger"
)

func TestApprovedByAPerson(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		p := w.open("run", "call")
		wait := w.wait(t.Context(), p)
		w.shown(p, card)

		pending := w.Pending("run")
		if len(pending) != 1 || pending[0].ID != p.ID() || pending[0].Key != (Key{"run", "call"}) {
			t.Fatalf("pending: %+v", pending)
		}
		if until := pending[0].Ask.Until(); !until.Equal(time.Now().Add(2 * time.Minute)) {
			t.Errorf("the deadline is %v", until)
		}
		if len(w.Pending("other")) != 0 || len(w.Pending("")) != 1 {
			t.Error("the list of a run has asks of another, or the list of all lacks one")
		}

		out, err := w.ResolveByID(t.Context(), p.ID(), Decision{Type: ledger.Approved, By: bob, Reason: " fine "})
		if err != nil {
			t.Fatal(err)
		}
		res := wait()
		want := ledger.ApprovalResolved{Approval: p.ID(), Type: ledger.Approved, Source: ledger.SourceUser, Reason: "fine",
			By: &ledger.Actor{Kind: ledger.ActorUser, Team: team, ID: "UBOB", Name: "name of UBOB", Via: "slack"}}
		if diff := cmp.Diff(want, res.ApprovalResolved); diff != "" {
			t.Error("the resolution (-want +got):", diff)
		}
		for name, r := range map[string]*Resolution{"answer": out.Resolution, "journal": w.resolved(p.ID()), "snapshot": {
			ApprovalResolved: *out.Snapshot.Ask.Resolved, At: out.Snapshot.Ask.ResolvedAt, Seq: res.Seq}} {
			if diff := cmp.Diff(&res, r); diff != "" {
				t.Errorf("the waiter's resolution and that of the %s differ: %s", name, diff)
			}
		}
		if !res.Recorded() || out.Repeated || out.Approvals != 1 || out.Quorum != 1 {
			t.Errorf("outcome: %+v", out)
		}
		w.empty()
	})
}

func TestRequestIsRecordedAsAsked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		p := w.open("run", "call", func(q *Request) {
			q.Approvers, q.Quorum, q.Timeout = []string{"UBOB", "UCAROL"}, 2, 15*time.Minute
		})
		e, ok, err := w.journal.Claimed(t.Context(), ledger.ClaimAsk("run", "call"))
		if err != nil || !ok {
			t.Fatal(ok, err)
		}
		want := &ledger.ApprovalRequested{
			Approval: p.ID(), Tool: "shell", ToolHash: "00", Arguments: `{"command":"ls"}`,
			Digest:  "4cf29611a66934862f29acfcc817e30b905c1ab73d5e65831413eb6b454d49db",
			Preview: ledger.Preview{Summary: "Run ls", Kind: "command", Body: "ls"}, Reason: "it may write",
			Place:      ledger.Place{Team: team, Channel: "CPRIVATE", Thread: "1.0"},
			Requesters: []ledger.Person{alice.Person()}, Approvers: []string{"UBOB", "UCAROL"}, Quorum: 2,
			Surfaces: []string{"slack"}, ShowBy: time.Now().UTC().Add(time.Minute), Timeout: 15 * time.Minute,
			PolicyHash: "11", Cwd: "/w",
		}
		if diff := cmp.Diff(want, e.Body); diff != "" {
			t.Error("(-want +got):", diff)
		}
		if until, ok := w.Deadline(p.ID()); !ok || !until.Equal(time.Now().Add(15*time.Minute)) {
			t.Error("deadline before the showing:", until, ok)
		}
		if _, ok := w.Deadline("other"); ok {
			t.Error("an unknown ask has a deadline")
		}
		w.abort(p)
	})
}

// abort ends an ask that a test has no more use for.
func (w *world) abort(p *Pending) Resolution {
	ctx, cancel := context.WithCancelCause(w.ctx())
	cancel(&AbortError{Reason: "stopped by alice"})
	return p.Wait(ctx)
}

// A click can come before the surface has told us that the card stands, and before anyone waits.
func TestClickBeforeShownAndBeforeWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		p := w.open("run", "call")
		if _, err := w.ResolveByID(t.Context(), p.ID(), approve(bob)); err != nil {
			t.Fatal(err)
		}
		err := w.Shown(t.Context(), p.ID(), card)
		if res, snap, ok := Ended(err); !ok || res.Type != ledger.Approved || snap.ID != p.ID() {
			t.Errorf("a showing of an ask that is over: %v", err)
		}
		if res := p.Wait(t.Context()); res.Type != ledger.Approved {
			t.Errorf("resolution: %+v", res)
		}
		w.empty()
	})
}

// A click that comes while the request is still being written waits for it, and is not lost.
func TestClickWhileOpening(t *testing.T) {
	for _, fail := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t)
			hold := make(chan struct{})
			w.journal.set(func(s *spoilt) { s.hold, s.arrived, s.fail = hold, make(chan struct{}, 9), fail })
			opened := make(chan *Pending)
			go func() {
				p, _ := w.Open(t.Context(), request("run", "call"))
				opened <- p
			}()
			<-w.journal.arrived
			if n := len(w.Pending("")); n != 0 {
				t.Errorf("%d asks are listed that aren't recorded", n)
			}
			clicked := make(chan error)
			go func() {
				_, err := w.Resolve(t.Context(), Key{"run", "call"}, approve(bob))
				clicked <- err
			}()
			synctest.Wait()
			close(hold)
			p, err := <-opened, <-clicked
			if fail {
				if p != nil || !errors.Is(err, ErrNotFound) {
					t.Errorf("open failed: got %v, click %v", p, err)
				}
			} else if res := p.Wait(t.Context()); err != nil || res.Type != ledger.Approved {
				t.Errorf("click %v, resolution %+v", err, res)
			}
			w.empty()
		})
	}
}

func TestEndsByItself(t *testing.T) {
	const shownAt = 10 * time.Second
	tests := map[string]struct {
		do     func(w *world, p *Pending) // after ten seconds
		after  time.Duration              // when it ends, from its opening
		source ledger.Source
		reason string
	}{
		"nobody answers": {
			do:    func(w *world, p *Pending) { w.shown(p, card) },
			after: shownAt + 2*time.Minute, source: ledger.SourceTimeout, reason: "nobody answered within 2 minutes",
		},
		"the card's deadline is earlier": {
			do: func(w *world, p *Pending) {
				w.shown(p, Showing{Surface: "slack", Channel: "C", TS: "1", Until: time.Now().Add(time.Minute)})
			},
			after: shownAt + time.Minute, source: ledger.SourceTimeout, reason: "nobody answered within 2 minutes",
		},
		"the card promises too much": {
			do: func(w *world, p *Pending) {
				w.shown(p, Showing{Surface: "slack", Channel: "C", TS: "1", Until: time.Now().Add(time.Hour)})
			},
			after: shownAt + 2*time.Minute, source: ledger.SourceTimeout, reason: "nobody answered within 2 minutes",
		},
		"the first showing holds": {
			do: func(w *world, p *Pending) {
				w.shown(p, card)
				time.Sleep(time.Minute)
				w.shown(p, Showing{Surface: "http"})
				w.Unshowable(w.ctx(), p.ID(), "slack", "too late to matter")
			},
			after: shownAt + 2*time.Minute, source: ledger.SourceTimeout, reason: "nobody answered within 2 minutes",
		},
		"a short timeout": {
			do: func(w *world, p *Pending) {
				w.shown(p, Showing{Surface: "slack", Channel: "C", TS: "1", Until: time.Now().Add(2 * time.Second)})
			},
			after: shownAt + 2*time.Second, source: ledger.SourceTimeout, reason: "nobody answered within 2 minutes",
		},
		"not shown in time": {
			do:    func(w *world, p *Pending) { w.Unshowable(w.ctx(), p.ID(), "slack", "channel_not_found") },
			after: time.Minute, source: ledger.SourceUndeliverable, reason: "it could not be shown to anyone in time",
		},
		"no surface can show it": {
			do: func(w *world, p *Pending) {
				w.Unshowable(w.ctx(), p.ID(), "elsewhere", "of no interest")
				w.Unshowable(w.ctx(), p.ID(), "http", "nobody listens")
				w.Unshowable(w.ctx(), p.ID(), "slack", "channel_not_found")
			},
			after: shownAt, source: ledger.SourceUndeliverable, reason: "slack: channel_not_found; http: nobody listens",
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				start := time.Now()
				p := w.open("run", "call", func(q *Request) { q.Surfaces = []string{"slack", "http"} })
				wait := w.wait(t.Context(), p)
				time.Sleep(shownAt)
				tt.do(w, p)
				res := wait()
				want := ledger.ApprovalResolved{Approval: p.ID(), Type: ledger.Denied, Source: tt.source, Reason: tt.reason}
				if diff := cmp.Diff(want, res.ApprovalResolved); diff != "" {
					t.Error("(-want +got):", diff)
				}
				if after := time.Since(start); after != tt.after {
					t.Errorf("it ended after %v, want %v", after, tt.after)
				}
				if diff := cmp.Diff(&res, w.resolved(p.ID())); diff != "" {
					t.Error("journal and waiter differ:", diff)
				}
				w.empty()
			})
		})
	}
}

func TestAbort(t *testing.T) {
	tests := map[string]struct {
		cause error
		want  string
	}{
		"stopped":   {&AbortError{Reason: "stopped by alice"}, "stopped by alice"},
		"wrapped":   {fmt.Errorf("run: %w", &AbortError{Reason: "approvalbot is shutting down"}), "approvalbot is shutting down"},
		"cancelled": {nil, "the run ended"},
		"no reason": {&AbortError{}, "the run ended"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				ctx, cancel := context.WithCancelCause(t.Context())
				p := w.open("run", "call")
				wait := w.wait(ctx, p)
				synctest.Wait()
				cancel(tt.cause)
				res := wait()
				if res.Source != ledger.SourceAbort || res.Type != ledger.Denied || res.Reason != tt.want || !res.Recorded() {
					t.Errorf("resolution: %+v", res)
				}
				w.empty()
			})
		})
	}
}

// Approved, and then aborted before anyone looked: what is recorded holds.
func TestAbortAfterApproval(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		p := w.open("run", "call")
		if _, err := w.Resolve(t.Context(), Key{"run", "call"}, approve(bob)); err != nil {
			t.Fatal(err)
		}
		if res := w.abort(p); res.Type != ledger.Approved {
			t.Errorf("resolution: %+v", res)
		}
	})
}

// The clicks come in the nanosecond before, at and after the deadline.
func TestAtTheDeadline(t *testing.T) {
	for _, offset := range []time.Duration{-1, 0, 1} {
		t.Run(offset.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				for i := range 20 {
					p := w.open("run", fmt.Sprint(i))
					wait := w.wait(t.Context(), p)
					w.shown(p, card)
					time.Sleep(2*time.Minute + offset)
					out, err := w.ResolveByID(t.Context(), p.ID(), approve(bob))
					res := wait()
					said, _, over := Ended(err)
					if err == nil {
						said = *out.Resolution
					}
					if diff := cmp.Diff(res, said); diff != "" {
						t.Fatalf("the clicker and the waiter were told different things: %v, %s", err, diff)
					}
					if offset < 0 && over || offset > 0 && !over {
						t.Fatalf("a click %v from the deadline: %v", offset, err)
					}
				}
				w.empty()
			})
		})
	}
}

// Nothing counts after the deadline, even where the waiter hasn't woken up yet.
func TestAfterTheDeadlineWithoutWaiter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		p, q := w.open("run", "shown"), w.open("run", "not shown")
		w.shown(p, card)
		time.Sleep(3 * time.Minute)
		for _, p := range []*Pending{p, q} {
			_, err := w.ResolveByID(t.Context(), p.ID(), approve(bob))
			if e, ok := errors.AsType[*ExpiredError](err); !ok || !e.Resolution.Recorded() {
				t.Errorf("a late click: %v", err)
			}
			if err := w.Shown(t.Context(), p.ID(), Showing{TS: "other"}); err == nil {
				t.Error("a late showing was taken")
			}
			if res := p.Wait(t.Context()); res.Type != ledger.Denied {
				t.Errorf("resolution: %+v", res)
			}
		}
	})
}

// A click that came in time counts although it was its turn only later, unless the ask has ended meanwhile.
func TestWhatCameInTimeCounts(t *testing.T) {
	for late, counts := range map[time.Duration]bool{-time.Second: true, 0: true, 1: false, time.Hour: false} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t)
			p := w.open("run", "call")
			w.shown(p, card)
			due := time.Now().Add(2 * time.Minute)
			time.Sleep(2*time.Minute + time.Second) // and nobody has woken up to end it
			d := approve(bob)
			d.Received = due.Add(late)
			if _, err := w.ResolveByID(t.Context(), p.ID(), d); (err == nil) != counts {
				t.Errorf("received %v from the deadline: %v", late, err)
			}
			p.Wait(t.Context())
			w.empty()
		})
	}
}

// A thousand parties want to end one ask. One does, and all are told which.
func TestOneWinner(t *testing.T) {
	for round := range 4 {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, approvers(t, "UBOB", "UCAROL", "UDAVE"))
			ctx, cancel := context.WithCancelCause(t.Context())
			defer cancel(nil)
			p := w.open("run", "call")
			wait := w.wait(ctx, p)
			w.shown(p, card)
			start := make(chan struct{})
			answers := make(chan Resolution, 1000)
			var all sync.WaitGroup
			for i := range 1000 {
				all.Go(func() {
					<-start
					if i%250 == 249 {
						cancel(&AbortError{Reason: "stopped"})
					}
					if i%250 == 100 {
						w.Unshowable(ctx, p.ID(), "slack", "gone")
					}
					d := approve([]ledger.Actor{bob, carol, dave}[i%3])
					if i%2 == 0 {
						d.Type = ledger.Denied
					}
					out, err := w.Resolve(context.Background(), Key{"run", "call"}, d)
					if res, _, over := Ended(err); over {
						answers <- res
						return
					}
					if err != nil || out.Resolution == nil {
						t.Errorf("answer %+v, %v", out, err)
						return
					}
					answers <- *out.Resolution
				})
			}
			time.Sleep(2*time.Minute - time.Duration(round%2)) // with the deadline, or just before
			close(start)
			all.Wait()
			res := wait()
			close(answers)
			if len(answers) != 1000 {
				t.Errorf("%d answers", len(answers))
			}
			for a := range answers {
				if diff := cmp.Diff(res, a); diff != "" {
					t.Fatal("two stories:", diff)
				}
			}
			if diff := cmp.Diff(&res, w.resolved(p.ID())); diff != "" {
				t.Error("the journal tells another:", diff)
			}
			w.empty()
		})
	}
}

// Approving one ask leaves the others alone, whatever their ids look like.
func TestAsksAreIndependent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		keys := []Key{{"a", "b:c"}, {"a:b", "c"}, {"a/b", "c"}, {"a", "b/c"}, {"b", "b:c"}}
		var ps []*Pending
		for _, k := range keys {
			ps = append(ps, w.open(k.Run, k.Call))
		}
		if _, err := w.Resolve(t.Context(), keys[1], approve(bob)); err != nil {
			t.Fatal(err)
		}
		if n := len(w.Pending("")); n != len(keys)-1 {
			t.Errorf("%d are pending", n)
		}
		for i, p := range ps {
			if res := w.abort(p); (res.Type == ledger.Approved) != (i == 1) {
				t.Errorf("%v: %+v", keys[i], res)
			}
		}
		w.empty()
	})
}

func TestSecondOpen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		p := w.open("run", "call")
		appended := w.journal.appended
		if _, err := w.Open(t.Context(), request("run", "call")); !errors.Is(err, ErrAsked) {
			t.Errorf("a second open: %v", err)
		}
		if w.journal.appended != appended {
			t.Error("the journal had to refuse it")
		}
		if got := w.Pending("run"); len(got) != 1 || got[0].ID != p.ID() {
			t.Errorf("the first was touched: %+v", got)
		}
		if _, err := w.Resolve(t.Context(), p.a.Key, approve(bob)); err != nil {
			t.Fatal(err)
		}
		if res := p.Wait(t.Context()); res.Type != ledger.Approved {
			t.Errorf("the first's resolution: %+v", res)
		}
		// The journal remembers when memory has forgotten.
		if _, err := w.Open(t.Context(), request("run", "call")); !errors.Is(err, ErrAsked) {
			t.Errorf("a later open: %v", err)
		}
		w.empty()
	})
}

// Expired, decided and never existed are three answers, live, after the wait, and in the next process.
func TestLateDecisions(t *testing.T) {
	type answers struct{ Approve, Deny string }
	tests := map[string]struct {
		end  func(w *world, p *Pending)
		want answers
	}{
		"approved": {
			func(w *world, p *Pending) { _, _ = w.ResolveByID(w.ctx(), p.ID(), approve(bob)) },
			answers{"approved by UBOB", "conflict: approved by UBOB"},
		},
		"denied": {
			func(w *world, p *Pending) { _, _ = w.ResolveByID(w.ctx(), p.ID(), deny(bob, "no")) },
			answers{"conflict: denied by UBOB", "denied by UBOB"},
		},
		"timed out": {
			func(w *world, p *Pending) { w.shown(p, card); time.Sleep(2 * time.Minute) },
			answers{"expired: timeout", "expired: timeout"},
		},
		"not shown": {
			func(w *world, p *Pending) { w.Unshowable(w.ctx(), p.ID(), "slack", "is_archived") },
			answers{"expired: undeliverable", "expired: undeliverable"},
		},
		"aborted": {
			func(w *world, p *Pending) { w.abort(p) },
			answers{"expired: abort", "expired: abort"},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				p := w.open("run", "call")
				tt.end(w, p)
				check := func(when string) {
					t.Helper()
					byKey := answers{told(w.Resolve(t.Context(), Key{"run", "call"}, approve(bob))),
						told(w.Resolve(t.Context(), Key{"run", "call"}, deny(bob, "")))}
					byID := answers{told(w.ResolveByID(t.Context(), p.ID(), approve(carol))),
						told(w.ResolveByID(t.Context(), p.ID(), deny(dave, "")))}
					if diff := cmp.Diff(tt.want, byKey); diff != "" {
						t.Error(when, "by key:", diff)
					}
					if diff := cmp.Diff(tt.want, byID); diff != "" {
						t.Error(when, "by id:", diff)
					}
					if _, _, over := Ended(w.Shown(t.Context(), p.ID(), Showing{TS: "late"})); !over {
						t.Error(when, "a showing was taken")
					}
				}
				p.Wait(t.Context())
				check("after the wait")
				w.restart()
				check("in the next process")
				w.Unshowable(t.Context(), p.ID(), "slack", "no effect")
				for _, err := range []error{
					second(w.Resolve(t.Context(), Key{"run", "other"}, approve(bob))),
					second(w.ResolveByID(t.Context(), "other", approve(bob))),
					w.Shown(t.Context(), "other", card),
				} {
					if !errors.Is(err, ErrNotFound) {
						t.Errorf("never existed: %v", err)
					}
				}
			})
		})
	}
}

func second[T any](_ T, err error) error { return err }

// told puts an answer into words.
func told(out Outcome, err error) string {
	if e, ok := errors.AsType[*ConflictError](err); ok {
		return fmt.Sprintf("conflict: %s by %s", e.Resolution.Type, e.Resolution.By.ID)
	}
	if e, ok := errors.AsType[*ExpiredError](err); ok {
		return fmt.Sprintf("expired: %s", e.Resolution.Source)
	}
	switch {
	case err != nil:
		return err.Error()
	case out.Resolution == nil:
		return fmt.Sprintf("%d of %d", out.Approvals, out.Quorum)
	}
	return fmt.Sprintf("%s by %s", out.Resolution.Type, out.Resolution.By.ID)
}

// The process died with an open ask, and recovery hasn't come to it.
func TestAskOfADeadProcess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		p := w.open("run", "call")
		time.Sleep(time.Second)
		w.restart()
		_, err := w.ResolveByID(t.Context(), p.ID(), approve(bob))
		e, ok := errors.AsType[*ExpiredError](err)
		if !ok {
			t.Fatal(err)
		}
		want := Resolution{ApprovalResolved: ledger.ApprovalResolved{
			Approval: p.ID(), Type: ledger.Denied, Source: ledger.SourceAbort, Reason: "approvalbot restarted"}}
		if diff := cmp.Diff(want, e.Resolution, cmpopts.IgnoreFields(Resolution{}, "At")); diff != "" {
			t.Error(diff)
		}
		if e.Snapshot.Ask.Tool != "shell" || e.Snapshot.ID != p.ID() || e.Snapshot.Key != (Key{"run", "call"}) {
			t.Errorf("snapshot: %+v", e.Snapshot)
		}
		if w.resolved(p.ID()) != nil {
			t.Error("looking at it resolved it")
		}
	})
}

// The ask is opened just after it was looked for in memory and not found there.
func TestOpenedWhileLookedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		var p *Pending
		w.journal.set(func(s *spoilt) {
			s.looking = sync.OnceFunc(func() { p = w.open("run", "call") })
		})
		if got := told(w.Resolve(t.Context(), Key{"run", "call"}, approve(bob))); got != "approved by UBOB" {
			t.Errorf("told %q", got)
		}
		if res := p.Wait(t.Context()); res.Type != ledger.Approved {
			t.Errorf("resolution: %+v", res)
		}
	})
}

// Who asks about an ask that is over is told so, whoever they are and however the directory is.
func TestOverBeforeTheWaiterKnows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		p := w.open("run", "call")
		if _, err := w.ResolveByID(t.Context(), p.ID(), approve(bob)); err != nil {
			t.Fatal(err)
		}
		w.book.spoil(time.Hour, nil)
		for _, by := range []ledger.Actor{bob, carol, guest} {
			if got := told(w.ResolveByID(t.Context(), p.ID(), deny(by, ""))); got != "conflict: approved by UBOB" {
				t.Errorf("%s was told %q", by.ID, got)
			}
		}
		p.Wait(t.Context())
	})
}

func TestInvalid(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		p := w.open("run", "call")
		for _, d := range []Decision{{By: bob}, {Type: "maybe", By: bob}} {
			if _, err := w.ResolveByID(t.Context(), p.ID(), d); !errors.Is(err, ErrInvalid) {
				t.Errorf("%+v: %v", d, err)
			}
			if _, err := w.Resolve(t.Context(), p.a.Key, d); !errors.Is(err, ErrInvalid) {
				t.Errorf("%+v: %v", d, err)
			}
		}
		for _, change := range []func(*Request){
			func(q *Request) { q.Run = "" }, func(q *Request) { q.Call = "" },
			func(q *Request) { q.Approvers = []string{} }, func(q *Request) { q.Approvers = []string{"@bob"} },
		} {
			q := request("run", "other")
			change(&q)
			if _, err := w.Open(t.Context(), q); !errors.Is(err, ErrInvalid) {
				t.Errorf("%+v: %v", q, err)
			}
		}
		if n := len(w.Pending("")); n != 1 {
			t.Errorf("%d are pending", n)
		}
		w.abort(p)
		w.empty()
	})
}

func TestReasonIsKeptWithinBounds(t *testing.T) {
	long := ""
	for range 2001 {
		long += "ä"
	}
	d, err := Decision{Type: ledger.Denied, Reason: "\xff " + long}.checked()
	if err != nil {
		t.Fatal(err)
	}
	if r := []rune(d.Reason); len(r) != 2004 || r[0] != '\uFFFD' || string(r[2000:]) != " […]" {
		t.Errorf("%d runes, ending in %q", len(r), string(r[len(r)-6:]))
	}
}
