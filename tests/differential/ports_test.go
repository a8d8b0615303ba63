package differential

import (
	"bytes"
	"context"
	"errors"
	"iter"
	"slices"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/internal/memstore"
	"github.com/quipu-journal/quipu/internal/store"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/journal/postgres"
)

// The calls of twin beside the committer. Each is made of both stores.

// Late implements store.Engine. What is late at the same time has no order.
func (w *twin) Late(ctx context.Context, kind journal.MessageKind, limit int) ([]collation.RowKey, error) {
	return both(w, "late", func(s store.Store) ([]collation.RowKey, error) {
		keys, err := s.Late(ctx, kind, limit)
		slices.SortFunc(keys, func(a, b collation.RowKey) int { return bytes.Compare(a.GUID[:], b.GUID[:]) })
		return keys, err
	})
}

// Claim implements store.Engine.
func (w *twin) Claim(ctx context.Context, claims []store.Claim) ([]store.Outgoing, error) {
	for i := range claims {
		w.written[claims[i].Row.Job] = true
	}
	return both(w, "claim", func(s store.Store) ([]store.Outgoing, error) {
		out, err := s.Claim(ctx, claims)
		return byGUID(out), err
	})
}

// Letter implements store.Engine.
func (w *twin) Letter(ctx context.Context, id int64) (*collation.Letter, error) {
	return both(w, "letter", func(s store.Store) (*collation.Letter, error) { return s.Letter(ctx, id) })
}

// Flow implements store.Engine.
func (w *twin) Flow(ctx context.Context, name, version string) ([]byte, error) {
	return both(w, "flow "+name, func(s store.Store) ([]byte, error) { return s.Flow(ctx, name, version) })
}

// Lease implements store.Requests.
func (w *twin) Lease(
	ctx context.Context, job journal.JobID, request journal.GUID, turn int, holder string, session int64,
) (store.Lease, error) {
	w.written[job] = true
	return both(w, "lease", func(s store.Store) (store.Lease, error) {
		return s.Lease(ctx, job, request, turn, holder, session)
	})
}

// Keep implements store.Requests.
func (w *twin) Keep(ctx context.Context, l store.Lease) (store.Lease, error) {
	w.written[l.Job] = true
	return both(w, "keep", func(s store.Store) (store.Lease, error) { return s.Keep(ctx, l) })
}

// HandBack implements store.Requests.
func (w *twin) HandBack(ctx context.Context, l store.Lease) error {
	w.written[l.Job] = true
	_, err := both(w, "hand back", func(s store.Store) (any, error) { return nil, s.HandBack(ctx, l) })
	return err
}

// bodies is the handle on the transactions of one body, one in each store.
type bodies struct {
	pg     postgres.EffectTx
	memory *memstore.EffectTx
}

// add writes to both.
func (b *bodies) add(ctx context.Context, key, value string) error {
	_, err := b.pg.Exec(ctx,
		"INSERT INTO test.kept (k, v) VALUES ($1, $2) ON CONFLICT (k) DO UPDATE SET v = $2", key, value)
	b.memory.Put(key, value)
	return err
}

// Body implements store.Bodies. Memory runs its body up to the place where that of Postgres stands.
func (w *twin) Body(
	ctx context.Context, of collation.RowKey, key journal.Digest, call store.TxCall,
	end func(context.Context, store.Tx, store.TxEnd) error,
) (*store.EffectRow, error) {
	var memory struct {
		stood *store.EffectRow
		err   error
	}
	var with store.TxEnd
	var failed, ended error
	step, stop := iter.Pull(func(reach func(any) bool) {
		memory.stood, memory.err = w.memory.Body(ctx, of, key, func(_ context.Context, tx any) (store.TxEnd, error) {
			reach(tx)
			return with, failed
		}, func(_ context.Context, tx store.Tx, _ store.TxEnd) error {
			reach(tx)
			return ended
		})
	})
	stood, err := w.Store.Body(ctx, of, key, func(ctx context.Context, tx any) (store.TxEnd, error) {
		other, called := step()
		require.True(w, called, "memory has an outcome, and Postgres none")
		with, failed = call(ctx, &bodies{tx.(postgres.EffectTx), other.(*memstore.EffectTx)})
		return with, failed
	}, func(ctx context.Context, tx store.Tx, with store.TxEnd) error {
		other, called := step()
		require.True(w, called, "the body of memory did not come to its end")
		ended = end(ctx, &joint{w, tx, other.(store.Tx)}, with)
		return ended
	})
	if stood != nil {
		_, called := step()
		require.False(w, called, "Postgres has an outcome, and memory none")
	}
	step()
	stop()
	return stood, agree(w, "body", stood, memory.stood, err, memory.err)
}

// Join implements store.Joiner.
func (w *twin) Join(ctx context.Context, tx any, do func(store.Tx) error) error {
	b := tx.(*bodies)
	return w.Store.Join(ctx, b.pg, func(pg store.Tx) error {
		return w.memory.Join(ctx, b.memory, func(memory store.Tx) error { return do(&joint{w, pg, memory}) })
	})
}

// joint is a transaction of each store that nobody has opened here.
type joint struct {
	w          *twin
	pg, memory store.Tx
}

// Load implements store.Tx.
func (j *joint) Load(ctx context.Context, wants []store.Want, wait bool) (*store.Loaded, error) {
	pg, err := j.pg.Load(ctx, wants, wait)
	memory, memErr := j.memory.Load(ctx, wants, wait)
	return pg, agree(j.w, "load in a transaction", pg, memory, err, memErr)
}

// Commit implements store.Tx.
func (j *joint) Commit(ctx context.Context, plans []store.Chained) error {
	j.w.note(plans)
	return agree(j.w, "commit in a transaction", 0, 0, j.pg.Commit(ctx, plans), j.memory.Commit(ctx, plans))
}

// own is the session of a process in each store.
type own struct {
	w          *twin
	pg, memory store.Session
	name       string
}

// openSession opens a session in both.
func (w *twin) openSession(p store.Process) *own {
	pg, err := w.Store.OpenSession(w.ctx, p)
	require.NoError(w, err)
	memory, err := w.memory.OpenSession(w.ctx, p)
	require.NoError(w, err)
	w.same("the session's number", pg.ID(), memory.ID())
	o := &own{w, pg, memory, p.Name}
	w.sessions = append(w.sessions, o)
	return o
}

// renew renews twice: Postgres frees what the dead held beside the call, and Held waits for that.
func (o *own) renew(d store.Doing) error {
	pg, err := o.pg.Renew(o.w.ctx, d)
	memory, memErr := o.memory.Renew(o.w.ctx, d)
	if err = agree(o.w, "renew", 0, 0, err, memErr); err != nil {
		return err
	}
	o.w.same("who is next", []any{o.pg.Next(), o.pg.Engines()}, []any{o.memory.Next(), o.memory.Engines()})
	o.w.same("what is early nowhere", len(o.pg.Killers()), len(o.memory.Killers()))
	o.held()
	more, err := o.pg.Renew(o.w.ctx, d)
	memMore, memErr := o.memory.Renew(o.w.ctx, d)
	pg, memory = append(pg, more...), append(memory, memMore...)
	slices.Sort(pg)
	slices.Sort(memory)
	err = agree(o.w, "renew again", pg, memory, err, memErr)
	o.held() // what the second renewal has begun
	return err
}

// held compares what the session holds.
func (o *own) held() (leases []store.Lease) {
	read := func(x store.Session) ([]store.Lease, error) {
		all, err := x.Held(o.w.ctx)
		for i := range all {
			all[i].Generation, all[i].Runs = 0, 0 // nobody needs them, and Postgres leaves them out
		}
		slices.SortFunc(all, func(a, b store.Lease) int { return bytes.Compare(a.Request[:], b.Request[:]) })
		return all, err
	}
	leases, err := read(o.pg)
	memory, memErr := read(o.memory)
	require.NoError(o.w, agree(o.w, "held", leases, memory, err, memErr))
	return leases
}

// lost compares which leases have ended.
func (o *own) lost(leases []store.Lease) {
	pg, err := o.pg.Lost(o.w.ctx, leases)
	memory, memErr := o.memory.Lost(o.w.ctx, leases)
	byPlace := func(a, b store.LostLease) int { return a.Place - b.Place }
	slices.SortFunc(pg, byPlace)
	slices.SortFunc(memory, byPlace)
	require.NoError(o.w, agree(o.w, "lost", pg, memory, err, memErr))
}

// end ends the session in both.
func (o *own) end() error {
	return errors.Join(o.pg.End(o.w.ctx), o.memory.End(o.w.ctx))
}
