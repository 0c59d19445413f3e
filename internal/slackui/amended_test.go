package slackui

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"approvalbot/internal/ledger"
)

func TestDiff(t *testing.T) {
	for name, tt := range map[string]struct{ from, to, want string }{
		"one line":      {"a\nb\nc", "a\nB\nc", "  a\n- b\n+ B\n  c"},
		"one more":      {"a\nb\nc\nd\ne", "a\nb\nc\nd\ne\nf", "  …\n  e\n+ f"},
		"far apart":     {"1\n2\n3\n4\n5\n6", "x\n2\n3\n4\n5\ny", "- 1\n+ x\n  2\n  …\n  5\n- 6\n+ y"},
		"kept between":  {"1\n2\n3", "1\nx\n3\n4", "  1\n- 2\n+ x\n  3\n+ 4"},
		"nothing":       {"", "a\nb", "+ a\n+ b"},
		"can't be seen": {"a\n\u202eb", "a\nb", "  a\n- \\u{202E}b\n+ b"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := diffOf(testRenderer(), tt.from, tt.to); got != tt.want {
				t.Errorf("got\n%s\nwant\n%s", got, tt.want)
			}
		})
	}
	if got := diffOf(testRenderer(), strings.Repeat("a\n", 500), strings.Repeat("b\n", 500)); !strings.HasSuffix(got, "more lines") || strings.Count(got, "\n") > maxChangedLines {
		t.Errorf("%s", got)
	}
}

// changedStory is a card whose arguments somebody changed, as far as its events go.
func changedStory(before, after map[string]any, more ...ledger.Event) (*ledger.Run, *ledger.Call) {
	text := func(v map[string]any) string { raw, _ := json.Marshal(v); return string(raw) }
	run := &ledger.Run{}
	events := append([]ledger.Event{
		{Body: &ledger.RunStarted{}},
		{Body: &ledger.ModelCompleted{Round: 1, ToolCalls: []ledger.ToolCall{{ID: "c1", Name: "shell", Arguments: text(before)}}}},
		{Body: &ledger.ApprovalRequested{Approval: "a1", Tool: "shell", Arguments: text(before), Quorum: 2, Approvers: []string{"channel"}, Offers: []ledger.Offer{ledger.OfferEdit}}},
		{Actor: ledger.Actor{Kind: ledger.ActorUser, ID: "U0BOB", Name: "bob"}, Body: &ledger.ApprovalAmended{
			Approval: "a1", Revision: 1, Arguments: text(after), Quorum: 2, Approvers: []string{"channel"},
		}},
	}, more...)
	for i, e := range events {
		e.Seq, e.Run, e.Call, e.Time = int64(i+1), "r1", "c1", time.Unix(1772616600, 0).UTC()
		run.Apply(e)
	}
	return run, run.Call("c1")
}

func TestChangedCard(t *testing.T) {
	secret := "xoxb-1111111111-2222222222-AbCdEfGhIjKlMnOpQrStUvWx"
	run, c := changedStory(
		map[string]any{"a": 1, "b": "x", "gone": true, "same": "s", "token": secret},
		map[string]any{"a": 2, "b": "", "new": []int{1}, "same": "s", "token": "none"})
	card := testRenderer().card(run, c, time.Time{})
	check := checkMessage(card)
	if len(check.problems) > 0 {
		t.Errorf("Slack would refuse it: %q", check.problems)
	}
	shown := check.shown.String()
	for _, want := range []string{"Changed by", "(nothing)", `""`} {
		if !strings.Contains(shown, want) {
			t.Errorf("%q isn't said: %s", want, shown)
		}
	}
	raw, _ := json.Marshal(card.blocks)
	if strings.Contains(string(raw), secret) {
		t.Error("it shows a secret")
	}
	if !strings.Contains(string(raw), `"block_id":"a1.1.0"`) {
		t.Errorf("the buttons don't say which form they are about: %s", raw)
	}
	if n := len(testRenderer().changed(c.Approval, usualRoom)); n > 12 {
		t.Errorf("%d lines about changes", n)
	}
}

// Whatever was changed into whatever: the card can be posted, and so can the form and the review.
func TestHostileChanges(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		value := rapid.OneOf(
			rapid.Map(rapid.String(), func(s string) any { return s }),
			rapid.Map(rapid.SampledFrom([]string{"<!channel> *x* `y`", "a\u202eb\n\n\n\n", strings.Repeat("\U000E0041", 3000), strings.Repeat("&", 2999), "", "\x00"}), func(s string) any { return s }),
			rapid.Map(rapid.Int(), func(n int) any { return n }), rapid.Map(rapid.Bool(), func(b bool) any { return b }),
			rapid.Map(rapid.SliceOf(rapid.String()), func(s []string) any { return s }))
		arguments := rapid.MapOfN(rapid.OneOf(rapid.String(), rapid.SampledFrom([]string{"command", "env", "quiet", "where", "timeout"})), value, 0, 8)
		run, c := changedStory(arguments.Draw(t, "before"), arguments.Draw(t, "after"))
		v := testRenderer()
		if check := checkMessage(v.card(run, c, time.Time{})); len(check.problems) > 0 {
			t.Fatalf("card: %q", check.problems)
		}
		view, _ := v.review(run, c)
		if check := checkModal(view); len(check.problems) > 0 {
			t.Fatalf("review: %q", check.problems)
		}
		schema := schemaOf(&ledger.RunStarted{Tools: json.RawMessage(shellTool)}, "shell")
		if e := v.editing(c.Approval, schema); e != nil {
			if check := checkModal(v.editForm(c.Approval, e)); len(check.problems) > 0 {
				t.Fatalf("form: %q", check.problems)
			}
		}
		for _, view := range []any{v.denyForm(c.Approval), v.confirmForm(c.Approval)} {
			raw, err := json.Marshal(view)
			if err != nil || len(raw) > 19_000 { // it may go into an acknowledgement
				t.Fatalf("%d bytes, %v", len(raw), err)
			}
		}
	})
}

// input checks a field of a form.
func (c *blockChecker) input(b map[string]any) {
	plain := func(v any, max int) {
		t, _ := v.(map[string]any)
		if t["type"] != "plain_text" || t["emoji"] != false {
			c.bad("a text of a field: %v", v)
		}
		c.str(t["text"], max)
	}
	plain(b["label"], 2000)
	if b["hint"] != nil {
		plain(b["hint"], 2000)
	}
	e, _ := b["element"].(map[string]any)
	if e["placeholder"] != nil {
		plain(e["placeholder"], 150)
	}
	initial, _ := e["initial_value"].(string)
	switch e["type"] {
	case "plain_text_input":
		if escapedRunes(initial) > 3000 {
			c.bad("a field is filled in with %d characters", escapedRunes(initial))
		}
	case "number_input":
		if initial != "" && !json.Valid([]byte(initial)) {
			c.bad("a number is %q", initial)
		}
	case "static_select":
		for _, o := range list(e["options"], 1, 100, c) {
			plain(o["text"], 75)
			c.str(o["value"], 150)
		}
	default:
		c.bad("a field of type %v", e["type"])
	}
}
