package api

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"

	"approvalbot/internal/approvals"
	"approvalbot/internal/ledger"
	"approvalbot/internal/policy"
)

// A problem is an answer that isn't what was asked for: its status and what stands in its body.
type problem struct {
	status     int
	message    string // a sentence for people
	code       string // for programs; may be empty
	validation *validation
	more       map[string]any // further members
}

func (p *problem) Error() string { return p.message }

func (p *problem) with(name string, value any) *problem {
	more := map[string]any{name: value}
	for k, v := range p.more {
		more[k] = v
	}
	q := *p
	q.more = more
	return &q
}

func forbidden(code, message string) *problem {
	return &problem{status: http.StatusForbidden, code: code, message: message}
}

// A route answers a request, or says why it can't.
type route func(w http.ResponseWriter, r *http.Request, t *Token) error

// refuse writes the answer of an error.
func (s *Server) refuse(w http.ResponseWriter, r *http.Request, err error) {
	p := problemOf(err)
	if p.status >= http.StatusInternalServerError && p.code == "" {
		s.Logger.Error("a request failed", "method", r.Method, "route", r.Pattern, "error", err)
	}
	if p.code == codePaused {
		w.Header().Set("Retry-After", "60") // a person has to resume it
	} else if p.status == http.StatusServiceUnavailable || p.status == http.StatusTooManyRequests {
		w.Header().Set("Retry-After", "1")
	}
	body := map[string]any{}
	for k, v := range p.more {
		body[k] = v
	}
	body["ok"], body["error"] = false, p.message
	if p.code != "" {
		body["code"] = p.code
	}
	if p.validation != nil {
		body["validationErrors"] = p.validation
	}
	answer(w, p.status, body)
}

// codePaused is the code of everything that a pause keeps from being done.
const codePaused = "PAUSED"

// unpaused is nil, or says that nothing may start now.
func (s *Server) unpaused() error {
	if p, paused := s.Approvals.Paused(); paused {
		return s.paused(p)
	}
	return nil
}

// paused is the answer to what a pause keeps from being done.
func (s *Server) paused(p approvals.Pause) *problem {
	return &problem{status: http.StatusServiceUnavailable, code: codePaused,
		message: s.views.text(p.Clause()) + "; nothing starts and nothing can be approved until it is resumed"}
}

// problemOf finds the answer that an error makes.
func problemOf(err error) *problem {
	if p, ok := errors.AsType[*problem](err); ok {
		return p
	}
	if e, ok := errors.AsType[*approvals.RefusedError](err); ok {
		return forbidden("NOT_ALLOWED", e.Reason)
	}
	if e, ok := errors.AsType[*policy.WeakerError](err); ok {
		return forbidden("WEAKER_SETTINGS", e.Error()).with("field", e.Field).with("inForce", e.InForce)
	}
	switch {
	case errors.Is(err, ledger.ErrNotRecorded), errors.Is(err, ledger.ErrClosed):
		return &problem{status: http.StatusServiceUnavailable, code: "NOT_RECORDED",
			message: "it can't be recorded at the moment, so nothing was done; try again"}
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return &problem{status: http.StatusServiceUnavailable, code: "INTERRUPTED", message: "the request was interrupted"}
	}
	return &problem{status: http.StatusInternalServerError, message: "something went wrong here; the log says what"}
}

func fail(w http.ResponseWriter, status int, message string) {
	answer(w, status, map[string]any{"ok": false, "error": message})
}

func answer(w http.ResponseWriter, status int, body any) {
	var raw bytes.Buffer
	enc := json.NewEncoder(&raw)
	enc.SetEscapeHTML(false)                 // it is no HTML, and people read it
	if err := enc.Encode(body); err != nil { // can't be: bodies are made of strings, numbers and times
		status, raw = http.StatusInternalServerError, *bytes.NewBufferString(`{"ok":false,"error":"the answer could not be written"}`)
	}
	plainHeaders(w.Header())
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.WriteHeader(status)
	if _, err := w.Write(raw.Bytes()); err != nil {
		return // the client went away
	}
}

func plainHeaders(h http.Header) {
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
}

// clean makes text that came from outside fit for a sentence of ours.
func clean(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }
