package memstore

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/internal/store"
	"github.com/quipu-journal/quipu/journal"
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
	sent    []store.Outgoing // see Released
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

// Released implements store.Committer.
func (c *committer) Released() []store.Outgoing { return c.sent }

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
			if c.s.living(id) != nil || c.s.ordered(id) != nil { // nothing changes a tombstone
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
	if slices.ContainsFunc(plans, func(c store.Chained) bool { return c.Plan.Repair != nil }) {
		return fmt.Errorf("memory: commit: %w: only Postgres repairs jobs", store.ErrRejected)
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
	var sent []store.Outgoing
	err := atomic(func(u *undo) error {
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
			p := plans[i].Plan
			for n := range p.Waits {
				sent = append(sent, c.s.meet(u, &p.Waits[n], p.Sending)...)
			}
		}
		c.seq++
		return nil
	})
	if err == nil {
		c.sent = sent
	}
	return err
}

// begins says that the plan is an inception.
func begins(p *collation.Plan) bool { return p.Entry != nil && p.Entry.Kind == journal.KindCreated }

// lockBoxes locks the mailboxes in which the plans register waits, so that a delivery cannot miss
// them.
func (c *committer) lockBoxes(plans []store.Chained) error {
	var boxes []journal.JobID
	for i := range plans {
		for n := range plans[i].Plan.Waits {
			boxes = append(boxes, c.s.mailbox(&plans[i].Plan.Waits[n]))
		}
	}
	return c.lockAll(context.Background(), boxes, true)
}

// last refuses plans that take something for a session that has ended.
func (s *Store) last(plans []store.Chained) error {
	for i := range plans {
		if n := plans[i].Plan.Session; n != 0 && !s.alive(n) {
			return &store.LostError{Session: true, Err: errSession}
		}
	}
	return nil
}

var errGuard = errors.New("memory: a job is not as its hot state says, or is locked")

// guard locks the jobs of plans that were decided on hot states or chains, without waiting, and
// compares the guards of the states (W6). What is compared of chains is compared when they move.
func (c *committer) guard(plans []store.Chained) error {
	e, born := &store.LostError{Err: errGuard}, map[journal.JobID]bool{}
	for i := range plans {
		g, id := plans[i].Guard, plans[i].Plan.Job
		born[id] = born[id] || begins(plans[i].Plan)
		if g != nil && !c.stands(id, g) {
			e.Hot = append(e.Hot, id)
		}
		if p := plans[i].Plan; p.Chain != nil && p.Entry == nil && !born[id] && !c.holds(id) {
			return lost("job %s is gone or locked", id)
		}
	}
	if len(e.Hot) > 0 {
		return e
	}
	return nil
}

func (c *committer) stands(id journal.JobID, g *store.Guard) bool {
	j := c.s.living(id)
	if j == nil || !c.holds(id) {
		return false
	}
	if j.State != g.State || j.Semaphore != g.Semaphore || j.Head != g.Head {
		return false
	}
	for _, r := range g.Rows {
		if row := c.s.row(id, r.GUID); row == nil || row.Rev != r.Rev {
			return false
		}
	}
	return true
}

// holds locks a job, unless it is gone or another transaction has it.
func (c *committer) holds(id journal.JobID) bool {
	owner := c.s.owner(id)
	if c.s.living(id) == nil || owner != nil && owner != c.txn {
		return false
	}
	if owner == nil {
		c.s.locks[id] = []*txn{c.txn}
		c.txn.jobs = append(c.txn.jobs, id)
	}
	return true
}
