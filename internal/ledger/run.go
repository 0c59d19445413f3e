package ledger

import (
	"slices"
	"time"
)

// A Run is the reading of one run's events that every view of it is made from: the cards in Slack, the audit, recovery.
// It is a pure fold: the same events give the same Run, in a process that lived through them and in one that reads them
// years later. The zero value is ready for [Run.Apply].
type Run struct {
	ID        string
	Session   string
	Started   *RunStarted
	StartedAt time.Time
	StartedBy Actor
	Rounds    []Round
	Failures  []Failure   // attempts to sample the model that failed
	Compacted []Compacted // its session was shortened for the model
	Calls     []*Call     // in the order in which the model asked for them
	Stop      *StopRequest
	Finished  *RunFinished
	EndedAt   time.Time
	Posted    []Posted // what stands in Slack for this run
	Settled   bool     // nothing in Slack will change for this run any more
	Last      int64    // Seq of the last event applied
	Erased    int      // events whose bodies were erased; of a run that was pruned, all of them

	calls map[string]*Call
	asks  map[string]*Call
}

// A Round is one sample of the model.
type Round struct {
	*ModelCompleted
	Seq int64
	At  time.Time
}

// A Failure is one attempt to sample the model that failed.
type Failure struct {
	*ModelFailed
	Seq int64
	At  time.Time
}

// A Compacted is one shortening of the run's session.
type Compacted struct {
	*SessionCompacted
	Seq int64
	At  time.Time
}

// Usage is what all samples of the run took so far, those that summarised its session included.
func (r *Run) Usage() Usage {
	var sum Usage
	for _, round := range r.Rounds {
		sum = sum.Add(round.Usage)
	}
	for _, c := range r.Compacted {
		sum = sum.Add(c.Usage)
	}
	return sum
}

// Retrying is the failed attempt after which the model is about to be asked again; nil if it isn't.
func (r *Run) Retrying() *ModelFailed {
	if len(r.Failures) == 0 || r.Finished != nil {
		return nil
	}
	f := r.Failures[len(r.Failures)-1]
	later := len(r.Rounds) > 0 && r.Rounds[len(r.Rounds)-1].Seq > f.Seq ||
		len(r.Compacted) > 0 && r.Compacted[len(r.Compacted)-1].Seq > f.Seq
	if later || f.RetryIn <= 0 {
		return nil
	}
	return f.ModelFailed
}

// A StopRequest is a stop that somebody asked for.
type StopRequest struct {
	Seq    int64
	By     Actor
	At     time.Time
	Reason string
}

// A Call is one tool call and how far it has come.
type Call struct {
	ToolCall
	Round      int
	State      CallState
	Decision   *PermissionDecided
	Claim      string           // why, in the words of the program that asked for it
	Approval   *Approval        // where it was asked
	Outcome    *OutcomeReported // of a call that another program performs
	StartedAt  time.Time        // zero: it did not start
	Finished   *ToolFinished
	FinishedAt time.Time
}

// An Approval is one ask and everything that became of it.
type Approval struct {
	*ApprovalRequested                    // as it stands: changed arguments, and people who were added, are in it
	Original           *ApprovalRequested // as it was opened
	Seq                int64              // of the approval_requested: the journal number on the card
	At                 time.Time
	Shown              []ApprovalShown
	Votes              []Vote // on the arguments as they stand
	Void               []Vote // on arguments that were changed since
	Amended            []Amended
	Extended           []Extended
	Reminded           []Reminded
	Escalated          []Escalated
	Resolved           *ApprovalResolved
	ResolvedAt         time.Time
	ResolvedSeq        int64
	AskedAgain         *AskedAgain // it ended without people, and somebody had it asked again
}

// Until is the deadline, which the first showing sets and people may move. It is zero while the ask hasn't been shown.
func (a *Approval) Until() time.Time {
	switch {
	case len(a.Extended) > 0:
		return a.Extended[len(a.Extended)-1].Until
	case len(a.Shown) == 0:
		return time.Time{}
	}
	return a.Shown[0].Until
}

// Revision counts how often the arguments were changed.
func (a *Approval) Revision() int { return len(a.Amended) }

// An Amended is one change of an ask's arguments.
type Amended struct {
	*ApprovalAmended
	By     Actor
	At     time.Time
	Before string // the arguments that it changed
}

// An Extended is one move of an ask's deadline.
type Extended struct {
	*ApprovalExtended
	By Actor
	At time.Time
}

// A Reminded is one reminder.
type Reminded struct {
	*ApprovalReminded
	Seq int64
	At  time.Time
}

// An Escalated is one step up.
type Escalated struct {
	*ApprovalEscalated
	Seq int64
	At  time.Time
}

// An AskedAgain is a run that was started to ask once more.
type AskedAgain struct {
	*ApprovalAskedAgain
	By Actor
	At time.Time
}

// Since is the moment from which the ask's time is counted: its first showing. It is zero while it hasn't been shown.
func (a *Approval) Since() time.Time {
	if len(a.Shown) == 0 {
		return time.Time{}
	}
	return a.Shown[0].Until.Add(-a.Timeout)
}

// Limit is the latest deadline that people can give the ask. It is zero while it hasn't been shown.
func (a *Approval) Limit() time.Time {
	if len(a.Shown) == 0 {
		return time.Time{}
	}
	return a.Shown[0].Until.Add(a.MoreTime)
}

// Extensible tells whether the deadline can be moved once more, by somebody who may.
func (a *Approval) Extensible() bool {
	if len(a.Shown) == 0 {
		return a.Open() && a.MoreTime > 0 // the card that is about to be shown says so already
	}
	return a.Open() && a.Until().Before(a.Limit())
}

// Apply reads one more event about the ask and reports whether it changed it. An event that fits nothing is passed over,
// and an ask that is over stays as it ended.
func (a *Approval) Apply(e Event) bool {
	switch b := e.Body.(type) {
	case *ApprovalRequested:
		if a.ApprovalRequested != nil {
			return false
		}
		a.ApprovalRequested, a.Original, a.Seq, a.At = b, b, e.Seq, e.Time
	case *ApprovalShown:
		if !a.is(b.Approval) || a.shownAt(b.Channel, b.TS) {
			return false
		}
		a.Shown = append(a.Shown, *b)
	case *ApprovalVoted:
		if !a.is(b.Approval) || b.Revision != a.Revision() {
			return false
		}
		a.Votes = append(a.Votes, Vote{By: e.Actor, Type: b.Type, Reason: b.Reason, At: e.Time})
	case *ApprovalAmended:
		if !a.is(b.Approval) || b.Revision != a.Revision()+1 || a.Resolved != nil {
			return false
		}
		a.amend(e, b)
	case *ApprovalExtended:
		if !a.is(b.Approval) || b.N != len(a.Extended)+1 || a.Resolved != nil {
			return false
		}
		a.Extended = append(a.Extended, Extended{ApprovalExtended: b, By: e.Actor, At: e.Time})
	case *ApprovalReminded:
		if !a.is(b.Approval) || b.N != len(a.Reminded)+1 || a.Resolved != nil {
			return false
		}
		a.Reminded = append(a.Reminded, Reminded{ApprovalReminded: b, Seq: e.Seq, At: e.Time})
	case *ApprovalEscalated:
		if !a.is(b.Approval) || b.Level != len(a.Escalated)+1 || a.Resolved != nil {
			return false
		}
		a.escalate(e, b)
	case *ApprovalAskedAgain:
		if !a.is(b.Approval) || a.Resolved == nil || a.AskedAgain != nil {
			return false
		}
		a.AskedAgain = &AskedAgain{ApprovalAskedAgain: b, By: e.Actor, At: e.Time}
	case *ApprovalResolved:
		if !a.is(b.Approval) || a.Resolved != nil {
			return false
		}
		a.Resolved, a.ResolvedAt, a.ResolvedSeq = b, e.Time, e.Seq
	default:
		return false
	}
	return true
}

func (a *Approval) is(id string) bool {
	return a.ApprovalRequested != nil && a.ApprovalRequested.Approval == id
}

func (a *Approval) shownAt(channel, ts string) bool {
	return slices.ContainsFunc(a.Shown, func(s ApprovalShown) bool { return s.Channel == channel && s.TS == ts })
}

// amend takes in changed arguments. The request is copied: the event's body is the journal's.
func (a *Approval) amend(e Event, b *ApprovalAmended) {
	a.Amended = append(a.Amended, Amended{ApprovalAmended: b, By: e.Actor, At: e.Time, Before: a.Arguments})
	q := *a.ApprovalRequested
	q.Arguments, q.Digest, q.Preview, q.Reason = b.Arguments, b.Digest, b.Preview, b.Reason
	q.Rule, q.Risk, q.Confirm, q.PolicyHash = b.Rule, b.Risk, b.Confirm, b.PolicyHash
	q.Approvers, q.Quorum = b.Approvers, b.Quorum
	a.ApprovalRequested = &q
	a.Void = append(a.Void, a.Votes...)
	a.Votes = nil
}

func (a *Approval) escalate(e Event, b *ApprovalEscalated) {
	a.Escalated = append(a.Escalated, Escalated{ApprovalEscalated: b, Seq: e.Seq, At: e.Time})
	q := *a.ApprovalRequested
	q.Approvers = slices.Clone(q.Approvers)
	for _, word := range b.Approvers {
		if !slices.Contains(q.Approvers, word) {
			q.Approvers = append(q.Approvers, word)
		}
	}
	q.Elsewhere = append(slices.Clip(q.Elsewhere), b.Elsewhere...)
	a.ApprovalRequested = &q
}

// Open tells whether the approval still waits for people.
func (a *Approval) Open() bool { return a != nil && a.Resolved == nil }

// A Vote is one person's decision.
type Vote struct {
	By     Actor
	Type   ResolutionType
	Reason string
	At     time.Time
}

// Posted is one message of ours in Slack.
type Posted struct {
	Thing     Thing
	Channel   string
	TS        string
	Rendering string // SHA-256, hex, of the last rendering that the journal knows as confirmed
	Settled   bool
	Gone      string // Slack's error code, where it is gone
}

// Call finds a call by its toolCallId; nil if there is none.
func (r *Run) Call(id string) *Call { return r.calls[id] }

// Asked finds the call that people were asked about by the approvalId; nil if there is none. It has an Approval.
func (r *Run) Asked(approval string) *Call { return r.asks[approval] }

// Status is where the run stands.
func (r *Run) Status() RunStatus {
	if r.Finished != nil {
		return r.Finished.Status
	}
	if r.Erased > 0 {
		return RunErased // only what has ended is erased
	}
	for _, c := range r.Calls {
		if c.Approval.Open() {
			return RunWaiting
		}
	}
	return RunRunning
}

// Apply reads one more event. Events of other runs are passed over, so a whole journal can be poured through it.
func (r *Run) Apply(e Event) {
	if e.Run == "" || (r.ID != "" && e.Run != r.ID) || (e.Seq != 0 && e.Seq <= r.Last) || isNil(e.Body) {
		return
	}
	if r.ID == "" {
		r.ID, r.Session = e.Run, e.Session
	}
	r.Last = max(r.Last, e.Seq)
	switch b := e.Body.(type) {
	case *RunStarted:
		r.Session = e.Session
		r.Started, r.StartedAt, r.StartedBy = b, e.Time, e.Actor
	case *RunStopRequested:
		if r.Stop == nil && r.Finished == nil { // one that came after the end stopped nothing
			r.Stop = &StopRequest{Seq: e.Seq, By: e.Actor, At: e.Time, Reason: b.Reason}
		}
	case *RunFinished:
		r.Finished, r.EndedAt = b, e.Time
	case *ModelCompleted:
		r.applyModel(e, b)
	case *ModelFailed:
		r.Failures = append(r.Failures, Failure{ModelFailed: b, Seq: e.Seq, At: e.Time})
	case *SessionCompacted:
		r.Compacted = append(r.Compacted, Compacted{SessionCompacted: b, Seq: e.Seq, At: e.Time})
	case *CallRequested:
		if c := r.add(b.Call, 0); c != nil {
			c.Claim = b.Reason
		}
	case *MessagePosted:
		r.Posted = append(r.Posted, Posted{Thing: b.Thing, Channel: b.Channel, TS: b.TS, Rendering: b.Rendering})
	case *MessageSettled:
		r.applySettled(b)
	case *Erased:
		r.applyErased(e)
	default:
		r.applyCall(e)
	}
}

// applyErased reads what is left of an event without its body: that it was, when, and by whom.
func (r *Run) applyErased(e Event) {
	r.Erased++
	switch e.Kind() {
	case "run_started":
		r.StartedAt, r.StartedBy = e.Time, e.Actor
	case "run_finished":
		r.EndedAt = e.Time
	}
}

func (r *Run) applyModel(e Event, b *ModelCompleted) {
	r.Rounds = append(r.Rounds, Round{ModelCompleted: b, Seq: e.Seq, At: e.Time})
	for _, tc := range b.ToolCalls {
		r.add(tc, b.Round)
	}
}

// add takes in a new call; nil if there is one with its id.
func (r *Run) add(tc ToolCall, round int) *Call {
	if r.calls == nil {
		r.calls, r.asks = map[string]*Call{}, map[string]*Call{}
	}
	if r.calls[tc.ID] != nil {
		return nil // ids are made unique before they are recorded; the first one keeps its history
	}
	c := &Call{ToolCall: tc, Round: round, State: InputAvailable}
	r.Calls = append(r.Calls, c)
	r.calls[tc.ID] = c
	return c
}

func (r *Run) applySettled(b *MessageSettled) {
	r.Settled = r.Settled || b.RunDone
	for i := range r.Posted {
		p := &r.Posted[i]
		if p.Thing == b.Thing && p.Channel == b.Channel && p.TS == b.TS {
			p.Settled, p.Gone = true, b.Gone
			if b.Rendering != "" {
				p.Rendering = b.Rendering
			}
			return
		}
	}
	r.Posted = append(r.Posted, Posted{Thing: b.Thing, Channel: b.Channel, TS: b.TS, Rendering: b.Rendering, Settled: true, Gone: b.Gone})
}

// applyCall reads an event about one call. The claims keep the events of a sound journal in order; in one that isn't,
// an event that fits nothing is passed over, and a call that has ended stays as it ended.
func (r *Run) applyCall(e Event) {
	c := r.calls[e.Call]
	if c == nil {
		return
	}
	switch b := e.Body.(type) {
	case *PermissionDecided:
		c.Decision = b
	case *ApprovalRequested:
		if c.Approval == nil {
			c.Approval = &Approval{}
			c.Approval.Apply(e)
			r.asks[b.Approval] = c
			c.move(ApprovalRequest)
		}
	case *ApprovalShown, *ApprovalVoted, *ApprovalAmended, *ApprovalExtended, *ApprovalReminded, *ApprovalEscalated,
		*ApprovalAskedAgain, *ApprovalResolved:
		if c.Approval == nil || !c.Approval.Apply(e) {
			return
		}
		if c.Approval.Resolved != nil {
			c.move(ApprovalResponded)
		}
	case *ToolStarted:
		c.StartedAt = e.Time
	case *OutcomeReported:
		if c.Outcome == nil {
			c.Outcome = b
		}
	case *ToolFinished:
		if c.Finished == nil {
			c.Finished, c.FinishedAt = b, e.Time
			c.move(b.State)
		}
	}
}

// move changes the state; a terminal one stays.
func (c *Call) move(s CallState) {
	if !c.State.Terminal() {
		c.State = s
	}
}
