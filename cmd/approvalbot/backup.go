package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/user"
	"path/filepath"

	"approvalbot/internal/ledger"
)

type backupCmd struct {
	DataDir string `name:"data-dir" env:"APPROVALBOT_DATA_DIR" default:"data" type:"path" help:"The data directory of serve or dev (data/dev)."`
	File    string `arg:"" type:"path" help:"The file to write. It must not exist yet; it gets mode 0600."`
}

// Help says how to put it back.
func (backupCmd) Help() string {
	return "Works while the bot runs. The copy is verified. To put it back: stop the bot, move DIR/journal away, and put the file there as DIR/journal/journal.db."
}

func (c backupCmd) Run(ctx context.Context) (err error) {
	j, err := ledger.OpenReader(ctx, filepath.Join(c.DataDir, "journal"))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, j.Close()) }()
	bar := newProgress("verifying the copy", false)
	report, err := j.Backup(ctx, c.File, ledger.VerifyOptions{Progress: bar.rows})
	bar.done()
	if err != nil {
		return err
	}
	fmt.Printf("ok: %s in %s\nhead: %s\n", counted(report.Rows, "event"), c.File, report.Head)
	return nil
}

type pruneCmd struct {
	DataDir string `name:"data-dir" env:"APPROVALBOT_DATA_DIR" default:"data" type:"path" help:"The data directory of serve or dev (data/dev)."`
	Before  moment `required:"" help:"Runs that ended before: 2026-03-04, 2026-03-04T09:30:00Z, or how long ago: 90d. UTC."`
	Reason  string `help:"Why; it is recorded."`
	DryRun  bool   `name:"dry-run" help:"Only say what would be erased."`
}

// Help says what goes and what stays.
func (pruneCmd) Help() string {
	return `Erases what was said and done in runs that ended before the given time: messages, answers, arguments, outputs. That it
was, of which kind, when and by whom stays; the chain of hashes holds, and nothing becomes repeatable. The erasing is
recorded, with the name of whoever runs this. The bot must be stopped. Backups still have what is erased here.`
}

func (c pruneCmd) Run(ctx context.Context) error {
	dir := filepath.Join(c.DataDir, "journal")
	bar := newProgress("verifying", false)
	o := ledger.PruneOptions{Before: c.Before.Time, By: operator(), Reason: c.Reason, DryRun: c.DryRun}
	o.Verify.Progress = bar.rows
	p, err := ledger.Prune(ctx, dir, o)
	bar.done()
	if damaged, ok := errors.AsType[*ledger.DamagedError](err); ok {
		return fmt.Errorf("nothing was erased, because it would destroy what can tell how: %w", damaged)
	}
	if p.Event.Body != nil || err == nil {
		c.say(p)
	}
	return err
}

func (c pruneCmd) say(p ledger.Pruning) {
	verb := "erased"
	if c.DryRun {
		verb = "would be erased"
	}
	fmt.Printf("%s: %s (%s) of %s that ended before %s\n", verb, bodies(p.Bodies), counted(p.Bytes, "byte"), counted(p.Runs, "run"), c.Before.Format("2006-01-02 15:04:05Z"))
	if p.Unsettled > 0 {
		fmt.Printf("kept: %s of which Slack hasn't been told the end yet; start the bot once, then prune again\n", counted(p.Unsettled, "old run"))
	}
	if p.Event.Body != nil {
		fmt.Printf("recorded as row %d\nhead: %s\n", p.Event.Seq, ledger.Head{Seq: p.Event.Seq, Hash: p.Event.Hash})
	}
}

// bodies are so many bodies of events.
func bodies(n int64) string {
	if n == 1 {
		return "1 body"
	}
	return fmt.Sprintf("%d bodies", n)
}

// operator is who runs this command, as far as the operating system knows.
func operator() ledger.Actor {
	a := ledger.Actor{Kind: ledger.ActorOperator, ID: fmt.Sprint(os.Getuid()), Via: "command line"}
	if u, err := user.Current(); err == nil {
		a.ID, a.Name = u.Username, u.Name
	}
	if sudo := os.Getenv("SUDO_USER"); sudo != "" {
		a.Name = sudo + " as " + a.ID
	}
	return a
}
