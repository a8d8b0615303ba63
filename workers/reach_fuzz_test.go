package workers

import (
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// FuzzReach: the lists of what http may call are read or refused. What is denied is not called,
// whatever is allowed; an address that is reserved only where it is allowed by itself; and where
// something is allowed, nothing else (S14).
func FuzzReach(f *testing.F) {
	for _, seed := range [][3]string{
		{"", "", "127.0.0.1"},
		{"169.254.169.254", "", "169.254.169.254"},
		{"bank.example,10.0.0.0/8", "10.0.0.7", "10.0.0.7"},
		{"0.0.0.0/0,::/0", "", "64:ff9b::a9fe:a9fe"},
		{"", "127.0.0.0/8", "::ffff:127.0.0.1"},
		{"fe80::/10", "", "fe80::1%eth0"},
		{"::ffff:10.0.0.0/104", "", "2002:0a00:0001::"},
		{"a/b", "*.example", "x"},
	} {
		f.Add(seed[0], seed[1], "bank.example", seed[2])
	}
	f.Fuzz(func(t *testing.T, allow, deny, host, address string) {
		r, err := newReach(listed(allow), listed(deny))
		if err != nil {
			require.ErrorContains(t, err, "http-")
			return
		}
		to, err := netip.ParseAddr(address)
		if err != nil {
			return
		}
		host, called := plainHost(host), r.check(plainHost(host), to) == nil
		ip := to.Unmap().WithZone("")
		within := slices.ContainsFunc(r.allow.nets, func(p netip.Prefix) bool { return p.Contains(ip) })
		if called {
			require.False(t, r.deny.has(ip), "it is denied")
			require.True(t, within || !ip.IsLinkLocalUnicast() && !ip.IsMulticast() && !ip.IsUnspecified(), "it is reserved")
			require.True(t, within || slices.Contains(r.allow.hosts, host) || r.allow.empty(), "it is not allowed")
		}
		denied, err := newReach(listed(allow), []string{ip.String()})
		require.NoError(t, err)
		require.Error(t, denied.check(host, to))
		opened, err := newReach([]string{ip.String()}, nil)
		require.NoError(t, err)
		if ip.Is4() {
			require.NoError(t, opened.check(host, to))
		}
	})
}

func listed(text string) []string {
	return slices.DeleteFunc(strings.Split(text, ","), func(s string) bool { return s == "" })
}
