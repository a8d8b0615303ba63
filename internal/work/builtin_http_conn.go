package work

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"sync"
	"time"
)

// handshakeWait bounds a TLS handshake.
const handshakeWait = 10 * time.Second

// newHTTPTransport has no proxy: a proxy would resolve the name and make the connection
// itself, where nothing is checked. It keeps no connection: what a receiver sends unasked on one
// that is idle, net/http writes to the standard log of the process, with what the receiver was sent
// before, a secret for example. HTTP/2 would need a connection that it can look into.
func newHTTPTransport(r reach) *http.Transport {
	t := &http.Transport{
		DisableKeepAlives:      true,
		MaxResponseHeaderBytes: MaxHTTPHeaders,
	}
	t.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
		c, err := r.dial(ctx, network, address)
		if err != nil {
			return nil, err
		}
		return silentUntilAsked(c), nil
	}
	t.DialTLSContext = func(ctx context.Context, network, address string) (net.Conn, error) {
		c, err := r.dial(ctx, network, address)
		if err != nil {
			return nil, err
		}
		secure := tls.Client(c, tlsFor(t.TLSClientConfig, address))
		bounded, cancel := context.WithTimeout(ctx, handshakeWait)
		defer cancel()
		if err := secure.HandshakeContext(bounded); err != nil {
			_ = c.Close() // the handshake's error says more
			return nil, err
		}
		return silentUntilAsked(secure), nil
	}
	return t
}

// tlsFor is the configuration for the host of an address.
func tlsFor(base *tls.Config, address string) *tls.Config {
	c := &tls.Config{MinVersion: tls.VersionTLS12}
	if base != nil {
		c = base.Clone()
	}
	if host, _, err := net.SplitHostPort(address); err == nil && c.ServerName == "" {
		c.ServerName = host
	}
	c.NextProtos = []string{"http/1.1"}
	return c
}

// silentConn is a connection on which nothing is read before a request was written. A receiver that
// speaks first is not heard until then, and is not in anybody's log.
type silentConn struct {
	net.Conn
	once  sync.Once
	asked chan struct{}
}

func silentUntilAsked(c net.Conn) net.Conn { return &silentConn{Conn: c, asked: make(chan struct{})} }

func (q *silentConn) open() { q.once.Do(func() { close(q.asked) }) }

// Read implements net.Conn.
func (q *silentConn) Read(b []byte) (int, error) {
	<-q.asked
	return q.Conn.Read(b)
}

// Write implements net.Conn.
func (q *silentConn) Write(b []byte) (int, error) {
	q.open()
	return q.Conn.Write(b)
}

// Close implements net.Conn.
func (q *silentConn) Close() error {
	q.open()
	return q.Conn.Close()
}
