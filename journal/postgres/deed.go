package postgres

import (
	"context"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/journal/store"
)

// deed is a transaction that the store decides by itself, besides the plans of
// the engine: a held request, an operator's action. It holds the job's lock,
// then the row's (J3), and appends one entry to the main chain.
type deed struct {
	s      *Store
	c      *conn
	now    collation.Micros
	job    collation.Job
	row    *collation.Row // nil: gone
	ledger collation.ActivityLedger

	entries []entryWrite
	undead  []rowKey
	letters []letterWrite
	more    func(*batch)
}

var deedStatements = append([]string{
	"load_lock", "clock", "load_jobs", "row_lock", "load_instances",
}, recordStatements...)

// openTurn begins a deed on a request's row; what it finds is the caller's to
// judge, who commits or abandons.
func (s *Store) openTurn(ctx context.Context, c *conn, job journal.JobID, guid journal.GUID) (*deed, error) {
	if err := c.require(ctx, deedStatements...); err != nil {
		return nil, err
	}
	d := &deed{s: s, c: c}
	b := c.batch()
	id := pUUIDs([]journal.JobID{job})
	b.queue("begin")
	b.queue("load_lock", id)
	b.queue("clock")
	b.queue("load_jobs", id)
	b.queue("row_lock", pUUID(job), pUUID(guid))
	r := b.send(ctx)
	r.each(nil)
	r.each(nil)
	r.each(func(v row) error { d.now = collation.Micros(v.int(0)); return nil })
	r.each(func(v row) error { d.job = s.readJob(v); return nil })
	r.each(func(v row) (err error) { d.row, err = readRow(v); return err })
	err := r.close()
	if err == nil && d.row != nil {
		key := collation.InstanceKey{Activity: d.row.Activity, DAD: d.row.DAD}
		err = c.query(ctx, "load_instances", func(v row) error {
			d.ledger = collation.ActivityLedger(v.int(1))
			return nil
		}, places([]place{{job, key}})...)
	}
	if err != nil {
		abandon(ctx, c)
		return nil, classify("job", err)
	}
	return d, nil
}

// entry begins an entry of the main chain.
func (d *deed) entry(kind journal.Kind) *journal.Entry {
	return &journal.Entry{
		Space: d.s.cfg.Space, Job: d.job.ID, Generation: d.job.Generation, Seq: d.job.Head.Seq + 1, Kind: kind,
		Writer: d.s.cfg.Writer, Build: d.s.cfg.Build, Time: int64(d.now), Trace: d.job.Trace,
	}
}

// commit writes the entry, the row as it is now, and what was added to the
// deed.
func (d *deed) commit(ctx context.Context, e *journal.Entry) error {
	before := d.job.Head.Seq
	chained := store.Chain(&d.job, &collation.Plan{Job: d.job.ID, Entry: e})
	w := &writes{
		entries: append(d.entries, entryWrite{job: d.job.ID, seq: e.Seq, body: chained.Body, hash: chained.Hash}),
		undead:  d.undead,
		letters: d.letters,
	}
	if d.row != nil {
		w.rows = []*rowWrite{{key: rowKey{d.job.ID, d.row.GUID}, stood: true, after: d.row}}
	}
	return d.s.conclude(ctx, d.c, func(b *batch) {
		queueHeads(b, []*jobWrite{{job: d.job.ID, semBefore: d.job.Semaphore, seqBefore: before, seqAfter: e.Seq, hash: chained.Hash}})
		w.queue(b)
		if d.more != nil {
			d.more(b)
		}
	})
}

// conclude commits a transaction of the pool under a marker of its own, so
// that an unknown outcome can be found out (J4).
func (s *Store) conclude(ctx context.Context, c *conn, writes func(*batch)) error {
	m := marker{session: newSession(), seq: 1, pid: c.pg.PID(), name: c.name}
	ctx = context.WithoutCancel(ctx)
	err := s.commit(ctx, c, m, writes)
	switch {
	case err == nil:
		return nil
	case undecided(err):
		return s.resolve(ctx, m, err)
	}
	abandon(ctx, c)
	return classify("commit", err)
}
