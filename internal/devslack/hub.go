package devslack

import (
	"net/http"
	"sync"
	"time"
)

// hub tells open pages that something changed; they fetch what they need.
type hub struct {
	mu     sync.Mutex
	closed bool
	subs   map[chan []byte]struct{}
}

// publish never waits: a reader that is too slow is cut off and, being a
// browser's EventSource, comes back and fetches everything again.
func (h *hub) publish(notice map[string]any) {
	line := append(append([]byte("data: "), encode(notice)...), '\n', '\n')
	h.mu.Lock()
	defer h.mu.Unlock()
	for sub := range h.subs {
		select {
		case sub <- line:
		default:
			delete(h.subs, sub)
			close(sub)
		}
	}
}

func (h *hub) subscribe() chan []byte {
	h.mu.Lock()
	defer h.mu.Unlock()
	sub := make(chan []byte, 256)
	if h.closed {
		close(sub)
		return sub
	}
	if h.subs == nil {
		h.subs = map[chan []byte]struct{}{}
	}
	h.subs[sub] = struct{}{}
	return sub
}

func (h *hub) unsubscribe(sub chan []byte) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if _, ok := h.subs[sub]; ok {
		delete(h.subs, sub)
		close(sub)
	}
}

func (h *hub) close() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.closed = true
	for sub := range h.subs {
		delete(h.subs, sub)
		close(sub)
	}
}

const streamHeartbeat = 15 * time.Second

// ServeHTTP is GET /_dev/events.
func (h *hub) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	sub := h.subscribe()
	defer h.unsubscribe(sub)
	rc := http.NewResponseController(w)
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", "no-store")
	heartbeat := time.NewTicker(streamHeartbeat)
	defer heartbeat.Stop()
	line, open := []byte(": open\n\n"), true
	for {
		// A reader that has gone away silently must not hold up Close. Not every
		// ResponseWriter knows deadlines; then the connection's own end has to do.
		_ = rc.SetWriteDeadline(time.Now().Add(streamHeartbeat))
		if _, err := w.Write(line); err != nil {
			return
		}
		if rc.Flush() != nil {
			return
		}
		select {
		case line, open = <-sub:
			if !open {
				return
			}
		case <-heartbeat.C:
			line = []byte(": still here\n\n")
		case <-r.Context().Done():
			return
		}
	}
}
