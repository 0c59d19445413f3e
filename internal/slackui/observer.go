package slackui

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// An Observer counts what happens between us and Slack. Its methods are called from everywhere and must not block.
type Observer interface {
	// Called: a call of the Web API was answered, or not. The result is ok, Slack's error code, ratelimited, http_STATUS,
	// no_answer, cancelled (we gave it up), or unreadable.
	Called(method, result string, took time.Duration)
	// Connected: Slack said hello.
	Connected()
	// Disconnected: a connection ended by itself, for the reason that Slack gave, or "lost".
	Disconnected(reason string)
}

// nobody is the observer where there is none.
type nobody struct{}

func (nobody) Called(string, string, time.Duration) {}
func (nobody) Connected()                           {}
func (nobody) Disconnected(string)                  {}

// upload is what sending a file to the address that Slack named for it counts as.
const upload = "upload"

// method is the name of the method that a URL calls.
func (c *caller) method(u *url.URL) string {
	whole := url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path}
	if name, ok := strings.CutPrefix(whole.String(), c.base); ok {
		return name
	}
	return upload
}

// outcome says in a word what became of a call. It reads the answer's body and puts it back.
func outcome(ctx context.Context, resp *http.Response, err error) string {
	switch {
	case err != nil && errors.Is(ctx.Err(), context.Canceled):
		return "cancelled"
	case err != nil:
		return "no_answer"
	case resp.StatusCode == http.StatusTooManyRequests:
		return "ratelimited"
	case resp.StatusCode != http.StatusOK:
		return "http_" + strconv.Itoa(resp.StatusCode)
	case !strings.HasPrefix(resp.Header.Get("Content-Type"), "application/json"):
		return "ok" // an upload is answered with a word
	}
	read, err := io.ReadAll(io.LimitReader(resp.Body, payloadMost))
	resp.Body = &readAgain{Reader: io.MultiReader(bytes.NewReader(read), rest{resp.Body, err}), Closer: resp.Body}
	var answer struct {
		OK    bool   `json:"ok"`
		Error string `json:"error"`
	}
	switch {
	case err != nil:
		return "no_answer"
	case json.Unmarshal(read, &answer) != nil:
		return "unreadable"
	case answer.OK:
		return "ok"
	case answer.Error == "":
		return "unreadable"
	}
	return answer.Error
}

// readAgain is a body of which a part was read before.
type readAgain struct {
	io.Reader
	io.Closer
}

// rest is what follows what was read: the error that ended the reading, or more.
type rest struct {
	body io.Reader
	err  error
}

func (r rest) Read(p []byte) (int, error) {
	if r.err != nil {
		return 0, r.err
	}
	return r.body.Read(p)
}
