package devslack

import (
	"encoding/json"
	"strings"
	"time"
	"unicode/utf8"
)

// The agent's side of a conversation: its title, the sentences that it
// suggests, and the line that says what it is doing. All of that is shown, none
// of it is a message; it lives as long as the process.

// threadKey is a conversation: a thread, or with "" the whole channel.
type threadKey struct{ channel, thread string }

// agentThread is what the app has said about one conversation.
type agentThread struct {
	title       string
	promptTitle string
	prompts     []Prompt
	session     string // active, processing, suspended, closed; empty: none
}

// AssistantThread stands in the message that begins an assistant's thread.
type AssistantThread struct {
	Title string `json:"title"`
}

const (
	maxPrompts         = 4
	maxLoadingMessages = 10
	// statusLife is when Slack itself takes a status away that no message
	// followed.
	statusLife = 2 * time.Minute
)

func (s *Server) agent(key threadKey) *agentThread {
	if s.agents[key] == nil {
		s.agents[key] = &agentThread{}
	}
	return s.agents[key]
}

// agentThreadArg finds the conversation that an assistant method names.
func (s *Server) agentThreadArg(c *apiCall) (threadKey, error) {
	t := s.timelines[c.args.str("channel_id")]
	if t == nil || !t.channel.has(s.ws.App.BotUserID) {
		return threadKey{}, fail("channel_not_found")
	}
	thread := c.args.str("thread_ts")
	if t.find(thread) == nil {
		return threadKey{}, fail("invalid_thread_ts")
	}
	return threadKey{t.channel.ID, thread}, nil
}

func (s *Server) assistantSetStatus(c *apiCall) (reply, error) {
	key, err := s.agentThreadArg(c)
	if err != nil {
		return nil, err
	}
	if len(c.args.list("loading_messages")) > maxLoadingMessages {
		return nil, &apiError{Code: "invalid_arguments", Messages: []string{"[ERROR] no more than 10 items allowed [json-pointer:/loading_messages]"}}
	}
	s.setStatus(key.channel, key.thread, c.args.str("status"))
	return nil, nil
}

func (s *Server) assistantSetTitle(c *apiCall) (reply, error) {
	key, err := s.agentThreadArg(c)
	if err != nil {
		return nil, err
	}
	return nil, s.setTitle(key, c.args.str("title"))
}

func (s *Server) setTitle(key threadKey, title string) error {
	if title == "" {
		return &apiError{Code: "invalid_arguments", Messages: []string{"[ERROR] missing required field: title"}}
	}
	if utf8.RuneCountInString(title) > 255 {
		return &apiError{Code: "invalid_arguments", Messages: []string{"[ERROR] must be less than 256 characters [json-pointer:/title]"}}
	}
	s.agent(key).title = title
	s.agentChanged(key)
	return nil
}

func (s *Server) assistantSetPrompts(c *apiCall) (reply, error) {
	if !s.app.AgentView && !s.app.AssistantView {
		return nil, fail("not_agent_app")
	}
	t := s.timelines[c.args.str("channel_id")]
	if t == nil || t.channel.Kind != KindIM || !t.channel.has(s.ws.App.BotUserID) {
		return nil, fail("channel_not_found")
	}
	key := threadKey{t.channel.ID, c.args.str("thread_ts")}
	if t.find(key.thread) == nil && (key.thread != "" || s.app.AssistantView) {
		return nil, fail("invalid_thread_ts")
	}
	var prompts []Prompt
	dec := json.NewDecoder(strings.NewReader(c.args.str("prompts")))
	dec.DisallowUnknownFields()
	if dec.Decode(&prompts) != nil || len(prompts) > maxPrompts {
		return nil, &apiError{Code: "invalid_arguments", Messages: []string{"[ERROR] must be a list of at most 4 prompts [json-pointer:/prompts]"}}
	}
	for _, p := range prompts {
		if p.Title == "" || p.Message == "" {
			return nil, &apiError{Code: "invalid_arguments", Messages: []string{"[ERROR] a prompt has a title and a message [json-pointer:/prompts]"}}
		}
	}
	a := s.agent(key)
	a.promptTitle, a.prompts = c.args.str("title"), prompts
	s.agentChanged(key)
	return nil, nil
}

// agentSessionSetStatus tells Slack what an agent's session is doing: while it
// is processing, people are offered to stop it.
func (s *Server) agentSessionSetStatus(c *apiCall) (reply, error) {
	key, err := s.sessionArg(c)
	if err != nil {
		return nil, err
	}
	switch status := c.args.str("status"); status {
	case "active", "processing", "suspended", "closed":
		s.agent(key).session = status
	default:
		return nil, fail("invalid_status")
	}
	if title := c.args.str("title"); title != "" {
		if err := s.setTitle(key, title); err != nil {
			return nil, err
		}
	}
	s.agentChanged(key)
	return reply{"channel_id": key.channel, "thread_ts": key.thread, "status": s.agent(key).session}, nil
}

func (s *Server) agentSessionRename(c *apiCall) (reply, error) {
	key, err := s.sessionArg(c)
	if err != nil {
		return nil, err
	}
	return reply{"title": c.args.str("title")}, s.setTitle(key, c.args.str("title"))
}

func (s *Server) sessionArg(c *apiCall) (threadKey, error) {
	if !s.app.AgentView {
		return threadKey{}, fail("feature_disabled")
	}
	if c.args.str("thread_ts") == "" {
		return threadKey{}, fail("thread_ts_required")
	}
	return s.agentThreadArg(c)
}

func (s *Server) agentChanged(key threadKey) {
	s.hub.publish(map[string]any{"type": "agent", "channel": key.channel, "thread_ts": key.thread})
}

// assistantStatus is a line such as "is thinking…" below a thread.
type assistantStatus struct{ text string }

// setStatus shows what the assistant is doing in a thread; "" clears it.
func (s *Server) setStatus(channel, thread, text string) {
	key := channel + " " + thread
	if text == "" && s.statuses[key] == nil {
		return
	}
	status := &assistantStatus{text}
	s.statuses[key] = status
	if text == "" {
		delete(s.statuses, key)
	} else {
		s.start(func() { s.expireStatus(channel, thread, status) })
	}
	s.hub.publish(map[string]any{"type": "typing", "channel": channel, "thread_ts": thread, "status": text})
}

// expireStatus clears this status after its time, unless another has come.
func (s *Server) expireStatus(channel, thread string, status *assistantStatus) {
	timer := time.NewTimer(statusLife)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-s.done:
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.statuses[channel+" "+thread] == status {
		s.setStatus(channel, thread, "")
	}
}

// AssistantRequest is a person beginning a conversation with the assistant:
// the channel is the one that they were looking at, and may be empty.
type AssistantRequest struct {
	User    string `json:"user"`
	Channel string `json:"channel,omitempty"`
}

// StartAssistant begins a thread with the app in the person's DM. Slack puts a
// message of the app there and tells the app.
func (s *Server) StartAssistant(req AssistantRequest) (channel, threadTS string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	u, err := s.actor(req.User)
	if err != nil {
		return "", "", err
	}
	if !s.app.AssistantView && !s.app.AgentView {
		return "", "", refuse("not_agent_app", "the app's manifest has neither agent_view nor assistant_view")
	}
	t, err := s.openIM(u)
	if err != nil {
		return "", "", refuse("no_direct_conversation", err.Error())
	}
	context := map[string]any{}
	if req.Channel != "" {
		if seen := s.timelines[req.Channel]; seen == nil || !seen.channel.has(u.ID) {
			return "", "", missing("channel_not_found")
		}
		context = map[string]any{"channel_id": req.Channel, "team_id": s.ws.Team.ID, "enterprise_id": nil}
	}
	root := s.botMessage(t, "", content{text: "New Assistant Thread"})
	root.Subtype, root.AssistantThread = "assistant_app_thread", &AssistantThread{}
	if err := s.commit(record{Message: &messageRecord{Channel: t.channel.ID, Message: root}}); err != nil {
		return "", "", err
	}
	s.notify("message", t.channel.ID, root)
	s.emit("assistant_thread_started", t.channel, map[string]any{"type": "assistant_thread_started", "event_ts": stampNow(),
		"assistant_thread": map[string]any{"user_id": u.ID, "context": context, "channel_id": t.channel.ID, "thread_ts": root.TS}})
	return t.channel.ID, root.TS, nil
}

// StopAgent is a person stopping what an agent is doing in a thread.
func (s *Server) StopAgent(ref MessageRef) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	t, u, err := s.place(ref.Channel, ref.User)
	if err != nil {
		return err
	}
	if !s.app.AgentView || t.find(ref.TS) == nil {
		return refuse("nothing_to_stop", "only a thread with an agent can be stopped")
	}
	s.emit("agent_session_stopped", t.channel, map[string]any{"type": "agent_session_stopped", "channel": t.channel.ID,
		"thread_ts": ref.TS, "user": u.ID, "event_ts": stampNow()})
	return nil
}

// AgentThread is what a person sees of the app's conversation beside its
// messages.
type AgentThread struct {
	Channel     string   `json:"channel"`
	ThreadTS    string   `json:"thread_ts"` // empty: the whole conversation
	Title       string   `json:"title,omitempty"`
	Status      string   `json:"status,omitempty"`
	Session     string   `json:"session,omitempty"`
	PromptTitle string   `json:"prompt_title,omitempty"`
	Prompts     []Prompt `json:"prompts"`
}

// AgentThreads are those that a person sees; the manifest's prompts are in
// their DM until the app sets others.
func (s *Server) AgentThreads(user string) ([]AgentThread, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ws.user(user) == nil {
		return nil, missing("user_not_found")
	}
	out := []AgentThread{}
	for _, ch := range s.channels {
		if !ch.has(user) {
			continue
		}
		keys := []threadKey{{ch.ID, ""}}
		for _, m := range s.timelines[ch.ID].all {
			keys = append(keys, threadKey{ch.ID, m.TS})
		}
		for _, key := range keys {
			one := AgentThread{Channel: key.channel, ThreadTS: key.thread, Prompts: []Prompt{}}
			if a := s.agents[key]; a != nil {
				one.Title, one.Session, one.PromptTitle, one.Prompts = a.title, a.session, a.promptTitle, append(one.Prompts, a.prompts...)
			} else if key.thread == "" && ch.Kind == KindIM {
				one.Prompts = append(one.Prompts, s.app.Prompts...)
			}
			if st := s.statuses[key.channel+" "+key.thread]; st != nil {
				one.Status = st.text
			}
			if one.Title != "" || one.Status != "" || one.Session != "" || len(one.Prompts) > 0 {
				out = append(out, one)
			}
		}
	}
	return out, nil
}
