package slackui

import (
	"context"
	"slices"
	"strconv"
	"time"

	"github.com/slack-go/slack"

	"approvalbot/internal/ledger"
)

// A nudge is a message that an ask waits: for a reminder, or because more people may approve it. It says so once, to those
// whom it mentions, and leads to the card, on which it is decided. When the ask is over it becomes one quiet line.
//
//	approval_reminded 1      in the card's thread, mentioning those who may approve       approvalId/1
//	approval_reminded 2      to each of them who is named, in a direct message            approvalId/2/U…
//	approval_escalated n     in the card's thread, mentioning those who are added         approvalId/e1
//	                         and to those of them who aren't in the channel               approvalId/e1/U…
const kindNudge = "nudge"

// A nudge is named by its ask and by what it is for.
type nudge struct {
	approval string
	n        int    // which reminder or level, from 1
	level    bool   // of an escalation
	user     string // to whom it is written; empty: to all, in the thread
}

func (n nudge) id() string {
	id := n.approval + "/"
	if n.level {
		id += "e"
	}
	id += strconv.Itoa(n.n)
	if n.user != "" {
		id += "/" + n.user
	}
	return id
}

// nudgeOf reads the id of a nudge about an ask; false: it is none.
func nudgeOf(id string, a *ledger.Approval) (nudge, bool) {
	for _, n := range nudges(a) {
		if n.id() == id {
			return n, true
		}
	}
	return nudge{}, false
}

// nudges are all that an ask has had so far.
func nudges(a *ledger.Approval) (all []nudge) {
	for _, r := range a.Reminded {
		n := nudge{approval: a.Approval, n: r.N}
		if !r.Direct {
			all = append(all, n)
			continue
		}
		all = append(all, n.to(r.To)...)
	}
	for _, e := range a.Escalated {
		n := nudge{approval: a.Approval, n: e.Level, level: true}
		all = append(append(all, n), n.to(e.To)...)
	}
	return all
}

// to are the same nudge for each of these people.
func (n nudge) to(users []string) (all []nudge) {
	for _, u := range users {
		if userID.MatchString(u) {
			n.user = u
			all = append(all, n)
		}
	}
	return all
}

// place is where a nudge belongs. A direct message has a user's id for its channel until the conversation is open.
func (n nudge) place(card ledger.Place) ledger.Place {
	if n.user != "" {
		return ledger.Place{Team: card.Team, Channel: n.user}
	}
	return card
}

// nudge renders a nudge. The last state depends on nothing but how the ask ended.
func (v *renderer) nudge(run *ledger.Run, c *ledger.Call, id string) (out rendering, final bool) {
	a := c.Approval
	out = rendering{thing: ledger.Thing{Kind: kindNudge, ID: id}, run: run.ID}
	p := v.phrase()
	if a.Resolved != nil {
		q := v.request(a)
		v = v.knowing(q.hits)
		p.strong(q.summary).say(" · ") // of several in a conversation, which one
		v.nudged(p, a)
		out.text, out.blocks = fallback(p.plain.String()), []slack.Block{richText(paragraph(p.elements...))}
		return out, true
	}
	n, _ := nudgeOf(id, a)
	v.nudging(p, n, run, c)
	q := v.request(a)
	out.text = fallback(v.tf("Still waiting for an answer, %s left: %s", v.timeLeft(a, n), q.summary))
	about := []element{bold(q.summary)}
	if link := cardLink(a); link != "" {
		about = append(about, text(" · "), slack.NewRichTextSectionLinkElement(link, v.t("Open the request"), nil))
	}
	out.blocks = []slack.Block{richText(paragraph(p.elements...), paragraph(about...))}
	return out, false
}

// nudging is the sentence of an ask that waits.
func (v *renderer) nudging(p *phrase, n nudge, run *ledger.Run, c *ledger.Call) {
	a := c.Approval
	s := slots{
		"until": func(p *phrase) { p.until(a, a.Until()) },
		"asker": func(p *phrase) { v.people(p, actorsOf(a.Requesters, run.StartedBy)) },
		"place": func(p *phrase) { p.channel(a.Place.Channel) },
	}
	var who []string
	switch {
	case n.level && n.n <= len(a.Escalated):
		who = a.Escalated[n.n-1].Approvers
	case n.n > 0 && n.n <= len(a.Reminded):
		who = a.Reminded[n.n-1].To
	}
	mention := v.phrase()
	mention.listed(a, who)
	s["who"] = func(p *phrase) { p.elements = append(p.elements, mention.elements...) }
	switch {
	case n.level && n.user != "":
		p.form("Nobody has answered yet, so *you may approve this, too*, until {until}. Asked by {asker} in {place}:", s)
	case n.level:
		p.form("Nobody has answered yet, so {who} *may approve this, too*, until {until}:", s)
	case n.user != "":
		p.form("*This waits for your answer*, until {until}. Asked by {asker} in {place}:", s)
	case len(mention.elements) == 0:
		p.form("*Still waiting for an answer*, until {until}:", s)
	default:
		p.form("{who}: *still waiting for an answer*, until {until}:", s)
	}
}

// nudged is the one line that stays.
func (v *renderer) nudged(p *phrase, a *ledger.Approval) {
	switch {
	case a.Resolved.Source == ledger.SourceUser && a.Resolved.By != nil:
		p.form("Answered by {who}.", slots{"who": func(p *phrase) { p.who(*a.Resolved.By) }})
	case a.Resolved.Source == ledger.SourceUser:
		p.say(v.t("Answered."))
	case a.Resolved.Source == ledger.SourceTimeout:
		p.say(v.t("Nobody answered."))
	default:
		p.say(v.t("This isn't asked any more."))
	}
}

// timeLeft is how much time there was when the nudge was due, for a notification, which is read then.
func (v *renderer) timeLeft(a *ledger.Approval, n nudge) string {
	at := a.Since()
	switch {
	case n.level && n.n <= len(a.Escalated):
		at = a.Escalated[n.n-1].At
	case n.n > 0 && n.n <= len(a.Reminded):
		at = a.Reminded[n.n-1].At
	}
	left := a.Until().Sub(at).Round(time.Second)
	switch {
	case left < briefly:
		return v.count(max(int(left.Seconds()), 0), "second", "seconds")
	case left < 2*time.Hour:
		return v.count(int(left.Minutes()), "minute", "minutes")
	}
	return v.count(int(left.Hours()), "hour", "hours")
}

// cardLink is the address of the card in Slack; empty while it isn't known.
func cardLink(a *ledger.Approval) string {
	for _, s := range a.Shown {
		if s.Surface != surface {
			continue
		}
		thread := ""
		if s.Channel == a.Place.Channel {
			thread = a.Place.Thread
		}
		return permalink(a.Site, s.Channel, s.TS, thread)
	}
	return ""
}

// nudge makes the nudges that an ask now has.
func (b *book) nudge(run *ledger.Run, c *ledger.Call) {
	for _, n := range nudges(c.Approval) {
		if place := n.place(nudgedAt(run, c.Approval)); place.Channel != "" {
			b.thing(ledger.Thing{Kind: kindNudge, ID: n.id()}, run.ID, place).nudged = c.ID
		}
	}
}

// nudgedAt is where people are reminded of an ask: in the thread of the card on which it is meant to be decided.
func nudgedAt(run *ledger.Run, a *ledger.Approval) ledger.Place {
	home := ledger.Place{}
	if slices.Contains(a.Surfaces, surface) {
		home = askPlace(a, run.Started.Place)
	}
	if !a.Only && home.Channel != "" {
		return home
	}
	slot := decidedAt(a)
	if slot == 0 {
		return home
	}
	posted, known := postedAt(run, a, slot)
	if !known || posted.Gone != "" {
		return home
	}
	return ledger.Place{Team: a.Elsewhere[slot-1].Team, Channel: posted.Channel, Thread: posted.TS}
}

// over tells whether a nudge's ask has ended.
func (b *book) over(t *thing) bool {
	run := b.runs[t.run]
	return run != nil && run.Call(t.nudged) != nil && !run.Call(t.nudged).Approval.Open()
}

// unopened tells whether a thing belongs into a direct message that isn't open yet.
func (t *thing) unopened() bool { return !t.stands() && userID.MatchString(t.place.Channel) }

// room opens the direct message that a thing belongs into. A conversation is opened once.
func (o *outbox) room(ctx context.Context, t *thing, now time.Time) time.Time {
	if o.pointless(t) {
		t.gone = "not_shown"
		return o.settle(ctx, t)
	}
	if id := o.rooms[t.place.Channel]; id != "" {
		t.place.Channel = id
		return now
	}
	if at := o.opens.at(now, 0); at.After(now) {
		return at
	}
	o.opens.take(now)
	user := t.place.Channel
	o.start(ctx, t, func(ctx context.Context) {
		channel, _, _, err := o.client.api.OpenConversationContext(ctx, &slack.OpenConversationParameters{Users: []string{user}})
		id := ""
		if channel != nil {
			id = channel.ID
		}
		if err == nil && id == "" {
			err = errUnanswered
		}
		o.mu.Lock()
		defer o.mu.Unlock()
		o.opened(t, user, id, judge(err))
	})
	return time.Time{}
}

// opened takes in the answer. Somebody who can't be written to isn't.
func (o *outbox) opened(t *thing, user, id string, a answer) {
	now := time.Now()
	switch a.verdict {
	case confirmed:
		if len(o.rooms) >= roomsMost {
			clear(o.rooms)
		}
		o.rooms[user] = id
		t.place.Channel = id
		t.tries, t.noes, t.notBefore = 0, 0, time.Time{}
		return
	case limited:
		o.opens.stop(now, o.retry(t, a, now))
	}
	o.setback(t, a, now)
	if a.verdict == absent || a.verdict == refused || a.verdict == puzzling && t.noes >= askNoes {
		t.gone = a.code
	}
}

// roomsMost bounds what is remembered of direct messages; opening one that is open does no harm.
const roomsMost = 10_000
