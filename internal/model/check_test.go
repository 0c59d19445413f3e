package model

import (
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestCheck(t *testing.T) {
	for _, c := range []struct {
		name, entry, answer string // of the list and of the model; empty: HTTP 404
		how                 string
		kind                ErrorKind
		words               string
	}{
		{name: "anthropic/claude-test-1", entry: `{"id":"claude-test-1","type":"model","lifecycle":"active"}`, how: "Anthropic accepts the key"},
		{name: "anthropic/claude-test-1", entry: `{"id":"claude-test-1","type":"model","lifecycle":"deprecated"}`, how: "will retire it"},
		{name: "anthropic/claude-test-1", kind: ErrModel, words: "no model claude-test-1"},
		{name: "openai/gpt-test-1", entry: `{"id":"gpt-test-1","object":"model"}`, how: "OpenAI accepts the key"},
		{name: "openai/gpt-test-1", kind: ErrModel, words: "no model gpt-test-1"},
		{name: "openai/own", answer: string(fixture(t, "openai/text.json")), how: "asked for one word"},
		{name: "openai/own", kind: ErrModel, words: "check the name and OPENAI_BASE_URL"},
		{name: "anthropic/own", answer: string(fixture(t, "anthropic/text.json")), how: "asked for one word"},
		{name: "demo", how: "needs no network"},
	} {
		w := &wire{answer: func(req *http.Request) (*http.Response, error) {
			text := c.answer
			if req.Method == http.MethodGet {
				text = c.entry
			}
			if text == "" {
				return says(404, jsonText, strings.NewReader(`{"error":{"message":"not here"}}`))(req)
			}
			return says(200, jsonText, strings.NewReader(text))(req)
		}}
		o := Options{AnthropicKey: anthropicTestKey, OpenAIKey: openaiTestKey, HTTPClient: clientOf(w)}
		if strings.HasSuffix(c.name, "/own") {
			o.OpenAIBaseURL, o.AnthropicBaseURL = "https://models.example/v1", "https://models.example"
		}
		m, err := Open(c.name, o)
		if err != nil {
			t.Fatal(err)
		}
		how, err := Check(t.Context(), m)
		if c.kind != "" {
			mustFail(t, err, c.kind, false, c.words)
			continue
		}
		if err != nil || !strings.Contains(how, c.how) {
			t.Errorf("%s: %q, %v; want %q", c.name, how, err, c.how)
		}
		for _, req := range w.requests {
			if req.Method == http.MethodGet && strings.HasPrefix(req.URL.Path, "/v1/models/") == strings.HasSuffix(req.URL.Path, "models/") {
				t.Errorf("it asked for %s", req.URL)
			}
		}
	}
}

// Whoever waits at a terminal doesn't wait as long as a run does.
func TestCheckIsImpatient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := open(t, "anthropic", &wire{answer: func(req *http.Request) (*http.Response, error) {
			<-req.Context().Done()
			return nil, req.Context().Err()
		}})
		begin := time.Now()
		_, err := Check(t.Context(), m)
		mustFail(t, err, ErrUnavailable, true, "within 30s")
		if took := time.Since(begin); took != checkTime {
			t.Errorf("it took %s", took)
		}
	})
}
