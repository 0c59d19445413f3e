package actions

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// inputName is what an input may be called: it stands in templates, and in the schema that models read.
var inputName = regexp.MustCompile(`^[a-zA-Z][a-zA-Z0-9_]{0,63}$`)

// A template is a text with places for values. What comes of it is one text, whatever the values are.
type template []part

// A part is a literal text or the place of an input.
type part struct{ text, input string }

// parseTemplate reads "--replicas={{replicas}}". Four braces, {{{{, are two.
func parseTemplate(s string) (template, error) {
	var t template
	literal := ""
	for {
		before, rest, found := strings.Cut(s, "{{")
		literal += before
		if !found {
			break
		}
		if after, ok := strings.CutPrefix(rest, "{{"); ok {
			literal, s = literal+"{{", after
			continue
		}
		name, after, closed := strings.Cut(rest, "}}")
		name = strings.TrimSpace(name)
		if !closed || !inputName.MatchString(name) {
			return nil, fmt.Errorf("behind {{ has to stand the name of an input and }}; to pass two braces themselves, write {{{{")
		}
		if literal != "" {
			t = append(t, part{text: literal})
		}
		t, literal, s = append(t, part{input: name}), "", after
	}
	if literal != "" || len(t) == 0 {
		t = append(t, part{text: literal})
	}
	return t, nil
}

// inputs are the names of the inputs in it, each once.
func (t template) inputs() []string {
	var names []string
	for _, p := range t {
		if p.input != "" && !slices.Contains(names, p.input) {
			names = append(names, p.input)
		}
	}
	return names
}

// literal is the text of a template without inputs.
func (t template) literal() (string, bool) {
	if len(t) == 1 && t[0].input == "" {
		return t[0].text, true
	}
	return "", false
}

// An argument is one template of `run`, for one argument; for as many as it has items, if its input is a list.
type argument struct {
	template
	line int
}

// A group is the arguments that are there together or not at all. What stands directly in `run` is a group of one that is
// always there.
type group struct {
	args  []argument
	when  string // an input that has to be true
	whole bool   // it is left out when one of its inputs is
	line  int
}

// readRun reads the list of arguments.
func (p *problems) readRun(n *yaml.Node) []group {
	if n.Kind != yaml.SequenceNode {
		p.add(n.Line, `run has to be a list with an element for each argument, [systemctl, restart, "{{service}}"], and is %s`, kindOf(n))
		return nil
	}
	var run []group
	for _, item := range p.items(n, "run") {
		switch item.Kind {
		case yaml.SequenceNode:
			run = append(run, group{args: p.readArguments(item), whole: true, line: item.Line})
		case yaml.MappingNode:
			run = append(run, p.readCondition(item))
		default:
			run = append(run, group{args: p.readArgument(item), line: item.Line})
		}
	}
	if len(n.Content) == 0 {
		p.add(n.Line, "run is empty; it has to begin with a program: [systemctl, restart, \"{{service}}\"]")
	}
	return run
}

func (p *problems) readCondition(n *yaml.Node) group {
	g := group{whole: true, line: n.Line}
	if bareInput(n) {
		p.add(n.Line, `an input has to stand in quotes: "{{NAME}}"; without them, YAML reads the braces`)
		return g
	}
	for _, f := range p.fields(n, "a condition in run", []string{"when", "args"}) {
		switch f.name {
		case "when":
			g.when = p.text(f.value, "when")
		case "args":
			g.args = p.readArguments(f.value)
		}
	}
	if g.when == "" || len(g.args) == 0 {
		p.add(n.Line, "a condition in run has to be {when: INPUT, args: [ARGUMENT, …]}, INPUT being true or false; text with a colon has to be quoted")
	}
	return g
}

// bareInput tells what YAML makes of {{name}} without quotes: a mapping in a mapping.
func bareInput(n *yaml.Node) bool {
	return n.Kind == yaml.MappingNode && len(n.Content) > 0 && n.Content[0].Kind == yaml.MappingNode
}

func (p *problems) readArguments(n *yaml.Node) []argument {
	var args []argument
	for _, item := range p.items(n, "args") {
		args = append(args, p.readArgument(item)...)
	}
	if len(n.Content) == 0 && n.Kind == yaml.SequenceNode {
		p.add(n.Line, "an empty list in run does nothing; take it away")
	}
	return args
}

// readArgument gives one argument; none if it can't be read.
func (p *problems) readArgument(n *yaml.Node) []argument {
	if bareInput(n) {
		p.add(n.Line, `an input has to stand in quotes: "{{NAME}}"; without them, YAML reads the braces`)
		return nil
	}
	text, ok := p.literal(n, "an argument")
	if !ok {
		return nil
	}
	t, err := parseTemplate(text)
	if err != nil {
		p.add(n.Line, "the argument %q: %s", text, err)
		return nil
	}
	return []argument{{t, n.Line}}
}

// each calls f for each argument of run, with its group.
func each(run []group, f func(group, argument)) {
	for _, g := range run {
		for _, a := range g.args {
			f(g, a)
		}
	}
}
