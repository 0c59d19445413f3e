package ledgertest

import (
	"context"
	"database/sql"
	"fmt"
	"sync"
	"testing"
	"time"
)

// FailFrom makes the journal in dir fail as a full disk would, from the row on that would be number seq: no append that
// would reach it is written, and no probe once the journal has grown up to it. Seq 0 fails everything at once. The
// journal may be in use by this process. mend undoes it; the end of the test doesn't.
//
// Unlike [Lock] it takes effect in the middle of what the writer does, so a test can let a process die at any append.
func FailFrom(t testing.TB, dir string, seq int64) (mend func()) {
	t.Helper()
	mendEvents := FailEvents(t, dir, seq)
	patiently(t, dir, fmt.Sprintf(`CREATE TRIGGER full_scratch BEFORE UPDATE ON scratch
		WHEN (SELECT coalesce(max(seq), 0) + 1 FROM events) >= %d
		BEGIN SELECT RAISE(ABORT, 'the disk is full, says the test'); END`, seq))
	return sync.OnceFunc(func() {
		patiently(t, dir, `DROP TRIGGER full_scratch`)
		mendEvents()
	})
}

// FailEvents is FailFrom on a disk that has room for a probe still, but not for an event.
func FailEvents(t testing.TB, dir string, seq int64) (mend func()) {
	t.Helper()
	patiently(t, dir, fmt.Sprintf(`CREATE TRIGGER full_events BEFORE INSERT ON events WHEN NEW.seq >= %d
		BEGIN SELECT RAISE(ABORT, 'the disk is full, says the test'); END`, seq))
	return sync.OnceFunc(func() { patiently(t, dir, `DROP TRIGGER full_events`) })
}

// patiently executes statements in one transaction, as soon as nobody else writes.
func patiently(t testing.TB, dir, statements string) {
	t.Helper()
	db := openDB(t, dir, "rw")
	defer db.Close()
	var err error
	for range 1000 {
		if err = execAll(db, statements); err == nil {
			return
		}
		time.Sleep(time.Millisecond) // the writer may be in the middle of a transaction
	}
	t.Fatalf("the journal can't be changed: %v", err)
}

func execAll(db *sql.DB, statements string) error {
	ctx := context.Background()
	conn, err := db.Conn(ctx)
	if err != nil {
		return err
	}
	defer conn.Close()
	if _, err := conn.ExecContext(ctx, `BEGIN IMMEDIATE`); err != nil {
		return err
	}
	if _, err := conn.ExecContext(ctx, statements); err != nil {
		_, _ = conn.ExecContext(ctx, `ROLLBACK`)
		return err
	}
	_, err = conn.ExecContext(ctx, `COMMIT`)
	return err
}
