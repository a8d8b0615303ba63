package console

import (
	"net"
	"net/http"
	"net/netip"
	"net/url"
)

// policy allows a page its own files and nothing else: no script or style within a page, no other
// host, no frame.
const policy = "default-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'; object-src 'none'"

// maxForm bounds the body of an act, bytes.
const maxForm = 1 << 20

// guard decides who may ask, and is the only place that does. It lets through what is addressed to
// this machine alone, so that a name of a stranger that resolves to it (DNS rebinding) is refused,
// and acts only when a page of the console asks for them.
func (c *console) guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", policy)
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "same-origin")
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		switch {
		case !loopback(r.Host):
			http.Error(w, "the console answers for this machine alone: ask for 127.0.0.1 or localhost", http.StatusForbidden)
		case r.Method != http.MethodGet && r.Method != http.MethodHead && !sameOrigin(r):
			http.Error(w, "this act was not asked for by a page of the console", http.StatusForbidden)
		default:
			r.Body = http.MaxBytesReader(w, r.Body, maxForm)
			next.ServeHTTP(w, r)
		}
	})
}

// loopback reports a host, with or without a port, that is this machine.
func loopback(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	if host == "localhost" {
		return true
	}
	if len(host) > 2 && host[0] == '[' && host[len(host)-1] == ']' {
		host = host[1 : len(host)-1]
	}
	addr, err := netip.ParseAddr(host)
	return err == nil && addr.IsLoopback()
}

// sameOrigin reports a request that a page of this very address sent. A browser says with every
// POST where it comes from, so one that says nothing is refused, too.
func sameOrigin(r *http.Request) bool {
	if site := r.Header.Get("Sec-Fetch-Site"); site != "" && site != "same-origin" {
		return false
	}
	from, err := url.Parse(r.Header.Get("Origin"))
	return err == nil && from.Host != "" && from.Host == r.Host && (from.Scheme == "http" || from.Scheme == "https")
}
