package model

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"testing"
)

// streamOf is an answer of so many pieces, as each provider streams one: of its text, of its thoughts, or of the
// arguments of a call.
func streamOf(provider, of string, pieces int) string {
	var out strings.Builder
	say := func(format string, args ...any) { fmt.Fprintf(&out, "data: "+format+"\n\n", args...) }
	if provider == "openai" {
		delta := map[string]string{
			"text": `{"content":"word "}`, "thoughts": `{"reasoning_content":"word "}`, "arguments": `{"tool_calls":[{"index":0,"function":{"arguments":"word "}}]}`,
		}[of]
		say(`{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"c","type":"function","function":{"name":"t","arguments":""}}]}}]}`)
		for range pieces {
			say(`{"choices":[{"index":0,"delta":%s}]}`, delta)
		}
		say(`{"choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}`)
		say(`[DONE]`)
		return out.String()
	}
	block := map[string][2]string{
		"text":      {`{"type":"text","text":""}`, `{"type":"text_delta","text":"word "}`},
		"thoughts":  {`{"type":"thinking","thinking":"","signature":""}`, `{"type":"thinking_delta","thinking":"word "}`},
		"arguments": {`{"type":"tool_use","id":"c","name":"t","input":{}}`, `{"type":"input_json_delta","partial_json":"word "}`},
	}[of]
	say(`{"type":"message_start","message":{"type":"message","role":"assistant","content":[],"usage":{"input_tokens":1,"output_tokens":1}}}`)
	say(`{"type":"content_block_start","index":0,"content_block":%s}`, block[0])
	for range pieces {
		say(`{"type":"content_block_delta","index":0,"delta":%s}`, block[1])
	}
	if of == "thoughts" {
		say(`{"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"c2ln"}}`)
	}
	say(`{"type":"content_block_stop","index":0}`)
	say(`{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":5}}`)
	say(`{"type":"message_stop"}`)
	return out.String()
}

// An answer that is ten times as long takes ten times as much, not a hundred times: each piece is copied a few times
// only, and not all that came before it.
func TestLongAnswers(t *testing.T) {
	for _, provider := range []string{"anthropic", "openai"} {
		for _, of := range []string{"text", "thoughts", "arguments"} {
			taken := func(pieces int) float64 {
				m := open(t, provider, &wire{answer: says(200, eventStream, strings.NewReader(streamOf(provider, of, pieces)))})
				var before, after runtime.MemStats
				runtime.ReadMemStats(&before)
				r, err := m.Generate(context.Background(), Request{Messages: []Message{{Role: RoleUser, Text: "go"}}}, func(string) {})
				runtime.ReadMemStats(&after)
				if err != nil {
					t.Fatal(err)
				}
				got := len(r.Text)
				if len(r.ToolCalls) > 0 && of == "arguments" {
					got = len(r.ToolCalls[0].Arguments)
				}
				if of == "thoughts" {
					got = strings.Count(string(r.Raw), "word ") * len("word ")
				}
				if got != pieces*len("word ") {
					t.Fatalf("%s, %s: %d bytes came of %d pieces", provider, of, got, pieces)
				}
				return float64(after.TotalAlloc - before.TotalAlloc)
			}
			taken(10) // what is made once
			if little, much := taken(600), taken(6000); much > 15*little {
				t.Errorf("%s, %s: ten times the length took %.0f times the memory", provider, of, much/little)
			}
		}
	}
}

// What a provider counts wrongly is not counted: it would end up in sums, and be taken for the length of the session.
func TestImpossibleUsage(t *testing.T) {
	for provider, body := range map[string]string{
		"anthropic": `{"type":"message","role":"assistant","content":[{"type":"text","text":"a"}],"stop_reason":"end_turn",
			"usage":{"input_tokens":-5,"output_tokens":4611686018427387904,"cache_read_input_tokens":-1,"cache_creation_input_tokens":4611686018427387904}}`,
		"openai": `{"choices":[{"index":0,"message":{"role":"assistant","content":"a"},"finish_reason":"stop"}],
			"usage":{"prompt_tokens":-5,"completion_tokens":4611686018427387904,"prompt_tokens_details":{"cached_tokens":-1}}}`,
	} {
		m := open(t, provider, &wire{answer: says(200, jsonText, strings.NewReader(body))})
		r, err := m.Generate(context.Background(), Request{Messages: []Message{{Role: RoleUser, Text: "go"}}}, nil)
		if err != nil || r.Usage != (Usage{}) {
			t.Errorf("%s: %+v %v", provider, r.Usage, err)
		}
	}
}

// A block may go on when the next have begun: the API numbers them for that.
func TestBlocksThatTakeTurns(t *testing.T) {
	var out strings.Builder
	event := func(kind, rest string) {
		fmt.Fprintf(&out, "event: %s\ndata: {\"type\":%q%s}\n\n", kind, kind, rest)
	}
	event("message_start", `,"message":{"id":"m","type":"message","role":"assistant","model":"x","content":[],"usage":{"input_tokens":1,"output_tokens":1}}`)
	for i := range 5 {
		event("content_block_start", fmt.Sprintf(`,"index":%d,"content_block":{"type":"text","text":""}`, i))
		for j := range i + 1 {
			event("content_block_delta", fmt.Sprintf(`,"index":%d,"delta":{"type":"text_delta","text":"%d"}`, j, j))
		}
	}
	for i := range 5 {
		event("content_block_stop", fmt.Sprintf(`,"index":%d`, i))
	}
	event("message_delta", `,"delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":2}`)
	event("message_stop", "")
	m := open(t, "anthropic", &wire{answer: says(200, eventStream, strings.NewReader(out.String()))})
	r, err := m.Generate(t.Context(), hello, func(string) {})
	if err != nil || r.StopReason != StopEndTurn || len(r.Text) < 15 {
		t.Errorf("got %+v, %v", r, err)
	}
}
