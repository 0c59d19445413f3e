package slackui

import (
	"github.com/slack-go/slack"

	"approvalbot/internal/ledger"
)

// elsewhere says on a card where else the card stands; nil if there is nothing to say.
func (v *renderer) elsewhere(a *ledger.Approval) []slack.RichTextElement { return nil }
