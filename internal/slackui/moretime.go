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
	s, ctx, ok := u.onCard(ctx, limited, c)
	if !ok {
		return
	}
	_, err := u.approvals.Extend(u.aboutSubject(limited, s), c.value, c.by)
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
	u.tell(ctx, c.heardAt(s), c.by.ID, sentence)
}
