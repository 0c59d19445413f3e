package slackui

import (
	"context"
	"errors"
	"slices"
	"strings"
	"unicode"

	"approvalbot/internal/ledger"
)

// A message that says nothing but "stop" is a command to us, and no model reads it. It stops what runs in its
// conversation at once, while any other message there would wait behind it, and takes back what its author has waiting
// there. It is understood in every language that we speak, whatever the setting: whoever wants to stop something doesn't
// look it up.

// stopWords are all of them, in small letters.
var stopWords = []string{"stop", "停止", "停", "停下"}

// maxStopWord is the longest message that may be one, in bytes, our own mention included.
const maxStopWord = 200

// Why a message starts nothing any more, as it is recorded.
const (
	withdrawnStopped = "its author asked to stop"
	withdrawnUsed    = "its words are the reason of a denial"
)

const (
	nothingToStop   = "There is nothing to stop in this conversation. Write stop in the thread of what I should stop."
	unrecordedStop  = "I can't record this, so nothing is stopped yet. Please try again in a moment."
	unrecordedStops = "I can't record this. What was running is stopped all the same."
)

// saysStop tells whether a text is the word stop and nothing else but punctuation.
func saysStop(text string) bool {
	word := strings.TrimFunc(text, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
	return slices.Contains(stopWords, strings.ToLower(word))
}

func (u *UI) stopWord(ctx context.Context, n remark) bool {
	return len(n.text) <= maxStopWord && len(n.files) == 0 && saysStop(u.text(ctx, n.text))
}

// A business is what goes on in a conversation, as far as a stop is concerned.
type business struct {
	runs []string       // that have no end
	mine []ledger.Event // messages of the one who asks that wait for their turn
}

func (b business) none() bool { return len(b.runs) == 0 && len(b.mine) == 0 }

// business finds out what goes on where a remark was written. Outside of a thread a direct message is about all of the
// conversation with that person: there is nobody else whom it could stop.
func (u *UI) business(ctx context.Context, n remark) (b business, err error) {
	concerns := func(session string) bool { return session == n.session(u.client.Team) }
	if n.direct && n.thread == "" {
		all := sessionOf(u.client.Team, n.channel, "")
		concerns = func(session string) bool { return strings.HasPrefix(session, all) }
	}
	runs, err := u.journal.UnfinishedRuns(ctx)
	if err != nil {
		return b, err
	}
	for _, id := range runs {
		started, ok, err := u.journal.Claimed(ctx, ledger.ClaimRun(id))
		if err != nil {
			return b, err
		}
		if ok && concerns(started.Session) {
			b.runs = append(b.runs, id)
		}
	}
	waiting, err := u.journal.WaitingMessages(ctx)
	if err != nil {
		return b, err
	}
	for _, e := range waiting {
		if concerns(e.Session) && e.Actor.Person() == (ledger.Person{Team: n.team, ID: n.user}) {
			b.mine = append(b.mine, e)
		}
	}
	return b, nil
}

// stopByWord does what the word says. It is recorded first, once, however often Slack delivers it.
func (u *UI) stopByWord(ctx, limited context.Context, n remark) {
	place := ledger.Place{Channel: n.channel, Thread: n.thread}
	found, err := u.business(limited, n)
	if err != nil {
		u.logger(ctx).Error("what a stop is about could not be looked up; it has to come again", "error", err)
		return
	}
	by := u.author(limited, n)
	m := &ledger.MessageReceived{
		Origin: ledger.Origin{Kind: "slack", Team: u.client.Team, Channel: n.channel, TS: n.ts},
		Place:  ledger.Place{Team: u.client.Team, Channel: n.channel, Thread: n.root()},
		Text:   u.text(limited, n.text), Disposition: ledger.Handled, Reason: "stop", Direct: n.direct, Mode: ledger.ModeInteractive,
	}
	_, err = u.agent.Receive(limited, ledger.Event{Session: n.session(u.client.Team), Actor: by, Body: m})
	if _, before := errors.AsType[*ledger.ConflictError](err); before {
		n.receipt.ack()
		return
	}
	unrecorded := err != nil // stopping is the safe side: it happens all the same
	if !unrecorded {
		n.receipt.ack()
	}
	if found.none() {
		u.tell(ctx, place, n.user, u.renderer.t(nothingToStop))
		return
	}
	refusal := u.stopBusiness(limited, found, by)
	switch {
	case refusal != "":
		u.tell(ctx, place, n.user, refusal)
	case unrecorded && n.attempt == 0:
		u.tell(ctx, place, n.user, u.renderer.t(unrecordedStops))
	}
}

// stopBusiness takes back the messages and stops the runs. It returns what the person is told, where they may not or it could
// not be recorded.
func (u *UI) stopBusiness(ctx context.Context, b business, by ledger.Actor) (refusal string) {
	for _, e := range b.mine {
		run, err := u.withdraw(ctx, e, by, withdrawnStopped)
		switch {
		case err != nil:
			refusal = u.renderer.t(unrecordedStop)
		case run != "" && !slices.Contains(b.runs, run): // its turn came in this moment
			b.runs = append(b.runs, run)
		}
	}
	for _, run := range b.runs {
		err := u.agent.Stop(ctx, run, by)
		if err == nil {
			continue
		}
		if _, over, lookErr := u.journal.Claimed(ctx, ledger.ClaimRunEnd(run)); over && lookErr == nil {
			continue // it ended by itself
		}
		if errors.Is(err, ledger.ErrNotRecorded) {
			refusal = u.renderer.t(unrecordedStops)
			continue
		}
		refusal = u.renderer.refusal(err)
	}
	return refusal
}

// withdraw lets a message that waits start nothing any more. If it was taken before, the run that did is returned.
func (u *UI) withdraw(ctx context.Context, message ledger.Event, by ledger.Actor, reason string) (run string, err error) {
	_, err = u.journal.Append(ctx, withdrawal(message, by, reason))
	if lost, ok := errors.AsType[*ledger.ConflictError](err); ok {
		return lost.Winner.Run, nil
	}
	return "", err
}

// withdrawal is the event that a message starts nothing any more.
func withdrawal(message ledger.Event, by ledger.Actor, reason string) ledger.Event {
	return ledger.Event{Session: message.Session, Actor: by, Body: &ledger.MessageWithdrawn{Message: message.Seq, Reason: reason}}
}

// agentStopped is Slack's own Stop, in the pane beside the conversation: it is the word stop, written into the thread.
func (u *UI) agentStopped(ctx context.Context, n remark) {
	limited, cancel := context.WithTimeout(ctx, receiveLimit)
	defer cancel()
	n.receipt.ack()
	found, err := u.business(limited, n)
	if err != nil {
		u.logger(ctx).Error("what a stop is about could not be looked up", "error", err)
		return
	}
	if refusal := u.stopBusiness(limited, found, u.author(limited, n)); refusal != "" {
		u.tell(ctx, ledger.Place{Channel: n.channel, Thread: n.thread}, n.user, refusal)
	}
}
