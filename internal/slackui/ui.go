package slackui

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/slack-go/slack"

	"approvalbot/internal/approvals"
	"approvalbot/internal/language"
	"approvalbot/internal/ledger"
	"approvalbot/internal/redact"
)

// An Agent does what people in Slack ask for.
type Agent interface {
	// Receive records a message (e.Body is a *ledger.MessageReceived) and returns when that is committed. What the
	// message starts goes on by itself. A *ledger.ConflictError says that the message was received before.
	Receive(ctx context.Context, e ledger.Event) (ledger.Event, error)
	// Stop ends a run. It returns a *approvals.RefusedError if that person may not.
	Stop(ctx context.Context, run string, by ledger.Actor) error
	// Amend changes the arguments of a pending ask, and approves it like this where that person's approval counts. Besides
	// what [approvals.Registry.Amend] says, the error can be an *approvals.UnfitError.
	Amend(ctx context.Context, approvalID string, e approvals.Edit) (approvals.Outcome, error)
}

// A Config says what a [UI] is between.
type Config struct {
	Client    *Client
	Ledger    *ledger.Ledger
	Approvals *approvals.Registry
	Grants    *approvals.Grants // nil: nobody can allow calls in advance
	Agent     Agent
	Channels  []string         // where runs may be started; empty: wherever the bot is
	Redactor  *redact.Redactor // nil: one that knows patterns only
	Language  language.Language

	ApprovalsChannel string             // where approvals are collected; empty: nowhere
	Tools            func() []string    // the names of the tools there are now, for what is suggested; nil: none
	Conditions       func() []Condition // what has to be well, for operators; nil: nothing is said
	Facts            func() []Fact      // the settings that matter, for operators; nil: nothing is said

	Grace  time.Duration // how long the last updates may take after ctx has ended; zero: 5 seconds
	Logger *slog.Logger  // nil: silent
}

const defaultGrace = 5 * time.Second

// A UI is approvalbot in one workspace.
type UI struct {
	client    *Client
	journal   *ledger.Ledger
	approvals *approvals.Registry
	grants    *approvals.Grants
	agent     Agent
	channels  []string
	renderer  *renderer
	grace     time.Duration
	log       *slog.Logger

	socket  *socket
	lanes   *lanes // the effects of clicks and messages
	replies *lanes // what follows from them
	outbox  *outbox
	signs   *signs
	threads *threads
	streaks *streaks
	tools   func() []string
	quotes  *quotes // forms about a message that are open
	home    *homes
	began   int64 // Seq of the journal when this process began to follow it

	conditions func() []Condition
	facts      func() []Fact

	tellMu sync.Mutex
	tells  bucket
	told   map[whisper]time.Time // what is said privately: when it was, or zero while it is on its way
}

// New makes a UI; [UI.Run] brings it to life.
func New(cfg Config) *UI {
	u := &UI{
		client: cfg.Client, journal: cfg.Ledger, approvals: cfg.Approvals, grants: cfg.Grants, agent: cfg.Agent, channels: cfg.Channels,
		grace: cfg.Grace, log: cfg.Logger, lanes: newLanes(), replies: newLanes(), threads: newThreads(), streaks: newStreaks(),
		tells: bucket{every: tellEvery, burst: tellBurst}, told: map[whisper]time.Time{},
		tools: cfg.Tools, quotes: newQuotes(),
		home: newHomes(), conditions: cfg.Conditions, facts: cfg.Facts,
	}
	if u.log == nil {
		u.log = slog.New(slog.DiscardHandler)
	}
	if u.grace == 0 {
		u.grace = defaultGrace
	}
	redactor := cfg.Redactor
	if redactor == nil {
		redactor = redact.New()
	}
	u.renderer = &renderer{redactor: redactor, lang: cfg.Language, team: u.client.Team, botUser: u.client.BotUser}
	u.outbox = newOutbox(u.client, u.journal, u.approvals, u.renderer, u.log)
	u.outbox.approvalsChannel, u.outbox.heard = cfg.ApprovalsChannel, u.home.heard
	u.socket = newSocket(u.client)
	u.signs = newSigns(u)
	if u.tools == nil {
		u.tools = func() []string { return nil }
	}
	return u
}

// Ready is nil while people can be heard and answered, and else a sentence that says what is wrong.
func (u *UI) Ready() error { return u.socket.ready() }

// Connected is closed when Slack has said hello for the first time.
func (u *UI) Connected() <-chan struct{} { return u.socket.first }

// Backlog counts our messages that don't stand in Slack as they should yet, by kind.
func (u *UI) Backlog() map[string]int { return u.outbox.backlog() }

// Run is in Slack until ctx ends, and returns nil then, after the last updates have been brought out or the grace is
// over. Stop whatever runs for people in Slack before: only what is in the journal can be told. If Slack refuses a
// token, Run ends with a sentence that says what to do.
func (u *UI) Run(ctx context.Context) error {
	work, stop := context.WithCancelCause(context.WithoutCancel(ctx))
	defer stop(nil)
	if err := u.outbox.load(ctx); err != nil {
		return err
	}
	u.signs.after = u.outbox.read()
	u.began = u.outbox.read()
	u.socket.onEvent = func(e eventDelivery) { u.event(work, e) }
	u.socket.onClick = func(c slack.InteractionCallback, r *receipt) { u.interact(work, c, r) }
	u.socket.onCommand = func(c slack.SlashCommand, r *receipt) { u.command(work, c, r) }

	var wg sync.WaitGroup
	part := func(run func(context.Context) error) {
		wg.Go(func() {
			if err := run(work); err != nil {
				stop(err)
			}
		})
	}
	part(u.outbox.follow)
	part(u.outbox.run)
	part(u.socket.run)
	part(u.signs.run)
	part(u.keepHomes)

	select {
	case <-ctx.Done():
		u.finish(work)
		stop(nil)
	case <-work.Done():
	}
	u.lanes.close()
	wg.Wait()
	u.lanes.wait()
	u.replies.close()
	u.replies.wait()
	if err := context.Cause(work); !errors.Is(err, context.Canceled) {
		return err
	}
	return nil
}

// finish takes nothing new, lets what was taken end, and brings out how everything ended. Private sentences come last:
// they are worth less than the end of a card.
func (u *UI) finish(work context.Context) {
	grace, cancel := context.WithTimeout(work, u.grace)
	defer cancel()
	if !idle(grace, u.lanes) {
		return // Run ends their context and waits for them
	}
	u.outbox.drain(grace)
	idle(grace, u.replies)
}

// idle closes lanes and waits for what is in them; false: ctx ended before.
func idle(ctx context.Context, l *lanes) bool {
	l.close()
	over := make(chan struct{})
	go func() {
		l.wait()
		close(over)
	}()
	select {
	case <-over:
		return true
	case <-ctx.Done():
		return false
	}
}
