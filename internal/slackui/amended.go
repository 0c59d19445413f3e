package slackui

import (
	"github.com/slack-go/slack"

	"approvalbot/internal/ledger"
)

// changed says on a card what people changed in the arguments, against what was asked for; nil if there is nothing to say.
func (v *renderer) changed(a *ledger.Approval) []slack.RichTextElement { return nil }
