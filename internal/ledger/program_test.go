package ledger

import (
	"strings"
	"testing"
)

// The rules for calls that another program performs.
func TestVerifyPrograms(t *testing.T) {
	called := &CallRequested{Call: ToolCall{ID: "c"}}
	allow, start := &PermissionDecided{Type: Allow}, &ToolStarted{Digest: digest("{}")}
	done, available := &OutcomeReported{Outcome: OutcomeDone}, &ToolFinished{State: OutputAvailable}
	for name, tt := range map[string]struct {
		program string
		want    string // "" if all is well
		run     []Body
	}{
		"reported":                {"ci", "", []Body{called, allow, start, done, available, &RunFinished{}}},
		"denied":                  {"ci", "", []Body{called, &ToolFinished{State: OutputDenied}, &RunFinished{}}},
		"with a model":            {"ci", "a model takes part", []Body{&ModelCompleted{}}},
		"with a model that fails": {"ci", "a model is asked", []Body{&ModelFailed{}}},
		"with a summary":          {"ci", "a session is shortened", []Body{&SessionCompacted{}}},
		"without a program":       {"", "isn't a program's", []Body{called}},
		"reported too early":      {"ci", "didn't start", []Body{called, allow, done}},
		"reported too late":       {"ci", "has ended", []Body{called, allow, start, available, done}},
		"left open":               {"ci", "before its call", []Body{called, allow, start, done, &RunFinished{}}},
		"nobody allowed it":       {"ci", "nobody allowed", []Body{called, start}},
	} {
		t.Run(name, func(t *testing.T) {
			l := mustOpen(t, t.TempDir())
			for _, b := range append([]Body{&RunStarted{Program: tt.program}}, tt.run...) {
				mustAppend(t, l, Event{Session: "s", Run: "r", Call: "c", Actor: System, Body: b})
			}
			report, err := l.Verify(t.Context(), VerifyOptions{})
			if err != nil {
				t.Fatal(err)
			}
			got := ""
			if !report.OK() {
				got = report.Problem.What
			}
			if (tt.want == "") != (got == "") || !strings.Contains(got, tt.want) {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}
