package slackui

import (
	"github.com/slack-go/slack"
)

// plain says the same with the plainest blocks, for a Slack that refuses the
// rendering with invalid_blocks: a plan becomes a list, dates become text.
// Buttons and mentions stay, and nothing is left out.
func plain(r rendering) rendering {
	out := r
	out.blocks = nil
	for _, b := range r.blocks {
		switch b := b.(type) {
		case *slack.PlanBlock:
			out.blocks = append(out.blocks, plainPlan(b))
		case *slack.RichTextBlock:
			out.blocks = append(out.blocks, plainRichText(b))
		default:
			out.blocks = append(out.blocks, b)
		}
	}
	return out
}

// bare says no more than a notification does, without buttons: for the last state
// of a message of which Slack takes not even plain blocks.
func bare(r rendering) rendering {
	said := &slack.TextBlockObject{Type: slack.MarkdownType, Text: r.text, Verbatim: true}
	r.blocks = []slack.Block{slack.NewSectionBlock(said, nil, nil)}
	return r
}

func plainPlan(p *slack.PlanBlock) slack.Block {
	list := slack.NewRichTextList(slack.RTEListBullet, 0)
	for _, t := range p.Tasks {
		line := []element{bold(t.Title)}
		for _, part := range []*slack.RichTextBlock{t.Details, t.Output} {
			if part != nil {
				line = append(line, text(" · "))
				line = append(line, inlineOf(plainRichText(part))...)
			}
		}
		list.Elements = append(list.Elements, paragraph(line...))
	}
	if len(list.Elements) == 0 {
		return richText(paragraph(bold(p.Title)))
	}
	return richText(paragraph(bold(p.Title)), list)
}

// inlineOf is what stands in the paragraphs of a block, one after the other.
func inlineOf(b *slack.RichTextBlock) []element {
	var inline []element
	for _, e := range b.Elements {
		if s, ok := e.(*slack.RichTextSection); ok {
			if len(inline) > 0 {
				inline = append(inline, text(" · "))
			}
			inline = append(inline, s.Elements...)
		}
	}
	return inline
}

func plainRichText(b *slack.RichTextBlock) *slack.RichTextBlock {
	out := richText()
	out.BlockID = b.BlockID
	for _, e := range b.Elements {
		switch e := e.(type) {
		case *slack.RichTextSection:
			out.Elements = append(out.Elements, paragraph(plainInline(e.Elements)...))
		case *slack.RichTextQuote:
			out.Elements = append(out.Elements, quote(plainInline(e.Elements)...))
		case *slack.RichTextPreformatted:
			as := *e
			as.Language = ""
			out.Elements = append(out.Elements, &as)
		default:
			out.Elements = append(out.Elements, e)
		}
	}
	return out
}

func plainInline(elements []element) []element {
	out := make([]element, len(elements))
	for i, e := range elements {
		out[i] = e
		if d, ok := e.(*slack.RichTextSectionDateElement); ok && d.Fallback != nil {
			out[i] = text(*d.Fallback)
		}
	}
	return out
}
