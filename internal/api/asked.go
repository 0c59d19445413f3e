package api

import (
	"crypto/sha256"
	"encoding/hex"

	"approvalbot/internal/ledger"
)

// An askStatus is where a program's ask stands. Only approved says that it may act, and it says so after the start of the
// call is on disk.
type askStatus string

const (
	askPending   askStatus = "pending"
	askApproved  askStatus = "approved"   // it may act, and has not reported
	askDenied    askStatus = "denied"     // it may not
	askDone      askStatus = "done"       // it reported that it did it
	askFailed    askStatus = "failed"     // it reported that it failed
	askNoOutcome askStatus = "no_outcome" // it was allowed to act and didn't report
)

// asked is a program's ask as it sees it.
type asked struct {
	ID         string      `json:"id"` // the run's
	Status     askStatus   `json:"status"`
	SessionID  string      `json:"sessionId"`
	ToolCallID string      `json:"toolCallId,omitempty"`
	Program    string      `json:"program"`
	ToolName   string      `json:"toolName"`
	Arguments  string      `json:"argumentsJson"`
	SHA256     string      `json:"argumentsSha256"` // of the exact bytes that were asked about
	Reason     string      `json:"reason,omitempty"`
	Cwd        string      `json:"cwd,omitempty"`
	Decision   *decision   `json:"decision,omitempty"` // the policy's
	Request    *request    `json:"request,omitempty"`  // if people were asked
	Resolution *resolution `json:"resolution"`         // null while it is pending
	Outcome    *reported   `json:"outcome"`            // null while there is none
}

// reported is how an action went, as far as that is known.
type reported struct {
	Type   ledger.OutcomeType `json:"type"`
	Output string             `json:"output,omitempty"`
	Reason string             `json:"reason,omitempty"`
}

// asked reads a program's ask: the message that it began with, and what became of it.
func (v views) asked(e ledger.Event, run *ledger.Run) *asked {
	out := &asked{ID: run.ID, Status: askPending, SessionID: e.Session}
	if m, ok := e.Body.(*ledger.MessageReceived); ok && m.Ask != nil {
		sum := sha256.Sum256([]byte(m.Ask.Arguments))
		out.ID, out.Program, out.ToolName, out.SHA256 = m.RunID, m.Ask.Program, m.Ask.Tool, hex.EncodeToString(sum[:])
		out.Arguments, _ = v.arguments(m.Ask.Arguments)
		out.Reason, out.Cwd = v.text(m.Ask.Reason), v.text(m.Ask.Cwd)
	}
	if len(run.Calls) == 0 {
		if f := run.Finished; f != nil { // it ended before anything was decided
			out.Status = askDenied
			out.Resolution = &resolution{Type: ledger.Denied, Source: ledger.SourceAbort, Reason: v.text(f.Reason), At: run.EndedAt.UTC()}
		}
		return out
	}
	c := run.Calls[0]
	out.ToolCallID = c.ID
	if d := c.Decision; d != nil {
		out.Decision = &decision{d.Type, d.Source, v.text(d.Reason), d.Rule, d.Risk}
	}
	if a := c.Approval; a != nil {
		out.Request = v.request(run.ID, run.Session, c.ID, a.ApprovalRequested, a.At)
		if until := a.Until(); !until.IsZero() {
			until = until.UTC()
			out.Request.ExpiresAt = &until
		}
	}
	out.Status = askStatusOf(c)
	out.Resolution = v.askResolution(c, out.Status)
	if o := c.Outcome; o != nil {
		out.Outcome = &reported{o.Outcome, v.text(o.Output), v.text(o.Reason)}
	}
	return out
}

// askStatusOf reads the status. What can't be (an end that is none of these) is a no.
func askStatusOf(c *ledger.Call) askStatus {
	switch {
	case c.StartedAt.IsZero() && c.Finished == nil:
		return askPending
	case c.StartedAt.IsZero():
		return askDenied
	case c.Outcome == nil && c.Finished == nil:
		return askApproved
	case c.Outcome == nil:
		return askNoOutcome
	case c.Outcome.Outcome == ledger.OutcomeDone:
		return askDone
	case c.Outcome.Outcome == ledger.OutcomeFailed:
		return askFailed
	}
	return askNoOutcome
}

// askResolution says who or what decided, in one form for people and the policy. An approval that was withdrawn before
// the start is a no.
func (v views) askResolution(c *ledger.Call, s askStatus) *resolution {
	var by *resolution
	if a := c.Approval; a != nil && a.Resolved != nil {
		by = v.resolution(a.Resolved, a.ResolvedAt)
	}
	switch {
	case s == askPending:
		return nil
	case s != askDenied && by != nil:
		return by
	case s != askDenied:
		return &resolution{Type: ledger.Approved, Source: ledger.SourcePolicy, Reason: policyWords(c), At: c.StartedAt.UTC()}
	case by != nil && by.Type == ledger.Denied:
		return by
	}
	out := &resolution{Type: ledger.Denied, Source: c.Finished.Source, Reason: v.text(c.Finished.Reason), At: c.FinishedAt.UTC()}
	if out.Source == "" { // it could not be read or shown
		out.Source = ledger.SourceUndeliverable
	}
	return out
}

func policyWords(c *ledger.Call) string {
	if c.Decision == nil {
		return ""
	}
	return c.Decision.Reason
}
