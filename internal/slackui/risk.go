package slackui

import (
	"strings"

	"github.com/slack-go/slack"

	"approvalbot/internal/ledger"
)

// A risk is said in words, in the first lines, and not by colour: whoever sees none,
// and a screen reader, get all of it. The marks in front are for the eye that only
// glances.

// riskWords are what people are told; a risk that isn't here is told as it stands.
var riskWords = map[string]string{
	"low":      "Low risk",
	"medium":   "Medium risk",
	"high":     "▲ High risk",
	"critical": "▲▲ Critical risk",
}

// high tells whether a click should be confirmed because of the risk alone.
func high(risk string) bool { return risk == "high" || risk == "critical" }

// risk is the line under the title; nil if nobody has named one.
func (v *renderer) risk(a *ledger.Approval) *slack.RichTextSection {
	switch words, known := riskWords[a.Risk]; {
	case a.Risk == "":
		return nil
	case known:
		return paragraph(bold(words))
	}
	return paragraph(bold("Risk: " + v.line(a.Risk, maxNameChars)))
}

// needed begins the fallback of a card that waits.
func needed(a *ledger.Approval) string {
	if high(a.Risk) {
		return "Approval needed (" + a.Risk + " risk): "
	}
	return "Approval needed: "
}

// approve is the button, with a dialog in front of it where a click is to be thought
// over. The dialog names what is approved, so that it can't be taken for another.
func (q request) approve(a *ledger.Approval) *slack.ButtonBlockElement {
	b := button(actionApprove, a.Approval, "Approve", slack.StylePrimary)
	if !a.Confirm && !high(a.Risk) {
		return b
	}
	plain := func(s string) *slack.TextBlockObject {
		return slack.NewTextBlockObject(slack.PlainTextType, s, false, false)
	}
	title := "Approve this?"
	if high(a.Risk) {
		title = strings.ToUpper(a.Risk[:1]) + a.Risk[1:] + " risk. Approve this?"
	}
	b.Confirm = slack.NewConfirmationBlockObject(plain(title), plain(asLong(q.summary, maxConfirmChars)), plain("Approve"), plain("Back"))
	if a.Risk == "critical" {
		b.Confirm.Style = slack.StyleDanger
	}
	return b
}

// maxConfirmChars is Slack's limit for the text of a dialog.
const maxConfirmChars = 300

// asLong cuts text that was made visible before to what fits, counted as Slack escapes
// it.
func asLong(shown string, limit int) string {
	if parts := pieces(shown, limit); len(parts) > 1 {
		return strings.TrimSpace(pieces(shown, limit-1)[0]) + "…"
	}
	return shown
}
