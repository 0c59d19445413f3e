package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"approvalbot/internal/approvals"
	"approvalbot/internal/language"
	"approvalbot/internal/ledger"
	"approvalbot/internal/model"
	"approvalbot/internal/policy"
	"approvalbot/internal/tools"
)

// Config is what an agent is made of. Everything but Profiles, Definitions, Attachments, Grants, Hides, Instructions and Logger is required.
type Config struct {
	Ledger    *ledger.Ledger
	Approvals *approvals.Registry
	Model     model.Model
	Tools     ToolSource
	Policy    PolicySource

	Profiles    ProfileSource // what is different in some places; nil: nothing
	Definitions *Definitions  // of the tools that others define; nil: there are none
	Attachments Attachments   // fetches what is attached to messages; nil: nothing is taken over

	Grants *approvals.Grants      // what people have allowed in advance; nil: nothing
	Hides  func(text string) bool // tells whether a text has a secret in it; nil: any may have one, so nothing can be granted

	Instructions string // what this team's agent is for; added to the system prompt
	Workspace    string // the directory that tools work in; recorded with every ask

	Outcome   time.Duration // how long another program has to report how its action went
	MaxRounds int           // samples of a run; more end it
	MaxAsks   int           // asks of a run; further ones are denied unasked

	ContextTokens int         // what a request to the model may have before its older part is compacted
	Price         model.Price // of the model's tokens; zero: not known

	Drain time.Duration // how long Run lets runs go on after its context ended, before it aborts them

	// Deltas gets the pieces of a model's text as they come, from the goroutine that samples; it must not wait. They are
	// not journalled. It may be nil.
	Deltas func(run, text string)

	Language language.Language // of what is recorded for people to read

	Logger *slog.Logger
}

// A ToolSource gives the tools there are now. A run offers those of its start; what has changed or gone by the time a
// call is to start doesn't run. A [*tools.Set] is one that never changes.
type ToolSource interface{ Set() *tools.Set }

// A PolicySource gives the policy that is in force now. A [*policy.Policy] is one that never changes.
type PolicySource interface{ Current() *policy.Policy }

// The limits where the settings name none: far more than honest work needs, few enough to stop a loop before it tires
// people out.
const (
	DefaultMaxRounds = 40
	DefaultMaxAsks   = 20
)

// DefaultOutcome is how long a program may take over an action before nobody waits for its report any more.
const DefaultOutcome = time.Hour

// An Agent runs messages. See the package comment.
type Agent struct {
	Config

	incoming chan ledger.Event // messages to be worked off, from Receive to Run
	closed   chan struct{}     // closed when Run takes no more of them
	before   int64             // Seq of the last event of earlier processes; Recover sets it

	mu     sync.Mutex
	active map[string]context.CancelCauseFunc // what stops each run that is being worked on
	runs   map[string]*run                    // the same runs
	jobs   map[int64]*job                     // the messages that this process has to work off, by Seq
	acts   map[string]*act                    // what other programs were allowed to do, by run
	load   map[string]int                     // how many of them each session has, those being received included
}

// New checks the configuration. Nothing happens before [Agent.Recover] and [Agent.Run].
func New(c Config) (*Agent, error) {
	if c.MaxRounds <= 0 {
		c.MaxRounds = DefaultMaxRounds
	}
	if c.MaxAsks <= 0 {
		c.MaxAsks = DefaultMaxAsks
	}
	if c.ContextTokens <= 0 {
		c.ContextTokens = DefaultContextTokens
	}
	if c.Outcome <= 0 {
		c.Outcome = DefaultOutcome
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if _, err := toolSpecs(c.Tools.Set()); err != nil {
		return nil, fmt.Errorf("the tools can't be described to a model: %w", err)
	}
	return &Agent{
		Config:   c,
		incoming: make(chan ledger.Event),
		closed:   make(chan struct{}),
		active:   map[string]context.CancelCauseFunc{},
		runs:     map[string]*run{},
		jobs:     map[int64]*job{},
		acts:     map[string]*act{},
		load:     map[string]int{},
	}, nil
}

// toolSpecs are the tool definitions as run_started records them.
func toolSpecs(set *tools.Set) (json.RawMessage, error) {
	var specs []model.ToolSpec
	for _, s := range set.Specs() {
		schema, err := s.Schema()
		if err != nil {
			return nil, fmt.Errorf("%s: %w", s.Name, err)
		}
		specs = append(specs, model.ToolSpec{Name: s.Name, Description: s.Description, InputSchema: schema})
	}
	return json.Marshal(specs)
}

// Run works messages off until ctx ends: first those that the journal holds from before, then what [Agent.Receive]
// brings. When ctx ends it starts nothing more, lets what runs go on for Config.Drain, aborts the rest, and returns when
// every run has its end. It is called once, after [Agent.Recover].
func (a *Agent) Run(ctx context.Context) error {
	work, abort := context.WithCancelCause(context.WithoutCancel(ctx))
	defer abort(nil)
	d := &dispatcher{agent: a, ctx: work, queues: map[string][]ledger.Event{}, ended: make(chan string)}
	waiting, err := a.Ledger.WaitingMessages(ctx)
	if err != nil {
		close(a.closed)
		if ctx.Err() != nil { // told to end before it began
			return nil
		}
		return fmt.Errorf("reading the messages that wait: %w", err)
	}
	for _, e := range waiting {
		if e.Seq > a.before {
			continue // received while we were looking: Receive brings it
		}
		a.inherit(e)
		d.add(e)
	}
	for ctx.Err() == nil {
		select {
		case e := <-a.incoming:
			d.add(e)
		case session := <-d.ended:
			d.next(session)
		case <-ctx.Done():
		}
	}
	close(a.closed)
	d.drain(a.Drain, func() { abort(&endedError{code: codeShutdown, reason: "approvalbot was stopped"}) })
	return nil
}

// dispatcher gives each session its messages one at a time. It is used only in the goroutine of Agent.Run.
type dispatcher struct {
	agent  *Agent
	ctx    context.Context           // of the runs; it outlives the context of Agent.Run by the drain
	queues map[string][]ledger.Event // of the busy sessions: the messages behind the one being worked on
	ended  chan string               // a session whose message was worked off
}

func (d *dispatcher) add(e ledger.Event) {
	queue, busy := d.queues[e.Session]
	if !busy {
		d.start(e)
		d.queues[e.Session] = nil
		return
	}
	// Two deliveries may overtake each other on the way here; the journal's order counts.
	i := len(queue)
	for i > 0 && queue[i-1].Seq > e.Seq {
		i--
	}
	d.queues[e.Session] = append(queue[:i:i], append([]ledger.Event{e}, queue[i:]...)...)
}

func (d *dispatcher) next(session string) {
	queue := d.queues[session]
	if len(queue) == 0 {
		delete(d.queues, session)
		return
	}
	d.queues[session] = queue[1:]
	d.start(queue[0])
}

func (d *dispatcher) start(e ledger.Event) {
	go func() {
		d.agent.work(d.ctx, e)
		d.ended <- e.Session // Agent.Run waits for one of these per start
	}()
}

// drain waits for the runs in progress, and aborts them when the time is over.
func (d *dispatcher) drain(grace time.Duration, abort func()) {
	timer := time.NewTimer(grace)
	defer timer.Stop()
	for len(d.queues) > 0 {
		select {
		case session := <-d.ended:
			delete(d.queues, session) // what is queued behind it stays in the journal
		case <-timer.C:
			abort()
		}
	}
}

// ErrNotRunning says that there is no such run, or that it is over.
var ErrNotRunning = errors.New("this run is not in progress")

// Stop ends a run: open asks and running tools are aborted. Requesters may, and whoever may decide one of its asks;
// others get an [*approvals.RefusedError]. A run that is over is [ErrNotRunning].
func (a *Agent) Stop(ctx context.Context, id string, by ledger.Actor) error {
	state, ok, err := a.Ledger.LoadRun(ctx, id)
	if err != nil {
		return err
	}
	if !ok || state.Status().Ended() {
		return ErrNotRunning
	}
	if err := a.Approvals.MayStop(ctx, by, state); err != nil {
		return err
	}
	reason := "stopped by " + by.DisplayName()
	_, err = a.Ledger.Append(ctx, ledger.Event{
		Session: state.Session, Run: id, Actor: by, Body: &ledger.RunStopRequested{Reason: reason},
	})
	// Stopping is the safe side: it happens even if it can't be recorded, and the error says so.
	a.mu.Lock()
	defer a.mu.Unlock()
	if cancel, ok := a.active[id]; ok {
		cancel(&endedError{code: codeStopped, reason: reason})
	}
	return err
}

// endedError is the cause of a run's context when it was ended from outside.
type endedError struct {
	code   string // of run_finished
	reason string // a clause: "stopped by Alice"
}

func (e *endedError) Error() string { return e.reason }

// Unwrap gives the approvals the words for asks that were open.
func (e *endedError) Unwrap() error { return &approvals.AbortError{Reason: e.reason} }
