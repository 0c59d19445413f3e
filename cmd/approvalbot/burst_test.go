package main

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"approvalbot/internal/devslack"
)

// Sixty things are asked at once in one channel, which takes one post a second. All cards have to be there within 1.05 times
// what that allows, and Slack never has to say "too many". Time is the bubble's, so the figures are the same everywhere;
// make bench prints them.
func TestSixtyAsksInOneChannel(t *testing.T) {
	const asks, most = 60, 1.05
	inWorld(t, nil, func(w *world) {
		began := time.Now()
		for i := range asks {
			if _, err := w.slack.SendMessage(devslack.MessageRequest{
				User: w.user("alice"), Channel: w.general(), Text: fmt.Sprintf("<@%s> write file-%d.txt: hello", w.ws.App.BotUserID, i),
			}); err != nil {
				t.Fatal(err)
			}
		}
		synctest.Wait()
		w.pass(10 * time.Minute) // nobody answers, so that all ends before the world does
		cards, last, refused := w.posts()
		if cards != asks {
			t.Errorf("%d cards, want %d", cards, asks)
		}
		ratio := last.Sub(began).Seconds() / asks
		if ratio > most {
			t.Errorf("the last of %d cards came after %v", asks, last.Sub(began))
		}
		if refused > 0 {
			t.Errorf("Slack refused %d calls as too many", refused)
		}
		t.Attr("seconds-per-ask", fmt.Sprintf("%.3f", ratio))
		t.Attr("refusals", fmt.Sprint(refused))
	})
}

// posts counts the cards that Slack has taken and the calls that it refused as too many, and tells when the last card
// came.
func (w *world) posts() (cards int, last time.Time, refused int) {
	for _, c := range w.slack.Calls(0) {
		switch {
		case c.Status == http.StatusTooManyRequests:
			refused++
		case c.Name == "chat.postMessage" && strings.Contains(string(c.Request), "approve"):
			cards, last = cards+1, c.Time
		}
	}
	return cards, last, refused
}
