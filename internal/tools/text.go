package tools

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// cutMark stands where text was left out at the end of a line.
const cutMark = "…"

// shorten returns s if it has at most limit runes, else its beginning and the
// mark, limit runes together.
func shorten(s string, limit int) string {
	if utf8.RuneCountInString(s) <= limit {
		return s
	}
	return string([]rune(s)[:limit-1]) + cutMark
}

// oneLine returns the first line of s that isn't blank, marked if there is more
// text after it.
func oneLine(s string) string {
	trimmed := strings.TrimLeftFunc(s, unicode.IsSpace)
	line, rest, _ := strings.Cut(trimmed, "\n")
	line = strings.TrimRightFunc(line, unicode.IsSpace)
	if strings.TrimSpace(rest) != "" {
		return line + " " + cutMark
	}
	return line
}

// hasControl reports whether s contains a control character, a line break
// included.
func hasControl(s string) bool { return strings.ContainsFunc(s, unicode.IsControl) }
