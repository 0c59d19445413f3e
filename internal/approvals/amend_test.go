package approvals

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"approvalbot/internal/ledger"
)

const other = `{"command":"ls -l"}`

// edit is a change by somebody that the policy has no more to say about than before.
func edit(by ledger.Actor, revision int, arguments string) Amendment {
	return Amendment{
		Edit:    Edit{Arguments: arguments, Revision: revision, By: by},
		Preview: ledger.Preview{Summary: "Run ls -l", Target: "ls", Kind: "command", Body: "ls -l"}, Reason: "it may write",
		Approvers: three,
	}
}

// three are those who may approve what takes two of them.
var three = []string{"UBOB", "UCAROL", "UDAVE"}

func (w *world) two() *Pending {
	return w.open("r", "c", func(q *Request) { q.Quorum, q.Approvers = 2, three })
}

// A change by one who may approve is their approval of it, and what is approved is what it says.
func TestAmendApproves(t *testing.T) {
	w := newWorld(t)
	p := w.open("r", "c")
	wait := w.wait(w.ctx(), p)
	out, err := w.Amend(w.ctx(), p.ID(), edit(bob, 0, other))
	if err != nil {
		t.Fatal(err)
	}
	res := wait()
	if out.Resolution == nil || res.Type != ledger.Approved || res.Arguments != other || res.EditedBy == nil || res.EditedBy.ID != "UBOB" || len(res.Digest) != 64 {
		t.Errorf("%+v", res)
	}
	if a := out.Snapshot.Ask; a.Arguments != other || a.Original.Arguments != `{"command":"ls"}` || a.Digest != res.Digest || len(a.Votes) != 1 {
		t.Errorf("%+v", a.ApprovalRequested)
	}
	w.empty()
}

// A change is another question: who approved the one before has to approve again, and what is about another form of it
// counts for nothing.
func TestAmendIsAnotherQuestion(t *testing.T) {
	w := newWorld(t)
	p := w.two()
	if _, err := w.ResolveByID(w.ctx(), p.ID(), approve(carol)); err != nil {
		t.Fatal(err)
	}
	out, err := w.Amend(w.ctx(), p.ID(), edit(bob, 0, other))
	if err != nil || out.Resolution != nil || out.Approvals != 1 {
		t.Fatalf("%+v, %v", out, err)
	}
	for name, d := range map[string]Decision{"approves the old one": approve(carol), "denies the old one": deny(carol, "")} {
		_, err := w.ResolveByID(w.ctx(), p.ID(), d)
		if e, ok := errors.AsType[*ChangedError](err); !ok || e.By().ID != "UBOB" || e.Snapshot.Ask.Arguments != other {
			t.Errorf("carol %s: %v", name, err)
		}
	}
	if w.resolved(p.ID()) != nil {
		t.Fatal("it is over")
	}
	d := approve(carol)
	d.Revision = 1
	out, err = w.ResolveByID(w.ctx(), p.ID(), d)
	if err != nil || out.Resolution == nil || out.Resolution.Arguments != other || out.Resolution.EditedBy.ID != "UBOB" || out.Resolution.By.ID != "UCAROL" {
		t.Errorf("%+v, %v", out, err)
	}
	if a := out.Snapshot.Ask; len(a.Void) != 1 || len(a.Votes) != 2 {
		t.Errorf("%d votes, %d void", len(a.Votes), len(a.Void))
	}
}

// A denial that names no form holds for whatever stands there.
func TestADenialOfWhateverStandsThere(t *testing.T) {
	w := newWorld(t)
	p := w.two()
	if _, err := w.Amend(w.ctx(), p.ID(), edit(bob, 0, other)); err != nil {
		t.Fatal(err)
	}
	d := deny(carol, "neither")
	d.Revision = AnyRevision
	out, err := w.ResolveByID(w.ctx(), p.ID(), d)
	if err != nil || out.Resolution == nil || out.Resolution.Arguments != "" {
		t.Errorf("%+v, %v", out, err)
	}
	d.Type = ledger.Approved
	q := w.open("r", "c2")
	if _, err := w.ResolveByID(w.ctx(), q.ID(), d); err == nil {
		t.Error("an approval of whatever stands there counted")
	}
}

// Who may not approve may not change; what is no change is none; what is over stays over.
func TestAmendRefuses(t *testing.T) {
	w := newWorld(t)
	p := w.open("r", "c")
	for name, by := range map[string]ledger.Actor{"who asked": alice, "a guest": guest, "somebody else": dave, "another organization": foreign} {
		if _, err := w.Amend(w.ctx(), p.ID(), edit(by, 0, other)); err == nil {
			t.Errorf("%s changed it", name)
		} else {
			wantRefused(t, err)
		}
	}
	if _, err := w.Amend(w.ctx(), p.ID(), edit(bob, 0, `{"command":"ls"}`)); !errors.Is(err, ErrUnchanged) {
		t.Errorf("no change: %v", err)
	}
	if _, err := w.Amend(w.ctx(), p.ID(), edit(bob, 1, other)); !isChanged(err) {
		t.Errorf("a form that there isn't: %v", err)
	}
	m := edit(bob, 0, other)
	m.Approvers = []string{"UGUEST"}
	if _, err := w.Amend(w.ctx(), p.ID(), m); wantRefused(t, err).Reason == "" {
		t.Error("without a reason")
	}
	if _, err := w.Amend(w.ctx(), "no such", edit(bob, 0, other)); !errors.Is(err, ErrNotFound) {
		t.Errorf("an ask that there isn't: %v", err)
	}
	if _, err := w.ResolveByID(w.ctx(), p.ID(), approve(bob)); err != nil {
		t.Fatal(err)
	}
	for range 2 { // in memory, and from the journal
		if _, err := w.Amend(w.ctx(), p.ID(), edit(bob, 0, other)); !isConflict(err) {
			t.Errorf("an ask that is over: %v", err)
		}
		p.Wait(w.ctx())
	}
	if n := w.count("approval_amended"); n != 0 {
		t.Errorf("%d changes are recorded", n)
	}
}

func isChanged(err error) bool { _, ok := errors.AsType[*ChangedError](err); return ok }

func isConflict(err error) bool { _, ok := errors.AsType[*ConflictError](err); return ok }

// count is how many events of a kind the journal has.
func (w *world) count(kind string) (n int) {
	w.Helper()
	for _, err := range w.journal.Journal.(*ledger.Ledger).Read(w.ctx(), 0, ledger.Filter{Kinds: []string{kind}}) {
		if err != nil {
			w.Fatal(err)
		}
		n++
	}
	return n
}

// What the policy wants for the changed call holds, where it isn't looser than what was wanted before.
func TestAmendIsNeverLooser(t *testing.T) {
	tests := []struct {
		name             string
		before, after    []string
		quorum, becoming int
		by               ledger.Actor
		want             []string
		wantQuorum       int
		votes            bool
	}{
		{"as before", []string{"UBOB"}, []string{"UBOB"}, 1, 1, bob, []string{"UBOB"}, 1, true},
		{"looser", []string{"UBOB"}, []string{"UBOB", "UCAROL"}, 2, 1, bob, []string{"UBOB"}, 2, true},
		{"more people", []string{"UBOB", "UCAROL"}, nil, 1, 2, bob, []string{"channel"}, 2, true},
		{"others", []string{"UBOB"}, []string{"UCAROL"}, 1, 1, bob, []string{"UCAROL"}, 1, false},
		{"fewer", []string{"UBOB", "UCAROL"}, []string{"UCAROL"}, 1, 1, bob, []string{"UCAROL"}, 1, false},
		{"the settings", []string{"UCAROL"}, nil, 1, 0, carol, []string{"channel"}, 1, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(t)
			p := w.open("r", "c", func(q *Request) { q.Approvers, q.Quorum = tt.before, tt.quorum })
			m := edit(tt.by, 0, other)
			m.Approvers, m.Quorum = tt.after, tt.becoming
			if tt.name == "looser" { // only one could approve, which is found out when it is opened
				if _, err := w.Amend(w.ctx(), p.ID(), m); err == nil {
					t.Error("an ask that is over was changed")
				}
				return
			}
			out, err := w.Amend(w.ctx(), p.ID(), m)
			if err != nil {
				t.Fatal(err)
			}
			a := out.Snapshot.Ask
			if !equal(a.Approvers, tt.want) || a.Quorum != tt.wantQuorum || (len(a.Votes) == 1) != tt.votes {
				t.Errorf("%v, %d people, %d votes", a.Approvers, a.Quorum, len(a.Votes))
			}
		})
	}
}

func equal(a, b []string) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i] != b[i] {
			return false
		}
	}
	return true
}

// A rule that lets more people in than before is not why more may approve: those of before stay.
func TestAmendKeepsStricterApprovers(t *testing.T) {
	w := newWorld(t)
	p := w.open("r", "c", func(q *Request) { q.Approvers, q.Quorum = []string{"UBOB", "UCAROL"}, 2 })
	m := edit(bob, 0, other)
	m.Approvers, m.Quorum = []string{"UBOB", "UCAROL", "UDAVE"}, 1
	out, err := w.Amend(w.ctx(), p.ID(), m)
	if err != nil || out.Resolution != nil || out.Quorum != 2 {
		t.Fatalf("%+v, %v", out, err)
	}
	d := approve(dave)
	d.Revision = 1
	_, err = w.ResolveByID(w.ctx(), p.ID(), d)
	wantRefused(t, err)
}

// Somebody who was added because nobody answered may approve the changed call, too.
func TestAmendKeepsWhoWasAdded(t *testing.T) {
	w := newWorld(t)
	p := w.open("r", "c", func(q *Request) { q.Approvers = []string{"UBOB", "UCAROL"} })
	added, err := w.journal.Append(w.ctx(), p.a.event(ledger.System, &ledger.ApprovalEscalated{Approval: p.ID(), Level: 1, Approvers: []string{"UDAVE"}}))
	if err != nil {
		t.Fatal(err)
	}
	w.apply(p.a, added...)
	m := edit(bob, 0, other)
	m.Approvers, m.Quorum = []string{"UBOB"}, 2
	out, err := w.Amend(w.ctx(), p.ID(), m)
	if err != nil || !equal(out.Snapshot.Ask.Approvers, []string{"UBOB", "UDAVE"}) {
		t.Fatalf("%v, %v", out.Snapshot.Ask.ApprovalRequested, err)
	}
}

// Two change it at once, and others approve it meanwhile: one form wins, and everybody is told which.
func TestAmendRaces(t *testing.T) {
	for range 30 {
		w := newWorld(t)
		p := w.open("r", "c", func(q *Request) { q.Approvers = three })
		var wg sync.WaitGroup
		errs := make([]error, 3)
		wg.Go(func() { _, errs[0] = w.Amend(w.ctx(), p.ID(), edit(bob, 0, `{"command":"bob"}`)) })
		wg.Go(func() { _, errs[1] = w.Amend(w.ctx(), p.ID(), edit(carol, 0, `{"command":"carol"}`)) })
		wg.Go(func() { _, errs[2] = w.ResolveByID(w.ctx(), p.ID(), approve(dave)) })
		wg.Wait()
		res := w.resolved(p.ID())
		won := 0
		for i, name := range []string{`{"command":"bob"}`, `{"command":"carol"}`, ""} {
			if errs[i] == nil {
				won++
				if res.Arguments != name {
					t.Errorf("%q won, and %q is approved", name, res.Arguments)
				}
			}
		}
		if won != 1 { // an approval of something else is no repetition of theirs
			t.Errorf("%d won: %v", won, errs)
		}
	}
}

// The journal takes a change and seems to have failed: what is decided then is about what is really asked.
func TestAmendThatSeemsToHaveFailed(t *testing.T) {
	w := newWorld(t)
	p := w.two()
	w.journal.set(func(s *spoilt) { s.lose = true })
	if _, err := w.Amend(w.ctx(), p.ID(), edit(bob, 0, other)); !errors.Is(err, ledger.ErrNotRecorded) {
		t.Fatalf("%v", err)
	}
	w.journal.set(func(s *spoilt) { s.lose, s.unread = false, true })
	if _, err := w.ResolveByID(w.ctx(), p.ID(), approve(carol)); !errors.Is(err, ledger.ErrNotRecorded) {
		t.Errorf("decided without knowing what is asked: %v", err)
	}
	w.journal.set(func(s *spoilt) { s.unread = false })
	if _, err := w.ResolveByID(w.ctx(), p.ID(), approve(carol)); !isChanged(err) {
		t.Errorf("an approval of what isn't asked any more counted: %v", err)
	}
	d := approve(carol)
	d.Revision = 1
	if _, err := w.ResolveByID(w.ctx(), p.ID(), d); err != nil {
		t.Errorf("%v", err)
	}
	d.By = bob // whose vote memory doesn't know of
	out, err := w.ResolveByID(w.ctx(), p.ID(), d)
	if err != nil || out.Resolution == nil || out.Resolution.Arguments != other {
		t.Errorf("%+v, %v", out, err)
	}
}

// The same with what would have been the end of it.
func TestAmendThatEndsItAndSeemsToHaveFailed(t *testing.T) {
	w := newWorld(t)
	p := w.open("r", "c")
	w.journal.set(func(s *spoilt) { s.lose = true })
	if _, err := w.Amend(w.ctx(), p.ID(), edit(bob, 0, other)); err == nil {
		t.Fatal("no error")
	}
	w.journal.set(func(s *spoilt) { s.lose = false })
	if _, err := w.ResolveByID(w.ctx(), p.ID(), deny(bob, "")); !isConflict(err) {
		t.Errorf("%v", err)
	}
	if res := p.Wait(w.ctx()); res.Arguments != other {
		t.Errorf("%+v", res)
	}
}

// After the deadline nothing is changed, and a change doesn't move it.
func TestAmendAndTheDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		p := w.two()
		w.shown(p, card)
		wait := w.wait(context.Background(), p)
		time.Sleep(time.Minute)
		if _, err := w.Amend(w.ctx(), p.ID(), edit(bob, 0, other)); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute + time.Second)
		if res := wait(); res.Source != ledger.SourceTimeout {
			t.Errorf("%+v", res)
		}
		if _, err := w.Amend(w.ctx(), p.ID(), edit(carol, 1, `{}`)); err == nil {
			t.Error("changed after its end")
		}
	})
}

// What is critical is approved with its word, by whatever way.
func TestCritical(t *testing.T) {
	w := newWorld(t)
	p := w.open("r", "c", func(q *Request) { q.Risk, q.Preview.Target = "critical", "prod-db" })
	d := approve(bob)
	for _, typed := range []string{"", "prod", "PROD-DB", "shell"} {
		d.Confirmed = typed
		_, err := w.ResolveByID(w.ctx(), p.ID(), d)
		if e, ok := errors.AsType[*UnconfirmedError](err); !ok || e.Typed != typed {
			t.Errorf("%q: %v", typed, err)
		}
	}
	if n := w.count("approval_voted"); n != 0 {
		t.Errorf("%d votes", n)
	}
	d.Confirmed = "prod-db"
	d.By = dave
	_, err := w.ResolveByID(w.ctx(), p.ID(), d)
	wantRefused(t, err) // the word is no right
	// A change leaves it open: its author has not typed what it is about now.
	m := edit(bob, 0, other)
	m.Risk, m.Preview.Target = "critical", "stage-db"
	out, err := w.Amend(w.ctx(), p.ID(), m)
	if err != nil || out.Resolution != nil || len(out.Snapshot.Ask.Votes) != 0 {
		t.Fatalf("%+v, %v", out, err)
	}
	d.By, d.Revision = bob, 1
	if _, err := w.ResolveByID(w.ctx(), p.ID(), d); err == nil {
		t.Error("approved with the word of what was asked before")
	}
	d.Confirmed = "\tstage-db "
	if _, err := w.ResolveByID(w.ctx(), p.ID(), d); err != nil {
		t.Error(err)
	}
	q := w.open("r", "c2", func(q *Request) { q.Risk, q.Preview.Target = "critical", "prod-db" })
	if _, err := w.ResolveByID(w.ctx(), q.ID(), deny(bob, "")); err != nil {
		t.Errorf("a denial took a word: %v", err)
	}
}

func TestConfirmation(t *testing.T) {
	for target, typable := range map[string]bool{
		"prod-db": true, "a b": true, "数据库": true, "/srv/x_1.txt": true, "prüfung": true,
		"": false, " a": false, "a  b": false, "a\nb": false, "a\u202eb": false, "a\u200bb": false, "\u3164": false,
		"\xff": false, "a\u00a0b": false, "e\u0301": false,
		"0123456789012345678901234567890123456789012345678901234567890123456789012345678901": false,
	} {
		want, isTool := target, false
		if !typable {
			want, isTool = "shell", true
		}
		q := &ledger.ApprovalRequested{Tool: "shell", Risk: "critical", Preview: ledger.Preview{Target: target}}
		if word, tool := Confirmation(q); word != want || tool != isTool {
			t.Errorf("%q: %q, %v", target, word, tool)
		}
		q.Risk = "high"
		if word, _ := Confirmation(q); word != "" {
			t.Errorf("%q: of high risk takes %q", target, word)
		}
	}
}

// Whether somebody may approve is about the question as it stood when they were looked up. If it is another one by then,
// their approval doesn't count, even if they have guessed what it would be.
func TestChangedWhileSomebodyIsLookedUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		p := w.open("r", "c", func(q *Request) { q.Quorum, q.Approvers = 2, []string{"UBOB", "UCAROL", "UDAVE"} })
		m := edit(bob, 0, other)
		m.Approvers = []string{"UBOB", "UCAROL"}
		w.book.slow("UDAVE", time.Second)
		guess := approve(dave)
		guess.Revision = 1
		said := make(chan error)
		go func() {
			_, err := w.ResolveByID(w.ctx(), p.ID(), guess)
			said <- err
		}()
		synctest.Wait()
		if _, err := w.Amend(w.ctx(), p.ID(), m); err != nil {
			t.Fatal(err)
		}
		if err := <-said; !isChanged(err) {
			t.Errorf("dave, who may not approve what it is now: %v", err)
		}
		if res := w.resolved(p.ID()); res != nil {
			t.Errorf("it is approved: %+v", res)
		}
		_, err := w.ResolveByID(w.ctx(), p.ID(), guess)
		wantRefused(t, err)
	})
}
