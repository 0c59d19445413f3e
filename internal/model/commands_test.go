package model

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

func sh(s string) command    { return command{tool: "shell", text: s} }
func rd(s string) command    { return command{tool: "read_file", text: s} }
func ls(s string) command    { return command{tool: "list_files", text: s} }
func wr(f, c string) command { return command{tool: "write_file", text: f, content: c} }

func TestParseCommands(t *testing.T) {
	tests := []struct {
		text string
		want []command
	}{
		{"", nil},
		{"hello there", nil},
		{"<@U012AB3CD> run `printf ok > proof.txt`", []command{sh("printf ok > proof.txt")}},
		{"run `a`, `b` and `c`", []command{sh("a"), sh("b"), sh("c")}},
		{"`a``b`", []command{sh("a"), sh("b")}},
		{"run `echo “hi” ’x’`", []command{sh("echo “hi” ’x’")}},
		{"run `  spaced  out `", []command{sh("  spaced  out ")}},
		{"```\nset -e\nls\n```", []command{sh("set -e\nls")}},
		{"```bash\nls\n```", []command{sh("ls")}},
		{"```echo `date` ```", []command{sh("echo `date` ")}},
		{"an `unclosed span\nand `x`", []command{sh("x")}},
		{"``` never closed", nil},
		{"` `", nil},
		{"`curl <http://a.b|c>`", []command{sh("curl <http://a.b|c>")}},

		{"read notes.txt", []command{rd("notes.txt")}},
		{"Please read the file notes.txt.", []command{rd("notes.txt")}},
		{"<@U1> read <http://README.md|README.md>, then list files", []command{rd("README.md"), ls("")}},
		{"read “my notes.txt”", []command{rd("my notes.txt")}},
		{"read `notes.txt`", []command{rd("notes.txt")}},
		{"read a.txt and b.txt", []command{rd("a.txt"), rd("b.txt")}},
		{"read a.txt and `date`", []command{rd("a.txt"), sh("date")}},
		{"did you read notes.txt", nil},
		{"read my notes.txt", nil},
		{"read \"my notes.txt\" and `date`", []command{rd("my notes.txt"), sh("date")}},
		{"read `notes.txt` for me", []command{rd("notes.txt")}},
		{"read notes.txt for me", []command{rd("notes.txt")}},
		{"read notes please", []command{rd("notes")}},
		{"read the news today", nil},
		{"read", nil},
		{"read and write", nil},

		{"list", []command{ls("")}},
		{"list files", []command{ls("")}},
		{"List the files.", []command{ls("")}},
		{"list src", []command{ls("src")}},
		{"list files in src and read a.txt", []command{ls("src"), rd("a.txt")}},
		{"list files, read a.txt", []command{ls(""), rd("a.txt")}},
		{"list, read a.txt", []command{ls(""), rd("a.txt")}},
		{"list files recursively", []command{{tool: "list_files", recursive: true}}},
		{"list src/ recursively", []command{{tool: "list_files", text: "src/", recursive: true}}},
		{"list files in sub dir", nil},
		{"list files in \"sub dir\" recursively", []command{{tool: "list_files", text: "sub dir", recursive: true}}},
		{"list files in src please", []command{ls("src")}},
		{"list the reasons why we do this", nil},
		{"list reasons why", nil},

		{"write notes.txt: hello: world & <b>", []command{wr("notes.txt", "hello: world & <b>")}},
		{"write notes.txt:hello", []command{wr("notes.txt", "hello")}},
		{"write notes.txt: use `x` and read y", []command{wr("notes.txt", "use `x` and read y")}},
		{"write notes.txt: `x`", []command{wr("notes.txt", "x")}},
		{"write <http://NOTES.md|NOTES.md>: see <https://example.com>", []command{wr("NOTES.md", "see https://example.com")}},
		{"write a.txt:\n```\none\ntwo\n```\nread a.txt", []command{wr("a.txt", "one\ntwo\n"), rd("a.txt")}},
		{"write a.txt: ```x```", []command{wr("a.txt", "x\n")}},
		{"write a.txt: 1\nwrite b.txt: 2", []command{wr("a.txt", "1"), wr("b.txt", "2")}},
		{"run `a` and write b.txt: c", []command{sh("a"), wr("b.txt", "c")}},
		{"write big.txt: first\nsecond\n\n  third\n", []command{wr("big.txt", "first\nsecond\n\n  third")}},
		{"write a.py:\n    def f():\n        pass", []command{wr("a.py", "    def f():\n        pass")}},
		{"write a.txt: 1\n- read a.txt\n- `date`", []command{wr("a.txt", "1"), rd("a.txt"), sh("date")}},
		{"write a.txt: 1\nthen run `date` please", []command{wr("a.txt", "1"), sh("date")}},
		{"write a.txt: see\n`foo` is a function\nread the manual before\nwrite me a poem\nrun home", []command{wr("a.txt", "see\n`foo` is a function\nread the manual before\nwrite me a poem\nrun home")}},
		{"write a.txt: `x`\nmore", []command{wr("a.txt", "`x`\nmore")}},
		{"write a.txt: so:\n```\nls\n```", []command{wr("a.txt", "so:\n```\nls\n```")}},
		{"write a.txt:\nread b.txt", []command{rd("b.txt")}},
		{"write `my file.txt`: x", []command{wr("my file.txt", "x")}},
		{"write notes.txt:", nil},
		{"write me a poem", nil},

		{"- read a.txt\n- `date`\n2. list", []command{rd("a.txt"), sh("date"), ls("")}},
		{"Hi @bot, can you run `x`? Then read y.txt!", []command{sh("x"), rd("y.txt")}},
		{"run `a`\r\nread b.txt", []command{sh("a"), rd("b.txt")}},
	}
	for _, tt := range tests {
		got := parseCommands(tt.text)
		if diff := cmp.Diff(tt.want, got, cmp.AllowUnexported(command{})); diff != "" {
			t.Errorf("parseCommands(%q) (-want +got):\n%s", tt.text, diff)
		}
	}
}

// Whatever a person writes: it ends, the arguments are JSON, and every command
// is made of the message's own words.
func FuzzParseCommands(f *testing.F) {
	for _, s := range []string{
		"run `printf ok > proof.txt`", "read <http://README.md|README.md> and b.txt", "write a: ```x\ny```",
		"list files in “my dir” recursively", "```", "`` ` ```a` ``", "write `f`:", "<@U1|x> read 'a b'", "list, list; read",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		for _, c := range parseCommands(text) {
			if !json.Valid([]byte(c.arguments())) {
				t.Errorf("%q: the arguments %q aren't JSON", text, c.arguments())
			}
			if c.tool != "list_files" && c.text == "" {
				t.Errorf("%q: %+v is about nothing", text, c)
			}
			normal := strings.ReplaceAll(text, "\r\n", "\n")
			if utf8.ValidString(text) && c.tool == "shell" && !strings.Contains(normal, c.text) {
				t.Errorf("%q: the command %q isn't in the message", text, c.text)
			}
		}
	})
}

// Any tool can be used by its name, if its arguments follow; a sentence about using something does nothing.
func TestUse(t *testing.T) {
	for text, want := range map[string]string{
		`use restart_service {"service":"web"}`:                        `restart_service {"service":"web"}`,
		`please use the action scale with {"n": 3, "in": {"a": "}"}}.`: `scale {"n": 3, "in": {"a": "}"}}`,
		"use `a-b` `{}`":                   `a-b {}`,
		`use a {"x":1} and use b {"y":2}`:  `a {"x":1}, b {"y":2}`,
		`use a {"x":1} and read notes.txt`: `a {"x":1}, read_file {"path":"notes.txt"}`,
		`use the shell`:                    ``,
		`use a {"x":}`:                     ``,
		`use`:                              ``,
		`what use a {"x":1} has`:           ``,
	} {
		var got []string
		for _, c := range parseCommands(text) {
			got = append(got, c.tool+" "+c.arguments())
		}
		if s := strings.Join(got, ", "); s != want {
			t.Errorf("%s: %s, want %s", text, s, want)
		}
	}
}
