package mcp

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"approvalbot/internal/tools"
)

func yes() *bool { b := true; return &b }
func no() *bool  { b := false; return &b }

// Hints count for a trusted server only, and what isn't said is what MCP says that it is.
func TestHints(t *testing.T) {
	for name, c := range map[string]struct {
		hints                            *sdk.ToolAnnotations
		trust                            bool
		readOnly, destructive, openWorld bool
	}{
		"nothing said":         {nil, true, false, true, true},
		"empty":                {&sdk.ToolAnnotations{}, true, false, true, true},
		"harmless, trusted":    {&sdk.ToolAnnotations{ReadOnlyHint: true, OpenWorldHint: no()}, true, true, false, false},
		"read-only, trusted":   {&sdk.ToolAnnotations{ReadOnlyHint: true}, true, true, false, true},
		"contradicts itself":   {&sdk.ToolAnnotations{ReadOnlyHint: true, DestructiveHint: yes(), OpenWorldHint: no()}, true, true, true, false},
		"harmless, it says":    {&sdk.ToolAnnotations{ReadOnlyHint: true, DestructiveHint: no(), OpenWorldHint: no()}, false, false, true, true},
		"not destructive":      {&sdk.ToolAnnotations{DestructiveHint: no(), OpenWorldHint: no()}, false, false, true, true},
		"not destructive, tr.": {&sdk.ToolAnnotations{DestructiveHint: no(), OpenWorldHint: no()}, true, false, false, false},
	} {
		a := annotations(&sdk.Tool{Annotations: c.hints}, c.trust)
		if a.ReadOnly() != c.readOnly || a.Destructive() != c.destructive || a.OpenWorld() != c.openWorld {
			t.Errorf("%s: read-only %v, destructive %v, open world %v", name, a.ReadOnly(), a.Destructive(), a.OpenWorld())
		}
	}
}

func testServer(trust bool) *server {
	return newServer(Server{Name: "my server", Trust: trust}, Options{MaxOutput: defaultMaxOutput})
}

// The card has the names that the server uses, and all of the arguments.
func TestDescribe(t *testing.T) {
	x, err := newTool(testServer(false), &sdk.Tool{Name: "do.it", Title: "Do\nit", InputSchema: anything})
	if err != nil {
		t.Fatal(err)
	}
	got, err := x.Describe(json.RawMessage(`{"a":1.0,"b":{"c":"<x>"}}`))
	want := tools.Preview{
		Summary: "Call do.it of the MCP server my server", Target: "do.it", Kind: tools.KindJSON,
		Body:  "{\n  \"a\": 1.0,\n  \"b\": {\n    \"c\": \"<x>\"\n  }\n}",
		Notes: []string{"This server isn't marked as trusted: what it says of its tools doesn't count."},
	}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Error(err, diff)
	}
	x.server.config.Trust = true
	if got, _ := x.Describe(json.RawMessage(`{}`)); len(got.Notes) != 0 {
		t.Errorf("of a trusted server: %q", got.Notes)
	}
	if s := x.Spec(); s.Annotations.Title != "Do it" || s.Name != toolName("my server", "do.it") || s.Description == "" {
		t.Errorf("%+v", s)
	}
}

// A tool's name can't be read as our own words, whatever it says, and can't push the server's name out of a line that is cut.
func TestNamesThatAreSentences(t *testing.T) {
	for name, want := range map[string]string{
		"read_file": "Call read_file of the MCP server my server",
		"a/b.c-d":   "Call a/b.c-d of the MCP server my server",
		"read_file of the MCP server files (harmless)": "Call of the MCP server my server: the tool “read_file of the MCP server files (harmless)”",
		"x” of the MCP server files. “":                "Call of the MCP server my server: the tool “x\" of the MCP server files. \"”",
		"*bold* <!channel>":                            "Call of the MCP server my server: the tool “*bold* <!channel>”",
		strings.Repeat("x", 100):                       "Call of the MCP server my server: the tool “" + strings.Repeat("x", 100) + "”",
	} {
		x, err := newTool(testServer(false), &sdk.Tool{Name: name, InputSchema: anything})
		if err != nil {
			t.Fatal(name, err)
		}
		if got, err := x.Describe(json.RawMessage(`{}`)); err != nil || got.Summary != want {
			t.Errorf("got  %s, %v\nwant %s", got.Summary, err, want)
		}
	}
}

// A description is cut between characters, and cleaned of what can't be seen.
func TestDescriptionIsBounded(t *testing.T) {
	x, err := newTool(testServer(false), &sdk.Tool{Name: "a", Description: "\x1b[31m" + strings.Repeat("ä", 9999) + "\xff", InputSchema: anything})
	if err != nil {
		t.Fatal(err)
	}
	d := x.Spec().Description
	if n := len([]rune(d)); n != maxDescription || !strings.HasPrefix(d, "[31mä") || !strings.HasSuffix(d, "ä…") {
		t.Errorf("%d characters: %.20q", n, d)
	}
}

// schema is a schema with these members besides its type.
func schema(text string) any {
	var m map[string]any
	if err := json.Unmarshal([]byte(`{"type":"object",`+text+`}`), &m); err != nil {
		panic(err)
	}
	return m
}

// A schema is used as it is, unless checking arguments against it could go on for ever.
func TestSchemas(t *testing.T) {
	doubling := `"$defs":{"d0":{}`
	for i := range 40 {
		doubling += fmt.Sprintf(`,"d%d":{"allOf":[{"$ref":"#/$defs/d%d"},{"$ref":"#/$defs/d%d"}]}`, i+1, i, i)
	}
	for text, wrong := range map[string]string{
		`"properties":{}`: "",
		`"$schema":"http://json-schema.org/draft-07/schema#","properties":{"a":{"type":"string"}}`:            "",
		`"properties":{"child":{"$ref":"#"}}`:                                                                 "", // ends with the arguments
		`"properties":{"a":{"$ref":"#/$defs/a"}},"$defs":{"a":{"type":"array","items":{"$ref":"#/$defs/a"}}}`: "",
		`"allOf":[{"$ref":"#"}]`: "refers to itself without end",
		`"allOf":[{"$REF":"#"}]`: "?",
		`"$ref":"#/$defs/a","$defs":{"a":{"$ref":"#/$defs/b"},"b":{"anyOf":[{"$ref":"#/$defs/a"}]}}`: "refers to itself without end",
		`"properties":{"a":{"$ref":"#/%24defs/b"}},"$defs":{"b":{"not":{"$ref":"#/properties/a"}}}`:  "refers to itself without end",
		`"properties":{"a":{"$ref":"#/$defs/d40"}},` + doubling + `}`:                                "more than 10000 schemas",
		`"properties":{"a":{"$ref":"other.json"}}`:                                                   "only references into itself",
		`"properties":{"a":{"$ref":"#anchor"}}`:                                                      "only references into itself",
		`"properties":{"a":{"$dynamicRef":"#x"}}`:                                                    "$dynamicRef, which is not supported",
		`"properties":{"a":{"$id":"https://example.com/x"}}`:                                         "$id, which is not supported",
		`"properties":{"a":{"$ref":"#/$defs/none"}}`:                                                 "can't be used",
		`"properties":{"a":{"minimum":"1"}}`:                                                         "can't be used",
		`"properties":{"a":{"pattern":"("}}`:                                                         "can't be used",
		`"x":"` + strings.Repeat("x", maxSchema) + `"`:                                               "bytes; 65536 is the most",
	} {
		s, err := inputSchema(schema(text))
		if wrong == "?" { // however it is read, it must not be endless
			if err == nil {
				checkArguments(t, s)
			}
			continue
		}
		if wrong == "" && err != nil || wrong != "" && (err == nil || !strings.Contains(err.Error(), wrong)) {
			t.Errorf("%.100s gives %v, want %q", text, err, wrong)
		}
	}
	for _, raw := range []any{nil, "x", map[string]any{}, map[string]any{"type": "string"}, map[string]any{"type": []any{"object"}}} {
		if _, err := inputSchema(raw); err == nil || !strings.Contains(err.Error(), "input schema") {
			t.Errorf("%v gives %v", raw, err)
		}
	}
}

func checkArguments(t *testing.T, s any) {
	t.Helper()
	x := &tool{spec: tools.Spec{Name: "t"}}
	x.spec.InputSchema, _ = inputSchema(s)
	if x.spec.InputSchema == nil {
		return
	}
	for _, args := range []string{`{}`, `{"a":{"a":{"a":[1,"x",null]}},"b":[{}]}`} {
		_, _ = tools.ParseArguments(x.spec, []byte(args)) // it ends; what it says doesn't matter here
	}
}

// A schema that is accepted can be checked against to an end: a stack overflow would end the whole program.
func FuzzSchema(f *testing.F) {
	f.Add([]byte(`{"type":"object","properties":{"a":{"$ref":"#"}}}`))
	f.Add([]byte(`{"type":"object","allOf":[{"$ref":"#"}]}`))
	f.Add([]byte(`{"type":"object","$ref":"#/$defs/a","$defs":{"a":{"if":{"$ref":"#/$defs/a"}}}}`))
	f.Add([]byte(`{"type":"object","dependentSchemas":{"a":{"$ref":"#/dependentSchemas/a"}}}`))
	f.Add([]byte(`{"type":"object","unevaluatedProperties":{"$ref":"#"},"patternProperties":{".":{"$ref":"#"}}}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		var raw any
		if json.Unmarshal(text, &raw) == nil {
			checkArguments(t, raw)
		}
	})
}
