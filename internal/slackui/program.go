package slackui

import (
	"strings"

	"github.com/slack-go/slack"

	"approvalbot/internal/ledger"
)

// What is different about the ask of another program: it acts itself, and says how it went, or doesn't.

// programOf is the program that will act; empty for a run of ours.
func programOf(run *ledger.Run) string {
	if run == nil || run.Started == nil {
		return ""
	}
	return run.Started.Program
}

// performer says, to those who decide, that it isn't us who will act.
func (v *renderer) performer(run *ledger.Run) []slack.RichTextElement {
	program := programOf(run)
	if program == "" {
		return nil
	}
	return []slack.RichTextElement{v.phrase().form("*Another program will do this:* {program} (not approvalbot, which can't check what it does)", v.programSlot(program)).section()}
}

// whoseAction says, on a card that has ended, whose action it was.
func (v *renderer) whoseAction(run *ledger.Run) []slack.RichTextElement {
	program := programOf(run)
	if program == "" {
		return nil
	}
	return []slack.RichTextElement{v.phrase().form("*Whose action:* {program}, another program (not approvalbot)", v.programSlot(program)).section()}
}

func (v *renderer) programSlot(program string) slots {
	return slots{"program": func(p *phrase) { p.mono(v.line(program, maxNameChars)) }}
}

// reported says how an approved action went, as far as its program has said so.
func (v *renderer) reported(p *phrase, program string, c *ledger.Call, end ending) {
	s := slots{"program": func(p *phrase) { p.tell(program, maxNameChars) }}
	if c.Finished != nil {
		s["time"] = saying(v.took(c.Finished.Elapsed))
	}
	switch end {
	case endStarting, endRunning:
		p.form("*Waiting for the outcome*: {program} may act now, and has not reported yet.", s)
	case endDone:
		p.form("*Done*: {program} reported so after {time}.", s)
	case endFailed:
		p.form("*Failed*: {program} reported so after {time}.", s)
	default:
		p.form("*No outcome reported.* Whether {program} did it is not known.", s)
	}
}

// unasked is said where no card says how it ended: nobody was asked.
func (v *renderer) unasked(run *ledger.Run) []rendering {
	for _, c := range run.Calls {
		if c.Approval != nil {
			return nil
		}
	}
	program := programOf(run)
	s := slots{"program": func(p *phrase) { p.tell(program, maxNameChars) }, "why": reasonSlot(v.recorded(run.Finished.Reason))}
	if len(run.Calls) == 0 {
		return v.messages(run, []unit{own(v.phrase().form("{program} wanted to act{why}. *Not performed.*", s))}, false)
	}
	c := run.Calls[0]
	s["tool"] = func(p *phrase) { p.tell(c.Name, maxNameChars) }
	if c.StartedAt.IsZero() {
		return v.messages(run, []unit{own(v.phrase().form("{program} wanted to run {tool}. Nobody was asked{why}. *Not performed.*", s))}, false)
	}
	s["why"] = reasonSlot(v.recorded(decisionReason(c)))
	p := v.phrase().form("{program} wanted to run {tool}. Nobody was asked{why}.", s).next()
	v.unaskedOutcome(p, s, c)
	return v.messages(run, []unit{own(p)}, false)
}

func (v *renderer) unaskedOutcome(p *phrase, s slots, c *ledger.Call) {
	switch endOf(c.Finished, endNotPerformed) {
	case endDone:
		p.form("{program} reported that it is done.", s)
	case endFailed:
		p.form("{program} reported that it failed.", s)
	default:
		p.form("*No outcome reported.*", nil)
	}
}

func decisionReason(c *ledger.Call) string {
	if c.Decision == nil {
		return ""
	}
	return strings.TrimSpace(c.Decision.Reason)
}
