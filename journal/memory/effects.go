package memory

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/journal/store"
	"github.com/quipu-journal/quipu/wire"
)

// effect is the stored state of one effect key.
type effect struct {
	store.EffectRow
	request journal.GUID
	seq     int64            // of its first entry
	turn    int              // that started it
	until   collation.Micros // the end of the try that started it; Never: no timeout (E4)
}

// effectsWhere lists effects by request and in the order of their first entry.
func (j *job) effectsWhere(want func(*effect) bool) []*effect {
	var all []*effect
	for _, f := range j.effects {
		if want(f) {
			all = append(all, f)
		}
	}
	slices.SortFunc(all, func(a, b *effect) int {
		return cmp.Or(compareIDs(a.request, b.request), cmp.Compare(a.seq, b.seq))
	})
	return all
}

func (s *Store) effectRows(j *job, want func(*effect) bool) []store.EffectRow {
	found := j.effectsWhere(want)
	out := slices.Grow([]store.EffectRow(nil), len(found))
	for _, f := range found {
		out = append(out, s.effectRow(j, f))
	}
	return out
}

func (s *Store) effectRow(j *job, f *effect) store.EffectRow {
	r := f.EffectRow
	row := s.row(j.ID, f.request)
	r.Live = r.State == store.EffectStarted && row != nil && row.Holder == r.Holder && row.Fence == r.Fence && row.LeaseUntil > s.now()
	return r
}

// StartEffect implements store.Worker. A run that has no lease yet gets one,
// without Lease.TTL until its row is due (E4).
func (s *Store) StartEffect(ctx context.Context, l store.Lease, e journal.Effect) (out store.EffectRow, taken bool, err error) {
	err = s.writeRow(ctx, "start effect", l.Job, l.Request, false, func(u *undo, j *job) (err error) {
		out, taken, err = s.startEffect(u, j, l, e)
		return err
	})
	if err != nil {
		return store.EffectRow{}, false, fmt.Errorf("memory: start effect %q: %w", e.Name, err)
	}
	return out, taken, nil
}

func (s *Store) startEffect(u *undo, j *job, l store.Lease, e journal.Effect) (out store.EffectRow, taken bool, err error) {
	row, err := s.fenced(j, &l)
	if err != nil {
		return out, false, err
	}
	s.hold(row, &l)
	f := j.effects[e.Key]
	if f != nil && (f.State != store.EffectStarted || f.Class == store.ClassUndo || f.Fence >= l.Fence) {
		return s.effectRow(j, f), false, nil
	}
	next := &effect{request: l.Request, turn: l.Turn}
	if f != nil { // taken over: the chain has its start, only who finishes it changes
		taken, next.EffectRow, next.request, next.seq = true, f.EffectRow, f.request, f.seq
	} else {
		next.EffectRow = store.EffectRow{
			Key: e.Key, Name: e.Name, Class: e.Class, N: e.N, State: store.EffectStarted, Position: e.Position,
		}
		row.Undo = row.Undo || e.Class == store.ClassUndo
		if row.Effects, err = s.record(u, j, journal.KindEffectStarted, &l, e, row); err != nil {
			return out, false, err
		}
		next.seq = row.Effects.Seq
	}
	next.Fence, next.Holder = l.Fence, l.Holder
	if l.Timeout > 0 && next.Class != store.ClassUndo {
		next.until = s.now() + micros(l.Timeout)
	}
	put(u, j.effects, e.Key, next)
	s.putRow(u, row)
	return s.effectRow(j, next), taken, nil
}

// record appends an entry to the chain of a request's effects (J8). The row is
// nil when it is gone.
func (s *Store) record(
	u *undo, j *job, kind journal.Kind, l *store.Lease, e journal.Effect, row *collation.Row,
) (journal.Head, error) {
	e.Turn, e.Fence = l.Turn, l.Fence
	entry := &journal.Entry{Chain: l.Request, Kind: kind, GUID: l.Request, Effect: &e, Writer: l.Holder}
	if row != nil {
		entry.Activity, entry.DAD = row.Activity, string(row.DAD)
		if old := s.row(j.ID, row.GUID); old.Held != row.Held {
			entry.Updated = []journal.Updated{updated(row)}
		}
	}
	return j.write(u, s.now(), entry)
}

// FinishEffect implements store.Worker.
func (s *Store) FinishEffect(ctx context.Context, l store.Lease, e journal.Effect, notDone bool) (out store.EffectRow, err error) {
	if err := fits(&e); err != nil {
		return out, err
	}
	if e.Class == store.ClassTx {
		return out, fmt.Errorf("memory: finish effect %q: %w: it is of class tx", e.Name, store.ErrRejected)
	}
	err = s.writeRow(ctx, "finish effect", l.Job, l.Request, false, func(u *undo, j *job) error {
		if j == nil {
			return store.ErrStale
		}
		f := j.effects[e.Key]
		if f != nil && f.State != store.EffectStarted {
			out = s.effectRow(j, f)
			return nil
		}
		row, stale := s.fenced(j, &l)
		switch {
		case stale != nil && f == nil:
			return stale
		case stale != nil && notDone && f.Again(l.Fence):
			return stale
		case f == nil && e.Class != store.ClassPure:
			return fmt.Errorf("%w: an effect of class %q has no start", store.ErrStale, e.Class)
		case stale != nil:
			row = clone(s.row(j.ID, l.Request))
		case l.TTL > 0:
			s.hold(row, &l)
		}
		e.Late = stale != nil
		if row != nil {
			row.Runs = 0 // counted since the last recorded completion (E9)
			s.unpark(u, row)
		}
		next, err := s.finish(u, j, &l, e, f, row, notDone)
		if err != nil {
			return err
		}
		out = s.effectRow(j, next)
		return nil
	})
	if err != nil {
		return store.EffectRow{}, fmt.Errorf("memory: finish effect %q: %w", e.Name, err)
	}
	return out, nil
}

// fits checks the size of a result (E6).
func fits(e *journal.Effect) error {
	if len(e.Result) > wire.MaxResult {
		return fmt.Errorf("memory: finish effect %q: %w: %d bytes, the limit is %d",
			e.Name, store.ErrRejected, len(e.Result), wire.MaxResult)
	}
	return nil
}

// outcome is an effect that has its outcome, or nil.
func (s *Store) outcome(id journal.JobID, key journal.Digest) *store.EffectRow {
	s.mu.Lock()
	defer s.mu.Unlock()
	j := s.living(id)
	if j == nil || j.effects[key] == nil || j.effects[key].State == store.EffectStarted {
		return nil
	}
	row := s.effectRow(j, j.effects[key])
	return &row
}

// unpark takes back the hold of a request that was parked for the effect that
// has ended now, and its dead letter (E4).
func (s *Store) unpark(u *undo, row *collation.Row) {
	if row.Kind == journal.MessageRequest && row.Held == collation.HeldParked {
		row.Held, row.Dead, row.NextAt, row.TurnSent = "", false, s.now(), 0
		s.endLetters(u, row.Job, row.GUID, letterAnswered)
	}
}

// finish writes the end of an effect: entry, effect, and the request's row as
// it is now, or nil when it is gone. What its start said of it stays.
func (s *Store) finish(
	u *undo, j *job, l *store.Lease, e journal.Effect, f *effect, row *collation.Row, notDone bool,
) (*effect, error) {
	if f != nil {
		e.Name, e.Class, e.N, e.Position = f.Name, f.Class, f.N, f.Position
	}
	next := &effect{request: l.Request, EffectRow: store.EffectRow{
		Key: e.Key, Name: e.Name, Class: e.Class, N: e.N, Result: slices.Clone(e.Result), Error: e.Error,
		Fence: l.Fence, Holder: l.Holder, State: store.EffectCompleted, Position: e.Position,
	}}
	kind := journal.KindEffectCompleted
	if notDone {
		kind, next.State = journal.KindEffectFailed, store.EffectNotDone
	}
	head, err := s.record(u, j, kind, l, e, row)
	if err != nil {
		return nil, err
	}
	if next.seq = head.Seq; f != nil {
		next.request, next.seq = f.request, f.seq
	}
	put(u, j.effects, e.Key, next)
	if row != nil {
		row.Effects = head
		s.putRow(u, row)
	}
	return next, nil
}
