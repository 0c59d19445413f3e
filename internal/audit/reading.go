package audit

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"approvalbot/internal/agent"
	"approvalbot/internal/ledger"
	"approvalbot/internal/redact"
	"approvalbot/internal/slackui"
)

// ErrNoRun says that the journal has no such run.
var ErrNoRun = errors.New("there is no such run; approvalbot audit show lists the runs")

// A Reading is one run as the journal tells it.
type Reading struct {
	Run        *ledger.Run
	Message    ledger.Event                 // that it works off; no body where that isn't known
	Files      map[string]*ledger.FileSaved // what became of the files that came with it
	Transcript *agent.Transcript            // what the model was given, up to the run's last event
	First      int64                        // Seq of its first event
	Last       ledger.Head                  // and its last: a head that the journal has to have from then on
	Erasing    ledger.Event                 // the pruning that erased it; no body where it wasn't
	Names      map[string]string            // of the people who did something in its conversation, by id
}

// program is the other program whose own action the run was about; empty for a run of the agent.
func (r *Reading) program() string {
	if r.Run.Started == nil {
		return ""
	}
	return r.Run.Started.Program
}

// Read reads a run. [ErrNoRun] says that there is none.
func Read(ctx context.Context, j *ledger.Reader, id string) (*Reading, error) {
	run, ok, err := j.LoadRun(ctx, id)
	if err != nil {
		return nil, err
	}
	if !ok {
		return nil, fmt.Errorf("%s: %w", id, ErrNoRun)
	}
	r := &Reading{Run: run, Transcript: &agent.Transcript{}}
	for e, err := range j.Read(ctx, 0, ledger.Filter{Session: run.Session, Until: run.Last}) {
		if err != nil {
			return nil, err
		}
		if err := r.take(e); err != nil {
			return nil, err
		}
	}
	if run.Erased > 0 {
		if err := r.findErasing(ctx, j); err != nil {
			return nil, err
		}
	}
	return r, nil
}

func (r *Reading) take(e ledger.Event) error {
	if e.Run == r.Run.ID {
		if r.First == 0 {
			r.First = e.Seq
		}
		r.Last = ledger.Head{Seq: e.Seq, Hash: e.Hash}
	}
	if s := r.Run.Started; s != nil && s.Message == e.Seq {
		r.Message = e
	}
	if a := e.Actor; a.Kind == ledger.ActorUser && a.ID != "" && a.Name != "" {
		if r.Names == nil {
			r.Names = map[string]string{}
		}
		r.Names[a.ID] = a.Name
	}
	if b, ok := e.Body.(*ledger.FileSaved); ok && r.Run.Started != nil && b.Message == r.Run.Started.Message {
		if r.Files == nil {
			r.Files = map[string]*ledger.FileSaved{}
		}
		r.Files[b.File] = b
	}
	return r.Transcript.Apply(e)
}

// findErasing finds who erased the run: the first pruning after its end.
func (r *Reading) findErasing(ctx context.Context, j *ledger.Reader) error {
	for e, err := range j.Read(ctx, r.Run.Last, ledger.Filter{Kinds: []string{"pruned"}}) {
		if err != nil {
			return err
		}
		if b, ok := e.Body.(*ledger.Pruned); ok && r.Run.EndedAt.Before(b.Before) {
			r.Erasing = e
			return nil
		}
	}
	return nil
}

// erased says that a run was erased, by whom and when; "" where it wasn't.
func (r *Reading) erased(c cleaner) string {
	if r.Run.Erased == 0 {
		return ""
	}
	b, ok := r.Erasing.Body.(*ledger.Pruned)
	if !ok {
		return "What was said and done in this run is missing from the journal, and no pruning is recorded that erased it. Run: approvalbot audit verify"
	}
	s := fmt.Sprintf("What was said and done in this run was erased on %s by %s, with all that ended before %s",
		stamp(r.Erasing.Time), c.who(&r.Erasing.Actor), stamp(b.Before))
	if b.Reason != "" {
		s += ": " + c.line(b.Reason)
	}
	return s + ". When it ran and who started it is still here, and the chain of hashes holds."
}

// request is what the run was asked to do.
func (r *Reading) request() string {
	m, ok := r.Message.Body.(*ledger.MessageReceived)
	switch {
	case !ok:
		return ""
	case r.Files != nil:
		return agent.WithFiles(m.Text, m.Files, r.Files)
	case m.Text == "" && len(m.Files) > 0:
		return "(" + m.Files[0].Name + ")"
	}
	return m.Text
}

// waited is how long people took, from when the ask was opened to its end; false while it is open.
func waited(a *ledger.Approval) (time.Duration, bool) {
	return a.ResolvedAt.Sub(a.At), a.Resolved != nil
}

// A cleaner makes text fit to be shown: without secrets, everything in it visible.
type cleaner struct {
	r     *redact.Redactor
	names map[string]string // of people, by id, as the journal has them
}

func (c cleaner) text(s string) string {
	s, _ = c.r.Text(s)
	return slackui.Visible(s)
}

func (c cleaner) line(s string) string {
	s, _ = c.r.Text(s)
	return slackui.VisibleLine(s)
}

// short is the beginning of a text on one line. It is cut before it is made visible, so never inside an escape.
func (c cleaner) short(s string, most int) string {
	s, _ = c.r.Text(strings.TrimSpace(s))
	return slackui.VisibleLine(ellipsis(s, most))
}

// who names an actor, with what it is compared by.
func (c cleaner) who(a *ledger.Actor) string {
	if a == nil {
		return "nobody"
	}
	name, id := c.line(a.DisplayName()), string(a.Kind)
	if a.ID != "" && a.Kind != ledger.ActorUser {
		id += " " + c.line(a.ID)
	} else if a.ID != "" {
		id = c.line(a.ID)
	}
	if a.Kind == ledger.ActorSystem {
		return "approvalbot"
	}
	if a.Via != "" && a.Via != "slack" {
		id += " via " + c.line(a.Via)
	}
	return name + " (" + id + ")"
}

// named is a list of people, groups and words such as channel; people by their names, with their ids, where they are known.
func (c cleaner) named(a *ledger.Approval, list []string) string {
	all := make([]string, len(list))
	for i, id := range list {
		all[i] = c.line(id)
		if name := c.line(cmp.Or(c.names[id], a.Names[id])); strings.TrimSpace(name) != "" && name != all[i] {
			all[i] = name + " (" + all[i] + ")"
		}
	}
	return strings.Join(all, ", ")
}

// arguments are a call's arguments for reading; what isn't JSON is shown as it is.
func (c cleaner) arguments(s string, most int) string {
	var out bytes.Buffer
	if err := json.Indent(&out, c.r.JSON([]byte(s)), "", "  "); err != nil {
		return c.beginning(s, most)
	}
	return c.beginning(out.String(), most)
}

// beginning is at most so many characters of a text, and says how many more there are.
func (c cleaner) beginning(s string, most int) string {
	s, _ = c.r.Text(s)
	n := utf8.RuneCountInString(s)
	if n <= most {
		return slackui.Visible(s)
	}
	return slackui.Visible(string([]rune(s)[:most])) + fmt.Sprintf("… (%d more characters)", n-most)
}

// ellipsis cuts text between characters, and marks the cut.
func ellipsis(s string, most int) string {
	if utf8.RuneCountInString(s) <= most {
		return s
	}
	return string([]rune(s)[:most-1]) + "…"
}

func stamp(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05.000Z") }

// took is a duration as exactly as one cares.
func took(d time.Duration) string {
	switch {
	case d < time.Millisecond:
		return "under 1 ms"
	case d < time.Second:
		return fmt.Sprintf("%d ms", d.Milliseconds())
	case d < time.Minute:
		return strings.Replace(fmt.Sprintf("%.1f s", d.Seconds()), ".0 ", " ", 1)
	case d < time.Hour:
		return fmt.Sprintf("%d min %d s", int(d.Minutes()), int(d.Seconds())%60)
	}
	return fmt.Sprintf("%d h %d min", int(d.Hours()), int(d.Minutes())%60)
}

func count(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}
