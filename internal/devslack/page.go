package devslack

import (
	"embed"
	"io/fs"
	"net/http"
	"strings"
)

// The page is plain HTML, CSS and JavaScript modules: what is read here is what
// runs in the browser. It speaks only to the control plane of its own origin.
//
//go:embed page
var pageFiles embed.FS

// pagePolicy lets the page load its own files and nothing else. Everything
// that it shows was written by somebody else (a model, a tool, a person), so
// scripts come from this server's files only, no string ever becomes markup
// (trusted types make innerHTML throw), and no picture of a message is fetched
// from its server: Slack would proxy it, this page names it.
const pagePolicy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"

// Tests and tools find their way in the page by attributes that stay:
//
//	data-testid  message, composer-input, reply-input, user-switch, channel-link,
//	             thread, replies, modal, home, drawer, call, banner, …
//	data-ts, data-user, data-ephemeral   of a message
//	data-action-id, data-block-id        of an interactive element
//	data-state   of a button: busy until the app acknowledged, then idle or failed
//	data-status  of a task: pending, in_progress, complete, error

// pageHandler serves the browser page in which a person plays the users: its
// document at /, the files that it loads below /_page/.
func pageHandler() http.Handler {
	files, err := fs.Sub(pageFiles, "page")
	if err != nil {
		panic("devslack: embedded page: " + err.Error()) // the directory is compiled in
	}
	assets := http.StripPrefix("/_page/", http.FileServerFS(files))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			w.Header().Set("Allow", "GET, HEAD")
			http.Error(w, "method not allowed", http.StatusMethodNotAllowed)
			return
		}
		header := w.Header()
		header.Set("Content-Security-Policy", pagePolicy)
		header.Set("X-Content-Type-Options", "nosniff")
		header.Set("Referrer-Policy", "no-referrer")
		header.Set("Cross-Origin-Opener-Policy", "same-origin")
		header.Set("Cross-Origin-Resource-Policy", "same-origin")
		// The files change with the binary and have no version in their names.
		header.Set("Cache-Control", "no-store")
		switch {
		case r.URL.Path == "/":
			http.ServeFileFS(w, r, files, "index.html")
		case strings.HasPrefix(r.URL.Path, "/_page/") && !strings.HasSuffix(r.URL.Path, "/"):
			assets.ServeHTTP(w, r)
		default:
			http.NotFound(w, r)
		}
	})
}

// Sockets is the number of the app's open connections, which the page warns
// about when it is none.
func (s *Server) Sockets() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.links.open)
}
