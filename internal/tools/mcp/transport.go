package mcp

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptrace"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"approvalbot/internal/tools/process"
)

const (
	maxMessage = 16 << 20 // bytes of one message of a server
	stopGrace  = 3 * time.Second
)

// A connection is a way to a server that is open.
type connection struct {
	transport sdk.Transport
	up        func() // is told when the server is up
	// end closes the way and waits until nothing is left of the server, if it is ours. It may be called once.
	end func()
	// why says in a clause how a server of ours ended; empty if it didn't, or isn't ours.
	why func() string
}

// open starts the program, or makes what talks to the address.
func (s *server) open() (*connection, error) {
	if s.dial != nil {
		return &connection{noting{s.dial()}, func() {}, func() {}, func() string { return "" }}, nil
	}
	switch s.config.Kind {
	case HTTP:
		c := s.client()
		return s.remote(&sdk.StreamableClientTransport{Endpoint: s.config.URL, HTTPClient: c, MaxEventSize: maxMessage}, c), nil
	case SSE:
		c := s.client()
		return s.remote(&sdk.SSEClientTransport{Endpoint: s.config.URL, HTTPClient: c, MaxEventSize: maxMessage}, c), nil
	}
	return s.program()
}

func (s *server) remote(t sdk.Transport, c *http.Client) *connection {
	return &connection{transport: t, up: func() {}, end: c.CloseIdleConnections, why: func() string { return "" }}
}

// program starts the server's program.
func (s *server) program() (*connection, error) {
	env := s.environment()
	path, err := lookPath(s.config.Command, env)
	if err != nil {
		return nil, err
	}
	p, err := process.Command{Argv: append([]string{path}, s.config.Args...), Dir: s.config.Cwd, Env: env}.Start()
	if err != nil {
		return nil, err
	}
	said := &stderr{log: s.log.With("server", s.config.Name)}
	heard := make(chan struct{})
	go func() {
		defer close(heard)
		defer p.Stderr().Close()
		said.read(p.Stderr())
	}()
	return &connection{
		transport: noting{&sdk.IOTransport{Reader: p.Stdout(), Writer: input{p}, MaxLineLength: maxMessage}},
		up:        said.cameUp,
		end: func() {
			p.Stop(stopGrace)
			<-heard
		},
		why: func() string {
			state := p.State()
			if state == nil {
				return ""
			}
			why := "its program ended: " + state.String()
			if cause := said.cause(); cause != "" {
				why += ", and it had written: " + cause
			}
			return why
		},
	}, nil
}

// input is a program's standard input as the protocol's library wants it.
type input struct{ *process.Server }

func (i input) Close() error { return i.CloseInput() }

// environment is the whole environment of a program: what every program needs to find its way, and what the configuration
// names. Nothing else of ours is in it. HOME is the user's own and not the workspace, as that of commands is: what the
// agent writes there (.npmrc, …) would steer the server.
func (s *server) environment() []string {
	env := map[string]string{"PATH": cleanPath(os.Getenv("PATH")), "LANG": "C.UTF-8", "TMPDIR": os.TempDir(), "PWD": s.config.Cwd}
	if home, err := os.UserHomeDir(); err == nil {
		env["HOME"] = home
	}
	for _, name := range []string{"USER", "LOGNAME"} {
		if value := os.Getenv(name); value != "" {
			env[name] = value
		}
	}
	maps.Copy(env, s.config.Env)
	var out []string
	for _, name := range slices.Sorted(maps.Keys(env)) {
		out = append(out, name+"="+env[name])
	}
	return out
}

// cleanPath leaves out of a PATH what isn't absolute: there a file of the directory that happens to be the current one
// could pose as a program.
func cleanPath(path string) string {
	dirs := slices.DeleteFunc(filepath.SplitList(path), func(dir string) bool { return !filepath.IsAbs(dir) })
	if len(dirs) == 0 {
		return "/usr/local/bin:/usr/bin:/bin"
	}
	return strings.Join(dirs, string(filepath.ListSeparator))
}

// lookPath finds a program in the PATH that the program itself will have.
func lookPath(command string, env []string) (string, error) {
	if filepath.IsAbs(command) {
		return command, nil
	}
	var path string
	for _, v := range env {
		if value, ok := strings.CutPrefix(v, "PATH="); ok {
			path = value
		}
	}
	for _, dir := range filepath.SplitList(cleanPath(path)) {
		file := filepath.Join(dir, command)
		if info, err := os.Stat(file); err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 {
			return file, nil
		}
	}
	return "", fmt.Errorf("there is no program %q in the PATH; give its whole path", command)
}

// client talks to an address, and to no other: the headers are for that one alone, and what a redirect or the server's own
// word leads to is somewhere else.
func (s *server) client() *http.Client {
	return &http.Client{
		Transport:     &headers{set: s.config.Headers, origin: s.config.origin(), next: http.DefaultTransport.(*http.Transport).Clone()},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

type headers struct {
	set    map[string]string
	origin string // scheme and host
	next   *http.Transport
}

func (h *headers) RoundTrip(r *http.Request) (*http.Response, error) {
	if origin := r.URL.Scheme + "://" + r.URL.Host; origin != h.origin {
		return nil, fmt.Errorf("the server leads to %s, which is not the configured %s", short(origin), h.origin)
	}
	r = r.Clone(r.Context())
	for name, value := range h.set {
		r.Header.Set(name, value)
	}
	resp, err := h.next.RoundTrip(r)
	if err == nil && !strings.HasPrefix(resp.Header.Get("Content-Type"), "text/event-stream") {
		resp.Body = http.MaxBytesReader(nil, resp.Body, maxMessage) // a stream's events have a limit of their own
	}
	return resp, err
}

// CloseIdleConnections lets go of connections that aren't used any more.
func (h *headers) CloseIdleConnections() { h.next.CloseIdleConnections() }

// noteSent returns a context for one message, which sets sent before anything of it can have reached the server.
func noteSent(ctx context.Context, sent *atomic.Bool) context.Context {
	ctx = context.WithValue(ctx, sentKey{}, sent)
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { sent.Store(true) }})
}

type sentKey struct{}

// noting is a transport that keeps its promise to [noteSent]. That over HTTP is kept by the trace.
type noting struct{ sdk.Transport }

func (n noting) Connect(ctx context.Context) (sdk.Connection, error) {
	c, err := n.Transport.Connect(ctx)
	if err != nil {
		return nil, err
	}
	return notingConnection{c}, nil
}

type notingConnection struct{ sdk.Connection }

func (n notingConnection) Write(ctx context.Context, msg jsonrpc.Message) error {
	if sent, ok := ctx.Value(sentKey{}).(*atomic.Bool); ok {
		sent.Store(true)
	}
	return n.Connection.Write(ctx, msg)
}
