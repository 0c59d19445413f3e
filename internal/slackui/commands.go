package slackui

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/slack-go/slack"

	"approvalbot/internal/approvals"
	"approvalbot/internal/ledger"
)

// A slash command is answered to the one who gave it, and to nobody else: in the acknowledgement, where the answer is there
// in time and small, else by the address that came with it. What it does is done either way.

// commandName is our one command.
const commandName = "/approvals"

const (
	// commandLimit bounds the work on a command. People look at something else after that.
	commandLimit = 20 * time.Second

	// ackAnswerMost is the largest answer that goes into an acknowledgement, in bytes: Slack closes the socket at a frame
	// above 20 KiB.
	ackAnswerMost = 14 << 10

	// listMost bounds the lines of a list in a message.
	listMost = 25
)

// An answer to a command.
type commandAnswer struct {
	Type   string        `json:"response_type"`
	Text   string        `json:"text"`
	Blocks []slack.Block `json:"blocks,omitempty"`
}

// answerOf is a sentence of ours, in mrkdwn, as an answer.
func (v *renderer) answerOf(sentence string) commandAnswer {
	return commandAnswer{Type: slack.ResponseTypeEphemeral, Text: sentence, Blocks: []slack.Block{sentenceBlock(sentence)}}
}

// A subcommand is the first word of a command.
type subcommand struct {
	name string
	do   func(u *UI, ctx context.Context, by ledger.Actor, rest string) (commandAnswer, error)
}

var subcommands []subcommand

func init() { // they name each other in the help
	subcommands = []subcommand{
		{"mine", (*UI).commandMine}, {"all", (*UI).commandAll}, {"grants", (*UI).commandGrants}, {"stop", (*UI).commandStop},
		{"pause", (*UI).commandPause}, {"resume", (*UI).commandResume}, {"help", (*UI).commandHelp},
	}
}

// command takes in a slash command, in the socket's goroutine.
func (u *UI) command(ctx context.Context, c slack.SlashCommand, r *receipt) {
	app := u.client.appID()
	if c.Command != commandName || app == "" || c.APIAppID != app || c.TeamID != u.client.Team || c.UserID == "" {
		u.socket.once("command "+c.Command, "a command that isn't known", "command", abridge(c.Command))
		r.ack()
		return
	}
	ids := []string{"command", c.Command, "user", c.UserID, "channel", c.ChannelID}
	ok := u.inLane(ctx, "command/"+c.UserID, r, ids, func(ctx context.Context) { u.obey(ctx, c, r) })
	if !ok {
		u.beside(ctx, "answer/"+c.UserID, func(ctx context.Context) {
			_ = u.respond(ctx, c.ResponseURL, false, u.renderer.answerOf(u.renderer.t("There is too much going on. Please try again in a moment.")))
		})
	}
}

// obey does what a command says, and answers it.
func (u *UI) obey(ctx context.Context, c slack.SlashCommand, r *receipt) {
	limited, cancel := context.WithTimeout(ctx, commandLimit)
	defer cancel()
	by := ledger.Actor{Kind: ledger.ActorUser, Team: c.TeamID, ID: c.UserID, Name: c.UserName, Via: surface}
	answer, err := u.subcommand(limited, by, c.Text)
	if err != nil {
		answer = u.renderer.answerOf(u.failure(ctx, err))
	}
	if raw, err := json.Marshal(answer); err == nil && len(raw) <= ackAnswerMost && r.answer(answer) {
		return
	}
	r.ack()
	if err := u.respond(limited, c.ResponseURL, false, answer); err != nil {
		u.logger(ctx).Warn("a command could not be answered", "error", err)
	}
}

// subcommand finds out what a command wants, and does it.
func (u *UI) subcommand(ctx context.Context, by ledger.Actor, raw string) (commandAnswer, error) {
	if err := u.approvals.MaySee(ctx, by); err != nil {
		return commandAnswer{}, err
	}
	name, rest, _ := strings.Cut(strings.TrimSpace(raw), " ")
	rest = strings.TrimSpace(rest)
	if name == "" {
		name = "mine"
	}
	for _, s := range subcommands {
		if strings.EqualFold(s.name, name) {
			return s.do(u, ctx, by, rest)
		}
	}
	answer, err := u.commandHelp(ctx, by, "")
	return u.renderer.unknownCommand(name, answer), err
}

// unknownCommand is the help for somebody who wanted something else.
func (v *renderer) unknownCommand(name string, help commandAnswer) commandAnswer {
	first := v.tf("There is no %s. What there is:", "`"+escape(strings.ReplaceAll(v.line(unescape(name), 40), "`", "'"))+"`")
	help.Text = first
	help.Blocks = append([]slack.Block{sentenceBlock(first)}, help.Blocks...)
	return help
}

// listed is a list as an answer, with a sentence above it and one where there is more.
func (v *renderer) listed(head string, lines []*slack.RichTextSection, more bool) commandAnswer {
	a := commandAnswer{Type: slack.ResponseTypeEphemeral, Text: head}
	for most := min(len(lines), listMost); ; most /= 2 {
		items := make([]slack.RichTextElement, 0, most)
		for _, l := range lines[:most] {
			items = append(items, l)
		}
		blocks := []slack.RichTextElement{paragraph(bold(head))}
		if len(items) > 0 {
			blocks = append(blocks, slack.NewRichTextList(slack.RTEListBullet, 0, items...))
		}
		switch left := len(lines) - most; {
		case more:
			blocks = append(blocks, paragraph(text(v.t("And more than can be listed here."))))
		case left > 0:
			blocks = append(blocks, paragraph(text(v.tf("And %d more.", left))))
		}
		a.Blocks = []slack.Block{richText(blocks...)}
		if fits(a.Blocks) || most == 0 {
			return a
		}
	}
}

// commandMine lists what waits for the person.
func (u *UI) commandMine(ctx context.Context, by ledger.Actor, _ string) (commandAnswer, error) {
	mine, cut := u.waitingFor(ctx, by)
	return u.asks(mine, cut, u.renderer.t("Nothing waits for your approval."), func(n string) string {
		return u.renderer.tf("%s for your approval:", n)
	}), nil
}

// commandAll lists the open asks of the conversations that the person is in.
func (u *UI) commandAll(ctx context.Context, by ledger.Actor, _ string) (commandAnswer, error) {
	all, cut := u.visible(ctx, by.ID, u.outbox.openAsks())
	return u.asks(all, cut, u.renderer.t("Nothing waits for an approval in your conversations."), func(n string) string {
		return u.renderer.tf("%s in your conversations:", n)
	}), nil
}

func (u *UI) asks(all []sight, cut bool, none string, head func(n string) string) commandAnswer {
	var lines []*slack.RichTextSection
	for _, s := range all {
		if line, ok := u.outbox.askLine(s); ok {
			lines = append(lines, line)
		}
	}
	v := u.renderer
	switch {
	case len(lines) == 0 && cut:
		return v.answerOf(v.t("There are too many open requests to look through all of them."))
	case len(lines) == 0:
		none += v.pausedNote(u.pause())
		return v.answerOf(none)
	}
	a := v.listed(head(v.count(len(lines), "request waits", "requests wait")), lines, cut)
	if note := v.pausedNote(u.pause()); note != "" {
		a.Blocks = append(a.Blocks, sentenceBlock(strings.TrimSpace(note)))
	}
	return a
}

// pausedNote says that approvalbot is paused, behind another sentence; empty if it isn't.
func (v *renderer) pausedNote(p *approvals.Pause) string {
	if p == nil {
		return ""
	}
	return " " + v.tf("approvalbot was paused by %s, %s.", v.doerText(p.By), v.dateToken(p.At))
}

// commandGrants lists the grants that concern the person, with a button to revoke each.
func (u *UI) commandGrants(ctx context.Context, by ledger.Actor, _ string) (commandAnswer, error) {
	_, no := u.approvals.MayOperate(ctx, by)
	grants := u.grantsFor(ctx, by, no == nil)
	return u.renderer.grants(grants), nil
}

// grants is a list of grants as an answer.
func (v *renderer) grants(grants []approvals.Grant) commandAnswer {
	if len(grants) == 0 {
		return v.answerOf(v.t("Nothing is allowed in advance that concerns you."))
	}
	head := v.tf("%s in advance:", v.count(len(grants), "thing is allowed", "things are allowed"))
	a := commandAnswer{Type: slack.ResponseTypeEphemeral, Text: head, Blocks: []slack.Block{richText(paragraph(bold(head)))}}
	for i, g := range grants {
		next := append(a.Blocks[:len(a.Blocks):len(a.Blocks)], v.grantBlocks(g)...)
		rest := richText(paragraph(text(v.tf("And %d more.", len(grants)-i))))
		if i == 15 || !fits(append(next, rest)) {
			a.Blocks = append(a.Blocks, rest)
			break
		}
		a.Blocks = next
	}
	return a
}

// grantBlocks are a grant with its button.
func (v *renderer) grantBlocks(g approvals.Grant) []slack.Block {
	summary := v.line(g.Body.Summary, maxSummaryChars)
	b := v.confirming(v.spoken(button(actionRevoke, g.ID, v.t("Revoke"), slack.StyleDefault), summary), v.t("Revoke this?"),
		asLong(summary, maxConfirmChars), v.t("Revoke"))
	return []slack.Block{richText(v.grantLine(g)), slack.NewActionBlock("grant."+g.ID, b)}
}

// commandStop stops the run that the person names.
func (u *UI) commandStop(ctx context.Context, by ledger.Actor, name string) (commandAnswer, error) {
	v := u.renderer
	name = strings.ToLower(strings.Trim(unescape(name), "`"))
	if name == "" || strings.ContainsAny(name, " \t") {
		return u.runsToStop(ctx, by)
	}
	run, several, err := u.runNamed(ctx, by, name)
	switch {
	case err != nil:
		return commandAnswer{}, err
	case several > 1:
		return v.answerOf(v.tf("%s with that beginning. Give more of the id.", v.count(several, "run begins", "runs begin"))), nil
	case run == "":
		return v.answerOf(v.t("There is no running run of that id that you could stop. `/approvals stop` lists those that there are.")), nil
	}
	if err := u.agent.Stop(ctx, run, by); err != nil {
		if over, lookErr := u.over(ctx, run); lookErr == nil && over {
			return v.answerOf(v.t("This run is over already.")), nil
		}
		return commandAnswer{}, err
	}
	return v.answerOf(v.tf("The run %s is stopped. What was open is closed.", "`"+escape(shortRun(run))+"`")), nil
}

// runNamed finds a running run by the beginning of its id, among those that the person may stop. Others are as good as none:
// that there is one is nobody's business who isn't there.
func (u *UI) runNamed(ctx context.Context, by ledger.Actor, name string) (run string, several int, err error) {
	ids, err := u.journal.UnfinishedRuns(ctx)
	if err != nil {
		return "", 0, err
	}
	for _, id := range ids {
		lower := strings.ToLower(id)
		if !strings.HasPrefix(lower, name) && !strings.HasPrefix(strings.TrimPrefix(lower, "run_"), name) {
			continue
		}
		state, ok, err := u.journal.LoadRun(ctx, id)
		if err != nil || !ok || state.Started == nil {
			return "", 0, errors.Join(err, ctx.Err())
		}
		err = u.approvals.MayStop(ctx, by, state)
		if _, refused := errors.AsType[*approvals.RefusedError](err); refused {
			continue
		}
		if err != nil {
			return "", 0, err
		}
		run = id
		several++
	}
	return run, several, nil
}

// runsToStop lists what could be stopped.
func (u *UI) runsToStop(ctx context.Context, by ledger.Actor) (commandAnswer, error) {
	runs, cut := u.stoppableBy(ctx, by)
	var lines []*slack.RichTextSection
	for _, s := range runs {
		if line, ok := u.outbox.runLine(s); ok {
			lines = append(lines, line)
		}
	}
	v := u.renderer
	if len(lines) == 0 {
		return v.answerOf(v.t("There is no run that you could stop.")), nil
	}
	return v.listed(v.t("Name a run, as in /approvals stop 1a2b3c4d:"), lines, cut), nil
}

func (u *UI) commandPause(ctx context.Context, by ledger.Actor, reason string) (commandAnswer, error) {
	said, err := u.pauseNow(ctx, by, u.text(ctx, reason))
	if err != nil {
		return commandAnswer{}, err
	}
	a := u.renderer.answerOf(said)
	if runs, err := u.journal.UnfinishedRuns(ctx); err == nil && len(runs) > 0 {
		a.Blocks = append(a.Blocks, slack.NewActionBlock("operations", u.renderer.stopAllButton()))
	}
	return a, nil
}

func (u *UI) commandResume(ctx context.Context, by ledger.Actor, _ string) (commandAnswer, error) {
	said, err := u.resumeNow(ctx, by)
	return u.renderer.answerOf(said), err
}

// commandHelp says what there is; pause and resume to those who may.
func (u *UI) commandHelp(ctx context.Context, by ledger.Actor, _ string) (commandAnswer, error) {
	_, no := u.approvals.MayOperate(ctx, by)
	return u.renderer.help(no == nil), nil
}

func (v *renderer) help(operator bool) commandAnswer {
	lines := [][2]string{
		{"/approvals mine", v.t("what waits for your approval; /approvals alone does, too")},
		{"/approvals all", v.t("every open request in your conversations")},
		{"/approvals grants", v.t("what is allowed in advance, with Revoke")},
		{"/approvals stop RUN", v.t("stops a run, named by the beginning of its id; without one, lists them")},
	}
	if operator {
		lines = append(lines, [2]string{"/approvals pause REASON", v.t("nothing new starts and nothing can be approved; said in the channels")},
			[2]string{"/approvals resume", v.t("ends the pause")})
	}
	var out strings.Builder
	for _, l := range lines {
		fmt.Fprintf(&out, "`%s` · %s\n", l[0], l[1])
	}
	return v.answerOf(strings.TrimSpace(out.String()))
}

// respond answers a command or a click by the address that came with it.
func (u *UI) respond(ctx context.Context, url string, replace bool, a commandAnswer) error {
	if !u.client.owns(url) {
		return errors.New("there is no address of Slack's to answer to")
	}
	opts := []slack.MsgOption{slack.MsgOptionResponseURL(url, slack.ResponseTypeEphemeral)}
	if replace {
		opts = append(opts, slack.MsgOptionReplaceOriginal(url))
	}
	opts = append(opts, slack.MsgOptionText(a.Text, false))
	if len(a.Blocks) > 0 {
		opts = append(opts, slack.MsgOptionBlocks(a.Blocks...))
	}
	for try := 1; ; try++ {
		_, _, _, err := u.client.api.SendMessageContext(ctx, "", opts...)
		if err == nil || try == tellTries {
			return err
		}
		wait := retryAfter(try)
		if limited, ok := errors.AsType[*slack.RateLimitedError](err); ok {
			wait = max(wait, limited.RetryAfter)
		}
		if sleep(ctx, wait) != nil {
			return err
		}
	}
}
