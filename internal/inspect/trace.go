package inspect

import (
	"context"
	"errors"
	"fmt"

	"github.com/quipu-journal/quipu/internal/store"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/telemetry/trace"
)

// MaxTrace bounds the entries of a job of which a Trace is made.
const MaxTrace = 50_000

// Trace returns the tree of spans of a job, from its journal alone (O2). What has ended of it is the
// same in every later tree. Errors: store.ErrNotFound, ErrTombstone, or one that says that the job
// has over MaxTrace entries.
func Trace(ctx context.Context, r Reader, job journal.JobID) (*trace.Tree, error) {
	all, err := entries(ctx, r, job, MaxTrace, "no trace is made of it")
	if err != nil {
		return nil, fmt.Errorf("read the journal of job %s: %w", job, err)
	}
	b := trace.New()
	for _, e := range all {
		b.Add(e)
	}
	var failed error
	t := b.Tree(func(other journal.JobID) string {
		v, err := r.Job(ctx, other)
		if err != nil {
			if !errors.Is(err, store.ErrNotFound) {
				failed = err
			}
			return ""
		}
		return v.Trace
	})
	if failed != nil {
		return nil, fmt.Errorf("read a job to which job %s is linked: %w", job, failed)
	}
	return t, nil
}
