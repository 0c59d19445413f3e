package slackui

import (
	"regexp"
	"slices"
	"strings"
	"unicode"
)

// A table of an answer is shown in letters of one width, its columns one below the other. A block of Slack's own would
// take one table a message, and no formatting in it.

var tableRule = regexp.MustCompile(`^:?-{1,}:?$`)

const (
	maxTableColumns = 20
	maxTableWidth   = 400 // columns of letters; a wider table stays as it was written
)

// aligned is a table with its columns aligned, without the marks at its edges. What is no proper table stays as it is.
func aligned(lines []string) string {
	rows := make([][]string, len(lines))
	var widths []int
	for i, l := range lines {
		rows[i] = cells(l)
		if len(rows[i]) > maxTableColumns {
			return strings.Join(lines, "\n")
		}
		for n, c := range rows[i] {
			if n == len(widths) {
				widths = append(widths, 1)
			}
			if !isRule(rows[i]) {
				widths[n] = max(widths[n], columns(c))
			}
		}
	}
	total := 0
	for _, w := range widths {
		total += w + 3
	}
	if total > maxTableWidth {
		return strings.Join(lines, "\n")
	}
	out := make([]string, len(rows))
	for i, row := range rows {
		out[i] = strings.TrimRight(tableRow(row, widths), " ")
	}
	return strings.Join(out, "\n")
}

// isRule tells the line below a table's head. A single stroke in another line is a cell in which there is nothing.
func isRule(row []string) bool {
	return len(row) > 0 && !slices.ContainsFunc(row, func(c string) bool { return !tableRule.MatchString(c) })
}

func tableRow(row []string, widths []int) string {
	var b strings.Builder
	rule := isRule(row)
	for n, c := range row {
		switch {
		case rule:
			c = strings.Repeat("-", widths[n])
		default:
			c += strings.Repeat(" ", widths[n]-columns(c))
		}
		switch {
		case n > 0 && rule:
			b.WriteString("-+-")
		case n > 0:
			b.WriteString(" | ")
		}
		b.WriteString(c)
	}
	return b.String()
}

// cells are those of one line. A stroke behind a backslash is none.
func cells(line string) (out []string) {
	line = strings.TrimSpace(line)
	line = strings.TrimPrefix(line, "|")
	var cell strings.Builder
	for i := 0; i < len(line); i++ {
		switch {
		case line[i] == '\\' && i+1 < len(line) && line[i+1] == '|':
			cell.WriteByte('|')
			i++
		case line[i] == '|':
			out = append(out, strings.TrimSpace(cell.String()))
			cell.Reset()
		default:
			cell.WriteByte(line[i])
		}
	}
	if rest := strings.TrimSpace(cell.String()); rest != "" {
		out = append(out, rest)
	}
	return out
}

// columns is how wide a text is, in letters: those of East Asia take two.
func columns(s string) (n int) {
	for _, r := range prose(s) {
		switch {
		case unicode.In(r, unicode.Mn, unicode.Me, unicode.Cf):
		case unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul), r >= 0x3000 && r <= 0x303F, r >= 0xFF01 && r <= 0xFF60, r >= 0x1F300 && r <= 0x1FAFF:
			n += 2
		default:
			n++
		}
	}
	return n
}
