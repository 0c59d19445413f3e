package slackui

import (
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/slack-go/slack"
)

// A unit is a piece of an answer that stays together: a paragraph, an item of a
// list, a block of code.
type unit struct {
	element slack.RichTextElement
	plain   string // for the fallback
}

// maxUnit is the weight of the largest unit. Two fit a message, so no message
// stays nearly empty because of what comes next.
const maxUnit = 5000

var (
	fenceLine   = regexp.MustCompile("^ {0,3}(```+|~~~+)[^`]*$")
	headingLine = regexp.MustCompile(`^#{1,6}\s+(.*?)\s*#*$`)
	bulletLine  = regexp.MustCompile(`^(\s*)[-*+•]\s+(.*)$`)
	numberLine  = regexp.MustCompile(`^(\s*)(\d{1,4})[.)]\s+(.*)$`)
	quoteLine   = regexp.MustCompile(`^\s{0,3}>\s?(.*)$`)
	tableLine   = regexp.MustCompile(`^\s*\|.*\|\s*$`)
)

// markdown reads a model's text as light Markdown. It never fails: what isn't
// Markdown is a paragraph.
func markdown(s string) []unit {
	lines := strings.Split(strings.ReplaceAll(s, "\r\n", "\n"), "\n")
	for i := range lines {
		lines[i] = strings.TrimRight(lines[i], " \t")
	}
	var units []unit
	for len(lines) > 0 {
		n, made := nextUnit(lines)
		units = append(units, made...)
		lines = lines[n:]
	}
	return units
}

// nextUnit reads what the lines begin with, and returns how many it took.
func nextUnit(lines []string) (int, []unit) {
	line := lines[0]
	switch {
	case strings.TrimSpace(line) == "":
		return 1, nil
	case fenceLine.MatchString(line):
		return fenced(lines)
	case tableLine.MatchString(line):
		n := span(lines, tableLine.MatchString)
		return n, codeUnits(aligned(lines[:n]), "")
	case quoteLine.MatchString(line):
		n := span(lines, quoteLine.MatchString)
		return n, quoteUnits(lines[:n])
	}
	if m := headingLine.FindStringSubmatch(line); m != nil {
		return 1, inlineUnits(m[1], slack.RichTextSectionTextStyle{Bold: true}, asParagraph)
	}
	if m := bulletLine.FindStringSubmatch(line); m != nil {
		return 1, inlineUnits(m[2], slack.RichTextSectionTextStyle{}, asItem(slack.RTEListBullet, depth(m[1]), 0))
	}
	if m := numberLine.FindStringSubmatch(line); m != nil {
		return 1, inlineUnits(m[3], slack.RichTextSectionTextStyle{}, asItem(slack.RTEListOrdered, depth(m[1]), number(m[2])))
	}
	n := 1 + span(lines[1:], func(l string) bool { return strings.TrimSpace(l) != "" && !special(l) })
	return n, inlineUnits(strings.Join(lines[:n], "\n"), slack.RichTextSectionTextStyle{}, asParagraph)
}

// special tells a line that begins something else than a paragraph.
func special(l string) bool {
	for _, re := range []*regexp.Regexp{fenceLine, headingLine, bulletLine, numberLine, quoteLine, tableLine} {
		if re.MatchString(l) {
			return true
		}
	}
	return false
}

func span(lines []string, is func(string) bool) int {
	for i, l := range lines {
		if !is(l) {
			return i
		}
	}
	return len(lines)
}

// fenced reads a block of code. One that is never closed goes to the end.
func fenced(lines []string) (int, []unit) {
	fence := fenceLine.FindStringSubmatch(lines[0])[1]
	closing := func(l string) bool {
		l = strings.TrimSpace(l)
		return len(l) >= len(fence) && strings.Trim(l, fence[:1]) == ""
	}
	n := span(lines[1:], func(l string) bool { return !closing(l) })
	return min(n+2, len(lines)), codeUnits(strings.Join(lines[1:n+1], "\n"), codeLanguage(lines[0]))
}

// codeLanguages are the names that models give to code, and what Slack highlights it as. A name that isn't here may be
// one that Slack doesn't take.
var codeLanguages = map[string]string{
	"bash": "shell", "sh": "shell", "shell": "shell", "zsh": "shell", "c": "c", "cpp": "cpp", "c++": "cpp", "css": "css",
	"diff": "diff", "go": "go", "golang": "go", "html": "html", "java": "java", "javascript": "javascript", "js": "javascript",
	"json": "json", "kotlin": "kotlin", "markdown": "markdown", "md": "markdown", "php": "php", "python": "python", "py": "python",
	"ruby": "ruby", "rb": "ruby", "rust": "rust", "rs": "rust", "sql": "sql", "swift": "swift", "typescript": "typescript",
	"ts": "typescript", "xml": "xml", "yaml": "yaml", "yml": "yaml",
}

// codeLanguage is what the fence of a block says that it is.
func codeLanguage(fence string) string {
	name, _, _ := strings.Cut(strings.TrimLeft(fence, " `~"), " ")
	return codeLanguages[strings.ToLower(strings.TrimSpace(name))]
}

// depth is how far an item of a list is indented.
func depth(indent string) int {
	return min((len(strings.ReplaceAll(indent, "\t", "    "))+1)/2, 6)
}

func number(digits string) int {
	n := 0
	for _, d := range digits {
		n = n*10 + int(d-'0')
	}
	return n
}

// portions cuts text that is already visible into parts that fit a unit, where
// lines end if possible.
func portions(s string) []string {
	var parts []string
	start, lineEnd, w := 0, 0, 0
	for i, r := range s {
		c := runeWeight(r)
		if w+c > maxUnit/2 {
			cut := i
			if lineEnd > start {
				cut = lineEnd
			}
			parts = append(parts, strings.TrimSuffix(s[start:cut], "\n"))
			start, w = cut, weightOf(s[cut:i])
		}
		w += c
		if r == '\n' {
			lineEnd = i + 1
		}
	}
	return append(parts, s[start:])
}

func weightOf(s string) int {
	w := 0
	for _, r := range s {
		w += runeWeight(r)
	}
	return w
}

// runeWeight is what weight counts for a character.
func runeWeight(r rune) int {
	switch {
	case r == '&' || r == '<' || r == '>':
		return len(`\u0026`)
	case r == '"' || r == '\\' || r == '\n' || r == '\t':
		return 2
	case r < utf8.RuneSelf:
		return 1
	case r <= 0xFFFF:
		return 6
	}
	return 12
}

func codeUnits(s, language string) []unit {
	var units []unit
	for _, part := range portions(prose(s)) {
		if part != "" {
			block := preformatted(part)
			block.Language = language
			units = append(units, unit{element: block, plain: part})
		}
	}
	return units
}

func quoteUnits(lines []string) []unit {
	inner := make([]string, len(lines))
	for i, l := range lines {
		inner[i] = quoteLine.FindStringSubmatch(l)[1]
	}
	return inlineUnits(strings.Join(inner, "\n"), slack.RichTextSectionTextStyle{}, func(e []element) slack.RichTextElement { return quote(e...) })
}

func asParagraph(e []element) slack.RichTextElement { return paragraph(e...) }

func asItem(style slack.RichTextListElementType, indent, number int) func([]element) slack.RichTextElement {
	return func(e []element) slack.RichTextElement {
		list := slack.NewRichTextList(style, indent, paragraph(e...))
		list.Offset = max(number-1, 0)
		return list
	}
}

// inlineUnits reads emphasis in s and wraps it. A text whose emphasis weighs more
// than its words is shown without.
func inlineUnits(s string, style slack.RichTextSectionTextStyle, wrap func([]element) slack.RichTextElement) []unit {
	var units []unit
	for _, part := range portions(prose(s)) {
		if strings.TrimSpace(part) == "" {
			continue
		}
		e := wrap(inline(part, style, 0))
		if weight(richText(e)) > maxUnit {
			e = wrap([]element{text(part)})
		}
		units = append(units, unit{element: e, plain: strings.ReplaceAll(part, "\n", " ")})
	}
	return units
}

// join puts units one below the other: items of one list into one list, a blank
// line between paragraphs.
func join(units []unit) []slack.RichTextElement {
	var out []slack.RichTextElement
	for _, u := range units {
		if n := len(out); n > 0 {
			switch e := u.element.(type) {
			case *slack.RichTextList:
				if last, ok := out[n-1].(*slack.RichTextList); ok && continues(last, e) {
					merged := *last
					merged.Elements = append(append([]slack.RichTextElement{}, last.Elements...), e.Elements...)
					out[n-1] = &merged
					continue
				}
			case *slack.RichTextSection:
				if last, ok := out[n-1].(*slack.RichTextSection); ok {
					out[n-1] = paragraph(append(append([]element{}, last.Elements...), text("\n\n"))...)
				}
			}
		}
		out = append(out, u.element)
	}
	return out
}

func continues(last, next *slack.RichTextList) bool {
	return last.Style == next.Style && last.Indent == next.Indent &&
		(next.Style == slack.RTEListBullet || next.Offset == last.Offset+len(last.Elements))
}

// A mark is a way to emphasise.
type mark struct {
	delimiter string
	apply     func(*slack.RichTextSectionTextStyle)
	words     bool // only around whole words: snake_case is no emphasis
}

var emphasis = []mark{
	{"**", func(s *slack.RichTextSectionTextStyle) { s.Bold = true }, false},
	{"__", func(s *slack.RichTextSectionTextStyle) { s.Bold = true }, true},
	{"~~", func(s *slack.RichTextSectionTextStyle) { s.Strike = true }, false},
	{"*", func(s *slack.RichTextSectionTextStyle) { s.Italic = true }, true},
	{"_", func(s *slack.RichTextSectionTextStyle) { s.Italic = true }, true},
}

// maxEmphasis bounds how deep emphasis may stand in emphasis.
const maxEmphasis = 3

var linkText = regexp.MustCompile(`^!?\[([^\[\]\n]{0,300})\]\(([^()\s]{1,1000})(?:\s+"[^"\n]*")?\)`)

// inline reads code spans, emphasis and links. A link becomes its text with the
// address behind it: an address that is written out can't pretend.
func inline(s string, style slack.RichTextSectionTextStyle, level int) []element {
	var out []element
	start := 0
	flush := func(end int) {
		if start < end {
			out = append(out, styledText(s[start:end], style))
		}
	}
	for i := 0; i < len(s); {
		elements, n := construct(s, i, style, level)
		if n == 0 {
			_, size := utf8.DecodeRuneInString(s[i:])
			i += size
			continue
		}
		flush(i)
		out = append(out, elements...)
		i += n
		start = i
	}
	flush(len(s))
	return out
}

// construct reads a code span, emphasis or a link that begins at i, and returns
// how many bytes it took; none if nothing begins there.
func construct(s string, i int, style slack.RichTextSectionTextStyle, level int) ([]element, int) {
	switch s[i] {
	case '`':
		return codeSpan(s[i:], style)
	case '[', '!':
		m := linkText.FindStringSubmatch(s[i:])
		if m == nil {
			return nil, 0
		}
		label := m[2]
		if m[1] != "" && m[1] != m[2] {
			label = m[1] + " (" + m[2] + ")"
		}
		return []element{styledText(label, style)}, len(m[0])
	case '*', '_', '~':
		if level < maxEmphasis {
			return emphasized(s, i, style, level)
		}
	}
	return nil, 0
}

func codeSpan(s string, style slack.RichTextSectionTextStyle) ([]element, int) {
	ticks := s[:len(s)-len(strings.TrimLeft(s, "`"))]
	end := strings.Index(s[len(ticks):], ticks)
	if end <= 0 {
		return nil, 0
	}
	inner := s[len(ticks) : len(ticks)+end]
	if strings.Contains(inner, "\n\n") || strings.TrimSpace(inner) == "" {
		return nil, 0
	}
	style.Code = true
	return []element{styledText(inner, style)}, 2*len(ticks) + end
}

func emphasized(s string, i int, style slack.RichTextSectionTextStyle, level int) ([]element, int) {
	for _, m := range emphasis {
		inner, ok := strings.CutPrefix(s[i:], m.delimiter)
		if !ok {
			continue
		}
		end := strings.Index(inner, m.delimiter)
		if end <= 0 || !hugs(inner[:end]) || m.words && !wholeWords(s, i, i+2*len(m.delimiter)+end) {
			continue
		}
		m.apply(&style)
		return inline(inner[:end], style, level+1), 2*len(m.delimiter) + end
	}
	return nil, 0
}

// hugs tells whether emphasis stands directly around its words.
func hugs(inner string) bool { return strings.TrimSpace(inner) == inner }

// wholeWords tells whether no letter touches s[start:end] from outside.
func wholeWords(s string, start, end int) bool {
	before, _ := utf8.DecodeLastRuneInString(s[:start])
	after, _ := utf8.DecodeRuneInString(s[end:])
	letter := func(r rune) bool {
		return r != utf8.RuneError && (unicode.IsLetter(r) || unicode.IsDigit(r) || r == '_')
	}
	return !letter(before) && !letter(after)
}

func styledText(s string, style slack.RichTextSectionTextStyle) element {
	if style == (slack.RichTextSectionTextStyle{}) {
		return text(s)
	}
	return styled(s, style)
}
