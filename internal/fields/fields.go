// Package fields reads a tool's JSON Schema and the arguments of a call as a form: one field for each argument, as somebody
// can fill it in.
//
// # Life of a form
//
// [Of] makes the fields of a call: what each is called, what it takes, what stands in it now. A surface shows them and gives
// back what was written into them; [Field.Read] makes a JSON value of that, and [Merge] puts the values that are new into
// the arguments. What nobody touched keeps its exact bytes. Whether the result fits the schema is for the schema to say,
// as of any arguments: a form is a help, never a judge.
//
// # What can't be shown
//
// A field takes a text, a number, yes or no, or one of a few values. Everything else (lists, objects, what the schema leaves
// open) is its JSON text. Arguments that aren't an object, and schemas that aren't one's, have no form.
package fields

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

// A Kind is what a field takes.
type Kind string

// The kinds of fields.
const (
	Text    Kind = "text"    // a string
	Number  Kind = "number"  // a number, with a fraction or without
	Integer Kind = "integer" // a whole number
	Boolean Kind = "boolean" // true or false
	Choice  Kind = "choice"  // one of Options
	JSON    Kind = "json"    // any value, as JSON text
)

// The most fields that a form has, and the most values that a choice is made of: more is no help to anybody.
const (
	MaxFields  = 30
	MaxOptions = 100
)

// A Field is one argument of a call.
type Field struct {
	Name     string
	Title    string // for people; the name where the schema has none
	Hint     string // what the schema says about it
	Kind     Kind
	Required bool
	Long     bool              // of texts: more than a line
	Options  []json.RawMessage // of a choice, and of true or false

	Set   bool            // the call has it
	Raw   json.RawMessage // its value, exactly
	Value string          // what stands in an input for it: a text itself, else JSON
}

// ErrNoForm says that there is no form for a call.
var ErrNoForm = errors.New("there is no form for this call")

// schema is what a form needs of a JSON Schema.
type schema struct {
	Title       string                     `json:"title"`
	Description string                     `json:"description"`
	Type        json.RawMessage            `json:"type"`
	Enum        []json.RawMessage          `json:"enum"`
	Properties  map[string]json.RawMessage `json:"properties"`
	Required    []string                   `json:"required"`
	MaxLength   *int                       `json:"maxLength"`
}

// Of makes the fields of a call: those that it needs, in the order in which its schema requires them, then the others by
// name.
func Of(toolSchema, arguments json.RawMessage) ([]Field, error) {
	var s schema
	if err := json.Unmarshal(toolSchema, &s); err != nil {
		return nil, fmt.Errorf("%w: its schema can't be read", ErrNoForm)
	}
	if t := types(s.Type); len(t) > 1 || len(t) == 1 && t[0] != "object" {
		return nil, fmt.Errorf("%w: its arguments are no object", ErrNoForm)
	}
	var now map[string]json.RawMessage
	if err := json.Unmarshal(arguments, &now); err != nil || now == nil {
		return nil, fmt.Errorf("%w: its arguments can't be read", ErrNoForm)
	}
	names := order(s, now)
	switch {
	case len(names) == 0:
		return nil, fmt.Errorf("%w: it takes no arguments", ErrNoForm)
	case len(names) > MaxFields:
		return nil, fmt.Errorf("%w: it takes more than %d arguments", ErrNoForm, MaxFields)
	}
	out := make([]Field, len(names))
	for i, name := range names {
		raw, set := now[name]
		out[i] = field(name, s.Properties[name], raw, set)
		out[i].Required = slices.Contains(s.Required, name)
	}
	return out, nil
}

// order names the arguments of a call: those of the schema, and those that it has besides.
func order(s schema, now map[string]json.RawMessage) []string {
	var names []string
	for _, name := range s.Required {
		if _, known := s.Properties[name]; (known || now[name] != nil) && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	rest := map[string]bool{}
	for name := range s.Properties {
		rest[name] = true
	}
	for name := range now {
		rest[name] = true
	}
	for _, name := range names {
		delete(rest, name)
	}
	return append(names, slices.Sorted(maps.Keys(rest))...)
}

// field makes the field of one argument. What the call has decides where the schema lets it be several things.
func field(name string, raw json.RawMessage, value json.RawMessage, set bool) Field {
	var s schema
	if json.Unmarshal(raw, &s) != nil { // true, or nothing: any value
		s = schema{}
	}
	f := Field{Name: name, Title: s.Title, Hint: strings.TrimSpace(s.Description), Kind: kindOf(s, value, set), Set: set, Raw: value}
	if strings.TrimSpace(f.Title) == "" {
		f.Title = name
	}
	switch f.Kind {
	case Choice:
		f.Options = s.Enum
	case Boolean:
		f.Options = []json.RawMessage{json.RawMessage("true"), json.RawMessage("false")}
	}
	if set {
		f.Value = f.written(value)
	}
	f.Long = f.Kind == JSON || f.Kind == Text && (slices.Contains(long, name) || strings.Contains(f.Value, "\n") ||
		utf8.RuneCountInString(f.Value) > 80 || s.MaxLength != nil && *s.MaxLength > 4000)
	return f
}

// long are the names of what usually has several lines.
var long = []string{"content", "command", "body", "text", "message", "old_text", "new_text", "script", "query", "sql", "prompt", "description"}

// plainNumber is a number as people write one, and as an input for numbers takes it.
var plainNumber = regexp.MustCompile(`^-?\d{1,15}(\.\d{1,9})?$`)

func kindOf(s schema, value json.RawMessage, set bool) Kind {
	if n := len(s.Enum); n > 0 && n <= MaxOptions && (!set || slices.ContainsFunc(s.Enum, func(o json.RawMessage) bool { return same(o, value) })) {
		return Choice
	}
	t := types(s.Type)
	if !set && len(t) != 1 || len(t) == 0 {
		return JSON
	}
	for _, name := range t {
		k, ok := map[string]Kind{"string": Text, "number": Number, "integer": Integer, "boolean": Boolean}[name]
		switch {
		case !ok:
			continue
		case !set && len(t) == 1:
			return k
		case k == Text && begins(value, '"'),
			k == Boolean && (string(value) == "true" || string(value) == "false"),
			k == Number && plainNumber.Match(value),
			k == Integer && plainNumber.Match(value) && !bytes.ContainsRune(value, '.'):
			return k
		}
	}
	return JSON
}

func begins(value json.RawMessage, c byte) bool { return len(value) > 0 && value[0] == c }

// types are the names in a schema's type, which is one or a list of them.
func types(raw json.RawMessage) []string {
	var one string
	if json.Unmarshal(raw, &one) == nil && one != "" {
		return []string{one}
	}
	var many []string
	_ = json.Unmarshal(raw, &many)
	return many
}

// written is a value as it stands in an input.
func (f Field) written(value json.RawMessage) string {
	var s string
	if f.Kind == Text && json.Unmarshal(value, &s) == nil {
		return s
	}
	if f.Kind != JSON {
		return string(value)
	}
	var out bytes.Buffer
	if json.Indent(&out, value, "", "  ") != nil {
		return string(value)
	}
	return out.String()
}

// Option finds which of a field's options its value is; -1: none.
func (f Field) Option() int {
	if !f.Set {
		return -1
	}
	return slices.IndexFunc(f.Options, func(o json.RawMessage) bool { return same(o, f.Raw) })
}

// AsJSON is the field as one in which its value is written as JSON text: what any value can be written in.
func (f Field) AsJSON() Field {
	f.Kind, f.Options, f.Long, f.Value = JSON, nil, true, ""
	if f.Set {
		f.Value = f.written(f.Raw)
	}
	return f
}

// same compares values that may be written in more than one way. Of numbers only the digits count: read as a computer
// does, two large ones that differ are the same, and what somebody chose would not be what runs.
func same(a, b json.RawMessage) bool {
	p, err1 := normal(a)
	q, err2 := normal(b)
	return err1 == nil && err2 == nil && bytes.Equal(p, q)
}

func normal(value json.RawMessage) ([]byte, error) {
	dec := json.NewDecoder(bytes.NewReader(value))
	dec.UseNumber()
	var v any
	if err := dec.Decode(&v); err != nil {
		return nil, err
	}
	return json.Marshal(v)
}

// What is wrong with what was written into a field.
var (
	ErrNotNumber  = errors.New("not a number")
	ErrNotInteger = errors.New("not a whole number")
	ErrNotJSON    = errors.New("not JSON")
	ErrNoChoice   = errors.New("not one of the choices")
	ErrMissing    = errors.New("missing")
)

// Read makes the argument of what was written into a field: a text, or the number of the option that was chosen. It is nil
// where the field was left empty and the call need not have it. touched is false where it is what it was.
func (f Field) Read(written string) (value json.RawMessage, touched bool, err error) {
	if plain(written) == plain(f.Value) && f.Kind != Choice && f.Kind != Boolean {
		return f.Raw, false, nil
	}
	switch f.Kind {
	case Choice, Boolean:
		return f.choose(written)
	case Text:
		return f.text(written)
	}
	written = strings.TrimSpace(written)
	switch {
	case written == "" && f.Required:
		return nil, true, ErrMissing
	case written == "":
		return nil, f.Set, nil
	case f.Kind == JSON && !jsontext.Value(written).IsValid(): // nor with a member that is there twice
		return nil, true, ErrNotJSON
	case f.Kind == Number && !numeral(written):
		return nil, true, ErrNotNumber
	case f.Kind == Integer && !whole(written):
		return nil, true, ErrNotInteger
	}
	return json.RawMessage(written), true, nil
}

// plain is a text without what an input may do to it on its own.
func plain(s string) string {
	return strings.TrimRight(strings.ReplaceAll(s, "\r\n", "\n"), " \t\r\n")
}

// choose reads which option was chosen.
func (f Field) choose(written string) (json.RawMessage, bool, error) {
	if written == "" {
		if f.Required && !f.Set {
			return nil, true, ErrMissing
		}
		return f.Raw, false, nil // what was chosen can't be taken back: it is as it was
	}
	i, err := strconv.Atoi(written)
	if err != nil || i < 0 || i >= len(f.Options) {
		return nil, true, ErrNoChoice
	}
	if i == f.Option() {
		return f.Raw, false, nil
	}
	return f.Options[i], true, nil
}

// text reads a string. An empty one that the call need not have is none.
func (f Field) text(written string) (json.RawMessage, bool, error) {
	written = strings.ReplaceAll(written, "\r\n", "\n")
	if written == "" && !f.Required {
		return nil, f.Set, nil
	}
	value, err := quoted(written)
	return value, true, err
}

// quoted is a text as JSON, with nothing escaped that need not be.
func quoted(s string) (json.RawMessage, error) {
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(s); err != nil {
		return nil, err
	}
	return bytes.TrimRight(out.Bytes(), "\n"), nil
}

func numeral(s string) bool {
	var n json.Number
	return json.Unmarshal([]byte(s), &n) == nil && s[0] != '"'
}

func whole(s string) bool {
	_, digits, _ := strings.Cut(s, "-")
	if !strings.HasPrefix(s, "-") {
		digits = s
	}
	return numeral(s) && digits != "" && strings.Trim(digits, "0123456789") == ""
}

// Merge puts new values into a call's arguments; a nil one takes the argument away. What isn't new keeps its bytes.
func Merge(arguments json.RawMessage, changed map[string]json.RawMessage) (json.RawMessage, error) {
	var all map[string]json.RawMessage
	if err := json.Unmarshal(arguments, &all); err != nil || all == nil {
		return nil, fmt.Errorf("%w: its arguments can't be read", ErrNoForm)
	}
	for name, value := range changed {
		if value == nil {
			delete(all, name)
		} else {
			all[name] = value
		}
	}
	var out bytes.Buffer
	out.WriteByte('{')
	for i, name := range slices.Sorted(maps.Keys(all)) {
		if i > 0 {
			out.WriteByte(',')
		}
		key, err := quoted(name)
		if err != nil {
			return nil, err
		}
		out.Write(key)
		out.WriteByte(':')
		out.Write(all[name])
	}
	out.WriteByte('}')
	return out.Bytes(), nil
}
