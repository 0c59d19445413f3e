package command

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// Quote returns the text that makes every POSIX shell run argv: these words,
// exactly, and nothing else. It is for people to read and copy. Words without
// anything special in them stay as they are, all others are single-quoted.
//
// No program can be given a NUL, so no text can stand for one: it is kept, and
// what would run the text refuses it.
func Quote(argv []string) string {
	words := make([]string, len(argv))
	for i, arg := range argv {
		words[i] = quoteWord(arg)
	}
	return strings.Join(words, " ")
}

func quoteWord(s string) string {
	usual := func(c rune) bool { return c == ',' || nameRune(c) }
	if s != "" && !syntax.IsKeyword(s) && !strings.ContainsFunc(s, func(c rune) bool { return !usual(c) }) {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}
