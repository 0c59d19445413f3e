package actions

import (
	"fmt"
	"regexp/syntax"
	"slices"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"
)

// harmless tells whether all values that may stand in an argument mean nothing to a shell.
func (r *reader) harmless(a argument) bool {
	return !slices.ContainsFunc(a.inputs(), func(name string) bool {
		in := r.a.input(name)
		return in == nil || !harmlessSchema(in.schema)
	})
}

func harmlessSchema(s *jsonschema.Schema) bool {
	switch s.Type {
	case "integer", "number", "boolean":
		return true
	case "array":
		return harmlessSchema(s.Items)
	}
	values := s.Enum
	if s.Const != nil {
		values = append(slices.Clone(values), *s.Const)
	}
	if len(values) > 0 {
		return !slices.ContainsFunc(values, func(v any) bool { text := fmt.Sprint(v); return quote(text) != text })
	}
	if s.Pattern == "" {
		return false
	}
	re, err := syntax.Parse(s.Pattern, syntax.Perl)
	return err == nil && onlyPlain(re)
}

// onlyPlain tells whether a pattern fits nothing but characters that mean nothing to a shell.
func onlyPlain(re *syntax.Regexp) bool {
	switch re.Op {
	case syntax.OpLiteral:
		return re.Flags&syntax.FoldCase == 0 && strings.Trim(string(re.Rune), unquoted) == ""
	case syntax.OpCharClass:
		for i := 0; i+1 < len(re.Rune); i += 2 {
			for c := re.Rune[i]; c <= re.Rune[i+1]; c++ {
				if !strings.ContainsRune(unquoted, c) {
					return false
				}
			}
		}
		return true
	case syntax.OpAnyChar, syntax.OpAnyCharNotNL:
		return false
	}
	return !slices.ContainsFunc(re.Sub, func(sub *syntax.Regexp) bool { return !onlyPlain(sub) })
}
