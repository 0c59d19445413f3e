package main

import (
	"errors"
	"fmt"

	"approvalbot/internal/policy"
	"approvalbot/internal/tools"
)

// readOnlyCommands says whether people are asked about commands that only look.
type readOnlyCommands string

const (
	askReadOnly   readOnlyCommands = "ask"
	allowReadOnly readOnlyCommands = "allow"
)

// UnmarshalText makes the type usable as a setting.
func (r *readOnlyCommands) UnmarshalText(text []byte) error {
	switch v := readOnlyCommands(text); v {
	case askReadOnly, allowReadOnly:
		*r = v
		return nil
	}
	return fmt.Errorf("unknown value %q: want one of %s, %s", text, askReadOnly, allowReadOnly)
}

// readOnlyCommands tells whether the setting fits the shell, once it is settled which there is. A command that only looks by its text still follows every
// link in the workspace, so without confinement it could look anywhere.
func (s *Settings) readOnlyCommands() error {
	if s.ShellReadOnly == allowReadOnly && s.Shell != tools.ShellConfined {
		return errors.New("APPROVALBOT_SHELL_READONLY=allow needs APPROVALBOT_SHELL=confined: only a confined shell keeps a command that looks from following a link out of the workspace; choose ask, or confine the shell")
	}
	return nil
}

// checkReadOnlyCommands says early what can be said early: a shell that isn't set is chosen later.
func (s *Settings) checkReadOnlyCommands() error {
	if s.Shell == "" {
		return nil
	}
	return s.readOnlyCommands()
}

// withReadOnlyCommands adds the setting to the policy.
func (s *Settings) withReadOnlyCommands(p *policy.Policy) *policy.Policy {
	if s.ShellReadOnly != allowReadOnly {
		return p
	}
	return p.WithReadOnlyCommands()
}
