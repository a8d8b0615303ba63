package nats

import (
	"encoding/hex"
	"sync"

	natsgo "github.com/nats-io/nats.go"

	"github.com/quipu-journal/quipu/transport"
)

// maxTold is how many messages about jobs that ended may wait to be handed on. What
// comes beyond them is lost, as any may be.
const maxTold = 4096

// ears are the subscriptions of those who listen for the end of a job. They share
// one channel and the goroutine that reads it.
type ears struct {
	in   chan *natsgo.Msg
	mu   sync.Mutex
	told map[*natsgo.Subscription]func() // nil once the bus is closed
}

func newEars() *ears {
	return &ears{in: make(chan *natsgo.Msg, maxTold), told: map[*natsgo.Subscription]func(){}}
}

// endedSubject is the subject of one job's end. No stream has it: what nobody
// subscribes to, the server drops.
func (b *Bus) endedSubject(job [16]byte) string {
	return "quipu." + b.cfg.Space + ".ended." + hex.EncodeToString(job[:])
}

// Tell implements transport.Bus. While the connection is down it says nothing.
func (b *Bus) Tell(jobs ...[16]byte) {
	for _, job := range jobs {
		if !b.nc.IsConnected() { // do not fill the reconnect buffer
			return
		}
		if err := b.nc.Publish(b.endedSubject(job), nil); err != nil {
			b.cfg.Log.Debug("the end of a job was not told; who waits for it looks for it", "space", b.cfg.Space, "error", err)
		}
	}
}

// Listen implements transport.Bus. It lasts over reconnects.
func (b *Bus) Listen(job [16]byte, told func()) (stop func(), err error) {
	e := b.ears
	e.mu.Lock() // until told is known for the subscription
	defer e.mu.Unlock()
	if e.told == nil {
		return nil, transport.ErrClosed
	}
	sub, err := b.nc.ChanSubscribe(b.endedSubject(job), e.in)
	if err != nil {
		return nil, ioError("listen for the end of a job", err)
	}
	e.told[sub] = told
	return func() { e.forget(sub) }, nil
}

func (e *ears) forget(sub *natsgo.Subscription) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if _, listens := e.told[sub]; listens {
		delete(e.told, sub)
		_ = sub.Unsubscribe() // without its connection there is nothing to end
	}
}

// listen hands on what is told, and ends with the bus.
func (b *Bus) listen() {
	for {
		select {
		case <-b.ctx.Done():
			b.ears.close()
			return
		case m := <-b.ears.in:
			b.ears.mu.Lock()
			told := b.ears.told[m.Sub]
			b.ears.mu.Unlock()
			if told != nil {
				told()
			}
		}
	}
}

func (e *ears) close() {
	e.mu.Lock()
	defer e.mu.Unlock()
	for sub := range e.told {
		_ = sub.Unsubscribe()
	}
	e.told = nil
}
