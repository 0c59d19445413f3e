package main

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"approvalbot/internal/agent"
	"approvalbot/internal/approvals"
	"approvalbot/internal/language"
	"approvalbot/internal/ledger"
	"approvalbot/internal/policy"
	"approvalbot/internal/redact"
	"approvalbot/internal/slackui"
	"approvalbot/internal/tools"
	"approvalbot/internal/tools/actions"
)

// actionFile reads the file of named actions; without one it is empty.
func (s *Settings) actionFile() (*actions.File, error) {
	if s.ActionsFile == "" {
		return &actions.File{}, nil
	}
	file, err := actions.Load(s.ActionsFile, approverList)
	if err != nil {
		return &actions.File{}, fmt.Errorf("APPROVALBOT_ACTIONS_FILE: %w", err)
	}
	return file, nil
}

// openActions reads the named actions and finds on this machine what they need. What is missing stops the start: an action
// that fails when it is needed helps nobody.
func (s *Settings) openActions(workspace string) (*actions.File, error) {
	if s.ActionsFile == "" {
		return &actions.File{}, nil
	}
	file, err := actions.Open(s.ActionsFile, approverList, thisMachine(workspace, s.ShellWrite, s.Language))
	if err != nil {
		return nil, fmt.Errorf("APPROVALBOT_ACTIONS_FILE: %w", err)
	}
	return file, nil
}

func thisMachine(workspace string, writable []string, l language.Language) actions.Machine {
	return actions.Machine{Language: l, Path: os.Getenv("PATH"), Home: os.Getenv("HOME"), Workspace: workspace, Writable: writable}
}

// actionPaths are the file itself and the files that its secrets are in: no tool may read or change them.
func (s *Settings) actionPaths() []string {
	if s.ActionsFile == "" {
		return nil
	}
	var paths []string
	if abs, err := filepath.Abs(s.ActionsFile); err == nil {
		paths = append(paths, abs)
	}
	file, err := s.actionFile()
	if err != nil {
		return paths // it is said where the file is used
	}
	return append(paths, file.SecretFiles()...)
}

// approverList judges a list of who may approve, as APPROVALBOT_APPROVERS has it.
func approverList(list []string) error {
	_, err := approvals.ParseApprovers(list)
	if err != nil {
		return errors.New(strings.TrimPrefix(err.Error(), approvals.ErrInvalid.Error()+": "))
	}
	return nil
}

// actions checks the named actions of this machine.
func (d *diagnosis) actions(s Settings) {
	if s.ActionsFile == "" {
		return
	}
	file, err := s.openActions(s.Workspace)
	if err != nil {
		d.check("actions", "", err)
		return
	}
	var names []string
	for _, a := range file.Actions() {
		names = append(names, a.Name())
	}
	d.check("actions", strings.Join(names, ", ")+" (from APPROVALBOT_ACTIONS_FILE)", nil)
	for _, p := range append(file.Notes(), file.Advice()...) {
		d.note("actions", p.String())
	}
}

type actionsCmd struct {
	Check actionsCheckCmd `cmd:"" help:"Say what is wrong with a file of actions, or show each card as it will look."`
}

type actionsCheckCmd struct {
	File      string `arg:"" type:"path" help:"The file, such as deploy/actions.example.yaml."`
	Elsewhere bool   `help:"The file is for another machine: don't look for its programs, directories and secrets here."`
	Input     string `placeholder:"ACTION" help:"Show this action only."`
	Args      string `placeholder:"JSON" help:"With --input: show it with these inputs, as {\"service\":\"web\"}."`

	PolicyFile string `name:"policy" env:"APPROVALBOT_POLICY_FILE" placeholder:"FILE" help:"Judge the calls by this policy file, too."`
	mode
	rules *policy.Policy // of the file and the settings
	said  Settings       // what the environment says of who approves
}

// Help says what comes out.
func (actionsCheckCmd) Help() string {
	return `Prints for each action what the model reads, who would have to approve, which secrets it gets (never what they are), and its
card, made by the code that makes cards, with the action's examples or made-up inputs. Whether a call asks, and whom, is
decided by the settings and, where there is one, the policy file, as if nobody in particular asked for it now. Nothing is
run. Exits 1 when anything is wrong, with everything that is.`
}

func (c actionsCheckCmd) Run() error { return c.check(os.Stdout) }

func (c actionsCheckCmd) check(w io.Writer) error {
	if c.Args != "" && c.Input == "" {
		return errors.New("--args needs --input ACTION: which action they are for")
	}
	file, missing, err := c.open()
	if err != nil {
		return err
	}
	if c.rules, err = c.judge(); err != nil {
		return err
	}
	if err := c.said.read(); err != nil { // what is wrong with other settings is theirs to say
		c.said.Quorum, c.said.Timeout = max(c.said.Quorum, 1), cmp.Or(c.said.Timeout, 2*time.Minute)
	}
	shown := 0
	for _, a := range file.Actions() {
		if c.Input != "" && a.Name() != c.Input {
			continue
		}
		shown++
		if err := c.show(w, a, redact.New(file.Secrets()...)); err != nil {
			return err
		}
	}
	if shown == 0 {
		return fmt.Errorf("there is no action %s in %s", c.Input, c.File)
	}
	notes := file.Notes()
	if !c.Elsewhere {
		notes = append(notes, file.Advice()...)
	}
	for _, p := range notes {
		fmt.Fprintf(w, "note: %s\n", p)
	}
	if missing != nil {
		return fmt.Errorf("not found on this machine (checking a file for another one? --elsewhere): %w", missing)
	}
	fmt.Fprintf(w, "%s is fine: %s.\n", c.File, counted(len(file.Actions()), "action"))
	return nil
}

// open reads the file. What only this machine lacks is no error of the file's.
func (c actionsCheckCmd) open() (file *actions.File, missing, err error) {
	if c.Elsewhere {
		file, err = actions.Load(c.File, approverList)
		return file, nil, err
	}
	workspace := cmp.Or(os.Getenv("APPROVALBOT_WORKSPACE"), filepath.Join(cmp.Or(os.Getenv("APPROVALBOT_DATA_DIR"), "data"), "workspace"))
	if abs, err := filepath.Abs(workspace); err == nil {
		workspace = abs
	}
	writable := strings.Split(os.Getenv("APPROVALBOT_SHELL_WRITE"), ",")
	file, err = actions.Open(c.File, approverList, thisMachine(workspace, writable, language.English))
	if file == nil {
		return nil, nil, err
	}
	return file, err, nil
}

// judge is the policy that calls are judged by.
func (c actionsCheckCmd) judge() (*policy.Policy, error) {
	if c.PolicyFile == "" {
		return c.mode.base()
	}
	p, _, err := c.mode.read(c.PolicyFile)
	return p, err
}

// show prints one action with its cards.
func (c actionsCheckCmd) show(w io.Writer, a *actions.Action, r *redact.Redactor) error {
	samples, err := a.Samples()
	if c.Args != "" {
		var args json.RawMessage
		args, err = tools.ParseArguments(a.Spec(), []byte(c.Args))
		samples = []json.RawMessage{args}
	}
	d := a.Demands()
	fmt.Fprintf(w, "═══ %s\n%s\n", a.Name(), a.Spec().Description)
	fmt.Fprintf(w, "risk: %s · approvers: %s · quorum: %s · time to answer: %s\n", cmp.Or(d.Risk, "not named"),
		cmp.Or(strings.Join(d.Approvers, ", "), "those of APPROVALBOT_APPROVERS"), orSetting(d.Quorum, "APPROVALBOT_QUORUM"), orSetting(d.Timeout, "APPROVALBOT_APPROVAL_TIMEOUT"))
	schema := a.Spec().InputSchema
	for _, name := range schema.PropertyOrder {
		in, needed := schema.Properties[name], ""
		if !slices.Contains(schema.Required, name) {
			needed = ", optional"
		}
		if in.Default != nil {
			needed = ", default " + string(in.Default)
		}
		line := fmt.Sprintf("input: %s (%s%s)", name, in.Type, needed)
		if in.Description != "" {
			line += ": " + in.Description
		}
		fmt.Fprintln(w, line)
	}
	for _, s := range a.Secrets() {
		state := "is there"
		switch {
		case c.Elsewhere:
			state = "not looked for"
		case s.Err != nil:
			state = "is missing: " + s.Err.Error()
		}
		fmt.Fprintf(w, "secret: %s, from %s: %s\n", s.Name, s.Source, state)
	}
	if err != nil {
		if c.Args != "" {
			return err
		}
		fmt.Fprintf(w, "no card can be shown: %s\n\n", err)
		return nil
	}
	for _, args := range samples {
		if err := c.card(w, a, args, r); err != nil {
			return err
		}
	}
	fmt.Fprintln(w)
	return nil
}

func orSetting[T comparable](v T, setting string) string {
	var none T
	if v == none {
		return setting
	}
	return fmt.Sprint(v)
}

// card prints what becomes of a call, and its card in a frame.
func (c actionsCheckCmd) card(w io.Writer, a *actions.Action, args json.RawMessage, r *redact.Redactor) error {
	p, err := a.Describe(args)
	if err != nil {
		return err
	}
	call := agent.PolicyCall(a, args)
	call.Now = time.Now()
	d := c.rules.Decide(call)
	fmt.Fprintf(w, "\n%s %s\n", a.Name(), args)
	switch {
	case d.Allowed():
		fmt.Fprintf(w, "runs without asking (%s); if it asked, its card would be:\n", cmp.Or(d.Rule, string(d.Source)))
	case !d.NeedsApproval():
		fmt.Fprintf(w, "is denied, so it has no card (%s): %s\n", cmp.Or(d.Rule, string(d.Source)), d.Reason)
		return nil
	}
	sum := sha256.Sum256(args)
	approvers := d.Wanted.Approvers
	if len(approvers) == 0 {
		approvers = c.said.Approvers
	}
	text := slackui.Mockup{
		Tool: a.Name(), Arguments: string(args), Digest: hex.EncodeToString(sum[:]), Reason: d.Reason, Rule: d.Rule,
		Preview:   agent.PreviewOf(p),
		Approvers: approvers, Unnamed: "those of APPROVALBOT_APPROVERS", Quorum: max(c.said.Quorum, d.Wanted.Quorum), Timeout: cmp.Or(d.Wanted.Timeout, c.said.Timeout),
		Risk: string(d.Wanted.Risk), Confirm: d.Wanted.Confirm, Cwd: cmp.Or(p.Dir, "the workspace"),
		Offers: c.offers(a, args, r), MoreTime: c.said.MoreTime,
	}.Text(r)
	for line := range strings.Lines(strings.TrimSpace(text)) {
		fmt.Fprint(w, "│ "+line)
	}
	fmt.Fprintln(w)
	ask := &ledger.ApprovalRequested{Tool: a.Name(), Risk: string(d.Wanted.Risk), Preview: agent.PreviewOf(p)}
	if word, _ := approvals.Confirmation(ask); word != "" {
		word, _ = r.Text(word)
		fmt.Fprintf(w, "Whoever approves it has to type: %s\n", slackui.VisibleLine(word))
	}
	return nil
}

// offers are what the card lets people do besides approving and denying, under the settings and whoever asks.
func (c actionsCheckCmd) offers(a *actions.Action, args json.RawMessage, r *redact.Redactor) (offers []ledger.Offer) {
	if !r.Hides(string(args)) && agent.Editable(a, args) {
		offers = append(offers, ledger.OfferEdit)
	}
	if c.said.MoreTime > 0 {
		offers = append(offers, ledger.OfferMoreTime)
	}
	return offers
}
