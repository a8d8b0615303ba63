package postgres

import (
	"context"
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/internal/store"
	"github.com/quipu-journal/quipu/journal"
)

// FindJob returns the id of the job that has the key: store.ErrNotFound.
func (s *Store) FindJob(ctx context.Context, key string) (journal.JobID, error) {
	var state journal.JobState
	id, found, err := readOne(ctx, s, "job_by_key", func(v row) (journal.JobID, error) {
		state = journal.JobState(v.text(1))
		return v.job(0), nil
	}, pText(key))
	switch {
	case err != nil:
		return journal.JobID{}, err
	case !found:
		return journal.JobID{}, fmt.Errorf("%w: no job has the key %.200q in space %s", store.ErrNotFound, key, s.cfg.Space)
	case state == journal.JobExpired:
		return journal.JobID{}, fmt.Errorf("%w: the job with the key %.200q has expired: its journal was removed", store.ErrNotFound, key)
	}
	return id, nil
}

// Payload reads an output that is stored beside the journal: store.ErrNotFound,
// *store.ChangedError.
func (s *Store) Payload(ctx context.Context, id journal.JobID, digest journal.Digest) ([]byte, error) {
	job, sum := uuids(1), byteas(1)
	job.uuid(id)
	sum.bytes(digest[:])
	body, found, err := readOne(ctx, s, "load_payloads", func(v row) ([]byte, error) {
		return v.bytes(1), nil
	}, job.value(), sum.value())
	if err == nil && !found {
		err = fmt.Errorf("%w: job %s has no output %s stored", store.ErrNotFound, id, digest)
	}
	if err == nil {
		err = store.SamePayload(id, digest, body)
	}
	if err != nil {
		return nil, err
	}
	return body, nil
}

// Job reads a job with its instances and open rows from one snapshot: store.ErrNotFound.
func (s *Store) Job(ctx context.Context, id journal.JobID) (*store.JobView, error) {
	var view *store.JobView
	err := s.look(ctx, "job", func(c *conn) error {
		view = nil
		arg := [][]byte{pUUID(id)}
		x := &store.JobView{}
		return c.snapshot(ctx,
			step{"job_view", arg, func(v row) error { view = x; return s.readView(v, x) }},
			step{"view_instances", [][]byte{arg[0], pBool(false)}, func(v row) error {
				key := collation.InstanceKey{Activity: v.text(0), DAD: collation.DAD(v.text(1))}
				x.Instances = append(x.Instances, store.InstanceView{Key: key, Instance: *readInstance(v[2:])})
				return nil
			}},
			step{"view_rows", arg, func(v row) error {
				r, err := readRow(v)
				if err == nil {
					x.Rows = append(x.Rows, *r)
				}
				return err
			}},
			step{"audit_waits", arg, func(v row) error { x.Waits = append(x.Waits, *readWait(v)); return nil }},
			step{"letters_of_jobs", [][]byte{pUUIDs([]journal.JobID{id}), pBool(true), pInt(math.MaxInt64)}, into(&x.Dead, readLetter)},
		)
	})
	switch {
	case err != nil:
		return nil, err
	case view == nil:
		return nil, fmt.Errorf("%w: job %s", store.ErrNotFound, id)
	case view.State == journal.JobExpired: // a tombstone: its history is being removed
		return &store.JobView{JobSummary: view.JobSummary, Ended: true}, nil
	}
	slices.Reverse(view.Dead) // the oldest first
	return view, nil
}

func (s *Store) readView(v row, x *store.JobView) error {
	x.JobSummary = s.readSummary(v)
	x.Ended, x.Next = v.bool(jobWidth+1), v.job(jobWidth+5)
	x.ExpiresAt = collation.Micros(v.int(jobWidth + 2))
	end, closed, err := s.readEnd(x.ID, v, jobWidth+3)
	x.Code, x.Error, x.Output = end.Code, end.Error, end.Output
	if closed != 0 && x.State != journal.JobExpired { // of a tombstone only the row is shown
		x.Closed = closed // as the journal tells it; the row has when it was written
	}
	return err
}

// readEnd reads how a job ended from the entry that closed it, in column i, and the one that ran its
// completion tasks, in the next, which has the output. closed is the time of the first; 0: there is none.
func (s *Store) readEnd(id journal.JobID, v row, i int) (end journal.Close, closed collation.Micros, err error) {
	for at := i; at <= i+1; at++ {
		if v.null(at) {
			continue
		}
		e, err := s.sealed(id, v.bytes(at))
		if err != nil {
			return end, 0, err
		}
		if e.Close == nil {
			continue
		}
		if at == i {
			end, closed = *e.Close, collation.Micros(e.Time)
		}
		end.Output = e.Close.Output
	}
	return end, closed, nil
}

func (s *Store) readSummary(v row) store.JobSummary {
	j := store.JobSummary{Job: s.readJob(v), Closed: collation.Micros(v.int(jobWidth))}
	j.Cursor = spot{j.Started, j.ID}.cursor()
	return j
}

// Counts counts the jobs by state, without those that another has resumed.
func (s *Store) Counts(ctx context.Context) (map[journal.JobState]int64, error) {
	counts := map[journal.JobState]int64{}
	err := s.look(ctx, "counts", func(c *conn) error {
		clear(counts)
		return c.snapshot(ctx, step{"scan", nil, nil}, step{"job_counts", nil, func(v row) error {
			counts[journal.JobState(v.text(0))] = v.int(1)
			return nil
		}})
	})
	return counts, err
}

// Ended says of each job whether it has ended, completion tasks included, or is quarantined.
func (s *Store) Ended(ctx context.Context, ids []journal.JobID) (map[journal.JobID]bool, error) {
	ended := make(map[journal.JobID]bool, len(ids))
	err := s.query(ctx, "jobs_ended", nil, func(v row) error { ended[v.job(0)] = v.bool(1); return nil }, pUUIDs(ids))
	return ended, err
}

// Outcomes says how jobs ended, at most store.MaxOutcomes at a time.
func (s *Store) Outcomes(ctx context.Context, ids []journal.JobID) (map[journal.JobID]store.Outcome, error) {
	if err := store.AtMost("outcomes", len(ids), store.MaxOutcomes); err != nil {
		return nil, err
	}
	outcomes := make(map[journal.JobID]store.Outcome, len(ids))
	span := s.numbers.span(ids)
	var moved []journal.JobID // whose numbers were old
	err := s.query(ctx, "jobs_outcome", nil, func(v row) error {
		id, o := v.job(0), store.Outcome{Key: v.text(1), State: journal.JobState(v.text(2)), Ended: v.bool(3)}
		n := v.int(6)
		if s.numbers.set(id, n); !span.holds(noJobs.with(n)) {
			moved = append(moved, id)
			return nil
		}
		if o.State != journal.JobExpired { // a tombstone shows nothing of its history
			end, _, err := s.readEnd(id, v, 4)
			if err != nil {
				return err
			}
			o.Code, o.Error, o.Output = end.Code, end.Error, end.Output
		}
		outcomes[id] = o
		return nil
	}, append([][]byte{pUUIDs(ids)}, span.ends()...)...)
	if err == nil && len(moved) > 0 {
		more, failed := s.Outcomes(ctx, moved)
		maps.Copy(outcomes, more)
		err = failed
	}
	return outcomes, err
}

// DeadLetters implements store.Client.
func (s *Store) DeadLetters(ctx context.Context, f store.DeadFilter) ([]store.DeadView, error) {
	if err := f.Check(); err != nil {
		return nil, err
	}
	if f.Before <= 0 {
		f.Before = math.MaxInt64
	}
	if f.To == 0 {
		f.To = math.MaxInt64
	}
	name, params := "letters", [][]byte{
		pBool(f.All), pText(f.Flow), pText(f.Topic), pText(f.Reason), pInt(f.Before), pInt(int64(f.Limit)),
		pText(f.Prefix), pInt(int64(f.From)), pInt(int64(f.To)),
	}
	if len(f.Jobs) > 0 {
		name, params = "letters_of_jobs", [][]byte{pUUIDs(f.Jobs), pBool(f.All), pInt(int64(f.Limit))}
	}
	return readAll(ctx, s, name, readLetter, params...)
}

func readLetter(v row) (store.DeadView, error) {
	return store.DeadView{
		ID: v.int(0), At: collation.Micros(v.int(9)), State: v.text(10), Key: v.text(11), Flow: v.text(12),
		Topic: v.text(13),
		Letter: collation.DeadLetter{
			Job: v.job(1), Row: v.guid(2), Kind: journal.MessageKind(v.text(3)), Activity: v.text(4),
			DAD: collation.DAD(v.text(5)), Reason: v.text(6), Message: v.text(7),
			Ledger: collation.ActivityLedger(v.int(8)),
		},
	}, nil
}
