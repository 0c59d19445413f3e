package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"approvalbot/internal/devslack"
	"approvalbot/internal/ledger"
	"approvalbot/internal/redact"
	"approvalbot/internal/tools/mcp"
)

// reference gives the program of one of MCP's reference servers, if it is installed.
func reference(t *testing.T, name string) (node, script string) {
	t.Helper()
	script = npmServer(t, "@modelcontextprotocol/"+name+"/dist/index.js")
	node, err := exec.LookPath("node")
	if err != nil {
		t.Fatal(err)
	}
	return node, script
}

// An outside world is one with real time and real processes. Nothing waits for time to pass there: what happens is read
// from the journal as it happens.
type outside struct {
	*world
	events chan ledger.Event
}

// inOutside runs a scenario with MCP servers and a model that plays these turns.
func inOutside(t *testing.T, servers map[string]any, turns string, body func(o *outside)) {
	t.Helper()
	o := &outside{world: newWorld(t, t.TempDir())}
	defer o.close()
	file := filepath.Join(t.TempDir(), "mcp.json")
	text, err := json.Marshal(map[string]any{"mcpServers": servers})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	o.settings.MCPConfig, o.settings.Model = file, script(t, turns)
	o.begin()
	defer o.stop()
	body(o)
	o.stop()
	o.check()
}

// begin is world.start outside of a bubble.
func (o *outside) begin() {
	o.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	o.http = &http.Transport{DialContext: o.dial}
	r := redact.New(o.settings.secrets()...)
	a, err := newApp(ctx, o.settings, wiring{
		log: newLogger(slog.LevelInfo, r, &o.log, false), http: &http.Client{Transport: o.http}, redactor: r,
		dialer: &websocket.Dialer{NetDialContext: o.dial},
	})
	if err != nil {
		o.t.Fatal(err)
	}
	o.app, o.end, o.ended, o.api, o.events = a, cancel, make(chan error, 1), devslack.NewPipe(), make(chan ledger.Event, 1000)
	go func() { o.ended <- a.run(ctx, o.api) }()
	go func() {
		defer close(o.events)
		for e, err := range a.journal.Follow(ctx, 0) {
			if err != nil {
				return
			}
			o.events <- e
		}
	}()
	<-a.slack.Connected()
}

// send mentions the bot.
func (o *outside) send(user, text string) {
	o.t.Helper()
	_, err := o.slack.SendMessage(devslack.MessageRequest{User: o.user(user), Channel: o.general(), Text: fmt.Sprintf("<@%s> %s", o.ws.App.BotUserID, text)})
	if err != nil {
		o.t.Fatal(err)
	}
}

// until reads the journal up to the first event of this kind, of this call if one is named.
func until[B ledger.Body](o *outside, call string) B {
	o.t.Helper()
	limit := time.After(time.Minute)
	for {
		select {
		case e, ok := <-o.events:
			if b, is := e.Body.(B); is && (call == "" || e.Call == call) {
				return b
			}
			if !ok {
				o.t.Fatalf("the journal ended\n%s", o.log.String())
			}
		case <-limit:
			o.t.Fatalf("nothing of this kind within a minute\n%s", o.log.String())
		}
	}
}

// answer clicks on the card of the call, and returns what stood on it and how the call ended.
func (o *outside) answer(call, user, action string) (string, *ledger.ToolFinished) {
	o.t.Helper()
	shown := until[*ledger.ApprovalShown](o, call)
	card := o.at(shown.TS)
	if _, err := o.slack.Click(context.Background(), devslack.ActionRequest{User: o.user(user), Channel: shown.Channel, TS: shown.TS, ActionID: action}); err != nil {
		o.t.Fatal(err)
	}
	return card, until[*ledger.ToolFinished](o, call)
}

// at is what stands on the message.
func (o *outside) at(ts string) string {
	o.t.Helper()
	messages, err := o.slack.Messages(o.general(), "")
	if err != nil {
		o.t.Fatal(err)
	}
	for _, m := range messages {
		thread, err := o.slack.Messages(o.general(), m.TS)
		if err != nil {
			o.t.Fatal(err)
		}
		for _, m := range thread {
			if m.TS == ts {
				return read(m).text
			}
		}
	}
	o.t.Fatalf("there is no message %s", ts)
	return ""
}

// The reference servers over stdio, through the cards: approved, denied, allowed because the server is trusted.
func TestReferenceServers(t *testing.T) {
	node, everything := reference(t, "server-everything")
	_, filesystem := reference(t, "server-filesystem")
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("MCP_TEST_SECRET", "made-up-secret-0001")
	t.Setenv("SLACK_BOT_TOKEN", "xoxb-made-up-0001")
	servers := map[string]any{
		"everything": map[string]any{"command": node, "args": []string{everything, "stdio"}, "env": map[string]string{"EXTRA_TOKEN": "${MCP_TEST_SECRET}"}},
		"fs":         map[string]any{"command": node, "args": []string{filesystem, dir}, "trust": true},
		"broken":     map[string]any{"command": "/nonexistent/server"},
	}
	turns := fmt.Sprintf(`[
		{"toolCalls":[{"id":"sum","name":"mcp__everything__get-sum","arguments":{"a":19,"b":23}}]},
		{"expectResults":[{"contains":"42","isError":false}],"toolCalls":[{"id":"echo","name":"mcp__everything__echo","arguments":{"message":"no"}}]},
		{"expectResults":[{"contains":"denied","isError":true}],"toolCalls":[{"id":"image","name":"mcp__everything__get-tiny-image","arguments":{}}]},
		{"expectResults":[{"contains":"[image, image/png,","isError":false}],"toolCalls":[{"id":"env","name":"mcp__everything__get-env","arguments":{}}]},
		{"expectResults":[{"contains":"EXTRA_TOKEN","notContains":"xoxb-","isError":false}],"toolCalls":[{"id":"structured","name":"mcp__everything__get-structured-content","arguments":{"location":"Chicago"}}]},
		{"expectResults":[{"contains":"temperature"}],"toolCalls":[{"id":"invalid","name":"mcp__everything__get-sum","arguments":{"a":"x"}}]},
		{"expectResults":[{"contains":"INVALID_ARGUMENTS","isError":true}],"toolCalls":[{"id":"write","name":"mcp__fs__write_file","arguments":{"path":%[1]q,"content":"written"}}]},
		{"expectResults":[{"isError":false}],"toolCalls":[{"id":"read","name":"mcp__fs__read_text_file","arguments":{"path":%[1]q}}]},
		{"expectResults":[{"contains":"written","isError":false}],"toolCalls":[{"id":"away","name":"mcp__fs__read_text_file","arguments":{"path":"/etc/hostname"}}]},
		{"expectResults":[{"contains":"TOOL_FAILED","isError":true}],"text":"All done."}]`, filepath.Join(dir, "a.txt"))
	inOutside(t, servers, turns, func(o *outside) {
		o.send("alice", "go")
		card, f := o.answer("sum", "alice", "approve")
		if f.State != ledger.OutputAvailable {
			t.Errorf("%+v", f)
		}
		mustSay(t, card, "Call get-sum of the MCP server everything", "mcp__everything__get-sum", "\"a\": 19", "isn't marked as trusted")
		if _, f := o.answer("echo", "alice", "deny"); f.State != ledger.OutputDenied || f.Source != ledger.SourceUser {
			t.Errorf("%+v", f)
		}
		for _, call := range []string{"image", "env", "structured"} {
			o.answer(call, "alice", "approve")
		}
		card, _ = o.answer("write", "alice", "approve")
		if strings.Contains(card, "isn't marked as trusted") {
			t.Error("the trusted server isn't trusted")
		}
		if f := until[*ledger.ToolFinished](o, "read"); f.State != ledger.OutputAvailable {
			t.Errorf("what a trusted server calls read-only was not allowed: %+v", f)
		}
		end := until[*ledger.RunFinished](o, "")
		if end.Status != ledger.RunSucceeded {
			t.Errorf("%+v\n%s", end, o.log.String())
		}
		resp, err := (&http.Client{Transport: &http.Transport{DialContext: o.api.DialContext}}).Get("http://localhost/readyz")
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err != nil || resp.StatusCode != http.StatusOK {
			t.Errorf("%d %s %v", resp.StatusCode, body, err)
		}
		mustSay(t, string(body), `"broken":"not up: `, `"fs":"up, 14 tools"`)
	})
}

// The same over streamable HTTP.
func TestReferenceServerOverHTTP(t *testing.T) {
	node, everything := reference(t, "server-everything")
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := ln.Addr().(*net.TCPAddr).Port
	ln.Close() // the server wants to open it itself
	ctx, cancel := context.WithCancel(context.Background())
	server := exec.CommandContext(ctx, node, everything, "streamableHttp")
	server.Env = append(os.Environ(), fmt.Sprintf("PORT=%d", port))
	stderr, err := server.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	defer server.Wait()
	defer cancel()
	listening := false
	for lines := bufio.NewScanner(stderr); !listening && lines.Scan(); {
		listening = strings.Contains(lines.Text(), "listening on port")
	}
	if !listening {
		t.Fatal("it doesn't listen")
	}
	go io.Copy(io.Discard, stderr) // it ends with the process
	servers := map[string]any{"everything": map[string]any{"type": "http", "url": fmt.Sprintf("http://127.0.0.1:%d/mcp", port)}}
	inOutside(t, servers, `[
		{"toolCalls":[{"id":"sum","name":"mcp__everything__get-sum","arguments":{"a":19,"b":23}}]},
		{"expectResults":[{"contains":"42","isError":false}],"toolCalls":[{"id":"no","name":"mcp__everything__echo","arguments":{"message":"x"}}]},
		{"text":"Done."}]`, func(o *outside) {
		o.send("alice", "go")
		if _, f := o.answer("sum", "alice", "approve"); f.State != ledger.OutputAvailable {
			t.Errorf("%+v", f)
		}
		if _, f := o.answer("no", "alice", "deny"); f.State != ledger.OutputDenied {
			t.Errorf("%+v", f)
		}
		if end := until[*ledger.RunFinished](o, ""); end.Status != ledger.RunSucceeded {
			t.Errorf("%+v\n%s", end, o.log.String())
		}
	})
}

// A server that is killed in the middle of a call: nobody can tell whether it was performed, it isn't tried again, and the
// server is there for the next call.
func TestReferenceServerKilledInTheMiddle(t *testing.T) {
	node, everything := reference(t, "server-everything")
	dir := t.TempDir()
	said := filepath.Join(dir, "said")
	if err := syscall.Mkfifo(said, 0o600); err != nil {
		t.Fatal(err)
	}
	// What the server is told goes past us, so that we know when it has the call.
	wrapper := `echo $$ > pid; tee said | "$0" "$1" stdio`
	log, err := os.OpenFile(said, os.O_RDWR, 0) // for writing, too, so that it doesn't end with the first server
	if err != nil {
		t.Fatal(err)
	}
	calls, read := make(chan struct{}, 10), make(chan struct{})
	go func() {
		defer close(read)
		for lines := bufio.NewScanner(log); lines.Scan(); {
			if strings.Contains(lines.Text(), `"tools/call"`) {
				calls <- struct{}{}
			}
		}
	}()
	defer func() {
		log.Close()
		<-read
	}()
	servers := map[string]any{"everything": map[string]any{"command": "/bin/sh", "args": []string{"-c", wrapper, node, everything}, "cwd": dir}}
	inOutside(t, servers, `[
		{"toolCalls":[{"id":"long","name":"mcp__everything__trigger-long-running-operation","arguments":{"duration":300}}]},
		{"expectResults":[{"contains":"OUTCOME_UNKNOWN","isError":true}],"text":"Who knows."}]`, func(o *outside) {
		o.send("alice", "go")
		shown := until[*ledger.ApprovalShown](o, "long")
		if _, err := o.slack.Click(context.Background(), devslack.ActionRequest{User: o.user("alice"), Channel: shown.Channel, TS: shown.TS, ActionID: "approve"}); err != nil {
			t.Fatal(err)
		}
		<-calls
		text, err := os.ReadFile(filepath.Join(dir, "pid"))
		if err != nil {
			t.Fatal(err)
		}
		var pid int
		if _, err := fmt.Sscan(string(text), &pid); err != nil || pid < 2 {
			t.Fatal(pid, err)
		}
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		f := until[*ledger.ToolFinished](o, "long")
		if f.State != ledger.OutputError || f.Code != "OUTCOME_UNKNOWN" || !strings.Contains(f.Reason, "not known") {
			t.Errorf("%+v", f)
		}
		if end := until[*ledger.RunFinished](o, ""); end.Status != ledger.RunSucceeded {
			t.Errorf("%+v\n%s", end, o.log.String())
		}
		if len(calls) > 0 {
			t.Error("the call was made again")
		}
	})
}

// A bot that is killed leaves no server behind.
func TestServersDieWithTheBot(t *testing.T) {
	dir := t.TempDir()
	held := filepath.Join(dir, "held")
	if err := syscall.Mkfifo(held, 0o600); err != nil {
		t.Fatal(err)
	}
	config := fmt.Sprintf(`{"mcpServers":{"s":{"command":"/bin/sh","args":["-c","trap '' TERM HUP; exec 9>held; echo up >&9; sleep 300 & wait"],"cwd":%q}}}`, dir)
	file := filepath.Join(dir, "mcp.json")
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	p := newProgram(t, dir, []string{"APPROVALBOT_MCP_CONFIG=" + file}, "dev", "--slack-addr", "127.0.0.1:0", "--api-addr", "127.0.0.1:0", "--data-dir", filepath.Join(dir, "data"))
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(held) // waits for the server
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	in := bufio.NewReader(f)
	if line, err := in.ReadString('\n'); err != nil || line != "up\n" {
		t.Fatal(line, err)
	}
	if err := p.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	p.Wait()
	if rest, err := io.ReadAll(in); err != nil || len(rest) > 0 { // it ends when nobody holds it open any more
		t.Errorf("%q %v", rest, err)
	}
}

// What is wrong with the file is said at the start; what is right with it, by doctor.
func TestDoctorNamesServers(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "mcp.json")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	env := []string{"APPROVALBOT_MODEL=demo", "APPROVALBOT_APPROVERS=channel", "APPROVALBOT_MCP_CONFIG=" + file}
	write(`{"mcpServers":{"a":{"command":"x","env":{"T":"${NO_SUCH_VARIABLE}"}}}}`)
	said, code := newProgram(t, dir, env, "doctor").output()
	if code != 1 {
		t.Errorf("exit code %d", code)
	}
	mustSay(t, said, "✗ settings  APPROVALBOT_MCP_CONFIG: "+file, `"a": env: T: ${NO_SUCH_VARIABLE} is not in the environment`)
	write(`{"mcpServers":{"gone":{"command":"/nonexistent/x"},"off":{"command":"y","disabled":true}}}`)
	said, _ = newProgram(t, dir, env, "doctor").output()
	mustSay(t, said, "✗ mcp       gone (/nonexistent/x):", "the bot starts without its tools", "! mcp       off is disabled")
	if _, err := exec.LookPath("node"); err != nil {
		return
	}
	node, everything := reference(t, "server-everything")
	write(fmt.Sprintf(`{"mcpServers":{"everything":{"command":%q,"args":[%q,"stdio"]}}}`, node, everything))
	said, _ = newProgram(t, dir, env, "doctor").output()
	mustSay(t, said, "✓ mcp       everything ("+node+"): 13 tools, not trusted, so every call asks")
}

// The file of the servers, which may hold secrets, is out of reach for tools, and the secrets in it for whoever reads.
func TestMCPConfigIsProtected(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "workspace", "mcp.json")
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(`{"mcpServers":{"a":{"command":"x","env":{"API_KEY":"made-up-0123456789"},"disabled":false}}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	s := Settings{DataDir: dir, MCPConfig: file}
	if !strings.Contains(strings.Join(s.protected(), "\n"), file) {
		t.Errorf("tools may touch it: %q", s.protected())
	}
	if !strings.Contains(strings.Join(s.secrets(), "\n"), "made-up-0123456789") {
		t.Errorf("its secret is not hidden: %q", s.secrets())
	}
}

// A server whose program, files or directory the agent can write is told of; one that is only told about the workspace isn't.
func TestSteeredServers(t *testing.T) {
	workspace, write, other := t.TempDir(), t.TempDir(), t.TempDir()
	script, link := filepath.Join(write, "server.js"), filepath.Join(other, "link.js")
	if err := errors.Join(os.WriteFile(script, nil, 0o644), os.Symlink(script, link)); err != nil {
		t.Fatal(err)
	}
	t.Chdir(filepath.Dir(workspace))
	s := Settings{Workspace: filepath.Base(workspace), ShellWrite: []string{write}}
	for name, tt := range map[string]struct {
		server mcp.Server
		told   bool
	}{
		"elsewhere":     {mcp.Server{Command: "npx", Args: []string{"-y", "server", workspace}, Cwd: other}, false},
		"directory":     {mcp.Server{Command: "npx", Cwd: filepath.Join(workspace, "sub")}, true},
		"script":        {mcp.Server{Command: "node", Args: []string{script}, Cwd: other}, true},
		"link":          {mcp.Server{Command: "node", Args: []string{"link.js"}, Cwd: other}, true},
		"program":       {mcp.Server{Command: script, Cwd: other}, true},
		"disabled":      {mcp.Server{Command: script, Cwd: other, Disabled: true}, false},
		"similar names": {mcp.Server{Command: "npx", Cwd: workspace + "2"}, false},
	} {
		tt.server.Name, tt.server.Kind = "one", mcp.Stdio
		if told := s.steered(mcp.Config{Servers: []mcp.Server{tt.server}}); len(told) > 0 != tt.told {
			t.Errorf("%s: %q", name, told)
		}
	}
}
