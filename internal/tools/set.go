package tools

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"

	"github.com/go-json-experiment/json/jsontext"
)

// Set is the tools of a run: ordered, each name once, never changed. The nil
// Set is empty.
type Set struct {
	tools  []Tool
	hashes []string // of the definitions, in the same order
}

// What model providers accept as the name of a tool.
var toolName = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`)

// NewSet returns the set of these tools, in this order. A name that occurs
// twice or that no provider would accept, or a schema that can't be used, is an
// error now rather than when a model calls the tool.
func NewSet(tools ...Tool) (*Set, error) {
	s := &Set{}
	for _, t := range tools {
		spec := t.Spec()
		if !toolName.MatchString(spec.Name) {
			return nil, fmt.Errorf("tools: the name %q has to be 1 to 64 letters, digits, '_' or '-'", spec.Name)
		}
		if _, ok := s.Get(spec.Name); ok {
			return nil, fmt.Errorf("tools: there are two tools called %s", spec.Name)
		}
		hash, err := definitionHash(t)
		if err != nil {
			return nil, fmt.Errorf("tools: the definition of %s: %w", spec.Name, err)
		}
		s.tools = append(s.tools, t)
		s.hashes = append(s.hashes, hash)
	}
	return s, nil
}

// Set returns s, so that tools that never change can stand where tools that do
// are asked for.
func (s *Set) Set() *Set { return s }

// Get returns the tool of that name.
func (s *Set) Get(name string) (Tool, bool) {
	if i := s.index(name); i >= 0 {
		return s.tools[i], true
	}
	return nil, false
}

// Specs returns what the tools say of themselves, in the set's order.
func (s *Set) Specs() []Spec {
	if s == nil {
		return nil
	}
	specs := make([]Spec, len(s.tools))
	for i, t := range s.tools {
		specs[i] = t.Spec()
	}
	return specs
}

// Hash returns the hex SHA-256 of the definition that the tool of that name had
// when the set was made: name, description, schema and annotations, and what a
// [Defined] tool adds. An approval holds for this definition and no other.
func (s *Set) Hash(name string) (string, bool) {
	if i := s.index(name); i >= 0 {
		return s.hashes[i], true
	}
	return "", false
}

func (s *Set) index(name string) int {
	if s == nil {
		return -1
	}
	return slices.IndexFunc(s.tools, func(t Tool) bool { return t.Spec().Name == name })
}

// Schema returns the input schema as JSON, the same bytes for the same schema.
func (s Spec) Schema() (json.RawMessage, error) {
	if s.InputSchema == nil {
		return nil, fmt.Errorf("it has no input schema")
	}
	return canonicalJSON(s.InputSchema)
}

// Definition is the whole definition as JSON: the bytes whose SHA-256 is the definition's hash.
func (s Spec) Definition() (json.RawMessage, error) {
	if s.InputSchema == nil {
		return nil, fmt.Errorf("it has no input schema")
	}
	return canonicalJSON(s)
}

func (s Spec) hash() (string, error) {
	canonical, err := s.Definition()
	if err != nil {
		return "", err
	}
	_, err = s.InputSchema.Resolve(nil)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(canonical)
	return hex.EncodeToString(sum[:]), nil
}

// definitionHash is the hash of the whole definition.
func definitionHash(t Tool) (string, error) {
	spec := t.Spec()
	hash, err := spec.hash()
	d, more := t.(Defined)
	if err != nil || !more {
		return hash, err
	}
	canonical, err := canonicalJSON(struct {
		Spec       string `json:"spec"`
		Definition any    `json:"definition"`
	}{hash, d.Definition()})
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(canonical)
	return hex.EncodeToString(sum[:]), nil
}

func canonicalJSON(v any) (json.RawMessage, error) {
	raw, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	value := jsontext.Value(raw)
	if err := value.Canonicalize(); err != nil {
		return nil, err
	}
	return json.RawMessage(value), nil
}
