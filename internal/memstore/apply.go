package memstore

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/internal/store"
	"github.com/quipu-journal/quipu/journal"
)

func lost(format string, args ...any) error {
	return fmt.Errorf("%w: "+format, append([]any{store.ErrLost}, args...)...)
}

// apply writes one plan, each part by its own test-and-set (C3). What runs after one that has lost
// is undone like the rest.
func (s *Store) apply(u *undo, c *store.Chained) (err error) {
	p := c.Plan
	if begins(p) {
		if err := s.birth(u, p.Entry, p.Active); err != nil {
			return err
		}
	}
	err = s.moveChain(u, p)
	if j := s.jobs[p.Job]; p.Entry != nil {
		err = cmp.Or(err, moveEach(u, p.Ledgers, j.moveLedger), j.moveReceipt(u, p.Receipt),
			s.moveJob(u, j, p),
			j.moveWaits(u, p), j.wake(u, p.ResolvedWait), j.append(u, journal.MainChain, c.Body, c.Hash))
	}
	return cmp.Or(err, s.moveRows(u, p), s.moveMail(u, p), s.moveLetters(u, p), s.keep(u, p))
}

// moveEach writes parts of a plan, and returns the first error.
func moveEach[T any](u *undo, parts []T, move func(*undo, *T) error) (err error) {
	for i := range parts {
		err = cmp.Or(err, move(u, &parts[i]))
	}
	return err
}

// birth creates the job of an inception (1.11). Its key must be free, or that of a tombstone of
// an earlier generation.
func (s *Store) birth(u *undo, e *journal.Entry, active bool) error {
	if id, taken := s.keys[e.Key]; taken {
		switch j := s.jobs[id]; {
		case j.next == e.Job: // a plan before this one resumes it
		case j.State == journal.JobExpired && j.Generation < e.Generation:
			set(u, &j.replaced, true)
		default:
			return &store.LostError{Keys: []string{e.Key}, Err: errTaken}
		}
	}
	if f := s.flows[e.Flow.Name]; active && (f == nil || f.active != e.Flow.Version) {
		return &store.LostError{Flows: []string{e.Flow.Name}, Err: errInactive}
	}
	j := &job{
		Job: collation.Begun(e), waits: map[journal.GUID]*collation.Wait{},
		instances: map[collation.InstanceKey]*collation.Instance{}, receipts: map[journal.GUID]*collation.Receipt{},
		resolved: map[journal.GUID]*collation.ResolvedWait{}, chains: map[journal.GUID][]*record{},
		effects: map[effectID]*collation.Effect{}, topics: map[journal.GUID]string{},
		payloads: map[journal.Digest][]byte{},
	}
	put(u, s.jobs, j.ID, j)
	put(u, s.keys, e.Key, j.ID)
	return nil
}

var (
	errTaken    = errors.New("memory: the key is taken")
	errInactive = errors.New("memory: another version of the flow is the active one")
)

// moveLedger is the test-and-set of one activity ledger, group by group (C4).
func (j *job) moveLedger(u *undo, w *collation.LedgerWrite) error {
	old := j.instances[w.Key]
	var before collation.ActivityLedger
	switch {
	case w.New && old != nil:
		return lost("instance %v exists", w.Key)
	case !w.New && (old == nil || old.Ledger != w.Before):
		return lost("instance %v is not at %s", w.Key, w.Before)
	case old != nil:
		before = old.Ledger
		if before.State() != w.After.State() && (before.State() != 0 || w.After.State() != 2) {
			return lost("instance %v: state %d to %d", w.Key, before.State(), w.After.State())
		}
	}
	if err := w.After.Valid(w.Join); err != nil {
		return lost("%w", err)
	}
	if w.Open < 0 {
		return lost("instance %v: %d open elements", w.Key, w.Open)
	}
	if !before.Grows(w.After) {
		return lost("instance %v: a digit group of %s shrinks to %s", w.Key, before, w.After)
	}
	put(u, j.instances, w.Key, &collation.Instance{Ledger: w.After, ResultSeq: w.ResultSeq, Code: w.Code, More: w.More})
	return nil
}

// moveReceipt is the test-and-set of one GUID ledger (C3, C6).
func (j *job) moveReceipt(u *undo, w *collation.ReceiptWrite) error {
	if w == nil {
		return nil
	}
	old := j.receipts[w.GUID]
	switch {
	case w.New && old != nil:
		return lost("receipt %s exists", w.GUID)
	case !w.New && (old == nil || old.Ledger != w.Before || old.Verdict != journal.VerdictHandled):
		return lost("receipt %s is not at %s", w.GUID, w.Before)
	case !w.New && !old.Ledger.Grows(w.After):
		return lost("receipt %s: %s to %s", w.GUID, old.Ledger, w.After)
	case w.Gone && (w.New || !w.After.Complete()):
		return lost("receipt %s goes at %s", w.GUID, w.After)
	case w.Verdict == journal.VerdictStale && w.After != 0:
		return lost("a stale receipt of value %s", w.After)
	}
	if err := w.After.Valid(); err != nil {
		return lost("%w", err)
	}
	if w.Gone {
		drop(u, j.receipts, w.GUID)
		return nil
	}
	seq := w.Seq
	if old != nil {
		seq = old.Seq
	}
	put(u, j.receipts, w.GUID, &collation.Receipt{Ledger: w.After, Verdict: w.Verdict, Seq: seq})
	return nil
}

// moveJob is the compound statement (C14): it moves semaphore, head and state, compares the
// semaphore with the threshold and sets the snapshot. The result must be what the plan predicted.
func (s *Store) moveJob(u *undo, j *job, p *collation.Plan) error {
	after := j.Semaphore + p.Semaphore.After - p.Semaphore.Before
	hit := j.State == journal.JobOpen && after == 0 && after != p.Semaphore.Before
	snapshot := p.Receipt != nil && p.Receipt.After.Closed() && (p.Receipt.New || !p.Receipt.Before.Closed())
	switch {
	case j.Semaphore != p.Semaphore.Before:
		return lost("semaphore is %d, not %d", j.Semaphore, p.Semaphore.Before)
	case after < 0:
		return lost("semaphore would be %d", after)
	case hit != snapshot || hit != (p.Receipt != nil && p.Receipt.Closes) || hit != (p.Close != nil):
		return lost("the plan predicts a close: %t, the semaphore says %t", snapshot, hit)
	case p.Tasks && j.tasksSeq != 0:
		return lost("the completion tasks ran already")
	case j.Head.Seq+1 != p.Entry.Seq:
		return lost("the chain ends at %d, the entry is %d", j.Head.Seq, p.Entry.Seq)
	}
	set(u, &j.Semaphore, after)
	if p.NewState != "" {
		set(u, &j.State, p.NewState)
	}
	if !p.Next.IsZero() {
		if !j.State.Closed() || j.State == journal.JobExpired || !j.next.IsZero() {
			return &store.LostError{Keys: []string{j.Key}, Err: errTaken}
		}
		set(u, &j.next, p.Next)
	}
	if hit {
		set(u, &j.closedSeq, p.Entry.Seq)
		set(u, &j.closed, s.now())
	}
	if p.Tasks {
		set(u, &j.tasksSeq, p.Entry.Seq)
		set(u, &j.expires, p.ExpiresAt)
	}
	return nil
}

// append adds an entry to a chain of the job (J8, J9).
func (j *job) append(u *undo, chain journal.GUID, body []byte, hash journal.Digest) error {
	records := j.chains[chain]
	seq := int64(len(records)) + 1
	previous := journal.Genesis(j.Space, j.ID, j.Generation, chain)
	if len(records) > 0 {
		previous = records[len(records)-1].Hash
	}
	if journal.Next(previous, body) != hash {
		return fmt.Errorf("%w: entry %d of chain %s does not continue it", store.ErrRejected, seq, chain)
	}
	body = slices.Clone(body)
	put(u, j.chains, chain,
		append(records, &record{Record: journal.Record{Job: j.ID, Chain: chain, Seq: seq, Body: body, Hash: hash}}))
	if chain == journal.MainChain {
		set(u, &j.Head, journal.Head{Seq: seq, Hash: hash})
	}
	return nil
}

// keep stores an output beside the entries of its job (E6).
func (s *Store) keep(u *undo, p *collation.Plan) error {
	x := p.Payload
	if x == nil {
		return nil
	}
	j := s.living(p.Job)
	if j == nil {
		return &store.LostError{Jobs: []journal.JobID{p.Job}, Err: errNoJob}
	}
	if _, stored := j.payloads[x.Digest]; !stored {
		put(u, j.payloads, x.Digest, slices.Clone(x.Body))
	}
	return nil
}

var errNoJob = errors.New("memory: the job of an output is not there")
