package devslack

import (
	"regexp"
	"slices"
)

var emojiName = regexp.MustCompile(`^[a-z0-9_+'-]{1,100}(::skin-tone-[2-6])?$`)

// reactionTarget finds the message that a reaction call names.
func (s *Server) reactionTarget(c *apiCall) (*timeline, *Message, string, error) {
	name := c.args.str("name")
	if !emojiName.MatchString(name) {
		return nil, nil, "", fail("invalid_name")
	}
	t := s.timelines[c.args.str("channel")]
	if t == nil || (t.channel.Kind != KindChannel && !t.channel.has(s.ws.App.BotUserID)) {
		return nil, nil, "", fail("channel_not_found")
	}
	if !t.channel.has(s.ws.App.BotUserID) {
		return nil, nil, "", fail("not_in_channel")
	}
	m := t.find(c.args.str("timestamp"))
	if m == nil {
		return nil, nil, "", fail("message_not_found")
	}
	return t, m, name, nil
}

func (s *Server) reactionsAdd(c *apiCall) (reply, error) {
	t, m, name, err := s.reactionTarget(c)
	if err != nil {
		return nil, err
	}
	return nil, s.react(t, m, s.ws.App.BotUserID, name)
}

func (s *Server) reactionsRemove(c *apiCall) (reply, error) {
	t, m, name, err := s.reactionTarget(c)
	if err != nil {
		return nil, err
	}
	return nil, s.unreact(t, m, s.ws.App.BotUserID, name)
}

const maxReactions = 50

func (s *Server) react(t *timeline, m *Message, user, name string) error {
	after := m.clone()
	i := slices.IndexFunc(after.Reactions, func(r Reaction) bool { return r.Name == name })
	switch {
	case i < 0 && len(after.Reactions) >= maxReactions:
		return fail("too_many_emoji")
	case i < 0:
		after.Reactions = append(after.Reactions, Reaction{Name: name, Users: []string{user}, Count: 1})
	case slices.Contains(after.Reactions[i].Users, user):
		return fail("already_reacted")
	default:
		after.Reactions[i].Users = append(after.Reactions[i].Users, user)
		after.Reactions[i].Count++
	}
	return s.setReactions(t, after, "reaction_added", user, name)
}

func (s *Server) unreact(t *timeline, m *Message, user, name string) error {
	after := m.clone()
	i := slices.IndexFunc(after.Reactions, func(r Reaction) bool { return r.Name == name })
	if i < 0 || !slices.Contains(after.Reactions[i].Users, user) {
		return fail("no_reaction")
	}
	r := &after.Reactions[i]
	r.Users = slices.DeleteFunc(r.Users, func(id string) bool { return id == user })
	if r.Count--; r.Count == 0 {
		after.Reactions = slices.Delete(after.Reactions, i, i+1)
	}
	return s.setReactions(t, after, "reaction_removed", user, name)
}

func (s *Server) setReactions(t *timeline, after *Message, event, user, name string) error {
	if err := s.commit(record{Message: &messageRecord{Channel: t.channel.ID, Message: after}}); err != nil {
		return err
	}
	s.notify("message_changed", t.channel.ID, after)
	s.reacted(event, user, t, after, name)
	return nil
}
