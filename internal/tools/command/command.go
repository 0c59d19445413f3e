// Package command tells what a shell command will run, from its text alone.
//
// # What it is for
//
// A person who is asked about a command wants to know which programs it starts,
// a rule wants to forbid some of them, and nobody wants to be asked about ls.
// [Parse] answers all three without running anything: it reads the text with a
// real shell parser, as /bin/sh would, and follows it through the programs that
// are known to run other programs.
//
// # What it promises
//
//   - Complete is true only if the text was understood whole: every program that
//     the text names, through pipes, substitutions and known wrappers, is in
//     Programs. What is put together at run time, read from input, or handed to
//     an interpreter is not understood, and says so.
//   - If a command isn't understood whole, every word in it is in Programs: it may
//     run any of them. A rule that forbids a program therefore errs towards no,
//     and no trick that makes a text unreadable gets a program past it.
//   - ReadOnly is true only for one literal command of a short list, with options
//     that are known to do nothing but look, and paths that don't leave the
//     workspace by their text.
//
// Programs are what the text names. What these in turn run because a file tells
// them to (make, a script, the hooks of a repository) no reading of the text can
// show.
//
// # Which shell
//
// /bin/sh is dash on some systems and bash on others. The text is parsed as
// POSIX has it; whatever bash reads differently (braces, $'…', [[, a+=b, subscripts)
// is not understood, so an answer holds for both.
package command

import (
	"fmt"
	"path"
	"slices"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"mvdan.cc/sh/v3/syntax"

	"approvalbot/internal/language"
)

// Analysis is what the text of a command says. Its zero value says nothing, and
// that nothing is understood.
type Analysis struct {
	// Named are the programs as the text names them, in order, each once. They
	// are all there are only if Complete.
	Named []string
	// Programs are the names that rules compare with: of each of Named what
	// stands in the text, its last element ("/bin/rm" and "rm"), and both in
	// lower case where that differs, since some file systems don't tell case. If
	// the command isn't Complete, every word of the text follows.
	Programs []string
	// Complete says that the text was understood whole.
	Complete bool
	// Unclear says in a clause why it wasn't.
	Unclear string
	// Simple is the argument list, if the text is exactly one literal command:
	// no assignment, redirection, expansion, pattern, comment or second command.
	Simple []string
	// ReadOnly says that the command only looks, and only in the workspace.
	ReadOnly bool
	// Why says in a clause why it isn't ReadOnly.
	Why string

	doubt doubt // what Unclear says
}

// UnclearIn is Unclear in a language.
func (a Analysis) UnclearIn(l language.Language) string { return a.doubt.in(l) }

// The limits of what is taken apart. More than fifty commands in one line were
// used to tire other readers out; nesting has no use that deep and costs stack.
const (
	maxText     = 64 << 10
	maxNesting  = 200
	maxCommands = 50
	maxDepth    = 10 // of shells in shells, and of wrappers in wrappers
)

// Parse reads the text of a command. It runs nothing and looks at no file.
func Parse(text string) Analysis {
	var r reading
	file := r.text(text)
	a := Analysis{Named: r.named, Complete: r.unclear.format == "", Unclear: r.unclear.in(language.English), doubt: r.unclear}
	for _, name := range r.named {
		a.Programs = appendName(a.Programs, name)
	}
	if !a.Complete {
		a.Programs = appendWords(a.Programs, text)
	}
	simple, plain, why := simpleCommand(file)
	a.Simple = simple
	switch {
	case !a.Complete:
		a.Why = a.Unclear
	case simple == nil:
		a.Why = why
	case !plain || strings.ContainsRune(strings.TrimSpace(text), '\n'):
		a.Why = "its program isn't written plainly, on one line"
	default:
		a.Why = notReadOnly(simple)
	}
	a.ReadOnly = a.Why == ""
	return a
}

// A reading is one text being taken apart, with the texts inside it.
type reading struct {
	named    []string
	commands int
	depth    int
	unclear  doubt // the first thing that wasn't understood
}

// A doubt is a reason in words of ours, and what goes into them.
type doubt struct {
	format string
	args   []any
}

func (d doubt) in(l language.Language) string { return l.Later(d.format, d.args...) }

// doubt records that something isn't understood. The first reason is kept.
func (r *reading) doubt(format string, args ...any) {
	if r.unclear.format == "" {
		r.unclear = doubt{format, args}
	}
}

// text reads the text of a shell. It returns nil if that can't be parsed.
func (r *reading) text(text string) *syntax.File {
	if why := unreadable(text); why != "" {
		r.unclear = doubt{format: why}
		return nil
	}
	file, err := parse(text)
	if err != nil {
		// The shell may well run the lines before the one that it can't read.
		r.doubt(notPOSIX)
		return nil
	}
	syntax.Walk(file, r.node)
	return file
}

const notPOSIX = "it isn't written as POSIX says a shell command is"

// Parsers are kept for their buffers. Comments are kept only to know that there
// are some.
var parsers = sync.Pool{New: func() any {
	return syntax.NewParser(syntax.Variant(syntax.LangPOSIX), syntax.KeepComments(true))
}}

// parse parses a text. It comes from whoever can talk to the model, so a parser
// that it crashes mustn't take the program along: that is a text that isn't
// understood.
func parse(text string) (file *syntax.File, err error) {
	parser := parsers.Get().(*syntax.Parser)
	defer func() {
		if p := recover(); p != nil {
			file, err = nil, fmt.Errorf("the parser crashed: %v", p)
			return
		}
		parsers.Put(parser)
	}()
	return parser.Parse(strings.NewReader(text), "")
}

// unreadable says why a text isn't even parsed; "" if it is. Characters that
// can't be seen come first: a parser, a shell and a person may each take them
// for something else.
func unreadable(text string) string {
	if len(text) > maxText {
		return "it is too long to be taken apart"
	}
	if !utf8.ValidString(text) {
		return "it isn't valid UTF-8"
	}
	depth := 0
	for _, c := range text {
		switch {
		case c == '\n' || c == '\t':
		case !unicode.IsPrint(c): // includes every space but the usual one
			return "it contains a character that can't be seen"
		case c == '(' || c == '{':
			if depth++; depth > maxNesting {
				return "it is nested too deeply"
			}
		case c == ')' || c == '}':
			depth = max(depth-1, 0)
		}
	}
	return ""
}

// node reads one node of the syntax tree. What it doesn't know it doubts.
func (r *reading) node(n syntax.Node) bool {
	switch n := n.(type) {
	case *syntax.CallExpr:
		r.call(n)
	case *syntax.FuncDecl:
		r.doubt("it defines a function, which can stand for any program")
	case *syntax.Word:
		if foreign(n.Parts, false) {
			r.doubt(notPOSIX)
		}
	case *syntax.DblQuoted:
		if foreign(n.Parts, true) {
			r.doubt(notPOSIX)
		}
	case *syntax.WordIter:
		r.variable(n.Name.Value)
	case *syntax.ParamExp:
		r.parameter(n)
	case *syntax.ArithmExp:
		r.arithmetic(n)
	case *syntax.Redirect:
		r.redirect(n)
	case *syntax.Stmt:
		if n.Coprocess || n.Disown {
			r.doubt(notPOSIX)
		}
	case nil, *syntax.File, *syntax.Comment, *syntax.Lit, *syntax.SglQuoted, *syntax.CmdSubst,
		*syntax.Assign, *syntax.Subshell, *syntax.Block, *syntax.IfClause, *syntax.WhileClause, *syntax.ForClause,
		*syntax.CaseClause, *syntax.CaseItem, *syntax.BinaryCmd,
		*syntax.BinaryArithm, *syntax.UnaryArithm, *syntax.ParenArithm:
	default:
		r.doubt(notPOSIX)
	}
	return true
}

// parameter reads ${x…}, which can set x.
func (r *reading) parameter(n *syntax.ParamExp) {
	if n.Exp != nil && (n.Exp.Op == syntax.AssignUnset || n.Exp.Op == syntax.AssignUnsetOrNull) && n.Param != nil {
		r.variable(n.Param.Value)
	}
	if n.Index != nil || n.Slice != nil || n.Repl != nil || n.Excl || n.Names != 0 {
		r.doubt(notPOSIX)
	}
}

// arithmetic reads $((…)), which can set variables, too.
func (r *reading) arithmetic(n *syntax.ArithmExp) {
	if n.Bracket {
		r.doubt(notPOSIX)
	}
	syntax.Walk(n, func(n syntax.Node) bool {
		if lit, ok := n.(*syntax.Lit); ok {
			r.variable(lit.Value)
			if strings.ContainsRune(lit.Value, '[') { // bash runs what stands in a subscript
				r.doubt("it computes with a subscript")
			}
		}
		return true
	})
}

// redirect reads a redirection. Where the body of a here-document ends is what
// shells agree on least, and one that ends elsewhere is a command; so only plain
// ones are understood.
func (r *reading) redirect(n *syntax.Redirect) {
	if n.Hdoc == nil {
		return
	}
	delimiter := literal(n.Word)
	if !delimiter.literal || !syntax.ValidName(delimiter.text) || n.Word.Pos().Line() != n.Word.End().Line() {
		r.doubt("a here-document in it has an unusual end mark")
		return
	}
	// The parser has joined continued lines already where it saw them.
	if n.Word.Lit() == delimiter.text && joined(n.Hdoc) {
		r.doubt("a here-document in it continues a line")
	}
}

// joined tells whether the word's text in the source has more lines than its parts
// say: some were joined.
func joined(w *syntax.Word) bool {
	lines := 0
	for _, part := range w.Parts {
		lit, ok := part.(*syntax.Lit)
		if !ok {
			lines += int(part.End().Line() - part.Pos().Line())
			continue
		}
		lines += strings.Count(lit.Value, "\n")
	}
	return int(w.End().Line()-w.Pos().Line()) > lines
}

// call reads a simple command.
func (r *reading) call(n *syntax.CallExpr) {
	for _, a := range n.Assigns {
		switch {
		case a.Name == nil || a.Index != nil || a.Array != nil || a.Append:
			r.doubt(notPOSIX)
		case len(n.Args) > 0:
			value := word{literal: true}
			if a.Value != nil {
				value = literal(a.Value)
			}
			r.environment(a.Name.Value, value)
		default:
			r.variable(a.Name.Value)
		}
	}
	words := make([]word, len(n.Args))
	for i, w := range n.Args {
		words[i] = literal(w)
	}
	r.run(words)
}

// run reads an argument list: the program's name, and what it makes of the rest.
func (r *reading) run(argv []word) {
	if len(argv) == 0 {
		return
	}
	if r.commands++; r.commands > maxCommands {
		r.doubt("it has more than %d commands", maxCommands)
		return
	}
	if r.depth++; r.depth > maxDepth {
		r.doubt("programs in it run one another more than %d deep", maxDepth)
		return
	}
	defer func() { r.depth-- }()
	if !argv[0].literal {
		r.doubt("the name of a program in it is known only when it runs")
		return
	}
	name := argv[0].text
	if !usualName(name) {
		r.doubt("a program in it has an unusual name")
		return
	}
	if !slices.Contains(r.named, name) {
		r.named = append(r.named, name)
	}
	base := path.Base(name)
	readerOf(base)(r, base, argv[1:])
}

// code reads a text that a program will hand to a shell.
func (r *reading) code(w word, what string) {
	if !w.literal {
		r.doubt("%s runs a text that is known only then", what)
		return
	}
	if r.depth++; r.depth > maxDepth {
		r.doubt("programs in it run one another more than %d deep", maxDepth)
		return
	}
	defer func() { r.depth-- }()
	r.text(w.text)
}
