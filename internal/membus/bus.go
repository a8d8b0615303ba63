package membus

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/quipu-journal/quipu/transport"
)

// Defaults of a Config.
const (
	DefaultAckWait     = 10 * time.Second
	DefaultMaxPayload  = 1 << 20
	DefaultMaxInFlight = 4096
	// DefaultMaxMessages is per destination; past it a publish is transport.ErrFull, as
	// on a full stream (T5).
	DefaultMaxMessages = 1 << 20
	// DefaultMaxDelay bounds the delay of a reordered message.
	DefaultMaxDelay = 50 * time.Millisecond
	// DuplicateWindow is how long a message id is remembered.
	DuplicateWindow = 2 * time.Minute
)

// Config of a bus; the zero value is a bus without faults.
type Config struct {
	// Seed of all random decisions.
	Seed uint64
	// Loss is the probability, for each separately, that a message is lost after it was
	// handed over (its PubAck is then randomly a success or an error), that a PubAck is
	// lost, that an Ack, Nak or Term is lost, and that a Tell is lost.
	Loss float64
	// Duplicate is the probability that a message is stored twice.
	Duplicate float64
	// Reorder is the probability that a message is held back by up to MaxDelay.
	Reorder float64
	// MaxDelay of a reordered message, default DefaultMaxDelay.
	MaxDelay time.Duration
	// AckWait is when an unfinished delivery comes again, default DefaultAckWait.
	AckWait time.Duration
	// MaxPayload in bytes with headers, default DefaultMaxPayload.
	MaxPayload int
	// MaxInFlight bounds messages without a PubAck, default DefaultMaxInFlight.
	MaxInFlight int
	// MaxMessages bounds a destination, default DefaultMaxMessages.
	MaxMessages int
}

// Bus is a transport.Bus in memory. Make one with New.
type Bus struct {
	cfg      Config
	inFlight chan struct{}
	closed   chan struct{}
	owned    sync.WaitGroup

	mu     sync.Mutex
	ending bool
	next   uint64
	queues map[transport.Destination]*queue
	seen   window
	told   map[[16]byte]map[*func()]struct{} // by job
}

var _ transport.Bus = (*Bus)(nil)

// New is an empty bus.
func New(cfg Config) *Bus {
	orDefault(&cfg.AckWait, DefaultAckWait)
	orDefault(&cfg.MaxDelay, DefaultMaxDelay)
	orDefault(&cfg.MaxPayload, DefaultMaxPayload)
	orDefault(&cfg.MaxInFlight, DefaultMaxInFlight)
	orDefault(&cfg.MaxMessages, DefaultMaxMessages)
	return &Bus{
		cfg:      cfg,
		inFlight: make(chan struct{}, cfg.MaxInFlight),
		closed:   make(chan struct{}),
		queues:   make(map[transport.Destination]*queue),
		seen:     window{ids: make(map[windowKey]*sighting)},
		told:     make(map[[16]byte]map[*func()]struct{}),
	}
}

func orDefault[T int | time.Duration](field *T, value T) {
	if *field <= 0 {
		*field = value
	}
}

// Ensure implements transport.Bus; there is nothing to make.
func (b *Bus) Ensure(ctx context.Context) error { return ctx.Err() }

// MaxPayload implements transport.Bus.
func (b *Bus) MaxPayload() int { return b.cfg.MaxPayload }

// Connected implements transport.Bus.
func (b *Bus) Connected() bool { return true }

// Close implements transport.Bus. It does not wait for a handle that blocks.
func (b *Bus) Close() error {
	b.mu.Lock()
	if b.ending {
		b.mu.Unlock()
		return nil
	}
	b.ending = true
	clear(b.told)
	b.mu.Unlock()
	close(b.closed)
	b.owned.Wait()
	return nil
}

// Wipe deletes every message, as when all streams are deleted (F10).
func (b *Bus) Wipe() {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, q := range b.queues {
		q.clear()
	}
	b.seen = window{ids: make(map[windowKey]*sighting)}
}

// Calm ends the faults: messages published from now on arrive once, without delay.
func (b *Bus) Calm() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.cfg.Loss, b.cfg.Duplicate, b.cfg.Reorder = 0, 0, 0
}

// Len is the number of messages for d that are undelivered or unfinished.
func (b *Bus) Len(d transport.Destination) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.queue(d).order.Len()
}

// Inject puts a message with raw wire headers on the bus, as a foreign client
// might; faults do not touch it.
func (b *Bus) Inject(to transport.Destination, headers map[string]string, body []byte) {
	m, err := transport.Decode(to, func(name string) string { return headers[name] }, body, nil)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.put(&m, err, time.Now())
}

// Oldest implements transport.Bus.
func (b *Bus) Oldest(ctx context.Context, d transport.Destination) (publishedAt int64, found bool, err error) {
	if err := d.Validate(); err != nil {
		return 0, false, fmt.Errorf("oldest: %w", err)
	}
	if err := ctx.Err(); err != nil {
		return 0, false, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	front := b.queue(d).order.Front()
	if front == nil {
		return 0, false, nil
	}
	return front.Value.(*entry).msg.Header.PublishedAt, true, nil
}

// queue is the queue of d; the caller holds mu.
func (b *Bus) queue(d transport.Destination) *queue {
	q := b.queues[d]
	if q == nil {
		q = newQueue(&b.mu)
		b.queues[d] = q
	}
	return q
}

// put adds an entry that may be delivered from visible on; the caller holds mu.
func (b *Bus) put(m *transport.Message, err error, visible time.Time) {
	b.next++
	b.queue(m.To).add(&entry{msg: *m, err: err, number: b.next, came: time.Now(), visible: visible})
}
