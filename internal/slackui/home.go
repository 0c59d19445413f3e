package slackui

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/slack-go/slack"
	"github.com/slack-go/slack/slackevents"

	"approvalbot/internal/ledger"
)

// The Home tab is one page per person: what waits for them, what runs, what they allowed and decided; and for operators, how
// the bot is. It is computed whole, from the journal's reading and the registry, each time, and published if it says
// something else than before. It is no thing of the outbox: nobody else sees it, and it is computed anew when it is opened.
//
// It is refreshed when it is opened, and for an hour after that when the journal says something that may be on it, at most
// every three seconds a person. Somebody's publishing is one call at a time, in a lane of theirs.

const (
	// homeFor is how long after it was opened a Home tab is kept up to date.
	homeFor = time.Hour

	// homeEvery is how often one person's is published at most.
	homeEvery = 3 * time.Second

	// homesMost bounds for how many people that is done; those who opened it last count.
	homesMost = 200

	// homeTries is how often in a row Slack may not take a page before it has to be opened or changed again.
	homeTries = 6

	// noticeFor is how long an answer to a click stands on top.
	noticeFor = time.Minute

	// views.publish is a tier 4 method: 100 a minute for the workspace.
	publishEvery = 600 * time.Millisecond
	publishBurst = 30
)

// homes are the Home tabs that were opened lately.
type homes struct {
	wake chan struct{} // holds one

	mu      sync.Mutex
	open    map[string]*homeTab // by user
	bucket  bucket
	history history
}

// A homeTab is one person's.
type homeTab struct {
	by        ledger.Actor
	opened    time.Time
	dirty     bool // it may have to say something else
	busy      bool // it is being published
	published time.Time
	notBefore time.Time
	tries     int    // failed calls in a row
	shown     string // hash of what Slack has; empty: unknown
	hash      string // Slack's own for it; empty: unknown
	said      string // an answer to a click, in mrkdwn
	saidAt    time.Time
}

func newHomes() *homes {
	return &homes{
		wake: make(chan struct{}, 1), open: map[string]*homeTab{}, history: newHistory(),
		bucket: bucket{every: publishEvery, burst: publishBurst},
	}
}

func (h *homes) poke() {
	select {
	case h.wake <- struct{}{}:
	default:
	}
}

// opened takes in that somebody opened their Home tab; false: it is another event.
func (u *UI) opened(d eventDelivery) bool {
	e, ok := d.event.InnerEvent.Data.(*slackevents.AppHomeOpenedEvent)
	if !ok || e.Tab != "home" {
		return false
	}
	d.receipt.ack()
	if app := u.client.appID(); d.event.APIAppID != app || app == "" || e.User == "" {
		return true
	}
	hash := ""
	if e.View != nil {
		hash = e.View.Hash
	}
	u.home.see(ledger.Actor{Kind: ledger.ActorUser, Team: d.event.TeamID, ID: e.User, Via: surface}, hash)
	return true
}

// see notes that somebody looks at their Home tab.
func (h *homes) see(by ledger.Actor, hash string) {
	h.mu.Lock()
	t := h.open[by.ID]
	if t == nil {
		h.makeRoom()
		t = &homeTab{by: by}
		h.open[by.ID] = t
	}
	t.opened, t.dirty, t.hash = time.Now(), true, hash
	t.published, t.notBefore, t.tries = time.Time{}, time.Time{}, 0
	if hash == "" { // Slack has none: nothing that we know of stands there
		t.shown = ""
	}
	h.mu.Unlock()
	h.poke()
}

// makeRoom forgets who opened theirs longest ago, if there are too many. h.mu is held.
func (h *homes) makeRoom() {
	for len(h.open) >= homesMost {
		oldest := ""
		for user, t := range h.open {
			if oldest == "" || t.opened.Before(h.open[oldest].opened) {
				oldest = user
			}
		}
		delete(h.open, oldest)
	}
}

// notice answers somebody's click in their Home tab, on top of it.
func (h *homes) notice(user, sentence string) {
	h.mu.Lock()
	if t := h.open[user]; t != nil {
		t.said, t.saidAt, t.dirty, t.published = sentence, time.Now(), true, time.Time{}
	}
	h.mu.Unlock()
	h.poke()
}

// heard reads an event of the journal: what may stand on somebody's page is looked at again.
func (h *homes) heard(e ledger.Event) {
	switch e.Body.(type) {
	case *ledger.RunStarted, *ledger.RunFinished, *ledger.ApprovalShown, *ledger.ApprovalVoted, *ledger.ApprovalAmended,
		*ledger.ApprovalExtended, *ledger.ApprovalEscalated, *ledger.ApprovalResolved, *ledger.ToolFinished,
		*ledger.GrantGiven, *ledger.GrantRevoked, *ledger.Paused, *ledger.Resumed, *ledger.PolicyChanged:
	case *ledger.PermissionDecided:
	default:
		return
	}
	h.mu.Lock()
	h.history.heard(e)
	for _, t := range h.open {
		t.dirty = true
	}
	some := len(h.open) > 0
	h.mu.Unlock()
	if some {
		h.poke()
	}
}

// keepHomes publishes what has changed, until ctx ends.
func (u *UI) keepHomes(ctx context.Context) error {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		timer.Reset(u.refreshHomes(ctx))
		select {
		case <-u.home.wake:
		case <-timer.C:
		case <-ctx.Done():
			return nil
		}
	}
}

// refreshHomes starts the publishing of those that are due, and says when to look again.
func (u *UI) refreshHomes(ctx context.Context) time.Duration {
	h := u.home
	h.mu.Lock()
	defer h.mu.Unlock()
	now := time.Now()
	next := now.Add(time.Hour)
	later := func(at time.Time) {
		if at.Before(next) {
			next = at
		}
	}
	for user, t := range h.open {
		if now.Sub(t.opened) > homeFor {
			delete(h.open, user)
			continue
		}
		if t.said != "" {
			if at := t.saidAt.Add(noticeFor); at.After(now) {
				later(at)
			} else {
				t.said, t.dirty = "", true
			}
		}
		if !t.dirty || t.busy {
			continue
		}
		at := t.published.Add(homeEvery)
		if t.notBefore.After(at) {
			at = t.notBefore
		}
		if free := h.bucket.at(now, 0); free.After(at) {
			at = free
		}
		if at.After(now) {
			later(at)
			continue
		}
		t.dirty, t.busy, t.published = false, true, now
		h.bucket.take(now)
		if !u.replies.do(ctx, "home/"+user, func(ctx context.Context) { u.publish(ctx, t) }) {
			t.dirty, t.busy = true, false
		}
	}
	return max(next.Sub(now), time.Millisecond)
}

// publish computes somebody's page and brings it to Slack, if it says something new.
func (u *UI) publish(ctx context.Context, t *homeTab) {
	ctx, cancel := context.WithTimeout(u.about(ctx, "user", t.by.ID), looksLimit+callLimit)
	defer cancel()
	u.home.mu.Lock()
	said, shown, hash := t.said, t.shown, t.hash
	u.home.mu.Unlock()
	view := slack.HomeTabViewRequest{Type: slack.VTHomeTab, CallbackID: "home", Blocks: slack.Blocks{BlockSet: u.homeOf(ctx, t.by, said)}}
	now := viewHash(view)
	var err error
	if now != shown {
		req := slack.PublishViewContextRequest{UserID: t.by.ID, View: view}
		if hash != "" {
			req.Hash = &hash
		}
		var resp *slack.ViewResponse
		if resp, err = u.client.api.PublishViewContext(ctx, req); err == nil {
			hash = resp.Hash
		}
	}
	u.published(ctx, t, now, hash, err)
}

// published takes in how it went.
func (u *UI) published(ctx context.Context, t *homeTab, shown, hash string, err error) {
	h := u.home
	h.mu.Lock()
	defer h.mu.Unlock()
	defer h.poke()
	t.busy = false
	if err == nil {
		t.shown, t.hash, t.tries = shown, hash, 0
		return
	}
	t.shown, t.hash = "", ""
	t.tries++
	a := judge(err)
	switch {
	case a.code == "not_enabled":
		delete(h.open, t.by.ID)
		u.socket.once("home", "the app has no Home tab: install it again from its manifest (approvalbot manifest)")
		return
	case a.code == "hash_conflict" && t.tries == 1: // another window, or another process, has published in between
		t.dirty, t.published = true, time.Time{}
		return
	case a.verdict == limited:
		h.bucket.stop(time.Now(), max(a.after, firstRetry))
	}
	u.logger(ctx).Warn("a Home tab could not be published", "code", a.code, "tries", t.tries, "error", err)
	if t.tries < homeTries {
		t.dirty, t.notBefore = true, time.Now().Add(retryAfter(t.tries))
	}
}

func viewHash(v slack.HomeTabViewRequest) string {
	raw, err := json.Marshal(v)
	if err != nil {
		panic("slackui: encode a Home tab: " + err.Error()) // blocks always encode
	}
	sum := sha256.Sum256(raw)
	return hex.EncodeToString(sum[:])
}

const (
	// historyFor is how far back somebody's decisions are shown, and historyMost how many.
	historyFor  = 7 * 24 * time.Hour
	historyMost = 10

	// pastsMost bounds how many asks that are over are kept to be shown again.
	pastsMost = 500
)

// history is what people decided lately, the latest last. What happens while this process lives it hears; what was before is
// read from the journal when somebody asks for it first.
type history struct {
	deeds map[ledger.Person][]string // approvalIds
	pasts map[string]pastAsk         // by approvalId: those that won't change any more

	loading sync.Mutex
	loaded  bool // guarded by loading
}

type pastAsk struct {
	run  *ledger.Run
	call *ledger.Call
}

func newHistory() history {
	return history{deeds: map[ledger.Person][]string{}, pasts: map[string]pastAsk{}}
}

// heard reads an event. homes.mu is held.
func (h *history) heard(e ledger.Event) {
	p, approval := deed(e)
	if approval != "" {
		h.deeds[p] = remember(h.deeds[p], approval)
	}
}

// deed is who decided what with an event; no approval: nobody.
func deed(e ledger.Event) (p ledger.Person, approval string) {
	switch b := e.Body.(type) {
	case *ledger.ApprovalVoted:
		return e.Actor.Person(), b.Approval
	case *ledger.ApprovalResolved:
		if b.By != nil && b.Source == ledger.SourceUser {
			return b.By.Person(), b.Approval
		}
	}
	return p, ""
}

// remember adds one to the end, once, and keeps the last ones.
func remember(list []string, approval string) []string {
	list = slices.DeleteFunc(slices.Clone(list), func(s string) bool { return s == approval })
	list = append(list, approval)
	return list[max(0, len(list)-historyMost):]
}

// decidedBy are the last asks that somebody decided, the latest first.
func (u *UI) decidedBy(ctx context.Context, p ledger.Person) []string {
	h := u.home
	h.history.loading.Lock()
	if !h.history.loaded {
		h.history.loaded = u.loadHistory(ctx) == nil
	}
	h.history.loading.Unlock()
	h.mu.Lock()
	defer h.mu.Unlock()
	list := slices.Clone(h.history.deeds[p])
	slices.Reverse(list)
	return list
}

// loadHistory reads what was decided before this process began to follow the journal.
func (u *UI) loadHistory(ctx context.Context) error {
	before := map[ledger.Person][]string{}
	f := ledger.Filter{Kinds: []string{"approval_voted", "approval_resolved"}, From: time.Now().Add(-historyFor), Until: u.began}
	if u.began > 0 {
		for e, err := range u.journal.Read(ctx, 0, f) {
			if err != nil {
				u.logger(ctx).Warn("what was decided earlier could not be read", "error", err)
				return err
			}
			if p, approval := deed(e); approval != "" {
				before[p] = remember(before[p], approval)
			}
		}
	}
	u.home.mu.Lock()
	defer u.home.mu.Unlock()
	for p, list := range before {
		for _, later := range u.home.history.deeds[p] {
			list = remember(list, later)
		}
		u.home.history.deeds[p] = list
	}
	return nil
}

// pastOf is an ask that somebody decided, with its run.
func (u *UI) pastOf(ctx context.Context, approval string) (pastAsk, bool) {
	u.home.mu.Lock()
	known, ok := u.home.history.pasts[approval]
	u.home.mu.Unlock()
	if ok {
		return known, true
	}
	run, call, err := u.past(ctx, approval)
	if err != nil || call == nil {
		if err != nil && !errors.Is(err, context.Canceled) {
			u.logger(ctx).Warn("what was decided could not be read", "approval", approval, "error", err)
		}
		return pastAsk{}, false
	}
	if run.Finished != nil {
		u.home.mu.Lock()
		if len(u.home.history.pasts) >= pastsMost {
			clear(u.home.history.pasts)
		}
		u.home.history.pasts[approval] = pastAsk{run, call}
		u.home.mu.Unlock()
	}
	return pastAsk{run, call}, true
}
