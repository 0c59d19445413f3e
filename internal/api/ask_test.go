package api

import (
	"encoding/json"
	"errors"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"
)

// What is taken of an ask is canonical and within its limits; what isn't taken is said to be wrong.
func FuzzAsk(f *testing.F) {
	for _, s := range []string{``, `{}`, `{"tool":"t","arguments":{}}`, `{"tool":"t","arguments":{"b":1.0,"a":[1e999,{"z":1,"a":2}]}}`,
		`{"tool":"t","arguments":{"a":1,"a":2}}`, `{"tool":"t","arguments":{},"timeout":"1h","slack":{"channel":"C1","thread_ts":"1.2"}}`,
		`{"tool":"t","arguments":{},"reason":"x","cwd":"/","idempotencyKey":"k"}`, "{\"tool\":\"\xff\",\"arguments\":{}}"} {
		f.Add(s)
	}
	s := &Server{}
	f.Fuzz(func(t *testing.T, raw string) {
		o, err := s.readWish(httptest.NewRequest("POST", "/api/approvals", strings.NewReader(raw)), &Token{Name: "ci"})
		if err != nil {
			p, ok := errors.AsType[*problem](err)
			if !ok || p.validation == nil || len(p.validation.FormErrors)+len(p.validation.FieldErrors) == 0 {
				t.Fatalf("%q: %v", raw, err)
			}
			return
		}
		again := jsontext.Value(o.Arguments)
		if err := again.Format(jsontext.ReorderRawObjects(true)); err != nil || string(again) != o.Arguments || again.Kind() != '{' {
			t.Errorf("%q: the arguments %q are not canonical: %v", raw, o.Arguments, err)
		}
		if !askTool.MatchString(o.Tool) || o.Program != "ci" || o.Timeout != 0 && (o.Timeout < time.Second || o.Timeout > maxAskTimeout) {
			t.Errorf("%q: %+v", raw, o)
		}
		if len(o.digest) != 64 || !json.Valid([]byte(raw)) {
			t.Errorf("%q was taken", raw)
		}
	})
}
