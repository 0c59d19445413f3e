package ledger

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"

	"modernc.org/sqlite"
)

// PruneOptions say what to erase.
type PruneOptions struct {
	Before time.Time     // bodies of runs that ended before this
	By     Actor         // who wants it
	Reason string        // why, in that person's words
	DryRun bool          // only find out what would be erased
	Verify VerifyOptions // for the check that goes before it
	Logger *slog.Logger  // nil: nothing is logged
}

// Pruning is what was erased, or would be.
type Pruning struct {
	Runs      int64 // whose bodies go
	Bodies    int64 // that go, those of the messages that belong to the runs included
	Bytes     int64 // that they have
	Unsettled int64 // runs that are old enough but stay: Slack hasn't been told yet how they ended
	Event     Event // the record of it; without a body where nothing was erased
}

// Prune erases the bodies of the events of all runs that ended before a time, and of the messages received before it that
// no other run builds on or waits for. The erasing and its record ([Pruned]) are one transaction. Then the database is
// written anew, so that nothing of the bodies is left in its file.
//
// No other process may have the journal open for writing ([*InUseError]); and it must verify, since erasing parts of one
// that was changed would destroy what could tell how ([*DamagedError]).
func Prune(ctx context.Context, dir string, o PruneOptions) (p Pruning, err error) {
	if dir, err = filepath.Abs(dir); err != nil {
		return Pruning{}, err
	}
	if _, err := os.Stat(journalFile(dir)); errors.Is(err, os.ErrNotExist) {
		return Pruning{}, fmt.Errorf("%w in %s", ErrNoJournal, dir)
	} else if err != nil {
		return Pruning{}, err
	}
	lock, err := lockDir(dir)
	if err != nil {
		return Pruning{}, err
	}
	defer func() { err = errors.Join(err, unlockDir(lock)) }()
	if report, err := verifyDir(ctx, dir, o.Verify); err != nil {
		return Pruning{}, err
	} else if !report.OK() {
		return Pruning{}, &DamagedError{Dir: dir, Problem: *report.Problem}
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	w := &writer{dir: dir, connect: sqlite.NewConnector, log: o.Logger}
	if err := w.open(ctx); err != nil {
		return Pruning{}, openError(dir, err)
	}
	defer func() { err = errors.Join(err, w.drop()) }()
	return w.prune(ctx, o)
}

// What is erased is found in two tables that live as long as the connection. A run stays while something waits for it: its
// end, or the last of its messages in Slack. A message stays while it waits for its turn, and with the run that took it or
// that came next in its session and so had it for context.
const (
	pruneRuns = `CREATE TEMP TABLE pruned_runs AS SELECT e.run FROM events e
		WHERE e.kind = 'run_finished' AND e.time < ?1 AND e.run <> '' AND e.body IS NOT NULL
		AND NOT EXISTS (SELECT 1 FROM awaited w WHERE w.scope IN ('run_end', 'run_settled') AND w.a = e.run)`
	pruneRows     = `CREATE TEMP TABLE pruned_rows (seq INTEGER PRIMARY KEY)`
	pruneOfRuns   = `INSERT INTO pruned_rows SELECT e.seq FROM pruned_runs p JOIN events e ON e.run = p.run AND e.run <> '' WHERE e.body IS NOT NULL`
	pruneMessages = `INSERT OR IGNORE INTO pruned_rows SELECT m.seq FROM events m
		LEFT JOIN claims c ON c.scope = 'message_taken' AND c.a = CAST(m.seq AS TEXT) AND c.b = '' AND c.c = '' AND c.d = ''
		WHERE m.kind = 'message_received' AND m.time < ?1 AND m.body IS NOT NULL
		AND NOT EXISTS (SELECT 1 FROM awaited w WHERE w.scope = 'message_taken' AND w.a = CAST(m.seq AS TEXT))
		AND NOT EXISTS (
			SELECT 1 FROM events n WHERE n.seq = COALESCE(c.seq,
				(SELECT min(s.seq) FROM events s WHERE s.session = m.session AND s.session <> '' AND s.kind = 'run_started' AND s.seq > m.seq))
			AND n.body IS NOT NULL AND n.run NOT IN (SELECT run FROM pruned_runs))`
	pruneCount = `SELECT (SELECT count(*) FROM pruned_runs), count(*), COALESCE(sum(length(e.body)), 0),
		(SELECT count(*) FROM events f WHERE f.kind = 'run_finished' AND f.time < ?1
			AND EXISTS (SELECT 1 FROM awaited w WHERE w.scope = 'run_settled' AND w.a = f.run))
		FROM pruned_rows p JOIN events e USING (seq)`
	pruneErase = `UPDATE events SET body = NULL WHERE seq IN (SELECT seq FROM pruned_rows)`
)

// prune finds, erases and records in one transaction. What isn't committed is undone when the connection is dropped.
func (w *writer) prune(ctx context.Context, o PruneOptions) (Pruning, error) {
	// The first overwrites what is erased at once, should the rewriting at the end fail. The second keeps this connection's
	// own tables out of files.
	for _, s := range []string{`PRAGMA secure_delete = on`, `PRAGMA temp_store = memory`} {
		if _, err := w.conn.conn.ExecContext(ctx, s); err != nil {
			return Pruning{}, err
		}
	}
	if err := w.conn.begin(ctx); err != nil {
		return Pruning{}, err
	}
	before := o.Before.UnixMicro()
	for _, s := range []string{pruneRuns, pruneRows, pruneOfRuns, pruneMessages} {
		args := []any{before}
		if !strings.Contains(s, "?1") {
			args = nil
		}
		if _, err := w.conn.conn.ExecContext(ctx, s, args...); err != nil {
			return Pruning{}, fmt.Errorf("find what to erase: %w", err)
		}
	}
	var p Pruning
	if err := w.conn.conn.QueryRowContext(ctx, pruneCount, before).Scan(&p.Runs, &p.Bodies, &p.Bytes, &p.Unsettled); err != nil {
		return Pruning{}, fmt.Errorf("count what to erase: %w", err)
	}
	if o.DryRun || p.Bodies == 0 {
		return p, nil
	}
	if _, err := w.conn.conn.ExecContext(ctx, pruneErase); err != nil {
		return Pruning{}, fmt.Errorf("erase: %w", err)
	}
	e, err := w.recordPruning(ctx, o, p)
	if err != nil {
		return Pruning{}, err
	}
	if err := w.conn.commit(ctx); err != nil {
		return Pruning{}, notRecorded(err)
	}
	p.Event = e
	if err := w.conn.rewrite(ctx); err != nil {
		return p, fmt.Errorf("the bodies are erased, but the file could not be written anew, and parts of them may be left in it: %w", err)
	}
	return p, nil
}

// recordPruning writes the event that says what was erased.
func (w *writer) recordPruning(ctx context.Context, o PruneOptions, p Pruning) (Event, error) {
	total, rows, err := w.conn.erased(ctx)
	if err != nil {
		return Event{}, err
	}
	r, err := newRequest([]Event{{Actor: o.By, Body: &Pruned{
		Before: o.Before.UTC(), Reason: o.Reason, Runs: p.Runs, Bodies: p.Bodies, Total: total, Rows: rows,
	}}})
	if err != nil {
		return Event{}, err
	}
	if err := w.write(ctx, r); err != nil {
		return Event{}, notRecorded(err)
	}
	return r.events[0], nil
}

// erased counts the bodies that are missing and names them all in one hash.
func (c *writeConn) erased(ctx context.Context) (total int64, rows Hash, err error) {
	found, err := c.conn.QueryContext(ctx, `SELECT seq FROM events WHERE body IS NULL ORDER BY seq`)
	if err != nil {
		return 0, Hash{}, err
	}
	defer found.Close()
	sum := newErasure()
	for found.Next() {
		var seq int64
		if err := found.Scan(&seq); err != nil {
			return 0, Hash{}, err
		}
		sum.add(seq)
	}
	return sum.total, sum.hash(), found.Err()
}

// rewrite writes the database anew, without its free pages, and empties the log, which still held the old ones.
func (c *writeConn) rewrite(ctx context.Context) error {
	if _, err := c.conn.ExecContext(ctx, `VACUUM`); err != nil {
		return err
	}
	var busy, inLog, done sql.NullInt64
	if err := c.conn.QueryRowContext(ctx, `PRAGMA wal_checkpoint(truncate)`).Scan(&busy, &inLog, &done); err != nil {
		return err
	}
	if busy.Int64 != 0 {
		return errors.New("another process reads the journal")
	}
	return nil
}

// An erasure is the account of the rows whose bodies are missing, taken in order.
type erasure struct {
	total int64
	first int64 // Seq of the first one
	last  int64
	sum   hash.Hash
}

func newErasure() *erasure { return &erasure{sum: sha256.New()} }

func (e *erasure) add(seq int64) {
	if e.total == 0 {
		e.first = seq
	}
	e.last = seq
	e.total++
	var b [8]byte
	binary.BigEndian.PutUint64(b[:], uint64(seq))
	e.sum.Write(b[:])
}

func (e *erasure) hash() (h Hash) {
	e.sum.Sum(h[:0])
	return h
}

// accounts checks that the bodies that are missing are those that the last pruning erased, and none besides; at is its
// row, and the body nil if there was none.
func (e *erasure) accounts(b *Pruned, at int64) *Problem {
	switch {
	case e.total == 0 && b == nil:
		return nil
	case b == nil:
		return &Problem{Seq: e.first, Kind: BadErased, What: "its body is missing, and nothing was pruned"}
	case e.last > at:
		return &Problem{Seq: e.last, Kind: BadErased, What: fmt.Sprintf("its body is missing, and nothing was pruned after row %d", at)}
	case e.total != b.Total:
		return &Problem{Seq: at, Kind: BadErased, What: fmt.Sprintf("%d bodies were erased up to here, and %d are missing", b.Total, e.total)}
	case e.hash() != b.Rows:
		return &Problem{Seq: at, Kind: BadErased, What: "the bodies that are missing are not the ones that were erased"}
	}
	return nil
}
