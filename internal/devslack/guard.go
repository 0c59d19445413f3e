package devslack

import (
	"mime"
	"net"
	"net/http"
	"net/url"
	"strings"
)

// guarded protects page and control plane from other web pages: any page can
// make a browser send requests to this address. So the host must be one that
// leads here (a foreign name that resolves to loopback does not), a foreign
// origin is refused, and a change needs a content type that no form can send.
func (s *Server) guarded(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case !s.knownHost(r.Host):
			writeRefusal(w, http.StatusForbidden, "foreign_host", "asked for as "+r.Host+", which is not the address of this local Slack")
		case !sameOrigin(r):
			writeRefusal(w, http.StatusForbidden, "foreign_origin", "requests of other web pages are refused")
		case changes(r) && !isJSON(r):
			writeRefusal(w, http.StatusUnsupportedMediaType, "json_required", "Content-Type must be application/json")
		default:
			w.Header().Set("X-Frame-Options", "DENY")
			w.Header().Set("X-Content-Type-Options", "nosniff")
			w.Header().Set("Referrer-Policy", "no-referrer")
			next.ServeHTTP(w, r)
		}
	})
}

func (s *Server) knownHost(hostport string) bool {
	host := hostport
	if h, _, err := net.SplitHostPort(hostport); err == nil {
		host = h
	}
	host = strings.Trim(host, "[]")
	if ip := net.ParseIP(host); strings.EqualFold(host, "localhost") || ip != nil && ip.IsLoopback() {
		return true
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.hosts[host] || s.hosts[hostport]
}

// sameOrigin looks at what browsers say about who asks. Other clients say
// nothing.
func sameOrigin(r *http.Request) bool {
	switch r.Header.Get("Sec-Fetch-Site") {
	case "cross-site", "same-site": // another port of this host is another site of ours, too
		if r.Method != http.MethodGet || r.Header.Get("Sec-Fetch-Mode") != "navigate" {
			return false // only following a link to the page is fine
		}
	}
	origin := r.Header.Get("Origin")
	if origin == "" {
		return true
	}
	u, err := url.Parse(origin)
	return err == nil && u.Host != "" && strings.EqualFold(u.Host, r.Host)
}

func changes(r *http.Request) bool {
	switch r.Method {
	case http.MethodGet, http.MethodHead, http.MethodOptions:
		return false
	case http.MethodDelete:
		return r.ContentLength != 0 // without a body there is nothing to declare; a browser sends its origin
	default:
		return true
	}
}

func isJSON(r *http.Request) bool {
	kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	return err == nil && kind == "application/json"
}

// samePage reports whether the browser fetched this for our own page. s.mu is held.
func (s *Server) samePage(r *http.Request) bool {
	site := r.Header.Get("Sec-Fetch-Site")
	return (site == "same-origin" || site == "none") && sameOrigin(r)
}

func writeRefusal(w http.ResponseWriter, status int, code, message string) {
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.WriteHeader(status)
	w.Write(encode(reply{"ok": false, "error": code, "message": message})) // a client that has gone away is not our trouble
}
