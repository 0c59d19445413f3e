package slackui

import (
	"cmp"
	"context"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/slack-go/slack"

	"approvalbot/internal/approvals"
	"approvalbot/internal/ledger"
)

// What one person may see of what is going on: open asks, runs, grants, and what they have decided. The Home tab and
// /approvals are made of it. Two rules hold for all of it. Something is shown to those who are in a conversation where it
// stands, and to nobody else: what can't be looked up isn't shown. And what they may do about it, the registry says.

const (
	// looksMost bounds how many open asks or runs are looked at for one person, the oldest first.
	looksMost = 300

	// looksLimit bounds how long that may take.
	looksLimit = 8 * time.Second
)

// A sight is an open ask or a run that somebody may see, and where its messages are.
type sight struct {
	approval string // of an ask
	run      string
	places   []ledger.Place
	links    []string    // to its message in each of the places
	link     string      // the one for whoever looks: of the first place that they see
	state    *ledger.Run // of a run: what it takes to tell who may stop it
	order    int64       // of the journal
}

// openAsks are the asks that wait for people and stand somewhere, in whatever kind of message, the oldest first. Where an
// ask is meant to be decided comes first among its places.
func (o *outbox) openAsks() (all []sight) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for id, run := range o.book.runs {
		for _, c := range run.Calls {
			a := c.Approval
			if !a.Open() || len(a.Shown) == 0 {
				continue
			}
			s := sight{approval: a.Approval, run: id, order: a.Seq}
			for _, t := range o.book.byAsk[a.Approval] {
				if !t.stands() {
					continue
				}
				at := len(s.places)
				if t.slot == decidedAt(a) {
					at = 0
				}
				s.places = slices.Insert(s.places, at, t.place)
				s.links = slices.Insert(s.links, at, permalink(o.client.URL, t.channel, t.ts, t.place.Thread))
			}
			if len(s.places) > 0 {
				all = append(all, s)
			}
		}
	}
	slices.SortFunc(all, func(a, b sight) int { return cmp.Compare(a.order, b.order) })
	return all
}

// openRuns are the runs in Slack that have not ended, the oldest first.
func (o *outbox) openRuns() (all []sight) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for id, run := range o.book.runs {
		if run.Finished != nil || run.Started == nil {
			continue
		}
		s := sight{
			run: id, places: []ledger.Place{run.Started.Place}, links: []string{""}, order: run.Started.Message,
			state: &ledger.Run{ID: run.ID, Session: run.Session, Started: run.Started, StartedBy: run.StartedBy},
		}
		if t := o.book.things[progressOf(run.Started.Message)]; t != nil && t.stands() {
			s.links[0] = permalink(o.client.URL, t.channel, t.ts, t.place.Thread)
		}
		all = append(all, s)
	}
	slices.SortFunc(all, func(a, b sight) int { return cmp.Compare(a.order, b.order) })
	return all
}

// visible are those among sights that somebody may see; cut says that there were too many to look at all.
func (u *UI) visible(ctx context.Context, user string, all []sight) (seen []sight, cut bool) {
	if cut = len(all) > looksMost; cut {
		all = all[:looksMost]
	}
	for _, s := range all {
		if i := slices.IndexFunc(s.places, func(p ledger.Place) bool { return u.sees(ctx, user, p) }); i >= 0 {
			s.link = s.links[i]
			seen = append(seen, s)
		}
	}
	return seen, cut
}

// waitingFor are the asks that wait for somebody: they may approve them, and haven't yet.
func (u *UI) waitingFor(ctx context.Context, by ledger.Actor) (mine []sight, cut bool) {
	seen, cut := u.visible(ctx, by.ID, u.outbox.openAsks())
	for _, s := range seen {
		if u.approvals.MayDecide(ctx, s.approval, ledger.Approved, by) == nil && !u.outbox.approvedBy(s.approval, by) {
			mine = append(mine, s)
		}
	}
	return mine, cut
}

// approvedBy tells whether somebody has approved an ask already, which then waits for others.
func (o *outbox) approvedBy(approval string, by ledger.Actor) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	call, _ := o.book.ask(approval)
	return call != nil && slices.ContainsFunc(call.Approval.Votes, func(v ledger.Vote) bool { return v.By.Person() == by.Person() })
}

// stoppableBy are the runs that somebody may see and stop.
func (u *UI) stoppableBy(ctx context.Context, by ledger.Actor) (mine []sight, cut bool) {
	seen, cut := u.visible(ctx, by.ID, u.outbox.openRuns())
	for _, s := range seen {
		if u.approvals.MayStop(ctx, by, s.state) == nil {
			mine = append(mine, s)
		}
	}
	return mine, cut
}

// grantsFor are the grants that somebody has given, or that allow their own calls; to an operator all.
func (u *UI) grantsFor(ctx context.Context, by ledger.Actor, all bool) (mine []approvals.Grant) {
	if u.grants == nil {
		return nil
	}
	p := by.Person()
	for _, g := range u.grants.List(time.Now()) {
		if g.Ended != "" {
			continue
		}
		own := g.By.Person() == p || slices.Contains(g.Body.Requesters, p)
		if all || own && (g.By.Person() == p || u.sees(ctx, by.ID, g.Body.Place)) {
			mine = append(mine, g)
		}
	}
	return mine
}

// channelID is one that Slack shows as a link: people's conversations are none.
var channelID = regexp.MustCompile(`^[CG][A-Z0-9]{1,30}$`)

// askLine is an ask in one line of a list: what, by whom, until when.
func (o *outbox) askLine(s sight) (*slack.RichTextSection, bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	call, run := o.book.ask(s.approval)
	if call == nil || !call.Approval.Open() {
		return nil, false
	}
	return o.renderer.askLine(run, call, s.link), true
}

func (v *renderer) askLine(run *ledger.Run, c *ledger.Call, link string) *slack.RichTextSection {
	a := c.Approval
	p := v.phrase()
	p.elements = append(p.elements, linked(v.request(a).summary, link))
	p.form(" · asked by {who} · until {at}", slots{
		"who": func(p *phrase) { v.people(p, actorsOf(a.Requesters, run.StartedBy)) }, "at": moment(a.Until()),
	})
	if n := len(approversOf(a)); a.Quorum > 1 {
		p.say(" · " + v.tf("%d of %d approved", n, a.Quorum))
	}
	return paragraph(p.elements...)
}

// linked is text that was made visible, as a link where there is an address.
func linked(shown, link string) element {
	if link == "" {
		return bold(shown)
	}
	return slack.NewRichTextSectionLinkElement(link, shown, &slack.RichTextSectionTextStyle{Bold: true})
}

// runLine is a run in one line: what was asked for, by whom, since when.
func (o *outbox) runLine(s sight) (*slack.RichTextSection, bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	run := o.book.runs[s.run]
	if run == nil || run.Finished != nil {
		return nil, false
	}
	v := o.renderer
	words := cutShown(strings.TrimPrefix(v.about(o.book.mail[run.Started.Message]), " · "), maxNameChars)
	if words == "" {
		words = v.t("A run")
	}
	p := v.phrase()
	p.elements = append(p.elements, linked(words, s.link))
	p.form(" · asked by {who} · since {at}", slots{
		"who": func(p *phrase) { v.people(p, actorsOf(run.Started.Requesters, run.StartedBy)) }, "at": moment(run.StartedAt),
	})
	p.say(" · ")
	p.elements = append(p.elements, code(shortRun(run.ID)))
	return paragraph(p.elements...), true
}

// shortRun is the beginning of a run's id that /approvals stop takes.
func shortRun(id string) string {
	if id = strings.TrimPrefix(id, "run_"); len(id) > 8 {
		id = id[:8]
	}
	return id
}

// What a list shows of a grant: more than people grant, and so much that a list of the longest ones still fits.
const (
	listedArguments = 6
	listedValue     = 120 // characters
)

// grantLine is a grant in a list. What it allows comes first and is made of the grant itself, not cut from the words of
// the form: the tool, the arguments that have to be so, then those that are free, for whom, where, and until when.
func (v *renderer) grantLine(g approvals.Grant) *slack.RichTextSection {
	b := g.Body
	p := v.phrase()
	p.elements = append(p.elements, bold(v.member(b.Tool)))
	var lines []*phrase
	for _, name := range slices.Sorted(maps.Keys(b.Arguments)) {
		lines = append(lines, v.exactly(name, b.Arguments[name], listedValue))
	}
	for _, name := range b.Any {
		lines = append(lines, v.anything(name))
	}
	if more := len(lines) - listedArguments; more > 0 {
		lines = append(lines[:listedArguments], v.phrase().say(v.count(more, "more argument", "more arguments")))
	}
	for _, line := range lines {
		p.say(" · ")
		p.elements = append(p.elements, line.elements...)
	}
	p.say(" · ").form("for {who}", slots{"who": func(p *phrase) { v.people(p, actorsOf(b.Requesters, ledger.Actor{})) }})
	p.say(" · ")
	if b.Scope == ledger.GrantAlways {
		p.form("in *every* conversation", nil)
	} else {
		p.form("only in its conversation in {place}", slots{"place": func(p *phrase) { p.channel(b.Place.Channel) }})
	}
	p.form(" · until {at} · used {used} · given by {who}", slots{
		"who": doer(g.By), "at": moment(b.Until),
		"used": func(p *phrase) { p.say(v.tf("%d of %d times", g.Used, b.Uses)) },
	})
	return paragraph(p.elements...)
}

// askFor gives an open ask with what its card shows, for the Home tab.
func (o *outbox) askFor(s sight, paused bool) ([]slack.Block, bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	call, run := o.book.ask(s.approval)
	if call == nil || !call.Approval.Open() {
		return nil, false
	}
	return o.renderer.homeAsk(run, call, s.link, paused), true
}

// pause is the pause that holds, as the registry has it.
func (u *UI) pause() *approvals.Pause {
	if p, paused := u.approvals.Paused(); paused {
		return &p
	}
	return nil
}
