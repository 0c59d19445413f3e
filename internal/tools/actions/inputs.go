package actions

import (
	"encoding/json"
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"
	"go.yaml.in/yaml/v3"
)

// An input is something that whoever calls the action chooses.
type input struct {
	name     string
	line     int
	schema   *jsonschema.Schema
	optional bool
	fallback json.RawMessage // the default; nil: none
}

// list tells whether it stands for several arguments.
func (i *input) list() bool { return i.schema.Type == "array" }

// sure tells whether it always has a value.
func (i *input) sure() bool { return !i.optional || i.fallback != nil }

// keywords are the words of JSON Schema that an input may use: those that are checked, and that say something to a model.
var keywords = []string{
	"type", "description", "title", "enum", "const", "default", "examples", "pattern", "minLength", "maxLength",
	"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "items", "minItems", "maxItems", "uniqueItems",
}

// notKeywords are words that somebody may well try, with what to write instead.
var notKeywords = map[string]string{
	"required":   "every input is required unless it has a default or is listed under optional:",
	"optional":   "list the names under optional:, beside inputs:",
	"format":     "a format isn't checked; use a pattern",
	"properties": "an input is one value or a list of them; make an input of each property",
	"secret":     "an input is seen by the model and on the card; a secret belongs under secrets:",
}

var scalarTypes = []string{"string", "integer", "number", "boolean"}

// readInputs reads the properties of the schema.
func (p *problems) readInputs(n *yaml.Node) []*input {
	var all []*input
	for _, f := range p.fields(n, "inputs", nil) {
		if !inputName.MatchString(f.name) {
			p.add(f.key.Line, "the input %q has to be called by letters, digits and _, a letter first", f.name)
			continue
		}
		if s := p.readSchema(f.value, "the input "+f.name, true); s != nil {
			all = append(all, &input{name: f.name, line: f.key.Line, schema: s, fallback: s.Default})
		}
	}
	return all
}

// readSchema reads the schema of an input or of the items of a list.
func (p *problems) readSchema(n *yaml.Node, what string, lists bool) *jsonschema.Schema {
	before := len(p.list)
	if n.Kind != yaml.MappingNode {
		p.add(n.Line, "%s has to say what it is, {type: string, description: …}, and is %s", what, kindOf(n))
		return nil
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		if instead, known := notKeywords[n.Content[i].Value]; known {
			p.add(n.Content[i].Line, "%s has no %s: %s", what, n.Content[i].Value, instead)
		}
	}
	if len(p.list) > before {
		return nil
	}
	fields := p.fields(n, what, keywords)
	if len(p.list) > before {
		return nil
	}
	s := &jsonschema.Schema{}
	var items *jsonschema.Schema
	raw := map[string]any{}
	for _, f := range fields {
		if f.name == "items" && lists {
			items = p.readSchema(f.value, "an item of "+what, false)
			continue
		}
		raw[f.name] = p.keyword(f, what)
	}
	if len(p.list) > before {
		return nil
	}
	text, err := json.Marshal(raw)
	if err == nil {
		err = json.Unmarshal(text, s)
	}
	if err != nil {
		p.add(n.Line, "%s: %s", what, schemaError(err))
		return nil
	}
	s.Items = items
	p.checkSchema(n, what, s, lists)
	if len(p.list) > before {
		return nil
	}
	return s
}

// keyword reads the value of one word of a schema. It is tried alone, so that an error can name it.
func (p *problems) keyword(f field, what string) any {
	v := p.value(f.value, what+", "+f.name)
	text, err := json.Marshal(map[string]any{f.name: v})
	if err != nil || json.Unmarshal(text, &jsonschema.Schema{}) != nil {
		p.add(f.value.Line, "%s: %s can't be %s", what, f.name, kindOf(f.value))
	}
	return v
}

func schemaError(err error) string {
	return strings.TrimPrefix(strings.ReplaceAll(err.Error(), "\n", "; "), "json: ")
}

func (p *problems) checkSchema(n *yaml.Node, what string, s *jsonschema.Schema, lists bool) {
	types := scalarTypes
	if lists {
		types = append(slices.Clone(types), "array")
	}
	if !slices.Contains(types, s.Type) {
		p.add(n.Line, "%s needs a type: %s", what, oneOf(types))
		return
	}
	if s.Type == "array" && s.Items == nil {
		p.add(n.Line, "%s is a list and has to say of what: items: {type: string}", what)
		return
	}
	if s.Type != "array" && s.Items != nil {
		p.add(n.Line, "%s has items and isn't an array", what)
	}
	if s.Pattern != "" {
		p.checkPattern(n, what, s.Pattern)
	}
	if _, err := s.Resolve(&jsonschema.ResolveOptions{ValidateDefaults: true}); err != nil {
		p.add(n.Line, "%s: %s", what, schemaError(err))
		return
	}
	for _, v := range append(slices.Clone(s.Enum), s.Examples...) {
		if !valid(s, v) {
			p.add(n.Line, "%s: %v doesn't fit the rest of its schema", what, v)
		}
	}
}

func valid(s *jsonschema.Schema, v any) bool {
	r, err := s.Resolve(nil)
	return err == nil && r.Validate(v) == nil
}

// checkPattern wants a pattern that fits whole texts only. In JSON Schema, [a-z]+ also fits "rm -rf / # a".
func (p *problems) checkPattern(n *yaml.Node, what, pattern string) {
	if _, err := regexp.Compile(pattern); err != nil {
		p.add(n.Line, "%s: the pattern can't be used: %s", what, strings.TrimPrefix(err.Error(), "error parsing regexp: "))
		return
	}
	re, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil || !edge(re, syntax.OpBeginText, 0) || !edge(re, syntax.OpEndText, -1) {
		p.add(n.Line, "%s: the pattern %s also fits what merely contains it; write ^(?:%[2]s)$, or .* where anything may stand", what, pattern)
	}
}

// edge tells whether all that a pattern fits begins (at 0) or ends (at -1) with op.
func edge(re *syntax.Regexp, op syntax.Op, at int) bool {
	switch re.Op {
	case op:
		return true
	case syntax.OpConcat:
		i := 0
		if at < 0 {
			i = len(re.Sub) - 1
		}
		return edge(re.Sub[i], op, at)
	case syntax.OpCapture:
		return edge(re.Sub[0], op, at)
	case syntax.OpAlternate:
		return !slices.ContainsFunc(re.Sub, func(sub *syntax.Regexp) bool { return !edge(sub, op, at) })
	}
	return false
}

// dashPattern matches a pattern whose author thought of a dash at the beginning.
var dashPattern = regexp.MustCompile(`^\^\(?(?:\?:)?\\?-`)

// mayDash tells whether the operator wrote down that a value may begin with a dash.
func mayDash(s *jsonschema.Schema) bool {
	if s.Type == "array" {
		s = s.Items
	}
	negative := func(limit *float64) bool { return limit != nil && *limit < 0 }
	return len(s.Enum) > 0 || s.Const != nil || dashPattern.MatchString(s.Pattern) || negative(s.Minimum) || negative(s.ExclusiveMinimum)
}

// object is the schema of all inputs: these and no others.
func object(inputs []*input) *jsonschema.Schema {
	s := &jsonschema.Schema{
		Type: "object", Properties: map[string]*jsonschema.Schema{}, Required: []string{},
		AdditionalProperties: &jsonschema.Schema{Not: &jsonschema.Schema{}},
	}
	for _, in := range inputs {
		s.Properties[in.name] = in.schema
		s.PropertyOrder = append(s.PropertyOrder, in.name)
		if !in.optional {
			s.Required = append(s.Required, in.name)
		}
	}
	return s
}
