package slackui

import (
	"fmt"
	"strings"

	"github.com/slack-go/slack"

	"approvalbot/internal/ledger"
)

// An answer is the words of a model: read, never trusted. It is read here as
// light Markdown (markdown.go) and written as rich text, in which nothing that it
// says can mention anybody or link anywhere.

const (
	// maxAnswerMessages bounds how much one answer may fill a thread.
	maxAnswerMessages = 10

	// maxAnswer is how much of an answer is read for that, in bytes. It is read once
	// for each message, while every card waits.
	maxAnswer = 2 * maxAnswerMessages * maxMessage
)

// answer is what a run has to say at its end: usually one message, several where
// it is long. There is none if the progress message has said it all.
func (v *renderer) answer(run *ledger.Run) []rendering {
	f := run.Finished
	if f == nil {
		return nil
	}
	if programOf(run) != "" {
		return v.unasked(run)
	}
	var parts []unit
	unknown := unknownOutcomes(run)
	switch {
	case f.Status == ledger.RunCancelled && run.Stop != nil && byPeople(run.Stop.By) && len(unknown) == 0:
		return nil
	case f.Status == ledger.RunCancelled:
		parts = append(parts, own(v.phrase().say("This was stopped before it was finished").because(f.Reason).say(".")))
	case f.Status == ledger.RunFailed:
		parts = append(parts, own(v.phrase().say("I could not finish this").because(f.Reason).say(".")))
	case strings.TrimSpace(f.Answer) == "":
		parts = append(parts, own(v.phrase().say("I am done. There is nothing to add.")))
	}
	parts = append(parts, v.unknown(unknown)...)
	text, rest := v.readable(f.Answer)
	parts = append(parts, markdown(text)...)
	switch {
	case rest:
		parts = append(parts, v.longer(run))
	case f.Truncated:
		parts = append(parts, own(v.phrase().say("The answer is cut off here: it reached the limit of what the model may write at once. Ask me to go on.")))
	}
	return v.messages(run, parts)
}

// readable is as much of an answer as may be shown, without secrets, and whether there is more. Of what is read of a long
// one only the first half may be shown: at its end something may begin that the redactor would know by what follows.
func (v *renderer) readable(answer string) (text string, rest bool) {
	if len(answer) <= maxAnswer {
		return v.clean(answer), false
	}
	text = v.clean(strings.ToValidUTF8(answer[:maxAnswer], ""))
	return strings.ToValidUTF8(text[:len(text)/2], ""), true
}

// longer says that there is more than fits a thread.
func (v *renderer) longer(run *ledger.Run) unit {
	return own(v.phrase().say("The answer is longer than this. All of it is in the journal, run ").tell(run.ID, maxNameChars).say("."))
}

func own(p *phrase) unit { return unit{element: paragraph(p.elements...), plain: p.plain.String()} }

// unknownOutcomes are the calls of which nobody knows whether they were performed.
func unknownOutcomes(run *ledger.Run) []*ledger.Call {
	var calls []*ledger.Call
	for _, c := range run.Calls {
		if c.Finished != nil && endOf(c.Finished, endNotPerformed) == endUnknown {
			calls = append(calls, c)
		}
	}
	return calls
}

func (v *renderer) unknown(calls []*ledger.Call) []unit {
	if len(calls) == 0 {
		return nil
	}
	units := []unit{own(v.phrase().say("Of these it is not known whether they were performed. Please look; they will not be run again:"))}
	for _, c := range calls {
		item := paragraph(code(v.line(c.Name, maxNameChars)), text(" "+v.what(c)))
		units = append(units, unit{element: slack.NewRichTextList(slack.RTEListBullet, 0, item)})
	}
	return units
}

// messages packs units into as few messages as Slack allows.
func (v *renderer) messages(run *ledger.Run, units []unit) []rendering {
	var out []rendering
	for len(units) > 0 {
		n := fitting(units)
		if len(out) == maxAnswerMessages-1 && n < len(units) {
			n = fitting(units[:n-n/4]) // room for the last sentence
			units = append(units[:n:n], v.longer(run))
			n = len(units)
		}
		out = append(out, v.answerMessage(run, len(out)+1, units[:n]))
		units = units[n:]
	}
	return out
}

// fitting is how many units, at least one, go into one message. A unit weighs the
// most by itself: joined ones share what is around them.
func fitting(units []unit) int {
	const between = 40 // the blank line that join puts between paragraphs
	frame := weight(richText())
	total := frame
	for n, u := range units {
		total += weight(richText(u.element)) - frame + between
		if n > 0 && total > maxMessage {
			return n
		}
	}
	return len(units)
}

func (v *renderer) answerMessage(run *ledger.Run, n int, units []unit) rendering {
	id := run.ID
	if n > 1 {
		id = fmt.Sprintf("%s/%d", run.ID, n)
	}
	plain := make([]string, 0, len(units))
	for _, u := range units {
		if u.plain != "" {
			plain = append(plain, u.plain)
		}
	}
	said := cutShown(strings.Join(strings.Fields(strings.Join(plain, " ")), " "), maxFallback) // visible already
	if said == "" {
		said = "Here is the answer."
	}
	return rendering{
		text:   fallback(said),
		blocks: []slack.Block{richText(join(units)...)},
		thing:  ledger.Thing{Kind: "answer", ID: id},
		run:    run.ID,
	}
}
