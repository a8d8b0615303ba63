package memory

import (
	"bytes"
	"context"
	"fmt"
	"iter"
	"slices"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/journal/store"
)

// Space implements store.Reader.
func (s *Store) Space(context.Context) (string, error) { return s.cfg.Space, nil }

// AuditJobs implements store.Reader.
func (s *Store) AuditJobs(_ context.Context, only []journal.JobID) iter.Seq2[journal.JobID, error] {
	s.mu.Lock()
	defer s.mu.Unlock()
	ids := slices.DeleteFunc(sortedIDs(s.jobs), func(id journal.JobID) bool {
		return s.known(id) == nil || only != nil && !slices.Contains(only, id)
	})
	return func(yield func(journal.JobID, error) bool) {
		for _, id := range ids {
			if !yield(id, nil) {
				return
			}
		}
	}
}

// Audit implements store.Reader.
func (s *Store) Audit(
	_ context.Context, id journal.JobID, visit func(*store.Stored, iter.Seq2[journal.Record, error]) error,
) error {
	stored, records, err := s.snapshot(id)
	if err != nil {
		return err
	}
	return visit(stored, func(yield func(journal.Record, error) bool) {
		for _, r := range records {
			rec := r.Record
			rec.Body = slices.Clone(r.Body)
			if !yield(rec, nil) {
				return
			}
		}
	})
}

// snapshot copies what is stored of a job. It shares the records, which never change; a reader
// copies their bytes.
func (s *Store) snapshot(id journal.JobID) (*store.Stored, []*record, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	j := s.known(id)
	if j == nil {
		return nil, nil, fmt.Errorf("memory: audit job %s: %w", id, store.ErrNotFound)
	}
	out := s.tables(j)
	if d, err := s.version(j.Flow.Name, j.Flow.Version); err == nil {
		out.FlowDigest = d.ref.Digest
	}
	if j.State == journal.JobExpired {
		return out, nil, nil
	}
	out.Beside = s.beside(j)
	n := 0
	for _, chain := range j.chains {
		n += len(chain)
	}
	records := make([]*record, 0, n)
	for _, chain := range sortedIDs(j.chains) { // the main chain is the zero GUID: first
		records = append(records, j.chains[chain]...)
	}
	return out, records, nil
}

// beside yields what is stored beside the entries of a job. It shares the bytes, which never
// change.
func (s *Store) beside(j *job) iter.Seq2[journal.Beside, error] {
	var all []journal.Beside
	if d, err := s.version(j.Flow.Name, j.Flow.Version); err == nil {
		all = append(all, journal.Beside{Definition: true, Digest: d.ref.Digest, Body: d.canonical})
	}
	for digest, body := range j.payloads {
		all = append(all, journal.Beside{Digest: digest, Body: body})
	}
	slices.SortStableFunc(all, func(a, b journal.Beside) int {
		if a.Definition || b.Definition {
			return 0 // it comes first
		}
		return bytes.Compare(a.Digest[:], b.Digest[:])
	})
	return func(yield func(journal.Beside, error) bool) {
		for _, x := range all {
			if !yield(x, nil) {
				return
			}
		}
	}
}

// tables copies what the tables hold of a job; for a tombstone only its header.
func (s *Store) tables(j *job) *store.Stored {
	out := &store.Stored{
		Job: j.Job, Next: j.next, Instances: make(map[collation.InstanceKey]collation.Instance, len(j.instances)), Waits: make(map[journal.GUID]collation.Wait, len(j.waits)),
		Receipts: make(map[journal.GUID]store.StoredReceipt, len(j.receipts)),
		Rows:     make(map[journal.GUID]collation.Row, len(s.rows[j.ID])), ResolvedWaits: make(map[journal.GUID]collation.ResolvedWait, len(j.resolved)),
	}
	if j.State == journal.JobExpired {
		return out
	}
	for key, i := range j.instances {
		out.Instances[key] = *i
	}
	for g, w := range j.waits {
		out.Waits[g] = *w
	}
	for g, r := range j.receipts {
		out.Receipts[g] = store.StoredReceipt{Ledger: r.Ledger, Verdict: r.Verdict}
	}
	for g, r := range s.rows[j.ID] {
		out.Rows[g] = *copyRow(r)
	}
	for g, w := range j.resolved {
		out.ResolvedWaits[g] = *w
	}
	out.Effects = s.effectRows(j, func(*collation.Effect) bool { return true })
	return out
}
