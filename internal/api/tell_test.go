package api

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"approvalbot/internal/ledger"
	"approvalbot/internal/redact"
)

var at = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func call(body ledger.Body) ledger.Event {
	return ledger.Event{Time: at, Session: "http/s", Run: "r", Call: "c", Actor: ledger.System, Body: body}
}

// Every kind of event gives exactly one message: the whole mapping.
func TestTell(t *testing.T) {
	const req = `{"approvalId":"a","runId":"r","sessionId":"http/s","toolCallId":"c","toolName":"shell","argumentsJson":"{\"command\":\"date\"}","argumentsSha256":"d","reason":"it can change things","preview":{"summary":"run date","kind":"command","body":"date"},"approvers":["requester"],"quorum":1,"requestedAt":"2026-01-02T03:04:05Z","timeoutMs":120000,"approvals":0}`
	requested := &ledger.ApprovalRequested{Approval: "a", Tool: "shell", Arguments: `{"command":"date"}`, Digest: "d", Reason: "it can change things",
		Preview: ledger.Preview{Summary: "run date", Kind: "command", Body: "date"}, Approvers: []string{"requester"}, Quorum: 1, Timeout: 2 * time.Minute}
	bob := ledger.Actor{Kind: ledger.ActorUser, Team: "T1", ID: "UBOB", Name: "Bob", Via: "slack"}
	debug := func(kind, body string) string {
		return `{"type":"debug","event":{"kind":"` + kind + `","time":"2026-01-02T03:04:05Z","runId":"r","sessionId":"http/s","toolCallId":"c","actor":{"kind":"system"},"body":` + body + `}}`
	}
	for _, c := range []struct {
		name string
		body ledger.Body
		want string
	}{
		{"a step", &ledger.ModelCompleted{Round: 2, Text: "hm", Usage: ledger.Usage{InputTokens: 1, OutputTokens: 2},
			ToolCalls: []ledger.ToolCall{{ID: "c", Name: "shell", Arguments: `{"command":"date"}`}}},
			`{"type":"step","step":2,"text":"hm","toolCalls":[{"toolCallId":"c","toolName":"shell","argumentsJson":"{\"command\":\"date\"}"}],"usage":{"inputTokens":1,"outputTokens":2},"runId":"r"}`},
		{"an ask", requested, `{"type":"approvalRequired","request":` + req + `}`},
		{"a person's answer", &ledger.ApprovalResolved{Approval: "a", Type: ledger.Denied, Source: ledger.SourceUser, Reason: "no", By: &bob},
			`{"type":"approvalResolved","approvalId":"a","runId":"r","toolCallId":"c","toolName":"shell","resolution":{"type":"denied","source":"user","reason":"no","by":{"kind":"user","id":"UBOB","name":"Bob","via":"slack"},"at":"2026-01-02T03:04:05Z"}}`},
		{"no answer", &ledger.ApprovalResolved{Approval: "a", Type: ledger.Denied, Source: ledger.SourceTimeout, Reason: "nobody answered"},
			`{"type":"approvalResolved","approvalId":"a","runId":"r","toolCallId":"c","toolName":"shell","resolution":{"type":"denied","source":"timeout","reason":"nobody answered","at":"2026-01-02T03:04:05Z"}}`},
		{"an output", &ledger.ToolFinished{Tool: "shell", State: ledger.OutputAvailable, Output: "ok", Elapsed: 3 * time.Millisecond},
			`{"type":"toolOutputAvailable","runId":"r","toolCallId":"c","toolName":"shell","output":"ok","state":"output-available","elapsedMs":3}`},
		{"an empty output", &ledger.ToolFinished{Tool: "shell", State: ledger.OutputAvailable},
			`{"type":"toolOutputAvailable","runId":"r","toolCallId":"c","toolName":"shell","output":"","state":"output-available","elapsedMs":0}`},
		{"a denial", &ledger.ToolFinished{Tool: "shell", State: ledger.OutputDenied, Source: ledger.SourceUser, Reason: "Bob denied it.", Output: "Error"},
			`{"type":"toolOutputDenied","runId":"r","toolCallId":"c","toolName":"shell","output":"Error","state":"output-denied","source":"user","reason":"Bob denied it."}`},
		{"a failure", &ledger.ToolFinished{Tool: "shell", State: ledger.OutputError, Code: "ABORTED", Reason: "It was stopped.", Output: "Error"},
			`{"type":"toolOutputError","runId":"r","toolCallId":"c","toolName":"shell","output":"Error","state":"output-error","code":"ABORTED","reason":"It was stopped.","elapsedMs":0}`},
		{"the end", &ledger.RunFinished{Status: ledger.RunSucceeded, Answer: "done", Rounds: 2, Usage: ledger.Usage{InputTokens: 5}},
			`{"type":"done","result":{"runId":"r","sessionId":"http/s","model":"demo","answer":"done","steps":2,"usage":{"inputTokens":5,"outputTokens":0}}}`},
		{"an end by people", &ledger.RunFinished{Status: ledger.RunCancelled, Code: "STOPPED", Reason: "stopped by Bob"},
			`{"type":"error","error":{"code":"STOPPED","message":"stopped by Bob","status":"cancelled","runId":"r","sessionId":"http/s"}}`},
		{"an end with a question", &ledger.RunFinished{Status: ledger.RunCancelled, Code: "DENIED_REPEATEDLY", Answer: "What now?"},
			`{"type":"error","error":{"code":"DENIED_REPEATEDLY","message":"","status":"cancelled","runId":"r","sessionId":"http/s","answer":"What now?"}}`},
		{"the start", &ledger.RunStarted{Message: 1, Model: "demo", System: "secret prompt", Tools: json.RawMessage(`[]`), Mode: "interactive"},
			debug("run_started", `{"message":1,"model":"demo","system":"","approvalMode":"interactive","approvalPolicy":"","sandboxMode":"","policyHash":""}`)},
		{"a stop", &ledger.RunStopRequested{Reason: "stopped by Bob"}, debug("run_stop_requested", `{"reason":"stopped by Bob"}`)},
		{"a decision", &ledger.PermissionDecided{Tool: "shell", Type: ledger.Ask}, debug("permission_decided", `{"tool":"shell","type":"ask","source":"","reason":"","policyHash":"","digest":""}`)},
		{"a showing", &ledger.ApprovalShown{Approval: "a", Surface: "http", Until: at}, debug("approval_shown", `{"approvalId":"a","surface":"http","until":"2026-01-02T03:04:05Z"}`)},
		{"a vote", &ledger.ApprovalVoted{Approval: "a", Type: ledger.Approved}, debug("approval_voted", `{"approvalId":"a","type":"approved"}`)},
		{"a tool's start", &ledger.ToolStarted{Tool: "shell", Digest: "d"}, debug("tool_started", `{"toolName":"shell","digest":"d"}`)},
		{"a post", &ledger.MessagePosted{Thing: ledger.Thing{Kind: "card", ID: "a"}, Channel: "C", TS: "1"}, debug("message_posted", `{"thing":{"kind":"card","id":"a"},"channel":"C","ts":"1","rendering":""}`)},
		{"a settled one", &ledger.MessageSettled{Thing: ledger.Thing{Kind: "card", ID: "a"}}, debug("message_settled", `{"thing":{"kind":"card","id":"a"}}`)},
	} {
		t.Run(c.name, func(t *testing.T) {
			crew := &cast{model: "demo", tools: map[string]string{"c": "shell"}}
			got, err := json.Marshal(views{redact.New()}.tell(crew, call(c.body)))
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(indented(t, c.want), indented(t, string(got))); d != "" {
				t.Errorf("-want +got:\n%s", d)
			}
		})
	}
}

func indented(t *testing.T, raw string) string {
	t.Helper()
	var v any
	if err := json.Unmarshal([]byte(raw), &v); err != nil {
		t.Fatalf("%v: %s", err, raw)
	}
	out, _ := json.MarshalIndent(v, "", " ")
	return string(out)
}

// The run that can't ask names its first call that would have, in the model's order.
func TestTellRequired(t *testing.T) {
	c := &cast{}
	event := func(id string, b ledger.Body) ledger.Event {
		e := call(b)
		e.Call = id
		return e
	}
	for _, e := range []ledger.Event{
		event("", &ledger.ModelCompleted{Round: 1, ToolCalls: []ledger.ToolCall{{ID: "c1", Name: "read"}, {ID: "c2", Name: "shell"}, {ID: "c3", Name: "write"}}}),
		event("c1", &ledger.PermissionDecided{Type: ledger.Allow, Reason: "harmless"}),
		event("c3", &ledger.PermissionDecided{Type: ledger.Ask, Reason: "it writes"}),
		event("c2", &ledger.PermissionDecided{Type: ledger.Ask, Reason: "it can change things"}),
		event("c3", &ledger.ToolFinished{Tool: "write", State: ledger.OutputDenied, Source: ledger.SourceUndeliverable}),
		event("c2", &ledger.ToolFinished{Tool: "shell", State: ledger.OutputDenied, Source: ledger.SourceUndeliverable}),
		event("c1", &ledger.ToolFinished{Tool: "read", State: ledger.OutputAvailable}),
	} {
		c.apply(e)
	}
	got := views{redact.New()}.tell(c, event("", &ledger.RunFinished{Status: ledger.RunFailed, Code: codeRequired, Reason: "shell needs approval"}))
	want := &failure{Code: codeRequired, Message: "shell needs approval", Status: ledger.RunFailed, RunID: "r", SessionID: "http/s",
		ToolCallID: "c2", ToolName: "shell", Reason: "it can change things"}
	if d := cmp.Diff(want, got.Error); d != "" {
		t.Errorf("-want +got:\n%s", d)
	}
}

// What others wrote leaves redacted, whatever it is in.
func TestTellRedacts(t *testing.T) {
	const secret = "our-own-secret-token"
	v := views{redact.New(secret)}
	for _, b := range []ledger.Body{
		&ledger.ModelCompleted{Text: secret, ToolCalls: []ledger.ToolCall{{ID: "c", Name: secret, Arguments: `{"a":"` + secret + `"}`}, {ID: "d", Arguments: "not json " + secret}}},
		&ledger.ApprovalRequested{Arguments: `{"a":"` + secret + `"}`, Cwd: secret, Reason: secret, Preview: ledger.Preview{Summary: secret, Target: secret, Body: secret, Notes: []string{"In its environment: A=" + secret}}},
		&ledger.ApprovalResolved{Reason: secret}, &ledger.RunStopRequested{Reason: secret}, &ledger.ApprovalVoted{Reason: secret},
		&ledger.ToolFinished{Tool: secret, State: ledger.OutputAvailable, Output: secret}, &ledger.ToolFinished{State: ledger.OutputDenied, Reason: secret},
		&ledger.RunFinished{Status: ledger.RunSucceeded, Answer: secret}, &ledger.RunFinished{Status: ledger.RunFailed, Reason: secret},
	} {
		if out := string(frame(1, v.tell(&cast{}, call(b)))); strings.Contains(out, secret) {
			t.Errorf("%s: %s", b.Kind(), out)
		}
	}
}

// A client that draws buttons knows of an ask what a card says: how much may go wrong, by which rule, whether a click is to
// be confirmed, and the notes, of which a hidden one counts as hidden. What the policy said leaves redacted, too.
func TestRequestTellsWhatACardSays(t *testing.T) {
	const secret = "our-own-secret-token"
	v := views{redact.New(secret)}
	b := &ledger.ApprovalRequested{Arguments: "{}", Rule: "rules: four-eyes", Risk: "critical", Confirm: true, Preview: ledger.Preview{Notes: []string{"plain", secret}}}
	got := v.request("r", "s", "c", b, time.Time{})
	if got.Rule != b.Rule || got.Risk != b.Risk || !got.Confirm || !got.Redacted || len(got.Preview.Notes) != 2 || got.Preview.Notes[0] != "plain" {
		t.Errorf("got %+v", got)
	}
	if b.Preview.Notes[1] != secret {
		t.Error("the journal's own event was changed")
	}
	c := v.call(&ledger.Run{}, &ledger.Call{Decision: &ledger.PermissionDecided{Reason: secret, Risk: "high"}})
	if c.Decision.Risk != "high" || strings.Contains(c.Decision.Reason, secret) {
		t.Errorf("got %+v", c.Decision)
	}
}

func TestFrame(t *testing.T) {
	if got, want := string(frame(7, message{Type: typeDelta, Delta: "a\r\nb\u2028c"})), "id: 7\ndata: {\"type\":\"assistantDelta\",\"delta\":\"a\\r\\nb\\u2028c\"}\n\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got := string(frame(0, message{Type: typeDelta, Delta: "a"})); strings.Contains(got, "id:") {
		t.Errorf("%q", got)
	}
}
