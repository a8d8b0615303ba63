package inspect

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/quipu-journal/quipu/internal/store"
	"github.com/quipu-journal/quipu/journal"
)

// Reader reads jobs, their journals, and what is stored beside them.
type Reader interface {
	store.Reader

	// Job is that of store.Client.
	Job(ctx context.Context, id journal.JobID) (*store.JobView, error)
	// Flow is that of store.Client.
	Flow(ctx context.Context, name, version string) ([]byte, error)
	// Payload returns an output that is stored beside the entries of a job.
	Payload(ctx context.Context, job journal.JobID, digest journal.Digest) ([]byte, error)
}

// ErrTombstone says that the job has expired and its journal was removed.
var ErrTombstone = errors.New("the job has expired: its journal was removed")

// Journal yields the entries of a job: the main chain first, then the effect chains, each by seq.
func Journal(ctx context.Context, r store.Reader, job journal.JobID) iter.Seq2[*journal.Entry, error] {
	return func(yield func(*journal.Entry, error) bool) {
		stopped := false
		err := r.Audit(ctx, job, func(_ *store.Stored, records iter.Seq2[journal.Record, error]) error {
			for r, err := range records {
				if err != nil {
					return err
				}
				e, err := journal.Decode(r)
				if !yield(e, err) || err != nil {
					stopped = true
					return nil
				}
			}
			return nil
		})
		if err != nil && !stopped {
			yield(nil, err)
		}
	}
}

// entries reads the journal of a job to its end, before anything else is read: reading it holds a
// connection. It has at most most entries, and at least one: ErrTombstone.
func entries(
	ctx context.Context, r store.Reader, job journal.JobID, most int, instead string,
) (all []*journal.Entry, err error) {
	for e, err := range Journal(ctx, r, job) {
		switch {
		case err != nil:
			return nil, err
		case len(all) == most:
			return nil, fmt.Errorf("its journal has over %d entries: %s", most, instead)
		}
		all = append(all, e)
	}
	if len(all) == 0 {
		return nil, ErrTombstone
	}
	return all, nil
}
