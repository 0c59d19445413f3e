package approvals

import (
	"context"
	"slices"
	"strings"
	"time"

	"approvalbot/internal/ledger"
)

// An ask is a pending approval in memory. What it holds about people's decisions comes from committed events only, so
// it can be behind the journal, but never ahead of it.
type ask struct {
	Key
	id      string
	session string
	timeout time.Duration

	// turn holds one token: whoever has it may append events about this ask. It is a channel so that a caller can stop
	// waiting for it. Open has it until the request is committed, so nothing can be appended before that.
	turn chan struct{}
	// opening is closed when Open knows whether the request is in the journal; after that it is nil. Guarded by Registry.mu.
	opening chan struct{}
	// moved wakes the waiter when the moment at which the ask falls due has changed.
	moved chan struct{}
	// done is closed when the ask is over.
	done chan struct{}

	// doubt says that a change of the arguments may be in the journal although its append failed. Whoever has the turn
	// looks before anything else is decided. It is theirs.
	doubt bool

	// Guarded by Registry.mu.
	who        question // Open sets it, changes of the arguments do
	state      ledger.Approval
	unshowable map[string]string // by surface: why it can't show it
	over       *Resolution
	unsaid     int // reminders that there was nobody for
}

func newAsk(key Key, id, session string) *ask {
	return &ask{
		Key:     key,
		id:      id,
		session: session,
		turn:    make(chan struct{}, 1),
		opening: make(chan struct{}),
		moved:   make(chan struct{}, 1),
		done:    make(chan struct{}),
	}
}

func (a *ask) ids() ids { return ids{a.session, a.Run, a.Call, a.id} }

func (a *ask) lock(ctx context.Context) error {
	select {
	case a.turn <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (a *ask) unlock() { <-a.turn }

func (a *ask) wake() {
	select {
	case a.moved <- struct{}{}:
	default: // it is about to look anyway
	}
}

// opened tells whether the request is in the journal.
func (a *ask) opened() bool { return a.state.Seq != 0 }

// apply takes a committed event into memory. It reports whether that changed anything.
func (a *ask) apply(e ledger.Event) bool {
	switch b := e.Body.(type) {
	case *ledger.ApprovalRequested:
		if b.Approval != a.id {
			return false
		}
	case *ledger.ApprovalVoted:
		if a.voted(e.Actor.Person()) {
			return false
		}
	}
	if !a.state.Apply(e) {
		return false
	}
	switch b := e.Body.(type) {
	case *ledger.ApprovalAmended:
		a.who = a.who.amended(b)
	case *ledger.ApprovalEscalated:
		a.who.list = a.who.list.and(b.Approvers)
		a.who.counts = slices.Clone(a.state.Approvers)
	case *ledger.ApprovalResolved:
		a.finish(Resolution{ApprovalResolved: *b, At: e.Time, Seq: e.Seq})
	}
	return true
}

func (a *ask) finish(r Resolution) {
	a.over = &r
	close(a.done)
}

func (a *ask) shownAt(channel, ts string) bool {
	return slices.ContainsFunc(a.state.Shown, func(s ledger.ApprovalShown) bool {
		return s.Channel == channel && s.TS == ts
	})
}

func (a *ask) voted(p ledger.Person) bool {
	return slices.ContainsFunc(a.state.Votes, func(v ledger.Vote) bool { return samePerson(v.By.Person(), p) })
}

// approvals counts the different people who have approved. A person has one vote, so votes are people.
func (a *ask) approvals() int {
	n := 0
	for _, v := range a.state.Votes {
		if v.Type == ledger.Approved {
			n++
		}
	}
	return n
}

// due is when the ask ends if nobody does anything. The one who waits asks for nothing else most of the time, and there
// may be thousands of them: the words are for the end.
func (a *ask) due() time.Time {
	if len(a.state.Shown) > 0 {
		return a.state.Until()
	}
	if _, everywhere := a.nowhere(); everywhere {
		return time.Time{}
	}
	return a.state.ShowBy
}

// lapse is as what the ask ends then.
func (a *ask) lapse() ending {
	if len(a.state.Shown) > 0 {
		moved := a.state.Until().Sub(a.state.Shown[0].Until)
		return ending{ledger.SourceTimeout, "nobody answered within " + inWords(a.timeout+moved)}
	}
	if reasons, everywhere := a.nowhere(); everywhere {
		return ending{ledger.SourceUndeliverable, reasons}
	}
	return ending{ledger.SourceUndeliverable, "it could not be shown to anyone in time"}
}

// nowhere tells whether every surface has said that it can't show the ask, and why.
func (a *ask) nowhere() (reasons string, everywhere bool) {
	var all []string
	for _, s := range a.state.Surfaces {
		reason, said := a.unshowable[s]
		if !said {
			return "", false
		}
		if len(a.state.Surfaces) > 1 {
			reason = s + ": " + reason
		}
		all = append(all, reason)
	}
	return strings.Join(all, "; "), true
}

func (a *ask) snapshot() Snapshot {
	s := Snapshot{Key: a.Key, ID: a.id, Session: a.session, Ask: a.state}
	// They only grow: without spare room what comes later doesn't touch the snapshot, nor the other way round.
	s.Ask.Shown = slices.Clip(a.state.Shown)
	s.Ask.Votes = slices.Clip(a.state.Votes)
	s.Ask.Void = slices.Clip(a.state.Void)
	s.Ask.Amended = slices.Clip(a.state.Amended)
	s.Ask.Extended = slices.Clip(a.state.Extended)
	s.Ask.Reminded = slices.Clip(a.state.Reminded)
	s.Ask.Escalated = slices.Clip(a.state.Escalated)
	return s
}

// An ending is how an ask ends without a decision of people.
type ending struct {
	source ledger.Source
	reason string
}

func (e ending) body(id string) *ledger.ApprovalResolved {
	return &ledger.ApprovalResolved{Approval: id, Type: ledger.Denied, Source: e.source, Reason: e.reason}
}
