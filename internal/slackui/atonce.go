package slackui

import (
	"context"
	"time"

	"github.com/slack-go/slack"
)

// Slack takes 50 updates a minute for the whole workspace. When hundreds of cards are decided at once, the last of them would
// keep its buttons for many minutes, and people would wonder whether their click has counted. But Slack gives an address with
// each click, at which the message that was clicked can be replaced, five times within half an hour, and that isn't counted
// as an update. So a card is replaced there when there is no update left, with the same rendering.
//
// It is no more than a courtesy: the journal isn't told, and the card stays one that has to be updated. Since a thing has one
// call under way at most, an older state can't come after a newer one; where an answer never came, it is the same as with an
// update whose answer never came.

const (
	// addressLife and addressUses stay below what Slack grants: 30 minutes and 5 uses.
	addressLife = 28 * time.Minute
	addressUses = 4
)

// An address is where the click on a message can be answered with another state of the message.
type address struct {
	url   string
	until time.Time
	left  int
	tried bool // there is nothing new since it was used last
}

// answerable takes in the address of a click on one of our messages.
func (o *outbox) answerable(channel, ts, url string, at time.Time) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if t := o.book.at(channel, ts); t != nil && t.carries() && url != "" {
		t.address = address{url: url, until: at.Add(addressLife), left: addressUses}
	}
}

// answerClick brings a card to its wanted state through the address of a click; false: that can't be done, or needn't. An
// ask that is new on it waits for the update, which records that it is shown.
func (o *outbox) answerClick(ctx context.Context, t *thing, now time.Time) bool {
	a := &t.address
	if a.left == 0 || a.tried || now.After(a.until) || !t.carries() || !t.recorded || t.owes() || t.minor || t.held != "" || t.plain || t.bare {
		return false
	}
	a.tried = true
	out := o.book.render(t, o.renderer, now)
	if out.hash() == t.confirmed && now.After(t.shaky) {
		return false
	}
	for _, id := range out.shows {
		if !t.told[id] {
			return false
		}
	}
	a.left--
	t.confirmed, t.final = "", false // whatever comes of it, the message isn't any more what Slack has confirmed
	url := a.url
	o.start(ctx, t, func(ctx context.Context) { o.sendAnswer(ctx, t, url, out) })
	return true
}

func (o *outbox) sendAnswer(ctx context.Context, t *thing, url string, out wanted) {
	_, _, _, err := o.client.api.SendMessageContext(ctx, "", append(options(out.rendering), slack.MsgOptionReplaceOriginal(url))...)
	if err == nil {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if !gotAnswer(err) {
		t.shaky = time.Now().Add(shakyFor) // it may arrive after the update
	}
	t.address = address{}
	o.logOf(t).Warn("a click could not be answered with its card; the card is updated in its turn", "error", err)
}
