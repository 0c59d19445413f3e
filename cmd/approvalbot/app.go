package main

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"slices"
	"time"

	"github.com/gorilla/websocket"
	"golang.org/x/sync/errgroup"

	"approvalbot/internal/agent"
	"approvalbot/internal/api"
	"approvalbot/internal/approvals"
	"approvalbot/internal/ledger"
	"approvalbot/internal/metrics"
	"approvalbot/internal/model"
	"approvalbot/internal/redact"
	"approvalbot/internal/slackui"
	"approvalbot/internal/tools"
	"approvalbot/internal/tools/actions"
)

// flushGrace is how long Slack has, at the end, to be told how everything ended. What it isn't told by then it is told
// after the next start.
const flushGrace = 8 * time.Second

// An app is the whole bot, wired: from the journal at the bottom to Slack on top. Its parts are made in the order in
// which they stand on each other, and end in the reverse.
type app struct {
	settings  Settings
	log       *slog.Logger
	journal   *ledger.Ledger
	builtin   *tools.Builtin
	rules     *rulebook
	actions   *actions.File
	people    *rollCall
	mcp       *mcpTools
	profiles  *cabinet
	approvals *approvals.Registry
	grants    *approvals.Grants
	agent     *agent.Agent
	slack     *slackui.UI
	api       *api.Server
	metrics   *metrics.Metrics
	hangups   <-chan os.Signal
	own       []net.Addr
	control   net.Listener // for operators on the machine; nil: there is none
	head      int64        // of the journal when it was opened: what follows is this process's doing
	modelName string
	modelHTTP *http.Client
}

// wiring is what an app is made of besides its settings.
type wiring struct {
	log      *slog.Logger
	http     *http.Client      // for Slack's Web API; nil: the default
	dialer   *websocket.Dialer // for the socket; nil: the default
	model    *http.Client      // for the model's provider; nil: the model's own
	redactor *redact.Redactor
	hangups  <-chan os.Signal // SIGHUP: read the policy file again; nil: never
	own      []net.Addr       // what this process listens on, besides what the settings say

	control func(dataDir string) (net.Listener, error) // makes the control socket; nil: there is none
}

// newApp wires the bot and ends what an earlier process left open. Nothing is heard or said before [app.run].
func newApp(ctx context.Context, s Settings, w wiring) (_ *app, err error) {
	a := &app{settings: s, log: w.log, metrics: metrics.New(version()), modelHTTP: w.model, hangups: w.hangups, own: w.own}
	defer func() {
		if err != nil {
			a.close()
		}
	}()
	cfg, err := a.ground(ctx)
	if err != nil {
		return nil, err
	}
	s = a.settings
	if w.control != nil { // now that the journal is ours, so is its socket
		if a.control, err = w.control(s.DataDir); err != nil {
			w.log.Warn("there is no control socket, so approvalbot pause can't reach this process", "error", err)
			a.control, err = nil, nil
		}
	}
	client, err := slackui.Connect(ctx, slackui.ClientConfig{
		BotToken: s.BotToken, AppToken: s.AppToken, APIURL: s.APIURL, HTTPClient: w.http, Dialer: w.dialer, Logger: w.log,
		Observer: a.metrics,
	})
	if err != nil {
		return nil, err
	}
	deciders, err := s.approvals(client.Team)
	if err != nil {
		return nil, err
	}
	deciders.Site = client.URL
	a.approvals = approvals.New(a.journal, client.Directory(), deciders, w.log)
	if err := a.approvals.LoadPause(ctx, a.journal); err != nil {
		return nil, err
	}
	if p, paused := a.approvals.Paused(); paused {
		w.log.Warn("approvalbot is paused: nothing starts until it is resumed", "by", p.By.Person().ID, "since", p.At)
	}
	a.people = &rollCall{settings: s, client: client, rules: a.rules, actions: a.actions, log: w.log}
	if a.grants, err = approvals.NewGrants(ctx, a.journal, a.approvals, a.inForce(cfg), w.log); err != nil {
		return nil, err
	}
	cfg.Approvals, cfg.Grants, cfg.Hides = a.approvals, a.grants, w.redactor.Hides
	cfg.Deltas = func(run, text string) {
		a.api.Delta(run, text)
		a.slack.Delta(run, text)
	}
	if a.agent, err = agent.New(cfg); err != nil {
		return nil, err
	}
	if err := a.agent.Recover(ctx); err != nil {
		return nil, err
	}
	a.slack = slackui.New(slackui.Config{
		Client: client, Ledger: a.journal, Approvals: a.approvals, Grants: a.grants, Agent: a.agent, Channels: s.Channels,
		Language: s.Language, Tools: toolNames(cfg.Tools), ApprovalsChannel: s.ApprovalsChannel, Conditions: a.conditions, Facts: a.facts, Redactor: w.redactor, Grace: flushGrace, Logger: w.log,
	})
	a.watch(cfg.Tools.Set())
	return a, a.serveAPI(client, cfg.Policy.Current(), w)
}

// checks are what has to be well for runs to be worked off and asks to be answered.
func (a *app) checks() []api.Check {
	return []api.Check{
		{Name: "journal", Err: a.writable},
		{Name: "slack", Err: a.slack.Ready},
		{Name: "model", Err: a.modelled},
	}
}

// watch lets the metrics ask what stands at a moment.
func (a *app) watch(set *tools.Set) {
	s := metrics.Sources{Waiting: a.approvals.Waiting, Backlog: a.slack.Backlog, Paused: func() bool {
		_, paused := a.approvals.Paused()
		return paused
	}}
	for _, spec := range set.Specs() {
		s.Tools = append(s.Tools, spec.Name)
	}
	s.Families = a.mcp.families()
	for _, c := range a.checks() {
		s.Checks = append(s.Checks, metrics.Check(c))
	}
	a.metrics.Watch(s)
}

// ground opens what stands on this machine: instructions, model, journal, tools and policy. It gives the agent's
// configuration but for the approvals, which need Slack to know who people are.
func (a *app) ground(ctx context.Context) (agent.Config, error) {
	instructions, err := a.settings.complete()
	if err != nil {
		return agent.Config{}, err
	}
	s := a.settings
	lm, err := model.Open(s.Model, s.modelOptions(a.modelHTTP))
	if err != nil {
		return agent.Config{}, err
	}
	a.modelName = lm.Name()
	if a.rules, err = openRulebook(s, a.log); err != nil {
		return agent.Config{}, err
	}
	if a.journal, err = ledger.Open(ctx, s.journalDir(), ledger.Options{Logger: a.log, Committed: a.metrics.Committed}); err != nil {
		return agent.Config{}, err
	}
	head, err := a.journal.Head(ctx)
	if err != nil {
		return agent.Config{}, err
	}
	a.head = head.Seq
	if err := a.rules.begin(ctx, a.journal); err != nil {
		return agent.Config{}, err
	}
	if a.builtin, err = a.settings.openTools(messenger{a}, a.own...); err != nil {
		return agent.Config{}, err
	}
	a.builtin.ClearTemp()                                 // nobody else has commands there: the journal is ours
	if err := a.settings.readOnlyCommands(); err != nil { // now that it is settled what holds the shell
		return agent.Config{}, err
	}
	named, err := s.openActions(a.builtin.Dir())
	if err != nil {
		return agent.Config{}, err
	}
	a.actions = named
	for _, p := range append(named.Notes(), named.Advice()...) {
		a.log.Warn("a named action", "file", named.Name, "note", p.String())
	}
	if a.mcp, err = openMCP(ctx, s, a.journal, slices.Concat(a.builtin.Tools(), named.Tools()), a.log); err != nil {
		return agent.Config{}, err
	}
	a.rules.tools = a.mcp.live.Set
	if a.profiles, err = a.openProfiles(a.settings); err != nil {
		return agent.Config{}, err
	}
	cfg := agent.Config{
		Ledger: a.journal, Model: lm, Tools: a.mcp.live, Definitions: a.mcp.definitions, Policy: a.rules, Attachments: attachments{a},
		Instructions: instructions, Workspace: a.builtin.Dir(),
		MaxRounds: s.MaxRounds, MaxAsks: s.MaxAsks, ContextTokens: s.ContextTokens, Price: s.Price, Drain: s.Drain, Language: s.Language, Logger: a.log,
	}
	if a.profiles != nil { // else there is nothing, not a cabinet of nothing
		cfg.Profiles = a.profiles
	}
	return cfg, nil
}

// run works until ctx ends or something fails that can't be mended. Then nothing new is started, what is open is ended
// and recorded, Slack is told, and the journal is closed, in this order.
func (a *app) run(ctx context.Context, ln net.Listener) error {
	outer, stopSlack := context.WithCancel(context.WithoutCancel(ctx))
	defer stopSlack()
	work, stopWork := context.WithCancel(ctx)
	defer stopWork()
	stopReading := a.read(context.WithoutCancel(ctx))
	servers, stopServers := context.WithCancel(context.WithoutCancel(ctx))
	defer stopServers()
	var g errgroup.Group
	g.Go(func() error { return a.mcp.servers.Run(servers) })
	a.mcp.wait(work)
	a.rules.sayUnfit()
	g.Go(func() error {
		defer stopSlack() // Slack is the last to go: it tells how the others ended
		defer stopWork()
		defer stopServers()
		return a.agent.Run(work)
	})
	g.Go(func() error {
		defer stopWork()
		return a.slack.Run(outer)
	})
	g.Go(func() error {
		defer stopWork()
		return a.api.Run(outer, ln)
	})
	g.Go(func() error { return a.serveControl(outer) })
	g.Go(func() error {
		a.rules.obey(work, a.hangups)
		return nil
	})
	g.Go(func() error {
		a.people.run(work)
		return nil
	})
	err := g.Wait()
	stopReading()
	a.close()
	return err
}

// writable tells whether the journal can be written. After a failure it tries: nobody else may have a reason to.
func (a *app) writable() error {
	if a.journal.Health() == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	return a.journal.Probe(ctx)
}

// modelled tells whether there is a model to answer. The setting was checked when it was opened.
func (a *app) modelled() error {
	if a.modelName == "" {
		return errors.New("no model is configured: set APPROVALBOT_MODEL")
	}
	return nil
}

// close lets go of what the app holds. The journal logs its head: known elsewhere, it shows a cut tail.
func (a *app) close() {
	a.profiles.close()
	if a.control != nil {
		if err := a.control.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
			a.log.Warn("the control socket could not be closed", "error", err)
		}
	}
	if a.builtin != nil {
		if err := a.builtin.Close(); err != nil {
			a.log.Warn("the workspace could not be closed", "error", err)
		}
	}
	if a.journal != nil {
		if err := a.journal.Close(); err != nil {
			a.log.Error("the journal could not be closed", "error", err)
		}
	}
}

// listenAPI opens the address of the HTTP API. Without a token of the operator's it may only be a loopback one, where a
// made-up token will do.
func listenAPI(s *Settings) (net.Listener, error) {
	if _, _, err := net.SplitHostPort(s.APIAddr); err != nil {
		return nil, fmt.Errorf("APPROVALBOT_API_ADDR=%q: it has to be HOST:PORT, such as 127.0.0.1:3102", s.APIAddr)
	}
	if s.APIToken == "" && s.APITokensFile == "" {
		if !loopback(s.APIAddr) {
			return nil, fmt.Errorf("APPROVALBOT_API_ADDR=%s can be reached from other machines and neither APPROVALBOT_API_TOKEN nor APPROVALBOT_API_TOKENS_FILE is set: set one, or use a loopback address such as 127.0.0.1:3102", s.APIAddr)
		}
		s.APIToken = "local-" + randomHex(16)
	}
	return listen("APPROVALBOT_API_ADDR", s.APIAddr)
}

func listen(what, addr string) (net.Listener, error) {
	ln, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("%s %s can't be used: %w; is another approvalbot running? Name another address, port 0 takes any free one", what, addr, errors.Unwrap(err))
	}
	return ln, nil
}

func loopback(addr string) bool {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return false
	}
	if host == "localhost" {
		return true
	}
	ip := net.ParseIP(host)
	return ip != nil && ip.IsLoopback()
}

func randomHex(n int) string {
	b := make([]byte, n)
	rand.Read(b) // it never fails
	return hex.EncodeToString(b)
}

// newLogger logs to stderr, through the redactor.
func newLogger(level slog.Level, r *redact.Redactor, w interface{ Write([]byte) (int, error) }, jsonLines bool) *slog.Logger {
	o := &slog.HandlerOptions{Level: level}
	var h slog.Handler = slog.NewTextHandler(w, o)
	if jsonLines {
		h = slog.NewJSONHandler(w, o)
	}
	return slog.New(r.Handler(h))
}
