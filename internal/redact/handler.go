package redact

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
)

// Handler returns a handler that hides secrets before h sees a record.
func (r *Redactor) Handler(h slog.Handler) slog.Handler { return handler{r, h} }

type handler struct {
	r    *Redactor
	next slog.Handler
}

func (h handler) Enabled(ctx context.Context, level slog.Level) bool {
	return h.next.Enabled(ctx, level)
}

func (h handler) Handle(ctx context.Context, rec slog.Record) error {
	message, _ := h.r.Text(rec.Message)
	clean := slog.NewRecord(rec.Time, rec.Level, message, rec.PC)
	rec.Attrs(func(a slog.Attr) bool {
		clean.AddAttrs(h.r.attr(a))
		return true
	})
	return h.next.Handle(ctx, clean)
}

func (h handler) WithAttrs(attrs []slog.Attr) slog.Handler {
	clean := make([]slog.Attr, len(attrs))
	for i, a := range attrs {
		clean[i] = h.r.attr(a)
	}
	return handler{h.r, h.next.WithAttrs(clean)}
}

func (h handler) WithGroup(name string) slog.Handler { return handler{h.r, h.next.WithGroup(name)} }

func (r *Redactor) attr(a slog.Attr) slog.Attr {
	v := a.Value.Resolve()
	if v.Kind() == slog.KindGroup {
		group := v.Group()
		clean := make([]slog.Attr, len(group))
		for i, member := range group {
			clean[i] = r.attr(member)
		}
		return slog.Attr{Key: a.Key, Value: slog.GroupValue(clean...)}
	}
	if namesSecret(a.Key) && v.Kind() != slog.KindBool {
		return slog.String(a.Key, hideValue(v.String()))
	}
	switch v.Kind() {
	case slog.KindString:
		text, _ := r.Text(v.String())
		return slog.String(a.Key, text)
	case slog.KindAny:
		return slog.Attr{Key: a.Key, Value: r.any(v)}
	default:
		return slog.Attr{Key: a.Key, Value: v}
	}
}

// any hides secrets in a value of any type. Handlers print such a value in their
// own way, so whatever way shows a secret, the text without it stands for it.
func (r *Redactor) any(v slog.Value) slog.Value {
	if raw, ok := v.Any().(json.RawMessage); ok {
		return slog.StringValue(string(r.JSON(raw)))
	}
	if raw, ok := v.Any().([]byte); ok {
		text, _ := r.Text(string(raw))
		return slog.StringValue(text)
	}
	if text, hits := r.Text(fmt.Sprintf("%+v", v.Any())); len(hits) > 0 {
		return slog.StringValue(text)
	}
	if _, isError := v.Any().(error); isError {
		return v
	}
	var raw bytes.Buffer
	enc := json.NewEncoder(&raw)
	enc.SetEscapeHTML(false) // as r.JSON writes it, so that only a secret makes a difference
	if err := enc.Encode(v.Any()); err != nil {
		return v
	}
	plain := bytes.TrimSuffix(raw.Bytes(), []byte("\n"))
	if clean := r.JSON(plain); !bytes.Equal(clean, plain) {
		return slog.StringValue(string(clean))
	}
	return v
}
