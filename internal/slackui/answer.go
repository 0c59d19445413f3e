package slackui

import (
	"github.com/slack-go/slack"

	"approvalbot/internal/ledger"
)

// answer is what a run has to say at its end: usually one message, several where
// it is long, none if there is nothing to say.
func (v *renderer) answer(run *ledger.Run) []rendering {
	if run.Finished == nil {
		return nil
	}
	say := slack.NewRichTextBlock("", slack.NewRichTextSection(slack.NewRichTextSectionTextElement(run.Finished.Answer, nil)))
	return []rendering{{text: "Answer", thing: ledger.Thing{Kind: "answer", ID: run.ID}, run: run.ID, blocks: []slack.Block{say}}}
}
