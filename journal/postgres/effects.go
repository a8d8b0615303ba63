package postgres

import (
	"context"
	"errors"
	"slices"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/internal/store"
	"github.com/quipu-journal/quipu/journal"
)

// chainStatements are the statements of a transaction that only writes effect chains.
var chainStatements = []string{
	"begin", "commit", "rollback", "write_marker", "clock", "chains_lock", "effects_read", "write_entries", "chains_put", "effects_new",
	"effects_move", "write_letters_end",
}

// effectKey names an effect on the chain of a request.
type effectKey struct {
	chain rowKey
	key   journal.Digest
}

// askChain adds a chain and its effects to what is read.
func (w *wanted) askChain(want *store.Want) {
	if want.Chain == (collation.RowKey{}) {
		return
	}
	k := rowKey{want.Chain.Job, want.Chain.GUID}
	w.chains = append(w.chains, k)
	for _, key := range want.Effects {
		w.effectKeys = append(w.effectKeys, effectKey{k, key})
		if want.Past {
			w.pastKeys = append(w.pastKeys, effectKey{k, key})
		}
	}
}

// readChains returns the statements that lock the chains' rows in the order of their keys, and
// then read under these locks (J3). A row that has gone or is left out has no chain in the
// result.
func (s *Store) readChains(w *wanted, l *store.Loaded, span span, wait bool) []step {
	if len(w.chains) == 0 {
		return nil
	}
	slices.SortFunc(w.chains, compareRows)
	w.chains = slices.Compact(w.chains)
	slices.SortFunc(w.effectKeys, compareEffects) // one may be wanted by its end and by what follows it
	w.effectKeys = slices.Compact(w.effectKeys)
	lock := "chains_lock"
	if !wait {
		lock = "chains_lock_skip"
	}
	return slices.Concat([]step{
		{lock, arrays(w.chains, putKey), func(v row) error {
			x := &collation.Row{}
			if err := chainColumns.read(v, x); err != nil {
				return err
			}
			l.Chains[collation.RowKey{Job: x.Job, GUID: x.GUID}] = &collation.Chain{
				Job: collation.Job{
					ID: x.Job, Space: s.cfg.Space, Generation: v.int(chainWidth),
					State: journal.JobState(v.text(chainWidth + 1)), Trace: v.text(chainWidth + 2),
				},
				Request: x.GUID, Row: x, Head: x.Effects, Doubt: v.bool(chainWidth + 3),
				Effects: make(map[journal.Digest]*collation.Effect, 1),
			}
			return nil
		}},
	}, s.readEffects(w, l, span), w.readPastEffects(l))
}

func compareRows(a, b rowKey) int {
	if n := slices.Compare(a.job[:], b.job[:]); n != 0 {
		return n
	}
	return slices.Compare(a.guid[:], b.guid[:])
}

func compareEffects(a, b effectKey) int {
	if n := compareRows(a.chain, b.chain); n != 0 {
		return n
	}
	return slices.Compare(a.key[:], b.key[:])
}

// effectJobs lists the jobs whose effects were asked for.
func (w *wanted) effectJobs() []journal.JobID {
	jobs := make([]journal.JobID, len(w.effectKeys))
	for i := range jobs {
		jobs[i] = w.effectKeys[i].chain.job
	}
	return jobs
}

// errMoved says that a job's number is not in the span that was read, because retention has moved
// the job (W11). The number is known by then: read again.
var errMoved = errors.New("retention has moved a job")

func putEffectKey(c *columns, k effectKey) { putKey(c, k.chain); c.bytes(k.key[:]) }

// readEffects reads the effects that were asked for in a span of their jobs, else errMoved.
func (s *Store) readEffects(w *wanted, l *store.Loaded, span span) []step {
	return asked("effects_read", w.effectKeys, putEffectKey, func(k effectKey, v row) error {
		n := v.int(effectWidth + 2)
		if s.numbers.set(k.chain.job, n); !span.holds(noJobs.with(n)) {
			return errMoved
		}
		if v.null(1) {
			return nil
		}
		f, err := readEffect(v[1:])
		if h := l.Chains[collation.RowKey{Job: k.chain.job, GUID: k.chain.guid}]; h != nil && err == nil {
			h.Effects[f.Key] = &collation.Effect{EffectRow: f, Request: v.guid(effectWidth + 1)}
		}
		return err
	}, span.ends()...)
}

// goneChains reads the chains whose rows have gone. Then the job's row is the lock, and the last
// entry gives the head (J8).
func (c *committer) goneChains(ctx context.Context, w *wanted, l *store.Loaded) error {
	for _, k := range w.chains {
		at := collation.RowKey{Job: k.job, GUID: k.guid}
		if l.Chains[at] != nil {
			continue
		}
		h := &collation.Chain{Request: k.guid, Effects: make(map[journal.Digest]*collation.Effect, 1)}
		l.Chains[at] = h
		id := pUUIDs([]journal.JobID{k.job})
		err := c.conn.run(ctx, append([]step{
			{"load_lock", [][]byte{id}, nil},
			clock(&h.Now),
			{"load_jobs", [][]byte{id}, func(v row) error { h.Job = c.s.readJob(v); return nil }},
			{"chain_head", [][]byte{pUUID(k.job), pUUID(k.guid)}, func(v row) error {
				h.Head = journal.Head{Seq: v.int(0), Hash: v.digest(1)}
				return nil
			}},
		}, c.s.readEffects(w, l, allJobs)...)...)
		if err != nil {
			return err
		}
	}
	return nil
}

// chain records a plan's write on the effect chain of a request. The last write of a row or an
// effect wins.
func (m *merger) chain(p *collation.Plan) {
	w := p.Chain
	if w == nil {
		return
	}
	k := rowKey{p.Job, w.Request}
	if w.Row != nil && m.rowOf[k] != nil {
		m.fail("row %s is changed by a message, too", w.Request)
	}
	if w.Entry != nil {
		m.entries = append(m.entries,
			entryWrite{job: p.Job, chain: w.Request, seq: w.Entry.Seq, body: w.Body, hash: w.Hash})
	}
	if m.chainOf == nil {
		m.chainOf, m.effectOf = make(map[rowKey]int), make(map[effectKey]int)
	}
	if w.Row != nil {
		x := chainWrite{w.Row, w.Row.Rev - 1, w.State}
		if i, again := m.chainOf[k]; again {
			x.was, x.state = m.chains[i].was, m.chains[i].state
		}
		last(&m.chains, m.chainOf, k, x)
	}
	f, ek := effectWrite{job: p.Job, Effect: &w.Effect, begins: w.Begins()}, effectKey{rowKey{job: p.Job}, w.Effect.Key}
	if f.begins && w.Row != nil {
		f.topic = w.Row.Topic
	}
	i, put := m.effectOf[ek]
	if put {
		f.begins, f.topic = m.effects[i].begins, m.effects[i].topic
	}
	if w.Completed && !put {
		m.judged = append(m.judged, f)
	} else {
		last(&m.effects, m.effectOf, ek, f)
	}
	if w.Resolve {
		m.endLetters(k)
	}
}

// last appends a write, or replaces the one with the same key.
func last[K comparable, V any](all *[]V, at map[K]int, k K, v V) {
	if i, known := at[k]; known {
		(*all)[i] = v
		return
	}
	at[k] = len(*all)
	*all = append(*all, v)
}

// effectWrite is an effect with its job. One that begins is not stored yet; topic is that of its
// request, "" for that of the request's row.
type effectWrite struct {
	job journal.JobID
	*collation.Effect
	begins bool
	topic  string
}

func (w *writes) queueChains(b *batch) {
	write(b, "chains_put", w.chains, func(c *columns, x chainWrite) {
		record(c, movedColumns, x.row)
		c.int(x.was)
		c.int(x.row.Rev)
		c.text(string(x.state))
	})
	var fresh, moved []effectWrite
	for _, f := range w.effects {
		if f.begins {
			fresh = append(fresh, f)
		} else {
			moved = append(moved, f)
		}
	}
	write(b, "effects_new", fresh, func(c *columns, f effectWrite) {
		c.uuid(f.job)
		c.uuid(f.Request)
		c.text(f.topic)
		c.int(f.Seq)
		c.int(int64(f.Turn))
		c.someInt(int64(f.Until))
		record(c, effectColumns, &f.EffectRow)
	})
	write(b, "effects_move", moved, func(c *columns, f effectWrite) {
		c.uuid(f.job)
		c.uuid(f.Request)
		c.int(int64(f.Turn))
		c.someInt(int64(f.Until))
		record(c, effectColumns, &f.EffectRow)
	}, w.span.ends()...)
	write(b, "effects_judged", w.judged, func(c *columns, f effectWrite) {
		c.uuid(f.job)
		c.uuid(f.Request)
		c.bytes(f.Key[:])
		c.text(string(f.State))
		c.someBytes(encodeFailure(f.Error))
		c.bool(f.Vouched)
	})
}
