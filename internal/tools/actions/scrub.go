package actions

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"html"
	"io"
	"net/url"
	"slices"
	"strings"
	"unicode/utf8"
)

// A scrubber takes secrets out of what a program writes, before anything of it is kept or cut. It is a reader around the
// program's output.
//
// A secret is found as it is, in the usual encodings (base64 at any offset in what was encoded, hexadecimal, JSON, URLs,
// HTML, escapes of single bytes, a shell's quoting), and wherever white space was put into it: base64 breaks its lines, tools indent. So text is
// compared without its white space. What a program does beyond that (encrypts it, reverses it, prints it in pieces with
// words between) isn't found: an action should run programs that have no reason to.
type scrubber struct {
	from     io.Reader
	patterns []pattern
	longest  int               // bytes of the longest pattern
	begin    map[[4]byte][]int // the patterns that begin so, the longest first
	maybe    [1 << 16]bool     // the first two bytes of those
	held     []byte            // read, and not yet known to be free of secrets
	ready    []byte            // known to be
	err      error             // how reading ended
	chunk    []byte
}

// A pattern is one form of a secret, without white space.
type pattern struct {
	form []byte
	mark []byte // what stands in its place
}

func newScrubber(from io.Reader, secrets []string) *scrubber {
	s := &scrubber{from: from, chunk: make([]byte, 32<<10)}
	seen := map[string]bool{}
	for _, secret := range secrets {
		for _, whole := range parts(secret) {
			mark := []byte(fmt.Sprintf("‹secret, %d characters›", utf8.RuneCountInString(whole)))
			for _, form := range forms(whole) {
				if form = string(squeeze([]byte(form), nil)); len(form) >= minSecret && !seen[form] {
					seen[form] = true
					s.patterns = append(s.patterns, pattern{[]byte(form), mark})
				}
			}
		}
	}
	// The longest first: a form that contains another one goes as a whole.
	slices.SortStableFunc(s.patterns, func(a, b pattern) int { return cmp.Compare(len(b.form), len(a.form)) })
	s.begin = map[[4]byte][]int{}
	for i, p := range s.patterns {
		s.longest = max(s.longest, len(p.form))
		head := [4]byte(p.form)
		s.begin[head] = append(s.begin[head], i)
		s.maybe[int(head[0])<<8|int(head[1])] = true
	}
	return s
}

// parts are a secret, and the lines of one that has several: a program may print a key line by line. The lines around a
// key are the same for everybody.
func parts(secret string) []string {
	all := []string{secret}
	lines := strings.Split(secret, "\n")
	for _, line := range lines {
		line = strings.TrimSpace(line)
		if len(lines) > 1 && len(line) >= 2*safeSecret && !strings.HasPrefix(line, "-----") {
			all = append(all, line)
		}
	}
	if trimmed := strings.TrimSpace(secret); trimmed != secret {
		all = append(all, trimmed)
	}
	return all
}

// forms are the ways in which a secret is usually written.
func forms(secret string) []string {
	all := []string{
		secret, url.QueryEscape(secret), url.PathEscape(secret), percent(secret), html.EscapeString(secret),
		strings.ReplaceAll(secret, "'", `'\''`), strings.ReplaceAll(secret, "'", `'"'"'`), strings.ReplaceAll(secret, "'", `\'`),
		fmt.Sprintf("%q", secret)[1 : len(fmt.Sprintf("%q", secret))-1], asciiJSON(secret),
		strings.ReplaceAll(secret, "/", `\/`), backslashed(secret, "\"$`\\"), backslashed(secret, ""), // export -p, printf %q
		hex.EncodeToString([]byte(secret)), strings.ToUpper(hex.EncodeToString([]byte(secret))),
	}
	for _, escape := range []string{"%%%02x", "%%%02X", `\x%02x`, `\x%02X`} {
		var b strings.Builder
		for _, c := range []byte(secret) {
			fmt.Fprintf(&b, escape, c)
		}
		all = append(all, b.String())
	}
	for _, escape := range []bool{true, false} {
		var b bytes.Buffer
		e := json.NewEncoder(&b)
		e.SetEscapeHTML(escape)
		if e.Encode(secret) == nil {
			quoted := strings.TrimSpace(b.String())
			all = append(all, quoted[1:len(quoted)-1], strings.ReplaceAll(quoted[1:len(quoted)-1], "/", `\/`))
		}
	}
	for _, f := range slices.Clone(all) { // %2f is %2F, \u00e9 is \u00E9
		all = append(all, lowerEscapes(f))
	}
	return append(all, base64s(secret)...)
}

// backslashed is s with a backslash before each of these characters; none are all that mean something to a shell.
func backslashed(s, these string) string {
	var b strings.Builder
	for _, c := range s {
		if these == "" && c < utf8.RuneSelf && !strings.ContainsRune(unquoted, c) || strings.ContainsRune(these, c) {
			b.WriteByte('\\')
		}
		b.WriteRune(c)
	}
	return b.String()
}

// percent is every byte of s but letters and digits as in a URL.
func percent(s string) string {
	var b strings.Builder
	for _, c := range []byte(s) {
		if c >= '0' && c <= '9' || c >= 'A' && c <= 'Z' || c >= 'a' && c <= 'z' {
			b.WriteByte(c)
			continue
		}
		fmt.Fprintf(&b, "%%%02X", c)
	}
	return b.String()
}

// asciiJSON is s as a JSON string of ASCII only, as many languages write it.
func asciiJSON(s string) string {
	quoted := strings.Trim(fmt.Sprintf("%+q", s), `"`)
	return strings.NewReplacer(`\x`, `\u00`).Replace(quoted)
}

// lowerEscapes writes the digits of %2F in small letters.
func lowerEscapes(s string) string {
	b := []byte(s)
	for i := 0; i+2 < len(b); i++ {
		if b[i] == '%' {
			copy(b[i+1:i+3], bytes.ToLower(b[i+1:i+3]))
		}
	}
	return string(b)
}

// base64s are the texts that stand in any base64 of anything with the secret in it. Where it begins in a group of three
// bytes decides how it looks; the characters that depend on its neighbours are left out.
func base64s(secret string) []string {
	var all []string
	for _, enc := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
		for before := range 3 {
			text := enc.EncodeToString(append(make([]byte, before), secret...))
			first := (before*8 + 5) / 6 // characters that hold something of what stands before
			last := (before + len(secret)) * 8 / 6
			if first < last && last-first >= 2*minSecret-2 {
				all = append(all, text[first:last])
			}
		}
	}
	return all
}

// squeeze takes the white space out. at, if it isn't nil, gets the position of each byte that stays.
func squeeze(text []byte, at *[]int) []byte {
	out := make([]byte, 0, len(text))
	for i, c := range text {
		if c == ' ' || c >= '\t' && c <= '\r' {
			continue
		}
		out = append(out, c)
		if at != nil {
			*at = append(*at, i)
		}
	}
	return out
}

// maxHeld bounds what is kept back: white space without end would be.
const maxHeld = 256 << 10

// Read implements [io.Reader].
func (s *scrubber) Read(p []byte) (int, error) {
	for len(s.ready) == 0 && s.err == nil {
		n, err := s.from.Read(s.chunk)
		s.held = append(s.held, s.chunk[:n]...)
		s.err = err
		s.scrub(err != nil)
	}
	if len(s.ready) == 0 {
		return 0, s.err
	}
	n := copy(p, s.ready)
	s.ready = s.ready[n:]
	return n, nil
}

// scrub moves what is held to what is ready, secrets replaced; all of it at the end, else all but what a secret may still
// become of.
func (s *scrubber) scrub(end bool) {
	var at []int
	text := squeeze(s.held, &at)
	hits := s.find(text)
	keep := max(0, len(text)-s.longest+1) // from here on a secret may only have begun
	if end || len(s.held) > maxHeld {
		hits, keep = append(hits, s.begun(text)...), len(text)
	}
	done := 0
	for _, h := range union(hits) {
		if h.end > keep {
			keep = min(keep, h.start) // it may go on, or another one may begin in it
			break
		}
		s.ready = append(s.ready, s.held[done:at[h.start]]...)
		s.ready = append(s.ready, h.mark...)
		done = at[h.end-1] + 1
	}
	rest := len(s.held)
	if keep < len(text) {
		rest = max(done, at[keep])
	}
	s.ready = append(s.ready, s.held[done:rest]...)
	s.held = append(s.held[:0], s.held[rest:]...)
}

// A hit is a secret in squeezed text.
type hit struct {
	start, end int
	mark       []byte
}

// union joins hits that overlap, so that nothing of one is left behind another.
func union(hits []hit) []hit {
	slices.SortStableFunc(hits, func(a, b hit) int { return cmp.Or(cmp.Compare(a.start, b.start), cmp.Compare(b.end, a.end)) })
	var joined []hit
	for _, h := range hits {
		if n := len(joined); n > 0 && h.start < joined[n-1].end {
			joined[n-1].end = max(joined[n-1].end, h.end)
			continue
		}
		joined = append(joined, h)
	}
	return joined
}

// find gives the secrets in a text.
func (s *scrubber) find(text []byte) []hit {
	var hits []hit
	for i := 0; i+len([4]byte{}) <= len(text); i++ {
		if !s.maybe[int(text[i])<<8|int(text[i+1])] {
			continue
		}
		for _, n := range s.begin[[4]byte(text[i:])] {
			if p := s.patterns[n]; bytes.HasPrefix(text[i:], p.form) {
				hits = append(hits, hit{i, i + len(p.form), p.mark})
				break // the others that fit here are shorter
			}
		}
	}
	return hits
}

// begun is the beginning of a secret at the end of a text: the program was ended while it wrote it.
func (s *scrubber) begun(text []byte) []hit {
	var hits []hit
	for _, p := range s.patterns {
		if len(p.form) <= safeSecret {
			continue
		}
		for at := max(0, len(text)-len(p.form)); ; at++ {
			i := bytes.Index(text[at:], p.form[:safeSecret])
			if i < 0 {
				break
			}
			if at += i; bytes.HasPrefix(p.form, text[at:]) {
				hits = append(hits, hit{at, len(text), p.mark})
				break
			}
		}
	}
	return hits
}
