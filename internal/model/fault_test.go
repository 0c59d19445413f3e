package model

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

func clientOf(rt http.RoundTripper) *http.Client { return &http.Client{Transport: rt} }

// What providers say of their failures, as their references and servers write it.
func TestFaults(t *testing.T) {
	anthropicBody := func(kind, text string) string {
		return fmt.Sprintf(`{"type":"error","error":{"type":%q,"message":%q,"details":null},"request_id":"req_011"}`, kind, text)
	}
	openaiBody := func(kind, code, text string) string {
		return fmt.Sprintf(`{"error":{"message":%q,"type":%q,"param":null,"code":%s}}`, text, kind, code)
	}
	for _, c := range []struct {
		provider  string
		status    int
		body      string
		kind      ErrorKind
		retryable bool
		words     string
	}{
		{"anthropic", 400, anthropicBody("invalid_request_error", "tools.0.name: bad"), ErrInvalid, false, "tools.0.name"},
		{"anthropic", 400, anthropicBody("invalid_request_error", "prompt is too long: 204822 tokens > 200000 maximum"), ErrContext, false, "longer than"},
		{"anthropic", 400, anthropicBody("invalid_request_error", "input length and `max_tokens` exceed context limit: 199000 + 16000 > 200000"), ErrContext, false, ""},
		{"anthropic", 400, anthropicBody("invalid_request_error", "Your credit balance is too low to access the Anthropic API."), ErrQuota, false, "money"},
		{"anthropic", 401, anthropicBody("authentication_error", "invalid x-api-key"), ErrKey, false, "ANTHROPIC_API_KEY"},
		{"anthropic", 402, anthropicBody("billing_error", "pay"), ErrQuota, false, "whoever pays"},
		{"anthropic", 403, anthropicBody("permission_error", "no"), ErrKey, false, "ANTHROPIC_API_KEY"},
		{"anthropic", 404, anthropicBody("not_found_error", "model: claude-test-1"), ErrModel, false, "no model claude-test-1"},
		{"anthropic", 409, anthropicBody("conflict_error", "again"), ErrUnavailable, true, ""},
		{"anthropic", 413, anthropicBody("request_too_large", "Request exceeds the maximum size"), ErrContext, false, ""},
		{"anthropic", 429, anthropicBody("rate_limit_error", "This request would exceed your organization's rate limit of 30,000 input tokens per minute"), ErrRateLimit, true, "limits"},
		{"anthropic", 429, `{"type":"error","error":{"type":"rate_limit_error","message":"spent","details":{"error_code":"enforced_spend_limit_reached"}}}`, ErrQuota, false, ""},
		{"anthropic", 500, anthropicBody("api_error", "Internal server error"), ErrUnavailable, true, "Internal server error"},
		{"anthropic", 504, anthropicBody("timeout_error", "slow"), ErrUnavailable, true, ""},
		{"anthropic", 529, anthropicBody("overloaded_error", "Overloaded"), ErrOverloaded, true, "Anthropic is overloaded."},
		{"anthropic", 529, ``, ErrOverloaded, true, ""},
		{"anthropic", 502, `<html><h1>Bad gateway</h1>`, ErrUnavailable, true, "fault on its side"},
		{"anthropic", 302, ``, ErrUnavailable, false, "not followed"},
		{"openai", 400, openaiBody("invalid_request_error", `"context_length_exceeded"`, "This model's maximum context length is 128000 tokens."), ErrContext, false, ""},
		{"openai", 400, openaiBody("invalid_request_error", `"unsupported_parameter"`, "Unsupported parameter"), ErrInvalid, false, "Unsupported parameter"},
		{"openai", 400, openaiBody("invalid_request_error", `"content_policy_violation"`, "no"), ErrRefused, false, "declined"},
		{"openai", 401, openaiBody("invalid_request_error", `"invalid_api_key"`, "Incorrect API key provided: sk-not-r********1111. You can find it."), ErrKey, false, "OPENAI_API_KEY"},
		{"openai", 403, openaiBody("invalid_request_error", `"model_not_found"`, "Project has no access"), ErrModel, false, "Project has no access"},
		{"openai", 404, openaiBody("invalid_request_error", `"model_not_found"`, "The model `gpt-test-1` does not exist"), ErrModel, false, "gpt-test-1"},
		{"openai", 413, ``, ErrContext, false, ""},
		{"openai", 422, `{"detail":"not so"}`, ErrInvalid, false, "not so"},
		{"openai", 429, openaiBody("requests", `"rate_limit_exceeded"`, "Rate limit reached. Please try again in 20s."), ErrRateLimit, true, "20s"},
		{"openai", 429, openaiBody("tokens", `"rate_limit_exceeded"`, "Request too large for gpt-test-1 on tokens per min (TPM): Limit 10000, Requested 15000."), ErrContext, false, ""},
		{"openai", 429, openaiBody("insufficient_quota", `"insufficient_quota"`, "You exceeded your current quota, please check your plan and billing details."), ErrQuota, false, ""},
		{"openai", 429, `[{"error":{"code":429,"message":"You exceeded your current quota","status":"RESOURCE_EXHAUSTED"}}]`, ErrRateLimit, true, ""},
		{"openai", 500, openaiBody("server_error", `null`, "The server had an error"), ErrUnavailable, true, ""},
		{"openai", 503, openaiBody("server_error", `"server_overloaded"`, "busy"), ErrOverloaded, true, ""},
		{"openai", 503, openaiBody("", `null`, "That model is currently overloaded with other requests."), ErrOverloaded, true, ""},
		{"openai", 503, `upstream connect error`, ErrUnavailable, true, ""},
		{"openai", 404, `{"error":"model \"gpt-test-1\" not found, try pulling it first"}`, ErrModel, false, "try pulling"},
		{"openai", 400, `{"object":"error","message":"This model's maximum context length is 4096 tokens.","type":"BadRequestError","code":400}`, ErrContext, false, ""},
		{"openai", 400, `{"error":{"code":400,"message":"the request exceeds the available context size","type":"exceed_context_size_error"}}`, ErrContext, false, ""},
	} {
		for _, onDelta := range []func(string){nil, func(string) {}} {
			m := open(t, c.provider, &wire{answer: says(c.status, jsonText, strings.NewReader(c.body), "Location", "https://elsewhere.example/")})
			_, err := m.Generate(t.Context(), hello, onDelta)
			mustFail(t, err, c.kind, c.retryable, c.words)
			if t.Failed() {
				t.Fatalf("%s %d %s", c.provider, c.status, c.body)
			}
		}
	}
}

// What providers say is quoted as a short line, without keys.
func TestFaultsAreQuoted(t *testing.T) {
	text := "bad\u202e thing\n\x1b[31m" + openaiTestKey + " sk-proj-abc******xyz " + strings.Repeat("ä", 500)
	quoted, err := json.Marshal(text)
	if err != nil {
		t.Fatal(err)
	}
	m := open(t, "openai", &wire{answer: says(400, jsonText, strings.NewReader(fmt.Sprintf(`{"error":{"message":%s}}`, quoted)), "X-Request-Id", "req_1\x00")})
	_, err = m.Generate(t.Context(), hello, nil)
	mustFail(t, err, ErrInvalid, false, "bad thing [31m[key] [key] ää")
	if s := err.Error(); len([]rune(s)) > 400 || strings.Contains(s, "not-real") || strings.ContainsAny(s, "\n\x1b\x00\u202e") {
		t.Errorf("it says %q", s)
	}
}

func TestRetryAfter(t *testing.T) {
	now := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		ms, after string
		want      time.Duration
	}{
		{"", "", 0},
		{"", "7", 7 * time.Second},
		{"", "0.5", 500 * time.Millisecond},
		{"1500", "7", 1500 * time.Millisecond},
		{"", "Mon, 30 Nov 2026 12:01:00 GMT", time.Minute},
		{"", "Mon, 30 Nov 2026 11:00:00 GMT", 0},
		{"", "-3", 0}, {"", "NaN", 0}, {"", "soon", 0},
		{"", "1e300", 7 * 24 * time.Hour}, {"", "+Inf", 7 * 24 * time.Hour},
	} {
		h := http.Header{}
		h.Set("Retry-After-Ms", c.ms)
		h.Set("Retry-After", c.after)
		if got := retryAfter(h, now); got != c.want {
			t.Errorf("%q, %q: %s, want %s", c.ms, c.after, got, c.want)
		}
	}
	m := open(t, "anthropic", &wire{answer: says(429, jsonText, strings.NewReader("{}"), "Retry-After", "12", "X-Should-Retry", "false")})
	_, err := m.Generate(t.Context(), hello, nil)
	mustFail(t, err, ErrRateLimit, false)
	var e *Error
	if errors.As(err, &e) && e.RetryAfter != 12*time.Second {
		t.Errorf("RetryAfter is %s", e.RetryAfter)
	}
}

func FuzzParseFault(f *testing.F) {
	f.Add([]byte(`{"error":{"type":"a","code":null,"message":"m","details":{"error_code":"x"}}}`))
	f.Add([]byte(`[{"error":"text"}]`))
	f.Add([]byte(`{"detail":[{"msg":"x"}]}`))
	p := provider{label: "OpenAI", name: "openai/x", key: openaiTestKey, base: &url.URL{}}
	f.Fuzz(func(t *testing.T, text []byte) {
		for _, status := range []int{0, 302, 400, 401, 429, 500} {
			found := parseFault(text)
			found.status = status
			if e := p.fault(found); e.Kind == "" || e.Message == "" || strings.ContainsAny(e.Message, "\n\r\x1b") || strings.Contains(e.Message, openaiTestKey) {
				t.Errorf("%+v", e)
			}
		}
	})
}

// A network that fails is told apart from an answer that breaks off.
func TestUnreachable(t *testing.T) {
	for want, c := range map[string]struct {
		err       error
		retryable bool
	}{
		"there is no host api.openai.com": {&net.DNSError{Err: "no such host", Name: "api.openai.com", IsNotFound: true}, true},
		"nothing listens there":           {&net.OpError{Op: "dial", Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}, true},
		"can't be reached":                {errors.New("network is down"), true},
		"certificate is not good":         {&tls.CertificateVerificationError{Err: x509.UnknownAuthorityError{}}, false},
	} {
		m := open(t, "openai", &wire{answer: func(*http.Request) (*http.Response, error) { return nil, c.err }})
		_, err := m.Generate(t.Context(), hello, nil)
		mustFail(t, err, ErrUnavailable, c.retryable, want)
		if strings.Contains(err.Error(), "chat/completions") {
			t.Errorf("the address is in %q", err)
		}
	}
}

// quiet is a body that brings something and then nothing more.
type quiet struct {
	ctx  context.Context
	text io.Reader
}

func (s quiet) Read(p []byte) (int, error) {
	if n, err := s.text.Read(p); err == nil {
		return n, nil
	}
	<-s.ctx.Done()
	return 0, s.ctx.Err()
}

// Silence ends a request after a while, bytes keep it alive.
func TestSilence(t *testing.T) {
	for _, provider := range []string{"anthropic", "openai"} {
		text := fixture(t, provider+"/text.sse")
		synctest.Test(t, func(t *testing.T) {
			slow := &wire{answer: func(req *http.Request) (*http.Response, error) {
				return says(200, eventStream, &drip{text: text, every: DefaultIdle - time.Second})(req)
			}}
			if _, err := open(t, provider, slow).Generate(t.Context(), hello, func(string) {}); err != nil {
				t.Errorf("a slow one: %v", err)
			}
			begin := time.Now()
			stops := &wire{answer: func(req *http.Request) (*http.Response, error) {
				return says(200, eventStream, quiet{req.Context(), strings.NewReader(string(text[:len(text)/2]))})(req)
			}}
			_, err := open(t, provider, stops).Generate(t.Context(), hello, func(string) {})
			mustFail(t, err, ErrBroken, true, "stopped coming")
			never := &wire{answer: func(req *http.Request) (*http.Response, error) {
				<-req.Context().Done()
				return nil, req.Context().Err()
			}}
			_, err = open(t, provider, never).Generate(t.Context(), hello, nil)
			mustFail(t, err, ErrUnavailable, true, "didn't answer in time")
			if took := time.Since(begin); took != 3*DefaultIdle {
				t.Errorf("it took %s", took)
			}
		})
	}
}

// Pings and comments, or bytes that never become an event, keep an answer alive for a while only.
func TestStall(t *testing.T) {
	ping := map[string]string{"anthropic": "event: ping\ndata: {\"type\":\"ping\"}\n\n", "openai": ": PROCESSING\n\n"}
	for _, provider := range []string{"anthropic", "openai"} {
		text := string(fixture(t, provider+"/text.sse"))
		for name, more := range map[string]string{"pings": strings.Repeat(ping[provider], 1000), "bytes": "data: {" + strings.Repeat("\n:", 4000)} {
			synctest.Test(t, func(t *testing.T) {
				answer := func(text string) *wire {
					return &wire{answer: func(req *http.Request) (*http.Response, error) {
						return says(200, eventStream, &drip{text: []byte(text), every: DefaultIdle / 2, ctx: req.Context()})(req)
					}}
				}
				few := strings.Repeat(ping[provider], 2)
				if _, err := open(t, provider, answer(few+strings.ReplaceAll(text, "\n\n", "\n\n"+few))).Generate(t.Context(), hello, func(string) {}); err != nil {
					t.Errorf("%s, a few: %v", provider, err)
				}
				begin := time.Now()
				_, err := open(t, provider, answer(text[:strings.Index(text, "\n\n")+2]+more)).Generate(t.Context(), hello, func(string) {})
				mustFail(t, err, ErrBroken, true, "stopped coming")
				if took := time.Since(begin); took > 6*DefaultIdle {
					t.Errorf("%s, %s: it took %s", provider, name, took)
				}
			})
		}
	}
}

// drip brings a line at a time.
type drip struct {
	text  []byte
	every time.Duration
	ctx   context.Context // of the request; nil: it can't end
}

func (d *drip) Read(p []byte) (int, error) {
	if len(d.text) == 0 {
		return 0, io.EOF
	}
	time.Sleep(d.every) // fake time
	if d.ctx != nil && d.ctx.Err() != nil {
		return 0, d.ctx.Err()
	}
	n := min(len(p), len(d.text), 400)
	copy(p, d.text[:n])
	d.text = d.text[n:]
	return n, nil
}

func TestTooLong(t *testing.T) {
	endless := io.MultiReader(strings.NewReader(": "), endlessReader{})
	m := open(t, "openai", &wire{answer: says(200, jsonText, endless)})
	_, err := m.Generate(t.Context(), hello, nil)
	mustFail(t, err, ErrBroken, false, "far too long")
}

type endlessReader struct{}

func (endlessReader) Read(p []byte) (int, error) { clear(p); return len(p), nil }

// Over real connections: the key goes to the provider and nowhere else, whatever
// the environment says.
func TestNothingComesFromTheEnvironment(t *testing.T) {
	for name, value := range map[string]string{
		"ANTHROPIC_API_KEY": "sk-wrong", "ANTHROPIC_AUTH_TOKEN": "wrong", "ANTHROPIC_BASE_URL": "http://127.0.0.1:1", "ANTHROPIC_CUSTOM_HEADERS": "X-Wrong: 1",
		"OPENAI_API_KEY": "sk-wrong", "OPENAI_ADMIN_KEY": "sk-wrong", "OPENAI_BASE_URL": "http://127.0.0.1:1", "OPENAI_ORG_ID": "wrong",
		"OPENAI_PROJECT_ID": "wrong", "OPENAI_CUSTOM_HEADERS": "X-Wrong: 1\nAuthorization: wrong", "HTTP_PROXY": "http://127.0.0.1:1", "HTTPS_PROXY": "http://127.0.0.1:1",
	} {
		t.Setenv(name, value)
	}
	var got *http.Request
	elsewhere := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, req *http.Request) { t.Errorf("%s was asked elsewhere", req.URL) }))
	defer elsewhere.Close()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		got = req
		http.Redirect(w, req, elsewhere.URL, http.StatusTemporaryRedirect)
	}))
	defer s.Close()
	for provider, o := range map[string]Options{
		"anthropic/claude-test-1": {AnthropicKey: anthropicTestKey, AnthropicBaseURL: s.URL},
		"openai/gpt-test-1":       {OpenAIKey: openaiTestKey, OpenAIBaseURL: s.URL + "/v1"},
	} {
		m, err := Open(provider, o)
		if err != nil {
			t.Fatal(err)
		}
		_, err = m.Generate(t.Context(), hello, nil)
		mustFail(t, err, ErrUnavailable, false, "not followed", "127.0.0.1")
		key := o.AnthropicKey + o.OpenAIKey
		if got == nil || got.Header.Get("Authorization") != "Bearer "+key {
			t.Fatalf("%s: %v", provider, got)
		}
		for name, values := range got.Header {
			if s := strings.ToLower(name + strings.Join(values, " ")); strings.Contains(s, "wrong") {
				t.Errorf("%s sends %s: %s", provider, name, values)
			}
		}
		got = nil
	}
}
