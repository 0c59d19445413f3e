package slackui

import (
	"fmt"
	"testing"
	"time"

	"approvalbot/internal/devslack"
	"approvalbot/internal/ledger"
)

// decidedWithin lets somebody approve, and checks that it is decided in no time.
func (w *world) decidedWithin(most time.Duration, user string, card devslack.Message) {
	w.t.Helper()
	began := time.Now()
	if r := w.click(user, card, actionApprove); !r.Acked {
		w.t.Error("the click was not acknowledged")
	}
	w.eventually("it is decided", func() bool { return len(w.resolutions()) == 1 })
	e := w.events("approval_resolved")[0]
	b := e.Body.(*ledger.ApprovalResolved)
	if b.Type != ledger.Approved || b.By == nil || b.By.ID != w.user(user) {
		w.t.Errorf("%s by %s: %s", b.Type, b.Source, b.Reason)
	}
	if took := e.Time.Sub(began); took > most {
		w.t.Errorf("decided after %s, want at most %s", took, most)
	}
}

// Private sentences that Slack doesn't take for a while keep nobody from deciding.
func TestADecisionDoesntWaitForWhatOthersAreTold(t *testing.T) {
	for name, c := range map[string]struct {
		fault  devslack.Fault
		clicks int
	}{
		"turned away for half a minute": {devslack.Fault{RetryAfter: after(30), Times: -1}, 1},
		"hanging for a minute":          {devslack.Fault{DelayMS: 60_000, Times: -1}, 1},
		"failing":                       {devslack.Fault{Status: 500, Times: -1}, 1},
		"a hundred clicks":              {devslack.Fault{RetryAfter: after(30), Times: -1}, 100},
		"a hundred clicks, taken":       {devslack.Fault{}, 100},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				if c.fault.Times != 0 {
					c.fault.Method = "chat.postEphemeral"
					w.fault(c.fault)
				}
				root := w.say("alice", "@bot `ls`")
				card := w.card(root, 0)
				for range c.clicks {
					w.click("gus", card, actionApprove)
				}
				w.decidedWithin(time.Second, "bob", card)
				w.settled()
				w.isOver(w.cards(root)[0])
			})
		})
	}
}

// Who clicks like mad is told once or a few times, and others are told all the same.
func TestTheSameIsNotSaidAgainAndAgain(t *testing.T) {
	inWorld(t, func(w *world) {
		card := w.card(w.say("alice", "@bot `ls`"), 0)
		for range 100 {
			w.click("gus", card, actionApprove)
		}
		w.click("alice", card, actionApprove)
		w.eventually("alice is told", func() bool { return len(w.whispers("alice")) == 1 })
		w.after(tellAgain)
		if n := len(w.whispers("gus")); n < 1 || n > 3 {
			t.Errorf("gus was told %d times", n)
		}
		// What was said long ago is said again.
		said := len(w.whispers("gus"))
		w.click("gus", card, actionApprove)
		w.eventually("gus is told again", func() bool { return len(w.whispers("gus")) == said+1 })
		w.ui.tellMu.Lock()
		defer w.ui.tellMu.Unlock()
		if len(w.ui.told) > 2 {
			t.Errorf("%d sentences are kept", len(w.ui.told))
		}
	}, func(w *world) { w.settings.Timeout = time.Hour })
}

// A limit of Slack's is everybody's: nobody is told anything until it is over, and then each is.
func TestASentenceThatWasTurnedAwayComesLater(t *testing.T) {
	inWorld(t, func(w *world) {
		w.fault(devslack.Fault{Method: "chat.postEphemeral", RetryAfter: after(30)})
		card := w.card(w.say("alice", "@bot `ls`"), 0)
		began := time.Now()
		w.click("gus", card, actionApprove)
		w.after(time.Second)
		w.click("alice", card, actionApprove)
		w.eventually("both are told", func() bool { return len(w.whispers("gus")) == 1 && len(w.whispers("alice")) == 1 })
		if took := time.Since(began); took < 30*time.Second || took > 35*time.Second {
			t.Errorf("told after %s", took)
		}
		if n := w.calls("chat.postEphemeral", 429); n != 1 {
			t.Errorf("%d calls were turned away", n)
		}
	}, func(w *world) { w.settings.Timeout = time.Hour })
}

// A sentence that nobody could be told for a minute is left unsaid: by then it answers nothing.
func TestASentenceGetsTooOld(t *testing.T) {
	inWorld(t, func(w *world) {
		w.fault(devslack.Fault{Method: "chat.postEphemeral", RetryAfter: after(90)})
		card := w.card(w.say("alice", "@bot `ls`"), 0)
		w.click("gus", card, actionApprove)
		w.after(3 * time.Minute)
		if got := w.whispers("gus"); len(got) != 0 {
			t.Errorf("told %q", got)
		}
		w.click("gus", card, actionApprove)
		w.eventually("gus is told now", func() bool { return len(w.whispers("gus")) == 1 })
	}, func(w *world) { w.settings.Timeout = time.Hour })
}

// Looking up one person, in vain, costs nobody else anything.
func TestLookUpsOfOthersDontHoldUpADecision(t *testing.T) {
	inWorld(t, func(w *world) {
		card := w.card(w.say("alice", "@bot `ls`"), 0)
		w.fault(devslack.Fault{Method: "users.info", Match: w.user("gus"), Times: -1, DelayMS: 20_000})
		for range 20 {
			w.meanwhile("gus", card, actionApprove) // each would take two seconds
		}
		w.after(time.Millisecond)
		w.decidedWithin(time.Second, "bob", card)
	}, func(w *world) { w.settings.Timeout = time.Hour })
}

// The same for those who stop a run.
func TestStopsOfOthersDontHoldUpAStop(t *testing.T) {
	inWorld(t, func(w *world) {
		root := w.say("alice", "@bot `ls`")
		w.card(root, 0)
		progress := w.things(root, kindProgress)[0]
		w.fault(devslack.Fault{Method: "users.info", Match: w.user("gus"), Times: -1, DelayMS: 20_000})
		for range 20 {
			w.meanwhile("gus", progress, actionStop) // each would take two seconds
		}
		w.after(time.Millisecond)
		began := time.Now()
		w.click("alice", progress, actionStop)
		w.eventually("it is stopped", func() bool { return len(w.events("run_stop_requested")) == 1 })
		if took := w.events("run_stop_requested")[0].Time.Sub(began); took > time.Second {
			t.Errorf("stopped after %s", took)
		}
	}, func(w *world) { w.settings.Timeout = time.Hour })
}

// A message isn't held up by what the author of the one before it is told.
func TestAMessageDoesntWaitForWhatOthersAreTold(t *testing.T) {
	for _, f := range []devslack.Fault{{RetryAfter: after(30)}, {DelayMS: 60_000}} {
		t.Run(fmt.Sprint(f.DelayMS), func(t *testing.T) {
			inWorld(t, func(w *world) {
				f.Method, f.Times = "chat.postEphemeral", -1
				w.fault(f)
				root := w.say("carol", "a thread")
				w.say("gus", "@bot `rm x`", w.channel("general"), root)
				w.say("bob", "@bot `ls`", w.channel("general"), root)
				began := time.Now()
				w.eventually("bob's message is taken", func() bool { return len(w.events("run_started")) == 1 })
				if took := w.events("run_started")[0].Time.Sub(began); took > time.Second {
					t.Errorf("started after %s", took)
				}
				if by := w.events("message_received")[0].Actor.ID; by != w.user("gus") {
					t.Errorf("the first message is of %s: the order is lost", by)
				}
			})
		})
	}
}

// Stopping the process isn't held up by private sentences that Slack doesn't take, beyond the grace; cards come first.
func TestStoppingDoesntWaitForSentences(t *testing.T) {
	inWorld(t, func(w *world) {
		w.fault(devslack.Fault{Method: "chat.postEphemeral", Times: -1, DelayMS: 60_000})
		root := w.say("alice", "@bot `ls`")
		w.click("gus", w.card(root, 0), actionApprove)
		w.after(time.Second)
		began := time.Now()
		if err := w.stop(); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(began); took > defaultGrace+time.Second {
			t.Errorf("took %s", took)
		}
		w.isOver(w.cards(root)[0])
	})
}

// Answers go to Slack's own hosts: those of real Slack, and that of a local one.
func TestWhereAnswersGo(t *testing.T) {
	for address, want := range map[string]bool{
		"https://hooks.slack.com/actions/T1/2/x": true, "https://slack.com/x": true,
		"": false, "http://hooks.slack.com/x": false, "https://slack.com.example/x": false, "https://notslack.com/x": false,
		"https://slack.com@127.0.0.1/x": false, "https://127.0.0.1/x": false, "//hooks.slack.com/x": false, "https://hooks.slack.com:8443/x": false,
	} {
		if got := (&Client{base: "https://slack.com/api/"}).owns(address); got != want {
			t.Errorf("%q: %t", address, got)
		}
	}
	local := &Client{base: "http://127.0.0.1:3103/api/"}
	if !local.owns("http://127.0.0.1:3103/commands/x") || local.owns("http://127.0.0.1:3102/x") || (&Client{}).owns("http://127.0.0.1/x") {
		t.Error("a local Slack's address")
	}
}
