// Package api is approvalbot over HTTP: other programs start runs, follow them, and decide asks.
//
// # A request
//
// Every request passes the same checks, in this order: the Host is one of ours, so that no web page can reach us through
// a name that it controls; it carries a bearer token, unless it only asks for health; it is not a browser's on behalf of
// another site; the token has the scope of the route; its body is what the route takes, to the letter. Only then is
// anything looked up. Who acts is what the token says, never what the body says. Bodies, headers and times are limited.
//
// # A run over HTTP
//
// A request that starts a run is a message like any other: it is handed to the agent, which journals it, with the
// stricter settings that it may bring and the id of the run that it will start. POST /api/agent waits for that run's end,
// POST /api/agent/stream tells how it goes. Both are followers of the journal; what they say, GET …/events says too, now
// and years later.
//
//	request ── message_received ── agent ── journal ──┬── hub ── followers ── streams, waiting requests
//	                                                  └── Read ── what they missed
//
// # Following
//
// One goroutine, the [hub]'s, follows the journal and hands each event to the followers of its run, without waiting for
// any: whoever has no room is dropped, and can come again with the id of the last event that it saw. A follower
// reads the journal up to exactly where the hub was when it joined, and gets what is behind that from the hub. So nothing
// is missed and nothing comes twice. What a stream says of an event is one pure function ([views.tell]).
//
// # An ask
//
// A run that was started over a stream has a surface here: when an ask has been sent to a follower, it counts as shown. An
// ask that nobody follows is unshowable here, unless its caller said that it would detach; then there is the time that
// surfaces have. The caller's disconnect ends the run, unless it is detached or talks in Slack, too. A follower that is
// dropped because it is slow is no disconnect.
//
// # A program that acts itself
//
// POST /api/approvals opens an ask for an action that the caller will perform. It is a run with one call and no model; the
// caller polls for the answer, so nothing ends when it disconnects. It may act when the status is approved, which it is
// told after the start of the call is on disk, and then says how it went.
//
// # Owners
//
// [Server.Run] owns the hub and the connections and waits for both.
package api

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"approvalbot/internal/approvals"
	"approvalbot/internal/ledger"
	"approvalbot/internal/policy"
	"approvalbot/internal/redact"
)

const (
	maxBody   = 1 << 20 // no request of ours comes near
	maxHeader = 16 << 10
)

// A Check is one thing that has to be well: nil, or why it isn't.
type Check struct {
	Name string
	Err  func() error
}

// A Journal is what streams and records are read from.
type Journal interface {
	Head(ctx context.Context) (ledger.Head, error)
	Read(ctx context.Context, after int64, f ledger.Filter) iter.Seq2[ledger.Event, error]
	Follow(ctx context.Context, after int64) iter.Seq2[ledger.Event, error]
	Claimed(ctx context.Context, c ledger.Claim) (ledger.Event, bool, error)
}

// What an [Agent] says besides its own errors.
var (
	ErrBusy       = errors.New("the session is busy")
	ErrNotRunning = errors.New("the run is not in progress")
)

// An Agent does what is asked for.
type Agent interface {
	// Receive records a message (e.Body is a *ledger.MessageReceived) and returns when that is committed. What the
	// message starts goes on by itself. A *ledger.ConflictError says that the message was received before.
	Receive(ctx context.Context, e ledger.Event) (ledger.Event, error)
	// ReceiveIfIdle is Receive unless the session has work: then it is ErrBusy.
	ReceiveIfIdle(ctx context.Context, e ledger.Event) (ledger.Event, error)
	// Withdraw ends what a message started because its sender is gone.
	Withdraw(ctx context.Context, message ledger.Event, reason string) error
	// Stop ends a run. It returns a *approvals.RefusedError if that person may not, and ErrNotRunning if
	// there is nothing to end.
	Stop(ctx context.Context, run string, by ledger.Actor) error
	// Report records how an action went that another program asked for, and returns when its call has its end. It is
	// ErrNotStarted if it wasn't approved, and a *ledger.ConflictError with the earlier report if there is one.
	Report(ctx context.Context, run string, by ledger.Actor, o *ledger.OutcomeReported) error
}

// Config is what a server is made of. Everything is required but Grants, Hosts, Channels, UserName, Details, Metrics and Redactor.
type Config struct {
	Tokens    []Token
	Journal   Journal
	Approvals *approvals.Registry
	Grants    *approvals.Grants // nil: there are none
	Agent     Agent

	Model    string                                        // the only one that there is
	Settings policy.Settings                               // those in force: a request may ask for stricter ones
	Team     string                                        // our workspace in Slack
	Channels []string                                      // those that a request may name
	UserName func(ctx context.Context, user string) string // what a Slack user is called; "" if that isn't known

	Hosts    []string // host names that requests may name besides loopback ones, without port
	Ready    []Check
	Details  func() map[string]map[string]string // how single things are, by group, that keep nothing from being ready; nil: nothing
	Metrics  http.Handler                        // answers GET /metrics, for whoever has a token that may read; nil: there are none
	Redactor *redact.Redactor                    // nil: one that knows patterns only
	Logger   *slog.Logger
}

// A Server answers HTTP requests.
type Server struct {
	Config
	views    views
	hub      *hub
	sessions *sessions
	http     *http.Server
	stopping chan struct{} // closed when Run is to end
	notices  sync.WaitGroup

	mu      sync.Mutex
	callers map[string]int       // of each run: how many of the connections that asked for it are there
	dropped map[string]time.Time // of each run: when the last of them was dropped for reading too slowly
}

// New makes a server. It listens nowhere before [Server.Run].
func New(c Config) (*Server, error) {
	if len(c.Tokens) == 0 {
		return nil, errors.New("the HTTP API needs a token")
	}
	if err := distinct(c.Tokens); err != nil {
		return nil, err
	}
	if c.Redactor == nil {
		c.Redactor = redact.New()
	}
	s := &Server{Config: c, views: views{c.Redactor}, stopping: make(chan struct{}), callers: map[string]int{}, dropped: map[string]time.Time{}}
	s.hub = newHub(c.Journal, s.views, c.Logger)
	s.hub.alone = s.unfollowed
	s.sessions = newSessions(c.Journal, s.views)
	origins := http.NewCrossOriginProtection()
	origins.SetDenyHandler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fail(w, http.StatusForbidden, "a browser sent this on behalf of another site")
	}))
	s.http = &http.Server{
		Handler:           s.guard(origins.Handler(s.routes())),
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       15 * time.Second,
		WriteTimeout:      30 * time.Second, // streams and requests that wait count by write
		IdleTimeout:       60 * time.Second,
		MaxHeaderBytes:    maxHeader,
		ErrorLog:          slog.NewLogLogger(c.Logger.Handler(), slog.LevelWarn),
	}
	return s, nil
}

// stopGrace is how long requests in progress may take when the server ends.
const stopGrace = 2 * time.Second

// Run serves the listener until ctx ends, then lets requests in progress end for a moment. It closes the listener.
func (s *Server) Run(ctx context.Context, ln net.Listener) error {
	if err := s.hub.start(ctx); err != nil {
		return errors.Join(fmt.Errorf("read the journal's head: %w", err), ln.Close())
	}
	following, stopFollowing := context.WithCancel(context.WithoutCancel(ctx)) // to the last event that requests wait for
	var wg sync.WaitGroup
	wg.Go(func() { s.hub.run(following) })
	defer func() {
		stopFollowing()
		wg.Wait()
		s.notices.Wait()
	}()
	stopped := make(chan error, 1)
	stop := context.AfterFunc(ctx, func() {
		close(s.stopping)
		grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopGrace)
		defer cancel()
		if err := s.http.Shutdown(grace); err != nil {
			stopped <- s.http.Close()
			return
		}
		stopped <- nil
	})
	err := s.http.Serve(ln)
	if stop() { // it ended by itself
		return fmt.Errorf("the HTTP API stopped: %w", err)
	}
	return <-stopped
}

// Delta hands a piece of a model's text to those who follow the run. It never waits.
func (s *Server) Delta(run, text string) { s.hub.delta(context.Background(), run, text) }

// unfollowed says of an ask that nobody can see it here, unless its caller is about to, or said that they would come back.
// It is called by the hub, which waits for nobody.
func (s *Server) unfollowed(e ledger.Event, b *ledger.ApprovalRequested) {
	if s.awaited(e.Run) {
		return
	}
	s.notices.Go(func() {
		ctx := context.Background() // the registry withdraws it when the run ends
		if detached, err := s.detached(ctx, e.Run); err != nil || detached {
			return // the time that surfaces have for showing it decides
		}
		s.Approvals.Unshowable(ctx, b.Approval, ledger.SurfaceHTTP, "nobody follows this run over HTTP")
	})
}

func (s *Server) detached(ctx context.Context, run string) (bool, error) {
	e, _, err := s.Journal.Claimed(ctx, ledger.ClaimRun(run))
	b, ok := e.Body.(*ledger.RunStarted)
	return ok && b.Detach, err
}

// routes are everything that can be asked. A path with another method is 405, and says which it has.
func (s *Server) routes() http.Handler {
	mux := http.NewServeMux()
	open := func(path string, h http.HandlerFunc) {
		mux.Handle(path, methods{http.MethodGet: h, http.MethodHead: h})
	}
	open("/healthz", s.healthz)
	open("/readyz", s.readyz)
	for path, routes := range map[string]map[string]http.HandlerFunc{
		"/api/agent":           {http.MethodPost: s.with(s.postAgent, ScopeRun)},
		"/api/agent/stream":    {http.MethodPost: s.with(s.postStream, ScopeRun)},
		"/api/agent/approvals": {http.MethodGet: s.with(s.getApprovals, ScopeRead, ScopeDecide)},
		"/api/agent/approvals/{runId}/{toolCallId}":        {http.MethodPost: s.with(s.postApproval, ScopeDecide)},
		"/api/agent/approvals/{runId}/{toolCallId}/extend": {http.MethodPost: s.with(s.postExtend, ScopeDecide)},
		"/api/agent/grants":                                {http.MethodGet: s.with(s.getGrants, ScopeRead, ScopeDecide)},
		"/api/agent/grants/{grantId}/revoke":               {http.MethodPost: s.with(s.postRevoke, ScopeDecide)},
		"/api/agent/runs/{runId}/stop":                     {http.MethodPost: s.with(s.postStop, ScopeRun, ScopeDecide)},
		"/api/agent/runs/{runId}/events":                   {http.MethodGet: s.with(s.getEvents, ScopeRead)},
		"/api/approvals":                                   {http.MethodPost: s.with(s.postAsk, ScopeRun)},
		"/api/approvals/{id}":                              {http.MethodGet: s.with(s.getAsk, ScopeRun, ScopeRead)},
		"/api/approvals/{id}/outcome":                      {http.MethodPost: s.with(s.postOutcome, ScopeRun)},
		"/api/agent/sessions":                              {http.MethodGet: s.with(s.getSessions, ScopeRead)},
		"/api/agent/sessions/{sessionId...}":               {http.MethodGet: s.with(s.getSession, ScopeRead)},
	} {
		mux.Handle(path, methods(routes))
	}
	if s.Metrics != nil {
		mux.Handle("/metrics", methods{http.MethodGet: s.with(func(w http.ResponseWriter, r *http.Request, _ *Token) error {
			s.Metrics.ServeHTTP(w, r)
			return nil
		}, ScopeRead)})
	}
	mux.HandleFunc("/", s.notFound)
	return mux
}

// methods are the handlers of one path.
type methods map[string]http.HandlerFunc

func (m methods) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if h, ok := m[r.Method]; ok {
		h(w, r)
		return
	}
	allow := slices.Sorted(maps.Keys(m))
	w.Header().Set("Allow", strings.Join(allow, ", "))
	fail(w, http.StatusMethodNotAllowed, "this path answers "+strings.Join(allow, ", ")+", not "+clean(r.Method))
}

// with gives a route the token that asks, if it has one of the scopes.
func (s *Server) with(do route, scopes ...Scope) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		t := s.token(r)
		if t == nil { // the guard lets nobody else through
			s.unauthorized(w)
			return
		}
		if !slices.ContainsFunc(scopes, t.may) {
			s.refuse(w, r, forbidden("MISSING_SCOPE", fmt.Sprintf("the token %s lacks the scope %s", t.Name, strings.Join(strings.Split(scopeNames(scopes), ", "), " or "))))
			return
		}
		if err := do(w, r, t); err != nil {
			s.refuse(w, r, err)
		}
	}
}

// guard checks what every request has to pass.
func (s *Server) guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.Body = http.MaxBytesReader(w, r.Body, maxBody)
		switch {
		case !s.ourHost(r.Host):
			fail(w, http.StatusForbidden, "this server does not answer for the host "+strings.ToValidUTF8(r.Host, "?"))
		case r.URL.Path != "/healthz" && r.URL.Path != "/readyz" && s.token(r) == nil:
			s.unauthorized(w)
		default:
			next.ServeHTTP(w, r)
		}
	})
}

// ourHost tells whether the Host header names us: otherwise a web page could reach us through its own name.
func (s *Server) ourHost(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	host = strings.Trim(host, "[]")
	if strings.EqualFold(host, "localhost") {
		return true
	}
	if ip := net.ParseIP(host); ip != nil {
		return true // no name stands behind an address, so none can be rebound
	}
	for _, h := range s.Hosts {
		if strings.EqualFold(h, host) {
			return true
		}
	}
	return false
}

func (s *Server) unauthorized(w http.ResponseWriter) {
	w.Header().Set("WWW-Authenticate", `Bearer realm="approvalbot"`)
	fail(w, http.StatusUnauthorized, "the header Authorization: Bearer TOKEN is missing or its token is wrong")
}

func (s *Server) healthz(w http.ResponseWriter, _ *http.Request) {
	answer(w, http.StatusOK, map[string]any{"ok": true})
}

// readyz says whether runs can be worked off and asks can be answered, and if not, why not.
func (s *Server) readyz(w http.ResponseWriter, _ *http.Request) {
	status, ok := http.StatusOK, true
	checks := map[string]any{}
	for _, c := range s.Ready {
		checks[c.Name] = "ok"
		if err := c.Err(); err != nil {
			status, ok, checks[c.Name] = http.StatusServiceUnavailable, false, err.Error()
		}
	}
	body := map[string]any{"ok": ok, "checks": checks}
	if p, paused := s.Approvals.Paused(); paused { // wanted, so it is no fault; why, is nothing for everybody
		body["paused"] = map[string]any{"since": p.At.UTC()}
	}
	if details := s.details(); len(details) > 0 {
		body["details"] = details
	}
	answer(w, status, body)
}

// details are told to everybody, and quote others.
func (s *Server) details() map[string]map[string]string {
	if s.Details == nil {
		return nil
	}
	all := s.Details()
	for _, group := range all {
		for name, text := range group {
			group[name], _ = s.Redactor.Text(text)
		}
	}
	return all
}

func (s *Server) notFound(w http.ResponseWriter, r *http.Request) {
	fail(w, http.StatusNotFound, "there is nothing at "+strings.ToValidUTF8(r.Method+" "+r.URL.Path, "?"))
}
