package engine

import (
	"context"
	"errors"
	"fmt"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/internal/store"
	"github.com/quipu-journal/quipu/journal"
)

// exhaust holds the due requests that ran too often, each by a call of its own, and returns the
// other due rows. A worker has only marked them: it writes no main chain (S8). A job that somebody
// else has locked is left to the next look.
func (s *sweeper) exhaust(ctx context.Context, due []store.DueRow) (others []store.DueRow, err error) {
	var calls []*call
	for _, r := range due {
		if r.Kind != journal.MessageRequest || r.Runs <= store.MaxRuns {
			others = append(others, r)
			continue
		}
		x := &exhaust{job: r.Job, request: r.GUID, turn: r.Turn}
		calls = append(calls, &call{name: "exhaust", wants: x.want, decides: x.ask})
	}
	if len(calls) == 0 {
		return due, nil
	}
	s.e.committer.do(ctx, calls...)
	for _, x := range calls {
		if !errors.Is(x.err, store.ErrStale) && !errors.Is(x.err, store.ErrLeased) { // it has gone on
			err = errors.Join(err, x.err)
		}
	}
	return others, err
}

// exhaust holds a request that ran too often. It reads the job, the row and the instance. It
// decides by collation.Exhaust. It writes a dead letter with its entry, and the held row (E9,
// E10).
type exhaust struct {
	job     journal.JobID
	request journal.GUID
	turn    int
}

func (x *exhaust) want() []store.Want { return []store.Want{{Job: x.job, Row: x.request}} }

func (x *exhaust) ask(b *batch) error {
	st := b.loaded.States[x.job]
	if st == nil {
		return nil
	}
	p, need, err := collation.Exhaust(st, x.request, x.turn, b.mode)
	switch {
	case need != nil:
		return needs{x.job: need}
	case err != nil:
		return fmt.Errorf("request %s: %w", x.request, err)
	}
	b.apply(st, p)
	return nil
}
