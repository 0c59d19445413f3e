package slackui

import (
	"context"
	"strings"

	"github.com/slack-go/slack"

	"approvalbot/internal/approvals"
	"approvalbot/internal/ledger"
)

// Deny with Reason: a form for words that the agent reads and that stand on the card. A no holds for whatever is asked by
// then, so a form that was opened before somebody changed the arguments still denies.

// The field for the words, by block_id and action_id.
const (
	fieldReason  = "reason"
	actionReason = "reason"

	maxDenialChars = 1000
)

// denyWith is a click on Deny with Reason.
func (u *UI) denyWith(ctx context.Context, c *click) {
	s, a, ok := u.asked(ctx, c, ledger.Denied)
	if !ok {
		return
	}
	v := u.renderer
	u.open(u.aboutSubject(ctx, s), c, s, v.denyForm(a), v.t("The form for your reason didn't open, so nothing is decided yet. Deny alone works at once."))
}

func (v *renderer) denyForm(a *ledger.Approval) slack.ModalViewRequest {
	_, head := v.headline(a)
	field := slack.NewPlainTextInputBlockElement(plainText(v.t("What is wrong with it, or what to do instead")), actionReason)
	field.Multiline, field.MaxLength, field.FocusOnLoad = true, maxDenialChars, true
	input := slack.NewInputBlock(fieldReason, plainText(v.t("Reason")), plainText(v.t("The agent reads it, and it stands on the card.")), field)
	return v.formModal(formDeny, a.Approval, v.t("Deny with reason"), v.t("Deny"), richText(head...), input)
}

// denied is a form with a reason that was sent.
func (u *UI) denied(ctx context.Context, s *submission) {
	limited, cancel := context.WithTimeout(ctx, decideLimit)
	defer cancel()
	words := strings.TrimSpace(s.text(fieldReason, actionReason))
	out, err := u.approvals.ResolveByID(limited, s.subject, approvals.Decision{
		Type: ledger.Denied, Reason: words, By: s.by, Received: s.at, Revision: approvals.AnyRevision,
	})
	switch {
	case err != nil:
		u.notDone(ctx, s, fieldReason, err)
	case out.Repeated && out.Resolution != nil && out.Resolution.Reason != words:
		said := u.renderer.deniedBefore(*out.Resolution)
		u.conclude(ctx, s, u.placeOf(ctx, s), richText(paragraph(said.elements...)), said.plain.String())
	default:
		s.clear()
	}
}

// deniedBefore says to somebody with other words that it was denied without them.
func (v *renderer) deniedBefore(res approvals.Resolution) *phrase {
	return v.phrase().form("{who} denied this already, {at}. Your words were not recorded.", slots{
		"who": func(p *phrase) {
			if res.By != nil {
				p.who(*res.By)
			}
		},
		"at": func(p *phrase) { p.at(res.At) },
	})
}
