package devslack

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

// manifest is the part of an app manifest that means something here, and the
// names of the rest, so that a misspelt one is told.
type manifest struct {
	Metadata struct {
		Major int `yaml:"major_version"`
		Minor int `yaml:"minor_version"`
	} `yaml:"_metadata"`
	Display struct {
		Name            string `yaml:"name"`
		Description     string `yaml:"description"`
		LongDescription string `yaml:"long_description"`
		BackgroundColor string `yaml:"background_color"`
	} `yaml:"display_information"`
	Features struct {
		Home struct {
			HomeTab      bool `yaml:"home_tab_enabled"`
			MessagesTab  bool `yaml:"messages_tab_enabled"`
			ReadOnlyTabs bool `yaml:"messages_tab_read_only_enabled"`
		} `yaml:"app_home"`
		Bot struct {
			Name         string `yaml:"display_name"`
			AlwaysOnline bool   `yaml:"always_online"`
		} `yaml:"bot_user"`
		Commands  []manifestCommand `yaml:"slash_commands"`
		Shortcuts []Shortcut        `yaml:"shortcuts"`
		Agent     *struct {
			Description string   `yaml:"agent_description"`
			Prompts     []Prompt `yaml:"suggested_prompts"`
		} `yaml:"agent_view"`
		Assistant *struct {
			Description string   `yaml:"assistant_description"`
			Prompts     []Prompt `yaml:"suggested_prompts"`
		} `yaml:"assistant_view"`
	} `yaml:"features"`
	OAuth struct {
		Scopes struct {
			Bot      []string `yaml:"bot"`
			Optional []string `yaml:"bot_optional"`
		} `yaml:"scopes"`
	} `yaml:"oauth_config"`
	Settings struct {
		Events struct {
			Bot []string `yaml:"bot_events"`
		} `yaml:"event_subscriptions"`
		Interactivity struct {
			Enabled bool `yaml:"is_enabled"`
		} `yaml:"interactivity"`
		SocketMode    bool `yaml:"socket_mode_enabled"`
		OrgDeploy     bool `yaml:"org_deploy_enabled"`
		TokenRotation bool `yaml:"token_rotation_enabled"`
		Hosted        bool `yaml:"is_hosted"`
	} `yaml:"settings"`
}

type manifestCommand struct {
	Command     string `yaml:"command"`
	Description string `yaml:"description"`
	UsageHint   string `yaml:"usage_hint"`
	Escape      bool   `yaml:"should_escape"`
}

// eventNeeds are the scopes of which an event needs one before it can be
// subscribed to. Those that aren't here can't be subscribed to here.
var eventNeeds = map[string][]string{
	"agent_session_stopped":            {"chat:write"},
	"app_context_changed":              nil,
	"app_home_opened":                  nil,
	"app_mention":                      {"app_mentions:read"},
	"assistant_thread_context_changed": {"assistant:write"},
	"assistant_thread_started":         {"assistant:write"},
	"member_joined_channel":            {"channels:read", "groups:read"},
	"member_left_channel":              {"channels:read", "groups:read"},
	"message.channels":                 {"channels:history"},
	"message.groups":                   {"groups:history"},
	"message.im":                       {"im:history"},
	"reaction_added":                   {"reactions:read"},
	"reaction_removed":                 {"reactions:read"},
}

// ReadManifest reads an app manifest (YAML or JSON) as Slack does when an app
// is made from it: what Slack would refuse is an error.
func ReadManifest(text []byte) (App, error) {
	var m manifest
	dec := yaml.NewDecoder(bytes.NewReader(text))
	dec.KnownFields(true)
	if err := dec.Decode(&m); err != nil {
		return App{}, fmt.Errorf("devslack: the manifest can't be read: %w", err)
	}
	if err := errors.Join(append(m.lengths(), m.conflicts()...)...); err != nil {
		return App{}, fmt.Errorf("devslack: the manifest is not valid: %w", err)
	}
	f := m.Features
	app := App{
		BotScopes: slices.Concat(m.OAuth.Scopes.Bot, m.OAuth.Scopes.Optional), BotEvents: m.Settings.Events.Bot,
		Usage: map[string]Usage{}, Shortcuts: f.Shortcuts, HomeTab: f.Home.HomeTab,
		MessagesTab: f.Home.MessagesTab && !f.Home.ReadOnlyTabs, NoInteractivity: !m.Settings.Interactivity.Enabled,
	}
	for _, c := range f.Commands {
		app.Commands = append(app.Commands, c.Command)
		app.Usage[c.Command] = Usage{c.Description, c.UsageHint}
	}
	if f.Agent != nil {
		app.AgentView, app.Prompts = true, f.Agent.Prompts
	}
	if f.Assistant != nil {
		app.AssistantView, app.Prompts = true, f.Assistant.Prompts
	}
	return app, nil
}

// lengths are the texts that are missing or too long.
func (m *manifest) lengths() (errs []error) {
	limit := func(where, text string, least, most int) {
		if n := utf8.RuneCountInString(text); n < least || n > most {
			errs = append(errs, fmt.Errorf("%s has %d characters, and must have %d to %d", where, n, least, most))
		}
	}
	limit("display_information.name", m.Display.Name, 1, 35)
	limit("display_information.description", m.Display.Description, 0, 140)
	if m.Display.LongDescription != "" {
		limit("display_information.long_description", m.Display.LongDescription, 175, 4000)
	}
	limit("features.bot_user.display_name", m.Features.Bot.Name, 1, 80)
	for _, c := range m.Features.Commands {
		limit("slash_commands "+c.Command, c.Command, 2, 32)
		limit("slash_commands "+c.Command+" description", c.Description, 1, 2000)
		limit("slash_commands "+c.Command+" usage_hint", c.UsageHint, 0, 1000)
	}
	for _, s := range m.Features.Shortcuts {
		limit("shortcuts "+s.CallbackID+" name", s.Name, 1, 24)
		limit("shortcuts "+s.CallbackID+" callback_id", s.CallbackID, 1, 255)
		limit("shortcuts "+s.CallbackID+" description", s.Description, 1, 150)
	}
	if a := m.Features.Agent; a != nil {
		limit("agent_view.agent_description", a.Description, 1, 300)
	}
	if a := m.Features.Assistant; a != nil {
		limit("assistant_view.assistant_description", a.Description, 1, 300)
	}
	return errs
}

// conflicts is what doesn't go together.
func (m *manifest) conflicts() (errs []error) {
	scopes := slices.Concat(m.OAuth.Scopes.Bot, m.OAuth.Scopes.Optional)
	bad := func(is bool, format string, args ...any) {
		if is {
			errs = append(errs, fmt.Errorf(format, args...))
		}
	}
	f := m.Features
	bad(!m.Settings.SocketMode, "settings.socket_mode_enabled must be true: this local Slack delivers in no other way")
	bad(len(f.Commands)+len(f.Shortcuts) > 0 && !slices.Contains(scopes, "commands"), "slash commands and shortcuts need the scope commands")
	bad(f.Agent != nil && f.Assistant != nil, "an app has agent_view or assistant_view, not both")
	bad(len(m.Settings.Events.Bot) > 100, "more than 100 bot_events")
	for _, scope := range scopes {
		bad(!slices.Contains(DefaultApp().BotScopes, scope), "the scope %q is not known here", scope)
	}
	for _, event := range m.Settings.Events.Bot {
		needs, known := eventNeeds[event]
		bad(!known, "the event %q is not known here: %s are", event, strings.Join(slices.Sorted(maps.Keys(eventNeeds)), ", "))
		bad(known && needs != nil && !slices.ContainsFunc(needs, func(n string) bool { return slices.Contains(scopes, n) }),
			"the event %s needs the scope %s", event, strings.Join(needs, " or "))
	}
	seen := map[string]bool{}
	for _, c := range f.Commands {
		bad(!strings.HasPrefix(c.Command, "/") || strings.ContainsAny(c.Command, " \t"), "the slash command %q must begin with / and have no spaces", c.Command)
		bad(seen[c.Command], "the slash command %s is there twice", c.Command)
		seen[c.Command] = true
	}
	count := map[string]int{}
	for _, s := range f.Shortcuts {
		count[s.Type]++
		bad(s.Type != "message" && s.Type != "global", "the type of shortcut %s must be message or global", s.CallbackID)
		bad(seen[s.CallbackID], "the callback_id %s is there twice", s.CallbackID)
		seen[s.CallbackID] = true
	}
	for kind, n := range count {
		bad(n > 5, "%d %s shortcuts, and no more than 5 are possible", n, kind)
	}
	return errs
}
