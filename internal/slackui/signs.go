package slackui

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/slack-go/slack"

	"approvalbot/internal/ledger"
)

// Signs are what Slack shows beside messages: eyes on the message that is being worked on, and in direct messages, which
// are the pane of an agent, a status while we work and a title. They follow the journal as the outbox does, and are
// courtesies: nothing waits for them, nothing depends on them, and what Slack doesn't take is not said another way. So
// they have a pace of their own, far below Slack's limits, and one that would come much too late doesn't come.
//
// The eyes say that somebody looks at it, so they go when nobody does any more: at the end of the run, whose message says
// how it ended. In the pane the status says the same, and is cleared while people are asked: then it is their turn.

const (
	eyes = "eyes"

	// reactions.remove is tier 2: 20 a minute. What is added is to be removed one day.
	eyesEvery = 3 * time.Second
	eyesBurst = 10
	eyesWait  = 10 * time.Second // eyes that come later say nothing
	eyesStay  = 15 * time.Minute // how long they may wait to be removed

	paneEvery = 600 * time.Millisecond
	paneBurst = 20
	paneWait  = 5 * time.Second

	maxTitleChars = 80
)

// A post is where a run's message stands.
type post struct {
	channel, ts, thread string
	pane                bool // in a direct message
}

// signs keep what is shown where. Only its own goroutine touches the seats.
type signs struct {
	ui    *UI
	lanes *lanes                     // the calls; what they wait for, nobody waits for at the end
	after int64                      // Seq of the last event of earlier processes
	seats map[string]post            // by run
	open  map[string]map[string]bool // by run: the asks that wait for people
	lost  map[string][]loss          // by session: files that the run about to start doesn't have

	mu   sync.Mutex
	eyes map[post]bool // that were put there
	adds bucket
	dels bucket
	pane bucket
	off  map[string]bool // methods that Slack doesn't let us call
}

func newSigns(u *UI) *signs {
	b := bucket{every: eyesEvery, burst: eyesBurst}
	return &signs{
		ui: u, lanes: newLanes(), seats: map[string]post{}, open: map[string]map[string]bool{}, lost: map[string][]loss{}, eyes: map[post]bool{}, off: map[string]bool{},
		adds: b, dels: b, pane: bucket{every: paneEvery, burst: paneBurst},
	}
}

// run follows the journal until ctx ends, and with it the calls that are under way.
func (s *signs) run(ctx context.Context) error {
	defer s.lanes.wait()
	defer s.lanes.close()
	after := s.after
	s.tidy(ctx)
	for {
		var failed error
		for e, err := range s.ui.journal.Follow(ctx, after) {
			if failed = err; err != nil {
				break
			}
			s.event(ctx, e)
			after = e.Seq
		}
		if ctx.Err() != nil || errors.Is(failed, ledger.ErrClosed) {
			return nil
		}
		if err := sleep(ctx, firstRetry); err != nil {
			return nil
		}
	}
}

// tidy takes away the eyes that an earlier process has put on messages whose run is over now.
func (s *signs) tidy(ctx context.Context) {
	runs, err := s.ui.journal.UnsettledRuns(ctx)
	if err != nil {
		return
	}
	for _, id := range runs {
		started, ok, err := s.ui.journal.Claimed(ctx, ledger.ClaimRun(id))
		if err != nil || !ok {
			continue
		}
		if _, ended, err := s.ui.journal.Claimed(ctx, ledger.ClaimRunEnd(id)); err != nil || !ended {
			continue
		}
		b, ok := started.Body.(*ledger.RunStarted)
		if !ok {
			continue
		}
		if at, ok := s.seatOf(ctx, b.Message); ok {
			s.mark(at)
			s.away(ctx, at)
		}
	}
}

// mark notes that there may be eyes.
func (s *signs) mark(at post) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.eyes[at] = true
}

// seatOf is where a message stands in Slack.
func (s *signs) seatOf(ctx context.Context, message int64) (post, bool) {
	e, ok, err := s.ui.journal.Event(ctx, message)
	if err != nil || !ok {
		return post{}, false
	}
	m, ok := e.Body.(*ledger.MessageReceived)
	if !ok {
		return post{}, false
	}
	return seatFor(m)
}

func seatFor(m *ledger.MessageReceived) (post, bool) {
	if m.Place.Channel == "" || m.Ask != nil {
		return post{}, false
	}
	at := post{channel: m.Place.Channel, thread: m.Place.Thread, pane: m.Direct}
	if m.Origin.Kind == "slack" {
		at.ts = m.Origin.TS
	}
	return at, true
}

// beside makes a call that nothing waits for. Of what concerns the same, one comes after the other.
func (s *signs) beside(ctx context.Context, key string, call func(context.Context)) {
	s.lanes.do(ctx, key, call)
}

// event shows what an event means.
func (s *signs) event(ctx context.Context, e ledger.Event) {
	switch b := e.Body.(type) {
	case *ledger.MessageReceived:
		if at, ok := seatFor(b); ok && b.Disposition == ledger.Starts {
			s.look(ctx, at)
			if !s.asking(at) { // else it waits behind people, and it is their turn still
				s.status(ctx, at, s.ui.renderer.t("is on it…"))
			}
		}
	case *ledger.MessageWithdrawn:
		if at, ok := s.seatOf(ctx, b.Message); ok {
			s.away(ctx, at)
		}
	case *ledger.FileSaved:
		if b.Path == "" {
			s.lost[e.Session] = append(s.lost[e.Session], loss{b.Message, b.File, b.Error})
		}
	case *ledger.RunStarted:
		if at, ok := s.seatOf(ctx, b.Message); ok {
			s.seats[e.Run] = at
			s.tellLost(ctx, e.Session, b.Message)
			s.status(ctx, at, s.ui.renderer.t("is working…"))
			s.title(ctx, at, e, b)
		}
	case *ledger.ApprovalRequested:
		if at, ok := s.seats[e.Run]; ok {
			if s.open[e.Run] == nil {
				s.open[e.Run] = map[string]bool{}
			}
			s.open[e.Run][b.Approval] = true
			s.status(ctx, at, "")
		}
	case *ledger.ApprovalResolved:
		if delete(s.open[e.Run], b.Approval); len(s.open[e.Run]) == 0 {
			if at, ok := s.seats[e.Run]; ok {
				s.status(ctx, at, s.ui.renderer.t("is working…"))
			}
		}
	case *ledger.RunFinished:
		if at, ok := s.seats[e.Run]; ok {
			s.status(ctx, at, "")
			s.away(ctx, at)
		}
		delete(s.seats, e.Run)
		delete(s.open, e.Run)
	}
}

// asking tells whether people are asked in a conversation of the pane.
func (s *signs) asking(at post) bool {
	for run := range s.open {
		if seat := s.seats[run]; len(s.open[run]) > 0 && seat.channel == at.channel && seat.thread == at.thread {
			return true
		}
	}
	return false
}

// look puts eyes on a message.
func (s *signs) look(ctx context.Context, at post) {
	if at.ts == "" || at.pane || !s.turn(&s.adds, eyesWait) {
		return
	}
	s.mark(at)
	s.beside(ctx, "eyes/"+at.channel+"/"+at.ts, func(ctx context.Context) {
		err := s.paced(ctx, &s.adds, eyesWait, "reactions.add", func() error {
			return s.ui.client.api.AddReactionContext(ctx, eyes, slack.NewRefToMessage(at.channel, at.ts))
		})
		if err != nil {
			s.unmark(at)
		}
	})
}

// unmark notes that there are no eyes, and tells whether there were.
func (s *signs) unmark(at post) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	was := s.eyes[at]
	delete(s.eyes, at)
	return was
}

// away takes the eyes from a message.
func (s *signs) away(ctx context.Context, at post) {
	if at.ts == "" {
		return
	}
	// In the lane of the adding, so that it comes after it.
	s.beside(ctx, "eyes/"+at.channel+"/"+at.ts, func(ctx context.Context) {
		if !s.unmark(at) {
			return
		}
		_ = s.paced(ctx, &s.dels, eyesStay, "reactions.remove", func() error {
			return s.ui.client.api.RemoveReactionContext(ctx, eyes, slack.NewRefToMessage(at.channel, at.ts))
		})
	})
}

// status says in the pane what we do; empty: nothing.
func (s *signs) status(ctx context.Context, at post, words string) {
	if !at.pane || at.thread == "" {
		return
	}
	s.beside(ctx, "pane/"+at.channel+"/"+at.thread, func(ctx context.Context) {
		_ = s.paced(ctx, &s.pane, paneWait, "assistant.threads.setStatus", func() error {
			return s.ui.client.api.SetAssistantThreadsStatusContext(ctx, slack.AssistantThreadsSetStatusParameters{
				ChannelID: at.channel, ThreadTS: at.thread, Status: words,
			})
		})
	})
}

// title names a conversation of the pane by its first message.
func (s *signs) title(ctx context.Context, at post, e ledger.Event, b *ledger.RunStarted) {
	if !at.pane || at.thread == "" {
		return
	}
	for earlier, err := range s.ui.journal.Read(ctx, 0, ledger.Filter{Session: e.Session, Kinds: []string{"run_started"}, Until: e.Seq}) {
		if err != nil || earlier.Run != e.Run {
			return
		}
	}
	message, ok, err := s.ui.journal.Event(ctx, b.Message)
	if err != nil || !ok {
		return
	}
	m, ok := message.Body.(*ledger.MessageReceived)
	if !ok {
		return
	}
	title := s.ui.renderer.line(m.Text, maxTitleChars)
	if title == "" {
		return
	}
	s.beside(ctx, "pane/"+at.channel+"/"+at.thread, func(ctx context.Context) {
		_ = s.paced(ctx, &s.pane, paneWait, "assistant.threads.setTitle", func() error {
			return s.ui.client.api.SetAssistantThreadsTitleContext(ctx, slack.AssistantThreadsSetTitleParameters{
				ChannelID: at.channel, ThreadTS: at.thread, Title: title,
			})
		})
	})
}

// errSkipped: a sign wasn't shown, because it would have come too late or Slack doesn't let us.
var errSkipped = errors.New("not shown")

// turn tells whether there will be a call left within a time.
func (s *signs) turn(b *bucket, within time.Duration) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	return !b.at(now, 0).After(now.Add(within))
}

// paced makes one call at our pace. It isn't tried again, but after a limit of Slack's.
func (s *signs) paced(ctx context.Context, b *bucket, within time.Duration, method string, call func() error) error {
	for by, try := time.Now().Add(within), 1; ; try++ {
		s.mu.Lock()
		now := time.Now()
		at := b.at(now, 0)
		if s.off[method] || at.After(by) {
			s.mu.Unlock()
			return errSkipped
		}
		b.take(now)
		s.mu.Unlock()
		if err := sleep(ctx, at.Sub(now)); err != nil {
			return err
		}
		err := call()
		a := judge(err)
		if a.verdict != limited || try == tellTries {
			return s.told(method, err)
		}
		s.mu.Lock()
		b.stop(time.Now(), max(a.after, retryAfter(try)))
		s.mu.Unlock()
	}
}

// told takes in Slack's answer. What it says for good is logged once, and not asked for again.
func (s *signs) told(method string, err error) error {
	code := errorCode(err)
	switch code {
	case "", "already_reacted", "no_reaction", "message_not_found", "invalid_thread_ts", "channel_not_found":
		return err
	case "missing_scope", "unknown_method", "not_agent_app", "not_allowed_token_type", "feature_disabled":
	default:
		return err
	}
	s.mu.Lock()
	known := s.off[method]
	s.off[method] = true
	s.mu.Unlock()
	if !known {
		s.ui.log.Warn(fmt.Sprintf("Slack doesn't let the app call %s; it does without, and this is logged once. Reinstall it with approvalbot manifest to have it", method), "code", code)
	}
	return err
}
