package slackui

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/slack-go/slack"

	"approvalbot/internal/ledger"
)

// Every message has "Ask about this" in its menu. It opens a form with the message in it and a field for what
// is to be done; the run goes on in the message's thread, or, where the bot isn't, in the direct message with whoever
// asked.
//
// The quoted message's words enter the instructions, so its author is a requester as well as whoever asked: it is recorded
// as a message of theirs, before the request. That is why it has to be somebody who may start runs there. Otherwise a guest
// or a stranger could write something in a channel and wait for a member to have it done.

// shortcutAsk is the callback_id of the shortcut, and of its form.
const shortcutAsk = "ask_about"

const (
	quoteField = "what"
	quoteInput = "text"

	quoteFor    = time.Hour // how long a form may stay open
	quotesMost  = 1000      // forms that are open at once
	maxQuote    = 1500      // characters of the message that the form shows
	maxQuestion = 3000      // Slack's limit of a text field

	originQuote    = "quote"    // a message that somebody asked about
	originShortcut = "shortcut" // what they asked
)

// A quotation is the message that a form is about, as Slack delivered it with the choice in its menu. It is kept here and not
// in the form, which has no room for it.
type quotation struct {
	by          string // who chose it
	channel, ts string
	thread      string
	author, bot string
	team        string // the author's
	name        string // the author's, as the message says
	text        string
	files       []ledger.File
	until       time.Time
}

// quotes are the forms that are open.
type quotes struct {
	mu   sync.Mutex
	open map[string]quotation
}

func newQuotes() *quotes { return &quotes{open: map[string]quotation{}} }

func (q *quotes) put(m quotation) (key string) {
	key = uuid.NewString()
	now := time.Now()
	m.until = now.Add(quoteFor)
	q.mu.Lock()
	defer q.mu.Unlock()
	for k, old := range q.open {
		if now.After(old.until) {
			delete(q.open, k)
		}
	}
	if len(q.open) >= quotesMost {
		clear(q.open)
	}
	q.open[key] = m
	return key
}

func (q *quotes) get(key string) (quotation, bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	m, ok := q.open[key]
	return m, ok && time.Now().Before(m.until)
}

func (q *quotes) done(key string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	delete(q.open, key)
}

// askAboutThis opens the form.
func (u *UI) askAboutThis(ctx context.Context, cb slack.InteractionCallback, r *receipt) {
	r.ack()
	m := cb.Message
	q := quotation{
		by: cb.User.ID, channel: cb.Channel.ID, ts: m.Timestamp, thread: cmp.Or(m.ThreadTimestamp, m.Timestamp),
		author: m.User, bot: m.BotID, name: m.Username, team: cmp.Or(m.Team, cb.Team.ID), text: m.Text, files: attached(m.Files),
	}
	place := ledger.Place{Channel: q.channel, Thread: m.ThreadTimestamp}
	if q.channel == "" || q.ts == "" {
		u.logger(ctx).Warn("a shortcut without a message")
		return
	}
	opening, cancel := context.WithTimeout(ctx, triggerLimit)
	defer cancel()
	if _, err := u.client.api.OpenViewContext(opening, cb.TriggerID, u.renderer.quoteForm(q, u.quotes.put(q))); err != nil {
		u.logger(ctx).Warn("a form could not be opened", "error", err)
		u.tell(ctx, place, cb.User.ID, u.renderer.t("The form could not be opened in time. Please choose it again."))
	}
}

// quoteForm is the form: the message, and what is to be done about it.
func (v *renderer) quoteForm(q quotation, key string) slack.ModalViewRequest {
	shown := asLong(v.line(unescape(q.text), maxQuote), maxTextChars)
	if strings.TrimSpace(shown) == "" {
		shown = v.t("(no text)")
	}
	plain := func(s string) *slack.TextBlockObject {
		return slack.NewTextBlockObject(slack.PlainTextType, s, false, false)
	}
	author := v.phrase().form("{who} wrote:", slots{"who": func(p *phrase) { p.who(q.actor()) }})
	input := slack.NewPlainTextInputBlockElement(plain(v.t("Find out what caused it")), quoteInput)
	input.Multiline, input.MaxLength = true, maxQuestion
	return slack.ModalViewRequest{
		Type: slack.VTModal, CallbackID: shortcutAsk, PrivateMetadata: key,
		Title: plain(v.t("Ask approvalbot")), Submit: plain(v.t("Ask")), Close: plain(v.t("Cancel")),
		Blocks: slack.Blocks{BlockSet: []slack.Block{
			richText(paragraph(author.elements...), quote(text(shown))),
			slack.NewInputBlock(quoteField, plain(v.t("What should I do?")),
				plain(v.t("I ask before I do anything that changes something. The words above become part of the request.")), input),
		}},
	}
}

// actor is the author, as the journal knows them.
func (q quotation) actor() ledger.Actor {
	return ledger.Actor{Kind: ledger.ActorUser, Team: q.team, ID: cmp.Or(q.author, q.bot), Name: q.name, Via: surface}
}

// What is wrong with a form.
const (
	forgotten   = "I have forgotten which message this was about. Please copy your words, and choose “Ask about this” once more."
	ownMessage  = "That message is mine: write to me in its thread instead, where I remember what was said."
	wordsNeeded = "Please say what I should do."
	unrecorded  = "I can't record this, so nothing was started. Please try again in a moment."
	noPlace     = "I am not in that channel, and can't write to you either, so nothing was started. Invite me there first."
	pausedForm  = "approvalbot is paused, so nothing starts until it is resumed. Leave this open, or ask again then."
	foreignText = "Its author may not start runs here, so I don't take their words as instructions. Say yourself what I should do, in a message that mentions me."
)

// askedAbout takes the form that was sent.
func (u *UI) askedAbout(ctx context.Context, s *submission) {
	limited, cancel := context.WithTimeout(ctx, receiveLimit)
	defer cancel()
	q, known := u.quotes.get(s.subject)
	what := strings.TrimSpace(s.text(quoteField, quoteInput))
	_, paused := u.approvals.Paused()
	var wrong string
	switch {
	case !known || q.by != s.by.ID:
		wrong = u.renderer.t(forgotten)
	case what == "":
		wrong = u.renderer.t(wordsNeeded)
	case q.bot != "" && q.bot == u.client.BotID, q.author == u.client.BotUser:
		wrong = u.renderer.t(ownMessage)
	case paused:
		wrong = u.renderer.t(pausedForm)
	default:
		wrong = u.askThere(ctx, limited, s, q, what)
	}
	if wrong == "" {
		u.quotes.done(s.subject)
		s.close()
		return
	}
	if !s.wrong(map[string]string{quoteField: wrong}) && known {
		u.tell(ctx, ledger.Place{Channel: q.channel}, s.by.ID, escape(wrong))
	}
}

// askThere starts the run. It returns what is wrong, for the person.
func (u *UI) askThere(ctx, limited context.Context, s *submission, q quotation, what string) (wrong string) {
	here := u.listens(limited, q.channel)
	n := remark{team: s.by.Team, user: s.by.ID, channel: q.channel, direct: strings.HasPrefix(q.channel, "D") || !here}
	if why := u.mayStart(limited, n); why != "" {
		return u.renderer.lang.Recorded(why)
	}
	if _, paused := u.approvals.Paused(); paused {
		return u.renderer.t("approvalbot is paused.") + " " + u.renderer.t("Nothing starts until it is resumed. Please ask again then.")
	}
	if !u.mayBeQuoted(limited, q) {
		return u.renderer.t(foreignText)
	}
	place := ledger.Place{Team: u.client.Team, Channel: q.channel, Thread: q.thread}
	if !here {
		var err error
		if place, err = u.besides(limited, s.by.ID, q); err != nil {
			u.logger(ctx).Warn("a message about a quoted one could not be sent", "error", err)
			return u.renderer.t(noPlace)
		}
	}
	session := sessionOf(u.client.Team, place.Channel, place.Thread)
	if err := u.record(limited, session, place, s, q, what); err != nil {
		u.logger(ctx).Error("a request about a message could not be recorded", "error", err)
		return u.renderer.t(unrecorded)
	}
	u.threads.add(session)
	return ""
}

// record journals the quoted message as its author's, and then the request.
func (u *UI) record(ctx context.Context, session string, place ledger.Place, s *submission, q quotation, what string) error {
	direct := strings.HasPrefix(place.Channel, "D")
	author := q.actor()
	if q.author != "" {
		author.Name = u.userName(ctx, q.author)
	}
	by := s.by
	by.Name = cmp.Or(u.userName(ctx, by.ID), by.Name)
	messages := []ledger.Event{{Session: session, Actor: author, Body: &ledger.MessageReceived{
		Origin: ledger.Origin{Kind: originQuote, Team: u.client.Team, Channel: q.channel, TS: q.ts, Key: s.view},
		Place:  place, Direct: direct, Mode: ledger.ModeInteractive, Disposition: ledger.Context, Files: q.files,
		Text: "[the message that the next one is about] " + u.text(ctx, q.text),
	}}, {Session: session, Actor: by, Body: &ledger.MessageReceived{
		Origin: ledger.Origin{Kind: originShortcut, Team: u.client.Team, Channel: q.channel, TS: q.ts, Key: s.view},
		Place:  place, Direct: direct, Mode: ledger.ModeInteractive, Disposition: ledger.Starts, Text: what,
	}}}
	for _, e := range messages {
		_, err := u.agent.Receive(ctx, e)
		if _, before := errors.AsType[*ledger.ConflictError](err); err != nil && !before {
			return err
		}
	}
	return nil
}

// listens tells whether the bot works in a channel: it is in it, and the operator lets it.
func (u *UI) listens(ctx context.Context, channel string) bool {
	if len(u.channels) > 0 && !strings.HasPrefix(channel, "D") && !slices.Contains(u.channels, channel) {
		return false
	}
	in, err := u.client.directory.Member(ctx, channel, u.client.BotUser)
	return in && err == nil
}

// mayBeQuoted tells whether a message's author may instruct the agent where it was written.
func (u *UI) mayBeQuoted(ctx context.Context, q quotation) bool {
	if q.bot != "" { // whoever it writes for: as in a mention (trusts)
		return u.approvals.MayBotStart(q.bot) == nil
	}
	if q.author == q.by {
		return true // who asks may, and that was looked at
	}
	return u.approvals.MayStart(ctx, ledger.Person{Team: q.team, ID: q.author}, q.channel) == nil
}

// besides begins a thread in the direct message with somebody, for a message in a channel where the bot isn't.
func (u *UI) besides(ctx context.Context, user string, q quotation) (ledger.Place, error) {
	dm, _, _, err := u.client.api.OpenConversationContext(ctx, &slack.OpenConversationParameters{Users: []string{user}})
	if err != nil {
		return ledger.Place{}, err
	}
	posted, err := u.deliver(ctx, dm.ID, "", u.renderer.besides(q, u.client.URL))
	if err != nil {
		return ledger.Place{}, err
	}
	return ledger.Place{Team: u.client.Team, Channel: posted.Channel, Thread: posted.TS}, nil
}

func (v *renderer) besides(q quotation, base string) rendering {
	address := strings.TrimSuffix(base, "/") + "/archives/" + q.channel + "/p" + strings.ReplaceAll(q.ts, ".", "")
	p := v.phrase().form("You asked about {message}. I am not in that channel, so I answer here.", slots{"message": func(p *phrase) {
		words := v.t("a message")
		p.elements = append(p.elements, slack.NewRichTextSectionLinkElement(address, words, nil))
		p.plain.WriteString(words)
	}})
	return rendering{
		text: fallback(p.plain.String()), blocks: []slack.Block{richText(paragraph(p.elements...))},
		thing: ledger.Thing{Kind: kindPost, ID: uuid.NewString()},
	}
}

// askedLine says who asked what about a message, in whose thread nobody has written it; nil for every other request.
func (v *renderer) askedLine(msg ledger.Event) *slack.RichTextSection {
	m, ok := msg.Body.(*ledger.MessageReceived)
	if !ok || m.Origin.Kind != originShortcut {
		return nil
	}
	p := v.phrase().form("{who} asked about this message: “{what}”", slots{
		"who":  func(p *phrase) { p.who(msg.Actor) },
		"what": func(p *phrase) { p.tell(m.Text, maxReasonChars) },
	})
	return paragraph(p.elements...)
}
