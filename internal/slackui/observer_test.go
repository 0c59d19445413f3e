package slackui

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// observed keeps what an observer was told.
type observed struct{ calls [][2]string }

func (o *observed) Called(method, result string, _ time.Duration) {
	o.calls = append(o.calls, [2]string{method, result})
}
func (o *observed) Connected()          {}
func (o *observed) Disconnected(string) {}

// transport answers every request in one way.
type transport func(*http.Request) (*http.Response, error)

func (f transport) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func reply(status int, contentType string, body io.Reader) transport {
	return func(r *http.Request) (*http.Response, error) {
		return &http.Response{
			StatusCode: status, Header: http.Header{"Content-Type": {contentType}}, Body: io.NopCloser(body), Request: r,
		}, nil
	}
}

func TestCallsAreCounted(t *testing.T) {
	const json = "application/json; charset=utf-8"
	for _, c := range []struct {
		name, url string
		answer    transport
		cancel    bool
		want      [2]string
	}{
		{"ok", "https://slack.com/api/chat.update", reply(200, json, strings.NewReader(`{"channel":"C1","ok":true}`)), false, [2]string{"chat.update", "ok"}},
		{"an error with HTTP 200", "https://slack.com/api/chat.update", reply(200, json, strings.NewReader(`{"ok":false,"error":"is_archived"}`)), false, [2]string{"chat.update", "is_archived"}},
		{"429", "https://slack.com/api/chat.update", reply(429, json, strings.NewReader(`{"ok":false,"error":"ratelimited"}`)), false, [2]string{"chat.update", "ratelimited"}},
		{"503", "https://slack.com/api/chat.update", reply(503, "text/html", strings.NewReader("<html>")), false, [2]string{"chat.update", "http_503"}},
		{"a page of a proxy", "https://slack.com/api/chat.update", reply(200, json, strings.NewReader("<html>")), false, [2]string{"chat.update", "unreadable"}},
		{"neither ok nor an error", "https://slack.com/api/chat.update", reply(200, json, strings.NewReader("{}")), false, [2]string{"chat.update", "unreadable"}},
		{"cut off", "https://slack.com/api/chat.update", reply(200, json, iotest.ErrReader(io.ErrUnexpectedEOF)), false, [2]string{"chat.update", "no_answer"}},
		{"no connection", "https://slack.com/api/chat.update", func(*http.Request) (*http.Response, error) { return nil, errors.New("refused") }, false, [2]string{"chat.update", "no_answer"}},
		{"given up", "https://slack.com/api/chat.update", func(r *http.Request) (*http.Response, error) { return nil, r.Context().Err() }, true, [2]string{"chat.update", "cancelled"}},
		{"a file", "https://files.slack.com/upload/v1/SECRET", reply(200, "text/plain", strings.NewReader("OK - 3")), false, [2]string{"upload", "ok"}},
		{"another host", "https://evil.example/api/chat.update", reply(200, json, strings.NewReader(`{"ok":true}`)), false, [2]string{"upload", "ok"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := &observed{}
			caller := newCaller(&http.Client{Transport: c.answer}, defaultAPIURL, newGate(), o)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			if c.cancel {
				cancel()
			}
			r, err := http.NewRequestWithContext(ctx, "POST", c.url, nil)
			if err != nil {
				t.Fatal(err)
			}
			resp, err := caller.Do(r)
			if err == nil {
				defer resp.Body.Close()
			}
			if diff := cmp.Diff([][2]string{c.want}, o.calls); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// Whoever reads the answer after it was counted reads the same bytes and meets the same end.
func TestCountingLeavesTheAnswer(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		body := rapid.SliceOfN(rapid.Byte(), 0, 2000).Draw(t, "body")
		if rapid.Bool().Draw(t, "large") {
			body = append(make([]byte, payloadMost-1000), body...)
		}
		var source io.Reader = strings.NewReader(string(body))
		broken := rapid.Bool().Draw(t, "broken")
		if broken {
			source = io.MultiReader(source, iotest.ErrReader(io.ErrUnexpectedEOF))
		}
		resp := &http.Response{StatusCode: 200, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(source)}
		outcome(context.Background(), resp, nil)
		got, err := io.ReadAll(resp.Body)
		if string(got) != string(body) || errors.Is(err, io.ErrUnexpectedEOF) != broken {
			t.Fatalf("%d bytes of %d, %v", len(got), len(body), err)
		}
	})
}
