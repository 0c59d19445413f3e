// Approvalbot lets a team's agent act, and asks the team in Slack before it does.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"

	"github.com/alecthomas/kong"

	"approvalbot/internal/slackui"
)

type cli struct {
	Dev      devCmd      `cmd:"" group:"run" help:"Try it: a local Slack in the browser and the bot, without an account or a key."`
	Serve    serveCmd    `cmd:"" group:"run" help:"Work in a real Slack workspace."`
	Devslack devslackCmd `cmd:"" group:"run" name:"devslack" help:"Only the local Slack, for other bots and tests."`

	Manifest manifestCmd `cmd:"" group:"setup" help:"Print the Slack app manifest; with --url a link that makes the app."`
	Doctor   doctorCmd   `cmd:"" group:"setup" help:"Check tokens, scopes, model, tools and journal, and say what to do."`
	Policy   policyCmd   `cmd:"" group:"setup" help:"Check, try and explain a policy file."`
	Actions  actionsCmd  `cmd:"" group:"setup" help:"Check a file of named actions, and see their cards."`

	Profiles profilesCmd `cmd:"" group:"setup" help:"Check a file of profiles, and see which one holds in a channel."`

	Ask     askCmd     `cmd:"" group:"script" help:"Ask for permission from a script or CI job; exits 0 only when it was approved."`
	Outcome outcomeCmd `cmd:"" group:"script" help:"Report how an approved action went."`

	Pause  pauseCmd  `cmd:"" group:"brake" help:"Stop everything new: no run starts, nothing can be approved. Works without Slack."`
	Resume resumeCmd `cmd:"" group:"brake" help:"End the pause."`
	Status statusCmd `cmd:"" group:"brake" help:"Say whether the bot runs, is paused, and how it is."`

	Audit  auditCmd  `cmd:"" group:"journal" help:"Read the journal: what was asked, decided and done."`
	Grants grantsCmd `cmd:"" group:"journal" help:"List what people have allowed in advance, and what became of it."`
	Backup backupCmd `cmd:"" group:"journal" help:"Copy the journal to a file, also while the bot runs."`
	Prune  pruneCmd  `cmd:"" group:"journal" help:"Erase what was said and done in old runs; the chain of hashes stays."`

	Version versionCmd `cmd:"" hidden:"" help:"Print the version."`

	VersionFlag kong.VersionFlag `name:"version" help:"Print the version."`
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // a second signal ends the process the hard way
	err := run(ctx, os.Args[1:])
	if code := (*exitError)(nil); errors.As(err, &code) {
		fmt.Fprintln(os.Stderr, "approvalbot:", code.message)
		os.Exit(code.code)
	}
	if err != nil && !errors.Is(err, context.Canceled) {
		fmt.Fprintln(os.Stderr, "approvalbot:", err)
		os.Exit(exitCode(err))
	}
}

// exitCode is the status of a command that ended with err: the error's own, or 1.
func exitCode(err error) int {
	type coded interface {
		error
		ExitCode() int
	}
	if e, ok := errors.AsType[coded](err); ok {
		return e.ExitCode()
	}
	return 1
}

// run executes one command line.
func run(ctx context.Context, args []string) error {
	var c cli
	parser, err := kong.New(&c,
		kong.Name("approvalbot"),
		kong.Description("Your agent asks in Slack before it acts. No answer means no."),
		kong.UsageOnError(),
		kong.Vars{"version": "approvalbot " + version()},
		kong.ExplicitGroups([]kong.Group{
			{Key: "run", Title: "Run it:"},
			{Key: "setup", Title: "Set it up:"},
			{Key: "script", Title: "From scripts:"},
			{Key: "brake", Title: "Hold it:"},
			{Key: "journal", Title: "What happened:"},
		}),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true}),
		kong.BindTo(ctx, (*context.Context)(nil)),
	)
	if err != nil {
		return err
	}
	if len(args) == 0 {
		args = []string{"--help"}
	}
	if judges(args[0]) {
		if err := loadEnv(envFile); err != nil {
			return err
		}
	}
	k, err := parser.Parse(args)
	if err != nil {
		err = fmt.Errorf("%w (approvalbot --help says what there is)", err)
		if args[0] == "ask" { // 1 would say that it was denied
			return &exitError{exitNotAsked, err.Error()}
		}
		return err
	}
	return k.Run()
}

// judges tells which commands say what the bot would do, so that they need the settings that it has.
func judges(command string) bool {
	return command == "policy" || command == "actions" || command == "profiles"
}

// An exitError ends the process with a code of its own. It wraps nothing: what it was made of must not be taken for
// something milder.
type exitError struct {
	code    int
	message string
}

func (e *exitError) Error() string { return e.message }

type versionCmd struct{}

func (versionCmd) Run() error {
	fmt.Println("approvalbot", version())
	return nil
}

// version is set by the build: -ldflags "-X main.release=v1.2.3".
var release string

func version() string {
	if release != "" {
		return release
	}
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return info.Main.Version
	}
	return "(devel)"
}

type manifestCmd struct {
	URL bool `name:"url" help:"Print a link that opens Slack's create-an-app page with this manifest filled in."`
}

func (c manifestCmd) Run() error {
	if c.URL {
		fmt.Println(slackui.ManifestURL())
		return nil
	}
	_, err := os.Stdout.Write(slackui.Manifest())
	return err
}
