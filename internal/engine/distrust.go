package engine

import (
	"context"
	"errors"
	"slices"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/internal/store"
	"github.com/quipu-journal/quipu/journal"
)

// quarantineAllChanged takes out the requests whose flow's definition was changed, and quarantines their jobs
// (S9): nobody could send these requests any more, and no message would tell of it.
func (s *sweeper) quarantineAllChanged(ctx context.Context, out []store.Outgoing) ([]store.Outgoing, error) {
	var calls []*call
	out = slices.DeleteFunc(out, func(o store.Outgoing) bool {
		if o.Row.Kind != journal.MessageRequest {
			return false
		}
		_, err := s.e.pub.Flows.Get(ctx, o.Flow)
		changed, is := errors.AsType[*store.ChangedError](err)
		if is {
			calls = append(calls, s.quarantineChanged(&o.Row, changed))
		}
		return is
	})
	s.e.committer.do(ctx, calls...)
	var err error
	for _, x := range calls {
		err = errors.Join(err, x.err)
	}
	return out, err
}

// quarantineChanged quarantines the job of a row. It reads the job and the row, decides by
// collation.Changed, and writes the job's state, an entry and a dead letter.
func (s *sweeper) quarantineChanged(row *collation.Row, cause error) *call {
	m := &collation.Message{
		Kind: row.Kind, Job: row.Job, GUID: row.GUID, Row: row.GUID, Activity: row.Activity, DAD: row.DAD,
		Turn: row.Turn,
	}
	return &call{
		name: "quarantine", wants: func() []store.Want { return []store.Want{{Job: m.Job, Row: m.Row}} },
		decides: func(b *batch) error {
			st := b.loaded.States[m.Job]
			if st == nil {
				return nil // locked, or gone: the next look finds out
			}
			if p := collation.Changed(st, m, b.mode, cause); p.Entry != nil {
				b.apply(st, p)
			}
			return nil
		},
	}
}
