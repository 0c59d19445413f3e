package tools

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// web is a server on loopback that the operator has listed, and the tool.
type web struct {
	*place
	url  string
	hits atomic.Int32 // requests that arrived
}

func newWeb(t *testing.T, handler http.HandlerFunc) *web {
	w := &web{}
	srv := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		w.hits.Add(1)
		handler(rw, r)
	}))
	t.Cleanup(srv.Close)
	w.url = srv.URL
	w.place = newPlace(t, Options{HTTP: &HTTPOptions{Allow: []string{strings.TrimPrefix(srv.URL, "http://")}}})
	return w
}

func TestHTTPRequest(t *testing.T) {
	w := newWeb(t, func(rw http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		rw.Header().Set("X-Seen", fmt.Sprintf("%s %s agent=%s type=%s auth=%s len=%d", r.Method, r.URL, r.UserAgent(), r.Header.Get("Content-Type"), r.Header.Get("Authorization"), r.ContentLength))
		rw.Header().Set("Set-Cookie", "session=made-up-secret; Path=/")
		rw.Header().Del("Date")
		rw.Header()["Date"] = nil
		rw.WriteHeader(http.StatusTeapot)
		fmt.Fprintf(rw, "got %s", body)
	})
	for _, tt := range []struct {
		args members
		want []string
	}{
		{members{"method": "GET", "url": w.url + "/a?b=c#d"}, []string{"HTTP/1.1 418 I'm a teapot\n", "X-Seen: GET /a?b=c agent=approvalbot type= auth= len=0\n", "Set-Cookie: session=…\n", "\n\ngot \n"}},
		{members{"method": "POST", "url": w.url, "body": `{"a":1}`}, []string{"type=application/json auth= len=7", "\n\ngot {\"a\":1}"}},
		{members{"method": "PUT", "url": w.url, "body": "x", "headers": members{"content-type": "text/csv", "Authorization": "Bearer made-up", "User-Agent": "me"}},
			[]string{"PUT / agent=me type=text/csv auth=Bearer made-up len=1"}},
		{members{"method": "DELETE", "url": w.url}, []string{"DELETE / agent=approvalbot type= auth= len=0"}},
		{members{"method": "HEAD", "url": w.url}, []string{"HEAD / ", "[There is no content."}},
	} {
		got := w.do("http_request", tt.args) + "\n"
		for _, want := range tt.want {
			if !strings.Contains(got, want) {
				t.Errorf("%v: %q isn't in\n%s", tt.args, want, got)
			}
		}
		if strings.Contains(got, "made-up-secret") {
			t.Errorf("a cookie is shown: %s", got)
		}
	}
	for _, tt := range []struct {
		args members
		code Code
		text string
	}{
		{members{"method": "GET", "url": w.url, "body": "x"}, CodeInvalidArguments, "sends no body"},
		{members{"method": "GET", "url": w.url, "headers": members{"host": "evil.example"}}, CodeInvalidArguments, "can't be set"},
		{members{"method": "GET", "url": w.url, "headers": members{"Transfer-Encoding": "chunked"}}, CodeInvalidArguments, "can't be set"},
		{members{"method": "GET", "url": w.url, "headers": members{"Proxy-Authorization": "x"}}, CodeInvalidArguments, "can't be set"},
		{members{"method": "GET", "url": w.url, "headers": members{"A\r\nB": "x"}}, CodeInvalidArguments, "can't be the name"},
		{members{"method": "GET", "url": w.url, "headers": members{"": "x"}}, CodeInvalidArguments, "can't be the name"},
		{members{"method": "GET", "url": w.url, "headers": members{"A": "x\r\nHost: y"}}, CodeInvalidArguments, "control character"},
		{members{"method": "GET", "url": w.url, "headers": members{"Accept": "x", "accept": "y"}}, CodeInvalidArguments, "the same"},
		{members{"method": "GET", "url": "http://127.0.0.1:1/"}, CodeNotAllowed, "Port 1"},
	} {
		before := w.hits.Load()
		w.refuse("http_request", tt.args, tt.code, tt.text)
		if w.hits.Load() != before {
			t.Errorf("%v was sent", tt.args)
		}
	}
}

// The dialer asks the guard: a server that listens here and isn't listed never hears of it, by whatever name.
func TestUnlistedServersHearNothing(t *testing.T) {
	var heard atomic.Int32
	srv := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	srv.Config.ConnState = func(net.Conn, http.ConnState) { heard.Add(1) }
	defer srv.Close()
	_, port, _ := net.SplitHostPort(strings.TrimPrefix(srv.URL, "http://"))
	tool, err := newHTTPRequest(HTTPOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, host := range []string{"127.0.0.1", "localhost", "::1"} {
		_, err := tool.Call(t.Context(), arguments(t, tool, members{"method": "GET", "url": "http://" + net.JoinHostPort(host, port)}))
		wantCode(t, err, CodeNotAllowed)
		// And were the first look fooled, there is the second.
		_, err = tool.dial(t.Context(), "tcp", net.JoinHostPort(host, port))
		wantCode(t, err, CodeNotAllowed)
	}
	// A listed host isn't, where it is this program itself.
	own := netip.MustParseAddrPort("127.0.0.1:" + port)
	tool, err = newHTTPRequest(HTTPOptions{Allow: []string{own.String(), "localhost:" + port}, Own: []netip.AddrPort{own}})
	if err != nil {
		t.Fatal(err)
	}
	for _, host := range []string{"127.0.0.1", "localhost"} {
		_, err = tool.Call(t.Context(), arguments(t, tool, members{"method": "GET", "url": "http://" + host + ":" + port}))
		if e := wantCode(t, err, CodeNotAllowed); !strings.Contains(e.Message, "belongs to approvalbot itself") {
			t.Errorf("got %q", e.Message)
		}
	}
	if heard.Load() != 0 {
		t.Errorf("%d connections", heard.Load())
	}
}

func TestRedirects(t *testing.T) {
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("another host was asked") }))
	defer other.Close()
	w := newWeb(t, func(rw http.ResponseWriter, r *http.Request) {
		where := map[string]string{
			"/one": "/two", "/two": "/end", "/loop": "/loop", "/other": other.URL + "/x", "/meta": "http://169.254.169.254/latest",
			"/file": "file:///etc/passwd", "/user": "http://a:b@" + r.Host + "/", "/post": "/end", "/bare": "",
		}
		if to, ok := where[r.URL.Path]; ok {
			rw.Header()["Location"] = []string{to}
			rw.WriteHeader(http.StatusFound)
			return
		}
		fmt.Fprint(rw, "the end, ", r.Header.Get("Authorization"))
	})
	auth := members{"Authorization": "Bearer made-up"}
	got := w.do("http_request", members{"method": "GET", "url": w.url + "/one", "headers": auth})
	if !strings.HasPrefix(got, "HTTP/1.1 302 Found: redirected to "+w.url+"/two\nHTTP/1.1 302 Found: redirected to "+w.url+"/end\nHTTP/1.1 200 OK\n") ||
		!strings.HasSuffix(got, "\n\nthe end, Bearer made-up") {
		t.Errorf("got %s", got)
	}
	for path, why := range map[string]string{
		"/loop": "there were 5 before it", "/other": "leads to another host (" + strings.TrimPrefix(other.URL, "http://"), "/meta": "requests to it are never made",
		"/file": "has to begin with https", "/user": "a password before the host",
	} {
		if path == "/other" {
			w.place = newPlace(t, Options{HTTP: &HTTPOptions{Allow: []string{strings.TrimPrefix(w.url, "http://"), strings.TrimPrefix(other.URL, "http://")}}})
		}
		before := w.hits.Load()
		got := w.do("http_request", members{"method": "GET", "url": w.url + path, "headers": auth})
		if !strings.Contains(got, "302 Found\n") || !strings.Contains(got, "[The redirect was not followed: ") || !strings.Contains(got, why) {
			t.Errorf("%s: %s", path, got)
		}
		if n := w.hits.Load() - before; path != "/loop" && n != 1 || n > 1+httpRedirects {
			t.Errorf("%s: %d requests", path, n)
		}
	}
	before := w.hits.Load()
	if got := w.do("http_request", members{"method": "POST", "url": w.url + "/post", "body": "x"}); !strings.Contains(got, "only those of GET and HEAD are") || w.hits.Load() != before+1 {
		t.Errorf("a POST: %s", got)
	}
}

// The same host with encryption is the same host; anything else isn't.
func TestSameHost(t *testing.T) {
	for _, tt := range []struct {
		from, to string
		want     bool
	}{
		{"http://a.example/x", "http://A.example./y", true},
		{"http://a.example/", "https://a.example/", true},
		{"https://a.example/", "http://a.example/", false},
		{"http://a.example:8080/", "https://a.example/", false},
		{"http://a.example/", "https://a.example:8443/", false},
		{"https://a.example/", "https://a.example:8443/", false},
		{"https://a.example/", "https://b.a.example/", false},
		{"https://a.example/", "https://a.example.evil/", false},
	} {
		from, err := hosts{}.target(tt.from)
		if err != nil {
			t.Fatal(err)
		}
		to, err := hosts{}.target(tt.to)
		if err != nil || sameHost(from, to) != tt.want {
			t.Errorf("%s to %s: %t, %v", tt.from, tt.to, !tt.want, err)
		}
	}
}

func TestBodies(t *testing.T) {
	var body []byte
	w := newWeb(t, func(rw http.ResponseWriter, r *http.Request) { _, _ = rw.Write(body) })
	for _, tt := range []struct {
		body      string
		truncated bool
		want      string // the end
	}{
		{"", false, "[There is no content.]"},
		{"ok", false, "\n\nok"},
		{strings.Repeat("x", httpText), false, "xxx"},
		{strings.Repeat("x", httpText+1), true, "xxx\n[This is the beginning of the content, 64 KiB.]"},
		{"x" + strings.Repeat("ä", httpText), true, "ä\n[This is the beginning of the content, 64 KiB.]"},
		{"\x89PNG\r\n\x1a\n\x00", false, "[The content is a file of type image/png of 9 bytes, so it isn't shown.]"},
		{strings.Repeat("\x00", 10*httpText), true, "[The content is a binary file of at least 65536 bytes, so it isn't shown.]"},
	} {
		body = []byte(tt.body)
		out, err := w.call(t.Context(), "http_request", members{"method": "GET", "url": w.url})
		if err != nil {
			t.Fatal(err)
		}
		if !strings.HasSuffix(out.Text, tt.want) || out.Truncated != tt.truncated || strings.Contains(out.Text, "\uFFFD") || len(out.Text) > httpText+2000 {
			t.Errorf("%d bytes: truncated %t, the end is %q", len(tt.body), out.Truncated, out.Text[max(0, len(out.Text)-100):])
		}
	}
}

// inMemory is a tool whose connections end in memory, with a server that does this with each.
func inMemory(t *testing.T, serve func(net.Conn)) *httpRequest {
	t.Helper()
	tool, err := newHTTPRequest(HTTPOptions{})
	if err != nil {
		t.Fatal(err)
	}
	tool.connect = func(context.Context, string, string) (net.Conn, error) {
		ours, theirs := net.Pipe()
		go serve(theirs)
		return ours, nil
	}
	return tool
}

// What is known of a request that wasn't answered is said: whether it may have been performed.
func TestUnanswered(t *testing.T) {
	call := func(t *testing.T, ctx context.Context, tool *httpRequest, method, url string) error {
		_, err := tool.Call(ctx, arguments(t, tool, members{"method": method, "url": url, "timeout_seconds": 7}))
		return err
	}
	said := func(t *testing.T, err error, code Code, text string) {
		t.Helper()
		if e := wantCode(t, err, code); !strings.Contains(e.Message, text) {
			t.Errorf("got %q, want %q", e.Message, text)
		}
	}
	t.Run("silence", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			tool := inMemory(t, func(c net.Conn) { _, _ = io.Copy(io.Discard, c) })
			began := time.Now()
			said(t, call(t, t.Context(), tool, "POST", "http://api.example/"), CodeTimeout, "within 7s. It may have been performed")
			if d := time.Since(began); d != 7*time.Second {
				t.Errorf("it took %s", d)
			}
			said(t, call(t, t.Context(), tool, "GET", "http://api.example/"), CodeTimeout, "You can ask again")
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			said(t, call(t, ctx, tool, "POST", "http://api.example/"), CodeAborted, "It may have been performed")
			cancel()
			said(t, call(t, ctx, tool, "POST", "http://api.example/"), CodeAborted, "before the request was sent")
		})
	})
	t.Run("broken", func(t *testing.T) {
		tool := inMemory(t, func(c net.Conn) {
			_, _ = c.Read(make([]byte, 10))
			c.Close()
		})
		said(t, call(t, t.Context(), tool, "POST", "http://api.example/"), CodeUnknown, "may have been performed")
		said(t, call(t, t.Context(), tool, "GET", "http://api.example/"), CodeToolFailed, "broke")
	})
	t.Run("unsent", func(t *testing.T) {
		tool := inMemory(t, nil)
		for err, want := range map[error]string{
			&net.DNSError{Err: "no such host", Name: "api.example"}: "can't be resolved. Nothing was sent",
			&net.OpError{Op: "dial", Err: errors.New("refused")}:    "can't be reached: refused. Nothing was sent",
		} {
			tool.connect = func(context.Context, string, string) (net.Conn, error) { return nil, err }
			said(t, call(t, t.Context(), tool, "POST", "http://api.example/"), CodeToolFailed, want)
		}
	})
	t.Run("certificate", func(t *testing.T) {
		srv := httptest.NewUnstartedServer(http.NotFoundHandler())
		srv.Config.ErrorLog = nil
		srv.StartTLS() // nobody trusts its certificate
		defer srv.Close()
		host := strings.TrimPrefix(srv.URL, "https://")
		tool, err := newHTTPRequest(HTTPOptions{Allow: []string{host}})
		if err != nil {
			t.Fatal(err)
		}
		var cert *tls.CertificateVerificationError
		err = call(t, t.Context(), tool, "POST", srv.URL)
		if errors.As(err, &cert) {
			t.Error("it is no sentence")
		}
		said(t, err, CodeToolFailed, "is not valid")
	})
}

func TestHTTPPreview(t *testing.T) {
	tool, err := newHTTPRequest(HTTPOptions{Allow: []string{"grafana.internal:3000"}})
	if err != nil {
		t.Fatal(err)
	}
	args := arguments(t, tool, members{"method": "POST", "url": "http://grafana.internal:3000/api?x=1", "body": "hello"})
	p, err := tool.Describe(args)
	if err != nil {
		t.Fatal(err)
	}
	if p.Summary != "POST http://grafana.internal:3000/api?x=1" || p.Target != "grafana.internal" || p.Kind != KindRequest || p.Body != "POST http://grafana.internal:3000/api?x=1\n\nhello" {
		t.Errorf("got %+v", p)
	}
	notes := strings.Join(p.Notes, " ")
	for _, want := range []string{"sent as text/plain", "unencrypted", "grafana.internal:3000 is a host that the operator has listed"} {
		if !strings.Contains(notes, want) {
			t.Errorf("%q isn't in %q", want, notes)
		}
	}
	args = arguments(t, tool, members{"method": "POST", "url": "https://x.example/", "headers": map[string]string{"X-B": "2", "Accept": "a/b"}, "timeout_seconds": 5,
		"body": `{"b":1.0,"a":["<&>",{}]}`})
	p, err = tool.Describe(args)
	if err != nil {
		t.Fatal(err)
	}
	want := "POST https://x.example/\nAccept: a/b\nX-B: 2\n\n{\n  \"b\": 1.0,\n  \"a\": [\n    \"<&>\",\n    {}\n  ]\n}"
	if p.Body != want || !slices.Contains(p.Notes, "Time limit: 5 seconds.") || !strings.Contains(strings.Join(p.Notes, " "), "as it was written, in 24 bytes") {
		t.Errorf("got %q %q", p.Body, p.Notes)
	}
	args = arguments(t, tool, members{"method": "POST", "url": "http://grafana.internal:3000/", "body": "x"})
	if f := FactsOf(tool, args); f.Host != "grafana.internal" {
		t.Errorf("facts %+v", f)
	}
	a := tool.Spec().Annotations
	if a.ReadOnly() || !a.Destructive() || !a.OpenWorld() {
		t.Error("it calls itself harmless")
	}
}
