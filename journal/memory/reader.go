package memory

import (
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
	ids := sortedIDs(s.jobs)
	if only != nil {
		ids = slices.DeleteFunc(ids, func(id journal.JobID) bool { return !slices.Contains(only, id) })
	}
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
			if !yield(r, nil) {
				return
			}
		}
	})
}

// snapshot copies what is stored of a job.
func (s *Store) snapshot(id journal.JobID) (*store.Stored, []journal.Record, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	j := s.jobs[id]
	if j == nil {
		return nil, nil, fmt.Errorf("memory: audit job %s: %w", id, store.ErrNotFound)
	}
	out := &store.Stored{
		Job: j.Job, Instances: map[collation.InstanceKey]collation.ActivityLedger{},
		Receipts: map[journal.GUID]store.StoredReceipt{}, Rows: map[journal.GUID]collation.Row{},
		Effects: j.effectRows(s.now(), func(*effect) bool { return true }),
	}
	for key, i := range j.instances {
		out.Instances[key] = i.Ledger
	}
	for g, r := range j.receipts {
		out.Receipts[g] = store.StoredReceipt{Ledger: r.Ledger, Verdict: r.Verdict}
	}
	for g, r := range j.rows {
		out.Rows[g] = *r
	}
	if d, err := s.version(j.Flow.Name, j.Flow.Version); err == nil {
		out.FlowDigest = d.ref.Digest
	}
	var records []journal.Record
	for _, chain := range sortedIDs(j.chains) { // the main chain is the zero GUID: first
		for _, r := range j.chains[chain] {
			r.Body = slices.Clone(r.Body)
			records = append(records, r)
		}
	}
	return out, records, nil
}
