package actions

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"html"
	"io"
	"net/url"
	"strings"
	"testing"
	"testing/iotest"

	"pgregory.net/rapid"
)

// awkward has characters that every encoding writes differently.
const awkward = `made-up/secret+"it's" <é>&%=`

// encodings are what programs do with a secret before they print it.
var encodings = map[string]func(string) string{
	"as it is": func(s string) string { return s },
	"base64":   func(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) },
	"base64 of more": func(s string) string {
		return base64.StdEncoding.EncodeToString([]byte("user:"+s+":rest")) + " " + base64.StdEncoding.EncodeToString([]byte("u:"+s+"!"))
	},
	"base64 for URLs": func(s string) string { return base64.RawURLEncoding.EncodeToString([]byte("x" + s)) },
	"wrapped base64": func(s string) string {
		text, out := base64.StdEncoding.EncodeToString([]byte("some words before it "+s)), ""
		for len(text) > 20 {
			out, text = out+text[:20]+"\r\n    ", text[20:]
		}
		return out + text
	},
	"hex":            func(s string) string { return hex.EncodeToString([]byte(s)) },
	"HEX":            func(s string) string { return strings.ToUpper(hex.EncodeToString([]byte(s))) },
	"hex dump":       func(s string) string { return strings.Trim(fmt.Sprintf("% x", s), "") },
	"query":          url.QueryEscape,
	"path":           url.PathEscape,
	"percent":        percent,
	"small percent":  func(s string) string { return lowerEscapes(url.QueryEscape(s)) },
	"JSON":           func(s string) string { b, _ := json.Marshal(s); return string(b) },
	"ASCII JSON":     func(s string) string { return `"` + asciiJSON(s) + `"` },
	"Go":             func(s string) string { return fmt.Sprintf("%q", s) },
	"HTML":           html.EscapeString,
	"a shell's":      func(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" },
	"broken up":      func(s string) string { return s[:5] + "\n\t" + s[5:10] + "\n" + s[10:] },
	"twice in a row": func(s string) string { return s + s },
}

// left is what of a secret is left in a text: the longest piece of any of its forms that still says something.
func left(text, secret string) string {
	squeezed := string(squeeze([]byte(text), nil))
	for _, form := range forms(secret) {
		form = string(squeeze([]byte(form), nil))
		for i := 0; i+10 <= len(form); i++ {
			if strings.Contains(squeezed, form[i:i+10]) {
				return form[i : i+10]
			}
		}
	}
	return ""
}

func scrubbed(t testing.TB, r io.Reader, secrets ...string) string {
	t.Helper()
	out, err := io.ReadAll(newScrubber(r, secrets))
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

func TestScrubber(t *testing.T) {
	for name, encode := range encodings {
		t.Run(name, func(t *testing.T) {
			text := "before " + encode(awkward) + " after"
			for _, r := range []io.Reader{
				strings.NewReader(text), iotest.OneByteReader(strings.NewReader(text)), iotest.DataErrReader(strings.NewReader(text)),
				strings.NewReader(strings.Repeat("long ", 20_000) + text),
			} {
				got := scrubbed(t, r, awkward)
				if piece := left(got, awkward); piece != "" {
					t.Errorf("%q is left in %.200q", piece, got)
				}
				if !strings.Contains(got, "before ") || !strings.HasSuffix(got, " after") || !strings.Contains(got, "‹secret, 28 characters›") {
					t.Errorf("got %.200q", got)
				}
			}
		})
	}
}

// Whatever else is written stays as it was.
func TestScrubberLeavesTheRest(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringOf(rapid.RuneFrom([]rune("abcXYZ019 \n\t=+/é"))).Draw(t, "text")
		r := iotest.HalfReader(strings.NewReader(text))
		out, err := io.ReadAll(newScrubber(r, []string{"made-up-secret-42"}))
		if err != nil || string(out) != text {
			t.Errorf("%q became %q (%v)", text, out, err)
		}
	})
}

// However the output comes, in whatever pieces, and wherever the secrets stand: nothing of them is left.
func TestScrubberInPieces(t *testing.T) {
	secrets := []string{"made-up-secret-42", "secret-42-and-more-of-it", "0123456789abcdef0123"}
	rapid.Check(t, func(t *rapid.T) {
		words := rapid.SliceOf(rapid.SampledFrom(append([]string{" ", "x", "\n", "made-up", "0123", "é"}, secrets...))).Draw(t, "words")
		text := strings.Join(words, "")
		out, err := io.ReadAll(newScrubber(&pieces{text: []byte(text), next: func() int { return rapid.IntRange(1, 9).Draw(t, "n") }}, secrets))
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range secrets {
			if strings.Contains(string(squeeze(out, nil)), s) {
				t.Errorf("%q is left in %q of %q", s, out, text)
			}
		}
	})
}

type pieces struct {
	text []byte
	next func() int
}

func (p *pieces) Read(b []byte) (int, error) {
	if len(p.text) == 0 {
		return 0, io.EOF
	}
	n := copy(b[:min(len(b), p.next())], p.text)
	p.text = p.text[n:]
	return n, nil
}

// A program that is stopped while it writes leaves a beginning.
func TestScrubberAtTheEnd(t *testing.T) {
	got := scrubbed(t, strings.NewReader("it is made-up-sec"), "made-up-secret-42")
	if strings.Contains(got, "made-up") {
		t.Errorf("got %q", got)
	}
	if got := scrubbed(t, strings.NewReader("it is made"), "made-up-secret-42"); got != "it is made" {
		t.Errorf("got %q", got)
	}
}

// A key of several lines is found as a whole and line by line.
func TestScrubberOfAKey(t *testing.T) {
	key := "-----BEGIN MADE UP-----\nQUJDREVGR0hJSktMTU5PUFFSU1RVVldYWVo=\nMTIzNDU2Nzg5MDEyMzQ1Njc4OTA=\n-----END MADE UP-----"
	for _, text := range []string{key, "> QUJDREVGR0hJSktMTU5PUFFSU1RVVldYWVo=\n> MTIzNDU2Nzg5MDEyMzQ1Njc4OTA=\n"} {
		if got := scrubbed(t, strings.NewReader(text), key); strings.Contains(got, "QUJDRE") || strings.Contains(got, "MTIzNDU") {
			t.Errorf("got %q", got)
		}
	}
}

// White space without end is not kept back without end.
func TestScrubberOfBlanks(t *testing.T) {
	s := newScrubber(strings.NewReader("made-up"+strings.Repeat(" ", 2*maxHeld)+"end"), []string{"made-up-secret-42"})
	out, err := io.ReadAll(s)
	if err != nil || !bytes.HasSuffix(out, []byte("end")) || len(out) != 2*maxHeld+10 || cap(s.held) > 2*maxHeld {
		t.Errorf("%v, %d bytes, %d held", err, len(out), cap(s.held))
	}
}

func FuzzScrubber(f *testing.F) {
	f.Add("a", "made-up-secret-42", "b")
	f.Add("", "x\ny\tz1", "\xff")
	f.Fuzz(func(t *testing.T, before, secret, after string) {
		if len(strings.TrimSpace(secret)) < minSecret || len(secret) > 200 || strings.ContainsRune(secret, 0) {
			t.Skip()
		}
		for name, encode := range map[string]func(string) string{"plain": encodings["as it is"], "base64": encodings["base64"], "query": url.QueryEscape} {
			out := scrubbed(t, iotest.HalfReader(strings.NewReader(before+encode(secret)+after)), secret)
			want := string(squeeze([]byte(secret), nil))
			if len(want) >= minSecret && !strings.Contains("‹secret,characters›0123456789", want) && strings.Contains(string(squeeze([]byte(out), nil)), want) {
				t.Errorf("%s: %q is left in %q", name, secret, out)
			}
		}
	})
}

// What it costs: a key of forty lines, and a megabyte of output.
func BenchmarkScrubber(b *testing.B) {
	key := strings.Repeat("QUJDREVGR0hJSktMTU5PUFFSU1RVVldYWVo0123456789abcdefghijklmnop+/=\n", 40)
	text := strings.Repeat("time=2026-01-02T15:04:05Z level=INFO msg=\"the deployment goes on\" pod=shop-web-5d8f\n", 12_000)
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		if _, err := io.Copy(io.Discard, newScrubber(strings.NewReader(text), []string{key})); err != nil {
			b.Fatal(err)
		}
	}
}

// How shells, sed and escapes of single bytes write a secret, as they do write it.
func TestScrubberKnowsShellsAndBytes(t *testing.T) {
	const secret = `ma"de/up$x y` + "`z"
	for name, written := range map[string]string{
		"export -p":       `ma\"de/up\$x y\` + "`z",
		"printf %q":       `ma\"de/up\$x\ y\` + "`z",
		"for sed":         `ma"de\/up$x y` + "`z",
		"bytes of a URL":  "%6d%61%22%64%65%2f%75%70%24%78%20%79%60%7a",
		"BYTES of a URL":  "%6D%61%22%64%65%2F%75%70%24%78%20%79%60%7A",
		"bytes in quotes": `\x6d\x61\x22\x64\x65\x2f\x75\x70\x24\x78\x20\x79\x60\x7a`,
	} {
		got, err := io.ReadAll(newScrubber(strings.NewReader("before "+written+" after"), []string{secret}))
		if err != nil || !strings.HasPrefix(string(got), "before ‹secret, 14 characters›") || !strings.HasSuffix(string(got), " after") || strings.Contains(string(got), written[4:10]) {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
}
