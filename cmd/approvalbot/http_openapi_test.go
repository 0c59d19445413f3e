package main

import (
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"
	"go.yaml.in/yaml/v3"
)

// A description is docs/openapi.yaml. Every answer that a test gets from the API is held against it, and every body that
// was accepted.
type description struct {
	doc     map[string]any
	mu      sync.Mutex
	schemas map[string]*jsonschema.Resolved
}

var described = sync.OnceValues(func() (*description, error) {
	raw, err := os.ReadFile(filepath.Join("..", "..", "docs", "openapi.yaml"))
	if err != nil {
		return nil, err
	}
	d := &description{schemas: map[string]*jsonschema.Resolved{}}
	if err := yaml.Unmarshal(raw, &d.doc); err != nil {
		return nil, err
	}
	return d, nil
})

// operation finds what is said of a request; its path, with the parameters' names, comes back, too.
func (d *description) operation(method, target string) (op map[string]any, pattern string) {
	u, err := url.Parse(target)
	if err != nil {
		return nil, ""
	}
	for pattern, item := range d.doc["paths"].(map[string]any) {
		if !fits(pattern, u.Path) {
			continue
		}
		op, _ := item.(map[string]any)[strings.ToLower(method)].(map[string]any)
		if op == nil { // a method that it doesn't have is answered as any of them would
			for _, o := range item.(map[string]any) {
				op, _ = o.(map[string]any)
			}
		}
		return op, pattern
	}
	return nil, ""
}

// fits tells whether a path is one of the pattern; a session's id has a slash in it.
func fits(pattern, path string) bool {
	if rest, ok := strings.CutPrefix(path, "/api/agent/sessions/"); ok {
		return pattern == "/api/agent/sessions/{sessionId}" && rest != ""
	}
	want, got := strings.Split(pattern, "/"), strings.Split(path, "/")
	if len(want) != len(got) {
		return false
	}
	for i := range want {
		if !strings.HasPrefix(want[i], "{") && want[i] != got[i] {
			return false
		}
	}
	return true
}

// check holds a JSON text against a part of the description: the schema of an answer, a body or a stream's message.
func (d *description) check(name string, part any, text string) error {
	schema, err := d.schema(name, part)
	if err != nil {
		return err
	}
	var v any
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		return err
	}
	return schema.Validate(v)
}

func (d *description) schema(name string, part any) (*jsonschema.Resolved, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if s := d.schemas[name]; s != nil {
		return s, nil
	}
	root := map[string]any{"$defs": dig(d.doc, "components.schemas"), "allOf": []any{part}}
	raw, err := json.Marshal(root)
	if err != nil {
		return nil, err
	}
	raw = []byte(strings.ReplaceAll(string(raw), "#/components/schemas/", "#/$defs/"))
	var s jsonschema.Schema
	if err := json.Unmarshal(raw, &s); err != nil {
		return nil, err
	}
	resolved, err := s.Resolve(nil)
	if err != nil {
		return nil, err
	}
	d.schemas[name] = resolved
	return resolved, nil
}

// deref follows a $ref to another part.
func (d *description) deref(part any) map[string]any {
	m, _ := part.(map[string]any)
	if ref, ok := m["$ref"].(string); ok {
		return d.deref(dig(d.doc, strings.ReplaceAll(strings.TrimPrefix(ref, "#/"), "/", ".")))
	}
	return m
}

// held holds an answer against the description.
func held(t testing.TB, method, target, body string, a answered) {
	t.Helper()
	d, err := described()
	if err != nil {
		t.Fatal(err)
	}
	op, pattern := d.operation(method, target)
	if op == nil {
		t.Errorf("%s %s is not described", method, target)
		return
	}
	response := d.deref(dig(op["responses"], fmt.Sprint(a.status)))
	content, _ := response["content"].(map[string]any)
	media, _ := content["application/json"].(map[string]any)
	if media == nil {
		t.Errorf("%s %s: no answer %d is described", method, pattern, a.status)
		return
	}
	if err := d.check(fmt.Sprint(method, pattern, a.status), media["schema"], a.raw); err != nil {
		t.Errorf("%s %s: the answer isn't what is described: %v\n%s", method, pattern, err, a.raw)
	}
	d.heldBody(t, op, method, pattern, body, a.status)
}

// heldBody: what the API takes has to be described, and what it refuses as invalid must not be.
func (d *description) heldBody(t testing.TB, op map[string]any, method, pattern, body string, status int) {
	t.Helper()
	request := d.deref(op["requestBody"])
	content, _ := request["content"].(map[string]any)
	media, _ := content["application/json"].(map[string]any)
	if media == nil || status != 200 {
		return
	}
	if err := d.check(method+pattern+" body", media["schema"], body); err != nil {
		t.Errorf("%s %s took a body that isn't described: %v\n%s", method, pattern, err, body)
	}
}

// heldMessage holds a message of a stream against the description.
func heldMessage(t testing.TB, raw string) {
	t.Helper()
	d, err := described()
	if err != nil {
		t.Fatal(err)
	}
	if err := d.check("stream", map[string]any{"$ref": "#/components/schemas/StreamMessage"}, raw); err != nil {
		t.Errorf("a stream's message isn't what is described: %v\n%s", err, raw)
	}
}

// The description describes every route that there is, and no other.
func TestOpenAPI(t *testing.T) {
	d, err := described()
	if err != nil {
		t.Fatal(err)
	}
	for name := range dig(d.doc, "components.schemas").(map[string]any) {
		if _, err := d.schema(name, map[string]any{"$ref": "#/components/schemas/" + name}); err != nil {
			t.Errorf("the schema %s: %v", name, err)
		}
	}
	inWorld(t, nil, func(w *world) {
		p := w.client(localToken)
		for pattern, item := range d.doc["paths"].(map[string]any) {
			path := strings.NewReplacer("{runId}", "none", "{toolCallId}", "none", "{sessionId}", "http/none", "{id}", "none", "{grantId}", "none").Replace(pattern)
			a := p.do("PATCH", path, "")
			var methods []string
			for _, m := range strings.Split(a.header.Get("Allow"), ", ") {
				if m != "HEAD" {
					methods = append(methods, strings.ToLower(m))
				}
			}
			if len(methods) != 1 || item.(map[string]any)[methods[0]] == nil || len(item.(map[string]any)) != 1 {
				t.Errorf("%s has %v", pattern, methods)
			}
		}
		p.do("GET", "/healthz", "").must(t, 200, "")
		p.do("GET", "/readyz", "").must(t, 200, "")
		p.do("POST", "/api/agent", `{"task":""}`).must(t, 400, "INVALID_REQUEST")
	})
	if heldWrong := d.check("x", map[string]any{"$ref": "#/components/schemas/Result"}, `{"runId":"a"}`); heldWrong == nil {
		t.Error("the description takes anything")
	}
}
