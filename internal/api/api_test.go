package api

import (
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"

	"approvalbot/internal/approvals"
)

func testServer(t *testing.T, checks ...Check) http.Handler {
	t.Helper()
	s, err := New(Config{Tokens: []Token{DefaultToken("right")}, Hosts: []string{"bot.example"}, Ready: checks, Approvals: approvals.New(nil, nil, approvals.Settings{}, slog.New(slog.DiscardHandler)), Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	return s.http.Handler
}

func TestGuard(t *testing.T) {
	h := testServer(t)
	for _, c := range []struct {
		name, host, path, auth string
		want                   int
	}{
		{"health needs no token", "127.0.0.1:3102", "/healthz", "", 200},
		{"a foreign host", "evil.example", "/healthz", "", 403},
		{"a foreign host with the token", "evil.example", "/x", "Bearer right", 403},
		{"a name that looks like ours", "127.0.0.1.evil.example", "/healthz", "", 403},
		{"our own name", "bot.example:80", "/healthz", "", 200},
		{"IPv6 loopback", "[::1]:3102", "/healthz", "", 200},
		{"localhost", "localhost", "/readyz", "", 200},
		{"no token", "localhost", "/x", "", 401},
		{"a wrong token", "localhost", "/x", "Bearer wrong", 401},
		{"a wrong scheme", "localhost", "/x", "Basic right", 401},
		{"the token", "localhost", "/x", "Bearer right", 404},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := httptest.NewRequest("GET", c.path, nil)
			r.Host = c.host
			if c.auth != "" {
				r.Header.Set("Authorization", c.auth)
			}
			w := httptest.NewRecorder()
			h.ServeHTTP(w, r)
			if w.Code != c.want {
				t.Errorf("status %d, want %d: %s", w.Code, c.want, w.Body)
			}
		})
	}
}

func TestCrossSitePostRefused(t *testing.T) {
	r := httptest.NewRequest("POST", "/x", nil)
	r.Host = "localhost"
	r.Header.Set("Authorization", "Bearer right")
	r.Header.Set("Sec-Fetch-Site", "cross-site")
	w := httptest.NewRecorder()
	testServer(t).ServeHTTP(w, r)
	if w.Code != http.StatusForbidden {
		t.Errorf("status %d, want 403", w.Code)
	}
}

func TestReadySaysWhyNot(t *testing.T) {
	h := testServer(t, Check{"journal", func() error { return nil }}, Check{"slack", func() error { return errors.New("not connected") }})
	r := httptest.NewRequest("GET", "/readyz", nil)
	r.Host = "localhost"
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	var got struct {
		OK     bool              `json:"ok"`
		Checks map[string]string `json:"checks"`
	}
	if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	if w.Code != 503 || got.OK || got.Checks["slack"] != "not connected" || got.Checks["journal"] != "ok" {
		t.Errorf("got %d %+v", w.Code, got)
	}
}

// Metrics are for those who may read, not for everybody who may ask for health.
func TestMetricsNeedTheToken(t *testing.T) {
	counted := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) })
	s, err := New(Config{Tokens: []Token{DefaultToken("right")}, Metrics: counted, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		method, auth string
		want         int
	}{{"GET", "", 401}, {"GET", "Bearer wrong", 401}, {"GET", "Bearer right", 200}} {
		r := httptest.NewRequest(c.method, "/metrics", nil)
		r.Host = "localhost"
		if c.auth != "" {
			r.Header.Set("Authorization", c.auth)
		}
		w := httptest.NewRecorder()
		s.http.Handler.ServeHTTP(w, r)
		if w.Code != c.want {
			t.Errorf("%s with %q: %d, want %d", c.method, c.auth, w.Code, c.want)
		}
	}
}
