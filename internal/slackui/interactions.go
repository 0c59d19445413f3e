package slackui

import (
	"context"
	"strings"
	"time"

	"github.com/slack-go/slack"

	"approvalbot/internal/ledger"
)

// What people do with our elements comes in as interactions: a button or a choice in a menu (a click), a form that was
// sent (a submission), an entry of a message's own menu (a shortcut). Each kind of each has one row here: in which lane it
// is worked off, and by whom.

// The actions of our elements. The value is an approvalId, unless it is said otherwise.
const (
	actionApprove    = "approve"
	actionDeny       = "deny"
	actionDenyWith   = "deny_reason"  // opens a form for the reason
	actionReview     = "review"       // shows all of a request
	actionStop       = "stop"         // the value is a run
	actionEdit       = "edit"         // opens a form with the arguments
	actionGrant      = "grant_thread" // opens a form for a grant
	actionGrantAll   = "grant_always" //
	actionRevoke     = "revoke"       // the value is a grant
	actionMoreTime   = "more_time"    //
	actionAskAgain   = "ask_again"    //
	actionApproveAll = "approve_all"  // the value is a set
	actionDenyThis   = "deny_this"    // the value is the Seq of a message: its words are the reason
	actionKeep       = "keep"         // the same: it waits for its turn
	actionPause      = "pause"        //
	actionResume     = "resume"       //

	// actionMore is a menu. Its options carry the action and the value, so that they count as buttons with these.
	actionMore = "more"
)

// option is the value of a menu's option: an action and its value.
func option(action, value string) string { return action + "." + value }

// A verb is one kind of click.
type verb struct {
	about string // what the value names, for the log: approval, run, grant, message, set
	lane  func(*click) string
	work  func(*UI, context.Context, *click)
}

// verbs are the clicks that mean something. Nobody's click waits for another person's, so lanes are a person's.
var verbs = map[string]verb{
	actionDenyThis:   {"message", onMessage, (*UI).denyThis},
	actionKeep:       {"message", onMessage, (*UI).keepForLater},
	actionGrant:      {"approval", onForm, (*UI).openGrant},
	actionGrantAll:   {"approval", onForm, (*UI).openGrant},
	actionGrantAny:   {"form", onForm, (*UI).loosen},
	actionApprove:    {"approval", onAsk, (*UI).decide},
	actionDeny:       {"approval", onAsk, (*UI).decide},
	actionDenyWith:   {"approval", onForm, (*UI).denyWith},
	actionEdit:       {"approval", onForm, (*UI).edit},
	actionReview:     {"approval", onForm, (*UI).review},
	actionStop:       {"run", onRun, (*UI).stop},
	actionMoreTime:   {"approval", onAsk, (*UI).moreTime},
	actionAskAgain:   {"approval", onAsk, (*UI).askAgain},
	actionApproveAll: {"set", onSet, (*UI).approveAll},
}

func onAsk(c *click) string  { return "ask/" + c.value + "/" + c.by.ID }
func onRun(c *click) string  { return "stop/" + c.value + "/" + c.by.ID }
func onSet(c *click) string  { return "set/" + c.value + "/" + c.by.ID }
func onForm(c *click) string { return "form/" + c.by.ID }

// A submission is a form that a person sent. Who sent it and what they filled in is believed; that they may, and that
// the form is about what it says, is checked as of a click.
type submission struct {
	callback string // which form: its callback_id
	subject  string // what it is about: its private_metadata
	by       ledger.Actor

	view, hash string
	values     map[string]map[string]slack.BlockAction // by block_id and action_id

	trigger string
	at      time.Time
	receipt *receipt
}

// text is what stands in a text field; empty if there is none.
func (s *submission) text(block, action string) string { return s.values[block][action].Value }

// chosen is the option that was chosen in a field; empty if none was.
func (s *submission) chosen(block, action string) string {
	return s.values[block][action].SelectedOption.Value
}

// close acknowledges a form that has done its work: it goes away.
func (s *submission) close() { s.receipt.ack() }

// wrong sends a form back, with a sentence below each field that is wrong, by block_id. False: Slack's patience was over,
// and the form has closed.
func (s *submission) wrong(fields map[string]string) bool {
	return s.receipt.answer(slack.NewErrorsViewSubmissionResponse(fields))
}

// forms are the submissions that mean something, by callback_id.
var forms = map[string]func(*UI, context.Context, *submission){
	shortcutAsk:   (*UI).askedAbout,
	callbackGrant: (*UI).give,
	formDeny:      (*UI).denied,
	formConfirm:   (*UI).confirmed,
	formEdit:      (*UI).edited,
}

// shortcuts are the entries that we have in the menu of every message, by callback_id.
var shortcuts = map[string]func(*UI, context.Context, slack.InteractionCallback, *receipt){
	shortcutAsk: (*UI).askAboutThis,
}

// interact takes in an interaction, in the socket's goroutine.
func (u *UI) interact(ctx context.Context, cb slack.InteractionCallback, r *receipt) {
	switch cb.Type {
	case slack.InteractionTypeBlockActions:
		u.click(ctx, cb, r)
	case slack.InteractionTypeViewSubmission:
		u.submit(ctx, cb, r)
	case slack.InteractionTypeMessageAction:
		u.shortcut(ctx, cb, r)
	default:
		u.socket.once("interaction "+string(cb.Type), "an interaction of a kind that isn't used here", "type", cb.Type)
		r.ack()
	}
}

// submit hands a form to the lane of its sender. It is acknowledged by whoever works on it, or when Slack would lose
// patience: then the form has closed, and what is wrong with it is told otherwise.
func (u *UI) submit(ctx context.Context, cb slack.InteractionCallback, r *receipt) {
	work, known := forms[cb.View.CallbackID]
	if !known || !u.ours(cb) {
		u.socket.once("form "+cb.View.CallbackID, "a form that isn't known", "form", abridge(cb.View.CallbackID))
		r.ack()
		return
	}
	s := &submission{
		callback: cb.View.CallbackID, subject: cb.View.PrivateMetadata, view: cb.View.ID, hash: cb.View.Hash,
		by: u.person(cb), trigger: cb.TriggerID, at: time.Now(), receipt: r,
	}
	if cb.View.State != nil {
		s.values = cb.View.State.Values
	}
	ids := []string{"form", s.callback, "about", s.subject, "user", s.by.ID}
	u.inLane(ctx, "form/"+s.by.ID, r, ids, func(ctx context.Context) { work(u, ctx, s) })
}

// shortcut hands on what somebody chose in a message's menu.
func (u *UI) shortcut(ctx context.Context, cb slack.InteractionCallback, r *receipt) {
	work, known := shortcuts[cb.CallbackID]
	if !known || !u.ours(cb) {
		u.socket.once("shortcut "+cb.CallbackID, "a shortcut that isn't known", "shortcut", abridge(cb.CallbackID))
		r.ack()
		return
	}
	ids := []string{"shortcut", cb.CallbackID, "user", cb.User.ID, "channel", cb.Channel.ID, "ts", cb.Message.Timestamp}
	u.inLane(ctx, "form/"+cb.User.ID, r, ids, func(ctx context.Context) { work(u, ctx, cb, r) })
}

// inLane works on something in a lane, and sees to it that its envelope is acknowledged in time.
func (u *UI) inLane(ctx context.Context, lane string, r *receipt, ids []string, work func(context.Context)) bool {
	late := time.AfterFunc(ackBy, r.ack)
	ok := u.lanes.do(ctx, lane, func(ctx context.Context) {
		defer late.Stop()
		defer r.ack()
		work(u.about(ctx, ids...))
	})
	if !ok {
		late.Stop()
		r.ack()
		u.logger(u.about(ctx, ids...)).Warn("too much at once: an interaction had no effect")
	}
	return ok
}

// ours tells whether an interaction is from our workspace and about our app, by somebody.
func (u *UI) ours(cb slack.InteractionCallback) bool {
	app := u.client.appID()
	return app != "" && cb.APIAppID == app && cb.Team.ID == u.client.Team && cb.User.ID != ""
}

// person is who did something.
func (u *UI) person(cb slack.InteractionCallback) ledger.Actor {
	team := cb.User.TeamID
	if team == "" {
		team = cb.Team.ID
	}
	return ledger.Actor{Kind: ledger.ActorUser, Team: team, ID: cb.User.ID, Name: cb.User.Name, Via: surface}
}

// chose makes a choice in our menu a click on the button that it stands for.
func (c *click) chose(a *slack.BlockAction) {
	if c.action != actionMore {
		return
	}
	c.action, c.value, _ = strings.Cut(a.SelectedOption.Value, ".")
}
