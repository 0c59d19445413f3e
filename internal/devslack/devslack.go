package devslack

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"sync"
	"time"
)

// Options configure a Server. The zero value is a strict Slack in memory.
type Options struct {
	// Dir holds the durable state; "" keeps it in memory.
	Dir    string
	Logger *slog.Logger
	// NoRateLimits switches Slack's rate limits off.
	NoRateLimits bool
	// Hosts are names, besides loopback and the address of the listener, under
	// which the page and the control plane may be asked for: for listeners in
	// memory, whose addresses are made up.
	Hosts []string
}

// Server is one local Slack with one workspace.
type Server struct {
	log     *slog.Logger
	opts    Options
	handler http.Handler
	http    *http.Server

	calls *callLog
	hub   *hub
	// done is closed by Close: every goroutine and waiting request ends then.
	done    chan struct{}
	work    sync.WaitGroup // deliveries and requests in work
	serving sync.WaitGroup // calls of Serve
	conns   sync.WaitGroup // connections of http

	mu     sync.Mutex // guards everything below; nothing waits while holding it
	closed bool
	store  *store
	ws     *seed
	app    App
	// channels in the order in which they were made, and each one's messages.
	channels  []*Channel
	timelines map[string]*timeline
	files     map[string]*File
	uploads   map[string]*File // by the secret in their upload URL
	views     viewStore
	triggers  map[string]*trigger
	responses map[string]*responseURL
	choices   map[choiceKey]map[string]any // what people have chosen in messages
	statuses  map[string]*assistantStatus  // by channel and thread
	agents    map[threadKey]*agentThread   // what the app says about its conversations
	links     links
	limits    map[string]*bucket
	faults    []*Fault
	// origin is where the app reached us last ("http://host"): links in
	// payloads, which are made without a request at hand, lead there.
	origin string
	hosts  map[string]bool
}

// New loads the workspace from opts.Dir, or makes a new one.
func New(opts Options) (*Server, error) {
	s := &Server{
		log: opts.Logger, opts: opts, hub: &hub{}, done: make(chan struct{}),
		app: DefaultApp(), timelines: map[string]*timeline{},
		files: map[string]*File{}, uploads: map[string]*File{},
		triggers: map[string]*trigger{}, responses: map[string]*responseURL{},
		choices: map[choiceKey]map[string]any{}, statuses: map[string]*assistantStatus{},
		agents: map[threadKey]*agentThread{},
		limits: map[string]*bucket{}, hosts: map[string]bool{},
		origin: "http://localhost",
	}
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	s.views.byID = map[string]*View{}
	s.links.tickets = map[string]ticket{}
	s.links.pending = map[string]*delivery{}
	for _, h := range opts.Hosts {
		s.hosts[h] = true
	}
	s.calls = &callLog{added: func(c Call) {
		s.hub.publish(map[string]any{"type": "call", "seq": c.Seq, "kind": c.Kind, "name": c.Name})
	}}
	if err := s.open(); err != nil {
		return nil, err
	}
	s.handler = s.routes()
	s.http = &http.Server{Handler: s.handler, ReadHeaderTimeout: 10 * time.Second, ConnState: s.connState,
		ErrorLog: slog.NewLogLogger(s.log.Handler(), slog.LevelDebug)}
	return s, nil
}

// open reads the stored state, makes what is missing, and writes it anew.
func (s *Server) open() error {
	st, err := openStore(s.opts.Dir, s.apply)
	if err != nil {
		return err
	}
	s.store = st
	if s.ws == nil {
		s.ws = newSeed()
		for _, c := range s.ws.firstChannels() {
			s.apply(record{Channel: c})
		}
	}
	if err := st.rewrite(s.records()); err != nil {
		return errors.Join(err, st.close())
	}
	return nil
}

// apply is the one place where a record changes the state, when it is read
// back as when it is new.
func (s *Server) apply(rec record) {
	switch {
	case rec.Seed != nil:
		s.ws = rec.Seed
	case rec.Channel != nil:
		s.applyChannel(rec.Channel)
	case rec.Message != nil && rec.Message.Message != nil:
		if t := s.timelines[rec.Message.Channel]; t != nil {
			t.put(rec.Message.Message)
		}
	case rec.Deleted != nil:
		if t := s.timelines[rec.Deleted.Channel]; t != nil {
			t.remove(rec.Deleted.TS)
		}
	case rec.File != nil:
		s.files[rec.File.ID] = rec.File
	}
}

func (s *Server) applyChannel(c *Channel) {
	if t := s.timelines[c.ID]; t != nil {
		*t.channel = *c
		return
	}
	s.channels = append(s.channels, c)
	s.timelines[c.ID] = &timeline{channel: c, replies: map[string][]*Message{}}
}

func (s *Server) records() []record {
	out := []record{{Seed: s.ws}}
	for _, c := range s.channels {
		out = append(out, record{Channel: c})
		for _, m := range s.timelines[c.ID].all {
			out = append(out, record{Message: &messageRecord{Channel: c.ID, Message: m}})
		}
	}
	for _, f := range s.files {
		out = append(out, record{File: f})
	}
	return out
}

// commit stores a change and then makes it. Nothing is answered that is not
// written.
func (s *Server) commit(rec record) error {
	if err := s.store.append(rec); err != nil {
		s.log.Error("state not written", "error", err)
		return err
	}
	s.apply(rec)
	return nil
}

// Workspace describes the workspace: its people, channels and tokens.
func (s *Server) Workspace() Workspace {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := Workspace{Team: s.ws.Team, Usergroups: s.usergroups(),
		App: Installed{Identity: s.ws.App, HomeTab: s.app.HomeTab, MessagesTab: s.app.MessagesTab,
			AgentView: s.app.AgentView, AssistantView: s.app.AssistantView, Commands: append([]string{}, s.app.Commands...),
			Usage: maps.Clone(s.app.Usage), Shortcuts: append([]Shortcut{}, s.app.Shortcuts...)}}
	for _, u := range s.ws.Users {
		out.Users = append(out.Users, *u)
	}
	for _, c := range s.channels {
		copied := *c
		copied.Members = append([]string{}, c.Members...)
		out.Channels = append(out.Channels, copied)
	}
	return out
}

// Usergroups lists the user groups.
func (s *Server) Usergroups() []Group {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.usergroups()
}

// usergroups copies them. s.mu is held.
func (s *Server) usergroups() []Group {
	out := []Group{}
	for _, g := range s.ws.Groups {
		copied := *g
		copied.Users = append([]string{}, g.Users...)
		out = append(out, copied)
	}
	return out
}

// Handler serves everything: Web API, sockets, page, control plane.
func (s *Server) Handler() http.Handler { return s.handler }

// Serve answers connections of ln until Close; then it returns
// http.ErrServerClosed. It may be called for several listeners.
func (s *Server) Serve(ln net.Listener) error {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return errors.Join(http.ErrServerClosed, ln.Close())
	}
	s.serving.Add(1)
	if host, _, err := net.SplitHostPort(ln.Addr().String()); err == nil {
		s.hosts[host] = true
		s.origin = "http://" + ln.Addr().String()
	}
	s.mu.Unlock()
	defer s.serving.Done()
	return s.http.Serve(ln)
}

// Close ends all connections and everything that is going on, waits for it,
// and closes the state file.
func (s *Server) Close() error {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return nil
	}
	s.closed = true
	close(s.done)
	s.links.closeAll()
	s.mu.Unlock()
	s.hub.close()
	err := s.http.Close()
	s.serving.Wait()
	s.conns.Wait()
	s.work.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	if cerr := s.store.close(); cerr != nil {
		err = errors.Join(err, fmt.Errorf("devslack: closing the state: %w", cerr))
	}
	return err
}

// connState counts the connections that http serves, so that Close can wait
// for their goroutines. A hijacked connection is waited for by its handler.
func (s *Server) connState(_ net.Conn, state http.ConnState) {
	switch state {
	case http.StateNew:
		s.conns.Add(1)
	case http.StateClosed, http.StateHijacked:
		s.conns.Done()
	}
}

// start runs fn as a goroutine that Close waits for. s.mu is held.
func (s *Server) start(fn func()) bool {
	if s.closed {
		return false
	}
	s.work.Go(fn)
	return true
}

// tracked makes Close wait for requests in work.
func (s *Server) tracked(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		if s.closed {
			s.mu.Unlock()
			http.Error(w, "closing", http.StatusServiceUnavailable)
			return
		}
		s.work.Add(1)
		s.mu.Unlock()
		defer s.work.Done()
		next.ServeHTTP(w, r)
	})
}

// pause waits, and reports false when the request or the server ends first.
func (s *Server) pause(ctx context.Context, d time.Duration) bool {
	if d <= 0 {
		return true
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	case <-s.done:
		return false
	}
}
