package devslack

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/gorilla/websocket"
	"github.com/slack-go/slack"
	"github.com/slack-go/slack/socketmode"
)

// bench is a server over a pipe with an unmodified slack-go client.
type bench struct {
	t    *testing.T
	srv  *Server
	pipe *Pipe
	http *http.Client
	api  *slack.Client
	w    Workspace

	stop func()
}

const benchURL = "http://slack.test/"

func newBench(t *testing.T, opts Options) *bench {
	t.Helper()
	opts.Hosts = append(opts.Hosts, "slack.test")
	srv, err := New(opts)
	if err != nil {
		t.Fatal(err)
	}
	b := &bench{t: t, srv: srv, pipe: NewPipe(), w: srv.Workspace()}
	var serving sync.WaitGroup
	serving.Go(func() {
		if err := srv.Serve(b.pipe); !errors.Is(err, http.ErrServerClosed) {
			t.Errorf("Serve returned %v", err)
		}
	})
	transport := &http.Transport{DialContext: b.pipe.DialContext}
	b.http = &http.Client{Transport: transport}
	b.api = slack.New(b.w.App.BotToken, slack.OptionAppLevelToken(b.w.App.AppToken),
		slack.OptionAPIURL(benchURL+"api/"), slack.OptionHTTPClient(b.http))
	b.stop = sync.OnceFunc(func() {
		transport.CloseIdleConnections()
		if err := srv.Close(); err != nil {
			t.Error(err)
		}
		serving.Wait()
	})
	t.Cleanup(b.stop)
	return b
}

func (b *bench) user(name string) string {
	b.t.Helper()
	for _, u := range b.w.Users {
		if u.Name == name {
			return u.ID
		}
	}
	b.t.Fatalf("no user %s", name)
	return ""
}

func (b *bench) channel(name string) string {
	b.t.Helper()
	for _, c := range b.w.Channels {
		if c.Name == name {
			return c.ID
		}
	}
	b.t.Fatalf("no channel %s", name)
	return ""
}

// bot runs slack-go's socket client; handle gets every event, and what it
// returns true for is acknowledged with the payload it returns.
type bot struct {
	events []socketmode.Event
	client *socketmode.Client
	stop   func()
}

type handler func(evt socketmode.Event) (ack bool, payload any)

func ackAll(socketmode.Event) (bool, any) { return true, nil }

func (b *bench) connect(handle handler) *bot {
	b.t.Helper()
	out := &bot{client: socketmode.New(b.api, socketmode.OptionDialer(&websocket.Dialer{NetDialContext: b.pipe.DialContext}))}
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() { out.client.RunContext(ctx) })
	wg.Go(func() {
		for {
			select {
			case <-ctx.Done():
				return
			case evt := <-out.client.Events:
				out.events = append(out.events, evt)
				if evt.Request == nil || evt.Request.EnvelopeID == "" {
					continue
				}
				if ok, payload := handle(evt); ok {
					if payload == nil {
						out.client.AckCtx(ctx, evt.Request.EnvelopeID, nil)
					} else {
						out.client.AckCtx(ctx, evt.Request.EnvelopeID, payload)
					}
				}
			}
		}
	})
	out.stop = sync.OnceFunc(func() { cancel(); wg.Wait() })
	b.t.Cleanup(out.stop)
	synctest.Wait()
	return out
}

// of returns the events of one type so far. Call it when the bubble is idle.
func (o *bot) of(kind socketmode.EventType) []socketmode.Event {
	var out []socketmode.Event
	for _, e := range o.events {
		if e.Type == kind {
			out = append(out, e)
		}
	}
	return out
}

// call posts to the control plane (GET without a body).
func (b *bench) control(method, path string, body, into any) int {
	b.t.Helper()
	var in io.Reader
	if body != nil {
		in = bytes.NewReader(encode(body))
	}
	req, err := http.NewRequest(method, benchURL+path, in)
	if err != nil {
		b.t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	res, err := b.http.Do(req)
	if err != nil {
		b.t.Fatal(err)
	}
	defer res.Body.Close()
	if err := json.NewDecoder(res.Body).Decode(into); err != nil {
		b.t.Fatalf("%s %s: %v", method, path, err)
	}
	return res.StatusCode
}

// bubble runs the test in fake time with a bench of its own.
func bubble(t *testing.T, opts Options, run func(*testing.T, *bench)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { run(t, newBench(t, opts)) })
}

// postCard posts an ask with two buttons.
func (b *bench) postCard(channel string) string {
	b.t.Helper()
	_, ts, err := b.api.PostMessage(b.channel(channel), slack.MsgOptionText("Run it?", false), slack.MsgOptionBlocks(card("Run it?")...))
	if err != nil {
		b.t.Fatal(err)
	}
	return ts
}

// answer is what a Web API call came back with.
type answer struct {
	status int
	header http.Header
	body   map[string]any
}

func (a answer) err() string { s, _ := a.body["error"].(string); return s }

// call makes a Web API call below any client library, as a form.
func (b *bench) call(method string, fields map[string]string) answer {
	b.t.Helper()
	form := url.Values{"token": {b.w.App.BotToken}}
	for k, v := range fields {
		form.Set(k, v)
	}
	return b.send(method, "application/x-www-form-urlencoded", form.Encode(), "")
}

func (b *bench) send(method, contentType, body, bearer string) answer {
	b.t.Helper()
	req, err := http.NewRequest("POST", benchURL+"api/"+method, strings.NewReader(body))
	if err != nil {
		b.t.Fatal(err)
	}
	req.Header.Set("Content-Type", contentType)
	if bearer != "" {
		req.Header.Set("Authorization", "Bearer "+bearer)
	}
	return b.do(req)
}

func (b *bench) do(req *http.Request) answer {
	b.t.Helper()
	res, err := b.http.Do(req)
	if err != nil {
		b.t.Fatal(err)
	}
	defer res.Body.Close()
	out := answer{status: res.StatusCode, header: res.Header}
	if err := json.NewDecoder(res.Body).Decode(&out.body); err != nil {
		b.t.Fatalf("%s: %v", req.URL, err)
	}
	return out
}

// message returns one message as the control plane shows it.
func (b *bench) message(channel, ts string) *Message {
	b.t.Helper()
	messages, err := b.srv.Messages(channel, "")
	if err != nil {
		b.t.Fatal(err)
	}
	for _, m := range messages {
		if m.TS == ts {
			return &m
		}
	}
	return nil
}
