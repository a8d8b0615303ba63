package look

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/quipu-journal/quipu"
	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/explain"
	"github.com/quipu-journal/quipu/history"
	"github.com/quipu-journal/quipu/internal/below"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/journal/store"
	"github.com/quipu-journal/quipu/replay"
)

// ErrPast says that a journal has no entry of that number.
var ErrPast = errors.New("the journal has no such entry")

// Reading is a job with its journal: as it stands, or as it stood at an entry.
type Reading struct {
	// Job is what explains its state. Of a state in the past only what entries tell is there: no
	// publications, leases and processes.
	Job *explain.Job
	// Head is the number of the last entry of the main chain.
	Head int64
	// At is the entry that the job is shown at, and Open what was to be done then; nil: it is shown
	// as it stands.
	At   *journal.Entry
	Open []replay.Open
	// Entries are those of the main chain, then those of the effect chains, each by seq; none is
	// later than At. Events are what they tell, in the order of time.
	Entries []*journal.Entry
	Events  []history.Event
	// Silent says why Entries and Events are not there; nil: they are.
	Silent error

	writers map[*journal.Entry]string
}

// Writer is the process that wrote an entry: an entry that does not say it has the writer of the
// one before it.
func (r *Reading) Writer(e *journal.Entry) string {
	if r.writers == nil {
		r.writers = make(map[*journal.Entry]string, len(r.Entries))
		last := map[journal.GUID]string{}
		for _, e := range r.Entries {
			if e.Writer != "" {
				last[e.Chain] = e.Writer
			}
			r.writers[e] = last[e.Chain]
		}
	}
	return r.writers[e]
}

// Read reads a job as it stands, or, with at from 1, as it stood at that entry of its main chain.
// A job with over quipu.MaxHistory entries is read without its journal. Errors: ErrNotFound,
// ErrPast.
func Read(ctx context.Context, rt *quipu.Runtime, id journal.JobID, at int64) (*Reading, error) {
	if at > 0 {
		return past(ctx, rt, id, at)
	}
	v, err := below.Of(rt).Job(ctx, id)
	if err != nil {
		return nil, err
	}
	j := &explain.Job{View: v}
	if err := living(ctx, rt, j); err != nil {
		return nil, err
	}
	r := &Reading{Job: j, Head: v.Head.Seq}
	if v.State == journal.JobExpired {
		r.Silent = quipu.ErrTombstone
		return r, nil
	}
	var c closer
	for e, err := range rt.Journal(ctx, quipu.Job{ID: id}) {
		switch {
		case err != nil:
			return nil, err
		case len(r.Entries) == quipu.MaxHistory:
			r.Entries, r.Silent = nil, fmt.Errorf("the journal has over %d entries: read it with quipu export", quipu.MaxHistory)
			return r, nil
		}
		r.Entries = append(r.Entries, e)
		if c.last == nil {
			c.add(e)
		}
	}
	if v.State != journal.JobOpen {
		c.tell(j)
	}
	r.tell(ctx, rt)
	return r, nil
}

// tell makes the events of the entries.
func (r *Reading) tell(ctx context.Context, rt *quipu.Runtime) {
	id := r.Job.View.ID
	t := history.New(r.Job.Flow, func(d journal.Digest) ([]byte, error) { return below.Of(rt).Payload(ctx, id, d) })
	for _, e := range r.Entries {
		t.Add(e)
	}
	r.Events = t.Events()
}

// past rebuilds the job as it stood at an entry.
func past(ctx context.Context, rt *quipu.Runtime, id journal.JobID, at int64) (*Reading, error) {
	r := &Reading{}
	var was *replay.Job
	var job collation.Job
	err := below.Of(rt).Audit(ctx, id, func(s *store.Stored, records iter.Seq2[journal.Record, error]) error {
		if s.Job.State == journal.JobExpired {
			return quipu.ErrTombstone
		}
		job, r.Head = s.Job, s.Job.Head.Seq
		was = replay.New(replay.Header{Space: job.Space, Job: job.ID, Key: job.Key, Generation: job.Generation})
		return r.rewind(was, records, at)
	})
	switch {
	case err != nil:
		return nil, fmt.Errorf("replay job %s: %w", id, err)
	case r.At == nil:
		return nil, fmt.Errorf("%w: job %s has %d, not %d", ErrPast, id, r.Head, at)
	}
	v, err := below.Of(rt).Job(ctx, id) // for its dead letters, which are no part of the journal
	if err != nil {
		return nil, err
	}
	r.Open = was.Open()
	r.Job = &explain.Job{
		View: r.view(&job, was, v.Dead), Flow: Definition(ctx, rt, was.Flow), Now: collation.Micros(r.At.Time),
		Find: func(id journal.JobID) *store.JobSummary { return other(ctx, rt, id) },
	}
	r.tell(ctx, rt)
	return r, nil
}

// rewind applies the entries of the main chain up to number at, and those of the effect chains
// that were written by then.
func (r *Reading) rewind(was *replay.Job, records iter.Seq2[journal.Record, error], at int64) error {
	for rec, err := range records {
		if err != nil {
			return err
		}
		if rec.Chain.IsZero() && rec.Seq > at {
			continue
		}
		e, err := journal.Decode(rec)
		switch {
		case err != nil:
			return err
		case len(r.Entries) == quipu.MaxHistory:
			return fmt.Errorf("the journal has over %d entries: read it with quipu replay", quipu.MaxHistory)
		case !rec.Chain.IsZero() && (r.At == nil || e.Time > r.At.Time):
			continue
		}
		if err := was.Apply(rec); err != nil {
			return err
		}
		r.Entries = append(r.Entries, e)
		if rec.Chain.IsZero() && rec.Seq == at {
			r.At = e
		}
	}
	return nil
}
