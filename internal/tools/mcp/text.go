package mcp

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// short is what somebody else wrote as a part of a sentence of ours: one line of a bearable length, valid UTF-8.
func short(s string) string { return cut(strings.Join(strings.Fields(clean(s)), " "), 300) }

// cut keeps at most limit characters, the mark included.
func cut(s string, limit int) string {
	if utf8.RuneCountInString(s) <= limit {
		return s
	}
	return string([]rune(s)[:limit-1]) + "…"
}

// clean makes valid UTF-8 of whatever came, and leaves out control characters but for line breaks and tabs.
func clean(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) && r != '\n' && r != '\t' {
			return -1
		}
		return r
	}, strings.ToValidUTF8(s, "\uFFFD"))
}
