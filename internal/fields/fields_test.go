package fields

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const schemaText = `{"type":"object","required":["path","n"],"properties":{
	"path":{"type":"string","title":"Path","description":" which file "},
	"n":{"type":"integer"},
	"ratio":{"type":"number"},
	"force":{"type":"boolean"},
	"mode":{"enum":["fast","slow",3,null]},
	"tags":{"type":"array"},
	"note":{"type":["string","null"]},
	"any":true}}`

func TestOf(t *testing.T) {
	got, err := Of(json.RawMessage(schemaText), json.RawMessage(`{"extra":{"a":1},"force":false,"mode":3,"n":1e2,"note":null,"path":"a\nb","ratio":1.50}`))
	if err != nil {
		t.Fatal(err)
	}
	type brief struct {
		Name, Title string
		Kind        Kind
		Value       string
		Set, Long   bool
		Option      int
	}
	var all []brief
	for _, f := range got {
		all = append(all, brief{f.Name, f.Title, f.Kind, f.Value, f.Set, f.Long, f.Option()})
	}
	want := []brief{
		{"path", "Path", Text, "a\nb", true, true, -1},
		{"n", "n", JSON, "1e2", true, true, -1}, // an input for numbers doesn't take it as it is written
		{"any", "any", JSON, "", false, true, -1},
		{"extra", "extra", JSON, "{\n  \"a\": 1\n}", true, true, -1},
		{"force", "force", Boolean, "false", true, false, 1},
		{"mode", "mode", Choice, "3", true, false, 2},
		{"note", "note", JSON, "null", true, true, -1},
		{"ratio", "ratio", Number, "1.50", true, false, -1},
		{"tags", "tags", JSON, "", false, true, -1},
	}
	if d := cmp.Diff(want, all); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	if got[0].Hint != "which file" || !got[0].Required || got[2].Required {
		t.Errorf("%+v", got[0])
	}
}

// A choice is one only where the value is exactly one of its options, to the last digit.
func TestLargeNumbersAreNoChoice(t *testing.T) {
	schema := json.RawMessage(`{"properties":{"n":{"enum":[9007199254740992,1]}}}`)
	for args, want := range map[string]Kind{`{"n":9007199254740993}`: JSON, `{"n":9007199254740992}`: Choice, `{"n":1.0}`: JSON} {
		got, err := Of(schema, json.RawMessage(args))
		if err != nil || got[0].Kind != want {
			t.Errorf("%s: %+v, %v", args, got, err)
		}
	}
}

func TestNoForm(t *testing.T) {
	var large strings.Builder
	for i := range MaxFields + 1 {
		large.WriteString(`,"m` + strings.Repeat("x", i) + `":1`)
	}
	for schema, args := range map[string]string{
		`{`: `{}`, `{"type":"array"}`: `[]`, `{"type":"object"}`: `{}`, `{}`: `[1]`, `{"type":["object","null"]}`: `null`,
		`{"type": "object"}`: `{` + large.String()[1:] + `}`,
	} {
		if _, err := Of(json.RawMessage(schema), json.RawMessage(args)); !errors.Is(err, ErrNoForm) {
			t.Errorf("%s with %.40s: %v", schema, args, err)
		}
	}
}

func TestRead(t *testing.T) {
	text := Field{Kind: Text, Set: true, Raw: json.RawMessage(`"a\n"`), Value: "a\n", Required: true}
	loose := Field{Kind: Text, Set: true, Raw: json.RawMessage(`"a"`), Value: "a"}
	number, integer := Field{Kind: Number, Required: true}, Field{Kind: Integer}
	object := Field{Kind: JSON, Set: true, Raw: json.RawMessage(`{"a":1.0}`), Value: "{\n  \"a\": 1.0\n}"}
	choice := Field{Kind: Choice, Options: []json.RawMessage{json.RawMessage(`"x"`), json.RawMessage(`2`)}, Set: true, Raw: json.RawMessage(`2`)}
	large := Field{Kind: Choice, Options: []json.RawMessage{json.RawMessage(`9007199254740992`), json.RawMessage(`9007199254740993`)}, Set: true, Raw: json.RawMessage(`9007199254740993`)}
	unset := Field{Kind: Boolean, Options: []json.RawMessage{json.RawMessage("true"), json.RawMessage("false")}, Required: true}
	tests := []struct {
		name    string
		f       Field
		written string
		value   string
		touched bool
		err     error
	}{
		{"as it is", text, "a\n", `"a\n"`, false, nil},
		{"without what an input drops", text, "a", `"a\n"`, false, nil},
		{"with what an input adds", text, "a\r\n", `"a\n"`, false, nil},
		{"another text", text, `<b> & "c"`, `"<b> & \"c\""`, true, nil},
		{"an empty text that is needed", text, "", `""`, true, nil},
		{"a text taken away", loose, "", "", true, nil},
		{"blanks in a text", loose, "  b", `"  b"`, true, nil},
		{"a number", number, " 1.50 ", "1.50", true, nil},
		{"no number", number, "1,5", "", true, ErrNotNumber},
		{"no number at all", number, "", "", false, nil},
		{"a number in quotes", number, `"1"`, "", true, ErrNotNumber},
		{"a whole number", integer, "-12", "-12", true, nil},
		{"a fraction", integer, "1.5", "", true, ErrNotInteger},
		{"nothing where nothing was", integer, "", "", false, nil},
		{"an object as it is", object, "{\n  \"a\": 1.0\n}", `{"a":1.0}`, false, nil},
		{"another object", object, `{"a": 2}`, `{"a": 2}`, true, nil},
		{"broken", object, `{"a": 2`, "", true, ErrNotJSON},
		{"two values", object, `1 2`, "", true, ErrNotJSON},
		{"a member twice", object, `{"a":1,"a":2}`, "", true, ErrNotJSON},
		{"half a character", object, `["\ud800"]`, "", true, ErrNotJSON},
		{"the choice beside a large number", large, "0", "9007199254740992", true, nil},
		{"taken away", object, ``, "", true, nil},
		{"the same choice", choice, "1", "2", false, nil},
		{"another choice", choice, "0", `"x"`, true, nil},
		{"no such choice", choice, "2", "", true, ErrNoChoice},
		{"nothing chosen", choice, "", "2", false, nil},
		{"nothing chosen that is needed", unset, "", "", true, ErrMissing},
		{"yes", unset, "0", "true", true, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			value, touched, err := tt.f.Read(tt.written)
			if string(value) != tt.value || touched != tt.touched || !errors.Is(err, tt.err) {
				t.Errorf("%s, touched %v, %v", value, touched, err)
			}
		})
	}
}

func TestMerge(t *testing.T) {
	got, err := Merge(json.RawMessage(`{"a":1.0,"b":"<x>","c":[1, 2],"d":null}`), map[string]json.RawMessage{"b": json.RawMessage(`"y"`), "d": nil, "e&": json.RawMessage(`1e2`)})
	if err != nil || string(got) != `{"a":1.0,"b":"y","c":[1, 2],"e&":1e2}` {
		t.Errorf("%s, %v", got, err)
	}
	if _, err := Merge(json.RawMessage(`[]`), nil); !errors.Is(err, ErrNoForm) {
		t.Errorf("%v", err)
	}
}

// Whatever the schema and the arguments are: what nobody touches stays as it is, and what is read is JSON.
func FuzzForm(f *testing.F) {
	f.Add(schemaText, `{"path":"a","n":1,"x":[]}`, "b")
	f.Add(`{}`, `{"a":"\ud83d\ude00","":"\u0000"}`, "0")
	f.Add(`{"properties":{"a":{"enum":[{"b":1.0}]}}}`, `{"a":{"b":1}}`, "0")
	f.Fuzz(func(t *testing.T, schema, arguments, written string) {
		all, err := Of(json.RawMessage(schema), json.RawMessage(arguments))
		if err != nil {
			return
		}
		untouched, changed := map[string]json.RawMessage{}, map[string]json.RawMessage{}
		for _, field := range all {
			value := field.Value
			if field.Kind == Choice || field.Kind == Boolean {
				value = ""
			}
			if v, touched, err := field.Read(value); touched && err == nil {
				untouched[field.Name] = v
			}
			if v, touched, err := field.Read(written); err == nil && touched {
				if v != nil && !json.Valid(v) {
					t.Fatalf("%s reads %q as %s", field.Name, written, v)
				}
				changed[field.Name] = v
			}
		}
		if len(untouched) > 0 {
			t.Fatalf("nobody touched it, and it changed: %s in %s", untouched, arguments)
		}
		merged, err := Merge(json.RawMessage(arguments), changed)
		if err != nil || !json.Valid(merged) {
			t.Fatalf("%s, %v", merged, err)
		}
	})
}
