package model

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/anthropics/anthropic-sdk-go/v2"
	"github.com/anthropics/anthropic-sdk-go/v2/option"
	"github.com/anthropics/anthropic-sdk-go/v2/packages/param"
	"github.com/anthropics/anthropic-sdk-go/v2/packages/ssestream"
)

// anthropicModel speaks Anthropic's Messages API.
type anthropicModel struct {
	provider
	messages  anthropic.MessageService
	models    anthropic.ModelService
	maxTokens int
}

func openAnthropic(name string, o Options) (*anthropicModel, error) {
	p, err := newProvider(provider{
		label: "Anthropic", model: name, name: "anthropic/" + name, key: o.AnthropicKey,
		keySetting: "ANTHROPIC_API_KEY", urlSetting: "ANTHROPIC_BASE_URL",
		stall: o.stall(),
	}, "https://api.anthropic.com", o.AnthropicBaseURL)
	if err != nil {
		return nil, err
	}
	// The services and not the SDK's client: that would read the environment, and
	// bring every other API of the provider into the program.
	opts := []option.RequestOption{
		option.WithBaseURL(p.base.String()),
		option.WithHTTPClient(newDoer(o)),
		option.WithMaxRetries(0),                  // whoever asks has to know of every attempt
		option.WithRequestTimeout(24 * time.Hour), // silence ends a request, and the context; length doesn't
		option.WithOpenTelemetryTraces(false),
		option.WithOpenTelemetryPropagation(false),
	}
	if p.key != "" {
		opts = append(opts, option.WithAPIKey(p.key))
	}
	m := &anthropicModel{
		provider: p, messages: anthropic.NewMessageService(opts...), models: anthropic.NewModelService(opts...), maxTokens: o.MaxTokens,
	}
	if m.maxTokens == 0 {
		m.maxTokens = DefaultMaxTokens
	}
	return m, nil
}

// Name implements [Model].
func (m *anthropicModel) Name() string { return m.name }

// Generate implements [Model].
func (m *anthropicModel) Generate(ctx context.Context, req Request, onDelta func(string)) (Response, error) {
	if err := ctx.Err(); err != nil {
		return Response{}, err
	}
	params, err := m.params(req)
	if err != nil {
		return Response{}, err
	}
	var res *http.Response // it is read here: the SDK would take a stream without an end for a whole one
	opts := []option.RequestOption{option.WithResponseBodyInto(&res)}
	if onDelta != nil {
		opts = append(opts, option.WithJSONSet("stream", true), option.WithHeader("Accept", eventStreamType))
	}
	w, watched, end := m.watch(ctx)
	defer end()
	if _, err := m.messages.New(watched, *params, opts...); err != nil {
		return Response{}, m.unwatched(ctx, watched, err)
	}
	defer res.Body.Close()
	r, err := m.read(res, onDelta, w)
	if err != nil {
		return Response{}, m.unwatched(ctx, watched, err)
	}
	return r, nil
}

// params is the request as Anthropic wants it.
func (m *anthropicModel) params(req Request) (*anthropic.MessageNewParams, error) {
	all, err := wireTurns(req.Messages, anthropicID)
	if err != nil {
		return nil, err
	}
	p := &anthropic.MessageNewParams{Model: m.model, MaxTokens: int64(m.maxTokens)}
	if req.MaxTokens > 0 {
		p.MaxTokens = int64(req.MaxTokens)
	}
	if !blank(req.System) {
		p.System = []anthropic.TextBlockParam{{Text: req.System}}
	}
	tools := req.Tools
	if len(tools) == 0 {
		if tools = called(all); len(tools) > 0 {
			p.ToolChoice = anthropic.ToolChoiceUnionParam{OfNone: &anthropic.ToolChoiceNoneParam{}}
		}
	}
	for _, t := range tools {
		tool, err := anthropicTool(t)
		if err != nil {
			return nil, err
		}
		p.Tools = append(p.Tools, anthropic.ToolUnionParam{OfTool: tool})
	}
	for _, t := range all {
		if t.role == RoleAssistant {
			p.Messages = append(p.Messages, anthropic.NewAssistantMessage(m.assistant(t)...))
			continue
		}
		p.Messages = append(p.Messages, anthropic.NewUserMessage(anthropicUser(t)...))
	}
	anthropicCache(p)
	return p, nil
}

// called are the tools that a conversation speaks of, for a request that offers
// none: Anthropic refuses calls in one that defines no tools.
func called(all []wireTurn) (tools []ToolSpec) {
	for _, t := range all {
		for _, c := range t.calls {
			if !slices.ContainsFunc(tools, func(s ToolSpec) bool { return s.Name == c.name }) {
				tools = append(tools, ToolSpec{Name: c.name, Description: "No longer there."})
			}
		}
	}
	return tools
}

// anthropicID tells which ids of calls Anthropic takes.
func anthropicID(id string) bool {
	for i := range len(id) {
		if !isAlphanumeric(id[i]) && id[i] != '_' && id[i] != '-' {
			return false
		}
	}
	return id != "" && len(id) <= 64
}

func anthropicTool(t ToolSpec) (*anthropic.ToolParam, error) {
	schema, err := objectSchema(t.InputSchema)
	if err != nil {
		return nil, invalid("the schema of the tool %s can't be read: %v", t.Name, err)
	}
	tool := &anthropic.ToolParam{Name: t.Name, InputSchema: param.Override[anthropic.ToolInputSchemaParam](schema)}
	if !blank(t.Description) {
		tool.Description = anthropic.String(t.Description)
	}
	return tool, nil
}

// anthropicUser is what came back from the round before, then what people wrote:
// results have to be the first in a message.
func anthropicUser(t wireTurn) []anthropic.ContentBlockParamUnion {
	var blocks []anthropic.ContentBlockParamUnion
	for _, r := range t.results {
		b := &anthropic.ToolResultBlockParam{ToolUseID: r.id}
		if !blank(r.Text) {
			b.Content = []anthropic.ToolResultBlockParamContentUnion{{OfText: &anthropic.TextBlockParam{Text: r.Text}}}
		}
		if r.IsError {
			b.IsError = anthropic.Bool(true)
		}
		blocks = append(blocks, anthropic.ContentBlockParamUnion{OfToolResult: b})
	}
	for _, text := range t.texts {
		blocks = append(blocks, anthropic.NewTextBlock(text))
	}
	return blocks
}

// anthropicCache marks what the next request will begin with: the tools and the
// system prompt, and the conversation so far. A run asks again and again with
// little added; what is marked costs a tenth then.
func anthropicCache(p *anthropic.MessageNewParams) {
	mark := anthropic.NewCacheControlEphemeralParam()
	switch {
	case len(p.System) > 0:
		p.System[len(p.System)-1].CacheControl = mark
	case len(p.Tools) > 0:
		p.Tools[len(p.Tools)-1].OfTool.CacheControl = mark
	}
	last := p.Messages[len(p.Messages)-1].OfUser.Content
	switch b := last[len(last)-1]; {
	case b.OfText != nil:
		b.OfText.CacheControl = mark
	case b.OfToolResult != nil:
		b.OfToolResult.CacheControl = mark
	}
}

// ownBlocks is what [Message.Raw] holds: the content of a message, and the model
// that wrote it. Only that model gets it back; to another one, its thoughts and
// their signatures mean nothing or are an error.
type ownBlocks struct {
	Model   string            `json:"model"`
	Content []json.RawMessage `json:"content"`
}

// assistant is what the model said before: its own blocks where they are known,
// else made of text and calls.
func (m *anthropicModel) assistant(t wireTurn) []anthropic.ContentBlockParamUnion {
	if blocks := m.own(t); blocks != nil {
		return blocks
	}
	var blocks []anthropic.ContentBlockParamUnion
	for _, text := range t.texts {
		blocks = append(blocks, anthropic.NewTextBlock(text))
	}
	for _, c := range t.calls {
		blocks = append(blocks, anthropic.NewToolUseBlock(c.id, object(c.Arguments), c.name))
	}
	return blocks
}

// own gives the model its own blocks back, with the ids that the calls have in
// this request. It returns nil for what isn't this model's or doesn't fit the turn.
func (m *anthropicModel) own(t wireTurn) []anthropic.ContentBlockParamUnion {
	var raw ownBlocks
	if !isObject(t.raw) || json.Unmarshal(t.raw, &raw) != nil || raw.Model != m.name {
		return nil
	}
	var blocks []anthropic.ContentBlockParamUnion
	calls, said := t.calls, false
	for _, b := range raw.Content {
		var peek struct{ Type, Name, Text string }
		if json.Unmarshal(b, &peek) != nil {
			return nil
		}
		switch {
		case peek.Type == "": // no request with it would be accepted
			return nil
		case peek.Type == "text" && blank(peek.Text):
			continue // it sends such blocks, and refuses them
		case peek.Type == "tool_use":
			if len(calls) == 0 || calls[0].Name != peek.Name {
				return nil
			}
			if b = ownCall(b, calls[0]); b == nil {
				return nil
			}
			calls = calls[1:]
		}
		said = said || peek.Type == "text" || peek.Type == "tool_use"
		blocks = append(blocks, param.Override[anthropic.ContentBlockParamUnion](b))
	}
	if len(calls) > 0 || !said {
		return nil
	}
	return blocks
}

// ownCall is a block of a call, changed only where it has to be.
func ownCall(b json.RawMessage, c wireCall) json.RawMessage {
	var members map[string]json.RawMessage
	if json.Unmarshal(b, &members) != nil {
		return nil
	}
	var id, name string
	if json.Unmarshal(members["id"], &id) == nil && id == c.id &&
		json.Unmarshal(members["name"], &name) == nil && name == c.name && isObject(members["input"]) && isObject(json.RawMessage(c.Arguments)) {
		return b
	}
	members["id"], _ = json.Marshal(c.id) // strings always have a form
	members["name"], _ = json.Marshal(c.name)
	members["input"] = object(c.Arguments)
	changed, err := json.Marshal(members)
	if err != nil {
		return nil
	}
	return changed
}

// read takes the answer, streamed or whole.
func (m *anthropicModel) read(res *http.Response, onDelta func(string), w *watch) (Response, error) {
	switch t := mediaType(res); {
	case t == eventStreamType:
		return m.stream(res, onDelta, w)
	case t == "text/html":
		return Response{}, m.notAnAPI()
	}
	text, err := io.ReadAll(res.Body)
	if err != nil {
		return Response{}, m.broken("broke off", err)
	}
	s := anthropicAnswer{}
	if err := unmarshal(text, &s.message); err != nil || s.message.Type != "message" {
		return Response{}, m.notAnAnswer(text, err)
	}
	for _, b := range s.message.Content {
		s.blocks = append(s.blocks, &anthropicBlock{kind: b.Type, arguments: string(b.Input)})
	}
	r, err := m.response(&s)
	if err == nil {
		emit(onDelta, []string{r.Text}) // it was asked to stream and doesn't
	}
	return r, err
}

// unmarshal reads what a provider sent, strictly enough to be sure that what is
// kept of it is what it sent.
func unmarshal(text []byte, into any) error {
	if !utf8.Valid(text) {
		return errors.New("it isn't UTF-8")
	}
	return json.Unmarshal(text, into)
}

// notAnAnswer is for something else where an answer should be: some servers say
// what went wrong with status 200.
func (p *provider) notAnAnswer(text []byte, err error) *Error {
	if f := parseFault(text); f.text != "" {
		return p.fault(f)
	}
	e := p.broken("can't be understood", err)
	if p.elsewhere { // it may be another API
		e.Message += fmt.Sprintf(" If it stays so, check %s.", p.urlSetting)
	}
	return e
}

// notAnAPI is for a page where an answer should be.
func (p *provider) notAnAPI() *Error {
	return &Error{Kind: ErrInvalid, Message: fmt.Sprintf("%s answers with a web page, so that is not its API: check %s.", p.who(), p.urlSetting)}
}

// stream reads events until the message is complete. Nothing that comes later
// is read, and nothing counts if that moment doesn't come.
func (m *anthropicModel) stream(res *http.Response, onDelta func(string), w *watch) (Response, error) {
	events := ssestream.NewDecoder(res)
	s := anthropicAnswer{onDelta: onDelta}
	for !s.done {
		if !events.Next() {
			return Response{}, m.broken("broke off", events.Err())
		}
		e := events.Event()
		switch e.Type {
		case "ping":
			continue
		case "error":
			return Response{}, m.fault(parseFault(e.Data))
		}
		w.progress()
		var event anthropic.MessageStreamEventUnion
		if err := unmarshal(e.Data, &event); err != nil {
			return Response{}, m.broken("can't be understood", err)
		}
		if event.Type == "error" { // also where the server forgot to name the event
			return Response{}, m.fault(parseFault(e.Data))
		}
		if err := s.add(event); err != nil {
			return Response{}, m.broken("makes no sense", err)
		}
	}
	return m.response(&s)
}

// anthropicAnswer is a message as it comes. The SDK keeps its blocks as they will
// go back; beside them stands what the SDK would change or not check.
type anthropicAnswer struct {
	message anthropic.Message
	blocks  []*anthropicBlock
	started bool
	done    bool
	onDelta func(string)
}

type anthropicBlock struct {
	kind      string
	arguments string // of a tool_use, as written
	pieces    strings.Builder
	closed    bool

	held strings.Builder                   // pieces that the SDK has still to get …
	last anthropic.MessageStreamEventUnion // … of which this was the last
}

// add takes the next event. An order that can't be is an error: what is wrong
// there may be wrong in a call as well.
func (s *anthropicAnswer) add(e anthropic.MessageStreamEventUnion) error {
	if s.started == (e.Type == "message_start") {
		return fmt.Errorf("%s at the wrong place", oneLine(e.Type, 40))
	}
	switch e.Type {
	case "message_start":
		s.started = true
		if len(e.Message.Content) > 0 {
			return errors.New("a message with content at its start")
		}
	case "content_block_start":
		b := e.ContentBlock
		if b.Type == "" {
			return errors.New("a block without a type")
		}
		s.blocks = append(s.blocks, &anthropicBlock{kind: b.Type, arguments: rawInput(b)})
		if b.Type == "text" {
			s.emit(b.Text)
		}
	case "content_block_delta", "content_block_stop":
		if e.Index < 0 || e.Index >= int64(len(s.blocks)) || s.blocks[e.Index].closed {
			return errors.New("a block that isn't open")
		}
		if err := s.block(s.blocks[e.Index], e); err != nil {
			return err
		}
		return s.accumulate(s.blocks[e.Index], e)
	case "message_stop":
		if err := s.complete(); err != nil {
			return err
		}
		s.done = true
	}
	return s.message.Accumulate(e)
}

// accumulate gives the SDK the pieces of a block's text joined: it copies all that
// it has for each piece, which for a long answer would take minutes.
func (s *anthropicAnswer) accumulate(b *anthropicBlock, e anthropic.MessageStreamEventUnion) error {
	if piece := joinable(&e); piece != nil {
		if b.held.Len() > 0 && b.last.Delta.Type != e.Delta.Type {
			if err := s.release(b); err != nil {
				return err
			}
		}
		b.held.WriteString(*piece)
		b.last = e
		return nil
	}
	if err := s.release(b); err != nil {
		return err
	}
	return s.message.Accumulate(e)
}

// release gives the SDK what was held back.
func (s *anthropicAnswer) release(b *anthropicBlock) error {
	if b.held.Len() == 0 {
		return nil
	}
	*joinable(&b.last) = b.held.String()
	b.held.Reset()
	return s.message.Accumulate(b.last)
}

// joinable is the text of a piece that can stand in one with those of its kind
// before it; nil: it can't.
func joinable(e *anthropic.MessageStreamEventUnion) *string {
	switch e.Delta.Type {
	case "text_delta":
		return &e.Delta.Text
	case "thinking_delta":
		return &e.Delta.Thinking
	case "signature_delta":
		return &e.Delta.Signature
	}
	return nil
}

func (s *anthropicAnswer) block(b *anthropicBlock, e anthropic.MessageStreamEventUnion) error {
	if e.Type == "content_block_stop" {
		b.closed = true
		if b.pieces.Len() > 0 {
			b.arguments = b.pieces.String()
		}
		return nil
	}
	switch e.Delta.Type {
	case "text_delta":
		if b.kind != "text" {
			return errors.New("text in a block that isn't one of text")
		}
		s.emit(e.Delta.Text)
	case "input_json_delta":
		b.pieces.WriteString(e.Delta.PartialJSON)
	}
	return nil
}

// complete tells whether everything that was begun has an end.
func (s *anthropicAnswer) complete() error {
	for i := range s.blocks {
		if !s.blocks[i].closed {
			return errors.New("a block without an end")
		}
	}
	if s.message.StopReason == "" {
		return errors.New("no reason to stop")
	}
	return nil
}

func (s *anthropicAnswer) emit(text string) { emit(s.onDelta, []string{text}) }

// rawInput is the input with which a block starts; most start with {}.
func rawInput(b anthropic.ContentBlockStartEventContentBlockUnion) string {
	if raw := b.JSON.Input.Raw(); raw != "" && raw != "null" {
		return raw
	}
	return "{}"
}

// response is what a complete message means.
func (m *anthropicModel) response(s *anthropicAnswer) (Response, error) {
	r := Response{Usage: anthropicUsage(s.message.Usage)}
	raw := ownBlocks{Model: m.name}
	for i, b := range s.message.Content {
		switch b.Type {
		case "text":
			r.Text += b.Text
		case "tool_use":
			if b.Name == "" {
				return Response{}, m.broken("calls a tool without a name", nil)
			}
			r.ToolCalls = append(r.ToolCalls, ToolCall{ID: b.ID, Name: b.Name, Arguments: s.blocks[i].arguments})
		}
		raw.Content = append(raw.Content, json.RawMessage(b.RawJSON()))
	}
	if err := m.stopped(&r, s.message); err != nil {
		return Response{}, err
	}
	var err error
	if r.Raw, err = json.Marshal(raw); err != nil {
		return Response{}, m.broken("can't be understood", err)
	}
	return r, nil
}

func anthropicUsage(u anthropic.Usage) Usage {
	read, write := tokens(u.CacheReadInputTokens), tokens(u.CacheCreationInputTokens)
	return Usage{
		InputTokens: tokens(u.InputTokens) + read + write, OutputTokens: tokens(u.OutputTokens),
		CacheReadTokens: read, CacheWriteTokens: write,
	}
}

// stopped says why the message ended. An ending that isn't one is an error.
func (m *anthropicModel) stopped(r *Response, msg anthropic.Message) error {
	switch msg.StopReason {
	case anthropic.StopReasonEndTurn, anthropic.StopReasonStopSequence, anthropic.StopReasonToolUse:
		return m.ended(r, msg.StopReason == anthropic.StopReasonToolUse)
	case anthropic.StopReasonMaxTokens:
		return m.cutOff(r)
	case anthropic.StopReasonRefusal:
		return m.fault(fault{kind: "content_filter", text: msg.StopDetails.Explanation})
	case anthropic.StopReasonModelContextWindowExceeded:
		return m.fault(fault{kind: "context_length_exceeded"})
	case anthropic.StopReasonPauseTurn: // only tools of the provider's own bring it, and we offer none
		return m.broken("paused in the middle", nil)
	}
	return m.unknownEnd(string(msg.StopReason))
}

// ended sets the usual ends: a message with calls stops for them.
func (p *provider) ended(r *Response, forCalls bool) error {
	switch {
	case len(r.ToolCalls) > 0:
		r.StopReason = StopToolUse
	case forCalls:
		return p.broken("announces tool calls and has none", nil)
	default:
		r.StopReason = StopEndTurn
	}
	return nil
}

// cutOff is the end of a message at the limit of its length. A call in it may be
// half of one, even where it looks whole.
func (p *provider) cutOff(r *Response) error {
	if len(r.ToolCalls) == 0 {
		r.StopReason = StopMaxTokens
		return nil
	}
	return &Error{Kind: ErrBroken, Message: fmt.Sprintf("The answer of %s reached its limit of length in the middle of a tool call, so nothing of it was performed. "+
		"Ask for less at once, or let whoever runs me raise APPROVALBOT_MAX_OUTPUT_TOKENS.", p.name)}
}

func (p *provider) unknownEnd(reason string) *Error {
	return &Error{Kind: ErrBroken, Message: fmt.Sprintf("The answer of %s ended for a reason that this version doesn't know (%s). Nothing of it was used.", p.name, oneLine(reason, 60))}
}
