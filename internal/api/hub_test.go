package api

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"approvalbot/internal/approvals"
	"approvalbot/internal/ledger"
	"approvalbot/internal/policy"
	"approvalbot/internal/redact"
)

// nobody is a directory that knows nobody.
type nobody struct{ approvals.Directory }

// idle is an agent that nobody asks for anything.
type idle struct{ Agent }

// serve makes a server over a journal, with its hub running.
func serve(t testing.TB, dir string) (*Server, *ledger.Ledger) {
	t.Helper()
	log := slog.New(slog.DiscardHandler)
	j, err := ledger.Open(t.Context(), dir, ledger.Options{Logger: log})
	if err != nil {
		t.Fatal(err)
	}
	s, err := New(Config{
		Tokens: []Token{DefaultToken(longToken)}, Journal: j, Approvals: approvals.New(j, nobody{}, approvals.Settings{}, log), Agent: idle{},
		Model: "demo", Settings: policy.Settings{ApprovalPolicy: policy.OnRequest, SandboxMode: policy.WorkspaceWrite}, Redactor: redact.New(), Logger: log,
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.hub.start(t.Context()); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() { s.hub.run(ctx) })
	t.Cleanup(func() {
		cancel()
		wg.Wait()
		if err := j.Close(); err != nil {
			t.Error(err)
		}
	})
	return s, j
}

// kept is a sink that keeps what it is told.
type kept struct {
	each func(seq int64) error // may be nil
	seqs []int64
	ends int
}

func (k *kept) put(m message, frame []byte) error {
	var seq int64
	if _, err := fmt.Sscanf(string(frame), "id: %d\n", &seq); err == nil {
		k.seqs = append(k.seqs, seq)
	}
	if m.ends() {
		k.ends++
	}
	if k.each != nil {
		return k.each(seq)
	}
	return nil
}
func (k *kept) flush() error { return nil }
func (k *kept) beat() error  { return nil }

func write(t testing.TB, j *ledger.Ledger, run string, b ledger.Body) int64 {
	t.Helper()
	e, err := j.Append(context.Background(), ledger.Event{Session: "http/" + run, Run: run, Actor: ledger.System, Body: b})
	if err != nil {
		t.Error(err)
		return 0
	}
	return e[0].Seq
}

// While two runs go on, followers come, are cut, and come again with the last id that they saw: each of them sees every
// event of its run once and in order.
func TestFollowersMissNothing(t *testing.T) {
	s, j := serve(t, t.TempDir())
	const events, followers = 400, 12
	var want []int64
	var wg sync.WaitGroup
	got := make([][]int64, followers)
	for i := range followers {
		wg.Go(func() {
			after, fresh := int64(0), true
			for {
				n := 0
				k := &kept{each: func(int64) error {
					if n++; n == 10+7*i {
						return errGone
					}
					return nil
				}}
				err := (&tail{Server: s, run: "r", after: after, fresh: fresh, sink: k}).follow(context.Background())
				got[i] = append(got[i], k.seqs...)
				if err == nil {
					return
				}
				if !errors.Is(err, errGone) && !errors.Is(err, errSlow) {
					t.Errorf("follower %d: %v", i, err)
					return
				}
				after, fresh = got[i][len(got[i])-1], false
			}
		})
	}
	wg.Go(func() {
		want = append(want, write(t, j, "r", &ledger.RunStarted{Model: "demo"}))
		for i := range events {
			write(t, j, "other", &ledger.RunStopRequested{Reason: "noise"})
			want = append(want, write(t, j, "r", &ledger.RunStopRequested{Reason: fmt.Sprint(i)}))
		}
		want = append(want, write(t, j, "r", &ledger.RunFinished{Status: ledger.RunSucceeded}))
	})
	wg.Wait()
	for i := range got {
		if d := cmp.Diff(want, got[i]); d != "" {
			t.Errorf("follower %d (-want +got):\n%s", i, d)
		}
	}
	if len(s.hub.followers) != 0 {
		t.Errorf("%d runs are still followed", len(s.hub.followers))
	}
}

// A follower that takes nothing is dropped when its room is full; the others go on.
func TestSlowFollowerDropped(t *testing.T) {
	s, j := serve(t, t.TempDir())
	slow, _ := s.hub.follow("r")
	k := &kept{}
	done := make(chan error, 1)
	go func() { done <- (&tail{Server: s, run: "r", sink: k}).follow(context.Background()) }()
	for range queued + 1 {
		write(t, j, "r", &ledger.RunStopRequested{})
	}
	write(t, j, "r", &ledger.RunFinished{Status: ledger.RunSucceeded})
	select {
	case <-slow.lost:
	case <-time.After(30 * time.Second):
		t.Fatal("it was not dropped")
	}
	if err := <-done; err != nil || len(k.seqs) != queued+2 || k.ends != 1 {
		t.Errorf("the other one got %d events, %d ends: %v", len(k.seqs), k.ends, err)
	}
}

// When the journal is closed everybody is told, and nobody new waits for ever.
func TestHubEnds(t *testing.T) {
	s, j := serve(t, t.TempDir())
	f, _ := s.hub.follow("r")
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	<-f.lost
	if g, _ := s.hub.follow("r"); g != nil {
		<-g.lost
	}
}
