package agent

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"approvalbot/internal/ledger"
)

// target names a call and its run's session: where an event about it belongs.
type target struct {
	session string
	run     string
	call    ledger.ToolCall
	changed string // what the model is told first, where people changed the arguments that run
}

func (t target) event(by ledger.Actor, b ledger.Body) ledger.Event {
	return ledger.Event{Session: t.session, Run: t.run, Call: t.call.ID, Actor: by, Body: b}
}

// errStarted says that a call can't be denied any more because it has started.
var errStarted = errors.New("the call has started")

// finish ends a call, once: it writes the event that the transcript, Slack, the streams and the audit read. A call that
// has ended keeps its first ending, and finish is content with that. It can't be interrupted.
func (a *Agent) finish(ctx context.Context, t target, f *ledger.ToolFinished) error {
	f.Tool = t.call.Name
	// One output must not fill the model's context: its tools have limits of their own, this one holds for all of them.
	f.Output = clip(strings.ToValidUTF8(f.Output, "\uFFFD"), a.ContextTokens)
	f.Reason = strings.ToValidUTF8(f.Reason, "\uFFFD")
	_, err := a.Ledger.Append(context.WithoutCancel(ctx), t.event(ledger.System, f))
	var conflict *ledger.ConflictError
	if !errors.As(err, &conflict) {
		return err
	}
	if _, ended := conflict.Winner.Body.(*ledger.ToolFinished); ended {
		return nil
	}
	return errStarted
}

// finishStarted ends a call that has run. What it did can't be undone, so its outcome isn't given up while this process
// lives: if the journal can't be written it waits for it.
func (a *Agent) finishStarted(ctx context.Context, t target, f *ledger.ToolFinished) error {
	for {
		err := a.finish(ctx, t, f)
		if !errors.Is(err, ledger.ErrNotRecorded) {
			return err
		}
		a.Logger.Error("the outcome of a tool call can't be recorded yet",
			"session", t.session, "run", t.run, "call", t.call.ID, "error", err)
		if wait := a.Ledger.WaitWritable(ctx); wait != nil {
			return err
		}
	}
}

// deny ends a call that did not start. The reason is a sentence that names who or what said no.
func (a *Agent) deny(ctx context.Context, t target, source ledger.Source, reason string) error {
	return a.finish(ctx, t, &ledger.ToolFinished{
		State: ledger.OutputDenied, Source: source, Reason: reason, Output: denialOutput(reason),
	})
}

// failed is the ending of a call that can't run or went wrong.
func failed(code, message, output string) *ledger.ToolFinished {
	if output == "" {
		output = fmt.Sprintf("Error [%s]: %s", code, message)
	}
	return &ledger.ToolFinished{State: ledger.OutputError, Code: code, Reason: message, Output: output}
}

// denialOutput is what the model is told of a call that was not done. The wording is a contract: the reason says who or
// what said no, the rest that the call must not be tried again.
func denialOutput(reason string) string {
	return "Error [APPROVAL_DENIED]: " + reason +
		" The action was not performed. Do not retry the same call; take a different approach or explain what you need in the final answer."
}

// denialReason says in a sentence why a resolution is a no.
func denialReason(source ledger.Source, reason string, by *ledger.Actor) string {
	switch source {
	case ledger.SourceUser:
		who := "A person"
		if by != nil {
			who = by.DisplayName()
		}
		if reason == "" {
			return who + " denied this call."
		}
		return who + " denied this call: " + sentence(reason)
	case ledger.SourceTimeout:
		return capital(sentence(firstOf(reason, "nobody answered in time"))) // that it was the time is in the reason already
	case ledger.SourceUndeliverable:
		return "Nobody could be asked: " + sentence(firstOf(reason, "the request could not be shown to anyone"))
	case ledger.SourceAbort:
		return "The run was ended while this call waited for an answer: " + sentence(firstOf(reason, "it was aborted"))
	}
	return sentence(firstOf(reason, "It was refused"))
}

// capital begins a sentence.
func capital(s string) string {
	first, size := utf8.DecodeRuneInString(s)
	return string(unicode.ToUpper(first)) + s[size:]
}

// sentence closes a clause with a full stop, if it has no end of its own.
func sentence(s string) string {
	s = strings.TrimSpace(s)
	if s == "" || strings.ContainsAny(s[len(s)-1:], ".!?") {
		return s
	}
	return s + "."
}
