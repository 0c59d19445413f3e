package slackui

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/slack-go/slack"

	"approvalbot/internal/approvals"
	"approvalbot/internal/ledger"
)

const (
	// callsMost is how many calls are under way at once.
	callsMost = 16

	// lateAfter is how long a card's post may take before its deadline is counted anew: people get the time that it says.
	lateAfter = 2 * time.Second

	// shakyFor is how long an update whose answer never came may still arrive, after one that was sent later.
	shakyFor = 15 * time.Second

	// lookAgain is how long a post that was never answered may take to arrive.
	lookAgain = 5 * time.Second

	// usualTries is how often a call may fail before its message has to let others go first.
	usualTries = 3

	// askNoes and otherNoes are how often Slack may say no to a post, for a reason that we don't know, before the thing is
	// given up: an ask within seconds, so that nobody waits for an answer that can't come, all else within half an hour.
	askNoes   = 4
	otherNoes = 11

	// findNoes is the same for looking for a message.
	findNoes = 3

	findPage  = 200
	findPages = 20
)

// An outbox brings what stands in Slack to what the journal says. One goroutine decides what is sent next; each call
// runs in a goroutine of its own, one per thing at most, so that what is sent later can't arrive earlier. What a thing
// looks like is rendered in the moment of sending.
type outbox struct {
	client    *Client
	journal   *ledger.Ledger
	approvals *approvals.Registry
	renderer  *renderer
	log       *slog.Logger
	wake      chan struct{} // holds one: something changed

	mu       sync.Mutex
	book     *book
	posts    map[string]*channelState
	updates  bucket
	finds    bucket
	opens    bucket
	rooms    map[string]string // by user: the direct message with them
	calls    int               // under way
	settling map[string]bool   // runs whose settling is being recorded, or has to wait
	stopping bool              // only endings are brought out still
	err      error             // Slack refuses our token
	wg       sync.WaitGroup    // calls

	filesMu          sync.Mutex
	heard            func(ledger.Event) // is told of every event that was read; nil: nobody
	approvalsChannel string             // where approvals are collected; empty: nowhere

	files map[string]string // approvalId and channel to the address of the file with the full text
}

// channelState is a channel's budget. One post at a time keeps the order of what is posted.
type channelState struct {
	bucket
	posting bool
}

func newOutbox(c *Client, j *ledger.Ledger, a *approvals.Registry, r *renderer, log *slog.Logger) *outbox {
	return &outbox{
		client: c, journal: j, approvals: a, renderer: r, log: log, wake: make(chan struct{}, 1),
		book: newBook(), posts: map[string]*channelState{}, settling: map[string]bool{}, files: map[string]string{},
		updates: bucket{every: updateEvery, burst: updateBurst}, finds: bucket{every: findEvery, burst: findBurst},
		opens: bucket{every: openEvery, burst: openBurst}, rooms: map[string]string{},
	}
}

// poke makes the deciding goroutine look again.
func (o *outbox) poke() {
	select {
	case o.wake <- struct{}{}:
	default:
	}
}

// backlog counts what has to be sent, recorded or settled, by kind.
func (o *outbox) backlog() map[string]int {
	n := map[string]int{}
	for _, kind := range kinds {
		n[kind] = 0
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	for t := range o.book.dirty {
		n[t.Kind]++
	}
	return n
}

// run sends until ctx ends, and waits for the calls that are under way then. The calls end with ctx, too.
func (o *outbox) run(ctx context.Context) error {
	defer o.wg.Wait()
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		next, err := o.dispatch(ctx)
		if err != nil {
			return err
		}
		timer.Reset(next)
		select {
		case <-o.wake:
		case <-timer.C:
		case <-ctx.Done():
			return nil
		}
	}
}

// rank orders what competes for the same budget: asks, then answers, then nudges, then endings, then progress, to which
// belongs what is worth no more: that people were reminded, on a card that says the rest already.
type rank int

const (
	rankAsk rank = iota
	rankAnswer
	rankNudge
	rankEnding
	rankQuiet // of nudges whose ask is over
	rankProgress
)

func (o *outbox) rank(t *thing) rank {
	switch {
	case o.book.open(t) && t.minor && t.stands():
		return rankProgress
	case o.book.open(t):
		return rankAsk
	case t.Kind == kindAnswer, t.Kind == kindFile, t.Kind == kindNotice:
		return rankAnswer
	case t.Kind == kindNudge && o.book.over(t):
		return rankQuiet
	case t.Kind == kindNudge:
		return rankNudge
	case t.carries(), o.book.ended(t), o.book.isWithdrawn(t):
		return rankEnding
	}
	return rankProgress
}

// dispatch starts everything that may start now, and says when to look again at the latest.
func (o *outbox) dispatch(ctx context.Context) (time.Duration, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.err != nil {
		return 0, o.err
	}
	now := time.Now()
	next := now.Add(time.Hour)
	for _, t := range o.queue() {
		if at := o.step(ctx, t, now); !at.IsZero() && at.Before(next) {
			next = at
		}
	}
	return max(next.Sub(now), 0), nil
}

// queue lists the things to look at, the most urgent first.
func (o *outbox) queue() []*thing {
	type entry struct {
		t    *thing
		rank rank
		late int // what failed again and again comes after the others
	}
	all := make([]entry, 0, len(o.book.dirty))
	for t := range o.book.dirty {
		all = append(all, entry{t, o.rank(t), max(t.tries-usualTries, 0)})
	}
	slices.SortFunc(all, func(a, b entry) int {
		return cmp.Or(cmp.Compare(a.rank, b.rank), cmp.Compare(a.late, b.late), cmp.Compare(a.t.order, b.t.order))
	})
	out := make([]*thing, len(all))
	for i, e := range all {
		out[i] = e.t
	}
	return out
}

// step does the next thing for a thing, or says when that can be done. The zero time: not before something changes.
func (o *outbox) step(ctx context.Context, t *thing, now time.Time) time.Time {
	switch {
	case t.busy:
		return time.Time{} // it is looked at again when its call ends
	case o.book.spent(t):
		o.book.drop(t)
		return time.Time{}
	case t.settled:
		delete(o.book.dirty, t)
		return time.Time{}
	case now.Before(t.notBefore):
		return t.notBefore
	case o.calls >= callsMost:
		return time.Time{}
	case t.gone != "" || t.final && t.confirmed != "" && t.recorded:
		return o.settle(ctx, t)
	case t.stands() && (t.run != "" || t.Kind == kindNotice) && (!t.recorded || t.owes()):
		untils := t.untils
		o.start(ctx, t, func(ctx context.Context) { o.record(ctx, t, untils) })
		return time.Time{}
	case t.stands() && t.frozen != "":
		o.start(ctx, t, func(ctx context.Context) { o.abandon(ctx, t) })
		return time.Time{}
	case t.unopened():
		return o.room(ctx, t, now)
	case !t.stands() && t.looks > 0:
		return o.find(ctx, t, now)
	case !t.stands():
		return o.post(ctx, t, now)
	}
	return o.update(ctx, t, now)
}

// start runs a call for a thing in a goroutine of its own.
func (o *outbox) start(ctx context.Context, t *thing, call func(context.Context)) {
	t.busy = true
	o.calls++
	o.wg.Go(func() {
		call(ctx)
		o.mu.Lock()
		t.busy = false
		o.calls--
		o.mu.Unlock()
		o.poke()
	})
}

// post sends a thing's first message.
func (o *outbox) post(ctx context.Context, t *thing, now time.Time) time.Time {
	if o.pointless(t) {
		t.gone = "not_shown"
		return o.settle(ctx, t)
	}
	if o.stopping && (o.rank(t) == rankProgress || o.rank(t) == rankNudge || o.book.open(t)) {
		return time.Time{}
	}
	if at := o.book.holds(t); at.After(now) {
		return at
	}
	ch := o.channel(t.place.Channel)
	if ch.posting {
		return time.Time{}
	}
	if at := ch.at(now, 0); at.After(now) {
		return at
	}
	out := o.book.render(t, o.renderer, now)
	ch.take(now)
	ch.posting = true
	t.untils, t.shows, t.reopened = out.untils, out.shows, false
	o.start(ctx, t, func(ctx context.Context) { o.sendPost(ctx, t, out, now) })
	return time.Time{}
}

// pointless tells whether a card was overtaken before anybody could see it: its run was stopped, which the progress
// says. So was a nudge whose ask is over. A card that nobody could be asked with is posted all the same: it says why nothing was done.
func (o *outbox) pointless(t *thing) bool {
	if t.Kind == kindNotice {
		p := o.book.pausingOf(t)
		return p == nil || !p.resumed.IsZero()
	}
	if t.Kind == kindNudge {
		return o.book.over(t)
	}
	asks := o.book.asks(t)
	for _, c := range asks {
		a := c.Approval
		if a.Open() {
			return false
		}
		// Elsewhere nobody waits to hear of something that they were never asked.
		if t.slot == 0 && (a.Resolved.Source != ledger.SourceAbort || len(a.Shown) > 0) {
			return false
		}
	}
	return len(asks) > 0
}

func (o *outbox) channel(id string) *channelState {
	ch := o.posts[id]
	if ch == nil {
		ch = &channelState{bucket: bucket{every: postEvery, burst: postBurst}}
		o.posts[id] = ch
	}
	return ch
}

// update brings a message that stands there to its wanted state.
func (o *outbox) update(ctx context.Context, t *thing, now time.Time) time.Time {
	rank := o.rank(t)
	reserve := 0
	if rank == rankProgress {
		if o.stopping {
			return time.Time{}
		}
		if at := t.updated.Add(progressEvery); at.After(now) {
			return at
		}
		reserve = updateReserve
	}
	if o.book.passing(t) {
		if t.passing.IsZero() {
			t.passing = now.Add(passingFor)
		}
		if t.passing.After(now) {
			return t.passing
		}
	}
	// Before anything is rendered: thousands of cards may wait for their turn.
	if at := o.updates.at(now, reserve); at.After(now) {
		if !o.answerClick(ctx, t, now) {
			return at
		}
		return time.Time{}
	}
	out := o.book.render(t, o.renderer, now)
	final := out.final
	if t.held != "" && !final {
		delete(o.book.dirty, t)
		return time.Time{}
	}
	if out.hash() == t.confirmed && now.After(t.shaky) {
		t.final = final
		if !final {
			delete(o.book.dirty, t)
			return time.Time{}
		}
		if t.recorded {
			return o.settle(ctx, t)
		}
		return time.Time{}
	}
	if out.hash() == t.confirmed {
		return t.shaky.Add(1)
	}
	o.updates.take(now)
	t.untils, t.updated, t.minor, t.reopened = out.untils, now, false, false
	o.start(ctx, t, func(ctx context.Context) { o.sendUpdate(ctx, t, out) })
	return time.Time{}
}

// find looks for a message whose post was never answered.
func (o *outbox) find(ctx context.Context, t *thing, now time.Time) time.Time {
	if at := o.finds.at(now, 0); at.After(now) {
		return at
	}
	o.finds.take(now)
	o.start(ctx, t, func(ctx context.Context) { o.search(ctx, t) })
	return time.Time{}
}

// options are what every message of ours has: a text for notifications beside the blocks, and nothing that Slack adds.
func options(r rendering) []slack.MsgOption {
	return []slack.MsgOption{
		slack.MsgOptionText(r.text, false), slack.MsgOptionBlocks(r.blocks...), slack.MsgOptionMetadata(r.metadata()),
		slack.MsgOptionDisableLinkUnfurl(), slack.MsgOptionDisableMediaUnfurl(), slack.MsgOptionParse(false),
	}
}

func (o *outbox) sendPost(ctx context.Context, t *thing, out wanted, began time.Time) {
	ts, err := o.send(ctx, t, out.rendering)
	if err == nil && ts == "" {
		err = errUnanswered
	}
	a := judge(err)
	o.mu.Lock()
	o.posted(t, ts, out, a)
	untils, record, gone := t.untils, t.stands() && !t.recorded && (t.run != "" || t.Kind == kindNotice), t.gone
	if time.Since(began) > lateAfter {
		untils = nil // counted anew, from now
	}
	o.mu.Unlock()
	if record {
		o.record(ctx, t, untils)
	}
	if gone != "" {
		o.unshowable(ctx, t, gone)
	}
}

// send posts a message, or uploads a file, and returns its ts, or its id.
func (o *outbox) send(ctx context.Context, t *thing, out rendering) (ts string, err error) {
	if out.file != nil {
		return o.sendFile(ctx, t, out)
	}
	opts := options(out)
	if t.place.Thread != "" {
		opts = append(opts, slack.MsgOptionTS(t.place.Thread))
	}
	_, ts, err = o.client.api.PostMessageContext(ctx, t.place.Channel, opts...)
	return ts, err
}

// posted takes in the answer to a post. A click may have told us in the meantime where the message stands.
func (o *outbox) posted(t *thing, ts string, out wanted, a answer) {
	ch := o.channel(t.place.Channel)
	ch.posting = false
	now := time.Now()
	switch a.verdict {
	case confirmed:
		o.book.stand(t, t.place.Channel, ts)
		t.confirmed, t.final = out.hash(), out.final && !t.reopened
		t.tries, t.noes, t.notBefore, t.updated = 0, 0, time.Time{}, now
		return
	case limited:
		ch.stop(now, o.retry(t, a, now))
	case unsure:
		t.looks = 1
		if !gotAnswer(a.err) {
			t.looks = 2 // it may be under way still, and arrive after the first look
		}
	}
	if t.stands() {
		return
	}
	o.setback(t, a, now)
	switch a.verdict {
	case absent, refused:
		t.gone = a.code
	case malformed:
		if !t.plainer(out.final, now) {
			t.gone = a.code
		}
	case puzzling, frozen:
		if o.book.open(t) && t.noes >= askNoes || t.noes >= otherNoes {
			t.gone = a.code
		}
	}
}

func (o *outbox) sendUpdate(ctx context.Context, t *thing, out wanted) {
	_, ts, _, err := o.client.api.UpdateMessageContext(ctx, t.channel, t.ts, options(out.rendering)...)
	if err == nil && ts != t.ts {
		err = errUnanswered
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.updated(t, out, judge(err))
}

// updated takes in the answer to an update.
func (o *outbox) updated(t *thing, out wanted, a answer) {
	now, final := time.Now(), out.final
	switch a.verdict {
	case confirmed:
		t.shows = out.shows
		t.tries, t.noes, t.held, t.notBefore = 0, 0, "", time.Time{}
		if now.Before(t.shaky) {
			// An update that was sent before may still be under way. This one is sent again when it can't be any more.
			t.confirmed, t.notBefore, t.shaky = "", t.shaky, time.Time{}
			return
		}
		t.confirmed, t.final = out.hash(), final && !t.reopened
		return
	case limited:
		o.updates.stop(now, o.retry(t, a, now))
	case unsure:
		t.confirmed = ""
		if !gotAnswer(a.err) {
			t.shaky = now.Add(shakyFor)
		}
	}
	o.setback(t, a, now)
	switch a.verdict {
	case absent, frozen:
		t.lost(a.code, final)
	case malformed:
		t.plainer(final, now) // if it is plain already, it waits: there is a message with buttons to be changed
	}
}

// lost takes in that a thing's message is gone, or can't be edited any more. What is said while that may not be the end of
// it isn't believed: a card that is left alone then would show buttons while the tool runs.
func (t *thing) lost(code string, final bool) {
	t.notBefore = time.Time{}
	switch {
	case !final:
		t.held = code
	case t.movable(code):
		t.frozen = code
	default:
		t.gone = code
	}
}

// plainer makes a thing plainer, whose blocks Slack doesn't take; false: it is as plain as can be.
func (t *thing) plainer(final bool, now time.Time) bool {
	switch {
	case !t.plain:
		t.plain = true
	case final && !t.bare:
		t.bare = true
	default:
		return false
	}
	t.notBefore = now
	return true
}

// gotAnswer tells whether Slack did answer, so that nothing of the call is under way any more.
func gotAnswer(err error) bool {
	_, ok := errors.AsType[slack.StatusCodeError](err)
	return ok || errorCode(err) != ""
}

// retry counts a failure and says how long to wait: as long as Slack asks, or longer each time where it doesn't say.
func (o *outbox) retry(t *thing, a answer, now time.Time) time.Duration {
	if a.after > 0 {
		return a.after
	}
	return retryAfter(t.tries + 1)
}

// setback takes in that a call didn't succeed.
func (o *outbox) setback(t *thing, a answer, now time.Time) {
	t.tries++
	wait := retryAfter(t.tries)
	switch a.verdict {
	case limited:
		wait = 0 // the bucket waits
	case puzzling, refused, frozen, malformed:
		t.noes++
		wait = patience(t.noes)
	case locked:
		o.err = botRefusal(a.err)
	}
	t.notBefore = now.Add(wait)
	o.logOf(t).Warn("Slack did not take a message", "verdict", a.verdict, "code", a.code, "tries", t.tries,
		"error", a.err)
}

// abandon writes into the journal that a thing's message can't be edited any more, and takes it from there: the thing's
// last state is posted as a new message.
func (o *outbox) abandon(ctx context.Context, t *thing) {
	o.mu.Lock()
	ts := t.ts
	e := ledger.Event{Session: o.session(t), Run: t.run, Call: t.call(), Actor: ledger.System, Body: &ledger.MessageSettled{
		Thing: t.Thing, Channel: t.channel, TS: ts, Rendering: t.confirmed, Gone: t.frozen,
	}}
	o.mu.Unlock()
	_, err := o.journal.Append(ctx, e)
	if _, ok := errors.AsType[*ledger.ConflictError](err); ok {
		err = nil // it is recorded already
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if err != nil {
		t.tries++
		t.notBefore = time.Now().Add(retryAfter(t.tries))
		o.log.Error("a message that can't be edited could not be recorded as such", "kind", t.Kind, "id", t.ID, "error", err)
		return
	}
	o.book.leave(t, ts)
}

// unshowable tells the registry which asks can't be put to anybody here, so that nobody waits for an answer: those of
// which no message is left that stands or may.
func (o *outbox) unshowable(ctx context.Context, t *thing, code string) {
	o.mu.Lock()
	var ids []string
	for _, c := range o.book.asks(t) {
		a := c.Approval
		lost := !slices.ContainsFunc(o.book.byAsk[a.Approval], func(t *thing) bool { return t.gone == "" })
		if a.Open() && lost {
			ids = append(ids, a.Approval)
		}
	}
	o.mu.Unlock()
	for _, id := range ids {
		o.approvals.Unshowable(ctx, id, surface, "the card could not be posted in Slack ("+code+")")
	}
}

// record writes into the journal that a thing stands in Slack; of one that carries asks, that they are shown there, first:
// that starts their clocks.
func (o *outbox) record(ctx context.Context, t *thing, untils map[string]time.Time) {
	o.mu.Lock()
	e := ledger.Event{Session: o.session(t), Run: t.run, Call: t.call(), Actor: ledger.System, Body: &ledger.MessagePosted{
		Thing: t.Thing, Channel: t.channel, TS: t.ts, Rendering: t.confirmed,
	}}
	known := t.recorded
	told := maps.Clone(t.told)
	shows := slices.DeleteFunc(slices.Clone(t.shows), func(id string) bool { return told[id] })
	showing := approvals.Showing{Surface: surface, Channel: t.channel, TS: t.ts}
	o.mu.Unlock()
	var err error
	for _, id := range shows {
		showing.Until = untils[id]
		if err = o.shown(ctx, id, showing); err != nil {
			break
		}
	}
	if err == nil && !known {
		_, err = o.journal.Append(ctx, e)
	}
	if _, ok := errors.AsType[*ledger.ConflictError](err); ok {
		err = nil // it is recorded already
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if err != nil {
		t.tries++
		t.notBefore = time.Now().Add(retryAfter(t.tries))
		o.logOf(t).Error("a message in Slack could not be recorded", "error", err)
		return
	}
	t.recorded, t.tries = true, 0
	if t.told == nil && len(shows) > 0 {
		t.told = map[string]bool{}
	}
	for _, id := range shows {
		t.told[id] = true
	}
	o.book.dirty[t] = true
}

// shown reports a showing. An ask that is over needs none.
func (o *outbox) shown(ctx context.Context, id string, s approvals.Showing) error {
	err := o.approvals.Shown(ctx, id, s)
	if _, _, over := approvals.Ended(err); over {
		return nil
	}
	return err
}

// session is the conversation that a thing belongs to. A message that waits for its turn has one, too.
func (o *outbox) session(t *thing) string {
	if run := o.book.runs[t.run]; run != nil {
		return run.Session
	}
	if t.Kind == kindNotice {
		return ledger.PausesSession
	}
	message, err := strconv.ParseInt(t.ID, 10, 64)
	if t.Kind != kindProgress || err != nil {
		return ""
	}
	return o.book.mail[message].Session
}

// settle writes into the journal which of a run's things will not change any more; with the last of them, that nothing
// of the run will.
func (o *outbox) settle(ctx context.Context, t *thing) time.Time {
	if t.Kind == kindNotice {
		return o.settleNotice(ctx, t)
	}
	if t.run == "" || o.settling[t.run] {
		return time.Time{}
	}
	var events []ledger.Event
	var batch []*thing
	open := 0
	for _, other := range o.book.byRun[t.run] {
		switch {
		case other.settled:
		case other.gone != "" && !other.busy, other.final && other.confirmed != "" && other.recorded && !other.busy:
			batch = append(batch, other)
			events = append(events, ledger.Event{
				Session: o.session(t), Run: t.run, Call: other.call(), Actor: ledger.System,
				Body: &ledger.MessageSettled{
					Thing: other.Thing, Channel: other.channel, TS: other.ts, Rendering: other.confirmed, Gone: other.gone,
					Renderer: o.book.renderer(other, o.renderer.lang), Language: recordedAs(o.renderer.lang),
				},
			})
		default:
			open++
		}
	}
	if len(events) == 0 {
		return time.Time{}
	}
	if open == 0 && o.book.ended(t) {
		events[len(events)-1].Body.(*ledger.MessageSettled).RunDone = true
	}
	o.settling[t.run] = true
	o.start(ctx, t, func(ctx context.Context) { o.recordSettled(ctx, t, batch, events) })
	return time.Time{}
}

func (o *outbox) recordSettled(ctx context.Context, t *thing, batch []*thing, events []ledger.Event) {
	_, err := o.journal.Append(ctx, events...)
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.settling, t.run)
	if lost, ok := errors.AsType[*ledger.ConflictError](err); ok {
		o.settledBefore(lost.Winner)
		return // and the rest is tried again
	}
	for _, other := range batch {
		if err == nil {
			other.settled, other.tries = true, 0
			delete(o.book.dirty, other)
			continue
		}
		other.tries++
		other.notBefore = time.Now().Add(retryAfter(other.tries))
	}
	if err != nil {
		o.logOf(t).Error("settled messages could not be recorded", "error", err)
	}
}

// conflicts tells whether something is recorded already.
func conflicts(err error) bool {
	_, ok := errors.AsType[*ledger.ConflictError](err)
	return ok
}

// settledBefore takes in that the journal knew already that a thing is settled.
func (o *outbox) settledBefore(e ledger.Event) {
	if m, ok := e.Body.(*ledger.MessageSettled); ok && o.book.things[m.Thing] != nil {
		o.book.things[m.Thing].settled = true
	}
}

// search looks through a thread for a thing's message.
func (o *outbox) search(ctx context.Context, t *thing) {
	ts, err := o.lookUp(ctx, t)
	a := judge(err)
	o.mu.Lock()
	defer o.mu.Unlock()
	now := time.Now()
	switch {
	case t.stands(): // a click was faster
	case a.verdict == confirmed && ts != "":
		o.book.stand(t, t.place.Channel, ts)
		t.confirmed = ""
		o.uploaded(t, now)
	case a.verdict == confirmed:
		if t.looks--; t.looks > 0 {
			t.tries, t.notBefore = 0, now.Add(lookAgain)
			return
		}
	case a.verdict == refused, a.verdict == absent, t.noes >= findNoes:
		// It can't be looked for, ever. Then a second message is better than none: both carry the same approvalId, and
		// it is decided once.
		o.logOf(t).Error("messages can't be looked for", "code", a.code, "channel", t.place.Channel)
		t.looks = 0
	case a.verdict == limited:
		o.finds.stop(now, o.retry(t, a, now))
		o.setback(t, a, now)
		return
	default:
		o.setback(t, a, now)
		return
	}
	t.tries, t.noes, t.notBefore = 0, 0, time.Time{}
}

// lookUp pages through the messages of the thing's place, and finds its own by the metadata.
func (o *outbox) lookUp(ctx context.Context, t *thing) (string, error) {
	cursor := ""
	for range findPages {
		messages, next, err := o.page(ctx, t, cursor)
		if err != nil {
			return "", err
		}
		for _, m := range messages {
			if o.is(m, t) {
				return m.Timestamp, nil
			}
			if t.Kind == kindFile && o.fileIn(m, t) != "" {
				return o.fileIn(m, t), nil
			}
		}
		if next == "" {
			return "", nil
		}
		cursor = next
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.logOf(t).Warn("a message was not found among the first of its thread", "messages", findPage*findPages)
	return "", nil
}

func (o *outbox) page(ctx context.Context, t *thing, cursor string) ([]slack.Message, string, error) {
	if t.place.Thread != "" {
		messages, _, next, err := o.client.api.GetConversationRepliesContext(ctx, &slack.GetConversationRepliesParameters{
			ChannelID: t.place.Channel, Timestamp: t.place.Thread, Cursor: cursor, Limit: findPage,
			IncludeAllMetadata: true,
		})
		if errorCode(err) == "thread_not_found" {
			return nil, "", nil
		}
		return messages, next, err
	}
	h, err := o.client.api.GetConversationHistoryContext(ctx, &slack.GetConversationHistoryParameters{
		ChannelID: t.place.Channel, Cursor: cursor, Limit: findPage, IncludeAllMetadata: true,
	})
	if err != nil {
		return nil, "", err
	}
	return h.Messages, h.ResponseMetaData.NextCursor, nil
}

// is tells whether a message is a thing's: ours, and named so.
func (o *outbox) is(m slack.Message, t *thing) bool {
	p := m.Metadata.EventPayload
	return (m.User == o.client.BotUser || m.BotID == o.client.BotID) && m.Metadata.EventType == metadataType &&
		p["kind"] == t.Kind && p["id"] == t.ID && !slices.Contains(t.left, m.Timestamp)
}
