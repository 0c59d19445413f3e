package ledger

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"
	"pgregory.net/rapid"

	"approvalbot/internal/rapidtest"
)

var errDisk = errors.New("the disk is on fire")

// faults stand between the journal and the database. before is asked for every statement of the writer ("CONNECT" for a
// new connection): an error keeps it from being executed. after is asked when it was executed: an error takes the place
// of its success.
type faults struct {
	before func(c driver.Conn, query string) error
	after  func(query string) error
}

func (f *faults) connect(dsn string) (driver.Connector, error) {
	c, err := sqlite.NewConnector(dsn)
	if err != nil || strings.Contains(dsn, "mode=ro") {
		return c, err
	}
	return faultyConnector{c, f}, nil
}

func (f *faults) run(c driver.Conn, query string, do func() error) error {
	if f.before != nil {
		if err := f.before(c, query); err != nil {
			return err
		}
	}
	if err := do(); err != nil {
		return err
	}
	if f.after != nil {
		return f.after(query)
	}
	return nil
}

type faultyConnector struct {
	driver.Connector
	f *faults
}

func (c faultyConnector) Connect(ctx context.Context) (conn driver.Conn, err error) {
	err = c.f.run(nil, "CONNECT", func() (err error) {
		conn, err = c.Connector.Connect(ctx)
		return err
	})
	if err != nil {
		return nil, err
	}
	return faultyConn{conn, c.f}, nil
}

// A faultyConn knows nothing but prepared statements; database/sql makes do with that.
type faultyConn struct {
	driver.Conn
	f *faults
}

func (c faultyConn) PrepareContext(ctx context.Context, query string) (driver.Stmt, error) {
	s, err := c.Conn.(driver.ConnPrepareContext).PrepareContext(ctx, query)
	if err != nil {
		return nil, err
	}
	return faultyStmt{s, c, query}, nil
}

type faultyStmt struct {
	driver.Stmt
	c     faultyConn
	query string
}

func (s faultyStmt) ExecContext(ctx context.Context, args []driver.NamedValue) (r driver.Result, err error) {
	err = s.c.f.run(s.c.Conn, s.query, func() (err error) {
		r, err = s.Stmt.(driver.StmtExecContext).ExecContext(ctx, args)
		return err
	})
	return r, err
}

func (s faultyStmt) QueryContext(ctx context.Context, args []driver.NamedValue) (r driver.Rows, err error) {
	err = s.c.f.run(s.c.Conn, s.query, func() (err error) {
		r, err = s.Stmt.(driver.StmtQueryContext).QueryContext(ctx, args)
		return err
	})
	return r, err
}

// openFaulty opens a journal behind faults, which begin when it is open.
func openFaulty(t testing.TB, dir string, f *faults) *Ledger {
	t.Helper()
	later := *f
	*f = faults{}
	l, err := open(t.Context(), dir, Options{}, f.connect)
	if err != nil {
		t.Fatal(err)
	}
	*f = later
	t.Cleanup(func() { l.Close() })
	return l
}

// whole fails the test if the journal doesn't verify.
func whole(t testing.TB, r *Reader) {
	t.Helper()
	report, err := r.Verify(t.Context(), VerifyOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if !report.OK() {
		t.Fatal(report.Problem)
	}
}

// first makes a fault happen once, the first time that a statement begins so.
func first(prefix string) func(string) error {
	var did sync.Once
	return func(query string) (err error) {
		if strings.HasPrefix(query, prefix) {
			did.Do(func() { err = errDisk })
		}
		return err
	}
}

func ignoreConn(f func(string) error) func(driver.Conn, string) error {
	return func(_ driver.Conn, query string) error { return f(query) }
}

func TestACommitThatFailedButTookPlaceIsASuccess(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		l := openFaulty(t, dir, &faults{after: first("COMMIT")})
		got := mustAppend(t, l, note("a", "one"), note("a", "two"))
		if err := l.Health(); err != nil {
			t.Error(err)
		}
		got = append(got, mustAppend(t, l, note("a", "three"))...)
		if diff := cmp.Diff(got, all(t, l.Reader, 0, Filter{})); diff != "" {
			t.Error(diff)
		}
		whole(t, l.Reader)
	})
}

func TestACommitThatTookPlaceMustBeSecured(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		l := openFaulty(t, dir, &faults{
			after:  first("COMMIT"),
			before: ignoreConn(first("PRAGMA wal_checkpoint")),
		})
		if _, err := l.Append(t.Context(), once("ap", "x")); !errors.Is(err, ErrNotRecorded) || !errors.Is(err, errDisk) {
			t.Fatal("append whose commit may be lost:", err)
		}
		if l.Health() == nil {
			t.Error("healthy")
		}
		// It is there after all; whoever tries again is told so.
		_, err := l.Append(t.Context(), once("ap", "x"))
		if conflict, ok := errors.AsType[*ConflictError](err); !ok || conflict.Winner.Seq != 1 {
			t.Error("the same again:", err)
		}
		whole(t, l.Reader)
	})
}

func TestEveryStatementMayFail(t *testing.T) {
	for _, query := range []string{"BEGIN", "SAVEPOINT", "INSERT INTO events", "INSERT INTO claims", "DELETE FROM awaited", "INSERT OR IGNORE INTO awaited", "RELEASE", "COMMIT"} {
		t.Run(query, func(t *testing.T) {
			dir := t.TempDir()
			synctest.Test(t, func(t *testing.T) {
				l := openFaulty(t, dir, &faults{before: ignoreConn(first(query))})
				started := Event{Run: "r", Actor: System, Body: &RunStarted{Place: Place{Channel: "C"}}}
				finished := Event{Run: "r", Actor: System, Body: &RunFinished{Status: RunFailed}}
				if _, err := l.Append(t.Context(), started, finished); !errors.Is(err, ErrNotRecorded) || !errors.Is(err, errDisk) {
					t.Fatal(err)
				}
				if err := l.Health(); !errors.Is(err, errDisk) {
					t.Error("health:", err)
				}
				if got := mustAppend(t, l, started, finished); got[0].Seq != 1 {
					t.Error("something was left behind:", got)
				}
				if err := l.Health(); err != nil {
					t.Error("health afterwards:", err)
				}
				whole(t, l.Reader)
			})
		})
	}
}

// TestAFullDisk fills the disk in the middle of a shared transaction: SQLite would then commit the later statements alone.
func TestAFullDisk(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		begun, goOn := make(chan bool), make(chan bool)
		transactions := 0 // counted by the writer's goroutine
		f := &faults{}
		f.before = func(c driver.Conn, query string) error {
			if query != `BEGIN IMMEDIATE` {
				return nil
			}
			transactions++
			switch transactions {
			case 1:
				begun <- true
				<-goOn
			case 2:
				return execDirect(c, `PRAGMA max_page_count = 20`)
			}
			return nil
		}
		l := openFaulty(t, dir, f)
		var wg sync.WaitGroup
		wg.Go(func() { mustAppend(t, l, note("a", "holds the writer")) })
		<-begun
		var failed sync.Map
		for i, size := range []int{10, 200_000, 10} {
			wg.Go(func() {
				_, err := l.Append(t.Context(), note("b", fmt.Sprint(i, strings.Repeat("x", size))))
				failed.Store(i, err)
			})
			synctest.Wait()
		}
		goOn <- true
		wg.Wait()
		for i := range 3 {
			if err, _ := failed.Load(i); !errors.Is(err.(error), ErrNotRecorded) || code(err.(error)) != sqlite3.SQLITE_FULL {
				t.Errorf("append %d on the full disk: %v", i, err)
			}
		}
		if events := all(t, l.Reader, 0, Filter{}); len(events) != 1 {
			t.Errorf("%d events are on the disk", len(events))
		}
		if got := mustAppend(t, l, note("c", "there is room again")); got[0].Seq != 2 {
			t.Error(got)
		}
		whole(t, l.Reader)
	})
}

// TestALostClaimHidesNoFault: in a batch that fails, one append that lost to an old row is answered so, and the journal
// is still known to be unwritable.
func TestALostClaimHidesNoFault(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		begun, goOn := make(chan bool), make(chan bool)
		transactions := 0
		l := openFaulty(t, dir, &faults{before: func(_ driver.Conn, query string) error {
			switch {
			case query == `BEGIN IMMEDIATE`:
				if transactions++; transactions == 2 {
					begun <- true
					<-goOn
				}
			case query == `COMMIT` && transactions == 3:
				return errDisk
			}
			return nil
		}})
		mustAppend(t, l, once("r", "first"))
		var wg sync.WaitGroup
		wg.Go(func() { mustAppend(t, l, note("a", "holds the writer")) })
		<-begun
		wg.Go(func() {
			_, err := l.Append(t.Context(), once("r", "second"))
			if conflict, ok := errors.AsType[*ConflictError](err); !ok || conflict.Winner.Seq != 1 {
				t.Error("lost:", err)
			}
		})
		wg.Go(func() {
			if _, err := l.Append(t.Context(), note("b", "new")); !errors.Is(err, ErrNotRecorded) {
				t.Error("new:", err)
			}
		})
		synctest.Wait()
		goOn <- true
		wg.Wait()
		if l.Health() == nil {
			t.Error("healthy after a commit that failed")
		}
	})
}

func execDirect(c driver.Conn, query string) error {
	s, err := c.(driver.ConnPrepareContext).PrepareContext(context.Background(), query)
	if err != nil {
		return err
	}
	defer s.Close()
	_, err = s.(driver.StmtExecContext).ExecContext(context.Background(), nil)
	return err
}

func TestNothingIsWrittenWhileTheFileCannotBeOpened(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		var broken sync.Map
		f := &faults{before: func(_ driver.Conn, query string) error {
			if _, yes := broken.Load(true); yes && (query == "CONNECT" || query == "COMMIT") {
				return errDisk
			}
			return nil
		}}
		l := openFaulty(t, dir, f)
		broken.Store(true, true)
		for range 3 {
			if _, err := l.Append(t.Context(), note("a", "no")); !errors.Is(err, ErrNotRecorded) || l.Health() == nil {
				t.Fatal(err, l.Health())
			}
		}
		if events := all(t, l.Reader, 0, Filter{}); len(events) > 0 {
			t.Error("reading goes on, but not of", events)
		}
		broken.Delete(true)
		if got := mustAppend(t, l, note("a", "yes")); got[0].Seq != 1 || l.Health() != nil {
			t.Error(got, l.Health())
		}
	})
}

// TestFaultsProperty: whatever fails when, an append that was answered is on disk once and as it was answered, one that
// wasn't recorded is not there (but where the file could not be read again it may be), and the journal stays whole.
func TestFaultsProperty(t *testing.T) {
	rapidtest.Checks(t, 20)
	rapid.Check(t, func(rt *rapid.T) {
		faultsAt := rapid.SliceOfN(rapid.IntRange(0, 120), 0, 8).Draw(rt, "before")
		afterAt := rapid.SliceOfN(rapid.IntRange(0, 120), 0, 8).Draw(rt, "after")
		writers := rapid.IntRange(1, 4).Draw(rt, "writers")
		dir := t.TempDir()
		synctest.Test(t, func(t *testing.T) { runWithFaults(t, dir, faultsAt, afterAt, writers) })
	})
}

func runWithFaults(t *testing.T, dir string, beforeAt, afterAt []int, writers int) {
	hit := func(at []int) func(string) error {
		n := 0 // only the writer's goroutine gets here
		return func(string) error {
			n++
			for _, a := range at {
				if a == n {
					return errDisk
				}
			}
			return nil
		}
	}
	l := openFaulty(t, dir, &faults{before: ignoreConn(hit(beforeAt)), after: hit(afterAt)})
	var mu sync.Mutex
	recorded := map[int64]Event{}
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			for i := range 6 {
				got, err := l.Append(t.Context(), note(fmt.Sprint(w), fmt.Sprint(i)), once("once-"+fmt.Sprint(i), fmt.Sprint(w)))
				if _, lost := errors.AsType[*ConflictError](err); err != nil && !lost && !errors.Is(err, ErrNotRecorded) {
					t.Error(err)
				}
				mu.Lock()
				for _, e := range got {
					recorded[e.Seq] = e
				}
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	if err := l.WaitWritable(t.Context()); err != nil {
		t.Error(err)
	}
	events := all(t, l.Reader, 0, Filter{})
	unknown := len(events) - len(recorded)
	for _, e := range events {
		if r, ok := recorded[e.Seq]; ok {
			if diff := cmp.Diff(r, e); diff != "" {
				t.Error(diff)
			}
			delete(recorded, e.Seq)
		}
	}
	if len(recorded) > 0 {
		t.Error("answered but not on disk:", recorded)
	}
	if unknown > 0 && len(afterAt) == 0 {
		t.Errorf("%d events are on disk that were answered as not recorded", unknown)
	}
	whole(t, l.Reader)
	if err := l.Close(); err != nil {
		t.Error(err)
	}
}
