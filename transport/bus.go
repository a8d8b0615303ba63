package transport

import (
	"context"
	"time"
)

// Delivery is one delivery of one message. It is finished by exactly one of Ack,
// Nak or Term; a second one returns ErrFinished and does nothing. Methods are
// safe for use from any goroutine and do not wait for the server: what they say
// may be lost, and then the message comes again (T3).
type Delivery interface {
	// Message is what was delivered. With Err it holds what could be read: the
	// destination and the body.
	Message() *Message
	// Err is nil, or wraps ErrMalformed for headers that cannot be read: to be
	// dead lettered, then Term-ed (T3).
	Err() error
	// Count is the number of deliveries so far, 1 for the first. It is a hint
	// for grouping (1.6) and no ground for any conclusion.
	Count() int
	// Ack finishes the delivery: its commit is durable, or there was nothing to
	// do. The message is gone.
	Ack() error
	// Nak hands the message back: it comes again after delay (T3). A delay that
	// is not positive is taken as MinNakDelay: there is no bare Nak.
	Nak(delay time.Duration) error
	// InProgress restarts the ack wait for a delivery still being worked on.
	InProgress() error
	// Term finishes a poison message after its dead letter is committed. The
	// reason is for the operator and must hold no payload.
	Term(reason string) error
}

// MinNakDelay is the shortest delay of a Nak: a message that failed must not
// come back in a tight loop (T3).
const MinNakDelay = 10 * time.Millisecond

// MaxSlots is the highest number of unfinished deliveries of one Consume.
const MaxSlots = 16384

// Bus carries messages. All methods are safe for concurrent use.
type Bus interface {
	// Ensure makes sure that streams and consumers exist as configured. It is
	// idempotent, called at start and after loss (T5).
	Ensure(ctx context.Context) error

	// Send hands msgs over, in order, without waiting for their PubAcks. done
	// may be nil; else it is called once for every message with its outcome (nil:
	// the bus has it), from another goroutine, or from within Send where the message
	// is handed over in this process, in any order, also for messages
	// that were not handed over because Send returned an error. It must not
	// block. The number of messages in flight is bounded; Send blocks while it
	// is reached (T11) and returns ctx's error when ctx ends first. Send reads
	// msgs until it returns; bodies until done.
	Send(ctx context.Context, msgs []Message, done func(i int, err error)) error

	// Consume pulls from one destination until ctx ends, and then returns nil.
	// There are never more unfinished deliveries than slots (1 to MaxSlots); a
	// delivery keeps its slot until it is finished, past its ack wait too, and
	// the same message may then be delivered beside it. handle is called
	// sequentially, from one goroutine, and may block. Consume rebinds by itself
	// after any outage, deletion of stream or consumer, or server restart (T5);
	// it returns an error only for a destination that can never be consumed or a
	// closed bus. Deliveries that were pulled and not handled when ctx ends are
	// handed back. Deliveries still unfinished then may be finished later, as
	// long as the bus is open.
	Consume(ctx context.Context, from Destination, slots int, handle func(Delivery)) error

	// Oldest is the PublishedAt of the oldest message for d that is still in its
	// stream, undelivered or unfinished: T2's look before a re-send. found is
	// false when there is none. A message without PublishedAt gives 0 and true.
	// What was finished does not count, even if the server still has it.
	Oldest(ctx context.Context, d Destination) (publishedAt int64, found bool, err error)

	// Tell says that the jobs have ended to those who Listen for them, in whatever
	// process (W5). It is a hint, which may be lost, and nobody waits for it; where
	// nobody listens it ends at once.
	Tell(jobs ...[16]byte)

	// Listen calls told when it is told that the job has ended, until stop is
	// called; it may be called more often than that. What another process tells
	// while Listen is called may be lost. told is called from any goroutine, also
	// from within Tell, and must not block. stop is idempotent. The error is
	// ErrClosed or wraps ErrUnavailable.
	Listen(job [16]byte, told func()) (stop func(), err error)

	// MaxPayload is the largest message in bytes, headers included (T4).
	MaxPayload() int

	// Connected says whether the servers are reachable now. It is a hint: what is
	// sent while they are not is sent again by its row.
	Connected() bool

	// Close ends the bus: running Consume calls return ErrClosed, outstanding
	// sends get their outcome or ErrClosed, nobody is told any more. It is
	// idempotent.
	Close() error
}
