package process

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"time"
)

// writeLimit is how long a server may leave its input unread. A pipe has room for most messages, so one that doesn't take
// a message within this time has stopped reading, and whoever writes would wait for ever.
const writeLimit = 10 * time.Second

// A Server is a program that goes on running and is talked to: it reads what is written to it and is read from. It has a
// process group with a guard, as a command has, so that it and all that it started end with this program, and with
// [Server.Stop]. Whoever starts one stops it.
type Server struct {
	cmd    *exec.Cmd
	guard  *guard
	stdin  *os.File
	stdout *os.File
	stderr *os.File
	ended  chan struct{} // closed when nothing of it is left
	state  *os.ProcessState
	stop   sync.Once
}

// Start starts the program as a server. MaxOutput means nothing to it: what the server says is read as it comes.
func (c Command) Start() (*Server, error) {
	s := &Server{ended: make(chan struct{})}
	started := make(chan error, 1)
	go s.own(c, started)
	if err := <-started; err != nil {
		return nil, err
	}
	return s, nil
}

// own starts the server, waits for its end and clears up behind it. It keeps its thread all the while, since a
// parent-death signal is sent when the thread that started the child ends.
func (s *Server) own(c Command, started chan<- error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	defer close(s.ended)
	theirs, err := s.begin(c)
	for _, f := range theirs {
		f.Close()
	}
	if err != nil {
		s.close()
		started <- err
		return
	}
	started <- nil
	s.cmd.Wait() // its error repeats the state
	s.state = s.cmd.ProcessState
	s.guard.end() // what it started ends with it; then its output ends, too
	// Only a process that left the group can still hold it open.
	s.stdout.SetReadDeadline(time.Now().Add(drain))
	s.stderr.SetReadDeadline(time.Now().Add(drain))
}

// begin starts guard and program. It returns the ends of the pipes that are the program's.
func (s *Server) begin(c Command) (theirs []*os.File, err error) {
	if s.guard, err = startGuard(); err != nil {
		return nil, err
	}
	pipe := func() (r, w *os.File) {
		if err == nil {
			r, w, err = os.Pipe()
		}
		return r, w
	}
	stdin, toServer := pipe()
	fromServer, stdout := pipe()
	saying, stderr := pipe()
	s.stdin, s.stdout, s.stderr = toServer, fromServer, saying
	for _, f := range []*os.File{stdin, stdout, stderr} {
		if f != nil {
			theirs = append(theirs, f)
		}
	}
	if err != nil {
		return theirs, err
	}
	s.cmd = exec.Command(c.Argv[0], c.Argv[1:]...)
	if s.cmd.Err != nil { // not to be found in PATH
		return theirs, s.cmd.Err
	}
	s.cmd.Dir, s.cmd.Env = c.Dir, append([]string{}, c.Env...)      // nil would mean ours
	s.cmd.Stdin, s.cmd.Stdout, s.cmd.Stderr = stdin, stdout, stderr // files: Wait waits for the process only
	s.cmd.SysProcAttr = groupAttributes(s.guard.pid())
	return theirs, s.cmd.Start()
}

// close lets go of a server that was never started.
func (s *Server) close() {
	if s.guard != nil {
		s.guard.end()
	}
	for _, f := range []*os.File{s.stdin, s.stdout, s.stderr} {
		if f != nil {
			f.Close()
		}
	}
}

// Stdout is what the server writes; it ends when the server has ended. Closing it unblocks whoever reads.
func (s *Server) Stdout() *os.File { return s.stdout }

// Stderr is what the server writes to its standard error. Somebody has to read it to its end, or the server blocks, and then
// to close it: what the server says last is often why it ended, so nothing of it is cut off.
func (s *Server) Stderr() *os.File { return s.stderr }

// Write writes to the server's input. A server that doesn't read it, or closed it, is killed: it may have got a part, so
// nothing more can be said to it.
func (s *Server) Write(p []byte) (int, error) {
	s.stdin.SetWriteDeadline(time.Now().Add(writeLimit))
	n, err := s.stdin.Write(p)
	if err != nil && !errors.Is(err, os.ErrClosed) { // by us: it is asked to end already
		s.Kill()
	}
	if errors.Is(err, os.ErrDeadlineExceeded) {
		err = fmt.Errorf("the server did not read its input for %s and was ended", writeLimit)
	}
	return n, err
}

// CloseInput tells the server that nothing more will come, which is how it is asked to end.
func (s *Server) CloseInput() error { return s.stdin.Close() }

// Ended is closed when nothing of the server is left.
func (s *Server) Ended() <-chan struct{} { return s.ended }

// State is how the server ended; nil while it runs.
func (s *Server) State() *os.ProcessState {
	select {
	case <-s.ended:
		return s.state
	default:
		return nil
	}
}

// Kill kills the server, and by that all of its group. It doesn't wait.
func (s *Server) Kill() { s.cmd.Process.Kill() }

// Stop asks the server to end by closing its input, kills it with all of its group when it has not after grace, and
// returns when nothing is left of it.
func (s *Server) Stop(grace time.Duration) {
	s.stop.Do(func() {
		s.stdin.Close()
		timer := time.NewTimer(grace)
		defer timer.Stop()
		select {
		case <-s.ended:
		case <-timer.C:
			s.Kill()
			<-s.ended
		}
		s.stdout.Close()
	})
}
