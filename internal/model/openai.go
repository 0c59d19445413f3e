package model

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/packages/respjson"
	"github.com/openai/openai-go/v3/packages/ssestream"
	"github.com/openai/openai-go/v3/shared"
)

// openaiModel speaks OpenAI's Chat Completions API, which every compatible
// server has.
type openaiModel struct {
	provider
	chat      openai.ChatCompletionService
	models    openai.ModelService
	maxTokens int
}

func openOpenAI(name string, o Options) (*openaiModel, error) {
	p, err := newProvider(provider{
		label: "OpenAI", model: name, name: "openai/" + name, key: o.OpenAIKey,
		keySetting: "OPENAI_API_KEY", urlSetting: "OPENAI_BASE_URL",
		stall: o.stall(),
	}, "https://api.openai.com/v1", o.OpenAIBaseURL)
	if err != nil {
		return nil, err
	}
	// The services and not the SDK's client: that would read the environment, and
	// bring every other API of the provider into the program.
	opts := []option.RequestOption{
		option.WithBaseURL(p.base.String()),
		option.WithHTTPClient(newDoer(o)),
		option.WithMaxRetries(0), // whoever asks has to know of every attempt
		option.WithAPIKey(p.key),
	}
	return &openaiModel{
		provider: p, chat: openai.NewChatCompletionService(opts...), models: openai.NewModelService(opts...), maxTokens: o.MaxTokens,
	}, nil
}

// Name implements [Model].
func (m *openaiModel) Name() string { return m.name }

// Generate implements [Model].
func (m *openaiModel) Generate(ctx context.Context, req Request, onDelta func(string)) (Response, error) {
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
		params.StreamOptions.IncludeUsage = openai.Bool(true)
		opts = append(opts, option.WithJSONSet("stream", true), option.WithHeader("Accept", eventStreamType))
	}
	w, watched, end := m.watch(ctx)
	defer end()
	if _, err := m.chat.New(watched, *params, opts...); err != nil {
		return Response{}, m.unwatched(ctx, watched, err)
	}
	defer res.Body.Close()
	r, err := m.read(res, onDelta, w)
	if err != nil {
		return Response{}, m.unwatched(ctx, watched, err)
	}
	return r, nil
}

// params is the request as OpenAI wants it.
func (m *openaiModel) params(req Request) (*openai.ChatCompletionNewParams, error) {
	all, err := wireTurns(req.Messages, openaiID)
	if err != nil {
		return nil, err
	}
	p := &openai.ChatCompletionNewParams{Model: m.model}
	if limit := cmp.Or(req.MaxTokens, m.maxTokens); limit > 0 {
		p.MaxCompletionTokens = openai.Int(int64(limit))
	}
	for _, t := range req.Tools {
		tool, err := openaiTool(t)
		if err != nil {
			return nil, err
		}
		p.Tools = append(p.Tools, tool)
	}
	if !blank(req.System) {
		p.Messages = append(p.Messages, openai.SystemMessage(req.System))
	}
	for _, t := range all {
		if t.role == RoleAssistant {
			p.Messages = append(p.Messages, m.assistant(t))
			continue
		}
		for _, r := range t.results {
			p.Messages = append(p.Messages, openai.ToolMessage(resultText(r.ToolResult), r.id))
		}
		if len(t.texts) > 0 {
			p.Messages = append(p.Messages, openai.UserMessage(strings.Join(t.texts, "\n\n")))
		}
	}
	return p, nil
}

// openaiID tells which ids of calls OpenAI takes. Compatible servers make ids
// with all kinds of signs, and some read them; so they stay where they can.
func openaiID(id string) bool {
	return id != "" && len(id) <= 40 && !strings.ContainsFunc(id, func(r rune) bool { return r <= ' ' || r > '~' })
}

func openaiTool(t ToolSpec) (openai.ChatCompletionToolUnionParam, error) {
	schema, err := objectSchema(t.InputSchema)
	if err != nil {
		return openai.ChatCompletionToolUnionParam{}, invalid("the schema of the tool %s can't be read: %v", t.Name, err)
	}
	f := shared.FunctionDefinitionParam{Name: t.Name, Parameters: shared.FunctionParameters{}}
	for k, v := range schema {
		f.Parameters[k] = v
	}
	if !blank(t.Description) {
		f.Description = openai.String(t.Description)
	}
	return openai.ChatCompletionFunctionTool(f), nil
}

// resultText carries what has no field of its own here: that it is an error, and
// that there is nothing to say.
func resultText(r ToolResult) string {
	switch {
	case blank(r.Text) && r.IsError:
		return "Error: the call failed without a word."
	case blank(r.Text):
		return "(no output)"
	case r.IsError && !strings.HasPrefix(r.Text, "Error"):
		return "Error: " + r.Text
	}
	return r.Text
}

// extras are members of a message that the API's own definition doesn't have:
// some servers put the model's thoughts or a signature there and want them back.
type extras map[string]json.RawMessage

// ownExtras is what [Message.Raw] holds where a message has extras: those of the
// message, those of each call, and the model that wrote them. Only that model gets
// them back, and only with its calls: without calls, no server needs them.
type ownExtras struct {
	Model   string   `json:"model"`
	Message extras   `json:"message,omitempty"`
	Calls   []extras `json:"calls,omitempty"`
}

// assistant is what the model said before.
func (m *openaiModel) assistant(t wireTurn) openai.ChatCompletionMessageParamUnion {
	msg := &openai.ChatCompletionAssistantMessageParam{}
	if len(t.texts) > 0 {
		msg.Content.OfString = openai.String(strings.Join(t.texts, "\n\n"))
	}
	own := m.own(t)
	for i, c := range t.calls {
		call := &openai.ChatCompletionMessageFunctionToolCallParam{
			ID:       c.id,
			Function: openai.ChatCompletionMessageFunctionToolCallFunctionParam{Name: c.name, Arguments: string(object(c.Arguments))},
		}
		if len(own.Calls) > 0 && len(own.Calls[i]) > 0 {
			call.SetExtraFields(own.Calls[i].fields())
		}
		msg.ToolCalls = append(msg.ToolCalls, openai.ChatCompletionMessageToolCallUnionParam{OfFunction: call})
	}
	if len(own.Message) > 0 {
		msg.SetExtraFields(own.Message.fields())
	}
	return openai.ChatCompletionMessageParamUnion{OfAssistant: msg}
}

func (e extras) fields() map[string]any {
	out := map[string]any{}
	for k, v := range e {
		out[k] = v
	}
	return out
}

func (m *openaiModel) own(t wireTurn) ownExtras {
	var own ownExtras
	if len(t.calls) == 0 || !isObject(t.raw) || json.Unmarshal(t.raw, &own) != nil || own.Model != m.name ||
		len(own.Calls) != 0 && len(own.Calls) != len(t.calls) {
		return ownExtras{}
	}
	return own
}

// read takes the answer, streamed or whole.
func (m *openaiModel) read(res *http.Response, onDelta func(string), w *watch) (Response, error) {
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
	var whole openai.ChatCompletion
	if err := unmarshal(text, &whole); err != nil || len(whole.Choices) == 0 {
		return Response{}, m.notAnAnswer(text, err)
	}
	r, err := m.response(openaiWhole(whole))
	if err == nil {
		emit(onDelta, []string{r.Text}) // it was asked to stream and doesn't
	}
	return r, err
}

// stream reads chunks until the stream says that it is done. Nothing counts if
// that moment doesn't come.
func (m *openaiModel) stream(res *http.Response, onDelta func(string), w *watch) (Response, error) {
	events := ssestream.NewDecoder(res)
	a := &openaiAnswer{onDelta: onDelta, last: map[int64]int{}}
	for {
		if !events.Next() {
			return Response{}, m.broken("broke off", events.Err())
		}
		data := bytes.TrimSpace(events.Event().Data)
		if string(data) == "[DONE]" {
			break
		}
		if events.Event().Type == "error" {
			return Response{}, m.fault(parseFault(data))
		}
		w.progress()
		var chunk openai.ChatCompletionChunk
		if err := unmarshal(data, &chunk); err != nil {
			return Response{}, m.broken("can't be understood", err)
		}
		if failure := chunk.JSON.ExtraFields["error"].Raw(); failure != "" && failure != "null" {
			return Response{}, m.fault(parseFault(data))
		}
		if err := a.add(chunk); err != nil {
			return Response{}, m.broken("makes no sense", err)
		}
	}
	if a.finish == "" {
		return Response{}, m.broken("ended without a reason", nil)
	}
	return m.response(a)
}

// openaiAnswer is a message as it comes.
type openaiAnswer struct {
	text    strings.Builder
	refusal strings.Builder
	message gathered
	calls   []*openaiCall
	last    map[int64]int // index in the stream: position in calls of the last with that index
	finish  string
	usage   openai.CompletionUsage
	onDelta func(string)
}

type openaiCall struct {
	id, name  string
	arguments strings.Builder
	extras    gathered
}

// add takes the next chunk.
func (a *openaiAnswer) add(chunk openai.ChatCompletionChunk) error {
	if chunk.JSON.Usage.Valid() {
		a.usage = chunk.Usage
	}
	for _, c := range chunk.Choices {
		d := c.Delta
		switch {
		case c.Index != 0:
			return errors.New("more than one answer")
		case a.finish != "" && (d.Content != "" || len(d.ToolCalls) > 0):
			return errors.New("it goes on after its end")
		case d.JSON.FunctionCall.Valid():
			return errors.New("a call in the form of long ago (function_call)")
		}
		a.text.WriteString(d.Content)
		a.refusal.WriteString(d.Refusal)
		a.message.merge(d.JSON.ExtraFields)
		emit(a.onDelta, []string{d.Content})
		for _, piece := range d.ToolCalls {
			if err := a.piece(piece); err != nil {
				return err
			}
		}
		if c.FinishReason != "" {
			a.finish = c.FinishReason
		}
	}
	return nil
}

// piece takes a part of a call. A part with an id of its own begins another call
// even where the index says otherwise: some servers number all calls 0.
func (a *openaiAnswer) piece(p openai.ChatCompletionChunkChoiceDeltaToolCall) error {
	if p.Type != "" && p.Type != "function" {
		return fmt.Errorf("a tool call of the type %s", oneLine(p.Type, 40))
	}
	at, known := a.last[p.Index]
	if !known || p.ID != "" && a.calls[at].id != "" && a.calls[at].id != p.ID {
		at = len(a.calls)
		a.calls = append(a.calls, &openaiCall{})
		a.last[p.Index] = at
	}
	c := a.calls[at]
	c.id = cmp.Or(c.id, p.ID)
	if p.Function.Name != c.name { // some servers repeat the name in each part
		c.name += p.Function.Name
	}
	c.arguments.WriteString(p.Function.Arguments)
	c.extras.merge(p.JSON.ExtraFields)
	return nil
}

// gathered are extras as they come in parts. Of a text, which may be all that a
// model thinks, the parts are joined once, at the end.
type gathered struct {
	whole extras
	texts map[string]*strings.Builder
}

// merge adds the members of a part: texts are continued, lists too, anything
// else is replaced.
func (g *gathered) merge(part map[string]respjson.Field) {
	for name, field := range part {
		next := json.RawMessage(field.Raw())
		if len(next) == 0 || string(next) == "null" {
			continue
		}
		if g.whole == nil {
			g.whole, g.texts = extras{}, map[string]*strings.Builder{}
		}
		var more string
		if json.Unmarshal(next, &more) == nil {
			if g.texts[name] == nil {
				g.texts[name] = &strings.Builder{}
			}
			g.texts[name].WriteString(more)
			delete(g.whole, name)
			continue
		}
		delete(g.texts, name)
		var list, rest []json.RawMessage
		if json.Unmarshal(g.whole[name], &list) == nil && json.Unmarshal(next, &rest) == nil {
			next, _ = json.Marshal(append(list, rest...)) // lists of what was read always have a form
		}
		g.whole[name] = next
	}
}

// all is what has come.
func (g *gathered) all() extras {
	if g.whole == nil {
		return extras{}
	}
	for name, text := range g.texts {
		g.whole[name], _ = json.Marshal(text.String()) // so do strings
	}
	g.texts = nil
	return g.whole
}

// openaiWhole is an answer that came in one piece.
func openaiWhole(whole openai.ChatCompletion) *openaiAnswer {
	choice := whole.Choices[0]
	a := &openaiAnswer{finish: choice.FinishReason, usage: whole.Usage}
	a.text.WriteString(choice.Message.Content)
	a.refusal.WriteString(choice.Message.Refusal)
	a.message.merge(choice.Message.JSON.ExtraFields)
	for _, c := range choice.Message.ToolCalls {
		call := &openaiCall{id: c.ID, name: c.Function.Name}
		call.arguments.WriteString(c.Function.Arguments)
		if f := c.AsFunction(); f.ID == c.ID {
			call.extras.merge(f.JSON.ExtraFields)
		}
		a.calls = append(a.calls, call)
	}
	return a
}

// response is what a complete message means.
func (m *openaiModel) response(a *openaiAnswer) (Response, error) {
	r := Response{Text: a.text.String(), Usage: openaiUsage(a.usage)}
	own := ownExtras{Model: m.name, Message: a.message.all()}
	some := len(own.Message) > 0
	for _, c := range a.calls {
		if c.name == "" {
			return Response{}, m.broken("calls a tool without a name", nil)
		}
		r.ToolCalls = append(r.ToolCalls, ToolCall{ID: c.id, Name: c.name, Arguments: c.arguments.String()})
		more := c.extras.all()
		own.Calls = append(own.Calls, more)
		some = some || len(more) > 0
	}
	if a.refusal.Len() > 0 {
		return Response{}, m.fault(fault{kind: "content_filter", text: a.refusal.String()})
	}
	if err := m.stopped(&r, a.finish); err != nil {
		return Response{}, err
	}
	if !some {
		return r, nil
	}
	var err error
	if r.Raw, err = json.Marshal(own); err != nil {
		return Response{}, m.broken("can't be understood", err)
	}
	return r, nil
}

func openaiUsage(u openai.CompletionUsage) Usage {
	return Usage{
		InputTokens: tokens(u.PromptTokens), OutputTokens: tokens(u.CompletionTokens),
		CacheReadTokens: tokens(u.PromptTokensDetails.CachedTokens), CacheWriteTokens: tokens(u.PromptTokensDetails.CacheWriteTokens),
	}
}

// stopped says why the message ended. An ending that isn't one is an error.
func (m *openaiModel) stopped(r *Response, finish string) error {
	switch finish {
	case "stop", "tool_calls":
		return m.ended(r, finish == "tool_calls")
	case "length":
		return m.cutOff(r)
	case "content_filter":
		return m.fault(fault{kind: "content_filter"})
	case "":
		return m.broken("ended without a reason", nil)
	}
	return m.unknownEnd(finish)
}
