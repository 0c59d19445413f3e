package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	"approvalbot/internal/ledger"
	"approvalbot/internal/slackui"
)

type doctorCmd struct {
	SendTest string `name:"send-test" placeholder:"CHANNEL" help:"Also post a test card into this channel (C…)."`
}

// Help says what it looks at.
func (doctorCmd) Help() string {
	return "Reads the same settings as serve, tries each thing that serve needs, and says of each what is wrong and what to do. It starts no run."
}

// Run goes on after a failure: the point is to name everything at once.
func (c doctorCmd) Run(ctx context.Context) error {
	s, err := serveSettings()
	d := &diagnosis{out: os.Stdout}
	for _, name := range unknownNames(os.Environ()) {
		d.check("settings", "", errors.New(name))
	}
	for _, wrong := range each(err) {
		d.check("settings", "", wrong)
	}
	if d.failed == 0 {
		d.check("settings", "complete", nil)
	}
	if text := exposedFile(envFile); text != "" {
		d.note("settings", text)
	}
	d.slack(ctx, s, c.SendTest)
	d.machine(ctx, s)
	if d.failed > 0 {
		return fmt.Errorf("%d of %d checks failed", d.failed, d.done)
	}
	return nil
}

type diagnosis struct {
	out          io.Writer
	done, failed int
	named        []string        // what is wrong, as it was said
	faulty       map[string]bool // what something is wrong with, by the name of its lines
}

// check prints one line: what was looked at, and how it is or what to do. What keeps several things from working is said
// once.
func (d *diagnosis) check(what, fine string, err error) bool {
	if err != nil && slices.Contains(d.named, err.Error()) {
		return false
	}
	d.done++
	if err != nil {
		d.failed++
		if d.faulty == nil {
			d.faulty = map[string]bool{}
		}
		d.faulty[what] = true
		d.named = append(d.named, err.Error())
		fmt.Fprintf(d.out, "✗ %-9s %s\n", what, err)
		return false
	}
	if d.faulty[what] { // what else holds of it makes it no better
		d.tell(what, fine)
		return true
	}
	fmt.Fprintf(d.out, "✓ %-9s %s\n", what, fine)
	return true
}

// note prints what isn't wrong and still wants to be looked at.
func (d *diagnosis) note(what, text string) { fmt.Fprintf(d.out, "! %-9s %s\n", what, text) }

// tell prints what is neither right nor wrong.
func (d *diagnosis) tell(what, text string) { fmt.Fprintf(d.out, "· %-9s %s\n", what, text) }

// machine checks what stands on this machine. What can't be read from the settings was named before.
func (d *diagnosis) machine(ctx context.Context, s Settings) {
	d.model(ctx, s)
	if s.DataDir == "" {
		return // the settings couldn't be read at all
	}
	_, err := s.complete()
	if d.check("workspace", s.Workspace, err) {
		b, err := s.openTools(nil)
		if d.check("tools", "ready", err) {
			d.shell(s, b)
			b.Close()
		}
	}
	d.rules(s)
	d.actions(s)
	d.mcp(ctx, s)
	d.profiles(s)
	d.journal(ctx, s)
}

// journal tries a write where nobody else holds the journal; where another process does, it asks that one how it fares.
func (d *diagnosis) journal(ctx context.Context, s Settings) {
	j, err := ledger.Open(ctx, s.journalDir(), ledger.Options{})
	var inUse *ledger.InUseError
	if errors.As(err, &inUse) {
		state, asked := reach(ctx, s.DataDir, "status", controlOrder{})
		if asked != nil || state.Checks["journal"] == "" {
			d.tell("journal", err.Error()+"; its /readyz says whether it can be written")
			return
		}
		if said := state.Checks["journal"]; said != "ok" {
			d.check("journal", "", fmt.Errorf("%s is in use by the bot that is running, and that says of it: %s", s.journalDir(), slackui.VisibleLine(said)))
			return
		}
		d.check("journal", s.journalDir()+" is in use by the bot that is running, and well", nil)
		return
	}
	if err != nil {
		d.check("journal", "", err)
		return
	}
	err = errors.Join(j.Probe(ctx), j.Close())
	d.check("journal", s.journalDir()+" can be written", err)
}

func (d *diagnosis) slack(ctx context.Context, s Settings, sendTest string) {
	if len(s.requireTokens()) > 0 {
		d.tell("slack", "not asked: that needs both tokens")
		return
	}
	client, err := slackui.Connect(ctx, slackui.ClientConfig{BotToken: s.BotToken, AppToken: s.AppToken, APIURL: s.APIURL})
	if !d.check("bot token", "accepted, in the workspace "+workspaceName(client), err) {
		return
	}
	d.check("scopes", "all there", client.CheckScopes())
	d.check("app token", "accepted, Socket Mode is on", client.CheckAppToken(ctx))
	d.people(ctx, s, client)
	d.places(ctx, s, client)
	if sendTest != "" {
		d.testCard(ctx, s, client, sendTest)
	}
}

func workspaceName(c *slackui.Client) string {
	if c == nil {
		return ""
	}
	return c.TeamName
}
