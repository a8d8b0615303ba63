package postgres

import (
	"net"
	"net/url"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
)

// proxy stands between a store and its database: it counts round trips and
// cuts connections.
type proxy struct {
	listener net.Listener
	target   string
	trips    atomic.Int64 // times that a client spoke after its server had

	mu    sync.Mutex
	cut   func(fromServer []byte) bool // guarded by mu: cuts before these bytes pass
	links []net.Conn
	group sync.WaitGroup
}

// through returns a DSN that leads through a new proxy.
func through(t testing.TB, dsn string) (*proxy, string) {
	t.Helper()
	u := must(url.Parse(dsn))(t)
	require.NotEmpty(t, u.Host, "the DSN is a URL with a host")
	l := must(net.Listen("tcp", "127.0.0.1:0"))(t)
	p := &proxy{listener: l, target: u.Host}
	p.group.Go(p.accept)
	t.Cleanup(p.close)
	u.Host = l.Addr().String()
	return p, u.String()
}

func (p *proxy) accept() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		server, err := net.Dial("tcp", p.target)
		if err != nil {
			_ = client.Close()
			continue
		}
		p.mu.Lock()
		p.links = append(p.links, client, server)
		p.mu.Unlock()
		answered := &atomic.Bool{}
		answered.Store(true)
		p.group.Go(func() {
			p.pass(client, server, func([]byte) bool {
				if answered.Swap(false) {
					p.trips.Add(1)
				}
				return true
			})
		})
		p.group.Go(func() {
			p.pass(server, client, func(b []byte) bool {
				answered.Store(true)
				p.mu.Lock()
				defer p.mu.Unlock()
				return p.cut == nil || !p.cut(b)
			})
		})
	}
}

// pass copies until the stream ends or look returns false.
func (p *proxy) pass(from, to net.Conn, look func([]byte) bool) {
	defer func() {
		_ = from.Close()
		_ = to.Close()
	}()
	b := make([]byte, 1<<20)
	for {
		n, err := from.Read(b)
		if n > 0 {
			if !look(b[:n]) {
				return
			}
			if _, err := to.Write(b[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// cutWhen cuts a connection before the first bytes of its server that match.
func (p *proxy) cutWhen(match func([]byte) bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cut = match
}

// cutAll ends every connection.
func (p *proxy) cutAll() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.links {
		_ = c.Close()
	}
	p.links = nil
}

func (p *proxy) close() {
	_ = p.listener.Close()
	p.cutAll()
	p.group.Wait()
}
