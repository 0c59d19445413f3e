package ledgertest

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"approvalbot/internal/ledger"
)

func open(t *testing.T, dir string) *ledger.Ledger {
	t.Helper()
	l, err := ledger.Open(t.Context(), dir, ledger.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l
}

func TestLock(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		l := open(t, dir)
		release := Lock(t, dir)
		stop := ledger.Event{Run: "r", Actor: ledger.System, Body: &ledger.RunStopRequested{Reason: "enough"}}
		begin := time.Now()
		if _, err := l.Append(t.Context(), stop); !errors.Is(err, ledger.ErrNotRecorded) {
			t.Error("append to a locked journal:", err)
		}
		if waited := time.Since(begin); waited > 100*time.Millisecond {
			t.Error("the append waited for", waited)
		}
		if l.Health() == nil {
			t.Error("a locked journal is healthy")
		}
		writable := make(chan error)
		go func() { writable <- l.WaitWritable(t.Context()) }()
		time.Sleep(time.Minute)
		release()
		if err := <-writable; err != nil || l.Health() != nil {
			t.Error("after the release:", err, l.Health())
		}
		if got, err := l.Append(t.Context(), stop); err != nil || got[0].Seq != 1 {
			t.Error("append after the release:", got, err)
		}
	})
}

func TestPrefixIsTheJournalOfThatTime(t *testing.T) {
	src := t.TempDir()
	l := open(t, src)
	place := ledger.Place{Channel: "C1"}
	for _, e := range []ledger.Event{
		{Actor: ledger.System, Body: &ledger.MessageReceived{Origin: ledger.Origin{Kind: "slack", TS: "1"}, Disposition: ledger.Starts}},
		{Actor: ledger.System, Run: "r", Body: &ledger.RunStarted{Message: 1, Place: place}},
		{Actor: ledger.System, Run: "r", Body: &ledger.RunFinished{Status: ledger.RunFailed}},
		{Actor: ledger.System, Run: "r", Body: &ledger.MessageSettled{Thing: ledger.Thing{Kind: "answer", ID: "r"}, RunDone: true}},
	} {
		if _, err := l.Append(t.Context(), e); err != nil {
			t.Fatal(err)
		}
	}
	l.Close()
	for n, want := range []struct{ messages, unfinished, unsettled int }{{0, 0, 0}, {1, 0, 0}, {0, 1, 1}, {0, 0, 1}, {0, 0, 0}} {
		dir := filepath.Join(t.TempDir(), "cut")
		Prefix(t, src, dir, int64(n))
		if lines := strings.Count(Dump(t, dir), "\n"); lines != n {
			t.Errorf("%d lines after row %d", lines, n)
		}
		l := open(t, dir)
		report, err := l.Verify(t.Context(), ledger.VerifyOptions{})
		if err != nil || !report.OK() || report.Rows != int64(n) {
			t.Errorf("verify after row %d: %+v, %v, %v", n, report, report.Problem, err)
		}
		messages, _ := l.WaitingMessages(t.Context())
		unfinished, _ := l.UnfinishedRuns(t.Context())
		unsettled, _ := l.UnsettledRuns(t.Context())
		if len(messages) != want.messages || len(unfinished) != want.unfinished || len(unsettled) != want.unsettled {
			t.Errorf("after row %d: %d messages, unfinished %v, unsettled %v", n, len(messages), unfinished, unsettled)
		}
		l.Close()
	}
}

// A journal that fails from a row on: everything before it is written, the rest after it was mended. Whoever tries again
// and again, as often as a probe works, tries less and less often.
func TestFailFrom(t *testing.T) {
	for name, fail := range map[string]func(testing.TB, string, int64) func(){"all": FailFrom, "events": FailEvents} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			synctest.Test(t, func(t *testing.T) {
				l := open(t, dir)
				mend := fail(t, dir, 2)
				stop := ledger.Event{Run: "r", Actor: ledger.System, Body: &ledger.RunStopRequested{Reason: "enough"}}
				if _, err := l.Append(t.Context(), stop); err != nil {
					t.Error("before the row that fails:", err)
				}
				tries := 0
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				for ; ctx.Err() == nil; tries++ {
					if _, err := l.Append(t.Context(), stop); !errors.Is(err, ledger.ErrNotRecorded) {
						t.Fatal("the row that fails:", err)
					}
					_ = l.WaitWritable(ctx)
				}
				if tries > 60 {
					t.Errorf("an append was tried %d times in a minute", tries)
				}
				mend()
				if err := l.WaitWritable(t.Context()); err != nil {
					t.Error(err)
				}
				if got, err := l.Append(t.Context(), stop); err != nil || got[0].Seq != 2 {
					t.Error("after it was mended:", got, err)
				}
			})
		})
	}
}
