package slackui

import (
	"fmt"
	"io"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"approvalbot/internal/devslack"
	"approvalbot/internal/ledger"
)

func quiet() *slog.Logger { return slog.New(slog.NewTextHandler(io.Discard, nil)) }

func (w *world) received() []*ledger.MessageReceived {
	var out []*ledger.MessageReceived
	for _, e := range w.events("message_received") {
		out = append(out, e.Body.(*ledger.MessageReceived))
	}
	return out
}

// Scenario 27.
func TestADuplicateEventStartsNothing(t *testing.T) {
	inWorld(t, func(w *world) {
		w.fault(devslack.Fault{Socket: "duplicate_event", Times: 4})
		w.say("alice", "@bot hello")
		w.settled()
		w.after(10 * time.Minute) // all redeliveries
		if n := len(w.received()); n != 1 {
			t.Errorf("%d messages, want 1", n)
		}
		if n := len(w.events("run_started")); n != 1 {
			t.Errorf("%d runs, want 1", n)
		}
	})
}

// Scenario 27: what was sent while nobody listened comes only as a redelivery.
func TestARedeliveryThatIsNewIsHandled(t *testing.T) {
	inWorld(t, func(w *world) {
		w.halt()
		w.say("alice", "@bot hello")
		w.after(5 * time.Second)
		w.start()
		w.eventually("a run", func() bool { return len(w.events("run_started")) == 1 })
		w.settled()
	})
}

// A message that can't be recorded isn't acknowledged, so it comes again.
func TestAMessageThatCantBeRecordedComesAgain(t *testing.T) {
	inWorld(t, func(w *world) {
		w.agent.refuse = fmt.Errorf("%w: disk full", ledger.ErrNotRecorded)
		w.say("alice", "@bot hello")
		w.whispered("alice", "can't record")
		w.after(2 * time.Second)
		w.agent.mu.Lock()
		w.agent.refuse = nil
		w.agent.mu.Unlock()
		w.eventually("a run", func() bool { return len(w.events("run_started")) == 1 })
		w.settled()
		if n := len(w.whispers("alice")); n > 2 {
			t.Errorf("told %d times", n)
		}
	})
}

// Scenario 49.
func TestThoseWhoMayNotStartAreToldPrivately(t *testing.T) {
	for _, who := range []string{"gus", "erin"} {
		t.Run(who, func(t *testing.T) {
			inWorld(t, func(w *world) {
				w.say(who, "@bot `ls`")
				w.eventually(who+" is told", func() bool { return len(w.whispers(who)) == 1 })
				w.after(time.Minute)
				if n := len(w.events("run_started")); n != 0 {
					t.Error("a run was started")
				}
				if got := w.received(); len(got) != 1 || got[0].Disposition != ledger.Refused {
					t.Errorf("recorded: %+v", got)
				}
				if len(w.whispers(who)) != 1 {
					t.Errorf("told %d times", len(w.whispers(who)))
				}
			})
		})
	}
}

func TestAChannelThatIsntListed(t *testing.T) {
	inWorld(t, func(w *world) {
		w.say("alice", "@bot `ls`")
		w.whispered("alice", "in this channel")
		w.say("alice", "@bot hello", w.channel("ops-private"))
		w.say("alice", "hello", w.channel("alice")) // a direct message is no channel
		w.eventually("two runs", func() bool { return len(w.events("run_started")) == 2 })
		w.settled()
	}, func(w *world) { w.config = func(c *Config) { c.Channels = []string{w.channel("ops-private")} } })
}

// Scenario 42.
func TestWhatStartsNothing(t *testing.T) {
	inWorld(t, func(w *world) {
		general := w.channel("general")
		ts := w.say("alice", "no mention of anybody")
		w.say("deploybot", "@bot `rm -rf /`")
		if err := w.slack.EditMessage(devslack.MessageRef{User: w.user("alice"), Channel: general, TS: ts, Text: w.mention("@bot `ls`")}); err != nil {
			t.Fatal(err)
		}
		if err := w.slack.DeleteMessage(devslack.MessageRef{User: w.user("alice"), Channel: general, TS: ts}); err != nil {
			t.Fatal(err)
		}
		for _, e := range []map[string]any{
			{"type": "message", "subtype": "channel_join", "user": w.user("alice"), "channel": general, "ts": "5.000001", "text": w.mention("@bot hi")},
			{"type": "message", "subtype": "bot_message", "bot_id": "B1", "channel": general, "ts": "5.000002", "text": w.mention("@bot hi")},
			{"type": "message", "user": w.ws.App.BotUserID, "channel": general, "ts": "5.000003", "text": w.mention("@bot hi")},
			{"type": "app_mention", "user": w.user("alice"), "channel": general, "ts": "5.000004", "text": w.mention("@bot hi"), "edited": map[string]any{"user": w.user("alice"), "ts": "5.1"}},
			{"type": "app_mention", "user": w.user("alice"), "bot_id": "B1", "channel": general, "ts": "5.000005", "text": w.mention("@bot hi")},
			{"type": "message", "channel": general, "ts": "5.000006", "text": w.mention("@bot nobody wrote this")},
			{"type": "reaction_added", "user": w.user("alice")},
		} {
			r, err := w.slack.SendEnvelope(devslack.EnvelopeRequest{Type: "events_api", Payload: map[string]any{
				"type": "event_callback", "team_id": w.ws.Team.ID, "api_app_id": w.ws.App.ID, "event": e,
			}})
			if err != nil || !r.Acked {
				t.Errorf("%v: %+v %v", e, r, err)
			}
		}
		w.say("alice", "just talk", general, w.say("bob", "a thread of our own"))
		w.after(10 * time.Minute)
		if n := len(w.events("")); n != 0 {
			t.Errorf("%d events in the journal: %+v", n, w.received())
		}
	})
}

func TestTalkInAThreadOfOursIsContext(t *testing.T) {
	inWorld(t, func(w *world) {
		general := w.channel("general")
		root := w.say("alice", "@bot hello")
		w.settled()
		w.say("bob", "by the way &amp; <ok>", general, root)
		w.say("gus", "and delete everything", general, root)
		w.eventually("context", func() bool { return len(w.received()) == 2 })
		w.after(time.Second)
		got := w.received()
		if len(got) != 2 || got[1].Disposition != ledger.Context || got[1].Text != "by the way &amp; <ok>" {
			t.Errorf("recorded: %+v", got[1])
		}
		// After a restart the thread is known from the journal.
		w.halt()
		w.start()
		w.say("bob", "still there?", general, root)
		w.eventually("context", func() bool { return len(w.received()) == 3 })
		for _, e := range w.events("message_received") {
			if want := "slack/" + w.ws.Team.ID + "/" + general + "/" + root; e.Session != want {
				t.Errorf("session %s, want %s", e.Session, want)
			}
		}
	})
}

// A mention in somebody's thread begins a session there; then the thread is ours.
func TestAMentionInAThread(t *testing.T) {
	inWorld(t, func(w *world) {
		general := w.channel("general")
		root := w.say("alice", "we have a problem")
		w.say("bob", "indeed", general, root) // not ours yet: this one is remembered as foreign
		w.say("bob", "@bot help", general, root)
		w.settled()
		w.say("carol", "good", general, root)
		w.eventually("context", func() bool { return len(w.received()) == 2 })
		if got := len(w.things(root, kindAnswer)); got != 1 {
			t.Errorf("%d answers in the thread", got)
		}
	})
}

func TestADirectMessageActs(t *testing.T) {
	inWorld(t, func(w *world) {
		im := w.channel("alice")
		ts := w.say("alice", "hello", im)
		w.settled()
		e := w.events("message_received")
		if len(e) != 1 || e[0].Session != "slack/"+w.ws.Team.ID+"/"+im+"/"+ts || !e[0].Body.(*ledger.MessageReceived).Direct {
			t.Errorf("recorded: %+v", e)
		}
	})
}

func TestAnEmptyMentionGetsHelp(t *testing.T) {
	inWorld(t, func(w *world) {
		w.say("alice", " @bot  ")
		w.whispered("alice", "Mention me with what I should do")
		w.after(time.Minute)
		if len(w.events("run_started")) != 0 || len(w.whispers("alice")) != 1 {
			t.Errorf("runs %d, told %d times", len(w.events("run_started")), len(w.whispers("alice")))
		}
	})
}

// A message that has to wait says so; when its turn comes the same message goes on.
func TestAMessageThatWaitsIsToldSo(t *testing.T) {
	inWorld(t, func(w *world) {
		hold := make(chan struct{})
		w.agent.hold = hold
		root := w.say("alice", "@bot hello")
		w.eventually("a progress message", func() bool { return len(w.things(root, kindProgress)) == 1 })
		close(hold)
		w.settled()
		if n := len(w.things(root, kindProgress)); n != 1 {
			t.Errorf("%d progress messages, want 1", n)
		}
		if n := len(w.events0live("message_posted", kindProgress)); n != 1 {
			t.Errorf("recorded %d times", n)
		}
	})
}

func (w *world) events0live(kind, thing string) []ledger.Event {
	var out []ledger.Event
	for _, e := range w.events(kind) {
		if b, ok := e.Body.(*ledger.MessagePosted); ok && b.Thing.Kind == thing {
			out = append(out, e)
		}
	}
	return out
}

// Messages of one thread are received in the order in which they were written, whatever the look-ups take.
func TestOrderInAThread(t *testing.T) {
	inWorld(t, func(w *world) {
		w.fault(devslack.Fault{Method: "users.info", DelayMS: 1500})
		general := w.channel("general")
		root := w.say("alice", "@bot first")
		for i := range 5 {
			w.say("bob", fmt.Sprintf("@bot number %d", i), general, root)
		}
		w.eventually("all are recorded", func() bool { return len(w.received()) == 6 })
		w.settled()
		var got []string
		for _, m := range w.received() {
			got = append(got, m.Text)
		}
		if diff := cmp.Diff([]string{"first", "number 0", "number 1", "number 2", "number 3", "number 4"}, got); diff != "" {
			t.Error(diff)
		}
	})
}

func TestTextAsItWasMeant(t *testing.T) {
	inWorld(t, func(w *world) {
		bob, general := w.user("bob"), w.channel("general")
		for raw, want := range map[string]string{
			"<@" + w.ws.App.BotUserID + "> run `a &amp;&amp; b &gt; c`": "run `a && b > c`",
			"&amp;lt; stays":       "&lt; stays",
			"ask <@" + bob + ">":   "ask @bob",
			"ask <@U0NOBODY>":      "ask @U0NOBODY",
			"ask <@U0NOBODY|nick>": "ask @nick",
			"in <#" + general + "|general> or <#" + general + ">":     "in #general or #general",
			"<!here> and <!subteam^S1|@oncall> and <!subteam^S2>":     "@here and @oncall and @S2",
			"see <https://example.com/?a=1&amp;b=2|the &lt;docs&gt;>": "see the <docs> (https://example.com/?a=1&b=2)",
			"<https://example.com>":                                   "https://example.com",
			"<mailto:a@example.com|a@example.com>":                    "a@example.com",
			"<!date^1392734382^{date}|then>":                          "then",
			"a < b":                                                   "a < b",
			"unfinished <@U1":                                         "unfinished <@U1",
			"":                                                        "",
		} {
			got := w.ui.text(w.t.Context(), raw)
			got = strings.ReplaceAll(got, "Bob Brandt", "bob")
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%q (-want +got):\n%s", raw, diff)
			}
		}
	})
}

// Every & < > that somebody types comes out as it was typed, however Slack delivers it.
func FuzzUnescape(f *testing.F) {
	for _, s := range []string{"", "&amp;", "<>&", "&lt;!channel&gt;", "&&amp;&"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if got := unescape(escape(s)); got != s {
			t.Errorf("%q came out as %q", s, got)
		}
	})
}

// Whatever Slack may send as text: no panic, and an end.
func FuzzText(f *testing.F) {
	for _, s := range []string{"<", "<>", "<|>", "<@>", "<#|>", "<!>", "<!^>", "a<b|c>d<", "<@U1|x", "&lt;<x>"} {
		f.Add(s)
	}
	u := &UI{client: &Client{BotUser: "UBOT"}}
	f.Fuzz(func(t *testing.T, s string) {
		if out := u.words(t.Context(), s, 0); len(out) > 4*len(s)+16 {
			t.Errorf("%d bytes became %d", len(s), len(out))
		}
	})
}
