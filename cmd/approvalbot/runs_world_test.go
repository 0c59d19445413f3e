package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"approvalbot/internal/devslack"
	"approvalbot/internal/language"
	"approvalbot/internal/ledger"
)

// events are the journal's of a kind, while the program runs.
func (w *world) events(kind string) (all []ledger.Event) {
	w.t.Helper()
	for e, err := range w.app.journal.Read(w.t.Context(), 0, ledger.Filter{Kinds: []string{kind}}) {
		if err != nil {
			w.t.Fatal(err)
		}
		all = append(all, e)
	}
	return all
}

// with is the message of a thread with a button.
func (w *world) with(thread, action string) shown {
	w.t.Helper()
	for _, m := range w.thread(thread) {
		if m.buttons[action] != "" {
			return m
		}
	}
	w.t.Fatalf("no message has %s: %v", action, w.thread(thread))
	return shown{}
}

func (w *world) without(thread, action string) {
	w.t.Helper()
	for _, m := range w.thread(thread) {
		if m.buttons[action] != "" {
			w.t.Errorf("a message has still %s: %s", action, m.text)
		}
	}
}

// reactions are those on a message of the first channel.
func (w *world) reactions(ts string) (names []string) {
	w.t.Helper()
	messages, err := w.slack.Messages(w.general(), ts)
	if err != nil {
		w.t.Fatal(err)
	}
	for _, r := range messages[0].Reactions {
		names = append(names, r.Name)
	}
	return names
}

// A mention of stop ends what runs in its thread and what its author has waiting there, at once.
func TestStopByWord(t *testing.T) {
	for _, word := range []string{"stop", "STOP!", "停止。"} {
		t.Run(word, func(t *testing.T) {
			inWorld(t, nil, func(w *world) {
				thread := w.ask("alice", "`touch done`")
				w.mention("alice", thread, "and then write notes.md: hello")
				if got := w.reactions(thread); len(got) != 1 || got[0] != "eyes" {
					t.Errorf("reactions while it runs: %v", got)
				}
				w.mention("alice", thread, word)
				runs := w.runs()
				if len(runs) != 1 || runs[0].Status() != ledger.RunCancelled || runs[0].Stop == nil || runs[0].Stop.By.ID != w.user("alice") {
					t.Fatalf("runs: %+v", runs)
				}
				if n := len(w.events("message_withdrawn")); n != 1 {
					t.Errorf("%d messages were withdrawn", n)
				}
				w.pass(time.Minute)
				if w.exists("done") || len(w.runs()) != 1 {
					t.Error("something was done all the same")
				}
				if got := w.reactions(thread); len(got) != 0 {
					t.Errorf("reactions at the end: %v", got)
				}
				if !strings.Contains(fmt.Sprint(w.thread(thread)), "Taken back by") {
					t.Errorf("nobody says what became of the second message: %v", w.thread(thread))
				}
				last := w.events("message_received")
				if m := last[len(last)-1].Body.(*ledger.MessageReceived); m.Disposition != ledger.Handled || m.Reason != "stop" {
					t.Errorf("recorded as %+v", m)
				}
			})
		})
	}
}

func TestStopByWordOfSomebodyElse(t *testing.T) {
	inWorld(t, func(s *Settings) { s.Approvers = []string{"requester"} }, func(w *world) {
		thread := w.ask("alice", "`touch done`")
		w.mention("bob", thread, "stop")
		if w.runs()[0].Status() != ledger.RunWaiting {
			t.Error("bob stopped what he may not")
		}
		if got := w.privately(thread, "bob"); !strings.Contains(got, "stop this run") {
			t.Errorf("bob is told %q", got)
		}
		w.mention("alice", thread, "stop")
	})
}

func TestNothingToStop(t *testing.T) {
	inWorld(t, nil, func(w *world) {
		thread := w.ask("alice", "stop")
		if got := w.privately(thread, "alice") + w.privately("", "alice"); !strings.Contains(got, "nothing to stop") {
			t.Errorf("alice is told %q", got)
		}
		if len(w.runs()) != 0 {
			t.Error("it started a run")
		}
	})
}

// A message that comes while something is asked can deny it with its words.
func TestDenyWithThis(t *testing.T) {
	inWorld(t, nil, func(w *world) {
		thread := w.ask("alice", "`touch one` and `touch two`")
		w.mention("bob", thread, "no, use the other directory")
		offer := w.with(thread, "deny_this")
		if offer.buttons["keep"] == "" {
			t.Error("there is no Keep for Later")
		}
		w.click("bob", offer, "deny_this")
		runs := w.runs()
		if len(runs) != 1 {
			t.Fatalf("%d runs", len(runs))
		}
		for _, c := range runs[0].Calls {
			if c.State != ledger.OutputDenied || !strings.Contains(c.Finished.Output, "no, use the other directory") {
				t.Errorf("call %s: %s, %q", c.ID, c.State, c.Finished.Output)
			}
		}
		w.pass(time.Minute)
		if len(w.runs()) != 1 {
			t.Error("the message started a run as well")
		}
		w.without(thread, "deny_this")
		if !strings.Contains(fmt.Sprint(w.thread(thread)), "This message starts nothing else.") {
			t.Errorf("nobody says what became of it: %v", w.thread(thread))
		}
		for _, p := range runs[0].Started.Requesters {
			if p.ID == w.user("bob") {
				t.Error("bob's reason made him a requester")
			}
		}
	})
}

func TestKeepForLater(t *testing.T) {
	inWorld(t, nil, func(w *world) {
		thread := w.ask("alice", "`touch one`")
		w.mention("alice", thread, "and then tell me more")
		w.click("alice", w.with(thread, "keep"), "keep")
		w.without(thread, "deny_this")
		w.click("bob", w.card(thread), "approve")
		w.pass(time.Minute)
		if !w.exists("one") || len(w.runs()) != 2 {
			t.Errorf("%d runs, one exists: %v", len(w.runs()), w.exists("one"))
		}
		if len(w.events("message_withdrawn")) != 0 {
			t.Error("it was withdrawn")
		}
	})
}

// Only the author, or somebody who may approve, uses a message's words.
func TestDenyWithThisOfOthers(t *testing.T) {
	inChangedWorld(t, func(w *world) { w.settings.Approvers = []string{w.user("bob")} }, func(w *world) {
		thread := w.ask("alice", "`touch one`")
		w.mention("carol", thread, "use the other directory")
		w.click("alice", w.with(thread, "deny_this"), "deny_this") // may deny, but neither wrote it nor may approve
		if w.runs()[0].Status() != ledger.RunWaiting || w.privately(thread, "alice") == "" {
			t.Errorf("alice used carol's words: %v", w.thread(thread))
		}
		w.click("carol", w.with(thread, "deny_this"), "deny_this") // wrote it, but may not deny
		if w.runs()[0].Status() != ledger.RunWaiting || len(w.events("message_withdrawn")) != 0 {
			t.Error("carol denied what she may not")
		}
		w.click("bob", w.with(thread, "deny_this"), "deny_this")
		call := w.runs()[0].Calls[0]
		if call.State != ledger.OutputDenied || !strings.Contains(call.Approval.Resolved.Reason, "carol: use the other directory") {
			t.Errorf("%s: %+v", call.State, call.Approval.Resolved)
		}
	})
}

// im is the direct message with somebody.
func (w *world) im(user string) string {
	w.t.Helper()
	for _, c := range w.ws.Channels {
		if c.Kind == devslack.KindIM && slices.Contains(c.Members, w.user(user)) {
			return c.ID
		}
	}
	w.t.Fatalf("no direct message with %s", user)
	return ""
}

func (w *world) write(user, channel, thread, text string) string {
	w.t.Helper()
	ts, err := w.slack.SendMessage(devslack.MessageRequest{User: w.user(user), Channel: channel, ThreadTS: thread, Text: text})
	if err != nil {
		w.t.Fatal(err)
	}
	w.pass(5 * time.Second)
	return ts
}

// In a direct message each thread is a conversation; a forgotten card holds up nothing, and stop stops all of it.
func TestDirectMessages(t *testing.T) {
	inWorld(t, nil, func(w *world) {
		im := w.im("alice")
		first := w.write("alice", im, "", "`touch one`")
		w.write("alice", im, "", "what can you do?")
		runs := w.runs()
		if len(runs) != 2 || runs[0].Status() != ledger.RunWaiting || runs[1].Status() != ledger.RunSucceeded {
			t.Fatalf("%d runs", len(runs))
		}
		w.write("alice", im, first, "stop please") // more than the word: it waits
		w.write("alice", im, "", "stop")
		if got := w.runs()[0].Status(); got != ledger.RunCancelled {
			t.Errorf("the first run is %s", got)
		}
		statuses := 0
		for _, c := range w.slack.Calls(0) {
			if c.Kind == "api" && c.Name == "assistant.threads.setStatus" && c.Status == 200 {
				statuses++
			}
		}
		if statuses == 0 {
			t.Error("the pane shows no status")
		}
	})
}

// event delivers one as Slack would.
func (w *world) event(event map[string]any) {
	w.t.Helper()
	_, err := w.slack.SendEnvelope(devslack.EnvelopeRequest{Type: "events_api", Payload: map[string]any{
		"type": "event_callback", "team_id": w.ws.Team.ID, "api_app_id": w.ws.App.ID, "event_id": "Ev" + randomHex(6), "event": event,
	}})
	if err != nil {
		w.t.Fatal(err)
	}
	w.pass(5 * time.Second)
}

func TestThePane(t *testing.T) {
	inWorld(t, func(s *Settings) { s.Language = language.Chinese }, func(w *world) {
		im := w.im("alice")
		w.event(map[string]any{"type": "app_home_opened", "user": w.user("alice"), "channel": im, "tab": "messages", "event_ts": "1.1"})
		prompts := ""
		for _, c := range w.slack.Calls(0) {
			if c.Name == "assistant.threads.setSuggestedPrompts" {
				prompts += string(c.Request)
			}
		}
		if !strings.Contains(prompts, "uname") || strings.Contains(prompts, "Run a command") {
			t.Errorf("prompts: %s", prompts)
		}
		thread := w.write("alice", im, "", "`touch one`")
		w.event(map[string]any{"type": "agent_session_stopped", "user": w.user("alice"), "channel": im, "thread_ts": thread, "event_ts": "2.2"})
		if got := w.runs()[0].Status(); got != ledger.RunCancelled {
			t.Errorf("Slack's own Stop left the run %s", got)
		}
	})
}

// A listed bot starts runs and decides nothing; another one does neither, and is named in the log once.
func TestTrustedBots(t *testing.T) {
	bot := func(w *world) devslack.User {
		for _, u := range w.ws.Users {
			if u.Kind == devslack.KindBot && u.ID != w.ws.App.BotUserID {
				return u
			}
		}
		t.Fatal("there is no other bot")
		return devslack.User{}
	}
	inChangedWorld(t, func(w *world) { w.settings.TrustedBots = []string{bot(w).BotID} }, func(w *world) {
		thread := w.ask(bot(w).Name, "`touch one`")
		runs := w.runs()
		if len(runs) != 1 || runs[0].Started.Requesters[0].ID != bot(w).ID {
			t.Fatalf("runs: %v", runs)
		}
		w.click("bob", w.card(thread), "approve")
		if !w.exists("one") {
			t.Error("bob's approval of a bot's request didn't count")
		}
		if n := len(w.runs()); n != 1 {
			t.Errorf("%d runs", n)
		}
	})
	inWorld(t, nil, func(w *world) {
		w.ask(bot(w).Name, "`touch one`")
		w.ask(bot(w).Name, "`touch one`")
		if len(w.runs()) != 0 || strings.Count(w.log.String(), bot(w).BotID) != 1 {
			t.Errorf("%d runs, log: %s", len(w.runs()), w.log.String())
		}
	})
}

// share is somebody's mention with files. TS in the text is its ts: time stands still meanwhile.
func (w *world) share(user, text string, files ...devslack.Attachment) string {
	w.t.Helper()
	ts, err := w.slack.SendMessage(devslack.MessageRequest{
		User: w.user(user), Channel: w.general(), Text: "<@" + w.ws.App.BotUserID + "> " + text, Files: files,
	})
	if err != nil {
		w.t.Fatal(err)
	}
	w.pass(10 * time.Second)
	return ts
}

// Files that come with a message are in the workspace when its run starts, and the model reads where.
func TestFilesInMessages(t *testing.T) {
	inWorld(t, nil, func(w *world) {
		thread := w.share("alice", "what is in these?", devslack.Attachment{Name: "../../data one.csv", Content: []byte("a,b\n1,2\n")},
			devslack.Attachment{Name: "data one.csv", Content: []byte("other")}, devslack.Attachment{Name: "huge.bin", Content: make([]byte, maxAttachment+1)})
		w.mention("alice", thread, "read uploads/"+thread+"/data_one.csv")
		content, err := os.ReadFile(filepath.Join(w.dir, "workspace", "uploads", thread, "data_one.csv"))
		if err != nil || string(content) != "a,b\n1,2\n" {
			t.Fatalf("the file: %q, %v\n%v", content, err, w.thread(thread))
		}
		if other, err := os.ReadFile(filepath.Join(w.dir, "workspace", "uploads", thread, "data_one-2.csv")); err != nil || string(other) != "other" {
			t.Errorf("the file of the same name: %q, %v", other, err)
		}
		saved := w.events("file_saved")
		if len(saved) != 3 || saved[0].Seq > w.events("run_started")[0].Seq {
			t.Fatalf("%d files are recorded", len(saved))
		}
		for i, want := range []string{"", "", "the most that is taken"} {
			b := saved[i].Body.(*ledger.FileSaved)
			if (b.Error == "") != (want == "") || !strings.Contains(b.Error, want) {
				t.Errorf("file %d: %+v", i, b)
			}
		}
		if got := w.privately("", "alice"); !strings.Contains(got, "could be taken") || !strings.Contains(got, "huge.bin: The file has") || strings.Contains(got, "data") {
			t.Errorf("alice is told %q", got)
		}
		run := w.runs()[1]
		if run.Status() != ledger.RunSucceeded || run.Calls[0].State != ledger.OutputAvailable {
			t.Errorf("the run %s, call %+v", run.Status(), run.Calls[0].Finished)
		}
		if out := w.audit(w.runs()[0].ID); !strings.Contains(out, "uploads/"+thread+"/data_one-2.csv") {
			t.Errorf("the audit doesn't name the file:\n%s", out)
		}
	})
}

// A download that fails is no reason not to work.
func TestFileThatCantBeHad(t *testing.T) {
	inWorld(t, nil, func(w *world) {
		if err := w.slack.SetFault(devslack.Fault{Method: "files.info", Times: 1, Error: "missing_scope"}); err != nil {
			t.Fatal(err)
		}
		w.share("alice", "", devslack.Attachment{Name: "notes.txt", Content: []byte("words")})
		saved := w.events("file_saved")[0].Body.(*ledger.FileSaved)
		if !strings.Contains(saved.Error, "files:read") || len(w.runs()) != 1 {
			t.Errorf("%+v, %d runs", saved, len(w.runs()))
		}
	})
}

// A very long answer is its beginning, and a file with all of it; both are found again after their post wasn't answered.
func TestAnswerAsAFile(t *testing.T) {
	long := strings.Repeat("A line of the answer, which goes on and on.\\n\\n", 1200)
	for _, lost := range []bool{false, true} {
		inWorld(t, func(s *Settings) { s.Model = script(t, `[{"text":"`+long+`"}]`) }, func(w *world) {
			if lost {
				if err := w.slack.SetFault(devslack.Fault{Method: "files.completeUploadExternal", Times: 1, DropResponse: true}); err != nil {
					t.Fatal(err)
				}
			}
			thread := w.ask("alice", "tell me everything")
			w.pass(time.Minute)
			messages, err := w.slack.Messages(w.general(), thread)
			if err != nil {
				t.Fatal(err)
			}
			files, says := 0, false
			for _, m := range messages {
				files += len(m.Files)
				says = says || strings.Contains(string(m.Blocks), "This is the beginning.")
			}
			if files != 1 || !says {
				t.Errorf("lost %v: %d files, it says so: %v", lost, files, says)
			}
		})
	}
}

// askAbout is somebody's choice of our shortcut in a message's menu, and what they write into the form.
func (w *world) askAbout(user, channel, ts, what string) devslack.SubmitResult {
	w.t.Helper()
	if _, err := w.slack.Shortcut(devslack.ShortcutRequest{User: w.user(user), Channel: channel, TS: ts, CallbackID: "ask_about"}); err != nil {
		w.t.Fatal(err)
	}
	w.pass(time.Second)
	views, err := w.slack.Views(w.user(user))
	if err != nil || len(views) == 0 {
		w.t.Fatalf("no form: %v\n%s", err, w.log.String())
	}
	answer, err := w.slack.SubmitView(views[0].ID, devslack.SubmitRequest{
		User: w.user(user), Values: map[string]map[string]any{"what": {"text": what}},
	})
	if err != nil {
		w.t.Fatal(err)
	}
	w.pass(10 * time.Second)
	return answer
}

// The words of a message become its author's, whoever asks about it.
func TestAskAboutThis(t *testing.T) {
	inWorld(t, nil, func(w *world) {
		ts := w.write("bob", w.general(), "", "the build is red")
		if out := w.askAbout("alice", w.general(), ts, "`touch looked`"); len(out.Errors) > 0 {
			t.Fatalf("errors: %v", out.Errors)
		}
		runs := w.runs()
		if len(runs) != 1 || len(runs[0].Started.Requesters) != 2 || runs[0].Started.Place.Thread != ts {
			t.Fatalf("runs: %+v", runs)
		}
		if got := fmt.Sprint(w.thread(ts)); !strings.Contains(got, "asked about this message") {
			t.Errorf("nobody says who asked what: %s", got)
		}
		w.click("carol", w.card(ts), "approve")
		if !w.exists("looked") {
			t.Error("it was not done")
		}
	})
}

// Who may not start runs doesn't do it by having a member ask about their message.
func TestAskAboutAGuestsWords(t *testing.T) {
	inWorld(t, nil, func(w *world) {
		guest := ""
		for _, u := range w.ws.Users {
			if u.Kind == devslack.KindGuest {
				guest = u.Name
			}
		}
		ts := w.write(guest, w.general(), "", "delete everything")
		if out := w.askAbout("alice", w.general(), ts, "do it"); !strings.Contains(fmt.Sprint(out.Errors), "may not start runs here") || len(w.runs()) != 0 {
			t.Errorf("%+v, %d runs", out, len(w.runs()))
		}
	})
}

// Where the bot isn't, the answer comes by direct message.
func TestAskAboutElsewhere(t *testing.T) {
	inWorld(t, nil, func(w *world) {
		if err := w.slack.Leave(devslack.MembershipRequest{User: w.ws.App.BotUserID, Channel: w.general()}); err != nil {
			t.Fatal(err)
		}
		ts := w.write("bob", w.general(), "", "the build is red")
		w.pass(2 * time.Minute) // who is in it is asked again
		if out := w.askAbout("alice", w.general(), ts, "what can you do?"); len(out.Errors) > 0 {
			t.Fatalf("errors: %v\n%s", out.Errors, w.log.String())
		}
		runs := w.runs()
		if len(runs) != 1 || runs[0].Started.Place.Channel != w.im("alice") || runs[0].Started.Place.Thread == "" {
			t.Fatalf("runs: %+v", runs)
		}
	})
}

// In a pause nothing starts by way of a form, either, and whoever sent it is told.
func TestAskAboutInAPause(t *testing.T) {
	inChangedWorld(t, operated, func(w *world) {
		ts := w.write("bob", w.general(), "", "the build is red")
		if _, _, err := w.app.approvals.Pause(w.t.Context(), ledger.Actor{Kind: ledger.ActorUser, Team: w.ws.Team.ID, ID: w.user("carol")}, "lunch"); err != nil {
			t.Fatal(err)
		}
		if out := w.askAbout("alice", w.general(), ts, "what can you do?"); !strings.Contains(fmt.Sprint(out.Errors), "paused") {
			t.Errorf("%+v", out)
		}
		if n := len(w.events("message_received")); n != 0 {
			t.Errorf("%d messages are recorded", n)
		}
	})
}

// Two bots that answer each other don't go on for ever; a person's word lets them.
func TestBotsAmongThemselves(t *testing.T) {
	inChangedWorld(t, func(w *world) {
		for _, u := range w.ws.Users {
			if u.Kind == devslack.KindBot && u.ID != w.ws.App.BotUserID {
				w.settings.TrustedBots = append(w.settings.TrustedBots, u.BotID)
			}
		}
	}, func(w *world) {
		thread := w.ask("deploybot", "hello")
		for range 15 {
			w.mention("deploybot", thread, "and then?")
		}
		if n := len(w.runs()); n != 10 {
			t.Errorf("%d runs", n)
		}
		w.mention("alice", thread, "go on")
		w.mention("deploybot", thread, "and then?")
		if n := len(w.runs()); n != 12 {
			t.Errorf("%d runs after alice's word", n)
		}
	})
}

// A message that waits behind an ask doesn't say that we are at work: it is people's turn.
func TestThePaneWhileSomethingIsAsked(t *testing.T) {
	inWorld(t, nil, func(w *world) {
		im := w.im("alice")
		thread := w.write("alice", im, "", "`touch one`")
		w.write("alice", im, thread, "and then tell me more")
		last := "none"
		for _, c := range w.slack.Calls(0) {
			if c.Kind == "api" && c.Name == "assistant.threads.setStatus" {
				last = string(c.Request)
			}
		}
		if !strings.Contains(last, `"status":""`) && strings.Contains(last, "is ") {
			t.Errorf("the last status: %s", last)
		}
	})
}
