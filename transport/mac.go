package transport

import (
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
	"sync"
)

// Keys make and check the MACs of messages (S1); a keyring.Ring is one. topic is that of
// the key, and "" is the engine's key.
type Keys interface {
	// Sign returns the MAC of the text, "" in a space without MACs. The error is ErrNoKey.
	Sign(topic string, text ...[]byte) (mac string, err error)
	// Check returns nil, ErrForged or ErrNoKey.
	Check(topic, mac string, text ...[]byte) error
}

// signed are the headers that a MAC covers, in this order.
var signed = [...]string{
	HeaderTopic, HeaderGUID, HeaderPublication, HeaderTurn, HeaderEpoch,
	HeaderOriginSession, HeaderOriginSeq, HeaderPublishedAt, HeaderTraceparent,
}

// Sign gives the message its MAC under the key of who sends it: a request's and a
// response's topic, else the engine. The message must not be changed afterwards. The error
// wraps ErrNoKey.
func (m *Message) Sign(keys Keys) error {
	if keys == nil {
		return nil
	}
	m.mac = ""
	t := texts.Get().(*text) //nolint:forcetypeassert // New makes nothing else
	defer t.done()
	t.head = m.appendCovered(t.head[:0])
	mac, err := keys.Sign(m.signer(), t.with(m.Body)...)
	if err != nil {
		return fmt.Errorf("message to %s: %w", m.To, err)
	}
	m.mac = mac
	return nil
}

// signer is the topic whose key signs the message.
func (m *Message) signer() string {
	if m.To.Kind == Work {
		return m.To.Topic
	}
	return m.Header.Topic
}

// authentic checks the MAC of a delivery before anything else of it is read.
func authentic(from Destination, get func(name string) string, body []byte, keys Keys) error {
	if keys == nil {
		return nil
	}
	by := get(HeaderTopic)
	switch {
	case from.Kind == Work:
		by = from.Topic
	case by != "" && ValidateTopic(by) != nil:
		return fmt.Errorf("message from %s: %w: its topic is none", from, ErrForged)
	}
	t := texts.Get().(*text) //nolint:forcetypeassert // New makes nothing else
	defer t.done()
	t.head = appendDelivered(t.head[:0], from, get)
	if err := keys.Check(by, get(HeaderMAC), t.with(body)...); err != nil {
		return fmt.Errorf("message from %s: %w", from, err)
	}
	return nil
}

// text is room for what a MAC covers, which is used again: head comes before the body.
type text struct {
	head  []byte
	parts [2][]byte
}

var texts = sync.Pool{New: func() any { return &text{head: make([]byte, 0, 512)} }}

func (t *text) with(body []byte) [][]byte {
	t.parts = [2][]byte{t.head, body}
	return t.parts[:]
}

func (t *text) done() {
	t.parts = [2][]byte{} // it keeps no body
	if cap(t.head) <= maxHead {
		texts.Put(t)
	}
}

// maxHead bounds the room that is kept: a stranger chooses how long the headers of a delivery are.
const maxHead = 4 << 10

// appendDelivered appends the text that a MAC covers before the body: the destination and the
// values of the headers in signed, each with a line feed, which no value contains. A missing
// header is an empty line. Spaces around a value do not count, because NATS drops them.
func appendDelivered(b []byte, from Destination, get func(name string) string) []byte {
	b = append(from.append(b), '\n')
	for _, name := range signed {
		b = append(append(b, strings.TrimSpace(get(name))...), '\n')
	}
	return b
}

// appendCovered appends the same text of a message that is to be sent, without its headers.
func (m *Message) appendCovered(b []byte) []byte {
	h := &m.Header
	b = append(m.To.append(b), '\n')
	b = append(append(b, strings.TrimSpace(h.Topic)...), '\n')
	b = append(hex.AppendEncode(b, h.GUID[:]), '\n')
	b = append(strconv.AppendInt(b, int64(h.Publication), 10), '\n')
	b = append(strconv.AppendInt(b, int64(h.Turn), 10), '\n')
	b = append(strconv.AppendInt(b, h.Epoch, 10), '\n')
	if h.OriginSession != [16]byte{} {
		b = append(hex.AppendEncode(b, h.OriginSession[:]), '\n')
		b = append(strconv.AppendInt(b, h.OriginSeq, 10), '\n')
	} else {
		b = append(b, "\n\n"...)
	}
	if h.PublishedAt != 0 {
		b = strconv.AppendInt(b, h.PublishedAt, 10)
	}
	b = append(b, '\n')
	return append(append(b, strings.TrimSpace(h.Traceparent)...), '\n')
}
