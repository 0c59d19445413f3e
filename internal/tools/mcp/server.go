package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"approvalbot/internal/language"
	"approvalbot/internal/tools"
)

const (
	startLimit = 30 * time.Second // to come up
	listLimit  = 30 * time.Second // to name its tools
	listPause  = time.Second      // between two lists, however often a server says that it changed
	closeLimit = 5 * time.Second  // to be told that we go
	steady     = time.Minute      // up for so long, a server's failures are forgotten
	maxListed  = 10_000           // tools that are read of a list
	maxPages   = 1000             // in which it may come
	maxList    = 32 << 20         // bytes of it, together
)

// oldProtocol is the latest version of the protocol that begins with a handshake. A server that doesn't answer the newer
// way of beginning is spoken to in this one the next time.
const oldProtocol = "2025-11-25"

// A server is one MCP server. Its run is the only one that changes it.
type server struct {
	config    Server
	version   string
	maxOutput int
	log       *slog.Logger
	lang      language.Language // of what people read
	publish   func(ctx context.Context, server string, all []tools.Tool) error
	dial      func() sdk.Transport // in tests: how it is reached

	protocol string // to begin with; empty: the newest

	mu      sync.Mutex
	life    *life             // nil: it isn't up
	tools   map[string]string // hashes of the definitions that stand, by the tools' names here
	listing chan struct{}     // closed when the definitions are known again; nil: they are
	notices int               // how often the server said that they changed
	leftOut []string
	err     error
}

// A life is one session with a server, from its beginning to its end.
type life struct {
	session *sdk.ClientSession
	over    chan struct{} // closed when nothing more is to be expected of it
	broken  chan struct{} // a call found that nothing can be sent any more; the session itself may not notice
}

// fails says that the session is of no use any more.
func (l *life) fails() {
	select {
	case l.broken <- struct{}{}:
	default: // that is known
	}
}

func newServer(c Server, o Options) *server {
	return &server{config: c, version: o.Version, maxOutput: o.MaxOutput, log: o.Logger, lang: o.Language, publish: o.Publish}
}

func (s *server) status() Status {
	s.mu.Lock()
	defer s.mu.Unlock()
	return Status{Server: s.config, Up: s.life != nil, Tools: len(s.tools), LeftOut: s.leftOut, Err: s.err}
}

// lifeFor gives the session for a call of the tool, if the tool still is what the server calls by this name. While the
// server's tools are being listed again it waits, since until then nobody knows.
func (s *server) lifeFor(ctx context.Context, t *tool) (*life, error) {
	for {
		s.mu.Lock()
		now, hash, listing := s.life, s.tools[t.spec.Name], s.listing
		s.mu.Unlock()
		switch {
		case now == nil:
			return nil, &tools.Error{Code: tools.CodeToolFailed, Message: s.label() + " isn't running at the moment; nothing was done."}
		case listing == nil && hash != t.hash:
			return nil, &tools.Error{Code: tools.CodeToolFailed, Message: fmt.Sprintf(
				"%s has changed or removed its tool %s since the call was made; nothing was done.", s.label(), t.original)}
		case listing == nil:
			return now, nil
		}
		select {
		case <-listing:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// unlisted says that the definitions may have changed.
func (s *server) unlisted() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.notices++
	if s.listing == nil {
		s.listing = make(chan struct{})
	}
}

func (s *server) noticed() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.notices
}

// relisted says what the definitions are, as they were read after so many notices of a change. After one more they aren't
// known yet.
func (s *server) relisted(l *life, hashes map[string]string, leftOut []string, notices int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.life, s.tools, s.leftOut, s.err = l, hashes, leftOut, nil
	if s.notices == notices {
		s.known()
	}
}

// gone says that the server isn't up, and so has no tools.
func (s *server) gone(why error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.life, s.tools, s.leftOut, s.err = nil, nil, nil, why
	s.known()
}

func (s *server) known() {
	if s.listing != nil {
		close(s.listing)
		s.listing = nil
	}
}

// run keeps the server up until ctx ends. settled is told when it is known for the first time whether it comes up.
func (s *server) run(ctx context.Context, settled func()) {
	defer settled()
	for failures := 0; ; {
		began := time.Now()
		err := s.once(ctx, settled)
		if ctx.Err() != nil {
			return
		}
		if time.Since(began) > steady {
			failures = 0
		}
		failures++
		wait := backoff(failures)
		wait += rand.N(wait / 4) // servers that ended together don't start together
		s.log.Warn("an MCP server is not up; its tools are missing", "server", s.config.Name, "error", s.said(err), "again_in", wait.Round(time.Second).String())
		settled()
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return
		}
	}
}

// once is one life of the server. It returns why that ended, when nothing is left of it.
func (s *server) once(ctx context.Context, settled func()) (err error) {
	defer func() { s.down(ctx, err) }()
	c, err := s.open()
	if err != nil {
		return err
	}
	// A session over server-sent events lives as long as the context that it began with.
	ctx, cancel := context.WithCancel(ctx)
	changed := make(chan struct{}, 1)
	session, err := s.connect(ctx, cancel, c.transport, changed)
	if err == nil {
		l := &life{session, make(chan struct{}), make(chan struct{}, 1)}
		err = s.serve(ctx, l, changed, func() {
			c.up()
			settled()
		})
		closed := s.leave(l)
		cancel()
		c.end()
		<-closed
	} else {
		cancel()
		c.end()
	}
	if why := c.why(); why != "" {
		err = fmt.Errorf("%w (%s)", err, why)
	}
	return err
}

// serve lists the server's tools, and again whenever it says that they changed, until the session is over. up is told
// when they are known for the first time.
func (s *server) serve(ctx context.Context, l *life, changed <-chan struct{}, up func()) error {
	ended := make(chan error, 1)
	go func() { ended <- l.session.Wait() }() // leave ends the session
	if err := s.list(ctx, l); err != nil {
		return err
	}
	up()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case err := <-ended:
			return endOf(err)
		case <-l.broken:
			return errors.New("nothing can be sent to it any more")
		case <-changed:
		}
		if err := s.list(ctx, l); err != nil {
			return err
		}
		if !pause(ctx, listPause) {
			return ctx.Err()
		}
	}
}

// said is an error for people: short, and without the address, of which a part may be a secret.
func (s *server) said(err error) string {
	text := err.Error()
	if u, ok := errors.AsType[*url.Error](err); ok {
		text = strings.ReplaceAll(text, u.URL, s.config.Place())
	}
	if s.config.URL != "" {
		text = strings.ReplaceAll(text, s.config.URL, s.config.Place())
	}
	return short(text)
}

func endOf(err error) error {
	if err == nil {
		return errors.New("it ended the connection")
	}
	return fmt.Errorf("the connection broke: %w", err)
}

// pause waits; false if ctx ended first.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// leave ends a life: calls that are on their way have no result any more, and the session is closed. It waits for that only
// as long as it may take: a server that doesn't answer is ended by whoever opened the way to it, and then the session is
// closed, too, which is told by the channel.
func (s *server) leave(l *life) (closed <-chan struct{}) {
	s.gone(nil)
	close(l.over)
	done := make(chan struct{})
	go func() {
		defer close(done)
		l.session.Close() // how it ended is known, or doesn't matter any more
	}()
	timer := time.NewTimer(closeLimit)
	defer timer.Stop()
	select {
	case <-done:
	case <-timer.C:
	}
	return done
}

// down takes the server's tools away, and keeps why.
func (s *server) down(ctx context.Context, why error) {
	s.gone(errors.New(s.said(why)))
	if err := s.publish(context.WithoutCancel(ctx), s.config.Name, nil); err != nil {
		s.log.Error("the tools of an MCP server could not be taken away", "server", s.config.Name, "error", err)
	}
}

// connect begins a session, within the limit.
func (s *server) connect(ctx context.Context, cancel context.CancelFunc, t sdk.Transport, changed chan<- struct{}) (*sdk.ClientSession, error) {
	client := sdk.NewClient(implementation(s.version), &sdk.ClientOptions{
		Capabilities:   &sdk.ClientCapabilities{},                  // none: no roots either, which are the default
		MultiRoundTrip: &sdk.MultiRoundTripOptions{Disabled: true}, // a call is never sent twice
		Logger:         slog.New(slog.DiscardHandler),              // its lines would quote the server
		ToolListChangedHandler: func(context.Context, *sdk.ToolListChangedRequest) {
			s.unlisted()
			select {
			case changed <- struct{}{}:
			default: // it will be listed again anyway
			}
		},
	})
	client.AddReceivingMiddleware(refuseRequests)
	late := time.AfterFunc(startLimit, cancel)
	session, err := client.Connect(ctx, t, &sdk.ClientSessionOptions{ProtocolVersion: s.protocol})
	if late.Stop() {
		return session, err
	}
	if err == nil { // just too late: its context is over
		session.Close()
	}
	if s.protocol == "" {
		s.protocol = oldProtocol
	} else {
		s.protocol = ""
	}
	return nil, fmt.Errorf("it did not come up within %s", startLimit)
}

// refuseRequests answers what a server may want of us: nothing is offered, so nothing is given.
func refuseRequests(next sdk.MethodHandler) sdk.MethodHandler {
	return func(ctx context.Context, method string, req sdk.Request) (sdk.Result, error) {
		switch method {
		case "roots/list", "sampling/createMessage", "elicitation/create":
			return nil, &jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound, Message: method + " is not offered by this client"}
		}
		return next(ctx, method, req)
	}
}

// list reads the server's tools and publishes them. A notice of a change that comes while it reads is for the next time.
func (s *server) list(ctx context.Context, l *life) error {
	ctx, cancel := context.WithTimeout(ctx, listLimit)
	defer cancel()
	notices := s.noticed()
	listed, err := readList(ctx, l.session)
	if err != nil {
		return fmt.Errorf("its tools can't be listed: %w", err)
	}
	mine, leftOut := s.toolsOf(listed)
	all, hashes := make([]tools.Tool, len(mine)), map[string]string{}
	for i, t := range mine {
		all[i], hashes[t.spec.Name] = t, t.hash
	}
	if err := s.publish(ctx, s.config.Name, all); err != nil {
		return fmt.Errorf("its tools can't be used: %w", err)
	}
	s.relisted(l, hashes, leftOut, notices)
	s.log.Info("the tools of an MCP server are known", "server", s.config.Name, "tools", len(all), "left_out", len(leftOut), "trusted", s.config.Trust)
	for _, why := range leftOut {
		s.log.Warn("a tool of an MCP server is left out", "server", s.config.Name, "tool", why)
	}
	return nil
}

func readList(ctx context.Context, session *sdk.ClientSession) (all []*sdk.Tool, err error) {
	if c := session.InitializeResult().Capabilities; c == nil || c.Tools == nil {
		return nil, nil // it has none, and says so
	}
	size := 0
	for params, pages := (&sdk.ListToolsParams{}), 1; ; pages++ {
		page, err := session.ListTools(ctx, params)
		if err != nil {
			return nil, err
		}
		all = append(all, page.Tools...)
		if page.NextCursor == "" {
			return all, nil
		}
		// One page is bounded as one message is; all of them have to be, too.
		text, err := json.Marshal(page)
		if err != nil {
			return nil, err
		}
		if size += len(text); size > maxList {
			return nil, fmt.Errorf("the list has more than %d bytes", maxList)
		}
		if len(all) > maxListed || pages == maxPages || page.NextCursor == params.Cursor {
			return nil, errors.New("the list has no end")
		}
		params = &sdk.ListToolsParams{Cursor: page.NextCursor}
	}
}
