package replay

import (
	"fmt"

	"github.com/quipu-journal/quipu/journal"
)

// SpaceChecks are the checks of a space's own chain, which are those of the jobs' chains that it
// can break (S7).
var SpaceChecks = []Check{V1, V2, V3, V16}

// SpaceChain is the chain of a space as it is stored.
type SpaceChain struct {
	Name    string
	ID      journal.GUID
	Head    journal.Head     // of the space's row
	Entries []journal.Record // by seq
}

// SpaceReport is what VerifySpace found out.
type SpaceReport struct {
	Head    journal.Head // as read
	Entries int
	Checks  []Result // one for each of SpaceChecks, in that order
}

// Violated reports whether any check is violated.
func (r *SpaceReport) Violated() bool {
	for _, c := range r.Checks {
		if c.Status == Violated {
			return true
		}
	}
	return false
}

// VerifySpace checks the chain of a space (S7): the seqs, hashes, head and form of its entries. It
// reports the first violation of each check.
func VerifySpace(c *SpaceChain) *SpaceReport {
	r := &SpaceReport{Head: journal.Head{Hash: journal.SpaceGenesis(c.Name, c.ID)}, Entries: len(c.Entries)}
	for _, check := range SpaceChecks {
		r.Checks = append(r.Checks, Result{Check: check, Status: Proved})
	}
	for i := range c.Entries {
		r.link(&c.Entries[i])
	}
	if r.Head.Seq != c.Head.Seq || c.Head.Seq > 0 && r.Head.Hash != c.Head.Hash {
		r.violate(V3, 0, "the space's row says head %d %s, the last entry is %d %s", c.Head.Seq, c.Head.Hash, r.Head.Seq, r.Head.Hash)
	}
	return r
}

func (r *SpaceReport) link(rec *journal.Record) {
	if rec.Seq != r.Head.Seq+1 {
		r.violate(V1, rec.Seq, "entry %d follows entry %d", rec.Seq, r.Head.Seq)
	} else if want := journal.Next(r.Head.Hash, rec.Body); want != rec.Hash {
		r.violate(V2, rec.Seq, "the hash of entry %d is %s, its body and predecessor give %s", rec.Seq, rec.Hash, want)
	}
	if _, err := journal.DecodeSpace(rec.Body); err != nil {
		r.violate(V16, rec.Seq, "%v", err)
	}
	r.Head = journal.Head{Seq: rec.Seq, Hash: rec.Hash}
}

func (r *SpaceReport) violate(check Check, seq int64, format string, args ...any) {
	for i := range r.Checks {
		if c := &r.Checks[i]; c.Check == check && c.Status != Violated {
			c.Status, c.Violation = Violated, &Violation{Check: check, Seq: seq, Message: fmt.Sprintf(format, args...)}
		}
	}
}
