package transport

import (
	"context"
	"time"
)

// Delivery is one delivery of one message. Exactly one Ack, Nak or Term finishes it; a
// second one returns ErrFinished and does nothing. Methods are safe for use from any
// goroutine and do not wait for the server. The server may miss such a call, and then the
// message comes again (T3).
type Delivery interface {
	// Message is what was delivered. If Err is not nil it has only the destination and
	// the body.
	Message() *Message
	// Err is nil, or wraps ErrMalformed for headers that cannot be read: write a dead
	// letter, then call Term (T3).
	Err() error
	// Count is the number of deliveries so far, 1 for the first. It is a hint for
	// grouping (1.6) and proves nothing.
	Count() int
	// Ack finishes the delivery: its commit is durable, or there was nothing to do. The
	// message is gone.
	Ack() error
	// Nak hands the message back, and it comes again after delay (T3). The delay is at
	// least MinNakDelay.
	Nak(delay time.Duration) error
	// InProgress restarts the ack wait for a delivery still being worked on.
	InProgress() error
	// Term finishes a poison message after its dead letter is committed. The reason is
	// for the operator and must not contain payload.
	Term(reason string) error
}

// MinNakDelay is the shortest delay of a Nak: a message that failed must not
// come back in a tight loop (T3).
const MinNakDelay = 10 * time.Millisecond

// MaxSlots bounds the unfinished deliveries of one Consume.
const MaxSlots = 16384

// Bus carries messages. All methods are safe for concurrent use.
type Bus interface {
	// Ensure makes sure that streams and consumers exist as configured. It is idempotent,
	// and is called at start and after a loss (T5).
	Ensure(ctx context.Context) error

	// Send hands msgs over, in order, without waiting for their PubAcks. done may be nil.
	// Otherwise it is called once for every message with its outcome (nil: the bus has
	// it), in any order, even for messages that were not handed over because Send failed.
	// The call comes from another goroutine, or from within Send where the message stays
	// in this process; it must not block. The number of messages in flight is bounded.
	// Send blocks while the bound is reached (T11), and returns ctx's error if ctx ends
	// first. Send reads msgs until it returns, and bodies until done.
	Send(ctx context.Context, msgs []Message, done func(i int, err error)) error

	// Consume pulls from one destination until ctx ends, and then returns nil. There are
	// never more unfinished deliveries than slots (1 to MaxSlots). A delivery keeps its
	// slot until it is finished, even past its ack wait, when the same message may be
	// delivered beside it. handle is called sequentially, and may block. Consume rebinds
	// by itself after any outage, deletion of stream or consumer, or server restart (T5).
	// It returns an error only for a closed bus or a destination that can never be
	// consumed. When ctx ends, pulled messages that were not handled are handed back;
	// unfinished deliveries may still be finished while the bus is open.
	Consume(ctx context.Context, from Destination, slots int, handle func(Delivery)) error

	// Oldest is the PublishedAt of the oldest message for d that is undelivered or
	// unfinished: T2's look before a re-send. found is false when there is none. A
	// message without PublishedAt gives 0 and true. A finished message does not count,
	// even if the server still has it.
	Oldest(ctx context.Context, d Destination) (publishedAt int64, found bool, err error)

	// RemoveStale looks at requests to workers that have waited for at least that time, asks which of
	// them are stale, and removes those, so that no message stays of which the row is gone. A
	// call looks at a bounded number of them, and the next one goes on from there. It returns how
	// many it removed. stale gets messages whose MAC holds, and answers for each; its error ends
	// the call. A message that is removed in error is sent again by its row (T1).
	RemoveStale(ctx context.Context, waited time.Duration,
		stale func(ctx context.Context, msgs []Message) ([]bool, error)) (removed int, err error)

	// Tell says that the jobs have ended, to every Listen for them in any process (W5).
	// It is a hint that may be lost, and it does not wait. If nobody listens the message
	// is dropped.
	Tell(jobs ...[16]byte)

	// Listen calls told when the job has ended, perhaps more than once, until stop is
	// called. A Tell from another process may be lost while Listen is being called. told
	// is called from any goroutine, even from within Tell, and must not block. stop is
	// idempotent. The error is ErrClosed or wraps ErrUnavailable.
	Listen(job [16]byte, told func()) (stop func(), err error)

	// MaxPayload is the largest message in bytes, headers included (T4).
	MaxPayload() int

	// Connected says whether the servers are reachable now. It is a hint: the row of a
	// message that is lost sends it again.
	Connected() bool

	// Close ends the bus: running Consume calls return ErrClosed, outstanding sends get
	// their outcome or ErrClosed, and told is not called any more. It is idempotent.
	Close() error
}
