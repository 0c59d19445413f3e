package agent

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"approvalbot/internal/ledger"
	"approvalbot/internal/model"
)

// The model is told of every ending but a success that it is an error, in the result of that call.
func TestEveryEndingButSuccessIsAnError(t *testing.T) {
	const script = `{"turns":[
		{"toolCalls":[
			{"id":"done","name":"read","arguments":{"n":1}},
			{"id":"approved","name":"act","arguments":{"n":1}},
			{"id":"denied","name":"act","arguments":{"n":2}},
			{"id":"timeout","name":"act","arguments":{"n":3}},
			{"id":"failed","name":"fail","arguments":{}},
			{"id":"crashed","name":"crash","arguments":{}},
			{"id":"unknown","name":"no_such_tool","arguments":{}},
			{"id":"wrong","name":"read","argumentsText":"{\"n\":"},
			{"id":"impossible","name":"act","arguments":{"path":"impossible"}}]},
		{"toolCalls":[
			{"id":"again","name":"act","arguments":{"n":2}},
			{"id":"aborted","name":"act","arguments":{"n":4}}]},
		{"text":"finished"}]}`
	scenario(t, script, func(t *testing.T, s *stand) {
		s.say(alice, "go")
		s.decide("approved", bob, ledger.Approved, "")
		s.decide("denied", bob, ledger.Denied, "no")
		time.Sleep(90 * time.Second)
		synctest.Wait()
		if err := s.agent.Stop(t.Context(), s.run().ID, alice); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		got := map[string]bool{}
		for _, m := range s.transcript().Request().Messages {
			for _, r := range m.Results {
				if _, twice := got[r.ToolCallID]; twice {
					t.Errorf("%s has two results", r.ToolCallID)
				}
				got[r.ToolCallID] = r.IsError
			}
		}
		want := map[string]bool{
			"done": false, "approved": false, "denied": true, "timeout": true, "failed": true, "crashed": true, "unknown": true,
			"wrong": true, "impossible": true, "again": true, "aborted": true,
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
		s.check()
	})
}

// An output of a tool that would fill the context is cut on the way to the model, and says so; the journal has what the
// model got.
func TestOutputIsBounded(t *testing.T) {
	m, err := model.ParseScript("test", []byte(`{"turns":[
		{"toolCalls":[{"id":"c1","name":"long","arguments":{}}]},
		{"expectResults":[{"toolCallId":"c1","isError":false,"contains":"characters left out]"}],"text":"finished"}]}`))
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		s := openWith(t, dir, m, func(c *Config) { c.ContextTokens = 5000 })
		s.say(alice, "go")
		run := s.run()
		if n := len([]rune(run.Call("c1").Finished.Output)); n > 5000+40 || n < 5000 {
			t.Errorf("%d characters", n)
		}
		if run.Finished.Status != ledger.RunSucceeded {
			t.Errorf("%+v", run.Finished)
		}
		s.check()
		s.stop()
	})
}
