package api

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/uuid"

	"approvalbot/internal/ledger"
	"approvalbot/internal/policy"
)

// codeRequired is the code of a run that would have had to ask and can't.
const codeRequired = "APPROVAL_REQUIRED"

// sessionPrefix begins the ids of the sessions that were started over HTTP.
const sessionPrefix = "http/"

// An order is what somebody wants done, as they said it.
type order struct {
	task, goal, context string
	want                policy.Settings
	session             string
	refuse              bool // rather than wait for a busy session
	place               ledger.Place
	detach              bool
	key                 string // Idempotency-Key
	digest              string // SHA-256, hex, of the request: what the key stands for
}

var threadTS = regexp.MustCompile(`^\d{1,12}\.\d{1,6}$`)

// readOrder reads the body of a request that starts a run. A stream may say more than a request that waits.
func (s *Server) readOrder(r *http.Request, stream bool) (*order, error) {
	raw, err := readBody(r, maxBody)
	if err != nil {
		return nil, err
	}
	f := parseForm(raw)
	o := &order{task: f.required("task"), goal: f.text("goal"), context: f.text("context"), session: f.text("sessionId")}
	o.refuse = f.choice("onBusy", "wait", "refuse") == "refuse"
	if m := f.text("model"); m != "" && m != s.Model {
		f.wrong("model", "there is only %s", s.Model)
	}
	o.want = readSettings(f)
	if o.session != "" && !strings.HasPrefix(o.session, sessionPrefix) {
		f.wrong("sessionId", "it has to be one that was started over HTTP (%s…)", sessionPrefix)
	}
	if stream {
		o.detach = f.choice("onDisconnect", "abort", "detach") == "detach"
		f.object("slack", func(f *form) { o.place = s.readPlace(f) })
	}
	o.key = r.Header.Get("Idempotency-Key")
	if !goodKey(o.key) {
		f.inForm = append(f.inForm, "the header Idempotency-Key has to be at most 200 printable ASCII characters")
	}
	if err := f.done(); err != nil {
		return nil, err
	}
	o.digest, err = digestOf(raw, stream)
	return o, err
}

func readSettings(f *form) policy.Settings {
	var want policy.Settings
	var err error
	if v := f.text("approvalPolicy"); v != "" {
		if want.ApprovalPolicy, err = policy.ParseApprovalPolicy(v); err != nil {
			f.wrong("approvalPolicy", "%v", err)
		}
	}
	if v := f.text("sandboxMode"); v != "" {
		if want.SandboxMode, err = policy.ParseSandboxMode(v); err != nil {
			f.wrong("sandboxMode", "%v", err)
		}
	}
	return want
}

func (s *Server) readPlace(f *form) ledger.Place {
	p := ledger.Place{Team: s.Team, Channel: f.required("channel"), Thread: f.text("thread_ts")}
	if p.Thread != "" && !threadTS.MatchString(p.Thread) {
		f.wrong("thread_ts", "it has to be the ts of a message, such as 1700000000.000100")
	}
	return p
}

func goodKey(key string) bool {
	return len(key) <= 200 && !strings.ContainsFunc(key, func(r rune) bool { return r < 0x21 || r > 0x7e })
}

// digestOf is the same for bodies that mean the same.
func digestOf(raw []byte, stream bool) (string, error) {
	v := jsontext.Value(slices.Clone(raw))
	if err := v.Canonicalize(); err != nil {
		return "", fmt.Errorf("a request that was read before: %w", err)
	}
	sum := sha256.Sum256(append([]byte(strconv.FormatBool(stream)+"\n"), v...))
	return hex.EncodeToString(sum[:]), nil
}

// text is the order as the model gets it.
func (o *order) text() string {
	out := o.task
	if strings.TrimSpace(o.goal) != "" {
		out += "\n\nGoal: " + o.goal
	}
	if strings.TrimSpace(o.context) != "" {
		out += "\n\nContext: " + o.context
	}
	return out
}

// start records an order, or finds the one that the same Idempotency-Key stands for. Whoever called is its caller then.
func (s *Server) start(ctx context.Context, t *Token, o *order, stream bool) (*caller, error) {
	if _, err := s.Settings.Tighten(o.want); err != nil {
		return nil, err
	}
	if c := o.place.Channel; c != "" && !slices.Contains(s.Channels, c) {
		return nil, forbidden("CHANNEL_NOT_LISTED", fmt.Sprintf("the channel %s is not listed in APPROVALBOT_CHANNELS", clean(c)))
	}
	e := s.message(ctx, t, o, stream)
	if o.key != "" {
		earlier, found, err := s.Journal.Claimed(ctx, ledger.ClaimOrigin(e.Body.(*ledger.MessageReceived).Origin))
		if err != nil {
			return nil, err
		}
		if found {
			return s.sameOrder(earlier, o)
		}
	}
	if err := s.unpaused(); err != nil {
		return nil, err
	}
	if t.User != "" {
		if err := s.Approvals.MayStart(ctx, e.Actor.Person(), o.place.Channel); err != nil {
			return nil, err
		}
	}
	if err := s.mayContinue(ctx, t, o.session); err != nil {
		return nil, err
	}
	return s.receive(ctx, e, o)
}

// receive hands an order to the agent.
func (s *Server) receive(ctx context.Context, e ledger.Event, o *order) (*caller, error) {
	// Its caller counts before the run can begin: an ask may come before they follow it.
	c := s.expect(e)
	if c.order().Surface == ledger.SurfaceHTTP {
		c.early, _ = s.hub.follow(c.order().RunID)
	}
	receive := s.Agent.Receive
	if o.refuse {
		receive = s.Agent.ReceiveIfIdle
	}
	written, err := receive(ctx, e)
	if err == nil {
		c.message = written
		return c, nil
	}
	c.left()
	c.unfollow()
	if lost, ok := errors.AsType[*ledger.ConflictError](err); ok {
		return s.sameOrder(lost.Winner, o)
	}
	if errors.Is(err, ErrBusy) {
		return nil, &problem{status: http.StatusConflict, code: "SESSION_BUSY", more: map[string]any{"sessionId": o.session},
			message: "the session works on something else, and the request doesn't want to wait"}
	}
	return nil, err
}

// sameOrder follows an earlier message, if it is what the key stands for.
func (s *Server) sameOrder(earlier ledger.Event, o *order) (*caller, error) {
	m, ok := earlier.Body.(*ledger.MessageReceived)
	switch {
	case !ok:
		return nil, &problem{status: http.StatusGone, code: "ERASED", message: "what this Idempotency-Key stood for was erased"}
	case m.Request != o.digest:
		return nil, &problem{status: http.StatusUnprocessableEntity, code: "IDEMPOTENCY_KEY_REUSED",
			message: "this Idempotency-Key was used for another request"}
	}
	c := s.expect(earlier)
	c.repeated = true
	return c, nil
}

// message is the event of an order.
func (s *Server) message(ctx context.Context, t *Token, o *order, stream bool) ledger.Event {
	m := &ledger.MessageReceived{
		Origin: ledger.Origin{Kind: "http", Token: t.Name, Key: o.key}, Place: o.place, Text: clean(o.text()),
		Disposition: ledger.Starts, Mode: ledger.ModeFailClosed, RunID: "run_" + uuid.NewString(),
		Policy: string(o.want.ApprovalPolicy), Sandbox: string(o.want.SandboxMode), Detach: o.detach, Request: o.digest,
	}
	if stream {
		m.Mode, m.Surface = ledger.ModeInteractive, ledger.SurfaceHTTP
	}
	session := o.session
	if session == "" {
		session = sessionPrefix + uuid.NewString()
	}
	return ledger.Event{Session: session, Actor: s.actor(ctx, t), Body: m}
}

// actor is who acts with the token.
func (s *Server) actor(ctx context.Context, t *Token) ledger.Actor {
	name := ""
	if t.User != "" && s.UserName != nil {
		name = s.UserName(ctx, t.User)
	}
	return t.actor(s.Team, name)
}

// mayContinue tells whether the token may go on with a session; "" is a new one.
func (s *Server) mayContinue(ctx context.Context, t *Token, session string) error {
	if session == "" {
		return nil
	}
	info, found, err := s.sessions.session(ctx, session)
	switch {
	case err != nil:
		return err
	case !found:
		return &problem{status: http.StatusNotFound, code: "NOT_FOUND", message: "there is no session " + clean(session)}
	case !info.of(t):
		return forbidden("NOT_YOURS", "this session belongs to another token")
	}
	return nil
}

// A caller is a connection that waits for what its request started. It keeps the run wanted: when the last one has gone,
// the run is ended.
type caller struct {
	*Server
	message  ledger.Event
	repeated bool // the request was sent before

	// early follows the run of a stream from before its first event: live text has no second chance.
	early *follower
}

// unfollow lets go of the early follower.
func (c *caller) unfollow() {
	if c.early != nil {
		c.hub.leave(c.early)
	}
}

func (c *caller) order() *ledger.MessageReceived { return c.message.Body.(*ledger.MessageReceived) }

func (s *Server) expect(message ledger.Event) *caller {
	c := &caller{Server: s, message: message}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.callers[c.order().RunID]++
	return c
}

// returnWithin is how long somebody who was dropped because they read too slowly is expected back.
const returnWithin = time.Minute

// awaited tells whether somebody who started the run is there, or can be expected back: a reader who was dropped for being
// slow can resume, and must not find its asks ended meanwhile.
func (s *Server) awaited(run string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for r, since := range s.dropped {
		if time.Since(since) > returnWithin {
			delete(s.dropped, r)
		}
	}
	_, dropped := s.dropped[run]
	return dropped || s.callers[run] > 0
}

// left tells whether this was the last one.
func (c *caller) left() bool {
	run := c.order().RunID
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.callers[run]--; c.callers[run] > 0 {
		return false
	}
	delete(c.callers, run)
	return true
}

// leave ends the run if nobody waits for it any more. why is how following it ended.
func (c *caller) leave(ctx context.Context, why error) {
	m := c.order()
	if errors.Is(why, errSlow) {
		c.mu.Lock()
		c.dropped[m.RunID] = time.Now()
		c.mu.Unlock()
	}
	if !c.left() || !errors.Is(why, errGone) || m.Detach || m.Place.Channel != "" {
		return
	}
	if err := c.Agent.Withdraw(context.WithoutCancel(ctx), c.message, "its caller disconnected"); err != nil {
		c.Logger.Error("the stop of a run whose caller disconnected could not be recorded", "run", m.RunID, "error", err)
	}
}

// tail follows what the caller started.
func (c *caller) tail(to sink) *tail {
	return &tail{Server: c.Server, run: c.order().RunID, sink: to, fresh: true, cast: cast{upTo: c.message.Seq}}
}

// postAgent does what is asked and answers when it is done.
func (s *Server) postAgent(w http.ResponseWriter, r *http.Request, t *Token) error {
	o, err := s.readOrder(r, false)
	if err != nil {
		return err
	}
	c, err := s.start(r.Context(), t, o, false)
	if err != nil {
		return err
	}
	if c.repeated {
		w.Header().Set("Idempotent-Replayed", "true")
	}
	rc := http.NewResponseController(w)
	end := &lastWord{}
	err = rc.SetReadDeadline(time.Time{}) // it would end the request while the run goes on
	if err == nil {
		err = c.tail(end).follow(r.Context())
	}
	for errors.Is(err, errSlow) { // so much happened at once that it was dropped; the journal has it
		err = c.tail(end).follow(r.Context())
	}
	c.leave(r.Context(), err)
	if err := rc.SetWriteDeadline(time.Now().Add(writeLimit)); err != nil {
		return err
	}
	return end.answer(w, err)
}

// lastWord is a sink that keeps how the run ended.
type lastWord struct{ m message }

func (l *lastWord) put(m message, _ []byte) error {
	if m.ends() {
		l.m = m
	}
	return nil
}
func (l *lastWord) flush() error { return nil }
func (l *lastWord) beat() error  { return nil }

// statuses are the answers of runs that didn't succeed, by code; others are 422. That a conversation is too long or that
// a model declines is the request's matter, all else that is wrong with a model is the model's.
var statuses = map[string]int{
	codeRequired:            http.StatusConflict,
	"STOPPED":               http.StatusConflict,
	"MODEL_ERROR":           http.StatusBadGateway,
	"MODEL_KEY":             http.StatusBadGateway,
	"MODEL_UNKNOWN":         http.StatusBadGateway,
	"MODEL_QUOTA":           http.StatusBadGateway,
	"MODEL_RATE_LIMITED":    http.StatusBadGateway,
	"MODEL_OVERLOADED":      http.StatusBadGateway,
	"MODEL_UNAVAILABLE":     http.StatusBadGateway,
	"MODEL_BROKEN_ANSWER":   http.StatusBadGateway,
	"MODEL_INVALID_REQUEST": http.StatusBadGateway,
	"SHUTDOWN":              http.StatusServiceUnavailable,
	"RESTARTED":             http.StatusServiceUnavailable,
}

func (l *lastWord) answer(w http.ResponseWriter, err error) error {
	switch {
	case errors.Is(err, errEnded):
		return &problem{status: http.StatusServiceUnavailable, code: "SHUTDOWN", message: "approvalbot is stopping; ask again with the same Idempotency-Key"}
	case err != nil:
		return err
	case l.m.Result != nil:
		answer(w, http.StatusOK, map[string]any{"ok": true, "result": l.m.Result})
		return nil
	}
	f := l.m.Error
	p := &problem{status: http.StatusUnprocessableEntity, code: f.Code, message: f.Message}
	if status, ok := statuses[f.Code]; ok {
		p.status = status
	}
	p.more = map[string]any{"runId": f.RunID, "sessionId": f.SessionID, "status": f.Status}
	for name, v := range map[string]string{"toolCallId": f.ToolCallID, "toolName": f.ToolName, "reason": f.Reason, "answer": f.Answer} {
		if v != "" {
			p.more[name] = v
		}
	}
	return p
}

// postStream does what is asked and tells how it goes.
func (s *Server) postStream(w http.ResponseWriter, r *http.Request, t *Token) error {
	o, err := s.readOrder(r, true)
	if err != nil {
		return err
	}
	after, fresh, err := resumeAt(r)
	if err != nil {
		return err
	}
	c, err := s.start(r.Context(), t, o, true)
	if err != nil {
		return err
	}
	defer c.unfollow()
	if c.repeated {
		w.Header().Set("Idempotent-Replayed", "true")
	}
	out, err := openStream(w)
	if err == nil {
		err = out.put(message{}, frame(0, accepted(c.message)))
	}
	if err == nil {
		tail := c.tail(out)
		tail.after, tail.fresh, tail.early = after, fresh, c.early
		err = tail.follow(r.Context())
	}
	c.leave(r.Context(), err)
	return s.endStream(err)
}

// accepted tells a caller at once which run and session are theirs; the run may have to wait for its turn.
func accepted(e ledger.Event) message {
	m := e.Body.(*ledger.MessageReceived)
	return message{Type: typeDebug, Event: &debugEvent{Kind: "accepted", Time: e.Time.UTC(), RunID: m.RunID, SessionID: e.Session}}
}

// endStream ends a stream. One that isn't at its end is cut, so that nobody takes it for complete.
func (s *Server) endStream(err error) error {
	if err == nil {
		return nil
	}
	if !errors.Is(err, errGone) && !errors.Is(err, errSlow) && !errors.Is(err, errEnded) {
		s.Logger.Error("an event stream was cut", "error", err)
	}
	panic(http.ErrAbortHandler)
}

// resumeAt reads where a client wants to go on; fresh: it has seen nothing.
func resumeAt(r *http.Request) (after int64, fresh bool, err error) {
	v, name := r.Header.Get("Last-Event-ID"), "Last-Event-ID"
	if v == "" {
		v, name = r.URL.Query().Get("after"), "after"
	}
	if v == "" {
		return 0, true, nil
	}
	after, err = strconv.ParseInt(v, 10, 64)
	if err != nil || after < 0 {
		return 0, false, wrongID(name, "it has to be the id of an event")
	}
	return after, false, nil
}

func wrongID(field, why string) error {
	return &problem{status: http.StatusBadRequest, code: "INVALID_REQUEST", message: "the request is not valid",
		validation: &validation{[]string{}, map[string][]string{field: {why}}}}
}

// getEvents tells how a run went and goes.
func (s *Server) getEvents(w http.ResponseWriter, r *http.Request, t *Token) error {
	after, fresh, err := resumeAt(r)
	if err != nil {
		return err
	}
	run := r.PathValue("runId")
	if err := s.maySee(r.Context(), t, run); err != nil {
		return err
	}
	if over, err := s.nothingMore(r.Context(), run, after); err != nil || over {
		if over {
			w.WriteHeader(http.StatusNoContent) // a client that comes back by itself stops with this
		}
		return err
	}
	out, err := openStream(w)
	if err == nil {
		err = (&tail{Server: s, run: run, sink: out, after: after, fresh: fresh}).follow(r.Context())
	}
	return s.endStream(err)
}

// nothingMore tells whether a client that has seen everything up to a Seq has seen the run's end. An id that no event has
// yet is refused: whoever waits behind it would miss what comes.
func (s *Server) nothingMore(ctx context.Context, run string, after int64) (bool, error) {
	head, err := s.Journal.Head(ctx)
	if err != nil {
		return false, err
	}
	if after > head.Seq {
		return false, wrongID("after", "there is no event with this id yet: it has to be the last one that was seen")
	}
	end, ended, err := s.Journal.Claimed(ctx, ledger.ClaimRunEnd(run))
	return ended && after >= end.Seq, err
}

// maySee tells whether the token may know of a run. What isn't its own might as well not exist.
func (s *Server) maySee(ctx context.Context, t *Token, run string) error {
	session, found, err := s.sessions.of(ctx, run)
	if err != nil {
		return err
	}
	if found {
		info, ok, err := s.sessions.session(ctx, session)
		if err != nil {
			return err
		}
		found = ok && info.of(t)
	}
	if !found {
		return noRun(run)
	}
	return nil
}

func noRun(run string) error {
	return &problem{status: http.StatusNotFound, code: "NOT_FOUND", message: "there is no run " + clean(run)}
}

// postStop ends a run.
func (s *Server) postStop(w http.ResponseWriter, r *http.Request, t *Token) error {
	raw, err := readBody(r, maxDecision)
	if err != nil {
		return err
	}
	if len(raw) > 0 {
		if err := parseForm(raw).done(); err != nil {
			return err
		}
	}
	run := r.PathValue("runId")
	if !t.may(ScopeDecide) { // who may decide a run's asks may stop it; others their own
		if err := s.maySee(r.Context(), t, run); err != nil {
			return err
		}
	}
	by := s.actor(r.Context(), t)
	err = s.Agent.Stop(r.Context(), run, by)
	if errors.Is(err, ErrNotRunning) {
		err = s.stopWaiting(r.Context(), run, by)
	}
	if err != nil {
		return err
	}
	answer(w, http.StatusOK, map[string]any{"ok": true, "runId": run})
	return nil
}

// stopWaiting withdraws the message of a run that waits for its turn. It fails if there is no such run, or if it is over.
func (s *Server) stopWaiting(ctx context.Context, run string, by ledger.Actor) error {
	session, found, err := s.sessions.of(ctx, run)
	if err != nil {
		return err
	}
	if !found {
		return noRun(run)
	}
	over := &problem{status: http.StatusConflict, code: "NOT_RUNNING", message: "this run is not in progress"}
	if _, started, err := s.Journal.Claimed(ctx, ledger.ClaimRun(run)); err != nil || started {
		return errors.Join(err, over)
	}
	for e, err := range s.Journal.Read(ctx, 0, ledger.Filter{Session: session, Kinds: []string{"message_received"}}) {
		if err != nil {
			return err
		}
		if m, ok := e.Body.(*ledger.MessageReceived); ok && m.RunID == run {
			e.Actor = by // it is their stop, not the sender's
			return s.Agent.Withdraw(ctx, e, "stopped by "+by.DisplayName()+" before its turn")
		}
	}
	return over
}
