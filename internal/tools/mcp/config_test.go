package mcp

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func environment(vars map[string]string) func(string) (string, bool) {
	return func(name string) (string, bool) {
		v, ok := vars[name]
		return v, ok
	}
}

func TestReadConfig(t *testing.T) {
	file := filepath.Join(t.TempDir(), "mcp.json")
	dir := filepath.Dir(file)
	err := os.WriteFile(file, []byte(`{"mcpServers": {
		"web": {"type": "streamable-http", "url": "https://mcp.example.com/v1?key=made-up-key-0001", "headers": {"Authorization": "Bearer ${WEB_TOKEN}", "X-Team": "ops"}, "timeout": "5m", "trust": true},
		"files": {"command": "./bin/files", "args": ["--root", "/srv", "--api-key", "made-up-key-0002"], "env": {"LEVEL": "${LEVEL:-info}", "DB_PASSWORD": "${DB}"}, "cwd": "sub", "tools": ["read"]},
		"off": {"command": "x", "env": {"A": "${NOT_THERE}"}, "disabled": true},
		"old": {"type": "sse", "url": "http://127.0.0.1:1/sse"}
	}}`), 0o600)
	if err != nil {
		t.Fatal(err)
	}
	got, err := ReadConfig(file, environment(map[string]string{"WEB_TOKEN": "made-up-token-03", "DB": "made-up-password"}))
	if err != nil {
		t.Fatal(err)
	}
	want := []Server{
		{Name: "files", Kind: Stdio, Command: filepath.Join(dir, "sub/bin/files"), Args: []string{"--root", "/srv", "--api-key", "made-up-key-0002"},
			Env: map[string]string{"LEVEL": "info", "DB_PASSWORD": "made-up-password"}, Cwd: filepath.Join(dir, "sub"), Tools: []string{"read"}, Timeout: callTimeout},
		{Name: "off", Kind: Stdio, Command: "x", Env: map[string]string{"A": "${NOT_THERE}"}, Disabled: true, Timeout: callTimeout},
		{Name: "old", Kind: SSE, URL: "http://127.0.0.1:1/sse", Headers: map[string]string{}, Timeout: callTimeout},
		{Name: "web", Kind: HTTP, URL: "https://mcp.example.com/v1?key=made-up-key-0001",
			Headers: map[string]string{"Authorization": "Bearer made-up-token-03", "X-Team": "ops"}, Trust: true, Timeout: 5 * time.Minute},
	}
	if diff := cmp.Diff(want, got.Servers); diff != "" {
		t.Error(diff)
	}
	for _, secret := range []string{"made-up-key-0002", "made-up-password", "made-up-token-03"} {
		if !slices.Contains(got.Secrets(), secret) {
			t.Errorf("%s is no secret; there are %q", secret, got.Secrets())
		}
	}
	for _, plain := range []string{"info", "ops", "/srv", "--root"} {
		if slices.Contains(got.Secrets(), plain) {
			t.Errorf("%s is a secret", plain)
		}
	}
	if place := got.Servers[3].Place(); place != "https://mcp.example.com/v1" {
		t.Errorf("its place is %s", place)
	}
}

// What is wrong is said with what would be right, and without a secret.
func TestWrongConfigs(t *testing.T) {
	for text, want := range map[string]string{
		`{`:     "it is not JSON",
		`[]`:    `it has to be {"mcpServers":{…}}`,
		`{} {}`: "more than one JSON value",
		"{\n\"mcpServers\":{\n\"a\":{\"command\":\"x\"},\n\"a\":{\"command\":\"y\"}}}": "line 4: a name stands twice",
		`{"servers":{}}`:                      `"servers" is not known here`,
		`{}`:                                  `"mcpServers" is missing`,
		`{"mcpServers":[]}`:                   "an object of servers by name",
		`{"mcpServers":{"a":{}}}`:             "command (of a program) or url (of an address) is missing",
		`{"mcpServers":{"a":7}}`:              "an object with the members command",
		`{"mcpServers":{"":{"command":"x"}}}`: "characters that can be seen",
		`{"mcpServers":{"a\u202e":{"command":"x"}}}`:                                     "characters that can be seen",
		`{"mcpServers":{"a":{"command":"x","comand":"y"}}}`:                              `"comand" is not known: there are command, args`,
		`{"mcpServers":{"a":{"command":"x","Trust":true}}}`:                              `"Trust" is not known`,
		`{"mcpServers":{"a":{"command":"x","autoApprove":["b"]}}}`:                       "autoApprove has no effect here, so it is refused",
		`{"mcpServers":{"a":{"command":"x","alwaysAllow":[]}}}`:                          "alwaysAllow has no effect here",
		`{"mcpServers":{"a":{"command":"x","url":"http://h"}}}`:                          "both command and url",
		`{"mcpServers":{"a":{"type":"http","command":"x","url":"http://h"}}}`:            "command is a member of a program",
		`{"mcpServers":{"a":{"command":"x","headers":{}}}}`:                              "headers is a member of an address",
		`{"mcpServers":{"a":{"type":"ws","url":"ws://h"}}}`:                              `type "ws" is not known: there are stdio, http and sse`,
		`{"mcpServers":{"a":{"command":"x","timeout":60}}}`:                              `timeout has to be a duration as "90s" or "5m", in quotes`,
		`{"mcpServers":{"a":{"command":"x","timeout":"1ms"}}}`:                           "between 1s and 1h",
		`{"mcpServers":{"a":{"command":"x","trust":"yes"}}}`:                             "trust has to be true or false",
		`{"mcpServers":{"a":{"command":"x","trust":null}}}`:                              "trust has to be true or false",
		`{"mcpServers":{"a":{"command":"x","tools":[]}}}`:                                "names no tool",
		`{"mcpServers":{"a":{"command":"x","args":"y"}}}`:                                "args has to be a list of strings",
		`{"mcpServers":{"a":{"command":"x","args":["${B}"]}}}`:                           "filled in only in the values of env and headers",
		`{"mcpServers":{"a":{"command":"x","env":{"B":"${C}"}}}}`:                        "${C} is not in the environment",
		`{"mcpServers":{"a":{"command":"x","env":{"B":"${C"}}}}`:                         "begins a reference that can't be read",
		`{"mcpServers":{"a":{"command":"x","env":{"B C":"1"}}}}`:                         "is not the name of a variable",
		`{"mcpServers":{"a":{"command":"x","env":{"T":"${SLACK_BOT_TOKEN}"}}}}`:          "is a setting of approvalbot itself",
		`{"mcpServers":{"a":{"command":"x","env":{"T":"${APPROVALBOT_API_TOKEN:-a}"}}}}`: "is a setting of approvalbot itself",
		`{"mcpServers":{"a":{"url":"ftp://h"}}}`:                                         "url has to be as https://HOST/PATH",
		`{"mcpServers":{"a":{"url":"https://u:made-up-pw@h/"}}}`:                         "holds a user or password",
		`{"mcpServers":{"a":{"url":"https://h/#x"}}}`:                                    "has a fragment",
		`{"mcpServers":{"a":{"url":"https://h/","headers":{"a b":"c"}}}}`:                "can't be sent",
		`{"mcpServers":{"a":{"url":"https://h/","headers":{"X":"a\r\nb"}}}}`:             "can't be sent",
		`{"mcpServers":{"a":{"url":"https://h/","headers":{"host":"x"}}}}`:               "belongs to the protocol",
	} {
		_, err := parseConfig([]byte(text), "/etc", environment(map[string]string{"SLACK_BOT_TOKEN": "made-up-pw", "APPROVALBOT_API_TOKEN": "made-up-pw"}))
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "made-up-pw") {
			t.Errorf("%s\n\tgives %v\n\twant  %s", text, err, want)
		}
	}
	_, err := parseConfig([]byte(`{"mcpServers":{"a":{},"b":{"command":"x","x":1}}}`), "/etc", environment(nil))
	mustSay(t, err.Error(), `"a": command`, `"b": "x" is not known`) // all at once
}

// Whatever the file says, what is taken from it is what it has to be.
func FuzzConfig(f *testing.F) {
	f.Add([]byte(`{"mcpServers":{"a":{"command":"x","args":["y"],"env":{"A":"${V}"},"cwd":"z"}}}`))
	f.Add([]byte(`{"mcpServers":{"a":{"url":"https://h/p?token=abcdefghij","headers":{"Authorization":"Bearer ${V}"},"timeout":"3s"}}}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		c, err := parseConfig(text, "/etc", environment(map[string]string{"V": "value-of-v"}))
		if err != nil {
			return
		}
		for _, s := range c.Servers {
			switch {
			case !printableName(s.Name), s.Timeout < leastLimit, s.Timeout > mostLimit:
				t.Errorf("%+v", s)
			case s.Disabled:
			case s.Kind == Stdio && (s.Command == "" || !filepath.IsAbs(s.Cwd) || s.URL != ""),
				s.Kind != Stdio && (s.Command != "" || !strings.HasPrefix(s.Place(), "http")):
				t.Errorf("%+v", s)
			}
		}
	})
}
