package actions

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"approvalbot/internal/language"
	"approvalbot/internal/tools"
	"approvalbot/internal/tools/command"
	"approvalbot/internal/tools/process"
)

// An Action is a tool that operators defined. It doesn't change once it is prepared.
type Action struct {
	line         int
	name         string
	description  string
	inputs       []*input
	run          []group
	dir          string // "": /; the word workspace; or a path
	env          []variableValue
	secrets      []secret
	timeout      time.Duration
	maxOutput    int
	exits        map[int]exit
	annotations  tools.Annotations
	demands      tools.Demands
	summary      template
	target       template
	runsAs       string       // whose credentials it uses, in the operator's words
	exampleNodes []*yaml.Node // until they are read
	examples     []json.RawMessage
	definition   any // the action as it stands in the file
	spec         tools.Spec
	place        *place            // where it runs; nil: not prepared
	lang         language.Language // of what people read on its cards
}

// A variableValue is an environment variable with its value.
type variableValue struct{ name, value string }

// An exit is what an exit status means.
type exit struct {
	meaning string
	failed  bool
}

func newAction(line int) *Action {
	return &Action{line: line, timeout: defaultTimeout, maxOutput: defaultMaxOutput}
}

// seal makes the spec, when all fields are read.
func (a *Action) seal() {
	a.spec = tools.Spec{Name: a.name, Description: a.description, InputSchema: object(a.inputs), Annotations: a.annotations}
}

func (a *Action) input(name string) *input {
	if i := slices.IndexFunc(a.inputs, func(in *input) bool { return in.name == name }); i >= 0 {
		return a.inputs[i]
	}
	return nil
}

func (a *Action) inputNames() []string {
	var names []string
	for _, in := range a.inputs {
		names = append(names, in.name)
	}
	return names
}

// uses tells whether an input has any effect on the arguments.
func (a *Action) uses(name string) bool {
	return slices.ContainsFunc(a.run, func(g group) bool { return g.when == name || slices.Contains(g.inputs(), name) })
}

// Name is what models call it by.
func (a *Action) Name() string { return a.name }

// Spec implements [tools.Tool].
func (a *Action) Spec() tools.Spec { return a.spec }

// Demands implements [tools.Demanding].
func (a *Action) Demands() tools.Demands {
	d := a.demands
	d.Approvers = slices.Clone(d.Approvers)
	return d
}

// Definition implements [tools.Defined]: the action as its file has it, and what this machine makes of it.
func (a *Action) Definition() any {
	return struct {
		Action any    `json:"action"`
		Place  *place `json:"place"`
	}{a.definition, a.place}
}

// Facts implements [tools.Factual]. Rules read it as they read a command of the shell: what it would run there is what
// runs here, and a program that runs others is read the same way.
func (a *Action) Facts(args json.RawMessage) tools.Facts {
	unknown := tools.Facts{Programs: []string{a.program()}}
	values, err := a.values(args)
	if err != nil {
		return unknown
	}
	argv, err := a.argv(values)
	if err != nil {
		return unknown
	}
	analysis := command.Parse(commandLine(argv))
	return tools.Facts{Programs: analysis.Programs, Parsed: analysis.Complete}
}

// program is the program as the file names it.
func (a *Action) program() string {
	program, _ := a.run[0].args[0].literal()
	return program
}

// Describe implements [tools.Tool]. The body is the command line, exactly; whoever runs it in a shell passes the same
// arguments.
func (a *Action) Describe(args json.RawMessage) (tools.Preview, error) {
	values, err := a.values(args)
	if err != nil {
		return tools.Preview{}, err
	}
	argv, err := a.argv(values)
	if err != nil {
		return tools.Preview{}, err
	}
	p := tools.Preview{
		Summary: a.lang.Tf("Run the action %s", a.name), Target: argv[0], Kind: tools.KindCommand,
		Body: commandLine(argv), Notes: a.circumstances(), Dir: a.workDir(), RunsAs: a.runsAs,
	}
	if a.summary != nil {
		p.Summary = a.summary.heading(values)
	}
	if a.target != nil {
		p.Target = a.target.heading(values)
	}
	return p, nil
}

// workDir is where it runs; "" is the workspace, or, of an action that isn't prepared, what nobody knows yet.
func (a *Action) workDir() string {
	switch {
	case a.place != nil:
		return a.place.Dir
	case a.dir == inWorkspace:
		return ""
	case a.dir == "":
		return "/"
	}
	return a.dir
}

// circumstances are what one should know besides the command line.
func (a *Action) circumstances() []string {
	var notes []string
	if len(a.secrets) > 0 {
		notes = append(notes, a.lang.Tf("With %s.", listed(a.lang, a.secrets, func(s secret) string { return s.phrase(a.lang) })))
	}
	if len(a.env) > 0 {
		set := listed(a.lang, a.env, func(v variableValue) string { return v.name + "=" + quote(v.value) })
		notes = append(notes, a.lang.Tf("In its environment: %s.", set))
	}
	return append(notes, a.lang.Tf("Time limit: %s.", a.lang.Lasting(a.timeout)))
}

// listed joins things for a sentence.
func listed[T any](l language.Language, all []T, phrase func(T) string) string {
	var parts []string
	for _, x := range all {
		parts = append(parts, phrase(x))
	}
	if n := len(parts); n > 1 {
		return l.Tf("%s and %s", strings.Join(parts[:n-1], ", "), parts[n-1])
	}
	return parts[0]
}

// Call implements [tools.Tool].
func (a *Action) Call(ctx context.Context, args json.RawMessage) (tools.Output, error) {
	values, err := a.values(args)
	if err != nil {
		return tools.Output{}, err
	}
	argv, err := a.argv(values)
	if err != nil {
		return tools.Output{}, err
	}
	if a.place == nil {
		return tools.Output{}, failure(tools.CodeToolFailed, "The action %s was not prepared to run here.", a.name)
	}
	env, known, err := a.environment()
	if err != nil {
		return tools.Output{}, failure(tools.CodeToolFailed, "Nothing was started: %s.", err)
	}
	if ctx.Err() != nil {
		return tools.Output{}, errNotBegun
	}
	limited, cancel := context.WithTimeout(ctx, a.timeout)
	defer cancel()
	program := process.Command{Argv: argv, Dir: a.place.directory(), Env: env, MaxOutput: a.maxOutput}
	if len(known) > 0 {
		program.Filter = func(r io.Reader) io.Reader { return newScrubber(r, known) }
	}
	end, err := program.Run(limited)
	switch {
	case err != nil && ctx.Err() != nil:
		return tools.Output{}, errNotBegun
	case err != nil:
		return tools.Output{}, failure(tools.CodeToolFailed, "The program could not be started: %s.", err)
	}
	return a.result(end, ctx.Err() != nil)
}

// environment is all that the program gets, and the secrets in it, also as they were when the action was prepared: what
// it writes may still hold those.
func (a *Action) environment() (env, known []string, err error) {
	env = slices.Clone(a.place.Env)
	known = slices.Clone(a.place.secrets)
	for _, s := range a.secrets {
		value, err := s.resolve()
		if err != nil {
			return nil, nil, fmt.Errorf("the secret %s of the action %s: %w", s.name, a.name, err)
		}
		env = append(env, s.name+"="+value)
		known = append(known, value)
	}
	return env, known, nil
}

// errNotBegun: it was stopped in time.
var errNotBegun = failure(tools.CodeAborted, "Stopped before the program started.")

func failure(code tools.Code, format string, args ...any) *tools.Error {
	return &tools.Error{Code: code, Message: fmt.Sprintf(format, args...)}
}

// result says how it ended, in the operator's words where they have some for the exit status. One that had ended by the
// time it was stopped has ended.
func (a *Action) result(e process.Ending, aborted bool) (tools.Output, error) {
	code := e.ExitCode()
	meaning, said := a.exits[code]
	switch {
	case e.Stopped && code < 0 && aborted:
		return tools.Output{}, &tools.Error{Code: tools.CodeAborted, Message: "The program was stopped while it ran; it may be partly performed.", Output: e.Text}
	case e.Stopped && code < 0:
		limit := fmt.Sprintf("The program reached its time limit (%s) and was stopped; it may be partly performed.", language.English.Lasting(a.timeout))
		return tools.Output{}, &tools.Error{Code: tools.CodeTimeout, Message: limit, Output: e.Text}
	case e.Signal() != "":
		return tools.Output{}, &tools.Error{Code: tools.CodeExitStatus, Message: fmt.Sprintf("The program was ended by the signal %s.", e.Signal()), Output: e.Text}
	case said && meaning.failed:
		message := fmt.Sprintf("It failed: %s (exit status %d).", strings.TrimRight(meaning.meaning, "."), code)
		return tools.Output{}, &tools.Error{Code: tools.CodeExitStatus, Message: message, Output: e.Text}
	case !said && code != 0:
		return tools.Output{}, &tools.Error{Code: tools.CodeExitStatus, Message: fmt.Sprintf("The program ended with exit status %d.", code), Output: e.Text}
	}
	return tools.Output{Text: succeeded(meaning.meaning, code, e.Text), Truncated: e.Truncated, ExitCode: &code}, nil
}

// succeeded is what the model sees of a success.
func succeeded(meaning string, code int, text string) string {
	switch {
	case meaning == "" && text == "":
		return "[The program succeeded without output.]"
	case meaning == "":
		return text
	}
	first := fmt.Sprintf("[%s (exit status %d)]", strings.TrimRight(meaning, "."), code)
	if text == "" {
		return first
	}
	return first + "\n" + text
}

// Secrets are the values of all secrets of the file, as far as they can be read now. They must never leave the process.
func (f *File) Secrets() []string {
	var all []string
	for _, a := range f.actions {
		for _, s := range a.secrets {
			if value, err := s.resolve(); err == nil {
				all = append(all, value)
			}
		}
	}
	return all
}

// SecretFiles are the files that secrets are read from. Tools may not read them.
func (f *File) SecretFiles() []string {
	var all []string
	for _, a := range f.actions {
		for _, s := range a.secrets {
			if s.file != "" && !slices.Contains(all, s.file) {
				all = append(all, s.file)
			}
		}
	}
	return all
}

// A SecretState tells of a secret where it should be, and whether it is there.
type SecretState struct {
	Name   string
	Source string
	Err    error
}

// Secrets tells of each secret of the action whether it can be read now.
func (a *Action) Secrets() []SecretState {
	var all []SecretState
	for _, s := range a.secrets {
		_, err := s.resolve()
		all = append(all, SecretState{s.name, s.source(), err})
	}
	return all
}

// directory is where the program is started; the workspace is a place of the machine, too.
func (p *place) directory() string {
	if p.Dir != "" {
		return p.Dir
	}
	return string(os.PathSeparator)
}
