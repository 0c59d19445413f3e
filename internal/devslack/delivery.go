package devslack

import (
	"encoding/json"
	"time"
)

// envelopeKind is the type of an envelope.
type envelopeKind string

const (
	envelopeEvent       envelopeKind = "events_api"
	envelopeInteractive envelopeKind = "interactive"
	envelopeCommand     envelopeKind = "slash_commands"
)

// AckTimeout is how long the app has for acknowledging an envelope.
const AckTimeout = 3 * time.Second

// redelivery is how long after a failed attempt of an event the next one
// follows. Nothing else is delivered again.
var redelivery = []time.Duration{0, time.Minute, 5 * time.Minute}

// delivery is one payload on its way to the app. An attempt at which no
// connection is open fails like one that nobody acknowledges.
type delivery struct {
	kind    envelopeKind
	payload any
	attempt int
	// lost keeps the payload from being sent at all.
	lost bool
	// once keeps an event from being delivered again.
	once bool
	// bare is an interaction whose ack takes no payload: a shortcut, a closed
	// view.
	bare bool

	envelopes []string // the ids of all attempts: an ack of any counts
	sent      bool
	sentAt    time.Time
	acked     chan struct{} // closed by the first ack
	answer    json.RawMessage
	ackMS     int64
}

// dispatch sends the first attempt and leaves a goroutine that sees to the
// rest. s.mu is held; deliveries leave in the order in which they are
// dispatched.
func (s *Server) dispatch(d *delivery) {
	d.acked = make(chan struct{})
	s.send(d)
	if !s.start(func() { s.see(d) }) {
		s.forget(d)
	}
}

// see waits for the ack of each attempt and makes the next.
func (s *Server) see(d *delivery) {
	defer func() {
		s.mu.Lock()
		s.forget(d)
		s.mu.Unlock()
	}()
	if s.await(d, AckTimeout) || d.kind != envelopeEvent || d.once {
		return
	}
	for n, wait := range redelivery {
		if s.await(d, wait) {
			return
		}
		s.mu.Lock()
		d.attempt = n + 1
		s.send(d)
		s.mu.Unlock()
		if s.await(d, AckTimeout) {
			return
		}
	}
	s.log.Warn("event given up: not acknowledged", "attempts", len(redelivery)+1)
}

// await reports whether the delivery came to its end, by an ack or by Close.
func (s *Server) await(d *delivery, wait time.Duration) bool {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-d.acked:
		return true
	case <-s.done:
		return true
	case <-timer.C:
		return false
	}
}

// send makes one attempt on the connection whose turn it is. s.mu is held.
func (s *Server) send(d *delivery) {
	id := uuid()
	frame := map[string]any{"envelope_id": id, "type": d.kind, "payload": d.payload,
		"accepts_response_payload": d.kind != envelopeEvent && !d.bare}
	if d.kind == envelopeEvent {
		reason := ""
		if d.attempt > 0 {
			reason = "timeout"
		}
		frame["retry_attempt"], frame["retry_reason"] = d.attempt, reason
	}
	d.envelopes = append(d.envelopes, id)
	s.links.pending[id] = d
	d.sentAt = time.Now()
	if d.lost {
		return
	}
	if s.links.send(string(d.kind), encode(frame)) {
		d.sent = true
	}
}

// forget ends the waiting: a later ack is nobody's any more.
func (s *Server) forget(d *delivery) {
	for _, id := range d.envelopes {
		delete(s.links.pending, id)
	}
}

// acknowledge takes an ack, which may come on any connection.
func (s *Server) acknowledge(envelope string, payload json.RawMessage) {
	s.mu.Lock()
	defer s.mu.Unlock()
	d := s.links.pending[envelope]
	if d == nil {
		return // unknown, too late, or acknowledged before: clients do that
	}
	s.forget(d)
	d.answer = payload
	d.ackMS = time.Since(d.sentAt).Milliseconds()
	close(d.acked)
}

// Receipt says what became of a payload that a person's action caused.
type Receipt struct {
	OK bool `json:"ok"`
	// Delivered is whether it went out on a connection.
	Delivered bool `json:"delivered"`
	// Acked is whether the app acknowledged it in time; if not, Slack shows
	// the person a warning.
	Acked bool  `json:"acked"`
	AckMS int64 `json:"ack_ms"`
}

// receipt waits for the ack or its timeout.
func (s *Server) receipt(d *delivery) (Receipt, json.RawMessage) {
	acked := s.await(d, AckTimeout-time.Since(d.sentAt))
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case <-d.acked:
	default:
		acked = false // it ended by Close
	}
	return Receipt{OK: true, Delivered: d.sent, Acked: acked, AckMS: d.ackMS}, d.answer
}
