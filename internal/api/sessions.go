package api

import (
	"cmp"
	"context"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"approvalbot/internal/ledger"
)

// A sessionInfo is what the list of sessions says of one.
type sessionInfo struct {
	ID        string    `json:"sessionId"`
	Title     string    `json:"title"` // how its first message begins
	StartedAt time.Time `json:"startedAt"`
	LastAt    time.Time `json:"lastActivityAt"`
	Runs      int       `json:"runs"`

	tokens map[string]bool // whose it is
	last   int64           // Seq of the last message
}

// of tells whether the session is the token's own, or whether the token may see all.
func (i *sessionInfo) of(t *Token) bool { return t.may(ScopeAll) || i.tokens[t.Name] }

// sessions are the conversations: a reading of the journal that goes on where it stopped whenever somebody asks.
type sessions struct {
	journal Journal
	views   views

	turn chan struct{} // holds one token: who has it reads on
	mu   sync.Mutex    // guards what follows
	upTo int64
	byID map[string]*sessionInfo
	runs map[string]string // run to session; also of runs that wait for their turn
}

func newSessions(j Journal, v views) *sessions {
	return &sessions{journal: j, views: v, turn: make(chan struct{}, 1), byID: map[string]*sessionInfo{}, runs: map[string]string{}}
}

// catchUp reads what was recorded since the last time.
func (s *sessions) catchUp(ctx context.Context) error {
	select {
	case s.turn <- struct{}{}:
		defer func() { <-s.turn }()
	case <-ctx.Done():
		return ctx.Err()
	}
	head, err := s.journal.Head(ctx)
	if err != nil || head.Seq == s.upTo {
		return err
	}
	f := ledger.Filter{Kinds: []string{"message_received", "run_started"}, Until: head.Seq}
	for e, err := range s.journal.Read(ctx, s.upTo, f) {
		if err != nil {
			return err
		}
		s.apply(e)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.upTo = head.Seq
	return nil
}

func (s *sessions) apply(e ledger.Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.upTo = e.Seq
	info := s.byID[e.Session]
	if info == nil {
		info = &sessionInfo{ID: e.Session, StartedAt: e.Time.UTC(), tokens: map[string]bool{}}
		s.byID[e.Session] = info
	}
	info.last, info.LastAt = e.Seq, e.Time.UTC()
	switch b := e.Body.(type) {
	case *ledger.RunStarted:
		info.Runs++
		s.runs[e.Run] = e.Session
	case *ledger.MessageReceived:
		if info.Title == "" {
			info.Title = title(s.views.text(b.Text))
		}
		if b.Origin.Kind == "http" {
			info.tokens[b.Origin.Token] = true
		}
		if b.RunID != "" {
			s.runs[b.RunID] = e.Session
		}
	}
}

// title is the beginning of a text, on one line, with what was left out marked.
func title(text string) string {
	const most = 80
	text = strings.Join(strings.Fields(text), " ")
	if utf8.RuneCountInString(text) > most {
		return string([]rune(text)[:most-1]) + "…"
	}
	return text
}

// session finds a session.
func (s *sessions) session(ctx context.Context, id string) (*sessionInfo, bool, error) {
	if err := s.catchUp(ctx); err != nil {
		return nil, false, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	info, ok := s.byID[id]
	if !ok {
		return nil, false, nil
	}
	return info.copy(), true, nil
}

func (i *sessionInfo) copy() *sessionInfo {
	c := *i
	c.tokens = map[string]bool{}
	for t := range i.tokens {
		c.tokens[t] = true
	}
	return &c
}

// of finds the session of a run.
func (s *sessions) of(ctx context.Context, run string) (string, bool, error) {
	if err := s.catchUp(ctx); err != nil {
		return "", false, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	id, ok := s.runs[run]
	return id, ok, nil
}

// list gives a token's sessions whose last message is before a Seq, the latest first, one more than wanted if there is.
func (s *sessions) list(ctx context.Context, t *Token, before int64, most int) ([]*sessionInfo, error) {
	if err := s.catchUp(ctx); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	all := []*sessionInfo{}
	for _, i := range s.byID {
		if i.ID != "" && i.of(t) && (before == 0 || i.last < before) {
			all = append(all, i)
		}
	}
	slices.SortFunc(all, func(a, b *sessionInfo) int { return cmp.Compare(b.last, a.last) })
	all = all[:min(len(all), most+1)]
	for i := range all {
		all[i] = all[i].copy()
	}
	return all, nil
}

const (
	defaultSessions = 50
	maxSessions     = 200
)

// getSessions lists sessions.
func (s *Server) getSessions(w http.ResponseWriter, r *http.Request, t *Token) error {
	most, err := number(r, "limit", defaultSessions, 1, maxSessions)
	if err != nil {
		return err
	}
	before, err := number(r, "before", 0, 1, 1<<62)
	if err != nil {
		return err
	}
	list, err := s.sessions.list(r.Context(), t, before, int(most))
	if err != nil {
		return err
	}
	body := map[string]any{"ok": true}
	if len(list) > int(most) {
		list = list[:most]
		body["before"] = list[most-1].last // for the next page
	}
	body["sessions"] = list
	answer(w, http.StatusOK, body)
	return nil
}

// number reads a number of the query.
func number(r *http.Request, name string, otherwise, least, most int64) (int64, error) {
	v := r.URL.Query().Get(name)
	if v == "" {
		return otherwise, nil
	}
	n, err := strconv.ParseInt(v, 10, 64)
	if err != nil || n < least || n > most {
		return 0, &problem{status: http.StatusBadRequest, code: "INVALID_REQUEST", message: "the request is not valid", validation: &validation{
			[]string{}, map[string][]string{name: {"it has to be a number from " + strconv.FormatInt(least, 10) + " to " + strconv.FormatInt(most, 10)}}}}
	}
	return n, nil
}

// getSession gives the record of a session.
func (s *Server) getSession(w http.ResponseWriter, r *http.Request, t *Token) error {
	id := r.PathValue("sessionId")
	info, found, err := s.sessions.session(r.Context(), id)
	if err != nil {
		return err
	}
	if !found || !info.of(t) {
		return &problem{status: http.StatusNotFound, code: "NOT_FOUND", message: "there is no session " + clean(id)}
	}
	rec := &record{sessionInfo: info, Messages: []said{}, Runs: []*runRecord{}}
	fold := map[string]*ledger.Run{}
	var order []*ledger.Run
	for e, err := range s.Journal.Read(r.Context(), 0, ledger.Filter{Session: id}) {
		if err != nil {
			return err
		}
		if b, ok := e.Body.(*ledger.MessageReceived); ok {
			rec.Messages = append(rec.Messages, s.views.said(e, b))
		}
		if e.Run != "" && fold[e.Run] == nil {
			fold[e.Run] = &ledger.Run{}
			order = append(order, fold[e.Run])
		}
		if e.Run != "" {
			fold[e.Run].Apply(e)
		}
	}
	for _, run := range order {
		rec.Runs = append(rec.Runs, s.views.run(run))
	}
	answer(w, http.StatusOK, map[string]any{"ok": true, "session": rec})
	return nil
}
