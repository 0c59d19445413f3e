package agent

import (
	"context"
	"fmt"
	"iter"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"approvalbot/internal/ledger"
	"approvalbot/internal/model"
)

// A journal in which a compacted session was pruned in part verifies, and the session goes on.
func TestPruneOfACompactedSession(t *testing.T) {
	for _, erased := range []int{1, 2, 3, 4} {
		t.Run(fmt.Sprint(erased, " of 4 runs"), func(t *testing.T) {
			dir := t.TempDir()
			m := func() model.Model {
				return worker(3, "act", uncounted, func(model.Request) (model.Response, error) { return model.Response{Text: "SUMMARY"}, nil })
			}
			change := func(c *Config) { c.ContextTokens = 900 }
			var before time.Time
			work := func(t *testing.T, s *stand) {
				s.say(alice, "a long job "+strings.Repeat("word ", 80))
				for n := 1; n <= 3; n++ {
					s.decide(fmt.Sprintf("c%d", n), bob, ledger.Approved, "")
				}
				time.Sleep(time.Hour)
			}
			synctest.Test(t, func(t *testing.T) {
				s := openWith(t, dir, m(), change)
				for i := range 4 {
					work(t, s)
					if i+1 == erased {
						before = time.Now()
					}
				}
				compacted := 0
				for _, run := range s.runs() {
					compacted += len(run.Compacted)
					if _, err := s.journal.Append(t.Context(), ledger.Event{Session: "s1", Run: run.ID, Body: &ledger.MessageSettled{RunDone: true, Thing: ledger.Thing{Kind: "progress", ID: run.ID}, Channel: channel, TS: "1.1"}}); err != nil {
						t.Fatal(err)
					}
				}
				if compacted < 2 {
					t.Fatalf("%d compactions", compacted)
				}
				s.stop()
				p, err := ledger.Prune(context.Background(), dir, ledger.PruneOptions{
					Before: before, By: ledger.Actor{Kind: ledger.ActorOperator, ID: "op"}, Verify: ledger.VerifyOptions{Check: (&Recheck{}).Event},
				})
				if err != nil || p.Runs != int64(erased) {
					t.Fatalf("%+v %v", p, err)
				}
				s = openWith(t, dir, m(), change)
				work(t, s)
				for _, c := range []*Recheck{{}, {Read: func(session string, until int64) iter.Seq2[ledger.Event, error] {
					return s.journal.Read(context.Background(), 0, ledger.Filter{Session: session, Until: until})
				}}} {
					report, err := s.journal.Verify(context.Background(), ledger.VerifyOptions{Check: c.Event})
					if err != nil || !report.OK() || c.Requests == 0 {
						t.Errorf("%v %+v, %d requests computed again, %d not", err, report.Problem, c.Requests, c.Erased)
					}
				}
				pairedIn(t, s.transcript().Request())
				s.stop()
			})
		})
	}
}

// A summary of another version, or one that doesn't follow from the journal.
func TestRecheckOfSummaries(t *testing.T) {
	m := worker(6, "act", uncounted, func(model.Request) (model.Response, error) { return model.Response{Text: "SUMMARY"}, nil })
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		s := openWith(t, dir, m, func(c *Config) { c.ContextTokens = 900 })
		s.say(alice, "go")
		for n := 1; n <= 6; n++ {
			s.decide(fmt.Sprintf("c%d", n), bob, ledger.Approved, "")
		}
		for name, c := range map[string]struct {
			change func(b *ledger.SessionCompacted)
			wrong  bool
			erased int64
		}{
			"as it is":        {func(*ledger.SessionCompacted) {}, false, 0},
			"another request": {func(b *ledger.SessionCompacted) { b.RequestHash = strings.Repeat("0", 64) }, true, 0},
			"another part":    {func(b *ledger.SessionCompacted) { b.Until = 1 }, true, 0},
			"another version": {func(b *ledger.SessionCompacted) { b.Version, b.RequestHash = 99, strings.Repeat("0", 64) }, false, 1},
			"another text":    {func(b *ledger.SessionCompacted) { b.Text = "all was approved" }, true, 0},
		} {
			check, changed := &Recheck{}, false
			var err error
			for e, readErr := range s.journal.Read(t.Context(), 0, ledger.Filter{}) {
				if readErr != nil {
					t.Fatal(readErr)
				}
				if b, ok := e.Body.(*ledger.SessionCompacted); ok && !changed {
					other := *b
					c.change(&other)
					e.Body, changed = &other, true
				}
				if err = check.Event(e); err != nil {
					break
				}
			}
			if !changed || (err != nil) != c.wrong || check.Erased != c.erased {
				t.Errorf("%s: %v, %d not computed", name, err, check.Erased)
			}
		}
		s.stop()
	})
}
