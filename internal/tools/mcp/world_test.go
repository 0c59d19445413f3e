package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"approvalbot/internal/tools"
)

// A world is one MCP server, made with the official SDK and reached through memory, and our side of it.
type world struct {
	t       *testing.T
	config  Server
	make    func(s *sdk.Server)  // what each life of the server offers
	refuse  error                // what a dial gives instead of a connection
	fail    error                // what publishing gives
	reach   func() sdk.Transport // how the server is reached; nil: as a server of the SDK
	dials   int
	remote  *sdk.Server        // of the present life
	session *sdk.ServerSession // of the present life

	servers *Servers
	end     context.CancelFunc
	ended   chan error

	mu        sync.Mutex
	log       strings.Builder
	published [][]tools.Tool
}

func (w *world) Write(line []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.log.Write(line)
}

func (w *world) said() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.log.String()
}

// inWorld runs a scenario with a server in a bubble, where time passes only when everybody waits.
func inWorld(t *testing.T, offer func(s *sdk.Server), body func(w *world)) {
	inChangedWorld(t, func(w *world) { w.make = offer }, body)
}

func inChangedWorld(t *testing.T, change, body func(w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := &world{t: t, config: Server{Name: "srv", Kind: Stdio, Command: "in-memory", Timeout: callTimeout}}
		change(w)
		w.start()
		synctest.Wait()
		body(w)
		w.stop()
	})
}

func (w *world) start() {
	w.servers = New(Config{Servers: []Server{w.config}}, Options{
		Version: "test", Logger: slog.New(slog.NewTextHandler(w, nil)),
		Publish: func(_ context.Context, server string, all []tools.Tool) error {
			w.mu.Lock()
			defer w.mu.Unlock()
			if w.fail != nil && len(all) > 0 {
				return w.fail
			}
			w.published = append(w.published, all)
			return nil
		},
	})
	w.servers.servers[0].dial = w.dial
	if w.reach != nil {
		w.servers.servers[0].dial = w.reach
	}
	var ctx context.Context
	ctx, w.end = context.WithCancel(context.Background())
	w.ended = make(chan error, 1)
	go func() { w.ended <- w.servers.Run(ctx) }()
}

// stop is also the check that nothing is left: a bubble whose goroutines wait for ever fails.
func (w *world) stop() {
	if w.end == nil {
		return
	}
	w.end()
	w.end = nil
	if err := <-w.ended; err != nil {
		w.t.Error(err)
	}
}

type broken struct{ err error }

func (b broken) Connect(context.Context) (sdk.Connection, error) { return nil, b.err }

func (w *world) dial() sdk.Transport {
	w.mu.Lock()
	w.dials++
	refuse := w.refuse
	w.mu.Unlock()
	if refuse != nil {
		return broken{refuse}
	}
	w.remote = sdk.NewServer(&sdk.Implementation{Name: "remote", Version: "1"}, nil)
	w.make(w.remote)
	ours, theirs := sdk.NewInMemoryTransports()
	session, err := w.remote.Connect(context.Background(), theirs, nil)
	if err != nil {
		return broken{err}
	}
	w.session = session
	return ours
}

// becomes changes what the server does from now on.
func (w *world) becomes(change func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	change()
}

// now are the tools that were published last.
func (w *world) now() []tools.Tool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.published) == 0 {
		return nil
	}
	return w.published[len(w.published)-1]
}

func (w *world) tool(name string) tools.Tool {
	w.t.Helper()
	for _, t := range w.now() {
		if t.Spec().Name == name {
			return t
		}
	}
	w.t.Fatalf("there is no tool %s; the log says\n%s", name, w.said())
	return nil
}

func (w *world) call(name, args string) (tools.Output, *tools.Error) {
	w.t.Helper()
	return w.callWith(context.Background(), name, args)
}

func (w *world) callWith(ctx context.Context, name, args string) (tools.Output, *tools.Error) {
	w.t.Helper()
	return callTool(w.t, ctx, w.tool(name), args)
}

func callTool(t *testing.T, ctx context.Context, tool tools.Tool, args string) (tools.Output, *tools.Error) {
	t.Helper()
	out, err := tool.Call(ctx, json.RawMessage(args))
	if err == nil {
		return out, nil
	}
	wrong, ok := errors.AsType[*tools.Error](err)
	if !ok {
		t.Fatalf("%T is no error for the model: %v", err, err)
	}
	return out, wrong
}

func mustSay(t *testing.T, text string, words ...string) {
	t.Helper()
	for _, w := range words {
		if !strings.Contains(text, w) {
			t.Errorf("it doesn't say %q:\n%s", w, text)
		}
	}
}

// anything is the schema of a tool that takes what it gets.
var anything = map[string]any{"type": "object"}

type handler = func(ctx context.Context, req *sdk.CallToolRequest) (*sdk.CallToolResult, error)

// offer adds a tool with that handler.
func offer(s *sdk.Server, name string, h handler) {
	s.AddTool(&sdk.Tool{Name: name, Description: "Does " + name + ".", InputSchema: anything}, h)
}

// giving is a handler with that content.
func giving(content ...sdk.Content) handler {
	return func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		return &sdk.CallToolResult{Content: content}, nil
	}
}

func text(s string) sdk.Content { return &sdk.TextContent{Text: s} }

// hanging is a handler that works until it is told to stop, and tells what it was told.
func hanging(began, told chan<- struct{}) handler {
	return func(ctx context.Context, _ *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		began <- struct{}{}
		<-ctx.Done()
		told <- struct{}{}
		return nil, ctx.Err()
	}
}

func pass(d time.Duration) {
	time.Sleep(d) // in a bubble: fake time
	synctest.Wait()
}
