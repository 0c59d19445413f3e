package slackui

import (
	"context"
	"errors"
	"strings"

	"github.com/slack-go/slack"

	"approvalbot/internal/approvals"
	"approvalbot/internal/ledger"
)

// What is critical is approved by typing what it is about. Approve opens a form for that; the registry compares what was
// typed (approvals.Confirmation), so no click and no other surface can go around it.

// The field for the word, by block_id and action_id.
const (
	fieldConfirm  = "confirm"
	actionConfirm = "confirm"
)

// confirm is a click on Approve of an ask of critical risk.
func (u *UI) confirm(ctx context.Context, c *click) {
	s, a, ok := u.asked(ctx, c, ledger.Approved)
	if !ok {
		return
	}
	v := u.renderer
	if q := v.request(a); !q.approvable(a) {
		u.refuse(u.aboutSubject(ctx, s), c, u.renderer.t(misfitClick))
		return
	}
	u.open(u.aboutSubject(ctx, s), c, s, v.confirmForm(a), v.t("The form to approve this didn't open, so nothing is approved. Please click Approve again."))
}

// critical tells whether an ask that is pending takes more than a click to approve.
func (u *UI) critical(approval string) bool {
	snap, ok := u.approvals.Find(approval)
	if !ok {
		return false
	}
	word, _ := approvals.Confirmation(snap.Ask.ApprovalRequested)
	return word != ""
}

func (v *renderer) confirmForm(a *ledger.Approval) slack.ModalViewRequest {
	_, head := v.headline(a)
	word, isTool := approvals.Confirmation(a.ApprovalRequested)
	shown := slots{"word": func(p *phrase) { p.elements = append(p.elements, code(p.v.line(word, maxNameChars))) }}
	ask := v.phrase()
	if isTool {
		ask.form("The name of what this is about can't be typed. To approve it, type the tool's name: {word}", shown)
	} else {
		ask.form("To approve this, type what it is about: {word}", shown)
	}
	field := slack.NewPlainTextInputBlockElement(nil, actionConfirm)
	field.FocusOnLoad = true
	input := slack.NewInputBlock(fieldConfirm, plainText(v.t("Type it exactly")), nil, field)
	return v.formModal(formConfirm, revised(a.Approval, a.Revision()), v.t("Approve: critical risk"), v.t("Approve"),
		richText(append(head, paragraph(ask.elements...))...), input)
}

// confirmed is a form with a word that was sent.
func (u *UI) confirmed(ctx context.Context, s *submission) {
	limited, cancel := context.WithTimeout(ctx, decideLimit)
	defer cancel()
	approval, _, _ := strings.Cut(s.subject, ".")
	out, err := u.approvals.ResolveByID(limited, approval, approvals.Decision{
		Type: ledger.Approved, By: s.by, Received: s.at,
		Revision: revisionOf(s.subject, approval), Confirmed: s.text(fieldConfirm, actionConfirm),
	})
	v := u.renderer
	wrong, mistyped := errors.AsType[*approvals.UnconfirmedError](err)
	switch {
	case mistyped:
		word, _ := approvals.Confirmation(wrong.Snapshot.Ask.ApprovalRequested)
		sentence := v.tf("This is not %s, so nothing is approved yet.", v.line(word, maxNameChars))
		if !s.wrong(map[string]string{fieldConfirm: sentence}) {
			u.tell(ctx, u.placeOf(ctx, s), s.by.ID, escape(sentence))
		}
	case err != nil:
		u.notDone(ctx, s, fieldConfirm, err)
	case out.Resolution == nil: // the card alone would leave them wondering
		u.conclude(ctx, s, ledger.Place{}, richText(paragraph(v.decision(out).elements...)), "")
	default:
		s.clear()
	}
}
