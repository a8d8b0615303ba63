package nats

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	natsgo "github.com/nats-io/nats.go"

	"github.com/quipu-journal/quipu/transport"
)

const (
	// askGroup is the queue group of the engines: one of them answers.
	askGroup = "engines"
	// maxTopics bounds the topics whose consumers one process makes.
	maxTopics = 10_000
	// askedMax bounds the wait of a worker that asks again for its consumer.
	askedMax = time.Second
)

// askSubject is where a worker asks the engines for the consumer of its topic (S4). No
// stream has it.
func (b *Bus) askSubject(topic string) string { return b.subjects() + "consumer." + topic }

// asked is an engine's answer to a worker (docs/wire.md).
type asked struct {
	AckWait time.Duration `json:"ack_wait,omitempty"` // of the consumer, in nanoseconds
	Error   string        `json:"error,omitempty"`
}

// ask lets an engine make the consumer of a topic, and waits until it has. Without an
// engine the consumer may be there all the same, so that is no error.
func (b *Bus) ask(ctx context.Context, d transport.Destination) error {
	if d.Kind != transport.Work {
		return fmt.Errorf("consume %s: %w: only an engine does", d, transport.ErrInvalid)
	}
	var made asked
	answer, err := b.nc.RequestWithContext(ctx, b.askSubject(d.Topic), nil)
	if err == nil {
		err = json.Unmarshal(answer.Data, &made)
	}
	switch {
	case errors.Is(err, natsgo.ErrNoResponders), errors.Is(err, context.DeadlineExceeded),
		errors.Is(err, natsgo.ErrTimeout):
		return nil
	case err != nil:
		return ioError("ask for the consumer of "+d.String(), err)
	case made.Error != "":
		return fmt.Errorf("%w: an engine cannot make the consumer of %s: %.200s", transport.ErrUnavailable, d, made.Error)
	}
	return nil
}

// answer makes the consumers that workers ask for, until the bus ends.
func (b *Bus) answer() error {
	busy := make(chan struct{}, ensureParallel)
	prefix := b.askSubject("")
	sub, err := b.nc.QueueSubscribe(prefix+">", askGroup, func(m *natsgo.Msg) {
		d := transport.ToWork(strings.TrimPrefix(m.Subject, prefix))
		if d.Validate() != nil || !b.consumes(d) {
			return
		}
		select {
		case busy <- struct{}{}:
		default:
			return // it asks again
		}
		b.goes(func() {
			defer func() { <-busy }()
			ctx, cancel := context.WithTimeout(b.ctx, repairWait)
			defer cancel()
			made := asked{AckWait: b.cfg.WorkAckWait}
			if err := b.ensureDestination(ctx, d); err != nil {
				made = asked{Error: err.Error()}
			}
			text, _ := json.Marshal(made) // it cannot fail
			_ = m.Respond(text)           // if lost, it asks again
		})
	})
	if err != nil {
		return ioError("listen to workers that ask for a consumer", err)
	}
	context.AfterFunc(b.ctx, func() { _ = sub.Unsubscribe() })
	return nil
}

// goes runs f in a goroutine that Close waits for, unless the bus is closed.
func (b *Bus) goes(f func()) {
	b.closing.RLock()
	defer b.closing.RUnlock()
	if !b.closed {
		b.owned.Go(f)
	}
}
