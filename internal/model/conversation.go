package model

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// A wireTurn is one message of a conversation in the form that every provider can
// be sent: people's turns and the model's alternate as far as the conversation
// does, nothing in it is empty, every call has a legal id that no other call of
// the request has, and each round's results stand right behind it, one for each
// call and in their order.
type wireTurn struct {
	role    Role // RoleUser or RoleAssistant
	results []wireResult
	texts   []string
	calls   []wireCall
	raw     json.RawMessage
}

// wireCall is a call as the provider is told of it.
type wireCall struct {
	ToolCall        // as it stands in the conversation
	id       string // in this request
	name     string // as providers accept it
}

type wireResult struct {
	id string // of the call, in this request
	ToolResult
}

// wireTurns puts a conversation into order. It fails where the conversation itself
// is wrong (a call without its result, a result without its call), because the
// provider's refusal of it would be harder to understand.
func wireTurns(messages []Message, legalID func(string) bool) ([]wireTurn, error) {
	out := []wireTurn{}
	ids := idMap{legal: legalID, used: map[string]bool{}}
	for i := 0; i < len(messages); i++ {
		m := messages[i]
		switch m.Role {
		case RoleUser:
			out = addUser(out, m.Text)
		case RoleAssistant:
			var results []ToolResult
			for ; i+1 < len(messages) && messages[i+1].Role == RoleTool; i++ {
				results = append(results, messages[i+1].Results...)
			}
			round, err := ids.round(m, results)
			if err != nil {
				return nil, err
			}
			out = append(out, round...)
		case RoleTool:
			if len(m.Results) > 0 {
				return nil, invalid("the conversation has a result of call %q that no message asked for", m.Results[0].ToolCallID)
			}
		default:
			return nil, invalid("the conversation has a message of the unknown role %q", m.Role)
		}
	}
	if len(out) == 0 || out[len(out)-1].role != RoleUser {
		return nil, invalid("the conversation doesn't end with something to answer")
	}
	if out[0].role != RoleUser { // as after older messages were taken out; providers want people to begin
		out = append([]wireTurn{{role: RoleUser, texts: []string{"(What was said before this is not shown here.)"}}}, out...)
	}
	return out, nil
}

func invalid(format string, args ...any) *Error {
	return &Error{Kind: ErrInvalid, Message: "The model can't be asked: " + fmt.Sprintf(format, args...) + "."}
}

// addUser adds what a person wrote to the person's turn, or begins one.
func addUser(out []wireTurn, text string) []wireTurn {
	if blank(text) {
		return out
	}
	if n := len(out); n > 0 && out[n-1].role == RoleUser {
		out[n-1].texts = append(out[n-1].texts, text)
		return out
	}
	return append(out, wireTurn{role: RoleUser, texts: []string{text}})
}

// blank texts are refused by providers, and say nothing.
func blank(text string) bool { return strings.TrimSpace(text) == "" }

// idMap gives calls their ids in a request. The same conversation gives the same
// ids, so that what a provider has cached of it stays good.
type idMap struct {
	legal func(string) bool
	used  map[string]bool
}

// round is the model's message and, if it called tools, the turn with their
// results. A message without words and calls is none.
func (ids idMap) round(m Message, results []ToolResult) ([]wireTurn, error) {
	t := wireTurn{role: RoleAssistant, raw: m.Raw}
	if !blank(m.Text) {
		t.texts = []string{m.Text}
	}
	answer := wireTurn{role: RoleUser}
	taken := make([]bool, len(results))
	for _, c := range m.ToolCalls {
		call := wireCall{ToolCall: c, id: ids.wire(c.ID), name: legalName(c.Name)}
		t.calls = append(t.calls, call)
		found := false
		for i, r := range results {
			if !taken[i] && r.ToolCallID == c.ID {
				taken[i], found = true, true
				answer.results = append(answer.results, wireResult{call.id, r})
				break
			}
		}
		if !found {
			return nil, invalid("the conversation has a call %q without a result", c.ID)
		}
	}
	for i, r := range results {
		if !taken[i] {
			return nil, invalid("the conversation has a result of call %q that its message doesn't have", r.ToolCallID)
		}
	}
	switch {
	case len(t.calls) > 0:
		return []wireTurn{t, answer}, nil
	case len(t.texts) > 0:
		return []wireTurn{t}, nil
	}
	return nil, nil
}

// wire is the id itself where the provider takes it and no call before has it,
// else one that is made from it.
func (ids idMap) wire(id string) string {
	wire := id
	for n := 0; !ids.legal(wire) || ids.used[wire]; n++ {
		sum := sha256.Sum256(fmt.Appendf(nil, "%d %d %s", len(ids.used), n, id))
		wire = "call_" + hex.EncodeToString(sum[:12])
	}
	ids.used[wire] = true
	return wire
}

// legalName is the name of a tool as providers accept one. A model may have
// called what no tool is called; its call stands in the conversation all the same.
func legalName(name string) string {
	legal := strings.Map(func(r rune) rune {
		if r < 0x80 && (isAlphanumeric(byte(r)) || r == '_' || r == '-') {
			return r
		}
		return '_'
	}, name)
	if legal == "" {
		return "unnamed"
	}
	return legal[:min(len(legal), 64)] // only ASCII is left
}

func isAlphanumeric(b byte) bool {
	return 'a' <= b && b <= 'z' || 'A' <= b && b <= 'Z' || '0' <= b && b <= '9'
}

// object is arguments as a JSON object that every parser accepts. What isn't one
// (the call was refused for it) is shown to its author as a text in one: an
// invalid request would end the conversation for good.
func object(arguments string) json.RawMessage {
	if isObject(json.RawMessage(arguments)) {
		return json.RawMessage(arguments)
	}
	if blank(arguments) {
		return json.RawMessage(`{}`)
	}
	wrapped, err := json.Marshal(map[string]string{"arguments_that_were_not_valid": arguments})
	if err != nil { // a map of strings always has a form
		return json.RawMessage(`{}`)
	}
	return wrapped
}

// isObject tells whether it is a JSON object, strictly: no duplicate members, no
// invalid UTF-8, no half of a surrogate pair.
func isObject(raw json.RawMessage) bool {
	v := jsontext.Value(raw)
	return v.Kind() == '{' && v.IsValid()
}

// objectSchema is a tool's schema as providers accept one: an object with
// properties, and no alternatives at the top. Leaving those out only makes it
// wider; the arguments are checked against the whole schema before anything runs.
func objectSchema(schema json.RawMessage) (map[string]json.RawMessage, error) {
	s := map[string]json.RawMessage{}
	if len(schema) > 0 {
		if err := json.Unmarshal(schema, &s); err != nil {
			return nil, err
		}
	}
	if s == nil {
		s = map[string]json.RawMessage{}
	}
	for _, alternative := range []string{"anyOf", "oneOf", "allOf", "not", "enum", "if", "then", "else"} {
		delete(s, alternative)
	}
	s["type"] = json.RawMessage(`"object"`)
	if p := s["properties"]; len(p) == 0 || string(p) == "null" {
		s["properties"] = json.RawMessage(`{}`)
	}
	return s, nil
}
