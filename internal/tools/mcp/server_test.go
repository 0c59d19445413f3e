//lint:file-ignore SA1019 Servers still use what is deprecated, and have to be answered.

package mcp

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"approvalbot/internal/tools"
)

func TestCall(t *testing.T) {
	var got string
	inWorld(t, func(s *sdk.Server) {
		offer(s, "echo", func(_ context.Context, req *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
			got = string(req.Params.Arguments)
			return &sdk.CallToolResult{Content: []sdk.Content{text("said")}}, nil
		})
	}, func(w *world) {
		out, wrong := w.call("mcp__srv__echo", `{"a":1.0,"b":"<é>"}`)
		if wrong != nil || out.Text != "said" || out.Truncated {
			t.Errorf("%+v, %v", out, wrong)
		}
		if got != `{"a":1.0,"b":"<é>"}` && got != `{"a":1.0,"b":"\u003cé\u003e"}` {
			t.Errorf("the server got %s", got)
		}
		if s := w.servers.Status()[0]; !s.Up || s.Tools != 1 || s.Err != nil {
			t.Errorf("%+v", s)
		}
	})
}

// Every kind of content is told to the model, as text or by what it is.
func TestContent(t *testing.T) {
	for name, test := range map[string]struct {
		content    []sdk.Content
		structured any
		want       string
	}{
		"nothing":     {nil, nil, "[The tool succeeded and returned nothing.]"},
		"text":        {[]sdk.Content{text("a"), text("b")}, nil, "a\nb"},
		"image":       {[]sdk.Content{&sdk.ImageContent{Data: make([]byte, 17), MIMEType: "image/png"}}, nil, "[image, image/png, 17 bytes: not shown, only text is passed on]"},
		"audio":       {[]sdk.Content{&sdk.AudioContent{Data: make([]byte, 3)}}, nil, "[audio, of an unnamed type, 3 bytes: not shown, only text is passed on]"},
		"link":        {[]sdk.Content{&sdk.ResourceLink{URI: "demo://1", Name: "one", MIMEType: "text/plain"}}, nil, "[link to a resource: demo://1, one, text/plain]"},
		"resource":    {[]sdk.Content{&sdk.EmbeddedResource{Resource: &sdk.ResourceContents{URI: "demo://1", Text: "hello"}}}, nil, "[resource demo://1]\nhello"},
		"blob":        {[]sdk.Content{&sdk.EmbeddedResource{Resource: &sdk.ResourceContents{URI: "demo://1", Blob: make([]byte, 5), MIMEType: "a/b"}}}, nil, "[resource demo://1]\n[content, a/b, 5 bytes: not shown, only text is passed on]"},
		"structured":  {nil, map[string]any{"n": 1}, `{"n":1}`},
		"said twice":  {[]sdk.Content{text("{ \"n\": 1 }")}, map[string]any{"n": 1}, `{ "n": 1 }`},
		"differently": {[]sdk.Content{text("one")}, map[string]any{"n": 1}, "one\n{\"n\":1}"},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(s *sdk.Server) {
				offer(s, "get", func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
					return &sdk.CallToolResult{Content: test.content, StructuredContent: test.structured}, nil
				})
			}, func(w *world) {
				out, wrong := w.call("mcp__srv__get", `{}`)
				if diff := cmp.Diff(test.want, out.Text); wrong != nil || diff != "" {
					t.Errorf("%v %s", wrong, diff)
				}
			})
		})
	}
}

// A megabyte is kept as far as other outputs are, with the cut marked; what isn't UTF-8 becomes it.
func TestOutputIsBounded(t *testing.T) {
	inWorld(t, func(s *sdk.Server) {
		offer(s, "much", giving(text("begin "+strings.Repeat("ä", 1<<20)+" end")))
		offer(s, "error", func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
			return &sdk.CallToolResult{IsError: true, Content: []sdk.Content{text(strings.Repeat("x", 1<<20))}}, nil
		})
		offer(s, "bytes", giving(text("a\xff\xfeb")))
	}, func(w *world) {
		out, wrong := w.call("mcp__srv__much", `{}`)
		if wrong != nil || !out.Truncated || len(out.Text) > defaultMaxOutput+100 || !utf8.ValidString(out.Text) {
			t.Errorf("%d bytes, truncated %v, %v", len(out.Text), out.Truncated, wrong)
		}
		mustSay(t, out.Text, "begin ", "bytes left out", " end")
		if _, wrong := w.call("mcp__srv__error", `{}`); wrong == nil || len(wrong.Output) > defaultMaxOutput+100 {
			t.Errorf("%v", wrong)
		}
		if out, wrong := w.call("mcp__srv__bytes", `{}`); wrong != nil || !utf8.ValidString(out.Text) || !strings.HasPrefix(out.Text, "a") {
			t.Errorf("%q, %v", out.Text, wrong)
		}
	})
}

func TestErrors(t *testing.T) {
	inWorld(t, func(s *sdk.Server) {
		offer(s, "fail", func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
			return &sdk.CallToolResult{IsError: true, Content: []sdk.Content{text("no such file")}}, nil
		})
		offer(s, "refuse", func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
			return nil, &jsonrpc.Error{Code: -32000, Message: "not \x1btoday"}
		})
	}, func(w *world) {
		_, wrong := w.call("mcp__srv__fail", `{}`)
		want := &tools.Error{Code: tools.CodeToolFailed, Message: "The MCP server srv says that fail failed.", Output: "no such file"}
		if diff := cmp.Diff(want, wrong); diff != "" {
			t.Error(diff)
		}
		_, wrong = w.call("mcp__srv__refuse", `{}`)
		want = &tools.Error{Code: tools.CodeToolFailed, Message: "The MCP server srv refused the call (JSON-RPC error -32000).", Output: "not today"}
		if diff := cmp.Diff(want, wrong); diff != "" {
			t.Error(diff)
		}
	})
}

// A call ends with its limit also when the server doesn't; the server is told.
func TestTimeLimit(t *testing.T) {
	began, told := make(chan struct{}, 1), make(chan struct{}, 1)
	inChangedWorld(t, func(w *world) {
		w.config.Timeout = 7 * time.Second
		w.make = func(s *sdk.Server) { offer(s, "hang", hanging(began, told)) }
	}, func(w *world) {
		start := time.Now()
		_, wrong := w.call("mcp__srv__hang", `{}`)
		if wrong == nil || wrong.Code != tools.CodeTimeout || time.Since(start) != 7*time.Second {
			t.Errorf("after %s: %v", time.Since(start), wrong)
		}
		<-began
		<-told
	})
}

// A stopped call is cancelled at the server, and may be partly performed.
func TestAbort(t *testing.T) {
	began, told := make(chan struct{}, 1), make(chan struct{}, 1)
	inWorld(t, func(s *sdk.Server) { offer(s, "hang", hanging(began, told)) }, func(w *world) {
		ctx, cancel := context.WithCancel(context.Background())
		go func() {
			<-began
			cancel()
		}()
		_, wrong := w.callWith(ctx, "mcp__srv__hang", `{}`)
		if wrong == nil || wrong.Code != tools.CodeAborted || !strings.Contains(wrong.Message, "may be partly performed") {
			t.Errorf("%v", wrong)
		}
		<-told
		// One that is stopped before says that nothing was done.
		_, wrong = w.callWith(ctx, "mcp__srv__hang", `{}`)
		if wrong == nil || wrong.Code != tools.CodeAborted || !strings.Contains(wrong.Message, "nothing was done") {
			t.Errorf("%v", wrong)
		}
	})
}

// A server that ends in the middle of a call leaves its outcome unknown, and the call isn't made again with the next life.
func TestCrashInTheMiddle(t *testing.T) {
	calls := 0
	inChangedWorld(t, func(w *world) {
		w.make = func(s *sdk.Server) {
			offer(s, "crash", func(ctx context.Context, _ *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
				calls++
				go w.session.Close()
				<-ctx.Done()
				return nil, ctx.Err()
			})
		}
	}, func(w *world) {
		crash := w.tool("mcp__srv__crash")
		_, wrong := callTool(t, context.Background(), crash, `{}`)
		if wrong == nil || wrong.Code != tools.CodeUnknown || !strings.Contains(wrong.Message, "not known") {
			t.Errorf("%+v", wrong)
		}
		synctest.Wait()
		if s := w.servers.Status()[0]; s.Up || s.Err == nil || len(w.now()) != 0 {
			t.Errorf("%+v, %d tools", s, len(w.now()))
		}
		_, wrong = callTool(t, context.Background(), crash, `{}`)
		if wrong == nil || wrong.Code != tools.CodeToolFailed || !strings.Contains(wrong.Message, "nothing was done") {
			t.Errorf("%+v", wrong)
		}
		pass(2 * time.Second)
		if s := w.servers.Status()[0]; !s.Up || w.dials != 2 || calls != 1 {
			t.Errorf("%+v after %d dials and %d calls\n%s", s, w.dials, calls, w.said())
		}
	})
}

// When the servers are ended, nobody waits for the calls that are on their way.
func TestEndWithACallOnItsWay(t *testing.T) {
	began := make(chan struct{}, 1)
	inWorld(t, func(s *sdk.Server) {
		offer(s, "stubborn", func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
			began <- struct{}{}
			time.Sleep(time.Minute)
			return &sdk.CallToolResult{}, nil
		})
	}, func(w *world) {
		stubborn := w.tool("mcp__srv__stubborn")
		start := time.Now()
		ended := make(chan *tools.Error)
		go func() {
			_, wrong := callTool(t, context.Background(), stubborn, `{}`)
			ended <- wrong
		}()
		<-began
		go w.end()
		if wrong := <-ended; wrong == nil || wrong.Code != tools.CodeUnknown || time.Since(start) > time.Second {
			t.Errorf("after %s: %v", time.Since(start), wrong)
		}
		time.Sleep(2 * time.Minute) // for the server itself
	})
}

// A server that doesn't come up is tried again, less and less often, and comes up when it can.
func TestBackoff(t *testing.T) {
	inChangedWorld(t, func(w *world) {
		w.refuse = errors.New("no such program")
		w.make = func(s *sdk.Server) { offer(s, "a", giving()) }
	}, func(w *world) {
		<-w.servers.Settled()
		mustSay(t, fmt.Sprint(w.servers.Status()[0].Err), "no such program")
		pass(10 * time.Minute)
		if w.dials < 10 || w.dials > 20 {
			t.Errorf("%d dials in ten minutes", w.dials)
		}
		w.becomes(func() { w.refuse = nil })
		pass(80 * time.Second)
		if s := w.servers.Status()[0]; !s.Up || s.Err != nil {
			t.Errorf("%+v", s)
		}
	})
}

// A server that never answers keeps nobody waiting for longer than its limit.
func TestSilentServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &world{t: t, config: Server{Name: "srv", Kind: Stdio, Timeout: callTimeout}}
		w.reach = func() sdk.Transport {
			ours, theirs := sdk.NewInMemoryTransports()
			c, err := theirs.Connect(context.Background())
			if err != nil {
				return broken{err}
			}
			go func() {
				for {
					if _, err := c.Read(context.Background()); err != nil {
						c.Close()
						return
					}
				}
			}()
			return ours
		}
		start := time.Now()
		w.start()
		<-w.servers.Settled()
		if waited := time.Since(start); waited != startLimit {
			t.Errorf("settled after %s", waited)
		}
		mustSay(t, fmt.Sprint(w.servers.Status()[0].Err), "did not come up within 30s")
		w.stop()
	})
}

// A server that is silent when it is spoken to in the newest way is spoken to in the older one.
func TestOlderServer(t *testing.T) {
	asked := 0
	inChangedWorld(t, func(w *world) {
		w.make = func(s *sdk.Server) { offer(s, "a", giving(text("ok"))) }
		w.reach = w.older(&asked)
	}, func(w *world) {
		pass(2 * startLimit)
		if s := w.servers.Status()[0]; !s.Up || asked != 1 {
			t.Errorf("%+v after %d questions", s, asked)
		}
		if out, wrong := w.call("mcp__srv__a", `{}`); wrong != nil || out.Text != "ok" {
			t.Errorf("%v %v", out, wrong)
		}
	})
}

// older reaches a server that is silent when it is spoken to in the newest way, and counts that.
func (w *world) older(asked *int) func() sdk.Transport {
	return func() sdk.Transport {
		s := sdk.NewServer(&sdk.Implementation{Name: "old", Version: "1"}, nil)
		w.make(s)
		ours, theirs := sdk.NewInMemoryTransports()
		if _, err := s.Connect(context.Background(), silent{theirs, asked}, nil); err != nil {
			return broken{err}
		}
		return ours
	}
}

// silent is a server's side of a transport that never hears what begins in the newest way.
type silent struct {
	sdk.Transport
	asked *int
}

func (s silent) Connect(ctx context.Context) (sdk.Connection, error) {
	c, err := s.Transport.Connect(ctx)
	return silentConnection{c, s.asked}, err
}

type silentConnection struct {
	sdk.Connection
	asked *int
}

func (c silentConnection) Read(ctx context.Context) (jsonrpc.Message, error) {
	for {
		msg, err := c.Connection.Read(ctx)
		if req, ok := msg.(*jsonrpc.Request); ok && req.Method == "server/discover" {
			*c.asked++
			continue
		}
		return msg, err
	}
}

// What a server says besides its answers changes nothing.
func TestNotices(t *testing.T) {
	inWorld(t, func(s *sdk.Server) {
		offer(s, "talk", func(ctx context.Context, req *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
			for i := range 50 {
				_ = req.Session.NotifyProgress(ctx, &sdk.ProgressNotificationParams{ProgressToken: "x", Progress: float64(i)})
			}
			return &sdk.CallToolResult{Content: []sdk.Content{text("done")}}, nil
		})
	}, func(w *world) {
		if out, wrong := w.call("mcp__srv__talk", `{}`); wrong != nil || out.Text != "done" {
			t.Errorf("%v %v", out, wrong)
		}
	})
}

// The definitions that count are those of the moment, and a call made for another one doesn't go out.
func TestListChanged(t *testing.T) {
	ran := 0
	counting := func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		ran++
		return &sdk.CallToolResult{}, nil
	}
	inWorld(t, func(s *sdk.Server) {
		offer(s, "a", counting)
		offer(s, "b", counting)
	}, func(w *world) {
		a, b := w.tool("mcp__srv__a"), w.tool("mcp__srv__b")
		w.remote.AddTool(&sdk.Tool{Name: "a", Description: "Does something else.", InputSchema: anything}, counting)
		w.remote.RemoveTools("b")
		pass(5 * time.Second)
		if len(w.now()) != 1 || w.tool("mcp__srv__a").Spec().Description != "Does something else." {
			t.Errorf("the tools are %v", w.now())
		}
		for _, old := range []tools.Tool{a, b} {
			if _, wrong := callTool(t, context.Background(), old, `{}`); wrong == nil || !strings.Contains(wrong.Message, "has changed or removed its tool") {
				t.Errorf("%v", wrong)
			}
		}
		if _, wrong := w.call("mcp__srv__a", `{}`); wrong != nil || ran != 1 {
			t.Errorf("%v after %d calls", wrong, ran)
		}
		// Back as it was, the old tool is the tool again.
		offer(w.remote, "a", counting)
		pass(5 * time.Second)
		if _, wrong := callTool(t, context.Background(), a, `{}`); wrong != nil || ran != 2 {
			t.Errorf("%v after %d calls", wrong, ran)
		}
	})
}

// Between the notice of a change and the new list nobody knows what a tool is, so a call waits.
func TestCallWaitsForTheList(t *testing.T) {
	inWorld(t, func(s *sdk.Server) { offer(s, "a", giving(text("ok"))) }, func(w *world) {
		a := w.tool("mcp__srv__a")
		w.servers.servers[0].unlisted()
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		if _, wrong := callTool(t, ctx, a, `{}`); wrong == nil || wrong.Code != tools.CodeAborted || !strings.Contains(wrong.Message, "nothing was done") {
			t.Errorf("%v", wrong)
		}
		// A notice of the server's own does the same.
		offer(w.remote, "b", giving())
		pass(100 * time.Millisecond) // it is listed again
		offer(w.remote, "c", giving())
		pass(100 * time.Millisecond) // it isn't yet
		if w.servers.servers[0].listing == nil {
			t.Error("it isn't known that the tools changed")
		}
		if out, wrong := callTool(t, context.Background(), a, `{}`); wrong != nil || out.Text != "ok" {
			t.Errorf("%v, %v", out, wrong)
		}
	})
}

// Tools that can't be recorded can't be used: the server counts as down and is tried again.
func TestUnpublishedToolsAreNotUsed(t *testing.T) {
	inChangedWorld(t, func(w *world) {
		w.fail = errors.New("the journal is full")
		w.make = func(s *sdk.Server) { offer(s, "a", giving()) }
	}, func(w *world) {
		<-w.servers.Settled()
		if s := w.servers.Status()[0]; s.Up || !strings.Contains(fmt.Sprint(s.Err), "journal is full") {
			t.Errorf("%+v", s)
		}
		w.becomes(func() { w.fail = nil })
		pass(10 * time.Second)
		if s := w.servers.Status()[0]; !s.Up {
			t.Errorf("%+v", s)
		}
	})
}

// What a server asks of us is refused: neither people, models nor files are at its service.
func TestNothingIsGiven(t *testing.T) {
	var errs []error
	var caps *sdk.ClientCapabilities
	asked := 0
	inChangedWorld(t, func(w *world) {
		w.make = func(s *sdk.Server) {
			offer(s, "ask", func(ctx context.Context, req *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
				caps = req.Session.InitializeParams().Capabilities
				_, err := req.Session.ListRoots(ctx, nil)
				errs = append(errs, err)
				_, err = req.Session.Elicit(ctx, &sdk.ElicitParams{Message: "your password?", RequestedSchema: anything})
				errs = append(errs, err)
				_, err = req.Session.CreateMessage(ctx, &sdk.CreateMessageParams{MaxTokens: 1})
				errs = append(errs, err)
				return &sdk.CallToolResult{}, nil
			})
		}
		w.reach = w.older(&asked) // in which servers ask as they please
	}, func(w *world) {
		pass(2 * startLimit)
		if _, wrong := w.call("mcp__srv__ask", `{}`); wrong != nil {
			t.Error(wrong)
		}
		for i, err := range errs {
			if err == nil {
				t.Errorf("request %d was answered", i)
			}
		}
		if len(errs) != 3 {
			t.Errorf("%d requests", len(errs))
		}
		if caps == nil || caps.Sampling != nil || caps.Elicitation != nil || caps.RootsV2 != nil {
			t.Errorf("we declare %+v", caps)
		}
	})
}

// Also a server that doesn't look at what we declare gets no answer.
func TestRequestsAreRefused(t *testing.T) {
	h := refuseRequests(func(context.Context, string, sdk.Request) (sdk.Result, error) { return nil, nil })
	for method, refused := range map[string]bool{"roots/list": true, "sampling/createMessage": true, "elicitation/create": true, "ping": false} {
		if _, err := h(context.Background(), method, nil); (err != nil) != refused {
			t.Errorf("%s: %v", method, err)
		}
	}
}

// A result that asks for more before it goes on is an error, and the call isn't repeated.
func TestInputRequiredIsAnError(t *testing.T) {
	calls := 0
	inWorld(t, func(s *sdk.Server) {
		offer(s, "more", func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
			calls++
			return &sdk.CallToolResult{InputRequests: sdk.InputRequestMap{"x": &sdk.ListRootsParams{}}}, nil
		})
	}, func(w *world) {
		_, wrong := w.call("mcp__srv__more", `{}`)
		if wrong == nil || calls != 1 || !strings.Contains(wrong.Message, "wants further input") {
			t.Errorf("%v after %d calls", wrong, calls)
		}
	})
}

// A tool that we can't use is left out, and the others stay.
func TestToolsLeftOut(t *testing.T) {
	remote := func(schema map[string]any) *sdk.Tool { return &sdk.Tool{Name: "bad", InputSchema: schema} }
	for name, bad := range map[string]struct {
		tool *sdk.Tool
		why  string
	}{
		"remote reference": {remote(map[string]any{"type": "object", "properties": map[string]any{"a": map[string]any{"$ref": "https://example.com/s.json"}}}), "only references into itself"},
		"missing":          {remote(map[string]any{"type": "object", "properties": map[string]any{"a": map[string]any{"$ref": "#/$defs/none"}}}), "can't be used"},
		"endless":          {remote(map[string]any{"type": "object", "allOf": []any{map[string]any{"$ref": "#"}}}), "without end"},
		"bad pattern":      {remote(map[string]any{"type": "object", "properties": map[string]any{"a": map[string]any{"pattern": "(?=x)"}}}), "can't be used"},
		"hidden name":      {&sdk.Tool{Name: "ba\u202ed", InputSchema: anything}, "characters that can be seen"},
		"long name":        {&sdk.Tool{Name: strings.Repeat("b", 129), InputSchema: anything}, "characters that can be seen"},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(s *sdk.Server) {
				offer(s, "good", giving())
				s.AddTool(bad.tool, giving())
			}, func(w *world) {
				s := w.servers.Status()[0]
				if s.Tools != 1 || len(s.LeftOut) != 1 || !strings.Contains(s.LeftOut[0], bad.why) {
					t.Errorf("%+v", s)
				}
				w.tool("mcp__srv__good")
				mustSay(t, w.said(), "is left out")
			})
		})
	}
}

// Only so many tools of a server are offered, and only those that the operator named.
func TestTooManyTools(t *testing.T) {
	many := func(s *sdk.Server) {
		for i := range maxTools + 50 {
			offer(s, fmt.Sprintf("t%03d", i), giving())
		}
	}
	inWorld(t, many, func(w *world) {
		if s := w.servers.Status()[0]; s.Tools != maxTools || len(s.LeftOut) != maxLeftOut {
			t.Errorf("%d tools, %d left out", s.Tools, len(s.LeftOut))
		}
	})
	inChangedWorld(t, func(w *world) { w.config.Tools, w.make = []string{"t150", "typo"}, many }, func(w *world) {
		s := w.servers.Status()[0]
		if s.Tools != 1 || len(s.LeftOut) != 1 || !strings.Contains(s.LeftOut[0], "typo: it is named") {
			t.Errorf("%+v", s)
		}
		w.tool("mcp__srv__t150")
	})
}

// A list of tools comes in pages, as many as the server likes. Neither their number nor what is in them may be without end.
func TestListsWithoutEnd(t *testing.T) {
	for name, c := range map[string]struct {
		tools int // on each page
		size  int // of a description
		want  string
	}{
		"pages with nothing":   {0, 0, "the list has no end"},
		"pages with few tools": {1, 8 << 20, "the list has more than 33554432 bytes"},
		"pages with many":      {2000, 1, "the list has no end"},
	} {
		t.Run(name, func(t *testing.T) {
			pages := 0
			endless := func(s *sdk.Server) {
				offer(s, "a", giving())
				s.AddReceivingMiddleware(func(next sdk.MethodHandler) sdk.MethodHandler {
					return func(ctx context.Context, method string, req sdk.Request) (sdk.Result, error) {
						if method != "tools/list" {
							return next(ctx, method, req)
						}
						pages++
						page := &sdk.ListToolsResult{NextCursor: fmt.Sprint(pages), Tools: []*sdk.Tool{}}
						for i := range c.tools {
							page.Tools = append(page.Tools, &sdk.Tool{Name: fmt.Sprintf("t%d_%d", pages, i), Description: strings.Repeat("x", c.size), InputSchema: anything})
						}
						return page, nil
					}
				})
			}
			inWorld(t, endless, func(w *world) {
				if !strings.Contains(w.said(), c.want) || pages > maxPages {
					t.Errorf("%d pages, and no %q in %s", pages, c.want, w.said())
				}
			})
		})
	}
}
