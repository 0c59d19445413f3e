package metrics

import (
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"pgregory.net/rapid"

	"approvalbot/internal/ledger"
)

// Whatever a journal or Slack says, no label takes more values than it has room for, and nothing that people wrote.
func TestLabelsAreBounded(t *testing.T) {
	m := New("test")
	m.Watch(Sources{Tools: []string{"shell"}})
	for i := range 3000 {
		word := fmt.Sprintf("word%d", i)
		observe(m,
			at(0, &ledger.MessageReceived{Origin: ledger.Origin{Kind: word}, Disposition: "starts", Text: word}),
			at(0, &ledger.PermissionDecided{Tool: word, Type: ledger.DecisionType(word)}),
			at(0, &ledger.ToolFinished{Tool: word, State: ledger.CallState(word), Elapsed: 1}),
			at(0, &ledger.RunFinished{Status: ledger.RunFailed, Code: word}),
			at(0, &ledger.MessageSettled{Thing: ledger.Thing{Kind: "card"}, Gone: word}),
		)
		m.Called("chat.update", word, time.Second)
		m.Disconnected(word)
	}
	families, err := m.registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if n := len(f.Metric); n > wordsMost+1 {
			t.Errorf("%s has %d series", f.GetName(), n)
		}
	}
}

// A word that is known keeps its name, however many strangers came first.
func TestKnownWordsFirst(t *testing.T) {
	w := newWords("ok")
	for i := range 1000 {
		w.label(fmt.Sprint("x", i))
	}
	if got := w.label("ok"); got != "ok" {
		t.Errorf("ok counts as %s", got)
	}
}

func FuzzLabel(f *testing.F) {
	for _, s := range []string{"", "ok", "output-denied", "a b", "\xff", "ünïcode", strings.Repeat("x", 100), "x\n# HELP", `"} 1`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		got := newWords().label(s)
		if got != other && got != s || len(got) > wordMost || !utf8.ValidString(got) || strings.ContainsAny(got, "\"\\\n{} ") {
			t.Errorf("%q is counted as %q", s, got)
		}
		if newWords().optional(s) == "" != (s == "") {
			t.Errorf("%q: only what is missing has no label", s)
		}
	})
}

// Over any history, whole or joined in the middle, the gauges agree with what is open, and nothing is left of what ended.
func TestObserveAnything(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := New("test")
		running, open := map[string]bool{}, map[string]string{}
		for i := range rapid.IntRange(0, 60).Draw(t, "events") {
			run := fmt.Sprint("run", rapid.IntRange(0, 3).Draw(t, "run"))
			ask := fmt.Sprint("ask", rapid.IntRange(0, 5).Draw(t, "ask"))
			e := ledger.Event{Time: start.Add(time.Duration(i) * time.Second), Run: run}
			switch rapid.IntRange(0, 4).Draw(t, "kind") {
			case 0:
				e.Body = &ledger.RunStarted{}
				running[run] = true
			case 1:
				e.Body = &ledger.RunFinished{Status: ledger.RunSucceeded}
				delete(running, run)
			case 2:
				if open[ask] != "" || !running[run] {
					continue
				}
				e.Body = requested(ask)
				open[ask] = run
			case 3:
				e.Body = &ledger.ApprovalShown{Approval: ask, Until: e.Time.Add(time.Minute)}
			case 4:
				e.Body = resolved(ask, ledger.Denied, ledger.SourceUser)
				delete(open, ask)
			}
			m.Observe(e)
		}
		agree(t, m, running, open)
	})
}

func agree(t *rapid.T, m *Metrics, running map[string]bool, open map[string]string) {
	if len(m.folding.runs) != len(running) || len(m.folding.asks) != len(open) {
		t.Fatalf("it remembers %d runs and %d asks; %d and %d are open", len(m.folding.runs), len(m.folding.asks), len(running), len(open))
	}
	families, err := m.registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	total := 0.0
	for _, f := range families {
		for _, s := range f.Metric {
			if f.GetName() == "approvalbot_runs_active" {
				total += s.Gauge.GetValue()
				if s.Gauge.GetValue() < 0 {
					t.Fatalf("%v", s)
				}
			}
			if s.Histogram.GetSampleSum() < 0 {
				t.Fatalf("%s took less than no time", f.GetName())
			}
		}
	}
	if int(total) != len(running) {
		t.Fatalf("%v runs are active, want %d", total, len(running))
	}
}

// What counting costs per event: nothing beside the commit that every event needs.
func BenchmarkObserve(b *testing.B) {
	m := New("bench")
	m.Watch(Sources{Tools: []string{"shell"}})
	events := []ledger.Event{
		at(0, &ledger.MessageReceived{Origin: ledger.Origin{Kind: "slack"}, Disposition: ledger.Starts}),
		at(0, &ledger.RunStarted{}),
		at(1, &ledger.ModelCompleted{StopReason: "tool_use"}),
		at(1, &ledger.PermissionDecided{Tool: "shell", Type: ledger.Ask}),
		at(1, requested("a")), shown("a", 2), at(20, resolved("a", ledger.Approved, ledger.SourceUser)),
		at(20, &ledger.ToolStarted{Tool: "shell"}),
		at(21, &ledger.ToolFinished{Tool: "shell", State: ledger.OutputAvailable, Elapsed: time.Second}),
		at(22, &ledger.RunFinished{Status: ledger.RunSucceeded}),
	}
	i := 0
	for b.Loop() {
		m.Observe(events[i%len(events)])
		i++
	}
}

// A scrape, after every series has been used.
func BenchmarkScrape(b *testing.B) {
	m := lived(b)
	for b.Loop() {
		if _, err := m.registry.Gather(); err != nil {
			b.Fatal(err)
		}
	}
}
