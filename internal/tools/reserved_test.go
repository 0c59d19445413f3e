package tools

import (
	"slices"
	"strings"
	"testing"
)

// Every tool that the program may bring keeps its name to itself, and so does every tool of an MCP server.
func TestReserved(t *testing.T) {
	b, err := OpenBuiltin(Options{Workspace: t.TempDir(), Shell: ShellUnconfined, HTTP: &HTTPOptions{}, Messenger: nobodysMessenger{}})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	var names []string
	for _, tool := range b.Tools() {
		names = append(names, tool.Spec().Name)
	}
	slices.Sort(names)
	if !slices.Equal(names, builtinNames) {
		t.Errorf("reserved are %q, and there are %q", builtinNames, names)
	}
	for _, name := range append(names, "mcp__notes__find") {
		if why, is := Reserved(name); !is || !strings.Contains(why, name) {
			t.Errorf("%s: %t, %q", name, is, why)
		}
	}
	for _, name := range []string{"restart", "shell_2", "mcp_x"} {
		if why, is := Reserved(name); is {
			t.Errorf("%s is refused: %s", name, why)
		}
	}
}

type nobodysMessenger struct{ Messenger }
