package slackui

import (
	"strconv"

	"github.com/slack-go/slack"

	"approvalbot/internal/ledger"
)

// progress is the one message per run that is updated in place. msg is the
// message that is worked off; run is nil while it waits its turn.
func (v *renderer) progress(msg ledger.Event, run *ledger.Run) rendering {
	say := slack.NewRichTextBlock("", slack.NewRichTextSection(slack.NewRichTextSectionTextElement("Working", nil)))
	r := rendering{text: "Working", thing: ledger.Thing{Kind: "progress", ID: strconv.FormatInt(msg.Seq, 10)}, blocks: []slack.Block{say}}
	if run != nil {
		r.run = run.ID
	}
	return r
}

// progressFinal tells whether no later event changes the progress message.
func (v *renderer) progressFinal(run *ledger.Run) bool { return run != nil && run.Finished != nil }
