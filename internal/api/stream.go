package api

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"slices"
	"time"

	"approvalbot/internal/approvals"
	"approvalbot/internal/ledger"
)

const (
	beatEvery  = 15 * time.Second // so that proxies and clients know that we are there
	writeLimit = 15 * time.Second // for one write; whoever doesn't read for so long is dropped

	// ahead is how far the journal may be ahead of a follower who begins to get live events: what comes while it reads
	// the rest has to have room.
	ahead = queued / 2
)

var (
	errSlow  = errors.New("the reader is too slow")
	errGone  = errors.New("the client went away")
	errEnded = errors.New("approvalbot is stopping")
)

// A sink is where a follower's messages go: a stream, or the answer of a request that waits for the end.
type sink interface {
	put(m message, frame []byte) error // it may keep it back …
	flush() error                      // … until this
	beat() error
}

// A tail follows one run from some event on.
type tail struct {
	*Server
	run   string
	after int64 // what was seen before
	fresh bool  // nothing was: asks that are over need not be drawn any more
	sink  sink
	cast  cast
	over  map[string]bool // asks that are over, of those from before
	early *follower       // follows the run from before it began: then there is nothing to read first
}

// follow puts what happens in the run into the sink, once and in order, until the run's end (nil), or until there is no
// use in going on. The gap between the journal and what comes live is closed by the hub: it says up to where the journal
// has to be read.
func (t *tail) follow(ctx context.Context) error {
	err := t.chase(ctx)
	switch {
	case errors.Is(err, errOver):
		return nil
	case err != nil && ctx.Err() != nil && !errors.Is(err, errSlow):
		return t.why(errGone)
	}
	return err
}

// errOver is the run's end.
var errOver = errors.New("the run is over")

func (t *tail) chase(ctx context.Context) error {
	if t.early != nil {
		return t.begin(ctx, t.early)
	}
	for try := 0; ; try++ {
		until := t.hub.position()
		if err := t.read(ctx, until); err != nil {
			return err
		}
		if t.hub.position()-until < ahead || try == 100 { // then it is dropped, and comes again
			break
		}
	}
	f, at := t.hub.follow(t.run)
	defer t.hub.leave(f)
	if err := t.read(ctx, at); err != nil {
		return err
	}
	return t.begin(ctx, f)
}

// begin sends what the client was told already, and goes on with what the hub brings.
func (t *tail) begin(ctx context.Context, f *follower) error {
	if err := t.sink.flush(); err != nil {
		return t.why(err)
	}
	return t.live(ctx, f)
}

// read tells what the journal has of the run up to a Seq.
func (t *tail) read(ctx context.Context, until int64) error {
	if until <= t.cast.upTo {
		return nil
	}
	if err := t.resolved(ctx, until); err != nil {
		return err
	}
	for e, err := range t.Journal.Read(ctx, t.cast.upTo, ledger.Filter{Run: t.run, Until: until}) {
		if err != nil {
			return err
		}
		if err := t.take(ctx, &item{event: e}); err != nil {
			return err
		}
	}
	t.cast.upTo = until
	return t.why(t.sink.flush())
}

// resolved finds the asks that a new follower need not see.
func (t *tail) resolved(ctx context.Context, until int64) error {
	if !t.fresh {
		return nil
	}
	t.over = map[string]bool{}
	for e, err := range t.Journal.Read(ctx, t.cast.upTo, ledger.Filter{Run: t.run, Kinds: []string{"approval_resolved"}, Until: until}) {
		if err != nil {
			return err
		}
		if b, ok := e.Body.(*ledger.ApprovalResolved); ok {
			t.over[b.Approval] = true
		}
	}
	return nil
}

// live tells what the hub brings.
func (t *tail) live(ctx context.Context, f *follower) error {
	beat := time.NewTicker(beatEvery)
	defer beat.Stop()
	for {
		select {
		case it := <-f.items:
			if err := t.take(ctx, it); err != nil {
				return err
			}
			if len(f.items) == 0 {
				if err := t.sink.flush(); err != nil {
					return t.why(err)
				}
			}
		case <-f.lost:
			return t.why(errSlow)
		case <-beat.C:
			if err := t.sink.beat(); err != nil {
				return err
			}
		case <-ctx.Done():
			return t.why(errGone)
		case <-t.stopping:
			return t.last(ctx, f)
		}
	}
}

// why is errEnded while the server ends: then it is nobody's fault.
func (t *tail) why(err error) error {
	select {
	case <-t.stopping:
		return errEnded
	default:
		return err
	}
}

// last tells what is still on its way when the server ends: the run's end was recorded before that, if it was going on.
func (t *tail) last(ctx context.Context, f *follower) error {
	grace := time.NewTimer(stopGrace / 2)
	defer grace.Stop()
	for {
		select {
		case it := <-f.items:
			if err := t.take(ctx, it); err != nil {
				return err
			}
			if err := t.sink.flush(); err != nil {
				return errEnded
			}
		case <-f.lost:
			return errEnded
		case <-ctx.Done():
			return errEnded
		case <-grace.C:
			return errEnded
		}
	}
}

// take tells one item, unless it was seen before, and reports an ask as shown when it has been.
func (t *tail) take(ctx context.Context, it *item) error {
	var m message
	var bytes []byte
	if t.over[approvalOf(it.event)] {
		m = t.views.tellPast(&t.cast, it.event, t.over)
		bytes = frame(it.event.Seq, m)
	} else {
		m, bytes = it.tell(t.views, &t.cast)
	}
	if it.event.Body != nil {
		t.cast.apply(it.event)
	}
	if it.event.Seq != 0 && it.event.Seq <= t.after {
		if m.ends() {
			return errOver
		}
		return nil
	}
	if err := t.sink.put(m, bytes); err != nil {
		return t.why(err)
	}
	if m.Type != typeRequired && !m.ends() {
		return nil
	}
	if err := t.sink.flush(); err != nil {
		return t.why(err)
	}
	if m.ends() {
		return errOver
	}
	t.shown(ctx, it)
	return nil
}

// approvalOf is the ask that an event opens; "" if it opens none.
func approvalOf(e ledger.Event) string {
	if b, ok := e.Body.(*ledger.ApprovalRequested); ok {
		return b.Approval
	}
	return ""
}

// shown starts the ask's clock: somebody can see it now. The first follower's is the one that counts.
func (t *tail) shown(ctx context.Context, it *item) {
	b, ok := it.event.Body.(*ledger.ApprovalRequested)
	if !ok || !slices.Contains(b.Surfaces, ledger.SurfaceHTTP) || !it.shown.CompareAndSwap(false, true) {
		return
	}
	err := t.Approvals.Shown(ctx, b.Approval, approvals.Showing{Surface: ledger.SurfaceHTTP})
	if _, _, over := approvals.Ended(err); err == nil || over {
		return
	}
	it.shown.Store(false) // the next follower tries again
	t.Logger.Warn("a showing could not be recorded", "run", t.run, "approval", b.Approval, "error", err)
}

// An eventStream is a sink that writes server-sent events.
type eventStream struct {
	w  http.ResponseWriter
	rc *http.ResponseController
}

// openStream writes the head of a stream. From here on the time of the connection is counted by write.
func openStream(w http.ResponseWriter) (*eventStream, error) {
	s := &eventStream{w: w, rc: http.NewResponseController(w)}
	if err := s.rc.SetReadDeadline(time.Time{}); err != nil {
		return nil, fmt.Errorf("a stream can't be opened here: %w", err)
	}
	h := w.Header()
	plainHeaders(h)
	h.Set("Content-Type", "text/event-stream; charset=utf-8")
	h.Set("X-Accel-Buffering", "no") // proxies that buffer would hold back asks
	w.WriteHeader(http.StatusOK)
	return s, s.comment("approvalbot")
}

func (s *eventStream) put(_ message, frame []byte) error {
	if err := s.rc.SetWriteDeadline(time.Now().Add(writeLimit)); err != nil {
		return gone(err)
	}
	_, err := s.w.Write(frame)
	return gone(err)
}

func (s *eventStream) flush() error {
	if err := s.rc.SetWriteDeadline(time.Now().Add(writeLimit)); err != nil {
		return gone(err)
	}
	return gone(s.rc.Flush())
}

func (s *eventStream) beat() error { return s.comment("heartbeat") }

// comment writes a line that clients pass over.
func (s *eventStream) comment(text string) error {
	if err := s.put(message{}, []byte(": "+text+"\n\n")); err != nil {
		return err
	}
	return s.flush()
}

// gone tells a reader who is too slow from one who went away: only the latter may mean that the run isn't wanted.
func gone(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, os.ErrDeadlineExceeded):
		return errSlow
	}
	return errGone
}
