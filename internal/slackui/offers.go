package slackui

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/slack-go/slack"

	"approvalbot/internal/approvals"
	"approvalbot/internal/ledger"
)

// A message that comes while its conversation waits for an approval may be the answer to it: "no, use the other branch".
// So it isn't simply queued behind the ask. Its own message offers two ways: Deny with This denies what waits, with its
// words as the reason, and the message starts nothing any more; Keep for Later leaves it where it is, and the offer goes.
// Denial and withdrawal are one append, which claims the message as its run would: so its words are used once.
//
// That an offer was declined is kept in memory only: with the process, every ask that it could be about is gone, too.

// maxReasonWords is how long a message may be to be a reason as a whole, in characters: no word of it is to be lost.
const maxReasonWords = 1500

// A waiter is a message that waits for its turn, as its own message shows it.
type waiter struct {
	message   ledger.Event
	asks      bool          // its conversation waits for an approval that its words could deny
	kept      bool          // that was declined
	withdrawn *ledger.Event // it starts nothing any more
}

// waiter reads how a message waits.
func (b *book) waiter(id int64) waiter {
	w := waiter{message: b.mail[id], kept: b.kept[id]}
	if e, ok := b.withdrawn[id]; ok {
		w.withdrawn = &e
		return w
	}
	w.asks = len(b.asksOf(w.message.Session)) > 0
	return w
}

// asksOf are the open asks of the run that a conversation is at.
func (b *book) asksOf(session string) (open []string) {
	run := b.runAt(session)
	if run == nil || run.Finished != nil {
		return nil
	}
	for _, c := range run.Calls {
		if c.Approval.Open() {
			open = append(open, c.Approval.Approval)
		}
	}
	return open
}

// runAt is the run that a conversation is at.
func (b *book) runAt(session string) *ledger.Run { return b.runs[b.current[session]] }

// queue notes a message that waits, and which run its conversation is at.
func (b *book) queue(e ledger.Event) {
	switch body := e.Body.(type) {
	case *ledger.MessageReceived:
		b.waits[e.Session] = append(b.waits[e.Session], e.Seq)
	case *ledger.RunStarted:
		b.current[e.Session] = e.Run
		b.unqueue(e.Session, body.Message)
	case *ledger.MessageWithdrawn:
		b.unqueue(e.Session, body.Message)
		b.withdraw(e, body)
	case *ledger.ApprovalRequested, *ledger.ApprovalResolved, *ledger.RunFinished:
		b.remind(e.Session)
	}
}

// unqueue forgets a message that waits no more.
func (b *book) unqueue(session string, message int64) {
	left := slices.DeleteFunc(b.waits[session], func(seq int64) bool { return seq == message })
	delete(b.kept, message)
	if len(left) == 0 {
		delete(b.waits, session)
		return
	}
	b.waits[session] = left
}

// remind marks the messages that wait in a conversation: what they offer may have changed.
func (b *book) remind(session string) {
	for _, seq := range b.waits[session] {
		if t := b.things[progressOf(seq)]; t != nil {
			b.dirty[t] = true
			t.updated = t.updated.Add(-progressEvery) // people act on it, so it doesn't wait as progress does
		}
	}
}

// withdraw takes in that a message starts nothing any more. What was said about it is brought to its end.
func (b *book) withdraw(e ledger.Event, body *ledger.MessageWithdrawn) {
	t := b.things[progressOf(body.Message)]
	if t == nil || t.run != "" {
		return
	}
	b.withdrawn[body.Message] = e
	b.dirty[t] = true
}

// isWithdrawn tells whether a thing is about a message that starts nothing any more.
func (b *book) isWithdrawn(t *thing) bool {
	if t.Kind != kindProgress || t.run != "" {
		return false
	}
	_, ok := b.withdrawn[messageOf(t)]
	return ok
}

// spent tells whether nothing is left to be said about a message that was withdrawn: it was said, it can't be, or nobody
// was ever told that it waits.
func (b *book) spent(t *thing) bool {
	return b.isWithdrawn(t) && !t.busy && (t.gone != "" || t.held != "" || t.final && t.confirmed != "" || !t.stands() && t.looks == 0)
}

// drop forgets a message that was withdrawn.
func (b *book) drop(t *thing) {
	id := messageOf(t)
	b.remove(t)
	delete(b.mail, id)
	delete(b.withdrawn, id)
}

// messageOf is the Seq of the message that a progress is about.
func messageOf(t *thing) int64 {
	id, _ := strconv.ParseInt(t.ID, 10, 64)
	return id
}

// waiting is the message of a message that waits.
func (v *renderer) waiting(w waiter) rendering {
	r := rendering{thing: progressOf(w.message.Seq)}
	id := strconv.FormatInt(w.message.Seq, 10)
	switch {
	case w.withdrawn != nil:
		p := v.withdrawn(*w.withdrawn)
		r.text, r.blocks = fallback(p.plain.String()), []slack.Block{richText(paragraph(p.elements...))}
	case !w.offers():
		turn := v.t("Waiting its turn: another request in this conversation comes first.")
		r.text, r.blocks = fallback(turn), []slack.Block{richText(paragraph(text(turn)))}
	default:
		turn := v.t("Something in this conversation waits for approval, and your message waits behind it. Is it your answer to that?")
		r.text = fallback(turn)
		r.blocks = []slack.Block{
			richText(paragraph(text(turn))),
			slack.NewActionBlock("message."+id,
				labelled(button(actionDenyThis, id, v.t("Deny with This"), slack.StyleDefault), v.t("Deny the request that waits, with your message as the reason")),
				labelled(button(actionKeep, id, v.t("Keep for Later"), slack.StyleDefault), v.t("Let your message wait until the request is answered"))),
		}
	}
	return r
}

// labelled adds what a screen reader says of a button, where its label doesn't say all.
func labelled(b *slack.ButtonBlockElement, label string) *slack.ButtonBlockElement {
	b.AccessibilityLabel = asLong(label, maxLabel)
	return b
}

// offers tells whether a message that waits can be used as an answer.
func (w waiter) offers() bool { return w.asks && !w.kept && usable(w.message) }

// usable tells whether a message can be a reason as it is: in words alone, and not too many.
func usable(e ledger.Event) bool {
	m, ok := e.Body.(*ledger.MessageReceived)
	return ok && len(m.Files) == 0 && strings.TrimSpace(m.Text) != "" && utf8.RuneCountInString(m.Text) <= maxReasonWords
}

// withdrawn says what became of a message that starts nothing.
func (v *renderer) withdrawn(e ledger.Event) *phrase {
	who := slots{"who": func(p *phrase) { p.who(e.Actor) }, "at": func(p *phrase) { p.at(e.Time) }}
	switch e.Body.(*ledger.MessageWithdrawn).Reason {
	case withdrawnUsed:
		return v.phrase().form("Used by {who} to deny what waited, {at}. This message starts nothing else.", who)
	case withdrawnStopped:
		return v.phrase().form("Taken back by {who}, {at}. This message starts nothing.", who)
	}
	return v.phrase().form("Taken back {at}. This message starts nothing.", who)
}

// An offer is what a click on the message of a message that waits is about.
type offer struct {
	waiter
	asks []string // the open asks, in order
	fits bool     // the click came from that message
}

// offer finds it; false: the message doesn't wait any more.
func (o *outbox) offer(value, channel, ts string) (offer, bool) {
	id, err := strconv.ParseInt(value, 10, 64)
	o.mu.Lock()
	defer o.mu.Unlock()
	t := o.book.things[progressOf(id)]
	if err != nil || t == nil || t.run != "" || o.book.isWithdrawn(t) {
		return offer{}, false
	}
	at := o.book.at(channel, ts)
	return offer{
		waiter: o.book.waiter(id), asks: o.book.asksOf(o.book.mail[id].Session),
		fits: t.place.Channel == channel && (at == t || at == nil && !t.stands()),
	}, true
}

// keep takes an offer back.
func (o *outbox) keep(message int64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if t := o.book.things[progressOf(message)]; t != nil && t.run == "" {
		o.book.kept[message] = true
		o.book.dirty[t], t.updated = true, t.updated.Add(-progressEvery)
		o.poke()
	}
}

func onMessage(c *click) string { return "message/" + c.value + "/" + c.by.ID }

// What people are told of such a click.
const (
	notWaiting    = "That message doesn't wait any more: it is being worked on, or its words were used. Nothing was changed."
	nothingWaits  = "Nothing waits for approval here any more, so nothing was denied. The message waits for its turn."
	mixedDenial   = "Some of what waited was denied with these words; the rest is over, or you may not deny it."
	unrecordedUse = "I can't record this, so nothing is denied. The buttons stay; try again."
	foreignOffer  = "This button doesn't belong to this message, so nothing was decided."
)

// offered finds what a click is about, and makes sure that the person may; false: they were told why not.
func (u *UI) offered(ctx, limited context.Context, c *click) (offer, bool) {
	o, known := u.outbox.offer(c.value, c.channel, c.ts)
	switch {
	case !known:
		u.refuse(ctx, c, u.renderer.t(notWaiting))
		u.endOffer(ctx, c)
	case !o.fits || !c.byUs || c.modal():
		u.logger(ctx).Warn("a click that doesn't fit its message")
		u.refuse(ctx, c, u.renderer.t(foreignOffer))
	case len(o.asks) == 0:
		u.refuse(ctx, c, u.renderer.t(nothingWaits))
	default:
		err := u.approvals.MayUseWords(limited, o.asks[0], o.message.Actor.Person(), c.by)
		if err == nil {
			return o, true
		}
		u.refuse(ctx, c, u.renderer.refusal(err))
	}
	return offer{}, false
}

// endOffer takes the buttons from a message about which nothing is known any more: it was left behind by a process that
// ended before it could.
func (u *UI) endOffer(ctx context.Context, c *click) {
	if c.modal() || !c.byUs || !strings.HasPrefix(c.block, "message."+c.value) || u.outbox.knows(c.channel, c.ts) {
		return
	}
	u.override(ctx, c.channel, c.ts, u.renderer.foreign(u.renderer.t(notWaiting)))
}

// keepForLater is a click on Keep for Later.
func (u *UI) keepForLater(ctx context.Context, c *click) {
	limited, cancel := context.WithTimeout(ctx, decideLimit)
	defer cancel()
	if o, ok := u.offered(ctx, limited, c); ok {
		u.outbox.keep(o.message.Seq)
		c.receipt.ack()
	}
}

// denyThis is a click on Deny with This: it denies every ask that waits.
func (u *UI) denyThis(ctx context.Context, c *click) {
	limited, cancel := context.WithTimeout(ctx, decideLimit)
	defer cancel()
	o, ok := u.offered(ctx, limited, c)
	if !ok {
		return
	}
	if !usable(o.message) {
		u.refuse(ctx, c, u.renderer.t(foreignOffer))
		return
	}
	denied, first := u.denyAll(limited, o, c)
	c.receipt.ack()
	switch _, taken := errors.AsType[*ledger.ConflictError](first); {
	case denied == len(o.asks):
	case denied > 0:
		u.tell(ctx, c.place(), c.by.ID, u.renderer.t(mixedDenial))
	case taken:
		u.tell(ctx, c.place(), c.by.ID, u.renderer.t(notWaiting))
	case errors.Is(first, ledger.ErrNotRecorded):
		u.tell(ctx, c.place(), c.by.ID, u.renderer.t(unrecordedUse))
	case overOf(first):
		u.tell(ctx, c.place(), c.by.ID, u.renderer.t(nothingWaits))
	default:
		u.refuse(ctx, c, u.renderer.refusal(first))
	}
}

// overOf tells whether an ask could not be denied because it is over.
func overOf(err error) bool {
	_, _, over := approvals.Ended(err)
	return err == nil || over || errors.Is(err, approvals.ErrNotFound)
}

// denyAll denies the asks with the message's words. The first denial that counts takes the message. It returns how many
// were denied, and the first reason why one was not.
func (u *UI) denyAll(ctx context.Context, o offer, c *click) (denied int, first error) {
	with := []ledger.Event{withdrawal(o.message, c.by, withdrawnUsed)}
	for _, ask := range o.asks {
		out, err := u.approvals.ResolveByID(ctx, ask, approvals.Decision{
			Type: ledger.Denied, Reason: reasonOf(o.message, c.by), By: c.by, Received: c.at, With: with,
		})
		switch {
		case err == nil && !out.Repeated:
			denied++
			with = nil
		case err != nil && first == nil:
			first = err
			if _, taken := errors.AsType[*ledger.ConflictError](err); taken {
				return denied, first // its words belong to its run now
			}
		}
	}
	return denied, first
}

// reasonOf is a message as the reason of somebody's denial: whoever uses another person's words says whose they are.
func reasonOf(message ledger.Event, by ledger.Actor) string {
	words := strings.TrimSpace(message.Body.(*ledger.MessageReceived).Text)
	if message.Actor.Person() == by.Person() {
		return words
	}
	return message.Actor.DisplayName() + ": " + words
}
