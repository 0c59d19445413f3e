package approvals

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"approvalbot/internal/ledger"
	"approvalbot/internal/rapidtest"
)

// readable lets grants be read from a journal with faults.
type readable struct{ *spoilt }

func (r readable) Read(ctx context.Context, after int64, f ledger.Filter) iter.Seq2[ledger.Event, error] {
	r.mu.Lock()
	unread := r.unread
	r.mu.Unlock()
	if unread {
		return func(yield func(ledger.Event, error) bool) { yield(ledger.Event{}, errDisk) }
	}
	return r.Journal.(*ledger.Ledger).Read(ctx, after, f)
}

// A grantWorld is a world in which calls can be allowed in advance.
type grantWorld struct {
	*world
	grants *Grants
	calls  int
}

func mayGrantAll(s *Settings) {
	s.Grantors, s.Grants = s.Approvers, ledger.GrantAlways
}

func newGrantWorld(t testing.TB, change ...func(*Settings)) *grantWorld {
	t.Helper()
	w := &grantWorld{world: newWorld(t, append([]func(*Settings){mayGrantAll}, change...)...)}
	w.reread()
	return w
}

// reread makes grants and registry anew, as a restart does.
func (w *grantWorld) reread() {
	w.Helper()
	w.restart()
	var err error
	if w.grants, err = NewGrants(w.ctx(), readable{w.journal}, w.Registry, InForce{}, slog.New(slog.DiscardHandler)); err != nil {
		w.Fatal(err)
	}
}

// file is a call of a tool with two arguments, that alice asked for.
func file(run, call string) Request {
	q := request(run, call)
	q.Tool, q.Arguments, q.Grantable = "write_file", `{"content":"hello","path":"a.txt"}`, true
	q.Preview = ledger.Preview{Summary: "Write a.txt", Kind: "diff", Body: "+hello"}
	return q
}

// give lets bob give a grant on an ask; nothing waits for the ask.
func (w *grantWorld) give(t Terms, change ...func(*Request)) (Grant, error) {
	w.Helper()
	w.calls++
	q := file("giving", fmt.Sprint("give", w.calls))
	for _, c := range change {
		c(&q)
	}
	p, err := w.Open(w.ctx(), q)
	if err != nil {
		w.Fatal(err)
	}
	return w.grants.Give(w.ctx(), p.ID(), t, Decision{By: bob})
}

func (w *grantWorld) mustGive(t Terms, change ...func(*Request)) Grant {
	w.Helper()
	g, err := w.give(t, change...)
	if err != nil {
		w.Fatal(err)
	}
	return g
}

func hour(uses int, loose ...string) Terms {
	return Terms{Scope: ledger.GrantThread, Until: time.Now().Add(time.Hour), Uses: uses, Any: loose, Summary: "what it covers"}
}

// use starts a call by a grant, as the agent does.
func (w *grantWorld) use(q Request) (*Use, error) {
	w.Helper()
	var by *Use
	_, err := w.grants.Use(w.ctx(), q, func(u Use) error {
		d := &ledger.PermissionDecided{Tool: q.Tool, PolicyHash: q.PolicyHash}
		u.Decide(d)
		e := func(b ledger.Body) ledger.Event {
			return ledger.Event{Session: q.Session, Run: q.Run, Call: q.Call, Actor: ledger.System, Body: b}
		}
		_, err := w.journal.Append(w.ctx(), e(d), e(&ledger.ToolStarted{Tool: q.Tool}))
		if err == nil {
			by = &u
		}
		return err
	})
	return by, err
}

func (w *grantWorld) call(change ...func(*Request)) Request {
	w.calls++
	q := file("using", fmt.Sprint("use", w.calls))
	for _, c := range change {
		c(&q)
	}
	return q
}

func args(s string) func(*Request) { return func(q *Request) { q.Arguments = s } }

// What a grant doesn't cover still asks: everything else is as it was given for.
func TestWhatAGrantCovers(t *testing.T) {
	always := func(t *Terms) { t.Scope = ledger.GrantAlways }
	tests := map[string]struct {
		terms  func(*Terms)
		change func(*Request)
		covers bool
	}{
		"the same call":                {covers: true},
		"another path":                 {change: args(`{"content":"hello","path":"b.txt"}`)},
		"another content, not ticked":  {terms: func(t *Terms) { t.Any = nil }, change: args(`{"content":"x","path":"a.txt"}`)},
		"another content, ticked":      {change: args(`{"content":"x","path":"a.txt"}`), covers: true},
		"no content, ticked":           {change: args(`{"path":"a.txt"}`), covers: true},
		"no path":                      {change: args(`{"content":"hello"}`)},
		"an argument more":             {change: args(`{"content":"hello","mode":"x","path":"a.txt"}`)},
		"the path as another type":     {change: args(`{"content":"hello","path":["a.txt"]}`)},
		"arguments that are no object": {change: args(`["a.txt"]`)},
		"another tool":                 {change: func(q *Request) { q.Tool = "edit_file" }},
		"another definition":           {change: func(q *Request) { q.ToolHash = "01" }},
		"no definition":                {change: func(q *Request) { q.ToolHash = "" }},
		"another policy":               {change: func(q *Request) { q.PolicyHash = "12" }},
		"another thread":               {change: func(q *Request) { q.Session = "other" }},
		"another thread, always":       {terms: always, change: func(q *Request) { q.Session = "other" }, covers: true},
		"no thread":                    {change: func(q *Request) { q.Session = "" }},
		"another person":               {change: func(q *Request) { q.Requesters = []ledger.Person{carol.Person()} }},
		"another person too":           {change: func(q *Request) { q.Requesters = []ledger.Person{alice.Person(), carol.Person()} }},
		"a person of another team":     {change: func(q *Request) { q.Requesters = []ledger.Person{{Team: "T2", ID: alice.ID}} }},
		"a person of no known team":    {change: func(q *Request) { q.Requesters = []ledger.Person{{ID: alice.ID}} }},
		"nobody known":                 {change: func(q *Request) { q.Requesters = nil }},
		"a critical call":              {change: func(q *Request) { q.Risk = "critical" }},
		"a risk of a newer version":    {change: func(q *Request) { q.Risk = "apocalyptic" }},
		"a high risk":                  {change: func(q *Request) { q.Risk = "high" }, covers: true},
		"two people have to approve":   {change: func(q *Request) { q.Quorum = 2 }},
		"it has to be confirmed":       {change: func(q *Request) { q.Confirm = true }},
		"a secret in it":               {change: func(q *Request) { q.Grantable = false }},
		"a command, with a tick":       {change: func(q *Request) { q.Exact = true }},
		"bob may not approve it":       {change: func(q *Request) { q.Approvers = []string{"UCAROL"} }},
		"bob asked for it himself":     {terms: always, change: func(q *Request) { q.Requesters = []ledger.Person{bob.Person()} }},
		"a channel without bob":        {terms: always, change: func(q *Request) { q.Place.Channel = "DALICE" }},
		"nowhere in Slack, always":     {terms: always, change: func(q *Request) { q.Place, q.Session = ledger.Place{}, "http" }, covers: true},
		"approvers that can't be read": {change: func(q *Request) { q.Approvers = []string{"everybody"} }},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			w := newGrantWorld(t)
			terms := hour(10, "content")
			if tt.terms != nil {
				tt.terms(&terms)
			}
			given := w.mustGive(terms)
			q := w.call()
			if tt.change != nil {
				tt.change(&q)
			}
			u, err := w.use(q)
			if err != nil || (u != nil) != tt.covers {
				t.Fatalf("%v, %v", u, err)
			}
			if u != nil && (u.Grant != given.ID || u.N != 1 || u.By.ID != bob.ID) {
				t.Errorf("%+v", u)
			}
		})
	}
}

func TestWhoMayGrant(t *testing.T) {
	tests := map[string]struct {
		grantors []string
		by       ledger.Actor
		ok       bool
	}{
		"who is listed and may approve":   {[]string{"UBOB"}, bob, true},
		"who is listed and may not":       {[]string{"UALICE"}, alice, false}, // she asked
		"who may approve, isn't listed":   {[]string{"UCAROL"}, bob, false},
		"nobody is listed":                {nil, bob, false},
		"of another organization":         {[]string{"channel"}, foreign, false},
		"a guest":                         {[]string{"channel"}, guest, false},
		"a token":                         {[]string{"channel"}, token, false},
		"whoever asked, of an own ask":    {[]string{"requester"}, alice, false}, // may not approve it
		"somebody outside of the channel": {[]string{"UDAVE"}, dave, false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			w := newGrantWorld(t, func(s *Settings) {
				s.Grantors = Approvers{}
				if tt.grantors != nil {
					s.Grantors = list(t, tt.grantors...)
				}
			})
			p, err := w.Open(w.ctx(), file("run", "call"))
			if err != nil {
				t.Fatal(err)
			}
			may := w.MayGrant(w.ctx(), p.ID(), tt.by)
			_, err = w.grants.Give(w.ctx(), p.ID(), hour(1), Decision{By: tt.by})
			if (may == nil) != tt.ok && tt.grantors != nil || (err == nil) != tt.ok {
				t.Errorf("%v, %v", may, err)
			}
			if err != nil && (len(w.grants.List(time.Now())) != 0 || w.resolved(p.ID()) != nil) {
				t.Error("something was granted or decided")
			}
			if tt.ok {
				if err := w.MayGrant(w.ctx(), p.ID(), tt.by); !hasEnded(err) {
					t.Errorf("by an ask that is over: %v", err)
				}
			}
		})
	}
}

// What is offered, and with it what can be given.
func TestOffers(t *testing.T) {
	both := []ledger.Offer{ledger.OfferGrantThread, ledger.OfferGrantAlways}
	tests := map[string]struct {
		settings func(*Settings)
		change   func(*Request)
		want     []ledger.Offer
	}{
		"usual":               {want: both},
		"threads only":        {settings: func(s *Settings) { s.Grants = ledger.GrantThread }, want: both[:1]},
		"no setting":          {settings: func(s *Settings) { s.Grants = "" }, want: both[:1]},
		"nobody may":          {settings: func(s *Settings) { s.Grantors = Approvers{} }},
		"critical":            {change: func(q *Request) { q.Risk = "critical" }},
		"confirmed":           {change: func(q *Request) { q.Confirm = true }},
		"two people":          {change: func(q *Request) { q.Quorum = 2 }},
		"two, by the setting": {settings: func(s *Settings) { s.Quorum = 2 }},
		"a secret":            {change: func(q *Request) { q.Grantable = false }},
		"not in Slack":        {change: func(q *Request) { q.Surfaces = []string{"http"} }},
		"of a program":        {change: func(q *Request) { q.Session = "ask/x"; q.Exact = true }, want: both[1:]},
		"no object":           {change: args(`"text"`)},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			settings := tt.settings
			if settings == nil {
				settings = func(*Settings) {}
			}
			w := newGrantWorld(t, settings)
			q := file("run", "call")
			if tt.change != nil {
				tt.change(&q)
			}
			p, err := w.Open(w.ctx(), q)
			if err != nil {
				t.Fatal(err)
			}
			if got := p.Snapshot().Ask.Offers; !slices.Equal(got, tt.want) {
				t.Fatalf("%v", got)
			}
			terms := hour(1)
			terms.Scope = ledger.GrantAlways
			_, err = w.grants.Give(w.ctx(), p.ID(), terms, Decision{By: bob})
			if given := err == nil; given != slices.Contains(tt.want, ledger.OfferGrantAlways) {
				t.Errorf("%v", err)
			}
		})
	}
}

func TestTermsThatMakeNoGrant(t *testing.T) {
	tests := map[string]func(*Terms){
		"no use":             func(t *Terms) { t.Uses = 0 },
		"too many uses":      func(t *Terms) { t.Uses = MaxGrantUses + 1 },
		"over already":       func(t *Terms) { t.Until = time.Now().Add(-time.Second) },
		"no end":             func(t *Terms) { t.Until = time.Time{} },
		"too long":           func(t *Terms) { t.Until = time.Now().Add(MaxThreadGrant + time.Hour) },
		"no scope":           func(t *Terms) { t.Scope = "" },
		"another scope":      func(t *Terms) { t.Scope = "universe" },
		"no such argument":   func(t *Terms) { t.Any = []string{"owner"} },
		"another revision":   func(t *Terms) { t.Revision = 1 },
		"a revision below 0": func(t *Terms) { t.Revision = -1 },
	}
	for name, change := range tests {
		t.Run(name, func(t *testing.T) {
			w := newGrantWorld(t)
			terms := hour(10)
			change(&terms)
			if _, err := w.give(terms); err == nil || len(w.grants.List(time.Now())) != 0 {
				t.Fatalf("given: %v", err)
			}
			if len(w.Pending("giving")) != 1 {
				t.Error("the ask isn't open any more")
			}
		})
	}
	t.Run("a command with a tick", func(t *testing.T) {
		w := newGrantWorld(t)
		_, err := w.give(hour(10, "command"), func(q *Request) {
			q.Arguments, q.Preview = `{"command":"ls"}`, ledger.Preview{Kind: "command", Body: "ls"}
		})
		if !errors.Is(err, ErrTerms) {
			t.Errorf("%v", err)
		}
	})
}

// A grant is given with its approval or not at all.
func TestAGrantAndItsApprovalAreOne(t *testing.T) {
	w := newGrantWorld(t)
	p, err := w.Open(w.ctx(), file("run", "call"))
	if err != nil {
		t.Fatal(err)
	}
	w.journal.set(func(s *spoilt) { s.fail = true })
	if _, err := w.grants.Give(w.ctx(), p.ID(), hour(1), Decision{By: bob}); !errors.Is(err, ledger.ErrNotRecorded) {
		t.Errorf("%v", err)
	}
	w.journal.set(func(s *spoilt) { s.fail = false })
	if len(w.grants.List(time.Now())) != 0 || w.resolved(p.ID()) != nil {
		t.Fatal("something was granted or decided")
	}
	if _, err := w.ResolveByID(w.ctx(), p.ID(), approve(bob)); err != nil {
		t.Fatal(err)
	}
	if _, err := w.grants.Give(w.ctx(), p.ID(), hour(1), Decision{By: bob}); !errors.Is(err, ErrNotGiven) {
		t.Errorf("%v", err)
	}
	q, err := w.Open(w.ctx(), file("run", "denied"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.ResolveByID(w.ctx(), q.ID(), deny(bob, "")); err != nil {
		t.Fatal(err)
	}
	if _, err := w.grants.Give(w.ctx(), q.ID(), hour(1), Decision{By: bob}); err == nil {
		t.Error("granted on what was denied")
	}
	if len(w.grants.List(time.Now())) != 0 {
		t.Error("something was granted")
	}
	// What seemed to have failed may be on disk: then it was given.
	l, err := w.Open(w.ctx(), file("run", "lost"))
	if err != nil {
		t.Fatal(err)
	}
	w.journal.set(func(s *spoilt) { s.lose = true })
	_, err = w.grants.Give(w.ctx(), l.ID(), hour(1), Decision{By: bob})
	w.journal.set(func(s *spoilt) { s.lose = false })
	if err == nil || len(w.grants.List(time.Now())) != 1 {
		t.Errorf("%v, %d grants", err, len(w.grants.List(time.Now())))
	}
}

func TestRevoking(t *testing.T) {
	tests := map[string]struct {
		by ledger.Actor
		ok bool
	}{
		"who gave it": {bob, true}, "who may grant there": {carol, true}, "an operator": {dave, true}, "a token": {token, true},
		"on the machine": {ledger.Actor{Kind: ledger.ActorOperator, ID: "root"}, true},
		"a guest":        {guest, false}, "of another organization": {foreign, false}, "a bot": {bot, false}, "nobody": {ledger.Actor{}, false},
		"the system": {ledger.System, false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			w := newGrantWorld(t, func(s *Settings) { s.Operators = list(t, "UDAVE") })
			w.book.in["CPRIVATE"] = append(w.book.in["CPRIVATE"], "UCAROL")
			g := w.mustGive(hour(10))
			err := w.grants.Revoke(w.ctx(), g.ID, tt.by, "not needed")
			if (err == nil) != tt.ok {
				t.Fatalf("%v", err)
			}
			u, _ := w.use(w.call())
			if (u == nil) != tt.ok {
				t.Errorf("used: %v", u)
			}
			if tt.ok {
				if ended := w.grants.List(time.Now())[0].Ended; !strings.Contains(ended, "revoked by") || !strings.Contains(ended, "not needed") {
					t.Errorf("ended: %q", ended)
				}
				if _, ok := errors.AsType[*GrantOverError](w.grants.Revoke(w.ctx(), g.ID, bob, "")); !ok {
					t.Error("revoked twice")
				}
			}
		})
	}
	w := newGrantWorld(t)
	if err := w.grants.Revoke(w.ctx(), "none", bob, ""); !errors.Is(err, ErrNoGrant) {
		t.Errorf("%v", err)
	}
}

// A revocation that is committed before a use wins; a use that is being committed comes before it.
func TestARevocationAndAUse(t *testing.T) {
	w := newGrantWorld(t)
	g := w.mustGive(hour(10))
	arrived, hold := make(chan struct{}, 2), make(chan struct{})
	w.journal.set(func(s *spoilt) { s.hold, s.arrived = hold, arrived })
	var wg sync.WaitGroup
	wg.Go(func() {
		if u, err := w.use(w.call()); u == nil {
			t.Errorf("the use that was first: %v", err)
		}
	})
	<-arrived // the use waits for the disk
	wg.Go(func() {
		if err := w.grants.Revoke(w.ctx(), g.ID, bob, ""); err != nil {
			t.Error(err)
		}
	})
	select {
	case <-arrived:
		t.Error("it is revoked while a use is being recorded")
	case <-time.After(20 * time.Millisecond):
	}
	close(hold)
	wg.Wait()
	w.journal.set(func(s *spoilt) { s.hold = nil })
	if u, _ := w.use(w.call()); u != nil {
		t.Error("used after it was revoked")
	}
}

// A call for which a grant was found, and that has not started yet, doesn't once the grant is revoked.
func TestRevokedWhileACallIsAboutToStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newGrantWorld(t)
		g := w.mustGive(hour(10))
		w.book.spoil(100*time.Millisecond, nil) // whether bob may approve it takes a while to find out
		used := make(chan *Use)
		go func() {
			u, _ := w.use(w.call())
			used <- u
		}()
		time.Sleep(50 * time.Millisecond)
		if err := w.grants.Revoke(w.ctx(), g.ID, bob, ""); err != nil {
			t.Fatal(err)
		}
		if u := <-used; u != nil {
			t.Errorf("started by %+v", u)
		}
	})
}

// An ask that waits isn't decided by a grant, given or revoked: whoever was asked decides it.
func TestAnAskThatWaitsIsPeoples(t *testing.T) {
	w := newGrantWorld(t)
	waiting, err := w.Open(w.ctx(), file("run", "waits"))
	if err != nil {
		t.Fatal(err)
	}
	g := w.mustGive(hour(10))
	if w.resolved(waiting.ID()) != nil {
		t.Fatal("decided by a grant that was given later")
	}
	if err := w.grants.Revoke(w.ctx(), g.ID, bob, ""); err != nil {
		t.Fatal(err)
	}
	if w.resolved(waiting.ID()) != nil {
		t.Fatal("decided by a revocation")
	}
}

func TestManyAtOnce(t *testing.T) {
	w := newGrantWorld(t)
	w.mustGive(hour(10))
	var used atomic.Int64
	numbers := sync.Map{}
	var wg sync.WaitGroup
	for range 50 {
		q := w.call()
		wg.Go(func() {
			u, err := w.use(q)
			if err != nil {
				t.Error(err)
			}
			if u != nil {
				used.Add(1)
				if _, twice := numbers.LoadOrStore(u.N, true); twice {
					t.Errorf("use %d twice", u.N)
				}
			}
		})
	}
	wg.Wait()
	if used.Load() != 10 {
		t.Errorf("used %d times", used.Load())
	}
	if g := w.grants.List(time.Now())[0]; g.Used != 10 || g.Ended != endedUses {
		t.Errorf("%+v", g)
	}
	w.reread()
	if g := w.grants.List(time.Now())[0]; g.Used != 10 {
		t.Errorf("after a restart: %d", g.Used)
	}
}

// A number that another has, although memory doesn't know, is passed over; what wasn't recorded isn't counted.
func TestNumbersOfUses(t *testing.T) {
	w := newGrantWorld(t)
	w.mustGive(hour(2))
	w.journal.set(func(s *spoilt) { s.fail = true })
	if u, err := w.use(w.call()); u != nil || !errors.Is(err, ledger.ErrNotRecorded) {
		t.Errorf("%v, %v", u, err)
	}
	w.journal.set(func(s *spoilt) { s.fail, s.lose = false, true })
	if u, err := w.use(w.call()); u != nil || err == nil { // it is on disk all the same
		t.Errorf("%v, %v", u, err)
	}
	w.journal.set(func(s *spoilt) { s.lose = false })
	if u, err := w.use(w.call()); u == nil || u.N != 2 {
		t.Errorf("%v, %v", u, err)
	}
	if u, err := w.use(w.call()); u != nil || err != nil {
		t.Errorf("a third: %v, %v", u, err)
	}
}

func TestHowAGrantEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newGrantWorld(t)
		record := func(b ledger.Body) {
			t.Helper()
			if _, err := w.journal.Append(w.ctx(), ledger.Event{Actor: ledger.System, Body: b}); err != nil {
				t.Fatal(err)
			}
		}
		ends := func(want string) {
			t.Helper()
			if u, err := w.use(w.call()); u != nil || err != nil {
				t.Errorf("%s: used", want)
			}
			if got := w.grants.List(time.Now())[0].Ended; got != want {
				t.Errorf("ended: %q, not %q", got, want)
			}
		}
		holds := func() {
			t.Helper()
			if u, err := w.use(w.call()); u == nil || err != nil {
				t.Errorf("not used: %v", err)
			}
		}
		w.mustGive(hour(10))
		record(&ledger.ToolDefined{Tool: "write_file", Hash: "00"})
		record(&ledger.ToolDefined{Tool: "other", Hash: "01"})
		record(&ledger.PolicyChanged{To: "11"})
		holds()
		record(&ledger.Paused{})
		if u, _ := w.use(w.call()); u != nil {
			t.Error("used while everything is paused")
		}
		record(&ledger.Resumed{})
		holds()
		record(&ledger.ToolDefined{Tool: "write_file", Hash: "01"})
		record(&ledger.ToolDefined{Tool: "write_file", Hash: "00"}) // it doesn't come back
		ends(endedTool)
		w.reread()
		ends(endedTool)

		time.Sleep(time.Minute)
		w.mustGive(hour(10))
		record(&ledger.PolicyChanged{From: "11", To: "12"})
		record(&ledger.PolicyChanged{From: "12", To: "11"})
		ends(endedPolicy)

		time.Sleep(time.Minute)
		w.mustGive(hour(10))
		w.reread()
		holds()
		time.Sleep(time.Hour)
		ends(endedTime)
	})
}

// A grant that would allow nothing isn't given: the tool or the rules are others than those that it was asked with.
func TestAGrantThatIsOutdatedAtOnce(t *testing.T) {
	w := newGrantWorld(t)
	policy, tool := "11", "00"
	w.grants.now = InForce{
		PolicyHash: func() string { return policy },
		ToolHash:   func(string) (string, bool) { return tool, true },
	}
	for name, now := range map[string][2]string{"the rules": {"12", "00"}, "the tool": {"11", "01"}} {
		policy, tool = now[0], now[1]
		if g, err := w.give(hour(10)); !errors.Is(err, ErrOutdated) {
			t.Errorf("%s: %+v, %v", name, g, err)
		}
	}
	if got := w.Registry.Pending(""); len(got) != 2 {
		t.Errorf("%d of 2 still wait", len(got))
	}
	if got := w.grants.List(time.Now()); len(got) != 0 {
		t.Errorf("%+v", got)
	}
	policy, tool = "11", "00"
	w.mustGive(hour(10))
}

// The same call in another directory is another one, whatever the grant reaches.
func TestAGrantElsewhere(t *testing.T) {
	in := func(dir string) func(*Request) { return func(q *Request) { q.Cwd = dir } }
	for _, scope := range []ledger.GrantScope{ledger.GrantThread, ledger.GrantAlways} {
		w := newGrantWorld(t)
		terms := hour(10)
		terms.Scope = scope
		w.mustGive(terms, in("/srv/a"))
		for _, dir := range []string{"/srv/b", ""} {
			if u, err := w.use(w.call(in(dir))); u != nil || err != nil {
				t.Errorf("%s, in %q: used, %v", scope, dir, err)
			}
		}
		w.reread()
		if u, err := w.use(w.call(in("/srv/a"))); u == nil || err != nil {
			t.Errorf("%s, in the same: not used, %v", scope, err)
		}
	}
}

// Whoever approves because they are in the approvals channel can allow in advance what they approve there.
func TestAGrantorInTheApprovalsChannel(t *testing.T) {
	w := newGrantWorld(t, func(s *Settings) {
		s.Approvers = list(t, "channel")
		s.Grantors, s.Channel = s.Approvers, "COPS"
	})
	w.book.channels["COPS"] = ChannelInfo{Kind: PrivateChannel}
	w.book.in["COPS"] = []string{"UDAVE"} // who isn't where it was asked
	w.calls++
	p, err := w.Open(w.ctx(), file("giving", "give"))
	if err != nil {
		t.Fatal(err)
	}
	g, err := w.grants.Give(w.ctx(), p.ID(), hour(10), Decision{By: dave})
	if err != nil {
		t.Fatal(err)
	}
	if u, err := w.use(w.call()); u == nil || err != nil {
		t.Errorf("not used: %v", err)
	}
	w.book.in["COPS"] = []string{"UCAROL"}
	if u, err := w.use(w.call()); u != nil || err != nil {
		t.Errorf("used although dave has left the channel: %v", err)
	}
	if err := w.grants.Revoke(w.ctx(), g.ID, carol, ""); err != nil {
		t.Errorf("somebody else in the approvals channel can't revoke it: %v", err)
	}
}

// If grants can't be read, people are asked.
func TestGrantsThatCantBeRead(t *testing.T) {
	w := newGrantWorld(t)
	w.mustGive(hour(10))
	w.journal.set(func(s *spoilt) { s.unread = true })
	if u, err := w.use(w.call()); u != nil || err != nil {
		t.Errorf("%v, %v", u, err)
	}
	if _, err := NewGrants(w.ctx(), readable{w.journal}, w.Registry, InForce{}, slog.New(slog.DiscardHandler)); err == nil {
		t.Error("made without a journal")
	}
	w.journal.set(func(s *spoilt) { s.unread = false })
	w.book.spoil(0, errDisk) // nobody knows who bob is now
	if u, err := w.use(w.call()); u != nil || err != nil {
		t.Errorf("%v, %v", u, err)
	}
}

// Somebody who may not approve any more allows nothing any more.
func TestAGrantorWhoLeft(t *testing.T) {
	w := newGrantWorld(t)
	w.mustGive(hour(10))
	w.book.kinds["UBOB"] = Deactivated
	if u, err := w.use(w.call()); u != nil || err != nil {
		t.Errorf("%v, %v", u, err)
	}
}

// A small independent reading of what a grant covers agrees with the code, for grants and calls drawn at random out of a
// small world, in which they meet often.
func TestCoversLikeTheOracle(t *testing.T) {
	rapidtest.Checks(t, 2000)
	word := rapid.SampledFrom([]string{"a", "b"})
	person := rapid.SampledFrom([]ledger.Person{{Team: team, ID: "U1"}, {Team: team, ID: "U2"}, {Team: "T2", ID: "U1"}})
	object := rapid.MapOfN(rapid.SampledFrom([]string{"x", "y", "z"}), rapid.SampledFrom([]string{"1", "2", `"1"`}), 0, 3)
	rapid.Check(t, func(t *rapid.T) {
		b := &ledger.GrantGiven{
			Scope: rapid.SampledFrom([]ledger.GrantScope{ledger.GrantThread, ledger.GrantAlways, ""}).Draw(t, "scope"),
			Tool:  word.Draw(t, "tool"), ToolHash: word.Draw(t, "hash"), PolicyHash: word.Draw(t, "policy"),
			Requesters: rapid.SliceOfN(person, 1, 2).Draw(t, "for"),
		}
		fixed, loose := object.Draw(t, "fixed"), rapid.SliceOfN(rapid.SampledFrom([]string{"x", "y", "z"}), 0, 2).Draw(t, "loose")
		b.Arguments, _ = members(jsonOf(fixed))
		for _, n := range loose {
			delete(b.Arguments, n)
		}
		b.Any = loose
		one := &grant{GrantGiven: b, session: word.Draw(t, "session"), args: b.Arguments}
		given := object.Draw(t, "arguments")
		q := Request{
			Session: word.Draw(t, "in"), Tool: word.Draw(t, "calls"), ToolHash: word.Draw(t, "defined"), PolicyHash: word.Draw(t, "under"),
			Requesters: rapid.SliceOfN(person, 0, 2).Draw(t, "asked"), Exact: rapid.Bool().Draw(t, "exact"),
		}
		got, _ := members(jsonOf(given))
		if have, want := one.covers(q, got), oracle(one, fixed, q, given); have != want {
			t.Fatalf("%v, the oracle says %v", have, want)
		}
	})
}

// oracle decides by counting what doesn't fit.
func oracle(one *grant, fixed map[string]string, q Request, given map[string]string) bool {
	misfits := 0
	misfit := func(is bool) {
		if is {
			misfits++
		}
	}
	misfit(q.Tool != one.Tool)
	misfit(q.ToolHash != one.ToolHash)
	misfit(q.PolicyHash != one.PolicyHash)
	misfit(one.Scope == "")
	misfit(one.Scope == ledger.GrantThread && q.Session != one.session)
	misfit(len(q.Requesters) == 0)
	for _, p := range q.Requesters {
		in := false
		for _, g := range one.Requesters {
			in = in || g.ID == p.ID && g.Team == p.Team
		}
		misfit(!in)
	}
	misfit(q.Exact && len(one.Any) > 0)
	for _, name := range []string{"x", "y", "z"} {
		free := slices.Contains(one.Any, name)
		want, pinned := fixed[name]
		have, there := given[name]
		misfit(!free && pinned != there)
		misfit(!free && pinned && there && want != have)
	}
	return misfits == 0
}

func jsonOf(m map[string]string) string {
	var parts []string
	for _, k := range []string{"x", "y", "z"} {
		if v, ok := m[k]; ok {
			parts = append(parts, fmt.Sprintf("%q:%s", k, v))
		}
	}
	return "{" + strings.Join(parts, ",") + "}"
}
