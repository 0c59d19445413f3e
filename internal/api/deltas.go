package api

import (
	"cmp"
	"strings"
)

// A speech is a model's text as it comes. Secrets are told by what stands around them on their line, so a piece is held
// back until its word is complete, and is redacted with all of its line. What was sent adds up to the redacted text, or
// to its beginning: the step that follows has it whole.
//
// A word is redacted with all of its line before it, and all streams wait meanwhile. So lines can't be of any length: what
// comes after maxLine of one waits for the step.
type speech struct {
	line string // the line that isn't complete yet, as the model wrote it
	sent string // what of it was sent, as it was sent
	mute bool   // something came that can't be judged in pieces; the step has to tell it
}

// add takes a piece and returns what can be sent.
func (s *speech) add(v views, piece string) string {
	if s.mute {
		return ""
	}
	s.line += piece
	var out strings.Builder
	for {
		end := strings.IndexByte(s.line, '\n') + 1
		if cmp.Or(end, len(s.line)) > maxLine {
			s.mute, s.line = true, ""
			return out.String()
		}
		if end == 0 {
			break
		}
		out.WriteString(s.take(v, s.line[:end]))
		s.line, s.sent = s.line[end:], ""
	}
	if cut := strings.LastIndexAny(s.line, " \t") + 1; cut > len(s.line)-len(piece) { // a word is complete
		out.WriteString(s.take(v, s.line[:cut]))
	}
	return out.String()
}

// end returns what is left when the text is complete, and forgets it.
func (s *speech) end(v views) string {
	out := s.take(v, s.line)
	*s = speech{}
	return out
}

// maxLine is a long paragraph, in bytes.
const maxLine = 4 << 10

// take returns what the redacted beginning of the line has more than was sent.
func (s *speech) take(v views, raw string) string {
	// A private key goes over several lines.
	s.mute = s.mute || strings.Contains(strings.ToLower(raw), "private key")
	if s.mute {
		return ""
	}
	shown := v.text(raw)
	rest, fits := strings.CutPrefix(shown, s.sent)
	if !fits {
		s.mute = true // what came later hides what was sent before
		return ""
	}
	s.sent = shown
	return rest
}
