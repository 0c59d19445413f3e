package slackui

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

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
	maxTaskSaid     = 200  // longer words of the agent aren't progress
	maxSaidRead     = 8192 // bytes: longer even without their secrets, and not read for that each time
	maxProgressText = 160
)

// progress is the message of a run. msg is the message that is worked off; run is
// nil while it waits its turn.
func (v *renderer) progress(msg ledger.Event, run *ledger.Run) rendering {
	return v.progressNow(msg, run, nil)
}

// progressNow is progress with what the run's model writes at the moment.
func (v *renderer) progressNow(msg ledger.Event, run *ledger.Run, w *writing) rendering {
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
		if r.blocks = v.progressBlocks(run, w, title, most); fits(r.blocks) {
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
	switch run.Status() {
	case ledger.RunSucceeded:
		if nothingPerformed(run) {
			return "Nothing was performed (" + spent(took, run) + ")"
		}
		return "Done in " + spent(took, run)
	case ledger.RunFailed:
		return "Failed " + spent(afterwards, run)
	case ledger.RunCancelled:
		return "Stopped " + spent(afterwards, run)
	}
	if run.Stop != nil {
		return "Stopping"
	}
	if n := missing(run); n > 0 {
		return "Waiting for " + count(n, "approval", "approvals")
	}
	return "Working"
}

// nothingPerformed tells of a run that all it called was kept from starting.
func nothingPerformed(run *ledger.Run) bool {
	for _, c := range run.Calls {
		if c.State != ledger.OutputDenied {
			return false
		}
	}
	return len(run.Calls) > 0
}

// spent is how long a run that is over took, people's time told apart from its own.
func spent(say func(time.Duration) string, run *ledger.Run) string {
	waited := waiting(run)
	s := say(run.EndedAt.Sub(run.StartedAt) - waited)
	if waited >= time.Second {
		s += ", waited " + took(waited.Round(time.Second)) + " for people"
	}
	return s
}

// waiting is for how long at least one ask of a run that is over was open.
func waiting(run *ledger.Run) time.Duration {
	var asks []*ledger.Approval
	for _, c := range run.Calls {
		if c.Approval != nil {
			asks = append(asks, c.Approval)
		}
	}
	slices.SortFunc(asks, func(a, b *ledger.Approval) int { return a.At.Compare(b.At) })
	var sum time.Duration
	covered := run.StartedAt
	for _, a := range asks {
		from, to := a.At, a.ResolvedAt
		if a.Open() || to.After(run.EndedAt) {
			to = run.EndedAt
		}
		if from.Before(covered) {
			from = covered
		}
		if to.After(from) {
			sum, covered = sum+to.Sub(from), to
		}
	}
	return sum
}

// missing is how many approvals the run still waits for.
func missing(run *ledger.Run) int {
	n := 0
	for _, c := range run.Calls {
		if c.Approval.Open() {
			n += max(1, c.Approval.Quorum-len(approversOf(c.Approval)))
		}
	}
	return n
}

// progressBlocks shows the last calls, at most so many, and sums up those before.
func (v *renderer) progressBlocks(run *ledger.Run, w *writing, title string, most int) []slack.Block {
	var tasks []*slack.TaskCardBlock
	calls := run.Calls
	if len(calls) > most {
		earlier := calls[:len(calls)-most+1]
		calls = calls[len(earlier):]
		tasks = append(tasks, slack.NewTaskCardBlock("earlier", summarize(earlier)).WithStatus(slack.TaskCardStatusComplete))
	}
	round := 0
	for i, c := range calls {
		id := fmt.Sprintf("call-%d", len(run.Calls)-len(calls)+i+1)
		said := ""
		if c.Round != round { // the agent's words go with the first call of their round
			round, said = c.Round, roundText(run, c.Round)
		}
		tasks = append(tasks, v.task(id, c, said))
	}
	var blocks []slack.Block
	if len(tasks) > 0 {
		blocks = append(blocks, slack.NewPlanBlock(title).WithTasks(tasks...))
	} else {
		blocks = append(blocks, richText(paragraph(bold(title))))
	}
	for _, line := range []*slack.RichTextSection{v.stopLine(run), v.modelLine(run, w), usageLine(run)} {
		if line != nil {
			blocks = append(blocks, richText(line))
		}
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

// modelLine says what the model is doing, where that takes long: it is asked again in a while, or it writes.
func (v *renderer) modelLine(run *ledger.Run, w *writing) *slack.RichTextSection {
	if run.Finished != nil || run.Stop != nil {
		return nil
	}
	if f := run.Retrying(); f != nil {
		return paragraph(text(fmt.Sprintf("%s; trying again in %s (attempt %d).", modelTrouble(f.ErrorKind), wholeSeconds(f.RetryIn), f.Attempt+1)))
	}
	if w == nil {
		return nil
	}
	n := count(w.chars, "character", "characters")
	if begins := w.beginning(v); begins != "" {
		return paragraph(text("Writing: “" + begins + "” (" + n + " so far)"))
	}
	return paragraph(text("Writing (" + n + " so far)"))
}

// modelTrouble is what keeps a model from answering, as a clause. What is not known by name is not guessed.
func modelTrouble(kind string) string {
	switch kind {
	case "overloaded":
		return "The model is overloaded"
	case "rate_limited":
		return "The model has had too many requests"
	case "unavailable":
		return "The model can't be reached"
	case "broken_answer":
		return "The model's answer broke off"
	}
	return "The model did not answer"
}

// wholeSeconds is a wait that is still to come, rounded up.
func wholeSeconds(d time.Duration) string {
	n := int((d + time.Second - 1) / time.Second)
	if n < 60 {
		return fmt.Sprintf("%d s", n)
	}
	return fmt.Sprintf("%d min %d s", n/60, n%60)
}

// usageLine is what a run took that is over; nil where the model doesn't count.
func usageLine(run *ledger.Run) *slack.RichTextSection {
	f := run.Finished
	if f == nil || f.Usage.Tokens() <= 0 {
		return nil
	}
	s := count(f.Rounds, "request to the model", "requests to the model") + " · " + count(f.Usage.Tokens(), "token", "tokens")
	if c := f.Usage.Cost; c != nil {
		s += " · " + money(c)
	}
	return paragraph(text(s))
}

// money is an amount to the cent.
func money(c *ledger.Cost) string {
	cents := (c.Micros + 5_000) / 10_000
	amount := fmt.Sprintf("%d.%02d", cents/100, cents%100)
	if cents == 0 && c.Micros > 0 {
		amount = "0.01"
	}
	if c.Currency == "USD" {
		amount = "$" + amount
	} else {
		amount += " " + c.Currency
	}
	if cents == 0 && c.Micros > 0 {
		return "under " + amount
	}
	return amount
}

func byPeople(a ledger.Actor) bool { return a.Kind == ledger.ActorUser || a.Kind == ledger.ActorToken }

// task is one call. What Slack does with a title isn't documented, so only the
// tool's name goes there; what others wrote stands in rich text below it.
func (v *renderer) task(id string, c *ledger.Call, said string) *slack.TaskCardBlock {
	words, status := callState(c)
	t := slack.NewTaskCardBlock(id, v.label(c.Name, maxTaskTitle-len(words)-2)+": "+words).WithStatus(status)
	var details []slack.RichTextElement
	if what := v.what(c); what != "" {
		details = append(details, paragraph(text(what)))
	}
	if p := v.granted(c.Decision); p != nil {
		details = append(details, paragraph(p.elements...))
	}
	if len(said) > maxSaidRead {
		said = ""
	}
	if said := strings.TrimSpace(v.clean(said)); said != "" && utf8.RuneCountInString(said) <= maxTaskSaid {
		details = append(details, paragraph(text("The agent: “"+v.line(said, 2*maxTaskSaid)+"”")))
	}
	if len(details) > 0 {
		t.WithDetails(richText(details...))
	}
	if p := v.aftermath(c); p != nil {
		t.WithOutput(richText(paragraph(p.elements...)))
	}
	return t
}

// what is the call's target: the tool's own words for it. The arguments have to do
// where there are none and nothing else says what became of it.
func (v *renderer) what(c *ledger.Call) string {
	if c.Approval != nil {
		_, body := content(c.Approval)
		_, hits := v.redactor.Text(body)
		if summary := v.knowing(hits).summary(c.Approval, maxTaskDetails); summary != "" {
			return summary
		}
	} else if summary := decided(c.Decision); strings.TrimSpace(summary) != "" {
		_, hits := v.redactor.Text(c.Arguments)
		return v.knowing(hits).line(summary, maxTaskDetails)
	}
	ended := c.Finished != nil && c.Finished.Reason == ""
	if args := strings.TrimSpace(c.Arguments); ended && args != "" && args != "{}" {
		return v.line(args, maxTaskDetails)
	}
	return ""
}

func decided(d *ledger.PermissionDecided) string {
	if d == nil {
		return ""
	}
	return d.Summary
}

// aftermath says why a call was not performed or failed; nil where the title, or
// the line of who stopped the run, says all.
func (v *renderer) aftermath(c *ledger.Call) *phrase {
	f := c.Finished
	stopped := f != nil && (f.Code == codeAborted || f.State == ledger.OutputDenied && f.Source == ledger.SourceAbort)
	if f == nil || f.State == ledger.OutputAvailable || stopped {
		return nil
	}
	p := v.phrase()
	if a := c.Approval; f.Source == ledger.SourceUser && a != nil && a.Resolved != nil {
		p.say("By ")
		v.people(p, deniersOf(a))
		if words := strings.TrimSpace(a.Resolved.Reason); words != "" {
			p.say(": ").tell(words, maxTaskOutcome)
		}
		return p
	}
	reason := strings.TrimSpace(f.Reason)
	if reason == "" {
		return nil
	}
	return p.tell(reason, maxTaskOutcome)
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

// callState is where a call stands, in words, and as the mark that goes with it.
// Slack has four: error is for what went wrong, and a call to which somebody or
// something said no did not go wrong. It didn't start, which is what pending means.
func callState(c *ledger.Call) (string, slack.TaskCardStatus) {
	if f := c.Finished; f != nil {
		return finishedState(f)
	}
	switch a := c.Approval; {
	case !c.StartedAt.IsZero():
		return "running", slack.TaskCardStatusInProgress
	case a.Open() && a.Quorum > 1:
		return fmt.Sprintf("waiting for approval, %d of %d given", len(approversOf(a)), a.Quorum), slack.TaskCardStatusPending
	case a.Open():
		return "waiting for approval", slack.TaskCardStatusPending
	case a != nil && a.Resolved.Type == ledger.Approved:
		return "approved", slack.TaskCardStatusInProgress
	case a != nil:
		return "not performed", slack.TaskCardStatusPending
	}
	return "called", slack.TaskCardStatusPending
}

func finishedState(f *ledger.ToolFinished) (string, slack.TaskCardStatus) {
	switch endOf(f, endNotPerformed) {
	case endDone:
		return "done in " + took(f.Elapsed), slack.TaskCardStatusComplete
	case endStopped: // it had started: neither done nor not
		return "stopped, may be partly performed", slack.TaskCardStatusError
	case endUnknown:
		return "outcome unknown", slack.TaskCardStatusError
	case endFailed:
		return "failed", slack.TaskCardStatusError
	}
	switch f.Source {
	case ledger.SourceUser:
		return "denied", slack.TaskCardStatusPending
	case ledger.SourceAbort:
		return "stopped, not performed", slack.TaskCardStatusPending
	case ledger.SourcePolicy:
		return "not allowed", slack.TaskCardStatusPending
	case ledger.SourceLoopGuard:
		return "not asked again", slack.TaskCardStatusPending
	}
	return "not performed", slack.TaskCardStatusPending
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
