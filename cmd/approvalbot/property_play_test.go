package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"approvalbot/internal/devslack"
	"approvalbot/internal/ledger"
	"approvalbot/internal/ledger/ledgertest"
)

// A witness notes failures instead of failing the test, because rapid wants to try a smaller plan next.
type witness struct {
	testing.TB
	mu    sync.Mutex
	found []string
}

// givenUp is the panic of a trial that can't go on.
type givenUp struct{}

func (w *witness) Errorf(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.found = append(w.found, fmt.Sprintf(format, args...))
}
func (w *witness) Error(args ...any) { w.Errorf("%s", fmt.Sprint(args...)) }
func (w *witness) Fatalf(format string, args ...any) {
	w.Errorf(format, args...)
	panic(givenUp{})
}
func (w *witness) Fatal(args ...any) { w.Fatalf("%s", fmt.Sprint(args...)) }
func (w *witness) Helper()           {}

func (w *witness) failures() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return strings.Join(w.found, "\n")
}

// A line is one process's way to Slack. When the process is killed it is cut, like everything that a process holds.
type line struct {
	to   func(ctx context.Context, network, address string) (net.Conn, error)
	mu   sync.Mutex
	dead bool
	open []net.Conn
}

func (l *line) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	c, err := l.to(ctx, network, address)
	if err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.dead {
		c.Close()
		return nil, net.ErrClosed
	}
	l.open = append(l.open, c)
	return c, nil
}

func (l *line) cut() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.dead = true
	for _, c := range l.open {
		c.Close()
	}
}

// A trial is a world in which a plan is played.
type trial struct {
	*world
	plan     plan
	line     *line
	mend     func() // makes the journal writable again; nil: it is
	strained bool   // the journal failed in this process's life
	harmed   bool   // a process ended, or its journal failed, while something may have been left to do beside the journal
	killed   chan struct{}
	live     *livingRuns
	threads  []string // the first messages of the conversations
	sent     int      // messages that start something
	people   sync.WaitGroup
}

// play plays a plan and returns what was wrong.
func play(t *testing.T, p plan, reached tally) string {
	dir, err := os.MkdirTemp("", "property")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	watch := &witness{}
	synctest.Test(t, func(t *testing.T) {
		watch.TB = t
		r := &trial{world: newWorld(watch, dir), plan: p}
		defer r.close()
		defer func() {
			if p := recover(); p != nil && p != any(givenUp{}) {
				watch.Errorf("panic: %v", p)
			}
			r.abandon()
			if watch.failures() != "" {
				watch.Errorf("%s\n%s", brief(ledgertest.Dump(t, r.settings.journalDir())), brief(r.log.String()))
			}
		}()
		r.prepare()
		r.begin()
		for _, s := range append([]step{{what: "message", wait: time.Second}}, p.steps...) {
			r.step(s)
		}
		r.rest()
		reached.add(r.verify())
	})
	return watch.failures()
}

// brief shortens the lines of what people look at after a failure.
func brief(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		if runes := []rune(line); len(runes) > 700 {
			line = string(runes[:700]) + " […]\n"
		}
		b.WriteString(line)
	}
	return b.String()
}

// prepare turns the plan into settings and a script.
func (r *trial) prepare() {
	s := &r.settings
	s.ApprovalPolicy, s.Sandbox = r.plan.policy, r.plan.sandbox
	s.Quorum, s.Timeout, s.Drain = r.plan.quorum, r.plan.timeout, r.plan.drain
	s.Approvers = r.ids(r.plan.approvers)
	s.Sets, s.Language = switched(r.plan.sets), r.plan.language
	s.Remind, s.MoreTime, s.Operators = part(r.plan.remind), r.plan.moreTime, r.ids([]string{"carol", "alice"})
	if r.plan.grantors {
		s.Grantors, s.Grants = []string{"requester", "channel"}, "thread"
	}
	if text := planRules[r.plan.rules]; text != "" {
		for _, u := range r.ws.Users {
			text = regexp.MustCompile(`\b`+regexp.QuoteMeta(u.Name)+`\b`).ReplaceAllString(text, u.ID)
		}
		s.PolicyFile = rules(r.t, text)
	}
	if r.plan.channel != "none" {
		s.ApprovalsChannel, s.OnlyThere = r.ops(), switched(r.plan.channel == "only")
	}
	var turns []any
	for i, t := range r.plan.tasks {
		turns = append(turns, t.turns(i)...)
	}
	raw, err := json.Marshal(map[string]any{"turns": turns})
	if err != nil {
		r.t.Fatal(err)
	}
	file := filepath.Join(r.dir, "turns.json")
	if err := os.WriteFile(file, raw, 0o600); err != nil {
		r.t.Fatal(err)
	}
	s.Model = "script:" + file
}

// ids are words in which people's names stand for their ids.
func (r *trial) ids(words []string) (all []string) {
	for _, word := range words {
		if !slices.ContainsFunc(r.ws.Users, func(u devslack.User) bool { return u.Name == word }) {
			all = append(all, word)
			continue
		}
		all = append(all, r.user(word))
	}
	return all
}

// turns is the task as the script model reads it. Each call's mark has a name of its own.
func (k task) turns(number int) (all []any) {
	type object = map[string]any
	when := object{"userContains": fmt.Sprintf("task-%d;", number)}
	for i, calls := range k.rounds {
		var list []any
		for j, kind := range calls {
			list = append(list, kind.call(number, i, j))
		}
		all = append(all, object{"when": when, "toolCalls": list})
	}
	switch k.ending {
	case "error":
		return append(all, object{"when": when, "error": object{"message": "the model is unwell"}})
	case "hang":
		return append(all, object{"when": when, "hang": true})
	}
	return append(all, object{"when": when, "text": "That is all."})
}

func (k callKind) call(number, round, n int) map[string]any {
	mark := fmt.Sprintf("mark-%d-%d-%d", number, round, n)
	if k == callAgain {
		mark = fmt.Sprintf("mark-%d-0-0", number)
	}
	c := map[string]any{"id": fmt.Sprintf("c%d", n), "name": "shell"} // the ids come again in every round
	command := "printf x >> " + mark
	switch k {
	case callRead:
		c["name"], c["arguments"] = "list_files", map[string]any{}
	case callWrite:
		c["name"], c["arguments"] = "write_file", map[string]any{"path": "written-" + mark, "content": "x"}
	case callUnknown:
		c["name"], c["arguments"] = "teleport", map[string]any{}
	case callInvalid:
		c["argumentsText"] = `{"command": `
	case callFail:
		command += "; exit 3"
	case callSlow:
		command += "; sleep 0.2"
	case callNoID:
		c["id"] = ""
	}
	if c["arguments"] == nil && c["argumentsText"] == nil {
		c["arguments"] = map[string]any{"command": command}
	}
	return c
}

// begin starts a process, with a line of its own.
func (r *trial) begin() {
	r.repair()
	r.line = &line{to: r.pipe.DialContext}
	r.dial, r.strained, r.killed = r.line.DialContext, false, nil
	r.start()
	r.live = follow(r.app.journal)
}

// over waits for a process that was told to end or is dead.
func (r *trial) over() {
	if r.end == nil {
		return
	}
	r.stop()
	r.live.compare(r.t, r.everything())
}

// kill is kill -9: nothing is written and nothing is sent any more. What a dead process can't do either, to clean up
// behind itself, finds the journal locked and the line cut.
func (r *trial) kill() {
	if r.end == nil {
		return
	}
	r.repair()
	r.fail(0)
	r.line.cut()
	r.over()
	r.repair()
}

// killAt lets the process die when it tries to write the n-th row from now.
func (r *trial) killAt(n int) {
	r.repair()
	killed, line, end := make(chan struct{}), r.line, r.end
	r.killed = killed
	die := sync.OnceFunc(func() {
		line.cut()
		end()
		close(killed)
	})
	r.log.on(func(text []byte) {
		if strings.Contains(string(text), "the journal can't be written") {
			die()
		}
	})
	r.fail(r.head() + int64(n))
}

// buried takes notice of a process that has died on its own.
func (r *trial) buried() {
	if r.killed == nil || r.end == nil {
		return
	}
	select {
	case <-r.killed:
		r.over()
		r.repair()
	default:
	}
}

func (r *trial) fail(from int64) {
	r.strained = true
	r.mend = ledgertest.FailFrom(r.t, r.settings.journalDir(), from)
}

func (r *trial) repair() {
	r.log.on(nil)
	if r.mend != nil {
		r.mend()
		r.mend = nil
	}
}

func (r *trial) head() int64 {
	events := r.everything()
	if len(events) == 0 {
		return 0
	}
	return events[len(events)-1].Seq
}

// step does one step and lets time pass.
func (r *trial) step(s step) {
	r.buried()
	if s.flag && r.end == nil {
		r.begin()
	}
	switch s.what {
	case "message", "remark":
		r.write(s)
	case "approve", "deny", "forged":
		r.clickOn(s)
	case "all":
		r.approveAll(s)
	case "more_time", "deny_reason", "edit", "grant_thread":
		r.chooseOn(s)
	case "ask_again":
		r.askAgain(s)
	case "pause", "resume", "command", "home":
		r.operate(s)
	case "word":
		r.stopByWord(s)
	case "stop":
		r.pressStop(s)
	case "midway":
		r.midway(s)
	case "fault":
		all := faults()
		r.fault(all[(s.n*2+s.who)%len(all)])
	case "clear":
		r.slack.ClearFaults()
	case "start":
		if r.end == nil {
			r.begin()
		}
	default:
		if r.end != nil {
			r.harm(s)
		}
	}
	switch {
	case s.wait == 0:
		synctest.Wait()
	case s.wait > 0:
		r.pass(s.wait)
		r.compareAsks()
	}
}

// harm is what happens to a running process.
func (r *trial) harm(s step) {
	r.harmed = true
	switch s.what {
	case "crash":
		r.kill()
	case "crashAt":
		r.killAt(1 + s.n)
	case "sigterm":
		r.buried()
		r.repair()
		r.over()
	case "unwritable":
		if r.mend == nil {
			r.fail(0)
		}
	case "unwritableAt":
		if r.mend == nil {
			r.fail(r.head() + int64(s.n))
		}
	case "unwritableEvents": // there is room for a probe still
		if r.mend == nil {
			r.strained = true
			r.mend = ledgertest.FailEvents(r.t, r.settings.journalDir(), r.head()+int64(s.n))
		}
	case "writable":
		if r.killed == nil {
			r.repair()
		}
	}
}

// write sends a message: each mention begins another task, in a conversation of its own or in an earlier one.
func (r *trial) write(s step) {
	thread := ""
	if s.flag && len(r.threads) > 0 {
		thread = r.threads[s.n%len(r.threads)]
	}
	text := fmt.Sprintf("<@%s> task-%d; please", r.ws.App.BotUserID, r.sent)
	switch {
	case s.what == "remark" && thread == "":
		return
	case s.what == "remark":
		text = "by the way, approved"
	case r.sent == len(r.plan.tasks):
		return
	default:
		r.sent++
	}
	ts, err := r.slack.SendMessage(devslack.MessageRequest{User: r.user(clickers[s.who%3]), Channel: r.general(), Text: text, ThreadTS: thread})
	if err != nil {
		r.t.Fatal(err)
	}
	if thread == "" {
		r.threads = append(r.threads, ts)
	}
}

// asking are the messages on which people decide.
func (r *trial) asking() []posted {
	return slices.Concat(r.posted("card"), r.posted("copy"), r.posted("set"))
}

// clickable are the buttons to click on: those of asks that wait if there are any; else messages whose asks are over, of
// which a person's Slack may still show the buttons.
func (r *trial) clickable() (waiting []choice, over []posted) {
	all := r.asking()
	for _, m := range all {
		for _, c := range m.choices {
			if c.action == "deny" {
				waiting = append(waiting, c)
			}
		}
	}
	if len(waiting) == 0 {
		over = all
	}
	return waiting, over
}

// clickOn clicks Approve or Deny. Where there is no card yet it waits for one, for a moment.
func (r *trial) clickOn(s step) {
	waiting, over := r.clickable()
	if s.flag && len(waiting) == 0 {
		r.pass(2 * time.Second)
		waiting, over = r.clickable()
	}
	all := r.asking()
	action := devslack.ActionRequest{User: r.user(clickers[s.who]), ActionID: s.what}
	switch {
	case len(all) == 0:
		return
	case s.what == "forged":
		m := all[s.n%len(all)]
		action.Channel, action.TS = m.channel, m.ts
		action.ActionID = map[bool]string{true: "approve", false: "deny"}[s.flag]
		action.Value = r.askOf(all[(s.n+s.who)%len(all)])
	case len(waiting) > 0:
		c := waiting[s.n%len(waiting)]
		action.Channel, action.TS, action.Value, action.BlockID = c.channel, c.ts, c.value, c.block
	default:
		m := over[s.n%len(over)]
		action.Channel, action.TS, action.Value, action.BlockID = m.channel, m.ts, r.askOf(m), r.askOf(m)+".0"
	}
	r.go_(action)
}

// approveAll clicks Approve All Shown where there is one; or, on a set that shows none any more, what it showed before.
func (r *trial) approveAll(s step) {
	for _, m := range r.posted("set") {
		for _, c := range m.choices {
			if c.action == "approve_all" {
				r.go_(devslack.ActionRequest{User: r.user(clickers[s.who]), Channel: m.channel, TS: m.ts, ActionID: c.action, Value: c.value, BlockID: c.block})
				return
			}
		}
	}
}

// chooseOn picks an entry of the menu of an ask that waits, and sends off the form that it opens.
func (r *trial) chooseOn(s step) {
	waiting, _ := r.clickable()
	if len(waiting) == 0 {
		return
	}
	c := waiting[s.n%len(waiting)]
	who := clickers[s.who]
	r.people.Go(func() {
		a := devslack.ActionRequest{User: r.user(who), Channel: c.channel, TS: c.ts, BlockID: c.block, ActionID: "more", Value: s.what + "." + c.value}
		if s.what == "deny_reason" {
			a.ActionID, a.Value = s.what, c.value
		}
		if _, err := r.slack.Click(context.Background(), a); err == nil && s.what != "more_time" {
			r.fillIn(who, s.n)
		}
	})
}

// fillIn sends off the form that somebody has open, once it is there.
func (r *trial) fillIn(who string, n int) {
	time.Sleep(300 * time.Millisecond) // the bubble's: a person takes a look
	views, err := r.slack.Views(r.user(who))
	if err != nil {
		return
	}
	for _, v := range views {
		values := map[string]map[string]any{}
		for block, fields := range map[string]map[string]any{
			"reason": {"reason": "Not like this."}, "confirm": {"confirm": "printf"}, "until": {"grant_until": "4h"}, "uses": {"grant_uses": "3"},
			"argument.0": {"value": fmt.Sprintf("printf x >> mark-e-%d", n)},
		} {
			if v.Type == "modal" && strings.Contains(string(v.Blocks), `"block_id":"`+block+`"`) {
				values[block] = fields
			}
		}
		if len(values) > 0 {
			_, _ = r.slack.SubmitView(v.ID, devslack.SubmitRequest{User: r.user(who), Values: values})
		}
	}
}

// askAgain clicks Ask Again somewhere.
func (r *trial) askAgain(s step) {
	var all []choice
	for _, m := range r.asking() {
		for _, c := range m.choices {
			if c.action == "ask_again" {
				all = append(all, c)
			}
		}
	}
	if len(all) > 0 {
		c := all[s.n%len(all)]
		r.go_(devslack.ActionRequest{User: r.user(clickers[s.who]), Channel: c.channel, TS: c.ts, ActionID: c.action, Value: c.value, BlockID: c.block})
	}
}

// operate gives the command, or opens the Home tab and clicks on what waits there.
func (r *trial) operate(s step) {
	who := clickers[s.who%3]
	text := s.what
	if s.what == "command" {
		text = []string{"", "all", "stop", "grants"}[s.n%4]
	}
	r.people.Go(func() {
		if s.what != "home" {
			_, _ = r.slack.Command(devslack.CommandRequest{User: r.user(who), Channel: r.general(), Command: "/approvals", Text: text})
			return
		}
		_ = r.slack.OpenHome(r.user(who))
		time.Sleep(time.Second) // the bubble's
		views, _ := r.slack.Views(r.user(who))
		for _, v := range views {
			if v.Type == "home" && s.flag {
				_, _ = r.slack.ViewAction(v.ID, devslack.ActionRequest{User: r.user(who), ActionID: "approve"})
			}
		}
	})
}

// stopByWord tells the bot to stop, in a thread.
func (r *trial) stopByWord(s step) {
	if len(r.threads) == 0 {
		return
	}
	_, err := r.slack.SendMessage(devslack.MessageRequest{
		User: r.user(clickers[s.who%3]), Channel: r.general(), Text: "<@" + r.ws.App.BotUserID + "> stop", ThreadTS: r.threads[s.n%len(r.threads)],
	})
	if err != nil {
		r.t.Fatal(err)
	}
}

func (r *trial) pressStop(s step) {
	runs := slices.DeleteFunc(r.posted("progress"), func(c posted) bool { return c.buttons["stop"] == "" })
	if len(runs) == 0 {
		return
	}
	r.go_(devslack.ActionRequest{User: r.user(clickers[s.who]), Channel: r.general(), TS: runs[s.n%len(runs)].ts, ActionID: "stop"})
}

// answerAll lets two people say the same to everything that waits.
func (r *trial) answerAll(action string) {
	for _, m := range r.asking() {
		for _, c := range m.choices {
			for _, name := range []string{"bob", "carol"} {
				if c.action == action {
					r.people.Go(func() {
						a := devslack.ActionRequest{User: r.user(name), Channel: c.channel, TS: c.ts, ActionID: action, Value: c.value, BlockID: c.block}
						if _, err := r.slack.Click(context.Background(), a); err == nil && action == "approve" && r.plan.rules == "critical" {
							r.fillIn(name, 0)
						}
					})
				}
			}
		}
	}
}

// midway approves everything that waits and does something else as soon as a tool has started.
func (r *trial) midway(s step) {
	if r.end == nil {
		return
	}
	before := r.head()
	r.answerAll("approve")
	for range 300 { // time can't pass while a tool runs, so this looks again and again
		if r.startedSince(before) {
			break
		}
		runtime.Gosched()
	}
	switch s.n % 5 {
	case 0, 1:
		r.pressStop(step{n: s.n, who: s.who % 3})
	case 2:
		r.harm(step{what: "crash"})
	case 3:
		r.harm(step{what: "sigterm"})
	case 4:
		r.harm(step{what: "unwritable"})
	}
}

func (r *trial) startedSince(seq int64) bool {
	for _, err := range r.app.journal.Read(context.Background(), seq, ledger.Filter{Kinds: []string{"tool_started"}}) {
		return err == nil
	}
	return false
}

// go_ clicks while other things happen. What was clicked may be gone by then.
func (r *trial) go_(a devslack.ActionRequest) {
	r.people.Go(func() { _, _ = r.slack.Click(context.Background(), a) })
}

// A posted is one message of ours with what its metadata says it is.
type posted struct {
	shown
	kind, id string
	channel  string
	choices  []choice
	raw      devslack.Message
}

// A choice is one button of a message.
type choice struct{ channel, ts, action, value, block string }

// askOf is an ask that a message is about: of a set one of its run's, which may be another's.
func (r *trial) askOf(p posted) string {
	id, _, _ := strings.Cut(p.id, "/")
	if p.kind != "set" {
		return id
	}
	for _, e := range r.everything() {
		if b, ok := e.Body.(*ledger.ApprovalRequested); ok && e.Run == id {
			return b.Approval
		}
	}
	return ""
}

func (r *trial) ops() string { return r.ws.Channels[1].ID }

// posted are the messages of a kind that stand in the channels.
func (r *trial) posted(kind string) (all []posted) {
	for _, c := range r.slack.Workspace().Channels {
		channel := c.ID
		messages, err := r.slack.Messages(channel, "")
		if err != nil {
			r.t.Fatal(err)
		}
		for _, m := range messages {
			var meta struct {
				Payload struct{ Kind, ID string } `json:"event_payload"`
			}
			if m.EphemeralTo != "" || json.Unmarshal(m.Metadata, &meta) != nil || meta.Payload.Kind != kind {
				continue
			}
			p := posted{shown: read(m), kind: kind, id: meta.Payload.ID, channel: channel, raw: m}
			p.choices = choices(channel, m)
			all = append(all, p)
		}
	}
	return all
}

// choices are the buttons of a message.
func choices(channel string, m devslack.Message) (all []choice) {
	var blocks []struct {
		BlockID  string `json:"block_id"`
		Elements []struct {
			Type     string `json:"type"`
			ActionID string `json:"action_id"`
			Value    string `json:"value"`
		} `json:"elements"`
	}
	_ = json.Unmarshal(m.Blocks, &blocks)
	for _, b := range blocks {
		for _, e := range b.Elements {
			if e.Type == "button" {
				all = append(all, choice{channel, m.TS, e.ActionID, e.Value, b.BlockID})
			}
		}
	}
	return all
}

// everything is the whole journal.
func (w *world) everything() (all []ledger.Event) {
	j, err := ledger.OpenReader(context.Background(), w.settings.journalDir())
	if err != nil {
		w.t.Fatal(err)
	}
	defer j.Close()
	for e, err := range j.Read(context.Background(), 0, ledger.Filter{}) {
		if err != nil {
			w.t.Fatal(err)
		}
		all = append(all, e)
	}
	return all
}

// rest ends all trouble and waits until nothing is left to be done. A run whose model hangs ends with its process.
func (r *trial) rest() {
	r.buried()
	r.slack.ClearFaults()
	if r.end == nil {
		r.begin()
	}
	r.repair()
	r.people.Wait()
	if _, _, err := r.app.approvals.Resume(context.Background(), operator()); err != nil {
		r.t.Errorf("resume: %v", err)
	}
	for range 2 * len(r.plan.tasks) * len(r.plan.answer) { // rounds, if people answer at all
		r.answerAll(r.plan.answer)
		r.pass(5 * time.Second)
	}
	r.people.Wait()
	for range len(r.plan.tasks) + 2 {
		r.pass(90 * time.Minute)
		if r.idle() {
			break
		}
		r.over()
		r.begin()
	}
	if pending := r.app.approvals.Pending(""); len(pending) > 0 {
		r.t.Errorf("asks are still pending: %v", pending)
	}
	r.over()
}

// idle tells whether every message has been worked off.
func (r *trial) idle() bool {
	open := map[int64]bool{}
	runs := 0
	for _, e := range r.everything() {
		switch b := e.Body.(type) {
		case *ledger.MessageReceived:
			open[e.Seq] = b.Disposition == ledger.Starts
		case *ledger.MessageWithdrawn:
			delete(open, b.Message)
		case *ledger.RunStarted:
			delete(open, b.Message)
			runs++
		case *ledger.RunFinished:
			runs--
		}
	}
	for _, waits := range open {
		if waits {
			return false
		}
	}
	return runs == 0
}

// abandon ends what a trial that gave up left behind.
func (r *trial) abandon() {
	if r.end != nil {
		r.end()
		r.end = nil
		<-r.ended
		r.http.CloseIdleConnections()
	}
	if r.live != nil {
		r.live.done.Wait()
	}
	r.people.Wait()
}
