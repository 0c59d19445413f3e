package slackui

import (
	"bytes"
	"context"
	"time"

	"github.com/slack-go/slack"

	"approvalbot/internal/ledger"
)

// What a click needs to know of what stands in Slack.

// subject finds an ask among the runs in memory, and what is known of the message that was clicked.
func (o *outbox) subject(approval, channel, ts string) (subject, bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	t, call, run := o.book.card(approval)
	if t == nil {
		return subject{}, false
	}
	s := subject{
		approval: approval, place: t.place, until: t.until, session: run.Session, run: run.ID, call: call.ID,
	}
	if t.stands() {
		s.stands = append(s.stands, t.ts)
	}
	for _, at := range call.Approval.Shown {
		if at.Surface == surface {
			s.stands = append(s.stands, at.TS)
			s.shown = s.shown || at.Channel == channel && at.TS == ts
		}
	}
	other := o.book.at(channel, ts)
	s.alien = other != nil && other != t
	return s, true
}

// knows tells whether a thing of ours is known to stand in a message.
func (o *outbox) knows(channel, ts string) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.book.at(channel, ts) != nil
}

// adopt takes a message for an ask's card, because a click came from it before the answer to the post did.
func (o *outbox) adopt(approval, channel, ts string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	t, _, _ := o.book.card(approval)
	if t == nil || t.stands() {
		return
	}
	t.channel, t.ts, t.confirmed = channel, ts, ""
	o.book.dirty[t] = true
	o.poke()
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
	t, call, run := o.book.card(approval)
	if t == nil {
		return slack.ModalViewRequest{}, nil, false
	}
	view, file := o.renderer.review(run, call)
	return view, file, true
}

func (o *outbox) reviewLinked(approval, url string) (slack.ModalViewRequest, bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	t, call, run := o.book.card(approval)
	if t == nil {
		return slack.ModalViewRequest{}, false
	}
	return o.renderer.reviewLinked(run, call, url), true
}

// upload puts a request's full text into its thread, once per ask, and returns the file's address.
func (o *outbox) upload(ctx context.Context, approval string, place ledger.Place, file *reviewFile) (string, error) {
	o.filesMu.Lock()
	defer o.filesMu.Unlock()
	if url := o.files[approval]; url != "" {
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
	o.files[approval] = url
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
