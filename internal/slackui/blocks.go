package slackui

import (
	"encoding/json"
	"regexp"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/slack-go/slack"

	"approvalbot/internal/language"
	"approvalbot/internal/ledger"
)

// Slack's limits, and how near we go. All are counted after Slack has escaped
// &, < and >, because that is how it counts when the message is updated.
const (
	maxTextChars    = 3000   // of one text element; documented for text objects, kept everywhere
	maxMessage      = 12_000 // of all blocks of a message: Slack refuses at about 13,200, undocumented
	maxView         = 200_000
	maxViewBlocks   = 100
	maxFallback     = 300 // of the text that a lock screen shows
	maxMentions     = 20  // of people in one sentence
	maxNameChars    = 80
	maxReasonChars  = 500
	maxSummaryChars = 120
)

// weight is how much blocks count against a message's limit: the longest that
// any JSON encoder writes them, since nobody knows which one Slack measures with.
func weight(blocks ...slack.Block) int {
	raw, err := json.Marshal(blocks) // writes & as \u0026: more than Slack's &amp;
	if err != nil {
		panic("slackui: encode blocks: " + err.Error())
	}
	n := 0
	for _, r := range string(raw) {
		switch {
		case r < utf8.RuneSelf:
			n++
		case r <= 0xFFFF:
			n += len(`\u0000`)
		default:
			n += len(`\u0000\u0000`)
		}
	}
	return n
}

// Elements of rich text. Text goes in as it is to be seen: made visible before.

type element = slack.RichTextSectionElement

func text(s string) element { return slack.NewRichTextSectionTextElement(s, nil) }

func styled(s string, style slack.RichTextSectionTextStyle) element {
	return slack.NewRichTextSectionTextElement(s, &style)
}

func bold(s string) element { return styled(s, slack.RichTextSectionTextStyle{Bold: true}) }

func code(s string) element { return styled(s, slack.RichTextSectionTextStyle{Code: true}) }

var (
	userID  = regexp.MustCompile(`^[UW][A-Z0-9]{1,30}$`)
	groupID = regexp.MustCompile(`^S[A-Z0-9]{1,30}$`)
	hexText = regexp.MustCompile(`^[0-9a-f]+$`)
)

func utc(at time.Time) string { return at.UTC().Format("2006-01-02 15:04 UTC") }

// dateFormat shows a moment in the reader's own time zone.
func (v *renderer) dateFormat() string { return v.t("{date_short_pretty} at {time}") }

func dateAs(at time.Time, format string) element {
	fallback := utc(at)
	return slack.NewRichTextSectionDateElement(at.Unix(), format, nil, &fallback)
}

// dateToken is a moment in mrkdwn.
func (v *renderer) dateToken(at time.Time) string {
	return "<!date^" + strconv.FormatInt(at.Unix(), 10) + "^" + v.dateFormat() + "|" + utc(at) + ">"
}

// paragraph drops what is empty: Slack refuses a text element without text.
func paragraph(elements ...element) *slack.RichTextSection {
	return slack.NewRichTextSection(filled(elements)...)
}

func filled(elements []element) []element {
	kept := make([]element, 0, len(elements))
	for _, e := range elements {
		if t, ok := e.(*slack.RichTextSectionTextElement); ok && t.Text == "" {
			continue
		}
		kept = append(kept, e)
	}
	return kept
}

func quote(elements ...element) *slack.RichTextQuote {
	return &slack.RichTextQuote{Type: slack.RTEQuote, Elements: filled(elements)}
}

// preformatted shows text as it is. It may take several text elements, which
// Slack shows without a seam.
func preformatted(s string) *slack.RichTextPreformatted {
	pre := &slack.RichTextPreformatted{Type: slack.RTEPreformatted}
	for _, piece := range pieces(s, maxTextChars) {
		pre.Elements = append(pre.Elements, text(piece))
	}
	if len(pre.Elements) == 0 {
		pre.Elements = []element{text("∅")} // nothing at all
	}
	return pre
}

// pieces cuts s into parts of at most limit characters, counted escaped.
func pieces(s string, limit int) []string {
	var parts []string
	start, n := 0, 0
	for i, r := range s {
		c := escapedLen(r)
		if n+c > limit {
			parts = append(parts, s[start:i])
			start, n = i, 0
		}
		n += c
	}
	if start < len(s) {
		parts = append(parts, s[start:])
	}
	return parts
}

func escapedLen(r rune) int {
	switch r {
	case '&':
		return len("&amp;")
	case '<', '>':
		return len("&lt;")
	}
	return 1
}

func richText(elements ...slack.RichTextElement) *slack.RichTextBlock {
	return slack.NewRichTextBlock("", elements...)
}

// note is a context block: small grey text. It is mrkdwn, so only our own words,
// ids and dates go into it.
func note(mrkdwn string) *slack.ContextBlock {
	t := slack.NewTextBlockObject(slack.MarkdownType, mrkdwn, false, true)
	return slack.NewContextBlock("", t)
}

// plainText is text that Slack takes as it is: no mrkdwn, no emoji made of words.
func plainText(s string) *slack.TextBlockObject {
	return slack.NewTextBlockObject(slack.PlainTextType, s, false, false)
}

func button(action, value, label string, style slack.Style) *slack.ButtonBlockElement {
	b := slack.NewButtonBlockElement(action, value, plainText(label))
	b.Style = style
	return b
}

// maxLabel is Slack's limit for what a screen reader says of a button, for a button's own text, and for the text and the
// value of an option in a menu.
const maxLabel = 75

// spoken says to a screen reader what a button is about: several cards have buttons that look alike. It begins with what
// stands on the button, for those who speak it. What is named was made visible before.
func (v *renderer) spoken(b *slack.ButtonBlockElement, what string) *slack.ButtonBlockElement {
	b.AccessibilityLabel = asLong(b.Text.Text+v.t(": ")+what, maxLabel)
	return b
}

// menu is what opens behind the dots; nil if there is nothing in it. An option whose value Slack wouldn't take is left out.
func menu(options ...*slack.OptionBlockObject) *slack.OverflowBlockElement {
	var kept []*slack.OptionBlockObject
	for _, o := range options {
		if o != nil && utf8.RuneCountInString(o.Value) <= maxLabel {
			kept = append(kept, o)
		}
	}
	if len(kept) == 0 {
		return nil
	}
	return slack.NewOverflowBlockElement(actionMore, kept...)
}

// choice is an option of a menu: a click on it is one on a button with this action and value.
func choice(action, value, label string) *slack.OptionBlockObject {
	return slack.NewOptionBlockObject(option(action, value), plainText(label), nil)
}

// A phrase is a sentence in the making, for people who see blocks and, word for
// word, for those who get the fallback.
type phrase struct {
	v        *renderer
	bold     bool // what is said now is strong
	elements []element
	plain    strings.Builder
}

func (v *renderer) phrase() *phrase { return &phrase{v: v} }

// say adds words of our own.
func (p *phrase) say(words string) *phrase {
	if p.bold {
		return p.strong(words)
	}
	return p.add(text(words), words)
}

// add adds an element and, for those who don't see it, its words.
func (p *phrase) add(e element, words string) *phrase {
	p.plain.WriteString(words)
	if n := len(p.elements); n == 0 || !joined(p.elements[n-1], e) {
		p.elements = append(p.elements, e)
	}
	return p
}

// joined puts words behind others of the same style, if there are few of them: nobody sees where one element ends.
func joined(before, e element) bool {
	a, ok1 := before.(*slack.RichTextSectionTextElement)
	b, ok2 := e.(*slack.RichTextSectionTextElement)
	if !ok1 || !ok2 || len(a.Text)+len(b.Text) > maxTextChars/len("&amp;") {
		return false
	}
	if a.Style != b.Style && (a.Style == nil || b.Style == nil || *a.Style != *b.Style) {
		return false
	}
	a.Text += b.Text
	return true
}

// strong adds words of our own that matter most.
func (p *phrase) strong(words string) *phrase { return p.add(bold(words), words) }

// mono adds a name as it is written: it was made visible before.
func (p *phrase) mono(name string) *phrase { return p.add(code(name), name) }

// tell adds words that others wrote, on one line and shortened.
func (p *phrase) tell(untrusted string, max int) *phrase { return p.say(p.v.line(untrusted, max)) }

// at adds a moment.
func (p *phrase) at(t time.Time) *phrase { return p.add(dateAs(t, p.v.dateFormat()), utc(t)) }

// atSecond adds a moment with its seconds.
func (p *phrase) atSecond(t time.Time) *phrase {
	return p.add(dateAs(t, p.v.t("{date_short_pretty} at {time_secs}")), utc(t))
}

// who adds the one who did something, as a mention where Slack knows them.
func (p *phrase) who(a ledger.Actor) *phrase {
	switch {
	case a.Kind == ledger.ActorUser && userID.MatchString(a.ID):
		name := p.v.t("a person")
		if a.Name != "" {
			name = "@" + p.v.line(strings.TrimPrefix(a.Name, "@"), maxNameChars)
		}
		return p.add(slack.NewRichTextSectionUserElement(a.ID, nil), name)
	case a.Kind == ledger.ActorToken:
		return p.form("the API token “{name}”", slots{"name": func(p *phrase) { p.tell(a.ID, maxNameChars) }})
	case a.Kind == ledger.ActorUser && a.Name != "":
		return p.tell(a.Name, maxNameChars)
	case a.Kind == ledger.ActorModel:
		return p.say(p.v.t("the agent"))
	}
	return p.say("approvalbot")
}

// line is untrusted text on one line: without secrets, visible, shortened.
func (v *renderer) line(s string, max int) string { return short(v.clean(s), max) }

// clean is untrusted text without secrets, not yet visible. Text is cleaned
// whole, before it is cut: half a secret isn't recognised.
func (v *renderer) clean(s string) string {
	out, _ := v.redactor.Text(s)
	return v.secretsNamed(out)
}

// aSecret is what the redactor writes in place of a secret.
var aSecret = regexp.MustCompile(`‹secret, (\d+) characters?›`)

// secretsNamed says in our language what stands in place of secrets. It comes last: the redactor knows its own words.
func (v *renderer) secretsNamed(s string) string {
	if v.lang == language.English || v.lang == "" {
		return s
	}
	return aSecret.ReplaceAllStringFunc(s, func(found string) string {
		return v.tf("‹secret, %s characters›", aSecret.FindStringSubmatch(found)[1])
	})
}

// fallback is what a notification shows: one line, escaped, and short even then.
func fallback(sentence string) string {
	n := 0
	for i, r := range sentence {
		n += escapedLen(r)
		if n >= maxFallback && i+utf8.RuneLen(r) < len(sentence) {
			return escape(sentence[:i]) + "…"
		}
	}
	return escape(sentence)
}
