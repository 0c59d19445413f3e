package main

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/joho/godotenv"
	"github.com/kelseyhightower/envconfig"

	"approvalbot/internal/approvals"
	"approvalbot/internal/language"
	"approvalbot/internal/ledger"
	"approvalbot/internal/model"
	"approvalbot/internal/policy"
	"approvalbot/internal/tools"
)

// Settings are what the environment says. The names are written out: a prefix would make envconfig fall back to bare
// names such as WORKSPACE. What is empty here is filled in by [Settings.complete]. A field with a group begins one, and
// those after it belong to it.
type Settings struct {
	BotToken    string            `group:"Slack" envconfig:"SLACK_BOT_TOKEN" desc:"the app's bot token, xoxb-…"`
	AppToken    string            `envconfig:"SLACK_APP_TOKEN" desc:"the app-level token with connections:write, xapp-…"`
	APIURL      string            `envconfig:"SLACK_API_URL" default:"https://slack.com/api/" desc:"where Slack's Web API is; for a local Slack"`
	Channels    []string          `envconfig:"APPROVALBOT_CHANNELS" desc:"the channels in which the bot listens, C…; empty: every channel that it was invited to"`
	Requesters  []string          `envconfig:"APPROVALBOT_REQUESTERS" default:"members" desc:"who may start runs: a list of members (full members of the workspace), channel, U…, S…"`
	TrustedBots []string          `envconfig:"APPROVALBOT_TRUSTED_BOTS" desc:"other bots and workflows that may start runs: a list of bot ids, B…. They never approve anything"`
	Operators   []string          `envconfig:"APPROVALBOT_OPERATORS" desc:"who may pause approvalbot and stop any run, and sees its health and settings in its Home tab: a list of U…, S… (in dev every member; approvalbot pause on the machine needs nobody listed)"`
	Language    language.Language `envconfig:"APPROVALBOT_LANGUAGE" default:"en" desc:"what the bot speaks in Slack: en (English) or zh (Simplified Chinese)"`

	Approvers []string      `group:"Who approves, and until when" envconfig:"APPROVALBOT_APPROVERS" desc:"who may approve (serve requires it; in dev requester,channel): a list of user ids U…, user group ids S…, channel (full members of the channel where the card stands; of public channels only those in APPROVALBOT_CHANNELS), and requester (people may approve what they asked for themselves)"`
	Quorum    int           `envconfig:"APPROVALBOT_QUORUM" default:"1" desc:"how many different people have to approve; one deny ends it"`
	Timeout   time.Duration `envconfig:"APPROVALBOT_APPROVAL_TIMEOUT" default:"120s" desc:"how long people have to answer; no answer means no"`
	MaxAsks   int           `envconfig:"APPROVALBOT_MAX_ASKS" default:"20" desc:"how often a run may ask people; more is denied unasked"`

	Notify           []string      `envconfig:"APPROVALBOT_NOTIFY" default:"approvers" desc:"whom a card mentions, so that it reaches them: approvers (those who are named as such), none, or a list of U…, S…"`
	Remind           part          `envconfig:"APPROVALBOT_REMIND" default:"50%" desc:"after which part of the time those who may approve are reminded, in the thread first and then by direct message; 0%: never"`
	MoreTime         time.Duration `envconfig:"APPROVALBOT_MORE_TIME" default:"1h" desc:"by how much people may move a card's deadline altogether, with Give Me More Time; 0s: not at all"`
	ApprovalsChannel string        `envconfig:"APPROVALBOT_APPROVALS_CHANNEL" desc:"a channel, C…, in which every card stands, too; threads link to it"`
	OnlyThere        switched      `envconfig:"APPROVALBOT_APPROVALS_ONLY_THERE" default:"off" desc:"on: cards have buttons in the approvals channel only"`
	Sets             switched      `envconfig:"APPROVALBOT_APPROVAL_SETS" default:"off" desc:"on: requests that a run makes at once stand in one message, each with its own buttons"`
	Grantors         []string      `envconfig:"APPROVALBOT_GRANTORS" desc:"who may allow calls in advance, if they may also approve them: a list as for APPROVALBOT_APPROVERS; empty: nobody (in dev requester,channel)"`
	Grants           string        `envconfig:"APPROVALBOT_GRANTS" default:"thread" desc:"how far that may reach: thread (the conversation in which it was given) or always (everywhere)"`

	ApprovalPolicy policy.ApprovalPolicy `group:"What asks, and what is denied" envconfig:"APPROVALBOT_APPROVAL_POLICY" default:"on_request" desc:"strict (ask for every call), on_request (ask for what isn't known to be harmless), never (people are asked only where a rule or a tool says so)"`
	Sandbox        policy.SandboxMode    `envconfig:"APPROVALBOT_SANDBOX" default:"workspace_write" desc:"read_only (tools that change things are denied), workspace_write, danger_full_access"`
	PolicyFile     string                `envconfig:"APPROVALBOT_POLICY_FILE" desc:"a YAML file of rules that allow, ask or deny, each with who may approve; read again on SIGHUP. approvalbot policy check FILE says what is wrong with it"`

	Model            string      `group:"The model" envconfig:"APPROVALBOT_MODEL" desc:"which model answers (serve requires it): anthropic/NAME, openai/NAME (also every compatible server, by OPENAI_BASE_URL), demo (no language model; to try the bot), or script:FILE (turns from a JSON file)"`
	AnthropicKey     string      `envconfig:"ANTHROPIC_API_KEY" desc:"the key for anthropic/NAME"`
	AnthropicBaseURL string      `envconfig:"ANTHROPIC_BASE_URL" desc:"another server that speaks Anthropic's Messages API; https, or http on this machine"`
	OpenAIKey        string      `envconfig:"OPENAI_API_KEY" desc:"the key for openai/NAME; a server of your own may need none"`
	OpenAIBaseURL    string      `envconfig:"OPENAI_BASE_URL" desc:"another server that speaks OpenAI's Chat Completions API, usually with /v1 at the end; https, or http on this machine"`
	Instructions     string      `envconfig:"APPROVALBOT_INSTRUCTIONS" desc:"a text file: what this team's agent is for"`
	Price            model.Price `envconfig:"APPROVALBOT_MODEL_PRICE" desc:"what the model costs, in US dollars per million tokens: INPUT/OUTPUT or INPUT/OUTPUT/CACHE-READ/CACHE-WRITE, such as 3/15 or 3/15/0.3/3.75. Then each run says what it cost. There is none by default, since prices change"`
	ContextTokens    int         `envconfig:"APPROVALBOT_CONTEXT_TOKENS" default:"150000" desc:"what a request to the model may have before the older part of its conversation is summarised; below the model's context, with room for an answer"`
	MaxOutputTokens  int         `envconfig:"APPROVALBOT_MAX_OUTPUT_TOKENS" default:"0" desc:"how long one answer of the model may be; 0: 16000 with anthropic/NAME, the model's own limit with openai/NAME"`
	MaxRounds        int         `envconfig:"APPROVALBOT_MAX_ROUNDS" default:"40" desc:"how often a run may ask the model"`

	Profiles string `envconfig:"APPROVALBOT_PROFILES" desc:"a YAML file of profiles: instructions, model and workspace per channel (docs/profiles.md)"`

	Workspace     string           `group:"The tools" envconfig:"APPROVALBOT_WORKSPACE" desc:"the directory that the agent works in (default: DATA_DIR/workspace, which is made)"`
	ActionsFile   string           `envconfig:"APPROVALBOT_ACTIONS_FILE" desc:"a YAML file of named actions: tools that you define (docs/actions.md; approvalbot actions check FILE)"`
	MCPConfig     string           `envconfig:"APPROVALBOT_MCP_CONFIG" desc:"a JSON file of MCP servers (mcpServers) whose tools the agent may use; see docs/mcp.md"`
	Shell         tools.ShellMode  `envconfig:"APPROVALBOT_SHELL" desc:"confined (the default where the system can do it: commands reach the workspace and what programs need), off, or unconfined (commands can do whatever this process's user can). Where commands can't be confined, serve has no shell and dev an unconfined one, and both say so"`
	ShellRead     []string         `envconfig:"APPROVALBOT_SHELL_READ" desc:"further files and directories that confined commands may read: a list of absolute paths"`
	ShellWrite    []string         `envconfig:"APPROVALBOT_SHELL_WRITE" desc:"further directories that confined commands may change: a list of absolute paths"`
	ShellNetwork  switched         `envconfig:"APPROVALBOT_SHELL_NETWORK" default:"off" desc:"on lets confined commands use the network (IPv4 and IPv6); dev has none: its local Slack has no passwords"`
	ShellReadOnly readOnlyCommands `envconfig:"APPROVALBOT_SHELL_READONLY" default:"ask" desc:"ask, or allow: under on_request nobody is asked about one literal command of a short list that only looks (docs/commands.md); needs APPROVALBOT_SHELL=confined"`
	HTTP          string           `envconfig:"APPROVALBOT_HTTP" default:"on" desc:"on or off: whether there is a tool that makes HTTP requests, to the public internet only"`
	HTTPAllow     []string         `envconfig:"APPROVALBOT_HTTP_ALLOW" desc:"hosts that it may reach although they are on this machine or in a private network: a list of HOST:PORT, or HOST for ports 80 and 443"`

	APIAddr       string `group:"The HTTP API" envconfig:"APPROVALBOT_API_ADDR" default:"127.0.0.1:3102" desc:"where the HTTP API, /healthz, /readyz and /metrics listen"`
	APIToken      string `envconfig:"APPROVALBOT_API_TOKEN" desc:"a bearer token of the HTTP API that may do everything, called default; one of the two is required unless the address is loopback"`
	APITokensFile string `envconfig:"APPROVALBOT_API_TOKENS_FILE" desc:"a JSON file of tokens, each with a name, scopes (read, run, decide, all) and, where it is a person's, their Slack user; nobody else may be able to read it"`

	DataDir  string        `group:"The process" envconfig:"APPROVALBOT_DATA_DIR" default:"./data" desc:"where the journal is kept, and the workspace unless it is elsewhere"`
	Drain    time.Duration `envconfig:"APPROVALBOT_DRAIN_TIMEOUT" default:"0s" desc:"how long runs may go on after SIGTERM before they are aborted"`
	LogLevel slog.Level    `envconfig:"APPROVALBOT_LOG_LEVEL" default:"info" desc:"debug, info, warn or error"`

	openChannels  []string        // the public channels whose members may decide under "channel"
	shellFallback tools.ShellMode // what there is where nobody said what holds commands and they can't be confined; empty: off
	unconfinable  error           // why they can't be, in that case
}

// helpWidth is what fits a terminal of the usual width behind the indentation that kong adds.
const helpWidth = 72

// settingsHelp is the part of --help that explains the settings.
func settingsHelp(only func(name string) bool) string {
	var out strings.Builder
	group, said := "", ""
	for _, f := range settingFields() {
		if g := f.Tag.Get("group"); g != "" {
			group = g
		}
		name := f.Tag.Get("envconfig")
		if only != nil && !only(name) {
			continue
		}
		if group != said {
			if said != "" {
				out.WriteString("\n")
			}
			out.WriteString(group + ":\n\n")
			said = group
		}
		out.WriteString("  " + name)
		if value := f.Tag.Get("default"); value != "" {
			out.WriteString(" (default " + value + ")")
		}
		out.WriteString("\n" + wrap(f.Tag.Get("desc"), "      ", helpWidth))
	}
	return out.String()
}

// wrap breaks a text between words into indented lines.
func wrap(text, indent string, width int) string {
	var out strings.Builder
	line := ""
	for _, word := range strings.Fields(text) {
		if line != "" && utf8.RuneCountInString(indent+line+" "+word) > width {
			out.WriteString(indent + line + "\n")
			line = ""
		}
		line = strings.TrimSpace(line + " " + word)
	}
	return out.String() + indent + line + "\n"
}

// serveSettings reads the settings of serve: .env of the current directory, then the environment, which wins. It names
// everything that is wrong at once, in a [settingErrors].
func serveSettings() (Settings, error) {
	if err := loadEnv(envFile); err != nil {
		return Settings{}, err
	}
	s, err := readSettings()
	return s, together(err, s.requireServe())
}

// loadEnv takes the lines of a file into the environment, which wins. Errors name the line and never quote it: it may
// hold a token.
func loadEnv(file string) error {
	info, err := os.Stat(file)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return nil
	case err != nil:
		return fmt.Errorf("%s can't be read: %w", file, err)
	case !info.Mode().IsRegular():
		return fmt.Errorf("%s is not a regular file", file)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return fmt.Errorf("%s can't be read: %w", file, err)
	}
	values, err := godotenv.UnmarshalBytes(text)
	if err != nil {
		return fmt.Errorf("%s can't be read%s: it has to be lines of NAME=value, quotes closed", file, badLine(text))
	}
	for name, value := range values {
		if _, set := os.LookupEnv(name); !set {
			if err := os.Setenv(name, value); err != nil {
				return fmt.Errorf("%s: a name in it can't be used", file)
			}
		}
	}
	return nil
}

// badLine finds the first line up to which a file can't be read.
func badLine(text []byte) string {
	lines := bytes.SplitAfter(text, []byte("\n"))
	for i := range lines {
		if _, err := godotenv.UnmarshalBytes(lines[i]); err != nil {
			return fmt.Sprintf(" (line %d)", i+1)
		}
	}
	return ""
}

// readSettings reads and checks what the environment says.
func readSettings() (Settings, error) {
	var s Settings
	err := s.read()
	s.openChannels = s.Channels
	return s, together(err, s.check())
}

// read reads one setting after the other, so that a wrong one doesn't hide the next. One that can't be read has its
// default, so that what is checked afterwards is wrong by itself.
func (s *Settings) read() error {
	var wrong []error
	for _, f := range settingFields() {
		value, err := readSetting(f)
		if err != nil {
			wrong = append(wrong, settingError(err))
			f.Tag = reflect.StructTag(fmt.Sprintf(`envconfig:"%s (its default)" default:%q`, f.Tag.Get("envconfig"), f.Tag.Get("default")))
			if value, err = readSetting(f); err != nil {
				continue // it has none
			}
		}
		reflect.ValueOf(s).Elem().FieldByName(f.Name).Set(value)
	}
	return together(wrong...)
}

func readSetting(f reflect.StructField) (reflect.Value, error) {
	one := reflect.New(reflect.StructOf([]reflect.StructField{f}))
	err := envconfig.Process("", one.Interface())
	return one.Elem().Field(0), err
}

// settingFields are the fields that are read from the environment.
func settingFields() []reflect.StructField {
	return slices.DeleteFunc(reflect.VisibleFields(reflect.TypeFor[Settings]()), func(f reflect.StructField) bool { return !f.IsExported() })
}

// settingErrors are several things that are wrong with the settings, each with what to do.
type settingErrors []error

func (e settingErrors) Error() string {
	lines := []string{fmt.Sprintf("%d settings are missing or wrong:", len(e))}
	for _, err := range e {
		lines = append(lines, "- "+err.Error())
	}
	return strings.Join(lines, "\n")
}

func (e settingErrors) Unwrap() []error { return e }

// each gives what is wrong one by one.
func each(err error) []error {
	if several, ok := errors.AsType[settingErrors](err); ok {
		return several
	}
	if err == nil {
		return nil
	}
	return []error{err}
}

// together makes one error of all; one stays as it is.
func together(errs ...error) error {
	var all settingErrors
	for _, err := range errs {
		all = append(all, each(err)...)
	}
	switch len(all) {
	case 0:
		return nil
	case 1:
		return all[0]
	}
	return all
}

// settingError says which setting is wrong and what would be right, without a word about Go.
func settingError(err error) error {
	var parse *envconfig.ParseError
	if !errors.As(err, &parse) {
		return err
	}
	want := ""
	switch parse.TypeName {
	case "int":
		want = "a whole number"
	case "time.Duration":
		want = "a duration such as 90s or 15m"
	case "slog.Level":
		want = "debug, info, warn or error"
	}
	if want == "" { // the type's own error says it
		return fmt.Errorf("%s: %w", parse.KeyName, parse.Err)
	}
	return fmt.Errorf("%s=%q: it has to be %s", parse.KeyName, parse.Value, want)
}

// minContextTokens is what a request can't do without, about.
const minContextTokens = 4000

var channelID = regexp.MustCompile(`^[CG][A-Z0-9]{1,30}$`)

func (s *Settings) check() error {
	var wrong []error
	bad := func(is bool, format string, args ...any) {
		if is {
			wrong = append(wrong, fmt.Errorf(format, args...))
		}
	}
	bad(s.Quorum < 1 || s.Quorum > 20, "APPROVALBOT_QUORUM=%d: it has to be between 1 and 20", s.Quorum)
	bad(s.Timeout < time.Second || s.Timeout > 7*24*time.Hour, "APPROVALBOT_APPROVAL_TIMEOUT=%s: it has to be between 1s and 168h", s.Timeout)
	bad(s.MaxRounds < 1, "APPROVALBOT_MAX_ROUNDS=%d: it has to be at least 1", s.MaxRounds)
	bad(s.MaxAsks < 1, "APPROVALBOT_MAX_ASKS=%d: it has to be at least 1", s.MaxAsks)
	bad(s.ContextTokens < minContextTokens, "APPROVALBOT_CONTEXT_TOKENS=%d: it has to be at least %d, for the instructions and the tools alone take some", s.ContextTokens, minContextTokens)
	bad(s.Drain < 0, "APPROVALBOT_DRAIN_TIMEOUT=%s: it can't be negative", s.Drain)
	wrong = append(wrong, s.checkModel()...)
	wrong = append(wrong, s.checkHTTP()...)
	for _, c := range s.Channels {
		bad(!channelID.MatchString(c), "APPROVALBOT_CHANNELS: %q is not a channel id; Slack shows it (C…) at the end of a channel's details", c)
	}
	if len(s.Approvers) > 0 { // whether none will do is the command's question
		_, err := approvals.ParseApprovers(s.Approvers)
		if err != nil {
			wrong = append(wrong, listError("APPROVALBOT_APPROVERS", err))
		}
	}
	wrong = append(wrong, s.checkExperience()...)
	wrong = append(wrong, s.checkShell()...)
	if _, err := s.mcpServers(); err != nil {
		wrong = append(wrong, err)
	}
	_, err := s.requesters()
	_, wrongActions := s.actionFile()
	_, wrongProfiles := s.profileFile()
	return together(append(wrong, err, s.checkReadOnlyCommands(), wrongActions, wrongProfiles)...)
}

// requireServe names everything that serve can't do without, and why it doesn't guess.
func (s *Settings) requireServe() error {
	errs := s.requireTokens()
	if len(s.Approvers) == 0 {
		errs = append(errs, errors.New("APPROVALBOT_APPROVERS is not set: nobody may approve until you say who. User ids (U…) or user groups (S…) are the safest; channel means every full member of the channel, requester that people may approve what they asked for themselves"))
	}
	if s.Model == "" {
		errs = append(errs, errors.New("APPROVALBOT_MODEL is not set: name a provider and its model (anthropic/NAME with ANTHROPIC_API_KEY, openai/NAME with OPENAI_API_KEY), or choose demo to try the bot without a language model"))
	}
	return together(errs...)
}

func (s *Settings) requireTokens() (errs []error) {
	if strings.HasPrefix(s.BotToken, "xapp-") && strings.HasPrefix(s.AppToken, "xoxb-") {
		return []error{errors.New("SLACK_BOT_TOKEN and SLACK_APP_TOKEN are swapped: the bot token begins with xoxb-, the app-level token with xapp-")}
	}
	switch {
	case s.BotToken == "":
		errs = append(errs, errors.New("SLACK_BOT_TOKEN is not set: copy the Bot User OAuth Token (xoxb-…) from the app's OAuth & Permissions page; no app yet? run: approvalbot manifest --url"))
	case !strings.HasPrefix(s.BotToken, "xoxb-"):
		errs = append(errs, errors.New("SLACK_BOT_TOKEN has to begin with xoxb-: it is the Bot User OAuth Token, not a user token or a signing secret"))
	}
	switch {
	case s.AppToken == "":
		errs = append(errs, errors.New("SLACK_APP_TOKEN is not set: make an app-level token (xapp-…) with the scope connections:write on the app's Basic Information page"))
	case !strings.HasPrefix(s.AppToken, "xapp-"):
		errs = append(errs, errors.New("SLACK_APP_TOKEN has to begin with xapp-: it is the app-level token, not the bot token"))
	}
	return errs
}

// complete makes the paths absolute, reads the instructions, and makes or checks the workspace.
func (s *Settings) complete() (instructions string, err error) {
	if s.DataDir, err = filepath.Abs(s.DataDir); err != nil {
		return "", fmt.Errorf("APPROVALBOT_DATA_DIR: %w", err)
	}
	if s.Workspace == "" {
		s.Workspace = filepath.Join(s.DataDir, "workspace")
		if err := os.MkdirAll(s.Workspace, 0o755); err != nil {
			return "", fmt.Errorf("the workspace can't be made: %w", err)
		}
	}
	if s.Workspace, err = filepath.Abs(s.Workspace); err != nil {
		return "", fmt.Errorf("APPROVALBOT_WORKSPACE: %w", err)
	}
	if info, err := os.Stat(s.Workspace); err != nil || !info.IsDir() {
		return "", fmt.Errorf("APPROVALBOT_WORKSPACE=%s: there is no such directory; make it, or name another", s.Workspace)
	}
	if s.Instructions == "" {
		return "", nil
	}
	text, err := os.ReadFile(s.Instructions)
	if err != nil {
		return "", fmt.Errorf("APPROVALBOT_INSTRUCTIONS: %w", err)
	}
	return string(text), nil
}

// protected are the files of ours that tools may not touch, wherever the workspace is.
func (s *Settings) protected() []string {
	paths := []string{s.journalDir(), filepath.Join(s.DataDir, "devslack"), filepath.Join(s.DataDir, "control")}
	if socket, err := controlPath(s.DataDir); err == nil {
		paths = append(paths, filepath.Dir(socket))
	}
	script, _ := strings.CutPrefix(s.Model, "script:")
	if script == s.Model {
		script = "" // the model is no file
	}
	for _, p := range []string{".env", s.Instructions, s.APITokensFile, s.PolicyFile, s.MCPConfig, script} {
		if abs, err := filepath.Abs(p); p != "" && err == nil {
			paths = append(paths, abs)
		}
	}
	return append(append(paths, s.actionPaths()...), s.profilePaths()...)
}

func (s *Settings) journalDir() string { return filepath.Join(s.DataDir, "journal") }

// secrets are the literals that must never leave the process.
func (s *Settings) secrets() []string {
	all := []string{s.BotToken, s.AppToken, s.APIToken, s.AnthropicKey, s.OpenAIKey}
	if _, tokens, err := s.fileTokens(); err == nil { // what is wrong with the file is said where it is used
		all = append(all, tokens...)
	}
	if file, err := s.actionFile(); err == nil {
		all = append(all, file.Secrets()...)
	}
	if servers, err := s.mcpServers(); err == nil {
		all = append(all, servers.Secrets()...)
	}
	return slices.DeleteFunc(all, func(t string) bool { return t == "" })
}

// approvals are the settings of the registry.
func (s *Settings) approvals(team string) (approvals.Settings, error) {
	approvers, err := approvals.ParseApprovers(s.Approvers)
	if err != nil {
		return approvals.Settings{}, listError("APPROVALBOT_APPROVERS", err)
	}
	var operators approvals.Approvers
	if len(s.Operators) > 0 {
		if operators, err = approvals.ParseApprovers(s.Operators); err != nil {
			return approvals.Settings{}, listError("APPROVALBOT_OPERATORS", err)
		}
	}
	requesters, err := s.requesters()
	return approvals.Settings{
		Approvers: approvers, Requesters: requesters, Quorum: s.Quorum, Timeout: s.Timeout,
		OpenChannels: s.openChannels, Team: team, Bots: s.TrustedBots, Remind: int(s.Remind), MoreTime: s.MoreTime,
		Grantors: optional(s.Grantors), Grants: ledger.GrantScope(s.Grants), Operators: operators,
		Channel: s.ApprovalsChannel, Only: bool(s.OnlyThere), Notify: s.Notify, Together: bool(s.Sets),
	}, err
}

// optional is a list that may be empty, which is nobody. What is wrong with it was said at the start.
func optional(list []string) approvals.Approvers {
	parsed, err := approvals.ParseApprovers(list)
	if err != nil {
		return approvals.Approvers{}
	}
	return parsed
}

func (s *Settings) requesters() (approvals.Approvers, error) {
	list, err := approvals.ParseRequesters(s.Requesters)
	if err != nil {
		return list, listError("APPROVALBOT_REQUESTERS", err)
	}
	return list, nil
}

// listError names the setting in place of the package that couldn't read it.
func listError(setting string, err error) error {
	return errors.New(setting + ": " + strings.TrimPrefix(err.Error(), approvals.ErrInvalid.Error()+": "))
}
