// Package redact is the one redactor that everything which leaves the process
// passes: cards and answers in Slack, event streams, logs, exports. The journal
// is exact, because execution and the transcript need the exact bytes; what
// people and other systems get to see is not.
//
// # What is a secret
//
//   - a literal: our own tokens and keys, given to [New]
//   - a shape: tokens that can be told by their form (Slack, GitHub, AWS, …),
//     JSON Web Tokens, private keys, the password in a URL
//   - a place: the value of a key whose name says so, in JSON, in KEY=value,
//     in a header, after --password
//
// # What becomes of it
//
// A secret becomes its length, ‹secret, 24 characters›: enough to notice that
// something is hidden, and to tell an empty value from a filled one. A value
// that only names where the secret is ($PGPASSWORD) is no secret and stays.
//
// # Invariants
//
//   - No literal of eight or more characters is left in what is returned, nor
//     as much of one where the text was cut.
//   - Redacting twice is redacting once.
//   - What is hidden is told: every placeholder has a [Hit], so a caller that
//     needs the whole truth (a card with an Approve button) knows it isn't whole.
//
// Whoever shortens a text redacts it first: of half a secret the form is lost, and
// half a quoted value has no second quote. What is cut all the same is hidden as
// far as it can be told: a quoted value goes to the end of its line.
//
// It is a net, not a wall: a secret of no known shape in no telling place passes.
package redact

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"
)

// A Kind says how a secret was recognised.
type Kind string

// The kinds of secrets.
const (
	Literal Kind = "literal" // one of our own
	Token   Kind = "token"   // by its form
	Key     Kind = "key"     // a private key
	Named   Kind = "named"   // by the name that it is the value of
	URL     Kind = "url"     // the password of a URL
)

// A Hit is one secret that was hidden.
type Hit struct {
	Start, End int // where its placeholder stands in the text that was returned
	Kind       Kind
	hidden     []string // what it hides, in pieces where one secret stood in another; it goes nowhere but into [Redactor.With]
}

// HidesAny tells whether one of these characters is hidden there, and nothing else
// about it: where they mean something, more than a secret may be hidden.
func (h Hit) HidesAny(chars string) bool {
	return slices.ContainsFunc(h.hidden, func(s string) bool { return strings.ContainsAny(s, chars) })
}

// minLiteral is the length from which a literal is a secret. A shorter one would
// be found everywhere, and hiding it there would give it away.
const minLiteral = 8

// maxPasses bounds how often a text is gone over. Hiding one secret can uncover
// the next (in password=token=x); two passes nearly always do.
const maxPasses = 8

// placeholder is what a secret is replaced with.
func placeholder(secret string) string {
	n := utf8.RuneCountInString(secret)
	if n == 1 {
		return "‹secret, 1 character›"
	}
	return fmt.Sprintf("‹secret, %d characters›", n)
}

// isPlaceholder matches a whole text that was already replaced.
var isPlaceholder = regexp.MustCompile(`^‹secret, \d+ characters?›$`)

// aPlaceholder finds one inside a text.
var aPlaceholder = regexp.MustCompile(`‹secret, \d+ characters?›`)

// A Redactor hides secrets. It is safe for concurrent use.
type Redactor struct {
	literals []string // longest first, so that one that contains another goes whole
}

// New returns a redactor that knows these literal secrets besides the patterns.
func New(secrets ...string) *Redactor {
	r := &Redactor{}
	for _, s := range secrets {
		if s = strings.TrimSpace(s); utf8.RuneCountInString(s) >= minLiteral {
			r.literals = append(r.literals, s)
		}
	}
	slices.SortFunc(r.literals, func(a, b string) int { return cmp.Compare(len(b), len(a)) })
	return r
}

// Text returns s with every secret replaced by its length, and what was hidden.
func (r *Redactor) Text(s string) (string, []Hit) {
	var hits []Hit
	for range maxPasses {
		spans := r.find(s)
		if len(spans) == 0 {
			break
		}
		s, hits = hide(s, spans, hits)
	}
	return s, hits
}

// A span is a secret in the text before it is hidden.
type span struct {
	start, end int
	kind       Kind
}

// find returns the secrets in s, in order, none touching another.
func (r *Redactor) find(s string) []span {
	var found []span
	for _, literal := range r.literals {
		for at := 0; ; {
			i := strings.Index(s[at:], literal)
			if i < 0 {
				break
			}
			found = append(found, span{at + i, at + i + len(literal), Literal})
			at += i + 1
		}
	}
	found = append(found, r.cut(s)...)
	lower := strings.ToLower(s)
	for _, p := range patterns {
		found = append(found, p.find(s, lower)...)
	}
	return union(found)
}

// cut finds what is left of a literal where somebody shortened the text: its first characters at the end, in front of
// whatever marks the cut, or its last ones at the beginning. Fewer than minLiteral say nothing.
func (r *Redactor) cut(s string) []span {
	var found []span
	end := strings.TrimRight(s, cutMarks)
	start := len(s) - len(strings.TrimLeft(s, cutMarks))
	for _, literal := range r.literals {
		if n := overlap(end, literal); n > 0 {
			found = append(found, span{len(end) - n, len(end), Literal})
		}
		if n := overlap(literal, s[start:]); n > 0 {
			found = append(found, span{start, start + n, Literal})
		}
	}
	return found
}

// cutMarks are what stands where a text was shortened.
const cutMarks = " \t\r\n….[]"

// overlap is how many bytes a ends with that b begins with, if they are enough characters to say something.
func overlap(a, b string) int {
	for n := min(len(a), len(b)); n >= minLiteral; n-- {
		if strings.HasSuffix(a, b[:n]) && utf8.RuneCountInString(b[:n]) >= minLiteral {
			return n
		}
	}
	return 0
}

// With returns a redactor that hides, besides, what was hidden in another text: for other words about the same, where
// the same secret may stand in a place that doesn't give it away, or be cut off.
func (r *Redactor) With(hits []Hit) *Redactor {
	if len(hits) == 0 {
		return r
	}
	secrets := slices.Clone(r.literals)
	for _, h := range hits {
		secrets = append(secrets, h.hidden...)
	}
	return New(secrets...)
}

// union sorts spans and joins those that overlap; the first one's kind stays.
func union(spans []span) []span {
	slices.SortStableFunc(spans, func(a, b span) int { return cmp.Compare(a.start, b.start) })
	joined := spans[:0]
	for _, s := range spans {
		if n := len(joined); n > 0 && s.start < joined[n-1].end {
			joined[n-1].end = max(joined[n-1].end, s.end)
			continue
		}
		joined = append(joined, s)
	}
	return joined
}

// hide replaces the spans of s. Earlier hits move along, or are swallowed by a
// span that they overlap.
func hide(s string, spans []span, earlier []Hit) (string, []Hit) {
	for _, h := range earlier {
		spans = absorb(spans, h)
	}
	spans = union(spans)
	var b strings.Builder
	var hits []Hit
	at := 0
	copyTo := func(end int) {
		for _, h := range earlier {
			if h.Start >= at && h.End <= end {
				shift := b.Len() - at
				h.Start, h.End = h.Start+shift, h.End+shift
				hits = append(hits, h)
			}
		}
		b.WriteString(s[at:end])
	}
	for _, sp := range spans {
		copyTo(sp.start)
		mark := placeholder(s[sp.start:sp.end])
		hits = append(hits, Hit{b.Len(), b.Len() + len(mark), sp.kind, sp.hidden(s, earlier)})
		b.WriteString(mark)
		at = sp.end
	}
	copyTo(len(s))
	return b.String(), hits
}

// hidden lists what a span of s hides: its own text, and what the placeholders in it hid before.
func (sp span) hidden(s string, earlier []Hit) []string {
	pieces := aPlaceholder.Split(s[sp.start:sp.end], -1)
	for _, h := range earlier {
		if sp.start <= h.Start && h.End <= sp.end {
			pieces = append(pieces, h.hidden...)
		}
	}
	return pieces
}

// absorb widens the spans that cut into an earlier placeholder to all of it: half
// a placeholder says nothing.
func absorb(spans []span, h Hit) []span {
	for i := range spans {
		if spans[i].start < h.End && h.Start < spans[i].end {
			spans[i].start = min(spans[i].start, h.Start)
			spans[i].end = max(spans[i].end, h.End)
		}
	}
	return spans
}
