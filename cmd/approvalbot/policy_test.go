package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"approvalbot/internal/devslack"
	"approvalbot/internal/ledger"
	"approvalbot/internal/policy"
)

// policyFile writes a policy file and returns its name.
func policyFile(t testing.TB, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "policy.yaml")
	rewrite(t, file, text)
	return file
}

func rewrite(t testing.TB, file, text string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// inRuledWorld is a world with a policy file, in which $ALICE and such stand for ids.
func inRuledWorld(t *testing.T, rules string, body func(w *world, file string)) {
	t.Helper()
	file := policyFile(t, "")
	inChangedWorld(t, func(w *world) {
		w.settings.PolicyFile = file
		w.settings.Model = script(t, `[{"toolCalls":[
			{"id":"c1","name":"write_file","arguments":{"path":"notes/a.txt","content":"a"}},
			{"id":"c2","name":"write_file","arguments":{"path":"prod/b.txt","content":"b"}},
			{"id":"c3","name":"write_file","arguments":{"path":"keys/c.pem","content":"c"}}]},{"text":"That is all."}]`)
		rewrite(t, file, w.named(rules))
	}, func(w *world) { body(w, file) })
}

// named puts ids in place of names.
func (w *world) named(text string) string {
	return strings.NewReplacer("$ALICE", w.user("alice"), "$BOB", w.user("bob"), "$CAROL", w.user("carol")).Replace(text)
}

const houseRules = `
rules:
  - {name: notes, tool: write_file, when: 'args.path.startsWith("notes/")', effect: allow}
  - name: production
    tool: write_file
    when: args.path.startsWith("prod/")
    effect: ask
    reason: Production needs two pairs of eyes.
    risk: critical
    approvers: [$BOB, $CAROL]
    quorum: 2
    timeout: 20m
  - {name: keys, tool: "*", when: 'has(args.path) && args.path.endsWith(".pem")', effect: deny, reason: Keys are nobody's business.}
`

func (w *world) call(id string) *ledger.Call {
	w.t.Helper()
	runs := w.runs()
	if c := runs[len(runs)-1].Call(id); c != nil {
		return c
	}
	w.t.Fatalf("there is no call %s", id)
	return nil
}

// A rule sees the path that a call names. A search names a directory, so what rules keep from being read isn't in what it
// finds: nobody was asked about the first, people said yes to the second, and a deny stays one.
func TestSearchKeepsToRulesAboutFiles(t *testing.T) {
	const rules = `
rules:
  - {name: keys, tool: read_file, when: 'path.endsWith(".pem")', effect: deny}
  - {name: drafts, tool: read_file, when: 'path.startsWith("drafts/")', effect: ask}
  - {name: lists, tool: search_files, when: 'path.startsWith("lists/")', effect: deny}
  - {name: deep, tool: search_files, when: 'has(args.context)', effect: ask}
`
	file := policyFile(t, rules)
	inChangedWorld(t, func(w *world) {
		w.settings.PolicyFile = file
		for _, name := range []string{"open.txt", "certs/key.pem", "drafts/a.txt", "lists/b.txt"} {
			name = filepath.Join(w.dir, "workspace", name)
			if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
				t.Fatal(err)
			}
			rewrite(t, name, "PRIVATE\n")
		}
		w.settings.Model = script(t, `[{"toolCalls":[
			{"id":"c1","name":"search_files","arguments":{"content":"PRIVATE"}},
			{"id":"c2","name":"search_files","arguments":{"content":"PRIVATE","path":"certs/key.pem"}},
			{"id":"c3","name":"search_files","arguments":{"content":"PRIVATE","context":1}},
			{"id":"c4","name":"search_files","arguments":{"name":"**/*.*"}}]},{"text":"That is all."}]`)
	}, func(w *world) {
		thread := w.ask("alice", "go")
		w.click("bob", w.card(thread), "approve")
		for call, want := range map[string]string{
			"c1": "true false false false", "c2": "false true false false" /* the refusal names it */, "c3": "true false true false", "c4": "true false false false",
		} {
			out := w.call(call).Finished.Output
			got := fmt.Sprint(strings.Contains(out, "open.txt"), strings.Contains(out, "key.pem"), strings.Contains(out, "drafts/a.txt"), strings.Contains(out, "lists/b.txt"))
			if got != want {
				t.Errorf("%s: %s, want %s: %s", call, got, want, out)
			}
		}
		if out := w.call("c4").Finished.Output; !strings.Contains(out, "3 files that a rule of the operator keeps from this call") {
			t.Errorf("nothing says that rules kept something back: %s", out)
		}
		if f := w.call("c2").Finished; f.Code != "NOT_ALLOWED" {
			t.Errorf("a file that a rule keeps from being read: %+v", f)
		}
	})
}

// One message, three calls: a rule allows, a rule asks two named people, a rule denies.
func TestRulesDecide(t *testing.T) {
	inRuledWorld(t, houseRules, func(w *world, _ string) {
		thread := w.ask("alice", "go")
		if !w.exists("notes/a.txt") || w.exists("prod/b.txt") || w.exists("keys/c.pem") {
			t.Error("not what the rules say")
		}
		card := w.card(thread)
		for _, want := range []string{"Approval needed (critical risk): ", "▲▲ Critical risk", "Production needs two pairs of eyes. (rules: production)", "0 of 2 approved; 2 people have to approve.", w.user("bob"), w.user("carol")} {
			if !strings.Contains(card.text, want) {
				t.Errorf("the card doesn't say %q:\n%s", want, card.text)
			}
		}
		w.click("alice", card, "approve") // in the channel, and who asked; the rule names others
		w.approveTyping("bob", card, "prod/b.txt")
		w.approveTyping("bob", card, "prod/b.txt")
		if w.exists("prod/b.txt") {
			t.Error("one person was enough")
		}
		w.pass(10 * time.Minute) // the rule's timeout, not the setting's
		w.approveTyping("carol", card, "prod/b.txt")
		if !w.exists("prod/b.txt") {
			t.Errorf("two people were not enough: %s", w.thread(thread))
		}
		if c := w.call("c1"); c.Approval != nil || c.Decision.Source != "rules" || c.Decision.Rule != "rules: notes" || c.State != ledger.OutputAvailable {
			t.Errorf("notes: %+v", c.Decision)
		}
		if c := w.call("c2"); c.Decision.Rule != "rules: production" || c.Decision.Risk != "critical" || c.Approval.Timeout != 20*time.Minute || c.Approval.Rule != "rules: production" || len(c.Approval.Votes) != 2 {
			t.Errorf("production: %+v %+v", c.Decision, c.Approval)
		}
		if c := w.call("c3"); c.State != ledger.OutputDenied || c.Finished.Source != ledger.SourcePolicy || c.Finished.Reason != "The policy forbids it: Keys are nobody's business." {
			t.Errorf("keys: %+v", c.Finished)
		}
	})
}

// The policy changes while a call waits: it is judged by the new one before it starts, and every decision names the one that
// made it.
func TestPolicyChangesWhileACallWaits(t *testing.T) {
	inRuledWorld(t, houseRules, func(w *world, file string) {
		thread := w.ask("alice", "go")
		card := w.card(thread)
		before := w.app.rules.Current().Hash()
		rewrite(t, file, "rules: [{name: closed, tool: write_file, effect: deny, reason: The house is closed.}]")
		if err := w.app.rules.reload(context.Background()); err != nil {
			t.Fatal(err)
		}
		after := w.app.rules.Current().Hash()
		w.approveTyping("bob", card, "prod/b.txt")
		w.approveTyping("carol", card, "prod/b.txt")
		c := w.call("c2")
		if w.exists("prod/b.txt") || c.State != ledger.OutputDenied || c.Finished.Source != ledger.SourcePolicy || c.Finished.Reason != "The policy forbids it: The house is closed." {
			t.Errorf("an approved call ran against the new policy, or was told otherwise: %+v", c.Finished)
		}
		if c.Decision.PolicyHash != before || c.Approval.PolicyHash != before {
			t.Error("the decision doesn't name the policy that made it")
		}
		w.ask("alice", "again")
		if c := w.call("c1"); c.Decision.Rule != "rules: closed" || c.Decision.PolicyHash != after {
			t.Errorf("the next run: %+v", c.Decision)
		}
		if got, want := w.policies(), []string{" " + before, before + " " + after}; strings.Join(got, "\n") != strings.Join(want, "\n") {
			t.Errorf("recorded: %q, want %q", got, want)
		}
	})
}

// policies are the changes of the policy in the journal, from and to.
func (w *world) policies() (out []string) {
	w.t.Helper()
	j, err := ledger.OpenReader(context.Background(), w.settings.journalDir())
	if err != nil {
		w.t.Fatal(err)
	}
	defer j.Close()
	for e, err := range j.Read(context.Background(), 0, ledger.Filter{Kinds: []string{"policy_changed"}}) {
		if err != nil {
			w.t.Fatal(err)
		}
		b := e.Body.(*ledger.PolicyChanged)
		if b.File == "" {
			out = append(out, b.From+" "+b.To)
			continue
		}
		if text, err := policy.Load("", []byte(b.Text)); err != nil || text.Rules.Len() != b.Rules {
			w.t.Errorf("the text of a policy isn't in the journal: %v", err)
		}
		out = append(out, b.From+" "+b.To)
	}
	return out
}

// A start is recorded where it puts another policy in force than the journal names last: with a file, and without one.
func TestAStartRecordsAnotherPolicy(t *testing.T) {
	file := policyFile(t, "rules: [{name: no, tool: shell, effect: deny}]")
	inChangedWorld(t, func(w *world) { w.settings.PolicyFile = file }, func(w *world) {
		again := func(file string) string {
			w.stop()
			w.settings.PolicyFile = file
			w.start()
			return w.app.rules.Current().Hash()
		}
		first := w.app.rules.Current().Hash()
		if again(file); len(w.policies()) != 1 {
			t.Errorf("the same file was recorded twice: %q", w.policies())
		}
		without := again("")
		again("")
		again(file)
		want := []string{" " + first, first + " " + without, without + " " + first}
		if got := w.policies(); !slices.Equal(got, want) {
			t.Errorf("recorded: %q, want %q", got, want)
		}
	})
}

// What can't be read or recorded takes nobody's place, and the signal is what makes the process look.
func TestReload(t *testing.T) {
	file := policyFile(t, "rules: []")
	inChangedWorld(t, func(w *world) {
		w.settings.PolicyFile, w.hangups = file, make(chan os.Signal, 1)
	}, func(w *world) {
		hangup := func() *policy.Policy {
			w.hangups <- syscall.SIGHUP
			w.pass(time.Second)
			return w.app.rules.Current()
		}
		first := w.app.rules.Current()
		for name, text := range map[string]string{"not a policy": "rules: [{name: a}]", "empty": "", "an approver": "rules: [{name: a, tool: x, effect: ask, approvers: '@bob'}]"} {
			rewrite(t, file, text)
			if hangup() != first {
				t.Errorf("%s was taken over", name)
			}
		}
		if !strings.Contains(w.log.String(), "the policy from before stays in force") || !strings.Contains(w.log.String(), ":1:9: a rule needs the key effect") {
			t.Errorf("the log doesn't say why: %s", w.log.String())
		}
		rewrite(t, file, "# the same\nrules: []")
		if hangup() != first || len(w.policies()) != 1 {
			t.Error("the same rules were taken for others")
		}
		if err := os.Remove(file); err != nil {
			t.Fatal(err)
		}
		if hangup() != first {
			t.Error("a missing file was taken over")
		}
		rewrite(t, file, "rules: [{name: no, tool: '*', effect: deny}]")
		if second := hangup(); second.Rules().Len() != 1 || second.Settings() != first.Settings() || len(w.policies()) != 2 {
			t.Error("a good file was not taken over")
		}
	})
}

// A wrong policy file doesn't let the process start.
func TestAWrongPolicyFileDoesNotStart(t *testing.T) {
	open := policyFile(t, "rules: []")
	if err := os.Chmod(open, 0o666); err != nil {
		t.Fatal(err)
	}
	for file, want := range map[string]string{
		policyFile(t, "rules:\n  - {name: a, tool: x, effect: perhaps}\n"): "policy.yaml:2:32: effect is \"perhaps\": it has to be allow, ask or deny",
		filepath.Join(t.TempDir(), "none.yaml"):                            "doesn't exist (APPROVALBOT_POLICY_FILE)",
		t.TempDir():                                                        "not a regular file",
		open:                                                               "chmod o-w",
	} {
		s := Settings{ApprovalPolicy: policy.OnRequest, Sandbox: policy.WorkspaceWrite, PolicyFile: file}
		if _, err := openRulebook(s, nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", file, err, want)
		}
	}
}

// A file that was named on the command line is not the setting's.
func TestCheckOfNoFileBlamesNoSetting(t *testing.T) {
	_, _, err := mode{policy.OnRequest, policy.WorkspaceWrite, ""}.read("none.yaml")
	if err == nil || err.Error() != "the policy file none.yaml doesn't exist" {
		t.Error(err)
	}
}

// The tools can't read or write the policy file, by whatever name.
func TestThePolicyFileIsOutOfReach(t *testing.T) {
	inChangedWorld(t, func(w *world) {
		if err := os.MkdirAll(filepath.Join(w.dir, "workspace"), 0o755); err != nil {
			t.Fatal(err)
		}
		w.settings.PolicyFile = filepath.Join(w.dir, "workspace", "policy.yaml")
		rewrite(t, w.settings.PolicyFile, "rules: [{name: all, tool: '*', effect: allow}]")
		if err := os.Symlink("policy.yaml", filepath.Join(w.dir, "workspace", "link")); err != nil {
			t.Fatal(err)
		}
		w.settings.Model = script(t, `[{"toolCalls":[
			{"id":"c1","name":"read_file","arguments":{"path":"policy.yaml"}},
			{"id":"c2","name":"write_file","arguments":{"path":"policy.yaml","content":"rules: []"}},
			{"id":"c3","name":"read_file","arguments":{"path":"link"}},
			{"id":"c4","name":"write_file","arguments":{"path":"./link","content":"rules: []"}}]},{"text":"That is all."}]`)
	}, func(w *world) {
		w.ask("alice", "go")
		for _, id := range []string{"c1", "c2", "c3", "c4"} {
			if c := w.call(id); c.State != ledger.OutputError || c.Finished.Code != "NOT_ALLOWED" {
				t.Errorf("%s: %+v", id, c.Finished)
			}
		}
	})
}

// checked is what the commands print of a file.
func checked(t *testing.T, file string, m mode, print func(*strings.Builder, *policy.Policy, *policy.File, *knownTools) error) (string, error) {
	t.Helper()
	p, f, err := m.read(file)
	if err != nil {
		t.Fatal(err)
	}
	known, err := toolbox{}.open()
	if err != nil {
		t.Fatal(err)
	}
	defer known.close()
	var out strings.Builder
	err = print(&out, p, f, known)
	return out.String(), err
}

var usual = mode{policy.OnRequest, policy.WorkspaceWrite, askReadOnly}

// The policies that we give as examples are well, have a test for every rule, and decide as they say.
func TestExamplePolicies(t *testing.T) {
	files, err := filepath.Glob("../../docs/policies/*.yaml")
	if err != nil || len(files) < 5 {
		t.Fatalf("%d examples, %v", len(files), err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			out, err := checked(t, file, usual, func(out *strings.Builder, p *policy.Policy, f *policy.File, known *knownTools) error {
				tested := map[string]bool{}
				for _, e := range f.Examples {
					for _, r := range e.Rules {
						tested[r] = true
					}
				}
				for _, r := range p.Rules().List() {
					if !tested[r.Name] {
						t.Errorf("no test expects the rule %s", r.Name)
					}
				}
				return testPolicy(out, file, usual, p, f, known)
			})
			if err != nil {
				t.Errorf("%v\n%s", err, out)
			}
			out, err = checked(t, file, usual, func(out *strings.Builder, p *policy.Policy, f *policy.File, known *knownTools) error {
				return checkPolicy(out, file, p, f, known)
			})
			if err != nil || strings.Contains(out, "note: ") {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
}

// policy test says what came out otherwise, and fails.
func TestPolicyTest(t *testing.T) {
	file := policyFile(t, `rules:
  - {name: docs, tool: write_file, when: 'args.path.startsWith("docs/")', effect: allow}
tests:
  - {name: right, tool: write_file, args: {path: docs/a, content: x}, expect: allow, rule: docs}
  - {name: wrong, tool: write_file, args: {path: src/a, content: x}, expect: allow, rule: docs}
  - {name: impossible, tool: write_file, args: {file: docs/a}, expect: ask}
  - {tool: write_file, args: {path: docs/a, content: x}, approvalPolicy: strict, expect: ask}
  - {tool: mcp__x__get, annotations: {readOnlyHint: true, openWorldHint: false}, expect: allow}
  - {tool: write_file, args: {path: docs/a, content: x}, sandboxMode: read_only, expect: deny}
`)
	out, err := checked(t, file, usual, func(out *strings.Builder, p *policy.Policy, f *policy.File, known *knownTools) error {
		return testPolicy(out, "p.yaml", usual, p, f, known)
	})
	var code *exitError
	if !errors.As(err, &code) || code.code != 1 || code.message != "2 of 6 tests in p.yaml came out otherwise" {
		t.Errorf("got %v", err)
	}
	for _, want := range []string{"p.yaml:5: wrong\n    expect: want allow, got ask\n    rule: want docs, got none\n    decided by approvalPolicy=on_request: write_file", "p.yaml:6: impossible\n    such a call ends before it is judged, because of its arguments:"} {
		if !strings.Contains(out, want) {
			t.Errorf("%q isn't in\n%s", want, out)
		}
	}
}

func TestPolicyCheckAndExplain(t *testing.T) {
	file := policyFile(t, `rules:
  - {name: docs, tool: write_fil, effect: allow}
  - {name: a, tool: deploy, effect: ask, approvers: U0A, timeout: 90m}
  - {name: b, tool: deploy, when: args.force, effect: ask, approvers: U0B, quorum: 1, risk: high}
  - {name: never, tool: "drop_*", effect: deny}
`)
	out, err := checked(t, file, mode{policy.Strict, policy.WorkspaceWrite, askReadOnly}, func(out *strings.Builder, p *policy.Policy, f *policy.File, known *knownTools) error {
		return checkPolicy(out, "p.yaml", p, f, known)
	})
	if err != nil {
		t.Fatal(err)
	}
	last := -1
	for _, want := range []string{
		"p.yaml is well: 4 rules, 0 tests", "deny    never      drop_*     -", "ask     a          deploy     approval of U0A, within 1h30m", "ask     b          deploy     high risk, 1 approval of U0B", "args.force", "allow   docs",
		"(no rule)", "hash: ", "note: under the approval policy strict", "note: the rule docs is about the tool write_fil; the built-in one is called write_file", "note: the rules a and b have no approver in common",
	} {
		at := strings.Index(out, want)
		if at <= last {
			t.Errorf("%q isn't where it belongs in\n%s", want, out)
		}
		last = max(last, at)
	}
	out, err = checked(t, file, usual, func(out *strings.Builder, p *policy.Policy, f *policy.File, known *knownTools) error {
		call, about := known.call(policy.Call{Tool: "deploy", Args: []byte(`{"force":1}`)}, nil)
		return explainPolicy(out, p, call, about)
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"decision  deny", "by        rules: a, b", "Nobody could approve this: the rule a and the rule b want different approvers", "b      ask     failed, so it counts: it gives a int, neither true nor false", "never  deny    another tool"} {
		if !strings.Contains(out, want) {
			t.Errorf("%q isn't in\n%s", want, out)
		}
	}
}

// What a rule sees of a call of a built-in tool is what policy explain and policy test see: also of those that reach beyond
// the workspace.
func TestExplainKnowsEveryBuiltInTool(t *testing.T) {
	file := policyFile(t, `rules:
  - {name: elsewhere, tool: http_request, when: host.endsWith(".example.com"), effect: deny}
tests:
  - {tool: http_request, args: {method: GET, url: "https://API.example.com.:8443/x"}, expect: deny, rule: elsewhere}
  - {tool: post_message, args: {to: "#all", text: hello}, expect: ask, risk: high}
  - {tool: lookup_user, args: {query: alice}, expect: allow}
`)
	out, err := checked(t, file, usual, func(out *strings.Builder, p *policy.Policy, f *policy.File, known *knownTools) error {
		return testPolicy(out, "p.yaml", usual, p, f, known)
	})
	if err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	for url, want := range map[string]string{
		"https://API.example.com.:8443/x": "api.example.com",
		"https://x@api.example.com/":      "such a call ends before it is judged",
		"http://127.0.0.1/":               "such a call ends before it is judged",
	} {
		out, err := checked(t, file, usual, func(out *strings.Builder, p *policy.Policy, f *policy.File, known *knownTools) error {
			call, notes := known.call(policy.Call{Tool: "http_request", Args: []byte(`{"method":"GET","url":"` + url + `"}`)}, nil)
			return explainPolicy(out, p, call, notes)
		})
		if err != nil || !strings.Contains(out, want) {
			t.Errorf("%s: no %q in\n%s\n%v", url, want, out, err)
		}
	}
}

// A group that doesn't exist lets nobody in: the call is denied at once with its id and its rule, and the log said so before,
// at the start and when the rules were read again.
func TestAGroupThatIsNotThere(t *testing.T) {
	const rule = "rules: [{name: four-eyes, tool: write_file, effect: ask, approvers: [S0PLATFORM]}]"
	file := policyFile(t, rule)
	warned := func(w *world, group string) int {
		return strings.Count(w.log.String(), file+":1: the rule four-eyes: there is no user group with the id "+group)
	}
	inChangedWorld(t, func(w *world) {
		w.settings.PolicyFile, w.hangups = file, make(chan os.Signal, 1)
		w.settings.Model = script(t, `[{"toolCalls":[{"id":"c1","name":"write_file","arguments":{"path":"a.txt","content":"a"}}]},{"text":"That is all."}]`)
	}, func(w *world) {
		if n := warned(w, "S0PLATFORM"); n != 1 {
			t.Errorf("the log says it %d times after the start:\n%s", n, w.log.String())
		}
		began := time.Now()
		thread := w.ask("alice", "go")
		const reason = "there is no user group with the id S0PLATFORM (rules: four-eyes)"
		c := w.call("c1")
		if c.State != ledger.OutputDenied || c.Finished.Source != ledger.SourceUndeliverable || !strings.Contains(c.Finished.Reason, reason) || time.Since(began) > 20*time.Second {
			t.Errorf("after %v: %s %+v", time.Since(began), c.State, c.Finished)
		}
		if card := w.card(thread); !strings.Contains(card.text, reason) {
			t.Errorf("the card doesn't say why: %s", card.text)
		}
		rewrite(t, file, strings.ReplaceAll(rule, "S0PLATFORM", "S0OTHER"))
		w.hangups <- syscall.SIGHUP
		w.pass(time.Second)
		if n := warned(w, "S0OTHER"); n != 1 {
			t.Errorf("the log says it %d times after the rules were read again:\n%s", n, w.log.String())
		}
		w.hangups <- syscall.SIGHUP // the file says what it said: whoever mended it in Slack wants to know
		w.pass(time.Second)
		if n := warned(w, "S0OTHER"); n != 2 {
			t.Errorf("the log says it %d times after another look", n)
		}
	})
}

// A rule may name a user group: its members may approve, others not.
func TestAGroupApproves(t *testing.T) {
	const rule = "rules: [{name: four-eyes, tool: write_file, effect: ask, approvers: [$GROUP], quorum: 2}]"
	file := policyFile(t, "")
	inChangedWorld(t, func(w *world) {
		w.settings.PolicyFile = file
		w.settings.Model = script(t, `[{"toolCalls":[{"id":"c1","name":"write_file","arguments":{"path":"a.txt","content":"a"}}]},{"text":"That is all."}]`)
		rewrite(t, file, strings.ReplaceAll(rule, "$GROUP", w.ws.Usergroups[0].ID))
	}, func(w *world) {
		thread := w.ask("alice", "go")
		card := w.card(thread)
		w.click("bob", card, "approve")
		w.click("gus", card, "approve")
		if w.exists("a.txt") {
			t.Error("one of the group was enough")
		}
		w.click("carol", card, "approve")
		if !w.exists("a.txt") {
			t.Errorf("two of the group were not enough: %s", w.thread(thread))
		}
		if log := w.log.String(); strings.Contains(log, "level=WARN") && strings.Contains(log, "four-eyes") {
			t.Errorf("the log warns of a rule that is well: %s", log)
		}
	})
}

// Looking people up delays nothing: the bot is there while Slack takes its time, and ends while it still does.
func TestTheRollCallDelaysNothing(t *testing.T) {
	inChangedWorld(t, func(w *world) {
		w.settings.Approvers = []string{"U0NOBODY", "requester"}
		w.slack.SetFault(devslack.Fault{Method: "users.info", Times: 100, DelayMS: 4000, Match: "U0NOBODY"})
	}, func(w *world) {
		if strings.Contains(w.log.String(), "U0NOBODY:") {
			t.Error("the start waited for it")
		}
		w.pass(5 * time.Second)
		if !strings.Contains(w.log.String(), "APPROVALBOT_APPROVERS: there is nobody with the id U0NOBODY: Slack shows") {
			t.Errorf("nothing was said:\n%s", w.log.String())
		}
		w.slack.SetFault(devslack.Fault{Method: "users.info", Times: 100, DelayMS: 4000, Match: "U0NOBODY"})
		w.app.rules.tell()
	})
}
