package slackui

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/slack-go/slack"
	"github.com/slack-go/slack/slackevents"
	"github.com/slack-go/slack/socketmode"
)

const (
	// ackMost bounds the acknowledgements that wait to be written, which they do while there is no connection.
	ackMost = 1000
	// ackLimit is after how long an acknowledgement that couldn't be written is of no use to anybody.
	ackLimit = 10 * time.Second
	// lostGrace is how long a reconnect may take before readiness turns red.
	lostGrace = 5 * time.Second
	// troubleEvery is how often the log repeats that there is no connection.
	troubleEvery = time.Minute
	// payloadMost bounds what one envelope may hold: far above what Slack sends.
	payloadMost = 4 << 20
)

// A socket is the way in: one Socket Mode connection after the other, and one goroutine that reads their events. That
// goroutine never waits for anything: slack-go goes deaf, without a word, once fifty events wait for it.
type socket struct {
	client *Client
	sm     *socketmode.Client
	acks   chan acknowledgement
	log    *slog.Logger

	// What to do with what comes. All must return at once.
	onEvent   func(eventDelivery)
	onClick   func(click slack.InteractionCallback, r *receipt)
	onCommand func(command slack.SlashCommand, r *receipt)

	first chan struct{} // closed at the first hello

	mu      sync.Mutex
	live    bool      // a hello has come, and nothing says that the connection is gone
	lost    time.Time // since when it isn't
	reason  string    // of the last disconnect frame
	trouble error     // why a connection could not be opened, since the last hello
	told    time.Time // when the log was told of that
	anew    context.CancelCauseFunc
	seen    map[string]bool
	refused error // the token error that ended it
}

func newSocket(c *Client) *socket {
	s := &socket{
		client: c, acks: make(chan acknowledgement, ackMost), log: c.log, first: make(chan struct{}), lost: time.Now(),
		seen: map[string]bool{},
	}
	// slack-go keeps the reason of a disconnect to itself; only its debug log tells. Nothing but the words of the
	// readiness and the length of a pause depend on it.
	s.sm = socketmode.New(c.api, socketmode.OptionDialer(c.dialer), socketmode.OptionReadLimit(payloadMost),
		socketmode.OptionDebug(true), socketmode.OptionLog(frames(s.frame)))
	return s
}

// run connects and reads until ctx ends (nil) or Slack refuses the token.
func (s *socket) run(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var wg sync.WaitGroup
	defer wg.Wait()
	wg.Go(func() { cancel(socketRefusal(s.connect(ctx))) })
	wg.Go(func() { s.writeAcks(ctx) })
	for {
		select {
		case e := <-s.sm.Events:
			if err := s.handle(e); err != nil {
				cancel(err)
			}
		case <-ctx.Done():
			s.drop()
			return s.ending(context.Cause(ctx))
		}
	}
}

// errAnew is why slack-go is made to begin anew.
var errAnew = errors.New("slack-go would wait too long")

// connect runs slack-go's loop of connections, again and again where it would wait too long for the next.
func (s *socket) connect(ctx context.Context) error {
	for {
		loop, end := context.WithCancelCause(ctx)
		s.mu.Lock()
		s.anew = end
		s.mu.Unlock()
		err := s.sm.RunContext(loop)
		again := errors.Is(context.Cause(loop), errAnew)
		end(nil)
		if !again {
			return err
		}
	}
}

// ending tells an end that we wanted from one that Slack forced.
func (s *socket) ending(cause error) error {
	if cause == nil || errors.Is(cause, context.Canceled) || errors.Is(cause, context.DeadlineExceeded) {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refused = cause
	return cause
}

// handle reads one event of slack-go. An error ends the socket.
func (s *socket) handle(e socketmode.Event) error {
	switch e.Type {
	case socketmode.EventTypeHello:
		s.hello(e.Request)
	case socketmode.EventTypeConnecting:
		if reason, was := s.drop(); was {
			s.client.observer.Disconnected(reason)
		}
	case socketmode.EventTypeConnectionError:
		return s.failed(e)
	case socketmode.EventTypeIncomingError:
		if f, ok := e.Data.(*slack.IncomingEventError); ok {
			s.log.Info("the connection to Slack ended", "error", f.ErrorObj)
		}
	case socketmode.EventTypeEventsAPI:
		event, ok := e.Data.(slackevents.EventsAPIEvent)
		if r := s.receipt(e.Request); ok && r != nil {
			s.onEvent(eventDelivery{event: event, attempt: e.Request.RetryAttempt, receipt: r})
		}
	case socketmode.EventTypeInteractive:
		click, ok := e.Data.(slack.InteractionCallback)
		if r := s.receipt(e.Request); ok && r != nil {
			s.onClick(click, r)
		}
	case socketmode.EventTypeSlashCommand:
		command, ok := e.Data.(slack.SlashCommand)
		if r := s.receipt(e.Request); ok && r != nil {
			s.onCommand(command, r)
		}
	case socketmode.EventTypeErrorBadMessage:
		s.unknown(e)
	case socketmode.EventTypeErrorWriteFailed:
		if f, ok := e.Data.(*socketmode.ErrorWriteFailed); ok {
			s.log.Warn("an acknowledgement could not be written", "error", f.Cause)
		}
	default:
		s.other(e)
	}
	return nil
}

// other acknowledges what is well-formed but not for us, such as commands that we didn't ask for.
func (s *socket) other(e socketmode.Event) {
	if r := s.receipt(e.Request); r != nil {
		s.once("envelope "+string(e.Type), "an envelope of a kind that isn't used here", "type", e.Type)
		r.ack()
	}
}

// unknown acknowledges an envelope that slack-go can't read. It comes without its request, so its id is taken out of
// the raw message; without an acknowledgement Slack would send it again and again.
func (s *socket) unknown(e socketmode.Event) {
	bad, ok := e.Data.(*socketmode.ErrorBadMessage)
	if !ok {
		return
	}
	var raw struct {
		ID   string `json:"envelope_id"`
		Type string `json:"type"`
	}
	if err := json.Unmarshal(bad.Message, &raw); err != nil || raw.ID == "" {
		s.once("message", "a message that isn't an envelope", "error", bad.Cause)
		return
	}
	s.once("bad "+raw.Type, "an envelope that can't be read", "type", raw.Type, "error", bad.Cause)
	s.ack(raw.ID)
}

// hello notes that the connection stands.
func (s *socket) hello(r *socketmode.Request) {
	s.client.gate.hello()
	s.mu.Lock()
	away := time.Since(s.lost).Round(time.Millisecond)
	again := !s.live && s.greeted()
	s.live, s.trouble, s.told = true, nil, time.Time{}
	s.mu.Unlock()
	s.client.observer.Connected()
	switch {
	case again:
		s.log.Info("connected to Slack again", "after", away.String())
	case !s.greeted():
		s.log.Info("connected to Slack")
		close(s.first)
	}
	if r == nil {
		return
	}
	app := r.ConnectionInfo.AppID
	switch {
	case app == "" || app == s.client.appID():
	case s.client.appID() == "":
		s.client.helloApp.Store(&app)
	default:
		s.log.Error("SLACK_APP_TOKEN and SLACK_BOT_TOKEN belong to different apps: clicks will be refused",
			"socket", app, "bot", s.client.appID())
	}
	if r.NumConnections > 1 {
		s.log.Warn("the app has more than one connection: clicks and messages may go to another process",
			"connections", r.NumConnections)
	}
}

// drop notes that there is no connection, and tells whether there was one until now and why it ended.
func (s *socket) drop() (reason string, was bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.live {
		return "", false
	}
	s.live, s.lost = false, time.Now()
	if s.reason == "" {
		return "lost", true
	}
	return s.reason, true
}

// failed looks at a connection that couldn't be opened. slack-go tries for ever, also where only a person can help.
func (s *socket) failed(e socketmode.Event) error {
	f, ok := e.Data.(*slack.ConnectionErrorEvent)
	if !ok {
		return nil
	}
	if t, ok := errors.AsType[*TokenError](socketRefusal(f.ErrorObj)); ok {
		return t
	}
	_, limited := errors.AsType[*slack.RateLimitedError](f.ErrorObj)
	tooLong := f.Backoff > outagePause && !limited // what Slack asks for is obeyed
	s.client.gate.unopened(tooLong)
	pause := f.Backoff
	if tooLong {
		pause = outagePause
	}

	s.mu.Lock()
	known := s.trouble != nil && s.trouble.Error() == f.ErrorObj.Error() && time.Since(s.told) < troubleEvery
	s.trouble = f.ErrorObj
	if !known {
		s.told = time.Now()
	}
	if tooLong && s.anew != nil {
		s.anew(errAnew)
	}
	s.mu.Unlock()
	if !known {
		s.log.Warn("no connection to Slack", "error", unreachable(f.ErrorObj), "retry_in", pause.String())
	}
	return nil
}

// unreachable says why a connection could not be opened.
func unreachable(err error) error {
	if code := errorCode(err); code != "" {
		return fmt.Errorf("Slack refuses the connection: %s", code)
	}
	if e, ok := errors.AsType[*url.Error](err); ok {
		err = e.Err // without the address, which is always the same one
	}
	return fmt.Errorf("Slack can't be reached: %w", err)
}

// ready is nil while events can come in, and else says what is wrong: what Slack said, what the last attempt met with, or
// what is likely.
func (s *socket) ready() error {
	failing := s.client.gate.failing()
	s.mu.Lock()
	defer s.mu.Unlock()
	away := !s.live && (!s.greeted() || time.Since(s.lost) > lostGrace)
	switch {
	case s.refused != nil:
		return s.refused
	case s.reason == "link_disabled":
		return errors.New(`Slack says link_disabled: Socket Mode was switched off. Switch it on, on the app's page "Socket Mode"`)
	case s.reason == "too_many_websockets":
		return errors.New("Slack says too_many_websockets: ten connections of this app are open already, or were not closed " +
			"properly. Stop other processes that use SLACK_APP_TOKEN, or wait some minutes")
	case away && s.trouble != nil:
		return unreachable(s.trouble)
	case failing >= 3:
		return fmt.Errorf("connections to Slack end right after they open (%d in a row). Likely another process uses the same "+
			"SLACK_APP_TOKEN (too_many_websockets), Socket Mode is switched off (link_disabled), or a proxy doesn't pass WebSockets", failing)
	case away:
		return errors.New("no connection to Slack")
	}
	return nil
}

func (s *socket) greeted() bool {
	select {
	case <-s.first:
		return true
	default:
		return false
	}
}

// once logs something that may come a thousand times.
func (s *socket) once(key, msg string, args ...any) {
	s.mu.Lock()
	seen := s.seen[key] || len(s.seen) >= 1000
	s.seen[key] = true
	s.mu.Unlock()
	if !seen {
		s.log.Warn(msg+"; it is acknowledged and ignored, and logged this once", args...)
	}
}

// A receipt acknowledges one envelope, once, whoever comes first.
type receipt struct {
	once sync.Once
	send func(payload any)
}

func (s *socket) receipt(r *socketmode.Request) *receipt {
	if r == nil || r.EnvelopeID == "" {
		return nil
	}
	return &receipt{send: func(payload any) { s.acknowledge(acknowledgement{r.EnvelopeID, payload}) }}
}

// ack acknowledges without a word.
func (r *receipt) ack() { r.answer(nil) }

// answer acknowledges with a payload: what is wrong with a form, or the answer to a command. It is for small ones: Slack
// closes the socket at a frame above 20 KiB. If it was acknowledged before, the payload is lost, and answer says so.
func (r *receipt) answer(payload any) (first bool) {
	r.once.Do(func() {
		first = true
		r.send(payload)
	})
	return first
}

// An acknowledgement is one envelope's.
type acknowledgement struct {
	envelope string
	payload  any // nil: none
}

func (s *socket) ack(id string) { s.acknowledge(acknowledgement{envelope: id}) }

// acknowledge hands an acknowledgement to the writer and never blocks.
func (s *socket) acknowledge(a acknowledgement) {
	select {
	case s.acks <- a:
	default:
		s.log.Warn("too many acknowledgements wait for a connection")
	}
}

// writeAcks writes acknowledgements, as long as there is a connection or one may come soon.
func (s *socket) writeAcks(ctx context.Context) {
	for {
		select {
		case a := <-s.acks:
			ctx, cancel := context.WithTimeout(ctx, ackLimit)
			if err := s.sm.AckCtx(ctx, a.envelope, a.payload); err != nil {
				s.log.Warn("an acknowledgement could not be sent", "error", err)
			}
			cancel()
		case <-ctx.Done():
			return
		}
	}
}

// frame sees every frame as it came, and keeps the reason of a disconnect until the next hello. The events of slack-go
// come a moment later, so they can't be used to forget it.
func (s *socket) frame(raw string) {
	if !strings.Contains(raw, `"disconnect"`) && !strings.Contains(raw, `"hello"`) {
		return
	}
	var f struct{ Type, Reason string }
	if err := json.Unmarshal([]byte(raw), &f); err != nil || (f.Type != "disconnect" && f.Type != "hello") {
		return
	}
	s.mu.Lock()
	s.reason = f.Reason // a hello has none
	s.mu.Unlock()
	if f.Type == "hello" {
		return
	}
	if f.Reason == "link_disabled" {
		s.client.gate.switchedOff()
	}
	s.log.Info("Slack ends the connection", "reason", f.Reason)
}

// frames takes slack-go's debug log apart.
type frames func(raw string)

const frameLine = "Received WebSocket message: "

// Output is what slack-go calls for every line of its log.
func (f frames) Output(_ int, line string) error {
	if _, raw, ok := strings.Cut(line, frameLine); ok {
		f(raw)
	}
	return nil
}
