package main

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"approvalbot/internal/devslack"
	"approvalbot/internal/ledger"
)

// A load is many runs at once in many channels, and what Slack saw of it. The figures are in fake time but for memory, so
// they are the same everywhere; make bench prints them.
type load struct {
	*world
	channels []string
	began    time.Time
	seen     int64 // the last call of the local Slack that was looked at

	asks, refused      int
	lastAsk, lastClear time.Time         // when the last card was posted, and when the last one got its last update
	posts              map[string][]bool // by channel: what was posted, and whether it asks
	clicked            map[string]time.Time
	slowest            time.Duration  // for which a card had buttons after it was decided
	total              map[string]int // calls, by method
}

// asksEach is what each run asks for at once. A channel has ten runs.
const asksEach, runsEach = 5, 10

// Forty runs in four channels: every suite has these.
func TestManyRunsAtOnce(t *testing.T) { runsAtOnce(t, 4) }

// Two hundred runs in twenty channels, with a thousand asks. This one goes with the benchmarks, because it keeps a machine
// busy for a minute or two.
func TestTwoHundredRunsAtOnce(t *testing.T) {
	if flag.Lookup("test.bench").Value.String() == "" {
		t.Skip("make bench runs it")
	}
	runsAtOnce(t, 20)
}

// runsAtOnce begins many runs in one moment. People answer what they see within a second or so: yes, and no to every
// fifth. Slack's limits hold. Nothing is lost: every ask gets a card, every answer its effect, every run its end; the asks
// come first, and Slack never has to say "too many".
func runsAtOnce(t *testing.T, channels int) {
	inWorld(t, func(s *Settings) { s.Timeout = 2 * time.Hour }, func(w *world) {
		l := &load{world: w, posts: map[string][]bool{}, clicked: map[string]time.Time{}, total: map[string]int{}}
		l.makeChannels(channels)
		all, before, peak := channels*runsEach*asksEach, heap(), uint64(0)
		l.start()
		for range 2 * runsEach * asksEach { // people answer while other asks are still on their way
			l.pass(time.Second)
			l.look()
			if l.asks == all && peak == 0 {
				peak = heap()
			}
			l.answer()
		}
		if l.asks != all {
			t.Fatalf("%d cards, want %d", l.asks, all)
		}
		for range 10 { // nobody is left wondering whether their click counted
			l.pass(time.Second)
			l.answer()
		}
		if l.slowest > 5*time.Second {
			t.Errorf("a card kept its buttons for %v after it was decided", l.slowest)
		}
		for range channels + 10 { // Slack takes fifty updates a minute, and every card needs one
			l.pass(time.Minute)
			l.look()
		}
		l.verify(all)
		ratio := l.lastAsk.Sub(l.began).Seconds() / (runsEach * asksEach)
		if ratio > 1.05 {
			t.Errorf("the last ask came after %v, and a channel with %d of them takes one a second", l.lastAsk.Sub(l.began), runsEach*asksEach)
		}
		if n := l.overtaken(); n > 0 {
			t.Errorf("%d other messages were posted before asks", n)
		}
		if l.refused > 0 {
			t.Errorf("Slack refused %d calls as too many", l.refused)
		}
		t.Attr("seconds-per-ask", fmt.Sprintf("%.3f", ratio))
		t.Attr("refusals", fmt.Sprint(l.refused))
		t.Attr("seconds-with-buttons", fmt.Sprintf("%.1f", l.slowest.Seconds()))
		t.Attr("minutes-to-clear", fmt.Sprintf("%.1f", l.lastClear.Sub(l.began).Minutes()))
		t.Attr("peak-KiB-per-ask", fmt.Sprintf("%.1f", float64(peak-min(before, peak))/1024/float64(all)))
		t.Logf("calls %v", l.total)
	})
}

// heap is the memory in use, of the whole process: the local Slack and its log of calls are in it.
func heap() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

func (l *load) makeChannels(n int) {
	members := []string{l.ws.App.BotUserID, l.user("alice"), l.user("bob"), l.user("carol")}
	for i := range n {
		c, err := l.slack.CreateChannel(devslack.ChannelRequest{Name: fmt.Sprintf("team-%d", i+1), Kind: devslack.KindPrivate, Members: members})
		if err != nil {
			l.t.Fatal(err)
		}
		l.channels = append(l.channels, c.ID)
	}
	l.ws = l.slack.Workspace() // what is checked at the end looks into these, too
}

// start writes all messages in one moment.
func (l *load) start() {
	l.began = time.Now()
	for run := range runsEach * len(l.channels) {
		var text strings.Builder
		fmt.Fprintf(&text, "<@%s>", l.ws.App.BotUserID)
		for ask := range asksEach {
			fmt.Fprintf(&text, " write run-%d/file-%d.txt: hello\n", run, ask)
		}
		_, err := l.slack.SendMessage(devslack.MessageRequest{
			User: l.user("alice"), Channel: l.channels[run%len(l.channels)], Text: text.String(),
		})
		if err != nil {
			l.t.Fatal(err)
		}
	}
	synctest.Wait()
}

// look reads what has gone over the wire since the last time.
func (l *load) look() {
	for _, c := range l.slack.Calls(l.seen) {
		if c.Seq != l.seen+1 {
			l.t.Fatalf("the log of calls is not kept long enough: %d after %d", c.Seq, l.seen)
		}
		l.seen = c.Seq
		if c.Kind != "api" {
			continue
		}
		l.total[c.Name]++
		request := string(c.Request)
		asks := strings.Contains(request, `"approve"`)
		switch {
		case c.Status == http.StatusTooManyRequests:
			l.refused++
			l.t.Logf("%v after the beginning: %s was refused", c.Time.Sub(l.began), c.Name)
		case c.Name == "chat.postMessage":
			if channel := l.channelOf(c); c.Time.After(l.began) { // the first progress stands before its run has asked
				l.posts[channel] = append(l.posts[channel], asks)
			}
			if asks {
				l.asks, l.lastAsk = l.asks+1, c.Time
			}
		case c.Name == "chat.update" && strings.Contains(request, `"card"`) && !asks:
			l.lastClear = c.Time
		}
	}
}

func (l *load) channelOf(c devslack.Call) string {
	var request struct{ Channel string }
	if err := json.Unmarshal(c.Request, &request); err != nil {
		l.t.Fatal(err)
	}
	return request.Channel
}

// overtaken counts the posts that were made in a channel while one of its asks had to wait for its turn. All asks are made
// in the first moment.
func (l *load) overtaken() (n int) {
	for _, posts := range l.posts {
		last := 0
		for i, asks := range posts {
			if asks {
				last = i
			}
		}
		for _, asks := range posts[:last] {
			if !asks {
				n++
			}
		}
	}
	return n
}

// answer clicks on everything that can be clicked: bob approves, carol denies every fifth.
func (l *load) answer() {
	for _, channel := range l.channels {
		messages, err := l.slack.Messages(channel, "")
		if err != nil {
			l.t.Fatal(err)
		}
		for i, m := range messages {
			if !bytes.Contains(m.Blocks, []byte(`"approve"`)) {
				continue
			}
			if at, before := l.clicked[channel+m.TS]; before {
				l.slowest = max(l.slowest, time.Since(at))
				continue
			}
			c := read(m)
			l.clicked[channel+c.ts] = time.Now()
			user, action := "bob", "approve"
			if i%5 == 0 {
				user, action = "carol", "deny"
			}
			r, err := l.slack.Click(context.Background(), devslack.ActionRequest{User: l.user(user), Channel: channel, TS: c.ts, ActionID: action})
			if err != nil || !r.Acked {
				l.t.Errorf("%s on %s: %+v, %v", action, c.ts, r, err)
			}
		}
	}
}

// verify looks at every run: it ended well, each of its asks was decided by a person, and what was approved was done.
func (l *load) verify(all int) {
	runs := l.runs()
	if want := runsEach * len(l.channels); len(runs) != want {
		l.t.Errorf("%d runs, want %d", len(runs), want)
	}
	decided, done, denied := 0, 0, 0
	for _, run := range runs {
		if run.Status() != ledger.RunSucceeded || !run.Settled {
			l.t.Errorf("run %s: %s, settled: %v", run.ID, run.Status(), run.Settled)
		}
		for _, c := range run.Calls {
			if c.Approval == nil || c.Approval.Resolved == nil {
				l.t.Errorf("run %s: call %s was not decided", run.ID, c.ID)
				continue
			}
			if c.Approval.Resolved.Source == ledger.SourceUser {
				decided++
			}
			switch c.State {
			case ledger.OutputAvailable:
				done++
			case ledger.OutputDenied:
				denied++
			default:
				l.t.Errorf("run %s: call %s is %s", run.ID, c.ID, c.State)
			}
		}
	}
	if decided != all || done+denied != all || done == 0 || denied == 0 {
		l.t.Errorf("%d decided, %d done, %d denied; want %d", decided, done, denied, all)
	}
}
