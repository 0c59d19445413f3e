package tools

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"unicode/utf8"

	"github.com/google/jsonschema-go/jsonschema"

	"approvalbot/internal/language"
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
		Description: fmt.Sprintf("Read a text file of the workspace, as it is, without line numbers. Returns at most %d lines and %d KiB; use offset and limit for more. The last line, in brackets, is not part of the file: it says what is missing, and the file's version, which edit_file needs.", readLines, readBytes>>10),
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
	return jsonPreview(t.w.lang.Tf("Read %s", brief(a.Path)), a.Path, args)
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
	file, err := t.w.read(name)
	if err != nil {
		return Output{}, err
	}
	if !isText(file.content) {
		return Output{Text: fmt.Sprintf("[%s is %s of %s, so it isn't shown. Version %s.]", a.Path, binaryKind(file.content), bytesOf(len(file.content)), file.version())}, nil
	}
	return excerpt(a, file)
}

// Facts says which file it is about.
func (t *readFile) Facts(args json.RawMessage) Facts { return pathFacts(args) }

// pathFacts are the facts of a tool that is about one path of the workspace.
func pathFacts(args json.RawMessage) Facts {
	var a struct {
		Path string `json:"path"`
	}
	if json.Unmarshal(args, &a) != nil {
		return Facts{}
	}
	if a.Path == "" {
		return Facts{Path: "."}
	}
	name, err := cleanPath(a.Path)
	if err != nil {
		return Facts{}
	}
	return Facts{Path: name}
}

// isText tells whether a content can be shown to a model, and edited by one.
func isText(content []byte) bool { return utf8.Valid(content) && bytes.IndexByte(content, 0) < 0 }

// binaryKind says what a content that is no text is, as far as its first bytes
// tell.
func binaryKind(content []byte) string {
	kind, _, _ := strings.Cut(http.DetectContentType(content), ";")
	switch {
	case strings.HasPrefix(kind, "text/"):
		return "a file of text that is not UTF-8"
	case kind == "application/octet-stream":
		return "a binary file"
	}
	return "a file of type " + kind
}

// excerpt returns the lines that were asked for, as far as they fit, and a last
// line in brackets that says what is missing and which version this is.
func excerpt(a readFileArgs, file snapshot) (Output, error) {
	version := "Version " + file.version() + "."
	if len(file.content) == 0 {
		return Output{Text: "[The file is empty. " + version + "]"}, nil
	}
	lines := strings.SplitAfter(string(file.content), "\n")
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
		return Output{Text: fmt.Sprintf("%s\n[Line %d has %d bytes; this is its beginning. %s]", line, first, len(lines[first-1]), version), Truncated: true}, nil
	}
	last := endings(text.String()) + version + "]"
	if !strings.HasSuffix(text.String(), "\n") {
		text.WriteByte('\n')
	}
	switch {
	case next <= len(lines):
		fmt.Fprintf(&text, "[Lines %d to %d of %d; continue with offset %d. ", first, next-1, len(lines), next)
	case first > 1:
		fmt.Fprintf(&text, "[Lines %d to %d, the last. ", first, next-1)
	default:
		text.WriteByte('[')
	}
	return Output{Text: text.String() + last, Truncated: next <= len(lines)}, nil
}

// endings says what can't be seen of how the lines end, but has to be right in an
// edit.
func endings(text string) string {
	said := ""
	if strings.Contains(text, "\r\n") {
		said = `Lines end in \r\n. `
	}
	if !strings.HasSuffix(text, "\n") {
		said += "There is no line break after the last line. "
	}
	return said
}

type writeFile struct{ w *workspace }

type writeFileArgs struct {
	Path    string `json:"path"`
	Content string `json:"content"`
	Version string `json:"version"`
}

func (t *writeFile) Spec() Spec {
	return Spec{
		Name:        "write_file",
		Description: "Write a text file of the workspace, replacing it if it exists. Missing directories are created. Give version to replace exactly what was read, or \"none\" to create a file that isn't there yet. Prefer edit_file to change a part of a file.",
		InputSchema: object([]string{"path", "content"}, map[string]*jsonschema.Schema{
			"path":    pathSchema("Path of the file, relative to the workspace."),
			"content": {Type: "string", Description: "The whole new content."},
			"version": versionSchema(`Replace this version and no other, as read_file or a change printed it: sha256:…; "none": there may be no such file yet. Left out: whatever is there is replaced.`, `^(sha256:[0-9a-f]{32}|none)$`),
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
		Summary: t.w.lang.Tf("Write %s (%s)", brief(a.Path), t.w.lang.Count(len(a.Content), "byte", "bytes")),
		Target:  a.Path,
		Kind:    KindDiff,
		Body:    wholeFile(a.Content),
		Notes:   []string{writeNote(t.w.lang, a)},
	}
	return p, nil
}

// writeNote says what becomes of what is there.
func writeNote(l language.Language, a writeFileArgs) string {
	switch {
	case a.Version == absent && a.Content == "":
		return l.T("Creates a new, empty file; if there is one of that name, nothing is done.")
	case a.Version == absent:
		return l.T("Creates a new file with this content; if there is one of that name, nothing is done.")
	case a.Version != "" && a.Content == "":
		return l.Tf("Deletes the whole content of the file, in version %s and no other.", a.Version)
	case a.Version != "":
		return l.Tf("Replaces the whole file with this, in version %s and no other.", a.Version)
	case a.Content == "":
		return l.T("Creates an empty file, or deletes the content of what is there.")
	}
	return l.T("Creates a new file with this content, or replaces what is there.")
}

// Facts says which file it is about.
func (t *writeFile) Facts(args json.RawMessage) Facts { return pathFacts(args) }

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
	bound, err := t.w.bind(name, a.Version)
	if err != nil {
		return Output{}, err
	}
	content := []byte(a.Content)
	created, err := t.w.write(ctx, name, content, bound)
	if err != nil {
		return Output{}, err
	}
	did := "Replaced"
	if created {
		did = "Created"
	}
	return Output{Text: fmt.Sprintf("%s %s (%s). Version %s.", did, a.Path, bytesOf(len(content)), versionOf(content))}, nil
}

type editFile struct{ w *workspace }

type editFileArgs struct {
	Path       string `json:"path"`
	OldString  string `json:"old_string"`
	NewString  string `json:"new_string"`
	ReplaceAll bool   `json:"replace_all"`
	Version    string `json:"version"`
}

func (t *editFile) Spec() Spec {
	return Spec{
		Name:        "edit_file",
		Description: "Replace a piece of text in a file of the workspace that was read before. old_string has to occur exactly once, unless replace_all is set; include enough of the surrounding text. Each edit makes a new version, which it prints: of several edits of one file, each needs the version that the one before it printed.",
		InputSchema: object([]string{"path", "old_string", "new_string", "version"}, map[string]*jsonschema.Schema{
			"path":        pathSchema("Path of the file, relative to the workspace."),
			"old_string":  {Type: "string", Description: "The exact text to replace.", MinLength: ptr(1)},
			"new_string":  {Type: "string", Description: "The text to put in its place; empty to delete."},
			"replace_all": {Type: "boolean", Description: "Replace every occurrence."},
			"version":     versionSchema("The version that the edit is made for, as read_file or the change before printed it: sha256:…", `^sha256:[0-9a-f]{32}$`),
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
	l := t.w.lang
	p := Preview{
		Summary: l.Tf("Edit %s", brief(a.Path)),
		Target:  a.Path,
		Kind:    KindDiff,
		Body:    fragmentDiff(a.OldString, a.NewString),
		Notes:   []string{l.T("The text is replaced where it occurs, if it occurs exactly once."), l.Tf("Only if the file is still as the agent knows it (version %s).", a.Version)},
	}
	if a.ReplaceAll {
		p.Summary = l.Tf("Edit %s (every occurrence)", brief(a.Path))
		p.Notes[0] = l.T("The text is replaced everywhere in the file.")
	}
	return p, nil
}

// Facts says which file it is about.
func (t *editFile) Facts(args json.RawMessage) Facts { return pathFacts(args) }

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
	bound, err := t.w.bind(name, a.Version)
	if err != nil {
		return Output{}, err
	}
	text := string(bound.seen.content)
	if !isText(bound.seen.content) {
		return Output{}, errorf(CodeInvalidArguments, "%s is %s, which edit_file can't change.", a.Path, binaryKind(bound.seen.content))
	}
	n := strings.Count(text, a.OldString)
	switch {
	case n == 0:
		return Output{}, errorf(CodeNotFound, "old_string does not occur in %s%s", a.Path, notFoundHint(text, a.OldString))
	case n > 1 && !a.ReplaceAll:
		return Output{}, errorf(CodeInvalidArguments, "old_string occurs %d times in %s; include more of the surrounding text, or set replace_all.", n, a.Path)
	}
	if size := int64(len(text)) + int64(n)*int64(len(a.NewString)-len(a.OldString)); size > t.w.maxFile {
		return Output{}, errorf(CodeTooLarge, "%s would have %d bytes; %d is the most that can be written.", a.Path, size, t.w.maxFile)
	}
	content := []byte(strings.ReplaceAll(text, a.OldString, a.NewString))
	if _, err := t.w.write(ctx, name, content, bound); err != nil {
		return Output{}, err
	}
	did := "Edited " + a.Path
	if n > 1 {
		did += fmt.Sprintf(": %d occurrences replaced", n)
	}
	return Output{Text: did + ". Version " + versionOf(content) + "."}, nil
}

// notFoundHint ends the sentence that a text isn't there with the usual reason,
// if it is the reason.
func notFoundHint(text, old string) string {
	if strings.Contains(text, "\r\n") && strings.Contains(strings.ReplaceAll(text, "\r\n", "\n"), strings.ReplaceAll(old, "\r\n", "\n")) {
		return `: its lines end in \r\n; write them so.`
	}
	return " exactly as it is written; copy it from what read_file printed, blanks and all."
}
