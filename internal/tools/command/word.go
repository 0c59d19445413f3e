package command

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// A word is one argument as far as its text says what it will be.
type word struct {
	text    string // if literal, exactly what the program gets
	literal bool   // the same in every shell, one argument, whatever the state of the world
	plain   bool   // written as it is: no quotes, no escapes
}

// literal reads a word.
func literal(w *syntax.Word) word {
	// Nearly all words are plain. Empty braces stand for themselves everywhere.
	if raw := w.Lit(); raw != "" && !strings.ContainsAny(strings.ReplaceAll(raw, "{}", ""), special) || raw == "[" {
		return word{raw, true, true}
	}
	var text strings.Builder
	for _, part := range w.Parts {
		if !literalPart(&text, part) {
			return word{}
		}
	}
	return word{text: text.String(), literal: true}
}

// special are the characters that can make something else of an unquoted word,
// in dash or in bash: expansions, patterns, braces, home directories, escapes.
const special = "$`*?[{}~\\"

func literalPart(text *strings.Builder, part syntax.WordPart) bool {
	switch part := part.(type) {
	case *syntax.Lit:
		return unescape(text, part.Value, special[:len(special)-1], "")
	case *syntax.SglQuoted:
		text.WriteString(part.Value)
		return !part.Dollar
	case *syntax.DblQuoted:
		if part.Dollar {
			return false
		}
		for _, p := range part.Parts {
			lit, ok := p.(*syntax.Lit)
			if !ok || !unescape(text, lit.Value, "$`", "$`\"\\\n") {
				return false
			}
		}
		return true
	}
	return false
}

// unescape writes raw without its backslashes. It reports false if one of the
// characters in refused stands there unescaped, or a backslash at the end. Only
// those in escapable lose their backslash; "" means that all do.
func unescape(text *strings.Builder, raw, refused, escapable string) bool {
	for i := 0; i < len(raw); i++ { // all that counts here is ASCII, so bytes will do
		c := raw[i]
		switch {
		case strings.IndexByte(refused, c) >= 0:
			return false
		case c != '\\':
			text.WriteByte(c)
			continue
		case i+1 == len(raw):
			return false
		}
		i++
		if escapable != "" && strings.IndexByte(escapable, raw[i]) < 0 {
			text.WriteByte('\\')
		}
		if raw[i] != '\n' {
			text.WriteByte(raw[i])
		}
	}
	return true
}

// foreign tells whether parts of a word hold a dollar sign that is mere text to a
// POSIX shell and more to bash: $'…', $"…", $[…].
func foreign(parts []syntax.WordPart, quoted bool) bool {
	for i, part := range parts {
		lit, ok := part.(*syntax.Lit)
		if !ok || !strings.HasSuffix(lit.Value, "$") || i+1 == len(parts) {
			continue
		}
		next, ok := parts[i+1].(*syntax.Lit)
		if !quoted && !ok || ok && strings.HasPrefix(next.Value, "[") {
			return true
		}
	}
	return false
}

// simpleCommand returns the argument list of a file that is one literal command
// and nothing else, and whether its program is written plainly. Otherwise it says
// in a clause what else it is.
func simpleCommand(file *syntax.File) (argv []string, plain bool, why string) {
	if file == nil || len(file.Stmts) == 0 {
		return nil, false, "there is no command in it"
	}
	s := file.Stmts[0]
	call, ok := s.Cmd.(*syntax.CallExpr)
	switch {
	case len(file.Stmts) > 1 || !ok && s.Cmd != nil:
		return nil, false, "it is more than one simple command"
	case len(file.Last) > 0 || len(s.Comments) > 0:
		return nil, false, "there is a comment in it"
	case len(s.Redirs) > 0:
		return nil, false, "it redirects input or output"
	case s.Negated || s.Background || s.Coprocess || s.Disown || s.Semicolon.IsValid():
		return nil, false, "it is more than one simple command"
	case len(call.Assigns) > 0:
		return nil, false, "it sets a variable"
	}
	for _, arg := range call.Args {
		w := literal(arg)
		if !w.literal {
			return nil, false, "a word of it is known only when it runs"
		}
		plain = plain || len(argv) == 0 && w.plain
		argv = append(argv, w.text)
	}
	return argv, plain, ""
}
