package tools

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
)

// Live is the tools of the moment: those that never change, and behind them those of sources that come, go and change
// them. The order is fixed, whichever source is there first. It is safe for concurrent use.
type Live struct {
	set atomic.Pointer[Set] // what there is now; each one never changes

	mu      sync.Mutex
	fixed   []Tool
	sources []string
	parts   map[string][]Tool
}

// NewLive makes tools of those that never change, and names the sources of others, in the order in which they are offered.
func NewLive(fixed []Tool, sources ...string) (*Live, error) {
	l := &Live{fixed: slices.Clone(fixed), sources: slices.Clone(sources), parts: map[string][]Tool{}}
	set, err := NewSet(l.fixed...)
	if err != nil {
		return nil, err
	}
	l.set.Store(set)
	return l, nil
}

// Set returns the tools that there are now.
func (l *Live) Set() *Set { return l.set.Load() }

// Sources returns the tools that sources have there now, in the order in which they are offered.
func (l *Live) Sources() (all []Tool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, name := range l.sources {
		all = append(all, l.parts[name]...)
	}
	return all
}

// Replace makes these the tools of the source, instead of those that it had. Where they don't fit beside the others, an
// error says why and nothing changes.
func (l *Live) Replace(source string, tools ...Tool) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !slices.Contains(l.sources, source) {
		return fmt.Errorf("tools: there is no source %q", source)
	}
	all := slices.Clone(l.fixed)
	for _, name := range l.sources {
		if name == source {
			all = append(all, tools...)
			continue
		}
		all = append(all, l.parts[name]...)
	}
	set, err := NewSet(all...)
	if err != nil {
		return err
	}
	l.parts[source] = slices.Clone(tools)
	l.set.Store(set)
	return nil
}
