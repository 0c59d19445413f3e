package model

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"hash"
)

// RequestHash is the hex SHA-256 of the request. The journal keeps it beside
// each sample, and an audit recomputes it from the transcript: it shows that
// what the model was sent is what the journal says.
//
// The encoding is our own and must not change, or old journals stop verifying:
// each field in the order of its struct, strings as their length and bytes,
// lists as their length and elements. Unlike JSON it is exact for every input,
// invalid UTF-8 and invalid raw blocks included, and no two requests share an
// encoding.
func RequestHash(req Request) string {
	w := hashWriter{sha256.New()}
	w.text("approvalbot model request 1")
	w.text(req.System)
	w.number(len(req.Messages))
	for _, m := range req.Messages {
		w.message(m)
	}
	w.number(len(req.Tools))
	for _, t := range req.Tools {
		w.text(t.Name)
		w.text(t.Description)
		w.text(string(t.InputSchema))
	}
	w.number(req.MaxTokens)
	return hex.EncodeToString(w.h.Sum(nil))
}

// hashWriter writes self-delimiting values into a hash, which never fails.
type hashWriter struct{ h hash.Hash }

func (w hashWriter) message(m Message) {
	w.text(string(m.Role))
	w.text(m.Text)
	w.number(len(m.ToolCalls))
	for _, c := range m.ToolCalls {
		w.text(c.ID)
		w.text(c.Name)
		w.text(c.Arguments)
	}
	w.number(len(m.Results))
	for _, r := range m.Results {
		w.text(r.ToolCallID)
		w.text(r.Text)
		w.flag(r.IsError)
	}
	w.text(string(m.Raw))
}

func (w hashWriter) text(s string) {
	w.number(len(s))
	w.h.Write([]byte(s))
}

func (w hashWriter) flag(b bool) {
	if b {
		w.number(1)
		return
	}
	w.number(0)
}

func (w hashWriter) number(n int) {
	var buf [8]byte
	binary.BigEndian.PutUint64(buf[:], uint64(n))
	w.h.Write(buf[:])
}
