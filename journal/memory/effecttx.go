package memory

import (
	"context"
	"errors"
	"fmt"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/journal/store"
)

// maxTries bounds how often the body of a Tx effect runs for others that are in
// its way, as in Postgres.
const maxTries = 5

// errConflict says that something which a transaction has read is another now.
var errConflict = errors.New("memory: the transaction has read what another changed")

// EffectTx is the handle that the body of an effect of class tx gets: values of the
// caller's own, and the jobs and signals that are to follow. All of it commits
// together with the effect, or nothing does (E3, E17). What the body has read must
// not have changed by then; otherwise it runs again, in a new transaction. It is for
// one goroutine, and for the body only.
type EffectTx struct {
	s       *Store
	read    map[string]string
	written map[string]string
	starts  []store.Start
	signals []collation.Signal
}

// Get reads a value, "" where there is none: the transaction's own, or the committed.
func (t *EffectTx) Get(key string) string {
	if v, own := t.written[key]; own {
		return v
	}
	v, again := t.read[key]
	if !again {
		v = t.s.Value(key)
		t.read[key] = v
	}
	return v
}

// Put writes a value.
func (t *EffectTx) Put(key, value string) {
	t.written[key] = value
}

// Start begins a job with the commit, which Store.Start would; where the key is
// taken it begins nothing. Its row is due at once, and sent by a sweeper.
func (t *EffectTx) Start(start store.Start) {
	start.Child, start.Parent, start.Publish = journal.JobID{}, nil, false
	t.starts = append(t.starts, start)
}

// Signal sends a signal with the commit; one whose GUID is known is not sent again.
func (t *EffectTx) Signal(x collation.Signal) { t.signals = append(t.signals, x) }

// Value reads a committed value that a Tx effect wrote, "" where there is none.
func (s *Store) Value(key string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.values[key]
}

// commit writes what the transaction wrote: errConflict.
func (t *EffectTx) commit(u *undo) error {
	for key, v := range t.read {
		if t.s.values[key] != v {
			return errConflict
		}
	}
	for key, v := range t.written {
		put(u, t.s.values, key, v)
	}
	for i := range t.starts {
		if _, err := t.s.start(u, &t.starts[i], collation.Mode{}); err != nil {
			return err
		}
	}
	for i := range t.signals {
		if err := t.s.send(u, t.signals[i]); err != nil {
			return err
		}
	}
	return nil
}

// send is a signal without its delivery, which is the engine's.
func (s *Store) send(u *undo, x collation.Signal) error {
	x.Sent = s.now()
	row, err := x.Row(s.cfg.Space)
	if err != nil || s.signals[x.GUID] != nil || s.row(row.Job, row.GUID) != nil {
		return err
	}
	put(u, s.signals, x.GUID, &signal{state: store.SignalKept, at: x.Sent})
	return s.insertRow(u, row)
}

// TxEffect implements store.Worker. There is no SQL here: the handle is an *EffectTx.
func (s *Store) TxEffect(ctx context.Context, l store.Lease, e journal.Effect, call store.TxCall) (out store.EffectRow, err error) {
	if e.Class != store.ClassTx {
		return out, fmt.Errorf("memory: tx effect %q: %w: it is of class %s", e.Name, store.ErrRejected, e.Class)
	}
	for range maxTries {
		if stood := s.outcome(l.Job, e.Key); stood != nil {
			return *stood, nil
		}
		if out, err = s.tryTx(ctx, l, e, call); !errors.Is(err, errConflict) {
			return out, err
		}
	}
	return out, &store.TxError{Err: err}
}

// tryTx runs the body once: errConflict.
func (s *Store) tryTx(ctx context.Context, l store.Lease, e journal.Effect, call store.TxCall) (out store.EffectRow, err error) {
	tx := &EffectTx{s: s, read: map[string]string{}, written: map[string]string{}}
	end, err := call(ctx, tx)
	switch {
	case err != nil:
		return out, &store.TxError{Err: err}
	case ctx.Err() != nil:
		return out, &store.TxError{Err: context.Cause(ctx)}
	}
	e.Result, e.Error = end.Result, end.Error
	if err := fits(&e); err != nil {
		return out, err
	}
	err = s.writeRow(ctx, "tx effect", l.Job, l.Request, false, func(u *undo, j *job) error {
		row, err := s.fenced(j, &l)
		if err != nil {
			return err
		}
		f := j.effects[e.Key]
		if f != nil && f.State != store.EffectStarted {
			out = s.effectRow(j, f)
			return nil
		}
		if end.Error == nil && !end.NotDone { // otherwise its outcome is recorded alone
			if err := tx.commit(u); err != nil {
				return err
			}
		}
		if l.TTL > 0 {
			s.hold(row, &l)
		}
		row.Runs = 0 // counted since the last recorded completion (E9)
		next, err := s.finish(u, j, &l, e, f, row, end.NotDone)
		if err != nil {
			return err
		}
		out = s.effectRow(j, next)
		return nil
	})
	if err != nil {
		return store.EffectRow{}, fmt.Errorf("memory: tx effect %q: %w", e.Name, err)
	}
	return out, nil
}
