package nats

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/quipu-journal/quipu/transport"
)

// Oldest implements transport.Bus: T2's look before a re-send. It gets the first message
// of the subject that its consumer has not finished. Work-queue retention keeps
// undelivered and unfinished messages, and occasionally an acked one. A missing stream is
// empty.
func (b *Bus) Oldest(ctx context.Context, d transport.Destination) (publishedAt int64, found bool, err error) {
	if err := d.Validate(); err != nil {
		return 0, false, fmt.Errorf("oldest: %w", err)
	}
	if !b.nc.IsConnected() {
		return 0, false, fmt.Errorf("oldest of %s: %w: not connected", d, transport.ErrUnavailable)
	}
	// An answer that is lost with its connection must not hold up the sweep, which sends
	// nothing meanwhile.
	ctx, cancel := context.WithTimeout(ctx, pubAckWait)
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
		at = 0 // unknown, which does not fail the look
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
		return msg, nil // a new consumer begins with the first message
	case err != nil:
		return nil, notFound(err)
	}
	if floor := consumer.CachedInfo().AckFloor.Stream; msg.Sequence <= floor {
		return b.next(ctx, stream, d, floor+1)
	}
	return msg, nil
}

// next is the first message for d from seq on; nil when there is none.
func (b *Bus) next(
	ctx context.Context, stream jetstream.Stream, d transport.Destination, seq uint64,
) (*jetstream.RawStreamMsg, error) {
	msg, err := stream.GetMsg(ctx, seq, jetstream.WithGetMsgSubject(b.subject(d)))
	if err != nil {
		return nil, notFound(err)
	}
	return msg, nil
}

// notFound turns a missing message or stream into nil.
func notFound(err error) error {
	if errors.Is(err, jetstream.ErrMsgNotFound) || errors.Is(err, jetstream.ErrStreamNotFound) {
		return nil
	}
	return err
}

// removeAcked deletes messages below the ack floor of d's consumer. A server that stops
// between an ack and the removal of its message finds both on its disk afterwards, and
// then neither delivers the message nor removes it. Such messages would fill the stream
// (T5) and look like a backlog that nobody works off (T2). If one is deleted in error,
// because the stream was just made again, its row sends it again (T1).
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
