package archtest

import (
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var (
	goFile   = regexp.MustCompile(`[a-z_]+(?:/[a-z_*]+)+\.go`)
	testName = regexp.MustCompile("`(Test[A-Za-z0-9]+)`")
	testFunc = regexp.MustCompile(`(?m)^func (Test[A-Za-z0-9]+)\(`)
)

// TestDocs: the files that docs/architecture.md sends people to, and the tests that the README shows as proof, are there.
func TestDocs(t *testing.T) {
	root := filepath.Join("..", "..")
	var files, tests []string
	err := filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(name, ".go") {
			return err
		}
		rel, err := filepath.Rel(root, name)
		files = append(files, filepath.ToSlash(rel))
		if err != nil || !strings.HasSuffix(name, "_test.go") {
			return err
		}
		text, err := os.ReadFile(name)
		for _, m := range testFunc.FindAllSubmatch(text, -1) {
			tests = append(tests, string(m[1]))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, named := range goFile.FindAllString(read(t, root, "docs/architecture.md"), -1) {
		if !slices.ContainsFunc(files, func(f string) bool { return matches(t, named, f) }) {
			t.Errorf("docs/architecture.md names %s, which is not there", named)
		}
	}
	for _, m := range testName.FindAllStringSubmatch(read(t, root, "README.md"), -1) {
		if !slices.Contains(tests, m[1]) {
			t.Errorf("README.md names %s, which is not there", m[1])
		}
	}
}

// matches tells whether a name as the map writes it (from the root, or from internal or internal/tools on) is the file.
func matches(t *testing.T, named, file string) bool {
	for _, from := range []string{"", "internal", "internal/tools"} {
		ok, err := path.Match(path.Join(from, named), file)
		if err != nil {
			t.Fatal(err)
		}
		if ok {
			return true
		}
	}
	return false
}

func read(t *testing.T, root, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(name)))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
