// Package model talks to language models.
//
// A [Model] is a function: a [Request] in, a [Response] out, with the text
// streamed meanwhile. It keeps no conversation. Everything that it may know
// stands in the request, so a run that is rebuilt from its journal asks the
// same question as the run that was interrupted, and [RequestHash] can show it.
//
// # Messages
//
// A conversation alternates between what people wrote ([RoleUser]), what the
// model answered ([RoleAssistant]: text and tool calls) and the results of
// those calls ([RoleTool]: one result for each call, in the order of the
// calls). Raw holds a provider's own blocks for an assistant message; it is
// opaque here and goes back to the same provider unchanged.
//
// # Tool calls
//
// The arguments of a call are passed on as the model wrote them, valid or not.
// Whoever runs the call parses them.
//
// # Providers
//
// Two kinds of provider are spoken to, Anthropic and OpenAI, and every server
// that speaks as they do. A conversation is put into one order that both accept
// (conversation.go): every call with exactly one result right behind it, every id
// and name legal, nothing empty; what can't be put so is refused before it is
// sent. An answer counts when it has ended as the provider's API says, and then
// as a whole: what broke off, was cut at its limit within a call, or makes no
// sense is an [*Error], and nothing of it comes back. Whoever asks does the
// asking again: no request is repeated here, no redirect followed, and nothing
// is read from the environment.
//
// # Errors
//
// An [*Error] says whether the same request may succeed later
// ([IsRetryable]). The context's error comes back as it is.
package model

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

// Model is a language model, or something that acts as one. Implementations are
// safe for concurrent use.
type Model interface {
	// Name is the name by which [Open] finds the model.
	Name() string
	// Generate samples one response. onDelta, which may be nil, gets the pieces
	// of the text as they come, from the caller's goroutine; together they are
	// Response.Text.
	Generate(ctx context.Context, req Request, onDelta func(text string)) (Response, error)
}

// Request is everything that a model gets to know.
type Request struct {
	System    string     `json:"system,omitempty"`
	Messages  []Message  `json:"messages"`
	Tools     []ToolSpec `json:"tools,omitempty"`
	MaxTokens int        `json:"maxTokens,omitempty"` // 0: the model's own limit
}

// Role says who speaks in a message.
type Role string

// The roles.
const (
	RoleUser      Role = "user"
	RoleAssistant Role = "assistant"
	RoleTool      Role = "tool"
)

// Message is one step of a conversation. Which fields are used depends on Role.
type Message struct {
	Role      Role            `json:"role"`
	Text      string          `json:"text,omitempty"`      // user, assistant
	ToolCalls []ToolCall      `json:"toolCalls,omitempty"` // assistant
	Results   []ToolResult    `json:"results,omitempty"`   // tool
	Raw       json.RawMessage `json:"raw,omitempty"`       // assistant: the provider's own blocks
}

// ToolSpec is a tool as a model sees it.
type ToolSpec struct {
	Name        string          `json:"name"`
	Description string          `json:"description"`
	InputSchema json.RawMessage `json:"inputSchema"` // a JSON schema of an object
}

// ToolCall is a model's wish to call a tool.
type ToolCall struct {
	ID        string `json:"id"`
	Name      string `json:"name"`
	Arguments string `json:"arguments"` // as the model wrote it
}

// ToolResult is what a model is told of one of its calls.
type ToolResult struct {
	ToolCallID string `json:"toolCallId"`
	Text       string `json:"text"`
	IsError    bool   `json:"isError,omitempty"`
}

// Response is one sample.
type Response struct {
	Text       string          `json:"text,omitempty"`
	ToolCalls  []ToolCall      `json:"toolCalls,omitempty"`
	Usage      Usage           `json:"usage"`
	StopReason string          `json:"stopReason"`
	Raw        json.RawMessage `json:"raw,omitempty"`
}

// Why a model stopped. Providers have more reasons; these are the ones that
// every model here uses for the usual endings.
const (
	StopEndTurn   = "end_turn"
	StopToolUse   = "tool_use"
	StopMaxTokens = "max_tokens"
)

// Usage is what a sample cost. A model that doesn't count reports zeros.
type Usage struct {
	InputTokens  int `json:"inputTokens"` // all of them, cached ones included
	OutputTokens int `json:"outputTokens"`

	// The parts of InputTokens that have a price of their own.
	CacheReadTokens  int `json:"cacheReadTokens,omitempty"`
	CacheWriteTokens int `json:"cacheWriteTokens,omitempty"`
}

// ErrorKind says what was wrong, as far as it makes a difference to people or
// to what is done about it.
type ErrorKind string

// The kinds of error. A value that isn't one of them is a fault of another kind.
const (
	ErrKey         ErrorKind = "key"              // no API key, or one that is not accepted
	ErrModel       ErrorKind = "unknown_model"    // the provider has no such model, or not for this key
	ErrContext     ErrorKind = "context_too_long" // the request is longer than the model's context
	ErrRefused     ErrorKind = "refused"          // the provider or the model declined to answer this request
	ErrRateLimit   ErrorKind = "rate_limited"     // too many requests or tokens in too little time
	ErrQuota       ErrorKind = "quota"            // the account's money or quota is used up
	ErrOverloaded  ErrorKind = "overloaded"       // the provider has too much to do
	ErrUnavailable ErrorKind = "unavailable"      // it can't be reached, or failed on its side
	ErrBroken      ErrorKind = "broken_answer"    // the answer ended in the middle, or makes no sense
	ErrInvalid     ErrorKind = "invalid_request"  // it refuses the request as malformed
)

// Error is a model's failure to answer. Nothing of an answer that failed is
// ever executed: no tool call comes back with it.
type Error struct {
	Kind      ErrorKind
	Message   string // a sentence for the person who waits, with what to do where there is something
	Retryable bool   // the same request may succeed later
	// RetryAfter is how long the provider wants to be left alone; 0 where it
	// didn't say.
	RetryAfter time.Duration
	Err        error
}

func (e *Error) Error() string {
	if e.Err == nil {
		return e.Message
	}
	return fmt.Sprintf("%s: %v", e.Message, e.Err)
}

func (e *Error) Unwrap() error { return e.Err }

// IsRetryable reports whether the same request may succeed later. An error that
// doesn't say so is permanent.
func IsRetryable(err error) bool {
	var e *Error
	return errors.As(err, &e) && e.Retryable
}
