package main

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"approvalbot/internal/devslack"
	"approvalbot/internal/ledger"
	"approvalbot/internal/policy"
	"approvalbot/internal/redact"
)

func grantors(s *Settings) { s.Grantors, s.Grants = []string{"requester", "channel"}, "always" }

// allow gives a grant on a card: the entry of its menu, the ticks one after another, and then the rest of the form.
func (w *world) allow(user string, c shown, action, until, uses string, ticks ...string) devslack.SubmitResult {
	w.t.Helper()
	approval := c.buttons["approve"]
	_, err := w.slack.Click(context.Background(), devslack.ActionRequest{
		User: w.user(user), Channel: w.general(), TS: c.ts, ActionID: "approve",
		Forge: map[string]any{"actions": []any{map[string]any{"type": "button", "action_id": action, "block_id": approval + ".0", "value": approval}}},
	})
	if err != nil {
		w.t.Fatal(err)
	}
	w.pass(time.Second)
	views, err := w.slack.Views(w.user(user))
	if err != nil || len(views) == 0 {
		w.t.Fatalf("no form: %v %s\n%s", err, w.privately(c.ts, user), w.log.String())
	}
	form := views[0]
	if len(ticks) > 0 {
		if _, err := w.slack.ViewAction(form.ID, devslack.ActionRequest{User: w.user(user), ActionID: "grant_any", BlockID: "any0", Value: strings.Join(ticks, ",")}); err != nil {
			w.t.Fatal(err)
		}
		w.pass(time.Second)
	}
	r, err := w.slack.SubmitView(form.ID, devslack.SubmitRequest{User: w.user(user), Values: map[string]map[string]any{
		"until": {"grant_until": until}, "uses": {"grant_uses": uses},
	}})
	if err != nil {
		w.t.Fatal(err)
	}
	w.pass(5 * time.Second)
	return r
}

// The whole way: a grant is given on a card, used in its thread without a question, shown, listed, revoked, and used up.
func TestAGrantInAThread(t *testing.T) {
	inWorld(t, grantors, func(w *world) {
		thread := w.ask("alice", "write a.txt: one")
		if r := w.allow("bob", w.card(thread), "grant_thread", "4h", "3", "1"); len(r.Errors) > 0 {
			t.Fatalf("%+v", r)
		}
		if !w.exists("a.txt") || !strings.Contains(w.card(thread).text, "Also allowed") {
			t.Fatalf("the card: %s\n%s", w.card(thread).text, w.log.String())
		}
		p := w.client(localToken)
		grants := p.do("GET", "/api/agent/grants", "").at("grants").([]any)
		if len(grants) != 1 {
			t.Fatalf("%v", grants)
		}
		id := dig(grants[0], "grantId").(string)

		// What it covers isn't asked, and is told.
		w.mention("alice", thread, "write b.txt: one")
		if !w.exists("b.txt") || len(w.cards(thread)) != 1 {
			t.Fatalf("%v\n%s", w.thread(thread), w.log.String())
		}
		said := ""
		for _, m := range w.thread(thread) {
			said += m.text + "\n"
		}
		if !strings.Contains(said, "Allowed by the grant of ") || !strings.Contains(said, "1 of 3 uses") {
			t.Errorf("nobody is told: %s", said)
		}
		last := w.runs()[len(w.runs())-1]
		if d := last.Calls[0].Decision; d.Source != "grant" || d.Type != ledger.Allow || d.Grant != id || d.GrantUse != 1 || !strings.Contains(d.Reason, "bob's grant until") {
			t.Errorf("%+v", d)
		}
		if shown := w.audit(last.ID); !strings.Contains(shown, "bob's grant") {
			t.Errorf("the audit doesn't tell: %s", shown)
		}

		var listed bytes.Buffer
		j, err := ledger.OpenReader(context.Background(), w.settings.journalDir())
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(listGrants(context.Background(), j, false, redact.New(), &listed, time.Now()), j.Close()); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(listed.String(), id+"  thread  by bob") || !strings.Contains(listed.String(), "used 1 of 3") {
			t.Errorf("listed: %s", listed.String())
		}

		// Other words, another thread, another person: asked.
		w.mention("alice", thread, "write c.txt: two")
		w.mention("bob", thread, "write c.txt: one")
		other := w.ask("alice", "write d.txt: one")
		if w.exists("c.txt") || w.exists("d.txt") || len(w.cards(other)) != 1 {
			t.Error("more was allowed than was granted")
		}
		w.pass(3 * time.Minute) // nobody answers

		p.do("POST", "/api/agent/grants/none/revoke", `{}`).must(t, 404, "NOT_FOUND")
		p.do("POST", "/api/agent/grants/"+id+"/revoke", `{"why":"x"}`).must(t, 400, "INVALID_REQUEST")
		p.do("POST", "/api/agent/grants/"+id+"/revoke", `{"reason":"enough"}`).must(t, 200, "")
		p.do("POST", "/api/agent/grants/"+id+"/revoke", ``).must(t, 410, "EXPIRED")
		again := w.ask("alice", "write e.txt: one")
		if w.exists("e.txt") || len(w.cards(again)) != 1 {
			t.Error("used after it was revoked")
		}
		w.pass(3 * time.Minute)
		if a := p.do("GET", "/api/agent/grants", ""); !strings.Contains(a.raw, "revoked by default: enough") || !strings.Contains(a.raw, `"used":1`) {
			t.Errorf("%s", a.raw)
		}
	})
}

// A grant outlives a restart, and so does what it has left. A run over HTTP that can't ask uses it, if its requester fits.
func TestAGrantAfterARestart(t *testing.T) {
	inWorld(t, grantors, func(w *world) {
		thread := w.ask("alice", "write a.txt: one")
		if r := w.allow("alice", w.card(thread), "grant_always", "30d", "2", "1"); len(r.Errors) > 0 {
			t.Fatalf("%+v", r)
		}
		first := w.ask("alice", "write b.txt: one")
		w.stop()
		w.start()
		w.pass(5 * time.Second)
		second := w.ask("alice", "write c.txt: one")
		if !w.exists("b.txt") || !w.exists("c.txt") || len(w.cards(first))+len(w.cards(second)) != 0 {
			t.Errorf("%v\n%s", w.thread(second), w.log.String())
		}
		third := w.ask("alice", "write d.txt: one")
		if len(w.cards(third)) != 1 {
			t.Error("used more often than it was given for")
		}
		w.pass(3 * time.Minute)
		a := w.client(localToken).do("POST", "/api/agent", `{"task":"write e.txt: one"}`)
		if w.exists("e.txt") || a.status == http.StatusOK {
			t.Errorf("%d %s", a.status, a.raw)
		}
	})
}

// What was allowed in advance under one policy doesn't come back after a start under another, file or no file.
func TestAGrantEndsWithAnotherStart(t *testing.T) {
	inChangedWorld(t, func(w *world) { grantors(&w.settings) }, func(w *world) {
		thread := w.ask("alice", "write a.txt: one")
		if r := w.allow("bob", w.card(thread), "grant_always", "30d", "9", "1"); len(r.Errors) > 0 {
			t.Fatalf("%+v", r)
		}
		again := func(change func()) {
			w.stop()
			change()
			w.start()
			w.pass(5 * time.Second)
		}
		again(func() {})
		if w.ask("alice", "write b.txt: one"); !w.exists("b.txt") {
			t.Error("it ended with a restart")
		}
		again(func() { w.settings.ApprovalPolicy = policy.Strict })
		again(func() { w.settings.ApprovalPolicy = policy.OnRequest })
		if w.ask("alice", "write c.txt: one"); w.exists("c.txt") {
			t.Error("it came back")
		}
		if list := w.app.grants.List(time.Now()); len(list) != 1 || list[0].Ended != "the policy changed" {
			t.Errorf("%+v", list)
		}
		w.pass(3 * time.Minute)
		list := func(all bool) string {
			var out bytes.Buffer
			j, err := ledger.OpenReader(context.Background(), w.settings.journalDir())
			if err == nil {
				err = errors.Join(listGrants(context.Background(), j, all, redact.New(), &out, time.Now()), j.Close())
			}
			if err != nil {
				t.Fatal(err)
			}
			return out.String()
		}
		if got := list(false); got != "nothing is in force (1 ended in the last month: --all)\n" {
			t.Errorf("listed: %s", got)
		}
		mustSay(t, list(true), "by bob", "ended: the policy changed; used 1 of 9")
	})
}

// A command is allowed to the letter, and a deny of the rules wins over every grant.
func TestAGrantOfACommandAndARule(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "policy.yaml")
	write := func(text string) {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("rules:\n  - {name: notes, tool: read_file, effect: allow}\n")
	inChangedWorld(t, func(w *world) {
		grantors(&w.settings)
		w.settings.PolicyFile, w.hangups = file, make(chan os.Signal, 1)
	}, func(w *world) {
		thread := w.ask("alice", "run `printf a >> out.txt`")
		if r := w.allow("bob", w.card(thread), "grant_thread", "1h", "10"); len(r.Errors) > 0 {
			t.Fatalf("%+v", r)
		}
		w.mention("alice", thread, "run `printf a >> out.txt`")
		if out, _ := os.ReadFile(filepath.Join(w.dir, "workspace", "out.txt")); string(out) != "aa" || len(w.cards(thread)) != 1 {
			t.Fatalf("%q, %d cards\n%s", out, len(w.cards(thread)), w.log.String())
		}
		w.mention("alice", thread, "run `printf a >> out.txt; printf b`")
		if len(w.cards(thread)) != 2 {
			t.Error("another command was allowed")
		}
		w.pass(3 * time.Minute)
		write("rules:\n  - {name: never, tool: shell, effect: deny}\n")
		w.hangups <- os.Interrupt
		w.pass(time.Second)
		w.mention("alice", thread, "run `printf a >> out.txt`")
		if out, _ := os.ReadFile(filepath.Join(w.dir, "workspace", "out.txt")); string(out) != "aa" || len(w.cards(thread)) != 2 {
			t.Errorf("%q, %d cards", out, len(w.cards(thread)))
		}
		if list := w.app.grants.List(time.Now()); len(list) != 1 || list[0].Ended != "the policy changed" {
			t.Errorf("%+v", list)
		}
	})
}

// What holds a secret is offered to nobody, nor is what a program asks for offered for a thread, which it doesn't have.
func TestWhatIsNotOffered(t *testing.T) {
	inWorld(t, grantors, func(w *world) {
		offers := func() []ledger.Offer {
			t.Helper()
			runs := w.runs()
			return slices.DeleteFunc(slices.Clone(runs[len(runs)-1].Calls[0].Approval.Offers), func(o ledger.Offer) bool {
				return o != ledger.OfferGrantThread && o != ledger.OfferGrantAlways
			})
		}
		w.ask("alice", "write a.txt: harmless")
		if got := offers(); len(got) != 2 {
			t.Errorf("usually: %v", got)
		}
		w.ask("alice", "write a.txt: xoxb-123456789012-123456789012-abcdefghijklmnopqrstuvwx")
		if got := offers(); len(got) != 0 {
			t.Errorf("with a secret: %v", got)
		}
		body := `{"tool":"deploy","arguments":{"version":"1.2.3"},"slack":{"channel":"` + w.general() + `"}}`
		w.client(localToken).do("POST", "/api/approvals", body).must(t, http.StatusOK, "")
		if got := offers(); len(got) != 1 || got[0] != ledger.OfferGrantAlways {
			t.Errorf("of a program: %v", got)
		}
	})
}

// A pause that comes while it is looked up whether a grant counts holds the call back: nothing that goes back to people's
// word starts in a pause.
func TestAPauseWhileAGrantIsLookedAt(t *testing.T) {
	inWorld(t, grantors, func(w *world) {
		thread := w.ask("alice", "write a.txt: one")
		if r := w.allow("bob", w.card(thread), "grant_thread", "4h", "3", "1"); len(r.Errors) > 0 {
			t.Fatalf("%+v", r)
		}
		w.pass(2 * time.Minute) // what was looked up isn't kept for longer
		fault := devslack.Fault{Method: "users.info", Match: w.user("bob"), Times: 20, DelayMS: 1500}
		if err := w.slack.SetFault(fault); err != nil {
			t.Fatal(err)
		}
		if _, err := w.slack.SendMessage(devslack.MessageRequest{User: w.user("alice"), Channel: w.general(), ThreadTS: thread, Text: "<@" + w.ws.App.BotUserID + "> write b.txt: one"}); err != nil {
			t.Fatal(err)
		}
		w.pass(time.Second)
		if _, _, err := w.app.approvals.Pause(context.Background(), operator(), ""); err != nil {
			t.Fatal(err)
		}
		w.pass(10 * time.Second)
		c := w.lastRun().Calls[0]
		if w.exists("b.txt") || !c.StartedAt.IsZero() || c.Decision == nil || c.Decision.Grant != "" || c.Finished == nil || !strings.Contains(c.Finished.Output, "paused") {
			t.Errorf("it started: %+v, %+v", c.Decision, c.Finished)
		}
	})
}
