package model

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

const (
	anthropicTestKey = "sk-ant-not-real-0000000000"
	openaiTestKey    = "sk-not-real-1111111111"
)

// wire is a provider at the other end of a connection that isn't there: it
// answers every request, and keeps it.
type wire struct {
	answer   func(req *http.Request) (*http.Response, error)
	requests []*http.Request
	bodies   [][]byte
}

func (w *wire) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.Body != nil {
		text, err := io.ReadAll(req.Body)
		if err != nil {
			return nil, err
		}
		req.Body.Close()
		w.bodies = append(w.bodies, text)
	}
	w.requests = append(w.requests, req)
	return w.answer(req)
}

// says answers with this.
func says(status int, contentType string, body io.Reader, header ...string) func(*http.Request) (*http.Response, error) {
	return func(req *http.Request) (*http.Response, error) {
		h := http.Header{"Content-Type": {contentType}}
		for i := 0; i < len(header); i += 2 {
			h.Set(header[i], header[i+1])
		}
		return &http.Response{StatusCode: status, Header: h, Body: io.NopCloser(body), Request: req}, nil
	}
}

const (
	eventStream = "text/event-stream; charset=utf-8"
	jsonText    = "application/json"
)

// open is a provider's model whose requests go to w.
func open(t testing.TB, provider string, w *wire) Model {
	t.Helper()
	name := map[string]string{"anthropic": "anthropic/claude-test-1", "openai": "openai/gpt-test-1"}[provider]
	m, err := Open(name, Options{AnthropicKey: anthropicTestKey, OpenAIKey: openaiTestKey, HTTPClient: &http.Client{Transport: w}})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func fixture(t testing.TB, file string) []byte {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", file))
	if err != nil {
		t.Fatal(err)
	}
	return text
}

var hello = Request{Messages: []Message{{Role: RoleUser, Text: "Ada: look"}}}

// ask gets the answer of a provider that says this, and checks that what was
// streamed is the text.
func ask(t testing.TB, provider, contentType string, text []byte) (Response, error) {
	t.Helper()
	m := open(t, provider, &wire{answer: says(200, contentType, bytes.NewReader(text))})
	if !strings.HasPrefix(contentType, "text/event-stream") {
		return m.Generate(t.Context(), hello, nil)
	}
	var streamed strings.Builder
	r, err := m.Generate(t.Context(), hello, func(s string) { streamed.WriteString(s) })
	if err == nil && streamed.String() != r.Text {
		t.Errorf("streamed %q, answered %q", streamed.String(), r.Text)
	}
	return r, err
}

// sameJSON compares raw blocks by what they say.
var sameJSON = cmp.Transformer("json", func(raw json.RawMessage) any {
	var v any
	if len(raw) > 0 && json.Unmarshal(raw, &v) != nil {
		return string(raw)
	}
	return v
})

const answerText = "Done: “déjà vu” is <there>.\nTwo lines."

var anthropicThoughts = `{"type":"thinking","thinking":"Two things at once.","signature":"c2lnbmF0dXJlLW5vdC1yZWFs"},
	{"type":"redacted_thinking","data":"b3BhcXVlLW5vdC1yZWFs"},`

// Streamed or whole, an answer is the same.
func TestAnswers(t *testing.T) {
	for _, c := range []struct {
		provider, fixture string
		want              Response
	}{
		{provider: "anthropic", fixture: "text", want: Response{
			Text: answerText, StopReason: StopEndTurn, Usage: Usage{InputTokens: 1521, OutputTokens: 15, CacheReadTokens: 1500},
			Raw: json.RawMessage(`{"model":"anthropic/claude-test-1","content":[{"type":"text","text":"Done: “déjà vu” is <there>.\nTwo lines."}]}`),
		}},
		{provider: "anthropic", fixture: "tools", want: Response{
			Text: "I'll look.", StopReason: StopToolUse, Usage: Usage{InputTokens: 500, OutputTokens: 97, CacheWriteTokens: 88},
			ToolCalls: []ToolCall{{"toolu_01A", "shell", `{"command": "date && rm -rf 'ü'"}`}, {"toolu_01B", "list_files", `{}`}},
			Raw: json.RawMessage(`{"model":"anthropic/claude-test-1","content":[` + anthropicThoughts + `{"type":"text","text":"I'll look."},
				{"type":"tool_use","id":"toolu_01A","name":"shell","input":{"command":"date && rm -rf 'ü'"}},{"type":"tool_use","id":"toolu_01B","name":"list_files","input":{}}]}`),
		}},
		{provider: "openai", fixture: "text", want: Response{
			Text: answerText, StopReason: StopEndTurn, Usage: Usage{InputTokens: 1521, OutputTokens: 15, CacheReadTokens: 1500},
		}},
		{provider: "openai", fixture: "tools", want: Response{
			Text: "I'll look.", StopReason: StopToolUse, Usage: Usage{InputTokens: 500, OutputTokens: 97},
			ToolCalls: []ToolCall{{"call_A1", "shell", `{"command": "date && rm -rf 'ü'"}`}, {"call_B2", "list_files", `{}`}},
		}},
		{provider: "openai", fixture: "compatible", want: Response{
			StopReason: StopToolUse,
			ToolCalls:  []ToolCall{{"functions.shell:0", "shell", `{"command": "date"}`}, {"functions.list_files:1", "list_files", `{}`}},
			Raw: json.RawMessage(`{"model":"openai/gpt-test-1","message":{"reasoning_content":"Two things at once."},
				"calls":[{"extra_content":{"google":{"thought_signature":"c2ln"}}},{}]}`),
		}},
	} {
		for contentType, suffix := range map[string]string{eventStream: ".sse", jsonText: ".json"} {
			t.Run(c.provider+"/"+c.fixture+suffix, func(t *testing.T) {
				got, err := ask(t, c.provider, contentType, fixture(t, c.provider+"/"+c.fixture+suffix))
				if err != nil {
					t.Fatal(err)
				}
				want := c.want
				if suffix == ".json" && c.provider == "anthropic" { // the whole form has the input as JSON, with the server's spaces
					for i := range got.ToolCalls {
						got.ToolCalls[i].Arguments = spaced(got.ToolCalls[i].Arguments)
					}
				}
				if diff := cmp.Diff(want, got, sameJSON); diff != "" {
					t.Errorf("response (-want +got):\n%s", diff)
				}
			})
		}
	}
}

// spaced writes an object as the fixtures' models do.
func spaced(arguments string) string {
	return strings.ReplaceAll(strings.ReplaceAll(arguments, `": "`, `":"`), `":"`, `": "`)
}

// A server that was asked to stream and answers whole is understood; a page is not.
func TestAnswersInAnotherForm(t *testing.T) {
	for _, provider := range []string{"anthropic", "openai"} {
		m := open(t, provider, &wire{answer: says(200, jsonText, bytes.NewReader(fixture(t, provider+"/text.json")))})
		var streamed string
		r, err := m.Generate(t.Context(), hello, func(s string) { streamed += s })
		if err != nil || r.Text != answerText || streamed != answerText {
			t.Errorf("%s: %v, %q", provider, err, streamed)
		}
		m = open(t, provider, &wire{answer: says(200, "text/html", strings.NewReader("<html>Sign in"))})
		_, err = m.Generate(t.Context(), hello, func(string) {})
		mustFail(t, err, ErrInvalid, false, "web page", "_BASE_URL")
		m = open(t, provider, &wire{answer: says(200, jsonText, strings.NewReader(`{"type":"error","error":{"type":"overloaded_error","message":"busy"}}`))})
		_, err = m.Generate(t.Context(), hello, nil)
		mustFail(t, err, ErrOverloaded, true, "overloaded")
	}
}

func mustFail(t testing.TB, err error, kind ErrorKind, retryable bool, words ...string) {
	t.Helper()
	var e *Error
	if !errors.As(err, &e) {
		t.Errorf("got %v, want an *Error", err)
		return
	}
	if e.Kind != kind || e.Retryable != retryable {
		t.Errorf("got %s (retryable: %t), want %s (%t): %v", e.Kind, e.Retryable, kind, retryable, err)
	}
	for _, w := range words {
		if !strings.Contains(e.Message, w) {
			t.Errorf("%q isn't in %q", w, e.Message)
		}
	}
}

// cutReader ends early, as a connection does (a chunked body) or as one that
// nobody can tell from a proper end.
type cutReader struct {
	r   io.Reader
	err error
}

func (c cutReader) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	if err == io.EOF {
		err = c.err
	}
	return n, err
}

var everyByte = flag.Bool("every-byte", false, "cut streams at every byte, instead of around the ends of lines and at every eleventh")

// Wherever a stream is cut, nothing of it comes back.
func TestCutEverywhere(t *testing.T) {
	for _, file := range []string{"anthropic/text.sse", "anthropic/tools.sse", "openai/text.sse", "openai/tools.sse", "openai/compatible.sse"} {
		provider, _, _ := strings.Cut(file, "/")
		text := fixture(t, file)
		for i, end := range []error{io.ErrUnexpectedEOF, io.EOF} {
			for n := range len(text) {
				if !*everyByte && (n+5*i)%11 != 0 && !bytes.Contains(text[max(n-1, 0):n+1], []byte("\n")) {
					continue
				}
				m := open(t, provider, &wire{answer: says(200, eventStream, cutReader{bytes.NewReader(text[:n]), end})})
				r, err := m.Generate(t.Context(), hello, func(string) {})
				var e *Error
				if diff := cmp.Diff(Response{}, r); diff != "" || !errors.As(err, &e) || e.Kind != ErrBroken || !e.Retryable {
					t.Fatalf("%s cut at %d with %v: %v\n%s", file, n, end, err, diff)
				}
			}
		}
	}
}

func TestCutWhole(t *testing.T) {
	for _, file := range []string{"anthropic/tools.json", "openai/tools.json"} {
		provider, _, _ := strings.Cut(file, "/")
		text := bytes.TrimSpace(fixture(t, file))
		for n := range len(text) {
			r, err := ask(t, provider, jsonText, text[:n])
			if diff := cmp.Diff(Response{}, r); diff != "" || err == nil {
				t.Fatalf("%s cut at %d: %v\n%s", file, n, err, diff)
			}
		}
	}
}

// How a message ends decides whether it is one.
func TestEndings(t *testing.T) {
	type ending struct {
		from, to  string
		kind      ErrorKind // empty: it is an answer
		retryable bool
		stop      string
		words     string
	}
	for _, c := range []struct {
		fixture string
		endings []ending
	}{
		{"anthropic/tools.sse", []ending{
			{`"tool_use", "stop_sequence"`, `"max_tokens", "stop_sequence"`, ErrBroken, false, "", "APPROVALBOT_MAX_OUTPUT_TOKENS"},
			{`"tool_use", "stop_sequence"`, `"refusal", "stop_sequence"`, ErrRefused, false, "", "declined"},
			{`"tool_use", "stop_sequence"`, `"pause_turn", "stop_sequence"`, ErrBroken, true, "", "paused"},
			{`"tool_use", "stop_sequence"`, `"model_context_window_exceeded", "stop_sequence"`, ErrContext, false, "", "longer than"},
			{`"tool_use", "stop_sequence"`, `"eureka", "stop_sequence"`, ErrBroken, false, "", "(eureka)"},
			{`"tool_use", "stop_sequence"`, `null, "stop_sequence"`, ErrBroken, true, "", "no sense"},
			{`"tool_use", "stop_sequence"`, `"end_turn", "stop_sequence"`, "", false, StopToolUse, ""},
			{`"name": "shell"`, `"name": ""`, ErrBroken, true, "", "without a name"},
			{`{"type": "content_block_stop", "index": 3}`, `{"type": "ping"}`, ErrBroken, true, "", "no sense"},
			{`{"type": "content_block_stop", "index": 3}`, `{"type": "something_new"}`, ErrBroken, true, "", "no sense"},
			{`"index": 4`, `"index": 3`, ErrBroken, true, "", "no sense"},
			{`"type": "input_json_delta", "partial_json": ""`, `"type": "text_delta", "text": "x"`, ErrBroken, true, "", "no sense"},
		}},
		{"anthropic/text.sse", []ending{
			{`"end_turn"`, `"max_tokens"`, "", false, StopMaxTokens, ""},
			{`"end_turn"`, `"stop_sequence"`, "", false, StopEndTurn, ""},
			{`"end_turn"`, `"tool_use"`, ErrBroken, true, "", "announces"},
			{`{"type": "ping"}`, `{"type": "something_new", "index": 7}`, "", false, StopEndTurn, ""},
			{"event: ping\ndata: {\"type\": \"ping\"}", "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"Overloaded\"}}", ErrOverloaded, true, "", "overloaded"},
			{`"stop_reason": "end_turn", "stop_sequence": null, "stop_details": null`, `"stop_reason":"refusal","stop_details":{"type":"refusal","category":"cyber","explanation":"Not that."}`, ErrRefused, false, "", "Not that."},
		}},
		{"openai/tools.sse", []ending{
			{`"finish_reason":"tool_calls"`, `"finish_reason":"length"`, ErrBroken, false, "", "APPROVALBOT_MAX_OUTPUT_TOKENS"},
			{`"finish_reason":"tool_calls"`, `"finish_reason":"content_filter"`, ErrRefused, false, "", "declined"},
			{`"finish_reason":"tool_calls"`, `"finish_reason":"stop"`, "", false, StopToolUse, ""},
			{`"finish_reason":"tool_calls"`, `"finish_reason":"eureka"`, ErrBroken, false, "", "(eureka)"},
			{`"finish_reason":"tool_calls"`, `"finish_reason":null`, ErrBroken, true, "", "without a reason"},
			{`"name":"shell"`, `"name":""`, ErrBroken, true, "", "without a name"},
			{`"type":"function"`, `"type":"custom"`, ErrBroken, true, "", "no sense"},
			{`"content":"I'll look."`, `"refusal":"I won't."`, ErrRefused, false, "", "I won't."},
			{`"finish_reason":null}],"usage":null`, `"finish_reason":"tool_calls"}],"usage":null`, ErrBroken, true, "", "no sense"},
		}},
		{"openai/text.sse", []ending{
			{`"finish_reason":"stop"`, `"finish_reason":"length"`, "", false, StopMaxTokens, ""},
			{`"finish_reason":"stop"`, `"finish_reason":"tool_calls"`, ErrBroken, true, "", "announces"},
			{"data: [DONE]", `data: {"error":{"message":"The server had an error","type":"server_error"}}`, ErrUnavailable, true, "", "The server had an error"},
			{"data: [DONE]", "event: error\ndata: {\"message\":\"no room\",\"type\":\"context_length_exceeded\"}", ErrContext, false, "", "no room"},
			{"data: [DONE]", `data: {"error":{"message":"bad tool","type":"invalid_request_error"}}`, ErrInvalid, false, "", "bad tool"},
			{`is <there>`, "is \xff", ErrBroken, true, "", "understood"},
			{"data: [DONE]", `data: {"error":{"message":"slow down","code":"rate_limit_exceeded"}}`, ErrRateLimit, true, "", "slow down"},
		}},
	} {
		provider, _, _ := strings.Cut(c.fixture, "/")
		text := string(fixture(t, c.fixture))
		for _, e := range c.endings {
			changed := strings.Replace(text, e.from, e.to, 1)
			if changed == text {
				t.Errorf("%s has no %s", c.fixture, e.from)
			}
			r, err := ask(t, provider, eventStream, []byte(changed))
			if e.kind == "" {
				if err != nil || r.StopReason != e.stop {
					t.Errorf("%s: %v, stop reason %q, want %q", e.to, err, r.StopReason, e.stop)
				}
				continue
			}
			mustFail(t, err, e.kind, e.retryable, e.words)
			if diff := cmp.Diff(Response{}, r); diff != "" {
				t.Errorf("%s: something came back:\n%s", e.to, diff)
			}
		}
	}
}

func FuzzStreams(f *testing.F) {
	for _, file := range []string{"anthropic/text.sse", "anthropic/tools.sse", "openai/text.sse", "openai/tools.sse", "openai/compatible.sse"} {
		f.Add(file[0] == 'a', fixture(f, file))
	}
	f.Fuzz(func(t *testing.T, first bool, text []byte) {
		provider := "openai"
		if first {
			provider = "anthropic"
		}
		checkStream(t, provider, text)
	})
}

// checkStream holds for whatever comes: all of an answer with an end, or an error
// and nothing; and what came can be sent back.
func checkStream(t rapid.TB, provider string, text []byte) {
	t.Helper()
	w := &wire{answer: says(200, eventStream, bytes.NewReader(text))}
	m, err := Open(map[string]string{"anthropic": "anthropic/claude-test-1", "openai": "openai/gpt-test-1"}[provider],
		Options{AnthropicKey: anthropicTestKey, OpenAIKey: openaiTestKey, HTTPClient: clientOf(w)})
	if err != nil {
		t.Fatal(err)
	}
	var streamed strings.Builder
	r, err := m.Generate(context.Background(), hello, func(s string) { streamed.WriteString(s) })
	if err != nil {
		if diff := cmp.Diff(Response{}, r); diff != "" {
			t.Errorf("%v, and yet:\n%s", err, diff)
		}
		var e *Error
		if !errors.As(err, &e) || e.Message == "" {
			t.Errorf("the error is %v", err)
		}
		return
	}
	end := map[string]string{"anthropic": "message_stop", "openai": "[DONE]"}[provider]
	if !bytes.Contains(text, []byte(end)) && !bytes.Contains(text, []byte(`\u`)) {
		t.Errorf("an answer without an end: %+v", r)
	}
	if streamed.String() != r.Text || r.StopReason == StopMaxTokens && len(r.ToolCalls) > 0 {
		t.Errorf("streamed %q, answered %+v", streamed.String(), r)
	}
	follow(t, provider, r)
}

// Streams whose lines were lost, doubled, exchanged or changed.
func TestDamagedStreams(t *testing.T) {
	files := []string{"anthropic/text.sse", "anthropic/tools.sse", "openai/text.sse", "openai/tools.sse", "openai/compatible.sse"}
	texts := map[string][]byte{}
	for _, file := range files {
		texts[file] = fixture(t, file)
	}
	rapid.Check(t, func(t *rapid.T) {
		file := rapid.SampledFrom(files).Draw(t, "file")
		provider, _, _ := strings.Cut(file, "/")
		events := bytes.SplitAfter(texts[file], []byte("\n\n"))
		for range rapid.IntRange(1, 4).Draw(t, "damages") {
			i, j := rapid.IntRange(0, len(events)-1).Draw(t, "event"), rapid.IntRange(0, len(events)-1).Draw(t, "another")
			switch rapid.IntRange(0, 3).Draw(t, "damage") {
			case 0:
				events = slices.Delete(slices.Clone(events), i, min(i+1, len(events)-1))
			case 1:
				events = slices.Insert(slices.Clone(events), j, events[i])
			case 2:
				events = slices.Clone(events)
				events[i], events[j] = events[j], events[i]
			case 3:
				if e := slices.Clone(events[i]); len(e) > 0 {
					e[rapid.IntRange(0, len(e)-1).Draw(t, "at")] = rapid.SampledFrom([]byte("\"{}[],:0x\n\\\xff")).Draw(t, "byte")
					events = slices.Clone(events)
					events[i] = e
				}
			}
		}
		checkStream(t, provider, bytes.Join(events, nil))
	})
}

// follow asks on after an answer: whatever it was, the next request is a legal one.
func follow(t rapid.TB, provider string, r Response) {
	t.Helper()
	messages := []Message{user("Ada: look"), {Role: RoleAssistant, Text: r.Text, ToolCalls: r.ToolCalls, Raw: r.Raw}}
	results := Message{Role: RoleTool}
	for _, c := range r.ToolCalls {
		results.Results = append(results.Results, ToolResult{ToolCallID: c.ID, Text: "ok"})
	}
	messages = append(messages, results, user("Ada: and?"))
	checkRequest(t, provider, Request{Messages: messages})
}

func TestContextEnds(t *testing.T) {
	for _, provider := range []string{"anthropic", "openai"} {
		text := fixture(t, provider+"/text.sse")
		ctx, cancel := context.WithCancel(t.Context())
		m := open(t, provider, &wire{answer: says(200, eventStream, cutReader{bytes.NewReader(text[:len(text)*3/4]), context.Canceled})})
		_, err := m.Generate(ctx, hello, func(string) { cancel() })
		if err != context.Canceled {
			t.Errorf("%s, in the middle: %v", provider, err)
		}
		if _, err := m.Generate(ctx, hello, nil); err != context.Canceled {
			t.Errorf("%s, before: %v", provider, err)
		}
		cancel()
	}
}
