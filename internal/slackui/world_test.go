package slackui

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gorilla/websocket"

	"approvalbot/internal/approvals"
	"approvalbot/internal/devslack"
	"approvalbot/internal/ledger"
)

// A world is a workspace of the local Slack with approvalbot in it: the real journal, the real approvals, the real
// clients and sockets, over connections in memory. All of it lives in a synctest bubble, where time passes only when
// everybody waits. The agent is a small scripted one.
type world struct {
	t        *testing.T
	dir      string
	slack    *devslack.Server
	pipe     *devslack.Pipe
	down     atomic.Bool // nobody answers at Slack's address
	ws       devslack.Workspace
	http     *http.Transport
	settings approvals.Settings
	config   func(*Config)

	// One process of approvalbot; start makes it, stop ends it.
	client   *Client
	journal  *ledger.Ledger
	registry *approvals.Registry
	grants   *approvals.Grants
	agent    *scripted
	ui       *UI
	cancel   context.CancelFunc
	ended    chan error

	clicks sync.WaitGroup // those made meanwhile, until Slack knows what became of them
}

// inWorld runs a test in a fresh world with a running bot.
func inWorld(t *testing.T, body func(w *world), options ...func(*world)) {
	t.Helper()
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, dir)
		for _, o := range options {
			o(w)
		}
		defer w.close()
		w.start()
		body(w)
	})
}

func newWorld(t *testing.T, dir string) *world {
	s, err := devslack.New(devslack.Options{})
	if err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, dir: dir, slack: s, pipe: devslack.NewPipe(), ws: s.Workspace()}
	go s.Serve(w.pipe)
	w.http = &http.Transport{DialContext: w.dial}
	list, err := approvals.ParseApprovers([]string{"channel"})
	if err != nil {
		t.Fatal(err)
	}
	w.settings = approvals.Settings{Approvers: list, OpenChannels: []string{w.channel("general")}, Team: w.ws.Team.ID}
	return w
}

// dial reaches Slack, unless it is down.
func (w *world) dial(ctx context.Context, network, address string) (net.Conn, error) {
	if w.down.Load() {
		return nil, &net.OpError{Op: "dial", Net: network, Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}
	}
	return w.pipe.DialContext(ctx, network, address)
}

// start begins one process of approvalbot and waits for its hello.
func (w *world) start() {
	w.t.Helper()
	ctx := w.t.Context()
	log := slog.New(slog.NewTextHandler(w.t.Output(), &slog.HandlerOptions{Level: slog.LevelWarn}))
	var err error
	w.client, err = Connect(ctx, ClientConfig{
		BotToken: w.ws.App.BotToken, AppToken: w.ws.App.AppToken, APIURL: "http://slack.test/api",
		HTTPClient: &http.Client{Transport: w.http}, Logger: log,
		Dialer: &websocket.Dialer{NetDialContext: w.dial, WriteBufferSize: socketWriteBuffer},
	})
	if err != nil {
		w.t.Fatal(err)
	}
	if w.journal, err = ledger.Open(ctx, w.dir, ledger.Options{Logger: log}); err != nil {
		w.t.Fatal(err)
	}
	w.registry = approvals.New(w.journal, w.client.Directory(), w.settings, log)
	if w.grants, err = approvals.NewGrants(ctx, w.journal, w.registry, approvals.InForce{}, log); err != nil {
		w.t.Fatal(err)
	}
	w.agent = &scripted{w: w, stops: map[string]context.CancelCauseFunc{}}
	w.agent.ctx, w.agent.abort = context.WithCancelCause(ctx)
	cfg := Config{Client: w.client, Ledger: w.journal, Approvals: w.registry, Grants: w.grants, Agent: w.agent, Logger: log}
	if w.config != nil {
		w.config(&cfg)
	}
	w.ui = New(cfg)
	run, cancel := context.WithCancel(ctx)
	w.cancel, w.ended = cancel, make(chan error, 1)
	go func() { w.ended <- w.ui.Run(run) }()
	select {
	case <-w.ui.Connected():
	case err := <-w.ended:
		w.ended <- err
	case <-time.After(time.Minute):
		w.t.Fatal("no hello within a minute")
	}
}

// stop ends the process as a signal would: the agent first, then the last updates, then the journal.
func (w *world) stop() error {
	if w.agent != nil {
		w.agent.end(&approvals.AbortError{Reason: "approvalbot was stopped"})
	}
	return w.halt()
}

// crash ends the process without letting anybody finish. What the agent and the registry do after the journal is closed
// fails, as it would after the end.
func (w *world) crash() {
	w.ui.grace = time.Nanosecond
	w.cancel()
	<-w.ended
	w.journal.Close()
	w.agent.end(errors.New("crashed"))
	w.client = nil
}

func (w *world) halt() error {
	if w.client == nil {
		return nil
	}
	w.cancel()
	err := <-w.ended
	w.journal.Close()
	w.agent.end(errors.New("over"))
	w.client = nil
	return err
}

func (w *world) close() {
	w.clicks.Wait() // a click that outlives its test would fail it after its end
	w.stop()
	w.http.CloseIdleConnections()
	w.slack.Close()
	w.pipe.Close()
}

func (w *world) user(name string) string {
	for _, u := range w.ws.Users {
		if u.Name == name {
			return u.ID
		}
	}
	w.t.Fatalf("no user %s", name)
	return ""
}

func (w *world) channel(name string) string {
	for _, c := range w.ws.Channels {
		if c.Name == name {
			return c.ID
		}
	}
	w.t.Fatalf("no channel %s", name)
	return ""
}

// say lets somebody write in #general, or in another channel or thread.
func (w *world) say(user, text string, where ...string) string {
	w.t.Helper()
	r := devslack.MessageRequest{User: w.user(user), Channel: w.channel("general"), Text: w.mention(text)}
	if len(where) > 0 {
		r.Channel = where[0]
	}
	if len(where) > 1 {
		r.ThreadTS = where[1]
	}
	ts, err := w.slack.SendMessage(r)
	if err != nil {
		w.t.Fatal(err)
	}
	return ts
}

func (w *world) mention(text string) string {
	return strings.ReplaceAll(text, "@bot", "<@"+w.ws.App.BotUserID+">")
}

// eventually waits in fake time until something holds.
func (w *world) eventually(what string, holds func() bool) {
	w.t.Helper()
	step := 20 * time.Millisecond
	for began := time.Now(); time.Since(began) < time.Hour; time.Sleep(step) {
		synctest.Wait()
		if holds() {
			return
		}
		if time.Since(began) > 5*time.Second {
			step = 500 * time.Millisecond
		}
	}
	w.t.Fatalf("never: %s\n%s", what, w.dump())
}

// after lets fake time pass.
func (w *world) after(d time.Duration) { time.Sleep(d); synctest.Wait() }

// thread lists what stands in a thread, without what people wrote.
func (w *world) thread(ts string) []devslack.Message {
	w.t.Helper()
	all, err := w.slack.Messages(w.channel("general"), ts)
	if err != nil {
		w.t.Fatal(err)
	}
	return slices.DeleteFunc(all, func(m devslack.Message) bool { return m.BotID != w.ws.App.BotID || m.EphemeralTo != "" })
}

// kind is what thing a message says that it is.
func kind(m devslack.Message) (kind, id string) {
	var meta struct {
		P struct{ Kind, ID string } `json:"event_payload"`
	}
	_ = json.Unmarshal(m.Metadata, &meta)
	return meta.P.Kind, meta.P.ID
}

func (w *world) things(ts, want string) []devslack.Message {
	var out []devslack.Message
	for _, m := range w.thread(ts) {
		if k, _ := kind(m); k == want {
			out = append(out, m)
		}
	}
	return out
}

func (w *world) cards(ts string) []devslack.Message { return w.things(ts, kindCard) }

// card waits for the n-th card of a thread.
func (w *world) card(ts string, n int) devslack.Message {
	w.t.Helper()
	w.eventually(fmt.Sprintf("card %d stands there", n), func() bool { return len(w.cards(ts)) > n })
	return w.cards(ts)[n]
}

func hasButton(m devslack.Message, action string) bool {
	return strings.Contains(string(m.Blocks), `"action_id":"`+action+`"`)
}

// click lets somebody use a button.
func (w *world) click(user string, m devslack.Message, action string, forge ...func(*devslack.ActionRequest)) devslack.Receipt {
	w.t.Helper()
	r := devslack.ActionRequest{User: w.user(user), Channel: w.channel("general"), TS: m.TS, ActionID: action}
	for _, f := range forge {
		f(&r)
	}
	receipt, err := w.slack.Click(w.t.Context(), r)
	if err != nil {
		w.t.Fatal(err)
	}
	return receipt
}

// meanwhile lets somebody use a button while the test goes on.
func (w *world) meanwhile(user string, m devslack.Message, action string) {
	r := devslack.ActionRequest{User: w.user(user), Channel: w.channel("general"), TS: m.TS, ActionID: action}
	w.clicks.Go(func() {
		if _, err := w.slack.Click(w.t.Context(), r); err != nil {
			w.t.Error(err)
		}
	})
}

// whispers lists what somebody was told privately.
func (w *world) whispers(user string) []string {
	w.t.Helper()
	var out []string
	for _, c := range w.ws.Channels {
		all, err := w.slack.Messages(c.ID, "")
		if err != nil {
			continue
		}
		for _, m := range all {
			if m.EphemeralTo == w.user(user) {
				out = append(out, m.Text)
			}
		}
	}
	return out
}

func (w *world) fault(f devslack.Fault) {
	w.t.Helper()
	if err := w.slack.SetFault(f); err != nil {
		w.t.Fatal(err)
	}
}

// calls counts the calls of a method, and those among them that Slack answered with a status.
func (w *world) calls(method string, status int) int {
	n := 0
	for _, c := range w.slack.Calls(0) {
		if c.Kind == "api" && c.Name == method && (status == 0 || c.Status == status) {
			n++
		}
	}
	return n
}

// events lists the journal's events of a kind.
func (w *world) events(kind string) []ledger.Event {
	w.t.Helper()
	var out []ledger.Event
	for e, err := range w.journal.Read(w.t.Context(), 0, ledger.Filter{}) {
		if err != nil {
			w.t.Fatal(err)
		}
		if kind == "" || e.Kind() == kind {
			out = append(out, e)
		}
	}
	return out
}

// followed makes sure that the book has all the things that the journal gives, although it looks at no more than each event
// is about.
func (w *world) followed() {
	w.t.Helper()
	b := newBook()
	for _, e := range w.events("") {
		b.apply(e, w.ui.renderer)
		run := b.runs[e.Run]
		if run == nil {
			continue
		}
		calls, n := map[ledger.Thing][]string{}, len(b.things)
		for id, t := range b.things {
			calls[id] = slices.Clone(t.calls)
		}
		b.sync(run, w.ui.renderer)
		if len(b.things) != n {
			w.t.Fatalf("%s (%d): %d things, and %d when all of the run is looked at", e.Kind(), e.Seq, n, len(b.things))
		}
		for id, t := range b.things {
			if !slices.Equal(t.calls, calls[id]) {
				w.t.Fatalf("%s (%d): %v carries %v, and %v when all of the run is looked at", e.Kind(), e.Seq, id, calls[id], t.calls)
			}
		}
	}
}

// settled waits until nothing in Slack will change any more.
func (w *world) settled() {
	w.t.Helper()
	w.eventually("every run is settled", func() bool {
		runs, err := w.journal.UnsettledRuns(w.t.Context())
		waiting, _ := w.journal.WaitingMessages(w.t.Context())
		return err == nil && len(runs) == 0 && len(waiting) == 0
	})
	w.followed()
}

// ended checks that a card is over: no buttons, and it says so.
func (w *world) isOver(m devslack.Message) {
	w.t.Helper()
	for _, action := range []string{actionApprove, actionDeny, actionReview} {
		if hasButton(m, action) {
			w.t.Errorf("a card that is over has the button %s: %s", action, m.Blocks)
		}
	}
}

func (w *world) dump() string {
	var b strings.Builder
	for _, c := range w.slack.Calls(0) {
		if c.Kind == "api" {
			fmt.Fprintf(&b, "%s %s %d %.300s\n", c.Time.Format("05.000"), c.Name, c.Status, c.Response)
		}
	}
	return b.String()
}

// scripted is an agent that does what messages say in backticks: each is a call that is asked about.
type scripted struct {
	w     *world
	ctx   context.Context
	abort context.CancelCauseFunc
	wg    sync.WaitGroup

	mu      sync.Mutex
	runs    int
	stops   map[string]context.CancelCauseFunc
	started []string // the calls that were started, in order
	refuse  error    // what Receive answers
	hold    chan struct{}
	http    bool // asks stand on the HTTP surface as well
	timeout time.Duration

	slow     time.Duration // what a Stop takes
	working  time.Duration // what a tool takes
	shape    func(*approvals.Request)
	risk     string // of every ask
	tools    string // the run's tools, with their schemas
	argument string // instead of what stands in backticks: a message can't be as long as an argument
}

var quoted = regexp.MustCompile("`([^`]*)`")

func (a *scripted) Receive(ctx context.Context, e ledger.Event) (ledger.Event, error) {
	a.mu.Lock()
	refuse := a.refuse
	a.mu.Unlock()
	if refuse != nil {
		return ledger.Event{}, refuse
	}
	out, err := a.w.journal.Append(ctx, e)
	if err != nil {
		return ledger.Event{}, err
	}
	m := e.Body.(*ledger.MessageReceived)
	if m.Disposition == ledger.Starts {
		a.wg.Go(func() { a.work(out[0], m) })
	}
	return out[0], nil
}

func (a *scripted) Stop(ctx context.Context, run string, by ledger.Actor) error {
	time.Sleep(a.slow)
	r, ok, err := a.w.journal.LoadRun(ctx, run)
	if err != nil || !ok {
		return err
	}
	if err := a.w.registry.MayStop(ctx, by, r); err != nil {
		return err
	}
	e := ledger.Event{Session: r.Session, Run: run, Actor: by, Body: &ledger.RunStopRequested{Reason: "stopped by " + by.Name}}
	if _, err := a.w.journal.Append(ctx, e); err != nil {
		return err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if stop := a.stops[run]; stop != nil {
		stop(&approvals.AbortError{Reason: "stopped by " + by.Name})
	}
	return nil
}

// Amend takes any arguments.
func (a *scripted) Amend(ctx context.Context, approvalID string, e approvals.Edit) (approvals.Outcome, error) {
	var args struct{ Command string }
	_ = json.Unmarshal([]byte(e.Arguments), &args)
	return a.w.registry.Amend(ctx, approvalID, approvals.Amendment{
		Edit: e, Reason: "it changes something", Risk: a.risk,
		Preview: ledger.Preview{Summary: "Run " + args.Command, Target: args.Command, Kind: "command", Body: args.Command},
	})
}

func (a *scripted) end(cause error) {
	a.abort(cause)
	a.wg.Wait()
}

func (a *scripted) put(run, session, call string, b ledger.Body) bool {
	_, err := a.w.journal.Append(context.Background(), ledger.Event{Session: session, Run: run, Call: call, Actor: ledger.System, Body: b})
	return err == nil
}

// work is one run, from its start to its end.
func (a *scripted) work(e ledger.Event, m *ledger.MessageReceived) {
	a.mu.Lock()
	a.runs++
	run := fmt.Sprintf("run-%d-%d", e.Seq, a.runs)
	ctx, stop := context.WithCancelCause(a.ctx)
	a.stops[run] = stop
	hold := a.hold
	a.mu.Unlock()
	defer stop(nil)
	if hold != nil {
		select {
		case <-hold:
		case <-ctx.Done():
			return
		}
	}
	who := []ledger.Person{e.Actor.Person()}
	if !a.put(run, e.Session, "", &ledger.RunStarted{Message: e.Seq, Place: m.Place, Requesters: who, Model: "script", Mode: "interactive", Tools: json.RawMessage(a.tools)}) {
		return
	}
	var calls []ledger.ToolCall
	for i, q := range quoted.FindAllStringSubmatch(m.Text, -1) {
		arguments, _ := json.Marshal(map[string]string{"command": cmp.Or(a.argument, q[1])})
		calls = append(calls, ledger.ToolCall{ID: fmt.Sprintf("call-%d", i+1), Name: "shell", Arguments: string(arguments)})
	}
	a.put(run, e.Session, "", &ledger.ModelCompleted{Round: 1, ToolCalls: calls})
	var wg sync.WaitGroup
	for _, c := range calls {
		wg.Go(func() { a.call(ctx, run, e.Session, m.Place, who, c) })
	}
	wg.Wait()
	f := &ledger.RunFinished{Status: ledger.RunSucceeded, Answer: "All is done.", Rounds: 1}
	if ctx.Err() != nil {
		f = &ledger.RunFinished{Status: ledger.RunCancelled, Reason: context.Cause(ctx).Error(), Rounds: 1}
	}
	a.put(run, e.Session, "", f)
}

func (a *scripted) call(ctx context.Context, run, session string, place ledger.Place, who []ledger.Person, c ledger.ToolCall) {
	a.put(run, session, c.ID, &ledger.PermissionDecided{Tool: c.Name, Type: ledger.Ask, Source: "policy", Reason: "it changes something"})
	var args struct{ Command string }
	_ = json.Unmarshal([]byte(c.Arguments), &args)
	surfaces := []string{surface}
	if a.http {
		surfaces = append(surfaces, "http")
	}
	q := approvals.Request{
		Key: approvals.Key{Run: run, Call: c.ID}, Session: session, Tool: c.Name, ToolHash: sum("shell"), Arguments: c.Arguments,
		Preview: ledger.Preview{Summary: "Run " + args.Command, Target: args.Command, Kind: "command", Body: args.Command},
		Reason:  "it changes something", Place: place, Requesters: who, Surfaces: surfaces, Timeout: a.timeout,
		Risk: a.risk, Offers: []ledger.Offer{ledger.OfferEdit},
	}
	if a.shape != nil {
		a.shape(&q)
	}
	p, err := a.w.registry.Open(ctx, q)
	denied := func(source ledger.Source, reason string) {
		a.put(run, session, c.ID, &ledger.ToolFinished{Tool: c.Name, State: ledger.OutputDenied, Source: source, Reason: reason, Output: "Error"})
	}
	if err != nil {
		denied(ledger.SourceUndeliverable, err.Error())
		return
	}
	res := p.Wait(ctx)
	switch {
	case !res.Recorded():
	case res.Type == ledger.Denied:
		denied(res.Source, res.Reason)
	default:
		if res.EditedBy != nil {
			c.Arguments = res.Arguments
			_ = json.Unmarshal([]byte(c.Arguments), &args)
		}
		if !a.put(run, session, c.ID, &ledger.ToolStarted{Tool: c.Name, Digest: sum(c.Arguments)}) {
			return
		}
		a.mu.Lock()
		a.started = append(a.started, args.Command)
		a.mu.Unlock()
		time.Sleep(a.working)
		a.put(run, session, c.ID, &ledger.ToolFinished{Tool: c.Name, State: ledger.OutputAvailable, Output: "ok", Elapsed: time.Millisecond})
	}
}

func (a *scripted) ran() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Sorted(slices.Values(a.started))
}

func sum(s string) string {
	h := sha256.Sum256([]byte(s))
	return hex.EncodeToString(h[:])
}

// recover does for a crashed run what the agent does before anything else starts.
func (w *world) recover() {
	w.t.Helper()
	ctx := w.t.Context()
	runs, err := w.journal.UnfinishedRuns(ctx)
	if err != nil {
		w.t.Fatal(err)
	}
	for _, id := range runs {
		r, _, err := w.journal.LoadRun(ctx, id)
		if err != nil {
			w.t.Fatal(err)
		}
		for _, c := range r.Calls {
			if c.Approval.Open() {
				w.agent.put(id, r.Session, c.ID, &ledger.ApprovalResolved{Approval: c.Approval.Approval, Type: ledger.Denied,
					Source: ledger.SourceAbort, Reason: "approvalbot restarted before it was answered"})
			}
			if c.Finished == nil {
				w.agent.put(id, r.Session, c.ID, &ledger.ToolFinished{Tool: c.Name, State: ledger.OutputDenied,
					Source: ledger.SourceAbort, Reason: "approvalbot restarted", Output: "Error"})
			}
		}
		w.agent.put(id, r.Session, "", &ledger.RunFinished{Status: ledger.RunCancelled, Reason: "approvalbot restarted"})
	}
}
