package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"approvalbot/internal/agent"
	"approvalbot/internal/policy"
	"approvalbot/internal/tools"
)

type policyCmd struct {
	Check   policyCheckCmd   `cmd:"" help:"Say what is wrong with a policy file, or print its rules as a table."`
	Test    policyTestCmd    `cmd:"" help:"Try the tests in a policy file; ends with status 1 if one comes out otherwise."`
	Explain policyExplainCmd `cmd:"" help:"Say what would happen to one call, by which rule, and what every rule says of it."`
}

// A mode is the settings under which a policy file is looked at.
type mode struct {
	Policy  policy.ApprovalPolicy `name:"policy" env:"APPROVALBOT_APPROVAL_POLICY" default:"on_request" help:"The approval policy that decides where no rule does: strict, on_request or never."`
	Sandbox policy.SandboxMode    `env:"APPROVALBOT_SANDBOX" default:"workspace_write" help:"read_only, workspace_write or danger_full_access."`
}

// read reads a policy file and gives the policy that it makes under the settings.
func (m mode) read(file string) (*policy.Policy, *policy.File, error) {
	f, _, err := readPolicyFile(file)
	if err != nil {
		return nil, nil, err
	}
	base, err := policy.New(m.Policy, m.Sandbox)
	if err != nil {
		return nil, nil, err
	}
	return base.With(f.Rules), f, nil
}

type policyCheckCmd struct {
	File string `arg:"" help:"The policy file."`
	mode
}

// Help says what a condition may ask for.
func (policyCheckCmd) Help() string {
	var out strings.Builder
	out.WriteString("A condition (when) is written in CEL, the Common Expression Language. It may ask for:\n\n")
	for _, v := range policy.Variables {
		out.WriteString("  " + v.Name + " (" + v.Type + ")\n" + wrap(v.Doc, "      ", helpWidth))
	}
	return out.String() + "\ndocs/policy.md explains how to write one; docs/policies has examples."
}

func (c policyCheckCmd) Run() error {
	p, f, err := c.read(c.File)
	if err != nil {
		return err
	}
	known, err := openKnownTools()
	if err != nil {
		return err
	}
	defer known.close()
	return checkPolicy(os.Stdout, c.File, p, f, known)
}

// checkPolicy prints the rules, what decides where none does, and what is hardly meant.
func checkPolicy(out io.Writer, name string, p *policy.Policy, f *policy.File, known *knownTools) error {
	fmt.Fprintf(out, "%s is well: %s, %s\n\n", name, counted(p.Rules().Len(), "rule"), counted(len(f.Examples), "test"))
	rules := p.Rules().List()
	slices.SortStableFunc(rules, func(a, b policy.Rule) int { return place(a.Effect) - place(b.Effect) })
	t := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "EFFECT\tRULE\tTOOL\tWANTS\tWHEN")
	for _, r := range rules {
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\n", r.Effect, r.Name, strings.Join(r.Tools, " "), orDash(wants(r.Wanted)), orWord(strings.Join(strings.Fields(r.When), " "), "always"))
	}
	s := p.Settings()
	fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\n", "", "(no rule)", "*", "-", fmt.Sprintf("the approval policy decides: %s; the sandbox, %s, stands before all rules", s.ApprovalPolicy, s.SandboxMode))
	if err := t.Flush(); err != nil {
		return err
	}
	fmt.Fprintf(out, "\nAll rules that match count, in whatever order they stand, and the most severe wins: deny, ask, allow.\nhash: %s (in decisions of the journal, under these settings)\n", p.Hash())
	for _, note := range append(append(withoutEffect(p), known.misspelt(rules)...), irreconcilable(rules)...) {
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
		all = append(all, "within "+short(w.Timeout))
	}
	if w.Confirm {
		all = append(all, "confirmed")
	}
	return strings.Join(all, ", ")
}

// short is a duration without its zeros: 30m, not 30m0s.
func short(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

func counted(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

func orDash(s string) string { return orWord(s, "-") }

func orWord(s, word string) string {
	if s == "" {
		return word
	}
	return s
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

type policyTestCmd struct {
	File string `arg:"" help:"The policy file."`
	mode
}

func (c policyTestCmd) Run() error {
	p, f, err := c.read(c.File)
	if err != nil {
		return err
	}
	known, err := openKnownTools()
	if err != nil {
		return err
	}
	defer known.close()
	return testPolicy(os.Stdout, c.File, p, f, known)
}

// testPolicy tries the tests of a file and prints those that come out otherwise.
func testPolicy(out io.Writer, name string, p *policy.Policy, f *policy.File, known *knownTools) error {
	failed := 0
	for _, e := range f.Examples {
		call, notes := known.call(e.Call, e.Hints)
		e.Known.In(&call)
		under := p
		if e.Settings != (policy.Settings{}) {
			s := p.Settings()
			base, err := policy.New(policy.ApprovalPolicy(orWord(string(e.Settings.ApprovalPolicy), string(s.ApprovalPolicy))), policy.SandboxMode(orWord(string(e.Settings.SandboxMode), string(s.SandboxMode))))
			if err != nil {
				return err
			}
			under = base.With(p.Rules())
		}
		d := under.Decide(call)
		differences := append(notes, e.Check(d)...)
		if len(differences) == 0 {
			continue
		}
		failed++
		fmt.Fprintf(out, "%s:%d: %s\n", name, e.Line, orWord(e.Name, "a call of "+call.Tool))
		for _, difference := range differences {
			fmt.Fprintln(out, "    "+difference)
		}
		fmt.Fprintf(out, "    decided by %s: %s\n", orWord(d.Rule, string(d.Source)), d.Reason)
	}
	switch {
	case len(f.Examples) == 0:
		return &exitError{1, fmt.Sprintf("%s has no tests: add a list called tests, as in docs/policies", name)}
	case failed > 0:
		return &exitError{1, fmt.Sprintf("%d of %s came out otherwise", failed, counted(len(f.Examples), "test"))}
	}
	fmt.Fprintf(out, "%s: %s, all as expected\n", name, counted(len(f.Examples), "test"))
	return nil
}

type policyExplainCmd struct {
	File string `arg:"" help:"The policy file."`
	mode
	Tool      string    `required:"" help:"The tool that is called."`
	Args      string    `default:"{}" placeholder:"JSON" help:"Its arguments, a JSON object."`
	Requester []string  `placeholder:"U…" help:"Who asks; may be given several times."`
	Channel   string    `placeholder:"C…" help:"Where."`
	Session   string    `help:"In which conversation."`
	Now       time.Time `format:"2006-01-02T15:04:05Z07:00" placeholder:"TIME" help:"When: 2026-03-04T09:30:00Z; now, if it isn't given."`
}

func (c policyExplainCmd) Run() error {
	p, _, err := c.read(c.File)
	if err != nil {
		return err
	}
	known, err := openKnownTools()
	if err != nil {
		return err
	}
	defer known.close()
	if !json.Valid([]byte(c.Args)) {
		return errors.New("--args has to be a JSON object, as '{\"command\":\"ls\"}'")
	}
	if c.Now.IsZero() {
		c.Now = time.Now()
	}
	call, notes := known.call(policy.Call{
		Tool: c.Tool, Args: json.RawMessage(c.Args), Requesters: c.Requester, Channel: c.Channel, Session: c.Session, Now: c.Now,
	}, nil)
	return explainPolicy(os.Stdout, p, call, notes)
}

// explainPolicy prints what is decided of a call, what is known of it, and what each rule says.
func explainPolicy(out io.Writer, p *policy.Policy, call policy.Call, notes []string) error {
	d, findings := p.Explain(call)
	t := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	line := func(name, value string) {
		if value != "" {
			fmt.Fprintf(t, "%s\t%s\n", name, value)
		}
	}
	line("decision", string(d.Type))
	line("by", orWord(d.Rule, string(d.Source)))
	line("reason", d.Reason)
	if d.NeedsApproval() {
		line("wants", orWord(wants(d.Wanted), "what the settings say"))
	}
	fmt.Fprintln(t)
	line("tool", call.Tool+" ("+hints(call)+")")
	line("programs", programs(call))
	line("path", call.Path)
	line("host", call.Host)
	for _, note := range notes {
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
		return orWord(strings.Join(c.Programs, ", "), "none")
	case json.Unmarshal(c.Args, &args) == nil && args.Command != "":
		return "not known: the command could not be understood whole"
	}
	return ""
}

// knownTools are the tools that policy commands know without a configuration: the built-in ones. They are asked what they
// know of a call, and never called.
type knownTools struct {
	builtin *tools.Builtin
	set     *tools.Set
	dir     string
}

// nobody is who the tools that reach people could reach here, if they were called.
type nobody struct{ tools.Messenger }

func openKnownTools() (_ *knownTools, err error) {
	k := &knownTools{}
	if k.dir, err = os.MkdirTemp("", "approvalbot-policy-"); err != nil { // the tools want a workspace
		return nil, err
	}
	defer func() {
		if err != nil {
			k.close()
		}
	}()
	if k.builtin, err = tools.OpenBuiltin(tools.Options{
		Workspace: k.dir, Shell: tools.ShellUnconfined, Messenger: nobody{},
		HTTP: &tools.HTTPOptions{Allow: strings.FieldsFunc(os.Getenv("APPROVALBOT_HTTP_ALLOW"), func(r rune) bool { return r == ',' || r == ' ' })},
	}); err != nil {
		return nil, err
	}
	k.set, err = tools.NewSet(k.builtin.Tools()...)
	return k, err
}

func (k *knownTools) close() {
	if k.builtin != nil {
		k.builtin.Close() // it was only read from
	}
	os.Remove(k.dir)
}

// call adds what the tool knows of a call; of a tool that isn't known, what is assumed of everyone. The notes say what
// would keep the call from being judged at all.
func (k *knownTools) call(c policy.Call, given map[string]bool) (policy.Call, []string) {
	var notes []string
	about := policy.Call{Tool: c.Tool, Args: c.Args, Destructive: true, OpenWorld: true}
	if tool, ok := k.set.Get(c.Tool); ok {
		args, err := tools.ParseArguments(tool.Spec(), c.Args)
		if err != nil {
			notes = append(notes, "such a call ends before it is judged, because of its arguments: "+err.Error())
		} else {
			about = agent.PolicyCall(tool, args)
			_, err := tool.Describe(args)
			if e, ok := errors.AsType[*tools.Error](err); ok && (e.Code == tools.CodeInvalidArguments || e.Code == tools.CodeNotAllowed) {
				notes = append(notes, "such a call ends before it is judged, because of its arguments: "+e.Message)
			}
		}
	}
	about.Requesters, about.Channel, about.Session, about.Now = c.Requesters, c.Channel, c.Session, c.Now
	for name, into := range map[string]*bool{"readOnlyHint": &about.ReadOnly, "destructiveHint": &about.Destructive, "openWorldHint": &about.OpenWorld} {
		if is, ok := given[name]; ok {
			*into = is
		}
	}
	if is, ok := given["readOnlyHint"]; ok && is {
		if _, said := given["destructiveHint"]; !said {
			about.Destructive = false // as MCP has it
		}
	}
	return about, notes
}

// misspelt finds names of tools in rules that are nearly a built-in tool's.
func (k *knownTools) misspelt(rules []policy.Rule) (out []string) {
	var names []string
	for _, s := range k.set.Specs() {
		names = append(names, strings.ToUpper(s.Name))
	}
	for _, r := range rules {
		for _, t := range r.Tools {
			if right, apart := closest(t, names); apart > 0 && apart <= 2 && !strings.ContainsAny(t, "*?") {
				out = append(out, fmt.Sprintf("the rule %s is about the tool %s; the built-in one is called %s", r.Name, t, strings.ToLower(right)))
			}
		}
	}
	return out
}

// rules says in a line what the policy is, for the doctor.
func (d *diagnosis) rules(s Settings) {
	if s.PolicyFile == "" {
		d.note("policy", fmt.Sprintf("no file: the approval policy %s decides about every call (APPROVALBOT_POLICY_FILE)", s.ApprovalPolicy))
		return
	}
	p, f, err := mode{s.ApprovalPolicy, s.Sandbox}.read(s.PolicyFile)
	if !d.check("policy", fmt.Sprintf("%s: %s", s.PolicyFile, counted(p.Rules().Len(), "rule")), err) {
		return
	}
	d.note("policy", "hash "+p.Hash())
	for _, text := range withoutEffect(p) {
		d.note("policy", text)
	}
	if len(f.Examples) == 0 {
		d.note("policy", "the file has no tests; approvalbot policy test FILE tries them")
	}
}
