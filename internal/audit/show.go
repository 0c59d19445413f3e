package audit

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"approvalbot/internal/ledger"
	"approvalbot/internal/model"
	"approvalbot/internal/redact"
	"approvalbot/internal/slackui"
)

// A Style says what the text is shown on.
type Style struct {
	Color bool // a terminal that has colours, and a person who wants them
	Width int  // columns; 0: lines are as long as they are
}

// The colours, by what they say.
const (
	plainText = ""
	faint     = "2"
	strong    = "1"
	good      = "32"
	bad       = "31"
	waiting   = "33"
)

// A printer writes text for a terminal. The first error stays and is the result.
type printer struct {
	cleaner
	style Style
	w     io.Writer
	err   error
}

func (p *printer) write(s string) {
	if p.err == nil {
		_, p.err = io.WriteString(p.w, s)
	}
}

// paint colours our own words, or text that was made visible: nothing else can hold the end of a colour.
func (p *printer) paint(color, s string) string {
	if !p.style.Color || color == plainText || s == "" {
		return s
	}
	return "\x1b[" + color + "m" + s + "\x1b[0m"
}

// field writes a name and text that goes on under itself.
func (p *printer) field(indent int, name, color, text string) {
	const column = 12
	head := strings.Repeat(" ", indent) + p.paint(faint, pad(name, column))
	for i, line := range p.wrap(strings.TrimRight(text, "\n"), indent+column) {
		if i > 0 {
			head = strings.Repeat(" ", indent+column)
		}
		p.write(head + p.paint(color, line) + "\n")
	}
}

// wrap breaks text into lines that fit behind an indentation: between words where it can.
func (p *printer) wrap(text string, indent int) (lines []string) {
	room := p.style.Width - indent
	for line := range strings.SplitSeq(text, "\n") {
		if p.style.Width <= 0 || room < 20 {
			lines = append(lines, line)
			continue
		}
		for utf8.RuneCountInString(line) > room {
			head := string([]rune(line)[:room])
			if i := strings.LastIndexByte(head, ' '); i > len(head)/2 {
				head = head[:i]
			}
			lines = append(lines, head)
			line = strings.TrimPrefix(line[len(head):], " ")
		}
		lines = append(lines, line)
	}
	return lines
}

func pad(s string, width int) string {
	return s + strings.Repeat(" ", max(width-utf8.RuneCountInString(s), 1))
}

// List writes a line for each run, the oldest first, and between them those of pauses.
func List(ctx context.Context, j *ledger.Reader, w io.Writer, r *redact.Redactor, s Style) error {
	p := &printer{cleaner: cleaner{r: r}, style: s, w: w}
	p.write(p.paint(strong, listLine("RUN", "STARTED", "BY", "STATUS", "CALLS", "TOOK", "ENDINGS", "REQUEST")) + "\n")
	for e, err := range j.Read(ctx, 0, ledger.Filter{Kinds: []string{"run_started", "paused", "resumed"}}) {
		if err != nil {
			return err
		}
		if e.Run == "" {
			p.held(e)
			continue
		}
		run, ok, err := j.LoadRun(ctx, e.Run)
		if err != nil || !ok {
			return errors.Join(err, fmt.Errorf("run %s can't be read", e.Run))
		}
		var text string
		if run.Started != nil {
			message, _, err := j.Event(ctx, run.Started.Message)
			if err != nil {
				return err
			}
			text = (&Reading{Message: message}).request()
		}
		p.listed(run, text)
	}
	return p.err
}

// held writes that approvalbot was paused, or that it was resumed.
func (p *printer) held(e ledger.Event) {
	line := pad("("+e.Kind()+")", 42) + pad(e.Time.UTC().Format("2006-01-02 15:04:05Z"), 22) + p.short(e.Actor.DisplayName(), 40)
	if b, ok := e.Body.(*ledger.Paused); ok && b.Reason != "" {
		line += "  " + p.short(b.Reason, 100)
	}
	p.write(p.paint(waiting, line) + "\n")
}

func listLine(id, started, by, status, calls, duration, endings, request string) string {
	return pad(id, 42) + pad(started, 22) + pad(by, 18) + pad(status, 22) + pad(calls, 7) + pad(duration, 12) + pad(endings, 24) + request
}

func (p *printer) listed(run *ledger.Run, request string) {
	duration := "-"
	if !run.EndedAt.IsZero() {
		duration = took(run.EndedAt.Sub(run.StartedAt))
	}
	const fixed = 147 // columns before the request
	room := 60
	if p.style.Width > 0 {
		room = max(p.style.Width-fixed, 10)
	}
	line := listLine(p.line(run.ID), run.StartedAt.UTC().Format("2006-01-02 15:04:05Z"), p.short(run.StartedBy.DisplayName(), 16),
		"\x00", fmt.Sprint(len(run.Calls)), duration, endings(run), p.short(request, room))
	status := string(run.Status())
	// The colour goes in last: its characters take no room.
	line = strings.Replace(line, pad("\x00", 22), p.paint(statusColor(run.Status()), status)+strings.Repeat(" ", max(22-len(status), 1)), 1)
	p.write(strings.TrimRight(line, " ") + "\n")
}

// endings counts how the calls of a run ended, in the order in which that happened first: "1 done, 2 denied".
func endings(run *ledger.Run) string {
	var kinds []string
	n := map[string]int{}
	for _, c := range run.Calls {
		kind := ending(c)
		if n[kind]++; n[kind] == 1 {
			kinds = append(kinds, kind)
		}
	}
	if len(kinds) == 0 || run.Erased > 0 {
		return "-"
	}
	for i, kind := range kinds {
		kinds[i] = fmt.Sprintf("%d %s", n[kind], kind)
	}
	return strings.Join(kinds, ", ")
}

// ending is how a call ended, in a word or two that go behind a number.
func ending(c *ledger.Call) string {
	f := c.Finished
	if f == nil {
		return "not ended"
	}
	switch f.State {
	case ledger.OutputAvailable:
		return "done"
	case ledger.OutputError:
		switch f.Code {
		case "ABORTED":
			return "broken off"
		case "OUTCOME_UNKNOWN":
			return "with unknown outcome"
		}
		return "failed"
	}
	switch f.Source {
	case ledger.SourceUser:
		return "denied"
	case ledger.SourceTimeout:
		return "timed out"
	case ledger.SourceAbort:
		return "stopped"
	case ledger.SourceUndeliverable:
		return "asked nobody"
	case ledger.SourceLoopGuard:
		return "not asked again"
	}
	return "not allowed"
}

func statusColor(s ledger.RunStatus) string {
	switch s {
	case ledger.RunSucceeded:
		return good
	case ledger.RunFailed, ledger.RunCancelled:
		return bad
	case ledger.RunErased:
		return faint
	}
	return waiting
}

func stateColor(s ledger.CallState) string {
	switch s {
	case ledger.OutputAvailable:
		return good
	case ledger.OutputDenied, ledger.OutputError:
		return bad
	}
	return waiting
}

// Show answers, from the journal alone: did each call really end, how and why, and has the model seen it.
func Show(w io.Writer, r *Reading, red *redact.Redactor, s Style) error {
	p := &printer{cleaner: cleaner{red, r.Names}, style: s, w: w}
	p.head(r)
	if r.Run.Erased > 0 {
		return p.err
	}
	p.transcript(r.Transcript.Request())
	p.calls(r)
	return p.err
}

func (p *printer) head(r *Reading) {
	run := r.Run
	p.field(0, "run", strong, p.line(run.ID))
	p.field(0, "session", plainText, p.line(run.Session))
	p.field(0, "started", plainText, stamp(run.StartedAt)+" by "+p.who(&run.StartedBy))
	if run.Started != nil {
		if program := r.program(); program != "" {
			p.field(0, "program", plainText, p.line(program)+", which acts itself")
		} else {
			p.field(0, "model", plainText, p.line(run.Started.Model))
			if run.Started.Profile != "" {
				p.field(0, "profile", plainText, p.line(run.Started.Profile))
			}
			if run.Started.Workspace != "" {
				p.field(0, "workspace", plainText, p.line(run.Started.Workspace))
			}
		}
		p.field(0, "policy", plainText, fmt.Sprintf("%s, %s, %s", p.line(run.Started.Policy), p.line(run.Started.Sandbox), p.line(run.Started.Mode)))
	}
	p.field(0, "status", statusColor(run.Status()), string(run.Status()))
	if s := run.Stop; s != nil {
		p.field(0, "stop", bad, stamp(s.At)+" asked for by "+p.who(&s.By))
	}
	if f := run.Finished; f != nil {
		end := fmt.Sprintf("%s after %s in %s", stamp(run.EndedAt), took(run.EndedAt.Sub(run.StartedAt)), count(f.Rounds, "round", "rounds"))
		if f.Code != "" {
			end += fmt.Sprintf(" (%s: %s)", p.line(f.Code), p.line(f.Reason))
		}
		p.field(0, "ended", plainText, end)
	} else if !run.EndedAt.IsZero() {
		p.field(0, "ended", plainText, stamp(run.EndedAt))
	}
	p.sampling(run)
	p.field(0, "journal", plainText, fmt.Sprintf("rows %d to %d, head %s", r.First, r.Last.Seq, r.Last))
	if gone := r.erased(p.cleaner); gone != "" {
		p.field(0, "erased", waiting, gone)
	}
}

func (p *printer) transcript(req model.Request) {
	p.write("\n" + p.paint(strong, "TRANSCRIPT (what the model is given)") + "\n")
	for _, m := range req.Messages {
		role := "[" + p.line(string(m.Role)) + "]"
		if m.Text != "" {
			p.field(2, role, plainText, p.text(m.Text))
		}
		for _, c := range m.ToolCalls {
			p.field(2, role, plainText, fmt.Sprintf("calls %s %s %s", p.line(c.ID), p.line(c.Name), p.text(c.Arguments)))
		}
		for _, r := range m.Results {
			p.field(2, role, plainText, p.line(r.ToolCallID)+": "+p.text(r.Text))
		}
	}
}

func (p *printer) calls(r *Reading) {
	p.write("\n" + p.paint(strong, "TOOL CALLS") + "\n")
	if len(r.Run.Calls) == 0 {
		p.write("  none\n")
	}
	for _, c := range r.Run.Calls {
		seen := p.paint(waiting, "the model has not seen its result")
		switch {
		case r.program() != "":
			seen = p.paint(faint, "no model is told of it")
		case r.Transcript.Seen(r.Run.ID, c.ID):
			seen = p.paint(faint, "the model has seen its result")
		}
		p.write(fmt.Sprintf("  %s  %s  %s  (%s)\n", p.paint(strong, p.line(c.ID)), p.line(c.Name), p.paint(stateColor(c.State), p.state(c)), seen))
		if d := c.Decision; d != nil {
			p.field(6, "decision", plainText, fmt.Sprintf("%s (%s): %s", d.Type, p.line(cmp.Or(d.Rule, d.Source)), p.line(d.Reason)))
		}
		if c.Approval != nil {
			p.approval(c.Approval)
		}
		if !c.StartedAt.IsZero() {
			p.field(6, "started", plainText, stamp(c.StartedAt))
		}
		if f := c.Finished; f != nil {
			p.field(6, "ended", plainText, strings.TrimSpace(stamp(c.FinishedAt)+" "+p.text(f.Reason)))
		}
	}
}

// state is where a call stands, with what made it so.
func (c cleaner) state(call *ledger.Call) string {
	f := call.Finished
	switch {
	case f == nil:
		return string(call.State) + ", not ended"
	case f.State == ledger.OutputDenied:
		return fmt.Sprintf("%s (%s)", f.State, c.line(string(f.Source)))
	case f.Code != "":
		return fmt.Sprintf("%s (%s)", f.State, c.line(f.Code))
	}
	return string(f.State)
}

func (p *printer) approval(a *ledger.Approval) {
	p.field(6, "asked", plainText, fmt.Sprintf("%s  approval %s  sha256 %.8s…", stamp(a.At), p.line(a.ApprovalRequested.Approval), p.line(a.Original.Digest)))
	p.field(6, "wanted", plainText, p.wanted(a))
	for _, s := range a.Shown {
		p.field(6, "shown", plainText, p.line(fmt.Sprintf("%s %s %s until %s", s.Surface, s.Channel, s.TS, stamp(s.Until))))
	}
	for _, v := range a.Void {
		p.field(6, "vote", faint, fmt.Sprintf("%s %s by %s, void: the arguments were changed after it", stamp(v.At), v.Type, p.who(&v.By)))
	}
	for i, m := range a.Amended {
		p.field(6, "changed", waiting, fmt.Sprintf("%s by %s, sha256 %.8s…, to %s", stamp(m.At), p.who(&m.By), p.line(m.Digest), p.text(m.Arguments)))
		if now := p.rewanted(a, i); now != "" {
			p.field(6, "wanted then", plainText, now)
		}
	}
	for _, s := range passed(p.cleaner, a) {
		p.field(6, s.name, plainText, stamp(s.at)+" "+s.text)
	}
	for _, v := range a.Votes {
		p.field(6, "vote", plainText, fmt.Sprintf("%s %s by %s", stamp(v.At), v.Type, p.who(&v.By)))
	}
	if r := a.Resolved; r != nil {
		color := bad
		if r.Type == ledger.Approved {
			color = good
		}
		wait, _ := waited(a)
		p.field(6, "resolution", color, strings.TrimSpace(fmt.Sprintf("%s %s (%s) by %s after %s %s",
			stamp(a.ResolvedAt), r.Type, r.Source, p.who(r.By), took(wait), p.text(r.Reason))))
		if g := r.Granted; g != nil {
			p.field(6, "granted", plainText, allowance(g))
		}
	}
}

// allowance is what was allowed in advance with an approval; the grant itself says what it covers.
func allowance(g *ledger.Granted) string {
	return fmt.Sprintf("calls of this kind, %s, up to %d times until %s (grant %s)", scopeWords(g.Scope), g.Uses, stamp(g.Until), slackui.VisibleLine(g.Grant))
}

func scopeWords(s ledger.GrantScope) string {
	switch s {
	case ledger.GrantThread:
		return "in this conversation"
	case ledger.GrantAlways:
		return "everywhere"
	}
	return "of a scope that isn't known"
}
