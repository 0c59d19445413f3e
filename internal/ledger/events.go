package ledger

import (
	"encoding/json"
	"strconv"
	"strings"
	"time"
	"unicode"
)

// An Event is one row of the journal. The writer fills in Seq, Time and Hash; the caller fills in the rest.
type Event struct {
	Seq     int64     // from 1, dense, in commit order
	Time    time.Time // when it was committed, UTC, never before the event in front of it
	Session string    // the conversation, if it belongs to one
	Run     string    // the run, if it belongs to one
	Call    string    // the toolCallId within Run, if it is about one call
	Actor   Actor     // who caused it
	Body    Body      // what happened; *Erased after its body was erased
	Hash    Hash      // of this row and, through the one before it, of all rows up to here
}

// Kind is the name of the event's body, such as "tool_started".
func (e Event) Kind() string { return e.Body.Kind() }

// A Body says what happened. The types are all in this file.
type Body interface {
	// Kind is the body's name in the journal.
	Kind() string
	// Claims are the once-keys of an event e with this body.
	Claims(e Event) []Claim
}

// A Claim is a once-key: at most one event of the journal may make it. Unused parts stay empty.
type Claim struct {
	Scope string
	Parts [4]string
}

func claim(scope string, parts ...string) Claim {
	c := Claim{Scope: scope}
	copy(c.Parts[:], parts)
	return c
}

// The claims that others look up with [Ledger.Claimed].
func ClaimRun(run string) Claim             { return claim("run", run) }
func ClaimRunEnd(run string) Claim          { return claim("run_end", run) }
func ClaimTaken(message int64) Claim        { return claim("message_taken", strconv.FormatInt(message, 10)) }
func ClaimDecision(run, call string) Claim  { return claim("decision", run, call) }
func ClaimAsk(run, call string) Claim       { return claim("ask", run, call) }
func ClaimApproval(approval string) Claim   { return claim("approval", approval) }
func ClaimResolution(approval string) Claim { return claim("resolution", approval) }
func ClaimAmendment(approval string, revision int) Claim {
	return claim("amended", approval, strconv.Itoa(revision))
}
func ClaimStart(run, call string) Claim        { return claim("start", run, call) }
func ClaimFinish(run, call string) Claim       { return claim("finish", run, call) }
func ClaimRunSettled(run string) Claim         { return claim("run_settled", run) }
func ClaimOrigin(o Origin) Claim               { return o.claim() }
func ClaimShown(approval, ch, ts string) Claim { return claim("shown", approval, ch, ts) }
func ClaimOutcome(run, call string) Claim      { return claim("outcome", run, call) }
func ClaimAskedAgain(approval string) Claim    { return claim("asked_again", approval) }
func ClaimGrant(grant string) Claim            { return claim("grant", grant) }
func ClaimFile(message int64, f string) Claim {
	return claim("file", strconv.FormatInt(message, 10), f)
}
func ClaimGrantEnd(grant string) Claim        { return claim("grant_end", grant) }
func ClaimGrantUse(grant string, n int) Claim { return claim("grant_use", grant, strconv.Itoa(n)) }

// ActorKind says what sort of party an actor is.
type ActorKind string

const (
	ActorUser   ActorKind = "user"   // a person in Slack
	ActorToken  ActorKind = "token"  // a program with a token of the HTTP API
	ActorModel  ActorKind = "model"  // the language model
	ActorSystem ActorKind = "system" // approvalbot itself: timeouts, policy, recovery

	ActorOperator ActorKind = "operator" // whoever gave a command on the machine, by the operating system's name
)

// An Actor is who caused an event.
type Actor struct {
	Kind ActorKind `json:"kind"`
	Team string    `json:"team,omitempty"` // Slack workspace of a user (T…, or E… for an organization)
	ID   string    `json:"id,omitempty"`   // Slack user id, token name, or model name
	Name string    `json:"name,omitempty"` // as it was called at the time; for people to read, never compared
	Via  string    `json:"via,omitempty"`  // the surface: slack, http
}

// Person is the identity that decisions and votes are counted by.
func (a Actor) Person() Person {
	if a.Kind != ActorUser {
		return Person{ID: string(a.Kind) + ":" + a.ID}
	}
	return Person{Team: a.Team, ID: a.ID}
}

// DisplayName is what to call the actor in a sentence. It is one line, whatever name it was given.
func (a Actor) DisplayName() string {
	name := a.Name
	if name == "" {
		name = a.ID
	}
	if name == "" {
		name = string(a.Kind)
	}
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || unicode.Is(unicode.Zl, r) || unicode.Is(unicode.Zp, r) {
			return ' '
		}
		return r
	}, name)
}

// System is the actor of everything that approvalbot does by itself.
var System = Actor{Kind: ActorSystem}

// A Person is one human being, or a token that names no human being (ID "token:NAME", no team).
type Person struct {
	Team string `json:"team,omitempty"`
	ID   string `json:"id"`
}

// A Place is where in Slack a run talks. The zero value is nowhere.
type Place struct {
	Team    string `json:"team,omitempty"`
	Channel string `json:"channel,omitempty"` // C…, G… or D…
	Thread  string `json:"thread,omitempty"`  // ts of the thread's first message
	User    string `json:"user,omitempty"`    // of a direct message that an ask was sent to: whose it is
}

// An Origin is where a message came from: what makes a redelivery the same message.
type Origin struct {
	Kind    string `json:"kind"` // slack or http
	Team    string `json:"team,omitempty"`
	Channel string `json:"channel,omitempty"`
	TS      string `json:"ts,omitempty"`        // of the message itself
	Token   string `json:"tokenName,omitempty"` // name of the token
	Key     string `json:"key,omitempty"`       // Idempotency-Key
}

func (o Origin) claim() Claim {
	if o.Kind == "slack" {
		return claim("origin", o.Kind, o.Team, o.Channel, o.TS)
	}
	return claim("origin", o.Kind, o.Token, o.Key)
}

// repeatable tells whether the sender gave nothing to know a repetition by: a request without an Idempotency-Key.
func (o Origin) repeatable() bool { return o.Kind == "http" && o.Key == "" }

// Disposition says what a received message does.
type Disposition string

const (
	Starts  Disposition = "starts"  // it starts a run, now or when its turn comes
	Context Disposition = "context" // it is context for the session's next run
	Refused Disposition = "refused" // it does nothing; Reason says why
	Handled Disposition = "handled" // it was a command to us, such as stop; Reason says which. No model reads it
)

// MessageReceived: a person (or program) said something to us. Written before the delivery is acknowledged.
type MessageReceived struct {
	Origin      Origin      `json:"origin"`
	Place       Place       `json:"place,omitzero"` // where answers go
	Text        string      `json:"text"`           // as the author meant it: unescaped once, mentions resolved to names
	Disposition Disposition `json:"disposition"`
	Reason      string      `json:"reason,omitempty"`
	Direct      bool        `json:"direct,omitempty"`       // in a direct message
	Mode        string      `json:"approvalMode,omitempty"` // of the run that it starts; empty means fail_closed

	// What a request over HTTP may say besides. It is kept here, so that a message that waits for its turn keeps it.
	RunID   string `json:"runId,omitempty"`          // the id of the run that it starts, where its sender was told it
	Policy  string `json:"approvalPolicy,omitempty"` // stricter than the settings
	Sandbox string `json:"sandboxMode,omitempty"`    // stricter than the settings
	Surface string `json:"surface,omitempty"`        // http: its sender follows the run and can show an ask
	Detach  bool   `json:"detach,omitempty"`         // the run goes on when its sender is gone
	Request string `json:"requestDigest,omitempty"`  // SHA-256, hex, of the request: what an Idempotency-Key stands for

	Ask *ProgramAsk `json:"ask,omitempty"` // a program asks whether it may do something; then no model takes part

	Files []File `json:"files,omitempty"` // what was attached; file_saved says what became of each

	// Again is the approvalId of an ask that ended without people, where somebody wants it to be asked again. The words are
	// ours then: whoever clicked has instructed nobody, and doesn't count as a requester.
	Again string `json:"again,omitempty"`
}

// A File is one attachment of a message, as Slack names it. Nothing of it is believed but the id.
type File struct {
	ID   string `json:"id"`             // F…
	Name string `json:"name,omitempty"` // as its author called it
	Type string `json:"type,omitempty"` // MIME type
	Size int64  `json:"size,omitempty"` // bytes, as Slack says
}

// FileSaved: an attachment was put into the workspace of the run that is about to start, or could not be. Written before
// run_started, so that the model reads of it.
type FileSaved struct {
	Message int64  `json:"message"` // Seq of the MessageReceived that it came with
	File    string `json:"file"`    // its id
	Path    string `json:"path,omitempty"`
	Size    int64  `json:"size,omitempty"`
	SHA256  string `json:"sha256,omitempty"`
	Error   string `json:"error,omitempty"` // why it isn't there, for people and the model
}

// MessageWithdrawn: a message that waited for its turn starts nothing any more: its words were used otherwise, or nobody
// wants it. It takes the message, as a run would.
type MessageWithdrawn struct {
	Message int64  `json:"message"` // Seq of the MessageReceived
	Reason  string `json:"reason"`
}

// A ProgramAsk is an action that another program wants to perform itself, if people approve it.
type ProgramAsk struct {
	Program   string        `json:"program"` // the name of its token
	Tool      string        `json:"toolName"`
	Arguments string        `json:"argumentsJson"` // canonical
	Reason    string        `json:"reason,omitempty"`
	Cwd       string        `json:"cwd,omitempty"`
	Timeout   time.Duration `json:"timeout,omitempty"` // nanoseconds for people to answer; 0: what the settings say
}

// The approval modes: whether the run it belongs to has a way to ask people.
const (
	ModeInteractive = "interactive"
	ModeFailClosed  = "fail_closed"
)

// RunStarted: a message's turn has come. All that the model is given besides the messages stands here, so that every
// request to it can be computed again.
type RunStarted struct {
	Message    int64           `json:"message"`              // Seq of the MessageReceived that it works off
	Place      Place           `json:"place,omitzero"`       // where it talks
	Requesters []Person        `json:"requesters,omitempty"` // everyone whose words are in the session's instructions
	Model      string          `json:"model"`
	System     string          `json:"system"`          // the system prompt
	Tools      json.RawMessage `json:"tools,omitempty"` // the tool definitions offered, as the model gets them
	Mode       string          `json:"approvalMode"`    // interactive or fail_closed
	Policy     string          `json:"approvalPolicy"`
	Sandbox    string          `json:"sandboxMode"`
	PolicyHash string          `json:"policyHash"`
	Surface    string          `json:"surface,omitempty"` // http: its starter follows it and can show an ask
	Detach     bool            `json:"detach,omitempty"`  // it goes on when its starter is gone
	Program    string          `json:"program,omitempty"` // who performs its one call, in place of a model and our tools

	Profile   string `json:"profile,omitempty"`   // the profile that chose model, instructions and workspace; empty: the settings
	Workspace string `json:"workspace,omitempty"` // the directory that its tools work in, where the profile says so
}

// SurfaceHTTP is the surface of a run that is followed over HTTP.
const SurfaceHTTP = "http"

// RunStopRequested: a person asked for the run to stop, or its starter went away.
type RunStopRequested struct {
	Reason string `json:"reason"`
}

// RunStatus is where a run stands.
type RunStatus string

const (
	RunRunning   RunStatus = "running"
	RunWaiting   RunStatus = "waiting_for_approval"
	RunSucceeded RunStatus = "succeeded"
	RunFailed    RunStatus = "failed"
	RunCancelled RunStatus = "cancelled"

	RunErased RunStatus = "erased" // it has ended; how, was erased with its bodies. No run_finished says this
)

// Ended tells whether the status is a run's last.
func (s RunStatus) Ended() bool {
	return s == RunSucceeded || s == RunFailed || s == RunCancelled || s == RunErased
}

// RunFinished: the run is over. Every call of it has its terminal state before this is written.
type RunFinished struct {
	Status RunStatus `json:"status"`         // succeeded, failed or cancelled
	Code   string    `json:"code,omitempty"` // of a failure: MODEL_ERROR, REPEATED_TOOL_CALL, APPROVAL_REQUIRED, …
	Answer string    `json:"answer,omitempty"`
	Reason string    `json:"reason,omitempty"` // why it failed or was cancelled, for people
	Rounds int       `json:"rounds"`
	Usage  Usage     `json:"usage,omitzero"` // of all samples of the run, those that summarised its session included

	// Truncated: the model reached the limit of what it may write at once, so Answer ends in the middle.
	Truncated bool `json:"truncated,omitempty"`
}

// Usage counts a model's tokens, and what they cost where their price is known.
type Usage struct {
	InputTokens      int `json:"inputTokens,omitempty"` // all of them, cached ones included
	OutputTokens     int `json:"outputTokens,omitempty"`
	CacheReadTokens  int `json:"cacheReadTokens,omitempty"`  // of the input tokens
	CacheWriteTokens int `json:"cacheWriteTokens,omitempty"` // of the input tokens

	Cost *Cost `json:"cost,omitempty"` // nil: no price was known
}

// Add sums up. A sum has a cost only where each part has one, in the same currency: a total that leaves something out would
// be too low. A usage of nothing at all changes nothing.
func (u Usage) Add(v Usage) Usage {
	sum := Usage{
		InputTokens: u.InputTokens + v.InputTokens, OutputTokens: u.OutputTokens + v.OutputTokens,
		CacheReadTokens: u.CacheReadTokens + v.CacheReadTokens, CacheWriteTokens: u.CacheWriteTokens + v.CacheWriteTokens,
	}
	switch {
	case u == Usage{}:
		sum.Cost = v.Cost
	case v == Usage{}:
		sum.Cost = u.Cost
	case u.Cost != nil && v.Cost != nil && u.Cost.Currency == v.Cost.Currency:
		sum.Cost = &Cost{Micros: u.Cost.Micros + v.Cost.Micros, Currency: u.Cost.Currency}
	}
	return sum
}

// Tokens are all of them.
func (u Usage) Tokens() int { return u.InputTokens + u.OutputTokens }

// A Cost is an amount of money, at the prices that were set at the time.
type Cost struct {
	Micros   int64  `json:"micros"`   // millionths of the currency's unit
	Currency string `json:"currency"` // ISO 4217, as USD
}

// A ToolCall is one call as the model asked for it.
type ToolCall struct {
	ID         string `json:"id"`                   // unique within the run; this is the toolCallId everywhere
	ProviderID string `json:"providerId,omitempty"` // the provider's, where it was empty or repeated
	Name       string `json:"name"`
	Arguments  string `json:"arguments"` // as the model wrote them
}

// ModelCompleted: one sample of the model, whole.
type ModelCompleted struct {
	Round       int             `json:"round"` // from 1
	Text        string          `json:"text,omitempty"`
	ToolCalls   []ToolCall      `json:"toolCalls,omitempty"`
	Usage       Usage           `json:"usage,omitzero"`
	StopReason  string          `json:"stopReason,omitempty"`
	Raw         json.RawMessage `json:"raw,omitempty"` // the provider's own blocks, opaque
	SampledFrom int64           `json:"sampledFrom"`   // Seq of the last event that the request was built from
	RequestHash string          `json:"requestHash"`   // SHA-256, hex, of the request that was sent
}

// ModelFailed: an attempt to sample the model failed. Nothing of its answer was executed, and what was streamed of it is
// void.
type ModelFailed struct {
	Round       int           `json:"round"`                // the round that it was for
	Attempt     int           `json:"attempt"`              // from 1, of this request
	ErrorKind   string        `json:"kind"`                 // overloaded, rate_limited, key, …
	Message     string        `json:"message"`              // a sentence for people
	RetryAfter  time.Duration `json:"retryAfter,omitempty"` // nanoseconds; what the provider asked for
	RetryIn     time.Duration `json:"retryIn,omitempty"`    // nanoseconds until the next attempt; 0: there is none
	SampledFrom int64         `json:"sampledFrom"`          // Seq of the last event that the request was built from
	RequestHash string        `json:"requestHash"`          // SHA-256, hex, of the request that was sent
	Summary     *Compaction   `json:"summary,omitempty"`    // the request was for the summary of this; nil: for an answer
}

// A Compaction says which part of a session is shortened for the model.
type Compaction struct {
	Until   int64 `json:"until"`             // up to and with what came of this Seq, whole rounds only
	Clip    int   `json:"clip,omitempty"`    // characters that are kept of each text that is shortened
	Version int   `json:"version,omitempty"` // of the request for a summary; another version's can't be computed again
}

// CompactionMethod is how a session is shortened.
type CompactionMethod string

const (
	CompactSummary CompactionMethod = "summary" // the model has summarised it
	CompactOutputs CompactionMethod = "outputs" // no summary could be had: long outputs of tools are cut
)

// SessionCompacted: from here on the model gets the session's older part shortened. The journal keeps all of it.
type SessionCompacted struct {
	Compaction
	Method      CompactionMethod `json:"method"`
	Text        string           `json:"text,omitempty"`        // what the model gets in place of it: its own summary, and our words about it
	Usage       Usage            `json:"usage,omitzero"`        // of the sample that made the summary, or one that was of no use
	SampledFrom int64            `json:"sampledFrom"`           // Seq of the last event that counted
	RequestHash string           `json:"requestHash,omitempty"` // SHA-256, hex, of the request for the summary
}

// CallRequested: a program asks for one call, which it will perform itself. It stands where a model's sample stands in
// other runs.
type CallRequested struct {
	Call   ToolCall `json:"toolCall"`
	Reason string   `json:"reason,omitempty"` // why, in the program's own words, which nobody checked
	Cwd    string   `json:"cwd,omitempty"`
}

// OutcomeType is what is known of an action that another program was allowed to perform.
type OutcomeType string

const (
	OutcomeDone   OutcomeType = "done"   // it says that it did it
	OutcomeFailed OutcomeType = "failed" // it says that it failed
	OutcomeNone   OutcomeType = "none"   // it didn't say anything; nothing is known
)

// OutcomeReported: the program said how its action went, or the time for saying so is over. The first one counts.
type OutcomeReported struct {
	Outcome OutcomeType `json:"outcome"`
	Output  string      `json:"output,omitempty"` // the program's words
	Reason  string      `json:"reason,omitempty"` // of none: why no more is waited for
}

// ToolDefined: a tool that somebody else defines (an MCP server) was seen with a definition that is not the one that it had
// before. Of a tool that is defined the same way again and again there is one. It stands outside of runs. What people
// granted for a tool was granted for a definition, and ends with the next of these.
type ToolDefined struct {
	Tool       string          `json:"toolName"`
	Hash       string          `json:"hash"`                 // SHA-256, hex, of the definition, as in approval_requested
	Previous   string          `json:"previous,omitempty"`   // the hash before; empty when it was seen for the first time
	Definition json.RawMessage `json:"definition,omitempty"` // name, description, inputSchema, annotations
	Changed    []string        `json:"changed,omitempty"`    // which of these are others than before
}

// DecisionType is what the policy says of a call.
type DecisionType string

const (
	Allow DecisionType = "allow"
	Ask   DecisionType = "ask"
	Deny  DecisionType = "deny"
)

// PermissionDecided: the policy's decision on a call; written for every outcome.
type PermissionDecided struct {
	Tool       string       `json:"tool"`
	Type       DecisionType `json:"type"`
	Source     string       `json:"source"`
	Reason     string       `json:"reason"`
	Rule       string       `json:"rule,omitempty"`
	PolicyHash string       `json:"policyHash"`
	Digest     string       `json:"digest"`            // SHA-256, hex, of the canonical arguments: which call it was
	Risk       string       `json:"risk,omitempty"`    // low, medium, high or critical
	Summary    string       `json:"summary,omitempty"` // of the call, in the tool's words: action and target, one line

	// Of a call that people would have been asked about, had not somebody allowed it before: the grant, and the how many-th
	// use of it this is, from 1.
	Grant    string `json:"grantId,omitempty"`
	GrantUse int    `json:"grantUse,omitempty"`

	// Of that grant, so that whoever reads this event alone can say it: who gave it, until when, for how many uses.
	GrantBy    *Actor    `json:"grantBy,omitempty"`
	GrantUntil time.Time `json:"grantUntil,omitzero"`
	GrantUses  int       `json:"grantUses,omitempty"`
}

// A Preview is what a call will do, in a tool's own words and exactly. It is raw: surfaces escape it.
type Preview struct {
	Summary string   `json:"summary"`          // action and target, one line
	Target  string   `json:"target,omitempty"` // path, program or host
	Kind    string   `json:"kind"`             // command, diff, request, json or text
	Body    string   `json:"body"`
	Notes   []string `json:"notes,omitempty"` // what one should know: "not confined …"

	RunsAs string `json:"runsAs,omitempty"` // whose credentials it uses, where the tool knows: "AWS role deployer"
}

// ApprovalRequested: people are asked. From here on there is a pending approval.
type ApprovalRequested struct {
	Approval   string        `json:"approvalId"` // random
	Tool       string        `json:"toolName"`
	ToolHash   string        `json:"toolHash"`      // SHA-256, hex, of the tool's definition
	Arguments  string        `json:"argumentsJson"` // canonical: what is shown, hashed, approved and executed
	Digest     string        `json:"digest"`        // SHA-256, hex, of Arguments
	Preview    Preview       `json:"preview"`
	Reason     string        `json:"reason"` // why it asks
	Place      Place         `json:"place,omitzero"`
	Requesters []Person      `json:"requesters,omitempty"`
	Approvers  []string      `json:"approvers"` // requester, channel, U…, S…: those that let anybody in at this place
	Quorum     int           `json:"quorum"`
	Surfaces   []string      `json:"surfaces"` // who has to show it: slack, http
	ShowBy     time.Time     `json:"showBy"`
	Timeout    time.Duration `json:"timeout"`             // nanoseconds, from the first showing
	PolicyHash string        `json:"policyHash"`          //
	Cwd        string        `json:"cwd,omitempty"`       // working directory that it will run in
	Risk       string        `json:"risk,omitempty"`      // low, medium, high or critical
	Confirm    bool          `json:"confirm,omitempty"`   // a click on Approve is confirmed once more
	Rule       string        `json:"rule,omitempty"`      // the rules or the setting that ask, as permission_decided names them
	Dismissed  string        `json:"dismissed,omitempty"` // why nobody can approve, known when it was opened

	// Where else the card stands, and what it offers besides Approve and Deny. All that depends on settings is recorded
	// here, so that a card can be rendered from the journal alone.
	Elsewhere []Place `json:"elsewhere,omitempty"` // besides Place, or in its stead
	Only      bool    `json:"only,omitempty"`      // buttons stand elsewhere only; at Place it says where
	Away      bool    `json:"away,omitempty"`      // at Place there are not enough people who may approve, as far as is known
	Together  bool    `json:"together,omitempty"`  // it may stand in one message with others of its round
	Offers    []Offer `json:"offers,omitempty"`    //
	Exact     bool    `json:"exact,omitempty"`     // a grant can be about exactly these arguments only: they may be a program

	// Whom its messages mention, so that it reaches them: U…, S…, or none. Empty: the approvers that are named.
	Notify []string          `json:"notify,omitempty"`
	Names  map[string]string `json:"names,omitempty"`        // of people who are named without being mentioned, by id
	Site   string            `json:"workspaceUrl,omitempty"` // what links to its messages begin with

	// What happens while nobody answers, counted from the first showing, in order.
	Remind   time.Duration `json:"remind,omitempty"` // nanoseconds until those who may approve are reminded
	Escalate []Escalation  `json:"escalate,omitempty"`

	// MoreTime is how far people may move the deadline altogether, in nanoseconds beyond the first one.
	MoreTime time.Duration `json:"moreTime,omitempty"`
}

// An Offer is something that a card lets people do besides approving and denying.
type Offer string

const (
	OfferEdit        Offer = "edit"         // change the arguments and approve that
	OfferGrantThread Offer = "grant_thread" // allow it for this thread
	OfferGrantAlways Offer = "grant_always" // allow it everywhere
	OfferMoreTime    Offer = "more_time"    // move the deadline
	OfferAskAgain    Offer = "ask_again"    // once nobody has answered: start a run that asks once more
)

// An Escalation says who else may approve, and is told so, when nobody has decided for a while.
type Escalation struct {
	After     time.Duration `json:"after"`     // nanoseconds from the first showing
	Approvers []string      `json:"approvers"` // U…, S…
}

// ApprovalAmended: somebody who may approve changed the arguments. From here on this is what is asked, shown, approved
// and executed; votes for the earlier ones are void. The Actor is who changed them.
type ApprovalAmended struct {
	Approval   string   `json:"approvalId"`
	Revision   int      `json:"revision"`      // from 1, dense
	Arguments  string   `json:"argumentsJson"` // canonical
	Digest     string   `json:"digest"`        // SHA-256, hex, of Arguments
	Preview    Preview  `json:"preview"`
	Reason     string   `json:"reason"` // why the policy asks now
	Rule       string   `json:"rule,omitempty"`
	Risk       string   `json:"risk,omitempty"`
	Confirm    bool     `json:"confirm,omitempty"`
	Approvers  []string `json:"approvers"`
	Quorum     int      `json:"quorum"`
	PolicyHash string   `json:"policyHash"`
}

// ApprovalExtended: the deadline was moved. The Actor asked for it.
type ApprovalExtended struct {
	Approval string    `json:"approvalId"`
	N        int       `json:"n"` // from 1: how often
	Until    time.Time `json:"until"`
}

// ApprovalReminded: nobody has decided for a while, and those who may are to be reminded.
type ApprovalReminded struct {
	Approval string   `json:"approvalId"`
	N        int      `json:"n"`  // from 1
	To       []string `json:"to"` // U…, S…, requester, channel: as in approvers

	// Direct says that each of them is written to; they are U… then. Else they are mentioned where the ask stands.
	Direct bool `json:"direct,omitempty"`
}

// ApprovalEscalated: nobody has decided for a while, and from here on more people may.
type ApprovalEscalated struct {
	Approval  string   `json:"approvalId"`
	Level     int      `json:"level"`               // from 1: which of ApprovalRequested.Escalate
	Approvers []string `json:"approvers"`           // those who are added
	Elsewhere []Place  `json:"elsewhere,omitempty"` // where the card stands for them
	To        []string `json:"to,omitempty"`        // U…: those of them who are written to, because a mention wouldn't reach them
}

// ApprovalAskedAgain: somebody started a run that is to ask once more what nobody had decided. The Actor is who.
type ApprovalAskedAgain struct {
	Approval string `json:"approvalId"` // the one that is over
	Message  int64  `json:"message"`    // Seq of the MessageReceived that starts the run
}

// GrantScope is how far a grant reaches.
type GrantScope string

const (
	GrantThread GrantScope = "thread" // the session in which it was given
	GrantAlways GrantScope = "always" // everywhere
)

// GrantGiven: somebody allowed calls of one kind in advance. It covers a call only if everything here fits; what is
// missing fits nothing. The Actor is who gave it. An event of a thread's grant has that Session.
type GrantGiven struct {
	Grant      string                     `json:"grantId"` // random
	Scope      GrantScope                 `json:"scope"`
	Place      Place                      `json:"place,omitzero"` // of the ask on which it was given
	Cwd        string                     `json:"cwd,omitempty"`  // the directory in which it would have run: the same call elsewhere is another
	Tool       string                     `json:"toolName"`
	ToolHash   string                     `json:"toolHash"`
	Arguments  map[string]json.RawMessage `json:"arguments,omitempty"` // members that have to be exactly so, canonical
	Any        []string                   `json:"any,omitempty"`       // members that may be anything, or missing; sorted
	Requesters []Person                   `json:"requesters"`          // whose calls: nobody else's words may be in the instructions
	PolicyHash string                     `json:"policyHash"`
	Approval   string                     `json:"approvalId,omitempty"` // the ask on which it was given
	Summary    string                     `json:"summary"`              // what it covers, in words, as it was shown
	Uses       int                        `json:"uses"`                 // how often at most
	Until      time.Time                  `json:"until"`
}

// GrantRevoked: a grant allows nothing any more. The Actor did it.
type GrantRevoked struct {
	Grant  string `json:"grantId"`
	Reason string `json:"reason,omitempty"`
}

// PausesSession is the Session of everything about pauses, so that it is found without reading the rest of the journal.
const PausesSession = "pauses"

// Paused: until the next Resumed no run starts and nobody is asked. The Actor did it.
type Paused struct {
	Reason string `json:"reason,omitempty"`
}

// Resumed ends a pause.
type Resumed struct{}

// ApprovalShown: the ask stands somewhere where people can decide it.
type ApprovalShown struct {
	Approval string    `json:"approvalId"`
	Surface  string    `json:"surface"`
	Channel  string    `json:"channel,omitempty"`
	TS       string    `json:"ts,omitempty"`
	Until    time.Time `json:"until"` // the deadline; the first showing's holds
}

// ResolutionType is how an approval ended.
type ResolutionType string

const (
	Approved ResolutionType = "approved"
	Denied   ResolutionType = "denied"
)

// Source says what made a resolution or a denial.
type Source string

const (
	SourceUser          Source = "user"          // a person said so
	SourceTimeout       Source = "timeout"       // nobody answered
	SourceAbort         Source = "abort"         // the run was stopped, or approvalbot restarted
	SourceUndeliverable Source = "undeliverable" // nobody could be asked
	SourcePolicy        Source = "policy"        // the policy forbids it
	SourceLoopGuard     Source = "loop_guard"    // it was denied or not answered before in this run
)

// ApprovalVoted: one person's decision.
type ApprovalVoted struct {
	Approval string         `json:"approvalId"`
	Type     ResolutionType `json:"type"`
	Reason   string         `json:"reason,omitempty"`
	Revision int            `json:"revision,omitempty"` // of the arguments that it is about; 0: as they were asked for
}

// ApprovalResolved: the approval is over. The event's Time is when.
type ApprovalResolved struct {
	Approval string         `json:"approvalId"`
	Type     ResolutionType `json:"type"`
	Source   Source         `json:"source"`
	Reason   string         `json:"reason"`
	By       *Actor         `json:"by,omitempty"` // the person, where there was one

	// Where people changed the arguments: those that were approved. Empty: as they were asked for.
	Arguments string `json:"argumentsJson,omitempty"`
	Digest    string `json:"digest,omitempty"`
	EditedBy  *Actor `json:"editedBy,omitempty"` // who changed them last

	Granted *Granted `json:"granted,omitempty"` // the grant that was given with it; its grant_given is of the same append
}

// Granted is as much of a grant as stands on the card on which it was given.
type Granted struct {
	Grant string     `json:"grantId"`
	Scope GrantScope `json:"scope"`
	Uses  int        `json:"uses"`
	Until time.Time  `json:"until"`
}

// ToolStarted: exactly these bytes are about to run.
type ToolStarted struct {
	Tool   string `json:"toolName"`
	Digest string `json:"digest"` // SHA-256, hex, of the canonical arguments
}

// CallState is where a tool call stands; the names are the AI SDK's.
type CallState string

const (
	InputAvailable    CallState = "input-available"
	ApprovalRequest   CallState = "approval-requested"
	ApprovalResponded CallState = "approval-responded"
	OutputAvailable   CallState = "output-available"
	OutputDenied      CallState = "output-denied"
	OutputError       CallState = "output-error"
)

// Terminal tells whether the state is a call's last.
func (s CallState) Terminal() bool {
	return s == OutputAvailable || s == OutputDenied || s == OutputError
}

// ToolFinished: the call's terminal state, and the one output that the model gets for it.
type ToolFinished struct {
	Tool    string        `json:"toolName"`
	State   CallState     `json:"state"`
	Source  Source        `json:"source,omitempty"`  // of output-denied
	Code    string        `json:"code,omitempty"`    // of output-error: ABORTED, OUTCOME_UNKNOWN, …
	Reason  string        `json:"reason,omitempty"`  // of output-denied and output-error, for people
	Output  string        `json:"output"`            // byte for byte what the model is given
	Elapsed time.Duration `json:"elapsed,omitempty"` // nanoseconds of execution, waiting not counted
}

// A Thing is something of ours that stands in Slack as one message.
type Thing struct {
	Kind string `json:"kind"` // card, progress, answer, …
	ID   string `json:"id"`   // approvalId of a card; run of an answer; Seq of the message received for progress; …
}

// MessagePosted: Slack confirmed that a thing stands there.
type MessagePosted struct {
	Thing     Thing  `json:"thing"`
	Channel   string `json:"channel"`
	TS        string `json:"ts"`
	Rendering string `json:"rendering"` // SHA-256, hex, of what Slack confirmed
}

// MessageSettled: a thing stands in its last state, or is gone. Nothing will change it any more.
type MessageSettled struct {
	Thing     Thing  `json:"thing"`
	Channel   string `json:"channel,omitempty"`
	TS        string `json:"ts,omitempty"`
	Rendering string `json:"rendering,omitempty"`
	Gone      string `json:"gone,omitempty"`    // Slack's error code, where it can't be shown there any more
	RunDone   bool   `json:"runDone,omitempty"` // the last of its run's messages

	// Renderer is the version of the code that made the rendering, where anyone can compute it again from the journal
	// alone. It is 0 where other things went into it, such as the secrets of the time that had to be hidden.
	Renderer int    `json:"renderer,omitempty"`
	Language string `json:"language,omitempty"` // that it was rendered in; empty: English
}

// PolicyChanged: from here on decisions are made by another policy, which they name by its hash. It is written when a process
// starts under another one than the journal says was in force last, and when the file is read again and means something
// else. The file's text is kept, so that a decision can be understood when the file has gone.
type PolicyChanged struct {
	From    string `json:"from,omitempty"` // hash of the policy before; empty where the journal knows none
	To      string `json:"to"`             // hash of the policy that is in force now
	Policy  string `json:"approvalPolicy"`
	Sandbox string `json:"sandboxMode"`
	File    string `json:"file"` // empty: the settings alone decide
	Rules   int    `json:"rules"`
	Text    string `json:"text"` // of the file
}

// Pruned: the bodies of what is older than Before were erased, in one transaction with this event. It is never erased
// itself, and the last one accounts for every body that is missing.
type Pruned struct {
	Before time.Time `json:"before"`           // runs that ended before this
	Reason string    `json:"reason,omitempty"` // the operator's words
	Runs   int64     `json:"runs"`             // that lost their bodies
	Bodies int64     `json:"bodies"`           // erased with this event
	Total  int64     `json:"total"`            // erased in the whole journal, up to and with this event
	Rows   Hash      `json:"rows"`             // SHA-256 over the Seqs of all of these, in order, 8 bytes each, big-endian
}

// Erased stands for a body that was erased; the chain still holds.
type Erased struct {
	kind string
}

func (*MessageReceived) Kind() string    { return "message_received" }
func (*RunStarted) Kind() string         { return "run_started" }
func (*RunStopRequested) Kind() string   { return "run_stop_requested" }
func (*RunFinished) Kind() string        { return "run_finished" }
func (*ModelCompleted) Kind() string     { return "model_completed" }
func (*ModelFailed) Kind() string        { return "model_failed" }
func (*SessionCompacted) Kind() string   { return "session_compacted" }
func (*CallRequested) Kind() string      { return "call_requested" }
func (*OutcomeReported) Kind() string    { return "outcome_reported" }
func (*ToolDefined) Kind() string        { return "tool_defined" }
func (*PermissionDecided) Kind() string  { return "permission_decided" }
func (*ApprovalRequested) Kind() string  { return "approval_requested" }
func (*ApprovalShown) Kind() string      { return "approval_shown" }
func (*ApprovalVoted) Kind() string      { return "approval_voted" }
func (*ApprovalResolved) Kind() string   { return "approval_resolved" }
func (*ToolStarted) Kind() string        { return "tool_started" }
func (*ToolFinished) Kind() string       { return "tool_finished" }
func (*MessagePosted) Kind() string      { return "message_posted" }
func (*MessageSettled) Kind() string     { return "message_settled" }
func (*PolicyChanged) Kind() string      { return "policy_changed" }
func (*Pruned) Kind() string             { return "pruned" }
func (*ApprovalAmended) Kind() string    { return "approval_amended" }
func (*ApprovalExtended) Kind() string   { return "approval_extended" }
func (*ApprovalReminded) Kind() string   { return "approval_reminded" }
func (*ApprovalEscalated) Kind() string  { return "approval_escalated" }
func (*ApprovalAskedAgain) Kind() string { return "approval_asked_again" }
func (*GrantGiven) Kind() string         { return "grant_given" }
func (*GrantRevoked) Kind() string       { return "grant_revoked" }
func (*Paused) Kind() string             { return "paused" }
func (*Resumed) Kind() string            { return "resumed" }
func (*MessageWithdrawn) Kind() string   { return "message_withdrawn" }
func (*FileSaved) Kind() string          { return "file_saved" }
func (b *Erased) Kind() string           { return b.kind }

func (b *MessageReceived) Claims(Event) []Claim {
	if b.Origin.repeatable() {
		return nil
	}
	return []Claim{b.Origin.claim()}
}
func (b *RunStarted) Claims(e Event) []Claim {
	if b.Message == 0 { // it works off no message; there is nothing that a second run could take
		return []Claim{ClaimRun(e.Run)}
	}
	return []Claim{ClaimRun(e.Run), ClaimTaken(b.Message)}
}
func (b *RunStopRequested) Claims(Event) []Claim { return nil }
func (b *RunFinished) Claims(e Event) []Claim    { return []Claim{ClaimRunEnd(e.Run)} }
func (b *ModelCompleted) Claims(Event) []Claim   { return nil }
func (b *ModelFailed) Claims(Event) []Claim      { return nil }
func (b *SessionCompacted) Claims(e Event) []Claim {
	return []Claim{claim("compacted", e.Session, strconv.FormatInt(b.SampledFrom, 10))}
}
func (b *CallRequested) Claims(e Event) []Claim   { return []Claim{claim("call", e.Run)} }
func (b *OutcomeReported) Claims(e Event) []Claim { return []Claim{ClaimOutcome(e.Run, e.Call)} }
func (b *ToolDefined) Claims(Event) []Claim       { return nil }
func (b *PermissionDecided) Claims(e Event) []Claim {
	if b.Grant == "" {
		return []Claim{ClaimDecision(e.Run, e.Call)}
	}
	return []Claim{ClaimDecision(e.Run, e.Call), ClaimGrantUse(b.Grant, b.GrantUse)}
}
func (b *ApprovalRequested) Claims(e Event) []Claim {
	return []Claim{ClaimAsk(e.Run, e.Call), ClaimApproval(b.Approval)}
}
func (b *ApprovalShown) Claims(Event) []Claim {
	return []Claim{ClaimShown(b.Approval, b.Channel, b.TS)}
}
func (b *ApprovalVoted) Claims(e Event) []Claim {
	p := e.Actor.Person()
	if b.Revision == 0 {
		return []Claim{claim("vote", b.Approval, p.Team, p.ID)}
	}
	return []Claim{claim("vote", b.Approval, p.Team, p.ID, strconv.Itoa(b.Revision))}
}
func (b *ApprovalResolved) Claims(Event) []Claim { return []Claim{ClaimResolution(b.Approval)} }
func (b *ToolStarted) Claims(e Event) []Claim    { return []Claim{ClaimStart(e.Run, e.Call)} }
func (b *ToolFinished) Claims(e Event) []Claim {
	if b.State == OutputDenied {
		return []Claim{ClaimFinish(e.Run, e.Call), ClaimStart(e.Run, e.Call)}
	}
	return []Claim{ClaimFinish(e.Run, e.Call)}
}
func (b *MessagePosted) Claims(Event) []Claim {
	return []Claim{claim("posted", b.Thing.Kind, b.Thing.ID, b.Channel, b.TS)}
}
func (b *MessageSettled) Claims(e Event) []Claim {
	c := []Claim{claim("settled", b.Thing.Kind, b.Thing.ID, b.Channel, b.TS)}
	if b.RunDone {
		c = append(c, ClaimRunSettled(e.Run))
	}
	return c
}
func (b *PolicyChanged) Claims(Event) []Claim { return nil }
func (b *Pruned) Claims(Event) []Claim        { return nil }
func (b *Paused) Claims(Event) []Claim        { return nil }
func (b *Resumed) Claims(Event) []Claim       { return nil }
func (b *ApprovalAmended) Claims(Event) []Claim {
	return []Claim{ClaimAmendment(b.Approval, b.Revision)}
}
func (b *ApprovalExtended) Claims(Event) []Claim {
	return []Claim{claim("extended", b.Approval, strconv.Itoa(b.N))}
}
func (b *ApprovalReminded) Claims(Event) []Claim {
	return []Claim{claim("reminded", b.Approval, strconv.Itoa(b.N))}
}
func (b *ApprovalEscalated) Claims(Event) []Claim {
	return []Claim{claim("escalated", b.Approval, strconv.Itoa(b.Level))}
}
func (b *ApprovalAskedAgain) Claims(Event) []Claim { return []Claim{ClaimAskedAgain(b.Approval)} }
func (b *GrantGiven) Claims(Event) []Claim         { return []Claim{ClaimGrant(b.Grant)} }
func (b *GrantRevoked) Claims(Event) []Claim       { return []Claim{ClaimGrantEnd(b.Grant)} }
func (b *MessageWithdrawn) Claims(Event) []Claim   { return []Claim{ClaimTaken(b.Message)} }
func (b *FileSaved) Claims(Event) []Claim {
	return []Claim{ClaimFile(b.Message, b.File)}
}
func (b *Erased) Claims(Event) []Claim { return nil }

// An Awaiter is a body that leaves something open until another event makes a claim. The journal keeps a short list of
// what is open ([Reader.UnfinishedRuns], [Reader.UnsettledRuns], [Reader.WaitingMessages]), so that finding it doesn't
// take longer as the journal grows.
type Awaiter interface {
	// Awaits are the claims that close what the event e, as it was recorded, leaves open.
	Awaits(e Event) []Claim
}

// Awaits: a message that starts a run waits until it is taken.
func (b *MessageReceived) Awaits(e Event) []Claim {
	if b.Disposition != Starts {
		return nil
	}
	return []Claim{ClaimTaken(e.Seq)}
}

// Awaits: a run is unfinished until its end, and unsettled until the last of its messages in Slack is settled.
func (b *RunStarted) Awaits(e Event) []Claim {
	if b.Place.Channel == "" {
		return []Claim{ClaimRunEnd(e.Run)}
	}
	return []Claim{ClaimRunEnd(e.Run), ClaimRunSettled(e.Run)}
}

// Awaits: an ask that stands elsewhere has messages in Slack, also where its run has no place there.
func (b *ApprovalRequested) Awaits(e Event) []Claim { return settledLater(e, b.Elsewhere) }

// Awaits: the same of an ask that stands in more places from here on.
func (b *ApprovalEscalated) Awaits(e Event) []Claim { return settledLater(e, b.Elsewhere) }

func settledLater(e Event, elsewhere []Place) []Claim {
	if len(elsewhere) == 0 {
		return nil
	}
	return []Claim{ClaimRunSettled(e.Run)}
}

// awaitable are the scopes that something may wait for; no other claim closes anything.
var awaitable = map[string]bool{"message_taken": true, "run_end": true, "run_settled": true}
