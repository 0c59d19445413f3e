// Package ledgertest helps the tests of those who stand on the journal: it makes one unwritable, cuts one short as a
// crash would, and prints one.
package ledgertest

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"approvalbot/internal/ledger"

	_ "modernc.org/sqlite" // the journal's own format
)

// Lock makes the journal in dir unwritable from outside, as another program with a hold on its file would, until release
// is called or the test ends. Reading goes on. The journal must exist, and its writer be idle.
func Lock(t testing.TB, dir string) (release func()) {
	t.Helper()
	db := openDB(t, dir, "rw")
	ctx := context.WithoutCancel(t.Context()) // it is released in the cleanup, when the test's own context has ended
	conn, err := db.Conn(ctx)
	if err != nil {
		t.Fatalf("lock the journal: %v", err)
	}
	if _, err := conn.ExecContext(ctx, `BEGIN IMMEDIATE`); err != nil {
		t.Fatalf("lock the journal: %v", err)
	}
	release = sync.OnceFunc(func() {
		if _, err := conn.ExecContext(ctx, `ROLLBACK`); err != nil {
			t.Errorf("unlock the journal: %v", err)
		}
		conn.Close()
		db.Close()
	})
	t.Cleanup(release)
	return release
}

// Prefix makes in dstDir the journal that the closed one in srcDir was when row n was its last. Opening it is what
// happens after a crash behind that row.
func Prefix(t testing.TB, srcDir, dstDir string, n int64) {
	t.Helper()
	data, err := os.ReadFile(file(srcDir))
	if err != nil {
		t.Fatalf("copy the journal: %v", err)
	}
	if info, err := os.Stat(file(srcDir) + "-wal"); err == nil && info.Size() > 0 {
		t.Fatalf("copy the journal: %s was not closed", srcDir)
	}
	if err := os.MkdirAll(dstDir, 0o700); err != nil {
		t.Fatalf("copy the journal: %v", err)
	}
	if err := os.WriteFile(file(dstDir), data, 0o600); err != nil {
		t.Fatalf("copy the journal: %v", err)
	}
	open := openBehind(t, dstDir, n)
	db := openDB(t, dstDir, "rw")
	defer db.Close()
	tx, err := db.Begin()
	if err != nil {
		t.Fatalf("cut the journal: %v", err)
	}
	defer tx.Rollback() // does nothing after the commit
	exec := func(query string, args ...any) {
		if _, err := tx.Exec(query, args...); err != nil {
			t.Fatalf("cut the journal: %v", err)
		}
	}
	exec(`DELETE FROM events WHERE seq > ?`, n)
	exec(`DELETE FROM claims WHERE seq > ?`, n)
	exec(`DELETE FROM awaited`)
	for c, seq := range open {
		exec(`INSERT INTO awaited VALUES (?, ?, ?, ?, ?, ?)`, c.Scope, c.Parts[0], c.Parts[1], c.Parts[2], c.Parts[3], seq)
	}
	if err := tx.Commit(); err != nil {
		t.Fatalf("cut the journal: %v", err)
	}
}

// openBehind computes what the first n rows leave open, and which of them does.
func openBehind(t testing.TB, dir string, n int64) map[ledger.Claim]int64 {
	t.Helper()
	open, made := map[ledger.Claim]int64{}, map[ledger.Claim]bool{}
	for _, e := range events(t, dir) {
		if e.Seq > n {
			break
		}
		for _, c := range e.Body.Claims(e) {
			made[c] = true
			delete(open, c)
		}
		if a, ok := e.Body.(ledger.Awaiter); ok {
			for _, c := range a.Awaits(e) {
				if !made[c] {
					open[c] = e.Seq
				}
			}
		}
	}
	return open
}

// Dump is the journal in dir, one line a row, for people who look at a failed test. Hashes and times are left out, so
// that two runs of the same test can be compared.
func Dump(t testing.TB, dir string) string {
	t.Helper()
	var b strings.Builder
	for _, e := range events(t, dir) {
		body, err := json.Marshal(e.Body)
		if err != nil {
			t.Fatalf("print the journal: %v", err)
		}
		actor := strings.Join(strings.Fields(fmt.Sprintf("%s %s %s", e.Actor.Kind, e.Actor.Team, e.Actor.ID)), ":")
		fmt.Fprintf(&b, "%4d %-20s session=%s run=%s call=%s by=%s %s\n", e.Seq, e.Kind(), e.Session, e.Run, e.Call, actor, body)
	}
	return b.String()
}

// events reads the whole journal; it may be open elsewhere.
func events(t testing.TB, dir string) []ledger.Event {
	t.Helper()
	ctx := context.WithoutCancel(t.Context())
	r, err := ledger.OpenReader(ctx, dir)
	if err != nil {
		t.Fatalf("read the journal: %v", err)
	}
	defer r.Close()
	var all []ledger.Event
	for e, err := range r.Read(ctx, 0, ledger.Filter{}) {
		if err != nil {
			t.Fatalf("read the journal: %v", err)
		}
		all = append(all, e)
	}
	return all
}

func file(dir string) string { return filepath.Join(dir, "journal.db") }

func openDB(t testing.TB, dir, mode string) *sql.DB {
	t.Helper()
	path, err := filepath.Abs(file(dir))
	if err != nil {
		t.Fatal(err)
	}
	u := url.URL{Scheme: "file", Path: path, RawQuery: "mode=" + mode}
	db, err := sql.Open("sqlite", u.String())
	if err != nil {
		t.Fatal(err)
	}
	db.SetMaxOpenConns(1)
	return db
}
