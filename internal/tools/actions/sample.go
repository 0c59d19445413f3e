package actions

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"

	"approvalbot/internal/tools"
)

// Samples are arguments to show the action with: its examples, or else made from the schema. It is an error if neither
// can be.
func (a *Action) Samples() ([]json.RawMessage, error) {
	if len(a.examples) > 0 {
		return slices.Clone(a.examples), nil
	}
	values := map[string]any{}
	for _, in := range a.inputs {
		if !in.sure() {
			continue
		}
		v, ok := sample(in.name, in.schema)
		if !ok {
			return nil, fmt.Errorf("no value for %s can be made up; give the action examples: [{%[1]s: …}], or the input examples", in.name)
		}
		values[in.name] = v
	}
	raw, err := json.Marshal(values)
	if err != nil {
		return nil, err
	}
	args, err := tools.ParseArguments(a.spec, raw)
	if err != nil {
		return nil, err
	}
	return []json.RawMessage{args}, nil
}

// sample makes up a value that fits.
func sample(name string, s *jsonschema.Schema) (any, bool) {
	var candidates []any
	candidates = append(candidates, s.Examples...)
	if s.Default != nil {
		var v any
		if json.NewDecoder(bytes.NewReader(s.Default)).Decode(&v) == nil {
			candidates = append(candidates, v)
		}
	}
	candidates = append(candidates, s.Enum...)
	if s.Const != nil {
		candidates = append(candidates, *s.Const)
	}
	switch s.Type {
	case "string":
		for _, text := range []string{name, strings.ReplaceAll(name, "_", "-"), "example", "main", "v1.2.3", "1", "a", "abcd1234", "ABC-123", "https://example.com/"} {
			candidates = append(candidates, text)
		}
	case "integer", "number":
		for _, limit := range []*float64{s.Minimum, s.Maximum} {
			if limit != nil {
				candidates = append(candidates, *limit)
			}
		}
		candidates = append(candidates, 1.0, 2.0, 10.0, 100.0, 0.0)
	case "boolean":
		candidates = append(candidates, true)
	case "array":
		if item, ok := sample(name, s.Items); ok {
			candidates = append(candidates, []any{item}, []any{item, item})
		}
	}
	for _, c := range candidates {
		if valid(s, c) {
			return c, true
		}
	}
	return nil, false
}
