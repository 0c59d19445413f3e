package ledger_test

import (
	"context"
	"strconv"
	"sync"
	"testing"
	"time"

	"approvalbot/internal/ledger"
	"approvalbot/internal/ledger/ledgertest"
)

// BenchmarkAppend measures, in turns, a bare commit, one writer who appends one event after the other, and 64 writers
// who share commits. An op is one turn. The metrics are medians of the turns:
//
//	bare-ms  a bare commit
//	one/bare an append of the one writer, in bare commits
//	x64      how many times the appends of one writer 64 writers get done
func BenchmarkAppend(b *testing.B) {
	j := openFor(b)
	bare := ledgertest.NewBare(b)
	a := &appender{TB: b, j: j}
	ledgertest.Grow(b, j)
	var bares, one, many, gain ledgertest.Times
	for b.Loop() {
		commit := each(50, func() {
			for range 50 {
				bare.Commit()
			}
		})
		single := each(50, func() { a.write(1, 50) })
		shared := each(64*16, func() { a.write(64, 16) })
		bares, one, many = append(bares, commit), append(one, single), append(many, shared)
		gain = append(gain, time.Duration(1e6*float64(single)/float64(shared)))
	}
	b.ReportMetric(bares.Milliseconds(), "bare-ms")
	b.ReportMetric(one.Over(bares), "one/bare")
	b.ReportMetric(float64(gain.Median())/1e6, "x64")
	b.ReportMetric(1/many.Median().Seconds(), "appends64/s")
}

// BenchmarkAppend1 is one writer, for profiles: all else is outside of the measurement.
func BenchmarkAppend1(b *testing.B) {
	a := &appender{TB: b, j: openFor(b)}
	for b.Loop() {
		a.write(1, 1)
	}
}

// BenchmarkAppend64 is 64 writers with 16 appends each.
func BenchmarkAppend64(b *testing.B) {
	a := &appender{TB: b, j: openFor(b)}
	for b.Loop() {
		a.write(64, 16)
	}
}

func openFor(b *testing.B) *ledger.Ledger {
	b.Helper()
	j, err := ledger.Open(context.Background(), b.TempDir(), ledger.Options{})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := j.Close(); err != nil {
			b.Error(err)
		}
	})
	return j
}

// each is what one of n things takes that f does.
func each(n int, f func()) time.Duration {
	start := time.Now()
	f()
	return time.Since(start) / time.Duration(n)
}

// An appender writes the events of a tool's start, each of another call.
type appender struct {
	testing.TB
	j     *ledger.Ledger
	calls int
}

// write appends events one by one in each of the writers, and waits for them.
func (a *appender) write(writers, events int) {
	var wg sync.WaitGroup
	for range writers {
		first := a.calls
		a.calls += events
		wg.Go(func() {
			for i := range events {
				e := ledger.Event{Session: "s", Run: "r", Call: strconv.Itoa(first + i), Actor: ledger.System,
					Body: &ledger.ToolStarted{Tool: "shell", Digest: "0123456789abcdef"}}
				if _, err := a.j.Append(context.Background(), e); err != nil {
					a.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
}
