package slackui

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/slack-go/slack"

	"approvalbot/internal/ledger"
)

// A run has one message that is updated in place: a plan with a task for every
// call, and Stop while there is something to stop. Plan and task_card are young
// blocks; a Slack that doesn't take them gets the same from [plain].

const (
	maxTasks        = 50 // of a plan
	maxTaskTitle    = 150
	maxTaskDetails  = 160
	maxTaskOutcome  = 200
	maxProgressText = 160
)

// progress is the message of a run. msg is the message that is worked off; run is
// nil while it waits its turn.
func (v *renderer) progress(msg ledger.Event, run *ledger.Run) rendering {
	r := rendering{thing: ledger.Thing{Kind: "progress", ID: strconv.FormatInt(msg.Seq, 10)}}
	if run == nil {
		const turn = "Waiting its turn: another request in this conversation comes first."
		r.text, r.blocks = turn, []slack.Block{richText(paragraph(text(turn)))}
		return r
	}
	r.run = run.ID
	title := v.progressTitle(run)
	r.text = fallback(title + v.about(msg))
	for _, most := range []int{maxTasks, 25, 12, 6, 3, 1} {
		if r.blocks = v.progressBlocks(run, title, most); fits(r.blocks) {
			break
		}
	}
	return r
}

// progressFinal tells whether no later event changes the progress message.
func (v *renderer) progressFinal(run *ledger.Run) bool { return run != nil && run.Finished != nil }

// about says, for a notification, which request it is.
func (v *renderer) about(msg ledger.Event) string {
	m, ok := msg.Body.(*ledger.MessageReceived)
	if !ok || strings.TrimSpace(m.Text) == "" {
		return ""
	}
	return " · " + v.line(strings.TrimSpace(m.Text), maxProgressText)
}

// progressTitle is where the run stands, in a few words of ours.
func (v *renderer) progressTitle(run *ledger.Run) string {
	elapsed := took(run.EndedAt.Sub(run.StartedAt))
	switch run.Status() {
	case ledger.RunSucceeded:
		return "Worked for " + elapsed
	case ledger.RunFailed:
		return "Failed after " + elapsed
	case ledger.RunCancelled:
		return "Stopped after " + elapsed
	}
	if run.Stop != nil {
		return "Stopping"
	}
	if n := openAsks(run); n > 0 {
		return "Waiting for " + count(n, "approval", "approvals")
	}
	return "Working"
}

func openAsks(run *ledger.Run) int {
	n := 0
	for _, c := range run.Calls {
		if c.Approval.Open() {
			n++
		}
	}
	return n
}

// progressBlocks shows the last calls, at most so many, and sums up those before.
func (v *renderer) progressBlocks(run *ledger.Run, title string, most int) []slack.Block {
	var tasks []*slack.TaskCardBlock
	calls := run.Calls
	if len(calls) > most {
		earlier := calls[:len(calls)-most+1]
		calls = calls[len(earlier):]
		tasks = append(tasks, slack.NewTaskCardBlock("earlier", summarize(earlier)).WithStatus(slack.TaskCardStatusComplete))
	}
	for i, c := range calls {
		id := fmt.Sprintf("call-%d", len(run.Calls)-len(calls)+i+1)
		tasks = append(tasks, v.task(id, c))
	}
	var blocks []slack.Block
	if len(tasks) > 0 {
		blocks = append(blocks, slack.NewPlanBlock(title).WithTasks(tasks...))
	} else {
		blocks = append(blocks, richText(paragraph(bold(title))))
	}
	if s := v.stopLine(run); s != nil {
		blocks = append(blocks, richText(s))
	}
	if run.Finished == nil && run.Stop == nil {
		blocks = append(blocks, slack.NewActionBlock(run.ID+".stop", button(actionStop, run.ID, "Stop", slack.StyleDefault)))
	}
	return blocks
}

// stopLine says who stopped the run, or what did.
func (v *renderer) stopLine(run *ledger.Run) *slack.RichTextSection {
	cancelled := run.Finished != nil && run.Finished.Status == ledger.RunCancelled
	switch {
	case run.Stop != nil && byPeople(run.Stop.By):
		verb := "Stop was asked for by "
		if cancelled {
			verb = "Stopped by "
		}
		return paragraph(v.phrase().say(verb).who(run.Stop.By).say(", ").at(run.Stop.At).say(".").elements...)
	case cancelled:
		return paragraph(v.phrase().say("Stopped").because(run.Finished.Reason).say(".").elements...)
	}
	return nil
}

func byPeople(a ledger.Actor) bool { return a.Kind == ledger.ActorUser || a.Kind == ledger.ActorToken }

// task is one call. What Slack does with a title isn't documented, so only the
// tool's name goes there; what others wrote stands in rich text below it.
func (v *renderer) task(id string, c *ledger.Call) *slack.TaskCardBlock {
	words, status := callState(c)
	t := slack.NewTaskCardBlock(id, v.label(c.Name, maxTaskTitle-len(words)-2)+": "+words).WithStatus(status)
	if what := v.what(c); what != "" {
		t.WithDetails(richText(paragraph(text(what))))
	}
	if p := v.aftermath(c); p != nil {
		t.WithOutput(richText(paragraph(p.elements...)))
	}
	return t
}

// what is the call's target: the tool's own words for it, or the arguments.
func (v *renderer) what(c *ledger.Call) string {
	if c.Approval != nil {
		_, body := content(c.Approval)
		_, hits := v.redactor.Text(body)
		if summary := v.knowing(hits).summary(c.Approval, maxTaskDetails); summary != "" {
			return summary
		}
	}
	if args := strings.TrimSpace(c.Arguments); args != "" && args != "{}" {
		return v.line(args, maxTaskDetails)
	}
	return ""
}

// aftermath says why a call was not performed or failed; nil where there is
// nothing to say.
func (v *renderer) aftermath(c *ledger.Call) *phrase {
	f := c.Finished
	if f == nil || f.State == ledger.OutputAvailable {
		return nil
	}
	p := v.phrase()
	if a := c.Approval; f.Source == ledger.SourceUser && a != nil && a.Resolved != nil {
		p.say("Denied by ")
		v.people(p, deniersOf(a))
	} else {
		p.say("Reason")
	}
	reason := strings.TrimSpace(f.Reason)
	if reason == "" && len(p.elements) == 1 {
		return nil
	}
	if reason != "" {
		p.say(": ").tell(reason, maxTaskOutcome)
	}
	return p
}

// label is the name of something in a field of which Slack doesn't say whether it
// reads mrkdwn: what could begin a mention or a link is written as an escape.
func (v *renderer) label(name string, max int) string {
	name = v.line(name, max)
	for _, r := range "<>&" {
		name = strings.ReplaceAll(name, string(r), fmt.Sprintf(`\u{%X}`, r))
	}
	if name == "" {
		return "tool"
	}
	return cutShown(name, max)
}

// callState is where a call stands, in words, and as the colour that goes with it.
func callState(c *ledger.Call) (string, slack.TaskCardStatus) {
	if f := c.Finished; f != nil {
		return finishedState(f)
	}
	switch {
	case !c.StartedAt.IsZero():
		return "running", slack.TaskCardStatusInProgress
	case c.Approval.Open():
		return "waiting for approval", slack.TaskCardStatusPending
	case c.Approval != nil && c.Approval.Resolved.Type == ledger.Approved:
		return "approved", slack.TaskCardStatusInProgress
	case c.Approval != nil:
		return "not performed", slack.TaskCardStatusError
	}
	return "called", slack.TaskCardStatusPending
}

func finishedState(f *ledger.ToolFinished) (string, slack.TaskCardStatus) {
	switch endOf(f, endNotPerformed) {
	case endDone:
		return "done in " + took(f.Elapsed), slack.TaskCardStatusComplete
	case endStopped:
		return "stopped, may be partly performed", slack.TaskCardStatusError
	case endUnknown:
		return "outcome unknown", slack.TaskCardStatusError
	case endFailed:
		return "failed", slack.TaskCardStatusError
	}
	switch f.Source {
	case ledger.SourceUser:
		return "denied", slack.TaskCardStatusError
	case ledger.SourceTimeout:
		return "nobody answered, not performed", slack.TaskCardStatusError
	case ledger.SourcePolicy:
		return "not allowed", slack.TaskCardStatusError
	case ledger.SourceLoopGuard:
		return "not asked again", slack.TaskCardStatusError
	}
	return "not performed", slack.TaskCardStatusError
}

// summarize counts calls that have no task of their own.
func summarize(calls []*ledger.Call) string {
	var done, other int
	for _, c := range calls {
		if c.State == ledger.OutputAvailable {
			done++
		} else {
			other++
		}
	}
	s := count(len(calls), "earlier call", "earlier calls") + ": " + count(done, "done", "done")
	if other > 0 {
		s += fmt.Sprintf(", %d not", other)
	}
	return s
}
