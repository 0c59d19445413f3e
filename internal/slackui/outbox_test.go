package slackui

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/slack-go/slack"

	"approvalbot/internal/devslack"
	"approvalbot/internal/ledger"
)

func after(seconds int) *int { return &seconds }

// A post that succeeds but whose answer is lost is found again, not sent again; so is one that Slack answered with 5xx.
func TestALostAnswerMakesNoSecondCard(t *testing.T) {
	for _, kind := range []string{kindCard, kindProgress, kindAnswer} {
		t.Run(kind, func(t *testing.T) {
			inWorld(t, func(w *world) {
				w.fault(devslack.Fault{Method: "chat.postMessage", Match: `"kind":"` + kind + `"`, DropResponse: true})
				root := w.say("alice", "@bot `ls`")
				w.click("bob", w.card(root, 0), actionApprove)
				w.settled()
				for _, kind := range []string{kindCard, kindProgress, kindAnswer} {
					if n := len(w.things(root, kind)); n != 1 {
						t.Errorf("%d messages of kind %s, want 1", n, kind)
					}
				}
				if kind != kindCard && w.calls("conversations.replies", 0) == 0 { // a card is told of by its click
					t.Error("the message was not looked for")
				}
				w.isOver(w.cards(root)[0])
			})
		})
	}
}

// The same without a click that tells where the card stands: the timeout ends it.
func TestALostAnswerAndNobodyClicks(t *testing.T) {
	inWorld(t, func(w *world) {
		w.fault(devslack.Fault{Method: "chat.postMessage", Match: `"kind":"card"`, DropResponse: true})
		root := w.say("alice", "@bot `ls`")
		w.settled()
		if n := len(w.cards(root)); n != 1 {
			t.Errorf("%d cards, want 1", n)
		}
		w.isOver(w.cards(root)[0])
		if n := len(w.events("approval_shown")); n != 1 {
			t.Errorf("shown %d times", n)
		}
		if w.calls("conversations.replies", 0) == 0 {
			t.Error("the message was not looked for")
		}
	})
}

func TestServerErrorsOnPostsAreTriedAgain(t *testing.T) {
	for _, f := range []devslack.Fault{
		{Status: 500}, {Status: 503}, {Error: "internal_error"}, {Error: "ratelimited"},
		{RetryAfter: after(7)}, {Status: 429}, {Error: "fatal_error"},
	} {
		t.Run(fmt.Sprint(f.Status, f.Error), func(t *testing.T) {
			inWorld(t, func(w *world) {
				f.Method, f.Match, f.Times = "chat.postMessage", `"kind":"card"`, 3
				w.fault(f)
				root := w.say("alice", "@bot `ls`")
				w.click("bob", w.card(root, 0), actionApprove)
				w.settled()
				if len(w.cards(root)) != 1 || len(w.agent.ran()) != 1 {
					t.Errorf("%d cards, started %v", len(w.cards(root)), w.agent.ran())
				}
			})
		})
	}
}

// Retry-After is obeyed to the second, by everything that the limit is about.
func TestRetryAfterIsObeyed(t *testing.T) {
	inWorld(t, func(w *world) {
		w.fault(devslack.Fault{Method: "chat.postMessage", Match: `"kind":"card"`, RetryAfter: after(30)})
		began := time.Now()
		root := w.say("alice", "@bot `one` `two`")
		w.card(root, 1)
		if took := time.Since(began); took < 30*time.Second || took > 34*time.Second {
			t.Errorf("posted after %s, want 30 seconds and little more", took)
		}
		if n := w.calls("chat.postMessage", 429); n != 1 {
			t.Errorf("%d requests were turned away, want 1: the other card had to wait, too", n)
		}
	})
}

// Scenario 31: the terminal update fails twenty times.
func TestServerErrorsOnTheTerminalUpdate(t *testing.T) {
	inWorld(t, func(w *world) {
		root := w.say("alice", "@bot `ls`")
		card := w.card(root, 0)
		w.fault(devslack.Fault{Method: "chat.update", Match: `"kind":"card"`, Times: 20, Status: 502})
		w.click("bob", card, actionApprove)
		w.eventually("it ran", func() bool { return len(w.agent.ran()) == 1 })
		if !hasButton(w.cards(root)[0], actionApprove) {
			t.Fatal("the update went through: the fault isn't one")
		}
		w.settled()
		w.isOver(w.cards(root)[0])
		if n := w.calls("chat.update", 502); n != 20 {
			t.Errorf("%d updates failed, want 20", n)
		}
	})
}

// Scenario 28.
func TestTheTimeoutEndsTheCard(t *testing.T) {
	inWorld(t, func(w *world) {
		root := w.say("alice", "@bot `ls`")
		w.card(root, 0)
		shownAt := w.events("approval_requested")[0].Time
		w.settled()
		w.isOver(w.cards(root)[0])
		r := w.events("approval_resolved")[0]
		if got := r.Body.(*ledger.ApprovalResolved).Source; got != ledger.SourceTimeout {
			t.Errorf("ended by %s", got)
		}
		if took := r.Time.Sub(shownAt); took < 2*time.Minute || took > 2*time.Minute+time.Second {
			t.Errorf("ended after %s", took)
		}
	})
}

// Somebody sees the whole time that the card promises, however long the post took.
func TestASlowPostCostsNobodyTime(t *testing.T) {
	inWorld(t, func(w *world) {
		w.fault(devslack.Fault{Method: "chat.postMessage", Match: `"kind":"card"`, DelayMS: 8000})
		root := w.say("alice", "@bot `ls`")
		w.eventually("it is shown", func() bool { return len(w.events("approval_shown")) == 1 })
		e := w.events("approval_shown")[0]
		if left := e.Body.(*ledger.ApprovalShown).Until.Sub(e.Time); left < 2*time.Minute-time.Second {
			t.Errorf("only %s are left", left)
		}
		w.settled()
		w.isOver(w.cards(root)[0])
	})
}

// Scenario 14: a card that can't be posted ends its ask at once.
func TestAnAskThatCantBeShownIsDenied(t *testing.T) {
	for _, code := range []string{"channel_not_found", "not_in_channel", "is_archived", "restricted_action", "missing_scope"} {
		t.Run(code, func(t *testing.T) {
			inWorld(t, func(w *world) {
				w.fault(devslack.Fault{Method: "chat.postMessage", Match: `"kind":"card"`, Times: -1, Error: code})
				root := w.say("alice", "@bot `ls`")
				w.eventually("it is resolved", func() bool { return len(w.resolutions()) == 1 })
				e := w.events("approval_resolved")[0]
				b := e.Body.(*ledger.ApprovalResolved)
				if b.Source != ledger.SourceUndeliverable || !strings.Contains(b.Reason, code) {
					t.Errorf("resolved by %s: %s", b.Source, b.Reason)
				}
				if took := e.Time.Sub(w.events("approval_requested")[0].Time); took > 3*time.Second {
					t.Errorf("only after %s", took)
				}
				w.settled()
				if len(w.cards(root)) != 0 || len(w.things(root, kindAnswer)) != 1 {
					t.Errorf("%d cards, %d answers", len(w.cards(root)), len(w.things(root, kindAnswer)))
				}
				if n := w.calls("chat.postMessage", 0); n > 5 {
					t.Errorf("%d posts", n)
				}
			})
		})
	}
}

func TestBlocksThatSlackRefusesAreSentPlain(t *testing.T) {
	inWorld(t, func(w *world) {
		w.fault(devslack.Fault{Method: "chat.postMessage", Match: `"kind":"card"`, Times: 1, Error: "invalid_blocks"})
		root := w.say("alice", "@bot `ls`")
		card := w.card(root, 0)
		w.click("bob", card, actionApprove)
		w.settled()
		w.isOver(w.cards(root)[0])
		if len(w.agent.ran()) != 1 {
			t.Error("the plain card could not be used")
		}
	})
}

func TestBlocksThatSlackRefusesTwiceEndTheAsk(t *testing.T) {
	inWorld(t, func(w *world) {
		w.fault(devslack.Fault{Method: "chat.postMessage", Match: `"kind":"card"`, Times: 2, Error: "invalid_blocks"})
		w.say("alice", "@bot `ls`")
		w.eventually("it is resolved", func() bool { return len(w.resolutions()) == 1 })
		w.settled()
	})
}

// Permanent errors of an update settle the message as gone.
func TestACardThatWasDeletedIsGone(t *testing.T) {
	inWorld(t, func(w *world) {
		root := w.say("alice", "@bot `ls`")
		card := w.card(root, 0)
		w.fault(devslack.Fault{Method: "chat.update", Match: `"kind":"card"`, Times: -1, Error: "message_not_found"})
		w.click("bob", card, actionApprove)
		w.settled()
		var gone []string
		for _, e := range w.events("message_settled") {
			if b := e.Body.(*ledger.MessageSettled); b.Gone != "" {
				gone = append(gone, b.Thing.Kind+" "+b.Gone)
			}
		}
		if diff := cmp.Diff([]string{"card message_not_found"}, gone); diff != "" {
			t.Error(diff)
		}
	})
}

// Scenario 30: an answer that confirms nothing is not a delivery.
func TestAnAnswerWithoutATimestampIsNotADelivery(t *testing.T) {
	if got := judge(errUnanswered).verdict; got != unsure {
		t.Errorf("verdict %s", got)
	}
}

// Scenario 29: the process is killed while it waits, and the restart ends the same card.
func TestARestartEndsTheCard(t *testing.T) {
	inWorld(t, func(w *world) {
		root := w.say("alice", "@bot `one` `two`")
		first := w.card(root, 0)
		w.card(root, 1)
		w.after(5 * time.Second)
		w.crash()
		w.start2()
		w.settled()
		if n := len(w.cards(root)); n != 2 {
			t.Errorf("%d cards, want the same 2", n)
		}
		for _, c := range w.cards(root) {
			w.isOver(c)
		}
		if n := len(w.things(root, kindProgress)); n != 1 {
			t.Errorf("%d progress messages, want 1", n)
		}
		w.click("bob", first, actionApprove, forge(approvalOf(first)))
		w.eventually("bob is told", func() bool { return len(w.whispers("bob")) == 1 })
		if len(w.agent.ran()) != 0 {
			t.Error("started")
		}
	})
}

// A card whose post was answered, but not recorded before the end, is found by its metadata after the restart.
func TestARestartFindsWhatWasNotRecorded(t *testing.T) {
	inWorld(t, func(w *world) {
		w.fault(devslack.Fault{Method: "chat.postMessage", Match: `"kind":"card"`, DelayMS: 9000})
		root := w.say("alice", "@bot `ls`")
		w.card(root, 0)
		w.crash() // the answer is still under way
		if n := len(w.events0("message_posted", kindCard)); n != 0 {
			t.Fatal("the post was recorded")
		}
		w.start2()
		w.settled()
		if n := len(w.cards(root)); n != 1 {
			t.Errorf("%d cards, want 1", n)
		}
		w.isOver(w.cards(root)[0])
	})
}

// start2 is a start after a crash: recovery first, then Slack.
func (w *world) start2() {
	w.t.Helper()
	j, err := ledger.Open(w.t.Context(), w.dir, ledger.Options{})
	if err != nil {
		w.t.Fatal(err)
	}
	w.journal = j
	w.agent = &scripted{w: w}
	w.recover()
	if err := j.Close(); err != nil {
		w.t.Fatal(err)
	}
	w.start()
}

// events0 reads a closed journal's events about things of a kind.
func (w *world) events0(kind, thing string) []ledger.Event {
	w.t.Helper()
	r, err := ledger.OpenReader(w.t.Context(), w.dir)
	if err != nil {
		w.t.Fatal(err)
	}
	defer r.Close()
	var out []ledger.Event
	for e, err := range r.Read(w.t.Context(), 0, ledger.Filter{}) {
		if err != nil {
			w.t.Fatal(err)
		}
		if b, ok := e.Body.(*ledger.MessagePosted); ok && e.Kind() == kind && b.Thing.Kind == thing {
			out = append(out, e)
		}
	}
	return out
}

// Scenario 23: stopping brings the cards to their end within the grace.
func TestStoppingEndsTheCards(t *testing.T) {
	inWorld(t, func(w *world) {
		root := w.say("alice", "@bot `one` `two` `three`")
		w.card(root, 2)
		w.fault(devslack.Fault{Method: "chat.update", Match: `"kind":"card"`, Times: 2, Status: 500})
		began := time.Now()
		if err := w.stop(); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(began); took > defaultGrace {
			t.Errorf("took %s", took)
		}
		for _, c := range w.cards(root) {
			w.isOver(c)
		}
		if n := len(w.things(root, kindAnswer)); n != 1 {
			t.Errorf("%d messages say that the run was stopped, want 1", n)
		}
	})
}

// Sixty asks in one channel: one a second, and nothing turned away.
func TestSixtyAsksKeepToTheLimit(t *testing.T) {
	inWorld(t, func(w *world) {
		var asks strings.Builder
		for i := range 60 {
			fmt.Fprintf(&asks, "`echo %d` ", i)
		}
		root := w.say("alice", "@bot "+asks.String())
		w.eventually("the first ask", func() bool { return len(w.events("approval_requested")) > 0 })
		began := time.Now()
		w.card(root, 59)
		if took, most := time.Since(began), 63*time.Second; took > most {
			t.Errorf("took %s, want at most %s", took, most)
		}
		var denied int
		for _, c := range w.cards(root) {
			w.click("bob", c, actionDeny)
			denied++
		}
		w.settled()
		for _, c := range w.cards(root) {
			w.isOver(c)
		}
		if n := w.calls("chat.postMessage", 429) + w.calls("chat.update", 429) + w.calls("chat.postEphemeral", 429); n != 0 {
			t.Errorf("%d calls were turned away", n)
		}
		if denied != 60 || len(w.resolutions()) != 60 {
			t.Errorf("%d cards, %d resolutions", denied, len(w.resolutions()))
		}
	}, func(w *world) { w.settings.Timeout, w.settings.ShowWithin = time.Hour, 5*time.Minute })
}

// A call that ends at once costs one update of its card. One that takes longer doesn't leave the buttons there. (The moment
// between is no promise: between the decision and the call's start the journal is written, which may wait a millisecond.)
func TestAQuickCallTakesOneUpdate(t *testing.T) {
	for takes, updates := range map[time.Duration]int{0: 1, passingFor / 2: 1, 10 * time.Second: 2} {
		t.Run(takes.String(), func(t *testing.T) {
			inWorld(t, func(w *world) {
				w.agent.working = takes
				c := w.card(w.say("alice", "@bot `ls`"), 0)
				clicked := time.Now()
				w.click("bob", c, actionApprove)
				w.settled()
				var first time.Time
				n := 0
				for _, call := range w.slack.Calls(0) {
					if call.Name != "chat.update" || !strings.Contains(string(call.Request), c.TS) {
						continue
					}
					if n++; n == 1 {
						first = call.Time
					}
				}
				if n != updates {
					t.Errorf("%d updates of the card, want %d", n, updates)
				}
				if late := first.Sub(clicked); late > passingFor+time.Second {
					t.Errorf("the buttons stayed for %v", late)
				}
			})
		})
	}
}

// Scenario 41: what belongs to a thread stays in it.
func TestThreadsDontMix(t *testing.T) {
	inWorld(t, func(w *world) {
		one, two := w.say("alice", "@bot `one`"), w.say("bob", "@bot `two`")
		w.click("carol", w.card(one, 0), actionApprove)
		w.click("carol", w.card(two, 0), actionDeny)
		w.settled()
		for root, want := range map[string]string{one: "Run one", two: "Run two"} {
			for _, c := range w.cards(root) {
				if !strings.Contains(string(c.Blocks), want) {
					t.Errorf("%s: %s", want, c.Blocks)
				}
			}
			got := []int{len(w.things(root, kindProgress)), len(w.cards(root)), len(w.things(root, kindAnswer))}
			if diff := cmp.Diff([]int{1, 1, 1}, got); diff != "" {
				t.Errorf("%s: %s", want, diff)
			}
		}
	})
}

// A post that Slack answered with a failure of its own may have taken place all the same.
func TestAPostThatMayHaveTakenPlaceIsLookedFor(t *testing.T) {
	for _, c := range []struct {
		err  error
		want int
	}{
		{slack.StatusCodeError{Code: 502}, 1},
		{errUnanswered, 2},
		{slack.SlackErrorResponse{Err: "fatal_error"}, 1},
		{slack.SlackErrorResponse{Err: "accesslimited"}, 0},
		{&slack.RateLimitedError{}, 0},
	} {
		b := newBook()
		th := b.thing(ledger.Thing{Kind: kindCard, ID: "a"}, "r", ledger.Place{Channel: "C"})
		o := &outbox{book: b, log: quiet(), posts: map[string]*channelState{}}
		o.posted(th, "", wanted{}, judge(c.err))
		if th.looks != c.want {
			t.Errorf("%v: looked for %d times, want %d", c.err, th.looks, c.want)
		}
	}
}

// Scenario 32: an update that was thought lost and arrives late doesn't overwrite a terminal card for good.
func TestALateUpdateDoesntStay(t *testing.T) {
	b := newBook()
	th := b.thing(ledger.Thing{Kind: kindCard, ID: "a"}, "r", ledger.Place{Channel: "C"})
	o := &outbox{book: b, log: quiet(), updates: bucket{every: updateEvery, burst: updateBurst}}
	o.updated(th, wanted{rendering: rendering{text: "pending"}}, judge(fmt.Errorf("connection reset")))
	o.updated(th, wanted{rendering: rendering{text: "over"}, final: true}, answer{verdict: confirmed})
	if th.final || th.confirmed != "" {
		t.Fatal("taken for final while an older update may still arrive")
	}
	if !th.notBefore.After(time.Now().Add(10 * time.Second)) {
		t.Errorf("sent again at %s", th.notBefore)
	}
	o.updated(th, wanted{rendering: rendering{text: "over"}, final: true}, answer{verdict: confirmed})
	if !th.final {
		t.Error("not final after the second time")
	}
}

// Whatever runs are unsettled when the process ends, the next one settles.
func TestASettledRunIsForgotten(t *testing.T) {
	inWorld(t, func(w *world) {
		root := w.say("alice", "@bot `ls`")
		w.click("bob", w.card(root, 0), actionApprove)
		w.settled()
		w.after(time.Second)
		o := w.ui.outbox
		o.mu.Lock()
		defer o.mu.Unlock()
		if len(o.book.runs)+len(o.book.things)+len(o.book.mail)+len(o.book.dirty)+len(o.book.byRun) != 0 {
			t.Errorf("kept: %d runs, %d things, %d messages", len(o.book.runs), len(o.book.things), len(o.book.mail))
		}
	})
}
