package policy

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func load(t testing.TB, text string) *Rules {
	t.Helper()
	f, err := Load("policy.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return f.Rules
}

func under(t testing.TB, a ApprovalPolicy, r *Rules) *Policy {
	t.Helper()
	p, err := New(a, WorkspaceWrite)
	if err != nil {
		t.Fatal(err)
	}
	return p.With(r)
}

// judging is the policy of settings and rules, also of ones that no file would give.
func judging(s Settings, r *Rules) *Policy { return sealed(Policy{settings: s, rules: r}) }

const house = `
rules:
  - {name: reads, tool: "read_*", effect: allow}
  - {name: docs, tool: write_file, when: 'path.startsWith("docs/")', effect: allow, reason: Documents are free}
  - {name: keys, tool: "*", when: 'path.endsWith(".pem")', effect: deny, reason: Keys are nobody's business., risk: critical}
  - {name: production, tool: [deploy, "scale_*"], when: 'args.environment == "production"', effect: ask, reason: Production needs two pairs of eyes, risk: critical, approvers: [S0SRE, U0CHIEF], quorum: 2, timeout: 30m, confirm: true}
  - {name: friday, tool: deploy, when: 'now.getDayOfWeek("Europe/Berlin") == 5', effect: ask, risk: high, approvers: [U0CHIEF, U0DEPUTY, S0SRE], timeout: 10m}
  - {name: staging, tool: deploy, when: 'args.environment == "staging"', effect: allow}
  - {name: danger, tool: shell, when: '"rm" in command.programs', effect: deny}
  - {name: looks, tool: shell, when: 'command.parsed && command.programs.all(p, p in ["ls", "cat"])', effect: allow}
  - {name: interns, tool: deploy, when: 'requester == "U0INTERN"', effect: deny, reason: Interns don't deploy.}
  - {name: lead, tool: release, when: 'requester == "U0LEAD"', effect: allow}
`

func args(s string) json.RawMessage { return json.RawMessage(s) }

var (
	monday = time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC)
	friday = time.Date(2026, 3, 6, 12, 0, 0, 0, time.UTC)
)

func TestRules(t *testing.T) {
	r := load(t, house)
	unknown := func(c Call) Call { c.Destructive, c.OpenWorld = true, true; return c }
	sh := func(parsed bool, programs ...string) Call {
		return unknown(Call{Tool: "shell", Args: args(`{"command":"x"}`), Parsed: parsed, Programs: programs})
	}
	production := Wanted{Risk: "critical", Approvers: []string{"S0SRE", "U0CHIEF"}, Quorum: 2, Timeout: 30 * time.Minute, Confirm: true}
	both := production
	both.Timeout = 10 * time.Minute
	for _, tt := range []struct {
		name string
		mode ApprovalPolicy
		call Call
		want Decision
	}{
		{"an allow", OnRequest, unknown(Call{Tool: "write_file", Path: "docs/a.md"}), Decision{Type: Allow, Source: "rules", Rule: "rules: docs", Reason: "Documents are free."}},
		{"no rule matches", OnRequest, unknown(Call{Tool: "write_file", Path: "src/a.go"}), Decision{Type: Ask, Source: "approvalPolicy", Rule: "approvalPolicy=on_request", Reason: "write_file can change things and reach beyond the workspace, so it needs approval (policy on_request)."}},
		{"an allow under strict", Strict, unknown(Call{Tool: "write_file", Path: "docs/a.md"}), Decision{Type: Ask, Source: "approvalPolicy", Rule: "approvalPolicy=strict", Reason: "write_file can change things and reach beyond the workspace, and every call needs approval (policy strict)."}},
		{"a deny beats an allow", Never, Call{Tool: "read_file", Path: "a.pem", ReadOnly: true}, Decision{Type: Deny, Source: "rules", Rule: "rules: keys", Reason: "Keys are nobody's business.", Wanted: Wanted{Risk: "critical"}}},
		{"an ask beats never", Never, unknown(Call{Tool: "scale_web", Args: args(`{"environment":"production"}`), Now: friday}), Decision{Type: Ask, Source: "rules", Rule: "rules: production", Reason: "Production needs two pairs of eyes.", Wanted: production}},
		{"two asks", OnRequest, unknown(Call{Tool: "deploy", Args: args(`{"environment":"production"}`), Now: friday, Requesters: []string{"U0A"}}), Decision{Type: Ask, Source: "rules", Rule: "rules: friday, production", Reason: "The rule friday asks about this call of deploy. Production needs two pairs of eyes.", Wanted: both}},
		{"an ask beats an allow", OnRequest, unknown(Call{Tool: "deploy", Args: args(`{"environment":"staging"}`), Now: friday}), Decision{Type: Ask, Source: "rules", Rule: "rules: friday", Reason: "The rule friday asks about this call of deploy.", Wanted: Wanted{Risk: "high", Approvers: []string{"S0SRE", "U0CHIEF", "U0DEPUTY"}, Timeout: 10 * time.Minute}}},
		{"an allow by argument", OnRequest, unknown(Call{Tool: "deploy", Args: args(`{"environment":"staging"}`), Now: monday}), Decision{Type: Allow, Source: "rules", Rule: "rules: staging", Reason: "The rule staging allows this call of deploy."}},
		{"a missing argument asks and doesn't allow", OnRequest, unknown(Call{Tool: "deploy", Args: args(`{}`), Now: monday}), Decision{Type: Ask, Source: "rules", Rule: "rules: production", Reason: "The rule production asks about it, because it could not be evaluated: there is no argument environment. Production needs two pairs of eyes.", Wanted: production}},
		{"a program that is denied", OnRequest, sh(true, "git", "rm"), Decision{Type: Deny, Source: "rules", Rule: "rules: danger", Reason: "The rule danger denies this call of shell."}},
		{"programs that are allowed", OnRequest, sh(true, "ls", "cat"), Decision{Type: Allow, Source: "rules", Rule: "rules: looks", Reason: "The rule looks allows this call of shell."}},
		{"programs that nobody knows", OnRequest, sh(false, "ls"), Decision{Type: Deny, Source: "rules", Rule: "rules: danger", Reason: "The rule danger denies it, because it could not be evaluated: its programs are not known, for the command could not be understood whole."}},
		{"one of several requesters", OnRequest, unknown(Call{Tool: "deploy", Args: args(`{"environment":"staging"}`), Now: monday, Requesters: []string{"U0A", "U0INTERN"}}), Decision{Type: Deny, Source: "rules", Rule: "rules: interns", Reason: "Interns don't deploy."}},
		{"all requesters", Never, unknown(Call{Tool: "release", Requesters: []string{"U0LEAD"}}), Decision{Type: Allow, Source: "rules", Rule: "rules: lead", Reason: "The rule lead allows this call of release."}},
		{"not all requesters", OnRequest, unknown(Call{Tool: "release", Requesters: []string{"U0LEAD", "U0A"}}), Decision{Type: Ask, Source: "approvalPolicy", Rule: "approvalPolicy=on_request", Reason: "release can change things and reach beyond the workspace, so it needs approval (policy on_request)."}},
		{"no requester", OnRequest, unknown(Call{Tool: "release"}), Decision{Type: Ask, Source: "approvalPolicy", Rule: "approvalPolicy=on_request", Reason: "release can change things and reach beyond the workspace, so it needs approval (policy on_request)."}},
		{"arguments that can't be read", OnRequest, unknown(Call{Tool: "deploy", Args: args(`[`), Now: monday}), Decision{Type: Ask, Source: "rules", Rule: "rules: production", Reason: "The rule production asks about it, because it could not be evaluated: the arguments are not a JSON object. Production needs two pairs of eyes.", Wanted: production}},
	} {
		if diff := cmp.Diff(tt.want, under(t, tt.mode, r).Decide(tt.call)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, diff)
		}
	}
}

// The sandbox stands before the rules.
func TestNoRuleUndoesTheSandbox(t *testing.T) {
	p, err := New(Never, ReadOnly)
	if err != nil {
		t.Fatal(err)
	}
	d := p.With(load(t, `rules: [{name: all, tool: "*", effect: allow}]`)).Decide(Call{Tool: "write_file", Destructive: true})
	if d.Type != Deny || d.Source != SourceSandboxMode {
		t.Errorf("got %+v", d)
	}
}

// A tool that says why it asks is quoted with that.
func TestAToolSaysWhyItAsks(t *testing.T) {
	p, err := New(Never, WorkspaceWrite)
	if err != nil {
		t.Fatal(err)
	}
	d := p.Decide(Call{Tool: "post_message", Ask: true, AskWhy: "it can't be taken back"})
	if want := "Every call of post_message asks people first: it can't be taken back."; d.Type != Ask || d.Reason != want {
		t.Errorf("%s: %s", d.Type, d.Reason)
	}
}

// What a tool's definition demands is an ask rule that always matches.
func TestDemandsOfATool(t *testing.T) {
	call := Call{Tool: "restart", Destructive: true, Ask: true, Wanted: Wanted{Risk: "high", Approvers: []string{"S0SRE", "S0OPS"}, Quorum: 2}}
	for _, tt := range []struct {
		name, rules string
		mode        ApprovalPolicy
		want        Decision
	}{
		{"alone, under never", `rules: []`, Never, Decision{Type: Ask, Source: "tool", Rule: "tool: restart", Reason: "Every call of restart asks people first: that is how it was defined.",
			Wanted: Wanted{Risk: "high", Approvers: []string{"S0OPS", "S0SRE"}, Quorum: 2}}},
		{"an allow doesn't undo it", `rules: [{name: free, tool: restart, effect: allow}]`, OnRequest, Decision{Type: Ask, Source: "tool", Rule: "tool: restart", Reason: "Every call of restart asks people first: that is how it was defined.",
			Wanted: Wanted{Risk: "high", Approvers: []string{"S0OPS", "S0SRE"}, Quorum: 2}}},
		{"an ask adds to it", `rules: [{name: sre, tool: restart, effect: ask, reason: It pages people., approvers: S0SRE, risk: medium, quorum: 3, timeout: 5m}]`, OnRequest, Decision{Type: Ask, Source: "rules", Rule: "rules: sre; tool: restart", Reason: "It pages people.",
			Wanted: Wanted{Risk: "high", Approvers: []string{"S0SRE"}, Quorum: 3, Timeout: 5 * time.Minute}}},
		{"a deny ends it", `rules: [{name: no, tool: restart, effect: deny}]`, OnRequest, Decision{Type: Deny, Source: "rules", Rule: "rules: no", Reason: "The rule no denies this call of restart."}},
		{"lists without a common entry", `rules: [{name: chief, tool: restart, effect: ask, approvers: U0CHIEF}]`, OnRequest, Decision{Type: Deny, Source: "rules", Rule: "rules: chief; tool: restart",
			Reason: "Nobody could approve this: the rule chief and the tool restart want different approvers, and no entry is in every list. Change them so that they have one in common.", Wanted: Wanted{Risk: "high"}}},
	} {
		if diff := cmp.Diff(tt.want, under(t, tt.mode, load(t, tt.rules)).Decide(call)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, diff)
		}
	}
	// Where the approval policy asks, what the tool wants holds, too.
	call.Ask = false
	if d := under(t, OnRequest, nil).Decide(call); d.Type != Ask || d.Risk != "high" || d.Quorum != 2 {
		t.Errorf("got %+v", d)
	}
}

func TestTooFewPeople(t *testing.T) {
	r := load(t, `rules:
- {name: two, tool: x, effect: ask, quorum: 2}
- {name: one, tool: x, effect: ask, approvers: U0CHIEF}
`)
	want := "Nobody could approve this: 2 different people have to, and the rule one leave only U0CHIEF."
	if d := under(t, OnRequest, r).Decide(Call{Tool: "x"}); d.Type != Deny || d.Reason != want || d.Rule != "rules: one, two" {
		t.Errorf("got %+v", d)
	}
}

func TestGlobs(t *testing.T) {
	for _, tt := range []struct {
		pattern, name string
		want          bool
	}{
		{"shell", "shell", true}, {"shell", "shells", false}, {"shell", "Shell", false},
		{"*", "", true}, {"*", "anything", true}, {"?", "", false}, {"?", "a", true},
		{"mcp__*__delete_*", "mcp__github__delete_repo", true}, {"mcp__*__delete_*", "mcp__github__create", false},
		{"*_file", "read_file", true}, {"*_file", "read_files", false}, {"a*b*c", "axxbxbc", true}, {"a**", "a", true},
		{"*a*a*a*a*b", strings.Repeat("a", 60), false},
	} {
		if got := globs(tt.pattern, tt.name); got != tt.want {
			t.Errorf("globs(%q, %q) = %v", tt.pattern, tt.name, got)
		}
	}
}

// Every variable that is documented has a value.
func TestVariables(t *testing.T) {
	call := Call{Tool: "shell", Args: args(`{"command":"ls","n":3,"f":2.5,"big":123456789012345678901234567890,"list":[1,"a",null],"deep":{"x":true}}`),
		Programs: []string{"ls"}, Parsed: true, ReadOnlyCommand: true, Path: "a/b", Host: "example.com", Requesters: []string{"U0A", "U0B"},
		Channel: "C0A", Session: "s", Now: friday, OpenWorld: true}
	for when, want := range map[string]bool{
		`tool == "shell"`: true, `args.n == 3 && args.n > 2.5 && args.n + 1 == 4`: true, `args.f > 2`: true, `args.big > 1000`: true,
		`args.list.size() == 3 && args.list[2] == null`: true, `has(args.deep.x) && args.deep.x`: true, `has(args.nothing)`: false,
		`"n" in args`: true, `command.text == "ls"`: true, `command.programs == ["ls"]`: true, `command.parsed`: true, `command.readOnly`: true,
		`path == "a/b"`: true, `host.endsWith(".com")`: true, `requesters.size() == 2`: true, `channel == "C0A"`: true, `session == "s"`: true,
		`now == timestamp("2026-03-06T12:00:00Z")`: true, `now.getHours("Asia/Kolkata") == 17`: true, `now.getHours() == 12`: true,
		`annotations.readOnlyHint || annotations.destructiveHint`: false, `annotations.openWorldHint`: true,
		`sets.intersects(command.programs, ["rm", "ls"])`: true, `"LS".lowerAscii() == command.text`: true, `args.command.matches("^l.$")`: true,
	} {
		e, wrong := compile(when)
		if wrong != nil {
			t.Errorf("%s: %v", when, wrong)
			continue
		}
		if got, err := e.eval(&input{call: &call, requester: "U0A"}); err != nil || got != want {
			t.Errorf("%s: %v, %v", when, got, err)
		}
	}
	for _, v := range Variables {
		if _, ok := (&input{call: &call}).ResolveName(v.Name); !ok {
			t.Errorf("%s has no value", v.Name)
		}
	}
}

// What takes too long is given up, and counts as what can't be evaluated.
func TestEvaluationIsBounded(t *testing.T) {
	long := strings.Repeat("9,", 20_000) + "9"
	call := Call{Tool: "x", Args: args(`{"list":[` + long + `],"text":"` + strings.Repeat("a", 1<<16) + `"}`)}
	check := func(when string, effect, want Type) {
		t.Helper()
		r := load(t, fmt.Sprintf("rules: [{name: slow, tool: x, when: '%s', effect: %s}]", when, effect))
		if d := under(t, OnRequest, r).Decide(call); d.Type != want || effect != Allow && !strings.Contains(d.Reason, "it took too long") {
			t.Fatalf("%s %s: %+v", effect, when, d)
		}
	}
	for _, when := range []string{
		`args.list.all(x, args.list.all(y, x == y))`,
		`args.list.all(x, args.text.matches("(a*)*b$") == false)`,
		`args.list.map(x, args.text + args.text).size() == 0`,
		`args.list.all(x, args.list == args.list)`,
		`args.list.all(x, !(args.text in args.list))`,
		`args.list.all(x, args.text.size() > 0)`,
		`args.list.all(x, args.text >= args.text)`,
		`args.list.all(x, bytes(args.text).size() > 0)`,
		`sets.contains(args.list, args.list)`,
		`sets.equivalent(args.list, args.list)`,
		`sets.intersects(args.list, args.list.map(x, x + 1))`,
	} {
		check(when, Deny, Deny)
	}
	const slow = `args.list.all(x, args.list.all(y, x == y))`
	check(slow, Ask, Ask)
	check(slow, Allow, Ask)
}

// One policy serves all runs at once.
func TestDecideConcurrently(t *testing.T) {
	p := under(t, OnRequest, load(t, house))
	call := Call{Tool: "deploy", Args: args(`{"environment":"production"}`), Now: friday, Requesters: []string{"U0A", "U0B"}}
	want := p.Decide(call)
	var g sync.WaitGroup
	for range 8 {
		g.Go(func() {
			for range 200 {
				if diff := cmp.Diff(want, p.Decide(call)); diff != "" {
					t.Error(diff)
					return
				}
			}
		})
	}
	g.Wait()
}

func TestExplain(t *testing.T) {
	p := under(t, OnRequest, load(t, house))
	d, findings := p.Explain(Call{Tool: "deploy", Args: args(`{}`), Now: monday})
	if d.Rule != "rules: production" {
		t.Errorf("got %+v", d)
	}
	var got []string
	for _, f := range findings {
		got = append(got, fmt.Sprintf("%s: %s %v %v", f.Rule.Name, f.Outcome, f.Counts, f.Err))
	}
	want := []string{
		"reads: another tool false <nil>", "docs: another tool false <nil>", "keys: does not match false <nil>",
		"production: failed true there is no argument environment", "friday: does not match false <nil>",
		"staging: failed false there is no argument environment", "danger: another tool false <nil>", "looks: another tool false <nil>",
		"interns: does not match false <nil>", "lead: another tool false <nil>",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// conditions that hold, don't, and fail, for the properties below.
var drawnConditions = []string{"", "true", "false", `args.x == 1`, `args.missing == 1`, `requester == "U0A"`, `command.programs.exists(p, p == "rm")`, `path == "a"`, `args.y`}

func drawRules(t *rapid.T, label string) []Rule {
	n := rapid.IntRange(0, 6).Draw(t, label)
	var rules []Rule
	for i := range n {
		r := Rule{
			Name:   fmt.Sprintf("%s-%d", label, i),
			Tools:  []string{rapid.SampledFrom([]string{"*", "shell", "read_*"}).Draw(t, "tool")},
			When:   rapid.SampledFrom(drawnConditions).Draw(t, "when"),
			Effect: rapid.SampledFrom([]Type{Allow, Ask, Deny}).Draw(t, "effect"),
		}
		if r.Effect == Ask {
			r.Wanted = Wanted{
				Risk:    rapid.SampledFrom(risks).Draw(t, "risk"),
				Quorum:  rapid.IntRange(0, 3).Draw(t, "quorum"),
				Timeout: time.Duration(rapid.IntRange(0, 3).Draw(t, "timeout")) * time.Minute,
				Confirm: rapid.Bool().Draw(t, "confirm"),
			}
			if rapid.Bool().Draw(t, "has approvers") {
				r.Approvers = rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"U0A", "U0B", "S0G", "channel"}), 1, 3, rapid.ID[string]).Draw(t, "approvers")
			}
		}
		if r.When != "" {
			e, wrong := compile(r.When)
			if wrong != nil {
				t.Fatal(wrong)
			}
			r.when = e
		}
		rules = append(rules, r)
	}
	return rules
}

func drawKnownCall(t *rapid.T) Call {
	c := drawCall(t)
	c.Args = args(rapid.SampledFrom([]string{`{}`, `{"x":1}`, `{"x":1,"y":true,"command":"rm a"}`, `{"y":"no"}`, `nonsense`, ``}).Draw(t, "args"))
	c.Programs = rapid.SampledFrom([][]string{nil, {"rm"}, {"ls"}}).Draw(t, "programs")
	c.Parsed = rapid.Bool().Draw(t, "parsed")
	c.Path = rapid.SampledFrom([]string{"", "a"}).Draw(t, "path")
	c.Requesters = rapid.SampledFrom([][]string{nil, {"U0A"}, {"U0B", "U0A"}}).Draw(t, "requesters")
	c.Ask = rapid.Bool().Draw(t, "ask")
	return c
}

func drawPolicy(t *rapid.T, rules []Rule) *Policy {
	s := drawSettings(t, "settings")
	return judging(s, &Rules{rules})
}

// A deny is never weakened by more rules, and neither is an ask, except by itself becoming a deny.
func TestMoreRulesNeverWeaken(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		some, more := drawRules(t, "some"), drawRules(t, "more")
		p, call := drawPolicy(t, some), drawKnownCall(t)
		before := p.Decide(call)
		after := p.With(&Rules{append(slices.Clone(some), more...)}).Decide(call)
		if before.Denied() && !after.Denied() {
			t.Fatalf("%+v became %+v", before, after)
		}
		// What a rule or a tool asks for, no other rule turns into an allow.
		if before.NeedsApproval() && before.Source != SourceApprovalPolicy && after.Allowed() {
			t.Fatalf("%+v became %+v", before, after)
		}
	})
}

// What is wanted of an ask only gets stricter with more rules.
func TestMoreRulesWantMore(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		some, more := drawRules(t, "some"), drawRules(t, "more")
		p, call := drawPolicy(t, some), drawKnownCall(t)
		a, b := p.Decide(call), p.With(&Rules{append(slices.Clone(some), more...)}).Decide(call)
		if !a.NeedsApproval() || !b.NeedsApproval() {
			return
		}
		in := func(x []string, all []string) bool {
			return !slices.ContainsFunc(x, func(s string) bool { return !slices.Contains(all, s) })
		}
		if b.Quorum < a.Quorum || slices.Index(risks, b.Risk) < slices.Index(risks, a.Risk) || a.Confirm && !b.Confirm ||
			a.Timeout > 0 && (b.Timeout == 0 || b.Timeout > a.Timeout) || a.Approvers != nil && (b.Approvers == nil || !in(b.Approvers, a.Approvers)) {
			t.Fatalf("%+v became %+v", a, b)
		}
	})
}

// The order of rules is for reading only: the same decision to the last word, and the same hash.
func TestOrderDoesNotMatter(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rules := drawRules(t, "r")
		p, call := drawPolicy(t, rules), drawKnownCall(t)
		other := slices.Clone(rules)
		seed := rapid.Uint64().Draw(t, "seed")
		rand.New(rand.NewPCG(seed, 1)).Shuffle(len(other), func(i, j int) { other[i], other[j] = other[j], other[i] })
		q := p.With(&Rules{other})
		if diff := cmp.Diff(p.Decide(call), q.Decide(call)); diff != "" || p.Hash() != q.Hash() {
			t.Fatalf("%v\n%v\n%s", rules, other, diff)
		}
	})
}

// Nothing is allowed because something could not be evaluated, and what asks or denies then, does.
func TestErrorsNeverAllow(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		effect := rapid.SampledFrom([]Type{Allow, Ask, Deny}).Draw(t, "effect")
		call := Call{Tool: "x", Destructive: true, Args: args(rapid.SampledFrom([]string{`{}`, `[`, `{"y":"text"}`, ``}).Draw(t, "args")),
			Requesters: rapid.SampledFrom([][]string{nil, {"U0A"}, {"U0A", "U0B"}}).Draw(t, "requesters")}
		when := rapid.SampledFrom([]string{`args.missing == 1`, `args.y`, `int(args.y) > 3`, `args.missing == 1 && requester != ""`}).Draw(t, "when")
		e, wrong := compile(when)
		if wrong != nil {
			t.Fatal(wrong)
		}
		mode := rapid.SampledFrom([]ApprovalPolicy{OnRequest, Strict}).Draw(t, "mode")
		d := judging(Settings{mode, WorkspaceWrite}, &Rules{[]Rule{{Name: "r", Tools: []string{"x"}, Effect: effect, When: when, when: e}}}).Decide(call)
		want := effect
		if effect == Allow {
			want = Ask // the mode's
		}
		// Without a requester the last condition is false where its first half fails: false && error is false in CEL.
		if strings.Contains(when, "requester") && call.Requesters == nil && effect == Deny {
			want = Ask
		}
		if d.Type != want {
			t.Errorf("%s %s: %.90s", effect, when, d.Reason)
		}
	})
}

// A request can't loosen what the rules want by asking for something stricter.
func TestTighteningKeepsTheRules(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p, call := drawPolicy(t, drawRules(t, "r")), drawKnownCall(t)
		request := drawSettings(t, "request")
		tight, err := p.Tighten(request)
		if err != nil {
			return
		}
		if strictness(tight.Decide(call)) < strictness(p.Decide(call)) {
			t.Fatalf("%+v, tightened %+v", p.Decide(call), tight.Decide(call))
		}
	})
}

// Two policies with the same hash decide alike; so what decides differently has another hash.
func TestHashCoversTheRules(t *testing.T) {
	base := `{name: a, tool: [x, y], when: "true", effect: ask, reason: r, risk: low, approvers: [U0A, U0B], quorum: 1, timeout: 5m, confirm: false}`
	hashOf := func(rule string) string { return under(t, OnRequest, load(t, "rules: ["+rule+"]")).Hash() }
	want := hashOf(base)
	for _, change := range [][2]string{
		{"name: a", "name: b"}, {"[x, y]", "[x]"}, {`"true"`, `"false"`}, {"effect: ask", "effect: ask "}, {"reason: r", "reason: s"},
		{"risk: low", "risk: high"}, {"[U0A, U0B]", "[U0A]"}, {"quorum: 1", "quorum: 2"}, {"5m", "6m"}, {"confirm: false", "confirm: true"},
	} {
		got := hashOf(strings.Replace(base, change[0], change[1], 1))
		if same := change[0] == strings.TrimSpace(change[1]); same != (got == want) {
			t.Errorf("%v: the hash is the same: %v", change, got == want)
		}
	}
	if got := hashOf(strings.Replace(strings.Replace(base, "[x, y]", "[y, x]", 1), "[U0A, U0B]", "[U0B, U0A]", 1)); got != want {
		t.Error("the order of a list changes the hash")
	}
	if under(t, OnRequest, nil).Hash() == under(t, OnRequest, load(t, "rules: []")).Hash() {
		t.Error("no file and an empty one have the same hash")
	}
	var l Live
	if l.Current() != nil || !l.Current().Decide(Call{Tool: "x"}).Denied() {
		t.Error("a zero Live allows something")
	}
}

func benchRules(b *testing.B, tool string) *Policy {
	var text strings.Builder
	text.WriteString("rules:\n")
	conditions := []string{`args.environment == "production"`, `"rm" in command.programs`, `requester == "U0INTERN"`, `path.startsWith("secrets/")`, `channel == "C0OPS" && has(args.force)`}
	for i := range 100 {
		fmt.Fprintf(&text, "  - {name: r%d, tool: %q, when: '%s', effect: %s}\n", i, tool, conditions[i%len(conditions)], []string{"allow", "ask", "deny"}[i%3])
	}
	return under(b, OnRequest, load(b, text.String()))
}

// A decision with 100 rules, all about the tool that is called, none of which settles it early.
func BenchmarkDecideRules(b *testing.B) {
	p := benchRules(b, "*")
	call := Call{Tool: "shell", Destructive: true, OpenWorld: true, Args: args(`{"command":"git push origin main","environment":"staging"}`),
		Parsed: true, Programs: []string{"git"}, Requesters: []string{"U0ALICE"}, Channel: "C0GENERAL", Now: monday}
	if d := p.Decide(call); d.Source != SourceApprovalPolicy {
		b.Fatalf("got %+v", d)
	}
	b.ReportAllocs()
	for b.Loop() {
		p.Decide(call)
	}
	b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N), "µs/decision")
}

// A list of programs in which there is nothing says nothing: an allow rule that wants all of them to be harmless doesn't
// hold of a tool that runs commands by another argument's name, and nothing holds of a program that runs others.
func TestProgramsThatAreNotKnown(t *testing.T) {
	p := under(t, OnRequest, load(t, `
rules:
  - {name: harmless, tool: "*", when: 'command.programs.all(p, p in ["ls", "sudo"])', effect: allow}
  - {name: subset, tool: "*", when: 'sets.contains(["ls", "sudo"], command.programs)', effect: allow}
  - {name: restarts, tool: "*", when: '"systemctl" in command.programs', effect: deny}
`))
	for name, c := range map[string]struct {
		call Call
		want Type
	}{
		"a command":                         {Call{Tool: "shell", Args: args(`{"command":"ls"}`), Programs: []string{"ls"}, Parsed: true}, Allow},
		"a redirection alone":               {Call{Tool: "shell", Args: args(`{"command":"> a"}`), Parsed: true}, Ask},
		"another argument's name":           {Call{Tool: "mcp__x__exec", Args: args(`{"cmd":"rm -rf ."}`)}, Ask},
		"a command as a list":               {Call{Tool: "mcp__x__exec", Args: args(`{"command":["rm","."]}`)}, Ask},
		"no command at all":                 {Call{Tool: "write_file", Args: args(`{"path":"a","content":"b"}`), Path: "a"}, Ask},
		"an action whose program runs more": {Call{Tool: "restart", Args: args(`{"service":"web"}`), Programs: []string{"sudo"}}, Deny},
		"an action":                         {Call{Tool: "list", Args: args(`{}`), Programs: []string{"ls"}, Parsed: true}, Allow},
	} {
		c.call.Destructive, c.call.OpenWorld = true, true
		if d := p.Decide(c.call); d.Type != c.want {
			t.Errorf("%s: %s (%s), want %s", name, d.Type, d.Reason, c.want)
		}
	}
}

// A regular expression is the operator's: one that comes with a call could be made to take any time, or to match.
func TestPatternsAreWrittenOut(t *testing.T) {
	for _, when := range []string{`path.matches(args.p)`, `path.matches("^" + args.p)`, `matches(path, args.p)`} {
		_, err := Load("policy.yaml", []byte(fmt.Sprintf("rules: [{name: a, tool: x, when: '%s', effect: deny}]", when)))
		if err == nil || !strings.Contains(err.Error(), "has to be written out") {
			t.Errorf("%s: %v", when, err)
		}
	}
}

// Where a reason is shown there may be room for a line or two: what is decided, and that it is for want of knowing, comes
// before the error, which may be long, and before the rule's own words.
func TestTheMeaningComesFirst(t *testing.T) {
	long := "args.a == \"" + strings.Repeat("x", 300) + "\""
	rules, err := Load("p.yaml", []byte("rules:\n  - name: no-rm\n    tool: shell\n    effect: deny\n    reason: "+strings.Repeat("Because. ", 30)+
		"\n    when: '"+long+" || args.list.exists(x, x.y == 1) || args["+strings.Repeat("\"k\"+", 60)+"\"k\"] == 1'\n"))
	if err != nil {
		t.Fatal(err)
	}
	p, err := New(Never, WorkspaceWrite)
	if err != nil {
		t.Fatal(err)
	}
	for _, call := range []Call{{Tool: "shell", Args: args(`{"a":1,"list":[]}`)}, {Tool: "shell", Args: args(`{"a":1}`)}} {
		d := p.With(rules.Rules).Decide(call)
		if !d.Denied() || !strings.HasPrefix(d.Reason, "The rule no-rm denies it, because it could not be evaluated: there is no argument ") {
			t.Errorf("the reason is %q", d.Reason)
		}
	}
}
