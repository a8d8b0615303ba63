package memory

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/flow"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/journal/store"
)

var (
	errOpen = errors.New("memory: a transaction is open already: Commit or Rollback first")
	errNone = errors.New("memory: no transaction is open: Load first")
)

type committer struct {
	s       *Store
	session journal.GUID
	seq     int64
	txn     *txn
	states  map[journal.JobID]*collation.State
}

// Committer opens a committer with a new session number (L1).
func (s *Store) Committer(context.Context, bool) (store.Committer, error) {
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

// Close ends the session.
func (c *committer) Close() {
	c.s.mu.Lock()
	defer c.s.mu.Unlock()
	c.rollback()
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
	if err := store.AtMost("load", len(wants), store.MaxBatch); err != nil {
		return nil, err
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
	if err := c.lock(ctx, wants, wait); err != nil {
		c.rollback()
		return nil, err
	}
	l := c.s.outside(wants)
	for i := range wants {
		if err := c.load(&wants[i], l); err != nil {
			c.rollback()
			return nil, err
		}
		c.order(l, wants[i].Order)
		c.chain(&wants[i], l)
		c.mailboxOf(&wants[i], l)
		if x := c.s.read(wants[i].Letter); x != nil {
			l.Letters[x.ID] = x
		}
	}
	c.states = l.States
	return l, nil
}

// lock locks the jobs, the starts of children, and the mailboxes of the wants, each in the order
// of their ids.
func (c *committer) lock(ctx context.Context, wants []store.Want, wait bool) error {
	var jobs, boxes []journal.JobID
	for i := range wants {
		w := &wants[i]
		for _, id := range []journal.JobID{w.Job, w.Order, w.Chain.Job} {
			if c.s.known(id) != nil || c.s.ordered(id) != nil { // nothing changes a tombstone whose key was used again
				jobs = append(jobs, id)
			}
		}
		if !w.Box.IsZero() {
			boxes = append(boxes, w.Box)
		}
	}
	if err := c.lockAll(ctx, jobs, wait); err != nil {
		return err
	}
	return c.lockAll(ctx, boxes, wait)
}

func (c *committer) lockAll(ctx context.Context, ids []journal.JobID, wait bool) error {
	slices.SortFunc(ids, compareIDs)
	for _, id := range slices.Compact(ids) {
		if c.s.owner(id) != nil && !wait {
			continue // load finds it busy
		}
		if err := c.s.acquire(ctx, id, c.txn); err != nil {
			return err
		}
	}
	return nil
}

// order reads the row of the start of a child that has not begun.
func (c *committer) order(l *store.Loaded, child journal.JobID) {
	row := c.s.ordered(child)
	switch {
	case row == nil:
	case c.s.owner(child) != c.txn:
		l.Busy[child] = true
	default:
		c.txn.allRows[child] = true
		l.Orders[child] = copyRow(row)
	}
}

// load reads one want into the state of its job.
func (c *committer) load(w *store.Want, l *store.Loaded) error {
	j := c.s.jobs[w.Job]
	switch {
	case j == nil:
		return nil
	case j.replaced != collation.Never:
		l.Tombstones[w.Job] = true
		return nil
	case c.s.owner(j.ID) != c.txn: // also a job that began while this transaction waited for others
		l.Busy[w.Job] = true
		return nil
	case j.State == journal.JobExpired:
		l.Tombstones[w.Job] = true
		return nil
	}
	st := l.States[w.Job]
	if st == nil {
		st = collation.NewState(j.Job, l.Now)
		l.States[w.Job] = st
	}
	if !w.Receipt.IsZero() {
		st.Receipts[w.Receipt] = j.receipt(w.Receipt)
	}
	if !w.Row.IsZero() {
		c.txn.rows[w.Row] = true
		st.Rows[w.Row] = copyRow(c.s.row(j.ID, w.Row))
	}
	if err := j.read(st, w.Instances, w.Results, nil); err != nil || !w.Whole {
		return err
	}
	return c.readWhole(j, st)
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
		if n.Further > 0 {
			continue // a mailbox is always read whole
		}
		j, st := c.s.jobs[id], c.states[id]
		if j == nil || st == nil {
			return fmt.Errorf("memory: more of job %s, which was not loaded", id)
		}
		if err := j.read(st, n.Instances, n.Results, n.Latest); err != nil {
			return err
		}
		c.more(j, st, n)
		if err := c.morePast(j, st, n); err != nil {
			return err
		}
		if n.AllRows {
			c.everything(j, st)
		}
	}
	return nil
}

// more reads what Load does not read. It does not replace what the state holds already, since a
// plan may have changed it.
func (c *committer) more(j *job, st *collation.State, n *collation.Need) {
	for _, request := range n.Effects {
		st.Unfinished[request] = j.unfinished(request)
	}
	for _, request := range n.Record {
		ask(st.Record, request, func() []store.EffectRow {
			return c.s.effectRows(j, func(f *collation.Effect) bool { return f.Request == request })
		})
	}
	for _, k := range n.Rows {
		if k.Job == j.ID {
			c.txn.rows[k.GUID] = true
		}
		ask(st.Rows, k.GUID, func() *collation.Row { return copyRow(c.s.row(k.Job, k.GUID)) })
	}
	for _, g := range n.Waits {
		ask(st.Waits, g, func() *collation.Wait { return clone(j.waits[g]) })
	}
	if n.Close && st.Close == nil {
		st.Close = j.close()
	}
	for _, key := range n.Keys {
		ask(st.Keys, key, func() journal.JobID { return c.s.byKey(key) })
	}
}

// everything reads all that a close cancels (C15).
func (c *committer) everything(j *job, st *collation.State) {
	c.txn.allRows[j.ID] = true
	for g, row := range c.s.rows[j.ID] {
		ask(st.Rows, g, func() *collation.Row { return copyRow(row) })
	}
	for _, row := range c.s.sent(j.ID) {
		ask(st.Rows, row.GUID, func() *collation.Row { return copyRow(row) })
	}
	for g, w := range j.waits {
		ask(st.Waits, g, func() *collation.Wait { return clone(w) })
	}
	for key, i := range j.instances {
		if !i.Child.IsZero() {
			ask(st.Instances, key, func() *collation.Instance { return clone(i) })
		}
	}
	st.AllRows = true
}

// ask sets a member that the state has not been asked for yet.
func ask[K comparable, V any](m map[K]V, k K, read func() V) {
	if _, asked := m[k]; !asked {
		m[k] = read()
	}
}

// read loads instances and results that the state does not have yet, and the latest results of
// activities, at any address.
func (j *job) read(st *collation.State, instances, results []collation.InstanceKey, latest []string) (err error) {
	for _, key := range instances {
		ask(st.Instances, key, func() *collation.Instance { return clone(j.instances[key]) })
	}
	read := func(key collation.InstanceKey) *flow.Result {
		r, failed := j.result(key)
		err = errors.Join(err, failed)
		return r
	}
	for _, key := range results {
		ask(st.Results, key, func() *flow.Result { return read(key) })
	}
	for _, activity := range latest {
		ask(st.Latest, activity, func() *flow.Result { return read(j.last(activity)) })
	}
	return err
}

func clone[T any](p *T) *T {
	if p == nil {
		return nil
	}
	v := *p
	return &v
}

// close returns how the job was closed, nil while it is open.
func (j *job) close() *journal.Close {
	if j.closedSeq == 0 {
		return nil
	}
	return j.entry(j.closedSeq).Close
}

// last returns the instance of an activity whose result was recorded last, at any address.
func (j *job) last(activity string) (last collation.InstanceKey) {
	seq := int64(0)
	for key, i := range j.instances {
		if key.Activity == activity && i.ResultSeq > seq {
			last, seq = key, i.ResultSeq
		}
	}
	return last
}

// result reads the output of an instance from its entry (J7). An output that is stored beside its
// entry is found by its digest; one that is missing is refused (E6).
func (j *job) result(key collation.InstanceKey) (*flow.Result, error) {
	i := j.instances[key]
	if i == nil || i.ResultSeq == 0 {
		return nil, nil
	}
	e := j.entry(i.ResultSeq)
	r := collation.ResultAt(e, key)
	if e.Response == nil || e.Response.Ref.IsZero() || r.Output != nil || r.Error != nil {
		return r, nil
	}
	r.Output = slices.Clone(j.payloads[e.Response.Ref])
	return r, store.SamePayload(j.ID, e.Response.Ref, r.Output)
}

// receipt reads a receipt. While steps are open it includes the response that the receipt's entry
// recorded.
func (j *job) receipt(g journal.GUID) *collation.Receipt {
	r := clone(j.receipts[g])
	if r != nil && r.Verdict == journal.VerdictHandled && !r.Ledger.Complete() {
		r.Response = clone(j.entry(r.Seq).Response)
	}
	return r
}

// entry decodes an entry of the main chain.
func (j *job) entry(seq int64) *journal.Entry { return j.entryOf(journal.MainChain, seq) }

// entryOf decodes an entry of this store, once. Callers must not change the result.
func (j *job) entryOf(chain journal.GUID, seq int64) *journal.Entry {
	r := j.chains[chain][seq-1]
	if r.read != nil {
		return r.read
	}
	e, err := journal.DecodeTrusted(r.Record)
	if err != nil {
		panic(fmt.Sprintf("memory: entry %d of chain %s of job %s, which was encoded here: %v", seq, chain, j.ID, err))
	}
	r.read = e
	return e
}

// Commit implements store.Committer.
func (c *committer) Commit(_ context.Context, plans []store.Chained) error {
	if c.txn == nil {
		c.txn = newTxn()
	}
	if err := c.s.before("commit"); err != nil {
		_ = c.Rollback(context.Background())
		return err
	}
	if err := c.commit(plans, func(*undo) error { return nil }); err != nil {
		return err
	}
	return c.s.after("commit")
}

// commit writes the plans. before, if any, first writes in the same transaction.
func (c *committer) commit(plans []store.Chained, before func(*undo) error) error {
	c.s.mu.Lock()
	defer c.s.mu.Unlock()
	defer c.rollback()
	if err := store.AtMost("commit", len(plans), store.MaxPlans); err != nil {
		return err
	}
	if err := c.lockBoxes(plans); err != nil {
		return err
	}
	if err := c.guard(plans); err != nil {
		return err
	}
	if err := c.s.last(plans); err != nil {
		return err
	}
	return atomic(func(u *undo) error {
		if err := before(u); err != nil {
			return err
		}
		born := map[journal.JobID]bool{}
		for i := range plans {
			p := plans[i].Plan
			if begins(p) {
				born[p.Job] = true
			} else if (p.Entry != nil || p.Chain != nil) && !born[p.Job] && !slices.Contains(c.txn.jobs, p.Job) {
				return fmt.Errorf("memory: commit: job %s was not loaded in this transaction", p.Job)
			}
			if err := c.s.apply(u, &plans[i]); err != nil {
				return fmt.Errorf("memory: commit message %s of job %s: %w", p.Message, p.Job, err)
			}
		}
		for i := range plans {
			for n := range plans[i].Plan.Waits {
				c.s.meet(u, &plans[i].Plan.Waits[n])
			}
		}
		c.seq++
		c.s.markers[marker{c.session, c.seq}] = c.s.now()
		return nil
	})
}

// begins says that the plan is an inception.
func begins(p *collation.Plan) bool { return p.Entry != nil && p.Entry.Kind == journal.KindCreated }

// unfinished says whether the request has a call outside that started and has no outcome (E4).
func (j *job) unfinished(request journal.GUID) bool {
	for _, e := range j.effects {
		if e.Request == request && e.State == store.EffectStarted && e.Class != store.ClassUndo {
			return true
		}
	}
	return false
}
