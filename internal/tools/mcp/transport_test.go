package mcp

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"approvalbot/internal/tools"
)

// asServer makes the test binary be an MCP server over its standard input and output.
const asServer = "RUN_AS_MCP_SERVER"

func TestMain(m *testing.M) {
	if os.Getenv(asServer) != "" {
		serveStdio()
		return
	}
	os.Exit(m.Run())
}

func serveStdio() {
	fmt.Fprintln(os.Stderr, "ready\x1b[0m for work")
	s := sdk.NewServer(&sdk.Implementation{Name: "stdio", Version: "1"}, nil)
	offer(s, "environment", func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		dir, _ := os.Getwd()
		return &sdk.CallToolResult{Content: []sdk.Content{text(strings.Join(os.Environ(), "\n")), text("in " + dir)}}, nil
	})
	offer(s, "die", func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		os.Exit(7)
		return nil, nil
	})
	_ = s.Run(context.Background(), &sdk.StdioTransport{})
}

// A used server runs outside of a bubble: it is a process, or behind a socket.
type used struct {
	t       *testing.T
	servers *Servers
	tools   chan []tools.Tool // each time they were published
	log     *syncText
}

type syncText struct{ w world }

func (s *syncText) Write(p []byte) (int, error) { return s.w.Write(p) }

func use(t *testing.T, c Server) *used {
	t.Helper()
	u := &used{t: t, tools: make(chan []tools.Tool, 100), log: &syncText{}}
	if c.Timeout == 0 {
		c.Timeout = callTimeout
	}
	u.servers = New(Config{Servers: []Server{c}}, Options{
		Version: "test", Logger: slog.New(slog.NewTextHandler(u.log, nil)),
		Publish: func(_ context.Context, _ string, all []tools.Tool) error {
			u.tools <- all
			return nil
		},
	})
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- u.servers.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	<-u.servers.Settled()
	return u
}

// tool waits until the server has the tool.
func (u *used) tool(name string) tools.Tool {
	u.t.Helper()
	limit := time.After(time.Minute)
	for {
		select {
		case all := <-u.tools:
			if i := slices.IndexFunc(all, func(t tools.Tool) bool { return t.Spec().Name == name }); i >= 0 {
				return all[i]
			}
		case <-limit:
			u.t.Fatalf("no tool %s: %+v\n%s", name, u.servers.Status(), u.log.w.said())
		}
	}
}

func self(t *testing.T) string {
	t.Helper()
	file, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return file
}

// A program gets an environment of its own and none of our secrets; what it says goes to the log; and when it ends in the
// middle of a call, it is started again and the call isn't.
func TestProgram(t *testing.T) {
	t.Setenv("SLACK_BOT_TOKEN", "xoxb-made-up-000000")
	t.Setenv("PATH", "relative:"+os.Getenv("PATH"))
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	u := use(t, Server{Name: "p", Kind: Stdio, Command: self(t), Cwd: dir, Env: map[string]string{asServer: "1", "MINE": "yes"}})
	out, wrong := callTool(t, context.Background(), u.tool("mcp__p__environment"), `{}`)
	if wrong != nil {
		t.Fatal(wrong)
	}
	mustSay(t, out.Text, "MINE=yes", "\nPATH=/", "HOME=", "in "+dir)
	for _, secret := range []string{"xoxb-", "SLACK_", "relative"} {
		if strings.Contains(out.Text, secret) {
			t.Errorf("the server has %s:\n%s", secret, out.Text)
		}
	}
	mustSay(t, u.log.w.said(), "ready[0m for work")

	u2 := use(t, Server{Name: "q", Kind: Stdio, Command: self(t), Cwd: dir, Env: map[string]string{asServer: "1"}})
	die := u2.tool("mcp__q__die")
	if _, wrong := callTool(t, context.Background(), die, `{}`); wrong == nil || wrong.Code != tools.CodeUnknown {
		t.Errorf("%+v", wrong)
	}
	u2.tool("mcp__q__die") // it is up again
	mustSay(t, u2.log.w.said(), "exit status 7")
}

func TestProgramThatIsNotThere(t *testing.T) {
	for command, want := range map[string]string{
		"no-such-program-here": `no program \"no-such-program-here\" in the PATH`, "/nonexistent/x": "no such file",
	} {
		u := use(t, Server{Name: "p", Kind: Stdio, Command: command, Cwd: t.TempDir()})
		if s := u.servers.Status()[0]; s.Up || s.Err == nil {
			t.Errorf("%+v", s)
		}
		mustSay(t, u.log.w.said(), want)
	}
}

// remote serves an MCP server over streamable HTTP on loopback.
func remote(t *testing.T, make func(s *sdk.Server), wrap func(http.Handler) http.Handler) *httptest.Server {
	t.Helper()
	s := sdk.NewServer(&sdk.Implementation{Name: "http", Version: "1"}, nil)
	make(s)
	var h http.Handler = sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return s }, nil)
	if wrap != nil {
		h = wrap(h)
	}
	web := httptest.NewServer(h)
	t.Cleanup(func() {
		web.CloseClientConnections()
		web.Close()
	})
	return web
}

func TestHTTP(t *testing.T) {
	var bare atomic.Int64 // requests without the header
	web := remote(t, func(s *sdk.Server) {
		offer(s, "echo", giving(text("hello")))
		offer(s, "much", giving(text(strings.Repeat("x", 1<<20))))
		offer(s, "too much", giving(text(strings.Repeat("x", maxMessage+1))))
	}, func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Header.Get("Authorization") != "Bearer made-up" {
				bare.Add(1)
			}
			next.ServeHTTP(w, r)
		})
	})
	u := use(t, Server{Name: "web", Kind: HTTP, URL: web.URL + "/mcp", Headers: map[string]string{"Authorization": "Bearer made-up"}})
	echo := u.tool("mcp__web__echo")
	if out, wrong := callTool(t, context.Background(), echo, `{}`); wrong != nil || out.Text != "hello" {
		t.Errorf("%+v, %v", out, wrong)
	}
	if s := u.servers.Status()[0]; s.Tools != 3 {
		t.Errorf("%+v", s)
	}
	if n := bare.Load(); n > 0 {
		t.Errorf("%d requests had no header", n)
	}
}

func TestSSE(t *testing.T) {
	s := sdk.NewServer(&sdk.Implementation{Name: "sse", Version: "1"}, nil)
	offer(s, "echo", giving(text("hello")))
	web := httptest.NewServer(sdk.NewSSEHandler(func(*http.Request) *sdk.Server { return s }, nil))
	t.Cleanup(func() {
		web.CloseClientConnections()
		web.Close()
	})
	u := use(t, Server{Name: "web", Kind: SSE, URL: web.URL + "/sse"})
	if out, wrong := callTool(t, context.Background(), u.tool("mcp__web__echo"), `{}`); wrong != nil || out.Text != "hello" {
		t.Errorf("%+v, %v", out, wrong)
	}
}

// A server that dies leaves what it worked on unknown; a call that can't even be sent did nothing.
func TestHTTPThatBreaks(t *testing.T) {
	var web *httptest.Server
	began := make(chan struct{}, 1)
	web = remote(t, func(s *sdk.Server) {
		offer(s, "hang", func(ctx context.Context, _ *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
			began <- struct{}{}
			<-ctx.Done()
			return nil, ctx.Err()
		})
	}, nil)
	u := use(t, Server{Name: "web", Kind: HTTP, URL: web.URL, Timeout: 20 * time.Second})
	hang := u.tool("mcp__web__hang")
	go func() {
		<-began
		web.Listener.Close()
		web.CloseClientConnections()
	}()
	if _, wrong := callTool(t, context.Background(), hang, `{}`); wrong == nil || wrong.Code != tools.CodeUnknown && wrong.Code != tools.CodeTimeout {
		t.Errorf("%+v", wrong)
	}
	if _, wrong := callTool(t, context.Background(), hang, `{}`); wrong == nil || wrong.Code != tools.CodeToolFailed || !strings.Contains(wrong.Message, "nothing was done") {
		t.Errorf("%+v", wrong)
	}
}

// The headers are for the configured address: neither a redirect nor anything else takes them elsewhere.
func TestHeadersStayAtHome(t *testing.T) {
	var visits atomic.Int64
	elsewhere := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { visits.Add(1) }))
	defer elsewhere.Close()
	for _, code := range []int{http.StatusMovedPermanently, http.StatusTemporaryRedirect} {
		home := httptest.NewServer(http.RedirectHandler(elsewhere.URL, code))
		defer home.Close()
		u := use(t, Server{Name: "web", Kind: HTTP, URL: home.URL, Headers: map[string]string{"X-Key": "made-up"}})
		if s := u.servers.Status()[0]; s.Up || s.Err == nil {
			t.Errorf("%+v", s)
		}
	}
	// The older transport lets the server name the address to write to.
	sse := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprintf(w, "event: endpoint\ndata: %s/steal\n\n", elsewhere.URL)
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	}))
	defer sse.Close()
	u := use(t, Server{Name: "web", Kind: SSE, URL: sse.URL + "/mcp/s3cr3tpath", Headers: map[string]string{"X-Key": "made-up"}})
	s := u.servers.Status()[0]
	if s.Up || s.Err == nil || strings.Contains(s.Err.Error(), "s3cr3t") {
		t.Errorf("%+v", s)
	}
	if n := visits.Load(); n > 0 {
		t.Errorf("there were %d visits elsewhere", n)
	}
}

// What a server writes to its log is bounded, and read on whatever comes.
func TestLogLines(t *testing.T) {
	var w world
	s := &stderr{log: slog.New(slog.NewTextHandler(&w, nil)), up: true}
	s.read(strings.NewReader(strings.Repeat("x", 100_000) + "\n" + strings.Repeat("line\n", 1000) + "\xffend"))
	said := w.said()
	if n := strings.Count(said, "\n"); n > maxLines+1 || len(said) > 200*maxLines+2*maxLogLine {
		t.Errorf("%d lines, %d bytes", n, len(said))
	}
	mustSay(t, said, "more than is logged")
}
