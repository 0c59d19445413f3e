package devslack

import (
	"encoding/base64"
	"slices"
	"strconv"
	"strings"
)

// readable finds a channel whose messages the bot may read.
func (s *Server) readable(c *apiCall) (*timeline, error) {
	t, err := s.visible(c, "history")
	if err != nil {
		return nil, err
	}
	if !t.channel.has(s.ws.App.BotUserID) {
		return nil, fail("not_in_channel")
	}
	return t, nil
}

// visible finds a channel that the bot may know of, and checks the scope that
// goes with its kind: which one is needed is known only then.
func (s *Server) visible(c *apiCall, scope string) (*timeline, error) {
	t := s.timelines[c.args.str("channel")]
	if t == nil || (t.channel.Kind != KindChannel && !t.channel.has(s.ws.App.BotUserID)) {
		return nil, fail("channel_not_found")
	}
	return t, s.app.needs(t.channel.scopePrefix() + ":" + scope)
}

// A cursor says where the next page begins, in a form that Slack uses too.

func cursorFor(micros int64) string {
	return base64.StdEncoding.EncodeToString([]byte("next_ts:" + strconv.FormatInt(micros, 10)))
}

func readCursor(cursor string) (int64, error) {
	if cursor == "" {
		return 0, nil
	}
	raw, err := base64.StdEncoding.DecodeString(cursor)
	number, found := strings.CutPrefix(string(raw), "next_ts:")
	n, nerr := strconv.ParseInt(number, 10, 64)
	if err != nil || !found || nerr != nil || n < 0 {
		return 0, fail("invalid_cursor")
	}
	return n, nil
}

// window is which messages a call asks for.
type window struct {
	limit          int
	cursor         int64
	oldest, latest int64 // 0: open
	inclusive      bool
	metadata       bool
}

func readWindow(a args, defaultLimit int) (window, error) {
	w := window{inclusive: a.flag("inclusive"), metadata: a.flag("include_all_metadata")}
	var err error
	if w.limit, err = a.count("limit", defaultLimit, 1000); err != nil {
		return w, err
	}
	if w.cursor, err = readCursor(a.str("cursor")); err != nil {
		return w, err
	}
	for name, into := range map[string]*int64{"oldest": &w.oldest, "latest": &w.latest} {
		if *into, err = readMoment(a.str(name)); err != nil {
			return w, &apiError{Code: "invalid_ts_" + name}
		}
	}
	return w, nil
}

// readMoment reads a timestamp that may also be given as plain seconds.
func readMoment(v string) (int64, error) {
	if v == "" || v == "0" {
		return 0, nil
	}
	if micros, ok := parseTS(v); ok {
		return micros, nil
	}
	seconds, err := strconv.ParseFloat(v, 64)
	if err != nil || seconds < 0 || seconds > 1e11 {
		return 0, fail("invalid_ts")
	}
	return int64(seconds * 1e6), nil
}

func (w window) contains(m *Message) bool {
	at := m.micros()
	if w.oldest != 0 && (at < w.oldest || at == w.oldest && !w.inclusive) {
		return false
	}
	return w.latest == 0 || at < w.latest || at == w.latest && w.inclusive
}

// page cuts one page out of messages, which are in the order of the answer.
func (w window) page(messages []*Message, t *timeline) (reply, bool) {
	next := ""
	out := []*Message{}
	for _, m := range messages {
		if len(out) == w.limit {
			next = cursorFor(m.micros())
			break
		}
		out = append(out, t.shown(m, w.metadata))
	}
	answer := reply{"messages": out, "has_more": next != ""}
	if next != "" {
		answer["response_metadata"] = reply{"next_cursor": next}
	}
	return answer, next != ""
}

func (s *Server) conversationsHistory(c *apiCall) (reply, error) {
	t, err := s.readable(c)
	if err != nil {
		return nil, err
	}
	w, err := readWindow(c.args, 100)
	if err != nil {
		return nil, err
	}
	var newestFirst []*Message
	for _, m := range slices.Backward(t.all) {
		if m.isReply() && m.Subtype != "thread_broadcast" {
			continue
		}
		if w.contains(m) && (w.cursor == 0 || m.micros() <= w.cursor) {
			newestFirst = append(newestFirst, m)
		}
	}
	answer, _ := w.page(newestFirst, t)
	answer["pin_count"] = 0
	return answer, nil
}

func (s *Server) conversationsReplies(c *apiCall) (reply, error) {
	t, err := s.readable(c)
	if err != nil {
		return nil, err
	}
	w, err := readWindow(c.args, 1000)
	if err != nil {
		return nil, err
	}
	m := t.find(c.args.str("ts"))
	if m == nil {
		return nil, fail("thread_not_found")
	}
	var thread []*Message
	if w.cursor == 0 {
		thread = append(thread, m)
	}
	for _, r := range t.replies[m.TS] {
		if w.contains(r) && r.micros() >= w.cursor {
			thread = append(thread, r)
		}
	}
	answer, _ := w.page(thread, t)
	return answer, nil
}

func (s *Server) conversationsInfo(c *apiCall) (reply, error) {
	t, err := s.visible(c, "read")
	if err != nil {
		return nil, err
	}
	return reply{"channel": s.channelObject(t.channel, c.args.flag("include_num_members"))}, nil
}

func (s *Server) conversationsList(c *apiCall) (reply, error) {
	types := c.args.list("types")
	if len(types) == 0 {
		types = []string{"public_channel"}
	}
	wanted := map[Kind]bool{}
	for _, name := range types {
		kind, known := map[string]Kind{"public_channel": KindChannel, "private_channel": KindPrivate, "im": KindIM, "mpim": ""}[name]
		if !known {
			return nil, fail("invalid_types")
		}
		wanted[kind] = true
	}
	found := []any{}
	for _, ch := range s.channels {
		if !wanted[ch.Kind] || (ch.Kind != KindChannel && !ch.has(s.ws.App.BotUserID)) {
			continue
		}
		if err := s.app.needs(ch.scopePrefix() + ":read"); err != nil {
			return nil, err
		}
		found = append(found, s.channelObject(ch, true))
	}
	return listPage(c.args, "channels", found, 100)
}

// listPage cuts a page out of a list that has no timestamps; its cursor is a
// position.
func listPage[T any](a args, name string, items []T, defaultLimit int) (reply, error) {
	limit, err := a.count("limit", defaultLimit, 1000)
	if err != nil {
		return nil, err
	}
	from, err := readCursor(a.str("cursor"))
	if err != nil || from > int64(len(items)) {
		return nil, fail("invalid_cursor")
	}
	rest := items[from:]
	next := ""
	if len(rest) > limit {
		rest = rest[:limit]
		next = cursorFor(from + int64(limit))
	}
	return reply{name: rest, "response_metadata": reply{"next_cursor": next}}, nil
}

func (s *Server) conversationsMembers(c *apiCall) (reply, error) {
	t, err := s.visible(c, "read")
	if err != nil {
		return nil, err
	}
	return listPage(c.args, "members", t.channel.Members, 100)
}

func (s *Server) conversationsOpen(c *apiCall) (reply, error) {
	if id := c.args.str("channel"); id != "" {
		t := s.timelines[id]
		if t == nil || t.channel.Kind != KindIM || !t.channel.has(s.ws.App.BotUserID) {
			return nil, fail("channel_not_found")
		}
		return s.opened(c, t, true), nil
	}
	users := c.args.list("users")
	switch {
	case len(users) == 0:
		return nil, fail("users_list_not_supplied")
	case len(users) > 8:
		return nil, fail("too_many_users")
	case len(users) > 1:
		return nil, s.app.needs("mpim:write") // this Slack has no group DMs, and grants no scope for them
	}
	u := s.ws.user(users[0])
	if u == nil {
		return nil, fail("user_not_found")
	}
	before := len(s.channels)
	t, err := s.openIM(u)
	if err != nil {
		return nil, err
	}
	return s.opened(c, t, before == len(s.channels)), nil
}

// conversationsJoin lets the bot into a public channel; into any other it has
// to be invited.
func (s *Server) conversationsJoin(c *apiCall) (reply, error) {
	t := s.timelines[c.args.str("channel")]
	if t == nil || t.channel.Kind != KindChannel && !t.channel.has(s.ws.App.BotUserID) {
		return nil, fail("channel_not_found")
	}
	if t.channel.Kind != KindChannel {
		return nil, fail("method_not_supported_for_channel_type")
	}
	already := t.channel.has(s.ws.App.BotUserID)
	if err := s.member(t, s.ws.user(s.ws.App.BotUserID), true); err != nil {
		return nil, err
	}
	out := reply{"channel": s.channelObject(t.channel, false)}
	if already {
		out["warning"], out["response_metadata"] = "already_in_channel", reply{"warnings": []string{"already_in_channel"}}
	}
	return out, nil
}

func (s *Server) opened(c *apiCall, t *timeline, already bool) reply {
	out := reply{"channel": reply{"id": t.channel.ID}}
	if c.args.flag("return_im") {
		out["channel"] = s.channelObject(t.channel, false)
	}
	if already {
		out["no_op"], out["already_open"] = true, true
	}
	return out
}

// openIM is the bot's direct conversation with a person, made when needed.
func (s *Server) openIM(u *User) (*timeline, error) {
	switch {
	case u.Kind == KindDeactivated:
		return nil, fail("user_disabled")
	case u.Kind == KindBot:
		return nil, fail("cannot_dm_bot")
	case !s.app.MessagesTab:
		return nil, fail("messages_tab_disabled")
	}
	for _, ch := range s.channels {
		if ch.Kind == KindIM && ch.User == u.ID {
			return s.timelines[ch.ID], nil
		}
	}
	im := s.ws.newIM(u)
	if err := s.commit(record{Channel: im}); err != nil {
		return nil, err
	}
	return s.timelines[im.ID], nil
}

// external reports whether somebody from another organization is in it.
func (s *Server) external(ch *Channel) bool {
	return slices.ContainsFunc(ch.Members, func(id string) bool {
		u := s.ws.user(id)
		return u != nil && u.TeamID != s.ws.Team.ID
	})
}

func (s *Server) channelObject(ch *Channel, count bool) reply {
	team := s.ws.Team.ID
	if ch.Kind == KindIM {
		return reply{"id": ch.ID, "created": ch.Created, "is_im": true, "is_archived": false, "is_org_shared": false,
			"context_team_id": team, "user": ch.User, "is_user_deleted": false, "is_open": true, "priority": 0,
			"latest": nil, "unread_count": 0, "unread_count_display": 0, "last_read": "0000000000.000000"}
	}
	shared := s.external(ch)
	out := reply{
		"id": ch.ID, "name": ch.Name, "name_normalized": ch.Name, "created": ch.Created, "creator": ch.Creator,
		"is_channel": ch.Kind == KindChannel, "is_group": false, "is_im": false, "is_mpim": false,
		"is_private": ch.Kind == KindPrivate, "is_archived": false, "is_general": ch.Name == "general",
		"is_member": ch.has(s.ws.App.BotUserID), "is_shared": shared, "is_ext_shared": shared, "is_org_shared": false,
		"is_pending_ext_shared": false, "pending_shared": []string{}, "context_team_id": team, "unlinked": 0,
		"shared_team_ids": []string{team}, "parent_conversation": nil, "previous_names": []string{},
		"topic":   reply{"value": ch.Topic, "creator": "", "last_set": 0},
		"purpose": reply{"value": "", "creator": "", "last_set": 0},
	}
	if count {
		out["num_members"] = len(ch.Members)
	}
	return out
}
