package tools

import (
	"slices"
	"strings"
)

// RemotePrefix is what the names of all tools of MCP servers begin with.
const RemotePrefix = "mcp__"

// builtinNames are the names of all tools that the program may bring, by the alphabet.
var builtinNames = []string{
	"edit_file", "http_request", "list_files", "lookup_user", "post_message", "read_file", "search_files", "shell", "write_file",
}

// Reserved tells whether no other tool may have this name, and why not. That holds for the name of a tool that is
// switched off, too: rules and people would take the other one for it, and switching it on would stop the start.
func Reserved(name string) (why string, is bool) {
	switch {
	case slices.Contains(builtinNames, name):
		return "the name " + name + " is taken: a built-in tool has it. Those have " + strings.Join(builtinNames, ", "), true
	case strings.HasPrefix(name, RemotePrefix):
		return "the name " + name + " is taken: names that begin with " + RemotePrefix + " are those of the tools of MCP servers", true
	}
	return "", false
}
