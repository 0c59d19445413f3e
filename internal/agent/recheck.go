package agent

import (
	"errors"
	"fmt"
	"iter"

	"approvalbot/internal/ledger"
	"approvalbot/internal/model"
)

// A Recheck folds the transcripts of all sessions and computes every request to a model again: what was sent is what the
// journal says, and every call has one result. Give it all events of a journal in order ([ledger.VerifyOptions.Check]).
//
// What was erased can't be computed again: of requests that were built on a run that has been pruned since, it only
// counts that they are there.
//
// The zero value is ready, and remembers all sessions. With Read it needs no more memory for a longer journal: it forgets
// sessions in which nothing runs, and reads them again when something does.
type Recheck struct {
	Read     func(session string, until int64) iter.Seq2[ledger.Event, error] // a session's events up to and with a Seq
	Requests int64                                                            // that were computed again
	Erased   int64                                                            // requests that can't be: parts were erased, or another version made them

	sessions map[string]*conversation
	idle     []string // sessions in which nothing runs, the longest idle first
}

// A conversation is a session that a Recheck has in memory.
type conversation struct {
	Transcript
	erased bool // parts of it were
	idle   bool
}

// keepIdle is how many idle sessions a Recheck remembers, for those that are soon gone on with.
const keepIdle = 32

// Event takes the next event. An error says that the event doesn't fit the ones before.
func (c *Recheck) Event(e ledger.Event) error {
	if e.Session == "" {
		return nil
	}
	s, err := c.session(e)
	if err != nil || s == nil {
		return err
	}
	if sent := sentBy(e.Body); sent != nil {
		if err := c.request(s, *sent); err != nil {
			return err
		}
	}
	if err := s.take(e); err != nil {
		return err
	}
	switch e.Kind() {
	case "run_started":
		s.idle = false
	case "run_finished":
		c.rest(e.Session, s)
	}
	return nil
}

// A sent is a request to a model, as an event names it.
type sent struct {
	hash    string
	summary *ledger.Compaction // it asked for the summary of this; nil: for an answer
}

// sentBy is the request that an event is about; nil if it is about none.
func sentBy(b ledger.Body) *sent {
	switch b := b.(type) {
	case *ledger.ModelCompleted:
		return &sent{hash: b.RequestHash}
	case *ledger.ModelFailed:
		return &sent{hash: b.RequestHash, summary: b.Summary}
	case *ledger.SessionCompacted:
		if b.Method == ledger.CompactSummary {
			return &sent{hash: b.RequestHash, summary: &b.Compaction}
		}
	}
	return nil
}

// request compares the request that the journal gives with the one that was sent.
func (c *Recheck) request(s *conversation, q sent) error {
	if q.summary != nil && q.summary.Version != summaryVersion {
		c.Erased++
		return nil
	}
	c.Requests++
	req := s.Request()
	if q.summary != nil {
		req = s.SummaryRequest(*q.summary)
	}
	got := model.RequestHash(req)
	switch {
	case s.Complete() && got == q.hash:
		return nil
	case s.erased:
		c.Requests--
		c.Erased++
		return nil
	case !s.Complete():
		return errors.New("the model was sampled while a call of the round before had no result")
	}
	return fmt.Errorf("the request that the journal gives (SHA-256 %.12s…) is not the one that was sent (%.12s…)", got, q.hash)
}

// session finds the event's session. It is nil where it isn't in memory and the event will be read again when it is
// needed.
func (c *Recheck) session(e ledger.Event) (*conversation, error) {
	if s := c.sessions[e.Session]; s != nil {
		return s, nil
	}
	s := &conversation{}
	if c.Read != nil {
		switch e.Body.(type) {
		case *ledger.RunStarted, *ledger.ModelCompleted, *ledger.ModelFailed, *ledger.SessionCompacted:
		default:
			return nil, nil
		}
		for earlier, err := range c.Read(e.Session, e.Seq-1) {
			if err != nil {
				return nil, err
			}
			if err := s.take(earlier); err != nil {
				return nil, err
			}
		}
	}
	if c.sessions == nil {
		c.sessions = map[string]*conversation{}
	}
	c.sessions[e.Session] = s
	return s, nil
}

// take folds one event.
func (s *conversation) take(e ledger.Event) error {
	if _, ok := e.Body.(*ledger.Erased); ok {
		s.erased = true
	}
	return s.Apply(e)
}

// rest notes that nothing runs in a session any more, and forgets the one that has been idle for longest.
func (c *Recheck) rest(name string, s *conversation) {
	if c.Read == nil || s.idle {
		return
	}
	s.idle = true
	c.idle = append(c.idle, name)
	for len(c.idle) > keepIdle {
		oldest := c.idle[0]
		c.idle = c.idle[1:]
		if o := c.sessions[oldest]; o != nil && o.idle {
			delete(c.sessions, oldest)
		}
	}
}
