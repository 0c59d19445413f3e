package slackui

import (
	"approvalbot/internal/language"
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

// form adds a sentence of ours: {name} is what the slot says, *words* are strong. A slot without a function says nothing.
func (p *phrase) form(english string, s slots) *phrase {
	for _, piece := range language.Split(p.v.lang.T(english)) {
		switch {
		case piece.Slot != "":
			if say := s[piece.Slot]; say != nil {
				say(p)
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
