package devslack

import (
	"bytes"
	"encoding/json"
	"html"
	"net/http/httptest"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"
)

// Arguments: any body of any type is read or refused, never a panic, and what
// is logged of it is JSON.
func FuzzReadArgs(f *testing.F) {
	for _, seed := range []struct{ kind, body string }{
		{"application/json", `{"channel":"C1","blocks":[{"type":"divider"}],"text":null,"limit":5}`},
		{"application/x-www-form-urlencoded", "token=xoxb-1&text=a%26b&blocks=%5B%5D&text=c"},
		{"multipart/form-data; boundary=x", "--x\r\nContent-Disposition: form-data; name=\"text\"\r\n\r\nhi\r\n--x--\r\n"},
		{"text/plain", "x"}, {"application/json", `[]`}, {"", "a=b"}, {"application/json", ""},
	} {
		f.Add(seed.kind, seed.body)
	}
	f.Fuzz(func(t *testing.T, kind, body string) {
		r := httptest.NewRequest("POST", "/api/chat.postMessage", strings.NewReader(body))
		r.Header.Set("Content-Type", kind)
		a, err := readArgs(r)
		if err != nil {
			return
		}
		if !json.Valid(redact(a.logged())) {
			t.Errorf("logged as %s", a.logged())
		}
	})
}

// Typed text: nothing in the delivered text can act but mentions and links,
// and unescaped it is what was typed.
func FuzzTypedText(f *testing.F) {
	for _, seed := range []string{"", "a & b < c > d", "<@U123> run `x > y` and ```\nrm -rf <dir>\n```", "see https://example.com/a?b=1&c=2.",
		"<!channel> <!here> <http://x|y>", "&amp; &lt;", "<#C1> <@W2|name> <@u3>", "`", "``````", "\x00\u202e🙂"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, typed string) {
		if !utf8.ValidString(typed) {
			return
		}
		text, blocks := typedText(typed)
		if !json.Valid(blocks) {
			t.Fatalf("blocks %s", blocks)
		}
		rest := userMarkup.ReplaceAllString(text, "")
		for _, link := range typedLink.FindAllString(typed, -1) {
			rest = strings.ReplaceAll(rest, "<"+strings.ReplaceAll(link, "&", "&amp;")+">", "")
		}
		if strings.ContainsAny(rest, "<>") {
			t.Errorf("%q is delivered as %q", typed, text)
		}
		plain := text
		for _, link := range typedLink.FindAllString(typed, -1) {
			escaped := strings.ReplaceAll(link, "&", "&amp;")
			plain = strings.ReplaceAll(plain, "<"+escaped+">", escaped)
		}
		if got := strings.NewReplacer("&lt;", "<", "&gt;", ">", "&amp;", "&").Replace(plain); got != typed {
			t.Errorf("%q came back as %q", typed, got)
		}
	})
}

// The state file: read or refused, and what was read can be written and read
// again.
func FuzzReadRecords(f *testing.F) {
	var good bytes.Buffer
	for _, c := range newSeed().firstChannels() {
		good.Write(encode(record{Channel: c}))
		good.WriteByte('\n')
	}
	f.Add(good.Bytes())
	f.Add([]byte(`{"message":{"channel":"C1","message":{"ts":"1.000001","text":"x"}}}` + "\n" + `{"deleted":{"channel":"C1","ts":"1.000001"}}` + "\n{"))
	f.Add([]byte(`{"channel":{"id":"C1"}}` + "\n" + `{"message":{"channel":"C1","message":{"ts":"x","thread_ts":"y"}}}` + "\n" + `{"message":{}}` + "\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		s := &Server{timelines: map[string]*timeline{}, files: map[string]*File{}}
		if readRecords(bytes.NewReader(data), "state", s.apply) != nil {
			return
		}
		var out bytes.Buffer
		for _, rec := range s.records() {
			out.Write(encode(rec))
			out.WriteByte('\n')
		}
		again := &Server{timelines: map[string]*timeline{}, files: map[string]*File{}}
		if err := readRecords(&out, "state", again.apply); err != nil {
			t.Errorf("what was written can't be read: %v", err)
		}
	})
}

// Frames of the app: whatever comes, the server stands.
func FuzzReceivedFrame(f *testing.F) {
	for _, seed := range []string{`{"envelope_id":"x"}`, `{"envelope_id":"x","payload":{"response_action":"errors"}}`, `{}`, `[]`, `null`, `"x"`, "\xff", "", `{"envelope_id":7}`} {
		f.Add([]byte(seed))
	}
	s, err := New(Options{})
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { s.Close() })
	f.Fuzz(func(t *testing.T, data []byte) {
		s.received(data)
		calls := s.Calls(0)
		if last := calls[len(calls)-1]; !json.Valid(encode(last)) {
			t.Errorf("logged as %s", last.Request)
		}
	})
}

// Timestamps: what can be read is written back the same.
func FuzzParseTS(f *testing.F) {
	for _, seed := range []string{"1607382286.253900", "1.000001", "", ".", "1.1", "-1.000000", "99999999999.999999", "1e3.000000"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, ts string) {
		micros, ok := parseTS(ts)
		if !ok {
			return
		}
		again, ok := parseTS(formatTS(micros))
		if !ok || again != micros || micros < 0 {
			t.Errorf("%q is %d, written %q", ts, micros, formatTS(micros))
		}
	})
}

func FuzzReadCursor(f *testing.F) {
	f.Add(cursorFor(1512085861000543))
	f.Add("bmV4dF90czotMQ==")
	f.Add("x")
	f.Fuzz(func(t *testing.T, cursor string) {
		n, err := readCursor(cursor)
		if err == nil && cursor != "" && n < 0 {
			t.Errorf("%q is %d", cursor, n)
		}
	})
}

// Elements and their state: any blocks, any chosen value.
func FuzzElements(f *testing.F) {
	f.Add([]byte(`[{"type":"actions","block_id":"b","elements":[{"type":"static_select","action_id":"a","options":[{"value":"1"}]}]}]`), "1")
	f.Add([]byte(`[{"type":"section","accessory":{"type":"overflow","action_id":"a","option_groups":[{"options":[7]}]}}]`), "x")
	f.Add([]byte(`{"action_id":7,"elements":{"action_id":"x","type":[]}}`), "")
	f.Fuzz(func(t *testing.T, blocks []byte, value string) {
		for _, e := range elements(blocks) {
			for _, v := range []any{nil, value, []any{value}, 7} {
				if state, err := e.chosen(v); err == nil && state == nil {
					t.Errorf("%s: neither state nor error", e.actionID)
				}
			}
		}
		encode(stateValues(blocks, nil))
	})
}

// A merge patch applied twice is the same as once, and a null takes away.
func TestMergePatch(t *testing.T) {
	value := rapid.Deferred(func() *rapid.Generator[any] { return anyJSON(2) })
	rapid.Check(t, func(t *rapid.T) {
		patch := rapid.MapOfN(rapid.SampledFrom([]string{"a", "b", "c"}), value, 0, 3).Draw(t, "patch")
		target := rapid.MapOfN(rapid.SampledFrom([]string{"a", "b", "c"}), value, 0, 3).Draw(t, "target")
		once := mergePatch(target, patch)
		first := string(encode(once))
		if twice := string(encode(mergePatch(once, patch))); twice != first {
			t.Errorf("once %s, twice %s", first, twice)
		}
		for key, v := range patch {
			if _, there := once[key]; v == nil && there {
				t.Errorf("%s is still there", key)
			}
		}
	})
}

func anyJSON(depth int) *rapid.Generator[any] {
	leaf := rapid.OneOf(rapid.Just[any](nil), rapid.Map(rapid.String(), func(s string) any { return s }), rapid.Map(rapid.Bool(), func(b bool) any { return b }))
	if depth == 0 {
		return leaf
	}
	nested := rapid.Map(rapid.MapOfN(rapid.SampledFrom([]string{"a", "b"}), anyJSON(depth-1), 0, 2), func(m map[string]any) any { return m })
	return rapid.OneOf(leaf, nested)
}

// Stored text cut at any length never ends inside an entity and stays the
// beginning of the whole.
func TestCutStored(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		stored := escapeText(rapid.StringOf(rapid.SampledFrom([]rune("a&<>é🙂"))).Draw(t, "text"), false)
		n := rapid.IntRange(0, 40).Draw(t, "n")
		cut, was := cutStored(stored, n)
		if !strings.HasPrefix(stored, cut) || utf8.RuneCountInString(cut) > n || was != (utf8.RuneCountInString(stored) > n) {
			t.Errorf("%q cut to %d is %q", stored, n, cut)
		}
		if !strings.HasPrefix(html.UnescapeString(stored), html.UnescapeString(cut)) {
			t.Errorf("%q cut inside an entity: %q", stored, cut)
		}
	})
}

func FuzzReadManifest(f *testing.F) {
	f.Add(testManifest)
	f.Add("features: {slash_commands: [{command: /x}], shortcuts: [{type: message}]}")
	f.Add("settings: {event_subscriptions: {bot_events: [message.im, x]}}")
	f.Add(`{"display_information":{"name":"a"}}`)
	f.Fuzz(func(t *testing.T, text string) {
		app, err := ReadManifest([]byte(text))
		if err != nil {
			return
		}
		if len(app.Commands)+len(app.Shortcuts) > 0 && app.needs("commands") != nil {
			t.Error("commands without their scope")
		}
		for _, e := range app.BotEvents {
			if needs := eventNeeds[e]; needs != nil && app.needs(needs...) != nil {
				t.Errorf("%s without its scope", e)
			}
		}
	})
}

func FuzzLinkedTS(f *testing.F) {
	for _, seed := range []string{"p1796071199783485", "p1", "p", "", "x", "p-1000000", "p99999999999999999999"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, message string) {
		ts, ok := linkedTS(message)
		if _, valid := parseTS(ts); ok && (!valid || "p"+strings.Replace(ts, ".", "", 1) != message) {
			t.Errorf("%q is read as %q", message, ts)
		}
	})
}
