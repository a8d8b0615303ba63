package nats

import (
	"errors"
	"sync"
	"time"

	"github.com/quipu-journal/quipu/transport"
)

const (
	// strangersEvery is the shortest time between two log lines about messages that are
	// not authentic, because anybody can send those.
	strangersEvery = 10 * time.Second
	// noKeyWait is how long a message waits that this process has no key for.
	noKeyWait = 5 * time.Second
)

// strangers counts the refused messages between two log lines.
type strangers struct {
	mu   sync.Mutex
	last time.Time
	n    int
}

// count adds a message. It returns how many to log, 0 for none.
func (s *strangers) count(now time.Time) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.n++
	if now.Sub(s.last) < strangersEvery {
		return 0
	}
	n := s.n
	s.last, s.n = now, 0
	return n
}

// refuse ends a delivery that nobody may act on (S2). One that is not authentic is
// terminated. One that this process cannot check is handed back, because another process
// may have the key, or this one soon.
func (b *Bus) refuse(d *delivery) {
	what, payload := "messages are not authentic and do nothing", []byte("+TERM not authentic")
	why := transport.ErrForged
	if errors.Is(d.err, transport.ErrNoKey) {
		what, payload, why = "messages cannot be checked and are handed back", nakPayload(noKeyWait), transport.ErrNoKey
	}
	if b.cfg.Refused != nil {
		b.cfg.Refused(why)
	}
	if n := b.strangers.count(time.Now()); n > 0 {
		b.cfg.Log.Warn(what, "space", b.cfg.Space, "from", d.c.from.String(), "messages", n, "last", d.err)
	}
	_ = d.publish(payload) // if lost, the message comes again and is refused again
}
