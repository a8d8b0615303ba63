package memstore

import (
	"bytes"
	"context"
	"fmt"
	"iter"
	"maps"
	"slices"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/internal/store"
	"github.com/quipu-journal/quipu/journal"
)

// Space implements store.Reader.
func (s *Store) Space(context.Context) (string, error) { return s.cfg.Space, nil }

// AuditJobs implements store.Reader.
func (s *Store) AuditJobs(_ context.Context, only []journal.JobID) iter.Seq2[journal.JobID, error] {
	s.mu.Lock()
	defer s.mu.Unlock()
	return each(slices.DeleteFunc(sortedIDs(s.jobs), func(id journal.JobID) bool {
		return s.known(id) == nil || only != nil && !slices.Contains(only, id)
	}))
}

// each yields a list that was read without an error.
func each[T any](all []T) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		for _, x := range all {
			if !yield(x, nil) {
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
	for i := range records {
		records[i].Body = slices.Clone(records[i].Body)
	}
	return visit(stored, each(records))
}

// snapshot copies what is stored of a job. It shares the bytes, which never change.
func (s *Store) snapshot(id journal.JobID) (*store.Stored, []journal.Record, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	j := s.known(id)
	if j == nil {
		return nil, nil, fmt.Errorf("memory: audit job %s: %w", id, store.ErrNotFound)
	}
	out := &store.Stored{Job: j.Job, Next: j.next, ClosedAt: j.closedSeq, TasksAt: j.tasksSeq}
	if d, err := s.version(j.Flow.Name, j.Flow.Version); err == nil {
		out.FlowDigest = d.ref.Digest
	}
	if j.State == journal.JobExpired {
		if j.expires > s.now() {
			out.KnownExpiredAt = store.KnownExpiredAt(j.expires)
		}
		return out, nil, nil
	}
	out.Instances, out.Waits, out.ResolvedWaits = values(j.instances), values(j.waits), values(j.resolved)
	out.Receipts = make(map[journal.GUID]store.StoredReceipt, len(j.receipts))
	for g, r := range j.receipts {
		out.Receipts[g] = store.StoredReceipt{Ledger: r.Ledger, Verdict: r.Verdict}
	}
	out.Rows = make(map[journal.GUID]collation.Row, len(s.rows[id]))
	for g, r := range s.rows[id] {
		out.Rows[g] = *copyRow(r)
	}
	out.Effects = s.effectRows(j, func(*collation.Effect) bool { return true })
	out.Attachments = s.attachments(j)
	return out, j.records(), nil
}

func values[K comparable, V any](m map[K]*V) map[K]V {
	out := make(map[K]V, len(m))
	for k, v := range m {
		out[k] = *v
	}
	return out
}

// records are the entries of a job, the main chain first: it is the zero GUID.
func (j *job) records() (all []journal.Record) {
	for _, chain := range sortedIDs(j.chains) {
		for _, r := range j.chains[chain] {
			all = append(all, r.Record)
		}
	}
	return all
}

// attachments yields what is stored beside the entries of a job. It shares the bytes, which never
// change.
func (s *Store) attachments(j *job) iter.Seq2[journal.Attachment, error] {
	var all []journal.Attachment
	if d, err := s.version(j.Flow.Name, j.Flow.Version); err == nil {
		all = append(all, journal.Attachment{Definition: true, Digest: d.ref.Digest, Body: d.canonical})
	}
	byDigest := func(a, b journal.Digest) int { return bytes.Compare(a[:], b[:]) }
	for _, digest := range slices.SortedFunc(maps.Keys(j.payloads), byDigest) {
		all = append(all, journal.Attachment{Digest: digest, Body: j.payloads[digest]})
	}
	return each(all)
}
