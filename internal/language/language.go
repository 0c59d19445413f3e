// Package language is the catalogue of what people read: every sentence, label and word of ours, in every language that we
// speak.
//
// # Life of a text
//
// A text is written in English where it is needed: lang.T("Deny"). The English text is its own key, so the code says what
// people read, and a language that lacks a text shows the English one. The other languages are maps from the English text
// (zh_*.go). A test reads the sources and finds each text that is asked for: one that a language lacks, one that nobody
// asks for any more, and one whose placeholders differ are errors. So there is no incomplete translation.
//
// A process speaks one language. What is journalled as a fact (who, when, how much, why by code) is put into words when it
// is shown. What is journalled in words was put into words once, and stays so; [Language.Recorded] translates those that
// are fixed sentences.
//
// What a model reads, what operators read (logs, errors at the start, --help), and names of commands and settings are
// English everywhere.
//
// # Placeholders
//
// [Language.Tf] has those of package fmt; a translation may order them with %[2]s. [Split] takes a text with {names} and
// *strong* words apart, for sentences with mentions and dates in them, whose order differs between languages.
package language

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// A Language is one that we speak. The zero value is English.
type Language string

const (
	English Language = "en"
	Chinese Language = "zh" // simplified
)

// All are the languages, English first.
var All = []Language{English, Chinese}

// Parse reads the name of a language: en or zh, or a longer tag of one of them such as zh-CN. Empty is English.
func Parse(name string) (Language, error) {
	tag, _, _ := strings.Cut(strings.ToLower(strings.TrimSpace(name)), "-")
	tag, _, _ = strings.Cut(tag, "_")
	switch l := Language(tag); {
	case tag == "":
		return English, nil
	case slices.Contains(All, l):
		return l, nil
	}
	return English, fmt.Errorf("%q is not a language that is spoken here: use en (English) or zh (Simplified Chinese)", name)
}

// UnmarshalText reads it from a setting.
func (l *Language) UnmarshalText(text []byte) (err error) {
	*l, err = Parse(string(text))
	return err
}

// T is a text of ours. It takes a constant: the test that finds what has to be translated reads the sources.
func (l Language) T(english string) string {
	if l == Chinese {
		if t, ok := chinese[english]; ok {
			return t
		}
	}
	return english
}

// Tf is a text of ours with something in it, as fmt.Sprintf. The format is a constant.
func (l Language) Tf(format string, args ...any) string {
	return fmt.Sprintf(l.T(format), args...)
}

// Count is a number with its noun: Count(2, "secret", "secrets"). A language without plurals translates the second.
func (l Language) Count(n int, one, many string) string {
	if l != Chinese {
		if n == 1 {
			return "1 " + one
		}
		return Number(n) + " " + many
	}
	return Number(n) + " " + l.T(many)
}

// Lasting is a length of time that somebody has set, in the largest unit that it is whole in: 2 hours, 90 seconds.
func (l Language) Lasting(d time.Duration) string {
	switch {
	case d%time.Hour == 0:
		return l.Count(int(d/time.Hour), "hour", "hours")
	case d%time.Minute == 0:
		return l.Count(int(d/time.Minute), "minute", "minutes")
	case d%time.Second == 0:
		return l.Count(int(d/time.Second), "second", "seconds")
	}
	return d.String()
}

// Later is a text whose words were noted by others, as a format and what goes into it: those who noted it are found by the
// test.
func (l Language) Later(format string, args ...any) string {
	return fmt.Sprintf(l.T(format), args...)
}

// Number writes a number with its thousands.
func Number(n int) string {
	digits := strconv.Itoa(n)
	sign := ""
	if n < 0 {
		sign, digits = "-", digits[1:]
	}
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return sign + digits
}

// A Piece is a part of a text: words, or the name of what comes in their place.
type Piece struct {
	Text   string
	Slot   string // the name between braces; Text is empty then
	Strong bool   // between stars
}

// Split takes a text apart: {name} is a slot, *words* are strong. Neither can be nested, and there is no escape: texts
// are ours.
func Split(text string) []Piece {
	var out []Piece
	strong := false
	add := func(s string) {
		if s != "" {
			out = append(out, Piece{Text: s, Strong: strong})
		}
	}
	for text != "" {
		i := strings.IndexAny(text, "{*")
		if i < 0 {
			add(text)
			break
		}
		add(text[:i])
		if text[i] == '*' {
			strong = !strong
			text = text[i+1:]
			continue
		}
		name, rest, closed := strings.Cut(text[i+1:], "}")
		if !closed {
			add(text[i:])
			break
		}
		out = append(out, Piece{Slot: name, Strong: strong})
		text = rest
	}
	return out
}
