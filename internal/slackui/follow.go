package slackui

import (
	"context"
	"errors"
	"fmt"
	"time"

	"approvalbot/internal/ledger"
)

// load reads what an earlier process left unsettled. Following starts at the head that was noted before, so nothing can
// fall between the two; what comes twice counts once.
func (o *outbox) load(ctx context.Context) error {
	head, err := o.journal.Head(ctx)
	if err != nil {
		return fmt.Errorf("read the journal's head: %w", err)
	}
	waiting, err := o.journal.WaitingMessages(ctx)
	if err != nil {
		return fmt.Errorf("read the waiting messages: %w", err)
	}
	runs, err := o.journal.UnsettledRuns(ctx)
	if err != nil {
		return fmt.Errorf("read the unsettled runs: %w", err)
	}
	for _, id := range runs {
		if err := o.loadRun(ctx, id); err != nil {
			return fmt.Errorf("read the run %s: %w", id, err)
		}
	}
	if err := o.loadPauses(ctx, head.Seq); err != nil {
		return fmt.Errorf("read the pauses: %w", err)
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, e := range waiting {
		o.book.apply(e, o.renderer)
		if t := o.book.things[progressOf(e.Seq)]; t != nil && t.run == "" {
			t.looks = 1
		}
	}
	o.book.upTo = head.Seq
	return nil
}

func (o *outbox) loadRun(ctx context.Context, id string) error {
	run, ok, err := o.journal.LoadRun(ctx, id)
	if err != nil || !ok || run.Started == nil {
		return err
	}
	message, _, err := o.journal.Event(ctx, run.Started.Message)
	if err != nil {
		return err
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.book.load(run, message, o.renderer)
	return nil
}

// follow reads the journal as it grows, until ctx ends or the journal is closed.
func (o *outbox) follow(ctx context.Context) error {
	after := o.read()
	for {
		var failed error
		for e, err := range o.journal.Follow(ctx, after) {
			if failed = err; err != nil {
				break
			}
			if failed = o.take(ctx, e); failed != nil {
				break
			}
			after = e.Seq
		}
		if ctx.Err() != nil || errors.Is(failed, ledger.ErrClosed) {
			return nil
		}
		o.log.Error("the journal can't be followed; Slack lags behind", "after", after, "error", failed)
		if err := sleep(ctx, firstRetry); err != nil {
			return nil
		}
	}
}

// read is the last event that was read.
func (o *outbox) read() int64 {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.book.upTo
}

// take reads one event.
func (o *outbox) take(ctx context.Context, e ledger.Event) error {
	switch e.Body.(type) {
	case *ledger.Paused, *ledger.Resumed:
		defer o.poke()
		if err := o.takePause(ctx, e); err != nil {
			return err
		}
		o.tellOf(e)
		return nil
	}
	var message ledger.Event
	if b, ok := e.Body.(*ledger.RunStarted); ok && b.Place.Channel != "" {
		var err error
		if message, _, err = o.journal.Event(ctx, b.Message); err != nil {
			return err
		}
	}
	o.mu.Lock()
	if message.Body != nil {
		o.book.mail[message.Seq] = message
	}
	o.book.apply(e, o.renderer)
	o.mu.Unlock()
	o.poke()
	o.tellOf(e)
	return nil
}

// tellOf tells of an event that was read, whoever wants to know.
func (o *outbox) tellOf(e ledger.Event) {
	if o.heard != nil {
		o.heard(e)
	}
}

// drain brings out what is still owed to people: how everything ended, up to the journal's head. It returns when
// nothing is left or ctx ends.
func (o *outbox) drain(ctx context.Context) {
	head, err := o.journal.Head(ctx)
	if err != nil {
		o.log.Error("the journal can't be read any more; messages in Slack may be left as they are", "error", err)
		return
	}
	o.mu.Lock()
	o.stopping = true
	o.mu.Unlock()
	for {
		o.poke()
		o.mu.Lock()
		done := o.book.upTo >= head.Seq && o.quiet()
		o.mu.Unlock()
		if done || sleep(ctx, 20*time.Millisecond) != nil {
			return
		}
	}
}

// quiet tells whether nothing is under way and no ending is left to be brought out. What Slack said no to again and again
// is left to the next process.
func (o *outbox) quiet() bool {
	if o.calls > 0 {
		return false
	}
	for t := range o.book.dirty {
		if r := o.rank(t); (t.run != "" || o.book.isWithdrawn(t)) && t.noes < askNoes && (r == rankAnswer || r == rankEnding || r == rankQuiet) {
			return false
		}
	}
	return true
}

func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
