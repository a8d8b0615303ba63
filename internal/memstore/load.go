package memstore

import (
	"errors"
	"fmt"
	"slices"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/flow"
	"github.com/quipu-journal/quipu/internal/store"
	"github.com/quipu-journal/quipu/journal"
)

// outside reads what starts and signals from outside need, for which no lock is taken.
func (s *Store) outside(wants []store.Want) *store.Loaded {
	l := &store.Loaded{
		Now: s.now(), States: map[journal.JobID]*collation.State{}, Busy: map[journal.JobID]bool{},
		Tombstones: map[journal.JobID]bool{},
		Holders:    map[string]*collation.Holder{}, Orders: map[journal.JobID]*collation.Row{},
		Chains: map[collation.RowKey]*collation.Chain{},
		Boxes:  map[journal.JobID]*collation.Box{}, Known: map[collation.RowKey]store.SignalState{},
		Letters: map[int64]*collation.Letter{},
	}
	for i := range wants {
		if key := wants[i].Key; key != "" {
			s.readKeyHolder(l, key)
		}
		if was, known := s.signals[wants[i].Known]; known {
			l.Know(wants[i].Known, was.state, was.reason)
		}
	}
	return l
}

// readKeyHolder reads the job that has a key, with the input that it was started with.
func (s *Store) readKeyHolder(l *store.Loaded, key string) {
	id, taken := s.keys[key]
	if !taken {
		return
	}
	j := s.jobs[id]
	h := &collation.Holder{ID: id, Generation: j.Generation, State: j.State, Flow: j.Flow}
	if j.State != journal.JobExpired {
		h.Input = j.entry(1).Input
	}
	l.Holders[key] = h
}

// order reads the row of the start of a child that has not begun.
func (c *committer) order(l *store.Loaded, child journal.JobID) {
	row := c.s.ordered(child)
	switch {
	case row == nil:
	case c.s.owner(child) != c.txn:
		l.Busy[child] = true
	default:
		c.txn.rows[row.GUID] = true
		l.Orders[child] = copyRow(row)
	}
}

// load reads one want into the state of its job.
func (c *committer) load(w *store.Want, l *store.Loaded) error {
	j := c.s.jobs[w.Job]
	switch {
	case j == nil:
		return nil
	case j.State == journal.JobExpired:
		l.Tombstones[w.Job] = true
		return nil
	case c.s.owner(j.ID) != c.txn: // also a job that began while this transaction waited for others
		l.Busy[w.Job] = true
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

// readWhole reads the whole state of a young and small job (W6).
func (c *committer) readWhole(j *job, st *collation.State) error {
	if j.Head.Seq > store.YoungSeq || len(j.instances) > store.YoungRows || len(c.s.rows[j.ID]) > store.YoungRows {
		return nil
	}
	for _, r := range j.receipts {
		if r.Verdict == journal.VerdictHandled && !r.Ledger.Complete() {
			return nil
		}
	}
	for key, i := range j.instances {
		var results []collation.InstanceKey
		if i.ResultSeq > 0 {
			results = append(results, key)
		}
		if err := j.read(st, []collation.InstanceKey{key}, results, nil); err != nil {
			return err
		}
	}
	for g, row := range c.s.rows[j.ID] {
		c.txn.rows[g] = true
		ask(st.Rows, g, func() *collation.Row { return copyRow(row) })
	}
	st.Whole = true
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
	for _, g := range n.Receipts {
		ask(st.Receipts, g, func() *collation.Receipt { return j.receipt(g) })
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
	for _, row := range c.s.rowsOf(j.ID) {
		c.txn.rows[row.GUID] = true
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

// unfinished says whether the request has a call outside that started and has no outcome (E4).
func (j *job) unfinished(request journal.GUID) bool {
	for _, e := range j.effects {
		if e.Request == request && e.State == store.EffectStarted && e.Class != store.ClassUndo {
			return true
		}
	}
	return false
}
