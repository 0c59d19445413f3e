package slackui

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"approvalbot/internal/approvals"
	"approvalbot/internal/ledger"
)

// An ending is where an ask and its call stand. All but the first three are the
// end of it, and a card says exactly one.
type ending string

const (
	endPending       ending = "pending"
	endStarting      ending = "approved, about to start"
	endRunning       ending = "running"
	endDone          ending = "done"
	endFailed        ending = "failed"
	endNotPerformed  ending = "approved, not performed"
	endStopped       ending = "stopped while running"
	endUnknown       ending = "outcome unknown"
	endDenied        ending = "denied"
	endUnanswered    ending = "nobody answered"
	endAborted       ending = "run stopped"
	endUndeliverable ending = "nobody could be asked"
	endRefused       ending = "refused by the rules"
)

// The codes of calls that started and whose end isn't known to be one.
const (
	codeAborted = "ABORTED"
	codeUnknown = "OUTCOME_UNKNOWN"

	codeNoOutcome = "NO_OUTCOME" // another program was allowed to do it and didn't say how it went
)

// endingOf reads where a call that was asked about stands. What the journal
// can't hold (an end without a resolution) is read as the worse of the two.
func endingOf(c *ledger.Call) ending {
	res := c.Approval.Resolved
	switch {
	case res == nil && c.Finished == nil:
		return endPending
	case res == nil:
		return endOf(c.Finished, endAborted)
	case res.Type != ledger.Approved && c.StartedAt.IsZero():
		return endOfDenial(res.Source)
	case c.Finished != nil:
		return endOf(c.Finished, endNotPerformed)
	case c.StartedAt.IsZero():
		return endStarting
	}
	return endRunning
}

func endOfDenial(source ledger.Source) ending {
	switch source {
	case ledger.SourceUser:
		return endDenied
	case ledger.SourceTimeout:
		return endUnanswered
	case ledger.SourceUndeliverable:
		return endUndeliverable
	case ledger.SourcePolicy, ledger.SourceLoopGuard:
		return endRefused
	}
	return endAborted
}

// endOf reads how a call ended; denied is what it means that it never started.
func endOf(f *ledger.ToolFinished, denied ending) ending {
	switch {
	case f.State == ledger.OutputAvailable:
		return endDone
	case f.State != ledger.OutputError:
		return denied
	case f.Code == codeAborted:
		return endStopped
	case f.Code == codeUnknown, f.Code == codeNoOutcome:
		return endUnknown
	}
	return endFailed
}

// outcome says how it ended, in one or two sentences.
func (v *renderer) outcome(c *ledger.Call, run *ledger.Run) *phrase {
	p := v.phrase()
	end := endingOf(c)
	switch a := c.Approval; {
	case a.Resolved == nil:
		p.say("No decision is recorded")
	case a.Resolved.Type == ledger.Approved:
		p.say("Approved by ")
		v.people(p, approversOf(a))
		p.say(", ").at(a.ResolvedAt)
	}
	if program := programOf(run); program != "" && performed(end) {
		v.reported(p, program, c, end)
		return p
	}
	switch end {
	case endStarting:
		p.say(". ").strong("About to start.")
	case endRunning:
		p.say(". ").strong("Running.")
	case endDone:
		p.say(". ").strong("Done in " + took(c.Finished.Elapsed) + ".")
	case endFailed:
		p.say(". ").strong("It failed " + afterwards(c.Finished.Elapsed))
		p.because(c.Finished.Reason).say(".")
	case endNotPerformed:
		p.say(", but ").strong("not performed")
		p.because(c.Finished.Reason).say(".")
	case endStopped:
		p.say(". ").strong("Stopped while it was running.").say(" It may be partly performed.")
	case endUnknown:
		why, _, _ := strings.Cut(c.Finished.Reason, ". ")
		why = strings.TrimRight(v.line(cmp.Or(why, "approvalbot ended while it was running"), maxReasonChars), ".")
		p.say(". ").strong("Outcome unknown").say(": " + why + ". It may have been performed, and will not be run again.")
	default:
		v.denial(p, c, run, end)
	}
	return p
}

func (v *renderer) denial(p *phrase, c *ledger.Call, run *ledger.Run, end ending) {
	res := c.Approval.Resolved
	if res == nil {
		p.because(c.Finished.Reason).say(". ").strong("Not performed.")
		return
	}
	reason := res.Reason
	switch end {
	case endDenied:
		p.say("Denied by ")
		v.people(p, deniersOf(c.Approval))
		p.say(", ").at(c.Approval.ResolvedAt)
		p.because(reason).say(". ").strong("Not performed.")
	case endUnanswered:
		p.say(sentence(v.line(reason, maxReasonChars), "Nobody answered in time") + " ").strong("Not performed.")
	case endUndeliverable:
		p.say("Nobody could be asked").because(reason).say(". ").strong("Not performed.")
	case endRefused:
		p.say("The rules don't allow it").because(reason).say(". ").strong("Not performed.")
	default:
		// By the order of the journal: two events may have one time.
		if s := run.Stop; s != nil && s.By.Kind != ledger.ActorSystem && s.Seq < c.Approval.ResolvedSeq {
			p.say("The run was stopped by ").who(s.By).say(". ").strong("Not performed.")
			return
		}
		p.say("The run was stopped").because(reason).say(". ").strong("Not performed.")
	}
}

// because adds a reason that somebody gave, if there is one.
func (p *phrase) because(reason string) *phrase {
	reason = strings.TrimRight(strings.TrimSpace(p.v.clean(reason)), ".")
	if reason == "" {
		return p
	}
	return p.say(": " + short(reason, maxReasonChars))
}

// sentence makes a sentence of a phrase; of none, the usual one.
func sentence(s, usual string) string {
	s = strings.TrimRight(strings.TrimSpace(s), ".")
	if s == "" {
		s = usual
	}
	first, size := utf8.DecodeRuneInString(s)
	if word, _, _ := strings.Cut(s, " "); s == "" || strings.ContainsAny(word, "_/.") {
		return s + "." // a name stays as it is
	}
	return string(unicode.ToUpper(first)) + s[size:] + "."
}

// approversOf are the people whose yes counted, the last one included.
func approversOf(a *ledger.Approval) []ledger.Actor { return voters(a, ledger.Approved) }

func deniersOf(a *ledger.Approval) []ledger.Actor {
	if a.Resolved.By != nil {
		return []ledger.Actor{*a.Resolved.By}
	}
	return voters(a, ledger.Denied)
}

func voters(a *ledger.Approval, t ledger.ResolutionType) []ledger.Actor {
	last := map[ledger.Person]ledger.ResolutionType{} // a person's last word counts
	for _, vote := range a.Votes {
		last[vote.By.Person()] = vote.Type
	}
	var who []ledger.Actor
	seen := map[ledger.Person]bool{}
	add := func(by ledger.Actor) {
		if p := by.Person(); !seen[p] {
			seen[p] = true
			who = append(who, by)
		}
	}
	for _, vote := range a.Votes {
		if last[vote.By.Person()] == t {
			add(vote.By)
		}
	}
	if a.Resolved != nil && a.Resolved.Type == t && a.Resolved.By != nil {
		add(*a.Resolved.By)
	}
	return who
}

// people adds several actors to a phrase.
func (v *renderer) people(p *phrase, who []ledger.Actor) {
	if len(who) == 0 {
		p.say("somebody")
		return
	}
	for i, a := range who {
		if i > 0 {
			p.say(joint(i, len(who)))
		}
		p.who(a)
	}
}

// joint is what stands before the i-th of n things in a list.
func joint(i, n int) string {
	if i == n-1 {
		return " and "
	}
	return ", "
}

// actorOf is a person as an actor, for a mention.
func actorOf(p ledger.Person) ledger.Actor {
	if name, ok := strings.CutPrefix(p.ID, string(ledger.ActorToken)+":"); ok {
		return ledger.Actor{Kind: ledger.ActorToken, ID: name}
	}
	return ledger.Actor{Kind: ledger.ActorUser, Team: p.Team, ID: p.ID, Name: p.ID}
}

// mayApprove says who may approve, with a mention of everyone who is named, so
// that it reaches them, where that is wanted.
func (v *renderer) mayApprove(a *ledger.Approval) []element {
	requesterMay := slices.Contains(a.Approvers, "requester")
	var parts []element
	for _, word := range a.Approvers {
		switch {
		case word == "requester":
			parts = append(parts, text("whoever asked"))
		case word == "channel":
			parts = append(parts, text(v.members(a)))
		case userID.MatchString(word):
			if requesterMay || !asked(a, word) {
				parts = append(parts, v.approver(a, word))
			}
		case groupID.MatchString(word):
			parts = append(parts, v.approver(a, word))
		}
	}
	if len(parts) == 0 {
		return []element{text("nobody")}
	}
	left := len(parts) - maxMentions
	if left > 0 {
		parts = append(parts[:maxMentions], text(fmt.Sprintf("%d more", left)))
	}
	sentence := []element{}
	for i, part := range parts {
		if i > 0 {
			sentence = append(sentence, text(joint(i, len(parts))))
		}
		sentence = append(sentence, part)
	}
	if !requesterMay {
		sentence = append(sentence, text(", but not the person who asked"))
	}
	return sentence
}

// membersOf is whom "channel" stands for.
func membersOf(at ledger.Place) string {
	if strings.HasPrefix(at.Channel, "D") {
		return "full members of this conversation"
	}
	return "full members of this channel"
}

func asked(a *ledger.Approval, user string) bool {
	return slices.ContainsFunc(a.Requesters, func(p ledger.Person) bool { return p.ID == user })
}

// took says how long something took, as exactly as one cares.
func took(d time.Duration) string {
	switch {
	case d < 100*time.Millisecond:
		return "under 0.1 s"
	case d < 10*time.Second:
		return strings.Replace(fmt.Sprintf("%.1f s", d.Seconds()), ".0 ", " ", 1)
	case d < time.Minute:
		return fmt.Sprintf("%d s", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%d min %d s", int(d.Minutes()), int(d.Seconds())%60)
	}
	return fmt.Sprintf("%d h %d min", int(d.Hours()), int(d.Minutes())%60)
}

// afterwards says when something ended: "after 2 s", or "at once".
func afterwards(d time.Duration) string {
	if d < 100*time.Millisecond {
		return "at once"
	}
	return "after " + took(d)
}

// count is a number with its noun.
func count(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	digits := fmt.Sprint(n)
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits + " " + many
}

// refusal is the private sentence, in mrkdwn, for a person whose click had no
// effect.
func (v *renderer) refusal(err error) string {
	if e, ok := errors.AsType[*approvals.RefusedError](err); ok {
		s := escape(sentence(v.line(e.Reason, maxReasonChars), "You can't do that here"))
		if who := allowed(e.Allowed); who != "" {
			s += " Those who can: " + who + "."
		}
		return s
	}
	if e, ok := errors.AsType[*approvals.ConflictError](err); ok {
		verb := "denied"
		if e.Resolution.Type == ledger.Approved {
			verb = "approved"
		}
		return fmt.Sprintf("Already decided: %s %s this%s. Your click changed nothing.", v.byWhom(e.Resolution.By), verb, when(e.Resolution.At))
	}
	if e, ok := errors.AsType[*approvals.ExpiredError](err); ok {
		return fmt.Sprintf("This request is over%s: %s It was not performed, and your click changed nothing.",
			when(e.Resolution.At), escape(v.overBecause(e.Resolution)))
	}
	switch {
	case errors.Is(err, ledger.ErrNotRecorded):
		return "I can't record this, so nothing is approved. The buttons stay; try again."
	case errors.Is(err, approvals.ErrNotFound):
		return "I don't know this request, so nothing was changed."
	}
	return "Something went wrong on my side, so nothing was decided. The buttons stay; try again."
}

// repeatedVote is for a person who has approved and does so again while more
// approvals are needed: they would see nothing happen.
func repeatedVote(out approvals.Outcome) string {
	return "You have approved this already; " + stillNeeded(out) + "."
}

func stillNeeded(out approvals.Outcome) string {
	n := max(1, out.Quorum-out.Approvals)
	if n == 1 {
		return "1 more is needed"
	}
	return fmt.Sprintf("%d more are needed", n)
}

// decision says to a person what they have just decided.
func (v *renderer) decision(out approvals.Outcome) *phrase {
	a := out.Snapshot.Ask
	p := v.phrase()
	denied := out.Resolution != nil && out.Resolution.Type == ledger.Denied
	switch {
	case denied:
		p.say("You denied this: ")
	case out.Repeated && out.Resolution == nil:
		p.say("You have approved this already: ")
	default:
		p.say("You approved this: ")
	}
	p.strong(v.request(&a).summary).say(". ")
	switch {
	case denied:
		return p.say("It will not be performed.")
	case out.Resolution == nil:
		return p.say(strings.ToUpper(stillNeeded(out)[:1]) + stillNeeded(out)[1:] + " before it is performed.")
	}
	return p.say("The card shows how it goes on.")
}

// overBecause says why an ask ended without people.
func (v *renderer) overBecause(r approvals.Resolution) string {
	reason := v.line(r.Reason, maxReasonChars)
	switch r.Source {
	case ledger.SourceTimeout:
		return sentence(reason, "Nobody answered in time")
	case ledger.SourceUndeliverable:
		return sentence("nobody could be asked: "+reason, "")
	}
	return sentence(reason, "The run was stopped")
}

func when(at time.Time) string {
	if at.IsZero() {
		return ""
	}
	return ", " + dateToken(at)
}

func (v *renderer) byWhom(by *ledger.Actor) string {
	switch {
	case by == nil:
		return "somebody"
	case by.Kind == ledger.ActorUser && userID.MatchString(by.ID):
		return "<@" + by.ID + ">"
	case by.Kind == ledger.ActorToken:
		return "the API token “" + escape(v.line(by.ID, maxNameChars)) + "”"
	}
	return escape(v.line(by.Name, maxNameChars))
}

// allowed is a list of approvers in mrkdwn; an ephemeral message mentions nobody
// but shows their names.
func allowed(list []string) string {
	var parts []string
	for _, word := range list {
		switch {
		case word == "requester":
			parts = append(parts, "whoever asked")
		case word == "channel":
			parts = append(parts, membersOf(ledger.Place{}))
		case word == "members":
			parts = append(parts, "full members of this workspace")
		case userID.MatchString(word):
			parts = append(parts, "<@"+word+">")
		case groupID.MatchString(word):
			parts = append(parts, "<!subteam^"+word+">")
		}
	}
	if left := len(parts) - maxMentions; left > 0 {
		parts = append(parts[:maxMentions], fmt.Sprintf("%d more", left))
	}
	var b strings.Builder
	for i, part := range parts {
		if i > 0 {
			b.WriteString(joint(i, len(parts)))
		}
		b.WriteString(part)
	}
	return b.String()
}
