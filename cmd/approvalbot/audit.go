package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"text/tabwriter"
	"time"

	"approvalbot/internal/agent"
	"approvalbot/internal/ledger"
	"approvalbot/internal/model"
	"approvalbot/internal/redact"
)

type auditCmd struct {
	DataDir string         `name:"data-dir" env:"APPROVALBOT_DATA_DIR" default:"data" type:"path" help:"The data directory of serve or dev (data/dev)."`
	Show    auditShowCmd   `cmd:"" help:"Print a run: its transcript, each call's state, and whether the model has seen its result. Without RUN: list the runs."`
	Verify  auditVerifyCmd `cmd:"" help:"Check that nothing in the journal was changed, and that every call and approval ended once."`
}

// open opens the journal for reading; another process may be writing it.
func (c *auditCmd) open(ctx context.Context) (*ledger.Reader, error) {
	return ledger.OpenReader(ctx, filepath.Join(c.DataDir, "journal"))
}

type auditShowCmd struct {
	Run_ string `arg:"" optional:"" name:"run" help:"The run's id, run_…"`
}

func (c auditShowCmd) Run(ctx context.Context, parent *auditCmd) error {
	j, err := parent.open(ctx)
	if err != nil {
		return err
	}
	defer j.Close()
	r := redact.New(secretsOfEnvironment()...)
	out := &redactedWriter{w: os.Stdout, r: r}
	if c.Run_ == "" {
		return errors.Join(listRuns(ctx, j, out), out.flush())
	}
	return errors.Join(showRun(ctx, j, c.Run_, out), out.flush())
}

// secretsOfEnvironment are the tokens that this process could leak because it has them.
func secretsOfEnvironment() []string {
	s := Settings{BotToken: os.Getenv("SLACK_BOT_TOKEN"), AppToken: os.Getenv("SLACK_APP_TOKEN"), APIToken: os.Getenv("APPROVALBOT_API_TOKEN")}
	return s.secrets()
}

// redactedWriter collects what is written and lets it out through the redactor: what leaves the process carries no
// secret, and one that is split over two writes is still one.
type redactedWriter struct {
	w    io.Writer
	r    *redact.Redactor
	text strings.Builder
}

func (w *redactedWriter) Write(b []byte) (int, error) { return w.text.Write(b) }

func (w *redactedWriter) flush() error {
	text, _ := w.r.Text(w.text.String())
	_, err := io.WriteString(w.w, text)
	return err
}

func listRuns(ctx context.Context, j *ledger.Reader, out io.Writer) error {
	tw := tabwriter.NewWriter(out, 0, 4, 2, ' ', 0)
	fmt.Fprintln(tw, "RUN\tSTARTED\tBY\tSTATUS\tCALLS")
	for e, err := range j.Read(ctx, 0, ledger.Filter{Kinds: []string{"run_started"}}) {
		if err != nil {
			return err
		}
		run, ok, err := j.LoadRun(ctx, e.Run)
		if err != nil || !ok {
			return errors.Join(err, fmt.Errorf("run %s can't be read", e.Run))
		}
		fmt.Fprintf(tw, "%s\t%s\t%s\t%s\t%d\n", run.ID, stamp(run.StartedAt), run.StartedBy.DisplayName(), run.Status(), len(run.Calls))
	}
	return tw.Flush()
}

// showRun answers, from the journal alone: did each call really end, how and why, and has the model seen it.
func showRun(ctx context.Context, j *ledger.Reader, id string, out io.Writer) error {
	run, ok, err := j.LoadRun(ctx, id)
	if err != nil {
		return err
	}
	if !ok {
		return fmt.Errorf("there is no run %s; approvalbot audit show lists the runs", id)
	}
	transcript := &agent.Transcript{}
	for e, err := range j.Read(ctx, 0, ledger.Filter{Session: run.Session, Until: run.Last}) {
		if err != nil {
			return err
		}
		if err := transcript.Apply(e); err != nil {
			return err
		}
	}
	showHead(out, run)
	showTranscript(out, transcript.Request())
	showCalls(out, run, transcript)
	return nil
}

func showHead(out io.Writer, run *ledger.Run) {
	fmt.Fprintf(out, "run      %s\nsession  %s\nstarted  %s by %s\nmodel    %s\nstatus   %s\n",
		run.ID, run.Session, stamp(run.StartedAt), run.StartedBy.DisplayName(), run.Started.Model, run.Status())
	if f := run.Finished; f != nil {
		fmt.Fprintf(out, "ended    %s after %d rounds", stamp(run.EndedAt), f.Rounds)
		if f.Code != "" {
			fmt.Fprintf(out, " (%s: %s)", f.Code, f.Reason)
		}
		fmt.Fprintln(out)
	}
}

func showTranscript(out io.Writer, req model.Request) {
	fmt.Fprintln(out, "\nTRANSCRIPT (what the model is given)")
	for _, m := range req.Messages {
		if m.Text != "" {
			fmt.Fprintf(out, "  [%s] %s\n", m.Role, indent(m.Text))
		}
		for _, c := range m.ToolCalls {
			fmt.Fprintf(out, "  [%s] calls %s %s %s\n", m.Role, c.ID, c.Name, indent(c.Arguments))
		}
		for _, r := range m.Results {
			fmt.Fprintf(out, "  [%s] %s: %s\n", m.Role, r.ToolCallID, indent(r.Text))
		}
	}
}

func showCalls(out io.Writer, run *ledger.Run, transcript *agent.Transcript) {
	fmt.Fprintln(out, "\nTOOL CALLS")
	if len(run.Calls) == 0 {
		fmt.Fprintln(out, "  none")
	}
	for _, c := range run.Calls {
		seen := "the model has not seen its result"
		if transcript.Seen(run.ID, c.ID) {
			seen = "the model has seen its result"
		}
		fmt.Fprintf(out, "  %s  %s  %s  (%s)\n", c.ID, c.Name, stateWords(c), seen)
		if c.Decision != nil {
			fmt.Fprintf(out, "      decision    %s (%s): %s\n", c.Decision.Type, c.Decision.Source, c.Decision.Reason)
		}
		if c.Approval != nil {
			showApproval(out, c.Approval)
		}
		if f := c.Finished; f != nil {
			fmt.Fprintf(out, "      ended       %s %s\n", stamp(c.FinishedAt), indent(f.Reason))
		}
	}
}

func stateWords(c *ledger.Call) string {
	f := c.Finished
	switch {
	case f == nil:
		return string(c.State) + ", not ended"
	case f.State == ledger.OutputDenied:
		return fmt.Sprintf("%s (%s)", f.State, f.Source)
	case f.Code != "":
		return fmt.Sprintf("%s (%s)", f.State, f.Code)
	}
	return string(f.State)
}

func showApproval(out io.Writer, a *ledger.Approval) {
	fmt.Fprintf(out, "      asked       %s  approval %s  sha256 %.8s…\n", stamp(a.At), a.ApprovalRequested.Approval, a.Digest)
	for _, s := range a.Shown {
		fmt.Fprintf(out, "      shown       %s %s %s until %s\n", s.Surface, s.Channel, s.TS, stamp(s.Until))
	}
	for _, v := range a.Votes {
		fmt.Fprintf(out, "      vote        %s %s by %s\n", stamp(v.At), v.Type, who(&v.By))
	}
	if r := a.Resolved; r != nil {
		fmt.Fprintf(out, "      resolution  %s %s (%s) by %s %s\n", stamp(a.ResolvedAt), r.Type, r.Source, who(r.By), indent(r.Reason))
	}
}

func who(a *ledger.Actor) string {
	if a == nil {
		return "nobody"
	}
	return fmt.Sprintf("%s (%s %s)", a.DisplayName(), a.Kind, a.ID)
}

func stamp(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05.000Z") }

func indent(s string) string { return strings.ReplaceAll(s, "\n", "\n      ") }

type auditVerifyCmd struct {
	Head string `placeholder:"SEQ:HASH" help:"A head that is known from elsewhere: shows also a cut tail or a rewritten chain."`
}

func (c auditVerifyCmd) Run(ctx context.Context, parent *auditCmd) error {
	requests := &agent.Recheck{}
	o := ledger.VerifyOptions{Check: requests.Event}
	if c.Head != "" {
		head, err := ledger.ParseHead(c.Head)
		if err != nil {
			return fmt.Errorf("--head %s: %w", c.Head, err)
		}
		o.Head = &head
	}
	j, err := parent.open(ctx)
	if err != nil {
		return err
	}
	defer j.Close()
	report, err := j.Verify(ctx, o)
	if err != nil {
		return err
	}
	if !report.OK() {
		return fmt.Errorf("the journal doesn't verify: after %d rows that fit: %w", report.Rows, report.Problem)
	}
	fmt.Printf("ok: %d events, %d runs not ended, %d bodies erased\nhead: %s\n", report.Rows, report.OpenRuns, report.Erased, report.Head)
	return nil
}
