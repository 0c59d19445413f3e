package devslack

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// encode writes v as JSON without escaping < > &, as Slack does: the length of
// blocks is a limit. What it is
// given is built here from strings, maps and structs; a value that can't be
// written is a mistake of this package, so it panics.
func encode(v any) json.RawMessage {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		panic(fmt.Sprintf("devslack: encoding %T: %v", v, err))
	}
	return bytes.TrimRight(buf.Bytes(), "\n")
}

func decode(raw json.RawMessage, into any) error {
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	return dec.Decode(into)
}

// mergePatch applies an RFC 7386 merge patch: null deletes, objects merge,
// anything else replaces.
func mergePatch(target any, patch map[string]any) map[string]any {
	out, ok := target.(map[string]any)
	if !ok {
		out = map[string]any{}
	}
	for key, value := range patch {
		switch v := value.(type) {
		case nil:
			delete(out, key)
		case map[string]any:
			out[key] = mergePatch(out[key], v)
		default:
			out[key] = v
		}
	}
	return out
}
