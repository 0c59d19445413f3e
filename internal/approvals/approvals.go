package approvals

import (
	"context"
	"errors"
	"fmt"
	"time"

	"approvalbot/internal/ledger"
)

// A Journal is what the registry needs of the ledger: to write events, and to read back what was decided earlier.
type Journal interface {
	Append(ctx context.Context, events ...ledger.Event) ([]ledger.Event, error)
	Claimed(ctx context.Context, c ledger.Claim) (ledger.Event, bool, error)
}

// A Key names a tool call, and so the one ask there can be about it.
type Key struct{ Run, Call string }

// A Request is an ask to be opened. Its slices are kept: don't change them afterwards.
type Request struct {
	Key
	Session    string
	Tool       string
	ToolHash   string // SHA-256, hex, of the tool's definition
	Arguments  string // canonical JSON: what is shown, approved and executed
	Preview    ledger.Preview
	Reason     string // why it asks
	Place      ledger.Place
	Requesters []ledger.Person // everyone whose words are in the instructions; of a token that names its person, the person
	Surfaces   []string        // who has to show it: slack, http
	PolicyHash string
	Cwd        string
	Rule       string // what asks, as the policy names it
	Risk       string // low, medium, high, critical, or nothing
	Confirm    bool   // a click on Approve is confirmed once more

	Grantable bool // nothing known to the caller keeps the call from being allowed in advance; the rest is checked here
	Exact     bool // and if it is, with exactly these arguments: they may be a program

	// What the policy wants for this call. Nil or zero: what the registry's settings say.
	Approvers []string
	Quorum    int // never fewer than the settings say
	Timeout   time.Duration
	Remind    Reminder
	Escalate  []ledger.Escalation // in order; ids only

	// Offers are what the card lets people do, as far as the caller knows. The registry adds what its settings allow.
	Offers []ledger.Offer
}

// Settings say who may decide, and how long there is for it.
type Settings struct {
	Approvers    Approvers         // who may approve; zero: nobody
	Requesters   Approvers         // who may start runs; zero: full members
	Quorum       int               // how many different people have to approve; zero: 1
	Timeout      time.Duration     // how long people have, from the first showing; zero: 2 minutes
	ShowWithin   time.Duration     // how long the surfaces have to show an ask; zero: 1 minute
	OpenChannels []string          // the public channels whose members count under "channel"
	Grantors     Approvers         // who may allow calls in advance; zero: nobody
	Grants       ledger.GrantScope // how far that may reach; zero: the thread
	Operators    Approvers         // who runs this; zero: nobody
	Remind       int               // after which part of the time people are reminded, in percent; zero: never
	MoreTime     time.Duration     // how far people may move a deadline altogether; zero: not at all
	Team         string            // our workspace: people of another one are outsiders. Empty: the ask's own place says it
	Bots         []string          // other bots and workflows that may start runs, B…; they never decide anything

	// Where asks stand besides their run's own place, and how they are shown.
	Channel  string   // the approvals channel; empty: there is none
	Only     bool     // they have buttons there only
	Notify   []string // whom their messages mention: approvers, none, U…, S…; empty: approvers
	Together bool     // those that a run makes at once may stand in one message
	Site     string   // what links to messages begin with: the workspace's address
}

const (
	defaultQuorum     = 1
	defaultTimeout    = 2 * time.Minute
	defaultShowWithin = time.Minute
)

// A Decision is what somebody says to an ask.
type Decision struct {
	Type   ledger.ResolutionType
	Reason string // their words, may be empty
	// By is who decides. A token of the HTTP API that names its Slack user decides as that user: Kind user, Via http.
	By ledger.Actor
	// Received is when the decision reached us; zero: now. What came before the deadline counts, however long it took to
	// find out who it is from, as long as the journal doesn't say that the ask has ended. It is read from our own clock.
	Received time.Time
	// With are events that are recorded together with the decision, or not at all, because both are one: such as that the
	// message whose words are the reason starts nothing any more. Where one of them claims what was claimed before, nothing
	// is decided, and the error wraps the [*ledger.ConflictError]. Of a decision that was repeated they are not recorded.
	With []ledger.Event

	// Revision says which form of the arguments it is about: 0 as they were asked for, n after the n-th change. What people
	// approve is what they have seen, so an approval of another form than the one that stands counts for nothing.
	Revision int
	// Confirmed is what somebody typed who approves an ask of critical risk: see [Confirmation].
	Confirmed string

	grant *granting // of [Grants.Give]: what is given with an approval
}

// AnyRevision is the revision of a denial that holds for whatever stands there.
const AnyRevision = -1

// A Showing is a place where people can see an ask and decide it.
type Showing struct {
	Surface string
	Channel string
	TS      string
	Until   time.Time // the deadline that stands there; zero: the timeout counted from now
}

// A Snapshot is an ask as it stood at one moment.
type Snapshot struct {
	Key
	ID      string // the approvalId
	Session string
	// Ask is what was asked and what became of it. Of an ask that is over and gone from memory it has the request and
	// the resolution; showings and votes are then in the journal only.
	Ask ledger.Approval
}

// A Resolution is how an ask ended. Its reason is a phrase for people, in the words of whoever or whatever ended it.
type Resolution struct {
	ledger.ApprovalResolved
	At  time.Time
	Seq int64 // of the event; 0: it could not be recorded, so nothing may follow from it
}

// Recorded tells whether the resolution stands in the journal.
func (r Resolution) Recorded() bool { return r.Seq != 0 }

// An Outcome is the answer to a decision that counted.
type Outcome struct {
	Snapshot   Snapshot
	Resolution *Resolution // nil: a vote that doesn't end it
	Approvals  int         // different people who have approved
	Quorum     int         // how many it takes
	Repeated   bool        // the same was said before; nothing new was recorded
}

var (
	// ErrNotFound: there never was such an ask.
	ErrNotFound = errors.New("approvals: no such approval")
	// ErrAsked: this call was asked about before, and a call is asked about once.
	ErrAsked = errors.New("approvals: this call was asked about before")
	// ErrInvalid: a request or decision that makes no sense. Nothing was changed.
	ErrInvalid = errors.New("approvals: invalid")
)

// A ConflictError says that people decided otherwise, first.
type ConflictError struct {
	Resolution Resolution
	Snapshot   Snapshot
}

func (e *ConflictError) Error() string {
	return fmt.Sprintf("approvals: %s was %s before", e.Resolution.Approval, e.Resolution.Type)
}

// An ExpiredError says that the ask ended without a decision of people: nobody answered in time, nobody could be asked,
// or the run or process ended.
type ExpiredError struct {
	Resolution Resolution
	Snapshot   Snapshot
}

func (e *ExpiredError) Error() string {
	return fmt.Sprintf("approvals: %s is over (%s): %s", e.Resolution.Approval, e.Resolution.Source, e.Resolution.Reason)
}

// Ended finds the resolution in an error that says that an ask is over, whichever way it ended.
func Ended(err error) (Resolution, Snapshot, bool) {
	if e, ok := errors.AsType[*ConflictError](err); ok {
		return e.Resolution, e.Snapshot, true
	}
	if e, ok := errors.AsType[*ExpiredError](err); ok {
		return e.Resolution, e.Snapshot, true
	}
	return Resolution{}, Snapshot{}, false
}

// A RefusedError says that somebody may not do what they wanted. Nothing was changed.
type RefusedError struct {
	Reason  string   // a sentence for that person, without mentions
	Allowed []string // who may, as in an approvers list, for the surface to render
}

func (e *RefusedError) Error() string { return "approvals: refused: " + e.Reason }

// An AbortError, as the cause of a context that ends a wait, says why it was ended: "stopped by alice".
type AbortError struct{ Reason string }

func (e *AbortError) Error() string { return e.Reason }
