package slackui

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/slack-go/slack/slackevents"

	"approvalbot/internal/approvals"
	"approvalbot/internal/ledger"
)

const (
	// namesLimit bounds how long a message waits for the names of those it mentions, and namesMost how many are asked
	// for. A name is a courtesy: without it the id stands there.
	namesLimit = 2 * time.Second
	namesMost  = 20

	// threadsMost bounds what is remembered of threads; beyond it the journal is asked again.
	threadsMost = 20_000

	// receiveLimit bounds the recording of a message. Slack has sent it again long before.
	receiveLimit = 30 * time.Second
)

// What people are told when a message starts nothing.
const (
	helpSentence       = "Mention me with what I should do, in one message. I'll ask here before I do anything that changes something."
	elsewhereSentence  = "I don't take requests in this channel."
	unsureSentence     = "I can't find out whether you may start runs, so I don't. Please try again in a moment."
	notRecordedMessage = "I can't record this, so nothing was started. Please try again in a moment."
)

// An eventDelivery is one event as Slack delivered it.
type eventDelivery struct {
	event   slackevents.EventsAPIEvent
	attempt int // 0 the first time
	receipt *receipt
}

// A remark is a message of a person, or of a bot that the operator trusts, before it is decided what it does.
type remark struct {
	team, user  string // whose; a bot or workflow may have no user
	bot         string // B…, of another bot
	botName     string // as the message says
	channel     string
	ts, thread  string // thread is empty outside of threads
	text        string // as Slack delivered it
	files       []ledger.File
	direct      bool
	mentionsBot bool
	attempt     int
	receipt     *receipt
}

// event takes in an event, in the socket's goroutine.
func (u *UI) event(ctx context.Context, d eventDelivery) {
	if u.pane(ctx, d) || u.opened(d) {
		return
	}
	n, ok := u.remark(d)
	if !ok {
		d.receipt.ack()
		return
	}
	session := n.session(u.client.Team)
	ids := []string{"session", session, "user", n.user, "channel", n.channel, "ts", n.ts}
	if !u.lanes.do(ctx, "session/"+session, func(ctx context.Context) { u.receive(u.about(ctx, ids...), n) }) {
		// Not acknowledged: Slack delivers it again, when there may be room.
		u.logger(u.about(ctx, ids...)).Warn("too much at once: a message has to come again")
	}
}

// remark reads an event as a message of a person or a trusted bot; false if it isn't one, or not one for us.
func (u *UI) remark(d eventDelivery) (remark, bool) {
	if app := u.client.appID(); d.event.APIAppID != app || app == "" {
		u.log.Warn("an event for another app", "app", abridge(d.event.APIAppID))
		return remark{}, false
	}
	n := remark{team: d.event.TeamID, attempt: d.attempt, receipt: d.receipt}
	switch e := d.event.InnerEvent.Data.(type) {
	case *slackevents.AppMentionEvent:
		if e.Edited != nil {
			return remark{}, false
		}
		n.user, n.channel, n.ts, n.thread, n.text = e.User, e.Channel, e.TimeStamp, e.ThreadTimeStamp, e.Text
		n.from(e.UserTeam, e.SourceTeam)
		n.bot, n.files, n.mentionsBot = e.BotID, attached(e.Files), true
	case *slackevents.MessageEvent:
		if !freshlyWritten(e) {
			return remark{}, false
		}
		n.user, n.channel, n.ts, n.thread, n.text = e.User, e.Channel, e.TimeStamp, e.ThreadTimeStamp, e.Text
		n.from(e.UserTeam, e.SourceTeam)
		n.direct = e.ChannelType == slackevents.ChannelTypeIM
		n.mentionsBot = mentions(e.Text, u.client.BotUser)
		n.bot, n.botName = e.BotID, e.Username
		if e.Message != nil {
			n.files = attached(e.Message.Files)
		}
	default:
		return remark{}, false
	}
	n.direct = n.direct || strings.HasPrefix(n.channel, "D")
	if n.user == "" && n.bot == "" || n.user == u.client.BotUser || n.channel == "" || n.ts == "" {
		return remark{}, false
	}
	if n.bot != "" {
		return n, u.trusts(n)
	}
	inThread := n.thread != "" && n.thread != n.ts
	return n, n.direct || n.mentionsBot || inThread
}

// freshlyWritten tells whether a message is one that somebody has just written: no edit, no deletion, no notice of Slack's.
func freshlyWritten(e *slackevents.MessageEvent) bool {
	if e.Message != nil && e.Message.Edited != nil {
		return false
	}
	switch e.SubType {
	case "", "file_share":
		return true
	case "bot_message":
		return e.BotID != ""
	}
	return false
}

// trusts tells whether another bot's message is one for us: it mentions us, and the operator has listed the bot. What it
// writes otherwise is nothing to us, and our own messages never are.
func (u *UI) trusts(n remark) bool {
	if n.bot == u.client.BotID || n.direct || !n.mentionsBot {
		return false
	}
	if u.approvals.MayBotStart(n.bot) == nil {
		return true
	}
	u.socket.once("bot "+n.bot, "a bot that isn't in APPROVALBOT_TRUSTED_BOTS mentioned approvalbot", "bot", abridge(n.bot))
	return false
}

// from names the author's own workspace, where the message says that it is another one.
func (n *remark) from(teams ...string) {
	for _, t := range teams {
		if t != "" {
			n.team = t
			return
		}
	}
}

func mentions(text, user string) bool {
	return strings.Contains(text, "<@"+user+">") || strings.Contains(text, "<@"+user+"|")
}

// root is the first message of the remark's thread: its own, if it is in none.
func (n remark) root() string {
	if n.thread != "" {
		return n.thread
	}
	return n.ts
}

// session names the conversation: a thread. A direct message that is in none begins one, so that what is forgotten there
// holds up nothing that is asked later.
func (n remark) session(team string) string { return sessionOf(team, n.channel, n.root()) }

func sessionOf(team, channel, thread string) string {
	return "slack/" + team + "/" + channel + "/" + thread
}

// receive decides what a message does, records it, and acknowledges it then.
func (u *UI) receive(ctx context.Context, n remark) {
	limited, cancel := context.WithTimeout(ctx, receiveLimit)
	defer cancel()
	session := n.session(u.client.Team)
	if !n.direct && !n.mentionsBot {
		ours, err := u.threads.ours(limited, u.journal, session)
		if err != nil {
			u.logger(ctx).Error("a message could not be looked at; it has to come again", "error", err)
			return
		}
		if !ours {
			n.receipt.ack()
			return
		}
	} else if n.bot == "" && u.stopWord(limited, n) {
		u.stopByWord(ctx, limited, n)
		return
	}
	m, why := u.consider(limited, n)
	if m == nil {
		n.receipt.ack()
		return
	}
	by := u.author(limited, n)
	_, err := u.agent.Receive(limited, ledger.Event{Session: session, Actor: by, Body: m})
	u.received(ctx, n, m, why, err)
	if err == nil && m.Disposition != ledger.Refused {
		u.streaks.count(session, n.bot != "")
	}
	if err == nil && m.Disposition == ledger.Starts {
		u.threads.add(session)
	}
}

// author is who wrote a message, as the journal knows them. A bot is known by its user, where it has one.
func (u *UI) author(ctx context.Context, n remark) ledger.Actor {
	by := ledger.Actor{Kind: ledger.ActorUser, Team: n.team, ID: n.user, Via: surface}
	if n.user == "" {
		by.ID, by.Name = n.bot, n.botName
		return by
	}
	by.Name = u.userName(ctx, n.user)
	return by
}

// received acknowledges a message that was recorded, now or before, and tells its author what it didn't start.
func (u *UI) received(ctx context.Context, n remark, m *ledger.MessageReceived, why string, err error) {
	place := ledger.Place{Channel: n.channel, Thread: n.thread}
	if _, before := errors.AsType[*ledger.ConflictError](err); before {
		n.receipt.ack()
		return
	}
	if err != nil {
		// Not acknowledged: Slack delivers it again, and then it may be recorded.
		u.logger(ctx).Error("a message could not be recorded", "error", err)
		if n.attempt == 0 && m.Disposition != ledger.Context {
			u.tell(ctx, place, n.user, u.renderer.t(notRecordedMessage))
		}
		return
	}
	n.receipt.ack()
	if why != "" && n.bot == "" {
		u.tell(ctx, place, n.user, why)
	}
}

// consider says what a message does, and what its author is told if it starts nothing. Nil: nothing at all.
func (u *UI) consider(ctx context.Context, n remark) (*ledger.MessageReceived, string) {
	m := &ledger.MessageReceived{
		Origin:      ledger.Origin{Kind: "slack", Team: u.client.Team, Channel: n.channel, TS: n.ts},
		Place:       ledger.Place{Team: u.client.Team, Channel: n.channel, Thread: n.root()},
		Disposition: ledger.Starts, Direct: n.direct, Mode: ledger.ModeInteractive, Files: n.files,
	}
	asks := n.direct || n.mentionsBot
	if why := u.mayStart(ctx, n); why != "" {
		if !asks {
			return nil, "" // who may not instruct the agent doesn't do it by writing into its thread, either
		}
		m.Disposition, m.Reason = ledger.Refused, why
		m.Text = u.text(ctx, n.text)
		return m, escape(u.renderer.lang.Recorded(why))
	}
	m.Text = u.text(ctx, n.text)
	if n.bot != "" && u.streaks.over(n.session(u.client.Team)) {
		m.Disposition, m.Reason = ledger.Refused, botsAlone
		u.log.Warn("bots talk among themselves: a person has to write in that thread before they start another run", "bot", n.bot, "thread", n.root())
		return m, ""
	}
	if p, paused := u.approvals.Paused(); paused && asks {
		m.Disposition, m.Reason = ledger.Refused, p.Clause()
		return m, u.renderer.pausedSentence(p, false)
	}
	switch {
	case !asks:
		m.Disposition = ledger.Context
	case m.Text == "" && len(m.Files) == 0:
		m.Disposition, m.Reason = ledger.Refused, "an empty message"
		return m, u.renderer.t(helpSentence)
	}
	return m, ""
}

// mayStart is empty if the author may start runs there, and else says why not, in English: it is recorded.
func (u *UI) mayStart(ctx context.Context, n remark) string {
	if !n.direct && len(u.channels) > 0 && !slices.Contains(u.channels, n.channel) {
		return elsewhereSentence
	}
	var err error
	if n.bot != "" {
		err = u.approvals.MayBotStart(n.bot)
	} else {
		err = u.approvals.MayStart(ctx, ledger.Person{Team: n.team, ID: n.user}, n.channel)
	}
	if err == nil {
		return ""
	}
	if r, ok := errors.AsType[*approvals.RefusedError](err); ok && r.Reason != "" {
		return r.Reason
	}
	u.logger(ctx).Warn("it is not known whether somebody may start a run", "error", err)
	return unsureSentence
}

// text gives a message as its author meant it: mentions by name, links by their label and address, and Slack's three
// escapes undone, once. Our own mention is how we are called, not what was said.
func (u *UI) text(ctx context.Context, raw string) string {
	ctx, cancel := context.WithTimeout(ctx, namesLimit)
	defer cancel()
	return u.words(ctx, raw, namesMost)
}

// words does it with so many names asked for at most.
func (u *UI) words(ctx context.Context, raw string, most int) string {
	names := namer{ui: u, left: most}
	var out strings.Builder
	for raw != "" {
		open := strings.IndexByte(raw, '<')
		shut := -1
		if open >= 0 {
			shut = strings.IndexByte(raw[open:], '>')
		}
		if shut < 0 {
			out.WriteString(unescape(raw))
			break
		}
		out.WriteString(unescape(raw[:open]))
		out.WriteString(names.token(ctx, raw[open+1:open+shut]))
		raw = raw[open+shut+1:]
	}
	return strings.TrimSpace(out.String())
}

// unescape undoes Slack's escaping of exactly three characters.
func unescape(s string) string {
	return strings.NewReplacer("&lt;", "<", "&gt;", ">", "&amp;", "&").Replace(s)
}

// A namer says tokens in words. It asks for a few names only.
type namer struct {
	ui   *UI
	left int
}

// token is what stands between < and >.
func (n *namer) token(ctx context.Context, token string) string {
	body, label, _ := strings.Cut(token, "|")
	label = unescape(label)
	switch {
	case strings.HasPrefix(body, "@"):
		return n.user(ctx, body[1:], label)
	case strings.HasPrefix(body, "#"):
		return n.channel(ctx, body[1:], label)
	case strings.HasPrefix(body, "!"):
		return specialMention(body[1:], label)
	}
	target := unescape(body)
	if label == "" || label == target || label == strings.TrimPrefix(target, "mailto:") {
		return strings.TrimPrefix(target, "mailto:")
	}
	return fmt.Sprintf("%s (%s)", label, target)
}

func (n *namer) user(ctx context.Context, id, label string) string {
	if id == n.ui.client.BotUser {
		return ""
	}
	if n.left > 0 {
		n.left--
		if name := n.ui.userName(ctx, id); name != "" {
			return "@" + name
		}
	}
	if label != "" {
		return "@" + strings.TrimPrefix(label, "@")
	}
	return "@" + id
}

func (n *namer) channel(ctx context.Context, id, label string) string {
	if label == "" && n.left > 0 {
		n.left--
		if c, err := n.ui.client.directory.Channel(ctx, id); err == nil {
			label = c.Name
		}
	}
	if label == "" {
		label = id
	}
	return "#" + label
}

// specialMention says <!here>, <!subteam^S…|@name>, <!date^…|fallback> and the like.
func specialMention(body, label string) string {
	name, _, _ := strings.Cut(body, "^")
	switch {
	case label != "":
		return label
	case name == "subteam":
		return "@" + strings.TrimPrefix(body, "subteam^")
	}
	return "@" + unescape(name)
}

// userName is what somebody is called; empty if that can't be found out.
func (u *UI) userName(ctx context.Context, id string) string {
	p, err := u.client.directory.Person(ctx, ledger.Person{ID: id})
	if err != nil {
		return ""
	}
	return unescape(p.Name)
}

// maxBotStreak is how many messages of other bots in a row start runs in a thread. Two bots that answer each other would go on
// for ever, and nobody would be there to see it.
const maxBotStreak = 10

// botsAlone is why the next one starts nothing, as it is recorded.
const botsAlone = "bots have been alone in this thread for too long"

// streaks count the messages of bots since the last one of a person, by conversation. A restart forgets them: it ends no
// endless loop, and starts none.
type streaks struct {
	mu sync.Mutex
	n  map[string]int
}

func newStreaks() *streaks { return &streaks{n: map[string]int{}} }

func (s *streaks) count(session string, bot bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !bot {
		delete(s.n, session)
		return
	}
	if len(s.n) >= threadsMost {
		clear(s.n)
	}
	s.n[session]++
}

func (s *streaks) over(session string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.n[session] >= maxBotStreak
}

// threads remembers which conversations are ours, so that other people's threads cost nothing but one look.
type threads struct {
	mu    sync.Mutex
	known map[string]bool
}

func newThreads() *threads { return &threads{known: map[string]bool{}} }

func (t *threads) add(session string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.known) >= threadsMost {
		clear(t.known)
	}
	t.known[session] = true
}

// ours tells whether anything was ever started in a conversation.
func (t *threads) ours(ctx context.Context, l *ledger.Ledger, session string) (bool, error) {
	t.mu.Lock()
	known, ok := t.known[session]
	t.mu.Unlock()
	if ok {
		return known, nil
	}
	found, err := started(ctx, l, session)
	if err != nil {
		return false, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.known) >= threadsMost {
		clear(t.known)
	}
	if !t.known[session] { // a message may have started something meanwhile
		t.known[session] = found
	}
	return t.known[session], nil
}

func started(ctx context.Context, l *ledger.Ledger, session string) (bool, error) {
	for e, err := range l.Read(ctx, 0, ledger.Filter{Session: session}) {
		if err != nil {
			return false, err
		}
		switch b := e.Body.(type) {
		case *ledger.MessageReceived:
			if b.Disposition == ledger.Starts {
				return true, nil
			}
		case *ledger.RunStarted:
			return true, nil
		}
	}
	return false, nil
}
