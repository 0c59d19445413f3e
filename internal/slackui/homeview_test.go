package slackui

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/slack-go/slack"
	"pgregory.net/rapid"

	"approvalbot/internal/approvals"
	"approvalbot/internal/devslack"
	"approvalbot/internal/language"
	"approvalbot/internal/ledger"
	"approvalbot/internal/redact"
)

// much is hostile text that is also long.
func much() *rapid.Generator[string] {
	return rapid.OneOf(hostile(), rapid.SampledFrom([]string{
		strings.Repeat("<&>", 4000), strings.Repeat("\n", 3000), "", " ", strings.Repeat("漢字", 5000), "<!channel> *x* `y` <https://evil.example|Approve>",
	}))
}

// Whatever stands on it, Slack takes the page and every answer to a command, in both languages; and what is on the page has
// an id of its own.
func TestHomeFitsSlack(t *testing.T) {
	s, err := devslack.New(devslack.Options{NoRateLimits: true})
	if err != nil {
		t.Fatal(err)
	}
	pipe := devslack.NewPipe()
	go s.Serve(pipe)
	tr := &http.Transport{DialContext: pipe.DialContext}
	defer func() {
		tr.CloseIdleConnections()
		s.Close()
		pipe.Close()
	}()
	ws := s.Workspace()
	api := slack.New(ws.App.BotToken, slack.OptionAPIURL("http://slack.test/api/"), slack.OptionHTTPClient(&http.Client{Transport: tr}))
	takes := func(t *rapid.T, blocks []slack.Block) {
		_, err := api.PublishViewContext(context.Background(), slack.PublishViewContextRequest{UserID: ws.Users[0].ID,
			View: slack.HomeTabViewRequest{Type: slack.VTHomeTab, Blocks: slack.Blocks{BlockSet: blocks}}})
		if err != nil {
			raw, _ := json.Marshal(blocks)
			t.Fatalf("Slack doesn't take it: %+v\n%.3000s", err, raw)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		v := &renderer{redactor: redact.New(), lang: rapid.SampledFrom(language.All).Draw(t, "language"), team: "T1", botUser: "UBOT"}
		text := func(name string) string { return much().Draw(t, name) }
		by := rapid.SampledFrom([]ledger.Actor{
			{Kind: ledger.ActorUser, Team: "T1", ID: "UALICE", Name: "alice"}, {Kind: ledger.ActorOperator, ID: "root", Name: text("operator")},
			{Kind: ledger.ActorToken, ID: text("token")},
		}).Draw(t, "by")
		p := page{operator: rapid.Bool().Draw(t, "operator?"), cut: true, everyRun: 3, backlog: map[string]int{kindCard: 2}}
		if rapid.Bool().Draw(t, "paused") {
			p.paused = &approvals.Pause{Seq: 7, By: by, At: time.Unix(1e9, 0), Reason: text("reason")}
		}
		if rapid.Bool().Draw(t, "said") {
			p.said = v.pausedSentence(approvals.Pause{By: by, Reason: text("why")}, true)
		}
		for i := range rapid.IntRange(0, homeAsks).Draw(t, "asks") {
			a := &ledger.ApprovalRequested{
				Approval: fmt.Sprintf("approval-%d", i), Tool: text("tool"), Arguments: `{"command":"ls"}`, Digest: strings.Repeat("ab", 32),
				Preview: ledger.Preview{Summary: text("summary"), Kind: "command", Body: text("body"), Notes: []string{text("note")}},
				Reason:  text("why it asks"), Approvers: []string{"UBOB", "channel"}, Quorum: 2, Cwd: text("cwd"),
				Risk: rapid.SampledFrom([]string{"", "low", "critical"}).Draw(t, "risk"), Place: ledger.Place{Channel: "C1"},
			}
			run := &ledger.Run{ID: "run_1", Started: &ledger.RunStarted{Place: a.Place}, StartedBy: by}
			call := &ledger.Call{ToolCall: ledger.ToolCall{ID: "c"}, Approval: &ledger.Approval{ApprovalRequested: a, Original: a, Seq: 9,
				Shown: []ledger.ApprovalShown{{Until: time.Unix(2e9, 0)}}}}
			p.asks = append(p.asks, v.homeAsk(run, call, "https://x.slack.com/archives/C1/p1?thread_ts=1&cid=C1", p.paused != nil))
		}
		for i := range rapid.IntRange(0, homeRuns).Draw(t, "runs") {
			p.runs = append(p.runs, homeRun{fmt.Sprintf("run_%d", i), paragraph(linked(short(text("asked"), 80)+"x", "https://x.slack.com/"))})
		}
		grants := rapid.IntRange(0, 40).Draw(t, "grants")
		arguments := map[string]json.RawMessage{}
		for i := range rapid.IntRange(0, 9).Draw(t, "arguments") {
			arguments[text("argument")+fmt.Sprint(i)] = json.RawMessage(text("value"))
		}
		for i := range grants {
			p.grants = append(p.grants, approvals.Grant{ID: fmt.Sprint(i), By: by, Used: 1, Body: ledger.GrantGiven{Summary: text("grant") + "x", Tool: text("tool"), Arguments: arguments, Uses: 5, Until: time.Unix(2e9, 0)}})
		}
		p.condition = []Condition{{"journal", func() error { return nil }}, {"slack", func() error { return errors.New(text("trouble")) }}}
		p.facts = []Fact{{"APPROVALBOT_APPROVERS", text("value")}}
		blocks := v.home(p)
		if len(blocks) > maxViewBlocks || weight(blocks...) > maxView {
			t.Fatalf("%d blocks of %d characters", len(blocks), weight(blocks...))
		}
		unique(t, blocks)
		takes(t, blocks)
		notice := v.notice(&pausing{Pause: approvals.Pause{Seq: 1, By: by, At: time.Unix(1e9, 0), Reason: text("reason")}}, noticeOf(1, "C1"))
		takes(t, notice.blocks)
		if !fits(notice.blocks) || notice.text == "" {
			t.Error("a notice that Slack wouldn't take")
		}
		var lines []*slack.RichTextSection
		for _, g := range p.grants {
			lines = append(lines, v.grantLine(g))
		}
		if a := v.listed("Some:", lines, true); !fits(a.Blocks) {
			t.Error("a list that Slack wouldn't take")
		} else {
			takes(t, a.Blocks)
		}
	})
}

// unique: no two elements and no two blocks of a page have the same name.
func unique(t *rapid.T, blocks []slack.Block) {
	seen := map[string]bool{}
	for _, b := range blocks {
		a, ok := b.(*slack.ActionBlock)
		if !ok {
			continue
		}
		if a.BlockID == "" || seen[a.BlockID] {
			t.Errorf("the block id %q is there twice", a.BlockID)
		}
		seen[a.BlockID] = true
	}
}
