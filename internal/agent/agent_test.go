package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/jsonschema-go/jsonschema"

	"approvalbot/internal/approvals"
	"approvalbot/internal/ledger"
	"approvalbot/internal/ledger/ledgertest"
	"approvalbot/internal/model"
	"approvalbot/internal/policy"
	"approvalbot/internal/tools"
)

const team, channel = "T1", "C1"

var alice, bob, carol = user("UALICE", "Alice"), user("UBOB", "Bob"), user("UCAROL", "Carol")

func user(id, name string) ledger.Actor {
	return ledger.Actor{Kind: ledger.ActorUser, Team: team, ID: id, Name: name, Via: "slack"}
}

// everyone is a directory in which everyone is a full member of a private channel.
type everyone struct{}

func (everyone) Person(_ context.Context, p ledger.Person) (approvals.Profile, error) {
	return approvals.Profile{ID: p, Name: p.ID[1:2] + strings.ToLower(p.ID[2:]), Kind: approvals.FullMember}, nil
}
func (everyone) Channel(_ context.Context, c string) (approvals.ChannelInfo, error) {
	return approvals.ChannelInfo{ID: c, Kind: approvals.PrivateChannel}, nil
}
func (everyone) Member(context.Context, string, string) (bool, error) { return true, nil }
func (everyone) Group(context.Context, string) ([]string, error) {
	return nil, errors.New("no groups here")
}

// stand is an agent with everything under it real: journal, approvals, policy. The model is a script, the tools are
// recorded.
type stand struct {
	t       testing.TB
	dir     string
	journal *ledger.Ledger
	reg     *approvals.Registry
	agent   *Agent
	calls   *recorder
	stop    func()
}

// recorder counts what the tools were called with.
type recorder struct {
	mu   sync.Mutex
	args map[string]int // by tool and canonical arguments
}

func (r *recorder) note(tool string, args json.RawMessage) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.args[tool+" "+string(args)]++
	return len(r.args)
}

func (r *recorder) count(tool string) (n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for k, c := range r.args {
		if strings.HasPrefix(k, tool+" ") {
			n += c
		}
	}
	return n
}

// fakeTool does what its function does. read is allowed without asking, act asks.
type fakeTool struct {
	name     string
	readOnly bool
	calls    *recorder
	do       func(ctx context.Context, args json.RawMessage) (tools.Output, error)
}

func (f fakeTool) Spec() tools.Spec {
	no := false
	a := tools.Annotations{ReadOnlyHint: f.readOnly}
	if f.readOnly {
		a.DestructiveHint, a.OpenWorldHint = &no, &no
	}
	return tools.Spec{Name: f.name, Description: "test", Annotations: a, InputSchema: &jsonschema.Schema{Type: "object"}}
}

func (f fakeTool) Describe(args json.RawMessage) (tools.Preview, error) {
	if strings.Contains(string(args), "impossible") {
		return tools.Preview{}, &tools.Error{Code: tools.CodeNotAllowed, Message: "The path leads out of the workspace."}
	}
	return tools.Preview{Summary: f.name, Kind: tools.KindJSON, Body: string(args)}, nil
}

func (f fakeTool) Call(ctx context.Context, args json.RawMessage) (tools.Output, error) {
	f.calls.note(f.name, args)
	if f.do != nil {
		return f.do(ctx, args)
	}
	return tools.Output{Text: "did " + string(args)}, nil
}

// slow is a tool that takes its time unless it is stopped.
func slow(d time.Duration) func(context.Context, json.RawMessage) (tools.Output, error) {
	return func(ctx context.Context, _ json.RawMessage) (tools.Output, error) {
		select {
		case <-time.After(d):
			return tools.Output{Text: "slow but done"}, nil
		case <-ctx.Done():
			return tools.Output{}, ctx.Err()
		}
	}
}

func open(t testing.TB, dir, script string) *stand {
	t.Helper()
	m, err := model.ParseScript("test", []byte(script))
	if err != nil {
		t.Fatal(err)
	}
	return openWith(t, dir, m, func(*Config) {})
}

// openWith is open with any model, and a configuration that is changed.
func openWith(t testing.TB, dir string, m model.Model, change func(*Config)) *stand {
	t.Helper()
	s := &stand{t: t, dir: dir, calls: &recorder{args: map[string]int{}}}
	log := slog.New(slog.DiscardHandler)
	var err error
	if s.journal, err = ledger.Open(t.Context(), dir, ledger.Options{Logger: log}); err != nil {
		t.Fatal(err)
	}
	list, err := approvals.ParseApprovers([]string{"channel"})
	if err != nil {
		t.Fatal(err)
	}
	s.reg = approvals.New(s.journal, everyone{}, approvals.Settings{Approvers: list, Team: team}, log)
	set, err := tools.NewSet(
		fakeTool{name: "read", readOnly: true, calls: s.calls},
		fakeTool{name: "act", calls: s.calls},
		fakeTool{name: "slow", calls: s.calls, do: slow(time.Minute)},
		fakeTool{name: "fail", readOnly: true, calls: s.calls, do: func(context.Context, json.RawMessage) (tools.Output, error) {
			return tools.Output{}, errors.New("it broke")
		}},
		fakeTool{name: "long", readOnly: true, calls: s.calls, do: func(_ context.Context, args json.RawMessage) (tools.Output, error) {
			return tools.Output{Text: "begin " + string(args) + strings.Repeat(" …long", 2000) + " end"}, nil
		}},
		fakeTool{name: "hang", calls: s.calls, do: func(context.Context, json.RawMessage) (tools.Output, error) {
			time.Sleep(24 * time.Hour)
			return tools.Output{Text: "too late"}, nil
		}},
		fakeTool{name: "crash", readOnly: true, calls: s.calls, do: func(context.Context, json.RawMessage) (tools.Output, error) {
			panic("out of cheese")
		}},
	)
	if err != nil {
		t.Fatal(err)
	}
	rules, err := policy.New(policy.OnRequest, policy.WorkspaceWrite)
	if err != nil {
		t.Fatal(err)
	}
	cfg := Config{Ledger: s.journal, Approvals: s.reg, Model: m, Tools: set, Policy: rules, Logger: log}
	change(&cfg)
	s.agent, err = New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.agent.Recover(t.Context()); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() {
		if err := s.agent.Run(ctx); err != nil {
			t.Error(err)
		}
	})
	s.stop = sync.OnceFunc(func() {
		cancel()
		wg.Wait()
		if err := s.journal.Close(); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(s.stop)
	return s
}

var messages int

// say writes a message that starts a run, and lets the run come to rest.
func (s *stand) say(by ledger.Actor, text string) {
	s.t.Helper()
	messages++
	_, err := s.agent.Receive(s.t.Context(), ledger.Event{Session: "s1", Actor: by, Body: &ledger.MessageReceived{
		Origin: ledger.Origin{Kind: "slack", Team: team, Channel: channel, TS: fmt.Sprint(messages)},
		Place:  ledger.Place{Team: team, Channel: channel, Thread: "1.0"},
		Text:   text, Disposition: ledger.Starts, Mode: ledger.ModeInteractive,
	}})
	if err != nil {
		s.t.Fatal(err)
	}
	synctest.Wait()
}

// decide answers the pending ask of the call.
func (s *stand) decide(call string, by ledger.Actor, what ledger.ResolutionType, reason string) {
	s.t.Helper()
	for _, p := range s.reg.Pending("") {
		if p.Call == call {
			if _, err := s.reg.Resolve(s.t.Context(), p.Key, approvals.Decision{Type: what, By: by, Reason: reason}); err != nil {
				s.t.Fatal(err)
			}
			synctest.Wait()
			return
		}
	}
	s.t.Fatalf("no pending ask for %s: %v", call, s.reg.Pending(""))
}

func (s *stand) runs() []*ledger.Run {
	s.t.Helper()
	var runs []*ledger.Run
	for e, err := range s.journal.Read(context.Background(), 0, ledger.Filter{Kinds: []string{"run_started"}}) {
		if err != nil {
			s.t.Fatal(err)
		}
		run, _, err := s.journal.LoadRun(context.Background(), e.Run)
		if err != nil {
			s.t.Fatal(err)
		}
		runs = append(runs, run)
	}
	return runs
}

func (s *stand) run() *ledger.Run {
	s.t.Helper()
	runs := s.runs()
	if len(runs) == 0 {
		s.t.Fatal("no run")
	}
	return runs[len(runs)-1]
}

func (s *stand) transcript() *Transcript {
	s.t.Helper()
	tr := &Transcript{}
	for e, err := range s.journal.Read(context.Background(), 0, ledger.Filter{Session: "s1"}) {
		if err == nil {
			err = tr.Apply(e)
		}
		if err != nil {
			s.t.Fatal(err)
		}
	}
	return tr
}

// check holds for every journal at rest.
func (s *stand) check() {
	s.t.Helper()
	report, err := s.journal.Verify(context.Background(), ledger.VerifyOptions{Check: (&Recheck{}).Event})
	if err != nil || !report.OK() {
		s.t.Errorf("the journal does not verify: %v\n%+v", err, report)
	}
	for _, run := range s.runs() {
		if run.Finished == nil {
			s.t.Errorf("run %s has no end", run.ID)
		}
		for _, c := range run.Calls {
			if !c.State.Terminal() {
				s.t.Errorf("call %s ended as %s", c.ID, c.State)
			}
		}
	}
	if n := len(s.reg.Pending("")); n != 0 {
		s.t.Errorf("%d approvals are still pending", n)
	}
	paired(s.t, s.transcript().Request())
}

// paired tells whether every call has exactly one result, right behind it and in order.
func paired(t testing.TB, req model.Request) {
	t.Helper()
	for i, m := range req.Messages {
		if len(m.ToolCalls) == 0 {
			continue
		}
		if i+1 >= len(req.Messages) || len(req.Messages[i+1].Results) != len(m.ToolCalls) {
			t.Fatalf("message %d has calls without results", i)
		}
		for k, r := range req.Messages[i+1].Results {
			if r.ToolCallID != m.ToolCalls[k].ID {
				t.Errorf("result %d is of %s, want %s", k, r.ToolCallID, m.ToolCalls[k].ID)
			}
		}
	}
}

func states(run *ledger.Run) map[string]string {
	out := map[string]string{}
	for _, c := range run.Calls {
		out[c.ID] = string(c.State)
		if c.Finished != nil && c.Finished.Source != "" {
			out[c.ID] += " " + string(c.Finished.Source)
		}
		if c.Finished != nil && c.Finished.Code != "" {
			out[c.ID] += " " + c.Finished.Code
		}
	}
	return out
}

func scenario(t *testing.T, script string, f func(t *testing.T, s *stand)) {
	t.Helper()
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		s := open(t, dir, script)
		f(t, s)
		s.stop()
	})
}

const oneAct = `{"turns":[
	{"toolCalls":[{"id":"c1","name":"act","arguments":{"n":1}}]},
	{"text":"finished"}]}`

// Scenario 1, and the way back into the loop after a yes and after a no.
func TestApproveAndDeny(t *testing.T) {
	t.Run("approve", func(t *testing.T) {
		scenario(t, oneAct, func(t *testing.T, s *stand) {
			s.say(alice, "go")
			if s.calls.count("act") != 0 || s.run().Status() != ledger.RunWaiting {
				t.Fatalf("before the approval: %d calls, %s", s.calls.count("act"), s.run().Status())
			}
			s.decide("c1", bob, ledger.Approved, "")
			run := s.run()
			if s.calls.count("act") != 1 || run.Status() != ledger.RunSucceeded || run.Finished.Answer != "finished" {
				t.Errorf("%d calls, %+v", s.calls.count("act"), run.Finished)
			}
			s.check()
		})
	})
	t.Run("deny", func(t *testing.T) {
		scenario(t, oneAct, func(t *testing.T, s *stand) {
			s.say(alice, "go")
			s.decide("c1", bob, ledger.Denied, "not today")
			run := s.run()
			if s.calls.count("act") != 0 || run.Status() != ledger.RunSucceeded {
				t.Errorf("%d calls, %+v", s.calls.count("act"), run.Finished)
			}
			const want = "Error [APPROVAL_DENIED]: Bob denied this call: not today. The action was not performed. " +
				"Do not retry the same call; take a different approach or explain what you need in the final answer."
			results := s.transcript().Request().Messages[2].Results
			if len(results) != 1 || results[0].Text != want || !results[0].IsError {
				t.Errorf("the model is told %+v", results)
			}
			if diff := cmp.Diff(map[string]string{"c1": "output-denied user"}, states(run)); diff != "" {
				t.Error(diff)
			}
			if !s.transcript().Seen(run.ID, "c1") {
				t.Error("the model has not seen the denial")
			}
			s.check()
		})
	})
}

// Scenarios 4, 7, 21, 24, 25: each call of a round has its own outcome, results in call order.
func TestRoundOfMixedOutcomes(t *testing.T) {
	const script = `{"turns":[
		{"toolCalls":[
			{"id":"c1","name":"read","arguments":{"n":1}},
			{"id":"c2","name":"act","arguments":{"n":2}},
			{"id":"c3","name":"act","arguments":{"n":3}},
			{"id":"c4","name":"fail","arguments":{}},
			{"id":"c5","name":"act","argumentsText":"{\"n\":5,\"n\":6}"},
			{"id":"c6","name":"nothing","arguments":{}},
			{"id":"c7","name":"crash","arguments":{}}]},
		{"text":"finished"}]}`
	scenario(t, script, func(t *testing.T, s *stand) {
		s.say(alice, "go")
		if s.calls.count("read") != 1 || s.run().Call("c1").State != ledger.OutputAvailable {
			t.Error("the allowed call waited for the others, or its result isn't recorded")
		}
		s.decide("c3", bob, ledger.Denied, "")
		if got := s.run().Call("c2").State; got != ledger.ApprovalRequest {
			t.Errorf("denying c3 made c2 %s", got)
		}
		s.decide("c2", bob, ledger.Approved, "")
		want := map[string]string{
			"c1": "output-available", "c2": "output-available", "c3": "output-denied user", "c4": "output-error TOOL_FAILED",
			"c5": "output-error INVALID_ARGUMENTS", "c6": "output-error UNKNOWN_TOOL", "c7": "output-error TOOL_FAILED",
		}
		if diff := cmp.Diff(want, states(s.run())); diff != "" {
			t.Error(diff)
		}
		if s.calls.count("act") != 1 {
			t.Errorf("act ran %d times", s.calls.count("act"))
		}
		s.check()
	})
}

// A call that its tool finds impossible is a failure of the call, with its own code; nobody is asked. What any call is about
// stands in the journal in words, whether it was asked or not.
func TestDescribedCalls(t *testing.T) {
	const script = `{"turns":[
		{"toolCalls":[
			{"id":"c1","name":"act","arguments":{"n":"impossible"}},
			{"id":"c2","name":"read","arguments":{"n":"impossible"}},
			{"id":"c3","name":"read","arguments":{"n":3}}]},
		{"text":"finished"}]}`
	scenario(t, script, func(t *testing.T, s *stand) {
		s.say(alice, "go")
		run := s.run()
		want := map[string]string{"c1": "output-error NOT_ALLOWED", "c2": "output-error NOT_ALLOWED", "c3": "output-available"}
		if diff := cmp.Diff(want, states(run)); diff != "" {
			t.Error(diff)
		}
		for _, id := range []string{"c1", "c2"} {
			f := run.Call(id).Finished
			if f.Reason != "The path leads out of the workspace." || f.Output != "Error [NOT_ALLOWED]: The path leads out of the workspace." {
				t.Errorf("%s: %+v", id, f)
			}
			if run.Call(id).Decision != nil || s.calls.count("act") != 0 {
				t.Errorf("%s was decided or performed", id)
			}
		}
		if d := run.Call("c3").Decision; d == nil || d.Summary != "read" {
			t.Errorf("the decision: %+v", d)
		}
		s.check()
	})
}

// Each no is said once, in the words of whoever knows why.
func TestDenialReason(t *testing.T) {
	by := &ledger.Actor{Kind: ledger.ActorUser, ID: "UBOB", Name: "bob"}
	for want, got := range map[string]string{
		"bob denied this call.":                                                   denialReason(ledger.SourceUser, "", by),
		"bob denied this call: not on a Friday.":                                  denialReason(ledger.SourceUser, "not on a Friday", by),
		"Nobody answered within 2 minutes.":                                       denialReason(ledger.SourceTimeout, "nobody answered within 2 minutes", nil),
		"Nobody answered in time.":                                                denialReason(ledger.SourceTimeout, "", nil),
		"Nobody could be asked: the channel is archived.":                         denialReason(ledger.SourceUndeliverable, "the channel is archived", nil),
		"The run was ended while this call waited for an answer: stopped by bob.": denialReason(ledger.SourceAbort, "stopped by bob", nil),
	} {
		if got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// Scenarios 18, 19: nobody answers. Waiting is not execution.
func TestTimeout(t *testing.T) {
	scenario(t, oneAct, func(t *testing.T, s *stand) {
		s.say(alice, "go")
		p := s.reg.Pending("")[0]
		if err := s.reg.Shown(t.Context(), p.ID, approvals.Showing{Surface: "slack", Channel: channel, TS: "2"}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2*time.Minute - time.Nanosecond)
		synctest.Wait()
		if s.run().Status() != ledger.RunWaiting {
			t.Fatal("it ended before its time")
		}
		time.Sleep(time.Nanosecond)
		synctest.Wait()
		if diff := cmp.Diff(map[string]string{"c1": "output-denied timeout"}, states(s.run())); diff != "" {
			t.Error(diff)
		}
		_, err := s.reg.ResolveByID(t.Context(), p.ID, approvals.Decision{Type: ledger.Approved, By: bob})
		var expired *approvals.ExpiredError
		if !errors.As(err, &expired) {
			t.Errorf("a late click got %v", err)
		}
		s.check()
	})
}

// Scenarios 20, 21: a stop while one call waits and another has finished.
func TestStop(t *testing.T) {
	const script = `{"turns":[
		{"toolCalls":[
			{"id":"c1","name":"read","arguments":{}},
			{"id":"c2","name":"act","arguments":{}},
			{"id":"c3","name":"slow","arguments":{}}]},
		{"text":"must not be sampled"}]}`
	scenario(t, script, func(t *testing.T, s *stand) {
		s.say(alice, "go")
		s.decide("c3", bob, ledger.Approved, "")
		id := s.run().ID
		if err := s.agent.Stop(t.Context(), id, alice); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		run := s.run()
		want := map[string]string{"c1": "output-available", "c2": "output-denied abort", "c3": "output-error ABORTED"}
		if diff := cmp.Diff(want, states(run)); diff != "" {
			t.Error(diff)
		}
		if run.Status() != ledger.RunCancelled || len(run.Rounds) != 1 || run.Finished.Reason != "stopped by Alice" {
			t.Errorf("%+v after %d rounds", run.Finished, len(run.Rounds))
		}
		if err := s.agent.Stop(t.Context(), id, alice); !errors.Is(err, ErrNotRunning) {
			t.Errorf("a second stop: %v", err)
		}
		s.check()
	})
}

// A tool that doesn't stop doesn't keep its run, or the process, from ending.
func TestStopOfAToolThatHangs(t *testing.T) {
	const script = `{"turns":[{"toolCalls":[{"id":"c1","name":"hang","arguments":{}}]},{"text":"must not be sampled"}]}`
	scenario(t, script, func(t *testing.T, s *stand) {
		s.say(alice, "go")
		s.decide("c1", bob, ledger.Approved, "")
		if err := s.agent.Stop(t.Context(), s.run().ID, alice); err != nil {
			t.Fatal(err)
		}
		time.Sleep(stopGrace)
		synctest.Wait()
		if diff := cmp.Diff(map[string]string{"c1": "output-error OUTCOME_UNKNOWN"}, states(s.run())); diff != "" {
			t.Error(diff)
		}
		s.check()
		time.Sleep(24 * time.Hour) // the bubble waits for the goroutine that the program left behind
	})
}

// Scenario 23: the process is told to end.
func TestShutdown(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		s := open(t, dir, oneAct)
		s.say(alice, "go")
		s.say(alice, "and again") // queued behind it
		s.stop()
		again := open(t, dir, oneAct)
		synctest.Wait()
		runs := again.runs()
		if len(runs) != 2 || runs[0].Finished.Code != codeShutdown || runs[0].Call("c1").Finished.Source != ledger.SourceAbort {
			t.Errorf("%d runs, the first: %+v", len(runs), runs[0].Finished)
		}
		again.decide("c1", bob, ledger.Approved, "") // the queued message had its turn
		again.check()
		again.stop()
	})
}

// Scenarios 6 and 29: a journal that ends anywhere is brought to an end, always the same one, and nothing runs twice.
func TestAnyPrefixRecovers(t *testing.T) {
	const script = `{"turns":[
		{"toolCalls":[
			{"id":"c1","name":"act","arguments":{"n":1}},
			{"id":"c2","name":"act","arguments":{"n":2}},
			{"id":"c3","name":"read","arguments":{"n":3}}]},
		{"text":"finished"}]}`
	dir := t.TempDir()
	var rows int64
	synctest.Test(t, func(t *testing.T) {
		s := open(t, dir, script)
		s.say(alice, "go")
		s.decide("c1", bob, ledger.Approved, "")
		s.decide("c2", bob, ledger.Denied, "")
		head, err := s.journal.Head(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		rows = head.Seq
		s.stop()
	})
	for n := int64(0); n <= rows; n++ {
		cut := t.TempDir()
		ledgertest.Prefix(t, dir, cut, n)
		synctest.Test(t, func(t *testing.T) {
			s := open(t, cut, `{"turns":[{"text":"a new run"}]}`)
			synctest.Wait()
			for _, run := range s.runs() {
				for _, c := range run.Calls {
					if started, ended := !c.StartedAt.IsZero(), c.Finished; ended.Code == codeUnknown && !started {
						t.Errorf("after %d rows: %s never started and its outcome is unknown", n, c.ID)
					}
				}
			}
			if len(s.calls.args) != 0 {
				t.Errorf("after %d rows a tool ran: %v", n, s.calls.args)
			}
			first := ledgerRows(t, s)
			s.check()
			s.stop()
			again := open(t, cut, `{"turns":[{"text":"a new run"}]}`)
			synctest.Wait()
			if diff := cmp.Diff(first, ledgerRows(t, again)); diff != "" {
				t.Errorf("after %d rows a second recovery changed something: %s", n, diff)
			}
			again.stop()
		})
	}
}

func ledgerRows(t *testing.T, s *stand) []string {
	t.Helper()
	var rows []string
	for e, err := range s.journal.Read(context.Background(), 0, ledger.Filter{}) {
		if err != nil {
			t.Fatal(err)
		}
		rows = append(rows, fmt.Sprint(e.Seq, e.Kind(), e.Call))
	}
	return rows
}

// The live transcript and the one after a restart are the same bytes.
func TestTranscriptIsTheJournals(t *testing.T) {
	scenario(t, oneAct, func(t *testing.T, s *stand) {
		s.say(alice, "go")
		s.decide("c1", bob, ledger.Denied, "no")
		for _, r := range s.run().Rounds {
			tr := &Transcript{}
			for e, err := range s.journal.Read(t.Context(), 0, ledger.Filter{Session: "s1", Until: r.SampledFrom}) {
				if err == nil {
					err = tr.Apply(e)
				}
				if err != nil {
					t.Fatal(err)
				}
			}
			if got := model.RequestHash(tr.Request()); got != r.RequestHash {
				t.Errorf("round %d: the request folds to %s, %s was sent", r.Round, got, r.RequestHash)
			}
		}
	})
}

// A result without the message that asked for it (it was erased) is no result, and no panic.
func TestTranscriptWithoutTheCall(t *testing.T) {
	tr := &Transcript{}
	for i, b := range []ledger.Body{
		&ledger.RunStarted{},
		&ledger.ToolFinished{State: ledger.OutputAvailable, Output: "of a call that isn't there"},
		&ledger.ModelCompleted{Round: 2, ToolCalls: []ledger.ToolCall{{ID: "c1", Name: "act"}}},
		&ledger.ToolFinished{State: ledger.OutputAvailable, Output: "of this one"},
	} {
		if err := tr.Apply(ledger.Event{Seq: int64(i + 1), Run: "r", Call: map[bool]string{true: "c0", false: "c1"}[i < 2], Body: b}); err != nil {
			t.Fatal(err)
		}
	}
	paired(t, tr.Request())
	if !tr.Complete() {
		t.Error("the round has its results")
	}
}

// A journal whose request hash is not that of the folded request doesn't verify.
func TestRecheckNamesAWrongRequest(t *testing.T) {
	c := &Recheck{}
	events := []ledger.Event{
		{Seq: 1, Session: "s", Actor: alice, Body: &ledger.MessageReceived{Text: "go", Disposition: ledger.Starts}},
		{Seq: 2, Session: "s", Run: "r", Body: &ledger.RunStarted{Message: 1, System: "be good"}},
	}
	for _, e := range events {
		if err := c.Event(e); err != nil {
			t.Fatal(err)
		}
	}
	sent := model.Request{System: "be good", Messages: []model.Message{{Role: model.RoleUser, Text: "Alice: go"}}}
	for want, hash := range map[bool]string{true: model.RequestHash(sent), false: model.RequestHash(model.Request{System: "be bad"})} {
		copied := *c.sessions["s"]
		err := (&Recheck{sessions: map[string]*conversation{"s": &copied}}).Event(ledger.Event{
			Seq: 3, Session: "s", Run: "r", Body: &ledger.ModelCompleted{Round: 1, SampledFrom: 2, RequestHash: hash},
		})
		if (err == nil) != want {
			t.Errorf("right hash: %v, got %v", want, err)
		}
	}
}

// Scenario 2: a result is never added twice, whatever the journal says.
func TestTranscriptTakesAResultOnce(t *testing.T) {
	tr := &Transcript{}
	for i, b := range []ledger.Body{
		&ledger.RunStarted{},
		&ledger.ModelCompleted{Round: 1, ToolCalls: []ledger.ToolCall{{ID: "c1", Name: "act"}}},
		&ledger.ToolFinished{State: ledger.OutputDenied, Output: "first"},
		&ledger.ToolFinished{State: ledger.OutputDenied, Output: "second"},
	} {
		if err := tr.Apply(ledger.Event{Seq: int64(i + 1), Run: "r", Call: "c1", Body: b}); err != nil {
			t.Fatal(err)
		}
	}
	want := []model.ToolResult{{ToolCallID: "c1", Text: "first", IsError: true}}
	msgs := tr.Request().Messages
	if diff := cmp.Diff(want, msgs[len(msgs)-1].Results); diff != "" || len(msgs) != 2 {
		t.Error(len(msgs), diff)
	}
}

// Scenario 43: what was denied is not asked again, however it is spelled.
func TestDeniedCallIsNotAskedAgain(t *testing.T) {
	const script = `{"turns":[
		{"toolCalls":[{"id":"c1","name":"act","argumentsText":"{\"a\":1,\"b\":2}"}]},
		{"toolCalls":[{"id":"c2","name":"act","argumentsText":"{ \"b\": 2, \"a\": 1 }"}]},
		{"text":"finished"}]}`
	scenario(t, script, func(t *testing.T, s *stand) {
		s.say(alice, "go")
		s.decide("c1", bob, ledger.Denied, "")
		if diff := cmp.Diff(map[string]string{"c1": "output-denied user", "c2": "output-denied loop_guard"}, states(s.run())); diff != "" {
			t.Error(diff)
		}
		s.check()
	})
}

// Scenario 44: three denials in a row end the run with a question; an approval between starts the count again.
func TestThreeDenials(t *testing.T) {
	script := turnsOf(5)
	scenario(t, script, func(t *testing.T, s *stand) {
		s.say(alice, "go")
		for _, call := range []string{"c1", "c2", "c3"} {
			s.decide(call, bob, ledger.Denied, "")
		}
		f := s.run().Finished
		if f == nil || f.Code != codeDenied || !strings.Contains(f.Answer, "?") {
			t.Errorf("got %+v", f)
		}
		s.check()
	})
	scenario(t, script, func(t *testing.T, s *stand) {
		s.say(alice, "go")
		s.decide("c1", bob, ledger.Denied, "")
		s.decide("c2", bob, ledger.Denied, "")
		s.decide("c3", bob, ledger.Approved, "")
		s.decide("c4", bob, ledger.Denied, "")
		s.decide("c5", bob, ledger.Denied, "")
		if f := s.run().Finished; f == nil || f.Status != ledger.RunSucceeded {
			t.Errorf("got %+v", f)
		}
		s.check()
	})
}

// turnsOf is a script of n rounds with one different ask each.
func turnsOf(n int) string {
	var b strings.Builder
	b.WriteString(`{"turns":[`)
	for i := 1; i <= n; i++ {
		fmt.Fprintf(&b, `{"toolCalls":[{"id":"c%d","name":"act","arguments":{"n":%d}}]},`, i, i)
	}
	return b.String() + `{"text":"finished"}]}`
}

// Scenario 45: the fourth identical call with the same result ends the run, results kept. Scenario 10: the provider
// repeats an id; each call gets its own.
func TestRepeatedCalls(t *testing.T) {
	call := `{"toolCalls":[{"id":"same","name":"read","arguments":{}}]},`
	scenario(t, `{"turns":[`+strings.Repeat(call, 6)+`{"text":"finished"}]}`, func(t *testing.T, s *stand) {
		s.say(alice, "go")
		run := s.run()
		if run.Finished == nil || run.Finished.Code != codeRepeated || s.calls.count("read") != maxRepeats {
			t.Errorf("%d calls, %+v", s.calls.count("read"), run.Finished)
		}
		ids := map[string]bool{}
		for _, c := range run.Calls {
			ids[c.ID] = true
			if c.State != ledger.OutputAvailable || (c.ID != "same" && c.ProviderID != "same") {
				t.Errorf("call %+v", c.ToolCall)
			}
		}
		if len(ids) != maxRepeats {
			t.Errorf("%d ids for %d calls", len(ids), maxRepeats)
		}
		s.check()
	})
}

// An ask in fail_closed ends the run and leaves nothing open.
func TestFailClosed(t *testing.T) {
	scenario(t, oneAct, func(t *testing.T, s *stand) {
		_, err := s.agent.Receive(t.Context(), ledger.Event{Session: "s1", Actor: alice, Body: &ledger.MessageReceived{
			Origin: ledger.Origin{Kind: "http", Token: "ci", Key: "1"}, Text: "go", Disposition: ledger.Starts,
		}})
		if err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		run := s.run()
		if run.Finished == nil || run.Finished.Code != codeApprovalRequired || s.calls.count("act") != 0 {
			t.Errorf("%+v", run.Finished)
		}
		if diff := cmp.Diff(map[string]string{"c1": "output-denied undeliverable"}, states(run)); diff != "" {
			t.Error(diff)
		}
		s.check()
	})
}

// Scenario 27: the same message again starts nothing.
func TestMessageOnce(t *testing.T) {
	scenario(t, `{"turns":[{"text":"hello"}]}`, func(t *testing.T, s *stand) {
		s.say(alice, "go")
		messages-- // the same origin again
		_, err := s.agent.Receive(t.Context(), ledger.Event{Session: "s1", Actor: alice, Body: &ledger.MessageReceived{
			Origin: ledger.Origin{Kind: "slack", Team: team, Channel: channel, TS: fmt.Sprint(messages + 1)},
			Text:   "go", Disposition: ledger.Starts,
		}})
		messages++
		var conflict *ledger.ConflictError
		if !errors.As(err, &conflict) {
			t.Errorf("got %v", err)
		}
		synctest.Wait()
		if n := len(s.runs()); n != 1 {
			t.Errorf("%d runs", n)
		}
	})
}

// Messages of one session are worked off one at a time and in order; their authors are all requesters.
func TestQueueAndRequesters(t *testing.T) {
	const script = `{"turns":[
		{"when":{"userContains":"first"},"toolCalls":[{"id":"c1","name":"act","arguments":{}}]},
		{"text":"finished"}]}`
	scenario(t, script, func(t *testing.T, s *stand) {
		s.say(alice, "first")
		s.say(bob, "second")
		s.say(carol, "third")
		if n := len(s.runs()); n != 1 {
			t.Fatalf("%d runs at once", n)
		}
		s.decide("c1", bob, ledger.Approved, "")
		runs := s.runs()
		if len(runs) != 3 {
			t.Fatalf("%d runs", len(runs))
		}
		for i, want := range [][]string{{"UALICE"}, {"UALICE", "UBOB"}, {"UALICE", "UBOB", "UCAROL"}} {
			var got []string
			for _, p := range runs[i].Started.Requesters {
				got = append(got, p.ID)
			}
			if !slices.Equal(got, want) {
				t.Errorf("run %d: requesters %v, want %v", i, got, want)
			}
		}
		s.check()
	})
}

// The journal can't be written: nothing starts, the run halts, and is ended when the journal can be written again.
func TestJournalNotWritable(t *testing.T) {
	scenario(t, oneAct, func(t *testing.T, s *stand) {
		s.say(alice, "go")
		release := ledgertest.Lock(t, s.dir)
		p := s.reg.Pending("")[0]
		_, err := s.reg.ResolveByID(t.Context(), p.ID, approvals.Decision{Type: ledger.Approved, By: bob})
		if !errors.Is(err, ledger.ErrNotRecorded) || s.calls.count("act") != 0 {
			t.Errorf("%v, %d calls", err, s.calls.count("act"))
		}
		time.Sleep(10 * time.Minute) // the wait for it to be shown ends meanwhile
		synctest.Wait()
		release()
		time.Sleep(time.Minute)
		synctest.Wait()
		run := s.run()
		if run.Status() != ledger.RunCancelled || s.calls.count("act") != 0 || len(run.Rounds) != 1 {
			t.Errorf("%+v, %d calls, %d rounds", run.Finished, s.calls.count("act"), len(run.Rounds))
		}
		s.check()
		s.say(alice, "again")
		s.decide("c1", bob, ledger.Approved, "")
		s.check()
	})
}

// The outcome of a tool that ran is not given up because the journal can't be written just then.
func TestOutcomeWaitsForTheJournal(t *testing.T) {
	const script = `{"turns":[{"toolCalls":[{"id":"c1","name":"slow","arguments":{}}]},{"text":"finished"}]}`
	scenario(t, script, func(t *testing.T, s *stand) {
		s.say(alice, "go")
		s.decide("c1", bob, ledger.Approved, "")
		release := ledgertest.Lock(t, s.dir)
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		release()
		time.Sleep(time.Minute)
		synctest.Wait()
		if diff := cmp.Diff(map[string]string{"c1": "output-available"}, states(s.run())); diff != "" || s.run().Finished == nil {
			t.Error(diff, s.run().Finished)
		}
		s.check()
	})
}

func TestLimits(t *testing.T) {
	scenario(t, turnsOf(DefaultMaxAsks+2), func(t *testing.T, s *stand) {
		s.say(alice, "go")
		for i := 1; i <= DefaultMaxAsks; i++ {
			s.decide(fmt.Sprintf("c%d", i), bob, ledger.Approved, "")
		}
		st := states(s.run())
		if got := st[fmt.Sprintf("c%d", DefaultMaxAsks+1)]; got != "output-denied loop_guard" {
			t.Errorf("the ask over the limit ended as %s", got)
		}
		s.check()
	})
	rounds := strings.Repeat(`{"toolCalls":[{"name":"read","arguments":{"n":1}},{"name":"read","arguments":{"n":2}}]},`, 1)
	var b strings.Builder
	for i := range DefaultMaxRounds + 1 {
		b.WriteString(strings.ReplaceAll(rounds, `"n":`, fmt.Sprintf(`"r":%d,"n":`, i)))
	}
	scenario(t, `{"turns":[`+b.String()+`{"text":"finished"}]}`, func(t *testing.T, s *stand) {
		s.say(alice, "go")
		if f := s.run().Finished; f == nil || f.Code != codeRoundLimit || f.Rounds != DefaultMaxRounds {
			t.Errorf("%+v", f)
		}
		s.check()
	})
}

func TestModelError(t *testing.T) {
	scenario(t, `{"turns":[{"error":{"message":"the model is on holiday"}}]}`, func(t *testing.T, s *stand) {
		s.say(alice, "go")
		if f := s.run().Finished; f == nil || f.Code != codeModelError || !strings.Contains(f.Reason, "on holiday") {
			t.Errorf("%+v", f)
		}
		s.check()
	})
}
