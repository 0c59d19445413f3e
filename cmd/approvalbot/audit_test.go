package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"approvalbot/internal/agent"
	"approvalbot/internal/approvals"
	"approvalbot/internal/audit"
	"approvalbot/internal/ledger"
	"approvalbot/internal/redact"
)

// The same denial, read from the journal, the transcript, Slack, the terminal, the report and the export: one state, one
// source and one reason, under one toolCallId.
func TestOneDenialEverywhere(t *testing.T) {
	inWorld(t, nil, func(w *world) {
		thread := w.ask("alice", proof)
		w.click("bob", w.card(thread), "deny")
		w.pass(10 * time.Second)

		run := w.runs()[0]
		c := run.Calls[0]
		if c.State != ledger.OutputDenied || c.Finished.Source != ledger.SourceUser || !strings.Contains(c.Finished.Reason, "bob") {
			t.Fatalf("journal: %s (%s): %s", c.State, c.Finished.Source, c.Finished.Reason)
		}
		denial := []string{c.ID, "output-denied", "user", c.Finished.Reason}
		j := w.app.journal
		reading, err := audit.Read(context.Background(), j.Reader, run.ID)
		if err != nil {
			t.Fatal(err)
		}

		result := resultOf(t, reading.Transcript, c.ID)
		if !strings.HasPrefix(result, "Error [APPROVAL_DENIED]: "+c.Finished.Reason) || !reading.Transcript.Seen(run.ID, c.ID) {
			t.Errorf("transcript: %s", result)
		}
		card := w.card(thread)
		mustSay(t, card.text, "enied by", w.user("bob"), "Not performed")

		var terminal, page bytes.Buffer
		if err := errors.Join(audit.Show(&terminal, reading, redact.New(), audit.Style{}), audit.Report(&page, reading, redact.New())); err != nil {
			t.Fatal(err)
		}
		mustSay(t, terminal.String(), denial...)
		mustSay(t, endingOnPage(page.String()), denial...)
		got := exported(t, j.Reader, c.ID)
		mustSay(t, strings.Join(got, "\n"), denial...)
	})
}

// resultOf is the one result that the model gets for a call.
func resultOf(t testing.TB, tr *agent.Transcript, call string) string {
	t.Helper()
	var all []string
	for _, m := range tr.Request().Messages {
		for _, r := range m.Results {
			if r.ToolCallID == call {
				all = append(all, r.Text)
			}
		}
	}
	if len(all) != 1 {
		t.Fatalf("%d results for %s", len(all), call)
	}
	return all[0]
}

// endingOnPage is what the report lists under a call: state, source, reason, id.
func endingOnPage(page string) string {
	m := regexp.MustCompile(`(?s)<dl class="ending">.*?</dl>`).FindString(page)
	return regexp.MustCompile(`<[^>]*>`).ReplaceAllString(m, "\n")
}

// exported are the fields of the event in an export that ends a call.
func exported(t testing.TB, j *ledger.Reader, call string) []string {
	t.Helper()
	var out bytes.Buffer
	if _, err := audit.Export(context.Background(), j, &out, audit.ExportOptions{Redactor: redact.New()}); err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(out.String()) {
		var e struct {
			ToolCallID, Kind string
			Body             struct{ State, Source, Reason string }
		}
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			t.Fatal(err)
		}
		if e.Kind == "tool_finished" && e.ToolCallID == call {
			return []string{e.ToolCallID, e.Body.State, e.Body.Source, e.Body.Reason}
		}
	}
	t.Fatal("the end of the call isn't in the export")
	return nil
}

// Old runs are erased while the bot is stopped. It starts again, the conversation goes on, an old message isn't worked off
// again, and everything still verifies.
func TestPrunedAndStartedAgain(t *testing.T) {
	inWorld(t, nil, func(w *world) {
		thread := w.ask("alice", proof)
		w.click("bob", w.card(thread), "deny")
		w.pass(10 * time.Second)
		old := w.runs()[0]
		w.stop()
		p, err := ledger.Prune(context.Background(), w.settings.journalDir(), ledger.PruneOptions{Before: time.Now(), By: operator()})
		if err != nil || p.Runs != 1 {
			t.Fatalf("%+v %v", p, err)
		}
		if said := w.audit(old.ID); !strings.Contains(said, "was erased") || strings.Contains(said, "proof") {
			t.Errorf("audit show of an erased run:\n%s", said)
		}
		w.start()
		// What comes for it now finds nothing that could be decided, stopped or started.
		by := ledger.Actor{Kind: ledger.ActorUser, Team: w.ws.Team.ID, ID: w.user("alice"), Name: "alice"}
		if err := w.app.agent.Stop(context.Background(), old.ID, by); !errors.Is(err, agent.ErrNotRunning) {
			t.Errorf("stop: %v", err)
		}
		_, err = w.app.approvals.Resolve(context.Background(), approvals.Key{Run: old.ID, Call: old.Calls[0].ID}, approvals.Decision{Type: ledger.Approved, By: by})
		if !errors.Is(err, approvals.ErrNotFound) {
			t.Errorf("approve: %v", err)
		}
		_, err = w.app.journal.Append(context.Background(), ledger.Event{Session: old.Session, Run: old.ID, Call: old.Calls[0].ID, Actor: ledger.System,
			Body: &ledger.ToolStarted{Tool: "shell"}})
		if _, ok := errors.AsType[*ledger.ConflictError](err); !ok {
			t.Errorf("an erased call could start: %v", err)
		}
		w.mention("alice", thread, proof)
		w.click("bob", w.cards(thread)[1], "approve")
		if !w.exists("proof.txt") {
			t.Error("the conversation doesn't go on")
		}
		if n := len(w.runs()); n != 1+1 {
			t.Errorf("%d runs", n)
		}
	})
}

// A backup that is made while people are asked is a journal that recovers: the ask is over, and the card says so.
func TestBackupWhileAsking(t *testing.T) {
	inWorld(t, nil, func(w *world) {
		thread := w.ask("alice", proof)
		file := filepath.Join(w.dir, "backup.db")
		report, err := w.app.journal.Backup(context.Background(), file, ledger.VerifyOptions{})
		if err != nil || report.OpenRuns != 1 {
			t.Fatalf("%+v %v", report, err)
		}
		w.click("bob", w.card(thread), "deny")
	})
}

func TestParseMoment(t *testing.T) {
	now := time.Date(2026, 3, 31, 12, 0, 0, 0, time.FixedZone("", 3600))
	for s, want := range map[string]string{
		"2026-03-04":                "2026-03-04T00:00:00Z",
		"2026-03-04T09:30:00Z":      "2026-03-04T09:30:00Z",
		"2026-03-04T09:30:00+02:00": "2026-03-04T07:30:00Z",
		"2026-03-04 09:30":          "2026-03-04T09:30:00Z",
		"30d":                       "2026-03-01T11:00:00Z",
		"90m":                       "2026-03-31T09:30:00Z",
		"0d":                        "2026-03-31T11:00:00Z",
	} {
		if got, err := parseMoment(s, now); err != nil || got.Format(time.RFC3339) != want {
			t.Errorf("%s: %s %v, want %s", s, got.Format(time.RFC3339), err, want)
		}
	}
	for _, bad := range []string{"", "yesterday", "-1h", "d", "-3d", "2026-13-01", "1e9d", "99999999d"} {
		if got, err := parseMoment(bad, now); err == nil {
			t.Errorf("%q is read as %s", bad, got)
		}
	}
}

func FuzzParseMoment(f *testing.F) {
	f.Add("30d")
	f.Add("2026-03-04T09:30:00Z")
	f.Fuzz(func(t *testing.T, s string) {
		got, err := parseMoment(s, time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
		if err == nil && got.Location() != time.UTC {
			t.Error(got)
		}
	})
}

// A file is there whole, or as it was before.
func TestWriteTo(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "out")
	write := func(s string, err error) error {
		return writeTo(file, func(w io.Writer) error {
			if _, err := io.WriteString(w, s); err != nil {
				return err
			}
			return err
		})
	}
	if err := write("one", nil); err != nil {
		t.Fatal(err)
	}
	failed := errors.New("half way")
	if err := write("tw", failed); !errors.Is(err, failed) || !strings.Contains(err.Error(), file) {
		t.Error(err)
	}
	data, err := os.ReadFile(file)
	if err != nil || string(data) != "one" {
		t.Errorf("%q %v", data, err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 1 {
		t.Errorf("left behind: %v %v", left, err)
	}
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Error(info.Mode(), err)
	}
}

// Who looks for the journal in the wrong directory is shown the one that is near.
func TestNoJournalHere(t *testing.T) {
	dir := t.TempDir()
	open := func() error {
		_, err := (&auditCmd{DataDir: dir}).open(t.Context())
		return err
	}
	if err := open(); !errors.Is(err, ledger.ErrNoJournal) || !strings.HasSuffix(err.Error(), "--data-dir says where the bot keeps its data (dev: data/dev)") {
		t.Errorf("nowhere: %v", err)
	}
	dev := filepath.Join(dir, "dev")
	j, err := ledger.Open(t.Context(), filepath.Join(dev, "journal"), ledger.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	if err := open(); !errors.Is(err, ledger.ErrNoJournal) || !strings.HasSuffix(err.Error(), "--data-dir "+dev) {
		t.Errorf("of dev: %v", err)
	}
}

// doctor says what is wrong once, whatever else it keeps from working, and marks only what is wrong or wants a look.
func TestDoctorSaysItOnce(t *testing.T) {
	var out bytes.Buffer
	d := &diagnosis{out: &out}
	d.check("settings", "", errors.New("no file"))
	d.check("actions", "", errors.New("no file"))
	d.check("journal", "", errors.New("no disk"))
	d.tell("policy", "hash 1")
	if want := "✗ settings  no file\n✗ journal   no disk\n· policy    hash 1\n"; out.String() != want || d.failed != 2 {
		t.Errorf("%d failed:\n%s", d.failed, out.String())
	}
}

// What is well isn't said of what something is wrong with.
func TestDoctorDoesNotPraiseAFault(t *testing.T) {
	var out bytes.Buffer
	d := &diagnosis{out: &out}
	d.check("policy", "", errors.New("nobody"))
	d.check("policy", "2 rules", nil)
	if want := "✗ policy    nobody\n· policy    2 rules\n"; out.String() != want || d.failed != 1 {
		t.Errorf("%d failed:\n%s", d.failed, out.String())
	}
}

// Beside a bot that runs, doctor asks it how its journal is.
func TestDoctorBesideARunningBot(t *testing.T) {
	dir := t.TempDir()
	p := newProgram(t, dir, nil, "dev", "--slack-addr", "127.0.0.1:0", "--api-addr", "127.0.0.1:0", "--data-dir", "data")
	out, err := p.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	for lines := bufio.NewScanner(out); lines.Scan() && lines.Text() != "ready"; {
	}
	said, _ := newProgram(t, dir, []string{"APPROVALBOT_MODEL=demo"}, "doctor").output()
	mustSay(t, said, "✓ journal   "+filepath.Join(dir, "data", "journal")+" is in use by the bot that is running, and well")
	if err := p.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if err := p.Wait(); err != nil {
		t.Error(err)
	}
}

func TestCounted(t *testing.T) {
	if got := counted(1, "run") + ", " + counted(int64(2), "run") + ", " + bodies(1) + ", " + bodies(0); got != "1 run, 2 runs, 1 body, 0 bodies" {
		t.Error(got)
	}
}

func TestExitCode(t *testing.T) {
	broken := &audit.BrokenError{Report: ledger.Report{Problem: &ledger.Problem{Seq: 3, What: "its body was changed"}}}
	if exitCode(errors.New("other")) != 1 || exitCode(errors.Join(broken, errors.New("and more"))) != 2 {
		t.Error("statuses are wrong")
	}
}
