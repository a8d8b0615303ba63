package journal

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/quipu-journal/quipu/canonical"
)

// Errors of Decode. A reader never skips what it does not know (V16).
var (
	ErrUnknownVersion = errors.New("unknown entry version")
	ErrUnknownKind    = errors.New("unknown entry kind")
	ErrUnknownField   = errors.New("unknown entry field")
	ErrNotCanonical   = errors.New("entry is not canonical")
)

// Decode reads one body. It refuses unknown versions, kinds and fields, bodies
// over MaxEntryBytes, and every spelling but the one that Encode writes.
func Decode(body []byte) (*Entry, error) {
	e, err := decode(body, true)
	if err != nil {
		return nil, err
	}
	if !bytes.Equal(AppendEntry(make([]byte, 0, len(body)), e), body) {
		return nil, fmt.Errorf("%w: encoding it again gives other bytes", ErrNotCanonical)
	}
	return e, nil
}

// DecodeTrusted reads one body that the store wrote and whose hash was
// checked, without comparing spellings again: the engine's own reads (J2).
func DecodeTrusted(body []byte) (*Entry, error) { return decode(body, false) }

func decode(body []byte, strict bool) (*Entry, error) {
	if len(body) > MaxEntryBytes {
		return nil, fmt.Errorf("%w: body has %d bytes, the limit is %d", ErrNotCanonical, len(body), MaxEntryBytes)
	}
	c := &codec{in: canonical.Scan(body), mode: reading, strict: strict}
	e := &Entry{}
	object(c, e, entryFields)
	if err := c.end(); err != nil {
		return nil, err
	}
	switch {
	case c.version != Version:
		return nil, fmt.Errorf("%w %d: this build reads version %d", ErrUnknownVersion, c.version, Version)
	case !knownKinds[e.Kind]:
		return nil, fmt.Errorf("%w %.40q", ErrUnknownKind, e.Kind)
	}
	return e, nil
}

var knownKinds = map[Kind]bool{
	KindCreated: true, KindLeg1: true, KindLeg2: true, KindStale: true, KindSignal: true, KindInterrupt: true,
	KindEffectStarted: true, KindEffectCompleted: true, KindEffectFailed: true,
	KindDeadLetter: true, KindOperator: true, KindQuarantine: true, KindExpired: true,
}

// DecodeResponse reads what EncodeResponse wrote, and no other spelling.
// Payloads are not looked into: they are as canonical as they were.
func DecodeResponse(body []byte) (*Response, error) {
	c := &codec{in: canonical.Scan(body), mode: reading}
	s := &Response{}
	object(c, s, responseFields)
	if err := c.end(); err != nil {
		return nil, err
	}
	if !bytes.Equal(EncodeResponse(s), body) {
		return nil, fmt.Errorf("%w: encoding the response again gives other bytes", ErrNotCanonical)
	}
	return s, nil
}
