package model

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// fault is what a provider says of its own failure, in the answer's body or in
// the middle of a stream.
type fault struct {
	status int    // 0: it came inside a stream
	kind   string // "rate_limit_error"
	code   string // "context_length_exceeded"
	text   string // for people
}

// parseFault reads the shapes that providers and compatible servers use:
// {"error":{"type","code","message"}}, {"error":"text"}, the members at the top,
// {"detail":"text"}, and a list of one of these.
func parseFault(text []byte) fault {
	var list []json.RawMessage
	if json.Unmarshal(text, &list) == nil && len(list) > 0 {
		text = list[0]
	}
	var top, in struct {
		Error   json.RawMessage `json:"error"`
		Type    any             `json:"type"`
		Code    any             `json:"code"`
		Status  any             `json:"status"` // "RESOURCE_EXHAUSTED"
		Message any             `json:"message"`
		Detail  any             `json:"detail"`
		Details json.RawMessage `json:"details"` // an object with Anthropic, a list with others
	}
	if json.Unmarshal(text, &top) != nil {
		return fault{}
	}
	in = top
	var plain string
	if len(top.Error) > 0 && json.Unmarshal(top.Error, &plain) != nil {
		in.Type, in.Code, in.Message = nil, nil, nil
		if json.Unmarshal(top.Error, &in) != nil {
			return fault{}
		}
	}
	word := func(v any) string {
		s, _ := v.(string)
		return strings.ToLower(s)
	}
	f := fault{kind: word(in.Type), code: word(in.Code), text: plain}
	for _, v := range []any{in.Message, in.Detail} {
		if s, ok := v.(string); ok && f.text == "" {
			f.text = s
		}
	}
	var details struct {
		Code string `json:"error_code"`
	}
	if json.Unmarshal(in.Details, &details) == nil && f.code == "" {
		f.code = strings.ToLower(details.Code)
	}
	if f.code == "" {
		f.code = word(in.Status)
	}
	return f
}

// The words by which providers name a failure, in type or code.
var faultWords = map[string]ErrorKind{
	"authentication_error": ErrKey, "invalid_api_key": ErrKey, "permission_error": ErrKey, "permission_denied": ErrKey,
	"unauthenticated": ErrKey, "incorrect_api_key": ErrKey,
	"model_not_found": ErrModel, "not_found_error": ErrModel,
	"insufficient_quota": ErrQuota, "billing_error": ErrQuota, "billing_hard_limit_reached": ErrQuota, "billing_not_active": ErrQuota,
	"contract_spend_limit_reached": ErrQuota, "enforced_spend_limit_reached": ErrQuota,
	"linked_organization_spend_limit_reached": ErrQuota, "linked_organization_billing_unavailable": ErrQuota,
	"context_length_exceeded": ErrContext, "exceed_context_size_error": ErrContext, "request_too_large": ErrContext,
	"request_body_too_large_after_decoding": ErrContext,
	"content_filter":                        ErrRefused, "content_policy_violation": ErrRefused, "cyber_policy": ErrRefused,
	"rate_limit_error": ErrRateLimit, "rate_limit_exceeded": ErrRateLimit, "ramp_limit_exceeded": ErrRateLimit,
	"tokens": ErrRateLimit, "requests": ErrRateLimit, "resource_exhausted": ErrRateLimit,
	"overloaded_error": ErrOverloaded, "server_overloaded": ErrOverloaded, "engine_overloaded": ErrOverloaded,
	"api_error": ErrUnavailable, "server_error": ErrUnavailable, "internal_server_error": ErrUnavailable,
	"timeout_error": ErrUnavailable, "timeout": ErrUnavailable, "unavailable": ErrUnavailable,
}

// Sentences by which they name it where they have no word. They can change; then
// the failure is one of a more general kind.
var (
	contextWords = regexp.MustCompile(`(?i)context (length|window|size|limit)|prompt is too long|input is too long|too many (input )?tokens|maximum (number of )?(context|input|prompt) ?(length|tokens)|reduce the length of (the|your) (messages|prompt|input)|request too large`)
	creditWords  = regexp.MustCompile(`(?i)credit balance|exceeded your current quota|billing (details|hard limit)|insufficient (balance|credits|funds|quota)`)
	busyWords    = regexp.MustCompile(`(?i)overloaded|over capacity|at capacity`)
)

// classify says what kind of failure it is. The most telling comes first: money
// and length hide behind general types and statuses.
func (f fault) classify() ErrorKind {
	words := []ErrorKind{faultWords[f.code], faultWords[f.kind]}
	for _, clear := range []ErrorKind{ErrQuota, ErrContext, ErrRefused} {
		if slices.Contains(words, clear) {
			return clear
		}
	}
	client := f.status == 0 || f.status >= 400 && f.status < 500
	switch {
	case f.status == http.StatusPaymentRequired, client && f.code != "resource_exhausted" && creditWords.MatchString(f.text):
		return ErrQuota
	case f.status == http.StatusRequestEntityTooLarge, client && f.status != http.StatusUnauthorized && contextWords.MatchString(f.text):
		return ErrContext
	}
	for _, w := range words {
		if w != "" {
			return w
		}
	}
	return f.byStatus()
}

func (f fault) byStatus() ErrorKind {
	switch {
	case f.status == http.StatusUnauthorized, f.status == http.StatusForbidden:
		return ErrKey
	case f.status == http.StatusNotFound:
		return ErrModel
	case f.status == http.StatusTooManyRequests:
		return ErrRateLimit
	case f.status == 529, f.status == http.StatusServiceUnavailable && busyWords.MatchString(f.text):
		return ErrOverloaded
	case f.status == http.StatusRequestTimeout, f.status == http.StatusConflict, f.status == http.StatusTooEarly, f.status >= 500:
		return ErrUnavailable
	case f.status == 0 && busyWords.MatchString(f.text):
		return ErrOverloaded
	case f.status == 0 && f.kind != "invalid_request_error":
		return ErrBroken
	case f.status > 0 && f.status < 400:
		return ErrUnavailable
	}
	return ErrInvalid
}

// retryable kinds may pass by themselves.
func (k ErrorKind) retryable() bool {
	switch k {
	case ErrRateLimit, ErrOverloaded, ErrUnavailable, ErrBroken:
		return true
	}
	return false
}

// failed makes an [*Error] of whatever went wrong with a request. What the
// context's end did comes back as the context's error.
func (p *provider) failed(ctx context.Context, err error) error {
	var (
		made   *Error
		status *statusError
	)
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.As(err, &made):
		return made
	case errors.As(err, &status):
		f := parseFault(status.body)
		f.status = status.status
		e := p.fault(f)
		e.RetryAfter = retryAfter(status.header, time.Now())
		if status.header.Get("X-Should-Retry") == "false" { // it knows better, where it says so
			e.Retryable = false
		}
		e.Err = errors.New(p.reference(f, status.header))
		return e
	}
	return p.unreachable(err)
}

// reference is what the provider's support asks for.
func (p *provider) reference(f fault, h http.Header) string {
	out := fmt.Sprintf("HTTP %d", f.status)
	for _, word := range []string{f.kind, f.code} {
		if plainWord.MatchString(word) {
			out += " " + word
		}
	}
	for _, name := range []string{"Request-Id", "X-Request-Id"} {
		if id := h.Get(name); plainWord.MatchString(id) {
			return out + ", request " + id
		}
	}
	return out
}

var plainWord = regexp.MustCompile(`^[A-Za-z0-9_.-]{1,80}$`)

// fault is a failure that the provider told us of, as a sentence.
func (p *provider) fault(f fault) *Error {
	kind := f.classify()
	e := &Error{Kind: kind, Retryable: kind.retryable(), Message: p.sentence(kind, f)}
	if f.status > 0 && f.status < 400 {
		e.Retryable = false // a redirect stays one
	}
	return e
}

func (p *provider) sentence(kind ErrorKind, f fault) string {
	who := p.who()
	switch kind {
	case ErrKey:
		if p.key == "" {
			return fmt.Sprintf("%s wants a key: set %s.", who, p.keySetting)
		}
		return fmt.Sprintf("%s doesn't accept the key, or the key may not do this: check %s.", who, p.keySetting)
	case ErrModel:
		text := fmt.Sprintf("%s has no model %s, or not for this key: check the name", who, p.model)
		if p.elsewhere {
			text += " and " + p.urlSetting
		}
		return text + "." + p.says(f)
	case ErrContext:
		return fmt.Sprintf("The conversation has become longer than %s accepts.%s", p.name, p.says(f))
	case ErrRefused:
		return fmt.Sprintf("%s declined to answer this request.%s Ask in another way, or in a new thread.", who, p.says(f))
	case ErrRateLimit:
		return fmt.Sprintf("%s limits how much it can be asked right now.%s", who, p.says(f))
	case ErrQuota:
		return fmt.Sprintf("The account at %s has no money or quota left: whoever pays for it has to look there.%s", p.account(), p.says(f))
	case ErrOverloaded:
		return fmt.Sprintf("%s is overloaded.", who)
	case ErrUnavailable:
		if f.status > 0 && f.status < 400 {
			return fmt.Sprintf("%s sends us to another address, which is not followed: check %s.", who, p.urlSetting)
		}
		return fmt.Sprintf("%s has a fault on its side.%s", who, p.says(f))
	case ErrBroken:
		return fmt.Sprintf("%s broke off its answer.%s", who, p.says(f))
	}
	return fmt.Sprintf("%s refused the request.%s", who, p.says(f))
}

func (p *provider) account() string {
	if p.elsewhere {
		return p.base.Host
	}
	return p.label
}

// keyLike is what keys look like, also when a provider blacks out their middle.
var keyLike = regexp.MustCompile(`\b[A-Za-z]{2,6}-[A-Za-z0-9_*.-]{8,}|\bBearer +\S+`)

// says quotes the provider's own sentence, where it has one.
func (p *provider) says(f fault) string {
	text := f.text
	if p.key != "" {
		text = strings.ReplaceAll(text, p.key, "[key]")
	}
	text = keyLike.ReplaceAllStringFunc(text, func(s string) string {
		if strings.ContainsAny(s, "*") || strings.HasPrefix(s, "sk-") || strings.HasPrefix(s, "Bearer") {
			return "[key]"
		}
		return s // the name of a model looks like this, too
	})
	if text = oneLine(text, 240); text == "" {
		return ""
	}
	return fmt.Sprintf(" It says: “%s”", text)
}

// unreachable is a failure that nobody told us of: of the network, or silence.
func (p *provider) unreachable(err error) *Error {
	e := &Error{Kind: ErrUnavailable, Retryable: true, Err: bare(err)}
	var (
		dns  *net.DNSError
		cert *tls.CertificateVerificationError
	)
	switch {
	case errors.Is(err, errIdle):
		e.Message, e.Err = p.who()+" didn't answer in time.", nil
	case errors.As(err, &dns) && dns.IsNotFound:
		e.Message, e.Err = fmt.Sprintf("%s can't be reached: there is no host %s.", p.who(), p.base.Hostname()), nil
	case errors.As(err, &cert):
		e.Message, e.Retryable = fmt.Sprintf("%s can't be trusted: its certificate is not good.", p.who()), false
	case errors.Is(err, syscall.ECONNREFUSED):
		e.Message, e.Err = fmt.Sprintf("%s can't be reached: nothing listens there.", p.who()), nil
	default:
		e.Message = p.who() + " can't be reached."
	}
	return e
}

// bare is an error of the HTTP client without the address around it.
func bare(err error) error {
	var u *url.Error
	if errors.As(err, &u) {
		return u.Err
	}
	return err
}

// broken is an answer that ended in the middle, or makes no sense. Nothing of it
// counts; another try may go well.
func (p *provider) broken(what string, err error) *Error {
	e := &Error{Kind: ErrBroken, Retryable: true, Message: fmt.Sprintf("The answer of %s %s. Nothing of it was used.", p.name, what)}
	switch {
	case errors.Is(err, errIdle):
		e.Message = fmt.Sprintf("The answer of %s stopped coming. Nothing of it was used.", p.name)
	case errors.Is(err, errTooLong):
		e.Message, e.Retryable = fmt.Sprintf("The answer of %s is far too long. Nothing of it was used.", p.name), false
	case errors.Is(err, io.ErrUnexpectedEOF), err == nil: // the sentence says it
	default:
		e.Err = errors.New(oneLine(bare(err).Error(), 200))
	}
	return e
}

// retryAfter reads how long a provider wants to be left alone; 0 if it doesn't
// say, or says nonsense.
func retryAfter(h http.Header, now time.Time) time.Duration {
	const most = 7 * 24 * time.Hour
	for _, f := range []struct {
		name string
		unit time.Duration
	}{{"Retry-After-Ms", time.Millisecond}, {"Retry-After", time.Second}} {
		text := strings.TrimSpace(h.Get(f.name))
		if n, err := strconv.ParseFloat(text, 64); err == nil && !math.IsNaN(n) && n >= 0 {
			return time.Duration(min(n*float64(f.unit), float64(most)))
		}
		if at, err := http.ParseTime(text); err == nil && f.unit == time.Second {
			return min(max(at.Sub(now), 0), most)
		}
	}
	return 0
}
