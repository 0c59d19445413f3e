package api

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"approvalbot/internal/ledger"
)

// queued is how many items a follower may be behind before it is dropped. It can come again and say where it was.
const queued = 256

// An item is an event, or a piece of text, on its way to followers.
type item struct {
	event ledger.Event
	delta string // instead of an event

	once  sync.Once
	told  message
	bytes []byte      // of the frame; the same for all followers, so it is made once
	shown atomic.Bool // the ask that it is has been reported as shown
}

// A follower gets the events of one run from the hub.
type follower struct {
	run   string
	items chan *item
	lost  chan struct{} // closed when it was dropped: it was too slow, or the hub ended
}

// A hub follows the journal once and hands its events to those who follow runs. It never waits for any of them.
type hub struct {
	journal Journal
	views   views
	log     *slog.Logger
	alone   func(e ledger.Event, b *ledger.ApprovalRequested) // told of an ask that nobody follows

	mu        sync.Mutex
	at        int64 // Seq of the last event that was handed on
	ended     bool
	followers map[string]map[*follower]bool // by run
	speeches  map[string]*speech            // by run
	waiting   []early
}

// early is text that came before the events in front of it.
type early struct {
	after int64
	run   string
	text  string
}

func newHub(j Journal, v views, log *slog.Logger) *hub {
	return &hub{journal: j, views: v, log: log, followers: map[string]map[*follower]bool{}, speeches: map[string]*speech{}}
}

// start notes where the journal ends. What is behind that comes through [hub.run].
func (h *hub) start(ctx context.Context) error {
	head, err := h.journal.Head(ctx)
	if err != nil {
		return err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.at = head.Seq
	return nil
}

// run hands on events until ctx or the journal ends. All followers are dropped then.
func (h *hub) run(ctx context.Context) {
	defer h.end()
	for {
		var failed error
		for e, err := range h.journal.Follow(ctx, h.position()) {
			if failed = err; err != nil {
				break
			}
			h.publish(e)
		}
		if ctx.Err() != nil || errors.Is(failed, ledger.ErrClosed) {
			return
		}
		h.log.Error("the journal can't be followed; event streams lag behind", "error", failed)
		pause := time.NewTimer(time.Second)
		select {
		case <-pause.C:
		case <-ctx.Done():
			pause.Stop()
			return
		}
	}
}

func (h *hub) position() int64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.at
}

// follow adds a follower of a run. It gets what is behind the Seq that is returned; what is before is in the journal.
func (h *hub) follow(run string) (*follower, int64) {
	f := &follower{run: run, items: make(chan *item, queued), lost: make(chan struct{})}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.ended {
		close(f.lost)
		return f, h.at
	}
	if h.followers[run] == nil {
		h.followers[run] = map[*follower]bool{}
	}
	h.followers[run][f] = true
	return f, h.at
}

func (h *hub) leave(f *follower) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.remove(f)
}

func (h *hub) remove(f *follower) {
	delete(h.followers[f.run], f)
	if len(h.followers[f.run]) == 0 {
		delete(h.followers, f.run)
		delete(h.speeches, f.run)
	}
}

func (h *hub) end() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.ended = true
	for _, all := range h.followers {
		for f := range all {
			h.drop(f)
		}
	}
}

func (h *hub) drop(f *follower) {
	h.remove(f)
	close(f.lost)
}

// publish hands an event on.
func (h *hub) publish(e ledger.Event) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.at = e.Seq
	if e.Run != "" {
		h.toRun(e)
	}
	h.overdue()
}

func (h *hub) toRun(e ledger.Event) {
	switch b := e.Body.(type) {
	case *ledger.ModelCompleted, *ledger.RunFinished:
		// What was said is complete; the event tells all of it.
		if s := h.speeches[e.Run]; s != nil {
			h.say(e.Run, s.end(h.views))
		}
	case *ledger.ModelFailed:
		// What was said of an answer that failed is void, which the event tells. What was held back is never said.
		delete(h.speeches, e.Run)
	case *ledger.ApprovalRequested:
		if len(h.followers[e.Run]) == 0 && slices.Contains(b.Surfaces, ledger.SurfaceHTTP) {
			h.alone(e, b)
		}
	}
	h.send(e.Run, &item{event: e})
}

// send never waits: who has no room is dropped.
func (h *hub) send(run string, it *item) {
	for f := range h.followers[run] {
		select {
		case f.items <- it:
		default:
			h.drop(f)
		}
	}
}

// delta hands on a piece of a model's text, after the events that were recorded before it. It never waits.
func (h *hub) delta(ctx context.Context, run, text string) {
	head, err := h.journal.Head(ctx)
	if err != nil {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.followers[run]) == 0 {
		return
	}
	h.waiting = append(h.waiting, early{head.Seq, run, text})
	h.overdue()
}

// overdue says what need not wait any more.
func (h *hub) overdue() {
	for len(h.waiting) > 0 && h.waiting[0].after <= h.at {
		w := h.waiting[0]
		h.waiting = h.waiting[1:]
		if len(h.followers[w.run]) == 0 {
			continue
		}
		if h.speeches[w.run] == nil {
			h.speeches[w.run] = &speech{}
		}
		h.say(w.run, h.speeches[w.run].add(h.views, w.text))
	}
}

func (h *hub) say(run, text string) {
	if text != "" {
		h.send(run, &item{delta: text})
	}
}

// tell gives what a stream says of the item, and how. All followers of a run have the same cast at the same event.
func (it *item) tell(v views, c *cast) (message, []byte) {
	it.once.Do(func() {
		if it.event.Body == nil {
			it.told = message{Type: typeDelta, Delta: it.delta}
		} else {
			it.told = v.tell(c, it.event)
		}
		it.bytes = frame(it.event.Seq, it.told)
	})
	return it.told, it.bytes
}
