package slackui

import (
	"strings"
	"testing"
	"unicode"
)

func TestSaysStop(t *testing.T) {
	for text, want := range map[string]bool{
		"stop": true, "STOP": true, " Stop! ": true, "“stop”": true, "停止": true, "停止。": true, "停": true, "stop.\n": true,
		"": false, "stopp": false, "stop it": false, "don't stop": false, "stop-gap": false, "停止吧": false, "!": false,
	} {
		if got := saysStop(text); got != want {
			t.Errorf("%q: %v", text, got)
		}
	}
}

// Whatever surrounds it, letters or digits beside the word make it another text.
func FuzzSaysStop(f *testing.F) {
	f.Add("!", "?")
	f.Add("no ", "")
	f.Add("", " now")
	f.Fuzz(func(t *testing.T, before, after string) {
		says := strings.ContainsFunc(before+after, func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) })
		if got := saysStop(before + "stop" + after); got == says {
			t.Errorf("%q stop %q: %v", before, after, got)
		}
	})
}
