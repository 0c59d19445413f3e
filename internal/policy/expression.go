package policy

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
	_ "time/tzdata" // conditions name time zones, also where the system has no list of them

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/operators"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/common/types/traits"
)

// A Variable is something that a condition may ask for.
type Variable struct {
	Name string
	Type string // in CEL's words
	Doc  string
	typ  *cel.Type
}

// Variables are all that a condition may ask for, in the order in which people think of
// them.
var Variables = []Variable{
	{"tool", "string", "the tool's name", cel.StringType},
	{"args", "map", "its arguments; has(args.x) asks whether there is an x", cel.MapType(cel.StringType, cel.DynType)},
	{"command.text", "string", `of a shell command: all of it; "" for other tools`, cel.StringType},
	{"command.programs", "list of string", "the programs that it runs, as they stand in it; evaluating it fails if the command could not be understood", cel.ListType(cel.StringType)},
	{"command.parsed", "bool", "it was understood, so that command.programs are all of them", cel.BoolType},
	{"command.readOnly", "bool", "it is one literal command of the short list that only looks", cel.BoolType},
	{"path", "string", `the file that the call is about, relative to the workspace; "" if it is about none, or nobody knows`, cel.StringType},
	{"host", "string", `the host that the call talks to, in lower case; "" if nobody knows`, cel.StringType},
	{"requester", "string", "who asks: a Slack user id, or token:NAME. Of several people, an ask or deny rule holds if it holds for one of them, an allow rule only if it holds for all", cel.StringType},
	{"requesters", "list of string", "everyone whose words are in the instructions", cel.ListType(cel.StringType)},
	{"channel", "string", `the Slack channel id; "" outside Slack`, cel.StringType},
	{"session", "string", "the conversation's id", cel.StringType},
	{"now", "timestamp", `the time; now.getHours("Europe/Berlin") is the hour there, now.getDayOfWeek(…) counts from Sunday, 0`, cel.TimestampType},
	{"annotations.readOnlyHint", "bool", "the tool changes nothing, as far as it is known", cel.BoolType},
	{"annotations.destructiveHint", "bool", "it may overwrite or delete", cel.BoolType},
	{"annotations.openWorldHint", "bool", "it may reach beyond the workspace", cel.BoolType},
}

// The bounds of one condition as it is written; evalCost is the one of evaluating it. They are
// far above what a rule needs.
const (
	maxExpression = 4096 // characters
	maxNodes      = 4000
	maxNesting    = 2 // of macros such as exists in each other
	maxRegex      = 1000

	simpleNodes = 64
)

// environment is what conditions are compiled in. It is made once: it is costly, and
// never changes.
var environment = sync.OnceValues(func() (*cel.Env, error) {
	options := []cel.EnvOption{
		// Only what a condition needs. The strings extension is left out: replace and
		// join can make a long text of two short ones before a limit on cost is looked at.
		cel.Function("lowerAscii", cel.MemberOverload("string_lower_ascii_policy", []*cel.Type{cel.StringType}, cel.StringType,
			cel.UnaryBinding(func(v ref.Val) ref.Val { return types.String(lowerASCII(string(v.(types.String)))) }))),
		cel.DefaultUTCTimeZone(true),
		cel.ParserExpressionSizeLimit(maxExpression),
		cel.ExpressionNodeLimit(maxNodes),
		cel.RegexProgramSizeLimit(maxRegex),
		cel.ASTValidators(
			cel.ValidateDurationLiterals(), cel.ValidateTimestampLiterals(), cel.ValidateRegexLiterals(),
			cel.ValidateHomogeneousAggregateLiterals(), cel.ValidateComprehensionNestingLimit(maxNesting),
		),
	}
	options = append(options, sets()...)
	for _, v := range Variables {
		options = append(options, cel.Variable(v.Name, v.typ))
	}
	return cel.NewEnv(options...)
})

func lowerASCII(s string) string {
	return strings.Map(func(r rune) rune {
		if 'A' <= r && r <= 'Z' {
			return r + ('a' - 'A')
		}
		return r
	}, s)
}

// An expression is a compiled condition. It is safe for concurrent use: evaluating it
// changes nothing in it.
type expression struct {
	program      cel.Program
	perRequester bool // it asks for the requester
	arguments    []string
}

// An expressionError is one thing that is wrong with a condition.
type expressionError struct {
	line   int // from 1
	column int // from 0, in characters
	what   string
}

// compile checks a condition and makes it ready. It names everything that it finds.
func compile(text string) (*expression, []expressionError) {
	env, err := environment()
	if err != nil {
		return nil, []expressionError{{1, 0, err.Error()}}
	}
	checked, issues := env.Compile(text)
	if err := issues.Err(); err != nil {
		var wrong []expressionError
		for _, e := range issues.Errors() {
			wrong = append(wrong, expressionError{max(e.Location.Line(), 1), max(e.Location.Column(), 0), explained(e.Message)})
			if strings.HasPrefix(e.Message, syntaxError) {
				break // what follows it comes of it
			}
		}
		return nil, wrong
	}
	if t := checked.OutputType(); !t.IsExactType(cel.BoolType) && !t.IsExactType(cel.DynType) {
		return nil, []expressionError{{1, 0, fmt.Sprintf("it has to be true or false, and gives a %s", cel.FormatCELType(t))}}
	}
	if wrong := append(wrongZones(checked), openPatterns(checked)...); wrong != nil {
		return nil, wrong
	}
	options := []cel.ProgramOption{cel.EvalOptions(cel.OptOptimize)}
	if !simple(checked) {
		options = append(options, cel.CostTracking(prices{}), cel.CostLimit(evalCost))
	}
	program, err := env.Program(checked, options...)
	if err != nil {
		return nil, []expressionError{{1, 0, err.Error()}}
	}
	return &expression{program, asksFor(checked, "requester"), argumentsOf(checked)}, nil
}

// argumentsOf are the arguments that an expression names, by the alphabet: args.x, has(args.x), args["x"].
func argumentsOf(checked *cel.Ast) []string {
	isArgs := func(e ast.Expr) bool { return e.Kind() == ast.IdentKind && e.AsIdent() == "args" }
	var names []string
	ast.MatchDescendants(ast.NavigateAST(checked.NativeRep()), func(e ast.NavigableExpr) bool {
		switch e.Kind() {
		case ast.SelectKind:
			if isArgs(e.AsSelect().Operand()) {
				names = append(names, e.AsSelect().FieldName())
			}
		case ast.CallKind:
			if c := e.AsCall(); c.FunctionName() == operators.Index && isArgs(c.Args()[0]) && c.Args()[1].Kind() == ast.LiteralKind {
				if name, ok := c.Args()[1].AsLiteral().(types.String); ok {
					names = append(names, string(name))
				}
			}
		}
		return false
	})
	slices.Sort(names)
	return slices.Compact(names)
}

// asksFor tells whether an expression refers to a variable.
func asksFor(checked *cel.Ast, name string) bool {
	for _, r := range checked.NativeRep().ReferenceMap() {
		if r.Name == name {
			return true
		}
	}
	return false
}

// simple tells whether a condition needs no limit, because it can't do more than look at each
// argument a few times: it is short, repeats nothing, and calls only what takes no longer than
// reading its operands. Most conditions are, and cost a third without one.
func simple(checked *cel.Ast) bool {
	tree := checked.NativeRep()
	if ast.NodeCount(tree) > simpleNodes {
		return false
	}
	costly := ast.MatchDescendants(ast.NavigateAST(tree), func(e ast.NavigableExpr) bool {
		if e.Kind() == ast.ComprehensionKind {
			return true
		}
		return e.Kind() == ast.CallKind && !slices.Contains(cheap, e.AsCall().FunctionName())
	})
	return len(costly) == 0
}

// cheap are the functions of simple conditions.
var cheap = []string{
	operators.LogicalAnd, operators.LogicalOr, operators.LogicalNot, operators.Equals, operators.NotEquals,
	operators.Less, operators.LessEquals, operators.Greater, operators.GreaterEquals, operators.In,
	"contains", "startsWith", "endsWith", "size",
}

// wrongZones finds literal time zones that there aren't: at the time of a call they would
// make the rule fail.
func wrongZones(checked *cel.Ast) (wrong []expressionError) {
	tree := checked.NativeRep()
	calls := ast.MatchDescendants(ast.NavigateAST(tree), func(e ast.NavigableExpr) bool {
		return e.Kind() == ast.CallKind && strings.HasPrefix(e.AsCall().FunctionName(), "get") && len(e.AsCall().Args()) == 1
	})
	for _, c := range calls {
		arg := c.AsCall().Args()[0]
		if arg.Kind() != ast.LiteralKind {
			continue
		}
		zone, ok := arg.AsLiteral().(types.String)
		if !ok || numericZone.MatchString(string(zone)) {
			continue
		}
		if _, err := time.LoadLocation(string(zone)); err != nil {
			at := tree.SourceInfo().GetStartLocation(arg.ID())
			wrong = append(wrong, expressionError{max(at.Line(), 1), max(at.Column(), 0), fmt.Sprintf("there is no time zone %q: it has to be a name such as Europe/Berlin, or a distance such as +02:00", string(zone))})
		}
	}
	return wrong
}

// openPatterns finds regular expressions that aren't written out. One that a call brings
// along is made ready before anybody sees how large it is, and it would be the call that
// says what it is looked through for.
func openPatterns(checked *cel.Ast) (wrong []expressionError) {
	tree := checked.NativeRep()
	calls := ast.MatchDescendants(ast.NavigateAST(tree), func(e ast.NavigableExpr) bool {
		return e.Kind() == ast.CallKind && e.AsCall().FunctionName() == "matches"
	})
	for _, c := range calls {
		args := c.AsCall().Args()
		if len(args) == 0 || args[len(args)-1].Kind() == ast.LiteralKind {
			continue
		}
		at := tree.SourceInfo().GetStartLocation(args[len(args)-1].ID())
		wrong = append(wrong, expressionError{max(at.Line(), 1), max(at.Column(), 0), "the regular expression of matches has to be written out, in quotes: what stands in a call can't say what it is searched for"})
	}
	return wrong
}

var numericZone = regexp.MustCompile(`^[+-]?\d{1,2}:\d{2}$`)

const syntaxError = "Syntax error: "

var (
	undeclared = regexp.MustCompile(`^undeclared reference to '([^']*)'`)
	noOverload = regexp.MustCompile(`^found no matching overload for '([^']*)' applied to '(.*)'`)
	infix      = regexp.MustCompile(`^_(.+)_$`)
)

// explained puts CEL's words into ones that say what would be right.
func explained(message string) string {
	if m := undeclared.FindStringSubmatch(message); m != nil {
		return fmt.Sprintf("there is no %s: a condition may ask for %s; the functions are CEL's", m[1], variableNames())
	}
	if m := noOverload.FindStringSubmatch(message); m != nil {
		name := m[1]
		if op := infix.FindStringSubmatch(name); op != nil {
			return fmt.Sprintf("%s doesn't work with %s: both sides have to be of fitting types", op[1], m[2])
		}
		return fmt.Sprintf("%s doesn't work with %s", name, m[2])
	}
	if rest, ok := strings.CutPrefix(message, syntaxError); ok {
		rest, _, _ = strings.Cut(rest, " expecting ")
		rest = strings.ReplaceAll(rest, "'<EOF>'", "the end")
		return "it can't be read: " + rest + " (a comparison is ==, and is &&, or is ||, not is !; texts stand in quotes; quotes and brackets are closed)"
	}
	return message
}

func variableNames() string {
	names := make([]string, len(Variables))
	for i, v := range Variables {
		names[i] = v.Name
	}
	return strings.Join(names, ", ")
}

// eval evaluates the condition. An error is for people.
func (e *expression) eval(in *input) (bool, error) {
	out, _, err := e.program.Eval(in)
	if err != nil {
		return false, plainly(err)
	}
	is, ok := out.(types.Bool)
	if !ok {
		return false, fmt.Errorf("it gives a %s, neither true nor false", out.Type().TypeName())
	}
	return bool(is), nil
}

// tooLong is in what CEL says of an evaluation that was given up.
const tooLong = "cost limit exceeded"

func plainly(err error) error {
	message := err.Error()
	if key, ok := strings.CutPrefix(message, "no such key: "); ok {
		return fmt.Errorf("there is no argument %s", key)
	}
	if strings.Contains(message, tooLong) {
		return errors.New("it took too long")
	}
	return errors.New(message)
}

// An input gives conditions what they ask for about one call. What takes work is worked
// out once, when the first of them asks. It is used by one goroutine.
type input struct {
	call      *Call
	requester string
	args      ref.Val
	allows    bool // of an allow rule, for which nothing known is not enough
	programs  ref.Val
	people    ref.Val
}

// Parent makes an input an activation of CEL.
func (in *input) Parent() cel.Activation { return nil }

// ResolveName gives the value of a variable.
func (in *input) ResolveName(name string) (any, bool) {
	c := in.call
	switch name {
	case "tool":
		return types.String(c.Tool), true
	case "args":
		return in.arguments(), true
	case "command.text":
		return types.String(in.text()), true
	case "command.programs":
		return in.known(), true
	case "command.parsed":
		return types.Bool(c.Parsed), true
	case "command.readOnly":
		return types.Bool(c.ReadOnlyCommand), true
	case "path":
		return types.String(c.Path), true
	case "host":
		return types.String(c.Host), true
	case "requester":
		return types.String(in.requester), true
	case "requesters":
		if in.people == nil {
			in.people = types.NewStringList(types.DefaultTypeAdapter, c.Requesters)
		}
		return in.people, true
	case "channel":
		return types.String(c.Channel), true
	case "session":
		return types.String(c.Session), true
	case "now":
		return types.Timestamp{Time: c.Now}, true
	case "annotations.readOnlyHint":
		return types.Bool(c.ReadOnly), true
	case "annotations.destructiveHint":
		return types.Bool(c.Destructive), true
	case "annotations.openWorldHint":
		return types.Bool(c.OpenWorld), true
	}
	return nil, false
}

// known are the programs of a command. Of one that wasn't understood they are not known,
// and a list that lacks some would be worse than none. That holds for whoever runs a
// command: a program that is told to run another (sudo) is one that isn't understood.
//
// Of a call that names no program an allow rule learns nothing by them. "All of them are
// harmless" is true of no program at all: of a tool that runs commands under another
// argument's name, of a file that is written, of a redirection alone.
func (in *input) known() ref.Val {
	c := in.call
	if in.programs == nil {
		if !c.Parsed && (in.text() != "" || len(c.Programs) > 0) {
			in.programs = types.NewErrFromString("its programs are not known, for the command could not be understood whole")
		} else {
			in.programs = types.NewStringList(types.DefaultTypeAdapter, c.Programs)
		}
	}
	if in.allows && len(c.Programs) == 0 && !types.IsError(in.programs) {
		return types.NewErrFromString("the call names no program")
	}
	return in.programs
}

// text is the command of a call that has one, by the usual name of the argument.
func (in *input) text() string {
	if args, ok := in.arguments().(traits.Mapper); ok {
		if v, found := args.Find(types.String("command")); found {
			if s, ok := v.(types.String); ok {
				return string(s)
			}
		}
	}
	return ""
}

// arguments are the call's arguments, read once. What can't be read is an error as a
// value: every condition that asks for it fails.
func (in *input) arguments() ref.Val {
	if in.args == nil {
		in.args = readArguments(in.call.Args)
	}
	return in.args
}

func readArguments(raw json.RawMessage) ref.Val {
	if len(raw) == 0 {
		raw = json.RawMessage("{}")
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	var args map[string]any
	err := dec.Decode(&args)
	if _, end := dec.Token(); err != nil || args == nil || end != io.EOF {
		return types.NewErrFromString("the arguments are not a JSON object")
	}
	for k, v := range args {
		n, err := numbers(v)
		if err != nil {
			return types.WrapErr(err)
		}
		args[k] = n
	}
	return types.NewStringInterfaceMap(types.DefaultTypeAdapter, args)
}

// numbers turns the numbers in a JSON value into CEL's: whole ones into int, others into
// double.
func numbers(v any) (any, error) {
	switch v := v.(type) {
	case json.Number:
		if n, err := strconv.ParseInt(string(v), 10, 64); err == nil {
			return n, nil
		}
		f, err := strconv.ParseFloat(string(v), 64)
		if err != nil {
			return nil, fmt.Errorf("the number %s in the arguments is too large", shortened(string(v)))
		}
		return f, nil
	case []any:
		for i := range v {
			n, err := numbers(v[i])
			if err != nil {
				return nil, err
			}
			v[i] = n
		}
	case map[string]any:
		for k := range v {
			n, err := numbers(v[k])
			if err != nil {
				return nil, err
			}
			v[k] = n
		}
	}
	return v, nil
}
