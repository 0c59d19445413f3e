package devslack

import (
	"math"
	"time"
)

// tier is one of Slack's rate limits.
type tier struct {
	perMinute  float64
	burst      float64
	perChannel bool
}

var (
	tier2 = tier{perMinute: 20, burst: 20}
	tier3 = tier{perMinute: 50, burst: 50}
	tier4 = tier{perMinute: 100, burst: 100}
	// tierSpecial is for methods that Slack lets pass at "hundreds per minute".
	tierSpecial = tier{perMinute: 600, burst: 100}
	// tierPost is one message a second in a channel; short bursts pass.
	tierPost = tier{perMinute: 60, burst: 3, perChannel: true}
)

// bucket has one token for every call that may be made now.
type bucket struct {
	tokens float64
	filled time.Time
}

// limited takes a token for the call; 0 means that it may go on, anything
// else is after how many seconds it may be tried again.
func (s *Server) limited(c *apiCall, t tier) int {
	if s.opts.NoRateLimits {
		return 0
	}
	key := c.method
	if t.perChannel {
		key += " " + c.args.str("channel")
	}
	now := time.Now()
	b := s.limits[key]
	if b == nil {
		b = &bucket{tokens: t.burst, filled: now}
		s.limits[key] = b
	}
	perSecond := t.perMinute / 60
	b.tokens = min(t.burst, b.tokens+now.Sub(b.filled).Seconds()*perSecond)
	b.filled = now
	if b.tokens >= 1-1e-9 {
		b.tokens--
		return 0
	}
	return max(1, int(math.Ceil((1-b.tokens)/perSecond)))
}
