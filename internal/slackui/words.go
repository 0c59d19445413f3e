package slackui

import (
	"cmp"
	"errors"
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
	a, end := c.Approval, endingOf(c)
	switch {
	case a.Resolved == nil && !performed(end):
		return p.form("No decision is recorded{why}. *Not performed.*", slots{"why": reasonSlot(v.recorded(c.Finished.Reason))})
	case a.Resolved == nil:
		p.say(v.t("No decision is recorded."))
	case a.Resolved.Type != ledger.Approved && !performed(end):
		v.denial(p, c, run, end)
		return p
	case a.Resolved.Type != ledger.Approved: // what can't be is not called approved
	case end == endNotPerformed:
		return p.form("{approved}, but *not performed*{why}.", slots{"approved": v.approved(a), "why": reasonSlot(v.recorded(c.Finished.Reason))})
	default:
		p.form("{approved}.", slots{"approved": v.approved(a)})
	}
	p.next()
	if program := programOf(run); program != "" {
		v.reported(p, program, c, end)
		return p
	}
	v.performance(p, c, end)
	return p
}

// approved says who approved, and whose changes are in what they approved.
func (v *renderer) approved(a *ledger.Approval) func(*phrase) {
	who := approversOf(a)
	s := slots{"who": peopleSlot(who), "at": momentSlot(a.ResolvedAt)}
	editor := editorOf(a)
	return func(p *phrase) {
		switch {
		case editor == nil:
			p.form("Approved by {who}, {at}", s)
		case len(who) == 1 && who[0].Person() == editor.Person():
			p.form("Edited and approved by {who}, {at}", s)
		default:
			s["editor"] = peopleSlot([]ledger.Actor{*editor})
			p.form("Edited by {editor}, then approved by {who}, {at}", s)
		}
	}
}

// editorOf is who changed the arguments last; nil if they are as they were asked for.
func editorOf(a *ledger.Approval) *ledger.Actor {
	switch {
	case a.Resolved != nil && a.Resolved.EditedBy != nil:
		return a.Resolved.EditedBy
	case len(a.Amended) > 0:
		return &a.Amended[len(a.Amended)-1].By
	}
	return nil
}

// performance says how far a call has come that was approved.
func (v *renderer) performance(p *phrase, c *ledger.Call, end ending) {
	switch end {
	case endStarting:
		p.form("*About to start.*", nil)
	case endRunning:
		p.form("*Running.*", nil)
	case endDone:
		p.form("*Done in {time}.*", slots{"time": saying(v.took(c.Finished.Elapsed))})
	case endFailed:
		why := reasonSlot(v.recorded(c.Finished.Reason))
		if c.Finished.Elapsed < 100*time.Millisecond {
			p.form("*It failed at once*{why}.", slots{"why": why})
			return
		}
		p.form("*It failed after {time}*{why}.", slots{"time": saying(v.took(c.Finished.Elapsed)), "why": why})
	case endStopped:
		p.form("*Stopped while it was running.* It may be partly performed.", nil)
	case endUnknown:
		p.form("*Outcome unknown*: {why}. It may have been performed, and will not be run again.", slots{"why": v.unknownBecause(c.Finished.Reason)})
	}
}

// unknownBecause is why it isn't known how a call ended: the first sentence of what is recorded.
func (v *renderer) unknownBecause(reason string) func(*phrase) {
	why, _, _ := strings.Cut(reason, ". ")
	why = strings.TrimRight(v.line(v.recorded(why), v.reasonChars()), ".。")
	return saying(cmp.Or(why, v.t("approvalbot ended while it was running")))
}

// denial says why a call was not performed that was not approved.
func (v *renderer) denial(p *phrase, c *ledger.Call, run *ledger.Run, end ending) {
	a := c.Approval
	why := slots{"why": reasonSlot(v.recorded(a.Resolved.Reason))}
	switch end {
	case endDenied:
		p.form("Denied by {who}, {at}{why}. *Not performed.*", slots{
			"who": peopleSlot(deniersOf(a)), "at": momentSlot(a.ResolvedAt), "why": reasonSlot(a.Resolved.Reason)})
	case endUnanswered:
		v.unanswered(p, a)
	case endUndeliverable:
		p.form("Nobody could be asked{why}. *Not performed.*", why)
	case endRefused:
		p.form("The rules don't allow it{why}. *Not performed.*", why)
	default:
		// By the order of the journal: two events may have one time.
		if s := run.Stop; s != nil && s.By.Kind != ledger.ActorSystem && s.Seq < a.ResolvedSeq {
			p.form("The run was stopped by {who}. *Not performed.*", slots{"who": peopleSlot([]ledger.Actor{s.By})})
			return
		}
		p.form("The run was stopped{why}. *Not performed.*", why)
	}
}

// unanswered says that nobody answered, and how long people had.
func (v *renderer) unanswered(p *phrase, a *ledger.Approval) {
	until := a.Until()
	switch {
	case len(a.Extended) > 0 && !until.IsZero():
		p.form("Nobody answered until {at}. *Not performed.*", slots{"at": momentSlot(until)})
	case a.Timeout > 0:
		p.form("Nobody answered within {time}. *Not performed.*", slots{"time": saying(v.lasting(a.Timeout))})
	default:
		p.form("Nobody answered in time. *Not performed.*", nil)
	}
}

// because adds a reason that somebody gave, if there is one.
func (p *phrase) because(reason string) *phrase {
	reason = strings.TrimRight(strings.TrimSpace(p.v.clean(reason)), ".。")
	if reason == "" {
		return p
	}
	return p.say(p.v.t(": ") + short(reason, p.v.reasonChars()))
}

// reasonChars is how much of a reason that somebody gave is said.
func (v *renderer) reasonChars() int {
	if v.terse > 0 {
		return v.terse
	}
	return maxReasonChars
}

// sentence makes a sentence of a phrase; of none, the usual one, which is of ours and without an end.
func (v *renderer) sentence(s, usual string) string {
	s = strings.TrimRight(strings.TrimSpace(s), ".。")
	if s == "" {
		s = usual
	}
	if s == "" {
		return ""
	}
	first, size := utf8.DecodeRuneInString(s)
	if word, _, _ := strings.Cut(s, " "); strings.ContainsAny(word, "_/.") {
		return s + v.t(".") // a name stays as it is
	}
	return string(unicode.ToUpper(first)) + s[size:] + v.t(".")
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
		p.say(v.t("somebody"))
		return
	}
	for i, a := range who {
		p.joint(i, len(who)).who(a)
	}
}

// joint is what stands before the i-th of n things in a list.
func (v *renderer) joint(i, n int) string {
	switch i {
	case 0:
		return ""
	case n - 1:
		return v.t(" and ")
	}
	return v.t(", ")
}

func (p *phrase) joint(i, n int) *phrase {
	if i == 0 {
		return p
	}
	return p.say(p.v.joint(i, n))
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
func (v *renderer) mayApprove(p *phrase, a *ledger.Approval) {
	requesterMay := slices.Contains(a.Approvers, "requester")
	var parts []func(*phrase)
	for _, word := range a.Approvers {
		switch {
		case word == "requester":
			parts = append(parts, saying(v.t("whoever asked")))
		case word == "channel":
			parts = append(parts, saying(v.membersWhere(a)))
		case word == "members":
			parts = append(parts, saying(v.t("full members of this workspace")))
		case userID.MatchString(word):
			if requesterMay || !asked(a, word) {
				parts = append(parts, func(p *phrase) { v.approver(p, a, word) })
			}
		case groupID.MatchString(word):
			parts = append(parts, func(p *phrase) { v.approver(p, a, word) })
		}
	}
	if len(parts) == 0 {
		p.say(v.t("nobody"))
		return
	}
	if left := len(parts) - maxMentions; left > 0 {
		parts = append(parts[:maxMentions], saying(v.tf("%d more", left)))
	}
	list := func(p *phrase) {
		for i, part := range parts {
			part(p.joint(i, len(parts)))
		}
	}
	if requesterMay {
		list(p)
		return
	}
	p.form("{people}, but not the person who asked", slots{"people": list})
}

// membersOf is whom "channel" stands for.
func (v *renderer) membersOf(at ledger.Place) string {
	if strings.HasPrefix(at.Channel, "D") {
		return v.t("full members of this conversation")
	}
	return v.t("full members of this channel")
}

func asked(a *ledger.Approval, user string) bool {
	return slices.ContainsFunc(a.Requesters, func(p ledger.Person) bool { return p.ID == user })
}

// refusal is the private sentence, in mrkdwn, for a person whose click had no
// effect.
func (v *renderer) refusal(err error) string {
	if e, ok := errors.AsType[*approvals.PausedError](err); ok {
		return v.pausedSentence(e.Pause, e.Ask)
	}
	if e, ok := errors.AsType[*approvals.RefusedError](err); ok {
		s := escape(v.sentence(v.line(v.recorded(e.Reason), maxReasonChars), v.t("You can't do that here")))
		if who := v.allowed(e.Allowed); who != "" {
			s += v.t(" ") + v.tf("Those who can: %s.", who)
		}
		return s
	}
	if e, ok := errors.AsType[*approvals.ConflictError](err); ok {
		by, at := v.byWhom(e.Resolution.By), v.dateToken(e.Resolution.At)
		if e.Resolution.Type == ledger.Approved {
			return v.tf("Already decided: %s approved this, %s. Your click changed nothing.", by, at)
		}
		return v.tf("Already decided: %s denied this, %s. Your click changed nothing.", by, at)
	}
	if e, ok := errors.AsType[*approvals.ExpiredError](err); ok {
		return v.tf("This request is over, %s: %s It was not performed, and your click changed nothing.",
			v.dateToken(e.Resolution.At), escape(v.overBecause(e)))
	}
	switch {
	case errors.Is(err, ledger.ErrNotRecorded):
		return v.t("I can't record this, so nothing is approved. The buttons stay; try again.")
	case errors.Is(err, approvals.ErrNotFound):
		return v.t("I don't know this request, so nothing was changed.")
	}
	return v.t("Something went wrong on my side, so nothing was decided. The buttons stay; try again.")
}

// repeatedVote is for a person who has approved and does so again while more
// approvals are needed: they would see nothing happen.
func (v *renderer) repeatedVote(out approvals.Outcome) string {
	n := stillNeeded(out)
	if n == 1 {
		return v.t("You have approved this already; 1 more is needed.")
	}
	return v.tf("You have approved this already; %d more are needed.", n)
}

func stillNeeded(out approvals.Outcome) int { return max(1, out.Quorum-out.Approvals) }

// decision says to a person what they have just decided.
func (v *renderer) decision(out approvals.Outcome) *phrase {
	a := out.Snapshot.Ask
	p := v.phrase()
	what := slots{"what": saying(v.request(&a).summary)}
	switch n := stillNeeded(out); {
	case out.Resolution != nil && out.Resolution.Type == ledger.Denied:
		p.form("You denied this: *{what}*. It will not be performed.", what)
	case out.Resolution != nil:
		p.form("You approved this: *{what}*. The card shows how it goes on.", what)
	case out.Repeated:
		p.form("You have approved this already: *{what}*.", what).next().say(v.moreNeeded(n))
	default:
		p.form("You approved this: *{what}*.", what).next().say(v.moreNeeded(n))
	}
	return p
}

func (v *renderer) moreNeeded(n int) string {
	if n == 1 {
		return v.t("1 more is needed before it is performed.")
	}
	return v.tf("%d more are needed before it is performed.", n)
}

// overBecause says why an ask ended without people.
func (v *renderer) overBecause(e *approvals.ExpiredError) string {
	r := e.Resolution
	reason := v.line(v.recorded(r.Reason), maxReasonChars)
	switch r.Source {
	case ledger.SourceTimeout:
		return v.sentence(reason, v.t("Nobody answered in time"))
	case ledger.SourceUndeliverable:
		return v.sentence(v.tf("nobody could be asked: %s", reason), "")
	}
	return v.sentence(reason, v.t("The run was stopped"))
}

func (v *renderer) byWhom(by *ledger.Actor) string {
	switch {
	case by == nil:
		return v.t("somebody")
	case by.Kind == ledger.ActorUser && userID.MatchString(by.ID):
		return "<@" + by.ID + ">"
	case by.Kind == ledger.ActorToken:
		return v.tf("the API token “%s”", escape(v.line(by.ID, maxNameChars)))
	}
	return escape(v.line(by.Name, maxNameChars))
}

// allowed is a list of approvers in mrkdwn; an ephemeral message mentions nobody
// but shows their names.
func (v *renderer) allowed(list []string) string {
	var parts []string
	for _, word := range list {
		switch {
		case word == "requester":
			parts = append(parts, v.t("whoever asked"))
		case word == "channel":
			parts = append(parts, v.membersOf(ledger.Place{}))
		case word == "members":
			parts = append(parts, v.t("full members of this workspace"))
		case userID.MatchString(word):
			parts = append(parts, "<@"+word+">")
		case groupID.MatchString(word):
			parts = append(parts, "<!subteam^"+word+">")
		}
	}
	if left := len(parts) - maxMentions; left > 0 {
		parts = append(parts[:maxMentions], v.tf("%d more", left))
	}
	var b strings.Builder
	for i, part := range parts {
		b.WriteString(v.joint(i, len(parts)) + part)
	}
	return b.String()
}
