package approvals

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"runtime"
	"sync"
	"testing"
	"time"
	"unsafe"

	"github.com/google/uuid"

	"approvalbot/internal/ledger"
	"approvalbot/internal/ledger/ledgertest"
)

// crowd is a registry with n pending asks, each in a run of its own and with a goroutine that waits for it.
func crowd(b *testing.B, n int) (w *world, bytesEach float64) {
	w = newWorld(b, approvers(b, "UBOB"))
	ledgertest.Grow(b, w.journal)
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

// There may be ten thousand asks. The allocator has a class of 768 bytes, and the next one is 896.
func TestAskIsSmall(t *testing.T) {
	if n := unsafe.Sizeof(ask{}); n > 768 {
		t.Errorf("an ask takes %d bytes: keep what is only needed to open it out of it", n)
	}
}

func inUse() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc + m.StackInuse)
}

// BenchmarkTenThousandPending measures one ask among 10,000 and one among 10, in turns. The metrics are medians:
//
//	B/pending      memory for each pending ask, with the goroutine that waits for it
//	list-ratio     how many times longer it takes to list a run's asks
//	resolve-ratio  how many times longer it takes to resolve one
//	ns/listed      listing all 10,000, for each of them
func BenchmarkTenThousandPending(b *testing.B) {
	few, _ := crowd(b, 10)
	many, bytesEach := crowd(b, 10_000)
	var fewTimes, manyTimes oneAsk
	for i := 0; b.Loop(); i++ {
		run := fmt.Sprint("extra-", i)
		fewTimes.measure(b, few, run)
		manyTimes.measure(b, many, run)
	}
	start := time.Now()
	all := len(many.Pending(""))
	b.ReportMetric(float64(time.Since(start).Nanoseconds())/float64(all), "ns/listed")
	b.ReportMetric(bytesEach, "B/pending")
	b.ReportMetric(manyTimes.list.Over(fewTimes.list), "list-ratio")
	b.ReportMetric(manyTimes.resolve.Over(fewTimes.resolve), "resolve-ratio")
	b.ReportMetric(manyTimes.resolve.Milliseconds(), "resolve-ms")
}

// oneAsk is what one ask takes.
type oneAsk struct{ list, resolve ledgertest.Times }

func (o *oneAsk) measure(b *testing.B, w *world, run string) {
	b.Helper()
	p, err := w.Open(b.Context(), request(run, "call"))
	if err != nil {
		b.Fatal(err)
	}
	const lists = 100 // one is too short for the clock
	start := time.Now()
	for range lists {
		if len(w.Pending(run)) != 1 {
			b.Fatal("not listed")
		}
	}
	o.list = append(o.list, time.Since(start)/lists)
	start = time.Now()
	if _, err := w.ResolveByID(b.Context(), p.ID(), approve(bob)); err != nil {
		b.Fatal(err)
	}
	o.resolve = append(o.resolve, time.Since(start))
	if res := p.Wait(b.Context()); res.Type != ledger.Approved {
		b.Fatalf("%+v", res)
	}
}

// BenchmarkApprovalInLongJournal measures, in turns, an approval from its opening to its end with a journal of 1,000
// events and with one of 100,000. growth is how many times longer it takes with the long one, in the median; mean-growth
// has the checkpoints in it, and whatever else the machine did.
func BenchmarkApprovalInLongJournal(b *testing.B) {
	short, long := newWorld(b, approvers(b, "UBOB")), newWorld(b, approvers(b, "UBOB"))
	fill(b, short, 1_000)
	fill(b, long, 100_000)
	var inShort, inLong ledgertest.Times
	for i := 0; b.Loop(); i++ {
		run := fmt.Sprint("extra-", i)
		inShort = append(inShort, approval(b, short, run))
		inLong = append(inLong, approval(b, long, run))
	}
	b.ReportMetric(inLong.Milliseconds(), "ms/approval")
	b.ReportMetric(inLong.Over(inShort), "growth")
	b.ReportMetric(float64(sum(inLong))/float64(sum(inShort)), "mean-growth")
}

// approval is one from its opening to its end.
func approval(b *testing.B, w *world, run string) time.Duration {
	b.Helper()
	start := time.Now()
	p, err := w.Open(b.Context(), request(run, "call"))
	if err != nil {
		b.Fatal(err)
	}
	if err := w.Shown(b.Context(), p.ID(), Showing{Surface: "slack", Channel: "CPRIVATE", TS: run}); err != nil {
		b.Fatal(err)
	}
	if _, err := w.ResolveByID(b.Context(), p.ID(), approve(bob)); err != nil {
		b.Fatal(err)
	}
	if res := p.Wait(b.Context()); res.Type != ledger.Approved {
		b.Fatalf("%+v", res)
	}
	return time.Since(start)
}

// fill writes a past of about n events into the journal: approvals of old, in runs of their own.
func fill(b *testing.B, w *world, n int) {
	b.Helper()
	ledgertest.Grow(b, w.journal)
	const each, batch = 4, 50
	for i := 0; i*each < n; i += batch {
		var events []ledger.Event
		for j := i; j < i+batch; j++ {
			events = append(events, past(fmt.Sprint("past-", j))...)
		}
		if _, err := w.journal.Append(b.Context(), events...); err != nil {
			b.Fatal(err)
		}
	}
}

// past is an approval that was decided long ago, with as much in it as one has.
func past(run string) []ledger.Event {
	a := newAsk(Key{run, "call"}, uuid.NewString(), "session of "+run)
	q := request(run, "call")
	digest := sha256.Sum256([]byte(q.Arguments))
	return []ledger.Event{
		a.event(ledger.System, &ledger.ApprovalRequested{
			Approval: a.id, Tool: q.Tool, ToolHash: q.ToolHash, Arguments: q.Arguments, Digest: hex.EncodeToString(digest[:]),
			Preview: q.Preview, Reason: q.Reason, Place: q.Place, Requesters: q.Requesters, Approvers: []string{"UBOB"}, Quorum: 1, Surfaces: q.Surfaces,
			PolicyHash: q.PolicyHash, Cwd: q.Cwd,
		}),
		a.event(ledger.System, &ledger.ApprovalShown{Approval: a.id, Surface: "slack", Channel: "CPRIVATE", TS: run}),
		a.event(bob, &ledger.ApprovalVoted{Approval: a.id, Type: ledger.Approved}),
		a.event(bob, &ledger.ApprovalResolved{Approval: a.id, Type: ledger.Approved, Source: ledger.SourceUser, By: &bob}),
	}
}

func sum(times ledgertest.Times) (total time.Duration) {
	for _, t := range times {
		total += t
	}
	return total
}
