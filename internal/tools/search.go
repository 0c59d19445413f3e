package tools

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"path/filepath"
	"regexp"
	"regexp/syntax"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/bmatcuk/doublestar/v4"
	"github.com/google/jsonschema-go/jsonschema"
)

// Limits of search_files. None is a time, so the same files give the same answer.
const (
	searchResults    = 100       // unless the call says otherwise
	searchMost       = 1000      // of results that a call may ask for
	searchContext    = 10        // lines around a match, at most
	searchText       = 64 << 10  // bytes of an answer
	searchVisits     = 100_000   // entries of directories that are looked at
	searchRead       = 256 << 20 // bytes of content that are looked through
	searchLine       = 300       // characters of a line that are shown
	searchPattern    = 1000      // characters of a pattern
	searchSteps      = 1000      // of an expression, its repetitions written out: it can take as many for each character
	searchWork       = 1 << 33   // steps, at most; a long expression gets through less than searchRead
	searchWhole      = 4 << 10   // bytes of a line that is matched without looking up; longer ones can be stopped in the middle
	searchBraces     = 4         // of a glob; its alternatives multiply,
	searchCommas     = 40        // and here they are counted
	searchDoubleStar = 4         // these multiply, too
)

// search_files finds files by their name, and lines by what they say. It reads
// everything as it walks, so it sees what read_file would see: regular files that
// aren't the program's own. It follows no links.
type searchFiles struct{ w *workspace }

type searchFilesArgs struct {
	Path       string `json:"path"`
	Name       string `json:"name"`
	Content    string `json:"content"`
	Literal    bool   `json:"literal"`
	IgnoreCase bool   `json:"ignore_case"`
	Context    count  `json:"context"`
	MaxResults count  `json:"max_results"`

	clean string         // Path, checked
	line  *regexp.Regexp // Content; nil: only names are asked for
	steps int            // that line can take for each character
}

func (t *searchFiles) Spec() Spec {
	return Spec{
		Name: "search_files",
		Description: "Find files of the workspace by name, lines in them by content, or lines in the files of some name. " +
			"Prints the files with their sizes or, with content, the matching lines with their numbers (12: a match, 13- a line beside one). " +
			"Binary files, files too large to read, links and .git are left out.",
		InputSchema: object(nil, map[string]*jsonschema.Schema{
			"path":        pathSchema("Directory or file to search, relative to the workspace; the workspace itself if left out."),
			"name":        {Type: "string", Description: "Which files: a glob with *, ?, [a-z], {a,b} and ** for any number of directories. Without a slash it is matched against the name alone, in every directory (*.go); with one, against the path below the searched directory (src/**/*.go).", MinLength: ptr(1), MaxLength: ptr(searchPattern)},
			"content":     {Type: "string", Description: "A regular expression (RE2), looked for in each line.", MinLength: ptr(1), MaxLength: ptr(searchPattern)},
			"literal":     {Type: "boolean", Description: "Take content as plain text, not as a regular expression."},
			"ignore_case": {Type: "boolean", Description: "Upper and lower case are the same, in content."},
			"context":     intSchema("How many lines to show before and after each match.", 0, searchContext),
			"max_results": intSchema(fmt.Sprintf("The most matching lines, or files, to show; %d if left out.", searchResults), 1, searchMost),
		}),
		Annotations: reading("Search files"),
	}
}

func (t *searchFiles) parse(args json.RawMessage) (a searchFilesArgs, err error) {
	if err := decode(t.Spec(), args, &a); err != nil {
		return a, err
	}
	if a.Path == "" {
		a.Path = "."
	}
	if a.MaxResults == 0 {
		a.MaxResults = searchResults
	}
	if a.clean, err = cleanPath(a.Path); err != nil {
		return a, err
	}
	if a.Name == "" && a.Content == "" {
		return a, errorf(CodeInvalidArguments, "Give name, content, or both; list_files lists everything.")
	}
	if err := checkGlob(a.Name); err != nil {
		return a, err
	}
	err = a.pattern()
	return a, err
}

// checkGlob refuses what is no glob, and what takes for ever to match.
func checkGlob(glob string) error {
	switch {
	case glob == "":
		return nil
	case !doublestar.ValidatePattern(glob):
		return errorf(CodeInvalidArguments, "%q is not a glob: every [ and { needs its end, and a \\ something after it.", glob)
	case strings.Count(glob, "{") > searchBraces || strings.Count(glob, ",") > searchCommas || strings.Count(glob, "**") > searchDoubleStar:
		return errorf(CodeInvalidArguments, "The glob has more than %d {, %d commas or %d **; use a simpler one.", searchBraces, searchCommas, searchDoubleStar)
	}
	return nil
}

// pattern works out what a line has to match, unless only names are asked for.
func (a *searchFilesArgs) pattern() error {
	switch {
	case a.Content == "":
		return nil
	case strings.ContainsAny(a.Content, "\r\n"):
		return errorf(CodeInvalidArguments, "content has a line break, and each line is searched by itself; search for one of the lines.")
	}
	expr := a.Content
	if a.Literal {
		expr = regexp.QuoteMeta(expr)
	}
	if a.IgnoreCase {
		expr = "(?i:" + expr + ")"
	}
	tree, err := syntax.Parse(expr, syntax.Perl)
	if err == nil {
		if a.steps = steps(tree); a.steps > searchSteps {
			return errorf(CodeInvalidArguments, "content is too complex a regular expression: with its repetitions written out it has more than %d parts. Use a simpler one.", searchSteps)
		}
		a.line, err = regexp.Compile(expr)
	}
	if err != nil {
		return errorf(CodeInvalidArguments, "content is not a regular expression as RE2 knows them (%s); for plain text set literal.",
			reason(errors.New(strings.TrimPrefix(err.Error(), "error parsing regexp: "))))
	}
	if _, plain := a.line.LiteralPrefix(); plain {
		a.steps = 1
	}
	return nil
}

// steps is about how many a matcher can have to take for one character: RE2 tries all ways through an expression at once,
// and each is as long as the expression with its repetitions written out. It stops counting where it is too many.
func steps(re *syntax.Regexp) int {
	n := 1
	if re.Op == syntax.OpLiteral {
		n = len(re.Rune)
	}
	for _, sub := range re.Sub {
		n = min(n+steps(sub), searchSteps+1)
	}
	if re.Op == syntax.OpRepeat {
		n *= max(re.Min, re.Max, 1)
	}
	return min(n, searchSteps+1)
}

func (t *searchFiles) Describe(args json.RawMessage) (Preview, error) {
	a, err := t.parse(args)
	if err != nil {
		return Preview{}, err
	}
	l, where := t.w.lang, brief(a.Path)
	if where == "." {
		where = l.T("the workspace")
	}
	summary := l.Tf("Search %s", where)
	switch {
	case a.Content != "" && a.Name != "":
		summary = l.Tf("Search %s for %s in files named %s", where, brief(a.Content), brief(a.Name))
	case a.Content != "":
		summary = l.Tf("Search %s for %s", where, brief(a.Content))
	case a.Name != "":
		summary = l.Tf("Search %s in files named %s", where, brief(a.Name))
	}
	return jsonPreview(summary, a.Path, args)
}

// Facts says which file or directory it is about.
func (t *searchFiles) Facts(args json.RawMessage) Facts { return pathFacts(args) }

func (t *searchFiles) Call(ctx context.Context, args json.RawMessage) (Output, error) {
	a, err := t.parse(args)
	if err != nil {
		return Output{}, err
	}
	s := search{searchFilesArgs: a, w: t.w, look: t.w.protected.look(), git: slices.Contains(strings.Split(a.clean, "/"), ".git")}
	f, info, err := t.w.openIn(s.look, a.clean)
	if err != nil {
		return Output{}, err
	}
	f.Close()
	switch {
	case info.IsDir():
		err = s.directory(ctx, a.clean, "", 0)
	case a.line == nil:
		return Output{}, errorf(CodeInvalidArguments, "%s is a file; give content to search in it, or a directory to search for names.", a.Path)
	default:
		err = s.file(ctx, a.clean, a.Path)
	}
	if err != nil && !errors.Is(err, errEnough) {
		return Output{}, err
	}
	return s.answer(), nil
}

// errEnough ends a search that has found, or looked at, as much as it may.
var errEnough = errors.New("enough")

// A search is one call under way.
type search struct {
	searchFilesArgs
	w    *workspace
	look *look
	git  bool // the search began inside of .git, so that is what is wanted

	out    strings.Builder
	found  int // matching lines, or files
	files  int // with a match in them
	visits int
	read   int64
	limit  string // which limit ended it; empty: none

	binary, large, unreadable int // files that were left out
	withheld                  int // because a rule keeps them from this call
}

// directory searches one directory; rel is its path below the one that was asked
// for. An error of its own in a directory below is no reason to end.
func (s *search) directory(ctx context.Context, name, rel string, depth int) error {
	entries, real, err := s.entries(name)
	if err != nil {
		return s.unless(rel == "", err)
	}
	for _, entry := range entries {
		if ctx.Err() != nil {
			return s.stopped()
		}
		if s.visits++; s.visits > searchVisits {
			s.limit = fmt.Sprintf("Only the first %d entries were looked at", searchVisits)
			return errEnough
		}
		below, shown := path.Join(name, entry.Name()), path.Join(rel, entry.Name())
		switch {
		case s.hidden(entry, filepath.Join(real, entry.Name())):
		case entry.IsDir() && (entry.Name() != ".git" || s.git) && depth < listDepth:
			err = s.directory(ctx, below, shown, depth+1)
		case entry.Type().IsRegular() && s.named(shown):
			err = s.entry(ctx, entry, below, shown)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// hidden tells whether an entry is the program's own: that isn't there, as far as
// a search goes.
func (s *search) hidden(entry fs.DirEntry, real string) bool {
	if s.look.covers(real) {
		return true
	}
	if !entry.Type().IsRegular() {
		return false
	}
	info, err := entry.Info()
	return err != nil || linkCount(info) > 1 && s.look.links(info)
}

// unless returns an error that has to be told. Otherwise it counts one that only
// means that something can't be looked at.
func (s *search) unless(tell bool, err error) error {
	var own *Error
	if tell || !errors.As(err, &own) || own.Code == CodeAborted {
		return err
	}
	s.unreadable++
	return nil
}

// entries are those of a directory, by name, and the directory's real path.
func (s *search) entries(name string) ([]fs.DirEntry, string, error) {
	f, _, err := s.w.openIn(s.look, name)
	if err != nil {
		return nil, "", err
	}
	defer f.Close()
	real, err := realPath(f)
	if err != nil {
		return nil, "", fileError(name, err)
	}
	entries, err := f.ReadDir(searchVisits + 1)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, "", fileError(name, err)
	}
	slices.SortFunc(entries, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	return entries, real, nil
}

// named tells whether the glob is for this file.
func (s *search) named(rel string) bool {
	switch {
	case s.Name == "":
		return true
	case strings.Contains(s.Name, "/"):
		return doublestar.MatchUnvalidated(s.Name, rel)
	}
	return doublestar.MatchUnvalidated(s.Name, path.Base(rel))
}

// entry takes in a file whose name fits.
func (s *search) entry(ctx context.Context, entry fs.DirEntry, name, shown string) error {
	if CallerOf(ctx).withheld(name) {
		s.withheld++
		return nil
	}
	if s.line != nil {
		return s.unless(false, s.file(ctx, name, shown))
	}
	if err := s.count(); err != nil {
		return err
	}
	s.files++
	s.out.WriteString(line(shown, entry) + "\n")
	return nil
}

// count takes in a result, unless it is one too many.
func (s *search) count() error {
	switch {
	case s.found == int(s.MaxResults):
		s.limit = fmt.Sprintf("There are more; these are the first %d", s.found)
	case s.out.Len() > searchText:
		s.limit = "There are more than fit here"
	default:
		s.found++
		return nil
	}
	return errEnough
}

// file searches the lines of one file.
func (s *search) file(ctx context.Context, name, shown string) error {
	if CallerOf(ctx).withheld(name) {
		return errorf(CodeNotAllowed, "A rule of the operator keeps %s from being read.", shown)
	}
	lines, err := s.lines(ctx, name)
	if err != nil || lines == nil {
		return err
	}
	last := -1 // the last line that was written
	for i, text := range lines {
		if !s.match(ctx, text) {
			if ctx.Err() != nil {
				return s.stopped()
			}
			continue
		}
		if err := s.count(); err != nil {
			return err
		}
		if last < 0 {
			s.files++
			s.heading(shown)
		}
		first := max(i-int(s.Context), last+1)
		if s.Context > 0 && last >= 0 && first > last+1 {
			s.out.WriteString("--\n")
		}
		for ; first < i; first++ {
			s.write(first, "-", lines[first], nil)
		}
		if last < i { // else it was written as a neighbour
			s.write(i, ":", text, s.where(ctx, text))
		}
		last = max(last, i)
		for last < min(i+int(s.Context), len(lines)-1) && !s.match(ctx, lines[last+1]) {
			last++
			s.write(last, "-", lines[last], nil)
		}
	}
	return nil
}

// match tells whether a line matches; it doesn't if the search is stopped meanwhile.
func (s *search) match(ctx context.Context, text string) bool {
	if len(text) <= searchWhole {
		return ctx.Err() == nil && s.line.MatchString(text)
	}
	return s.line.MatchReader(&stoppable{ctx, strings.NewReader(text)}) && ctx.Err() == nil
}

// where is the place of the match in a line that matches.
func (s *search) where(ctx context.Context, text string) []int {
	if len(text) <= searchWhole {
		return s.line.FindStringIndex(text)
	}
	return s.line.FindReaderIndex(&stoppable{ctx, strings.NewReader(text)})
}

// stoppable is a text that ends when its context does.
type stoppable struct {
	ctx  context.Context
	text *strings.Reader
}

func (r *stoppable) ReadRune() (rune, int, error) {
	if r.ctx.Err() != nil {
		return 0, 0, io.EOF
	}
	return r.text.ReadRune()
}

func (s *search) stopped() error { return errorf(CodeAborted, "Stopped while searching %s.", s.Path) }

// most is how many bytes of content are looked through.
func (s *search) most() int64 { return min(searchRead, searchWork/int64(s.steps)) }

// lines reads a file for searching; nil if it is none to search.
func (s *search) lines(ctx context.Context, name string) ([]string, error) {
	if ctx.Err() != nil {
		return nil, s.stopped()
	}
	file, err := s.w.readIn(s.look, name)
	var own *Error
	switch {
	case errors.As(err, &own) && own.Code == CodeTooLarge:
		s.large++
		return nil, nil
	case err != nil:
		return nil, err
	case !isText(file.content):
		s.binary++
		return nil, nil
	}
	if s.read += int64(len(file.content)); s.read > s.most() {
		s.limit = fmt.Sprintf("Only the first %d MiB were looked through", s.most()>>20)
		return nil, errEnough
	}
	lines := strings.Split(string(file.content), "\n")
	if lines[len(lines)-1] == "" {
		lines = lines[:len(lines)-1]
	}
	for i := range lines {
		lines[i] = strings.TrimSuffix(lines[i], "\r")
	}
	return lines, nil
}

func (s *search) heading(shown string) {
	if s.out.Len() > 0 {
		s.out.WriteByte('\n')
	}
	s.out.WriteString(quoteName(shown) + "\n")
}

// write prints a line of a file; of a long one, what is around the match.
func (s *search) write(i int, mark, text string, match []int) {
	s.out.WriteString(strconv.Itoa(i+1) + mark + " " + around(text, match) + "\n")
}

// around is a line, or as much of it as is shown: its beginning, or what begins
// a little before the match.
func around(text string, match []int) string {
	if utf8.RuneCountInString(text) <= searchLine {
		return text
	}
	before := ""
	if match != nil {
		skip := utf8.RuneCountInString(text[:match[0]]) - searchLine/4
		if skip > 0 {
			before = cutMark
			text = string([]rune(text)[skip:])
		}
	}
	return before + shorten(text, searchLine)
}

// answer is what was found, and a last line that says how much of what there is
// that is.
func (s *search) answer() Output {
	var said []string
	switch {
	case s.limit != "":
		said = append(said, s.limit+"; narrow the search with path, name or content.")
	case s.found == 0:
		said = append(said, "Nothing was found.")
	case s.line == nil:
		said = append(said, plural(s.found, "file")+".")
	default:
		said = append(said, plural(s.found, "matching line")+" in "+plural(s.files, "file")+".")
	}
	var left []string
	for _, l := range []struct {
		n    int
		what string
	}{{s.binary, "binary file"}, {s.large, "file"}, {s.unreadable, "entry"}} {
		switch {
		case l.n == 0:
		case l.what == "file":
			left = append(left, fmt.Sprintf("%s larger than %d bytes", plural(l.n, l.what), s.w.maxFile))
		case l.what == "entry":
			left = append(left, fmt.Sprintf("%d that can't be read", l.n))
		default:
			left = append(left, plural(l.n, l.what))
		}
	}
	if s.withheld > 0 {
		left = append(left, plural(s.withheld, "file")+" that a rule of the operator keeps from this call")
	}
	if len(left) > 0 {
		said = append(said, "Not searched: "+strings.Join(left, ", ")+".")
	}
	s.out.WriteString("[" + strings.Join(said, " ") + "]")
	return Output{Text: s.out.String(), Truncated: s.limit != ""}
}

// plural is a number of things; an s makes many of one.
func plural(n int, one string) string {
	if n == 1 {
		return "1 " + one
	}
	return strconv.Itoa(n) + " " + one + "s"
}
