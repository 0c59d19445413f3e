package process

import (
	"bufio"
	"io"
	"testing"
	"time"
)

func startServer(t *testing.T, script string) *Server {
	t.Helper()
	s, err := Command{Argv: []string{"/bin/sh", "-c", script}, Dir: "/", Env: []string{"PATH=/usr/bin:/bin"}}.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Stop(0) })
	return s
}

func TestServerIsTalkedTo(t *testing.T) {
	s := startServer(t, `while read -r line; do echo "got $line"; echo "saw $line" >&2; done; exit 3`)
	if _, err := s.Write([]byte("one\n")); err != nil {
		t.Fatal(err)
	}
	for r, want := range map[io.Reader]string{s.Stdout(): "got one\n", s.Stderr(): "saw one\n"} {
		if line, err := bufio.NewReader(r).ReadString('\n'); err != nil || line != want {
			t.Errorf("it said %q (%v), want %q", line, err, want)
		}
	}
	if s.State() != nil {
		t.Error("it runs and has ended")
	}
	s.Stop(time.Minute) // it ends because its input does
	if got := s.State().ExitCode(); got != 3 {
		t.Errorf("exit code %d", got)
	}
}

// What a server started dies with it: its output ends, which a process of the group would hold open.
func TestServerEndsWhole(t *testing.T) {
	s := startServer(t, `trap '' TERM; sleep 300 & echo started; sleep 300`)
	out := bufio.NewReader(s.Stdout())
	if _, err := out.ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	s.Kill()
	if rest, err := io.ReadAll(out); err != nil || len(rest) > 0 {
		t.Errorf("something holds its output: %q, %v", rest, err)
	}
	<-s.Ended()
	if s.State().Success() {
		t.Error("it was killed and succeeded")
	}
}

// A server whose output is held open by a process that left its group has ended all the same.
func TestServerEndsBesideWhatEscaped(t *testing.T) {
	s := startServer(t, `command -v setsid >/dev/null || exit 9; setsid sh -c 'echo away; sleep 3' & read -r _; exit 0`)
	out := bufio.NewReader(s.Stdout())
	if _, err := out.ReadString('\n'); err != nil {
		<-s.Ended()
		if s.State().ExitCode() == 9 {
			t.Skip("no setsid")
		}
		t.Fatal(err)
	}
	if err := s.CloseInput(); err != nil {
		t.Fatal(err)
	}
	<-s.Ended()
	if _, err := out.ReadString('\n'); err == nil {
		t.Error("there is more output")
	}
}

func TestServerThatCantStart(t *testing.T) {
	if _, err := (Command{Argv: []string{"/nonexistent/program"}, Dir: "/"}).Start(); err == nil {
		t.Error("it started")
	}
}

// A server that can't be talked to any more is ended.
func TestServerThatDoesNotListen(t *testing.T) {
	s := startServer(t, `exec 0<&-; echo deaf; sleep 300`)
	if _, err := bufio.NewReader(s.Stdout()).ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Write([]byte("hello\n")); err == nil {
		t.Error("it was told something")
	}
	<-s.Ended()
}
