package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"golang.org/x/term"

	"approvalbot/internal/audit"
	"approvalbot/internal/ledger"
	"approvalbot/internal/redact"
)

type auditCmd struct {
	DataDir string         `name:"data-dir" env:"APPROVALBOT_DATA_DIR" default:"data" type:"path" help:"The data directory of serve or dev (data/dev)."`
	Show    auditShowCmd   `cmd:"" help:"Print a run: its transcript, each call's state, and whether the model has seen its result. Without RUN: list the runs."`
	Verify  auditVerifyCmd `cmd:"" help:"Check that nothing in the journal was changed, and that every call and approval ended once."`
	Export  auditExportCmd `cmd:"" help:"Write events as JSON Lines, one a line, without secrets."`
	Report  auditReportCmd `cmd:"" help:"Write one run as a page of HTML that needs nothing else."`
}

// open opens the journal for reading; another process may be writing it.
func (c *auditCmd) open(ctx context.Context) (*ledger.Reader, error) {
	j, err := ledger.OpenReader(ctx, filepath.Join(c.DataDir, "journal"))
	if errors.Is(err, ledger.ErrNoJournal) {
		err = fmt.Errorf("%w; %s", err, elsewhere(c.DataDir))
	}
	return j, err
}

// elsewhere says where a journal could be that isn't in the data directory: dev has one of its own below that of serve.
func elsewhere(dir string) string {
	for _, other := range []string{filepath.Join(dir, "dev"), filepath.Dir(filepath.Clean(dir))} {
		if entries, err := os.ReadDir(filepath.Join(other, "journal")); err == nil && len(entries) > 0 {
			return "there is one in " + other + ": --data-dir " + other
		}
	}
	return "--data-dir says where the bot keeps its data (dev: data/dev)"
}

// secretsOfEnvironment are the tokens that this process could leak because it has them.
func secretsOfEnvironment() []string {
	s := Settings{BotToken: os.Getenv("SLACK_BOT_TOKEN"), AppToken: os.Getenv("SLACK_APP_TOKEN"), APIToken: os.Getenv("APPROVALBOT_API_TOKEN"),
		ActionsFile: os.Getenv("APPROVALBOT_ACTIONS_FILE")}
	return s.secrets()
}

type auditShowCmd struct {
	Run_ string `arg:"" optional:"" name:"run" help:"The run's id, run_…"`
}

func (c auditShowCmd) Run(ctx context.Context, parent *auditCmd) (err error) {
	j, err := parent.open(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, j.Close()) }()
	return show(ctx, j, c.Run_, os.Stdout, styleOf(os.Stdout))
}

// show prints a run, or the list of runs.
func show(ctx context.Context, j *ledger.Reader, run string, w io.Writer, s audit.Style) error {
	r := redact.New(secretsOfEnvironment()...)
	if run == "" {
		return audit.List(ctx, j, w, r, s)
	}
	reading, err := audit.Read(ctx, j, run)
	if err != nil {
		return err
	}
	return audit.Show(w, reading, r, s)
}

type auditVerifyCmd struct {
	Head string `placeholder:"SEQ:HASH" help:"A head that is known from elsewhere: shows also a cut tail or a rewritten chain."`
}

func (c auditVerifyCmd) Run(ctx context.Context, parent *auditCmd) (err error) {
	var o ledger.VerifyOptions
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
	defer func() { err = errors.Join(err, j.Close()) }()
	bar := newProgress("verifying", false)
	o.Progress = bar.rows
	err = verify(ctx, j, o, os.Stdout)
	bar.done()
	return err
}

// verify checks everything that can be checked, and says what was.
func verify(ctx context.Context, j *ledger.Reader, o ledger.VerifyOptions, w io.Writer) error {
	checks := audit.NewChecks(ctx, j)
	o.Check = checks.Event
	report, err := j.Verify(ctx, o)
	if err != nil {
		return err
	}
	if !report.OK() {
		return &audit.BrokenError{Report: report}
	}
	fmt.Fprintf(w, "ok: %s, %s not ended, %s erased\n", counted(report.Rows, "event"), counted(report.OpenRuns, "run"), bodies(report.Erased))
	fmt.Fprintf(w, "computed again: %s to models, %s in Slack\n", counted(checks.Requests.Requests, "request"), counted(checks.Renderings.Renderings, "message"))
	if n := checks.Requests.Erased; n > 0 {
		fmt.Fprintf(w, "can't be computed again: %s built on what has been erased since\n", counted(n, "request"))
	}
	if n := checks.Renderings.Other; n > 0 {
		fmt.Fprintf(w, "can't be computed again: %s that another version wrote or that had secrets of the time in them\n", counted(n, "message"))
	}
	_, err = fmt.Fprintf(w, "head: %s\n", report.Head)
	return err
}

type auditExportCmd struct {
	From     moment `help:"Not before: 2026-03-04, 2026-03-04T09:30:00Z, or how long ago: 90m, 12h, 30d. UTC."`
	To       moment `help:"Before; as --from."`
	Actor    string `help:"Who caused it: a Slack user id, a name, or user, token, model, system, operator."`
	Tool     string `help:"Only events of calls of this tool."`
	Outcome  string `help:"Only events of calls that ended so: available, denied, error; user, timeout, abort, policy, …; or an error's code."`
	Run_     string `name:"run" help:"Only events of this run."`
	Session  string `help:"Only events of this session."`
	NoRedact bool   `name:"no-redact" help:"Write what stands in the journal, secrets included."`
	Output   string `name:"output" short:"o" type:"path" help:"Write to this file, whole or not at all; it gets mode 0600."`
}

// Help says what a line is.
func (auditExportCmd) Help() string {
	return "The whole journal is verified on the way. If something in it was changed, the export ends there, with status 2, and no file is written. docs/operations.md explains the fields."
}

func (c auditExportCmd) Run(ctx context.Context, parent *auditCmd) (err error) {
	j, err := parent.open(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, j.Close()) }()
	bar := newProgress("exporting", c.Output == "")
	o := audit.ExportOptions{Progress: bar.rows, Filter: audit.Filter{
		From: c.From.Time, To: c.To.Time, Actor: c.Actor, Tool: c.Tool, Outcome: c.Outcome, Run: c.Run_, Session: c.Session,
	}}
	if !c.NoRedact {
		o.Redactor = redact.New(secretsOfEnvironment()...)
	}
	var done audit.Exported
	err = writeTo(c.Output, func(w io.Writer) (err error) {
		done, err = audit.Export(ctx, j, w, o)
		return err
	})
	bar.done()
	if err == nil && c.Output != "" {
		fmt.Fprintf(os.Stderr, "%s of %d in %s, head %s\n", counted(done.Events, "event"), done.Report.Rows, c.Output, done.Report.Head)
	}
	return err
}

type auditReportCmd struct {
	Run_   string `arg:"" name:"run" help:"The run's id, run_…"`
	Output string `name:"output" short:"o" type:"path" help:"The file to write; it gets mode 0600. Without it: stdout, if that is no terminal."`
}

func (c auditReportCmd) Run(ctx context.Context, parent *auditCmd) (err error) {
	if c.Output == "" && term.IsTerminal(int(os.Stdout.Fd())) {
		return fmt.Errorf("a report is a page of HTML, which nobody reads on a terminal: approvalbot audit report %s -o report.html (audit show %[1]s prints the same as text)", c.Run_)
	}
	j, err := parent.open(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, j.Close()) }()
	reading, err := audit.Read(ctx, j, c.Run_)
	if err != nil {
		return err
	}
	return writeTo(c.Output, func(w io.Writer) error {
		return audit.Report(w, reading, redact.New(secretsOfEnvironment()...))
	})
}
