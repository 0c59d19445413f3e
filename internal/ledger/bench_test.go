package ledger

import (
	"context"
	"database/sql"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	_ "modernc.org/sqlite"
)

// bareCommit is what one durable commit of one small row costs on this machine, in SQLite and nothing else.
func bareCommit(b *testing.B) time.Duration {
	b.Helper()
	db, err := sql.Open("sqlite", "file:"+filepath.Join(b.TempDir(), "bare.db")+"?_pragma=journal_mode(wal)&_pragma=synchronous(full)")
	if err != nil {
		b.Fatal(err)
	}
	defer db.Close()
	db.SetMaxOpenConns(1)
	if _, err := db.Exec(`CREATE TABLE t (id INTEGER PRIMARY KEY, body BLOB)`); err != nil {
		b.Fatal(err)
	}
	insert, err := db.Prepare(`INSERT INTO t (body) VALUES (?)`)
	if err != nil {
		b.Fatal(err)
	}
	const n = 300
	body := make([]byte, 200)
	start := time.Now()
	for range n {
		if _, err := insert.Exec(body); err != nil {
			b.Fatal(err)
		}
	}
	return time.Since(start) / n
}

// BenchmarkAppend1 is one writer; bare/op is its time as a multiple of a bare commit.
func BenchmarkAppend1(b *testing.B) { benchmarkAppend(b, 1) }

// BenchmarkAppend64 is 64 writers, who share commits.
func BenchmarkAppend64(b *testing.B) { benchmarkAppend(b, 64) }

func benchmarkAppend(b *testing.B, writers int) {
	bare := bareCommit(b)
	l := mustOpen(b, b.TempDir())
	var next atomic.Int64
	var wg sync.WaitGroup
	b.ResetTimer()
	for range writers {
		wg.Go(func() {
			for {
				i := next.Add(1)
				if i > int64(b.N) {
					return
				}
				e := Event{Session: "s", Run: "r", Call: call(i), Actor: System, Body: &ToolStarted{Tool: "shell", Digest: "0123456789abcdef"}}
				if _, err := l.Append(context.Background(), e); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	b.StopTimer()
	b.ReportMetric(float64(b.Elapsed())/float64(b.N)/float64(bare), "bare/op")
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "appends/s")
}

func call(i int64) string { return "call-" + time.Duration(i).String() }
