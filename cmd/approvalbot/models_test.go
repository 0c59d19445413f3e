package main

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"approvalbot/internal/devslack"
	"approvalbot/internal/ledger"
)

// npmServer is the script of a server from npm that isn't ours. Without it a test is skipped, but not where it is part of
// the definition of done.
func npmServer(t *testing.T, script string) string {
	t.Helper()
	file, err := filepath.Abs(filepath.Join("..", "..", "test", "npm", "node_modules", filepath.FromSlash(script)))
	if err != nil {
		t.Fatal(err)
	}
	if _, err = os.Stat(file); err == nil {
		_, err = exec.LookPath("node")
	}
	if err == nil {
		return file
	}
	const how = "this needs Node.js and the servers that `make servers` installs"
	if os.Getenv("CI") != "" {
		t.Fatal(how)
	}
	t.Skip(how)
	return ""
}

// mockModels starts a server that speaks both providers' APIs, and returns its address.
func mockModels(t *testing.T) string {
	t.Helper()
	script := npmServer(t, "@copilotkit/aimock/dist/cli.js")
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	cmd := exec.CommandContext(ctx, "node", script, "--port", "0", "--host", "127.0.0.1", "--strict", "--validate-on-load",
		"--fixtures", filepath.Join("testdata", "aimock.json"))
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir()}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stderr = cmd.Stdout
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	address, told := "", make(chan string, 1)
	read := make(chan struct{})
	go func() {
		defer close(read)
		for lines := bufio.NewScanner(out); lines.Scan(); {
			if _, url, ok := strings.Cut(lines.Text(), "listening on "); ok {
				told <- strings.TrimSpace(url)
			}
		}
		close(told)
	}()
	t.Cleanup(func() {
		cmd.Process.Signal(syscall.SIGKILL) // its own end waits for connections
		<-read
		cmd.Wait()
		cancel()
	})
	if address = <-told; address == "" {
		t.Fatal("the mock server ended")
	}
	return address
}

// withModel points the settings to a provider's model at the mock server.
func withModel(s *Settings, provider, address string) {
	switch provider {
	case "anthropic":
		s.Model, s.AnthropicKey, s.AnthropicBaseURL = "anthropic/claude-test-1", "sk-ant-not-real-0", address
	case "openai":
		s.Model, s.OpenAIKey, s.OpenAIBaseURL = "openai/gpt-test-1", "sk-not-real-1", address+"/v1"
	}
}

// say lets alice ask the bot, in a thread if there is one, and returns the thread.
func (s *stage) say(thread, text string) string {
	s.Helper()
	ts, err := s.slack.SendMessage(devslack.MessageRequest{
		User: s.ws.Users[0].ID, Channel: s.ws.Channels[0].ID, ThreadTS: thread, Text: fmt.Sprintf("<@%s> %s", s.ws.App.BotUserID, text),
	})
	if err != nil {
		s.Fatal(err)
	}
	if thread == "" {
		return ts
	}
	return thread
}

// decide waits for as many cards and clicks on each what choose says of its call's arguments.
func (s *stage) decide(cards int, choose func(args string) string) {
	s.Helper()
	asked := map[string]string{} // approval: arguments
	for range cards {
		m := s.until("card", func(e ledger.Event) bool {
			if b, ok := e.Body.(*ledger.ApprovalRequested); ok {
				asked[b.Approval] = b.Arguments
			}
			m, ok := e.Body.(*ledger.MessagePosted)
			return ok && m.Thing.Kind == "card"
		}).Body.(*ledger.MessagePosted)
		if _, err := s.slack.Click(context.Background(), devslack.ActionRequest{
			User: s.ws.Users[1].ID, Channel: m.Channel, TS: m.TS, ActionID: choose(asked[m.Thing.ID]),
		}); err != nil {
			s.Fatal(err)
		}
	}
}

// ended waits for the end of a run.
func (s *stage) ended() *ledger.RunFinished {
	s.Helper()
	e := s.until("end of the run", func(e ledger.Event) bool { return e.Kind() == "run_finished" })
	return e.Body.(*ledger.RunFinished)
}

func (s *stage) exists(file string) bool {
	_, err := os.Stat(filepath.Join(s.app.builtin.Dir(), file))
	return err == nil
}

// Both providers, streaming and not, through the whole path: a round of parallel calls of which one needs nobody, one is
// approved and one is denied; then another run in the same conversation.
func TestModelsThroughTheWholePath(t *testing.T) {
	for _, provider := range []string{"anthropic", "openai"} {
		for _, streaming := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s streaming=%t", provider, streaming), func(t *testing.T) {
				address := mockModels(t)
				s := newStage(t, func(s *Settings) { withModel(s, provider, address) }, func(a *app) { tune(a, streaming) })
				thread := s.say("", "write two files")
				s.decide(2, func(args string) string {
					if strings.Contains(args, "yes.txt") {
						return "approve"
					}
					return "deny"
				})
				end := s.ended()
				if end.Status != ledger.RunSucceeded || end.Answer != "yes.txt is written, no.txt was denied." || end.Rounds != 2 {
					t.Errorf("the run ended with %+v", end)
				}
				if !s.exists("yes.txt") || s.exists("no.txt") {
					t.Errorf("yes.txt: %t, no.txt: %t", s.exists("yes.txt"), s.exists("no.txt"))
				}
				if end.Usage.InputTokens < 120 || end.Usage.OutputTokens < 34 {
					t.Errorf("the usage is %+v", end.Usage)
				}
				s.say(thread, "what became of it?")
				if end := s.ended(); end.Answer != "One of two was written." {
					t.Errorf("the next run ended with %+v", end)
				}
			})
		}
	}
}

// tune lets the bot ask its model without streaming.
func tune(a *app, streaming bool) {
	if !streaming {
		a.agent.Deltas = nil
	}
}

// A provider that is busy, then fails, then answers; and one whose stream ends in the middle of a tool call.
func TestModelsThatFailAtFirst(t *testing.T) {
	for _, provider := range []string{"anthropic", "openai"} {
		t.Run(provider, func(t *testing.T) {
			address := mockModels(t)
			s := newStage(t, func(s *Settings) { withModel(s, provider, address) }, nil)
			s.say("", "are you busy?")
			var failed []*ledger.ModelFailed
			attempts := func(e ledger.Event) bool {
				if b, ok := e.Body.(*ledger.ModelFailed); ok {
					failed = append(failed, b)
				}
				return e.Kind() == "run_finished"
			}
			end := s.until("end of the run", attempts).Body.(*ledger.RunFinished)
			if end.Answer != "Here at last." || len(failed) != 2 {
				t.Fatalf("%d attempts failed; the run ended with %+v", len(failed), end)
			}
			if failed[0].ErrorKind != "rate_limited" || failed[0].RetryAfter != time.Second || failed[0].RetryIn < time.Second || failed[1].ErrorKind != "unavailable" {
				t.Errorf("the attempts were %+v and %+v", failed[0], failed[1])
			}

			failed = nil
			s.say("", "will it be cut?")
			asked := false
			end = s.until("end of the run", func(e ledger.Event) bool {
				asked = asked || slices.Contains([]string{"permission_decided", "approval_requested", "tool_started"}, e.Kind())
				return attempts(e)
			}).Body.(*ledger.RunFinished)
			if end.Answer != "Nothing was written." || len(failed) != 1 {
				t.Fatalf("%d attempts failed; the run ended with %+v", len(failed), end)
			}
			if failed[0].ErrorKind != "broken_answer" {
				t.Errorf("the attempt was %+v", failed[0])
			}
			if asked || s.exists("cut.txt") {
				t.Error("a call that was cut off came to something")
			}
		})
	}
}

// doctor asks the provider, and says how.
func TestDoctorAsksTheModel(t *testing.T) {
	list := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		switch {
		case req.Header.Get("Authorization") != "Bearer sk-not-real-1":
			w.WriteHeader(http.StatusUnauthorized)
			fmt.Fprint(w, `{"error":{"message":"Incorrect API key provided: sk-wr****ng.","type":"invalid_request_error","code":"invalid_api_key"}}`)
		case req.URL.Path == "/v1/models/gpt-test-1":
			fmt.Fprint(w, `{"id":"gpt-test-1","object":"model","created":1790000000,"owned_by":"system"}`)
		case strings.HasPrefix(req.URL.Path, "/v1/models/claude-test-1"):
			fmt.Fprint(w, `{"id":"claude-test-1","type":"model","display_name":"Claude Test","lifecycle":"deprecated","max_input_tokens":200000}`)
		default:
			w.WriteHeader(http.StatusNotFound)
			fmt.Fprint(w, `{"error":{"message":"no such route","type":"not_found_error"}}`)
		}
	}))
	defer list.Close()
	for _, c := range []struct {
		env   []string
		words []string
	}{
		{[]string{"APPROVALBOT_MODEL=openai/gpt-test-1", "OPENAI_API_KEY=sk-not-real-1", "OPENAI_BASE_URL=" + list.URL + "/v1"}, []string{"✓ model     openai/gpt-test-1", "has the model"}},
		{[]string{"APPROVALBOT_MODEL=anthropic/claude-test-1", "ANTHROPIC_API_KEY=sk-not-real-1", "ANTHROPIC_BASE_URL=" + list.URL}, []string{"✓ model     anthropic/claude-test-1", "will retire it"}},
		{[]string{"APPROVALBOT_MODEL=openai/gpt-test-1", "OPENAI_API_KEY=sk-wrong", "OPENAI_BASE_URL=" + list.URL + "/v1"}, []string{"✗ model ", "check OPENAI_API_KEY"}},
		{[]string{"APPROVALBOT_MODEL=openai/gpt-test-2", "OPENAI_API_KEY=sk-not-real-1", "OPENAI_BASE_URL=" + list.URL + "/v1"}, []string{"✗ model ", "no model gpt-test-2"}},
		{[]string{"APPROVALBOT_MODEL=openai/gpt-test-1"}, []string{"✗ model ", "OPENAI_API_KEY is not set"}},
		{[]string{"APPROVALBOT_MODEL=openai/gpt-test-1", "OPENAI_BASE_URL=http://models.example/v1"}, []string{"✗ settings  OPENAI_BASE_URL: http://models.example is refused"}},
		{[]string{"APPROVALBOT_MODEL=gpt-test-1"}, []string{"✗ model ", `unknown model "gpt-test-1"`, "anthropic/NAME"}},
	} {
		said, _ := newProgram(t, t.TempDir(), c.env, "doctor").output()
		mustSay(t, said, c.words...)
		if strings.Contains(said, "not-real") || strings.Contains(said, "sk-wr") {
			t.Errorf("it says a key:\n%s", said)
		}
	}
	address := mockModels(t) // it lists some models, but not this one
	said, _ := newProgram(t, t.TempDir(), []string{"APPROVALBOT_MODEL=openai/own-model", "OPENAI_BASE_URL=" + address + "/v1"}, "doctor").output()
	mustSay(t, said, "✓ model     openai/own-model (from APPROVALBOT_MODEL): The model server at 127.0.0.1:", "asked for one word")
}

// dev says which keys it found and doesn't use: names, never values.
func TestDevNamesKeysItDoesNotUse(t *testing.T) {
	for _, c := range []struct {
		s    Settings
		want string
	}{
		{Settings{Model: "demo"}, ""},
		{Settings{Model: "demo", OpenAIKey: "sk-not-real-1"}, "OPENAI_API_KEY found in the environment and not used: the demo answers. For a real model: --model openai/NAME (make dev MODEL=…)"},
		{Settings{Model: "demo", OpenAIKey: "sk-not-real-1", AnthropicKey: "sk-not-real-2"}, "ANTHROPIC_API_KEY and OPENAI_API_KEY found in the environment and not used: the demo answers. For a real model: --model anthropic/NAME or --model openai/NAME (make dev MODEL=…)"},
		{Settings{Model: "anthropic/claude-test-1", OpenAIKey: "sk-not-real-1"}, ""},
	} {
		if got := c.s.unusedKeys(); got != c.want {
			t.Errorf("%s: %q", c.s.Model, got)
		}
	}
}
