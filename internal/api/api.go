// Package api is approvalbot over HTTP: is it well, and (with the routes to come) runs and approvals for other programs.
//
// Every request passes the same checks, in this order: the Host is one of ours, so that no web page can reach us through
// a name that it controls; the request is not a browser's on behalf of another site; it carries the bearer token, unless
// it only asks for health. Bodies, headers and times are limited.
package api

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"time"
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

// Config is what a server is made of.
type Config struct {
	Token string
	Hosts []string // host names that requests may name besides loopback ones, without port
	Ready []Check
	// Metrics answers GET /metrics, for whoever has a token that may read. Nil: there are none.
	Metrics http.Handler
	Logger  *slog.Logger
}

// A Server answers HTTP requests.
type Server struct {
	Config
	token [sha256.Size]byte
	http  *http.Server
}

// New makes a server. It listens nowhere before [Server.Run].
func New(c Config) (*Server, error) {
	if c.Token == "" {
		return nil, errors.New("the HTTP API needs a token")
	}
	s := &Server{Config: c, token: sha256.Sum256([]byte(c.Token))}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", s.healthz)
	mux.HandleFunc("GET /readyz", s.readyz)
	if c.Metrics != nil {
		mux.Handle("GET /metrics", c.Metrics)
	}
	mux.HandleFunc("/", s.notFound)
	s.http = &http.Server{
		Handler:           s.guard(http.NewCrossOriginProtection().Handler(mux)),
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       15 * time.Second,
		WriteTimeout:      30 * time.Second,
		IdleTimeout:       60 * time.Second,
		MaxHeaderBytes:    maxHeader,
		ErrorLog:          slog.NewLogLogger(c.Logger.Handler(), slog.LevelWarn),
	}
	return s, nil
}

// Run serves the listener until ctx ends, then lets requests in progress end for a moment. It closes the listener.
func (s *Server) Run(ctx context.Context, ln net.Listener) error {
	stopped := make(chan error, 1)
	stop := context.AfterFunc(ctx, func() {
		grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Second)
		defer cancel()
		if err := s.http.Shutdown(grace); err != nil {
			err = s.http.Close()
			stopped <- err
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

// guard checks what every request has to pass.
func (s *Server) guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.Body = http.MaxBytesReader(w, r.Body, maxBody)
		switch {
		case !s.ourHost(r.Host):
			fail(w, http.StatusForbidden, "this server does not answer for the host "+strings.ToValidUTF8(r.Host, "?"))
		case r.URL.Path != "/healthz" && r.URL.Path != "/readyz" && !s.authorized(r):
			w.Header().Set("WWW-Authenticate", `Bearer realm="approvalbot"`)
			fail(w, http.StatusUnauthorized, "the header Authorization: Bearer TOKEN is missing or its token is wrong")
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

func (s *Server) authorized(r *http.Request) bool {
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	given := sha256.Sum256([]byte(token))
	return strings.EqualFold(scheme, "Bearer") && subtle.ConstantTimeCompare(given[:], s.token[:]) == 1
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
	answer(w, status, map[string]any{"ok": ok, "checks": checks})
}

func (s *Server) notFound(w http.ResponseWriter, r *http.Request) {
	fail(w, http.StatusNotFound, "there is nothing at "+strings.ToValidUTF8(r.Method+" "+r.URL.Path, "?"))
}

func fail(w http.ResponseWriter, status int, message string) {
	answer(w, status, map[string]any{"ok": false, "error": message})
}

func answer(w http.ResponseWriter, status int, body any) {
	h := w.Header()
	h.Set("Content-Type", "application/json; charset=utf-8")
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(status)
	if err := json.NewEncoder(w).Encode(body); err != nil {
		return // the client went away
	}
}
