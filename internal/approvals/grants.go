package approvals

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"approvalbot/internal/ledger"
)

// A grant is an answer that somebody has given in advance: calls that are exactly as it says, so many times, until then.
//
// # Life
//
// On a card, somebody who may approve the call and may grant says what else of its kind they allow. That is one append:
// the approval of that ask, and grant_given. Either both are in the journal or neither. From then on a call that the
// policy would ask about is looked up here first. The one that a grant covers starts without asking anybody, and that it
// did, by whose grant and as which use, is journalled with its start, as one append again. A grant ends by its time, its
// count, grant_revoked, another definition of its tool, or another policy. It doesn't come back.
//
//	ask ── Give ── approval_resolved + grant_given ──┬─ Use ── permission_decided (source grant) + tool_started
//	                                                 ├─ Use ── …
//	                                                 └─ grant_revoked │ Until │ Uses │ tool_defined │ policy_changed
//
// # Invariants
//
//   - The policy comes first. A grant is looked at only where the policy asks, so a deny stays one, and a grant of a call
//     that a rule has since made critical, confirmed or a matter of two people covers nothing.
//   - A grant covers a call only if everything fits ([grant.covers]); what is missing or not known fits nothing.
//   - It is the grantor's own answer and no more: it covers a call only while the grantor could approve that very call,
//     and may grant at all. Somebody who left, or has lost the right, allows nothing any more.
//   - Each use has a number that it claims, so that no count is exceeded, whatever happens at the same time.
//   - A revocation that is committed before a use wins: both hold the grant's lock while they are being committed.
//   - Memory changes only by committed events. Before a grant is used, and before it is listed, what others have recorded
//     meanwhile is read.

// A GrantJournal is what [Grants] needs of the ledger.
type GrantJournal interface {
	GrantReader
	Append(ctx context.Context, events ...ledger.Event) ([]ledger.Event, error)
}

// A GrantReader is what listing grants takes.
type GrantReader interface {
	Read(ctx context.Context, after int64, f ledger.Filter) iter.Seq2[ledger.Event, error]
	Claimed(ctx context.Context, c ledger.Claim) (ledger.Event, bool, error)
}

// InForce is what a grant has to fit besides its call, as it is now. What is nil isn't known, and is compared when a
// grant is used.
type InForce struct {
	PolicyHash func() string                    // of the operator's policy
	ToolHash   func(tool string) (string, bool) // of a tool's definition; false: it isn't there
}

// Grants are those that this process knows: all that are in force, and those that ended lately.
type Grants struct {
	registry *Registry
	reader   GrantReader
	journal  GrantJournal // nil: only to be listed
	now      InForce
	log      *slog.Logger

	reading sync.Mutex // whoever reads the journal has it

	mu     sync.Mutex // guards what follows, and is never held while anything is waited for
	seen   int64      // Seq up to which the journal has been read
	all    map[string]*grant
	pause  int64 // Seq of the last paused or resumed
	paused bool
}

// A grant is one in memory.
type grant struct {
	*ledger.GrantGiven
	by      ledger.Actor
	at      time.Time
	seq     int64
	session string
	args    map[string]json.RawMessage

	// turn is held by uses, together, and by a revocation, alone, until they are committed.
	turn sync.RWMutex

	// Guarded by Grants.mu.
	uses  map[int]bool // numbers: true, of a use that is recorded; false, of one that is being recorded
	ended string       // why it allows nothing any more, by an event; empty: by none
}

// A Grant is one as it stands at a moment.
type Grant struct {
	ID      string
	Body    ledger.GrantGiven
	By      ledger.Actor // who gave it
	At      time.Time
	Session string // in which it was given; of a thread's grant, where it holds
	Used    int
	Ended   string // why it allows nothing any more; empty: it is in force
}

// Why a grant has ended, as people read it.
const (
	endedPolicy = "the policy changed"
	endedTool   = "the tool changed"
	endedTime   = "its time is over"
	endedUses   = "it was used up"
)

// grantKinds are the kinds of events that grants are made of, besides their uses.
var grantKinds = []string{"grant_given", "grant_revoked", "tool_defined", "policy_changed", "paused", "resumed"}

// listedFor is how long a grant is listed that has ended. None lasts longer than this.
const listedFor = 31 * 24 * time.Hour

// NewGrants reads the grants there are.
func NewGrants(ctx context.Context, j GrantJournal, r *Registry, now InForce, log *slog.Logger) (*Grants, error) {
	g := &Grants{registry: r, reader: j, journal: j, now: now, log: log, all: map[string]*grant{}}
	return g, g.load(ctx)
}

// ReadGrants lists the grants of a journal that another process may be writing.
func ReadGrants(ctx context.Context, r GrantReader, now time.Time) ([]Grant, error) {
	g := &Grants{reader: r, all: map[string]*grant{}}
	if err := g.load(ctx); err != nil {
		return nil, err
	}
	return g.list(now), nil
}

func (g *Grants) load(ctx context.Context) error {
	if err := g.catchUp(ctx); err != nil {
		return err
	}
	for _, one := range g.all {
		if err := g.count(ctx, one); err != nil {
			return fmt.Errorf("reading how often grants were used: %w", err)
		}
	}
	return nil
}

// count finds out how often a grant was used, by the claims of its uses: they stay when the bodies of a run are erased.
func (g *Grants) count(ctx context.Context, one *grant) error {
	for n := 1; n <= one.Uses; n++ {
		_, used, err := g.reader.Claimed(ctx, ledger.ClaimGrantUse(one.Grant, n))
		if err != nil || !used {
			return err // one that is used behind a gap is found when its number is claimed again
		}
		one.uses[n] = true
	}
	return nil
}

// catchUp takes in what was recorded since it was read last.
func (g *Grants) catchUp(ctx context.Context) error {
	g.reading.Lock()
	defer g.reading.Unlock()
	g.mu.Lock()
	after := g.seen
	g.mu.Unlock()
	for e, err := range g.reader.Read(ctx, after, ledger.Filter{Kinds: grantKinds}) {
		if err != nil {
			return fmt.Errorf("reading the grants: %w", err)
		}
		g.apply(e)
	}
	return nil
}

// apply takes in a committed event. It may have been taken in before.
func (g *Grants) apply(e ledger.Event) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.seen = max(g.seen, e.Seq)
	switch b := e.Body.(type) {
	case *ledger.GrantGiven:
		if g.all[b.Grant] == nil {
			g.all[b.Grant] = &grant{
				GrantGiven: b, by: e.Actor, at: e.Time, seq: e.Seq, session: e.Session, args: b.Arguments, uses: map[int]bool{},
			}
		}
	case *ledger.GrantRevoked:
		if one := g.all[b.Grant]; one != nil {
			one.ended = revokedBy(e.Actor, b.Reason)
		}
	case *ledger.ToolDefined:
		g.end(e.Seq, endedTool, func(one *grant) bool { return one.Tool == b.Tool && one.ToolHash != b.Hash })
	case *ledger.PolicyChanged:
		g.end(e.Seq, endedPolicy, func(one *grant) bool { return one.PolicyHash != b.To })
	case *ledger.Paused, *ledger.Resumed:
		if e.Seq > g.pause {
			g.pause = e.Seq
			_, g.paused = b.(*ledger.Paused)
		}
	}
}

// end ends the grants, given before an event, that it is about. g.mu is held.
func (g *Grants) end(seq int64, why string, about func(*grant) bool) {
	for _, one := range g.all {
		if one.seq < seq && one.ended == "" && about(one) {
			one.ended = why
		}
	}
}

func revokedBy(by ledger.Actor, reason string) string {
	s := "revoked by " + by.DisplayName()
	if reason = strings.TrimSpace(reason); reason != "" {
		s += ": " + reason
	}
	return s
}

// over says why a grant allows nothing any more; empty: it does. g.mu is held.
func (g *Grants) over(one *grant, now time.Time) string {
	switch {
	case one.ended != "":
		return one.ended
	case !now.Before(one.Until):
		return endedTime
	case one.used() >= one.Uses:
		return endedUses
	}
	return g.outdated(one.GrantGiven)
}

// outdated says why a grant isn't about the tool or the rules as they are now; empty: it is, or that isn't known.
func (g *Grants) outdated(b *ledger.GrantGiven) string {
	if g.now.PolicyHash != nil && g.now.PolicyHash() != b.PolicyHash {
		return endedPolicy
	}
	if g.now.ToolHash != nil {
		if hash, there := g.now.ToolHash(b.Tool); there && hash != b.ToolHash {
			return endedTool
		}
	}
	return ""
}

// used counts the uses that are recorded.
func (one *grant) used() int {
	n := 0
	for _, recorded := range one.uses {
		if recorded {
			n++
		}
	}
	return n
}

// covers tells whether a grant is about a call: everything fits. Whether it is in force is another question.
func (one *grant) covers(q Request, args map[string]json.RawMessage) bool {
	switch {
	case one.Tool != q.Tool || one.ToolHash == "" || one.ToolHash != q.ToolHash:
		return false
	case one.PolicyHash == "" || one.PolicyHash != q.PolicyHash:
		return false
	case q.Exact && len(one.Any) > 0:
		return false
	case !one.reaches(q.Session), one.Cwd != q.Cwd:
		return false
	case !subset(q.Requesters, one.Requesters):
		return false
	}
	for name, want := range one.args {
		if got, ok := args[name]; !ok || string(got) != string(want) {
			return false
		}
	}
	for name := range args {
		_, fixed := one.args[name]
		if !fixed && !slices.Contains(one.Any, name) {
			return false
		}
	}
	return true
}

// reaches tells whether the grant holds in a session. What scope it isn't known to have reaches nothing.
func (one *grant) reaches(session string) bool {
	switch one.Scope {
	case ledger.GrantThread:
		return session != "" && one.session == session
	case ledger.GrantAlways:
		return true
	}
	return false
}

// subset tells whether all who asked are among those for whose calls it was given. Nobody is no one of them: a call of
// which it isn't known who asked for it is covered by nothing. Unlike elsewhere a team that isn't known is no excuse.
func subset(asked, granted []ledger.Person) bool {
	if len(asked) == 0 {
		return false
	}
	return !slices.ContainsFunc(asked, func(p ledger.Person) bool { return p.ID == "" || !slices.Contains(granted, p) })
}

// members takes canonical arguments apart; false: they are no object.
func members(arguments string) (map[string]json.RawMessage, bool) {
	var args map[string]json.RawMessage
	if err := json.Unmarshal([]byte(arguments), &args); err != nil || args == nil {
		return nil, false
	}
	return args, true
}

// A Use is one use of a grant.
type Use struct {
	Grant string
	N     int // from 1
	By    ledger.Actor
	Until time.Time
	Uses  int
}

// Reason says in a sentence that nobody was asked, and why.
func (u Use) Reason() string {
	return fmt.Sprintf("Allowed by %s's grant until %s (%d of %d).", u.By.DisplayName(), u.Until.UTC().Format("2006-01-02 15:04 UTC"), u.N, u.Uses)
}

// Decide writes the use into a decision: the call is allowed, and what decided is the grant.
func (u Use) Decide(d *ledger.PermissionDecided) {
	d.Type, d.Source, d.Rule, d.Reason = ledger.Allow, SourceGrant, "grant: "+u.Grant, u.Reason()
	d.Grant, d.GrantUse, d.GrantBy, d.GrantUntil, d.GrantUses = u.Grant, u.N, &u.By, u.Until, u.Uses
}

// SourceGrant is the source of a decision that a grant made.
const SourceGrant = "grant"

// Use starts a call, that people would be asked about, by a grant that covers it. It is false where there is none: then
// they are asked. start records the decision and the start in one append; it is called with one use at a time, again
// where another call has taken that number, and its error is returned as it is.
func (g *Grants) Use(ctx context.Context, q Request, start func(Use) error) (bool, error) {
	if g == nil || g.journal == nil || !g.any(q.Tool) {
		return false, nil
	}
	args, ok := members(q.Arguments)
	if !ok || g.registry.ungrantable(q, g.registry.quorum(q)) != "" {
		return false, nil
	}
	if err := g.catchUp(ctx); err != nil {
		g.log.Warn("the grants could not be read, so people are asked", "run", q.Run, "call", q.Call, "error", err)
		return false, nil
	}
	for _, one := range g.covering(q, args) {
		if !g.registry.grantorMay(ctx, one, q) {
			continue
		}
		used, err := g.use(one, q, start)
		if used || err != nil {
			return used, err
		}
	}
	return false, nil
}

// any tells whether a grant of the tool may be in force, so that a call that has none costs nothing.
func (g *Grants) any(tool string) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, one := range g.all {
		if one.Tool == tool && one.ended == "" {
			return true
		}
	}
	return false
}

// covering are the grants in force that cover a call: those of the thread first, then the oldest.
func (g *Grants) covering(q Request, args map[string]json.RawMessage) []*grant {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.paused {
		return nil
	}
	var found []*grant
	for _, one := range g.all {
		if one.covers(q, args) && g.over(one, clock()) == "" {
			found = append(found, one)
		}
	}
	slices.SortFunc(found, func(a, b *grant) int {
		return cmp.Or(cmp.Compare(reach(a.Scope), reach(b.Scope)), cmp.Compare(a.seq, b.seq))
	})
	return found
}

func reach(s ledger.GrantScope) int {
	if s == ledger.GrantThread {
		return 0
	}
	return 1
}

// use records one use of a grant, under a number that is free. The grant can't be revoked while it is recorded.
func (g *Grants) use(one *grant, q Request, start func(Use) error) (bool, error) {
	one.turn.RLock()
	defer one.turn.RUnlock()
	for {
		n := g.reserve(one)
		if n == 0 {
			return false, nil
		}
		err := start(Use{Grant: one.Grant, N: n, By: one.by, Until: one.Until, Uses: one.Uses})
		taken := takenByAnother(err, q.Key)
		g.settle(one, n, err == nil || taken)
		if !taken {
			return err == nil, err
		}
	}
}

// reserve takes the lowest number that is free; 0: there is none, or the grant is over.
func (g *Grants) reserve(one *grant) int {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.paused || g.over(one, clock()) != "" {
		return 0
	}
	for n := 1; n <= one.Uses; n++ {
		if _, taken := one.uses[n]; !taken {
			one.uses[n] = false
			return n
		}
	}
	return 0
}

// settle says what became of a number: it is recorded, by us or by another, or free again.
func (g *Grants) settle(one *grant, n int, recorded bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if recorded {
		one.uses[n] = true
		return
	}
	delete(one.uses, n)
}

// takenByAnother tells whether an append failed because another call has the number.
func takenByAnother(err error, k Key) bool {
	lost, ok := errors.AsType[*ledger.ConflictError](err)
	return ok && lost.Winner.Kind() == "permission_decided" && (Key{lost.Winner.Run, lost.Winner.Call}) != k
}

// Revoke ends a grant, for calls that come and for those that are about to start. Who gave it may, whoever may grant
// there, operators, and programs with a token; others get a [*RefusedError]. [ErrNoGrant]: there is none with this id;
// [*GrantOverError]: it has ended already.
func (g *Grants) Revoke(ctx context.Context, id string, by ledger.Actor, reason string) error {
	if err := g.catchUp(ctx); err != nil {
		return fmt.Errorf("%w: %w", ledger.ErrNotRecorded, err)
	}
	g.mu.Lock()
	one := g.all[id]
	g.mu.Unlock()
	if one == nil {
		return ErrNoGrant
	}
	if err := g.registry.mayRevoke(ctx, one, by); err != nil {
		return err
	}
	one.turn.Lock() // uses that are being recorded come before; those that come after see that it is over
	defer one.turn.Unlock()
	g.mu.Lock()
	why := one.ended
	g.mu.Unlock()
	if why != "" {
		return &GrantOverError{Why: why}
	}
	written, err := g.journal.Append(context.WithoutCancel(ctx), ledger.Event{
		Session: one.session, Actor: by, Body: &ledger.GrantRevoked{Grant: id, Reason: words(reason)},
	})
	if lost, ok := errors.AsType[*ledger.ConflictError](err); ok {
		g.apply(lost.Winner)
		return &GrantOverError{Why: revokedBy(lost.Winner.Actor, "")}
	}
	if err != nil {
		return fmt.Errorf("revoke a grant: %w", err)
	}
	for _, e := range written {
		g.apply(e)
	}
	return nil
}

// ErrNoGrant: there is no grant with this id.
var ErrNoGrant = errors.New("approvals: no such grant")

// A GrantOverError says that a grant has ended already.
type GrantOverError struct{ Why string }

func (e *GrantOverError) Error() string { return "approvals: this grant has ended: " + e.Why }

// List are the grants that are in force, and those that ended in the last month: the newest first.
func (g *Grants) List(now time.Time) []Grant {
	if g == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), lookupLimit)
	defer cancel()
	if err := g.catchUp(ctx); err != nil {
		g.log.Warn("the grants could not be read; what is listed may be behind", "error", err)
	}
	return g.list(now)
}

func (g *Grants) list(now time.Time) []Grant {
	g.mu.Lock()
	defer g.mu.Unlock()
	var all []Grant
	for _, one := range g.all {
		if now.Sub(one.at) < listedFor {
			all = append(all, one.snapshot(g.over(one, now)))
		}
	}
	slices.SortFunc(all, func(a, b Grant) int { return cmp.Or(b.At.Compare(a.At), cmp.Compare(a.ID, b.ID)) })
	return all
}

func (one *grant) snapshot(ended string) Grant {
	body := *one.GrantGiven
	body.Arguments, body.Any = maps.Clone(one.Arguments), slices.Clone(one.Any)
	return Grant{ID: one.Grant, Body: body, By: one.by, At: one.at, Session: one.session, Used: one.used(), Ended: ended}
}
