package slackui

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/slack-go/slack"

	"approvalbot/internal/ledger"
)

// A card that ended without people (nobody answered, or the process that asked ended) offers Ask Again. It starts a run in
// the same conversation, with a message of ours in place of a person's, and the agent asks anew if it still wants to: the
// old request stays as it ended, and nothing is approved by asking. A card does so once, by the claim that the message
// makes in the journal; the card says who did.

// What people are told privately when nothing is asked again.
const (
	notRecordedAgain   = "I can't record this, so nothing was asked again. Try again."
	answeredMeanwhile  = "This request was answered, so there is nothing to ask again. The card shows how it ended."
	notAskedAgain      = "This request can't be asked again from here. Ask the agent in the thread."
	failedAgain        = "Something went wrong, so nothing was asked again. Please try again."
	alreadyAskedFormat = "%s has had this asked again already. Look further down in the thread."
)

// lost tells whether an ask of a run ended without anybody's having a say, so that it can be asked again: its time ran out,
// or approvalbot ended while it waited. A run that somebody stopped had a say, also where a restart came before its end.
func lost(run *ledger.Run, a *ledger.Approval) bool {
	if a.Resolved == nil || !slices.Contains(a.Offers, ledger.OfferAskAgain) {
		return false
	}
	switch a.Resolved.Source {
	case ledger.SourceTimeout:
		return true
	case ledger.SourceAbort: // who stops a run is named first, and is never called so
		return a.Resolved.By == nil && run.Stop == nil && strings.HasPrefix(strings.ToLower(a.Resolved.Reason), "approvalbot ")
	}
	return false
}

// askAgain is what a card offers whose ask was lost, or who had it asked again; nil: nothing.
func (v *renderer) askAgain(q request, run *ledger.Run, a *ledger.Approval) slack.Block {
	if by := a.AskedAgain; by != nil {
		p := v.phrase().form("Asked again by {who}, {at}.", slots{
			"who": func(p *phrase) { p.who(by.By) }, "at": func(p *phrase) { p.at(by.At) },
		})
		return richText(paragraph(p.elements...))
	}
	if !lost(run, a) {
		return nil
	}
	b := v.spoken(button(actionAskAgain, a.Approval, v.t("Ask Again"), slack.StyleDefault), q.summary)
	return slack.NewActionBlock(a.Approval+".again", b)
}

// askAgain is a click on Ask Again.
func (u *UI) askAgain(ctx context.Context, c *click) {
	limited, cancel := context.WithTimeout(ctx, decideLimit)
	defer cancel()
	s, ctx, ok := u.onCard(ctx, limited, c)
	if !ok {
		return
	}
	limited = u.aboutSubject(limited, s)
	run, call, err := u.past(limited, c.value)
	var a *ledger.Approval
	if call != nil {
		a = call.Approval
	}
	switch {
	case err != nil:
		u.logger(ctx).Error("a click could not be looked up", "error", err)
		u.refuse(ctx, c, u.renderer.t(failedAgain))
		return
	case a != nil && a.Resolved != nil && a.Resolved.Source == ledger.SourceUser:
		u.refuse(ctx, c, u.renderer.t(answeredMeanwhile))
		return
	case a == nil || !lost(run, a):
		u.refuse(ctx, c, u.renderer.t(notAskedAgain))
		return
	case a.AskedAgain != nil:
		u.askedBefore(ctx, c, a.AskedAgain.By)
		return
	}
	place := run.Started.Place
	if why := u.mayStart(limited, remark{team: c.by.Team, user: c.by.ID, channel: place.Channel, direct: strings.HasPrefix(place.Channel, "D")}); why != "" {
		u.refuse(ctx, c, escape(u.renderer.lang.Recorded(why)))
		return
	}
	if p, paused := u.approvals.Paused(); paused {
		u.refuse(ctx, c, u.renderer.pausedSentence(p, false))
		return
	}
	u.receiveAgain(ctx, limited, c, run, call)
}

// receiveAgain starts the run, and writes onto the card who had it started.
func (u *UI) receiveAgain(ctx, limited context.Context, c *click, run *ledger.Run, call *ledger.Call) {
	a := call.Approval
	c.by.Name = u.userName(limited, c.by.ID)
	message, err := u.agent.Receive(limited, ledger.Event{Session: run.Session, Actor: c.by, Body: again(run, a)})
	if e, before := errors.AsType[*ledger.ConflictError](err); before {
		message, err = e.Winner, nil // by another click, or by this one before a crash
	}
	if err == nil {
		_, err = u.journal.Append(context.WithoutCancel(limited), ledger.Event{
			Session: run.Session, Run: run.ID, Call: call.ID, Actor: message.Actor,
			Body: &ledger.ApprovalAskedAgain{Approval: a.Approval, Message: message.Seq},
		})
	}
	c.receipt.ack()
	if e, before := errors.AsType[*ledger.ConflictError](err); before {
		err = nil
		u.askedBefore(ctx, c, e.Winner.Actor)
	}
	if err != nil {
		u.logger(ctx).Error("a request could not be asked again", "error", err)
		sentence := u.renderer.t(failedAgain)
		if errors.Is(err, ledger.ErrNotRecorded) {
			sentence = u.renderer.t(notRecordedAgain)
		}
		u.refuse(ctx, c, sentence)
		return
	}
	u.threads.add(run.Session)
	u.beside(ctx, "restate/"+c.value, func(ctx context.Context) {
		u.restate(ctx, c)
		u.restateOthers(ctx, c)
	})
}

// restateOthers takes the button from the other messages of the ask that the outbox has done with.
func (u *UI) restateOthers(ctx context.Context, c *click) {
	b, err := u.pastBook(ctx, c.value)
	if err != nil || b == nil {
		return
	}
	for _, t := range b.byAsk[c.value] {
		if t.stands() && t.gone == "" && t.ts != c.ts && !u.outbox.keeps(t.Thing) {
			u.override(ctx, t.channel, t.ts, b.render(t, u.renderer, time.Now()).rendering)
		}
	}
}

func (u *UI) askedBefore(ctx context.Context, c *click, by ledger.Actor) {
	u.refuse(ctx, c, u.renderer.tf(alreadyAskedFormat, u.renderer.byWhom(&by)))
	u.beside(ctx, "restate/"+c.value, func(ctx context.Context) { u.restate(ctx, c) })
}

// again is the message that has a request asked again. A model reads it; the words are ours. The request is named by its
// own summary, of a short command by the command itself, as people write one.
func again(run *ledger.Run, a *ledger.Approval) *ledger.MessageReceived {
	place := run.Started.Place
	what := a.Preview.Summary
	if body := a.Preview.Body; a.Preview.Kind == "command" && body != "" && !strings.ContainsAny(body, "`\n\r") {
		what = "`" + body + "`"
	}
	why := "was not answered in time, so it was not performed"
	if a.Resolved.Source != ledger.SourceTimeout {
		why = "could not be answered because approvalbot ended, so it was not performed"
	}
	return &ledger.MessageReceived{
		// Claimed once, like the message of a person: the card is the message.
		Origin: ledger.Origin{Kind: "slack", Team: place.Team, Channel: place.Channel, TS: a.Approval + "/again"},
		Place:  place, Disposition: ledger.Starts, Mode: ledger.ModeInteractive, Direct: strings.HasPrefix(place.Channel, "D"),
		Again: a.Approval,
		Text:  fmt.Sprintf("An earlier request for approval, %s, %s. Somebody would answer it now. If it is still wanted, make the same call again, so that people are asked again; if not, say so and do nothing.", what, why),
	}
}
