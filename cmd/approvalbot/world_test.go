package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gorilla/websocket"

	"approvalbot/internal/agent"
	"approvalbot/internal/audit"
	"approvalbot/internal/devslack"
	"approvalbot/internal/ledger"
	"approvalbot/internal/ledger/ledgertest"
	"approvalbot/internal/policy"
	"approvalbot/internal/redact"
	"approvalbot/internal/tools"
)

// A world is the whole program in a synctest bubble: the commands' own wiring, the real journal, the real tools, the
// real slack-go, and the local Slack at the other end of connections in memory. Time passes only when everybody waits.
type world struct {
	t        testing.TB
	dir      string
	slack    *devslack.Server
	pipe     *devslack.Pipe
	ws       devslack.Workspace
	dial     func(ctx context.Context, network, address string) (net.Conn, error) // to the local Slack
	http     *http.Transport                                                      // the process's way to it
	settings Settings
	log      journalist
	jsonLog  bool           // as serve logs
	control  *devslack.Pipe // in place of the control socket; nil: there is none
	hangups  chan os.Signal
	hides    bool // a secret of the time is hidden in what is shown

	app   *app
	end   context.CancelFunc
	ended chan error
	api   *devslack.Pipe // where the process's HTTP API listens
}

// A journalist keeps the log, and can act on a line in the moment in which it is written.
type journalist struct {
	mu     sync.Mutex
	text   bytes.Buffer
	onLine func(line []byte)
}

func (j *journalist) Write(line []byte) (int, error) {
	j.mu.Lock()
	n, err := j.text.Write(line)
	onLine := j.onLine
	j.mu.Unlock()
	if onLine != nil {
		onLine(line)
	}
	return n, err
}

// on sets what happens when a line is written; nil: nothing.
func (j *journalist) on(line func([]byte)) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.onLine = line
}

func (j *journalist) String() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.text.String()
}

// inWorld runs a scenario in a world with a running bot, and checks at the end what holds in every world.
func inWorld(t *testing.T, change func(*Settings), body func(w *world)) {
	t.Helper()
	inChangedWorld(t, func(w *world) {
		if change != nil {
			change(&w.settings)
		}
	}, body)
}

// inChangedWorld is inWorld for what more than the settings is changed for.
func inChangedWorld(t *testing.T, change, body func(w *world)) {
	t.Helper()
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, dir)
		change(w)
		defer w.close()
		w.start()
		defer func() { w.stop() }() // also of a test that gave up; once more does nothing
		body(w)
		w.stop()
		w.check()
	})
}

func newWorld(t testing.TB, dir string) *world {
	t.Helper()
	s, err := devslack.New(devslack.Options{Hosts: []string{"slack.test"}})
	if err != nil {
		t.Fatal(err)
	}
	s.InstallApp(manifestApp())
	w := &world{t: t, dir: dir, slack: s, pipe: devslack.NewPipe(), ws: s.Workspace()}
	go s.Serve(w.pipe) // it ends with w.close
	w.dial = w.pipe.DialContext
	w.settings = Settings{
		Approvers: []string{"channel", "requester"}, Requesters: []string{"members"}, Model: "demo", Quorum: 1, Timeout: 2 * time.Minute,
		ApprovalPolicy: policy.OnRequest, Sandbox: policy.WorkspaceWrite, Shell: tools.ShellUnconfined,
		DataDir: dir, MaxRounds: agent.DefaultMaxRounds, MaxAsks: agent.DefaultMaxAsks, APIToken: "local-test",
	}
	w.settings.fromWorkspace(w.ws, "http://slack.test/api/")
	return w
}

// start begins one process of the bot, and waits for its hello.
func (w *world) start() {
	w.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	r := redact.New(w.settings.secrets()...)
	w.http = &http.Transport{DialContext: w.dial}
	a, err := newApp(ctx, w.settings, wiring{
		log: newLogger(slog.LevelDebug, r, &w.log, w.jsonLog), http: &http.Client{Transport: w.http}, redactor: r, hangups: w.hangups,
		dialer: &websocket.Dialer{NetDialContext: w.dial}, control: w.listenControl,
	})
	if err != nil {
		w.t.Fatal(err)
	}
	w.app, w.end, w.ended, w.api = a, cancel, make(chan error, 1), devslack.NewPipe()
	ln := w.api
	go func() { w.ended <- a.run(ctx, ln) }()
	select {
	case <-a.slack.Connected():
	case err := <-w.ended:
		w.t.Fatalf("the bot ended: %v", err)
	case <-time.After(time.Minute):
		w.t.Fatal("no hello within a minute")
	}
	synctest.Wait()
}

// listenControl makes the control socket of one process, of memory.
func (w *world) listenControl(string) (net.Listener, error) {
	w.control = devslack.NewPipe()
	return w.control, nil
}

// stop is SIGTERM.
func (w *world) stop() {
	w.t.Helper()
	if w.end == nil {
		return
	}
	w.end()
	w.end = nil
	err := <-w.ended
	w.http.CloseIdleConnections()
	if err != nil {
		w.t.Errorf("the bot ended with %v", err)
	}
}

// crash is kill -9 as far as the journal is concerned: from now on the process can't write down anything, and ends.
func (w *world) crash() {
	w.t.Helper()
	release := ledgertest.Lock(w.t, w.settings.journalDir())
	w.end()
	w.end = nil
	<-w.ended
	w.http.CloseIdleConnections()
	release()
}

func (w *world) close() {
	if err := w.slack.Close(); err != nil {
		w.t.Error(err)
	}
	w.pipe.Close()
}

// pass lets time pass.
func (w *world) pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

func (w *world) user(name string) string {
	for _, u := range w.ws.Users {
		if u.Name == name {
			return u.ID
		}
	}
	w.t.Fatalf("there is no user %s", name)
	return ""
}

func (w *world) general() string { return w.ws.Channels[0].ID }

// ask mentions the bot in the first channel and gives it a few seconds. It returns the thread.
func (w *world) ask(user, text string) string {
	w.t.Helper()
	ts, err := w.slack.SendMessage(devslack.MessageRequest{
		User: w.user(user), Channel: w.general(), Text: fmt.Sprintf("<@%s> %s", w.ws.App.BotUserID, text),
	})
	if err != nil {
		w.t.Fatal(err)
	}
	w.pass(5 * time.Second)
	return ts
}

// mention asks the bot in a thread.
func (w *world) mention(user, thread, text string) {
	w.t.Helper()
	_, err := w.slack.SendMessage(devslack.MessageRequest{
		User: w.user(user), Channel: w.general(), ThreadTS: thread, Text: fmt.Sprintf("<@%s> %s", w.ws.App.BotUserID, text),
	})
	if err != nil {
		w.t.Fatal(err)
	}
	w.pass(5 * time.Second)
}

// A shown is a message of ours as a person sees it.
type shown struct {
	ts, user, to string
	text         string            // the fallback, and the text of all blocks
	buttons      map[string]string // action id: value
}

// decidable tells whether there is something to decide with; Ask Again isn't that.
func (s shown) decidable() bool {
	return s.buttons["approve"] != "" || s.buttons["deny"] != "" || s.buttons["review"] != ""
}

var tokens = regexp.MustCompile(`"(text|title|name|url|user_id|details)":\s*"((?:[^"\\]|\\.)*)"`)

// texts are the strings in blocks that people can see, in order.
func texts(blocks []byte) (all []string) {
	for _, t := range tokens.FindAllStringSubmatch(string(blocks), -1) {
		var text string
		if json.Unmarshal([]byte(`"`+t[2]+`"`), &text) == nil {
			all = append(all, text)
		}
	}
	return all
}

func read(m devslack.Message) shown {
	s := shown{ts: m.TS, user: m.User, to: m.EphemeralTo, buttons: map[string]string{}}
	s.text = strings.Join(append([]string{m.Text}, texts(m.Blocks)...), "\n")
	var find func(v any)
	find = func(v any) {
		switch v := v.(type) {
		case []any:
			for _, x := range v {
				find(x)
			}
		case map[string]any:
			if v["type"] == "button" {
				value, _ := v["value"].(string)
				s.buttons[v["action_id"].(string)] = value
			}
			for _, x := range v {
				find(x)
			}
		}
	}
	var blocks any
	if json.Unmarshal(m.Blocks, &blocks) == nil {
		find(blocks)
	}
	return s
}

// thread is what the bot says in a thread, in order, with what only one person sees.
func (w *world) thread(ts string) []shown {
	w.t.Helper()
	messages, err := w.slack.Messages(w.general(), ts)
	if err != nil {
		w.t.Fatal(err)
	}
	var out []shown
	for _, m := range messages {
		if m.User == w.ws.App.BotUserID || m.BotID == w.ws.App.BotID {
			out = append(out, read(m))
		}
	}
	return out
}

// cards are the messages of a thread that are or were requests for approval, by what they are about.
func (w *world) cards(thread string) []shown {
	w.t.Helper()
	messages, err := w.slack.Messages(w.general(), thread)
	if err != nil {
		w.t.Fatal(err)
	}
	var out []shown
	for _, m := range messages {
		if m.EphemeralTo == "" && strings.Contains(string(m.Metadata), `"card"`) {
			out = append(out, read(m))
		}
	}
	return out
}

// card is the one card of a thread.
func (w *world) card(thread string) shown {
	w.t.Helper()
	cards := w.cards(thread)
	if len(cards) != 1 {
		w.t.Fatalf("%d cards in the thread, want 1:\n%v\n%s", len(cards), w.thread(thread), w.log.String())
	}
	return cards[0]
}

// cardOf is the thread's card with these words on it.
func (w *world) cardOf(thread, words string) shown {
	w.t.Helper()
	for _, c := range w.cards(thread) {
		if strings.Contains(c.text, words) {
			return c
		}
	}
	w.t.Fatalf("no card says %q: %v", words, w.cards(thread))
	return shown{}
}

// privately is what the bot told one person and nobody else.
func (w *world) privately(thread, user string) string {
	w.t.Helper()
	var all []string
	for _, m := range w.thread(thread) {
		if m.to == w.user(user) {
			all = append(all, m.text)
		}
	}
	return strings.Join(all, "\n")
}

func (w *world) click(user string, c shown, action string) devslack.Receipt {
	w.t.Helper()
	r, err := w.slack.Click(context.Background(), devslack.ActionRequest{User: w.user(user), Channel: w.general(), TS: c.ts, ActionID: action})
	if err != nil {
		w.t.Fatalf("%s clicks %s: %v", user, action, err)
	}
	w.pass(5 * time.Second)
	return r
}

func (w *world) exists(file string) bool {
	_, err := os.Stat(filepath.Join(w.dir, "workspace", file))
	return err == nil
}

// runs are the journal's, oldest first; the bot need not be running.
func (w *world) runs() []*ledger.Run {
	w.t.Helper()
	j, err := ledger.OpenReader(context.Background(), w.settings.journalDir())
	if err != nil {
		w.t.Fatal(err)
	}
	defer j.Close()
	var runs []*ledger.Run
	for e, err := range j.Read(context.Background(), 0, ledger.Filter{Kinds: []string{"run_started"}}) {
		if err != nil {
			w.t.Fatal(err)
		}
		run, _, err := j.LoadRun(context.Background(), e.Run)
		if err != nil {
			w.t.Fatal(err)
		}
		runs = append(runs, run)
	}
	return runs
}

// audit is what `approvalbot audit show` prints of a run.
func (w *world) audit(run string) string {
	w.t.Helper()
	j, err := ledger.OpenReader(context.Background(), w.settings.journalDir())
	if err != nil {
		w.t.Fatal(err)
	}
	defer j.Close()
	var out strings.Builder
	if err := show(context.Background(), j, run, &out, audit.Style{}); err != nil {
		w.t.Fatal(err)
	}
	return out.String()
}

// check holds for every world that has come to rest: the journal verifies, every call and run and card has its end.
func (w *world) check() {
	w.t.Helper()
	j, err := ledger.OpenReader(context.Background(), w.settings.journalDir())
	if err != nil {
		w.t.Fatal(err)
	}
	defer j.Close()
	var said strings.Builder
	if err := verify(context.Background(), j, ledger.VerifyOptions{}, &said); err != nil {
		w.t.Errorf("the journal doesn't verify: %v", err)
	}
	if !w.hides && strings.Contains(said.String(), "can't be computed") {
		w.t.Errorf("nothing was erased and no secret was in it: %s", said.String())
	}
	for _, run := range w.runs() {
		if !run.Status().Ended() {
			w.t.Errorf("run %s has no end", run.ID)
		}
		for _, c := range run.Calls {
			if !c.State.Terminal() {
				w.t.Errorf("run %s: call %s is left as %s", run.ID, c.ID, c.State)
			}
		}
	}
	for _, c := range w.ws.Channels {
		messages, err := w.slack.Messages(c.ID, "")
		if err != nil {
			w.t.Fatal(err)
		}
		for _, m := range messages {
			if s := read(m); s.buttons["approve"] != "" || s.buttons["deny"] != "" || s.buttons["stop"] != "" || s.buttons["approve_all"] != "" {
				w.t.Errorf("a message still has buttons %v: %s", s.buttons, s.text)
			}
		}
	}
}

// script writes turns for the script model and returns its name.
func script(t testing.TB, turns string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "turns.json")
	if err := os.WriteFile(file, []byte(`{"turns":`+turns+`}`), 0o600); err != nil {
		t.Fatal(err)
	}
	return "script:" + file
}
