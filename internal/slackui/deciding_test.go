package slackui

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"approvalbot/internal/devslack"
	"approvalbot/internal/fields"
	"approvalbot/internal/ledger"
)

// shellTool is the tools of a run, as its start records them.
const shellTool = `[{"name":"shell","description":"","inputSchema":{"type":"object","required":["command"],"properties":{` +
	`"command":{"type":"string","description":"What to run"},"timeout":{"type":"integer"},"quiet":{"type":"boolean"},` +
	`"where":{"enum":["here","there"]},"env":{"type":"object"}}}}]`

// choose uses an element of a card, or the entry of its menu that stands for it.
func (w *world) choose(user string, m devslack.Message, action string) devslack.Receipt {
	w.t.Helper()
	if hasButton(m, action) {
		return w.click(user, m, action)
	}
	return w.click(user, m, actionMore, forge(option(action, approvalOf(m))))
}

// submit sends a form.
func (w *world) submit(user string, v devslack.View, values map[string]string) devslack.SubmitResult {
	w.t.Helper()
	r := devslack.SubmitRequest{User: w.user(user), Values: map[string]map[string]any{}}
	for field, value := range values {
		block, action, _ := strings.Cut(field, "/")
		r.Values[block] = map[string]any{action: value}
	}
	out, err := w.slack.SubmitView(v.ID, r)
	if err != nil {
		w.t.Fatal(err)
	}
	return out
}

// closed waits until somebody has no modal open.
func (w *world) closed(user string) {
	w.t.Helper()
	w.eventually(user+" has no form open", func() bool {
		all, err := w.slack.Views(w.user(user))
		return err == nil && len(all) == 0
	})
}

const reasonField = fieldReason + "/" + actionReason
const confirmField = fieldConfirm + "/" + actionConfirm

func TestDenyWithReason(t *testing.T) {
	inWorld(t, func(w *world) {
		root := w.say("alice", "@bot `rm x`")
		card := w.card(root, 0)
		if r := w.choose("bob", card, actionDenyWith); !r.Acked {
			t.Error("not acknowledged")
		}
		v := w.modal("bob", "Run rm x")
		if len(w.resolutions()) != 0 {
			t.Fatal("the form decided by being opened")
		}
		w.submit("bob", v, map[string]string{reasonField: "  use the trash & ask carol  "})
		w.closed("bob")
		if got := w.resolutions()[approvalOf(card)]; got.Type != ledger.Denied || got.Reason != "use the trash & ask carol" {
			t.Errorf("resolved as %+v", got)
		}
		w.isOverSoon(root)
		if s := string(w.cards(root)[0].Blocks); !strings.Contains(s, "use the trash \\u0026 ask carol") && !strings.Contains(s, "use the trash &amp; ask carol") && !strings.Contains(s, "use the trash & ask carol") {
			t.Errorf("the words don't stand on the card: %s", s)
		}
	})
}

// A form that doesn't open decides nothing, the person is told, and Deny alone works.
func TestAFormThatDoesntOpen(t *testing.T) {
	inWorld(t, func(w *world) {
		root := w.say("alice", "@bot `rm x`")
		card := w.card(root, 0)
		w.fault(devslack.Fault{Method: "views.open", Times: 1, Error: "expired_trigger_id"})
		w.choose("bob", card, actionDenyWith)
		w.whispered("bob", "Deny alone works at once")
		if len(w.resolutions()) != 0 {
			t.Fatal("decided")
		}
		w.click("bob", card, actionDeny)
		w.isOverSoon(root)
	})
}

// Whoever may not decide is told so instead of being shown a form.
func TestFormsAreForThoseWhoMay(t *testing.T) {
	inWorld(t, func(w *world) {
		root := w.say("alice", "@bot `rm x`")
		card := w.card(root, 0)
		w.choose("alice", card, actionEdit)
		w.whispered("alice", "somebody else has to approve it")
		if n := w.calls("views.open", 0); n != 0 {
			t.Errorf("%d forms were opened", n)
		}
		w.choose("alice", card, actionDenyWith) // whoever asked may deny
		w.submit("alice", w.modal("alice", "Run rm x"), map[string]string{reasonField: "a mistake"})
		w.isOverSoon(root)
	}, func(w *world) { w.config = func(c *Config) { w.agent.tools = shellTool } })
}

// What was decided while a form was open is said in its place.
func TestDecidedWhileAFormIsOpen(t *testing.T) {
	inWorld(t, func(w *world) {
		root := w.say("alice", "@bot `rm x`")
		card := w.card(root, 0)
		w.choose("bob", card, actionDenyWith)
		v := w.modal("bob", "Run rm x")
		w.click("carol", card, actionApprove)
		w.isOverSoon(root)
		if r := w.submit("bob", v, map[string]string{reasonField: "no"}); r.ResponseAction != "update" {
			t.Errorf("answered with %+v", r)
		}
		w.modal("bob", "Already decided")
		if len(w.agent.ran()) != 1 {
			t.Error("it didn't run")
		}
	})
}

// The timeout comes while a form is open.
func TestTimeoutWhileAFormIsOpen(t *testing.T) {
	inWorld(t, func(w *world) {
		root := w.say("alice", "@bot `rm x`")
		card := w.card(root, 0)
		w.choose("bob", card, actionEdit)
		v := w.modal("bob", "Run rm x")
		w.after(5 * time.Minute)
		w.submit("bob", v, map[string]string{"argument.0/value": "ls"})
		w.modal("bob", "This request is over")
		if len(w.agent.ran()) != 0 || len(w.events("approval_amended")) != 0 {
			t.Error("it was changed after its end")
		}
	}, func(w *world) { w.config = func(c *Config) { w.agent.tools = shellTool } })
}

func TestCriticalIsApprovedByTyping(t *testing.T) {
	inWorld(t, func(w *world) {
		root := w.say("alice", "@bot `drop prod`")
		card := w.card(root, 0)
		w.click("bob", card, actionApprove)
		v := w.modal("bob", "drop prod")
		if len(w.resolutions()) != 0 || len(w.events("approval_voted")) != 0 {
			t.Fatal("a click approved")
		}
		for _, wrong := range []string{"drop", "DROP PROD", "drop prod."} {
			if r := w.submit("bob", v, map[string]string{confirmField: wrong}); r.ResponseAction != "errors" || !strings.Contains(r.Errors[fieldConfirm], "This is not drop prod") {
				t.Errorf("%q is answered with %+v", wrong, r)
			}
		}
		if len(w.resolutions()) != 0 {
			t.Fatal("a wrong word approved")
		}
		w.submit("bob", v, map[string]string{confirmField: " drop prod "})
		w.closed("bob")
		w.eventually("it runs", func() bool { return len(w.agent.ran()) == 1 })
	}, func(w *world) { w.config = func(c *Config) { w.agent.risk = "critical" } })
}

// Approve in the review opens the form on top of it, and the right word closes both.
func TestCriticalInTheReview(t *testing.T) {
	inWorld(t, func(w *world) {
		w.agent.argument = long(20_000)
		root := w.say("alice", "@bot `x`")
		w.click("bob", w.card(root, 0), actionReview)
		v := w.modal("bob", "0123456789")
		w.press("bob", v, actionApprove)
		form := w.modal("bob", "type the tool") // nobody types 20,000 characters
		if len(w.resolutions()) != 0 {
			t.Fatal("a click approved")
		}
		w.submit("bob", form, map[string]string{confirmField: "shell"})
		w.closed("bob")
		w.eventually("it runs", func() bool { return len(w.agent.ran()) == 1 })
	}, func(w *world) {
		w.config = func(c *Config) { w.agent.risk = "critical" }
	})
}

func TestEditAndApprove(t *testing.T) {
	inWorld(t, func(w *world) {
		root := w.say("alice", "@bot `rm -rf /`")
		card := w.card(root, 0)
		w.choose("bob", card, actionEdit)
		v := w.modal("bob", "Run rm -rf /")
		if s := string(v.Blocks); !strings.Contains(s, `"initial_value":"rm -rf /"`) || !strings.Contains(s, "What to run") {
			t.Errorf("the form isn't filled in: %s", s)
		}
		if r := w.submit("bob", v, nil); r.ResponseAction != "errors" || !strings.Contains(r.Errors["argument.0"], "Nothing is changed") {
			t.Errorf("no change is answered with %+v", r)
		}
		if r := w.submit("bob", v, map[string]string{"argument.1/value": "not json"}); r.ResponseAction != "errors" || !strings.Contains(r.Errors["argument.1"], "valid JSON") {
			t.Errorf("wrong JSON is answered with %+v", r)
		}
		w.submit("bob", v, map[string]string{
			"argument.0/value": "rm -rf /tmp/x", "argument.1/value": `{"A":1.50}`, "argument.2/value": "0", "argument.3/value": "7", "argument.4/value": "1",
		})
		w.closed("bob")
		w.eventually("it ran", func() bool { return len(w.agent.ran()) == 1 })
		if got := w.agent.ran()[0]; got != "rm -rf /tmp/x" {
			t.Errorf("ran %q", got)
		}
		got := w.resolutions()[approvalOf(card)]
		const want = `{"command":"rm -rf /tmp/x","env":{"A":1.50},"quiet":true,"timeout":7,"where":"there"}`
		if got.Arguments != want || got.EditedBy == nil || got.EditedBy.ID != w.user("bob") {
			t.Errorf("resolved as %+v", got)
		}
		w.settled()
		for _, phrase := range []string{"Edited and approved by", "What was changed:", "rm -rf /tmp/x", "strike"} {
			if s := string(w.cards(root)[0].Blocks); !strings.Contains(s, phrase) {
				t.Errorf("the card doesn't say %q: %s", phrase, s)
			}
		}
	}, func(w *world) { w.config = func(c *Config) { w.agent.tools = shellTool } })
}

// With a quorum, a change voids the votes before, and what is on an older card counts for nothing.
func TestAChangeIsANewQuestion(t *testing.T) {
	inWorld(t, func(w *world) {
		root := w.say("alice", "@bot `rm x`")
		card := w.card(root, 0)
		w.click("carol", card, actionApprove)
		w.choose("bob", card, actionEdit)
		v := w.modal("bob", "Run rm x")
		w.submit("bob", v, map[string]string{"argument.0/value": "rm y"})
		w.modal("bob", "You changed and approved this")
		w.eventually("the card is the changed one", func() bool { return strings.Contains(string(w.cards(root)[0].Blocks), "rm y") })
		if len(w.resolutions()) != 0 {
			t.Fatal("two different questions made a quorum")
		}
		old := blockOf(&ledger.Approval{ApprovalRequested: &ledger.ApprovalRequested{Approval: approvalOf(card)}}, "1")
		for _, action := range []string{actionApprove, actionDeny} {
			w.click("carol", w.cards(root)[0], action, func(r *devslack.ActionRequest) {
				r.Forge = map[string]any{"actions": []any{map[string]any{"type": "button", "action_id": action, "block_id": old, "value": approvalOf(card)}}}
			})
			w.whispered("carol", "changed this meanwhile")
		}
		if len(w.resolutions()) != 0 {
			t.Fatal("a click on the old card counted")
		}
		w.click("carol", w.cards(root)[0], actionApprove)
		w.eventually("it ran", func() bool { return len(w.agent.ran()) == 1 })
		if got := w.agent.ran()[0]; got != "rm y" {
			t.Errorf("ran %q", got)
		}
	}, func(w *world) { w.settings.Quorum = 2; w.config = func(c *Config) { w.agent.tools = shellTool } })
}

// Of two who change the same, one is told.
func TestTwoEditors(t *testing.T) {
	inWorld(t, func(w *world) {
		root := w.say("alice", "@bot `rm x`")
		card := w.card(root, 0)
		w.choose("bob", card, actionEdit)
		w.choose("carol", card, actionEdit)
		first, second := w.modal("bob", "Run rm x"), w.modal("carol", "Run rm x")
		w.submit("bob", first, map[string]string{"argument.0/value": "rm y"})
		w.submit("carol", second, map[string]string{"argument.0/value": "rm z"})
		w.modal("carol", "changed this meanwhile")
		if n := len(w.events("approval_amended")); n != 1 {
			t.Errorf("%d changes", n)
		}
	}, func(w *world) { w.settings.Quorum = 2; w.config = func(c *Config) { w.agent.tools = shellTool } })
}

// A change that makes it critical is not approved by being sent: the word comes next.
func TestAChangeThatIsCritical(t *testing.T) {
	inWorld(t, func(w *world) {
		root := w.say("alice", "@bot `ls`")
		card := w.card(root, 0)
		w.choose("bob", card, actionEdit)
		v := w.modal("bob", "Run ls")
		w.agent.risk = "critical"
		w.submit("bob", v, map[string]string{"argument.0/value": "drop prod"})
		form := w.modal("bob", "type what it is about")
		if len(w.resolutions()) != 0 {
			t.Fatal("approved without the word")
		}
		w.submit("bob", form, map[string]string{confirmField: "drop prod"})
		w.eventually("it ran", func() bool { return len(w.agent.ran()) == 1 })
	}, func(w *world) { w.config = func(c *Config) { w.agent.tools = shellTool } })
}

// What can't be shown exactly in a field can't be changed there.
func TestWhatAFormCantShow(t *testing.T) {
	v := testRenderer()
	ask := func(args map[string]any) *ledger.Approval {
		raw, _ := json.Marshal(args)
		return &ledger.Approval{ApprovalRequested: &ledger.ApprovalRequested{
			Approval: "a", Tool: "shell", Arguments: string(raw), Offers: []ledger.Offer{ledger.OfferEdit},
		}}
	}
	schema := schemaOf(&ledger.RunStarted{Tools: json.RawMessage(shellTool)}, "shell")
	a := ask(map[string]any{"command": strings.Repeat("x", 3001), "timeout": 1})
	e := v.editing(a, schema)
	if e == nil || e.fixed[0] == "" || e.first() != "argument.1" {
		t.Fatalf("%+v", e)
	}
	if c := checkModal(v.editForm(a, e)); !strings.Contains(c.shown.String(), "too long to be changed here") {
		t.Errorf("it isn't said: %s", c.shown.String())
	}
	if e := v.editing(ask(map[string]any{"command": "a\u202eb", "timeout": 1}), schema); e == nil || e.fixed[0] == "" {
		t.Errorf("a command with a hidden character can be changed: %+v", e)
	}
	for name, args := range map[string]map[string]any{
		"secret": {"command": "curl -H 'Authorization: Bearer xoxb-1111111111-2222222222-AbCdEfGhIjKlMnOpQrStUvWx' https://x", "timeout": 1},
	} {
		if v.editing(ask(args), schema) != nil {
			t.Errorf("%s: there is a form", name)
		}
	}
}

// Values that look alike in a menu are no menu: what is chosen has to be what is sent. They are changed as JSON.
func TestValuesThatLookAlike(t *testing.T) {
	long := strings.Repeat("x", maxLabel)
	for enum, want := range map[string]fields.Kind{
		`["a","b",1,null]`:                  fields.Choice,
		`["1",1]`:                           fields.JSON,
		`[true,"true"]`:                     fields.JSON,
		`["a","` + long + `y"]`:             fields.JSON,
		`["` + long + `a","` + long + `b"]`: fields.JSON,
	} {
		var values []json.RawMessage
		if err := json.Unmarshal([]byte(enum), &values); err != nil {
			t.Fatal(err)
		}
		a := &ledger.Approval{ApprovalRequested: &ledger.ApprovalRequested{
			Approval: "a", Tool: "t", Arguments: `{"e":` + string(values[0]) + `,"s":"x"}`, Offers: []ledger.Offer{ledger.OfferEdit},
		}}
		schema := `{"type":"object","properties":{"e":{"enum":` + enum + `},"s":{"type":"string"}}}`
		e := testRenderer().editing(a, json.RawMessage(schema))
		if e == nil || e.fields[0].Kind != want {
			t.Fatalf("%s: %+v", enum, e)
		}
		checkModal(testRenderer().editForm(a, e))
		if value, touched, err := e.fields[0].Read(e.fields[0].Value); want == fields.JSON && (touched || err != nil || string(value) != string(values[0])) {
			t.Errorf("%s, left alone: %s, touched %v, %v", enum, value, touched, err)
		}
	}
}
