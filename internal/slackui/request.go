package slackui

import (
	"bytes"
	"encoding/json"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"approvalbot/internal/ledger"
	"approvalbot/internal/redact"
)

// A request is what people are asked to approve, ready to be shown: without
// secrets, everything visible, nothing left out.
type request struct {
	summary string       // what will happen and to what
	tool    string       // the tool's name
	kind    string       // command, diff, request, text or json
	body    string       // the exact content
	raw     string       // body before it was made visible, for excerpts
	notes   []string     // what one should know
	chars   int          // of the content
	marked  bool         // something took an escape
	hits    []redact.Hit // what was hidden in body
	secrets int          // how many were hidden altogether
	veiled  bool         // a secret hides the program, the path or the host
	mixed   string       // a word whose letters come from several alphabets
}

// request reads an ask. It is made from the tool's preview, which is complete by
// contract; where there is none, from the arguments themselves.
func (v *renderer) request(a *ledger.Approval) request {
	p := a.Preview
	kind, body := content(a)
	q := request{kind: kind, chars: utf8.RuneCountInString(body)}
	q.raw, q.hits = v.redactor.Text(body)
	q.secrets = len(q.hits)
	q.veiled = hides(kind, q.raw, q.hits) || v.veils(kind, body, a)
	q.raw = v.secretsNamed(q.raw)
	q.body, q.marked = visible(q.raw)
	if q.body == "" {
		q.body = v.t("(empty)")
	}
	_, marked := visibleLine(p.Summary)
	q.marked = q.marked || marked
	about := v.knowing(q.hits)
	q.summary = about.summary(a, maxSummaryChars)
	if q.summary == "" {
		q.summary = v.tf("Use %s", v.line(a.Tool, maxNameChars))
	}
	q.tool = v.line(a.Tool, maxNameChars)
	for _, n := range p.Notes {
		clean, hits := v.redactor.Text(n)
		shown, marked := visible(v.secretsNamed(clean))
		q.notes = append(q.notes, shown)
		q.secrets += len(hits)
		q.marked = q.marked || marked
	}
	q.mixed = mixedWord(about.clean(p.Summary) + " " + about.clean(p.Target) + " " + q.raw)
	return q
}

// content is what is asked about, exactly, and how it wants to be shown.
func content(a *ledger.Approval) (kind, body string) {
	if a.Preview.Body == "" {
		return "json", indented(a.Arguments)
	}
	return a.Preview.Kind, a.Preview.Body
}

// knowing is a renderer for other words about a text with these secrets: they are
// secrets there too, although the place may not give them away, or may be cut off.
func (v *renderer) knowing(hits []redact.Hit) *renderer {
	w := *v
	w.redactor = v.redactor.With(hits)
	return &w
}

// summary is the tool's own words for a request, shortened; empty if it has none.
func (v *renderer) summary(a *ledger.Approval, max int) string {
	if strings.TrimSpace(a.Preview.Summary) == "" {
		return ""
	}
	return v.line(a.Preview.Summary, max)
}

// veils tells whether a secret hides what a request is about outside of its
// content. Of a command, the summary is the beginning and the target a word: both
// were judged with the content.
func (v *renderer) veils(kind, body string, a *ledger.Approval) bool {
	for _, part := range []string{a.Preview.Target, a.Tool, a.Preview.Summary} {
		if kind == "command" && (part == a.Preview.Summary || strings.Contains(body, part)) {
			continue
		}
		if _, hits := v.redactor.Text(part); len(hits) > 0 {
			return true
		}
	}
	return false
}

// indented is canonical JSON for reading.
func indented(arguments string) string {
	var out bytes.Buffer
	if err := json.Indent(&out, []byte(arguments), "", "  "); err != nil {
		return arguments
	}
	return out.String()
}

// A secret may be hidden from the person who approves; what is done, and to what,
// may not. hides tells whether it is, and rather says so once too often:
//
//   - in a command: the first word of any part of it, or inside a word that reads
//     as a path or a URL (a URL's password hides nothing of that), or with characters
//     in it that a shell reads: what looks like a quoted password to us may be the
//     end of a quote and a command to the shell
//   - in an HTTP request: in the first line, outside of the query, or across lines; else as in JSON
//   - in a diff or a text: the name of the file, or who will read it, is in the target, so nothing of the body counts
//   - in JSON: the value of a member that is called like a place or a program
func hides(kind, body string, hits []redact.Hit) bool {
	for _, h := range hits {
		switch kind {
		case "diff", "text": // what it is about is in the target
		case "command":
			if h.HidesAny(shellSigns) || startsCommand(body[:h.Start]) || h.Kind != redact.URL && h.Kind != redact.Named && inPath(body, h) {
				return true
			}
		case "request":
			line := lineBefore(body, h.Start)
			first := len(line) == h.Start
			if first && !strings.Contains(line, "?") || h.HidesAny("\n\r") || !first && placeHidden(body, h) {
				return true
			}
		default:
			if placeHidden(body, h) {
				return true
			}
		}
	}
	return false
}

// placeHidden tells whether a hit stands where JSON names a place or a program, or in a path.
func placeHidden(body string, h redact.Hit) bool {
	return placeMember.MatchString(lineBefore(body, h.Start)) || h.Kind != redact.URL && h.Kind != redact.Named && inPath(body, h)
}

// shellSigns separate, redirect and nest commands, or stand for the output of one.
const shellSigns = ";|&$`(){}<>\n\r"

// placeMember matches a line of indented JSON up to the value of such a member.
var placeMember = regexp.MustCompile(`(?i)"[^"]*(?:path|file|dir|folder|url|uri|host|address|server|endpoint|command|cmd|program|executable|binary|script|target|bucket|repo|branch|database|table|channel|recipient|email|to)"\s*:`)

func lineBefore(s string, at int) string { return s[strings.LastIndexByte(s[:at], '\n')+1 : at] }

// startsCommand tells whether what follows before is the word that names a
// program: at the beginning, or after what separates commands, with nothing but
// assignments and wrappers' options in between.
func startsCommand(before string) bool {
	cut := strings.LastIndexAny(before, ";|&\n(`{")
	for _, word := range strings.Fields(before[cut+1:]) {
		if !strings.Contains(word, "=") && !wrappers[word] && !strings.HasPrefix(word, "-") {
			return false
		}
	}
	// FOO=‹secret› is the value of an assignment; the program comes after it.
	return !strings.HasSuffix(before, "=") && !strings.HasSuffix(before, `="`) && !strings.HasSuffix(before, "='")
}

// wrappers are programs whose argument is the program.
var wrappers = map[string]bool{
	"env": true, "sudo": true, "exec": true, "command": true, "nohup": true, "time": true, "timeout": true,
	"nice": true, "xargs": true, "if": true, "then": true, "do": true, "else": true, "while": true, "until": true, "!": true,
}

// inPath tells whether a hit stands inside a word with a slash in it.
func inPath(s string, h redact.Hit) bool {
	blank := func(r rune) bool { return unicode.IsSpace(r) || strings.ContainsRune("\"'=", r) }
	start := strings.LastIndexFunc(s[:h.Start], blank) + 1
	end := len(s)
	if i := strings.IndexFunc(s[h.End:], blank); i >= 0 {
		end = h.End + i
	}
	return strings.Contains(s[start:h.Start]+s[h.End:end], "/")
}

// mixedWord finds a word that mixes Latin letters with ones that look like them:
// no name and no program is written so, except to be taken for another.
func mixedWord(s string) string {
	notLetter := func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && r != '.' && r != '-' && r != '_'
	}
	for word := range strings.FieldsFuncSeq(s, notLetter) {
		latin, alike := false, false
		for _, r := range word {
			latin = latin || unicode.Is(unicode.Latin, r)
			alike = alike || unicode.In(r, unicode.Cyrillic, unicode.Greek, unicode.Armenian, unicode.Cherokee, unicode.Lisu)
		}
		if latin && alike {
			return word
		}
	}
	return ""
}
