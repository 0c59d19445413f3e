package slackui

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"approvalbot/internal/approvals"
	"approvalbot/internal/devslack"
	"approvalbot/internal/ledger"
)

// grantable makes the scripted agent ask about a tool with arguments of which some can be loosened.
func grantable(w *world) {
	list, err := approvals.ParseApprovers([]string{"channel"})
	if err != nil {
		w.t.Fatal(err)
	}
	w.settings.Grantors, w.settings.Grants, w.settings.Timeout = list, ledger.GrantAlways, time.Hour
}

func aboutFile(q *approvals.Request) {
	q.Tool, q.Grantable, q.PolicyHash = "write_file", true, "policy"
	q.Arguments = `{"content":"hello","path":"a.txt"}`
	q.Preview = ledger.Preview{Summary: "Write a.txt", Target: "a.txt", Kind: "diff", Body: "+hello"}
}

// pick is a click on something that isn't a button of the card in this test: an entry of its menu.
func (w *world) pick(user string, card devslack.Message, action string) devslack.Receipt {
	w.t.Helper()
	return w.click(user, card, actionDeny, claim(map[string]any{"actions": []any{map[string]any{
		"type": "button", "action_id": action, "block_id": approvalOf(card) + ".0", "value": approvalOf(card),
	}}}))
}

func (w *world) send(user string, v devslack.View, values map[string]map[string]any) devslack.SubmitResult {
	w.t.Helper()
	r, err := w.slack.SubmitView(v.ID, devslack.SubmitRequest{User: w.user(user), Values: values})
	if err != nil {
		w.t.Fatal(err)
	}
	return r
}

func terms(until, uses string, ticks ...string) map[string]map[string]any {
	t := map[string]map[string]any{blockGrantTime: {actionGrantTime: until}, blockGrantUses: {actionGrantUses: uses}}
	if ticks != nil {
		t[blockGrantAny+"0"] = map[string]any{actionGrantAny: ticks}
	}
	return t
}

func TestAGrantIsGivenWithAnApproval(t *testing.T) {
	inWorld(t, func(w *world) {
		w.agent.shape = aboutFile
		root := w.say("alice", "@bot `x`")
		card := w.card(root, 0)
		w.pick("bob", card, actionGrant)
		v := w.modal("bob", "start ")
		for _, want := range []string{"is exactly ", "There is no other argument", "Only in this conversation", "Write a.txt"} {
			if !strings.Contains(string(v.Blocks), want) {
				t.Errorf("the form doesn't say %q", want)
			}
		}
		if r, err := w.slack.ViewAction(v.ID, devslack.ActionRequest{User: w.user("bob"), ActionID: actionGrantAny, BlockID: blockGrantAny + "0", Value: "0"}); err != nil || !r.Acked {
			t.Fatal(err, r)
		}
		v = w.modal("bob", ", or missing")
		if r := w.send("bob", v, terms("4h", "3")); !r.Acked || len(r.Errors) > 0 {
			t.Fatalf("%+v", r)
		}
		w.eventually("it ran", func() bool { return len(w.agent.ran()) == 1 })
		given := w.events("grant_given")
		if len(given) != 1 {
			t.Fatalf("%d grants", len(given))
		}
		b := given[0].Body.(*ledger.GrantGiven)
		if b.Uses != 3 || len(b.Any) != 1 || b.Any[0] != "content" || string(b.Arguments["path"]) != `"a.txt"` || len(b.Arguments) != 1 {
			t.Errorf("%+v", b)
		}
		if got := time.Until(b.Until); got > 4*time.Hour || got < 4*time.Hour-time.Minute {
			t.Errorf("until in %s", got)
		}
		want := "write_file: content may be anything, or missing; path is exactly \"a.txt\"; There is no other argument; Nobody but @" + w.user("alice") + " asked for it; Only in this conversation"
		if b.Summary != want {
			t.Errorf("the summary is %q, not %q", b.Summary, want)
		}
		w.settled()
		if last := w.card(root, 0); !strings.Contains(string(last.Blocks), "Also allowed") || !strings.Contains(string(last.Blocks), "3 times") {
			t.Errorf("the card doesn't say what was allowed: %s", last.Blocks)
		}
	}, grantable)
}

// A list says of a grant what it allows, whole and first: a value that tells it from another isn't cut off.
func TestAGrantInAList(t *testing.T) {
	v := testRenderer()
	long := strings.Repeat("x", 90)
	g := approvals.Grant{By: bob, Used: 1, Body: ledger.GrantGiven{
		Scope: ledger.GrantThread, Tool: "write_file", Place: ledger.Place{Channel: "C0GENERAL"}, Uses: 3, Until: time.Unix(2e9, 0),
		Arguments: map[string]json.RawMessage{"path": json.RawMessage(`"` + long + `/b.txt"`)}, Any: []string{"content"},
		Requesters: []ledger.Person{alice.Person()}, Summary: "write_file: Write a.txt (3 bytes); and so on",
	}}
	raw := jsonOf(v.grantLine(g))
	at := 0
	for _, want := range []string{"write_file", "path", long + `/b.txt`, "content", "anything", "for ", alice.ID, "only in its conversation in ", "C0GENERAL", "until ", "1 of 3 times", bob.ID} {
		i := strings.Index(raw[at:], want)
		if i < 0 {
			t.Fatalf("%q is missing, or not in its place, in %s", want, raw)
		}
		at += i
	}
	if strings.Contains(raw, "3 bytes") {
		t.Errorf("it says what isn't granted: %s", raw)
	}
	g.Body.Scope = ledger.GrantAlways
	if raw := jsonOf(v.grantLine(g)); !strings.Contains(raw, `"every"`) || strings.Contains(raw, "C0GENERAL") {
		t.Errorf("a grant for everywhere: %s", raw)
	}
}

// A form counts only for the ticks that its words are about.
func TestTicksThatTheWordsAreNotAbout(t *testing.T) {
	inWorld(t, func(w *world) {
		w.agent.shape = aboutFile
		root := w.say("alice", "@bot `x`")
		card := w.card(root, 0)
		w.pick("bob", card, actionGrant)
		v := w.modal("bob", "is exactly ")
		r := w.send("bob", v, terms("1h", "3", "0", "1"))
		if r.ResponseAction != "errors" || len(w.events("grant_given")) != 0 || len(w.resolutions()) != 0 {
			t.Fatalf("%+v", r)
		}
		v = w.modal("bob", ", or missing")
		if r := w.send("bob", v, nil); len(r.Errors) > 0 || len(w.events("grant_given")) != 1 {
			t.Errorf("%+v", r)
		}
	}, grantable)
}

func TestWhatAFormRefuses(t *testing.T) {
	inWorld(t, func(w *world) {
		w.agent.shape = aboutFile
		root := w.say("alice", "@bot `x`")
		card := w.card(root, 0)
		w.pick("alice", card, actionGrant) // asked for it
		w.whispered("alice", "somebody else has to approve it")
		w.pick("bob", card, actionGrant)
		v := w.modal("bob", "is exactly ")
		for _, uses := range []string{"0", "1001", "-1", "1.5", "ten"} {
			if r := w.send("bob", v, terms("1h", uses)); r.Errors[blockGrantUses] == "" {
				t.Errorf("%s uses: %+v", uses, r)
			}
		}
		w.click("bob", card, actionApprove)
		w.eventually("it is decided", func() bool { return len(w.resolutions()) == 1 })
		r := w.send("bob", v, terms("1h", "3"))
		if !strings.Contains(r.Errors[blockGrantUses], "nothing was granted") || len(w.events("grant_given")) != 0 {
			t.Errorf("%+v", r)
		}
	}, grantable)
}

func TestAFormWhileTheJournalCantBeWritten(t *testing.T) {
	inWorld(t, func(w *world) {
		w.agent.shape = aboutFile
		root := w.say("alice", "@bot `x`")
		w.pick("bob", w.card(root, 0), actionGrant)
		v := w.modal("bob", "is exactly ")
		if err := w.journal.Close(); err != nil {
			t.Fatal(err)
		}
		if r := w.send("bob", v, terms("1h", "3")); len(r.Errors) == 0 {
			t.Errorf("%+v", r)
		}
	}, grantable)
}

// hostileNames are names that a server of tools may give its arguments.
var hostileNames = []string{
	"<!channel>", "*bold*", "a\u202Eb", strings.Repeat("long", 100), "", " ", "any0", "\u200b", "&amp;", "`code`", "{people}", "emoji :tada:",
}

func TestHostileArgumentsInAForm(t *testing.T) {
	args := map[string]string{}
	for _, n := range hostileNames {
		args[n] = n
	}
	raw, err := json.Marshal(args)
	if err != nil {
		t.Fatal(err)
	}
	inWorld(t, func(w *world) {
		w.agent.shape = func(q *approvals.Request) {
			aboutFile(q)
			q.Arguments, q.Preview = string(raw), ledger.Preview{Summary: "<!here> *x*", Kind: "json", Body: string(raw)}
		}
		root := w.say("alice", "@bot `x`")
		w.pick("bob", w.card(root, 0), actionGrantAll)
		v := w.modal("bob", "conversation") // Slack took it
		if strings.Contains(string(v.Blocks), "\u202E") {
			t.Error("something can't be seen")
		}
		all := []string{"0", "1", "2", "3", "4", "5", "6", "7", "8", "9"}
		w.send("bob", v, terms("30d", "1000", all...))
		if r := w.send("bob", w.modal("bob", ", or missing"), nil); len(r.Errors) > 0 || len(w.events("grant_given")) != 1 {
			t.Errorf("%+v", r)
		}
	}, grantable)
}

// Nobody loosens a command.
func TestAFormForACommand(t *testing.T) {
	inWorld(t, func(w *world) {
		w.agent.shape = func(q *approvals.Request) { q.Grantable, q.Exact, q.PolicyHash = true, true, "policy" }
		root := w.say("alice", "@bot `ls -l`")
		w.pick("bob", w.card(root, 0), actionGrant)
		v := w.modal("bob", "Exactly this call")
		if strings.Contains(string(v.Blocks), `"checkboxes"`) {
			t.Error("it has boxes")
		}
		w.send("bob", v, terms("1h", "3"))
		if given := w.events("grant_given"); len(given) != 1 || len(given[0].Body.(*ledger.GrantGiven).Any) != 0 {
			t.Errorf("%+v", given)
		}
	}, grantable)
}

func FuzzReadGrantForm(f *testing.F) {
	f.Add(grantForm{Approval: "a", Scope: ledger.GrantThread, Any: []int{0, 3}}.String())
	f.Add(`{"a":"x","s":"always","any":[-1,999999]}`)
	f.Add(`{}`)
	ask := cardStories["pending_json"]
	f.Fuzz(func(t *testing.T, subject string) {
		form, ok := readGrantForm(subject)
		if !ok || ask == nil {
			return
		}
		s := ask()
		anyones.grantForm(s.call("call_1").Approval, form) // whatever stands there, it doesn't end the process
	})
}
