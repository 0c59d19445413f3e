package slackui

import (
	"slices"
	"strings"
	"time"

	"github.com/slack-go/slack"

	"approvalbot/internal/ledger"
)

// What a card says of where else its ask stands, and whom it mentions. The links are made of what the journal says: the
// workspace's address, and where each message was posted.

// A spot is one of the places of an ask: where a card is rendered for.
type spot struct {
	run  *ledger.Run
	slot int
}

// standing is a renderer for cards at one of their places.
func (v *renderer) standing(run *ledger.Run, slot int) *renderer {
	w := *v
	w.spot = &spot{run: run, slot: slot}
	return &w
}

// slot is the place that is rendered for.
func (v *renderer) slot() int {
	if v.spot == nil {
		return 0
	}
	return v.spot.slot
}

// pointsElsewhere tells whether a message only says where its ask is decided. Where it can't stand there, the message
// itself gets the buttons.
func pointsElsewhere(run *ledger.Run, a *ledger.Approval, slot int) bool {
	if slot != 0 || !a.Only {
		return false
	}
	for i := range a.Elsewhere {
		if p, known := postedAt(run, a, i+1); !known || p.Gone == "" {
			return true
		}
	}
	return false
}

// postedAt is the message that carries an ask at one of its places, as the journal knows it.
func postedAt(run *ledger.Run, a *ledger.Approval, slot int) (ledger.Posted, bool) {
	id := cardOf(a.Approval, slot)
	if a.Together {
		for _, c := range run.Calls {
			if c.Approval != a {
				continue
			}
			if set, ok := sets(run, askedWith(run, c))[seat{c.ID, slot}]; ok {
				id = set
			}
		}
	}
	var found ledger.Posted
	known := false
	for _, p := range run.Posted { // the last one counts: an earlier one may be gone
		if p.Thing == id && (!known || p.Gone == "" || found.Gone != "") {
			found, known = p, true
		}
	}
	return found, known
}

// permalink is the address of a message, or of a thread by its first message.
func permalink(site, channel, ts, thread string) string {
	if site == "" || channel == "" || ts == "" {
		return ""
	}
	link := strings.TrimSuffix(site, "/") + "/archives/" + channel + "/p" + strings.Replace(ts, ".", "", 1)
	if thread != "" {
		link += "?thread_ts=" + thread + "&cid=" + channel
	}
	return link
}

// elsewhere says on a card where else the card stands, and whom it wants to see it; nil if there is nothing to say.
func (v *renderer) elsewhere(a *ledger.Approval) []slack.RichTextElement {
	var lines []slack.RichTextElement
	line := func(p *phrase) {
		if len(p.elements) > 0 {
			lines = append(lines, paragraph(p.elements...))
		}
	}
	line(v.attention(a))
	switch {
	case v.spot == nil:
	case v.slot() > 0:
		line(v.whereFrom(a))
	case a.Away && len(a.Elsewhere) > 0 && a.Quorum > 1:
		line(v.phrase().form("*Too few people here may approve this.* It is also asked {places}.", v.places(a)))
	case a.Away && len(a.Elsewhere) > 0:
		line(v.phrase().form("*Nobody here may approve this.* It is asked {places}.", v.places(a)))
	case a.Away:
		line(v.phrase().form("*Too few people here may approve this*, and those who may could not be written to.", nil))
	case len(a.Elsewhere) > 0:
		line(v.phrase().form("Also asked {places}.", v.places(a)))
	}
	return lines
}

// attention mentions those whom the operator wants to see it. It makes nobody an approver.
func (v *renderer) attention(a *ledger.Approval) *phrase {
	p := v.phrase()
	var who []string
	for _, id := range a.Notify {
		if (userID.MatchString(id) || groupID.MatchString(id)) && !slices.Contains(a.Approvers, id) && v.mentions(a, id) {
			who = append(who, id)
		}
	}
	if len(who) == 0 {
		return p
	}
	return p.form("*To be seen by:* {who}", slots{"who": func(p *phrase) {
		for i, id := range who {
			if i > 0 {
				p.say(v.joint(i, len(who)))
			}
			p.add(mention(id), "@"+id)
		}
	}})
}

// whereFrom says, elsewhere, where it was asked.
func (v *renderer) whereFrom(a *ledger.Approval) *phrase {
	home := askPlace(a, v.spot.run.Started.Place)
	p := v.phrase()
	direct := v.slot() <= len(a.Elsewhere) && a.Elsewhere[v.slot()-1].User != ""
	at := slots{"thread": func(p *phrase) { v.thread(p, a, home) }}
	switch {
	case home.Channel == "" && v.spot.run.Started.Program != "":
		return p // the card says that a program asks
	case home.Channel == "":
		return p.form("*Asked by a program*, over HTTP.", nil)
	case direct && a.Away:
		return p.form("*You are asked directly* because too few people may approve it where it was asked: {thread}.", at)
	case direct:
		return p.form("*You are asked directly.* It was asked here: {thread}.", at)
	}
	return p.form("*Where it was asked:* {thread}.", at)
}

// thread links to the conversation of a run.
func (v *renderer) thread(p *phrase, a *ledger.Approval, home ledger.Place) {
	if !strings.HasPrefix(home.Channel, "D") {
		p.channel(home.Channel)
	} else {
		p.say(v.t("a direct message"))
	}
	if link := permalink(a.Site, home.Channel, home.Thread, home.Thread); link != "" {
		p.say(v.t(" (")).link(link, v.t("Open the Thread")).say(v.t(")"))
	}
}

// channel adds a channel by its name; of a direct message, that it is one.
func (p *phrase) channel(id string) {
	if id == "" || strings.HasPrefix(id, "D") {
		p.say(p.v.t("a direct message"))
		return
	}
	p.add(slack.NewRichTextSectionChannelElement(id, nil), "#"+id)
}

// link adds a link with words of ours; without an address, nothing.
func (p *phrase) link(url, words string) *phrase {
	if url != "" {
		p.add(slack.NewRichTextSectionLinkElement(url, words, nil), words)
	}
	return p
}

// places is where else an ask stands: "in #approvals (Open the Card)", "by direct message: bob, carol".
func (v *renderer) places(a *ledger.Approval) slots {
	return slots{"places": func(p *phrase) {
		first := true
		var direct []int
		for i, at := range a.Elsewhere {
			if at.User != "" {
				direct = append(direct, i)
				continue
			}
			if !first {
				p.say(v.t(", "))
			}
			first = false
			v.inChannel(p, a, i+1, at)
		}
		if len(direct) == 0 {
			return
		}
		if !first {
			p.say(v.t(", "))
		}
		p.say(v.t("by direct message to")).say(" ")
		for n, i := range direct {
			if n > 0 {
				p.say(v.joint(n, len(direct)))
			}
			v.letter(p, a, i+1, a.Elsewhere[i])
		}
	}}
}

// inChannel names a channel in which an ask stands, with a link to it.
func (v *renderer) inChannel(p *phrase, a *ledger.Approval, slot int, at ledger.Place) {
	p.form("in {channel}", slots{"channel": func(p *phrase) { p.channel(at.Channel) }})
	switch posted, known := postedAt(v.spot.run, a, slot); {
	case known && posted.Gone != "" && posted.TS == "":
		p.say(v.t(" (it could not be posted there)"))
	case known:
		if link := permalink(a.Site, posted.Channel, posted.TS, ""); link != "" {
			p.say(v.t(" (")).link(link, v.t("Open the Card")).say(v.t(")"))
		}
	}
}

// letter names somebody who was written to; the name leads them to it.
func (v *renderer) letter(p *phrase, a *ledger.Approval, slot int, at ledger.Place) {
	name := v.called(a, at.User)
	posted, known := postedAt(v.spot.run, a, slot)
	if a.Names[at.User] == "" {
		p.add(mention(at.User), "@"+at.User)
	} else if known && posted.Gone == "" && a.Site != "" {
		p.link(permalink(a.Site, posted.Channel, posted.TS, ""), name)
	} else {
		p.say(name)
	}
	if known && posted.Gone != "" && posted.TS == "" {
		p.say(v.t(" (not reached)"))
	}
}

// called is what somebody is called who isn't mentioned.
func (v *renderer) called(a *ledger.Approval, id string) string {
	if name := strings.TrimSpace(a.Names[id]); name != "" {
		return "@" + v.line(strings.TrimPrefix(name, "@"), maxNameChars)
	}
	return id
}

func mention(id string) element {
	if groupID.MatchString(id) {
		return slack.NewRichTextSectionUserGroupElement(id)
	}
	return slack.NewRichTextSectionUserElement(id, nil)
}

// approver names one who may approve: as a mention, where that is to reach them.
func (v *renderer) approver(p *phrase, a *ledger.Approval, id string) {
	switch {
	case v.mentions(a, id):
		p.add(mention(id), "@"+id)
	case groupID.MatchString(id):
		p.say(v.t("a user group"))
	case a.Names[id] == "": // who was added later: updates notify nobody
		p.add(mention(id), "@"+id)
	default:
		p.say(v.called(a, id))
	}
}

// mentions tells whether a message mentions somebody. Of the messages of an ask one does, where it is meant to be decided;
// who was written to directly isn't mentioned besides.
func (v *renderer) mentions(a *ledger.Approval, id string) bool {
	if len(a.Notify) > 0 && !slices.Contains(a.Notify, id) &&
		!(slices.Contains(a.Notify, "approvers") && slices.Contains(a.Approvers, id)) {
		return false
	}
	direct := slices.ContainsFunc(a.Elsewhere, func(p ledger.Place) bool { return p.User == id })
	return v.spot == nil || !direct && v.slot() == decidedAt(a)
}

// decidedAt is the place where an ask is meant to be decided: the approvals channel, if there is one.
func decidedAt(a *ledger.Approval) int {
	return 1 + slices.IndexFunc(a.Elsewhere, func(p ledger.Place) bool { return p.User == "" })
}

// membersWhere is whom "channel" stands for on a card.
func (v *renderer) membersWhere(a *ledger.Approval) string {
	if !a.Only && a.Place.Channel != "" && decidedAt(a) > 0 {
		return v.t("full members of the channels where this stands")
	}
	return v.membersOf(a.Place)
}

// pointer is what stands where a run talks while its ask is decided elsewhere.
func (v *renderer) pointer(run *ledger.Run, c *ledger.Call, until time.Time) rendering {
	a := c.Approval
	q := v.request(a)
	v = v.knowing(q.hits)
	content := []slack.RichTextElement{paragraph(bold(q.summary))}
	if risk := v.risk(a); risk != nil {
		content = append(content, risk)
	}
	where := v.phrase().form("*Waiting for approval.* It is decided {places}.", v.places(a))
	content = append(content, where.section(), v.askedBy(a, run), v.expiry(until, a.Timeout))
	return rendering{
		text:   fallback(v.needed(q, a) + " · " + v.t("decided in another channel")),
		blocks: []slack.Block{richText(content...), note(v.reference(a))},
		run:    run.ID,
	}
}
