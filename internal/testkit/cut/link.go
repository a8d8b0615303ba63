package cut

import (
	"bytes"
	"net"
	"strconv"
	"sync"
	"sync/atomic"

	"github.com/Shopify/toxiproxy/v2/stream"
)

// link is one connection of a client and the one to the server that stands for
// it.
type link struct {
	p              *Proxy
	client, server *net.TCPConn
	passing        sync.WaitGroup // until both directions have ended
	lost           bool           // guarded by Proxy.mu: bytes of it were swallowed
	answered       atomic.Bool    // the server has spoken since the client did
}

// connect makes the link of a new connection and lives as long.
func (p *Proxy) connect(client *net.TCPConn) {
	server, err := net.DialTimeout("tcp", p.upstream, dialTimeout)
	if err != nil {
		_ = client.SetLinger(0)
		_ = client.Close()
		return
	}
	l := &link{p: p, client: client, server: server.(*net.TCPConn)}
	l.answered.Store(true) // the client begins
	p.mu.Lock()
	p.names++
	name := strconv.Itoa(p.names)
	p.links[l] = struct{}{}
	ended := p.ended
	p.mu.Unlock()
	if ended {
		l.reset()
	}
	l.passing.Add(int(stream.NumDirections))
	for d, ends := range [stream.NumDirections][2]*net.TCPConn{{l.client, l.server}, {l.server, l.client}} {
		to := &end{link: l, direction: stream.Direction(d), from: ends[0], to: ends[1]}
		p.toxics.StartLink(p.server, name+to.direction.String(), ends[0], to, to.direction)
	}
	l.passing.Wait()
	_, _ = l.client.Close(), l.server.Close()
	p.mu.Lock()
	delete(p.links, l)
	p.mu.Unlock()
}

// reset ends both connections at once, each with an RST.
func (l *link) reset() {
	for _, c := range []*net.TCPConn{l.client, l.server} {
		_ = c.SetLinger(0)
		_ = c.Close()
	}
}

// triggered cuts what the server says if these bytes of a client are those that
// it waits for.
func (p *Proxy) triggered(b []byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.trigger != nil && bytes.Contains(b, p.trigger) {
		p.swallows[stream.Downstream], p.trigger = true, nil
	}
}

// says notes that the server of a link speaks, and resets the link if these bytes are what is waited
// for.
func (l *link) says(b []byte) (reset bool) {
	l.answered.Store(true)
	l.p.mu.Lock()
	first := l.p.first
	if reset = l.p.said != nil && bytes.Contains(b, l.p.said); reset {
		l.p.said, l.p.first = nil, nil
	}
	l.p.mu.Unlock()
	if reset {
		if first != nil {
			first()
		}
		l.reset()
	}
	return reset
}

// swallowed says whether the direction is cut, and remembers what that loses.
func (l *link) swallowed(d stream.Direction) bool {
	l.p.mu.Lock()
	defer l.p.mu.Unlock()
	cut := l.p.swallows[d]
	l.lost = l.lost || cut
	return cut
}

// end is where one direction of a link is written to.
type end struct {
	*link
	direction stream.Direction
	from, to  *net.TCPConn
	broken    bool
}

// Write never fails: toxiproxy's goroutines of a link end when its source does,
// so an end that broke breaks the source and takes what still comes.
func (e *end) Write(b []byte) (int, error) {
	if e.broken || e.swallowed(e.direction) {
		return len(b), nil
	}
	if e.direction == stream.Downstream && e.says(b) {
		return len(b), nil
	}
	if e.direction == stream.Upstream {
		if e.answered.Swap(false) {
			e.p.trips.Add(1)
		}
		e.p.triggered(b)
	}
	if _, err := e.to.Write(b); err != nil {
		e.broken = true
		_ = e.from.Close()
	}
	return len(b), nil
}

// Close is the source's end, which is passed on unless the direction is cut: of
// a peer that has gone one hears nothing either.
func (e *end) Close() error {
	defer e.passing.Done()
	if e.swallowed(e.direction) {
		return nil
	}
	return e.to.CloseWrite()
}
