package slackui

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/slack-go/slack"

	"approvalbot/internal/approvals"
	"approvalbot/internal/ledger"
)

// A notice says in a channel that approvalbot is paused, and becomes what ended it. It is a thing of the outbox like every
// other: sent once, tried again until Slack has it, settled in the journal. It belongs to no run; its ID is the pause's Seq
// and the channel, so a channel has one for each pause.

const kindNotice = "notice"

const (
	// noticeSince is how far back a channel counts as one where approvalbot is in use.
	noticeSince = 24 * time.Hour

	// noticeMost bounds in how many channels one pause is said.
	noticeMost = 200
)

func noticeOf(pause int64, channel string) ledger.Thing {
	return ledger.Thing{Kind: kindNotice, ID: strconv.FormatInt(pause, 10) + "/" + channel}
}

// pauseOf is the pause that a notice is about, and its channel.
func pauseOf(t ledger.Thing) (pause int64, channel string, ok bool) {
	seq, channel, ok := strings.Cut(t.ID, "/")
	pause, err := strconv.ParseInt(seq, 10, 64)
	return pause, channel, ok && err == nil && t.Kind == kindNotice
}

// A pausing is a pause as the book has it, from its beginning to when all its notices are settled.
type pausing struct {
	approvals.Pause
	resumed   time.Time // zero while it holds
	resumedBy ledger.Actor
}

// paused reads an event about pauses; where there is one already, another changes nothing.
func (b *book) paused(e ledger.Event) {
	switch body := e.Body.(type) {
	case *ledger.Paused:
		if b.pause == nil {
			b.dropPauses()
			b.pause = &pausing{Pause: approvals.Pause{Seq: e.Seq, By: e.Actor, At: e.Time, Reason: body.Reason}}
			b.pauses[e.Seq] = b.pause
		}
	case *ledger.Resumed:
		if b.pause != nil {
			b.pause.resumed, b.pause.resumedBy = e.Time, e.Actor
			b.pause = nil
		}
	default:
		return
	}
	for _, t := range b.things {
		waits := t.Kind == kindProgress && t.run == "" // what they wait for is another thing now
		if t.Kind == kindNotice || waits {
			b.dirty[t] = true
		}
	}
}

// pausesMost is how many pauses are kept whose notices have come to their end, or that were said nowhere: one that is under
// way may still arrive.
const pausesMost = 20

func (b *book) dropPauses() {
	if len(b.pauses) < pausesMost {
		return
	}
	wanted := map[int64]bool{}
	for t := range b.things {
		if seq, _, ok := pauseOf(t); ok {
			wanted[seq] = true
		}
	}
	for seq := range b.pauses {
		if !wanted[seq] {
			delete(b.pauses, seq)
		}
	}
}

// announce makes the notices of a pause.
func (b *book) announce(pause int64, team string, channels []string) {
	for _, c := range channels {
		b.thing(noticeOf(pause, c), "", ledger.Place{Team: team, Channel: c})
	}
}

// pausingOf is the pause that a notice is about.
func (b *book) pausingOf(t *thing) *pausing {
	seq, _, _ := pauseOf(t.Thing)
	return b.pauses[seq]
}

// forgetNotice drops a notice that is settled.
func (b *book) forgetNotice(t *thing) {
	b.lift(t)
	delete(b.things, t.Thing)
	delete(b.dirty, t)
}

// busy lists the channels in which something is open at the moment: a run, or a card.
func (b *book) busy() (channels []string) {
	add := func(p ledger.Place) {
		if p.Channel != "" && !slices.Contains(channels, p.Channel) {
			channels = append(channels, p.Channel)
		}
	}
	for _, run := range b.runs {
		if run.Finished != nil || run.Started == nil {
			continue
		}
		add(run.Started.Place)
		for _, c := range run.Calls {
			if c.Approval.Open() {
				add(c.Approval.Place)
				for _, p := range c.Approval.Elsewhere {
					add(p)
				}
			}
		}
	}
	slices.Sort(channels)
	return channels
}

// noticed finds where a pause has to be said: where something is open, where approvalbot was used the day before, and where
// approvals are collected.
func (o *outbox) noticed(ctx context.Context, e ledger.Event) ([]string, error) {
	o.mu.Lock()
	channels := o.book.busy()
	o.mu.Unlock()
	add := func(c string) {
		if c != "" && !slices.Contains(channels, c) {
			channels = append(channels, c)
		}
	}
	add(o.approvalsChannel)
	f := ledger.Filter{Kinds: []string{"message_received"}, From: e.Time.Add(-noticeSince), Until: e.Seq}
	for m, err := range o.journal.Read(ctx, 0, f) {
		if err != nil {
			return nil, err
		}
		// Whoever was refused doesn't make a channel one of ours; and what two have talked about in private is over, if
		// nothing of it is open.
		if b, ok := m.Body.(*ledger.MessageReceived); ok && b.Disposition != ledger.Refused && !strings.HasPrefix(b.Place.Channel, "D") {
			add(b.Place.Channel)
		}
	}
	return channels[:min(len(channels), noticeMost)], nil
}

// takePause reads an event about pauses, for follow.
func (o *outbox) takePause(ctx context.Context, e ledger.Event) error {
	var channels []string
	if _, begins := e.Body.(*ledger.Paused); begins {
		var err error
		if channels, err = o.noticed(ctx, e); err != nil {
			return err
		}
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	before := o.book.pause
	o.book.apply(e, o.renderer)
	if now := o.book.pause; now != nil && now != before {
		o.book.announce(now.Seq, o.client.Team, channels)
	}
	return nil
}

// loadPauses reads what an earlier process has said of pauses, and has not brought to its end.
func (o *outbox) loadPauses(ctx context.Context, until int64) error {
	stands := map[ledger.Thing]*thing{}
	var pauses []ledger.Event
	for e, err := range o.journal.Read(ctx, 0, ledger.Filter{Session: ledger.PausesSession, Until: until}) {
		if err != nil {
			return err
		}
		switch b := e.Body.(type) {
		case *ledger.Paused, *ledger.Resumed:
			pauses = append(pauses, e)
		case *ledger.MessagePosted:
			stands[b.Thing] = &thing{channel: b.Channel, ts: b.TS, confirmed: b.Rendering, recorded: true}
		case *ledger.MessageSettled:
			stands[b.Thing] = &thing{channel: b.Channel, ts: b.TS, settled: true}
		}
	}
	for i, e := range pauses {
		ended := i+1 < len(pauses) && time.Since(e.Time) > noticeSince // a day later nobody has to be told
		if err := o.loadPause(ctx, e, stands, ended); err != nil {
			return err
		}
	}
	return nil
}

// loadPause takes in one event about pauses; old says that what was never said of it isn't said any more.
func (o *outbox) loadPause(ctx context.Context, e ledger.Event, stands map[ledger.Thing]*thing, old bool) error {
	var channels []string
	if _, begins := e.Body.(*ledger.Paused); begins && !old {
		var err error
		if channels, err = o.noticed(ctx, e); err != nil {
			return err
		}
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	before := o.book.pause
	o.book.paused(e)
	now := o.book.pause
	if now == nil || now == before {
		return nil
	}
	for t := range stands {
		if seq, channel, ok := pauseOf(t); ok && seq == now.Seq && !slices.Contains(channels, channel) {
			channels = append(channels, channel)
		}
	}
	o.book.announce(now.Seq, o.client.Team, channels)
	for _, c := range channels {
		id := noticeOf(now.Seq, c)
		t, was := o.book.things[id], stands[id]
		switch {
		case was == nil:
			t.looks = 1 // it may stand there, and the journal doesn't know
		case was.settled:
			o.book.forgetNotice(t)
		default:
			o.book.stand(t, was.channel, was.ts)
			t.confirmed, t.recorded = was.confirmed, true
		}
	}
	return nil
}

// settleNotice writes into the journal that a notice won't change any more.
func (o *outbox) settleNotice(ctx context.Context, t *thing) time.Time {
	e := ledger.Event{Session: ledger.PausesSession, Actor: ledger.System, Body: &ledger.MessageSettled{
		Thing: t.Thing, Channel: t.channel, TS: t.ts, Rendering: t.confirmed, Gone: t.gone, Renderer: o.book.renderer(t, o.renderer.lang), Language: recordedAs(o.renderer.lang),
	}}
	o.start(ctx, t, func(ctx context.Context) {
		_, err := o.journal.Append(ctx, e)
		o.mu.Lock()
		defer o.mu.Unlock()
		if err == nil || conflicts(err) {
			t.settled = true
			o.book.forgetNotice(t)
			return
		}
		t.tries++
		t.notBefore = time.Now().Add(retryAfter(t.tries))
		o.logOf(t).Error("a settled notice could not be recorded", "error", err)
	})
	return time.Time{}
}

// notice is what a channel is told of a pause.
func (v *renderer) notice(p *pausing, id ledger.Thing) rendering {
	r := rendering{thing: id}
	said := v.phrase()
	if p.resumed.IsZero() {
		said.form("*approvalbot is paused* since {at}, by {who}.", slots{"at": moment(p.At), "who": doer(p.By)})
		v.reason(said, p.Reason)
		said.form(" Nothing new starts and nothing can be approved until it is resumed. What waits for an answer can be denied, and ends in its time.", nil)
	} else {
		said.form("Resumed by {who}, {at}.", slots{"who": doer(p.resumedBy), "at": moment(p.resumed)})
		said.form(" It had been paused by {who}, {at}.", slots{"who": doer(p.By), "at": moment(p.At)})
	}
	r.text = fallback(said.plain.String())
	r.blocks = []slack.Block{richText(paragraph(said.elements...))}
	return r
}

// held is what stands for a message that waits because of a pause.
func (v *renderer) held(id ledger.Thing, p *pausing) rendering {
	said := v.phrase()
	said.form("Waiting: approvalbot was paused by {who}, {at}.", slots{"who": doer(p.By), "at": moment(p.At)})
	v.reason(said, p.Reason)
	said.form(" This starts when it is resumed.", nil)
	return rendering{thing: id, text: fallback(said.plain.String()), blocks: []slack.Block{richText(paragraph(said.elements...))}}
}

// reason adds the operator's words, if there are any.
func (v *renderer) reason(p *phrase, reason string) {
	if reason = strings.TrimRight(strings.TrimSpace(reason), ".。"); reason != "" {
		p.form(" Why: {reason}.", slots{"reason": func(p *phrase) { p.tell(reason, maxReasonChars) }})
	}
}

// moment and doer are slots for a moment and for whoever did something, on the machine as well.
func moment(t time.Time) func(*phrase) { return func(p *phrase) { p.at(t) } }

func doer(a ledger.Actor) func(*phrase) {
	return func(p *phrase) {
		if a.Kind == ledger.ActorOperator {
			p.form("{name} (on the machine)", slots{"name": func(p *phrase) { p.tell(a.DisplayName(), maxNameChars) }})
			return
		}
		p.who(a)
	}
}

// doerText is the same in mrkdwn.
func (v *renderer) doerText(a ledger.Actor) string {
	if a.Kind == ledger.ActorOperator {
		return v.tf("%s (on the machine)", escape(v.line(a.DisplayName(), maxNameChars)))
	}
	return v.byWhom(&a)
}
