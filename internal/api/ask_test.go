package api

import (
	"encoding/json"
	"errors"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"approvalbot/internal/ledger"
	"approvalbot/internal/redact"
)

// What is taken of an ask is canonical and within its limits; what isn't taken is said to be wrong.
func FuzzAsk(f *testing.F) {
	for _, s := range []string{``, `{}`, `{"tool":"t","arguments":{}}`, `{"tool":"t","arguments":{"b":1.0,"a":[1e999,{"z":1,"a":2}]}}`,
		`{"tool":"t","arguments":{"a":1,"a":2}}`, `{"tool":"t","arguments":{},"timeout":"1h","slack":{"channel":"C1","thread_ts":"1.2"}}`,
		`{"tool":"t","arguments":{},"reason":"x","cwd":"/","idempotencyKey":"k"}`, "{\"tool\":\"\xff\",\"arguments\":{}}"} {
		f.Add(s)
	}
	s := &Server{}
	f.Fuzz(func(t *testing.T, raw string) {
		o, err := s.readWish(httptest.NewRequest("POST", "/api/approvals", strings.NewReader(raw)), &Token{Name: "ci"})
		if err != nil {
			p, ok := errors.AsType[*problem](err)
			if !ok || p.validation == nil || len(p.validation.FormErrors)+len(p.validation.FieldErrors) == 0 {
				t.Fatalf("%q: %v", raw, err)
			}
			return
		}
		again := jsontext.Value(o.Arguments)
		if err := again.Format(jsontext.ReorderRawObjects(true)); err != nil || string(again) != o.Arguments || again.Kind() != '{' {
			t.Errorf("%q: the arguments %q are not canonical: %v", raw, o.Arguments, err)
		}
		if !askTool.MatchString(o.Tool) || o.Program != "ci" || o.Timeout != 0 && (o.Timeout < time.Second || o.Timeout > maxAskTimeout) {
			t.Errorf("%q: %+v", raw, o)
		}
		if len(o.digest) != 64 || !json.Valid([]byte(raw)) {
			t.Errorf("%q was taken", raw)
		}
	})
}

// Each step of an ask has one status. It is approved only when its start is on disk, and an approval that was withdrawn
// before that was none.
func TestAskStatus(t *testing.T) {
	at := time.Unix(1, 0)
	yes := &ledger.ApprovalResolved{Approval: "a", Type: ledger.Approved, Source: ledger.SourceUser}
	no := &ledger.ApprovalResolved{Approval: "a", Type: ledger.Denied, Source: ledger.SourceTimeout}
	denied := &ledger.ToolFinished{State: ledger.OutputDenied, Source: ledger.SourceAbort, Reason: "stopped"}
	broken := &ledger.ToolFinished{State: ledger.OutputError, Code: "TOOL_FAILED"}
	begin := []ledger.Body{&ledger.RunStarted{Program: "ci"}, &ledger.CallRequested{Call: ledger.ToolCall{ID: "c"}}}
	ask := append(begin[:2:2], &ledger.PermissionDecided{Type: ledger.Ask}, &ledger.ApprovalRequested{Approval: "a"})
	for name, tt := range map[string]struct {
		events []ledger.Body
		more   []ledger.Body
		want   string
	}{
		"nothing":             {want: "pending"},
		"begun":               {events: begin, want: "pending"},
		"asked":               {events: ask, want: "pending"},
		"yes, not started":    {ask, []ledger.Body{yes}, "pending"},
		"yes and started":     {ask, []ledger.Body{yes, &ledger.ToolStarted{}}, "approved approved user"},
		"no, not ended":       {ask, []ledger.Body{no}, "pending"},
		"no":                  {ask, []ledger.Body{no, denied}, "denied denied timeout"},
		"withdrawn":           {ask, []ledger.Body{yes, denied}, "denied denied abort"},
		"can't be shown":      {begin, []ledger.Body{broken}, "denied denied undeliverable"},
		"allowed":             {begin, []ledger.Body{&ledger.ToolStarted{}}, "approved approved policy"},
		"reported":            {ask, []ledger.Body{yes, &ledger.ToolStarted{}, &ledger.OutcomeReported{Outcome: ledger.OutcomeDone}}, "done approved user"},
		"reported a failure":  {ask, []ledger.Body{yes, &ledger.ToolStarted{}, &ledger.OutcomeReported{Outcome: ledger.OutcomeFailed}}, "failed approved user"},
		"not reported":        {ask, []ledger.Body{yes, &ledger.ToolStarted{}, &ledger.OutcomeReported{Outcome: ledger.OutcomeNone}}, "no_outcome approved user"},
		"an unknown outcome":  {ask, []ledger.Body{yes, &ledger.ToolStarted{}, &ledger.OutcomeReported{}}, "no_outcome approved user"},
		"ended unreported":    {ask, []ledger.Body{yes, &ledger.ToolStarted{}, broken}, "no_outcome approved user"},
		"ended before it was": {begin[:1], []ledger.Body{&ledger.RunFinished{Status: ledger.RunCancelled}}, "denied denied abort"},
	} {
		run := &ledger.Run{}
		for i, b := range append(tt.events[:len(tt.events):len(tt.events)], tt.more...) {
			run.Apply(ledger.Event{Seq: int64(i + 1), Time: at, Run: "r", Call: "c", Body: b})
		}
		a := views{redact.New()}.asked(ledger.Event{}, run)
		got := string(a.Status)
		if r := a.Resolution; r != nil {
			got += " " + string(r.Type) + " " + string(r.Source)
		}
		if got != tt.want {
			t.Errorf("%s: %s, want %s", name, got, tt.want)
		}
	}
}
