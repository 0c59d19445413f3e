package model

import (
	"fmt"
	"strings"
)

// Open returns the model of that name: "demo", or "script:FILE". Names of
// providers are known and refused with a sentence that says so, because their
// models come with a later version.
func Open(name string) (Model, error) {
	if name == "demo" {
		return Demo{}, nil
	}
	if file, ok := strings.CutPrefix(name, "script:"); ok {
		return OpenScript(file)
	}
	provider, rest, ok := strings.Cut(name, "/")
	switch {
	case ok && rest != "" && (provider == "anthropic" || provider == "openai"):
		return nil, fmt.Errorf("model %q: this version has no %s models yet; use demo or script:FILE", name, provider)
	case name == "":
		return nil, fmt.Errorf("no model is named; use demo or script:FILE")
	}
	return nil, fmt.Errorf("unknown model %q; use demo or script:FILE", name)
}

// lastUser returns the index of the last message that a person wrote, or -1.
// Where a conversation has several runs, this one began there.
func lastUser(messages []Message) int {
	for i := len(messages) - 1; i >= 0; i-- {
		if messages[i].Role == RoleUser {
			return i
		}
	}
	return -1
}

// lastResults returns the results at the end of the conversation, whether they
// came in one message or in several.
func lastResults(messages []Message) []ToolResult {
	first := len(messages)
	for first > 0 && messages[first-1].Role == RoleTool {
		first--
	}
	var results []ToolResult
	for _, m := range messages[first:] {
		results = append(results, m.Results...)
	}
	return results
}

// emit streams a text in the given pieces.
func emit(onDelta func(string), pieces []string) {
	if onDelta == nil {
		return
	}
	for _, p := range pieces {
		if p != "" {
			onDelta(p)
		}
	}
}
