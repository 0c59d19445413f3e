package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"approvalbot/internal/ledger"
	"approvalbot/internal/policy"
)

// profiled makes a world with these profiles, in which nothing asks. GENERAL stands for the first channel, DIR for a
// directory, which it returns.
func profiled(t *testing.T, text string) (dir string, change func(w *world)) {
	t.Helper()
	dir = t.TempDir()
	return dir, func(w *world) {
		file := filepath.Join(dir, "profiles.yaml")
		text := strings.NewReplacer("GENERAL", w.general(), "DIR", dir).Replace(text)
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		w.settings.Profiles, w.settings.ApprovalPolicy = file, policy.Never
	}
}

func (w *world) started(n int) *ledger.RunStarted {
	w.t.Helper()
	runs := w.runs()
	if len(runs) <= n || runs[n].Started == nil {
		w.t.Fatalf("there are %d runs", len(runs))
	}
	return runs[n].Started
}

func content(t *testing.T, parts ...string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(parts...))
	if err != nil {
		return "(" + err.Error() + ")"
	}
	return string(text)
}

// Two places at once: each has its directory, its instructions and its model, and sees nothing of the other.
func TestProfiles(t *testing.T) {
	turns := script(t, `[{"text":"I am the script."}]`)
	dir, change := profiled(t, fmt.Sprintf(`
profiles:
  - {name: channel, channels: [GENERAL], workspace: DIR/one, make: true, instructions: Be the one.}
  - {name: personal, direct: true, workspace: DIR/two, make: true, sessions: own, model: '%s'}
`, turns))
	inChangedWorld(t, change, func(w *world) {
		w.ask("alice", "write notes.txt: hello")
		if got := content(t, dir, "one", "notes.txt"); got != "hello" {
			t.Errorf("in the channel's workspace: %q", got)
		}
		if w.exists("notes.txt") {
			t.Error("it was written in the settings' workspace, too")
		}
		if s := w.started(0); s.Profile != "channel" || s.Model != "demo" || !strings.Contains(s.System, "Be the one.") || s.Workspace != filepath.Join(dir, "one") {
			t.Errorf("%+v", s)
		}
		w.write("alice", w.im("alice"), "", "hello")
		s := w.started(1)
		if s.Profile != "personal" || !strings.HasPrefix(s.Model, "script:") || strings.Contains(s.System, "Be the one.") {
			t.Errorf("%+v", s)
		}
		if up := filepath.Dir(s.Workspace); up != filepath.Join(dir, "two") {
			t.Errorf("a conversation works in %s", s.Workspace)
		}
		mustSay(t, w.audit(w.runs()[1].ID), "personal")
	})
}

// Each conversation of a profile with sessions of their own has its directory, and finds it again after a restart.
func TestProfilesWithSessionsOfTheirOwn(t *testing.T) {
	dir, change := profiled(t, `
profiles:
  - {name: own, default: true, workspace: DIR/work, make: true, sessions: own}
`)
	inChangedWorld(t, change, func(w *world) {
		first := w.ask("alice", "write notes.txt: first")
		w.ask("bob", "read notes.txt")
		entries, err := os.ReadDir(filepath.Join(dir, "work"))
		if err != nil || len(entries) != 2 {
			t.Fatalf("%v, %v", entries, err)
		}
		if info, err := entries[0].Info(); err != nil || info.Mode().Perm() != 0o700 {
			t.Errorf("%v, %v", info.Mode(), err)
		}
		w.stop()
		w.start()
		w.mention("alice", first, "read notes.txt")
		runs := w.runs()
		if got := runs[2].Calls[0].Finished.Output; !strings.Contains(got, "first") {
			t.Errorf("after the restart it reads %q", got)
		}
		if got := runs[1].Calls[0].Finished.Output; strings.Contains(got, "first") {
			t.Errorf("another conversation reads %q", got)
		}
	})
}

// A workspace that has gone ends the run with a sentence, and nothing else is used instead. So does a directory that
// somebody has put a link in the place of.
func TestProfilesThatCantBeUsed(t *testing.T) {
	dir, change := profiled(t, `
profiles:
  - {name: channel, channels: [GENERAL], workspace: DIR/one, make: true}
  - {name: personal, direct: true, workspace: DIR/two, make: true, sessions: own}
`)
	inChangedWorld(t, change, func(w *world) {
		if err := os.WriteFile(filepath.Join(dir, "one"), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		thread := w.ask("alice", "write notes.txt: hello")
		run := w.runs()[0]
		if run.Finished == nil || run.Finished.Code != "PROFILE_UNUSABLE" || len(run.Rounds) != 0 || w.exists("notes.txt") {
			t.Fatalf("%+v", run.Finished)
		}
		said := w.thread(thread)
		mustSay(t, said[len(said)-1].text, "the workspace of the profile channel is not there")

		first := w.write("alice", w.im("alice"), "", "hello")
		own := w.started(1).Workspace
		if err := os.RemoveAll(own); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(t.TempDir(), own); err != nil {
			t.Fatal(err)
		}
		w.stop()
		if err := os.Remove(filepath.Join(dir, "one")); err != nil { // else it doesn't start
			t.Fatal(err)
		}
		w.start()
		w.write("alice", w.im("alice"), first, "write notes.txt: hello")
		runs := w.runs()
		if last := runs[len(runs)-1]; last.Finished == nil || last.Finished.Code != "PROFILE_UNUSABLE" {
			t.Errorf("%+v", last.Finished)
		}
	})
}

// A profile can only be stricter than the settings, and its files are out of the tools' reach.
func TestProfilesOnlyTighten(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "profiles.yaml")
	for text, want := range map[string]string{
		"profiles: [{name: a, default: true, approval_policy: never}]":           "weaker than APPROVALBOT_APPROVAL_POLICY=on_request",
		"profiles: [{name: a, default: true, sandbox: danger_full_access}]":      "weaker than APPROVALBOT_SANDBOX=workspace_write",
		"profiles: [{name: a, default: true, model: nobody/knows}]":              "model",
		"profiles: [{name: a, default: true, approval_policy: strict}]":          "",
		"profiles: [{name: a, default: true, instructions_file: notes.txt}]":     "",
		"profiles: [{name: a, default: true, workspace: ., sandbox: read_only}]": "",
	} {
		if err := os.WriteFile(filepath.Join(dir, "notes.txt"), []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		s := Settings{Profiles: file, ApprovalPolicy: policy.OnRequest, Sandbox: policy.WorkspaceWrite}
		_, err := s.profileFile()
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
		if strings.Contains(text, "notes.txt") {
			mustSay(t, strings.Join(s.protected(), "\n"), file, filepath.Join(dir, "notes.txt"))
		}
	}
}

// A stricter profile asks where the settings don't.
func TestProfilesAreStricter(t *testing.T) {
	_, change := profiled(t, `
profiles:
  - {name: channel, channels: [GENERAL], approval_policy: strict}
`)
	inChangedWorld(t, change, func(w *world) {
		thread := w.ask("alice", "read README.md")
		w.click("bob", w.card(thread), "deny")
		w.write("alice", w.im("alice"), "", "write notes.txt: hello")
		if !w.exists("notes.txt") {
			t.Error("elsewhere it asks, too")
		}
	})
}

// What stands in a workspace's place is what a run works in, though another one was open before.
func TestProfilesWithANewDirectory(t *testing.T) {
	dir, change := profiled(t, `
profiles:
  - {name: channel, channels: [GENERAL], workspace: DIR/one, make: true}
`)
	inChangedWorld(t, change, func(w *world) {
		w.ask("alice", "write notes.txt: first")
		if err := os.Rename(filepath.Join(dir, "one"), filepath.Join(dir, "old")); err != nil {
			t.Fatal(err)
		}
		w.ask("alice", "write notes.txt: second")
		if got := content(t, dir, "one", "notes.txt") + ", " + content(t, dir, "old", "notes.txt"); got != "second, first" {
			t.Errorf("now and before: %s", got)
		}
		if err := os.RemoveAll(filepath.Join(dir, "one")); err != nil {
			t.Fatal(err)
		}
		w.ask("alice", "write notes.txt: third")
		if got := content(t, dir, "one", "notes.txt"); got != "third" {
			t.Errorf("after it was removed: %s", got)
		}
	})
}

// A run that works when its workspace is replaced ends in its own; nothing is left open after it.
func TestProfilesReplacedMeanwhile(t *testing.T) {
	dir, change := profiled(t, `
profiles:
  - {name: channel, channels: [GENERAL], workspace: DIR/one, make: true, approval_policy: strict}
`)
	inChangedWorld(t, change, func(w *world) {
		first := w.ask("alice", "write notes.txt: first")
		if err := os.Rename(filepath.Join(dir, "one"), filepath.Join(dir, "old")); err != nil {
			t.Fatal(err)
		}
		second := w.ask("alice", "write notes.txt: second")
		w.click("bob", w.card(second), "approve")
		w.click("bob", w.card(first), "approve")
		if got := content(t, dir, "one", "notes.txt"); got != "second" {
			t.Errorf("in the new one: %s", got)
		}
		if n := len(w.app.profiles.parted); n != 0 {
			t.Errorf("%d are kept open", n)
		}
	})
}

// Nobody works in a directory around a profile's.
func TestProfilesBesideTheSettings(t *testing.T) {
	dir := t.TempDir()
	for text, wrong := range map[string]bool{
		"profiles: [{name: a, direct: true, workspace: work/a, make: true}]":                           true,
		"profiles: [{name: a, direct: true, workspace: .}]":                                            true,
		"profiles: [{name: a, direct: true, workspace: work, make: true, sessions: own}]":              true,
		"profiles: [{name: a, direct: true, workspace: work, make: true}]":                             false,
		"profiles: [{name: a, direct: true, workspace: other, make: true}]":                            false,
		"profiles: [{name: a, default: true, workspace: work/a, make: true}]":                          false, // nobody works in the settings'
		"profiles: [{name: a, default: true, workspace: work/a, make: true}, {name: b, direct: true}]": true,
	} {
		file := filepath.Join(dir, "profiles.yaml")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		s := Settings{Profiles: file, ApprovalPolicy: policy.OnRequest, Sandbox: policy.WorkspaceWrite, Workspace: filepath.Join(dir, "work")}
		if _, err := s.profileFile(); (err != nil) != wrong || wrong && !strings.Contains(err.Error(), "lie one in the other") {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// Both commands take the file in the same way: from the command line, the environment, or .env.
func TestProfilesCommandsTakeTheFile(t *testing.T) {
	dir := t.TempDir()
	rewrite(t, filepath.Join(dir, "p.yaml"), "profiles: [{name: mine, default: true}]\n")
	rewrite(t, filepath.Join(dir, "wrong.yaml"), "profiles: 1\n")
	said, code := newProgram(t, dir, nil, "profiles", "show").output()
	if code == 0 {
		t.Error("shown without a file")
	}
	mustSay(t, said, "which file?", "APPROVALBOT_PROFILES")
	rewrite(t, filepath.Join(dir, ".env"), "APPROVALBOT_PROFILES=p.yaml\n")
	for _, args := range [][]string{{"profiles", "check"}, {"profiles", "show"}, {"profiles", "check", "p.yaml"}, {"profiles", "show", "p.yaml", "--channel", "C1"}} {
		if said, code := newProgram(t, dir, nil, args...).output(); code != 0 || !strings.Contains(said, "mine: everywhere else") {
			t.Errorf("%v: %d %s", args, code, said)
		}
		if said, code := newProgram(t, dir, nil, append(args[:2:2], "wrong.yaml")...).output(); code == 0 {
			t.Errorf("%v: the file that was named doesn't count: %s", args, said)
		}
	}
}
