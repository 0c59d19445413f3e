package ledger

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
)

// mustOpen opens a journal that is closed when the test ends.
func mustOpen(t testing.TB, dir string) *Ledger {
	t.Helper()
	l, err := Open(t.Context(), dir, Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
	return l
}

func mustAppend(t testing.TB, l *Ledger, events ...Event) []Event {
	t.Helper()
	got, err := l.Append(t.Context(), events...)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// all reads what a filter gives.
func all(t testing.TB, r *Reader, after int64, f Filter) []Event {
	t.Helper()
	var events []Event
	for e, err := range r.Read(t.Context(), after, f) {
		if err != nil {
			t.Fatal(err)
		}
		events = append(events, e)
	}
	return events
}

func note(run, reason string) Event {
	return Event{Session: "s-" + run, Run: run, Actor: System, Body: &RunStopRequested{Reason: reason}}
}

// once is an event that can happen once for a key.
func once(key, by string) Event {
	return Event{Run: key, Actor: System, Body: &RunFinished{Status: RunFailed, Reason: by}}
}

func TestWhatWasAppendedIsRead(t *testing.T) {
	dir := t.TempDir()
	l := mustOpen(t, dir)
	wrote := mustAppend(t, l, note("a", "one"), note("b", "two <&>"))
	wrote = append(wrote, mustAppend(t, l, note("a", "three"))...)
	if diff := cmp.Diff(wrote, all(t, l.Reader, 0, Filter{})); diff != "" {
		t.Error(diff)
	}
	for i, e := range wrote {
		if e.Seq != int64(i+1) {
			t.Errorf("event %d has seq %d", i, e.Seq)
		}
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	l = mustOpen(t, dir)
	if diff := cmp.Diff(wrote, all(t, l.Reader, 0, Filter{})); diff != "" {
		t.Error("after it was opened again:", diff)
	}
	more := mustAppend(t, l, note("a", "four"))
	if more[0].Seq != 4 {
		t.Error("seq after it was opened again:", more[0].Seq)
	}
}

func TestOneOfManyWins(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		l := mustOpen(t, dir)
		var mu sync.Mutex
		var won []Event
		var lost []*ConflictError
		var wg sync.WaitGroup
		for i := range 50 {
			wg.Go(func() {
				got, err := l.Append(t.Context(), note("n", fmt.Sprint(i)), once("ap", fmt.Sprint(i)))
				mu.Lock()
				defer mu.Unlock()
				if conflict, ok := errors.AsType[*ConflictError](err); ok {
					lost = append(lost, conflict)
				} else if err == nil {
					won = append(won, got[1])
				} else {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if len(won) != 1 || len(lost) != 49 {
			t.Fatalf("%d won, %d lost", len(won), len(lost))
		}
		for _, c := range lost {
			if diff := cmp.Diff(won[0], c.Winner); diff != "" || c.Claim != ClaimRunEnd("ap") {
				t.Fatal(c, diff)
			}
		}
		if events := all(t, l.Reader, 0, Filter{}); len(events) != 2 {
			t.Error("what lost left something behind:", events)
		}
	})
}

func TestFollow(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		l := mustOpen(t, dir)
		const writers, each = 8, 40
		var wg sync.WaitGroup
		for range 3 {
			wg.Go(func() {
				var n int64
				for e, err := range l.Follow(t.Context(), 0) {
					if err != nil {
						t.Error(err)
						return
					}
					if n++; e.Seq != n {
						t.Errorf("row %d came where %d was due", e.Seq, n)
						return
					}
					if n == writers*each {
						return
					}
				}
			})
		}
		for w := range writers {
			wg.Go(func() {
				for i := range each {
					mustAppend(t, l, note(fmt.Sprint(w), fmt.Sprint(i)))
				}
			})
		}
		wg.Wait()
	})
}

func TestFollowEnds(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		l := mustOpen(t, dir)
		ctx, cancel := context.WithCancel(t.Context())
		got := make(chan error, 2)
		follow := func(ctx context.Context) {
			for _, err := range l.Follow(ctx, 0) {
				got <- err
			}
		}
		go follow(ctx)
		synctest.Wait()
		cancel()
		if err := <-got; !errors.Is(err, context.Canceled) {
			t.Error("canceled:", err)
		}
		go follow(t.Context())
		synctest.Wait()
		l.Close()
		if err := <-got; !errors.Is(err, ErrClosed) {
			t.Error("closed:", err)
		}
	})
}

// TestPages reads more than a page holds, by rows and by bytes, and stops in the middle of one.
func TestPages(t *testing.T) {
	l := mustOpen(t, t.TempDir())
	var wrote []Event
	for i := range 2*pageRows + 1 {
		e := note("a", fmt.Sprint(i))
		if i == 50 || i == 51 {
			e = note("a", strings.Repeat("x", pageBytes/2))
		}
		wrote = append(wrote, e)
	}
	wrote = mustAppend(t, l, wrote...)
	if diff := cmp.Diff(wrote, all(t, l.Reader, 0, Filter{Run: "a"})); diff != "" {
		t.Error(diff)
	}
	n := 0
	for e, err := range l.Follow(t.Context(), 0) {
		if n++; err != nil || e.Seq != int64(n) {
			t.Fatal(e.Seq, n, err)
		}
		if n == len(wrote) {
			break
		}
	}
	for e := range l.Read(t.Context(), 10, Filter{}) {
		if e.Seq != 11 {
			t.Error(e.Seq)
		}
		break
	}
}

// TestAQueuedAppendCanBeWithdrawn: the context of an append counts until the writer has it.
func TestAQueuedAppendCanBeWithdrawn(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		begun, goOn := make(chan bool), make(chan bool)
		f := &faults{before: func(_ driver.Conn, query string) error {
			if query == `BEGIN IMMEDIATE` {
				begun <- true
				<-goOn
			}
			return nil
		}}
		l := openFaulty(t, dir, f)
		ctx, cancel := context.WithCancel(t.Context())
		answers := make(chan error, 2)
		go func() { _, err := l.Append(ctx, note("a", "begun")); answers <- err }()
		<-begun
		go func() { _, err := l.Append(ctx, note("a", "queued")); answers <- err }()
		synctest.Wait()
		cancel()
		if err := <-answers; !errors.Is(err, context.Canceled) || !errors.Is(err, ErrNotRecorded) {
			t.Error("queued:", err)
		}
		goOn <- true
		if err := <-answers; err != nil {
			t.Error("begun:", err)
		}
		if events := all(t, l.Reader, 0, Filter{}); len(events) != 1 {
			t.Error(events)
		}
		l.Close()
		if _, err := l.Append(t.Context(), note("a", "late")); !errors.Is(err, ErrClosed) || !errors.Is(err, ErrNotRecorded) {
			t.Error("after close:", err)
		}
		if err := l.WaitWritable(t.Context()); err != nil && !errors.Is(err, ErrClosed) {
			t.Error(err)
		}
	})
}
