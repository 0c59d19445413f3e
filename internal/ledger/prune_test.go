package ledger

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"approvalbot/internal/rapidtest"
)

var operator = Actor{Kind: ActorOperator, ID: "root", Name: "ann"}

// later is after everything that a test has written.
func later() time.Time { return time.Now().Add(time.Hour) }

func prune(t testing.TB, dir string, before time.Time) Pruning {
	t.Helper()
	p, err := Prune(t.Context(), dir, PruneOptions{Before: before, By: operator, Reason: "the law"})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func isErased(e Event) bool { _, ok := e.Body.(*Erased); return ok }

// The run that has ended loses its bodies; the one that goes on and what belongs to it keep theirs.
func TestPrune(t *testing.T) {
	dir := t.TempDir()
	head := told(t, dir)
	p := prune(t, dir, later())
	if p.Runs != 1 || p.Bodies != 12 || p.Bytes == 0 || p.Unsettled != 0 || p.Event.Seq != head.Seq+1 {
		t.Errorf("%+v", p)
	}
	report := verify(t, dir, VerifyOptions{Head: &head})
	if !report.OK() || report.Erased != 12 || report.OpenRuns != 1 {
		t.Errorf("%+v %v", report, report.Problem)
	}
	l := mustOpen(t, dir)
	for _, e := range all(t, l.Reader, 0, Filter{}) {
		want := e.Run == "r1" || e.Seq == 1
		if got := isErased(e); got != want {
			t.Errorf("row %d (%s): erased is %v, want %v", e.Seq, e.Kind(), got, want)
		}
	}
	last, _, err := l.Event(t.Context(), p.Event.Seq)
	if err != nil {
		t.Fatal(err)
	}
	b := last.Body.(*Pruned)
	if last.Actor != operator || b.Reason != "the law" || b.Runs != 1 || b.Bodies != 12 || b.Total != 12 {
		t.Errorf("recorded as %+v by %+v", b, last.Actor)
	}
	run, ok, err := l.LoadRun(t.Context(), "r1")
	if err != nil || !ok || run.Status() != RunErased || run.Erased != 11 || run.StartedAt.IsZero() || run.StartedBy.ID != "U1" || run.EndedAt.IsZero() {
		t.Errorf("%v %v %+v", ok, err, run)
	}
}

// What happened once can't happen again because its body is gone.
func TestPruneKeepsClaims(t *testing.T) {
	dir := t.TempDir()
	told(t, dir)
	prune(t, dir, later())
	l := mustOpen(t, dir)
	for i, e := range story()[:10] {
		if len(e.Body.Claims(e)) == 0 {
			continue
		}
		_, err := l.Append(t.Context(), e)
		if _, ok := errors.AsType[*ConflictError](err); !ok {
			t.Errorf("event %d (%s) could be appended again: %v", i+1, e.Kind(), err)
		}
	}
}

// Nothing of what was erased is left in the directory, and what stays is.
func TestPruneLeavesNoBytes(t *testing.T) {
	dir := t.TempDir()
	l := mustOpen(t, dir)
	for _, e := range story() {
		if f, ok := e.Body.(*ToolFinished); ok {
			f.Output = strings.Repeat("the-erased-output ", 5000)
		}
		mustAppend(t, l, e)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	prune(t, dir, later())
	files, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil {
		t.Fatal(err)
	}
	kept := false
	for _, f := range files {
		data, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		for _, gone := range []string{"the-erased-output", `{\"command\":\"x\"}`, "run `x`"} {
			if bytes.Contains(data, []byte(gone)) {
				t.Errorf("%s still holds %q", filepath.Base(f), gone)
			}
		}
		kept = kept || bytes.Contains(data, []byte(`"again"`))
	}
	if !kept {
		t.Error("the message of the run that goes on is gone")
	}
}

func TestPruneRefuses(t *testing.T) {
	none := filepath.Join(t.TempDir(), "none")
	if _, err := Prune(t.Context(), none, PruneOptions{Before: later()}); !errors.Is(err, ErrNoJournal) {
		t.Errorf("no journal: %v", err)
	}
	dir := t.TempDir()
	l := mustOpen(t, dir)
	if _, err := Prune(t.Context(), dir, PruneOptions{Before: later()}); !isInUse(err) {
		t.Errorf("in use: %v", err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	dir = t.TempDir()
	told(t, dir)
	tamper(t, dir, `UPDATE events SET call = 'c9' WHERE seq = 9`)
	_, err := Prune(t.Context(), dir, PruneOptions{Before: later()})
	if damaged, ok := errors.AsType[*DamagedError](err); !ok || damaged.Problem.Seq != 9 {
		t.Errorf("changed: %v", err)
	}
}

func isInUse(err error) bool { _, ok := errors.AsType[*InUseError](err); return ok }

// A run that Slack hasn't been told the end of stays, and so does one that hasn't ended.
func TestPruneKeepsWhatIsOpen(t *testing.T) {
	dir := t.TempDir()
	l := mustOpen(t, dir)
	for _, e := range story()[:12] { // up to the end of the run, not to the last message in Slack
		mustAppend(t, l, e)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if p := prune(t, dir, later()); p.Runs != 0 || p.Bodies != 0 || p.Unsettled != 1 || p.Event.Body != nil {
		t.Errorf("%+v", p)
	}
}

// Trying it out changes nothing and says the same as doing it; doing it twice is doing it once.
func TestPruneDryAndTwice(t *testing.T) {
	dir := t.TempDir()
	head := told(t, dir)
	dry, err := Prune(t.Context(), dir, PruneOptions{Before: later(), By: operator, DryRun: true})
	if err != nil {
		t.Fatal(err)
	}
	if report := verify(t, dir, VerifyOptions{}); report.Head != head || report.Erased != 0 {
		t.Errorf("a dry run changed the journal: %+v", report)
	}
	p := prune(t, dir, later())
	p.Event = Event{}
	if diff := cmp.Diff(dry, p); diff != "" {
		t.Errorf("a dry run says something else (-dry +done):\n%s", diff)
	}
	if p := prune(t, dir, later()); p.Bodies != 0 || p.Event.Body != nil {
		t.Errorf("twice: %+v", p)
	}
}

// A body that is gone without a pruning is found, also among those that were pruned.
func TestVerifyFindsErasingWithoutARecord(t *testing.T) {
	for name, c := range map[string]struct {
		prune     bool
		statement string
		row       int64
	}{
		"nothing was pruned":   {false, `UPDATE events SET body = NULL WHERE seq = 11`, 11},
		"one more":             {true, `UPDATE events SET body = NULL WHERE seq = 11`, 16},
		"after the pruning":    {true, `UPDATE events SET body = NULL WHERE seq = 16`, 1},
		"another than recored": {true, `UPDATE events SET body = CASE seq WHEN 11 THEN NULL ELSE x'7b7d' END WHERE seq IN (11, 13)`, 13},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			told(t, dir)
			if c.prune {
				prune(t, dir, later())
			}
			tamper(t, dir, c.statement)
			p := verify(t, dir, VerifyOptions{}).Problem
			if p == nil || p.Seq != c.row {
				t.Errorf("found %v, want row %d", p, c.row)
			}
		})
	}
}

// Whatever runs there are and whenever they are pruned, the journal verifies, and exactly what may be erased is.
func TestPruneAnything(t *testing.T) {
	rapidtest.Checks(t, 20)
	rapid.Check(t, func(rt *rapid.T) {
		dir, err := os.MkdirTemp(t.TempDir(), "")
		if err != nil {
			rt.Fatal(err)
		}
		m := &pruneModel{keep: map[int64]bool{}}
		m.write(rt, dir)
		for range rapid.IntRange(1, 2).Draw(rt, "prunings") {
			if _, err := Prune(t.Context(), dir, PruneOptions{Before: later(), By: operator}); err != nil {
				rt.Fatal(err)
			}
		}
		r, err := OpenReader(t.Context(), dir)
		if err != nil {
			rt.Fatal(err)
		}
		defer r.Close()
		if report, err := r.Verify(t.Context(), VerifyOptions{}); err != nil || !report.OK() {
			rt.Fatal(err, report.Problem)
		}
		for e, err := range r.Read(t.Context(), 0, Filter{}) {
			if err != nil {
				rt.Fatal(err)
			}
			if e.Kind() != "pruned" && isErased(e) == m.keep[e.Seq] {
				rt.Errorf("row %d (%s of run %q): erased is %v", e.Seq, e.Kind(), e.Run, isErased(e))
			}
		}
	})
}

// A pruneModel knows which rows have to be kept: those of runs that are open, and the messages that they build on.
type pruneModel struct{ keep map[int64]bool }

// write makes sessions of runs, the last of which may be open, with words beside them.
func (m *pruneModel) write(rt *rapid.T, dir string) {
	l, err := Open(rt.Context(), dir, Options{})
	if err != nil {
		rt.Fatal(err)
	}
	defer l.Close()
	add := func(keep bool, e Event) int64 {
		e.Actor = System
		got, err := l.Append(rt.Context(), e)
		if err != nil {
			rt.Fatal(err)
		}
		m.keep[got[0].Seq] = keep
		return got[0].Seq
	}
	for s := range rapid.IntRange(1, 3).Draw(rt, "sessions") {
		session, runs := fmt.Sprint("s", s), rapid.IntRange(0, 3).Draw(rt, "runs")
		open := rapid.Bool().Draw(rt, "open")
		for n := range runs {
			keep := open && n == runs-1
			say := func(d Disposition) int64 {
				return add(keep, Event{Session: session, Body: &MessageReceived{Origin: Origin{Kind: "http"}, Text: "words", Disposition: d}})
			}
			for range rapid.IntRange(0, 2).Draw(rt, "context") {
				say(Context)
			}
			run := fmt.Sprint(session, "-r", n)
			add(keep, Event{Session: session, Run: run, Body: &RunStarted{Message: say(Starts)}})
			if !keep {
				add(false, Event{Session: session, Run: run, Body: &RunFinished{Status: RunSucceeded, Answer: "words"}})
			}
		}
		if rapid.Bool().Draw(rt, "waiting") {
			add(true, Event{Session: session, Body: &MessageReceived{Origin: Origin{Kind: "http"}, Text: "words", Disposition: Starts}})
		}
		if rapid.Bool().Draw(rt, "unheard") {
			add(false, Event{Session: session, Body: &MessageReceived{Origin: Origin{Kind: "http"}, Text: "words", Disposition: Context}})
		}
	}
}
