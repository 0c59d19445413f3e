package devslack

// ShortcutRequest is a person choosing an entry of the app: from the menu of a
// message, or without a message from the client's own menu.
type ShortcutRequest struct {
	User       string `json:"user"`
	Channel    string `json:"channel,omitempty"`
	TS         string `json:"ts,omitempty"`
	CallbackID string `json:"callback_id"`
}

// Shortcut sends it to the app and waits for the ack. A message's shortcut
// works in every channel that the person sees, whether the app is in it or not.
func (s *Server) Shortcut(req ShortcutRequest) (Receipt, error) {
	d, err := s.shortcut(req)
	if err != nil {
		return Receipt{}, err
	}
	receipt, _ := s.receipt(d)
	return receipt, nil
}

func (s *Server) shortcut(req ShortcutRequest) (*delivery, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.app.NoInteractivity {
		return nil, refuse("interactivity_disabled", "the app's manifest does not enable interactivity")
	}
	if req.TS == "" {
		return s.globalShortcut(req)
	}
	if _, ok := s.app.shortcut(req.CallbackID, "message"); !ok {
		return nil, missing("unknown_shortcut")
	}
	t, u, err := s.visibleTo(req.Channel, req.User)
	if err != nil {
		return nil, err
	}
	m := t.find(req.TS) // what only one person sees has no menu
	if m == nil || m.Subtype == "tombstone" {
		return nil, missing("message_not_found")
	}
	p := s.interactive("message_action", u)
	p["callback_id"], p["action_ts"] = req.CallbackID, stampNow()
	p["trigger_id"] = s.newTrigger(u.ID, "")
	p["channel"] = map[string]any{"id": t.channel.ID, "name": t.channel.payloadName()}
	p["message"], p["message_ts"] = t.shown(m, false), m.TS
	p["response_url"] = s.newResponseURL("app", &responseURL{channel: t.channel.ID, user: u.ID, ts: m.TS})
	return s.interact(p), nil
}

func (s *Server) globalShortcut(req ShortcutRequest) (*delivery, error) {
	if _, ok := s.app.shortcut(req.CallbackID, "global"); !ok {
		return nil, missing("unknown_shortcut")
	}
	u, err := s.actor(req.User)
	if err != nil {
		return nil, err
	}
	p := s.interactive("shortcut", u)
	p["callback_id"], p["action_ts"], p["trigger_id"] = req.CallbackID, stampNow(), s.newTrigger(u.ID, "")
	return s.interact(p), nil
}
