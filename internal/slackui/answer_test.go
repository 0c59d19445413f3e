package slackui

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/slack-go/slack"

	"approvalbot/internal/approvals"
	"approvalbot/internal/ledger"
	"approvalbot/internal/redact"
)

// word writes an element down: mentions as <ID>, styles around the text.
func word(e element) string {
	switch e := e.(type) {
	case *slack.RichTextSectionUserElement:
		return "<" + e.UserID + ">"
	case *slack.RichTextSectionUserGroupElement:
		return "<" + e.UsergroupID + ">"
	case *slack.RichTextSectionTextElement:
		s := e.Text
		if e.Style == nil {
			return s
		}
		for _, m := range []struct {
			on   bool
			name string
		}{{e.Style.Code, "code"}, {e.Style.Bold, "b"}, {e.Style.Italic, "i"}, {e.Style.Strike, "s"}} {
			if m.on {
				s = m.name + "(" + s + ")"
			}
		}
		return s
	}
	return fmt.Sprintf("%T", e)
}

// outline writes rich text down, a line for each paragraph, item or block.
func outline(elements []slack.RichTextElement) string {
	var lines []string
	for _, e := range elements {
		switch e := e.(type) {
		case *slack.RichTextSection:
			lines = append(lines, "p: "+words(e.Elements))
		case *slack.RichTextQuote:
			lines = append(lines, "quote: "+words(e.Elements))
		case *slack.RichTextPreformatted:
			lines = append(lines, "pre: "+words(e.Elements))
		case *slack.RichTextList:
			for i, item := range e.Elements {
				lines = append(lines, fmt.Sprintf("%s %d.%d: %s", e.Style, e.Indent, e.Offset+i, words(item.(*slack.RichTextSection).Elements)))
			}
		}
	}
	return strings.Join(lines, "\n")
}

func TestMarkdown(t *testing.T) {
	for _, c := range []struct{ name, in, want string }{
		{"words", "Done.", "p: Done."},
		{"paragraphs", "a\nb\n\nc", "p: a\nb\n\n\np: c"},
		{"heading", "## All **done** ##\ntext", "p: b(All )b(done)\n\n\np: text"},
		{"styles", "a **b** *c* _d_ ~~e~~ `f` __g__", "p: a b(b) i(c) i(d) s(e) code(f) b(g)"},
		{"nested", "**a `b` _c_**", "p: b(a )b(code(b))b( )i(b(c))"},
		{"no emphasis", "snake_case_name 2*3*4 a * b * c ** d", "p: snake_case_name 2*3*4 a * b * c ** d"},
		{"never closed", "**a `b _c [d](", "p: **a `b _c [d]("},
		{"code keeps its marks", "`**a** <!channel>`", "p: code(**a** <!channel>)"},
		{"links show where they lead", "[Approve](https://evil.example/x) ![i](https://a.b)", "p: Approve (https://evil.example/x) i (https://a.b)"},
		{"a link that is its text", "[https://a.b](https://a.b)", "p: https://a.b"},
		{"slack tokens are words", "<!channel> <@U0ATTACK> <https://evil|x>", "p: <!channel> <@U0ATTACK> <https://evil|x>"},
		{"list", "- a\n- **b**\n  - c\n1. d\n2. e\n", "bullet 0.0: a\nbullet 0.1: b(b)\nbullet 1.0: c\nordered 0.0: d\nordered 0.1: e"},
		{"numbers go on", "3. a\n4. b\n9. c", "ordered 0.2: a\nordered 0.3: b\nordered 0.8: c"},
		{"fence", "```go\nif a < b {\n\t*x*\n}\n```\nafter", "pre: if a < b {\n\t*x*\n}\np: after"},
		{"fence in a fence", "````\n```\n````", "pre: ```"},
		{"open fence", "```\na\n", "pre: a\n"},
		{"empty fence", "```\n```", ""},
		{"table with empty cells", "| a | bb |\n|---|---|\n| - | 2 |\n| -- | |", "pre: a  | bb\n---+---\n-  | 2\n-- |"},
		{"table", "| a | b |\n|---|---|\n| 1 | 2 |", "pre: a | b\n--+--\n1 | 2"},
		{"quote", "> a\n> b\nc", "quote: a\nb\np: c"},
		{"windows lines", "a\r\nb  \r\nc", "p: a\nb\nc"},
		{"hidden characters", "a\u202Eb\u00A0c ⚠\uFE0F", `p: a\u{202E}b c ⚠` + "\uFE0F"},
		{"nothing", " \n\n", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			if d := cmp.Diff(c.want, outline(join(markdown(c.in)))); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
		})
	}
}

func answerOf(status ledger.RunStatus, answer, reason string) []rendering {
	s := askedShell("date").approve("call_1", bob).started("call_1").done("call_1", "x").end(status, answer, reason)
	return testRenderer().answer(&s.run)
}

func TestAnswers(t *testing.T) {
	sample := "All **3** files are there:\n\n- `a.txt`\n- b.txt\n  - inner\n\n1. one\n2. two\n\n```sh\nls -la\n```\n> quoted\n\nSee [the docs](https://example.com/docs)."
	golden(t, "answer", answerOf(ledger.RunSucceeded, sample, "")[0])
	golden(t, "answer_empty", answerOf(ledger.RunSucceeded, " \n", "")[0])
	golden(t, "answer_failed", answerOf(ledger.RunFailed, "", "the model could not be reached")[0])
	golden(t, "answer_restarted", answerOf(ledger.RunCancelled, "", "approvalbot restarted")[0])

	unknown := askedShell("date").approve("call_1", bob).started("call_1").finish("call_1", ledger.ToolFinished{State: ledger.OutputError, Code: "OUTCOME_UNKNOWN"}).
		stop(bob).end(ledger.RunCancelled, "", "approvalbot restarted")
	golden(t, "answer_unknown", testRenderer().answer(&unknown.run)[0])

	if got := testRenderer().answer(&newStory().run); got != nil {
		t.Errorf("a run that goes on has an answer: %v", got)
	}
	if got := testRenderer().answer(&newStory().stop(bob).end(ledger.RunCancelled, "", "stopped by bob").run); got != nil {
		t.Errorf("a run that a person stopped has an answer: %v", got)
	}
}

func TestLongAnswers(t *testing.T) {
	for _, c := range []struct {
		name, in string
		messages int
	}{
		{"one", strings.Repeat("word ", 500), 1},
		{"paragraphs", strings.Repeat(strings.Repeat("word ", 100)+"\n\n", 40), 3},
		{"one paragraph", strings.Repeat("word ", 6000), 3},
		{"code", "```\n" + strings.Repeat("a line of code\n", 2000) + "```", 3},
		{"far too long", strings.Repeat("word ", 100_000), maxAnswerMessages},
		{"styles", strings.Repeat("**a** `b` ", 5000), 3},
		{"items", strings.Repeat("- x\n", 2000), 3},
		{"emoji", strings.Repeat("👍", 6000), 3},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := answerOf(ledger.RunSucceeded, c.in, "")
			ids := map[ledger.Thing]bool{}
			shown := ""
			for _, r := range got {
				ids[r.thing] = true
				if r.thing.Kind == kindFile {
					continue
				}
				check := checkMessage(r)
				if len(check.problems) > 0 {
					t.Fatalf("Slack would refuse it: %q", check.problems)
				}
				shown += check.shown.String()
			}
			if len(got) > maxAnswerMessages || len(got) > c.messages || len(ids) != len(got) {
				t.Errorf("%d messages with the ids %v", len(got), ids)
			}
			if got[0].thing != (ledger.Thing{Kind: "answer", ID: "run-1"}) || len(got) > 1 && got[1].thing.ID != "run-1/2" && got[1].thing.Kind != kindFile {
				t.Errorf("things %v", got[0].thing)
			}
			squeeze := strings.NewReplacer(" ", "", "\n", "", "*", "", "`", "", "-", "").Replace
			if all := strings.Contains(squeeze(shown), squeeze(c.in)); !all && (len(got) != 2 || got[1].thing.Kind != kindFile || !strings.Contains(shown, "in the file answer.md (run run-1)")) {
				t.Error("something is missing and nothing says so")
			}
		})
	}
}

func TestProgress(t *testing.T) {
	v := testRenderer()
	for name, tell := range progressStories {
		s := tell()
		r := v.progress(message("run `date` <please>"), &s.run)
		golden(t, "progress_"+name, r)
		golden(t, "progress_"+name+"_plain", plain(r))
		if got, want := v.progressFinal(&s.run), s.run.Finished != nil; got != want {
			t.Errorf("%s: final = %v", name, got)
		}
		stop := slices.Contains(checkMessage(r).actions, actionStop)
		if want := s.run.Finished == nil && s.run.Stop == nil; stop != want {
			t.Errorf("%s: Stop = %v", name, stop)
		}
	}
	golden(t, "progress_turn", v.progress(message("x"), nil))
	if v.progressFinal(nil) {
		t.Error("a message that waits its turn is final")
	}
}

var progressStories = map[string]func() *story{
	"fresh":   newStory,
	"waiting": func() *story { return severalCalls() },
	"mixed": func() *story {
		return severalCalls().approve("call_2", bob).started("call_2").deny("call_3", carol, "too dangerous").
			finish("call_3", ledger.ToolFinished{State: ledger.OutputDenied, Source: ledger.SourceUser, Reason: "too dangerous"})
	},
	"done":     func() *story { return severalCalls().stopAll().end(ledger.RunSucceeded, "ok", "") },
	"failed":   func() *story { return newStory().end(ledger.RunFailed, "", "the model could not be reached") },
	"stopping": func() *story { return severalCalls().stop(carol) },
	"stopped": func() *story {
		return severalCalls().stop(carol).stopAll().end(ledger.RunCancelled, "", "stopped by carol")
	},
	"unanswered": func() *story {
		s := severalCalls().resolve("call_2", ledger.Denied, ledger.SourceTimeout, "nobody answered within 2 minutes", nil)
		s.finish("call_2", ledger.ToolFinished{State: ledger.OutputDenied, Source: ledger.SourceTimeout, Reason: "Nobody answered within 2 minutes."})
		s.approve("call_3", bob).started("call_3").finish("call_3", ledger.ToolFinished{State: ledger.OutputError, Code: "EXIT_STATUS", Reason: "The command ended with exit status 1."})
		return s.end(ledger.RunSucceeded, "ok", "")
	},
	"refused": func() *story {
		s := askedShell("date").deny("call_1", bob, "not today")
		s.finish("call_1", ledger.ToolFinished{State: ledger.OutputDenied, Source: ledger.SourceUser, Reason: "not today"})
		return s.end(ledger.RunSucceeded, "ok", "")
	},
	"quorum": quorumStory,
	"used": func() *story {
		s := newStory().calls("", toolCall("call_1", "read_file", `{}`)).started("call_1").done("call_1", "text")
		return s.add("", ledger.System, &ledger.RunFinished{Status: ledger.RunSucceeded, Answer: "ok", Rounds: 3,
			Usage: ledger.Usage{InputTokens: 12000, OutputTokens: 345, Cost: &ledger.Cost{Micros: 81_234, Currency: "USD"}}})
	},
	"retrying": func() *story {
		return newStory().add("", ledger.System, &ledger.ModelFailed{Round: 1, Attempt: 1, ErrorKind: "overloaded",
			Message: "<!channel> the model is overloaded", RetryIn: 19200 * time.Millisecond})
	},
	"retried": func() *story {
		s := newStory().add("", ledger.System, &ledger.ModelFailed{Round: 1, Attempt: 1, ErrorKind: "overloaded", RetryIn: time.Second})
		return s.calls("", toolCall("call_1", "read_file", `{}`))
	},
	"restarted": func() *story { return severalCalls().stopAll().end(ledger.RunCancelled, "", "approvalbot restarted") },
}

func severalCalls() *story {
	s := newStory().calls("I look at the <file> first.", toolCall("call_1", "read_file", `{"path":"a<b>.txt"}`), toolCall("call_2", "shell", `{}`), toolCall("call_3", "shell", `{}`))
	s.add("call_1", ledger.System, &ledger.PermissionDecided{Tool: "read_file", Type: ledger.Allow, Summary: "Read a<b>.txt"})
	s.started("call_1").done("call_1", "text")
	return s.ask("call_2", shell("date")).ask("call_3", shell("rm -rf build"))
}

// stopAll resolves and finishes what is open.
func (s *story) stopAll() *story {
	for _, c := range s.run.Calls {
		if c.Approval.Open() {
			s.resolve(c.ID, ledger.Denied, ledger.SourceAbort, "the run ended", nil)
		}
		if c.Finished == nil {
			s.finish(c.ID, ledger.ToolFinished{State: ledger.OutputDenied, Source: ledger.SourceAbort, Reason: "the run ended"})
		}
	}
	return s
}

func TestProgressOfManyCalls(t *testing.T) {
	for _, n := range []int{49, 50, 51, 300} {
		s := newStory()
		for i := range n {
			id := fmt.Sprintf("call_%d", i)
			s.calls("", toolCall(id, "read_file", fmt.Sprintf(`{"path":"%s"}`, strings.Repeat("👍", 200)))).started(id).done(id, "x")
		}
		r := testRenderer().progress(message("x"), &s.run)
		c := checkMessage(r)
		if len(c.problems) > 0 || len(checkMessage(plain(r)).problems) > 0 {
			t.Errorf("%d calls: %q", n, c.problems)
		}
		if !strings.Contains(c.shown.String(), "earlier calls: ") {
			t.Errorf("%d calls: the earlier ones aren't summed up", n)
		}
	}
}

func FuzzMarkdown(f *testing.F) {
	for _, s := range []string{"# a\n- b\n1. c\n> d\n```\ne\n```", "**a *b* `c`** [d](e)", "| a |\n", "~~~\n", "*_*_*_", "\xff\u202E"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		for _, r := range answerOf(ledger.RunSucceeded, s, "") {
			if c := checkMessage(r); len(c.problems) > 0 || slices.ContainsFunc([]string{"U0ATTACK"}, func(id string) bool { return c.users[id] }) {
				t.Fatalf("%q: %q", s, c.problems)
			}
		}
	})
}

// Only what went wrong is marked as an error; a no is none.
func TestANoIsNoError(t *testing.T) {
	for source, want := range map[ledger.Source]string{
		ledger.SourceUser: "denied", ledger.SourceTimeout: "not performed", ledger.SourceAbort: "stopped, not performed",
		ledger.SourceUndeliverable: "not performed", ledger.SourcePolicy: "not allowed", ledger.SourceLoopGuard: "not asked again",
	} {
		words, status := testRenderer().finishedState(&ledger.ToolFinished{State: ledger.OutputDenied, Source: source})
		if words != want || status != slack.TaskCardStatusPending {
			t.Errorf("%s: %q, %s", source, words, status)
		}
	}
	for _, code := range []string{"EXIT_STATUS", codeUnknown, codeAborted} {
		if _, status := testRenderer().finishedState(&ledger.ToolFinished{State: ledger.OutputError, Code: code}); status != slack.TaskCardStatusError {
			t.Errorf("%s: %s", code, status)
		}
	}
}

// The time of people and the run's own are told apart; asks that wait at the same time count once.
func TestSpent(t *testing.T) {
	at := func(seconds float64) time.Time { return start.Add(time.Duration(seconds * float64(time.Second))) }
	ask := func(from, to float64) *ledger.Call {
		a := &ledger.Approval{At: at(from)}
		if to > 0 {
			a.Resolved, a.ResolvedAt = &ledger.ApprovalResolved{}, at(to)
		}
		return &ledger.Call{Approval: a}
	}
	for _, c := range []struct {
		end   float64
		calls []*ledger.Call
		want  string
	}{
		{25, nil, "Failed after 25 s"},
		{25, []*ledger.Call{ask(1, 24)}, "Failed after 2 s, waited 23 s for people"},
		{25, []*ledger.Call{{}, ask(1, 10), ask(2, 5), ask(8, 12), ask(20, 24)}, "Failed after 10 s, waited 15 s for people"},
		{25, []*ledger.Call{ask(8, 12), ask(1, 10)}, "Failed after 14 s, waited 11 s for people"},
		{25, []*ledger.Call{ask(1, 0)}, "Failed after 1 s, waited 24 s for people"},
		{2.5, []*ledger.Call{ask(1, 1.4)}, "Failed after 2.1 s"},
		{120, []*ledger.Call{ask(0, 120)}, "Failed at once, waited 2 min 0 s for people"},
	} {
		run := &ledger.Run{StartedAt: start, EndedAt: at(c.end), Calls: c.calls, Finished: &ledger.RunFinished{Status: ledger.RunFailed}}
		if got := testRenderer().progressTitle(run); got != c.want {
			t.Errorf("got %q, want %q", got, c.want)
		}
	}
}

// Words of the agent that are no remark aren't progress.
func TestTheAgentsWords(t *testing.T) {
	for words, shown := range map[string]bool{"Let me look.": true, " \n": false, strings.Repeat("word ", 100): false} {
		s := newStory().calls(words, toolCall("call_1", "shell", `{}`))
		got := checkMessage(testRenderer().progress(message("x"), &s.run)).shown.String()
		if strings.Contains(got, "The agent: “") != shown {
			t.Errorf("%.20q: %s", words, got)
		}
	}
}

// What was made visible once isn't made visible again, and a line break is a blank in one line.
func TestTheFallbackOfAnAnswerIsEscapedOnce(t *testing.T) {
	s := newStory().end(ledger.RunSucceeded, "It says \u202Eabc & more.\n\n```\none\ntwo\n```", "")
	got := testRenderer().answer(&s.run)
	if want := `It says \u{202E}abc &amp; more. one two`; len(got) != 1 || got[0].text != want {
		t.Errorf("the fallback is %q, want %q", got[0].text, want)
	}
}

// A refusal passes the redactor, as everything does.
func TestARefusalHidesSecrets(t *testing.T) {
	err := &approvals.ExpiredError{Resolution: approvals.Resolution{ApprovalResolved: ledger.ApprovalResolved{
		Source: ledger.SourceAbort, Reason: "stopped by our-own-secret-token",
	}}}
	if got := testRenderer().refusal(err); strings.Contains(got, "our-own") {
		t.Error(got)
	}
}

// However long an answer is, what is read of it for each message isn't longer than what fits, and nothing is shown of a
// secret that the end of it would be.
func TestAnswerFarTooLong(t *testing.T) {
	const key = "AKIAIOSFODNN7EXAMPLE"
	v := &renderer{redactor: redact.New()}
	for name, answer := range map[string]string{
		"one line":   strings.Repeat("word ", 2<<20),
		"lines":      strings.Repeat("word\n\n", 2<<20),
		"one word":   strings.Repeat("é", 4<<20),
		"secrets":    strings.Repeat(key+" ", 1<<19),
		"white":      "word" + strings.Repeat(" ", 10<<20) + "word",
		"private":    "word\n-----BEGIN PRIVATE KEY-----\n" + strings.Repeat("MIIabc\n", 1<<20),
		"as it fits": strings.Repeat("word ", 5_000),
	} {
		run := &ledger.Run{ID: "run_1", Finished: &ledger.RunFinished{Status: ledger.RunSucceeded, Answer: answer}}
		var all []rendering
		if n := testing.AllocsPerRun(1, func() { all = v.answer(run) }); n > 1e6 {
			t.Errorf("%s: %.0f allocations", name, n)
		}
		var text string
		for _, m := range all {
			if weight(m.blocks...) > maxMessage {
				t.Errorf("%s: a message is too long", name)
			}
			b, err := json.Marshal(m.blocks)
			if err != nil {
				t.Fatal(err)
			}
			text += string(b)
		}
		if says := strings.Contains(text, "This is the beginning."); says != (name != "as it fits") || len(all) > maxAnswerMessages {
			t.Errorf("%s: %d messages, it says that there is more: %t", name, len(all), says)
		}
		if strings.Contains(text, "AKIA") || strings.Contains(text, "MII") {
			t.Errorf("%s: a part of a secret is shown", name)
		}
	}
}

// progress is the message of a run. msg is the message that is worked off; run is
// nil while it waits its turn.
func (v *renderer) progress(msg ledger.Event, run *ledger.Run) rendering {
	return v.progressNow(msg, run, nil)
}
