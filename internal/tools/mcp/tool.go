package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"approvalbot/internal/spelling"
	"approvalbot/internal/tools"
)

const (
	maxTools       = 128  // of one server; more are left out
	maxDescription = 4096 // characters that a model gets of a description
	maxTitle       = 100
	maxLeftOut     = 32 // that are told by name
	maxNamed       = 10 // that are offered instead of one that there isn't
)

// A tool is one tool of a server, as the server defined it once. It keeps its definition; the server knows whether that
// still is the one.
type tool struct {
	server   *server
	original string // its name at the server
	spec     tools.Spec
	hash     string // of spec
}

// newTool makes a tool of what a server says of one. An error says why it is left out.
func newTool(s *server, d *sdk.Tool) (*tool, error) {
	if len(d.Name) > maxToolName || d.Name == "" || !printableName(d.Name) {
		return nil, fmt.Errorf("its name has to be 1 to %d characters that can be seen", maxToolName)
	}
	schema, err := inputSchema(d.InputSchema)
	if err != nil {
		return nil, err
	}
	description := cut(clean(d.Description), maxDescription)
	if description == "" {
		description = "A tool of the MCP server " + s.config.Name + " that says nothing of itself."
	}
	t := &tool{server: s, original: d.Name, spec: tools.Spec{
		Name: toolName(s.config.Name, d.Name), Description: description, InputSchema: schema,
		Annotations: annotations(d, s.config.Trust),
	}}
	set, err := tools.NewSet(t)
	if err != nil {
		return nil, errors.New(short(err.Error()))
	}
	t.hash, _ = set.Hash(t.spec.Name)
	return t, nil
}

// annotations are the server's hints as far as they count: all of a trusted one's, and of another none that would make
// its calls look more harmless than those of a tool that says nothing.
func annotations(d *sdk.Tool, trust bool) tools.Annotations {
	a := tools.Annotations{Title: cut(short(d.Title), maxTitle)}
	hints := d.Annotations
	if hints == nil {
		return a
	}
	if a.Title == "" {
		a.Title = cut(short(hints.Title), maxTitle)
	}
	if trust {
		a.ReadOnlyHint, a.DestructiveHint = hints.ReadOnlyHint, hints.DestructiveHint
		a.IdempotentHint, a.OpenWorldHint = hints.IdempotentHint, hints.OpenWorldHint
	}
	return a
}

func (t *tool) Spec() tools.Spec { return t.spec }

// Describe names server and tool by their own names, and shows the arguments whole.
func (t *tool) Describe(args json.RawMessage) (tools.Preview, error) {
	body := jsontext.Value(args).Clone()
	if err := body.Format(jsontext.Multiline(true), jsontext.WithIndent("  ")); err != nil {
		return tools.Preview{}, &tools.Error{Code: tools.CodeInvalidArguments, Message: "The arguments are not JSON."}
	}
	p := tools.Preview{
		Summary: t.summary(),
		Target:  t.original, Kind: tools.KindJSON, Body: string(body),
	}
	if with := t.server.config.credentials(); len(with) > 0 {
		p.RunsAs = t.server.lang.Tf("the MCP server %s, with %s", t.server.config.Name, strings.Join(with, ", "))
	}
	if !t.server.config.Trust {
		p.Notes = []string{t.server.lang.T("This server isn't marked as trusted: what it says of its tools doesn't count.")}
	}
	return p, nil
}

// summary names tool and server. A tool's name is the server's, and may be a sentence that names another server; one that
// isn't a plain word stands in quotes, behind the server, where it can't push that out of a line that is cut.
func (t *tool) summary() string {
	if plainWord.MatchString(t.original) {
		return t.server.lang.Tf("Call %s of the MCP server %s", t.original, t.server.config.Name)
	}
	return t.server.lang.Tf("Call of the MCP server %s: the tool “%s”", t.server.config.Name, quotes.Replace(t.original))
}

// plainWord is a name as the protocol wants them, and short enough to be read as one.
var plainWord = regexp.MustCompile(`^[a-zA-Z0-9_./-]{1,64}$`)

// quotes keeps a name from ending the quotes that it stands in.
var quotes = strings.NewReplacer("“", `"`, "”", `"`, "„", `"`, "‟", `"`)

// Call sends the call out, once. See the package comment for how it ends.
func (t *tool) Call(ctx context.Context, args json.RawMessage) (tools.Output, error) {
	limited, cancel := context.WithTimeout(ctx, t.server.config.Timeout)
	defer cancel()
	l, err := t.server.lifeFor(limited, t)
	if err == nil {
		err = limited.Err()
	}
	if wrong, ok := errors.AsType[*tools.Error](err); ok {
		return tools.Output{}, wrong
	}
	if err != nil {
		return tools.Output{}, &tools.Error{Code: tools.CodeAborted, Message: "Stopped before the call was sent; nothing was done."}
	}
	var waiting sync.WaitGroup
	defer waiting.Wait()
	defer cancel()
	waiting.Go(func() { // a session that is over answers nothing more
		select {
		case <-l.over:
			cancel()
		case <-limited.Done():
		}
	})
	var sent atomic.Bool
	res, err := l.session.CallTool(noteSent(limited, &sent), &sdk.CallToolParams{Name: t.original, Arguments: args})
	if errors.Is(err, sdk.ErrConnectionClosed) {
		l.fails()
	}
	if err != nil {
		return tools.Output{}, t.failure(ctx, limited, err, sent.Load())
	}
	return t.output(res)
}

// The codes of errors that the protocol's library makes itself when a message could not be sent or answered. A server that
// uses one of them gets the careful reading, too.
const (
	codeClientClosing = -32003
	codeServerClosing = -32004
	codeRejected      = -32005
)

// failure says what is known of a call that has no result. What can't be told apart counts as outcome unknown.
func (t *tool) failure(ctx, limited context.Context, err error, sent bool) *tools.Error {
	who := t.server.label()
	refused := func(code tools.Code, format string, args ...any) *tools.Error {
		return &tools.Error{Code: code, Message: who + " " + fmt.Sprintf(format, args...)}
	}
	wire, answered := errors.AsType[*jsonrpc.Error](err)
	answered = answered && wire.Code != codeRejected && wire.Code != codeClientClosing && wire.Code != codeServerClosing
	switch {
	case ctx.Err() != nil && !sent:
		return refused(tools.CodeAborted, "was not told of the call any more; nothing was done.")
	case ctx.Err() != nil:
		return refused(tools.CodeAborted, "was told to cancel the call while it worked on it; it may be partly performed.")
	case !sent, errors.Is(err, sdk.ErrSessionMissing): // the latter: a session that the server doesn't have any more
		t.server.log.Warn("an MCP call could not be sent", "server", t.server.config.Name, "tool", t.original, "error", t.server.said(err))
		return refused(tools.CodeToolFailed, "can't be reached at the moment; nothing was done.")
	case errors.Is(limited.Err(), context.DeadlineExceeded):
		return refused(tools.CodeTimeout, "did not answer within %s and was told to cancel the call; it may be partly performed.", t.server.config.Timeout)
	case answered:
		e := refused(tools.CodeToolFailed, "refused the call (JSON-RPC error %d).", wire.Code)
		e.Output = cut(clean(wire.Message), maxDescription)
		return e
	}
	t.server.log.Warn("an MCP call has no result", "server", t.server.config.Name, "tool", t.original, "error", t.server.said(err))
	return refused(tools.CodeUnknown, "ended while it worked on the call, or the connection to it broke. Whether the call was performed is not known.")
}

// label is the server in a sentence.
func (s *server) label() string { return "The MCP server " + s.config.Name }

// toolsOf makes tools of a server's list, in its order. What is left out is told, each with why.
func (s *server) toolsOf(list []*sdk.Tool) (all []*tool, leftOut []string) {
	seen := map[string]bool{}
	wanted := map[string]bool{}
	for _, name := range s.config.Tools {
		wanted[name] = true
	}
	for _, d := range list {
		if len(wanted) > 0 && !wanted[d.Name] {
			continue
		}
		t, err := newTool(s, d)
		switch {
		case err != nil:
		case seen[t.spec.Name]:
			err = errors.New("the server lists two tools of that name")
		case len(all) == maxTools:
			err = fmt.Errorf("the server has more than %d tools; name those that you need in \"tools\"", maxTools)
		}
		if err != nil {
			if len(leftOut) < maxLeftOut {
				leftOut = append(leftOut, short(d.Name)+": "+err.Error())
			}
			continue
		}
		seen[t.spec.Name] = true
		all = append(all, t)
	}
	return all, append(leftOut, s.missing(list)...)
}

// missing says which tools are named in the configuration that the server doesn't have, and once which it has.
func (s *server) missing(list []*sdk.Tool) (all []string) {
	names := make([]string, min(len(list), maxListed))
	for i := range names {
		names[i] = cut(short(list[i].Name), maxToolName)
	}
	for _, name := range s.config.Tools {
		if slices.ContainsFunc(list, func(d *sdk.Tool) bool { return d.Name == name }) {
			continue
		}
		why := short(name) + `: it is named in "tools", and the server has no such tool.` + spelling.DidYouMean(name, names)
		if len(all) == 0 {
			why += " " + some(names)
		}
		all = append(all, why)
	}
	return all
}

// some are the first names of a server's tools, in a sentence.
func some(names []string) string {
	if len(names) == 0 {
		return "It has none."
	}
	shown := names[:min(len(names), maxNamed)]
	more := ""
	if n := len(names) - len(shown); n > 0 {
		more = fmt.Sprintf(" and %d more", n)
	}
	return "It has " + strings.Join(shown, ", ") + more + "."
}

// backoff is how long to wait before the n-th start in a row, from 1.
func backoff(n int) time.Duration { return min(time.Second<<min(n-1, 10), time.Minute) }
