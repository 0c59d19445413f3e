package tools

import (
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

// # Where a request may go
//
// A URL names a host, a host has addresses, and only the address in the moment of
// connecting says where a request really goes. So there are two looks:
//
//   - at the URL, before anybody is asked: a form that reads one way to people and
//     another way to programs is refused, and so is an address that is written out
//     and not public ([hosts.target]);
//   - at the address, in the dialer's Control, after the resolver has spoken and
//     before a packet is sent, for each address that is tried (guard.control).
//
// Public is what IANA's registries of special-purpose addresses don't list. Hosts
// that the operator lists may be on this machine or in a private network, too;
// never link-local, where clouds keep the credentials of the machine, and never
// this program's own API, where a tool could approve itself.

// A zone is what an address is good for.
type zone string

const (
	zonePublic  zone = ""
	zonePrivate zone = "private" // this machine or a private network: for hosts that the operator lists
	zoneSpecial zone = "special" // never
)

// special are the special-purpose addresses, from IANA's registries for IPv4 and
// IPv6; the first that fits counts. What is globally reachable there is left out.
var special = []struct {
	prefix netip.Prefix
	zone   zone
	what   string
}{
	{netip.MustParsePrefix("0.0.0.0/8"), zoneSpecial, "this network"},
	{netip.MustParsePrefix("10.0.0.0/8"), zonePrivate, "a private network"},
	{netip.MustParsePrefix("100.64.0.0/10"), zonePrivate, "a provider's shared network"},
	{netip.MustParsePrefix("127.0.0.0/8"), zonePrivate, "this machine"},
	{netip.MustParsePrefix("169.254.0.0/16"), zoneSpecial, "link-local"},
	{netip.MustParsePrefix("172.16.0.0/12"), zonePrivate, "a private network"},
	{netip.MustParsePrefix("192.0.0.0/24"), zoneSpecial, "reserved for protocols"},
	{netip.MustParsePrefix("192.0.2.0/24"), zoneSpecial, "for documentation"},
	{netip.MustParsePrefix("192.88.99.0/24"), zoneSpecial, "a relay of 6to4"},
	{netip.MustParsePrefix("192.168.0.0/16"), zonePrivate, "a private network"},
	{netip.MustParsePrefix("198.18.0.0/15"), zoneSpecial, "for benchmarks"},
	{netip.MustParsePrefix("198.51.100.0/24"), zoneSpecial, "for documentation"},
	{netip.MustParsePrefix("203.0.113.0/24"), zoneSpecial, "for documentation"},
	{netip.MustParsePrefix("224.0.0.0/4"), zoneSpecial, "multicast"},
	{netip.MustParsePrefix("240.0.0.0/4"), zoneSpecial, "reserved"}, // and broadcast

	{netip.MustParsePrefix("::1/128"), zonePrivate, "this machine"},
	{netip.MustParsePrefix("::/128"), zoneSpecial, "unspecified"},
	{netip.MustParsePrefix("64:ff9b::/96"), zoneSpecial, "an IPv4 address in disguise"},
	{netip.MustParsePrefix("64:ff9b:1::/48"), zoneSpecial, "an IPv4 address in disguise"},
	{netip.MustParsePrefix("100::/64"), zoneSpecial, "a sink"},
	{netip.MustParsePrefix("2001::/23"), zoneSpecial, "reserved for protocols"}, // Teredo, benchmarks, ORCHID
	{netip.MustParsePrefix("2001:db8::/32"), zoneSpecial, "for documentation"},
	{netip.MustParsePrefix("2002::/16"), zoneSpecial, "an IPv4 address in disguise"}, // 6to4
	{netip.MustParsePrefix("3fff::/20"), zoneSpecial, "for documentation"},
	{netip.MustParsePrefix("fc00::/7"), zonePrivate, "a private network"},
	{netip.MustParsePrefix("fe80::/10"), zoneSpecial, "link-local"},
	{netip.MustParsePrefix("fec0::/10"), zoneSpecial, "site-local"},
	{netip.MustParsePrefix("ff00::/8"), zoneSpecial, "multicast"},
}

// globalUnicast is all of IPv6 that is given out.
var globalUnicast = netip.MustParsePrefix("2000::/3")

// zoneOf says what an address is good for, and in words why it isn't public.
func zoneOf(a netip.Addr) (zone, string) {
	if !a.IsValid() || a.Zone() != "" {
		return zoneSpecial, "no address that can be judged"
	}
	a = a.Unmap()
	for _, s := range special {
		if s.prefix.Contains(a) {
			return s.zone, s.what
		}
	}
	if a.Is6() && !globalUnicast.Contains(a) {
		return zoneSpecial, "reserved"
	}
	return zonePublic, ""
}

// PublicAddr is nil for an address of the public internet, and else an error that
// says what the address is. It is pure.
func PublicAddr(a netip.Addr) error { return addrOf(a, zonePublic) }

// ListedAddr is what [PublicAddr] is, for a host that the operator has listed: it
// may also be this machine or in a private network.
func ListedAddr(a netip.Addr) error { return addrOf(a, zonePrivate) }

func addrOf(a netip.Addr, most zone) error {
	z, what := zoneOf(a)
	if z == zonePublic || z == zonePrivate && most == zonePrivate {
		return nil
	}
	if z == zonePrivate {
		return errorf(CodeNotAllowed, "%s is not a public address (%s). Only hosts that the operator lists in APPROVALBOT_HTTP_ALLOW may be that.", a, what)
	}
	return errorf(CodeNotAllowed, "%s is not a public address (%s); requests to it are never made.", a, what)
}

// hosts are those that the operator lists, each with its port.
type hosts map[hostPort]bool

type hostPort struct {
	host string // lower case; an address in its shortest form
	port uint16
}

func (h hostPort) String() string { return net.JoinHostPort(h.host, strconv.Itoa(int(h.port))) }

// CheckHosts says what is wrong with a list of hosts (HTTPOptions.Allow).
func CheckHosts(list []string) error {
	_, err := parseHosts(list)
	return err
}

// parseHosts reads a list; its error names every entry that is none.
func parseHosts(list []string) (hosts, error) {
	known := hosts{}
	var wrong []error
	for _, entry := range list {
		if err := known.add(entry); err != nil {
			wrong = append(wrong, err)
		}
	}
	if wrong != nil {
		return nil, hostErrors(wrong)
	}
	return known, nil
}

// hostErrors are what is wrong with several entries, in one line.
type hostErrors []error

func (e hostErrors) Error() string {
	var all []string
	for _, err := range e {
		all = append(all, err.Error())
	}
	return strings.Join(all, "; ")
}

func (e hostErrors) Unwrap() []error { return e }

func (known hosts) add(entry string) error {
	host, ports := entry, []uint16{80, 443}
	if h, p, err := net.SplitHostPort(entry); err == nil {
		port, err := strconv.ParseUint(p, 10, 16)
		if err != nil || port == 0 {
			return fmt.Errorf("%q: the port has to be a number from 1 to 65535", entry)
		}
		host, ports = h, []uint16{uint16(port)}
	}
	name, err := cleanHost(strings.Trim(host, "[]"))
	if err != nil {
		return fmt.Errorf("%q is no HOST or HOST:PORT such as grafana.internal:3000 (no scheme, no path, no wildcard): %w", entry, err)
	}
	if addr, err := netip.ParseAddr(name); err == nil {
		if err := ListedAddr(addr); err != nil {
			return fmt.Errorf("%q: %w", entry, err)
		}
	}
	for _, port := range ports {
		known[hostPort{name, port}] = true
	}
	return nil
}

// cleanHost returns the one form of a host's name that everything else compares:
// lower case, without a dot at the end. Whatever two programs could read in two
// ways is refused.
func cleanHost(host string) (string, error) {
	if addr, err := netip.ParseAddr(host); err == nil {
		if addr.Zone() != "" {
			return "", fmt.Errorf("an address with a zone names no host")
		}
		return addr.Unmap().String(), nil
	}
	name := strings.ToLower(strings.TrimSuffix(host, "."))
	if name == "" || len(name) > 253 {
		return "", fmt.Errorf("it names no host")
	}
	labels := strings.Split(name, ".")
	for _, label := range labels {
		switch {
		case label == "" || len(label) > 63:
			return "", fmt.Errorf("a part of the host's name is empty or too long")
		case strings.Trim(label, "abcdefghijklmnopqrstuvwxyz0123456789-_") != "":
			return "", fmt.Errorf("the host's name has other characters than letters a to z, digits, - and _; write other alphabets in their xn-- form")
		}
	}
	// 0x7f.1, 2130706433 and 0177.0.0.1 are addresses to some resolvers.
	last := labels[len(labels)-1]
	if strings.Trim(last, "0123456789") == "" || strings.HasPrefix(last, "0x") {
		return "", fmt.Errorf("the host reads as a number; write an address as four numbers with dots")
	}
	return name, nil
}

// A target is where a request goes.
type target struct {
	url *url.URL
	hostPort
	listed bool // by the operator
}

// maxURL is longer than what servers take.
const maxURL = 4096

// target reads a URL. It is pure: nothing is resolved.
func (h hosts) target(raw string) (target, error) {
	bad := func(format string, args ...any) (target, error) {
		return target{}, errorf(CodeInvalidArguments, "The URL can't be used: "+format+".", args...)
	}
	if len(raw) > maxURL {
		return bad("it has %d bytes, and %d is the most", len(raw), maxURL)
	}
	if strings.ContainsFunc(raw, func(r rune) bool { return r <= ' ' || r == '\\' || r == 0x7F }) {
		return bad("it has a blank, a control character or a backslash; escape it as %%20 and the like")
	}
	u, err := url.Parse(raw)
	switch {
	case err != nil:
		return bad("it is not written as a URL is")
	case u.Scheme != "http" && u.Scheme != "https":
		return bad("it has to begin with https:// or http://")
	case u.User != nil:
		return bad("it has a name or a password before the host; put them into the header Authorization")
	case u.Host == "" || u.Opaque != "":
		return bad("it names no host")
	}
	t := target{url: u}
	if t.host, err = cleanHost(u.Hostname()); err != nil {
		return bad("%s", err)
	}
	if t.port, err = portOf(u); err != nil {
		return bad("%s", err)
	}
	t.listed = h[t.hostPort]
	if t.listed {
		return t, nil
	}
	if slices.Contains(otherPorts, t.port) {
		return target{}, errorf(CodeNotAllowed, "Port %d belongs to another protocol than HTTP; requests to it are not made.", t.port)
	}
	return t, t.nearby()
}

// portOf is the port that a URL means.
func portOf(u *url.URL) (uint16, error) {
	port := u.Port()
	switch {
	case port == "" && strings.HasSuffix(u.Host, ":"):
		return 0, fmt.Errorf("there is no port after the colon")
	case port == "" && u.Scheme == "http":
		return 80, nil
	case port == "":
		return 443, nil
	}
	n, err := strconv.ParseUint(port, 10, 16)
	if err != nil || n == 0 {
		return 0, fmt.Errorf("the port has to be from 1 to 65535")
	}
	return uint16(n), nil
}

// nearby refuses a target that needs no resolver to be known as not public.
func (t target) nearby() error {
	if addr, err := netip.ParseAddr(t.host); err == nil {
		return PublicAddr(addr)
	}
	if t.host == "localhost" || strings.HasSuffix(t.host, ".localhost") {
		return errorf(CodeNotAllowed, "%s is this machine. Only hosts that the operator lists in APPROVALBOT_HTTP_ALLOW may be that.", t.host)
	}
	return nil
}

// otherPorts are the ports of protocols in which a request could be mistaken for
// commands: those that browsers block, too (the Fetch standard's bad ports).
var otherPorts = []uint16{
	1, 7, 9, 11, 13, 15, 17, 19, 20, 21, 22, 23, 25, 37, 42, 43, 53, 69, 77, 79, 87, 95, 101, 102, 103, 104, 109, 110,
	111, 113, 115, 117, 119, 123, 135, 137, 139, 143, 161, 179, 389, 427, 465, 512, 513, 514, 515, 526, 530, 531, 532,
	540, 548, 554, 556, 563, 587, 601, 636, 989, 990, 993, 995, 1719, 1720, 1723, 2049, 3659, 4045, 4190, 5060, 5061,
	6000, 6566, 6665, 6666, 6667, 6668, 6669, 6679, 6697, 10080,
}

// A guard decides about each connection in the moment of connecting.
type guard struct {
	hosts hosts
	own   []netip.AddrPort // what this program listens on
	local []netip.Addr     // this machine's addresses
}

// check says whether a connection to this address may be made, for a host that the
// operator has listed or not. It is pure.
func (g guard) check(to netip.AddrPort, listed bool) error {
	most := zonePublic
	if listed {
		most = zonePrivate
	}
	if err := addrOf(to.Addr(), most); err != nil {
		return err
	}
	a := to.Addr().Unmap()
	here := a.IsLoopback() || slices.Contains(g.local, a)
	for _, own := range g.own {
		o := own.Addr().Unmap()
		if to.Port() == own.Port() && (a == o || here && (o.IsUnspecified() || o.IsLoopback())) {
			return errorf(CodeNotAllowed, "%s belongs to approvalbot itself; tools may not talk to it.", to)
		}
	}
	return nil
}

// control is the Control of a dialer: it is called for each address that is
// tried, before anything is sent.
func (g guard) control(listed bool) func(network, address string, _ syscall.RawConn) error {
	return func(network, address string, _ syscall.RawConn) error {
		to, err := netip.ParseAddrPort(address)
		if err != nil || network != "tcp4" && network != "tcp6" {
			return errorf(CodeNotAllowed, "A connection to %s can't be judged, so it isn't made.", address)
		}
		return g.check(to, listed)
	}
}

// localAddrs are this machine's addresses, as far as the system tells.
func localAddrs() []netip.Addr {
	var all []netip.Addr
	list, err := net.InterfaceAddrs()
	if err != nil {
		return nil // those that matter most, loopback, are known without
	}
	for _, a := range list {
		if p, err := netip.ParsePrefix(a.String()); err == nil {
			all = append(all, p.Addr().Unmap())
		}
	}
	return all
}
