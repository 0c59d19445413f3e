package main

import (
	"strings"
	"testing"

	"approvalbot/internal/ledger"
	"approvalbot/internal/policy"
	"approvalbot/internal/tools"
)

// Commands that only look run unasked only if the operator says so, and only in a shell that is confined: also where the
// shell is chosen after the settings were read.
func TestReadOnlyCommandsNeedConfinement(t *testing.T) {
	for _, tt := range []struct{ shell, value, wrong string }{
		{"unconfined", "allow", "needs APPROVALBOT_SHELL=confined"},
		{"off", "allow", "needs APPROVALBOT_SHELL=confined"},
		{"unconfined", "maybe", "want one of ask, allow"},
		{"unconfined", "ask", ""},
	} {
		t.Setenv("APPROVALBOT_SHELL", tt.shell)
		t.Setenv("APPROVALBOT_SHELL_READONLY", tt.value)
		_, err := readSettings()
		switch {
		case tt.wrong == "" && err != nil:
			t.Errorf("%s, %q: %v", tt.shell, tt.value, err)
		case tt.wrong != "" && (err == nil || !strings.Contains(err.Error(), tt.wrong)):
			t.Errorf("%s, %q: the error is %v, want %q", tt.shell, tt.value, err, tt.wrong)
		}
	}

	look := policy.Call{Tool: "shell", Destructive: true, OpenWorld: true, ReadOnlyCommand: true}
	for shell, allowed := range map[tools.ShellMode]bool{"": false, tools.ShellOff: false, tools.ShellUnconfined: false, tools.ShellConfined: true} {
		plain, err := policy.New(policy.OnRequest, policy.WorkspaceWrite)
		if err != nil {
			t.Fatal(err)
		}
		s := &Settings{Shell: shell, ShellReadOnly: allowReadOnly}
		if err := s.readOnlyCommands(); (err == nil) != allowed {
			t.Errorf("allow, shell %q: %v", shell, err)
		}
		if !s.withReadOnlyCommands(plain).Decide(look).Allowed() {
			t.Error("allow: it is not allowed")
		}
		s.ShellReadOnly = askReadOnly
		if err := s.readOnlyCommands(); err != nil || s.withReadOnlyCommands(plain).Decide(look).Allowed() {
			t.Errorf("ask, shell %q: %v", shell, err)
		}
	}
}

// The card names the programs that a command runs, and says where it can't name all.
func TestCardNamesThePrograms(t *testing.T) {
	inWorld(t, nil, func(w *world) {
		thread := w.ask("alice", "`env LANG=C touch x && /bin/rm x` and `eval \"touch y\"`")
		for words, want := range map[string]string{
			"env LANG=C": "Runs: env, touch, /bin/rm.",
			"eval":       "Runs at least: eval. It can't be told in full which programs this runs: eval runs what its arguments or its input tell it to.",
		} {
			if c := w.cardOf(thread, words); !strings.Contains(c.text, want) {
				t.Errorf("the card doesn't say %q: %s", want, c.text)
			}
		}
	})
}

// In a confined shell, where the operator says so, nobody is asked about a command that only looks, and the system keeps
// it in the workspace; about every other people are asked as ever.
func TestReadOnlyCommandsRunUnasked(t *testing.T) {
	mustConfine(t)
	inWorld(t, func(s *Settings) { s.Shell, s.ShellReadOnly = tools.ShellConfined, allowReadOnly }, func(w *world) {
		thread := w.ask("alice", "`ls -la` and `ls -la; pwd` and `cat ../journal/journal.db`")
		if cards := w.cards(thread); len(cards) != 2 {
			t.Errorf("%d cards, want one for the second command and one for the third: %v", len(cards), cards)
		}
		for _, c := range w.lastRun().Calls {
			want := ledger.ApprovalRequest
			if strings.Contains(c.Arguments, `"ls -la"`) {
				want = ledger.OutputAvailable
			}
			if c.State != want {
				t.Errorf("%s is %s, want %s", c.Arguments, c.State, want)
			}
		}
	})
}
