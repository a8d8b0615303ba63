package keyring

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// refreshEvery is the time between two looks for new keys, well within Grace. A process looks
	// sooner where it sees that the space's own chain has grown (Look).
	refreshEvery = 20 * time.Second
	// refreshLeast is the shortest time between two looks.
	refreshLeast = time.Second
)

// Source has the keys of a space, as far as the login may read and write them.
type Source interface {
	// Keys reads them.
	Keys(ctx context.Context) (Keys, error)
	// PutTopicKeys stores derived keys, for those who cannot derive them.
	PutTopicKeys(ctx context.Context, keys []TopicKey) error
}

// Keeper keeps the ring of a process up to date, and stores the keys of the topics that the
// process signs for. It is safe for concurrent use.
type Keeper struct {
	from Source
	log  *slog.Logger
	ring atomic.Pointer[Ring]
	look chan struct{} // capacity 1: look soon

	mu     sync.Mutex
	topics map[string]int // by topic, the newest key that is stored
}

// Open reads the keys once. Errors are the source's.
func Open(ctx context.Context, from Source, log *slog.Logger) (*Keeper, error) {
	k := &Keeper{from: from, log: log, look: make(chan struct{}, 1), topics: map[string]int{}}
	return k, k.read(ctx)
}

// Ring returns the keys as they were read last.
func (k *Keeper) Ring() *Ring { return k.ring.Load() }

func (k *Keeper) read(ctx context.Context) error {
	keys, err := k.from.Keys(ctx)
	if err != nil {
		return err
	}
	k.ring.Store(New(keys))
	return nil
}

// Run reads the keys again and again until ctx ends. While the database is away the ring
// stays as it is.
func (k *Keeper) Run(ctx context.Context) {
	tick := time.NewTicker(refreshEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		case <-k.look:
		}
		if err := errors.Join(k.read(ctx), k.put(ctx)); err != nil && ctx.Err() == nil {
			k.log.Warn("the keys of the space were not read or stored; it is tried again", "error", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(refreshLeast):
		}
	}
}

// Know stores the keys of topics for those who cannot derive them, if this process can.
func (k *Keeper) Know(ctx context.Context, topics ...string) error {
	for _, topic := range topics {
		k.note(topic)
	}
	return k.put(ctx)
}

// note remembers a topic. It reports whether it was new.
func (k *Keeper) note(topic string) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	_, known := k.topics[topic]
	if known || len(k.topics) >= maxTopics {
		return false
	}
	k.topics[topic] = 0
	return true
}

// put stores the keys of noted topics that are newer than those it stored.
func (k *Keeper) put(ctx context.Context) error {
	ring := k.Ring()
	var all []TopicKey
	k.mu.Lock()
	for topic, stored := range k.topics {
		if ring.newest() > stored {
			all = append(all, ring.TopicKeys(topic)...)
		}
	}
	k.mu.Unlock()
	if len(all) == 0 {
		return nil
	}
	if err := k.from.PutTopicKeys(ctx, all); err != nil {
		return err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, t := range all {
		k.topics[t.Topic] = max(k.topics[t.Topic], t.ID)
	}
	return nil
}

// Forget says that the space goes on in another database, which may be older (S13). The keys are read
// soon, and those of topics stored again.
func (k *Keeper) Forget() {
	k.mu.Lock()
	for topic := range k.topics {
		k.topics[topic] = 0
	}
	k.mu.Unlock()
	k.Look()
}

// Look has the keys read soon: somebody may have added one, or ended some.
func (k *Keeper) Look() {
	select {
	case k.look <- struct{}{}:
	default:
	}
}

// Sign is Ring.Sign of the present ring.
func (k *Keeper) Sign(topic string, text ...[]byte) (string, error) {
	ring := k.Ring()
	mac, err := ring.Sign(topic, text...)
	if errors.Is(err, ErrNoKey) || topic != "" && ring.Derives() && k.note(topic) {
		k.Look()
	}
	return mac, err
}

// Check is Ring.Check of the present ring.
func (k *Keeper) Check(topic, mac string, text ...[]byte) error {
	err := k.Ring().Check(topic, mac, text...)
	if errors.Is(err, ErrNoKey) {
		k.Look()
	}
	return err
}

// SignEntry is Ring.SignEntry of the present ring.
func (k *Keeper) SignEntry(text ...[]byte) []byte { return k.Ring().SignEntry(text...) }

// CheckEntry is Ring.CheckEntry of the present ring.
func (k *Keeper) CheckEntry(mac []byte, text ...[]byte) error {
	err := k.Ring().CheckEntry(mac, text...)
	if errors.Is(err, ErrStale) {
		k.Look()
	}
	return err
}
