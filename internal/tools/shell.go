package tools

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"time"

	"github.com/google/jsonschema-go/jsonschema"
	"golang.org/x/sys/unix"
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

	// How long output may still come after everything in the command's process
	// group is dead. Only a process that left the group can use it up.
	shellDrain = time.Second
)

// shell runs a command with /bin/sh.
//
// # Processes
//
// A command has a process group of its own, and the group's leader is not the
// command but a guard: a shell that does nothing but wait for its standard
// input to end and then kills the group. The other end of that pipe is held by
// this program alone. So when this program dies, by whatever signal, the pipe
// closes and the whole group dies with it, background processes included; the
// kernel's parent-death signal alone would reach only the command's own shell.
// And since the guard is reaped last, the group's number can't have been given
// to somebody else at the moment when the group is killed.
//
// A process that makes itself a new session leaves the group. If it is the
// command's own shell it is still killed, being our child; for one further down
// there is nothing but confinement.
type shell struct {
	dir       string
	env       []string
	maxOutput int
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
			"background processes are ended when the command ends.", shellDefaultTimeout/time.Second),
		InputSchema: object([]string{"command"}, map[string]*jsonschema.Schema{
			"command":         {Type: "string", Description: "The command, as /bin/sh understands it.", MinLength: ptr(1)},
			"timeout_seconds": intSchema("Time limit in seconds.", 1, shellMaxTimeout.Seconds()),
		}),
		Annotations: Annotations{Title: "Run a command", DestructiveHint: ptr(true), OpenWorldHint: ptr(true)},
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
		notes = append(notes, fmt.Sprintf("Time limit: %d seconds.", int(a.TimeoutSeconds)))
	}
	return Preview{
		Summary: "Run " + brief(a.Command),
		Target:  firstWord(a.Command),
		Kind:    KindCommand,
		Body:    a.Command,
		Notes:   append(notes, Unconfined),
	}, nil
}

// firstWord is what a command line begins with. It helps the eye and decides
// nothing: only a parser could tell what a command runs.
func firstWord(command string) string {
	words := strings.FieldsFunc(command, func(r rune) bool { return strings.ContainsRune(" \t\r\n;|&()<>", r) })
	if len(words) == 0 {
		return brief(command)
	}
	return shorten(words[0], 120)
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
	end, err := t.run(limited, a.Command)
	switch {
	case err != nil && ctx.Err() != nil: // it was stopped while it was being started
		return Output{}, errNotBegun
	case err != nil:
		return Output{}, errorf(CodeToolFailed, "The command could not be started: %s.", reason(err))
	}
	return end.result(ctx.Err() != nil, a.timeout())
}

// errNotBegun: the command was stopped in time.
var errNotBegun = errorf(CodeAborted, "Stopped before the command started.")

// ending is how a command ended.
type ending struct {
	state     *os.ProcessState
	stopped   bool // it was told to stop, by us
	text      string
	truncated bool
}

// result turns an ending into a result. A command that says it failed is an
// error: its card then says that it failed, and the model is told as much. One
// that had succeeded by the time it was stopped has succeeded.
func (e ending) result(aborted bool, limit time.Duration) (Output, error) {
	status := e.state.Sys().(syscall.WaitStatus)
	switch {
	case e.state.Success():
		text := e.text
		if text == "" {
			text = "[The command succeeded without output.]"
		}
		return Output{Text: text, Truncated: e.truncated, ExitCode: ptr(0)}, nil
	case e.stopped && aborted:
		return Output{}, &Error{CodeAborted, "The command was stopped while it ran; it may be partly performed.", e.text}
	case e.stopped:
		return Output{}, &Error{CodeTimeout, fmt.Sprintf("The command reached its time limit (%d seconds) and was stopped; it may be partly performed.", int(limit.Seconds())), e.text}
	case status.Signaled():
		return Output{}, &Error{CodeExitStatus, fmt.Sprintf("The command was ended by the signal %s.", unix.SignalName(status.Signal())), e.text}
	}
	return Output{}, &Error{CodeExitStatus, fmt.Sprintf("The command ended with exit status %d.", status.ExitStatus()), e.text}
}

// escaped follows the output if it was still open after all the group was dead.
const escaped = "[A process that this command started has left its group and still runs.]"

// run executes the command and returns when nothing of its process group is
// left.
func (t *shell) run(ctx context.Context, command string) (ending, error) {
	// A parent-death signal is sent when the thread that started the child
	// ends, so this goroutine keeps its thread until the child is gone.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()

	guard, err := startGuard()
	if err != nil {
		return ending{}, err
	}
	defer guard.end()
	read, write, err := os.Pipe()
	if err != nil {
		return ending{}, err
	}
	defer read.Close()

	var stopped bool
	cmd := exec.CommandContext(ctx, "/bin/sh", "-c", command)
	cmd.Dir, cmd.Env = t.dir, t.env
	cmd.Stdout, cmd.Stderr = write, write // files: Wait waits for the process only
	cmd.SysProcAttr = groupAttributes(guard.pid())
	cmd.Cancel = func() error { // Wait waits for it
		stopped = true
		guard.kill()
		return cmd.Process.Kill() // it may have left the group: exec setsid …
	}
	err = cmd.Start()
	write.Close()
	if err != nil {
		return ending{}, err
	}
	output := newBounded(t.maxOutput)
	drained := make(chan error, 1)
	go func() {
		_, err := output.ReadFrom(read)
		drained <- err
	}()
	// Its error repeats the state, or says that we stopped it.
	cmd.Wait()
	guard.kill()
	read.SetReadDeadline(time.Now().Add(shellDrain))
	err = <-drained

	text, truncated := output.text()
	if errors.Is(err, os.ErrDeadlineExceeded) {
		text = strings.TrimSuffix(text, "\n") + "\n" + escaped
	}
	return ending{cmd.ProcessState, stopped, text, truncated}, nil
}

// guard is the leader of a command's process group.
type guard struct {
	cmd   *exec.Cmd
	alive *os.File // its closing, by us or by our death, makes the guard kill the group
}

func startGuard() (*guard, error) {
	stdin, alive, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer stdin.Close()
	// It ignores what a command may send to its own group.
	cmd := exec.Command("/bin/sh", "-c", "trap '' HUP INT QUIT TERM; read -r _; kill -KILL 0")
	cmd.Dir, cmd.Env = "/", []string{}
	cmd.Stdin = stdin
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		alive.Close()
		return nil, err
	}
	return &guard{cmd, alive}, nil
}

func (g *guard) pid() int { return g.cmd.Process.Pid }

// kill kills the group, the guard included. The guard is still unreaped, so the
// number is still the group's. It can fail only if all of it is dead already.
func (g *guard) kill() { syscall.Kill(-g.pid(), syscall.SIGKILL) }

// end kills the group once more, for the case that the command never started,
// and reaps the guard.
func (g *guard) end() {
	g.kill()
	g.alive.Close()
	g.cmd.Wait()
}
