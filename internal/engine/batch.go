package engine

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/internal/store"
	"github.com/quipu-journal/quipu/journal"
)

// batch is one transaction in progress: its items with what becomes of them, the plans that it
// commits, in their order, and what follows the commit.
type batch struct {
	*loop
	mode      collation.Mode // of its decisions
	loaded    *store.Loaded
	decisions []*decision
	plans     []store.Chained
	guessed   guessed
	// begun has the keys of the jobs that begin in this batch.
	begun   map[string]*collation.Holder
	wakeUps int // waits that signals have reached
	// sends says that what it inserts is published right after its commit: out are these rows.
	sends bool
	out   []store.Outgoing
	// own is how many plans its items have; the others carry what those cause (L2). followed are the
	// kinds of the messages of these, and runs the early runs.
	own      int
	followed []journal.MessageKind
	runs     *runs
	timing   timing
}

// timing is when a batch began, how long it took from its load to its commit, how long it has
// decided so far, and on how many items.
type timing struct {
	began          time.Time
	took, deciding time.Duration
	finished       int
}

// batch makes a batch of items over what was loaded. One that does not send leaves its rows to the
// sweepers: they are due at once.
func (l *loop) batch(loaded *store.Loaded, sends bool, items ...item) *batch {
	b := &batch{
		loop: l, mode: l.mode, sends: sends, loaded: loaded, timing: timing{began: time.Now()},
		begun: map[string]*collation.Holder{}, decisions: make([]*decision, len(items)),
	}
	all := make([]decision, len(items))
	for i, it := range items {
		all[i].item = it
		b.decisions[i] = &all[i]
	}
	if l.cfg.Session != nil {
		b.mode.Session, _ = l.cfg.Session.Current()
	}
	if !sends {
		b.mode.Resend, b.mode.Fold = 0, false
	}
	if loaded.States == nil {
		loaded.States = map[journal.JobID]*collation.State{}
	}
	return b
}

// joined makes a batch that is part of a caller's transaction. Its rows are due at once, and the
// sweepers find them after the commit (E17).
func (c *Committer) joined(loaded *store.Loaded) *batch {
	return (&loop{Committer: c}).batch(loaded, false)
}

// transact carries the items through one transaction: load, decide, hand over, commit; with follow
// also what they cause. Nothing is acked or answered here. A failed commit returns the batch, too.
func (l *loop) transact(ctx context.Context, items []item, follow bool) (*batch, error) {
	began := time.Now()
	tx, err := l.connection(ctx)
	if err != nil {
		return nil, err
	}
	l.enter()
	defer l.progress.leave()
	b := l.batch(&store.Loaded{}, l.publishes(), items...)
	b.timing.began, b.mode.Stop = began, l.tooSlow
	epoch := l.epoch()
	if err := b.guess(ctx, tx); err != nil {
		return nil, l.abandon(ctx, err)
	}
	b.sendBack()
	loaded, err := l.load(ctx, tx, b.wants())
	if err != nil {
		return nil, l.abandon(ctx, err)
	}
	if b.meet(loaded); l.epoch() != epoch {
		return nil, l.abandon(ctx, errEpoch)
	}
	if err := b.decide(ctx, tx); err != nil {
		return nil, l.abandon(ctx, err)
	}
	if len(b.plans) == 0 {
		return b, l.abandon(ctx, nil)
	}
	b.own = len(b.plans)
	if follow && b.sends && b.mode.Fold && l.policy == policyBatch && !l.cfg.NoFollow {
		b.follow(ctx)
	}
	b.handOver()
	entering(b)
	committing := time.Now()
	if err := tx.Commit(ctx, b.plans); err != nil {
		b.takeBack(err)
		b.forget(err)
		return b, l.abandon(ctx, err)
	}
	l.commits += (time.Since(committing) - l.commits) / 8
	b.out = append(b.out, tx.Released()...)
	b.keep()
	b.timing.took = time.Since(began)
	return b, nil
}

// errEpoch says that the space went on in another database while a batch waited for one.
var errEpoch = fmt.Errorf("%w: the space is in another epoch", store.ErrLost)

// meet adds what was loaded to what the batch has from the cache.
func (b *batch) meet(loaded *store.Loaded) {
	if loaded.States == nil {
		loaded.States = make(map[journal.JobID]*collation.State, len(b.guessed.jobs))
	}
	maps.Copy(loaded.States, b.loaded.States)
	if loaded.Chains == nil {
		loaded.Chains = make(map[collation.RowKey]*collation.Chain, len(b.guessed.chains))
	}
	for k, chain := range b.guessed.chains {
		chain.Now = loaded.Now
		loaded.Chains[k] = chain
	}
	b.loaded = loaded
}

// wants lists what the undecided items need loaded. A call on an effect chain comes later if
// anything else of its job is wanted or was guessed: in one batch a row is changed in one way only.
func (b *batch) wants() (wants []store.Want) {
	var chains []*decision
	for _, d := range b.decisions {
		switch {
		case d.fate != fatePending:
		case effectOf(d.item) != nil:
			chains = append(chains, d)
		default:
			wants = append(wants, d.item.want(b)...)
		}
	}
	if len(chains) == 0 {
		return wants
	}
	jobs := make(map[journal.JobID]bool, len(wants)+len(b.guessed.jobs))
	for i := range wants {
		jobs[wants[i].Job] = true
	}
	for _, job := range b.guessed.jobs {
		jobs[job] = true
	}
	for _, d := range chains {
		switch x := effectOf(d.item); {
		case jobs[x.of.Job]:
			d.fate = fateLater
		case b.guessed.chains[x.of.Key()] == nil:
			wants = append(wants, d.item.want(b)...)
		}
	}
	return wants
}

// load reads what is wanted. There is no trip if nothing is wanted and the last reading of the
// database's clock is recent and was quick.
func (l *loop) load(ctx context.Context, tx store.Committer, wants []store.Want) (*store.Loaded, error) {
	if len(wants) == 0 {
		if now, ok := l.clock.tell(); ok {
			return &store.Loaded{Now: now}, nil
		}
	}
	began := time.Now()
	loaded, err := tx.Load(ctx, wants, l.policy.waits())
	if err == nil {
		l.clock.set(loaded.Now, began)
	}
	return loaded, err
}

// decide lets every item decide that has not, in order. State that decisions miss is loaded in the
// same transaction; until then the other items of the same job wait.
func (b *batch) decide(ctx context.Context, tx store.Committer) error {
	for {
		missing := needs{}
		for i := 0; i < len(b.decisions); i++ { // deciding may add to them
			d := b.decisions[i]
			switch {
			case d.fate != fatePending:
			case b.full():
				d.fate = fateLater
			case missing[d.item.job()] == nil:
				if err := b.one(ctx, d, missing); err != nil {
					return err
				}
			}
		}
		if len(missing) == 0 {
			return nil
		}
		if err := tx.More(ctx, missing); err != nil {
			return err
		}
	}
}

// full reports whether the batch has decided for so long that the rest goes into the next one.
func (b *batch) full() bool { return b.timing.finished > 0 && b.timing.deciding >= maxDeciding }

// one lets one item decide, and notes its fate; missing gets what it misses. An error ends the
// whole attempt.
func (b *batch) one(ctx context.Context, d *decision, missing needs) error {
	plans := len(b.plans)
	plan, err := b.timed(ctx, d)
	if miss, misses := errors.AsType[needs](err); misses {
		if d.loads++; d.loads <= maxLoads {
			for job, need := range miss {
				if missing[job] == nil {
					missing[job] = need
				}
			}
			return nil
		}
		if err = asksTooOften(d.item.about()); d.item.refuse(err) {
			plan, err = b.timed(ctx, d)
		}
	}
	b.timing.finished++
	failed, fails := errors.AsType[*failedError](err)
	switch {
	case fails:
		return failed.error
	case errors.Is(err, errLater):
		d.fate = fateLater
	case errors.Is(err, store.ErrBusy) && !b.policy.waits():
		d.fate = fateBusy
	case err != nil:
		b.plans = b.plans[:plans]
		d.fate, d.err = fateEnded, err
	default:
		d.commits(plan)
	}
	return nil
}

// commits notes that the item has decided.
func (d *decision) commits(p *collation.Plan) {
	d.plan, d.fate = p, fateCommit
	switch {
	case p == nil:
	case p.Outcome == collation.Stopped:
		d.fate = fateSlow
	case !p.Done && p.Outcome != collation.Later:
		d.fate = fateRepeat
	}
}

// timed lets an item decide, for those who watch how long that takes.
func (b *batch) timed(ctx context.Context, d *decision) (*collation.Plan, error) {
	before := d.took
	b.progress.begin(d.item.about(), before)
	plan, err := d.item.decide(ctx, b)
	d.took = b.progress.end()
	b.timing.deciding += d.took - before
	return plan, err
}

// unfinished reports whether a message has steps left after this transaction.
func (b *batch) unfinished(guid journal.GUID) bool {
	for _, d := range b.decisions {
		if d.fate == fateRepeat && d.plan.Message == guid {
			return true
		}
	}
	return false
}

// job is the state of a job that a call is about. Errors: store.ErrBusy, store.ErrNotFound.
func (b *batch) job(id journal.JobID) (*collation.State, error) {
	st := b.loaded.States[id]
	switch {
	case st == nil && b.loaded.Busy[id]:
		return nil, store.ErrBusy
	case st == nil:
		return nil, notFound(id)
	}
	return st, nil
}

func notFound(job journal.JobID) error { return fmt.Errorf("%w: job %s", store.ErrNotFound, job) }

// apply adds a plan with an entry to the batch, and to the state of its job.
func (b *batch) apply(s *collation.State, p *collation.Plan) {
	chained := store.Chain(&s.Job, p)
	s.Apply(p)
	b.plans = append(b.plans, chained)
}

// write adds a plan without an entry to the batch.
func (b *batch) write(p *collation.Plan) { b.plans = append(b.plans, store.Chained{Plan: p}) }

// next adds a call for the next batch.
func (b *batch) next(x *call) {
	b.decisions = append(b.decisions, &decision{item: x, fate: fateLater})
}
