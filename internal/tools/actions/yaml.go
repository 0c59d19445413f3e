package actions

import (
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"approvalbot/internal/spelling"
)

// maxFile is the most bytes of a file of actions.
const maxFile = 1 << 20

// document reads the one document of a file. What it returns is a mapping.
func (p *problems) document(text []byte) *yaml.Node {
	if len(text) > maxFile {
		p.add(1, "the file has %d bytes; %d is the most", len(text), maxFile)
		return nil
	}
	d := yaml.NewDecoder(strings.NewReader(string(text)))
	var doc, more yaml.Node
	if err := d.Decode(&doc); err != nil {
		if len(strings.TrimSpace(string(text))) == 0 {
			p.add(1, "the file is empty; it has to begin with: actions:")
			return nil
		}
		line, text := yamlError(err)
		p.add(line, "this is not YAML: %s", text)
		return nil
	}
	if err := d.Decode(&more); err == nil {
		p.add(more.Line, "there is a second document behind ---; put everything into one")
	}
	if doc.Kind != yaml.DocumentNode || len(doc.Content) != 1 || doc.Content[0].Kind != yaml.MappingNode {
		p.add(1, "the file has to begin with: actions:")
		return nil
	}
	return doc.Content[0]
}

var yamlLine = regexp.MustCompile(`^(?:line (\d+): )?(.*)$`)

// yamlError is the line and the text of a syntax error, without the library's name.
func yamlError(err error) (int, string) {
	m := yamlLine.FindStringSubmatch(strings.TrimPrefix(strings.ReplaceAll(err.Error(), "\n", " "), "yaml: "))
	line, _ := strconv.Atoi(m[1]) // not said: the first
	return max(line, 1), m[2]
}

// A field is one entry of a mapping.
type field struct {
	name  string
	key   *yaml.Node
	value *yaml.Node
}

// fields are the entries of a mapping, each name once, in their order. known are the names that there may be; nil: any.
func (p *problems) fields(n *yaml.Node, what string, known []string) []field {
	if n.Kind != yaml.MappingNode {
		p.add(n.Line, "%s has to be a mapping (name: value), and is %s", what, kindOf(n))
		return nil
	}
	var all []field
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		switch {
		case key.Kind != yaml.ScalarNode || key.ShortTag() == "!!merge":
			p.add(key.Line, "%s: the names in a mapping have to be plain words", what)
			continue
		case slices.ContainsFunc(all, func(f field) bool { return f.name == key.Value }):
			p.add(key.Line, "%s: %s is there twice", what, key.Value)
			continue
		case known != nil && !slices.Contains(known, key.Value):
			p.add(key.Line, "%s has no %q%s", what, key.Value, suggestion(key.Value, known))
			continue
		}
		all = append(all, field{key.Value, key, value})
	}
	return all
}

// suggestion says what was probably meant, or what there is.
func suggestion(name string, known []string) string {
	for _, k := range known {
		begun := len(name) >= 4 && strings.HasPrefix(strings.ToLower(k), strings.ToLower(name))
		if begun || spelling.Distance(strings.ToLower(name), strings.ToLower(k)) <= 1+len(k)/5 {
			return "; did you mean " + k + "?"
		}
	}
	if len(known) == 0 {
		return ""
	}
	return "; there is " + oneOf(known)
}

func kindOf(n *yaml.Node) string {
	switch n.Kind {
	case yaml.MappingNode:
		return "a mapping"
	case yaml.SequenceNode:
		return "a list"
	case yaml.AliasNode:
		return "an alias (*" + n.Value + "), which isn't read here: write it out"
	}
	switch n.ShortTag() {
	case "!!null":
		return "empty"
	case "!!bool":
		return "true or false (" + n.Value + ")"
	case "!!int", "!!float":
		return "a number (" + n.Value + ")"
	case "!!timestamp":
		return "a date (put it in quotes)"
	}
	return "text"
}

// text reads a text that is not empty. A number or a date would have to be quoted to be one.
func (p *problems) text(n *yaml.Node, what string) string {
	if n.Kind != yaml.ScalarNode || n.ShortTag() != "!!str" {
		p.add(n.Line, "%s has to be text, and is %s", what, kindOf(n))
		return ""
	}
	if strings.TrimSpace(n.Value) == "" {
		p.add(n.Line, "%s is empty", what)
	}
	return n.Value
}

// literal reads what stands there, be it text or a number: an argument is text in any case.
func (p *problems) literal(n *yaml.Node, what string) (string, bool) {
	if n.Kind != yaml.ScalarNode || n.ShortTag() == "!!null" || n.ShortTag() == "!!binary" {
		p.add(n.Line, "%s has to be text, and is %s", what, kindOf(n))
		return "", false
	}
	if strings.ContainsRune(n.Value, 0) {
		p.add(n.Line, "%s contains a NUL character, which no program can be given", what)
		return "", false
	}
	return n.Value, true
}

func (p *problems) items(n *yaml.Node, what string) []*yaml.Node {
	if n.Kind != yaml.SequenceNode {
		p.add(n.Line, "%s has to be a list, and is %s", what, kindOf(n))
		return nil
	}
	return n.Content
}

// names reads a list of texts; one text may stand for a list, its parts separated by commas as in a setting.
func (p *problems) names(n *yaml.Node, what string) []string {
	if n.Kind == yaml.ScalarNode {
		var all []string
		for part := range strings.SplitSeq(p.text(n, what), ",") {
			all = append(all, strings.TrimSpace(part))
		}
		return all
	}
	var all []string
	for _, item := range p.items(n, what) {
		name := p.text(item, "an entry of "+what)
		if slices.Contains(all, name) {
			p.add(item.Line, "%s names %s twice", what, name)
		}
		all = append(all, name)
	}
	return all
}

func (p *problems) boolean(n *yaml.Node, what string) bool {
	if n.Kind != yaml.ScalarNode || n.ShortTag() != "!!bool" {
		p.add(n.Line, "%s has to be true or false, and is %s", what, kindOf(n))
	}
	return n.Value == "true" || n.Value == "True" || n.Value == "TRUE"
}

func (p *problems) integer(n *yaml.Node, what string, least, most int) int {
	var v int
	if n.Kind != yaml.ScalarNode || n.ShortTag() != "!!int" || n.Decode(&v) != nil {
		p.add(n.Line, "%s has to be a whole number, and is %s", what, kindOf(n))
		return 0
	}
	if v < least || v > most {
		p.add(n.Line, "%s: %d has to be between %d and %d", what, v, least, most)
	}
	return v
}

func (p *problems) duration(n *yaml.Node, what string, least, most time.Duration) time.Duration {
	d, err := time.ParseDuration(n.Value)
	switch {
	case n.Kind != yaml.ScalarNode || err != nil:
		p.add(n.Line, "%s has to be a duration such as 90s or 15m", what)
	case d < least || d > most:
		p.add(n.Line, "%s: %s has to be between %s and %s", what, n.Value, least, most)
	}
	return d
}

func (p *problems) choice(n *yaml.Node, what string, choices ...string) string {
	if n.Kind != yaml.ScalarNode || !slices.Contains(choices, n.Value) {
		p.add(n.Line, "%s has to be %s, and is %q", what, oneOf(choices), n.Value)
		return ""
	}
	return n.Value
}

// value is a node as a value of JSON.
func (p *problems) value(n *yaml.Node, what string) any {
	switch n.Kind {
	case yaml.MappingNode:
		m := map[string]any{}
		for _, f := range p.fields(n, what, nil) {
			m[f.name] = p.value(f.value, what)
		}
		return m
	case yaml.SequenceNode:
		list := make([]any, len(n.Content))
		for i, item := range n.Content {
			list[i] = p.value(item, what)
		}
		return list
	case yaml.ScalarNode:
		return p.scalar(n, what)
	}
	p.add(n.Line, "%s is %s", what, kindOf(n))
	return nil
}

// scalar is a scalar as a value of JSON. Dates are the text that they are written as: JSON has none.
func (p *problems) scalar(n *yaml.Node, what string) any {
	switch tag := n.ShortTag(); tag {
	case "!!str", "!!timestamp":
		return n.Value
	case "!!null", "!!bool", "!!int", "!!float":
		var v any
		if err := n.Decode(&v); err != nil {
			p.add(n.Line, "%s: %q can't be read as %s", what, n.Value, kindOf(n))
			return nil
		}
		if f, ok := v.(float64); ok && (math.IsInf(f, 0) || math.IsNaN(f)) {
			p.add(n.Line, "%s: %s is no number that JSON has", what, n.Value)
			return nil
		}
		return v
	default:
		p.add(n.Line, "%s: the tag %s isn't read here", what, tag)
		return nil
	}
}
