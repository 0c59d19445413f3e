package main

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"approvalbot/internal/agent"
	"approvalbot/internal/audit"
	"approvalbot/internal/ledger"
	"approvalbot/internal/redact"
)

const (
	// Made up, with what every encoding writes differently.
	envSecret  = `made-up/env+"secret"'s & 1234567`
	fileSecret = `made-up-file-secret-89abcdef`
)

// leaky is an action whose program prints its secrets in every way it can think of, and passes its input on to a file.
const leaky = `actions:
  - name: publish
    description: Publish a version.
    inputs:
      version: {type: string, maxLength: 200}
      note: {type: string}
    optional: [note]
    run:
      - sh
      - -c
      - |
        for s in "$ENV_SECRET" "$FILE_SECRET"; do
          printf '%%s\n' "$s" "x${s}y"
          printf '%%s' "$s" | base64
          printf 'user:%%s' "$s" | base64 | tr -d '\n'; echo
          printf '%%s' "$s" | od -An -v -tx1
          printf '%%s' "$s" | od -An -v -tx1 | tr -d ' \n'; echo
        done
        cat "$ENCODED"
        head -c 40000 /dev/zero | tr '\0' '.'
        printf '%%s\n' "$FILE_SECRET"
        head -c 40000 /dev/zero | tr '\0' '.'
        printf '%%s\n' "$@" > "$OUT"
        printf '%%s' "${FILE_SECRET%%??}"
        exit 3
      - publish
      - --
      - "{{version}}"
      - ["--note={{note}}"]
    dir: %[1]q
    env: {OUT: %[1]s/out, ENCODED: %[1]s/encoded}
    secrets:
      ENV_SECRET: {from_env: MADE_UP_SECRET}
      FILE_SECRET: {from_file: %[1]s/secret}
    timeout: 20s
    risk: high
    summary: Publish {{version}}
    exit_codes: {3: nothing changed}
`

// leakyFile writes the file of the action, and what it needs.
func leakyFile(t *testing.T) (file, dir string) {
	t.Helper()
	dir = t.TempDir()
	t.Setenv("MADE_UP_SECRET", envSecret)
	inJSON, err := json.Marshal(map[string]string{"a": envSecret, "b": fileSecret})
	if err != nil {
		t.Fatal(err)
	}
	encoded := fmt.Sprintf("%s\n%s\n%s\n", inJSON, url.QueryEscape(envSecret), url.PathEscape(envSecret))
	file = filepath.Join(dir, "actions.yaml")
	for name, text := range map[string]string{
		"secret": fileSecret + "\n", "encoded": encoded, "actions.yaml": fmt.Sprintf(leaky, dir),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return file, dir
}

// mustHide looks for a secret in what was said, as it is and encoded.
func mustHide(t *testing.T, where, text string) {
	t.Helper()
	blanks := strings.NewReplacer(" ", "", "\n", "", "\t", "")
	for _, secret := range []string{envSecret, fileSecret} {
		quoted, _ := json.Marshal(secret) // a string: it can't fail
		for name, form := range map[string]string{
			"the secret": secret, "JSON": strings.Trim(string(quoted), `"`), "base64": base64.StdEncoding.EncodeToString([]byte(secret)),
			"base64 of more": base64.StdEncoding.EncodeToString([]byte("user:" + secret))[8:], "hex": hex.EncodeToString([]byte(secret)),
			"query": url.QueryEscape(secret), "path": url.PathEscape(secret), "half": secret[:len(secret)/2],
		} {
			form = form[:len(form)*4/5] // a large part is too much
			if strings.Contains(text, form) || strings.Contains(blanks.Replace(text), blanks.Replace(form)) {
				t.Errorf("%s: %s is in it", where, name)
			}
		}
	}
}

// An action runs through its card; and a secret of it is in no card, stream, log, export, report, journal or request to
// the model, whatever its program prints.
func TestActionSecrets(t *testing.T) {
	file, dir := leakyFile(t)
	turns := script(t, `[{"toolCalls":[{"id":"c1","name":"publish","arguments":{"version":"1.2 $(id) '; rm -rf \"","note":"for you"}}]},{"text":"ok"},
		{"toolCalls":[{"id":"c2","name":"publish","arguments":{"version":"2"}}]},{"text":"ok"}]`)
	inWorld(t, func(s *Settings) { s.ActionsFile, s.Model = file, turns }, func(w *world) {
		thread := w.ask("alice", "publish it")
		card := w.card(thread)
		mustSay(t, card.text, "Publish “1.2 $(id) '; rm -rf \"”", "secret ENV_SECRET from the environment (MADE_UP_SECRET)", "secret FILE_SECRET from the file", "Runs in "+dir)
		w.click("bob", card, "approve")
		mustSay(t, w.card(thread).text, "Done in", "nothing changed")
		passed, err := os.ReadFile(filepath.Join(dir, "out"))
		if want := "1.2 $(id) '; rm -rf \"\n--note=for you\n"; err != nil || string(passed) != "--\n"+want && string(passed) != want {
			t.Errorf("it was given %q (%v)", passed, err)
		}
		run := w.lastRun()
		if out := run.Calls[0].Finished.Output; strings.Count(out, "‹secret, ") < 10 || !strings.Contains(out, "bytes left out") {
			t.Errorf("the output was not what this test is about: %.500s", out)
		}
		l := w.client(localToken).listen("GET", "/api/agent/runs/"+run.ID+"/events?after=0", "")
		for _, h := range l.soFar() {
			mustHide(t, "stream", h.raw)
		}
		l.cancel()
		w.everywhere(t, run)
	})
}

// everywhere looks for the secrets in all that the program has said and written.
func (w *world) everywhere(t *testing.T, run *ledger.Run) {
	t.Helper()
	for _, c := range w.ws.Channels {
		messages, err := w.slack.Messages(c.ID, "")
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range messages {
			raw, err := json.Marshal(m)
			if err != nil {
				t.Fatal(err)
			}
			mustHide(t, "Slack", read(m).text+string(raw))
		}
	}
	mustHide(t, "log", w.log.String())
	w.readings(t, run)
	files, err := filepath.Glob(filepath.Join(w.settings.journalDir(), "*"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no journal: %v", err)
	}
	for _, name := range files {
		raw, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		mustHide(t, name, string(raw))
	}
}

// readings looks for the secrets in what is read from the journal.
func (w *world) readings(t *testing.T, run *ledger.Run) {
	t.Helper()
	j, err := ledger.OpenReader(context.Background(), w.settings.journalDir())
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	reading, err := audit.Read(context.Background(), j, run.ID)
	if err != nil {
		t.Fatal(err)
	}
	var export, report, terminal bytes.Buffer
	if _, err := audit.Export(context.Background(), j, &export, audit.ExportOptions{}); err != nil { // with secrets, as it were
		t.Fatal(err)
	}
	if err := audit.Report(&report, reading, redact.New()); err != nil {
		t.Fatal(err)
	}
	if err := audit.Show(&terminal, reading, redact.New(), audit.Style{}); err != nil {
		t.Fatal(err)
	}
	mustHide(t, "export", export.String())
	mustHide(t, "report", report.String())
	mustHide(t, "show", terminal.String())
	var transcript agent.Transcript
	for e, err := range j.Read(context.Background(), 0, ledger.Filter{Session: run.Session}) {
		if err != nil {
			t.Fatal(err)
		}
		if err := transcript.Apply(e); err != nil {
			t.Fatal(err)
		}
	}
	request, err := json.Marshal(transcript.Request())
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Contains(request, []byte("nothing changed")) {
		t.Error("the request is not what this test is about")
	}
	mustHide(t, "request to the model", string(request))
}

// Denied: nothing ran, and the model is told.
func TestActionDenied(t *testing.T) {
	file, dir := leakyFile(t)
	turns := script(t, `[{"toolCalls":[{"id":"c1","name":"publish","arguments":{"version":"1"}}]},{"text":"ok"}]`)
	inWorld(t, func(s *Settings) { s.ActionsFile, s.Model = file, turns }, func(w *world) {
		thread := w.ask("alice", "publish it")
		w.click("bob", w.card(thread), "deny")
		c := w.lastRun().Calls[0]
		if c.State != ledger.OutputDenied || !strings.Contains(c.Finished.Output, "not performed") {
			t.Errorf("%s: %s", c.State, c.Finished.Output)
		}
		if _, err := os.Stat(filepath.Join(dir, "out")); err == nil {
			t.Error("it ran")
		}
	})
}

// An input that would be an option is refused before anybody is asked.
func TestActionRefusesOptions(t *testing.T) {
	file := filepath.Join(t.TempDir(), "actions.yaml")
	text := `actions: [{name: show, description: Show it., inputs: {what: {type: string}}, run: [cat, "{{what}}"]}]`
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	turns := script(t, `[{"toolCalls":[{"id":"c1","name":"show","arguments":{"what":"--help"}}]},{"text":"ok"}]`)
	inWorld(t, func(s *Settings) { s.ActionsFile, s.Model = file, turns }, func(w *world) {
		thread := w.ask("alice", "show it")
		if n := len(w.cards(thread)); n != 0 {
			t.Errorf("%d people were asked", n)
		}
		if c := w.lastRun().Calls[0]; c.State != ledger.OutputError || c.Finished.Code != "INVALID_ARGUMENTS" {
			t.Errorf("%s %s", c.State, c.Finished.Code)
		}
	})
}

// What people approved is the action as it was: one that was changed by then, at a restart, is another.
func TestActionHashCoversTheFile(t *testing.T) {
	dir := t.TempDir()
	hashOf := func(text string) string {
		file := filepath.Join(dir, "actions.yaml")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		var hash string
		inWorld(t, func(s *Settings) { s.ActionsFile = file }, func(w *world) {
			h, ok := w.app.agent.Tools.Set().Hash("a")
			if !ok {
				t.Fatal("there is no such tool")
			}
			hash = h
		})
		return hash
	}
	base := "actions:\n- name: a\n  description: x\n  run: [cat, --, x]\n  timeout: 3s\n"
	if hashOf(base) != hashOf("# another comment\n"+base) {
		t.Error("the same action has two hashes")
	}
	for _, changed := range []string{
		strings.Replace(base, "--, x", "--, y", 1), strings.Replace(base, "cat", "tac", 1), base + "  dir: /tmp\n", base + "  env: {A: b}\n",
		base + "  approvers: [channel]\n", strings.Replace(base, "3s", "4s", 1), base + "  summary: Something else\n",
	} {
		if hashOf(changed) == hashOf(base) {
			t.Errorf("it has the same hash: %s", changed)
		}
	}
}

// What is missing on this machine stops the start, by its name.
func TestActionsStopTheStart(t *testing.T) {
	file := filepath.Join(t.TempDir(), "actions.yaml")
	text := `actions:
  - {name: a, description: x, run: [no-such-program-here], dir: /no/such/dir, secrets: {T: {from_env: MADE_UP_UNSET}, U: {from_file: /no/such/file}}}
`
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	s := Settings{ActionsFile: file}
	_, err := s.openActions(t.TempDir())
	mustSay(t, fmt.Sprint(err), "4 errors", "no program no-such-program-here in PATH", "no directory /no/such/dir", "MADE_UP_UNSET is not set", "/no/such/file can't be read")
	if err := s.check(); err != nil && strings.Contains(err.Error(), "ACTIONS") {
		t.Errorf("the file itself is right: %v", err)
	}
	s.ActionsFile = filepath.Join(t.TempDir(), "none.yaml")
	mustSay(t, fmt.Sprint(s.check()), "APPROVALBOT_ACTIONS_FILE", "none.yaml")
}

// Doctor says of each action what is missing, and names those that are well.
func TestDoctorOfActions(t *testing.T) {
	file, _ := leakyFile(t)
	for _, tt := range []struct {
		file, want string
		failed     int
	}{{"", "", 0}, {file, "✓ actions   publish (from APPROVALBOT_ACTIONS_FILE)", 0}, {"/no/such/file.yaml", "✗ actions   APPROVALBOT_ACTIONS_FILE: /no/such/file.yaml can't be read", 1}} {
		var out strings.Builder
		d := &diagnosis{out: &out}
		d.actions(Settings{ActionsFile: tt.file})
		if d.failed != tt.failed || !strings.HasPrefix(out.String(), tt.want) {
			t.Errorf("%q: %d failed, %s", tt.file, d.failed, out.String())
		}
	}
}

// The file and the files of its secrets are out of reach of the tools.
func TestActionFilesAreProtected(t *testing.T) {
	file, dir := leakyFile(t)
	turns := script(t, `[{"toolCalls":[{"id":"c1","name":"read_file","arguments":{"path":"secret"}},{"id":"c2","name":"read_file","arguments":{"path":"actions.yaml"}},
		{"id":"c3","name":"read_file","arguments":{"path":"encoded"}}]},{"text":"ok"}]`)
	inWorld(t, func(s *Settings) { s.ActionsFile, s.Model, s.Workspace = file, turns, dir }, func(w *world) {
		w.hides = true // the progress shows how what was read begins
		w.ask("alice", "read them")
		for i, want := range []string{"NOT_ALLOWED", "NOT_ALLOWED", ""} {
			if c := w.lastRun().Calls[i]; c.Finished == nil || c.Finished.Code != want {
				t.Errorf("%s ended as %+v", c.ID, c.Finished)
			}
		}
	})
}

// An action that is stopped or takes too long ends with all that it started.
func TestActionTimeLimit(t *testing.T) {
	file := filepath.Join(t.TempDir(), "actions.yaml")
	text := `actions: [{name: wait, description: Wait., run: [sh, -c, "echo begun; sleep 60"], timeout: 1s}]`
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	s := Settings{ActionsFile: file}
	named, err := s.openActions("")
	if err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	_, err = named.Tools()[0].Call(context.Background(), json.RawMessage(`{}`))
	mustSay(t, fmt.Sprint(err), "time limit (1 second)", "partly performed")
	if took := time.Since(began); took > 20*time.Second {
		t.Errorf("it took %s", took)
	}
}

// The check shows each card of the example as it will look, and looks for nothing when the file is for another machine.
func TestActionsCheck(t *testing.T) {
	var out bytes.Buffer
	if err := (actionsCheckCmd{File: "../../deploy/actions.example.yaml", Elsewhere: true, mode: usual}).check(&out); err != nil {
		t.Fatal(err)
	}
	mustSay(t, out.String(), "═══ restart_service", "│ Restart shop-web", "sudo -n systemctl restart shop-web.service", "risk: high", "approvers: channel",
		"secret: GH_TOKEN, from the environment variable SHOP_MERGE_TOKEN: not looked for", "gh pr merge 1234 --repo=acme/shop", "quorum: 2",
		"2 people have to approve", "--dry-run=server", "[Approve] [Deny]", "is fine: 3 actions")
	out.Reset()
	c := actionsCheckCmd{File: "../../deploy/actions.example.yaml", Elsewhere: true, mode: usual, Input: "scale_deployment", Args: `{"environment":"staging","deployment":"x","replicas":2}`}
	if err := c.check(&out); err != nil {
		t.Fatal(err)
	}
	mustSay(t, out.String(), "--replicas=2 -- deployment/x")
	if strings.Contains(out.String(), "restart_service") {
		t.Error("it shows others, too")
	}
	mustSay(t, out.String(), "Who may approve: those of APPROVALBOT_APPROVERS\n")
	if strings.Contains(out.String(), "members of this channel") {
		t.Error("nobody said that the channel approves")
	}
	out.Reset()
	t.Setenv("APPROVALBOT_APPROVERS", "U0MADEUP,S0MADEUP")
	t.Setenv("APPROVALBOT_QUORUM", "2")
	if err := c.check(&out); err != nil {
		t.Fatal(err)
	}
	mustSay(t, out.String(), "Who may approve: @U0MADEUP and @S0MADEUP, but not", "2 people have to approve")
	c.Args = `{"environment":"moon"}`
	mustSay(t, fmt.Sprint(c.check(&out)), "don't fit the schema of scale_deployment")
	c.Input, c.Args = "scale", ""
	mustSay(t, fmt.Sprint(c.check(&out)), "no action scale")
	missing := filepath.Join(t.TempDir(), "actions.yaml")
	rewrite(t, missing, "actions: [{name: a, description: It., run: [no-such-program]}]")
	out.Reset()
	err := actionsCheckCmd{File: missing, mode: usual}.check(&out)
	mustSay(t, fmt.Sprint(err), "not found on this machine (checking a file for another one? --elsewhere): "+missing+", line 1: a: there is no program no-such-program")
	mustSay(t, out.String(), "═══ a")
}

// The check shows what a card offers, as the settings have it, and what has to be typed for what is critical.
func TestActionsCheckShowsWhatCanBeDone(t *testing.T) {
	file := filepath.Join(t.TempDir(), "actions.yaml")
	rewrite(t, file, "actions: [{name: publish, description: Publish a version., inputs: {version: {type: string}}, "+
		"run: [cat, --, '{{version}}'], risk: critical, target: '{{version}}', runs_as: the AWS role deployer, examples: [{version: v1.2}]}]\n")
	check := func() string {
		var out bytes.Buffer
		if err := (actionsCheckCmd{File: file, Elsewhere: true, mode: usual}).check(&out); err != nil {
			t.Fatal(err)
		}
		return out.String()
	}
	t.Setenv("APPROVALBOT_APPROVERS", "channel")
	t.Setenv("APPROVALBOT_MORE_TIME", "0")
	said := check()
	mustSay(t, said, "Edit and Approve…", "Will run as: the AWS role deployer", "\nWhoever approves it has to type: v1.2\n")
	if strings.Contains(said, "Give Me More Time") {
		t.Errorf("the settings give no more time: %s", said)
	}
	t.Setenv("APPROVALBOT_MORE_TIME", "1h")
	mustSay(t, check(), "Give Me More Time")
}
