package main

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"approvalbot/internal/devslack"
	"approvalbot/internal/ledger"
	"approvalbot/internal/ledger/ledgertest"
)

// Denials with words, words for what is critical, and changed arguments, with the whole program.

// choose uses a button of a card, or the entry of its menu that stands for it.
func (w *world) choose(user string, c shown, action string) {
	w.t.Helper()
	r := devslack.ActionRequest{User: w.user(user), Channel: w.general(), TS: c.ts, ActionID: action}
	if c.buttons[action] == "" {
		r.ActionID, r.Value = "more", action+"."+c.buttons["deny"]
	}
	if _, err := w.slack.Click(context.Background(), r); err != nil {
		w.t.Fatalf("%s chooses %s: %v", user, action, err)
	}
	w.pass(time.Second)
}

// form is what somebody has open, or a failure.
func (w *world) form(user string) devslack.View {
	w.t.Helper()
	views, err := w.slack.Views(w.user(user))
	if err != nil || len(views) == 0 {
		w.t.Fatalf("%s has no form open (%v): %s\n%s", user, err, w.privately("", user), w.log.String())
	}
	return views[0]
}

// send fills in a form and sends it off.
func (w *world) send(user string, v devslack.View, values map[string]string) devslack.SubmitResult {
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
	w.pass(5 * time.Second)
	return out
}

// edit changes the command of a card's request.
func (w *world) edit(user string, c shown, command string) devslack.SubmitResult {
	w.t.Helper()
	w.choose(user, c, "edit")
	return w.send(user, w.form(user), map[string]string{"argument.0/value": command})
}

// approveTyping approves what is critical.
func (w *world) approveTyping(user string, c shown, word string) {
	w.t.Helper()
	w.click(user, c, "approve")
	w.send(user, w.form(user), map[string]string{"confirm/confirm": word})
}

func (w *world) content(file string) string {
	raw, _ := os.ReadFile(filepath.Join(w.dir, "workspace", file))
	return string(raw)
}

func TestAReasonReachesTheModel(t *testing.T) {
	inWorld(t, nil, func(w *world) {
		thread := w.ask("alice", proof)
		w.choose("bob", w.card(thread), "deny_reason")
		w.send("bob", w.form("bob"), map[string]string{"reason/reason": "Write it to tmp instead."})
		if w.exists("proof.txt") {
			t.Error("it ran")
		}
		mustSay(t, w.card(thread).text, "enied by", w.user("bob"), "Write it to tmp instead")
		mustSay(t, w.lastRun().Calls[0].Finished.Output, "denied this call: Write it to tmp instead.")
		w.deniedOnce("user")
	})
}

// What runs are exactly the bytes that a person made of it, and everybody is told: the card, the model, the journal.
func TestEditAndApprove(t *testing.T) {
	inWorld(t, nil, func(w *world) {
		thread := w.ask("alice", proof)
		w.edit("bob", w.card(thread), "printf changed > other.txt")
		if w.exists("proof.txt") || w.content("other.txt") != "changed" {
			t.Fatalf("what ran isn't what was approved: %s", w.log.String())
		}
		run := w.lastRun()
		c := run.Calls[0]
		const want = `{"command":"printf changed > other.txt"}`
		if r := c.Approval.Resolved; r.Arguments != want || r.EditedBy == nil || r.EditedBy.ID != w.user("bob") || c.Approval.Arguments != want {
			t.Errorf("resolved as %+v", r)
		}
		if d := w.startedDigest(run.ID); d != c.Approval.Resolved.Digest {
			t.Errorf("started %s, approved %s", d, c.Approval.Resolved.Digest)
		}
		first, _, _ := strings.Cut(c.Finished.Output, "\n")
		mustSay(t, first, "changed the arguments of this call before it was approved", want)
		mustSay(t, w.card(thread).text, "Run printf changed", "Edited and approved by", "What was changed:", w.user("bob"), "printf ok > proof.txt")
		mustSay(t, w.audit(run.ID), "changed", want)
	})
}

// startedDigest is of what tool_started says, of the run's first call.
func (w *world) startedDigest(run string) string {
	w.t.Helper()
	j, err := ledger.OpenReader(context.Background(), w.settings.journalDir())
	if err != nil {
		w.t.Fatal(err)
	}
	defer j.Close()
	for e, err := range j.Read(context.Background(), 0, ledger.Filter{Run: run, Kinds: []string{"tool_started"}}) {
		if err == nil {
			return e.Body.(*ledger.ToolStarted).Digest
		}
	}
	return ""
}

// With two to approve: a change voids the vote before it; the changed call runs when two have approved it.
func TestAnEditVoidsVotes(t *testing.T) {
	inWorld(t, func(s *Settings) { s.Quorum = 2; s.Approvers = []string{"channel"} }, func(w *world) {
		thread := w.ask("alice", proof)
		w.click("bob", w.card(thread), "approve")
		w.edit("carol", w.card(thread), "printf changed > other.txt")
		if w.exists("proof.txt") || w.exists("other.txt") {
			t.Fatal("it ran with one approval")
		}
		mustSay(t, w.card(thread).text, "Changed by", w.user("carol"))
		w.click("bob", w.card(thread), "approve")
		if w.exists("proof.txt") || w.content("other.txt") != "changed" {
			t.Error("what ran isn't what was approved")
		}
		a := w.lastRun().Calls[0].Approval
		if len(a.Void) != 1 || len(a.Votes) != 2 {
			t.Errorf("%d void votes, %d that count", len(a.Void), len(a.Votes))
		}
	})
}

const editRules = `
rules:
  - {name: forbidden, tool: shell, when: 'args.command.contains("forbidden")', effect: deny, reason: Not here.}
  - name: four-eyes
    tool: shell
    when: args.command.contains("prod")
    effect: ask
    quorum: 2
  - name: careful
    tool: shell
    when: args.command.contains("drop")
    effect: ask
    risk: critical
`

// The policy judges the changed call as any other: what it forbids can't be made of it, and what it is strict about takes
// what that takes.
func TestThePolicyJudgesAnEdit(t *testing.T) {
	inChangedWorld(t, func(w *world) {
		w.settings.PolicyFile = policyFile(t, editRules)
		w.settings.Approvers = []string{"channel"}
	}, func(w *world) {
		thread := w.ask("alice", proof)
		card := w.card(thread)
		w.choose("bob", card, "edit")
		v := w.form("bob")
		r := w.send("bob", v, map[string]string{"argument.0/value": "printf 1 > forbidden.txt"})
		if r.ResponseAction != "errors" || !strings.Contains(r.Errors["argument.0"], "The policy forbids the changed call: Not here.") {
			t.Errorf("answered with %+v", r)
		}
		r = w.send("bob", v, map[string]string{"argument.0/value": "printf 1 > prod.txt"})
		if r.ResponseAction != "update" || w.exists("prod.txt") {
			t.Errorf("one person approved what takes two: %+v", r)
		}
		w.click("carol", w.card(thread), "approve")
		if w.content("prod.txt") != "1" || w.exists("proof.txt") {
			t.Error("two approved, and it didn't run")
		}
	})
}

// What is critical takes its name, in Slack and over HTTP.
func TestCriticalTakesItsName(t *testing.T) {
	inChangedWorld(t, func(w *world) {
		w.settings.PolicyFile = policyFile(t, editRules)
	}, func(w *world) {
		thread := w.ask("alice", "run `printf drop > drop.txt`")
		w.click("bob", w.card(thread), "approve")
		if w.exists("drop.txt") {
			t.Fatal("a click was enough")
		}
		if r := w.send("bob", w.form("bob"), map[string]string{"confirm/confirm": "no"}); r.ResponseAction != "errors" {
			t.Errorf("answered with %+v", r)
		}
		w.send("bob", w.form("bob"), map[string]string{"confirm/confirm": "printf"})
		if !w.exists("drop.txt") {
			t.Error("it didn't run")
		}

		w.ask("alice", "run `printf drop > http.txt`")
		p := w.client(localToken)
		run := w.lastRun()
		path := "/api/agent/approvals/" + run.ID + "/" + run.Calls[0].ID
		for _, body := range []string{`{"decision":"approve"}`, `{"decision":"approve","confirm":"drop"}`} {
			a := p.do("POST", path, body).must(t, 400, "INVALID_REQUEST")
			mustSay(t, a.raw, `send what it is about here, which is \"printf\"`, "nothing was decided")
		}
		if w.exists("http.txt") {
			t.Fatal("it ran without its name")
		}
		p.do("POST", path, `{"decision":"approve","confirm":"printf"}`).must(t, 200, "")
		w.pass(time.Second)
		if !w.exists("http.txt") {
			t.Error("it didn't run")
		}
	})
}

// Of two who change the same, one is told.
func TestTwoEditors(t *testing.T) {
	inWorld(t, func(s *Settings) { s.Quorum = 2; s.Approvers = []string{"channel"} }, func(w *world) {
		thread := w.ask("alice", proof)
		w.choose("bob", w.card(thread), "edit")
		w.choose("carol", w.card(thread), "edit")
		bob, carol := w.form("bob"), w.form("carol")
		w.send("bob", bob, map[string]string{"argument.0/value": "printf bob > who.txt"})
		w.send("carol", carol, map[string]string{"argument.0/value": "printf carol > who.txt"})
		mustSay(t, string(w.form("carol").Blocks), "changed this meanwhile")
		run := w.lastRun()
		if n := run.Calls[0].Approval.Revision(); n != 1 {
			t.Errorf("%d changes", n)
		}
		w.click("carol", w.card(thread), "approve")
		if w.content("who.txt") != "bob" {
			t.Errorf("%q", w.content("who.txt"))
		}
	})
}

// Whoever approves a changed request over HTTP has to name what they have seen.
func TestAChangedRequestOverHTTP(t *testing.T) {
	inChangedWorld(t, func(w *world) {
		w.settings.PolicyFile = policyFile(t, editRules)
	}, func(w *world) {
		thread := w.ask("alice", proof)
		w.edit("bob", w.card(thread), "printf drop > changed.txt") // it takes a word now, so it stays open
		mustSay(t, string(w.form("bob").Blocks), "type what it is about")
		run := w.lastRun()
		p := w.client(localToken)
		path := "/api/agent/approvals/" + run.ID + "/" + run.Calls[0].ID
		a0 := p.do("POST", path, `{"decision":"approve","revision":2,"confirm":"printf"}`).must(t, 409, "CHANGED")
		mustSay(t, a0.raw, "bob has changed the arguments")
		pending := p.do("GET", "/api/agent/approvals", "")
		mustSay(t, pending.raw, `"revision":1`, "printf drop", `"originalArgumentsJson":"{\"command\":\"printf ok`)
		a := p.do("POST", path, `{"decision":"approve","confirm":"printf"}`).must(t, 409, "CHANGED")
		mustSay(t, a.raw, `send \"revision\":1`)
		p.do("POST", path, `{"decision":"approve","revision":1}`).must(t, 400, "INVALID_REQUEST")
		if w.exists("changed.txt") {
			t.Fatal("it ran")
		}
		a = p.do("POST", path, `{"decision":"approve","revision":1,"confirm":"printf"}`).must(t, 200, "")
		mustSay(t, a.raw, `"editedBy"`)
		w.pass(time.Second)
		if !w.exists("changed.txt") || w.exists("proof.txt") {
			t.Error("what ran isn't what was approved")
		}
	})
}

// One changes it in the moment in which another approves it as it was: one of the two happens, wholly.
func TestEditAgainstApprove(t *testing.T) {
	inWorld(t, nil, func(w *world) {
		thread := w.ask("alice", proof)
		card := w.card(thread)
		w.choose("bob", card, "edit")
		v := w.form("bob")
		clicked := make(chan error, 1)
		go func() {
			_, err := w.slack.Click(context.Background(), devslack.ActionRequest{User: w.user("carol"), Channel: w.general(), TS: card.ts, ActionID: "approve"})
			clicked <- err
		}()
		w.send("bob", v, map[string]string{"argument.0/value": "printf changed > other.txt"})
		if err := <-clicked; err != nil {
			t.Fatal(err)
		}
		w.pass(5 * time.Second)
		if w.exists("proof.txt") == w.exists("other.txt") {
			t.Errorf("as it was: %v, changed: %v", w.exists("proof.txt"), w.exists("other.txt"))
		}
		if edited := w.lastRun().Calls[0].Approval.Resolved.EditedBy != nil; edited != w.exists("other.txt") {
			t.Error("what ran isn't what was recorded")
		}
	})
}

// The time is over while a form is open: no, and the form says so.
func TestTimeoutWhileEditing(t *testing.T) {
	inWorld(t, func(s *Settings) { s.Timeout = time.Minute }, func(w *world) {
		thread := w.ask("alice", proof)
		w.choose("bob", w.card(thread), "edit")
		v := w.form("bob")
		w.pass(2 * time.Minute)
		w.send("bob", v, map[string]string{"argument.0/value": "printf changed > other.txt"})
		mustSay(t, string(w.form("bob").Blocks), "This request is over")
		if w.exists("other.txt") || w.exists("proof.txt") {
			t.Error("it ran")
		}
		w.deniedOnce("timeout")
	})
}

// The journal can't be written: nothing is changed, the form says so and can be sent again.
func TestAnEditThatCantBeRecorded(t *testing.T) {
	inWorld(t, nil, func(w *world) {
		thread := w.ask("alice", proof)
		w.choose("bob", w.card(thread), "edit")
		v := w.form("bob")
		release := ledgertest.Lock(t, w.settings.journalDir())
		r := w.send("bob", v, map[string]string{"argument.0/value": "printf changed > other.txt"})
		if w.exists("other.txt") || w.card(thread).buttons["approve"] == "" {
			t.Error("it ran, or the buttons went")
		}
		mustSay(t, r.Errors["argument.0"]+w.privately(thread, "bob"), "record")
		release()
		w.pass(5 * time.Second)
		w.edit("bob", w.card(thread), "printf changed > other.txt")
		if w.content("other.txt") != "changed" {
			t.Error("it doesn't work after the journal can be written again")
		}
	})
}

// The bot dies while a changed ask waits: the answer is no, and the card still says what was changed.
func TestKilledWithAChangedAsk(t *testing.T) {
	inWorld(t, func(s *Settings) { s.Quorum = 2; s.Approvers = []string{"channel"} }, func(w *world) {
		thread := w.ask("alice", proof)
		w.edit("bob", w.card(thread), "printf changed > other.txt")
		w.crash()
		w.start()
		w.pass(10 * time.Second)
		card := w.card(thread)
		if card.decidable() || w.exists("other.txt") {
			t.Error("the card has buttons, or it ran")
		}
		mustSay(t, card.text, "restarted", "Changed by", w.user("bob"))
		w.deniedOnce("abort")
	})
}

// A revision that isn't there yet can't be approved, and nobody is named who would have changed anything.
func TestARevisionThatIsntThere(t *testing.T) {
	inWorld(t, nil, func(w *world) {
		thread := w.ask("alice", proof)
		run := w.lastRun()
		a := w.client(localToken).do("POST", "/api/agent/approvals/"+run.ID+"/"+run.Calls[0].ID, `{"decision":"approve","revision":1}`).must(t, 409, "CHANGED")
		mustSay(t, a.raw, "Nobody has changed the arguments")
		w.click("bob", w.card(thread), "deny")
	})
}

// A pause that comes while forms are open: none of them approves anything, and each says why.
func TestPausedWhileFormsAreOpen(t *testing.T) {
	inWorld(t, grantors, func(w *world) {
		thread := w.ask("alice", "write a.txt: one")
		card := w.card(thread)
		w.choose("bob", card, "edit")
		w.choose("carol", card, "grant_thread")
		if _, _, err := w.app.approvals.Pause(context.Background(), operator(), "looking"); err != nil {
			t.Fatal(err)
		}
		r := w.send("bob", w.form("bob"), map[string]string{"argument.0/value": "b.txt"})
		mustSay(t, r.Errors["argument.0"], "pprovalbot was paused by", "looking")
		r = w.send("carol", w.form("carol"), map[string]string{"until/grant_until": "1h", "uses/grant_uses": "3"})
		mustSay(t, r.Errors["uses"], "pprovalbot was paused by", "looking")
		if w.exists("a.txt") || w.exists("b.txt") || w.lastRun().Calls[0].Approval.Resolved != nil {
			t.Error("it was approved")
		}
	})
}

// The card says whose credentials a call uses, before and after it was changed.
func TestTheCardSaysWhoItRunsAs(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "actions.yaml")
	rewrite(t, file, "actions: [{name: publish, description: Publish a version., inputs: {version: {type: string}}, "+
		"run: [cat, --, '{{version}}'], runs_as: the AWS role deployer}]\n")
	turns := script(t, `[{"toolCalls":[{"id":"c1","name":"publish","arguments":{"version":"1"}}]},{"text":"ok"}]`)
	inWorld(t, func(s *Settings) { s.ActionsFile, s.Model = file, turns }, func(w *world) {
		thread := w.ask("alice", "publish it")
		mustSay(t, w.card(thread).text, "Will run as", "the AWS role deployer")
		w.choose("bob", w.card(thread), "edit")
		w.send("bob", w.form("bob"), map[string]string{"argument.0/value": "2"})
		c := w.lastRun().Calls[0]
		if c.Approval.Revision() != 1 || c.Approval.Preview.RunsAs != "the AWS role deployer" {
			t.Errorf("after the change: %+v", c.Approval.Preview)
		}
		mustSay(t, w.audit(w.lastRun().ID), "the AWS role deployer")
	})
}
