package transport

import (
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/quipu-journal/quipu/internal/keyring"
	"github.com/quipu-journal/quipu/journal"
)

// Kind says which of the three queues of a space a message travels on (T5).
type Kind uint8

// The kinds of destination. The zero Kind is invalid, so that a forgotten destination is
// an error and not lane 0.
const (
	// Lane carries both legs, wake-ups and outcomes of the jobs hashed to it.
	Lane Kind = iota + 1
	// Start carries new jobs; it is pulled when the lanes leave room.
	Start
	// Work carries requests to workers, by topic.
	Work
)

// String is the kind's word in subjects and logs: lane, start, work.
func (k Kind) String() string {
	switch k {
	case Lane:
		return "lane"
	case Start:
		return "start"
	case Work:
		return "work"
	default:
		return "kind(" + strconv.Itoa(int(k)) + ")"
	}
}

// Limits of a message; Message.Validate checks them before a bus gets it.
const (
	// MaxTopic bounds a topic, in bytes.
	MaxTopic = 200
	// MaxLanes is the highest number of lanes of a space (T9).
	MaxLanes = 1024
	// MaxTraceparent bounds the traceparent header, in bytes (W3C: 55).
	MaxTraceparent = 128
)

// Destination is where a message goes: a lane, the start queue or a topic. It is
// comparable and may be a map key.
type Destination struct {
	Kind Kind
	// Lane is the lane's number, 0 ≤ Lane < MaxLanes; only with Kind Lane.
	Lane int
	// Topic is the worker topic, dot-separated tokens; only with Kind Work.
	Topic string
}

// ToLane is lane n.
func ToLane(n int) Destination { return Destination{Kind: Lane, Lane: n} }

// ToStart is the start queue.
func ToStart() Destination { return Destination{Kind: Start} }

// ToWork is the queue of a worker topic.
func ToWork(topic string) Destination { return Destination{Kind: Work, Topic: topic} }

// String is the destination as in a subject: "lane.3", "start", "work.payments.charge".
func (d Destination) String() string {
	return string(d.append(nil))
}

func (d Destination) append(b []byte) []byte {
	switch d.Kind {
	case Lane:
		return strconv.AppendInt(append(b, "lane."...), int64(d.Lane), 10)
	case Work:
		return append(append(b, "work."...), d.Topic...)
	default:
		return append(b, d.Kind.String()...)
	}
}

// Validate checks that the destination can be spelled as a subject. The error is
// permanent and wraps ErrInvalid.
func (d Destination) Validate() error {
	switch d.Kind {
	case Lane:
		if d.Lane < 0 || d.Lane >= MaxLanes || d.Topic != "" {
			return fmt.Errorf("%w: lane %d with topic %q: a lane is 0 to %d and has no topic", ErrInvalid, d.Lane, d.Topic, MaxLanes-1)
		}
	case Start:
		if d.Lane != 0 || d.Topic != "" {
			return fmt.Errorf("%w: the start queue has neither lane (%d) nor topic (%q)", ErrInvalid, d.Lane, d.Topic)
		}
	case Work:
		if d.Lane != 0 {
			return fmt.Errorf("%w: work.%s has lane %d: a topic has no lane", ErrInvalid, d.Topic, d.Lane)
		}
		return ValidateTopic(d.Topic)
	default:
		return fmt.Errorf("%w: destination of %s: take ToLane, ToStart or ToWork", ErrInvalid, d.Kind)
	}
	return nil
}

// ValidateTopic checks a worker topic: dot-separated non-empty tokens of
// letters, digits, '_' and '-', at most MaxTopic bytes. No wildcards, so that no
// topic's queue swallows another's. The error wraps ErrInvalid.
func ValidateTopic(topic string) error {
	if topic == "" || len(topic) > MaxTopic {
		return fmt.Errorf("%w: topic of %d bytes: 1 to %d are allowed", ErrInvalid, len(topic), MaxTopic)
	}
	for token := range strings.SplitSeq(topic, ".") {
		if token == "" {
			return fmt.Errorf("%w: topic %q has an empty token between dots", ErrInvalid, topic)
		}
		for i := range len(token) {
			if !topicByte(token[i]) {
				return fmt.Errorf("%w: topic %q: byte %q is not a letter, digit, '_' or '-'", ErrInvalid, topic, token[i])
			}
		}
	}
	return nil
}

func topicByte(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' || c == '-'
}

// Header is what a message says about itself (T7). With it the engine finds the dispatch
// row, and only the row decides.
type Header struct {
	// GUID is the dispatch row's id.
	GUID [16]byte
	// Publication counts how often the row was sent, from 1 (T2).
	Publication int
	// Turn is the turn of the row that this publication carries (T1).
	Turn int
	// Epoch is the space's epoch; a message of another epoch is acked and counted (T4).
	Epoch int64
	// OriginSession and OriginSeq name the commit that caused the message: the committer's connection
	// and the number of its commit there (L1). Both are zero for external input (L8).
	OriginSession [16]byte
	OriginSeq     int64
	// PublishedAt is when the row was last published, by the database's clock, in
	// microseconds since the Unix epoch; 0 is unknown. T2's look compares it with the
	// row.
	PublishedAt int64
	// Traceparent is the W3C trace context; empty without one.
	Traceparent string
	// Topic is the topic for which a response speaks (S2); empty in every message of the
	// engine.
	Topic string
}

// Message is one message on its way. Body must not be changed after Send.
type Message struct {
	To     Destination
	Header Header
	// Body is JSON of package wire: a Hint for the engine, whose row has the payload, or
	// a Request with its input up to 256 KiB, else without it (T4).
	Body []byte
	// Holder is the holder of a request that is handed over in this process (W7); "" for
	// all other messages. It is not on the wire.
	Holder string
	// Kind is the kind of what Body has, for who counts messages; "": it is not counted. It is not on
	// the wire.
	Kind journal.MessageKind
	// ByBus says that the message must go by a server, because its sender gives up its
	// hold on the work once the message is sent. It is not on the wire.
	ByBus bool
	// mac is set by Sign.
	mac string
}

// ID is the Nats-Msg-Id: guid.epoch.publication (T2), and the MAC of a signed message. It
// contains the publication, so that a re-send, or the committing attempt after a failed
// one (L7), is never suppressed as a duplicate. With the MAC nobody without the key can
// suppress a message by publishing its id first (S1).
func (m *Message) ID() string {
	b := make([]byte, 0, 96)
	b = hex.AppendEncode(b, m.Header.GUID[:])
	b = append(b, '.')
	b = strconv.AppendInt(b, m.Header.Epoch, 10)
	b = append(b, '.')
	b = strconv.AppendInt(b, int64(m.Header.Publication), 10)
	if m.mac != "" {
		b = append(append(b, '.'), m.mac...)
	}
	return string(b)
}

// Validate checks destination, header and size; maxPayload ≤ 0 means no limit.
// Errors are permanent and wrap ErrInvalid or ErrTooLarge.
func (m *Message) Validate(maxPayload int) error {
	if err := m.To.Validate(); err != nil {
		return err
	}
	if m.Header.GUID == [16]byte{} {
		return fmt.Errorf("%w: message to %s without a GUID", ErrInvalid, m.To)
	}
	if m.Header.Publication < 0 || m.Header.Turn < 0 || m.Header.Epoch < 0 || m.Header.OriginSeq < 0 ||
		m.Header.PublishedAt < 0 {
		return fmt.Errorf("%w: message %s to %s has a negative number in its header", ErrInvalid, m.ID(), m.To)
	}
	if len(m.Header.Traceparent) > MaxTraceparent || strings.ContainsAny(m.Header.Traceparent, "\r\n") {
		return fmt.Errorf("%w: message %s to %s: traceparent of %d bytes: one line of at most %d", ErrInvalid, m.ID(), m.To, len(m.Header.Traceparent), MaxTraceparent)
	}
	if size := len(m.Body) + HeaderSize(m); maxPayload > 0 && size > maxPayload {
		return fmt.Errorf("%w: message %s to %s has %d bytes with headers, the bus carries %d: send a reference instead of the input", ErrTooLarge, m.ID(), m.To, size, maxPayload)
	}
	return nil
}

// Errors of the port. A caller tests with errors.Is.
var (
	// ErrInvalid is a message or destination that can never be sent.
	ErrInvalid = errors.New("invalid message")
	// ErrTooLarge is a message over the bus's MaxPayload.
	ErrTooLarge = errors.New("message too large")
	// ErrClosed is a call on a closed Bus.
	ErrClosed = errors.New("bus is closed")
	// ErrFull is a stream at its byte limit: backpressure, the row waits (T5).
	ErrFull = errors.New("stream is full")
	// ErrUnavailable is a bus that did not answer: an outage, a lost stream, or no PubAck
	// in time. The message may have arrived; the row sends it again (T2).
	ErrUnavailable = errors.New("bus is unavailable")
	// ErrSilent is an ErrUnavailable: a server is connected, and no stream says anything about a
	// message in time, as when its disk takes no more.
	ErrSilent = fmt.Errorf("%w: no answer from the stream", ErrUnavailable)
	// ErrMalformed is a delivery whose headers cannot be read: write a dead letter, then
	// call Term (T3).
	ErrMalformed = errors.New("malformed message")
	// ErrForged is a delivery whose MAC does not hold: do nothing with it, count it, and
	// call Term (S2).
	ErrForged = keyring.ErrForged
	// ErrNoKey is a delivery that this process cannot check, or a message that it cannot
	// sign, because it has no key for the topic (S1): hand it back.
	ErrNoKey = keyring.ErrNoKey
	// ErrFinished is a second Ack, Nak or Term of one delivery.
	ErrFinished = errors.New("delivery is already finished")
)
