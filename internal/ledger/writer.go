package ledger

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"time"
)

const (
	maxBatch      = 256     // appends that share a commit
	maxBatchBytes = 8 << 20 // and their bytes, the last one not counted
	tailRows      = 256     // rows whose chain is checked when the journal is opened
)

// A request is an append on its way. The writer owns it until it is answered; then events or err hold the answer.
type request struct {
	events   []Event
	rows     []*row
	claims   [][]Claim // of each event
	size     int
	probe    bool
	answered chan struct{} // closed by the writer

	conflict *Claim // the claim that was taken, by the row winner
	winner   *row
	err      error
}

// newRequest encodes events. It runs with the caller, so that the writer has nothing left to do but write.
func newRequest(events []Event) (*request, error) {
	r := &request{answered: make(chan struct{})}
	seen := map[Claim]bool{}
	for _, e := range events {
		e.Actor = e.Actor.valid()
		row, err := newRow(e)
		if err != nil {
			return nil, err
		}
		// From here on the event is what a reader will get: the claims are made from that, so that Verify finds the same.
		if e.Body, err = decodeBody(row.kind, row.body); err != nil {
			return nil, err
		}
		claims := e.Body.Claims(e)
		for _, c := range claims {
			if err := c.check(); err != nil {
				return nil, fmt.Errorf("%s: %w", e.Kind(), err)
			}
			if seen[c] {
				return nil, fmt.Errorf("%s: two events of one append claim %s", e.Kind(), c)
			}
			seen[c] = true
		}
		r.events, r.rows, r.claims = append(r.events, e), append(r.rows, row), append(r.claims, claims)
		r.size += len(row.body)
	}
	return r, nil
}

// newProbe is a request that records nothing but has to be committed like all others.
func newProbe() *request { return &request{probe: true, answered: make(chan struct{})} }

// perCall are the scopes whose claims are about one call.
var perCall = map[string]bool{"decision": true, "ask": true, "start": true, "finish": true}

// check refuses claims with an empty key: all things without a name would be the same thing.
func (c Claim) check() error {
	if c.Parts[0] == "" || perCall[c.Scope] && c.Parts[1] == "" {
		return fmt.Errorf("the claim %s has an empty part", c)
	}
	return nil
}

// A writer owns the one connection that writes. It is used by one goroutine.
type writer struct {
	dir     string
	connect connect
	log     *slog.Logger
	news    *news
	health  *health

	committed func(Commit) // Options.Committed

	conn *writeConn // nil: to be opened before anything is written
	tail tail       // of the open transaction, or of the disk
}

// A tail is what the next row builds on.
type tail struct {
	seq  int64
	time int64
	hash Hash
}

func (t tail) head() Head { return Head{Seq: t.seq, Hash: t.hash} }

// open opens the connection and reads the tail. It leaves nothing behind if it fails.
func (w *writer) open(ctx context.Context) error {
	ctx = context.WithoutCancel(ctx)
	c, err := openWriteConn(ctx, w.connect, w.dir)
	if err != nil {
		return err
	}
	t, err := w.readTail(ctx, c)
	if err != nil {
		return errors.Join(err, c.close())
	}
	w.conn, w.tail = c, t
	return nil
}

// readTail reads what the next row builds on. The first time it checks that the last rows follow from one another, later
// that what was recorded is still there.
func (w *writer) readTail(ctx context.Context, c *writeConn) (tail, error) {
	n := tailRows
	if w.news != nil {
		n = 1
	}
	t, err := c.tail(ctx, n)
	if p, ok := errors.AsType[*Problem](err); ok {
		return tail{}, &DamagedError{Dir: w.dir, Problem: *p}
	}
	if err != nil || w.news == nil || w.news.last().Seq == 0 {
		return t, err
	}
	known := w.news.last()
	there, err := c.has(ctx, &row{seq: known.Seq, hash: known.Hash})
	if err == nil && !there {
		err = &DamagedError{Dir: w.dir, Problem: Problem{Seq: known.Seq, Kind: BadHead, What: "the row that was recorded is not there any more"}}
	}
	return t, err
}

// drop gives the connection up, and with it what it had not committed.
func (w *writer) drop() error {
	if w.conn == nil {
		return nil
	}
	c := w.conn
	w.conn = nil
	return c.close()
}

// commit writes a batch in one transaction and answers every request of it.
func (w *writer) commit(batch []*request) {
	ctx := context.Background() // the transaction is the writer's: no caller's context can break it off
	began := time.Now()
	err := w.transact(ctx, batch)
	if err != nil {
		err = w.settle(ctx, batch, err)
	}
	w.report(err, slices.ContainsFunc(batch, func(r *request) bool { return !r.probe }))
	if w.conn != nil && w.tail.seq > w.news.last().Seq {
		w.news.publish(w.tail.head())
	}
	done := summary(batch, time.Since(began), err)
	for _, r := range batch {
		r.answer()
	}
	if w.committed != nil {
		w.committed(done)
	}
}

// summary counts what became of a batch. Its requests are their callers' once they are answered, so it comes before.
func summary(batch []*request, took time.Duration, err error) Commit {
	c := Commit{Took: took, Err: err}
	for _, r := range batch {
		switch {
		case r.probe: // it is no append
		case r.err != nil:
			c.Failed++
		case r.conflict != nil:
			c.Conflicts++
		default:
			c.Recorded++
		}
	}
	return c
}

// transact writes a batch. After an error no further statement is executed.
func (w *writer) transact(ctx context.Context, batch []*request) error {
	if w.conn == nil {
		if err := w.open(ctx); err != nil {
			return err
		}
	}
	if err := w.conn.inPlace(w.dir); err != nil {
		return err
	}
	if err := w.conn.begin(ctx); err != nil {
		return err
	}
	for _, r := range batch {
		if err := w.write(ctx, r); err != nil {
			return err
		}
	}
	return w.conn.commit(ctx)
}

// write writes one request inside a savepoint of its own. A claim that was taken undoes the request and is no error.
func (w *writer) write(ctx context.Context, r *request) error {
	if r.probe {
		return w.conn.probe(ctx)
	}
	before := w.tail
	if err := w.conn.savepoint(ctx); err != nil {
		return err
	}
	now := time.Now().UnixMicro()
	for i, row := range r.rows {
		row.seq, row.time = w.tail.seq+1, max(now, w.tail.time)
		row.hash = chain(w.tail.hash, row)
		w.tail = tail{seq: row.seq, time: row.time, hash: row.hash}
		r.events[i].Seq, r.events[i].Time, r.events[i].Hash = row.seq, time.UnixMicro(row.time).UTC(), row.hash
		taken, err := w.conn.insert(ctx, row, r.claims[i], awaits(r.events[i]))
		if err != nil {
			return err
		}
		if taken != nil {
			w.tail = before
			return w.lose(ctx, r, taken)
		}
	}
	return w.conn.release(ctx)
}

// lose takes a request back and finds out who made the claim.
func (w *writer) lose(ctx context.Context, r *request, taken *Claim) error {
	if err := w.conn.rollback(ctx); err != nil {
		return err
	}
	if err := w.conn.release(ctx); err != nil {
		return err
	}
	winner, err := w.conn.winner(ctx, *taken)
	if err != nil {
		return fmt.Errorf("find who made the claim %s: %w", taken, err)
	}
	r.conflict, r.winner = taken, winner
	return nil
}

// awaits is what an event leaves open.
func awaits(e Event) []Claim {
	if a, ok := e.Body.(Awaiter); ok {
		return a.Awaits(e)
	}
	return nil
}

// settle finds out what became of a batch that failed with cause: the connection is dropped, the tail is read again,
// and what is on disk counts. It returns nil if the batch is there after all.
func (w *writer) settle(ctx context.Context, batch []*request, cause error) error {
	if err := w.drop(); err != nil {
		w.log.Warn("journal connection closed with an error", "error", err)
	}
	if err := w.open(ctx); err != nil {
		return failAll(batch, errors.Join(cause, fmt.Errorf("open it again: %w", err)))
	}
	recorded, err := w.onDisk(ctx, batch, cause)
	if err != nil {
		return failAll(batch, errors.Join(cause, fmt.Errorf("read it again: %w", err), w.drop()))
	}
	if !recorded {
		return cause
	}
	w.log.Warn("a commit of the journal reported an error but took place", "error", cause)
	return nil
}

// onDisk answers each request of a failed batch by whether its last row, or the row that it lost to, is on disk. If a
// row of the batch is there, it makes sure that it stays: after a failed sync what can be read may still be in the
// operating system's memory only, so the log is carried over into the database, which writes and syncs it anew.
func (w *writer) onDisk(ctx context.Context, batch []*request, cause error) (recorded bool, err error) {
	for _, r := range batch {
		last := r.winner
		if last == nil && len(r.rows) > 0 {
			last = r.rows[len(r.rows)-1]
		}
		there := false
		if last != nil && last.seq > 0 {
			if there, err = w.conn.has(ctx, last); err != nil {
				return false, err
			}
		}
		if !there {
			r.fail(cause)
		}
		recorded = recorded || there && r.winner == nil
	}
	if recorded {
		return true, w.conn.checkpoint(ctx)
	}
	return false, nil
}

func failAll(batch []*request, cause error) error {
	for _, r := range batch {
		r.fail(cause)
	}
	return cause
}

// report keeps what was found for Health, and logs when it changes. wrote tells whether events were to be written.
func (w *writer) report(err error, wrote bool) {
	was := w.health.set(notRecorded(err), wrote)
	switch {
	case err != nil && was == nil:
		w.log.Error("the journal can't be written; nothing is shown and nothing runs", "error", err)
	case err == nil && was != nil:
		w.log.Info("the journal can be written again", "head", w.tail.head().String())
	}
}

// fail makes the answer an error: nothing was recorded.
func (r *request) fail(cause error) {
	r.err, r.conflict, r.winner = notRecorded(cause), nil, nil
}

// answer lets the caller go on.
func (r *request) answer() {
	if r.conflict != nil {
		r.err = r.lost()
	}
	if r.err != nil {
		r.events = nil
	}
	close(r.answered)
}

func (r *request) lost() error {
	e, err := r.winner.event()
	if err != nil {
		return notRecorded(fmt.Errorf("%s was taken: %w", r.conflict, err))
	}
	return &ConflictError{Claim: *r.conflict, Winner: e}
}

// A writeConn is the writing connection with its statements. What it was not asked to commit is undone when it closes.
type writeConn struct {
	db    *sql.DB
	conn  *sql.Conn
	stmts map[string]*sql.Stmt
	file  os.FileInfo // which file it has open
}

// The statements of an append.
const (
	insertEvent   = `INSERT INTO events VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`
	insertClaim   = `INSERT INTO claims VALUES (?, ?, ?, ?, ?, ?)`
	deleteAwaited = `DELETE FROM awaited WHERE scope = ? AND a = ? AND b = ? AND c = ? AND d = ?`
	insertAwaited = `INSERT OR IGNORE INTO awaited SELECT ?1, ?2, ?3, ?4, ?5, ?6
		WHERE NOT EXISTS (SELECT 1 FROM claims WHERE scope = ?1 AND a = ?2 AND b = ?3 AND c = ?4 AND d = ?5)`
	selectWinner = `SELECT ` + columns + ` FROM claims c JOIN events e USING (seq)
		WHERE c.scope = ? AND c.a = ? AND c.b = ? AND c.c = ? AND c.d = ?`
)

func openWriteConn(ctx context.Context, c connect, dir string) (*writeConn, error) {
	db, err := openDB(c, writeDSN(dir), 1)
	if err != nil {
		return nil, err
	}
	conn, err := db.Conn(ctx)
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	w := &writeConn{db: db, conn: conn, stmts: map[string]*sql.Stmt{}}
	w.file, err = os.Stat(journalFile(dir))
	if err == nil {
		err = prepareFile(ctx, conn)
	}
	if err != nil {
		return nil, errors.Join(err, w.close())
	}
	return w, nil
}

// inPlace makes sure that the file is still where it will be looked for. One that was moved away or deleted could be
// written for a long time, and nobody would find what was recorded.
func (c *writeConn) inPlace(dir string) error {
	now, err := os.Stat(journalFile(dir))
	if err != nil {
		return err
	}
	if !os.SameFile(c.file, now) {
		return fmt.Errorf("%s is another file than the one that was opened", journalFile(dir))
	}
	return nil
}

// close ends the statements first: database/sql doesn't keep those of a single connection, and SQLite would hold the
// connection's locks, and what it had not committed, until the last of them is gone.
func (c *writeConn) close() error {
	var errs []error
	for _, s := range c.stmts {
		errs = append(errs, s.Close())
	}
	return errors.Join(append(errs, c.conn.Close(), c.db.Close())...)
}

// exec runs a statement that was prepared when it was first used.
func (c *writeConn) exec(ctx context.Context, query string, args ...any) error {
	s, err := c.stmt(ctx, query)
	if err != nil {
		return err
	}
	_, err = s.ExecContext(ctx, args...)
	return err
}

func (c *writeConn) stmt(ctx context.Context, query string) (*sql.Stmt, error) {
	if s := c.stmts[query]; s != nil {
		return s, nil
	}
	s, err := c.conn.PrepareContext(ctx, query)
	if err != nil {
		return nil, err
	}
	c.stmts[query] = s
	return s, nil
}

func (c *writeConn) begin(ctx context.Context) error     { return c.exec(ctx, `BEGIN IMMEDIATE`) }
func (c *writeConn) commit(ctx context.Context) error    { return c.exec(ctx, `COMMIT`) }
func (c *writeConn) savepoint(ctx context.Context) error { return c.exec(ctx, `SAVEPOINT append`) }
func (c *writeConn) release(ctx context.Context) error   { return c.exec(ctx, `RELEASE append`) }
func (c *writeConn) rollback(ctx context.Context) error  { return c.exec(ctx, `ROLLBACK TO append`) }
func (c *writeConn) probe(ctx context.Context) error {
	return c.exec(ctx, `UPDATE scratch SET n = n + 1`)
}

// insert writes a row with what it claims and awaits. taken is the claim that was made before, if there is one; the
// savepoint has to be rolled back then. Only here is a failed constraint what it looks like: anywhere else it is an error.
func (c *writeConn) insert(ctx context.Context, r *row, claims, awaits []Claim) (taken *Claim, err error) {
	if err := c.exec(ctx, insertEvent, r.seq, r.time, r.session, r.run, r.call, r.actor, r.kind, r.body, r.bodyHash[:], r.hash[:]); err != nil {
		return nil, err
	}
	for _, claim := range claims {
		err := c.exec(ctx, insertClaim, append(claim.args(), r.seq)...)
		if isUnique(err) {
			return &claim, nil
		}
		if err != nil {
			return nil, err
		}
		if !awaitable[claim.Scope] {
			continue
		}
		if err := c.exec(ctx, deleteAwaited, claim.args()...); err != nil {
			return nil, err
		}
	}
	for _, claim := range awaits {
		if err := c.exec(ctx, insertAwaited, append(claim.args(), r.seq)...); err != nil {
			return nil, err
		}
	}
	return nil, nil
}

// winner reads the row that made a claim.
func (c *writeConn) winner(ctx context.Context, claim Claim) (*row, error) {
	s, err := c.stmt(ctx, selectWinner)
	if err != nil {
		return nil, err
	}
	return scanRow(s.QueryRowContext(ctx, claim.args()...))
}

// has tells whether exactly this row is on disk.
func (c *writeConn) has(ctx context.Context, r *row) (bool, error) {
	var hash []byte
	err := c.conn.QueryRowContext(ctx, `SELECT hash FROM events WHERE seq = ?`, r.seq).Scan(&hash)
	if errors.Is(err, sql.ErrNoRows) {
		return false, nil
	}
	return string(hash) == string(r.hash[:]), err
}

// checkpoint carries all of the write-ahead log over into the database and syncs it.
func (c *writeConn) checkpoint(ctx context.Context) error {
	var busy, inLog, done int64
	if err := c.conn.QueryRowContext(ctx, `PRAGMA wal_checkpoint(full)`).Scan(&busy, &inLog, &done); err != nil {
		return err
	}
	if busy != 0 || inLog != done {
		return fmt.Errorf("%d of %d pages of the log could be secured", done, inLog)
	}
	return nil
}

// tail reads the last n rows, checks that they follow from one another, and returns the last one.
func (c *writeConn) tail(ctx context.Context, n int) (tail, error) {
	// Without the bodies: the chain covers them by their hash, and whoever reads one checks it.
	const query = `SELECT e.seq, e.time, e.session, e.run, e.call, e.actor, e.kind, NULL, e.body_hash, e.hash FROM events e ORDER BY seq DESC LIMIT ?`
	rows, err := c.conn.QueryContext(ctx, query, n)
	if err != nil {
		return tail{}, err
	}
	defer rows.Close()
	var last tail
	var next *row
	for rows.Next() {
		r, err := scanRow(rows)
		if err != nil {
			return tail{}, err
		}
		if next == nil {
			last = tail{seq: r.seq, time: r.time, hash: r.hash}
		} else if p := follows(r, next); p != nil {
			return tail{}, p
		}
		next = r
	}
	if next != nil && next.seq == 1 {
		if p := follows(&row{}, next); p != nil {
			return tail{}, p
		}
	}
	return last, rows.Err()
}
