package slackui

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/slack-go/slack"

	"approvalbot/internal/approvals"
	"approvalbot/internal/ledger"
)

// A set is one message with several asks: each with its full text, and decided by buttons of its own. Approve All Shown is
// nothing but a click on each Approve of those that need no second thought: complete on the message, without a dialog in
// front. What it is about is what was shown: the button carries a hash of it, and another state is refused.

// setRoom is how much of what need not be complete stands in a set.
var setRoom = room{excerpt: 400, reminder: 200, output: 200, reason: maxReasonChars, claim: 300}

// setPrefix begins the block_id of Approve All Shown; what was shown follows.
const setPrefix = "all."

// A setView is a set as it is shown.
type setView struct {
	rendering
	all   []string // the approvalIds that Approve All Shown is about
	state string   // what was shown: a hash over them and their revisions
}

// A member is one ask of a set.
type member struct {
	v     *renderer
	c     *ledger.Call
	q     request
	until time.Time
	whole bool // all of it is shown
	brief bool // as little of it is shown as can be: where nothing else fits

	circumstances []slack.RichTextElement // why it asks, who asked, who may approve: what isn't the same for all of the set
}

func (m *member) pending() bool { return endingOf(m.c) == endPending }

// easy tells whether it may be approved together with others.
func (m *member) easy() bool {
	a := m.c.Approval
	return m.pending() && m.whole && m.q.approvable(a) && !a.Confirm && !high(a.Risk)
}

// set renders several asks of a run in one message.
func (v *renderer) set(run *ledger.Run, asks []*ledger.Call, untils map[string]time.Time) setView {
	members := make([]*member, len(asks))
	for i, c := range asks {
		q := v.request(c.Approval)
		members[i] = &member{v: v.knowing(q.hits), c: c, q: q, until: untils[c.Approval.Approval], whole: true}
	}
	out := setView{rendering: rendering{run: run.ID, text: v.setText(run, members)}}
	m, title := setRoom, maxSummaryChars
	for {
		out.all, out.state = together(members)
		out.blocks = v.setBlocks(run, members, m, out)
		if fits(out.blocks) || title < leastTitle {
			return out
		}
		switch big := biggest(members); {
		case big != nil:
			big.whole = false
		case m.reason > setRoom.reason/8:
			m = m.half()
		default:
			for _, each := range members {
				each.shorten(title)
			}
			title /= 2
		}
	}
}

// leastTitle is how short the titles of a set get at most. A set of such titles fits, in whatever characters they are.
const leastTitle = 15

// shorten leaves of an ask its title and how it ended, each at most so long.
func (m *member) shorten(most int) {
	m.brief = true
	m.q.summary = cutShown(m.q.summary, most)
	v := *m.v
	v.terse = most
	m.v = &v
}

// biggest is the member that is shown whole and has most to show; nil: none is shown whole any more.
func biggest(members []*member) (big *member) {
	for _, m := range members {
		if m.whole && m.pending() && (big == nil || weightOf(m.q.body) > weightOf(big.q.body)) {
			big = m
		}
	}
	return big
}

// together are the asks that may be approved at once, and the hash of what is shown of them.
func together(members []*member) (ids []string, state string) {
	h := sha256.New()
	for _, m := range members {
		if m.easy() {
			a := m.c.Approval
			ids = append(ids, a.Approval)
			fmt.Fprintf(h, "%s %d\n", a.Approval, a.Revision())
		}
	}
	return ids, hex.EncodeToString(h.Sum(nil))[:16]
}

func (v *renderer) setBlocks(run *ledger.Run, members []*member, m room, view setView) []slack.Block {
	pending := 0
	for _, each := range members {
		if each.pending() {
			pending++
		}
	}
	common := shared(run, members, m)
	blocks := []slack.Block{v.setHead(run, members, pending, m)}
	for _, each := range members {
		blocks = append(blocks, slack.NewDividerBlock())
		if each.pending() {
			blocks = append(blocks, each.blocks(run, m, pending == 1)...)
		} else {
			blocks = append(blocks, each.ended(run, m)...)
		}
	}
	if len(common) > 0 {
		blocks = append(blocks, slack.NewDividerBlock(), richText(common...))
	}
	if len(view.all) > 1 {
		b := button(actionApproveAll, v.setID(run, members), v.tf("Approve All Shown (%d)", len(view.all)), slack.StylePrimary)
		blocks = append(blocks, slack.NewActionBlock(setPrefix+view.state, b))
	}
	return blocks
}

// shared gives every ask that waits its circumstances, but for those that are the same for all of them, which are returned.
func shared(run *ledger.Run, members []*member, r room) (common []slack.RichTextElement) {
	count, waiting := map[string]int{}, 0
	for _, m := range members {
		if !m.pending() {
			continue
		}
		waiting++
		m.circumstances = m.v.circumstances(m.q, m.c, run, m.until, r, false) // what the agent says stands above all of them
		for _, e := range m.circumstances {
			count[jsonOf(e)]++
		}
	}
	if waiting < 2 {
		return nil
	}
	for _, m := range members {
		m.circumstances = slices.DeleteFunc(m.circumstances, func(e slack.RichTextElement) bool {
			n := count[jsonOf(e)]
			if n == waiting {
				common = append(common, e)
			}
			return n >= waiting
		})
		for _, e := range common {
			count[jsonOf(e)] = waiting + 1 // it is told once
		}
	}
	return common
}

func jsonOf(e slack.RichTextElement) string {
	raw, err := json.Marshal(e)
	if err != nil {
		panic("slackui: encode an element: " + err.Error()) // it is built here, from strings and numbers
	}
	return string(raw)
}

// setID is the set that these asks stand in, at the place that is rendered for.
func (v *renderer) setID(run *ledger.Run, members []*member) string {
	shared := sets(run, askedWith(run, members[0].c))
	return shared[seat{members[0].c.ID, v.slot()}].ID
}

// setHead says what the message is, and what the agent says about all of it.
func (v *renderer) setHead(run *ledger.Run, members []*member, pending int, m room) slack.Block {
	title := v.tf("%d requests, each decided on its own", len(members))
	if pending == 0 {
		title = v.tf("%d requests, all decided", len(members))
	}
	content := []slack.RichTextElement{paragraph(bold(title))}
	if claim := roundText(run, members[0].c.Round); pending > 0 && strings.TrimSpace(claim) != "" {
		content = append(content,
			paragraph(v.phrase().form("*What the agent says about them* (its own words, not checked):", nil).elements...),
			quote(text(v.line(claim, m.claim))))
	}
	return richText(content...)
}

// blocks are an ask that waits, made of the parts of a card.
func (m *member) blocks(run *ledger.Run, r room, alone bool) []slack.Block {
	a := m.c.Approval
	if m.brief {
		return m.briefly()
	}
	content := m.v.titled(m.q, a, m.v.lead(m.q, m.whole, run))
	if m.whole {
		content = append(content, preformatted(m.q.body))
	} else {
		content = append(content, m.v.excerpt(m.q.raw, r.excerpt, excerptLines)...)
	}
	content = append(content, m.v.changed(a, r)...)
	content = append(content, m.v.warnings(m.q, a, r, m.whole)...)
	content = append(content, m.circumstances...)
	return []slack.Block{
		richText(content...),
		slack.NewActionBlock(cardBlock(a), m.buttons(run, alone)...),
		m.v.smallPrint(a, r),
	}
}

// briefly is an ask of which only the title is shown: the rest is in the review.
func (m *member) briefly() []slack.Block {
	a := m.c.Approval
	content := []slack.RichTextElement{paragraph(bold(m.q.summary))}
	if risk := m.v.risk(a); risk != nil {
		content = append(content, risk)
	}
	review := m.v.spoken(button(actionReview, a.Approval, m.v.t("Review"), slack.StyleDefault), m.q.summary)
	deny := m.v.spoken(button(actionDeny, a.Approval, m.v.t("Deny"), slack.StyleDefault), m.q.summary)
	return []slack.Block{
		richText(content...), slack.NewActionBlock(cardBlock(a), review, deny), note(m.v.reference(a)),
	}
}

// buttons are those of a card. They look alike, so each says what it is for; and several primary ones are none.
func (m *member) buttons(run *ledger.Run, alone bool) []slack.BlockElement {
	elements := m.v.buttons(m.q, m.c.Approval, run, m.whole)
	for _, e := range elements {
		b, ok := e.(*slack.ButtonBlockElement)
		if !ok {
			continue
		}
		m.v.spoken(b, m.q.summary)
		if b.Style == slack.StylePrimary && !alone {
			b.Style = slack.StyleDefault
		}
	}
	return elements
}

// ended is an ask that is over: what it was, how it ended, and the beginning of what came of it.
func (m *member) ended(run *ledger.Run, r room) []slack.Block {
	end := endingOf(m.c)
	title := bold(m.q.summary)
	if !performed(end) {
		title = styled(m.q.summary, slack.RichTextSectionTextStyle{Bold: true, Strike: true})
	}
	content := []slack.RichTextElement{paragraph(title), m.v.outcome(m.c, run).section()}
	if !m.brief && m.c.Finished != nil && (end == endDone || end == endFailed || end == endStopped) {
		content = append(content, m.v.output(performedOutput(m.c), run.ID, r)...)
	}
	return []slack.Block{richText(content...), note(m.v.reference(m.c.Approval))}
}

// setText is the fallback: how many, and the first of them.
func (v *renderer) setText(run *ledger.Run, members []*member) string {
	var waiting, over []string
	for _, m := range members {
		if m.pending() {
			waiting = append(waiting, cutShown(m.q.summary, 80))
		} else {
			over = append(over, m.v.outcomeText(m.q, m.c, run))
		}
	}
	if len(waiting) == 0 {
		return fallback(v.tf("%d requests, all decided", len(members)) + v.t(": ") + strings.Join(over, v.t("; ")))
	}
	return fallback(v.count(len(waiting), "approval needed", "approvals needed") + v.t(": ") + strings.Join(waiting, v.t("; ")))
}

// What people are told about Approve All Shown.
const (
	changedSet = "This has changed since it was shown to you, so nothing was approved. Look again, and use the buttons that are there now."
	overSet    = "These requests are over; the message shows how each of them ended."
)

// approveAll is a click on Approve All Shown: one ordinary decision on each of what was shown.
func (u *UI) approveAll(ctx context.Context, c *click) {
	limited, cancel := context.WithTimeout(ctx, decideLimit)
	defer cancel()
	view, subjects, known := u.outbox.setShown(c.value, c.channel, c.ts)
	if !known {
		u.refuse(ctx, c, u.renderer.t(overSet))
		return
	}
	ctx = u.about(ctx, "set", c.value)
	for _, s := range subjects {
		if c.modal() || !c.byUs || !s.at(c) {
			u.logger(ctx).Warn("an approval of all that doesn't fit its message")
			u.refuse(ctx, c, u.renderer.t(misfitClick))
			return
		}
	}
	if c.block != setPrefix+view.state || len(view.all) == 0 {
		u.refuse(ctx, c, u.renderer.t(changedSet))
		return
	}
	var failed []error
	for _, s := range subjects {
		if err := u.approveOne(limited, c, s); err != nil {
			failed = append(failed, err)
		}
	}
	c.receipt.ack()
	if len(failed) > 0 {
		u.tell(ctx, c.place(), c.by.ID, u.renderer.partly(len(subjects)-len(failed), len(subjects), failed))
	}
}

// approveOne approves one ask of a set.
func (u *UI) approveOne(ctx context.Context, c *click, s subject) error {
	if err := u.showing(ctx, c, s); err != nil {
		return err
	}
	_, err := u.approvals.ResolveByID(ctx, s.approval, approvals.Decision{Type: ledger.Approved, By: c.by, Received: c.at, Revision: s.revision})
	return err
}

// partly says, privately, what came of several decisions of which some had no effect: each reason once.
func (v *renderer) partly(counted, all int, failed []error) string {
	var reasons []string
	said := map[string]bool{}
	for _, err := range failed {
		reason := v.refusal(err)
		if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
			reason = v.t(failedClick)
		}
		if !said[reason] {
			said[reason] = true
			reasons = append(reasons, reason)
		}
	}
	if counted == 0 {
		return strings.Join(reasons, "\n")
	}
	return v.tf("%d of %d are approved. The others:", counted, all) + "\n" + strings.Join(reasons, "\n")
}
