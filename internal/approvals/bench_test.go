package approvals

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"testing"
	"time"

	"approvalbot/internal/ledger"
)

// crowd is a registry with n pending asks, each in a run of its own and with a goroutine that waits for it.
func crowd(b *testing.B, n int) (w *world, bytesEach float64) {
	w = newWorld(b, approvers(b, "UBOB"))
	ctx, stop := context.WithCancel(context.Background())
	var waiters sync.WaitGroup
	b.Cleanup(func() { stop(); waiters.Wait() })
	before := inUse()
	var openers sync.WaitGroup
	for i := range 64 {
		openers.Go(func() {
			for j := i; j < n; j += 64 {
				p, err := w.Open(ctx, request(fmt.Sprint("run-", j), "call"))
				if err == nil {
					err = w.Shown(ctx, p.ID(), Showing{Surface: "slack", Channel: "C", TS: fmt.Sprint(j), Until: time.Now().Add(time.Hour)})
				}
				if err != nil {
					b.Error(err)
					return
				}
				waiters.Go(func() { p.Wait(ctx) })
			}
		})
	}
	openers.Wait()
	return w, float64(inUse()-before) / float64(n)
}

func inUse() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc + m.StackInuse)
}

// One ask among 10,000 must cost what it costs among 10: the metrics are bytes for each pending ask with its waiter, and
// how many times longer listing a run's asks and resolving one take.
func BenchmarkTenThousandPending(b *testing.B) {
	few, _ := crowd(b, 10)
	many, bytesEach := crowd(b, 10_000)
	times := map[string]time.Duration{}
	measure := func(what string, f func()) {
		start := time.Now()
		f()
		times[what] += time.Since(start)
	}
	for i := 0; b.Loop(); i++ {
		for name, w := range map[string]*world{"few": few, "many": many} {
			p, err := w.Open(b.Context(), request(fmt.Sprint("extra-", i), "call"))
			if err != nil {
				b.Fatal(err)
			}
			measure("list "+name, func() {
				if len(w.Pending(p.a.Run)) != 1 {
					b.Error("not listed")
				}
			})
			measure("resolve "+name, func() {
				if _, err := w.ResolveByID(b.Context(), p.ID(), approve(bob)); err != nil {
					b.Error(err)
				}
			})
			if res := p.Wait(b.Context()); res.Type != ledger.Approved {
				b.Errorf("%+v", res)
			}
		}
	}
	start := time.Now()
	all := len(many.Pending(""))
	b.ReportMetric(float64(time.Since(start).Nanoseconds())/float64(all), "ns/listed")
	b.ReportMetric(bytesEach, "B/pending")
	b.ReportMetric(float64(times["list many"])/float64(times["list few"]), "list-ratio")
	b.ReportMetric(float64(times["resolve many"])/float64(times["resolve few"]), "resolve-ratio")
	b.ReportMetric(float64(times["resolve many"].Microseconds())/float64(b.N), "µs/resolve")
}
