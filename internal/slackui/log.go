package slackui

import (
	"context"
	"log/slog"
	"unicode/utf8"
)

// Every line of the log about a run carries the ids of its session and run, and of the call where it is about one. What
// a click or a message is about is found out on the way, so the ids travel with its context.

type logKey struct{}

// about adds to what the lines of the log say that are written under ctx. Ids that aren't known are left out.
func (u *UI) about(ctx context.Context, ids ...string) context.Context {
	return context.WithValue(ctx, logKey{}, withIDs(u.logger(ctx), ids...))
}

// logger is the log for lines under ctx.
func (u *UI) logger(ctx context.Context) *slog.Logger {
	if log, ok := ctx.Value(logKey{}).(*slog.Logger); ok {
		return log
	}
	return u.log
}

// withIDs adds keys and values, but for empty values.
func withIDs(log *slog.Logger, ids ...string) *slog.Logger {
	for i := 0; i+1 < len(ids); i += 2 {
		if ids[i+1] != "" {
			log = log.With(ids[i], abridge(ids[i+1]))
		}
	}
	return log
}

// logOf is the log for lines about a thing. The caller holds o.mu.
func (o *outbox) logOf(t *thing) *slog.Logger {
	return withIDs(o.log, "session", o.session(t), "run", t.run, "call", t.call(), "kind", t.Kind, "id", t.ID)
}

// abridgeMost bounds what a line says of something that somebody else made up, in runes. Our own ids are shorter.
const abridgeMost = 128

func abridge(s string) string {
	if utf8.RuneCountInString(s) <= abridgeMost {
		return s
	}
	return string([]rune(s)[:abridgeMost]) + "…"
}
