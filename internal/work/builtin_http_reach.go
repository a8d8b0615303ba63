package work

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"time"
)

// MaxHTTPRules bounds Builtins.HTTPAllow and Builtins.HTTPDeny, each.
const MaxHTTPRules = 1024

// reserved are the addresses that http does not call unless one is allowed by itself: no
// service has them, or one that trusts whoever reaches it (S14). Loopback and private
// addresses are not among them, because services live there.
var reserved = []struct {
	is  string
	net netip.Prefix
}{
	{"unspecified", netip.MustParsePrefix("::/128")},
	{"unspecified", netip.MustParsePrefix("0.0.0.0/8")}, // "this network"; Linux takes 0.0.0.0 for loopback
	{"link-local", netip.MustParsePrefix("169.254.0.0/16")},
	{"link-local", netip.MustParsePrefix("fe80::/10")},
	{"multicast", netip.MustParsePrefix("224.0.0.0/4")},
	{"multicast", netip.MustParsePrefix("ff00::/8")},
	{"broadcast", netip.MustParsePrefix("255.255.255.255/32")},
	// Cloud metadata outside the link-local ranges.
	{"cloud metadata", netip.MustParsePrefix("fd00:ec2::/32")},      // AWS
	{"cloud metadata", netip.MustParsePrefix("fd20:ce::254/128")},   // Google
	{"cloud metadata", netip.MustParsePrefix("168.63.129.16/32")},   // Azure
	{"cloud metadata", netip.MustParsePrefix("100.100.100.200/32")}, // Alibaba
	{"cloud metadata", netip.MustParsePrefix("192.0.0.192/32")},     // Oracle
	{"cloud metadata", netip.MustParsePrefix("fd00:42::42/128")},    // Scaleway
}

// reach decides which addresses http calls.
type reach struct {
	allow, deny rules
	own         func() []string // Builtins.HTTPOwn
}

// rules are host names, in small letters, and addresses.
type rules struct {
	hosts []string
	nets  []netip.Prefix
}

func newReach(allow, deny []string) (r reach, err error) {
	var wrong [2]error
	r.allow, wrong[0] = readRules("allow", allow)
	r.deny, wrong[1] = readRules("deny", deny)
	return r, errors.Join(wrong[:]...)
}

func readRules(what string, entries []string) (r rules, err error) {
	if len(entries) > MaxHTTPRules {
		return r, fmt.Errorf("http-%s: %d entries, the limit is %d", what, len(entries), MaxHTTPRules)
	}
	for _, text := range entries {
		if e := r.add(strings.TrimSpace(text)); e != nil {
			return rules{}, fmt.Errorf("http-%s %.80q: %w", what, text, e)
		}
	}
	return r, nil
}

var hostName = regexp.MustCompile(`^[a-z0-9_]([a-z0-9_.-]{0,251}[a-z0-9_])?$`)

// numeric ends what looks like an address: no top-level domain is a number.
var numeric = regexp.MustCompile(`(^|\.)(0x[0-9a-f]*|[0-9]+)$`)

func (r *rules) add(text string) error {
	if strings.Contains(text, "/") {
		p, err := netip.ParsePrefix(text)
		switch {
		case err != nil:
			return errors.New("not a CIDR such as 10.0.0.0/8; a host is written without scheme, port and path")
		case p.Addr().Is4In6() && p.Bits() >= 96:
			p = netip.PrefixFrom(p.Addr().Unmap(), p.Bits()-96)
		}
		r.nets = append(r.nets, p.Masked())
		return nil
	}
	if ip, err := netip.ParseAddr(text); err == nil && ip.Zone() == "" {
		ip = ip.Unmap()
		r.nets = append(r.nets, netip.PrefixFrom(ip, ip.BitLen()))
		return nil
	}
	host := plainHost(text)
	if !hostName.MatchString(host) || numeric.MatchString(host) {
		return errors.New("not a host name, an IP address or a CIDR: write it without scheme, port, path and *, in ASCII")
	}
	r.hosts = append(r.hosts, host)
	return nil
}

func plainHost(host string) string { return strings.ToLower(strings.TrimSuffix(host, ".")) }

func (r *rules) empty() bool { return len(r.hosts)+len(r.nets) == 0 }

func (r *rules) has(ip netip.Addr) bool {
	return slices.ContainsFunc(r.nets, func(p netip.Prefix) bool { return p.Contains(ip) })
}

// refusedError says why an address is not called.
type refusedError struct{ what, why string }

func (e *refusedError) Error() string { return fmt.Sprintf("http does not call %s: %s", e.what, e.why) }

// dial is the DialContext of a transport. The address is looked at after the name was
// resolved and before the connection is made, so that no answer of a name server comes
// between the two; a redirect is another dial.
func (r reach) dial(ctx context.Context, network, address string) (net.Conn, error) {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	host = plainHost(host)
	if slices.Contains(r.deny.hosts, host) {
		return nil, &refusedError{host, "its name is denied"}
	}
	d := net.Dialer{
		Timeout: 10 * time.Second, KeepAlive: 30 * time.Second,
		Control: func(_, address string, _ syscall.RawConn) error {
			to, err := netip.ParseAddrPort(address)
			if err != nil {
				return &refusedError{address, "not an IP address"}
			}
			if r.isOwn(to) {
				return &refusedError{to.String(), "a server of this process listens there"}
			}
			return r.check(host, to.Addr())
		},
	}
	return d.DialContext(ctx, network, address)
}

// isOwn says that a connection to the address would reach a server of this process.
func (r reach) isOwn(to netip.AddrPort) bool {
	if r.own == nil {
		return false
	}
	for _, text := range r.own() {
		server, err := netip.ParseAddrPort(text)
		if err != nil || server.Port() != to.Port() {
			continue
		}
		if slices.ContainsFunc(views(to.Addr().Unmap().WithZone("")), func(ip netip.Addr) bool {
			return reaches(ip, server.Addr().Unmap().WithZone(""))
		}) {
			return true
		}
	}
	return false
}

// reaches says that a connection to ip comes to who listens on the address server of this machine.
func reaches(ip, server netip.Addr) bool {
	// All of loopback is one machine, and the kernel takes an unspecified address for it.
	home := ip.IsLoopback() || ip.IsUnspecified() || ip.Is4() && ip.As4()[0] == 0
	switch {
	case ip == server:
		return true
	case server.IsLoopback():
		return home
	case !server.IsUnspecified():
		return false
	case home:
		return true
	}
	own, err := net.InterfaceAddrs()
	return err != nil || slices.ContainsFunc(own, func(a net.Addr) bool {
		p, err := netip.ParsePrefix(a.String())
		return err == nil && p.Addr().Unmap().WithZone("") == ip
	})
}

// check refuses an address that host resolves to. In order: what is denied; what is
// reserved, unless an entry that lies in the same range allows it; with an allow list,
// what it has neither by name nor by address.
func (r reach) check(host string, ip netip.Addr) error {
	ip = ip.Unmap().WithZone("")
	for _, view := range views(ip) {
		if r.deny.has(view) {
			return &refusedError{ip.String(), "its address is denied"}
		}
		for _, range_ := range reserved {
			if range_.net.Contains(view) && !r.opens(range_.net, view) {
				return &refusedError{ip.String(), "the address is " + range_.is + ", which has to be allowed by an address or a CIDR in " + range_.net.String()}
			}
		}
	}
	if r.allow.empty() || slices.Contains(r.allow.hosts, host) || r.allow.has(ip) {
		return nil
	}
	return &refusedError{ip.String(), "neither the address nor its name is allowed"}
}

// opens says that an entry within a reserved range allows the address.
func (r reach) opens(reserved netip.Prefix, ip netip.Addr) bool {
	return slices.ContainsFunc(r.allow.nets, func(p netip.Prefix) bool {
		return p.Bits() >= reserved.Bits() && reserved.Contains(p.Addr()) && p.Contains(ip)
	})
}

// Prefixes of IPv6 addresses that a gateway or the kernel turns into IPv4, with the offsets
// of the four bytes, by the RFC that names them.
var embeddings = []struct {
	net netip.Prefix
	at  [][4]int
}{
	// IPv4-compatible, 4291
	{netip.MustParsePrefix("::/96"), [][4]int{{12, 13, 14, 15}}},
	// IPv4-translated, 2765
	{netip.MustParsePrefix("::ffff:0:0:0/96"), [][4]int{{12, 13, 14, 15}}},
	// NAT64, 6052
	{netip.MustParsePrefix("64:ff9b::/96"), [][4]int{{12, 13, 14, 15}}},
	// local NAT64, 8215: every length of 6052
	{netip.MustParsePrefix("64:ff9b:1::/48"), [][4]int{{6, 7, 9, 10}, {7, 9, 10, 11}, {9, 10, 11, 12}, {12, 13, 14, 15}}},
	// 6to4, 3056
	{netip.MustParsePrefix("2002::/16"), [][4]int{{2, 3, 4, 5}}},
	// Teredo, 4380: server, and client inverted
	{netip.MustParsePrefix("2001::/32"), [][4]int{{4, 5, 6, 7}, {^12, ^13, ^14, ^15}}},
}

// views are the address and the IPv4 addresses that it stands for.
func views(ip netip.Addr) []netip.Addr {
	all := []netip.Addr{ip}
	if ip.Is4() || ip.IsLoopback() || ip.IsUnspecified() {
		return all
	}
	b := ip.As16()
	pick := func(at [4]int) (v4 [4]byte) {
		for i, n := range at {
			if n < 0 {
				v4[i] = ^b[^n]
			} else {
				v4[i] = b[n]
			}
		}
		return v4
	}
	for _, e := range embeddings {
		if !e.net.Contains(ip) {
			continue
		}
		for _, at := range e.at {
			if v4 := pick(at); v4[0] != 0 || len(e.at) == 1 { // of several readings, 0.… is the wrong one
				all = append(all, netip.AddrFrom4(v4))
			}
		}
	}
	if b[8]&^2 == 0 && b[9] == 0 && b[10] == 0x5e && b[11] == 0xfe { // ISATAP, 5214
		all = append(all, netip.AddrFrom4(pick([4]int{12, 13, 14, 15})))
	}
	return all
}
