package api

import (
	"encoding/json"
	"slices"
	"time"

	"approvalbot/internal/approvals"
	"approvalbot/internal/ledger"
	"approvalbot/internal/redact"
)

// What leaves over HTTP, in the names of the journal. Everything that others wrote passes the redactor.
type views struct{ redactor *redact.Redactor }

func (v views) text(s string) string {
	shown, _ := v.redactor.Text(s)
	return shown
}

// arguments gives canonical arguments, and whether something in them was hidden.
func (v views) arguments(s string) (shown string, hidden bool) {
	shown = string(v.redactor.JSON([]byte(s)))
	return shown, shown != s
}

// person is an actor as programs see it.
type person struct {
	Kind ledger.ActorKind `json:"kind"`
	ID   string           `json:"id,omitempty"`
	Name string           `json:"name,omitempty"`
	Via  string           `json:"via,omitempty"`
}

func personOf(a ledger.Actor) *person {
	if a.Kind == "" {
		return nil
	}
	return &person{Kind: a.Kind, ID: a.ID, Name: a.Name, Via: a.Via}
}

// resolution is how an ask ended.
type resolution struct {
	Type   ledger.ResolutionType `json:"type"`
	Source ledger.Source         `json:"source"`
	Reason string                `json:"reason"`
	By     *person               `json:"by,omitempty"`
	At     time.Time             `json:"at"`

	// Where people changed the arguments before they were approved: what was approved, and who changed them last.
	ArgumentsJSON   string  `json:"argumentsJson,omitempty"`
	ArgumentsSHA256 string  `json:"argumentsSha256,omitempty"`
	EditedBy        *person `json:"editedBy,omitempty"`
}

func (v views) resolution(b *ledger.ApprovalResolved, at time.Time) *resolution {
	out := &resolution{Type: b.Type, Source: b.Source, Reason: v.text(b.Reason), At: at.UTC()}
	if b.By != nil {
		out.By = personOf(*b.By)
	}
	if b.EditedBy != nil {
		out.ArgumentsJSON, _ = v.arguments(b.Arguments)
		out.ArgumentsSHA256, out.EditedBy = b.Digest, personOf(*b.EditedBy)
	}
	return out
}

// request is an ask as it is put to people: in a stream, and in the list of what is pending.
type request struct {
	ApprovalID      string          `json:"approvalId"`
	RunID           string          `json:"runId"`
	SessionID       string          `json:"sessionId"`
	ToolCallID      string          `json:"toolCallId"`
	ToolName        string          `json:"toolName"`
	ArgumentsJSON   string          `json:"argumentsJson"`
	ArgumentsSHA256 string          `json:"argumentsSha256"`    // of the exact bytes that will run
	Redacted        bool            `json:"redacted,omitempty"` // something in argumentsJson or preview is hidden
	Reason          string          `json:"reason"`
	Rule            string          `json:"rule,omitempty"` // the rules or the setting that ask
	Risk            string          `json:"risk,omitempty"`
	Confirm         bool            `json:"confirm,omitempty"` // a click on Approve should be confirmed once more
	Preview         *ledger.Preview `json:"preview,omitempty"`
	Cwd             string          `json:"cwd,omitempty"`
	Approvers       []string        `json:"approvers"`
	Quorum          int             `json:"quorum"`
	RequestedAt     time.Time       `json:"requestedAt"`
	TimeoutMs       int64           `json:"timeoutMs"`           // counted from the first showing
	ExpiresAt       *time.Time      `json:"expiresAt,omitempty"` // once it has been shown
	Approvals       int             `json:"approvals"`           // different people who have approved so far

	// Of an ask whose arguments people changed: how often, who did it last, and what was asked for. An approval names the
	// revision that it is about.
	Revision              int     `json:"revision,omitempty"`
	EditedBy              *person `json:"editedBy,omitempty"`
	OriginalArgumentsJSON string  `json:"originalArgumentsJson,omitempty"`
}

func (v views) request(run, session, call string, b *ledger.ApprovalRequested, at time.Time) *request {
	args, hidden := v.arguments(b.Arguments)
	p := b.Preview
	p.Summary, p.Target, p.Body, p.RunsAs = v.text(p.Summary), v.text(p.Target), v.text(p.Body), v.text(p.RunsAs)
	p.Notes = nil // of the journal's own
	for _, note := range b.Preview.Notes {
		p.Notes = append(p.Notes, v.text(note))
	}
	return &request{
		ApprovalID: b.Approval, RunID: run, SessionID: session, ToolCallID: call, ToolName: b.Tool,
		ArgumentsJSON: args, ArgumentsSHA256: b.Digest, Redacted: hidden || p.Body != b.Preview.Body || !slices.Equal(p.Notes, b.Preview.Notes),
		Reason: v.text(b.Reason), Rule: b.Rule, Risk: b.Risk, Confirm: b.Confirm, Preview: &p, Cwd: v.text(b.Cwd), Approvers: b.Approvers, Quorum: b.Quorum,
		RequestedAt: at.UTC(), TimeoutMs: b.Timeout.Milliseconds(),
	}
}

// standing is an ask with what people made of it.
func (v views) standing(run, session, call string, a *ledger.Approval) *request {
	out := v.request(run, session, call, a.ApprovalRequested, a.At)
	if n := a.Revision(); n > 0 && a.Original != nil {
		out.Revision, out.EditedBy = n, personOf(a.Amended[n-1].By)
		out.OriginalArgumentsJSON, _ = v.arguments(a.Original.Arguments)
	}
	return out
}

// snapshot is an ask as it stands.
func (v views) snapshot(s approvals.Snapshot) *request {
	out := v.standing(s.Run, s.Session, s.Call, &s.Ask)
	if until := s.Ask.Until(); !until.IsZero() {
		until = until.UTC()
		out.ExpiresAt = &until
	}
	for _, vote := range s.Ask.Votes {
		if vote.Type == ledger.Approved {
			out.Approvals++
		}
	}
	return out
}

// usage counts a model's tokens.
type usage struct {
	InputTokens      int   `json:"inputTokens"` // all of them, cached ones included
	OutputTokens     int   `json:"outputTokens"`
	CacheReadTokens  int   `json:"cacheReadTokens,omitempty"`
	CacheWriteTokens int   `json:"cacheWriteTokens,omitempty"`
	Cost             *cost `json:"cost,omitempty"` // where a price is set
}

// cost is an amount of money in millionths of the currency's unit: a program adds it up without rounding.
type cost struct {
	Micros   int64  `json:"micros"`
	Currency string `json:"currency"`
}

func usageOf(u ledger.Usage) usage {
	out := usage{
		InputTokens: u.InputTokens, OutputTokens: u.OutputTokens,
		CacheReadTokens: u.CacheReadTokens, CacheWriteTokens: u.CacheWriteTokens,
	}
	if u.Cost != nil {
		out.Cost = &cost{u.Cost.Micros, u.Cost.Currency}
	}
	return out
}

// result is what a run that succeeded came to.
type result struct {
	RunID     string `json:"runId"`
	SessionID string `json:"sessionId"`
	Model     string `json:"model"`
	Answer    string `json:"answer"`
	Steps     int    `json:"steps"`
	Usage     usage  `json:"usage"`
	Truncated bool   `json:"truncated,omitempty"` // the answer ends in the middle: the model may write no more at once
}

// failure is how a run ended that did not succeed.
type failure struct {
	Code       string           `json:"code"`
	Message    string           `json:"message"`
	Status     ledger.RunStatus `json:"status,omitempty"`
	RunID      string           `json:"runId"`
	SessionID  string           `json:"sessionId,omitempty"`
	Answer     string           `json:"answer,omitempty"` // what the people who asked are told, where there is such a thing
	ToolCallID string           `json:"toolCallId,omitempty"`
	ToolName   string           `json:"toolName,omitempty"`
	Reason     string           `json:"reason,omitempty"`
}

// raw is a body of the journal, redacted.
func (v views) raw(b ledger.Body) json.RawMessage {
	out, err := json.Marshal(b)
	if err != nil { // can't be: it came out of the journal
		return nil
	}
	return v.redactor.JSON(out)
}
