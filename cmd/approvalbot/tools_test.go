package main

import (
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"approvalbot/internal/devslack"
	"approvalbot/internal/ledger"
	"approvalbot/internal/policy"
)

// written are the messages that a tool wrote, in a conversation of the local Slack.
func (w *world) written(channel string) (out []shown) {
	w.t.Helper()
	messages, err := w.slack.Messages(channel, "")
	if err != nil {
		w.t.Fatal(err)
	}
	for _, m := range messages {
		if strings.Contains(string(m.Metadata), `"post"`) {
			out = append(out, read(m))
		}
	}
	return out
}

// conversation is the bot's direct conversation with somebody; empty: there is none.
func (w *world) conversation(user string) string {
	for _, c := range w.slack.Workspace().Channels {
		if c.Kind == devslack.KindIM && c.User == w.user(user) {
			return c.ID
		}
	}
	return ""
}

// The look-up asks nobody. The message asks, and the card says what will be posted and to whom; approved, it stands there
// once, saying for whom; denied, nothing does.
func TestPostMessageThroughACard(t *testing.T) {
	for _, action := range []string{"approve", "deny"} {
		t.Run(action, func(t *testing.T) {
			inChangedWorld(t, func(w *world) {
				bob := w.user("bob")
				w.settings.Model = script(t, `[
					{"toolCalls":[{"id":"c1","name":"lookup_user","arguments":{"query":"bob"}}]},
					{"toolCalls":[{"id":"c2","name":"post_message","arguments":{"to":"`+bob+`","name":"bob","text":"The release is out, <@`+w.user("alice")+`>.\nAll is well. <!channel>"}}]},
					{"text":"Told him."}]`)
			}, func(w *world) {
				thread := w.ask("alice", "tell bob")
				card := w.card(thread)
				mustSay(t, card.text, "Post a message to bob ("+w.user("bob")+")", "The release is out, <@"+w.user("alice")+">.\nAll is well. <!channel>",
					"who will be notified", "Every call of post_message asks people first: it can't be taken back.")
				if n := w.conversation("bob"); n != "" && len(w.written(n)) != 0 {
					t.Error("it was posted before anybody approved")
				}
				w.click("bob", card, action)
				run := w.runs()[0]
				if lookup := run.Call("c1"); lookup.Approval != nil || !strings.Contains(lookup.Finished.Output, w.user("bob")+": bob") {
					t.Errorf("the look-up: %+v", lookup.Finished)
				}
				var posts []shown
				if dm := w.conversation("bob"); dm != "" {
					posts = w.written(dm)
				}
				if action == "deny" {
					if len(posts) != 0 || run.Call("c2").State != ledger.OutputDenied {
						t.Errorf("denied, and there is %v, %s", posts, run.Call("c2").State)
					}
					return
				}
				if len(posts) != 1 || run.Call("c2").State != ledger.OutputAvailable {
					t.Fatalf("%d messages, %+v", len(posts), run.Call("c2").Finished)
				}
				mustSay(t, posts[0].text, "The release is out, ", "All is well. <!channel>", "Posted by an agent for alice")
				mustSay(t, run.Call("c2").Finished.Output, "Posted to bob ("+w.user("bob")+")", posts[0].ts)
			})
		})
	}
}

// A read-only sandbox posts nothing, and asks nobody about it.
func TestReadOnlyPostsNothing(t *testing.T) {
	inChangedWorld(t, func(w *world) {
		w.settings.Sandbox = policy.ReadOnly
		w.settings.Model = script(t, `[{"toolCalls":[{"id":"c1","name":"post_message","arguments":{"to":"#general","text":"x"}},
			{"id":"c2","name":"http_request","arguments":{"method":"GET","url":"https://example.com"}}]},{"text":"No."}]`)
	}, func(w *world) {
		thread := w.ask("alice", "post")
		if len(w.cards(thread)) != 0 || len(w.written(w.general())) != 0 {
			t.Error("it asks, or posts")
		}
		for _, c := range w.runs()[0].Calls {
			if c.State != ledger.OutputDenied {
				t.Errorf("%s: %s", c.ID, c.State)
			}
		}
	})
}

// An agent edits what it has read. If the file changes while people think about it, the approval is for something that
// isn't there any more, and nothing is done.
func TestAnEditIsApprovedForOneVersion(t *testing.T) {
	for name, meanwhile := range map[string]string{"unchanged": "", "changed": "replicas: 5\n"} {
		t.Run(name, func(t *testing.T) {
			var file string
			inChangedWorld(t, func(w *world) {
				file = filepath.Join(w.dir, "workspace", "deploy.yaml")
				if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(file, []byte("replicas: 2\n"), 0o644); err != nil {
					t.Fatal(err)
				}
				w.settings.Model = script(t, `[{"toolCalls":[{"id":"c1","name":"edit_file","arguments":{"path":"deploy.yaml","old_string":"replicas:","new_string":"# scaled\nreplicas:","version":"sha256:e3e28ba0ad9ff6f4205af6251eb16391"}}]},{"text":"So."}]`)
			}, func(w *world) {
				thread := w.ask("alice", "scale")
				card := w.card(thread)
				mustSay(t, card.text, "Edit deploy.yaml", "Only if the file is still as the agent knows it (version sha256:e3e28ba0ad9ff6f4205af6251eb16391).")
				if meanwhile != "" {
					if err := os.WriteFile(file, []byte(meanwhile), 0o644); err != nil {
						t.Fatal(err)
					}
				}
				w.click("bob", card, "approve")
				got, err := os.ReadFile(file)
				if err != nil {
					t.Fatal(err)
				}
				f := w.runs()[0].Calls[0].Finished
				if meanwhile == "" && (string(got) != "# scaled\nreplicas: 2\n" || f.State != ledger.OutputAvailable) {
					t.Errorf("the file is %q, %+v", got, f)
				}
				if meanwhile != "" && (string(got) != meanwhile || f.Code != "CONFLICT") {
					t.Errorf("the file is %q, %+v", got, f)
				}
			})
		})
	}
}

// An agent can't get at what decides about it through the file tools or through HTTP, whatever the operator's list says.
func TestToolsDontReachOurOwn(t *testing.T) {
	dir := t.TempDir()
	s := Settings{DataDir: dir, Workspace: dir, APIAddr: "127.0.0.1:3102", APIURL: "http://127.0.0.1:3103/api/", Model: "script:" + filepath.Join(dir, "turns.json"),
		Instructions: filepath.Join(dir, "instructions.txt"), APITokensFile: filepath.Join(dir, "tokens.json"),
		HTTPAllow: []string{"127.0.0.1:3102", "127.0.0.1:3103", "127.0.0.1:4000"}}
	o := s.toolOptions(nil, &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 4000}, &net.TCPAddr{IP: net.IPv6zero, Port: 4001})
	var own []string
	for _, a := range o.HTTP.Own {
		own = append(own, a.String())
	}
	if diff := cmp.Diff([]string{"127.0.0.1:3102", "127.0.0.1:4000", "[::]:4001", "127.0.0.1:3103"}, own); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for _, file := range []string{"journal/journal.db", "devslack/state", "turns.json", "instructions.txt", "tokens.json"} {
		covered := false
		for _, p := range o.Protected {
			covered = covered || p == filepath.Join(dir, file) || strings.HasPrefix(filepath.Join(dir, file), p+"/")
		}
		if !covered {
			t.Errorf("%s is not protected", file)
		}
	}
	s.HTTP = httpOff
	if s.toolOptions(nil).HTTP != nil {
		t.Error("it is off, and there")
	}
	for addr, want := range map[string]string{"localhost:80": "127.0.0.1:80", ":81": "0.0.0.0:81", "[::1]:82": "[::1]:82", "127.0.0.1:0": "", "api.example:443": ""} {
		var got string
		for _, a := range (&Settings{APIAddr: addr}).ownAddrs(nil) {
			got = netip.AddrPort(a).String()
		}
		if got != want {
			t.Errorf("%s is %q, want %q", addr, got, want)
		}
	}
}

func TestHTTPSettings(t *testing.T) {
	for _, tt := range []struct {
		s    Settings
		want string
	}{
		{Settings{HTTP: "on", HTTPAllow: []string{"grafana.internal:3000"}}, ""},
		{Settings{HTTP: "off"}, ""},
		{Settings{HTTP: "yes"}, `APPROVALBOT_HTTP="yes": it has to be on or off`},
		{Settings{HTTPAllow: []string{"http://grafana.internal"}}, "APPROVALBOT_HTTP_ALLOW: "},
		{Settings{HTTPAllow: []string{"169.254.169.254"}}, "never made"},
	} {
		err := together(tt.s.checkHTTP()...)
		if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
			t.Errorf("%+v: %v, want %q", tt.s, err, tt.want)
		}
	}
}
