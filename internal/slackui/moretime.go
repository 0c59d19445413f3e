package slackui

import (
	"context"
	"errors"

	"approvalbot/internal/approvals"
	"approvalbot/internal/ledger"
)

// What people are told privately when the deadline stays as it is.
const (
	noMoreTime      = "The deadline is as late as it can be, so it stays as it is."
	notRecordedTime = "I can't record this, so the deadline stays as it is. Try again."
)

// moreTime is a click on Give Me More Time. The card says the new deadline, to everybody.
func (u *UI) moreTime(ctx context.Context, c *click) {
	limited, cancel := context.WithTimeout(ctx, decideLimit)
	defer cancel()
	s, ok := u.onCard(ctx, limited, c)
	if !ok {
		return
	}
	ctx, limited = u.aboutSubject(ctx, s), u.aboutSubject(limited, s)
	var err error
	if !c.modal() && !s.shown && !s.over {
		u.outbox.adopt(c.value, c.channel, c.ts)
		err = u.outbox.shown(limited, c.value, approvals.Showing{Surface: surface, Channel: c.channel, TS: c.ts, Until: s.until})
	}
	if err == nil {
		_, err = u.approvals.Extend(limited, c.value, c.by)
	}
	c.receipt.ack()
	if err == nil {
		return
	}
	sentence := u.renderer.refusal(err)
	switch {
	case errors.Is(err, approvals.ErrNoMoreTime):
		sentence = u.renderer.t(noMoreTime)
	case errors.Is(err, ledger.ErrNotRecorded):
		sentence = u.renderer.t(notRecordedTime)
	}
	u.tell(ctx, s.place, c.by.ID, sentence)
}

// onCard finds the ask whose card was clicked; false: the click doesn't fit one, and that has been said.
func (u *UI) onCard(ctx, limited context.Context, c *click) (subject, bool) {
	s, ok, err := u.subject(limited, c)
	ctx = u.aboutSubject(ctx, s)
	switch {
	case err != nil:
		u.logger(ctx).Error("a click could not be looked up", "error", err)
		u.refuse(ctx, c, failedClick)
	case !ok:
		u.disown(ctx, c, unknownCard)
	case c.modal() && c.subject != c.value, !c.modal() && !s.belongs(c):
		u.misfit(ctx, c, s)
	default:
		return s, true
	}
	return s, false
}
