package devslack

import (
	"bytes"
	"encoding/json"
	"regexp"
	"sync"
	"time"
)

// Call is one entry of the log of what went over the wire.
type Call struct {
	Seq  int64     `json:"seq"`
	Time time.Time `json:"time"`
	// Kind is "api" for a request of the app, "frame_in" for a frame from the
	// app and "frame_out" for one to it.
	Kind string `json:"kind"`
	// Name is the API method, or a frame's type.
	Name string `json:"name"`
	// Request has the arguments of an API call, or a frame's text.
	Request json.RawMessage `json:"request"`
	// Response and Status are an API call's answer; status 0 means that the
	// answer was withheld by a fault.
	Response json.RawMessage `json:"response,omitempty"`
	Status   int             `json:"status,omitempty"`
}

const maxCalls = 10_000

// callLog keeps the last calls; older ones are overwritten.
type callLog struct {
	added func(Call)

	mu      sync.Mutex
	seq     int64
	entries []Call // a ring once it is full
}

func (l *callLog) add(c Call) {
	c.Request, c.Response = redact(c.Request), redact(c.Response)
	c.Time = time.Now()
	l.mu.Lock()
	l.seq++
	c.Seq = l.seq
	if len(l.entries) < maxCalls {
		l.entries = append(l.entries, c)
	} else {
		l.entries[(c.Seq-1)%maxCalls] = c
	}
	l.mu.Unlock()
	l.added(c)
}

// after returns the entries with a sequence number above seq, oldest first.
func (l *callLog) after(seq int64) []Call {
	l.mu.Lock()
	defer l.mu.Unlock()
	oldest := l.seq - int64(len(l.entries)) + 1
	out := []Call{}
	for n := max(seq+1, oldest); n <= l.seq; n++ {
		out = append(out, l.entries[(n-1)%maxCalls])
	}
	return out
}

// secrets are tokens, socket tickets and response URLs: who reads the log
// must not be able to act with it.
var secrets = regexp.MustCompile(`(xox[a-z]-|xapp-|ticket=|/(?:actions|app|commands)/[A-Z0-9]+/|/_upload/)[A-Za-z0-9_\-/]+`)

func redact(raw json.RawMessage) json.RawMessage {
	if len(raw) == 0 {
		return nil
	}
	if !json.Valid(raw) {
		raw = encode(string(bytes.ToValidUTF8(raw, []byte("\uFFFD"))))
	}
	return secrets.ReplaceAll(raw, []byte("${1}redacted"))
}
