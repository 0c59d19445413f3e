package model

import (
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"time"
	"unicode"
)

// provider is what the two kinds of provider have in common: what it is called
// for people, and where it is.
type provider struct {
	label      string // "Anthropic"
	model      string // the provider's name for the model
	name       string // ours: "anthropic/NAME"
	keySetting string
	urlSetting string
	key        string
	base       *url.URL
	elsewhere  bool // another server than the provider's own
	stall      time.Duration
}

func newProvider(p provider, ownURL, baseURL string) (provider, error) {
	p.elsewhere = baseURL != ""
	if baseURL == "" {
		baseURL = ownURL
	}
	var err error
	if p.base, err = checkBaseURL(baseURL); err != nil {
		return p, fmt.Errorf("%s: %w", p.urlSetting, err)
	}
	switch {
	case p.key == "" && !p.elsewhere:
		return p, fmt.Errorf("%s is not set: the model %s needs a key of %s", p.keySetting, p.name, p.label)
	case strings.ContainsFunc(p.key, func(r rune) bool { return r <= ' ' || r > '~' }):
		return p, fmt.Errorf("%s has characters in it that no key has (a space, a line break, an accent): copy it again", p.keySetting)
	}
	return p, nil
}

// CheckBaseURL says what is wrong with the address of a provider's API, if
// anything is. The empty address is the provider's own.
func CheckBaseURL(address string) error {
	if address == "" {
		return nil
	}
	_, err := checkBaseURL(address)
	return err
}

func checkBaseURL(address string) (*url.URL, error) {
	u, err := url.Parse(address)
	switch {
	case err != nil || u.Host == "" || u.Hostname() == "":
		return nil, errors.New("it has to be an address such as https://models.example.com/v1")
	case u.User != nil:
		return nil, errors.New("it can't hold a user or a password; the key has a setting of its own")
	case u.RawQuery != "" || u.Fragment != "":
		return nil, errors.New("it can't have a ? or a #")
	case u.Scheme == "https", u.Scheme == "http" && isLoopback(u.Hostname()):
		return u, nil
	case u.Scheme == "http":
		return nil, fmt.Errorf("http://%s is refused: the key and all that the model gets to know would cross the network in the clear; use https, or http to this machine only (127.0.0.1, localhost)", u.Host)
	}
	return nil, errors.New("it has to begin with https:// (or http:// for this machine)")
}

func isLoopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// who is the provider in a sentence.
func (p *provider) who() string {
	if p.elsewhere {
		return "The model server at " + p.base.Host
	}
	return p.label
}

const eventStreamType = "text/event-stream"

// maxBody is more than any answer is long.
const maxBody = 32 << 20

// maxFault is more than any error needs to say.
const maxFault = 64 << 10

var (
	errIdle    = errors.New("nothing came for too long")
	errTooLong = errors.New("it is longer than any answer should be")
)

// statusError is an answer that isn't one: any status but 2xx.
type statusError struct {
	status int
	header http.Header
	body   []byte
}

func (e *statusError) Error() string { return fmt.Sprintf("HTTP %d", e.status) }

// doer sends requests for the SDKs. What the SDKs would do by themselves with a
// status, a redirect or silence, each in its own way, is done here once.
type doer struct {
	client *http.Client
	idle   time.Duration
}

func newDoer(o Options) doer {
	d := doer{client: &http.Client{}, idle: o.Idle}
	if o.HTTPClient != nil {
		*d.client = *o.HTTPClient
	}
	if d.client.Transport == nil {
		d.client.Transport = &http.Transport{
			DialContext:         (&net.Dialer{Timeout: 15 * time.Second}).DialContext,
			TLSHandshakeTimeout: 15 * time.Second,
			ForceAttemptHTTP2:   true,
			IdleConnTimeout:     90 * time.Second,
			MaxIdleConnsPerHost: 16,
			DisableCompression:  true, // a compressed stream arrives in lumps
		}
	}
	d.client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	if d.idle <= 0 {
		d.idle = DefaultIdle
	}
	return d
}

// Do sends one request. Its body ends with errIdle when nothing comes for too
// long, and with errTooLong when too much does.
func (d doer) Do(req *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithCancel(req.Context())
	b := &body{cancel: cancel, idle: d.idle, left: maxBody}
	if req.Header.Get("Accept") != eventStreamType {
		b.idle *= 2 // an answer in one piece is silent until it is whole
	}
	b.timer = time.AfterFunc(b.idle, func() {
		b.idled.Store(true)
		cancel()
	})
	res, err := d.client.Do(req.WithContext(ctx))
	if err != nil {
		b.end()
		return nil, b.cause(err)
	}
	b.rc, res.Body = res.Body, b
	if res.StatusCode/100 == 2 {
		return res, nil
	}
	text, err := io.ReadAll(io.LimitReader(b, maxFault))
	b.Close()
	if err != nil && req.Context().Err() != nil {
		return nil, err
	}
	return nil, &statusError{res.StatusCode, res.Header, text} // what could be read of it will do
}

// body is an answer's body that doesn't wait for ever.
type body struct {
	rc     io.ReadCloser
	cancel context.CancelFunc // of the request
	timer  *time.Timer
	idle   time.Duration
	idled  atomic.Bool // the timer ended the request
	left   int
}

func (b *body) Read(p []byte) (int, error) {
	n, err := b.rc.Read(p)
	if b.left -= n; b.left < 0 {
		return 0, errTooLong
	}
	if n > 0 {
		b.timer.Reset(b.idle)
	}
	return n, b.cause(err)
}

// cause says why a request ended, if we ended it.
func (b *body) cause(err error) error {
	if err != nil && err != io.EOF && b.idled.Load() {
		return errIdle
	}
	return err
}

func (b *body) Close() error {
	err := b.rc.Close()
	b.end()
	return err
}

func (b *body) end() {
	b.timer.Stop()
	b.cancel()
}

// A watch ends a request whose answer doesn't go on although its connection lives:
// one that brings nothing but pings and comments, or a byte now and then.
type watch struct {
	timer *time.Timer
	limit time.Duration
}

// watch begins to wait for an answer. The context that it returns ends with
// errIdle as its cause, or with end.
func (p *provider) watch(ctx context.Context) (w *watch, watched context.Context, end func()) {
	watched, cancel := context.WithCancelCause(ctx)
	w = &watch{timer: time.AfterFunc(p.stall, func() { cancel(errIdle) }), limit: p.stall}
	return w, watched, func() {
		w.timer.Stop()
		cancel(nil)
	}
}

// progress notes that something of the answer came.
func (w *watch) progress() { w.timer.Reset(w.limit) }

// unwatched is the error of a request that was being watched.
func (p *provider) unwatched(ctx, watched context.Context, err error) error {
	if ctx.Err() == nil && context.Cause(watched) == errIdle {
		err = p.broken("stopped coming", errIdle)
	}
	return p.failed(ctx, err)
}

// mediaType is what an answer says that it is.
func mediaType(res *http.Response) string {
	t, _, err := mime.ParseMediaType(res.Header.Get("Content-Type"))
	if err != nil {
		return ""
	}
	return t
}

// tokens is a count as a provider reports it. What can't be one is none: a sum of
// it would be worse than nothing, and the length of a session is told by it.
func tokens(n int64) int {
	if n < 0 || n > maxTokens {
		return 0
	}
	return int(n)
}

// oneLine is a text of somebody else as a part of a sentence of ours: without
// control characters and line breaks, and not longer than the sentence bears.
func oneLine(text string, most int) string {
	clean := strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r):
			return ' '
		case !unicode.IsPrint(r):
			return -1
		}
		return r
	}, strings.ToValidUTF8(text, ""))
	clean = strings.Join(strings.Fields(clean), " ")
	if runes := []rune(clean); len(runes) > most {
		clean = strings.TrimSpace(string(runes[:most])) + "…"
	}
	return clean
}
