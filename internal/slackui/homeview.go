package slackui

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/slack-go/slack"

	"approvalbot/internal/approvals"
	"approvalbot/internal/ledger"
)

// How many of each the Home tab shows; the sum of their blocks stays below Slack's hundred.
const (
	homeAsks   = 10
	homeRuns   = 8
	homeGrants = 8

	// homeContent is how long a request may be, in characters as Slack counts, to be shown whole on this page: one that is
	// longer is reviewed in a window of its own.
	homeContent = 2500
)

// A page is what somebody's Home tab says, before it is put into blocks.
type page struct {
	said      string // an answer to a click, in mrkdwn
	paused    *approvals.Pause
	operator  bool
	asks      [][]slack.Block
	moreAsks  int
	runs      []homeRun
	moreRuns  int
	grants    []approvals.Grant
	decided   []*slack.RichTextSection
	cut       bool // there is more than was looked at
	everyRun  int  // for operators: all runs, also those that they can't see
	condition []Condition
	facts     []Fact
	backlog   map[string]int
}

type homeRun struct {
	id   string
	line *slack.RichTextSection
}

// homeOf computes somebody's page.
func (u *UI) homeOf(ctx context.Context, by ledger.Actor, said string) []slack.Block {
	looking, cancel := context.WithTimeout(ctx, looksLimit)
	defer cancel()
	if err := u.approvals.MaySee(looking, by); err != nil {
		return []slack.Block{sentenceBlock(u.failure(ctx, err))}
	}
	p := page{said: said, paused: u.pause()}
	_, no := u.approvals.MayOperate(looking, by)
	p.operator = no == nil
	asks, cut := u.waitingFor(looking, by)
	p.cut = cut
	for _, s := range asks {
		if len(p.asks) == homeAsks {
			p.moreAsks++
		} else if blocks, ok := u.outbox.askFor(s, p.paused != nil); ok {
			p.asks = append(p.asks, blocks)
		}
	}
	runs, cut := u.stoppableBy(looking, by)
	p.cut = p.cut || cut
	for _, s := range runs {
		if len(p.runs) == homeRuns {
			p.moreRuns++
		} else if line, ok := u.outbox.runLine(s); ok {
			p.runs = append(p.runs, homeRun{s.run, line})
		}
	}
	p.grants = u.grantsFor(looking, by, p.operator)
	p.decided = u.decisionsOf(looking, by)
	if p.operator {
		u.operations(looking, &p)
	}
	return u.renderer.home(p)
}

// operations fills in what operators see.
func (u *UI) operations(ctx context.Context, p *page) {
	if runs, err := u.journal.UnfinishedRuns(ctx); err == nil {
		p.everyRun = len(runs)
	}
	if u.conditions != nil {
		p.condition = u.conditions()
	}
	if u.facts != nil {
		p.facts = u.facts()
	}
	p.backlog = u.Backlog()
}

// decisionsOf are what somebody decided lately, a line each, as far as they still see where it was.
func (u *UI) decisionsOf(ctx context.Context, by ledger.Actor) (lines []*slack.RichTextSection) {
	for _, approval := range u.decidedBy(ctx, by.Person()) {
		past, ok := u.pastOf(ctx, approval)
		if !ok {
			continue
		}
		a := past.call.Approval
		if !u.sees(ctx, by.ID, append([]ledger.Place{askPlace(a, past.run.Started.Place)}, a.Elsewhere...)...) {
			continue
		}
		link := ""
		for _, at := range a.Shown {
			if at.Surface == surface {
				link = permalink(u.client.URL, at.Channel, at.TS, askPlace(a, past.run.Started.Place).Thread)
				break
			}
		}
		lines = append(lines, u.renderer.decisionLine(past, by, link))
	}
	return lines
}

// decisionLine is something that somebody decided, and what became of it.
func (v *renderer) decisionLine(past pastAsk, by ledger.Actor, link string) *slack.RichTextSection {
	a := past.call.Approval
	q := v.request(a)
	out := []element{linked(q.summary, link), text(" · ")}
	if a.Open() {
		p := v.phrase()
		p.form("you approved, {n}", slots{"n": func(p *phrase) { p.say(v.tf("%d of %d approved", len(approversOf(a)), a.Quorum)) }})
		return paragraph(append(out, p.elements...)...)
	}
	return paragraph(append(out, v.knowing(q.hits).outcome(past.call, past.run).elements...)...)
}

// home puts a page into blocks: as much as fits.
func (v *renderer) home(p page) []slack.Block {
	for {
		blocks := v.homeBlocks(p)
		if len(blocks) <= maxViewBlocks && weight(blocks...) <= maxView || len(p.asks) == 0 {
			return blocks
		}
		p.asks = p.asks[:len(p.asks)-1]
		p.moreAsks++
	}
}

func (v *renderer) homeBlocks(p page) []slack.Block {
	var blocks []slack.Block
	add := func(b ...slack.Block) { blocks = append(blocks, b...) }
	if p.said != "" {
		add(sentenceBlock(p.said))
	}
	if p.paused != nil {
		add(v.homePause(p)...)
	}
	add(v.heading(v.t("Waiting for you")))
	if len(p.asks) == 0 {
		add(richText(paragraph(text(v.t("Nothing waits for your approval.")))))
	}
	for i, ask := range p.asks {
		if i > 0 {
			add(slack.NewDividerBlock())
		}
		add(ask...)
	}
	if p.moreAsks > 0 {
		add(note(v.tf("And %d more: %s lists them.", p.moreAsks, "`/approvals mine`")))
	}
	if len(p.runs) > 0 {
		add(v.heading(v.t("Running")))
		for _, r := range p.runs {
			add(richText(r.line), slack.NewActionBlock("stop."+r.id, v.stopButton(r)))
		}
		if p.moreRuns > 0 {
			add(note(v.tf("And %d more: %s lists them.", p.moreRuns, "`/approvals stop`")))
		}
	}
	add(v.homeGrants(p.grants)...)
	if len(p.decided) > 0 {
		items := make([]slack.RichTextElement, len(p.decided))
		for i, d := range p.decided {
			items[i] = d
		}
		add(v.heading(v.t("Decided by you")), richText(slack.NewRichTextList(slack.RTEListBullet, 0, items...)))
	}
	if p.cut {
		add(note(v.t("There is more open than could be looked through.")))
	}
	if p.operator {
		add(v.operationsBlocks(p)...)
	}
	return append(blocks, note(v.tf("%s says what else there is.", "`/approvals help`")))
}

func (v *renderer) heading(words string) slack.Block {
	return slack.NewHeaderBlock(slack.NewTextBlockObject(slack.PlainTextType, words, false, false))
}

// stopButton stops a run; the label for those who hear it says which.
func (v *renderer) stopButton(r homeRun) slack.BlockElement {
	b := button(actionStop, r.id, v.t("Stop"), slack.StyleDefault)
	b.AccessibilityLabel = v.tf("Stop the run %s", shortRun(r.id))
	return b
}

// homePause says that approvalbot is paused, and lets operators end it.
func (v *renderer) homePause(p page) []slack.Block {
	said := v.phrase()
	said.form("*approvalbot is paused* since {at}, by {who}.", slots{"at": moment(p.paused.At), "who": doer(p.paused.By)})
	v.reason(said, p.paused.Reason)
	said.form(" Nothing new starts and nothing can be approved until it is resumed. What waits for an answer can be denied, and ends in its time.", nil)
	return []slack.Block{richText(paragraph(said.elements...))}
}

// homeAsk is an open ask as its card shows it, with the buttons that work from here. What isn't shown whole can't be approved
// here, nor anything during a pause.
func (v *renderer) homeAsk(run *ledger.Run, c *ledger.Call, link string, paused bool) []slack.Block {
	a := c.Approval
	q := v.request(a)
	v = v.knowing(q.hits)
	whole := weightOf(q.body) <= homeContent
	blocks := v.pendingCard(q, c, run, a.Until(), usualRoom.half(), whole)
	var buttons []slack.BlockElement
	if whole && q.approvable(a) && !paused {
		b := v.approve(q, a)
		b.Style = slack.StyleDefault // a page has several of them
		buttons = append(buttons, b)
	}
	if !whole {
		buttons = append(buttons, v.spoken(button(actionReview, a.Approval, v.t("Review"), slack.StyleDefault), q.summary))
	}
	buttons = append(buttons, v.spoken(button(actionDeny, a.Approval, v.t("Deny"), slack.StyleDefault), q.summary))
	if link != "" {
		where := "<" + escape(link) + "|" + v.t("Open it in its conversation") + ">"
		if at := askPlace(a, run.Started.Place).Channel; channelID.MatchString(at) { // the card says "this channel"
			where = "<#" + at + "> · " + where
		}
		blocks = append(blocks, note(where))
	}
	for i, b := range blocks { // in place of the card's
		if b.BlockType() == slack.MBTAction {
			blocks[i] = slack.NewActionBlock(fmt.Sprintf("%s.home.%d", a.Approval, len(a.Votes)), buttons...)
		}
	}
	return blocks
}

// conditionName is what a condition is called here; one that isn't known keeps its name.
func (v *renderer) conditionName(name string) string {
	switch name {
	case "journal":
		return v.t("Journal")
	case "slack":
		return "Slack"
	case "model":
		return v.t("Model")
	}
	return v.line(name, maxNameChars)
}

func (v *renderer) homeGrants(grants []approvals.Grant) (blocks []slack.Block) {
	if len(grants) == 0 {
		return nil
	}
	blocks = append(blocks, v.heading(v.t("Allowed in advance")))
	for i, g := range grants {
		if i == homeGrants {
			return append(blocks, note(v.tf("And %d more: %s lists them.", len(grants)-i, "`/approvals grants`")))
		}
		blocks = append(blocks, v.grantBlocks(g)...)
	}
	return blocks
}

// operationsBlocks are for operators: how the bot is, what is set, and the brakes.
func (v *renderer) operationsBlocks(p page) []slack.Block {
	health := v.phrase()
	health.strong(v.t("Health") + "\n")
	for _, c := range p.condition {
		state := v.t("well")
		if err := c.Err(); err != nil {
			state = v.line(err.Error(), maxReasonChars)
		}
		health.say(v.conditionName(c.Name)).say(v.t(": ") + state + "\n")
	}
	waiting := 0
	for _, n := range slices.Sorted(maps.Values(p.backlog)) {
		waiting += n
	}
	health.say(v.tf("Messages on their way to Slack: %d", waiting) + "\n")
	health.say(v.tf("Runs that have not ended: %d", p.everyRun))
	content := []slack.RichTextElement{paragraph(health.elements...)}
	if len(p.facts) > 0 {
		settings := []element{bold(v.t("Settings") + "\n")}
		for i, f := range p.facts {
			end := "\n"
			if i == len(p.facts)-1 {
				end = ""
			}
			settings = append(settings, code(v.line(f.Name, maxNameChars)), text(" "+strings.TrimSpace(v.line(f.Value, 200))+end))
		}
		content = append(content, paragraph(text("\n")), paragraph(settings...))
	}
	var brakes []slack.BlockElement
	if p.paused != nil {
		brakes = append(brakes, v.resumeButton())
	} else {
		brakes = append(brakes, v.pauseButton())
	}
	if p.everyRun > 0 {
		brakes = append(brakes, v.stopAllButton())
	}
	return []slack.Block{v.heading(v.t("Operations")), richText(content...), slack.NewActionBlock("operations", brakes...)}
}
