package slackui

import (
	"slices"
	"strconv"
	"time"

	"approvalbot/internal/ledger"
)

// The kinds of things.
const (
	kindCard     = "card"     // an ask where its run talks; the ID is the approvalId
	kindCopy     = "copy"     // the same ask elsewhere: approvalId/1, approvalId/2, …
	kindSet      = "set"      // several asks of one round of a run: runId/round/part, elsewhere runId/round/part/1, …
	kindProgress = "progress" // of a run; Seq of its message
	kindAnswer   = "answer"
)

// kinds are all of them.
var kinds = []string{kindCard, kindCopy, kindSet, kindProgress, kindAnswer, kindFile, kindNudge, kindNotice}

// surface is our name where an ask lists who shows it.
const surface = "slack"

// waitHold is how long a message has to wait for its turn before we say that it waits. Most don't wait at all.
const waitHold = 400 * time.Millisecond

// A thing is one message of ours: what is known of how it stands in Slack. What it should look like isn't kept here; it
// is rendered from the journal whenever it is sent. Only the book's owner of the moment touches it.
type thing struct {
	ledger.Thing
	order  int64        // of creation: older ones go first
	run    string       // empty while a message waits for its turn
	calls  []string     // whose asks it carries, in the order in which the run made them
	slot   int          // of an ask: 0 where its run talks, else which of ApprovalRequested.Elsewhere, from 1
	part   int          // of an answer
	nudged string       // of a nudge: the call whose ask it is about
	place  ledger.Place // where it belongs

	channel, ts string               // where it stands; empty: it doesn't, as far as we know
	confirmed   string               // hash of the rendering that Slack confirmed last; empty: unknown
	untils      map[string]time.Time // by approvalId: the deadlines that were printed on it
	shows       []string             // approvalIds that could be decided on it when it was sent last
	told        map[string]bool      // those among them of which the journal knows it
	recorded    bool                 // the journal knows that it stands there
	final       bool                 // the confirmed rendering is the last one
	reopened    bool                 // since it was sent last there is more to say after all
	settled     bool                 // and the journal knows it
	gone        string               // Slack's error code, where it can't stand any more
	held        string               // the same, learned before its last state: it is left alone until that, and tried once more
	frozen      string               // Slack's error code, where its last state has to be said in another message
	left        []string             // ts of the message that it had before, which can't be edited any more

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
	address   address   // of a card: where a click can be answered with it
	shaky     time.Time // an update that may still arrive out of order was sent until then
}

// stands tells whether the thing has a message in Slack.
func (t *thing) stands() bool { return t.ts != "" }

// carries tells whether there are asks on it.
func (t *thing) carries() bool { return len(t.calls) > 0 }

// call is the one call that it is about; empty where there are several, or none.
func (t *thing) call() string {
	if len(t.calls) != 1 {
		return ""
	}
	return t.calls[0]
}

// owes tells whether the journal doesn't know of all asks yet that stand on it.
func (t *thing) owes() bool {
	return slices.ContainsFunc(t.shows, func(id string) bool { return !t.told[id] })
}

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
	t.untils, t.shows, t.told = nil, nil, nil
	t.notBefore, t.shaky, t.address = time.Time{}, time.Time{}, address{}
}

// A book is the reading of the journal that the outbox brings to Slack: the runs that have a place there and aren't
// settled, the messages that wait for their turn, and the things that come of both. It isn't safe for concurrent use;
// the outbox locks it.
type book struct {
	runs    map[string]*ledger.Run
	mail    map[int64]ledger.Event // messages that start runs, until their run is settled
	things  map[ledger.Thing]*thing
	stands  map[[2]string]*thing // by channel and ts: what is known to stand there
	byRun   map[string][]*thing
	byAsk   map[string][]*thing // the messages that carry an ask, by approvalId
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
		runs: map[string]*ledger.Run{}, mail: map[int64]ledger.Event{}, things: map[ledger.Thing]*thing{}, stands: map[[2]string]*thing{},
		waits: map[string][]int64{}, current: map[string]string{}, kept: map[int64]bool{}, withdrawn: map[int64]ledger.Event{},
		byRun: map[string][]*thing{}, byAsk: map[string][]*thing{}, dirty: map[*thing]bool{}, writing: map[string]*writing{},
		pauses: map[int64]*pausing{},
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
		if b.runs[e.Run] == nil { // also one without a place in Slack: its asks may stand elsewhere
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
	b.follow(run, e, r)
	b.touch(e)
	if run.Settled || run.Finished != nil && len(b.byRun[run.ID]) == 0 {
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
			b.leave(t, p.TS)
			t.looks = 1
			continue
		}
		b.stand(t, p.Channel, p.TS)
		t.confirmed, t.recorded = p.Rendering, true
		t.looks, t.settled, t.gone = 0, p.Settled, p.Gone
	}
}

// sync makes the things that the run now has.
func (b *book) sync(run *ledger.Run, r *renderer) {
	b.progress(run)
	asked := asksInOrder(run)
	b.carry(run, asked)
	for _, c := range asked {
		b.nudge(run, c)
	}
	b.answers(run, r)
}

// follow makes the things that the run has since an event: the same as sync, without looking at everything that the run has
// done so far. A run may make hundreds of calls.
func (b *book) follow(run *ledger.Run, e ledger.Event, r *renderer) {
	c := run.Call(e.Call)
	asked := c != nil && c.Approval != nil
	switch body := e.Body.(type) {
	case *ledger.RunStarted:
		b.sync(run, r)
	case *ledger.ApprovalRequested, *ledger.ApprovalEscalated:
		if asked {
			b.carry(run, askedWith(run, c))
			b.nudge(run, c)
		}
	case *ledger.ApprovalReminded:
		if asked {
			b.nudge(run, c)
		}
	case *ledger.MessagePosted:
		b.nudgeAt(run, body.Thing)
	case *ledger.MessageSettled:
		b.nudgeAt(run, body.Thing)
	default:
		b.answers(run, r)
	}
}

// nudgeAt makes the nudges that had to wait until it is known where their card stands.
func (b *book) nudgeAt(run *ledger.Run, id ledger.Thing) {
	if t := b.things[id]; t != nil {
		for _, c := range b.asks(t) {
			b.nudge(run, c)
		}
	}
}

// answers makes the messages of the run's end.
func (b *book) answers(run *ledger.Run, r *renderer) {
	if run.Finished == nil || run.Started.Place.Channel == "" {
		return
	}
	for i, answer := range r.answer(run) {
		b.thing(answer.thing, run.ID, run.Started.Place).part = i
	}
}

// progress makes the message about the run, or takes over that of the message which waited for its turn.
func (b *book) progress(run *ledger.Run) {
	place := run.Started.Place
	if run.Started.Program == "" && place.Channel != "" { // another program's ask is its card, and nothing else
		t := b.thing(progressOf(run.Started.Message), run.ID, place)
		if t.run == "" {
			t.run, t.notBefore = run.ID, time.Time{}
			b.byRun[run.ID] = append(b.byRun[run.ID], t)
		}
	}
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

// touch marks what an event may have changed: the run's progress, what carries the call's ask, and at the run's end
// everything.
func (b *book) touch(e ledger.Event) {
	switch body := e.Body.(type) {
	case *ledger.MessagePosted:
		b.moved(body.Thing)
		return
	case *ledger.MessageSettled:
		b.moved(body.Thing)
		return
	}
	for _, t := range b.byRun[e.Run] {
		ends := e.Call == "" && t.Kind != kindAnswer
		about := e.Call != "" && (t.nudged == e.Call || slices.Contains(t.calls, e.Call))
		if t.Kind == kindProgress || ends || about {
			_, reminds := e.Body.(*ledger.ApprovalReminded)
			t.minor = about && reminds && (t.minor || !b.dirty[t])
			if _, more := e.Body.(*ledger.ApprovalAskedAgain); more && about && !t.settled {
				t.final, t.reopened = false, true // who had it asked again is to be written on it
			}
			b.dirty[t] = true
			t.address.tried = t.address.tried && !about
			if t.noes > 0 && t.stands() && (ends || about) {
				t.notBefore = time.Time{} // it has something else to say; the limits hold all the same
			}
		}
	}
}

// forget drops a run of which nothing will change any more.
func (b *book) forget(run *ledger.Run) {
	for _, t := range b.byRun[run.ID] {
		b.remove(t)
	}
	for _, c := range run.Calls {
		if c.Approval != nil {
			delete(b.byAsk, c.Approval.Approval)
		}
	}
	delete(b.byRun, run.ID)
	delete(b.writing, run.ID)
	if b.current[run.Session] == run.ID {
		delete(b.current, run.Session)
	}
	delete(b.mail, run.Started.Message)
	delete(b.runs, run.ID)
}

// ask finds an ask by its approvalId; nil if the book doesn't know it.
func (b *book) ask(approval string) (*ledger.Call, *ledger.Run) {
	for _, t := range b.byAsk[approval] {
		run := b.runs[t.run]
		if c := run.Asked(approval); c != nil {
			return c, run
		}
	}
	return nil, nil
}

// at finds the thing that stands in a message.
func (b *book) at(channel, ts string) *thing { return b.stands[[2]string{channel, ts}] }

// stand takes in where a thing stands.
func (b *book) stand(t *thing, channel, ts string) {
	b.lift(t)
	t.channel, t.ts = channel, ts
	if ts != "" {
		b.stands[[2]string{channel, ts}] = t
	}
}

// lift forgets where a thing stands.
func (b *book) lift(t *thing) {
	if at := [2]string{t.channel, t.ts}; b.stands[at] == t {
		delete(b.stands, at)
	}
}

// leave takes in that a thing's message can't be edited any more.
func (b *book) leave(t *thing, ts string) {
	b.lift(t)
	t.leave(ts)
}

// remove drops a thing that nothing will change about any more.
func (b *book) remove(t *thing) {
	b.lift(t)
	delete(b.things, t.Thing)
	delete(b.dirty, t)
}

// asks are those that a thing carries, with their calls, in the order of the calls.
func (b *book) asks(t *thing) []*ledger.Call {
	run := b.runs[t.run]
	if run == nil || len(t.calls) == 0 {
		return nil
	}
	calls := make([]*ledger.Call, 0, len(t.calls))
	for _, id := range t.calls {
		if c := run.Call(id); c != nil && c.Approval != nil {
			calls = append(calls, c)
		}
	}
	return calls
}

// open tells whether an ask on it still waits for people.
func (b *book) open(t *thing) bool {
	return slices.ContainsFunc(b.asks(t), func(c *ledger.Call) bool { return c.Approval.Open() })
}

// passing tells whether a card is about to change by itself: its call is approved and has not ended.
func (b *book) passing(t *thing) bool {
	return slices.ContainsFunc(b.asks(t), func(c *ledger.Call) bool {
		end := endingOf(c)
		return end == endStarting || end == endRunning
	})
}

// ended tells whether a thing's run is over.
func (b *book) ended(t *thing) bool {
	run := b.runs[t.run]
	return run != nil && run.Finished != nil
}

// A wanted is a thing as it should stand now.
type wanted struct {
	rendering
	final  bool                 // it is its last state
	untils map[string]time.Time // of asks that wait: the deadlines on it
	shows  []string             // the asks that can be decided on it
}

// render gives a thing as it should stand now. An ask that waits carries a deadline: the one that counts already, else the
// one that will count if it is shown now.
func (b *book) render(t *thing, r *renderer, now time.Time) (out wanted) {
	run := b.runs[t.run]
	switch {
	case t.Kind == kindProgress:
		out.rendering, out.final = b.renderProgress(t, run, r)
	case t.Kind == kindNotice:
		if p := b.pausingOf(t); p != nil {
			out.rendering, out.final = r.notice(p, t.Thing), !p.resumed.IsZero()
		}
	case t.carries():
		out = b.carried(t, run, r, now)
	case t.Kind == kindFile:
		out.rendering, out.final = r.answerFile(run), true
	case t.Kind == kindNudge:
		out.rendering, out.final = r.nudge(run, run.Call(t.nudged), t.ID)
	case t.Kind == kindAnswer:
		if all := r.answer(run); t.part < len(all) {
			out.rendering = all[t.part]
		}
		out.final = true
	}
	switch {
	case out.file != nil:
	case t.bare && out.final:
		out.rendering = bare(out.rendering)
	case t.plain:
		out.rendering = plain(out.rendering)
	}
	return out
}

// renderProgress gives the message about a run, or about a message that waits for its turn.
func (b *book) renderProgress(t *thing, run *ledger.Run, r *renderer) (out rendering, final bool) {
	if run != nil {
		return r.progressNow(b.mail[messageOf(t)], run, b.writing[t.run]), r.progressFinal(run)
	}
	w := b.waiter(messageOf(t))
	if b.pause != nil && w.withdrawn == nil {
		return r.held(t.Thing, b.pause), false
	}
	return r.waiting(w), w.withdrawn != nil
}

// deadline is what to print where an ask waits. Until the journal knows one, all its messages say the same.
func (b *book) deadline(a *ledger.Approval, now time.Time) time.Time {
	if until := a.Until(); !until.IsZero() {
		return until
	}
	for _, t := range b.byAsk[a.Approval] {
		if until := t.untils[a.Approval]; !until.IsZero() && (t.stands() || t.busy) {
			return until
		}
	}
	return now.Add(a.Timeout).UTC().Round(0)
}
