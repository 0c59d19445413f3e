package slackui

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/slack-go/slack"

	"approvalbot/internal/ledger"
)

// What people changed in a request stands on its card: who, and each argument as it was and as it is. The request above it
// is the changed one, complete; this is a help for the eye and may be cut short. What it was comes from the request as it
// was opened, so several changes read as one.

const (
	maxChangedWeight = 2500 // of all that is said about changes
	maxChangedInLine = 60   // characters of a value that stands in a line
	maxChangedLines  = 14   // of a text with several
	maxChangedChars  = 800  // likewise
)

// changed says on a card what people changed in the arguments, against what was asked for; nil if there is nothing to say.
func (v *renderer) changed(a *ledger.Approval, m room) []slack.RichTextElement {
	if a.Revision() == 0 || a.Original == nil {
		return nil
	}
	p := v.phrase()
	if a.Resolved != nil && a.Resolved.Type == ledger.Approved { // by whom and when is said in the same breath as who approved
		p.form("*What was changed:*", nil)
	} else {
		p.form("*Changed by* {who}, {at}:", slots{
			"who": func(p *phrase) { p.v.people(p, editorsOf(a)) },
			"at":  func(p *phrase) { p.at(a.Amended[a.Revision()-1].At) },
		})
	}
	said := []slack.RichTextElement{paragraph(p.elements...)}
	was, is := v.members(a.Original.Arguments), v.members(a.Arguments)
	names := differing(was, is)
	if len(names) == 0 {
		return append(said, paragraph(text(v.t("It is as it was asked for again."))))
	}
	for i, name := range names {
		next := v.change(name, was[name], is[name])
		most := maxChangedWeight * m.reason / usualRoom.reason
		if (i > 0 || m != usualRoom) && weight(richText(append(slices.Clone(said), next...)...)) > most {
			left := v.count(len(names)-i, "more argument", "more arguments")
			return append(said, paragraph(text("… "+left)))
		}
		said = append(said, next...)
	}
	return said
}

// editorsOf are the people who changed a request, each once, in order.
func editorsOf(a *ledger.Approval) (who []ledger.Actor) {
	for _, m := range a.Amended {
		if !slices.ContainsFunc(who, func(w ledger.Actor) bool { return w.Person() == m.By.Person() }) {
			who = append(who, m.By)
		}
	}
	return who
}

// members are the members of arguments, without secrets.
func (v *renderer) members(arguments string) map[string]json.RawMessage {
	var all map[string]json.RawMessage
	_ = json.Unmarshal(v.redactor.JSON([]byte(arguments)), &all)
	return all
}

// differing names the members that two objects don't have alike.
func differing(a, b map[string]json.RawMessage) []string {
	names := map[string]bool{}
	for _, all := range []map[string]json.RawMessage{a, b} {
		for name := range all {
			if string(a[name]) != string(b[name]) {
				names[name] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(names))
}

// change is one argument as it was and as it is.
func (v *renderer) change(name string, was, is json.RawMessage) []slack.RichTextElement {
	from, to := v.value(was), v.value(is)
	label := v.argument(name, maxNameChars)
	if !strings.Contains(from+to, "\n") && len([]rune(from)) <= maxChangedInLine && len([]rune(to)) <= maxChangedInLine {
		strike := slack.RichTextSectionTextStyle{Strike: true, Code: true}
		old, now := styled(shownValue(v, from), strike), code(shownValue(v, to))
		if was == nil {
			old = text(v.t("(nothing)"))
		}
		if is == nil {
			now = text(v.t("(nothing)"))
		}
		return []slack.RichTextElement{paragraph(code(label), text(": "), old, text(" → "), now)}
	}
	return []slack.RichTextElement{paragraph(code(label), text(":")), preformatted(diffOf(v, from, to))}
}

// shownValue is a value in a line; Slack has no empty text.
func shownValue(v *renderer, s string) string {
	if s == "" {
		return `""`
	}
	return v.line(s, maxChangedInLine)
}

// value is an argument for reading: a text as it is, all else as JSON.
func (v *renderer) value(raw json.RawMessage) string {
	var s string
	if json.Unmarshal(raw, &s) == nil {
		return v.clean(s)
	}
	if len(raw) <= maxChangedInLine {
		return v.clean(string(raw))
	}
	return v.clean(indented(string(raw)))
}

// A diffLine is one line of two texts: of the first (-), the second (+), or both (a blank).
type diffLine struct {
	mark byte
	text string
}

// diffOf shows two texts by the lines in which they differ, with a line around them.
func diffOf(v *renderer, from, to string) string {
	all := diffLines(linesOf(from), linesOf(to))
	var out []string
	room, skipped := maxChangedChars, false
	for i, l := range all {
		near := l.mark != ' ' || i > 0 && all[i-1].mark != ' ' || i+1 < len(all) && all[i+1].mark != ' '
		if !near {
			skipped = true
			continue
		}
		if skipped {
			out, skipped = append(out, "  …"), false
		}
		if len(out) >= maxChangedLines || room <= 0 {
			return strings.Join(append(out, "… "+v.count(len(all)-i, "more line", "more lines")), "\n")
		}
		shown, _ := visibleLine(l.text)
		shown = cutShown(shown, room)
		room -= len([]rune(shown))
		out = append(out, string(l.mark)+" "+shown)
	}
	return strings.Join(out, "\n")
}

// linesOf are the lines of a text; an empty one has none.
func linesOf(s string) []string {
	if s == "" {
		return nil
	}
	return strings.Split(s, "\n")
}

// maxCompared bounds what is compared line by line; of more, all lines between the first and the last difference count
// as changed.
const maxCompared = 200

// diffLines compares two texts by their longest common subsequence.
func diffLines(a, b []string) (all []diffLine) {
	put := func(mark byte, lines ...string) {
		for _, l := range lines {
			all = append(all, diffLine{mark, l})
		}
	}
	head, tail := 0, 0
	for head < min(len(a), len(b)) && a[head] == b[head] {
		head++
	}
	for tail < min(len(a), len(b))-head && a[len(a)-1-tail] == b[len(b)-1-tail] {
		tail++
	}
	x, y := a[head:len(a)-tail], b[head:len(b)-tail]
	put(' ', a[:head]...)
	if len(x) > maxCompared || len(y) > maxCompared {
		put('-', x...)
		put('+', y...)
	} else {
		common := commonLines(x, y)
		for len(x) > 0 || len(y) > 0 {
			i, j := len(common)-1-len(x), len(common[0])-1-len(y)
			switch {
			case len(x) > 0 && len(y) > 0 && x[0] == y[0]:
				put(' ', x[0])
				x, y = x[1:], y[1:]
			case len(x) > 0 && (len(y) == 0 || common[i+1][j] >= common[i][j+1]):
				put('-', x[0])
				x = x[1:]
			default:
				put('+', y[0])
				y = y[1:]
			}
		}
	}
	put(' ', a[len(a)-tail:]...)
	return all
}

// commonLines tells of each two ends of x and y how many lines they have in common, in order.
func commonLines(x, y []string) [][]int {
	n := make([][]int, len(x)+1)
	for i := range n {
		n[i] = make([]int, len(y)+1)
	}
	for i := len(x) - 1; i >= 0; i-- {
		for j := len(y) - 1; j >= 0; j-- {
			if x[i] == y[j] {
				n[i][j] = n[i+1][j+1] + 1
			} else {
				n[i][j] = max(n[i+1][j], n[i][j+1])
			}
		}
	}
	return n
}

// performedOutput is how a call ended, without what its output tells the model alone: that people changed its arguments
// stands on the card already.
func performedOutput(c *ledger.Call) *ledger.ToolFinished {
	f := *c.Finished
	if r := c.Approval.Resolved; r != nil && r.EditedBy != nil && !c.StartedAt.IsZero() {
		_, f.Output, _ = strings.Cut(f.Output, "\n")
	}
	return &f
}
