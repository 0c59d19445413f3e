package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"approvalbot/internal/ledger"
	"approvalbot/internal/policy"
)

// explained is what explain says of one call.
func explained(t *testing.T, rules string, m mode, b toolbox, dataDir, tool, args string) string {
	t.Helper()
	p, _, err := m.read(policyFile(t, rules))
	if err != nil {
		t.Fatal(err)
	}
	known, err := b.open()
	if err != nil {
		t.Fatal(err)
	}
	defer known.close()
	if err := known.readSeen(context.Background(), dataDir); err != nil {
		t.Fatal(err)
	}
	call, about := known.call(policy.Call{Tool: tool, Args: []byte(args)}, nil)
	var out strings.Builder
	if err := explainPolicy(&out, p, call, about); err != nil {
		t.Fatal(err)
	}
	return strings.Join(strings.Fields(out.String()), " ")
}

const noRules = "rules: []"

// Every tool that the bot has without a configuration is known, also those that need Slack or the network to be called.
func TestBuiltInToolsAreKnown(t *testing.T) {
	for tool, args := range map[string]string{
		"read_file": `{"path":"a"}`, "list_files": `{}`, "search_files": `{"text":"a"}`, "write_file": `{"path":"a","content":"b"}`,
		"shell": `{"command":"ls"}`, "http_request": `{"method":"GET","url":"https://example.com/"}`, "lookup_user": `{"query":"bob"}`, "post_message": `{"to":"#general","text":"hi"}`,
	} {
		mustSay(t, explained(t, noRules, usual, toolbox{}, t.TempDir(), tool, args), "known by approvalbot: it is built in")
	}
	mustSay(t, explained(t, noRules, usual, toolbox{}, t.TempDir(), "http_request", `{"method":"GET","url":"https://Example.com/"}`), "host example.com")
	mustSay(t, explained(t, noRules, usual, toolbox{}, t.TempDir(), "post_message", `{"channel":"C1"}`), "ends before it is judged")
}

// A named action is judged with its own arguments, annotations and demands, where its file is given; else it says so.
func TestNamedActionsAreKnown(t *testing.T) {
	file := "../../deploy/actions.example.yaml"
	args := `{"environment":"production","deployment":"shop-web","replicas":3}`
	got := explained(t, noRules, usual, toolbox{Actions: file}, t.TempDir(), "scale_deployment", args)
	mustSay(t, got, "decision ask", "by tool: scale_deployment", "critical risk, 2 approvals", "known by "+file)
	mustSay(t, explained(t, noRules, usual, toolbox{Actions: file}, t.TempDir(), "scale_deployment", `{"environment":"moon"}`), "ends before it is judged")
	mustSay(t, explained(t, noRules, usual, toolbox{}, t.TempDir(), "scale_deployment", args), "no file of actions is given (--actions)", "may do anything")
	mustSay(t, explained(t, noRules, usual, toolbox{Actions: file}, t.TempDir(), "scale_deployments", args), "neither a built-in tool nor an action")

	known, err := toolbox{Actions: file}.open()
	if err != nil {
		t.Fatal(err)
	}
	defer known.close()
	rules := []policy.Rule{{Name: "a", Tools: []string{"scale_deploymnt"}}, {Name: "b", Tools: []string{"set_flag", "mcp__x__y", "scale_*"}}}
	mustSay(t, strings.Join(known.misspelt(rules), "\n"), "the rule a is about the tool scale_deploymnt; the action is called scale_deployment")
	if got := known.missing(rules); len(got) != 1 || !strings.Contains(got[0], "set_flag, which is neither built in nor an action") {
		t.Errorf("missing: %q", got)
	}
}

// APPROVALBOT_SHELL_READONLY counts as it does in the bot, and so does the hash.
func TestReadOnlyCommandsAreKnownToPolicyCommands(t *testing.T) {
	allowing := mode{policy.OnRequest, policy.WorkspaceWrite, allowReadOnly}
	mustSay(t, explained(t, noRules, usual, toolbox{}, t.TempDir(), "shell", `{"command":"ls -l"}`), "decision ask")
	mustSay(t, explained(t, noRules, allowing, toolbox{}, t.TempDir(), "shell", `{"command":"ls -l"}`), "decision allow")
	mustSay(t, explained(t, noRules, allowing, toolbox{}, t.TempDir(), "shell", `{"command":"rm -r x"}`), "decision ask")

	file := policyFile(t, "rules: []\ntests:\n  - {tool: shell, args: {command: ls}, expect: allow}\n  - {tool: shell, args: {command: ls}, approvalPolicy: strict, expect: ask}\n")
	out, err := checked(t, file, allowing, func(out *strings.Builder, p *policy.Policy, f *policy.File, known *knownTools) error {
		return testPolicy(out, file, allowing, p, f, known)
	})
	if err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	b, err := openRulebook(Settings{ApprovalPolicy: policy.OnRequest, Sandbox: policy.WorkspaceWrite, PolicyFile: file, ShellReadOnly: allowReadOnly}, nil)
	if err != nil {
		t.Fatal(err)
	}
	p, _, err := allowing.read(file)
	if err != nil || p.Hash() != b.Current().Hash() {
		t.Errorf("the commands and the bot have another hash, %v", err)
	}
}

// Of the tools of MCP servers a configuration says whether they are trusted, and a journal how they were defined last. No
// server is started, and no variable of the configuration needs to be there.
func TestMCPToolsAreKnownAsFarAsTheyCanBe(t *testing.T) {
	dir := t.TempDir()
	config := filepath.Join(dir, "mcp.json")
	rewrite(t, config, `{"mcpServers":{
		"notes":{"command":"/nowhere/at-all","env":{"TOKEN":"${A_VARIABLE_THAT_IS_NOT_SET}"},"trust":true},
		"web":{"command":"/nowhere/at-all"}}}`)
	ctx := context.Background()
	journal, err := ledger.Open(ctx, filepath.Join(dir, "journal"), ledger.Options{})
	if err != nil {
		t.Fatal(err)
	}
	define := func(tool string) ledger.Event {
		return ledger.Event{Actor: ledger.System, Body: &ledger.ToolDefined{Tool: tool, Hash: strings.Repeat("a", 64), Definition: []byte(
			`{"annotations":{"readOnlyHint":true,"openWorldHint":false},"description":"d","inputSchema":{"type":"object","properties":{"q":{"type":"string"}},"required":["q"]},"name":"` + tool + `"}`)}}
	}
	if _, err := journal.Append(ctx, define("mcp__notes__find"), define("mcp__web__find")); err != nil {
		t.Fatal(err)
	}
	if err := journal.Close(); err != nil {
		t.Fatal(err)
	}
	b := toolbox{MCPConfig: config}
	mustSay(t, explained(t, noRules, usual, b, dir, "mcp__notes__find", `{"q":"x"}`), "decision allow", "only reads", "its MCP server, as it defined it last")
	mustSay(t, explained(t, noRules, usual, b, dir, "mcp__notes__find", `{}`), "ends before it is judged")
	mustSay(t, explained(t, noRules, usual, b, dir, "mcp__web__find", `{"q":"x"}`), "decision ask", "changes things", "its MCP server is not trusted")
	mustSay(t, explained(t, noRules, usual, b, t.TempDir(), "mcp__notes__find", `{}`), "decision ask", "servers are not started here; its MCP server is trusted")
	mustSay(t, explained(t, noRules, usual, b, dir, "mcp__other__find", `{}`), "mcp.json has no server whose tools are called so")
	mustSay(t, explained(t, noRules, usual, toolbox{}, dir, "mcp__notes__find", `{"q":"x"}`), "decision ask", "no MCP configuration is given")
}

// A file of tests says of which tools nothing was known.
func TestPolicyTestNamesStrangers(t *testing.T) {
	file := policyFile(t, "rules: []\ntests:\n  - {tool: deploy, expect: ask}\n  - {tool: shell, args: {command: ls}, expect: ask}\n")
	out, err := checked(t, file, usual, func(out *strings.Builder, p *policy.Policy, f *policy.File, known *knownTools) error {
		return testPolicy(out, file, usual, p, f, known)
	})
	if err != nil || !strings.Contains(out, "2 tests, all as expected") || !strings.Contains(out, "was assumed: deploy.") {
		t.Errorf("%v\n%s", err, out)
	}
}

// actions check judges with the policy file: what it denies has no card, what it allows none that asks, and what it wants
// of an ask stands on the card.
func TestActionsCheckWithAPolicy(t *testing.T) {
	file := policyFile(t, `rules:
  - {name: closed, tool: restart_service, effect: deny, reason: The shop is open.}
  - {name: careful, tool: merge_pull_request, effect: ask, reason: It goes into what is shipped., risk: critical, quorum: 3, timeout: 5m}
`)
	var out bytes.Buffer
	c := actionsCheckCmd{File: "../../deploy/actions.example.yaml", Elsewhere: true, PolicyFile: file, mode: usual}
	if err := c.check(&out); err != nil {
		t.Fatal(err)
	}
	mustSay(t, out.String(), "is denied, so it has no card (rules: closed): The shop is open.", "3 people have to approve", "(rules: careful", "Critical risk")
	if strings.Contains(out.String(), "│ Restart shop-web") {
		t.Error("what is denied has a card")
	}
	c.PolicyFile = filepath.Join(t.TempDir(), "none.yaml")
	if err := c.check(&out); err == nil {
		t.Error("a policy file that isn't there passes")
	}
}

// Commands that judge calls take the settings from where serve does.
func TestPolicyCommandsReadTheEnvFile(t *testing.T) {
	t.Chdir(t.TempDir())
	t.Setenv("APPROVALBOT_APPROVAL_POLICY", "") // puts back what was there before
	os.Unsetenv("APPROVALBOT_APPROVAL_POLICY")
	rewrite(t, ".env", "APPROVALBOT_APPROVAL_POLICY=strict\n")
	rewrite(t, "p.yaml", "rules: []\ntests: [{tool: read_file, args: {path: a}, expect: ask}]\n")
	if err := run(context.Background(), []string{"policy", "test", "p.yaml"}); err != nil {
		t.Errorf("judged by other settings than serve's: %v", err)
	}
	rewrite(t, ".env", "SLACK_BOT_TOKEN='xoxb-not-closed\n")
	if err := run(context.Background(), []string{"policy", "test", "p.yaml"}); err == nil || strings.Contains(err.Error(), "xoxb") {
		t.Errorf("a file that can't be read: %v", err)
	}
}

// A check says which conditions ask for what isn't there, or for what the model wrote where something cleaner is known, and
// which patterns no tool fits.
func TestPolicyCheckNotesWhatIsHardlyMeant(t *testing.T) {
	file := policyFile(t, `rules:
  - {name: cmd, tool: shell, when: 'args.cmd == "rm"', effect: deny}
  - {name: index, tool: [read_file, list_files], when: 'args["file"] == "a"', effect: ask}
  - {name: free, tool: shell, when: 'has(args.cwd)', effect: allow}
  - {name: raw, tool: [write_file, edit_file], when: 'args.path.startsWith("docs/")', effect: allow}
  - {name: raw-shell, tool: shell, when: 'args.command.contains("rm")', effect: deny}
  - {name: fs, tool: "mcp_fs_read*", effect: allow}
  - {name: fs2, tool: mcp_fs_write, effect: deny}
  - {name: old, tool: "drop_*", effect: deny}
  - {name: fine, tool: ["mcp__fs__*", "m*", "*_file", "scale_*"], when: args.anything == 1, effect: ask}
  - {name: fine-too, tool: shell, when: 'command.text.contains("rm") && args.timeout_seconds > 3', effect: ask}
  - {name: fine-action, tool: scale_deployment, when: 'args.environment == "production"', effect: ask}
`)
	p, f, err := usual.read(file)
	if err != nil {
		t.Fatal(err)
	}
	known, err := toolbox{Actions: "../../deploy/actions.example.yaml"}.open()
	if err != nil {
		t.Fatal(err)
	}
	defer known.close()
	var out strings.Builder
	if err := checkPolicy(&out, file, p, f, known); err != nil {
		t.Fatal(err)
	}
	var got []string
	for line := range strings.Lines(out.String()) {
		if note, ok := strings.CutPrefix(line, "note: "); ok {
			got = append(got, strings.TrimSpace(note))
		}
	}
	const unless = ", unless has() or another condition keeps it from being asked"
	want := []string{
		"the rule fs is about the tool mcp_fs_read*; the tools of MCP servers are called mcp__SERVER__TOOL, with two underscores each",
		"the rule fs2 is about the tool mcp_fs_write; the tools of MCP servers are called mcp__SERVER__TOOL, with two underscores each",
		"the rule old is about the tool drop_*, which neither a built-in tool nor an action of ../../deploy/actions.example.yaml fits",
		"the rule cmd asks for args.cmd, an argument that shell does not have (there is command, timeout_seconds): a rule that can't be evaluated denies every call" + unless,
		"the rule index asks for args.file, an argument that read_file, list_files does not have (there is depth, limit, offset, path, recursive): a rule that can't be evaluated asks about every call" + unless,
		"the rule free asks for args.cwd, an argument that shell does not have (there is command, timeout_seconds): a rule that can't be evaluated allows no call" + unless,
		"the rule raw asks for args.path; use path: it is clean, while args.path is as the model wrote it (./a, b/../a)",
		"the rule raw-shell asks for args.command; use command.programs for what it runs, or command.text: args.command is as the model wrote it",
	}
	slices.Sort(got)
	slices.Sort(want)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// The bot says at its start, and when it reads its policy again, which rules are about none of its tools.
func TestRulesAboutNoTool(t *testing.T) {
	inRuledWorld(t, "rules: [{name: gone, tool: restart_all, effect: deny}, {name: here, tool: \"write_*\", effect: ask}]", func(w *world, file string) {
		said := func(rule string) bool {
			return strings.Contains(w.log.String(), "none of the tools that there are now") && strings.Contains(w.log.String(), "rule="+rule)
		}
		if !said("gone") || said("here") {
			t.Errorf("at the start: %s", w.log.String())
		}
		rewrite(t, file, "rules: [{name: late, tool: mcp__x__y, effect: deny}]")
		if err := w.app.rules.reload(context.Background()); err != nil {
			t.Fatal(err)
		}
		if !said("late") {
			t.Errorf("after a change: %s", w.log.String())
		}
	})
}
