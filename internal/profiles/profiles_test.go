package profiles

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"approvalbot/internal/policy"
)

// models knows one model.
func models(name string) error {
	if name != "demo" {
		return fmt.Errorf("the model %q is not known", name)
	}
	return nil
}

func read(t *testing.T, text string) (*File, error) {
	t.Helper()
	return parse("profiles.yaml", t.TempDir(), []byte(text), models)
}

func TestLoad(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "what.txt"), []byte("Be kind."), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(dir, "scripts"), 0o700); err != nil {
		t.Fatal(err)
	}
	f, err := parse("profiles.yaml", dir, []byte(`
profiles:
  - name: platform
    channels: [C1, C2]
    instructions_file: what.txt
    model: demo
    workspace: scripts
    sessions: own
    approval_policy: strict
  - {name: personal, direct: true, instructions: Hello., workspace: new, make: true}
  - {name: rest, default: true, sandbox: read_only}
`), models)
	if err != nil {
		t.Fatal(err)
	}
	want := []Profile{
		{Name: "platform", Channels: []string{"C1", "C2"}, Instructions: "Be kind.", File: filepath.Join(dir, "what.txt"), Model: "demo",
			Workspace: filepath.Join(dir, "scripts"), Own: true, Settings: policy.Settings{ApprovalPolicy: policy.Strict}},
		{Name: "personal", Direct: true, Instructions: "Hello.", Workspace: filepath.Join(dir, "new"), Make: true},
		{Name: "rest", Default: true, Settings: policy.Settings{SandboxMode: policy.ReadOnly}},
	}
	if diff := cmp.Diff(want, f.All(), cmpopts.IgnoreUnexported(Profile{})); diff != "" {
		t.Error(diff)
	}
	for channel, name := range map[string]string{"C1": "platform", "C2": "platform", "D7": "personal", "C3": "rest", "": "rest", "G1": "rest"} {
		if p, ok := f.For(channel); !ok || p.Name != name {
			t.Errorf("in %q holds %q, want %q", channel, p.Name, name)
		}
	}
	if p, ok := (*File)(nil).For("C1"); ok {
		t.Errorf("without a file %q holds", p.Name)
	}
}

// Everything that is wrong is named, with its line and what would be right.
func TestWrong(t *testing.T) {
	for text, want := range map[string]string{
		"":                                     "it is empty",
		"profiles: {":                          "it is not YAML",
		"profile: []":                          `a file of profiles has no key "profile". Did you mean profiles?`,
		"[]":                                   "a file of profiles has to be a mapping with profiles",
		"profiles: 3":                          "there is no list of profiles",
		"profiles: [3]":                        "1: a profile has to be a mapping",
		"profiles: []\n---\nprofiles: []":      "one YAML document",
		"profiles: [{channels: [C1]}]":         "1: a profile needs a name",
		"profiles: [{name: a}]":                "1: the profile a holds nowhere",
		"profiles: [{name: a, chanels: [C1]}]": `has no key "chanels". Did you mean channels?`,
		"profiles: [{name: a, direct: yes please}]":                                              "direct has to be true or false",
		"profiles: [{name: a, default: true, default: true}]":                                    "a profile has default twice",
		"profiles: [{name: a, channels: C1}]":                                                    "channels has to be a list",
		"profiles: [{name: a, channels: ['#general']}]":                                          `"#general" is not a channel id`,
		"profiles: [{name: a, channels: [C1, C1]}]":                                              "C1 stands here twice",
		"profiles: [{name: a, direct: true, model: gpt}]":                                        `the model "gpt" is not known`,
		"profiles: [{name: a, direct: true, workspace: gone}]":                                   "there is no directory",
		"profiles: [{name: a, direct: true, sessions: own}]":                                     "has no workspace of its own",
		"profiles: [{name: a, direct: true, workspace: ., sessions: each}]":                      "has to be shared",
		"profiles: [{name: a, direct: true, approval_policy: lax}]":                              "want one of never, on_request, strict",
		"profiles: [{name: a, direct: true, sandbox: lax}]":                                      "want one of",
		"profiles: [{name: a, direct: true, instructions: x, instructions_file: y}]":             "not both",
		"profiles: [{name: a, direct: true, instructions_file: y}]":                              "no such file",
		"profiles: [{name: a, direct: true, instructions: ''}]":                                  "instructions has to be a text",
		"profiles:\n- {name: a, direct: true}\n- {name: b, direct: true}":                        "3: direct messages have two profiles, a and b",
		"profiles:\n- {name: a, default: true}\n- {name: b, default: true}":                      "3: there are two default profiles",
		"profiles:\n- {name: a, channels: [C1]}\n- {name: b, channels: [C1]}":                    "3: the channel C1 has two profiles, a and b",
		"profiles:\n- {name: a, channels: [C1]}\n- {name: a, channels: [C2]}":                    "3: there are two profiles called a, the other one on line 2",
		"profiles:\n- &x {name: a, channels: [C1]}\n- {name: b, direct: true, instructions: *x}": "aliases (*) are not used here",
	} {
		_, err := read(t, text)
		var wrong *FileError
		if !errors.As(err, &wrong) || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}

// The example that people copy, and the one in the manual, are right.
func TestExamples(t *testing.T) {
	text, err := os.ReadFile("../../deploy/profiles.example.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if f, err := parse("profiles.example.yaml", "/", text, models); err != nil || len(f.All()) != 3 {
		t.Error(err)
	}
	page, err := os.ReadFile("../../docs/profiles.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(page), "```yaml\n")
	example, _, _ := strings.Cut(rest, "```")
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "elsewhere.txt"), []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	example = strings.ReplaceAll(example, "/srv/agents/platform ", dir+" ")
	f, err := parse("profiles.md", dir, []byte(example), func(string) error { return nil })
	if err != nil || len(f.All()) != 3 {
		t.Error(err)
	}
	for _, key := range profileKeys {
		if !strings.Contains(string(page), "`"+key+"`") {
			t.Errorf("docs/profiles.md doesn't explain %s", key)
		}
	}
}

// Whatever a conversation is called, its directory is one directly below the workspace, the same each time, and another
// for another conversation.
func TestDir(t *testing.T) {
	p := Profile{Workspace: "/srv/agents", Own: true}
	rapid.Check(t, func(t *rapid.T) {
		a, b := rapid.String().Draw(t, "a"), rapid.String().Draw(t, "b")
		dir := p.Dir(a)
		if filepath.Dir(dir) != "/srv/agents" || filepath.Clean(dir) != dir || dir != p.Dir(a) || len(filepath.Base(dir)) > 80 {
			t.Errorf("%q works in %q", a, dir)
		}
		if a != b && dir == p.Dir(b) {
			t.Errorf("%q and %q share %q", a, b, dir)
		}
	})
	if p.Own = false; p.Dir("x") != "/srv/agents" {
		t.Error("a shared workspace is divided")
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte("profiles: [{name: a, direct: true}]"))
	f.Add([]byte("profiles: [&a [*a]]"))
	f.Fuzz(func(t *testing.T, text []byte) {
		file, err := parse("p.yaml", t.TempDir(), text, models)
		if (file == nil) == (err == nil) {
			t.Errorf("%v, %v", file, err)
		}
	})
}

// Whoever works in a directory reaches all that is below it, so no other profile's workspace may be there.
func TestWorkspacesLieSideBySide(t *testing.T) {
	const two = "profiles:\n- {name: a, direct: true, workspace: %s, make: true}\n- {name: b, default: true, workspace: %s, make: true%s}"
	for _, c := range []struct {
		a, b, more string
		fine       bool
	}{
		{"one", "two", "", true},
		{"one", "one2", "", true},
		{"one", "one", "", true},
		{"one", "one/two", "", false},
		{"one/two/three", "one", "", false},
		{"one", "./one/../one/two", "", false},
		{"one", "link/two", "", false},
		{"one", "one", ", sessions: own", false},
	} {
		dir := t.TempDir()
		if err := errors.Join(os.Mkdir(filepath.Join(dir, "one"), 0o700), os.Symlink("one", filepath.Join(dir, "link"))); err != nil {
			t.Fatal(err)
		}
		_, err := parse("profiles.yaml", dir, fmt.Appendf(nil, two, c.a, c.b, c.more), models)
		if fine := err == nil; fine != c.fine || !fine && !strings.Contains(err.Error(), "3: the workspaces of the profiles a and b lie one in the other") {
			t.Errorf("%+v: %v", c, err)
		}
	}
}
