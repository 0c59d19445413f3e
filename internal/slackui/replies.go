package slackui

import (
	"context"
	"errors"
	"maps"
	"time"

	"github.com/slack-go/slack"

	"approvalbot/internal/ledger"
)

// What follows from a click or a message besides its effect: a private sentence, a modal that closes, a card of nobody's
// that ends. All of it goes through lanes of its own, so that no decision and no message of a thread ever waits for it:
// Slack may answer with "not for half a minute" at any time, and somebody who may not click can click a hundred times.

const (
	// tellWithin is how long a private sentence is worth anything: it answers what somebody did just now.
	tellWithin = time.Minute

	// tellAgain is how long the same sentence isn't said once more: it still stands there as the last one.
	tellAgain = 5 * time.Second

	tellTries = 3
)

// A whisper is one sentence for one person.
type whisper struct {
	user, sentence string
	place          ledger.Place
}

// tell says something to one person, where only they see it. It never blocks. What is on its way already, or was said a
// moment ago, isn't said again.
func (u *UI) tell(ctx context.Context, place ledger.Place, user, sentence string) {
	if place.Channel == "" { // they are in the Home tab
		u.home.notice(user, sentence)
		return
	}
	w := whisper{user: user, sentence: sentence, place: place}
	if !u.news(w) {
		return
	}
	by := time.Now().Add(tellWithin)
	ok := u.replies.do(ctx, "tell/"+user, func(ctx context.Context) {
		ctx, cancel := context.WithDeadline(ctx, by)
		defer cancel()
		err := u.say(ctx, w)
		u.said(w, time.Now())
		if err != nil {
			u.log.Warn("a private sentence was not sent", "user", user, "channel", place.Channel, "error", err)
		}
	})
	if !ok {
		u.said(w, time.Time{})
		u.log.Warn("a private sentence was not sent: there are too many", "user", user, "channel", place.Channel)
	}
}

// news tells whether a sentence has to be said, and notes that it is on its way.
func (u *UI) news(w whisper) bool {
	u.tellMu.Lock()
	defer u.tellMu.Unlock()
	now := time.Now()
	maps.DeleteFunc(u.told, func(_ whisper, at time.Time) bool { return !at.IsZero() && now.Sub(at) >= tellAgain })
	if _, before := u.told[w]; before {
		return false
	}
	u.told[w] = time.Time{}
	return true
}

// said notes when a sentence was said; at the zero time: it was not.
func (u *UI) said(w whisper, at time.Time) {
	u.tellMu.Lock()
	defer u.tellMu.Unlock()
	if at.IsZero() {
		delete(u.told, w)
		return
	}
	u.told[w] = at
}

// say brings a sentence to Slack.
func (u *UI) say(ctx context.Context, w whisper) error {
	opts := []slack.MsgOption{
		slack.MsgOptionText(w.sentence, false), slack.MsgOptionParse(false),
		slack.MsgOptionDisableLinkUnfurl(), slack.MsgOptionDisableMediaUnfurl(),
	}
	if w.place.Thread != "" {
		opts = append(opts, slack.MsgOptionTS(w.place.Thread))
	}
	for try := 1; ; try++ {
		if err := u.mayTell(ctx); err != nil {
			return err
		}
		_, err := u.client.api.PostEphemeralContext(ctx, w.place.Channel, w.user, opts...)
		a := judge(err)
		switch a.verdict {
		case confirmed:
			return nil
		case limited: // it is the workspace's limit: everybody has to wait
			u.stopTelling(max(a.after, retryAfter(try)))
		case failed, unsure:
		default:
			return err
		}
		if try == tellTries {
			return err
		}
		if wait := sleep(ctx, retryAfter(try)); wait != nil {
			return errors.Join(wait, err)
		}
	}
}

// errBusy: people are told less when there is too much to tell.
var errBusy = errors.New("too many private sentences at once")

// mayTell waits for the next free place, if there will be one while the sentence is worth anything.
func (u *UI) mayTell(ctx context.Context) error {
	u.tellMu.Lock()
	now := time.Now()
	at := u.tells.at(now, 0)
	if by, ok := ctx.Deadline(); ok && at.After(by) {
		u.tellMu.Unlock()
		return errBusy
	}
	u.tells.take(now)
	u.tellMu.Unlock()
	if at.After(now) {
		return sleep(ctx, at.Sub(now))
	}
	return ctx.Err()
}

func (u *UI) stopTelling(after time.Duration) {
	u.tellMu.Lock()
	defer u.tellMu.Unlock()
	u.tells.stop(time.Now(), after)
}

// override brings a message that no thing stands in to a last state, beside whatever else is going on.
func (u *UI) override(ctx context.Context, channel, ts string, out rendering) {
	u.beside(ctx, "message/"+channel+"/"+ts, func(ctx context.Context) { u.outbox.override(ctx, channel, ts, out) })
}

// beside does what nobody waits for. Of what concerns the same, one is done after the other.
func (u *UI) beside(ctx context.Context, key string, work func(context.Context)) {
	if !u.replies.do(ctx, key, work) {
		u.log.Warn("too much at once: something was left undone", "what", key)
	}
}
