package slackui

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/slack-go/slack"

	"approvalbot/internal/approvals"
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
}

// A Config says what a [UI] is between.
type Config struct {
	Client    *Client
	Ledger    *ledger.Ledger
	Approvals *approvals.Registry
	Agent     Agent
	Channels  []string         // where runs may be started; empty: wherever the bot is
	Redactor  *redact.Redactor // nil: one that knows patterns only
	Grace     time.Duration    // how long the last updates may take after ctx has ended; zero: 5 seconds
	Logger    *slog.Logger     // nil: silent
}

const defaultGrace = 5 * time.Second

// A UI is approvalbot in one workspace.
type UI struct {
	client    *Client
	journal   *ledger.Ledger
	approvals *approvals.Registry
	agent     Agent
	channels  []string
	renderer  *renderer
	grace     time.Duration
	log       *slog.Logger

	socket  *socket
	lanes   *lanes
	outbox  *outbox
	threads *threads

	tellMu sync.Mutex
	tells  bucket
}

// New makes a UI; [UI.Run] brings it to life.
func New(cfg Config) *UI {
	u := &UI{
		client: cfg.Client, journal: cfg.Ledger, approvals: cfg.Approvals, agent: cfg.Agent, channels: cfg.Channels,
		grace: cfg.Grace, log: cfg.Logger, lanes: newLanes(), threads: newThreads(),
		tells: bucket{every: tellEvery, burst: tellBurst},
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
	u.renderer = &renderer{redactor: redactor, team: u.client.Team, botUser: u.client.BotUser}
	u.outbox = newOutbox(u.client, u.journal, u.approvals, u.renderer, u.log)
	u.socket = newSocket(u.client)
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
	u.socket.onEvent = func(e eventDelivery) { u.event(work, e) }
	u.socket.onClick = func(c slack.InteractionCallback, r *receipt) { u.click(work, c, r) }

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

	select {
	case <-ctx.Done():
		u.finish(work)
		stop(nil)
	case <-work.Done():
	}
	u.lanes.close()
	wg.Wait()
	u.lanes.wait()
	if err := context.Cause(work); !errors.Is(err, context.Canceled) {
		return err
	}
	return nil
}

// finish takes nothing new, lets what was taken end, and brings out how everything ended.
func (u *UI) finish(work context.Context) {
	grace, cancel := context.WithTimeout(work, u.grace)
	defer cancel()
	u.lanes.close()
	over := make(chan struct{})
	go func() {
		u.lanes.wait()
		close(over)
	}()
	select {
	case <-over:
	case <-grace.Done():
		return // Run ends their context and waits for them
	}
	u.outbox.drain(grace)
}

// tell says something to one person, where only they see it.
func (u *UI) tell(ctx context.Context, place ledger.Place, user, sentence string) {
	if err := u.mayTell(ctx); err != nil {
		u.logger(ctx).Warn("a private sentence was not sent", "to", user, "error", err)
		return
	}
	opts := []slack.MsgOption{
		slack.MsgOptionText(sentence, false), slack.MsgOptionParse(false),
		slack.MsgOptionDisableLinkUnfurl(), slack.MsgOptionDisableMediaUnfurl(),
	}
	if place.Thread != "" {
		opts = append(opts, slack.MsgOptionTS(place.Thread))
	}
	for try := 1; ; try++ {
		_, err := u.client.api.PostEphemeralContext(ctx, place.Channel, user, opts...)
		a := judge(err)
		if a.verdict == confirmed {
			return
		}
		retry := a.verdict == limited || a.verdict == failed || a.verdict == unsure
		if !retry || try == 3 || sleep(ctx, max(a.after, retryAfter(try))) != nil {
			u.logger(ctx).Warn("a private sentence was not sent", "to", user, "error", err)
			return
		}
	}
}

// errBusy: people are told less when there is too much to tell.
var errBusy = errors.New("too many private sentences at once")

// mayTell waits for the next free place, a few seconds at most.
func (u *UI) mayTell(ctx context.Context) error {
	const most = 10 * time.Second
	u.tellMu.Lock()
	now := time.Now()
	at := u.tells.at(now, 0)
	if at.Sub(now) > most {
		u.tellMu.Unlock()
		return errBusy
	}
	u.tells.take(now)
	u.tellMu.Unlock()
	if at.After(now) {
		return sleep(ctx, at.Sub(now))
	}
	return nil
}
