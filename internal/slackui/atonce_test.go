package slackui

import (
	"testing"
	"time"

	"approvalbot/internal/devslack"
)

// noUpdates makes the bot believe that it has used up what Slack takes of updates.
func (w *world) noUpdates(d time.Duration) {
	w.ui.outbox.mu.Lock()
	defer w.ui.outbox.mu.Unlock()
	w.ui.outbox.updates.stop(time.Now(), d)
}

func (w *world) called(method string) (n int) {
	for _, c := range w.slack.Calls(0) {
		if c.Kind == "api" && c.Name == method {
			n++
		}
	}
	return n
}

// A card whose buttons did their work doesn't keep them until there is an update left for it. It is updated all the same.
func TestADecidedCardDoesntWaitForAnUpdate(t *testing.T) {
	inWorld(t, func(w *world) {
		root := w.say("alice", "@bot `ls`")
		card := w.card(root, 0)
		w.eventually("the showing is recorded", func() bool { return len(w.events("message_posted")) >= 2 })
		w.noUpdates(time.Minute)
		w.click("bob", card, actionApprove)
		w.after(2 * time.Second)
		for _, m := range w.thread(root) {
			if m.TS == card.TS {
				w.isOver(m)
			}
		}
		if n := w.called("response_url"); n == 0 || n > addressUses {
			t.Errorf("%d answers", n)
		}
		if w.cardUpdates() > 0 {
			t.Error("the card was updated although Slack takes no update")
		}
		w.settled()
		w.isOver(w.cards(root)[0])
		if w.cardUpdates() == 0 {
			t.Error("nobody knows that the card shows its end")
		}
	})
}

// With updates left, the ordinary way is as quick, and is confirmed.
func TestAClickIsntAnsweredWhereUpdatesAreLeft(t *testing.T) {
	inWorld(t, func(w *world) {
		root := w.say("alice", "@bot `ls`")
		w.click("bob", w.card(root, 0), actionApprove)
		w.settled()
		if n := w.called("response_url"); n > 0 {
			t.Errorf("%d answers", n)
		}
	})
}

// What Slack says or doesn't say to such an answer leaves the card to its update.
func TestAnAnswerThatFailsLeavesTheCardToItsUpdate(t *testing.T) {
	for name, f := range map[string]devslack.Fault{
		"refused": {Method: "response_url", Times: -1, Error: "used_url"},
		"lost":    {Method: "response_url", Times: -1, DropResponse: true},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				root := w.say("alice", "@bot `ls`")
				card := w.card(root, 0)
				w.eventually("the showing is recorded", func() bool { return len(w.events("message_posted")) >= 2 })
				w.noUpdates(time.Minute)
				w.fault(f)
				w.click("bob", card, actionApprove)
				w.settled()
				w.isOver(w.cards(root)[0])
				if w.called("response_url") != 1 {
					t.Errorf("%d answers: one that failed isn't tried again", w.called("response_url"))
				}
				if len(w.cards(root)) != 1 || len(w.goneThings()) != 0 {
					t.Errorf("%d cards, gone: %v", len(w.cards(root)), w.goneThings())
				}
			})
		})
	}
}
