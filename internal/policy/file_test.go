package policy

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestLoad(t *testing.T) {
	f, err := Load("p.yaml", []byte(`
# Comments are free.
rules:
  - name: one
    tool: shell
    effect: deny
  - name: two
    tool: &tools [deploy, "scale_*"]
    when: |
      args.environment == "production" &&
        now.getHours("Europe/Berlin") < 8
    effect: ask
    reason: >
      Two pairs
      of eyes.
    risk: critical
    approvers: [requester, channel, U0A, S0B]
    quorum: 2
    timeout: 1h30m
    confirm: true
  - {name: three, tool: *tools, effect: allow}
tests:
  - name: by day
    tool: deploy
    args: {environment: production, replicas: 3, ratio: 0.50, since: 2026-01-01, deep: {a: [true, null]}}
    requesters: [U0A, U0B]
    channel: C0A
    now: 2026-01-01T12:00:00Z
    annotations: {readOnlyHint: true}
    known: {path: a/b, host: example.com, programs: [ls, cat]}
    approvalPolicy: strict
    expect: ask
    rule: [two]
    quorum: 2
`))
	if err != nil {
		t.Fatal(err)
	}
	list := f.Rules.List()
	for i := range list {
		list[i].when = nil
	}
	want := []Rule{
		{Name: "one", Tools: []string{"shell"}, Effect: Deny, Line: 4},
		{Name: "two", Tools: []string{"deploy", "scale_*"}, When: "args.environment == \"production\" &&\n  now.getHours(\"Europe/Berlin\") < 8", Effect: Ask, Reason: "Two pairs of eyes.", Line: 7,
			Wanted: Wanted{Risk: "critical", Approvers: []string{"requester", "channel", "U0A", "S0B"}, Quorum: 2, Timeout: 90 * time.Minute, Confirm: true}},
		{Name: "three", Tools: []string{"deploy", "scale_*"}, Effect: Allow, Line: 21},
	}
	if diff := cmp.Diff(want, list, cmp.AllowUnexported(Rule{})); diff != "" {
		t.Error(diff)
	}
	e := f.Examples[0]
	wantCall := Call{Tool: "deploy", Args: args(`{"deep":{"a":[true,null]},"environment":"production","ratio":0.50,"replicas":3,"since":"2026-01-01"}`),
		Requesters: []string{"U0A", "U0B"}, Channel: "C0A", Now: time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)}
	if diff := cmp.Diff(wantCall, e.Call); diff != "" {
		t.Error(diff)
	}
	e.Known.In(&wantCall)
	if wantCall.Path != "a/b" || wantCall.Host != "example.com" || !wantCall.Parsed || len(wantCall.Programs) != 2 {
		t.Errorf("got %+v", wantCall)
	}
	if !e.Hints["readOnlyHint"] || e.Settings.ApprovalPolicy != Strict || e.Expect != Ask || e.Line != 23 {
		t.Errorf("got %+v", e)
	}
	if diff := e.Check(Decision{Type: Ask, Rule: "rules: two", Wanted: Wanted{Quorum: 2}}); diff != nil {
		t.Error(diff)
	}
	wrong := []string{"expect: want ask, got deny", "rule: want two, got one, three", "quorum: want 2, got 0"}
	if diff := cmp.Diff(wrong, e.Check(Decision{Type: Deny, Rule: "rules: one, three; tool: x"})); diff != "" {
		t.Error(diff)
	}
}

// Everything that is wrong is named with its place, all at once, and with what would be right.
func TestLoadNamesWhatIsWrong(t *testing.T) {
	for _, tt := range []struct {
		name, text string
		want       []string // line:column and a part of the sentence
	}{
		{"empty", "", []string{"0:0 it is empty"}},
		{"only comments", "# nothing\n", []string{"0:0 it is empty"}},
		{"not YAML", "rules:\n  - name: [a\n", []string{"2:1 this is not YAML"}},
		{"two documents", "rules: []\n---\nrules: []\n", []string{"0:0 one YAML document"}},
		{"no rules", "tests: []\n", []string{"1:1 there is no list of rules"}},
		{"a list", "- a\n", []string{"1:1 a policy file has to be a mapping"}},
		{"not UTF-8", "rules: [\xff]\n", []string{"0:0 not UTF-8"}},
		{"keys", "rules:\n  - name: a\n    tool: x\n    effekt: deny\n    tool: y\nrule: []\n",
			[]string{"2:5 a rule needs the key effect", `4:5 a rule has no key "effekt"`, "5:5 a rule has the key tool twice", `6:1 a policy file has no key "rule"`}},
		{"kinds", "rules:\n  - name: 1\n    tool: {a: b}\n    when: true\n    effect: maybe\n    risk: huge\n    approvers: []\n    quorum: two\n    timeout: 5\n    confirm: \"yes\"\n",
			[]string{`2:11 name has to be a text: put it in quotes, as "1"`, "2:11 the name", "3:11 tool has to be a text", "3:11 tool names no tool", "4:11 when has to be a text", "5:13 effect is \"maybe\": it has to be allow, ask or deny", "6:11 low, medium, high, critical", "7:16 approvers is empty", "8:13 quorum is \"two\"", "9:14 timeout is \"5\"", "10:14 confirm is \"yes\": it has to be true or false"}},
		{"names", "rules:\n  - {name: a b, tool: 'x y', effect: ask, approvers: ['@bob', U0A, U0A]}\n  - {name: c, tool: x, effect: deny}\n  - {name: c, tool: x, effect: deny}\n",
			[]string{`2:12 the name "a b"`, `2:23 the tool "x y"`, `2:55 the approver "@bob"`, "2:68 the approver U0A is named twice", "4:5 two rules called c, the other one on line 3"}},
		{"wants of a deny", "rules:\n  - {name: a, tool: x, effect: deny, quorum: 2}\n", []string{"2:46 quorum has no meaning in a rule whose effect is deny"}},
		{"too few people", "rules:\n  - {name: a, tool: x, effect: ask, quorum: 2, approvers: U0A}\n", []string{"2:45 2 different people have to approve, and approvers names only 1"}},
		{"a variable", "rules:\n  - name: a\n    tool: x\n    effect: deny\n    when: arg.x == 1\n", []string{"5:11 when: there is no arg: a condition may ask for tool, args, command.text"}},
		{"a variable in quotes", "rules:\n  - name: a\n    tool: x\n    effect: deny\n    when: 'tool == \"it''s\" && arg.x == 1'\n", []string{"5:31 when: there is no arg"}},
		{"a variable in a block", "rules:\n  - name: a\n    tool: x\n    effect: deny\n    when: |\n      tool == \"x\" &&\n      requestor == \"U0A\"\n", []string{"7:7 when: there is no requestor"}},
		{"a variable in a folded block", "rules:\n  - name: a\n    tool: x\n    effect: deny\n    when: >-\n      tool == \"x\" &&\n      requestor == \"U0A\"\n", []string{"7:7 when: there is no requestor"}},
		{"a type", "rules:\n  - {name: a, tool: x, effect: deny, when: tool == 3}\n", []string{"2:49 when: == doesn't work with (string, int)"}},
		{"not a condition", "rules:\n  - {name: a, tool: x, effect: deny, when: tool}\n", []string{"2:44 when: it has to be true or false, and gives a string"}},
		{"syntax", "rules:\n  - {name: a, tool: x, effect: deny, when: 'tool == \"x\" and path == \"\"'}\n", []string{"2:57 when: it can't be read"}},
		{"a time zone", "rules:\n  - {name: a, tool: x, effect: deny, when: 'now.getHours(\"Europe/Berln\") > 3'}\n", []string{`2:58 when: there is no time zone "Europe/Berln"`}},
		{"a regular expression", "rules:\n  - {name: a, tool: x, effect: deny, when: 'path.matches(\"(\")'}\n", []string{"2:58 when: invalid matches argument"}},
		{"nested too deep", "rules:\n  - {name: a, tool: x, effect: deny, when: 'requesters.all(a, requesters.all(b, requesters.all(c, a == b && b == c)))'}\n", []string{"2:95 when: comprehension exceeds nesting limit"}},
		{"tests", "rules: []\ntests:\n  - {tool: \"a*\", args: [], expect: ask, rule: b, now: today, approvalPolicy: lax, requester: U0A, requesters: U0B}\n  - {tool: a, expect: deny, quorum: 2, annotations: {readOnly: true}, args: {x: !!binary aGk=, y: {a: 1, a: 2}}}\n",
			[]string{"3:12 the tool \"a*\" has to be one tool's name", "3:24 args has to be a mapping", "3:47 there is no rule \"b\"", "3:55 now is \"today\"", "3:78 unknown approval policy \"lax\"", "3:94 requester or requesters, not both", "4:37 can't expect quorum", "4:54 annotations has no key \"readOnly\"", "4:81 args: a value of the kind !!binary has no place in JSON", "4:106 args: \"a\" can't be a key here"}},
	} {
		_, err := Load("p.yaml", []byte(tt.text))
		var wrong *FileError
		if !errors.As(err, &wrong) {
			t.Errorf("%s: %v", tt.name, err)
			continue
		}
		var got []string
		for _, p := range wrong.Problems {
			got = append(got, fmt.Sprintf("%d:%d %s", p.Line, p.Column, p.What))
		}
		if len(got) != len(tt.want) {
			t.Errorf("%s: want %d problems, got\n%s", tt.name, len(tt.want), strings.Join(got, "\n"))
			continue
		}
		for i, want := range tt.want {
			at, what, _ := strings.Cut(want, " ")
			if !strings.HasPrefix(got[i], at+" ") || !strings.Contains(got[i], what) {
				t.Errorf("%s: want %q, got %q", tt.name, want, got[i])
			}
		}
	}
}

func TestFileError(t *testing.T) {
	one := &FileError{"p.yaml", []Problem{{3, 5, "no"}}}
	if got := one.Error(); got != "p.yaml:3:5: no" {
		t.Errorf("got %q", got)
	}
	one.Problems = append(one.Problems, Problem{What: "and more"})
	if got := one.Error(); got != "2 things are wrong with the policy file:\np.yaml:3:5: no\np.yaml: and more" {
		t.Errorf("got %q", got)
	}
}

// A file of aliases of aliases is refused, not unfolded.
func TestAliasesAreBounded(t *testing.T) {
	text := "rules: []\ntests:\n  - tool: x\n    expect: ask\n    args:\n      a: &a [1,1,1,1,1,1,1,1,1,1]\n"
	for i := range 8 {
		c := string(rune('a' + i))
		next := string(rune('b' + i))
		text += fmt.Sprintf("      %s: &%s [%s]\n", next, next, strings.TrimSuffix(strings.Repeat("*"+c+", ", 10), ", "))
	}
	if _, err := Load("p.yaml", []byte(text)); err == nil || !strings.Contains(err.Error(), "more than 10000 values") {
		t.Errorf("got %v", err)
	}
	if _, err := Load("p.yaml", []byte("rules: []\ntests:\n  - {tool: x, expect: ask, args: &a {b: *a}}\n")); err == nil {
		t.Error("a value that contains itself was read")
	}
}

// Whatever a file says: it is read or refused, and what is read decides as it must.
func FuzzLoad(f *testing.F) {
	for _, seed := range []string{house, "", "rules: []", "rules: [{name: a, tool: '*', when: 'args.x', effect: allow}]", "rules: &a [*a]", "rume\r\r\rss: ]", "rules:\n- name: a\n  tool: x\n  when: >\n    a\n\n    b\n  effect: deny\n"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		file, err := Load("p.yaml", []byte(text))
		if err != nil {
			var wrong *FileError
			if !errors.As(err, &wrong) || len(wrong.Problems) == 0 || file != nil {
				t.Fatalf("%v, %v", file, err)
			}
			for _, p := range wrong.Problems {
				if p.What == "" || p.Line < 0 || p.Line > len(text)+2 { // YAML ends lines at more than line feeds
					t.Errorf("%+v", p)
				}
			}
			return
		}
		p := judging(Settings{OnRequest, WorkspaceWrite}, file.Rules)
		p.Decide(Call{Tool: "shell", Args: args(`{"command":"x"}`)})
		for _, e := range file.Examples {
			if !json.Valid(e.Call.Args) {
				t.Errorf("the arguments of an example are %q", e.Call.Args)
			}
			e.Check(p.Decide(e.Call))
		}
	})
}

// No condition, whatever it is, makes a rule allow by failing, or lets a call through that a deny rule
// failed on; the time is bounded by the limit on cost.
func FuzzDecide(f *testing.F) {
	for _, seed := range [][2]string{
		{"args.x == 1", `{"x":1}`}, {"args.x", `{"x":true}`}, {"args.x.y.z > 3", `{}`}, {"int(args.x) / args.y > 1", `{"x":"1","y":0}`},
		{"command.programs.all(p, p == 'ls')", `{"command":"ls"}`}, {"args.all(k, args[k] == 1)", `{"a":1}`},
		{"timestamp(args.t) > now", `{"t":"x"}`}, {"[1,2,3].exists(x, x == args.n)", `{"n":3.0}`},
	} {
		f.Add(seed[0], seed[1])
	}
	f.Fuzz(func(t *testing.T, when, arguments string) {
		e, wrong := compile(when)
		if wrong != nil {
			return
		}
		call := Call{Tool: "x", Destructive: true, Args: args(arguments), Requesters: []string{"U0A"}}
		decide := func(effect Type) Decision {
			return judging(Settings{OnRequest, WorkspaceWrite}, &Rules{[]Rule{{Name: "r", Tools: []string{"x"}, Effect: effect, When: when, when: e}}}).Decide(call)
		}
		is, err := e.eval(&input{call: &call, requester: "U0A"})
		counts := err != nil || is
		isAllowed, wrongly := e.eval(&input{call: &call, requester: "U0A", allows: true})
		if isAllowed && !is {
			t.Errorf("%s of %s holds for an allow rule only", when, arguments)
		}
		if got := decide(Allow).Allowed(); got != (wrongly == nil && isAllowed) {
			t.Errorf("allow if %s of %s: allowed is %v (%v, %v)", when, arguments, got, is, err)
		}
		if got := decide(Deny).Denied(); got != counts {
			t.Errorf("deny if %s of %s: denied is %v (%v, %v)", when, arguments, got, is, err)
		}
		if d := decide(Ask); !d.NeedsApproval() || (d.Source == SourceRules) != counts {
			t.Errorf("ask if %s of %s: %+v (%v, %v)", when, arguments, d, is, err)
		}
	})
}
