package devslack

import (
	"encoding/base64"
	"slices"
	"strings"
	"time"
)

// messageEvent is a message as an event: with where it stands.
type messageEvent struct {
	*Message
	Channel     string `json:"channel"`
	ChannelType string `json:"channel_type,omitempty"`
	EventTS     string `json:"event_ts"`
}

// emit delivers one event to the app, if it is subscribed and may see the
// channel (nil: the event belongs to none).
func (s *Server) emit(subscription string, ch *Channel, event any) {
	if !slices.Contains(s.app.BotEvents, subscription) {
		return
	}
	if ch != nil && !ch.has(s.ws.App.BotUserID) {
		return
	}
	app := s.ws.App
	id := slackID("Ev")
	payload := map[string]any{
		"token": s.ws.Secret, "team_id": s.ws.Team.ID, "context_team_id": s.ws.Team.ID, "context_enterprise_id": nil,
		"api_app_id": app.ID, "event": event, "type": "event_callback", "event_id": id,
		"event_time": time.Now().Unix(), "is_ext_shared_channel": ch != nil && s.external(ch),
		"event_context": "4-" + base64.RawURLEncoding.EncodeToString([]byte(`{"et":"`+subscription+`","tid":"`+s.ws.Team.ID+`","aid":"`+app.ID+`"}`)),
		"authorizations": []map[string]any{{"enterprise_id": nil, "team_id": s.ws.Team.ID, "user_id": app.BotUserID,
			"is_bot": true, "is_enterprise_install": false}},
	}
	s.dispatch(&delivery{kind: envelopeEvent, payload: payload})
	if s.takeSocketFault(faultDuplicate) != nil {
		s.dispatch(&delivery{kind: envelopeEvent, payload: payload})
	}
}

// messagePosted tells the app of a new message: as message, and when it
// mentions the bot also as app_mention, with another event id.
func (s *Server) messagePosted(t *timeline, m *Message) {
	ch := t.channel
	shown := m.clone()
	shown.Metadata = nil // delivered only to subscribers of message_metadata_posted
	event := messageEvent{Message: shown, Channel: ch.ID, ChannelType: ch.channelType(), EventTS: m.TS}
	mentions := strings.Contains(m.Text, "<@"+s.ws.App.BotUserID+">") || strings.Contains(m.Text, "<@"+s.ws.App.BotUserID+"|")
	if mentions && ch.Kind != KindIM && m.User != s.ws.App.BotUserID {
		mention := shown.clone()
		mention.Type = "app_mention"
		if mention.Subtype == "file_share" {
			mention.Subtype = "" // a mention with files is a mention
		}
		s.emit("app_mention", ch, messageEvent{Message: mention, Channel: ch.ID, EventTS: m.TS})
	}
	s.emit("message."+ch.scopePrefix(), ch, event)
}

// hiddenEvent is the shape of events about messages that were there before.
func hiddenEvent(t *timeline, subtype string, fields map[string]any) map[string]any {
	ts := t.nextTS()
	event := map[string]any{"type": "message", "subtype": subtype, "hidden": true, "channel": t.channel.ID,
		"channel_type": t.channel.channelType(), "ts": ts, "event_ts": ts}
	for key, value := range fields {
		event[key] = value
	}
	return event
}

func (s *Server) messageChanged(t *timeline, m, previous *Message) {
	s.emit("message."+t.channel.scopePrefix(), t.channel, hiddenEvent(t, "message_changed",
		map[string]any{"message": t.shown(m, false), "previous_message": previous}))
}

func (s *Server) messageDeleted(t *timeline, previous *Message) {
	s.emit("message."+t.channel.scopePrefix(), t.channel, hiddenEvent(t, "message_deleted",
		map[string]any{"deleted_ts": previous.TS, "previous_message": previous}))
}

func (s *Server) reacted(kind, user string, t *timeline, m *Message, name string) {
	s.emit(kind, t.channel, map[string]any{"type": kind, "user": user, "reaction": name, "item_user": m.User,
		"item": map[string]any{"type": "message", "channel": t.channel.ID, "ts": m.TS}, "event_ts": stampNow()})
}
