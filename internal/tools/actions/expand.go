package actions

import (
	"encoding/json"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"approvalbot/internal/tools"
)

// What the kernel takes: one argument (MAX_ARG_STRLEN, with its end), and what we pass altogether, far below its limit.
const (
	maxArgument  = 128<<10 - 1
	maxArguments = 512 << 10
)

// A value is an input as arguments are made of it.
type value struct {
	texts []string // one, unless it is a list
	given bool     // by the call, not by a default
	dash  bool     // it may begin an argument with a dash
	list  bool
}

func (v value) yes() bool { return len(v.texts) == 1 && v.texts[0] == "true" }

// values are the inputs of a call, by name; what is neither given nor has a default isn't there.
func (a *Action) values(args json.RawMessage) (map[string]value, error) {
	var raw map[string]json.RawMessage
	if err := json.Unmarshal(args, &raw); err != nil {
		return nil, failure(tools.CodeInvalidArguments, "The inputs of %s can't be read.", a.name)
	}
	all := map[string]value{}
	for _, in := range a.inputs {
		text, given := raw[in.name]
		if !given {
			text = in.fallback
		}
		delete(raw, in.name)
		if text == nil {
			continue
		}
		texts, err := in.texts(text)
		if err != nil {
			return nil, failure(tools.CodeInvalidArguments, "The input %s %s.", in.name, err)
		}
		all[in.name] = value{texts, given, mayDash(in.schema), in.list()}
	}
	for name := range raw {
		return nil, failure(tools.CodeInvalidArguments, "There is no input %q.", name)
	}
	return all, nil
}

// texts are what an input is as text.
func (in *input) texts(raw json.RawMessage) ([]string, error) {
	kind := in.schema.Type
	if !in.list() {
		text, err := asText(raw, kind)
		return []string{text}, err
	}
	var items []json.RawMessage
	if err := json.Unmarshal(raw, &items); err != nil {
		return nil, fmt.Errorf("has to be a list")
	}
	texts := make([]string, len(items))
	for i, item := range items {
		var err error
		if texts[i], err = asText(item, in.schema.Items.Type); err != nil {
			return nil, err
		}
	}
	return texts, nil
}

// asText is a scalar of JSON as text. Numbers stay as they were written; an integer that was written as 3.0 or 3e2 is
// written out, since programs know no such integers.
func asText(raw json.RawMessage, kind string) (string, error) {
	if kind == "string" {
		var s string
		if err := json.Unmarshal(raw, &s); err != nil {
			return "", fmt.Errorf("has to be text")
		}
		return s, fit(s)
	}
	text := strings.TrimSpace(string(raw))
	switch {
	case kind == "boolean" && (text == "true" || text == "false"):
		return text, nil
	case kind == "integer" && digits.MatchString(text) && len(text) <= 40:
		return text, nil
	case kind == "number" && number.MatchString(text) && len(text) <= 40:
		return text, nil
	case kind == "integer" && number.MatchString(text) && len(text) <= 40:
		f, err := strconv.ParseFloat(text, 64)
		if err == nil && f == math.Trunc(f) && math.Abs(f) < 1<<53 {
			return strconv.FormatFloat(f, 'f', -1, 64), nil
		}
	}
	return "", fmt.Errorf("has to be a %s of a usable size", kind)
}

var (
	digits = regexp.MustCompile(`^-?[0-9]+$`)
	number = regexp.MustCompile(`^-?[0-9]+(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?$`)
)

// fit tells what keeps a text from being (a part of) an argument. Control characters could do to the program's output or
// log what nobody sees on a card.
func fit(s string) error {
	hidden := func(r rune) bool { return unicode.IsControl(r) && r != '\n' && r != '\t' }
	if i := strings.IndexFunc(s, hidden); i >= 0 {
		return fmt.Errorf("contains the control character %q; only line breaks and tabs can be passed", []rune(s[i:])[0])
	}
	return nil
}

// argv makes the arguments, the program first. It is the only function that does.
func (a *Action) argv(values map[string]value) ([]string, error) {
	e := expansion{values: values, used: map[string]bool{}}
	for _, g := range a.run {
		if err := e.group(g); err != nil {
			return nil, err
		}
	}
	if err := e.unused(); err != nil {
		return nil, err
	}
	if a.place != nil {
		e.argv[0] = a.place.Program
	}
	size := 0
	for _, arg := range e.argv {
		size += len(arg) + 1
		if len(arg) > maxArgument || size > maxArguments {
			return nil, failure(tools.CodeTooLarge, "The arguments are too long: one can have %d bytes, all together %d.", maxArgument, maxArguments)
		}
	}
	return e.argv, nil
}

// An expansion is the making of arguments.
type expansion struct {
	values  map[string]value
	used    map[string]bool
	argv    []string
	options bool // a literal -- came: what follows are no options
}

func (e *expansion) group(g group) error {
	if g.when != "" && !e.values[g.when].yes() {
		e.used[g.when] = true // its no is what it does
		return nil
	}
	if g.whole && slices.ContainsFunc(g.inputs(), func(name string) bool { return len(e.values[name].texts) == 0 }) {
		return nil
	}
	if g.when != "" {
		e.used[g.when] = true
	}
	for _, arg := range g.args {
		if err := e.argument(arg); err != nil {
			return err
		}
	}
	return nil
}

// argument adds one argument, or one for each item of its list.
func (e *expansion) argument(arg argument) error {
	times := 1
	for _, name := range arg.inputs() {
		e.used[name] = true
		if v := e.values[name]; v.list {
			times = len(v.texts)
		}
	}
	for i := range times {
		var text strings.Builder
		for _, p := range arg.template {
			text.WriteString(p.text)
			if p.input == "" {
				continue
			}
			v := e.values[p.input]
			one := v.texts[min(i, len(v.texts)-1)]
			if text.Len() == 0 && strings.HasPrefix(one, "-") && !v.dash && !e.options {
				return failure(tools.CodeInvalidArguments, "The input %s may not begin with a dash: the program would take %q for an option.", p.input, one)
			}
			text.WriteString(one)
		}
		e.argv = append(e.argv, text.String())
	}
	if text, fixed := arg.literal(); fixed && text == "--" {
		e.options = true
	}
	return nil
}

// unused refuses an input that would have no effect: whoever gave it wanted one. An empty list and a false have theirs.
func (e *expansion) unused() error {
	for name, v := range e.values {
		if v.given && !e.used[name] && len(v.texts) > 0 {
			return failure(tools.CodeInvalidArguments, "The input %s has no effect without another one that belongs to it, which wasn't given; give both or neither.", name)
		}
	}
	return nil
}

// plainWord is a value that can stand in a sentence as it is.
var plainWord = regexp.MustCompile(`^[\pL\pN_./:@+=#,-]+$`)

// quotes keeps a value from ending the quotes that it stands in.
var quotes = strings.NewReplacer("“", `"`, "”", `"`, "„", `"`, "‟", `"`)

// heading is a template as one line for people. A value that could be taken for a part of the sentence stands in quotes.
func (t template) heading(values map[string]value) string {
	var b strings.Builder
	for _, p := range t {
		b.WriteString(p.text)
		if p.input == "" {
			continue
		}
		var shown []string
		for _, text := range values[p.input].texts {
			if !plainWord.MatchString(text) {
				text = "“" + quotes.Replace(strings.Join(strings.Fields(text), " ")) + "”"
			}
			shown = append(shown, text)
		}
		b.WriteString(strings.Join(shown, ", "))
	}
	return strings.TrimSpace(b.String())
}
