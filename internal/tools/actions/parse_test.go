package actions

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// anyone accepts every list of approvers that names somebody.
func anyone(list []string) error {
	if len(list) == 0 {
		return errors.New("the list is empty")
	}
	for _, word := range list {
		if word != "channel" && word != "requester" && !strings.HasPrefix(word, "U") && !strings.HasPrefix(word, "S") {
			return fmt.Errorf("%q is nobody", word)
		}
	}
	return nil
}

func parse(t *testing.T, text string) *File {
	t.Helper()
	f, err := Parse("actions.yaml", []byte(text), anyone)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// one is a file with one action, named a, which has these lines besides.
func one(lines string) string {
	text := "actions:\n  - name: a\n    description: Does it.\n"
	for line := range strings.Lines(strings.Trim(lines, "\n")) {
		text += "    " + strings.TrimLeft(line, "\t")
	}
	return text + "\n"
}

// What is wrong is told with its line, and with what would be right.
func TestWrongFiles(t *testing.T) {
	for _, tt := range []struct{ name, text, line, want string }{
		{"nothing", "", "line 1", "has to begin with: actions:"},
		{"a list", "- name: a", "line 1", "has to begin with: actions:"},
		{"no actions", "actions: []", "line 1", "defines no actions"},
		{"not YAML", "actions: [", "line 1", "is not YAML"},
		{"a tab", "actions:\n\t- name: a", "line 2", "is not YAML"},
		{"two documents", one(`run: ["true"]`) + "---\nactions: []\n", "line 5", "second document"},
		{"unknown at the top", "action: []\n", "line 1", "did you mean actions?"},
		{"unknown field", one("run: [ls]\ntimout: 3s"), "line 5", "did you mean timeout?"},
		{"a field twice", one("run: [ls]\nrun: [ls]"), "line 5", "run is there twice"},
		{"an action twice", one("run: [ls]") + strings.TrimPrefix(one("run: [ls]"), "actions:\n"), "line 5", "two actions called a"},
		{"an alias", one("run: &x [ls]\nenv: *x"), "line 5", "an alias (*x)"},
		{"no name", "actions:\n  - description: x\n    run: [ls]\n", "line 2", "needs a name"},
		{"no run", one("timeout: 3s"), "line 2", "needs a run"},
		{"bad name", "actions:\n  - {name: a b, description: x, run: [ls]}", "line 2", "letters, digits"},
		{"a built-in tool's name", "actions:\n  - {description: x, run: [ls],\n     name: shell}", "line 3", "actions.yaml, line 3: shell: the name shell is taken: a built-in tool has it. Those have edit_file, http_request, list_files"},
		{"an MCP tool's name", "actions:\n  - {name: mcp__x__y, description: x, run: [ls]}", "line 2", "begin with mcp__ are those of the tools of MCP servers; give the action another name"},
		{"name of a number", "actions:\n  - {name: 7, description: x, run: [ls]}", "line 2", "a number (7)"},

		{"run as text", one("run: systemctl restart web"), "line 4", "an element for each argument"},
		{"an input without quotes", one("inputs: {x: {type: string}}\nrun: [ls, {{x}}]"), "line 5", "has to stand in quotes"},
		{"a group without quotes", one("inputs: {x: {type: string}}\nrun:\n  - ls\n  - [-l, {{x}}]"), "line 7", "has to stand in quotes"},
		{"an input as text", one("inputs: {x: string}\nrun: [ls, \"{{x}}\"]"), "line 4", "{type: string, description: …}"},
		{"a line as the program", one("run: [systemctl restart web]"), "line 4", "each argument is an element of its own"},
		{"an input as the program", one("inputs: {p: {type: string}}\nrun: [\"{{p}}\"]"), "line 5", "which program runs can't be an input"},
		{"a relative program", one("run: [./x.sh]"), "line 4", "absolute path"},
		{"nothing runs", one("run: []"), "line 4", "run is empty"},
		{"unknown input", one("inputs: {service: {type: string}}\nrun: [ls, \"{{servce}}\", \"{{service}}\"]"), "line 5", "did you mean service?"},
		{"open braces", one("run: [ls, \"{{x\"]"), "line 4", "{{{{"},
		{"a Go template", one("run: [docker, \"{{.Name}}\"]"), "line 4", "{{{{"},
		{"unused input", one("inputs:\n  x: {type: string}\nrun: [ls]"), "line 5", "is used nowhere in run"},
		{"empty argument", one("run: [ls, ]\nenv: {A: }"), "line 5", "is empty"},
		{"a mapping by accident", one("run: [ls, {a: b}]"), "line 4", "text with a colon has to be quoted"},
		{"optional in the open", one("inputs: {x: {type: string}}\noptional: [x]\nrun: [ls, \"{{x}}\"]"), "line 6", "in a list of its own"},
		{"when of no boolean", one("inputs: {x: {type: string}}\nrun: [ls, {when: x, args: [a]}, \"{{x}}\"]"), "line 5", "has to be a boolean"},
		{"two lists at once", one("inputs:\n  x: {type: array, items: {type: string}}\n  y: {type: array, items: {type: string}}\nrun: [ls, \"{{x}}{{y}}\"]"), "line 7", "one list only"},
		{"a script", one("inputs: {x: {type: string}}\nrun: [sh, -c, \"echo {{x}}\"]"), "line 5", "$1"},
		{"a script behind sudo", one("inputs: {x: {type: string}}\nrun: [sudo, /bin/bash, -ec, \"echo {{x}}\"]"), "line 5", "$1"},
		{"a script of Python", one("inputs: {x: {type: string}}\nrun: [python3.12, -c, \"print('{{x}}')\"]"), "line 5", "$1"},
		{"code of awk", one("inputs: {x: {type: string}}\nrun: [awk, \"/{{x}}/\", file]"), "line 5", "can't stand in code"},
		{"code of sed", one("inputs: {x: {type: string}}\nrun: [sed, -n, -e, \"s/a/{{x}}/\", file]"), "line 5", "can't stand in code"},
		{"another machine's shell", one("inputs: {x: {type: string}}\nrun: [ssh, web1, restart, \"{{x}}\"]"), "line 5", "at the other end"},

		{"an untyped input", one("inputs: {x: {}}\nrun: [ls, \"{{x}}\"]"), "line 4", "needs a type: string, integer"},
		{"an object", one("inputs: {x: {type: object}}\nrun: [ls, \"{{x}}\"]"), "line 4", "needs a type"},
		{"a list of anything", one("inputs: {x: {type: array}}\nrun: [ls, \"{{x}}\"]"), "line 4", "items: {type: string}"},
		{"a misspelt keyword", one("inputs: {x: {type: string, patern: ^a$}}\nrun: [ls, \"{{x}}\"]"), "line 4", "did you mean pattern?"},
		{"required", one("inputs: {x: {type: string, required: true}}\nrun: [ls, \"{{x}}\"]"), "line 4", "every input is required"},
		{"a format", one("inputs: {x: {type: string, format: hostname}}\nrun: [ls, \"{{x}}\"]"), "line 4", "use a pattern"},
		{"an open pattern", one("inputs: {x: {type: string, pattern: '[a-z]+'}}\nrun: [ls, \"{{x}}\"]"), "line 4", "^(?:[a-z]+)$"},
		{"a pattern without an end", one("inputs: {x: {type: string, pattern: '^[a-z]+'}}\nrun: [ls, \"{{x}}\"]"), "line 4", "merely contains"},
		{"half a pattern", one("inputs: {x: {type: string, pattern: '^a|b$'}}\nrun: [ls, \"{{x}}\"]"), "line 4", "merely contains"},
		{"a line's end", one("inputs: {x: {type: string, pattern: '(?m)^a$'}}\nrun: [ls, \"{{x}}\"]"), "line 4", "merely contains"},
		{"a broken pattern", one("inputs: {x: {type: string, pattern: '^(a$'}}\nrun: [ls, \"{{x}}\"]"), "line 4", "missing closing )"},
		{"a wrong type", one("inputs: {x: {type: string, minLength: three}}\nrun: [ls, \"{{x}}\"]"), "line 4", "minLength"},
		{"a default that doesn't fit", one("inputs: {x: {type: integer, minimum: 3, default: 1}}\nrun: [ls, \"{{x}}\"]"), "line 4", "minimum"},
		{"an enum of another type", one("inputs: {x: {type: string, enum: [1]}}\nrun: [ls, \"{{x}}\"]"), "line 4", "1 doesn't fit"},
		{"optional nothing", one("inputs: {x: {type: string}}\noptional: [y]\nrun: [ls, \"{{x}}\"]"), "line 5", "no input y"},

		{"a relative dir", one("run: [ls]\ndir: sub"), "line 5", "absolute path, or the word workspace"},
		{"an input in env", one("run: [ls]\nenv: {A: \"{{x}}\"}"), "line 5", "passed as it is"},
		{"a name in env", one("run: [ls]\nenv: {A-B: x}"), "line 5", "letters, digits and _"},
		{"a secret itself", one("run: [ls]\nsecrets: {TOKEN: not-a-secret}"), "line 5", "has to be a mapping"},
		{"a secret as a name", one("run: [ls]\nsecrets: {TOKEN: {from_env: made-up-secret}}"), "line 5", "not the secret itself"},
		{"a secret from nowhere", one("run: [ls]\nsecrets: {TOKEN: {}}"), "line 5", "one of the two"},
		{"a secret from both", one("run: [ls]\nsecrets: {TOKEN: {from_env: A, from_file: /a}}"), "line 5", "one of the two"},
		{"our own token", one("run: [ls]\nsecrets: {T: {from_env: APPROVALBOT_API_TOKEN}}"), "line 5", "could approve what it asks for"},
		{"secret and env", one("run: [ls]\nenv: {T: x}\nsecrets: {T: {from_env: A}}"), "line 6", "under env and under secrets"},

		{"a timeout without unit", one("run: [ls]\ntimeout: 30"), "line 5", "90s"},
		{"a long timeout", one("run: [ls]\ntimeout: 48h"), "line 5", "between 1s and 24h"},
		{"an exit status", one("run: [ls]\nexit_codes: {ok: done}"), "line 5", "0 to 255"},
		{"an exit's meaning", one("run: [ls]\nexit_codes: {3: {}}"), "line 5", "nothing to do"},
		{"annotations", one("run: [ls]\nannotations: {readOnly: true}"), "line 5", "did you mean readOnlyHint?"},
		{"a risk", one("run: [ls]\nrisk: severe"), "line 5", "low, medium, high or critical"},
		{"approvers", one("run: [ls]\napprovers: [everyone]"), "line 5", `"everyone" is nobody`},
		{"no approvers", one("run: [ls]\napprovers: []"), "line 5", "the list is empty"},
		{"quorum", one("run: [ls]\nquorum: 0"), "line 5", "between 1 and 20"},
		{"confirm", one("run: [ls]\nconfirm: \"yes\""), "line 5", "true or false"},
		{"a summary with a gap", one("inputs: {x: {type: string}}\noptional: [x]\nrun: [ls, [\"{{x}}\"]]\nsummary: Do {{x}}"), "line 7", "people would read a gap"},
		{"an example", one("inputs: {x: {type: string, maxLength: 2}}\nrun: [ls, \"{{x}}\"]\nexamples: [{x: abc}]"), "line 6", "maxLength"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := Parse("actions.yaml", []byte(tt.text), anyone)
			e, ok := errors.AsType[*Error](err)
			if !ok {
				t.Fatalf("got %v, want an *Error", err)
			}
			if text := err.Error(); !strings.Contains(text, tt.want) || !strings.Contains(text, tt.line+":") {
				t.Errorf("got %s\nwant %s and %q", text, tt.line, tt.want)
			}
			for _, p := range e.Problems {
				if strings.Contains(p.Text, "made-up-secret") {
					t.Errorf("it repeats what may be a secret: %s", p)
				}
			}
		})
	}
}

// All that is wrong is told at once, in the order of the lines.
func TestAllErrorsAtOnce(t *testing.T) {
	_, err := Parse("actions.yaml", []byte(one("run: [ls]\nrisk: severe\nquorum: no\nnonsense: 1")+"  - name: b\n    run: ls\n"), anyone)
	e, ok := errors.AsType[*Error](err)
	if !ok || len(e.Problems) != 5 {
		t.Fatalf("got %v, want 5 problems", err)
	}
	for i, line := range []int{5, 6, 7, 8, 9} {
		if e.Problems[i].Line != line {
			t.Errorf("problem %d is %v, want it in line %d", i, e.Problems[i], line)
		}
	}
	if e.Problems[4].Action != "b" {
		t.Errorf("it doesn't say which action: %v", e.Problems[4])
	}
}

// An input that can't be read hides nothing but that it is missing elsewhere, and a wrong action nothing of what a sound
// one lacks on this machine.
func TestNothingHidesBehindAnInput(t *testing.T) {
	text := one("inputs:\n  x: {type: sting}\n  y: {type: string}\noptional: [x]\nrun: [./here.sh, sh, -c, \"{{x}}\"]\nsummary: Do {{x}}") +
		"  - {name: b, description: x, run: [no-such-program], secrets: {T: {from_env: APPROVALBOT_NO_SUCH_SECRET}}}\n"
	file := filepath.Join(t.TempDir(), "actions.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := Open(file, anyone, Machine{})
	e, ok := errors.AsType[*Error](err)
	want := []string{"line 5: a: the input x needs a type", "line 6: a: the input y is used nowhere", "line 8: a: the program ./here.sh has to be", "line 8: a: a value can't stand in code",
		"line 10: b: there is no program no-such-program", "line 10: b: the secret T: "}
	if !ok || len(e.Problems) != len(want) {
		t.Fatalf("got %v", err)
	}
	for i, p := range e.Problems {
		if !strings.HasPrefix(p.String(), want[i]) {
			t.Errorf("want %q, got %q", want[i], p)
		}
	}
}

// The example that comes with the program is right, and nothing about it is remarkable.
func TestExampleFile(t *testing.T) {
	f, err := Load("../../../deploy/actions.example.yaml", anyone)
	if err != nil {
		t.Fatal(err)
	}
	if notes := f.Notes(); len(notes) > 0 {
		t.Errorf("notes: %v", notes)
	}
	for _, a := range f.Actions() {
		samples, err := a.Samples()
		if err != nil {
			t.Errorf("%s: %v", a.Name(), err)
		}
		for _, args := range samples {
			if _, err := a.Describe(args); err != nil {
				t.Errorf("%s %s: %v", a.Name(), args, err)
			}
		}
	}
}

func TestLoadWantsAFile(t *testing.T) {
	if _, err := Load(t.TempDir(), anyone); err == nil {
		t.Error("a directory was read")
	}
	if _, err := Load(t.TempDir()+"/none", anyone); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("got %v", err)
	}
}

func FuzzParse(f *testing.F) {
	example, err := os.ReadFile("../../../deploy/actions.example.yaml")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(string(example))
	f.Add(one("run: [ls]\nexit_codes: {0: done, 3: {failed: x}}"))
	f.Add(one("inputs: {x: {type: array, items: {type: integer}}}\noptional: [x]\nrun: [ls, [\"{{x}}\"]]"))
	f.Add("actions: [{name: &a x, description: *a, run: [!!binary aGk=, ~, 1e3]}]")
	f.Fuzz(func(t *testing.T, text string) {
		file, err := Parse("f", []byte(text), anyone)
		if err != nil {
			if e, ok := errors.AsType[*Error](err); !ok || len(e.Problems) == 0 {
				t.Fatalf("%T: %v", err, err)
			}
			return
		}
		for _, a := range file.Actions() {
			samples, err := a.Samples()
			if err != nil {
				continue
			}
			for _, args := range samples {
				if _, err := a.Describe(args); err != nil {
					continue // made-up values may begin with a dash
				}
			}
		}
	})
}

// What the manual shows is right, too.
func TestManual(t *testing.T) {
	text, err := os.ReadFile("../../../docs/actions.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), "```yaml\n")
	whole, rest, _ := strings.Cut(rest, "```")
	parse(t, whole)
	for _, field := range fieldNames {
		if !strings.Contains(string(text), "| `"+field+"` |") {
			t.Errorf("it doesn't explain %s", field)
		}
	}
	for _, word := range keywords {
		if !strings.Contains(string(text), "`"+word+"`") {
			t.Errorf("it doesn't name %s", word)
		}
	}
	_, rest, _ = strings.Cut(rest, "```yaml\nrun:")
	run, rest, _ := strings.Cut(rest, "```")
	parse(t, one("inputs: {replicas: {type: integer}, reason: {type: string}, dry_run: {type: boolean}, labels: {type: array, items: {type: string}}, name: {type: string}}\n"+
		"optional: [reason, dry_run]\nrun:\n"+run))
	_, rest, _ = strings.Cut(rest, "```yaml\nsecrets:")
	secrets, _, _ := strings.Cut(rest, "```")
	parse(t, one("run: [ls]\nsecrets:"+secrets))
}

// A value that would be code, or name the program that runs, is refused however the option before it is written; and
// where it is neither it is taken.
func TestValuesThatWouldRun(t *testing.T) {
	load := func(run string) error {
		inputs := "inputs: {x: {type: string}}"
		if strings.Contains(run, "{{c}}") {
			inputs = strings.Replace("inputs: {x: {type: string}, c: {type: string, enum: [a, b]}}", "x: {type: string}, ", strings.Repeat("x: {type: string}, ", strings.Count(run, "{{x}}")), 1)
		}
		_, err := Parse("actions.yaml", []byte(one(inputs+"\nrun: "+run)), anyone)
		return err
	}
	for _, run := range []string{
		`[sh, -ce, "{{x}}"]`, `[bash, -cx, "{{x}}"]`, `[sh, -c, --, "{{x}}"]`, `[sh, -c, -e, "{{x}}"]`, `[perl, "-e{{x}}"]`, `[perl, "-ne{{x}}"]`, `[node, "--eval={{x}}"]`,
		`[psql, "--command={{x}}"]`, `[python3, "-c{{x}}"]`, `[su, root, "-c{{x}}"]`, `[su, root, "--command={{x}}"]`, `[lua5.4, -e, "{{x}}"]`, `[Rscript, -e, "{{x}}"]`,
		`[mongosh, --eval, "{{x}}"]`, `[tar, "--to-command={{x}}", -xf, a]`, `[rsync, -e, "{{x}}", a, b]`, `[env, -S, "{{x}}"]`, `[vim, -c, "{{x}}"]`, `[gdb, -ex, "{{x}}"]`,
		`[sh, -c, 'exec "$@"', sh, sudo, bash, -c, "{{x}}"]`, `[sed, -e, s/a/b/, -e, "{{x}}", a]`,
	} {
		if err := load(run); err == nil || !strings.Contains(err.Error(), "can't stand in code") {
			t.Errorf("%s: %v", run, err)
		}
	}
	for _, run := range []string{
		`[sudo, "{{x}}"]`, `[sudo, -n, "{{x}}"]`, `[sudo, -u, www, "{{x}}"]`, `[sudo, --, "{{x}}"]`, `[env, A=b, "{{x}}"]`, `[timeout, "10", "{{x}}"]`, `[timeout, -k, "5", "10", "{{x}}"]`,
		`[nice, -n, "10", "{{x}}"]`, `[nohup, "{{x}}"]`, `[xargs, "{{x}}"]`, `[find, /srv, -exec, "{{x}}", ";"]`, `[bash, "{{x}}"]`, `[bash, -x, "{{x}}"]`, `[python3, "{{x}}"]`,
		`[sudo, bash, "{{x}}"]`, `[chroot, /srv, "{{x}}"]`, `[sudo, timeout, "5", "{{x}}"]`,
	} {
		if err := load(run); err == nil || !strings.Contains(err.Error(), "which program runs can't be an input") {
			t.Errorf("%s: %v", run, err)
		}
	}
	for _, run := range []string{
		`[sh, -c, 'echo "$1"', sh, "{{x}}"]`, `[sh, -ec, 'echo "$0"', "{{x}}"]`, `[bash, "{{c}}"]`, `[sudo, "{{c}}"]`, `[sudo, -u, "{{x}}", systemctl, restart, web]`, `[sudo, systemctl, restart, "{{x}}"]`,
		`[timeout, "{{x}}", systemctl, restart, web]`, `[env, A=b, systemctl, restart, "{{x}}"]`, `[nice, -n, "{{x}}", ls]`, `[find, "{{x}}", -name, a]`, `[psql, -U, "{{x}}", -d, app]`,
		`[git, switch, -c, "{{x}}"]`, `[python3, /srv/x.py, "{{x}}"]`, `[python3, /srv/x.py, -c, "{{c}}"]`, `[bash, /srv/deploy.sh, "{{x}}"]`, `[rsync, -a, "{{x}}", /srv]`, `[sed, -n, 1p, "{{x}}"]`,
		`[kubectl, scale, "deployment/{{x}}", "--replicas={{c}}"]`, `[tar, -xf, "{{x}}"]`,
	} {
		if err := load(run); err != nil {
			t.Errorf("%s: %v", run, err)
		}
	}
}
