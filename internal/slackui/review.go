package slackui

import (
	"net/url"
	"strings"

	"github.com/slack-go/slack"

	"approvalbot/internal/ledger"
)

// reviewFile is a request's full text where a modal can't hold it.
type reviewFile struct {
	name    string
	content []byte
}

// callbackReview is the callback_id of the modal.
const callbackReview = "review"

// review is the modal that shows a request in full, and carries the buttons.
// Where even a modal can't hold it there is a file, and the modal has no Approve
// until that stands in Slack: reviewLinked is the modal then.
func (v *renderer) review(run *ledger.Run, c *ledger.Call) (slack.ModalViewRequest, *reviewFile) {
	q := v.request(c.Approval)
	v = v.knowing(q.hits)
	if endingOf(c) != endPending {
		return v.modal(c, richText(paragraph(bold(q.summary)), paragraph(v.outcome(c, run).elements...))), nil
	}
	if weightOf(q.body) <= maxView {
		if blocks := v.reviewBlocks(q, c, run, preformatted(q.body), true); weight(blocks...) <= maxView {
			return v.modal(c, blocks...), nil
		}
	}
	coming := paragraph(text("It is too long for this window too. The file with all of it is on its way."))
	return v.modal(c, v.reviewBlocks(q, c, run, coming, false)...), &reviewFile{
		name:    "request-" + c.Approval.Approval + ".txt",
		content: []byte(q.fullText()),
	}
}

// reviewLinked is the modal of a request whose full text stands in a file.
func (v *renderer) reviewLinked(run *ledger.Run, c *ledger.Call, permalink string) slack.ModalViewRequest {
	q := v.request(c.Approval)
	if u, err := url.Parse(permalink); endingOf(c) != endPending || err != nil || u.Scheme != "https" && u.Scheme != "http" {
		view, _ := v.review(run, c)
		return view
	}
	v = v.knowing(q.hits)
	link := slack.NewRichTextSectionLinkElement(permalink, "Open the file with all of it", nil)
	return v.modal(c, v.reviewBlocks(q, c, run, paragraph(link, text(", read it, and decide here.")), true)...)
}

func (v *renderer) modal(c *ledger.Call, blocks ...slack.Block) slack.ModalViewRequest {
	plain := func(s string) *slack.TextBlockObject {
		return slack.NewTextBlockObject(slack.PlainTextType, s, false, false)
	}
	return slack.ModalViewRequest{
		Type:            slack.VTModal,
		Title:           plain("Review the request"),
		Close:           plain("Close"),
		CallbackID:      callbackReview,
		PrivateMetadata: c.Approval.Approval,
		Blocks:          slack.Blocks{BlockSet: blocks},
	}
}

// reviewBlocks are the modal's content; complete says that all of the request is
// shown or linked.
func (v *renderer) reviewBlocks(q request, c *ledger.Call, run *ledger.Run, body slack.RichTextElement, complete bool) []slack.Block {
	a := c.Approval
	content := append(v.titled(q, a, q.lead(true, run)), body)
	content = append(content, v.changed(a)...)
	content = append(content, v.warnings(q, a, usualRoom, true)...)
	var buttons []slack.BlockElement
	if complete && q.approvable(a) {
		buttons = append(buttons, q.approve(a))
	}
	buttons = append(buttons, button(actionDeny, a.Approval, "Deny", slack.StyleDefault))
	return []slack.Block{
		richText(content...),
		richText(v.circumstances(q, c, run, usualRoom, true)...),
		v.smallPrint(expiry(a.Until(), a.Timeout)+" · "+reference(a), a, usualRoom),
		slack.NewActionBlock(blockOf(a, "review"), buttons...),
	}
}

// fullText is the request as a text file: as exact and as visible as on a card.
func (q request) fullText() string {
	var b strings.Builder
	b.WriteString(q.summary + "\n\n" + q.body + "\n")
	for _, n := range q.notes {
		b.WriteString("\nNote: " + n + "\n")
	}
	return b.String()
}
