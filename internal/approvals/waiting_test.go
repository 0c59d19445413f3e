package approvals

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

// Waiting counts what is open, and knows the oldest of it, whichever ends first.
func TestWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		if n, oldest := w.Waiting(); n != 0 || !oldest.IsZero() {
			t.Errorf("before anything is asked: %d since %v", n, oldest)
		}
		began := time.Now()
		ctx, stop := context.WithCancel(w.ctx())
		first := w.wait(ctx, w.open("r", "1"))
		time.Sleep(time.Second)
		second := w.wait(w.ctx(), w.open("r", "2"))
		if n, oldest := w.Waiting(); n != 2 || !oldest.Equal(began) {
			t.Errorf("two asks: %d since %v, want since %v", n, oldest, began)
		}
		stop()
		first()
		if n, oldest := w.Waiting(); n != 1 || !oldest.Equal(began.Add(time.Second)) {
			t.Errorf("after the first: %d since %v", n, oldest)
		}
		second()
		if n, _ := w.Waiting(); n != 0 {
			t.Errorf("after both: %d", n)
		}
	})
}

// Who heard of an ask from the journal finds it among those that are pending, even before Open has returned.
func TestPendingKnowsWhatIsOnDisk(t *testing.T) {
	for name, c := range map[string]struct {
		after time.Duration // until Open hears of its commit
		want  int
	}{
		"at once":               {0, 1},
		"when a disk was slow":  {time.Second, 1},
		"not when a disk hangs": {time.Hour, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				keep := make(chan struct{})
				w.journal.set(func(s *spoilt) { s.keep = keep })
				opened := make(chan func() Resolution)
				go func() { opened <- w.wait(w.ctx(), w.open("r", "1")) }()
				synctest.Wait()
				time.AfterFunc(c.after, func() { close(keep) })
				for _, run := range []string{"r", ""} {
					if got := len(w.Pending(run)); got != c.want {
						t.Errorf("run %q: %d are pending, want %d", run, got, c.want)
					}
				}
				wait := <-opened
				if got := len(w.Pending("r")); got != 1 {
					t.Errorf("once it is open: %d are pending", got)
				}
				wait()
			})
		})
	}
}
