package api

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"testing"
	"time"

	"approvalbot/internal/ledger"
)

// From the commit of an event to the last of 1,000 followers of its run having it. The bare commit is beside it: what it
// takes with one.
func BenchmarkFollowers(b *testing.B) {
	for _, n := range []int{1, 1000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			s, j := serve(b, b.TempDir())
			write(b, j, "r", &ledger.RunStarted{Model: "demo"})
			var ready, all sync.WaitGroup
			var got sync.WaitGroup
			ready.Add(n)
			for range n {
				all.Go(func() {
					first := true
					k := &kept{each: func(int64) error {
						if first {
							first = false
							ready.Done()
							return nil
						}
						got.Done()
						return nil
					}}
					if err := (&tail{Server: s, run: "r", sink: k}).follow(context.Background()); err != nil {
						b.Error(err)
					}
				})
			}
			ready.Wait()
			for len(s.hub.all("r")) < n {
				time.Sleep(time.Millisecond) // reading is done; the last ones are joining
			}
			var spread time.Duration
			for b.Loop() {
				got.Add(n)
				if write(b, j, "r", &ledger.ModelCompleted{Round: 1, Text: "some words of a model, as they are"}) == 0 {
					b.FailNow()
				}
				committed := time.Now()
				got.Wait()
				spread += time.Since(committed)
			}
			b.ReportMetric(float64(spread.Microseconds())/float64(b.N), "µs/commit-to-last")
			got.Add(n)
			write(b, j, "r", &ledger.RunFinished{Status: ledger.RunSucceeded})
			all.Wait()
		})
	}
}

// A run is followed from event 0, in a journal in which it is a small part, and one in which it is everything.
func BenchmarkResume(b *testing.B) {
	for _, c := range []struct{ mine, others int }{{100, 0}, {100, 100_000}, {100_000, 0}} {
		b.Run(fmt.Sprintf("%d of %d", c.mine, c.mine+c.others), func(b *testing.B) {
			s, j := serve(b, b.TempDir())
			fill(b, j, "other", c.others)
			write(b, j, "r", &ledger.RunStarted{Model: "demo"})
			fill(b, j, "r", c.mine)
			write(b, j, "r", &ledger.RunFinished{Status: ledger.RunSucceeded})
			for head, _ := j.Head(b.Context()); s.hub.position() < head.Seq; {
				time.Sleep(time.Millisecond) // the hub catches up
			}
			b.ReportAllocs()
			for b.Loop() {
				k := &kept{}
				if err := (&tail{Server: s, run: "r", sink: k}).follow(context.Background()); err != nil || k.ends != 1 {
					b.Fatalf("%d events, %d ends: %v", len(k.seqs), k.ends, err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(c.mine), "ns/event")
		})
	}
}

func fill(b *testing.B, j *ledger.Ledger, run string, n int) {
	b.Helper()
	for n > 0 {
		var events []ledger.Event
		for range min(n, 1000) {
			events = append(events, ledger.Event{Session: "http/" + run, Run: run, Actor: ledger.System,
				Body: &ledger.ModelCompleted{Round: 1, Text: "some words of a model, as they are", Raw: json.RawMessage(`{}`)}})
		}
		if _, err := j.Append(context.Background(), events...); err != nil {
			b.Fatal(err)
		}
		n -= len(events)
	}
}

// all are the followers of a run.
func (h *hub) all(run string) map[*follower]bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	out := map[*follower]bool{}
	for f := range h.followers[run] {
		out[f] = true
	}
	return out
}
