package redact

import (
	"bytes"
	"errors"
	"io"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// JSON returns raw with the secrets in its strings and member names replaced, and
// every scalar under a telling name. The order of members and the digits of
// numbers stay. What isn't JSON is treated as text.
func (r *Redactor) JSON(raw []byte) []byte {
	var out bytes.Buffer
	dec := jsontext.NewDecoder(bytes.NewReader(raw), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	enc := jsontext.NewEncoder(&out, jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	w := &jsonWalk{r: r, dec: dec, enc: enc}
	err := w.value(false)
	for err == nil {
		err = w.value(false) // several values, one after the other: JSON lines
	}
	if !errors.Is(err, io.EOF) {
		text, _ := r.Text(string(raw))
		return []byte(text)
	}
	return bytes.TrimSuffix(out.Bytes(), []byte("\n"))
}

// Hides tells whether something in a text would be hidden: in the text as it stands, or, where it is JSON, in its strings
// or under its names. What begins as JSON and doesn't end so is looked at as far as it goes.
func (r *Redactor) Hides(text string) bool {
	if _, hits := r.Text(text); len(hits) > 0 {
		return true
	}
	dec := jsontext.NewDecoder(strings.NewReader(text), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	enc := jsontext.NewEncoder(io.Discard, jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	w := &jsonWalk{r: r, dec: dec, enc: enc}
	for w.value(false) == nil {
	}
	return w.hidden
}

type jsonWalk struct {
	r   *Redactor
	dec *jsontext.Decoder
	enc *jsontext.Encoder

	hidden bool // something was
}

// value copies one value; secret says that all of it is to be hidden.
func (w *jsonWalk) value(secret bool) error {
	switch w.dec.PeekKind() {
	case '{':
		return w.object(secret)
	case '[':
		return w.array(secret)
	}
	tok, err := w.dec.ReadToken()
	if err != nil {
		return err
	}
	return w.enc.WriteToken(w.scalar(tok, secret))
}

func (w *jsonWalk) scalar(tok jsontext.Token, secret bool) jsontext.Token {
	switch tok.Kind() {
	case '"':
		if secret {
			shown := hideValue(tok.String())
			w.hidden = w.hidden || shown != tok.String()
			return jsontext.String(shown)
		}
		return jsontext.String(w.text(tok.String()))
	case '0':
		if secret {
			w.hidden = true
			return jsontext.String(placeholder(tok.String()))
		}
	}
	return tok
}

func (w *jsonWalk) text(s string) string {
	shown, hits := w.r.Text(s)
	w.hidden = w.hidden || len(hits) > 0
	return shown
}

// hideValue hides a value that its name gives away.
func hideValue(s string) string {
	if isReference(s) || isPlaceholder.MatchString(s) {
		return s
	}
	return placeholder(s)
}

func (w *jsonWalk) object(secret bool) error {
	if err := w.copyToken(); err != nil {
		return err
	}
	for w.dec.PeekKind() != '}' {
		name, err := w.dec.ReadToken()
		if err != nil {
			return err
		}
		key := name.String()
		if err := w.enc.WriteToken(jsontext.String(w.text(key))); err != nil {
			return err
		}
		if err := w.value(secret || namesSecret(key)); err != nil {
			return err
		}
	}
	return w.copyToken()
}

func (w *jsonWalk) array(secret bool) error {
	if err := w.copyToken(); err != nil {
		return err
	}
	for w.dec.PeekKind() != ']' {
		if err := w.value(secret); err != nil {
			return err
		}
	}
	return w.copyToken()
}

func (w *jsonWalk) copyToken() error {
	tok, err := w.dec.ReadToken()
	if err != nil {
		return err
	}
	return w.enc.WriteToken(tok)
}
