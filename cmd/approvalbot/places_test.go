package main

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"approvalbot/internal/devslack"
	"approvalbot/internal/ledger"
)

// ops is the private channel of alice, bob and the bot.
func (w *world) ops() string { return w.ws.Channels[1].ID }

// inOps are the messages of a kind in the approvals channel.
func (w *world) inOps(kind string) (all []shown) {
	w.t.Helper()
	messages, err := w.slack.Messages(w.ops(), "")
	if err != nil {
		w.t.Fatal(err)
	}
	for _, m := range messages {
		if m.EphemeralTo == "" && strings.Contains(string(m.Metadata), `"`+kind+`"`) {
			all = append(all, read(m))
		}
	}
	return all
}

// inApprovalsChannel lets a world have an approvals channel.
func inApprovalsChannel(t *testing.T, only bool, change func(*Settings), body func(w *world)) {
	t.Helper()
	inChangedWorld(t, func(w *world) {
		w.settings.ApprovalsChannel, w.settings.OnlyThere = w.ops(), switched(only)
		if change != nil {
			change(&w.settings)
		}
	}, body)
}

// An ask is decided in the approvals channel, in its thread and over HTTP in the same moment: one outcome, and every place
// shows it.
func TestOneOutcomeInAllPlaces(t *testing.T) {
	inApprovalsChannel(t, false, nil, func(w *world) {
		thread := w.ask("alice", "`touch done`")
		card, copies := w.card(thread), w.inOps("copy")
		if len(copies) != 1 {
			t.Fatalf("%d copies", len(copies))
		}
		run := w.runs()[0]
		var all sync.WaitGroup
		all.Go(func() {
			_, _ = w.slack.Click(context.Background(), devslack.ActionRequest{User: w.user("carol"), Channel: w.general(), TS: card.ts, ActionID: "deny"})
		})
		all.Go(func() {
			_, _ = w.slack.Click(context.Background(), devslack.ActionRequest{User: w.user("bob"), Channel: w.ops(), TS: copies[0].ts, ActionID: "approve"})
		})
		all.Go(func() {
			w.client("local-test").do("POST", "/api/agent/approvals/"+run.ID+"/"+run.Calls[0].ID, `{"decision":"deny"}`)
		})
		all.Wait()
		w.pass(10 * time.Second)
		a := w.runs()[0].Calls[0].Approval
		if a.Resolved == nil {
			t.Fatal("it isn't decided")
		}
		approved := a.Resolved.Type == ledger.Approved
		if w.exists("done") != approved {
			t.Errorf("approved: %v, and it ran: %v", approved, w.exists("done"))
		}
		for _, m := range []shown{w.card(thread), w.inOps("copy")[0]} {
			if strings.Contains(m.text, "Approved by") != approved || strings.Contains(m.text, "Denied by") == approved {
				t.Errorf("approved: %v, and it says %s", approved, m.text)
			}
		}
	})
}

// A run over HTTP has its asks in the approvals channel, and they end there, also over a restart.
func TestAsksOfHTTPInTheApprovalsChannel(t *testing.T) {
	for _, crash := range []bool{false, true} {
		inApprovalsChannel(t, true, nil, func(w *world) {
			l := w.client("local-test").listen("POST", "/api/agent/stream", order("`touch done`"))
			l.until("approvalRequired")
			w.pass(2 * time.Second)
			copies := w.inOps("copy")
			if len(copies) != 1 || copies[0].buttons["approve"] == "" {
				t.Fatalf("in the approvals channel: %v", copies)
			}
			if crash {
				w.crash()
				w.start()
				w.pass(5 * time.Second)
				if got := w.inOps("copy"); len(got) != 1 || !strings.Contains(got[0].text, "Not performed") {
					t.Errorf("after a restart: %v", got)
				}
			} else {
				_, err := w.slack.Click(context.Background(), devslack.ActionRequest{User: w.user("bob"), Channel: w.ops(), TS: copies[0].ts, ActionID: "approve"})
				if err != nil {
					t.Fatal(err)
				}
				l.until("done")
				w.pass(5 * time.Second)
				if !w.exists("done") || !strings.Contains(w.inOps("copy")[0].text, "Done in") {
					t.Errorf("it says %v", w.inOps("copy"))
				}
			}
			for _, run := range w.runs() {
				if !run.Settled {
					t.Errorf("the run is not settled: %v", run.Posted)
				}
			}
		})
	}
}

// A program's ask without a place of its own stands in the approvals channel.
func TestAsksOfProgramsInTheApprovalsChannel(t *testing.T) {
	inApprovalsChannel(t, false, nil, func(w *world) {
		c := w.client("local-test")
		got := c.do("POST", "/api/approvals", `{"tool":"deploy","arguments":{"version":"1.2"},"reason":"release day"}`)
		w.pass(2 * time.Second)
		if n := len(w.inOps("copy")); n != 1 {
			t.Errorf("%d copies: %s", n, got.raw)
		}
	})
}

// A set is decided at once, in the whole program.
func TestApprovalSet(t *testing.T) {
	inWorld(t, func(s *Settings) { s.Sets = true }, func(w *world) {
		thread := w.ask("alice", "`touch one` `touch two` `touch three`")
		var set devslack.Message
		messages, _ := w.slack.Messages(w.general(), thread)
		for _, m := range messages {
			if strings.Contains(string(m.Metadata), `"set"`) {
				set = m
			}
		}
		for _, c := range choices(w.general(), set) {
			if c.action == "approve_all" {
				r := devslack.ActionRequest{User: w.user("bob"), Channel: w.general(), TS: set.TS, ActionID: c.action, Value: c.value, BlockID: c.block}
				if _, err := w.slack.Click(context.Background(), r); err != nil {
					t.Fatal(err)
				}
			}
		}
		w.pass(10 * time.Second)
		for _, f := range []string{"one", "two", "three"} {
			if !w.exists(f) {
				t.Errorf("%s wasn't run", f)
			}
		}
		for _, c := range w.runs()[0].Calls {
			if c.Approval.Resolved.By == nil || c.Approval.Resolved.By.ID != w.user("bob") {
				t.Errorf("%s was resolved by %v", c.ID, c.Approval.Resolved.By)
			}
		}
	})
}

// Where too few people may approve, those who may are written to; the audit says where an ask stood.
func TestAskedDirectly(t *testing.T) {
	inChangedWorld(t, func(w *world) { w.settings.Approvers = []string{w.user("carol")} }, func(w *world) {
		_, err := w.slack.SendMessage(devslack.MessageRequest{User: w.user("alice"), Channel: w.ops(), Text: "<@" + w.ws.App.BotUserID + "> `touch done`"})
		if err != nil {
			t.Fatal(err)
		}
		w.pass(3 * time.Second)
		im := ""
		for _, c := range w.slack.Workspace().Channels {
			if c.Kind == devslack.KindIM && c.User == w.user("carol") {
				im = c.ID
			}
		}
		messages, err := w.slack.Messages(im, "")
		if err != nil || len(messages) != 1 {
			t.Fatalf("carol has %d messages: %v", len(messages), err)
		}
		if _, err := w.slack.Click(context.Background(), devslack.ActionRequest{User: w.user("carol"), Channel: im, TS: messages[0].TS, ActionID: "approve"}); err != nil {
			t.Fatal(err)
		}
		w.pass(5 * time.Second)
		if !w.exists("done") {
			t.Errorf("it wasn't run: %s", w.log.String())
		}
		if said := w.audit(w.runs()[0].ID); !strings.Contains(said, im) || !strings.Contains(said, "too few") {
			t.Errorf("the audit says\n%s", said)
		}
	})
}

// The start says that the bot isn't in the approvals channel.
func TestTheStartSaysThatTheApprovalsChannelIsClosed(t *testing.T) {
	inChangedWorld(t, func(w *world) { w.settings.ApprovalsChannel = w.ws.Channels[2].ID }, func(w *world) {
		w.pass(time.Second)
		if !strings.Contains(w.log.String(), "APPROVALBOT_APPROVALS_CHANNEL: the bot is not in #random") {
			t.Errorf("the log says %s", w.log.String())
		}
	})
}

// Home and /approvals list every ask that waits, each once and by a link to a message that it stands on: those of a set, and
// those that stand in the approvals channel alone, also of a run over HTTP.
func TestListsNameEveryAsk(t *testing.T) {
	lists := func(w *world, user string, at string, asks ...string) {
		w.t.Helper()
		page, view := w.home(user)
		for where, said := range map[string]string{"Home": page, "/approvals": w.approvals(user, ""), "/approvals all": w.approvals(user, "all")} {
			for _, ask := range asks {
				if !strings.Contains(said, ask) {
					w.t.Errorf("%s doesn't name %s:\n%s", where, ask, said)
				}
			}
		}
		if n := strings.Count(w.approvals(user, ""), "asked by"); n != len(asks) {
			w.t.Errorf("%d lines, want %d:\n%s", n, len(asks), w.told(user))
		}
		if !strings.Contains(string(view.Blocks), "/archives/"+at+"/p") {
			w.t.Errorf("no link into %s: %s", at, view.Blocks)
		}
	}
	three := "`touch one` `touch two` `touch three`"
	inWorld(t, func(s *Settings) { s.Sets = true }, func(w *world) {
		w.ask("alice", three)
		lists(w, "bob", w.general(), "touch one", "touch two", "touch three")
		w.pass(3 * time.Minute)
	})
	inApprovalsChannel(t, true, func(s *Settings) { s.Sets = true }, func(w *world) {
		w.ask("alice", three)
		lists(w, "bob", w.ops(), "touch one", "touch two", "touch three")
		w.pass(3 * time.Minute)
	})
	for _, sets := range []switched{false, true} {
		inApprovalsChannel(t, true, func(s *Settings) { s.Sets = sets }, func(w *world) {
			l := w.client(localToken).listen("POST", "/api/agent/stream", order("`touch done`"))
			l.until("approvalRequired")
			w.pass(3 * time.Second)
			lists(w, "bob", w.ops(), "touch done")
			if said := w.approvals("carol", "all"); strings.Contains(said, "touch done") {
				t.Errorf("who isn't in the channel sees it: %s", said)
			}
			w.pass(3 * time.Minute)
			l.until("done")
		})
	}
}
