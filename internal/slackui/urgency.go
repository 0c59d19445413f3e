package slackui

import (
	"github.com/slack-go/slack"

	"approvalbot/internal/ledger"
)

// urgency says on a card what happens while nobody answers: who was reminded, who was added, how the deadline was moved; nil if there is nothing to say.
func (v *renderer) urgency(a *ledger.Approval) []slack.RichTextElement { return nil }
