package actions

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"approvalbot/internal/tools"
)

// prepared is the one action of a file, ready to run.
func prepared(t *testing.T, text string, m Machine) *Action {
	t.Helper()
	f := parse(t, text)
	m.Path = os.Getenv("PATH")
	if err := f.Prepare(m); err != nil {
		t.Fatal(err)
	}
	return f.Actions()[0]
}

func call(t *testing.T, a *Action, args string) (tools.Output, *tools.Error) {
	t.Helper()
	canonical, err := tools.ParseArguments(a.Spec(), []byte(args))
	if err != nil {
		t.Fatal(err)
	}
	out, err := a.Call(context.Background(), canonical)
	if err == nil {
		return out, nil
	}
	e, ok := errors.AsType[*tools.Error](err)
	if !ok {
		t.Fatalf("%T: %v", err, err)
	}
	return out, e
}

// What exit statuses mean is the operator's to say.
func TestExitCodes(t *testing.T) {
	a := prepared(t, one(`
inputs: {code: {type: integer}, text: {type: string, default: ""}}
run: [sh, -c, 'printf %s "$2"; exit "$1"', sh, "{{code}}", "x{{text}}"]
exit_codes: {0: done, 3: nothing to do., 4: {failed: the cluster is locked}}
`), Machine{})
	for code, want := range map[string]string{
		"0": "[done (exit status 0)]\nx", "3": "[nothing to do (exit status 3)]\nx",
		"4": "Error [EXIT_STATUS]: It failed: the cluster is locked (exit status 4).\nx",
		"5": "Error [EXIT_STATUS]: The program ended with exit status 5.\nx",
	} {
		out, err := call(t, a, `{"code":`+code+`}`)
		got := out.Text
		if err != nil {
			got = err.Text()
		}
		if got != want {
			t.Errorf("%s: got %q, want %q", code, got, want)
		}
	}
	silent := prepared(t, one(`run: ["true"]`), Machine{})
	if out, err := call(t, silent, `{}`); err != nil || out.Text != "[The program succeeded without output.]" || *out.ExitCode != 0 {
		t.Errorf("%+v %v", out, err)
	}
}

// The environment is made from nothing: none of our variables, HOME not in the workspace, the action's own last.
func TestEnvironment(t *testing.T) {
	t.Setenv("SLACK_BOT_TOKEN", "xoxb-made-up")
	t.Setenv("MADE_UP", "made-up-secret-1")
	w := t.TempDir()
	a := prepared(t, one(`
run: [env]
env: {LANG: C, COLOR: "no"}
secrets: {TOKEN: {from_env: MADE_UP}}
`), Machine{Home: filepath.Join(w, "home"), Workspace: w, TempDir: "/tmp"})
	out, err := call(t, a, `{}`)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(out.Text), "\n")
	slices.Sort(lines)
	want := []string{"COLOR=no", "HOME=/", "LANG=C", "PATH=" + a.place.Env[0][5:], "PWD=/", "TERM=dumb", "TMPDIR=/tmp", "TOKEN=‹secret, 16 characters›"}
	if diff := cmp.Diff(want, lines); diff != "" {
		t.Error(diff)
	}
}

// A rotated secret counts from the next call on; what the old one was stays out of the output, too. One that is gone
// keeps the program from starting, and is named.
func TestRotatedSecret(t *testing.T) {
	dir := t.TempDir()
	file, mark := filepath.Join(dir, "secret"), filepath.Join(dir, "mark")
	write := func(text string) {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("made-up-old-secret\n")
	a := prepared(t, one(fmt.Sprintf(`
run: [sh, -c, 'touch %s; echo "made-up-old-secret"; printf "$T" | wc -c; echo "$T"']
secrets: {T: {from_file: %s}}
`, mark, file)), Machine{})
	write("made-up-new-secret-2\r\n")
	out, err := call(t, a, `{}`)
	if err != nil || strings.Contains(out.Text, "made-up") || !strings.Contains(out.Text, "20") {
		t.Errorf("%q %v", out.Text, err)
	}
	if err := os.Remove(mark); err != nil {
		t.Fatal(err)
	}
	for _, wrong := range []string{"", "abc", "a\x00bcdefg", strings.Repeat("x", maxSecret+1)} {
		write(wrong)
		if _, err := call(t, a, `{}`); err == nil || !strings.Contains(err.Message, "Nothing was started: the secret T of the action a") || len(wrong) > 0 && strings.Contains(err.Message, wrong) {
			t.Errorf("%.20q: %v", wrong, err)
		}
	}
	if _, err := os.Stat(mark); err == nil {
		t.Error("it was started")
	}
}

// A program that comes across another action's secret doesn't tell it either.
func TestSecretsOfOthers(t *testing.T) {
	t.Setenv("MADE_UP", "made-up-secret-1")
	f := parse(t, one("run: [ls]\nsecrets: {T: {from_env: MADE_UP}}")+"  - {name: b, description: x, run: [echo, made-up-secret-1]}\n")
	if err := f.Prepare(Machine{Path: os.Getenv("PATH")}); err != nil {
		t.Fatal(err)
	}
	if out, err := call(t, f.Actions()[1], `{}`); err != nil || out.Text != "‹secret, 16 characters›\n" {
		t.Errorf("%q %v", out.Text, err)
	}
}

// A short secret is told about, a file that everybody can read, too.
func TestAdvice(t *testing.T) {
	file := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(file, []byte("pin-12"), 0o644); err != nil {
		t.Fatal(err)
	}
	f := parse(t, one(`
run: [ls]
secrets: {T: {from_file: `+file+`}}
`))
	if got := fmt.Sprint(f.Advice()); !strings.Contains(got, "less than 8 characters") || !strings.Contains(got, "chmod 600 "+file) || strings.Contains(got, "pin-12") {
		t.Errorf("got %s", got)
	}
}

// No program and no PATH is where the agent can write; a directory there is said to be.
func TestWorkspaceHoldsNoProgram(t *testing.T) {
	w := t.TempDir()
	tool := filepath.Join(w, "tool")
	if err := os.WriteFile(tool, []byte("#!/bin/sh\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(tool, link); err != nil {
		t.Fatal(err)
	}
	for _, program := range []string{tool, link} {
		err := parse(t, one("run: ["+program+"]")).Prepare(Machine{Workspace: w})
		if err == nil || !strings.Contains(err.Error(), "in the workspace, where the agent could change it") {
			t.Errorf("%s: %v", program, err)
		}
	}
	for _, run := range []string{"[" + tool + "]", "[sh, " + link + "]"} { // where commands may write, too
		err := parse(t, one("run: "+run)).Prepare(Machine{Workspace: t.TempDir(), Writable: []string{"/nowhere", w}, Path: os.Getenv("PATH")})
		if err == nil || !strings.Contains(err.Error(), "is in "+w+", where the agent could change it") {
			t.Errorf("%s: %v", run, err)
		}
	}
	if err := parse(t, one("run: [tool]")).Prepare(Machine{Workspace: w, Path: w + ":relative"}); err == nil || !strings.Contains(err.Error(), "no program tool in PATH ("+defaultPath) {
		t.Errorf("got %v", err)
	}
	for _, run := range []string{"[sh, " + tool + "]", "[env, " + link + "]"} {
		err := parse(t, one("run: "+run)).Prepare(Machine{Workspace: w, Path: os.Getenv("PATH")})
		if err == nil || !strings.Contains(err.Error(), "tool is in the workspace") && !strings.Contains(err.Error(), "link is in the workspace") {
			t.Errorf("%s: %v", run, err)
		}
	}
	if err := parse(t, one("run: [sh, tool]\ndir: workspace")).Prepare(Machine{Workspace: w}); err == nil {
		t.Error("a script of the agent's would run")
	}
	if notes := fmt.Sprint(parse(t, one("run: [ls]\ndir: workspace")).Notes()); !strings.Contains(notes, "the agent may have written") {
		t.Errorf("notes: %s", notes)
	}
	a := prepared(t, one("run: [pwd]\ndir: workspace"), Machine{Workspace: w})
	if out, err := call(t, a, `{}`); err != nil || strings.TrimSpace(out.Text) != w {
		t.Errorf("it runs in %q (%v), want %s", out.Text, err, w)
	}
}

// An action that wasn't prepared describes itself, and runs nothing.
func TestNotPrepared(t *testing.T) {
	a := parse(t, one("run: [ls]")).Actions()[0]
	if p, err := a.Describe(json.RawMessage(`{}`)); err != nil || p.Body != "ls" || p.Dir != "/" {
		t.Errorf("%+v %v", p, err)
	}
	if _, err := call(t, a, `{}`); err == nil || err.Code != tools.CodeToolFailed {
		t.Errorf("got %v", err)
	}
	f := parse(t, one("run: [no-such-program-here]"))
	if err := f.Prepare(Machine{}); err == nil {
		t.Fatal("a program was found that isn't there")
	}
	if _, err := call(t, f.Actions()[0], `{}`); err == nil {
		t.Error("what couldn't be prepared runs")
	}
}

// What the operator wants of those who decide, and that they are asked at all.
func TestDemands(t *testing.T) {
	a := parse(t, one(`
run: [ls]
annotations: {readOnlyHint: true, openWorldHint: false, title: Look}
risk: critical
approvers: U0MADEUP, S0MADEUP
quorum: 2
approval_timeout: 15m
confirm: true
`)).Actions()[0]
	want := tools.Demands{Ask: true, Risk: "critical", Approvers: []string{"U0MADEUP", "S0MADEUP"}, Quorum: 2, Timeout: 15 * time.Minute, Confirm: true}
	if diff := cmp.Diff(want, tools.DemandsOf(a)); diff != "" {
		t.Error(diff)
	}
	if s := a.Spec().Annotations; !s.ReadOnly() || s.Destructive() || s.OpenWorld() || s.Title != "Look" {
		t.Errorf("%+v", s)
	}
	plain := parse(t, one("run: [ls]\nrisk: low")).Actions()[0]
	if d := plain.Demands(); d.Ask {
		t.Errorf("%+v", d)
	}
	if s := plain.Spec().Annotations; s.ReadOnly() || !s.Destructive() || !s.OpenWorld() {
		t.Errorf("nothing said means the worst: %+v", s)
	}
}

// A rule reads the programs of an action as it reads those of a command: by name and by path, and through programs that
// run others.
func TestFacts(t *testing.T) {
	for run, want := range map[string]tools.Facts{
		`[kubectl, get, pods]`:          {Programs: []string{"kubectl"}, Parsed: true},
		`[/usr/bin/Kubectl, get, pods]`: {Programs: []string{"/usr/bin/Kubectl", "Kubectl", "/usr/bin/kubectl", "kubectl"}, Parsed: true},
		`[sudo, -n, reboot]`:            {Programs: []string{"sudo", "reboot"}, Parsed: true},
		`[sh, -c, 'rm "$1"', sh, a]`:    {Programs: []string{"sh", "rm"}, Parsed: true},
	} {
		if diff := cmp.Diff(want, tools.FactsOf(parse(t, one("run: "+run)).Actions()[0], json.RawMessage(`{}`))); diff != "" {
			t.Errorf("%s: %s", run, diff)
		}
	}
	for _, run := range []string{`[/bin/bash, -c, "rm -rf x"]`, `[/usr/bin/python3.12, -c, "x()"]`, `[ssh, web1, reboot]`, `[eval, "rm -rf x"]`} {
		if f := tools.FactsOf(parse(t, one("run: "+run)).Actions()[0], json.RawMessage(`{}`)); f.Parsed || len(f.Programs) == 0 {
			t.Errorf("%s: %+v", run, f)
		}
	}
}

// What isn't on the card can't be approved: directory, environment, secrets by name, time limit.
func TestDescribe(t *testing.T) {
	t.Setenv("MADE_UP", "made-up-secret-1")
	a := prepared(t, one(`
inputs: {who: {type: string}}
run: [printf, "%s", "hi {{who}}"]
dir: /tmp
env: {GREETING: "good day", N: 1}
secrets: {A: {from_env: MADE_UP}, MADE_UP: {from_env: MADE_UP}}
timeout: 90s
summary: Greet {{who}}
target: "{{who}}"
`), Machine{})
	p, err := a.Describe(json.RawMessage(`{"who":"Ann"}`))
	if err != nil {
		t.Fatal(err)
	}
	want := tools.Preview{
		Summary: "Greet Ann", Target: "Ann", Kind: tools.KindCommand, Body: a.place.Program + " %s 'hi Ann'", Dir: "/tmp",
		Notes: []string{
			"With the secret A from the environment (MADE_UP) and the secret MADE_UP from the environment.",
			"In its environment: GREETING='good day' and N=1.", "Time limit: 90 seconds.",
		},
	}
	if diff := cmp.Diff(want, p); diff != "" {
		t.Error(diff)
	}
	if text := fmt.Sprint(a.Definition()); strings.Contains(text, "made-up-secret-1") {
		t.Error("the definition holds a secret")
	}
	raw, err := json.Marshal(a.Definition())
	if err != nil || strings.Contains(string(raw), "made-up-secret-1") || !strings.Contains(string(raw), "MADE_UP") {
		t.Errorf("%v: %s", err, raw)
	}
}

// Calls at the same time keep to themselves.
func TestCallsSideBySide(t *testing.T) {
	t.Setenv("MADE_UP", "made-up-secret-1")
	a := prepared(t, one("inputs: {x: {type: integer}}\nrun: [sh, -c, 'echo \"$1 $T\"', sh, \"{{x}}\"]\nsecrets: {T: {from_env: MADE_UP}}"), Machine{})
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			out, err := a.Call(context.Background(), json.RawMessage(fmt.Sprintf(`{"x":%d}`, i)))
			if err != nil || out.Text != fmt.Sprintf("%d ‹secret, 16 characters›\n", i) {
				t.Errorf("%q %v", out.Text, err)
			}
		})
	}
	wg.Wait()
}

// Stopped, it says so; stopped before it began, that nothing happened.
func TestStopped(t *testing.T) {
	a := prepared(t, one(`run: [sleep, "60"]`), Machine{})
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_, err := a.Call(ctx, json.RawMessage(`{}`))
	if e, ok := errors.AsType[*tools.Error](err); !ok || e.Code != tools.CodeAborted || !strings.Contains(e.Message, "before") {
		t.Errorf("got %v", err)
	}
	began := filepath.Join(t.TempDir(), "began")
	if err := unix.Mkfifo(began, 0o600); err != nil {
		t.Fatal(err)
	}
	b := prepared(t, one(`run: [cat, `+began+`]`), Machine{})
	ctx, cancel = context.WithCancel(context.Background())
	defer cancel()
	ended := make(chan error)
	go func() {
		_, err := b.Call(ctx, json.RawMessage(`{}`))
		ended <- err
	}()
	f, err := os.OpenFile(began, os.O_WRONLY, 0) // it waits for the program to read
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	cancel()
	if e, ok := errors.AsType[*tools.Error](<-ended); !ok || e.Code != tools.CodeAborted || !strings.Contains(e.Message, "partly performed") {
		t.Errorf("got %v", e)
	}
}
