package ledger

import (
	"errors"
	"os"
	"path/filepath"
	"sync"
	"testing"
)

// A backup that is made while the journal is being written is a whole journal.
func TestBackupWhileWriting(t *testing.T) {
	l := mustOpen(t, t.TempDir())
	for _, e := range story() {
		mustAppend(t, l, e)
	}
	stop := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
				mustAppend(t, l, note("r2", "on and on"))
			}
		}
	})
	file := filepath.Join(t.TempDir(), "backup.db")
	report, err := l.Backup(t.Context(), file, VerifyOptions{})
	close(stop)
	wg.Wait()
	if err != nil || !report.OK() || report.Rows < int64(len(story())) {
		t.Fatalf("%+v %v", report, err)
	}
	info, err := os.Stat(file)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v %v", info.Mode(), err)
	}

	// Put back, it can be worked on.
	dir := t.TempDir()
	if err := os.Rename(file, journalFile(dir)); err != nil {
		t.Fatal(err)
	}
	restored := mustOpen(t, dir)
	got := mustAppend(t, restored, note("r2", "restored"))
	if got[0].Seq != report.Head.Seq+1 {
		t.Errorf("row %d follows on %s", got[0].Seq, report.Head)
	}
	if again := verify(t, dir, VerifyOptions{Head: &report.Head}); !again.OK() {
		t.Error(again.Problem)
	}
}

// A file that is there stays as it is, and a failed backup leaves nothing behind.
func TestBackupRefuses(t *testing.T) {
	dir, out := t.TempDir(), t.TempDir()
	told(t, dir)
	r, err := OpenReader(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	file := filepath.Join(out, "backup.db")
	if err := os.WriteFile(file, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Backup(t.Context(), file, VerifyOptions{}); !errors.Is(err, os.ErrExist) {
		t.Errorf("overwriting: %v", err)
	}
	if data, err := os.ReadFile(file); err != nil || string(data) != "mine" {
		t.Errorf("%q %v", data, err)
	}
	tamper(t, dir, `UPDATE events SET call = 'c9' WHERE seq = 9`)
	_, err = r.Backup(t.Context(), filepath.Join(out, "other.db"), VerifyOptions{})
	if p, ok := errors.AsType[*Problem](err); !ok || p.Seq != 9 {
		t.Errorf("of a changed journal: %v", err)
	}
	left, err := os.ReadDir(out)
	if err != nil || len(left) != 1 {
		t.Errorf("left behind: %v %v", left, err)
	}
}
