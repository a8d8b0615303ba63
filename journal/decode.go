package journal

import (
	"bytes"
	"errors"
	"fmt"
	"strings"

	"github.com/quipu-journal/quipu/internal/canonical"
)

// Errors of Decode. A reader never skips what it does not know (V16).
var (
	ErrUnknownVersion = errors.New("unknown entry version")
	ErrUnknownKind    = errors.New("unknown entry kind")
	ErrUnknownField   = errors.New("unknown entry field")
	ErrNotCanonical   = errors.New("entry is not canonical")
)

// Decode reads the entry of a record. It refuses unknown versions, kinds and fields, bodies
// over MaxEntryBytes, and every spelling other than Encode's. Errors: ErrUnknownVersion,
// ErrUnknownKind, ErrUnknownField, ErrNotCanonical.
func Decode(r Record) (*Entry, error) {
	e, err := decode(&r, true)
	if err != nil {
		return nil, err
	}
	if !bytes.Equal(AppendEntry(make([]byte, 0, len(r.Body)), e), r.Body) {
		return nil, fmt.Errorf("%w: encoding it again gives other bytes", ErrNotCanonical)
	}
	return e, nil
}

// DecodeTrusted reads the entry of a record that the store wrote and whose hash was checked. It
// does not compare the spelling: for the engine's own reads (J2).
func DecodeTrusted(r Record) (*Entry, error) { return decode(&r, false) }

func decode(r *Record, strict bool) (*Entry, error) {
	if len(r.Body) > MaxEntryBytes {
		return nil, fmt.Errorf("%w: body has %d bytes, the limit is %d", ErrNotCanonical, len(r.Body), MaxEntryBytes)
	}
	c := &codec{in: canonical.Scan(r.Body), mode: reading, strict: strict}
	e := &Entry{Job: r.Job, Chain: r.Chain, Seq: r.Seq}
	object(c, e, entryFields)
	err := c.end()
	if err != nil {
		c.version = versionOf(r.Body)
	}
	switch _, known := kindCodes[e.Kind]; {
	case c.version != Version && (err == nil || c.version > 0):
		return nil, fmt.Errorf("%w %d: this build reads version %d", ErrUnknownVersion, c.version, Version)
	case err != nil:
		return nil, err
	case !known:
		return nil, fmt.Errorf("%w %.40q", ErrUnknownKind, strings.TrimPrefix(string(e.Kind), "?"))
	}
	return e, nil
}

// versionOf is the version that an unreadable body names; 0: none.
func versionOf(body []byte) int64 {
	in := canonical.Scan(body)
	version := int64(0)
	for in.Enter('{'); in.Next('}'); {
		if string(in.Key()) == "v" {
			version = in.Int()
		} else {
			in.Skip()
		}
	}
	if in.End() != nil {
		return 0
	}
	return version
}

// DecodeFrom reads what EncodeFrom wrote.
func DecodeFrom(body []byte) (*From, error) {
	c := &codec{in: canonical.Scan(body), mode: reading}
	f := &From{}
	object(c, f, fromFields)
	return f, c.end()
}

// DecodeResponse reads what EncodeResponse wrote, and no other spelling. It does not check
// payloads: they are as canonical as they were.
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
