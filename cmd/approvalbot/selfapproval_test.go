package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"approvalbot/internal/tools/confine"
)

// An agent that tries to approve itself. It has one approved command, and with that it tries everything to get a second
// one approved that people haven't decided about. The command is the test binary itself, so that the attempts are a
// program's and not only a shell's.
const asAgent = "RUN_AS_SELF_APPROVING_AGENT"

// reportFile is where the agent writes how it fared, in the workspace.
const reportFile = "report.json"

// approveItself makes the attempts, given the process of the bot, the directory where it keeps everything, the address of
// its API, and that of a local Slack if there is one. In the report, an attempt that was refused has no text.
func approveItself(args []string) {
	pid, dir, api, slack := args[0], args[1], args[2], args[3]
	report := map[string]string{
		"ask the API for asks":        request(http.MethodGet, api+"/api/agent/approvals", ""),
		"approve through the API":     request(http.MethodPost, api+"/api/agent/approvals/run_1/call_1_2", `{"decision":"approve"}`),
		"find tokens in environments": tokensIn(glob("/proc/*/environ"), glob("/proc/*/task/*/environ")),
		"find tokens in files":        tokensIn(files(dir)),
		"open files for writing":      writable(files(dir)),
		"make files beside ours":      made(dir, filepath.Join(dir, "journal"), filepath.Join(dir, "devslack")),
		"read the bot's memory":       opened("/proc/" + pid + "/mem"),
		"read the bot's descriptors":  opened(slices.Concat(glob("/proc/"+pid+"/fd/*"), []string{"/proc/" + pid + "/fd/0", "/proc/" + pid + "/fd/3"})...),
		"read the bot's directory":    opened("/proc/" + pid + "/cwd"),
		"read by the bot's root":      opened("/proc/" + pid + "/root" + dir),
		"signal the bot":              signalled(pid),
		"click in the local Slack":    click(slack),
	}
	text, err := json.Marshal(report)
	if err == nil {
		err = os.WriteFile(reportFile, text, 0o644)
	}
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
}

func request(method, url, body string) string {
	req, err := http.NewRequest(method, url, strings.NewReader(body))
	if err != nil {
		return err.Error()
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return ""
	}
	defer resp.Body.Close()
	said, err := io.ReadAll(io.LimitReader(resp.Body, 300))
	if err != nil {
		return err.Error()
	}
	return resp.Status + " " + string(said)
}

// click presses every Approve that stands in the local Slack, as its first user.
func click(slack string) string {
	if slack == "" {
		return ""
	}
	var w struct {
		Users    []struct{ ID, Kind string }
		Channels []struct{ ID string }
	}
	if fetch(slack+"_dev/workspace", &w) != nil {
		return ""
	}
	var listed struct{ Messages []json.RawMessage }
	if err := fetch(slack+"_dev/messages?channel="+w.Channels[0].ID, &listed); err != nil {
		return err.Error()
	}
	cards := slices.Clone(listed.Messages)
	for _, m := range listed.Messages {
		var thread struct{ Messages []json.RawMessage }
		if err := fetch(slack+"_dev/messages?channel="+w.Channels[0].ID+"&thread_ts="+ts(m), &thread); err == nil {
			cards = append(cards, thread.Messages...)
		}
	}
	out := "reached"
	for _, m := range cards {
		if hasApprove(m) {
			out += " " + request(http.MethodPost, slack+"_dev/actions", clickBody(w.Users[0].ID, w.Channels[0].ID, ts(m), "approve"))
		}
	}
	return out
}

func clickBody(user, channel, ts, action string) string {
	return fmt.Sprintf(`{"user":%q,"channel":%q,"ts":%q,"action_id":%q}`, user, channel, ts, action)
}

func hasApprove(m json.RawMessage) bool { return bytes.Contains(m, []byte(`"action_id":"approve"`)) }

func ts(m json.RawMessage) string {
	var v struct{ TS string }
	json.Unmarshal(m, &v)
	return v.TS
}

func fetch(url string, into any) error {
	resp, err := http.Get(url)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	return json.NewDecoder(resp.Body).Decode(into)
}

func glob(pattern string) []string {
	found, _ := filepath.Glob(pattern)
	return found
}

// files are all below a directory but the workspace.
func files(dir string) (out []string) {
	filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return nil
		case entry.IsDir() && entry.Name() == "workspace":
			return fs.SkipDir
		case entry.Type().IsRegular():
			out = append(out, path)
		}
		return nil
	})
	return append(out, filepath.Join(dir, ".env"), filepath.Join(dir, "tokens.json"), filepath.Join(dir, "journal", "journal.db"))
}

var looksLikeToken = regexp.MustCompile(`(xoxb|xapp)-[0-9A-Za-z-]{8,}|local-[0-9a-f]{32}|made-up-api-token`)

func tokensIn(lists ...[]string) string {
	for _, path := range slices.Concat(lists...) {
		if text, err := os.ReadFile(path); err == nil && looksLikeToken.Match(text) {
			return "one in " + path
		}
	}
	return ""
}

func writable(paths []string) string {
	for _, path := range paths {
		if f, err := os.OpenFile(path, os.O_WRONLY, 0); err == nil {
			f.Close()
			return path
		}
	}
	return ""
}

func made(dirs ...string) string {
	for _, dir := range dirs {
		path := filepath.Join(dir, "made")
		if os.WriteFile(path, nil, 0o600) == nil {
			return path
		}
	}
	return ""
}

// opened says which of the paths leads somewhere.
func opened(paths ...string) string {
	for _, path := range paths {
		if f, err := os.Open(path); err == nil {
			f.Close()
			return path
		}
		if target, err := os.Readlink(path); err == nil {
			return target
		}
	}
	return ""
}

func signalled(pid string) string {
	n, err := strconv.Atoi(pid)
	if err != nil || syscall.Kill(n, 0) != nil {
		return ""
	}
	return "reached"
}

// A botProcess is the program, running, with its addresses.
type botProcess struct {
	*program
	t               *testing.T
	api, token, dir string
	slack           string // of the local Slack, ends in a slash
	user, channel   string
	bot             string
}

// startSelf runs dev in a directory of its own.
func startSelf(t *testing.T, environment ...string) *botProcess {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	p := &botProcess{t: t, dir: filepath.Join(dir, "data")}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	environment = append(environment, "APPROVALBOT_SHELL_READ="+self, "SECRET=made-up-api-token")
	p.program = newProgram(t, dir, environment, "dev", "--slack-addr", "127.0.0.1:0", "--api-addr", "127.0.0.1:0", "--data-dir", p.dir)
	out, err := p.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		p.Process.Signal(syscall.SIGTERM)
		io.Copy(io.Discard, out)
		p.Wait()
	})
	for lines := bufio.NewScanner(out); lines.Scan() && lines.Text() != "ready"; {
		name, value, _ := strings.Cut(lines.Text(), ": ")
		switch name {
		case "slack":
			p.slack = value
		case "api":
			p.api = value
		case "token":
			p.token = value
		}
	}
	var w struct {
		Users []struct{ ID, Kind string }
		App   struct {
			BotUserID string `json:"bot_user_id"`
		}
		Channels []struct{ ID string }
	}
	if err := fetch(p.slack+"_dev/workspace", &w); err != nil {
		t.Fatalf("%v\n%s", err, p.stderr.String())
	}
	p.user, p.channel, p.bot = w.Users[0].ID, w.Channels[0].ID, w.App.BotUserID
	return p
}

// post sends to the control plane of the local Slack.
func (p *botProcess) post(path, body string) {
	p.t.Helper()
	if status := request(http.MethodPost, p.slack+path, body); !strings.HasPrefix(status, "200 OK ") {
		p.t.Fatalf("%s: %s", path, status)
	}
}

// pending are the asks that wait, by the commands that they are about.
func (p *botProcess) pending() []string {
	p.t.Helper()
	req, err := http.NewRequest(http.MethodGet, p.api+"/api/agent/approvals", nil)
	if err != nil {
		p.t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+p.token)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		p.t.Fatal(err)
	}
	defer resp.Body.Close()
	var v struct {
		Pending []struct{ ArgumentsJSON string }
	}
	if err := json.NewDecoder(resp.Body).Decode(&v); err != nil {
		p.t.Fatal(err)
	}
	var out []string
	for _, ask := range v.Pending {
		out = append(out, ask.ArgumentsJSON)
	}
	return out
}

// eventually asks until it is so; the processes of the program and of the command take their time.
func (p *botProcess) eventually(what string, so func() bool) {
	p.t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	deadline := time.After(20 * time.Second)
	for !so() {
		select {
		case <-tick.C:
		case <-deadline:
			p.t.Fatalf("not within 20 s: %s\n%s", what, p.stderr.String())
		}
	}
}

// cards are the messages in threads on which Approve can be clicked.
func (p *botProcess) cards() (out []json.RawMessage) {
	p.t.Helper()
	var listed struct{ Messages []json.RawMessage }
	if err := fetch(p.slack+"_dev/messages?channel="+p.channel, &listed); err != nil {
		p.t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, m := range listed.Messages {
		var thread struct{ Messages []json.RawMessage }
		if err := fetch(p.slack+"_dev/messages?channel="+p.channel+"&thread_ts="+ts(m), &thread); err != nil {
			p.t.Fatal(err)
		}
		for _, card := range thread.Messages {
			if hasApprove(card) && !seen[ts(card)] {
				seen[ts(card)] = true
				out = append(out, card)
			}
		}
	}
	return out
}

// approve clicks Approve on the card that contains text.
func (p *botProcess) approve(text string) {
	p.t.Helper()
	for _, card := range p.cards() {
		if bytes.Contains(card, []byte(text)) {
			p.post("_dev/actions", clickBody(p.user, p.channel, ts(card), "approve"))
			return
		}
	}
	p.t.Fatalf("there is no card about %s", text)
}

// selfApproval lets the agent try, with one command approved by a person, to get the other approved. It returns its
// report, and whether the other command was approved.
func selfApproval(t *testing.T, environment ...string) (report map[string]string, approved bool) {
	t.Helper()
	p := startSelf(t, environment...)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{".env", "tokens.json"} {
		if err := os.WriteFile(filepath.Join(p.dir, name), []byte("TOKEN=made-up-api-token\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	first := fmt.Sprintf("%s=1 %s %d %s %s %s", asAgent, self, p.Process.Pid, p.dir, p.api, p.slack)
	text, err := json.Marshal("<@" + p.bot + "> `" + first + "` and `echo second > second`")
	if err != nil {
		t.Fatal(err)
	}
	p.post("_dev/messages", fmt.Sprintf(`{"user":%q,"channel":%q,"text":%s}`, p.user, p.channel, text))
	p.eventually("two cards", func() bool { return len(p.cards()) == 2 })
	p.approve(asAgent)
	file := filepath.Join(p.dir, "workspace", reportFile)
	p.eventually("a report", func() bool {
		text, err := os.ReadFile(file)
		return err == nil && json.Unmarshal(text, &report) == nil
	})
	// The first is over when it isn't pending and has reported; what it started with is decided by then.
	waiting := p.pending()
	second := slices.ContainsFunc(waiting, func(args string) bool { return strings.Contains(args, "second") })
	if _, err := os.Stat(filepath.Join(p.dir, "workspace", "second")); !second && errors.Is(err, fs.ErrNotExist) {
		p.eventually("the second command", func() bool {
			_, err := os.Stat(filepath.Join(p.dir, "workspace", "second"))
			return err == nil
		})
	}
	return report, !second
}

// The agent gets nowhere: nothing that it tries is answered, and the second command still waits for a person.
func TestAgentCantApproveItself(t *testing.T) {
	mustConfine(t)
	report, approved := selfApproval(t)
	if approved {
		t.Error("the second command was approved by the first")
	}
	for _, name := range slices.Sorted(maps.Keys(report)) {
		if report[name] != "" {
			t.Errorf("%s: %s", name, report[name])
		}
	}
	if len(report) == 0 {
		t.Error("there is no report")
	}
}

// Where commands are not confined, dev is no boundary, as its page says: the same agent does approve itself. (So the test
// above can fail.)
func TestAgentApprovesItselfUnconfined(t *testing.T) {
	mustConfine(t)
	report, approved := selfApproval(t, "APPROVALBOT_SHELL=unconfined")
	if !approved {
		t.Errorf("it could not: %v", report)
	}
	for _, name := range []string{"find tokens in files", "open files for writing", "signal the bot", "click in the local Slack"} {
		if report[name] == "" {
			t.Errorf("%s was refused", name)
		}
	}
	// Without a token the API is closed to everybody.
	for _, name := range []string{"ask the API for asks", "approve through the API"} {
		if !strings.HasPrefix(report[name], "401 Unauthorized") {
			t.Errorf("%s: %q", name, report[name])
		}
	}
}

// With the network on, in serve: the API can be reached and answers nobody without a token, and no token can be had: not
// from the environment, not from .env, not from the file of tokens.
func TestAgentWithTheNetworkFindsNoToken(t *testing.T) {
	mustConfine(t)
	url, w := localSlack(t)
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	data, api := filepath.Join(dir, "data"), freeAddress(t)
	first := fmt.Sprintf("%s=1 %s $PPID %s http://%s ''", asAgent, self, dir, api)
	turns := `{"turns":[` + shellCall("c1", first) + `,{"text":"ok"}]}`
	for name, text := range map[string]string{
		".env":        "SLACK_APP_TOKEN=" + w.App.AppToken + "\n",
		"tokens.json": `[{"name":"ci","token":"made-up-api-token-1234567890","scopes":["run","read","decide"]}]`,
		"turns.json":  turns,
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	p := newProgram(t, dir, []string{"SLACK_BOT_TOKEN=" + w.App.BotToken, "SLACK_API_URL=" + url + "/api/", "APPROVALBOT_MODEL=script:turns.json",
		"APPROVALBOT_APPROVERS=channel", "APPROVALBOT_APPROVAL_POLICY=never", "APPROVALBOT_API_ADDR=" + api, "APPROVALBOT_API_TOKENS_FILE=tokens.json",
		"APPROVALBOT_SHELL_NETWORK=on", "APPROVALBOT_SHELL_READ=" + self}, "serve")
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		p.Process.Signal(syscall.SIGTERM)
		p.Wait()
	}()
	b := &botProcess{t: t, program: p}
	b.eventually("ready", func() bool { return strings.HasPrefix(request(http.MethodGet, "http://"+api+"/readyz", ""), "200") })
	req, err := http.NewRequest(http.MethodPost, "http://"+api+"/api/agent", strings.NewReader(`{"task":"go"}`))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer made-up-api-token-1234567890")
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var report map[string]string
	text, err := os.ReadFile(filepath.Join(data, "workspace", reportFile))
	if err == nil {
		err = json.Unmarshal(text, &report)
	}
	if err != nil {
		t.Fatalf("%v; the run: %s", err, resp.Status)
	}
	for name, said := range report {
		closed := strings.HasPrefix(said, "401 Unauthorized")
		if overAPI := strings.Contains(name, "the API"); overAPI && !closed || !overAPI && said != "" {
			t.Errorf("%s: %q", name, said)
		}
	}
}

// freeAddress is a loopback address on which nobody listens.
func freeAddress(t *testing.T) string {
	t.Helper()
	ln, err := loopbackListener("--api-addr", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	return ln.Addr().String()
}

// mustConfine lets a test go on where commands can be confined.
func mustConfine(t *testing.T) {
	t.Helper()
	err := confine.Available()
	if err != nil && os.Getenv("CI") != "" {
		t.Fatal(err)
	}
	if err != nil {
		t.Skip(err)
	}
}
