package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"

	"golang.org/x/sync/errgroup"

	"approvalbot/internal/devslack"
	"approvalbot/internal/redact"
	"approvalbot/internal/slackui"
	"approvalbot/internal/tools"
	"approvalbot/internal/tools/confine"
)

type devCmd struct {
	SlackAddr string `name:"slack-addr" default:"127.0.0.1:3103" help:"Where the local Slack listens; port 0 takes any."`
	APIAddr   string `name:"api-addr" default:"127.0.0.1:3102" help:"Where the HTTP API listens; port 0 takes any."`
	DataDir   string `name:"data-dir" default:"data/dev" type:"path" help:"Where journal, local Slack and workspace are kept."`
	Model     string `default:"demo" help:"anthropic/NAME or openai/NAME with the provider's key in the environment, demo, or script:FILE (turns from a JSON file)."`
}

// Help explains what else can be set.
func (devCmd) Help() string {
	return `Open the page that it prints and write to the bot. Everything stays on this machine. What you approve is confined to the
workspace directory where the system can do that (Linux 6.12 and later); elsewhere it runs with your own rights, and the
card says so. The ids that rules and settings name (people, channels, the user group @oncall of bob and carol) are on the
page, behind a channel's number of members.

Neither .env nor SLACK_* is read. These settings of the environment count:

` + settingsHelp(devSetting)
}

// devSetting tells which settings dev takes from the environment.
func devSetting(name string) bool {
	switch name {
	case
		"APPROVALBOT_APPROVERS",
		"APPROVALBOT_REQUESTERS",
		"APPROVALBOT_CHANNELS",
		"APPROVALBOT_QUORUM",
		"APPROVALBOT_APPROVAL_TIMEOUT",
		"APPROVALBOT_APPROVAL_POLICY",
		"APPROVALBOT_SANDBOX",
		"APPROVALBOT_POLICY_FILE",
		"APPROVALBOT_ACTIONS_FILE",
		"APPROVALBOT_MCP_CONFIG",
		"APPROVALBOT_SHELL",
		"APPROVALBOT_SHELL_READ",
		"APPROVALBOT_SHELL_WRITE",
		"APPROVALBOT_SHELL_READONLY",
		"APPROVALBOT_HTTP",
		"APPROVALBOT_HTTP_ALLOW",
		"APPROVALBOT_INSTRUCTIONS",
		"APPROVALBOT_MAX_ROUNDS",
		"APPROVALBOT_MAX_ASKS",
		"APPROVALBOT_DRAIN_TIMEOUT",
		"APPROVALBOT_LOG_LEVEL",
		"APPROVALBOT_API_TOKENS_FILE",
		"ANTHROPIC_API_KEY",
		"ANTHROPIC_BASE_URL",
		"OPENAI_API_KEY",
		"OPENAI_BASE_URL",
		"APPROVALBOT_MAX_OUTPUT_TOKENS",
		"APPROVALBOT_CONTEXT_TOKENS",
		"APPROVALBOT_MODEL_PRICE",
		"APPROVALBOT_TRUSTED_BOTS",
		"APPROVALBOT_OPERATORS",
		"APPROVALBOT_LANGUAGE",
		"APPROVALBOT_NOTIFY",
		"APPROVALBOT_REMIND",
		"APPROVALBOT_MORE_TIME",
		"APPROVALBOT_APPROVALS_CHANNEL",
		"APPROVALBOT_APPROVALS_ONLY_THERE",
		"APPROVALBOT_APPROVAL_SETS",
		"APPROVALBOT_GRANTORS",
		"APPROVALBOT_GRANTS",
		"APPROVALBOT_PROFILES":
		return true
	}
	return false
}

// elsewhereInDev are the settings of ours that dev doesn't read, and what does their work there. SLACK_* isn't among them:
// whoever has a real workspace has those, and dev is for something else.
var elsewhereInDev = map[string]string{
	"APPROVALBOT_MODEL":         "use --model",
	"APPROVALBOT_DATA_DIR":      "use --data-dir",
	"APPROVALBOT_WORKSPACE":     "the workspace is in the directory of --data-dir",
	"APPROVALBOT_API_ADDR":      "use --api-addr",
	"APPROVALBOT_API_TOKEN":     "each start prints a token of its own; APPROVALBOT_API_TOKENS_FILE counts",
	"APPROVALBOT_SHELL_NETWORK": "commands have no network there, because the local Slack has no passwords",
}

// withoutEffectInDev says which settings somebody made in vain.
func withoutEffectInDev(environ []string) (out []string) {
	for _, name := range slices.Sorted(maps.Keys(elsewhereInDev)) {
		if isSet(environ, name) {
			out = append(out, name+" has no effect in dev: "+elsewhereInDev[name])
		}
	}
	return out
}

// Run prints the lines slack, api, token and ready on stdout, and nothing else there; what to do next is on stderr.
func (c devCmd) Run(ctx context.Context) error {
	if err := confine.Harden(); err != nil {
		return err
	}
	s, err := c.settings()
	if err != nil {
		return err
	}
	slackLn, err := loopbackListener("--slack-addr", c.SlackAddr)
	if err != nil {
		return err
	}
	defer slackLn.Close()
	apiLn, err := loopbackListener("--api-addr", c.APIAddr)
	if err != nil {
		return err
	}
	defer apiLn.Close()
	local, err := devslack.New(devslack.Options{Dir: filepath.Join(s.DataDir, "devslack"), Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return err
	}
	local.InstallApp(manifestApp())
	s.fromWorkspace(local.Workspace(), "http://"+slackLn.Addr().String()+"/api/")
	if len(s.Operators) == 0 { // so that a pause can be tried
		s.Operators = members(local.Workspace())
	}
	r := redact.New(s.secrets()...)
	log := newLogger(s.LogLevel, r, os.Stderr, false)

	var g errgroup.Group
	g.Go(func() error {
		if err := local.Serve(slackLn); !errors.Is(err, http.ErrServerClosed) {
			return err
		}
		return nil
	})
	w := wiring{log: log, redactor: r, own: []net.Addr{slackLn.Addr(), apiLn.Addr()}, control: listenControl}
	if s.PolicyFile != "" { // else closing the terminal would leave it running, for nothing
		w.hangups = hangups()
	}
	err = c.bot(ctx, s, w, slackLn, apiLn)
	return errors.Join(err, local.Close(), g.Wait())
}

func (c devCmd) bot(ctx context.Context, s Settings, w wiring, slackLn, apiLn net.Listener) error {
	a, err := newApp(ctx, s, w)
	if err != nil {
		return err
	}
	warn(w.log, slices.Concat(withoutEffectInDev(os.Environ()), unknownNames(os.Environ())))
	w.log.Info("approvalbot dev", "model", a.modelName, "model_from", "--model", "workspace", a.builtin.Dir(), "approvers", s.Approvers)
	if text := s.unusedKeys(); text != "" {
		w.log.Info(text)
	}
	a.sayShell()
	fmt.Printf("slack: http://%s/\napi: http://%s\ntoken: %s\n", slackLn.Addr(), apiLn.Addr(), s.APIToken)
	announced := make(chan struct{})
	ctx, cancel := context.WithCancel(ctx)
	go func() {
		defer close(announced)
		select {
		case <-a.slack.Connected():
			fmt.Println("ready")
			fmt.Fprintf(os.Stderr, "Now open http://%s/ and send: @%s read README.md\n", slackLn.Addr(), a.people.client.BotName)
		case <-ctx.Done():
		}
	}()
	err = a.run(ctx, apiLn)
	cancel()
	<-announced
	return err
}

// settings are those of dev: the environment's, but for what belongs to a real workspace.
func (c devCmd) settings() (Settings, error) {
	s, err := readSettings()
	if err != nil {
		return s, err
	}
	s.Model, s.DataDir, s.Workspace = c.Model, c.DataDir, ""
	s.APIAddr, s.APIToken = c.APIAddr, "local-"+randomHex(16)
	if len(s.Approvers) == 0 {
		s.Approvers = []string{"requester", "channel"}
	}
	if len(s.Grantors) == 0 {
		s.Grantors = []string{"requester", "channel"}
	}
	s.shellFallback = tools.ShellUnconfined
	s.ShellNetwork = false // it would lead to the local Slack, where anyone can click as anyone
	return s, welcome(filepath.Join(c.DataDir, "workspace"))
}

// manifestApp is our app as its manifest would install it in a workspace: what works in dev works there, and what the
// manifest doesn't ask for fails in dev already.
func manifestApp() devslack.App {
	app, err := devslack.ReadManifest(slackui.Manifest())
	if err != nil {
		panic(err) // the manifest is compiled in, and a test reads it
	}
	return app
}

// fromWorkspace takes tokens and channels from the local Slack.
func (s *Settings) fromWorkspace(w devslack.Workspace, apiURL string) {
	s.BotToken, s.AppToken, s.APIURL = w.App.BotToken, w.App.AppToken, apiURL
	s.openChannels = s.Channels
	if len(s.Channels) == 0 && len(w.Channels) > 0 {
		s.openChannels = []string{w.Channels[0].ID} // its members count under "channel"; the bot still listens everywhere
	}
}

// members are the full members of the local workspace.
func members(w devslack.Workspace) (ids []string) {
	for _, u := range w.Users {
		if u.Kind == devslack.KindMember {
			ids = append(ids, u.ID)
		}
	}
	return ids
}

// welcome makes the workspace of dev with a file in it, so that there is something to read.
func welcome(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("the workspace can't be made: %w", err)
	}
	const text = "# The workspace\n\nThe agent's tools work in this directory. It is yours: put files here and ask for them in Slack.\n"
	f, err := os.OpenFile(filepath.Join(dir, "README.md"), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
	if errors.Is(err, os.ErrExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("the workspace can't be written: %w", err)
	}
	_, err = f.WriteString(text)
	return errors.Join(err, f.Close())
}

// loopbackListener refuses other addresses: the local Slack has no passwords.
func loopbackListener(flag, addr string) (net.Listener, error) {
	if !loopback(addr) {
		return nil, fmt.Errorf("%s %s: it has to be a loopback address such as 127.0.0.1:0, because anyone who reaches it can act as anyone", flag, addr)
	}
	return listen(flag, addr)
}

type devslackCmd struct {
	Addr    string `default:"127.0.0.1:3103" help:"Where it listens; port 0 takes any."`
	DataDir string `name:"data-dir" default:"data/devslack" type:"path" help:"Where it keeps ids, tokens and messages."`
	NoLimit bool   `name:"no-rate-limits" help:"Don't limit calls as Slack does."`
}

// Help says how to connect.
func (devslackCmd) Help() string {
	return "Prints the page's address (slack:), the address of the Web API (api url:, which is what a client needs as SLACK_API_URL), and the bot's and the app's token. Any Slack client works with them."
}

func (c devslackCmd) Run(ctx context.Context) error {
	ln, err := loopbackListener("--addr", c.Addr)
	if err != nil {
		return err
	}
	log := slog.New(slog.NewTextHandler(os.Stderr, nil))
	local, err := devslack.New(devslack.Options{Dir: c.DataDir, Logger: log, NoRateLimits: c.NoLimit})
	if err != nil {
		return errors.Join(err, ln.Close())
	}
	w := local.Workspace()
	fmt.Printf("slack: http://%[1]s/\napi url: http://%[1]s/api/\nbot token: %[2]s\napp token: %[3]s\n", ln.Addr(), w.App.BotToken, w.App.AppToken)
	closed := make(chan error, 1)
	stop := context.AfterFunc(ctx, func() { closed <- local.Close() })
	err = local.Serve(ln)
	if stop() {
		return errors.Join(err, local.Close())
	}
	return <-closed
}
