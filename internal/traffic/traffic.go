package traffic

import (
	"slices"
	"sync/atomic"

	"github.com/quipu-journal/quipu/journal"
)

// Way is what carried a message.
type Way int

// The ways.
const (
	JetStream Way = iota // it was published to NATS
	Memory               // it was handed over within the process
	Folded               // it was decided in the transaction that caused it
)

// String is the way's word in metrics.
func (w Way) String() string { return [...]string{"jetstream", "memory", "folded"}[w] }

// kinds are the messages that are counted, by their place in Counts.
var kinds = [...]journal.MessageKind{
	journal.MessageLeg1, journal.MessageRequest, journal.MessageResponse, journal.MessageAnswer, journal.MessageStart,
	journal.MessageOutcome, journal.MessageWakeUp, journal.MessageCycle, journal.MessageSignal,
	journal.MessageInterrupt,
}

// Counts are the messages of a process since it began. A nil *Counts counts nothing. It is safe for
// concurrent use.
type Counts struct {
	n [len(kinds)][Folded + 1]atomic.Int64
}

// Add counts n messages. A kind that is none of a message on its way is not counted.
func (c *Counts) Add(kind journal.MessageKind, way Way, n int64) {
	if c == nil || n == 0 {
		return
	}
	if at := slices.Index(kinds[:], kind); at >= 0 {
		c.n[at][way].Add(n)
	}
}

// Each calls tell with each kind and way, also where there was no message yet.
func (c *Counts) Each(tell func(kind journal.MessageKind, way Way, n int64)) {
	for at := range c.n {
		for way := range c.n[at] {
			tell(kinds[at], Way(way), c.n[at][way].Load())
		}
	}
}
