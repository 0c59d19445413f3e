package ledger

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
)

// rules check that each event may happen where it stands in its run. They are written apart from the fold ([Run]) and
// from the code that runs tools, so that a mistake there shows here. They remember the runs that have not ended, and the
// grants.
type rules struct {
	runs   map[string]*ruleRun
	grants map[string]*ruleGrant
}

// A ruleGrant is what somebody allowed in advance. Whether a call is one that it covers isn't judged here.
type ruleGrant struct {
	*GrantGiven
	session string
	revoked bool
}

type ruleRun struct {
	calls   map[string]*ruleCall
	asks    map[string]*ruleAsk
	program bool // another program performs its call
	opaque  bool // a body was erased: what follows can't be judged any more
}

type ruleCall struct {
	decision DecisionType
	ask      *ruleAsk
	started  bool
	finished bool
}

type ruleAsk struct {
	digest   string // of the arguments as they stand
	revision int    // how often they were changed
	resolved ResolutionType
}

// afterEnd are the kinds that may still come when their run has ended: what stands in Slack is brought up to date, and
// what people did too late is kept.
var afterEnd = map[string]bool{
	"run_stop_requested": true, "approval_shown": true, "approval_voted": true, "message_posted": true, "message_settled": true,
	"message_received": true, "approval_asked_again": true,
}

// check reads one more event; a [*Problem] is its error. ended finds out whether the event's run had ended before.
func (s *rules) check(e Event, ended func() (bool, error)) error {
	if what := s.grant(e); what != "" {
		return &Problem{Seq: e.Seq, Kind: BadRun, What: what}
	}
	if e.Run == "" {
		return nil
	}
	r := s.runs[e.Run]
	if r == nil {
		over, err := ended()
		if err != nil {
			return err
		}
		if over && afterEnd[e.Kind()] {
			return nil
		}
		if over {
			return &Problem{Seq: e.Seq, Kind: BadRun, What: "its run has ended before"}
		}
		r = &ruleRun{calls: map[string]*ruleCall{}, asks: map[string]*ruleAsk{}}
		s.runs[e.Run] = r
	}
	what := r.check(e)
	if e.Kind() == "run_finished" {
		delete(s.runs, e.Run)
	}
	if what != "" {
		return &Problem{Seq: e.Seq, Kind: BadRun, What: what}
	}
	return nil
}

// grant says what is wrong with an event about grants; "" if nothing is.
func (s *rules) grant(e Event) string {
	switch b := e.Body.(type) {
	case *GrantGiven:
		s.grants[b.Grant] = &ruleGrant{GrantGiven: b, session: e.Session}
	case *GrantRevoked:
		g := s.grants[b.Grant]
		if g == nil {
			return "a grant is revoked that nobody gave"
		}
		g.revoked = true
	case *PermissionDecided:
		if b.Grant != "" {
			return s.grants[b.Grant].use(e, b)
		}
	}
	return ""
}

func (g *ruleGrant) use(e Event, b *PermissionDecided) string {
	switch {
	case g == nil:
		return "a call is allowed by a grant that nobody gave"
	case g.revoked:
		return "a call is allowed by a grant that was revoked"
	case b.Type != Allow:
		return fmt.Sprintf("a grant decides %s", b.Type)
	case b.GrantUse < 1 || b.GrantUse > g.Uses:
		return fmt.Sprintf("a grant is used for the time %d, and was given for %d", b.GrantUse, g.Uses)
	case b.Tool != g.Tool:
		return "a call is allowed by a grant for another tool"
	case g.Scope == GrantThread && e.Session != g.session:
		return "a call is allowed by a grant for another conversation"
	}
	return ""
}

// check says what is wrong with an event of the run; "" if nothing is.
func (r *ruleRun) check(e Event) string {
	if _, erased := e.Body.(*Erased); erased {
		r.opaque = true
	}
	if r.opaque {
		return ""
	}
	switch b := e.Body.(type) {
	case *RunStarted:
		r.program = b.Program != ""
	case *ModelCompleted:
		if r.program {
			return "a model takes part in a run that is a program's"
		}
		return r.called(b.ToolCalls...)
	case *ModelFailed:
		return r.sampled("a model is asked")
	case *SessionCompacted:
		return r.sampled("a session is shortened")
	case *CallRequested:
		if !r.program {
			return "a program asks for a call in a run that isn't a program's"
		}
		return r.called(b.Call)
	case *OutcomeReported:
		return r.call(e.Call).outcome()
	case *PermissionDecided:
		r.call(e.Call).decision = b.Type
	case *ApprovalRequested:
		return r.requested(r.call(e.Call), b)
	case *ApprovalShown:
		return r.known(b.Approval)
	case *ApprovalVoted:
		return r.voted(b)
	case *ApprovalAmended:
		return r.amended(r.call(e.Call), b)
	case *ApprovalExtended:
		return r.known(b.Approval)
	case *ApprovalReminded:
		return r.known(b.Approval)
	case *ApprovalEscalated:
		return r.known(b.Approval)
	case *ApprovalAskedAgain:
		return r.known(b.Approval)
	case *ApprovalResolved:
		return r.resolved(b)
	case *ToolStarted:
		return r.call(e.Call).start(b)
	case *ToolFinished:
		return r.call(e.Call).finish(b)
	case *RunFinished:
		return r.finished()
	}
	return ""
}

// sampled checks that a model may take part now, and says of what is done that it may not.
func (r *ruleRun) sampled(what string) string {
	if r.program {
		return what + " in a run that is a program's"
	}
	for id, c := range r.calls {
		if !c.finished {
			return fmt.Sprintf("%s before the call %q has ended", what, id)
		}
	}
	return ""
}

func (r *ruleRun) call(id string) *ruleCall {
	if r.calls[id] == nil {
		r.calls[id] = &ruleCall{}
	}
	return r.calls[id]
}

func (r *ruleRun) called(calls ...ToolCall) string {
	for _, tc := range calls {
		if r.calls[tc.ID] != nil {
			return fmt.Sprintf("the call %q was made before in its run", tc.ID)
		}
		r.call(tc.ID)
	}
	return ""
}

func (r *ruleRun) requested(c *ruleCall, b *ApprovalRequested) string {
	digest := sha256.Sum256([]byte(b.Arguments))
	switch {
	case b.Digest != hex.EncodeToString(digest[:]):
		return "its digest is not that of its arguments"
	case c.decision == Allow || c.decision == Deny:
		return fmt.Sprintf("people are asked about a call whose decision was %s", c.decision)
	case c.started || c.finished:
		return "people are asked about a call that has started or ended"
	}
	c.ask = &ruleAsk{digest: b.Digest}
	r.asks[b.Approval] = c.ask
	return ""
}

func (r *ruleRun) known(approval string) string {
	if r.asks[approval] == nil {
		return "it is about an approval that nobody asked for"
	}
	return ""
}

func (r *ruleRun) voted(b *ApprovalVoted) string {
	if a := r.asks[b.Approval]; a != nil && a.revision != b.Revision {
		return "a vote is about other arguments than those that are asked about"
	}
	return r.known(b.Approval)
}

func (r *ruleRun) amended(c *ruleCall, b *ApprovalAmended) string {
	a, digest := r.asks[b.Approval], sha256.Sum256([]byte(b.Arguments))
	switch {
	case a == nil || a != c.ask:
		return "the arguments of an approval are changed that nobody asked for"
	case a.resolved != "" || c.started || c.finished:
		return "the arguments of an approval are changed that is over"
	case b.Revision != a.revision+1:
		return fmt.Sprintf("the arguments are changed for the %d. time after the %d.", b.Revision, a.revision)
	case b.Digest != hex.EncodeToString(digest[:]):
		return "its digest is not that of its arguments"
	}
	a.digest, a.revision = b.Digest, b.Revision
	return ""
}

func (r *ruleRun) resolved(b *ApprovalResolved) string {
	a := r.asks[b.Approval]
	switch {
	case a == nil:
		return "an approval is resolved that nobody asked for"
	case a.resolved != "":
		return "an approval is resolved twice"
	case b.Type == Approved && (a.revision > 0 || b.Digest != "") && b.Digest != a.digest:
		return "what is approved is not what was asked about"
	}
	a.resolved = b.Type
	return ""
}

func (c *ruleCall) start(b *ToolStarted) string {
	switch {
	case c.finished:
		return "a call starts that has ended"
	case c.started:
		return "a call starts twice"
	}
	c.started = true
	switch {
	case c.decision == Allow:
		return ""
	case c.ask == nil || c.ask.resolved != Approved:
		return "a call starts that nobody allowed"
	case c.ask.digest != b.Digest:
		return "what starts is not what was approved"
	}
	return ""
}

func (c *ruleCall) outcome() string {
	switch {
	case !c.started:
		return "an outcome is reported of a call that didn't start"
	case c.finished:
		return "an outcome is reported of a call that has ended"
	}
	return ""
}

func (c *ruleCall) finish(b *ToolFinished) string {
	switch {
	case !b.State.Terminal():
		return fmt.Sprintf("a call ends as %q, which is no end", b.State)
	case c.finished:
		return "a call ends twice"
	case b.State == OutputDenied && c.started:
		return "a call is denied that has started"
	case b.State == OutputAvailable && !c.started:
		return "a call has an output that never started"
	}
	c.finished = true
	return ""
}

func (r *ruleRun) finished() string {
	for id, c := range r.calls {
		if !c.finished {
			return fmt.Sprintf("the run ends before its call %q", id)
		}
	}
	for _, a := range r.asks {
		if a.resolved == "" {
			return "the run ends while people are still asked"
		}
	}
	return ""
}
