package command

import (
	"path"
	"slices"
	"strings"
	"unicode"

	"mvdan.cc/sh/v3/syntax"
)

// usualName tells whether a name is one that programs have: what it says is what
// it looks like, and no shell reads anything into it.
func usualName(name string) bool {
	if name == "[" {
		return true
	}
	if name == "" || len(name) > 200 || name[0] == '-' || name[0] == '+' || syntax.IsKeyword(name) && name != "time" {
		return false
	}
	return !strings.ContainsFunc(name, func(c rune) bool { return !nameRune(c) })
}

func nameRune(c rune) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || strings.ContainsRune("_./+-@%:", c)
}

// appendName adds the forms of a program's name that are new.
func appendName(programs []string, name string) []string {
	lower := strings.ToLower(name)
	for _, form := range []string{name, path.Base(name), lower, path.Base(lower)} {
		if !slices.Contains(programs, form) {
			programs = append(programs, form)
		}
	}
	return programs
}

// appendWords adds every word of a text that could be a program's name, however
// it is quoted or broken up.
func appendWords(programs []string, text string) []string {
	known := map[string]bool{}
	for _, p := range programs {
		known[p] = true
	}
	add := func(word string) {
		for _, form := range [...]string{word, path.Base(word), strings.ToLower(word), path.Base(strings.ToLower(word))} {
			if word != "" && !known[form] {
				known[form] = true
				programs = append(programs, form)
			}
		}
	}
	// Once as the words stand there, once with all that may be left out of them
	// left out: quotes, backslashes, what can't be seen.
	bare := strings.Map(func(c rune) rune {
		if c != '\n' && c != '\t' && (strings.ContainsRune(`'"\`, c) || !unicode.IsPrint(c)) {
			return -1
		}
		return c
	}, strings.ReplaceAll(text, "\\\n", ""))
	for _, t := range []string{bare, text} {
		for _, w := range strings.FieldsFunc(t, func(c rune) bool { return !nameRune(c) || strings.ContainsRune(":@%", c) }) {
			add(w)
			if bare := strings.TrimLeft(w, "-+"); bare != w && len(bare) > 1 { // -Iname, ${x:-name}
				add(bare)
				add(bare[1:])
			}
		}
	}
	return programs
}
