package mcp

import (
	"crypto/sha256"
	"encoding/hex"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"approvalbot/internal/tools"
)

const (
	prefix      = tools.RemotePrefix
	separator   = "__"
	maxName     = 64  // what model providers take
	maxToolName = 128 // of a server's own name for a tool; more is left out
	shortHash   = 8   // hex digits
)

// plainServer is a server's name that can stand in a tool's name as it is: without the separator and with no underscore
// at its end, so that the first separator behind it ends it.
var plainServer = regexp.MustCompile(`^[a-zA-Z0-9-]+(_[a-zA-Z0-9-]+)*$`)

var plainTool = regexp.MustCompile(`^[a-zA-Z0-9_-]+$`)

const maxServerPart = 24 // leaves a tool's name 33 characters

// toolName is the name that a server's tool gets here: mcp__SERVER__TOOL, which model providers accept. A name that has to
// be changed or cut for that gets a hash of the original, so that two tools never have the same, and that a tool's name
// depends on no other tool's.
func toolName(server, tool string) string {
	head := prefix + serverPart(server) + separator
	if plainTool.MatchString(tool) && len(head)+len(tool) <= maxName {
		return head + tool
	}
	return head + hashed(tool, maxName-len(head))
}

func serverPart(server string) string {
	if plainServer.MatchString(server) && len(server) <= maxServerPart {
		return server
	}
	part := hashed(server, maxServerPart)
	for strings.Contains(part, separator) {
		part = strings.ReplaceAll(part, separator, "_")
	}
	return part
}

// hashed is the name with what isn't accepted replaced, cut to fit, and ended by a hash of the original.
func hashed(name string, room int) string {
	fit := strings.Map(func(r rune) rune {
		if r < utf8.RuneSelf && plainTool.MatchString(string(r)) {
			return r
		}
		return '_'
	}, name) // ASCII from here on
	sum := sha256.Sum256([]byte(name))
	tail := "_" + hex.EncodeToString(sum[:])[:shortHash]
	return fit[:min(len(fit), room-len(tail))] + tail
}

// printableName tells whether people can see all of a name: no control or format characters, nothing but plain spaces
// between, and valid UTF-8.
func printableName(name string) bool {
	if !utf8.ValidString(name) || strings.TrimSpace(name) != name {
		return false
	}
	return !strings.ContainsFunc(name, func(r rune) bool { return !unicode.IsPrint(r) })
}
