package api

import (
	"time"

	"approvalbot/internal/ledger"
)

// A record is a session as it stands in the journal.
type record struct {
	*sessionInfo
	Messages []said       `json:"messages"`
	Runs     []*runRecord `json:"runs"` // in place of their number
}

// said is one message of a session.
type said struct {
	Seq         int64              `json:"seq"`
	Time        time.Time          `json:"time"`
	By          *person            `json:"by"`
	Text        string             `json:"text"`
	Disposition ledger.Disposition `json:"disposition"`
	RunID       string             `json:"runId,omitempty"`
}

func (v views) said(e ledger.Event, b *ledger.MessageReceived) said {
	return said{Seq: e.Seq, Time: e.Time.UTC(), By: personOf(e.Actor), Text: v.text(b.Text), Disposition: b.Disposition, RunID: b.RunID}
}

// runRecord is one run of a session.
type runRecord struct {
	RunID     string           `json:"runId"`
	Status    ledger.RunStatus `json:"status"`
	Code      string           `json:"code,omitempty"`
	Reason    string           `json:"reason,omitempty"`
	Answer    string           `json:"answer,omitempty"`
	Model     string           `json:"model,omitempty"`
	Program   string           `json:"program,omitempty"` // who performs its one call, where it isn't ours
	Mode      string           `json:"approvalMode,omitempty"`
	Policy    string           `json:"approvalPolicy,omitempty"`
	Sandbox   string           `json:"sandboxMode,omitempty"`
	By        *person          `json:"startedBy,omitempty"`
	StartedAt time.Time        `json:"startedAt"`
	EndedAt   *time.Time       `json:"endedAt,omitempty"`
	Steps     int              `json:"steps"`
	Usage     usage            `json:"usage"`
	Calls     []callRecord     `json:"toolCalls"`
}

// callRecord is one tool call of a run.
type callRecord struct {
	ToolCallID    string           `json:"toolCallId"`
	ToolName      string           `json:"toolName"`
	ArgumentsJSON string           `json:"argumentsJson"`
	State         ledger.CallState `json:"state"`
	Source        ledger.Source    `json:"source,omitempty"`
	Code          string           `json:"code,omitempty"`
	Reason        string           `json:"reason,omitempty"`
	Output        *string          `json:"output,omitempty"` // what the model was told
	ElapsedMs     int64            `json:"elapsedMs,omitempty"`
	Decision      *decision        `json:"decision,omitempty"`
	Request       *request         `json:"request,omitempty"`
	Resolution    *resolution      `json:"resolution,omitempty"`
}

// decision is what the policy said of a call.
type decision struct {
	Type   ledger.DecisionType `json:"type"`
	Source string              `json:"source"`
	Reason string              `json:"reason"`
	Rule   string              `json:"rule,omitempty"`
	Risk   string              `json:"risk,omitempty"`
}

func (v views) run(r *ledger.Run) *runRecord {
	out := &runRecord{RunID: r.ID, Status: r.Status(), By: personOf(r.StartedBy), StartedAt: r.StartedAt.UTC(), Steps: len(r.Rounds), Calls: []callRecord{}}
	if b := r.Started; b != nil {
		out.Model, out.Mode, out.Policy, out.Sandbox = b.Model, b.Mode, b.Policy, b.Sandbox
	}
	if b := r.Started; b != nil {
		out.Program = b.Program
	}
	if b := r.Finished; b != nil {
		at := r.EndedAt.UTC()
		out.EndedAt, out.Code, out.Reason, out.Answer = &at, b.Code, v.text(b.Reason), v.text(b.Answer)
		out.Usage = usageOf(b.Usage)
	}
	for _, c := range r.Calls {
		out.Calls = append(out.Calls, v.call(r, c))
	}
	return out
}

func (v views) call(r *ledger.Run, c *ledger.Call) callRecord {
	args, _ := v.arguments(c.Arguments)
	out := callRecord{ToolCallID: c.ID, ToolName: v.text(c.Name), ArgumentsJSON: args, State: c.State}
	if d := c.Decision; d != nil {
		out.Decision = &decision{d.Type, d.Source, v.text(d.Reason), d.Rule, d.Risk}
	}
	if a := c.Approval; a != nil {
		out.Request = v.request(r.ID, r.Session, c.ID, a.ApprovalRequested, a.At)
		if a.Resolved != nil {
			out.Resolution = v.resolution(a.Resolved, a.ResolvedAt)
		}
	}
	if f := c.Finished; f != nil {
		output := v.text(f.Output)
		out.Source, out.Code, out.Reason, out.Output, out.ElapsedMs = f.Source, f.Code, v.text(f.Reason), &output, f.Elapsed.Milliseconds()
	}
	return out
}
