package store

import (
	"crypto/sha256"
	"fmt"

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

// Sealer makes and checks the MACs of entries whose results are read again at run time (S9). Its
// keys are those of the space's engines (S1), so that who can write the tables can make a hash,
// but no MAC. It is safe for concurrent use.
type Sealer interface {
	// Sum returns the MAC of an entry with the id of its key, at most MaxMAC bytes. nil: this
	// process has no key; its entries then count as changed for those that have one.
	Sum(job journal.JobID, chain journal.GUID, seq int64, body []byte) []byte
	// Holds reports whether mac, nil for none, is a MAC of the entry under any key of the space.
	Holds(job journal.JobID, chain journal.GUID, seq int64, body, mac []byte) bool
}

// MaxMAC bounds the MAC of an entry, with the id of its key, in bytes.
const MaxMAC = 64

// Sealed checks an entry that was read for its result (S9). A nil sealer checks nothing: the
// space, or this process, has no keys. Error: *ChangedError.
func Sealed(by Sealer, job journal.JobID, chain journal.GUID, seq int64, body, mac []byte) error {
	switch {
	case by == nil || by.Holds(job, chain, seq, body, mac):
		return nil
	case mac == nil:
		return &ChangedError{entryRow(job, chain, seq), "it has no MAC"}
	}
	return &ChangedError{entryRow(job, chain, seq), "its MAC does not hold"}
}

func entryRow(job journal.JobID, chain journal.GUID, seq int64) string {
	if chain.IsZero() {
		return fmt.Sprintf("entries of job %s, seq %d", job, seq)
	}
	return fmt.Sprintf("entries of job %s, chain %s, seq %d", job, chain, seq)
}
