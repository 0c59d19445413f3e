// Package process runs the programs that tools start: commands of a model, actions of an operator.
//
// # The life of a process
//
// [Command.Run] starts it with nothing of our environment and without input, collects what it writes up to a limit, and
// returns when nothing of its process group is left. It ends by itself or with its context.
//
// A command has a process group of its own, and the group's leader is not the
// command but a guard: a shell that does nothing but wait for its standard
// input to end and then kills the group. The other end of that pipe is held by
// this program alone. So when this program dies, by whatever signal, the pipe
// closes and the whole group dies with it, background processes included; the
// kernel's parent-death signal alone would reach only the command's own process.
// And since the guard is reaped last, the group's number can't have been given
// to somebody else at the moment when the group is killed.
//
// A process that makes itself a new session leaves the group. If it is the
// command itself it is still killed, being our child; one further down is
// reached only where a launcher (Command.Launch) has confined it.
package process

import (
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// drain is how long output may still come after everything in the command's process
// group is dead. Only a process that left the group can use it up.
const drain = time.Second

// A Command is a program to be run. Its fields are not changed.
type Command struct {
	Argv      []string // the program, by path or to be found in PATH, and its arguments
	Dir       string
	Env       []string // all of it: nothing of ours is added
	MaxOutput int      // bytes kept of standard output and standard error together
	// Launch, if it is set, is what Argv is told: a launcher, which prepares something and then becomes the command. One
	// line, without its end.
	Launch []byte
	// Filter, if there is one, is what the output passes before anything of it is
	// kept: a secret that is taken out there can't be cut in half by the limit. It
	// ends with its reader.
	Filter func(io.Reader) io.Reader
}

// Ending is how a command ended.
type Ending struct {
	State     *os.ProcessState
	Stopped   bool   // it was told to stop, by the context
	Text      string // what it wrote, as valid UTF-8
	Truncated bool   // Text is not all there was, and says so
}

// ExitCode is the command's exit status, or -1 if a signal ended it.
func (e Ending) ExitCode() int { return e.State.ExitCode() }

// Signal is the name of the signal that ended it, as SIGKILL; empty if none did.
func (e Ending) Signal() string {
	if status, ok := e.State.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return unix.SignalName(status.Signal())
	}
	return ""
}

// Escaped follows the output if it was still open after all the group was dead.
const Escaped = "[A process that this command started has left its group and still runs.]"

// Run executes the command and returns when nothing of its process group is
// left; of a launched one, nothing of it at all. An error means that it was not
// started.
func (c Command) Run(ctx context.Context) (Ending, error) {
	// A parent-death signal is sent when the thread that started the child
	// ends, so this goroutine keeps its thread until the child is gone.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()

	guard, err := startGuard()
	if err != nil {
		return Ending{}, err
	}
	defer guard.end()
	var l *launcher
	if c.Launch != nil {
		if l, err = newLauncher(); err != nil {
			return Ending{}, err
		}
		defer l.close()
	}
	return c.run(ctx, guard, l)
}

func (c Command) run(ctx context.Context, guard *guard, l *launcher) (Ending, error) {
	read, write, err := os.Pipe()
	if err != nil {
		return Ending{}, err
	}
	defer read.Close()
	var stopped bool
	cmd := exec.CommandContext(ctx, c.Argv[0], c.Argv[1:]...)
	cmd.Dir, cmd.Env = c.Dir, append([]string{}, c.Env...) // nil would mean ours
	cmd.Stdout, cmd.Stderr = write, write                  // files: Wait waits for the process only
	cmd.SysProcAttr = groupAttributes(guard.pid())
	cmd.Cancel = func() error { // Wait waits for it
		stopped = true
		if l != nil {
			l.end() // the keeper is in no group of the command's
		}
		guard.kill()
		return cmd.Process.Kill() // it may have left the group: exec setsid …
	}
	if l != nil {
		cmd.Stdin = l.theirs
	}
	err = cmd.Start()
	write.Close()
	if err != nil {
		return Ending{}, err
	}
	var written io.Reader = read
	if c.Filter != nil {
		written = c.Filter(read)
	}
	output := newBounded(c.MaxOutput)
	drained := make(chan error, 1)
	go func() {
		_, err := output.ReadFrom(written)
		drained <- err
	}()
	var refused error
	if l != nil {
		l.theirs.Close()
		refused = l.begin(c.Launch)
	}
	// Its error repeats the state, or says that we stopped it.
	cmd.Wait()
	if l != nil {
		l.end()
		l.wait()
	}
	guard.kill()
	read.SetReadDeadline(time.Now().Add(drain))
	err = <-drained
	if refused != nil {
		return Ending{}, refused
	}

	text, truncated := output.text()
	if errors.Is(err, os.ErrDeadlineExceeded) {
		text = strings.TrimSuffix(text, "\n") + "\n" + Escaped
	}
	return Ending{cmd.ProcessState, stopped, text, truncated}, nil
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

// KeepDescriptors keeps what this program was started with (open files, sockets) from every command that it starts.
func KeepDescriptors() { keepDescriptors() }

// closeOnExec marks the open descriptors from first on, which the system lists in dir.
func closeOnExec(dir string, first int) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return
	}
	for _, entry := range entries {
		if fd, err := strconv.Atoi(entry.Name()); err == nil && fd >= first {
			unix.CloseOnExec(fd)
		}
	}
}
