package devslack

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/slack-go/slack"
	"github.com/slack-go/slack/slackevents"
	"github.com/slack-go/slack/socketmode"
)

func seconds(n int) *int { return &n }

// Faults of methods: what the client sees, and whether the call happened.
func TestMethodFaults(t *testing.T) {
	for name, test := range map[string]struct {
		fault     Fault
		status    int
		err       string
		retry     string
		performed bool
	}{
		"error":                   {Fault{Error: "channel_not_found"}, 200, "channel_not_found", "", false},
		"server error":            {Fault{Status: 503}, 503, "internal_error", "", false},
		"429":                     {Fault{RetryAfter: seconds(7)}, 429, "ratelimited", "7", false},
		"429 without Retry-After": {Fault{Status: 429, Error: "message_limit_exceeded"}, 429, "message_limit_exceeded", "", false},
		"slow":                    {Fault{DelayMS: 5000}, 200, "", "", true},
		"not matching":            {Fault{Status: 503, Match: "something else"}, 200, "", "", true},
		"matching":                {Fault{Status: 503, Match: "the text"}, 503, "internal_error", "", false},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, Options{}, func(t *testing.T, b *bench) {
				test.fault.Method = "chat.postMessage"
				if err := b.srv.SetFault(test.fault); err != nil {
					t.Fatal(err)
				}
				start := time.Now()
				got := b.call("chat.postMessage", map[string]string{"channel": b.channel("general"), "text": "with the text"})
				if got.status != test.status || got.err() != test.err || got.header.Get("Retry-After") != test.retry {
					t.Errorf("%d %v, Retry-After %q", got.status, got.body, got.header.Get("Retry-After"))
				}
				if took := time.Since(start); took != time.Duration(test.fault.DelayMS)*time.Millisecond {
					t.Errorf("took %v", took)
				}
				messages, err := b.srv.Messages(b.channel("general"), "")
				if err != nil || (len(messages) == 1) != test.performed {
					t.Errorf("%d messages, %v", len(messages), err)
				}
				b.srv.ClearFaults()
				if got := b.call("chat.postMessage", map[string]string{"channel": b.channel("general"), "text": "with the text"}); got.err() != "" {
					t.Errorf("afterwards: %v", got.body)
				}
			})
		})
	}
}

// A slow answer comes late, but what it answers has happened: a click can come
// before the post's answer.
func TestDelayedAnswerOfAPostThatStands(t *testing.T) {
	bubble(t, Options{}, func(t *testing.T, b *bench) {
		if err := b.srv.SetFault(Fault{Method: "chat.postMessage", DelayMS: 2000}); err != nil {
			t.Fatal(err)
		}
		answered := make(chan time.Time, 1)
		go func() {
			b.postCard("general")
			answered <- time.Now()
		}()
		time.Sleep(time.Second)
		synctest.Wait()
		messages, err := b.srv.Messages(b.channel("general"), "")
		if err != nil || len(messages) != 1 {
			t.Fatalf("%d messages, %v", len(messages), err)
		}
		if _, err := b.srv.Click(t.Context(), ActionRequest{User: b.user("bob"), Channel: b.channel("general"), TS: messages[0].TS, ActionID: "approve"}); err != nil {
			t.Error(err)
		}
		<-answered
	})
}

// A dropped answer: the client can't know, and the message is there.
func TestDroppedAnswer(t *testing.T) {
	bubble(t, Options{}, func(t *testing.T, b *bench) {
		if err := b.srv.SetFault(Fault{Method: "chat.postMessage", DropResponse: true}); err != nil {
			t.Fatal(err)
		}
		_, _, err := b.api.PostMessage(b.channel("general"), slack.MsgOptionText("lost", false))
		if err == nil {
			t.Error("an answer came")
		}
		messages, err := b.srv.Messages(b.channel("general"), "")
		if err != nil || len(messages) != 1 {
			t.Errorf("%d messages, %v", len(messages), err)
		}
	})
}

func TestFaultsAreUsedUp(t *testing.T) {
	bubble(t, Options{NoRateLimits: true}, func(t *testing.T, b *bench) {
		for _, f := range []Fault{{Method: "auth.test", Times: 2, Status: 500}, {Method: "*", Error: "fatal_error"}, {Method: "team.info", Times: -1, Status: 502}} {
			if err := b.srv.SetFault(f); err != nil {
				t.Fatal(err)
			}
		}
		var got []string
		for range 4 {
			got = append(got, b.call("auth.test", nil).err())
		}
		if diff := cmp.Diff([]string{"internal_error", "internal_error", "fatal_error", ""}, got); diff != "" {
			t.Errorf("answers (-want +got):\n%s", diff)
		}
		for range 20 {
			if got := b.call("team.info", nil); got.status != 502 {
				t.Fatalf("a lasting fault ended: %v", got.body)
			}
		}
		for _, f := range []Fault{{}, {Socket: "explode"}, {Socket: "disconnect", Reason: "mood"}, {Method: "x", Status: 42}} {
			var refused *ControlError
			if err := b.srv.SetFault(f); !errors.As(err, &refused) {
				t.Errorf("%+v was accepted: %v", f, err)
			}
		}
	})
}

// After a disconnect frame slack-go comes back, and the click that follows works.
func TestDisconnectBetweenCardAndClick(t *testing.T) {
	for _, reason := range []string{"", "refresh_requested", "warning", "link_disabled", "abrupt"} {
		t.Run(reason, func(t *testing.T) {
			bubble(t, Options{}, func(t *testing.T, b *bench) {
				bot := b.connect(ackAll)
				ts := b.postCard("general")
				if err := b.srv.SetFault(Fault{Socket: "disconnect", Reason: reason}); err != nil {
					t.Fatal(err)
				}
				time.Sleep(time.Minute)
				synctest.Wait()
				receipt, err := b.srv.Click(t.Context(), ActionRequest{User: b.user("bob"), Channel: b.channel("general"), TS: ts, ActionID: "deny"})
				if err != nil || !receipt.Acked {
					t.Errorf("receipt %+v, %v", receipt, err)
				}
				if n := len(bot.of(socketmode.EventTypeConnected)); n != 2 {
					t.Errorf("connected %d times, want 2", n)
				}
			})
		})
	}
}

// too_many_websockets is refused instead of greeted, as often as was asked for.
func TestTooManyWebsocketsFault(t *testing.T) {
	bubble(t, Options{}, func(t *testing.T, b *bench) {
		if err := b.srv.SetFault(Fault{Socket: "disconnect", Reason: "too_many_websockets", Times: 2}); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if f := readFrame(t, b.rawSocket("")); f.Reason != "too_many_websockets" {
				t.Fatalf("got %+v", f)
			}
		}
		if f := readFrame(t, b.rawSocket("")); f.Type != "hello" || f.Num != 1 {
			t.Errorf("then %+v", f)
		}
	})
}

// A ghost counts as a connection and swallows what falls to it: a click is
// lost, an event comes as a retry.
func TestGhost(t *testing.T) {
	bubble(t, Options{}, func(t *testing.T, b *bench) {
		bot := b.connect(ackAll)
		ts := b.postCard("general")
		synctest.Wait() // the card's own event has its turn
		if err := b.srv.SetFault(Fault{Socket: "ghost", Times: 2}); err != nil {
			t.Fatal(err)
		}
		click := func() Receipt {
			receipt, err := b.srv.Click(t.Context(), ActionRequest{User: b.user("bob"), Channel: b.channel("general"), TS: ts, ActionID: "approve"})
			if err != nil {
				t.Fatal(err)
			}
			return receipt
		}
		if r := click(); !r.Delivered || r.Acked {
			t.Errorf("a click that the ghost took: %+v", r)
		}
		if r := click(); !r.Acked {
			t.Errorf("a click that fell to the client: %+v", r)
		}
		if n := b.srv.Sockets(); n != 2 {
			t.Errorf("%d connections", n)
		}
		b.say("hello")
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		var attempts []int
		for _, e := range bot.of(socketmode.EventTypeEventsAPI) {
			attempts = append(attempts, e.Request.RetryAttempt)
		}
		if diff := cmp.Diff([]int{0, 1}, attempts); diff != "" { // the card's own event, then the message
			t.Errorf("attempts (-want +got):\n%s", diff)
		}
		if n := b.srv.Sockets(); n != 1 {
			t.Errorf("%d connections after the ghost was found out", n)
		}
	})
}

func TestDuplicateEvent(t *testing.T) {
	bubble(t, Options{}, func(t *testing.T, b *bench) {
		bot := b.connect(ackAll)
		if err := b.srv.SetFault(Fault{Socket: "duplicate_event"}); err != nil {
			t.Fatal(err)
		}
		b.say("once")
		b.say("then normally")
		synctest.Wait()
		var ids []string
		for _, e := range bot.of(socketmode.EventTypeEventsAPI) {
			ids = append(ids, e.Data.(slackevents.EventsAPIEvent).Data.(*slackevents.EventsAPICallbackEvent).EventID)
		}
		if len(ids) != 3 || ids[0] != ids[1] || ids[1] == ids[2] {
			t.Errorf("event ids %v", ids)
		}
	})
}

func TestLostClick(t *testing.T) {
	bubble(t, Options{}, func(t *testing.T, b *bench) {
		bot := b.connect(ackAll)
		if err := b.srv.SetFault(Fault{Socket: "lose_click"}); err != nil {
			t.Fatal(err)
		}
		if r := b.clickCard("general"); r.Delivered || r.Acked {
			t.Errorf("a lost click: %+v", r)
		}
		if r := b.clickCard("general"); !r.Acked {
			t.Errorf("the next: %+v", r)
		}
		if n := len(bot.of(socketmode.EventTypeInteractive)); n != 1 {
			t.Errorf("%d clicks arrived", n)
		}
	})
}

// A late ack leaves the person with a warning, and an event is sent again.
func TestDelayedAck(t *testing.T) {
	bubble(t, Options{}, func(t *testing.T, b *bench) {
		bot := b.connect(ackAll)
		ts := b.postCard("general")
		synctest.Wait() // the card's own event is acknowledged
		if err := b.srv.SetFault(Fault{Socket: "delay_ack"}); err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		receipt, err := b.srv.Click(context.Background(), ActionRequest{User: b.user("bob"), Channel: b.channel("general"), TS: ts, ActionID: "approve"})
		if err != nil || !receipt.Delivered || receipt.Acked || time.Since(start) != AckTimeout {
			t.Errorf("receipt %+v after %v, %v", receipt, time.Since(start), err)
		}
		if err := b.srv.SetFault(Fault{Socket: "delay_ack"}); err != nil {
			t.Fatal(err)
		}
		b.say("hello")
		time.Sleep(time.Hour)
		synctest.Wait()
		var attempts []int
		for _, e := range bot.of(socketmode.EventTypeEventsAPI) {
			attempts = append(attempts, e.Request.RetryAttempt)
		}
		if diff := cmp.Diff([]int{0, 0, 1}, attempts); diff != "" { // the card's own event, then the message twice
			t.Errorf("attempts (-want +got):\n%s", diff)
		}
	})
}

// All of it over HTTP too.
func TestFaultRoutes(t *testing.T) {
	bubble(t, Options{}, func(t *testing.T, b *bench) {
		var got map[string]any
		if status := b.control("POST", "_dev/faults", map[string]any{"method": "auth.test", "times": 5, "retry_after": 2}, &got); status != http.StatusOK || got["ok"] != true {
			t.Fatalf("%d %v", status, got)
		}
		if got := b.call("auth.test", nil); got.status != 429 || got.header.Get("Retry-After") != "2" {
			t.Errorf("%d %v", got.status, got.body)
		}
		if status := b.control("DELETE", "_dev/faults", nil, &got); status != http.StatusOK {
			t.Fatalf("%d %v", status, got)
		}
		if got := b.call("auth.test", nil); got.err() != "" {
			t.Errorf("after DELETE: %v", got.body)
		}
		if status := b.control("POST", "_dev/faults", map[string]any{"methd": "auth.test"}, &got); status != http.StatusBadRequest || got["error"] != "invalid_json" {
			t.Errorf("a misspelt field: %d %v", status, got)
		}
	})
}
