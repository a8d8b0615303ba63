package membus

import (
	"context"
	"fmt"
	"time"

	"github.com/quipu-journal/quipu/transport"
)

// outcome is an outcome of one message.
type outcome struct {
	index  int
	err    error
	flying bool // holds a slot of inFlight
}

// Send implements transport.Bus.
func (b *Bus) Send(ctx context.Context, msgs []transport.Message, done func(i int, err error)) error {
	if len(msgs) == 0 {
		return nil
	}
	if done == nil {
		return b.sendUnheard(ctx, msgs)
	}
	outcomes := make(chan outcome, len(msgs))
	defer close(outcomes)
	b.mu.Lock()
	if b.ending { // Close no longer waits for the reporter
		b.mu.Unlock()
		go b.report(outcomes, done)
	} else {
		b.owned.Go(func() { b.report(outcomes, done) })
		b.mu.Unlock()
	}
	for i := range msgs {
		if err := msgs[i].Validate(b.cfg.MaxPayload); err != nil {
			outcomes <- outcome{index: i, err: err}
			continue
		}
		if err := b.acquire(ctx); err != nil {
			for j := i; j < len(msgs); j++ {
				outcomes <- outcome{index: j, err: err}
			}
			return fmt.Errorf("send: %d of %d messages handed over: %w", i, len(msgs), err)
		}
		outcomes <- outcome{index: i, err: b.publish(&msgs[i]), flying: true}
	}
	return nil
}

// sendUnheard is Send without done: there is nothing to report.
func (b *Bus) sendUnheard(ctx context.Context, msgs []transport.Message) error {
	for i := range msgs {
		if msgs[i].Validate(b.cfg.MaxPayload) != nil {
			continue
		}
		if err := b.acquire(ctx); err != nil {
			return fmt.Errorf("send: %d of %d messages handed over: %w", i, len(msgs), err)
		}
		_ = b.publish(&msgs[i])
		<-b.inFlight
	}
	return nil
}

func (b *Bus) acquire(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	select {
	case <-b.closed:
		return transport.ErrClosed
	default:
	}
	select {
	case b.inFlight <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-b.closed:
		return transport.ErrClosed
	}
}

// report calls done for one Send, in its own goroutine.
func (b *Bus) report(outcomes <-chan outcome, done func(int, error)) {
	for o := range outcomes {
		if o.flying {
			<-b.inFlight
		}
		done(o.index, o.err)
	}
}

// publish stores one message and draws its faults.
func (b *Bus) publish(m *transport.Message) error {
	now := time.Now()
	id := m.ID()
	b.mu.Lock()
	defer b.mu.Unlock()
	times, duplicate := b.seen.sight(m.To.Kind, id, now)
	dice := dice{seed: b.cfg.Seed, id: id, n: times}
	lost := func() error { return fmt.Errorf("publish to %s: %w: PubAck lost", m.To, transport.ErrUnavailable) }
	if dice.falls(loseMessage, b.cfg.Loss) {
		b.seen.forget(m.To.Kind, id)
		if dice.roll(lieAboutLoss) < 0.5 {
			return nil
		}
		return lost()
	}
	if !duplicate {
		if b.queue(m.To).order.Len() >= b.cfg.MaxMessages {
			b.seen.forget(m.To.Kind, id)
			return fmt.Errorf("publish to %s: %w: %d messages", m.To, transport.ErrFull, b.cfg.MaxMessages)
		}
		b.put(m, nil, b.visible(dice, delayFirst, now))
		if dice.falls(duplicateMessage, b.cfg.Duplicate) {
			b.put(m, nil, b.visible(dice, delaySecond, now))
		}
	}
	if dice.falls(losePubAck, b.cfg.Loss) {
		return lost()
	}
	return nil
}

func (b *Bus) visible(d dice, k decision, now time.Time) time.Time {
	if !d.falls(k, b.cfg.Reorder) {
		return now
	}
	return now.Add(time.Duration(d.roll(k+howLong) * float64(b.cfg.MaxDelay)))
}
