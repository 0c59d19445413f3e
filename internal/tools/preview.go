package tools

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/jsonschema-go/jsonschema"
)

// maxBrief is far more than anybody reads in one line.
const maxBrief = 4000

// brief is untrusted text as a part of a summary: its first line. How much of that is shown is the surface's business,
// once it has hidden the secrets in it: half a secret can't be recognised any more.
func brief(s string) string { return shorten(oneLine(s), maxBrief) }

func bytesOf(n int) string {
	if n == 1 {
		return "1 byte"
	}
	return fmt.Sprintf("%d bytes", n)
}

// jsonPreview shows the arguments as they are, for tools whose calls have no
// better form.
func jsonPreview(summary, target string, args json.RawMessage) (Preview, error) {
	body := jsontext.Value(append(json.RawMessage(nil), args...))
	if err := body.Format(jsontext.Multiline(true), jsontext.WithIndent("  ")); err != nil {
		return Preview{}, errorf(CodeInvalidArguments, "The arguments can't be read: %s.", reason(err))
	}
	return Preview{Summary: summary, Target: target, Kind: KindJSON, Body: string(body)}, nil
}

// noNewline follows the last line of a file that doesn't end in a line break.
// It can't be mistaken for content, which is always behind a '+'.
const noNewline = `\ No newline at end of file`

// wholeFile renders a file's content as a diff against nothing.
func wholeFile(content string) string {
	if content == "" {
		return ""
	}
	body, terminated := strings.CutSuffix(content, "\n")
	text := prefixed("+", strings.Split(body, "\n"))
	if !terminated {
		text += "\n" + noNewline
	}
	return text
}

// fragmentDiff renders the replacement of one piece of text by another. Both
// are pieces of lines joined by line breaks, so a piece that ends in a line
// break shows as one that ends in an empty line. Lines that both begin or end
// with are shown once, as context.
func fragmentDiff(old, new string) string {
	from := strings.Split(old, "\n")
	var to []string
	if new != "" {
		to = strings.Split(new, "\n")
	}
	head := 0
	for head < min(len(from), len(to)) && from[head] == to[head] {
		head++
	}
	tail := 0
	for tail < min(len(from), len(to))-head && from[len(from)-1-tail] == to[len(to)-1-tail] {
		tail++
	}
	var parts []string
	for _, part := range []struct {
		mark  string
		lines []string
	}{
		{" ", from[:head]},
		{"-", from[head : len(from)-tail]},
		{"+", to[head : len(to)-tail]},
		{" ", from[len(from)-tail:]},
	} {
		if len(part.lines) > 0 {
			parts = append(parts, prefixed(part.mark, part.lines))
		}
	}
	return strings.Join(parts, "\n")
}

func prefixed(mark string, lines []string) string {
	return mark + strings.Join(lines, "\n"+mark)
}

// object is the schema of a tool's arguments: these members and no others.
func object(required []string, properties map[string]*jsonschema.Schema) *jsonschema.Schema {
	return &jsonschema.Schema{
		Type:                 "object",
		Properties:           properties,
		Required:             required,
		AdditionalProperties: &jsonschema.Schema{Not: &jsonschema.Schema{}},
	}
}

func pathSchema(description string) *jsonschema.Schema {
	return &jsonschema.Schema{Type: "string", Description: description, MinLength: ptr(1), MaxLength: ptr(1024)}
}

func intSchema(description string, least, most float64) *jsonschema.Schema {
	return &jsonschema.Schema{Type: "integer", Description: description, Minimum: &least, Maximum: &most}
}

// reading annotates a tool that only looks at the workspace.
func reading(title string) Annotations {
	return Annotations{Title: title, ReadOnlyHint: true, DestructiveHint: ptr(false), OpenWorldHint: ptr(false)}
}

func ptr[T any](v T) *T { return &v }
