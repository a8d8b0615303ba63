package cut

import (
	"bytes"
	"context"
	"encoding/json"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/Shopify/toxiproxy/v2"
	"github.com/Shopify/toxiproxy/v2/stream"
	"github.com/rs/zerolog"
)

// dialTimeout bounds a connection to the server, which is on this machine.
const dialTimeout = 5 * time.Second

// Proxy is one address in front of a server. Its methods are safe for concurrent
// use and return when what they do holds. It ends with its test.
type Proxy struct {
	t        testing.TB
	upstream string
	addr     string
	server   *toxiproxy.ApiServer // never listens: links ask it for metrics
	toxics   *toxiproxy.ToxicCollection
	group    sync.WaitGroup

	change sync.Mutex // held by what changes delays and pieces
	trips  atomic.Int64

	mu       sync.Mutex
	ended    bool
	trigger  []byte                     // what a client says that cuts Down, nil for nothing
	said     []byte                     // what a server says that resets its connection, nil for nothing
	first    func()                     // is called before that
	listener net.Listener               // nil while refusing
	swallows [stream.NumDirections]bool // the direction is cut
	links    map[*link]struct{}         // what lives
	names    int                        // of links so far
}

// New is a proxy in front of the server at upstream, host:port. It passes
// everything until it is told otherwise.
func New(t testing.TB, upstream string) *Proxy {
	t.Helper()
	server := toxiproxy.NewServer(toxiproxy.NewMetricsContainer(nil), zerolog.Nop())
	p := &Proxy{
		t: t, upstream: upstream, server: server, links: map[*link]struct{}{},
		toxics: toxiproxy.NewToxicCollection(toxiproxy.NewProxy(server, "cut", "", upstream)),
	}
	if err := p.listen("127.0.0.1:0"); err != nil {
		t.Fatalf("cut: %v", err)
	}
	t.Cleanup(p.end)
	return p
}

// Addr is where clients connect to, host:port. It stays the same.
func (p *Proxy) Addr() string { return p.addr }

// Both cuts both directions: what is sent is swallowed, connections stay, and
// new ones are taken and hear nothing.
func (p *Proxy) Both() { p.swallow(stream.Upstream, stream.Downstream) }

// Up cuts what clients send: the server hears nothing and is heard.
func (p *Proxy) Up() { p.swallow(stream.Upstream) }

// Down cuts what the server sends: it hears the clients, who hear nothing.
func (p *Proxy) Down() { p.swallow(stream.Downstream) }

// DownAt is Down from the moment on at which a client has sent the text, within
// one piece: the server hears it, and nobody hears what it says to that.
func (p *Proxy) DownAt(text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.trigger = []byte(text)
}

// ResetAt resets the connection on which a server next says the text, within one piece and before
// it passes. It calls first, if that is not nil, before.
func (p *Proxy) ResetAt(text string, first func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.said, p.first = []byte(text), first
}

// Trips is how often clients have spoken, each time after the server of the connection had.
func (p *Proxy) Trips() int64 { return p.trips.Load() }

// Reset resets every connection, at both ends. New ones are taken.
func (p *Proxy) Reset() { p.reset(func(*link) bool { return true }) }

// Refuse closes the listener: new connections are refused, those that live stay.
func (p *Proxy) Refuse() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.listener != nil {
		_ = p.listener.Close()
		p.listener = nil
	}
}

// Slow delays what is sent, in each direction, by the latency ± the jitter, both
// in whole milliseconds. The order stays. It replaces an earlier Slow.
func (p *Proxy) Slow(latency, jitter time.Duration) {
	p.poison("latency", map[string]int64{"latency": latency.Milliseconds(), "jitter": jitter.Milliseconds()})
}

// Slices cuts what is sent, in each direction, into pieces of that many bytes at
// most, and waits for the delay (in whole microseconds) after each. It replaces
// earlier Slices.
func (p *Proxy) Slices(bytes int, delay time.Duration) {
	p.poison("slicer", map[string]int64{"average_size": int64(bytes), "delay": delay.Microseconds()})
}

// Heal ends everything. What was swallowed stays lost, and no TCP connection
// goes on with a hole: those that lost something are reset, as after a partition
// that lasted longer than the ends were patient. The others live on.
func (p *Proxy) Heal() {
	p.t.Helper()
	p.change.Lock()
	defer p.change.Unlock()
	p.mu.Lock()
	refused := p.listener == nil && !p.ended
	p.swallows, p.trigger = [stream.NumDirections]bool{}, nil
	p.mu.Unlock()
	p.reset(func(l *link) bool { return l.lost })
	p.toxics.ResetToxics(context.Background())
	if !refused {
		return
	}
	// For a moment the port may be that of a connection of somebody else.
	err := p.listen(p.addr)
	for until := time.Now().Add(dialTimeout); err != nil && time.Now().Before(until); err = p.listen(p.addr) {
		time.Sleep(10 * time.Millisecond)
	}
	if err != nil {
		p.t.Errorf("cut: %v", err)
	}
}

func (p *Proxy) swallow(directions ...stream.Direction) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, d := range directions {
		p.swallows[d] = true
	}
}

// poison adds a toxic in both directions.
func (p *Proxy) poison(kind string, attributes map[string]int64) {
	p.t.Helper()
	p.change.Lock()
	defer p.change.Unlock()
	for d := range stream.NumDirections {
		name := kind + "_" + d.String()
		if p.toxics.GetToxic(name) != nil {
			if err := p.toxics.RemoveToxic(context.Background(), name); err != nil {
				p.t.Errorf("cut: %s: %v", name, err)
			}
		}
		raw, err := json.Marshal(map[string]any{"name": name, "type": kind, "stream": d.String(), "attributes": attributes})
		if err == nil {
			_, err = p.toxics.AddToxicJson(bytes.NewReader(raw))
		}
		if err != nil {
			p.t.Errorf("cut: %s: %v", name, err)
		}
	}
}

// reset resets the connections that match.
func (p *Proxy) reset(match func(*link) bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for l := range p.links {
		if match(l) {
			l.reset()
		}
	}
}

func (p *Proxy) listen(addr string) error {
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.listener, p.addr = l, l.Addr().String()
	p.group.Go(func() { p.accept(l) })
	return nil
}

func (p *Proxy) accept(l net.Listener) {
	for {
		client, err := l.Accept()
		if err != nil {
			return // closed
		}
		p.group.Go(func() { p.connect(client.(*net.TCPConn)) })
	}
}

// end resets what lives and waits for all that was started.
func (p *Proxy) end() {
	p.Refuse()
	p.mu.Lock()
	p.ended = true
	p.mu.Unlock()
	p.Heal()
	p.Reset()
	p.group.Wait()
}
