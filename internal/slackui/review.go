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
		return v.modal(c, richText(paragraph(bold(q.summary)), v.outcome(c, run).section())), nil
	}
	if weightOf(q.body) <= maxView {
		blocks := v.reviewBlocks(q, c, run, v.paged(q.body), true)
		if len(blocks) <= maxViewBlocks && weight(blocks...) <= maxView {
			return v.modal(c, blocks...), nil
		}
	}
	file := &reviewFile{name: "request-" + c.Approval.Approval + ".txt", content: []byte(v.fullText(q))}
	coming := [][]slack.RichTextElement{{paragraph(text(v.t("It is too long for this window too. The file with all of it is on its way.")))}}
	return v.modal(c, v.reviewBlocks(v.withFile(q), c, run, coming, false)...), file
}

// withFile is a request of which a file has all: of many notes, or long ones, the modal has the beginning.
func (v *renderer) withFile(q request) request {
	var notes []string
	for i, n := range q.notes {
		if i == excerptNotes {
			notes = append(notes, v.tf("There are %s; the file has them.", v.count(len(q.notes)-i, "more note", "more notes")))
			break
		}
		notes = append(notes, cutShown(n, usualRoom.reason))
	}
	q.notes = notes
	return q
}

// reviewLinked is the modal of a request whose full text stands in a file.
func (v *renderer) reviewLinked(run *ledger.Run, c *ledger.Call, permalink string) slack.ModalViewRequest {
	q := v.request(c.Approval)
	if u, err := url.Parse(permalink); endingOf(c) != endPending || err != nil || u.Scheme != "https" && u.Scheme != "http" {
		view, _ := v.review(run, c)
		return view
	}
	v = v.knowing(q.hits)
	link := func(p *phrase) {
		words := v.t("Open the file with all of it")
		p.add(slack.NewRichTextSectionLinkElement(permalink, words, nil), words)
	}
	read := v.phrase().form("{file}, read it, and decide here.", slots{"file": link}).section()
	return v.modal(c, v.reviewBlocks(v.withFile(q), c, run, [][]slack.RichTextElement{{read}}, true)...)
}

func (v *renderer) modal(c *ledger.Call, blocks ...slack.Block) slack.ModalViewRequest {
	return slack.ModalViewRequest{
		Type:            slack.VTModal,
		Title:           plainText(v.t("Review the request")),
		Close:           plainText(v.t("Close")),
		CallbackID:      callbackReview,
		PrivateMetadata: c.Approval.Approval,
		Blocks:          slack.Blocks{BlockSet: blocks},
	}
}

// pageChars is how much of a request stands in one block of the modal, which is far more than a card shows.
const pageChars = 8000

// paged is a text as it is, in parts where it is long, so that people can say where they are in it.
func (v *renderer) paged(s string) [][]slack.RichTextElement {
	parts := pages(s, pageChars)
	if len(parts) < 2 {
		return [][]slack.RichTextElement{{preformatted(s)}}
	}
	out := make([][]slack.RichTextElement, len(parts))
	for i, part := range parts {
		title := v.tf("Part %d of %d", i+1, len(parts))
		if i > 0 && !strings.HasSuffix(parts[i-1], "\n") {
			title = v.tf("Part %d of %d, in the same line", i+1, len(parts))
		}
		out[i] = []slack.RichTextElement{paragraph(bold(title)), preformatted(part)}
	}
	return out
}

// pages cuts s into parts of at most limit characters, counted escaped: between lines, unless a line is longer than half a
// part. Nothing is left out.
func pages(s string, limit int) []string {
	var out []string
	for s != "" {
		part := pieces(s, limit)[0]
		if i := strings.LastIndexByte(part, '\n'); len(part) < len(s) && i >= len(part)/2 {
			part = part[:i+1]
		}
		out = append(out, part)
		s = s[len(part):]
	}
	return out
}

// reviewBlocks are the modal's content, the parts of the body one below the other; complete says that all of the request
// is shown or linked.
func (v *renderer) reviewBlocks(q request, c *ledger.Call, run *ledger.Run, body [][]slack.RichTextElement, complete bool) []slack.Block {
	a := c.Approval
	blocks := []slack.Block{richText(append(v.titled(q, a, v.lead(q, true, run)), body[0]...)...)}
	for _, part := range body[1:] {
		blocks = append(blocks, richText(part...))
	}
	if told := append(v.changed(a, usualRoom), v.warnings(q, a, usualRoom, true)...); len(told) > 0 {
		blocks = append(blocks, richText(told...))
	}
	return append(blocks,
		richText(v.circumstances(q, c, run, a.Until(), usualRoom, true)...),
		slack.NewActionBlock(reviewBlock(a), v.decisions(q, a, nil, complete && q.approvable(a))...),
		v.smallPrint(a, usualRoom),
	)
}

// fullText is the request as a text file: as exact and as visible as on a card.
func (v *renderer) fullText(q request) string {
	var b strings.Builder
	b.WriteString(q.summary + "\n\n" + q.body + "\n")
	for _, n := range q.notes {
		b.WriteString("\n" + v.tf("Note: %s", n) + "\n")
	}
	return b.String()
}
