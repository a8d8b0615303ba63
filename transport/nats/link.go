package nats

import (
	"context"
	"net/url"
	"strings"
	"sync"

	natsgo "github.com/nats-io/nats.go"
)

// link tells the loops about the connection: a channel that is closed when it breaks, and
// a way to wait until it is up. Because each break has its own channel, a break with a
// quick reconnect is not missed.
type link struct {
	nc         *natsgo.Conn
	mu         sync.Mutex
	broken     chan struct{} // closed at the next break
	connected  chan struct{} // closed at the next connect
	reconnects uint64
}

func newLink(nc *natsgo.Conn) *link {
	return &link{nc: nc, broken: make(chan struct{}), connected: make(chan struct{}), reconnects: nc.Stats().Reconnects}
}

func (l *link) broke() {
	l.mu.Lock()
	defer l.mu.Unlock()
	close(l.broken)
	l.broken = make(chan struct{})
	l.reconnects = max(l.reconnects, l.nc.Stats().Reconnects)
}

func (l *link) up() {
	l.mu.Lock()
	defer l.mu.Unlock()
	close(l.connected)
	l.connected = make(chan struct{})
	l.reconnects = max(l.reconnects, l.nc.Stats().Reconnects)
}

// wake makes waiters look again whether the connection is up, since its event may have
// been lost.
func (l *link) wake() {
	l.mu.Lock()
	defer l.mu.Unlock()
	close(l.connected)
	l.connected = make(chan struct{})
}

// missedReconnect reports a reconnect that came without an event.
func (l *link) missedReconnect() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.nc.Stats().Reconnects > l.reconnects
}

// breaks is closed at the next break of the connection.
func (l *link) breaks() <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.broken
}

// wait returns nil once the connection is up, or ctx's error.
func (l *link) wait(ctx context.Context) error {
	for {
		l.mu.Lock()
		connected := l.connected
		l.mu.Unlock()
		if l.nc.IsConnected() {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-connected:
		}
	}
}

// redactURL keeps passwords out of errors and logs (4.5).
func redactURL(urls string) string {
	parts := strings.Split(urls, ",")
	for i, part := range parts {
		u, err := url.Parse(strings.TrimSpace(part))
		if err != nil {
			parts[i] = "(unreadable url)"
			continue
		}
		if u.User != nil {
			u.User = url.User("redacted")
		}
		parts[i] = u.String()
	}
	return strings.Join(parts, ",")
}
