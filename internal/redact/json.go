package redact

import (
	"bytes"
	"errors"
	"io"

	"github.com/go-json-experiment/json/jsontext"
)

// JSON returns raw with the secrets in its strings and member names replaced, and
// every scalar under a telling name. The order of members and the digits of
// numbers stay. What isn't JSON is treated as text.
func (r *Redactor) JSON(raw []byte) []byte {
	var out bytes.Buffer
	dec := jsontext.NewDecoder(bytes.NewReader(raw), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	enc := jsontext.NewEncoder(&out, jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	w := jsonWalk{r, dec, enc}
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

type jsonWalk struct {
	r   *Redactor
	dec *jsontext.Decoder
	enc *jsontext.Encoder
}

// value copies one value; secret says that all of it is to be hidden.
func (w jsonWalk) value(secret bool) error {
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

func (w jsonWalk) scalar(tok jsontext.Token, secret bool) jsontext.Token {
	switch tok.Kind() {
	case '"':
		if secret {
			return jsontext.String(hideValue(tok.String()))
		}
		text, _ := w.r.Text(tok.String())
		return jsontext.String(text)
	case '0':
		if secret {
			return jsontext.String(placeholder(tok.String()))
		}
	}
	return tok
}

// hideValue hides a value that its name gives away.
func hideValue(s string) string {
	if isReference(s) || isPlaceholder.MatchString(s) {
		return s
	}
	return placeholder(s)
}

func (w jsonWalk) object(secret bool) error {
	if err := w.copyToken(); err != nil {
		return err
	}
	for w.dec.PeekKind() != '}' {
		name, err := w.dec.ReadToken()
		if err != nil {
			return err
		}
		key := name.String()
		shown, _ := w.r.Text(key)
		if err := w.enc.WriteToken(jsontext.String(shown)); err != nil {
			return err
		}
		if err := w.value(secret || namesSecret(key)); err != nil {
			return err
		}
	}
	return w.copyToken()
}

func (w jsonWalk) array(secret bool) error {
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

func (w jsonWalk) copyToken() error {
	tok, err := w.dec.ReadToken()
	if err != nil {
		return err
	}
	return w.enc.WriteToken(tok)
}
