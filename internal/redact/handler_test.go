package redact

import (
	"bytes"
	"encoding/json"
	"errors"
	"log/slog"
	"strings"
	"testing"
)

type config struct {
	Name  string
	Inner *inner
}

type inner struct {
	Password string `json:"password"`
}

type valuer struct{}

func (valuer) LogValue() slog.Value { return slog.StringValue("password=hunter2hunter2") }

func TestHandler(t *testing.T) {
	const secret = "hunter2hunter2"
	for name, handler := range map[string]func(*bytes.Buffer) slog.Handler{
		"text": func(b *bytes.Buffer) slog.Handler { return slog.NewTextHandler(b, nil) },
		"json": func(b *bytes.Buffer) slog.Handler { return slog.NewJSONHandler(b, nil) },
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			log := slog.New(New(secret).Handler(handler(&out)))
			log = log.With("with", secret).WithGroup("g").With(slog.Group("in", "x", "a "+secret))
			log.Info("said "+secret,
				"plain", "keep me", "number", 42, "password", "short", "token", 12345,
				"err", errors.New("dial u:"+secret), "valuer", valuer{},
				"struct", config{"bob", &inner{"pw"}}, "bytes", []byte("x "+secret), "raw", json.RawMessage(`{"token":"abcdef"}`),
				"html", map[string]string{"a": "<b>"},
				slog.Group("deep", slog.Group("er", "authorization", "Basic x")))
			got := out.String()
			for _, hidden := range []string{secret, "short", "12345", "abcdef", "Basic x", `"pw"`} {
				if strings.Contains(got, hidden) {
					t.Errorf("%q is left in the log:\n%s", hidden, got)
				}
			}
			for _, kept := range []string{"keep me", "42", "‹secret, 14 characters›", "dial u:"} {
				if !strings.Contains(got, kept) {
					t.Errorf("%q is missing in the log:\n%s", kept, got)
				}
			}
		})
	}
}
