package slackui

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestAMentionBecomesACardAClickAndAnAnswer(t *testing.T) {
	inWorld(t, func(w *world) {
		root := w.say("alice", "@bot run `printf ok`")
		card := w.card(root, 0)
		if !hasButton(card, actionApprove) || !hasButton(card, actionDeny) {
			t.Fatalf("the card has no buttons: %s", card.Blocks)
		}
		if got := w.agent.ran(); len(got) != 0 {
			t.Fatalf("started before anybody approved: %v", got)
		}
		if r := w.click("bob", card, actionApprove); !r.Acked || r.AckMS > 2500 {
			t.Errorf("the click was acknowledged like this: %+v", r)
		}
		w.settled()
		if diff := cmp.Diff([]string{"printf ok"}, w.agent.ran()); diff != "" {
			t.Errorf("started (-want +got):\n%s", diff)
		}
		if n := len(w.cards(root)); n != 1 {
			t.Errorf("%d cards, want 1", n)
		}
		w.isOver(w.cards(root)[0])
		for _, kind := range []string{kindProgress, kindAnswer} {
			if n := len(w.things(root, kind)); n != 1 {
				t.Errorf("%d messages of kind %s, want 1", n, kind)
			}
		}
		if n := len(w.events("message_received")); n != 1 {
			t.Errorf("%d messages received, want 1: it came as app_mention and as message", n)
		}
		if n := w.calls("chat.update", 0); n > 6 {
			t.Errorf("%d updates for one approved call", n)
		}
	})
}
