package main

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"

	"approvalbot/internal/tools"
)

// A switched setting is on or off.
type switched bool

// UnmarshalText makes the type usable as a setting.
func (w *switched) UnmarshalText(text []byte) error {
	switch string(text) {
	case "on":
		*w = true
	case "off", "":
		*w = false
	default:
		return fmt.Errorf("%q has to be on or off", text)
	}
	return nil
}

// checkShell names what is wrong with the settings of the shell, as far as that shows without the system.
func (s *Settings) checkShell() (wrong []error) {
	for _, list := range []struct {
		name  string
		paths []string
	}{{"APPROVALBOT_SHELL_READ", s.ShellRead}, {"APPROVALBOT_SHELL_WRITE", s.ShellWrite}} {
		for _, path := range list.paths {
			if !filepath.IsAbs(path) {
				wrong = append(wrong, fmt.Errorf("%s: %q has to be an absolute path", list.name, path))
			}
		}
	}
	return wrong
}

// openTools opens the built-in tools and settles what holds commands. Where nobody said, they are confined; where that
// can't be, the shell is what it falls back to (nothing in serve, unconfined in dev), and unconfinable says why.
//
// The messenger may be nil; own are the addresses that this process listens on.
func (s *Settings) openTools(m tools.Messenger, own ...net.Addr) (*tools.Builtin, error) {
	o := s.toolOptions(m, own...)
	if s.DataDir != "" && (s.Shell == "" || s.Shell == tools.ShellConfined) {
		o.TempDir = filepath.Join(s.DataDir, "tmp") // beside the journal, so that the next process finds what this one left
		if err := os.MkdirAll(o.TempDir, 0o700); err != nil {
			return nil, fmt.Errorf("the directory for commands' temporary files can't be made: %w", err)
		}
	}
	if s.Shell != "" {
		b, err := tools.OpenBuiltin(o)
		if err != nil && s.Shell == tools.ShellConfined {
			err = fmt.Errorf("APPROVALBOT_SHELL=confined: %w. Or choose off, or unconfined if commands may do whatever approvalbot's own user can", err)
		}
		return b, err
	}
	o.Shell = tools.ShellConfined
	b, err := tools.OpenBuiltin(o)
	if err != nil {
		s.unconfinable = errors.New(strings.TrimPrefix(err.Error(), "tools: "))
		o.Shell = s.shellFallback
		if o.Shell == "" {
			o.Shell = tools.ShellOff
		}
		o.TempDir = ""
		b, err = tools.OpenBuiltin(o)
	}
	s.Shell = o.Shell
	return b, err
}

// sayShell logs what holds commands, or why there are none.
func (a *app) sayShell() {
	s := a.settings
	switch s.Shell {
	case tools.ShellConfined:
		a.log.Info("shell commands are confined", "shell", string(s.Shell), "confinement", a.builtin.ShellNote())
		if os.Geteuid() == 0 {
			a.log.Warn(modes + asRoot)
		}
	case tools.ShellUnconfined:
		text := "the shell is not confined: an approved command can do whatever this process's user can"
		if s.unconfinable != nil {
			text += ", because " + s.unconfinable.Error()
		}
		a.log.Warn(text, "shell", string(s.Shell))
	case tools.ShellOff:
		if s.unconfinable != nil {
			a.log.Warn("there is no shell: "+s.unconfinable.Error()+". "+noShell, "shell", string(s.Shell))
		}
	}
}

// noShell is what to do about a shell that is missing.
const noShell = "APPROVALBOT_SHELL=unconfined offers one all the same, whose commands can do whatever approvalbot's own user can; APPROVALBOT_SHELL=off says that none is wanted"

// modes are what confinement doesn't keep a command from, whoever runs approvalbot: the kernel has no rule for it.
const modes = "a confined command can change the mode and the times of any file that approvalbot's own user owns, the journal's too, though not read or write it: "

// What to do about that.
const (
	asRoot = "approvalbot runs as root, so that is every file of the system; run it as a user of its own"
	asUser = "let that user own nothing else, and let nobody else reach the data directory"
)

// shell says what holds commands on this machine.
func (d *diagnosis) shell(s Settings, b *tools.Builtin) {
	switch {
	case s.Shell == tools.ShellConfined:
		d.check("shell", b.ShellNote(), nil)
		advice := asUser
		if os.Geteuid() == 0 {
			advice = asRoot
		}
		d.note("shell", modes+advice)
	case s.Shell == tools.ShellUnconfined:
		d.note("shell", tools.Unconfined)
	case s.unconfinable != nil:
		d.note("shell", "off: "+s.unconfinable.Error()+". "+noShell)
	default:
		d.note("shell", "off (APPROVALBOT_SHELL)")
	}
}
