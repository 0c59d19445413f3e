package api

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// A form reads the members of a JSON object strictly: what is unknown, of another type, missing or there twice is wrong.
// It collects everything that is wrong, so that it is said at once.
type form struct {
	members map[string]jsontext.Value
	read    map[string]bool
	inForm  []string            // what is wrong with the whole
	inField map[string][]string // what is wrong with a member
}

// parseForm reads an object. What isn't one gives a form that only has errors.
func parseForm(raw []byte) *form {
	f := &form{read: map[string]bool{}, inField: map[string][]string{}}
	value := jsontext.Value(raw)
	if strings.TrimSpace(string(raw)) == "" {
		f.inForm = []string{"the body is empty; it has to be a JSON object"}
		return f
	}
	if err := json.Unmarshal(value, &f.members); err != nil {
		f.members = nil
		f.inForm = []string{notJSON(err)}
	} else if f.members == nil {
		f.inForm = []string{"the body has to be a JSON object, not null"}
	}
	return f
}

// notJSON says what is wrong with a text, without a word about Go.
func notJSON(err error) string {
	if errors.Is(err, jsontext.ErrDuplicateName) {
		if e, ok := errors.AsType[*jsontext.SyntacticError](err); ok {
			return fmt.Sprintf("the member %s is there twice", strings.ToValidUTF8(string(e.JSONPointer), "\uFFFD"))
		}
	}
	if e, ok := errors.AsType[*jsontext.SyntacticError](err); ok {
		return fmt.Sprintf("the body is not JSON: %s at byte %d", strings.ToValidUTF8(e.Err.Error(), "\uFFFD"), e.ByteOffset)
	}
	if errors.Is(err, io.ErrUnexpectedEOF) {
		return "the body is not JSON: it ends too early"
	}
	return "the body has to be a JSON object"
}

// wrong notes what is wrong with a member.
func (f *form) wrong(name, format string, args ...any) {
	f.inField[name] = append(f.inField[name], fmt.Sprintf(format, args...))
}

// take gives a member's value; false if it isn't there.
func (f *form) take(name string) (jsontext.Value, bool) {
	f.read[name] = true
	v, ok := f.members[name]
	return v, ok
}

// text is a member that may be missing.
func (f *form) text(name string) string {
	v, ok := f.take(name)
	if !ok {
		return ""
	}
	var s string
	if v.Kind() != '"' || json.Unmarshal(v, &s) != nil {
		f.wrong(name, "it has to be a string")
	}
	return s
}

// count is a whole number from 0 that may be missing.
func (f *form) count(name string) (n int, there bool) {
	v, there := f.take(name)
	if there && (json.Unmarshal(v, &n) != nil || n < 0) {
		f.wrong(name, "it has to be a whole number from 0")
		return 0, true
	}
	return n, there
}

// required is a member that has to say something.
func (f *form) required(name string) string {
	s := f.text(name)
	switch _, there := f.members[name]; {
	case !there:
		f.wrong(name, "it is missing")
	case strings.TrimSpace(s) == "" && len(f.inField[name]) == 0:
		f.wrong(name, "it is empty")
	}
	return s
}

// choice is a member that is one of a few words; the first one if it isn't there.
func (f *form) choice(name string, words ...string) string {
	if _, there := f.members[name]; !there {
		f.read[name] = true
		return words[0]
	}
	s := f.text(name)
	if !slices.Contains(words, s) && len(f.inField[name]) == 0 {
		f.wrong(name, "it has to be one of %s", strings.Join(words, ", "))
	}
	return s
}

// object is a member that is an object itself; nil if it isn't there. What is wrong in it is said under its name.
func (f *form) object(name string, read func(*form)) bool {
	v, ok := f.take(name)
	if !ok {
		return false
	}
	if v.Kind() != '{' {
		f.wrong(name, "it has to be an object")
		return false
	}
	inner := parseForm(v)
	read(inner)
	inner.unknown()
	f.inField[name] = append(f.inField[name], inner.inForm...)
	for member, errs := range inner.inField {
		for _, e := range errs {
			f.wrong(name, "%s: %s", member, e)
		}
	}
	if len(f.inField[name]) == 0 {
		delete(f.inField, name)
		return true
	}
	slices.Sort(f.inField[name])
	return false
}

func (f *form) unknown() {
	var names []string
	for name := range f.members {
		if !f.read[name] {
			names = append(names, fmt.Sprintf("%q", name))
		}
	}
	slices.Sort(names)
	if len(names) > 0 {
		f.inForm = append(f.inForm, "unknown: "+strings.Join(names, ", "))
	}
}

// done gives everything that was wrong; nil if nothing was. It is called when all members were read.
func (f *form) done() error {
	if f.members != nil {
		f.unknown()
	}
	if f.members == nil {
		clear(f.inField) // the whole is wrong; its members don't matter
	}
	if len(f.inForm) == 0 && len(f.inField) == 0 {
		return nil
	}
	if f.inForm == nil {
		f.inForm = []string{}
	}
	return &problem{status: http.StatusBadRequest, message: "the request is not valid", code: "INVALID_REQUEST",
		validation: &validation{f.inForm, f.inField}}
}

// validation is what is wrong with a body.
type validation struct {
	FormErrors  []string            `json:"formErrors"`
	FieldErrors map[string][]string `json:"fieldErrors"`
}

// readBody reads a body of at most so many bytes.
func readBody(r *http.Request, most int64) ([]byte, error) {
	raw, err := io.ReadAll(io.LimitReader(r.Body, most+1))
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &tooLarge) || int64(len(raw)) > most:
		return nil, &problem{status: http.StatusRequestEntityTooLarge, code: "TOO_LARGE",
			message: fmt.Sprintf("the body is larger than %d bytes", most)}
	case err != nil:
		return nil, &problem{status: http.StatusBadRequest, code: "INVALID_REQUEST", message: "the body could not be read"}
	}
	return raw, nil
}
