package main

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/joho/godotenv"
)

// Every setting stands in docs/configuration.md with its default, and in the file that people copy; and nothing stands there
// that isn't one.
func TestEverySettingIsDocumented(t *testing.T) {
	read := func(file string) string {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	page, example := read("../../docs/configuration.md"), read("../../deploy/.env.example")
	var settings []string
	for _, f := range settingFields() {
		name, value := f.Tag.Get("envconfig"), f.Tag.Get("default")
		settings = append(settings, name)
		row := regexp.MustCompile("(?m)^\\|[^|]*`" + name + "`[^|]*\\|([^|]*)\\|[^|]+\\|$").FindStringSubmatch(page)
		switch {
		case row == nil:
			t.Errorf("%s has no row in docs/configuration.md", name)
		case value != "" && !strings.Contains(row[1], "`"+value+"`"):
			t.Errorf("%s: docs/configuration.md gives the default as %q, and it is %s", name, strings.TrimSpace(row[1]), value)
		}
		if !regexp.MustCompile("(?m)^#?" + name + "=").MatchString(example) {
			t.Errorf("%s isn't in deploy/.env.example", name)
		}
	}
	for _, name := range regexp.MustCompile(`\b(?:APPROVALBOT|SLACK|ANTHROPIC|OPENAI)_[A-Z_]+[A-Z]\b`).FindAllString(page+example, -1) {
		if !slices.Contains(settings, name) && name != "APPROVALBOT_QORUM" {
			t.Errorf("%s is documented and no setting", name)
		}
	}
	all, err := godotenv.Unmarshal(regexp.MustCompile(`(?m)^#([A-Z_]+=)`).ReplaceAllString(example, "$1"))
	if err != nil || len(all) != len(settings) {
		t.Errorf("the file that people copy can't be read: %v, %d of %d", err, len(all), len(settings))
	}
}

// The help says each group once, before its settings, and none without any.
func TestSettingsAreGrouped(t *testing.T) {
	for _, only := range []func(string) bool{nil, devSetting} {
		help := settingsHelp(only)
		for _, f := range settingFields() {
			if g := f.Tag.Get("group"); g != "" && strings.Count(help, g+":\n") != 1 {
				t.Errorf("%s stands %d times in\n%s", g, strings.Count(help, g+":\n"), help)
			}
		}
	}
	if help := settingsHelp(func(name string) bool { return name == "APPROVALBOT_QUORUM" }); strings.Count(help, ":\n\n") != 1 || !strings.HasPrefix(help, "Who approves, and until when:\n\n  APPROVALBOT_QUORUM") {
		t.Errorf("one setting, and this help:\n%s", help)
	}
}
