package transport

import (
	"encoding/hex"
	"fmt"
	"strconv"

	"github.com/quipu-journal/quipu/internal/keyring"
)

// Header names on the wire (T7). Names are exact: NATS header keys are
// case-sensitive.
const (
	HeaderMsgID         = "Nats-Msg-Id"
	HeaderGUID          = "Quipu-Guid"
	HeaderPublication   = "Quipu-Publication"
	HeaderTurn          = "Quipu-Turn"
	HeaderEpoch         = "Quipu-Epoch"
	HeaderOriginSession = "Quipu-Origin-Session"
	HeaderOriginSeq     = "Quipu-Origin-Seq"
	HeaderPublishedAt   = "Quipu-Published-At"
	HeaderTraceparent   = "traceparent"
	HeaderTopic         = "Quipu-Topic"
	HeaderMAC           = "Quipu-Mac"
)

// EncodeHeader calls set once per wire header of m, including Nats-Msg-Id and the MAC, or
// the sum of a message that was not signed. It leaves out an unknown origin, publishing
// time, trace or topic.
func EncodeHeader(m *Message, set func(name, value string)) {
	encodeFields(m, set)
	if m.mac != "" {
		set(HeaderMAC, m.mac)
	} else {
		set(HeaderSum, sum(m))
	}
}

func encodeFields(m *Message, set func(name, value string)) {
	h := &m.Header
	set(HeaderMsgID, m.ID())
	set(HeaderGUID, hex.EncodeToString(h.GUID[:]))
	set(HeaderPublication, strconv.Itoa(h.Publication))
	set(HeaderTurn, strconv.Itoa(h.Turn))
	set(HeaderEpoch, strconv.FormatInt(h.Epoch, 10))
	if h.OriginSession != [16]byte{} {
		set(HeaderOriginSession, hex.EncodeToString(h.OriginSession[:]))
		set(HeaderOriginSeq, strconv.FormatInt(h.OriginSeq, 10))
	}
	if h.PublishedAt != 0 {
		set(HeaderPublishedAt, strconv.FormatInt(h.PublishedAt, 10))
	}
	if h.Traceparent != "" {
		set(HeaderTraceparent, h.Traceparent)
	}
	if h.Topic != "" {
		set(HeaderTopic, h.Topic)
	}
}

// maxMAC is the size of the longest MAC: an id of four digits and 16 bytes in hexadecimal.
const maxMAC = 4 + 1 + 2*keyring.MACBytes

// HeaderSize bounds the number of bytes of m's headers on the wire, which max_payload
// counts in addition to the body. It has room for a MAC in the header and in the id.
func HeaderSize(m *Message) int {
	const version, line, end = len("NATS/1.0\r\n"), len(": \r\n"), len("\r\n")
	idMAC := 1 + maxMAC // of the id
	if m.mac != "" {
		idMAC = 0 // the id has it
	}
	size := version + end + len(HeaderMAC) + maxMAC + line + idMAC
	encodeFields(m, func(name, value string) { size += len(name) + len(value) + line })
	return size
}

// DecodeHeader reads the wire headers through get, which returns "" for a missing header.
// GUID is required; any other missing header is zero. A header that cannot be read is an
// error that wraps ErrMalformed and names it. Numbers are canonical decimals without sign
// and ids are 32 lower-case hex digits, so that one message has one spelling.
func DecodeHeader(get func(name string) string) (Header, error) {
	d := decoder{get: get}
	h := Header{
		GUID:          d.id(HeaderGUID, true),
		Publication:   int(d.number(HeaderPublication, maxInt32)),
		Turn:          int(d.number(HeaderTurn, maxInt32)),
		Epoch:         d.number(HeaderEpoch, maxInt64),
		OriginSession: d.id(HeaderOriginSession, false),
		OriginSeq:     d.number(HeaderOriginSeq, maxInt64),
		PublishedAt:   d.number(HeaderPublishedAt, maxInt64),
		Traceparent:   d.traceparent(),
		Topic:         d.topic(),
	}
	if d.err != nil {
		return Header{}, d.err
	}
	return h, nil
}

const (
	maxInt32 = 1<<31 - 1
	maxInt64 = 1<<63 - 1
	// maxShown bounds how much of a foreign value an error repeats, in bytes.
	maxShown = 64
)

// decoder keeps the first error, so that DecodeHeader reads as a list.
type decoder struct {
	get func(string) string
	err error
}

func (d *decoder) fail(name, value, want string) {
	if d.err == nil {
		d.err = fmt.Errorf("%w: header %s is %q: %s", ErrMalformed, name, value[:min(len(value), maxShown)], want)
	}
}

func (d *decoder) id(name string, required bool) (id [16]byte) {
	value := d.get(name)
	if value == "" && !required {
		return id
	}
	raw, err := hex.DecodeString(value)
	if err != nil || len(raw) != len(id) || hex.EncodeToString(raw) != value {
		d.fail(name, value, "want 32 lower-case hex digits")
		return id
	}
	id = [16]byte(raw)
	if id == [16]byte{} {
		d.fail(name, value, "the zero id names nothing")
	}
	return id
}

func (d *decoder) number(name string, limit int64) int64 {
	value := d.get(name)
	if value == "" {
		return 0
	}
	n, err := strconv.ParseInt(value, 10, 64)
	if err != nil || n < 0 || n > limit || strconv.FormatInt(n, 10) != value {
		d.fail(name, value, fmt.Sprintf("want a decimal number from 0 to %d", limit))
		return 0
	}
	return n
}

func (d *decoder) traceparent() string {
	value := d.get(HeaderTraceparent)
	if len(value) > MaxTraceparent {
		d.fail(HeaderTraceparent, value, fmt.Sprintf("want at most %d bytes", MaxTraceparent))
		return ""
	}
	return value
}

func (d *decoder) topic() string {
	value := d.get(HeaderTopic)
	if value != "" && ValidateTopic(value) != nil {
		d.fail(HeaderTopic, value, "want a topic")
		return ""
	}
	return value
}
