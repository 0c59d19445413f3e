package slackui

import (
	"fmt"
	"strings"
	"time"

	"github.com/slack-go/slack"

	"approvalbot/internal/language"
	"approvalbot/internal/ledger"
)

// What people read is put into words here, in the language of the workspace. The English text is in the code; the others
// are in the catalogue (package language), where a test finds each call of these.

// t is a text of ours.
func (v *renderer) t(english string) string { return v.lang.T(english) }

// tf is a text of ours with something in it.
func (v *renderer) tf(english string, args ...any) string { return v.lang.Tf(english, args...) }

// count is a number with its noun.
func (v *renderer) count(n int, one, many string) string { return v.lang.Count(n, one, many) }

// slots fill in what stands between braces in a sentence.
type slots map[string]func(*phrase)

// form adds a sentence of ours: {name} is what the slot says, *words* are strong, and so is what a slot among them says.
// A slot without a function says nothing.
func (p *phrase) form(english string, s slots) *phrase {
	for _, piece := range language.Split(p.v.lang.T(english)) {
		switch {
		case piece.Slot != "":
			if say := s[piece.Slot]; say != nil {
				outer := p.bold
				p.bold = outer || piece.Strong
				say(p)
				p.bold = outer
			}
		case piece.Strong:
			p.strong(piece.Text)
		default:
			p.say(piece.Text)
		}
	}
	return p
}

// saying is a slot for words that are safe as they are.
func saying(words string) func(*phrase) { return func(p *phrase) { p.say(words) } }

// reasonSlot is for a reason, with what stands in front of one; without a reason it says nothing.
func reasonSlot(reason string) func(*phrase) { return func(p *phrase) { p.because(reason) } }

// peopleSlot is for people.
func peopleSlot(who []ledger.Actor) func(*phrase) { return func(p *phrase) { p.v.people(p, who) } }

// momentSlot is for a moment.
func momentSlot(at time.Time) func(*phrase) { return func(p *phrase) { p.at(at) } }

// next begins another sentence.
func (p *phrase) next() *phrase { return p.say(p.v.t(" ")) }

// section is what was said, as a paragraph.
func (p *phrase) section() *slack.RichTextSection { return paragraph(p.elements...) }

// took says how long something took, as exactly as one cares.
func (v *renderer) took(d time.Duration) string {
	switch {
	case d < 100*time.Millisecond:
		return v.t("under 0.1 s")
	case d < 10*time.Second:
		return v.tf("%s s", strings.TrimSuffix(fmt.Sprintf("%.1f", d.Seconds()), ".0"))
	case d < time.Minute:
		return v.tf("%s s", fmt.Sprint(int(d.Seconds())))
	case d < time.Hour:
		return v.tf("%d min %d s", int(d.Minutes()), int(d.Seconds())%60)
	}
	return v.tf("%d h %d min", int(d.Hours()), int(d.Minutes())%60)
}

// lasting is a length of time that somebody has set: 2 minutes, 90 seconds.
func (v *renderer) lasting(d time.Duration) string {
	if d < time.Second || d%time.Second != 0 {
		return v.took(d)
	}
	return v.lang.Lasting(d)
}

// recorded is a reason that the journal holds in English words, in ours where it is one that approvalbot always gives in
// the same words; anything else stays as it is.
func (v *renderer) recorded(reason string) string {
	if whole := v.lang.Recorded(reason); whole != reason {
		return whole
	}
	var parts []string
	ours := false
	for part := range strings.SplitSeq(reason, "; ") {
		said := v.lang.Recorded(part)
		ours = ours || said != part
		parts = append(parts, said)
	}
	if !ours {
		return reason // somebody else's words, with their own marks between them
	}
	return strings.Join(parts, v.t("; "))
}
