package approvals

import (
	"errors"
	"sync"
	"testing"
	"testing/synctest"

	"approvalbot/internal/ledger"
)

// taken is an event that claims a message.
func taken(message int64) ledger.Event {
	return ledger.Event{Session: "session", Actor: bob, Body: &ledger.MessageWithdrawn{Message: message, Reason: "used"}}
}

// What is recorded with a decision is recorded with it or not at all: whatever else wants the message at the same time,
// its words are used once.
func TestWith(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		used, free := w.open("run", "used"), w.open("run", "free")
		if _, err := w.journal.Append(w.ctx(), taken(7)); err != nil {
			t.Fatal(err)
		}
		d := deny(bob, "no")
		d.With = []ledger.Event{taken(7)}
		_, err := w.ResolveByID(w.ctx(), used.ID(), d)
		if _, lost := errors.AsType[*ledger.ConflictError](err); !lost || w.resolved(used.ID()) != nil {
			t.Errorf("a message that was taken before: %v, resolved: %v", err, w.resolved(used.ID()))
		}
		d.With = []ledger.Event{taken(8)}
		if _, err := w.ResolveByID(w.ctx(), free.ID(), d); err != nil || w.resolved(free.ID()) == nil {
			t.Errorf("a message that is free: %v", err)
		}
		if _, ok, err := w.journal.Claimed(w.ctx(), ledger.ClaimTaken(8)); !ok || err != nil {
			t.Errorf("it isn't taken: %v", err)
		}
		w.abort(used)
		w.abort(free)
	})
}

// Two people use the same message at once: one of them does.
func TestWithAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, approvers(t, "UBOB", "UCAROL"))
		asks := []*Pending{w.open("run", "one"), w.open("run", "two")}
		errs := make([]error, 2)
		var wg sync.WaitGroup
		for i, by := range []ledger.Actor{bob, carol} {
			wg.Go(func() {
				d := deny(by, "no")
				d.With = []ledger.Event{taken(7)}
				_, errs[i] = w.ResolveByID(w.ctx(), asks[i].ID(), d)
			})
		}
		wg.Wait()
		if (errs[0] == nil) == (errs[1] == nil) {
			t.Errorf("both or neither: %v, %v", errs[0], errs[1])
		}
		w.abort(asks[0])
		w.abort(asks[1])
	})
}

func TestMayUseWords(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, approvers(t, "UBOB"))
		p := w.open("run", "call")
		for by, may := range map[ledger.Actor]bool{carol: true, bob: true, alice: false, dave: false, guest: false, bot: false, token: true} {
			if err := w.MayUseWords(w.ctx(), p.ID(), carol.Person(), by); (err == nil) != may {
				t.Errorf("%s: %v", by.ID, err)
			}
		}
		if err := w.MayUseWords(w.ctx(), "other", carol.Person(), bob); !errors.Is(err, ErrNotFound) {
			t.Errorf("an ask that there isn't: %v", err)
		}
		w.abort(p)
	})
}

// A bot that may start runs decides nothing, whatever list it is in.
func TestBotsStartAndNeverDecide(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, approvers(t, "UBOT", "UBOB", "requester"), func(s *Settings) { s.Bots = []string{"BBOT"} })
		if err := w.MayBotStart("BBOT"); err != nil {
			t.Error(err)
		}
		for _, id := range []string{"", "BOTHER"} {
			wantRefused(t, w.MayBotStart(id))
		}
		p := w.open("run", "call", func(q *Request) { q.Requesters = []ledger.Person{bot.Person(), {Team: team, ID: "BBOT"}} })
		for _, by := range []ledger.Actor{bot, user("BBOT")} {
			_, err := w.ResolveByID(w.ctx(), p.ID(), approve(by))
			wantRefused(t, err)
			_, err = w.ResolveByID(w.ctx(), p.ID(), deny(by, "no"))
			wantRefused(t, err)
		}
		w.abort(p)
	})
}
