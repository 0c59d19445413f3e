package process

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// A launcher is a program that prepares something around a command (a confinement) and then becomes the command. We
// speak with it over a socket that is its standard input:
//
//   - it reads Command.Launch, which is one line;
//   - it answers one line: "ok PID" when nothing but the command's own start is left to do, anything else is why the
//     command was not started;
//   - it leaves a keeper behind, the process PID, which holds the socket. When our end is closed, by us or by our death,
//     the keeper kills all that the command has started, wherever that is by now, and ends.
//
// So what the group's guard can't reach, a process that left the group, the keeper can.
type launcher struct {
	ours, theirs *os.File
	keeper       int
}

// settle is how long a keeper may take to end what it keeps, which is one system call.
const settle = 5 * time.Second

func newLauncher() (*launcher, error) {
	syscall.ForkLock.RLock() // no child may get these descriptors: there is no atomic way on every system
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	if err == nil {
		unix.CloseOnExec(fds[0])
		unix.CloseOnExec(fds[1])
	}
	syscall.ForkLock.RUnlock()
	if err != nil {
		return nil, os.NewSyscallError("socketpair", err)
	}
	// Ours can be waited for; theirs becomes the standard input of a shell, which couldn't.
	err = unix.SetNonblock(fds[0], true)
	return &launcher{ours: os.NewFile(uintptr(fds[0]), "launcher"), theirs: os.NewFile(uintptr(fds[1]), "launched")}, err
}

// begin tells the launcher what to do, and returns when the command begins or why it doesn't.
func (l *launcher) begin(brief []byte) error {
	if _, err := l.ours.Write(append(brief, '\n')); err != nil && !errors.Is(err, syscall.EPIPE) && !errors.Is(err, syscall.ECONNRESET) {
		return fmt.Errorf("the launcher can't be told what to do: %w", err)
	}
	answer, err := bufio.NewReader(io.LimitReader(l.ours, 4096)).ReadString('\n')
	if err != nil {
		return errors.New("the launcher ended without an answer")
	}
	answer = strings.TrimSuffix(answer, "\n")
	pid, ok := strings.CutPrefix(answer, "ok ")
	if !ok {
		return errors.New(answer)
	}
	l.keeper, err = strconv.Atoi(pid)
	return err
}

// end tells the keeper to end everything. It may be called more than once, and at any moment.
func (l *launcher) end() {
	raw, err := l.ours.SyscallConn()
	if err == nil {
		raw.Control(func(fd uintptr) { unix.Shutdown(int(fd), unix.SHUT_WR) }) // fails if nobody is there any more
	}
}

// wait returns when nothing is left of what the keeper keeps.
func (l *launcher) wait() {
	l.ours.SetReadDeadline(time.Now().Add(settle))
	io.Copy(io.Discard, l.ours) // nothing is said; it ends with the keeper
	if l.keeper > 0 && os.Getpid() == 1 {
		// Nobody else reaps it; and nobody else can have, so the number is still its own.
		syscall.Wait4(l.keeper, nil, 0, nil)
	}
}

func (l *launcher) close() {
	l.ours.Close()
	l.theirs.Close()
}
