package transporttest

import (
	"context"
	"errors"

	"github.com/quipu-journal/quipu/transport"
)

// Publish sends msgs and waits for all their outcomes, or until ctx ends. It joins their
// errors.
func Publish(ctx context.Context, bus transport.Bus, msgs ...transport.Message) error {
	outcomes := make(chan error, len(msgs))
	err := bus.Send(ctx, msgs, func(_ int, err error) { outcomes <- err })
	for range msgs {
		select {
		case one := <-outcomes:
			err = errors.Join(err, one)
		case <-ctx.Done():
			return errors.Join(err, ctx.Err())
		}
	}
	return err
}
