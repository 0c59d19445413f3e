package slackui

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/slack-go/slack"

	"approvalbot/internal/ledger"
)

// approveButton is the button of a card or modal, as Slack gets it.
func approveButton(t *testing.T, blocks []slack.Block) (b struct {
	Text    struct{ Text string }
	Label   string `json:"accessibility_label"`
	Confirm *struct {
		Title, Text, Confirm, Deny struct{ Type, Text string }
		Style                      string
	} `json:"confirm"`
}) {
	t.Helper()
	for _, block := range blocks {
		actions, ok := block.(*slack.ActionBlock)
		if !ok {
			continue
		}
		for _, e := range actions.Elements.ElementSet {
			if button, ok := e.(*slack.ButtonBlockElement); ok && button.ActionID == actionApprove {
				raw, err := json.Marshal(button)
				if err == nil {
					err = json.Unmarshal(raw, &b)
				}
				if err != nil {
					t.Fatal(err)
				}
				return b
			}
		}
	}
	t.Fatal("there is no Approve")
	return b
}

// A click is confirmed once more where a rule wants it, or the risk is high; the dialog says what is approved.
func TestConfirm(t *testing.T) {
	long := "printf '" + strings.Repeat("<&>", 100) + "'"
	for _, tt := range []struct {
		risk, command string
		confirm       bool
		title, label  string
	}{
		{"", "date", false, "", "Approve"}, {"low", "date", false, "", "Approve"}, {"medium", "date", false, "", "Approve"},
		{"", "date", true, "Approve this?", "Approve"}, {"high", long, false, "High risk. Approve this?", "Approve"},
		{"critical", long, true, "", "Approve…"}, // a form asks for more than a dialog could
	} {
		s := newStory().calls("", toolCall("call_1", "shell", `{}`)).ask("call_1", func(r *ledger.ApprovalRequested) {
			shell(tt.command)(r)
			r.Risk, r.Confirm = tt.risk, tt.confirm
		}).shown("call_1")
		view, _ := testRenderer().review(&s.run, s.call("call_1"))
		for _, blocks := range [][]slack.Block{s.card().blocks, plain(s.card()).blocks, view.Blocks.BlockSet} {
			b := approveButton(t, blocks)
			if (b.Confirm != nil) != (tt.title != "") {
				t.Errorf("risk %q, confirm %v: dialog %v", tt.risk, tt.confirm, b.Confirm)
			}
			if b.Text.Text != tt.label || !strings.HasPrefix(b.Label, tt.label+": Run ") || len([]rune(escape(b.Label))) > maxLabel {
				t.Errorf("risk %q: the button says %q, a screen reader %q", tt.risk, b.Text.Text, b.Label)
			}
			if b.Confirm == nil {
				continue
			}
			if b.Confirm.Title.Text != tt.title || b.Confirm.Style != "" || b.Confirm.Text.Type != "plain_text" || !strings.HasPrefix(b.Confirm.Text.Text, "Run "+tt.command[:4]) {
				t.Errorf("risk %q: %+v", tt.risk, b.Confirm)
			}
			if n := len([]rune(escape(b.Confirm.Text.Text))); n > maxConfirmChars {
				t.Errorf("the dialog has %d characters", n)
			}
		}
		if problems := checkMessage(s.card()).problems; len(problems) > 0 {
			t.Error(problems)
		}
	}
}

// The risk stands in words under the title, and in what a lock screen shows if it is high.
func TestRiskIsSaid(t *testing.T) {
	for risk, want := range map[string][2]string{
		"": {"", "Approval needed: Run date"}, "low": {"Low risk", "Approval needed: Run date"}, "medium": {"Medium risk", "Approval needed: Run date"},
		"high": {"▲ High risk", "Approval needed (high risk): Run date"}, "critical": {"▲▲ Critical risk", "Approval needed (critical risk): Run date"},
		"<odd>": {"Risk: <odd>", "Approval needed: Run date"},
	} {
		s := newStory().calls("", toolCall("call_1", "shell", `{}`)).ask("call_1", func(r *ledger.ApprovalRequested) {
			shell("date")(r)
			r.Risk = risk
		}).shown("call_1")
		r := s.card()
		if r.text != want[1] {
			t.Errorf("%q: the notification says %q", risk, r.text)
		}
		shown := checkMessage(r).shown.String()
		title, _, _ := strings.Cut(shown, "Exactly what")
		if want[0] != "" && !strings.Contains(title, want[0]) || want[0] == "" && strings.Contains(title, "risk") {
			t.Errorf("%q: above the content stands %q", risk, title)
		}
	}
	if shown := checkMessage(riskStory().card()).shown.String(); !strings.Contains(shown, "It deletes what can't be brought back. (rules: destroys, production-four-eyes)") {
		t.Errorf("the rules aren't named in %q", shown)
	}
}
