package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"approvalbot/internal/agent"
	"approvalbot/internal/approvals"
	"approvalbot/internal/ledger"
	"approvalbot/internal/redact"
	"approvalbot/internal/slackui"
)

type grantsCmd struct {
	DataDir string `name:"data-dir" env:"APPROVALBOT_DATA_DIR" default:"data" type:"path" help:"The data directory of serve or dev (data/dev)."`
	All     bool   `help:"Also those that ended in the last month."`
}

// Help says how one is given and ended.
func (grantsCmd) Help() string {
	return "Works while the bot runs, and changes nothing. Grants are given and revoked in Slack; over HTTP: POST /api/agent/grants/ID/revoke."
}

func (c grantsCmd) Run(ctx context.Context) (err error) {
	j, err := (&auditCmd{DataDir: c.DataDir}).open(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, j.Close()) }()
	return listGrants(ctx, j, c.All, redact.New(secretsOfEnvironment()...), os.Stdout, time.Now())
}

// listGrants writes the grants of a journal, the newest first. Which policy and which tools are in force, only the bot
// knows that is running: what they have ended since it started is listed as in force here.
func listGrants(ctx context.Context, j *ledger.Reader, all bool, r *redact.Redactor, w io.Writer, now time.Time) error {
	list, err := approvals.ReadGrants(ctx, j, now)
	if err != nil {
		return err
	}
	line := func(s string) string {
		s, _ = r.Text(s)
		return slackui.VisibleLine(s)
	}
	n, ended := 0, 0
	for _, g := range list {
		if g.Ended != "" && !all {
			ended++
			continue
		}
		n++
		state := fmt.Sprintf("until %s, used %d of %d", g.Body.Until.UTC().Format("2006-01-02 15:04 UTC"), g.Used, g.Body.Uses)
		if g.Ended != "" {
			state = fmt.Sprintf("ended: %s; used %d of %d", line(g.Ended), g.Used, g.Body.Uses)
		}
		_, err := fmt.Fprintf(w, "%s  %s  by %s, %s\n    %s\n    %s\n", line(g.ID), line(string(g.Body.Scope)), line(g.By.DisplayName()),
			g.At.UTC().Format("2006-01-02 15:04 UTC"), line(g.Body.Summary), state)
		if err != nil {
			return err
		}
	}
	switch {
	case n > 0:
	case ended > 0:
		_, err = fmt.Fprintf(w, "nothing is in force (%d ended in the last month: --all)\n", ended)
	case all:
		_, err = fmt.Fprintln(w, "nothing is in force, and nothing ended in the last month")
	default:
		_, err = fmt.Fprintln(w, "nothing is in force")
	}
	return err
}

// inForce is what grants have to fit at every moment besides their calls.
func (a *app) inForce(cfg agent.Config) approvals.InForce {
	return approvals.InForce{
		PolicyHash: func() string { return cfg.Policy.Current().Hash() },
		ToolHash:   func(tool string) (string, bool) { return cfg.Tools.Set().Hash(tool) },
	}
}
