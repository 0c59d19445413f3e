package api

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/uuid"

	"approvalbot/internal/ledger"
)

// A program may ask for permission and act itself: POST /api/approvals opens the ask, GET /api/approvals/{id}?wait=30s
// waits for the answer, POST /api/approvals/{id}/outcome says how it went. The id is that of the ask's run: it is a run
// without a model, and everything that reads runs reads it, too.

const (
	askSessions  = "ask/" // begins the ids of their sessions: each has its own, and none goes on
	maxAskWords  = 4000   // characters of a program's reason, and of a working directory
	maxOutcome   = 256 << 10
	maxWait      = 5 * time.Minute
	openingLimit = 5 * time.Second // until a new ask stands somewhere; it is answered as it is then

	minAskTimeout = time.Second
	maxAskTimeout = 7 * 24 * time.Hour
)

// What [Agent.Report] says besides a *ledger.ConflictError with what was reported before.
var ErrNotStarted = errors.New("it was not approved")

var askTool = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`)

// A wish is what a program wants to do, as it said it.
type wish struct {
	ledger.ProgramAsk
	place  ledger.Place
	key    string
	digest string
}

// postAsk opens an ask, or finds the one that the same key stands for.
func (s *Server) postAsk(w http.ResponseWriter, r *http.Request, t *Token) error {
	o, err := s.readWish(r, t)
	if err != nil {
		return err
	}
	e, repeated, err := s.open(r.Context(), t, o)
	if err != nil {
		return err
	}
	if repeated {
		w.Header().Set("Idempotent-Replayed", "true")
	}
	ctx, cancel := context.WithTimeout(r.Context(), openingLimit)
	defer cancel()
	run, err := s.await(ctx, e.Body.(*ledger.MessageReceived).RunID, func(a *asked) bool { return a.Status != askPending || a.Request != nil })
	if err != nil {
		return err
	}
	answer(w, http.StatusOK, map[string]any{"ok": true, "approval": s.views.asked(e, run)})
	return nil
}

func (s *Server) readWish(r *http.Request, t *Token) (*wish, error) {
	raw, err := readBody(r, maxBody)
	if err != nil {
		return nil, err
	}
	f := parseForm(raw)
	o := &wish{ProgramAsk: ledger.ProgramAsk{Program: t.Name, Tool: f.required("tool")}, key: r.Header.Get("Idempotency-Key")}
	if o.Tool != "" && !askTool.MatchString(o.Tool) {
		f.wrong("tool", "it has to be 1 to 64 letters, digits, '_' or '-'")
	}
	o.Arguments = f.arguments("arguments")
	o.Reason, o.Cwd = f.words("reason"), f.words("cwd")
	o.Timeout = f.duration("timeout", minAskTimeout, maxAskTimeout)
	f.object("slack", func(f *form) { o.place = s.readPlace(f) })
	if key := f.text("idempotencyKey"); key != "" {
		if o.key != "" && o.key != key {
			f.wrong("idempotencyKey", "it is not that of the header Idempotency-Key")
		}
		o.key = key
	}
	if !goodKey(o.key) {
		f.wrong("idempotencyKey", "it has to be at most 200 printable ASCII characters")
	}
	if err := f.done(); err != nil {
		return nil, err
	}
	o.digest, err = o.sum()
	return o, err
}

// arguments is a member that is an object, in canonical form: compact, members sorted, numbers as they were written.
func (f *form) arguments(name string) string {
	v, ok := f.take(name)
	switch {
	case !ok:
		f.wrong(name, "it is missing")
		return ""
	case v.Kind() != '{':
		f.wrong(name, "it has to be an object")
		return ""
	}
	canonical := slices.Clone(v)
	if err := canonical.Format(jsontext.ReorderRawObjects(true)); err != nil {
		f.wrong(name, "it can't be read: %s", notJSON(err))
		return ""
	}
	return string(canonical)
}

// words is a text of bearable length.
func (f *form) words(name string) string {
	s := f.text(name)
	if utf8.RuneCountInString(s) > maxAskWords {
		f.wrong(name, "it has to have at most %d characters", maxAskWords)
	}
	return s
}

// duration is a member such as "15m"; 0 if it isn't there.
func (f *form) duration(name string, least, most time.Duration) time.Duration {
	s := f.text(name)
	if _, there := f.members[name]; !there || len(f.inField[name]) > 0 {
		return 0
	}
	d, err := time.ParseDuration(s)
	if err != nil || d < least || d > most {
		f.wrong(name, "it has to be a duration from %s to %s, such as 90s or 15m", least, most)
	}
	return d
}

// sum is the same for wishes that are the same, to the byte of their arguments.
func (o *wish) sum() (string, error) {
	raw, err := json.Marshal(struct {
		Ask   ledger.ProgramAsk
		Place ledger.Place
	}{o.ProgramAsk, o.place})
	sum := sha256.Sum256(append([]byte("ask\n"), raw...))
	return hex.EncodeToString(sum[:]), err
}

// open records a wish, or finds the message of the one that has its key.
func (s *Server) open(ctx context.Context, t *Token, o *wish) (e ledger.Event, repeated bool, err error) {
	if c := o.place.Channel; c != "" && !slices.Contains(s.Channels, c) {
		return e, false, forbidden("CHANNEL_NOT_LISTED", fmt.Sprintf("the channel %s is not listed in APPROVALBOT_CHANNELS", clean(c)))
	}
	e = s.wished(ctx, t, o)
	if o.key != "" {
		earlier, found, err := s.Journal.Claimed(ctx, ledger.ClaimOrigin(e.Body.(*ledger.MessageReceived).Origin))
		if found || err != nil {
			return earlier, true, errors.Join(err, sameWish(earlier, o))
		}
	}
	if err := s.unpaused(); err != nil {
		return e, false, err
	}
	if t.User != "" {
		if err := s.Approvals.MayStart(ctx, e.Actor.Person(), o.place.Channel); err != nil {
			return e, false, err
		}
	}
	if err := s.mayAskMore(ctx, t); err != nil {
		return e, false, err
	}
	written, err := s.Agent.Receive(ctx, e)
	if lost, ok := errors.AsType[*ledger.ConflictError](err); ok {
		return lost.Winner, true, sameWish(lost.Winner, o)
	}
	return written, false, err
}

// maxOpenAsks is how many asks of one program may wait at a time. A script that has run wild must not bury what people
// have to decide.
const maxOpenAsks = 20

func (s *Server) mayAskMore(ctx context.Context, t *Token) error {
	open := 0
	for _, snap := range s.Approvals.Pending("") {
		if !strings.HasPrefix(snap.Session, askSessions) {
			continue
		}
		info, found, err := s.sessions.session(ctx, snap.Session)
		if err != nil {
			return err
		}
		if found && info.tokens[t.Name] {
			open++
		}
	}
	if open >= maxOpenAsks {
		return &problem{status: http.StatusTooManyRequests, code: "TOO_MANY_ASKS",
			message: fmt.Sprintf("%d asks of %s wait for people already", open, t.Name)}
	}
	return nil
}

// sameWish tells whether an earlier message is what the key stands for now.
func sameWish(earlier ledger.Event, o *wish) error {
	if earlier.Body == nil {
		return nil // it could not be looked up, which is said
	}
	m, ok := earlier.Body.(*ledger.MessageReceived)
	switch {
	case !ok:
		return &problem{status: http.StatusGone, code: "ERASED", message: "what this Idempotency-Key stood for was erased"}
	case m.Request != o.digest:
		return &problem{status: http.StatusUnprocessableEntity, code: "IDEMPOTENCY_KEY_REUSED",
			message: "this Idempotency-Key was used for another request"}
	}
	return nil
}

// wished is the message of a wish. It is detached: whoever asks comes back for the answer.
func (s *Server) wished(ctx context.Context, t *Token, o *wish) ledger.Event {
	id := uuid.NewString()
	ask := o.ProgramAsk
	m := &ledger.MessageReceived{
		Origin: ledger.Origin{Kind: "http", Token: t.Name, Key: o.key}, Place: o.place,
		Text:        fmt.Sprintf("%s wants to run %s %s", t.Name, ask.Tool, ask.Arguments),
		Disposition: ledger.Starts, Mode: ledger.ModeInteractive, RunID: "run_" + id, Detach: true, Request: o.digest, Ask: &ask,
	}
	if o.place.Channel == "" {
		m.Surface = ledger.SurfaceHTTP
	}
	return ledger.Event{Session: askSessions + id, Actor: s.actor(ctx, t), Body: m}
}

// getAsk says how an ask stands; with wait, when it has been answered or that time is over.
func (s *Server) getAsk(w http.ResponseWriter, r *http.Request, t *Token) error {
	wait := time.Duration(0)
	if v := r.URL.Query().Get("wait"); v != "" {
		var err error
		if wait, err = time.ParseDuration(v); err != nil || wait < 0 || wait > maxWait {
			return &problem{status: http.StatusBadRequest, code: "INVALID_REQUEST", message: "the request is not valid", validation: &validation{
				[]string{}, map[string][]string{"wait": {"it has to be a duration up to " + maxWait.String() + ", such as 30s"}}}}
		}
	}
	e, err := s.askOf(r.Context(), t, r.PathValue("id"))
	if err != nil {
		return err
	}
	rc := http.NewResponseController(w)
	if err := errors.Join(rc.SetReadDeadline(time.Time{}), rc.SetWriteDeadline(time.Now().Add(wait+writeLimit))); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(r.Context(), wait)
	defer cancel()
	run, err := s.await(ctx, r.PathValue("id"), func(a *asked) bool { return a.Status != askPending })
	if err != nil {
		return err
	}
	answer(w, http.StatusOK, map[string]any{"ok": true, "approval": s.views.asked(e, run)})
	return nil
}

// askOf finds the message of an ask. What isn't the token's own might as well not exist.
func (s *Server) askOf(ctx context.Context, t *Token, id string) (ledger.Event, error) {
	none := &problem{status: http.StatusNotFound, code: "NOT_FOUND", message: "there is no approval " + clean(id)}
	session, found, err := s.sessions.of(ctx, id)
	if err != nil {
		return ledger.Event{}, err
	}
	if !found || !strings.HasPrefix(session, askSessions) {
		return ledger.Event{}, none
	}
	info, found, err := s.sessions.session(ctx, session)
	if err != nil {
		return ledger.Event{}, err
	}
	if !found || !info.of(t) {
		return ledger.Event{}, none
	}
	for e, err := range s.Journal.Read(ctx, 0, ledger.Filter{Session: session, Kinds: []string{"message_received"}}) {
		if err != nil {
			return ledger.Event{}, err
		}
		if m, ok := e.Body.(*ledger.MessageReceived); ok && m.Ask != nil {
			return e, nil
		}
		break
	}
	return ledger.Event{}, none
}

// await gives a run as soon as the ask that it is meets the condition, or as it is when ctx ends.
func (s *Server) await(ctx context.Context, id string, met func(*asked) bool) (*ledger.Run, error) {
	run := &ledger.Run{ID: id}
	read := context.WithoutCancel(ctx) // a wait that is over, or never was, still gets an answer
	for {
		f, at := s.hub.follow(id)
		err := s.fold(read, run, at)
		if err != nil {
			s.hub.leave(f)
			return nil, err
		}
		more := s.waitFor(ctx, f, run, met)
		s.hub.leave(f)
		if !more {
			return run, nil
		}
	}
}

func (s *Server) fold(ctx context.Context, run *ledger.Run, until int64) error {
	for e, err := range s.Journal.Read(ctx, run.Last, ledger.Filter{Run: run.ID, Until: until}) {
		if err != nil {
			return err
		}
		run.Apply(e)
	}
	return nil
}

// waitFor takes in what happens in the run. True: something was missed, and has to be read in the journal.
func (s *Server) waitFor(ctx context.Context, f *follower, run *ledger.Run, met func(*asked) bool) bool {
	stopping := s.stopping
	var grace <-chan time.Time // the answer may be on its way when the server ends
	for !met(s.views.asked(ledger.Event{}, run)) {
		select {
		case it := <-f.items:
			if it.event.Body != nil {
				run.Apply(it.event)
			}
		case <-f.lost:
			return ctx.Err() == nil && !s.ending()
		case <-stopping:
			stopping, grace = nil, time.After(stopGrace/2)
		case <-grace:
			return false
		case <-ctx.Done():
			return false
		}
	}
	return false
}

func (s *Server) ending() bool {
	select {
	case <-s.stopping:
		return true
	default:
		return false
	}
}

// postOutcome takes a program's word for how its action went.
func (s *Server) postOutcome(w http.ResponseWriter, r *http.Request, t *Token) error {
	raw, err := readBody(r, maxOutcome)
	if err != nil {
		return err
	}
	f := parseForm(raw)
	report := &ledger.OutcomeReported{Outcome: ledger.OutcomeFailed, Output: f.text("output")}
	if f.truth("ok") {
		report.Outcome = ledger.OutcomeDone
	}
	if err := f.done(); err != nil {
		return err
	}
	id := r.PathValue("id")
	e, err := s.askOf(r.Context(), t, id)
	if err != nil {
		return err
	}
	if e.Body.(*ledger.MessageReceived).Origin.Token != t.Name {
		return forbidden("NOT_YOURS", "only the program that asked can say how it went")
	}
	err = s.Agent.Report(r.Context(), id, s.actor(r.Context(), t), report)
	if lost, ok := errors.AsType[*ledger.ConflictError](err); ok {
		err = sameReport(lost.Winner, report)
	}
	if errors.Is(err, ErrNotStarted) {
		err = &problem{status: http.StatusConflict, code: "NOT_APPROVED", message: "this was not approved, so there is nothing to report"}
	}
	if err != nil {
		return err
	}
	run := &ledger.Run{ID: id}
	if err := s.fold(r.Context(), run, 0); err != nil {
		return err
	}
	answer(w, http.StatusOK, map[string]any{"ok": true, "approval": s.views.asked(e, run)})
	return nil
}

// truth is a member that has to be true or false.
func (f *form) truth(name string) bool {
	v, ok := f.take(name)
	switch {
	case !ok:
		f.wrong(name, "it is missing")
	case v.Kind() != 't' && v.Kind() != 'f':
		f.wrong(name, "it has to be true or false")
	}
	return v.Kind() == 't'
}

// sameReport: the same again is the same answer.
func sameReport(earlier ledger.Event, o *ledger.OutcomeReported) error {
	was, ok := earlier.Body.(*ledger.OutcomeReported)
	switch {
	case !ok:
		return &problem{status: http.StatusGone, code: "ERASED", message: "what was reported was erased"}
	case was.Outcome == ledger.OutcomeNone:
		return &problem{status: http.StatusGone, code: "TOO_LATE", message: "nobody waits for the outcome any more: " + was.Reason}
	case was.Outcome != o.Outcome || was.Output != o.Output:
		return &problem{status: http.StatusConflict, code: "ALREADY_REPORTED", message: "another outcome was reported before: " + string(was.Outcome)}
	}
	return nil
}
