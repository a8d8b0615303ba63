package nats

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	natsgo "github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/quipu-journal/quipu/transport"
)

// closeWait bounds how long Close waits for consumer loops and the last acks.
const closeWait = 5 * time.Second

// defaultMaxPayload holds until a server has announced its own limit.
const defaultMaxPayload = 1 << 20

// Bus is a transport.Bus over JetStream. Make one with Open.
type Bus struct {
	cfg Config
	nc  *natsgo.Conn
	js  jetstream.JetStream
	api string // prefix of the JetStream API, with the final dot

	failed    *atomic.Pointer[error] // why the last attempt to connect failed
	link      *link
	pub       *publisher
	ears      *ears
	streams   ensured
	ctx       context.Context //nolint:containedctx // the bus's lifetime, ended by Close
	cancel    context.CancelFunc
	owned     sync.WaitGroup // goroutines that end with ctx
	consumers sync.WaitGroup // running Consume calls
	pulling   pulling        // the running Consume calls by destination
	strangers strangers
	troubles  troubles
	rooms     *rooms
	scanned   scanned
	attested  attested
	silent    atomic.Bool  // the server is connected, and gave no sign of life when it was asked
	asking    atomic.Bool  // askAgain waits for one
	answering sync.Once    // answers to workers that ask for a consumer
	closing   sync.RWMutex // orders consumers.Add against Close
	closed    bool
}

var _ transport.Bus = (*Bus)(nil)

// Open connects and returns the bus. It succeeds without a server: the connection is made
// in the background, and until then every call returns transport.ErrUnavailable. Errors
// are those of the configuration, a *transport.ConfigError.
func Open(ctx context.Context, cfg Config) (*Bus, error) {
	cfg, err := cfg.normalise()
	if err != nil {
		return nil, err
	}
	opts, err := cfg.options()
	if err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("open nats: %w", err)
	}
	failed := new(atomic.Pointer[error])
	opts = append(opts, natsgo.ReconnectErrHandler(func(_ *natsgo.Conn, err error) { failed.Store(&err) }))
	nc, err := natsgo.Connect(cfg.URL, opts...)
	if err != nil {
		return nil, fmt.Errorf("connect to nats at %s: %w", redactURL(cfg.URL), err)
	}
	bus, err := newBus(nc, cfg)
	if err != nil {
		nc.Close()
		return nil, err
	}
	bus.failed = failed
	return bus, nil
}

func newBus(nc *natsgo.Conn, cfg Config) (*Bus, error) {
	js, api, err := jetStream(nc, cfg.Domain)
	if err != nil {
		return nil, err
	}
	b := &Bus{cfg: cfg, nc: nc, js: js, api: api, link: newLink(nc), ears: newEars(), rooms: newRooms()}
	b.ctx, b.cancel = context.WithCancel(context.Background())
	b.pub, err = newPublisher(nc, cfg.MaxInFlight, b.repair, b.heard)
	if err != nil {
		b.cancel()
		return nil, err
	}
	b.owned.Go(b.keepHouse)
	b.owned.Go(b.listen)
	b.owned.Go(b.balance)
	if !cfg.LeaveStreams {
		b.owned.Go(b.watchRoom)
		b.owned.Go(b.inspect)
	}
	return b, nil
}

func jetStream(nc *natsgo.Conn, domain string) (jetstream.JetStream, string, error) {
	if domain == "" {
		js, err := jetstream.New(nc)
		return js, apiPrefix(domain), err
	}
	js, err := jetstream.NewWithDomain(nc, domain)
	if err != nil {
		return nil, "", fmt.Errorf("jetstream domain %q: %w", domain, err)
	}
	return js, apiPrefix(domain), nil
}

// apiPrefix begins the subjects of the JetStream API.
func apiPrefix(domain string) string {
	if domain == "" {
		return "$JS.API."
	}
	return "$JS." + domain + ".API."
}

// houseTick is the time between two looks of keepHouse.
const houseTick = pubAckWait / 8

// keepHouse watches the connection and expires PubAcks until the bus ends.
func (b *Bus) keepHouse() {
	events := b.nc.StatusChanged(natsgo.CONNECTED, natsgo.RECONNECTING, natsgo.DISCONNECTED, natsgo.CLOSED)
	defer b.nc.RemoveStatusListener(events)
	tick := time.NewTicker(houseTick)
	defer tick.Stop()
	for {
		select {
		case <-b.ctx.Done():
			return
		case status, open := <-events:
			if !open {
				events = nil
			}
			b.onStatus(status)
		case now := <-tick.C:
			b.pub.expire(now)
			if b.link.missedReconnect() { // the event channel may overflow
				b.onStatus(natsgo.RECONNECTING)
			}
			b.link.wake()
			if b.nc.IsConnected() && b.silent.Load() {
				b.askAgain()
			} else {
				b.heed(b.nc.IsConnected())
			}
		}
	}
}

func (b *Bus) onStatus(status natsgo.Status) {
	if status == natsgo.CONNECTED {
		b.cfg.Log.Info("nats connected", "space", b.cfg.Space, "server", b.nc.ConnectedUrlRedacted())
		b.link.up()
		b.hear()
		return
	}
	b.heed(false)
	b.cfg.Log.Warn("nats connection lost", "space", b.cfg.Space, "servers", redactURL(b.cfg.URL), "status", status.String())
	b.link.broke()
	b.pub.failAll(fmt.Errorf("%w: connection lost before the PubAck", transport.ErrUnavailable))
}

// hear notes that the server has answered.
func (b *Bus) hear() {
	b.silent.Store(false)
	b.heed(true)
}

// askAgain asks a server that was silent for a sign of life, once at a time: its connection may still hold.
func (b *Bus) askAgain() {
	if !b.asking.CompareAndSwap(false, true) {
		return
	}
	b.owned.Go(func() {
		defer b.asking.Store(false)
		ctx, cancel := context.WithTimeout(b.ctx, witnessWait)
		defer cancel()
		_ = b.Answers(ctx) // notes it
	})
}

// heed notes whether a server is connected. The log has that from elsewhere.
func (b *Bus) heed(connected bool) {
	const name = "NATS"
	if connected {
		b.troubles.clear(transport.TroubleAway, name, time.Now())
		return
	}
	b.troubles.add(transport.Trouble{
		Kind: transport.TroubleAway, Name: name,
		Text:  "NATS does not answer: no message is sent or received until it does; look at the server, and at the network to it",
		Cause: "it is " + redactURL(b.cfg.URL),
	}, time.Now())
}

// MaxPayload implements transport.Bus: the server's max_payload (T4), 1 MiB
// until one is connected.
func (b *Bus) MaxPayload() int {
	if n := b.nc.MaxPayload(); n > 0 {
		return int(n)
	}
	return defaultMaxPayload
}

// Reach waits until a server is connected, at most for the given time; it does not wait
// if that is negative. The error is ctx's, or transport.ErrUnavailable with the reason
// why the last attempt failed.
func (b *Bus) Reach(ctx context.Context, most time.Duration) error {
	if most < 0 {
		return nil
	}
	within, cancel := context.WithTimeout(ctx, most)
	defer cancel()
	for !b.nc.IsConnected() {
		select {
		case <-within.Done():
		case <-time.After(reachPause):
			continue
		}
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("connect to nats at %s: %w", redactURL(b.cfg.URL), err)
		}
		return fmt.Errorf("%w: nats at %s was not reached within %s: %w", transport.ErrUnavailable, redactURL(b.cfg.URL), most, b.away())
	}
	return nil
}

// away is why the last attempt to connect failed.
func (b *Bus) away() error {
	if cause := b.failed.Load(); cause != nil {
		return *cause
	}
	return cmp.Or(b.nc.LastError(), errors.New("nothing answers there"))
}

// reachPause is the pause between two looks of Reach.
const reachPause = 5 * time.Millisecond

// Connected implements transport.Bus. It is a hint: a message that is sent in the next
// moment may still be lost.
func (b *Bus) Connected() bool { return b.nc.IsConnected() }

// Close implements transport.Bus. It waits at most five seconds for consumer
// loops, whose handle may be blocked, and for the last acks to leave.
func (b *Bus) Close() error {
	b.closing.Lock()
	if b.closed {
		b.closing.Unlock()
		return nil
	}
	b.closed = true
	b.closing.Unlock()
	b.cancel()
	within(closeWait, b.consumers.Wait)
	b.owned.Wait()
	b.pub.close()
	var err error
	if b.nc.IsConnected() {
		err = b.nc.FlushTimeout(closeWait)
	}
	b.nc.Close()
	if err != nil {
		return fmt.Errorf("close nats: flush the last acks: %w", err)
	}
	return nil
}

// enter registers a Consume call, so that Close waits for it.
func (b *Bus) enter() error {
	b.closing.RLock()
	defer b.closing.RUnlock()
	if b.closed {
		return transport.ErrClosed
	}
	b.consumers.Add(1)
	return nil
}

// within calls wait and returns when it does, or after limit.
func within(limit time.Duration, wait func()) {
	finished := make(chan struct{})
	go func() { wait(); close(finished) }()
	select {
	case <-finished:
	case <-time.After(limit):
	}
}
