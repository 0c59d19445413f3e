package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"approvalbot/internal/agent"
	"approvalbot/internal/devslack"
	"approvalbot/internal/ledger"
	"approvalbot/internal/ledger/ledgertest"
	"approvalbot/internal/policy"
	"approvalbot/internal/redact"
	"approvalbot/internal/tools"
)

// A stage is the whole program in real time, as dev wires it: the commands' own wiring, and the local Slack at the other
// end of loopback sockets. A click is seen with its time when it comes in.
type stage struct {
	testing.TB
	slack   *devslack.Server
	ws      devslack.Workspace
	app     *app
	journal <-chan ledger.Event
	arrived atomic.Int64 // when the last click came in at our end of the socket, in nanoseconds
}

// newStage starts the bot; change, which may be nil, sees the settings, and tune the wired app before it runs.
func newStage(b testing.TB, change func(*Settings), tune func(*app)) *stage {
	b.Helper()
	dir := b.TempDir()
	local, err := devslack.New(devslack.Options{Dir: dir + "/devslack"})
	if err != nil {
		b.Fatal(err)
	}
	ln, apiLn := loopbackPort(b), loopbackPort(b)
	served := make(chan error, 1)
	go func() { served <- local.Serve(ln) }()
	b.Cleanup(func() {
		if err := errors.Join(local.Close(), ignore(<-served, http.ErrServerClosed)); err != nil {
			b.Error(err)
		}
	})
	s := &stage{TB: b, slack: local, ws: local.Workspace()}
	settings := Settings{
		Approvers: []string{"channel", "requester"}, Requesters: []string{"members"}, Model: "demo", Quorum: 1, Timeout: 10 * time.Minute,
		ApprovalPolicy: policy.OnRequest, Sandbox: policy.WorkspaceWrite, Shell: tools.ShellUnconfined,
		DataDir: dir, MaxRounds: agent.DefaultMaxRounds, MaxAsks: agent.DefaultMaxAsks, APIToken: "local-test",
	}
	settings.fromWorkspace(s.ws, "http://"+ln.Addr().String()+"/api/")
	if change != nil {
		change(&settings)
	}
	ctx, end := context.WithCancel(context.Background())
	s.app, err = newApp(ctx, settings, wiring{
		log: slog.New(slog.DiscardHandler), redactor: redact.New(settings.secrets()...),
		dialer: &websocket.Dialer{NetDialContext: s.dial},
	})
	if err != nil {
		b.Fatal(err)
	}
	ended := make(chan error, 1)
	followed := make(chan struct{})
	b.Cleanup(func() {
		end()
		if err := <-ended; err != nil {
			b.Error(err)
		}
		<-followed
	})
	if tune != nil {
		tune(s.app)
	}
	s.journal = s.follow(ctx, followed)
	go func() { ended <- s.app.run(ctx, apiLn) }()
	<-s.app.slack.Connected()
	return s
}

func loopbackPort(b testing.TB) net.Listener {
	b.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	return ln
}

func ignore(err, expected error) error {
	if errors.Is(err, expected) {
		return nil
	}
	return err
}

// follow sees the journal grow, until ctx ends.
func (s *stage) follow(ctx context.Context, done chan<- struct{}) <-chan ledger.Event {
	seen := make(chan ledger.Event, 10_000)
	go func() {
		defer close(done)
		for e, err := range s.app.journal.Follow(ctx, 0) {
			if err != nil {
				return // the end of ctx, or of the journal
			}
			seen <- e
		}
	}()
	return seen
}

// until waits for an event, and returns it.
func (s *stage) until(what string, is func(ledger.Event) bool) ledger.Event {
	s.Helper()
	patience := time.After(time.Minute)
	for {
		select {
		case e := <-s.journal:
			if is(e) {
				return e
			}
		case <-patience:
			s.Fatalf("no %s within a minute", what)
		}
	}
}

// dial is how the bot connects its socket: it sees every click that comes in.
func (s *stage) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	c, err := new(net.Dialer).DialContext(ctx, network, addr)
	return &watched{Conn: c, s: s}, err
}

type watched struct {
	net.Conn
	s *stage
}

func (w *watched) Read(p []byte) (int, error) {
	n, err := w.Conn.Read(p)
	if bytes.Contains(p[:n], []byte("block_actions")) {
		w.s.arrived.Store(time.Now().UnixNano())
	}
	return n, err
}

// A standing is a card that waits for a click.
type standing struct {
	approval, call, channel, ts string
}

// ask lets alice write a message that makes cards in each of the channels, and waits until all of them stand.
func (s *stage) ask(channels []string, cards int) []standing {
	s.Helper()
	var text strings.Builder
	for i := range cards {
		fmt.Fprintf(&text, "write file-%d.txt: hello\n", i+1)
	}
	for _, c := range channels {
		if _, err := s.slack.SendMessage(devslack.MessageRequest{
			User: s.ws.Users[0].ID, Channel: c, Text: fmt.Sprintf("<@%s> %s", s.ws.App.BotUserID, text.String()),
		}); err != nil {
			s.Fatal(err)
		}
	}
	var all []standing
	for len(all) < cards*len(channels) {
		// A card's message is recorded last; until then its update could have to wait for that.
		e := s.until("card", func(e ledger.Event) bool {
			m, ok := e.Body.(*ledger.MessagePosted)
			return ok && m.Thing.Kind == "card"
		})
		m := e.Body.(*ledger.MessagePosted)
		all = append(all, standing{m.Thing.ID, e.Call, m.Channel, m.TS})
	}
	return all
}

// A passage is what became of one click.
type passage struct {
	start    time.Duration // from the envelope's arrival until the tool was started
	cleared  time.Duration // from the envelope's sending until the local Slack had taken a card without buttons
	terminal time.Duration // and the terminal card
}

// click approves and looks on until all is over and recorded.
func (s *stage) click(c standing) passage {
	s.Helper()
	calls := s.slack.Calls(0)
	before := calls[len(calls)-1].Seq
	if _, err := s.slack.Click(context.Background(), devslack.ActionRequest{
		User: s.ws.Users[0].ID, Channel: c.channel, TS: c.ts, ActionID: "approve",
	}); err != nil {
		s.Fatal(err)
	}
	finished := s.until("end of the call", func(e ledger.Event) bool { return e.Kind() == "tool_finished" && e.Call == c.call })
	// The journal's own clock: its time is taken when it is about to be written, and the tool's end is the step before.
	began := finished.Time.Add(-finished.Body.(*ledger.ToolFinished).Elapsed)
	p := passage{start: began.Sub(time.Unix(0, s.arrived.Load()))}
	s.until("end of the card", func(e ledger.Event) bool {
		m, ok := e.Body.(*ledger.MessageSettled)
		return ok && m.Thing.ID == c.approval
	})
	var sent time.Time
	for _, call := range s.slack.Calls(before) {
		switch {
		case call.Kind == "frame_out" && strings.Contains(string(call.Request), "block_actions"):
			sent = call.Time
		case call.Name == "chat.update" && strings.Contains(string(call.Request), c.ts):
			if p.cleared == 0 {
				p.cleared = call.Time.Sub(sent)
			}
			p.terminal = call.Time.Sub(sent)
		}
	}
	return p
}

// BenchmarkClick approves cards one after the other, in the whole program. An op is a round of 18 clicks: a click may take
// two updates of its card, and more would run into Slack's limit for updates. The cards stand in two channels, because a
// channel takes only one post a second. Between the clicks the program is at rest,
// and a bare commit is measured. The metrics are medians over the clicks:
//
//	start/bare     from the envelope's arrival at our socket until the tool is started, in bare commits
//	cleared-ms     from the envelope's sending until the local Slack has taken a card without buttons
//	terminal-ms    until it has taken the terminal card, which says how the call ended
func BenchmarkClick(b *testing.B) {
	const cards = 9
	s := newStage(b, nil, nil)
	bare := ledgertest.NewBare(b)
	ledgertest.Grow(b, s.app.journal)
	channels := []string{s.ws.Channels[0].ID, s.ws.Channels[1].ID}
	var commits, start, cleared, terminal ledgertest.Times
	for b.Loop() {
		for _, c := range s.ask(channels, cards) {
			for range 5 {
				commits = append(commits, bare.Commit())
			}
			p := s.click(c)
			start, cleared, terminal = append(start, p.start), append(cleared, p.cleared), append(terminal, p.terminal)
		}
	}
	b.ReportMetric(commits.Milliseconds(), "bare-ms")
	b.ReportMetric(start.Milliseconds(), "start-ms")
	b.ReportMetric(start.Over(commits), "start/bare")
	b.ReportMetric(cleared.Milliseconds(), "cleared-ms")
	b.ReportMetric(terminal.Milliseconds(), "terminal-ms")
	b.ReportMetric(terminal.Over(commits), "terminal/bare")
}
