package model

import (
	"encoding/json"
	"errors"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// command is one thing that a message asks the demo to do.
type command struct {
	tool      string // shell, read_file, list_files, write_file, or one that was named with its arguments
	text      string // the command, or the path
	content   string // of a file to write
	recursive bool   // of a list
	exact     string // all the arguments, as JSON; then nothing else counts
}

func (c command) arguments() string {
	if c.exact != "" {
		return c.exact
	}
	args := map[string]any{}
	switch c.tool {
	case "shell":
		args["command"] = c.text
	case "write_file":
		args["path"], args["content"] = c.text, c.content
	default:
		if c.text != "" {
			args["path"] = c.text
		}
		if c.recursive {
			args["recursive"] = true
		}
	}
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	// Strings and booleans: it can't fail. Invalid UTF-8 becomes U+FFFD.
	if err := e.Encode(args); err != nil {
		panic("model: encoding strings: " + err.Error())
	}
	return strings.TrimSpace(b.String())
}

// parseCommands finds the commands in a message, in their order.
//
// Text in backticks is a shell command wherever it stands. The other forms
// count only where a sentence could begin with them (at the start of a line,
// behind "and" or a comma), so that "did you read the news" does nothing.
func parseCommands(text string) []command {
	found, _ := parseMessage(text)
	return found
}

// parseMessage finds the commands in a message, and what could be one if its arguments were JSON.
func parseMessage(text string) (found []command, broken []brokenUse) {
	p := parser{text: unwrapLinks(strings.ReplaceAll(text, "\r\n", "\n")), fresh: true}
	for p.step() {
	}
	return p.found, p.broken
}

// brokenUse is a use of a tool whose arguments are not JSON. It is a sentence like any other, unless there is such a tool.
type brokenUse struct {
	tool string
	from string // the beginning of what can't be JSON; empty: it ends too early
}

// whereBroken is where a text stops being JSON.
func whereBroken(text string, err error) string {
	wrong := (*json.SyntaxError)(nil)
	if !errors.As(err, &wrong) || wrong.Offset < 1 || wrong.Offset > int64(len(text)) {
		return ""
	}
	return firstLine(text[wrong.Offset-1:])
}

// link is how Slack delivers what it takes for an address: README.md comes as
// <http://README.md|README.md>.
var link = regexp.MustCompile("<((?:https?|ftp|mailto|tel):[^|>\\s`]*)(?:\\|([^>\\n`]*))?>")

// unwrapLinks restores what was typed, outside of backticks.
func unwrapLinks(text string) string {
	return codeSpan.ReplaceAllStringFunc(text, func(s string) string {
		if strings.HasPrefix(s, "`") {
			return s
		}
		m := link.FindStringSubmatch(s)
		if m[2] != "" {
			return m[2]
		}
		return m[1]
	})
}

// codeSpan matches a code block, a code span or a link, whichever comes first.
var codeSpan = regexp.MustCompile("(?s:```.*?```)|`[^`\\n]*`|" + link.String())

// parser reads a message from left to right.
type parser struct {
	text    string
	pos     int
	fresh   bool // a sentence could begin here
	ended   bool // the last word ended a part of the sentence
	reading bool // the last command was a read: "read a.txt and b.txt"
	found   []command
	broken  []brokenUse
}

// step reads one token and returns false at the end.
func (p *parser) step() bool {
	p.blanks()
	if p.pos == len(p.text) {
		return false
	}
	if p.text[p.pos] == '\n' {
		p.pos++
		p.fresh, p.reading = true, false
		return true
	}
	if code, ok := p.code(); ok {
		if strings.TrimSpace(code) != "" {
			p.add(command{tool: "shell", text: code})
		}
		return true
	}
	p.word(p.token())
	return true
}

func (p *parser) add(c command) {
	p.found = append(p.found, c)
	p.fresh, p.reading = true, c.tool == "read_file"
}

// Words that may stand before a command, or between two.
var (
	fillers = strings.Fields("please then also and now first next finally hi hello hey ok can could would you to we bot")
	joiners = strings.Fields("and then also plus")
)

func (p *parser) word(raw string) {
	word := plain(raw)
	if !p.fresh {
		p.fresh = isJoiner(word) || p.ended
		return
	}
	start, ended := p.pos, p.ended
	switch {
	case word == "read" && !ended && p.read():
	case word == "list" && p.list():
	case word == "write" && p.write():
	case word == "use" && !ended && p.use():
	case p.reading && looksLikePath(raw):
		p.add(command{tool: "read_file", text: fileName(raw)})
	case isMention(raw) || slices.Contains(fillers, word) || !strings.ContainsFunc(word, unicode.IsLetter):
		// Still at the beginning.
	default:
		p.pos = start
		p.fresh, p.reading = ended, false
	}
}

// read takes the file's name behind the word "read". A bare word is one only if
// it stands alone or looks like one: "read notes", but not "read my notes.txt",
// whose name would have to be quoted.
func (p *parser) read() bool {
	p.skip("the", "file", "a", "me", "content", "contents", "of")
	clear := p.quote() || looksLikePath(p.peek())
	name, ok := p.argument()
	if !ok || !clear && !p.closed() {
		return false
	}
	p.add(command{tool: "read_file", text: name})
	return true
}

// list takes what may stand behind the word "list": "list", "list files",
// "list the files in src recursively", "list src".
func (p *parser) list() bool {
	c := command{tool: "list_files"}
	named := !p.ended && p.skip("all", "the", "my", "files", "file", "everything", "directory", "workspace", "here")
	if !p.ended && !p.listPath(&c, named) {
		return false
	}
	if !p.ended {
		c.recursive = p.skip("recursively")
	}
	p.add(c)
	return true
}

// listPath takes the directory, if there is one. A bare word is one only if it
// stands alone: "list src", but not "list the reasons".
func (p *parser) listPath(c *command, named bool) bool {
	if !p.skip("in", "of", "under", "from", "below") {
		next := p.peek()
		if next == "" || isJoiner(next) || isRecursively(next) {
			return true
		}
		if !looksLikePath(next) && (named || !p.last()) {
			return false
		}
	}
	p.skip("the", "directory", "folder")
	clear := p.quote()
	name, ok := p.argument()
	c.text = name
	return ok && (clear || p.closed()) // "in sub dir" would list another one
}

// quote reports whether a quoted name follows.
func (p *parser) quote() bool {
	p.blanks()
	first, _ := utf8.DecodeRuneInString(p.text[p.pos:])
	return first == '`' || quotePairs[first] != ""
}

// closed reports whether nothing more belongs to the command.
func (p *parser) closed() bool {
	next := p.peek()
	return p.ended || next == "" || strings.HasPrefix(next, "`") || isJoiner(next) || isRecursively(next) || slices.Contains(fillers, plain(next))
}

// last reports whether the next word is the last of its part of the sentence.
func (p *parser) last() bool {
	at, ended := p.pos, p.ended
	defer func() { p.pos, p.ended = at, ended }()
	p.token()
	next := p.peek()
	return p.ended || next == "" || isJoiner(next) || isRecursively(next)
}

// fileColon is FILE: with the file quoted, in backticks, or a word.
var fileColon = regexp.MustCompile("^[ \\t]*(?:(?:the|to|file)[ \\t]+)*(?:`([^`\\n]+)`|\"([^\"\\n]+)\"|“([^”\\n]+)”|([^\\s:`]+))[ \\t]*:")

// write takes FILE: TEXT behind the word "write".
func (p *parser) write() bool {
	m := fileColon.FindStringSubmatch(p.text[p.pos:])
	if m == nil {
		return false
	}
	p.pos += len(m[0])
	c := command{tool: "write_file", text: fileName(m[1] + m[2] + m[3] + m[4])}
	ok := false
	c.content, ok = p.content()
	if !ok || c.text == "" {
		return false
	}
	p.add(c)
	return true
}

// content takes the text of a file: a code block, also on the next line, or
// everything up to the end of the message or a line that begins with another
// command, without backticks if it is nothing but a code span.
func (p *parser) content() (string, bool) {
	rest := p.text[p.pos:]
	lead := len(rest) - len(strings.TrimLeftFunc(rest, unicode.IsSpace))
	if strings.HasPrefix(rest[lead:], fence) {
		block := parser{text: p.text, pos: p.pos + lead}
		if code, ok := block.code(); ok {
			p.pos = block.pos
			return code + "\n", true // its lines
		}
	}
	line, _, _ := strings.Cut(rest, "\n")
	end := len(line)
	for end < len(rest) {
		line, _, _ := strings.Cut(rest[end+1:], "\n")
		if startsCommand(line) {
			break
		}
		end += 1 + len(line)
	}
	p.pos += end
	text := strings.TrimRightFunc(rest[:end], unicode.IsSpace)
	text = strings.TrimLeft(text, " \t")
	if below, ok := strings.CutPrefix(text, "\n"); ok {
		return strings.TrimLeft(below, "\n"), true // how its first line is indented is part of it
	}
	span := parser{text: text}
	if code, ok := span.code(); ok && span.pos == len(text) {
		return code, true
	}
	return text, text != ""
}

// startsCommand reports whether a line of a text is rather the next command: it
// begins with one, and goes on with nothing that makes it a sentence about it.
func startsCommand(line string) bool {
	p := parser{text: line, fresh: true}
	for p.fresh && len(p.found) == 0 {
		if plain(p.peek()) == "run" {
			p.token()
			p.blanks()
			code, ok := p.code()
			return ok && strings.TrimSpace(code) != ""
		}
		if !p.step() {
			return false
		}
	}
	return len(p.found) > 0 && (p.found[0].tool == "write_file" || p.closed())
}

// useObject is TOOL {…: any tool by its name, with its arguments.
var useObject = regexp.MustCompile("^[ \\t]*(?:(?:the|tool|action)[ \\t]+)*`?([A-Za-z0-9_-]{1,64})`?(?:[ \\t]+with)?[ \\t]*(`?)\\{")

// use takes TOOL {ARGUMENTS} behind the word "use", the arguments being JSON. Without them it is a sentence.
func (p *parser) use() bool {
	m := useObject.FindStringSubmatchIndex(p.text[p.pos:])
	if m == nil {
		return false
	}
	name, object := p.text[p.pos+m[2]:p.pos+m[3]], p.text[p.pos+m[1]-1:]
	d := json.NewDecoder(strings.NewReader(object))
	var raw json.RawMessage
	if err := d.Decode(&raw); err != nil {
		p.broken = append(p.broken, brokenUse{name, whereBroken(object, err)})
		return false
	}
	p.pos += m[1] - 1 + int(d.InputOffset())
	if m[5] > m[4] && strings.HasPrefix(p.text[p.pos:], "`") {
		p.pos++
	}
	p.ended = false
	p.add(command{tool: name, exact: string(raw)})
	return true
}

// argument takes one name: quoted, in backticks, or a word.
func (p *parser) argument() (string, bool) {
	p.blanks()
	if code, ok := p.code(); ok {
		p.ended = false
		code = strings.TrimSpace(code)
		return code, code != "" && !strings.Contains(code, "\n")
	}
	if name, ok := p.quoted(); ok {
		p.ended = false
		return name, true
	}
	next := p.peek()
	if next == "" || isJoiner(next) {
		return "", false
	}
	name := fileName(p.token())
	return name, name != ""
}

var quotePairs = map[rune]string{'"': `"`, '\'': `'`, '“': "”", '‘': "’", '„': "“", '«': "»"}

// quoted takes a text in quotation marks that end on the same line.
func (p *parser) quoted() (string, bool) {
	rest := p.text[p.pos:]
	for open, closing := range quotePairs {
		body, ok := strings.CutPrefix(rest, string(open))
		if !ok {
			continue
		}
		line, _, _ := strings.Cut(body, "\n")
		if name, _, ok := strings.Cut(line, closing); ok && strings.TrimSpace(name) != "" {
			p.pos += len(string(open)) + len(name) + len(closing)
			return name, true
		}
	}
	return "", false
}

// fence begins and ends a code block.
const fence = "```"

// code takes a code block or a code span. A block loses the line breaks at its
// ends and the name of a shell on its first line, which is not a command.
func (p *parser) code() (string, bool) {
	rest := p.text[p.pos:]
	if body, ok := strings.CutPrefix(rest, fence); ok {
		code, _, ok := strings.Cut(body, fence)
		if !ok {
			return "", false
		}
		p.pos += len(code) + 2*len(fence)
		for _, name := range []string{"sh", "bash", "shell", "console"} {
			code = strings.TrimPrefix(code, name+"\n")
		}
		return strings.Trim(code, "\n"), true
	}
	if body, ok := strings.CutPrefix(rest, "`"); ok {
		line, _, _ := strings.Cut(body, "\n")
		if code, _, ok := strings.Cut(line, "`"); ok {
			p.pos += len(code) + 2
			return code, true
		}
	}
	return "", false
}

// token takes everything up to the next blank, line break or backtick, and at
// least one character.
func (p *parser) token() string {
	rest := p.text[p.pos:]
	end := strings.IndexFunc(rest, func(r rune) bool { return unicode.IsSpace(r) || r == '`' })
	switch {
	case end < 0:
		end = len(rest)
	case end == 0:
		end = 1 // a backtick that begins no span
	}
	p.pos += end
	p.ended = endsPart(rest[:end])
	return rest[:end]
}

// peek returns the next word of the line without taking it; "" at its end.
func (p *parser) peek() string {
	p.blanks()
	if p.pos == len(p.text) || p.text[p.pos] == '\n' {
		return ""
	}
	at, ended := p.pos, p.ended
	word := p.token()
	p.pos, p.ended = at, ended
	return word
}

// skip takes any number of these words, up to the end of the part of the
// sentence, and reports whether there were any.
func (p *parser) skip(words ...string) bool {
	taken := false
	for next := p.peek(); !p.ended && slices.Contains(words, plain(next)); next = p.peek() {
		p.token()
		taken = true
	}
	return taken
}

// blanks takes white space within the line.
func (p *parser) blanks() {
	rest := p.text[p.pos:]
	p.pos += len(rest) - len(strings.TrimLeftFunc(rest, func(r rune) bool { return unicode.IsSpace(r) && r != '\n' }))
}

// endsPart reports whether a word ends a part of its sentence.
func endsPart(word string) bool {
	return word != "" && strings.ContainsAny(word[len(word)-1:], punctuation)
}

const punctuation = ",.;:!?"

// plain is a word without the punctuation around it, in lower case.
func plain(word string) string { return strings.ToLower(strings.Trim(word, punctuation)) }

func isJoiner(word string) bool { return slices.Contains(joiners, plain(word)) }

func isRecursively(word string) bool { return plain(word) == "recursively" }

// isMention matches what Slack delivers for a person, a group or a channel, and
// a name with an @ in front.
func isMention(word string) bool {
	return strings.HasPrefix(word, "@") || strings.HasPrefix(word, "<@") || strings.HasPrefix(word, "<!") || strings.HasPrefix(word, "<#")
}

func looksLikePath(word string) bool {
	name := fileName(word)
	return name == "." || strings.Contains(name, "/") || strings.Contains(strings.Trim(name, "."), ".")
}

// fileName takes off what belongs to the sentence: quotation marks around, and
// punctuation behind.
func fileName(word string) string {
	name := strings.TrimRight(word, ",;:!?")
	name = strings.Trim(name, "\"'“”‘’„«»`")
	if t := strings.TrimRight(name, punctuation); t != "" {
		name = t
	}
	return strings.TrimSpace(name)
}
