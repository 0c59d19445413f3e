package slackui

import (
	"bytes"
	"context"
	"slices"
	"time"

	"github.com/slack-go/slack"

	"approvalbot/internal/ledger"
)

// What a click needs to know of what stands in Slack.

// subject finds an ask among the runs in memory, and what is known of the message that was clicked.
func (o *outbox) subject(approval, channel, ts string) (subject, bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.book.subject(approval, channel, ts)
}

// subject is what the book knows of an ask and of the message that was clicked.
func (b *book) subject(approval, channel, ts string) (subject, bool) {
	call, run := b.ask(approval)
	if call == nil {
		return subject{}, false
	}
	s := subject{approval: approval, over: run.Settled, revision: call.Approval.Revision(), session: run.Session, run: run.ID, call: call.ID}
	other := b.at(channel, ts)
	s.alien = other != nil
	for _, t := range b.byAsk[approval] {
		s.messages = append(s.messages, b.message(t, call.Approval))
		if t == other || t.place.Channel == channel && !t.stands() {
			s.until = t.untils[approval]
		}
		s.alien = s.alien && other != t
	}
	for _, at := range call.Approval.Shown {
		s.shown = s.shown || at.Surface == surface && at.Channel == channel && at.TS == ts
	}
	return s, true
}

// message is where one message of an ask belongs, and where it is known to stand or to have stood.
func (b *book) message(t *thing, a *ledger.Approval) carrier {
	m := carrier{place: t.place, stands: slices.Clone(t.left)}
	if t.stands() {
		m.stands = append(m.stands, t.ts)
	}
	for _, at := range a.Shown {
		known := b.at(at.Channel, at.TS)
		if at.Surface == surface && at.Channel == t.place.Channel && (known == nil || known == t) {
			m.stands = append(m.stands, at.TS)
		}
	}
	return m
}

// setShown finds a set by its id, as it is shown now, with the asks that Approve All Shown is about.
func (o *outbox) setShown(id, channel, ts string) (setView, []subject, bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	t := o.book.things[ledger.Thing{Kind: kindSet, ID: id}]
	if t == nil || o.book.runs[t.run] == nil {
		return setView{}, nil, false
	}
	run, now := o.book.runs[t.run], time.Now()
	untils := map[string]time.Time{}
	for _, c := range o.book.asks(t) {
		untils[c.Approval.Approval] = o.book.deadline(c.Approval, now)
	}
	view := o.renderer.standing(run, t.slot).set(run, o.book.asks(t), untils)
	var subjects []subject
	for _, approval := range view.all {
		s, _ := o.book.subject(approval, channel, ts)
		subjects = append(subjects, s)
	}
	return view, subjects, true
}

// knows tells whether a thing of ours is known to stand in a message.
func (o *outbox) knows(channel, ts string) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.book.at(channel, ts) != nil
}

// keeps tells whether a thing is brought to its wanted state by the outbox still.
func (o *outbox) keeps(id ledger.Thing) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	t := o.book.things[id]
	return t != nil && !t.settled
}

// adopt takes a message for one that carries an ask, because a click came from it before the answer to the post did.
func (o *outbox) adopt(approval string, c *click) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.book.at(c.channel, c.ts) != nil {
		return
	}
	for _, t := range o.book.byAsk[approval] {
		if !t.stands() && at(t.place, c) {
			o.book.stand(t, c.channel, c.ts)
			t.confirmed = ""
			o.book.dirty[t] = true
			o.poke()
			return
		}
	}
}

// stoppable finds where a run talks, and whether the message that was clicked is one of the run's, or can be its progress.
func (o *outbox) stoppable(run, channel, ts string) (session string, place ledger.Place, fits, known bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	r := o.book.runs[run]
	if r == nil {
		return "", ledger.Place{}, false, false
	}
	t := o.book.things[progressOf(r.Started.Message)]
	at := o.book.at(channel, ts)
	if at != nil && at.run == run { // a card may stand elsewhere
		place := at.place
		place.Channel = at.channel
		return r.Session, place, true, true
	}
	fits = t != nil && at == nil && !t.stands()
	return r.Session, r.Started.Place, fits, true
}

// review renders the modal of an ask that is in memory.
func (o *outbox) review(approval string) (slack.ModalViewRequest, *reviewFile, bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	call, run := o.book.ask(approval)
	if call == nil {
		return slack.ModalViewRequest{}, nil, false
	}
	view, file := o.renderer.review(run, call)
	return view, file, true
}

func (o *outbox) reviewLinked(approval, url string) (slack.ModalViewRequest, bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	call, run := o.book.ask(approval)
	if call == nil {
		return slack.ModalViewRequest{}, false
	}
	return o.renderer.reviewLinked(run, call, url), true
}

// upload puts a request's full text where it is read, once per ask and channel, and returns the file's address.
func (o *outbox) upload(ctx context.Context, approval string, place ledger.Place, file *reviewFile) (string, error) {
	o.filesMu.Lock()
	defer o.filesMu.Unlock()
	key := approval + " " + place.Channel // who may read it there may not read it elsewhere
	if url := o.files[key]; url != "" {
		return url, nil
	}
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	sent, err := o.client.api.UploadFileContext(ctx, slack.UploadFileParameters{
		Reader: bytes.NewReader(file.content), FileSize: len(file.content), Filename: file.name, Title: file.name,
		Channel: place.Channel, ThreadTimestamp: place.Thread,
	})
	if err != nil {
		return "", err
	}
	// files.info would name the address too, but wants to be allowed to read every file.
	url := o.client.URL + "files/" + o.client.BotUser + "/" + sent.ID + "/" + file.name
	if len(o.files) >= filesMost {
		clear(o.files)
	}
	o.files[key] = url
	return url, nil
}

// filesMost bounds what is remembered of uploads; a file is uploaded once more then.
const filesMost = 1000

// override brings a message that no thing stands in to a last state.
func (o *outbox) override(ctx context.Context, channel, ts string, out rendering) {
	for try := 1; ; try++ {
		now := time.Now()
		o.mu.Lock()
		at := o.updates.at(now, 0)
		if !at.After(now) {
			o.updates.take(now)
		}
		o.mu.Unlock()
		if at.After(now) {
			if sleep(ctx, at.Sub(now)) != nil {
				return
			}
			continue
		}
		_, _, _, err := o.client.api.UpdateMessageContext(ctx, channel, ts, options(out)...)
		a := judge(err)
		switch a.verdict {
		case confirmed, absent, frozen, locked:
			return
		case malformed:
			out = plain(out)
		}
		if try >= 8 {
			return
		}
		if sleep(ctx, max(a.after, retryAfter(try))) != nil {
			return
		}
	}
}
