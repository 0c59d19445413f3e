package tools

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/jsonschema-go/jsonschema"
	"pgregory.net/rapid"
)

// anything is a tool that takes any object.
var anything = Spec{Name: "anything", InputSchema: &jsonschema.Schema{Type: "object"}}

// wantCode fails the test unless err is a result for the model with this code,
// written as a sentence.
func wantCode(t *testing.T, err error, code Code) *Error {
	t.Helper()
	var e *Error
	if !errors.As(err, &e) || e.Code != code {
		t.Fatalf("got the error %v, want code %s", err, code)
	}
	if !strings.HasSuffix(e.Message, ".") || strings.ContainsAny(e.Message, "\n") {
		t.Errorf("%q is no sentence", e.Message)
	}
	return e
}

func TestParseArguments(t *testing.T) {
	for _, tt := range []struct{ raw, want string }{
		{``, `{}`},
		{" \n", `{}`},
		{`{ "b" : 1, "a" : [ 1 , {"d":2,"c":3} ] }`, `{"a":[1,{"c":3,"d":2}],"b":1}`},
		{`{"n":[1.0,1,-0,1e2,1E+2,12345678901234567890,0.1000]}`, `{"n":[1.0,1,-0,1e2,1E+2,12345678901234567890,0.1000]}`},
		{`{"s":"\u0041\/\u00e9\ud83d\ude00\u001b<&>\u2028"}`, "{\"s\":\"A/é😀\\u001b<&>\u2028\"}"},
		{`{"":null,"a":true}`, `{"":null,"a":true}`},
	} {
		raw := []byte(tt.raw)
		got, err := ParseArguments(anything, raw)
		if err != nil || string(got) != tt.want {
			t.Errorf("%s: got %s, %v, want %s", tt.raw, got, err, tt.want)
		}
		if string(raw) != tt.raw {
			t.Errorf("the caller's bytes became %s", raw)
		}
	}
}

func TestParseArgumentsRefuses(t *testing.T) {
	shellSpec := (&shell{}).Spec()
	for _, tt := range []struct {
		spec      Spec
		raw, want string
	}{
		{anything, `{`, "not one JSON object: unexpected EOF"},
		{anything, `rm -rf`, "not one JSON object"},
		{anything, `{"a":1,"a":2}`, `duplicate object member name "a"`},
		{anything, `{"a":1,"\u0061":2}`, `duplicate object member name`},
		{anything, `{"a":{"b":1,"b":1}}`, `duplicate object member name "b"`},
		{anything, "{\"a\":\"\xff\"}", "invalid UTF-8"},
		{anything, `{"a":"\ud800"}`, "surrogate"},
		{anything, `{} {}`, "not one JSON object"},
		{anything, `{}x`, "not one JSON object"},
		{anything, `[]`, "it is a list"},
		{anything, `"{}"`, "it is a string"},
		{anything, `null`, "it is a null"},
		{anything, `7`, "it is a number"},
		{anything, `{"a":1e999}`, "don't fit the schema"},
		{anything, `{"a":"` + strings.Repeat("x", MaxArguments) + `"}`, "1048576 is the most"},
		{anything, strings.Repeat(`{"a":`, 20000) + strings.Repeat(`}`, 20000), "not one JSON object"},
		{shellSpec, `{}`, `missing properties: ["command"]`},
		{shellSpec, `{"command":7}`, "command"},
		{shellSpec, `{"command":""}`, "command"},
		{shellSpec, `{"command":"ls","comand":"x"}`, "comand"},
		{shellSpec, `{"command":"ls","Command":"rm"}`, "Command"},
		{shellSpec, `{"command":"ls","timeout_seconds":0}`, "timeout_seconds"},
		{shellSpec, `{"command":"ls","timeout_seconds":1.5}`, "timeout_seconds"},
		{shellSpec, `{"command":"ls","timeout_seconds":1e9}`, "timeout_seconds"},
		{Spec{Name: "bare"}, `{}`, "the tool has none"},
	} {
		got, err := ParseArguments(tt.spec, []byte(tt.raw))
		if got != nil {
			t.Errorf("%.60s: returned %.60s", tt.raw, got)
		}
		if e := wantCode(t, err, CodeInvalidArguments); !strings.Contains(e.Message, tt.want) {
			t.Errorf("%.60s: got %q, want a message with %q", tt.raw, e.Message, tt.want)
		}
	}
}

// JSON that says the same in other words has the same canonical form.
func TestCanonicalFormIsOne(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		members := rapid.MapOfN(rapid.String(), rapid.OneOf(
			rapid.Map(rapid.String(), func(s string) any { return s }),
			rapid.Map(rapid.Int(), func(n int) any { return json.Number(fmt.Sprint(n)) }),
			rapid.Just[any](nil), rapid.Just[any]([]any{true, map[string]any{"z": "", "a": "\u202e"}}),
		), 0, 6).Draw(t, "members")
		plain, err := json.Marshal(members)
		if err != nil {
			t.Fatal(err)
		}
		indented, err := json.MarshalIndent(members, "\t", "  ")
		if err != nil {
			t.Fatal(err)
		}
		a, errA := ParseArguments(anything, plain)
		b, errB := ParseArguments(anything, indented)
		if errA != nil || errB != nil || string(a) != string(b) {
			t.Fatalf("%q, %v and %q, %v", a, errA, b, errB)
		}
		var back map[string]any
		if err := json.Unmarshal(a, &back); err != nil {
			t.Fatal(err)
		}
		again, err := json.Marshal(back)
		if err != nil {
			t.Fatal(err)
		}
		if len(again) > 0 && !cmp.Equal(normal(t, again), normal(t, plain)) {
			t.Fatalf("%s became %s", plain, a)
		}
	})
}

func normal(t *rapid.T, b []byte) (v any) {
	if err := json.Unmarshal(b, &v); err != nil {
		t.Fatal(err)
	}
	return v
}

// The canonical form is valid, says what was said, and is its own canonical
// form.
func FuzzParseArguments(f *testing.F) {
	for _, s := range []string{``, `{}`, `{"b":1.0,"a":"\u0041\ud83d\ude00"}`, `{"a":1,"a":2}`, `[1]`, "{\"a\":\"\xff\"}", `{"command":"ls","timeout_seconds":3e0}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		once, err := ParseArguments(anything, raw)
		if err != nil {
			wantCode(t, err, CodeInvalidArguments)
			return
		}
		if !json.Valid(once) {
			t.Fatalf("%q became %q", raw, once)
		}
		twice, err := ParseArguments(anything, once)
		if err != nil || string(twice) != string(once) {
			t.Fatalf("%q became %q, and that %q, %v", raw, once, twice, err)
		}
		var before, after any
		if json.Unmarshal(raw, &before) == nil && json.Unmarshal(once, &after) == nil && !cmp.Equal(before, after) {
			t.Fatalf("%q became %q", raw, once)
		}
	})
}

func TestSet(t *testing.T) {
	s, err := NewSet(&readFile{&workspace{}}, &shell{})
	if err != nil {
		t.Fatal(err)
	}
	if tool, ok := s.Get("shell"); !ok || tool.Spec().Name != "shell" {
		t.Errorf("Get(shell) = %v, %t", tool, ok)
	}
	if _, ok := s.Get("Shell"); ok {
		t.Error("there is a tool Shell")
	}
	if specs := s.Specs(); len(specs) != 2 || specs[0].Name != "read_file" || specs[1].Name != "shell" {
		t.Errorf("the order is %v", specs)
	}
	schema, err := s.Specs()[1].Schema()
	want := `{"additionalProperties":false,"properties":{"command":{"description":"The command, as /bin/sh understands it.","minLength":1,"type":"string"},` +
		`"timeout_seconds":{"description":"Time limit in seconds.","maximum":3600,"minimum":1,"type":"integer"}},"required":["command"],"type":"object"}`
	if err != nil || string(schema) != want {
		t.Errorf("the schema is %s, %v", schema, err)
	}
	var none *Set
	if _, ok := none.Get("shell"); ok || none.Specs() != nil {
		t.Error("the nil set isn't empty")
	}
	if _, err := NewSet(&shell{}, &readFile{&workspace{}}, &shell{}); err == nil || !strings.Contains(err.Error(), "two tools called shell") {
		t.Errorf("a name that occurs twice: %v", err)
	}
	for name, spec := range map[string]Spec{
		"no name":    {InputSchema: anything.InputSchema},
		"bad name":   {Name: "rm -rf", InputSchema: anything.InputSchema},
		"no schema":  {Name: "x"},
		"bad schema": {Name: "x", InputSchema: &jsonschema.Schema{Ref: "#/nowhere"}},
	} {
		if _, err := NewSet(fixed{spec}); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

// fixed is a tool that only has a definition.
type fixed struct{ spec Spec }

func (f fixed) Spec() Spec                                { return f.spec }
func (f fixed) Describe(json.RawMessage) (Preview, error) { return Preview{}, nil }
func (f fixed) Call(context.Context, json.RawMessage) (Output, error) {
	return Output{}, nil
}

// Whatever changes in a definition, its hash changes; what doesn't, doesn't.
func TestHashCoversTheDefinition(t *testing.T) {
	no := false
	schema := func(title string) *jsonschema.Schema {
		return &jsonschema.Schema{Type: "object", Properties: map[string]*jsonschema.Schema{"a": {Title: title}, "b": {}, "c": {}}}
	}
	specs := []Spec{
		{Name: "x", InputSchema: schema("")},
		{Name: "y", InputSchema: schema("")},
		{Name: "x", InputSchema: schema("t")},
		{Name: "x", InputSchema: schema(""), Description: "d"},
		{Name: "x", InputSchema: schema(""), Annotations: Annotations{Title: "t"}},
		{Name: "x", InputSchema: schema(""), Annotations: Annotations{ReadOnlyHint: true}},
		{Name: "x", InputSchema: schema(""), Annotations: Annotations{IdempotentHint: true}},
		{Name: "x", InputSchema: schema(""), Annotations: Annotations{DestructiveHint: &no}},
		{Name: "x", InputSchema: schema(""), Annotations: Annotations{OpenWorldHint: &no}},
	}
	seen := map[string]int{}
	for i, spec := range specs {
		for range 10 { // maps have no order
			s, err := NewSet(fixed{spec})
			if err != nil {
				t.Fatal(err)
			}
			hash, ok := s.Hash(spec.Name)
			if other, taken := seen[hash]; !ok || taken && other != i {
				t.Fatalf("definitions %d and %d have the hash %q", i, other, hash)
			}
			seen[hash] = i
		}
	}
	if len(seen) != len(specs) {
		t.Errorf("%d hashes for %d definitions", len(seen), len(specs))
	}
}

func TestAnnotationsDefaultToTheWorst(t *testing.T) {
	var a Annotations
	if a.ReadOnly() || !a.Destructive() || !a.OpenWorld() || a.Idempotent() {
		t.Errorf("nothing said means %+v", a)
	}
	for _, tt := range []struct {
		tool                             Tool
		readOnly, destructive, openWorld bool
	}{
		{&readFile{&workspace{}}, true, false, false},
		{&listFiles{&workspace{}}, true, false, false},
		{&writeFile{&workspace{}}, false, true, false},
		{&editFile{&workspace{}}, false, true, false},
		{&shell{}, false, true, true},
	} {
		a := tt.tool.Spec().Annotations
		if a.ReadOnly() != tt.readOnly || a.Destructive() != tt.destructive || a.OpenWorld() != tt.openWorld {
			t.Errorf("%s: %+v", tt.tool.Spec().Name, a)
		}
	}
}

func TestErrorText(t *testing.T) {
	e := &Error{CodeExitStatus, "The command ended with exit status 1.", "out\nerr"}
	if want := "Error [EXIT_STATUS]: The command ended with exit status 1.\nout\nerr"; e.Text() != want {
		t.Errorf("got %q", e.Text())
	}
}

// One definition serves many calls at once.
func TestParseArgumentsAtOnce(t *testing.T) {
	var wg sync.WaitGroup
	spec := (&shell{}).Spec()
	for range 8 {
		wg.Go(func() {
			if _, err := ParseArguments(spec, []byte(`{"command":"ls"}`)); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
}

func BenchmarkParseArguments(b *testing.B) {
	spec := (&shell{}).Spec()
	for b.Loop() {
		if _, err := ParseArguments(spec, []byte(`{"timeout_seconds": 5, "command": "ls"}`)); err != nil {
			b.Fatal(err)
		}
	}
}
