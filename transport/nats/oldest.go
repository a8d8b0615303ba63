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
// first message of the subject that its consumer is not done with; work-queue
// retention keeps what is undelivered or unfinished, and now and then a message
// more (acked). A stream that is gone holds nothing.
func (b *Bus) Oldest(ctx context.Context, d transport.Destination) (publishedAt int64, found bool, err error) {
	if err := d.Validate(); err != nil {
		return 0, false, fmt.Errorf("oldest: %w", err)
	}
	if !b.nc.IsConnected() {
		return 0, false, fmt.Errorf("oldest of %s: %w: not connected", d, transport.ErrUnavailable)
	}
	// An answer that is lost with its connection would be waited for as long as the
	// sweep may take, which sends nothing meanwhile.
	ctx, cancel := context.WithTimeout(ctx, b.cfg.PubAckWait)
	defer cancel()
	msg, err := b.first(ctx, d)
	if err != nil {
		return 0, false, ioError("oldest of "+d.String(), err)
	}
	if msg == nil {
		return 0, false, nil
	}
	at, err := strconv.ParseInt(msg.Header.Get(transport.HeaderPublishedAt), 10, 64)
	if err != nil || at < 0 {
		at = 0 // unknown, and no reason to fail the look
	}
	return at, true, nil
}

// first is the first message for d that is not acked; nil when there is none.
func (b *Bus) first(ctx context.Context, d transport.Destination) (*jetstream.RawStreamMsg, error) {
	stream, err := b.stream(ctx, d.Kind)
	if err != nil {
		return nil, notFound(err)
	}
	msg, err := b.next(ctx, stream, d, 1)
	if err != nil || msg == nil {
		return nil, err
	}
	consumer, err := b.js.Consumer(ctx, b.streamName(d.Kind), durableName(d))
	switch {
	case errors.Is(err, jetstream.ErrConsumerNotFound):
		return msg, nil // the next one begins with the first message
	case err != nil:
		return nil, notFound(err)
	}
	if floor := consumer.CachedInfo().AckFloor.Stream; msg.Sequence <= floor {
		return b.next(ctx, stream, d, floor+1)
	}
	return msg, nil
}

// next is the first message for d from seq on; nil when there is none.
func (b *Bus) next(ctx context.Context, stream jetstream.Stream, d transport.Destination, seq uint64) (*jetstream.RawStreamMsg, error) {
	msg, err := stream.GetMsg(ctx, seq, jetstream.WithGetMsgSubject(b.subject(d)))
	if err != nil {
		return nil, notFound(err)
	}
	return msg, nil
}

// notFound is nil for what is not there.
func notFound(err error) error {
	if errors.Is(err, jetstream.ErrMsgNotFound) || errors.Is(err, jetstream.ErrStreamNotFound) {
		return nil
	}
	return err
}

// removeAcked takes away what the consumer of d is done with. A server that is
// shut down between an ack and the removal of its message has both on its disk
// when it comes back, and then neither delivers the message nor removes it: it
// would fill the stream (T5), and look like a backlog that nobody works off (T2).
// What is removed in error, because the stream was made anew just now, is sent
// again by its row (T1).
func (b *Bus) removeAcked(ctx context.Context, consumer jetstream.Consumer, d transport.Destination) error {
	floor := consumer.CachedInfo().AckFloor.Stream
	if floor == 0 {
		return nil
	}
	stream, err := b.stream(ctx, d.Kind)
	if err != nil {
		return notFound(err)
	}
	removed := 0
	defer func() {
		if removed > 0 {
			b.cfg.Log.Info("removed messages that were acked and still there", "space", b.cfg.Space, "from", d.String(), "messages", removed)
		}
	}()
	for seq := uint64(1); seq <= floor; seq++ {
		msg, err := b.next(ctx, stream, d, seq)
		if err != nil || msg == nil || msg.Sequence > floor {
			return err
		}
		seq = msg.Sequence
		switch err := stream.DeleteMsg(ctx, seq); {
		case err == nil:
			removed++
		case !errors.Is(err, jetstream.ErrMsgDeleteUnsuccessful): // another process was faster
			return err
		}
	}
	return nil
}
