package tools

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/google/jsonschema-go/jsonschema"

	"approvalbot/internal/language"
)

// Limits of http_request.
const (
	httpTimeout   = 30 * time.Second
	httpLongest   = 120 * time.Second
	httpDial      = 10 * time.Second
	httpRedirects = 5
	httpText      = 64 << 10  // bytes of a body that are shown
	httpBody      = 256 << 10 // characters of a body that is sent
	httpHeaders   = 50        // each way
	httpHeader    = 4096      // characters of a header that is sent
	httpAnswered  = 300       // characters of a header that is shown
)

// HTTPOptions say what http_request may reach besides the public internet.
type HTTPOptions struct {
	// Allow are the hosts that may be on this machine or in a private network, as
	// HOST or HOST:PORT; without a port: 80 and 443.
	Allow []string
	// Own are the addresses that this program listens on, which no tool reaches.
	Own []netip.AddrPort
}

// http_request makes one request. What is approved is exactly what is sent, to
// the host that the card names and no other: a redirect to another host is told to
// the model, which may ask for it.
type httpRequest struct {
	guard   guard
	connect func(ctx context.Context, network, address string) (net.Conn, error) // guarded
	lang    language.Language
}

func newHTTPRequest(o HTTPOptions) (*httpRequest, error) {
	list, err := parseHosts(o.Allow)
	if err != nil {
		return nil, fmt.Errorf("tools: the hosts that may be private: %w", err)
	}
	t := &httpRequest{guard: guard{hosts: list, own: o.Own, local: localAddrs()}}
	t.connect = t.dial
	return t, nil
}

// dial connects to HOST:PORT, if the guard agrees with the address that comes of
// it.
func (t *httpRequest) dial(ctx context.Context, network, address string) (net.Conn, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	name, err := cleanHost(host)
	if err != nil {
		return nil, err
	}
	n, err := strconv.ParseUint(port, 10, 16)
	if err != nil {
		return nil, err
	}
	d := net.Dialer{Timeout: httpDial, Control: t.guard.control(t.guard.hosts[hostPort{name, uint16(n)}])}
	return d.DialContext(ctx, network, address)
}

type httpArgs struct {
	Method         string            `json:"method"`
	URL            string            `json:"url"`
	Headers        map[string]string `json:"headers"`
	Body           string            `json:"body"`
	TimeoutSeconds count             `json:"timeout_seconds"`

	to target
}

func (t *httpRequest) Spec() Spec {
	return Spec{
		Name: "http_request",
		Description: fmt.Sprintf("Make one HTTP request to the public internet, or to an internal host that the operator has listed. "+
			"Returns the status, the headers and up to %d KiB of a text; binary content is only described. "+
			"GET and HEAD follow redirects on the same host; a redirect to another host is returned, so that you can ask for it.", httpText>>10),
		InputSchema: object([]string{"method", "url"}, map[string]*jsonschema.Schema{
			"method":          {Type: "string", Enum: []any{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"}},
			"url":             {Type: "string", Description: "https://… or http://…, without a user name or password.", MinLength: ptr(1), MaxLength: ptr(maxURL)},
			"headers":         {Type: "object", Description: "Headers to send, by name.", AdditionalProperties: &jsonschema.Schema{Type: "string", MaxLength: ptr(httpHeader)}, MaxProperties: ptr(httpHeaders)},
			"body":            {Type: "string", Description: "What to send; not with GET and HEAD. Set the header Content-Type for anything but JSON and plain text.", MaxLength: ptr(httpBody)},
			"timeout_seconds": intSchema(fmt.Sprintf("How long it may take; %d if left out.", httpTimeout/time.Second), 1, float64(httpLongest/time.Second)),
		}),
		// Also a GET can carry data out, and change things.
		Annotations: Annotations{Title: "Make an HTTP request", DestructiveHint: ptr(true), OpenWorldHint: ptr(true)},
	}
}

func (t *httpRequest) parse(args json.RawMessage) (a httpArgs, err error) {
	if err := decode(t.Spec(), args, &a); err != nil {
		return a, err
	}
	if a.to, err = t.guard.hosts.target(a.URL); err != nil {
		return a, err
	}
	if a.Body != "" && !a.sends() {
		return a, errorf(CodeInvalidArguments, "%s sends no body; use POST, PUT or PATCH to send one.", a.Method)
	}
	return a, checkHeaders(a.Headers)
}

// sends tells whether the method may have a body, which is whether a second
// request could do something a second time.
func (a httpArgs) sends() bool { return a.Method != http.MethodGet && a.Method != http.MethodHead }

// ourHeaders are set by the connection; whoever sets them can make one request
// look like two.
var ourHeaders = []string{
	"Accept-Encoding", "Connection", "Content-Length", "Expect", "Host", "Http2-Settings", "Keep-Alive", "Te", "Trailer", "Transfer-Encoding", "Upgrade",
}

func checkHeaders(headers map[string]string) error {
	seen := map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(headers)) {
		canonical := http.CanonicalHeaderKey(name)
		switch {
		case strings.Trim(name, tokenChars) != "" || name == "":
			return errorf(CodeInvalidArguments, "%q can't be the name of a header.", name)
		case slices.Contains(ourHeaders, canonical) || strings.HasPrefix(canonical, "Proxy-"):
			return errorf(CodeInvalidArguments, "The header %s can't be set: it is part of the connection. Leave it out.", name)
		case seen[canonical] != "":
			return errorf(CodeInvalidArguments, "The headers %s and %s are the same.", seen[canonical], name)
		case strings.ContainsFunc(headers[name], func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7F }):
			return errorf(CodeInvalidArguments, "The header %s has a control character in it.", name)
		}
		seen[canonical] = name
	}
	return nil
}

// tokenChars are what a header's name is made of.
const tokenChars = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789!#$%&'*+-.^_`|~"

func (t *httpRequest) Describe(args json.RawMessage) (Preview, error) {
	a, err := t.parse(args)
	if err != nil {
		return Preview{}, err
	}
	p := Preview{Summary: a.Method + " " + brief(a.URL), Target: a.to.host, Kind: KindRequest}
	p.Body, p.Notes = a.written()
	if a.Body != "" && !a.has("Content-Type") {
		p.Notes = append(p.Notes, t.lang.Tf("It is sent as %s.", a.contentType()))
	}
	if a.to.url.Scheme == "http" {
		p.Notes = append(p.Notes, t.lang.T("It is sent unencrypted (http)."))
	}
	if a.to.listed {
		p.Notes = append(p.Notes, t.lang.Tf("%s is a host that the operator has listed; it may be an internal one.", a.to.hostPort.String()))
	}
	if with := a.credentials(); len(with) > 0 {
		p.RunsAs = t.lang.Tf("whoever its headers say: %s", strings.Join(with, ", "))
	}
	if !a.sends() {
		p.Notes = append(p.Notes, t.lang.T("Redirects are followed on the same host only."))
	}
	return p, nil
}

// written is the request as people read one: what is sent stands under its headers as it is, and JSON with line breaks
// and indentation, which a note says. Neither a URL nor a header has a line break in it, so the first empty line is the end
// of the headers.
func (a httpArgs) written() (body string, notes []string) {
	var out strings.Builder
	out.WriteString(a.Method + " " + a.URL)
	for _, name := range slices.Sorted(maps.Keys(a.Headers)) {
		out.WriteString("\n" + name + ": " + a.Headers[name])
	}
	if a.TimeoutSeconds > 0 {
		notes = append(notes, fmt.Sprintf("Time limit: %d seconds.", int(a.TimeoutSeconds)))
	}
	if a.Body == "" {
		return out.String(), notes
	}
	shown := a.Body
	var indented bytes.Buffer
	if json.Valid([]byte(a.Body)) && json.Indent(&indented, []byte(a.Body), "", "  ") == nil && indented.String() != a.Body {
		shown = indented.String()
		notes = append(notes, "The JSON that is sent is shown with line breaks and indentation of its own. It is sent as it was written, in "+bytesOf(len(a.Body))+".")
	}
	out.WriteString("\n\n" + shown)
	return out.String(), notes
}

// Facts says which host it talks to.
func (t *httpRequest) Facts(args json.RawMessage) Facts {
	a, err := t.parse(args)
	if err != nil {
		return Facts{}
	}
	return Facts{Host: a.to.host}
}

// credentials are the headers that say who sends it.
func (a httpArgs) credentials() (names []string) {
	for _, name := range slices.Sorted(maps.Keys(a.Headers)) {
		switch canonical := http.CanonicalHeaderKey(name); {
		case canonical == "Authorization", canonical == "Cookie", strings.HasSuffix(canonical, "-Key"), strings.HasSuffix(canonical, "-Token"):
			names = append(names, name)
		}
	}
	return names
}

func (a httpArgs) has(header string) bool {
	for name := range a.Headers {
		if http.CanonicalHeaderKey(name) == header {
			return true
		}
	}
	return false
}

// contentType is what a body is sent as whose type isn't given.
func (a httpArgs) contentType() string {
	if json.Valid([]byte(a.Body)) {
		return "application/json"
	}
	return "text/plain; charset=utf-8"
}

func (t *httpRequest) Call(ctx context.Context, args json.RawMessage) (Output, error) {
	a, err := t.parse(args)
	if err != nil {
		return Output{}, err
	}
	if ctx.Err() != nil {
		return Output{}, errorf(CodeAborted, "Stopped before the request was sent.")
	}
	limit := httpTimeout
	if a.TimeoutSeconds > 0 {
		limit = time.Duration(a.TimeoutSeconds) * time.Second
	}
	limited, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	// A transport of this call's own: no connection is used twice, so each is
	// looked at; no proxy, which would resolve names out of our sight.
	transport := &http.Transport{
		DialContext: t.connect, DisableKeepAlives: true, TLSHandshakeTimeout: httpDial, MaxResponseHeaderBytes: 64 << 10,
		TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS12},
	}
	defer transport.CloseIdleConnections()
	e := exchange{httpArgs: a, hosts: t.guard.hosts, transport: transport}
	out, err := e.run(limited)
	if err != nil {
		return Output{}, e.failure(ctx, limited, limit, err)
	}
	return out, nil
}

// An exchange is a request with what follows from it.
type exchange struct {
	httpArgs
	hosts     hosts
	transport http.RoundTripper
	text      strings.Builder
	notes     []string
}

// run sends the request, follows redirects, and reads the answer.
func (e *exchange) run(ctx context.Context) (Output, error) {
	to := e.to
	for hop := 0; ; hop++ {
		resp, err := e.send(ctx, to)
		if err != nil {
			return Output{}, err
		}
		next, follow := e.redirect(resp, to, hop)
		if !follow {
			defer resp.Body.Close()
			return e.answer(resp)
		}
		resp.Body.Close()
		fmt.Fprintf(&e.text, "%s %s: redirected to %s\n", resp.Proto, resp.Status, next.url)
		to = next
	}
}

func (e *exchange) send(ctx context.Context, to target) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, e.Method, to.url.String(), http.NoBody)
	if err != nil {
		return nil, errorf(CodeInvalidArguments, "The request can't be made: %s.", reason(err))
	}
	req.Header.Set("User-Agent", "approvalbot")
	if e.Body != "" {
		req.Body, req.ContentLength = io.NopCloser(strings.NewReader(e.Body)), int64(len(e.Body))
		req.Header.Set("Content-Type", e.contentType())
	}
	for name, value := range e.Headers {
		req.Header.Set(name, value)
	}
	return e.transport.RoundTrip(req)
}

// redirect tells where to go on, if that is to be done. What isn't followed is
// said.
func (e *exchange) redirect(resp *http.Response, from target, hop int) (target, bool) {
	switch resp.StatusCode {
	case 301, 302, 303, 307, 308:
	default:
		return target{}, false
	}
	location, err := resp.Location()
	if err != nil {
		return target{}, false
	}
	no := func(why string) (target, bool) {
		e.notes = append(e.notes, "The redirect was not followed: "+why)
		return target{}, false
	}
	to, err := e.hosts.target(location.String())
	var own *Error
	switch {
	case e.sends():
		return no("only those of GET and HEAD are.")
	case errors.As(err, &own):
		return no(own.Message)
	case !sameHost(from, to):
		return no("it leads to another host (" + to.hostPort.String() + "), which is a request of its own.")
	case hop == httpRedirects:
		return no(fmt.Sprintf("there were %d before it.", httpRedirects))
	}
	return to, true
}

// sameHost tells whether a redirect stays where people said yes to: the same host
// and port, or the same host with encryption where there was none.
func sameHost(from, to target) bool {
	if from.url.Scheme == to.url.Scheme {
		return from.hostPort == to.hostPort
	}
	return from.host == to.host && from.url.Scheme == "http" && from.port == 80 && to.port == 443
}

// answer reads a response, as much of it as is shown.
func (e *exchange) answer(resp *http.Response) (Output, error) {
	body, err := io.ReadAll(io.LimitReader(resp.Body, httpText+1))
	if err != nil {
		return Output{}, err
	}
	fmt.Fprintf(&e.text, "%s %s\n", resp.Proto, oneLine(strings.ToValidUTF8(resp.Status, "�")))
	e.headers(resp.Header)
	more := len(body) > httpText
	if more {
		body = body[:httpText]
		for cut := 1; cut < utf8.UTFMax && !utf8.Valid(body); cut++ { // not in the middle of a character
			body = body[:len(body)-1]
		}
	}
	switch {
	case len(body) == 0:
		e.notes = append(e.notes, "There is no content.")
	case !isText(body):
		size := "at least " + bytesOf(len(body))
		if !more {
			size = bytesOf(len(body))
		} else if resp.ContentLength > 0 {
			size = strconv.FormatInt(resp.ContentLength, 10) + " bytes"
		}
		e.notes = append(e.notes, fmt.Sprintf("The content is %s of %s, so it isn't shown.", binaryKind(body), size))
	default:
		fmt.Fprintf(&e.text, "\n%s", body)
		if !bytes.HasSuffix(body, []byte("\n")) {
			e.text.WriteByte('\n')
		}
		if more {
			e.notes = append(e.notes, fmt.Sprintf("This is the beginning of the content, %d KiB.", httpText>>10))
		}
	}
	if len(e.notes) > 0 {
		e.text.WriteString("[" + strings.Join(e.notes, " ") + "]\n")
	}
	return Output{Text: strings.TrimSuffix(e.text.String(), "\n"), Truncated: more}, nil
}

// headers prints those of an answer. Cookies are named only: they are secrets, and
// there is no jar to keep them in.
func (e *exchange) headers(h http.Header) {
	names := slices.Sorted(maps.Keys(h))
	for i, name := range names {
		if i == httpHeaders {
			e.notes = append(e.notes, fmt.Sprintf("%d more headers are not shown.", len(names)-i))
			break
		}
		for _, value := range h[name] {
			if name == "Set-Cookie" {
				cookie, _, _ := strings.Cut(value, "=")
				value = cookie + "=…"
			}
			fmt.Fprintf(&e.text, "%s: %s\n", name, shorten(strings.ToValidUTF8(value, "�"), httpAnswered))
		}
	}
}

// failure says what became of a request that wasn't answered: most of all,
// whether it may have done something.
func (e *exchange) failure(outer, limited context.Context, limit time.Duration, err error) error {
	var own *Error
	if errors.As(err, &own) { // the guard, or the request itself
		return own
	}
	host := e.to.host
	var dns *net.DNSError
	var op *net.OpError
	var cert *tls.CertificateVerificationError
	switch unsent := "Nothing was sent."; {
	case outer.Err() != nil:
		return errorf(CodeAborted, "Stopped while %s was asked. %s", host, e.perhaps())
	case limited.Err() != nil:
		return errorf(CodeTimeout, "%s didn't answer within %s. %s", host, limit, e.perhaps())
	case errors.As(err, &dns):
		return errorf(CodeToolFailed, "The name %s can't be resolved. %s", host, unsent)
	case errors.As(err, &cert):
		return errorf(CodeToolFailed, "The certificate of %s is not valid: %s. %s", host, reason(cert.Err), unsent)
	case errors.As(err, &op) && op.Op == "dial":
		return errorf(CodeToolFailed, "%s can't be reached: %s. %s", host, reason(op.Err), unsent)
	case e.sends():
		return errorf(CodeUnknown, "The connection to %s broke: %s. %s", host, reason(err), e.perhaps())
	}
	return errorf(CodeToolFailed, "The connection to %s broke: %s.", host, reason(err))
}

// perhaps says whether a request without an answer may have changed something.
func (e *exchange) perhaps() string {
	if e.sends() {
		return "It may have been performed; look before you send it again."
	}
	return "You can ask again."
}
