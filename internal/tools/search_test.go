package tools

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"
	"testing"

	"github.com/bmatcuk/doublestar/v4"
	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
	"pgregory.net/rapid"
)

func TestSearchFiles(t *testing.T) {
	p := newPlace(t, Options{MaxFile: 200})
	for name, content := range map[string]string{
		"a.go":               "package a\n\nfunc A() {}\n",
		"src/b.go":           "one\r\ntwo FUNC\r\nthree\r\nfour\r\nfive func\r\n",
		"src/deep/c.txt":     "func\n",
		"src/deep/d.go":      "nothing",
		"bin":                "func\x00",
		"large.go":           strings.Repeat("func\n", 100),
		".git/config":        "func\n",
		"long.txt":           strings.Repeat("ä", 400) + "(x)" + "\n",
		"new\nline.md":       "func",
		".hidden/file.go":    "func\n",
		"node/.git/x.go":     "func\n",
		"brace/{odd} [n].go": "func{}\n",
	} {
		if len(content) > 200 && name != "large.go" {
			content = strings.Repeat("ä", 80) + "(x)\n"
		}
		p.put(filepath.Join(p.dir, name), content, 0o644)
	}
	p.must(os.Symlink("a.go", filepath.Join(p.dir, "link.go")))
	p.must(os.Symlink("src", filepath.Join(p.dir, "dirlink")))
	p.must(unix.Mkfifo(filepath.Join(p.dir, "fifo.go"), 0o644))

	for _, tt := range []struct {
		args members
		want string
	}{
		{members{"content": `^func\b`}, ".hidden/file.go\n1: func\n\na.go\n3: func A() {}\n\nbrace/{odd} [n].go\n1: func{}\n\n\"new\\nline.md\"\n1: func\n\nsrc/deep/c.txt\n1: func\n" +
			"[5 matching lines in 5 files. Not searched: 1 binary file, 1 file larger than 200 bytes.]"},
		{members{"content": "func", "ignore_case": true, "context": 1, "path": "src", "name": "*.go"},
			"b.go\n1- one\n2: two FUNC\n3- three\n4- four\n5: five func\n[2 matching lines in 1 file.]"},
		{members{"content": "FUNC|five", "path": "src/b.go"}, "src/b.go\n2: two FUNC\n5: five func\n[2 matching lines in 1 file.]"},
		{members{"content": "FUNC|five", "path": "src/b.go", "context": 1}, "src/b.go\n1- one\n2: two FUNC\n3- three\n4- four\n5: five func\n[2 matching lines in 1 file.]"},
		{members{"content": "one|five", "path": "src/b.go", "context": 1}, "src/b.go\n1: one\n2- two FUNC\n--\n4- four\n5: five func\n[2 matching lines in 1 file.]"},
		{members{"content": "{}", "literal": true}, "a.go\n3: func A() {}\n\nbrace/{odd} [n].go\n1: func{}\n[2 matching lines in 2 files. Not searched: 1 binary file, 1 file larger than 200 bytes.]"},
		{members{"name": "*.go", "path": "src"}, "b.go (39 bytes)\ndeep/d.go (7 bytes)\n[2 files.]"},
		{members{"name": "src/**/*.go"}, "src/b.go (39 bytes)\nsrc/deep/d.go (7 bytes)\n[2 files.]"},
		{members{"name": "src/*/*.{txt,go}"}, "src/deep/c.txt (5 bytes)\nsrc/deep/d.go (7 bytes)\n[2 files.]"},
		{members{"name": "config", "path": ".git"}, "config (5 bytes)\n[1 file.]"},
		{members{"name": "config"}, "[Nothing was found.]"},
		{members{"name": "*.go", "max_results": 2}, ".hidden/file.go (5 bytes)\na.go (23 bytes)\n[There are more; these are the first 2; narrow the search with path, name or content.]"},
		{members{"content": "func", "max_results": 1}, ".hidden/file.go\n1: func\n[There are more; these are the first 1; narrow the search with path, name or content.]"},
	} {
		if diff := cmp.Diff(tt.want, p.do("search_files", tt.args)); diff != "" {
			t.Errorf("%v (-want +got):\n%s", tt.args, diff)
		}
	}
	for _, tt := range []struct {
		args members
		code Code
		text string
	}{
		{members{}, CodeInvalidArguments, "name, content, or both"},
		{members{"content": "("}, CodeInvalidArguments, "set literal"},
		{members{"content": "(?=x)"}, CodeInvalidArguments, "set literal"},
		{members{"content": "a\nb", "literal": true}, CodeInvalidArguments, "line break"},
		{members{"name": "[a"}, CodeInvalidArguments, "not a glob"},
		{members{"name": strings.Repeat("{a,b}", 9)}, CodeInvalidArguments, "simpler"},
		{members{"name": "x", "path": "a.go"}, CodeInvalidArguments, "is a file"},
		{members{"name": "x", "path": "../outside"}, CodeNotAllowed, ".."},
		{members{"name": "x", "path": "none"}, CodeNotFound, "no none"},
		{members{"content": "x", "path": "fifo.go"}, CodeNotAllowed, "not a regular file"},
	} {
		p.refuse("search_files", tt.args, tt.code, tt.text)
	}
}

// Of a long line what is around the match is shown, and never half a character.
func TestAround(t *testing.T) {
	text := strings.Repeat("ä", 1000) + "match" + strings.Repeat("ö", 1000)
	got := around(text, []int{2000, 2005})
	if !strings.HasPrefix(got, "…ä") || !strings.HasSuffix(got, "ö…") || !strings.Contains(got, "match") || len([]rune(got)) != searchLine+1 {
		t.Errorf("got %q", got)
	}
	if got := around(text, nil); !strings.HasPrefix(got, "äää") || len([]rune(got)) != searchLine {
		t.Errorf("got %q", got)
	}
}

// What is the program's own isn't there: not by name, not by content, not by another name of the same file.
func TestSearchDoesNotSeeProtectedFiles(t *testing.T) {
	p := newPlace(t, Options{})
	for _, name := range []string{"journal/j.db", "conf/.env", "policy.yaml", "mcp.json"} {
		p.put(filepath.Join(p.dir, name), "needle\n", 0o600)
	}
	p.put(filepath.Join(p.dir, "mine"), "needle\n", 0o600)
	p.must(os.Link(filepath.Join(p.dir, "journal", "j.db"), filepath.Join(p.dir, "hard.db")))
	p.must(os.Link(filepath.Join(p.dir, "conf", ".env"), filepath.Join(p.dir, "hard.env")))
	b, err := OpenBuiltin(Options{Workspace: p.dir, Protected: []string{
		filepath.Join(p.dir, "journal"), filepath.Join(p.dir, "conf", ".env"), filepath.Join(p.dir, "policy.yaml"), filepath.Join(p.dir, "mcp.json"),
	}})
	p.must(err)
	t.Cleanup(func() { b.Close() })
	p.tools, err = NewSet(b.Tools()...)
	p.must(err)
	if got := p.do("search_files", members{"content": "needle"}); got != "mine\n1: needle\n[1 matching line in 1 file.]" {
		t.Errorf("got %q", got)
	}
	if got := p.do("search_files", members{"name": "**/*"}); got != "mine (7 bytes)\n[1 file.]" {
		t.Errorf("got %q", got)
	}
	for _, path := range []string{"journal", "policy.yaml", "conf/.env", "hard.db", "hard.env"} {
		p.refuse("search_files", members{"content": "needle", "path": path}, CodeNotAllowed, "belongs to approvalbot itself")
	}
}

func TestSearchIsStopped(t *testing.T) {
	p := newPlace(t, Options{})
	p.put(filepath.Join(p.dir, "a"), "x", 0o644)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := p.call(ctx, "search_files", members{"content": "x"})
	wantCode(t, err, CodeAborted)
}

// RE2 is linear in the text, but as slow as the expression is long, and reading asks nobody: what would take for ever isn't
// begun, and what takes long can be stopped in the middle of a line.
func TestSearchIsBearable(t *testing.T) {
	p := newPlace(t, Options{})
	for expr, want := range map[string]int{
		"abc": 4, "a|b": 1, "(ab|c){3}": 14, "a{2,5}": 6, "(.{1,30}){1,30}x": searchSteps + 1,
		"(?:[a-z]{0,31}[0-9]){30}x": 965, "((a{100}){5}){2}": searchSteps + 1, strings.Repeat("a?", 400): 801,
	} {
		tree, err := syntax.Parse(expr, syntax.Perl)
		p.must(err)
		if got := steps(tree); got < want-want/5-3 || got > want+want/5+3 {
			t.Errorf("%s: %d steps, want about %d", expr, got, want)
		}
	}
	p.refuse("search_files", members{"content": "((a?){100}){10}"}, CodeInvalidArguments, "too complex")

	p.put(filepath.Join(p.dir, "long"), strings.Repeat("a", 1<<20)+"é needle\nb\n", 0o644)
	if got := p.do("search_files", members{"content": "needl.$"}); !strings.Contains(got, "1: …") || !strings.HasSuffix(got, "aé needle\n[1 matching line in 1 file.]") {
		t.Errorf("got %q", got)
	}
	ctx := &endsAfterLooks{t.Context(), 1000}
	_, err := p.call(ctx, "search_files", members{"content": "(a?){200}b"})
	wantCode(t, err, CodeAborted)
}

// endsAfterLooks is a context that has ended when it was looked at so often.
type endsAfterLooks struct {
	context.Context
	left int
}

func (c *endsAfterLooks) Err() error {
	if c.left--; c.left < 0 {
		return context.Canceled
	}
	return c.Context.Err()
}

// A search finds what a simple one finds, in the same order.
func TestSearchAgainstASimpleOne(t *testing.T) {
	names := rapid.SampledFrom([]string{"a", "b.go", "c.txt", "d", "ä.go", ".e"})
	text := rapid.StringOf(rapid.SampledFrom([]rune("ab \n")))
	rapid.Check(t, func(rt *rapid.T) {
		dir, err := os.MkdirTemp(t.TempDir(), "")
		if err != nil {
			rt.Fatal(err)
		}
		for range rapid.IntRange(0, 12).Draw(rt, "files") {
			parts := rapid.SliceOfN(names, 1, 4).Draw(rt, "path")
			file := filepath.Join(append([]string{dir}, parts...)...)
			if os.MkdirAll(filepath.Dir(file), 0o755) == nil { // else a file is in the way
				_ = os.WriteFile(file, []byte(text.Draw(rt, "content")), 0o644) // or a directory
			}
		}
		w, err := openWorkspace(dir, nil, defaultMaxFile)
		if err != nil {
			rt.Fatal(err)
		}
		defer w.root.Close()
		tool := &searchFiles{w}
		glob := rapid.SampledFrom([]string{"*", "*.go", "b*/**", "**/*.go", "a/*", "{a,d}", "[a-c]*"}).Draw(rt, "glob")
		pattern := rapid.SampledFrom([]string{"a", "^a", "b$", "^$", "a.*b", " "}).Draw(rt, "pattern")
		out, err := tool.Call(rt.Context(), arguments(t, tool, members{"name": glob, "content": pattern, "max_results": searchMost}))
		if err != nil {
			rt.Fatal(err)
		}
		want := simpleSearch(rt, dir, glob, regexp.MustCompile(pattern))
		lines := strings.Split(out.Text, "\n")
		got := slices.DeleteFunc(lines[:len(lines)-1], func(l string) bool { return l == "" })
		if diff := cmp.Diff(want, got); diff != "" {
			rt.Fatalf("%s %s (-want +got):\n%s", glob, pattern, diff)
		}
	})
}

func simpleSearch(t *rapid.T, dir, glob string, pattern *regexp.Regexp) []string {
	want := []string{}
	err := filepath.WalkDir(dir, func(file string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		rel, _ := filepath.Rel(dir, file)
		against := rel
		if !strings.Contains(glob, "/") {
			against = filepath.Base(rel)
		}
		if ok, _ := doublestar.Match(glob, against); !ok {
			return nil
		}
		content, err := os.ReadFile(file)
		if err != nil || len(content) == 0 {
			return err
		}
		heading := false
		for i, l := range strings.Split(strings.TrimSuffix(string(content), "\n"), "\n") {
			if pattern.MatchString(l) {
				if !heading {
					want, heading = append(want, rel), true
				}
				want = append(want, fmt.Sprintf("%d: %s", i+1, l))
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return want
}

// Whatever glob is accepted is matched in bearable time.
func FuzzGlob(f *testing.F) {
	f.Add("{,a}{,a}{,a}{,a}{,a}{,a}{,a}{,a}b", strings.Repeat("a", 50))
	f.Add("**/a/**/b/**/c/**", "a/b/c/a/b/c/a/b/c")
	f.Add("*a*a*a*a*a*b", strings.Repeat("a", 200))
	f.Add("[a-", "a")
	f.Fuzz(func(t *testing.T, glob, name string) {
		if checkGlob(glob) != nil || glob == "" || len(glob) > 100 || len(name) > 200 {
			return
		}
		if _, err := doublestar.Match(glob, name); err != nil {
			t.Errorf("%q was accepted, and matching says %v", glob, err)
		}
	})
}
