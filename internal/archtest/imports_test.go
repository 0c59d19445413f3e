// Package archtest keeps the architecture true: who may import whom, as docs/architecture.md says.
package archtest

import (
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const module = "approvalbot/"

// allowed are the internal packages that each package's own code (not its tests) may import. A package that isn't listed
// fails the test: its place has to be decided first.
var allowed = map[string][]string{
	"cmd/approvalbot": {"agent", "api", "approvals", "audit", "devslack", "language", "ledger", "metrics", "model", "policy", "profiles", "redact", "slackui", "spelling", "tools", "tools/actions", "tools/confine", "tools/mcp"},

	"internal/agent":     {"approvals", "fields", "language", "ledger", "model", "policy", "tools"},
	"internal/slackui":   {"approvals", "fields", "language", "ledger", "redact"},
	"internal/api":       {"approvals", "ledger", "policy", "redact"},
	"internal/metrics":   {"ledger"},
	"internal/audit":     {"agent", "ledger", "model", "redact", "slackui"},
	"internal/approvals": {"ledger"},

	"internal/ledger":            {},
	"internal/fields":            {}, // a schema as a form
	"internal/ledger/ledgertest": {"ledger"},
	"internal/model":             {"spelling"},
	"internal/policy":            {"language"},
	"internal/tools":             {"language", "tools/command", "tools/confine", "tools/process"},
	"internal/tools/process":     {},                                                                            // runs a program
	"internal/tools/command":     {"language"},                                                                  // what a shell command will run
	"internal/tools/confine":     {},                                                                            // what a program may reach
	"internal/tools/actions":     {"language", "redact", "spelling", "tools", "tools/command", "tools/process"}, // tools that operators define
	"internal/tools/mcp":         {"language", "redact", "spelling", "tools", "tools/process"},                  // tools of MCP servers
	"internal/redact":            {},
	"internal/devslack":          {},
	"internal/profiles":          {"policy", "spelling"}, // what is different in some channels
	"internal/language":          {},                     // what people read, in each language
	"internal/spelling":          {},                     // what a wrong name may have meant
	"internal/benchtable":        {},                     // a program of the Makefile
	"internal/rapidtest":         {},                     // how long property tests try
}

// owners are the only packages that may import a module from outside.
var owners = map[string][]string{
	"github.com/slack-go/slack":            {"internal/slackui"},
	"modernc.org/sqlite":                   {"internal/ledger", "internal/ledger/ledgertest"},
	"database/sql":                         {"internal/ledger", "internal/ledger/ledgertest"},
	"github.com/kelseyhightower/envconfig": {"cmd/approvalbot"},
	"os/exec":                              {"internal/tools/process", "internal/tools/mcp"},

	"github.com/anthropics/anthropic-sdk-go": {"internal/model"},
	"github.com/openai/openai-go":            {"internal/model"},
	"github.com/modelcontextprotocol/go-sdk": {"internal/tools/mcp"},
	"cel.dev/cel-go":                         {"internal/policy"},
	"mvdan.cc/sh/v3":                         {"internal/tools/command"},
	"github.com/landlock-lsm/go-landlock":    {"internal/tools/confine"},
	"github.com/elastic/go-seccomp-bpf":      {"internal/tools/confine"},
	"github.com/prometheus/client_golang":    {"internal/metrics"},
}

func TestImports(t *testing.T) {
	root := filepath.Join("..", "..")
	seen := map[string]bool{}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		rel, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		pkg := filepath.ToSlash(filepath.Dir(rel))
		seen[pkg] = true
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		for _, spec := range file.Imports {
			name, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				return err
			}
			check(t, rel, pkg, name)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for pkg := range allowed {
		if !seen[pkg] {
			t.Errorf("%s is in the table and has no code", pkg)
		}
	}
}

func check(t *testing.T, file, pkg, imported string) {
	t.Helper()
	may, known := allowed[pkg]
	if !known {
		t.Errorf("%s: the package %s has no place in the table", file, pkg)
	}
	if own, ok := strings.CutPrefix(imported, module+"internal/"); ok && !slices.Contains(may, own) {
		t.Errorf("%s: %s may not import %s", file, pkg, imported)
	}
	for prefix, who := range owners {
		if (imported == prefix || strings.HasPrefix(imported, prefix+"/")) && !slices.Contains(who, pkg) {
			t.Errorf("%s: only %v may import %s", file, who, prefix)
		}
	}
}
