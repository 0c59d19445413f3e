package tools

import (
	"errors"
	"net/netip"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// Each special range, at its edges and just beside it. The guard is asked; nothing is dialled.
func TestEverySpecialAddress(t *testing.T) {
	for _, tt := range []struct {
		zone  zone
		addrs string
	}{
		{zonePublic, "1.1.1.1 8.8.8.8 9.255.255.255 11.0.0.0 100.63.255.255 100.128.0.0 126.255.255.255 128.0.0.0 169.253.255.255 169.255.0.0 " +
			"172.15.255.255 172.32.0.0 191.255.255.255 192.0.1.0 192.0.3.0 192.167.255.255 192.169.0.0 198.17.255.255 198.20.0.0 " +
			"198.51.99.255 198.51.101.0 203.0.112.255 203.0.114.0 223.255.255.255 192.88.98.255 192.88.100.0 ::ffff:8.8.8.8 " +
			"2000:: 2001:200:: 2001:db7:ffff:: 2001:db9:: 2003:: 2606:4700:4700::1111 2a00:1450:: 3ffe:ffff:: 3fff:1000:: 3fff:ffff::"},
		{zonePrivate, "10.0.0.0 10.255.255.255 100.64.0.0 100.127.255.255 127.0.0.0 127.0.0.1 127.255.255.255 172.16.0.0 172.31.255.255 " +
			"192.168.0.0 192.168.255.255 ::1 fc00:: fdff:ffff:ffff:ffff:ffff:ffff:ffff:ffff ::ffff:10.0.0.1 ::ffff:127.0.0.1"},
		{zoneSpecial, "0.0.0.0 0.255.255.255 169.254.0.0 169.254.169.254 169.254.255.255 192.0.0.0 192.0.0.255 192.0.2.0 192.0.2.255 192.88.99.1 " +
			"198.18.0.0 198.19.255.255 198.51.100.1 203.0.113.1 224.0.0.0 239.255.255.255 240.0.0.0 255.255.255.255 ::ffff:169.254.169.254 " +
			":: ::2 ::7f00:1 ::a00:1 64:ff9b::808:808 64:ff9b::7f00:1 64:ff9b:1::1 100:: 100:0:0:1:: 2001:: 2001::1 2001:2::1 2001:10::1 2001:20::1 2001:1ff:: 2001:db8::1 " +
			"2002:: 2002:7f00:1:: 2002:ffff:: 3fff:: 3fff:fff:: 4000:: 5f00:: 8000:: fbff:: fe00:: fe80::1 febf:: fec0:: feff:: ff00:: ff02::1 ffff:: fe80::1%eth0 2001:200::1%eth0"},
	} {
		for text := range strings.FieldsSeq(tt.addrs) {
			addr := netip.MustParseAddr(text)
			got, what := zoneOf(addr)
			if got != tt.zone || (what == "") != (tt.zone == zonePublic) {
				t.Errorf("%s is %q (%s), want %q", text, got, what, tt.zone)
			}
			if public := PublicAddr(addr) == nil; public != (tt.zone == zonePublic) {
				t.Errorf("%s: public is %t", text, public)
			}
			if listed := ListedAddr(addr) == nil; listed != (tt.zone != zoneSpecial) {
				t.Errorf("%s: listed may be %t", text, listed)
			}
		}
	}
	if PublicAddr(netip.Addr{}) == nil || ListedAddr(netip.Addr{}) == nil {
		t.Error("no address at all is let through")
	}
}

// What is public is so by the standard library's own words, and in both forms of an IPv4 address.
func TestPublicIsPublic(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		var raw [16]byte
		for i := range raw {
			raw[i] = rapid.Byte().Draw(rt, "byte")
		}
		for _, a := range []netip.Addr{netip.AddrFrom16(raw), netip.AddrFrom4([4]byte(raw[:4]))} {
			public := PublicAddr(a) == nil
			if public && (!a.IsGlobalUnicast() || a.IsPrivate() || a.IsLoopback() || a.IsLinkLocalUnicast() || a.IsMulticast() || a.IsUnspecified()) {
				rt.Fatalf("%s is let through", a)
			}
			if a.Is4() && (PublicAddr(netip.AddrFrom16(a.As16())) == nil) != public {
				rt.Fatalf("%s is judged otherwise when mapped", a)
			}
			if public && ListedAddr(a) != nil {
				rt.Fatalf("%s is public and not for listed hosts", a)
			}
		}
	})
}

// The dialer's hook refuses for each address; what is this program's own also for a listed host.
func TestControl(t *testing.T) {
	g := guard{own: []netip.AddrPort{netip.MustParseAddrPort("127.0.0.1:3102"), netip.MustParseAddrPort("[::]:3103"), netip.MustParseAddrPort("8.8.4.4:443")},
		local: []netip.Addr{netip.MustParseAddr("192.168.1.5"), netip.MustParseAddr("9.9.9.9")}}
	for _, tt := range []struct {
		network, address string
		plain, listed    bool // let through
	}{
		{"tcp4", "8.8.8.8:443", true, true},
		{"tcp6", "[2606:4700::1]:443", true, true},
		{"tcp4", "10.1.2.3:80", false, true},
		{"tcp4", "127.0.0.1:80", false, true},
		{"tcp6", "[::1]:80", false, true},
		{"tcp6", "[::ffff:127.0.0.1]:80", false, true},
		{"tcp4", "169.254.169.254:80", false, false},
		{"tcp6", "[fe80::1%eth0]:80", false, false},
		{"tcp4", "127.0.0.1:3102", false, false}, // our API
		{"tcp4", "127.9.9.9:3102", false, false},
		{"tcp6", "[::1]:3102", false, false},
		{"tcp4", "127.0.0.1:3103", false, false}, // on all addresses
		{"tcp4", "192.168.1.5:3103", false, false},
		{"tcp4", "9.9.9.9:3103", false, false},
		{"tcp4", "192.168.1.6:3103", false, true},
		{"tcp4", "8.8.4.4:443", false, false},
		{"tcp4", "8.8.4.4:444", true, true},
		{"udp4", "8.8.8.8:53", false, false},
		{"unix", "/run/docker.sock", false, false},
		{"tcp4", "nonsense", false, false},
	} {
		for listed, want := range map[bool]bool{false: tt.plain, true: tt.listed} {
			err := g.control(listed)(tt.network, tt.address, nil)
			if (err == nil) != want {
				t.Errorf("%s %s, listed %t: %v", tt.network, tt.address, listed, err)
			}
			if err != nil {
				wantCode(t, err, CodeNotAllowed)
			}
		}
	}
}

func TestTarget(t *testing.T) {
	list, err := parseHosts([]string{"grafana.internal:3000", "10.0.0.5", "[fd00::1]:80", "Wiki.Internal"})
	if err != nil {
		t.Fatal(err)
	}
	for raw, want := range map[string]string{
		"https://example.com":                  "example.com:443",
		"http://example.com/a?b=c#d":           "example.com:80",
		"https://EXAMPLE.com.:8443/":           "example.com:8443",
		"https://xn--bcher-kva.example/":       "xn--bcher-kva.example:443",
		"http://8.8.8.8":                       "8.8.8.8:80",
		"https://[2606:4700::1]/":              "[2606:4700::1]:443",
		"https://[::ffff:8.8.8.8]/":            "8.8.8.8:443",
		"http://grafana.internal:3000/x":       "grafana.internal:3000 listed",
		"http://10.0.0.5/":                     "10.0.0.5:80 listed",
		"https://10.0.0.5/":                    "10.0.0.5:443 listed",
		"http://[FD00:0::1]/":                  "[fd00::1]:80 listed",
		"https://wiki.internal/":               "wiki.internal:443 listed",
		"http://grafana.internal/":             "grafana.internal:80",
		"https://example.com/@user:pw@x":       "example.com:443",
		"https://example.com/?u=http://10.0.0": "example.com:443",
	} {
		to, err := list.target(raw)
		got := to.hostPort.String()
		if to.listed {
			got += " listed"
		}
		if err != nil || got != want {
			t.Errorf("%s: %s, %v; want %s", raw, got, err, want)
		}
	}
	for raw, code := range map[string]Code{
		"example.com":                            CodeInvalidArguments,
		"ftp://example.com":                      CodeInvalidArguments,
		"file:///etc/passwd":                     CodeInvalidArguments,
		"javascript:alert(1)":                    CodeInvalidArguments,
		"https://":                               CodeInvalidArguments,
		"https://user@example.com":               CodeInvalidArguments,
		"https://user:pw@example.com":            CodeInvalidArguments,
		"https://@example.com":                   CodeInvalidArguments,
		"https://good.com\\@evil.com":            CodeInvalidArguments,
		"https://exa mple.com":                   CodeInvalidArguments,
		"https://example.com/a\r\nX: y":          CodeInvalidArguments,
		"https://example.com:0/":                 CodeInvalidArguments,
		"https://example.com:65536/":             CodeInvalidArguments,
		"https://example.com:/":                  CodeInvalidArguments,
		"https://bücher.example/":                CodeInvalidArguments,
		"https://ex%61mple.com/":                 CodeInvalidArguments,
		"https://a..b/":                          CodeInvalidArguments,
		"http://2130706433/":                     CodeInvalidArguments,
		"http://0x7f000001/":                     CodeInvalidArguments,
		"http://0x7f.1/":                         CodeInvalidArguments,
		"http://127.1/":                          CodeInvalidArguments,
		"http://0177.0.0.1/":                     CodeInvalidArguments,
		"http://[fe80::1%25eth0]/":               CodeInvalidArguments,
		"http://localhost/":                      CodeNotAllowed,
		"http://api.LOCALHOST./":                 CodeNotAllowed,
		"http://127.0.0.1:3102/":                 CodeNotAllowed,
		"http://[::1]/":                          CodeNotAllowed,
		"http://[::ffff:10.0.0.1]/":              CodeNotAllowed,
		"http://169.254.169.254/latest":          CodeNotAllowed,
		"http://10.0.0.5:8080/":                  CodeNotAllowed,
		"http://[64:ff9b::7f00:1]/":              CodeNotAllowed,
		"http://example.com:25/":                 CodeNotAllowed,
		"https://" + strings.Repeat("a", maxURL): CodeInvalidArguments,
	} {
		_, err := list.target(raw)
		var refused *Error
		if !errors.As(err, &refused) || refused.Code != code {
			t.Errorf("%s: %v, want %s", raw, err, code)
		}
	}
}

func TestCheckHosts(t *testing.T) {
	for _, good := range []string{"grafana.internal:3000", "localhost:8080", "10.0.0.1", "[fd00::1]:443", "fd00::1", "example.com."} {
		if err := CheckHosts([]string{good}); err != nil {
			t.Errorf("%s: %v", good, err)
		}
	}
	for _, bad := range []string{"", "*", "*.internal", "http://x", "x/y", "x:0", "x:http", "x:99999", "169.254.169.254", "[fe80::1]:80", "0.0.0.0:80", "127.1", "a b", "user@x"} {
		if CheckHosts([]string{bad}) == nil {
			t.Errorf("%q is taken", bad)
		}
	}
}

// Whatever URL is accepted names one host, in one form, that isn't known to be ours or nearby.
func FuzzTarget(f *testing.F) {
	for _, s := range []string{"https://example.com/", "http://[::1]:80/", "https://a@b/", "http://127.1", "https://x:443/\\@y", "HTTP://EXAMPLE.COM", "https://a%2fb/", "http://１２７.0.0.1/"} {
		f.Add(s)
	}
	list, err := parseHosts([]string{"grafana.internal:3000"})
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		to, err := list.target(raw)
		if err != nil {
			var own *Error
			if !errors.As(err, &own) {
				t.Errorf("%q: %v is no sentence for a model", raw, err)
			}
			return
		}
		again, err := list.target(to.url.String())
		if err != nil || again.hostPort != to.hostPort {
			t.Errorf("%q goes to %s, and written again to %s, %v", raw, to.hostPort, again.hostPort, err)
		}
		if to.url.User != nil || to.host != strings.ToLower(to.host) || strings.HasSuffix(to.host, ".") || to.port == 0 {
			t.Errorf("%q goes to %+v", raw, to.hostPort)
		}
		if addr, err := netip.ParseAddr(to.host); err == nil && !to.listed && PublicAddr(addr) != nil {
			t.Errorf("%q goes to %s", raw, addr)
		}
	})
}

// Whatever the guard lets through is public, in whatever form it comes.
func FuzzGuard(f *testing.F) {
	for _, s := range []string{"127.0.0.1", "::ffff:127.0.0.1", "8.8.8.8", "fe80::1%eth0", "64:ff9b::1"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		a, err := netip.ParseAddr(text)
		if err != nil || PublicAddr(a) != nil {
			return
		}
		if a = a.Unmap(); !a.IsGlobalUnicast() || a.IsPrivate() || a.IsLoopback() || a.IsLinkLocalUnicast() || a.Zone() != "" {
			t.Errorf("%s is let through", text)
		}
	})
}
