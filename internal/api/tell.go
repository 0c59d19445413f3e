package api

import (
	"bytes"
	"encoding/json"
	"slices"
	"strconv"
	"time"

	"approvalbot/internal/ledger"
)

// The types of what a stream says.
const (
	typeStep      = "step"
	typeDelta     = "assistantDelta"
	typeRequired  = "approvalRequired"
	typeResolved  = "approvalResolved"
	typeAvailable = "toolOutputAvailable"
	typeDenied    = "toolOutputDenied"
	typeError     = "toolOutputError"
	typeDebug     = "debug"
	typeDone      = "done"
	typeFailed    = "error"
)

// A message is one thing that a stream says. Which members are there depends on its type.
type message struct {
	Type string `json:"type"`

	Step      int        `json:"step,omitempty"`      // step
	Text      string     `json:"text,omitempty"`      // step
	ToolCalls []toolCall `json:"toolCalls,omitempty"` // step
	Usage     *usage     `json:"usage,omitempty"`     // step
	Delta     string     `json:"delta,omitempty"`     // assistantDelta
	Request   *request   `json:"request,omitempty"`   // approvalRequired

	ApprovalID string      `json:"approvalId,omitempty"` // approvalResolved
	RunID      string      `json:"runId,omitempty"`      // of everything about a call
	ToolCallID string      `json:"toolCallId,omitempty"`
	ToolName   string      `json:"toolName,omitempty"`
	Resolution *resolution `json:"resolution,omitempty"` // approvalResolved

	Output    *string          `json:"output,omitempty"`    // toolOutput…: what the model was told
	State     ledger.CallState `json:"state,omitempty"`     // toolOutput…
	Source    ledger.Source    `json:"source,omitempty"`    // toolOutputDenied
	Code      string           `json:"code,omitempty"`      // toolOutputError
	Reason    string           `json:"reason,omitempty"`    // toolOutputDenied, toolOutputError
	ElapsedMs *int64           `json:"elapsedMs,omitempty"` // toolOutputAvailable, toolOutputError

	Event  *debugEvent `json:"event,omitempty"`  // debug
	Result *result     `json:"result,omitempty"` // done
	Error  *failure    `json:"error,omitempty"`  // error
}

type toolCall struct {
	ToolCallID    string `json:"toolCallId"`
	ToolName      string `json:"toolName"`
	ArgumentsJSON string `json:"argumentsJson"` // as the model wrote them
}

// debugEvent is an event of the journal that clients need not understand.
type debugEvent struct {
	Kind       string          `json:"kind"`
	Time       time.Time       `json:"time"`
	RunID      string          `json:"runId,omitempty"`
	SessionID  string          `json:"sessionId,omitempty"`
	ToolCallID string          `json:"toolCallId,omitempty"`
	Actor      *person         `json:"actor,omitempty"`
	Body       json.RawMessage `json:"body,omitempty"`
}

// ends tells whether nothing comes after it.
func (m message) ends() bool { return m.Type == typeDone || m.Type == typeFailed }

// A cast is what has to be known of a run's earlier events to tell the next one: names. It is a fold, kept small,
// because every follower has one.
type cast struct {
	session, model string
	tools          map[string]string // by toolCallId
	unasked        *unasked          // the first call, in the model's order, that nobody could be asked about
	order          map[string]int
	upTo           int64                       // Seq of the last event that was applied
	asks           map[string]string           // why each call wanted to ask
	open           map[string]*ledger.Approval // the asks that are pending, by approvalId: a change is told as what it makes of one
}

// unasked is a call that needed approval in a run that can't ask.
type unasked struct {
	call, tool, reason string
	order              int
}

// apply reads an event that was told.
func (c *cast) apply(e ledger.Event) {
	c.session, c.upTo = e.Session, max(c.upTo, e.Seq)
	switch b := e.Body.(type) {
	case *ledger.RunStarted:
		c.model = b.Model
	case *ledger.ModelCompleted:
		if c.tools == nil {
			c.tools, c.order, c.asks = map[string]string{}, map[string]int{}, map[string]string{}
		}
		for _, tc := range b.ToolCalls {
			c.tools[tc.ID], c.order[tc.ID] = tc.Name, len(c.order)
		}
	case *ledger.CallRequested:
		c.tools = map[string]string{b.Call.ID: b.Call.Name}
	case *ledger.PermissionDecided:
		if b.Type == ledger.Ask && c.asks != nil {
			c.asks[e.Call] = b.Reason
		}
	case *ledger.ApprovalRequested:
		delete(c.asks, e.Call)
		if c.open == nil {
			c.open = map[string]*ledger.Approval{}
		}
		c.open[b.Approval] = &ledger.Approval{}
		c.open[b.Approval].Apply(e)
	case *ledger.ApprovalAmended:
		if a := c.open[b.Approval]; a != nil {
			a.Apply(e)
		}
	case *ledger.ApprovalResolved:
		delete(c.open, b.Approval)
	case *ledger.ToolFinished:
		why, wanted := c.asks[e.Call]
		if u := c.unasked; wanted && b.Source == ledger.SourceUndeliverable && (u == nil || c.order[e.Call] < u.order) {
			c.unasked = &unasked{e.Call, b.Tool, why, c.order[e.Call]}
		}
	}
}

// tell is what a stream says of an event: exactly one message for each. It is pure: the same run gives the same stream,
// whenever and to whomever it is told.
func (v views) tell(c *cast, e ledger.Event) message {
	switch b := e.Body.(type) {
	case *ledger.ModelCompleted:
		used := usageOf(b.Usage)
		m := message{Type: typeStep, RunID: e.Run, Step: b.Round, Text: v.text(b.Text), Usage: &used}
		for _, tc := range b.ToolCalls {
			args, _ := v.arguments(tc.Arguments)
			m.ToolCalls = append(m.ToolCalls, toolCall{tc.ID, v.text(tc.Name), args})
		}
		return m
	case *ledger.ApprovalRequested:
		return message{Type: typeRequired, Request: v.request(e.Run, e.Session, e.Call, b, e.Time)}
	case *ledger.ApprovalAmended: // it is another question now, with the same id: buttons are drawn anew from this
		if a := c.open[b.Approval]; a != nil {
			changed := *a
			changed.Amended = slices.Clip(changed.Amended)
			changed.Apply(e)
			return message{Type: typeRequired, Request: v.standing(e.Run, e.Session, e.Call, &changed)}
		}
	case *ledger.ApprovalResolved:
		return message{Type: typeResolved, ApprovalID: b.Approval, RunID: e.Run, ToolCallID: e.Call,
			ToolName: c.tools[e.Call], Resolution: v.resolution(b, e.Time)}
	case *ledger.ToolFinished:
		return v.finished(e, b)
	case *ledger.RunFinished:
		return v.ended(c, e, b)
	case *ledger.RunStarted:
		// The system prompt and the tools are the same in every run, and large.
		slim := *b
		slim.System, slim.Tools = "", nil
		return v.debug(e, &slim)
	}
	return v.debug(e, e.Body)
}

func (v views) finished(e ledger.Event, b *ledger.ToolFinished) message {
	output, elapsed := v.text(b.Output), b.Elapsed.Milliseconds()
	m := message{RunID: e.Run, ToolCallID: e.Call, ToolName: v.text(b.Tool), State: b.State, Output: &output, Reason: v.text(b.Reason)}
	switch b.State {
	case ledger.OutputAvailable:
		m.Type, m.ElapsedMs, m.Reason = typeAvailable, &elapsed, ""
	case ledger.OutputDenied:
		m.Type, m.Source = typeDenied, b.Source
	default:
		m.Type, m.Code, m.ElapsedMs = typeError, b.Code, &elapsed
	}
	return m
}

func (v views) ended(c *cast, e ledger.Event, b *ledger.RunFinished) message {
	if b.Status == ledger.RunSucceeded {
		return message{Type: typeDone, Result: &result{
			RunID: e.Run, SessionID: e.Session, Model: c.model, Answer: v.text(b.Answer), Steps: b.Rounds,
			Usage: usageOf(b.Usage), Truncated: b.Truncated,
		}}
	}
	f := &failure{Code: b.Code, Message: v.text(b.Reason), Status: b.Status, RunID: e.Run, SessionID: e.Session, Answer: v.text(b.Answer)}
	if f.Code == "" {
		f.Code = string(b.Status)
	}
	if u := c.unasked; u != nil && b.Code == codeRequired {
		f.ToolCallID, f.ToolName, f.Reason = u.call, v.text(u.tool), v.text(u.reason)
	}
	return message{Type: typeFailed, Error: f}
}

func (v views) debug(e ledger.Event, b ledger.Body) message {
	d := &debugEvent{Kind: e.Kind(), Time: e.Time.UTC(), RunID: e.Run, SessionID: e.Session, ToolCallID: e.Call, Actor: personOf(e.Actor)}
	if _, erased := b.(*ledger.Erased); !erased {
		d.Body = v.raw(b)
	}
	return message{Type: typeDebug, Event: d}
}

// tellPast is tell for a follower who comes later: an ask that is over by then would make it draw buttons for nothing.
func (v views) tellPast(c *cast, e ledger.Event, over map[string]bool) message {
	switch b := e.Body.(type) {
	case *ledger.ApprovalRequested:
		if over[b.Approval] {
			return v.debug(e, b)
		}
	case *ledger.ApprovalAmended:
		if over[b.Approval] {
			return v.debug(e, b)
		}
	}
	return v.tell(c, e)
}

// frame writes a message as an event stream has it. seq is 0 for what isn't journalled.
func frame(seq int64, m message) []byte {
	var out bytes.Buffer
	if seq > 0 {
		out.WriteString("id: ")
		out.WriteString(strconv.FormatInt(seq, 10))
		out.WriteByte('\n')
	}
	out.WriteString("data: ")
	enc := json.NewEncoder(&out) // one line: it escapes line breaks within strings
	enc.SetEscapeHTML(false)
	if err := enc.Encode(m); err != nil {
		return nil // can't be: a message is made of strings, numbers and times
	}
	out.WriteByte('\n')
	return out.Bytes()
}
