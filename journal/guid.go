package journal

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
)

// GUID names one message, or one chain of effects, for ever (C8). It has the layout of a
// UUIDv8; package collation derives it.
type GUID [16]byte

// JobID names one job: one generation of one key in one space (C8). It equals
// the GUID of the job's start message.
type JobID [16]byte

// Digest is a SHA-256 digest.
type Digest [32]byte

// Sum is the first half of a SHA-256 digest. That is enough to prove what was sent, since
// nobody can find a second text with the same sum.
type Sum [16]byte

// Sums are concatenated sums.
type Sums []byte

// SumOf is the sum of bytes; zero if there are none.
func SumOf(b []byte) Sum {
	if len(b) == 0 {
		return Sum{}
	}
	sum := sha256.Sum256(b)
	return Sum(sum[:16])
}

// IsZero reports whether s is unset.
func (s Sum) IsZero() bool { return s == Sum{} }

// String returns 32 hexadecimal digits.
func (s Sum) String() string { return hex.EncodeToString(s[:]) }

// Len is the number of sums.
func (s Sums) Len() int { return len(s) / len(Sum{}) }

// At is the i-th sum, from 0; zero if there is none.
func (s Sums) At(i int) Sum {
	if i < 0 || i >= s.Len() {
		return Sum{}
	}
	return Sum(s[i*len(Sum{}):])
}

// Append appends one sum.
func (s Sums) Append(x Sum) Sums { return append(s, x[:]...) }

// ErrMalformedID is wrapped by the errors of ParseGUID, ParseJobID and ParseDigest.
var ErrMalformedID = errors.New("malformed identifier")

// String returns the 36-character UUID text.
func (g GUID) String() string { return uuidText(g) }

// IsZero reports whether g is unset.
func (g GUID) IsZero() bool { return g == GUID{} }

// String returns the 36-character UUID text.
func (j JobID) String() string { return uuidText(j) }

// IsZero reports whether j is unset.
func (j JobID) IsZero() bool { return j == JobID{} }

// Start returns the GUID of the job's start message.
func (j JobID) Start() GUID { return GUID(j) }

// String returns 64 hexadecimal digits.
func (d Digest) String() string { return hex.EncodeToString(d[:]) }

// IsZero reports whether d is unset.
func (d Digest) IsZero() bool { return d == Digest{} }

// ParseGUID reads the 36-character UUID text that String writes. Error: ErrMalformedID.
func ParseGUID(s string) (GUID, error) {
	b, err := parseUUID(s)
	return GUID(b), err
}

// ParseJobID reads the 36-character UUID text that String writes. Error: ErrMalformedID.
func ParseJobID(s string) (JobID, error) {
	b, err := parseUUID(s)
	return JobID(b), err
}

// ParseDigest reads 64 lower-case hexadecimal digits. Error: ErrMalformedID.
func ParseDigest(s string) (Digest, error) {
	var d Digest
	if len(s) != 2*len(d) {
		return d, badDigest(s)
	}
	for i := range d {
		hi, lo := nibbles[s[2*i]], nibbles[s[2*i+1]]
		if hi|lo > 15 {
			return d, badDigest(s)
		}
		d[i] = hi<<4 | lo
	}
	return d, nil
}

func badDigest(s string) error {
	return fmt.Errorf("%w: digest %.80q is not 64 lower-case hexadecimal digits", ErrMalformedID, s)
}

const uuidLen = 36

// uuidPlaces are the offsets of the bytes in the text of a UUID.
var uuidPlaces = [16]int{0, 2, 4, 6, 9, 11, 14, 16, 19, 21, 24, 26, 28, 30, 32, 34}

func uuidText(b [16]byte) string {
	text := [uuidLen]byte{8: '-', 13: '-', 18: '-', 23: '-'}
	for i, at := range uuidPlaces {
		text[at], text[at+1] = hexDigits[b[i]>>4], hexDigits[b[i]&15]
	}
	return string(text[:])
}

func parseUUID(s string) ([16]byte, error) {
	var b [16]byte
	if len(s) != uuidLen || s[8] != '-' || s[13] != '-' || s[18] != '-' || s[23] != '-' {
		return b, badUUID(s)
	}
	for i, at := range uuidPlaces {
		hi, lo := nibbles[s[at]], nibbles[s[at+1]]
		if hi|lo > 15 {
			return b, badUUID(s)
		}
		b[i] = hi<<4 | lo
	}
	return b, nil
}

func badUUID(s string) error {
	return fmt.Errorf("%w: %.50q is not a UUID of the form 8-4-4-4-12", ErrMalformedID, s)
}

const hexDigits = "0123456789abcdef"

// nibbles are the values of lower-case hexadecimal digits, 255 for all else. Identifiers have
// one spelling only, since entries are compared as bytes.
var nibbles = func() (values [256]byte) {
	for i := range values {
		values[i] = 255
	}
	for i := range hexDigits {
		values[hexDigits[i]] = byte(i)
	}
	return values
}()

// MarshalText writes the String.
func (g GUID) MarshalText() ([]byte, error) { return []byte(g.String()), nil }

// UnmarshalText reads it: ErrMalformedID.
func (g *GUID) UnmarshalText(text []byte) (err error) {
	*g, err = ParseGUID(string(text))
	return err
}

// MarshalText writes the String.
func (j JobID) MarshalText() ([]byte, error) { return []byte(j.String()), nil }

// UnmarshalText reads it: ErrMalformedID.
func (j *JobID) UnmarshalText(text []byte) (err error) {
	*j, err = ParseJobID(string(text))
	return err
}

// MarshalText writes the String.
func (d Digest) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// UnmarshalText reads it: ErrMalformedID.
func (d *Digest) UnmarshalText(text []byte) (err error) {
	*d, err = ParseDigest(string(text))
	return err
}
