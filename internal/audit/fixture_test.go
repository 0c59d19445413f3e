package audit

import (
	"testing"
	"time"

	"approvalbot/internal/agent"
	"approvalbot/internal/ledger"
	"approvalbot/internal/model"
)

func hashOf(t *agent.Transcript) string { return model.RequestHash(t.Request()) }

// erasedFirst writes two runs of a session into a journal, erases the first and checks what is left.
func erasedFirst(t *testing.T, dir string, one, two []ledger.Event) *agent.Recheck {
	t.Helper()
	j, err := ledger.Open(t.Context(), dir, ledger.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for i, e := range append(append([]ledger.Event{}, one...), two...) {
		if m, ok := e.Body.(*ledger.MessageReceived); ok {
			m.Origin = ledger.Origin{Kind: "http"}
		}
		if i == len(one)+1 {
			time.Sleep(time.Minute) // of the bubble: the second run ends later than the first
		}
		if _, err := j.Append(t.Context(), e); err != nil {
			t.Fatal(err)
		}
	}
	first, _, err := j.LoadRun(t.Context(), "r1")
	if err != nil {
		t.Fatal(err)
	}
	closed(t, j)
	p, err := ledger.Prune(t.Context(), dir, ledger.PruneOptions{Before: first.EndedAt.Add(time.Microsecond), By: ledger.System})
	if err != nil || p.Runs != 1 {
		t.Fatalf("%+v %v", p, err)
	}
	r, err := ledger.OpenReader(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	checks := NewChecks(t.Context(), r)
	report, err := r.Verify(t.Context(), ledger.VerifyOptions{Check: checks.Event})
	if err != nil || !report.OK() {
		t.Fatal(err, report.Problem)
	}
	return &checks.Requests
}

// readingOf is the reading of the story without a journal.
func readingOf(t testing.TB, words string) *Reading {
	t.Helper()
	r := &Reading{Run: &ledger.Run{}, Transcript: &agent.Transcript{}}
	events := story("r1", words, 1)
	for i := range events {
		events[i].Seq, events[i].Time = int64(i+1), time.Unix(1e9+int64(i), 0)
		r.Run.Apply(events[i])
	}
	for _, e := range events {
		if err := r.take(e); err != nil {
			t.Fatal(err)
		}
	}
	return r
}

// requestOf is the hash of what the model is sent in a session of which these are the events.
func requestOf(t testing.TB, events []ledger.Event, session string) string {
	t.Helper()
	var tr agent.Transcript
	for _, e := range events {
		if e.Session != session {
			continue
		}
		if s, ok := e.Body.(*ledger.RunStarted); ok && e.Seq == 0 {
			e.Seq = s.Message + 1
		} else if e.Seq == 0 {
			e.Seq = messageSeq(events, session)
		}
		if err := tr.Apply(e); err != nil {
			t.Fatal(err)
		}
	}
	return hashOf(&tr)
}

// messageSeq is where the journal will have the message that the session's run works off.
func messageSeq(events []ledger.Event, session string) int64 {
	for _, e := range events {
		if s, ok := e.Body.(*ledger.RunStarted); ok && e.Session == session {
			return s.Message
		}
	}
	return 0
}
