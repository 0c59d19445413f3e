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
	// maxAnswerMessages bounds how much one answer may fill a thread. Of a longer one there is the beginning, and all of it
	// as a file.
	maxAnswerMessages = 3

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
	why := slots{"why": reasonSlot(v.recorded(f.Reason))}
	switch {
	case f.Status == ledger.RunCancelled && run.Stop != nil && byPeople(run.Stop.By) && len(unknown) == 0:
		return nil
	case f.Status == ledger.RunCancelled:
		parts = append(parts, own(v.phrase().form("This was stopped before it was finished{why}.", why)))
	case f.Status == ledger.RunFailed:
		parts = append(parts, own(v.phrase().form("I could not finish this{why}.", why)))
	case strings.TrimSpace(f.Answer) == "":
		parts = append(parts, own(v.phrase().form("I am done. There is nothing to add.", nil)))
	}
	parts = append(parts, v.unknown(unknown)...)
	text, rest := v.readable(v.ownAnswer(f))
	parts = append(parts, markdown(text)...)
	if f.Truncated && !rest {
		parts = append(parts, own(v.phrase().form("The answer is cut off here: it reached the limit of what the model may write at once. Ask me to go on.", nil)))
	}
	return v.messages(run, parts, rest)
}

// ownAnswer is the answer of a run; where it isn't the model's but ours, in the language of the workspace.
func (v *renderer) ownAnswer(f *ledger.RunFinished) string {
	if f.Code == codeDenied {
		return v.lang.Recorded(f.Answer)
	}
	return f.Answer
}

// codeDenied is the code of a run that ended because people kept saying no.
const codeDenied = "DENIED_REPEATEDLY"

// readable is as much of an answer as may be shown, without secrets, and whether there is more. Of what is read of a long
// one only the first half may be shown: at its end something may begin that the redactor would know by what follows.
func (v *renderer) readable(answer string) (text string, rest bool) {
	if len(answer) <= maxAnswer {
		return v.clean(answer), false
	}
	text = v.clean(strings.ToValidUTF8(answer[:maxAnswer], ""))
	return strings.ToValidUTF8(text[:len(text)/2], ""), true
}

// longer says that there is more than fits a thread, and where. A file that Slack doesn't take is in the journal still.
func (v *renderer) longer(run *ledger.Run) unit {
	return own(v.phrase().form("This is the beginning. All of the answer is in the file {file} (run {run}).", slots{
		"file": func(p *phrase) { p.mono(documentTitle) }, "run": func(p *phrase) { p.tell(run.ID, maxNameChars) },
	}))
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
	units := []unit{own(v.phrase().form("Of these it is not known whether they were performed. Please look; they will not be run again:", nil))}
	for _, c := range calls {
		item := paragraph(code(v.line(c.Name, maxNameChars)), text(" "+v.what(c)))
		units = append(units, unit{element: slack.NewRichTextList(slack.RTEListBullet, 0, item)})
	}
	return units
}

// messages packs units into as few messages as Slack allows. If there is more than a few can hold, there is one with the
// beginning, and a file.
func (v *renderer) messages(run *ledger.Run, units []unit, rest bool) []rendering {
	var out []rendering
	for left := units; len(left) > 0 && !rest; {
		n := fitting(left)
		if rest = len(out) == maxAnswerMessages; !rest {
			out = append(out, v.answerMessage(run, len(out)+1, left[:n]))
		}
		left = left[n:]
	}
	if !rest {
		return out
	}
	n := fitting(units)
	if n > 1 {
		n = fitting(units[:n-n/4]) // room for the last sentence
	}
	first := append(units[:n:n], v.longer(run))
	return []rendering{v.answerMessage(run, 1, first), {thing: ledger.Thing{Kind: kindFile, ID: run.ID}, run: run.ID}}
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
		said = v.t("Here is the answer.")
	}
	return rendering{
		text:   fallback(said),
		blocks: []slack.Block{richText(join(units)...)},
		thing:  ledger.Thing{Kind: "answer", ID: id},
		run:    run.ID,
	}
}
