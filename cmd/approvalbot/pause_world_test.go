package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"approvalbot/internal/devslack"
	"approvalbot/internal/ledger"
)

// operated lets carol operate the bot.
func operated(w *world) { w.settings.Operators = []string{w.user("carol")} }

// approvals gives the command, in the first channel, and returns what only that person was told.
func (w *world) approvals(user, text string) string {
	w.t.Helper()
	r, err := w.slack.Command(devslack.CommandRequest{User: w.user(user), Channel: w.general(), Command: "/approvals", Text: text})
	if err != nil || !r.Acked {
		w.t.Fatalf("/approvals %s: %+v, %v", text, r, err)
	}
	w.pass(3 * time.Second)
	return w.told(user)
}

// told is what somebody was told last in the first channel, and nobody else.
func (w *world) told(user string) string {
	w.t.Helper()
	all, err := w.slack.Messages(w.general(), "")
	if err != nil {
		w.t.Fatal(err)
	}
	last := ""
	for _, m := range all {
		if m.EphemeralTo == w.user(user) {
			last = read(m).text
		}
	}
	return last
}

// home opens somebody's Home tab and returns what it says, and the view.
func (w *world) home(user string) (string, devslack.View) {
	w.t.Helper()
	if err := w.slack.OpenHome(w.user(user)); err != nil {
		w.t.Fatal(err)
	}
	w.pass(3 * time.Second)
	return w.homeNow(user)
}

// homeNow is what stands in somebody's Home tab.
func (w *world) homeNow(user string) (string, devslack.View) {
	w.t.Helper()
	views, err := w.slack.Views(w.user(user))
	if err != nil {
		w.t.Fatal(err)
	}
	for _, v := range views {
		if v.Type == "home" {
			return strings.Join(texts(v.Blocks), "\n"), v
		}
	}
	w.t.Fatalf("%s has no Home tab", user)
	return "", devslack.View{}
}

// atHome clicks in somebody's Home tab.
func (w *world) atHome(user string, v devslack.View, action, block string) {
	w.t.Helper()
	_, err := w.slack.ViewAction(v.ID, devslack.ActionRequest{User: w.user(user), ActionID: action, BlockID: block})
	if err != nil {
		w.t.Fatalf("%s clicks %s at home: %v\n%s", user, action, err, v.Blocks)
	}
	w.pass(5 * time.Second)
}

// order gives an order over the control socket.
func (w *world) order(what string, o controlOrder) controlState {
	w.t.Helper()
	tr := &http.Transport{DialContext: w.control.DialContext}
	defer tr.CloseIdleConnections()
	o.By = controlActor{ID: "root", Name: "Root"}
	method, body := http.MethodPost, []byte(nil)
	if what == "status" {
		method = http.MethodGet
	} else {
		body, _ = json.Marshal(o)
	}
	req, err := http.NewRequest(method, "http://approvalbot/"+what, bytes.NewReader(body))
	if err != nil {
		w.t.Fatal(err)
	}
	resp, err := (&http.Client{Transport: tr}).Do(req)
	if err != nil {
		w.t.Fatal(err)
	}
	defer resp.Body.Close()
	var s controlState
	if err := json.NewDecoder(resp.Body).Decode(&s); err != nil || s.Error != "" {
		w.t.Fatalf("%s: %v %s", what, err, s.Error)
	}
	return s
}

// notices are the messages in a channel that tell of pauses.
func (w *world) notices(channel string) (all []shown) {
	w.t.Helper()
	messages, err := w.slack.Messages(channel, "")
	if err != nil {
		w.t.Fatal(err)
	}
	for _, m := range messages {
		if strings.Contains(string(m.Metadata), `"notice"`) {
			all = append(all, read(m))
		}
	}
	return all
}

func (w *world) kinds(kind string) (all []ledger.Event) {
	w.t.Helper()
	j, err := ledger.OpenReader(context.Background(), w.settings.journalDir())
	if err != nil {
		w.t.Fatal(err)
	}
	defer j.Close()
	for e, err := range j.Read(context.Background(), 0, ledger.Filter{Kinds: []string{kind}}) {
		if err != nil {
			w.t.Fatal(err)
		}
		all = append(all, e)
	}
	return all
}

// A pause while an ask is open: it can't be approved, it can be denied; new requests are refused with who, when and why; the
// channel is told once and told when it is over.
func TestPausedWhileAnAskIsOpen(t *testing.T) {
	inChangedWorld(t, operated, func(w *world) {
		thread := w.ask("alice", proof)
		mustSay(t, w.approvals("bob", "pause"), "You are not one of those who can pause or resume approvalbot", w.user("carol"))
		mustSay(t, w.approvals("carol", "pause the &lt;database&gt; is on fire"), "Paused.", "1 run may go on")
		mustSay(t, w.approvals("carol", "pause again"), "It was paused already", w.user("carol"))

		w.click("bob", w.card(thread), "approve")
		mustSay(t, w.privately(thread, "bob"), "approvalbot was paused by", w.user("carol"), "is on fire", "You can deny this")
		if w.exists("proof.txt") || w.card(thread).buttons["approve"] == "" {
			t.Error("it ran, or the card has ended")
		}
		w.ask("alice", "run `printf two > two.txt`")
		mustSay(t, w.told("alice"), "approvalbot was paused by", w.user("carol"), "Please ask again then")
		if n := len(w.runs()); n != 1 {
			t.Errorf("%d runs, want the one from before", n)
		}
		status, body := w.get("/readyz", "")
		if status != http.StatusOK {
			t.Errorf("/readyz: %d", status)
		}
		mustSay(t, body, `"paused":{"since":`)
		mustCount(t, w.scrape(), map[string]float64{"paused": 1})
		p := w.client("local-test")
		p.do("POST", "/api/agent", `{"task":"hello"}`).must(t, 503, "PAUSED")
		p.do("POST", "/api/agent/stream", `{"task":"hello"}`).must(t, 503, "PAUSED")
		p.do("POST", "/api/approvals", `{"tool":"deploy","arguments":{}}`).must(t, 503, "PAUSED")
		run := w.lastRun()
		p.do("POST", "/api/agent/approvals/"+run.ID+"/"+run.Calls[0].ID, `{"decision":"approve"}`).must(t, 503, "PAUSED")

		said := w.notices(w.general())
		if len(said) != 1 {
			t.Fatalf("%d notices, want 1", len(said))
		}
		mustSay(t, said[0].text, "approvalbot is paused", w.user("carol"), "is on fire")
		mustSay(t, w.approvals("carol", "resume"), "Resumed.")
		mustSay(t, w.approvals("carol", "resume"), "It isn't paused")
		said = w.notices(w.general())
		if len(said) != 1 {
			t.Fatalf("%d notices, want the same one", len(said))
		}
		mustSay(t, said[0].text, "Resumed by", w.user("carol"))
		mustCount(t, w.scrape(), map[string]float64{"paused": 0})
		w.click("bob", w.card(thread), "approve")
		if !w.exists("proof.txt") {
			t.Error("after it was resumed it can't be approved")
		}
		if n := len(w.kinds("paused")) + len(w.kinds("resumed")); n != 2 {
			t.Errorf("%d events, want one pause and its end", n)
		}
	})
}

// A denial counts in a pause.
func TestDeniedWhilePaused(t *testing.T) {
	inChangedWorld(t, operated, func(w *world) {
		thread := w.ask("alice", proof)
		w.approvals("carol", "pause")
		w.click("bob", w.card(thread), "deny")
		mustSay(t, w.card(thread).text, "enied by", w.user("bob"))
		w.deniedOnce("user")
	})
}

// A message that waits behind another stays where it is, says why, survives a restart, and starts when it is resumed.
func TestPausedWhileAMessageIsQueued(t *testing.T) {
	inChangedWorld(t, operated, func(w *world) {
		thread := w.ask("alice", proof)
		w.mention("alice", thread, "run `printf two > two.txt`")
		w.approvals("carol", "pause")
		w.click("bob", w.card(thread), "deny")
		said := w.thread(thread)
		if n := len(w.runs()); n != 1 {
			t.Fatalf("%d runs have started", n)
		}
		mustSay(t, fmt.Sprint(said), "Waiting: approvalbot was paused by", w.user("carol"))
		w.stop()
		w.start()
		w.pass(10 * time.Second)
		if n := len(w.runs()); n != 1 {
			t.Fatalf("%d runs have started after a restart, and it is paused", n)
		}
		w.mention("bob", thread, "hello")
		mustSay(t, w.privately(thread, "bob"), "approvalbot was paused by", w.user("carol"))
		if s := w.order("status", controlOrder{}); s.Paused == nil || s.Queued != 1 || s.Checks["slack"] != "ok" {
			t.Errorf("status: %+v", s)
		}
		if s := w.order("resume", controlOrder{}); !s.Changed || s.Ended == nil {
			t.Errorf("resume: %+v", s)
		}
		w.pass(10 * time.Second)
		w.click("bob", w.cardOf(thread, "two.txt"), "approve")
		if !w.exists("two.txt") {
			t.Error("the message that waited didn't start")
		}
		said = w.notices(w.general())
		if len(said) != 1 {
			t.Fatalf("%d notices, want one over the restart", len(said))
		}
		mustSay(t, said[0].text, "Resumed by", "Root", "(on the machine)")
	})
}

// A call that runs goes on, and so does what needs no approval; what would ask is denied, and the model is told.
func TestPausedWhileACallRuns(t *testing.T) {
	turns := `[` + shellCall("1", "sleep 1 && printf ok > proof.txt") + `,` + shellCall("2", "printf two > two.txt") + `,{"text":"That is all."}]`
	inChangedWorld(t, func(w *world) {
		operated(w)
		w.settings.Model = script(t, turns)
	}, func(w *world) {
		thread := w.ask("alice", "go")
		paused := make(chan error, 1)
		w.log.on(func(line []byte) {
			if bytes.Contains(line, []byte(`msg="tool started"`)) {
				go func() {
					_, _, err := w.app.approvals.Pause(context.Background(), operator(), "")
					paused <- err
				}()
			}
		})
		w.click("bob", w.card(thread), "approve")
		if err := <-paused; err != nil {
			t.Fatal(err)
		}
		w.log.on(nil)
		for range 20 { // the command needs real time
			if w.pass(3 * time.Second); w.lastRun().Finished != nil {
				break
			}
		}
		w.pass(10 * time.Second)
		run := w.lastRun()
		if run.Status() != ledger.RunSucceeded || run.Call("1").State != ledger.OutputAvailable {
			t.Errorf("the run: %s, its call: %s", run.Status(), run.Call("1").State)
		}
		c := run.Call("2")
		if c == nil || c.State != ledger.OutputDenied || c.Finished.Source != ledger.SourceUndeliverable || c.Approval != nil {
			t.Fatalf("the second call: %+v", c)
		}
		mustSay(t, c.Finished.Output, "Nobody could be asked: approvalbot was paused by ")
	})
}

// Two operators at once, and a third on the machine: one pause, and everybody hears of the same.
func TestTwoOperatorsAtOnce(t *testing.T) {
	inChangedWorld(t, func(w *world) {
		w.settings.Operators = []string{w.user("carol"), w.user("bob")}
	}, func(w *world) {
		var wg sync.WaitGroup
		for _, user := range []string{"bob", "carol"} {
			wg.Go(func() {
				if _, err := w.slack.Command(devslack.CommandRequest{User: w.user(user), Channel: w.general(), Command: "/approvals", Text: "pause by " + user}); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Go(func() { w.order("pause", controlOrder{Reason: "by root"}) })
		wg.Wait()
		w.pass(5 * time.Second)
		if n := len(w.kinds("paused")); n != 1 {
			t.Errorf("%d pauses, want 1", n)
		}
		w.approvals("bob", "resume")
	})
}

// The machine's pause needs no Slack: it counts at once, and the channels are told when Slack takes messages again, once.
func TestPausedWhileSlackIsSlow(t *testing.T) {
	inChangedWorld(t, operated, func(w *world) {
		thread := w.ask("alice", proof)
		sixty := 60
		for _, m := range []string{"chat.postMessage", "chat.update", "chat.postEphemeral", "users.info", "conversations.members"} {
			w.fault(devslack.Fault{Method: m, Times: 1, RetryAfter: &sixty})
		}
		if s := w.order("pause", controlOrder{Reason: "now"}); !s.Changed || s.Paused == nil || s.Asks != 1 || s.Runs != 1 {
			t.Errorf("pause: %+v", s)
		}
		w.pass(10 * time.Second)
		if n := len(w.notices(w.general())); n != 0 {
			t.Fatalf("%d notices although Slack takes none", n)
		}
		p := w.client("local-test")
		p.do("POST", "/api/agent", `{"task":"hello"}`).must(t, 503, "PAUSED")
		w.pass(90 * time.Second) // less than the ask waits: who stops the run below ends it, not the time
		said := w.notices(w.general())
		if len(said) != 1 {
			t.Fatalf("%d notices, want 1", len(said))
		}
		mustSay(t, said[0].text, "Root", "(on the machine)", "now")
		if s := w.order("pause", controlOrder{StopRuns: true}); s.Changed || s.Stopped != 1 || len(s.Errors) != 0 {
			t.Errorf("a second pause: %+v", s)
		}
		w.pass(2 * time.Minute)
		if run := w.lastRun(); !run.Status().Ended() || w.exists("proof.txt") {
			t.Errorf("the run is %s", run.Status())
		}
		if left := w.card(thread).buttons; len(left) != 0 {
			t.Errorf("buttons are left: %v", left)
		}
		w.order("resume", controlOrder{})
		w.pass(2 * time.Minute)
	})
}

// Who decides in the Home tab, in the thread and over HTTP at the same time: one outcome, and all places say it.
func TestDecidedEverywhereAtOnce(t *testing.T) {
	inChangedWorld(t, operated, func(w *world) {
		for i := range 4 {
			file := fmt.Sprintf("proof%d.txt", i)
			thread := w.ask("alice", "run `printf ok > "+file+"`")
			_, view := w.home("bob")
			card, run := w.card(thread), w.lastRun()
			id := card.buttons["approve"] // named, because whoever is faster takes the others' buttons away
			p := w.client("local-test")
			var wg sync.WaitGroup
			wg.Go(func() {
				_, err := w.slack.ViewAction(view.ID, devslack.ActionRequest{User: w.user("bob"), ActionID: "approve", Value: id})
				if err != nil {
					t.Error(err)
				}
			})
			wg.Go(func() {
				_, err := w.slack.Click(context.Background(), devslack.ActionRequest{User: w.user("carol"), Channel: w.general(), TS: card.ts, ActionID: "deny", Value: id, BlockID: id + ".0"})
				if err != nil {
					t.Error(err)
				}
			})
			wg.Go(func() { p.do("POST", "/api/agent/approvals/"+run.ID+"/"+run.Calls[0].ID, `{"decision":"deny"}`) })
			wg.Wait()
			w.pass(10 * time.Second)
			run = w.lastRun()
			approved := run.Calls[0].Approval.Resolved.Type == ledger.Approved
			if w.exists(file) != approved {
				t.Errorf("approved is %v, and it ran: %v", approved, w.exists(file))
			}
			word := map[bool]string{true: "Approved by", false: "Denied by"}[approved]
			mustSay(t, w.card(thread).text, word)
			said, _ := w.homeNow("bob")
			if strings.Contains(said, "Waiting for you\nRun printf ok > "+file) {
				t.Errorf("bob's Home tab still has it waiting:\n%s", said)
			}
			if by := run.Calls[0].Approval.Resolved.By; by.ID == w.user("bob") {
				mustSay(t, said, "Decided by you", file, word)
			}
			if n := len(w.kinds("approval_resolved")); n != i+1 {
				t.Errorf("%d resolutions after %d asks", n, i+1)
			}
		}
	})
}

// What somebody may not see isn't there for them: not in the list, not in the Home tab, not as a run to stop.
func TestPrivateChannelsDontLeak(t *testing.T) {
	inChangedWorld(t, operated, func(w *world) {
		private := ""
		for _, c := range w.ws.Channels {
			if c.Kind == devslack.KindPrivate {
				private = c.ID
			}
		}
		if err := w.slack.Leave(devslack.MembershipRequest{User: w.user("bob"), Channel: private}); err != nil {
			t.Logf("bob isn't in it anyway: %v", err)
		}
		_, err := w.slack.SendMessage(devslack.MessageRequest{User: w.user("alice"), Channel: private,
			Text: fmt.Sprintf("<@%s> run `printf secretplan > s.txt`", w.ws.App.BotUserID)})
		if err != nil {
			t.Fatal(err)
		}
		w.pass(5 * time.Second)
		run := w.lastRun()
		mustSay(t, w.approvals("alice", "all"), "secretplan", "1 request waits")
		mustSay(t, w.approvals("alice", "stop"), "secretplan")
		for _, text := range []string{"all", "mine", "stop", "stop " + strings.TrimPrefix(run.ID, "run_")[:8], "stop " + run.ID} {
			if said := w.approvals("bob", text); strings.Contains(said, "secretplan") || strings.Contains(said, "stopped") {
				t.Errorf("/approvals %s tells bob: %s", text, said)
			}
		}
		if said, _ := w.home("bob"); strings.Contains(said, "secretplan") {
			t.Errorf("bob's Home tab says: %s", said)
		}
		for _, user := range []string{"gus", "erin"} { // a guest, and somebody of another organization
			if said := w.approvals(user, "all"); strings.Contains(said, "secretplan") || !strings.Contains(said, "can't use this") {
				t.Errorf("%s is told: %s", user, said)
			}
		}
		if said, view := w.home("gus"); !strings.Contains(said, "Guests can't use this") || strings.Contains(string(view.Blocks), "action_id") {
			t.Errorf("the Home tab of a guest: %s", view.Blocks)
		}
		mustSay(t, w.approvals("alice", "stop "+strings.TrimPrefix(run.ID, "run_")[:8]), "is stopped")
		if !w.lastRun().Status().Ended() {
			t.Error("it wasn't stopped")
		}
	})
}

// The Home tab does what the card does: approve, deny, stop, and the brakes for operators alone.
func TestHomeTab(t *testing.T) {
	inChangedWorld(t, operated, func(w *world) {
		said, _ := w.home("bob")
		mustSay(t, said, "Nothing waits for your approval.")
		if strings.Contains(said, "Operations") {
			t.Error("bob is no operator")
		}
		w.ask("alice", proof)
		said, view := w.homeNow("bob") // it is kept up to date
		mustSay(t, said, "Run printf ok > proof.txt", "Exactly what", w.user("alice"))
		w.atHome("bob", view, "approve", "")
		if !w.exists("proof.txt") {
			t.Error("approved at home, and it didn't run")
		}
		said, _ = w.homeNow("bob")
		mustSay(t, said, "Nothing waits for your approval.", "Decided by you", "Approved by")

		w.ask("alice", "run `printf two > two.txt`")
		_, view = w.home("carol")
		w.atHome("carol", view, "pause", "")
		said, view = w.homeNow("carol")
		mustSay(t, said, "Paused. No run starts", "approvalbot is paused", "Operations", "Health", "Journal: well")
		if strings.Contains(string(view.Blocks), `"approve"`) {
			t.Error("there is an Approve in a pause")
		}
		w.atHome("carol", view, "resume", "")
		said, view = w.homeNow("carol")
		mustSay(t, said, "Resumed.")
		w.atHome("carol", view, "stop_all", "")
		said, _ = w.homeNow("carol")
		mustSay(t, said, "1 run stopped.")
		if !w.lastRun().Status().Ended() || w.exists("two.txt") {
			t.Error("not stopped")
		}
		w.pass(2 * time.Minute)
		if said, _ = w.homeNow("carol"); strings.Contains(said, "1 run stopped.") {
			t.Error("the answer stands there for ever")
		}
		_, view = w.homeNow("bob")
		if _, err := w.slack.ViewAction(view.ID, devslack.ActionRequest{User: w.user("bob"), ActionID: "stop_all", Value: "now"}); err != nil {
			t.Fatal(err)
		}
		w.pass(5 * time.Second)
		said, _ = w.homeNow("bob")
		mustSay(t, said, "You are not one of those who can pause or resume approvalbot")
	})
}

// The commands say what would be right, and a stop from a card's own message stops its run.
func TestCommandsAndStops(t *testing.T) {
	inChangedWorld(t, operated, func(w *world) {
		mustSay(t, w.approvals("bob", "frobnicate"), "There is no `frobnicate`", "/approvals mine", "/approvals stop RUN")
		if said := w.approvals("bob", "help"); strings.Contains(said, "pause") {
			t.Error("bob can't pause, and is told how")
		}
		mustSay(t, w.approvals("carol", "help"), "/approvals pause REASON")
		mustSay(t, w.approvals("bob", "grants"), "Nothing is allowed in advance")
		mustSay(t, w.approvals("bob", ""), "Nothing waits for your approval.")
		mustSay(t, w.approvals("bob", "stop 12345678"), "There is no running run of that id")
		thread := w.ask("alice", proof)
		mustSay(t, w.approvals("bob", "MINE"), "1 request waits for your approval", "Run printf ok > proof.txt", "archives/"+w.general())
		run := w.lastRun().ID
		w.press("bob", w.card(thread), "stop", run)
		if !w.lastRun().Status().Ended() || len(w.card(thread).buttons) != 0 {
			t.Error("a stop on the card doesn't stop its run")
		}
		mustSay(t, w.card(thread).text, "stopped by", w.user("bob"))
	})
}
