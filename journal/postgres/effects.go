package postgres

import (
	"context"
	"slices"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/journal/store"
)

// chains is a transaction on the effect chains of requests: it holds their rows
// or, where one has gone, the job (J8).
type chains struct {
	s   *Store
	c   *conn
	now collation.Micros
	of  map[rowKey]*chain
}

// chain is the effect chain of one request, as the transaction leaves it.
type chain struct {
	x          *chains
	key        rowKey
	row        *collation.Row // what effects need of it; nil: gone
	head       journal.Head
	generation int64
	state      journal.JobState
	trace      string
	effects    map[journal.Digest]*effectWrite // those that were asked for, and new ones

	entries  []entryWrite
	released bool // the row was, and no entry says so yet
	undead   bool // its dead letters have ended
}

// effectWrite is an effect as it stands or, changed, as it is to be written.
type effectWrite struct {
	store.EffectRow
	seq     int64            // of the first entry, of a new one
	turn    int              // that started it
	until   collation.Micros // when its try ends, of a started one; Never: no timeout (E4)
	changed bool
	// foreign says that another request of the job started it, whose lease is that of
	// its holder.
	foreign bool
}

var chainStatements = append([]string{
	"chains_lock", "chains_lock_skip", "chains_put", "clock", "effects_read", "effects_put",
	"load_lock", "load_jobs", "chain_head",
}, recordStatements...)

// openChains begins a transaction on the chains of the writes, with their effects
// as they stand. lock says whether rows of others are waited for; one that is not
// there, or is left out, has no chain. The caller commits or abandons.
func (s *Store) openChains(ctx context.Context, c *conn, lock string, writes []*effectCall) (*chains, error) {
	if err := c.require(ctx, chainStatements...); err != nil {
		return nil, err
	}
	x := &chains{s: s, c: c, of: make(map[rowKey]*chain, len(writes))}
	b := c.batch()
	b.queue("begin")
	x.ask(b, lock, writes)
	r := b.send(ctx)
	r.each(nil)
	x.read(r, writes)
	if err := r.close(); err != nil {
		abandon(ctx, c)
		return nil, classify("effect", err) // nothing is committed here
	}
	return x, nil
}

// ask locks the rows, in the order of their keys, and then reads: what is decided
// on is read under the locks (J3).
func (x *chains) ask(b *batch, lock string, writes []*effectCall) {
	keys := make([]rowKey, len(writes))
	for i, w := range writes {
		keys[i] = w.row()
	}
	slices.SortFunc(keys, compareRows)
	b.queue(lock, rowKeys(slices.Compact(keys))...)
	b.queue("clock")
	x.askEffects(b, writes)
}

func (x *chains) askEffects(b *batch, writes []*effectCall) {
	job, key := uuids(len(writes)), byteas(len(writes))
	for _, w := range writes {
		job.uuid(w.lease.Job)
		key.bytes(w.effect.Key[:])
	}
	b.queue("effects_read", job.value(), key.value())
}

// effectKey names one effect to effects_read.
func effectKey(job journal.JobID, key journal.Digest) [][]byte {
	digest := byteas(1)
	digest.bytes(key[:])
	return [][]byte{pUUIDs([]journal.JobID{job}), digest.value()}
}

func compareRows(a, b rowKey) int {
	if n := slices.Compare(a.job[:], b.job[:]); n != 0 {
		return n
	}
	return slices.Compare(a.guid[:], b.guid[:])
}

// read reads what ask asked for.
func (x *chains) read(r *results, writes []*effectCall) {
	r.each(func(v row) error {
		h := &chain{
			x: x, row: &collation.Row{}, effects: make(map[journal.Digest]*effectWrite, 1),
			generation: v.int(chainWidth), state: journal.JobState(v.text(chainWidth + 1)), trace: v.text(chainWidth + 2),
		}
		if err := chainColumns.read(v, h.row); err != nil {
			return err
		}
		h.key, h.head = rowKey{h.row.Job, h.row.GUID}, h.row.Effects
		x.of[h.key] = h
		return nil
	})
	r.each(func(v row) error { x.now = collation.Micros(v.int(0)); return nil })
	x.readEffects(r, writes)
}

func (x *chains) readEffects(r *results, writes []*effectCall) {
	r.each(func(v row) error {
		f, err := readEffect(v)
		if h := x.of[writes[v.int(effectWidth)-1].row()]; h != nil && err == nil {
			h.effects[f.Key] = &effectWrite{EffectRow: *f, foreign: v.guid(effectWidth+1) != h.key.guid}
		}
		return err
	})
}

// openGone goes on where the row has gone: the job's row is the lock then, and
// the head is that of the last entry (J8).
func (x *chains) openGone(ctx context.Context, w *effectCall) error {
	h := &chain{x: x, key: w.row(), effects: make(map[journal.Digest]*effectWrite, 1)}
	x.of[h.key] = h
	id := pUUIDs([]journal.JobID{h.key.job})
	b := x.c.batch()
	b.queue("load_lock", id)
	b.queue("load_jobs", id)
	b.queue("chain_head", pUUID(h.key.job), pUUID(h.key.guid))
	b.queue("clock")
	x.askEffects(b, []*effectCall{w})
	r := b.send(ctx)
	r.each(nil)
	r.each(func(v row) error {
		job := x.s.readJob(v)
		h.generation, h.state, h.trace = job.Generation, job.State, job.Trace
		return nil
	})
	r.each(func(v row) error {
		h.head = journal.Head{Seq: v.int(0), Hash: v.digest(1)}
		return nil
	})
	r.each(func(v row) error { x.now = collation.Micros(v.int(0)); return nil })
	x.readEffects(r, []*effectCall{w})
	return r.close()
}

// commit writes what was decided on the chains, and commits. A transaction that
// decided nothing is rolled back.
func (x *chains) commit(ctx context.Context) error {
	w := &writes{}
	var rows []*collation.Row
	var effects []placedWrite
	for _, h := range x.of {
		w.entries = append(w.entries, h.entries...)
		if h.undead {
			w.undead = append(w.undead, h.key)
		}
		before := len(effects)
		for _, f := range h.effects {
			if f.changed {
				effects = append(effects, placedWrite{h.key, f})
			}
		}
		if h.row != nil && len(effects) > before {
			h.row.Effects = h.head
			rows = append(rows, h.row)
		}
	}
	if len(effects) == 0 {
		abandon(ctx, x.c)
		return nil
	}
	return x.s.conclude(ctx, x.c, func(b *batch) {
		w.queue(b)
		if len(rows) > 0 {
			b.queue("chains_put", movedColumns.params(rows)...)
		}
		queueEffects(b, effects)
	})
}

// placedWrite is an effect with its request.
type placedWrite struct {
	request rowKey
	*effectWrite
}

func queueEffects(b *batch, effects []placedWrite) {
	n := len(effects)
	job, request, seq, turn, until := uuids(n), uuids(n), ints(n), ints(n), ints(n)
	all := make([]*store.EffectRow, n)
	for i, f := range effects {
		job.uuid(f.request.job)
		request.uuid(f.request.guid)
		seq.int(f.seq)
		turn.int(int64(f.turn))
		until.someInt(int64(f.until))
		all[i] = &f.EffectRow
	}
	place := [][]byte{job.value(), request.value(), seq.value(), turn.value(), until.value()}
	b.queue("effects_put", append(place, effectColumns.params(all)...)...)
}
