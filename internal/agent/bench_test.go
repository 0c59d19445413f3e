package agent

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"testing"
	"time"

	"approvalbot/internal/ledger"
	"approvalbot/internal/ledger/ledgertest"
)

// BenchmarkToolCall takes calls that nobody is asked about from the model's words to their terminal state, in turns with
// calls of the same tool by hand and with bare commits. Two commits are needed: the decision with the start, the end. An
// op is one call by itself and eight side by side. The metrics are medians:
//
//	overhead-ms     what a call takes longer than the tool alone
//	overhead/bare   the same in bare commits
//	overhead8/bare  the same for each of eight calls of one round, which share commits
//	direct-ns       the tool alone
func BenchmarkToolCall(b *testing.B) {
	s := open(b, b.TempDir(), `{"turns":[{"text":"unused"}]}`)
	bare := ledgertest.NewBare(b)
	ledgertest.Grow(b, s.journal)
	ctx := context.Background()
	r := &run{
		Agent: s.agent, profile: Profile{Model: s.agent.Model, Tools: s.agent.Tools}, id: "r", session: "s1", tools: s.agent.Tools.Set(), policy: s.agent.Policy.Current(),
		started: &ledger.RunStarted{Policy: "on_request", Sandbox: "workspace_write", Mode: ledger.ModeInteractive},
	}
	tool, _ := r.tools.Get("read")
	n := 0
	call := func() func() {
		n++
		tc := ledger.ToolCall{ID: fmt.Sprint("c", n), Name: "read", Arguments: fmt.Sprintf(`{"n":%d}`, n)}
		return func() {
			if err := r.call(ctx, &ledger.Run{}, tc); err != nil {
				b.Error(err)
			}
		}
	}
	var commits, direct, one, eight ledgertest.Times
	for b.Loop() {
		for range 5 {
			commits = append(commits, bare.Commit())
		}
		args := json.RawMessage(fmt.Sprintf(`{"n":%d}`, n))
		direct = append(direct, timed(func() {
			if _, err := tool.Call(ctx, args); err != nil {
				b.Error(err)
			}
		}))
		one = append(one, timed(call()))
		var calls []func()
		for range 8 {
			calls = append(calls, call())
		}
		eight = append(eight, timed(func() {
			var wg sync.WaitGroup
			for _, c := range calls {
				wg.Go(c)
			}
			wg.Wait()
		})/8)
	}
	overhead := ledgertest.Times{one.Median() - direct.Median()}
	b.ReportMetric(overhead.Milliseconds(), "overhead-ms")
	b.ReportMetric(overhead.Over(commits), "overhead/bare")
	b.ReportMetric(ledgertest.Times{eight.Median() - direct.Median()}.Over(commits), "overhead8/bare")
	b.ReportMetric(float64(direct.Median()), "direct-ns")
}

func timed(do func()) time.Duration {
	began := time.Now()
	do()
	return time.Since(began)
}
