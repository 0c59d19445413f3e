package devslack

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"time"
)

// trigger lets the app open a modal for the person who caused it.
type trigger struct {
	user    string
	viewID  string // the modal it was caused in, for views.push
	expires time.Time
	used    bool
}

// TriggerLife is how long a trigger_id is good for, once.
const TriggerLife = 3 * time.Second

// newTrigger makes a trigger_id for the person. Expired ones are kept for a
// while, to be told apart from those that never existed.
func (s *Server) newTrigger(user, viewID string) string {
	now := time.Now()
	maps.DeleteFunc(s.triggers, func(_ string, t *trigger) bool { return now.Sub(t.expires) > time.Hour })
	id := fmt.Sprintf("%d.%d.%s", now.UnixMilli(), now.UnixNano()%1e10, hexID(16))
	s.triggers[id] = &trigger{user: user, viewID: viewID, expires: now.Add(TriggerLife)}
	return id
}

// exchange uses a trigger up.
func (s *Server) exchange(id string) (*trigger, error) {
	t := s.triggers[id]
	switch {
	case t == nil:
		return nil, fail("invalid_trigger_id")
	case t.used:
		return nil, fail("exchanged_trigger_id")
	case time.Now().After(t.expires):
		return nil, fail("expired_trigger_id")
	}
	t.used = true
	return t, nil
}

// ActionRequest is a person using an interactive element.
type ActionRequest struct {
	User     string `json:"user"`
	Channel  string `json:"channel,omitempty"`
	TS       string `json:"ts,omitempty"`
	ActionID string `json:"action_id"`
	// BlockID is needed only where an action_id stands in several blocks.
	BlockID string `json:"block_id,omitempty"`
	// Value is what was chosen in a select, a list of values for those that
	// take several. For a button it forges another value than the button has,
	// and with it the element need not exist.
	Value any `json:"value,omitempty"`
	// Forge is merged into the payload (RFC 7386): to claim another team, app
	// or message than is true.
	Forge map[string]any `json:"forge,omitempty"`
}

// choiceKey is where a person has chosen something in a message.
type choiceKey struct{ channel, ts, user string }

// Click is a person using an element of a message: POST /_dev/actions. It
// returns when the app has acknowledged it, or has not for three seconds.
func (s *Server) Click(ctx context.Context, req ActionRequest) (Receipt, error) {
	d, err := s.click(req)
	if err != nil {
		return Receipt{}, err
	}
	receipt, _ := s.receipt(d)
	return receipt, ctx.Err()
}

// visibleTo gives a conversation and somebody who can see it.
func (s *Server) visibleTo(channel, user string) (*timeline, *User, error) {
	t := s.timelines[channel]
	if t == nil {
		return nil, nil, missing("channel_not_found")
	}
	u, err := s.actor(user)
	if err != nil {
		return nil, nil, err
	}
	if t.channel.Kind != KindChannel && !t.channel.has(u.ID) {
		return nil, nil, refuse("user_not_in_channel", "the person can't see that channel")
	}
	return t, u, nil
}

func (s *Server) click(req ActionRequest) (*delivery, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.app.NoInteractivity {
		return nil, refuse("interactivity_disabled", "the app's manifest does not enable interactivity")
	}
	t, u, err := s.visibleTo(req.Channel, req.User)
	if err != nil {
		return nil, err
	}
	m := t.find(req.TS)
	ephemeral := false
	if m == nil {
		if e := t.findEphemeral(req.TS); e != nil && e.EphemeralTo == u.ID {
			m, ephemeral = e, true
		}
	}
	if m == nil && req.Value == nil {
		return nil, missing("message_not_found")
	}
	var blocks json.RawMessage
	if m != nil {
		blocks = m.Blocks
	}
	action, err := s.action(blocks, req)
	if err != nil {
		return nil, err
	}
	payload := s.clickPayload(t, m, u, req, ephemeral)
	payload["actions"] = []any{action}
	if m != nil {
		payload["state"] = map[string]any{"values": s.remember(choiceKey{t.channel.ID, m.TS, u.ID}, m.Blocks, action)}
	}
	return s.interact(mergePatch(payload, req.Forge)), nil
}

// actor is the person who acts; nobody acts who is gone.
func (s *Server) actor(id string) (*User, error) {
	u := s.ws.user(id)
	switch {
	case u == nil:
		return nil, missing("user_not_found")
	case u.Kind == KindDeactivated:
		return nil, refuse("user_deactivated", "a deactivated user can't act")
	case u.ID == s.ws.App.BotUserID:
		return nil, refuse("user_is_app", "the app acts through the Web API")
	}
	return u, nil
}

// action is the entry of payload.actions.
func (s *Server) action(blocks json.RawMessage, req ActionRequest) (map[string]any, error) {
	e, found := findElement(blocks, req.ActionID, req.BlockID)
	if !found {
		if req.Value == nil {
			return nil, missing("element_not_found")
		}
		e = element{blockID: cmp.Or(req.BlockID, "forged"), actionID: req.ActionID, kind: "button",
			fields: map[string]any{"text": map[string]any{"type": "plain_text", "text": req.ActionID, "emoji": true}}}
	}
	action := map[string]any{"type": e.kind, "action_id": e.actionID, "block_id": e.blockID, "action_ts": stampNow()}
	if _, ok := statefuls[e.kind]; !ok {
		for _, key := range []string{"text", "value", "style", "url"} {
			if v, ok := e.fields[key]; ok {
				action[key] = v
			}
		}
		if req.Value != nil {
			action["value"] = req.Value
		}
		return action, nil
	}
	state, err := e.chosen(req.Value)
	if err != nil {
		return nil, err
	}
	maps.Copy(action, state)
	if placeholder, ok := e.fields["placeholder"]; ok {
		action["placeholder"] = placeholder
	}
	return action, nil
}

// remember keeps what was chosen in a message, for the state that goes with
// every later click of the same person, and returns that state.
func (s *Server) remember(key choiceKey, blocks json.RawMessage, action map[string]any) map[string]any {
	kind, _ := action["type"].(string)
	blockID, _ := action["block_id"].(string)
	actionID, _ := action["action_id"].(string)
	if st, ok := statefuls[kind]; ok && kind != "overflow" {
		if s.choices[key] == nil {
			s.choices[key] = map[string]any{}
		}
		block, ok := s.choices[key][blockID].(map[string]any)
		if !ok {
			block = map[string]any{}
			s.choices[key][blockID] = block
		}
		block[actionID] = map[string]any{"type": kind, st.key: action[st.key]}
	}
	chosen := map[string]map[string]any{}
	for id, block := range s.choices[key] {
		chosen[id], _ = block.(map[string]any)
	}
	return stateValues(blocks, chosen)
}

// personObject is the user of interactive payloads.
func personObject(u *User) map[string]any {
	return map[string]any{"id": u.ID, "username": u.Name, "name": u.Name, "team_id": u.TeamID}
}

// interactive is what all interactive payloads have in common.
func (s *Server) interactive(kind string, u *User) map[string]any {
	return map[string]any{"type": kind, "user": personObject(u), "api_app_id": s.ws.App.ID, "token": s.ws.Secret,
		"team": map[string]any{"id": s.ws.Team.ID, "domain": s.ws.Team.Domain}, "enterprise": nil, "is_enterprise_install": false}
}

// clickPayload is block_actions of a message, without its actions.
func (s *Server) clickPayload(t *timeline, m *Message, u *User, req ActionRequest, ephemeral bool) map[string]any {
	p := s.interactive("block_actions", u)
	container := map[string]any{"type": "message", "message_ts": req.TS, "channel_id": t.channel.ID, "is_ephemeral": ephemeral}
	p["trigger_id"] = s.newTrigger(u.ID, "")
	p["channel"] = map[string]any{"id": t.channel.ID, "name": t.channel.payloadName()}
	p["state"] = map[string]any{"values": map[string]any{}}
	use := &responseURL{channel: t.channel.ID, user: u.ID, ts: req.TS}
	if m != nil {
		use.ephemeral = ephemeral
		if m.ThreadTS != "" {
			container["thread_ts"] = m.ThreadTS
			use.threadTS = m.ThreadTS
		} else if len(t.replies[m.TS]) > 0 {
			container["thread_ts"] = m.TS
		}
	}
	if m != nil && !ephemeral { // Slack doesn't send an ephemeral's content along
		p["message"] = t.shown(m, false)
	}
	p["container"] = container
	p["response_url"] = s.newResponseURL("actions", use)
	return p
}

// payloadName is how payloads call a channel: private ones aren't named.
func (c *Channel) payloadName() string {
	switch c.Kind {
	case KindIM:
		return "directmessage"
	case KindPrivate:
		return "privategroup"
	default:
		return c.Name
	}
}

// interact dispatches an interactive payload. s.mu is held.
func (s *Server) interact(payload map[string]any) *delivery {
	d := &delivery{kind: envelopeInteractive, payload: payload}
	switch payload["type"] {
	case "message_action", "shortcut", "view_closed":
		d.bare = true
	}
	d.lost = s.takeSocketFault(faultLoseClick) != nil
	s.dispatch(d)
	return d
}

// ControlError is a refusal of the control plane: what was asked for can't
// happen in Slack.
type ControlError struct {
	Code    string
	Message string
	Status  int
}

func (e *ControlError) Error() string {
	if e.Message == "" {
		return "devslack: " + e.Code
	}
	return "devslack: " + e.Code + ": " + e.Message
}

func refuse(code, message string) error {
	return &ControlError{Code: code, Message: message, Status: http.StatusBadRequest}
}

func missing(code string) error { return &ControlError{Code: code, Status: http.StatusNotFound} }
