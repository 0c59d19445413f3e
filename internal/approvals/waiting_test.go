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
