package main

import (
	"bufio"
	"bytes"
	"context"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"approvalbot/internal/devslack"
)

// asProgram makes the test binary be the program, so that what only a process has (exit code, signals, working
// directory) is tested without building another one.
const asProgram = "RUN_AS_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		main()
		return
	}
	if os.Getenv(asAgent) != "" {
		approveItself(os.Args[1:])
		return
	}
	os.Exit(m.Run())
}

// A program is one execution of a command line.
type program struct {
	*exec.Cmd
	stderr bytes.Buffer
}

func newProgram(t *testing.T, dir string, environment []string, args ...string) *program {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	t.Cleanup(cancel)
	p := &program{Cmd: exec.CommandContext(ctx, self, args...)}
	p.Dir, p.Stderr = dir, &p.stderr
	p.Env = append([]string{asProgram + "=1", "HOME=" + dir, "PATH=" + os.Getenv("PATH")}, environment...)
	return p
}

// output runs to the end, and returns what was said on both streams.
func (p *program) output() (text string, code int) {
	out, _ := p.Output() // the exit code says how it ended
	return string(out) + p.stderr.String(), p.ProcessState.ExitCode()
}

// Whoever ends dev with Ctrl-C, or lets it be ended, sees no error; a wrong name in the environment was told.
func TestDevEndsWell(t *testing.T) {
	for _, sig := range []os.Signal{os.Interrupt, syscall.SIGTERM} {
		p := newProgram(t, t.TempDir(), []string{"APPROVALBOT_QORUM=2"}, "dev", "--slack-addr", "127.0.0.1:0", "--api-addr", "127.0.0.1:0")
		out, err := p.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := p.Start(); err != nil {
			t.Fatal(err)
		}
		ready := false
		for lines := bufio.NewScanner(out); !ready && lines.Scan(); {
			ready = lines.Text() == "ready"
		}
		if err := p.Process.Signal(sig); err != nil {
			t.Fatal(err)
		}
		if err := p.Wait(); err != nil || !ready {
			t.Errorf("%v: ready: %v, it ended with %v\n%s", sig, ready, err, p.stderr.String())
		}
		mustSay(t, p.stderr.String(), "level=WARN", "did you mean APPROVALBOT_QUORUM?", "Now open http://127.0.0.1:", "/ and send: @approvalbot read README.md\n")
		if n := strings.Count(p.stderr.String(), "no effect"); n != 1 {
			t.Errorf("%d names are said to have no effect:\n%s", n, p.stderr.String())
		}
	}
}

func TestVersionFlag(t *testing.T) {
	flag, code := newProgram(t, t.TempDir(), nil, "--version").output()
	command, _ := newProgram(t, t.TempDir(), nil, "version").output()
	if code != 0 || flag != command || !strings.HasPrefix(flag, "approvalbot ") {
		t.Errorf("exit code %d; --version says %q, version %q", code, flag, command)
	}
}

// serve says at once all that keeps it from starting, and what may be the reason.
func TestServeSaysWhatIsMissing(t *testing.T) {
	said, code := newProgram(t, t.TempDir(), []string{"APPROVALBOT_APPROVER=U1", "SLACK_APP_TOKEN=xapp-1"}, "serve").output()
	if code != 1 {
		t.Errorf("exit code %d", code)
	}
	mustSay(t, said, "3 settings are missing or wrong", "SLACK_BOT_TOKEN is not set", "APPROVALBOT_MODEL is not set", "did you mean APPROVALBOT_APPROVERS?")
}

// doctor goes on with what it can check, and passes where nothing is wrong: also against a local Slack.
func TestDoctor(t *testing.T) {
	dir := t.TempDir()
	url, w := localSlack(t)
	good := []string{"SLACK_BOT_TOKEN=" + w.App.BotToken, "SLACK_APP_TOKEN=" + w.App.AppToken, "SLACK_API_URL=" + url + "/api/",
		"APPROVALBOT_MODEL=demo", "APPROVALBOT_APPROVERS=channel", "APPROVALBOT_APPROVAL_TIMEOUT=15m"}
	general := w.Channels[0].ID
	said, code := newProgram(t, dir, good, "doctor", "--send-test", general).output() // a public channel that nobody listed
	if code != 1 {
		t.Errorf("exit code %d:\n%s", code, said)
	}
	because := ": a request there is denied at once, because nobody could be asked: members of a public channel count only if the operator lists it in APPROVALBOT_CHANNELS. Either set APPROVALBOT_CHANNELS=" + general
	mustSay(t, said, "✓ approvers channel", "! channels  the bot is in #general ("+general+")"+because,
		"✗ test card posted to "+general+", where"+because[1:], "1 of 12 checks failed")
	if strings.Contains(said, "#random") {
		t.Error("it speaks of a channel that the bot isn't in")
	}

	listed := append(good, "APPROVALBOT_CHANNELS="+general)
	said, code = newProgram(t, dir, listed, "doctor", "--send-test", general).output()
	if code != 0 || strings.Contains(said, "✗") {
		t.Errorf("exit code %d:\n%s", code, said)
	}
	mustSay(t, said, "✓ settings", "✓ bot token", "✓ scopes    all there", "✓ app token", "✓ test card", "✓ workspace", "✓ tools", "✓ journal")

	said, code = newProgram(t, dir, append(good, "SLACK_API_URL="+url+"/"), "doctor").output()
	if code != 1 {
		t.Errorf("exit code %d", code)
	}
	mustSay(t, said, "SLACK_API_URL ("+url+"/) is not the address of a Web API", "✓ journal")

	env := "SLACK_BOT_TOKEN=xoxb-1\n"
	if err := os.WriteFile(filepath.Join(dir, ".env"), []byte(env), 0o644); err != nil {
		t.Fatal(err)
	}
	said, code = newProgram(t, dir, []string{"APPROVALBOT_MODEL=demo", "APPROVALBOT_QUORUM=0", "APPROVALBOT_QORUM=2"}, "doctor").output()
	if code != 1 {
		t.Errorf("exit code %d", code)
	}
	mustSay(t, said, "did you mean APPROVALBOT_QUORUM?", "✗ settings  APPROVALBOT_QUORUM=0", "✗ settings  SLACK_APP_TOKEN", "✗ settings  APPROVALBOT_APPROVERS",
		"chmod 600 .env", "✓ model     demo", "✓ workspace", "✓ journal")
	if strings.Contains(said, "xoxb-1") {
		t.Error("it says a token")
	}
}

// doctor looks up every id, wherever it stands, and says all that are wrong; what is well is one line.
func TestDoctorLooksUpEveryID(t *testing.T) {
	dir := t.TempDir()
	url, w := localSlack(t)
	bob := w.Users[1].ID
	random := w.Channels[2].ID // which the bot isn't in
	rules, named := filepath.Join(dir, "policy.yaml"), filepath.Join(dir, "actions.yaml")
	rewrite(t, rules, "rules:\n- {name: four-eyes, tool: shell, effect: ask, approvers: [S0PLATFORM, "+bob+"], quorum: 2}\n"+
		"- {name: three, tool: shell, effect: ask, quorum: 3}\n- {name: fine, tool: shell, effect: ask, approvers: ["+bob+"]}\n"+
		"- {name: later, tool: shell, effect: ask, escalate: [{after: 1m, approvers: [U0LATER]}]}\n")
	profiled := filepath.Join(dir, "profiles.yaml")
	rewrite(t, profiled, "profiles: [{name: quiet, channels: [C0PROFILE]}]\n")
	rewrite(t, named, "actions: [{name: show, description: Show it., run: [cat, --, x], approvers: [U0NOBODY]}]\n")
	env := []string{"SLACK_BOT_TOKEN=" + w.App.BotToken, "SLACK_APP_TOKEN=" + w.App.AppToken, "SLACK_API_URL=" + url + "/api/",
		"APPROVALBOT_MODEL=demo", "APPROVALBOT_APPROVERS=" + bob, "APPROVALBOT_REQUESTERS=S0ASKERS", "APPROVALBOT_CHANNELS=C0NOWHERE," + random,
		"APPROVALBOT_POLICY_FILE=" + rules, "APPROVALBOT_ACTIONS_FILE=" + named, "APPROVALBOT_GRANTORS=" + bob,
		"APPROVALBOT_OPERATORS=U0GONE", "APPROVALBOT_NOTIFY=U0QUIET", "APPROVALBOT_TRUSTED_BOTS=B0NONE", "APPROVALBOT_PROFILES=" + profiled}
	said, code := newProgram(t, dir, env, "doctor").output()
	if code != 1 {
		t.Errorf("exit code %d", code)
	}
	mustSay(t, said, "✓ approvers "+bob,
		`✗ requesters APPROVALBOT_REQUESTERS: there is no user group with the id S0ASKERS: Slack shows a group's under "Copy group ID"`,
		"✗ channels  APPROVALBOT_CHANNELS: there is no channel with the id C0NOWHERE, or it is private and the bot is not in it: /invite @approvalbot",
		"✗ channels  APPROVALBOT_CHANNELS: the bot is not in #random ("+random+"): /invite @approvalbot",
		"✗ policy    "+rules+":2: the rule four-eyes: there is no user group with the id S0PLATFORM",
		"✗ policy    "+rules+":2: the rule four-eyes: 2 people have to approve, and only 1 of those who are listed could",
		"✗ policy    "+rules+":3: the rule three, for whom APPROVALBOT_APPROVERS counts: 3 people have to approve, and only 1 of those who are listed could",
		"✗ actions   the action show: there is nobody with the id U0NOBODY",
		"✗ policy    "+rules+":5: the rule later, escalate: there is nobody with the id U0LATER", "✓ grantors  "+bob,
		"✗ operators APPROVALBOT_OPERATORS: there is nobody with the id U0GONE", "✗ operators APPROVALBOT_OPERATORS: so nobody can pause approvalbot in Slack",
		"✗ notify    APPROVALBOT_NOTIFY: there is nobody with the id U0QUIET",
		"✗ bots      APPROVALBOT_TRUSTED_BOTS: there is no bot with the id B0NONE",
		"✗ profile quiet APPROVALBOT_PROFILES: the profile quiet: there is no channel with the id C0PROFILE", "· policy    "+rules+": 4 rules")
	for _, what := range []string{"✓ policy", "✓ actions", "✓ operators", "✓ profile"} {
		if strings.Contains(said, what) {
			t.Errorf("%s, and something is wrong with it:\n%s", what, said)
		}
	}
	if strings.Count(said, "✓ approvers") != 1 {
		t.Errorf("it says a line twice:\n%s", said)
	}
	if strings.Contains(said, "the rule fine") {
		t.Errorf("it complains of what is well:\n%s", said)
	}
}

// localSlack serves a local Slack as `approvalbot devslack` does, and gives its address.
func localSlack(t *testing.T) (url string, w devslack.Workspace) {
	t.Helper()
	s, err := devslack.New(devslack.Options{})
	if err != nil {
		t.Fatal(err)
	}
	ln, err := loopbackListener("--addr", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- s.Serve(ln) }()
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		if err := <-served; err != http.ErrServerClosed {
			t.Error(err)
		}
	})
	return "http://" + ln.Addr().String(), s.Workspace()
}
