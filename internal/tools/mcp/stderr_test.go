package mcp

import (
	"log/slog"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// Why a program ended is what it said of it, not the version of its interpreter or the address of a log.
func TestCause(t *testing.T) {
	for _, tt := range []struct{ name, written, want string }{
		{"nothing", "", ""},
		{"one line", "bye\n", "bye"},
		{"node", "node:internal/modules/cjs/loader:1228\n  throw err;\n  ^\n\nError: Cannot find module '/srv/tools.js'\n    at Module._resolveFilename (node:internal/modules/cjs/loader:1225:15)\n  code: 'MODULE_NOT_FOUND',\n  requireStack: []\n}\n\nNode.js v20.11.0\n", "Error: Cannot find module '/srv/tools.js'"},
		{"python", "Traceback (most recent call last):\n  File \"s.py\", line 1, in <module>\n    import nothing\nModuleNotFoundError: No module named 'nothing'\n", "ModuleNotFoundError: No module named 'nothing'"},
		{"npm", "npm error code E404\nnpm error 404 '@x/y@*' is not in this registry.\nnpm error A complete log of this run can be found in: /tmp/log\n", "npm error 404 '@x/y@*' is not in this registry."},
		{"the last of many", "error: old\n" + strings.Repeat("fine\n", keptLines) + "bye", "bye"},
		{"long", "error: " + strings.Repeat("x", 1000), "error: " + strings.Repeat("x", maxCause-8) + "…"},
	} {
		s := &stderr{log: slog.New(slog.DiscardHandler)}
		s.read(strings.NewReader(tt.written))
		if got := s.cause(); got != tt.want {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
	}
}

// A program that can't even start says why once, in the error, and not line by line with each try.
func TestErrorQuotesTheProgram(t *testing.T) {
	u := use(t, Server{Name: "broken", Kind: Stdio, Command: "/bin/sh", Cwd: t.TempDir(),
		Args: []string{"-c", "echo \"Error: Cannot find module 'x'\" >&2; echo 'at nowhere' >&2; exit 1"}})
	s := u.servers.Status()[0]
	if s.Err == nil || !strings.Contains(s.Err.Error(), "exit status 1, and it had written: Error: Cannot find module 'x')") {
		t.Errorf("%v", s.Err)
	}
	if said := u.log.w.said(); strings.Contains(said, "nowhere") || strings.Count(said, "Cannot find module") > 1 {
		t.Error(said)
	}
}

func TestPlace(t *testing.T) {
	for address, want := range map[string]string{
		"https://mcp.example.com":                                   "https://mcp.example.com",
		"https://mcp.example.com/":                                  "https://mcp.example.com",
		"https://mcp.example.com/v1/mcp?key=made-up":                "https://mcp.example.com/v1/mcp",
		"http://127.0.0.1:8080/sse":                                 "http://127.0.0.1:8080/sse",
		"https://example.com/api/read-only_tools.json":              "https://example.com/api/read-only_tools.json",
		"https://example.com/api/mcp/s/NjM4ZmE5YzQtZTg3Mi00/mcp":    "https://example.com/api/mcp/s/…/mcp",
		"https://example.com/6f1ed002ab5595859014ebf0951522d9/sse":  "https://example.com/…/sse",
		"https://example.com/638fa9c4-e872-4b1a-9c3d-0a1b2c3d4e5f/": "https://example.com/…",
		"https://example.com/madeuptokenwithoutanydigits":           "https://example.com/…",
		"https://example.com/a%20b":                                 "https://example.com/…",
	} {
		if got := (Server{Kind: HTTP, URL: address}).Place(); got != want {
			t.Errorf("%s: %s, want %s", address, got, want)
		}
	}
}

// Who misspells a tool in the configuration learns which there are, once.
func TestMissingToolsNameThoseThereAre(t *testing.T) {
	list := []*sdk.Tool{{Name: "create_issue"}, {Name: "merge"}}
	s := &server{config: Server{Tools: []string{"merge", "creat_issue", "nothing"}}}
	want := []string{
		`creat_issue: it is named in "tools", and the server has no such tool. Did you mean create_issue? It has create_issue, merge.`,
		`nothing: it is named in "tools", and the server has no such tool.`,
	}
	if diff := cmp.Diff(want, s.missing(list)); diff != "" {
		t.Error(diff)
	}
	if got := some(strings.Split(strings.Repeat("x ", 15)+"x", " ")); got != "It has x, x, x, x, x, x, x, x, x, x and 6 more." {
		t.Error(got)
	}
	if got := s.missing(nil); len(got) != 3 || !strings.HasSuffix(got[0], "It has none.") {
		t.Error(got)
	}
}
