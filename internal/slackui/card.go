package slackui

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/slack-go/slack"

	"approvalbot/internal/ledger"
)

// A card is read by somebody who is busy and has never seen one, on a phone. So:
// first what will happen, then exactly what, then why and who and until when,
// then the buttons, and last what matters to few. Two buttons decide; what takes
// more thought stands behind them. Whatever stands between a person and the whole truth is said, and
// takes the Approve button away:
//
//	the content doesn't fit                 → no Approve here, Review shows all of it
//	a secret hides what it is about         → no Approve anywhere
//	nobody could approve                    → no Approve anywhere

// A room is how much is shown of what need not be complete, in characters.
type room struct {
	excerpt  int // of the content, on a card that has no Approve
	reminder int // of the content, on a card that has ended
	output   int // of what a tool returned
	reason   int // of a sentence of others
	claim    int // of the agent's own words
}

var usualRoom = room{excerpt: 1500, reminder: 600, output: 600, reason: maxReasonChars, claim: 300}

// How many lines of these, and how many notes where they need not be complete.
const (
	excerptLines  = 20
	reminderLines = 8
	outputLines   = 10
	excerptNotes  = 5
)

func (m room) half() room {
	return room{m.excerpt / 2, m.reminder / 2, m.output / 2, m.reason / 2, m.claim / 2}
}

// fit builds blocks in less and less room until Slack takes them: how much a
// character counts is known only when it is written. A sixteenth always fits.
func fit(build func(room) []slack.Block) []slack.Block {
	m := usualRoom
	blocks := build(m)
	for range 4 {
		if fits(blocks) {
			break
		}
		m = m.half()
		blocks = build(m)
	}
	return blocks
}

// card is the message of an ask: c.Approval is not nil. While it is pending,
// until is the deadline to print.
func (v *renderer) card(run *ledger.Run, c *ledger.Call, until time.Time) rendering {
	a := c.Approval
	r := rendering{thing: ledger.Thing{Kind: "card", ID: a.Approval}, run: run.ID}
	q := v.request(a)
	v = v.knowing(q.hits)
	if endingOf(c) != endPending {
		r.blocks = fit(func(m room) []slack.Block { return v.endedCard(q, c, run, m) })
		r.text = fallback(v.outcomeText(q, c, run))
		return r
	}
	r.text = fallback(v.needed(q, a))
	if weightOf(q.body) <= maxMessage { // else it isn't worth building
		r.blocks = v.pendingCard(q, c, run, until, usualRoom, true)
	}
	if r.blocks == nil || !fits(r.blocks) {
		r.blocks = fit(func(m room) []slack.Block { return v.pendingCard(q, c, run, until, m, false) })
	}
	return r
}

// cardFinal tells whether no later event changes the card. A denial is the end
// of it, although the call's own end is written after it.
func (v *renderer) cardFinal(c *ledger.Call, run *ledger.Run) bool {
	if programOf(run) != "" && run.Finished == nil {
		return false // it is the only message of its run, so the last one, too
	}
	switch endingOf(c) {
	case endPending, endStarting, endRunning:
		return false
	}
	return true
}

func fits(blocks []slack.Block) bool { return weight(blocks...) <= maxMessage }

// pendingCard is a card that waits; whole says that it shows all of the content.
func (v *renderer) pendingCard(q request, c *ledger.Call, run *ledger.Run, until time.Time, m room, whole bool) []slack.Block {
	a := c.Approval
	content := v.titled(q, a, v.lead(q, whole, run))
	if whole {
		content = append(content, preformatted(q.body))
	} else {
		content = append(content, v.excerpt(q.raw, m.excerpt, excerptLines)...)
	}
	content = append(content, v.changed(a, m)...)
	content = append(content, v.warnings(q, a, m, whole)...)
	return []slack.Block{
		richText(content...),
		richText(v.circumstances(q, c, run, until, m, whole)...),
		slack.NewActionBlock(cardBlock(a), v.buttons(q, a, run, whole)...),
		v.smallPrint(a, m),
	}
}

// cardBlock is the block_id of a card's buttons: which arguments they were clicked for, and how often people had said yes
// to them by then.
func cardBlock(a *ledger.Approval) string {
	return blockOf(a, strconv.Itoa(len(a.Votes)))
}

// reviewBlock is the same for the buttons of a modal.
func reviewBlock(a *ledger.Approval) string { return cardBlock(a) + ".review" }

// titled is what stands on top: what will happen, the risk, and the line above the content.
func (v *renderer) titled(q request, a *ledger.Approval, lead slack.RichTextElement) []slack.RichTextElement {
	content := []slack.RichTextElement{paragraph(bold(q.summary))}
	if risk := v.risk(a); risk != nil {
		content = append(content, risk)
	}
	return append(content, lead)
}

// lead is the line above the content. Where something of it is hidden it must not
// say that this is all.
func (v *renderer) lead(q request, whole bool, run *ledger.Run) *slack.RichTextSection {
	p := v.phrase()
	tool := slots{"tool": func(p *phrase) { p.mono(q.tool) }}
	switch hidden := q.secrets > 0 || q.veiled; {
	case !whole:
		p.form("The beginning of what {tool} is to do:", tool)
	case hidden:
		tool["secrets"] = saying(v.count(max(1, q.secrets), "secret", "secrets"))
		p.form("What {tool} will do, with {secrets} shown only as a length:", tool)
	case programOf(run) != "": // what it will do, only the program knows
		p.form("Exactly what {tool} is asked for:", tool)
	default:
		p.form("Exactly what {tool} will do:", tool)
	}
	return p.section()
}

// smallPrint is what matters to few: the ask's name in the journal, and where a
// command runs, which is text of others and never mrkdwn.
func (v *renderer) smallPrint(a *ledger.Approval, m room) *slack.ContextBlock {
	n := note(v.reference(a))
	if a.Cwd != "" && a.Preview.Kind == "command" {
		n.ContextElements.Elements = append(n.ContextElements.Elements, plainText(v.tf("Runs in %s", v.line(a.Cwd, m.reason))))
	}
	return n
}

// buttons are what one can say on a card. Approve is there only where everything is shown; Review, where it isn't.
func (v *renderer) buttons(q request, a *ledger.Approval, run *ledger.Run, whole bool) []slack.BlockElement {
	if whole {
		return v.decisions(q, a, run, q.approvable(a))
	}
	review := v.spoken(button(actionReview, a.Approval, v.t("Review"), slack.StyleDefault), q.summary)
	return append([]slack.BlockElement{review}, v.decisions(q, a, run, false)...)
}

// decisions are what one can say wherever an ask is shown; decidable: by somebody who knows enough to approve it.
func (v *renderer) decisions(q request, a *ledger.Approval, run *ledger.Run, decidable bool) []slack.BlockElement {
	var b []slack.BlockElement
	if decidable {
		b = append(b, v.approve(q, a))
	}
	b = append(b,
		v.spoken(button(actionDeny, a.Approval, v.t("Deny"), slack.StyleDefault), q.summary),
		v.spoken(button(actionDenyWith, a.Approval, v.t("Deny with Reason…"), slack.StyleDefault), q.summary))
	if more := v.more(q, a, run, decidable); more != nil {
		b = append(b, more)
	}
	return b
}

// more is what else the card offers. To change something, or to allow it for longer, takes as much knowledge as to
// approve it, and what is hidden can't be changed. run is nil where nothing but the ask is at hand: it is stopped from the
// card.
func (v *renderer) more(q request, a *ledger.Approval, run *ledger.Run, decidable bool) *slack.OverflowBlockElement {
	offered := func(o ledger.Offer, when bool, action, label string) *slack.OptionBlockObject {
		if !when || !slices.Contains(a.Offers, o) {
			return nil
		}
		return choice(action, a.Approval, label)
	}
	options := []*slack.OptionBlockObject{
		offered(ledger.OfferEdit, decidable && v.mayEdit(q, a), actionEdit, v.t("Edit and Approve…")),
		offered(ledger.OfferGrantThread, decidable, actionGrant, v.t("Allow for This Thread…")),
		offered(ledger.OfferGrantAlways, decidable, actionGrantAll, v.t("Allow Always…")),
		offered(ledger.OfferMoreTime, a.Dismissed == "" && a.Extensible(), actionMoreTime, v.t("Give Me More Time")),
	}
	if run != nil && programOf(run) == "" { // the one action of another program is stopped by denying it
		options = append(options, choice(actionStop, run.ID, v.t("Stop the Run")))
	}
	return menu(options...)
}

// approvable tells whether a person who sees all that can be shown knows enough.
func (q request) approvable(a *ledger.Approval) bool { return !q.veiled && a.Dismissed == "" }

// excerpt is the beginning of a content, and how much more there is.
func (v *renderer) excerpt(raw string, chars, lines int) []slack.RichTextElement {
	c := beginning(raw, chars, lines)
	parts := []slack.RichTextElement{preformatted(c.text)}
	if c.left > 0 {
		parts = append(parts, v.phrase().form("… {more} not shown here.", slots{"more": saying(v.left(c))}).section())
	}
	return parts
}

// left says how much is not in a clip.
func (v *renderer) left(c clip) string {
	chars := v.count(c.left, "more character", "more characters")
	if c.lines > 1 {
		return v.tf("%s in %s", chars, v.count(c.lines, "line", "lines"))
	}
	return chars
}

// warnings are what one has to know besides the content.
func (v *renderer) warnings(q request, a *ledger.Approval, m room, whole bool) []slack.RichTextElement {
	var w []slack.RichTextElement
	warn := func(s string) {
		w = append(w, v.phrase().form("*Note:* {note}", slots{"note": func(p *phrase) {
			for _, piece := range pieces(s, maxTextChars) {
				p.say(piece)
			}
		}}).section())
	}
	switch {
	case q.veiled:
		warn(v.t("A secret hides what this is about (the program, the path or the host), so it can't be approved. Deny it and have it asked for without the secret in that place."))
	case a.Dismissed != "":
		warn(v.tf("Nobody can approve this: %s", v.sentence(v.line(v.recorded(a.Dismissed), m.reason), "")))
	case !whole:
		warn(v.tf("It is too long to show here (%s). Review shows all of it; it can be approved there.", v.count(q.chars, "character", "characters")))
	}
	if n := v.noted(q, m, whole); n != "" {
		warn(n)
	}
	if q.marked {
		warn(v.t(`It contains characters that can't be seen, or blanks that could hide something. They are written as marks, such as \u{202E} for a character and \u{20×500} for 500 spaces; all else is exact.`))
	}
	if q.mixed != "" {
		warn(v.tf("The word “%s” mixes letters of different alphabets that look alike.", short(q.mixed, maxNameChars)))
	}
	if q.secrets > 0 && !whole { // else the line above the content has said it
		warn(v.tf("%s shown only as a length.", v.count(q.secrets, "secret is", "secrets are")))
	}
	return w
}

// noted are the tool's notes, one a line; on a card that has no Approve, the
// first ones.
func (v *renderer) noted(q request, m room, whole bool) string {
	notes := q.notes
	if !whole {
		notes = make([]string, 0, excerptNotes+1)
		for i, n := range q.notes {
			if i == excerptNotes {
				notes = append(notes, v.tf("There are %s; Review shows them.", v.count(len(q.notes)-i, "more note", "more notes")))
				break
			}
			notes = append(notes, cutShown(n, m.reason))
		}
	}
	return strings.Join(notes, "\n")
}

// circumstances are why it asks, who asked, who may approve and who has, and until when.
func (v *renderer) circumstances(q request, c *ledger.Call, run *ledger.Run, until time.Time, m room, whole bool) []slack.RichTextElement {
	a := c.Approval
	lines := append(v.performer(run), v.why(q, a, m))
	if c.Claim != "" && whole {
		lines = append(lines, v.phrase().form("*What the program says about it* (its own words, not checked):", nil).section(),
			quote(text(v.line(c.Claim, m.claim))))
	}
	if claim := roundText(run, c.Round); strings.TrimSpace(claim) != "" && whole {
		lines = append(lines, v.phrase().form("*What the agent says about it* (its own words, not checked):", nil).section(),
			quote(text(v.line(claim, m.claim))))
	}
	if a.Cwd != "" && programOf(run) != "" {
		lines = append(lines, v.phrase().form("*Runs in:* {directory}", slots{"directory": func(p *phrase) { p.mono(v.line(a.Cwd, m.reason)) }}).section())
	}
	lines = append(lines, v.askedBy(a, run))
	if as := v.line(a.Preview.RunsAs, m.reason); strings.TrimSpace(as) != "" {
		lines = append(lines, v.phrase().form("*Will run as:* {identity}", slots{"identity": saying(as)}).section())
	}
	may := func(p *phrase) { v.mayApprove(p, a) }
	if len(a.Approvers) == 0 && v.unnamed != "" {
		may = saying(v.unnamed)
	}
	if a.Dismissed == "" { // else nobody may, and it says so
		lines = append(lines, v.phrase().form("*Who may approve:* {people}", slots{"people": may}).section())
		if a.Quorum > 1 {
			lines = append(lines, v.progressOfVotes(a))
		}
	}
	lines = append(lines, v.expiry(until, a.Timeout))
	return append(append(lines, v.urgency(a)...), v.elsewhere(a)...)
}

// why says why it asks, and which rules want it.
func (v *renderer) why(q request, a *ledger.Approval, m room) slack.RichTextElement {
	s := slots{
		"why":   saying(v.reasoned(v.line(v.recorded(v.usual(a)), m.reason), q.tool)),
		"rules": nil,
	}
	if rules, ok := strings.CutPrefix(a.Rule, "rules: "); ok { // a setting stands in the reason already
		rules = strings.Replace(rules, "; tool: ", ", ", 1)
		s["rules"] = saying(v.line(rules, m.reason))
		return v.phrase().form("*Why it asks:* {why} (rules: {rules})", s).section()
	}
	return v.phrase().form("*Why it asks:* {why}", s).section()
}

// usual is the recorded reason without the name of the setting, which means nothing to those who read a card: that it is
// the setting is in Rule.
func (v *renderer) usual(a *ledger.Approval) string {
	if setting, ok := strings.CutPrefix(a.Rule, "approvalPolicy="); ok {
		return strings.Replace(a.Reason, " (policy "+setting+")", "", 1)
	}
	return a.Reason
}

// askedBy says who asked.
func (v *renderer) askedBy(a *ledger.Approval, run *ledger.Run) slack.RichTextElement {
	return v.phrase().form("*Asked by:* {people}", slots{"people": peopleSlot(actorsOf(a.Requesters, run.StartedBy))}).section()
}

// progressOfVotes says how many of those who are needed have approved.
func (v *renderer) progressOfVotes(a *ledger.Approval) slack.RichTextElement {
	yes := approversOf(a)
	s := slots{"n": saying(fmt.Sprint(len(yes))), "needed": saying(fmt.Sprint(a.Quorum)), "people": peopleSlot(yes)}
	if len(yes) > 0 {
		return v.phrase().form("*Approvals:* {n} of {needed} approved: {people}", s).section()
	}
	return v.phrase().form("*Approvals:* 0 of {needed} approved; {needed} people have to approve.", s).section()
}

// reasoned is a reason as a sentence. One that begins with the tool's name leaves it as it is: Shell is no tool.
func (v *renderer) reasoned(reason, tool string) string {
	if rest, ok := strings.CutPrefix(reason, tool+" "); ok {
		return tool + " " + strings.TrimRight(strings.TrimSpace(rest), ".。") + v.t(".")
	}
	return v.sentence(reason, v.t("This tool needs approval"))
}

func roundText(run *ledger.Run, n int) string {
	for _, r := range run.Rounds {
		if r.Round == n {
			return r.Text
		}
	}
	return ""
}

// actorsOf are the requesters; without any, the one who started the run.
func actorsOf(people []ledger.Person, startedBy ledger.Actor) []ledger.Actor {
	if len(people) == 0 && startedBy.Kind != "" {
		return []ledger.Actor{startedBy}
	}
	var who []ledger.Actor
	for i, p := range people {
		if i == maxMentions {
			break
		}
		who = append(who, actorOf(p))
	}
	return who
}

// briefly is how short a timeout is that is told with its seconds.
const briefly = 2 * time.Minute

// expiry says until when people can decide. Minutes alone would round a short
// timeout to the past or the future.
func (v *renderer) expiry(until time.Time, timeout time.Duration) slack.RichTextElement {
	at := momentSlot(until)
	switch {
	case until.IsZero():
		return v.phrase().form("*No answer means no.*", nil).section()
	case timeout > 0 && timeout < briefly:
		at = func(p *phrase) { p.atSecond(until) }
	}
	return v.phrase().form("*Answer by:* {at}. No answer means no.", slots{"at": at}).section()
}

// reference names the ask as the journal does.
func (v *renderer) reference(a *ledger.Approval) string {
	s := v.tf("Request %d", a.Seq)
	if len(a.Digest) >= 8 && hexText.MatchString(a.Digest) {
		s += " · sha256:" + a.Digest[:8]
	}
	return s
}

// endedCard is a card on which nothing can be decided any more.
func (v *renderer) endedCard(q request, c *ledger.Call, run *ledger.Run, m room) []slack.Block {
	end := endingOf(c)
	title := bold(q.summary)
	if !performed(end) {
		title = styled(q.summary, slack.RichTextSectionTextStyle{Bold: true, Strike: true})
	}
	content := []slack.RichTextElement{paragraph(title), v.outcome(c, run).section()}
	content = append(content, v.alsoAllowed(c.Approval)...)
	if !strings.HasSuffix(q.summary, q.body) { // the title says all of a short command
		content = append(content, v.excerpt(q.raw, m.reminder, reminderLines)...)
	}
	content = append(content, v.changed(c.Approval, m)...)
	if c.Finished != nil && (end == endDone || end == endFailed || end == endStopped) {
		content = append(content, v.output(performedOutput(c), run.ID, m)...)
	}
	content = append(content, v.whoseAction(run)...)
	content = append(content, v.askedBy(c.Approval, run))
	blocks := []slack.Block{richText(content...)}
	if again := v.askAgain(q, run, c.Approval); again != nil {
		blocks = append(blocks, again)
	}
	return append(blocks, note(v.reference(c.Approval)))
}

// performed tells whether it is being done, was done, or may have been.
func performed(end ending) bool {
	switch end {
	case endStarting, endRunning, endDone, endFailed, endStopped, endUnknown:
		return true
	}
	return false
}

// output is what a tool returned: its first lines and its last ones, of a failure
// more of the last ones. What an error says about itself, in the first line, the
// card has said already.
func (v *renderer) output(f *ledger.ToolFinished, run string, m room) []slack.RichTextElement {
	out := f.Output
	if first, rest, _ := strings.Cut(out, "\n"); strings.HasPrefix(first, "Error ["+f.Code+"]:") && f.State == ledger.OutputError {
		out = rest
	}
	switch {
	case strings.TrimSpace(out) == "" && f.State == ledger.OutputAvailable:
		return []slack.RichTextElement{paragraph(text(v.t("It printed nothing.")))}
	case strings.TrimSpace(out) == "":
		return nil
	}
	footChars, footLines := m.output/2, outputLines/2
	if f.State == ledger.OutputError {
		footChars, footLines = m.output*3/4, outputLines-3
	}
	head, foot := ends(v.clean(out), m.output, outputLines, footChars, footLines)
	parts := []slack.RichTextElement{v.phrase().form("*Output:*", nil).section(), preformatted(head.text)}
	if head.left > 0 {
		parts = append(parts, v.phrase().form("… {more} between …", slots{"more": saying(v.left(head))}).section())
	}
	if foot != "" {
		parts = append(parts, preformatted(foot))
	}
	if head.left > 0 {
		parts = append(parts, v.phrase().form("The agent got all of it. To read it: {command}", slots{"command": func(p *phrase) {
			p.mono("approvalbot audit show " + v.line(run, maxNameChars))
		}}).section())
	}
	return parts
}

// outcomeText is the outcome for a notification: what it was first.
func (v *renderer) outcomeText(q request, c *ledger.Call, run *ledger.Run) string {
	return cutShown(q.summary, 120) + " · " + v.outcome(c, run).plain.String()
}

// foreign is what becomes of a card that we don't know.
func (v *renderer) foreign(reason string) rendering {
	p := v.phrase().form("This request can't be decided any more{why}.", slots{"why": reasonSlot(reason)})
	return rendering{
		text:   fallback(p.plain.String()),
		blocks: []slack.Block{richText(p.section())},
		thing:  ledger.Thing{Kind: "card"},
	}
}
