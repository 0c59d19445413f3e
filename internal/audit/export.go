package audit

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"approvalbot/internal/ledger"
	"approvalbot/internal/redact"
)

// A Filter says which events are exported. What is empty doesn't restrict.
type Filter struct {
	From    time.Time // not before
	To      time.Time // before
	Run     string
	Session string
	Actor   string // id or name of who caused it, or the kind: user, token, model, system, operator
	Tool    string // only events of calls of this tool, and those that define it
	Outcome string // only events of calls that ended so: a state, the source of a denial, or an error's code
}

// ExportOptions are what Export may be told.
type ExportOptions struct {
	Filter
	Redactor *redact.Redactor        // nil: the events as they are
	Progress func(done, total int64) // called now and then, in rows
}

// An Exported is what was written.
type Exported struct {
	Events int64
	Report ledger.Report // of the whole journal
}

// A BrokenError says that the journal doesn't verify. What was exported is what stands before the problem.
type BrokenError struct{ Report ledger.Report }

func (e *BrokenError) Error() string {
	return fmt.Sprintf("the journal doesn't verify: after %d rows that fit: %s", e.Report.Rows, e.Report.Problem)
}

func (e *BrokenError) Unwrap() error { return e.Report.Problem }

// ExitCode is the status of a command that found this: what it was asked for couldn't be relied on.
func (e *BrokenError) ExitCode() int { return 2 }

// Export writes the events that fit the filter, one JSON object a line. It reads and verifies the whole journal on the way,
// so that what it writes is known to stand there; a [*BrokenError] says that it ended early.
func Export(ctx context.Context, j *ledger.Reader, w io.Writer, o ExportOptions) (Exported, error) {
	x := &exporter{j: j, o: o, w: bufio.NewWriterSize(w, 1<<16), ends: map[callID]end{}}
	report, err := j.Verify(ctx, ledger.VerifyOptions{Progress: o.Progress, Check: func(e ledger.Event) error { return x.event(ctx, e) }})
	done := Exported{Events: x.events, Report: report}
	switch {
	case x.failed != nil:
		return done, x.failed
	case err != nil:
		return done, errors.Join(err, x.w.Flush())
	case !report.OK():
		return done, errors.Join(&BrokenError{Report: report}, x.w.Flush())
	}
	return done, x.w.Flush()
}

// An exporter is one Export on its way.
type exporter struct {
	j      *ledger.Reader
	o      ExportOptions
	w      *bufio.Writer
	line   bytes.Buffer
	ends   map[callID]end
	events int64
	failed error // of reading or writing; no problem of the journal's
}

type callID struct{ run, call string }

// An end is what the filters need to know of a call.
type end struct{ tool, state, source, code string }

// endsMost bounds what is remembered of calls; those that are forgotten are looked up again.
const endsMost = 1024

// A record is an event as it is exported. The names are a contract, explained in docs/operations.md.
type record struct {
	Seq     int64        `json:"seq"`
	Time    time.Time    `json:"time"`
	Session string       `json:"sessionId,omitempty"`
	Run     string       `json:"runId,omitempty"`
	Call    string       `json:"toolCallId,omitempty"`
	Kind    string       `json:"kind"`
	Actor   ledger.Actor `json:"actor"`
	Body    ledger.Body  `json:"body"` // null where it was erased
	Erased  bool         `json:"erased,omitempty"`
	Hash    ledger.Hash  `json:"hash"`
}

// event is Export's check: it writes the event if it fits, and finds fault with none.
func (x *exporter) event(ctx context.Context, e ledger.Event) error {
	fits, err := x.fits(ctx, e)
	if err == nil && fits {
		err = x.write(e)
	}
	x.failed = err
	return err
}

func (x *exporter) write(e ledger.Event) error {
	r := record{Seq: e.Seq, Time: e.Time, Session: e.Session, Run: e.Run, Call: e.Call, Kind: e.Kind(), Actor: e.Actor, Body: e.Body, Hash: e.Hash}
	if _, erased := e.Body.(*ledger.Erased); erased {
		r.Body, r.Erased = nil, true
	}
	x.line.Reset()
	enc := json.NewEncoder(&x.line)
	enc.SetEscapeHTML(false) // so that a body has the bytes that its hash is of
	if err := enc.Encode(r); err != nil {
		return fmt.Errorf("row %d: %w", e.Seq, err)
	}
	line := x.line.Bytes()
	if x.o.Redactor != nil {
		line = append(bytes.TrimSpace(x.o.Redactor.JSON(line)), '\n')
	}
	if _, err := x.w.Write(line); err != nil {
		return err
	}
	x.events++
	return nil
}

func (x *exporter) fits(ctx context.Context, e ledger.Event) (bool, error) {
	f := x.o.Filter
	switch {
	case !f.From.IsZero() && e.Time.Before(f.From), !f.To.IsZero() && !e.Time.Before(f.To),
		f.Run != "" && e.Run != f.Run, f.Session != "" && e.Session != f.Session,
		f.Actor != "" && !isActor(e.Actor, f.Actor):
		return false, nil
	case f.Tool == "" && f.Outcome == "":
		return true, nil
	case f.Outcome == "" && defines(e, f.Tool):
		return true, nil
	case e.Call == "":
		return false, nil
	}
	end, err := x.end(ctx, e)
	return err == nil && (f.Tool == "" || end.tool == f.Tool) && (f.Outcome == "" || end.is(f.Outcome)), err
}

// defines tells whether the event says what the tool is.
func defines(e ledger.Event, tool string) bool {
	b, ok := e.Body.(*ledger.ToolDefined)
	return ok && b.Tool == tool
}

func isActor(a ledger.Actor, want string) bool {
	return a.ID == want || string(a.Kind) == want || a.Name != "" && strings.EqualFold(a.Name, strings.TrimPrefix(want, "@"))
}

func (e end) is(outcome string) bool {
	for _, s := range []string{e.state, strings.TrimPrefix(e.state, "output-"), e.source, e.code} {
		if s != "" && strings.EqualFold(s, outcome) {
			return true
		}
	}
	return false
}

// end looks up how an event's call ended, and which tool it is of. It may end only later in the journal.
func (x *exporter) end(ctx context.Context, e ledger.Event) (end, error) {
	id := callID{e.Run, e.Call}
	if known, ok := x.ends[id]; ok {
		return known, nil
	}
	var found end
	last, ok, err := x.j.Claimed(ctx, ledger.ClaimFinish(e.Run, e.Call))
	if err != nil {
		return end{}, err
	}
	if b, is := last.Body.(*ledger.ToolFinished); ok && is {
		found = end{tool: b.Tool, state: string(b.State), source: string(b.Source), code: b.Code}
	} else if decided, ok, err := x.j.Claimed(ctx, ledger.ClaimDecision(e.Run, e.Call)); err != nil {
		return end{}, err
	} else if b, is := decided.Body.(*ledger.PermissionDecided); ok && is {
		found.tool = b.Tool
	}
	if len(x.ends) >= endsMost {
		clear(x.ends)
	}
	x.ends[id] = found
	return found, nil
}
