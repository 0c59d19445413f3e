package tools

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// MaxArguments is the most bytes that a call's arguments may have. It is far
// above what a model writes in one go, and low enough to show, hash and keep.
const MaxArguments = 1 << 20

// ParseArguments reads what a model wrote as the arguments of a call to the
// tool, and returns their canonical form: one JSON object, compact, members
// sorted, strings in their shortest encoding, number literals as written (so
// 1.0 and 1 are different bytes: nothing is rounded behind anybody's back).
// The canonical form of a canonical form is itself. Nothing at all counts as
// {}, because some models write that for a call without arguments.
//
// Whatever can't be read in exactly one way is refused with an *[Error] of code
// INVALID_ARGUMENTS: invalid JSON or UTF-8, duplicate members, more than one
// value, anything but an object, and what doesn't fit the tool's schema.
func ParseArguments(spec Spec, raw []byte) (json.RawMessage, error) {
	if len(raw) > MaxArguments {
		return nil, errorf(CodeInvalidArguments, "The arguments of %s have %d bytes; %d is the most.", spec.Name, len(raw), MaxArguments)
	}
	canonical, err := canonicalObject(raw)
	if err != nil {
		return nil, errorf(CodeInvalidArguments, "The arguments of %s are not one JSON object: %s.", spec.Name, reason(err))
	}
	if err := validate(spec, canonical); err != nil {
		return nil, errorf(CodeInvalidArguments, "The arguments don't fit the schema of %s: %s.", spec.Name, reason(err))
	}
	return canonical, nil
}

func canonicalObject(raw []byte) (json.RawMessage, error) {
	if len(bytes.Trim(raw, " \t\r\n")) == 0 {
		return json.RawMessage("{}"), nil
	}
	// Format writes into its receiver, and raw belongs to the caller.
	v := jsontext.Value(bytes.Clone(raw))
	// Its defaults are the strict ones: duplicate names and invalid UTF-8 are
	// errors, whitespace goes, strings are re-encoded, numbers stay.
	if err := v.Format(jsontext.ReorderRawObjects(true)); err != nil {
		return nil, err
	}
	if v.Kind() != '{' {
		return nil, fmt.Errorf("it is a %s", kindName(v.Kind()))
	}
	return json.RawMessage(v), nil
}

func kindName(k jsontext.Kind) string {
	switch k {
	case '[':
		return "list"
	case '"':
		return "string"
	case '0':
		return "number"
	case 't', 'f':
		return "boolean"
	}
	return k.String()
}

// validate checks canonical arguments against the tool's schema. A tool without
// a schema that can be used takes no arguments at all.
func validate(spec Spec, canonical json.RawMessage) error {
	if spec.InputSchema == nil {
		return fmt.Errorf("the tool has none")
	}
	schema, err := spec.InputSchema.Resolve(nil)
	if err != nil {
		return fmt.Errorf("the schema itself is wrong: %w", err)
	}
	var value map[string]any
	if err := json.Unmarshal(canonical, &value); err != nil {
		return err // a number beyond what any schema could judge
	}
	return schema.Validate(value)
}

// reason is an error's text, without a library's name for the place, as the end
// of a sentence and of a bearable length: it may quote what a model wrote.
func reason(err error) string {
	text := strings.TrimPrefix(err.Error(), "validating root: ")
	text = strings.TrimPrefix(text, "jsontext: ")
	return shorten(oneLine(strings.TrimSuffix(text, ".")), 400)
}

// decode fills v from canonical arguments that fit the schema. A failure is the
// model's fault only in theory; still it is told and nothing runs.
func decode(spec Spec, args json.RawMessage, v any) error {
	if err := json.Unmarshal(args, v); err != nil {
		return errorf(CodeInvalidArguments, "The arguments of %s can't be read: %s.", spec.Name, reason(err))
	}
	return nil
}

// count is a whole number in the arguments, in any way that JSON allows to
// write one: 3, 3.0 and 3e0 are integers to a JSON schema, but not to an int.
type count int

func (c *count) UnmarshalJSON(b []byte) error {
	var f float64
	if err := json.Unmarshal(b, &f); err != nil {
		return err
	}
	if f != math.Trunc(f) || math.Abs(f) > math.MaxInt32 {
		return fmt.Errorf("%s is not a whole number of a usable size", b)
	}
	*c = count(f)
	return nil
}
