package api

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"approvalbot/internal/redact"
)

// However a text is cut into pieces, no secret leaves, and what leaves adds up to the redacted text or to its beginning.
func TestSpeech(t *testing.T) {
	const secret = "our-own-secret-token"
	v := views{redact.New(secret)}
	words := rapid.SampledFrom([]string{secret, "password=", "hunter2hunter2", " ", "  ", "\n", "word", "xoxb-123456789012-abcdef", "Authorization: Bearer abcdefgh12345678", "é", "‹", "-----BEGIN PRIVATE KEY-----", "MIIabc", "postgres://u:pw12345678@h/x"})
	rapid.Check(t, func(t *rapid.T) {
		text := strings.Join(rapid.SliceOfN(words, 0, 12).Draw(t, "words"), "")
		var s speech
		var sent strings.Builder
		for rest := text; rest != ""; {
			n := rapid.IntRange(1, len(rest)).Draw(t, "n")
			sent.WriteString(s.add(v, rest[:n]))
			rest = rest[n:]
		}
		whole := !s.mute
		sent.WriteString(s.end(v))
		want := v.text(text)
		for _, hidden := range []string{secret, "xoxb-123456789012-abcdef", "hunter2hunter2", "MIIabc", "pw12345678"} {
			if strings.Contains(sent.String(), hidden) && !strings.Contains(want, hidden) {
				t.Fatalf("a secret left: %q of %q", sent.String(), text)
			}
		}
		if whole && !strings.Contains(strings.ToLower(text), "private key") && sent.String() != want {
			t.Fatalf("%q was said as %q, want %q", text, sent.String(), want)
		}
	})
}

// A line without an end isn't redacted again and again for each of its words, while everybody waits: the step tells it.
func TestSpeechOfALongLine(t *testing.T) {
	v := views{redact.New()}
	for _, piece := range []string{"word ", "word", strings.Repeat("word ", maxLine)} {
		var s speech
		sent, seen := s.add(v, "A line.\n"), 0
		for range 2 * maxLine {
			seen = max(seen, len(s.line))
			sent += s.add(v, piece)
		}
		sent += s.add(v, "\nAnother line.\n")
		if !s.mute || seen > maxLine || len(sent) > len("A line.\n")+maxLine || !strings.HasPrefix(sent, "A line.\n") || s.end(v) != "" {
			t.Errorf("of a line of %.10q: %d bytes were sent, up to %d were kept", piece, len(sent), seen)
		}
	}
}
