package slackui

import (
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
)

// appName is what the app and its bot are called in Slack.
const appName = "approvalbot"

// methodScopes are the Web API methods that this package calls, with the bot
// scopes they need. The manifest asks for these and no more; a method that isn't
// here isn't called.
var methodScopes = map[string][]string{
	"auth.test":                    nil,
	"bots.info":                    {"users:read"},
	"apps.connections.open":        nil, // connections:write, of the app-level token
	"chat.postMessage":             {"chat:write"},
	"chat.update":                  {"chat:write"},
	"chat.postEphemeral":           {"chat:write"},
	"conversations.open":           {"im:write"}, // those who may approve and aren't where it is asked
	"conversations.info":           {"channels:read", "groups:read", "im:read"},
	"conversations.list":           {"channels:read", "groups:read", "im:read"}, // a channel by its name, a direct message
	"conversations.members":        {"channels:read", "groups:read", "im:read"},
	"conversations.history":        {"channels:history", "groups:history", "im:history"},
	"conversations.replies":        {"channels:history", "groups:history", "im:history"},
	"users.info":                   {"users:read"},
	"users.list":                   {"users:read"},      // a person by their name
	"usergroups.list":              {"usergroups:read"}, // what one is called
	"usergroups.users.list":        {"usergroups:read"},
	"views.open":                   nil,
	"views.push":                   nil,
	"views.update":                 nil,
	"views.publish":                nil,             // the Home tab
	"files.getUploadURLExternal":   {"files:write"}, // a request that is too long for a modal
	"files.completeUploadExternal": {"files:write"},
	"files.info":                   {"files:read"}, // and the download of what people attach

	"reactions.add":                         {"reactions:write"},
	"reactions.remove":                      {"reactions:write"},
	"assistant.threads.setStatus":           {"chat:write"},
	"assistant.threads.setTitle":            {"assistant:write"},
	"assistant.threads.setSuggestedPrompts": {"assistant:write"},
}

// eventScopes are the events that we subscribe to, with the scope each needs.
// Messages in channels are read as context, in threads of ours only.
var eventScopes = map[string]string{
	"app_mention":      "app_mentions:read",
	"message.channels": "channels:history",
	"message.groups":   "groups:history",
	"message.im":       "im:history",

	"app_home_opened":       "", // somebody opened the pane
	"agent_session_stopped": "chat:write",
}

// featureScopes are those that features of the manifest need: a slash command, entries in the menu of a message.
var featureScopes = []string{"commands"}

// Manifest is the Slack app manifest, in YAML: what approvalbot needs and nothing
// else. The app-level token for Socket Mode is made by hand; Slack has no field
// for it.
func Manifest() []byte { return manifest(appName) }

func manifest(name string) []byte {
	return fmt.Appendf(nil, `_metadata:
  major_version: 1
  minor_version: 1
display_information:
  name: %[1]s
  description: Your agent asks in Slack before it acts. No answer means no.
  background_color: "#1f2937"
features:
  agent_view:
    agent_description: Works for your team with tools, and asks here before it changes anything.
    suggested_prompts:
    - title: See what is in the workspace
      message: Which files are in the workspace, and what is each for?
    - title: Ask what I can do
      message: What can you do here, and what do you ask about first?
  app_home:
    home_tab_enabled: true
    messages_tab_enabled: true
    messages_tab_read_only_enabled: false
  bot_user:
    display_name: %[1]s
    always_online: true
  slash_commands:
    - command: %[5]s
      description: What waits for your approval, and the brakes
      usage_hint: "[mine | all | grants | stop RUN | help]"
      should_escape: true
  shortcuts:
    - name: Ask about this
      type: message
      callback_id: ask_about
      description: Have the agent work on a message
oauth_config:
  scopes:
    bot:
%[2]s    bot_optional:
%[4]ssettings:
  event_subscriptions:
    bot_events:
%[3]s  interactivity:
    is_enabled: true
  org_deploy_enabled: false
  socket_mode_enabled: true
  token_rotation_enabled: false
`, name, yamlList(6, slices.DeleteFunc(scopes(), optional)), yamlList(6, slices.Sorted(maps.Keys(eventScopes))), yamlList(6, optionalScopes), commandName)
}

// optionalScopes are those without which something is missing and all else works: what the pane of an agent shows, files
// that people attach, and the eyes on a message. Whoever installs the app may leave them out.
var optionalScopes = []string{"assistant:write", "files:read", "reactions:write"}

func optional(scope string) bool { return slices.Contains(optionalScopes, scope) }

// scopes are all bot scopes that are asked for, each once.
func scopes() []string {
	needed := map[string]bool{}
	for _, list := range methodScopes {
		for _, s := range list {
			needed[s] = true
		}
	}
	for _, s := range featureScopes {
		needed[s] = true
	}
	for _, s := range eventScopes {
		if s != "" {
			needed[s] = true
		}
	}
	return slices.Sorted(maps.Keys(needed))
}

func yamlList(indent int, items []string) string {
	var b strings.Builder
	for _, item := range items {
		b.WriteString(strings.Repeat(" ", indent) + "- " + item + "\n")
	}
	return b.String()
}

// ManifestURL is the link under which Slack offers to create the app.
func ManifestURL() string {
	return "https://api.slack.com/apps?new_app=1&manifest_yaml=" + url.QueryEscape(string(Manifest()))
}
