package ledgertest

import (
	"context"
	"database/sql"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"approvalbot/internal/ledger"
)

// Bare is SQLite and nothing else, on the disk of the test: the measure of what the journal costs. A disk has better and
// worse moments, so it is to be measured in turns with what it is compared to.
type Bare struct {
	t      testing.TB
	insert *sql.Stmt
	body   []byte
}

// NewBare makes a database with one empty table. Its commits are as durable as the journal's.
func NewBare(t testing.TB) *Bare {
	t.Helper()
	path := filepath.Join(t.TempDir(), "bare.db")
	db, err := sql.Open("sqlite", "file:"+path+"?_pragma=journal_mode(wal)&_pragma=synchronous(full)")
	if err != nil {
		t.Fatal(err)
	}
	db.SetMaxOpenConns(1)
	t.Cleanup(func() { db.Close() })
	// As with [Grow].
	for _, s := range []string{
		`CREATE TABLE t (id INTEGER PRIMARY KEY, body BLOB)`,
		`INSERT INTO t (body) VALUES (zeroblob(5000000))`,
		`DELETE FROM t`,
		`PRAGMA wal_checkpoint(restart)`,
	} {
		if _, err := db.Exec(s); err != nil {
			t.Fatal(err)
		}
	}
	b := &Bare{t: t, body: make([]byte, 200)}
	if b.insert, err = db.Prepare(`INSERT INTO t (body) VALUES (?)`); err != nil {
		t.Fatal(err)
	}
	return b
}

// Grow lets a journal's write-ahead log grow to where it starts anew, by some megabytes of a model's words. As long as
// the log grows, a sync has to write its length, too, which takes some disks twice as long; in a process that has run
// for a while the log is overwritten.
func Grow(t testing.TB, j Appender) {
	t.Helper()
	words := strings.Repeat("x", 50_000)
	for range 120 {
		e := ledger.Event{Session: "of ledgertest", Run: "of ledgertest", Actor: ledger.System,
			Body: &ledger.ModelCompleted{Text: words}}
		if _, err := j.Append(context.WithoutCancel(t.Context()), e); err != nil {
			t.Fatalf("grow the journal: %v", err)
		}
	}
}

// An Appender is a journal, or what stands before one in a test.
type Appender interface {
	Append(ctx context.Context, events ...ledger.Event) ([]ledger.Event, error)
}

// Commit writes one small row and returns how long that took.
func (b *Bare) Commit() time.Duration {
	b.t.Helper()
	start := time.Now()
	if _, err := b.insert.Exec(b.body); err != nil {
		b.t.Fatal(err)
	}
	return time.Since(start)
}

// Times are measurements of one thing.
type Times []time.Duration

// Median is what the thing usually takes, whatever else the machine did now and then.
func (t Times) Median() time.Duration {
	if len(t) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(t))
	return sorted[len(sorted)/2]
}

// Over is how many times as long as the other thing it takes.
func (t Times) Over(other Times) float64 {
	return float64(t.Median()) / float64(other.Median())
}

// Milliseconds is the median, for a metric.
func (t Times) Milliseconds() float64 { return float64(t.Median()) / float64(time.Millisecond) }
