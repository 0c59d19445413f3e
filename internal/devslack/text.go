package devslack

import (
	"encoding/json"
	"regexp"
	"strings"
)

// Slack has three control characters. Everybody's text is stored with them
// escaped; what stays is the markup that Slack itself understands.

var escaper = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;")

var (
	// userMarkup is what a person's text may contain: mentions, which a client
	// makes from picking a name. Everything else they typed is only text.
	userMarkup = regexp.MustCompile(`<@[UW][A-Z0-9]+(?:\|[^<>\n]*)?>|<#[CGD][A-Z0-9]+(?:\|[^<>\n]*)?>`)
	typedLink  = regexp.MustCompile("https?://[^\\s<>`|]+[^\\s<>`|.,;:!?\"')\\]]")
	typedCode  = regexp.MustCompile("(?s)```(.+?)```|`([^`\n]+)`")
)

// escapeExcept escapes text but for the matches of keep.
func escapeExcept(text string, keep *regexp.Regexp) string {
	var out strings.Builder
	at := 0
	for _, m := range keep.FindAllStringIndex(text, -1) {
		out.WriteString(escaper.Replace(text[at:m[0]]))
		out.WriteString(text[m[0]:m[1]])
		at = m[1]
	}
	out.WriteString(escaper.Replace(text[at:]))
	return out.String()
}

type richElement map[string]any

// typedText is what a person typed, as Slack delivers it: the text with its
// control characters escaped and links marked, and the rich_text block that
// goes with it.
func typedText(typed string) (text string, blocks json.RawMessage) {
	var out strings.Builder
	var sections []richElement
	var line []richElement
	flush := func() {
		if len(line) > 0 {
			sections = append(sections, richElement{"type": "rich_text_section", "elements": line})
			line = nil
		}
	}
	at := 0
	for _, m := range typedCode.FindAllStringSubmatchIndex(typed, -1) {
		line = append(line, plainElements(typed[at:m[0]], &out)...)
		out.WriteString(escapeExcept(typed[m[0]:m[1]], userMarkup))
		if m[2] >= 0 {
			flush()
			code := strings.Trim(typed[m[2]:m[3]], "\n")
			sections = append(sections, richElement{"type": "rich_text_preformatted",
				"elements": []richElement{{"type": "text", "text": code}}})
		} else {
			line = append(line, richElement{"type": "text", "text": typed[m[4]:m[5]], "style": map[string]bool{"code": true}})
		}
		at = m[1]
	}
	line = append(line, plainElements(typed[at:], &out)...)
	flush()
	return out.String(), encode([]richElement{{"type": "rich_text", "block_id": hexID(3), "elements": sections}})
}

var typedToken = regexp.MustCompile(userMarkup.String() + "|" + typedLink.String())

// plainElements splits text outside code into mentions, links and the rest.
func plainElements(typed string, out *strings.Builder) []richElement {
	var line []richElement
	literal := func(text string) {
		if text != "" {
			out.WriteString(escaper.Replace(text))
			line = append(line, richElement{"type": "text", "text": text})
		}
	}
	at := 0
	for _, m := range typedToken.FindAllStringIndex(typed, -1) {
		literal(typed[at:m[0]])
		token := typed[m[0]:m[1]]
		id, _, _ := strings.Cut(strings.Trim(token, "<@#>"), "|")
		switch {
		case strings.HasPrefix(token, "<@"):
			out.WriteString(token)
			line = append(line, richElement{"type": "user", "user_id": id})
		case strings.HasPrefix(token, "<#"):
			out.WriteString(token)
			line = append(line, richElement{"type": "channel", "channel_id": id})
		default:
			out.WriteString("<" + strings.ReplaceAll(token, "&", "&amp;") + ">")
			line = append(line, richElement{"type": "link", "url": token})
		}
		at = m[1]
	}
	literal(typed[at:])
	return line
}

// cutStored shortens a stored text to n characters; an entity is not cut apart.
func cutStored(text string, n int) (string, bool) {
	runes := []rune(text)
	if len(runes) <= n {
		return text, false
	}
	return halfEntity.ReplaceAllString(string(runes[:n]), ""), true
}

var halfEntity = regexp.MustCompile(`&[a-z]{0,3}$`)
