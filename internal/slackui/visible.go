package slackui

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// # What is shown is exact, except for marked escapes
//
// A person says yes to what they see, so nothing may be there that can't be seen.
// visible writes text so that every character of it shows, and so that the
// original can be computed from what is shown:
//
//	\u{202E}    a character that can't be seen or that changes how others are seen,
//	            by its Unicode number
//	\x{FF}      a byte that is no text at all
//	\u{5C}      a backslash that would otherwise read as the beginning of an escape
//	\u{20×5000} 5,000 spaces, where they could hide something: a long run inside a
//	            line, a very long indentation, any at the end of a line
//	\u{9×3}     tabs, likewise
//	\u{A×40}    40 line breaks in a row
//
// The marks are made of characters that every font has.
//
// What counts as invisible is decided by Unicode category, not by a list of
// known tricks: control, format, private use, surrogates, unassigned, separators
// other than the space, variation selectors and everything that Unicode itself
// calls ignorable; besides, the few letters that are drawn blank, and combining
// marks that pile up or stand on nothing.

const (
	maxInlineBlank = 7  // spaces in a row, inside a line; a tab counts as two
	maxIndent      = 32 // at the beginning of a line, where they are usual
	maxBreaks      = 3  // line breaks in a row
	maxCombining   = 3  // combining marks on one letter
)

// blankLetters are drawn as nothing although their category says letter or
// symbol.
var blankLetters = map[rune]bool{
	0x115F: true, 0x1160: true, 0x3164: true, 0xFFA0: true, // Hangul fillers
	0x2800: true,               // the Braille pattern with no dots
	0x17B4: true, 0x17B5: true, // Khmer vowels that are never drawn
	0x1D159: true, // the musical null notehead
}

// hidden tells whether a rune can't be seen. Space, tab and line break are not
// its business.
func hidden(r rune) bool {
	switch {
	case r < utf8.RuneSelf:
		return r < ' ' || r == 0x7F
	case !unicode.IsGraphic(r), unicode.Is(unicode.Zs, r), blankLetters[r]:
		return true
	}
	return unicode.In(r, unicode.Variation_Selector, unicode.Other_Default_Ignorable_Code_Point, unicode.Noncharacter_Code_Point)
}

// visible returns s with everything in it shown, and whether that took a mark.
// Line breaks and tabs stay.
func visible(s string) (shown string, marked bool) {
	w := writer{lines: true}
	w.write(s)
	return w.out.String(), w.marked
}

// visibleLine is visible for text that has to stay on one line.
func visibleLine(s string) (shown string, marked bool) {
	w := writer{}
	w.write(s)
	return w.out.String(), w.marked
}

// Visible is for other views of the same text, terminals and pages: everything in it shows, line breaks and tabs stay.
func Visible(s string) string {
	shown, _ := visible(s)
	return shown
}

// VisibleLine is Visible for text that has to stay on one line.
func VisibleLine(s string) string {
	shown, _ := visibleLine(s)
	return shown
}

// prose is visible for the words of a model, which are read and not approved:
// emoji keep their form, languages their joiners, and a space is a space.
func prose(s string) string {
	w := writer{lines: true, prose: true}
	w.write(s)
	return w.out.String()
}

// A writer writes text so that it shows.
type writer struct {
	lines     bool // line breaks and tabs stay
	prose     bool // emoji that are made of several characters stay whole
	out       strings.Builder
	chars     int // characters written
	marked    bool
	column    int  // characters written since the line began
	joins     bool // the character before can be joined to the next by a joiner
	sign      bool // the character before is the + or - that a line of a diff begins with
	base      bool // the character before can carry a combining mark
	combining int  // marks on it so far
	symbol    bool // the character before is one that emoji are made of
}

func (w *writer) write(s string) {
	for len(s) > 0 {
		s = s[w.next(s):]
	}
}

// next writes what s begins with and returns how many bytes that was.
func (w *writer) next(s string) int {
	r, size := utf8.DecodeRuneInString(s)
	switch {
	case w.keepsForm(s):
		symbol := w.symbol
		w.put(r)
		w.symbol = symbol
	case w.prose && r != ' ' && unicode.Is(unicode.Zs, r):
		w.put(' ')
	case r == utf8.RuneError && size == 1:
		w.mark(`\x{%02X}`, s[0])
	case r == ' ' || r == '\t' && w.lines:
		return w.blanks(s)
	case r == '\n' && w.lines:
		return w.breaks(s)
	case r == '\\' && (strings.HasPrefix(s[1:], "u{") || strings.HasPrefix(s[1:], "x{")),
		hidden(r),
		unicode.Is(unicode.M, r) && (!w.base || w.combining >= maxCombining):
		w.mark(`\u{%X}`, r)
	default:
		w.put(r)
	}
	return size
}

// put writes a character as it is.
func (w *writer) put(r rune) {
	w.out.WriteRune(r)
	w.chars++
	w.column++
	w.sign = r == '+' || r == '-'
	w.joins = w.prose && unicode.In(r, unicode.Arabic, unicode.Devanagari, unicode.Bengali, unicode.Malayalam, unicode.Sinhala)
	w.symbol = unicode.Is(unicode.So, r) || unicode.Is(unicode.Sk, r) || w.symbol && unicode.Is(unicode.M, r)
	if unicode.Is(unicode.M, r) {
		w.combining++
	} else {
		w.base, w.combining = true, 0
	}
}

// keepsForm tells whether s begins with a character that belongs to the form of
// the one before it: what asks for an emoji in colour, what joins it to the next,
// what joins or parts letters in the scripts that are written so.
func (w *writer) keepsForm(s string) bool {
	if !w.prose {
		return false
	}
	if w.joins && (strings.HasPrefix(s, "\u200C") || strings.HasPrefix(s, "\u200D")) {
		return true
	}
	if !w.symbol {
		return false
	}
	if rest, ok := strings.CutPrefix(s, "\uFE0F"); ok {
		return !strings.HasPrefix(rest, "\uFE0F")
	}
	rest, ok := strings.CutPrefix(s, "\u200D")
	next, _ := utf8.DecodeRuneInString(rest)
	return ok && unicode.Is(unicode.So, next)
}

func (w *writer) mark(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	w.out.WriteString(text)
	n := utf8.RuneCountInString(text)
	w.chars += n
	w.column += n
	w.marked, w.base, w.symbol, w.joins = true, false, false, false
}

// blanks writes a run of spaces and tabs, counted where it could hide something.
func (w *writer) blanks(s string) int {
	run := len(s) - len(strings.TrimLeft(s, " \t"))
	if !w.lines { // a tab is marked by itself there
		run = len(s) - len(strings.TrimLeft(s, " "))
	}
	limit := maxInlineBlank
	if w.lines && (w.column == 0 || w.column == 1 && w.sign) {
		limit = maxIndent
	}
	width := run + strings.Count(s[:run], "\t")
	w.base, w.symbol, w.joins = false, false, false
	atEnd := run == len(s) || w.lines && s[run] == '\n'
	if width <= limit && !atEnd {
		w.out.WriteString(s[:run])
		w.chars += run
		w.column += run
		return run
	}
	for rest := s[:run]; rest != ""; {
		same := len(rest) - len(strings.TrimLeft(rest, rest[:1]))
		w.count(rest[0], same)
		rest = rest[same:]
	}
	return run
}

// breaks writes a run of line breaks.
func (w *writer) breaks(s string) int {
	run := len(s) - len(strings.TrimLeft(s, "\n"))
	if run <= maxBreaks {
		w.out.WriteString(s[:run])
		w.chars += run
	} else {
		w.out.WriteByte('\n')
		w.count('\n', run)
		w.out.WriteByte('\n')
		w.chars += 2
	}
	w.column, w.base, w.symbol, w.joins = 0, false, false, false
	return run
}

func (w *writer) count(blank byte, n int) {
	if n == 1 {
		w.mark(`\u{%X}`, blank)
		return
	}
	w.mark(`\u{%X×%d}`, blank, n)
}

// A clip is the beginning of a text.
type clip struct {
	text   string
	marked bool // something in it took an escape
	left   int  // characters of the original that are not in it
	lines  int  // lines of the original that are not in it, the cut one included
}

// beginning shows the first lines and characters of s. It is cut between
// characters of the original, never inside an escape, and says nothing about the
// cut itself: whoever shows it does.
func beginning(s string, maxChars, maxLines int) clip {
	w := writer{lines: true}
	lines, rest := 1, s
	for len(rest) > 0 {
		n := len(rest) - len(strings.TrimLeft(rest, "\n"))
		if lines+n > maxLines || w.chars >= maxChars {
			break
		}
		lines += n
		rest = rest[w.next(rest):]
	}
	c := clip{text: strings.TrimRight(w.out.String(), "\n"), marked: w.marked, left: utf8.RuneCountInString(rest)}
	if strings.Trim(rest, "\n") == "" {
		c.left = 0
	}
	if c.left > 0 {
		c.lines = strings.Count(strings.Trim(rest, "\n"), "\n") + 1
	}
	return c
}

// tail is the end of s: whole lines, at most so many, and of a last line that is
// longer than the room its end. It is cut between characters.
func tail(s string, maxChars, maxLines int) string {
	body := strings.TrimRight(s, "\n")
	start := len(body)
	for chars, lines := 0, 1; start > 0 && chars < maxChars; chars++ {
		r, size := utf8.DecodeLastRuneInString(body[:start])
		if r == '\n' {
			if lines == maxLines {
				break
			}
			lines++
		}
		start -= size
	}
	if start > 0 && body[start-1] != '\n' { // in the middle of a line: begin with the next one, if there is one
		if _, next, ok := strings.Cut(body[start:], "\n"); ok {
			return s[len(body)-len(next):]
		}
	}
	return s[start:]
}

// ends shows the first and the last lines of s, and how much lies between them:
// where something went wrong, the last lines say what. foot is how much of the
// room the end gets. If all of it fits, or if the rest is only blank, last is
// empty and first has all of it.
func ends(s string, maxChars, maxLines, footChars, footLines int) (first clip, last string) {
	if all := beginning(s, maxChars, maxLines); all.left == 0 {
		return all, ""
	}
	foot := tail(s, footChars, footLines)
	first = beginning(s[:len(s)-len(foot)], maxChars-footChars, maxLines-footLines)
	last, _ = visible(strings.TrimRight(foot, "\n"))
	return first, last
}

// short is the beginning of s on one line; the cut is marked with an ellipsis.
func short(s string, maxChars int) string {
	w := writer{}
	for rest := s; len(rest) > 0; {
		if w.chars >= maxChars-1 && utf8.RuneCountInString(rest) > 1 {
			return w.out.String() + "…"
		}
		rest = rest[w.next(rest):]
	}
	return w.out.String()
}

// cutShown shortens text that was made visible before.
func cutShown(s string, maxChars int) string {
	runes := []rune(s)
	if len(runes) <= maxChars {
		return s
	}
	return string(runes[:maxChars-1]) + "…"
}

// escape makes shown text safe in mrkdwn: no mention, link or date can begin in
// it. It is for text that had to go there; everything else goes into rich text.
func escape(s string) string {
	return strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;").Replace(s)
}
