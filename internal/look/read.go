package look

import (
	"context"
	"fmt"

	"github.com/quipu-journal/quipu"
	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/internal/below"
	"github.com/quipu-journal/quipu/internal/explain"
	"github.com/quipu-journal/quipu/internal/history"
	"github.com/quipu-journal/quipu/internal/inspect"
	"github.com/quipu-journal/quipu/internal/store"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/replay"
)

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
	// Effects are those of the job as it stands, as the tables have them.
	Effects []store.JobEffect
	// Silent says why Entries and Events are not there; nil: they are, or Later.
	Silent error
	// Later says that the journal was not read, because it is long: Read does.
	Later bool

	writers map[*journal.Entry]string
}

// Writer is the process that wrote an entry: an entry that does not say it has the writer of the
// one before it.
func (r *Reading) Writer(e *journal.Entry) string { return r.writers[e] }

// Quick is how many entries a journal may have that Glance reads.
const Quick = 2000

// Glance reads a job as it stands, with its journal if that is short or was read before; otherwise
// the Reading says that it comes Later. What the tables have of a job is read at once, however
// long its journal is. Errors: ErrNotFound.
func (s *Shelf) Glance(ctx context.Context, rt *quipu.Runtime, id journal.JobID) (*Reading, error) {
	return s.read(ctx, rt, id, 0, Quick)
}

// Read reads a job as it stands, or, with at from 1, as it stood at that entry of its main chain.
// A job with over inspect.MaxHistory entries is read without its journal. What it gives is not to be
// changed, but for the Job. Errors: ErrNotFound, inspect.ErrPast.
func (s *Shelf) Read(ctx context.Context, rt *quipu.Runtime, id journal.JobID, at int64) (*Reading, error) {
	return s.read(ctx, rt, id, at, inspect.MaxHistory)
}

// read reads a job; a journal of more than most entries only from the shelf.
func (s *Shelf) read(ctx context.Context, rt *quipu.Runtime, id journal.JobID, at int64, most int) (*Reading, error) {
	v, err := below.Of(rt).Job(ctx, id)
	if err != nil {
		return nil, err
	}
	r := &Reading{Job: &explain.Job{View: v}, Head: v.Head.Seq}
	if v.State == journal.JobExpired {
		if at > 0 {
			return nil, fmt.Errorf("replay job %s: %w", id, quipu.ErrTombstone)
		}
		r.Silent = quipu.ErrTombstone
		return r, living(ctx, rt, r.Job)
	}
	if at > r.Head {
		return nil, fmt.Errorf("%w: job %s has %d, not %d", inspect.ErrPast, id, r.Head, at)
	}
	if at == 0 {
		err = living(ctx, rt, r.Job)
	} else {
		r.Job.Flow = Definition(ctx, rt, v.Flow)
		r.Job.Find = func(id journal.JobID) *store.JobSummary { return other(ctx, rt, id) }
	}
	if err != nil {
		return nil, err
	}
	if r.Effects, err = below.Of(rt).JobEffects(ctx, id); err != nil {
		return nil, err
	}
	kept, err := s.journal(ctx, rt, r.Job, r.Effects, most)
	switch {
	case err != nil:
		return nil, err
	case kept == nil:
		r.Later = true
	case kept.long && at > 0:
		return nil, fmt.Errorf("the journal has over %d entries or %d MiB: read it with quipu replay", inspect.MaxHistory, maxRead>>20)
	case kept.long:
		r.Silent = fmt.Errorf("the journal has over %d entries or %d MiB: read it with quipu export", inspect.MaxHistory, maxRead>>20)
	case at > 0:
		return r, r.past(ctx, rt, kept, at)
	default:
		r.Entries, r.writers = kept.entries, kept.writers
		r.closing()
		r.Events, err = kept.told(ctx, rt, r.Job)
		s.trim() // what it says is known only now
	}
	return r, err
}

// closing looks up which entry closed the job.
func (r *Reading) closing() {
	if r.Job.View.State == journal.JobOpen {
		return
	}
	var c closer
	for _, e := range r.Entries {
		if c.add(e) {
			break
		}
	}
	c.tell(r.Job)
}

// tell makes the events of entries, with outputs that are stored beside them, of so many bytes.
func tell(
	ctx context.Context, rt *quipu.Runtime, j *explain.Job, entries []*journal.Entry,
) (events []history.Event, beside int64) {
	t := history.New(j.Flow, func(d journal.Digest) ([]byte, error) {
		if beside > maxAttachments {
			return nil, fmt.Errorf("not read: the outputs of this job have over %d MiB; quipu export has them all", maxAttachments>>20)
		}
		text, err := below.Of(rt).Payload(ctx, j.View.ID, d)
		beside += int64(len(text))
		return text, err
	})
	for _, e := range entries {
		t.Add(e)
	}
	return t.Events(), beside
}

// past rebuilds the job as it stood at an entry, by a replay of the entries of the main chain up to
// number at, and of those of the effect chains that were written by then.
func (r *Reading) past(ctx context.Context, rt *quipu.Runtime, k *kept, at int64) error {
	now := r.Job.View
	was := replay.New(replay.Header{Space: now.Space, Job: now.ID, Key: now.Key, Generation: now.Generation})
	for i, e := range k.entries {
		main := e.Chain.IsZero()
		if main && e.Seq > at || !main && (r.At == nil || e.Time > r.At.Time) {
			continue
		}
		if err := was.ApplyEntry(e, k.hashes[i]); err != nil {
			return fmt.Errorf("replay job %s: %w", now.ID, err)
		}
		if r.Entries = append(r.Entries, e); main && e.Seq == at {
			r.At = e
		}
	}
	if r.At == nil { // the journal has ended since the job was read
		return fmt.Errorf("%w: job %s has none of number %d", inspect.ErrPast, now.ID, at)
	}
	r.writers, r.Open = k.writers, was.Open()
	r.Job.View, r.Job.Now = r.view(&now.Job, was, now.Dead), collation.Micros(r.At.Time)
	r.Events, _ = tell(ctx, rt, r.Job, r.Entries)
	return nil
}
