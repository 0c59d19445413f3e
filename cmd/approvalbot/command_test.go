package main

import (
	"strings"
	"testing"

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
