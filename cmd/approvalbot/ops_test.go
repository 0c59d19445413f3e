package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"approvalbot/internal/devslack"
	"approvalbot/internal/ledger"
	"approvalbot/internal/ledger/ledgertest"
	"approvalbot/internal/metrics"
	"approvalbot/internal/redact"
)

// get asks the running bot over HTTP.
func (w *world) get(path, token string) (int, string) {
	w.t.Helper()
	transport := &http.Transport{DialContext: w.api.DialContext}
	defer transport.CloseIdleConnections()
	r, err := http.NewRequest("GET", "http://127.0.0.1:3102"+path, nil)
	if err != nil {
		w.t.Fatal(err)
	}
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	resp, err := (&http.Client{Transport: transport, Timeout: 10 * time.Second}).Do(r)
	if err != nil {
		w.t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		w.t.Fatal(err)
	}
	return resp.StatusCode, string(body)
}

// scrape is what Prometheus would read: the value of every series, by its name without our prefix.
func (w *world) scrape() map[string]float64 {
	w.t.Helper()
	status, body := w.get("/metrics", w.settings.APIToken)
	if status != http.StatusOK {
		w.t.Fatalf("/metrics: %d %s", status, body)
	}
	series := map[string]float64{}
	for line := range strings.Lines(body) {
		name, value, ok := strings.Cut(strings.TrimSpace(line), "} ")
		if ok {
			name += "}"
		} else {
			name, value, _ = strings.Cut(strings.TrimSpace(line), " ")
		}
		if v, err := strconv.ParseFloat(value, 64); err == nil && !strings.HasPrefix(line, "#") {
			series[strings.TrimPrefix(name, "approvalbot_")] = v
		}
	}
	return series
}

func mustCount(t testing.TB, got, want map[string]float64) {
	t.Helper()
	for name, v := range want {
		if got[name] != v {
			t.Errorf("%s is %v, want %v", name, got[name], v)
		}
	}
}

// An ask that is approved after 42 seconds, and one that nobody answers: what Prometheus sees on the way and after it.
func TestMetricsOfAScenario(t *testing.T) {
	inWorld(t, nil, func(w *world) {
		if status, _ := w.get("/metrics", ""); status != http.StatusUnauthorized {
			t.Errorf("without a token: %d", status)
		}
		mustCount(t, w.scrape(), map[string]float64{
			`ready{check="journal"}`: 1, `ready{check="slack"}`: 1, `ready{check="model"}`: 1, "asks_pending": 0,
			`asks_total{outcome="approved",source="user"}`: 0, `asks_total{outcome="denied",source="timeout"}`: 0,
			"slack_reconnects_total": 0,
		})
		thread := w.ask("alice", proof)
		w.pass(37 * time.Second)
		during := w.scrape()
		mustCount(t, during, map[string]float64{
			"asks_pending": 1, `runs_active{status="waiting_for_approval"}`: 1, `runs_active{status="running"}`: 0,
			`asks_opened_total{tool="shell"}`: 1, `slack_outbox_messages{kind="card"}`: 0,
		})
		if age := during["asks_oldest_pending_seconds"]; age < 41 || age > 43 {
			t.Errorf("the ask is %v seconds old", age)
		}
		w.click("bob", w.card(thread), "approve")
		w.ask("alice", "run `touch other`")
		w.pass(5 * time.Minute)
		after := w.scrape()
		mustCount(t, after, map[string]float64{
			"asks_pending": 0, "asks_oldest_pending_seconds": 0,
			`runs_active{status="waiting_for_approval"}`: 0, `runs_active{status="running"}`: 0,
			`asks_total{outcome="approved",source="user"}`: 1, `asks_total{outcome="denied",source="timeout"}`: 1,
			`ask_decision_seconds_count{outcome="approved"}`: 1, `ask_decision_seconds_count{outcome="denied"}`: 0,
			`tool_calls_total{source="",state="output-available",tool="shell"}`:     1,
			`tool_calls_total{source="timeout",state="output-denied",tool="shell"}`: 1,
			`permission_decisions_total{decision="ask",tool="shell"}`:               2,
			`runs_total{code="",status="succeeded"}`:                                2,
			`messages_received_total{disposition="starts",origin="slack"}`:          2,
			`slack_calls_total{method="auth.test",result="ok"}`:                     1,
			`journal_appends_total{result="failed"}`:                                0,
		})
		if s := after[`ask_decision_seconds_sum{outcome="approved"}`]; s < 40 || s > 43 {
			t.Errorf("the approval took %v seconds", s)
		}
		head, err := w.app.journal.Head(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		total := 0.0
		for name, v := range after {
			if strings.HasPrefix(name, "journal_events_total") {
				total += v
			}
		}
		if int64(total) != head.Seq {
			t.Errorf("%v events were counted, the journal has %d", total, head.Seq)
		}
	})
}

// A restart counts what it ends itself, and nothing of what was before.
func TestMetricsAfterARestart(t *testing.T) {
	inWorld(t, nil, func(w *world) {
		first := w.ask("alice", proof)
		w.click("bob", w.card(first), "approve")
		w.ask("alice", "run `touch other`")
		w.crash()
		w.start()
		w.pass(time.Minute)
		mustCount(t, w.scrape(), map[string]float64{
			`asks_total{outcome="approved",source="user"}`: 0, `asks_total{outcome="denied",source="abort"}`: 1,
			`tool_calls_total{source="abort",state="output-denied",tool="shell"}`: 1,
			`runs_total{code="RESTARTED",status="cancelled"}`:                     1,
			"asks_pending": 0, `runs_active{status="running"}`: 0,
			"tool_calls_outcome_unknown_total": 0,
		})
	})
}

// What goes wrong with Slack and with the disk can be seen in the metrics and in /readyz.
func TestMetricsOfTrouble(t *testing.T) {
	inWorld(t, func(s *Settings) { s.Timeout = time.Hour }, func(w *world) {
		two := 2
		w.fault(devslack.Fault{Method: "chat.postMessage", Times: 3, RetryAfter: &two})
		thread := w.ask("alice", proof)
		w.pass(time.Minute)
		w.fault(devslack.Fault{Socket: "disconnect", Reason: "refresh_requested"})
		w.pass(10 * time.Second)
		release := ledgertest.Lock(t, w.settings.journalDir())
		w.click("bob", w.card(thread), "approve")
		status, body := w.get("/readyz", "")
		if status != http.StatusServiceUnavailable {
			t.Errorf("/readyz: %d %s", status, body)
		}
		mustSay(t, body, `"slack":"ok"`, `"model":"ok"`, `"ok":false`)
		trouble := w.scrape()
		release()
		mustCount(t, trouble, map[string]float64{
			`ready{check="journal"}`: 0, `ready{check="slack"}`: 1, "asks_pending": 1, "slack_reconnects_total": 1,
			`slack_disconnects_total{reason="refresh_requested"}`:                 1,
			`slack_calls_total{method="chat.postMessage",result="ratelimited"}`:   3,
			`slack_calls_total{method="apps.connections.open",result="ok"}`:       2,
			`slack_calls_total{method="chat.postEphemeral",result="ratelimited"}`: 0,
		})
		if trouble[`journal_appends_total{result="failed"}`] == 0 {
			t.Error("no append failed")
		}
		w.click("bob", w.card(thread), "approve")
		mustCount(t, w.scrape(), map[string]float64{`ready{check="journal"}`: 1, "asks_pending": 0})
		if status, body := w.get("/readyz", ""); status != http.StatusOK {
			t.Errorf("/readyz: %d %s", status, body)
		}
	})
}

// The secrets of a scenario: one that looks like one, one that nobody could know for one, and what a person wrote.
const (
	knownSecret = "xoxb-1111-2222-abcdefghijkl"
	plainSecret = "zebra-crossing-at-dawn"
)

// Whatever happens to a run, each line of the log about it has its ids, and none has what people, models or tools wrote.
func TestLog(t *testing.T) {
	turns := fmt.Sprintf(`[
		{"text":"the word is %[2]s","toolCalls":[
			{"id":"c1","name":"shell","arguments":{"command":"echo %[1]s %[2]s"}},
			{"id":"c2","name":"shell","arguments":{"command":"touch %[2]s"}},
			{"id":"c3","name":"%[2]s-tool","arguments":{"x":"%[2]s"}}]},
		{"toolCalls":[{"id":"c4","name":"shell","arguments":{"command":"cat %[2]s"}}]},
		{"text":"done with %[2]s"}]`, knownSecret, plainSecret)
	model := script(t, turns)
	scenario := func(w *world) {
		say := "go, " + plainSecret + " " + knownSecret
		two := 2
		w.fault(devslack.Fault{Method: "chat.postMessage", Times: 2, RetryAfter: &two})
		thread := w.ask("alice", say)
		w.pass(time.Minute)
		first, second := w.cardOf(thread, "echo"), w.cardOf(thread, "touch")
		w.fault(devslack.Fault{Method: "chat.update", Times: 2, Status: 503})
		w.fault(devslack.Fault{Method: "chat.postEphemeral", Times: 9, Error: "user_not_in_channel"})
		w.click("gus", first, "approve") // a guest
		if _, err := w.slack.Click(context.Background(), devslack.ActionRequest{
			User: w.user("bob"), Channel: w.general(), TS: first.ts, ActionID: "approve", Value: second.buttons["approve"],
		}); err != nil {
			t.Fatal(err)
		}
		w.click("bob", first, "approve")
		release := ledgertest.Lock(t, w.settings.journalDir())
		w.click("bob", second, "deny")
		release()
		w.click("bob", second, "deny")
		w.pass(10 * time.Minute) // nobody answers the third
		w.ask("alice", say)
		w.crash()
		w.start()
		w.fault(devslack.Fault{Method: "chat.postMessage", Times: 9, Error: "restricted_action", Match: "approve"})
		w.ask("alice", say)
		w.pass(time.Minute)
		w.slack.ClearFaults()
		lost := w.ask("alice", say) // the journal goes away while it waits, until after its time
		if len(w.cards(lost)) == 0 {
			t.Fatal("there is no card")
		}
		release = ledgertest.Lock(t, w.settings.journalDir())
		w.pass(5 * time.Minute)
		release()
		w.pass(time.Minute)
	}
	inChangedWorld(t, func(w *world) { w.settings.Model, w.jsonLog = model, true }, func(w *world) {
		scenario(w)
		checkLog(w, w.logged())
	})
}

// logged ends the process, so that the last line is written, and returns all.
func (w *world) logged() string {
	w.stop()
	return w.log.String()
}

// checkLog reads every line as whoever looks for a run does.
func checkLog(w *world, raw string) {
	t := w.t
	t.Helper()
	sessions := map[string]string{} // of each id that belongs to a run
	runs := map[string]string{}
	for _, r := range w.runs() {
		sessions[r.ID], runs[r.ID] = r.Session, r.ID
		for _, c := range r.Calls {
			if c.Approval != nil {
				sessions[c.Approval.Approval], runs[c.Approval.Approval] = r.Session, r.ID
			}
		}
	}
	said := map[string]int{}
	seen := map[any]bool{} // events, by seq
	lines := bufio.NewScanner(strings.NewReader(raw))
	for lines.Scan() {
		line := lines.Text()
		var l map[string]any
		if err := json.Unmarshal([]byte(line), &l); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		said[fmt.Sprint(l["msg"])]++
		if seq := l["seq"]; seq != nil && seen[seq] {
			t.Errorf("the event %v is logged twice", seq)
		}
		seen[l["seq"]] = true
		if strings.Contains(line, plainSecret) || strings.Contains(line, knownSecret) {
			t.Errorf("a secret stands in the log: %s", line)
		}
		for id, session := range sessions {
			if strings.Contains(line, id) && (l["run"] != runs[id] || l["session"] != session) {
				t.Errorf("it is about %s of session %s and doesn't say so: %s", runs[id], session, line)
			}
		}
		if call, ok := l["call"]; ok && (l["run"] == nil || l["session"] == nil) {
			t.Errorf("a call %v of no run: %s", call, line)
		}
	}
	for _, want := range []string{
		"run started", "approval requested", "approval resolved", "tool started", "tool finished", "run finished",
		"message received", "Slack did not take a message", "a click that doesn't fit its message",
		"a private sentence was not sent", "an interrupted run was ended", "a run was halted",
		"an approval's end could not be recorded; nothing will be performed", "the journal can't be written; nothing is shown and nothing runs",
	} {
		if said[want] == 0 {
			t.Errorf("%q was not logged, so it was not checked; said were %v", want, said)
		}
	}
}

// What was recorded while everything ended is counted and logged, too, although nothing waits for the follower then.
func TestReadToTheEnd(t *testing.T) {
	var buf bytes.Buffer
	a := &app{metrics: metrics.New("test"), log: newLogger(slog.LevelDebug, redact.New(), &buf, true)}
	ctx, cancel := context.WithCancel(t.Context())
	var err error
	if a.journal, err = ledger.Open(ctx, t.TempDir(), ledger.Options{}); err != nil {
		t.Fatal(err)
	}
	defer a.close()
	for i := range 5 {
		e := ledger.Event{Run: fmt.Sprint("run", i), Actor: ledger.System, Body: &ledger.RunFinished{Status: ledger.RunSucceeded}}
		if _, err := a.journal.Append(ctx, e); err != nil {
			t.Fatal(err)
		}
	}
	a.head = 2
	cancel() // before the follower could read anything
	a.read(ctx)()
	if n := strings.Count(buf.String(), "run finished"); n != 3 {
		t.Errorf("%d lines, want those of the 3 events after the head:\n%s", n, buf.String())
	}
}

// The line about an event says nothing that people, models or tools wrote, of any kind of event.
func TestEventLines(t *testing.T) {
	var buf bytes.Buffer
	log := newLogger(slog.LevelDebug, redact.New(), &buf, true)
	m, s := metrics.New("test"), plainSecret
	m.Watch(metrics.Sources{Tools: []string{"shell"}})
	for _, b := range []ledger.Body{
		&ledger.MessageReceived{Text: s, Reason: s}, &ledger.RunStarted{System: s}, &ledger.RunStopRequested{Reason: s},
		&ledger.RunFinished{Answer: s, Reason: s}, &ledger.PermissionDecided{Tool: "shell", Reason: s, Rule: s},
		&ledger.ModelCompleted{Text: s, ToolCalls: []ledger.ToolCall{{Name: s, Arguments: s}}},
		&ledger.ApprovalRequested{Arguments: s, Reason: s, Preview: ledger.Preview{Summary: s, Body: s}},
		&ledger.ApprovalShown{}, &ledger.ApprovalVoted{Reason: s}, &ledger.ApprovalResolved{Reason: s, By: &ledger.Actor{ID: "U1", Name: s}},
		&ledger.ToolStarted{Tool: "shell"}, &ledger.ToolFinished{Tool: s, Output: s, Reason: s},
		&ledger.MessagePosted{}, &ledger.MessageSettled{Gone: "is_archived"}, &ledger.Erased{},
	} {
		buf.Reset()
		logEvent(log, ledger.Event{Seq: 7, Session: "s", Run: "r", Call: "c", Actor: ledger.Actor{Kind: ledger.ActorUser, ID: "U1", Name: s}, Body: b}, m.Tool)
		if strings.Contains(buf.String(), s) {
			t.Errorf("%T: %s", b, buf.String())
		}
		mustSay(t, buf.String(), `"seq":7`, `"session":"s"`, `"run":"r"`, `"call":"c"`)
	}
}

// What someone else named endlessly is cut where a character ends, and the cut can be seen.
func TestClip(t *testing.T) {
	long := strings.Repeat("ü", clipMost+1)
	if got := clip(long); got != strings.Repeat("ü", clipMost)+"…" {
		t.Errorf("%q", got)
	}
	if got := clip(long[:2*clipMost]); got != long[:2*clipMost] {
		t.Errorf("%q", got)
	}
}

// BenchmarkReadings is what one event costs the follower that feeds metrics and log: beside the durable commit that the
// event cost before.
func BenchmarkReadings(b *testing.B) {
	a := &app{metrics: metrics.New("bench"), log: newLogger(slog.LevelInfo, redact.New("a-token-of-ours"), io.Discard, true)}
	a.metrics.Watch(metrics.Sources{Tools: []string{"shell"}})
	kinds := []ledger.Body{
		&ledger.ToolStarted{Tool: "shell", Digest: strings.Repeat("0123456789abcdef", 4)},
		&ledger.ToolFinished{Tool: "shell", State: ledger.OutputAvailable, Output: strings.Repeat("x", 4000), Elapsed: time.Second},
	}
	e := ledger.Event{Session: "slack/T0/C0/1700000000.000100", Run: "run_5c7a4b1e", Call: "c1"}
	i := 0
	for b.Loop() {
		e.Body = kinds[i%len(kinds)]
		a.observe(e)
		i++
	}
}
