package ledger

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"approvalbot/internal/rapidtest"
)

// A model is what the journal should be: a list, and who made which claim.
type model struct {
	events []Event
	claims map[Claim]int // index of the event
}

// append says which claim was taken before, if any.
func (m *model) append(events []Event) (taken *Claim) {
	for _, e := range events {
		for _, c := range e.Body.Claims(e) {
			if _, is := m.claims[c]; is {
				return &c
			}
		}
	}
	for _, e := range events {
		for _, c := range e.Body.Claims(e) {
			m.claims[c] = len(m.events)
		}
		m.events = append(m.events, e)
	}
	return nil
}

func (m *model) read(keep func(Event) bool) []Event {
	var got []Event
	for _, e := range m.events {
		if keep(e) {
			got = append(got, e)
		}
	}
	return got
}

// drawBody draws an event about few runs and calls, so that claims meet.
func drawEvent(t *rapid.T) Event {
	few := func(label string) string { return rapid.SampledFrom([]string{"1", "2", "3"}).Draw(t, label) }
	e := Event{Session: "s" + few("session"), Run: "r" + few("run"), Call: "c" + few("call"), Actor: Actor{Kind: ActorUser, Team: "T", ID: few("user")}}
	channel := rapid.SampledFrom([]string{"", "C1"}).Draw(t, "channel")
	e.Body = rapid.SampledFrom([]Body{
		&MessageReceived{Origin: Origin{Kind: "slack", TS: few("ts")}, Disposition: rapid.SampledFrom([]Disposition{Starts, Context}).Draw(t, "disposition"), Text: rapid.String().Draw(t, "text")},
		&MessageReceived{Origin: Origin{Kind: "http", Token: "t", Key: rapid.SampledFrom([]string{"", "k"}).Draw(t, "key")}, Disposition: Starts},
		&RunStarted{Message: rapid.Int64Range(0, 9).Draw(t, "message"), Place: Place{Channel: channel}},
		&RunFinished{Status: RunFailed},
		&RunStopRequested{Reason: rapid.String().Draw(t, "reason")},
		&ApprovalVoted{Approval: few("approval"), Type: Approved},
		&ApprovalResolved{Approval: few("approval"), Type: Denied},
		&ToolStarted{Digest: "d"},
		&ToolFinished{State: rapid.SampledFrom([]CallState{OutputDenied, OutputAvailable}).Draw(t, "state")},
		&MessageSettled{Thing: Thing{Kind: "answer", ID: few("thing")}, RunDone: rapid.Bool().Draw(t, "done")},
	}).Draw(t, "body")
	return e
}

var filledIn = cmpopts.IgnoreFields(Event{}, "Seq", "Time", "Hash")

func TestAppendAndReadProperty(t *testing.T) {
	rapidtest.Checks(t, 20)
	rapid.Check(t, func(rt *rapid.T) {
		dir := t.TempDir()
		l := mustOpen(t, dir)
		m := model{claims: map[Claim]int{}}
		for range rapid.IntRange(1, 15).Draw(rt, "appends") {
			events := rapid.SliceOfN(rapid.Custom(drawEvent), 1, 3).Draw(rt, "events")
			if repeats(events) {
				continue
			}
			got, err := l.Append(t.Context(), events...)
			taken := m.append(events)
			if conflict, ok := errors.AsType[*ConflictError](err); ok {
				if taken == nil || conflict.Claim != *taken || !cmp.Equal(m.events[m.claims[*taken]], conflict.Winner, filledIn) {
					rt.Fatalf("conflict %v, want %v", conflict, taken)
				}
			} else if err != nil || taken != nil {
				rt.Fatal(err, taken)
			} else if diff := cmp.Diff(events, got, filledIn); diff != "" {
				rt.Fatal(diff)
			}
			if rapid.IntRange(0, 9).Draw(rt, "reopen") == 0 {
				l.Close()
				l = mustOpen(t, dir)
			}
		}
		m.check(rt, t, l)
		l.Close()
	})
}

// repeats tells whether two of the events make the same claim; such an append is refused as a mistake.
func repeats(events []Event) bool {
	seen := map[Claim]bool{}
	for _, e := range events {
		for _, c := range e.Body.Claims(e) {
			if seen[c] {
				return true
			}
			seen[c] = true
		}
	}
	return false
}

// check compares every way to read with the model.
func (m *model) check(rt *rapid.T, t *testing.T, l *Ledger) {
	equal := func(what string, want, got []Event) {
		if diff := cmp.Diff(want, got, filledIn, cmpopts.EquateEmpty()); diff != "" {
			rt.Fatal(what, diff)
		}
	}
	stored := all(t, l.Reader, 0, Filter{})
	equal("all", m.events, stored)
	for i, e := range stored {
		if e.Seq != int64(i+1) || i > 0 && e.Time.Before(stored[i-1].Time) {
			rt.Fatalf("row %d: seq %d at %v", i+1, e.Seq, e.Time)
		}
	}
	equal("run", m.read(func(e Event) bool { return e.Run == "r1" }), all(t, l.Reader, 0, Filter{Run: "r1"}))
	equal("session", m.read(func(e Event) bool { return e.Session == "s1" }), all(t, l.Reader, 0, Filter{Session: "s1"}))
	equal("both", m.read(func(e Event) bool { return e.Session == "s1" && e.Run == "r1" }), all(t, l.Reader, 0, Filter{Session: "s1", Run: "r1"}))
	kinds := []string{"tool_started", "tool_finished"}
	equal("kinds", m.read(func(e Event) bool { return slices.Contains(kinds, e.Kind()) }), all(t, l.Reader, 0, Filter{Kinds: kinds}))
	n := min(3, len(m.events))
	equal("behind", m.events[n:], append([]Event{}, all(t, l.Reader, int64(n), Filter{})...))
	equal("until", m.events[:n], append([]Event{}, all(t, l.Reader, 0, Filter{Until: max(int64(n), 1)})[:n]...))
	for c, i := range m.claims {
		e, ok, err := l.Claimed(t.Context(), c)
		if err != nil || !ok || !cmp.Equal(e, stored[i]) {
			rt.Fatal(c, ok, err)
		}
	}
	if _, ok, err := l.Claimed(t.Context(), ClaimRun("nobody's")); ok || err != nil {
		rt.Fatal(ok, err)
	}
	m.checkOpen(rt, t, l, stored)
}

// checkOpen compares what is open with what the claims say.
func (m *model) checkOpen(rt *rapid.T, t *testing.T, l *Ledger, stored []Event) {
	var unfinished, unsettled []string
	var waiting []Event
	made := func(c Claim) bool { _, is := m.claims[c]; return is }
	for _, e := range stored {
		switch b := e.Body.(type) {
		case *RunStarted:
			if !made(ClaimRunEnd(e.Run)) {
				unfinished = append(unfinished, e.Run)
			}
			if b.Place.Channel != "" && !made(ClaimRunSettled(e.Run)) {
				unsettled = append(unsettled, e.Run)
			}
		case *MessageReceived:
			if b.Disposition == Starts && !made(ClaimTaken(e.Seq)) {
				waiting = append(waiting, e)
			}
		}
	}
	gotUnfinished, err1 := l.UnfinishedRuns(t.Context())
	gotUnsettled, err2 := l.UnsettledRuns(t.Context())
	gotWaiting, err3 := l.WaitingMessages(t.Context())
	if err := errors.Join(err1, err2, err3); err != nil {
		rt.Fatal(err)
	}
	if diff := cmp.Diff([]any{unfinished, unsettled, waiting}, []any{gotUnfinished, gotUnsettled, gotWaiting}); diff != "" {
		rt.Fatal(diff)
	}
}

func TestReadByTime(t *testing.T) {
	l := mustOpen(t, t.TempDir())
	var events []Event
	for i := range 20 {
		events = append(events, mustAppend(t, l, note("a", fmt.Sprint(i)))...)
	}
	for i, e := range events {
		from := slices.IndexFunc(events, func(x Event) bool { return !x.Time.Before(e.Time) })
		if got := all(t, l.Reader, 0, Filter{From: e.Time}); got[0].Seq != events[from].Seq || got[len(got)-1].Seq != 20 {
			t.Errorf("from the time of row %d: starts with %d", i+1, got[0].Seq)
		}
		if got := all(t, l.Reader, 0, Filter{To: e.Time}); len(got) != from {
			t.Errorf("to the time of row %d: %d rows, want %d", i+1, len(got), from)
		}
	}
	if got := all(t, l.Reader, 0, Filter{From: time.Now().Add(time.Hour)}); len(got) > 0 {
		t.Error("from the future:", got)
	}
}

// TestReadsAreIndexed: reading one run or session, and what is open, doesn't look at the rest of the journal.
func TestReadsAreIndexed(t *testing.T) {
	l := mustOpen(t, t.TempDir())
	for _, f := range []Filter{{Run: "r"}, {Session: "s"}, {Run: "r", Session: "s", Kinds: []string{"x"}}} {
		query, args := f.sql()
		rows, err := l.db.QueryContext(t.Context(), `EXPLAIN QUERY PLAN `+query, append([]any{0}, args...)...)
		if err != nil {
			t.Fatal(err)
		}
		var plan []string
		for rows.Next() {
			var id, parent, x int
			var detail string
			if err := rows.Scan(&id, &parent, &x, &detail); err != nil {
				t.Fatal(err)
			}
			plan = append(plan, detail)
		}
		if p := strings.Join(plan, "; "); !strings.Contains(p, "INDEX events_") || strings.Contains(p, "TEMP B-TREE") {
			t.Errorf("%+v: %s", f, p)
		}
	}
}

// TestAppendReturnsWhatIsStored: what the caller goes on with is what a reader gets after a restart.
func TestAppendReturnsWhatIsStored(t *testing.T) {
	l := mustOpen(t, t.TempDir())
	raw := json.RawMessage("{ \"a\" : [1.50, \"<&>\u2028\", \"\\u0041\"] }")
	wrote := mustAppend(t, l,
		Event{Run: "r", Actor: Actor{Kind: ActorUser, Name: "a\xffb"}, Body: &ModelCompleted{Text: "x\xff\x00y<&>", Raw: raw}},
		Event{Run: "r", Actor: System, Body: &ApprovalShown{Approval: "a", Until: time.Now()}},
	)
	if diff := cmp.Diff(wrote, all(t, l.Reader, 0, Filter{})); diff != "" {
		t.Error(diff)
	}
	b := wrote[0].Body.(*ModelCompleted)
	if want := "{\"a\":[1.50,\"<&>\u2028\",\"\\u0041\"]}"; string(b.Raw) != want {
		t.Errorf("raw is %s, want %s", b.Raw, want)
	}
	if b.Text != "x\uFFFD\x00y<&>" || wrote[0].Actor.Name != "a\uFFFDb" {
		t.Errorf("%q %q", b.Text, wrote[0].Actor.Name)
	}
}

func TestAppendRefusesMistakes(t *testing.T) {
	l := mustOpen(t, t.TempDir())
	for name, e := range map[string]Event{
		"no body":      {},
		"nil body":     {Body: (*RunStarted)(nil)},
		"erased":       {Body: &Erased{kind: "run_started"}},
		"no run":       {Body: &RunStarted{}},
		"no call":      {Run: "r", Body: &ToolStarted{}},
		"bad UTF-8":    {Run: "r\xff", Body: &RunStarted{}},
		"not JSON":     {Run: "r", Body: &ModelCompleted{Raw: json.RawMessage("{")}},
		"far too long": {Run: "r", Body: &RunStopRequested{Reason: strings.Repeat("x", maxBody)}},
	} {
		if got, err := l.Append(t.Context(), e); err == nil || errors.Is(err, ErrNotRecorded) || got != nil {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
	if _, err := l.Append(t.Context(), once("r", "x"), once("r", "y")); err == nil {
		t.Error("the same claim twice in one append")
	}
	if got, err := l.Append(t.Context()); got != nil || err != nil {
		t.Error("nothing:", got, err)
	}
	if head, _ := l.Head(t.Context()); head != (Head{}) || l.Health() != nil {
		t.Error(head, l.Health())
	}
}
