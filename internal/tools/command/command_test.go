package command

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// A row is a line of testdata/commands.txt.
type row struct {
	line                    int
	decision, program, text string
}

func rows(t testing.TB) (all []row) {
	t.Helper()
	data, err := os.ReadFile("testdata/commands.txt")
	if err != nil {
		t.Fatal(err)
	}
	for i, line := range strings.Split(string(data), "\n") {
		if line == "" || line[0] == '#' {
			continue
		}
		decision, rest, _ := strings.Cut(line, " ")
		program, text, ok := strings.Cut(strings.TrimLeft(rest, " "), " ")
		if !ok || decision != "ask" && decision != "allow" {
			t.Fatalf("line %d: want DECISION PROGRAM COMMAND, got %q", i+1, line)
		}
		text = strings.TrimLeft(text, " ")
		if s, err := strconv.Unquote(text); err == nil && text[0] == '"' {
			text = s
		}
		all = append(all, row{i + 1, decision, program, text})
	}
	return all
}

// Every command of the corpus is read as it says: what is allowed and what isn't,
// which program is seen, and whether the reader knows that it didn't see all.
func TestCommands(t *testing.T) {
	for _, r := range rows(t) {
		a := Parse(r.text)
		if a.ReadOnly != (r.decision == "allow") {
			t.Errorf("line %d: %q: ReadOnly is %v (%s), want %s", r.line, r.text, a.ReadOnly, a.Why, r.decision)
		}
		program, doubtful := strings.CutSuffix(r.program, "?")
		if a.Complete == doubtful {
			t.Errorf("line %d: %q: Complete is %v (%s)", r.line, r.text, a.Complete, a.Unclear)
		}
		if program != "" && program != "-" && !slices.Contains(a.Programs, program) {
			t.Errorf("line %d: %q: %s is not among %q", r.line, r.text, program, a.Programs)
		}
		check(t, r.text, a)
	}
}

// check is what holds of every analysis.
func check(t testing.TB, text string, a Analysis) {
	t.Helper()
	switch {
	case a.Complete != (a.Unclear == ""), a.ReadOnly != (a.Why == ""):
		t.Errorf("%q: says no and why not, or yes and why not: %+v", text, a)
	case a.ReadOnly && (!a.Complete || len(a.Simple) == 0 || len(a.Named) != 1 || a.Named[0] != a.Simple[0]):
		t.Errorf("%q: more is allowed than is understood: %+v", text, a)
	case a.Complete && len(a.Named) == 0 && len(a.Simple) > 0:
		t.Errorf("%q: runs something and names nothing: %+v", text, a)
	}
	for _, name := range a.Named {
		if !slices.Contains(a.Programs, name) || !usualName(name) {
			t.Errorf("%q: names %q: %+v", text, name, a)
		}
	}
	for _, w := range strings.Fields(text) {
		if !a.Complete && usualName(w) && !strings.ContainsAny(w, ":@%") && !slices.Contains(a.Programs, w) {
			t.Errorf("%q: isn't understood, and %q isn't among the programs: %+v", text, w, a)
		}
	}
	if a.Simple == nil || strings.ContainsRune(text, 0) {
		return
	}
	again := Parse(Quote(a.Simple))
	if diff := cmp.Diff(a.Simple, again.Simple); diff != "" && a.Complete {
		t.Errorf("%q quoted is %q, and reads otherwise (-want +got):\n%s", text, Quote(a.Simple), diff)
	}
	if a.ReadOnly && !again.ReadOnly && !slices.ContainsFunc(a.Simple, func(s string) bool { return strings.ContainsRune(s, '\n') }) {
		t.Errorf("%q is allowed, quoted it is not: %s", text, again.Why)
	}
}

func TestPrograms(t *testing.T) {
	for _, tt := range []struct {
		text            string
		named, programs []string
	}{
		{"git add . && /bin/RM -f x | git push", []string{"git", "/bin/RM"}, []string{"git", "/bin/RM", "RM", "/bin/rm", "rm"}},
		{"sudo env LANG=C find . -exec sh -c 'rm x' \\;", []string{"sudo", "env", "find", "sh", "rm"}, []string{"sudo", "env", "find", "sh", "rm"}},
		{"eval 'r''m' x-y", []string{"eval"}, []string{"eval", "rm", "x-y", "r", "m"}},
		{"eval -Irm", []string{"eval"}, []string{"eval", "-Irm", "-irm", "Irm", "irm", "rm"}},
		{"x=1", nil, nil},
	} {
		a := Parse(tt.text)
		if diff := cmp.Diff(tt.named, a.Named); diff != "" {
			t.Errorf("%q names (-want +got):\n%s", tt.text, diff)
		}
		if diff := cmp.Diff(tt.programs, a.Programs); diff != "" {
			t.Errorf("%q runs (-want +got):\n%s", tt.text, diff)
		}
	}
}

func TestSimple(t *testing.T) {
	for _, tt := range []struct {
		text string
		want []string
	}{
		{`a 'b c' "d\"e\x" f\ g ''`, []string{"a", "b c", `d"e\x`, "f g", ""}},
		{"a \\\n b", []string{"a", "b"}},
		{`find . -name {} [`, []string{"find", ".", "-name", "{}", "["}},
		{"a=b", nil}, {"a >b", nil}, {"a #b", nil}, {"a;", nil}, {"a $b", nil}, {"a *", nil}, {"a {b,c}", nil}, {"", nil},
	} {
		if diff := cmp.Diff(tt.want, Parse(tt.text).Simple); diff != "" {
			t.Errorf("%q (-want +got):\n%s", tt.text, diff)
		}
	}
}

// What is allowed names nothing that its text doesn't say: no text is too much,
// whatever it is nested in.
func TestNestedAndLong(t *testing.T) {
	for name, text := range map[string]string{
		"parentheses":   strings.Repeat("(", 60000),
		"substitutions": strings.Repeat("$(", 30000),
		"backquotes":    strings.Repeat("`", 60000),
		"keywords":      strings.Repeat("if ", 20000),
		"defaults":      strings.Repeat("${x:-", 12000),
		"commands":      strings.Repeat("a;", 30000) + "rm",
		"finds":         "find" + strings.Repeat(" -exec a ;", 5000) + " -exec rm ;",
		"long":          "echo " + strings.Repeat("x", maxText) + "; rm",
		"shells":        nested(12, "rm x"),
	} {
		a := Parse(text)
		if a.Complete || a.ReadOnly {
			t.Errorf("%s: understood", name)
		}
		if strings.Contains(text, "rm") && !slices.Contains(a.Programs, "rm") {
			t.Errorf("%s: rm is not seen", name)
		}
	}
	if a := Parse("echo '" + strings.Repeat("({", 50) + "'"); !a.Complete {
		t.Errorf("text with a few parentheses: %s", a.Unclear)
	}
}

func nested(n int, text string) string {
	for range n {
		text = Quote([]string{"sh", "-c", text})
	}
	return text
}

func TestQuote(t *testing.T) {
	for want, argv := range map[string][]string{
		"ls -l a.txt":        {"ls", "-l", "a.txt"},
		"'a b' ''":           {"a b", ""},
		`'it'\''s'`:          {"it's"},
		"'$x' '`y`' '*' '~'": {"$x", "`y`", "*", "~"},
		"'if' 'a=b'":         {"if", "a=b"},
	} {
		if got := Quote(argv); got != want {
			t.Errorf("%q: got %s, want %s", argv, got, want)
		}
	}
}

// words runs a text as the arguments of printf, which is part of the shell, where
// no program can be found and no path leads anywhere. The text must not hold a
// slash.
func words(t testing.TB, text string) []string {
	t.Helper()
	cmd := exec.Command("/bin/sh", "-c", `printf '%s\0' `+strings.TrimLeft(text, " \t\n"))
	cmd.Dir, cmd.Env = t.TempDir(), []string{"PATH=/nonexistent"}
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%q: %v", text, err)
	}
	return strings.Split(strings.TrimSuffix(string(out), "\x00"), "\x00")
}

// What the reader says that a program gets is what a real shell gives it.
func sameWords(t testing.TB, text string) {
	t.Helper()
	a := Parse(text)
	if a.Simple == nil || strings.Contains(text, "/") || strings.HasPrefix(a.Simple[0], "-") {
		return
	}
	if diff := cmp.Diff(a.Simple, words(t, text)); diff != "" {
		t.Errorf("%q: the shell reads otherwise (-reader +shell):\n%s", text, diff)
	}
}

func TestTheShellReadsTheSame(t *testing.T) {
	if _, err := os.Stat("/bin/sh"); err != nil {
		t.Skip("there is no /bin/sh here")
	}
	simple := 0
	for _, r := range rows(t) {
		if Parse(r.text).Simple != nil {
			simple++
		}
		sameWords(t, r.text)
	}
	if simple < 100 {
		t.Errorf("only %d commands were compared", simple)
	}
}

// Any words at all, quoted, are these words, to the reader and to a real shell.
func TestQuoteProperty(t *testing.T) {
	piece := rapid.SampledFrom([]string{"a", "é", " ", "'", `"`, `\`, "$", "`", "*", "{a,b}", "~", "#", "=", "\n", "\t", "!", ";", "&", "if", "-", "\u202e"})
	rapid.Check(t, func(rt *rapid.T) {
		argv := make([]string, rapid.IntRange(1, 4).Draw(rt, "n"))
		for i := range argv {
			argv[i] = strings.Join(rapid.SliceOfN(piece, 0, 6).Draw(rt, "word"), "")
		}
		text := Quote(argv)
		if !strings.Contains(text, "\u202e") {
			if diff := cmp.Diff(argv, Parse(text).Simple); diff != "" {
				rt.Fatalf("%s (-want +got):\n%s", text, diff)
			}
		}
		if strings.HasPrefix(argv[0], "-") {
			return
		}
		if diff := cmp.Diff(argv, words(t, text)); diff != "" {
			rt.Fatalf("%s: the shell reads otherwise (-want +got):\n%s", text, diff)
		}
	})
}

// FuzzParse: nothing is allowed that isn't exactly what a real shell makes of it.
func FuzzParse(f *testing.F) {
	for _, r := range rows(f) {
		f.Add(r.text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		a := Parse(text)
		check(t, text, a)
		sameWords(t, text)
	})
}

func TestReadOnlyProgramsAreDocumented(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", "commands.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range ReadOnlyPrograms() {
		if !strings.Contains(string(page), "| `"+name+"` |") {
			t.Errorf("docs/commands.md has no line for %s", name)
		}
	}
}

func BenchmarkParseCommand(b *testing.B) {
	const text = `cd src && git add -A . && git commit -m "a message of a usual length" | tee log.txt; find . -name '*.go' -exec grep -n TODO {} \; | xargs -n 1 sh -c 'rm -f "$1"' _`
	if a := Parse(text); !a.Complete {
		b.Fatal(a.Unclear)
	}
	b.ReportAllocs()
	for b.Loop() {
		Parse(text)
	}
	b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N), "us/command")
}
