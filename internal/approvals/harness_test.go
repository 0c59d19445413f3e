package approvals

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"time"

	"approvalbot/internal/ledger"
)

const team = "T1"

// Everyone in the tests' workspace.
var (
	alice   = user("UALICE") // asks, mostly
	bob     = user("UBOB")
	carol   = user("UCAROL")
	dave    = user("UDAVE") // a member who isn't in the private channel
	guest   = user("UGUEST")
	bot     = user("UBOT")
	gone    = user("UGONE")
	nobody  = user("UNOBODY")  // no record
	strange = user("USTRANGE") // a record that can't be read
	shared  = user("USHARED")  // of another organization, by their record
	foreign = ledger.Actor{Kind: ledger.ActorUser, Team: "T2", ID: "UBOB", Via: "slack"}
	token   = ledger.Actor{Kind: ledger.ActorToken, ID: "ci", Via: "http"}
)

func user(id string) ledger.Actor {
	return ledger.Actor{Kind: ledger.ActorUser, Team: team, ID: id, Via: "slack"}
}

// A book is a directory out of a table, with what can go wrong.
type book struct {
	kinds    map[string]PersonKind
	channels map[string]ChannelInfo
	in       map[string][]string
	groups   map[string][]string

	mu    sync.Mutex
	delay time.Duration
	err   error

	slowly string // whose look-up takes longer
	longer time.Duration
}

func newBook() *book {
	b := &book{
		kinds: map[string]PersonKind{
			"UGUEST": Guest, "UBOT": Bot, "UGONE": Deactivated, "USHARED": External, "USTRANGE": UnknownPerson,
		},
		channels: map[string]ChannelInfo{
			"CPRIVATE": {Kind: PrivateChannel}, "CPUBLIC": {Kind: PublicChannel}, "COPEN": {Kind: PublicChannel},
			"CMPIM": {Kind: GroupMessage}, "DALICE": {Kind: DirectMessage}, "CODD": {Kind: "clips"},
			"COLD": {Kind: PrivateChannel, Archived: true},
		},
		in:     map[string][]string{"DALICE": {"UALICE", "UBOT"}},
		groups: map[string][]string{"SONCALL": {"UCAROL", "UGUEST", "UALICE"}, "SEMPTY": {}},
	}
	for _, m := range []ledger.Actor{alice, bob, carol, dave} {
		b.kinds[m.ID] = FullMember
	}
	for _, c := range []string{"CPRIVATE", "CPUBLIC", "COPEN", "CMPIM", "CODD", "COLD"} {
		b.in[c] = []string{"UALICE", "UBOB", "UGUEST", "UBOT", "UGONE", "USHARED", "USTRANGE", "UNOBODY"}
	}
	return b
}

func (b *book) spoil(delay time.Duration, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.delay, b.err = delay, err
}

// ask is every look-up: it takes its time, and gives up with ctx.
func (b *book) ask(ctx context.Context) error {
	b.mu.Lock()
	delay, err := b.delay, b.err
	b.mu.Unlock()
	if delay > 0 {
		t := time.NewTimer(delay)
		defer t.Stop()
		select {
		case <-t.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return err
}

// slow makes the look-up of one person take its time.
func (b *book) slow(user string, delay time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.slowly, b.longer = user, delay
}

func (b *book) Person(ctx context.Context, p ledger.Person) (Profile, error) {
	b.mu.Lock()
	if b.slowly != "" && b.slowly == p.ID {
		defer time.Sleep(b.longer)
	}
	b.mu.Unlock()
	if err := b.ask(ctx); err != nil {
		return Profile{}, err
	}
	k, ok := b.kinds[p.ID]
	if !ok {
		return Profile{}, fmt.Errorf("user_not_found: %w", ErrNoSuch)
	}
	return Profile{ID: ledger.Person{Team: team, ID: p.ID}, Name: "name of " + p.ID, Kind: k}, nil
}

func (b *book) Channel(ctx context.Context, channel string) (ChannelInfo, error) {
	if err := b.ask(ctx); err != nil {
		return ChannelInfo{}, err
	}
	c, ok := b.channels[channel]
	if !ok {
		return ChannelInfo{}, errors.New("channel_not_found")
	}
	c.ID = channel
	return c, nil
}

func (b *book) Member(ctx context.Context, channel, user string) (bool, error) {
	return slices.Contains(b.in[channel], user), b.ask(ctx)
}

func (b *book) Group(ctx context.Context, group string) ([]string, error) {
	if err := b.ask(ctx); err != nil {
		return nil, err
	}
	g, ok := b.groups[group]
	switch {
	case group == "SLOST":
		return nil, errors.New("internal_error")
	case !ok:
		return nil, fmt.Errorf("no_such_subteam: %w", ErrNoSuch)
	}
	return g, nil
}

// A rosterBook can also list a channel.
type rosterBook struct{ *book }

func (b rosterBook) Members(ctx context.Context, channel string) ([]string, error) {
	return b.in[channel], b.ask(ctx)
}

// A spoilt journal is a journal with faults on demand.
type spoilt struct {
	Journal
	mu       sync.Mutex
	hold     chan struct{} // appends wait until it is closed
	keep     chan struct{} // appends are on disk, and return when it is closed
	arrived  chan struct{} // gets one for each append that waits
	lose     bool          // appends take place, and an error is reported
	fail     bool          // appends don't take place
	unread   bool          // nothing can be looked up
	looking  func()        // is called before something is looked up
	appended int
}

var errDisk = errors.New("disk I/O error")

func (s *spoilt) set(f func(*spoilt)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f(s)
}

func (s *spoilt) Append(ctx context.Context, events ...ledger.Event) ([]ledger.Event, error) {
	s.mu.Lock()
	hold, keep, lose, fail := s.hold, s.keep, s.lose, s.fail
	s.appended++
	s.mu.Unlock()
	if hold != nil {
		s.arrived <- struct{}{}
		<-hold
	}
	if fail {
		return nil, fmt.Errorf("%w: %w", ledger.ErrNotRecorded, errDisk)
	}
	done, err := s.Journal.Append(ctx, events...)
	if keep != nil {
		<-keep
	}
	if lose && err == nil {
		return nil, fmt.Errorf("%w: %w", ledger.ErrNotRecorded, errDisk)
	}
	return done, err
}

func (s *spoilt) Claimed(ctx context.Context, c ledger.Claim) (ledger.Event, bool, error) {
	s.mu.Lock()
	unread, looking := s.unread, s.looking
	s.mu.Unlock()
	if looking != nil {
		looking()
	}
	if unread {
		return ledger.Event{}, false, errDisk
	}
	return s.Journal.Claimed(ctx, c)
}

// A world is a registry with everything around it.
type world struct {
	testing.TB
	*Registry
	book     *book
	journal  *spoilt
	dir      string // the journal's
	settings Settings
}

func newWorld(t testing.TB, change ...func(*Settings)) *world {
	t.Helper()
	s := Settings{Approvers: list(t, "channel"), OpenChannels: []string{"COPEN"}, Team: team}
	for _, c := range change {
		c(&s)
	}
	w := &world{TB: t, book: newBook(), dir: t.TempDir(), settings: s}
	w.journal = &spoilt{Journal: openJournal(t, w.dir)}
	w.restart()
	return w
}

// restart forgets everything that is only in memory.
func (w *world) restart() {
	w.Registry = New(w.journal, w.book, w.settings, slog.New(slog.DiscardHandler))
}

func list(t testing.TB, words ...string) Approvers {
	t.Helper()
	a, err := ParseApprovers(words)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func approvers(t testing.TB, words ...string) func(*Settings) {
	return func(s *Settings) { s.Approvers = list(t, words...) }
}

func quorum(n int) func(*Settings) { return func(s *Settings) { s.Quorum = n } }

// request is an ask of alice's in a private channel with bob.
func request(run, call string) Request {
	return Request{
		Key: Key{run, call}, Session: "session", Tool: "shell", ToolHash: "00", Arguments: `{"command":"ls"}`,
		Preview: ledger.Preview{Summary: "Run ls", Kind: "command", Body: "ls"}, Reason: "it may write",
		Place:      ledger.Place{Team: team, Channel: "CPRIVATE", Thread: "1.0"},
		Requesters: []ledger.Person{alice.Person()}, Surfaces: []string{"slack"}, PolicyHash: "11", Cwd: "/w",
	}
}

func (w *world) open(run, call string, change ...func(*Request)) *Pending {
	w.Helper()
	q := request(run, call)
	for _, c := range change {
		c(&q)
	}
	p, err := w.Open(w.ctx(), q)
	if err != nil {
		w.Fatal(err)
	}
	return p
}

func (w *world) ctx() context.Context { return context.Background() }

// wait waits in its own goroutine; the function it returns hands over the resolution.
func (w *world) wait(ctx context.Context, p *Pending) func() Resolution {
	c := make(chan Resolution, 1)
	go func() { c <- p.Wait(ctx) }()
	return func() Resolution { return <-c }
}

func (w *world) shown(p *Pending, s Showing) {
	w.Helper()
	if err := w.Shown(w.ctx(), p.ID(), s); err != nil {
		w.Fatal(err)
	}
}

var card = Showing{Surface: "slack", Channel: "CPRIVATE", TS: "2.0"}

func approve(by ledger.Actor) Decision { return Decision{Type: ledger.Approved, By: by} }

func deny(by ledger.Actor, reason string) Decision {
	return Decision{Type: ledger.Denied, By: by, Reason: reason}
}

// resolved reads an approval's resolution from the journal; nil if there is none.
func (w *world) resolved(id string) *Resolution {
	w.Helper()
	e, ok, err := w.journal.Journal.Claimed(w.ctx(), ledger.ClaimResolution(id))
	if err != nil {
		w.Fatal(err)
	}
	if !ok {
		return nil
	}
	return &Resolution{ApprovalResolved: *e.Body.(*ledger.ApprovalResolved), At: e.Time, Seq: e.Seq}
}

// empty checks that nothing is left in memory.
func (w *world) empty() {
	w.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	if n := len(w.byID) + len(w.byKey) + len(w.byRun); n != 0 {
		w.Errorf("%d entries are left in memory", n)
	}
}

func wantRefused(t testing.TB, err error) *RefusedError {
	t.Helper()
	e, ok := errors.AsType[*RefusedError](err)
	if !ok {
		t.Fatalf("got %v, want a refusal", err)
	}
	return e
}

// openJournal opens a real journal, which is verified and closed when the test ends.
func openJournal(t testing.TB, dir string) Journal {
	t.Helper()
	l, err := ledger.Open(context.Background(), dir, ledger.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { closeJournal(t, l) })
	return l
}

func closeJournal(t testing.TB, l *ledger.Ledger) {
	t.Helper()
	report, err := l.Verify(context.Background(), ledger.VerifyOptions{})
	if err != nil || report.Problem != nil {
		t.Errorf("the journal: %v, %v", report.Problem, err)
	}
	if err := l.Close(); err != nil {
		t.Error(err)
	}
}

// stoppable is a context as a run has it, and what stops the run.
func stoppable() (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(context.Background())
	return ctx, func() { cancel(&AbortError{Reason: "stopped by alice"}) }
}
