package process

import (
	"fmt"
	"io"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"
)

func TestBoundedKeepsBeginningAndEnd(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limit := rapid.IntRange(2, 40).Draw(t, "limit")
		chunks := rapid.SliceOfN(rapid.SliceOfN(rapid.Byte(), 0, 60), 0, 6).Draw(t, "chunks")
		if rapid.Bool().Draw(t, "text") {
			for i := range chunks {
				chunks[i] = []byte(rapid.StringOf(rapid.SampledFrom([]rune("aä€😀"))).Draw(t, "chunk"))
			}
		}
		b := newBounded(limit)
		var all []byte
		for _, c := range chunks {
			b.write(c)
			all = append(all, c...)
		}
		text, truncated := b.text()
		half := limit / 2
		if truncated != (len(all) > 2*half) || !utf8.ValidString(text) {
			t.Fatalf("%d bytes, limit %d: truncated %t, %q", len(all), limit, truncated, text)
		}
		if !truncated {
			if text != printable(all) {
				t.Fatalf("%q became %q", all, text)
			}
			return
		}
		var left int
		head, rest, ok := strings.Cut(text, "\n[… ")
		if _, err := fmt.Sscanf(rest, "%d bytes left out …]", &left); err != nil || !ok {
			t.Fatalf("no mark in %q", text)
		}
		_, tail, _ := strings.Cut(rest, "…]\n")
		if utf8.Valid(all) {
			if !strings.HasPrefix(string(all), head) || !strings.HasSuffix(string(all), tail) ||
				len(head)+left+len(tail) != len(all) || half-len(head) > 3 || half-len(tail) > 3 {
				t.Fatalf("%q, limit %d, became %q", all, limit, text)
			}
		}
	})
}

// What a filter takes out is not there to be cut in half.
func TestFilter(t *testing.T) {
	c := Command{
		Argv: []string{"/bin/sh", "-c", "printf aaaaSECRETbbbb"}, Dir: "/", MaxOutput: 12,
		Filter: func(r io.Reader) io.Reader {
			all, err := io.ReadAll(r)
			if err != nil {
				t.Error(err)
			}
			return strings.NewReader(strings.ReplaceAll(string(all), "SECRET", "-"))
		},
	}
	end, err := c.Run(t.Context())
	if err != nil || end.Text != "aaaa-bbbb" || end.Truncated {
		t.Errorf("%+v %v", end, err)
	}
}
