package devslack

import (
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/gorilla/websocket"
)

const (
	maxSockets    = 10
	maxFrame      = 20_480 // bytes, of frames from the app
	ticketLife    = 30 * time.Second
	pingInterval  = 10 * time.Second
	pongPatience  = 30 * time.Second
	writePatience = 10 * time.Second
	// Slack refreshes a connection after about this time, or after the shorter
	// one when the client asked for it (debug_reconnects).
	socketLife      = 18_060 * time.Second
	socketLifeDebug = 360 * time.Second
	// warningLead is how long before the end a connection is warned; drain is
	// how long an old connection may still acknowledge after it was told to go.
	warningLead = 10 * time.Second
	drain       = 10 * time.Second
	queueLength = 1024
)

// ticket is the one-time right to open a socket.
type ticket struct{ expires time.Time }

// links are the connections of the app. Used under Server.mu.
type links struct {
	tickets map[string]ticket
	open    []*link
	turn    int // round robin
	pending map[string]*delivery
}

// link is one connection. A ghost has no socket: Slack believes in it, but
// nobody is there.
type link struct {
	ws       *websocket.Conn // nil for a ghost
	queue    chan frame
	quit     chan struct{} // closed when the connection must end at once
	retiring bool          // told to go: gets payloads only if there is no other
	ghost    bool
	swallows int // payloads until a ghost is found out; negative: never
	life     time.Duration
}

type frame struct {
	name string
	data json.RawMessage
	last bool // close the connection after it
}

// connectionsOpen is apps.connections.open.
func (s *Server) connectionsOpen(c *apiCall) (reply, error) {
	if c.http.Method != http.MethodPost {
		return nil, fail("insecure_request")
	}
	id := hexID(16)
	for old, t := range s.links.tickets {
		if time.Now().After(t.expires) {
			delete(s.links.tickets, old)
		}
	}
	s.links.tickets[id] = ticket{expires: time.Now().Add(ticketLife)}
	s.origin = c.origin
	query := url.Values{"ticket": {id}, "app_id": {s.ws.App.ID}}
	return reply{"url": "ws" + strings.TrimPrefix(c.origin, "http") + "/link/?" + query.Encode()}, nil
}

var upgrader = websocket.Upgrader{
	HandshakeTimeout: writePatience,
	// Official clients send the origin of Slack itself; a ticket is what lets in.
	CheckOrigin: func(*http.Request) bool { return true },
}

// serveSocket is GET /link/: one Socket Mode connection, from its ticket to
// its end. The handler's goroutine reads, a second one writes.
func (s *Server) serveSocket(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	id := r.URL.Query().Get("ticket")
	t, known := s.links.tickets[id]
	delete(s.links.tickets, id)
	s.mu.Unlock()
	if !known || time.Now().After(t.expires) {
		http.Error(w, "invalid or used ticket", http.StatusUnauthorized)
		return
	}
	ws, err := upgrader.Upgrade(w, r, nil)
	if err != nil {
		return // Upgrade has answered
	}
	defer ws.Close()
	l := &link{ws: ws, queue: make(chan frame, queueLength), quit: make(chan struct{}), life: socketLife}
	if r.URL.Query().Get("debug_reconnects") == "true" {
		l.life = socketLifeDebug
	}
	s.mu.Lock()
	admitted := s.admit(l)
	running := s.start(func() { s.write(ws, l) })
	s.mu.Unlock()
	if !running {
		return
	}
	s.read(ws)
	s.mu.Lock()
	defer s.mu.Unlock()
	l.stop()
	if admitted {
		s.dropLink(l)
	}
}

// admit registers a connection and greets it, or sends it away: the eleventh,
// or when a fault says so. s.mu is held.
func (s *Server) admit(l *link) bool {
	refused := s.useFault(func(f *Fault) bool {
		return f.Socket == faultDisconnect && f.Reason == "too_many_websockets"
	})
	if refused != nil || len(s.links.open) >= maxSockets {
		l.queue <- frame{name: "disconnect", data: disconnectFrame("too_many_websockets"), last: true}
		return false
	}
	s.links.open = append(s.links.open, l)
	l.queue <- frame{name: "hello", data: encode(map[string]any{
		"type": "hello", "num_connections": len(s.links.open),
		"connection_info": map[string]any{"app_id": s.ws.App.ID},
		"debug_info": map[string]any{"host": "applink-local", "build_number": 1, "started": time.Now().UTC().Format("2006-01-02 15:04:05.000"),
			"approximate_connection_time": int(l.life.Seconds())},
	})}
	s.socketsChanged()
	if f := s.useFault(func(f *Fault) bool { return f.Socket == faultDisconnect }); f != nil {
		s.retire(l, f.Reason)
	}
	return true
}

func disconnectFrame(reason string) json.RawMessage {
	return encode(map[string]any{"type": "disconnect", "reason": reason, "debug_info": map[string]any{"host": "applink-local"}})
}

func (s *Server) dropLink(l *link) {
	if i := slices.Index(s.links.open, l); i >= 0 {
		s.links.open = slices.Delete(s.links.open, i, i+1)
		s.socketsChanged()
	}
}

func (s *Server) socketsChanged() {
	s.hub.publish(map[string]any{"type": "socket", "connections": len(s.links.open)})
}

// stop ends the connection, also when its writer is stuck. s.mu is held.
func (l *link) stop() {
	select {
	case <-l.quit:
		return
	default:
		close(l.quit)
	}
	if l.ws != nil {
		l.ws.Close()
	}
}

// push queues a frame. A connection that takes nothing for so long that its
// queue is full is ended.
func (l *link) push(f frame) bool {
	select {
	case <-l.quit:
		return false
	case l.queue <- f:
		return true
	default:
		l.stop()
		return false
	}
}

// send gives a payload to the connection whose turn it is, and reports whether
// it went out. A ghost takes it too, and nobody ever sees it.
func (ls *links) send(name string, data json.RawMessage) bool {
	for _, retiring := range []bool{false, true} {
		for range ls.open {
			ls.turn = (ls.turn + 1) % len(ls.open)
			l := ls.open[ls.turn]
			if l.retiring != retiring {
				continue
			}
			if l.ghost {
				l.haunt(ls)
				return true
			}
			if l.push(frame{name: name, data: data}) {
				return true
			}
		}
	}
	return false
}

// haunt swallows one payload; after its last a ghost is found out.
func (l *link) haunt(ls *links) {
	if l.swallows > 0 {
		if l.swallows--; l.swallows == 0 {
			ls.open = slices.DeleteFunc(ls.open, func(o *link) bool { return o == l })
		}
	}
}

// addGhost registers a connection without a client, whose turn is next.
func (s *Server) addGhost(swallows int) {
	at := 0
	if n := len(s.links.open); n > 0 {
		at = s.links.turn%n + 1
	}
	s.links.open = slices.Insert(s.links.open, at, &link{ghost: true, swallows: swallows, quit: make(chan struct{})})
	s.socketsChanged()
}

func (s *Server) removeGhosts() {
	s.links.open = slices.DeleteFunc(s.links.open, func(l *link) bool { return l.ghost })
	s.socketsChanged()
}

func (ls *links) closeAll() {
	for _, l := range ls.open {
		l.stop()
	}
}

// disconnectAll does what a disconnect fault says to the open connections and
// reports whether it still has to wait for others.
func (s *Server) disconnectAll(f *Fault) bool {
	for _, l := range slices.Clone(s.links.open) {
		switch {
		case l.ghost:
		case f.Reason == "too_many_websockets" || f.Reason == "abrupt":
			l.stop()
		default:
			s.retire(l, f.Reason)
		}
	}
	if f.Reason == "too_many_websockets" {
		return true
	}
	if f.Times > 0 {
		f.Times--
	}
	return f.Times != 0
}

// retire tells a connection to go. It stays open for a while, as Slack's do:
// the client may still acknowledge what it has got.
func (s *Server) retire(l *link, reason string) {
	if reason == "abrupt" {
		l.stop()
		return
	}
	if reason == "" {
		reason = "refresh_requested"
	}
	l.retiring = true
	l.push(frame{name: "disconnect", data: disconnectFrame(reason)})
	s.start(func() {
		s.linger(l, drain)
		s.mu.Lock()
		defer s.mu.Unlock()
		l.stop()
	})
}

// linger waits, but not longer than the connection or the server lives.
func (s *Server) linger(l *link, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-l.quit:
	case <-s.done:
	}
}

// write is the only goroutine that writes messages to the socket. When it
// ends it closes the socket, which ends the reader.
func (s *Server) write(ws *websocket.Conn, l *link) {
	defer ws.Close()
	if !s.writeFrame(ws, <-l.queue) { // hello comes first, then a ping at once
		return
	}
	ping := time.NewTicker(pingInterval)
	defer ping.Stop()
	warning := time.NewTimer(l.life - warningLead)
	defer warning.Stop()
	refresh := time.NewTimer(l.life)
	defer refresh.Stop()
	for ok := s.ping(ws); ok; {
		select {
		case f := <-l.queue:
			ok = s.writeFrame(ws, f)
		case <-ping.C:
			ok = s.ping(ws)
		case <-warning.C:
			ok = s.writeFrame(ws, frame{name: "disconnect", data: disconnectFrame("warning")})
		case <-refresh.C:
			s.mu.Lock()
			s.retire(l, "refresh_requested")
			s.mu.Unlock()
		case <-l.quit:
			ok = false
		case <-s.done:
			ok = false
		}
	}
}

func (s *Server) ping(ws *websocket.Conn) bool {
	return ws.WriteControl(websocket.PingMessage, []byte("Ping from applink-local"), time.Now().Add(writePatience)) == nil
}

func (s *Server) writeFrame(ws *websocket.Conn, f frame) bool {
	// Logged first, else a quick client's ack would stand before it.
	s.calls.add(Call{Kind: "frame_out", Name: f.name, Request: f.data})
	ws.SetWriteDeadline(time.Now().Add(writePatience)) // only sets a field
	return ws.WriteMessage(websocket.TextMessage, f.data) == nil && !f.last
}

// read takes the app's frames until the connection ends.
func (s *Server) read(ws *websocket.Conn) {
	alive := func() { ws.SetReadDeadline(time.Now().Add(pongPatience)) }
	alive()
	ws.SetPongHandler(func(string) error { alive(); return nil })
	echo := ws.PingHandler()
	ws.SetPingHandler(func(data string) error { alive(); return echo(data) })
	for {
		kind, r, err := ws.NextReader()
		if err != nil {
			return
		}
		data, err := io.ReadAll(io.LimitReader(r, maxFrame+1))
		if err != nil {
			return
		}
		alive()
		if len(data) > maxFrame {
			s.hangUp(ws, websocket.CloseMessageTooBig, "Max frame length of 20480 has been exceeded.")
			return
		}
		if kind != websocket.TextMessage {
			s.hangUp(ws, websocket.CloseUnsupportedData, "Text frames only.")
			return
		}
		s.received(data)
	}
}

func (s *Server) hangUp(ws *websocket.Conn, code int, text string) {
	s.log.Warn("socket closed", "code", code, "reason", text)
	msg := websocket.FormatCloseMessage(code, text)
	_ = ws.WriteControl(websocket.CloseMessage, msg, time.Now().Add(writePatience)) // it is closed next, either way
}

// received is one frame of the app: an ack, or something that Slack ignores.
func (s *Server) received(data []byte) {
	var ack struct {
		EnvelopeID string          `json:"envelope_id"`
		Type       string          `json:"type"`
		Payload    json.RawMessage `json:"payload"`
	}
	err := json.Unmarshal(data, &ack)
	name := "ack"
	if err != nil || ack.EnvelopeID == "" {
		name = "ignored"
	}
	s.calls.add(Call{Kind: "frame_in", Name: name, Request: slices.Clone(data)})
	if name == "ignored" {
		s.log.Warn("frame ignored: no acknowledgement", "bytes", len(data))
		return
	}
	s.mu.Lock()
	late := s.takeSocketFault(faultDelayAck)
	if late != nil {
		delay := time.Duration(late.DelayMS) * time.Millisecond
		if delay <= 0 {
			delay = defaultAckDelay
		}
		s.start(func() {
			timer := time.NewTimer(delay)
			defer timer.Stop()
			select {
			case <-timer.C:
				s.acknowledge(ack.EnvelopeID, ack.Payload)
			case <-s.done:
			}
		})
	}
	s.mu.Unlock()
	if late == nil {
		s.acknowledge(ack.EnvelopeID, ack.Payload)
	}
}
