package audit

import (
	"context"
	"fmt"
	"io"
	"runtime"
	"testing"
	"time"

	"approvalbot/internal/ledger"
	"approvalbot/internal/redact"
)

// BenchmarkJournal reads a journal of 1,000 runs and one of four times as many. An op is both. The metrics:
//
//	verify-s/M     seconds for a million events, everything computed again
//	export-s/M     the same for an export of everything, redacted
//	exact-s/M      and one as it is
//	verify-heap-x  the most that was in memory for the large journal, over the most for the small one: 1 is flat
//	export-heap-x
func BenchmarkJournal(b *testing.B) {
	small, large := manyRuns(b, 1000), manyRuns(b, 4000)
	verify := func(j *ledger.Reader, p func(done, total int64)) error {
		report, err := j.Verify(b.Context(), ledger.VerifyOptions{Progress: p, Check: NewChecks(b.Context(), j).Event})
		if err == nil && !report.OK() {
			err = report.Problem
		}
		return err
	}
	export := func(r *redact.Redactor) func(*ledger.Reader, func(done, total int64)) error {
		return func(j *ledger.Reader, p func(done, total int64)) error {
			_, err := Export(b.Context(), j, io.Discard, ExportOptions{Redactor: r, Progress: p})
			return err
		}
	}
	for b.Loop() {
		_, heap := measure(b, small, verify)
		each, more := measure(b, large, verify)
		b.ReportMetric(each.Seconds(), "verify-s/M")
		b.ReportMetric(more/heap, "verify-heap-x")
		_, heap = measure(b, small, export(redact.New()))
		each, more = measure(b, large, export(redact.New()))
		b.ReportMetric(each.Seconds(), "export-s/M")
		b.ReportMetric(more/heap, "export-heap-x")
		each, _ = measure(b, large, export(nil))
		b.ReportMetric(each.Seconds(), "exact-s/M")
	}
}

// measure is how long a million events would take, and the most bytes that were in use at any page.
func measure(b *testing.B, j *ledger.Reader, f func(*ledger.Reader, func(done, total int64)) error) (perMillion time.Duration, heap float64) {
	b.Helper()
	var most uint64
	var rows int64
	var m runtime.MemStats
	runtime.GC()
	began := time.Now()
	err := f(j, func(done, total int64) {
		if rows = total; done%(32*256) < 256 {
			runtime.GC() // so that only what is held counts
			runtime.ReadMemStats(&m)
			most = max(most, m.HeapAlloc)
		}
	})
	if err != nil {
		b.Fatal(err)
	}
	return time.Since(began) * 1_000_000 / time.Duration(rows), float64(most)
}

// manyRuns makes a journal of runs in sessions of their own, about 20 events each.
func manyRuns(b *testing.B, runs int) *ledger.Reader {
	b.Helper()
	dir := b.TempDir()
	j, err := ledger.Open(b.Context(), dir, ledger.Options{})
	if err != nil {
		b.Fatal(err)
	}
	var batch []ledger.Event
	seq := int64(1)
	for n := range runs {
		for _, e := range story(fmt.Sprint("r", n), "date --iso-8601 and some more words of an ordinary length", seq) {
			e.Session = fmt.Sprint("s", n)
			if m, ok := e.Body.(*ledger.ModelCompleted); ok {
				m.RequestHash = requestOf(b, batch, e.Session)
			}
			batch = append(batch, e)
			seq++
		}
		if len(batch) > 200 || n == runs-1 {
			if _, err := j.Append(context.Background(), batch...); err != nil {
				b.Fatal(err)
			}
			batch = nil
		}
	}
	if err := j.Close(); err != nil {
		b.Fatal(err)
	}
	return reader(b, dir)
}
