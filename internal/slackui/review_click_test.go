package slackui

import (
	"strings"
	"testing"
	"time"

	"approvalbot/internal/devslack"
	"approvalbot/internal/ledger/ledgertest"
)

// modal waits for what somebody has open.
func (w *world) modal(user, phrase string) devslack.View {
	w.t.Helper()
	var v devslack.View
	w.eventually(user+" sees "+phrase, func() bool {
		all, err := w.slack.Views(w.user(user))
		if err != nil || len(all) == 0 {
			return false
		}
		v = all[0]
		return strings.Contains(string(v.Blocks), phrase)
	})
	return v
}

func (w *world) press(user string, v devslack.View, action string, forge ...func(*devslack.ActionRequest)) devslack.Receipt {
	w.t.Helper()
	r := devslack.ActionRequest{User: w.user(user), ActionID: action}
	for _, f := range forge {
		f(&r)
	}
	receipt, err := w.slack.ViewAction(v.ID, r)
	if err != nil {
		w.t.Fatal(err)
	}
	return receipt
}

// long is a command that doesn't fit a card.
func long(chars int) string { return "echo " + strings.Repeat("0123456789 ", chars/11) }

func TestReviewShowsAllOfItAndDecides(t *testing.T) {
	inWorld(t, func(w *world) {
		root := w.say("alice", "@bot `"+long(20_000)+"` `ls`")
		w.card(root, 1) // both are there
		card, second := w.cards(root)[0], w.cards(root)[1]
		if hasButton(second, actionReview) {
			card, second = second, card
		}
		other := approvalOf(second)
		if hasButton(card, actionApprove) || !hasButton(card, actionReview) {
			t.Fatalf("the buttons are wrong: %.400s", card.Blocks)
		}
		// An Approve that the card doesn't have decides nothing.
		w.click("bob", card, actionApprove, forge(approvalOf(card)))
		w.whispered("bob", "nothing was decided")

		if r := w.click("bob", card, actionReview); !r.Acked {
			t.Error("not acknowledged")
		}
		v := w.modal("bob", "0123456789")
		w.press("bob", v, actionApprove, forge(other))
		w.after(time.Second)
		if len(w.resolutions()) != 0 {
			t.Fatal("a forged value decided")
		}
		w.click("bob", card, actionReview)
		v = w.modal("bob", "0123456789")
		if r := w.press("bob", v, actionApprove); !r.Acked {
			t.Error("not acknowledged")
		}
		w.modal("bob", "You approved this: ")
		w.eventually("it ran", func() bool { return len(w.agent.ran()) > 0 })
		if _, burnt := w.resolutions()[other]; burnt || len(w.agent.ran()) != 1 {
			t.Error("not started")
		}
	}, func(w *world) { w.settings.Timeout = time.Hour })
}

func TestAFileShowsWhatNoModalCanHold(t *testing.T) {
	inWorld(t, func(w *world) {
		root := w.say("alice", "@bot `x`")
		w.card(root, 0)
		w.agent.argument = long(205_000)
		root = w.say("alice", "@bot `x`")
		card := w.card(root, 0)
		w.click("bob", card, actionReview)
		v := w.modal("bob", "Open the file")
		if n := w.calls("files.completeUploadExternal", 0); n != 1 {
			t.Errorf("%d files", n)
		}
		w.press("bob", v, actionDeny)
		w.modal("bob", "It will not be performed.")
		w.isOverSoon(root)
	})
}

// Without the file there is nothing to approve.
func TestAFileThatCantBeSent(t *testing.T) {
	inWorld(t, func(w *world) {
		w.agent.argument = long(205_000)
		w.fault(devslack.Fault{Method: "files.getUploadURLExternal", Times: -1, Error: "file_uploads_disabled"})
		root := w.say("alice", "@bot `x`")
		w.click("bob", w.card(root, 0), actionReview)
		v := w.modal("bob", "file_uploads_disabled")
		if strings.Contains(string(v.Blocks), `"action_id":"approve"`) {
			t.Error("there is an Approve")
		}
	})
}

func TestThoseWhoMayNotDecideAreToldInTheModal(t *testing.T) {
	inWorld(t, func(w *world) {
		root := w.say("alice", "@bot `"+long(20_000)+"`")
		card := w.card(root, 0)
		w.click("gus", card, actionReview)
		w.press("gus", w.modal("gus", "0123456789"), actionApprove)
		w.modal("gus", "Guests")
		if len(w.resolutions()) != 0 {
			t.Error("a guest decided")
		}
	})
}

func TestAModalWhileTheJournalCantBeWritten(t *testing.T) {
	inWorld(t, func(w *world) {
		root := w.say("alice", "@bot `"+long(20_000)+"`")
		w.click("bob", w.card(root, 0), actionReview)
		v := w.modal("bob", "0123456789")
		release := ledgertest.Lock(t, w.dir)
		w.press("bob", v, actionApprove)
		w.whispered("bob", "can't record")
		release()
		w.press("bob", w.modal("bob", "0123456789"), actionApprove)
		w.settled()
		if len(w.agent.ran()) != 1 {
			t.Error("not started")
		}
	}, func(w *world) { w.settings.Timeout = time.Hour })
}

// A modal that was open while the ask ended.
func TestAModalOfAnAskThatIsOver(t *testing.T) {
	inWorld(t, func(w *world) {
		root := w.say("alice", "@bot `"+long(20_000)+"`")
		card := w.card(root, 0)
		w.click("bob", card, actionReview)
		v := w.modal("bob", "0123456789")
		w.click("carol", card, actionDeny)
		w.settled()
		w.press("bob", v, actionApprove)
		w.modal("bob", "Already decided")
		if len(w.agent.ran()) != 0 {
			t.Error("started")
		}
	})
}

func (w *world) isOverSoon(root string) {
	w.t.Helper()
	w.eventually("the card is over", func() bool { return !hasButton(w.cards(root)[0], actionDeny) })
}

// A card that stands as it should isn't touched until something changes.
func TestAStandingCardIsLeftAlone(t *testing.T) {
	inWorld(t, func(w *world) {
		w.say("alice", "@bot `ls`")
		w.eventually("it is recorded", func() bool { return len(w.events0live("message_posted", kindCard)) == 1 })
		w.after(time.Minute)
		for _, c := range w.slack.Calls(0) {
			if c.Name == "chat.update" && strings.Contains(string(c.Request), `\"kind\":\"card\"`) {
				t.Errorf("updated without need: %.300s", c.Request)
			}
		}
		if n := w.calls("chat.update", 0); n > 1 {
			t.Errorf("%d updates while nothing happened", n)
		}
	})
}
