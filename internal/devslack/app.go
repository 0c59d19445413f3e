package devslack

import (
	"maps"
	"slices"
	"strings"
)

// App is what the installed app's manifest grants it. [ReadManifest] makes one
// of a manifest; what that lacks doesn't work here, as it wouldn't in Slack.
type App struct {
	// BotScopes are the scopes of the bot token; a method that needs another
	// answers missing_scope.
	BotScopes []string
	// BotEvents are the subscribed events; no other is delivered.
	BotEvents []string
	// Commands are the slash commands, with their slash; "*" accepts any.
	Commands []string
	// Usage says what the commands do, by command: a client shows it.
	Usage map[string]Usage
	// Shortcuts are the app's entries in the menu of every message, and the
	// global ones.
	Shortcuts []Shortcut
	// HomeTab enables the app's Home.
	HomeTab bool
	// MessagesTab lets people and the bot write to each other in DMs.
	MessagesTab bool
	// AgentView makes the DM an agent's: opening it is told to the app, and it
	// has suggested prompts, Prompts until the app sets others.
	AgentView bool
	// AssistantView is the older form of that, with a thread for every
	// conversation, which begins with assistant_thread_started.
	AssistantView bool
	Prompts       []Prompt
	// NoInteractivity keeps clicks, forms and shortcuts from being sent.
	NoInteractivity bool
}

// Usage is what a client shows of a slash command.
type Usage struct {
	Description string `json:"description"`
	Hint        string `json:"usage_hint,omitempty"`
}

// Shortcut is an entry in the menu of a message ("message"), or of the whole
// client ("global").
type Shortcut struct {
	Name        string `json:"name" yaml:"name"`
	CallbackID  string `json:"callback_id" yaml:"callback_id"`
	Description string `json:"description" yaml:"description"`
	Type        string `json:"type" yaml:"type"`
}

// Prompt is a sentence that a person can send with one click.
type Prompt struct {
	Title   string `json:"title" yaml:"title"`
	Message string `json:"message" yaml:"message"`
}

// DefaultApp grants everything that this Slack knows.
func DefaultApp() App {
	return App{
		BotScopes: []string{"app_mentions:read", "assistant:write", "channels:history", "channels:join", "channels:read",
			"chat:write", "commands", "files:read", "files:write", "groups:history", "groups:read", "im:history", "im:read",
			"im:write", "reactions:read", "reactions:write", "team:read", "usergroups:read", "users:read"},
		BotEvents: []string{"agent_session_stopped", "app_context_changed", "app_home_opened", "app_mention",
			"assistant_thread_context_changed", "assistant_thread_started", "member_joined_channel", "member_left_channel",
			"message.channels", "message.groups", "message.im", "reaction_added", "reaction_removed"},
		Commands: []string{"*"}, HomeTab: true, MessagesTab: true,
	}
}

// InstallApp replaces what the app is granted, as reinstalling it would. The
// tokens stay.
func (s *Server) InstallApp(app App) {
	app.BotScopes, app.BotEvents = slices.Clone(app.BotScopes), slices.Clone(app.BotEvents)
	app.Commands, app.Usage = slices.Clone(app.Commands), maps.Clone(app.Usage)
	app.Shortcuts, app.Prompts = slices.Clone(app.Shortcuts), slices.Clone(app.Prompts)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.app = app
	s.hub.publish(map[string]any{"type": "workspace"})
}

// needs reports missing_scope unless the app has one of the scopes.
func (a App) needs(scopes ...string) error {
	for _, scope := range scopes {
		if slices.Contains(a.BotScopes, scope) {
			return nil
		}
	}
	return &apiError{Code: "missing_scope", Extra: reply{
		"needed": strings.Join(scopes, ","), "provided": strings.Join(a.BotScopes, ",")}}
}

func (a App) hasCommand(name string) bool {
	return slices.Contains(a.Commands, name) || slices.Contains(a.Commands, "*")
}

func (a App) shortcut(callbackID, kind string) (Shortcut, bool) {
	i := slices.IndexFunc(a.Shortcuts, func(s Shortcut) bool { return s.CallbackID == callbackID && s.Type == kind })
	if i < 0 {
		return Shortcut{}, false
	}
	return a.Shortcuts[i], true
}

// scopePrefix is how scopes and events call a kind of channel.
func (c *Channel) scopePrefix() string {
	switch c.Kind {
	case KindPrivate:
		return "groups"
	case KindIM:
		return "im"
	default:
		return "channels"
	}
}

// channelType is the channel_type of message events.
func (c *Channel) channelType() string {
	switch c.Kind {
	case KindPrivate:
		return "group"
	case KindIM:
		return "im"
	default:
		return "channel"
	}
}
