package mcp

import (
	"regexp"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestToolNames(t *testing.T) {
	long := strings.Repeat("x", 80)
	for _, c := range []struct{ server, tool, want string }{
		{"fs", "read_file", "mcp__fs__read_file"},
		{"git-hub", "a-b", "mcp__git-hub__a-b"},
		{"fs", "read file", "mcp__fs__read_file_" + hash("read file")},
		{"fs", "_x", "mcp__fs___x"},
		{"my server", "x", "mcp__my_server_" + hash("my server") + "__x"},
		{"a__b", "c", "mcp__a_b_" + hash("a__b") + "__c"},
		{"fs", long, "mcp__fs__" + strings.Repeat("x", 46) + "_" + hash(long)},
		{"fs", "日本", "mcp__fs____" + "_" + hash("日本")},
	} {
		if got := toolName(c.server, c.tool); got != c.want {
			t.Errorf("%q of %q is %s, want %s", c.tool, c.server, got, c.want)
		}
	}
}

func hash(s string) string { h := hashed(s, 1000); return h[len(h)-shortHash:] }

// Every name is one that providers take, says whose it is, and is no other tool's.
func TestToolNamesAreTheirOwn(t *testing.T) {
	accepted := regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`)
	name := rapid.StringOf(rapid.SampledFrom([]rune("ab_-. é😀"))).Filter(func(s string) bool { return s != "" })
	rapid.Check(t, func(t *rapid.T) {
		server, tool, server2, tool2 := name.Draw(t, "server"), name.Draw(t, "tool"), name.Draw(t, "server2"), name.Draw(t, "tool2")
		a, b := toolName(server, tool), toolName(server2, tool2)
		if !accepted.MatchString(a) || !strings.HasPrefix(a, Prefix(server)) {
			t.Fatalf("%q of %q is %s", tool, server, a)
		}
		if (a == b) != (server == server2 && tool == tool2) {
			t.Fatalf("%q of %q and %q of %q are %s and %s", tool, server, tool2, server2, a, b)
		}
		if server != server2 && strings.HasPrefix(a, Prefix(server2)) {
			t.Fatalf("%s looks like one of %q", a, server2)
		}
	})
}
