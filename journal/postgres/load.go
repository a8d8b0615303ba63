package postgres

import (
	"bytes"
	"context"
	"slices"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/flow"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/journal/store"
)

// loadStatements are the statements that Load and More send.
var loadStatements = []string{
	"begin", "load_lock", "load_lock_skip", "clock", "load_jobs", "load_instances", "load_receipts",
	"load_rows", "load_all_rows", "load_results", "load_payloads", "load_unfinished",
}

// wanted is what one trip reads, each key once, as parallel lists.
type wanted struct {
	jobs      []journal.JobID
	instances []place
	receipts  []rowKey
	rows      []rowKey
	results   []place
	allRows   []journal.JobID
	effects   []rowKey // requests whose effects are asked for
}

// place is an instance, or an output, of a job.
type place struct {
	job journal.JobID
	key collation.InstanceKey
}

// Load opens the transaction, locks the jobs and reads what the wants name, in
// one round trip (J3, J6).
func (c *committer) Load(ctx context.Context, wants []store.Want, wait bool) (*store.Loaded, error) {
	_ = c.Rollback(ctx)
	if c.conn == nil || c.conn.pg.IsClosed() {
		c.drop()
		if err := c.connect(ctx); err != nil {
			return nil, classify("load", err)
		}
	}
	c.open = true
	w, states := gather(wants)
	c.states = states
	loaded, err := c.load(ctx, w, wait)
	if err == nil {
		err = c.payloads(ctx)
	}
	if err != nil {
		_ = c.Rollback(ctx)
		return nil, classify("load", err)
	}
	return loaded, nil
}

// gather collects what the wants name, and the states that will hold it: a nil
// member says that it was asked for.
func gather(wants []store.Want) (*wanted, map[journal.JobID]*collation.State) {
	w := &wanted{
		instances: make([]place, 0, 2*len(wants)), receipts: make([]rowKey, 0, len(wants)),
		rows: make([]rowKey, 0, len(wants)), results: make([]place, 0, 2*len(wants)),
	}
	states := make(map[journal.JobID]*collation.State, len(wants))
	for i := range wants {
		want := &wants[i]
		st := states[want.Job]
		if st == nil {
			st = &collation.State{
				Instances:  make(map[collation.InstanceKey]*collation.Instance, len(want.Instances)),
				Receipts:   make(map[journal.GUID]*collation.Receipt, 1),
				Rows:       make(map[journal.GUID]*collation.Row, 1),
				Results:    make(map[collation.InstanceKey]*flow.Result, len(want.Results)),
				Unfinished: map[journal.GUID]bool{},
			}
			states[want.Job] = st
			w.jobs = append(w.jobs, want.Job)
		}
		w.ask(want.Job, st, want.Instances, want.Results)
		if _, asked := st.Receipts[want.Receipt]; !asked && !want.Receipt.IsZero() {
			st.Receipts[want.Receipt] = nil
			w.receipts = append(w.receipts, rowKey{want.Job, want.Receipt})
		}
		if _, asked := st.Rows[want.Row]; !asked && !want.Row.IsZero() {
			st.Rows[want.Row] = nil
			w.rows = append(w.rows, rowKey{want.Job, want.Row})
		}
	}
	slices.SortFunc(w.jobs, func(a, b journal.JobID) int { return bytes.Compare(a[:], b[:]) })
	return w, states
}

// ask adds instances and results that the state was not asked for before.
func (w *wanted) ask(job journal.JobID, st *collation.State, instances, results []collation.InstanceKey) {
	for _, k := range instances {
		if _, asked := st.Instances[k]; !asked {
			st.Instances[k] = nil
			w.instances = append(w.instances, place{job, k})
		}
	}
	for _, k := range results {
		if _, asked := st.Results[k]; !asked {
			st.Results[k] = nil
			w.results = append(w.results, place{job, k})
		}
	}
}

func (c *committer) load(ctx context.Context, w *wanted, wait bool) (*store.Loaded, error) {
	lock := "load_lock"
	if !wait {
		lock = "load_lock_skip"
	}
	b := c.conn.batch()
	jobs := pUUIDs(w.jobs)
	b.queue("begin")
	b.queue(lock, jobs)
	b.queue("clock")
	b.queue("load_jobs", jobs)
	w.queue(b)
	r := b.send(ctx)
	r.each(nil)
	locked := make(map[journal.JobID]bool, len(w.jobs))
	r.each(func(v row) error { locked[v.job(0)] = true; return nil })
	loaded := &store.Loaded{
		States: make(map[journal.JobID]*collation.State, len(w.jobs)),
		Busy:   map[journal.JobID]bool{}, Tombs: map[journal.JobID]bool{},
	}
	r.each(func(v row) error { loaded.Now = collation.Micros(v.int(0)); return nil })
	r.each(func(v row) error {
		job := c.s.readJob(v)
		switch st := c.states[job.ID]; {
		case !locked[job.ID]:
			loaded.Busy[job.ID] = true
		case job.State == journal.JobExpired:
			loaded.Tombs[job.ID] = true
		default:
			st.Job, st.Now = job, loaded.Now
			loaded.States[job.ID] = st
		}
		return nil
	})
	c.read(r, w)
	c.states = loaded.States
	return loaded, r.close()
}

// readJob reads the columns of load_jobs.
func (s *Store) readJob(v row) collation.Job {
	return collation.Job{
		ID: v.job(0), Space: s.cfg.Space, Key: v.text(1), Generation: v.int(2),
		Flow:  journal.FlowRef{Name: v.text(3), Version: v.text(4), Digest: v.digest(5)},
		State: journal.JobState(v.text(6)), Semaphore: v.int(7),
		Head: journal.Head{Seq: v.int(8), Hash: v.digest(9)}, Started: collation.Micros(v.int(10)), Trace: v.text(11),
	}
}

// queue adds the reading statements that have something to read; read must
// follow the same order.
func (w *wanted) queue(b *batch) {
	if len(w.instances) > 0 {
		b.queue("load_instances", places(w.instances)...)
	}
	if len(w.receipts) > 0 {
		job, guid := rowKeys(w.receipts)
		b.queue("load_receipts", job, guid)
	}
	if len(w.rows) > 0 {
		job, guid := rowKeys(w.rows)
		b.queue("load_rows", job, guid)
	}
	if len(w.allRows) > 0 {
		b.queue("load_all_rows", pUUIDs(w.allRows))
	}
	if len(w.results) > 0 {
		b.queue("load_results", places(w.results)...)
	}
	if len(w.effects) > 0 {
		job, guid := rowKeys(w.effects)
		b.queue("load_unfinished", job, guid)
	}
}

func places(ps []place) [][]byte {
	n := len(ps)
	job, activity, dad := uuids(n), texts(n), uuids(n)
	for _, p := range ps {
		job.uuid(p.job)
		activity.text(p.key.Activity)
		dad.uuid(p.key.DAD.Key())
	}
	return [][]byte{job.value(), activity.value(), dad.value()}
}

// read puts what queue asked for into the states.
func (c *committer) read(r *results, w *wanted) {
	if len(w.instances) > 0 {
		r.each(func(v row) error {
			p := w.instances[v.int(0)-1]
			c.states[p.job].Instances[p.key] = &collation.Instance{
				Ledger: collation.ActivityLedger(v.int(1)), ResultSeq: v.int(2), Code: int(v.int(3)),
			}
			return nil
		})
	}
	if len(w.receipts) > 0 {
		r.each(func(v row) error { return c.readReceipt(w.receipts[v.int(0)-1], v) })
	}
	if len(w.rows) > 0 {
		r.each(c.readRow)
	}
	if len(w.allRows) > 0 {
		r.each(func(v row) error {
			if _, known := c.states[v.job(1)].Rows[v.guid(0)]; known {
				return nil // as read before, and moved on since by plans of this batch
			}
			return c.readRow(v)
		})
	}
	if len(w.results) > 0 {
		r.each(func(v row) error {
			if v.null(1) {
				return nil
			}
			p := w.results[v.int(0)-1]
			e, err := decode(p.job, v.bytes(1))
			if err != nil {
				return err
			}
			res := collation.ResultOf(e)
			if e.Response != nil && !e.Response.Ref.IsZero() && res.Output == nil {
				c.refs = append(c.refs, ref{p.job, e.Response.Ref, res})
			}
			c.states[p.job].Results[p.key] = res
			return nil
		})
	}
	if len(w.effects) > 0 {
		r.each(func(v row) error {
			k := w.effects[v.int(0)-1]
			c.states[k.job].Unfinished[k.guid] = v.bool(1)
			return nil
		})
	}
}

func (c *committer) readRow(v row) error {
	x := readRow(v, 0)
	c.states[x.Job].Rows[x.GUID] = x
	return nil
}

func (c *committer) readReceipt(k rowKey, v row) error {
	x := &collation.Receipt{Ledger: collation.GUIDLedger(v.int(1)), Verdict: journal.Verdict(v.text(2)), Seq: v.int(3)}
	if !v.null(4) {
		e, err := decode(k.job, v.bytes(4))
		if err != nil {
			return err
		}
		x.Response = e.Response
	}
	c.states[k.job].Receipts[k.guid] = x
	return nil
}
