package actions

import (
	"fmt"
	"slices"
	"strings"
)

// Problem is one thing that is wrong with a file, or that its author should know.
type Problem struct {
	Line   int
	Action string // the name of the action that it is about, if it has one
	Text   string // what is wrong, and what would be right
}

func (p Problem) String() string {
	where := fmt.Sprintf("line %d: ", p.Line)
	if p.Action != "" {
		where += p.Action + ": "
	}
	return where + p.Text
}

// Error is all that is wrong with a file.
type Error struct {
	File     string
	Problems []Problem // by line
}

func (e *Error) Error() string {
	if len(e.Problems) == 1 {
		return e.File + ", " + e.Problems[0].String()
	}
	lines := []string{fmt.Sprintf("%s has %d errors:", e.File, len(e.Problems))}
	for _, p := range e.Problems {
		lines = append(lines, "  "+p.String())
	}
	return strings.Join(lines, "\n")
}

// problems collects what is wrong, so that one error doesn't hide the next.
type problems struct {
	action string // that is being read
	list   []Problem
}

func (p *problems) add(line int, format string, args ...any) {
	p.list = append(p.list, Problem{line, p.action, fmt.Sprintf(format, args...)})
}

// in returns the error of all problems; nil if there are none.
func (p *problems) in(file string) error {
	if len(p.list) == 0 {
		return nil
	}
	slices.SortStableFunc(p.list, func(a, b Problem) int { return a.Line - b.Line })
	return &Error{file, p.list}
}

// oneOf lists words for a sentence: a, b or c.
func oneOf(words []string) string {
	if len(words) < 2 {
		return strings.Join(words, "")
	}
	return strings.Join(words[:len(words)-1], ", ") + " or " + words[len(words)-1]
}
