package postgres

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/internal/store"
	"github.com/quipu-journal/quipu/journal"
)

// auditPage is the number of job ids that are read at once.
const auditPage = 1000

// errStop ends a stream whose reader has seen enough.
var errStop = errors.New("stop")

// Space returns the name of the space, as its schema has it.
func (s *Store) Space(ctx context.Context) (string, error) {
	name, _, err := readOne(ctx, s, "schema_version", func(v row) (string, error) { return v.text(1), nil })
	return name, err
}

// AuditJobs yields job ids in their order: the given ones, or all.
func (s *Store) AuditJobs(ctx context.Context, only []journal.JobID) iter.Seq2[journal.JobID, error] {
	return func(yield func(journal.JobID, error) bool) {
		var last journal.JobID
		name, params := "jobs_known", [][]byte{pUUIDs(only)}
		for {
			if len(only) == 0 {
				name, params = "jobs_after", [][]byte{pUUID(last), pInt(auditPage)}
			}
			page, err := readAll(ctx, s, name, func(v row) (journal.JobID, error) { return v.job(0), nil }, params...)
			if err != nil {
				yield(journal.JobID{}, err)
				return
			}
			for _, id := range page {
				if !yield(id, nil) {
					return
				}
			}
			if len(only) > 0 || len(page) < auditPage {
				return
			}
			last = page[len(page)-1]
		}
	}
}

// Audit reads a job from one snapshot and streams its entries, however many. The sequence can be
// read once, within visit.
func (s *Store) Audit(
	ctx context.Context, id journal.JobID, visit func(*store.Stored, iter.Seq2[journal.Record, error]) error,
) error {
	var visited error // the caller's own, not to be classified
	err := s.with(ctx, func(c *conn) error {
		defer abandon(ctx, c)
		stored, n, err := s.stored(ctx, c, id)
		switch {
		case err != nil:
			return err
		case stored.Job.State == journal.JobExpired: // a tombstone: its history is being removed
			visited = visit(stored, func(func(journal.Record, error) bool) {})
		default:
			stored.Attachments = c.attachments(ctx, &stored.Job.Flow, n)
			visited = visit(stored, c.records(ctx, id, n))
		}
		return nil
	})
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return classify("audit", err)
	}
	return errors.Join(err, visited)
}

// stored opens a snapshot, and reads in the same round trip what the tables hold besides the entries,
// and the number of the job; for a tombstone only its header.
func (s *Store) stored(ctx context.Context, c *conn, id journal.JobID) (_ *store.Stored, n int64, err error) {
	x := &store.Stored{
		Instances:     map[collation.InstanceKey]collation.Instance{},
		Waits:         map[journal.GUID]collation.Wait{},
		Receipts:      map[journal.GUID]store.StoredReceipt{},
		Rows:          map[journal.GUID]collation.Row{},
		ResolvedWaits: map[journal.GUID]collation.ResolvedWait{},
	}
	job := [][]byte{pUUID(id)}
	err = c.run(ctx, []step{
		{"begin_snapshot", nil, nil},
		{"audit_job", job, func(v row) error {
			x.Job, x.FlowDigest, x.Next, n = s.readJob(v), v.digest(jobWidth), v.job(jobWidth+1), v.int(jobWidth+2)
			x.ClosedAt, x.TasksAt = v.int(jobWidth+3), v.int(jobWidth+4)
			x.KnownExpiredAt = store.KnownExpiredAt(collation.Micros(v.int(jobWidth + 5)))
			return nil
		}},
		{"view_instances", [][]byte{pUUID(id), pBool(true)}, func(v row) error {
			x.Instances[collation.InstanceKey{
				Activity: v.text(0), DAD: collation.DAD(v.text(1)),
			}] = *readInstance(v[2:])
			return nil
		}},
		{"audit_waits", job, func(v row) error { w := readWait(v); x.Waits[w.GUID] = *w; return nil }},
		{"audit_resolved", job, func(v row) error {
			w := collation.ResolvedWait{Request: v.guid(0), GUID: v.guid(1), Seq: v.int(5)}
			w.PauseRef = journal.PauseRef{Kind: journal.PauseKind(v.text(2)), Name: v.text(3), Position: v.text(4)}
			x.ResolvedWaits[w.GUID] = w
			return nil
		}},
		{"audit_receipts", job, func(v row) error {
			x.Receipts[v.guid(0)] = store.StoredReceipt{
				Ledger: collation.GUIDLedger(v.int(1)), Verdict: journal.Verdict(v.text(2)),
			}
			return nil
		}},
		{"view_rows", job, func(v row) error {
			if v.job(1) != id {
				return nil // the start of a child, which has not begun
			}
			r, err := readRow(v)
			if err == nil {
				x.Rows[r.GUID] = *r
			}
			return err
		}},
		{"effects_of_job", job, into(&x.Effects, readEffect)},
	}...)
	switch {
	case err == nil && x.Job.ID.IsZero():
		err = fmt.Errorf("%w: job %s", store.ErrNotFound, id)
	case x.Job.State == journal.JobExpired: // its history is being removed
		clear(x.Instances)
		clear(x.Waits)
		clear(x.Receipts)
		clear(x.Rows)
		clear(x.ResolvedWaits)
		x.Effects = nil
	}
	return x, n, err
}

// beside streams the definition of a flow version and the outputs of a job, by its number.
func (c *conn) attachments(ctx context.Context, f *journal.FlowRef, n int64) iter.Seq2[journal.Attachment, error] {
	return func(yield func(journal.Attachment, error) bool) {
		read := func(name string, definition bool, params ...[]byte) error {
			return c.query(ctx, name, func(v row) error {
				if !yield(journal.Attachment{Definition: definition, Digest: v.digest(0), Body: v.bytes(1)}, nil) {
					return errStop
				}
				return nil
			}, params...)
		}
		err := read("flow_read", true, pText(f.Name), pText(f.Version))
		if err == nil {
			err = read("audit_payloads", false, pInt(n))
		}
		if err != nil && !errors.Is(err, errStop) {
			yield(journal.Attachment{}, classify("audit_payloads", err))
		}
	}
}

// records streams the entries of a job, by its number.
func (c *conn) records(ctx context.Context, id journal.JobID, n int64) iter.Seq2[journal.Record, error] {
	return func(yield func(journal.Record, error) bool) {
		err := c.query(ctx, "audit_entries", func(v row) error {
			r := journal.Record{Job: id, Chain: v.guid(0), Seq: v.int(1), Body: v.bytes(2), Hash: v.digest(3)}
			if !yield(r, nil) {
				return errStop
			}
			return nil
		}, pInt(n))
		if err != nil && !errors.Is(err, errStop) {
			yield(journal.Record{}, classify("audit_entries", err))
		}
	}
}
