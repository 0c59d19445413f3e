package ledger

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestFilesAreTheOwnersOnly(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "new", "data?#% dir")
	l := mustOpen(t, dir)
	mustAppend(t, l, note("a", "b"))
	for name, want := range map[string]os.FileMode{".": 0o700, "journal.db": 0o600, "journal.db-wal": 0o600, "journal.db-shm": 0o600, "lock": 0o600} {
		info, err := os.Stat(filepath.Join(dir, name))
		if err != nil {
			t.Error(err)
		} else if info.Mode().Perm() != want {
			t.Errorf("%s has mode %v, want %v", name, info.Mode().Perm(), want)
		}
	}
	l.Close()
	if err := os.Chmod(journalFile(dir), 0o644); err != nil {
		t.Fatal(err)
	}
	mustOpen(t, dir)
	if info, _ := os.Stat(journalFile(dir)); info.Mode().Perm() != 0o600 {
		t.Error("a journal that others may read stays so:", info.Mode())
	}
}

// TestHold isn't a test of its own: it is the other process of TestASecondProcess.
func TestHold(t *testing.T) {
	dir := os.Getenv("LEDGER_TEST_HOLD")
	if dir == "" {
		t.Skip("only run by TestASecondProcess")
	}
	l, err := Open(t.Context(), dir, Options{})
	fmt.Println("opened:", err)
	bufio.NewReader(os.Stdin).ReadString('\n')
	if l != nil {
		l.Close()
	}
}

func TestASecondProcess(t *testing.T) {
	dir := t.TempDir()
	cmd := exec.Command(os.Args[0], "-test.run=^TestHold$", "-test.v")
	cmd.Env = append(os.Environ(), "LEDGER_TEST_HOLD="+dir)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	for lines.Scan() && !strings.HasPrefix(lines.Text(), "opened:") {
	}
	if lines.Text() != "opened: <nil>" {
		t.Fatal(lines.Text())
	}
	_, err = Open(t.Context(), dir, Options{})
	if inUse, ok := errors.AsType[*InUseError](err); !ok || inUse.PID != cmd.Process.Pid || time.Since(inUse.Since).Abs() > time.Hour {
		t.Errorf("open what process %d holds: %v", cmd.Process.Pid, err)
	}
	r, err := OpenReader(t.Context(), dir)
	if err != nil {
		t.Error("read what another process holds:", err)
	} else {
		r.Close()
	}
	in.Close()
	cmd.Process.Kill()
	cmd.Wait()
	mustAppend(t, mustOpen(t, dir), note("a", "the lock ended with its process"))
}

func TestOpenTwiceInOneProcess(t *testing.T) {
	dir := t.TempDir()
	l := mustOpen(t, dir)
	_, err := Open(t.Context(), dir, Options{})
	if inUse, ok := errors.AsType[*InUseError](err); !ok || inUse.PID != os.Getpid() {
		t.Error(err)
	}
	l.Close()
	mustOpen(t, dir)
}

func TestOpenRefuses(t *testing.T) {
	for _, tt := range []struct {
		name string
		make func(t *testing.T, dir string)
		want error
	}{
		{"newer", func(t *testing.T, dir string) { told(t, dir); tamper(t, dir, `PRAGMA user_version = 2`) }, ErrNewer},
		{"another program's", func(t *testing.T, dir string) { told(t, dir); tamper(t, dir, `PRAGMA application_id = 7`) }, ErrNotJournal},
		{"a text", func(t *testing.T, dir string) {
			os.WriteFile(journalFile(dir), []byte(strings.Repeat("dear diary ", 100)), 0o600)
		}, ErrNotJournal},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			tt.make(t, dir)
			before, _ := os.ReadFile(journalFile(dir))
			if l, err := Open(t.Context(), dir, Options{}); !errors.Is(err, tt.want) || l != nil {
				t.Error("open:", err)
			}
			if _, err := OpenReader(t.Context(), dir); !errors.Is(err, tt.want) {
				t.Error("read:", err)
			}
			if after, _ := os.ReadFile(journalFile(dir)); string(after) != string(before) {
				t.Error("the file was changed")
			}
		})
	}
}

func TestOpenRefusesABrokenTail(t *testing.T) {
	dir := t.TempDir()
	told(t, dir)
	tamper(t, dir, `UPDATE events SET call = 'c2' WHERE seq = 8`)
	_, err := Open(t.Context(), dir, Options{})
	if damaged, ok := errors.AsType[*DamagedError](err); !ok || damaged.Problem.Seq != 8 || !strings.Contains(err.Error(), "audit verify") {
		t.Error(err)
	}
	if _, err := Open(t.Context(), dir, Options{}); errors.As(err, new(*InUseError)) {
		t.Error("the lock was kept:", err)
	}
}

func TestOpenReaderWithoutAJournal(t *testing.T) {
	dir := t.TempDir()
	if _, err := OpenReader(t.Context(), dir); !errors.Is(err, ErrNoJournal) {
		t.Error(err)
	}
	if entries, _ := os.ReadDir(dir); len(entries) > 0 {
		t.Error("reading made", entries)
	}
}

func TestOpenWhereNothingCanBeMade(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(t.Context(), filepath.Join(file, "data"), Options{}); err == nil || !strings.Contains(err.Error(), file) {
		t.Error(err)
	}
}

// TestAMovedFile: what is written to a file that nobody finds again isn't recorded.
func TestAMovedFile(t *testing.T) {
	dir := t.TempDir()
	l := mustOpen(t, dir)
	mustAppend(t, l, note("a", "b"))
	if err := os.Rename(journalFile(dir), journalFile(dir)+".old"); err != nil {
		t.Fatal(err)
	}
	if _, err := l.Append(t.Context(), note("a", "c")); !errors.Is(err, ErrNotRecorded) {
		t.Error("append to a journal that was moved away:", err)
	}
	if err := os.Rename(journalFile(dir)+".old", journalFile(dir)); err != nil {
		t.Fatal(err)
	}
	if got := mustAppend(t, l, note("a", "d")); got[0].Seq != 2 {
		t.Error(got)
	}
}

func TestAReaderFollowsAnotherProcess(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		l := mustOpen(t, dir)
		mustAppend(t, l, note("a", "1"))
		r, err := OpenReader(t.Context(), dir)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		var got []int64
		done := make(chan error)
		go func() {
			for e, err := range r.Follow(ctx, 0) {
				if err != nil {
					done <- err
					return
				}
				got = append(got, e.Seq)
			}
		}()
		for range 3 {
			time.Sleep(time.Minute)
			mustAppend(t, l, note("a", "more"))
		}
		time.Sleep(time.Minute)
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) || len(got) != 4 {
			t.Error(got, err)
		}
		if err := r.Close(); err != nil {
			t.Error(err)
		}
		if _, err := r.Head(t.Context()); !errors.Is(err, ErrClosed) {
			t.Error("after it was closed:", err)
		}
	})
}
