package tools

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"
)

// defined is a tool whose calls depend on more than its spec says.
type defined struct{ definition any }

func (defined) Spec() Spec {
	return Spec{Name: "t", InputSchema: &jsonschema.Schema{Type: "object"}}
}
func (defined) Describe(json.RawMessage) (Preview, error)             { return Preview{}, nil }
func (defined) Call(context.Context, json.RawMessage) (Output, error) { return Output{}, nil }
func (d defined) Definition() any                                     { return d.definition }

// plainTool is the same one, with nothing more to say.
type plainTool struct{ Tool }

func (plainTool) Definition() {} // of another shape: none

// An approval holds for the whole definition, also for what the spec doesn't show.
func TestHashCoversMoreThanTheSpec(t *testing.T) {
	hash := func(tool Tool) string {
		s, err := NewSet(tool)
		if err != nil {
			t.Fatal(err)
		}
		h, ok := s.Hash("t")
		if !ok || len(h) != 64 {
			t.Fatalf("hash %q", h)
		}
		return h
	}
	a := hash(defined{map[string]any{"run": []string{"a"}, "dir": "/"}})
	if a != hash(defined{map[string]any{"dir": "/", "run": []string{"a"}}}) {
		t.Error("one definition has two hashes")
	}
	if a == hash(defined{map[string]any{"dir": "/", "run": []string{"b"}}}) || a == hash(plainTool{defined{}}) {
		t.Error("two definitions have one hash")
	}
	if _, err := NewSet(defined{func() {}}); err == nil {
		t.Error("a definition that can't be hashed was taken")
	}
}
