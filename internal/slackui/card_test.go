package slackui

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/slack-go/slack"
	"pgregory.net/rapid"

	"approvalbot/internal/language"
	"approvalbot/internal/ledger"
	"approvalbot/internal/rapidtest"
)

var update = flag.Bool("update", false, "write the golden files")

// golden compares a rendering with testdata/NAME.json.
func golden(t *testing.T, name string, r rendering) {
	t.Helper()
	if c := checkMessage(r); len(c.problems) > 0 {
		t.Errorf("Slack would refuse it: %q", c.problems)
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(map[string]any{"text": r.text, "blocks": r.blocks, "metadata": r.metadata()}); err != nil {
		t.Fatal(err)
	}
	sameAsGolden(t, filepath.Join("testdata", name+".json"), b.String())
}

// cardStories are the states that a card can be in.
var cardStories = map[string]func() *story{
	"pending":          func() *story { return askedShell("printf ok > proof.txt") },
	"pending_quorum":   quorumStory,
	"pending_risk":     riskStory,
	"pending_diff":     diffStory,
	"pending_json":     jsonStory,
	"pending_too_long": func() *story { return askedShell("printf '" + strings.Repeat("0123456789", 6000) + "'") },
	"pending_hostile": func() *story {
		return askedShell("echo \u202Esafe\u200B <!channel> `x`" + strings.Repeat(" ", 5000) + "; rm -rf /")
	},
	"pending_secret": func() *story {
		return askedShell("curl -H 'Authorization: Bearer abcdef0123456789' https://example.com")
	},
	"pending_veiled": func() *story { return askedShell("our-own-secret-token --help") },
	"pending_high": func() *story {
		s := newStory().calls("", toolCall("call_1", "shell", `{}`))
		return s.ask("call_1", func(r *ledger.ApprovalRequested) { shell("rm -rf build")(r); r.Risk = "high" }).shown("call_1")
	},
	"pending_offers": func() *story {
		s := newStory().calls("The report is finished.", toolCall("call_1", "http_request", `{}`))
		return s.ask("call_1", func(r *ledger.ApprovalRequested) {
			r.Preview = ledger.Preview{Summary: "POST https://deploys.example.com/v1/releases", Target: "deploys.example.com", Kind: "request",
				Body:   "POST https://deploys.example.com/v1/releases\nContent-Type: application/json\n\n{\n  \"service\": \"web\",\n  \"replicas\": 3\n}",
				RunsAs: "the service account deployer"}
			r.Offers = []ledger.Offer{ledger.OfferEdit, ledger.OfferGrantThread, ledger.OfferGrantAlways, ledger.OfferMoreTime, ledger.OfferAskAgain}
		}).shown("call_1")
	},
	"pending_nobody": func() *story {
		s := newStory().calls("", toolCall("call_1", "shell", `{}`))
		return s.ask("call_1", func(r *ledger.ApprovalRequested) { shell("date")(r); r.Dismissed = "the channel is archived" }).shown("call_1")
	},
	"unanswered_again": func() *story {
		s := newStory().calls("", toolCall("call_1", "shell", `{}`))
		s.ask("call_1", func(r *ledger.ApprovalRequested) {
			shell("date")(r)
			r.Offers = []ledger.Offer{ledger.OfferAskAgain}
		}).shown("call_1")
		return s.resolve("call_1", ledger.Denied, ledger.SourceTimeout, "nobody answered within 2 minutes", nil)
	},
	"done_edited": func() *story {
		s := askedShell("rm -rf build").amend("call_1", carol, "rm -rf build/tmp")
		return s.approve("call_1", bob).started("call_1").done("call_1", "")
	},
	"done_edited_alone": func() *story {
		s := askedShell("rm -rf build").amend("call_1", bob, "rm -rf build/tmp")
		return s.approve("call_1", bob).started("call_1").done("call_1", "")
	},
	"starting": func() *story { return askedShell("date").approve("call_1", bob) },
	"running":  func() *story { return askedShell("date").approve("call_1", bob).started("call_1") },
	"done": func() *story {
		return askedShell("date").approve("call_1", bob).started("call_1").done("call_1", "Wed Mar  4\n")
	},
	"done_silent": func() *story {
		return askedShell("printf ok > proof.txt").approve("call_1", bob).started("call_1").done("call_1", "")
	},
	"failed_long": func() *story {
		out := "Error [EXIT_STATUS]: The command ended with exit status 2."
		for i := range 200 {
			out += fmt.Sprintf("\ncompiling part %d of 200", i+1)
		}
		out += "\nmain.go:7: undefined: x\nmake: *** [build] Error 1\n"
		return askedShell("make").approve("call_1", bob).started("call_1").finish("call_1", ledger.ToolFinished{
			State: ledger.OutputError, Code: "EXIT_STATUS", Reason: "The command ended with exit status 2.", Output: out, Elapsed: 9 * time.Second})
	},
	"done_long": func() *story {
		return askedShell("seq 5000").approve("call_1", bob).started("call_1").done("call_1", numbers(5000))
	},
	"pending_brief": func() *story {
		s := newStory().calls("", toolCall("call_1", "shell", `{"command":"date"}`))
		return s.ask("call_1", func(r *ledger.ApprovalRequested) { shell("date")(r); r.Timeout = 10 * time.Second }).shown("call_1")
	},
	"pending_direct": func() *story {
		s := newStory().calls("", toolCall("call_1", "shell", `{"command":"date"}`))
		return s.ask("call_1", func(r *ledger.ApprovalRequested) { shell("date")(r); r.Place.Channel = "D0ALICE" }).shown("call_1")
	},
	"failed": func() *story {
		return askedShell("false").approve("call_1", bob).started("call_1").finish("call_1", ledger.ToolFinished{
			State: ledger.OutputError, Code: "EXIT_STATUS", Reason: "The command ended with status 1.", Output: "Error [EXIT_STATUS]: The command ended with status 1.\nno such file", Elapsed: 90 * time.Second})
	},
	"not_performed": func() *story {
		return askedShell("date").approve("call_1", bob).finish("call_1", ledger.ToolFinished{State: ledger.OutputDenied, Source: ledger.SourcePolicy, Reason: "the policy changed since it was asked"})
	},
	"stopped": func() *story {
		return askedShell("sleep 60").approve("call_1", bob).started("call_1").stop(carol).finish("call_1", ledger.ToolFinished{State: ledger.OutputError, Code: "ABORTED", Output: "Error [ABORTED]: stopped", Elapsed: 3 * time.Second})
	},
	"unknown": func() *story {
		return askedShell("sleep 60").approve("call_1", bob).started("call_1").finish("call_1", ledger.ToolFinished{State: ledger.OutputError, Code: "OUTCOME_UNKNOWN"})
	},
	"denied": func() *story {
		return askedShell("rm -rf build").deny("call_1", bob, "not on a Friday").finish("call_1", ledger.ToolFinished{State: ledger.OutputDenied, Source: ledger.SourceUser})
	},
	"unanswered": func() *story {
		return askedShell("date").resolve("call_1", ledger.Denied, ledger.SourceTimeout, "nobody answered within 2 minutes", nil)
	},
	"aborted_by_person": func() *story {
		return askedShell("date").stop(carol).resolve("call_1", ledger.Denied, ledger.SourceAbort, "stopped by carol", nil)
	},
	"aborted_by_restart": func() *story {
		return askedShell("date").resolve("call_1", ledger.Denied, ledger.SourceAbort, "approvalbot restarted before anybody decided", nil)
	},
	"undeliverable": func() *story {
		return askedShell("date").resolve("call_1", ledger.Denied, ledger.SourceUndeliverable, "the channel is archived", nil)
	},
}

func numbers(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintln(&b, i+1)
	}
	return b.String()
}

// What hides a secret must not say that it shows exactly what will be done.
func TestHiddenIsNotExact(t *testing.T) {
	for name, exact := range map[string]struct{ card, modal bool }{
		"pending": {true, true}, "pending_hostile": {true, true}, "pending_too_long": {false, true},
		"pending_secret": {}, "pending_veiled": {},
	} {
		s := cardStories[name]()
		view, _ := testRenderer().review(&s.run, s.call("call_1"))
		says := func(c *blockChecker) bool { return strings.Contains(c.shown.String(), "Exactly what ") }
		if got := says(checkMessage(s.card())); got != exact.card {
			t.Errorf("the card of %s says exactly: %v", name, got)
		}
		if got := says(checkModal(view)); got != exact.modal {
			t.Errorf("the modal of %s says exactly: %v", name, got)
		}
	}
}

func quorumStory() *story {
	s := newStory().calls("I need the **date** to go on.", toolCall("call_1", "shell", `{"command":"date"}`))
	s.ask("call_1", func(r *ledger.ApprovalRequested) {
		shell("date")(r)
		r.Quorum, r.Approvers = 2, []string{"U0BOB", "U0CAROL", "S0ONCALL", "U0ALICE"}
	})
	return s.shown("call_1").vote("call_1", bob, ledger.Approved, "")
}

// riskStory asks about something that rules call critical.
func riskStory() *story {
	s := newStory().calls("", toolCall("call_1", "shell", `{"command":"terraform destroy -auto-approve"}`))
	return s.ask("call_1", func(r *ledger.ApprovalRequested) {
		shell("terraform destroy -auto-approve")(r)
		r.Risk, r.Confirm, r.Rule, r.Reason = "critical", true, "rules: destroys, production-four-eyes", "It deletes what can't be brought back."
		r.Quorum, r.Approvers = 2, []string{"S0ONCALL"}
	}).shown("call_1")
}

func diffStory() *story {
	s := newStory().calls("", toolCall("call_1", "edit_file", `{}`))
	return s.ask("call_1", func(r *ledger.ApprovalRequested) {
		r.Arguments, r.Approvers = `{"new_string":"b","old_string":"a","path":"main.go"}`, []string{"requester", "channel"}
		r.Preview = ledger.Preview{Summary: "Edit main.go", Target: "main.go", Kind: "diff", Body: " package main\n-\tfmt.Println(\"a\")\n+\tfmt.Println(\"b\")\n"}
	}).shown("call_1")
}

func jsonStory() *story {
	s := newStory().calls("", toolCall("call_1", "ticket_create", `{"title":"A & B <c>","priority":2}`))
	return s.ask("call_1", func(r *ledger.ApprovalRequested) {
		r.Requesters = []ledger.Person{alice.Person(), ci.Person()}
		r.Arguments = `{"priority":2,"title":"A & B <c>"}`
	}).shown("call_1")
}

func (s *story) card() rendering {
	c := s.call("call_1")
	return testRenderer().card(&s.run, c, c.Approval.Until())
}

// goldenCard compares a card with testdata/card_NAME.LANGUAGE.golden: first as people read it, then as Slack gets it.
func goldenCard(t *testing.T, name string, lang language.Language, r rendering) {
	t.Helper()
	if c := checkMessage(r); len(c.problems) > 0 {
		t.Errorf("Slack would refuse it: %q", c.problems)
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, "%s\n\n%s\n", r.text, strings.TrimRight(blocksAsText(r.blocks), "\n"))
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	b.WriteString("\n-- blocks --\n")
	if err := enc.Encode(map[string]any{"blocks": r.blocks, "metadata": r.metadata()}); err != nil {
		t.Fatal(err)
	}
	sameAsGolden(t, filepath.Join("testdata", "card_"+name+"."+string(lang)+".golden"), b.String())
}

func sameAsGolden(t *testing.T, file, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(want), got); d != "" {
		t.Errorf("%s (-want +got):\n%s", file, d)
	}
}

func TestCards(t *testing.T) {
	for name, tell := range cardStories {
		for _, lang := range language.All {
			t.Run(name+"/"+string(lang), func(t *testing.T) {
				s := tell()
				c := s.call("call_1")
				r := rendererIn(lang).card(&s.run, c, c.Approval.Until())
				goldenCard(t, name, lang, r)
				buttons := checkMessage(r).actions
				end := endingOf(c)
				if (end == endPending) != slices.Contains(buttons, actionDeny) {
					t.Errorf("%s has buttons %v", end, buttons)
				}
				if end != endPending && len(buttons) > 0 && !slices.Equal(buttons, []string{actionAskAgain}) {
					t.Errorf("an ended card has buttons %v", buttons)
				}
			})
		}
	}
}

// TestApproveOnlyWhenAllIsShown: the button is there exactly where the card shows
// everything.
func TestApproveOnlyWhenAllIsShown(t *testing.T) {
	always := []string{actionDeny, actionDenyWith, actionMore}
	for name, want := range map[string][]string{
		"pending":          {actionApprove},
		"pending_diff":     {actionApprove},
		"pending_hostile":  {actionApprove},
		"pending_too_long": {actionReview},
		"pending_secret":   {actionApprove}, // program and host are there to see
		"pending_veiled":   {},
	} {
		if got := checkMessage(cardStories[name]().card()).actions; !slices.Equal(got, append(want, always...)) {
			t.Errorf("%s: buttons %v, want %v", name, got, want)
		}
	}
}

// TestMenu: what the card offers besides, and where it doesn't: whoever doesn't see all of it can't change it, nor allow it
// for longer.
func TestMenu(t *testing.T) {
	offers := []ledger.Offer{ledger.OfferEdit, ledger.OfferGrantThread, ledger.OfferGrantAlways, ledger.OfferMoreTime, ledger.OfferAskAgain}
	for _, tt := range []struct {
		name   string
		change func(*ledger.ApprovalRequested)
		run    string
		want   string
	}{
		{"nothing offered", func(r *ledger.ApprovalRequested) { r.Offers = nil }, "", "stop"},
		{"everything", func(r *ledger.ApprovalRequested) {}, "", "edit grant_thread grant_always more_time stop"},
		{"too long", func(r *ledger.ApprovalRequested) { r.Preview.Body = strings.Repeat("x", 60_000) }, "", "more_time stop"},
		{"veiled", func(r *ledger.ApprovalRequested) { r.Preview.Body = "our-own-secret-token --help" }, "", "more_time stop"},
		{"nobody may", func(r *ledger.ApprovalRequested) { r.Dismissed = "nobody is listed" }, "", "stop"},
		{"a run with a long name", func(r *ledger.ApprovalRequested) { r.Offers = nil }, strings.Repeat("r", 71), ""},
	} {
		s := newStory().calls("", toolCall("call_1", "shell", `{}`)).ask("call_1", func(r *ledger.ApprovalRequested) {
			shell("date")(r)
			r.Offers, r.MoreTime = offers, time.Hour
			tt.change(r)
		}).shown("call_1")
		if tt.run != "" {
			s.run.ID = tt.run
		}
		var got []string
		for _, b := range s.card().blocks {
			if actions, ok := b.(*slack.ActionBlock); ok {
				for _, e := range actions.Elements.ElementSet {
					if m, ok := e.(*slack.OverflowBlockElement); ok {
						for _, o := range m.Options {
							action, value, _ := strings.Cut(o.Value, ".")
							got = append(got, action)
							if want := s.call("call_1").Approval.Approval; value != want && !(action == actionStop && value == s.run.ID) {
								t.Errorf("%s: %s is about %q", tt.name, action, value)
							}
						}
					}
				}
			}
		}
		if strings.Join(got, " ") != tt.want {
			t.Errorf("%s: %v, want %s", tt.name, got, tt.want)
		}
	}
}

func TestCardFinal(t *testing.T) {
	for name, tell := range cardStories {
		s := tell()
		end := endingOf(s.call("call_1"))
		want := end != endPending && end != endStarting && end != endRunning
		if got := testRenderer().cardFinal(s.call("call_1"), &s.run); got != want {
			t.Errorf("%s: final = %v", name, got)
		}
	}
}

// TestFinalCardStays: once a card is final, what follows in the run changes
// nothing of it.
func TestFinalCardStays(t *testing.T) {
	for name, tell := range cardStories {
		s := tell()
		if !testRenderer().cardFinal(s.call("call_1"), &s.run) {
			continue
		}
		before := s.card().hash()
		if s.call("call_1").Finished == nil {
			s.finish("call_1", ledger.ToolFinished{State: ledger.OutputDenied, Source: s.call("call_1").Approval.Resolved.Source, Reason: "later words", Output: "x"})
		}
		s.stop(carol).end(ledger.RunCancelled, "", "later")
		if after := s.card().hash(); after != before {
			t.Errorf("%s changed after it was final", name)
		}
	}
}

func TestSizes(t *testing.T) {
	for _, c := range []struct {
		name    string
		body    string
		approve bool
	}{
		{"just a word", "x", true},
		{"3,000 characters", strings.Repeat("x", 3000), true},
		{"3,000 to escape", strings.Repeat("&<>", 1000), false},
		{"1,500 to escape", strings.Repeat("&<>", 500), true},
		{"many lines", strings.Repeat("line\n", 1000), true},
		{"9,000", strings.Repeat("x", 9000), true},
		{"60 KB", strings.Repeat("x", 60_000), false},
		{"60 KB of tag characters", strings.Repeat("\U000E0041", 60_000), false},
		{"60 KB of emoji", strings.Repeat("👍", 15_000), false},
		{"60 KB of backslashes", strings.Repeat(`\`, 60_000), false},
		{"spaces before the end", "true" + strings.Repeat(" ", 5000) + "; rm -rf /", true},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := askedShell("cat")
			a := s.call("call_1").Approval
			a.Preview.Body, a.Preview.Summary = c.body, "Run it"
			r := s.card()
			check := checkMessage(r)
			if len(check.problems) > 0 {
				t.Errorf("Slack would refuse it: %q", check.problems)
			}
			if got := slices.Contains(check.actions, actionApprove); got != c.approve {
				t.Errorf("approve = %v", got)
			}
			complete, _ := visible(c.body)
			if c.approve && !strings.Contains(check.shown.String(), complete) {
				t.Error("approvable, and not all of it is shown")
			}
			s.approve("call_1", bob).started("call_1").done("call_1", c.body)
			if p := checkMessage(s.card()).problems; len(p) > 0 {
				t.Errorf("Slack would refuse the end of it: %q", p)
			}
		})
	}
}

func TestReview(t *testing.T) {
	v := testRenderer()
	s := askedShell("printf '" + strings.Repeat("0123456789", 6000) + "'")
	view, file := v.review(&s.run, s.call("call_1"))
	c := checkModal(view)
	if len(c.problems) > 0 || file != nil {
		t.Fatalf("problems %q, file %v", c.problems, file != nil)
	}
	if !slices.Equal(c.actions, []string{actionApprove, actionDeny, actionDenyWith}) || view.PrivateMetadata != s.call("call_1").Approval.Approval {
		t.Errorf("buttons %v, metadata %q", c.actions, view.PrivateMetadata)
	}
	all := regexp.MustCompile(`\nPart \d+ of \d+, in the same line`).ReplaceAllString(c.shown.String(), "")
	if !strings.Contains(all, strings.Repeat("0123456789", 6000)) {
		t.Error("not all of it is shown")
	}

	veiled := askedShell("our-own-secret-token " + strings.Repeat("x", 20_000))
	view, _ = v.review(&veiled.run, veiled.call("call_1"))
	if got := checkModal(view).actions; !slices.Equal(got, []string{actionDeny, actionDenyWith}) {
		t.Errorf("a veiled request has %v in the modal", got)
	}

	s.deny("call_1", bob, "")
	view, _ = v.review(&s.run, s.call("call_1"))
	if c := checkModal(view); len(c.actions) > 0 || len(c.problems) > 0 {
		t.Errorf("after the end: buttons %v, problems %q", c.actions, c.problems)
	}
}

func TestReviewFile(t *testing.T) {
	v := testRenderer()
	body := "x\u202E" + strings.Repeat("0123456789\n", 30_000) + "password=hunter2"
	s := askedShell("cat")
	a := s.call("call_1").Approval
	a.Preview.Body = body
	view, file := v.review(&s.run, s.call("call_1"))
	if c := checkModal(view); file == nil || len(c.problems) > 0 || !slices.Equal(c.actions, []string{actionDeny, actionDenyWith}) {
		t.Fatalf("file %v, problems %q, buttons %v", file != nil, c.problems, c.actions)
	}
	got := string(file.content)
	if strings.Contains(got, "\u202E") || !strings.Contains(got, `x\u{202E}0123`) || strings.Contains(got, "hunter2") || strings.Count(got, "0123456789") != 30_000 {
		t.Error("the file isn't the request, visible and without secrets")
	}
	linked := v.reviewLinked(&s.run, s.call("call_1"), "https://files.example/x")
	if c := checkModal(linked); len(c.problems) > 0 || !slices.Equal(c.actions, []string{actionApprove, actionDeny, actionDenyWith}) {
		t.Errorf("problems %q, buttons %v", c.problems, c.actions)
	}
	forged := v.reviewLinked(&s.run, s.call("call_1"), "javascript:alert(1)")
	if c := checkModal(forged); !slices.Equal(c.actions, []string{actionDeny, actionDenyWith}) {
		t.Errorf("with a forged link: buttons %v", c.actions)
	}
}

func TestVeiled(t *testing.T) {
	const secret = "our-own-secret-token"
	v := testRenderer()
	for _, c := range []struct {
		name, kind, body string
		want             bool
	}{
		{"an argument", "command", "login " + secret, false},
		{"the program", "command", secret + " x", true},
		{"the second program", "command", "true; " + secret, true},
		{"behind a wrapper", "command", "sudo -n " + secret, true},
		{"behind an assignment", "command", "A=b " + secret, true},
		{"in an assignment", "command", "PASSWORD=" + secret + " ./deploy", false},
		{"in a path", "command", "cat /etc/" + secret + "/x", true},
		{"a URL's password", "command", "psql postgres://bob:hunter2@db/x", false},
		{"an option", "command", "mysql --password hunter2 db", false},
		{"a program that looks like a password", "command", "echo it's token='; rm -rf /", true},
		{"a program between quotes that look like one", "command", "echo 'token='; rm -rf / ; echo ''", true},
		{"the output of a program", "command", "PASSWORD=\"x$(rm -rf y)\" true", true},
		{"a program in a key", "command", "echo -----BEGIN PRIVATE KEY-----; rm -rf /", true},
		{"a program in a URL", "command", "curl https://u:x$(reboot)@host", true},
		{"a quoted password", "command", "mysql --password 'correct horse' db", false},
		{"content of a file", "diff", "+" + secret, false},
		{"a value", "json", "{\n  \"text\": \"" + secret + "\"\n}", false},
		{"a host", "json", "{\n  \"host\": \"" + secret + "\"\n}", true},
		{"a named value", "json", "{\n  \"password\": \"hunter2\"\n}", false},
		{"in a URL", "json", "{\n  \"x\": \"https://a/" + secret + "\"\n}", true},
		{"in a request's body", "request", "POST https://a.example/x\n\n{\n  \"text\": \"" + secret + "\"\n}", false},
		{"in a request's header", "request", "GET https://a.example/x\nAuthorization: Bearer " + secret, false},
		{"in a request's query", "request", "GET https://a.example/x?token=" + secret, false},
		{"in a request's path", "request", "GET https://a.example/" + secret + "/x?y=1", true},
		{"a request's host", "request", "GET https://" + secret + "/", true},
		{"a place in a request's body", "request", "POST https://a.example/x\n\n{\n  \"host\": \"" + secret + "\"\n}", true},
		{"nothing", "command", "ls", false},
	} {
		a := &ledger.Approval{ApprovalRequested: &ledger.ApprovalRequested{Preview: ledger.Preview{Summary: "Do it", Kind: c.kind, Body: c.body}}}
		if q := v.request(a); q.veiled != c.want {
			t.Errorf("%s: veiled = %v for %q", c.name, q.veiled, q.raw)
		}
	}
	for _, p := range []ledger.Preview{
		{Summary: "Read " + secret, Body: "x", Kind: "json"}, {Summary: "x", Target: secret, Body: "x", Kind: "command"},
	} {
		if q := v.request(&ledger.Approval{ApprovalRequested: &ledger.ApprovalRequested{Preview: p}}); !q.veiled {
			t.Errorf("not veiled: %+v", p)
		}
	}
}

// The first word of a command may be half of a quoted secret. It was judged with the command, and hides no program.
func TestTheTargetOfACommandIsJudgedWithIt(t *testing.T) {
	p := ledger.Preview{Summary: `Run PASSWORD="correct horse" ./deploy`, Target: `PASSWORD="correct`, Kind: "command", Body: `PASSWORD="correct horse" ./deploy`}
	q := testRenderer().request(&ledger.Approval{ApprovalRequested: &ledger.ApprovalRequested{Preview: p}})
	if q.veiled || q.secrets != 1 || strings.Contains(q.summary, "correct") {
		t.Errorf("veiled %v, %d secrets, %q", q.veiled, q.secrets, q.summary)
	}
}

func TestMixedWord(t *testing.T) {
	for in, want := range map[string]string{
		"curl example.com": "", "привет мир": "", "curl exаmple.com": "exаmple.com", "Ελλάδα and Россия": "", "git-сommit": "git-сommit", "日本 text": "",
	} {
		if got := mixedWord(in); got != want {
			t.Errorf("mixedWord(%q) = %q", in, got)
		}
	}
}

// TestHostileCards: whatever stands in whatever field, in whatever state, Slack
// takes it, nobody is mentioned who shouldn't be, nothing is hidden, no secret
// leaves.
func TestHostileCards(t *testing.T) {
	rapidtest.Checks(t, 30)
	known := map[string]bool{"U0ALICE": true, "U0BOB": true, "U0CAROL": true, "S0ONCALL": true}
	rapid.Check(t, func(t *rapid.T) {
		text := hostile()
		s := hostileStory(t, text)
		v := testRenderer()
		c := s.call("call_1")
		r := v.card(&s.run, c, c.Approval.Until())
		for name, check := range map[string]*blockChecker{
			"card": checkMessage(r), "plain card": checkMessage(plain(r)),
			"progress":       checkMessage(v.progress(message(text.Draw(t, "message")), &s.run)),
			"plain progress": checkMessage(plain(v.progress(message("x"), &s.run))),
			"foreign":        checkMessage(v.foreign(text.Draw(t, "foreign"))),
		} {
			holds(t, name, check, known)
		}
		view, _ := v.review(&s.run, c)
		holds(t, "review", checkModal(view), known)
		for i, a := range v.answer(&s.run) {
			if a.thing.Kind == kindFile {
				continue // a file has no text and no blocks
			}
			holds(t, fmt.Sprint("answer ", i), checkMessage(a), known)
			holds(t, fmt.Sprint("plain answer ", i), checkMessage(plain(a)), known)
		}
		complete, _ := visible(v.clean(c.Approval.Preview.Body))
		if check := checkMessage(r); c.Approval.Preview.Body != "" && slices.Contains(check.actions, actionApprove) && !strings.Contains(check.shown.String(), complete) {
			t.Fatalf("approvable, and not all of it is shown: %q", complete)
		}
	})
}

func holds(t *rapid.T, name string, c *blockChecker, known map[string]bool) {
	if len(c.problems) > 0 {
		t.Fatalf("%s: %q", name, c.problems)
	}
	for id := range c.users {
		if !known[id] {
			t.Fatalf("%s mentions %s", name, id)
		}
	}
	if strings.Contains(c.shown.String(), "our-own-secret-token") {
		t.Fatalf("%s gives away a secret", name)
	}
}

func hostileStory(t *rapid.T, text *rapid.Generator[string]) *story {
	long := rapid.Custom(func(t *rapid.T) string {
		return strings.Repeat(text.Draw(t, "text"), rapid.SampledFrom([]int{1, 1, 1, 20, 200}).Draw(t, "times"))
	})
	s := newStory().calls(text.Draw(t, "claim"), ledger.ToolCall{ID: "call_1", Name: text.Draw(t, "tool"), Arguments: text.Draw(t, "raw")})
	s.ask("call_1", func(r *ledger.ApprovalRequested) {
		r.Tool, r.Arguments, r.Reason, r.Cwd = text.Draw(t, "name"), text.Draw(t, "arguments"), text.Draw(t, "reason"), text.Draw(t, "cwd")
		r.Approvers = append([]string{"U0BOB", "S0ONCALL"}, text.Draw(t, "approver"))
		r.Requesters = append(r.Requesters, ledger.Person{ID: text.Draw(t, "requester")})
		r.Preview = ledger.Preview{Summary: text.Draw(t, "summary"), Target: text.Draw(t, "target"),
			Kind: rapid.SampledFrom([]string{"command", "diff", "json", "other"}).Draw(t, "kind"),
			Body: long.Draw(t, "body"), Notes: rapid.SliceOfN(long, 0, 3).Draw(t, "notes")}
		r.Quorum, r.Digest = rapid.IntRange(0, 3).Draw(t, "quorum"), text.Draw(t, "digest")
	})
	stranger := ledger.Actor{Kind: ledger.ActorUser, ID: text.Draw(t, "id"), Name: text.Draw(t, "person")}
	token := ledger.Actor{Kind: ledger.ActorToken, ID: text.Draw(t, "token")}
	by := rapid.SampledFrom([]ledger.Actor{bob, stranger, token}).Draw(t, "by")
	f := ledger.ToolFinished{State: rapid.SampledFrom([]ledger.CallState{ledger.OutputAvailable, ledger.OutputDenied, ledger.OutputError}).Draw(t, "state"),
		Source: rapid.SampledFrom([]ledger.Source{"", ledger.SourceUser, ledger.SourcePolicy, ledger.SourceAbort}).Draw(t, "source"),
		Code:   rapid.SampledFrom([]string{"ABORTED", "OUTCOME_UNKNOWN", "X"}).Draw(t, "code"),
		Reason: text.Draw(t, "why"), Output: long.Draw(t, "output")}
	switch rapid.IntRange(0, 5).Draw(t, "how far") {
	case 0:
	case 1:
		s.vote("call_1", by, ledger.Approved, text.Draw(t, "words"))
	case 2:
		s.approve("call_1", by).started("call_1").finish("call_1", f)
	case 3:
		s.deny("call_1", by, text.Draw(t, "words")).finish("call_1", f)
	case 4:
		s.stop(by).resolve("call_1", ledger.Denied, ledger.SourceAbort, text.Draw(t, "words"), nil)
	case 5:
		s.resolve("call_1", ledger.Denied, rapid.SampledFrom([]ledger.Source{ledger.SourceTimeout, ledger.SourceUndeliverable, "odd"}).Draw(t, "end"), text.Draw(t, "words"), nil)
	}
	if rapid.Bool().Draw(t, "ended") {
		s.end(rapid.SampledFrom([]ledger.RunStatus{ledger.RunSucceeded, ledger.RunFailed, ledger.RunCancelled}).Draw(t, "status"), long.Draw(t, "answer"), text.Draw(t, "why it ended"))
	}
	return s
}

func TestHashIsOfWhatIsShown(t *testing.T) {
	a, b := askedShell("date").card(), askedShell("date").card()
	if a.hash() != b.hash() {
		t.Error("the same events give two hashes")
	}
	c := askedShell("date").vote("call_1", bob, ledger.Approved, "").card()
	if a.hash() == c.hash() || a.blocks[2].ID() == c.blocks[2].ID() {
		t.Error("a vote changes neither the hash nor the block_id")
	}
	if id := a.blocks[2].(*slack.ActionBlock).Elements.ElementSet[0].(*slack.ButtonBlockElement).Value; id != a.thing.ID {
		t.Errorf("the button's value is %q", id)
	}
}
