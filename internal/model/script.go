package model

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	jsonv2 "github.com/go-json-experiment/json"
)

// Script plays turns from a file, for tests and demonstrations:
//
//	{"turns": [
//	  {"toolCalls": [{"id": "c1", "name": "shell", "arguments": {"command": "date"}}]},
//	  {"expectResults": [{"contains": "2026"}], "text": "Done."}
//	]}
//
// # Which turn
//
// The turn is found in the request alone: the first answer after the last
// message of a person is the first turn, and so on. So every run plays the
// script from its beginning, several runs may play it at once, and a run that
// goes on after a restart goes on in the right place. A turn with "when" exists
// only in runs whose last user message fits; by it one file can hold several
// conversations.
//
// # What a turn does
//
// In this order: "expectResults" checks what the run made of the calls before;
// "error" streams its own "delta" and fails, as often as "times" says, with
// "kind", "retryable" and "retryAfterMs" as a provider would; "hang" waits for the context's end; then "text" is streamed,
// in the pieces of "delta" if there are any, each "deltaMs" after the one before,
// and the tool calls are returned.
type Script struct {
	name  string
	turns []turn

	mu     sync.Mutex
	failed map[string]int // by request hash: how often an error with "times" came
}

type scriptFile struct {
	Turns []turn `json:"turns"`
}

type turn struct {
	When          *when      `json:"when"`
	ExpectResults []expect   `json:"expectResults"`
	Error         *turnError `json:"error"`
	Hang          bool       `json:"hang"`
	Text          string     `json:"text"`
	Delta         []string   `json:"delta"`
	DeltaMs       int64      `json:"deltaMs"`
	ToolCalls     []turnCall `json:"toolCalls"`
	StopReason    string     `json:"stopReason"`
	Usage         Usage      `json:"usage"`
}

// when selects the runs that a turn belongs to.
type when struct {
	UserContains string `json:"userContains"`
}

// expect is what one result of the calls before has to be; what isn't given
// isn't checked.
type expect struct {
	ToolCallID  *string `json:"toolCallId"`
	Equals      *string `json:"equals"`
	Contains    *string `json:"contains"`
	NotContains *string `json:"notContains"`
	IsError     *bool   `json:"isError"`
}

// turnError is a failure of the model. Times limits how often the same request
// fails before the turn goes on; 0 is always.
type turnError struct {
	Kind         ErrorKind `json:"kind"`
	Message      string    `json:"message"`
	Retryable    bool      `json:"retryable"`
	RetryAfterMs int64     `json:"retryAfterMs"`
	Times        int       `json:"times"`
	Delta        []string  `json:"delta"`
}

// turnCall is a tool call; argumentsText is for arguments that aren't JSON.
type turnCall struct {
	ID            string          `json:"id"`
	Name          string          `json:"name"`
	Arguments     json.RawMessage `json:"arguments"`
	ArgumentsText *string         `json:"argumentsText"`
}

// OpenScript reads a script. A member that it doesn't know is an error: a typo
// in a script shouldn't make a test pass.
func OpenScript(file string) (*Script, error) {
	content, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("the script: %w", err)
	}
	s, err := ParseScript("script:"+file, content)
	if err != nil {
		return nil, fmt.Errorf("the script %s: %w", file, err)
	}
	return s, nil
}

// ParseScript makes a model of that name from the content of a script file.
func ParseScript(name string, content []byte) (*Script, error) {
	var f scriptFile
	if err := jsonv2.Unmarshal(content, &f, jsonv2.RejectUnknownMembers(true)); err != nil {
		return nil, err
	}
	if len(f.Turns) == 0 {
		return nil, fmt.Errorf("it has no turns")
	}
	for i := range f.Turns {
		if err := f.Turns[i].check(); err != nil {
			return nil, fmt.Errorf("turn %d: %w", i+1, err)
		}
	}
	return &Script{name: name, turns: f.Turns, failed: map[string]int{}}, nil
}

func (t *turn) check() error {
	joined := strings.Join(t.Delta, "")
	switch {
	case t.Text == "":
		t.Text = joined
	case len(t.Delta) > 0 && joined != t.Text:
		return fmt.Errorf("the pieces of delta don't make up the text")
	case len(t.Delta) == 0:
		t.Delta = []string{t.Text}
	}
	if t.Error != nil && t.Error.Message == "" {
		return fmt.Errorf("the error has no message")
	}
	for i, c := range t.ToolCalls {
		if (len(c.Arguments) > 0) == (c.ArgumentsText != nil) {
			return fmt.Errorf("tool call %d needs either arguments or argumentsText", i+1)
		}
	}
	if t.StopReason == "" {
		t.StopReason = StopEndTurn
		if len(t.ToolCalls) > 0 {
			t.StopReason = StopToolUse
		}
	}
	return nil
}

// Name implements [Model].
func (s *Script) Name() string { return s.name }

// Generate implements [Model].
func (s *Script) Generate(ctx context.Context, req Request, onDelta func(string)) (Response, error) {
	if err := ctx.Err(); err != nil {
		return Response{}, err
	}
	t, n, err := s.turn(req.Messages)
	if err != nil {
		return Response{}, err
	}
	if err := checkResults(t.ExpectResults, req.Messages); err != nil {
		return Response{}, &Error{Message: fmt.Sprintf("%s, turn %d", s.name, n), Err: err}
	}
	if t.Error != nil && s.fails(*t.Error, req) {
		emit(onDelta, t.Error.Delta)
		return Response{}, &Error{
			Kind: t.Error.Kind, Message: t.Error.Message, Retryable: t.Error.Retryable,
			RetryAfter: time.Duration(t.Error.RetryAfterMs) * time.Millisecond,
		}
	}
	if t.Hang {
		<-ctx.Done()
		return Response{}, ctx.Err()
	}
	if err := t.stream(ctx, onDelta); err != nil {
		return Response{}, err
	}
	return t.response(), nil
}

// stream tells the text in its pieces, as slowly as the turn says.
func (t turn) stream(ctx context.Context, onDelta func(string)) error {
	if t.DeltaMs <= 0 {
		emit(onDelta, t.Delta)
		return nil
	}
	tick := time.NewTicker(time.Duration(t.DeltaMs) * time.Millisecond)
	defer tick.Stop()
	for i := range t.Delta {
		select {
		case <-tick.C:
			emit(onDelta, t.Delta[i:i+1])
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// turn finds the turn that answers these messages, and its number in the run.
func (s *Script) turn(messages []Message) (turn, int, error) {
	user := lastUser(messages)
	text := ""
	if user >= 0 {
		text = messages[user].Text
	}
	n := 1
	for _, m := range messages[user+1:] {
		if m.Role == RoleAssistant {
			n++
		}
	}
	seen := 0
	for _, t := range s.turns {
		if t.When != nil && !strings.Contains(text, t.When.UserContains) {
			continue
		}
		if seen++; seen == n {
			return t, n, nil
		}
	}
	return turn{}, 0, &Error{Message: fmt.Sprintf("%s has %d turns for this run and was asked for turn %d", s.name, seen, n)}
}

func (s *Script) fails(e turnError, req Request) bool {
	if e.Times == 0 {
		return true
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	hash := RequestHash(req)
	s.failed[hash]++
	return s.failed[hash] <= e.Times
}

func (t turn) response() Response {
	r := Response{Text: t.Text, StopReason: t.StopReason, Usage: t.Usage}
	for _, c := range t.ToolCalls {
		call := ToolCall{ID: c.ID, Name: c.Name}
		if c.ArgumentsText != nil {
			call.Arguments = *c.ArgumentsText
		} else {
			call.Arguments = string(bytes.TrimSpace(c.Arguments))
		}
		r.ToolCalls = append(r.ToolCalls, call)
	}
	return r
}

// checkResults compares the results at the end of the conversation with what is
// expected of them, in their order.
func checkResults(expected []expect, messages []Message) error {
	if len(expected) == 0 {
		return nil
	}
	results := lastResults(messages)
	if len(results) != len(expected) {
		return fmt.Errorf("expected %d results, got %d", len(expected), len(results))
	}
	for i, e := range expected {
		if err := e.check(results[i]); err != nil {
			return fmt.Errorf("result %d: %w", i+1, err)
		}
	}
	return nil
}

func (e expect) check(r ToolResult) error {
	switch {
	case e.ToolCallID != nil && *e.ToolCallID != r.ToolCallID:
		return fmt.Errorf("expected the call %q, got %q", *e.ToolCallID, r.ToolCallID)
	case e.IsError != nil && *e.IsError != r.IsError:
		return fmt.Errorf("expected isError %t, got the text %q", *e.IsError, r.Text)
	case e.Equals != nil && *e.Equals != r.Text:
		return fmt.Errorf("expected %q, got %q", *e.Equals, r.Text)
	case e.Contains != nil && !strings.Contains(r.Text, *e.Contains):
		return fmt.Errorf("expected a text with %q, got %q", *e.Contains, r.Text)
	case e.NotContains != nil && strings.Contains(r.Text, *e.NotContains):
		return fmt.Errorf("expected a text without %q, got %q", *e.NotContains, r.Text)
	}
	return nil
}
