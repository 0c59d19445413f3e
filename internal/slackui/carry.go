package slackui

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"approvalbot/internal/ledger"
)

// An ask may stand in several messages, and a message may carry several asks. Which it is follows from the journal alone:
//
//	slot 0          where the run talks: a card, or with others of its round a set
//	slot 1, 2, …    ApprovalRequested.Elsewhere: a copy, or again a set
//
// Each of them reports by itself that the ask is shown there, can be clicked, and says how the ask ended. The ask is
// undeliverable when none of them is left.

const (
	// setMost is how many asks stand in one message: more isn't read.
	setMost = 8

	// setBulk is what the asks of one message may weigh together, and setEach what one may that isn't to have a card of its
	// own. Both are estimates from what is asked, so that which message an ask belongs to never changes.
	setBulk = 11_000
	setEach = 6_000

	// setBase is what an ask weighs in a set without anything of its own: buttons, names, small print. setOffer is what each
	// further thing adds that it lets people do.
	setBase  = 1_600
	setOffer = 120

	// setWait is how long a set waits for the asks of the same round before it is posted. What is asked later stands in the
	// next one: nobody would be notified of it.
	setWait = 150 * time.Millisecond

	// setSlack is for the way from the journal.
	setSlack = 20 * time.Millisecond

	// linkHold is how long a card waits for the messages that it links to: so that it needn't be changed at once.
	linkHold = 1500 * time.Millisecond
)

// askPlace is where an ask's card belongs.
func askPlace(a *ledger.Approval, run ledger.Place) ledger.Place {
	if a.Place.Channel != "" {
		return a.Place
	}
	return run
}

// placesOf are the places of an ask; one without a channel is none.
func placesOf(a *ledger.Approval, run ledger.Place) []ledger.Place {
	home := ledger.Place{}
	if slices.Contains(a.Surfaces, surface) {
		home = askPlace(a, run)
	}
	return append([]ledger.Place{home}, a.Elsewhere...)
}

// carry makes the messages of some of the run's asks: of all, or of those of one round.
func (b *book) carry(run *ledger.Run, asked []*ledger.Call) {
	shared := sets(run, asked)
	for _, c := range asked {
		for slot, place := range placesOf(c.Approval, run.Started.Place) {
			if place.Channel == "" {
				continue
			}
			id, together := shared[seat{c.ID, slot}]
			if !together {
				id = cardOf(c.Approval.Approval, slot)
			}
			t := b.thing(id, run.ID, place)
			t.slot = slot
			b.put(t, run, c, together)
		}
	}
}

// put puts an ask onto a message.
func (b *book) put(t *thing, run *ledger.Run, c *ledger.Call, together bool) {
	if slices.Contains(t.calls, c.ID) {
		return
	}
	if together && !t.carries() {
		t.notBefore = c.Approval.At.Add(setWait + setSlack)
	}
	if t.calls = append(t.calls, c.ID); len(t.calls) > 1 {
		inOrder := make([]string, 0, len(t.calls))
		for _, other := range run.Calls {
			if slices.Contains(t.calls, other.ID) {
				inOrder = append(inOrder, other.ID)
			}
		}
		t.calls = inOrder
	}
	id := c.Approval.Approval
	b.byAsk[id] = append(b.byAsk[id], t)
	b.dirty[t] = true
}

// cardOf is the message of one ask at one of its places.
func cardOf(approval string, slot int) ledger.Thing {
	if slot == 0 {
		return ledger.Thing{Kind: kindCard, ID: approval}
	}
	return ledger.Thing{Kind: kindCopy, ID: fmt.Sprintf("%s/%d", approval, slot)}
}

// asksInOrder are the calls of a run that people were asked about, in the order in which they were.
func asksInOrder(run *ledger.Run) []*ledger.Call {
	return asksOf(run, func(*ledger.Call) bool { return true })
}

// askedWith are the calls with which a call may stand in one message: those of its round, in the order of the asks. They
// are all that is needed to know what stands together, so a long run costs no more than a short one.
func askedWith(run *ledger.Run, c *ledger.Call) []*ledger.Call {
	if !c.Approval.Together || c.Round == 0 {
		return []*ledger.Call{c}
	}
	return asksOf(run, func(other *ledger.Call) bool { return other.Round == c.Round })
}

func asksOf(run *ledger.Run, which func(*ledger.Call) bool) []*ledger.Call {
	var asked []*ledger.Call
	for _, c := range run.Calls {
		if c.Approval != nil && which(c) {
			asked = append(asked, c)
		}
	}
	slices.SortFunc(asked, func(x, y *ledger.Call) int { return cmp.Compare(x.Approval.Seq, y.Approval.Seq) })
	return asked
}

// A seat is an ask at one of its places.
type seat struct {
	call string
	slot int
}

// A table is where asks are put together: those of one round that belong at the same place.
type table struct {
	round, slot int
	place       ledger.Place
}

// A part is the message of a table that is being filled.
type part struct {
	thing ledger.Thing
	asks  int
	bulk  int
	until time.Time // of the asking
}

// sets says in which messages asks stand together. An ask's place is decided by what was asked before it, so it stays.
func sets(run *ledger.Run, asked []*ledger.Call) map[seat]ledger.Thing {
	shared := map[seat]ledger.Thing{}
	filling := map[table]*part{}
	parts := map[[2]int]int{} // by round and slot
	for _, c := range asked {
		a := c.Approval
		heavy := bulk(a) // as it was asked: what changes later doesn't move it
		if !a.Together || c.Round == 0 || heavy > setEach {
			continue
		}
		for slot, place := range placesOf(a, run.Started.Place) {
			if place.Channel == "" || slot == 0 && a.Only || slot > len(a.Original.Elsewhere) {
				continue // where it was escalated to it comes later than others of its round, and stands alone
			}
			at := table{c.Round, slot, place}
			p := filling[at]
			if p == nil || p.asks == setMost || p.bulk+heavy > setBulk || a.At.After(p.until) {
				n := parts[[2]int{c.Round, slot}] + 1
				parts[[2]int{c.Round, slot}] = n
				p = &part{thing: setOf(run.ID, c.Round, n, slot), until: a.At.Add(setWait)}
				filling[at] = p
			}
			p.asks, p.bulk = p.asks+1, p.bulk+heavy
			shared[seat{c.ID, slot}] = p.thing
		}
	}
	return shared
}

func setOf(run string, round, part, slot int) ledger.Thing {
	id := fmt.Sprintf("%s/%d/%d", run, round, part)
	if slot > 0 {
		id += fmt.Sprintf("/%d", slot)
	}
	return ledger.Thing{Kind: kindSet, ID: id}
}

// bulk estimates what an ask weighs in a set. It is about the request as it stands in the journal: what is hidden of it is
// hidden later.
func bulk(a *ledger.Approval) int {
	q := a.Original
	_, body := content(&ledger.Approval{ApprovalRequested: q})
	n := setBase + len(q.Offers)*setOffer + weightOf(body) + 2*weightOf(clipped(q.Preview.Summary, maxSummaryChars)) + weightOf(clipped(q.Reason, maxReasonChars))
	for _, note := range q.Preview.Notes {
		n += weightOf(note)
	}
	return n
}

// clipped is at most so many characters of a text.
func clipped(s string, most int) string {
	n := 0
	for i := range s {
		if n == most {
			return s[:i]
		}
		n++
	}
	return s
}

// moved marks what links to a message, or stands in for it, when it was posted or is gone.
func (b *book) moved(id ledger.Thing) {
	t := b.things[id]
	if t == nil {
		return
	}
	for _, c := range b.asks(t) {
		for _, other := range b.byAsk[c.Approval.Approval] {
			if other != t && other.slot == 0 {
				b.dirty[other] = true
			}
		}
	}
}

// holds is until when a message that was never posted waits for those that it links to.
func (b *book) holds(t *thing) time.Time {
	if t.slot != 0 {
		return time.Time{}
	}
	for _, c := range b.asks(t) {
		for _, other := range b.byAsk[c.Approval.Approval] {
			if other.slot > 0 && !other.recorded && other.gone == "" && c.Approval.Open() {
				return c.Approval.At.Add(linkHold)
			}
		}
	}
	return time.Time{}
}

// carried renders a message that carries asks.
func (b *book) carried(t *thing, run *ledger.Run, r *renderer, now time.Time) wanted {
	asks := b.asks(t)
	out := wanted{untils: map[string]time.Time{}, final: !r.toCome(t, run)}
	for _, c := range asks {
		out.final = out.final && r.cardFinal(c, run)
		if endingOf(c) != endPending {
			continue
		}
		id := c.Approval.Approval
		out.untils[id] = b.deadline(c.Approval, now)
		if !pointsElsewhere(run, c.Approval, t.slot) {
			out.shows = append(out.shows, id)
		}
	}
	out.rendering = r.carrier(run, asks, t.slot, out.untils)
	out.thing = t.Thing
	return out
}

// toCome tells whether a message may still get something new although all that stands on it is over: another ask of its
// round, or, where nothing else of the run is in Slack, the run's end.
func (v *renderer) toCome(t *thing, run *ledger.Run) bool {
	if run.Started.Place.Channel == "" && run.Finished == nil {
		return true
	}
	if t.Kind != kindSet {
		return false
	}
	round := run.Call(t.calls[0]).Round
	return slices.ContainsFunc(run.Calls, func(c *ledger.Call) bool {
		return c.Round == round && c.Approval == nil && c.Finished == nil
	})
}

// carrier renders asks as they stand together at one of their places; one of them alone as its card.
func (v *renderer) carrier(run *ledger.Run, asks []*ledger.Call, slot int, untils map[string]time.Time) rendering {
	v = v.standing(run, slot)
	if len(asks) != 1 {
		return v.set(run, asks, untils).rendering
	}
	c := asks[0]
	until := untils[c.Approval.Approval]
	if endingOf(c) == endPending && pointsElsewhere(run, c.Approval, slot) {
		return v.pointer(run, c, until)
	}
	return v.card(run, c, until)
}
