package approvals

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
	"sync"
	"time"

	"approvalbot/internal/ledger"
)

// A pause is the operators' brake: from one event of the journal ([ledger.Paused]) to the next [ledger.Resumed] no run
// starts, nobody is asked and nothing is approved. What is asked already can still be denied, and its deadline runs on; what
// the policy allows by itself goes on in the runs that there are.
//
// The state is a reading of the journal: [Registry.LoadPause] reads it at the start, and every event about it counts once,
// by its Seq, whether this process has written it or only heard of it. The journal also says what came first: whatever a
// pause forbids is recorded through [Registry.Unpaused], which no pause overtakes. So behind a paused there is no start, no
// ask and no approval.

// A Pause is one that holds.
type Pause struct {
	Seq    int64 // of its event
	By     ledger.Actor
	At     time.Time
	Reason string // the operator's words; may be empty
}

// Clause says it for the log, for models and for programs: "approvalbot was paused by Alice: the database is on fire".
func (p Pause) Clause() string {
	s := "approvalbot was paused by " + p.By.DisplayName()
	if reason := strings.TrimRight(p.Reason, "."); reason != "" {
		s += ": " + reason
	}
	return s
}

// A PausedError says that something is not done because of a pause. Surfaces that don't know it find a [*RefusedError] in it.
type PausedError struct {
	Pause Pause
	Ask   bool // it was about approving an ask, which can still be denied
}

func (e *PausedError) Error() string { return e.Pause.Clause() }

// Unwrap gives the sentence for whoever is refused.
func (e *PausedError) Unwrap() error {
	s := fmt.Sprintf("%s. Nothing starts and nothing can be approved until it is resumed.", e.Pause.Clause())
	if e.Ask {
		s += " You can deny this."
	}
	return &RefusedError{Reason: strings.ToUpper(s[:1]) + s[1:]}
}

// pauses is where this process stands with pauses.
type pauses struct {
	// gate is held for reading while something is recorded that a pause forbids, and for writing while a pause is.
	gate sync.RWMutex

	// Guarded by Registry.mu.
	seq     int64 // of the last event about it that counted
	now     *Pause
	resumed chan struct{} // closed when now ends
}

// A Log is where pauses are read from.
type Log interface {
	Read(ctx context.Context, after int64, f ledger.Filter) iter.Seq2[ledger.Event, error]
}

// ReadPause finds the pause that holds at the end of a journal; false: none does.
func ReadPause(ctx context.Context, log Log) (Pause, bool, error) {
	var now *Pause
	for e, err := range log.Read(ctx, 0, ledger.Filter{Session: ledger.PausesSession, Kinds: []string{"paused", "resumed"}}) {
		if err != nil {
			return Pause{}, false, fmt.Errorf("read whether approvalbot is paused: %w", err)
		}
		now = pauseAfter(now, e)
	}
	if now == nil {
		return Pause{}, false, nil
	}
	return *now, true, nil
}

// pauseAfter is the pause that holds after one more event. A second paused changes nothing: the first one's words stand.
func pauseAfter(now *Pause, e ledger.Event) *Pause {
	switch b := e.Body.(type) {
	case *ledger.Paused:
		if now == nil {
			return &Pause{Seq: e.Seq, By: e.Actor, At: e.Time, Reason: b.Reason}
		}
	case *ledger.Resumed:
		return nil
	}
	return now
}

// PauseEvent is the event of a pause, and ResumeEvent that of its end.
func PauseEvent(by ledger.Actor, reason string) ledger.Event {
	d := Decision{Type: ledger.Denied, Reason: reason}
	d, _ = d.checked() // the same limits as for every other reason
	return ledger.Event{Session: ledger.PausesSession, Actor: by, Body: &ledger.Paused{Reason: d.Reason}}
}

// ResumeEvent is the event that ends a pause.
func ResumeEvent(by ledger.Actor) ledger.Event {
	return ledger.Event{Session: ledger.PausesSession, Actor: by, Body: &ledger.Resumed{}}
}

// LoadPause reads whether an earlier process was paused. It is called before anything can start.
func (r *Registry) LoadPause(ctx context.Context, log Log) error {
	p, paused, err := ReadPause(ctx, log)
	if err != nil || !paused {
		return err
	}
	r.Heard(ledger.Event{Seq: p.Seq, Time: p.At, Actor: p.By, Body: &ledger.Paused{Reason: p.Reason}})
	return nil
}

// Heard takes in an event of the journal, if it is about pauses. Whoever follows the journal may call it for every event:
// an append that seemed to fail and took place is known then, too.
func (r *Registry) Heard(e ledger.Event) {
	switch e.Body.(type) {
	case *ledger.Paused, *ledger.Resumed:
	default:
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	p := &r.pauses
	if e.Seq <= p.seq {
		return
	}
	p.seq = e.Seq
	was := p.now
	p.now = pauseAfter(was, e)
	switch {
	case was == nil && p.now != nil:
		p.resumed = make(chan struct{})
	case was != nil && p.now == nil:
		close(p.resumed)
	}
}

// Paused is the pause that holds now; false: none does.
func (r *Registry) Paused() (Pause, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.pauses.now == nil {
		return Pause{}, false
	}
	return *r.pauses.now, true
}

// Resumed is closed when there is no pause, or when the one that holds now has ended.
func (r *Registry) Resumed() <-chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.pauses.now == nil {
		return never
	}
	return r.pauses.resumed
}

// never has nothing to wait for.
var never = func() <-chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}()

// Unpaused records what a pause forbids: it calls record, or returns a [*PausedError] without calling it. A pause is
// recorded before or after that, never meanwhile. record must not call it again.
func (r *Registry) Unpaused(record func() error) error {
	r.pauses.gate.RLock()
	defer r.pauses.gate.RUnlock()
	if p, paused := r.Paused(); paused {
		return &PausedError{Pause: p}
	}
	return record()
}

// Pause stops everything new. If there is a pause already, that one holds, and before is true. Errors: [*RefusedError],
// [ledger.ErrNotRecorded].
func (r *Registry) Pause(ctx context.Context, by ledger.Actor, reason string) (p Pause, before bool, err error) {
	by, err = r.MayOperate(ctx, by)
	if err != nil {
		return Pause{}, false, err
	}
	r.pauses.gate.Lock()
	defer r.pauses.gate.Unlock()
	if p, paused := r.Paused(); paused {
		return p, true, nil
	}
	if err := r.recordPause(ctx, PauseEvent(by, reason)); err != nil {
		return Pause{}, false, err
	}
	p, _ = r.Paused()
	return p, false, nil
}

// Resume ends the pause and returns it; false: there was none.
func (r *Registry) Resume(ctx context.Context, by ledger.Actor) (ended Pause, was bool, err error) {
	by, err = r.MayOperate(ctx, by)
	if err != nil {
		return Pause{}, false, err
	}
	r.pauses.gate.Lock()
	defer r.pauses.gate.Unlock()
	ended, was = r.Paused()
	if !was {
		return Pause{}, false, nil
	}
	return ended, true, r.recordPause(ctx, ResumeEvent(by))
}

// recordPause writes an event about pauses and takes it in. The caller holds the gate.
func (r *Registry) recordPause(ctx context.Context, e ledger.Event) error {
	committed, err := r.journal.Append(context.WithoutCancel(ctx), e)
	if err != nil {
		return fmt.Errorf("record a pause or its end: %w", err)
	}
	r.Heard(committed[0])
	return nil
}

// MayOperate tells whether somebody may pause and resume approvalbot, and returns them as they are to be recorded: full
// members whom APPROVALBOT_OPERATORS lists, and whoever gives a command on the machine itself. Others get a
// [*RefusedError].
func (r *Registry) MayOperate(ctx context.Context, by ledger.Actor) (ledger.Actor, error) {
	const act = "pause or resume approvalbot"
	q := question{list: r.settings.Operators, act: act}
	switch by.Kind {
	case ledger.ActorOperator:
		return by, nil
	case ledger.ActorUser:
	default:
		return by, q.refuse("Only people can %s.", act)
	}
	if q.list.Empty() {
		return by, q.refuse("Nobody is listed who can %s here (APPROVALBOT_OPERATORS). On its machine, approvalbot pause does it.", act)
	}
	lookups, cancel := context.WithTimeout(ctx, lookupLimit)
	defer cancel()
	who, err := r.fullMember(lookups, q, by.Person(), act)
	if err == nil {
		err = r.mayListed(lookups, q, by.Person(), act)
	}
	if err == nil && lookups.Err() != nil {
		err = r.unknown(q, by.Person(), act, cmp.Or(context.Cause(ctx), lookups.Err()))
	}
	if err != nil {
		return by, err
	}
	return who.actor(by), nil
}

// mayStopAsks tells whether somebody may decide one of the run's pending asks, or operates approvalbot: then they may stop
// the run as well.
func (r *Registry) mayStopAsks(ctx context.Context, by ledger.Actor, run string) bool {
	if by.Kind == ledger.ActorOperator {
		return true
	}
	r.mu.Lock()
	asks := make([]*ask, 0, len(r.byRun[run]))
	for _, a := range r.byRun[run] {
		asks = append(asks, a)
	}
	r.mu.Unlock()
	for _, a := range asks {
		if _, err := r.mayDecide(ctx, r.who(a), Decision{Type: ledger.Denied, By: by}); err == nil {
			return true
		}
	}
	if r.settings.Operators.Empty() {
		return false
	}
	_, err := r.MayOperate(ctx, by)
	return err == nil
}

// unpaused is Unpaused for a decision: a denial always counts.
func (r *Registry) unpaused(d Decision, record func() error) error {
	if d.Type == ledger.Denied {
		return record()
	}
	err := r.Unpaused(record)
	if e, ok := errors.AsType[*PausedError](err); ok {
		return &PausedError{Pause: e.Pause, Ask: true}
	}
	return err
}

// MaySee tells whether somebody may be told what is going on in the conversations that they are in: full members only. If
// not, the error is a [*RefusedError].
func (r *Registry) MaySee(ctx context.Context, by ledger.Actor) error {
	const act = "use this"
	q := question{act: act}
	if by.Kind != ledger.ActorUser {
		return q.refuse("Only people can %s.", act)
	}
	lookups, cancel := context.WithTimeout(ctx, lookupLimit)
	defer cancel()
	_, err := r.fullMember(lookups, q, by.Person(), act)
	return err
}
