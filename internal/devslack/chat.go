package devslack

import (
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
)

// Limits of messages, in characters as they are stored, which is escaped.
// Slack is known to count some posts before escaping and every update after
// it; here both are counted after, so that what can be posted can be updated.
const (
	maxPostText    = 40_000
	maxUpdateText  = 4_000
	maxMetadata    = 8_000
	maxAttachments = 100
	noFallback     = "This content can't be displayed."
)

// content is what chat.* methods say about a message.
type content struct {
	text        string
	blocks      json.RawMessage
	attachments json.RawMessage
	metadata    json.RawMessage
	warnings    []string
}

// readContent checks text, blocks, attachments and metadata of a call.
func readContent(a args) (content, error) {
	var out content
	var err error
	if out.blocks, err = readBlocks(a.raw("blocks")); err != nil {
		return out, err
	}
	if raw := a.raw("attachments"); raw != nil {
		var list []map[string]any
		if decode(raw, &list) != nil {
			return out, fail("invalid_attachments")
		}
		if len(list) > maxAttachments {
			return out, fail("too_many_attachments")
		}
		out.attachments = raw
	}
	if out.metadata, err = readMetadata(a.raw("metadata")); err != nil {
		return out, err
	}
	out.text = escapeText(a.str("text"), true)
	if markdown := a.str("markdown_text"); markdown != "" {
		if out.text != "" || out.blocks != nil {
			return out, fail("markdown_text_conflict")
		}
		out.text = escapeText(markdown, true)
	}
	if out.text == "" && len(out.blocks) > len("[]") {
		out.text = noFallback // what notifications and screen readers get then
	}
	return out, nil
}

func readBlocks(raw json.RawMessage) (json.RawMessage, error) {
	if raw == nil {
		return nil, nil
	}
	var list []json.RawMessage
	if decode(raw, &list) != nil {
		return nil, fail("invalid_blocks_format")
	}
	normalized, problems := checkBlocks(raw, surfaceMessage)
	if len(problems) > 0 {
		return nil, invalidBlocks("invalid_blocks", problems)
	}
	if blocksTooLong(normalized) {
		return nil, fail("msg_blocks_too_long")
	}
	return normalized, nil
}

func invalidBlocks(code string, problems []problem) error {
	e := &apiError{Code: code}
	for _, p := range problems {
		e.Messages = append(e.Messages, fmt.Sprintf("[ERROR] %s [json-pointer:%s]", p.Message, p.Pointer))
	}
	return e
}

func readMetadata(raw json.RawMessage) (json.RawMessage, error) {
	if raw == nil {
		return nil, nil
	}
	var m struct {
		EventType    *string         `json:"event_type"`
		EventPayload json.RawMessage `json:"event_payload"`
	}
	if json.Unmarshal(raw, &m) != nil {
		return nil, fail("invalid_metadata_format")
	}
	if m.EventType == nil && m.EventPayload == nil {
		return json.RawMessage("{}"), nil // clears it
	}
	var payload map[string]any
	if m.EventType == nil || *m.EventType == "" || decode(m.EventPayload, &payload) != nil {
		return nil, fail("invalid_metadata_schema")
	}
	if len(raw) > maxMetadata {
		return nil, fail("metadata_too_large")
	}
	return raw, nil
}

func (c *content) empty() bool {
	return c.text == "" && (len(c.blocks) == 0 || string(c.blocks) == "[]") &&
		(len(c.attachments) == 0 || string(c.attachments) == "[]")
}

// cut shortens the text to what a post may have.
func (c *content) cut() {
	if text, was := cutStored(c.text, maxPostText); was {
		c.text = text
		c.warnings = append(c.warnings, "message_truncated")
	}
}

func withWarnings(r reply, warnings []string) reply {
	if len(warnings) > 0 {
		r["warning"] = strings.Join(warnings, ",")
		r["response_metadata"] = reply{"warnings": warnings}
	}
	return r
}

// destination finds the channel that the bot wants to write to. It may be
// named by its id, its name, or the id of a person.
func (s *Server) destination(c *apiCall) (*timeline, error) {
	id := c.args.str("channel")
	if u := s.ws.user(id); u != nil {
		return s.openIM(u)
	}
	for _, ch := range s.channels {
		if ch.Kind != KindIM && (ch.Name == strings.TrimPrefix(id, "#")) {
			id = ch.ID
		}
	}
	t := s.timelines[id]
	if t == nil || (t.channel.Kind != KindChannel && !t.channel.has(s.ws.App.BotUserID)) {
		return nil, fail("channel_not_found")
	}
	if !t.channel.has(s.ws.App.BotUserID) {
		return nil, fail("not_in_channel")
	}
	if t.channel.Kind == KindIM && !s.app.MessagesTab {
		return nil, fail("messages_tab_disabled")
	}
	return t, nil
}

// thread checks the thread_ts of a post: only a message that is there and is
// no reply itself can be replied to.
func (t *timeline) thread(ts string) error {
	if ts == "" {
		return nil
	}
	if _, ok := parseTS(ts); !ok {
		return fail("invalid_thread_ts")
	}
	parent := t.find(ts)
	if parent == nil || parent.isReply() {
		return fail("cannot_reply_to_message")
	}
	return nil
}

// botMessage is a new message of our app in this channel.
func (s *Server) botMessage(t *timeline, threadTS string, c content) *Message {
	app := s.ws.App
	m := &Message{Type: "message", User: app.BotUserID, BotID: app.BotID, AppID: app.ID, Team: s.ws.Team.ID,
		Text: c.text, TS: t.nextTS(), ThreadTS: threadTS, Blocks: c.blocks, Attachments: c.attachments,
		Metadata: c.metadata, BotProfile: s.botProfile(s.ws.user(app.BotUserID))}
	if string(m.Metadata) == "{}" {
		m.Metadata = nil
	}
	if parent := t.find(threadTS); parent != nil {
		m.ParentUserID = parent.User
	}
	return m
}

func (s *Server) botProfile(u *User) *BotProfile {
	return &BotProfile{ID: u.BotID, AppID: u.AppID, Name: u.Name, TeamID: s.ws.Team.ID, Icons: map[string]string{}, Workflow: u.Workflow}
}

func (s *Server) chatPostMessage(c *apiCall) (reply, error) {
	t, err := s.destination(c)
	if err != nil {
		return nil, err
	}
	body, err := readContent(c.args)
	if err != nil {
		return nil, err
	}
	if body.empty() {
		return nil, fail("no_text")
	}
	if err := t.thread(c.args.str("thread_ts")); err != nil {
		return nil, err
	}
	body.cut()
	m := s.botMessage(t, c.args.str("thread_ts"), body)
	if m.ThreadTS != "" && c.args.flag("reply_broadcast") {
		m.Subtype = "thread_broadcast"
	}
	if err := s.post(t, m); err != nil {
		return nil, err
	}
	return withWarnings(reply{"channel": t.channel.ID, "ts": m.TS, "message": t.shown(m, true)}, body.warnings), nil
}

// post stores a new message and tells everybody about it.
func (s *Server) post(t *timeline, m *Message) error {
	if err := s.commit(record{Message: &messageRecord{Channel: t.channel.ID, Message: m}}); err != nil {
		return err
	}
	if m.BotID != "" { // a message takes the place of "is thinking…"
		s.setStatus(t.channel.ID, m.ThreadTS, "")
	}
	s.notify("message", t.channel.ID, m)
	s.messagePosted(t, m)
	return nil
}

// notify tells open pages about a message.
func (s *Server) notify(kind, channel string, m *Message) {
	s.hub.publish(map[string]any{"type": kind, "channel": channel, "ts": m.TS, "thread_ts": m.ThreadTS,
		"author": m.User, "mentions": s.mentioned(m)})
}

func (s *Server) chatPostEphemeral(c *apiCall) (reply, error) {
	t, err := s.destination(c)
	if err != nil {
		return nil, err
	}
	user := c.args.str("user")
	if !t.channel.has(user) {
		return nil, fail("user_not_in_channel")
	}
	body, err := readContent(c.args)
	if err != nil {
		return nil, err
	}
	if body.empty() {
		return nil, fail("no_text")
	}
	if err := t.thread(c.args.str("thread_ts")); err != nil {
		return nil, err
	}
	body.cut()
	m := s.botMessage(t, c.args.str("thread_ts"), body)
	s.postEphemeral(t, m, user)
	return withWarnings(reply{"message_ts": m.TS}, body.warnings), nil
}

func (s *Server) postEphemeral(t *timeline, m *Message, user string) {
	m.EphemeralTo = user
	t.ephemerals = append(t.ephemerals, m)
	s.hub.publish(map[string]any{"type": "ephemeral", "channel": t.channel.ID, "ts": m.TS, "thread_ts": m.ThreadTS, "user": user})
}

// ownMessage finds a message that the bot may change.
func (s *Server) ownMessage(c *apiCall, notOwn string) (*timeline, *Message, error) {
	t := s.timelines[c.args.str("channel")]
	if t == nil || (t.channel.Kind != KindChannel && !t.channel.has(s.ws.App.BotUserID)) {
		return nil, nil, fail("channel_not_found")
	}
	m := t.find(c.args.str("ts"))
	if m == nil || m.Subtype == "tombstone" {
		return nil, nil, fail("message_not_found") // an ephemeral isn't found either
	}
	if m.BotID != s.ws.App.BotID {
		return nil, nil, fail(notOwn)
	}
	return t, m, nil
}

func (s *Server) chatUpdate(c *apiCall) (reply, error) {
	t, m, err := s.ownMessage(c, "cant_update_message")
	if err != nil {
		return nil, err
	}
	body, err := readContent(c.args)
	if err != nil {
		return nil, err
	}
	if len([]rune(body.text)) > maxUpdateText {
		return nil, fail("msg_too_long")
	}
	changed, err := updated(m, c.args, body)
	if err != nil {
		return nil, err
	}
	if err := s.change(t, m, changed); err != nil {
		return nil, err
	}
	return reply{"channel": t.channel.ID, "ts": m.TS, "text": changed.Text, "message": t.shown(changed, true)}, nil
}

// updated is the message after chat.update: text without blocks removes the
// blocks, attachments and metadata stay unless they are given.
func updated(m *Message, a args, body content) (*Message, error) {
	out := m.clone()
	switch {
	case a.has("blocks") && a["blocks"] != "":
		out.Blocks = body.blocks
		if string(out.Blocks) == "[]" {
			out.Blocks = nil
		}
		out.Text = body.text
	case body.text != "":
		out.Blocks = nil
		out.Text = body.text
	}
	if body.attachments != nil {
		out.Attachments = body.attachments
		if string(out.Attachments) == "[]" {
			out.Attachments = nil
		}
	}
	if body.metadata != nil {
		out.Metadata = body.metadata
		if string(out.Metadata) == "{}" {
			out.Metadata = nil
		}
	}
	if out.Text == "" && len(out.Blocks) == 0 && len(out.Attachments) == 0 {
		return nil, fail("no_text")
	}
	return out, nil
}

// change replaces a stored message by its edited form.
func (s *Server) change(t *timeline, before, after *Message) error {
	after.Edited = &Edited{User: after.User, TS: stampNow()}
	previous := t.shown(before, false)
	if err := s.commit(record{Message: &messageRecord{Channel: t.channel.ID, Message: after}}); err != nil {
		return err
	}
	s.notify("message_changed", t.channel.ID, after)
	s.messageChanged(t, after, previous)
	return nil
}

func (s *Server) chatDelete(c *apiCall) (reply, error) {
	t, m, err := s.ownMessage(c, "cant_delete_message")
	if err != nil {
		return nil, err
	}
	if err := s.remove(t, m); err != nil {
		return nil, err
	}
	return reply{"channel": t.channel.ID, "ts": m.TS}, nil
}

// remove deletes a message. The parent of a thread leaves a tombstone, else
// its replies would hang in the air.
func (s *Server) remove(t *timeline, m *Message) error {
	previous := t.shown(m, false)
	rec := record{Deleted: &messageRecord{Channel: t.channel.ID, TS: m.TS}}
	if len(t.replies[m.TS]) > 0 {
		rec = record{Message: &messageRecord{Channel: t.channel.ID, Message: &Message{Type: "message",
			Subtype: "tombstone", Hidden: true, User: "USLACKBOT", Text: "This message was deleted.", TS: m.TS}}}
	}
	if err := s.commit(rec); err != nil {
		return err
	}
	s.notify("message_deleted", t.channel.ID, m)
	s.messageDeleted(t, previous)
	return nil
}

func (s *Server) chatGetPermalink(c *apiCall) (reply, error) {
	t := s.timelines[c.args.str("channel")]
	if t == nil {
		return nil, fail("channel_not_found")
	}
	m := t.find(c.args.str("message_ts"))
	if m == nil {
		return nil, fail("message_not_found")
	}
	link := c.origin + "/archives/" + t.channel.ID + "/p" + strings.Replace(m.TS, ".", "", 1)
	if m.isReply() {
		link += "?" + url.Values{"thread_ts": {m.ThreadTS}, "cid": {t.channel.ID}}.Encode()
	}
	return reply{"channel": t.channel.ID, "permalink": link}, nil
}
