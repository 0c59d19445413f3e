package slackui

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	"approvalbot/internal/language"
	"approvalbot/internal/ledger"
	"approvalbot/internal/redact"
)

// A Recheck renders the messages of all runs again in their last state: what Slack confirmed is what the journal says.
// Give it all events of a journal in order ([ledger.VerifyOptions.Check]). The zero value is ready. It remembers the runs
// whose messages may still change, as the outbox does.
//
// The redactor's patterns are part of the rendering, our own tokens of that time are not known any more. So what was
// confirmed is recorded as computable (MessageSettled.Renderer) only where those were not in it.
type Recheck struct {
	Renderings int64 // that were computed again
	Other      int64 // that can't be: made by another version, or with secrets of the time in them, or erased in part

	book *book
}

// anyones renders with nothing but what is known to everybody, in English.
var anyones = &renderer{redactor: redact.New(), lang: language.English}

// anyonesIn is the same in another language.
func anyonesIn(l language.Language) *renderer {
	r := *anyones
	r.lang = l
	return &r
}

// Event takes the next event. An error says that the event doesn't fit the ones before.
func (c *Recheck) Event(e ledger.Event) error {
	if c.book == nil {
		c.book = newBook()
	}
	if b, ok := e.Body.(*ledger.MessageSettled); ok && b.Rendering != "" && b.Gone == "" {
		if err := c.settled(e, b); err != nil {
			return err
		}
	}
	c.book.apply(e, anyones)
	clear(c.book.dirty) // nothing is sent
	for message := range c.book.withdrawn {
		c.book.drop(c.book.things[progressOf(message)])
	}
	return nil
}

// settled compares the rendering that the journal gives with the one that Slack confirmed.
func (c *Recheck) settled(e ledger.Event, b *ledger.MessageSettled) error {
	lang, err := language.Parse(b.Language)
	if err != nil { // a later version's
		c.Other++
		return nil
	}
	r := anyonesIn(lang)
	if run := c.book.runs[e.Run]; run != nil {
		c.book.sync(run, r) // an answer may have more parts in another language
	}
	t := c.book.things[b.Thing]
	if pause, channel, ok := pauseOf(b.Thing); ok && c.book.pauses[pause] != nil && channel == b.Channel {
		t = &thing{Thing: b.Thing} // where it had to be said depends on more than the journal; what was said doesn't
	}
	switch {
	case b.Renderer != rendererVersion:
		c.Other++
		return nil
	case t == nil || t.run != e.Run:
		if run := c.book.runs[e.Run]; run != nil && run.Erased == 0 {
			return fmt.Errorf("the %s %s stands in Slack and is none of its run's", b.Thing.Kind, b.Thing.ID)
		}
		c.Other++ // the run has no place in Slack any more that is known: its beginning was erased
		return nil
	case !c.book.matches(t, b.Rendering, r):
		return fmt.Errorf("what the journal gives for the %s %s is not what Slack confirmed (SHA-256 %.12s…)", b.Thing.Kind, b.Thing.ID, b.Rendering)
	}
	c.Renderings++
	return nil
}

// recordedAs is how the journal calls a language: English is nothing, as before there were others.
func recordedAs(l language.Language) string {
	if l == language.English {
		return ""
	}
	return string(l)
}

// renderer is the version to record with a thing's last rendering in a language.
func (b *book) renderer(t *thing, l language.Language) int {
	if t.confirmed == "" || t.gone != "" || !b.matches(t, t.confirmed, anyonesIn(l)) {
		return 0
	}
	return rendererVersion
}

// matches tells whether a rendering of the thing as the book has it is the one with this hash: as it is usually sent, or
// in plain blocks, where Slack didn't take the others.
func (b *book) matches(t *thing, hash string, r *renderer) bool {
	if id, err := strconv.ParseInt(t.ID, 10, 64); t.Kind == kindProgress && (err != nil || b.mail[id].Body == nil) {
		return false
	}
	bare := &thing{Thing: t.Thing, run: t.run, calls: t.calls, slot: t.slot, part: t.part, nudged: t.nudged}
	fits := func() bool {
		out := b.render(bare, r, time.Time{})
		return out.final && (out.hash() == hash || plain(out.rendering).hash() == hash)
	}
	if fits() {
		return true
	}
	// Somebody may have had it asked again after Slack confirmed it and before that was recorded.
	for _, c := range b.lately(bare) {
		again := c.Approval.AskedAgain
		c.Approval.AskedAgain = nil
		defer func() { c.Approval.AskedAgain = again }()
		if fits() {
			return true
		}
	}
	return false
}

// lately are the asks of a thing that were asked again, the last one first.
func (b *book) lately(t *thing) []*ledger.Call {
	again := slices.DeleteFunc(b.asks(t), func(c *ledger.Call) bool { return c.Approval.AskedAgain == nil })
	slices.SortFunc(again, func(x, y *ledger.Call) int { return y.Approval.AskedAgain.At.Compare(x.Approval.AskedAgain.At) })
	return again
}
