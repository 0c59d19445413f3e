package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"approvalbot/internal/policy"
)

type policyCmd struct {
	Check   policyCheckCmd   `cmd:"" help:"Say what is wrong with a policy file, or print its rules as a table."`
	Test    policyTestCmd    `cmd:"" help:"Try the tests in a policy file; ends with status 1 if one comes out otherwise."`
	Explain policyExplainCmd `cmd:"" help:"Say what would happen to one call, by which rule, and what every rule says of it."`
}

// A mode is the settings under which a policy file is looked at.
type mode struct {
	Policy   policy.ApprovalPolicy `name:"approval-policy" env:"APPROVALBOT_APPROVAL_POLICY" default:"on_request" help:"What decides where no rule does: strict, on_request or never."`
	Sandbox  policy.SandboxMode    `env:"APPROVALBOT_SANDBOX" default:"workspace_write" help:"read_only, workspace_write or danger_full_access."`
	ReadOnly readOnlyCommands      `name:"shell-readonly" env:"APPROVALBOT_SHELL_READONLY" default:"ask" help:"Whether commands that only look ask, or are allowed (allow)."`
}

// base is the policy of the settings alone.
func (m mode) base() (*policy.Policy, error) {
	p, err := policy.New(m.Policy, m.Sandbox)
	if err != nil {
		return nil, err
	}
	s := Settings{ShellReadOnly: m.ReadOnly}
	return s.withReadOnlyCommands(p), nil
}

// with is the mode with some of its settings changed, as a test of a file may.
func (m mode) with(s policy.Settings) mode {
	m.Policy, m.Sandbox = cmp.Or(s.ApprovalPolicy, m.Policy), cmp.Or(s.SandboxMode, m.Sandbox)
	return m
}

// read reads a policy file and gives the policy that it makes under the settings.
func (m mode) read(file string) (*policy.Policy, *policy.File, error) {
	f, _, err := readPolicyFile(file)
	if err != nil {
		return nil, nil, err
	}
	base, err := m.base()
	if err != nil {
		return nil, nil, err
	}
	return base.With(f.Rules), f, nil
}

// look reads a policy file under the settings and does something with the policy, beside the tools that are known here.
func look(m mode, t toolbox, file string, do func(*policy.Policy, *policy.File, *knownTools) error) error {
	p, f, err := m.read(file)
	if err != nil {
		return err
	}
	known, err := t.open()
	if err != nil {
		return err
	}
	defer known.close()
	return do(p, f, known)
}

type policyCheckCmd struct {
	File string `arg:"" help:"The policy file."`
	mode
	toolbox
}

// Help says what a condition may ask for.
func (policyCheckCmd) Help() string {
	var out strings.Builder
	out.WriteString("A condition (when) is written in CEL, the Common Expression Language. It may ask for:\n\n")
	for _, v := range policy.Variables {
		out.WriteString("  " + v.Name + " (" + v.Type + ")\n" + wrap(v.Doc, "      ", helpWidth))
	}
	return out.String() + "\ndocs/policy.md explains how to write one; docs/policies has examples.\n\n" + sameSettings
}

func (c policyCheckCmd) Run() error {
	return look(c.mode, c.toolbox, c.File, func(p *policy.Policy, f *policy.File, known *knownTools) error {
		return checkPolicy(os.Stdout, c.File, p, f, known)
	})
}

// checkPolicy prints the rules, what decides where none does, and what is hardly meant.
func checkPolicy(out io.Writer, name string, p *policy.Policy, f *policy.File, known *knownTools) error {
	fmt.Fprintf(out, "%s is well: %s, %s\n\n", name, counted(p.Rules().Len(), "rule"), counted(len(f.Examples), "test"))
	rules := p.Rules().List()
	slices.SortStableFunc(rules, func(a, b policy.Rule) int { return place(a.Effect) - place(b.Effect) })
	t := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "EFFECT\tRULE\tTOOL\tWANTS\tWHEN")
	for _, r := range rules {
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\n", r.Effect, r.Name, strings.Join(r.Tools, " "), cmp.Or(wants(r.Wanted), "-"), cmp.Or(strings.Join(strings.Fields(r.When), " "), "always"))
	}
	s := p.Settings()
	fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\n", "", "(no rule)", "*", "-", fmt.Sprintf("the approval policy decides: %s; the sandbox, %s, stands before all rules", s.ApprovalPolicy, s.SandboxMode))
	if err := t.Flush(); err != nil {
		return err
	}
	fmt.Fprintf(out, "\nAll rules that match count, in whatever order they stand, and the most severe wins: deny, ask, allow.\nhash: %s (in decisions of the journal, under these settings)\n", p.Hash())
	for _, note := range slices.Concat(withoutEffect(p), known.misspelt(rules), known.missing(rules), known.unfit(rules), known.arguments(rules), irreconcilable(rules)) {
		fmt.Fprintln(out, "note: "+note)
	}
	return nil
}

// place is where an effect stands in the table: what wins comes first.
func place(t policy.Type) int {
	return slices.Index([]policy.Type{policy.Deny, policy.Ask, policy.Allow}, t)
}

// wants says in a few words what is wanted of an ask.
func wants(w policy.Wanted) string {
	var all []string
	if w.Risk != "" {
		all = append(all, string(w.Risk)+" risk")
	}
	who := ""
	if w.Approvers != nil {
		who = " of " + strings.Join(w.Approvers, ",")
	}
	switch {
	case w.Quorum > 0:
		all = append(all, counted(w.Quorum, "approval")+who)
	case who != "":
		all = append(all, "approval"+who)
	}
	if w.Timeout > 0 {
		all = append(all, "within "+policy.Brief(w.Timeout))
	}
	if w.Confirm {
		all = append(all, "confirmed")
	}
	switch {
	case w.Remind.Never:
		all = append(all, "no reminder")
	case w.Remind != (policy.Remind{}):
		all = append(all, "a reminder after "+w.Remind.String())
	}
	for _, s := range w.Escalate {
		all = append(all, "after "+policy.Brief(s.After)+" also "+strings.Join(s.Approvers, ","))
	}
	return strings.Join(all, ", ")
}

func counted[N int | int64](n N, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// irreconcilable finds pairs of rules that may both ask about a call and have no approver in common: such a call is denied.
func irreconcilable(rules []policy.Rule) (out []string) {
	common := func(a, b []string) bool {
		return slices.ContainsFunc(a, func(s string) bool { return slices.Contains(b, s) })
	}
	for i, a := range rules {
		for _, b := range rules[i+1:] {
			if a.Approvers != nil && b.Approvers != nil && common(a.Tools, b.Tools) && !common(a.Approvers, b.Approvers) {
				out = append(out, fmt.Sprintf("the rules %s and %s have no approver in common: a call that both match is denied", a.Name, b.Name))
			}
		}
	}
	return out
}

// sameSettings says where the settings come from.
const sameSettings = "Settings come from where serve takes them: the environment, and a file .env in the current directory."

// Help says where the settings come from.
func (policyTestCmd) Help() string { return sameSettings }

type policyTestCmd struct {
	Files []string `arg:"" name:"file" help:"The policy files."`
	mode
	toolbox
}

func (c policyTestCmd) Run() error {
	var wrong []string
	for _, file := range c.Files {
		err := look(c.mode, c.toolbox, file, func(p *policy.Policy, f *policy.File, known *knownTools) error {
			return testPolicy(os.Stdout, file, c.mode, p, f, known)
		})
		if err != nil {
			wrong = append(wrong, err.Error())
		}
	}
	if len(wrong) > 0 {
		return &exitError{1, strings.Join(wrong, "\n")}
	}
	return nil
}

// testPolicy tries the tests of a file and prints those that come out otherwise.
func testPolicy(out io.Writer, name string, m mode, p *policy.Policy, f *policy.File, known *knownTools) error {
	failed := 0
	var strangers []string
	for _, e := range f.Examples {
		call, about := known.call(e.Call, e.Hints)
		e.Known.In(&call)
		if about.unknown != "" && !slices.Contains(strangers, call.Tool) {
			strangers = append(strangers, call.Tool)
		}
		base, err := m.with(e.Settings).base()
		if err != nil {
			return err
		}
		d := base.With(p.Rules()).Decide(call)
		differences := append(about.wrong, e.Check(d)...)
		if len(differences) == 0 {
			continue
		}
		failed++
		fmt.Fprintf(out, "%s:%d: %s\n", name, e.Line, cmp.Or(e.Name, "a call of "+call.Tool))
		for _, difference := range differences {
			fmt.Fprintln(out, "    "+difference)
		}
		fmt.Fprintf(out, "    decided by %s: %s\n", cmp.Or(d.Rule, string(d.Source)), d.Reason)
	}
	if len(f.Examples) > 0 && failed == 0 {
		fmt.Fprintf(out, "%s: %s, all as expected\n", name, counted(len(f.Examples), "test"))
	}
	if len(strangers) > 0 { // also where a test failed: it may be why
		slices.Sort(strangers)
		fmt.Fprintf(out, "Not known here, so their arguments were not checked, and of what they do only what the tests say was assumed: %s. --actions FILE makes named actions known; those of MCP servers never are.\n", strings.Join(strangers, ", "))
	}
	switch {
	case len(f.Examples) == 0:
		return &exitError{1, fmt.Sprintf("%s has no tests: add a list called tests, as in docs/policies", name)}
	case failed > 0:
		return &exitError{1, fmt.Sprintf("%d of %s in %s came out otherwise", failed, counted(len(f.Examples), "test"), name)}
	}
	return nil
}

// Help says where the settings come from.
func (policyExplainCmd) Help() string { return sameSettings }

type policyExplainCmd struct {
	File string `arg:"" help:"The policy file."`
	mode
	toolbox
	Tool      string    `required:"" help:"The tool that is called."`
	Args      string    `default:"{}" placeholder:"JSON" help:"Its arguments, a JSON object."`
	Requester []string  `placeholder:"U…" help:"Who asks; may be given several times."`
	Channel   string    `placeholder:"C…" help:"Where."`
	Session   string    `help:"In which conversation."`
	DataDir   string    `name:"data-dir" env:"APPROVALBOT_DATA_DIR" default:"data" help:"The data directory of serve or dev (data/dev): its journal says how tools of MCP servers were defined last."`
	Now       time.Time `format:"2006-01-02T15:04:05Z07:00" placeholder:"TIME" help:"When: 2026-03-04T09:30:00Z; now, if it isn't given."`
}

func (c policyExplainCmd) Run(ctx context.Context) error {
	if !json.Valid([]byte(c.Args)) {
		return errors.New("--args has to be a JSON object, as '{\"command\":\"ls\"}'")
	}
	if c.Now.IsZero() {
		c.Now = time.Now()
	}
	return look(c.mode, c.toolbox, c.File, func(p *policy.Policy, _ *policy.File, known *knownTools) error {
		if err := known.readSeen(ctx, c.DataDir); err != nil {
			return err
		}
		call, about := known.call(policy.Call{
			Tool: c.Tool, Args: json.RawMessage(c.Args), Requesters: c.Requester, Channel: c.Channel, Session: c.Session, Now: c.Now,
		}, nil)
		return explainPolicy(os.Stdout, p, call, about)
	})
}

// explainPolicy prints what is decided of a call, what is known of it, and what each rule says.
func explainPolicy(out io.Writer, p *policy.Policy, call policy.Call, about knowledge) error {
	d, findings := p.Explain(call)
	t := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	line := func(name, value string) {
		if value != "" {
			fmt.Fprintf(t, "%s\t%s\n", name, value)
		}
	}
	line("decision", string(d.Type))
	line("by", cmp.Or(d.Rule, string(d.Source)))
	line("reason", d.Reason)
	if d.NeedsApproval() {
		line("wants", cmp.Or(wants(d.Wanted), "what the settings say"))
	}
	fmt.Fprintln(t)
	line("tool", call.Tool+" ("+hints(call)+")")
	line("known by", about.from)
	line("programs", programs(call))
	line("path", call.Path)
	line("host", call.Host)
	for _, note := range append(about.wrong, about.unknown) {
		line("note", note)
	}
	fmt.Fprintln(t, "\nRULE\tEFFECT\tSAYS")
	for _, f := range findings {
		says := string(f.Outcome)
		if f.Err != nil {
			says += ", so it " + map[bool]string{true: "counts", false: "does not allow"}[f.Counts] + ": " + f.Err.Error()
		}
		fmt.Fprintf(t, "%s\t%s\t%s\n", f.Rule.Name, f.Rule.Effect, says)
	}
	return t.Flush()
}

// hints are a call's annotations in words.
func hints(c policy.Call) string {
	words := []string{"changes things"}
	if c.ReadOnly {
		words[0] = "only reads"
	}
	if c.Destructive {
		words = append(words, "destructive")
	}
	if c.OpenWorld {
		words = append(words, "open-world")
	}
	return strings.Join(words, ", ")
}

// programs are those of a command, or that they aren't known.
func programs(c policy.Call) string {
	var args struct{ Command string }
	switch {
	case c.Parsed:
		return cmp.Or(strings.Join(c.Programs, ", "), "none")
	case json.Unmarshal(c.Args, &args) == nil && args.Command != "":
		return "not known: the command could not be understood whole"
	}
	return ""
}

// rules says in a line what the policy is, for the doctor.
func (d *diagnosis) rules(s Settings) {
	if s.PolicyFile == "" {
		d.tell("policy", fmt.Sprintf("no file: the approval policy %s decides about every call (APPROVALBOT_POLICY_FILE)", s.ApprovalPolicy))
		return
	}
	p, f, err := mode{s.ApprovalPolicy, s.Sandbox, s.ShellReadOnly}.read(s.PolicyFile)
	err = fromSetting(err)
	if !d.check("policy", fmt.Sprintf("%s: %s", s.PolicyFile, counted(p.Rules().Len(), "rule")), err) {
		return
	}
	d.tell("policy", "hash "+p.Hash())
	for _, text := range withoutEffect(p) {
		d.note("policy", text)
	}
	if len(f.Examples) == 0 {
		d.note("policy", "the file has no tests; approvalbot policy test FILE tries them")
	}
}
