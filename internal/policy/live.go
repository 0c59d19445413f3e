package policy

import "sync/atomic"

// Live is the policy of a process that reloads it: one that is in force, until another
// takes its place. Its zero value has none, and nil denies every call.
type Live struct {
	current atomic.Pointer[Policy]
}

// NewLive returns a Live with p in force.
func NewLive(p *Policy) *Live {
	l := &Live{}
	l.current.Store(p)
	return l
}

// Current returns the policy that is in force now.
func (l *Live) Current() *Policy { return l.current.Load() }

// Set puts p in force. Who took the policy before keeps the old one: a decision is made
// by one policy from beginning to end.
func (l *Live) Set(p *Policy) { l.current.Store(p) }
