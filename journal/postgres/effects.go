package postgres

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/journal/store"
	"github.com/quipu-journal/quipu/wire"
)

// Classes of effects that have no start: nothing happens outside before their
// result is known (E3).
const (
	classPure = "pure"
	classTx   = "tx"
)

// chain is a transaction on the effect chain of one request: it holds the
// request's row or, where that has gone, the job (J8).
type chain struct {
	s          *Store
	c          *conn
	lease      store.Lease
	now        collation.Micros
	generation int64
	state      journal.JobState
	trace      string
	row        *collation.Row   // nil: gone
	stood      *store.EffectRow // nil: none
	head       journal.Head
}

var chainStatements = append([]string{
	"row_lock", "clock", "effect_read", "effect_put", "load_lock", "load_jobs", "chain_head",
}, recordStatements...)

// openChain begins a transaction on the chain, with the effect of the key as
// it stands. The caller commits or abandons.
func (s *Store) openChain(ctx context.Context, c *conn, l store.Lease, key journal.Digest) (*chain, error) {
	if err := c.require(ctx, chainStatements...); err != nil {
		return nil, err
	}
	h := &chain{s: s, c: c, lease: l}
	b := c.batch()
	b.queue("begin")
	b.queue("row_lock", pUUID(l.Job), pUUID(l.Request))
	b.queue("clock")
	b.queue("effect_read", pUUID(l.Job), pDigest(key))
	r := b.send(ctx)
	r.each(nil)
	h.read(r)
	err := r.close()
	if err == nil && h.row == nil {
		err = h.openGone(ctx, key)
	}
	if err == nil && (h.state == "" || h.state == journal.JobExpired) {
		// The chain goes with the job: nothing can be recorded in it any more.
		err = s.refuse("effect", store.ErrStale, l.Request)
	}
	if err != nil {
		abandon(ctx, c)
		return nil, settleRead("effect", err)
	}
	return h, nil
}

// read reads the row, the clock and the effect.
func (h *chain) read(r *results) {
	r.each(func(v row) error {
		h.row = readRow(v, 0)
		h.head = h.row.Effects
		h.generation, h.state, h.trace = v.int(rowWidth), journal.JobState(v.text(rowWidth+1)), v.text(rowWidth+2)
		return nil
	})
	h.readRest(r)
}

func (h *chain) readRest(r *results) {
	r.each(func(v row) error { h.now = collation.Micros(v.int(0)); return nil })
	r.each(func(v row) error {
		x, err := readEffect(v)
		h.stood = x
		return err
	})
}

// openGone goes on where the row has gone: the job's row is the lock then, and
// the head is that of the last entry (J8).
func (h *chain) openGone(ctx context.Context, key journal.Digest) error {
	l := h.lease
	id := pUUIDs([]journal.JobID{l.Job})
	b := h.c.batch()
	b.queue("load_lock", id)
	b.queue("load_jobs", id)
	b.queue("chain_head", pUUID(l.Job), pUUID(l.Request))
	b.queue("clock")
	b.queue("effect_read", pUUID(l.Job), pDigest(key))
	r := b.send(ctx)
	r.each(nil)
	r.each(func(v row) error {
		job := h.s.readJob(v)
		h.generation, h.state, h.trace = job.Generation, job.State, job.Trace
		return nil
	})
	r.each(func(v row) error {
		h.head = journal.Head{Seq: v.int(0), Hash: v.digest(1)}
		return nil
	})
	h.readRest(r)
	return r.close()
}

// current reports whether the lease is the row's: a write of this run may
// begin something (E9).
func (h *chain) current() bool {
	x := h.row
	return x != nil && h.state == journal.JobOpen && x.Kind == journal.MessageRequest && x.Held == "" &&
		x.Turn == h.lease.Turn && x.Fence == h.lease.Fence && (x.Holder == "" || x.Holder == h.lease.Holder)
}

// append commits one entry about the effect, and the effect and the row as
// they are after it.
func (h *chain) append(ctx context.Context, kind journal.Kind, e *journal.Effect, after *store.EffectRow, undead bool) error {
	l := h.lease
	x := &journal.Entry{
		Space: h.s.cfg.Space, Job: l.Job, Generation: h.generation, Chain: l.Request, Seq: h.head.Seq + 1,
		Kind: kind, GUID: l.Request, Effect: e, Writer: l.Holder, Build: h.s.cfg.Build, Time: int64(h.now), Trace: h.trace,
	}
	if h.row != nil {
		x.Activity, x.DAD = h.row.Activity, string(h.row.DAD)
	}
	w := &writes{}
	if undead {
		x.Updated = []journal.Updated{updated(h.row)}
		w.undead = []rowKey{{l.Job, l.Request}}
	}
	written := h.link(x)
	w.entries = []entryWrite{written}
	if h.row != nil {
		h.row.Effects = h.head
		w.rows = []*rowWrite{{key: rowKey{l.Job, l.Request}, stood: true, after: h.row}}
	}
	return h.s.conclude(ctx, h.c, func(b *batch) {
		w.queue(b)
		queueEffect(b, l, written.seq, after, h.until(after))
	})
}

// until is when the try that the effect was started in ends, if it has a timeout
// (E4).
func (h *chain) until(x *store.EffectRow) collation.Micros {
	if x.State != store.EffectStarted || h.lease.Timeout <= 0 {
		return collation.Never
	}
	return h.now + collation.Micros(h.lease.Timeout.Microseconds())
}

// link gives the entry its place on the chain (J9).
func (h *chain) link(x *journal.Entry) entryWrite {
	previous := h.head.Hash
	if h.head.Seq == 0 {
		previous = journal.Genesis(x.Space, x.Job, x.Generation, x.Chain)
	}
	body := journal.Encode(x)
	h.head = journal.Head{Seq: x.Seq, Hash: journal.Next(previous, body)}
	return entryWrite{job: x.Job, chain: x.Chain, seq: x.Seq, body: body, hash: h.head.Hash}
}

// queueEffect writes the effect; until is when the try of a started one ends.
func queueEffect(b *batch, l store.Lease, seq int64, x *store.EffectRow, until collation.Micros) {
	var failure []byte
	if x.Error != nil {
		failure = wire.Encode(&wire.Failure{Class: x.Error.Class, Message: x.Error.Message, Data: x.Error.Data, Stack: x.Error.Stack})
	}
	var bound []byte
	if until != collation.Never {
		bound = pInt(int64(until))
	}
	b.queue("effect_put", pUUID(l.Job), pDigest(x.Key), pUUID(l.Request), pInt(seq), pText(x.Name), pText(x.Class),
		pInt(int64(x.N)), pText(string(x.State)), x.Result, failure, pInt(x.Fence), pText(x.Holder), pInt(int64(l.Turn)), bound)
}

// readEffect reads the columns of an effect.
func readEffect(v row) (*store.EffectRow, error) {
	x := &store.EffectRow{
		Key: v.digest(0), Name: v.text(1), Class: v.text(2), N: int(v.int(3)), State: store.EffectState(v.text(4)),
		Result: v.bytes(5), Fence: v.int(7), Holder: v.text(8), Live: v.bool(9),
	}
	if !v.null(6) {
		f := &wire.Failure{}
		if err := json.Unmarshal(v[6], f); err != nil {
			return nil, fmt.Errorf("%w: effect %s: %w", errCorrupt, x.Key, err)
		}
		x.Error = &journal.Failure{Class: f.Class, Message: f.Message, Data: f.Data, Stack: f.Stack}
	}
	return x, nil
}

// Effects lists the recorded effects of a request, in the order of their first
// entry.
func (s *Store) Effects(ctx context.Context, job journal.JobID, request journal.GUID) ([]store.EffectRow, error) {
	var all []store.EffectRow
	err := s.query(ctx, "effects_of_request", func() { all = nil }, func(v row) error {
		x, err := readEffect(v)
		if err == nil {
			all = append(all, *x)
		}
		return err
	}, pUUID(job), pUUID(request))
	return all, err
}
