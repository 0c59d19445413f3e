package tools

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/google/jsonschema-go/jsonschema"

	"approvalbot/internal/language"
	"approvalbot/internal/tools/command"
	"approvalbot/internal/tools/confine"
	"approvalbot/internal/tools/process"
)

// ShellMode says whether there is a shell, and what holds it.
type ShellMode string

// The shell modes.
const (
	ShellOff        ShellMode = "off"        // no shell tool
	ShellConfined   ShellMode = "confined"   // kept to the workspace by the kernel
	ShellUnconfined ShellMode = "unconfined" // may do what the program's own user may
)

// ParseShellMode returns the mode of that name, or an error that lists the
// names there are.
func ParseShellMode(s string) (ShellMode, error) {
	switch m := ShellMode(s); m {
	case ShellOff, ShellConfined, ShellUnconfined:
		return m, nil
	}
	return "", fmt.Errorf("unknown shell mode %q: want one of %s, %s, %s", s, ShellOff, ShellConfined, ShellUnconfined)
}

// UnmarshalText makes the type usable as a setting.
func (m *ShellMode) UnmarshalText(text []byte) (err error) {
	*m, err = ParseShellMode(string(text))
	return err
}

// Unconfined is the sentence that stands wherever an unconfined shell is
// offered: on each card, at the start, in the checks of an installation.
const Unconfined = "Not confined: it can do whatever approvalbot's own user can."

const (
	shellDefaultTimeout = 120 * time.Second
	shellMaxTimeout     = 3600 * time.Second
)

// shell runs a command with /bin/sh.
type shell struct {
	dir       string
	env       []string
	maxOutput int
	temp      string           // where confined commands have their own TMPDIR
	sandbox   *confine.Sandbox // nil: not confined
	write     []string         // what confined commands may change besides the workspace
	network   bool
	user      string // whose rights unconfined commands have
	lang      language.Language
}

type shellArgs struct {
	Command        string `json:"command"`
	TimeoutSeconds count  `json:"timeout_seconds"`
}

func (t *shell) Spec() Spec {
	return Spec{
		Name: "shell",
		Description: fmt.Sprintf("Run a command with /bin/sh in the workspace, without input and with a clean environment. "+
			"Returns its output, standard output and standard error together. It is stopped after %d seconds unless timeout_seconds says otherwise; "+
			"background processes are ended when the command ends.%s", shellDefaultTimeout/time.Second, t.limits()),
		InputSchema: object([]string{"command"}, map[string]*jsonschema.Schema{
			"command":         {Type: "string", Description: "The command, as /bin/sh understands it.", MinLength: ptr(1)},
			"timeout_seconds": intSchema("Time limit in seconds.", 1, shellMaxTimeout.Seconds()),
		}),
		// What the kernel keeps to the workspace doesn't reach beyond it; the card says so, too.
		Annotations: Annotations{Title: "Run a command", DestructiveHint: ptr(true), OpenWorldHint: ptr(t.sandbox == nil || t.network)},
	}
}

func (t *shell) parse(args json.RawMessage) (a shellArgs, err error) {
	if err := decode(t.Spec(), args, &a); err != nil {
		return a, err
	}
	switch {
	case strings.TrimSpace(a.Command) == "":
		return a, errorf(CodeInvalidArguments, "The command is empty.")
	case strings.ContainsRune(a.Command, 0):
		return a, errorf(CodeInvalidArguments, "The command contains a NUL character, which no shell can be given.")
	case len(a.Command) > shellMaxCommand:
		return a, errorf(CodeInvalidArguments, "The command has %d bytes; %d is the most. Write a script into a file and run that.", len(a.Command), shellMaxCommand)
	}
	return a, nil
}

// The kernel takes no longer argument (MAX_ARG_STRLEN is 128 KiB).
const shellMaxCommand = 128<<10 - 1

func (a shellArgs) timeout() time.Duration {
	if a.TimeoutSeconds == 0 {
		return shellDefaultTimeout
	}
	return time.Duration(a.TimeoutSeconds) * time.Second
}

func (t *shell) Describe(args json.RawMessage) (Preview, error) {
	a, err := t.parse(args)
	if err != nil {
		return Preview{}, err
	}
	var notes []string // the default time limit is nothing that the call asks for
	if a.TimeoutSeconds != 0 {
		notes = append(notes, t.lang.Tf("Time limit: %s.", t.lang.Count(int(a.TimeoutSeconds), "second", "seconds")))
	}
	analysis := command.Parse(a.Command)
	return Preview{
		Summary: t.lang.Tf("Run %s", brief(a.Command)),
		Target:  commandTarget(a.Command, analysis),
		Kind:    KindCommand,
		Body:    a.Command,
		Notes:   append(notes, programs(t.lang, analysis), t.note()),
		RunsAs:  t.runsAs(),
	}, nil
}

// Facts tells what the command's text says that it will run.
func (t *shell) Facts(args json.RawMessage) Facts {
	a, err := t.parse(args)
	if err != nil {
		return Facts{}
	}
	analysis := command.Parse(a.Command)
	return Facts{Programs: analysis.Programs, Parsed: analysis.Complete, ReadOnly: analysis.ReadOnly}
}

// maxNamed is how many programs a card names. All of them stand in the command.
const maxNamed = 12

// programs is the sentence of the card that says what will run.
func programs(l language.Language, a command.Analysis) string {
	named := strings.Join(a.Named[:min(len(a.Named), maxNamed)], ", ")
	if more := len(a.Named) - maxNamed; more > 0 {
		named = l.Tf("%s and %d more", named, more)
	}
	switch {
	case !a.Complete && named == "":
		return l.Tf("It can't be told in full which programs this runs: %s.", a.UnclearIn(l))
	case !a.Complete:
		return l.Tf("Runs at least: %s. It can't be told in full which programs this runs: %s.", named, a.UnclearIn(l))
	case named == "":
		return l.T("Runs no program.")
	}
	return l.Tf("Runs: %s.", named)
}

// commandTarget is the first program of a command that was understood so far. It helps
// the eye and decides nothing.
func commandTarget(text string, a command.Analysis) string {
	if len(a.Named) > 0 {
		return brief(a.Named[0])
	}
	return firstWord(text)
}

// firstWord is what a command line begins with, for one that can't be taken
// apart.
func firstWord(command string) string {
	words := strings.FieldsFunc(command, func(r rune) bool { return strings.ContainsRune(" \t\r\n;|&()<>", r) })
	if len(words) == 0 {
		return brief(command)
	}
	return brief(words[0])
}

func (t *shell) Call(ctx context.Context, args json.RawMessage) (Output, error) {
	a, err := t.parse(args)
	if err != nil {
		return Output{}, err
	}
	if ctx.Err() != nil {
		return Output{}, errNotBegun
	}
	limited, cancel := context.WithTimeout(ctx, a.timeout())
	defer cancel()
	end, err := t.execute(limited, a.Command)
	switch {
	case err != nil && ctx.Err() != nil: // it was stopped while it was being started
		return Output{}, errNotBegun
	case err != nil:
		return Output{}, errorf(CodeToolFailed, "The command could not be started: %s.", reason(err))
	}
	return result(end, ctx.Err() != nil, a.timeout())
}

// errNotBegun: the command was stopped in time.
var errNotBegun = errorf(CodeAborted, "Stopped before the command started.")

// result turns an ending into a result. A command that says it failed is an
// error: its card then says that it failed, and the model is told as much. One
// that had succeeded by the time it was stopped has succeeded.
func result(e process.Ending, aborted bool, limit time.Duration) (Output, error) {
	switch {
	case e.State.Success():
		text := e.Text
		if text == "" {
			text = "[The command succeeded without output.]"
		}
		return Output{Text: text, Truncated: e.Truncated, ExitCode: ptr(0)}, nil
	case e.Stopped && aborted:
		return Output{}, &Error{CodeAborted, "The command was stopped while it ran; it may be partly performed.", e.Text}
	case e.Stopped:
		return Output{}, &Error{CodeTimeout, fmt.Sprintf("The command reached its time limit (%d seconds) and was stopped; it may be partly performed.", int(limit.Seconds())), e.Text}
	case e.Signal() != "":
		return Output{}, &Error{CodeExitStatus, fmt.Sprintf("The command was ended by the signal %s.", e.Signal()), e.Text}
	}
	return Output{}, &Error{CodeExitStatus, fmt.Sprintf("The command ended with exit status %d.", e.ExitCode()), e.Text}
}
