package tools

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/google/jsonschema-go/jsonschema"
)

// Limits on what read_file hands to a model in one go.
const (
	readLines = 2000
	readBytes = 64 << 10
)

type readFile struct{ w *workspace }

type readFileArgs struct {
	Path   string `json:"path"`
	Offset count  `json:"offset"` // first line, from 1
	Limit  count  `json:"limit"`  // number of lines
}

func (t *readFile) Spec() Spec {
	return Spec{
		Name:        "read_file",
		Description: fmt.Sprintf("Read a text file of the workspace. Returns at most %d lines and %d KiB; use offset and limit for more.", readLines, readBytes>>10),
		InputSchema: object([]string{"path"}, map[string]*jsonschema.Schema{
			"path":   pathSchema("Path of the file, relative to the workspace."),
			"offset": intSchema("The first line to return, counted from 1.", 1, 1<<30),
			"limit":  intSchema("The most lines to return.", 1, readLines),
		}),
		Annotations: reading("Read a file"),
	}
}

func (t *readFile) parse(args json.RawMessage) (a readFileArgs, err error) {
	if err := decode(t.Spec(), args, &a); err != nil {
		return a, err
	}
	_, err = cleanPath(a.Path)
	return a, err
}

func (t *readFile) Describe(args json.RawMessage) (Preview, error) {
	a, err := t.parse(args)
	if err != nil {
		return Preview{}, err
	}
	return jsonPreview("Read "+brief(a.Path), a.Path, args)
}

func (t *readFile) Call(ctx context.Context, args json.RawMessage) (Output, error) {
	a, err := t.parse(args)
	if err != nil {
		return Output{}, err
	}
	if ctx.Err() != nil {
		return Output{}, errorf(CodeAborted, "Stopped before %s was read.", a.Path)
	}
	name, err := cleanPath(a.Path)
	if err != nil {
		return Output{}, err
	}
	content, err := t.w.read(name)
	if err != nil {
		return Output{}, err
	}
	if !utf8.Valid(content) || bytes.IndexByte(content, 0) >= 0 {
		return Output{}, errorf(CodeInvalidArguments, "%s is not a text file.", a.Path)
	}
	return excerpt(a, content)
}

// excerpt returns the lines that were asked for, as far as they fit, and says
// in a last line in brackets what is missing.
func excerpt(a readFileArgs, content []byte) (Output, error) {
	if len(content) == 0 {
		return Output{Text: "[The file is empty.]"}, nil
	}
	lines := strings.SplitAfter(string(content), "\n")
	if lines[len(lines)-1] == "" {
		lines = lines[:len(lines)-1]
	}
	first, limit := max(int(a.Offset), 1), int(a.Limit)
	if limit == 0 {
		limit = readLines
	}
	if first > len(lines) {
		return Output{}, errorf(CodeInvalidArguments, "%s has only %d lines.", a.Path, len(lines))
	}
	var text strings.Builder
	next := first
	for ; next <= len(lines) && next < first+limit && text.Len()+len(lines[next-1]) <= readBytes; next++ {
		text.WriteString(lines[next-1])
	}
	if next == first {
		line := strings.ToValidUTF8(lines[first-1][:readBytes], "")
		return Output{Text: fmt.Sprintf("%s\n[Line %d has %d bytes; this is its beginning.]", line, first, len(lines[first-1])), Truncated: true}, nil
	}
	if next > len(lines) {
		return Output{Text: text.String()}, nil
	}
	if !strings.HasSuffix(text.String(), "\n") {
		text.WriteByte('\n')
	}
	fmt.Fprintf(&text, "[Lines %d to %d of %d; continue with offset %d.]", first, next-1, len(lines), next)
	return Output{Text: text.String(), Truncated: true}, nil
}

type writeFile struct{ w *workspace }

type writeFileArgs struct {
	Path    string `json:"path"`
	Content string `json:"content"`
}

func (t *writeFile) Spec() Spec {
	return Spec{
		Name:        "write_file",
		Description: "Write a text file of the workspace, replacing it if it exists. Missing directories are created. Prefer edit_file to change a part of a file.",
		InputSchema: object([]string{"path", "content"}, map[string]*jsonschema.Schema{
			"path":    pathSchema("Path of the file, relative to the workspace."),
			"content": {Type: "string", Description: "The whole new content."},
		}),
		Annotations: Annotations{Title: "Write a file", DestructiveHint: ptr(true), IdempotentHint: true, OpenWorldHint: ptr(false)},
	}
}

func (t *writeFile) parse(args json.RawMessage) (a writeFileArgs, err error) {
	if err := decode(t.Spec(), args, &a); err != nil {
		return a, err
	}
	_, err = cleanPath(a.Path)
	return a, err
}

func (t *writeFile) Describe(args json.RawMessage) (Preview, error) {
	a, err := t.parse(args)
	if err != nil {
		return Preview{}, err
	}
	p := Preview{
		Summary: fmt.Sprintf("Write %s (%s)", brief(a.Path), bytesOf(len(a.Content))),
		Target:  a.Path,
		Kind:    KindDiff,
		Body:    wholeFile(a.Content),
		Notes:   []string{"This is the whole new content; if the file exists, it is replaced."},
	}
	if a.Content == "" {
		p.Notes = []string{"The file will be empty; if it exists, its content is deleted."}
	}
	return p, nil
}

func (t *writeFile) Call(ctx context.Context, args json.RawMessage) (Output, error) {
	a, err := t.parse(args)
	if err != nil {
		return Output{}, err
	}
	name, err := cleanPath(a.Path)
	if err != nil {
		return Output{}, err
	}
	t.w.writing.Lock()
	defer t.w.writing.Unlock()
	created, err := t.w.write(ctx, name, []byte(a.Content))
	if err != nil {
		return Output{}, err
	}
	if created {
		return Output{Text: fmt.Sprintf("Created %s (%s).", a.Path, bytesOf(len(a.Content)))}, nil
	}
	return Output{Text: fmt.Sprintf("Replaced %s (%s).", a.Path, bytesOf(len(a.Content)))}, nil
}

type editFile struct{ w *workspace }

type editFileArgs struct {
	Path       string `json:"path"`
	OldString  string `json:"old_string"`
	NewString  string `json:"new_string"`
	ReplaceAll bool   `json:"replace_all"`
}

func (t *editFile) Spec() Spec {
	return Spec{
		Name:        "edit_file",
		Description: "Replace a piece of text in a file of the workspace. old_string has to occur exactly once, unless replace_all is set; include enough of the surrounding text.",
		InputSchema: object([]string{"path", "old_string", "new_string"}, map[string]*jsonschema.Schema{
			"path":        pathSchema("Path of the file, relative to the workspace."),
			"old_string":  {Type: "string", Description: "The exact text to replace.", MinLength: ptr(1)},
			"new_string":  {Type: "string", Description: "The text to put in its place; empty to delete."},
			"replace_all": {Type: "boolean", Description: "Replace every occurrence."},
		}),
		Annotations: Annotations{Title: "Edit a file", DestructiveHint: ptr(true), OpenWorldHint: ptr(false)},
	}
}

func (t *editFile) parse(args json.RawMessage) (a editFileArgs, err error) {
	if err := decode(t.Spec(), args, &a); err != nil {
		return a, err
	}
	if a.OldString == a.NewString {
		return a, errorf(CodeInvalidArguments, "old_string and new_string are the same; there is nothing to change.")
	}
	_, err = cleanPath(a.Path)
	return a, err
}

func (t *editFile) Describe(args json.RawMessage) (Preview, error) {
	a, err := t.parse(args)
	if err != nil {
		return Preview{}, err
	}
	p := Preview{
		Summary: "Edit " + brief(a.Path),
		Target:  a.Path,
		Kind:    KindDiff,
		Body:    fragmentDiff(a.OldString, a.NewString),
		Notes:   []string{"The text is replaced where it occurs, if it occurs exactly once."},
	}
	if a.ReplaceAll {
		p.Summary += " (every occurrence)"
		p.Notes = []string{"The text is replaced everywhere in the file."}
	}
	return p, nil
}

func (t *editFile) Call(ctx context.Context, args json.RawMessage) (Output, error) {
	a, err := t.parse(args)
	if err != nil {
		return Output{}, err
	}
	name, err := cleanPath(a.Path)
	if err != nil {
		return Output{}, err
	}
	t.w.writing.Lock()
	defer t.w.writing.Unlock()
	content, err := t.w.read(name)
	if err != nil {
		return Output{}, err
	}
	text := string(content)
	n := strings.Count(text, a.OldString)
	switch {
	case n == 0:
		return Output{}, errorf(CodeNotFound, "old_string does not occur in %s; read the file again.", a.Path)
	case n > 1 && !a.ReplaceAll:
		return Output{}, errorf(CodeInvalidArguments, "old_string occurs %d times in %s; include more of the surrounding text, or set replace_all.", n, a.Path)
	}
	if size := int64(len(text)) + int64(n)*int64(len(a.NewString)-len(a.OldString)); size > t.w.maxFile {
		return Output{}, errorf(CodeTooLarge, "%s would have %d bytes; %d is the most that can be written.", a.Path, size, t.w.maxFile)
	}
	if _, err := t.w.write(ctx, name, []byte(strings.ReplaceAll(text, a.OldString, a.NewString))); err != nil {
		return Output{}, err
	}
	if n == 1 {
		return Output{Text: fmt.Sprintf("Edited %s.", a.Path)}, nil
	}
	return Output{Text: fmt.Sprintf("Edited %s: %d occurrences replaced.", a.Path, n)}, nil
}
