package model

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"approvalbot/internal/spelling"
)

// Demo stands in for a language model where there is none: it needs no network
// and no key, and answers the same to the same. It understands a few fixed
// forms ([demoHelp] lists them), calls the tools for all of them in one round,
// and sums up in a line how each ended, with what was read, listed or printed below it. It acts on the last message of a person and on
// nothing else; no text that a tool returns can make it act.
type Demo struct{}

// demoHelp is the answer to what Demo doesn't understand.
const demoHelp = "I am a demo, not a language model, and understand only this:\n" +
	"- text in backticks is a shell command: run `date`\n" +
	"- read FILE\n" +
	"- list files, or list files in DIRECTORY\n" +
	"- write FILE: TEXT, to the end of the message or to a line that begins with another of these\n" +
	"- use TOOL {ARGUMENTS}, in JSON: any other tool, such as an action of yours\n" +
	"- tools: which there are\n" +
	"Put a name with spaces in quotes: read \"my notes.txt\". What one message asks for is asked and done side by side, " +
	"not one after the other; what has to wait for something else belongs in the next message."

// demoCalls is the most calls in one round; more than that is not a demo.
const demoCalls = 20

// Name implements [Model].
func (Demo) Name() string { return "demo" }

// Generate implements [Model].
func (Demo) Generate(ctx context.Context, req Request, onDelta func(string)) (Response, error) {
	if err := ctx.Err(); err != nil {
		return Response{}, err
	}
	r := demoRespond(req)
	for _, piece := range pieces(r.Text) {
		if err := ctx.Err(); err != nil {
			return Response{}, err
		}
		emit(onDelta, []string{piece})
	}
	return r, nil
}

func demoRespond(req Request) Response {
	user := lastUser(req.Messages)
	if user < 0 {
		return Response{Text: demoHelp, StopReason: StopEndTurn}
	}
	text := req.Messages[user].Text
	wanted, broken := parseMessage(text)
	possible, notes := demoPossible(wanted, req.Tools)
	notes = append(notes, notJSON(broken, req.Tools)...)
	if run := req.Messages[user+1:]; slices.ContainsFunc(run, func(m Message) bool { return len(m.ToolCalls) > 0 }) {
		return Response{Text: strings.Join(append(outcomes(run), notes...), "\n"), StopReason: StopEndTurn}
	}
	switch {
	case len(wanted) == 0 && len(notes) == 0:
		return Response{Text: demoHelp + demoTools(text, req.Tools), StopReason: StopEndTurn}
	case len(possible) == 0:
		return Response{Text: strings.Join(notes, "\n"), StopReason: StopEndTurn}
	}
	r := Response{StopReason: StopToolUse}
	for i, c := range possible {
		// The position in the conversation makes the id unique in the session.
		id := fmt.Sprintf("call_%d_%d", len(req.Messages), i+1)
		r.ToolCalls = append(r.ToolCalls, ToolCall{ID: id, Name: c.tool, Arguments: c.arguments()})
	}
	return r
}

// demoPossible returns the commands that can be carried out, and a sentence for
// each reason why others can't.
func demoPossible(wanted []command, tools []ToolSpec) (possible []command, notes []string) {
	for _, c := range wanted {
		offered := slices.ContainsFunc(tools, func(t ToolSpec) bool { return t.Name == c.tool })
		note := ""
		switch {
		case !offered && c.tool == "shell":
			note = "There is no shell here, so I can't run commands. Whoever runs me can offer one with APPROVALBOT_SHELL."
		case !offered:
			note = fmt.Sprintf("There is no tool %s here, so I can't do that.", c.tool) + spelling.DidYouMean(c.tool, namesOf(tools))
		case len(possible) == demoCalls:
			note = fmt.Sprintf("I do at most %d things at once and left out the rest.", demoCalls)
		default:
			possible = append(possible, c)
			continue
		}
		if !slices.Contains(notes, note) {
			notes = append(notes, note)
		}
	}
	return possible, notes
}

// notJSON says what keeps a use of a tool that there is, or that one like it is called, from being one.
func notJSON(broken []brokenUse, tools []ToolSpec) (notes []string) {
	names := namesOf(tools)
	for _, b := range broken {
		hint := ""
		if !slices.Contains(names, b.tool) {
			if hint = spelling.DidYouMean(b.tool, names); hint == "" {
				continue // a sentence with a brace in it
			}
		}
		where := "they end too early"
		if b.from != "" {
			where = "look at " + asCode(b.from)
		}
		notes = append(notes, fmt.Sprintf("The arguments of %s are not JSON, so I did nothing with it: %s. Names and texts stand in straight double quotes: use %s {\"name\": \"value\"}.%s",
			b.tool, where, b.tool, hint))
	}
	return notes
}

func namesOf(tools []ToolSpec) []string {
	names := make([]string, len(tools))
	for i, t := range tools {
		names[i] = t.Name
	}
	return names
}

// asksForTools matches a message that wants to know what there is.
var asksForTools = regexp.MustCompile(`(?i)\btools\b|\bwhat (?:can|do) you (?:do|know)\b|\bactions\b`)

// demoTools names the tools that there are to somebody who asks for them.
func demoTools(text string, tools []ToolSpec) string {
	if len(tools) == 0 || !asksForTools.MatchString(text) {
		return ""
	}
	names := namesOf(tools)
	left := ""
	if n := len(names) - shownLines; n > 0 {
		names, left = names[:shownLines], fmt.Sprintf(", and %d more", n)
	}
	for i, name := range names {
		names[i] = asCode(name)
	}
	return "\nThe tools here: " + strings.Join(names, ", ") + left
}

// outcomes says how the calls of this run ended.
func outcomes(run []Message) []string {
	var lines []string
	results := map[string]ToolResult{}
	for _, m := range run {
		for _, r := range m.Results {
			results[r.ToolCallID] = r
		}
	}
	for _, m := range run {
		for _, c := range m.ToolCalls {
			r, ok := results[c.ID]
			if !ok {
				lines = append(lines, "No result: "+c.describe())
				continue
			}
			lines = append(lines, outcome(c, r))
		}
	}
	return lines
}

// The shape of an error for the model, and the code of one that says that a
// call was not approved. They are part of what every model is told.
const (
	errorPrefix  = "Error ["
	deniedCode   = "APPROVAL_DENIED"
	deniedAdvice = " The action was not performed."
)

// outcome is one line, with what was read or printed below it: where nobody was
// asked there is no card that shows it.
func outcome(c ToolCall, r ToolResult) string {
	c, r.Text = performed(c, r.Text)
	if !r.IsError {
		return success(c, r.Text)
	}
	code, message := "", r.Text
	if rest, ok := strings.CutPrefix(r.Text, errorPrefix); ok {
		code, message, _ = strings.Cut(rest, "]: ")
	}
	if code == deniedCode {
		// What follows is advice to a model that could take another way.
		message, _, _ = strings.Cut(message, deniedAdvice)
		return fmt.Sprintf("Not performed: %s: %s", c.describe(), firstLine(message))
	}
	return fmt.Sprintf("Failed: %s: %s", c.describe(), firstLine(message))
}

// changedCall is what a model is told first of a call that people changed before they approved it.
var changedCall = regexp.MustCompile(`^[^\n]* changed the arguments of this call before it was approved; it ran with (?:these instead: ([^\n]*)|others instead[^\n]*)\n`)

// performed is the call as it ran, and what it returned. A result that only looks like a changed one's makes the answer
// name something else, and nothing more.
func performed(c ToolCall, text string) (ToolCall, string) {
	m := changedCall.FindStringSubmatch(text)
	if m == nil {
		return c, text
	}
	if c.Arguments = m[1]; c.Arguments == "" { // too long to be told
		c.Arguments = "?"
	}
	return c, text[len(m[0]):]
}

// silent is what the shell says of a command that has printed nothing.
const silent = "[The command succeeded without output.]"

func success(c ToolCall, text string) string {
	done := "Done: " + c.describe()
	lines := strings.Count(strings.TrimSpace(text), "\n") + 1
	switch {
	case c.Name == "read_file" || c.Name == "list_files":
		return done + "\n" + codeBlock(text, shownLines, shownRunes)
	case c.Name == "write_file" || strings.TrimSpace(text) == "" || text == silent:
		return done
	case lines > 1:
		return fmt.Sprintf("%s (%d lines of output)\n%s", done, lines, codeBlock(text, printedLines, printedRunes))
	}
	return done + ": " + firstLine(text)
}

// Bounds of what an answer shows of a file or a directory, and of what a call
// printed: that often stands on a card, too.
const (
	shownLines   = 100
	shownRunes   = 4000
	printedLines = 20
	printedRunes = 1500
)

// codeBlock quotes a text as it is, in a fence that is longer than any in it,
// and says what it leaves out.
func codeBlock(text string, maxLines, maxRunes int) string {
	text = strings.TrimRightFunc(text, unicode.IsSpace)
	mark := fence
	for strings.Contains(text, mark) {
		mark += "`"
	}
	lines := strings.Split(text, "\n")
	kept := lines[:min(len(lines), maxLines)]
	shown, left := strings.Join(kept, "\n"), len(lines)-len(kept)
	note := ""
	if runes := []rune(shown); len(runes) > maxRunes {
		shown, note = string(runes[:maxRunes])+"…", "\n… (there is more)"
	} else if left > 0 {
		note = fmt.Sprintf("\n… (%d lines more)", left)
	}
	return mark + "\n" + shown + "\n" + mark + note
}

// describe names a call of ours in a few words, what it is about as code.
func (c ToolCall) describe() string {
	var args struct{ Command, Path string }
	if err := json.Unmarshal([]byte(c.Arguments), &args); err != nil {
		return c.Name
	}
	switch c.Name {
	case "shell":
		return asCode(firstLine(args.Command))
	case "read_file":
		return "read " + asCode(firstLine(args.Path))
	case "write_file":
		return "write " + asCode(firstLine(args.Path))
	case "list_files":
		if args.Path == "" {
			return "list files"
		}
		return "list files in " + asCode(firstLine(args.Path))
	}
	return c.Name
}

// asCode quotes a line as Markdown does: with more backticks than are in it.
func asCode(line string) string {
	mark, room := "`", ""
	for strings.Contains(line, mark) {
		mark, room = mark+"`", " "
	}
	return mark + room + line + room + mark
}

// firstLine returns the first line that isn't blank, of bearable length, with
// what was left out marked.
func firstLine(s string) string {
	const limit, mark = 200, "…"
	line, rest, _ := strings.Cut(strings.TrimSpace(s), "\n")
	line = strings.TrimRightFunc(line, unicode.IsSpace)
	if utf8.RuneCountInString(line) > limit {
		return string([]rune(line)[:limit-1]) + mark
	}
	if rest != "" {
		return line + " " + mark
	}
	return line
}

// pieces cuts a text into a few pieces at spaces, as a stream would bring them.
func pieces(text string) []string {
	var out []string
	words := strings.SplitAfter(text, " ")
	size := max(len(words)/8, 4)
	for chunk := range slices.Chunk(words, size) {
		out = append(out, strings.Join(chunk, ""))
	}
	return out
}
