package nats

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/quipu-journal/quipu/transport"
)

// Oldest implements transport.Bus: T2's look before a re-send. It asks for the
// first message of the subject; work-queue retention keeps exactly what is
// undelivered or unfinished. A stream that is gone holds nothing.
func (b *Bus) Oldest(ctx context.Context, d transport.Destination) (publishedAt int64, found bool, err error) {
	if err := d.Validate(); err != nil {
		return 0, false, fmt.Errorf("oldest: %w", err)
	}
	if !b.nc.IsConnected() {
		return 0, false, fmt.Errorf("oldest of %s: %w: not connected", d, transport.ErrUnavailable)
	}
	stream, err := b.stream(ctx, d.Kind)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		return 0, false, nil
	}
	if err != nil {
		return 0, false, ioError("oldest of "+d.String(), err)
	}
	msg, err := stream.GetMsg(ctx, 1, jetstream.WithGetMsgSubject(b.subject(d)))
	if errors.Is(err, jetstream.ErrMsgNotFound) || errors.Is(err, jetstream.ErrStreamNotFound) {
		return 0, false, nil
	}
	if err != nil {
		return 0, false, ioError("oldest of "+d.String(), err)
	}
	at, err := strconv.ParseInt(msg.Header.Get(transport.HeaderPublishedAt), 10, 64)
	if err != nil || at < 0 {
		at = 0 // unknown, and no reason to fail the look
	}
	return at, true, nil
}
