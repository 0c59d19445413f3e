package api

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"approvalbot/internal/approvals"
	"approvalbot/internal/ledger"
	"approvalbot/internal/policy"
	"approvalbot/internal/redact"
)

// nobody is a directory that knows nobody.
type nobody struct{ approvals.Directory }

// idle is an agent of whom only withdrawals are asked.
type idle struct {
	Agent
	withdrawn *[]string
}

func (a idle) Withdraw(_ context.Context, message ledger.Event, reason string) error {
	*a.withdrawn = append(*a.withdrawn, message.Body.(*ledger.MessageReceived).RunID+": "+reason)
	return nil
}

// serve makes a server over a journal, with its hub running.
func serve(t testing.TB, dir string) (*Server, *ledger.Ledger) {
	t.Helper()
	log := slog.New(slog.DiscardHandler)
	j, err := ledger.Open(t.Context(), dir, ledger.Options{Logger: log})
	if err != nil {
		t.Fatal(err)
	}
	anyone, err := approvals.ParseApprovers([]string{"requester"})
	if err != nil {
		t.Fatal(err)
	}
	s, err := New(Config{
		Tokens: []Token{DefaultToken(longToken)}, Journal: j, Approvals: approvals.New(j, nobody{}, approvals.Settings{Approvers: anyone}, log), Agent: idle{withdrawn: new([]string)},
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

// The last caller's disconnect ends a run; that a reader is slow, that the server ends, or that others wait doesn't.
func TestCallersLeave(t *testing.T) {
	s, _ := serve(t, t.TempDir())
	message := func(m ledger.MessageReceived) ledger.Event {
		m.RunID = "r"
		return ledger.Event{Seq: 1, Body: &m}
	}
	for _, c := range []struct {
		name string
		m    ledger.MessageReceived
		left []error // how following ended, one caller after the other
		want []string
	}{
		{"gone", ledger.MessageReceived{}, []error{errGone}, []string{"r: its caller disconnected"}},
		{"at the end", ledger.MessageReceived{}, []error{nil}, nil},
		{"slow", ledger.MessageReceived{}, []error{errSlow}, nil},
		{"the server ends", ledger.MessageReceived{}, []error{errEnded}, nil},
		{"detached", ledger.MessageReceived{Detach: true}, []error{errGone}, nil},
		{"in Slack, too", ledger.MessageReceived{Place: ledger.Place{Channel: "C1"}}, []error{errGone}, nil},
		{"one of two", ledger.MessageReceived{}, []error{errGone, nil}, nil},
		{"both", ledger.MessageReceived{}, []error{errGone, errGone}, []string{"r: its caller disconnected"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			var got []string
			s.Agent = idle{withdrawn: &got}
			var callers []*caller
			for range c.left {
				callers = append(callers, s.expect(message(c.m)))
			}
			for i, why := range c.left {
				if !s.awaited("r") {
					t.Error("a caller that is there doesn't count")
				}
				callers[i].leave(t.Context(), why)
			}
			if d := cmp.Diff(c.want, got); d != "" {
				t.Errorf("-want +got:\n%s", d)
			}
			// Only who was dropped for being slow is expected back, and not for ever.
			slow := slices.ContainsFunc(c.left, func(why error) bool { return errors.Is(why, errSlow) })
			if s.awaited("r") != slow {
				t.Errorf("awaited: %v", s.awaited("r"))
			}
			if s.dropped["r"] = time.Now().Add(-returnWithin - time.Second); s.awaited("r") {
				t.Error("it is awaited for ever")
			}
		})
	}
}

// An ask that nobody follows is denied at once, unless its caller is about to follow or said that they would come back.
func TestUnfollowedAsk(t *testing.T) {
	for _, c := range []struct {
		name             string
		detach, awaited  bool
		want             ledger.Source
		reason           string
		atOnce, followed bool
	}{
		{name: "nobody", want: ledger.SourceUndeliverable, reason: "nobody follows this run over HTTP", atOnce: true},
		{name: "detached", detach: true, want: ledger.SourceUndeliverable, reason: "it could not be shown to anyone in time"},
		{name: "about to follow", awaited: true, want: ledger.SourceUndeliverable, reason: "it could not be shown to anyone in time"},
		{name: "followed", followed: true, want: ledger.SourceTimeout, reason: "nobody answered within 2 minutes"},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			synctest.Test(t, func(t *testing.T) {
				s, j := serve(t, dir)
				write(t, j, "r", &ledger.RunStarted{Detach: c.detach})
				if c.awaited {
					defer s.expect(ledger.Event{Body: &ledger.MessageReceived{RunID: "r"}}).left()
				}
				ctx, cancel := context.WithCancel(t.Context())
				var wg sync.WaitGroup
				defer wg.Wait()
				defer cancel()
				if c.followed {
					wg.Go(func() { _ = (&tail{Server: s, run: "r", sink: &kept{}}).follow(ctx) })
					synctest.Wait()
				}
				began := time.Now()
				p, err := s.Approvals.Open(t.Context(), approvals.Request{Key: approvals.Key{Run: "r", Call: "c"}, Tool: "shell", Arguments: "{}",
					Surfaces: []string{ledger.SurfaceHTTP}, Requesters: []ledger.Person{{ID: "token:ci"}}})
				if err != nil {
					t.Fatal(err)
				}
				res := p.Wait(t.Context())
				if res.Source != c.want || res.Reason != c.reason || (time.Since(began) < time.Second) != c.atOnce {
					t.Errorf("%s (%s) after %s", res.Source, res.Reason, time.Since(began))
				}
				s.notices.Wait()
			})
		})
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
