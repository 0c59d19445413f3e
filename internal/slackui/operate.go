package slackui

import (
	"context"
	"errors"
	"slices"

	"github.com/slack-go/slack"

	"approvalbot/internal/approvals"
	"approvalbot/internal/ledger"
)

// What operators do: pause, resume, stop all runs; and what people do with what is theirs: revoke a grant. It comes from
// buttons in the Home tab and in answers to /approvals, and from that command itself. Every one asks the registry who may.

// A Condition is one thing that has to be well, and a Fact a setting that matters: what operators see in their Home tab.
type Condition struct {
	Name string
	Err  func() error
}

type Fact struct{ Name, Value string }

const actionStopAll = "stop_all"

func init() {
	verbs[actionPause] = verb{"order", onOperation, (*UI).clickPause}
	verbs[actionResume] = verb{"order", onOperation, (*UI).clickResume}
	verbs[actionStopAll] = verb{"order", onOperation, (*UI).clickStopAll}
	verbs[actionRevoke] = verb{"grant", onGrant, (*UI).revoke}
}

func onOperation(c *click) string { return "operate/" + c.by.ID }
func onGrant(c *click) string     { return "grant/" + c.value + "/" + c.by.ID }

// loose tells of a click that stands on no message of ours that everybody sees: what it is about is its value alone, and
// whether that may be is the registry's word alone.
func (c *click) loose() bool { return c.home || c.private }

// clickPause is a click on Pause.
func (u *UI) clickPause(ctx context.Context, c *click) {
	u.operate(ctx, c, func(ctx context.Context) (string, error) { return u.pauseNow(ctx, c.by, "") })
}

// clickResume is a click on Resume.
func (u *UI) clickResume(ctx context.Context, c *click) {
	u.operate(ctx, c, func(ctx context.Context) (string, error) { return u.resumeNow(ctx, c.by) })
}

// clickStopAll is a click on Stop All Runs.
func (u *UI) clickStopAll(ctx context.Context, c *click) {
	u.operate(ctx, c, func(ctx context.Context) (string, error) { return u.stopAll(ctx, c.by) })
}

// revoke is a click on Revoke.
func (u *UI) revoke(ctx context.Context, c *click) {
	u.operate(ctx, c, func(ctx context.Context) (string, error) {
		if u.grants == nil {
			return u.renderer.t("This grant has ended already."), nil
		}
		if err := u.grants.Revoke(ctx, c.value, c.by, ""); err != nil {
			if _, ended := errors.AsType[*approvals.GrantOverError](err); ended || errors.Is(err, approvals.ErrNoGrant) {
				return u.renderer.t("This grant has ended already."), nil
			}
			return "", err
		}
		return u.renderer.t("Revoked. From now on it is asked again."), nil
	})
}

// operate does what a click wants and says what came of it.
func (u *UI) operate(ctx context.Context, c *click, do func(context.Context) (string, error)) {
	if !c.loose() { // no message that everybody sees has such a button
		u.misfit(ctx, c, subject{})
		return
	}
	limited, cancel := context.WithTimeout(ctx, decideLimit)
	defer cancel()
	said, err := do(limited)
	c.receipt.ack()
	if err != nil {
		said = u.failure(ctx, err)
	}
	u.reply(ctx, c, said)
}

// reply answers a click where the person is: in the place of the answer that was clicked, in the Home tab, or privately.
func (u *UI) reply(ctx context.Context, c *click, sentence string) {
	if c.private && c.response != "" {
		u.beside(ctx, "answer/"+c.by.ID, func(ctx context.Context) {
			if err := u.respond(ctx, c.response, true, u.renderer.answerOf(sentence)); err != nil {
				u.logger(ctx).Warn("a click could not be answered", "error", err)
			}
		})
		return
	}
	u.tell(ctx, c.place(), c.by.ID, sentence)
}

// failure says to a person why something was not done, in mrkdwn.
func (u *UI) failure(ctx context.Context, err error) string {
	switch {
	case errors.Is(err, ledger.ErrNotRecorded):
		return u.renderer.t("I can't record this, so nothing was changed. Please try again.")
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		u.logger(ctx).Error("an operation took too long", "error", err)
		return u.renderer.t("This took too long, so it may not be done. Please look again in a moment.")
	}
	if _, refused := errors.AsType[*approvals.RefusedError](err); !refused {
		u.logger(ctx).Error("an operation failed", "error", err)
		return u.renderer.t("Something went wrong, so nothing was changed. Please try again.")
	}
	return u.renderer.refusal(err)
}

// pauseNow pauses, and says so.
func (u *UI) pauseNow(ctx context.Context, by ledger.Actor, reason string) (string, error) {
	p, before, err := u.approvals.Pause(ctx, by, reason)
	if err != nil {
		return "", err
	}
	v := u.renderer
	if before {
		return v.tf("It was paused already, by %s, %s.", v.doerText(p.By), v.dateToken(p.At)), nil
	}
	s := v.t("Paused. No run starts, nobody is asked, and nothing can be approved until it is resumed. The channels are told.")
	if runs, err := u.journal.UnfinishedRuns(ctx); err == nil && len(runs) > 0 {
		s += " " + v.tf("%s may go on with what needs no approval.", v.count(len(runs), "run", "runs"))
	}
	return s, nil
}

// resumeNow ends the pause, and says so.
func (u *UI) resumeNow(ctx context.Context, by ledger.Actor) (string, error) {
	p, was, err := u.approvals.Resume(ctx, by)
	v := u.renderer
	switch {
	case err != nil:
		return "", err
	case !was:
		return v.t("It isn't paused."), nil
	}
	return v.tf("Resumed. It had been paused by %s, %s. What waited starts now.", v.doerText(p.By), v.dateToken(p.At)), nil
}

// stopAll ends every run there is, and says how many.
func (u *UI) stopAll(ctx context.Context, by ledger.Actor) (string, error) {
	if _, err := u.approvals.MayOperate(ctx, by); err != nil {
		return "", err
	}
	runs, err := u.journal.UnfinishedRuns(ctx)
	if err != nil {
		return "", err
	}
	stopped, left := 0, 0
	for _, run := range runs {
		if err := u.agent.Stop(ctx, run, by); err != nil {
			if over, lookErr := u.over(ctx, run); lookErr == nil && over {
				continue
			}
			u.logger(u.about(ctx, "run", run)).Error("a run could not be stopped", "error", err)
			left++
			continue
		}
		stopped++
	}
	v := u.renderer
	switch {
	case left > 0:
		return v.tf("%s stopped; %s could not be stopped. Please try again.", v.count(stopped, "run", "runs"), v.count(left, "run", "runs")), nil
	case stopped == 0:
		return v.t("There is no run to stop."), nil
	}
	return v.tf("%s stopped. What was open is closed.", v.count(stopped, "run", "runs")), nil
}

// over tells whether a run has its end.
func (u *UI) over(ctx context.Context, run string) (bool, error) {
	_, over, err := u.journal.Claimed(ctx, ledger.ClaimRunEnd(run))
	return over, err
}

// pausedSentence is what somebody is told, in mrkdwn, who wants to start or approve something during a pause.
func (v *renderer) pausedSentence(p approvals.Pause, ask bool) string {
	s := v.tf("approvalbot was paused by %s, %s.", v.doerText(p.By), v.dateToken(p.At))
	if reason := v.line(p.Reason, maxReasonChars); reason != "" {
		s += " " + v.tf("Why: %s", escape(v.sentence(reason, "")))
	}
	if ask {
		return s + " " + v.t("Nothing can be approved until it is resumed. You can deny this.")
	}
	return s + " " + v.t("Nothing starts until it is resumed. Please ask again then.")
}

// sees tells whether somebody is in one of the conversations; not known is no.
func (u *UI) sees(ctx context.Context, user string, places ...ledger.Place) bool {
	return slices.ContainsFunc(places, func(p ledger.Place) bool {
		if p.Channel == "" {
			return false
		}
		in, err := u.client.directory.Member(ctx, p.Channel, user)
		return in && err == nil
	})
}

// confirmed asks once more before a button does something.
func (v *renderer) confirming(b *slack.ButtonBlockElement, title, text, yes string) *slack.ButtonBlockElement {
	plain := func(s string) *slack.TextBlockObject {
		return slack.NewTextBlockObject(slack.PlainTextType, s, false, false)
	}
	b.Confirm = slack.NewConfirmationBlockObject(plain(title), plain(text), plain(yes), plain(v.t("Back")))
	return b
}

func (v *renderer) pauseButton() slack.BlockElement {
	return v.confirming(button(actionPause, "now", v.t("Pause"), slack.StyleDefault), v.t("Pause approvalbot?"),
		v.t("No run starts, nobody is asked and nothing can be approved until it is resumed. The channels are told."), v.t("Pause"))
}

func (v *renderer) resumeButton() slack.BlockElement {
	return v.confirming(button(actionResume, "now", v.t("Resume"), slack.StyleDefault), v.t("Resume approvalbot?"),
		v.t("Messages that wait start their runs, and people can approve again."), v.t("Resume"))
}

func (v *renderer) stopAllButton() slack.BlockElement {
	return v.confirming(button(actionStopAll, "now", v.t("Stop All Runs"), slack.StyleDefault), v.t("Stop all runs?"),
		v.t("Open requests are closed and running tools are cancelled, everywhere. What runs may be partly performed."), v.t("Stop All Runs"))
}
