package metrics

import (
	"errors"
	"log/slog"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	dto "github.com/prometheus/client_model/go"

	"approvalbot/internal/ledger"
)

var start = time.Date(2026, 3, 1, 9, 0, 0, 0, time.UTC)

// at is an event so many seconds after the start.
func at(seconds float64, b ledger.Body) ledger.Event {
	return ledger.Event{
		Time: start.Add(time.Duration(seconds * float64(time.Second))), Session: "s", Run: "run_1", Call: "call_1", Body: b,
	}
}

func observe(m *Metrics, events ...ledger.Event) {
	for _, e := range events {
		m.Observe(e)
	}
}

// values are the series of some metrics that aren't zero: "name{label=value,…}", without our namespace. A histogram is
// its count, and its sum behind a slash.
func values(t testing.TB, m *Metrics, names ...string) map[string]string {
	t.Helper()
	families, err := m.registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for _, f := range families {
		name := strings.TrimPrefix(f.GetName(), "approvalbot_")
		if !slices.Contains(names, name) {
			continue
		}
		for _, s := range f.Metric {
			if v := value(s); v != "0" && v != "0/0" {
				out[name+labels(s)] = v
			}
		}
	}
	return out
}

func labels(s *dto.Metric) string {
	var pairs []string
	for _, l := range s.Label {
		if l.GetValue() != "" {
			pairs = append(pairs, l.GetName()+"="+l.GetValue())
		}
	}
	return "{" + strings.Join(pairs, ",") + "}"
}

func value(s *dto.Metric) string {
	number := func(v float64) string { return strconv.FormatFloat(v, 'g', 6, 64) }
	switch {
	case s.Histogram != nil:
		return strconv.FormatUint(s.Histogram.GetSampleCount(), 10) + "/" + number(s.Histogram.GetSampleSum())
	case s.Counter != nil:
		return number(s.Counter.GetValue())
	}
	return number(s.Gauge.GetValue())
}

func requested(id string) *ledger.ApprovalRequested {
	return &ledger.ApprovalRequested{Approval: id, Tool: "shell", Timeout: 2 * time.Minute}
}

func shown(id string, seconds float64) ledger.Event {
	return at(seconds, &ledger.ApprovalShown{Approval: id, Until: start.Add(time.Duration(seconds)*time.Second + 2*time.Minute)})
}

func resolved(id string, outcome ledger.ResolutionType, source ledger.Source) *ledger.ApprovalResolved {
	return &ledger.ApprovalResolved{Approval: id, Type: outcome, Source: source}
}

func TestObserve(t *testing.T) {
	for _, c := range []struct {
		name   string
		names  string
		events []ledger.Event
		want   map[string]string
	}{
		{"an approval", "asks_total asks_opened_total ask_decision_seconds ask_show_seconds", []ledger.Event{
			at(1, requested("a")), shown("a", 3), at(45, resolved("a", ledger.Approved, ledger.SourceUser)),
		}, map[string]string{
			"asks_total{outcome=approved,source=user}": "1", "asks_opened_total{tool=shell}": "1",
			"ask_decision_seconds{outcome=approved}": "1/42", "ask_show_seconds{}": "1/2",
		}},
		{"a card whose post was answered late was seen when it was sent", "ask_decision_seconds", []ledger.Event{
			at(0, requested("a")),
			at(30, &ledger.ApprovalShown{Approval: "a", Until: start.Add(2*time.Minute + 5*time.Second)}),
			at(30, resolved("a", ledger.Denied, ledger.SourceUser)),
		}, map[string]string{"ask_decision_seconds{outcome=denied}": "1/25"}},
		{"a second showing changes nothing", "ask_decision_seconds ask_show_seconds", []ledger.Event{
			at(0, requested("a")), shown("a", 1), shown("a", 50), at(61, resolved("a", ledger.Approved, ledger.SourceUser)),
		}, map[string]string{"ask_decision_seconds{outcome=approved}": "1/60", "ask_show_seconds{}": "1/1"}},
		{"only people take time to decide", "asks_total ask_decision_seconds", []ledger.Event{
			at(0, requested("a")), shown("a", 1), at(121, resolved("a", ledger.Denied, ledger.SourceTimeout)),
		}, map[string]string{"asks_total{outcome=denied,source=timeout}": "1"}},
		{"an ask of an earlier process is ended, and nobody knows how long it took", "asks_total ask_decision_seconds", []ledger.Event{
			at(0, resolved("a", ledger.Denied, ledger.SourceAbort)),
		}, map[string]string{"asks_total{outcome=denied,source=abort}": "1"}},
		{"a run waits while one of its asks is open", "runs_active runs_total", []ledger.Event{
			at(0, &ledger.RunStarted{}), at(1, requested("a")), at(1, requested("b")),
			at(9, resolved("a", ledger.Denied, ledger.SourceUser)),
		}, map[string]string{"runs_active{status=waiting_for_approval}": "1"}},
		{"and runs again after the last", "runs_active", []ledger.Event{
			at(0, &ledger.RunStarted{}), at(1, requested("a")), at(1, requested("b")),
			at(9, resolved("a", ledger.Denied, ledger.SourceUser)), at(9, resolved("b", ledger.Denied, ledger.SourceUser)),
		}, map[string]string{"runs_active{status=running}": "1"}},
		{"a run", "runs_active runs_total run_duration_seconds", []ledger.Event{
			at(0, &ledger.RunStarted{}), at(90, &ledger.RunFinished{Status: ledger.RunFailed, Code: "MODEL_ERROR"}),
		}, map[string]string{"runs_total{code=MODEL_ERROR,status=failed}": "1", "run_duration_seconds{status=failed}": "1/90"}},
		{"a run of an earlier process", "runs_active runs_total run_duration_seconds", []ledger.Event{
			at(90, &ledger.RunFinished{Status: ledger.RunCancelled, Code: "RESTARTED"}),
		}, map[string]string{"runs_total{code=RESTARTED,status=cancelled}": "1"}},
		{"tools", "tool_calls_total tool_call_duration_seconds tool_calls_outcome_unknown_total", []ledger.Event{
			at(0, &ledger.ToolFinished{Tool: "shell", State: ledger.OutputAvailable, Elapsed: 3 * time.Second}),
			at(0, &ledger.ToolFinished{Tool: "shell", State: ledger.OutputDenied, Source: ledger.SourcePolicy}),
			at(0, &ledger.ToolFinished{Tool: "made up", State: ledger.OutputError, Code: "UNKNOWN_TOOL"}),
			at(0, &ledger.ToolFinished{Tool: "shell", State: ledger.OutputError, Code: "OUTCOME_UNKNOWN"}),
		}, map[string]string{
			"tool_calls_total{state=output-available,tool=shell}":            "1",
			"tool_calls_total{source=policy,state=output-denied,tool=shell}": "1",
			"tool_calls_total{state=output-error,tool=other}":                "1",
			"tool_calls_total{state=output-error,tool=shell}":                "1",
			"tool_call_duration_seconds{state=output-available,tool=shell}":  "1/3",
			"tool_calls_outcome_unknown_total{}":                             "1",
		}},
		{"what is allowed in advance", "grants_total permission_decisions_total", []ledger.Event{
			at(0, &ledger.GrantGiven{Grant: "g"}),
			at(0, &ledger.PermissionDecided{Tool: "shell", Type: ledger.Allow, Source: "grant", Grant: "g", GrantUse: 1}),
			at(0, &ledger.GrantRevoked{Grant: "g"}),
		}, map[string]string{
			"grants_total{event=given}": "1", "grants_total{event=used}": "1", "grants_total{event=revoked}": "1",
			"permission_decisions_total{decision=allow,tool=shell}": "1",
		}},
		{"messages, samples, decisions", "messages_received_total model_samples_total model_tokens_total permission_decisions_total", []ledger.Event{
			at(0, &ledger.MessageReceived{Origin: ledger.Origin{Kind: "slack"}, Disposition: ledger.Starts}),
			at(0, &ledger.MessageReceived{Origin: ledger.Origin{Kind: "slack"}, Disposition: ledger.Refused}),
			at(0, &ledger.ModelCompleted{StopReason: "tool_use", Usage: ledger.Usage{InputTokens: 100, OutputTokens: 7}}),
			at(0, &ledger.PermissionDecided{Tool: "shell", Type: ledger.Ask}),
		}, map[string]string{
			"messages_received_total{disposition=starts,origin=slack}":  "1",
			"messages_received_total{disposition=refused,origin=slack}": "1",
			"model_samples_total{stop_reason=tool_use}":                 "1",
			"model_tokens_total{direction=input}":                       "100",
			"model_tokens_total{direction=output}":                      "7",
			"permission_decisions_total{decision=ask,tool=shell}":       "1",
		}},
		{"what the model cost, and when it didn't answer", "model_tokens_total model_cost_total model_failures_total session_compactions_total", []ledger.Event{
			at(0, &ledger.ModelCompleted{Usage: ledger.Usage{InputTokens: 100, OutputTokens: 7, Cost: &ledger.Cost{Micros: 1_500_000, Currency: "USD"}}}),
			at(0, &ledger.SessionCompacted{Method: ledger.CompactSummary, Usage: ledger.Usage{InputTokens: 10, Cost: &ledger.Cost{Micros: 1, Currency: "USD"}}}),
			at(0, &ledger.SessionCompacted{Method: "of a later version"}),
			at(0, &ledger.ModelFailed{ErrorKind: "overloaded"}),
			at(0, &ledger.ModelFailed{ErrorKind: "overloaded"}),
			at(0, &ledger.ModelFailed{}),
		}, map[string]string{
			"model_tokens_total{direction=input}": "110", "model_tokens_total{direction=output}": "7", "model_cost_total{currency=USD}": "1.5",
			"model_failures_total{kind=overloaded}": "2", "model_failures_total{kind=other}": "1",
			"session_compactions_total{method=summary}": "1", "session_compactions_total{method=other}": "1",
		}},
		{"what became of messages in Slack", "slack_messages_settled_total journal_events_total", []ledger.Event{
			at(0, &ledger.MessageSettled{Thing: ledger.Thing{Kind: "card"}, Rendering: "x"}),
			at(0, &ledger.MessageSettled{Thing: ledger.Thing{Kind: "card"}, Gone: "channel_not_found"}),
		}, map[string]string{
			"slack_messages_settled_total{kind=card,result=confirmed}":         "1",
			"slack_messages_settled_total{kind=card,result=channel_not_found}": "1",
			"journal_events_total{kind=message_settled}":                       "2",
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := New("test")
			m.Watch(Sources{Tools: []string{"shell", "read_file"}})
			observe(m, c.events...)
			if diff := cmp.Diff(c.want, values(t, m, strings.Fields(c.names)...)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestHooks(t *testing.T) {
	m := New("test")
	m.Called("chat.postMessage", "ok", 100*time.Millisecond)
	m.Called("chat.postMessage", "ratelimited", 100*time.Millisecond)
	m.Connected()
	m.Disconnected("refresh_requested")
	m.Connected()
	m.Disconnected("lost")
	m.Committed(ledger.Commit{Took: 2 * time.Millisecond, Recorded: 3, Conflicts: 1})
	m.Committed(ledger.Commit{Took: time.Second, Failed: 2, Err: errors.New("disk full")})
	want := map[string]string{
		"slack_calls_total{method=chat.postMessage,result=ok}":          "1",
		"slack_calls_total{method=chat.postMessage,result=ratelimited}": "1",
		"slack_call_seconds{method=chat.postMessage}":                   "2/0.2",
		"slack_reconnects_total{}":                                      "1",
		"slack_disconnects_total{reason=refresh_requested}":             "1",
		"slack_disconnects_total{reason=lost}":                          "1",
		"journal_appends_total{result=recorded}":                        "3",
		"journal_appends_total{result=conflict}":                        "1",
		"journal_appends_total{result=failed}":                          "2",
		"journal_commit_seconds{}":                                      "1/0.002",
	}
	got := values(t, m, "slack_calls_total", "slack_call_seconds", "slack_reconnects_total", "slack_disconnects_total",
		"journal_appends_total", "journal_commit_seconds")
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestMoment(t *testing.T) {
	m := New("v1.2.3")
	if got := values(t, m, "ready", "asks_pending"); len(got) != 0 {
		t.Errorf("before anything is wired: %v", got)
	}
	m.Watch(Sources{
		Checks:  []Check{{"journal", func() error { return nil }}, {"slack", func() error { return errors.New("gone") }}},
		Waiting: func() (int, time.Time) { return 2, time.Now().Add(-time.Hour) },
		Backlog: func() map[string]int { return map[string]int{"card": 4, "answer": 0} },
	})
	w := httptest.NewRecorder()
	m.Handler(slog.New(slog.DiscardHandler)).ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	for _, line := range []string{
		`approvalbot_ready{check="journal"} 1`, `approvalbot_ready{check="slack"} 0`, "approvalbot_asks_pending 2",
		"approvalbot_asks_oldest_pending_seconds 3600", `approvalbot_slack_outbox_messages{kind="card"} 4`,
		`approvalbot_slack_outbox_messages{kind="answer"} 0`, `version="v1.2.3"`, "process_start_time_seconds", "go_goroutines",
	} {
		if !strings.Contains(w.Body.String(), line) {
			t.Errorf("%s isn't there:\n%s", line, w.Body)
		}
	}
}

func TestNobodyWaits(t *testing.T) {
	m := New("test")
	m.Watch(Sources{Waiting: func() (int, time.Time) { return 0, time.Time{} }})
	if got := values(t, m, "asks_pending", "asks_oldest_pending_seconds"); len(got) != 0 {
		t.Errorf("without an ask: %v", got)
	}
}

// Tools that come and go count as one, so that nobody who names them can make labels grow.
func TestToolFamilies(t *testing.T) {
	m := New("test")
	m.Watch(Sources{Tools: []string{"shell"}, Families: []string{"mcp__fs__"}})
	for name, want := range map[string]string{
		"shell": "shell", "mcp__fs__read": "mcp__fs__*", "mcp__fs__": "mcp__fs__*", "mcp__other__read": "other", "": "other",
	} {
		if got := m.Tool(name); got != want {
			t.Errorf("%s counts as %s, want %s", name, got, want)
		}
	}
}
