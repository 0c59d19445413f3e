package slackui

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/slack-go/slack"
)

// What Slack would refuse, and what must never be in anything of ours. It reads
// the JSON that is sent, not our types.

type blockChecker struct {
	problems []string
	ids      map[string]bool
	users    map[string]bool // who is mentioned
	shown    strings.Builder // all text that people see
	actions  []string
}

// ownToken is the only thing in angle brackets that we write ourselves in mrkdwn.
var ownToken = regexp.MustCompile(`<!date\^\d+\^\{date_short_pretty\} (?:at )?\{time(?:_secs)?\}\|\d{4}-\d\d-\d\d \d\d:\d\d UTC>`)

func (c *blockChecker) bad(format string, args ...any) {
	c.problems = append(c.problems, fmt.Sprintf(format, args...))
}

func escapedRunes(s string) int { return utf8.RuneCountInString(escape(s)) }

// checkMessage returns what is wrong with a message.
func checkMessage(r rendering) *blockChecker {
	c := newChecker()
	raw, err := json.Marshal(r.blocks)
	if err != nil {
		c.bad("no JSON: %v", err)
		return c
	}
	if n := len(r.blocks); n == 0 || n > 50 {
		c.bad("%d blocks", n)
	}
	if n := weight(r.blocks...); n > maxMessage {
		c.bad("blocks weigh %d", n)
	}
	if n := utf8.RuneCountInString(r.text); n == 0 || n > maxFallback {
		c.bad("fallback has %d characters", n)
	}
	if bare := unentity(r.text); strings.ContainsAny(bare, "<>&\n") || !utf8.ValidString(r.text) {
		c.bad("fallback isn't escaped: %q", r.text)
	}
	c.blocks(raw)
	return c
}

func checkModal(view slack.ModalViewRequest) *blockChecker {
	c := newChecker()
	raw, err := json.Marshal(view)
	if err != nil {
		c.bad("no JSON: %v", err)
		return c
	}
	if len(raw) > 250_000 || len(view.Blocks.BlockSet) > maxViewBlocks {
		c.bad("view has %d bytes, %d blocks", len(raw), len(view.Blocks.BlockSet))
	}
	if utf8.RuneCountInString(view.Title.Text) > 24 || utf8.RuneCountInString(view.Close.Text) > 24 || len(view.PrivateMetadata) > 3000 {
		c.bad("view fields")
	}
	blocks, _ := json.Marshal(view.Blocks)
	c.blocks(blocks)
	return c
}

func newChecker() *blockChecker {
	return &blockChecker{ids: map[string]bool{}, users: map[string]bool{}}
}

// unentity removes what escape writes.
func unentity(s string) string {
	return strings.NewReplacer("&amp;", "", "&lt;", "", "&gt;", "").Replace(s)
}

func (c *blockChecker) blocks(raw []byte) {
	var blocks []map[string]any
	if err := json.Unmarshal(raw, &blocks); err != nil {
		c.bad("blocks: %v", err)
		return
	}
	for _, b := range blocks {
		c.block(b)
	}
}

func (c *blockChecker) block(b map[string]any) {
	if id, ok := b["block_id"].(string); ok {
		if c.ids[id] || id == "" || len(id) > 255 {
			c.bad("block_id %q", id)
		}
		c.ids[id] = true
	}
	switch b["type"] {
	case "rich_text":
		c.richText(b["elements"])
	case "context":
		for _, e := range list(b["elements"], 1, 10, c) {
			c.mrkdwn(e)
		}
	case "actions":
		for _, e := range list(b["elements"], 1, 25, c) {
			c.button(e)
		}
		c.once(b)
	case "plan":
		c.str(b["title"], 150)
		seen := map[any]bool{}
		for _, t := range list(b["tasks"], 1, 50, c) {
			if seen[t["task_id"]] {
				c.bad("task_id %v twice", t["task_id"])
			}
			seen[t["task_id"]] = true
			c.task(t)
		}
	case "input":
		c.input(b)
	default:
		c.bad("block %v", b["type"])
	}
}

func (c *blockChecker) task(t map[string]any) {
	title := c.str(t["title"], 256)
	if strings.ContainsAny(title, "<>&") {
		c.bad("a title that mrkdwn could read: %q", title)
	}
	for _, part := range []string{"details", "output"} {
		if rich, ok := t[part].(map[string]any); ok {
			c.richText(rich["elements"])
		}
	}
}

// once: an action has its own id within its block.
func (c *blockChecker) once(b map[string]any) {
	seen := map[any]bool{}
	for _, e := range list(b["elements"], 1, 25, c) {
		if seen[e["action_id"]] {
			c.bad("action_id %v twice in a block", e["action_id"])
		}
		seen[e["action_id"]] = true
	}
}

// menu checks what opens behind the dots.
func (c *blockChecker) menu(e map[string]any) {
	c.actions = append(c.actions, e["action_id"].(string))
	for _, o := range list(e["options"], 1, 5, c) {
		label, _ := o["text"].(map[string]any)
		if label["type"] != "plain_text" || label["emoji"] != false {
			c.bad("option %v", label)
		}
		c.str(label["text"], 75)
		if value, _ := o["value"].(string); value == "" || utf8.RuneCountInString(value) > 75 {
			c.bad("the value of an option is %q", value)
		}
	}
}

func (c *blockChecker) button(e map[string]any) {
	if e["type"] == "overflow" {
		c.menu(e)
		return
	}
	c.str(e["action_id"], 255)
	if label, ok := e["accessibility_label"]; ok {
		c.str(label, 75)
	}
	c.str(e["value"], 2000)
	label, _ := e["text"].(map[string]any)
	if label["type"] != "plain_text" || label["emoji"] != false {
		c.bad("button text %v", label)
	}
	c.str(label["text"], 30)
	c.actions = append(c.actions, e["action_id"].(string))
	if style := e["style"]; (style == "primary") != (e["action_id"] == "approve") || style == "danger" {
		c.bad("%v has style %v", e["action_id"], style)
	}
}

// mrkdwn may hold dates of ours and nothing else that is live. What others wrote stands beside it as plain text.
func (c *blockChecker) mrkdwn(e map[string]any) {
	s := c.str(e["text"], 3000)
	if e["type"] == "plain_text" && e["emoji"] == false {
		return
	}
	if e["type"] != "mrkdwn" || e["verbatim"] != true {
		c.bad("context element %v", e)
	}
	if rest := ownToken.ReplaceAllString(s, ""); strings.ContainsAny(rest, "<>&") {
		c.bad("live mrkdwn: %q", s)
	}
}

func (c *blockChecker) richText(elements any) {
	for _, e := range list(elements, 1, 1000, c) {
		switch e["type"] {
		case "rich_text_section", "rich_text_quote":
			c.inline(e["elements"], "text", "user", "usergroup", "channel", "date", "link")
		case "rich_text_preformatted":
			c.inline(e["elements"], "text")
		case "rich_text_list":
			c.richText(e["elements"])
		default:
			c.bad("rich text %v", e["type"])
		}
	}
	c.shown.WriteByte('\n')
}

func (c *blockChecker) inline(elements any, allowed ...string) {
	for _, e := range list(elements, 1, 1000, c) {
		kind, _ := e["type"].(string)
		if !strings.Contains(" "+strings.Join(allowed, " ")+" ", " "+kind+" ") {
			c.bad("inline %q", kind)
		}
		switch kind {
		case "text":
			s := c.str(e["text"], maxTextChars)
			for _, r := range s {
				if r != '\n' && r != '\t' && hidden(r) && r != 0xFE0F && r != 0x200D && r != 0x200C {
					c.bad("%U is hidden in %q", r, s)
				}
			}
		case "user":
			c.users[e["user_id"].(string)] = true
		case "usergroup":
			c.users[e["usergroup_id"].(string)] = true
		case "date":
			c.str(e["fallback"], 100)
		}
	}
}

func (c *blockChecker) str(v any, max int) string {
	s, ok := v.(string)
	if !ok || s == "" || escapedRunes(s) > max || !utf8.ValidString(s) {
		c.bad("text of %d characters (at most %d): %.80q", escapedRunes(s), max, s)
	}
	c.shown.WriteString(s)
	return s
}

func list(v any, low, high int, c *blockChecker) []map[string]any {
	items, _ := v.([]any)
	if len(items) < low || len(items) > high {
		c.bad("%d items, not %d to %d", len(items), low, high)
	}
	out := make([]map[string]any, 0, len(items))
	for _, item := range items {
		m, ok := item.(map[string]any)
		if !ok {
			c.bad("item %v", item)
			continue
		}
		out = append(out, m)
	}
	return out
}
