package devslack

import (
	"cmp"
	"regexp"
	"slices"
	"time"
)

// What people do, other than using elements: write, edit, delete, react,
// join, give commands, open the Home tab.

// MessageRequest is a person (or the other bot) writing.
type MessageRequest struct {
	User     string `json:"user"`
	Channel  string `json:"channel"`
	Text     string `json:"text"`
	ThreadTS string `json:"thread_ts,omitempty"`
	// Files may come without a text.
	Files []Attachment `json:"files,omitempty"`
}

// SendMessage posts what a person typed and returns its ts. Mentions are kept
// as they are, everything else is escaped as Slack does it.
func (s *Server) SendMessage(req MessageRequest) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t, u, err := s.place(req.Channel, req.User)
	if err != nil {
		return "", err
	}
	switch {
	case req.Text == "" && len(req.Files) == 0:
		return "", refuse("no_text", "a message needs a text, or files")
	case len([]rune(req.Text)) > maxPostText:
		return "", refuse("msg_too_long", "Slack's client doesn't send that much")
	case t.thread(req.ThreadTS) != nil:
		return "", missing("thread_not_found")
	}
	m, err := s.typed(t.channel, u, req)
	if err != nil {
		return "", err
	}
	m.TS, m.ThreadTS = t.nextTS(), req.ThreadTS
	if u.TeamID != s.ws.Team.ID {
		m.UserTeam, m.SourceTeam = u.TeamID, u.TeamID
	}
	if parent := t.find(req.ThreadTS); parent != nil {
		m.ParentUserID = parent.User
	}
	return m.TS, s.post(t, m)
}

// typed is the message that somebody writes, but for where it stands. Bots
// write through the Web API: an app's message names its bot user, a workflow's
// is a bot_message and names none.
func (s *Server) typed(ch *Channel, u *User, req MessageRequest) (*Message, error) {
	m := &Message{Type: "message", User: u.ID, Team: u.TeamID, ClientMsgID: uuid()}
	if req.Text != "" {
		m.Text, m.Blocks = typedText(req.Text)
	}
	if u.Kind == KindBot {
		m.BotID, m.AppID, m.BotProfile, m.Blocks, m.ClientMsgID = u.BotID, u.AppID, s.botProfile(u), nil, ""
	}
	if u.Workflow {
		m.User, m.Subtype, m.Username, m.BotProfile.Name = "", "bot_message", u.RealName, u.RealName
	}
	if len(req.Files) == 0 {
		return m, nil
	}
	files, err := s.attach(ch, u, req.Files)
	if err != nil {
		return nil, err
	}
	no := false
	m.Files, m.Upload, m.ClientMsgID = files, &no, ""
	if m.Subtype == "" {
		m.Subtype = "file_share"
	}
	return m, nil
}

// place finds where somebody writes, and whether they can.
func (s *Server) place(channel, user string) (*timeline, *User, error) {
	t := s.timelines[channel]
	if t == nil {
		return nil, nil, missing("channel_not_found")
	}
	u, err := s.actor(user)
	if err != nil {
		return nil, nil, err
	}
	if !t.channel.has(u.ID) {
		return nil, nil, refuse("user_not_in_channel", "the person is not in that channel")
	}
	return t, u, nil
}

// Messages returns a channel's messages, oldest first, with those that only
// one person sees; with a threadTS its parent and replies.
func (s *Server) Messages(channel, threadTS string) ([]Message, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.timelines[channel]
	if t == nil {
		return nil, missing("channel_not_found")
	}
	in := func(m *Message) bool {
		return threadTS == "" || m.TS == threadTS || m.ThreadTS == threadTS
	}
	out := []Message{}
	for _, m := range slices.Concat(t.all, t.ephemerals) {
		if in(m) {
			out = append(out, *t.shown(m, true))
		}
	}
	slices.SortFunc(out, func(a, b Message) int { return cmp.Compare(a.micros(), b.micros()) })
	return out, nil
}

// MessageRef names a message, and who does something to it.
type MessageRef struct {
	User    string `json:"user"`
	Channel string `json:"channel"`
	TS      string `json:"ts"`
	Text    string `json:"text,omitempty"` // the new text of an edit
	Name    string `json:"name,omitempty"` // of a reaction
}

// mine finds a message that the person may change: their own.
func (s *Server) mine(ref MessageRef) (*timeline, *Message, error) {
	t, u, err := s.place(ref.Channel, ref.User)
	if err != nil {
		return nil, nil, err
	}
	m := t.find(ref.TS)
	if m == nil {
		return nil, nil, missing("message_not_found")
	}
	if m.User != u.ID {
		return nil, nil, refuse("not_your_message", "people change only their own messages")
	}
	return t, m, nil
}

// EditMessage is a person changing a message of theirs.
func (s *Server) EditMessage(ref MessageRef) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	t, m, err := s.mine(ref)
	if err != nil {
		return err
	}
	if ref.Text == "" {
		return refuse("no_text", "a message needs a text")
	}
	after := m.clone()
	after.Text, after.Blocks = typedText(ref.Text)
	return s.change(t, m, after)
}

// DeleteMessage is a person deleting a message of theirs.
func (s *Server) DeleteMessage(ref MessageRef) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	t, m, err := s.mine(ref)
	if err != nil {
		return err
	}
	return s.remove(t, m)
}

// React is a person putting a reaction on a message.
func (s *Server) React(ref MessageRef) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	t, u, err := s.place(ref.Channel, ref.User)
	if err != nil {
		return err
	}
	m := t.find(ref.TS)
	if m == nil {
		return missing("message_not_found")
	}
	if !emojiName.MatchString(ref.Name) {
		return refuse("invalid_name", "the name of a reaction has no colons")
	}
	return s.react(t, m, u.ID, ref.Name)
}

// MembershipRequest is somebody joining or leaving a channel; the bot can be
// the one.
type MembershipRequest struct {
	User    string `json:"user"`
	Channel string `json:"channel"`
}

// Join adds somebody to a channel and says so in it, as Slack does.
func (s *Server) Join(req MembershipRequest) error { return s.setMembership(req, true) }

// Leave takes somebody out of a channel.
func (s *Server) Leave(req MembershipRequest) error { return s.setMembership(req, false) }

func (s *Server) setMembership(req MembershipRequest, joining bool) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	t, u := s.timelines[req.Channel], s.ws.user(req.User)
	switch {
	case t == nil:
		return missing("channel_not_found")
	case u == nil:
		return missing("user_not_found")
	case t.channel.Kind == KindIM || u.Kind == KindDeactivated:
		return refuse("invalid_membership", "the members of a direct conversation are fixed, and deactivated users are in no channel")
	}
	return s.member(t, u, joining)
}

// member adds somebody to a channel, or takes them out. s.mu is held.
func (s *Server) member(t *timeline, u *User, joining bool) error {
	if t.channel.has(u.ID) == joining {
		return nil
	}
	subtype, event, words := "channel_leave", "member_left_channel", "has left the channel"
	changed := *t.channel
	if joining {
		subtype, event, words = "channel_join", "member_joined_channel", "has joined the channel"
		changed.Members = append(slices.Clone(changed.Members), u.ID)
	} else {
		changed.Members = slices.DeleteFunc(slices.Clone(changed.Members), func(id string) bool { return id == u.ID })
	}
	if err := s.commit(record{Channel: &changed}); err != nil {
		return err
	}
	s.hub.publish(map[string]any{"type": "workspace"})
	s.emit(event, t.channel, map[string]any{"type": event, "user": u.ID, "channel": t.channel.ID,
		"channel_type": "C", "team": u.TeamID, "event_ts": stampNow()})
	return s.post(t, &Message{Type: "message", Subtype: subtype, User: u.ID, TS: t.nextTS(), Text: "<@" + u.ID + "> " + words})
}

// ChannelRequest makes a channel. Its members come from the request; our bot
// and the person who makes it can be among them like anybody else.
type ChannelRequest struct {
	Name    string   `json:"name"`
	Kind    Kind     `json:"kind,omitempty"` // channel, the default, or private
	Members []string `json:"members"`
}

// CreateChannel makes a channel.
func (s *Server) CreateChannel(req ChannelRequest) (Channel, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	kind := cmp.Or(req.Kind, KindChannel)
	switch {
	case !channelName.MatchString(req.Name):
		return Channel{}, refuse("invalid_name", "a channel's name has up to 80 lower-case letters, digits, - and _")
	case kind != KindChannel && kind != KindPrivate:
		return Channel{}, refuse("invalid_kind", "kind is channel or private")
	case slices.ContainsFunc(s.channels, func(c *Channel) bool { return c.Kind != KindIM && c.Name == req.Name }):
		return Channel{}, refuse("name_taken", "there is a channel of that name")
	}
	ch := &Channel{ID: slackID("C"), Name: req.Name, Kind: kind, Members: slices.Clone(req.Members), Created: time.Now().Unix()}
	for _, id := range ch.Members {
		if u := s.ws.user(id); u == nil || u.Kind == KindDeactivated {
			return Channel{}, missing("user_not_found")
		}
	}
	if len(ch.Members) > 0 {
		ch.Creator = ch.Members[0]
	}
	if err := s.commit(record{Channel: ch}); err != nil {
		return Channel{}, err
	}
	s.hub.publish(map[string]any{"type": "workspace"})
	return *ch, nil
}

var channelName = regexp.MustCompile(`^[a-z0-9][a-z0-9_-]{0,79}$`)

// CommandRequest is a person giving a slash command.
type CommandRequest struct {
	User    string `json:"user"`
	Channel string `json:"channel"`
	Command string `json:"command"`
	Text    string `json:"text,omitempty"`
}

// Command gives a slash command and shows what the app answers in its ack.
func (s *Server) Command(req CommandRequest) (Receipt, error) {
	d, use, err := s.command(req)
	if err != nil {
		return Receipt{}, err
	}
	receipt, answer := s.receipt(d)
	if !receipt.Acked || len(answer) == 0 {
		return receipt, nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.commandAnswer(use, answer); err != nil {
		return receipt, refuse("invalid_response", err.Error())
	}
	return receipt, nil
}

func (s *Server) command(req CommandRequest) (*delivery, *responseURL, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t, u, err := s.place(req.Channel, req.User)
	if err != nil {
		return nil, nil, err
	}
	if len(req.Command) < 2 || req.Command[0] != '/' || !s.app.hasCommand(req.Command) {
		return nil, nil, missing("unknown_command")
	}
	use := &responseURL{channel: t.channel.ID, user: u.ID}
	d := &delivery{kind: envelopeCommand, payload: map[string]any{
		"token": s.ws.Secret, "team_id": s.ws.Team.ID, "team_domain": s.ws.Team.Domain, "channel_id": t.channel.ID,
		"channel_name": t.channel.payloadName(), "user_id": u.ID, "user_name": u.Name, "command": req.Command,
		"text": escapeExcept(req.Text, userMarkup), "api_app_id": s.ws.App.ID, "is_enterprise_install": "false",
		"response_url": s.newResponseURL("commands", use), "trigger_id": s.newTrigger(u.ID, ""),
	}}
	s.dispatch(d)
	return d, use, nil
}

// HomeRequest is a person opening a tab of the app: home, or messages.
type HomeRequest struct {
	User string `json:"user"`
	Tab  string `json:"tab,omitempty"`
}

// OpenHome is a person opening the app's Home tab.
func (s *Server) OpenHome(user string) error { return s.OpenTab(HomeRequest{User: user}) }

// OpenTab is a person opening one of the app's tabs, which it is told of. Of
// its messages only an agent is told.
func (s *Server) OpenTab(req HomeRequest) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	u, err := s.actor(req.User)
	if err != nil {
		return err
	}
	tab := cmp.Or(req.Tab, "home")
	switch {
	case tab == "messages" && !s.app.AgentView:
		return nil
	case tab != "home" && tab != "messages":
		return refuse("invalid_tab", "tab is home or messages")
	case tab == "home" && !s.app.HomeTab:
		return refuse("home_tab_disabled", "the app has no Home tab")
	}
	t, err := s.openIM(u)
	if err != nil {
		return refuse("no_direct_conversation", err.Error())
	}
	event := map[string]any{"type": "app_home_opened", "user": u.ID, "channel": t.channel.ID, "tab": tab, "event_ts": stampNow()}
	if v := s.views.home(u.ID); v != nil && tab == "home" {
		event["view"] = v.copy()
	}
	s.emit("app_home_opened", nil, event)
	return nil
}

// EnvelopeRequest is an envelope of any shape, for what Slack may send one day.
type EnvelopeRequest struct {
	Type    string `json:"type"`
	Payload any    `json:"payload"`
}

// SendEnvelope delivers it once and waits for the ack.
func (s *Server) SendEnvelope(req EnvelopeRequest) (Receipt, error) {
	if req.Type == "" {
		return Receipt{}, refuse("invalid_envelope", "an envelope has a type")
	}
	s.mu.Lock()
	d := &delivery{kind: envelopeKind(req.Type), payload: req.Payload, once: true}
	s.dispatch(d)
	s.mu.Unlock()
	receipt, _ := s.receipt(d)
	return receipt, nil
}

// Calls returns the logged calls and frames with a sequence number above after.
func (s *Server) Calls(after int64) []Call { return s.calls.after(after) }
