package slackui

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"time"

	"approvalbot/internal/language"
	"approvalbot/internal/ledger"
	"approvalbot/internal/redact"
)

var (
	start = time.Date(2026, 3, 4, 9, 30, 0, 0, time.UTC)
	alice = ledger.Actor{Kind: ledger.ActorUser, Team: "T0TEAM", ID: "U0ALICE", Name: "alice", Via: "slack"}
	bob   = ledger.Actor{Kind: ledger.ActorUser, Team: "T0TEAM", ID: "U0BOB", Name: "bob", Via: "slack"}
	carol = ledger.Actor{Kind: ledger.ActorUser, Team: "T0TEAM", ID: "U0CAROL", Name: "carol", Via: "slack"}
	ci    = ledger.Actor{Kind: ledger.ActorToken, ID: "ci", Via: "http"}
)

func testRenderer() *renderer { return rendererIn(language.English) }

func rendererIn(l language.Language) *renderer {
	return &renderer{redactor: redact.New("our-own-secret-token", "1111-2222-3333-4444"), lang: l, team: "T0TEAM", botUser: "U0BOT"}
}

// A story is a run being told, event by event.
type story struct {
	run ledger.Run
	seq int64
	now time.Time

	events []ledger.Event
}

func newStory() *story {
	s := &story{now: start, seq: 6}
	s.add("", alice, &ledger.RunStarted{Message: 7, Requesters: []ledger.Person{alice.Person()}, Model: "demo", Mode: "interactive"})
	return s
}

func (s *story) add(call string, by ledger.Actor, b ledger.Body) *story {
	s.seq++
	s.now = s.now.Add(time.Second)
	e := ledger.Event{Seq: s.seq, Time: s.now, Session: "slack/T0TEAM/C0GENERAL/1.1", Run: "run-1", Call: call, Actor: by, Body: b}
	s.run.Apply(e)
	s.events = append(s.events, e)
	return s
}

func message(text string) ledger.Event {
	return ledger.Event{Seq: 7, Time: start, Actor: alice, Body: &ledger.MessageReceived{Text: text, Disposition: ledger.Starts}}
}

// calls is a sample of the model with these calls: id, tool, arguments.
func (s *story) calls(text string, calls ...ledger.ToolCall) *story {
	round := len(s.run.Rounds) + 1
	return s.add("", ledger.Actor{Kind: ledger.ActorModel, ID: "demo"}, &ledger.ModelCompleted{Round: round, Text: text, ToolCalls: calls})
}

func toolCall(id, name, arguments string) ledger.ToolCall {
	return ledger.ToolCall{ID: id, Name: name, Arguments: arguments}
}

// ask asks about a call; change may alter the request.
func (s *story) ask(call string, change func(*ledger.ApprovalRequested)) *story {
	c := s.run.Call(call)
	digest := sha256.Sum256([]byte(c.Arguments))
	req := &ledger.ApprovalRequested{
		Approval: "0f8fad5b-d9cb-469f-a165-70867728950" + call[len(call)-1:], Tool: c.Name, Arguments: c.Arguments,
		Digest: hex.EncodeToString(digest[:]), Reason: c.Name + " can change things, so it needs approval (policy on_request).", Rule: "approvalPolicy=on_request",
		Requesters: []ledger.Person{alice.Person()}, Approvers: []string{"channel"}, Quorum: 1, Timeout: 2 * time.Minute,
		Surfaces: []string{"slack"},
	}
	if change != nil {
		change(req)
	}
	s.add(call, ledger.System, &ledger.PermissionDecided{Tool: c.Name, Type: ledger.Ask, Source: "policy"})
	return s.add(call, ledger.System, req)
}

func (s *story) shown(call string) *story {
	a := s.run.Call(call).Approval
	return s.add(call, ledger.System, &ledger.ApprovalShown{Approval: a.Approval, Surface: "slack", Channel: "C0GENERAL", TS: "1.2", Until: s.now.Add(2 * time.Minute)})
}

// amend changes a command that was asked about.
func (s *story) amend(call string, by ledger.Actor, command string) *story {
	a := s.run.Call(call).Approval
	q := *a.ApprovalRequested
	shell(command)(&q)
	digest := sha256.Sum256([]byte(q.Arguments))
	return s.add(call, by, &ledger.ApprovalAmended{Approval: a.Approval, Revision: a.Revision() + 1, Arguments: q.Arguments, Digest: hex.EncodeToString(digest[:]),
		Preview: q.Preview, Reason: q.Reason, Rule: q.Rule, Risk: q.Risk, Confirm: q.Confirm, Approvers: q.Approvers, Quorum: q.Quorum})
}

func (s *story) vote(call string, by ledger.Actor, t ledger.ResolutionType, reason string) *story {
	return s.add(call, by, &ledger.ApprovalVoted{Approval: s.run.Call(call).Approval.Approval, Type: t, Reason: reason, Revision: s.run.Call(call).Approval.Revision()})
}

func (s *story) resolve(call string, t ledger.ResolutionType, source ledger.Source, reason string, by *ledger.Actor) *story {
	return s.add(call, ledger.System, &ledger.ApprovalResolved{Approval: s.run.Call(call).Approval.Approval, Type: t, Source: source, Reason: reason, By: by})
}

func (s *story) approve(call string, by ledger.Actor) *story {
	return s.vote(call, by, ledger.Approved, "").resolve(call, ledger.Approved, ledger.SourceUser, "", &by)
}

func (s *story) deny(call string, by ledger.Actor, reason string) *story {
	return s.vote(call, by, ledger.Denied, reason).resolve(call, ledger.Denied, ledger.SourceUser, reason, &by)
}

func (s *story) started(call string) *story {
	return s.add(call, ledger.System, &ledger.ToolStarted{Tool: s.run.Call(call).Name})
}

func (s *story) finish(call string, f ledger.ToolFinished) *story {
	f.Tool = s.run.Call(call).Name
	return s.add(call, ledger.System, &f)
}

func (s *story) done(call, output string) *story {
	return s.finish(call, ledger.ToolFinished{State: ledger.OutputAvailable, Output: output, Elapsed: 1234 * time.Millisecond})
}

func (s *story) stop(by ledger.Actor) *story {
	return s.add("", by, &ledger.RunStopRequested{Reason: "stopped by " + by.Name})
}

func (s *story) end(status ledger.RunStatus, answer, reason string) *story {
	return s.add("", ledger.System, &ledger.RunFinished{Status: status, Answer: answer, Reason: reason, Rounds: len(s.run.Rounds)})
}

func (s *story) call(id string) *ledger.Call { return s.run.Call(id) }

// shell asks about a command, as the tool describes it.
func shell(command string) func(*ledger.ApprovalRequested) {
	return func(r *ledger.ApprovalRequested) {
		raw, _ := json.Marshal(map[string]string{"command": command})
		r.Arguments, r.Cwd = string(raw), "/srv/workspace"
		word := command
		for i, c := range command {
			if c == ' ' {
				word = command[:i]
				break
			}
		}
		r.Preview = ledger.Preview{Summary: "Run " + command, Target: word, Kind: "command", Body: command,
			Notes: []string{"Not confined: it can do whatever approvalbot's own user can."}}
	}
}

// askedShell is a story up to the card of one command.
func askedShell(command string) *story {
	return newStory().calls("", toolCall("call_1", "shell", fmt.Sprintf(`{"command":%q}`, command))).ask("call_1", shell(command)).shown("call_1")
}
