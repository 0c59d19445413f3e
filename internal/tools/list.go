package tools

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"
)

// Limits of list_files: what a model gets, and what is read of one directory in
// order to sort it.
const (
	listEntries = 1000
	listScan    = 20000
	listDepth   = 100
)

type listFiles struct{ w *workspace }

type listFilesArgs struct {
	Path      string `json:"path"`
	Recursive bool   `json:"recursive"`
	Depth     count  `json:"depth"` // levels; 0: as recursive says
}

// levels is how many levels of directories are listed.
func (a listFilesArgs) levels() int {
	switch {
	case a.Depth > 0:
		return int(a.Depth)
	case a.Recursive:
		return listDepth
	}
	return 1
}

func (t *listFiles) Spec() Spec {
	return Spec{
		Name:        "list_files",
		Description: fmt.Sprintf("List a directory of the workspace, sorted by name, with sizes; directories end in '/'. Returns at most %d entries. A list of more than one level doesn't go into .git.", listEntries),
		InputSchema: object(nil, map[string]*jsonschema.Schema{
			"path":      pathSchema("Path of the directory, relative to the workspace; the workspace itself if left out."),
			"recursive": {Type: "boolean", Description: "List the directories below, too."},
			"depth":     intSchema("How many levels to list: 1 is the directory itself, 2 also what its directories hold. Left out: 1, or all if recursive.", 1, listDepth),
		}),
		Annotations: reading("List files"),
	}
}

func (t *listFiles) parse(args json.RawMessage) (a listFilesArgs, err error) {
	if err := decode(t.Spec(), args, &a); err != nil {
		return a, err
	}
	if a.Path == "" {
		a.Path = "."
	}
	_, err = cleanPath(a.Path)
	return a, err
}

func (t *listFiles) Describe(args json.RawMessage) (Preview, error) {
	a, err := t.parse(args)
	if err != nil {
		return Preview{}, err
	}
	l, what := t.w.lang, brief(a.Path)
	if what == "." {
		what = l.T("the workspace")
	}
	summary := l.Tf("List %s", what)
	switch {
	case a.Depth > 1:
		summary = l.Tf("List %s and what is below it, %d levels", what, a.Depth)
	case a.levels() > 1:
		summary = l.Tf("List %s and all below it", what)
	}
	return jsonPreview(summary, a.Path, args)
}

// Facts says which directory it is about.
func (t *listFiles) Facts(args json.RawMessage) Facts { return pathFacts(args) }

func (t *listFiles) Call(ctx context.Context, args json.RawMessage) (Output, error) {
	a, err := t.parse(args)
	if err != nil {
		return Output{}, err
	}
	name, err := cleanPath(a.Path)
	if err != nil {
		return Output{}, err
	}
	l := listing{w: t.w}
	if err := l.directory(ctx, name, "", a.levels()); err != nil {
		return Output{}, err
	}
	if len(l.lines) == 0 {
		return Output{Text: "[The directory is empty.]"}, nil
	}
	if l.more {
		l.lines = append(l.lines, "[There is more; list a directory below, or use a more specific path.]")
	}
	return Output{Text: strings.Join(l.lines, "\n"), Truncated: l.more}, nil
}

// listing collects the lines of one call.
type listing struct {
	w     *workspace
	lines []string
	more  bool
}

// directory adds the entries of one directory and of as many levels of those
// below it; prefix is its name relative to the directory that was asked for.
func (l *listing) directory(ctx context.Context, name, prefix string, levels int) error {
	entries, err := l.read(name)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		if ctx.Err() != nil {
			return errorf(CodeAborted, "Stopped while listing %s.", name)
		}
		if len(l.lines) == listEntries {
			l.more = true
			return nil
		}
		shown := path.Join(prefix, entry.Name())
		l.lines = append(l.lines, line(shown, entry))
		if levels > 1 && entry.IsDir() && entry.Name() != ".git" {
			if err := l.below(ctx, path.Join(name, entry.Name()), shown, levels-1); err != nil {
				return err
			}
		}
	}
	return nil
}

// below lists a directory inside the one asked for. One that can't be read is
// said to be so in its place: the rest is still worth having.
func (l *listing) below(ctx context.Context, name, shown string, levels int) error {
	err := l.directory(ctx, name, shown, levels)
	var own *Error
	if errors.As(err, &own) && own.Code != CodeAborted {
		l.lines = append(l.lines, fmt.Sprintf("[%s]", own.Message))
		return nil
	}
	return err
}

func (l *listing) read(name string) ([]fs.DirEntry, error) {
	f, info, err := l.w.open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if !info.IsDir() {
		return nil, errorf(CodeInvalidArguments, "%s is not a directory.", name)
	}
	entries, err := f.ReadDir(listScan)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, fileError(name, err)
	}
	if len(entries) == listScan {
		l.more = true
	}
	slices.SortFunc(entries, func(a, b fs.DirEntry) int { return cmp.Compare(a.Name(), b.Name()) })
	return entries, nil
}

// line is one entry for the model: the name, quoted if it could be mistaken for
// more than a name, and what it is.
func line(shown string, entry fs.DirEntry) string {
	shown = quoteName(shown)
	switch {
	case entry.IsDir():
		return shown + "/"
	case entry.Type()&fs.ModeSymlink != 0:
		return shown + " (link)"
	case !entry.Type().IsRegular():
		return shown + " (special file)"
	}
	info, err := entry.Info()
	if err != nil {
		return shown // gone meanwhile
	}
	return fmt.Sprintf("%s (%s)", shown, bytesOf(int(info.Size())))
}

// quoteName is a path for a line of its own, quoted if it could be mistaken for
// more than that.
func quoteName(shown string) string {
	if hasControl(shown) || strings.HasPrefix(shown, "[") {
		return strconv.Quote(shown)
	}
	return shown
}
