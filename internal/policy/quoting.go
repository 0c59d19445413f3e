package policy

import (
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// What a condition needs (a quote, a bracket or ! at its beginning, a colon or a # in a text) means something to YAML,
// too. The file can't be read then, or what is read is not what stands there. This file finds such conditions and says
// how to write them; it never decides what a rule means.

// An unquoted is a condition as it stands in the lines of a file, which needs quotes.
type unquoted struct {
	first, last int // lines, from 0
	from, to    int // bytes: where it begins in its first line, and ends in its last
	text        string
}

var (
	whenInBlock = regexp.MustCompile(`^(\s*(?:-\s+)?)when:\s+`)
	whenInFlow  = regexp.MustCompile(`[{,]\s*when:\s+`)
	blockHeader = regexp.MustCompile(`^[|>][-+0-9]*$`)
	alias       = regexp.MustCompile(`^\*[^\s,\]}]+$`)
)

// advice says what to do with it.
func (u unquoted) advice() string {
	return "when: YAML doesn't read this as it is meant; put the whole condition in single quotes: when: " + singleQuoted(u.text)
}

func singleQuoted(s string) string { return "'" + strings.ReplaceAll(s, "'", "''") + "'" }

// findUnquoted finds the conditions of a file that YAML can't read.
func findUnquoted(lines []string) (all []unquoted) {
	for i := 0; i < len(lines); i++ {
		if at := whenInBlock.FindStringSubmatchIndex(lines[i]); at != nil {
			u := inBlock(lines, i, at[1], at[3])
			if u.broken("when: %s") {
				all = append(all, u)
			}
			i = u.last
			continue
		}
		for _, at := range whenInFlow.FindAllStringIndex(lines[i], -1) {
			if u := inFlow(lines, i, at[1]); u.broken("{when: %s}") {
				all = append(all, u)
			}
		}
	}
	return all
}

// inBlock is a condition that has lines of its own: those that are indented deeper than its key are part of it.
func inBlock(lines []string, line, from, indent int) unquoted {
	u := unquoted{first: line, last: line, from: from}
	end := func(i, from int) int {
		return from + len(strings.TrimRight(lines[i][from:comment(lines[i], from)], " \t\r"))
	}
	u.to = end(line, from)
	u.text = lines[line][from:u.to]
	block := blockHeader.MatchString(u.text)
	for i := line + 1; i < len(lines); i++ {
		rest := strings.TrimLeft(lines[i], " ")
		if deeper := len(lines[i]) - len(rest); deeper <= indent || strings.TrimSpace(rest) == "" || rest[0] == '#' {
			break
		}
		u.last, u.to = i, end(i, len(lines[i])-len(rest))
		u.text += " " + lines[i][len(lines[i])-len(rest):u.to]
	}
	if block { // of lines that YAML reads as they are
		u.text = ""
	}
	return u
}

// inFlow is a condition between braces: it ends at a comma or a bracket that isn't its own.
func inFlow(lines []string, line, from int) unquoted {
	depth, quote, rest := 0, byte(0), lines[line][from:]
	end := len(rest)
scan:
	for i := 0; i < len(rest); i++ {
		switch c := rest[i]; {
		case quote != 0 && c == '\\':
			i++
		case quote != 0:
			if c == quote {
				quote = 0
			}
		case c == '"' || c == '\'':
			quote = c
		case strings.IndexByte("([{", c) >= 0:
			depth++
		case depth > 0 && strings.IndexByte(")]}", c) >= 0:
			depth--
		case depth == 0 && strings.IndexByte(",]}", c) >= 0:
			end = i
			break scan
		}
	}
	text := strings.TrimSpace(rest[:end])
	return unquoted{line, line, from, from + len(text), text}
}

// comment is where a comment begins in a line, or its end. A # in a text of the condition begins none.
func comment(line string, from int) int {
	quote := byte(0)
	for i := from; i < len(line); i++ {
		switch c := line[i]; {
		case quote != 0 && c == '\\':
			i++
		case quote != 0:
			if c == quote {
				quote = 0
			}
		case c == '"' || c == '\'':
			quote = c
		case c == '#' && i > from && (line[i-1] == ' ' || line[i-1] == '\t'):
			return i
		}
	}
	return len(line)
}

// broken tells whether YAML can't read the condition, or takes it for something else than a text.
func (u unquoted) broken(in string) bool {
	if u.text == "" || alias.MatchString(u.text) {
		return false
	}
	var m map[string]yaml.Node
	if err := yaml.Unmarshal(fmt.Appendf(nil, in, u.text), &m); err != nil {
		return true
	}
	n := m["when"]
	return misread(&n)
}

// misread tells whether YAML takes what stands there for something of its own: a tag, a list, a mapping.
func misread(n *yaml.Node) bool {
	return n.Kind == yaml.SequenceNode || n.Kind == yaml.MappingNode || tagged(n)
}

// tagged tells whether a value begins with ! in the file.
func tagged(n *yaml.Node) bool {
	return n.Style&yaml.TaggedStyle != 0 && n.ShortTag() != "!!str" || strings.HasPrefix(n.Tag, "!") && !strings.HasPrefix(n.Tag, "!!")
}

// source is the condition at a node, as it stands in the file.
func (l *loader) source(n *yaml.Node) unquoted {
	line := min(max(n.Line-1, 0), len(l.lines)-1)
	if at := whenInBlock.FindStringSubmatchIndex(l.lines[line]); at != nil {
		return inBlock(l.lines, line, at[1], at[3])
	}
	for _, at := range whenInFlow.FindAllStringIndex(l.lines[line], -1) {
		if len([]rune(l.lines[line][:at[1]])) == n.Column-1 {
			return inFlow(l.lines, line, at[1])
		}
	}
	return unquoted{text: "…"} // written in a way that nobody would choose
}

// cut tells whether a plain condition ends within a text of its own: what YAML took for a comment belongs to it.
func cut(n *yaml.Node) bool {
	if n.Style&(yaml.SingleQuotedStyle|yaml.DoubleQuotedStyle|yaml.LiteralStyle|yaml.FoldedStyle) != 0 {
		return false
	}
	v := n.Value
	return comment(v+" #", 0) > len(v)+1 // a quote is open at the end
}

// quoted are the lines with quotes around the conditions that need them.
func quoted(lines []string, all []unquoted) string {
	out := append([]string{}, lines...)
	for i := len(all) - 1; i >= 0; i-- { // from behind, so that places before stay what they are
		u := all[i]
		double := func(s string) string { return strings.ReplaceAll(s, "'", "''") }
		if u.first == u.last {
			s := out[u.first]
			out[u.first] = s[:u.from] + singleQuoted(s[u.from:u.to]) + s[u.to:]
			continue
		}
		out[u.first] = out[u.first][:u.from] + "'" + double(out[u.first][u.from:])
		for j := u.first + 1; j < u.last; j++ {
			out[j] = double(out[j])
		}
		out[u.last] = double(out[u.last][:u.to]) + "'" + out[u.last][u.to:]
	}
	return strings.Join(out, "\n")
}

// maxSearched is how many lines a file may have for its wrong line to be searched.
const maxSearched = 1000

// notYAML says what is wrong with a text that YAML can't read, and where. The library often names the line in which a
// list or a mapping begins, so the wrong one is searched: the first behind the longest beginning that can be read.
func notYAML(lines []string, err error) Problem {
	p := Problem{1, 1, strings.TrimPrefix(err.Error(), "yaml: ")}
	if m := yamlLine.FindStringSubmatch(err.Error()); m != nil {
		p.Line, _ = strconv.Atoi(m[1])
		p.What = m[2]
	}
	p.What = "this is not YAML: " + p.What
	if len(lines) > maxSearched {
		return p
	}
	for i := len(lines) - 1; i >= 0; i-- {
		var n yaml.Node
		err := yaml.NewDecoder(strings.NewReader(strings.Join(lines[:i], "\n"))).Decode(&n)
		if err == nil || errors.Is(err, io.EOF) {
			p.Line = i + 1
			break
		}
	}
	wrong := lines[p.Line-1]
	if white := wrong[:len(wrong)-len(strings.TrimLeft(wrong, " \t"))]; strings.Contains(white, "\t") {
		p.What = "this is not YAML: the line begins with a tab; indent it with spaces"
	}
	return p
}
