package ledger

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"
)

func digest(s string) string {
	h := sha256.Sum256([]byte(s))
	return hex.EncodeToString(h[:])
}

// story is a whole run: asked, approved, run, ended and settled, and a second one that goes on.
func story() []Event {
	person := Actor{Kind: ActorUser, Team: "T1", ID: "U1", Name: "ann", Via: "slack"}
	place := Place{Team: "T1", Channel: "C1", Thread: "1.0"}
	ev := func(run, call string, b Body) Event {
		return Event{Session: "s1", Run: run, Call: call, Actor: person, Body: b}
	}
	return []Event{
		{Session: "s1", Actor: person, Body: &MessageReceived{Origin: Origin{Kind: "slack", Team: "T1", Channel: "C1", TS: "1.0"}, Place: place, Text: "run `x`", Disposition: Starts}},
		ev("r1", "", &RunStarted{Message: 1, Place: place, Model: "demo", Tools: []byte(`[{"name":"shell"}]`)}),
		ev("r1", "", &ModelCompleted{Round: 1, ToolCalls: []ToolCall{{ID: "c1", Name: "shell", Arguments: `{"command":"x"}`}}, SampledFrom: 2}),
		ev("r1", "c1", &PermissionDecided{Tool: "shell", Type: Ask}),
		ev("r1", "c1", &ApprovalRequested{Approval: "a1", Tool: "shell", Arguments: `{"command":"x"}`, Digest: digest(`{"command":"x"}`), ShowBy: time.UnixMilli(1)}),
		ev("r1", "c1", &ApprovalShown{Approval: "a1", Surface: "slack", Channel: "C1", TS: "1.1"}),
		ev("r1", "c1", &ApprovalVoted{Approval: "a1", Type: Approved}),
		ev("r1", "c1", &ApprovalResolved{Approval: "a1", Type: Approved, Source: SourceUser, By: &person}),
		ev("r1", "c1", &ToolStarted{Tool: "shell", Digest: digest(`{"command":"x"}`)}),
		ev("r1", "c1", &ToolFinished{Tool: "shell", State: OutputAvailable, Output: "ok"}),
		{Session: "s1", Actor: person, Body: &MessageReceived{Origin: Origin{Kind: "slack", Team: "T1", Channel: "C1", TS: "2.0"}, Place: place, Text: "again", Disposition: Starts}},
		ev("r1", "", &RunFinished{Status: RunSucceeded, Answer: "done", Rounds: 1}),
		ev("r1", "", &MessageSettled{Thing: Thing{Kind: "answer", ID: "r1"}, Channel: "C1", TS: "1.2", RunDone: true}),
		ev("r2", "", &RunStarted{Message: 11, Place: place, Model: "demo"}),
		{Session: "s1", Actor: person, Body: &MessageReceived{Origin: Origin{Kind: "slack", Team: "T1", Channel: "C1", TS: "3.0"}, Place: place, Text: "more", Disposition: Starts}},
	}
}

// told writes the story into a closed journal and returns its head.
func told(t testing.TB, dir string) Head {
	t.Helper()
	l := mustOpen(t, dir)
	for _, e := range story() {
		mustAppend(t, l, e)
	}
	head, err := l.Head(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	return head
}

// tamper changes a closed journal behind its back.
func tamper(t testing.TB, dir, statement string) {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+journalFile(dir))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	result, err := db.Exec(statement)
	if err != nil {
		t.Fatal(statement, err)
	}
	if n, _ := result.RowsAffected(); n == 0 && !strings.HasPrefix(statement, "PRAGMA") {
		t.Fatal(statement, "changed nothing")
	}
}

func verify(t testing.TB, dir string, o VerifyOptions) Report {
	t.Helper()
	r, err := OpenReader(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	report, err := r.Verify(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	return report
}

func TestVerifyWhole(t *testing.T) {
	dir := t.TempDir()
	head := told(t, dir)
	var done, total int64
	report := verify(t, dir, VerifyOptions{Head: &head, Progress: func(d, n int64) { done, total = d, n }})
	n := int64(len(story()))
	if !report.OK() || report.Head != head || report.Rows != n || report.OpenRuns != 1 || report.Erased != 0 {
		t.Errorf("%+v, %v", report, report.Problem)
	}
	if done != n || total != n {
		t.Errorf("progress ended at %d of %d", done, total)
	}
}

func TestVerifyNamesTheFirstRowThatDoesNotFit(t *testing.T) {
	for _, tt := range []struct {
		change string
		seq    int64
		kind   ProblemKind
	}{
		{`UPDATE events SET time = time + 3600000000 WHERE seq = 8`, 8, BadColumn},
		{`UPDATE events SET time = time - 3600000000 WHERE seq = 8`, 8, BadTime},
		{`UPDATE events SET session = 's2' WHERE seq = 8`, 8, BadColumn},
		{`UPDATE events SET run = 'r2' WHERE seq = 8`, 8, BadColumn},
		{`UPDATE events SET call = 'c2' WHERE seq = 8`, 8, BadColumn},
		{`UPDATE events SET session = 's', run = '1r1' WHERE seq = 8`, 8, BadColumn},
		{`UPDATE events SET actor = replace(actor, 'U1', 'U2') WHERE seq = 8`, 8, BadColumn},
		{`UPDATE events SET kind = 'approval_voted' WHERE seq = 8`, 8, BadColumn},
		{`UPDATE events SET body = CAST(replace(body, 'approved', 'denied') AS BLOB) WHERE seq = 8`, 8, BadBody},
		{`UPDATE events SET body_hash = zeroblob(32) WHERE seq = 8`, 8, BadColumn},
		{`UPDATE events SET hash = zeroblob(32) WHERE seq = 8`, 8, BadHash},
		{`UPDATE events SET hash = zeroblob(31) WHERE seq = 8`, 8, BadHash},
		{`UPDATE events SET call = 'c2' WHERE seq = 15`, 15, BadChain},
		{`UPDATE events SET seq = 99 WHERE seq = 15`, 15, BadGap},
		{`UPDATE events SET seq = -1 WHERE seq = 15`, 1, BadGap},
		{`DELETE FROM events WHERE seq = 8`, 8, BadGap},
		{`DELETE FROM events WHERE seq = 1`, 1, BadGap},
		{`DELETE FROM events WHERE seq = 8; UPDATE events SET seq = 8 WHERE seq = 15`, 8, BadChain},
		{`DELETE FROM claims WHERE scope = 'start'`, 9, BadClaims},
		{`UPDATE claims SET a = 'a2' WHERE scope = 'resolution'`, 8, BadClaims},
		{`UPDATE claims SET seq = 3 WHERE scope = 'start'`, 3, BadClaims},
		{`INSERT INTO claims VALUES ('start', 'r2', 'c9', '', '', 14)`, 14, BadClaims},
		{`INSERT INTO claims VALUES ('start', 'r2', 'c9', '', '', 99)`, 99, BadClaims},
		{`DELETE FROM awaited WHERE scope = 'run_end'`, 14, BadClaims},
		{`DELETE FROM awaited WHERE scope = 'message_taken'`, 15, BadClaims},
		{`INSERT INTO awaited VALUES ('run_end', 'r1', '', '', '', 2)`, 2, BadClaims},
	} {
		t.Run(tt.change, func(t *testing.T) {
			dir := t.TempDir()
			told(t, dir)
			tamper(t, dir, tt.change)
			p := verify(t, dir, VerifyOptions{}).Problem
			if p == nil || p.Seq != tt.seq || p.Kind != tt.kind {
				t.Errorf("got %+v, want a problem of kind %s in row %d", p, tt.kind, tt.seq)
			}
		})
	}
}

// TestVerifyRewritten rewrites the chain with all hashes right: only a head kept elsewhere shows it.
func TestVerifyRewritten(t *testing.T) {
	dir, other := t.TempDir(), t.TempDir()
	head := told(t, dir)
	l := mustOpen(t, other)
	for i, e := range story() {
		if i == 7 {
			e.Actor.ID = "U2"
		}
		mustAppend(t, l, e)
	}
	l.Close()
	if report := verify(t, other, VerifyOptions{}); !report.OK() {
		t.Fatal(report.Problem)
	}
	if p := verify(t, other, VerifyOptions{Head: &head}).Problem; p == nil || p.Kind != BadHead || p.Seq != head.Seq {
		t.Error(p)
	}
	tamper(t, dir, `DELETE FROM events WHERE seq = 15`)
	tamper(t, dir, `DELETE FROM claims WHERE seq = 15`)
	tamper(t, dir, `DELETE FROM awaited WHERE seq = 15`)
	if report := verify(t, dir, VerifyOptions{}); !report.OK() {
		t.Fatal(report.Problem)
	}
	if p := verify(t, dir, VerifyOptions{Head: &head}).Problem; p == nil || p.Kind != BadHead || p.Seq != head.Seq {
		t.Error(p)
	}
}

// TestVerifyDamagedFile empties the index by which a run is found, as if its page had been lost.
func TestVerifyDamagedFile(t *testing.T) {
	dir := t.TempDir()
	told(t, dir)
	db, err := sql.Open("sqlite", "file:"+journalFile(dir))
	if err != nil {
		t.Fatal(err)
	}
	var page, size int64
	if err := db.QueryRow(`SELECT rootpage, page_size FROM sqlite_schema, pragma_page_size WHERE name = 'events_run'`).Scan(&page, &size); err != nil {
		t.Fatal(err)
	}
	db.Close()
	f, err := os.OpenFile(journalFile(dir), os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	noCells := []byte{0, 0}
	if _, err := f.WriteAt(noCells, (page-1)*size+3); err != nil {
		t.Fatal(err)
	}
	if p := verify(t, dir, VerifyOptions{}).Problem; p == nil || p.Kind != BadFile {
		t.Error(p)
	}
}

func TestVerifyRules(t *testing.T) {
	ev := func(call string, b Body) Event {
		return Event{Session: "s", Run: "r", Call: call, Actor: System, Body: b}
	}
	ask := func() Body { return &ApprovalRequested{Approval: "a", Arguments: "{}", Digest: digest("{}")} }
	resolve := func(r ResolutionType) Body { return &ApprovalResolved{Approval: "a", Type: r} }
	start := &ToolStarted{Digest: digest("{}")}
	finish := func(s CallState) Body { return &ToolFinished{State: s} }
	decide := func(d DecisionType) Body { return &PermissionDecided{Type: d} }
	called := &ModelCompleted{ToolCalls: []ToolCall{{ID: "c"}}}
	ended := &RunFinished{Status: RunFailed}
	given := func(uses int) Body { return &GrantGiven{Grant: "g", Scope: GrantThread, Tool: "t", Uses: uses} }
	by := func(n int) Body { return &PermissionDecided{Type: Allow, Tool: "t", Grant: "g", GrantUse: n} }
	for _, tt := range []struct {
		name string
		want string // "" if all is well
		run  []Body
	}{
		{"allowed", "", []Body{called, decide(Allow), start, finish(OutputAvailable), ended}},
		{"approved", "", []Body{called, decide(Ask), ask(), resolve(Approved), start, finish(OutputError), ended}},
		{"denied", "", []Body{called, decide(Ask), ask(), resolve(Denied), finish(OutputDenied), ended}},
		{"never parsed", "", []Body{called, finish(OutputError), ended}},
		{"late showing", "", []Body{called, ask(), resolve(Denied), finish(OutputDenied), ended, &ApprovalShown{Approval: "a"}}},
		{"nobody allowed it", "nobody allowed", []Body{called, start}},
		{"policy denied it", "nobody allowed", []Body{called, decide(Deny), start}},
		{"nobody answered", "nobody allowed", []Body{called, decide(Ask), ask(), start}},
		{"a person denied it", "nobody allowed", []Body{called, decide(Ask), ask(), resolve(Denied), start}},
		{"other bytes", "not what was approved", []Body{called, decide(Ask), ask(), resolve(Approved), &ToolStarted{Digest: digest("{ }")}}},
		{"other digest", "not that of its arguments", []Body{called, &ApprovalRequested{Approval: "a", Arguments: "{}", Digest: digest("[]")}}},
		{"asked after a decision", "whose decision was deny", []Body{called, decide(Deny), ask()}},
		{"asked after the end", "has started or ended", []Body{called, finish(OutputError), ask()}},
		{"resolved, not asked", "nobody asked for", []Body{called, resolve(Approved)}},
		{"voted, not asked", "nobody asked for", []Body{called, &ApprovalVoted{Approval: "a"}}},
		{"no end", "no end", []Body{called, finish(InputAvailable)}},
		{"output of nothing", "never started", []Body{called, finish(OutputAvailable)}},
		{"call left open", `before its call "c"`, []Body{called, ended}},
		{"ask left open", "still asked", []Body{called, ask(), finish(OutputDenied), ended}},
		{"same call again", "made before", []Body{called, called}},
		{"asked again and shortened", "", []Body{&ModelFailed{}, &SessionCompacted{SampledFrom: 1}, called, finish(OutputError), &ModelFailed{}, ended}},
		{"asked before a call ended", `asked before the call "c"`, []Body{called, &ModelFailed{}}},
		{"shortened before a call ended", `shortened before the call "c"`, []Body{called, &SessionCompacted{}}},
		{"after the end", "has ended before", []Body{ended, called}},
		{"by a grant", "", []Body{given(1), called, by(1), start, finish(OutputAvailable), ended}},
		{"by a grant that nobody gave", "nobody gave", []Body{called, by(1)}},
		{"a revoked grant", "was revoked", []Body{given(1), &GrantRevoked{Grant: "g"}, called, by(1)}},
		{"revoked, not given", "nobody gave", []Body{&GrantRevoked{Grant: "g"}}},
		{"a grant used up", "for the time 2", []Body{given(1), called, by(2)}},
		{"a grant that denies", "decides deny", []Body{given(1), called, &PermissionDecided{Type: Deny, Tool: "t", Grant: "g", GrantUse: 1}}},
		{"another tool's grant", "another tool", []Body{given(1), called, &PermissionDecided{Type: Allow, Tool: "u", Grant: "g", GrantUse: 1}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			l := mustOpen(t, t.TempDir())
			for _, b := range append([]Body{&RunStarted{}}, tt.run...) {
				call := "c"
				mustAppend(t, l, ev(call, b))
			}
			report, err := l.Verify(t.Context(), VerifyOptions{})
			if err != nil {
				t.Fatal(err)
			}
			switch {
			case tt.want == "" && !report.OK():
				t.Error(report.Problem)
			case tt.want != "" && (report.OK() || report.Problem.Kind != BadRun || !strings.Contains(report.Problem.What, tt.want)):
				t.Errorf("got %v, want %q", report.Problem, tt.want)
			case tt.want != "" && report.Problem.Seq != int64(len(tt.run)+1):
				t.Errorf("problem in row %d, want the last one", report.Problem.Seq)
			}
		})
	}
}

func TestVerifyAsksTheCaller(t *testing.T) {
	dir := t.TempDir()
	told(t, dir)
	report := verify(t, dir, VerifyOptions{Check: func(e Event) error {
		if e.Kind() == "tool_started" {
			return errors.New("not so")
		}
		return nil
	}})
	if p := report.Problem; p == nil || p.Seq != 9 || p.Kind != BadCheck || p.What != "not so" || report.Rows != 8 {
		t.Errorf("%+v %v", report, p)
	}
}

// TestVerifyWhileWriting: what is written since it began is no problem.
func TestVerifyWhileWriting(t *testing.T) {
	l := mustOpen(t, t.TempDir())
	var runs []Event
	for i := range pageRows + 50 {
		runs = append(runs, Event{Run: fmt.Sprint(i), Actor: System, Body: &RunStarted{}})
	}
	mustAppend(t, l, runs...)
	n := 0
	report, err := l.Verify(t.Context(), VerifyOptions{Progress: func(_, _ int64) {
		for range 10 {
			mustAppend(t, l, once(fmt.Sprint(n), ""))
			n++
		}
	}})
	if err != nil || !report.OK() || report.Total != pageRows+50 {
		t.Error(report.Problem, err)
	}
	whole(t, l.Reader)
}

func TestVerifyEnds(t *testing.T) {
	l := mustOpen(t, t.TempDir())
	ctx, cancel := context.WithCancel(t.Context())
	mustAppend(t, l, once("r", ""))
	if _, err := l.Verify(ctx, VerifyOptions{Progress: func(_, _ int64) { cancel() }}); !errors.Is(err, context.Canceled) {
		t.Error("canceled:", err)
	}
	if _, err := l.Verify(t.Context(), VerifyOptions{Progress: func(_, _ int64) { go l.Close(); <-l.done }}); !errors.Is(err, ErrClosed) {
		t.Error("closed:", err)
	}
}
