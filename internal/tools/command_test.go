package tools

import (
	"encoding/json"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"approvalbot/internal/policy"
	"approvalbot/internal/tools/confine"
)

// commandRow is a line of the corpus: internal/tools/command/testdata says what
// its columns are.
type commandRow struct{ decision, program, text string }

func corpus(t testing.TB) (rows []commandRow) {
	t.Helper()
	data, err := os.ReadFile("command/testdata/commands.txt")
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range strings.Split(string(data), "\n") {
		if line == "" || line[0] == '#' {
			continue
		}
		decision, rest, _ := strings.Cut(line, " ")
		program, text, _ := strings.Cut(strings.TrimLeft(rest, " "), " ")
		text = strings.TrimLeft(text, " ")
		if s, err := strconv.Unquote(text); err == nil && text[0] == '"' {
			text = s
		}
		rows = append(rows, commandRow{decision, program, text})
	}
	return rows
}

func rules(t testing.TB, approval policy.ApprovalPolicy, sandbox policy.SandboxMode) *policy.Policy {
	t.Helper()
	p, err := policy.New(approval, sandbox)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// shellCall is what a policy gets to know of a command. It reports false for one
// that the shell tool itself refuses.
func shellCall(t testing.TB, text string) (policy.Call, bool) {
	t.Helper()
	raw, err := json.Marshal(members{"command": text})
	if err != nil {
		t.Fatal(err)
	}
	tool := &shell{}
	args, err := ParseArguments(tool.Spec(), raw)
	if err != nil {
		return policy.Call{}, false
	}
	if _, err := tool.Describe(args); err != nil {
		return policy.Call{}, false
	}
	hints, facts := tool.Spec().Annotations, FactsOf(tool, args)
	return policy.Call{
		Tool: "shell", Args: args, ReadOnly: hints.ReadOnly(), Destructive: hints.Destructive(), OpenWorld: hints.OpenWorld(),
		Programs: facts.Programs, Parsed: facts.Parsed, ReadOnlyCommand: facts.ReadOnly,
	}, true
}

// Of all commands in the corpus, whole: only those that are said to be are allowed,
// and only where the operator wants it.
func TestCommandsAreDecided(t *testing.T) {
	onRequest := rules(t, policy.OnRequest, policy.WorkspaceWrite)
	decided, allowed := 0, 0
	for _, row := range corpus(t) {
		call, ok := shellCall(t, row.text)
		if !ok {
			if row.decision == "allow" {
				t.Errorf("%q is refused", row.text)
			}
			continue
		}
		decided++
		want := policy.Type(row.decision)
		if want == policy.Allow {
			allowed++
		}
		for _, tt := range []struct {
			name   string
			policy *policy.Policy
			want   policy.Type
		}{
			{"on_request, read-only commands allowed", onRequest.WithReadOnlyCommands(), want},
			{"on_request", onRequest, policy.Ask},
			{"strict", rules(t, policy.Strict, policy.WorkspaceWrite).WithReadOnlyCommands(), policy.Ask},
			{"sandbox read_only", rules(t, policy.OnRequest, policy.ReadOnly).WithReadOnlyCommands(), policy.Deny},
			{"sandbox read_only, never", rules(t, policy.Never, policy.ReadOnly).WithReadOnlyCommands(), policy.Deny},
		} {
			if d := tt.policy.Decide(call); d.Type != tt.want {
				t.Errorf("%s: %q: %s (%s), want %s", tt.name, row.text, d.Type, d.Reason, tt.want)
			}
		}
	}
	if decided < 450 || allowed < 30 {
		t.Errorf("only %d commands were decided, %d of them allowed", decided, allowed)
	}
}

// A rule that denies a program, and one that denies what isn't understood, leave
// nothing of the corpus that runs that program.
func TestDeniedProgramsAreSeen(t *testing.T) {
	for _, row := range corpus(t) {
		call, ok := shellCall(t, row.text)
		program, unclear := strings.CutSuffix(row.program, "?")
		if !ok || program != "rm" && !(unclear && program == "") {
			continue
		}
		if program == "rm" && !slices.Contains(call.Programs, "rm") {
			t.Errorf("%q: a rule that denies rm doesn't see it in %q", row.text, call.Programs)
		}
		if program == "" && call.Parsed {
			t.Errorf("%q: hides a program, and nothing says so", row.text)
		}
	}
}

// Arguments that can't be read say nothing.
func TestFactsOfWhatCantBeRead(t *testing.T) {
	for _, args := range []string{"", "{}", `{"command":""}`, `{"command":7}`, "["} {
		if f := FactsOf(&shell{}, json.RawMessage(args)); f.Parsed || f.ReadOnly || f.Programs != nil {
			t.Errorf("%s: %+v", args, f)
		}
	}
}

// FuzzDecide: nothing is allowed but one plain line of words of which the first is
// on the list, and no path of it leads out.
func FuzzDecide(f *testing.F) {
	for _, row := range corpus(f) {
		f.Add(row.text)
	}
	onRequest := rules(f, policy.OnRequest, policy.WorkspaceWrite).WithReadOnlyCommands()
	strict := rules(f, policy.Strict, policy.WorkspaceWrite).WithReadOnlyCommands()
	f.Fuzz(func(t *testing.T, text string) {
		if !utf8.ValidString(text) {
			return // JSON can't carry it
		}
		call, ok := shellCall(t, text)
		if !ok {
			return
		}
		if d := strict.Decide(call); !d.NeedsApproval() {
			t.Errorf("strict: %q: %+v", text, d)
		}
		d := onRequest.Decide(call)
		if d.Denied() {
			t.Errorf("on_request denies %q: %+v", text, d)
		}
		if !d.Allowed() {
			return
		}
		outside := strings.ReplaceAll(withoutQuoted(text), "{}", "") // which stands for itself
		first, _, _ := strings.Cut(strings.TrimLeft(strings.TrimSpace(outside), " \t"), " ")
		first, _, _ = strings.Cut(first, "\t")
		listed := []string{"cat", "date", "du", "grep", "head", "id", "ls", "pwd", "stat", "tail", "uname", "wc", "whoami"}
		if !slices.Contains(listed, first) || strings.ContainsAny(strings.TrimSpace(outside), "\n\r;|&<>()$`*?{}~") {
			t.Errorf("allowed: %q", text)
		}
		if !call.Parsed || len(call.Programs) != 1 || call.Programs[0] != first {
			t.Errorf("allowed, and runs %q: %q", call.Programs, text)
		}
	})
}

// withoutQuoted is a text without what stands in quotes or behind a backslash:
// written without the parser, so that it doesn't share its mistakes.
func withoutQuoted(text string) string {
	var out strings.Builder
	quote := rune(0)
	escaped := false
	for _, c := range text {
		switch {
		case escaped:
			escaped = false
		case c == '\\' && quote != '\'':
			escaped = true
		case quote == 0 && (c == '\'' || c == '"'):
			quote = c
		case c == quote:
			quote = 0
		case quote == 0:
			out.WriteRune(c)
		}
	}
	return out.String()
}

// A confined shell without network doesn't reach beyond the workspace, and still changes things.
func TestAConfinedShellIsNotOpenWorld(t *testing.T) {
	for name, c := range map[string]struct {
		tool shell
		open bool
	}{
		"unconfined":              {shell{}, true},
		"confined":                {shell{sandbox: &confine.Sandbox{}}, false},
		"confined, with network":  {shell{sandbox: &confine.Sandbox{}, network: true}, true},
		"unconfined, no network?": {shell{network: false}, true},
	} {
		if a := c.tool.Spec().Annotations; a.OpenWorld() != c.open || !a.Destructive() || a.ReadOnly() {
			t.Errorf("%s: %+v", name, a)
		}
	}
}
