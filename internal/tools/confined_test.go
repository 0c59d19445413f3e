package tools

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"approvalbot/internal/tools/confine"
)

// confined lets a test go on where commands can be confined. Where tests decide what is shipped they have to be.
func confined(t *testing.T) {
	t.Helper()
	err := confine.Available()
	if err != nil && os.Getenv("CI") != "" {
		t.Fatal(err)
	}
	if err != nil {
		t.Skip(err)
	}
	before := shellMode
	shellMode = ShellConfined
	t.Cleanup(func() { shellMode = before })
}

// What holds of the shell holds of a confined one.
func TestShellConfined(t *testing.T) {
	confined(t)
	for name, test := range map[string]func(*testing.T){
		"RunsExactlyTheCommand":   TestShellRunsExactlyTheCommand,
		"ExitStatus":              TestShellExitStatus,
		"EndsBackgroundProcesses": TestShellEndsBackgroundProcesses,
		"Stopped":                 TestShellStopped,
		"StoppedWhileStarting":    TestShellStoppedWhileStarting,
		"TimeLimit":               TestShellTimeLimit,
		"OutputIsBounded":         TestShellOutputIsBounded,
		"InABubble":               TestShellInABubble,
		"DiesWithTheProgram":      TestShellDiesWithTheProgram,
	} {
		t.Run(name, test)
	}
}

// Its environment is as clean, and its directory for temporary files is its own and gone afterwards.
func TestConfinedShellEnvironment(t *testing.T) {
	confined(t)
	temp := t.TempDir()
	p := newShellPlace(t, Options{TempDir: temp})
	out, err := p.run(`/usr/bin/env | /usr/bin/sort; ls /proc/self/fd | wc -l; mkdir -p $TMPDIR/a/b; echo x > $TMPDIR/a/b/c; chmod 500 $TMPDIR/a/b`)
	p.must(err)
	before, after, found := strings.Cut(strings.ReplaceAll(out.Text, "_=/usr/bin/env\n", ""), "TMPDIR="+temp+"/approvalbot-")
	_, descriptors, _ := strings.Cut(after, "\n")
	// Standard input, output and error, and the directory that ls reads.
	if !found || before != "HOME="+p.dir+"\nLANG=C.UTF-8\nPATH="+defaultPath+"\nPWD="+p.dir+"\nTERM=dumb\n" || descriptors != "4\n" {
		t.Errorf("got\n%s", out.Text)
	}
	if left, err := os.ReadDir(temp); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

// A process that leaves the group, and whose parent is gone, is ended with the command all the same: when it ends by
// itself, and when it is stopped.
func TestConfinedShellLeavesNothing(t *testing.T) {
	confined(t)
	p := newShellPlace(t, Options{})
	const escape = `(setsid sh -c 'trap "" TERM HUP; echo $$ > pid; exec sleep 1000' >/dev/null 2>&1 &); while ! [ -s pid ]; do :; done; `
	out, err := p.run(escape + "echo done")
	if err != nil || out.Text != "done\n" {
		t.Errorf("got %+v, %v", out, err)
	}
	for _, pid := range pids(t, p.content(filepath.Join(p.dir, "pid"))) {
		gone(t, pid)
	}
	p.must(os.Remove(filepath.Join(p.dir, "pid")))
	_, err = p.call(t.Context(), "shell", members{"command": escape + "sleep 1000", "timeout_seconds": 1})
	wantCode(t, err, CodeTimeout)
	for _, pid := range pids(t, p.content(filepath.Join(p.dir, "pid"))) {
		gone(t, pid)
	}
}

// What a command leaves in its own directory is removed with few descriptors, however deep it is.
func TestRemoveNeedsFewDescriptors(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "own")
	top, err := os.OpenRoot(mustMake(t, dir))
	if err != nil {
		t.Fatal(err)
	}
	root := top
	for range 400 {
		if err := errors.Join(root.Mkdir("d", 0o755), root.Mkdir("empty", 0o000), root.WriteFile("f", nil, 0o400), root.Symlink("/", "link")); err != nil {
			t.Fatal(err)
		}
		next, err := root.OpenRoot("d")
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(root.Chmod(".", 0o000), root.Close()); err != nil {
			t.Fatal(err)
		}
		root = next
	}
	root.Close()

	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		t.Fatal(err)
	}
	few := unix.Rlimit{Cur: 100, Max: limit.Max}
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &few); err != nil {
		t.Fatal(err)
	}
	defer unix.Setrlimit(unix.RLIMIT_NOFILE, &limit)
	remove(dir)
	if _, err := os.Lstat(dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("it is still there: %v", err)
		unix.Setrlimit(unix.RLIMIT_NOFILE, &limit)
		exec.Command("chmod", "-R", "700", dir).Run()
	}
}

func mustMake(t *testing.T, dir string) string {
	t.Helper()
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	return dir
}

// What a process that was killed has left is removed by the next one, and nothing else.
func TestClearTemp(t *testing.T) {
	confined(t)
	temp := t.TempDir()
	for _, dir := range []string{"approvalbot-1/a/b", "other/a"} {
		if err := os.MkdirAll(filepath.Join(temp, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	b, err := OpenBuiltin(Options{Workspace: t.TempDir(), Shell: ShellConfined, TempDir: temp})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	b.ClearTemp()
	left, err := os.ReadDir(temp)
	if err != nil || len(left) != 1 || left[0].Name() != "other" {
		t.Errorf("left: %v, %v", left, err)
	}
}
