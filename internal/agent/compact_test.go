package agent

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"approvalbot/internal/ledger"
	"approvalbot/internal/ledger/ledgertest"
	"approvalbot/internal/model"
	"approvalbot/internal/rapidtest"
)

// worker is a model that calls a tool in each of its first rounds of a run and then answers. It counts rounds itself,
// since a session that was compacted doesn't show all of them.
func worker(rounds int, tool string, input func(model.Request) int, summary func(model.Request) (model.Response, error)) *fakeModel {
	round := 0
	return &fakeModel{answer: func(_ context.Context, req model.Request, delta func(string)) (model.Response, error) {
		if req.System == summarySystem {
			delta("SUMMARY")
			return summary(req)
		}
		if round++; round > rounds {
			round = 0
			delta("finished")
			return model.Response{Text: "finished", StopReason: model.StopEndTurn}, nil
		}
		return model.Response{
			ToolCalls: []model.ToolCall{{ID: fmt.Sprintf("c%d", round), Name: tool, Arguments: fmt.Sprintf(`{"n":%d,"pad":"%s"}`, round, strings.Repeat("x", 150))}},
			Usage:     model.Usage{InputTokens: input(req), OutputTokens: 10}, StopReason: model.StopToolUse,
		}, nil
	}}
}

func uncounted(model.Request) int { return 0 }

// A session that has become too long is summarised: whole rounds go, what is worked on and the last rounds stay, and what
// was denied is still known.
func TestCompaction(t *testing.T) {
	var asked []string
	m := worker(8, "act", uncounted, func(req model.Request) (model.Response, error) {
		asked = append(asked, req.Messages[0].Text)
		return model.Response{Text: "SUMMARY " + fmt.Sprint(len(asked)), Usage: model.Usage{InputTokens: 500, OutputTokens: 20}}, nil
	})
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		heard := ""
		s := openWith(t, dir, m, func(c *Config) {
			c.ContextTokens, c.MaxAsks = 900, 100
			c.Deltas = func(_, text string) { heard += text }
		})
		for run := range 2 {
			s.say(alice, fmt.Sprintf("job %d, and it is a long one: %s", run, strings.Repeat("word ", 80)))
			for n := 1; n <= 8; n++ {
				what := ledger.Approved
				if n == 2 {
					what = ledger.Denied
				}
				s.decide(fmt.Sprintf("c%d", n), bob, what, "reason "+fmt.Sprint(n))
			}
		}
		var compacted []*ledger.SessionCompacted
		for _, run := range s.runs() {
			for _, c := range run.Compacted {
				compacted = append(compacted, c.SessionCompacted)
			}
			if run.Finished.Status != ledger.RunSucceeded || run.Finished.Usage.InputTokens != 500*len(run.Compacted) {
				t.Errorf("%+v after %d compactions", run.Finished, len(run.Compacted))
			}
		}
		if len(compacted) < 2 || len(compacted) != len(asked) {
			t.Fatalf("%d compactions, %d summaries asked for", len(compacted), len(asked))
		}
		if !strings.Contains(asked[0], "job 0") || !strings.Contains(asked[len(asked)-1], "SUMMARY") {
			t.Error("a summary leaves out what came before")
		}
		last := m.asked[len(m.asked)-1]
		whole := fmt.Sprint(last.Messages)
		if strings.Contains(heard, "SUMMARY") || !strings.Contains(heard, "finished") {
			t.Errorf("people hear %q", heard)
		}
		for _, want := range []string{"SUMMARY", "job 1", `xx"}: Bob denied this call: reason 2.`, "c8"} {
			if !strings.Contains(whole, want) {
				t.Errorf("%q is gone:\n%s", want, whole)
			}
		}
		if strings.Contains(whole, "job 0") || strings.Count(whole, `xx"}: Bob denied`) != 1 {
			t.Error(whole)
		}
		for _, req := range m.asked {
			if req.System != summarySystem {
				paired(t, req)
				if n := sizeOf(req.Messages); n > 900 {
					t.Errorf("a request of %d tokens was sent", n)
				}
			}
		}
		s.check()
		s.stop()
	})
}

// What the model counted decides, not our estimate.
func TestCompactionByTheModelsCount(t *testing.T) {
	for _, c := range []struct {
		tokens int
		want   bool
	}{{800, false}, {1100, true}, {0, true}} {
		m := worker(6, "act", func(req model.Request) int { return c.tokens }, func(model.Request) (model.Response, error) {
			return model.Response{Text: "SUMMARY"}, nil
		})
		dir := t.TempDir()
		synctest.Test(t, func(t *testing.T) {
			s := openWith(t, dir, m, func(cfg *Config) { cfg.ContextTokens = 1000 })
			s.say(alice, "go")
			for n := 1; n <= 6; n++ {
				s.decide(fmt.Sprintf("c%d", n), bob, ledger.Approved, "")
			}
			if got := len(s.run().Compacted) > 0; got != c.want {
				t.Errorf("the model counted %d tokens: compacted %t", c.tokens, got)
			}
			s.check()
			s.stop()
		})
	}
}

// When the provider says that a request is too long, its session is compacted, harder than usual, and sent again.
func TestTooLongForTheProvider(t *testing.T) {
	good := func(model.Request) (model.Response, error) { return model.Response{Text: "SUMMARY"}, nil }
	for name, c := range map[string]struct {
		takes   int // tokens of the provider's context, as we estimate them
		summary func(model.Request) (model.Response, error)
		methods []ledger.CompactionMethod
		code    string
	}{
		"a summary helps": {9500, good, []ledger.CompactionMethod{"summary"}, ""},
		"and cut outputs": {4000, good, []ledger.CompactionMethod{"outputs", "summary"}, ""},
		"nothing helps":   {100, good, []ledger.CompactionMethod{"outputs"}, "MODEL_CONTEXT"},
		"no summary": {9500, func(model.Request) (model.Response, error) {
			return model.Response{}, &model.Error{Kind: model.ErrRefused, Message: "No."}
		}, []ledger.CompactionMethod{"outputs"}, ""},
		"an empty one": {9500, func(model.Request) (model.Response, error) { return model.Response{Text: " \n"}, nil },
			[]ledger.CompactionMethod{"outputs"}, ""},
		"one that was cut off": {9500, func(model.Request) (model.Response, error) {
			return model.Response{Text: "SUMM", StopReason: model.StopMaxTokens}, nil
		}, []ledger.CompactionMethod{"outputs"}, ""},
		"one that is longer than the rest": {9500, func(model.Request) (model.Response, error) {
			return model.Response{Text: strings.Repeat("SUMMARY ", 20_000), Usage: model.Usage{InputTokens: 7000, OutputTokens: 50_000}}, nil
		}, []ledger.CompactionMethod{"outputs"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			m := worker(3, "long", uncounted, c.summary)
			usual := m.answer
			m.answer = func(ctx context.Context, req model.Request, delta func(string)) (model.Response, error) {
				if sizeOf(req.Messages) > c.takes {
					return model.Response{}, &model.Error{Kind: model.ErrContext, Message: "Too long."}
				}
				return usual(ctx, req, delta)
			}
			dir := t.TempDir()
			synctest.Test(t, func(t *testing.T) {
				s := openWith(t, dir, m, func(*Config) {})
				s.say(alice, "go")
				var methods []ledger.CompactionMethod
				for _, x := range s.run().Compacted {
					if !slices.Contains(methods, x.Method) { // it may take more than one in three rounds
						methods = append(methods, x.Method)
					}
				}
				f := s.run().Finished
				if name == "one that is longer than the rest" && f != nil && f.Usage.OutputTokens < 50_000 {
					t.Errorf("what it took is not in %+v", f.Usage)
				}
				if f == nil || f.Code != c.code || (f.Status == ledger.RunSucceeded) != (c.code == "") {
					t.Errorf("%+v", f)
				}
				if diff := cmp.Diff(c.methods, methods); diff != "" {
					t.Error(diff)
				}
				s.check()
				s.stop()
			})
		})
	}
}

func TestClip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := rapid.StringOfN(rapid.RuneFrom([]rune("aä日🙂\n")), 0, 300, -1).Draw(t, "text")
		most := rapid.IntRange(0, 120).Draw(t, "most")
		got := clip(s, most)
		switch {
		case !utf8.ValidString(got):
			t.Fatalf("%q", got)
		case utf8.RuneCountInString(got) > max(most+40, utf8.RuneCountInString(s)):
			t.Fatalf("%d characters became %d", utf8.RuneCountInString(s), utf8.RuneCountInString(got))
		case clip(got, most) != got:
			t.Fatalf("%q is cut again: %q", got, clip(got, most))
		case got != s && !strings.Contains(got, fmt.Sprintf("[%d characters left out]", utf8.RuneCountInString(s)-most)):
			t.Fatalf("%q doesn't say what is missing", got)
		}
	})
}

// A compaction that a journal has anywhere, whatever it says, leaves each call with its results.
func TestAnyCompactionKeepsPairs(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		tr := &Transcript{}
		seq := int64(0)
		apply := func(run, call string, b ledger.Body) {
			seq++
			if err := tr.Apply(ledger.Event{Seq: seq, Session: "s", Run: run, Call: call, Actor: alice, Body: b}); err != nil {
				rt.Fatal(err)
			}
			if tr.Complete() {
				pairedIn(rt, tr.Request())
			}
			if len(tr.marks) != len(tr.req.Messages) {
				rt.Fatalf("%d marks of %d messages", len(tr.marks), len(tr.req.Messages))
			}
		}
		compact := func(run string) {
			if rapid.IntRange(0, 3).Draw(rt, "compact") > 0 {
				return
			}
			method := rapid.SampledFrom([]ledger.CompactionMethod{ledger.CompactSummary, ledger.CompactOutputs, "of tomorrow"}).Draw(rt, "method")
			c := ledger.Compaction{Until: rapid.Int64Range(-1, seq+2).Draw(rt, "until"), Clip: rapid.IntRange(0, 50).Draw(rt, "clip")}
			tr.SummaryRequest(c)
			apply(run, "", &ledger.SessionCompacted{Compaction: c, Method: method, Text: "S"})
		}
		for r := range rapid.IntRange(1, 4).Draw(rt, "runs") {
			run := fmt.Sprint("r", r)
			apply("", "", &ledger.MessageReceived{Text: "ask " + run, Disposition: ledger.Starts})
			apply(run, "", &ledger.RunStarted{Message: seq})
			for n := range rapid.IntRange(0, 4).Draw(rt, "rounds") {
				compact(run)
				b := &ledger.ModelCompleted{Round: n + 1, Text: "t", Usage: ledger.Usage{InputTokens: rapid.IntRange(0, 9).Draw(rt, "tokens")}}
				for i := range rapid.IntRange(0, 3).Draw(rt, "calls") {
					b.ToolCalls = append(b.ToolCalls, ledger.ToolCall{ID: fmt.Sprintf("c%d-%d", n, i), Name: "act", Arguments: "{}"})
				}
				apply(run, "", b)
				for _, c := range b.ToolCalls {
					compact(run) // can't be in a sound journal
					state := rapid.SampledFrom([]ledger.CallState{ledger.OutputAvailable, ledger.OutputDenied, ledger.OutputError}).Draw(rt, "state")
					apply(run, c.ID, &ledger.ToolFinished{Tool: "act", State: state, Output: strings.Repeat("long ", 40), Reason: "no"})
				}
				if !tr.Complete() {
					rt.Fatal("a round is open that has all its results")
				}
			}
			if messages := fmt.Sprint(tr.Request().Messages); !strings.Contains(messages, "ask "+run) {
				rt.Fatalf("what is worked on is gone: %s", messages)
			}
			apply(run, "", &ledger.RunFinished{Status: ledger.RunFailed, Reason: "it failed"})
		}
	})
}

func pairedIn(t interface{ Fatalf(string, ...any) }, req model.Request) {
	open := map[string]bool{}
	for i, m := range req.Messages {
		if len(open) > 0 && m.Role != model.RoleTool || m.Role == model.RoleTool && len(m.Results) != len(open) {
			t.Fatalf("message %d: calls %v have no result behind them", i, open)
		}
		for _, r := range m.Results {
			if !open[r.ToolCallID] {
				t.Fatalf("message %d: a result of %s, which wasn't called right before", i, r.ToolCallID)
			}
			delete(open, r.ToolCallID)
		}
		for _, c := range m.ToolCalls {
			open[c.ID] = true
		}
	}
	if len(open) > 0 {
		t.Fatalf("calls %v have no results", open)
	}
}

// play is a model that does what was drawn for each of its samples, in order.
type play struct {
	moves     []string
	summaries []string
	n, sums   int
}

func (p *play) answer(t interface{ Fatalf(string, ...any) }) func(context.Context, model.Request, func(string)) (model.Response, error) {
	tools := map[byte]string{'r': "read", 'a': "act", 'l': "long", 'f': "fail", 's': "slow", 'x': "no_such_tool", 'c': "crash"}
	return func(_ context.Context, req model.Request, delta func(string)) (model.Response, error) {
		if req.System == summarySystem {
			p.sums++
			switch p.summaries[p.sums%len(p.summaries)] {
			case "fails":
				return model.Response{}, &model.Error{Kind: model.ErrRefused, Message: "No."}
			case "empty":
				return model.Response{}, nil
			case "stumbles":
				return model.Response{}, &model.Error{Kind: model.ErrOverloaded, Message: "Later.", Retryable: true}
			}
			return model.Response{Text: "SUMMARY", Usage: model.Usage{InputTokens: 5, OutputTokens: 2}}, nil
		}
		pairedIn(t, req)
		p.n++
		delta("…")
		switch move := p.moves[p.n%len(p.moves)]; move {
		case "overloaded":
			return model.Response{}, &model.Error{Kind: model.ErrOverloaded, Message: "Later.", Retryable: true}
		case "too long":
			return model.Response{}, &model.Error{Kind: model.ErrContext, Message: "Too long."}
		case "key":
			return model.Response{}, &model.Error{Kind: model.ErrKey, Message: "Wrong key."}
		case "text":
			return model.Response{Text: "finished", StopReason: model.StopEndTurn}, nil
		case "cut off":
			return model.Response{Text: "fini", StopReason: model.StopMaxTokens, ToolCalls: []model.ToolCall{{ID: "z", Name: "act", Arguments: "{"}}}, nil
		default:
			r := model.Response{StopReason: model.StopToolUse, Usage: model.Usage{InputTokens: sizeOf(req.Messages), OutputTokens: 3}}
			for i := range len(move) {
				r.ToolCalls = append(r.ToolCalls, model.ToolCall{ID: fmt.Sprintf("c%d", i), Name: tools[move[i]], Arguments: fmt.Sprintf(`{"n":%d}`, p.n)})
			}
			return r, nil
		}
	}
}

// Whatever a model does, people answer, and a crash leaves: every request has each call paired with exactly one result,
// and the audit computes all requests again.
func TestPairingProperty(t *testing.T) {
	rapidtest.Checks(t, 20)
	rapid.Check(t, func(rt *rapid.T) {
		moves := rapid.SliceOfN(rapid.OneOf(
			rapid.StringMatching(`[ralfsxc]{1,3}`), rapid.SampledFrom([]string{"text", "text", "too long", "overloaded", "key", "cut off"}),
		), 1, 8).Draw(rt, "moves")
		p := &play{moves: moves, summaries: rapid.SliceOfN(rapid.SampledFrom([]string{"", "", "fails", "empty", "stumbles"}), 1, 3).Draw(rt, "summaries")}
		steps := rapid.SliceOfN(rapid.SampledFrom([]string{"say", "say", "approve", "approve", "deny", "wait", "second", "stop", "restart"}), 1, 9).Draw(rt, "steps")
		limit := rapid.SampledFrom([]int{150, 600, 3000, 100_000}).Draw(rt, "limit")
		m := &fakeModel{answer: p.answer(rt)}
		dir, cut := temp(rt), temp(rt)
		change := func(c *Config) { c.ContextTokens, c.MaxRounds = limit, 5 }
		var rows int64
		synctest.Test(t, func(t *testing.T) {
			s := openWith(t, dir, m, change)
			for _, step := range steps {
				pending := s.reg.Pending("")
				switch {
				case step == "say":
					s.say(alice, "go on with "+strings.Repeat("it ", 30))
				case step == "approve" && len(pending) > 0:
					s.decide(pending[0].Call, bob, ledger.Approved, "")
				case step == "deny" && len(pending) > 0:
					s.decide(pending[0].Call, bob, ledger.Denied, "no")
				case step == "wait":
					time.Sleep(3 * time.Minute)
				case step == "second":
					time.Sleep(time.Second)
				case step == "stop" && len(s.runs()) > 0:
					_ = s.agent.Stop(t.Context(), s.run().ID, alice) // of one that is over it is refused
				case step == "restart":
					s.stop()
					s = openWith(t, dir, m, change)
				}
				synctest.Wait()
			}
			time.Sleep(12 * time.Hour)
			synctest.Wait()
			s.check()
			head, err := s.journal.Head(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			rows = head.Seq
			s.stop()
		})
		ledgertest.Prefix(t, dir, cut, rapid.Int64Range(0, rows).Draw(rt, "crash after"))
		synctest.Test(t, func(t *testing.T) {
			s := openWith(t, cut, m, change)
			s.say(alice, "and after the crash")
			time.Sleep(12 * time.Hour)
			synctest.Wait()
			s.check()
			s.stop()
		})
	})
}

// temp is a directory that is gone when the draw is over.
func temp(t *rapid.T) string {
	dir, err := os.MkdirTemp("", "pairing")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

// Who got a request keeps what it got, whatever the session becomes later.
func TestCompactionLeavesEarlierRequests(t *testing.T) {
	for _, method := range []ledger.CompactionMethod{ledger.CompactSummary, ledger.CompactOutputs} {
		tr := &Transcript{}
		for i, b := range []ledger.Body{
			&ledger.RunStarted{},
			&ledger.ModelCompleted{Round: 1, ToolCalls: []ledger.ToolCall{{ID: "c1", Name: "act"}}},
			&ledger.ToolFinished{State: ledger.OutputAvailable, Output: strings.Repeat("long ", 100)},
		} {
			if err := tr.Apply(ledger.Event{Seq: int64(i + 1), Run: "r", Call: "c1", Body: b}); err != nil {
				t.Fatal(err)
			}
		}
		req := tr.Request()
		before := model.RequestHash(req)
		tr.compacted(&ledger.SessionCompacted{Compaction: ledger.Compaction{Until: 3, Clip: 10}, Method: method, Text: "S"})
		if model.RequestHash(tr.Request()) == before {
			t.Errorf("%s: nothing was shortened", method)
		}
		if model.RequestHash(req) != before {
			t.Errorf("%s: it changes a request that was given out", method)
		}
	}
}
