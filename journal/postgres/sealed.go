package postgres

import (
	bin "encoding/binary"
	"fmt"
	"strings"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/internal/store"
	"github.com/quipu-journal/quipu/journal"
)

// sealedText is an entry of the alias as sealed reads it: its seq, the length of its MAC, the MAC
// and the body. A subquery gives one column, so that it is looked up once.
const sealedText = `int8send(%[1]s.seq) || set_byte('\x00', 0, coalesce(octet_length(%[1]s.mac), 0)) || coalesce(%[1]s.mac, '') || %[1]s.body`

// sealedHead is the length of what comes before the MAC.
const sealedHead = 9

// Seal lets the store give entries of main chains their MACs, and check those of entries whose
// results are read (S9). The keys are in the database, so it is called after Open, and before
// anything is committed or read.
func (s *Store) Seal(by store.Sealer) { s.seal.Store(&by) }

// sealer is what Seal set; nil before.
func (s *Store) sealer() store.Sealer {
	if by := s.seal.Load(); by != nil {
		return *by
	}
	return nil
}

// sealed reads an entry of a main chain for its result, and checks its MAC (S9):
// *store.ChangedError, errCorrupt.
func (s *Store) sealed(job journal.JobID, b []byte) (*journal.Entry, error) {
	seq, n := int64(bin.BigEndian.Uint64(b)), int(b[sealedHead-1])
	body := b[sealedHead+n:]
	var mac []byte
	if n > 0 {
		mac = b[sealedHead : sealedHead+n]
	}
	if err := store.Sealed(s.sealer(), job, journal.MainChain, seq, body, mac); err != nil {
		return nil, err
	}
	return decode(job, body)
}

// holds checks that an entry holds a result of the place whose row points to it (S9):
// *store.ChangedError. An entry names the address of the instance, and a pass has an index.
func (p *place) holds(e *journal.Entry) error {
	activity, _, _ := strings.Cut(p.key.Activity, "[")
	at := collation.DAD(e.DAD)
	if e.Activity == activity && (p.key.DAD == "" || p.key.DAD == at || p.key.DAD.Base() == at) {
		return nil
	}
	return &store.ChangedError{
		Row: fmt.Sprintf("instances of job %s, activity %s, address %s", p.job, p.key.Activity, p.key.DAD),
		Why: fmt.Sprintf("it points to the result of %s at %s", e.Activity, e.DAD),
	}
}

// merge joins the plans of one batch, and gives the entries of main chains their MACs.
func (s *Store) merge(plans []store.Chained) (*writes, error) {
	w, err := merge(plans)
	by := s.sealer()
	if err != nil || by == nil {
		return w, err
	}
	for i := range w.entries {
		if e := &w.entries[i]; e.chain.IsZero() {
			e.mac = store.Seal(by, e.job, e.chain, e.seq, e.body)
		}
	}
	return w, nil
}
