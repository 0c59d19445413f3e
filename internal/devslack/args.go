package devslack

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"net/url"
	"strconv"
	"strings"
)

// args are the arguments of an API call. Clients send a form whose nested
// values are JSON texts, or one JSON object; both become the same here:
// strings are themselves, anything else is its JSON text. A JSON null is an
// argument that isn't there.
type args map[string]string

const maxBody = 4 << 20

// readArgs collects the arguments from the query and the body; the last value
// of a repeated argument counts.
func readArgs(r *http.Request) (args, error) {
	out := args{}
	out.addForm(r.URL.Query())
	if r.Method == http.MethodGet {
		return out, nil
	}
	body, err := io.ReadAll(io.LimitReader(r.Body, maxBody+1))
	if err != nil {
		return nil, fmt.Errorf("reading the request: %w", err)
	}
	if len(body) > maxBody {
		return nil, &apiError{Code: "request_too_large"}
	}
	kind, params, _ := mime.ParseMediaType(r.Header.Get("Content-Type"))
	switch kind {
	case "application/json":
		return out, out.addJSON(body)
	case "multipart/form-data":
		return out, out.addMultipart(body, params["boundary"])
	case "", "application/x-www-form-urlencoded":
		form, err := url.ParseQuery(string(body))
		if err != nil {
			return nil, &apiError{Code: "invalid_form_data"}
		}
		out.addForm(form)
		return out, nil
	default:
		return nil, &apiError{Code: "invalid_post_type"}
	}
}

func (a args) addForm(form url.Values) {
	for key, values := range form {
		a[key] = values[len(values)-1]
	}
}

func (a args) addJSON(body []byte) error {
	if len(strings.TrimSpace(string(body))) == 0 {
		return nil // clients post JSON with an empty body to methods without arguments
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(body, &fields); err != nil {
		if json.Valid(body) {
			return &apiError{Code: "json_not_object"}
		}
		return &apiError{Code: "invalid_json"}
	}
	for key, raw := range fields {
		var text string
		switch {
		case string(raw) == "null":
		case json.Unmarshal(raw, &text) == nil:
			a[key] = text
		default:
			a[key] = string(raw)
		}
	}
	return nil
}

func (a args) addMultipart(body []byte, boundary string) error {
	form, err := multipart.NewReader(bytes.NewReader(body), boundary).ReadForm(maxBody)
	if err != nil {
		return &apiError{Code: "invalid_form_data"}
	}
	defer form.RemoveAll()
	a.addForm(form.Value)
	return nil
}

func (a args) str(name string) string { return a[name] }

func (a args) has(name string) bool {
	_, ok := a[name]
	return ok
}

// raw is a nested value; nil when it is absent or empty.
func (a args) raw(name string) json.RawMessage {
	if a[name] == "" || a[name] == "null" {
		return nil
	}
	return json.RawMessage(a[name])
}

func (a args) flag(name string) bool {
	v := a[name]
	return v == "true" || v == "1" || v == "True"
}

// count reads a number between 1 and most; absent is def, anything else an error.
func (a args) count(name string, def, most int) (int, error) {
	v := a[name]
	if v == "" {
		return def, nil
	}
	n, err := strconv.Atoi(v)
	if err != nil || n < 1 {
		return 0, &apiError{Code: "invalid_limit"}
	}
	return min(n, most), nil
}

// list reads a comma-separated list, or a JSON array of strings.
func (a args) list(name string) []string {
	v := a[name]
	var array []string
	if json.Unmarshal([]byte(v), &array) == nil {
		return array
	}
	var out []string
	for item := range strings.SplitSeq(v, ",") {
		if item = strings.TrimSpace(item); item != "" {
			out = append(out, item)
		}
	}
	return out
}

// logged is the arguments for the call log: nested JSON as such, tokens out.
func (a args) logged() json.RawMessage {
	out := map[string]any{}
	for key, value := range a {
		switch {
		case key == "token":
			out[key] = "redacted"
		case strings.HasPrefix(value, "[") || strings.HasPrefix(value, "{"):
			if json.Valid([]byte(value)) {
				out[key] = json.RawMessage(value)
				continue
			}
			out[key] = value
		default:
			out[key] = value
		}
	}
	return encode(out)
}
