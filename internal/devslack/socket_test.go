package devslack

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/gorilla/websocket"
	"github.com/slack-go/slack/slackevents"
	"github.com/slack-go/slack/socketmode"
)

// rawSocket opens a connection below any client library.
func (b *bench) rawSocket(query string) *websocket.Conn {
	b.t.Helper()
	_, url, err := b.api.StartSocketModeContext(context.Background())
	if err != nil {
		b.t.Fatal(err)
	}
	ws, _, err := (&websocket.Dialer{NetDialContext: b.pipe.DialContext}).Dial(url+query, nil)
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() { ws.Close() })
	return ws
}

// envelopeOf is the part of a frame that the tests look at.
type envelopeOf struct {
	Type         string          `json:"type"`
	Reason       string          `json:"reason"`
	EnvelopeID   string          `json:"envelope_id"`
	RetryAttempt int             `json:"retry_attempt"`
	RetryReason  string          `json:"retry_reason"`
	Num          int             `json:"num_connections"`
	Payload      json.RawMessage `json:"payload"`
}

func readFrame(t *testing.T, ws *websocket.Conn) envelopeOf {
	t.Helper()
	kind, data, err := ws.ReadMessage()
	if err != nil {
		t.Fatal(err)
	}
	if kind != websocket.TextMessage {
		t.Fatalf("frame of kind %d", kind)
	}
	var e envelopeOf
	if err := json.Unmarshal(data, &e); err != nil {
		t.Fatal(err)
	}
	return e
}

func (b *bench) say(text string) string {
	b.t.Helper()
	ts, err := b.srv.SendMessage(MessageRequest{User: b.user("alice"), Channel: b.channel("ops-private"), Text: text})
	if err != nil {
		b.t.Fatal(err)
	}
	return ts
}

type seen struct {
	After   time.Duration
	Attempt int
	Reason  string
}

// An event that nobody acknowledges comes four times, always with the same
// event id; the times are Slack's.
func TestUnacknowledgedEventIsDeliveredAgain(t *testing.T) {
	bubble(t, Options{}, func(t *testing.T, b *bench) {
		var got []seen
		ids := map[string]bool{}
		envelopes := map[string]bool{}
		var start time.Time
		b.connect(func(evt socketmode.Event) (bool, any) {
			got = append(got, seen{time.Since(start), evt.Request.RetryAttempt, evt.Request.RetryReason})
			ids[evt.Data.(slackevents.EventsAPIEvent).Data.(*slackevents.EventsAPICallbackEvent).EventID] = true
			envelopes[evt.Request.EnvelopeID] = true
			return false, nil
		})
		start = time.Now()
		b.say("hello")
		time.Sleep(time.Hour)
		synctest.Wait()
		want := []seen{
			{0, 0, ""},
			{3 * time.Second, 1, "timeout"},
			{66 * time.Second, 2, "timeout"},
			{369 * time.Second, 3, "timeout"},
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("deliveries (-want +got):\n%s", diff)
		}
		if len(ids) != 1 || len(envelopes) != 4 {
			t.Errorf("%d event ids and %d envelope ids, want 1 and 4", len(ids), len(envelopes))
		}
	})
}

// What happens while no socket is open is not lost: it comes as a retry.
func TestEventWithoutConnectionComesAsRetry(t *testing.T) {
	bubble(t, Options{}, func(t *testing.T, b *bench) {
		b.say("anyone there?")
		time.Sleep(10 * time.Second)
		bot := b.connect(ackAll)
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		events := bot.of(socketmode.EventTypeEventsAPI)
		if len(events) != 1 || events[0].Request.RetryAttempt != 2 {
			t.Fatalf("got %d events, want one with attempt 2", len(events))
		}
	})
}

// A click is delivered once, whatever becomes of it.
func TestClickIsNeverDeliveredAgain(t *testing.T) {
	bubble(t, Options{}, func(t *testing.T, b *bench) {
		clicks := 0
		b.connect(func(evt socketmode.Event) (bool, any) {
			if evt.Type == socketmode.EventTypeInteractive {
				clicks++
				return false, nil
			}
			return true, nil
		})
		receipt := b.clickCard("general")
		time.Sleep(time.Hour)
		synctest.Wait()
		if clicks != 1 || receipt.Acked || !receipt.Delivered {
			t.Errorf("%d clicks, receipt %+v", clicks, receipt)
		}
	})
}

// clickCard posts a card and lets bob approve it.
func (b *bench) clickCard(channel string) Receipt {
	b.t.Helper()
	ts := b.postCard(channel)
	receipt, err := b.srv.Click(b.t.Context(), ActionRequest{User: b.user("bob"), Channel: b.channel(channel), TS: ts, ActionID: "approve"})
	if err != nil {
		b.t.Fatal(err)
	}
	return receipt
}

func TestClickWithoutConnectionIsNotDelivered(t *testing.T) {
	bubble(t, Options{}, func(t *testing.T, b *bench) {
		if r := b.clickCard("general"); r.Delivered || r.Acked {
			t.Errorf("receipt %+v", r)
		}
	})
}

// The eleventh connection is told so instead of being greeted, and payloads go
// round the ten.
func TestTenConnectionsTakeTurns(t *testing.T) {
	bubble(t, Options{}, func(t *testing.T, b *bench) {
		var sockets []*websocket.Conn
		for n := 1; n <= maxSockets; n++ {
			ws := b.rawSocket("")
			if hello := readFrame(t, ws); hello.Type != "hello" || hello.Num != n {
				t.Fatalf("connection %d greeted with %+v", n, hello)
			}
			sockets = append(sockets, ws)
		}
		if f := readFrame(t, b.rawSocket("")); f.Type != "disconnect" || f.Reason != "too_many_websockets" {
			t.Fatalf("the eleventh got %+v", f)
		}
		for range maxSockets {
			b.say("one for each")
		}
		for _, ws := range sockets {
			e := readFrame(t, ws)
			if err := ws.WriteJSON(map[string]string{"envelope_id": e.EnvelopeID}); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// An ack counts on whichever connection it comes.
func TestAckOnAnotherConnection(t *testing.T) {
	bubble(t, Options{}, func(t *testing.T, b *bench) {
		one, two := b.rawSocket(""), b.rawSocket("")
		readFrame(t, one)
		readFrame(t, two)
		got := make(chan envelopeOf, 2)
		for _, ws := range []*websocket.Conn{one, two} {
			go func() {
				var e envelopeOf
				for ws.ReadJSON(&e) == nil {
					got <- e
				}
			}()
		}
		b.say("hello")
		e := <-got
		for _, ws := range []*websocket.Conn{one, two} { // twice, as some clients do
			if err := ws.WriteJSON(map[string]any{"envelope_id": e.EnvelopeID, "payload": map[string]any{}}); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(30 * time.Second) // the raw sockets answer pings while they read
		synctest.Wait()
		select {
		case again := <-got:
			t.Errorf("delivered again: %+v", again)
		default:
		}
	})
}

func TestTicketsWorkOnceAndNotForLong(t *testing.T) {
	bubble(t, Options{}, func(t *testing.T, b *bench) {
		dial := func(url string) int {
			ws, res, err := (&websocket.Dialer{NetDialContext: b.pipe.DialContext}).Dial(url, nil)
			if err == nil {
				ws.Close()
				return http.StatusSwitchingProtocols
			}
			return res.StatusCode
		}
		open := func() string {
			_, url, err := b.api.StartSocketModeContext(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			return url
		}
		url := open()
		if got := dial(url); got != http.StatusSwitchingProtocols {
			t.Fatalf("first use: %d", got)
		}
		if got := dial(url); got != http.StatusUnauthorized {
			t.Errorf("second use: %d", got)
		}
		url = open()
		time.Sleep(ticketLife + time.Second)
		if got := dial(url); got != http.StatusUnauthorized {
			t.Errorf("an old ticket: %d", got)
		}
	})
}

// Frames of 20,480 bytes pass, one more closes the connection with 1009.
func TestFrameLimit(t *testing.T) {
	bubble(t, Options{}, func(t *testing.T, b *bench) {
		ws := b.rawSocket("")
		readFrame(t, ws)
		frame := func(size int) []byte {
			head := `{"envelope_id":"x","payload":"`
			return []byte(head + strings.Repeat("y", size-len(head)-2) + `"}`)
		}
		if err := ws.WriteMessage(websocket.TextMessage, frame(maxFrame)); err != nil {
			t.Fatal(err)
		}
		b.say("still open?")
		readFrame(t, ws)
		if err := ws.WriteMessage(websocket.TextMessage, frame(maxFrame+1)); err != nil {
			t.Fatal(err)
		}
		_, _, err := ws.ReadMessage()
		if !websocket.IsCloseError(err, websocket.CloseMessageTooBig) {
			t.Errorf("after a frame that is too long: %v", err)
		}
	})
}

// Pings come at once and then regularly; slack-go gives a connection up that
// is silent for its first half minute.
func TestPings(t *testing.T) {
	bubble(t, Options{}, func(t *testing.T, b *bench) {
		bot := b.connect(ackAll)
		time.Sleep(5 * time.Minute)
		synctest.Wait()
		if n := len(bot.of(socketmode.EventTypeConnected)); n != 1 {
			t.Errorf("connected %d times", n)
		}
	})
}

// A connection that answers no pings is dropped, as it may be half open.
func TestSilentConnectionIsDropped(t *testing.T) {
	bubble(t, Options{}, func(t *testing.T, b *bench) {
		b.rawSocket("") // never read: it can't even take the pings
		time.Sleep(time.Minute)
		synctest.Wait()
		if hello := readFrame(t, b.rawSocket("")); hello.Num != 1 {
			t.Errorf("%d connections, want the new one alone", hello.Num)
		}
	})
}

// After a debug connection's short life Slack warns and then refreshes it, and
// the client is back without having lost anything.
func TestRefresh(t *testing.T) {
	bubble(t, Options{}, func(t *testing.T, b *bench) {
		ws := b.rawSocket("&debug_reconnects=true")
		start := time.Now()
		var got []string
		for {
			var e envelopeOf
			if err := ws.ReadJSON(&e); err != nil {
				break
			}
			got = append(got, strings.TrimSpace(e.Type+" "+e.Reason)+" "+time.Since(start).String())
		}
		want := []string{"hello 0s", "disconnect warning 5m50s", "disconnect refresh_requested 6m0s"}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("frames (-want +got):\n%s", diff)
		}
		if life := time.Since(start); life != 6*time.Minute+drain {
			t.Errorf("closed after %v", life)
		}
	})
}

func TestUnknownEnvelopesCanBeSent(t *testing.T) {
	bubble(t, Options{}, func(t *testing.T, b *bench) {
		ws := b.rawSocket("")
		readFrame(t, ws)
		go b.srv.SendEnvelope(EnvelopeRequest{Type: "something_new", Payload: map[string]any{"a": 1}})
		if e := readFrame(t, ws); e.Type != "something_new" || e.EnvelopeID == "" || string(e.Payload) != `{"a":1}` {
			t.Errorf("got %+v", e)
		}
	})
}

// A connection that was told to go gets payloads only when there is no other,
// and its acks still count.
func TestRetiringConnection(t *testing.T) {
	bubble(t, Options{}, func(t *testing.T, b *bench) {
		old := b.rawSocket("")
		readFrame(t, old)
		if err := b.srv.SetFault(Fault{Socket: "disconnect"}); err != nil {
			t.Fatal(err)
		}
		if f := readFrame(t, old); f.Type != "disconnect" || f.Reason != "refresh_requested" {
			t.Fatalf("got %+v", f)
		}
		b.say("to the old one, there is no other")
		first := readFrame(t, old)
		new := b.rawSocket("")
		readFrame(t, new)
		for range 3 {
			b.say("to the new one")
			if e := readFrame(t, new); e.Type != "events_api" || new.WriteJSON(map[string]string{"envelope_id": e.EnvelopeID}) != nil {
				t.Fatalf("got %+v", e)
			}
		}
		if err := old.WriteJSON(map[string]string{"envelope_id": first.EnvelopeID}); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		b.srv.mu.Lock()
		defer b.srv.mu.Unlock()
		if n := len(b.srv.links.pending); n != 0 {
			t.Errorf("%d envelopes are not acknowledged", n)
		}
	})
}
