package postgres

import (
	"bytes"
	"context"
	"errors"
	"slices"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/flow"
	"github.com/quipu-journal/quipu/internal/store"
	"github.com/quipu-journal/quipu/journal"
)

// wanted is what one trip reads, each key once, in parallel lists.
type wanted struct {
	jobs       []journal.JobID
	whole      []journal.JobID // jobs that are to be read whole
	instances  []place
	receipts   []rowKey
	rows       []rowKey
	results    []place
	holders    []string        // keys of starts
	orders     []journal.JobID // children that may have to begin
	chains     []rowKey        // requests whose effects are written
	effectKeys []effectKey
	pastKeys   []effectKey // effects that are looked up in earlier generations, too
	letters    []int64
	mail
	further // what only some decisions ask for
}

// place names an instance or an output of a job.
type place struct {
	job journal.JobID
	key collation.InstanceKey
}

// Load opens the transaction, locks the jobs and reads what the wants name, in
// one round trip (J3, J6).
func (c *committer) Load(ctx context.Context, wants []store.Want, wait bool) (*store.Loaded, error) {
	_ = c.Rollback(ctx)
	if err := c.ready(ctx); err != nil {
		return nil, classify("load", err)
	}
	c.open = true
	w, states := gather(wants)
	c.states, c.mail = states, &w.mail
	c.span, c.locked = c.s.numbers.span(w.jobs), noJobs
	loaded, err := c.load(ctx, w, wait)
	if errors.Is(err, errMoved) || err == nil && !c.span.holds(c.locked) {
		return c.Load(ctx, wants, wait) // retention has moved a job (W11); by now its number is known
	}
	c.span = c.locked
	if err == nil && wait {
		err = c.goneChains(ctx, w, loaded)
	}
	if err == nil {
		err = c.payloads(ctx)
	}
	if err != nil {
		_ = c.Rollback(ctx)
		return nil, classify("load", err)
	}
	return loaded, nil
}

// gather collects what the wants name, and the states that will hold it. A nil member of a state
// marks what was asked for.
func gather(wants []store.Want) (*wanted, map[journal.JobID]*collation.State) {
	w := &wanted{
		instances: make([]place, 0, 2*len(wants)), receipts: make([]rowKey, 0, len(wants)),
		rows: make([]rowKey, 0, len(wants)), results: make([]place, 0, 2*len(wants)),
	}
	states := make(map[journal.JobID]*collation.State, len(wants))
	for i := range wants {
		want := &wants[i]
		if want.Key != "" {
			w.holders = append(w.holders, want.Key)
		}
		if !want.Order.IsZero() {
			w.orders = append(w.orders, want.Order)
		}
		if want.Letter != 0 {
			w.letters = append(w.letters, want.Letter)
		}
		w.askChain(want)
		w.askMail(want)
		if want.Job.IsZero() {
			continue
		}
		st := states[want.Job]
		if st == nil {
			st = &collation.State{
				Instances:  make(map[collation.InstanceKey]*collation.Instance, len(want.Instances)),
				Receipts:   make(map[journal.GUID]*collation.Receipt, 1),
				Rows:       make(map[journal.GUID]*collation.Row, 1),
				Results:    make(map[collation.InstanceKey]*flow.Result, len(want.Results)),
				Unfinished: map[journal.GUID]bool{}, Record: map[journal.GUID][]store.EffectRow{},
				Waits:  map[journal.GUID]*collation.Wait{},
				Latest: map[string]*flow.Result{}, Keys: map[string]journal.JobID{},
			}
			states[want.Job] = st
			w.jobs = append(w.jobs, want.Job)
		}
		if want.Whole {
			w.whole = append(w.whole, want.Job)
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
	for _, ids := range [][]journal.JobID{w.jobs, w.orders, w.whole} {
		slices.SortFunc(ids, func(a, b journal.JobID) int { return bytes.Compare(a[:], b[:]) })
	}
	w.orders, w.whole = slices.Compact(w.orders), slices.Compact(w.whole)
	return w, states
}

// ask adds instances and results that the state has not been asked for yet.
func (w *wanted) ask(job journal.JobID, st *collation.State, instances, results []collation.InstanceKey) {
	at := func(k collation.InstanceKey) place { return place{job, k} }
	want(&st.Instances, &w.instances, instances, at)
	want(&st.Results, &w.results, results, at)
}

// want adds the keys that a map of a state has not been asked for yet. A member, even nil, marks what
// was asked for.
func want[K comparable, V, X any](known *map[K]V, all *[]X, keys []K, of func(K) X) {
	for _, k := range keys {
		if _, asked := (*known)[k]; asked {
			continue
		}
		if *known == nil {
			*known = make(map[K]V, 1)
		}
		(*known)[k] = *new(V)
		*all = append(*all, of(k))
	}
}

func (c *committer) load(ctx context.Context, w *wanted, wait bool) (*store.Loaded, error) {
	loaded := &store.Loaded{
		States: make(map[journal.JobID]*collation.State, len(w.jobs)),
		Busy:   map[journal.JobID]bool{}, Tombstones: map[journal.JobID]bool{},
		Holders: map[string]*collation.Holder{}, Orders: map[journal.JobID]*collation.Row{},
		Chains:  make(map[collation.RowKey]*collation.Chain, len(w.chains)),
		Boxes:   make(map[journal.JobID]*collation.Box, len(w.boxes)),
		Known:   make(map[collation.RowKey]store.SignalState, len(w.known)),
		Letters: make(map[int64]*collation.Letter, len(w.letters)),
	}
	locks, reads := c.readJobs(w, loaded, wait)
	chains := c.s.readChains(w, loaded, c.s.numbers.span(w.effectJobs()), wait)
	steps := append(append([]step{{"begin", nil, nil}}, locks...), w.lockMail(loaded, wait)...)
	if wait {
		steps, chains = append(steps, chains...), nil
	}
	absent := !wait && len(w.orders) > 0                        // the jobs of children that are to begin do not exist
	if wait || absent || len(w.jobs) == 0 || len(w.boxes) > 0 { // otherwise load_jobs_skip returns it
		steps = append(steps, clock(&loaded.Now))
	}
	if absent {
		reads = c.readUnlocked(w, loaded)
	}
	steps = append(append(append(steps, reads...), c.s.readStarts(w, loaded, wait)...), w.readMail(loaded)...)
	steps = append(append(steps, c.reads(w)...), c.readsWhole(w, loaded)...)
	steps = append(steps, w.readLetters(loaded)...) // under the locks of their rows
	// The chains come last: nothing before them, which may wait, holds a chain's lock.
	err := c.conn.run(ctx, append(steps, chains...)...)
	if !wait && !absent && err == nil {
		err = c.unlocked(ctx, w, loaded)
	}
	c.states = loaded.States
	for _, st := range loaded.States {
		st.Now = loaded.Now // one time for the whole batch, also for its publications
	}
	for _, h := range loaded.Chains {
		h.Now = loaded.Now
	}
	for _, box := range loaded.Boxes {
		box.Now = loaded.Now
	}
	return loaded, err
}

// readJobs returns the statements that lock jobs and read their headers. Without wait it is one
// statement, which reads what it locks.
func (c *committer) readJobs(w *wanted, loaded *store.Loaded, wait bool) (locks, reads []step) {
	if len(w.jobs) == 0 {
		return nil, nil
	}
	jobs := [][]byte{pUUIDs(w.jobs)}
	read := func(v row, n int64) error {
		job := c.s.readJob(v)
		c.s.numbers.set(job.ID, n)
		c.locked = c.locked.with(n)
		if job.State == journal.JobExpired {
			loaded.Tombstones[job.ID] = true
			return nil
		}
		st := c.states[job.ID]
		st.Job, st.Now = job, loaded.Now
		loaded.States[job.ID] = st
		return nil
	}
	if !wait {
		return []step{{"load_jobs_skip", jobs, func(v row) error {
			loaded.Now = collation.Micros(v.int(jobWidth))
			return read(v, v.int(jobWidth+1))
		}}}, nil
	}
	return []step{{"load_lock", jobs, nil}}, []step{{"load_jobs", jobs, func(v row) error { return read(v, v.int(jobWidth)) }}}
}

// readUnlocked returns the statement that finds out why a Load without wait did not lock a job: it
// is a tombstone, or another transaction has it.
func (c *committer) readUnlocked(w *wanted, loaded *store.Loaded) []step {
	if len(w.jobs) == 0 {
		return nil
	}
	return []step{{"load_jobs", [][]byte{pUUIDs(w.jobs)}, func(v row) error {
		switch job := c.s.readJob(v); {
		case job.State == journal.JobExpired:
			loaded.Tombstones[job.ID] = true
		case loaded.States[job.ID] == nil:
			loaded.Busy[job.ID] = true
		}
		return nil
	}}}
}

// unlocked finds that out in a second trip, which is rarely needed.
func (c *committer) unlocked(ctx context.Context, w *wanted, loaded *store.Loaded) error {
	w.jobs = slices.DeleteFunc(w.jobs, func(id journal.JobID) bool { return loaded.States[id] != nil })
	steps := c.readUnlocked(w, loaded)
	if len(steps) == 0 {
		return nil
	}
	if loaded.Now == collation.Never { // none was locked, so the time is still unknown
		steps = append(steps, clock(&loaded.Now))
	}
	return c.conn.run(ctx, steps...)
}

// readStarts returns the statements for starts: which job has a key, and the locked rows of the
// starts of children.
func (s *Store) readStarts(w *wanted, loaded *store.Loaded, wait bool) (steps []step) {
	if len(w.orders) > 0 {
		lock := "load_order_locks"
		if !wait {
			lock = "load_order_locks_skip"
		}
		ids, locked := [][]byte{pUUIDs(w.orders)}, make(map[journal.JobID]bool, len(w.orders))
		steps = append(
			steps, step{lock, ids, func(v row) error { locked[v.job(0)] = true; return nil }},
			step{"load_orders", ids, func(v row) error {
				x, err := readRow(v)
				switch {
				case err != nil:
					return err
				case locked[x.Job]:
					loaded.Orders[x.Job] = x
				default:
					loaded.Busy[x.Job] = true
				}
				return nil
			}},
		)
	}
	return append(steps, asked("load_holders", w.holders, (*columns).text, func(key string, v row) error {
		h, err := s.readHolder(v)
		if err == nil {
			loaded.Holders[key] = h
		}
		return err
	})...)
}

// asked returns the step that reads what was asked for; none if nothing was. The first column of a
// row is the place of its key in the parameters, from 1.
func asked[K any](name string, keys []K, put func(*columns, K), visit func(K, row) error, more ...[]byte) []step {
	if len(keys) == 0 {
		return nil
	}
	return []step{{name, append(arrays(keys, put), more...), func(v row) error { return visit(keys[v.int(0)-1], v) }}}
}

// reads returns the statements that read the wanted rows into the states.
func (c *committer) reads(w *wanted) []step {
	span := c.span.ends()
	return slices.Concat(
		asked("load_instances", w.instances, putPlace, func(p place, v row) error {
			c.states[p.job].Instances[p.key] = readInstance(v[1:])
			return nil
		}, span...),
		asked("load_receipts", w.receipts, putKey, c.readReceipt, span...),
		asked("load_rows", w.rows, putKey, func(k rowKey, v row) (err error) {
			c.states[k.job].Rows[k.guid], err = readRow(v[1:])
			return err
		}),
		asked("load_results", w.results, putPlace, func(p place, v row) error {
			r, err := c.readResult(p, v, 1)
			if r != nil {
				c.states[p.job].Results[p.key] = r
			}
			return err
		}, span...),
		c.readsFurther(&w.further),
	)
}

func putPlace(c *columns, p place) {
	putActivity(c, p)
	c.uuid(p.key.DAD.Key())
}

func putActivity(c *columns, p place) { c.uuid(p.job); c.text(p.key.Activity) }

func putKey(c *columns, k rowKey) { c.uuid(k.job); c.uuid(k.guid) }

// readResult reads a result from the entry in a column, nil if there is none. An output that is
// stored beside its entry is read later (E6).
func (c *committer) readResult(p place, v row, column int) (*flow.Result, error) {
	if v.null(column) {
		return nil, nil
	}
	e, err := c.s.sealed(p.job, v.bytes(column))
	if err == nil {
		err = p.holds(e)
	}
	if err != nil {
		return nil, err
	}
	r := collation.ResultAt(e, p.key)
	if x := e.Response; x != nil && !x.Ref.IsZero() && r.Output == nil && r.Error == nil && e.Result == nil {
		c.refs = append(c.refs, ref{p.job, x.Ref, r})
	}
	return r, nil
}

func (c *committer) readReceipt(k rowKey, v row) error {
	x := &collation.Receipt{Ledger: collation.GUIDLedger(v.int(1)), Verdict: journal.Verdict(v.text(2)), Seq: v.int(3)}
	if !v.null(4) {
		e, err := c.s.sealed(k.job, v.bytes(4))
		if err != nil {
			return err
		}
		x.Response = e.Response
	}
	c.states[k.job].Receipts[k.guid] = x
	return nil
}
