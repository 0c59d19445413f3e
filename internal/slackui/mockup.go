package slackui

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/slack-go/slack"

	"approvalbot/internal/language"
	"approvalbot/internal/ledger"
	"approvalbot/internal/redact"
)

// A Mockup is a request that nobody made: what people would be asked, to be looked at.
type Mockup struct {
	Tool      string
	Arguments string // canonical
	Digest    string // their SHA-256, hex
	Reason    string // why it would ask
	Rule      string // and by which rule
	Preview   ledger.Preview
	Cwd       string // where it would run
	Approvers []string
	Unnamed   string // who may approve where Approvers is empty
	Quorum    int
	Timeout   time.Duration
	Risk      string
	Confirm   bool
	Offers    []ledger.Offer    // what it lets people do besides approving and denying
	MoreTime  time.Duration     // how far they may move its deadline
	Language  language.Language // that people read it in
}

// Text is the card that people would see, as text: made by the code that makes cards, with its words, its order and its
// buttons. What has no place in text (bold, colours, mentions by name) is left out.
func (m Mockup) Text(r *redact.Redactor) string {
	v := &renderer{redactor: r, lang: m.Language, unnamed: m.Unnamed}
	run := &ledger.Run{}
	for _, e := range []ledger.Event{
		{Seq: 1, Run: "mockup", Body: &ledger.RunStarted{}},
		{Seq: 2, Run: "mockup", Body: &ledger.ModelCompleted{Round: 1, ToolCalls: []ledger.ToolCall{{ID: "c1", Name: m.Tool, Arguments: m.Arguments}}}},
		{Seq: 3, Run: "mockup", Call: "c1", Body: &ledger.ApprovalRequested{
			Approval: "mockup", Tool: m.Tool, Arguments: m.Arguments, Digest: m.Digest, Reason: m.Reason, Rule: m.Rule, Preview: m.Preview,
			Approvers: m.Approvers, Quorum: m.Quorum, Timeout: m.Timeout, Cwd: m.Cwd, Risk: m.Risk, Confirm: m.Confirm,
			Offers: m.Offers, MoreTime: m.MoreTime,
		}},
	} {
		run.Apply(e)
	}
	return blocksAsText(v.card(run, run.Call("c1"), time.Time{}).blocks)
}

func blocksAsText(blocks []slack.Block) string {
	var out strings.Builder
	for _, b := range blocks {
		switch b := b.(type) {
		case *slack.RichTextBlock:
			for _, e := range b.Elements {
				out.WriteString(elementAsText(e) + "\n")
			}
		case *slack.ContextBlock:
			for _, e := range b.ContextElements.Elements {
				if t, ok := e.(*slack.TextBlockObject); ok {
					out.WriteString(t.Text + "\n")
				}
			}
		case *slack.ActionBlock:
			out.WriteString(strings.Join(labelsAsText(b.Elements.ElementSet), " ") + "\n")
		case *slack.HeaderBlock:
			out.WriteString("== " + b.Text.Text + " ==\n")
		case *slack.SectionBlock:
			if b.Text != nil {
				out.WriteString(b.Text.Text + "\n")
			}
		case *slack.DividerBlock:
			out.WriteString("----\n")
		default:
			fmt.Fprintf(&out, "(%s)\n", b.BlockType())
		}
	}
	return out.String()
}

func labelsAsText(elements []slack.BlockElement) []string {
	var labels []string
	for _, e := range elements {
		switch e := e.(type) {
		case *slack.ButtonBlockElement:
			labels = append(labels, "["+e.Text.Text+"]")
		case *slack.OverflowBlockElement:
			var options []string
			for _, o := range e.Options {
				options = append(options, o.Text.Text)
			}
			labels = append(labels, "[⋯ "+strings.Join(options, " | ")+"]")
		}
	}
	return labels
}

func elementAsText(e slack.RichTextElement) string {
	switch e := e.(type) {
	case *slack.RichTextSection:
		return inlineAsText(e.Elements)
	case *slack.RichTextQuote:
		return "> " + strings.ReplaceAll(inlineAsText(e.Elements), "\n", "\n> ")
	case *slack.RichTextPreformatted:
		return "    " + strings.ReplaceAll(strings.TrimSuffix(inlineAsText(e.Elements), "\n"), "\n", "\n    ")
	case *slack.RichTextList:
		items := make([]string, len(e.Elements))
		for i, item := range e.Elements {
			items[i] = "• " + elementAsText(item)
		}
		return strings.Join(items, "\n")
	}
	return fmt.Sprintf("(%s)", e.RichTextElementType())
}

func inlineAsText(elements []element) string {
	var out strings.Builder
	for _, e := range elements {
		switch e := e.(type) {
		case *slack.RichTextSectionTextElement:
			out.WriteString(e.Text)
		case *slack.RichTextSectionUserElement:
			out.WriteString("@" + e.UserID)
		case *slack.RichTextSectionUserGroupElement:
			out.WriteString("@" + e.UsergroupID)
		case *slack.RichTextSectionChannelElement:
			out.WriteString("#" + e.ChannelID)
		case *slack.RichTextSectionLinkElement:
			out.WriteString(cmp.Or(e.Text, e.URL))
		case *slack.RichTextSectionDateElement:
			if e.Fallback != nil {
				out.WriteString(*e.Fallback)
			}
		}
	}
	return out.String()
}
