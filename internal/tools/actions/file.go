package actions

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"approvalbot/internal/tools"
)

// Limits of what an action may ask for.
const (
	defaultTimeout   = 2 * time.Minute
	maxTimeout       = 24 * time.Hour
	maxApproval      = 168 * time.Hour
	maxQuorum        = 20
	defaultMaxOutput = 32 << 10
	mostOutput       = 1 << 20
	maxActions       = 200
)

// A File is the actions of a file, in its order.
type File struct {
	Name    string
	actions []*Action
	notes   []Problem
}

// Load reads a file; see [Parse].
func Load(name string, approvers func([]string) error) (*File, error) {
	text, err := readFile(name)
	if err != nil {
		return nil, err
	}
	return Parse(name, text, approvers)
}

// Open reads a file and prepares its actions for a machine. What the sound ones need and the machine hasn't is told
// together with what is wrong in the file. Where only the machine lacks something, the file comes with the error, to be
// looked at.
func Open(name string, approvers func([]string) error, m Machine) (*File, error) {
	text, err := readFile(name)
	if err != nil {
		return nil, err
	}
	f, p := parseAll(name, text, approvers)
	if len(p.list) == 0 {
		return f, f.Prepare(m)
	}
	sound := slices.DeleteFunc(f.Actions(), func(a *Action) bool {
		return slices.ContainsFunc(p.list, func(p Problem) bool { return p.Action == a.name })
	})
	if err, ok := errors.AsType[*Error]((&File{Name: name, actions: sound}).Prepare(m)); ok {
		p.list = append(p.list, err.Problems...)
	}
	return nil, p.in(name)
}

func readFile(name string) ([]byte, error) {
	info, err := os.Stat(name)
	if err != nil {
		return nil, fmt.Errorf("%s can't be read: %w", name, errors.Unwrap(err))
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is not a regular file", name)
	}
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, fmt.Errorf("%s can't be read: %w", name, errors.Unwrap(err))
	}
	return text, nil
}

// Parse reads the text of a file and tells all that is wrong with it at once, as an *[Error]. approvers judges a list of
// who may approve.
func Parse(name string, text []byte, approvers func([]string) error) (*File, error) {
	f, p := parseAll(name, text, approvers)
	if err := p.in(name); err != nil {
		return nil, err
	}
	return f, nil
}

func parseAll(name string, text []byte, approvers func([]string) error) (*File, *problems) {
	p := &problems{}
	f := &File{Name: name}
	if doc := p.document(text); doc != nil {
		f.read(p, doc, approvers)
	}
	return f, p
}

func (f *File) read(p *problems, doc *yaml.Node, approvers func([]string) error) {
	for _, top := range p.fields(doc, "the file", []string{"actions"}) {
		items := p.items(top.value, "actions")
		if len(items) > maxActions {
			p.add(top.key.Line, "there are %d actions; %d is the most", len(items), maxActions)
			return
		}
		for _, item := range items {
			r := reader{problems: p, approvers: approvers, a: newAction(item.Line)}
			r.read(item)
			if a := r.a; slices.ContainsFunc(f.actions, func(o *Action) bool { return o.name == a.name }) {
				p.add(a.line, "there are two actions called %s", a.name)
			}
			f.actions = append(f.actions, r.a)
			f.notes = append(f.notes, r.notes.list...)
			p.action = ""
		}
	}
	if len(f.actions) == 0 && len(p.list) == 0 {
		p.add(1, "the file defines no actions; it has to look like: actions: [{name: …, description: …, run: […]}]")
	}
}

// Actions are those of the file, in its order.
func (f *File) Actions() []*Action { return slices.Clone(f.actions) }

// Tools are the actions as tools.
func (f *File) Tools() []tools.Tool {
	all := make([]tools.Tool, len(f.actions))
	for i, a := range f.actions {
		all[i] = a
	}
	return all
}

// Notes are what isn't wrong, but hardly meant.
func (f *File) Notes() []Problem { return slices.Clone(f.notes) }

// A reader reads one action.
type reader struct {
	*problems
	notes     problems
	a         *Action
	approvers func([]string) error
	at        map[string]int // the lines of the fields
	unread    bool           // an input couldn't be read: that it is missing elsewhere says nothing
}

// fieldNames are what an action can say, in the order in which one would write it.
var fieldNames = []string{
	"name", "description", "inputs", "optional", "run", "dir", "env", "secrets", "timeout", "max_output_bytes", "exit_codes",
	"annotations", "risk", "approvers", "quorum", "approval_timeout", "confirm", "summary", "target", "runs_as", "examples",
}

// read reads one action. Fields that depend on others come after them, whatever their order in the file.
func (r *reader) read(n *yaml.Node) {
	if n.Kind == yaml.MappingNode {
		for i := 0; i+1 < len(n.Content); i += 2 {
			if n.Content[i].Value == "name" {
				r.action, r.notes.action = n.Content[i+1].Value, n.Content[i+1].Value
			}
		}
	}
	fields := r.fields(n, "an action", fieldNames)
	if fields == nil {
		return
	}
	r.at = map[string]int{}
	for _, name := range fieldNames {
		if i := slices.IndexFunc(fields, func(f field) bool { return f.name == name }); i >= 0 {
			r.at[name] = fields[i].key.Line
			r.field(fields[i])
		}
	}
	for _, name := range []string{"name", "description", "run"} {
		if _, said := r.at[name]; !said {
			r.add(n.Line, "an action needs a %s", name)
		}
	}
	before := len(r.list)
	r.a.definition = r.value(n, "an action")
	r.list = r.list[:before] // what is wrong in there was said where it was read
	r.finish()
}

func (r *reader) field(f field) {
	a, n, what := r.a, f.value, f.name
	switch f.name {
	case "name":
		a.name = r.text(n, what)
		if a.name != "" && !actionName.MatchString(a.name) {
			r.add(n.Line, "the name %q has to be 1 to 64 letters, digits, '_' or '-'", a.name)
		} else if why, taken := tools.Reserved(a.name); taken {
			r.add(n.Line, "%s; give the action another name", why)
		}
	case "description":
		a.description = r.text(n, what)
	case "inputs":
		before := len(r.list)
		a.inputs = r.readInputs(n)
		r.unread = len(r.list) > before
	case "optional":
		r.readOptional(n)
	case "run":
		a.run = r.readRun(n)
	case "dir":
		a.dir = r.readDir(n)
	case "env":
		r.readEnv(n)
	case "secrets":
		r.readSecrets(n)
	case "timeout":
		a.timeout = r.duration(n, what, time.Second, maxTimeout)
	case "max_output_bytes":
		a.maxOutput = r.integer(n, what, 1<<10, mostOutput)
	case "exit_codes":
		r.readExitCodes(n)
	case "annotations":
		a.annotations = r.readAnnotations(n)
	case "summary":
		a.summary = r.readHeading(n, what)
	case "target":
		a.target = r.readHeading(n, what)
	case "runs_as":
		a.runsAs = r.text(n, what)
	case "examples":
		a.exampleNodes = r.items(n, what)
	default:
		r.demand(f)
	}
}

// demand reads what the action wants of those who decide.
func (r *reader) demand(f field) {
	d, n, what := &r.a.demands, f.value, f.name
	switch f.name {
	case "risk":
		d.Risk = r.choice(n, what, "low", "medium", "high", "critical")
	case "approvers":
		before := len(r.list)
		d.Approvers = r.names(n, what)
		if err := r.approvers(d.Approvers); len(r.list) == before && err != nil {
			r.add(n.Line, "approvers: %s", err)
		}
	case "quorum":
		d.Quorum = r.integer(n, what, 1, maxQuorum)
	case "approval_timeout":
		d.Timeout = r.duration(n, what, time.Second, maxApproval)
	case "confirm":
		d.Confirm = r.boolean(n, what)
	}
}

// actionName is what model providers accept as the name of a tool.
var actionName = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`)

func (r *reader) readOptional(n *yaml.Node) {
	for _, name := range r.names(n, "optional") {
		in := r.a.input(name)
		switch {
		case in == nil:
			r.missing(n.Line, "optional: ", name)
		case in.fallback != nil:
			r.add(n.Line, "optional: %s has a default, so it may be left out anyway; take away one of the two", name)
		default:
			in.optional = true
		}
	}
}

// inWorkspace is the word for a directory that the file can't know.
const inWorkspace = "workspace"

func (r *reader) readDir(n *yaml.Node) string {
	dir := r.text(n, "dir")
	switch {
	case dir == "":
	case dir == inWorkspace:
		r.notes.add(n.Line, "it runs in the agent's workspace: what its program reads there (.git/config, .npmrc, a Makefile) the agent may have written")
	case !filepath.IsAbs(dir):
		r.add(n.Line, "dir has to be an absolute path, or the word workspace, and is %q", dir)
	default:
		dir = filepath.Clean(dir)
	}
	return dir
}

// variable is what an environment variable may be called.
var variable = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

func (r *reader) variable(f field) bool {
	if !variable.MatchString(f.name) {
		r.add(f.key.Line, "%q can't be the name of an environment variable: it has to be letters, digits and _", f.name)
		return false
	}
	return true
}

func (r *reader) readEnv(n *yaml.Node) {
	for _, f := range r.fields(n, "env", nil) {
		if value, ok := r.literal(f.value, "env, "+f.name); ok && r.variable(f) {
			if strings.Contains(value, "{{") {
				r.add(f.value.Line, "env, %s: a value is passed as it is; inputs ({{…}}) go into run, secrets under secrets:", f.name)
			}
			r.a.env = append(r.a.env, variableValue{f.name, value})
		}
	}
}

func (r *reader) readSecrets(n *yaml.Node) {
	for _, f := range r.fields(n, "secrets", nil) {
		if !r.variable(f) {
			continue
		}
		s := secret{name: f.name, line: f.key.Line}
		for _, from := range r.fields(f.value, "the secret "+f.name, []string{"from_env", "from_file"}) {
			switch value := r.text(from.value, from.name); {
			case value == "":
			case from.name == "from_env":
				s.env = r.secretVariable(from, value)
			case !filepath.IsAbs(value):
				r.add(from.value.Line, "from_file has to be an absolute path, and is %q", value)
			default:
				s.file = filepath.Clean(value)
			}
		}
		if (s.env == "") == (s.file == "") {
			r.add(f.key.Line, "the secret %s has to say where it is: {from_env: NAME} or {from_file: /PATH}, one of the two", f.name)
		}
		if slices.ContainsFunc(r.a.env, func(v variableValue) bool { return v.name == f.name }) {
			r.add(f.key.Line, "%s stands under env and under secrets", f.name)
		}
		r.a.secrets = append(r.a.secrets, s)
	}
}

// ours are the tokens with which a program could act as approvalbot, or approve itself.
var ours = []string{"SLACK_BOT_TOKEN", "SLACK_APP_TOKEN", "APPROVALBOT_API_TOKEN"}

func (r *reader) secretVariable(f field, name string) string {
	switch {
	case !variable.MatchString(name):
		r.add(f.value.Line, "from_env has to be the name of an environment variable (not the secret itself), and is something else")
	case slices.Contains(ours, name):
		r.add(f.value.Line, "from_env: %s is approvalbot's own; a program that has it could approve what it asks for", name)
	}
	return name
}

func (r *reader) readExitCodes(n *yaml.Node) {
	r.a.exits = map[int]exit{}
	for _, f := range r.fields(n, "exit_codes", nil) {
		code, err := strconv.Atoi(f.name)
		if err != nil || code < 0 || code > 255 {
			r.add(f.key.Line, "exit_codes: %q has to be an exit status, 0 to 255", f.name)
			continue
		}
		if f.value.Kind == yaml.ScalarNode {
			r.a.exits[code] = exit{meaning: r.text(f.value, "exit_codes, "+f.name)}
			continue
		}
		for _, failed := range r.fields(f.value, "exit_codes, "+f.name, []string{"failed"}) {
			r.a.exits[code] = exit{meaning: r.text(failed.value, "failed"), failed: true}
		}
		if _, said := r.a.exits[code]; !said {
			r.add(f.key.Line, `exit_codes, %d has to be what it means, "nothing to do", or {failed: "what went wrong"}`, code)
		}
	}
}

func (r *reader) readAnnotations(n *yaml.Node) tools.Annotations {
	var a tools.Annotations
	hint := func(n *yaml.Node, what string) *bool {
		v := r.boolean(n, what)
		return &v
	}
	for _, f := range r.fields(n, "annotations", []string{"title", "readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint"}) {
		switch f.name {
		case "title":
			a.Title = r.text(f.value, f.name)
		case "readOnlyHint":
			a.ReadOnlyHint = r.boolean(f.value, f.name)
		case "destructiveHint":
			a.DestructiveHint = hint(f.value, f.name)
		case "idempotentHint":
			a.IdempotentHint = r.boolean(f.value, f.name)
		case "openWorldHint":
			a.OpenWorldHint = hint(f.value, f.name)
		}
	}
	if a.ReadOnlyHint && a.DestructiveHint != nil && *a.DestructiveHint {
		r.add(n.Line, "annotations: what only reads can't be destructive")
	}
	return a
}

// readHeading reads a template of what people see first.
func (r *reader) readHeading(n *yaml.Node, what string) template {
	text := r.text(n, what)
	if text == "" {
		return nil
	}
	t, err := parseTemplate(text)
	if err != nil {
		r.add(n.Line, "%s: %s", what, err)
		return nil
	}
	if strings.Contains(strings.TrimSpace(text), "\n") {
		r.add(n.Line, "%s has to be one line", what)
	}
	return t
}

// finish checks what the fields say together.
func (r *reader) finish() {
	for _, in := range r.a.inputs {
		in.optional = in.optional || in.fallback != nil
	}
	r.checkRun()
	for what, t := range map[string]template{"summary": r.a.summary, "target": r.a.target} {
		for _, name := range t.inputs() {
			in := r.a.input(name)
			switch {
			case in == nil:
				r.missing(r.at[what], what+": ", name)
			case !in.sure():
				r.add(r.at[what], "%s: %s is optional, and people would read a gap; use inputs that are always there, or give it a default", what, name)
			}
		}
	}
	d := &r.a.demands
	// Who is named to approve has to be asked, whatever the annotations say.
	d.Ask = len(d.Approvers) > 0 || d.Quorum > 0 || d.Timeout > 0 || d.Confirm || d.Risk == "high" || d.Risk == "critical"
	r.a.seal()
	if len(r.list) == 0 {
		r.readExamples()
	}
}

// readExamples reads inputs that the author gave to show the card with.
func (r *reader) readExamples() {
	for _, n := range r.a.exampleNodes {
		if n.Kind != yaml.MappingNode {
			r.add(n.Line, "an example has to be a mapping of inputs: {service: web}, and is %s", kindOf(n))
			continue
		}
		raw, err := json.Marshal(r.value(n, "an example"))
		if err == nil {
			raw, err = tools.ParseArguments(r.a.Spec(), raw)
		}
		if err == nil {
			_, err = r.a.Describe(raw)
		}
		if err != nil {
			r.add(n.Line, "examples: %s", err)
			continue
		}
		r.a.examples = append(r.a.examples, raw)
	}
	r.a.exampleNodes = nil
}
