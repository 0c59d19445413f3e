package policy

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

// An Example is a call in a policy file with what the file should decide about it.
type Example struct {
	Name string
	Line int

	// The call: Tool, Args, Requesters, Channel, Session and Now are given; what else is
	// known of it, whoever knows the tools fills in.
	Call     Call
	Hints    map[string]bool // annotations that are given, by their names in MCP
	Known    Known           // what else is given, in place of what the tool says
	Settings Settings        // empty: those under which it is tried

	Expect Type
	Rules  []string // nil: not said
	said   map[string]bool
	wanted Wanted // as far as said
}

// Known is what an example says that is known of its call; nil is not said.
type Known struct {
	Path     *string
	Host     *string
	Programs []string // of a command that was understood
}

// The keys of an example.
var exampleKeys = []string{
	"name", "tool", "args", "requester", "requesters", "channel", "session", "now", "annotations", "known", "approvalPolicy", "sandboxMode",
	"expect", "rule", "risk", "approvers", "quorum", "timeout", "confirm", "remind", "escalate",
}

// The annotations that an example may give.
var hintKeys = []string{"readOnlyHint", "destructiveHint", "openWorldHint"}

// example reads one; rules are the names that there are.
func (l *loader) example(n *yaml.Node, rules map[string]int) (Example, bool) {
	before := len(l.problems)
	m := l.mapping(n, "a test", exampleKeys)
	if m == nil {
		return Example{}, false
	}
	e := Example{Line: n.Line, said: map[string]bool{}}
	for key := range m {
		e.said[key] = true
	}
	if name := m["name"]; name != nil {
		e.Name = l.text(name, "name")
	}
	l.exampleCall(n, m, &e)
	l.exampleSettings(m, &e)
	if expect, ok := l.required(n, m, "expect", "a test"); ok {
		e.Expect = l.effect(expect, "expect")
	}
	if rule := m["rule"]; rule != nil {
		e.Rules = []string{}
		for _, word := range l.words(rule, "rule") {
			if _, ok := rules[word.Value]; !ok {
				l.wrong(word, "there is no rule %q", word.Value)
			}
			e.Rules = append(e.Rules, word.Value)
		}
	}
	e.wanted = l.wanted(m)
	if e.Expect == Allow || e.Expect == Deny {
		for _, key := range ofAsks {
			if m[key] != nil {
				l.wrong(m[key], "a test that expects %s can't expect %s: nobody is asked", e.Expect, key)
			}
		}
	}
	return e, len(l.problems) == before
}

// exampleCall reads the call.
func (l *loader) exampleCall(n *yaml.Node, m map[string]*yaml.Node, e *Example) {
	if tool, ok := l.required(n, m, "tool", "a test"); ok {
		if e.Call.Tool = l.text(tool, "tool"); strings.ContainsAny(e.Call.Tool, "*?") || !toolPattern.MatchString(e.Call.Tool) {
			l.wrong(tool, "the tool %q has to be one tool's name", e.Call.Tool)
		}
	}
	e.Call.Args = json.RawMessage("{}")
	if args := m["args"]; args != nil {
		e.Call.Args = l.arguments(args)
	}
	if m["requester"] != nil && m["requesters"] != nil {
		l.wrong(m["requester"], "a test has requester or requesters, not both")
	}
	for _, key := range []string{"requester", "requesters"} {
		if m[key] != nil {
			for _, word := range l.words(m[key], key) {
				e.Call.Requesters = append(e.Call.Requesters, word.Value)
			}
		}
	}
	if channel := m["channel"]; channel != nil {
		e.Call.Channel = l.text(channel, "channel")
	}
	if session := m["session"]; session != nil {
		e.Call.Session = l.text(session, "session")
	}
	if now := m["now"]; now != nil {
		at, err := time.Parse(time.RFC3339, aliased(now).Value)
		if err != nil {
			l.wrong(now, "now is %q: it has to be a time such as 2026-03-04T09:30:00Z", aliased(now).Value)
		}
		e.Call.Now = at
	}
}

// known reads what an example says that is known of its call.
func (l *loader) known(n *yaml.Node) (k Known) {
	m := l.mapping(n, "known", []string{"path", "host", "programs"})
	for key, into := range map[string]**string{"path": &k.Path, "host": &k.Host} {
		if m[key] != nil {
			text := l.text(m[key], key)
			*into = &text
		}
	}
	if programs := m["programs"]; programs != nil {
		k.Programs = []string{}
		for _, word := range l.words(programs, "programs") {
			k.Programs = append(k.Programs, word.Value)
		}
	}
	return k
}

// In puts it into a call.
func (k Known) In(c *Call) {
	if k.Path != nil {
		c.Path = *k.Path
	}
	if k.Host != nil {
		c.Host = *k.Host
	}
	if k.Programs != nil {
		c.Programs, c.Parsed = k.Programs, true
	}
}

// exampleSettings reads what is not the call's own.
func (l *loader) exampleSettings(m map[string]*yaml.Node, e *Example) {
	for key, into := range map[string]interface{ UnmarshalText([]byte) error }{
		"approvalPolicy": &e.Settings.ApprovalPolicy, "sandboxMode": &e.Settings.SandboxMode,
	} {
		if m[key] == nil {
			continue
		}
		if err := into.UnmarshalText([]byte(l.text(m[key], key))); err != nil {
			l.wrong(m[key], "%s: %v", key, err)
		}
	}
	if known := m["known"]; known != nil {
		e.Known = l.known(known)
	}
	if hints := m["annotations"]; hints != nil {
		e.Hints = map[string]bool{}
		for key, n := range l.mapping(hints, "annotations", hintKeys) {
			e.Hints[key] = l.boolean(n, key)
		}
	}
}

// arguments turns the YAML of arguments into canonical JSON.
func (l *loader) arguments(n *yaml.Node) json.RawMessage {
	if n = aliased(n); n.Kind != yaml.MappingNode {
		l.wrong(n, "args has to be a mapping of names to values")
		return nil
	}
	left := maxValues
	value := l.value(n, &left)
	raw, err := json.Marshal(value) // it sorts members
	if err != nil {
		l.wrong(n, "args can't be written as JSON: %v", err)
	}
	return raw
}

// maxValues is how many values arguments may have: aliases can make many of few.
const maxValues = 10_000

func (l *loader) value(n *yaml.Node, left *int) any {
	n = aliased(n)
	if *left--; *left < 0 {
		if *left == -1 {
			l.wrong(n, "args has more than %d values", maxValues)
		}
		return nil
	}
	switch n.Kind {
	case yaml.MappingNode:
		out := map[string]any{}
		for i := 0; i+1 < len(n.Content); i += 2 {
			key := aliased(n.Content[i])
			if _, twice := out[key.Value]; twice || key.Kind != yaml.ScalarNode || key.Tag == "!!merge" {
				l.wrong(key, "args: %q can't be a key here: keys are texts, each once", key.Value)
				continue
			}
			out[key.Value] = l.value(n.Content[i+1], left)
		}
		return out
	case yaml.SequenceNode:
		out := make([]any, 0, len(n.Content))
		for _, c := range n.Content {
			out = append(out, l.value(c, left))
		}
		return out
	}
	return l.scalar(n)
}

// scalar is a value as JSON has it. What YAML takes for a date stays the text that it is.
func (l *loader) scalar(n *yaml.Node) any {
	var out any
	switch n.Tag {
	case "!!int", "!!float", "!!bool":
		if json.Valid([]byte(n.Value)) {
			return json.RawMessage(n.Value) // number literals stay as they are
		}
		if err := n.Decode(&out); err != nil {
			l.wrong(n, "args: %q can't be read as a %s", n.Value, strings.TrimPrefix(n.Tag, "!!"))
		}
		return out
	case "!!null":
		return nil
	case "!!str", "!!timestamp":
		return n.Value
	}
	l.wrong(n, "args: a value of the kind %s has no place in JSON", n.Tag)
	return nil
}

// Check says in what a decision differs from what the example expects; nothing, if it
// doesn't.
func (e *Example) Check(d Decision) (differences []string) {
	differ := func(what string, want, got any) {
		differences = append(differences, fmt.Sprintf("%s: want %v, got %v", what, want, got))
	}
	if d.Type != e.Expect {
		differ("expect", e.Expect, d.Type)
	}
	if names := d.rules(); e.Rules != nil && !slices.Equal(sorted(e.Rules), names) {
		differ("rule", listed(sorted(e.Rules)), listed(names))
	}
	if e.said["risk"] && d.Risk != e.wanted.Risk {
		differ("risk", e.wanted.Risk, orNone(string(d.Risk)))
	}
	if want := sorted(e.wanted.Approvers); e.said["approvers"] && !slices.Equal(want, sorted(d.Approvers)) {
		differ("approvers", listed(want), listed(sorted(d.Approvers)))
	}
	if e.said["quorum"] && d.Quorum != e.wanted.Quorum {
		differ("quorum", e.wanted.Quorum, d.Quorum)
	}
	if e.said["timeout"] && d.Timeout != e.wanted.Timeout {
		differ("timeout", e.wanted.Timeout, d.Timeout)
	}
	if e.said["confirm"] && d.Confirm != e.wanted.Confirm {
		differ("confirm", e.wanted.Confirm, d.Confirm)
	}
	if e.said["remind"] && d.Remind != e.wanted.Remind {
		differ("remind", e.wanted.Remind, orNone(d.Remind.String()))
	}
	if want, got := inSteps(e.wanted.Escalate), inSteps(d.Escalate); e.said["escalate"] && want != got {
		differ("escalate", orNone(want), orNone(got))
	}
	return differences
}

// inSteps says an escalation so that two that do the same read the same.
func inSteps(steps []Step) string {
	var all []string
	for _, s := range steps {
		all = append(all, Step{s.After, sorted(s.Approvers)}.String())
	}
	return strings.Join(all, ", then ")
}

// rules are the names of the rules that decided, sorted.
func (d Decision) rules() []string {
	list, ok := strings.CutPrefix(d.Rule, "rules: ")
	if !ok {
		return nil
	}
	list, _, _ = strings.Cut(list, ";")
	return sorted(strings.Split(list, ", "))
}

func listed(names []string) string { return orNone(strings.Join(names, ", ")) }

func orNone(s string) string {
	if s == "" {
		return "none"
	}
	return s
}
