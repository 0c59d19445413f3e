package ledger

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"iter"
	"math"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"modernc.org/sqlite"
)

const (
	pageRows  = 256     // a page of Read and Follow has at most so many rows …
	pageBytes = 4 << 20 // … and no further row once it has so many bytes
	pollEvery = 200 * time.Millisecond
	readers   = 4 // connections for reading
)

// columns are those of a row, in the order in which scanRow reads them.
const columns = `e.seq, e.time, e.session, e.run, e.call, e.actor, e.kind, e.body, e.body_hash, e.hash`

// A Reader reads a journal. It reads in pages and keeps no transaction open between them, so it holds up nobody. All
// its methods may be called at the same time.
type Reader struct {
	dir  string
	db   *sql.DB
	news *news // from the writer in this process; nil: another process writes, so Follow polls

	mu   sync.RWMutex // held for reading while a query runs, for writing to close
	once sync.Once
	done chan struct{} // closed by Close
	err  error         // of closing

	stmts sync.Map // string to *sql.Stmt
}

// OpenReader opens the journal in dir for reading, also while another process writes it.
func OpenReader(ctx context.Context, dir string) (*Reader, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	if _, err := os.Stat(journalFile(dir)); errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("%w in %s", ErrNoJournal, dir)
	} else if err != nil {
		return nil, err
	}
	r, err := newReader(ctx, dir, sqlite.NewConnector, nil)
	if err != nil {
		return nil, openError(dir, err)
	}
	return r, nil
}

func newReader(ctx context.Context, dir string, c connect, n *news) (*Reader, error) {
	db, err := openDB(c, readDSN(dir), readers)
	if err != nil {
		return nil, err
	}
	fresh, err := checkVersion(ctx, db)
	if err == nil && fresh {
		err = ErrNoJournal
	}
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return &Reader{dir: dir, db: db, news: n, done: make(chan struct{})}, nil
}

// Close ends all reading. It waits for the queries that run, not for those who read between them.
func (r *Reader) Close() error {
	r.once.Do(func() {
		close(r.done)
		r.mu.Lock()
		defer r.mu.Unlock()
		r.err = r.db.Close()
	})
	return r.err
}

// Head is the journal's last row.
func (r *Reader) Head(ctx context.Context) (Head, error) {
	rows, err := r.query(ctx, `SELECT `+columns+` FROM events e ORDER BY seq DESC LIMIT 1`)
	if err != nil || len(rows) == 0 {
		return Head{}, err
	}
	return Head{Seq: rows[0].seq, Hash: rows[0].hash}, nil
}

// A Filter says which events to read. What is empty doesn't restrict.
type Filter struct {
	Session string
	Run     string
	Kinds   []string
	From    time.Time // not before
	To      time.Time // before
	Until   int64     // up to and with this Seq
}

// Read gives the events behind after that fit the filter, in order, up to where the journal ends when it is called. An
// error is the last thing that it gives.
func (r *Reader) Read(ctx context.Context, after int64, f Filter) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		after, f, err := r.bounds(ctx, after, f)
		if err != nil {
			yield(Event{}, err)
			return
		}
		query, args := f.sql()
		for after < f.Until {
			rows, err := r.query(ctx, query, append([]any{after}, args...)...)
			if err != nil {
				yield(Event{}, err)
				return
			}
			if len(rows) == 0 {
				return
			}
			after = rows[len(rows)-1].seq
			if !give(rows, yield) {
				return
			}
		}
	}
}

// Follow gives the events behind after, then waits for more. Nothing is skipped, and what it has given Read gives, too:
// the database shows a row a moment before its commit is news here. It ends with the context's error or with [ErrClosed].
func (r *Reader) Follow(ctx context.Context, after int64) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		for {
			if err := r.wait(ctx, after); err != nil {
				yield(Event{}, err)
				return
			}
			until := int64(math.MaxInt64)
			if r.news != nil {
				until = r.news.last().Seq
			}
			rows, err := r.query(ctx, `SELECT `+columns+` FROM events e WHERE seq > ? AND seq <= ? ORDER BY seq LIMIT ?`, after, until, pageRows)
			if err != nil {
				yield(Event{}, err)
				return
			}
			if len(rows) == 0 {
				if err := r.pause(ctx); err != nil {
					yield(Event{}, err)
					return
				}
				continue
			}
			after = rows[len(rows)-1].seq
			if !give(rows, yield) {
				return
			}
		}
	}
}

// wait returns when the writer in this process has committed something behind after; at once if there is none.
func (r *Reader) wait(ctx context.Context, after int64) error {
	if r.news == nil {
		return nil
	}
	select {
	case <-r.news.after(after):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-r.done:
		return ErrClosed
	}
}

// pause waits until it is worth looking again for what another process has written.
func (r *Reader) pause(ctx context.Context) error {
	t := time.NewTimer(pollEvery)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-r.done:
		return ErrClosed
	}
}

// give decodes rows for the one who reads; false: no more.
func give(rows []*row, yield func(Event, error) bool) bool {
	for _, row := range rows {
		e, err := row.event()
		if !yield(e, err) || err != nil {
			return false
		}
	}
	return true
}

// Event finds an event by its Seq.
func (r *Reader) Event(ctx context.Context, seq int64) (Event, bool, error) {
	return r.one(ctx, `SELECT `+columns+` FROM events e WHERE seq = ?`, seq)
}

// Claimed finds the event that made a claim.
func (r *Reader) Claimed(ctx context.Context, c Claim) (Event, bool, error) {
	return r.one(ctx, `SELECT `+columns+` FROM claims c JOIN events e USING (seq)
		WHERE c.scope = ? AND c.a = ? AND c.b = ? AND c.c = ? AND c.d = ?`, c.args()...)
}

func (r *Reader) one(ctx context.Context, query string, args ...any) (Event, bool, error) {
	rows, err := r.query(ctx, query, args...)
	if err != nil || len(rows) == 0 {
		return Event{}, false, err
	}
	e, err := rows[0].event()
	return e, err == nil, err
}

// UnfinishedRuns are the runs that were started and have not ended, oldest first.
func (r *Reader) UnfinishedRuns(ctx context.Context) ([]string, error) {
	return r.awaiting(ctx, "run_end")
}

// UnsettledRuns are the runs that talk in Slack and of which something there may still have to change, oldest first.
func (r *Reader) UnsettledRuns(ctx context.Context) ([]string, error) {
	return r.awaiting(ctx, "run_settled")
}

// awaiting lists the first parts of the claims of a scope that something waits for.
func (r *Reader) awaiting(ctx context.Context, scope string) ([]string, error) {
	rows, err := r.query(ctx, `SELECT `+columns+` FROM awaited a JOIN events e USING (seq) WHERE a.scope = ? ORDER BY seq`, scope)
	if err != nil {
		return nil, err
	}
	var runs []string
	for _, row := range rows {
		runs = append(runs, row.run)
	}
	return runs, nil
}

// WaitingMessages are the messages received that start a run and whose turn hasn't come yet, in order.
func (r *Reader) WaitingMessages(ctx context.Context) ([]Event, error) {
	rows, err := r.query(ctx, `SELECT `+columns+` FROM awaited a JOIN events e USING (seq) WHERE a.scope = 'message_taken' ORDER BY seq`)
	if err != nil {
		return nil, err
	}
	var events []Event
	for _, row := range rows {
		e, err := row.event()
		if err != nil {
			return nil, err
		}
		events = append(events, e)
	}
	return events, nil
}

// LoadRun folds the events of one run; false if there are none.
func (r *Reader) LoadRun(ctx context.Context, id string) (*Run, bool, error) {
	var run Run
	for e, err := range r.Read(ctx, 0, Filter{Run: id}) {
		if err != nil {
			return nil, false, err
		}
		run.Apply(e)
	}
	return &run, run.Last > 0, nil
}

// bounds turns the times of a filter into places in the journal, which they follow, and sets the end.
func (r *Reader) bounds(ctx context.Context, after int64, f Filter) (int64, Filter, error) {
	head, err := r.last(ctx)
	if err != nil {
		return 0, f, err
	}
	if f.Until == 0 || f.Until > head {
		f.Until = head
	}
	if !f.From.IsZero() {
		before, err := r.before(ctx, f.From, head)
		if err != nil {
			return 0, f, err
		}
		after = max(after, before)
	}
	if !f.To.IsZero() {
		before, err := r.before(ctx, f.To, head)
		if err != nil {
			return 0, f, err
		}
		f.Until = min(f.Until, before)
	}
	return max(after, 0), f, nil
}

// last is the Seq of the last row.
func (r *Reader) last(ctx context.Context) (int64, error) {
	if r.news != nil {
		return r.news.last().Seq, nil
	}
	h, err := r.Head(ctx)
	return h.Seq, err
}

// before is the last Seq whose time is before t. Times never go back, so it is found by halving.
func (r *Reader) before(ctx context.Context, t time.Time, head int64) (int64, error) {
	lo, hi := int64(0), head // all up to lo are before t, all behind hi are not
	for lo < hi {
		mid := lo + (hi-lo+1)/2
		rows, err := r.query(ctx, `SELECT `+columns+` FROM events e WHERE seq = ?`, mid)
		if err != nil {
			return 0, err
		}
		if len(rows) == 1 && time.UnixMicro(rows[0].time).Before(t) {
			lo = mid
		} else {
			hi = mid - 1
		}
	}
	return lo, nil
}

// sql is the query for a page of what fits; its first argument is the Seq before it.
func (f Filter) sql() (query string, args []any) {
	var b strings.Builder
	b.WriteString(`SELECT ` + columns + ` FROM events e WHERE seq > ? AND seq <= ?`)
	args = []any{f.Until}
	if f.Run != "" {
		b.WriteString(` AND run = ? AND run <> ''`) // the second half is what the index is made for
		args = append(args, f.Run)
	}
	if f.Session != "" {
		b.WriteString(` AND session = ? AND session <> ''`)
		args = append(args, f.Session)
	}
	if len(f.Kinds) > 0 {
		b.WriteString(` AND kind IN (?` + strings.Repeat(`, ?`, len(f.Kinds)-1) + `)`)
		for _, k := range f.Kinds {
			args = append(args, k)
		}
	}
	b.WriteString(` ORDER BY seq LIMIT ?`)
	return b.String(), append(args, pageRows)
}

func (c Claim) args() []any {
	return []any{c.Scope, c.Parts[0], c.Parts[1], c.Parts[2], c.Parts[3]}
}

// query reads rows into memory.
func (r *Reader) query(ctx context.Context, query string, args ...any) (page []*row, err error) {
	err = r.reading(ctx, func(ctx context.Context) error {
		stmt, err := r.stmt(ctx, query)
		if err != nil {
			return err
		}
		rows, err := stmt.QueryContext(ctx, args...)
		if err != nil {
			return err
		}
		page, err = collect(rows)
		return err
	})
	return page, err
}

// reading runs a query that Close waits for. It runs to its end once begun (a page is quick, and an interrupted
// connection has to be opened again); the context is asked before.
func (r *Reader) reading(ctx context.Context, f func(context.Context) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	r.mu.RLock()
	defer r.mu.RUnlock()
	select {
	case <-r.done:
		return ErrClosed
	default:
		return f(context.WithoutCancel(ctx))
	}
}

// stmt prepares a query once.
func (r *Reader) stmt(ctx context.Context, query string) (*sql.Stmt, error) {
	if s, ok := r.stmts.Load(query); ok {
		return s.(*sql.Stmt), nil
	}
	s, err := r.db.PrepareContext(ctx, query)
	if err != nil {
		return nil, err
	}
	if won, lost := r.stmts.LoadOrStore(query, s); lost {
		return won.(*sql.Stmt), s.Close()
	}
	return s, nil
}

// collect reads the rows of a page and closes it.
func collect(rows *sql.Rows) (page []*row, err error) {
	defer func() { err = errors.Join(err, rows.Close()) }()
	size := 0
	for size < pageBytes && rows.Next() {
		r, err := scanRow(rows)
		if err != nil {
			return nil, err
		}
		size += len(r.body)
		page = append(page, r)
	}
	return page, rows.Err()
}

// scanRow reads one row of columns.
func scanRow(s interface{ Scan(...any) error }) (*row, error) {
	var r row
	var bodyHash, hash []byte
	if err := s.Scan(&r.seq, &r.time, &r.session, &r.run, &r.call, &r.actor, &r.kind, &r.body, &bodyHash, &hash); err != nil {
		return nil, err
	}
	if len(bodyHash) != len(r.bodyHash) || len(hash) != len(r.hash) {
		return nil, &Problem{Seq: r.seq, Kind: BadHash, What: "a hash has the wrong length"}
	}
	r.bodyHash, r.hash = Hash(bodyHash), Hash(hash)
	return &r, nil
}

// news tells the followers in this process what was committed.
type news struct {
	mu   sync.Mutex
	head Head
	next chan struct{} // closed by the next commit
}

// closedChan is for those who need not wait.
var closedChan = func() chan struct{} { c := make(chan struct{}); close(c); return c }()

func newNews(h Head) *news { return &news{head: h, next: make(chan struct{})} }

func (n *news) publish(h Head) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.head = h
	close(n.next)
	n.next = make(chan struct{})
}

func (n *news) last() Head {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.head
}

// after is closed when there is something behind seq.
func (n *news) after(seq int64) <-chan struct{} {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.head.Seq > seq {
		return closedChan
	}
	return n.next
}
