package redact

import (
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"
)

// A pattern finds secrets of one sort. Its group named "secret" is what is
// hidden; without one it is the whole match.
type pattern struct {
	kind  Kind
	re    *regexp.Regexp
	group int
	keep  func(value string) bool // not a secret after all; may be nil
	needs []string                // one of these is in every match, in lower case
	signs string                  // and one of these characters
}

func newPattern(kind Kind, expr string, keep func(string) bool) pattern {
	re := regexp.MustCompile(expr)
	return pattern{kind: kind, re: re, group: max(re.SubexpIndex("secret"), 0), keep: keep}
}

// needing names what every match contains, so that a text without it is passed
// over quickly. Most texts are.
func (p pattern) needing(words ...string) pattern {
	p.needs = words
	return p
}

func (p pattern) having(signs string) pattern {
	p.signs = signs
	return p
}

// find returns the matches in s; lower is s in lower case.
func (p pattern) find(s, lower string) []span {
	if p.needs != nil && !p.needed(lower) {
		return nil
	}
	if p.kind == Key { // the one that goes over several lines
		return p.findIn(s, 0, nil)
	}
	// Line by line: short texts are what the regexp package is fast with, and
	// most lines are passed over.
	var found []span
	at := 0
	for line := range strings.Lines(s) {
		if p.needs == nil || p.needed(strings.ToLower(line)) {
			found = p.findIn(strings.TrimRight(line, "\r\n"), at, found)
		}
		at += len(line)
	}
	return found
}

func (p pattern) needed(lower string) bool {
	return slices.ContainsFunc(p.needs, func(w string) bool { return strings.Contains(lower, w) }) &&
		(p.signs == "" || strings.ContainsAny(lower, p.signs))
}

// findIn adds the matches in a part of the text that begins at the given offset.
func (p pattern) findIn(s string, offset int, found []span) []span {
	for _, m := range p.re.FindAllStringSubmatchIndex(s, -1) {
		start, end := m[2*p.group], m[2*p.group+1]
		if start < 0 || start == end {
			continue
		}
		if value := s[start:end]; isPlaceholder.MatchString(value) || p.keep != nil && p.keep(value) {
			continue
		}
		found = append(found, span{offset + start, offset + end, p.kind})
	}
	return found
}

// tokenForms are the tokens that can be told by their form. They are long and
// begin with a name, so that a commit hash, a UUID or a path never is one.
var tokenForms = []string{
	`xox[a-z](?:\.xox[a-z])?-[A-Za-z0-9-]{8,}`,           // Slack: bot, user, refresh, …
	`xapp-\d-[A-Za-z0-9-]{8,}`,                           // Slack: app-level
	`sk-[A-Za-z0-9_-]{20,}`,                              // OpenAI, Anthropic and those who follow them
	`[rsw]h?k_(?:live|test)_[A-Za-z0-9]{16,}`,            // Stripe
	`whsec_[A-Za-z0-9+/=]{16,}`,                          // Stripe webhooks
	`gh[pousr]_[A-Za-z0-9]{20,}`,                         // GitHub
	`github_pat_[A-Za-z0-9_]{20,}`,                       // GitHub, fine-grained
	`gl(?:pat|rt|dt|soat)-[A-Za-z0-9_-]{16,}`,            // GitLab
	`(?:AKIA|ASIA)[A-Z0-9]{16}`,                          // AWS key ids
	`AIza[A-Za-z0-9_-]{35}`,                              // Google API keys
	`ya29\.[A-Za-z0-9_-]{20,}`,                           // Google OAuth
	`npm_[A-Za-z0-9]{30,}`,                               // npm
	`pypi-[A-Za-z0-9_-]{40,}`,                            // PyPI
	`hf_[A-Za-z0-9]{30,}`,                                // Hugging Face
	`do[opr]_v1_[a-f0-9]{32,}`,                           // DigitalOcean
	`SG\.[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{32,}`,         // SendGrid
	`AGE-SECRET-KEY-1[A-Z0-9]{40,}`,                      // age
	`eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[\w-]{8,}`, // JSON Web Tokens
}

// tokenWords are how these begin, in lower case.
var tokenWords = []string{"xox", "xapp-", "sk-", "k_live_", "k_test_", "whsec_", "ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_",
	"glpat-", "glrt-", "gldt-", "glsoat-", "akia", "asia", "aiza", "ya29.", "npm_", "pypi-", "hf_", "_v1_", "sg.", "age-secret-key-", "eyj"}

// secretWords are what secretName contains.
var secretWords = []string{"pass", "secret", "token", "key", "credential", "authorization", "cookie"}

// secretName is how the name of a value ends that is a secret.
const secretName = `(?:password|passwd|passphrase|secret|token|api[_-]?key|access[_-]?key|secret[_-]?key|private[_-]?key|account[_-]?key|credentials?|authorization|cookie)`

// bare is an unquoted value: no space, no quote, nothing that ends a value in a
// shell, a list or an object. A placeholder counts as a value too, so that one
// with something behind it goes as a whole.
const bare = `(?:‹secret, \d+ characters?›|[^\s"'` + "`" + `;|&(){}\[\],<>\\])+`

// A quoted value. Where the line ends before the quote does, it goes to the end of the line: what cuts a text cuts quotes
// too, and half a secret is one. A quote behind a backslash ends nothing.
const (
	doubleQuoted = `"(?P<secret>(?:[^"\\]|\\.)*)(?:"|\\?\z)`
	singleQuoted = `'(?P<secret>[^']*)(?:'|\z)`
	// quotedInJSON is one in a command that stands in a JSON string: the quotes themselves are behind backslashes there.
	quotedInJSON = `\\"(?P<secret>(?:[^"\\]|\\\\\\"|\\[^"])*)(?:\\?"|\\?\z)`
)

var patterns = []pattern{
	// To the end of the key, or of the text: a cut key is a key.
	newPattern(Key, `(?s)-----BEGIN [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----.*?(?:-----END [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----|\z)`, nil).needing("private key"),
	newPattern(Token, `\b(?:`+strings.Join(tokenForms, "|")+`)`, nil).needing(tokenWords...),
	newPattern(Token, `hooks\.slack\.com/(?:services|workflows|triggers)/(?P<secret>[A-Za-z0-9/_-]{16,})`, nil).needing("hooks.slack.com"),
	newPattern(URL, `\b[A-Za-z][A-Za-z0-9+.-]*://[^\s/@:"'<>]*:(?P<secret>[^\s/@"'<>]+)@`, isReference).needing("://"),

	// Authorization: Bearer …, also without the header's name.
	newPattern(Named, `(?i)\b(?:proxy-)?authorization["']?\s*[:=]\s*["']?(?:bearer|basic|token|digest|negotiate)\s+(?P<secret>`+bare+`)`, isReference).needing("authorization"),
	newPattern(Named, `(?i)\b(?:bearer|basic)\s+(?P<secret>[A-Za-z0-9._~+/=-]{16,})`, isWord).needing("bearer", "basic"),
	newPattern(Named, `(?im)^\s*(?:set-)?cookie\s*:\s*(?P<secret>[^\r\n]+)`, isReference).needing("cookie"),

	// "password": "…" in JSON, also in JSON that stands in a string.
	newPattern(Named, `(?i)`+secretName+`\\?["']\s*:\s*"(?P<secret>(?:[^"\\\n]|\\.)*)(?:"|\z)`, isReference).needing(secretWords...).having(`:=-`),
	newPattern(Named, `(?i)`+secretName+`\\"\s*:\s*\\"(?P<secret>[^"\\\n]*)\\"`, isReference).needing(secretWords...).having(`:=-`),
	// KEY=value, KEY="value"
	newPattern(Named, `(?i)`+secretName+`\s?=\s?`+doubleQuoted, isReference).needing(secretWords...).having(`:=-`),
	newPattern(Named, `(?i)`+secretName+`\s?=\s?`+singleQuoted, isReference).needing(secretWords...).having(`:=-`),
	newPattern(Named, `(?i)`+secretName+`\s?=\s?`+quotedInJSON, isReference).needing(secretWords...).having(`:=-`),
	newPattern(Named, `(?i)`+secretName+`=(?P<secret>`+bare+`)`, isReference).needing(secretWords...).having(`:=-`),
	// --password value, --api-key "value"
	newPattern(Named, `(?i)(?:^|\s)--?[A-Za-z0-9-]*`+secretName+`\s+`+doubleQuoted, isReference).needing(secretWords...).having(`:=-`),
	newPattern(Named, `(?i)(?:^|\s)--?[A-Za-z0-9-]*`+secretName+`\s+`+singleQuoted, isReference).needing(secretWords...).having(`:=-`),
	newPattern(Named, `(?i)(?:^|\s)--?[A-Za-z0-9-]*`+secretName+`\s+`+quotedInJSON, isReference).needing(secretWords...).having(`:=-`),
	newPattern(Named, `(?i)(?:^|\s)--?[A-Za-z0-9-]*`+secretName+`\s+(?P<secret>`+bare+`)`, isOption).needing(secretWords...).having(`:=-`),
	// password: value as a whole line (YAML, headers); prose goes on after it
	newPattern(Named, `(?im)^[\s+-]*[A-Za-z0-9_.-]*`+secretName+`\s*:\s*["']?(?P<secret>`+bare+`)["']?\s*$`, isWord).needing(secretWords...).having(`:=-`),
	newPattern(Named, `(?i)\bx-[a-z0-9-]*(?:key|token|secret|auth)\s*:\s*(?P<secret>`+bare+`)`, isReference).needing("x-"),
}

// isReference tells a value that only says where the secret is: $PGPASSWORD,
// ${{ secrets.X }}, %PASSWORD%, or that there is none.
func isReference(value string) bool {
	switch strings.ToLower(value) {
	case "", "null", "nil", "none", "true", "false", "undefined":
		return true
	}
	return strings.HasPrefix(value, "$") || strings.HasPrefix(value, "%") && strings.HasSuffix(value, "%") && len(value) > 1 ||
		len(value) > 2 && strings.Trim(value, "*.x…") == ""
}

// isOption tells what follows an option that takes no value.
func isOption(value string) bool { return isReference(value) || strings.HasPrefix(value, "-") }

// isWord tells a value that reads as a word of prose or code, not as a secret:
// short, or letters alone.
func isWord(value string) bool {
	return isReference(value) || utf8.RuneCountInString(value) < 6 || !strings.ContainsAny(value, "0123456789+/=!@#$%^&*")
}

// benignNames end like the name of a secret and are none.
var benignNames = regexp.MustCompile(`(?:page|next|continuation|sync|cancel|cancellation)token$`)

// secretKey is secretName for a name without its separators.
var secretKey = regexp.MustCompile(strings.ReplaceAll(secretName, `[_-]?`, ``) + `$`)

// namesSecret tells whether the value of a key (of JSON, of a log attribute) with
// this name is a secret.
func namesSecret(name string) bool {
	flat := strings.Map(func(r rune) rune {
		if r == '_' || r == '-' || r == '.' || r == ' ' {
			return -1
		}
		return r
	}, strings.ToLower(name))
	return secretKey.MatchString(flat) && !benignNames.MatchString(flat)
}
