package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"approvalbot/internal/ledger"
	"approvalbot/internal/model"
)

// progressOf is the text of a thread's progress message.
func (w *world) progressOf(thread string) string {
	w.t.Helper()
	for _, m := range w.thread(thread) {
		if strings.Contains(m.text, " · ") { // the request, which its notification names
			return m.text
		}
	}
	w.t.Fatal("there is no progress")
	return ""
}

// What a model does wrong, how long it takes and what it costs is seen by those who wait for it: in the thread, in the
// stream, in the audit.
func TestModelInTheThread(t *testing.T) {
	turns := `[
		{"error":{"kind":"overloaded","message":"The model is overloaded.","retryable":true,"retryAfterMs":20000,"times":1,"delta":["I am about to "]},
		 "toolCalls":[{"id":"c1","name":"list_files","arguments":{"path":"."}}],"usage":{"inputTokens":12000,"outputTokens":45}},
		{"delta":["It ","is ","going ","well ","and ","will ","be ","done."],"deltaMs":5000,"usage":{"inputTokens":12200,"outputTokens":100}}]`
	price, err := model.ParsePrice("3/15")
	if err != nil {
		t.Fatal(err)
	}
	inWorld(t, func(s *Settings) { s.Model, s.Price = script(t, turns), price }, func(w *world) {
		thread := w.ask("alice", "how is it going?")
		w.pass(10 * time.Second)
		if got := w.progressOf(thread); !strings.Contains(got, "The model is overloaded; trying again in 2") || !strings.Contains(got, "(attempt 2)") {
			t.Errorf("while it waits: %s", got)
		}
		w.pass(30 * time.Second)
		if got := w.progressOf(thread); !strings.Contains(got, "Writing: “It") || strings.Contains(got, "overloaded") {
			t.Errorf("while it writes: %s", got)
		}
		w.pass(40 * time.Second)
		if got := w.progressOf(thread); !strings.Contains(got, "2 requests to the model · 24,345 tokens · $0.07") || strings.Contains(got, "Writing") {
			t.Errorf("at the end: %s", got)
		}
		shown := w.audit(w.runs()[0].ID)
		for _, want := range []string{"24200 tokens in, 145 out, 0.074775 USD", "the model gave no answer in round 1, attempt 1 (overloaded)"} {
			if !strings.Contains(shown, want) {
				t.Errorf("the audit doesn't say %q:\n%s", want, shown)
			}
		}
	})
}

// Over HTTP, what was streamed of an attempt that failed is void, and said to be.
func TestModelFailsInTheStream(t *testing.T) {
	turns := `[{"error":{"kind":"broken_answer","message":"The answer broke off.","retryable":true,"times":1,"delta":["half of ","an answ"]},
		"delta":["the whole ","answer"],"stopReason":"max_tokens","usage":{"inputTokens":10,"outputTokens":2,"cacheReadTokens":4}}]`
	price, err := model.ParsePrice("1/1")
	if err != nil {
		t.Fatal(err)
	}
	inWorld(t, func(s *Settings) { s.Model, s.Price = script(t, turns), price }, func(w *world) {
		all := w.client(localToken).listen("POST", "/api/agent/stream", order("go")).rest()
		text, voided := "", ""
		for _, h := range all {
			switch {
			case h.kind() == "assistantDelta":
				text += h.str("delta")
			case h.str("event.kind") == "model_failed":
				voided, text = text, ""
				if h.at("event.body.retryIn") == nil || h.str("event.body.kind") != "broken_answer" {
					t.Error(h.raw)
				}
			case h.kind() == "step":
				mustBe(t, "what was streamed of the step", text, h.str("text"))
			}
		}
		if !strings.HasPrefix("half of an answ", voided) || voided == "" {
			t.Errorf("void is %q", voided)
		}
		end := all[len(all)-1]
		mustBe(t, "the answer", end.str("result.answer"), "the whole answer")
		mustBe(t, "it is cut off", end.at("result.truncated"), any(true))
		mustBe(t, "what it took", end.at("result.usage"), any(map[string]any{"inputTokens": 10., "outputTokens": 2., "cacheReadTokens": 4.,
			"cost": map[string]any{"micros": 12., "currency": "USD"}}))
	})
}

// Each failure that people can do something about is a sentence in the thread, and a code over HTTP.
func TestModelErrorsToPeople(t *testing.T) {
	const turns = `[{"error":{"kind":"key","message":"The API key is not accepted. Set ANTHROPIC_API_KEY to a valid one."}}]`
	inWorld(t, func(s *Settings) { s.Model = script(t, turns) }, func(w *world) {
		thread := w.ask("alice", "go")
		w.pass(10 * time.Second)
		said := ""
		for _, m := range w.thread(thread) { // a run that ends at once may have its answer before its progress
			said += m.text + "\n"
		}
		if !strings.Contains(said, "I could not finish this: The API key is not accepted. Set ANTHROPIC_API_KEY to a valid one.") {
			t.Error(said)
		}
		w.client(localToken).do("POST", "/api/agent", order("go")).must(t, 502, "MODEL_KEY")
	})
}

// A session that outgrows the context goes on, in the process and after a restart, and verifies.
func TestLongSessionInTheThread(t *testing.T) {
	long := strings.Repeat("a long answer ", 300)
	turns, err := json.Marshal([]map[string]any{
		{"when": map[string]any{"userContains": "Write the summary"}, "text": "They said much. The number is 4711.", "usage": map[string]any{"inputTokens": 500, "outputTokens": 20}},
		{"when": map[string]any{"userContains": "please"}, "text": long},
	})
	if err != nil {
		t.Fatal(err)
	}
	inWorld(t, func(s *Settings) { s.Model, s.ContextTokens = script(t, string(turns)), minContextTokens }, func(w *world) {
		thread := w.ask("alice", "please begin")
		for i := range 8 {
			w.pass(5 * time.Second)
			if i == 4 {
				w.stop()
				w.start()
			}
			w.mention("alice", thread, fmt.Sprintf("please go on %d", i))
		}
		w.pass(10 * time.Second)
		compactions := 0
		for _, run := range w.runs() {
			compactions += len(run.Compacted)
			if run.Status() != ledger.RunSucceeded {
				t.Errorf("%+v", run.Finished)
			}
		}
		if compactions < 2 {
			t.Errorf("%d compactions", compactions)
		}
		last := w.runs()[8]
		if got := w.audit(last.ID); !strings.Contains(got, "The number is 4711.") || strings.Contains(got, "please begin") {
			t.Error(got)
		}
		if last.Status() != ledger.RunSucceeded || context.Cause(t.Context()) != nil {
			t.Error(last.Finished)
		}
	})
}
