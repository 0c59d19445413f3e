package api

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// read reads a decision as the route does.
func read(raw string) error {
	f := parseForm([]byte(raw))
	f.required("decision")
	f.text("reason")
	f.object("slack", func(f *form) { f.required("channel") })
	f.choice("onBusy", "wait", "refuse")
	return f.done()
}

func TestForm(t *testing.T) {
	fields := func(name, what string) map[string][]string { return map[string][]string{name: {what}} }
	for _, c := range []struct {
		raw   string
		form  []string
		field map[string][]string
	}{
		{`{"decision":"approve"}`, nil, nil},
		{`{"decision":"approve","reason":"","slack":{"channel":"C1"},"onBusy":"refuse"}`, nil, nil},
		{``, []string{"the body is empty; it has to be a JSON object"}, nil},
		{"  \n", []string{"the body is empty; it has to be a JSON object"}, nil},
		{`null`, []string{"the body has to be a JSON object, not null"}, nil},
		{`[]`, []string{"the body has to be a JSON object"}, nil},
		{`"decision"`, []string{"the body has to be a JSON object"}, nil},
		{`{"decision":"a","decision":"b"}`, []string{"the member /decision is there twice"}, nil},
		{`{"decision":"a","x":1,"y":2}`, []string{`unknown: "x", "y"`}, nil},
		{`{"Decision":"a"}`, []string{`unknown: "Decision"`}, fields("decision", "it is missing")},
		{`{}`, nil, fields("decision", "it is missing")},
		{`{"decision":" "}`, nil, fields("decision", "it is empty")},
		{`{"decision":null}`, nil, fields("decision", "it has to be a string")},
		{`{"decision":"a","reason":{}}`, nil, fields("reason", "it has to be a string")},
		{`{"decision":"a","onBusy":"x"}`, nil, fields("onBusy", "it has to be one of wait, refuse")},
		{`{"decision":"a","slack":"C1"}`, nil, fields("slack", "it has to be an object")},
		{`{"decision":"a","slack":{"channel":1,"x":2}}`, nil, map[string][]string{"slack": {"channel: it has to be a string", `unknown: "x"`}}},
	} {
		err := read(c.raw)
		p, _ := errors.AsType[*problem](err)
		if c.form == nil && c.field == nil {
			if err != nil {
				t.Errorf("%s: %+v", c.raw, p.validation)
			}
			continue
		}
		want := &validation{c.form, c.field}
		if want.FormErrors == nil {
			want.FormErrors = []string{}
		}
		if want.FieldErrors == nil {
			want.FieldErrors = map[string][]string{}
		}
		if p == nil {
			t.Errorf("%s: it was taken", c.raw)
		} else if d := cmp.Diff(want, p.validation); d != "" {
			t.Errorf("%s (-want +got):\n%s", c.raw, d)
		}
	}
	for _, raw := range []string{`{"decision":"a"} {}`, `{"decision":"a"`, `{decision:"a"}`, `no`, "{\"decision\":\"\xff\"}", `{"decision":"\ud800"}`} {
		if p, _ := errors.AsType[*problem](read(raw)); p == nil || len(p.validation.FormErrors) != 1 || len(p.validation.FieldErrors) != 0 {
			t.Errorf("%q: %v", raw, p)
		}
	}
}

// What is taken is an object with known strings only, and what is wrong can always be said.
func FuzzForm(f *testing.F) {
	for _, s := range []string{``, `{}`, `{"decision":"approve","reason":"x"}`, `{"decision":1}`, `{"slack":{"channel":"C"}}`, `{"a":{"b":[1e999]}}`, "{\"\xff\":1}"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		err := read(raw)
		if err == nil {
			var got struct {
				Decision *string
				Reason   *string
			}
			if json.Unmarshal([]byte(raw), &got) != nil || got.Decision == nil || *got.Decision == "" {
				t.Errorf("%q was taken", raw)
			}
			return
		}
		p, ok := errors.AsType[*problem](err)
		if !ok || p.status != 400 || p.validation == nil {
			t.Fatalf("%q: %v", raw, err)
		}
		if len(p.validation.FormErrors)+len(p.validation.FieldErrors) == 0 {
			t.Errorf("%q: nothing is said to be wrong", raw)
		}
	})
}
