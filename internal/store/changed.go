package store

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/quipu-journal/quipu/internal/keyring"
	"github.com/quipu-journal/quipu/journal"
)

// ChangedError is an ErrRejected that says that stored bytes are not those that were written
// (S9). The job that reads them is quarantined.
type ChangedError struct {
	Row string // names the row: its table and its key
	Why string
}

// Error names the row.
func (e *ChangedError) Error() string {
	return "stored bytes are not what was written: " + e.Row + ": " + e.Why
}

// Is makes it an ErrRejected.
func (e *ChangedError) Is(target error) bool { return target == ErrRejected }

// SamePayload checks an output that was read by its digest (E6, S9); nil stands for a row that
// is not there. Error: *ChangedError.
func SamePayload(job journal.JobID, digest journal.Digest, body []byte) error {
	row := fmt.Sprintf("payloads of job %s, digest %s", job, digest)
	if body == nil {
		return &ChangedError{row, "it is not stored, and a response names it"}
	}
	if sum := journal.Digest(sha256.Sum256(body)); sum != digest {
		return &ChangedError{row, fmt.Sprintf("what is stored has the SHA-256 %s", sum)}
	}
	return nil
}

// SameFlow checks the definition that was read of a flow version against the digest that a job,
// or a start, carries (S9). Error: *ChangedError.
func SameFlow(ref journal.FlowRef, definition []byte) error {
	if sum := journal.Digest(sha256.Sum256(definition)); sum != ref.Digest {
		return &ChangedError{
			fmt.Sprintf("flows, name %s, version %s", ref.Name, ref.Version),
			fmt.Sprintf("its definition has the SHA-256 %s, and not %s", sum, ref.Digest),
		}
	}
	return nil
}

// Sealer makes and checks the MACs of entries whose results are read again at run time (S9);
// keyring.Keeper is one. Its keys are those of the space's engines (S1), so that who can write the
// tables can make a hash, but no MAC. It is safe for concurrent use.
type Sealer interface {
	// SignEntry returns the MAC of a text, keyring.EntryMACBytes; nil: this process has no key.
	SignEntry(text ...[]byte) []byte
	// CheckEntry returns nil, keyring.ErrForged, or keyring.ErrNoKey or keyring.ErrStale where it
	// cannot tell.
	CheckEntry(mac []byte, text ...[]byte) error
}

// entryPlace is what the MAC of an entry covers before its body. The space is in the key.
func entryPlace(job journal.JobID, chain journal.GUID, seq int64) []byte {
	place := make([]byte, 0, len(job)+len(chain)+8)
	place = append(append(place, job[:]...), chain[:]...)
	return binary.BigEndian.AppendUint64(place, uint64(seq))
}

// Seal returns the MAC of an entry that is about to be written (S9).
func Seal(by Sealer, job journal.JobID, chain journal.GUID, seq int64, body []byte) []byte {
	return by.SignEntry(entryPlace(job, chain, seq), body)
}

// Sealed checks an entry that was read for its result (S9). It checks nothing where this process
// has no keys: by is nil, or has none. Errors: *ChangedError; ErrUnavailable where the keys have to
// be read first.
func Sealed(by Sealer, job journal.JobID, chain journal.GUID, seq int64, body, mac []byte) error {
	if by == nil {
		return nil
	}
	err := by.CheckEntry(mac, entryPlace(job, chain, seq), body)
	switch {
	case err == nil || errors.Is(err, keyring.ErrNoKey):
		return nil
	case errors.Is(err, keyring.ErrStale):
		return Unavailable(err.Error())
	}
	return &ChangedError{entryRow(job, chain, seq), err.Error()}
}

func entryRow(job journal.JobID, chain journal.GUID, seq int64) string {
	if chain.IsZero() {
		return fmt.Sprintf("entries of job %s, seq %d", job, seq)
	}
	return fmt.Sprintf("entries of job %s, chain %s, seq %d", job, chain, seq)
}
