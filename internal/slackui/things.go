package slackui

import (
	"slices"
	"strconv"
	"time"

	"approvalbot/internal/ledger"
)

// The kinds of things.
const (
	kindCard     = "card"
	kindProgress = "progress"
	kindAnswer   = "answer"
)

// surface is our name where an ask lists who shows it.
const surface = "slack"

// waitHold is how long a message has to wait for its turn before we say that it waits. Most don't wait at all.
const waitHold = 400 * time.Millisecond

// A thing is one message of ours: what is known of how it stands in Slack. What it should look like isn't kept here; it
// is rendered from the journal whenever it is sent. Only the book's owner of the moment touches it.
type thing struct {
	ledger.Thing
	order int64        // of creation: older ones go first
	run   string       // empty while a message waits for its turn
	call  string       // of a card
	part  int          // of an answer
	place ledger.Place // where it belongs

	channel, ts string    // where it stands; empty: it doesn't, as far as we know
	confirmed   string    // hash of the rendering that Slack confirmed last; empty: unknown
	until       time.Time // of a card: the deadline that was printed on it
	recorded    bool      // the journal knows that it stands there (and of a card, that the ask was shown)
	final       bool      // the confirmed rendering is the last one
	settled     bool      // and the journal knows it
	gone        string    // Slack's error code, where it can't stand any more
	held        string    // the same, learned before its last state: it is left alone until that, and tried once more
	frozen      string    // Slack's error code, where its last state has to be said in another message
	left        []string  // ts of the message that it had before, which can't be edited any more

	busy      bool      // a call is under way
	looks     int       // how often it has to be looked for before it may be posted (again): it may stand there already
	plain     bool      // Slack didn't take its blocks; it gets plain ones
	bare      bool      // nor those; it gets its text alone, if that is its last state
	tries     int       // failed calls since the last that succeeded
	noes      int       // those among them where Slack said no and we don't know whether it stays one
	notBefore time.Time // when it may be tried again
	updated   time.Time // of a progress: when it was last sent
	minor     bool      // of a card that waits: all that is new on it is that people were reminded
	passing   time.Time // of a card: until when it is left as it is, because its call will hardly take longer
	shaky     time.Time // an update that may still arrive out of order was sent until then
}

// stands tells whether the thing has a message in Slack.
func (t *thing) stands() bool { return t.ts != "" }

// movable tells whether a thing whose message can't be edited gets another one, for its last state. An answer has said all
// that it will ever say, and a nudge isn't worth a second one; and where a second message can't be edited, nor will a third.
func (t *thing) movable(code string) bool {
	return slices.Contains(fixed, code) && t.Kind != kindAnswer && t.Kind != kindNudge && len(t.left) == 0
}

// leave forgets the message that a thing had.
func (t *thing) leave(ts string) {
	t.left = append(t.left, ts)
	t.channel, t.ts, t.confirmed, t.frozen = "", "", "", ""
	t.recorded, t.final, t.looks, t.tries, t.noes = false, false, 0, 0, 0
	t.notBefore, t.shaky = time.Time{}, time.Time{}
}

// A book is the reading of the journal that the outbox brings to Slack: the runs that have a place there and aren't
// settled, the messages that wait for their turn, and the things that come of both. It isn't safe for concurrent use;
// the outbox locks it.
type book struct {
	runs    map[string]*ledger.Run
	mail    map[int64]ledger.Event // messages that start runs, until their run is settled
	things  map[ledger.Thing]*thing
	byRun   map[string][]*thing
	dirty   map[*thing]bool     // may have to be sent, recorded or settled
	writing map[string]*writing // by run: what its model writes at the moment

	// Of messages that wait for their turn (offers.go):
	waits     map[string][]int64     // by session
	current   map[string]string      // by session: the run that it is at
	kept      map[int64]bool         // those that are not to be used as an answer
	withdrawn map[int64]ledger.Event // those that start nothing any more, while that is being said

	pauses map[int64]*pausing // by Seq: those whose notices may still change
	pause  *pausing           // the one that holds; nil: none
	orders int64
	upTo   int64 // Seq of the last event read
}

func newBook() *book {
	return &book{
		runs: map[string]*ledger.Run{}, mail: map[int64]ledger.Event{}, things: map[ledger.Thing]*thing{},
		waits: map[string][]int64{}, current: map[string]string{}, kept: map[int64]bool{}, withdrawn: map[int64]ledger.Event{},
		byRun: map[string][]*thing{}, dirty: map[*thing]bool{}, writing: map[string]*writing{}, pauses: map[int64]*pausing{},
	}
}

// apply reads one event.
func (b *book) apply(e ledger.Event, r *renderer) {
	b.upTo = max(b.upTo, e.Seq)
	switch body := e.Body.(type) {
	case *ledger.MessageReceived:
		b.received(e, body)
		return
	case *ledger.MessageWithdrawn:
		b.queue(e)
	case *ledger.Paused, *ledger.Resumed:
		b.paused(e)
		return
	case *ledger.RunStarted:
		if body.Place.Channel == "" {
			return
		}
		if b.runs[e.Run] == nil {
			b.runs[e.Run] = &ledger.Run{}
		}
	}
	run := b.runs[e.Run]
	if run == nil {
		return
	}
	run.Apply(e)
	b.queue(e)
	b.written(e)
	b.sync(run, r)
	b.touch(e)
	if run.Settled {
		b.forget(run)
	}
}

// received makes the progress of a message that is to start a run. Its turn may come at once.
func (b *book) received(e ledger.Event, m *ledger.MessageReceived) {
	if m.Disposition != ledger.Starts || m.Place.Channel == "" || m.Ask != nil || b.mail[e.Seq].Seq != 0 {
		return
	}
	b.mail[e.Seq] = e
	b.queue(e)
	t := b.thing(progressOf(e.Seq), "", m.Place)
	t.notBefore = e.Time.Add(waitHold)
}

func progressOf(message int64) ledger.Thing {
	return ledger.Thing{Kind: kindProgress, ID: strconv.FormatInt(message, 10)}
}

// load takes in a run that was read from the journal as a whole. Of things that the journal doesn't know to stand in
// Slack it isn't known whether they do.
func (b *book) load(run *ledger.Run, message ledger.Event, r *renderer) {
	if run.Started == nil || b.runs[run.ID] != nil {
		return
	}
	b.runs[run.ID] = run
	if run.Finished == nil {
		b.current[run.Session] = run.ID
	}
	if message.Body != nil {
		b.mail[message.Seq] = message
	}
	b.sync(run, r)
	for _, t := range b.byRun[run.ID] {
		t.looks = 1
	}
	for _, p := range run.Posted {
		t := b.things[p.Thing]
		if t == nil || t.settled {
			continue
		}
		if p.Settled && t.movable(p.Gone) {
			t.leave(p.TS)
			t.looks = 1
			continue
		}
		t.channel, t.ts, t.confirmed, t.recorded = p.Channel, p.TS, p.Rendering, true
		t.looks, t.settled, t.gone = 0, p.Settled, p.Gone
	}
}

// sync makes the things that the run now has.
func (b *book) sync(run *ledger.Run, r *renderer) {
	place := run.Started.Place
	if run.Started.Program == "" { // another program's ask is its card, and nothing else
		t := b.thing(progressOf(run.Started.Message), run.ID, place)
		if t.run == "" {
			t.run, t.notBefore = run.ID, time.Time{}
			b.byRun[run.ID] = append(b.byRun[run.ID], t)
		}
	}
	for _, c := range run.Calls {
		if a := c.Approval; a != nil && slices.Contains(a.Surfaces, surface) {
			b.thing(ledger.Thing{Kind: kindCard, ID: a.Approval}, run.ID, askPlace(a, place)).call = c.ID
			b.nudge(run, c, askPlace(a, place))
		}
	}
	if run.Finished != nil {
		for i, answer := range r.answer(run) {
			b.thing(answer.thing, run.ID, place).part = i
		}
	}
}

// askPlace is where an ask's card belongs.
func askPlace(a *ledger.Approval, run ledger.Place) ledger.Place {
	if a.Place.Channel != "" {
		return a.Place
	}
	return run
}

// thing finds a thing or makes it.
func (b *book) thing(id ledger.Thing, run string, place ledger.Place) *thing {
	if t := b.things[id]; t != nil {
		return t
	}
	b.orders++
	t := &thing{Thing: id, run: run, place: place, order: b.orders}
	b.things[id] = t
	b.dirty[t] = true
	if run != "" {
		b.byRun[run] = append(b.byRun[run], t)
	}
	return t
}

// touch marks what an event may have changed: the run's progress, the call's card, and at the run's end everything.
func (b *book) touch(e ledger.Event) {
	switch e.Body.(type) {
	case *ledger.MessagePosted, *ledger.MessageSettled:
		return // that's us
	}
	for _, t := range b.byRun[e.Run] {
		ends := e.Call == "" && t.Kind != kindAnswer
		about := (t.Kind == kindCard || t.Kind == kindNudge) && t.call == e.Call
		if t.Kind == kindProgress || ends || about {
			_, reminds := e.Body.(*ledger.ApprovalReminded)
			t.minor = about && reminds && (t.minor || !b.dirty[t])
			if _, more := e.Body.(*ledger.ApprovalAskedAgain); more && about && !t.settled {
				t.final = false // who had it asked again is to be written on it
			}
			b.dirty[t] = true
			if t.noes > 0 && t.stands() && (ends || t.Kind == kindCard) {
				t.notBefore = time.Time{} // it has something else to say; the limits hold all the same
			}
		}
	}
}

// forget drops a run of which nothing will change any more.
func (b *book) forget(run *ledger.Run) {
	for _, t := range b.byRun[run.ID] {
		delete(b.things, t.Thing)
		delete(b.dirty, t)
	}
	delete(b.byRun, run.ID)
	delete(b.writing, run.ID)
	if b.current[run.Session] == run.ID {
		delete(b.current, run.Session)
	}
	delete(b.mail, run.Started.Message)
	delete(b.runs, run.ID)
}

// card finds the card of an ask; nil if the book doesn't know the ask.
func (b *book) card(approval string) (*thing, *ledger.Call, *ledger.Run) {
	t := b.things[ledger.Thing{Kind: kindCard, ID: approval}]
	if t == nil {
		return nil, nil, nil
	}
	run := b.runs[t.run]
	if run == nil || run.Call(t.call) == nil {
		return nil, nil, nil
	}
	return t, run.Call(t.call), run
}

// at finds the thing that stands in a message.
func (b *book) at(channel, ts string) *thing {
	for _, t := range b.things {
		if t.channel == channel && t.ts == ts {
			return t
		}
	}
	return nil
}

// open tells whether a card's ask still waits for people.
func (b *book) open(t *thing) bool {
	run := b.runs[t.run]
	if t.Kind != kindCard || run == nil {
		return false
	}
	return run.Approval(t.ID).Open()
}

// passing tells whether a card is about to change by itself: its call is approved and has not ended.
func (b *book) passing(t *thing) bool {
	run := b.runs[t.run]
	if t.Kind != kindCard || run == nil {
		return false
	}
	switch endingOf(run.Call(t.call)) {
	case endStarting, endRunning:
		return true
	}
	return false
}

// ended tells whether a thing's run is over.
func (b *book) ended(t *thing) bool {
	run := b.runs[t.run]
	return run != nil && run.Finished != nil
}

// render gives a thing as it should stand now, and whether that is its last state. A card that waits carries a deadline:
// the one that counts already, else the one that will count if the card is posted now.
func (b *book) render(t *thing, r *renderer, now time.Time) (out rendering, until time.Time, final bool) {
	run := b.runs[t.run]
	switch t.Kind {
	case kindProgress:
		if run == nil {
			w := b.waiter(messageOf(t))
			out, final = r.waiting(w), w.withdrawn != nil
			if b.pause != nil && !final {
				out = r.held(t.Thing, b.pause)
			}
			break
		}
		out, final = r.progressNow(b.mail[messageOf(t)], run, b.writing[t.run]), r.progressFinal(run)
	case kindNotice:
		if p := b.pausingOf(t); p != nil {
			out, final = r.notice(p, t.Thing), !p.resumed.IsZero()
		}
	case kindCard:
		c := run.Call(t.call)
		until = deadline(t, c.Approval, now)
		out, final = r.card(run, c, until), r.cardFinal(c, run)
	case kindFile:
		out, final = r.answerFile(run), true
	case kindNudge:
		out, final = r.nudge(run, run.Call(t.call), t.ID)
	case kindAnswer:
		if all := r.answer(run); t.part < len(all) {
			out = all[t.part]
		}
		final = true
	}
	switch {
	case out.file != nil:
	case t.bare && final:
		out = bare(out)
	case t.plain:
		out = plain(out)
	}
	return out, until, final
}

func deadline(t *thing, a *ledger.Approval, now time.Time) time.Time {
	if until := a.Until(); !until.IsZero() {
		return until
	}
	if t.stands() && !t.until.IsZero() {
		return t.until
	}
	return now.Add(a.Timeout).UTC().Round(0)
}
