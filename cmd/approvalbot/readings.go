package main

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"time"
	"unicode/utf8"

	"approvalbot/internal/ledger"
)

const (
	readAgain = time.Second // after the journal could not be read
	lastWords = time.Second // for what was recorded at the end
)

// read starts the one follower of the journal that feeds the metrics and the log: what it reads is all that this process
// recorded, since the journal was opened. The function that it returns reads to the end and waits for that.
func (a *app) read(ctx context.Context) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		after := a.follow(ctx, a.head)
		a.readRest(context.WithoutCancel(ctx), after)
	}()
	return func() {
		cancel()
		<-done
	}
}

// follow reads until ctx ends or the journal is closed, and returns the last event that it read. An error is no end:
// the figures lag behind until the journal can be read again.
func (a *app) follow(ctx context.Context, after int64) int64 {
	for {
		var failed error
		for e, err := range a.journal.Follow(ctx, after) {
			if failed = err; err != nil {
				break
			}
			a.observe(e)
			after = e.Seq
		}
		if ctx.Err() != nil || errors.Is(failed, ledger.ErrClosed) {
			return after
		}
		a.log.Error("the journal can't be followed; metrics and log lag behind", "after", after, "error", failed)
		select {
		case <-time.After(readAgain):
		case <-ctx.Done():
			return after
		}
	}
}

// readRest reads what was recorded while everything ended.
func (a *app) readRest(ctx context.Context, after int64) {
	ctx, cancel := context.WithTimeout(ctx, lastWords)
	defer cancel()
	for e, err := range a.journal.Read(ctx, after, ledger.Filter{}) {
		if err != nil {
			a.log.Warn("the end of the journal could not be read for the log", "after", after, "error", err)
			return
		}
		a.observe(e)
	}
}

func (a *app) observe(e ledger.Event) {
	a.metrics.Observe(e)
	a.approvals.Heard(e)
	logEvent(a.log, e, a.metrics.Tool)
}

// logEvent writes a line about an event: which session, run and call, and what happened, in words of ours. What people,
// models and tools wrote (texts, arguments, reasons, outputs, names of tools that there aren't) is in the journal and not in
// the log.
func logEvent(log *slog.Logger, e ledger.Event, tool func(string) string) {
	ctx := context.Background()
	level := slog.LevelInfo
	what := eventAttrs(e, tool)
	if what == nil {
		level = slog.LevelDebug
	}
	if !log.Enabled(ctx, level) {
		return
	}
	attrs := []slog.Attr{slog.Int64("seq", e.Seq)}
	for _, id := range [][2]string{{"session", e.Session}, {"run", e.Run}, {"call", e.Call}} {
		if id[1] != "" {
			attrs = append(attrs, slog.String(id[0], clip(id[1])))
		}
	}
	log.LogAttrs(ctx, level, strings.ReplaceAll(e.Kind(), "_", " "), append(attrs, what...)...)
}

// eventAttrs is what the log says of an event; nil if only someone who debugs wants to know of it.
func eventAttrs(e ledger.Event, tool func(string) string) []slog.Attr {
	switch b := e.Body.(type) {
	case *ledger.MessageReceived:
		return []slog.Attr{word("disposition", string(b.Disposition)), word("by", e.Actor.Person().ID)}
	case *ledger.RunStarted:
		return []slog.Attr{slog.Int64("message", b.Message), word("model", b.Model), word("mode", b.Mode)}
	case *ledger.MessageWithdrawn:
		return []slog.Attr{slog.Int64("message", b.Message), word("reason", b.Reason), word("by", e.Actor.Person().ID)}
	case *ledger.FileSaved:
		return []slog.Attr{slog.Int64("message", b.Message), word("file", b.File), slog.Int64("bytes", b.Size), slog.Bool("saved", b.Path != "")}
	case *ledger.RunStopRequested:
		return []slog.Attr{word("by", e.Actor.Person().ID)}
	case *ledger.RunFinished:
		return []slog.Attr{word("status", string(b.Status)), word("code", b.Code), slog.Int("rounds", b.Rounds), slog.Int("tokens", b.Usage.Tokens())}
	case *ledger.ModelFailed:
		return []slog.Attr{word("kind", b.ErrorKind), slog.Int("attempt", b.Attempt), slog.Duration("retry_in", b.RetryIn)}
	case *ledger.SessionCompacted:
		return []slog.Attr{word("method", string(b.Method)), slog.Int64("until", b.Until)}
	case *ledger.PolicyChanged:
		return []slog.Attr{word("from", b.From), word("to", b.To), slog.Int("rules", b.Rules)}
	case *ledger.ToolStarted:
		return []slog.Attr{word("tool", tool(b.Tool)), word("digest", b.Digest)}
	case *ledger.ToolFinished:
		return []slog.Attr{word("tool", tool(b.Tool)), word("state", string(b.State)), word("source", string(b.Source)), word("code", b.Code), slog.Duration("elapsed", b.Elapsed)}
	}
	return askAttrs(e, tool)
}

// askAttrs is the same of what is decided, by policy, by people, in advance, and of pauses.
func askAttrs(e ledger.Event, tool func(string) string) []slog.Attr {
	switch b := e.Body.(type) {
	case *ledger.PermissionDecided:
		attrs := []slog.Attr{word("tool", tool(b.Tool)), word("decision", string(b.Type)), word("source", b.Source)}
		if b.Grant != "" {
			attrs = append(attrs, word("grant", b.Grant), slog.Int("use", b.GrantUse))
		}
		return attrs
	case *ledger.ApprovalRequested:
		attrs := []slog.Attr{word("approval", b.Approval), word("tool", tool(b.Tool)), word("digest", b.Digest), slog.Duration("timeout", b.Timeout)}
		if len(b.Elsewhere) > 0 {
			attrs = append(attrs, slog.Int("elsewhere", len(b.Elsewhere)))
		}
		return attrs
	case *ledger.ApprovalResolved:
		attrs := []slog.Attr{word("approval", b.Approval), word("outcome", string(b.Type)), word("source", string(b.Source))}
		if b.By != nil {
			attrs = append(attrs, word("by", b.By.Person().ID))
		}
		return attrs
	case *ledger.GrantGiven:
		return []slog.Attr{word("grant", b.Grant), word("scope", string(b.Scope)), word("tool", tool(b.Tool)), word("approval", b.Approval),
			slog.Int("uses", b.Uses), slog.Time("until", b.Until), word("by", e.Actor.Person().ID)}
	case *ledger.GrantRevoked:
		return []slog.Attr{word("grant", b.Grant), word("by", e.Actor.Person().ID)}
	case *ledger.ApprovalAmended:
		return []slog.Attr{word("approval", b.Approval), slog.Int("revision", b.Revision), word("digest", b.Digest), word("by", e.Actor.Person().ID)}
	case *ledger.Paused, *ledger.Resumed:
		return []slog.Attr{word("by", e.Actor.Person().ID)}
	case *ledger.ApprovalReminded:
		return []slog.Attr{word("approval", b.Approval), slog.Int("n", b.N), slog.Bool("direct", b.Direct)}
	case *ledger.ApprovalEscalated:
		return []slog.Attr{word("approval", b.Approval), slog.Int("level", b.Level), word("approvers", strings.Join(b.Approvers, ","))}
	case *ledger.ApprovalExtended:
		return []slog.Attr{word("approval", b.Approval), slog.Time("until", b.Until), word("by", e.Actor.Person().ID)}
	case *ledger.ApprovalAskedAgain:
		return []slog.Attr{word("approval", b.Approval), slog.Int64("message", b.Message), word("by", e.Actor.Person().ID)}
	}
	return nil
}

// word is an attribute of an event, as short as it has to be.
func word(k, v string) slog.Attr { return slog.String(k, clip(v)) }

const clipMost = 128 // runes: all our ids fit

// clip cuts what a model or another program may have made endless.
func clip(s string) string {
	if utf8.RuneCountInString(s) <= clipMost {
		return s
	}
	return string([]rune(s)[:clipMost]) + "…"
}
