package slackui

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/slack-go/slack"

	"approvalbot/internal/approvals"
	"approvalbot/internal/ledger"
)

const (
	// ackBy is when a click is acknowledged whatever has become of it: half a second before Slack gives up and shows the
	// person a warning.
	ackBy = 2500 * time.Millisecond

	// decideLimit bounds the recording of a decision; it counts long after the acknowledgement.
	decideLimit = 30 * time.Second

	// triggerLimit is how long Slack lets us open a modal after a click.
	triggerLimit = 3 * time.Second
)

// What people are told privately when a click has no effect.
const (
	notRecordedClick = "I can't record this, so nothing is approved. The buttons stay; try again."
	notRecordedStop  = "I can't record this, so nothing is stopped yet. The button stays; try again."
	misfitClick      = "This button doesn't belong to this message, so nothing was decided. Use the buttons of the card itself."
	strangeClick     = "This click came from another workspace or app, so nothing was decided."
	unknownCard      = "I don't know this request: it isn't in my records, so it can't be decided here. Nothing was done."
	unknownRun       = "I don't know this run: it isn't in my records, so there is nothing to stop."
	endedRun         = "This run is over already."
	doubleCard       = "This request was posted twice by mistake. The other card counts."
	busyClick        = "There is too much going on, so nothing was decided. Please try again in a moment."
	failedClick      = "Something went wrong, so nothing was decided. Please try again."
)

// A click is what a person did to a button of ours. Nothing in it is believed but who clicked; the rest has to fit what
// the journal says.
type click struct {
	action, value string
	block         string // block_id of the button's block
	by            ledger.Actor

	// In a message:
	channel, ts, thread string
	byUs                bool // we wrote the message

	private bool // only the one who clicked sees the message: an answer to a command

	// In a modal, or in the Home tab, where there is no subject:
	view, hash, subject string // subject: the approvalId that the modal is about
	home                bool
	values              map[string]map[string]slack.BlockAction // what is filled in

	response string // where a click in a message can be answered for half an hour

	trigger string
	at      time.Time // when it reached us
	receipt *receipt
}

func (c *click) modal() bool { return c.view != "" && !c.home }

// inMessage tells of a click on a message, whose place says more of what it is about.
func (c *click) inMessage() bool { return c.view == "" }

// place is where the person can be told something.
func (c *click) place() ledger.Place { return ledger.Place{Channel: c.channel, Thread: c.thread} }

// click takes in a click, in the socket's goroutine.
func (u *UI) click(ctx context.Context, cb slack.InteractionCallback, r *receipt) {
	for _, a := range cb.ActionCallback.BlockActions {
		if a != nil {
			u.act(ctx, u.parse(cb, a, r), cb)
			return // a click is one action
		}
	}
	r.ack()
}

func (u *UI) parse(cb slack.InteractionCallback, a *slack.BlockAction, r *receipt) *click {
	c := &click{
		action: a.ActionID, value: a.Value, block: a.BlockID, trigger: cb.TriggerID, at: time.Now(), receipt: r,
		by: u.person(cb),
	}
	c.chose(a)
	if cb.Container.Type == "view" || cb.Container.ViewID != "" {
		c.view, c.hash, c.subject = cb.View.ID, cb.View.Hash, cb.View.PrivateMetadata
		if cb.View.State != nil {
			c.values = cb.View.State.Values
		}
		c.home = cb.View.Type == slack.VTHomeTab
		return c
	}
	c.channel, c.ts, c.thread = cb.Container.ChannelID, cb.Container.MessageTs, cb.Container.ThreadTs
	c.private, c.response = cb.Container.IsEphemeral, cb.ResponseURL
	m := cb.Message
	c.byUs = !cb.Container.IsEphemeral && (m.BotID == u.client.BotID || m.BotID == "" && m.User == u.client.BotUser) &&
		(m.Timestamp == "" || m.Timestamp == c.ts) && (cb.Channel.ID == "" || cb.Channel.ID == c.channel)
	return c
}

// act hands a click to the lane of what it is about and of who clicked: nobody's click waits for another person's, whose
// look-up may take seconds. The order among people is the journal's. A click is acknowledged when its effect is recorded,
// or when Slack would lose patience.
func (u *UI) act(ctx context.Context, c *click, cb slack.InteractionCallback) {
	known, ok := verbs[c.action]
	if !ok {
		u.socket.once("action "+c.action, "a button that isn't known", "action", abridge(c.action))
		c.receipt.ack()
		return
	}
	work := func(ctx context.Context, c *click) { known.work(u, ctx, c) }
	if !u.fits(cb, c) {
		work = func(ctx context.Context, c *click) { u.refuse(ctx, c, u.renderer.t(strangeClick)) }
	} else if c.inMessage() && c.byUs {
		u.outbox.answerable(c.channel, c.ts, c.response, c.at)
	}
	if !u.inLane(ctx, known.lane(c), c.receipt, c.ids(), func(ctx context.Context) { work(ctx, c) }) {
		u.refuse(ctx, c, u.renderer.t(busyClick))
	}
}

// ids are what is known of a click before its subject is.
func (c *click) ids() []string {
	return []string{"action", c.action, verbs[c.action].about, c.value, "user", c.by.ID, "channel", c.channel, "ts", c.ts}
}

// fits tells whether a click is from our workspace and about our app.
func (u *UI) fits(cb slack.InteractionCallback, c *click) bool {
	return u.ours(cb) && (c.inMessage() || cb.View.AppID == "" || cb.View.AppID == u.client.appID())
}

// A subject is the ask that a click is about, as the journal has it.
type subject struct {
	revision int // of its arguments, when it was looked up
	approval string
	messages []carrier // that carry it
	until    time.Time // the deadline on one whose post hasn't been answered yet
	shown    bool      // the showing of this very message is recorded
	over     bool      // all of its run is over and settled
	alien    bool      // another thing of ours stands in the message that was clicked

	session, run, call string // which it is, for the log
}

// A carrier is a message that carries an ask: where it belongs, and where it is known to stand.
type carrier struct {
	place  ledger.Place
	stands []string // ts; empty: its post hasn't been answered yet
}

// home is where people are told something about the ask who aren't at one of its messages.
func (s subject) home() ledger.Place {
	if len(s.messages) == 0 {
		return ledger.Place{}
	}
	return s.messages[0].place
}

// subject finds the ask that a click is about; false: there is none.
func (u *UI) subject(ctx context.Context, c *click) (subject, bool, error) {
	if s, ok := u.outbox.subject(c.value, c.channel, c.ts); ok {
		return s, true, nil
	}
	b, err := u.pastBook(ctx, c.value)
	if err != nil || b == nil {
		return subject{}, false, err
	}
	s, ok := b.subject(c.value, c.channel, c.ts)
	return s, ok, nil
}

// pastBook is a book of nothing but the run of an ask that isn't in memory any more (or not yet); nil: there is none.
func (u *UI) pastBook(ctx context.Context, approval string) (*book, error) {
	run, call, err := u.past(ctx, approval)
	if err != nil || call == nil {
		return nil, err
	}
	b := newBook()
	b.load(run, ledger.Event{}, u.renderer)
	return b, nil
}

// aboutSubject makes the log say which ask it is about.
func (u *UI) aboutSubject(ctx context.Context, s subject) context.Context {
	return u.about(ctx, "session", s.session, "run", s.run, "call", s.call)
}

// past reads an ask from the journal, whose run isn't in memory any more (or not yet).
func (u *UI) past(ctx context.Context, approval string) (*ledger.Run, *ledger.Call, error) {
	e, ok, err := u.journal.Claimed(ctx, ledger.ClaimApproval(approval))
	if err != nil || !ok {
		return nil, nil, err
	}
	run, ok, err := u.journal.LoadRun(ctx, e.Run)
	if err != nil || !ok || run.Started == nil {
		return nil, nil, err
	}
	return run, run.Asked(approval), nil
}

// belongs tells whether a click in a message is on one that carries the ask that it names. One whose post hasn't been
// answered yet is no known message; then the rest has to do.
func (s subject) belongs(c *click) bool { return s.fits(c) && s.at(c) }

// at tells whether a click's message is, or may be, one that carries the ask.
func (s subject) at(c *click) bool {
	return !s.alien && slices.ContainsFunc(s.messages, func(m carrier) bool {
		return at(m.place, c) && (len(m.stands) == 0 || slices.Contains(m.stands, c.ts))
	})
}

// fits tells whether channel, thread, author and block of a click are those of a message that carries the ask.
func (s subject) fits(c *click) bool {
	return c.byUs && !s.alien && strings.HasPrefix(c.block, s.approval) &&
		slices.ContainsFunc(s.messages, func(m carrier) bool { return at(m.place, c) })
}

// at tells whether a click came from a place.
func at(place ledger.Place, c *click) bool {
	// Outside of a thread a message has none, or its own ts as the thread's.
	return c.channel == place.Channel && (c.thread == place.Thread || place.Thread == "" && c.thread == c.ts)
}

// showing records that the ask was shown in the message that was clicked, where that isn't known yet.
func (u *UI) showing(ctx context.Context, c *click, s subject) error {
	if !c.inMessage() || s.shown || s.over {
		return nil
	}
	u.outbox.adopt(s.approval, c)
	return u.outbox.shown(ctx, s.approval, approvals.Showing{Surface: surface, Channel: c.channel, TS: c.ts, Until: s.until})
}

// heardAt is where the person can be told something about the ask: at the message that they clicked, or, of a modal, where
// the ask stands. Somebody in the Home tab is told there.
func (c *click) heardAt(s subject) ledger.Place {
	if c.inMessage() || c.home {
		return c.place()
	}
	return s.home()
}

// decide is a click on Approve or Deny. Its lane waits for the decision alone: what people are told comes beside it.
func (u *UI) decide(ctx context.Context, c *click) {
	if c.action == actionApprove && u.critical(c.value) {
		u.confirm(ctx, c)
		return
	}
	limited, cancel := context.WithTimeout(ctx, decideLimit)
	defer cancel()
	s, ctx, ok := u.onCard(ctx, limited, c)
	if !ok {
		return
	}
	out, err := u.resolve(u.aboutSubject(limited, s), c)
	c.receipt.ack()
	u.decided(ctx, c, s, out, err)
}

func (u *UI) resolve(ctx context.Context, c *click) (approvals.Outcome, error) {
	d := approvals.Decision{Type: ledger.Denied, By: c.by, Received: c.at, Revision: revisionOf(c.block, c.value)}
	if c.action == actionApprove {
		d.Type = ledger.Approved
	}
	return u.approvals.ResolveByID(ctx, c.value, d)
}

// decided tells the person what came of it, where the card alone doesn't.
func (u *UI) decided(ctx context.Context, c *click, s subject, out approvals.Outcome, err error) {
	if at := c.heardAt(s); at != (ledger.Place{}) {
		c.channel, c.thread = at.Channel, at.Thread
	}
	switch {
	case err == nil && c.modal():
		u.closeModalWith(ctx, c, richText(paragraph(u.renderer.decision(out).elements...)))
		return
	case err == nil:
		if out.Repeated && out.Resolution == nil {
			u.tell(ctx, c.place(), c.by.ID, u.renderer.repeatedVote(out))
		}
		return
	case errors.Is(err, ledger.ErrNotRecorded):
		u.tell(ctx, c.place(), c.by.ID, u.renderer.t(notRecordedClick))
		return
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		u.logger(ctx).Error("a decision was not recorded in time", "error", err)
		u.tell(ctx, c.place(), c.by.ID, u.renderer.t(failedClick))
		return
	}
	u.refuse(ctx, c, u.renderer.unheard(err))
	if _, _, over := approvals.Ended(err); over && s.over && c.inMessage() {
		u.beside(ctx, "restate/"+c.value, func(ctx context.Context) { u.restate(ctx, c) })
	}
}

// refuse tells a person privately why their click had no effect.
func (u *UI) refuse(ctx context.Context, c *click, sentence string) {
	c.receipt.ack()
	if c.modal() {
		u.closeModal(ctx, c, sentence)
		return
	}
	u.tell(ctx, c.place(), c.by.ID, sentence)
}

// misfit refuses a click whose value doesn't belong to its message. A second card of the same ask, left behind by a
// post whose answer was lost, ends there.
func (u *UI) misfit(ctx context.Context, c *click, s subject) {
	u.logger(ctx).Warn("a click that doesn't fit its message")
	if c.inMessage() && s.fits(c) {
		u.refuse(ctx, c, u.renderer.t(doubleCard))
		u.override(ctx, c.channel, c.ts, u.renderer.foreign(u.renderer.t(doubleCard)))
		return
	}
	u.refuse(ctx, c, u.renderer.t(misfitClick))
}

// disown refuses a click on something that the journal doesn't know. If the message is one of ours that we don't know
// either, it is made terminal and says why; a forged value alone ends no card.
func (u *UI) disown(ctx context.Context, c *click, why string) {
	forged := c.value == "" || c.action != actionStop && !strings.HasPrefix(c.block, c.value)
	if !c.inMessage() || !c.byUs || forged || u.outbox.knows(c.channel, c.ts) {
		u.logger(ctx).Warn("a click about something unknown")
		u.refuse(ctx, c, u.renderer.t(misfitClick))
		return
	}
	u.refuse(ctx, c, why)
	u.override(ctx, c.channel, c.ts, u.renderer.foreign(why))
}

// restate shows the last state of what is long over on a message that doesn't show it.
func (u *UI) restate(ctx context.Context, c *click) {
	b, err := u.pastBook(ctx, c.value)
	if err != nil || b == nil {
		return
	}
	for _, t := range b.byAsk[c.value] {
		if at(t.place, c) {
			u.override(ctx, c.channel, c.ts, b.render(t, u.renderer, time.Now()).rendering)
			return
		}
	}
}

// closeModal replaces what a modal shows by one sentence of ours, in mrkdwn.
func (u *UI) closeModal(ctx context.Context, c *click, sentence string) {
	u.closeModalWith(ctx, c, sentenceBlock(sentence))
}

func (u *UI) closeModalWith(ctx context.Context, c *click, block slack.Block) {
	u.beside(ctx, "modal/"+c.view, func(ctx context.Context) {
		if _, err := u.client.api.UpdateViewContext(ctx, u.renderer.lastModal(block), "", "", c.view); err != nil {
			u.logger(ctx).Warn("a modal could not be updated", "error", err)
		}
	})
}

func sentenceBlock(sentence string) slack.Block {
	return slack.NewSectionBlock(&slack.TextBlockObject{Type: slack.MarkdownType, Text: sentence, Verbatim: true}, nil, nil)
}

// stop is a click on Stop: on a run's progress, on one of its cards, in an answer to a command, or in the Home tab.
func (u *UI) stop(ctx context.Context, c *click) {
	limited, cancel := context.WithTimeout(ctx, decideLimit)
	defer cancel()
	session, place, fits, known := u.outbox.stoppable(c.value, c.channel, c.ts)
	ctx = u.about(ctx, "session", session)
	if !known {
		u.stopPast(ctx, c)
		return
	}
	if c.modal() || !c.loose() && (!fits || !c.byUs || c.channel != place.Channel || c.thread != "" && c.thread != place.Thread) {
		u.logger(ctx).Warn("a stop that doesn't fit its message")
		u.refuse(ctx, c, u.renderer.t(misfitClick))
		return
	}
	err := u.agent.Stop(limited, c.value, c.by)
	c.receipt.ack()
	switch {
	case err == nil:
	case errors.Is(err, ledger.ErrNotRecorded):
		u.tell(ctx, c.place(), c.by.ID, u.renderer.t(notRecordedStop))
	default:
		u.tell(ctx, c.place(), c.by.ID, u.renderer.refusal(err))
	}
}

// stopPast explains a Stop of a run that isn't in memory.
func (u *UI) stopPast(ctx context.Context, c *click) {
	run, ok, err := u.journal.LoadRun(ctx, c.value)
	switch {
	case err != nil:
		u.refuse(ctx, c, u.renderer.t(failedClick))
	case !ok || run.Started == nil:
		u.disown(ctx, c, u.renderer.t(unknownRun))
	default:
		u.refuse(u.about(ctx, "session", run.Session), c, u.renderer.t(endedRun))
	}
}

// review is a click on Review: a modal with all of the request. It goes past the outbox, because Slack gives three
// seconds for it.
func (u *UI) review(ctx context.Context, c *click) {
	c.receipt.ack() // nothing is decided; the modal is the answer
	s, ok, err := u.subject(ctx, c)
	ctx = u.aboutSubject(ctx, s)
	if err != nil || !ok {
		u.disown(ctx, c, u.renderer.t(unknownCard))
		return
	}
	if c.modal() || c.inMessage() && !s.belongs(c) {
		u.misfit(ctx, c, s)
		return
	}
	view, file, ok := u.outbox.review(c.value)
	if !ok {
		u.refuse(ctx, c, u.renderer.t("This request is over; the card shows how it ended."))
		return
	}
	opening, cancel := context.WithTimeout(ctx, triggerLimit)
	defer cancel()
	opened, err := u.client.api.OpenViewContext(opening, c.trigger, view)
	if err != nil {
		u.logger(ctx).Warn("a modal could not be opened", "error", err)
		u.refuse(ctx, c, u.renderer.t("The request could not be opened in time. Please click Review again."))
		return
	}
	if file != nil {
		u.link(ctx, c, opened.View.ID, file)
	}
}

// link puts what a modal can't hold into a file in the thread, and the file's address into the modal.
func (u *UI) link(ctx context.Context, c *click, view string, file *reviewFile) {
	place := c.place()
	if place.Thread == "" {
		place.Thread = c.ts
	}
	url, err := u.outbox.upload(ctx, c.value, place, file)
	if err == nil {
		if linked, ok := u.outbox.reviewLinked(c.value, url); ok {
			_, err = u.client.api.UpdateViewContext(ctx, linked, "", "", view)
		}
	}
	if err == nil {
		return
	}
	u.logger(ctx).Error("a request's full text could not be shown", "error", err)
	sentence := u.renderer.tf("The request is too long for this window and the file with its full text could not be sent (%s). "+
		"Without it there is nothing to approve here; you can still deny.", cmp.Or(errorCode(err), u.renderer.t("no answer from Slack")))
	_, _ = u.client.api.UpdateViewContext(ctx, u.renderer.lastModal(sentenceBlock(sentence)), "", "", view)
}
