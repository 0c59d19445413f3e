package slackui

import (
	"time"

	"github.com/slack-go/slack"

	"approvalbot/internal/ledger"
)

// card is the message of an ask: c.Approval is not nil. While it is pending,
// until is the deadline to print.
func (v *renderer) card(run *ledger.Run, c *ledger.Call, until time.Time) rendering {
	id := c.Approval.Approval
	say := slack.NewRichTextBlock("", slack.NewRichTextSection(slack.NewRichTextSectionTextElement(c.Approval.Preview.Summary, nil)))
	r := rendering{text: "Approval", thing: ledger.Thing{Kind: "card", ID: id}, run: run.ID, blocks: []slack.Block{say}}
	if c.Approval.Open() {
		button := func(action, label string) *slack.ButtonBlockElement {
			return slack.NewButtonBlockElement(action, id, slack.NewTextBlockObject(slack.PlainTextType, label, false, false))
		}
		r.blocks = append(r.blocks, slack.NewActionBlock(id+".0", button("approve", "Approve"), button("deny", "Deny")))
	}
	return r
}

// cardFinal tells whether no later event changes the card.
func (v *renderer) cardFinal(c *ledger.Call, run *ledger.Run) bool {
	return c.Finished != nil || c.Approval.Resolved != nil && c.Approval.Resolved.Type == ledger.Denied
}

// foreign is what becomes of a card that we don't know.
func (v *renderer) foreign(reason string) rendering {
	say := slack.NewRichTextBlock("", slack.NewRichTextSection(slack.NewRichTextSectionTextElement(reason, nil)))
	return rendering{text: "This request is over.", thing: ledger.Thing{Kind: "card"}, blocks: []slack.Block{say}}
}

// reviewFile is a request's full text where a modal can't hold it.
type reviewFile struct {
	name    string
	content []byte
}

// review is the modal that shows a request in full. Where a modal can't hold it
// there is a file; once that stands in Slack, reviewLinked has the buttons.
func (v *renderer) review(run *ledger.Run, c *ledger.Call) (slack.ModalViewRequest, *reviewFile) {
	return slack.ModalViewRequest{Type: slack.VTModal, PrivateMetadata: c.Approval.Approval, CallbackID: "review"}, nil
}

// reviewLinked is the modal of a request whose full text stands in a file.
func (v *renderer) reviewLinked(run *ledger.Run, c *ledger.Call, permalink string) slack.ModalViewRequest {
	view, _ := v.review(run, c)
	return view
}
