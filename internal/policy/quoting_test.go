package policy

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

// A condition that means something else to YAML is named where it stands, with how to write it, and with nothing that
// would make the rule hold for every call.
func TestConditionsThatNeedQuotes(t *testing.T) {
	for _, condition := range []string{
		`"rm" in command.programs`, `'rm' in command.programs`, `"a,b" == args.x`, `!command.parsed`, `!args.to.startsWith("#x")`, `!(tool in ["a", "b"])`,
		`["a"].exists(x, x == tool)`, `["a"]`, `{"a": 1} == args`, `args.x == "a: b"`, `tool == "a" ? command.parsed : false`,
		`args.to.startsWith(" #x")`, `!!bool tool`,
	} {
		for _, form := range []struct{ file, at string }{
			{"rules:\n  - name: a\n    tool: shell\n    when: %s  # why\n    effect: deny\n", "4:11"},
			{"rules:\n  - when: %s\n    name: a\n    tool: shell\n    effect: deny\n", "2:11"},
			{"rules:\n  - {name: ü, tool: shell, when: %s, effect: deny}\n", "2:34"},
		} {
			wrong := loadWrong(t, fmt.Sprintf(form.file, condition))
			if strings.Contains(form.file, "ü") { // so that columns are seen to be counted in characters
				wrong = without(wrong, "the name")
			}
			want := form.at + " when: YAML doesn't read this as it is meant; put the whole condition in single quotes: when: '" + strings.ReplaceAll(condition, "'", "''") + "'"
			if len(wrong) != 1 || wrong[0] != want {
				t.Errorf("%s\nwant %s\ngot  %s", fmt.Sprintf(form.file, condition), want, strings.Join(wrong, "\n     "))
			}
			mended := fmt.Sprintf(strings.ReplaceAll(form.file, "ü", "u"), "'"+strings.ReplaceAll(condition, "'", "''")+"'")
			if f, err := Load("p.yaml", []byte(mended)); err == nil && f.Rules.List()[0].When != condition {
				t.Errorf("what is advised is read as %q", f.Rules.List()[0].When)
			}
		}
	}
}

func loadWrong(t *testing.T, text string) (all []string) {
	t.Helper()
	_, err := Load("p.yaml", []byte(text))
	wrong, ok := errors.AsType[*FileError](err)
	if !ok {
		t.Fatalf("%s\nloads: %v", text, err)
	}
	for _, p := range wrong.Problems {
		all = append(all, fmt.Sprintf("%d:%d %s", p.Line, p.Column, p.What))
	}
	return all
}

func without(all []string, part string) (rest []string) {
	for _, s := range all {
		if !strings.Contains(s, part) {
			rest = append(rest, s)
		}
	}
	return rest
}

// What YAML reads as it is meant is left alone, also in a file that can't be read for another reason.
func TestConditionsThatNeedNone(t *testing.T) {
	for _, condition := range []string{
		`path == "#a" # why`, `'"rm" in command.programs' # why`, `"tool == 'a'"`, "|\n      tool == \"a: b\" &&\n      !command.parsed", ">- # why\n      !command.parsed",
		"path == \"a\" &&\n      tool == \"b\"", "'path == \"a\" &&\n      !command.parsed'", `&x tool == "a"`, "\ttool == \"a\"",
	} {
		text := "rules:\n  - name: a\n    tool: shell\n    when: " + condition + "\n    effect: deny\n"
		if _, err := Load("p.yaml", []byte(text)); err != nil {
			t.Errorf("%s: %v", condition, err)
		}
		if wrong := loadWrong(t, text+"tests: [\n"); len(wrong) != 1 || !strings.Contains(wrong[0], "this is not YAML") {
			t.Errorf("%s: %q", condition, wrong)
		}
	}
}

// One condition without quotes hides nothing else: the rest is read as if it had them.
func TestNothingHidesBehindQuotes(t *testing.T) {
	got := loadWrong(t, `rules:
  - name: a
    tool: shell
    when: "rm" in command.programs &&
      'dd' in command.programs # both
    effect: deny
  - {name: b, tool: shell, when: "ü" == args.x || arg.y, effect: deny}
  - name: c
    tool: shell
    when: !command.parsed
    effekt: deny
  - name: d
    tool: shell
    when: 'arg.x'
    reason: !really
    effect: deny
`)
	want := []string{
		`4:11 when: YAML doesn't read this as it is meant; put the whole condition in single quotes: when: '"rm" in command.programs && ''dd'' in command.programs'`,
		`7:34 when: YAML doesn't read this as it is meant; put the whole condition in single quotes: when: '"ü" == args.x || arg.y'`,
		"7:51 when: there is no arg",
		"8:5 a rule needs the key effect",
		"10:11 when: YAML doesn't read this as it is meant; put the whole condition in single quotes: when: '!command.parsed'",
		`11:5 a rule has no key "effekt"`,
		"14:12 when: there is no arg",
		"15:13 reason begins with !, which means something to YAML: put all of it in single quotes",
	}
	if len(got) != len(want) {
		t.Fatalf("got\n%s", strings.Join(got, "\n"))
	}
	for i := range want {
		if !strings.HasPrefix(got[i], want[i]) {
			t.Errorf("want %s\ngot  %s", want[i], got[i])
		}
	}
}

// What isn't YAML is said of the line that it stands in, not of the one in which its list begins.
func TestNotYAML(t *testing.T) {
	for text, want := range map[string]string{
		"rules:\n  - name: a\n    tool: shell\n    reason: \"a\" b\n    effect: deny\n": "4:1 this is not YAML: ",
		"rules:\n  - name: a\n\ttool: shell\n    effect: deny\n":                        "3:1 this is not YAML: the line begins with a tab; indent it with spaces",
		"rules:\n  - name: a\n    tool: shell\n   effect: deny\n":                       "4:1 this is not YAML: ",
		"rules:\n  - name: a\n    tool: [shell\n    effect: deny\n":                     "3:1 this is not YAML: ",
		"rules:\n  - name: a\n    when: *x\n    effect: deny\n":                         "3:1 this is not YAML: unknown anchor 'x'",
	} {
		if got := loadWrong(t, text); len(got) != 1 || !strings.HasPrefix(got[0], want) {
			t.Errorf("%s\nwant %s\ngot  %q", text, want, got)
		}
	}
}
