package slackui

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/slack-go/slack"
	"pgregory.net/rapid"

	"approvalbot/internal/approvals"
	"approvalbot/internal/devslack"
	"approvalbot/internal/language"
	"approvalbot/internal/ledger"
	"approvalbot/internal/rapidtest"
)

// Everything that we send to Slack passes here what Slack checks and what we promise besides: whatever is in it, in every
// state, in every language. What a rendering of its own is has its row in payloads; a file's tests add theirs in an init.

// A payload is what one call of the Web API shows to people.
type payload struct {
	text   string        // of a message: its fallback; alone, a private sentence in mrkdwn
	blocks []slack.Block // of a message
	view   any           // a modal or a Home tab, in place of a message
	about  string        // what the fallback has to name; empty: nothing

	private bool // of a message: only one person sees it, so that its text is one for that person
}

// payloads are the renderings by name: what each makes of a content, which begins with theirs and stands wherever others
// can put text.
var payloads = map[string]func(v *renderer, content string) []payload{}

// untranslated are those whose texts aren't in the catalogue.
var untranslated = map[string]bool{}

// theirs begins every content. It is none of our words, so it shows where others' text ended up.
const theirs = "㊙7"

// letterless are the names that go around a content where there may be no Latin letters but ours.
const letterless = "工具"

func init() {
	for state := range cardStates {
		payloads["card "+state] = func(v *renderer, content string) []payload {
			var out []payload
			for _, tool := range slices.Sorted(maps.Keys(previews)) {
				out = append(out, cardPayloads(v, state, tool, content)...)
			}
			return out
		}
	}
	payloads["decision"] = func(v *renderer, content string) []payload {
		a := askAbout("command", content).call("call_1").Approval
		out := approvals.Outcome{Approvals: 1, Quorum: 2}
		out.Snapshot.Ask = *a
		var all []payload
		for _, res := range []*approvals.Resolution{nil, {ApprovalResolved: ledger.ApprovalResolved{Type: ledger.Approved}}, {ApprovalResolved: ledger.ApprovalResolved{Type: ledger.Denied}}} {
			out.Resolution = res
			all = append(all, payload{view: v.lastModal(richText(v.decision(out).section()))})
		}
		return append(all, payload{text: v.repeatedVote(out)})
	}
	payloads["refusal"] = refusals
	payloads["foreign"] = func(v *renderer, content string) []payload {
		r := v.foreign(content)
		return []payload{{text: r.text, blocks: r.blocks}}
	}
	payloads["test card"] = func(v *renderer, content string) []payload {
		c := &Client{Team: "T1", BotUser: "UBOT"}
		ok := Test{Approvers: []string{"U0ANN", "S0CALL", content}, Quorum: 2, Timeout: time.Minute, Language: v.lang}
		no := ok
		no.Hopeless = content
		return []payload{{text: "1", blocks: c.testCard(ok, start)}, {text: "1", blocks: c.testCard(no, start)}}
	}
	payloads["progress"] = func(v *renderer, content string) []payload {
		s := askAbout("command", content).deny("call_1", bob, content).end(ledger.RunCancelled, "", content)
		r := v.progress(message(content), &s.run)
		return []payload{{text: r.text, blocks: r.blocks}, {text: r.text, blocks: plain(r).blocks}}
	}
	payloads["answer"] = func(v *renderer, content string) []payload {
		s := askAbout("command", content).deny("call_1", bob, content).end(ledger.RunSucceeded, content, "")
		var out []payload
		for _, r := range v.answer(&s.run) {
			if r.thing.Kind == kindFile {
				continue // a file has no text and no blocks
			}
			out = append(out, payload{text: r.text, blocks: r.blocks})
		}
		return out
	}
}

// previews are the kinds of requests, as the tools describe them.
var previews = map[string]func(content string) ledger.Preview{
	"command": func(c string) ledger.Preview {
		return ledger.Preview{Summary: c, Target: theirs, Kind: "command", Body: c, Notes: []string{c}}
	},
	"diff": func(c string) ledger.Preview {
		return ledger.Preview{Summary: c, Target: c, Kind: "diff", Body: "+" + strings.ReplaceAll(c, "\n", "\n+")}
	},
	"request": func(c string) ledger.Preview {
		return ledger.Preview{Summary: c, Target: theirs, Kind: "request", Body: "1 " + theirs + "\n\n" + c, Notes: []string{c, c}, RunsAs: c}
	},
	"text": func(c string) ledger.Preview {
		return ledger.Preview{Summary: c, Target: c, Kind: "text", Body: c, RunsAs: c}
	},
	"json": func(c string) ledger.Preview {
		raw, _ := json.Marshal(map[string]string{"1": c})
		return ledger.Preview{Summary: c, Target: theirs, Kind: "json", Body: indented(string(raw))}
	},
	"none": func(string) ledger.Preview { return ledger.Preview{} },
}

// askAbout is a story up to the card of a call with this content wherever a model, a tool or an operator has words.
func askAbout(tool, content string, change ...func(*ledger.ApprovalRequested)) *story {
	s := newStory().calls(content, toolCall("call_1", theirs+letterless, "{}"))
	return s.ask("call_1", func(r *ledger.ApprovalRequested) {
		raw, _ := json.Marshal(map[string]string{"1": content})
		r.Arguments, r.Cwd, r.Preview = string(raw), content, previews[tool](content)
		r.Approvers = []string{"requester", "channel", "U0BOB", "S0ONCALL", content}
		r.Offers = []ledger.Offer{ledger.OfferEdit, ledger.OfferGrantThread, ledger.OfferGrantAlways, ledger.OfferMoreTime, ledger.OfferAskAgain}
		for _, c := range change {
			c(r)
		}
	}).shown("call_1")
}

// named are people whose names have no letters.
func named(a ledger.Actor) ledger.Actor {
	a.Name = "某"
	return a
}

// cardStates are what may become of an ask; the content stands in every reason and output.
var cardStates = map[string]func(tool, content string) *story{
	"pending": func(tool, c string) *story { return askAbout(tool, c) },
	"pending quorum": func(tool, c string) *story {
		return askAbout(tool, c, func(r *ledger.ApprovalRequested) { r.Quorum, r.Rule, r.Reason = 2, "rules: "+c, c })
	},
	"pending vote": func(tool, c string) *story {
		return askAbout(tool, c, func(r *ledger.ApprovalRequested) { r.Quorum, r.Timeout = 3, 10*time.Second }).vote("call_1", named(bob), ledger.Approved, c)
	},
	"pending high":     risky("high", ""),
	"pending critical": risky("critical", ""),
	"pending low":      risky("low", ""),
	"pending odd":      risky("", theirs),
	"pending confirm": func(tool, c string) *story {
		return askAbout(tool, c, func(r *ledger.ApprovalRequested) { r.Confirm = true })
	},
	"pending nobody": func(tool, c string) *story {
		return askAbout(tool, c, func(r *ledger.ApprovalRequested) { r.Dismissed, r.Approvers = c, nil })
	},
	"pending secret": func(tool, c string) *story { return askAbout(tool, c+" 1111-2222-3333-4444") },
	"pending program": func(tool, c string) *story {
		s := askAbout(tool, c)
		s.run.Started.Program, s.call("call_1").Claim = c, c
		return s
	},
	"pending edited": func(tool, c string) *story { return amended(askAbout(tool, c), tool, c) },
	"starting":       func(tool, c string) *story { return askAbout(tool, c).approve("call_1", named(bob)) },
	"running": func(tool, c string) *story {
		return askAbout(tool, c).approve("call_1", named(bob)).started("call_1")
	},
	"done": func(tool, c string) *story {
		return askAbout(tool, c).approve("call_1", named(bob)).started("call_1").done("call_1", c)
	},
	"done edited": func(tool, c string) *story {
		return amended(askAbout(tool, c), tool, c).approve("call_1", named(bob)).started("call_1").done("call_1", "")
	},
	"done by program": func(tool, c string) *story {
		s := askAbout(tool, c).approve("call_1", named(bob)).started("call_1").done("call_1", c)
		s.run.Started.Program = c
		return s
	},
	"running by program": func(tool, c string) *story {
		s := askAbout(tool, c).approve("call_1", named(bob)).started("call_1")
		s.run.Started.Program = c
		return s
	},
	"failed":      ended(ledger.ToolFinished{State: ledger.OutputError, Code: "EXIT", Elapsed: 3 * time.Hour}),
	"failed soon": ended(ledger.ToolFinished{State: ledger.OutputError, Code: "EXIT"}),
	"stopped":     ended(ledger.ToolFinished{State: ledger.OutputError, Code: codeAborted, Elapsed: time.Second}),
	"unknown":     ended(ledger.ToolFinished{State: ledger.OutputError, Code: codeUnknown}),
	"not performed": func(tool, c string) *story {
		return askAbout(tool, c).approve("call_1", named(bob)).finish("call_1", ledger.ToolFinished{State: ledger.OutputDenied, Source: ledger.SourcePolicy, Reason: c})
	},
	"denied": func(tool, c string) *story { return askAbout(tool, c).deny("call_1", named(bob), c) },
	"denied by token": func(tool, c string) *story {
		return askAbout(tool, c).deny("call_1", ledger.Actor{Kind: ledger.ActorToken, ID: c}, "")
	},
	"unanswered": func(tool, c string) *story {
		return askAbout(tool, c).resolve("call_1", ledger.Denied, ledger.SourceTimeout, "nobody answered within 2 minutes", nil)
	},
	"unanswered extended": func(tool, c string) *story {
		s := askAbout(tool, c)
		s.add("call_1", named(bob), &ledger.ApprovalExtended{Approval: s.call("call_1").Approval.Approval, N: 1, Until: start.Add(time.Hour)})
		return s.resolve("call_1", ledger.Denied, ledger.SourceTimeout, "nobody answered within 2 minutes", nil)
	},
	"stopped by person": func(tool, c string) *story {
		return askAbout(tool, c).stop(named(carol)).resolve("call_1", ledger.Denied, ledger.SourceAbort, c, nil)
	},
	"restarted": func(tool, c string) *story {
		return askAbout(tool, c).resolve("call_1", ledger.Denied, ledger.SourceAbort, "approvalbot restarted before anyone answered.", nil)
	},
	"undeliverable": func(tool, c string) *story {
		return askAbout(tool, c).resolve("call_1", ledger.Denied, ledger.SourceUndeliverable, "the channel is archived; "+c, nil)
	},
	"refused": func(tool, c string) *story {
		return askAbout(tool, c).resolve("call_1", ledger.Denied, ledger.SourcePolicy, c, nil)
	},
	"unresolved": func(tool, c string) *story {
		return askAbout(tool, c).finish("call_1", ledger.ToolFinished{State: ledger.OutputDenied, Reason: c})
	},
}

func risky(risk, odd string) func(tool, content string) *story {
	return func(tool, c string) *story {
		return askAbout(tool, c, func(r *ledger.ApprovalRequested) {
			r.Risk = risk
			if odd != "" {
				r.Risk = odd + c
			}
		})
	}
}

func ended(f ledger.ToolFinished) func(tool, content string) *story {
	return func(tool, c string) *story {
		f.Reason, f.Output = c, c
		return askAbout(tool, c).approve("call_1", named(bob)).started("call_1").finish("call_1", f)
	}
}

func amended(s *story, tool, content string) *story {
	a := s.call("call_1").Approval
	raw, _ := json.Marshal(map[string]string{"1": content + "2"})
	return s.add("call_1", named(carol), &ledger.ApprovalAmended{Approval: a.Approval, Revision: 1, Arguments: string(raw), Digest: strings.Repeat("1", 64),
		Preview: previews[tool](content + "2"), Reason: a.Reason, Rule: a.Rule, Approvers: a.Approvers, Quorum: 1})
}

// cardPayloads are a card in a state, the plain one, and the modal with all of it.
func cardPayloads(v *renderer, state, tool, content string) []payload {
	s := cardStates[state](tool, content)
	c := s.call("call_1")
	r := v.card(&s.run, c, c.Approval.Until())
	view, file := v.review(&s.run, c)
	out := []payload{{text: r.text, blocks: r.blocks, about: theirs}, {text: r.text, blocks: plain(r).blocks}, {text: r.text, blocks: bare(r).blocks}, {view: view}}
	if file != nil {
		out = append(out, payload{view: v.reviewLinked(&s.run, c, "https://files.example/1")})
	}
	return out
}

func refusals(v *renderer, content string) []payload {
	res := approvals.Resolution{ApprovalResolved: ledger.ApprovalResolved{Type: ledger.Denied, By: &ledger.Actor{Kind: ledger.ActorToken, ID: content}}, At: start}
	timeout := res
	timeout.Source, timeout.Reason = ledger.SourceTimeout, "nobody answered within 90 seconds"
	undeliverable := res
	undeliverable.Source, undeliverable.Reason = ledger.SourceUndeliverable, content
	var out []payload
	for _, err := range []error{
		&approvals.RefusedError{Reason: "You are not one of those who can approve this.", Allowed: []string{"requester", "channel", "members", "U0BOB", "S0ONCALL", content}},
		&approvals.RefusedError{Reason: content}, &approvals.ConflictError{Resolution: res}, &approvals.ExpiredError{Resolution: timeout},
		&approvals.ExpiredError{Resolution: undeliverable}, ledger.ErrNotRecorded, approvals.ErrNotFound, fmt.Errorf("%s", content),
	} {
		sentence := v.refusal(err)
		out = append(out, payload{text: sentence}, payload{view: v.lastModal(sentenceBlock(sentence))})
	}
	for _, sentence := range []string{
		v.t(notRecordedClick), v.t(notRecordedStop), v.t(misfitClick), v.t(strangeClick), v.t(unknownCard), v.t(unknownRun), v.t(endedRun),
		v.t(doubleCard), v.t(busyClick), v.t(failedClick),
	} {
		out = append(out, payload{text: sentence})
	}
	return out
}

// huge is the content that is too long for a modal, too.
const huge = "a third of a megabyte"

// contents are what others may write.
var contents = map[string]string{
	"a word":            theirs,
	"bidi":              theirs + " a\u202Eb\u2066c\u200F",
	"zero width":        theirs + "\u200B\u200D\uFEFF\u2060 x\u00ADy\U000E0041",
	"live mrkdwn":       theirs + " <!channel> <@U0BOB> <https://evil.example|Approve> *b* _i_ ~s~ &lt;!here&gt;",
	"backticks":         theirs + " `x` ``` y",
	"60 KB":             theirs + strings.Repeat("0123456789", 6000),
	"60 KB of lines":    theirs + strings.Repeat("\n0123456789", 5500),
	huge:                theirs + strings.Repeat("0123456789\n", 30_000),
	"3,000 to escape":   theirs + strings.Repeat("&<>", 1000),
	"emoji shortcodes":  theirs + " :white_check_mark: :+1: 👩‍👩‍👧 👍🏽",
	"5,000 spaces":      theirs + strings.Repeat(" ", 5000) + "; rm -rf /",
	"invalid UTF-8":     theirs + " \xff\xfe\xc3(",
	"secrets":           theirs + " password=hunter2 1111-2222-3333-4444 ghp_" + strings.Repeat("a1B2", 9),
	"controls":          theirs + "\x00\x07\x1b[31m\r\n\tx\u2028y\u0085",
	"combining":         theirs + " e\u0301\u0301\u0301\u0301\u0301\u0301",
	"mixed alphabets":   theirs + " p\u0430ypal 日本語 العربية",
	"40 line breaks":    theirs + strings.Repeat("\n", 40) + "end",
	"our own marks":     theirs + ` \u{202E} \u{20×500} ‹secret, 5 characters› {who} *x* %s %d`,
	"backslashes":       theirs + strings.Repeat(`\"`, 3000),
	"astral characters": theirs + strings.Repeat("𝔘", 2000),
}

// speaking is the content as it may stand in a language: where there may be no Latin letters but ours, it has none.
func speaking(l language.Language, content string) string {
	if l != language.Chinese {
		return content
	}
	out := []byte(nil)
	for len(content) > 0 { // bytes that are no text stay
		r, size := utf8.DecodeRuneInString(content)
		if r >= utf8.RuneSelf || !unicode.IsLetter(r) {
			out = append(out, content[:size]...)
		}
		content = content[size:]
	}
	return string(out)
}

// TestPayloads: every rendering × every language × every content, the longest where a file may be made of it. Of the cards, each state is shown with each content, in
// some tool and one of the languages, and with each tool in each language.
func TestPayloads(t *testing.T) {
	names := slices.Sorted(maps.Keys(contents))
	tools := slices.Sorted(maps.Keys(previews))
	wrong := map[string]int{} // each is told once
	for _, lang := range language.All {
		v := rendererIn(lang)
		i := 0
		for n, name := range slices.Sorted(maps.Keys(payloads)) {
			state, isCard := strings.CutPrefix(name, "card ")
			for j, content := range names {
				i++
				text := speaking(lang, contents[content])
				where := fmt.Sprintf("%s (%s, %s)", name, lang, content)
				made := []payload(nil)
				switch {
				case isCard && content == huge && state != "pending" && state != "done":
				case !isCard && content == huge && name != "answer" && name != "progress": // 60 KB are too long there, too
				case isCard && j >= 2 && (j+n+slices.Index(language.All, lang))%2 == 0: // in the other language
				case isCard && j < 2: // a short content with every tool
					made = payloads[name](v, text)
				case isCard:
					made = cardPayloads(v, state, tools[i%len(tools)], text)
				default:
					made = payloads[name](v, text)
				}
				for k, p := range made {
					for _, problem := range checkPayload(p, lang == language.Chinese && !untranslated[name]) {
						if wrong[problem]++; wrong[problem] == 1 {
							t.Errorf("%s, %d: %s", where, k, problem)
						}
					}
				}
			}
		}
	}
}

// TestRandomPayloads is the same for what nobody has thought of.
func TestRandomPayloads(t *testing.T) {
	rapidtest.Checks(t, 40)
	names := slices.Sorted(maps.Keys(payloads))
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.SampledFrom(names).Draw(t, "name")
		lang := rapid.SampledFrom(language.All).Draw(t, "language")
		content := theirs + hostile().Draw(t, "content")
		for i, p := range payloads[name](rendererIn(lang), content) {
			for _, problem := range checkPayload(p, false) {
				t.Fatalf("%s, %d: %s", name, i, problem)
			}
		}
	})
}

// ours are the words with Latin letters that are the same in every language: names, and what Slack replaces.
var ours = regexp.MustCompile(`<!date\^[^>]*>|<[@!][^>]*>|\{(?:date_short_pretty|time|time_secs)\}|\\[ux]\{[0-9A-F×]+\}|S0ONCALL|sha256:[0-9a-f]{8}|` +
	`approvalbot(?: audit show \S+| doctor)?|APPROVALBOT_[A-Z]+|answer\.md|(?:answer-)?run[-_][0-9a-z-]+(?:\.md)?|/approvals(?: [a-zA-Z0-9]+){0,2}|UTC|API|Slack|https?://\S+|U0[A-Z]+|\\ufffd|^(?:shell|null|true)$|echo test`)

var latin = regexp.MustCompile(`\p{Latin}{3,}`)

// checkPayload returns what is wrong with a payload. letterless: no Latin word of ours may be in it.
func checkPayload(p payload, letterless bool) (problems []string) {
	bad := func(format string, args ...any) { problems = append(problems, fmt.Sprintf(format, args...)) }
	w := &payloadWalk{bad: bad, letterless: letterless}
	switch {
	case p.view != nil:
		raw, err := json.Marshal(p.view)
		if err != nil {
			bad("no JSON: %v", err)
			return problems
		}
		if err := devslack.ValidateView(raw); err != nil {
			bad("%v", err)
		}
		w.walk(decoded(raw))
	default:
		checkFallback(p, bad)
		w.words(p.text)
		if p.blocks == nil {
			return problems
		}
		raw, err := json.Marshal(p.blocks)
		if err != nil {
			bad("no JSON: %v", err)
			return problems
		}
		if err := devslack.ValidateMessage(p.text, raw); err != nil {
			bad("%v", err)
		}
		if n := weight(p.blocks...); n > maxMessage {
			bad("the blocks weigh %d", n)
		}
		w.walk(decoded(raw))
	}
	if w.primary > 1 {
		bad("%d primary buttons", w.primary)
	}
	return problems
}

// checkFallback: a sentence of its own, escaped, in one line, that names what it is about. A private sentence is its text.
func checkFallback(p payload, bad func(string, ...any)) {
	alone := p.blocks == nil || p.private
	if p.text == "" || !utf8.ValidString(p.text) || strings.Contains(p.text, "\n") && !alone {
		bad("the fallback is %.100q", p.text)
	}
	if n := utf8.RuneCountInString(p.text); !alone && n > maxFallback || n > maxTextChars {
		bad("the fallback has %d characters", n)
	}
	if !inert(p.text) || !alone && live.MatchString(p.text) {
		bad("live mrkdwn in %.200q", p.text)
	}
	if !strings.Contains(p.text, p.about) {
		bad("the fallback doesn't name %q: %.200q", p.about, p.text)
	}
}

func decoded(raw []byte) any {
	var v any
	if err := json.Unmarshal(raw, &v); err != nil {
		panic(err)
	}
	return v
}

// A payloadWalk looks at every value of a payload.
type payloadWalk struct {
	bad        func(string, ...any)
	letterless bool
	primary    int
}

func (w *payloadWalk) walk(v any) {
	switch v := v.(type) {
	case []any:
		for _, item := range v {
			w.walk(item)
		}
	case map[string]any:
		w.object(v)
		for _, name := range slices.Sorted(maps.Keys(v)) {
			if s, ok := v[name].(string); ok && seen(name) {
				w.text(s, v["type"] == "mrkdwn")
			}
			w.walk(v[name])
		}
	}
}

// seen tells whether people see, or hear, what stands in a member of this name.
func seen(member string) bool {
	return slices.Contains([]string{"text", "accessibility_label", "alt_text", "title", "fallback", "format", "placeholder", "initial_value"}, member)
}

func (w *payloadWalk) object(o map[string]any) {
	switch o["type"] {
	case "plain_text":
		if o["emoji"] != false {
			w.bad("plain_text in which words become emoji: %.80v", o["text"])
		}
	case "mrkdwn", "markdown":
		s, _ := o["text"].(string)
		if strings.Contains(s, theirs) && (o["type"] == "markdown" || !inert(s)) {
			w.bad("others' text as mrkdwn: %.100q", s)
		}
		if o["type"] == "mrkdwn" && o["verbatim"] != true {
			w.bad("mrkdwn in which addresses become links: %.80q", s)
		}
	case "button":
		w.button(o)
	}
}

// live is what may be live in mrkdwn of ours: mentions and moments.
var live = regexp.MustCompile(`<@[UW][A-Z0-9]+>|<!subteam\^S[A-Z0-9]+>|` + ownToken.String())

// inert tells whether nothing else is live in mrkdwn: what others wrote in it, in a sentence for one person, is escaped.
func inert(s string) bool { return !strings.ContainsAny(unentity(live.ReplaceAllString(s, "")), "<>&") }

func (w *payloadWalk) button(o map[string]any) {
	if o["style"] == "primary" {
		w.primary++
	}
	if o["style"] == "danger" && o["confirm"] == nil {
		w.bad("a danger without a dialog: %v", o["action_id"])
	}
	label, _ := o["text"].(map[string]any)
	words, _ := label["text"].(string)
	if utf8.RuneCountInString(words) > 30 {
		w.bad("a button with %q is cut off", words)
	}
	switch o["action_id"] {
	case actionApprove, actionDeny, actionDenyWith, actionReview, actionEdit, actionAskAgain, actionRevoke:
		if s, _ := o["accessibility_label"].(string); !strings.HasPrefix(s, words+": ") && !strings.HasPrefix(s, words+"：") {
			w.bad("the button %q looks like others and says %q", words, s)
		}
	}
}

func (w *payloadWalk) text(s string, isEscaped bool) {
	stored := s
	if !isEscaped {
		stored = escape(s)
	}
	if n := utf8.RuneCountInString(stored); n > maxTextChars {
		w.bad("a text of %d characters", n)
	}
	for _, r := range s {
		if r != '\n' && r != '\t' && hidden(r) && r != 0xFE0F && r != 0x200D && r != 0x200C {
			w.bad("%U is hidden in %.80q", r, s)
			break
		}
	}
	w.words(s)
}

func (w *payloadWalk) words(s string) {
	if w.letterless {
		if word := latin.FindString(unentity(ours.ReplaceAllString(s, ""))); word != "" {
			w.bad("%q isn't translated in %.200q", word, s)
		}
	}
}
