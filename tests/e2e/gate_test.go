package e2e

import (
	"net"
	"net/url"
	"regexp"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
)

// holdAcks leads a worker process to NATS through a gate that stops everything
// it says from an ack of a request on, the first but for so many that pass: what
// it said before, its response among it, has arrived. The channel is closed then.
func holdAcks(t *testing.T, c *childConfig, space string, pass int32) <-chan struct{} {
	t.Helper()
	u, err := url.Parse(c.NATS)
	require.NoError(t, err)
	server := u.Host
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	u.Host = l.Addr().String()
	c.NATS = u.String()
	g := &gate{
		held: make(chan struct{}), over: make(chan struct{}),
		pass: &atomic.Int32{},
		ack:  regexp.MustCompile(`\$JS\.ACK\.\S*QUIPU_` + space + `_WORK\.[^\r]*\r\n\+ACK`),
	}
	g.pass.Store(pass)
	var group sync.WaitGroup
	group.Go(func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			group.Go(func() { g.link(client, server) })
		}
	})
	t.Cleanup(func() {
		close(g.over)
		_ = l.Close()
		group.Wait()
	})
	return g.held
}

type gate struct {
	ack  *regexp.Regexp
	pass *atomic.Int32 // acks that go through
	once sync.Once
	held chan struct{} // closed at the first ack
	over chan struct{} // closed at the test's end
}

// link passes one connection on, both ways.
func (g *gate) link(client net.Conn, address string) {
	server, err := net.Dial("tcp", address)
	if err != nil {
		_ = client.Close()
		return
	}
	var both sync.WaitGroup
	both.Go(func() { g.copy(client, server, nil) })   // what the server says
	both.Go(func() { g.copy(server, client, g.ack) }) // what the process says
	ended := make(chan struct{})
	go func() { both.Wait(); close(ended) }()
	select {
	case <-ended:
	case <-g.over:
	}
	_ = client.Close()
	_ = server.Close()
	both.Wait()
}

func (g *gate) copy(to, from net.Conn, stop *regexp.Regexp) {
	defer to.Close()
	b := make([]byte, 1<<20)
	for {
		n, err := from.Read(b)
		if err != nil {
			return
		}
		if stop != nil && stop.Match(b[:n]) && g.pass.Add(-1) < 0 {
			g.once.Do(func() { close(g.held) })
			<-g.over
			return
		}
		if _, err := to.Write(b[:n]); err != nil {
			return
		}
	}
}
