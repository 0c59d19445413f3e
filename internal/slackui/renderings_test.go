package slackui

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/slack-go/slack"

	"approvalbot/internal/approvals"
	"approvalbot/internal/ledger"
)

// The rows of payloads that are about more than one card: where asks stand together or elsewhere, what is said to one person,
// forms, and the pages.

func init() {
	payloads["set"] = setPayloads
	payloads["places"] = placePayloads
	payloads["nudge"] = nudgePayloads
	payloads["home"] = homePayloads
	payloads["command"] = commandPayloads
	payloads["pause"] = pausePayloads
	payloads["offer"] = offerPayloads
	payloads["deny form"] = formPayloads("deny")
	payloads["critical form"] = formPayloads("critical")
	payloads["edit form"] = formPayloads("edit")
	payloads["grant form"] = formPayloads("grant")
	payloads["ask form"] = func(v *renderer, content string) []payload {
		return []payload{
			{view: v.quoteForm(quotation{author: "U0ALICE", team: "T0TEAM", name: content, text: content}, "key")},
			{view: v.quoteForm(quotation{bot: "B0CI", name: content, text: escape(content)}, "key")}, {view: v.quoteForm(quotation{author: "U0ALICE"}, "key")},
		}
	}
	payloads["private"] = privatePayloads
	payloads["long progress"] = longProgress
	payloads["long answer"] = longAnswers
}

// sent is a rendering as its message, as it is usually sent and in plain blocks.
func sent(about string, r rendering) []payload {
	return []payload{{text: r.text, blocks: r.blocks, about: about}, {text: r.text, blocks: plain(r).blocks, about: about}}
}

// severalAsks are asks of one round in several states.
func severalAsks(content string) (*story, []*ledger.Call, map[string]time.Time) {
	var calls []ledger.ToolCall
	for i := range 5 {
		calls = append(calls, toolCall(fmt.Sprintf("call_%d", i+1), theirs+letterless, "{}"))
	}
	s := newStory().calls(content, calls...)
	untils := map[string]time.Time{}
	for i, c := range calls {
		s.ask(c.ID, func(r *ledger.ApprovalRequested) {
			raw, _ := json.Marshal(map[string]string{"1": content})
			r.Arguments, r.Cwd, r.Together, r.Reason = string(raw), content, true, content
			r.Preview = previews[[]string{"command", "diff", "request", "text", "json"}[i]](content)
			r.Confirm = i == 3
			r.Offers = []ledger.Offer{ledger.OfferEdit, ledger.OfferGrantThread, ledger.OfferGrantAlways, ledger.OfferMoreTime, ledger.OfferAskAgain}
		}).shown(c.ID)
		untils[s.call(c.ID).Approval.Approval] = start.Add(time.Hour)
	}
	return s, asksInOrder(&s.run), untils
}

func setPayloads(v *renderer, content string) (all []payload) {
	s, asks, untils := severalAsks(content)
	all = append(all, sent("", v.set(&s.run, asks, untils).rendering)...)
	s.deny("call_1", named(bob), content)
	s.approve("call_2", named(bob)).started("call_2").done("call_2", content)
	all = append(all, sent("", v.set(&s.run, asks, untils).rendering)...)
	for _, id := range []string{"call_3", "call_4", "call_5"} {
		s.resolve(id, ledger.Denied, ledger.SourceTimeout, "nobody answered within 2 minutes", nil)
	}
	return append(all, sent("", v.set(&s.run, asks, untils).rendering)...)
}

// asks that stand in several places: with buttons in one or in all, in a channel and in direct messages.
func placePayloads(v *renderer, content string) (all []payload) {
	for _, only := range []bool{false, true} {
		for _, direct := range []bool{false, true} {
			there := ledger.Place{Team: "T0TEAM", Channel: "C0OPS"}
			if direct {
				there.Channel = "U0CAROL"
			}
			s := askAbout("command", content, func(r *ledger.ApprovalRequested) {
				r.Place = ledger.Place{Team: "T0TEAM", Channel: "C0GENERAL", Thread: "1.1"}
				r.Elsewhere, r.Only = []ledger.Place{there}, only && !direct
				r.Site = "https://local.slack.test/"
			})
			c, until := s.call("call_1"), start.Add(time.Hour)
			for range 2 {
				for slot := range 2 {
					untils := map[string]time.Time{c.Approval.Approval: until}
					all = append(all, sent(theirs, v.carrier(&s.run, []*ledger.Call{c}, slot, untils))...)
				}
				all = append(all, sent(theirs, v.standing(&s.run, 0).pointer(&s.run, c, until))...)
				s.deny("call_1", named(bob), content)
			}
		}
	}
	return all
}

func nudgePayloads(v *renderer, content string) (all []payload) {
	s, id := urgentStory("1", func(r *ledger.ApprovalRequested) {
		r.Preview, r.Approvers = previews["text"](content), []string{"U0BOB", "S0CALL", content}
	})
	c, by := s.call("call_1"), named(bob)
	for range 2 {
		for _, n := range nudges(c.Approval) {
			r, final := v.nudge(&s.run, c, n.id())
			about := theirs
			if final {
				about = ""
			}
			all = append(all, sent(about, r)...)
		}
		s.add("call_1", by, &ledger.ApprovalResolved{Approval: id, Type: ledger.Denied, Source: ledger.SourceUser, Reason: content, By: &by})
	}
	return all
}

// everyone are those who can have done something, with a name that they chose.
func everyone(content string) []ledger.Actor {
	return []ledger.Actor{named(bob), {Kind: ledger.ActorOperator, ID: "1", Name: content}, {Kind: ledger.ActorToken, ID: content}}
}

// fullPage is a Home tab with everything on it.
func fullPage(v *renderer, content string, by ledger.Actor, paused bool) page {
	p := page{operator: true, cut: true, moreAsks: 2, moreRuns: 3, everyRun: 4, backlog: map[string]int{kindCard: 2}}
	if paused {
		p.paused = &approvals.Pause{Seq: 7, By: by, At: start, Reason: content}
		p.said = v.pausedSentence(*p.paused, true)
	}
	for _, tool := range []string{"command", "json"} {
		s := askAbout(tool, content)
		s.call("call_1").Approval.ApprovalRequested.Approval = "ask-" + tool
		p.asks = append(p.asks, v.homeAsk(&s.run, s.call("call_1"), "https://local.slack.test/archives/C1/p1", paused))
	}
	s := askAbout("command", content).deny("call_1", named(bob), content)
	p.decided = append(p.decided, v.decisionLine(pastAsk{&s.run, s.call("call_1")}, bob, "https://local.slack.test/archives/C1/p1"))
	s = askAbout("text", content, func(r *ledger.ApprovalRequested) { r.Quorum = 2 }).vote("call_1", named(bob), ledger.Approved, "")
	p.decided = append(p.decided, v.decisionLine(pastAsk{&s.run, s.call("call_1")}, bob, ""))
	p.runs = []homeRun{{"run-1", paragraph(linked(v.line(content, 80), "https://local.slack.test/"))}}
	p.grants = givenGrants(content, by, 3)
	p.condition = []Condition{{"1", func() error { return nil }}, {theirs, func() error { return errors.New(content) }}}
	p.facts = []Fact{{"APPROVALBOT_APPROVERS", content}, {"APPROVALBOT_MODEL", ""}}
	return p
}

func givenGrants(content string, by ledger.Actor, n int) (all []approvals.Grant) {
	for i := range n {
		all = append(all, approvals.Grant{ID: fmt.Sprint("1-", i), By: by, Used: 1, Body: ledger.GrantGiven{Summary: content, Uses: 5, Until: start.Add(time.Hour)}})
	}
	return all
}

func homePayloads(v *renderer, content string) (all []payload) {
	tab := func(p page) payload {
		return payload{view: slack.HomeTabViewRequest{Type: slack.VTHomeTab, Blocks: slack.Blocks{BlockSet: v.home(p)}}}
	}
	for i, by := range everyone(content) {
		all = append(all, tab(fullPage(v, content, by, i > 0)))
	}
	return append(all, tab(page{}))
}

func commandPayloads(v *renderer, content string) (all []payload) {
	answer := func(a commandAnswer) { all = append(all, payload{text: a.Text, blocks: a.Blocks, private: true}) }
	answer(v.help(true))
	answer(v.help(false))
	answer(v.unknownCommand(escape(content), v.help(false)))
	for _, by := range everyone(content) {
		answer(v.grants(givenGrants(content, by, 20)))
	}
	answer(v.grants(nil))
	var lines []*slack.RichTextSection
	for range 30 {
		lines = append(lines, paragraph(linked(v.line(content, maxSummaryChars), "https://local.slack.test/archives/C1/p1"), text(" · ")))
	}
	head := v.tf("%s for your approval:", v.count(len(lines), "request waits", "requests wait"))
	answer(v.listed(head, lines, false))
	answer(v.listed(head, lines, true))
	return all
}

func pausePayloads(v *renderer, content string) (all []payload) {
	for _, by := range everyone(content) {
		p := pausing{Pause: approvals.Pause{Seq: 7, By: by, At: start, Reason: content}}
		all = append(all, sent("", v.notice(&p, noticeOf(7, "C1")))...)
		all = append(all, sent("", v.held(noticeOf(7, "C1"), &p))...)
		for _, ask := range []bool{false, true} {
			all = append(all, payload{text: v.pausedSentence(p.Pause, ask)})
		}
		all = append(all, payload{text: strings.TrimSpace(v.pausedNote(&p.Pause))})
		p.resumed, p.resumedBy = start.Add(time.Hour), by
		all = append(all, sent("", v.notice(&p, noticeOf(7, "C1")))...)
	}
	return all
}

func offerPayloads(v *renderer, content string) (all []payload) {
	m := message(content)
	for _, w := range []waiter{{message: m}, {message: m, asks: true}, {message: m, asks: true, kept: true}} {
		all = append(all, sent("", v.waiting(w))...)
	}
	for _, by := range everyone(content) {
		for _, why := range []string{withdrawnUsed, withdrawnStopped, content} {
			e := ledger.Event{Time: start, Actor: by, Body: &ledger.MessageWithdrawn{Reason: why}}
			all = append(all, sent("", v.waiting(waiter{message: m, withdrawn: &e}))...)
		}
	}
	return all
}

// everyField has an argument of each kind that a form knows, and names and hints of others.
func everyField(content string) (schema, arguments json.RawMessage) {
	str, _ := json.Marshal(content)
	name, _ := json.Marshal(theirs + "2")
	schema = json.RawMessage(`{"type":"object","required":["1"],"properties":{
		"1":{"type":"string","title":` + string(str) + `,"description":` + string(str) + `},
		` + string(name) + `:{"type":"integer"},"3":{"type":"number","description":` + string(str) + `},"4":{"type":"boolean"},
		"5":{"enum":[` + string(str) + `,"2","3"]},"6":{"type":"array"},"7":{}}}`)
	arguments = json.RawMessage(`{"1":` + string(str) + `,` + string(name) + `:2,"3":2.5,"4":true,"5":"2","6":[` + string(str) + `],"8":null}`)
	return schema, arguments
}

func formPayloads(kind string) func(v *renderer, content string) []payload {
	return func(v *renderer, content string) (all []payload) {
		for _, tool := range []string{"command", "json", "none"} {
			schema, arguments := everyField(content)
			s := askAbout(tool, content, func(r *ledger.ApprovalRequested) {
				if kind == "critical" {
					r.Risk = "critical"
				}
				if kind == "edit" || kind == "grant" && tool == "json" {
					r.Arguments = string(arguments)
				}
			})
			a := s.call("call_1").Approval
			switch kind {
			case "deny":
				all = append(all, payload{view: v.denyForm(a)})
			case "critical":
				all = append(all, payload{view: v.confirmForm(a)})
			case "edit":
				if e := v.editing(a, schema); e != nil {
					all = append(all, payload{view: v.editForm(a, e)})
				}
			case "grant":
				for _, f := range []grantForm{{Scope: ledger.GrantThread}, {Scope: ledger.GrantAlways, Any: []int{0}}} {
					f.Approval = a.Approval
					if view, ok := v.grantForm(a, f); ok {
						all = append(all, payload{view: view})
					}
				}
			}
		}
		return all
	}
}

// privatePayloads are the sentences with others' words in them that one person is told, beside the refusals.
func privatePayloads(v *renderer, content string) (all []payload) {
	s := askAbout("command", content)
	a := s.call("call_1").Approval
	for _, by := range everyone(content) {
		res := approvals.Resolution{ApprovalResolved: ledger.ApprovalResolved{Type: ledger.Approved, By: &by, EditedBy: &by, Source: ledger.SourceUser}, At: start}
		refused := []error{&approvals.ConflictError{Resolution: res}, &approvals.RefusedError{Reason: content}, errors.New(content), approvals.ErrChanged, approvals.ErrTerms}
		for _, err := range refused {
			all = append(all, payload{text: v.unheard(err)}, payload{text: escape(v.notGranted(err))})
		}
		all = append(all, payload{text: v.partly(1, 7, refused)}, payload{text: v.partly(0, 7, refused)})
		said := v.deniedBefore(res)
		all = append(all, payload{view: v.lastModal(richText(said.section()))})
	}
	out := approvals.Outcome{Approvals: 1, Quorum: 3}
	out.Snapshot.Ask = *a
	for _, voted := range []bool{false, true} {
		all = append(all, payload{view: v.lastModal(richText(v.changedBy(out, voted).section()))})
	}
	return all
}

// longProgress is a run with many calls and something being written.
func longProgress(v *renderer, content string) (all []payload) {
	s := newStory()
	for round := range 12 {
		var calls []ledger.ToolCall
		for i := range 5 {
			calls = append(calls, toolCall(fmt.Sprintf("call_%d_%d", round, i), theirs+letterless, "{}"))
		}
		s.calls(content, calls...)
		for _, c := range calls {
			s.add(c.ID, ledger.System, &ledger.PermissionDecided{Tool: c.Name, Type: ledger.Allow, Source: "grant", Grant: "1", GrantBy: &bob, GrantUse: 1, GrantUses: 3, GrantUntil: start})
			s.started(c.ID).done(c.ID, content)
		}
	}
	r := v.progressNow(message(content), &s.run, &writing{said: content, chars: 12})
	all = append(all, sent("", r)...)
	s.stop(named(carol))
	all = append(all, sent("", v.progressNow(message(content), &s.run, nil))...)
	s.end(ledger.RunCancelled, "", content)
	return append(all, sent("", v.progressNow(message(content), &s.run, nil))...)
}

// longAnswers are answers of a model, with all that Markdown has.
func longAnswers(v *renderer, content string) (all []payload) {
	for _, answer := range []string{
		content, "# " + content + "\n\n- " + content + "\n1. " + content + "\n\n> " + content + "\n\n```" + content + "\n" + content + "\n```\n",
		"| 1 | 2 |\n|---|---|\n| " + content + " | " + content + " |\n", "[" + content + "](" + content + ") **" + content + "** `" + content + "`",
	} {
		for _, cut := range []bool{false, true} {
			s := newStory().calls("")
			s.add("", ledger.System, &ledger.RunFinished{Status: ledger.RunSucceeded, Answer: answer, Truncated: cut, Rounds: 1})
			for _, r := range v.answer(&s.run) {
				if r.thing.Kind != kindFile {
					all = append(all, sent("", r)...)
				}
			}
		}
	}
	return all
}
