package ledger

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"time"

	"modernc.org/sqlite"
)

// Options are what Open may be told.
type Options struct {
	Logger *slog.Logger // nil: nothing is logged

	// Committed is told of every transaction of appends, after their callers were answered. The writer calls it, so it
	// must not block. It may be nil.
	Committed func(Commit)
}

// A Commit is what became of one transaction and the appends that shared it.
type Commit struct {
	Took                        time.Duration // until it was durable, or known not to be
	Recorded, Conflicts, Failed int           // appends
	Err                         error         // why it failed; nil where it took place after all
}

// A Ledger is a journal that this process writes. All its methods may be called at the same time.
type Ledger struct {
	*Reader
	log   *slog.Logger
	lock  *os.File
	queue chan *request // unbuffered: what was received from it belongs to the writer, what wasn't can be withdrawn

	closing chan struct{} // closed to end the writer
	ended   chan struct{} // closed when it has ended
	close   sync.Once
	failure error // of closing

	health health
}

// Open opens the journal in dir for writing; it makes both if they aren't there. Only one process can have it open, and
// a second one gets an [*InUseError].
func Open(ctx context.Context, dir string, o Options) (*Ledger, error) {
	return open(ctx, dir, o, sqlite.NewConnector)
}

func open(ctx context.Context, dir string, o Options, c connect) (*Ledger, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("make the journal's directory: %w", err)
	}
	lock, err := lockDir(dir)
	if err != nil {
		return nil, err
	}
	l, err := openLocked(ctx, dir, o, c)
	if err != nil {
		return nil, errors.Join(err, unlockDir(lock))
	}
	l.lock = lock
	return l, nil
}

// openLocked opens the files and starts the writer.
func openLocked(ctx context.Context, dir string, o Options, c connect) (*Ledger, error) {
	if err := createFile(dir); err != nil {
		return nil, fmt.Errorf("the journal's file can't be made: %w", err)
	}
	w := &writer{dir: dir, connect: c, log: o.Logger, committed: o.Committed}
	if err := w.open(ctx); err != nil {
		return nil, openError(dir, err)
	}
	w.news = newNews(w.tail.head())
	r, err := newReader(ctx, dir, c, w.news)
	if err != nil {
		return nil, errors.Join(openError(dir, err), w.drop())
	}
	err = r.checkStart(ctx, w.tail.head())
	if p, ok := errors.AsType[*Problem](err); ok {
		err = &DamagedError{Dir: dir, Problem: *p}
	}
	if err != nil {
		return nil, errors.Join(openError(dir, err), r.Close(), w.drop())
	}
	l := &Ledger{
		Reader: r, log: o.Logger, queue: make(chan *request),
		closing: make(chan struct{}), ended: make(chan struct{}),
	}
	w.health = &l.health
	o.Logger.Info("journal opened", "dir", dir, "head", w.tail.head().String())
	go l.write(w)
	return l, nil
}

// write is the writer's goroutine, which Close waits for.
func (l *Ledger) write(w *writer) {
	defer close(l.ended)
	for {
		select {
		case first := <-l.queue:
			w.commit(l.collect(first))
		case <-l.closing:
			l.failure = w.drop()
			return
		}
	}
}

// collect takes what else is queued, up to what one transaction should hold.
func (l *Ledger) collect(first *request) []*request {
	batch, size := []*request{first}, first.size
	runtime.Gosched() // those who were answered just now get to queue what they have next, so that they share this commit
	for len(batch) < maxBatch && size < maxBatchBytes {
		select {
		case r := <-l.queue:
			batch = append(batch, r)
			size += r.size
		default:
			return batch
		}
	}
	return batch
}

// Close ends the writer after what it is writing, and fails what is queued with [ErrClosed].
func (l *Ledger) Close() error {
	l.close.Do(func() {
		err := l.Reader.Close() // first, so that the writer's connection is the last one, which leaves one tidy file
		close(l.closing)
		<-l.ended
		l.failure = errors.Join(err, l.failure, unlockDir(l.lock))
		l.log.Info("journal closed", "dir", l.dir, "head", l.news.last().String())
	})
	return l.failure
}

// Head is the last row that this process knows to be on disk.
func (l *Ledger) Head(ctx context.Context) (Head, error) {
	if err := ctx.Err(); err != nil {
		return Head{}, err
	}
	return l.news.last(), nil
}

// Append writes events, all or none, and returns them as they stand on disk: with Seq, Time and Hash, and with the
// bodies that a reader will get (JSON that was compacted, text whose invalid UTF-8 was replaced). Events are never
// changed after that, their bodies must not be either.
//
// A [*ConflictError] says that one of their claims was made before. An error that is [ErrNotRecorded] says that the
// journal can't be written: what was to be recorded must not happen. The context withdraws what is still queued; what
// the writer has begun is waited for.
func (l *Ledger) Append(ctx context.Context, events ...Event) ([]Event, error) {
	if len(events) == 0 {
		return nil, ctx.Err()
	}
	r, err := newRequest(events)
	if err != nil {
		return nil, fmt.Errorf("append: %w", err)
	}
	if err := l.send(ctx, r); err != nil {
		return nil, err
	}
	return r.events, r.err
}

// send hands a request to the writer and waits for its answer.
func (l *Ledger) send(ctx context.Context, r *request) error {
	if err := ctx.Err(); err != nil {
		return notRecorded(err)
	}
	select {
	case l.queue <- r:
		<-r.answered
		return nil
	case <-ctx.Done():
		return notRecorded(ctx.Err())
	case <-l.closing:
		return notRecorded(ErrClosed)
	}
}

// Health is nil, or why the last attempt to write failed.
func (l *Ledger) Health() error { return l.health.get() }

// WaitWritable returns when the journal can be written: at once if it is healthy, else after a write that worked. It
// fails when the context or the journal ends. A probe needs less room than an event, so it can work where an append
// fails again: the more attempts have failed since an event was written, the longer it waits before it tries.
func (l *Ledger) WaitWritable(ctx context.Context) error {
	for l.Health() != nil {
		t := time.NewTimer(l.health.patience())
		select {
		case <-t.C:
		case <-ctx.Done():
			t.Stop()
			return ctx.Err()
		case <-l.closing:
			t.Stop()
			return ErrClosed
		}
		if err := l.Probe(ctx); err != nil && !errors.Is(err, ErrNotRecorded) {
			return err // nothing was tried: ctx or the ledger ended
		}
	}
	select {
	case <-l.closing:
		return ErrClosed
	default:
		return ctx.Err()
	}
}

// Probe tries a write that leaves no event behind, and returns why it failed. Health follows from it.
func (l *Ledger) Probe(ctx context.Context) error {
	r := newProbe()
	if err := l.send(ctx, r); err != nil {
		return err
	}
	return r.err
}

// health is what the writer last found.
type health struct {
	mu       sync.Mutex
	err      error
	failures int // attempts that failed since an event was written
}

func (h *health) get() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.err
}

// set takes in how an attempt ended; wrote tells whether it was to write events. It returns what the health was before.
func (h *health) set(err error, wrote bool) (was error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	was, h.err = h.err, err
	switch {
	case err != nil:
		h.failures++
	case wrote:
		h.failures = 0
	}
	return was
}

// patience is how long to wait before the next attempt: 50 ms after one failure, twice as long after each further one,
// two seconds at most.
func (h *health) patience() time.Duration {
	h.mu.Lock()
	defer h.mu.Unlock()
	return min(25*time.Millisecond<<min(h.failures, 10), 2*time.Second)
}
