package slackui

import (
	"strings"

	"github.com/slack-go/slack"

	"approvalbot/internal/ledger"
)

// A risk is said in words, in the first lines, and not by colour: whoever sees none,
// and a screen reader, get all of it. The marks in front are for the eye that only
// glances.

// high tells whether a click should be thought over because of the risk alone.
func high(risk string) bool { return risk == "high" || risk == critical }

// critical is the risk that one has to name the target for: a form asks for it before anything is approved.
const critical = "critical"

// risk is the line under the title; nil if nobody has named one. A risk that isn't known is told as it stands.
func (v *renderer) risk(a *ledger.Approval) *slack.RichTextSection {
	words := ""
	switch a.Risk {
	case "":
		return nil
	case "low":
		words = v.t("Low risk")
	case "medium":
		words = v.t("Medium risk")
	case "high":
		words = v.t("▲ High risk")
	case critical:
		words = v.t("▲▲ Critical risk")
	default:
		words = v.tf("Risk: %s", v.line(a.Risk, maxNameChars))
	}
	return paragraph(bold(words))
}

// needed is what a notification says of a card that waits.
func (v *renderer) needed(q request, a *ledger.Approval) string {
	switch a.Risk {
	case "high":
		return v.tf("Approval needed (high risk): %s", q.summary)
	case critical:
		return v.tf("Approval needed (critical risk): %s", q.summary)
	}
	return v.tf("Approval needed: %s", q.summary)
}

// approve is the button, with a dialog in front of it where a click is to be thought
// over. The dialog names what is approved, so that it can't be taken for another. What is critical has a form in front
// of it, which the dots on the button announce.
func (v *renderer) approve(q request, a *ledger.Approval) *slack.ButtonBlockElement {
	if a.Risk == critical {
		return v.spoken(button(actionApprove, a.Approval, v.t("Approve…"), slack.StylePrimary), q.summary)
	}
	b := v.spoken(button(actionApprove, a.Approval, v.t("Approve"), slack.StylePrimary), q.summary)
	title := v.t("Approve this?")
	switch {
	case high(a.Risk):
		title = v.t("High risk. Approve this?")
	case !a.Confirm:
		return b
	}
	b.Confirm = slack.NewConfirmationBlockObject(plainText(title), plainText(asLong(q.summary, maxConfirmChars)), plainText(v.t("Approve")), plainText(v.t("Back")))
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
