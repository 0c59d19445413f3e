package spelling

import (
	"testing"

	"pgregory.net/rapid"
)

func TestDidYouMean(t *testing.T) {
	known := []string{"shell", "read_file", "mcp__github__merge", "mcp__github__list", "mcp__linear__list"}
	for name, want := range map[string]string{
		"shel":      " Did you mean shell?",
		"readfile":  " Did you mean read_file?",
		"Read_File": " Did you mean read_file?",
		"merge":     " Did you mean mcp__github__merge?",
		"list":      "", // two of them
		"sh":        "",
		"weather":   "",
		"":          "",
	} {
		if got := DidYouMean(name, known); got != want {
			t.Errorf("%q: %q, want %q", name, got, want)
		}
	}
}

// The distance is one, whatever it is between: as far there as back, nothing only between equals, and no further than
// one changes.
func TestDistance(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.StringMatching("[A-D]{0,8}")
		a, b, c := name.Draw(t, "a"), name.Draw(t, "b"), name.Draw(t, "c")
		if Distance(a, b) != Distance(b, a) || (Distance(a, b) == 0) != (a == b) || Distance(a, c) > Distance(a, b)+Distance(b, c) {
			t.Fatalf("%q %q %q: %d %d %d", a, b, c, Distance(a, b), Distance(b, a), Distance(a, c))
		}
		at := rapid.IntRange(0, len(a)).Draw(t, "at")
		if got := Distance(a, a[:at]+"x"+a[at:]); got != 1 {
			t.Fatalf("one letter more: %d", got)
		}
	})
}
