package devslack

import (
	"slices"
	"strings"
)

// App is what the installed app's manifest grants it.
type App struct {
	// BotScopes are the scopes of the bot token; a method that needs another
	// answers missing_scope.
	BotScopes []string
	// BotEvents are the subscribed events; no other is delivered.
	BotEvents []string
	// Commands are the slash commands, with their slash; "*" accepts any.
	Commands []string
	// HomeTab enables the app's Home.
	HomeTab bool
	// MessagesTab lets people and the bot write to each other in DMs.
	MessagesTab bool
}

// DefaultApp grants everything that this Slack knows.
func DefaultApp() App {
	return App{
		BotScopes: []string{"app_mentions:read", "assistant:write", "channels:history", "channels:read", "chat:write",
			"commands", "files:read", "files:write", "groups:history", "groups:read", "im:history", "im:read", "im:write",
			"reactions:read", "reactions:write", "team:read", "usergroups:read", "users:read"},
		BotEvents: []string{"app_mention", "message.channels", "message.groups", "message.im", "app_home_opened",
			"reaction_added", "reaction_removed", "member_joined_channel", "member_left_channel"},
		Commands: []string{"*"}, HomeTab: true, MessagesTab: true,
	}
}

// InstallApp replaces what the app is granted, as reinstalling it would. The
// tokens stay.
func (s *Server) InstallApp(app App) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.app = App{
		BotScopes: slices.Clone(app.BotScopes), BotEvents: slices.Clone(app.BotEvents),
		Commands: slices.Clone(app.Commands), HomeTab: app.HomeTab, MessagesTab: app.MessagesTab,
	}
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
