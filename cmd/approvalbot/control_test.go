package main

import (
	"context"
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"approvalbot/internal/ledger"
)

// controlled makes a control socket in a directory.
func controlled(t *testing.T, dir string) net.Listener {
	t.Helper()
	ln, err := listenControl(dir)
	if err != nil {
		t.Fatal(err)
	}
	return ln
}

// The socket is its owner's alone, goes with its process, and replaces one that was left behind.
func TestControlSocket(t *testing.T) {
	dir := t.TempDir()
	ln := controlled(t, dir)
	path, err := controlPath(dir)
	if err != nil || ln.Addr().String() != path || !strings.HasPrefix(path, dir) {
		t.Fatalf("it is at %s, want %s (%v)", ln.Addr(), path, err)
	}
	for name, want := range map[string]fs.FileMode{path: 0o600, filepath.Dir(path): 0o700} {
		info, err := os.Stat(name)
		if err != nil || info.Mode().Perm() != want {
			t.Errorf("%s has mode %v, want %v (%v)", name, info.Mode().Perm(), want, err)
		}
	}
	ln.(*net.UnixListener).SetUnlinkOnClose(false) // as after a crash
	ln.Close()
	if _, err := os.Lstat(path); err != nil {
		t.Fatal(err)
	}
	again := controlled(t, dir)
	again.Close()
	if _, err := os.Lstat(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the socket is left behind: %v", err)
	}
	// A directory that others can enter is closed to them; what is no socket is left alone.
	if err := os.Chmod(filepath.Dir(path), 0o777); err != nil {
		t.Fatal(err)
	}
	controlled(t, dir).Close()
	if info, _ := os.Stat(filepath.Dir(path)); info.Mode().Perm() != 0o700 {
		t.Errorf("its directory has mode %v", info.Mode().Perm())
	}
	if err := os.WriteFile(path, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := listenControl(dir); err == nil {
		t.Error("a file was taken for a socket that was left behind")
	}
}

// A path that is too long for a socket has another, which is the same for everybody who knows the data directory.
func TestControlSocketOfALongPath(t *testing.T) {
	dir := filepath.Join(t.TempDir(), strings.Repeat("long", 30))
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("TMPDIR", "/tmp")
	path, err := controlPath(dir)
	if err != nil || len(path) > controlMost || strings.HasPrefix(path, dir) {
		t.Fatalf("%s, %v", path, err)
	}
	ln := controlled(t, dir)
	defer os.RemoveAll(filepath.Dir(path))
	defer ln.Close()
	c, err := net.Dial("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	c.Close()
	t.Setenv("TMPDIR", "/"+strings.Repeat("x", 200))
	if _, err := controlPath(dir); err == nil {
		t.Error("no path fits, and one is given")
	}
}

// Tools of the agent reach neither the socket nor its directory.
func TestControlSocketIsProtected(t *testing.T) {
	s := Settings{DataDir: t.TempDir()}
	path, err := controlPath(s.DataDir)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range s.protected() {
		if p == filepath.Dir(path) {
			return
		}
	}
	t.Errorf("%s is not among %v", filepath.Dir(path), s.protected())
}

// Where no process runs, the journal takes the pause, and the next start has it.
func TestPauseWithoutAProcess(t *testing.T) {
	dir, ctx := t.TempDir(), context.Background()
	if _, err := control(ctx, dir, "pause", controlOrder{}); !errors.Is(err, ledger.ErrNoJournal) {
		t.Errorf("a directory without a journal: %v", err)
	}
	if entries, _ := os.ReadDir(dir); len(entries) != 0 {
		t.Errorf("it made %v", entries)
	}
	j, err := ledger.Open(ctx, filepath.Join(dir, "journal"), ledger.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	order := func(what string, o controlOrder) *controlState {
		t.Helper()
		s, err := control(ctx, dir, what, o)
		if err != nil || !s.stopped {
			t.Fatalf("%s: %+v, %v", what, s, err)
		}
		return s
	}
	if s := order("pause", controlOrder{Reason: "maintenance"}); !s.Changed || s.Paused == nil || s.Paused.Reason != "maintenance" {
		t.Errorf("pause: %+v", s)
	}
	var out strings.Builder
	s := order("pause", controlOrder{})
	if s.tellPause(&out, false, "data"); s.Changed {
		t.Errorf("paused twice: %+v", s)
	}
	mustSay(t, out.String(), "it was paused already by", ": maintenance", "no bot runs there")
	out.Reset()
	order("status", controlOrder{}).tell(&out)
	mustSay(t, out.String(), "bot: not running", "paused: by", ": maintenance", "queued messages: 0")
	out.Reset()
	order("resume", controlOrder{}).tellResume(&out)
	mustSay(t, out.String(), "resumed; it had been paused by", "no bot runs there")
	out.Reset()
	order("resume", controlOrder{}).tellResume(&out)
	mustSay(t, out.String(), "it was not paused")
	out.Reset()
	order("status", controlOrder{}).tell(&out)
	mustSay(t, out.String(), "paused: no")
	r, err := ledger.OpenReader(ctx, filepath.Join(dir, "journal"))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	report, err := r.Verify(ctx, ledger.VerifyOptions{})
	if err != nil || !report.OK() || report.Rows != 2 {
		t.Errorf("the journal: %+v, %v", report, err)
	}
}

// What a pause says to do next reaches the same bot.
func TestAPauseSaysHowToGoOn(t *testing.T) {
	t.Setenv("APPROVALBOT_DATA_DIR", "")
	for dir, want := range map[string]string{"data": "resume", "data/dev": "resume --data-dir data/dev", "a b/it's": `resume --data-dir 'a b/it'\''s'`} {
		var out strings.Builder
		(&controlState{Changed: true, Paused: &pausedSince{}}).tellPause(&out, false, dir)
		if !strings.HasSuffix(out.String(), "to go on: approvalbot "+want+"\n") {
			t.Errorf("%s: %s", dir, out.String())
		}
	}
	t.Setenv("APPROVALBOT_DATA_DIR", "elsewhere")
	if sameDir("elsewhere") != "" || sameDir("data") == "" {
		t.Error("the environment's directory doesn't count")
	}
}
