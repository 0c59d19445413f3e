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

// progressNow is the message of a run, with what its model writes at the moment. msg is the message that is worked off; run
// is nil while it waits its turn.
func (v *renderer) progressNow(msg ledger.Event, run *ledger.Run, w *writing) rendering {
	if run == nil {
		return v.waiting(waiter{message: msg})
	}
	r := rendering{thing: progressOf(msg.Seq), run: run.ID}
	title := v.progressTitle(run)
	r.text = fallback(title + v.about(msg))
	for _, most := range []int{maxTasks, 25, 12, 6, 3, 1} {
		r.blocks = v.progressBlocks(run, w, title, most)
		if asked := v.askedLine(msg); asked != nil {
			r.blocks = append([]slack.Block{richText(asked)}, r.blocks...)
		}
		if fits(r.blocks) {
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
			return v.tf("Nothing was performed (%s)", v.waited(run, v.took(ownTime(run))))
		}
		return v.waited(run, v.tf("Done in %s", v.took(ownTime(run))))
	case ledger.RunFailed:
		if ownTime(run) < 100*time.Millisecond {
			return v.waited(run, v.t("Failed at once"))
		}
		return v.waited(run, v.tf("Failed after %s", v.took(ownTime(run))))
	case ledger.RunCancelled:
		if ownTime(run) < 100*time.Millisecond {
			return v.waited(run, v.t("Stopped at once"))
		}
		return v.waited(run, v.tf("Stopped after %s", v.took(ownTime(run))))
	}
	if run.Stop != nil {
		return v.t("Stopping")
	}
	if n := missing(run); n > 0 {
		return v.tf("Waiting for %s", v.count(n, "approval", "approvals"))
	}
	return v.t("Working")
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

// ownTime is how long a run that is over took, without the time that people took.
func ownTime(run *ledger.Run) time.Duration { return run.EndedAt.Sub(run.StartedAt) - waiting(run) }

// waited adds to a sentence about a run that is over how long it waited for people.
func (v *renderer) waited(run *ledger.Run, sentence string) string {
	if d := waiting(run); d >= time.Second {
		return v.tf("%s, waited %s for people", sentence, v.took(d.Round(time.Second)))
	}
	return sentence
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
		tasks = append(tasks, slack.NewTaskCardBlock("earlier", v.summarize(earlier)).WithStatus(slack.TaskCardStatusComplete))
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
	for _, line := range []*slack.RichTextSection{v.stopLine(run), v.modelLine(run, w), v.usageLine(run)} {
		if line != nil {
			blocks = append(blocks, richText(line))
		}
	}
	if run.Finished == nil && run.Stop == nil {
		blocks = append(blocks, slack.NewActionBlock(run.ID+".stop", button(actionStop, run.ID, v.t("Stop"), slack.StyleDefault)))
	}
	return blocks
}

// stopLine says who stopped the run, or what did.
func (v *renderer) stopLine(run *ledger.Run) *slack.RichTextSection {
	cancelled := run.Finished != nil && run.Finished.Status == ledger.RunCancelled
	switch {
	case run.Stop != nil && byPeople(run.Stop.By):
		who := slots{"who": func(p *phrase) { p.who(run.Stop.By) }, "at": momentSlot(run.Stop.At)}
		if cancelled {
			return v.phrase().form("Stopped by {who}, {at}.", who).section()
		}
		return v.phrase().form("Stop was asked for by {who}, {at}.", who).section()
	case cancelled:
		return v.phrase().form("Stopped{why}.", slots{"why": reasonSlot(v.recorded(run.Finished.Reason))}).section()
	}
	return nil
}

// modelLine says what the model is doing, where that takes long: it is asked again in a while, or it writes.
func (v *renderer) modelLine(run *ledger.Run, w *writing) *slack.RichTextSection {
	if run.Finished != nil || run.Stop != nil {
		return nil
	}
	if f := run.Retrying(); f != nil {
		return paragraph(text(v.tf("%s; trying again in %s (attempt %d).", v.modelTrouble(f.ErrorKind), v.wholeSeconds(f.RetryIn), f.Attempt+1)))
	}
	if w == nil {
		return nil
	}
	n := v.count(w.chars, "character", "characters")
	if begins := w.beginning(v); begins != "" {
		return paragraph(text(v.tf("Writing: “%s” (%s so far)", begins, n)))
	}
	return paragraph(text(v.tf("Writing (%s so far)", n)))
}

// modelTrouble is what keeps a model from answering, as a clause. What is not known by name is not guessed.
func (v *renderer) modelTrouble(kind string) string {
	switch kind {
	case "overloaded":
		return v.t("The model is overloaded")
	case "rate_limited":
		return v.t("The model has had too many requests")
	case "unavailable":
		return v.t("The model can't be reached")
	case "broken_answer":
		return v.t("The model's answer broke off")
	}
	return v.t("The model did not answer")
}

// wholeSeconds is a wait that is still to come, rounded up.
func (v *renderer) wholeSeconds(d time.Duration) string {
	n := int((d + time.Second - 1) / time.Second)
	if n < 60 {
		return v.tf("%s s", strconv.Itoa(n))
	}
	return v.tf("%d min %d s", n/60, n%60)
}

// usageLine is what a run took that is over; nil where the model doesn't count.
func (v *renderer) usageLine(run *ledger.Run) *slack.RichTextSection {
	f := run.Finished
	if f == nil || f.Usage.Tokens() <= 0 {
		return nil
	}
	s := v.count(f.Rounds, "request to the model", "requests to the model") + " · " + v.count(f.Usage.Tokens(), "token", "tokens")
	if c := f.Usage.Cost; c != nil {
		s += " · " + v.money(c)
	}
	return paragraph(text(s))
}

// money is an amount to the cent.
func (v *renderer) money(c *ledger.Cost) string {
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
		return v.tf("under %s", amount)
	}
	return amount
}

func byPeople(a ledger.Actor) bool { return a.Kind == ledger.ActorUser || a.Kind == ledger.ActorToken }

// task is one call. What Slack does with a title isn't documented, so only the
// tool's name goes there; what others wrote stands in rich text below it.
func (v *renderer) task(id string, c *ledger.Call, said string) *slack.TaskCardBlock {
	words, status := v.callState(c)
	name := v.label(c.Name, maxTaskTitle-utf8.RuneCountInString(words)-2)
	t := slack.NewTaskCardBlock(id, v.tf("%s: %s", name, words)).WithStatus(status)
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
		details = append(details, paragraph(text(v.tf("The agent: “%s”", v.line(said, 2*maxTaskSaid)))))
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

// aftermath says how a call ended: the first line of what it gave, or why it was not performed or failed; nil where the
// title, or the line of who stopped the run, says all.
func (v *renderer) aftermath(c *ledger.Call) *phrase {
	f := c.Finished
	stopped := f != nil && (f.Code == codeAborted || f.State == ledger.OutputDenied && f.Source == ledger.SourceAbort)
	switch {
	case f == nil || stopped:
		return nil
	case f.State == ledger.OutputAvailable:
		return v.gave(c)
	}
	if a := c.Approval; f.Source == ledger.SourceUser && a != nil && a.Resolved != nil {
		return v.phrase().form("By {who}{why}", slots{"who": peopleSlot(deniersOf(a)), "why": func(p *phrase) {
			if words := strings.TrimSpace(a.Resolved.Reason); words != "" {
				p.say(v.t(": ")).tell(words, maxTaskOutcome)
			}
		}})
	}
	reason := strings.TrimSpace(v.recorded(f.Reason))
	if reason == "" {
		return nil
	}
	return v.phrase().tell(reason, maxTaskOutcome)
}

// gave is the first line of what a tool gave; nil if that is nothing. Of a long output only the beginning is read, far more
// than is shown. What is a secret in the arguments is one in the output, too.
func (v *renderer) gave(c *ledger.Call) *phrase {
	output := c.Finished.Output
	if len(output) > maxSaidRead {
		output = strings.ToValidUTF8(output[:maxSaidRead], "")
	}
	_, hits := v.redactor.Text(c.Arguments)
	output = strings.TrimSpace(v.knowing(hits).clean(output))
	first, rest, _ := strings.Cut(output, "\n")
	if first = strings.TrimSpace(first); first == "" {
		return nil
	}
	shown := short(first, maxTaskOutcome)
	if strings.TrimSpace(rest) != "" && !strings.HasSuffix(shown, "…") {
		shown += " …"
	}
	return v.phrase().say(shown)
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
func (v *renderer) callState(c *ledger.Call) (string, slack.TaskCardStatus) {
	if f := c.Finished; f != nil {
		return v.finishedState(f)
	}
	switch a := c.Approval; {
	case !c.StartedAt.IsZero():
		return v.t("running"), slack.TaskCardStatusInProgress
	case a.Open() && a.Quorum > 1:
		return v.tf("waiting for approval, %d of %d given", len(approversOf(a)), a.Quorum), slack.TaskCardStatusPending
	case a.Open():
		return v.t("waiting for approval"), slack.TaskCardStatusPending
	case a != nil && a.Resolved.Type == ledger.Approved:
		return v.t("approved"), slack.TaskCardStatusInProgress
	case a != nil:
		return v.t("not performed"), slack.TaskCardStatusPending
	}
	return v.t("called"), slack.TaskCardStatusPending
}

func (v *renderer) finishedState(f *ledger.ToolFinished) (string, slack.TaskCardStatus) {
	switch endOf(f, endNotPerformed) {
	case endDone:
		return v.tf("done in %s", v.took(f.Elapsed)), slack.TaskCardStatusComplete
	case endStopped: // it had started: neither done nor not
		return v.t("stopped, may be partly performed"), slack.TaskCardStatusError
	case endUnknown:
		return v.t("outcome unknown"), slack.TaskCardStatusError
	case endFailed:
		return v.t("failed"), slack.TaskCardStatusError
	}
	switch f.Source {
	case ledger.SourceUser:
		return v.t("denied"), slack.TaskCardStatusPending
	case ledger.SourceAbort:
		return v.t("stopped, not performed"), slack.TaskCardStatusPending
	case ledger.SourcePolicy:
		return v.t("not allowed"), slack.TaskCardStatusPending
	case ledger.SourceLoopGuard:
		return v.t("not asked again"), slack.TaskCardStatusPending
	}
	return v.t("not performed"), slack.TaskCardStatusPending
}

// summarize counts calls that have no task of their own.
func (v *renderer) summarize(calls []*ledger.Call) string {
	var done, other int
	for _, c := range calls {
		if c.State == ledger.OutputAvailable {
			done++
		} else {
			other++
		}
	}
	earlier := v.count(len(calls), "earlier call", "earlier calls")
	if other > 0 {
		return v.tf("%s: %d done, %d not", earlier, done, other)
	}
	return v.tf("%s: %d done", earlier, done)
}
