package slackui

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"
)

const (
	// A connection that lives this long was a sound one, and what follows it is opened at once.
	soundAfter = time.Minute

	firstPause   = 2 * time.Second
	longestPause = time.Minute
)

// A gate stands before every opening of a connection. slack-go alone opens the next one at once whenever one ends, over
// a thousand times a second if Slack keeps turning it away; the gate lets the first reconnect pass and makes each
// further one within a minute wait twice as long.
type gate struct {
	jitter func() float64 // 0 to 1

	mu     sync.Mutex
	opened time.Time // when the last one was let through
	early  int       // connections in a row that didn't live long
	off    bool      // Slack said that Socket Mode is switched off
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
	g.opened = time.Now()
	return nil
}

// pause counts one more opening and says how long it has to wait.
func (g *gate) pause(now time.Time) time.Duration {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.opened.IsZero() || now.Sub(g.opened) >= soundAfter {
		g.early, g.off = 0, false
		return 0
	}
	g.early++
	d := longestPause
	switch n := g.early - 2; {
	case g.off:
	case n < 0:
		return 0 // Slack refreshes connections now and then; a click may be on its way
	case n < 5:
		d = firstPause << n
	}
	return d + time.Duration(g.jitter()*float64(d)/4)
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
	if time.Since(g.opened) >= soundAfter {
		return 0
	}
	return g.early
}
