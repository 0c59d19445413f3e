package slackui

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/slack-go/slack"

	"approvalbot/internal/approvals"
	"approvalbot/internal/ledger"
)

// Some decisions take more than a click: the words of a denial, the name of what is critical, other arguments. Each is a
// form that a click opens and a submission ends. Slack gives three seconds to open one, and may not open it at all: so a
// form decides nothing by being opened, the person is told if it wasn't, and Deny alone never needs one.
//
// A form is about one revision of an ask. Its private_metadata and the block_ids of a card's buttons say which: what
// somebody approves is what they had before them.

// The forms' callback_ids.
const (
	formDeny    = "deny_reason"
	formConfirm = "approve_critical"
	formEdit    = "edit"
)

// mayWithin is how long it may take to find out whether somebody may open a form; the rest of Slack's patience is for
// opening it.
const mayWithin = 1500 * time.Millisecond

// blockOf is the block_id of a card's buttons: the ask, which revision of it they are about, and what else makes it unique.
func blockOf(a *ledger.Approval, what string) string {
	return revised(a.Approval, a.Revision()) + "." + what
}

// revised names an ask and a revision of it.
func revised(approval string, revision int) string { return approval + "." + strconv.Itoa(revision) }

// revisionOf reads which revision of an ask a name is about. What names none is about the first.
func revisionOf(name, approval string) int {
	rest, _ := strings.CutPrefix(name, approval+".")
	digits, _, _ := strings.Cut(rest, ".")
	n, err := strconv.Atoi(digits)
	if err != nil {
		return 0
	}
	return n
}

// onCard finds the ask that a click is about, and notes that its card stands where it was clicked. False: the click has no
// effect, and the person was told why. What is looked up is bounded by limited; what is said outlives it.
func (u *UI) onCard(ctx, limited context.Context, c *click) (subject, context.Context, bool) {
	s, ok, err := u.subject(limited, c)
	ctx, limited = u.aboutSubject(ctx, s), u.aboutSubject(limited, s)
	switch {
	case err != nil:
		u.logger(ctx).Error("a click could not be looked up", "error", err)
		u.refuse(ctx, c, u.renderer.t(failedClick))
		return s, ctx, false
	case !ok:
		u.disown(ctx, c, u.renderer.t(unknownCard))
		return s, ctx, false
	case c.modal() && c.subject != c.value, c.inMessage() && !s.belongs(c):
		u.misfit(ctx, c, s)
		return s, ctx, false
	}
	if err := u.showing(limited, c, s); err != nil {
		c.receipt.ack()
		u.decided(ctx, c, s, approvals.Outcome{}, err)
		return s, ctx, false
	}
	return s, ctx, true
}

// asked is what a click asks for a form about: the ask as it stands, if it still does, if the person may decide so, and if
// the card that was clicked is about this revision of it. False: they were told why not.
func (u *UI) asked(ctx context.Context, c *click, t ledger.ResolutionType) (subject, *ledger.Approval, bool) {
	c.receipt.ack() // nothing is decided; the form is the answer
	limited, cancel := context.WithTimeout(ctx, mayWithin)
	defer cancel()
	s, ctx, ok := u.onCard(ctx, limited, c)
	if !ok {
		return s, nil, false
	}
	err := u.approvals.MayDecide(limited, c.value, t, c.by)
	snap, pending := u.approvals.Find(c.value)
	switch {
	case err != nil:
	case !pending:
		err = approvals.ErrNotFound
	case t == ledger.Approved && snap.Ask.Revision() != revisionOf(c.block, c.value):
		err = &approvals.ChangedError{Snapshot: snap}
	default:
		return s, &snap.Ask, true
	}
	u.decided(ctx, c, s, approvals.Outcome{}, err)
	return s, nil, false
}

// open opens a form, on top of the modal that was clicked in if it was one. If it doesn't open, the person is told.
func (u *UI) open(ctx context.Context, c *click, s subject, view slack.ModalViewRequest, unopened string) {
	opening, cancel := context.WithDeadline(ctx, c.at.Add(triggerLimit))
	defer cancel()
	var err error
	if c.modal() {
		_, err = u.client.api.PushViewContext(opening, c.trigger, view)
	} else {
		_, err = u.client.api.OpenViewContext(opening, c.trigger, view)
	}
	if err != nil {
		u.logger(ctx).Warn("a form could not be opened", "form", view.CallbackID, "error", err)
		u.tell(ctx, c.heardAt(s), c.by.ID, unopened)
	}
}

// formModal is a modal to be filled in.
func (v *renderer) formModal(callback, about, title, submit string, blocks ...slack.Block) slack.ModalViewRequest {
	return slack.ModalViewRequest{
		Type: slack.VTModal, CallbackID: callback, PrivateMetadata: about,
		Title: plainText(title), Submit: plainText(submit), Close: plainText(v.t("Cancel")),
		Blocks: slack.Blocks{BlockSet: blocks},
	}
}

// headline is a request's first lines on a form: what will happen, and the risk.
func (v *renderer) headline(a *ledger.Approval) (request, []slack.RichTextElement) {
	q := v.request(a)
	content := []slack.RichTextElement{paragraph(bold(q.summary))}
	if risk := v.risk(a); risk != nil {
		content = append(content, risk)
	}
	return q, content
}

// notDone answers a form that had no effect: below the field if it can be put right there, else in its place. Whoever has
// lost the form by then is told privately.
func (u *UI) notDone(ctx context.Context, s *submission, field string, err error) {
	u.logger(ctx).Info("a form had no effect", "error", err)
	sentence := u.renderer.unheard(err)
	place := u.placeOf(ctx, s)
	_, _, over := approvals.Ended(err)
	_, changed := errors.AsType[*approvals.ChangedError](err)
	if over || changed || field == "" || errors.Is(err, approvals.ErrNotFound) {
		u.conclude(ctx, s, place, sentenceBlock(sentence), sentence)
		return
	}
	if refusal, ok := errors.AsType[*approvals.RefusedError](err); ok {
		sentence = u.renderer.line(u.renderer.lang.Recorded(refusal.Reason), maxReasonChars) // no mentions below a field
	}
	if !s.wrong(map[string]string{field: sentence}) {
		u.tell(ctx, place, s.by.ID, sentence)
	}
}

// conclude replaces a form by what came of it. late is the same for whoever has lost the form by then.
func (u *UI) conclude(ctx context.Context, s *submission, place ledger.Place, block slack.Block, late string) {
	view := u.renderer.lastModal(block)
	if !s.receipt.answer(slack.NewUpdateViewSubmissionResponse(&view)) && late != "" {
		u.tell(ctx, place, s.by.ID, late)
	}
}

// clear closes a form and what lies below it.
func (s *submission) clear() { s.receipt.answer(slack.NewClearViewSubmissionResponse()) }

// placeOf is where somebody can be told something about the ask of a form.
func (u *UI) placeOf(ctx context.Context, s *submission) ledger.Place {
	approval, _, _ := strings.Cut(s.subject, ".")
	found, ok, err := u.subject(ctx, &click{value: approval})
	if err != nil || !ok {
		return ledger.Place{}
	}
	return found.home()
}

// unheard is the private sentence, in mrkdwn, for somebody whose decision had no effect.
func (v *renderer) unheard(err error) string {
	if e, ok := errors.AsType[*approvals.ChangedError](err); ok {
		by := e.By()
		return v.tf("%s changed this meanwhile, so nothing was decided by you. Look at it again: the card shows it as it is now.", v.byWhom(&by))
	}
	if e, ok := errors.AsType[*approvals.ConflictError](err); ok && e.Resolution.EditedBy != nil {
		return v.tf("Already decided: %s approved this with other arguments, %s. Your click changed nothing.", v.byWhom(e.Resolution.By), v.dateToken(e.Resolution.At))
	}
	if _, ok := errors.AsType[*approvals.UnconfirmedError](err); ok {
		return v.t("The risk is critical, so a click is not enough. Click Approve on the card and type what it asks for.")
	}
	return v.refusal(err)
}

// lastModal is a modal in which there is nothing left to do.
func (v *renderer) lastModal(block slack.Block) slack.ModalViewRequest {
	return slack.ModalViewRequest{
		Type: slack.VTModal, Title: plainText(v.t("Approval")), Close: plainText(v.t("Close")),
		Blocks: slack.Blocks{BlockSet: []slack.Block{block}},
	}
}
