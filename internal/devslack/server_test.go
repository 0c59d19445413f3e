package devslack

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/slack-go/slack"
	"github.com/slack-go/slack/socketmode"
	"pgregory.net/rapid"
)

// After a restart the workspace is the same: ids, tokens, messages, threads,
// reactions, metadata, files. Ephemerals are gone.
func TestRestart(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "slack")
	bubble(t, Options{Dir: dir}, func(t *testing.T, b *bench) {
		general := b.channel("general")
		parent := b.postCard("general")
		b.call("chat.postMessage", map[string]string{"channel": general, "text": "reply", "thread_ts": parent,
			"metadata": `{"event_type":"ask","event_payload":{"id":"1"}}`})
		gone := b.postCard("ops-private")
		b.call("chat.delete", map[string]string{"channel": b.channel("ops-private"), "ts": gone})
		b.call("chat.update", map[string]string{"channel": general, "ts": parent, "text": "changed"})
		b.call("reactions.add", map[string]string{"channel": general, "timestamp": parent, "name": "eyes"})
		if err := b.srv.Join(MembershipRequest{User: b.w.App.BotUserID, Channel: b.channel("random")}); err != nil {
			t.Fatal(err)
		}
		content := "kept"
		f, err := b.api.UploadFile(slack.UploadFileParameters{Channel: general, Filename: "a.txt", Content: content, FileSize: len(content)})
		if err != nil {
			t.Fatal(err)
		}
		before, err := b.srv.Messages(general, "")
		if err != nil {
			t.Fatal(err)
		}
		b.call("chat.postEphemeral", map[string]string{"channel": general, "user": b.user("bob"), "text": "psst"})
		workspace := b.srv.Workspace()
		b.stop()

		again := newBench(t, Options{Dir: dir})
		if diff := cmp.Diff(workspace, again.w); diff != "" {
			t.Errorf("workspace (-before +after):\n%s", diff)
		}
		after, err := again.srv.Messages(general, "")
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(encode(before)), string(encode(after))); diff != "" {
			t.Errorf("messages (-before +after):\n%s", diff)
		}
		if rest, err := again.srv.Messages(again.channel("ops-private"), ""); err != nil || len(rest) != 0 {
			t.Errorf("a deleted message is back: %s, %v", encode(rest), err)
		}
		var down bytes.Buffer
		if err := again.api.GetFile(again.srv.files[f.ID].URLPrivateDownload, &down); err != nil || down.String() != content {
			t.Errorf("file %q, %v", down.String(), err)
		}
		if ts := again.postCard("general"); ts <= after[len(after)-1].TS {
			t.Errorf("the new ts %s is not after %s", ts, after[len(after)-1].TS)
		}
	})
}

// What was answered is in the file already: a killed process loses nothing,
// and the line it was writing is left out.
func TestKilledProcess(t *testing.T) {
	dir := t.TempDir()
	s, err := New(Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	w := s.Workspace()
	ts, err := s.SendMessage(MessageRequest{User: w.Users[0].ID, Channel: w.Channels[0].ID, Text: "kept"})
	if err != nil {
		t.Fatal(err)
	}
	state, err := os.ReadFile(filepath.Join(dir, stateName)) // as it is without Close
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	other := t.TempDir()
	torn := append(state, []byte(`{"message":{"channel":"`)...)
	if err := os.WriteFile(filepath.Join(other, stateName), torn, 0o600); err != nil {
		t.Fatal(err)
	}
	for range 2 { // the second start reads what the first has rewritten
		s, err = New(Options{Dir: other})
		if err != nil {
			t.Fatal(err)
		}
		messages, err := s.Messages(w.Channels[0].ID, "")
		if err != nil || len(messages) != 1 || messages[0].TS != ts || s.Workspace().App.Identity != w.App.Identity {
			t.Errorf("messages %s, %v", encode(messages), err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

func TestStateDirectory(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a", "b")
	s, err := New(Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]os.FileMode{"": 0o700, "files": 0o700, stateName: 0o600, "lock": 0o600} {
		info, err := os.Stat(filepath.Join(dir, name))
		if err != nil || info.Mode().Perm() != want {
			t.Errorf("%q: %v, %v", name, info.Mode(), err)
		}
	}
	if _, err := New(Options{Dir: dir}); err == nil || !strings.Contains(err.Error(), "in use") {
		t.Errorf("a second server on the same directory: %v", err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, stateName), []byte("{}\nnonsense\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := New(Options{Dir: dir}); err == nil || !strings.Contains(err.Error(), "line 2") {
		t.Errorf("a damaged file: %v", err)
	}
	if _, err := New(Options{Dir: "/dev/null/x"}); err == nil {
		t.Error("a directory that can't be made")
	}
}

// When the state can't be written nothing happens and nothing is answered as
// done.
func TestUnwritableState(t *testing.T) {
	bubble(t, Options{Dir: t.TempDir()}, func(t *testing.T, b *bench) {
		ts := b.postCard("general")
		b.srv.store.file.Close()
		for method, fields := range map[string]map[string]string{
			"chat.postMessage": {"channel": b.channel("general"), "text": "x"},
			"chat.update":      {"channel": b.channel("general"), "ts": ts, "text": "x"},
			"chat.delete":      {"channel": b.channel("general"), "ts": ts},
		} {
			if got := b.call(method, fields); got.err() != "internal_error" {
				t.Errorf("%s: %v", method, got.body)
			}
		}
		messages, err := b.srv.Messages(b.channel("general"), "")
		if err != nil || len(messages) != 1 || messages[0].Text != "Run it?" {
			t.Errorf("messages %s, %v", encode(messages), err)
		}
		b.srv.store.file = nil // so that Close has nothing to complain about
	})
}

// Any sequence of changes, read back from the file, is the same state.
func TestStateReadBackIsTheSame(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		dir, err := os.MkdirTemp("", "devslack")
		if err != nil {
			rt.Fatal(err)
		}
		defer os.RemoveAll(dir)
		s, err := New(Options{Dir: dir})
		if err != nil {
			rt.Fatal(err)
		}
		w := s.Workspace()
		alice, general := w.Users[0].ID, w.Channels[0].ID
		var ts []string
		for range rapid.IntRange(0, 30).Draw(rt, "steps") {
			at := ""
			if len(ts) > 0 {
				at = rapid.SampledFrom(ts).Draw(rt, "ts")
			}
			text := rapid.StringN(1, 20, -1).Draw(rt, "text")
			switch rapid.IntRange(0, 4).Draw(rt, "what") {
			case 0, 1:
				new, err := s.SendMessage(MessageRequest{User: alice, Channel: general, Text: text})
				if err != nil {
					rt.Fatal(err)
				}
				ts = append(ts, new)
			case 2:
				s.SendMessage(MessageRequest{User: alice, Channel: general, Text: text, ThreadTS: at}) // refused below a tombstone or reply
			case 3:
				s.EditMessage(MessageRef{User: alice, Channel: general, TS: at, Text: text}) // refused when it is gone
			case 4:
				s.DeleteMessage(MessageRef{User: alice, Channel: general, TS: at})
			}
		}
		before, err := s.Messages(general, "")
		if err != nil {
			rt.Fatal(err)
		}
		if err := s.Close(); err != nil {
			rt.Fatal(err)
		}
		if s, err = New(Options{Dir: dir}); err != nil {
			rt.Fatal(err)
		}
		after, err := s.Messages(general, "")
		if err != nil {
			rt.Fatal(err)
		}
		if diff := cmp.Diff(string(encode(before)), string(encode(after))); diff != "" {
			rt.Errorf("messages (-before +after):\n%s", diff)
		}
		if err := s.Close(); err != nil {
			rt.Fatal(err)
		}
	})
}

// Timestamps are unique within a channel and grow, also when a hundred people
// write in the same microsecond.
func TestTimestampsAreUnique(t *testing.T) {
	bubble(t, Options{}, func(t *testing.T, b *bench) {
		var mu sync.Mutex
		seen := map[string]bool{}
		var wg sync.WaitGroup
		for range 100 {
			wg.Go(func() {
				ts, err := b.srv.SendMessage(MessageRequest{User: b.user("bob"), Channel: b.channel("general"), Text: "x"})
				mu.Lock()
				defer mu.Unlock()
				if err != nil || seen[ts] || len(ts) != 17 {
					t.Errorf("ts %s, %v", ts, err)
				}
				seen[ts] = true
			})
		}
		wg.Wait()
		messages, err := b.srv.Messages(b.channel("general"), "")
		if err != nil || len(messages) != 100 {
			t.Errorf("%d messages, %v", len(messages), err)
		}
	})
}

// Other web pages can neither read nor act through a browser; official clients
// of the Web API are not asked such questions.
func TestGuard(t *testing.T) {
	s, err := New(Options{Hosts: []string{"slack.test"}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	type headers map[string]string
	for name, test := range map[string]struct {
		method, path, host string
		headers            headers
		status             int
	}{
		"by loopback name":           {"GET", "/_dev/workspace", "localhost:3103", nil, 200},
		"by IPv4":                    {"GET", "/_dev/workspace", "127.0.0.1:3103", nil, 200},
		"by IPv6":                    {"GET", "/_dev/workspace", "[::1]:3103", nil, 200},
		"by a name of ours":          {"GET", "/_dev/workspace", "slack.test", nil, 200},
		"DNS rebinding":              {"GET", "/_dev/workspace", "evil.example:3103", nil, 403},
		"DNS rebinding of the page":  {"GET", "/", "evil.example:3103", nil, 403},
		"a name that looks like one": {"GET", "/_dev/workspace", "localhost.evil.example", nil, 403},
		"a foreign origin":           {"POST", "/_dev/faults", "localhost:3103", headers{"Origin": "https://evil.example", "Content-Type": "application/json"}, 403},
		"another port":               {"POST", "/_dev/faults", "localhost:3103", headers{"Origin": "http://localhost:9", "Content-Type": "application/json"}, 403},
		"an opaque origin":           {"POST", "/_dev/faults", "localhost:3103", headers{"Origin": "null", "Content-Type": "application/json"}, 403},
		"a cross-site read":          {"GET", "/_dev/workspace", "localhost:3103", headers{"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "no-cors"}, 403},
		"a foreign delete":           {"DELETE", "/_dev/faults", "localhost:3103", headers{"Origin": "https://evil.example"}, 403},
		"a form":                     {"POST", "/_dev/faults", "localhost:3103", headers{"Content-Type": "application/x-www-form-urlencoded"}, 415},
		"plain text":                 {"POST", "/_dev/faults", "localhost:3103", headers{"Content-Type": "text/plain"}, 415},
		"no type":                    {"POST", "/_dev/faults", "localhost:3103", nil, 415},
		"our own page":               {"POST", "/_dev/faults", "localhost:3103", headers{"Origin": "http://localhost:3103", "Sec-Fetch-Site": "same-origin", "Content-Type": "application/json; charset=utf-8"}, 200},
		"a link to the page":         {"GET", "/", "localhost:3103", headers{"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"}, 200},
		"an unknown route":           {"GET", "/_dev/nothing", "localhost:3103", nil, 404},
		"an official client":         {"POST", "/api/api.test", "slack.example", headers{"Origin": "https://api.slack.com"}, 200},
	} {
		req := httptest.NewRequest(test.method, test.path, strings.NewReader(`{"method":"x","error":"y"}`))
		if test.method != "POST" {
			req = httptest.NewRequest(test.method, test.path, nil)
		}
		req.Host = test.host
		for k, v := range test.headers {
			req.Header.Set(k, v)
		}
		w := httptest.NewRecorder()
		s.Handler().ServeHTTP(w, req)
		if w.Code != test.status {
			t.Errorf("%s: %d %s, want %d", name, w.Code, w.Body, test.status)
		}
	}
}

// The page hears of everything that happens, with the ids to fetch it by.
func TestEventStream(t *testing.T) {
	bubble(t, Options{}, func(t *testing.T, b *bench) {
		res, err := b.http.Get(benchURL + "_dev/events")
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		notices := make(chan map[string]any, 100)
		go func() {
			defer close(notices)
			lines := bufio.NewScanner(res.Body)
			for lines.Scan() {
				var notice map[string]any
				if data, ok := strings.CutPrefix(lines.Text(), "data: "); ok && json.Unmarshal([]byte(data), &notice) == nil {
					notices <- notice
				}
			}
		}()
		synctest.Wait()
		bot := b.modalBot()
		general := b.channel("general")
		b.opened(bot)
		card, err := b.srv.Messages(general, "")
		if err != nil {
			t.Fatal(err)
		}
		ts := card[0].TS
		b.call("assistant.threads.setStatus", map[string]string{"channel_id": general, "thread_ts": ts, "status": "is thinking"})
		b.call("chat.postMessage", map[string]string{"channel": general, "thread_ts": ts, "text": "done"})
		b.call("chat.update", map[string]string{"channel": general, "ts": ts, "text": "done"})
		b.call("chat.postEphemeral", map[string]string{"channel": general, "user": b.user("bob"), "text": "psst"})
		b.call("chat.delete", map[string]string{"channel": general, "ts": ts})
		bot.stop()
		synctest.Wait()
		b.stop()
		got := map[string]int{}
		for n := range notices {
			kind, _ := n["type"].(string)
			got[kind]++
			switch kind {
			case "message", "message_changed", "message_deleted", "ephemeral":
				if n["channel"] != general || n["ts"] == "" {
					t.Errorf("notice %v", n)
				}
			case "view":
				if n["user"] != b.user("bob") || n["view_id"] == "" {
					t.Errorf("notice %v", n)
				}
			case "socket":
				if _, ok := n["connections"].(float64); !ok {
					t.Errorf("notice %v", n)
				}
			}
		}
		delete(got, "call")
		want := map[string]int{"socket": 2, "message": 2, "view": 1, "typing": 2, "message_changed": 1, "ephemeral": 1, "message_deleted": 1}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("notices (-want +got):\n%s", diff)
		}
	})
}

// A page that doesn't read is cut off, it holds nothing up.
func TestSlowPage(t *testing.T) {
	bubble(t, Options{}, func(t *testing.T, b *bench) {
		sub := b.srv.hub.subscribe()
		for range 1000 {
			b.srv.hub.publish(map[string]any{"type": "message"})
		}
		n := 0
		for range sub {
			n++
		}
		if n == 0 || n == 1000 {
			t.Errorf("got %d notices before the end", n)
		}
	})
}

// A status goes away by itself.
func TestStatusEnds(t *testing.T) {
	bubble(t, Options{}, func(t *testing.T, b *bench) {
		ts := b.postCard("general")
		b.call("assistant.threads.setStatus", map[string]string{"channel_id": b.channel("general"), "thread_ts": ts, "status": "is thinking"})
		time.Sleep(statusLife - time.Second)
		shown := func() int {
			b.srv.mu.Lock()
			defer b.srv.mu.Unlock()
			return len(b.srv.statuses)
		}
		if shown() != 1 {
			t.Error("gone too early")
		}
		time.Sleep(2 * time.Second)
		if shown() != 0 {
			t.Error("still there")
		}
	})
}

// Close ends everything in the middle of it: sockets, waiting clicks, delayed
// answers, streams, redeliveries. The bubble would notice what stays.
func TestCloseInTheMiddle(t *testing.T) {
	bubble(t, Options{}, func(t *testing.T, b *bench) {
		b.connect(func(socketmode.Event) (bool, any) { return false, nil })
		ts := b.postCard("general")
		if err := b.srv.SetFault(Fault{Method: "auth.test", DelayMS: 3_600_000}); err != nil {
			t.Fatal(err)
		}
		var wg sync.WaitGroup
		wg.Go(func() {
			if _, err := b.api.AuthTest(); err == nil {
				t.Error("an answer came from a closed server")
			}
		})
		wg.Go(func() {
			if r, err := b.srv.Click(t.Context(), ActionRequest{User: b.user("bob"), Channel: b.channel("general"), TS: ts, ActionID: "approve"}); err != nil || r.Acked {
				t.Errorf("%+v, %v", r, err)
			}
		})
		synctest.Wait()
		start := time.Now()
		b.stop()
		wg.Wait()
		if took := time.Since(start); took != 0 {
			t.Errorf("closing took %v", took)
		}
		if err := b.srv.Serve(NewPipe()); !errors.Is(err, http.ErrServerClosed) {
			t.Errorf("serving again: %v", err)
		}
		if err := b.srv.Close(); err != nil {
			t.Errorf("closing again: %v", err)
		}
	})
}

// Over a real loopback listener its own address is a good host.
func TestLoopback(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s, err := New(Options{})
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	wg.Go(func() { s.Serve(ln) })
	res, err := http.Get("http://" + ln.Addr().String() + "/_dev/workspace")
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	var w Workspace
	if err := json.NewDecoder(res.Body).Decode(&w); err != nil || w.App.Identity != s.Workspace().App.Identity {
		t.Errorf("%+v, %v", w, err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	wg.Wait()
}
