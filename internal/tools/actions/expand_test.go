package actions

import (
	"encoding/json"
	"errors"
	"os/exec"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"approvalbot/internal/tools"
)

// argvOf are the arguments that a call would pass, or the error.
func argvOf(t testing.TB, a *Action, args string) ([]string, error) {
	t.Helper()
	canonical, err := tools.ParseArguments(a.Spec(), []byte(args))
	if err != nil {
		return nil, err
	}
	values, err := a.values(canonical)
	if err != nil {
		return nil, err
	}
	return a.argv(values)
}

func TestExpansion(t *testing.T) {
	a := parse(t, one(`
inputs:
  name: {type: string}
  count: {type: integer, default: 3}
  ratio: {type: number}
  force: {type: boolean}
  labels: {type: array, items: {type: string}}
  from: {type: string}
  to: {type: string}
optional: [ratio, force, labels, from, to]
run:
  - prog
  - 7
  - "--name={{name}}"
  - "{{{{.ID}}"
  - --count={{count}}
  - ["--ratio={{ratio}}"]
  - {when: force, args: [--force, "--really"]}
  - ["--label={{labels}}"]
  - [--range, "x{{from}}..{{to}}"]
  - --
  - "{{name}}"
`)).Actions()[0]
	base := func(middle ...string) []string {
		return append(append([]string{"prog", "7", "--name=n", "{{.ID}}", "--count=3"}, middle...), "--", "n")
	}
	for _, tt := range []struct {
		args string
		want []string
		err  string
	}{
		{`{"name":"n"}`, base(), ""},
		{`{"name":"n","ratio":0.50}`, base("--ratio=0.50"), ""},
		{`{"name":"n","force":true}`, base("--force", "--really"), ""},
		{`{"name":"n","force":false}`, base(), ""},
		{`{"name":"n","labels":["a b","--x",""]}`, base("--label=a b", "--label=--x", "--label="), ""},
		{`{"name":"n","labels":[]}`, base(), ""},
		{`{"name":"n","from":"1","to":"2"}`, base("--range", "x1..2"), ""},
		{`{"name":"-rf"}`, []string{"prog", "7", "--name=-rf", "{{.ID}}", "--count=3", "--", "-rf"}, ""},
		{`{"name":"n","count":2.0}`, []string{"prog", "7", "--name=n", "{{.ID}}", "--count=2", "--", "n"}, ""},
		{`{"name":"n","count":2e3}`, []string{"prog", "7", "--name=n", "{{.ID}}", "--count=2000", "--", "n"}, ""},

		{`{"name":"n","from":"1"}`, nil, "from has no effect"},
		{`{"name":"n","count":1e300}`, nil, "usable size"},
		{`{"name":"a\u0000b"}`, nil, "control character"},
		{`{"name":"a\u001b[1m"}`, nil, "control character"},
		{`{"name":"` + strings.Repeat("x", 130<<10) + `"}`, nil, "too long"},
		{`{}`, nil, "required"},
		{`{"name":"n","other":1}`, nil, "don't fit the schema"},
		{`{"name":7}`, nil, "don't fit the schema"},
	} {
		got, err := argvOf(t, a, tt.args)
		if tt.err == "" {
			if diff := cmp.Diff(tt.want, got); diff != "" || err != nil {
				t.Errorf("%.80s: %v %s", tt.args, err, diff)
			}
			continue
		}
		if e, ok := errors.AsType[*tools.Error](err); !ok || !strings.Contains(e.Message, tt.err) {
			t.Errorf("%.80s: got %v, want %q", tt.args, err, tt.err)
		}
	}
}

// A value that begins an argument with a dash would be an option. It is one only where the operator wrote the dash down.
func TestLeadingDash(t *testing.T) {
	for _, tt := range []struct {
		schema, value string
		fine          bool
	}{
		{`{type: string}`, `"--upload-pack=x"`, false},
		{`{type: string}`, `"-"`, false},
		{`{type: string}`, `" -x"`, true}, // no option: it begins with a blank
		{`{type: string, pattern: "^[a-z-]+$"}`, `"-x"`, false},
		{`{type: string, pattern: "^-?[a-z]+$"}`, `"-x"`, true},
		{`{type: string, pattern: "^(-x|y)$"}`, `"-x"`, true},
		{`{type: string, enum: [-x, y]}`, `"-x"`, true},
		{`{type: string, const: -x}`, `"-x"`, true},
		{`{type: integer}`, `-5`, false},
		{`{type: integer, minimum: -9}`, `-5`, true},
		{`{type: number, exclusiveMinimum: -9}`, `-5.5`, true},
		{`{type: array, items: {type: string}}`, `["a","-x"]`, false},
		{`{type: array, items: {type: string, enum: [-x]}}`, `["-x"]`, true},
	} {
		a := parse(t, one("inputs:\n  x: "+tt.schema+"\nrun: [prog, \"{{x}}\"]")).Actions()[0]
		if _, err := argvOf(t, a, `{"x":`+tt.value+`}`); (err == nil) != tt.fine {
			t.Errorf("%s with %s: %v", tt.schema, tt.value, err)
		}
		behind := parse(t, one("inputs:\n  x: "+tt.schema+"\nrun: [prog, --, \"{{x}}\"]")).Actions()[0]
		if _, err := argvOf(t, behind, `{"x":`+tt.value+`}`); err != nil {
			t.Errorf("behind --: %s with %s: %v", tt.schema, tt.value, err)
		}
	}
	// An empty value in front doesn't hide the dash of the next, and a value of -- ends no options.
	a := parse(t, one("inputs: {x: {type: string}, y: {type: string}}\nrun: [prog, \"{{x}}{{y}}\"]")).Actions()[0]
	if _, err := argvOf(t, a, `{"x":"","y":"-z"}`); err == nil {
		t.Error("an empty value hid a dash")
	}
	b := parse(t, one("inputs: {x: {type: string, enum: [--]}, y: {type: string}}\nrun: [prog, \"{{x}}\", \"{{y}}\"]")).Actions()[0]
	if _, err := argvOf(t, b, `{"x":"--","y":"-z"}`); err == nil {
		t.Error("a value ended the options")
	}
}

// Whatever the values are: there are as many arguments as the file says, each with its literal text around exactly the
// value. Values never merge, split or disappear.
func checkOneEach(t interface {
	Helper()
	Errorf(string, ...any)
}, a *Action, x string, list []string) {
	t.Helper()
	args, err := json.Marshal(map[string]any{"x": x, "l": list})
	if err != nil {
		return
	}
	var back struct {
		X string
		L []string
	}
	if err := json.Unmarshal(args, &back); err != nil {
		t.Errorf("%v", err)
	}
	canonical, err := tools.ParseArguments(a.Spec(), args)
	if err != nil {
		t.Errorf("%s: %v", args, err)
		return
	}
	values, err := a.values(canonical)
	if err == nil {
		var got []string
		if got, err = a.argv(values); err == nil {
			want := []string{"prog", "a" + back.X + "b", "-o" + back.X}
			for _, item := range back.L {
				want = append(want, "--l="+item)
			}
			want = append(append(want, "--"), back.L...)
			if diff := cmp.Diff(want, append(got, []string{}...)); diff != "" {
				t.Errorf("%s", diff)
			}
			return
		}
	}
	if e, ok := errors.AsType[*tools.Error](err); !ok || e.Code != tools.CodeInvalidArguments && e.Code != tools.CodeTooLarge {
		t.Errorf("%T: %v", err, err)
	}
}

const oneEach = `
inputs:
  x: {type: string}
  l: {type: array, items: {type: string}}
run: [prog, "a{{x}}b", "-o{{x}}", "--l={{l}}", --, "{{l}}"]
`

func TestOneArgumentEach(t *testing.T) {
	a := parse(t, one(oneEach)).Actions()[0]
	rapid.Check(t, func(t *rapid.T) {
		checkOneEach(t, a, rapid.String().Draw(t, "x"), rapid.SliceOf(rapid.String()).Draw(t, "l"))
	})
}

func FuzzExpansion(f *testing.F) {
	file, err := Parse("f", []byte(one(oneEach)), anyone)
	if err != nil {
		f.Fatal(err)
	}
	a := file.Actions()[0]
	f.Add("x", "{{l}}", "'\n\"")
	f.Add("--", "", "\x00\xff")
	f.Fuzz(func(t *testing.T, x, l1, l2 string) { checkOneEach(t, a, x, []string{l1, l2}) })
}

// What is put into a shell from a card passes the same arguments.
func TestCommandLineForAShell(t *testing.T) {
	check := func(argv []string) string {
		line := commandLine(append([]string{"printf", `%s\0`}, argv...))
		out, err := exec.Command("/bin/sh", "-c", line).Output()
		if err != nil {
			return line + ": " + err.Error()
		}
		got := strings.Split(strings.TrimSuffix(string(out), "\x00"), "\x00")
		return cmp.Diff(argv, got)
	}
	fixed := []string{"", "a b", "'", `\`, `"$HOME"`, "`id`", "a\nb\n", "*", "~", "!x", "{a,b}", "=ls", "%1", "a=b", "#", "-n", "é…", "$(x)", "a;b|c&d>e<f"}
	if diff := check(fixed); diff != "" {
		t.Error(diff)
	}
	rapid.Check(t, func(t *rapid.T) {
		argv := rapid.SliceOfN(rapid.StringOfN(rapid.RuneFrom([]rune("ab'\"\\$`\n *?~!#;|&<>(){}[]=%-é")), 0, 8, -1), 20, 40).Draw(t, "argv")
		if diff := check(argv); diff != "" {
			t.Error(diff)
		}
	})
}

func TestHeading(t *testing.T) {
	a := parse(t, one(`
inputs: {service: {type: string}, hosts: {type: array, items: {type: string}}}
run: [prog, "--s={{service}}", --, "{{hosts}}"]
summary: "Restart {{service}} on {{hosts}}"
target: "{{service}}"
`)).Actions()[0]
	for args, want := range map[string]string{
		`{"service":"web","hosts":["a1","b-2.example"]}`:              "Restart web on a1, b-2.example",
		`{"service":"web on staging. Nothing else","hosts":["a\nb"]}`: "Restart “web on staging. Nothing else” on “a b”",
		`{"service":"web” in staging. “x","hosts":[]}`:                "Restart “web\" in staging. \"x” on",
		`{"service":"","hosts":[]}`:                                   "Restart “” on",
	} {
		canonical, err := tools.ParseArguments(a.Spec(), []byte(args))
		if err != nil {
			t.Fatal(err)
		}
		p, err := a.Describe(canonical)
		if err != nil || p.Summary != want {
			t.Errorf("%s: %q %v, want %q", args, p.Summary, err, want)
		}
	}
}
