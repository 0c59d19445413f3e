package slackui

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"
)

const (
	// A connection that lives this long after its hello was a sound one, and what follows it is opened at once.
	soundAfter = 5 * time.Second

	firstPause   = 2 * time.Second
	longestPause = time.Minute

	// outagePause is what lies between attempts while Slack can't be reached: long enough not to be a burden, short
	// enough that nobody waits for long once it can.
	outagePause = 5 * time.Second
)

// A gate stands before every opening of a connection. There are two kinds of trouble, and they are told apart:
//
//   - Connections end soon after they were opened: somebody turns us away. slack-go alone opens the next one at once, over
//     a thousand times a second; the gate lets the first reconnect pass and makes each further one wait twice as long.
//   - A connection can't be opened at all: an outage. slack-go waits longer and longer, up to five minutes, by which time
//     Slack may long be back; the socket makes it begin anew, and the gate keeps the attempts apart.
type gate struct {
	jitter func() float64 // 0 to 1

	mu      sync.Mutex
	opened  time.Time // when the last one was let through
	greeted time.Time // when Slack said hello on it; zero: it hasn't
	refused bool      // it could not be opened
	outage  bool      // so often that slack-go was made to begin anew, with its shortest pauses; until the next hello
	early   int       // connections in a row that were opened and didn't live long
	off     bool      // Slack said that Socket Mode is switched off
}

func newGate() *gate { return &gate{jitter: rand.Float64} }

// wait returns when the next connection may be opened.
func (g *gate) wait(ctx context.Context) error {
	if d := g.pause(time.Now()); d > 0 {
		t := time.NewTimer(d)
		defer t.Stop()
		select {
		case <-t.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.opened, g.refused = time.Now(), false
	return nil
}

// pause judges the opening before this one, and says how long this one has to wait.
func (g *gate) pause(now time.Time) time.Duration {
	g.mu.Lock()
	defer g.mu.Unlock()
	var d time.Duration
	switch {
	case g.opened.IsZero():
	case g.refused && !g.outage: // slack-go has waited by itself
	case g.refused:
		d = outagePause
	case g.sound(now):
		g.early, g.off = 0, false
	default:
		g.early++
		d = g.backoff()
	}
	g.greeted = time.Time{} // by one that has ended
	return d + time.Duration(g.jitter()*float64(d)/4)
}

// backoff is how long it takes until a connection is opened after so many that ended early.
func (g *gate) backoff() time.Duration {
	switch n := g.early - 2; {
	case g.off:
		return longestPause
	case n < 0:
		return 0 // Slack refreshes connections now and then; a click may be on its way
	case n < 5:
		return firstPause << n
	}
	return longestPause
}

// sound tells whether the connection has lived long enough. The caller has the lock.
func (g *gate) sound(now time.Time) bool {
	return !g.greeted.IsZero() && now.Sub(g.greeted) >= soundAfter
}

// hello notes that the connection stands.
func (g *gate) hello() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.greeted, g.outage = time.Now(), false
}

// unopened notes that a connection could not be opened, and whether slack-go is made to begin anew.
func (g *gate) unopened(anew bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.refused, g.outage = true, g.outage || anew
}

// switchedOff notes that reconnecting is pointless until a person changes the app's settings.
func (g *gate) switchedOff() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.off = true
}

// failing is how many connections in a row ended early.
func (g *gate) failing() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.sound(time.Now()) {
		return 0
	}
	return g.early
}
