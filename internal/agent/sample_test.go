package agent

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"approvalbot/internal/ledger"
	"approvalbot/internal/model"
)

// A fakeModel answers as its function does, and keeps what it was asked.
type fakeModel struct {
	answer func(ctx context.Context, req model.Request, delta func(string)) (model.Response, error)

	mu    sync.Mutex
	asked []model.Request
}

func (m *fakeModel) Name() string { return "fake" }

func (m *fakeModel) Generate(ctx context.Context, req model.Request, delta func(string)) (model.Response, error) {
	m.mu.Lock()
	m.asked = append(m.asked, req)
	m.mu.Unlock()
	if delta == nil {
		delta = func(string) {}
	}
	return m.answer(ctx, req, delta)
}

// failures are the attempts that the journal has of a run, without what differs by chance.
func failures(t *testing.T, run *ledger.Run) []ledger.ModelFailed {
	t.Helper()
	var all []ledger.ModelFailed
	for _, f := range run.Failures {
		if f.RequestHash == "" || f.SampledFrom == 0 {
			t.Errorf("it isn't said what was sent: %+v", f)
		}
		all = append(all, *f.ModelFailed)
	}
	return all
}

var sameFailures = cmpopts.IgnoreFields(ledger.ModelFailed{}, "RetryIn", "SampledFrom", "RequestHash")

func TestRetries(t *testing.T) {
	const script = `{"turns":[
		{"error":{"kind":"overloaded","message":"The model is overloaded.","retryable":true,"times":2,"delta":["half an "]},"delta":["whole"],
		 "toolCalls":[{"id":"c1","name":"read","arguments":{"n":1}}]},
		{"error":{"kind":"rate_limited","message":"Too many requests.","retryable":true,"retryAfterMs":90000,"times":1},"text":"finished"}]}`
	m, err := model.ParseScript("test", []byte(script))
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		var deltas strings.Builder
		s := openWith(t, dir, m, func(c *Config) { c.Deltas = func(_, text string) { deltas.WriteString(text + "|") } })
		s.say(alice, "go")
		if f := s.run().Retrying(); f == nil || f.Attempt != 1 || f.RetryIn < firstBackoff/2 || f.RetryIn > firstBackoff {
			t.Fatalf("after the first failure: %+v", f)
		}
		time.Sleep(3 * time.Second) // the second wait is two seconds at most
		synctest.Wait()
		if f := s.run().Retrying(); f == nil || f.ErrorKind != "rate_limited" || f.RetryIn < 90*time.Second || f.RetryIn > 99*time.Second {
			t.Fatalf("after the provider named a time: %+v", f)
		}
		time.Sleep(89 * time.Second)
		synctest.Wait()
		if s.run().Finished != nil {
			t.Error("it was asked again before the time that the provider named")
		}
		time.Sleep(10 * time.Second)
		synctest.Wait()
		run := s.run()
		want := []ledger.ModelFailed{
			{Round: 1, Attempt: 1, ErrorKind: "overloaded", Message: "The model is overloaded."},
			{Round: 1, Attempt: 2, ErrorKind: "overloaded", Message: "The model is overloaded."},
			{Round: 2, Attempt: 1, ErrorKind: "rate_limited", Message: "Too many requests.", RetryAfter: 90 * time.Second},
		}
		if diff := cmp.Diff(want, failures(t, run), sameFailures); diff != "" {
			t.Error(diff)
		}
		if f := run.Finished; f == nil || f.Status != ledger.RunSucceeded || f.Answer != "finished" || f.Rounds != 2 {
			t.Errorf("%+v", f)
		}
		if n := s.calls.count("read"); n != 1 {
			t.Errorf("the tool ran %d times", n)
		}
		if deltas.String() != "half an |half an |whole|finished|" {
			t.Error(deltas.String())
		}
		s.check()
		s.stop()
	})
}

// What is not worth another attempt, or has had enough of them, ends the run with a sentence and a code of its own.
func TestModelFailures(t *testing.T) {
	for name, c := range map[string]struct {
		err      string
		code     string
		reason   string
		attempts int
	}{
		"key":         {`{"kind":"key","message":"The API key is wrong. Set ANTHROPIC_API_KEY."}`, "MODEL_KEY", "The API key is wrong. Set ANTHROPIC_API_KEY.", 1},
		"unknown":     {`{"kind":"unknown_model","message":"No such model."}`, "MODEL_UNKNOWN", "No such model.", 1},
		"context":     {`{"kind":"context_too_long","message":"Too long."}`, "MODEL_CONTEXT", "This is too long for the model, together with what it is told of its tools. Write less at once. If it isn't long, whoever runs me has to choose a model that takes more, or offer fewer tools.", 1},
		"refused":     {`{"kind":"refused","message":"The model declined."}`, "MODEL_REFUSED", "The model declined.", 1},
		"quota":       {`{"kind":"quota","message":"No money left."}`, "MODEL_QUOTA", "No money left.", 1},
		"invalid":     {`{"kind":"invalid_request","message":"Malformed."}`, "MODEL_INVALID_REQUEST", "Malformed.", 1},
		"not named":   {`{"kind":"of tomorrow","message":"Strange."}`, codeModelError, "Strange.", 1},
		"overloaded":  {`{"kind":"overloaded","message":"Overloaded","retryable":true}`, "MODEL_OVERLOADED", "Overloaded. It was asked 5 times.", 5},
		"broken":      {`{"kind":"broken_answer","message":"Broken.","retryable":true}`, "MODEL_BROKEN_ANSWER", "Broken. It was asked 5 times.", 5},
		"unavailable": {`{"kind":"unavailable","message":"Away.","retryable":true,"retryAfterMs":100000}`, "MODEL_UNAVAILABLE", "Away. It was asked 3 times.", 3},
		"patience":    {`{"kind":"rate_limited","message":"Later.","retryable":true,"retryAfterMs":121000}`, "MODEL_RATE_LIMITED", "Later. It wants to be left alone for 3 minutes, so it was not asked again; try then.", 1},
	} {
		t.Run(name, func(t *testing.T) {
			scenario(t, `{"turns":[{"error":`+c.err+`}]}`, func(t *testing.T, s *stand) {
				s.say(alice, "go")
				time.Sleep(maxRetrying)
				synctest.Wait()
				run := s.run()
				if f := run.Finished; f == nil || f.Status != ledger.RunFailed || f.Code != c.code || f.Reason != c.reason {
					t.Errorf("%+v", f)
				}
				if len(failures(t, run)) != c.attempts {
					t.Errorf("it was asked %d times", len(run.Failures))
				}
				if run.Failures[len(run.Failures)-1].RetryIn != 0 {
					t.Error("the last attempt promises another one")
				}
				s.check()
			})
		})
	}
}

// A stop during the wait ends the run at once; so does the end of the process, and what was announced stays undone.
func TestStopWhileWaitingForTheModel(t *testing.T) {
	const script = `{"turns":[{"error":{"kind":"overloaded","message":"Overloaded.","retryable":true,"retryAfterMs":60000}}]}`
	scenario(t, script, func(t *testing.T, s *stand) {
		s.say(alice, "go")
		began := time.Now()
		if err := s.agent.Stop(t.Context(), s.run().ID, alice); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		run := s.run()
		if f := run.Finished; f == nil || f.Status != ledger.RunCancelled || f.Code != codeStopped || time.Since(began) != 0 {
			t.Errorf("after %s: %+v", time.Since(began), f)
		}
		if run.Retrying() != nil {
			t.Error("a run that is over tries again")
		}
		s.check()
	})
}

func TestJudge(t *testing.T) {
	overloaded := &model.Error{Kind: model.ErrOverloaded, Message: "Overloaded.", Retryable: true}
	for attempt := 1; attempt < maxAttempts; attempt++ {
		_, least := judge(overloaded, attempt, 0, 0)
		_, most := judge(overloaded, attempt, 0, 1)
		full := min(firstBackoff<<(attempt-1), longestWait)
		if least != full/2 || most != full {
			t.Errorf("after attempt %d it waits for %s to %s", attempt, least, most)
		}
	}
	for _, n := range []int{20, 64, 1 << 40} { // shifted that far a duration is nothing
		if d := backoff(n, 1); d != longestWait {
			t.Errorf("after attempt %d: %s", n, d)
		}
	}
	if _, wait := judge(overloaded, 1, maxRetrying, 0); wait != 0 {
		t.Error("it is asked again when the time is over")
	}
	if f, wait := judge(errors.New("a fault of ours \xff"), 1, 0, 0); wait != 0 || f.kind != "" || f.reason != "a fault of ours \uFFFD" {
		t.Errorf("%+v %s", f, wait)
	}
	if f, _ := judge(fmt.Errorf("wrapped: %w", &model.Error{Kind: model.ErrKey, Message: "Wrong key.", Err: errors.New("401 sk-secret")}), 1, 0, 0); f.reason != "Wrong key." {
		t.Errorf("people are told %q", f.reason)
	}
	if _, wait := judge(&model.Error{Retryable: true, RetryAfter: -time.Hour}, 1, 0, 1); wait != firstBackoff {
		t.Errorf("a time that is past: %s", wait)
	}
}

// An answer that reached its limit is marked so, and a call in which that happened isn't performed: what would run is not
// what the model meant.
func TestCutOff(t *testing.T) {
	scenario(t, `{"turns":[
		{"toolCalls":[{"id":"c1","name":"read","arguments":{"n":1}},{"id":"c2","name":"act","arguments":{"path":"/srv"}}],"stopReason":"max_tokens"},
		{"expectResults":[{"toolCallId":"c1","isError":false},{"toolCallId":"c2","isError":true,"contains":"CUT_OFF"}],"text":"and so","stopReason":"max_tokens"}]}`,
		func(t *testing.T, s *stand) {
			s.say(alice, "go")
			run := s.run()
			if diff := cmp.Diff(map[string]string{"c1": "output-available", "c2": "output-error CUT_OFF"}, states(run)); diff != "" {
				t.Error(diff)
			}
			if s.calls.count("act") != 0 || len(s.reg.Pending("")) != 0 {
				t.Error("people were asked for a call that was cut off, or it ran")
			}
			if f := run.Finished; f == nil || f.Status != ledger.RunSucceeded || !f.Truncated {
				t.Errorf("%+v", f)
			}
			s.check()
		})
}

// What a run cost is the sum of its samples, however it ended, and nothing where no price is known.
func TestUsageAndCost(t *testing.T) {
	price, err := model.ParsePrice("3/15/0.3/3.75")
	if err != nil {
		t.Fatal(err)
	}
	const script = `{"turns":[
		{"toolCalls":[{"id":"c1","name":"act","arguments":{"n":1}}],"usage":{"inputTokens":1000,"outputTokens":100,"cacheReadTokens":500}},
		{"text":"done","usage":{"inputTokens":2000,"outputTokens":50,"cacheWriteTokens":1000}}]}`
	first := ledger.Usage{InputTokens: 1000, OutputTokens: 100, CacheReadTokens: 500, Cost: &ledger.Cost{Micros: 1500 + 150 + 1500, Currency: "USD"}}
	whole := ledger.Usage{
		InputTokens: 3000, OutputTokens: 150, CacheReadTokens: 500, CacheWriteTokens: 1000,
		Cost: &ledger.Cost{Micros: 3150 + 3000 + 3750 + 750, Currency: "USD"},
	}
	for name, c := range map[string]struct {
		price model.Price
		end   func(s *stand)
		want  ledger.Usage
	}{
		"succeeded": {price, func(s *stand) { s.decide("c1", bob, ledger.Approved, "") }, whole},
		"no price": {model.Price{}, func(s *stand) { s.decide("c1", bob, ledger.Approved, "") },
			ledger.Usage{InputTokens: 3000, OutputTokens: 150, CacheReadTokens: 500, CacheWriteTokens: 1000}},
		"stopped":    {price, func(s *stand) { _ = s.agent.Stop(context.Background(), s.run().ID, alice); synctest.Wait() }, first},
		"shutdown":   {price, func(s *stand) { s.stop() }, first},
		"its rounds": {price, func(s *stand) { s.agent.MaxRounds = 1; s.decide("c1", bob, ledger.Approved, "") }, first},
	} {
		t.Run(name, func(t *testing.T) {
			m, err := model.ParseScript("test", []byte(script))
			if err != nil {
				t.Fatal(err)
			}
			dir := t.TempDir()
			synctest.Test(t, func(t *testing.T) {
				s := openWith(t, dir, m, func(cfg *Config) { cfg.Price = c.price })
				s.say(alice, "go")
				c.end(s)
				s.stop()
				s = openWith(t, dir, m, func(*Config) {})
				if diff := cmp.Diff(c.want, s.run().Finished.Usage); diff != "" {
					t.Error(diff)
				}
				s.stop()
			})
		})
	}
}

// A run that a crash left open costs what its samples cost.
func TestUsageAfterACrash(t *testing.T) {
	s := open(t, t.TempDir(), `{"turns":[{"text":"unused"}]}`)
	sampled := ledger.Usage{InputTokens: 7, OutputTokens: 2, Cost: &ledger.Cost{Micros: 5, Currency: "USD"}}
	summed := ledger.Usage{InputTokens: 100, OutputTokens: 10, Cost: &ledger.Cost{Micros: 50, Currency: "USD"}}
	if _, err := s.journal.Append(t.Context(),
		ledger.Event{Session: "s1", Run: "r", Body: &ledger.RunStarted{}},
		ledger.Event{Session: "s1", Run: "r", Body: &ledger.SessionCompacted{Method: ledger.CompactSummary, Usage: summed, SampledFrom: 1}},
		ledger.Event{Session: "s1", Run: "r", Body: &ledger.ModelCompleted{Round: 1, Usage: sampled}}); err != nil {
		t.Fatal(err)
	}
	if err := s.agent.Recover(t.Context()); err != nil {
		t.Fatal(err)
	}
	want := ledger.Usage{InputTokens: 107, OutputTokens: 12, Cost: &ledger.Cost{Micros: 55, Currency: "USD"}}
	if diff := cmp.Diff(want, s.run().Finished.Usage); diff != "" {
		t.Error(diff)
	}
}

// Where there is more than what was asked now, a new thread helps.
func TestConversationTooLong(t *testing.T) {
	scenario(t, `{"turns":[{"when":{"userContains":"first"},"text":"Yes."},{"when":{"userContains":"second"},"error":{"kind":"context_too_long","message":"Too long."}}]}`, func(t *testing.T, s *stand) {
		s.say(alice, "the first")
		s.say(alice, "the second")
		runs := s.runs()
		if f := runs[len(runs)-1].Finished; f == nil || f.Code != "MODEL_CONTEXT" || !strings.Contains(f.Reason, "Start a new thread") {
			t.Errorf("%+v", f)
		}
	})
}

func TestRoughly(t *testing.T) {
	for d, want := range map[time.Duration]string{
		121 * time.Second: "3 minutes", 2 * time.Hour: "120 minutes", 24 * time.Hour: "24 hours", 30*time.Hour + 1: "31 hours", 7 * 24 * time.Hour: "7 days",
	} {
		if got := roughly(d); got != want {
			t.Errorf("%s: %s, want %s", d, got, want)
		}
	}
}

// A crash in a model's client is a failed attempt: the run ends and says so, and the process goes on.
func TestModelCrashes(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		m := &fakeModel{answer: func(context.Context, model.Request, func(string)) (model.Response, error) { panic("no such block") }}
		s := openWith(t, dir, m, func(*Config) {})
		s.say(alice, "go")
		run := s.run()
		if run.Finished == nil || run.Finished.Status != ledger.RunFailed || !strings.Contains(run.Finished.Reason, "crashed") {
			t.Errorf("%+v", run.Finished)
		}
	})
}
