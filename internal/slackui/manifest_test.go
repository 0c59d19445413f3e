package slackui

import (
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestManifest(t *testing.T) {
	got := string(Manifest())
	file := filepath.Join("testdata", "manifest.yaml")
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(want), got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	link, err := url.Parse(ManifestURL())
	if err != nil || link.Query().Get("manifest_yaml") != got || link.Query().Get("new_app") != "1" || link.Host != "api.slack.com" {
		t.Errorf("link %s, %v", link, err)
	}
}

// TestScopes: the manifest asks for every scope that a method or an event needs,
// and for no other.
func TestScopes(t *testing.T) {
	_, list, _ := strings.Cut(string(Manifest()), "    bot:\n")
	list, _, _ = strings.Cut(list, "settings:")
	asked := strings.Fields(strings.ReplaceAll(list, "- ", ""))
	needed := []string{
		"app_mentions:read", "channels:history", "channels:read", "chat:write", "commands", "files:write", "groups:history",
		"groups:read", "im:history", "im:read", "im:write", "usergroups:read", "users:read",
		"bot_optional:", "assistant:write", "files:read", "reactions:write",
	}
	if d := cmp.Diff(needed, asked); d != "" {
		t.Errorf("scopes (-want +got):\n%s", d)
	}
}

// clientMethods are the calls of slack-go that we make, as Slack names them.
var clientMethods = map[string][]string{
	"AuthTestContext":               {"auth.test"},
	"GetBotInfoContext":             {"bots.info"},
	"StartSocketModeContext":        {"apps.connections.open"},
	"PostMessageContext":            {"chat.postMessage"},
	"PostEphemeralContext":          {"chat.postEphemeral"},
	"UpdateMessageContext":          {"chat.update"},
	"GetConversationHistoryContext": {"conversations.history"},
	"GetConversationRepliesContext": {"conversations.replies"},
	"GetConversationInfoContext":    {"conversations.info"},
	"OpenConversationContext":       {"conversations.open"},
	"GetUsersInConversationContext": {"conversations.members"},
	"GetConversationsContext":       {"conversations.list"},
	"GetUsersContext":               {"users.list"},
	"GetUserInfoContext":            {"users.info"},
	"GetUserGroupsContext":          {"usergroups.list"},
	"GetUserGroupMembersContext":    {"usergroups.users.list"},
	"OpenViewContext":               {"views.open"},
	"PushViewContext":               {"views.push"},
	"UpdateViewContext":             {"views.update"},
	"AddReactionContext":            {"reactions.add"},
	"RemoveReactionContext":         {"reactions.remove"},
	"GetFileInfoContext":            {"files.info"},
	"GetFileContext":                {"files.info"}, // which named the address

	"SetAssistantThreadsStatusContext":           {"assistant.threads.setStatus"},
	"SetAssistantThreadsTitleContext":            {"assistant.threads.setTitle"},
	"SetAssistantThreadsSuggestedPromptsContext": {"assistant.threads.setSuggestedPrompts"},

	"UploadFileContext":  {"files.getUploadURLExternal", "files.completeUploadExternal"},
	"PublishViewContext": {"views.publish"},
	"SendMessageContext": {}, // by an address that came with a command or a click: no method
}

// TestOnlyListedMethods: the sources call no method whose scopes nobody looked up.
func TestOnlyListedMethods(t *testing.T) {
	call := regexp.MustCompile(`\.((?:AuthTest|Get|Start|Post|Update|Open|Push|Publish|Upload|Send|Delete|Add|Remove|Create|Join|Set|List|Search|Schedule|Share)\w*Context)\(`)
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	var called []string
	for _, file := range files {
		source, err := os.ReadFile(file)
		if err != nil || strings.HasSuffix(file, "_test.go") {
			continue
		}
		for _, m := range call.FindAllStringSubmatch(string(source), -1) {
			methods, known := clientMethods[m[1]]
			if !known {
				t.Errorf("%s calls %s, which has no entry here", file, m[1])
			}
			called = append(called, methods...)
		}
	}
	for _, m := range called {
		if _, known := methodScopes[m]; !known {
			t.Errorf("%s is called and has no scopes in methodScopes", m)
		}
	}
	if len(called) > 0 { // both halves of the package are here
		for m := range methodScopes {
			if !slices.Contains(called, m) && m != "apps.connections.open" { // socketmode makes that one
				t.Errorf("%s is in methodScopes and nothing calls it", m)
			}
		}
	}
}
