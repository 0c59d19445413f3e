package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"approvalbot/internal/tools/command"
)

// shownCalls matches a call of policy that a document shows, up to its comment or its end.
var shownCalls = regexp.MustCompile(`(?m)(?:approvalbot )(policy (?:check|test|explain) docs/policies/(?:[^#\\\n]|\\\n#?)*)`)

// The calls of policy in the documents work literally.
func TestShownPolicyCommandsWork(t *testing.T) {
	root, err := filepath.Abs(filepath.Join("..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	files := []string{filepath.Join(root, "README.md")}
	for _, pattern := range []string{"docs/*.md", "docs/policies/*.yaml"} {
		more, err := filepath.Glob(filepath.Join(root, pattern))
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, more...)
	}
	clearSettings(t)
	t.Chdir(root)
	n := 0
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range shownCalls.FindAllSubmatch(text, -1) {
			n++
			line := strings.NewReplacer("\\\n#", " ", "\\\n", " ").Replace(string(m[1]))
			if err := run(t.Context(), command.Parse(line).Simple); err != nil {
				t.Errorf("%s shows %q: %v", filepath.Base(file), line, err)
			}
		}
	}
	if n < 4 {
		t.Errorf("only %d are shown", n)
	}
}
