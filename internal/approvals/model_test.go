package approvals

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"approvalbot/internal/ledger"
	"approvalbot/internal/rapidtest"
)

// A modelAsk is what one ask has to be: bob, carol and dave may approve, alice asked.
type modelAsk struct {
	p       *Pending
	end     func() Resolution
	stop    func()
	quorum  int
	shown   bool
	unshown map[string]bool
	due     time.Time
	votes   map[string]bool
	checked bool   // its end was compared
	over    string // as ended puts it, or "lost"; empty while it is pending
}

// A machine drives a registry and the model next to each other.
type machine struct {
	*world
	t      *rapid.T
	ledger *ledger.Ledger
	asks   []*modelAsk
	calls  int
	failed bool // the journal can't be written
}

// Any sequence of what people, surfaces, the clock and the disk do comes out as the model says.
func TestModel(t *testing.T) {
	rapidtest.Checks(t, 30)
	synctest.Test(t, func(t *testing.T) {
		rapid.Check(undated{t}, func(rt *rapid.T) {
			l, err := ledger.Open(context.Background(), t.TempDir(), ledger.Options{})
			if err != nil {
				rt.Fatal(err)
			}
			defer closeJournal(t, l)
			s := Settings{Approvers: list(t, "UBOB", "UCAROL", "UDAVE"), Team: team}
			m := &machine{t: rt, ledger: l, world: &world{TB: t, book: newBook(), journal: &spoilt{Journal: l}, settings: s}}
			m.restart()
			defer m.stopAll() // also if a check fails: no waiter is left behind
			time.Sleep(time.Second)
			rt.Repeat(map[string]func(*rapid.T){
				"open": m.doOpen, "decide": m.doDecide, "show": m.doShow, "unshowable": m.doUnshowable,
				"abort": m.doAbort, "time": m.doTime, "disk": m.doDisk, "read": m.doRead, "": m.check,
			})
			m.wellAgain()
			for _, a := range m.asks {
				m.abortAsk(a)
			}
			m.check(rt)
			m.empty()
		})
	})
}

// undated hides from rapid that its test has a deadline, which may not be asked for in a bubble.
type undated struct{ *testing.T }

func (m *machine) stopAll() {
	for _, a := range m.asks {
		a.stop()
	}
	synctest.Wait()
}

func (m *machine) any(t *rapid.T) *modelAsk {
	if len(m.asks) == 0 {
		t.Skip("nothing was asked")
	}
	return rapid.SampledFrom(m.asks).Draw(t, "ask")
}

func (m *machine) doOpen(t *rapid.T) {
	n := rapid.IntRange(1, 3).Draw(t, "quorum")
	m.calls++
	q := request("run", fmt.Sprint(m.calls))
	q.Quorum, q.Surfaces = n, []string{"slack", "http"}
	sampled := ledger.Event{Run: "run", Actor: ledger.Actor{Kind: ledger.ActorModel, ID: "m"}, Body: &ledger.ModelCompleted{
		Round: m.calls, ToolCalls: []ledger.ToolCall{{ID: q.Call, Name: "shell", Arguments: q.Arguments}}, RequestHash: "00"}}
	if _, err := m.ledger.Append(m.ctx(), sampled); err != nil {
		t.Fatal(err)
	}
	p, err := m.Open(m.ctx(), q)
	if m.failed {
		if !errors.Is(err, ledger.ErrNotRecorded) {
			t.Fatalf("opened on a broken disk: %v", err)
		}
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := stoppable()
	m.asks = append(m.asks, &modelAsk{
		p: p, end: m.wait(ctx, p), stop: stop, quorum: n, due: time.Now().Add(time.Minute),
		unshown: map[string]bool{}, votes: map[string]bool{},
	})
}

func (m *machine) doDecide(t *rapid.T) {
	a := m.any(t)
	by := rapid.SampledFrom([]ledger.Actor{alice, bob, carol, dave, guest, foreign}).Draw(t, "by")
	yes := rapid.Bool().Draw(t, "approve")
	d := approve(by)
	if !yes {
		d.Type = ledger.Denied
	}
	want := a.decide(by, yes, m.failed)
	out, err := m.ResolveByID(m.ctx(), a.p.ID(), d)
	if got := brief(out, err); got != want {
		t.Fatalf("%s says %s: told %q, want %q", by.ID, d.Type, got, want)
	}
}

// decide is what the model does with a decision, and the answer.
func (a *modelAsk) decide(by ledger.Actor, yes, failed bool) string {
	member := by.Team == team && by != guest
	switch {
	case a.over != "":
		return a.late(yes)
	case !member || by == alice && yes:
		return "refused"
	case yes && a.votes[by.ID]:
		return fmt.Sprintf("%d of %d", len(a.votes), a.quorum)
	case failed:
		return "not recorded"
	case !yes:
		a.over = "denied user " + by.ID
		return "denied by " + by.ID
	}
	a.votes[by.ID] = true
	if len(a.votes) < a.quorum {
		return fmt.Sprintf("%d of %d", len(a.votes), a.quorum)
	}
	a.over = "approved user " + by.ID
	return "approved by " + by.ID
}

// late is the answer to a decision on an ask that is over.
func (a *modelAsk) late(yes bool) string {
	var typ, source, by string
	if a.over == "lost" {
		return "expired: abort"
	}
	_, _ = fmt.Sscan(a.over, &typ, &source, &by)
	switch {
	case source != "user":
		return "expired: " + source
	case (typ == "approved") == yes:
		return typ + " by " + by
	}
	return fmt.Sprintf("conflict: %s by %s", typ, by)
}

func brief(out Outcome, err error) string {
	if _, refused := errors.AsType[*RefusedError](err); refused {
		return "refused"
	}
	if errors.Is(err, ledger.ErrNotRecorded) {
		return "not recorded"
	}
	return told(out, err)
}

func (m *machine) doShow(t *rapid.T) {
	a := m.any(t)
	err := m.Shown(m.ctx(), a.p.ID(), Showing{Surface: "slack", Channel: "C", TS: rapid.SampledFrom([]string{"1", "2"}).Draw(t, "ts")})
	_, _, over := Ended(err)
	switch {
	case a.over == "" && !m.failed && err != nil, a.over != "" && err != nil && !over:
		t.Fatalf("a showing of an ask that is %q: %v", a.over, err)
	case a.over == "" && err == nil && !a.shown:
		a.shown, a.due = true, time.Now().Add(2*time.Minute)
	}
}

func (m *machine) doUnshowable(t *rapid.T) {
	a := m.any(t)
	surface := rapid.SampledFrom([]string{"slack", "http", "other"}).Draw(t, "surface")
	m.Unshowable(m.ctx(), a.p.ID(), surface, "gone")
	if a.over != "" || surface == "other" {
		return
	}
	a.unshown[surface] = true
	if len(a.unshown) == 2 && !a.shown {
		m.ends(a, "denied undeliverable")
	}
}

func (m *machine) doAbort(t *rapid.T) { m.abortAsk(m.any(t)) }

func (m *machine) abortAsk(a *modelAsk) {
	a.stop()
	synctest.Wait()
	if a.over == "" {
		m.ends(a, "denied abort")
	}
}

func (m *machine) doTime(t *rapid.T) {
	d := time.Duration(rapid.IntRange(1, 90).Draw(t, "seconds")) * time.Second
	now := time.Now().Add(d)
	for _, a := range m.asks {
		if a.over == "" && !a.due.After(now) {
			end := "denied undeliverable"
			if a.shown {
				end = "denied timeout"
			}
			m.ends(a, end)
		}
	}
	time.Sleep(d)
}

func (m *machine) doDisk(*rapid.T) {
	m.failed = !m.failed
	m.journal.set(func(s *spoilt) { s.fail = m.failed })
}

func (m *machine) wellAgain() {
	if m.failed {
		m.doDisk(nil)
	}
}

// doRead reads the run again from the journal: that has to be what is in memory.
func (m *machine) doRead(t *rapid.T) {
	run, _, err := m.ledger.LoadRun(m.ctx(), "run")
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range m.Pending("") {
		if diff := cmp.Diff(run.Asked(s.ID).Approval, &s.Ask, cmpopts.EquateEmpty()); diff != "" {
			t.Fatal("the journal read again (-) is not what is in memory (+):", diff)
		}
	}
}

// ends is an ending that nobody decided.
func (m *machine) ends(a *modelAsk, how string) {
	a.over = how
	if m.failed {
		a.over = "lost"
	}
}

// check compares what the waiters and the journal have with the model.
func (m *machine) check(t *rapid.T) {
	synctest.Wait()
	var open []string
	for i, a := range m.asks {
		if a.over == "" {
			open = append(open, a.p.ID())
		}
		if a.checked {
			continue // it is over, and who comes later is checked by what they are told
		}
		a.checked = a.over != ""
		recorded := m.resolved(a.p.ID())
		if (recorded != nil) != (a.over != "" && a.over != "lost") {
			t.Fatalf("ask %d is %q, the journal has %+v", i, a.over, recorded)
		}
		if a.over == "" {
			continue
		}
		res := a.end()
		if recorded != nil && (ended(*recorded) != a.over || ended(res) != a.over) || recorded == nil && res.Recorded() {
			t.Fatalf("ask %d is %q, the journal has %+v, the waiter %+v", i, a.over, recorded, res)
		}
	}
	var listed []string
	for _, s := range m.Pending("run") {
		listed = append(listed, s.ID)
	}
	if !slices.Equal(open, listed) {
		t.Fatalf("open are %v, listed %v", open, listed)
	}
	for _, s := range m.Pending("") {
		i := slices.IndexFunc(m.asks, func(a *modelAsk) bool { return a.p.ID() == s.ID })
		votes := map[string]bool{}
		for _, v := range s.Ask.Votes {
			votes[v.By.ID] = true
		}
		if a := m.asks[i]; !maps.Equal(votes, a.votes) || a.shown && !s.Ask.Until().Equal(a.due) {
			t.Fatalf("ask %d: %+v, want votes %v, until %v", i, s.Ask, a.votes, a.due)
		}
	}
}
