package tools

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"approvalbot/internal/tools/process"
)

// shellMode is what the tests of the shell run with; TestShellConfined runs them once more.
var shellMode = ShellUnconfined

func newShellPlace(t *testing.T, o Options) *place {
	o.Shell = shellMode
	return newPlace(t, o)
}

func (p *place) run(command string) (Output, error) {
	p.Helper()
	return p.call(p.Context(), "shell", members{"command": command})
}

func TestShellRunsExactlyTheCommand(t *testing.T) {
	p := newShellPlace(t, Options{})
	for _, tt := range []struct{ command, want string }{
		{"printf ok > proof.txt; cat proof.txt", "ok"},
		{"pwd", p.dir + "\n"},
		{"echo out; echo err >&2; echo out", "out\nerr\nout\n"},
		{`printf '%s|' 'a  b' "$HOME" "é"`, "a  b|" + p.dir + "|é|"},
		{"cat", "[The command succeeded without output.]"},
		{"printf '\\377\\376a'", "\uFFFDa"},
		{"echo $0 $#", "/bin/sh 0\n"},
	} {
		out, err := p.run(tt.command)
		if err != nil || out.Text != tt.want || out.Truncated || out.ExitCode == nil || *out.ExitCode != 0 {
			t.Errorf("%s: got %+v, %v, want %q", tt.command, out, err, tt.want)
		}
	}
}

func TestShellEnvironmentIsClean(t *testing.T) {
	t.Setenv("SLACK_BOT_TOKEN", "xoxb-secret")
	t.Setenv("ENV", "/nonexistent/rc")
	temp := t.TempDir()
	p := newShellPlace(t, Options{Path: "bin::/usr/bin:./x:/bin", TempDir: temp})
	out, err := p.run("/usr/bin/env | /usr/bin/sort; ls /proc/self/fd | wc -l")
	p.must(err)
	want := fmt.Sprintf("HOME=%s\nLANG=C.UTF-8\nPATH=/usr/bin:/bin\nPWD=%s\nTERM=dumb\nTMPDIR=%s\n", p.dir, p.dir, temp)
	got := strings.ReplaceAll(out.Text, "_=/usr/bin/env\n", "") // some shells set it
	// Standard input, output and error, and the directory that ls reads.
	if got != want+"4\n" {
		t.Errorf("got\n%s\nwant\n%s4", got, want)
	}
	out, err = newShellPlace(t, Options{Path: "bin:."}).run("echo $PATH")
	if err != nil || out.Text != defaultPath+"\n" {
		t.Errorf("without a usable PATH: %+v, %v", out, err)
	}
}

func TestShellExitStatus(t *testing.T) {
	p := newShellPlace(t, Options{})
	for command, want := range map[string]Error{
		"echo no; exit 3":          {CodeExitStatus, "The command ended with exit status 3.", "no\n"},
		"false":                    {CodeExitStatus, "The command ended with exit status 1.", ""},
		"kill -TERM $$":            {CodeExitStatus, "The command was ended by the signal SIGTERM.", ""},
		"trap '' TERM; kill 0; :;": {},
	} {
		out, err := p.run(command)
		if want.Code == "" {
			if err != nil {
				t.Errorf("%s: %v", command, err)
			}
			continue
		}
		if e := wantCode(t, err, want.Code); *e != want || out.ExitCode != nil {
			t.Errorf("%s: got %+v, %+v", command, e, out)
		}
	}
}

// gone waits until no process of the group is left but, perhaps, zombies that
// others have to reap.
func gone(t *testing.T, pid int) {
	t.Helper()
	deadline := time.Now().Add(10 * time.Second)
	for time.Now().Before(deadline) {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if err != nil {
			return
		}
		_, rest, _ := bytes.Cut(stat, []byte(") "))
		if bytes.HasPrefix(rest, []byte("Z")) || bytes.HasPrefix(rest, []byte("X")) {
			return
		}
		exec.Command("true").Run() // lets the kernel finish what a signal began
	}
	t.Errorf("the process %d is still there", pid)
}

func pids(t *testing.T, text string) []int {
	t.Helper()
	var all []int
	for _, field := range strings.Fields(text) {
		pid, err := strconv.Atoi(field)
		if err != nil {
			t.Fatalf("no process ids: %q", text)
		}
		all = append(all, pid)
	}
	return all
}

// A background process neither holds up the call nor outlives it.
func TestShellEndsBackgroundProcesses(t *testing.T) {
	p := newShellPlace(t, Options{})
	out, err := p.run("sleep 1000 & echo $!; (trap '' TERM HUP INT; exec sleep 1000) & echo $!")
	p.must(err)
	for _, pid := range pids(t, out.Text) {
		gone(t, pid)
	}
}

// A process that leaves the group can't be ended, but doesn't hold up the call
// for long either, though it holds the output open.
func TestShellDoesNotWaitForEscapedProcesses(t *testing.T) {
	if _, err := exec.LookPath("setsid"); err != nil {
		t.Skip("there is no setsid here")
	}
	p := newShellPlace(t, Options{})
	out, err := p.run("setsid sh -c 'echo $$ > pid; exec sleep 20' & while ! [ -s pid ]; do :; done; echo done")
	p.must(err)
	for _, pid := range pids(t, p.content(filepath.Join(p.dir, "pid"))) {
		syscall.Kill(pid, syscall.SIGKILL)
	}
	if out.Text != "done\n"+process.Escaped {
		t.Errorf("got %q", out.Text)
	}
}

func TestShellStopped(t *testing.T) {
	p := newShellPlace(t, Options{})
	fifo := filepath.Join(p.dir, "ready")
	p.must(syscall.Mkfifo(fifo, 0o600))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	done := make(chan error, 1)
	go func() {
		_, err := p.call(ctx, "shell", members{"command": "trap '' TERM INT; sleep 1000 & echo partly; echo $$ $! > ready; wait; wait; sleep 1000"})
		done <- err
	}()
	text, err := os.ReadFile(fifo) // returns when the command has written
	p.must(err)
	cancel()
	e := wantCode(t, <-done, CodeAborted)
	if e.Output != "partly\n" || !strings.Contains(e.Message, "may be partly performed") {
		t.Errorf("got %+v", e)
	}
	for _, pid := range pids(t, string(text)) {
		gone(t, pid)
	}
	_, err = p.call(ctx, "shell", members{"command": "touch started"})
	if e := wantCode(t, err, CodeAborted); !strings.Contains(e.Message, "before the command started") {
		t.Errorf("got %+v", e)
	}
	if _, err := os.Stat(filepath.Join(p.dir, "started")); err == nil {
		t.Error("it ran after all")
	}
}

func TestShellTimeLimit(t *testing.T) {
	p := newShellPlace(t, Options{})
	for _, command := range []string{
		"echo begun; sleep 1000 | cat",
		"echo begun; exec setsid sleep 1000", // the command itself leaves its group
	} {
		_, err := p.call(t.Context(), "shell", members{"command": command, "timeout_seconds": 1})
		if e := wantCode(t, err, CodeTimeout); e.Output != "begun\n" || !strings.Contains(e.Message, "time limit (1 seconds)") {
			t.Errorf("%s: got %+v", command, e)
		}
	}
}

// What was stopped and what wasn't: a command that had already succeeded when
// it was stopped has succeeded, and a limit is not an abort.
func TestEnding(t *testing.T) {
	state := func(command string) *os.ProcessState {
		cmd := exec.Command("/bin/sh", "-c", command)
		cmd.Run()
		return cmd.ProcessState
	}
	succeeded, failed, killed := state(":"), state("exit 9"), state("kill -KILL $$")
	for _, tt := range []struct {
		state            *os.ProcessState
		stopped, aborted bool
		want             Code
	}{
		{succeeded, false, false, ""},
		{succeeded, false, true, ""},
		{succeeded, true, false, ""},
		{succeeded, true, true, ""},
		{killed, true, true, CodeAborted},
		{killed, true, false, CodeTimeout},
		{killed, false, true, CodeExitStatus},
		{failed, false, false, CodeExitStatus},
		{failed, true, true, CodeAborted},
	} {
		out, err := result(process.Ending{State: tt.state, Stopped: tt.stopped, Text: "text"}, tt.aborted, time.Second)
		if tt.want == "" {
			if err != nil || out.Text != "text" {
				t.Errorf("%+v: got %+v, %v", tt, out, err)
			}
			continue
		}
		if e := wantCode(t, err, tt.want); e.Output != "text" {
			t.Errorf("%+v: got %+v", tt, e)
		}
	}
}

func TestShellOutputIsBounded(t *testing.T) {
	p := newShellPlace(t, Options{MaxOutput: 1000})
	out, err := p.run("echo first; i=0; while [ $i -lt 20000 ]; do echo 0123456789; i=$((i+1)); done; echo last")
	p.must(err)
	if !out.Truncated || !strings.HasPrefix(out.Text, "first\n") || !strings.HasSuffix(out.Text, "\nlast\n") ||
		!strings.Contains(out.Text, "[… 219011 bytes left out …]") || len(out.Text) > 1100 {
		t.Errorf("got %d bytes: %q", len(out.Text), out.Text)
	}
}

// In a bubble with fake time a command still runs to its end.
func TestShellInABubble(t *testing.T) {
	p := newShellPlace(t, Options{})
	synctest.Test(t, func(t *testing.T) {
		tool, _ := p.tools.Get("shell")
		out, err := tool.Call(t.Context(), arguments(t, tool, members{"command": "echo hi; sleep 1000 &"}))
		if err != nil || out.Text != "hi\n" {
			t.Errorf("got %+v, %v", out, err)
		}
	})
}

// The test binary, run again as a program that runs a command and is killed.
const victimEnv = "APPROVALBOT_TEST_SHELL_VICTIM"

func TestMain(m *testing.M) {
	if dir := os.Getenv(victimEnv); dir != "" {
		sh, err := newShell(dir, Options{Shell: ShellMode(os.Getenv(victimEnv + "_MODE"))})
		if err != nil {
			panic(err)
		}
		sh.Call(context.Background(), json.RawMessage(`{"command":`+strconv.Quote("sleep 1000 & echo $$ $! > ready; sleep 1000; echo survived > survived")+`}`))
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// Killed in a way that leaves no time for anything, the program takes the
// command and all its children with it.
func TestShellDiesWithTheProgram(t *testing.T) {
	dir := t.TempDir()
	fifo := filepath.Join(dir, "ready")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	program := exec.Command(os.Args[0])
	program.Env = append(os.Environ(), victimEnv+"="+dir, victimEnv+"_MODE="+string(shellMode))
	if err := program.Start(); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(fifo)
	if err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(f).ReadString('\n')
	f.Close()
	if err != nil {
		t.Fatal(err)
	}
	program.Process.Kill()
	program.Wait()
	for _, pid := range pids(t, line) {
		gone(t, pid)
	}
	if _, err := os.Stat(filepath.Join(dir, "survived")); err == nil {
		t.Error("the command went on")
	}
}

func TestShellModes(t *testing.T) {
	var m ShellMode
	for _, s := range []string{"off", "confined", "unconfined"} {
		if err := m.UnmarshalText([]byte(s)); err != nil || string(m) != s {
			t.Errorf("%s: %q, %v", s, m, err)
		}
	}
	if err := m.UnmarshalText([]byte("on")); err == nil || !strings.Contains(err.Error(), "want one of off, confined, unconfined") {
		t.Errorf("got %v", err)
	}
}

func BenchmarkShell(b *testing.B) {
	for _, mode := range []ShellMode{ShellUnconfined, ShellConfined} {
		b.Run(string(mode), func(b *testing.B) {
			sh, err := newShell(b.TempDir(), Options{Shell: mode})
			if err != nil {
				b.Skip(err)
			}
			for b.Loop() {
				if _, err := sh.Call(b.Context(), json.RawMessage(`{"command":":"}`)); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// A call that is stopped while its command is being started was stopped; it didn't fail.
func TestShellStoppedWhileStarting(t *testing.T) {
	p := newShellPlace(t, Options{})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := p.call(&endsOnSecondLook{Context: ctx}, "shell", members{"command": "touch started"})
	if e := wantCode(t, err, CodeAborted); !strings.Contains(e.Message, "before the command started") {
		t.Errorf("got %q", e.Message)
	}
	if _, err := os.Stat(filepath.Join(p.dir, "started")); err == nil {
		t.Error("it ran")
	}
}

// endsOnSecondLook is a context that ended between somebody's first look at it and the next.
type endsOnSecondLook struct {
	context.Context
	looked bool
}

func (c *endsOnSecondLook) Err() error {
	if !c.looked {
		c.looked = true
		return nil
	}
	return c.Context.Err()
}
