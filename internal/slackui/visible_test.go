package slackui

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"pgregory.net/rapid"
)

func TestVisible(t *testing.T) {
	for _, c := range []struct{ name, in, want string }{
		{"plain", "printf ok > proof.txt", "printf ok > proof.txt"},
		{"lines and tabs", "a\n\tb\n", "a\n\tb\n"},
		{"bidi", "a\u202Eb", `a\u{202E}b`},
		{"zero width", "a\u200Bb\uFEFF", `a\u{200B}b\u{FEFF}`},
		{"ansi", "\x1b[31mred", `\u{1B}[31mred`},
		{"carriage return", "safe\rrm", `safe\u{D}rm`},
		{"null and delete", "\x00\x7f", `\u{0}\u{7F}`},
		{"c1", "\u0085", `\u{85}`},
		{"invalid bytes", "a\xff\xc3", `a\x{FF}\x{C3}`},
		{"an escape in the original", `a\u{202E}\x{FF}\n`, `a\u{5C}u{202E}\u{5C}x{FF}\n`},
		{"a backslash before an escape", "\\\u202E", `\\u{202E}`},
		{"tag characters", "x\U000E0041", `x\u{E0041}`},
		{"variation selectors", "x\uFE0F\U000E0101", `x\u{FE0F}\u{E0101}`},
		{"private use", "\uE000", `\u{E000}`},
		{"unassigned", "\u0378", `\u{378}`},
		{"line separators", "a\u2028b\u2029", `a\u{2028}b\u{2029}`},
		{"other spaces", "a\u00A0b\u3000c", `a\u{A0}b\u{3000}c`},
		{"hangul fillers", "\u115F\u1160\u3164\uFFA0", `\u{115F}\u{1160}\u{3164}\u{FFA0}`},
		{"blank braille", "\u2800", `\u{2800}`},
		{"soft hyphen", "pass\u00ADword", `pass\u{AD}word`},
		{"grapheme joiner", "a\u034Fb", `a\u{34F}b`},
		{"accents", "e\u0301 \u0928\u092E\u0938\u094D\u0924\u0947", "e\u0301 \u0928\u092E\u0938\u094D\u0924\u0947"},
		{"piled up accents", "a" + strings.Repeat("\u0301", 5), "a\u0301\u0301\u0301" + `\u{301}\u{301}`},
		{"an accent on nothing", "\u0301a \u0301", `\u{301}a \u{301}`},
		{"some spaces", "a       b", "a       b"},
		{"many spaces", "a" + strings.Repeat(" ", 5000) + "rm", "a\\u{20×5000}rm"},
		{"indentation", strings.Repeat(" ", 20) + "x\n+" + strings.Repeat(" ", 12) + "y", strings.Repeat(" ", 20) + "x\n+" + strings.Repeat(" ", 12) + "y"},
		{"far indentation", "\n" + strings.Repeat(" ", 200) + "x", "\n\\u{20×200}x"},
		{"trailing spaces", "a \nb  ", "a\\u{20}\nb\\u{20×2}"},
		{"mixed blanks", "a \t \t \t \t b", "a\\u{20}\\u{9}\\u{20}\\u{9}\\u{20}\\u{9}\\u{20}\\u{9}\\u{20}b"},
		{"line breaks", "a\n\n\nb" + strings.Repeat("\n", 40) + "c", "a\n\n\nb\n\\u{A×40}\nc"},
		{"the marks themselves", `\u{20×3}`, `\u{5C}u{20×3}`},
		{"emoji", "👍 👍🏽", "👍 👍🏽"},
		{"joined emoji", "👩\u200D👩", `👩\u{200D}👩`},
		{"mentions are only text", "<!channel> `x` <@U1>", "<!channel> `x` <@U1>"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, marked := visible(c.in)
			if got != c.want {
				t.Errorf("visible(%q)\n got %q\nwant %q", c.in, got, c.want)
			}
			if marked != (got != c.in) {
				t.Errorf("marked = %v", marked)
			}
		})
	}
}

func TestProse(t *testing.T) {
	for in, want := range map[string]string{
		"⚠\uFE0F done ✅":       "⚠\uFE0F done ✅",
		"👩\u200D💻":             "👩\u200D💻",
		"❤\uFE0F\u200D🔥":       "❤\uFE0F\u200D🔥",
		"a\uFE0Fb\u200Dc":      `a\u{FE0F}b\u{200D}c`,
		"👩\u200Dx":             `👩\u{200D}x`,
		"⚠\uFE0F\uFE0F\u202E":  `⚠\u{FE0F}\u{FE0F}\u{202E}`,
		"👩\u200D\u200D\u200D💻": `👩\u{200D}\u{200D}\u{200D}💻`,
	} {
		if got := prose(in); got != want {
			t.Errorf("prose(%q) = %q, want %q", in, got, want)
		}
	}
}

func TestBeginning(t *testing.T) {
	for _, c := range []struct {
		name         string
		in           string
		chars, lines int
		want         clip
	}{
		{"all", "a\nb\n", 100, 5, clip{text: "a\nb"}},
		{"lines", "a\nb\nc\nd", 100, 2, clip{text: "a\nb", left: 4, lines: 2}},
		{"characters", "äöüß", 2, 5, clip{text: "äö", left: 2, lines: 1}},
		{"not inside an escape", "a\u202Eb", 3, 5, clip{text: `a\u{202E}`, marked: true, left: 1, lines: 1}},
		{"empty", "", 10, 2, clip{}},
		{"only breaks are left", "a\n\n\n\n\n\n", 10, 1, clip{text: "a"}},
	} {
		if got := beginning(c.in, c.chars, c.lines); got != c.want {
			t.Errorf("%s: %+v, want %+v", c.name, got, c.want)
		}
	}
}

func TestShort(t *testing.T) {
	for _, c := range []struct {
		in   string
		max  int
		want string
	}{
		{"abc", 3, "abc"}, {"abcd", 3, "ab…"}, {"äöüß", 3, "äö…"}, {"", 3, ""},
		{"a\nb", 9, `a\u{A}b`}, {"a" + strings.Repeat(" ", 500) + "b", 20, "a\\u{20×500}b"},
	} {
		if got := short(c.in, c.max); got != c.want {
			t.Errorf("short(%q, %d) = %q, want %q", c.in, c.max, got, c.want)
		}
	}
}

var marks = regexp.MustCompile(`\\u\{([0-9A-F]+)\}|\\x\{([0-9A-F]{2})\}|\\u\{20×(\d+)\}|\\u\{9×(\d+)\}|\n\\u\{A×(\d+)\}\n`)

// original undoes visible.
func original(t interface{ Fatalf(string, ...any) }, shown string) string {
	return marks.ReplaceAllStringFunc(shown, func(m string) string {
		g := marks.FindStringSubmatch(m)
		number := func(s string, base int) int {
			n, err := strconv.ParseInt(s, base, 64)
			if err != nil {
				t.Fatalf("mark %q: %v", m, err)
			}
			return int(n)
		}
		switch {
		case g[1] != "":
			return string(rune(number(g[1], 16)))
		case g[2] != "":
			return string([]byte{byte(number(g[2], 16))})
		case g[3] != "":
			return strings.Repeat(" ", number(g[3], 10))
		case g[4] != "":
			return strings.Repeat("\t", number(g[4], 10))
		}
		return strings.Repeat("\n", number(g[5], 10))
	})
}

// checkVisible holds what is promised of shown text.
func checkVisible(t interface{ Fatalf(string, ...any) }, in, shown string, lines bool) {
	if !utf8.ValidString(shown) {
		t.Fatalf("%q is no text", shown)
	}
	combining := 0
	for _, r := range shown {
		if unicode.Is(unicode.M, r) {
			combining++
		} else {
			combining = 0
		}
		if combining > maxCombining {
			t.Fatalf("marks pile up in %q", shown)
		}
		if lines && (r == '\n' || r == '\t') || r == ' ' {
			continue
		}
		if !unicode.IsPrint(r) || hidden(r) {
			t.Fatalf("%U is in %q, shown for %q", r, shown, in)
		}
	}
	if strings.Contains(shown, strings.Repeat(" ", maxIndent+2)) || strings.Contains(shown, "\n\n\n\n") ||
		strings.HasSuffix(shown, " ") || strings.Contains(shown, " \n") {
		t.Fatalf("blanks hide something in %q, shown for %q", shown, in)
	}
	if back := original(t, shown); back != in {
		t.Fatalf("the original can't be told:\n in    %q\n shown %q\n back  %q", in, shown, back)
	}
}

// hostile draws text that tries to hide, to forge and to break out.
func hostile() *rapid.Generator[string] {
	piece := rapid.OneOf(
		rapid.SampledFrom([]string{
			"\u202E", "\u200B", "\u2066", "\x1b[2K", "\r", "\x00", "`", "```", "<!channel>", "<!here>", "<@U0ATTACK>", "<#C0ATTACK>",
			"<https://evil.example|Approve>", "&lt;!channel&gt;", "*", "_", "~", ":white_check_mark:", "<!date^1^{time}|x>", "<!subteam^S0ATTACK>",
			`\u{202E}`, `\u{`, `\x{`, `\`, "\\u{20×5}", "\n\\u{A×9}\n", "\xff", "\u0301", "\u0301\u0301\u0301\u0301", "\U000E0041", "\u2028", "\u3164",
			"\n", "\n\n\n\n\n", "\t", "rm -rf /", "ghp_abcdefghijklmnopqrstuvwxyz0123456789", "password=hunter2", "‹secret, 5 characters›", "👩\u200D👩", "\uFE0F",
		}),
		rapid.Custom(func(t *rapid.T) string { return strings.Repeat(" ", rapid.IntRange(0, 60).Draw(t, "spaces")) }),
		rapid.String(),
	)
	return rapid.Custom(func(t *rapid.T) string {
		return strings.Join(rapid.SliceOfN(piece, 0, 8).Draw(t, "pieces"), "")
	})
}

func TestVisibleProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := hostile().Draw(t, "text")
		shown, _ := visible(in)
		checkVisible(t, in, shown, true)
		line, _ := visibleLine(in)
		checkVisible(t, in, line, false)
		max := rapid.IntRange(2, 40).Draw(t, "max")
		if s := short(in, max); utf8.RuneCountInString(s) > max+20 || strings.ContainsAny(s, "\n\t\r") {
			t.Fatalf("short(%q, %d) = %q", in, max, s)
		}
		if c := beginning(in, max, 3); strings.Count(c.text, "\n") > 2*3 {
			t.Fatalf("beginning(%q) = %+v", in, c)
		}
	})
}

// TestEveryCharacter goes through Unicode: what can't be seen is marked, what can
// be stays. Of the planes in which nothing is assigned it takes samples.
func TestEveryCharacter(t *testing.T) {
	for r := rune(0); r <= unicode.MaxRune; r++ {
		if 0xD800 <= r && r < 0xE000 || r == '\n' || r == '\t' {
			continue
		}
		if r > 0x33FFF && r < 0xDFF00 || r > 0xE1000 {
			r = min(r+256, unicode.MaxRune)
		}
		want := "x" + string(r) + "y"
		if !unicode.IsPrint(r) || unicode.In(r, unicode.Variation_Selector, unicode.Other_Default_Ignorable_Code_Point) || blankLetters[r] {
			want = fmt.Sprintf(`x\u{%X}y`, r)
		}
		if shown, _ := visible("x" + string(r) + "y"); shown != want {
			t.Fatalf("%U is shown as %q, want %q", r, shown, want)
		}
	}
}

func FuzzVisible(f *testing.F) {
	for _, s := range []string{"a\u202Eb", "a        b", "\\u{", "\xff", "\n\n\n\n", "\\u{20}", " \t "} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		shown, _ := visible(s)
		checkVisible(t, s, shown, true)
		line, _ := visibleLine(s)
		checkVisible(t, s, line, false)
		prose(s)
		beginning(s, 20, 3)
		short(s, 20)
	})
}

func TestEnds(t *testing.T) {
	lines := func(from, to int) string {
		var b strings.Builder
		for i := from; i <= to; i++ {
			fmt.Fprintf(&b, "line %d\n", i)
		}
		return b.String()
	}
	for _, c := range []struct {
		name, in, first, last string
		left, lines           int
	}{
		{"short", "a\nb\n", "a\nb", "", 0, 0},
		{"ten lines", lines(1, 10), strings.TrimSuffix(lines(1, 10), "\n"), "", 0, 0},
		{"many lines", lines(1, 100), "line 1\nline 2\nline 3", strings.TrimSuffix(lines(94, 100), "\n"), 715, 90},
		{"a long last line", "a\n" + strings.Repeat("x", 500) + "END", "a\nxxxxxxxx", strings.Repeat("x", 27) + "END", 465, 1},
		{"a long line before it", strings.Repeat("x", 500) + "\nerror: no", strings.Repeat("x", 10), "error: no", 491, 1},
		{"hidden", strings.Repeat("x\n", 30) + "\u202Eend", "x\nx\nx", "x\nx\nx\nx\nx\nx\n\\u{202E}end", 43, 21},
	} {
		t.Run(c.name, func(t *testing.T) {
			first, last := ends(c.in, 100, 10, 60, 7)
			if strings.HasPrefix(c.name, "a long") {
				first, last = ends(c.in, 40, 10, 30, 7)
			}
			if first.text != c.first || last != c.last || first.left != c.left || first.lines != c.lines {
				t.Errorf("%q … %d in %d … %q", first.text, first.left, first.lines, last)
			}
		})
	}
}

// The end is one, no longer than asked for, and what is counted before it makes up the rest.
func TestEndsLoseNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := "a" + rapid.StringOf(rapid.RuneFrom([]rune("ab\né👍"))).Draw(t, "s")
		foot := tail(s, 15, 3)
		if !strings.HasSuffix(s, foot) || strings.Count(strings.TrimRight(foot, "\n"), "\n") > 2 || utf8.RuneCountInString(strings.TrimRight(foot, "\n")) > 15 {
			t.Fatalf("tail(%q) = %q", s, foot)
		}
		oneLine := strings.ReplaceAll(s, "\n", "x")
		if first, last := ends(oneLine, 40, 6, 15, 3); utf8.RuneCountInString(first.text+last)+first.left != utf8.RuneCountInString(oneLine) {
			t.Fatalf("ends(%q) = %+v, %q", oneLine, first, last)
		}
	})
}
