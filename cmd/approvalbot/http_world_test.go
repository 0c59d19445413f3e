package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing/synctest"
	"time"
)

// A client is somebody who talks to the bot over HTTP.
type client struct {
	w      *world
	token  string
	client *http.Client
}

// client makes one with a token. Its connections are closed with the test.
func (w *world) client(token string) *client {
	tr := &http.Transport{DialContext: w.api.DialContext}
	w.t.Cleanup(tr.CloseIdleConnections)
	return &client{w, token, &http.Client{Transport: tr}}
}

func (p *client) request(ctx context.Context, method, path, body string, headers ...string) *http.Request {
	p.w.t.Helper()
	r, err := http.NewRequestWithContext(ctx, method, "http://localhost"+path, strings.NewReader(body))
	if err != nil {
		p.w.t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+p.token)
	r.Header.Set("Content-Type", "application/json")
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	return r
}

// An answered is a response with its body read.
type answered struct {
	status int
	header http.Header
	raw    string
	body   map[string]any
}

func (p *client) do(method, path, body string, headers ...string) answered {
	p.w.t.Helper()
	resp, err := p.client.Do(p.request(context.Background(), method, path, body, headers...))
	if err != nil {
		p.w.t.Fatalf("%s %s: %v", method, path, err)
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(resp.Body)
	if err != nil {
		p.w.t.Fatalf("%s %s: %v", method, path, err)
	}
	p.client.CloseIdleConnections()
	a := answered{status: resp.StatusCode, header: resp.Header, raw: strings.TrimSpace(string(raw))}
	if err := json.Unmarshal(raw, &a.body); err != nil && method != http.MethodHead {
		p.w.t.Fatalf("%s %s: %v: %s", method, path, err, raw)
	}
	held(p.w.t, method, path, body, a)
	return a
}

// at finds a value in a body: "error.code".
func (a answered) at(path string) any { return dig(a.body, path) }

func dig(v any, path string) any {
	for name := range strings.SplitSeq(path, ".") {
		m, ok := v.(map[string]any)
		if !ok {
			return nil
		}
		v = m[name]
	}
	return v
}

// A heard is one message of a stream.
type heard struct {
	id   string
	raw  string
	body map[string]any
}

func (h heard) kind() string           { return h.str("type") }
func (h heard) at(path string) any     { return dig(h.body, path) }
func (h heard) str(path string) string { s, _ := h.at(path).(string); return s }

// A listener reads a stream in the background.
type listener struct {
	p      *client
	cancel context.CancelFunc
	status int
	header http.Header
	lines  chan heard
	beats  int
	ended  error // how reading ended, when lines is closed
}

// listen opens a stream; it has to be one.
func (p *client) listen(method, path, body string, headers ...string) *listener {
	p.w.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	resp, err := p.client.Do(p.request(ctx, method, path, body, headers...))
	if err != nil {
		p.w.t.Fatal(err)
	}
	if resp.StatusCode != http.StatusOK {
		raw, _ := io.ReadAll(resp.Body)
		p.w.t.Fatalf("%s %s: %d %s", method, path, resp.StatusCode, raw)
	}
	l := &listener{p: p, cancel: cancel, status: resp.StatusCode, header: resp.Header, lines: make(chan heard, 10_000)}
	p.w.t.Cleanup(cancel)
	go func() {
		defer close(l.lines)
		defer resp.Body.Close()
		l.ended = l.read(resp.Body)
	}()
	return l
}

func (l *listener) read(body io.Reader) error {
	r := bufio.NewReader(body)
	var h heard
	for {
		line, err := r.ReadString('\n')
		if err != nil {
			return err
		}
		line = strings.TrimSuffix(line, "\n")
		switch {
		case line == "" && h.raw != "":
			if err := json.Unmarshal([]byte(h.raw), &h.body); err != nil {
				return err
			}
			heldMessage(l.p.w.t, h.raw)
			l.lines <- h
			h = heard{}
		case strings.HasPrefix(line, "id: "):
			h.id = line[4:]
		case strings.HasPrefix(line, "data: "):
			h.raw = line[6:]
		case line == ": heartbeat":
			l.beats++
		}
	}
}

// until reads up to a message of a type.
func (l *listener) until(kind string) heard {
	l.p.w.t.Helper()
	var seen []string
	for {
		select {
		case h, ok := <-l.lines:
			if !ok {
				l.p.w.t.Fatalf("the stream ended (%v) before %s: %v", l.ended, kind, seen)
			}
			if seen = append(seen, h.raw); h.kind() == kind {
				return h
			}
		case <-time.After(time.Hour):
			l.p.w.t.Fatalf("no %s within an hour: %v", kind, seen)
		}
	}
}

// rest reads to the end of the stream.
func (l *listener) rest() (all []heard) {
	for h := range l.lines {
		all = append(all, h)
	}
	return all
}

// soFar gives what has come and not been read.
func (l *listener) soFar() (all []heard) {
	synctest.Wait()
	for {
		select {
		case h, ok := <-l.lines:
			if !ok {
				return all
			}
			all = append(all, h)
		default:
			return all
		}
	}
}

func kinds(all []heard) []string {
	var out []string
	for _, h := range all {
		out = append(out, h.kind())
	}
	return out
}

// order makes a body with a task, and further members as they stand in JSON.
func order(text string, more ...string) string {
	var b bytes.Buffer
	raw, _ := json.Marshal(text)
	b.WriteString(`{"task":` + string(raw))
	for i := 0; i < len(more); i += 2 {
		b.WriteString(`,"` + more[i] + `":` + more[i+1])
	}
	b.WriteString("}")
	return b.String()
}
