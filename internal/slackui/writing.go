package slackui

import (
	"context"
	"strings"
	"time"
	"unicode/utf8"

	"approvalbot/internal/ledger"
)

// While a model writes a long answer its progress message shows that it does, and how the text begins. That is no event
// of the journal and never stays: the next event of the run takes its place. It is shown now and then only, and after
// everything that people wait for, as all progress is.

const (
	writingAfter  = 2 * time.Second // most answers are there by then
	maxHeard      = 2000            // bytes of the beginning that are kept
	maxWritingRow = 150             // characters of it that are shown
)

// A writing is a text that is on its way.
type writing struct {
	after int64  // Seq of the journal's last event when it began: one behind that ends it
	said  string // how it begins
	chars int
	next  time.Time // when it is shown again
}

// Delta takes a piece of a model's text, as it comes. It waits for nothing.
func (u *UI) Delta(run, text string) { u.outbox.delta(run, text) }

func (o *outbox) delta(run, text string) {
	head, err := o.journal.Head(context.Background()) // from memory
	if err != nil {
		return
	}
	o.mu.Lock()
	due := o.book.write(run, text, head.Seq, time.Now())
	o.mu.Unlock()
	if due {
		o.poke()
	}
}

// write takes in a piece of a run's text, and tells whether it is time to show it.
func (b *book) write(id, text string, head int64, now time.Time) (due bool) {
	run := b.runs[id]
	if run == nil || run.Finished != nil {
		return false
	}
	w := b.writing[id]
	if w == nil {
		w = &writing{after: head, next: now.Add(writingAfter)}
		b.writing[id] = w
	}
	if room := maxHeard - len(w.said); room > 0 {
		w.said += text[:min(room, len(text))]
	}
	w.chars += utf8.RuneCountInString(text)
	if now.Before(w.next) {
		return false
	}
	w.next = now.Add(progressEvery)
	for _, t := range b.byRun[id] {
		if t.Kind == kindProgress {
			b.dirty[t] = true
		}
	}
	return true
}

// written ends what was on its way when the event happened.
func (b *book) written(e ledger.Event) {
	w := b.writing[e.Run]
	if w == nil || e.Seq <= w.after {
		return // of the step before
	}
	switch e.Body.(type) {
	case *ledger.ModelCompleted, *ledger.ModelFailed, *ledger.RunFinished:
		delete(b.writing, e.Run)
	}
}

// beginning is what can be shown of the text: whole words, since half a secret isn't recognised; nothing of a text with a
// private key in it, which goes over many lines.
func (w *writing) beginning(v *renderer) string {
	cut := strings.LastIndexAny(w.said, " \t\n")
	if cut < 0 || strings.Contains(strings.ToLower(w.said), "private key") {
		return ""
	}
	return v.line(strings.Join(strings.Fields(v.clean(w.said[:cut])), " "), maxWritingRow)
}
