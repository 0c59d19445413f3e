package slackui

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/slack-go/slack"

	"approvalbot/internal/approvals"
	"approvalbot/internal/devslack"
	"approvalbot/internal/language"
	"approvalbot/internal/ledger"
)

// What people see usually, beside the cards of cardStories, as they read it and as Slack gets it.

// offeringAll is a card with everything in its menu.
func offeringAll(command string) *story {
	return newStory().calls("", toolCall("call_1", "shell", fmt.Sprintf(`{"command":%q}`, command))).ask("call_1", func(r *ledger.ApprovalRequested) {
		shell(command)(r)
		r.Offers = []ledger.Offer{ledger.OfferEdit, ledger.OfferGrantThread, ledger.OfferGrantAlways, ledger.OfferMoreTime, ledger.OfferAskAgain}
		r.Timeout, r.MoreTime = 10*time.Minute, 15*time.Minute
		r.Preview.RunsAs = "deployer"
	}).shown("call_1")
}

var usual = map[string]func(v *renderer) rendering{
	"card_with_everything": func(v *renderer) rendering {
		s := offeringAll("date")
		return v.card(&s.run, s.call("call_1"), s.call("call_1").Approval.Until())
	},
	"card_changed": func(v *renderer) rendering {
		s := offeringAll("rm -rf build").vote("call_1", bob, ledger.Approved, "").amend("call_1", carol, "rm -rf build/tmp")
		return v.card(&s.run, s.call("call_1"), s.call("call_1").Approval.Until())
	},
	"set": func(v *renderer) rendering {
		calls := []ledger.ToolCall{toolCall("call_1", "shell", "{}"), toolCall("call_2", "shell", "{}"), toolCall("call_3", "shell", "{}"), toolCall("call_4", "shell", "{}")}
		s := newStory().calls("I need these.", calls...)
		untils := map[string]time.Time{}
		for i, c := range calls {
			s.ask(c.ID, func(r *ledger.ApprovalRequested) {
				shell([]string{"date", "uname -a", "id", "whoami"}[i])(r)
				r.Together = true
				if i == 1 {
					r.Risk = "high"
				}
			}).shown(c.ID)
			untils[s.call(c.ID).Approval.Approval] = start.Add(time.Hour)
		}
		s.deny("call_3", bob, "not now")
		return v.carrier(&s.run, asksInOrder(&s.run), 0, untils)
	},
	"pointer": func(v *renderer) rendering {
		s := inApprovalsChannel()
		return v.carrier(&s.run, asksInOrder(&s.run), 0, map[string]time.Time{s.call("call_1").Approval.Approval: start.Add(time.Hour)})
	},
	"copy": func(v *renderer) rendering {
		s := inApprovalsChannel()
		return v.carrier(&s.run, asksInOrder(&s.run), 1, map[string]time.Time{s.call("call_1").Approval.Approval: start.Add(time.Hour)})
	},
	"nudge":        func(v *renderer) rendering { return nudged(v, 1, "") },
	"nudge_direct": func(v *renderer) rendering { return nudged(v, 2, "U0BOB") },
	"help": func(v *renderer) rendering {
		a := v.help(true)
		return rendering{text: a.Text, blocks: a.Blocks}
	},
	"notice": func(v *renderer) rendering {
		return v.notice(&pausing{Pause: approvals.Pause{Seq: 7, By: bob, At: start, Reason: "the database is being moved"}}, noticeOf(7, "C0GENERAL"))
	},
}

// inApprovalsChannel is an ask that is decided in another channel than the one it comes from.
func inApprovalsChannel() *story {
	return newStory().calls("", toolCall("call_1", "shell", `{"command":"date"}`)).ask("call_1", func(r *ledger.ApprovalRequested) {
		shell("date")(r)
		r.Place = ledger.Place{Team: "T0TEAM", Channel: "C0GENERAL", Thread: "1.1"}
		r.Elsewhere, r.Only = []ledger.Place{{Team: "T0TEAM", Channel: "C0OPS"}}, true
		r.Site = "https://local.slack.test/"
	}).shown("call_1")
}

func nudged(v *renderer, n int, user string) rendering {
	s, id := urgentStory("printf ok > proof.txt", nil)
	out, _ := v.nudge(&s.run, s.call("call_1"), nudge{approval: id, n: n, user: user}.id())
	return out
}

func TestUsualMessages(t *testing.T) {
	for name, render := range usual {
		for _, lang := range language.All {
			t.Run(name+"/"+string(lang), func(t *testing.T) {
				v := rendererIn(lang)
				r := render(v)
				raw, err := json.Marshal(r.blocks)
				if err == nil {
					err = devslack.ValidateMessage(r.text, raw)
				}
				if err != nil {
					t.Error(err)
				}
				usualGolden(t, name, lang, r.text, r.blocks)
			})
		}
	}
}

// The Home tab of an operator, while approvalbot is paused and while it isn't.
func TestUsualHome(t *testing.T) {
	for _, paused := range []bool{false, true} {
		for _, lang := range language.All {
			v := rendererIn(lang)
			p := page{operator: true, everyRun: 2, backlog: map[string]int{kindCard: 1}}
			if paused {
				p.paused = &approvals.Pause{Seq: 7, By: bob, At: start, Reason: "the database is being moved"}
			}
			s := offeringAll("date")
			p.asks = [][]slack.Block{v.homeAsk(&s.run, s.call("call_1"), "https://local.slack.test/archives/C0GENERAL/p12", paused)}
			p.runs = []homeRun{{"run_1a2b3c4d-5e6f", paragraph(linked("clean up the build", "https://local.slack.test/archives/C0GENERAL/p11"))}}
			p.grants = []approvals.Grant{{ID: "grant-1", By: carol, Used: 3, Body: ledger.GrantGiven{Summary: "shell: Run date", Uses: 10, Until: start.Add(time.Hour)}}}
			d := askedShell("rm -rf build").deny("call_1", bob, "use make clean")
			p.decided = []*slack.RichTextSection{v.decisionLine(pastAsk{&d.run, d.call("call_1")}, bob, "https://local.slack.test/archives/C0GENERAL/p10")}
			p.condition = []Condition{{"journal", func() error { return nil }}, {"model", func() error { return errors.New("it does not answer") }}}
			p.facts = []Fact{{"APPROVALBOT_APPROVERS", "channel"}, {"APPROVALBOT_MODEL", "demo"}}
			name := map[bool]string{false: "home", true: "home_paused"}[paused]
			t.Run(name+"/"+string(lang), func(t *testing.T) { usualGolden(t, name, lang, "", v.home(p)) })
		}
	}
}

// usualGolden compares what people see with testdata/NAME.LANGUAGE.golden.
func usualGolden(t *testing.T, name string, lang language.Language, fallback string, blocks []slack.Block) {
	t.Helper()
	var b bytes.Buffer
	fmt.Fprintf(&b, "%s\n\n%s\n\n-- blocks --\n", fallback, strings.TrimRight(blocksAsText(blocks), "\n"))
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(blocks); err != nil {
		t.Fatal(err)
	}
	sameAsGolden(t, filepath.Join("testdata", name+"."+string(lang)+".golden"), b.String())
}
