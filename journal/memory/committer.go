package memory

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/flow"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/journal/store"
)

var (
	errOpen   = errors.New("memory: a transaction is open already: Commit or Rollback first")
	errNone   = errors.New("memory: no transaction is open: Load first")
	errLimits = errors.New("memory: over the limit")
)

type committer struct {
	s       *Store
	session journal.GUID
	seq     int64
	txn     *txn
	states  map[journal.JobID]*collation.State
}

// Committer opens a committer with a new session number (L1).
func (s *Store) Committer(context.Context) (store.Committer, error) {
	if err := s.before("committer"); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sessions++
	return &committer{s: s, session: session(s.sessions)}, nil
}

// Session implements store.Committer.
func (c *committer) Session() (journal.GUID, int64) { return c.session, c.seq }

// Close ends the session: its markers may be pruned a day from now.
func (c *committer) Close() {
	c.s.mu.Lock()
	defer c.s.mu.Unlock()
	c.rollback()
	if _, again := c.s.ended[c.session]; !again {
		c.s.ended[c.session] = c.s.now()
	}
}

// Rollback implements store.Committer.
func (c *committer) Rollback(context.Context) error {
	c.s.mu.Lock()
	defer c.s.mu.Unlock()
	c.rollback()
	return nil
}

func (c *committer) rollback() {
	if c.txn != nil {
		c.s.release(c.txn)
		c.txn, c.states = nil, nil
	}
}

// Load implements store.Committer.
func (c *committer) Load(ctx context.Context, wants []store.Want, wait bool) (*store.Loaded, error) {
	if len(wants) > store.MaxBatch {
		return nil, fmt.Errorf("%w: Load of %d messages, at most %d", errLimits, len(wants), store.MaxBatch)
	}
	if c.txn != nil {
		return nil, errOpen
	}
	if err := c.s.before("load"); err != nil {
		return nil, err
	}
	c.s.mu.Lock()
	defer c.s.mu.Unlock()
	c.txn = newTxn()
	l := &store.Loaded{
		States: map[journal.JobID]*collation.State{}, Busy: map[journal.JobID]bool{}, Tombs: map[journal.JobID]bool{},
	}
	if err := c.lock(ctx, wants, wait, l); err != nil {
		c.rollback()
		return nil, err
	}
	l.Now = c.s.now()
	for i := range wants {
		c.load(&wants[i], l)
	}
	c.states = l.States
	return l, nil
}

// lock takes the jobs of the wants in the order of their ids.
func (c *committer) lock(ctx context.Context, wants []store.Want, wait bool, l *store.Loaded) error {
	ids := map[journal.JobID]bool{}
	for i := range wants {
		ids[wants[i].Job] = true
	}
	for _, id := range sortedIDs(ids) {
		j := c.s.jobs[id]
		switch {
		case j == nil:
			continue
		case j.lock.owner != nil && !wait:
			l.Busy[id] = true
			continue
		}
		if err := c.s.acquire(ctx, j, c.txn); err != nil {
			return err
		}
	}
	return nil
}

// load reads one want into the job's state.
func (c *committer) load(w *store.Want, l *store.Loaded) {
	j := c.s.jobs[w.Job]
	if j == nil || l.Busy[w.Job] {
		return
	}
	if j.State == journal.JobExpired {
		l.Tombs[w.Job] = true
		return
	}
	st := l.States[w.Job]
	if st == nil {
		st = &collation.State{
			Job: j.Job, Now: l.Now, Instances: map[collation.InstanceKey]*collation.Instance{},
			Receipts: map[journal.GUID]*collation.Receipt{}, Rows: map[journal.GUID]*collation.Row{},
			Results: map[collation.InstanceKey]*flow.Result{},
		}
		l.States[w.Job] = st
	}
	if !w.Receipt.IsZero() {
		st.Receipts[w.Receipt] = j.receipt(w.Receipt)
	}
	if !w.Row.IsZero() {
		c.txn.rows[w.Row] = true
		st.Rows[w.Row] = clone(j.rows[w.Row])
	}
	j.read(st, w.Instances, w.Results)
}

// More implements store.Committer.
func (c *committer) More(_ context.Context, needs map[journal.JobID]*collation.Need) error {
	if c.txn == nil {
		return errNone
	}
	if err := c.s.before("more"); err != nil {
		return err
	}
	c.s.mu.Lock()
	defer c.s.mu.Unlock()
	for id, n := range needs {
		j, st := c.s.jobs[id], c.states[id]
		if j == nil || st == nil {
			return fmt.Errorf("memory: more of job %s, which was not loaded", id)
		}
		j.read(st, n.Instances, n.Results)
		for _, request := range n.Effects {
			if st.Unfinished == nil {
				st.Unfinished = map[journal.GUID]bool{}
			}
			st.Unfinished[request] = j.unfinished(request)
		}
		if n.AllRows {
			c.txn.allRows[id] = true
			for g, row := range j.rows {
				if _, asked := st.Rows[g]; !asked { // what was asked for may have been moved on by a plan
					st.Rows[g] = clone(row)
				}
			}
			st.AllRows = true
		}
	}
	return nil
}

// read loads instances and results that the state does not have yet.
func (j *job) read(st *collation.State, instances, results []collation.InstanceKey) {
	for _, key := range instances {
		if _, asked := st.Instances[key]; !asked {
			st.Instances[key] = clone(j.instances[key])
		}
	}
	for _, key := range results {
		if _, asked := st.Results[key]; !asked {
			st.Results[key] = j.result(key)
		}
	}
}

func clone[T any](p *T) *T {
	if p == nil {
		return nil
	}
	v := *p
	return &v
}

// result reads the output of an instance out of its entry (J7); an output that
// is stored beside comes by its digest (E6).
func (j *job) result(key collation.InstanceKey) *flow.Result {
	i := j.instances[key]
	if i == nil || i.ResultSeq == 0 {
		return nil
	}
	e := j.entry(i.ResultSeq)
	r := collation.ResultOf(e)
	if e.Response != nil && !e.Response.Ref.IsZero() && r.Error == nil {
		r.Output = slices.Clone(j.payloads[e.Response.Ref])
	}
	return r
}

// receipt reads a receipt, while steps are open with the response that its
// entry recorded.
func (j *job) receipt(g journal.GUID) *collation.Receipt {
	r := clone(j.receipts[g])
	if r != nil && r.Verdict == journal.VerdictHandled && !r.Ledger.Complete() {
		r.Response = j.entry(r.Seq).Response
	}
	return r
}

// entry decodes an entry of the main chain that this store wrote.
func (j *job) entry(seq int64) *journal.Entry {
	e, err := journal.DecodeTrusted(slices.Clone(j.chains[journal.MainChain][seq-1].Body))
	if err != nil {
		panic(fmt.Sprintf("memory: entry %d of job %s, which was encoded here: %v", seq, j.ID, err))
	}
	return e
}

// Commit implements store.Committer.
func (c *committer) Commit(_ context.Context, plans []store.Chained) error {
	if c.txn == nil {
		return errNone
	}
	if err := c.s.before("commit"); err != nil {
		_ = c.Rollback(context.Background())
		return err
	}
	if err := c.commit(plans); err != nil {
		return err
	}
	return c.s.after("commit")
}

func (c *committer) commit(plans []store.Chained) error {
	c.s.mu.Lock()
	defer c.s.mu.Unlock()
	defer c.rollback()
	if len(plans) > store.MaxBatch {
		return fmt.Errorf("%w: Commit of %d plans, at most %d", errLimits, len(plans), store.MaxBatch)
	}
	var u undo
	for i := range plans {
		p := &plans[i]
		if p.Plan.Entry == nil {
			continue
		}
		if !slices.Contains(c.txn.jobs, p.Plan.Job) {
			u.revert()
			return fmt.Errorf("memory: commit: job %s was not loaded in this transaction", p.Plan.Job)
		}
		if err := c.s.apply(&u, p); err != nil {
			u.revert()
			return fmt.Errorf("memory: commit message %s of job %s: %w", p.Plan.Message, p.Plan.Job, err)
		}
	}
	c.seq++
	c.s.markers[marker{c.session, c.seq}] = c.s.now()
	return nil
}

// Prune implements store.Engine.
func (s *Store) Prune(_ context.Context, limit int) (int, error) {
	n := 0
	err := s.write("prune", func(u *undo) error {
		yesterday := s.now() - 24*3600*1e6
		markers := slices.SortedFunc(maps.Keys(s.markers), func(a, b marker) int {
			return cmp.Or(compareIDs(a.session, b.session), cmp.Compare(a.seq, b.seq))
		})
		for _, m := range markers {
			if end, ended := s.ended[m.session]; ended && end < yesterday && n < limit {
				drop(u, s.markers, m)
				n++
			}
		}
		return nil
	})
	return n, err
}

// unfinished reports whether an effect of the request has a start and no end.
func (j *job) unfinished(request journal.GUID) bool {
	for _, e := range j.effects {
		if e.request == request && e.State == store.EffectStarted {
			return true
		}
	}
	return false
}
