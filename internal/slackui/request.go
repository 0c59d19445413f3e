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
	summary string   // what will happen and to what
	tool    string   // the tool's name
	kind    string   // command, diff or json
	body    string   // the exact content
	raw     string   // body before it was made visible, for excerpts
	notes   []string // what one should know
	chars   int      // of the content
	marked  bool     // something took an escape
	secrets int      // how many were hidden
	veiled  bool     // a secret hides the program, the path or the host
	mixed   string   // a word whose letters come from several alphabets
}

// request reads an ask. It is made from the tool's preview, which is complete by
// contract; where there is none, from the arguments themselves.
func (v *renderer) request(a *ledger.Approval) request {
	p := a.Preview
	kind, body := p.Kind, p.Body
	if body == "" {
		kind, body = "json", indented(a.Arguments)
	}
	q := request{kind: kind, chars: utf8.RuneCountInString(body)}
	var hits []redact.Hit
	q.raw, hits = v.redactor.Text(body)
	q.secrets = len(hits)
	q.veiled = hides(kind, q.raw, hits)
	q.body, q.marked = visible(q.raw)
	about := []string{p.Target, a.Tool, p.Summary}
	if kind == "command" { // its summary is the beginning of the command, which was judged above
		about = about[:2]
	}
	for _, part := range about {
		if _, hits := v.redactor.Text(part); len(hits) > 0 {
			q.veiled = true
		}
	}
	_, marked := visibleLine(p.Summary)
	q.marked = q.marked || marked
	q.summary = v.line(p.Summary, maxSummaryChars)
	if strings.TrimSpace(p.Summary) == "" {
		q.summary = "Use " + v.line(a.Tool, maxNameChars)
	}
	q.tool = v.line(a.Tool, maxNameChars)
	for _, n := range p.Notes {
		clean, hits := v.redactor.Text(n)
		shown, marked := visible(clean)
		q.notes = append(q.notes, shown)
		q.secrets += len(hits)
		q.marked = q.marked || marked
	}
	q.mixed = mixedWord(v.clean(p.Summary+" "+p.Target) + " " + q.raw)
	return q
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
//     as a path or a URL (a URL's password hides nothing of that)
//   - in a diff: the name of the file is in the target, so nothing of the body counts
//   - in JSON: the value of a member that is called like a place or a program
func hides(kind, body string, hits []redact.Hit) bool {
	for _, h := range hits {
		switch kind {
		case "diff":
		case "command":
			if startsCommand(body[:h.Start]) || h.Kind != redact.URL && h.Kind != redact.Named && inPath(body, h) {
				return true
			}
		default:
			if placeMember.MatchString(lineBefore(body, h.Start)) || h.Kind != redact.URL && h.Kind != redact.Named && inPath(body, h) {
				return true
			}
		}
	}
	return false
}

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
