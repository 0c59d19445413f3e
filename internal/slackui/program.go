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
	return []slack.RichTextElement{paragraph(bold("Another program will do this: "), code(v.line(program, maxNameChars)),
		text(" (not approvalbot, which can't check what it does)"))}
}

// whoseAction says, on a card that has ended, whose action it was.
func (v *renderer) whoseAction(run *ledger.Run) []slack.RichTextElement {
	program := programOf(run)
	if program == "" {
		return nil
	}
	return []slack.RichTextElement{paragraph(bold("Whose action: "), code(v.line(program, maxNameChars)), text(", another program (not approvalbot)"))}
}

// reported says how an approved action went, as far as its program has said so.
func (v *renderer) reported(p *phrase, program string, c *ledger.Call, end ending) {
	program = v.line(program, maxNameChars)
	switch end {
	case endStarting, endRunning:
		p.say(". ").strong("Waiting for the outcome").say(": " + program + " may act now, and has not reported yet.")
	case endDone:
		p.say(". ").strong("Done").say(": " + program + " reported so after " + took(c.Finished.Elapsed) + ".")
	case endFailed:
		p.say(". ").strong("Failed").say(": " + program + " reported so after " + took(c.Finished.Elapsed) + ".")
	default:
		p.say(". ").strong("No outcome reported.").say(" Whether " + program + " did it is not known.")
	}
}

// unasked is said where no card says how it ended: nobody was asked.
func (v *renderer) unasked(run *ledger.Run) []rendering {
	for _, c := range run.Calls {
		if c.Approval != nil {
			return nil
		}
	}
	program := v.line(programOf(run), maxNameChars)
	if len(run.Calls) == 0 {
		p := v.phrase().say(program + " wanted to act").because(run.Finished.Reason).say(". ").strong("Not performed.")
		return v.messages(run, []unit{own(p)})
	}
	c := run.Calls[0]
	p := v.phrase().say(program + " wanted to run " + v.line(c.Name, maxNameChars) + ". Nobody was asked")
	if c.StartedAt.IsZero() {
		p.because(run.Finished.Reason).say(". ").strong("Not performed.")
	} else {
		p.because(decisionReason(c)).say(". ")
		v.unaskedOutcome(p, program, c)
	}
	return v.messages(run, []unit{own(p)})
}

func (v *renderer) unaskedOutcome(p *phrase, program string, c *ledger.Call) {
	switch endOf(c.Finished, endNotPerformed) {
	case endDone:
		p.say(program + " reported that it is done.")
	case endFailed:
		p.say(program + " reported that it failed.")
	default:
		p.strong("No outcome reported.")
	}
}

func decisionReason(c *ledger.Call) string {
	if c.Decision == nil {
		return ""
	}
	return strings.TrimSpace(c.Decision.Reason)
}
