package model

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// sent is the request that a conversation becomes.
func sent(t rapid.TB, provider string, req Request) []byte {
	t.Helper()
	w := &wire{answer: says(500, jsonText, strings.NewReader("{}"))}
	name := map[string]string{"anthropic": "anthropic/claude-test-1", "openai": "openai/gpt-test-1"}[provider]
	m, err := Open(name, Options{AnthropicKey: anthropicTestKey, OpenAIKey: openaiTestKey, HTTPClient: clientOf(w)})
	if err != nil {
		t.Fatal(err)
	}
	_, err = m.Generate(context.Background(), req, nil)
	if len(w.bodies) != 1 {
		t.Fatalf("%d requests were sent: %v", len(w.bodies), err)
	}
	return w.bodies[0]
}

// said is the part of both providers' requests that the pairing is about.
type said struct {
	Role    string `json:"role"`
	Content any    `json:"content"`
	Calls   []struct {
		ID       string
		Function struct{ Name, Arguments string }
	} `json:"tool_calls"`
	CallID string `json:"tool_call_id"`
}

var (
	anthropicIDs = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`)
	openaiIDs    = regexp.MustCompile(`^[!-~]{1,40}$`)
	toolNames    = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`)
)

// checkRequest is what the providers check: alternation, pairing, ids, names,
// empty texts. It returns the results' texts in order.
func checkRequest(t rapid.TB, provider string, req Request) (results []string) {
	t.Helper()
	text := sent(t, provider, req)
	var body struct{ Messages []said }
	if err := json.Unmarshal(text, &body); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	defer func() {
		if t.Failed() {
			t.Logf("%s", text)
		}
	}()
	if provider == "anthropic" {
		return checkAnthropic(t, body.Messages)
	}
	return checkOpenAI(t, body.Messages)
}

func checkAnthropic(t rapid.TB, messages []said) (results []string) {
	t.Helper()
	used := map[string]bool{}
	var open []string // the calls of the message before
	for i, m := range messages {
		if want := []string{"user", "assistant"}[i%2]; i == 0 && m.Role != want || i > 0 && m.Role == messages[i-1].Role && m.Role == "user" {
			t.Errorf("message %d is of %s", i, m.Role)
		}
		blocks, ok := m.Content.([]any)
		if !ok || len(blocks) == 0 {
			t.Fatalf("message %d has no content", i)
		}
		var calls []string
		for at, b := range blocks {
			b := b.(map[string]any)
			switch b["type"] {
			case "tool_result":
				id, _ := b["tool_use_id"].(string)
				if at >= len(open) || open[at] != id || m.Role != "user" {
					t.Errorf("message %d: result %q at %d, the calls are %v", i, id, at, open)
				}
				content, _ := b["content"].([]any)
				line := ""
				if len(content) > 0 {
					line = content[0].(map[string]any)["text"].(string)
				}
				results = append(results, fmt.Sprint(b["is_error"] == true, " ", line))
			case "text":
				if s, _ := b["text"].(string); strings.TrimSpace(s) == "" {
					t.Errorf("message %d has an empty text", i)
				}
				if at < len(open) {
					t.Errorf("message %d: a text where the result of %s should be", i, open[at])
				}
			case "tool_use":
				id, _ := b["id"].(string)
				name, _ := b["name"].(string)
				if _, isObject := b["input"].(map[string]any); !isObject || used[id] || !anthropicIDs.MatchString(id) || !toolNames.MatchString(name) || m.Role != "assistant" {
					t.Errorf("message %d: call %v", i, b)
				}
				used[id] = true
				calls = append(calls, id)
			case nil, "":
				t.Errorf("message %d: a block without a type: %v", i, b)
			}
		}
		if len(blocks) < len(open) {
			t.Errorf("message %d has no results for %v", i, open[len(blocks):])
		}
		open = calls
	}
	if len(open) > 0 {
		t.Errorf("the last calls have no results: %v", open)
	}
	return results
}

func checkOpenAI(t rapid.TB, messages []said) (results []string) {
	t.Helper()
	used := map[string]bool{}
	var open []string
	for i, m := range messages {
		content, isText := m.Content.(string)
		if len(open) > 0 && (m.Role != "tool" || m.CallID != open[0]) {
			t.Fatalf("message %d is of %s for %q, the open calls are %v", i, m.Role, m.CallID, open)
		}
		switch m.Role {
		case "tool":
			if len(open) == 0 || !isText || content == "" {
				t.Fatalf("message %d: a result of %q: %v", i, m.CallID, m.Content)
			}
			open = open[1:]
			results = append(results, content)
		case "assistant":
			if len(m.Calls) == 0 && strings.TrimSpace(content) == "" {
				t.Errorf("message %d is empty", i)
			}
			for _, c := range m.Calls {
				var args map[string]any
				if json.Unmarshal([]byte(c.Function.Arguments), &args) != nil || used[c.ID] || !openaiIDs.MatchString(c.ID) || !toolNames.MatchString(c.Function.Name) {
					t.Errorf("message %d: call %+v", i, c)
				}
				used[c.ID] = true
				open = append(open, c.ID)
			}
		case "user", "system":
			if strings.TrimSpace(content) == "" || i > 0 && messages[i-1].Role == m.Role {
				t.Errorf("message %d of %s: %q", i, m.Role, content)
			}
		default:
			t.Errorf("message %d is of %s", i, m.Role)
		}
	}
	if len(open) > 0 {
		t.Errorf("the last calls have no results: %v", open)
	}
	return results
}

// conversations draws what a session may hold: runs of other models, calls with
// any id, name and arguments, denials, empty texts, notes of approvalbot, results in
// one message or several.
func conversations() *rapid.Generator[[]Message] {
	id := rapid.OneOf(rapid.SampledFrom([]string{"call_1", "call_2", "toolu_01A", "functions.shell:0", "", "Ünicode id", strings.Repeat("x", 90), "call_" + strings.Repeat("0", 36)}), rapid.String())
	name := rapid.OneOf(rapid.SampledFrom([]string{"shell", "mcp__files__read", "functions.shell", "", strings.Repeat("n", 99)}), rapid.String())
	args := rapid.OneOf(rapid.SampledFrom([]string{`{}`, `{"a":1}`, `{"a":1,"a":2}`, `{"a":`, `[]`, `"x"`, ``, `null`, `{"a":"\ud800"}`, "{\"a\":\"\xff\"}"}), rapid.String())
	line := rapid.OneOf(rapid.SampledFrom([]string{"", "  \n", "ok", "Error [APPROVAL_DENIED]: no.", "a\xffb"}), rapid.String())
	return rapid.Custom(func(t *rapid.T) []Message {
		var out []Message
		for range rapid.IntRange(0, 4).Draw(t, "runs") {
			for range rapid.IntRange(1, 3).Draw(t, "words") {
				out = append(out, Message{Role: RoleUser, Text: line.Draw(t, "text")})
			}
			for range rapid.IntRange(0, 3).Draw(t, "rounds") {
				m := Message{Role: RoleAssistant, Text: line.Draw(t, "answer")}
				results := Message{Role: RoleTool}
				for range rapid.IntRange(0, 3).Draw(t, "calls") {
					c := ToolCall{id.Draw(t, "id"), name.Draw(t, "name"), args.Draw(t, "arguments")}
					m.ToolCalls = append(m.ToolCalls, c)
					results.Results = append(results.Results, ToolResult{c.ID, line.Draw(t, "result"), rapid.Bool().Draw(t, "is error")})
				}
				m.Raw = drawRaw(t, m)
				out = append(out, m)
				if n := len(results.Results); n > 1 && rapid.Bool().Draw(t, "apart") {
					out = append(out, Message{Role: RoleTool, Results: results.Results[:1]})
					results.Results = results.Results[1:]
				}
				out = append(out, results)
			}
		}
		return append(out, Message{Role: RoleUser, Text: "Ada: and now?"})
	})
}

// drawRaw is the provider's own form of a message: of this model, of another one,
// one that doesn't fit, or none.
func drawRaw(t *rapid.T, m Message) json.RawMessage {
	raw := ownBlocks{Model: rapid.SampledFrom([]string{"anthropic/claude-test-1", "anthropic/claude-test-2", "openai/gpt-test-1"}).Draw(t, "raw of")}
	block := func(v any) {
		text, err := json.Marshal(v)
		if err == nil {
			raw.Content = append(raw.Content, text)
		}
	}
	block(map[string]string{"type": "thinking", "thinking": "hm", "signature": "c2ln"})
	block(map[string]string{"type": "text", "text": m.Text})
	for _, c := range m.ToolCalls {
		var input any
		if json.Unmarshal([]byte(c.Arguments), &input) != nil {
			input = map[string]any{}
		}
		block(map[string]any{"type": "tool_use", "id": rapid.SampledFrom([]string{c.ID, "toolu_own"}).Draw(t, "own id"), "name": c.Name, "input": input})
	}
	switch rapid.IntRange(0, 3).Draw(t, "raw") {
	case 0:
		return nil
	case 1:
		return json.RawMessage(rapid.SampledFrom([]string{"", "{", "[]", `{"model":"anthropic/claude-test-1"}`, `{"model":"openai/gpt-test-1","calls":[{}]}`}).Draw(t, "odd raw"))
	case 2:
		raw.Content = raw.Content[:rapid.IntRange(0, len(raw.Content)).Draw(t, "blocks")]
	}
	text, err := json.Marshal(raw)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// Whatever stands in a conversation, both providers are sent one that they accept:
// every call has exactly one result, in order, and none is lost.
func TestEveryConversationIsLegal(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		messages := conversations().Draw(t, "conversation")
		req := Request{System: "Be brief.", Messages: messages, Tools: []ToolSpec{{Name: "shell", InputSchema: json.RawMessage(`{"anyOf":[{}]}`)}}}
		want := 0
		for _, m := range messages {
			want += len(m.Results)
		}
		for _, provider := range []string{"anthropic", "openai"} {
			if got := len(checkRequest(t, provider, req)); got != want {
				t.Errorf("%s is sent %d results of %d", provider, got, want)
			}
			if a, b := sent(t, provider, req), sent(t, provider, req); string(a) != string(b) {
				t.Errorf("%s is sent two different requests for one conversation", provider)
			}
		}
	})
}

// A conversation that is wrong itself is refused here, with words.
func TestWrongConversations(t *testing.T) {
	call := Message{Role: RoleAssistant, ToolCalls: []ToolCall{{"c1", "shell", "{}"}}}
	for want, messages := range map[string][]Message{
		`a call "c1" without a result`:                        {user("a"), call, user("b")},
		`a result of call "c2" that its message doesn't have`: {user("a"), call, {Role: RoleTool, Results: []ToolResult{{ToolCallID: "c1"}, {ToolCallID: "c2"}}}},
		`a result of call "c1" that no message asked for`:     {user("a"), {Role: RoleTool, Results: []ToolResult{{ToolCallID: "c1"}}}},
		`doesn't end with something to answer`:                {user("a"), {Role: RoleAssistant, Text: "b"}},
		`the unknown role "judge"`:                            {{Role: "judge", Text: "a"}},
	} {
		for _, provider := range []string{"anthropic", "openai"} {
			_, err := open(t, provider, &wire{}).Generate(t.Context(), Request{Messages: messages}, nil)
			mustFail(t, err, ErrInvalid, false, want)
		}
	}
}

// Thoughts and their signatures go back as they came, the calls with the ids that
// their results name.
func TestOwnBlocksGoBack(t *testing.T) {
	r, err := ask(t, "anthropic", eventStream, fixture(t, "anthropic/tools.sse"))
	if err != nil {
		t.Fatal(err)
	}
	r.ToolCalls[1].ID = "call_of_ours" // its id had been used before
	req := Request{Messages: []Message{user("Ada: look"),
		{Role: RoleAssistant, Text: r.Text, ToolCalls: r.ToolCalls, Raw: r.Raw},
		{Role: RoleTool, Results: []ToolResult{{"toolu_01A", "Mon", false}, {"call_of_ours", "Error [X]: no.", true}}}}}
	var body struct{ Messages []json.RawMessage }
	if err := json.Unmarshal(sent(t, "anthropic", req), &body); err != nil {
		t.Fatal(err)
	}
	want := []json.RawMessage{
		json.RawMessage(`{"role":"user","content":[{"type":"text","text":"Ada: look"}]}`),
		json.RawMessage(`{"role":"assistant","content":[` + anthropicThoughts + `{"type":"text","text":"I'll look."},
			{"type":"tool_use","id":"toolu_01A","name":"shell","input":{"command":"date && rm -rf 'ü'"}},{"type":"tool_use","id":"call_of_ours","name":"list_files","input":{}}]}`),
		json.RawMessage(`{"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_01A","content":[{"type":"text","text":"Mon"}]},
			{"type":"tool_result","tool_use_id":"call_of_ours","is_error":true,"content":[{"type":"text","text":"Error [X]: no."}],"cache_control":{"type":"ephemeral"}}]}`),
	}
	if diff := cmp.Diff(want, body.Messages, sameJSON); diff != "" {
		t.Errorf("messages (-want +got):\n%s", diff)
	}
}

// The whole request of each provider, as it stands in testdata.
func TestRequests(t *testing.T) {
	req := Request{System: "Be brief.", MaxTokens: 900,
		Tools: []ToolSpec{
			{Name: "shell", Description: "Runs a command.", InputSchema: json.RawMessage(`{"type":"object","properties":{"command":{"type":"string"}},"required":["command"],"additionalProperties":false}`)},
			{Name: "ping"},
		},
		Messages: []Message{
			user("approvalbot: The run before ended early."), user("Ada: look"),
			{Role: RoleAssistant, Text: "I'll look.", ToolCalls: []ToolCall{{"call_1", "shell", `{"command":"date"}`}, {"call_1", "shell", `{"command":`}},
				Raw: json.RawMessage(`{"model":"another/model","content":[]}`)},
			{Role: RoleTool, Results: []ToolResult{{"call_1", "Mon", false}, {"call_1", "Error [INVALID_ARGUMENTS]: not JSON", true}}},
			user("Ada: and?"),
		}}
	for _, provider := range []string{"anthropic", "openai"} {
		for suffix, streaming := range map[string]bool{"request.json": false, "request-stream.json": true} {
			w := &wire{answer: says(500, jsonText, strings.NewReader("{}"))}
			var onDelta func(string)
			if streaming {
				onDelta = func(string) {}
			}
			if _, err := open(t, provider, w).Generate(t.Context(), req, onDelta); err == nil {
				t.Error("no error")
			}
			if diff := cmp.Diff(json.RawMessage(fixture(t, provider+"/"+suffix)), json.RawMessage(w.bodies[0]), sameJSON); diff != "" {
				t.Errorf("%s/%s (-want +got):\n%s\n%s", provider, suffix, diff, w.bodies[0])
			}
		}
	}
}

// Calls of tools that are gone stay in the conversation.
func TestCallsWithoutTools(t *testing.T) {
	text := sent(t, "anthropic", Request{Messages: []Message{user("a"), {Role: RoleAssistant, ToolCalls: []ToolCall{{"1", "old tool", "{}"}, {"2", "old tool", "{}"}}},
		{Role: RoleTool, Results: []ToolResult{{ToolCallID: "1"}, {ToolCallID: "2"}}}}})
	var body struct {
		Tools  []struct{ Name string }
		Choice struct{ Type string } `json:"tool_choice"`
	}
	if err := json.Unmarshal(text, &body); err != nil || len(body.Tools) != 1 || body.Tools[0].Name != "old_tool" || body.Choice.Type != "none" {
		t.Errorf("%v: %s", err, text)
	}
}
