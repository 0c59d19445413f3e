package tools

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
)

// anyVersion is well-formed and no file's.
const anyVersion = "sha256:00000000000000000000000000000000"

// place is a workspace beside other directories, and its tools.
type place struct {
	*testing.T
	dir   string // of the workspace
	out   string // a directory outside
	tools *Set
}

func newPlace(t *testing.T, o Options) *place {
	t.Helper()
	base := t.TempDir()
	p := &place{T: t, dir: filepath.Join(base, "workspace"), out: filepath.Join(base, "outside")}
	for _, dir := range []string{p.dir, p.out} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	o.Workspace = p.dir
	b, err := OpenBuiltin(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.Close() })
	if p.tools, err = NewSet(b.Tools()...); err != nil {
		t.Fatal(err)
	}
	return p
}

func (p *place) call(ctx context.Context, name string, args members) (Output, error) {
	p.Helper()
	tool, ok := p.tools.Get(name)
	if !ok {
		p.Fatalf("there is no tool %s", name)
	}
	return tool.Call(ctx, arguments(p, tool, args))
}

// do calls a tool that has to succeed and returns its text.
func (p *place) do(name string, args members) string {
	p.Helper()
	out, err := p.call(p.Context(), name, args)
	if err != nil {
		p.Fatalf("%s %v: %v", name, args, err)
	}
	return out.Text
}

// refuse calls a tool that has to fail with the code and a message that
// contains the text.
func (p *place) refuse(name string, args members, code Code, text string) {
	p.Helper()
	_, err := p.call(p.Context(), name, args)
	if e := wantCode(p.T, err, code); !strings.Contains(e.Message, text) {
		p.Errorf("%s %v: got %q, want a message with %q", name, args, e.Message, text)
	}
}

func (p *place) put(name, content string, mode os.FileMode) {
	p.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		p.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
		p.Fatal(err)
	}
	if err := os.Chmod(name, mode); err != nil {
		p.Fatal(err)
	}
}

func (p *place) content(name string) string {
	p.Helper()
	b, err := os.ReadFile(name)
	if err != nil {
		p.Fatal(err)
	}
	return string(b)
}

func (p *place) must(err error) {
	p.Helper()
	if err != nil {
		p.Fatal(err)
	}
}

func TestWriteReadEditList(t *testing.T) {
	p := newPlace(t, Options{})
	if got := p.do("write_file", members{"path": "sub/dir/a.txt", "content": "one\ntwo\n"}); got != "Created sub/dir/a.txt (8 bytes). Version "+versionOf([]byte("one\ntwo\n"))+"." {
		t.Errorf("got %q", got)
	}
	if got := p.do("read_file", members{"path": "sub/dir/a.txt"}); got != "one\ntwo\n[Version "+versionOf([]byte("one\ntwo\n"))+".]" {
		t.Errorf("got %q", got)
	}
	if got := p.do("edit_file", members{"path": "sub/dir/a.txt", "old_string": "two", "new_string": "2", "version": versionOf([]byte("one\ntwo\n"))}); got != "Edited sub/dir/a.txt. Version "+versionOf([]byte("one\n2\n"))+"." {
		t.Errorf("got %q", got)
	}
	if got := p.do("write_file", members{"path": "./b.txt", "content": ""}); got != "Created ./b.txt (0 bytes). Version "+versionOf(nil)+"." {
		t.Errorf("got %q", got)
	}
	if got := p.do("list_files", members{}); got != "b.txt (0 bytes)\nsub/" {
		t.Errorf("got %q", got)
	}
	if got := p.do("list_files", members{"recursive": true}); got != "b.txt (0 bytes)\nsub/\nsub/dir/\nsub/dir/a.txt (6 bytes)" {
		t.Errorf("got %q", got)
	}
	if got := p.do("list_files", members{"depth": 2}); got != "b.txt (0 bytes)\nsub/\nsub/dir/" {
		t.Errorf("got %q", got)
	}
	if got := p.do("read_file", members{"path": "b.txt"}); got != "[The file is empty. Version "+versionOf(nil)+".]" {
		t.Errorf("got %q", got)
	}
	if got := p.content(filepath.Join(p.dir, "sub/dir/a.txt")); got != "one\n2\n" {
		t.Errorf("the file is %q", got)
	}
}

func TestReadFileInParts(t *testing.T) {
	p := newPlace(t, Options{})
	var all strings.Builder
	for i := range 3000 {
		fmt.Fprintf(&all, "line %d\n", i+1)
	}
	p.put(filepath.Join(p.dir, "a"), all.String(), 0o644)
	text := p.do("read_file", members{"path": "a"})
	if want := "\nline 2000\n[Lines 1 to 2000 of 3000; continue with offset 2001. Version " + versionOf([]byte(all.String())) + ".]"; !strings.HasSuffix(text, want) {
		t.Errorf("it ends in %q", text[len(text)-80:])
	}
	// Whole numbers, however a model writes them.
	tool, _ := p.tools.Get("read_file")
	args, err := ParseArguments(tool.Spec(), []byte(`{"path":"a","offset":2.999e3,"limit":5.0}`))
	p.must(err)
	out, err := tool.Call(t.Context(), args)
	p.must(err)
	if !strings.HasPrefix(out.Text, "line 2999\nline 3000\n[Lines 2999 to 3000, the last. Version ") || out.Truncated {
		t.Errorf("got %+v", out)
	}
	p.refuse("read_file", members{"path": "a", "offset": 3001}, CodeInvalidArguments, "only 3000 lines")

	p.put(filepath.Join(p.dir, "long"), strings.Repeat("ä", readBytes)+"\nend\n", 0o644)
	text = p.do("read_file", members{"path": "long"})
	if !strings.HasPrefix(text, "ää") || !strings.HasSuffix(text, "ä\n[Line 1 has 131073 bytes; this is its beginning. Version "+versionOf([]byte(strings.Repeat("ä", readBytes)+"\nend\n"))+".]") || strings.Contains(text, "\uFFFD") {
		t.Errorf("a long line ends in %q", text[len(text)-80:])
	}
	for content, want := range map[string]string{
		"a\x00b":                "[x is a binary file of 3 bytes, so it isn't shown. Version ",
		"\x89PNG\r\n\x1a\n\x00": "[x is a file of type image/png of 9 bytes",
		"caf\xe9":               "[x is a file of text that is not UTF-8 of 4 bytes",
	} {
		p.put(filepath.Join(p.dir, "x"), content, 0o644)
		if got := p.do("read_file", members{"path": "x"}); !strings.HasPrefix(got, want) || !strings.HasSuffix(got, versionOf([]byte(content))+".]") {
			t.Errorf("got %q", got)
		}
		p.refuse("edit_file", members{"path": "x", "old_string": "a", "new_string": "b", "version": versionOf([]byte(content))}, CodeInvalidArguments, "can't change")
	}
	for content, want := range map[string]string{
		"a":          "a\n[There is no line break after the last line. Version ",
		"a\r\nb\r\n": "a\r\nb\r\n[Lines end in \\r\\n. Version ",
	} {
		p.put(filepath.Join(p.dir, "x"), content, 0o644)
		if got := p.do("read_file", members{"path": "x"}); !strings.HasPrefix(got, want) {
			t.Errorf("got %q", got)
		}
	}
}

func TestEditFileNeedsOneOccurrence(t *testing.T) {
	p := newPlace(t, Options{})
	file := filepath.Join(p.dir, "a")
	p.put(file, "x y x", 0o640)
	v := versionOf([]byte("x y x"))
	p.refuse("edit_file", members{"path": "a", "old_string": "z", "new_string": ".", "version": v}, CodeNotFound, "does not occur")
	p.refuse("edit_file", members{"path": "a", "old_string": "x", "new_string": ".", "version": v}, CodeInvalidArguments, "occurs 2 times")
	p.refuse("edit_file", members{"path": "b", "old_string": "x", "new_string": ".", "version": v}, CodeNotFound, "no b in the workspace")
	p.put(filepath.Join(p.dir, "crlf"), "a\r\nb\r\n", 0o640)
	p.refuse("edit_file", members{"path": "crlf", "old_string": "a\nb", "new_string": ".", "version": versionOf([]byte("a\r\nb\r\n"))}, CodeNotFound, `end in \r\n`)
	if got := p.content(file); got != "x y x" {
		t.Errorf("a refused edit left %q", got)
	}
	if got := p.do("edit_file", members{"path": "a", "old_string": "x", "new_string": "z", "replace_all": true, "version": v}); got != "Edited a: 2 occurrences replaced. Version "+versionOf([]byte("z y z"))+"." {
		t.Errorf("got %q", got)
	}
	info, err := os.Stat(file)
	p.must(err)
	if p.content(file) != "z y z" || info.Mode().Perm() != 0o640 {
		t.Errorf("the file is %q, %v", p.content(file), info.Mode())
	}
}

// Of edits that were made for the same version at the same time one is done. The others are told the version that came
// of it, and with that all get in: nothing is lost, nothing is overwritten unseen.
func TestEditsDontLoseEachOther(t *testing.T) {
	p := newPlace(t, Options{})
	const n = 10
	var start strings.Builder
	for i := range n {
		fmt.Fprintf(&start, "<%d>", i)
	}
	p.put(filepath.Join(p.dir, "a"), start.String(), 0o644)
	for round := 0; round < n; round++ {
		v := versionOf([]byte(p.content(filepath.Join(p.dir, "a"))))
		var done atomic.Int32
		var wg sync.WaitGroup
		for i := round; i < n; i++ {
			wg.Go(func() {
				old := fmt.Sprintf("<%d>", i)
				_, err := p.call(p.Context(), "edit_file", members{"path": "a", "old_string": old, "new_string": fmt.Sprintf("(%d)", i), "version": v})
				var refused *Error
				switch {
				case err == nil:
					done.Add(1)
				case !errors.As(err, &refused) || refused.Code != CodeConflict && refused.Code != CodeNotFound:
					p.Errorf("%s: %v", old, err)
				}
			})
		}
		wg.Wait()
		if done.Load() > 1 {
			t.Fatalf("%d edits of one version were done", done.Load())
		}
	}
}

// A change is made for one version of a file, and for no other.
func TestChangesAreBoundToAVersion(t *testing.T) {
	p := newPlace(t, Options{})
	file := filepath.Join(p.dir, "a")
	p.put(file, "one\n", 0o644)
	old := versionOf([]byte("one\n"))
	p.put(file, "one\ntwo\n", 0o644)
	p.refuse("edit_file", members{"path": "a", "old_string": "one", "new_string": "1", "version": old}, CodeConflict, "Read it again")
	p.refuse("write_file", members{"path": "a", "content": "x", "version": old}, CodeConflict, "its version is "+versionOf([]byte("one\ntwo\n")))
	p.refuse("write_file", members{"path": "a", "content": "x", "version": "none"}, CodeConflict, "exists already")
	p.refuse("write_file", members{"path": "b", "content": "x", "version": old}, CodeNotFound, "no b")
	if got := p.content(file); got != "one\ntwo\n" {
		t.Errorf("a refused change left %q", got)
	}
	p.do("write_file", members{"path": "deep/new", "content": "x", "version": "none"})
	// What a change prints is what the next one takes.
	text := p.do("write_file", members{"path": "a", "content": "1", "version": versionOf([]byte("one\ntwo\n"))})
	version := strings.TrimSuffix(text[strings.Index(text, versionPrefix):], ".")
	p.do("edit_file", members{"path": "a", "old_string": "1", "new_string": "2", "version": version})
	if got := p.content(file) + p.content(filepath.Join(p.dir, "deep/new")); got != "2x" {
		t.Errorf("the files are %q", got)
	}
	// Also where the file changes between the look and the write.
	w := openTestWorkspace(t, p.dir)
	bound, err := w.bind("a", versionOf([]byte("2")))
	p.must(err)
	p.put(file, "somebody else's", 0o644)
	_, err = w.write(t.Context(), "a", []byte("3"), bound)
	wantCode(t, err, CodeConflict)
	none, err := w.bind("a", absent)
	p.must(err)
	_, err = w.write(t.Context(), "a", []byte("3"), none)
	wantCode(t, err, CodeConflict)
	if got := p.content(file); got != "somebody else's" {
		t.Errorf("the file is %q", got)
	}
	entries, err := os.ReadDir(p.dir)
	p.must(err)
	if len(entries) != 2 {
		t.Errorf("temporary files are left: %v", entries)
	}
}

// A fresh file takes no other's place, also if that one comes between the look and the write.
func TestFreshFilesReplaceNothing(t *testing.T) {
	p := newPlace(t, Options{})
	w := openTestWorkspace(t, p.dir)
	p.put(filepath.Join(p.dir, "a"), "theirs", 0o644)
	if err := replace(w.root, "a", []byte("ours"), nil, true); !errors.Is(err, os.ErrExist) {
		t.Errorf("got %v", err)
	}
	entries, err := os.ReadDir(p.dir)
	p.must(err)
	if p.content(filepath.Join(p.dir, "a")) != "theirs" || len(entries) != 1 {
		t.Errorf("it is %q, beside %v", p.content(filepath.Join(p.dir, "a")), entries)
	}
}

func openTestWorkspace(t *testing.T, dir string) *workspace {
	t.Helper()
	w, err := openWorkspace(dir, nil, defaultMaxFile)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.root.Close() })
	return w
}

func TestNothingLeadsOut(t *testing.T) {
	p := newPlace(t, Options{})
	secret := filepath.Join(p.out, "secret")
	p.put(secret, "secret", 0o600)
	p.must(os.Symlink(secret, filepath.Join(p.dir, "link")))
	p.must(os.Symlink(p.out, filepath.Join(p.dir, "dirlink")))
	p.must(os.Symlink("../outside", filepath.Join(p.dir, "rellink")))
	for _, path := range []string{"../outside/secret", "a/../../outside/secret", secret, "/etc/passwd", "link", "dirlink/secret", "rellink/secret"} {
		p.refuse("read_file", members{"path": path}, CodeNotAllowed, "")
		p.refuse("write_file", members{"path": path, "content": "x"}, CodeNotAllowed, "")
		p.refuse("edit_file", members{"path": path, "old_string": "secret", "new_string": "x", "version": anyVersion}, CodeNotAllowed, "")
	}
	for _, path := range []string{"..", p.out, "dirlink", "rellink"} {
		p.refuse("list_files", members{"path": path}, CodeNotAllowed, "")
	}
	p.refuse("write_file", members{"path": "dirlink/new/deep/x", "content": "x"}, CodeNotAllowed, "leads out of the workspace")
	entries, err := os.ReadDir(p.out)
	p.must(err)
	if p.content(secret) != "secret" || len(entries) != 1 {
		t.Errorf("outside there is %v, and %q", entries, p.content(secret))
	}
}

// A call is judged by its path, so the path has to be the file's own: a link that stays inside would let a rule for one
// directory be passed by another name of it.
func TestAPathIsTheFilesOwn(t *testing.T) {
	p := newPlace(t, Options{})
	p.put(filepath.Join(p.dir, "prod", "real"), "r", 0o644)
	p.must(os.Symlink("prod/real", filepath.Join(p.dir, "inside")))
	p.must(os.Symlink("prod", filepath.Join(p.dir, "test")))
	for path, own := range map[string]string{"inside": "prod/real", "test/real": "prod/real"} {
		p.refuse("read_file", members{"path": path}, CodeNotAllowed, path+" is another name of "+own)
		p.refuse("search_files", members{"path": path, "content": "r"}, CodeNotAllowed, "another name of "+own)
		p.refuse("edit_file", members{"path": path, "old_string": "r", "new_string": "x", "version": versionOf([]byte("r"))}, CodeNotAllowed, "another name of "+own)
	}
	p.refuse("list_files", members{"path": "test"}, CodeNotAllowed, "another name of prod")
	p.refuse("write_file", members{"path": "test/real", "content": "x"}, CodeNotAllowed, "another name of prod/real")
	p.refuse("write_file", members{"path": "test/new/deep", "content": "x"}, CodeNotAllowed, "another name of prod/new/deep")
	p.refuse("write_file", members{"path": "inside", "content": "x"}, CodeNotAllowed, "symbolic link")
	if _, err := os.Stat(filepath.Join(p.dir, "prod", "new")); err == nil || p.content(filepath.Join(p.dir, "prod", "real")) != "r" {
		t.Error("it was written")
	}
	// By its own name, as it may be spelled, it is fine.
	p.do("read_file", members{"path": ".//prod/./real"})
	p.do("write_file", members{"path": "prod/real", "content": "x"})
}

func TestRegularFilesOnly(t *testing.T) {
	p := newPlace(t, Options{MaxFile: 100})
	p.must(unix.Mkfifo(filepath.Join(p.dir, "fifo"), 0o644))
	p.must(os.Mkdir(filepath.Join(p.dir, "dir"), 0o755))
	p.put(filepath.Join(p.out, "elsewhere"), "content", 0o644)
	p.must(os.Link(filepath.Join(p.out, "elsewhere"), filepath.Join(p.dir, "hard")))
	p.put(filepath.Join(p.dir, "big"), strings.Repeat("x", 101), 0o644)

	// If opening waited for a writer, this would not come back.
	p.refuse("read_file", members{"path": "fifo"}, CodeNotAllowed, "not a regular file")
	p.refuse("write_file", members{"path": "fifo", "content": "x"}, CodeNotAllowed, "not a regular file")
	p.refuse("edit_file", members{"path": "fifo", "old_string": "x", "new_string": "y", "version": anyVersion}, CodeNotAllowed, "not a regular file")
	p.refuse("read_file", members{"path": "dir"}, CodeInvalidArguments, "is a directory")
	p.refuse("write_file", members{"path": "dir", "content": "x"}, CodeInvalidArguments, "is a directory")
	p.refuse("write_file", members{"path": ".", "content": "x"}, CodeInvalidArguments, "the workspace itself")
	p.refuse("write_file", members{"path": "hard", "content": "x"}, CodeNotAllowed, "hard link")
	p.refuse("edit_file", members{"path": "hard", "old_string": "content", "new_string": "y", "version": versionOf([]byte("content"))}, CodeNotAllowed, "hard link")
	p.refuse("read_file", members{"path": "big"}, CodeTooLarge, "101 bytes")
	p.refuse("write_file", members{"path": "new", "content": strings.Repeat("x", 101)}, CodeTooLarge, "101 bytes")
	p.put(filepath.Join(p.dir, "grows"), strings.Repeat("x", 60), 0o644)
	p.refuse("edit_file", members{"path": "grows", "old_string": "x", "new_string": "xx", "replace_all": true, "version": versionOf([]byte(strings.Repeat("x", 60)))}, CodeTooLarge, "120 bytes")
	p.refuse("list_files", members{"path": "big"}, CodeInvalidArguments, "not a directory")
	p.refuse("read_file", members{"path": "big/x"}, CodeNotFound, "no big/x")
	p.refuse("write_file", members{"path": "big/x", "content": ""}, CodeNotFound, "not a directory")
	if got := p.content(filepath.Join(p.out, "elsewhere")); got != "content" {
		t.Errorf("the hard link's file is %q", got)
	}
	if got := p.do("list_files", members{}); got != "big (101 bytes)\ndir/\nfifo (special file)\ngrows (60 bytes)\nhard (7 bytes)" {
		t.Errorf("got %q", got)
	}
}

// The program's own files are refused by every way that leads to them.
func TestProtectedFiles(t *testing.T) {
	p := newPlace(t, Options{})
	journal := filepath.Join(p.dir, "journal")
	p.must(os.Mkdir(journal, 0o755))
	p.put(filepath.Join(journal, "j.db"), "rows", 0o600)
	p.put(filepath.Join(p.dir, "conf", ".env"), "TOKEN=x", 0o600)
	p.must(os.Symlink("journal", filepath.Join(p.dir, "link")))
	p.must(os.Symlink("conf/.env", filepath.Join(p.dir, "envlink")))
	p.must(os.Link(filepath.Join(journal, "j.db"), filepath.Join(p.dir, "hard")))
	p.must(os.Link(filepath.Join(p.dir, "conf", ".env"), filepath.Join(p.dir, "hardenv")))
	p.must(os.Symlink(p.dir, filepath.Join(p.out, "again")))

	b, err := OpenBuiltin(Options{Workspace: filepath.Join(p.out, "again"), Protected: []string{
		journal,
		filepath.Join(p.out, "again", "conf", ".env"), // by a link that the tools don't use
		filepath.Join(p.dir, "later", "policy.json"),  // doesn't exist yet
	}})
	p.must(err)
	t.Cleanup(func() { b.Close() })
	p.tools, err = NewSet(b.Tools()...)
	p.must(err)

	const mine = "belongs to approvalbot itself"
	for _, path := range []string{"journal/j.db", "link/j.db", "conf/.env", "envlink", "hard", "hardenv"} {
		p.refuse("read_file", members{"path": path}, CodeNotAllowed, mine)
		p.refuse("edit_file", members{"path": path, "old_string": "x", "new_string": "y", "version": anyVersion}, CodeNotAllowed, mine)
	}
	for _, path := range []string{"journal/j.db", "journal/new", "journal/deep/new", "link/new", "conf/.env", "later/policy.json", "later/policy.json/x"} {
		p.refuse("write_file", members{"path": path, "content": "x"}, CodeNotAllowed, mine)
	}
	for _, path := range []string{"envlink", "hard", "hardenv"} {
		p.refuse("write_file", members{"path": path, "content": "x"}, CodeNotAllowed, "")
	}
	p.refuse("list_files", members{"path": "journal"}, CodeNotAllowed, mine)
	if got := p.do("list_files", members{"recursive": true}); !strings.Contains(got, "\njournal/\n[journal "+mine) || strings.Contains(got, "j.db") {
		t.Errorf("got %q", got)
	}
	// What is beside them is not.
	p.do("write_file", members{"path": "journals", "content": "x"})
	p.do("write_file", members{"path": "later/other.json", "content": "x"})
	if got := p.content(filepath.Join(journal, "j.db")) + p.content(filepath.Join(p.dir, "conf", ".env")); got != "rowsTOKEN=x" {
		t.Errorf("they became %q", got)
	}
}

func TestFailedWritesLeaveNothing(t *testing.T) {
	p := newPlace(t, Options{})
	file := filepath.Join(p.dir, "a")
	p.put(file, "old", 0o644)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := p.call(ctx, "write_file", members{"path": "a", "content": "new"})
	wantCode(t, err, CodeAborted)
	// A directory takes the place between the look and the rename.
	root, err := os.OpenRoot(p.dir)
	p.must(err)
	defer root.Close()
	p.must(os.MkdirAll(filepath.Join(p.dir, "d", "x"), 0o755))
	if err := replace(root, "d", []byte("new"), nil, false); err == nil {
		t.Error("a directory was replaced")
	}
	entries, err := os.ReadDir(p.dir)
	p.must(err)
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	if diff := cmp.Diff([]string{"a", "d"}, names); diff != "" || p.content(file) != "old" {
		t.Errorf("left: %v, %q", names, p.content(file))
	}
}

// Somebody who reads while others write sees one of the contents, whole.
func TestWritesAreAtomic(t *testing.T) {
	p := newPlace(t, Options{})
	contents := []string{strings.Repeat("a", 20000), strings.Repeat("b", 30000)}
	p.do("write_file", members{"path": "f", "content": contents[0]})
	var wg sync.WaitGroup
	for i := range 2 {
		wg.Go(func() {
			for range 20 {
				if _, err := p.call(p.Context(), "write_file", members{"path": "f", "content": contents[i]}); err != nil {
					p.Error(err)
				}
			}
		})
	}
	for range 100 {
		b, err := os.ReadFile(filepath.Join(p.dir, "f"))
		if err != nil || string(b) != contents[0] && string(b) != contents[1] {
			t.Errorf("read %d bytes, %v", len(b), err)
		}
	}
	wg.Wait()
}

func TestListFilesIsBounded(t *testing.T) {
	p := newPlace(t, Options{})
	for i := range listEntries + 1 {
		p.put(filepath.Join(p.dir, fmt.Sprintf("f%05d", i)), "", 0o644)
	}
	out, err := p.call(t.Context(), "list_files", members{})
	p.must(err)
	lines := strings.Split(out.Text, "\n")
	if len(lines) != listEntries+1 || !out.Truncated || !strings.HasPrefix(lines[listEntries], "[There is more") {
		t.Errorf("%d lines, truncated %t, the last is %q", len(lines), out.Truncated, lines[len(lines)-1])
	}
}

func TestListFilesQuotesNames(t *testing.T) {
	p := newPlace(t, Options{})
	p.put(filepath.Join(p.dir, "a\nb (1 byte)"), "", 0o644)
	p.put(filepath.Join(p.dir, "[c]"), "", 0o644)
	p.put(filepath.Join(p.dir, ".git", "config"), "", 0o644)
	p.must(os.Symlink("nowhere", filepath.Join(p.dir, "z")))
	want := ".git/\n\"[c]\" (0 bytes)\n\"a\\nb (1 byte)\" (0 bytes)\nz (link)"
	if got := p.do("list_files", members{"recursive": true}); got != want {
		t.Errorf("got %q", got)
	}
	p.must(os.Mkdir(filepath.Join(p.dir, "e"), 0o755))
	if got := p.do("list_files", members{"path": "e"}); got != "[The directory is empty.]" {
		t.Errorf("got %q", got)
	}
}

func TestOpenBuiltinRefuses(t *testing.T) {
	dir := t.TempDir()
	for name, tt := range map[string]struct {
		o    Options
		want string
	}{
		"no workspace": {Options{Workspace: filepath.Join(dir, "none")}, "no such file"},
		"confined":     {Options{Workspace: dir, Shell: ShellConfined, Protected: []string{filepath.Join(dir, ".env")}}, ".env, which commands may not reach"},
		"unknown mode": {Options{Workspace: dir, Shell: "on"}, "unknown shell mode"},
		"protected":    {Options{Workspace: dir, Protected: []string{filepath.Dir(dir)}}, "may not touch"},
	} {
		if _, err := OpenBuiltin(tt.o); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: got %v, want an error with %q", name, err, tt.want)
		}
	}
	b, err := OpenBuiltin(Options{Workspace: dir})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	for _, tool := range b.Tools() {
		if tool.Spec().Name == "shell" {
			t.Error("there is a shell though nobody asked for one")
		}
	}
}

// Whatever path is accepted stays in the workspace and means one thing.
func FuzzCleanPath(f *testing.F) {
	for _, s := range []string{"a", "./a//b/", "..", "a/../b", "/etc/passwd", "", ".", "...", "a\x00", "\u202ea", "..\\a"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, name string) {
		clean, err := cleanPath(name)
		if err != nil {
			return
		}
		if !filepath.IsLocal(clean) || filepath.IsAbs(name) || hasControl(clean) {
			t.Errorf("%q became %q", name, clean)
		}
		if again, err := cleanPath(clean); err != nil || again != clean {
			t.Errorf("%q became %q, and that %q, %v", name, clean, again, err)
		}
	})
}
