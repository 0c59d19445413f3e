package mcp

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"
)

const (
	maxSchema = 64 << 10 // bytes
	maxDepth  = 64       // levels of nesting
	// maxChecks is how many schemas one value may have to be compared with. Without a limit a short schema can ask for
	// more comparisons than there are atoms, one reference doubling the next.
	maxChecks = 10_000
)

// inputSchema is a server's schema as this program uses it: as it came, if arguments can be checked against it.
// An error says why they can't.
func inputSchema(raw any) (*jsonschema.Schema, error) {
	text, err := json.Marshal(raw)
	if err != nil {
		return nil, errors.New("its input schema is not JSON")
	}
	if len(text) > maxSchema {
		return nil, fmt.Errorf("its input schema has %d bytes; %d is the most", len(text), maxSchema)
	}
	schema := &jsonschema.Schema{}
	if err := json.Unmarshal(text, schema); err != nil {
		return nil, fmt.Errorf("its input schema can't be used: %s", short(err.Error()))
	}
	if schema.Type != "object" {
		return nil, errors.New(`its input schema is not one of an object ("type": "object"), as MCP wants it`)
	}
	if err := bounded(schema); err != nil {
		return nil, fmt.Errorf("its input schema %w", err)
	}
	if _, err := schema.Resolve(nil); err != nil {
		return nil, fmt.Errorf("its input schema can't be used: %s", short(err.Error()))
	}
	return schema, nil
}

// bounded checks that arguments can be checked against the schema with bearable work. It looks at what was understood of
// the schema, written down again, and not at the server's own bytes: there a name may be written in more than one way.
func bounded(schema *jsonschema.Schema) error {
	text, err := json.Marshal(schema)
	if err != nil {
		return fmt.Errorf("can't be used: %s", short(err.Error()))
	}
	var root map[string]any
	if err := json.Unmarshal(text, &root); err != nil {
		return fmt.Errorf("can't be used: %s", short(err.Error()))
	}
	return (&bounds{root: root, cost: map[string]int{}}).check()
}

// bounds finds out how much work a schema can make of one value. What applies to the same value (references, allOf, …)
// must come to an end by itself; what applies to a part of the value ends with the value.
type bounds struct {
	root map[string]any
	cost map[string]int // by JSON pointer; 0 while it is being found out
}

func (b *bounds) check() error {
	if err := refsAreOurs(b.root, 0); err != nil {
		return err
	}
	return b.every("", b.root)
}

// refsAreOurs checks that references lead to places in this schema that a pointer names. Other ways to name a place
// would have to be followed as the validator does, and remote ones by asking a stranger.
func refsAreOurs(v any, depth int) error {
	if depth > maxDepth {
		return fmt.Errorf("is nested more than %d deep", maxDepth)
	}
	switch v := v.(type) {
	case []any:
		for _, x := range v {
			if err := refsAreOurs(x, depth+1); err != nil {
				return err
			}
		}
	case map[string]any:
		for key, x := range v {
			if text, ok := x.(string); ok {
				switch {
				case key == "$ref" && text != "#" && !strings.HasPrefix(text, "#/"):
					return fmt.Errorf("refers to %q; only references into itself (#/…) are followed", short(text))
				case key == "$id" && depth > 0, key == "$dynamicRef", key == "$recursiveRef":
					return fmt.Errorf("uses %s, which is not supported", key)
				}
			}
			if err := refsAreOurs(x, depth+1); err != nil {
				return err
			}
		}
	}
	return nil
}

// every finds the cost of each schema in the tree, so that none is left out that a property leads to.
func (b *bounds) every(at string, v any) error {
	switch v := v.(type) {
	case []any:
		for i, x := range v {
			if err := b.every(at+"/"+strconv.Itoa(i), x); err != nil {
				return err
			}
		}
	case map[string]any:
		if _, err := b.of(at, v); err != nil {
			return err
		}
		for key, x := range v {
			if err := b.every(at+"/"+escape(key), x); err != nil {
				return err
			}
		}
	}
	return nil
}

// of is how many schemas a value is compared with by the one at that place.
func (b *bounds) of(at string, s map[string]any) (int, error) {
	if known, ok := b.cost[at]; ok {
		if known == 0 {
			return 0, errors.New("refers to itself without end")
		}
		return known, nil
	}
	b.cost[at] = 0
	total := 1
	places, err := inPlace(at, s)
	if err != nil {
		return 0, err
	}
	for _, next := range places {
		target, ok := b.at(next)
		if !ok {
			total++ // true or false: one more check
			continue
		}
		n, err := b.of(next, target)
		if err != nil {
			return 0, err
		}
		if total += n; total > maxChecks {
			return 0, fmt.Errorf("would compare one value with more than %d schemas", maxChecks)
		}
	}
	b.cost[at] = total
	return total, nil
}

// inPlace are the places of the schemas that apply to the same value as s.
func inPlace(at string, s map[string]any) (places []string, err error) {
	if ref, ok := s["$ref"].(string); ok {
		u, err := url.Parse(ref) // a reference is a URL, and its characters may be written as in one
		if err != nil {
			return nil, fmt.Errorf("refers to %q, which can't be read", short(ref))
		}
		places = append(places, u.Fragment)
	}
	for _, key := range []string{"not", "if", "then", "else"} {
		if s[key] != nil {
			places = append(places, at+"/"+key)
		}
	}
	for _, key := range []string{"allOf", "anyOf", "oneOf"} {
		list, _ := s[key].([]any)
		for i := range list {
			places = append(places, at+"/"+key+"/"+strconv.Itoa(i))
		}
	}
	for _, key := range []string{"dependentSchemas", "dependencies"} {
		named, _ := s[key].(map[string]any)
		for name := range named {
			places = append(places, at+"/"+key+"/"+escape(name))
		}
	}
	slices.Sort(places)
	return places, nil
}

var (
	escaper   = strings.NewReplacer("~", "~0", "/", "~1")
	unescaper = strings.NewReplacer("~1", "/", "~0", "~")
)

func escape(key string) string { return escaper.Replace(key) }

// at is the schema at a JSON pointer; false if there is none, which a boolean one counts as: it costs nothing.
func (b *bounds) at(pointer string) (map[string]any, bool) {
	var v any = b.root
	for key := range strings.SplitSeq(strings.TrimPrefix(pointer, "/"), "/") {
		if pointer == "" {
			break
		}
		switch in := v.(type) {
		case map[string]any:
			v = in[unescaper.Replace(key)]
		case []any:
			i, err := strconv.Atoi(key)
			if err != nil || i < 0 || i >= len(in) {
				return nil, false
			}
			v = in[i]
		default:
			return nil, false
		}
	}
	s, ok := v.(map[string]any)
	return s, ok
}
