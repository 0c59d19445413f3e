package slackui

import (
	"fmt"
	"strings"
	"time"

	"github.com/slack-go/slack"

	"approvalbot/internal/ledger"
)

// A card is read by somebody who is busy and has never seen one. So: first what
// will happen, then exactly what, then why and who, then until when, then the
// buttons. Whatever stands between a person and the whole truth is said, and
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
	r.text = fallback(needed(a) + q.summary)
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
	content := v.titled(q, a, q.lead(whole, run))
	if whole {
		content = append(content, preformatted(q.body))
	} else {
		content = append(content, excerpt(q.raw, m.excerpt, excerptLines)...)
	}
	content = append(content, v.changed(a)...)
	content = append(content, v.warnings(q, a, m, whole)...)
	return []slack.Block{
		richText(content...),
		richText(v.circumstances(q, c, run, m, whole)...),
		v.smallPrint(expiry(until, a.Timeout)+" · "+reference(a), a, m),
		slack.NewActionBlock(fmt.Sprintf("%s.%d", a.Approval, len(a.Votes)), v.buttons(q, a, whole)...),
	}
}

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
func (q request) lead(whole bool, run *ledger.Run) *slack.RichTextSection {
	switch {
	case programOf(run) != "" && whole && q.secrets == 0 && !q.veiled: // what it will do, only the program knows
		return paragraph(text("Exactly what "), code(q.tool), text(" is asked for:"))
	case !whole:
		return paragraph(text("The beginning of what "), code(q.tool), text(" is to do:"))
	case q.secrets > 0 || q.veiled:
		return paragraph(text("What "), code(q.tool), text(" will do, with "+count(max(1, q.secrets), "secret", "secrets")+" shown only as a length:"))
	}
	return paragraph(text("Exactly what "), code(q.tool), text(" will do:"))
}

// smallPrint is what matters to few: the ask's name in the journal, and where a
// command runs, which is text of others and never mrkdwn.
func (v *renderer) smallPrint(mrkdwn string, a *ledger.Approval, m room) *slack.ContextBlock {
	n := note(mrkdwn)
	if a.Cwd != "" && a.Preview.Kind == "command" {
		n.ContextElements.Elements = append(n.ContextElements.Elements,
			slack.NewTextBlockObject(slack.PlainTextType, "Runs in "+v.line(a.Cwd, m.reason), false, false))
	}
	return n
}

// buttons are what one can say. Approve is there only where everything is shown.
func (v *renderer) buttons(q request, a *ledger.Approval, whole bool) []slack.BlockElement {
	var b []slack.BlockElement
	if whole && q.approvable(a) {
		b = append(b, q.approve(a))
	}
	if !whole {
		b = append(b, button(actionReview, a.Approval, "Review", slack.StyleDefault))
	}
	return append(b, button(actionDeny, a.Approval, "Deny", slack.StyleDefault))
}

// approvable tells whether a person who sees all that can be shown knows enough.
func (q request) approvable(a *ledger.Approval) bool { return !q.veiled && a.Dismissed == "" }

// excerpt is the beginning of a content, and how much more there is.
func excerpt(raw string, chars, lines int) []slack.RichTextElement {
	c := beginning(raw, chars, lines)
	parts := []slack.RichTextElement{preformatted(c.text)}
	if c.left > 0 {
		parts = append(parts, paragraph(text("… "+c.more()+" not shown here.")))
	}
	return parts
}

// more says how much is not in a clip.
func (c clip) more() string {
	more := count(c.left, "more character", "more characters")
	if c.lines > 1 {
		more += " in " + count(c.lines, "line", "lines")
	}
	return more
}

// warnings are what one has to know besides the content.
func (v *renderer) warnings(q request, a *ledger.Approval, m room, whole bool) []slack.RichTextElement {
	var w []slack.RichTextElement
	warn := func(s string) {
		line := []element{bold("Note: ")}
		for _, piece := range pieces(s, maxTextChars) {
			line = append(line, text(piece))
		}
		w = append(w, paragraph(line...))
	}
	switch {
	case q.veiled:
		warn("A secret hides what this is about (the program, the path or the host), so it can't be approved. Deny it and have it asked for without the secret in that place.")
	case a.Dismissed != "":
		warn("Nobody can approve this: " + sentence(v.line(a.Dismissed, m.reason), ""))
	case !whole:
		warn("It is too long to show here (" + count(q.chars, "character", "characters") + "). Review shows all of it; it can be approved there.")
	}
	if n := q.noted(m, whole); n != "" {
		warn(n)
	}
	if q.marked {
		warn(`It contains characters that can't be seen, or blanks that could hide something. They are written as marks, such as \u{202E} for a character and \u{20×500} for 500 spaces; all else is exact.`)
	}
	if q.mixed != "" {
		warn("The word “" + short(q.mixed, maxNameChars) + "” mixes letters of different alphabets that look alike.")
	}
	if q.secrets > 0 && !whole { // else the line above the content has said it
		warn(count(q.secrets, "secret is", "secrets are") + " shown only as a length.")
	}
	return w
}

// noted are the tool's notes, one a line; on a card that has no Approve, the
// first ones.
func (q request) noted(m room, whole bool) string {
	notes := q.notes
	if !whole {
		notes = make([]string, 0, excerptNotes+1)
		for i, n := range q.notes {
			if i == excerptNotes {
				notes = append(notes, "There are "+count(len(q.notes)-i, "more note", "more notes")+"; Review shows them.")
				break
			}
			notes = append(notes, cutShown(n, m.reason))
		}
	}
	return strings.Join(notes, "\n")
}

// circumstances are why it asks, who asked, and who may approve.
func (v *renderer) circumstances(q request, c *ledger.Call, run *ledger.Run, m room, whole bool) []slack.RichTextElement {
	a := c.Approval
	why := []element{bold("Why it asks: "), text(reasoned(v.line(a.Reason, m.reason), q.tool))}
	if strings.HasPrefix(a.Rule, "rules: ") { // a setting stands in the reason already
		why = append(why, text(" ("+v.line(a.Rule, m.reason)+")"))
	}
	lines := append(v.performer(run), paragraph(why...))
	if c.Claim != "" && whole {
		lines = append(lines,
			paragraph(bold("What the program says about it"), text(" (its own words, not checked):")),
			quote(text(v.line(c.Claim, m.claim))))
	}
	if claim := roundText(run, c.Round); strings.TrimSpace(claim) != "" && whole {
		lines = append(lines,
			paragraph(bold("What the agent says about it"), text(" (its own words, not checked):")),
			quote(text(v.line(claim, m.claim))))
	}
	if a.Cwd != "" && programOf(run) != "" {
		lines = append(lines, paragraph(bold("Runs in: "), code(v.line(a.Cwd, m.reason))))
	}
	asker := v.phrase()
	v.people(asker, actorsOf(a.Requesters, run.StartedBy))
	who := append([]element{bold("Asked by: ")}, asker.elements...)
	who = append(who, text(" · "), bold("Who may approve: "))
	may := v.mayApprove(a)
	if len(a.Approvers) == 0 && v.unnamed != "" {
		may = []element{text(v.unnamed)}
	}
	lines = append(lines, paragraph(append(who, may...)...))
	if a.Quorum > 1 {
		p := v.phrase()
		if yes := approversOf(a); len(yes) > 0 {
			p.say(fmt.Sprintf("%d of %d approved: ", len(yes), a.Quorum))
			v.people(p, yes)
		} else {
			p.say(fmt.Sprintf("%d people have to approve; nobody has yet.", a.Quorum))
		}
		lines = append(lines, paragraph(append([]element{bold("Approvals: ")}, p.elements...)...))
	}
	return append(append(lines, v.urgency(a)...), v.elsewhere(a)...)
}

// reasoned is a reason as a sentence. One that begins with the tool's name leaves it as it is: Shell is no tool.
func reasoned(reason, tool string) string {
	if rest, ok := strings.CutPrefix(reason, tool+" "); ok {
		return tool + " " + strings.TrimRight(strings.TrimSpace(rest), ".") + "."
	}
	return sentence(reason, "This tool needs approval")
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
func expiry(until time.Time, timeout time.Duration) string {
	switch {
	case until.IsZero():
		return "No answer means no."
	case timeout > 0 && timeout < briefly:
		return "Expires " + dateTokenAs(until, dateFormatSeconds) + ". No answer means no."
	}
	return "Expires " + dateToken(until) + ". No answer means no."
}

// reference names the ask as the journal does.
func reference(a *ledger.Approval) string {
	s := fmt.Sprintf("Request %d", a.Seq)
	if len(a.Digest) >= 8 && hexText.MatchString(a.Digest) {
		s += " · fingerprint `" + a.Digest[:8] + "`"
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
	content := []slack.RichTextElement{paragraph(title), paragraph(v.outcome(c, run).elements...)}
	if !strings.HasSuffix(q.summary, q.body) { // the title says all of a short command
		content = append(content, excerpt(q.raw, m.reminder, reminderLines)...)
	}
	if c.Finished != nil && (end == endDone || end == endFailed || end == endStopped) {
		content = append(content, v.output(c.Finished, run.ID, m)...)
	}
	asker := v.phrase()
	v.people(asker, actorsOf(c.Approval.Requesters, run.StartedBy))
	content = append(content, v.whoseAction(run)...)
	content = append(content, paragraph(append([]element{bold("Asked by: ")}, asker.elements...)...))
	return []slack.Block{richText(content...), note(reference(c.Approval))}
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
		return []slack.RichTextElement{paragraph(text("It printed nothing."))}
	case strings.TrimSpace(out) == "":
		return nil
	}
	footChars, footLines := m.output/2, outputLines/2
	if f.State == ledger.OutputError {
		footChars, footLines = m.output*3/4, outputLines-3
	}
	head, foot := ends(v.clean(out), m.output, outputLines, footChars, footLines)
	parts := []slack.RichTextElement{paragraph(bold("Output:")), preformatted(head.text)}
	if head.left > 0 {
		parts = append(parts, paragraph(text("… "+head.more()+" between …")))
	}
	if foot != "" {
		parts = append(parts, preformatted(foot))
	}
	if head.left > 0 {
		parts = append(parts, paragraph(text("The agent got all of it. To read it: "), code("approvalbot audit show "+v.line(run, maxNameChars))))
	}
	return parts
}

// outcomeText is the outcome for a notification: what it was first.
func (v *renderer) outcomeText(q request, c *ledger.Call, run *ledger.Run) string {
	return cutShown(q.summary, 120) + " · " + v.outcome(c, run).plain.String()
}

// foreign is what becomes of a card that we don't know.
func (v *renderer) foreign(reason string) rendering {
	p := v.phrase().say("This request can't be decided any more").because(reason).say(".")
	return rendering{
		text:   fallback(p.plain.String()),
		blocks: []slack.Block{richText(paragraph(p.elements...))},
		thing:  ledger.Thing{Kind: "card"},
	}
}
