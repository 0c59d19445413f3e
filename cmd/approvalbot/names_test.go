package main

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"approvalbot/internal/slackui"
)

func TestUnknownNames(t *testing.T) {
	for _, tt := range []struct {
		entry, want string // "" where it is none of our business
	}{
		{"APPROVALBOT_QUORUM=2", ""},
		{"PATH=/bin", ""},
		{"_=/bin/env", ""},
		{"=x", ""},
		{"SLACK_SIGNING_SECRET=x", ""},
		{"OPENAI_API_KEY=x", ""},
		{"APPROVALBOT_QORUM=2", "APPROVALBOT_QORUM is not a setting and has no effect: did you mean APPROVALBOT_QUORUM?"},
		{"APPROVALBOT_APPROVER=U1", "APPROVALBOT_APPROVER is not a setting and has no effect: did you mean APPROVALBOT_APPROVERS?"},
		{"APROVALBOT_APPROVERS=U1", "APROVALBOT_APPROVERS is not a setting and has no effect: did you mean APPROVALBOT_APPROVERS?"},
		{"approvalbot_quorum=2", "approvalbot_quorum is not a setting and has no effect: did you mean APPROVALBOT_QUORUM?"},
		{"APPROVALBOT_TIMEOUT=5m", "APPROVALBOT_TIMEOUT is not a setting of this version and has no effect; approvalbot serve --help lists them"},
		{"OPENAI_KEY=sk", "OPENAI_KEY is not a setting and has no effect: did you mean OPENAI_API_KEY?"},
		{"ANTHROPIC_KEY=sk", "ANTHROPIC_KEY is not a setting and has no effect: did you mean ANTHROPIC_API_KEY?"},
		{"SLACK_BOT_TOKN=xoxb-secret", "SLACK_BOT_TOKN is not a setting and has no effect: did you mean SLACK_BOT_TOKEN?"},
	} {
		if got := strings.Join(unknownNames([]string{tt.entry}), "\n"); got != tt.want {
			t.Errorf("%s:\n got %q\nwant %q", tt.entry, got, tt.want)
		}
	}
}

func TestExposedFile(t *testing.T) {
	for _, tt := range []struct {
		name, text string
		mode       os.FileMode
		exposed    bool
	}{
		{"tokens for all", "SLACK_BOT_TOKEN=xoxb-1\n", 0o644, true},
		{"for the group", "# mine\nexport OPENAI_API_KEY = \"sk\"\n", 0o640, true},
		{"for me", "SLACK_BOT_TOKEN=xoxb-1\n", 0o600, false},
		{"nothing filled in", "SLACK_BOT_TOKEN=\nSLACK_APP_TOKEN=\"\"\n#SLACK_BOT_TOKEN=xoxb-1\n", 0o644, false},
		{"no secrets", "APPROVALBOT_QUORUM=2\n", 0o644, false},
	} {
		file := filepath.Join(t.TempDir(), ".env")
		if err := os.WriteFile(file, []byte(tt.text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(file, tt.mode); err != nil {
			t.Fatal(err)
		}
		got := exposedFile(file)
		if (got != "") != tt.exposed || tt.exposed && !strings.HasSuffix(got, "chmod 600 "+file) || strings.Contains(got, "xoxb") {
			t.Errorf("%s: %q", tt.name, got)
		}
	}
}

// A key under a short name is another program's where ours is there, too.
func TestShortKeyBesideOurs(t *testing.T) {
	if got := unknownNames([]string{"OPENAI_KEY=a", "OPENAI_API_KEY=b"}); got != nil {
		t.Errorf("%q", got)
	}
	if got := unknownNames([]string{"OPENAI_KEY=a", "OPENAI_API_KEY="}); len(got) != 1 {
		t.Errorf("ours is empty: %q", got)
	}
}

// Every setting of ours either counts in dev, or dev says of it what to do instead.
func TestDevSaysWhatHasNoEffect(t *testing.T) {
	for _, f := range settingFields() {
		name := f.Tag.Get("envconfig")
		said := strings.Join(withoutEffectInDev([]string{name + "=x"}), "\n")
		if ours := strings.HasPrefix(name, "APPROVALBOT_") && !devSetting(name); ours != (said != "") || ours && !strings.HasPrefix(said, name+" has no effect in dev: ") {
			t.Errorf("%s: %q", name, said)
		}
		if said := withoutEffectInDev([]string{name + "="}); said != nil {
			t.Errorf("%s is empty: %q", name, said)
		}
	}
	if got, want := withoutEffectInDev([]string{"APPROVALBOT_MODEL=demo"}), []string{"APPROVALBOT_MODEL has no effect in dev: use --model"}; !cmp.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// clearSettings takes all settings out of the environment until the test ends.
func clearSettings(t *testing.T) {
	t.Helper()
	for _, f := range settingFields() {
		name := f.Tag.Get("envconfig")
		t.Setenv(name, "")
		if err := os.Unsetenv(name); err != nil {
			t.Fatal(err)
		}
	}
}

// Everything that is missing or wrong is named at once.
func TestSettingsNameAllThatIsWrong(t *testing.T) {
	t.Chdir(t.TempDir())
	named := func() (names []string) {
		_, err := serveSettings()
		for _, one := range each(err) {
			names = append(names, strings.FieldsFunc(one.Error(), func(r rune) bool { return strings.ContainsRune(" =:", r) })[0])
		}
		return names
	}
	clearSettings(t)
	if diff := cmp.Diff([]string{"SLACK_BOT_TOKEN", "SLACK_APP_TOKEN", "APPROVALBOT_APPROVERS", "APPROVALBOT_MODEL"}, named()); diff != "" {
		t.Errorf("nothing set (-want +got):\n%s", diff)
	}
	for name, value := range map[string]string{
		"SLACK_BOT_TOKEN": "xoxb-1", "SLACK_APP_TOKEN": "xapp-1", "APPROVALBOT_APPROVERS": "U1", "APPROVALBOT_MODEL": "demo",
	} {
		t.Setenv(name, value)
	}
	if got := named(); got != nil {
		t.Errorf("complete, and yet: %v", got)
	}
	t.Setenv("APPROVALBOT_QUORUM", "two")
	t.Setenv("APPROVALBOT_APPROVAL_TIMEOUT", "soon")
	t.Setenv("APPROVALBOT_SANDBOX", "none")
	t.Setenv("APPROVALBOT_MODEL", "")
	if diff := cmp.Diff([]string{"APPROVALBOT_QUORUM", "APPROVALBOT_APPROVAL_TIMEOUT", "APPROVALBOT_SANDBOX", "APPROVALBOT_MODEL"}, named()); diff != "" {
		t.Errorf("unreadable (-want +got):\n%s", diff)
	}
	t.Setenv("APPROVALBOT_APPROVERS", "@a,bob")
	t.Setenv("APPROVALBOT_MAX_ASKS", "0")
	t.Setenv("APPROVALBOT_HTTP", "yes")
	t.Setenv("APPROVALBOT_HTTP_ALLOW", "http://a,b:0,c.internal")
	want := []string{"APPROVALBOT_QUORUM", "APPROVALBOT_APPROVAL_TIMEOUT", "APPROVALBOT_SANDBOX", "APPROVALBOT_MAX_ASKS", "APPROVALBOT_HTTP", "APPROVALBOT_HTTP_ALLOW", "APPROVALBOT_APPROVERS", "APPROVALBOT_MODEL"}
	if diff := cmp.Diff(want, named()); diff != "" {
		t.Errorf("unreadable, and wrong in other ways (-want +got):\n%s", diff)
	}
	if _, err := readSettings(); !strings.Contains(err.Error(), `"@a" and "bob"`) || !strings.Contains(err.Error(), `"http://a": the port`) || !strings.Contains(err.Error(), `"b:0": the port`) {
		t.Errorf("not every entry is named: %v", err)
	}
	clearSettings(t)
	t.Setenv("APPROVALBOT_QUORUM", "0")
	t.Setenv("APPROVALBOT_MAX_ASKS", "0")
	t.Setenv("APPROVALBOT_CHANNELS", "general")
	t.Setenv("APPROVALBOT_APPROVERS", "everybody")
	t.Setenv("APPROVALBOT_REQUESTERS", "nobody")
	_, err := readSettings()
	if got := len(each(err)); got != 5 {
		t.Errorf("%d of 5 wrong values are named: %v", got, err)
	}
	if _, several := errors.AsType[settingErrors](err); !several || !strings.HasPrefix(err.Error(), "5 settings are missing or wrong:\n- ") {
		t.Errorf("said as %q", err)
	}
}

// The settings are explained in lines that fit a terminal.
func TestHelpFits(t *testing.T) {
	help := settingsHelp(nil)
	for line := range strings.Lines(help) {
		if n := len([]rune(strings.TrimSuffix(line, "\n"))); n > helpWidth {
			t.Errorf("%d characters: %s", n, line)
		}
	}
	for _, f := range settingFields() {
		if words := strings.Join(strings.Fields(help), " "); !strings.Contains(words, f.Tag.Get("envconfig")) || !strings.Contains(words, f.Tag.Get("desc")) || f.Tag.Get("desc") == "" {
			t.Errorf("%s isn't explained", f.Name)
		}
	}
	if only := settingsHelp(devSetting); strings.Contains(only, "SLACK_") || !strings.Contains(only, "APPROVALBOT_QUORUM") {
		t.Errorf("the settings of dev:\n%s", only)
	}
}

// dev installs what the manifest would.
func TestDevInstallsTheManifest(t *testing.T) {
	app := manifestApp()
	manifest := string(slackui.Manifest())
	for _, entry := range append(app.BotScopes, app.BotEvents...) {
		if !strings.Contains(manifest, "      - "+entry+"\n") {
			t.Errorf("%s isn't in the manifest", entry)
		}
	}
	if got, want := len(app.BotScopes)+len(app.BotEvents), strings.Count(manifest, "      - "); got != want {
		t.Errorf("%d scopes and events, the manifest has %d", got, want)
	}
	if app.HomeTab != strings.Contains(manifest, "home_tab_enabled: true") || app.MessagesTab != strings.Contains(manifest, "messages_tab_enabled: true") {
		t.Error("the tabs aren't those of the manifest")
	}
}
