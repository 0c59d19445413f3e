package policy

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

// A File is what a policy file says: rules, and examples of what they should decide.
type File struct {
	Rules    *Rules
	Examples []Example
}

// A FileError is everything that is wrong with a policy file, in the order of its lines.
type FileError struct {
	File     string
	Problems []Problem
}

// A Problem is one thing that is wrong with a policy file.
type Problem struct {
	Line, Column int // from 1; 0: the file as a whole
	What         string
}

func (e *FileError) Error() string {
	var lines []string
	for _, p := range e.Problems {
		at := e.File
		if p.Line > 0 {
			at += fmt.Sprintf(":%d:%d", p.Line, max(p.Column, 1))
		}
		lines = append(lines, at+": "+p.What)
	}
	if len(lines) == 1 {
		return lines[0]
	}
	return fmt.Sprintf("%d things are wrong with the policy file:\n%s", len(lines), strings.Join(lines, "\n"))
}

// The bounds of a file. They keep a mistake from making every decision slow.
const (
	maxFileSize = 1 << 20
	maxRules    = 500
	maxExamples = 2000
	maxReason   = 300 // characters
	maxTimeout  = 7 * 24 * time.Hour
	maxQuorum   = 20
	maxProblems = 50
)

// Load reads a policy file. It is strict: an unknown or repeated key, a value of the wrong
// kind, a condition that isn't one is an error, because a rule that is quietly not what was
// meant is worse than none. The error is a [*FileError] with everything that is wrong; name
// is what the file is called in it.
func Load(name string, text []byte) (*File, error) {
	l := &loader{name: name, lines: strings.Split(string(text), "\n")}
	root := l.document(text)
	f := &File{Rules: &Rules{}}
	if root != nil {
		l.file(root, f)
	}
	if len(l.problems) == 0 {
		return f, nil
	}
	slices.SortStableFunc(l.problems, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
	if len(l.problems) > maxProblems {
		l.problems = append(l.problems[:maxProblems:maxProblems], Problem{What: "and more"})
	}
	return nil, &FileError{name, l.problems}
}

// A loader reads one file and collects what is wrong with it.
type loader struct {
	name     string
	lines    []string // of the text
	problems []Problem
}

func (l *loader) wrong(n *yaml.Node, format string, args ...any) {
	l.problems = append(l.problems, Problem{n.Line, n.Column, fmt.Sprintf(format, args...)})
}

var yamlLine = regexp.MustCompile(`line (\d+): (.*)`)

// document reads the YAML. It returns nil if that says nothing or is wrong.
func (l *loader) document(text []byte) *yaml.Node {
	whole := func(what string) *yaml.Node {
		l.problems = append(l.problems, Problem{What: what})
		return nil
	}
	switch {
	case len(text) > maxFileSize:
		return whole(fmt.Sprintf("it has %d bytes, more than %d", len(text), maxFileSize))
	case !utf8.Valid(text):
		return whole("it is not UTF-8 text")
	}
	dec := yaml.NewDecoder(bytes.NewReader(text))
	var doc, more yaml.Node
	err := dec.Decode(&doc)
	if err == nil && dec.Decode(&more) != io.EOF {
		return whole("it has to be one YAML document: take the line --- and what follows out")
	}
	switch {
	case errors.Is(err, io.EOF):
		return whole("it is empty: it has to have a list of rules, which may be empty (rules: [])")
	case err != nil:
		return l.mend(err)
	}
	return doc.Content[0]
}

// mend names what keeps the file from being YAML. Where that is conditions without quotes, the rest is read as if they
// had them, so that what is wrong with it is named, too.
func (l *loader) mend(err error) *yaml.Node {
	found := findUnquoted(l.lines)
	for _, u := range found {
		l.problems = append(l.problems, Problem{u.first + 1, utf8.RuneCountInString(l.lines[u.first][:u.from]) + 1, u.advice()})
	}
	text := quoted(l.lines, found)
	var doc yaml.Node
	if len(found) > 0 {
		err = yaml.Unmarshal([]byte(text), &doc)
	}
	if err != nil {
		l.problems = append(l.problems, notYAML(strings.Split(text, "\n"), err))
		return nil
	}
	return doc.Content[0]
}

func (l *loader) file(root *yaml.Node, f *File) {
	m := l.mapping(root, "a policy file", []string{"rules", "tests"})
	if m == nil {
		return
	}
	rules, ok := m["rules"]
	if !ok {
		l.wrong(root, "there is no list of rules: a policy file has to have one, which may be empty (rules: [])")
	}
	seen := map[string]int{}
	for _, n := range l.list(rules, "rules", maxRules) {
		rule, ok := l.rule(n)
		if before, twice := seen[rule.Name]; twice && rule.Name != "" {
			l.wrong(n, "there are two rules called %s, the other one on line %d: each needs a name of its own", rule.Name, before)
		}
		seen[rule.Name] = rule.Line // also of a wrong one: its tests aren't wrong for that
		if !ok {
			continue
		}
		f.Rules.list = append(f.Rules.list, rule)
	}
	for _, n := range l.list(m["tests"], "tests", maxExamples) {
		if e, ok := l.example(n, seen); ok {
			f.Examples = append(f.Examples, e)
		}
	}
}

var ruleName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`)

// The keys of a rule.
var ruleKeys = []string{"name", "tool", "when", "effect", "reason", "risk", "approvers", "quorum", "timeout", "confirm", "remind", "escalate"}

// ofAsks are the keys that have a meaning only where people are asked.
var ofAsks = []string{"approvers", "quorum", "timeout", "confirm", "remind", "escalate"}

// rule reads one rule; false if something is wrong with it.
func (l *loader) rule(n *yaml.Node) (Rule, bool) {
	before := len(l.problems)
	m := l.mapping(n, "a rule", ruleKeys)
	if m == nil {
		return Rule{}, false
	}
	r := Rule{Line: n.Line}
	if name, ok := l.required(n, m, "name", "a rule"); ok {
		r.Name = l.text(name, "name")
		if !ruleName.MatchString(r.Name) {
			l.wrong(name, "the name %q has to be 1 to 64 letters, digits, '.', '_' or '-': it stands on cards and in the journal", r.Name)
		}
	}
	if tool, ok := l.required(n, m, "tool", "a rule"); ok {
		r.Tools = l.tools(tool)
	}
	if effect, ok := l.required(n, m, "effect", "a rule"); ok {
		r.Effect = l.effect(effect, "effect")
	}
	if when := m["when"]; when != nil {
		r.When, r.when = l.condition(when)
	}
	if reason := m["reason"]; reason != nil {
		r.Reason = l.reason(reason)
	}
	r.Wanted = l.wanted(m)
	l.inTime(m, r.Wanted)
	if r.Effect == Allow || r.Effect == Deny {
		for _, key := range ofAsks {
			if m[key] != nil {
				l.wrong(m[key], "%s has no meaning in a rule whose effect is %s: nobody is asked", key, r.Effect)
			}
		}
	}
	if usersOnly(r.Approvers) && len(r.Approvers) > 0 && len(r.Approvers) < r.Quorum {
		l.wrong(m["quorum"], "%d different people have to approve, and approvers names only %d", r.Quorum, len(r.Approvers))
	}
	return r, len(l.problems) == before
}

// wanted reads what a rule or an example says of an ask.
func (l *loader) wanted(m map[string]*yaml.Node) (w Wanted) {
	if n := m["risk"]; n != nil {
		w.Risk = Risk(l.text(n, "risk"))
		if w.Risk == "" || !slices.Contains(risks, w.Risk) {
			l.wrong(n, "the risk %q is not one of low, medium, high, critical", string(w.Risk))
		}
	}
	if n := m["approvers"]; n != nil {
		w.Approvers = l.approvers(n)
	}
	if n := m["quorum"]; n != nil {
		w.Quorum = l.quorum(n)
	}
	if n := m["timeout"]; n != nil {
		w.Timeout = l.duration(n)
	}
	if n := m["confirm"]; n != nil {
		w.Confirm = l.boolean(n, "confirm")
	}
	if n := m["remind"]; n != nil {
		w.Remind = l.remind(n)
	}
	if n := m["escalate"]; n != nil {
		w.Escalate = l.escalate(n)
	}
	return w
}

func (l *loader) effect(n *yaml.Node, key string) Type {
	t := Type(l.text(n, key))
	if severity(t) == 0 {
		l.wrong(n, "%s is %q: it has to be allow, ask or deny", key, string(t))
	}
	return t
}

var toolPattern = regexp.MustCompile(`^[a-zA-Z0-9_*?-]{1,64}$`)

func (l *loader) tools(n *yaml.Node) (all []string) {
	for _, word := range l.words(n, "tool") {
		if !toolPattern.MatchString(word.Value) {
			l.wrong(word, "the tool %q has to be a tool's name, in which * stands for any text and ? for any character", word.Value)
		}
		all = append(all, word.Value)
	}
	if len(all) == 0 {
		l.wrong(n, "tool names no tool: \"*\" stands for all")
	}
	return all
}

func (l *loader) approvers(n *yaml.Node) []string {
	all := []string{}
	for _, word := range l.words(n, "approvers") {
		if !approver(word.Value) {
			l.wrong(word, "the approver %q is not one of requester, channel, a user id (U…) or a user group id (S…), which Slack shows as \"Copy member ID\" and \"Copy group ID\"", word.Value)
		}
		if slices.Contains(all, word.Value) {
			l.wrong(word, "the approver %s is named twice", word.Value)
		}
		all = append(all, word.Value)
	}
	if len(all) == 0 {
		l.wrong(n, "approvers is empty: leave it out to ask those whom APPROVALBOT_APPROVERS names")
	}
	return all
}

func (l *loader) reason(n *yaml.Node) string {
	s := strings.TrimSpace(l.text(n, "reason"))
	switch {
	case utf8.RuneCountInString(s) > maxReason:
		l.wrong(n, "the reason has %d characters, more than %d: it stands on a card", utf8.RuneCountInString(s), maxReason)
	case strings.ContainsFunc(s, func(r rune) bool { return unicode.IsControl(r) && r != '\n' }):
		l.wrong(n, "the reason contains a character that can't be printed")
	}
	return strings.Join(strings.Fields(s), " ")
}

func (l *loader) quorum(n *yaml.Node) int {
	q := 0
	if n = aliased(n); n.Tag != "!!int" || n.Decode(&q) != nil || q < 1 || q > maxQuorum {
		l.wrong(n, "quorum is %q: it has to be a number of people between 1 and %d", n.Value, maxQuorum)
	}
	return q
}

func (l *loader) duration(n *yaml.Node) time.Duration { return l.durationOf(n, "timeout") }

func (l *loader) durationOf(n *yaml.Node, key string) time.Duration {
	d, err := time.ParseDuration(aliased(n).Value)
	if err != nil || d < time.Second || d > maxTimeout {
		l.wrong(n, "%s is %q: it has to be a duration between 1s and 168h, such as 90s, 15m or 1h30m", key, aliased(n).Value)
	}
	return d
}

func (l *loader) boolean(n *yaml.Node, key string) (b bool) {
	if n = aliased(n); n.Tag != "!!bool" || n.Decode(&b) != nil {
		l.wrong(n, "%s is %q: it has to be true or false", key, n.Value)
	}
	return b
}

// condition compiles what a rule asks, and puts what is wrong with it in its place in the
// file.
func (l *loader) condition(n *yaml.Node) (string, *expression) {
	if misread(aliased(n)) {
		l.wrong(n, "%s", l.source(aliased(n)).advice())
		return "", nil
	}
	before := len(l.problems)
	text := strings.TrimSpace(l.text(n, "when"))
	switch {
	case len(l.problems) > before:
		return "", nil
	case text == "":
		l.wrong(n, "when is empty: it has to be a condition")
		return "", nil
	}
	e, wrong := compile(text)
	if len(wrong) > 0 && cut(aliased(n)) {
		l.wrong(n, "%s", l.source(aliased(n)).advice())
		return text, nil
	}
	for _, w := range wrong {
		line, column := l.place(aliased(n), text, w)
		l.problems = append(l.problems, Problem{line, column, "when: " + w.what})
	}
	return text, e
}

// place finds a place of a condition in the file. YAML may have folded its lines and taken
// its quotes off, so the two are read side by side by what isn't blank.
func (l *loader) place(n *yaml.Node, text string, e expressionError) (line, column int) {
	target := 0 // the place in text, in bytes
	for range e.line - 1 {
		end := strings.IndexByte(text[target:], '\n')
		if end < 0 {
			break
		}
		target += end + 1
	}
	for i := range text[target:] {
		if e.column == 0 {
			target += i
			break
		}
		e.column--
	}
	row, at := n.Line-1, n.Column-1
	if n.Style&(yaml.LiteralStyle|yaml.FoldedStyle) != 0 {
		row, at = row+1, 0
	}
	line, column = n.Line, n.Column
	for i, r := range text {
		if unicode.IsSpace(r) {
			continue
		}
		found := -1
		for ; row < len(l.lines); row, at = row+1, 0 {
			rest := string([]rune(l.lines[row])[min(at, utf8.RuneCountInString(l.lines[row])):])
			if j := strings.IndexRune(rest, r); j >= 0 {
				found = at + utf8.RuneCountInString(rest[:j])
				break
			}
		}
		if found < 0 {
			break // an escape of YAML's: the last place is near enough
		}
		line, column, at = row+1, found+1, found+1
		if i >= target {
			break
		}
	}
	return line, column
}

// aliased is the node that a node stands for.
func aliased(n *yaml.Node) *yaml.Node {
	if n.Kind == yaml.AliasNode && n.Alias != nil {
		return n.Alias
	}
	return n
}

// mapping reads a mapping with these keys, each at most once; nil if it is none.
func (l *loader) mapping(n *yaml.Node, what string, keys []string) map[string]*yaml.Node {
	if n = aliased(n); n.Kind != yaml.MappingNode {
		l.wrong(n, "%s has to be a mapping with the keys %s", what, strings.Join(keys, ", "))
		return nil
	}
	m := map[string]*yaml.Node{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key := n.Content[i]
		switch {
		case !slices.Contains(keys, key.Value):
			l.wrong(key, "%s has no key %q: it has %s", what, key.Value, strings.Join(keys, ", "))
		case m[key.Value] != nil:
			l.wrong(key, "%s has the key %s twice", what, key.Value)
		default:
			m[key.Value] = n.Content[i+1]
		}
	}
	return m
}

func (l *loader) required(n *yaml.Node, m map[string]*yaml.Node, key, what string) (*yaml.Node, bool) {
	if m[key] == nil {
		l.wrong(n, "%s needs the key %s", what, key)
		return nil, false
	}
	return m[key], true
}

// list reads a list; nil, which is none, has nothing in it.
func (l *loader) list(n *yaml.Node, what string, most int) []*yaml.Node {
	if n == nil {
		return nil
	}
	if n = aliased(n); n.Kind != yaml.SequenceNode {
		l.wrong(n, "%s has to be a list", what)
		return nil
	}
	if len(n.Content) > most {
		l.wrong(n, "%s has %d entries, more than %d", what, len(n.Content), most)
		return nil
	}
	return n.Content
}

// words reads a text, or a list of texts.
func (l *loader) words(n *yaml.Node, key string) (all []*yaml.Node) {
	entries := []*yaml.Node{n}
	if aliased(n).Kind == yaml.SequenceNode {
		entries = aliased(n).Content
	}
	for _, e := range entries {
		e = aliased(e)
		before := len(l.problems)
		if l.text(e, key); len(l.problems) == before {
			all = append(all, e)
		}
	}
	return all
}

// text reads a text. A number, a date or a truth value isn't taken for one: whoever means
// it puts it in quotes.
func (l *loader) text(n *yaml.Node, key string) string {
	n = aliased(n)
	switch {
	case n.Kind != yaml.ScalarNode:
		l.wrong(n, "%s has to be a text", key)
	case tagged(n):
		l.wrong(n, "%s begins with !, which means something to YAML: put all of it in single quotes", key)
	case n.Tag == "!!null":
		l.wrong(n, "%s has no value", key)
	case n.Tag != "!!str":
		l.wrong(n, "%s has to be a text: put it in quotes, as %q", key, n.Value)
	default:
		return n.Value
	}
	return ""
}
