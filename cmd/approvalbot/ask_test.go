package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"approvalbot/internal/ledger"
	"approvalbot/internal/ledger/ledgertest"
	"approvalbot/internal/policy"
)

const askedFor = `"tool":"deploy","arguments":{"version":"1.2.3","to":"production"}`

// wish is the body of an ask, with further members as they stand in JSON.
func wish(more ...string) string {
	body := "{" + askedFor
	for i := 0; i < len(more); i += 2 {
		body += `,"` + more[i] + `":` + more[i+1]
	}
	return body + "}"
}

// inSlack names the first channel.
func inSlack(w *world) string { return `{"channel":"` + w.general() + `"}` }

// listed lets programs talk in the first channel, as w.start has not happened yet when settings are changed.
func listed(t *testing.T, change func(*Settings), body func(w *world)) {
	t.Helper()
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, dir)
		w.settings.openChannels = []string{w.general()}
		w.settings.APITokensFile = tokensFile(t)
		if change != nil {
			change(&w.settings)
		}
		defer w.close()
		w.start()
		defer func() { w.stop() }()
		body(w)
		w.stop()
		w.check()
		for _, run := range w.runs() {
			if run.Started.Place.Channel != "" && !run.Settled {
				t.Errorf("run %s is still open in Slack", run.ID)
			}
		}
	})
}

const ciToken = "ci-token-ci-token-ci"

// tokensFile lists a CI job's token, which can only ask, and one of another program.
func tokensFile(t *testing.T) string {
	t.Helper()
	file := t.TempDir() + "/tokens.json"
	content := `[{"name":"deploy-ci","token":"` + ciToken + `","scopes":["run"]},
		{"name":"other","token":"other-token-other-token","scopes":["run","read"]}]`
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// askCards are the cards in the first channel.
func (w *world) askCard() shown {
	w.t.Helper()
	messages, err := w.slack.Messages(w.general(), "")
	if err != nil {
		w.t.Fatal(err)
	}
	var cards []shown
	for _, m := range messages {
		if strings.Contains(string(m.Metadata), `"card"`) {
			cards = append(cards, read(m))
		}
		if s := read(m); s.user == w.ws.App.BotUserID && !strings.Contains(string(m.Metadata), `"card"`) {
			w.t.Errorf("the bot also says %q", s.text)
		}
	}
	if len(cards) != 1 {
		w.t.Fatalf("%d cards", len(cards))
	}
	return cards[0]
}

func (a answered) str(path string) string { s, _ := a.at(path).(string); return s }

func TestAskApprovedAndReported(t *testing.T) {
	for name, c := range map[string]struct{ report, status, words, state string }{
		"done":   {`{"ok":true,"output":"deployed 1.2.3"}`, "done", "deploy-ci reported so", "output-available"},
		"failed": {`{"ok":false,"output":"no space left"}`, "failed", "Failed", "output-error"},
	} {
		t.Run(name, func(t *testing.T) {
			listed(t, nil, func(w *world) {
				p := w.client(ciToken)
				a := p.do("POST", "/api/approvals", wish("reason", `"the release"`, "cwd", `"/srv/app"`, "slack", inSlack(w))).must(t, 200, "")
				id := a.str("approval.id")
				mustBe(t, "status", a.str("approval.status"), "pending")
				mustBe(t, "arguments", a.str("approval.argumentsJson"), `{"to":"production","version":"1.2.3"}`)
				mustBe(t, "resolution", a.at("approval.resolution"), nil)
				w.pass(3 * time.Second)
				card := w.askCard()
				mustSay(t, card.text, "deploy-ci will run deploy", "Another program will do this:", "deploy-ci\n (not approvalbot",
					`"version": "1.2.3"`, "the release", "/srv/app", "its own words")
				p.do("POST", "/api/approvals/"+id+"/outcome", c.report).must(t, 409, "NOT_APPROVED")

				w.click("bob", card, "approve")
				mustSay(t, w.askCard().text, "Waiting for the outcome")
				got := p.do("GET", "/api/approvals/"+id+"?wait=30s", "").must(t, 200, "")
				mustBe(t, "status", got.str("approval.status"), "approved")
				mustBe(t, "by", got.str("approval.resolution.by.id"), w.user("bob"))
				w.pass(90 * time.Second)

				end := p.do("POST", "/api/approvals/"+id+"/outcome", c.report).must(t, 200, "")
				mustBe(t, "status", end.str("approval.status"), c.status)
				mustBe(t, "the same again", p.do("POST", "/api/approvals/"+id+"/outcome", c.report).must(t, 200, "").raw, end.raw)
				p.do("POST", "/api/approvals/"+id+"/outcome", `{"ok":true,"output":"else"}`).must(t, 409, "ALREADY_REPORTED")
				w.pass(5 * time.Second)
				mustSay(t, w.askCard().text, c.words, "1 min", "deploy-ci")
				call := w.runs()[0].Calls[0]
				mustBe(t, "state", string(call.State), c.state)
				mustBe(t, "wait", p.do("GET", "/api/approvals/"+id+"?wait=5m", "").str("approval.status"), c.status)
				mustSay(t, w.audit(id), "deploy", c.state, "approved", "which acts itself", "no model is told of it")
			})
		})
	}
}

func TestAskDenied(t *testing.T) {
	listed(t, nil, func(w *world) {
		p := w.client(ciToken)
		id := p.do("POST", "/api/approvals", wish("slack", inSlack(w))).str("approval.id")
		w.pass(3 * time.Second)
		waited := make(chan answered)
		go func() { waited <- p.do("GET", "/api/approvals/"+id+"?wait=1m", "") }()
		synctest.Wait()
		w.click("bob", w.askCard(), "deny")
		a := <-waited
		mustBe(t, "status", a.str("approval.status"), "denied")
		mustBe(t, "source", a.str("approval.resolution.source"), "user")
		mustSay(t, w.askCard().text, "Denied by", "Not performed.")
		p.do("POST", "/api/approvals/"+id+"/outcome", `{"ok":true}`).must(t, 409, "NOT_APPROVED")
	})
}

// Nobody answers: in Slack, and where nobody can be asked.
func TestAskUnanswered(t *testing.T) {
	listed(t, nil, func(w *world) {
		p := w.client(ciToken)
		id := p.do("POST", "/api/approvals", wish("slack", inSlack(w), "timeout", `"10m"`)).str("approval.id")
		start := time.Now()
		var a answered
		for a = p.do("GET", "/api/approvals/"+id+"?wait=4m", ""); a.str("approval.status") == "pending"; a = p.do("GET", "/api/approvals/"+id+"?wait=4m", "") {
			if time.Since(start) > 15*time.Minute {
				t.Fatal("it waits for ever")
			}
		}
		mustBe(t, "status and source", a.str("approval.status")+" "+a.str("approval.resolution.source"), "denied timeout")
		if d := time.Since(start); d < 10*time.Minute || d > 10*time.Minute+10*time.Second {
			t.Errorf("after %s", d)
		}
		w.pass(5 * time.Second)
		mustSay(t, w.askCard().text, "Not performed.")

		id = p.do("POST", "/api/approvals", wish()).str("approval.id")
		a = p.do("GET", "/api/approvals/"+id+"?wait=5m", "")
		mustBe(t, "without anybody", a.str("approval.status")+" "+a.str("approval.resolution.source"), "denied undeliverable")
	})
}

// Without Slack, a program that may decide does, and the one that asked may not.
func TestAskDecidedOverHTTP(t *testing.T) {
	listed(t, func(s *Settings) { s.Approvers = []string{"channel"} }, func(w *world) {
		p := w.client(localToken)
		a := w.client(ciToken).do("POST", "/api/approvals", wish())
		id, call := a.str("approval.id"), a.str("approval.toolCallId")
		pending := p.do("GET", "/api/agent/approvals?runId="+id, "").at("pending").([]any)
		if len(pending) != 1 {
			t.Fatalf("%v", pending)
		}
		p.do("POST", "/api/agent/approvals/"+id+"/"+call, `{"decision":"approve"}`).must(t, 200, "")
		mustBe(t, "status", w.client(ciToken).do("GET", "/api/approvals/"+id+"?wait=1s", "").str("approval.status"), "approved")
		p.do("POST", "/api/approvals/"+id+"/outcome", `{"ok":true}`).must(t, 403, "NOT_YOURS")
		l := p.listen("GET", "/api/agent/runs/"+id+"/events", "")
		w.client(ciToken).do("POST", "/api/approvals/"+id+"/outcome", `{"ok":true}`).must(t, 200, "")
		mustBe(t, "in the stream", l.until("toolOutputAvailable").str("toolName"), "deploy")
		l.until("done")

		own := p.do("POST", "/api/approvals", wish())
		p.do("POST", "/api/agent/approvals/"+own.str("approval.id")+"/"+own.str("approval.toolCallId"), `{"decision":"approve"}`).must(t, 403, "NOT_ALLOWED")
	})
}

// What another program asks isn't anybody's business, nor is what was never an ask.
func TestAskOfOthers(t *testing.T) {
	listed(t, nil, func(w *world) {
		id := w.client(ciToken).do("POST", "/api/approvals", wish()).str("approval.id")
		other := w.client("other-token-other-token")
		other.do("GET", "/api/approvals/"+id, "").must(t, 404, "NOT_FOUND")
		other.do("POST", "/api/approvals/"+id+"/outcome", `{"ok":true}`).must(t, 404, "NOT_FOUND")
		p := w.client(localToken)
		mustBe(t, "with the scope all", p.do("GET", "/api/approvals/"+id, "").must(t, 200, "").str("approval.program"), "deploy-ci")
		p.do("POST", "/api/agent", order("list files")).must(t, 200, "")
		run := w.runs()[1].ID
		p.do("GET", "/api/approvals/"+run, "").must(t, 404, "NOT_FOUND")
		p.do("GET", "/api/approvals/none", "").must(t, 404, "NOT_FOUND")
		p.do("POST", "/api/agent", order("go on", "sessionId", `"`+w.runs()[0].Session+`"`)).must(t, 400, "INVALID_REQUEST")
		p.do("GET", "/api/agent/sessions/"+w.runs()[0].Session, "").must(t, 200, "")
		w.client(ciToken).do("POST", "/api/agent/runs/"+id+"/stop", "").must(t, 200, "")
		a := w.client(ciToken).do("GET", "/api/approvals/"+id+"?wait=1m", "")
		mustBe(t, "withdrawn", a.str("approval.status")+" "+a.str("approval.resolution.source"), "denied abort")
	})
}

// The policy says no, or yes, and nobody is asked.
func TestAskPolicy(t *testing.T) {
	listed(t, func(s *Settings) { s.Sandbox = policy.ReadOnly }, func(w *world) {
		a := w.client(ciToken).do("POST", "/api/approvals", wish("slack", inSlack(w))).must(t, 200, "")
		mustBe(t, "status and source", a.str("approval.status")+" "+a.str("approval.resolution.source"), "denied policy")
		mustBe(t, "asked", a.at("approval.request"), nil)
		w.pass(5 * time.Second)
		mustSay(t, w.said(), "deploy-ci wanted to run deploy. Nobody was asked", "Not performed.")
	})
	listed(t, func(s *Settings) { s.ApprovalPolicy = policy.Never }, func(w *world) {
		p := w.client(ciToken)
		a := p.do("POST", "/api/approvals", wish("slack", inSlack(w))).must(t, 200, "")
		mustBe(t, "status and source", a.str("approval.status")+" "+a.str("approval.resolution.source"), "approved policy")
		p.do("POST", "/api/approvals/"+a.str("approval.id")+"/outcome", `{"ok":true}`).must(t, 200, "")
		w.pass(5 * time.Second)
		mustSay(t, w.said(), "deploy-ci wanted to run deploy. Nobody was asked", "reported that it is done")
	})
}

// said is what the bot says in the first channel.
func (w *world) said() string {
	w.t.Helper()
	messages, err := w.slack.Messages(w.general(), "")
	if err != nil {
		w.t.Fatal(err)
	}
	var all strings.Builder
	for _, m := range messages {
		fmt.Fprintln(&all, read(m).text)
	}
	return all.String()
}

func TestAskNoOutcome(t *testing.T) {
	listed(t, nil, func(w *world) {
		p := w.client(ciToken)
		id := p.do("POST", "/api/approvals", wish("slack", inSlack(w))).str("approval.id")
		w.pass(3 * time.Second)
		w.click("bob", w.askCard(), "approve")
		w.pass(time.Hour)
		a := p.do("GET", "/api/approvals/"+id, "")
		mustBe(t, "status", a.str("approval.status"), "no_outcome")
		mustBe(t, "the decision stays", a.str("approval.resolution.type"), "approved")
		mustSay(t, w.askCard().text, "No outcome reported.")
		p.do("POST", "/api/approvals/"+id+"/outcome", `{"ok":true}`).must(t, 410, "TOO_LATE")
		mustBe(t, "code", w.runs()[0].Calls[0].Finished.Code, "NO_OUTCOME")
	})
}

// The process dies while people are asked, and while the program acts.
func TestAskRestart(t *testing.T) {
	for name, c := range map[string]struct {
		approve       bool
		status, words string
	}{
		"while it waits": {false, "denied", "Not performed."},
		"while it acts":  {true, "no_outcome", "No outcome reported."},
		"stopped":        {false, "denied", "Not performed."},
	} {
		t.Run(name, func(t *testing.T) {
			listed(t, nil, func(w *world) {
				id := w.client(ciToken).do("POST", "/api/approvals", wish("slack", inSlack(w))).str("approval.id")
				w.pass(3 * time.Second)
				if c.approve {
					w.click("bob", w.askCard(), "approve")
				}
				if name == "stopped" {
					w.stop()
				} else {
					w.crash()
				}
				w.start()
				w.pass(10 * time.Second)
				p := w.client(ciToken)
				mustBe(t, "status", p.do("GET", "/api/approvals/"+id, "").str("approval.status"), c.status)
				mustSay(t, w.askCard().text, c.words)
				code := map[bool]string{true: "TOO_LATE", false: "NOT_APPROVED"}[c.approve]
				status := map[bool]int{true: 410, false: 409}[c.approve]
				p.do("POST", "/api/approvals/"+id+"/outcome", `{"ok":true}`).must(t, status, code)
			})
		})
	}
}

// A report that was recorded counts, even if the process died before the call had its end.
func TestAskReportSurvives(t *testing.T) {
	listed(t, nil, func(w *world) {
		id := w.client(ciToken).do("POST", "/api/approvals", wish("slack", inSlack(w))).str("approval.id")
		w.pass(3 * time.Second)
		w.click("bob", w.askCard(), "approve")
		w.crash()
		j, err := ledger.Open(context.Background(), w.settings.journalDir(), ledger.Options{})
		if err != nil {
			t.Fatal(err)
		}
		run := w.runs()[0]
		_, err = j.Append(context.Background(), ledger.Event{Session: run.Session, Run: id, Call: run.Calls[0].ID, Actor: run.StartedBy,
			Body: &ledger.OutcomeReported{Outcome: ledger.OutcomeDone, Output: "fine"}})
		if err := errors.Join(err, j.Close()); err != nil {
			t.Fatal(err)
		}
		w.start()
		w.pass(10 * time.Second)
		p := w.client(ciToken)
		mustBe(t, "status", p.do("GET", "/api/approvals/"+id, "").str("approval.status"), "done")
		p.do("POST", "/api/approvals/"+id+"/outcome", `{"ok":true,"output":"fine"}`).must(t, 200, "")
		mustBe(t, "state", w.runs()[0].Calls[0].State, ledger.OutputAvailable)
	})
}

// A message that was recorded and not begun when the process died asks nobody after the restart.
func TestAskNotBegun(t *testing.T) {
	listed(t, nil, func(w *world) {
		w.stop()
		j, err := ledger.Open(context.Background(), w.settings.journalDir(), ledger.Options{})
		if err != nil {
			t.Fatal(err)
		}
		_, err = j.Append(context.Background(), ledger.Event{Session: "ask/x", Actor: ledger.Actor{Kind: ledger.ActorToken, ID: "deploy-ci"},
			Body: &ledger.MessageReceived{Origin: ledger.Origin{Kind: "http", Token: "deploy-ci"}, Disposition: ledger.Starts, RunID: "run_x",
				Mode: ledger.ModeInteractive, Surface: ledger.SurfaceHTTP, Detach: true,
				Ask: &ledger.ProgramAsk{Program: "deploy-ci", Tool: "deploy", Arguments: "{}"}}})
		if err := errors.Join(err, j.Close()); err != nil {
			t.Fatal(err)
		}
		w.start()
		w.pass(time.Second)
		a := w.client(ciToken).do("GET", "/api/approvals/run_x", "")
		mustBe(t, "status and source", a.str("approval.status")+" "+a.str("approval.resolution.source"), "denied abort")
		mustBe(t, "asked", a.at("approval.request"), nil)
	})
}

func TestAskIdempotency(t *testing.T) {
	listed(t, nil, func(w *world) {
		p := w.client(ciToken)
		first := p.do("POST", "/api/approvals", wish("idempotencyKey", `"k1"`)).must(t, 200, "")
		again := p.do("POST", "/api/approvals", `{"idempotencyKey":"k1","arguments":{"to":"production","version":"1.2.3"},"tool":"deploy"}`).must(t, 200, "")
		mustBe(t, "the same", again.str("approval.id"), first.str("approval.id"))
		mustBe(t, "it says so", again.header.Get("Idempotent-Replayed"), "true")
		mustBe(t, "by header", p.do("POST", "/api/approvals", wish(), "Idempotency-Key", "k1").str("approval.id"), first.str("approval.id"))
		p.do("POST", "/api/approvals", wish("idempotencyKey", `"k1"`, "reason", `"else"`)).must(t, 422, "IDEMPOTENCY_KEY_REUSED")
		p.do("POST", "/api/approvals", wish("idempotencyKey", `"k1"`), "Idempotency-Key", "k2").must(t, 400, "INVALID_REQUEST")
		// Numbers that a float can't tell apart are different wishes.
		big := `{"tool":"pay","arguments":{"n":9007199254740993},"idempotencyKey":"k3"}`
		p.do("POST", "/api/approvals", big).must(t, 200, "")
		p.do("POST", "/api/approvals", strings.Replace(big, "993", "992", 1)).must(t, 422, "IDEMPOTENCY_KEY_REUSED")
		mustBe(t, "another token's key is its own", w.client("other-token-other-token").do("POST", "/api/approvals", wish("idempotencyKey", `"k1"`)).must(t, 200, "").header.Get("Idempotent-Replayed"), "")
		mustBe(t, "runs", len(w.runs()), 3)
	})
}

func TestAskInvalid(t *testing.T) {
	listed(t, nil, func(w *world) {
		p := w.client(ciToken)
		for field, body := range map[string]string{
			"tool":           `{"tool":"two words","arguments":{}}`,
			"arguments":      `{"tool":"t"}`,
			"arguments ":     `{"tool":"t","arguments":[]}`,
			"timeout":        wish("timeout", `"1ms"`),
			"timeout ":       wish("timeout", `30`),
			"slack":          wish("slack", `{"channel":7}`),
			"reason":         wish("reason", `"`+strings.Repeat("ü", 4001)+`"`),
			"cwd":            wish("cwd", `null`),
			"idempotencyKey": wish("idempotencyKey", `"a b"`),
		} {
			a := p.do("POST", "/api/approvals", body).must(t, 400, "INVALID_REQUEST")
			fields, _ := a.at("validationErrors.fieldErrors").(map[string]any)
			if fields[strings.TrimSpace(field)] == nil {
				t.Errorf("%s: %s", field, a.raw)
			}
		}
		for _, body := range []string{``, `[]`, wish("x", "1"), `{"tool":"t","arguments":{"a":1,"a":2}}`} {
			a := p.do("POST", "/api/approvals", body).must(t, 400, "INVALID_REQUEST")
			if all, _ := a.at("validationErrors.formErrors").([]any); len(all) == 0 {
				t.Errorf("%s: %s", body, a.raw)
			}
		}
		p.do("POST", "/api/approvals", wish("slack", `{"channel":"C0NOTLISTED"}`)).must(t, 403, "CHANNEL_NOT_LISTED")
		p.do("POST", "/api/approvals", strings.Repeat(" ", 10<<20)).must(t, 413, "TOO_LARGE")
		id := p.do("POST", "/api/approvals", wish()).str("approval.id")
		for _, wait := range []string{"x", "-1s", "1h"} {
			p.do("GET", "/api/approvals/"+id+"?wait="+wait, "").must(t, 400, "INVALID_REQUEST")
		}
		for _, body := range []string{``, `{}`, `{"ok":"yes"}`, `{"ok":true,"x":1}`, `{"ok":true,"output":1}`} {
			p.do("POST", "/api/approvals/"+id+"/outcome", body).must(t, 400, "INVALID_REQUEST")
		}
		p.do("DELETE", "/api/approvals/"+id, "").must(t, 405, "")
		mustBe(t, "runs", len(w.runs()), 1)
	})
}

// The command: its exit codes are what scripts rely on.
func TestAskCommand(t *testing.T) {
	code := func(err error) int {
		if err == nil {
			return 0
		}
		if e, ok := errors.AsType[*exitError](err); ok {
			return e.code
		}
		return -1
	}
	command := func(w *world) askCmd {
		return askCmd{remote: remote{URL: "http://localhost", transport: w.client(ciToken).client.Transport},
			Tool: "deploy", Args: `{"version":"1.2.3"}`, Slack: w.general(), Reason: "the release"}
	}
	t.Setenv("APPROVALBOT_API_TOKEN", ciToken)
	for action, want := range map[string]int{"approve": 0, "deny": exitDenied, "": exitUnanswered} {
		t.Run("click "+action, func(t *testing.T) {
			listed(t, nil, func(w *world) {
				c := command(w)
				done := make(chan error)
				var id string
				go func() {
					var err error
					id, err = c.ask(context.Background(), io.Discard)
					done <- err
				}()
				w.pass(3 * time.Second)
				if action != "" {
					w.click("bob", w.askCard(), action)
				}
				err := <-done
				mustBe(t, "exit code", code(err), want)
				if want == 0 {
					if err := (outcomeCmd{remote: c.remote, ID: id, Output: "fine"}).Run(context.Background()); err != nil {
						t.Error(err)
					}
					w.pass(5 * time.Second)
					mustSay(t, w.askCard().text, "Done", "fine")
				}
				c.transport.(*http.Transport).CloseIdleConnections()
			})
		})
	}
	t.Run("interrupted", func(t *testing.T) {
		listed(t, nil, func(w *world) {
			c := command(w)
			ctx, interrupt := context.WithCancel(context.Background())
			done := make(chan error)
			go func() { _, err := c.ask(ctx, io.Discard); done <- err }()
			w.pass(3 * time.Second)
			interrupt()
			mustBe(t, "exit code", code(<-done), exitUnanswered)
			w.pass(5 * time.Second)
			mustSay(t, w.askCard().text, "stopped by", "Not performed.")
			c.transport.(*http.Transport).CloseIdleConnections()
		})
	})
	t.Run("refused", func(t *testing.T) {
		listed(t, nil, func(w *world) {
			c := command(w)
			c.Slack = "C0NOTLISTED"
			_, err := c.ask(context.Background(), io.Discard)
			mustBe(t, "exit code", code(err), exitNotAsked)
			mustSay(t, err.Error(), "APPROVALBOT_CHANNELS")
			c.transport.(*http.Transport).CloseIdleConnections()
		})
	})
	for name, args := range map[string][]string{
		"no tool":   {"ask"},
		"bad flag":  {"ask", "--tool", "t", "--nonsense"},
		"bad JSON":  {"ask", "--tool", "t", "--args", "{"},
		"bad url":   {"ask", "--tool", "t", "--url", "ftp://x"},
		"nobody":    {"ask", "--tool", "t", "--url", "http://127.0.0.1:1"},
		"no thread": {"ask", "--tool", "t", "--thread", "1.2"},
	} {
		t.Run(name, func(t *testing.T) {
			mustBe(t, "exit code", code(run(t.Context(), args)), exitNotAsked)
		})
	}
	t.Setenv("APPROVALBOT_API_TOKEN", "")
	mustBe(t, "without a token", code(run(t.Context(), []string{"ask", "--tool", "t"})), exitNotAsked)
}

// A script that has run wild is stopped, and others are not.
func TestAskTooMany(t *testing.T) {
	listed(t, nil, func(w *world) {
		p := w.client(ciToken)
		for range 20 {
			p.do("POST", "/api/approvals", wish()).must(t, 200, "")
		}
		p.do("POST", "/api/approvals", wish()).must(t, 429, "TOO_MANY_ASKS")
		w.client(localToken).do("POST", "/api/approvals", wish()).must(t, 200, "")
		w.pass(2 * time.Minute) // nobody could be asked
		p.do("POST", "/api/approvals", wish()).must(t, 200, "")
	})
}

// While the journal can't be written nothing is asked and nothing is reported; afterwards both work.
func TestAskDiskFull(t *testing.T) {
	listed(t, nil, func(w *world) {
		p := w.client(ciToken)
		id := p.do("POST", "/api/approvals", wish("slack", inSlack(w))).str("approval.id")
		w.pass(3 * time.Second)
		w.click("bob", w.askCard(), "approve")
		release := ledgertest.Lock(t, w.settings.journalDir())
		p.do("POST", "/api/approvals/"+id+"/outcome", `{"ok":true,"output":"fine"}`).must(t, 503, "NOT_RECORDED")
		p.do("POST", "/api/approvals", wish("idempotencyKey", `"k"`)).must(t, 503, "NOT_RECORDED")
		release()
		w.pass(10 * time.Second)
		mustBe(t, "status", p.do("POST", "/api/approvals/"+id+"/outcome", `{"ok":true,"output":"fine"}`).must(t, 200, "").str("approval.status"), "done")
		p.do("POST", "/api/approvals", wish("idempotencyKey", `"k"`)).must(t, 200, "")
	})
}

// The process stops while a program acts: what it could do is not known, and the card says so.
func TestAskShutdownWhileActing(t *testing.T) {
	listed(t, nil, func(w *world) {
		id := w.client(ciToken).do("POST", "/api/approvals", wish("slack", inSlack(w))).str("approval.id")
		w.pass(3 * time.Second)
		w.click("bob", w.askCard(), "approve")
		w.stop()
		mustSay(t, w.askCard().text, "No outcome reported.")
		run := w.runs()[0]
		mustBe(t, "run and code", run.ID+" "+run.Calls[0].Finished.Code, id+" NO_OUTCOME")
		mustSay(t, run.Calls[0].Outcome.Reason, "approvalbot was stopped")
	})
}
