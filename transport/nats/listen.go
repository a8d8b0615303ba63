package nats

import (
	"encoding/hex"
	"sync"

	natsgo "github.com/nats-io/nats.go"

	"github.com/quipu-journal/quipu/transport"
)

// maxTold bounds the queue of messages about ended jobs. Messages beyond it are lost,
// which Tell allows.
const maxTold = 4096

// ears are the subscriptions of all Listen calls. They share one channel and the
// goroutine that reads it.
type ears struct {
	in   chan *natsgo.Msg
	mu   sync.Mutex
	told map[*natsgo.Subscription]func() // nil once the bus is closed
}

func newEars() *ears {
	return &ears{in: make(chan *natsgo.Msg, maxTold), told: map[*natsgo.Subscription]func(){}}
}

// endedSubject is the subject for one job's end. No stream has it, so the server drops a
// message without a subscriber.
func (b *Bus) endedSubject(job [16]byte) string {
	return b.subjects() + "ended." + hex.EncodeToString(job[:])
}

// Tell implements transport.Bus. It does nothing while the connection is down.
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

// Listen implements transport.Bus. The subscription survives reconnects.
func (b *Bus) Listen(job [16]byte, told func()) (stop func(), err error) {
	e := b.ears
	e.mu.Lock() // until told is stored for the subscription
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
		_ = sub.Unsubscribe() // without a connection there is nothing to end
	}
}

// listen calls told for incoming messages until the bus ends.
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
