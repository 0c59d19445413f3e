package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"approvalbot/internal/ledger"
)

const localToken = "local-test"

func mustBe(t testing.TB, what string, got, want any) {
	t.Helper()
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("%s (-want +got):\n%s", what, d)
	}
}

func (a answered) must(t testing.TB, status int, code string) answered {
	t.Helper()
	got, _ := a.body["code"].(string)
	if a.status != status || got != code {
		t.Fatalf("%d %s, want %d %s: %s", a.status, got, status, code, a.raw)
	}
	return a
}

// What is asked before anything has happened.
func TestHTTPBeforeAnything(t *testing.T) {
	inWorld(t, nil, func(w *world) {
		p := w.client(localToken)
		if a := p.do("GET", "/api/agent/approvals?runId=demo", ""); a.status != 200 || a.raw != `{"ok":true,"pending":[]}` {
			t.Errorf("%d %s", a.status, a.raw)
		}
		a := p.do("POST", "/api/agent/approvals/demo/c1", `{"decision":"approve"}`).must(t, 404, "NOT_FOUND")
		mustBe(t, "the text", a.body["error"], any("No pending approval found for run demo and tool call c1. It may have already been resolved or timed out."))
		a = p.do("PUT", "/api/agent/approvals/demo/c1", `{}`)
		if a.status != 405 || a.header.Get("Allow") != "POST" {
			t.Errorf("%d, Allow %q", a.status, a.header.Get("Allow"))
		}
		w.client("wrong-token-wrong").do("GET", "/api/agent/approvals", "").must(t, 401, "")
		p.do("POST", "/api/agent", order("hello"), "Sec-Fetch-Site", "cross-site").must(t, 403, "")
		p.do("POST", "/api/agent/runs/run_none/stop", "").must(t, 404, "NOT_FOUND")
		if len(w.runs()) != 0 {
			t.Error("something was started")
		}
	})
}

// A run that can't ask ends at the ask, with nothing pending and nothing done.
func TestHTTPFailClosed(t *testing.T) {
	inWorld(t, nil, func(w *world) {
		p := w.client(localToken)
		a := p.do("POST", "/api/agent", order("run `printf ok > proof.txt`")).must(t, 409, "APPROVAL_REQUIRED")
		run := w.runs()[0]
		mustBe(t, "the run", a.body["runId"], any(run.ID))
		mustBe(t, "the call", a.body["toolCallId"], any(run.Calls[0].ID))
		mustBe(t, "the tool", a.body["toolName"], any("shell"))
		if a.at("reason") == nil || a.at("sessionId") == nil {
			t.Errorf("%s", a.raw)
		}
		mustBe(t, "pending", p.do("GET", "/api/agent/approvals", "").raw, `{"ok":true,"pending":[]}`)
		if w.exists("proof.txt") {
			t.Error("it ran")
		}
		a = p.do("POST", "/api/agent", order("list files")).must(t, 200, "")
		if a.at("result.answer") == "" || a.at("result.steps") != 2.0 || a.at("result.model") != "demo" {
			t.Errorf("%s", a.raw)
		}
	})
}

// Approve over HTTP, again, and the opposite.
func TestStreamApproved(t *testing.T) {
	inWorld(t, nil, func(w *world) {
		p := w.client(localToken)
		l := p.listen("POST", "/api/agent/stream", order("run `printf ok > proof.txt`"))
		ask := l.until("approvalRequired")
		path := "/api/agent/approvals/" + ask.str("request.runId") + "/" + ask.str("request.toolCallId")
		mustBe(t, "arguments", ask.str("request.argumentsJson"), `{"command":"printf ok > proof.txt"}`)
		for _, bad := range []string{``, `no`, `[]`, `null`, `{}`, `{"decision":"yes"}`, `{"decision":1}`, `{"decision":"approve","x":1}`,
			`{"decision":"approve","decision":"approve"}`, `{"decision":"approve"} {}`, `{"decision":"approve","reason":null}`, "{\"decision\":\"approve\",\"reason\":\"\xff\"}"} {
			a := p.do("POST", path, bad).must(t, 400, "INVALID_REQUEST")
			if _, ok := a.at("validationErrors.formErrors").([]any); !ok {
				t.Errorf("%q: %s", bad, a.raw)
			}
			if _, ok := a.at("validationErrors.fieldErrors").(map[string]any); !ok {
				t.Errorf("%q: %s", bad, a.raw)
			}
		}
		p.do("POST", path, strings.Repeat(" ", 10<<20)).must(t, 413, "TOO_LARGE")
		if pending := p.do("GET", "/api/agent/approvals", "").at("pending").([]any); len(pending) != 1 || w.exists("proof.txt") {
			t.Fatalf("after bad bodies: %v", pending)
		}
		first := p.do("POST", path, `{"decision":"approve","reason":"looks fine"}`).must(t, 200, "")
		mustBe(t, "resolution", first.at("resolution.type"), any("approved"))
		mustBe(t, "by", first.at("resolution.by"), any(map[string]any{"kind": "token", "id": "default", "name": "default", "via": "http"}))
		again := p.do("POST", path, `{"decision":"approve"}`).must(t, 200, "")
		mustBe(t, "the same decision again", again.at("resolution"), first.at("resolution"))
		other := p.do("POST", path, `{"decision":"deny"}`).must(t, 409, "ALREADY_DECIDED")
		mustBe(t, "the opposite", other.at("resolution"), first.at("resolution"))
		mustBe(t, "in the stream", l.until("approvalResolved").at("resolution"), first.at("resolution"))
		mustBe(t, "the end of the call", l.until("toolOutputAvailable").str("toolCallId"), ask.str("request.toolCallId"))
		end := l.rest()
		mustBe(t, "the last message", end[len(end)-1].kind(), "done")
		if !w.exists("proof.txt") || l.ended != io.EOF {
			t.Errorf("it didn't run, or the stream ended with %v", l.ended)
		}
	})
}

// Nobody answers, in time or at all.
func TestStreamTimeout(t *testing.T) {
	inWorld(t, func(s *Settings) { s.Timeout = time.Minute }, func(w *world) {
		p := w.client(localToken)
		l := p.listen("POST", "/api/agent/stream", order(proof))
		ask := l.until("approvalRequired")
		shown := time.Now()
		resolved := l.until("approvalResolved")
		mustBe(t, "source", resolved.str("resolution.source"), "timeout")
		if d := time.Since(shown); d < time.Minute || d > 61*time.Second {
			t.Errorf("it took %s", d)
		}
		if l.beats < 3 {
			t.Errorf("%d heartbeats in a minute", l.beats)
		}
		mustBe(t, "denied", l.until("toolOutputDenied").str("source"), "timeout")
		a := p.do("POST", "/api/agent/approvals/"+ask.str("request.runId")+"/"+ask.str("request.toolCallId"), `{"decision":"approve"}`).must(t, 410, "EXPIRED")
		mustBe(t, "source", a.at("resolution.source"), any("timeout"))
		l.rest()
		w.deniedOnce("timeout")
	})
}

// Settings only tighten.
func TestHTTPTightens(t *testing.T) {
	inWorld(t, nil, func(w *world) {
		p := w.client(localToken)
		for _, weak := range []string{`{"task":"x","approvalPolicy":"never"}`, `{"task":"x","sandboxMode":"danger_full_access"}`} {
			p.do("POST", "/api/agent", weak).must(t, 403, "WEAKER_SETTINGS")
			p.do("POST", "/api/agent/stream", weak).must(t, 403, "WEAKER_SETTINGS")
		}
		p.do("POST", "/api/agent", `{"task":"x","approvalPolicy":"whatever"}`).must(t, 400, "INVALID_REQUEST")
		p.do("POST", "/api/agent", `{"task":"x","model":"other"}`).must(t, 400, "INVALID_REQUEST")
		p.do("POST", "/api/agent", `{"task":"x","slack":{"channel":"C1"}}`).must(t, 400, "INVALID_REQUEST")
		p.do("POST", "/api/agent/stream", `{"task":"x","slack":{"channel":"C404"}}`).must(t, 403, "CHANNEL_NOT_LISTED")
		if len(w.runs()) != 0 {
			t.Fatal("something was started")
		}
		p.do("POST", "/api/agent", order("list files", "approvalPolicy", `"strict"`, "model", `"demo"`)).must(t, 409, "APPROVAL_REQUIRED")
		p.do("POST", "/api/agent", order("write a.txt: x", "sandboxMode", `"read_only"`)).must(t, 200, "")
		run := w.runs()[1]
		if run.Started.Sandbox != "read_only" || run.Calls[0].State != ledger.OutputDenied || run.Calls[0].Finished.Source != ledger.SourcePolicy {
			t.Errorf("%+v", run.Calls[0].Finished)
		}
	})
}

// One ask in a channel and over HTTP: the first answer ends both.
func TestTwoSurfaces(t *testing.T) {
	inWorld(t, nil, func(w *world) {
		p := w.client(localToken)
		place := fmt.Sprintf(`{"channel":%q}`, w.general())
		for _, first := range []string{"http", "slack"} {
			l := p.listen("POST", "/api/agent/stream", order(proof, "slack", place))
			ask := l.until("approvalRequired")
			w.pass(10 * time.Second)
			card := w.lastCard()
			if card.buttons["approve"] == "" {
				t.Fatalf("%s: no buttons: %v", first, card)
			}
			if first == "http" {
				p.do("POST", "/api/agent/approvals/"+ask.str("request.runId")+"/"+ask.str("request.toolCallId"), `{"decision":"deny","reason":"not today"}`).must(t, 200, "")
			} else {
				w.click("bob", card, "approve")
			}
			resolved := l.until("approvalResolved")
			w.pass(10 * time.Second)
			after := w.lastCard()
			if after.ts != card.ts || len(after.buttons) != 0 {
				t.Errorf("%s: the card stays: %v", first, after)
			}
			if first == "http" {
				mustSay(t, after.text, "enied by", "default", "not today")
			} else {
				mustSay(t, after.text, "pproved by", w.user("bob"))
				mustBe(t, "by", resolved.str("resolution.by.id"), w.user("bob"))
			}
			l.rest()
			os.Remove(filepath.Join(w.dir, "workspace", "proof.txt"))
		}
	})
}

// lastCard is the newest card in the first channel.
func (w *world) lastCard() shown {
	w.t.Helper()
	cards := w.cards("")
	if len(cards) == 0 {
		w.t.Fatalf("no card: %s", w.log.String())
	}
	return cards[len(cards)-1]
}

// The caller goes away: the run ends, unless it is detached.
func TestDisconnect(t *testing.T) {
	inWorld(t, nil, func(w *world) {
		p := w.client(localToken)
		l := p.listen("POST", "/api/agent/stream", order(proof))
		l.until("approvalRequired")
		l.cancel()
		w.pass(time.Second)
		run := w.runs()[0]
		if run.Status() != ledger.RunCancelled || run.Stop == nil || run.Stop.By.ID != "default" || run.Calls[0].Approval.Resolved.Source != ledger.SourceAbort {
			t.Errorf("%s %+v", run.Status(), run.Stop)
		}
		l = p.listen("POST", "/api/agent/stream", order(proof, "onDisconnect", `"detach"`))
		ask := l.until("approvalRequired")
		l.cancel()
		w.pass(time.Second)
		p.do("POST", "/api/agent/approvals/"+ask.str("request.runId")+"/"+ask.str("request.toolCallId"), `{"decision":"approve"}`).must(t, 200, "")
		w.pass(time.Second)
		if run := w.runs()[1]; run.Status() != ledger.RunSucceeded || !w.exists("proof.txt") {
			t.Errorf("the detached run: %s", run.Status())
		}
	})
}

// A waiting request whose caller goes away.
func TestWaitingCallerGone(t *testing.T) {
	inWorld(t, nil, func(w *world) {
		p := w.client(localToken)
		// The first run keeps the session busy; the second waits behind it and is given up there.
		l := p.listen("POST", "/api/agent/stream", order(proof))
		session := l.until("debug").str("event.sessionId")
		l.until("approvalRequired")
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		more := order("write a.txt: x", "sessionId", fmt.Sprintf("%q", session))
		if _, err := p.client.Do(p.request(ctx, "POST", "/api/agent", more)); err == nil {
			t.Error("it was answered")
		}
		p.do("POST", "/api/agent", order("list files", "sessionId", fmt.Sprintf("%q", session), "onBusy", `"refuse"`)).must(t, 409, "SESSION_BUSY")
		l.cancel()
		w.pass(time.Second)
		runs := w.runs()
		if len(runs) != 2 || runs[1].Status() != ledger.RunCancelled || len(runs[1].Rounds) != 0 {
			t.Errorf("%d runs; the one that nobody waits for: %s", len(runs), runs[len(runs)-1].Status())
		}
	})
}

// The same key is the same run.
func TestIdempotencyKey(t *testing.T) {
	inWorld(t, nil, func(w *world) {
		p := w.client(localToken)
		first := p.do("POST", "/api/agent", order("list files"), "Idempotency-Key", "k1").must(t, 200, "")
		again := p.do("POST", "/api/agent", `{ "task" : "list files" }`, "Idempotency-Key", "k1").must(t, 200, "")
		mustBe(t, "the answer", again.raw, first.raw)
		mustBe(t, "the header", again.header.Get("Idempotent-Replayed"), "true")
		p.do("POST", "/api/agent", order("read README.md"), "Idempotency-Key", "k1").must(t, 422, "IDEMPOTENCY_KEY_REUSED")
		p.do("POST", "/api/agent/stream", order("list files"), "Idempotency-Key", "k1").must(t, 422, "IDEMPOTENCY_KEY_REUSED")
		p.do("POST", "/api/agent", order("list files"), "Idempotency-Key", "a b").must(t, 400, "INVALID_REQUEST")
		l := p.listen("POST", "/api/agent/stream", order(proof), "Idempotency-Key", "k2")
		ask := l.until("approvalRequired")
		m := p.listen("POST", "/api/agent/stream", order(proof), "Idempotency-Key", "k2")
		mustBe(t, "the ask", m.until("approvalRequired").raw, ask.raw)
		l.cancel() // one of two callers
		w.pass(time.Second)
		p.do("POST", "/api/agent/approvals/"+ask.str("request.runId")+"/"+ask.str("request.toolCallId"), `{"decision":"approve"}`).must(t, 200, "")
		m.until("done")
		if len(w.runs()) != 2 {
			t.Errorf("%d runs", len(w.runs()))
		}
	})
}

// Two followers, one cut in the middle: both see everything once, in order.
// A run that waits for its turn is known to its caller at once, and can be stopped before it begins.
func TestStopBeforeItsTurn(t *testing.T) {
	inWorld(t, func(s *Settings) { s.APITokensFile = tokensFile(t) }, func(w *world) {
		p, decider := w.client("other-token-other-token"), w.client(localToken)
		first := p.listen("POST", "/api/agent/stream", order(proof))
		session := first.until("debug").str("event.sessionId")
		ask := first.until("approvalRequired")
		began := time.Now()
		second := p.listen("POST", "/api/agent/stream", order("write a.txt: x", "sessionId", fmt.Sprintf("%q", session), "onDisconnect", `"detach"`))
		run := second.until("debug").str("event.runId")
		if waited := time.Since(began); waited > time.Second {
			t.Errorf("its caller was told which run it is after %s", waited)
		}
		decider.do("POST", "/api/agent/runs/"+run+"/stop", "").must(t, 200, "")
		p.do("POST", "/api/agent/runs/run_unknown/stop", "").must(t, 404, "NOT_FOUND")
		decider.do("POST", "/api/agent/approvals/"+ask.str("request.runId")+"/"+ask.str("request.toolCallId"), `{"decision":"deny"}`).must(t, 200, "")
		w.pass(5 * time.Second)
		runs := w.runs()
		if len(runs) != 2 || runs[1].Status() != ledger.RunCancelled || len(runs[1].Rounds) != 0 || w.exists("a.txt") {
			t.Errorf("%d runs; the one that was stopped: %+v", len(runs), runs[len(runs)-1].Finished)
		}
		if stop := runs[1].Stop; stop == nil || stop.By.ID != "default" {
			t.Errorf("the stop is recorded as that of %+v", stop)
		}
		p.do("POST", "/api/agent/runs/"+run+"/stop", "").must(t, 409, "NOT_RUNNING")
	})
}

// Whoever has seen a run's end is told that nothing more comes; an id that no event has is refused.
func TestNothingMore(t *testing.T) {
	inWorld(t, nil, func(w *world) {
		p := w.client(localToken)
		l := p.listen("POST", "/api/agent/stream", order("list files"))
		run := l.until("debug").str("event.runId")
		all := ids(l.rest())
		events := "/api/agent/runs/" + run + "/events"
		resp, err := p.client.Do(p.request(context.Background(), "GET", events, "", "Last-Event-ID", all[len(all)-1]))
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		mustBe(t, "the status after the end", resp.StatusCode, 204)
		p.do("GET", events+"?after=1000000", "").must(t, 400, "INVALID_REQUEST")
	})
}

func TestResume(t *testing.T) {
	inWorld(t, nil, func(w *world) {
		p := w.client(localToken)
		l := p.listen("POST", "/api/agent/stream", order("run `printf 1 > one` and `printf 2 > two`"))
		run := l.until("debug").str("event.runId")
		events := "/api/agent/runs/" + run + "/events"
		whole := p.listen("GET", events+"?after=0", "")
		cut := p.listen("GET", events+"?after=0", "")
		w.pass(time.Second)
		before := ids(cut.soFar())
		cut.cancel()
		pending := p.do("GET", "/api/agent/approvals?runId="+run, "").at("pending").([]any)
		for i, decision := range []string{"approve", "deny"} {
			p.do("POST", "/api/agent/approvals/"+run+"/"+dig(pending[i], "toolCallId").(string), `{"decision":"`+decision+`"}`).must(t, 200, "")
			w.pass(time.Second)
		}
		rest := p.listen("GET", events, "", "Last-Event-ID", before[len(before)-1])
		all := whole.rest()
		mustBe(t, "what the one who was cut saw", append(before, ids(rest.rest())...), ids(all))
		if !slices.IsSortedFunc(ids(all), func(a, b string) int { return len(a) - len(b) }) || len(slices.Compact(slices.Sorted(slices.Values(ids(all))))) != len(ids(all)) {
			t.Errorf("out of order or twice: %v", ids(all))
		}
		// Later, all of it again.
		mustBe(t, "the replay", ids(p.listen("GET", events+"?after=0", "").rest()), ids(all))
		mustBe(t, "the end", kinds(all)[len(all)-1], "done")
	})
}

func ids(all []heard) []string {
	out := []string{}
	for _, h := range all {
		if h.id != "" {
			out = append(out, h.id)
		}
	}
	return out
}

// Who comes while an ask is pending gets it once; who comes later doesn't.
func TestLateFollower(t *testing.T) {
	inWorld(t, nil, func(w *world) {
		p := w.client(localToken)
		l := p.listen("POST", "/api/agent/stream", order(proof))
		ask := l.until("approvalRequired")
		events := "/api/agent/runs/" + ask.str("request.runId") + "/events"
		late := p.listen("GET", events, "")
		w.pass(time.Second)
		got := late.soFar()
		mustBe(t, "the pending ask", got[len(got)-1].kind(), "debug") // that it was shown
		asks := slices.DeleteFunc(got, func(h heard) bool { return h.kind() != "approvalRequired" })
		if len(asks) != 1 || asks[0].raw != ask.raw || asks[0].id != ask.id {
			t.Errorf("%v, want %s", asks, ask.raw)
		}
		p.do("POST", "/api/agent/approvals/"+ask.str("request.runId")+"/"+ask.str("request.toolCallId"), `{"decision":"deny"}`).must(t, 200, "")
		synctest.Wait() // a stream that is opened before all have heard of the end gets both, one after the other
		later := kinds(p.listen("GET", events, "").rest())
		if slices.Contains(later, "approvalRequired") || !slices.Contains(later, "approvalResolved") {
			t.Errorf("after the resolution: %v", later)
		}
	})
}

// Nobody follows and it isn't in Slack: nobody can be asked, which is said at once. A detached caller has time to come back.
func TestNobodyFollows(t *testing.T) {
	turns := `[{"toolCalls":[{"id":"a","name":"shell","arguments":{"command":"sleep 2"}}]},{"toolCalls":[{"id":"b","name":"shell","arguments":{"command":"date"}}]},{"text":"done"}]`
	inWorld(t, func(s *Settings) { s.Model = script(t, turns) }, func(w *world) {
		p := w.client(localToken)
		l := p.listen("POST", "/api/agent/stream", order("go", "onDisconnect", `"detach"`))
		ask := l.until("approvalRequired")
		l.cancel()
		w.pass(time.Second)
		run := ask.str("request.runId")
		p.do("POST", "/api/agent/approvals/"+run+"/a", `{"decision":"deny"}`).must(t, 200, "")
		w.pass(30 * time.Second)
		if n := len(p.do("GET", "/api/agent/approvals?runId="+run, "").at("pending").([]any)); n != 1 {
			t.Fatalf("%d asks are pending; the caller may come back", n)
		}
		w.pass(90 * time.Second) // it was listed, so it has been shown
		if n := len(p.do("GET", "/api/agent/approvals?runId="+run, "").at("pending").([]any)); n != 1 {
			t.Fatalf("%d asks are pending", n)
		}
		w.pass(60 * time.Second)
		w.client(localToken).do("POST", "/api/agent/approvals/"+run+"/b", `{"decision":"approve"}`).must(t, 410, "EXPIRED")
	})
}

// Who doesn't read is dropped; the run is not slowed, and nothing is missed.
func TestSlowReader(t *testing.T) {
	var turns []string
	for i := range 120 {
		turns = append(turns, fmt.Sprintf(`{"text":%q,"toolCalls":[{"id":"c%d","name":"list_files","arguments":{"path":"d%d"}}]}`, strings.Repeat("word ", 200), i, i))
	}
	turns = append(turns, `{"text":"done"}`)
	inWorld(t, func(s *Settings) { s.Model, s.MaxRounds = script(t, "["+strings.Join(turns, ",")+"]"), 200 }, func(w *world) {
		p := w.client(localToken)
		began := time.Now()
		conn, err := w.api.DialContext(context.Background(), "", "")
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		body := order("go")
		fmt.Fprintf(conn, "POST /api/agent/stream HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\nContent-Length: %d\r\n\r\n%s", localToken, len(body), body)
		w.pass(10 * time.Second)
		run := w.runs()[0]
		if run.Status() != ledger.RunSucceeded || run.EndedAt.Sub(began) > time.Second {
			t.Fatalf("the run was slowed: %s after %s", run.Status(), run.EndedAt.Sub(began))
		}
		w.pass(30 * time.Second)
		raw, _ := io.ReadAll(conn)
		if strings.Contains(string(raw), `"type":"done"`) {
			t.Error("it was not dropped")
		}
		if run := w.runs()[0]; run.Stop != nil {
			t.Error("being slow is no disconnect")
		}
		all := kinds(p.listen("GET", "/api/agent/runs/"+run.ID+"/events?after=0", "").rest())
		if n := len(slices.DeleteFunc(all, func(k string) bool { return k != "step" })); n != 121 {
			t.Errorf("%d steps, want 121", n)
		}
	})
}

// A session goes on where it was, also after a restart; it belongs to its token.
func TestSessions(t *testing.T) {
	file := filepath.Join(t.TempDir(), "tokens.json")
	tokens := `[{"name":"ci","token":"ci-token-0123456789","scopes":["read","run"]},
		{"name":"eve","token":"eve-token-0123456789","scopes":["read","run"]},
		{"name":"looker","token":"looker-token-0123456789","scopes":["read"]}]`
	if err := os.WriteFile(file, []byte(tokens), 0o600); err != nil {
		t.Fatal(err)
	}
	inWorld(t, func(s *Settings) { s.APITokensFile = file }, func(w *world) {
		ci := w.client("ci-token-0123456789")
		first := ci.do("POST", "/api/agent", order("list files")).must(t, 200, "")
		session := first.at("result.sessionId").(string)
		more := order("list files", "sessionId", fmt.Sprintf("%q", session))
		ci.do("POST", "/api/agent", more).must(t, 200, "")
		w.stop()
		w.start()
		ci = w.client("ci-token-0123456789")
		eve := w.client("eve-token-0123456789")
		ci.do("POST", "/api/agent", more).must(t, 200, "")
		eve.do("POST", "/api/agent", more).must(t, 403, "NOT_YOURS")
		eve.do("POST", "/api/agent", order("x", "sessionId", `"http/none"`)).must(t, 404, "NOT_FOUND")
		eve.do("GET", "/api/agent/sessions/"+session, "").must(t, 404, "NOT_FOUND")
		eve.do("GET", "/api/agent/runs/"+first.at("result.runId").(string)+"/events", "").must(t, 404, "NOT_FOUND")
		mustBe(t, "another token's sessions", eve.do("GET", "/api/agent/sessions", "").raw, `{"ok":true,"sessions":[]}`)
		a := w.client("looker-token-0123456789").do("POST", "/api/agent", order("x")).must(t, 403, "MISSING_SCOPE")
		mustSay(t, a.raw, "scope run")
		ci.do("POST", "/api/agent/approvals/a/b", `{"decision":"approve"}`).must(t, 403, "MISSING_SCOPE")

		list := ci.do("GET", "/api/agent/sessions", "").must(t, 200, "").at("sessions").([]any)
		if len(list) != 1 || dig(list[0], "runs") != 3.0 || dig(list[0], "sessionId") != session {
			t.Errorf("%v", list)
		}
		rec := w.client(localToken).do("GET", "/api/agent/sessions/"+session, "").must(t, 200, "")
		if runs := rec.at("session.runs").([]any); len(runs) != 3 || dig(runs[2], "status") != "succeeded" || dig(runs[0], "startedBy.id") != "ci" {
			t.Errorf("%s", rec.raw)
		}
	})
}

// The same denial, read from the stream, Slack, the journal and the audit.
func TestOneDenialOverHTTP(t *testing.T) {
	inWorld(t, nil, func(w *world) {
		p := w.client(localToken)
		l := p.listen("POST", "/api/agent/stream", order(proof, "slack", fmt.Sprintf(`{"channel":%q}`, w.general())))
		ask := l.until("approvalRequired")
		w.pass(5 * time.Second)
		run, call := ask.str("request.runId"), ask.str("request.toolCallId")
		p.do("POST", "/api/agent/approvals/"+run+"/"+call, `{"decision":"deny","reason":"use the staging table"}`).must(t, 200, "")
		denied := l.until("toolOutputDenied")
		end := l.rest()
		w.pass(10 * time.Second)
		c := w.runs()[0].Calls[0]
		mustBe(t, "the call", []string{denied.str("toolCallId"), c.ID}, []string{call, call})
		mustBe(t, "the source", []string{denied.str("source"), string(c.Finished.Source), string(c.Approval.Resolved.Source)}, []string{"user", "user", "user"})
		for what, text := range map[string]string{
			"the stream": denied.str("reason"), "what the model was told": denied.str("output"), "the journal": c.Finished.Reason,
			"the card": w.lastCard().text, "the audit": w.audit(run), "the answer": end[len(end)-1].raw,
		} {
			if !strings.Contains(text, "use the staging table") {
				t.Errorf("%s doesn't say why: %s", what, text)
			}
		}
		mustBe(t, "what the model was told", denied.str("output"), c.Finished.Output)
		w.deniedOnce("user")
	})
}

// Connections that send too slowly, or nothing, are closed while Slack goes on.
func TestSlowRequests(t *testing.T) {
	inWorld(t, nil, func(w *world) {
		for _, sent := range []string{"", "GET /healthz HTTP/1.1\r\nHost: local", "POST /api/agent HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer " + localToken + "\r\nContent-Length: 100\r\n\r\n{"} {
			conn, err := w.api.DialContext(context.Background(), "", "")
			if err != nil {
				t.Fatal(err)
			}
			if sent != "" {
				io.WriteString(conn, sent)
			}
			closed := make(chan struct{})
			go func() {
				io.Copy(io.Discard, conn)
				close(closed)
			}()
			w.pass(20 * time.Second)
			select {
			case <-closed:
			default:
				t.Errorf("still open after %q", sent)
			}
			conn.Close()
			<-closed
		}
		thread := w.ask("alice", proof)
		w.click("bob", w.card(thread), "approve")
		if !w.exists("proof.txt") {
			t.Error("Slack doesn't go on")
		}
	})
}

// SIGTERM while a stream waits: it is told how its run ended.
func TestStreamAtTheEnd(t *testing.T) {
	inWorld(t, nil, func(w *world) {
		p := w.client(localToken)
		l := p.listen("POST", "/api/agent/stream", order(proof))
		l.until("approvalRequired")
		w.stop()
		end := l.rest()
		last := end[len(end)-1]
		if last.kind() != "error" || last.str("error.code") != "SHUTDOWN" {
			t.Errorf("%v", last.raw)
		}
		w.deniedOnce("abort")
		w.start()
	})
}

// A text that comes in pieces adds up, in its place, and without secrets.
func TestDeltas(t *testing.T) {
	turns, _ := json.Marshal([]map[string]any{{"text": "The password=hunter2hunter2 is no good.\nNor is " + localToken + " to be seen, because it is ours."}})
	inWorld(t, func(s *Settings) { s.Model = script(t, string(turns)) }, func(w *world) {
		all := w.client(localToken).listen("POST", "/api/agent/stream", order("go")).rest()
		var said strings.Builder
		for _, h := range all {
			if h.kind() == "assistantDelta" {
				said.WriteString(h.str("delta"))
				if h.id != "" {
					t.Error("what isn't journalled has no id")
				}
			}
		}
		i := slices.IndexFunc(all, func(h heard) bool { return h.kind() == "step" })
		mustBe(t, "the pieces", said.String(), all[i].str("text"))
		if strings.Contains(said.String(), "hunter2hunter2") || strings.Contains(said.String(), localToken) || said.Len() == 0 {
			t.Errorf("%q", said.String())
		}
		if last := slices.Index(kinds(all[i:]), "assistantDelta"); last >= 0 {
			t.Error("a piece came after its step")
		}
		mustBe(t, "the ends", len(slices.DeleteFunc(kinds(all), func(k string) bool { return k != "done" && k != "error" })), 1)
	})
}

// A person's token is that person: what it asked for, they can't approve in Slack, and what it decides is theirs. A token
// of somebody who may not start runs starts none.
func TestTokenOfAPerson(t *testing.T) {
	file := filepath.Join(t.TempDir(), "tokens.json")
	if err := os.WriteFile(file, []byte(`[{"name":"none","token":"none-token-012345","scopes":["read"]}]`), 0o600); err != nil {
		t.Fatal(err)
	}
	inWorld(t, func(s *Settings) { s.APITokensFile, s.Approvers = file, []string{"channel"} }, func(w *world) {
		w.stop() // the users' ids are known now
		tokens := fmt.Sprintf(`[{"name":"alice","token":"alice-token-012345","user":%q,"scopes":["read","run","decide"]},
			{"name":"bob","token":"bob-token-01234567","user":%q,"scopes":["decide"]},
			{"name":"gus","token":"gus-token-01234567","user":%q,"scopes":["run","decide"]}]`, w.user("alice"), w.user("bob"), w.user("gus"))
		if err := os.WriteFile(file, []byte(tokens), 0o600); err != nil {
			t.Fatal(err)
		}
		w.start()
		alice, bob, gus := w.client("alice-token-012345"), w.client("bob-token-01234567"), w.client("gus-token-01234567")
		gus.do("POST", "/api/agent", order("list files")).must(t, 403, "NOT_ALLOWED")
		l := alice.listen("POST", "/api/agent/stream", order(proof, "slack", fmt.Sprintf(`{"channel":%q}`, w.general())))
		ask := l.until("approvalRequired")
		w.pass(5 * time.Second)
		path := "/api/agent/approvals/" + ask.str("request.runId") + "/" + ask.str("request.toolCallId")
		alice.do("POST", path, `{"decision":"approve"}`).must(t, 403, "NOT_ALLOWED")
		gus.do("POST", path, `{"decision":"deny"}`).must(t, 403, "NOT_ALLOWED")
		w.click("alice", w.lastCard(), "approve")
		if w.exists("proof.txt") {
			t.Fatal("alice approved in Slack what her token asked for")
		}
		a := bob.do("POST", path, `{"decision":"approve"}`).must(t, 200, "")
		mustBe(t, "by", a.at("resolution.by.id"), any(w.user("bob")))
		l.rest()
		w.pass(5 * time.Second)
		mustSay(t, w.lastCard().text, "pproved by", w.user("bob"))
	})
}
