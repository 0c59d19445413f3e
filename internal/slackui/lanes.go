package slackui

import (
	"context"
	"sync"
)

const (
	// laneMost bounds the work that waits in one lane: a thread or an ask. A person can't write faster than that.
	laneMost = 200
	// lanesMost bounds the work that waits altogether.
	lanesMost = 5000
)

// lanes run work in the order in which it came, for each key; different keys run side by side. So messages of one thread
// keep their order, and a slow look-up for one ask holds up nothing else. A lane lives as long as it has work.
type lanes struct {
	mu     sync.Mutex
	queues map[string][]func(context.Context) // present while a goroutine works on the lane
	queued int
	closed bool
	wg     sync.WaitGroup
}

func newLanes() *lanes { return &lanes{queues: map[string][]func(context.Context){}} }

// do puts work into a lane and never blocks. It returns false if there is no room or the lanes are closed.
func (l *lanes) do(ctx context.Context, key string, work func(context.Context)) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	queue, busy := l.queues[key]
	if l.closed || len(queue) >= laneMost || l.queued >= lanesMost {
		return false
	}
	l.queues[key] = append(queue, work)
	l.queued++
	if !busy {
		l.wg.Go(func() { l.run(ctx, key) })
	}
	return true
}

func (l *lanes) run(ctx context.Context, key string) {
	for {
		work, ok := l.next(key)
		if !ok {
			return
		}
		work(ctx)
	}
}

func (l *lanes) next(key string) (func(context.Context), bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	queue := l.queues[key]
	if len(queue) == 0 {
		delete(l.queues, key)
		return nil, false
	}
	work := queue[0]
	queue[0] = nil
	l.queues[key] = queue[1:]
	l.queued--
	return work, true
}

// close takes no more work; what is in the lanes is finished.
func (l *lanes) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
}

func (l *lanes) wait() { l.wg.Wait() }
