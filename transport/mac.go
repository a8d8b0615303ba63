package transport

import (
	"fmt"
	"slices"
	"strings"
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
	var values [len(signed)]string
	encodeFields(m, func(name, value string) {
		if i := slices.Index(signed[:], name); i >= 0 {
			values[i] = value
		}
	})
	text := covered(m.To, func(name string) string { return values[slices.Index(signed[:], name)] })
	mac, err := keys.Sign(m.signer(), text, m.Body)
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
	if err := keys.Check(by, get(HeaderMAC), covered(from, get), body); err != nil {
		return fmt.Errorf("message from %s: %w", from, err)
	}
	return nil
}

// covered is the text that a MAC covers before the body: the destination and the values of
// the headers in signed, each with a line feed, which no value contains. A missing header
// is an empty line. Spaces around a value do not count, because NATS drops them.
func covered(to Destination, get func(name string) string) []byte {
	b := make([]byte, 0, 256)
	b = append(append(b, to.String()...), '\n')
	for _, name := range signed {
		b = append(append(b, strings.TrimSpace(get(name))...), '\n')
	}
	return b
}
