package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"approvalbot/internal/tools"
)

// What holds commands where nobody said: confinement where it can be had, else what the command falls back to, and why.
func TestShellChoice(t *testing.T) {
	mustConfine(t)
	workspace := t.TempDir()
	for name, tt := range map[string]struct {
		set, fallback tools.ShellMode
		in            string // the current directory, whose .env is ours
		want          tools.ShellMode
		because       string // why commands aren't confined
		wrong         string
	}{
		"nothing said":                        {in: t.TempDir(), want: tools.ShellConfined},
		"nothing said in dev":                 {in: t.TempDir(), fallback: tools.ShellUnconfined, want: tools.ShellConfined},
		"nothing said, and .env in it":        {in: workspace, want: tools.ShellOff, because: ".env, which commands may not reach"},
		"nothing said in dev, and .env in it": {in: workspace, fallback: tools.ShellUnconfined, want: tools.ShellUnconfined, because: ".env, which commands may not reach"},
		"confined":                            {set: tools.ShellConfined, in: t.TempDir(), want: tools.ShellConfined},
		"confined, and .env in it":            {set: tools.ShellConfined, in: workspace, wrong: "APPROVALBOT_SHELL=confined: "},
		"off":                                 {set: tools.ShellOff, fallback: tools.ShellUnconfined, in: workspace, want: tools.ShellOff},
		"unconfined":                          {set: tools.ShellUnconfined, in: workspace, want: tools.ShellUnconfined},
	} {
		t.Run(name, func(t *testing.T) {
			t.Chdir(tt.in)
			s := Settings{Workspace: workspace, DataDir: t.TempDir(), Shell: tt.set, shellFallback: tt.fallback}
			b, err := s.openTools(nil)
			if tt.wrong != "" {
				if err == nil || !strings.Contains(err.Error(), tt.wrong) {
					t.Fatalf("got %v", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			defer b.Close()
			why := ""
			if s.unconfinable != nil {
				why = s.unconfinable.Error()
			}
			if s.Shell != tt.want || !strings.Contains(why, tt.because) || (tt.because == "") != (why == "") {
				t.Errorf("got %s, because %q", s.Shell, why)
			}
			if offered := b.ShellNote() != ""; offered != (tt.want != tools.ShellOff) {
				t.Errorf("a shell is offered: %v, %q", offered, b.ShellNote())
			}
		})
	}
}

// doctor and serve say what holds commands, and what is wrong with the settings of it.
func TestShellIsSaid(t *testing.T) {
	mustConfine(t)
	url, w := localSlack(t)
	good := []string{"SLACK_BOT_TOKEN=" + w.App.BotToken, "SLACK_APP_TOKEN=" + w.App.AppToken, "SLACK_API_URL=" + url + "/api/",
		"APPROVALBOT_MODEL=demo", "APPROVALBOT_APPROVERS=channel"}
	dir := t.TempDir()
	write := filepath.Join(dir, "build")
	if err := os.Mkdir(write, 0o755); err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		environment []string
		code        int
		says        string
	}{
		"nothing":            {nil, 0, "✓ shell     Confined: can write only in the workspace; no network."},
		"what it doesn't":    {nil, 0, "! shell     a confined command can change the mode and the times of any file that approvalbot's own user owns"},
		"more":               {[]string{"APPROVALBOT_SHELL_WRITE=" + write, "APPROVALBOT_SHELL_NETWORK=on"}, 0, "✓ shell     Confined: can write only in the workspace and " + write + "; it can use the network."},
		"unconfined":         {[]string{"APPROVALBOT_SHELL=unconfined"}, 0, "! shell     Not confined"},
		"off":                {[]string{"APPROVALBOT_SHELL=off"}, 0, "! shell     off (APPROVALBOT_SHELL)"},
		"here":               {[]string{"APPROVALBOT_WORKSPACE=" + dir}, 0, "! shell     off: the workspace " + dir + " contains"},
		"here, all the same": {[]string{"APPROVALBOT_WORKSPACE=" + dir, "APPROVALBOT_SHELL=confined"}, 1, "✗ tools     APPROVALBOT_SHELL=confined: the workspace " + dir + " contains"},
		"ours":               {[]string{"APPROVALBOT_SHELL=confined", "APPROVALBOT_SHELL_READ=" + dir}, 1, "which commands may not reach"},
		"relative":           {[]string{"APPROVALBOT_SHELL_READ=build"}, 1, `APPROVALBOT_SHELL_READ: "build" has to be an absolute path`},
		"neither":            {[]string{"APPROVALBOT_SHELL_NETWORK=maybe"}, 1, `APPROVALBOT_SHELL_NETWORK: "maybe" has to be on or off`},
	} {
		said, code := newProgram(t, dir, append(tt.environment, good...), "doctor").output()
		if code != tt.code || !strings.Contains(said, tt.says) {
			t.Errorf("%s: exit code %d, want %q:\n%s", name, code, tt.says, said)
		}
	}
}

// The whole way of an approved command, confined, in fake time: approved, its effect in the workspace, its card; and what
// it may not, told to the model as a command that failed.
func TestConfinedWorld(t *testing.T) {
	mustConfine(t)
	outside := filepath.Join(t.TempDir(), "outside")
	model := script(t, "["+shellCall("c1", "printf 1 > one")+","+shellCall("c2", "printf 2 > "+outside)+`,{"text":"ok"}]`)
	inWorld(t, func(s *Settings) { s.Model, s.Shell = model, tools.ShellConfined }, func(w *world) {
		thread := w.ask("alice", "go")
		w.click("bob", w.card(thread), "approve")
		w.click("bob", w.cardOf(thread, "outside"), "approve")
		if !w.exists("one") {
			t.Error("what it may do wasn't done")
		}
		if _, err := os.Stat(outside); err == nil {
			t.Error("it wrote outside the workspace")
		}
	})
}
