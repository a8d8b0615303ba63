package engine

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"runtime/debug"
	"slices"
	"sync/atomic"
	"time"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/internal/store"
	"github.com/quipu-journal/quipu/journal"
)

// work is what one transaction shall carry.
type work struct {
	items []*item
	calls []*call
}

func (w work) empty() bool { return len(w.items)+len(w.calls) == 0 }
func (w work) size() int   { return len(w.items) + len(w.calls) }

// batch is one transaction in progress: what it decided, its plans in order, and what is left
// for others.
type batch struct {
	space  string
	mode   collation.Mode // of calls
	steps  collation.Mode // of messages
	sends  bool           // its inserted rows are published right after its commit
	loaded *store.Loaded
	warm   map[collation.RowKey]*collation.Chain // chains that need no load (W6)
	// guessed are the jobs that were decided on hot states (W6).
	guessed      []journal.JobID
	hits, misses int // messages of jobs that might be hot
	// take reserves the requests of a plan for workers of this process, when the plan is
	// decided; taken has their rows (W7).
	take  func(*collation.Plan, collation.Micros)
	taken map[journal.GUID]*collation.Row
	// open holds the messages with steps left after this transaction: their next step reads what
	// this commit writes.
	open    map[journal.GUID]bool
	repeats []*item // deliveries of such a message, which wait for its end, and what comes after a full batch
	plans   []store.Chained
	decided []*item
	calls   []*call
	later   []*call // for the next batch: they would change rows that messages of this one may change, too
	// begun has the keys of the jobs that begin in this batch; folded has the plans of the first
	// steps that commit with their inceptions.
	begun   map[string]*collation.Holder
	folded  []*collation.Plan
	floor   *atomic.Int64           // see Committer.floor
	handed  []handed                // messages of signals
	wakeUps int                     // waits that signals have reached
	busy    work                    // work that needs what another transaction holds (J3)
	ended   []*item                 // messages with nothing left to do; they are acked
	after   []func(context.Context) // what else follows the commit
	extra   []store.Outgoing        // to publish besides what the jobs' plans send
	began   time.Time
	took    time.Duration // load to commit
	// deciding is how long the batch has decided so far, and finished on how many items.
	deciding time.Duration
	finished int
}

func (c *Committer) batch(loaded *store.Loaded, sends bool) *batch {
	b := &batch{
		space: c.cfg.Space, mode: c.mode, sends: sends, loaded: loaded, began: time.Now(),
		warm: map[collation.RowKey]*collation.Chain{},
		open: map[journal.GUID]bool{}, begun: map[string]*collation.Holder{}, floor: &c.floor,
	}
	b.take = func(p *collation.Plan, now collation.Micros) { c.takeAll(b, p, now) }
	if c.cfg.Session != nil {
		b.mode.Session, _ = c.cfg.Session.Current()
	}
	b.steps = b.mode
	if !sends {
		b.mode.Resend, b.mode.Fold = 0, false
	}
	if loaded.States == nil {
		loaded.States = map[journal.JobID]*collation.State{}
	}
	return b
}

// transact carries the work through one transaction: load, decide, commit.
// Nothing is acked or answered here.
func (l *loop) transact(ctx context.Context, w work) (out *batch, err error) {
	began := time.Now()
	tx, err := l.connection(ctx)
	if err != nil {
		return nil, err
	}
	l.enter()
	defer l.progress.leave()
	b := l.batch(&store.Loaded{}, l.publishes())
	b.began, b.mode.Stop, b.steps.Stop = began, l.tooSlow, l.tooSlow
	defer func() {
		if err != nil {
			l.unsure(b, err)
			l.freeSlots(b)
		}
	}()
	epoch := l.epoch()
	w.items = l.ofThisEpoch(b, w.items, epoch)
	if w.items, err = l.guess(ctx, tx, b, w); err != nil {
		return nil, l.abandon(ctx, err)
	}
	l.warmUp(b, w.calls)
	wants, calls, later := l.wants(b, w)
	b.later = later
	loaded, err := l.load(ctx, tx, wants)
	if err != nil {
		return nil, l.abandon(ctx, err)
	}
	if b.meet(loaded); l.epoch() != epoch {
		return nil, l.abandon(ctx, errEpoch)
	}
	if err := l.askAll(ctx, tx, b, calls); err != nil {
		return nil, l.abandon(ctx, err)
	}
	if err := l.decide(ctx, tx, b, w.items); err != nil {
		return nil, l.abandon(ctx, err)
	}
	if len(b.plans) == 0 {
		return b, l.abandon(ctx, nil)
	}
	entering(b)
	if err := tx.Commit(ctx, b.plans); err != nil {
		l.forget(b, err)
		return nil, l.abandon(ctx, err)
	}
	b.extra = append(b.extra, tx.Released()...)
	l.keep(b)
	l.keepWarm(b)
	b.took = time.Since(began)
	return b, nil
}

// errEpoch says that the space went on in another database while a batch waited for one.
var errEpoch = fmt.Errorf("%w: the space is in another epoch", store.ErrLost)

// present leaves out the messages of other epochs. What of them is open is sent again by its row
// (T4), in the database that was accepted: what it does not know is no stranger's.
func (l *loop) ofThisEpoch(b *batch, items []*item, epoch int64) []*item {
	other := func(it *item) bool { return it.epoch != epoch }
	if !slices.ContainsFunc(items, other) {
		return items
	}
	here := make([]*item, 0, len(items))
	for _, it := range items {
		if other(it) {
			b.after = append(b.after, func(context.Context) { l.dropWithoutRow(it) })
		} else {
			here = append(here, it)
		}
	}
	return here
}

// meet adds what was loaded to the states that the batch has.
func (b *batch) meet(loaded *store.Loaded) {
	if loaded.States == nil {
		loaded.States = make(map[journal.JobID]*collation.State, len(b.guessed))
	}
	maps.Copy(loaded.States, b.loaded.States)
	if loaded.Chains == nil {
		loaded.Chains = make(map[collation.RowKey]*collation.Chain, len(b.warm))
	}
	for k, h := range b.warm {
		h.Now = loaded.Now
		loaded.Chains[k] = h
	}
	b.loaded = loaded
}

// wants lists what the work needs loaded. A call on an effect chain comes later if anything
// else of its job is wanted or was guessed: in one batch a row is changed in one way only.
func (l *loop) wants(b *batch, w work) (wants []store.Want, calls, later []*call) {
	chains := 0
	for _, it := range w.items {
		want := it.want(l.flows, l.mode)
		want.Whole = l.hot.on() && it.guessable()
		wants = append(wants, want)
		it.loads, it.took = 0, 0
	}
	for _, x := range w.calls {
		switch {
		case x.effect != nil:
			chains++
			continue
		case x.want != nil:
			wants = append(wants, x.want()...)
		}
		calls = append(calls, x)
	}
	if chains == 0 {
		return wants, calls, nil
	}
	jobs := make(map[journal.JobID]bool, len(wants))
	for i := range wants {
		jobs[wants[i].Job] = true
	}
	for _, job := range b.guessed {
		jobs[job] = true
	}
	for _, x := range w.calls {
		switch {
		case x.effect == nil:
		case jobs[x.effect.of.Job]:
			later = append(later, x)
		case b.warm[x.effect.of.Key()] != nil:
			calls = append(calls, x)
		default:
			wants, calls = append(wants, x.want()...), append(calls, x)
		}
	}
	return wants, calls, later
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
	loaded, err := tx.Load(ctx, wants, l.patient)
	if err == nil {
		l.clock.set(loaded.Now, began)
	}
	return loaded, err
}

// askAll lets calls decide. State that they miss is loaded in the same transaction, and they
// are asked again.
func (l *loop) askAll(ctx context.Context, tx store.Committer, b *batch, calls []*call) error {
	for range maxLoads {
		missing := needs{}
		var again []*call
		for i, x := range calls {
			if b.full() {
				b.later = append(append(b.later, again...), calls[i:]...)
				return nil
			}
			n := l.ask(b, x)
			if n == nil {
				b.finished++
				continue
			}
			again = append(again, x)
			for job, need := range n {
				if missing[job] == nil {
					missing[job] = need
				}
			}
		}
		if len(again) == 0 {
			return nil
		}
		if err := tx.More(ctx, missing); err != nil {
			return err
		}
		calls = again
	}
	for _, x := range calls {
		err := fmt.Errorf("%w: %w", store.ErrRejected, &loadsError{x.name})
		b.after = append(b.after, func(context.Context) { x.end(err) })
	}
	return nil
}

// ask lets a call decide, and returns what it misses. An error ends only this call.
func (l *loop) ask(b *batch, x *call) needs {
	plans := len(b.plans)
	l.progress.begin(Busy{Name: x.name}, 0)
	err := x.decide(b)
	b.deciding += l.progress.end()
	missing, misses := errors.AsType[needs](err)
	switch {
	case misses:
		return missing
	case errors.Is(err, store.ErrBusy) && !l.patient:
		b.busy.calls = append(b.busy.calls, x)
	case errors.Is(err, errLater):
		b.later = append(b.later, x)
	case err != nil:
		b.plans = b.plans[:plans]
		b.after = append(b.after, func(context.Context) { x.end(err) })
	default:
		b.calls = append(b.calls, x)
	}
	return nil
}

// decide steps every item, in order. Messages of one job share the transaction. State that a
// decision misses is loaded in the same transaction; then the job goes on.
func (l *loop) decide(ctx context.Context, tx store.Committer, b *batch, items []*item) error {
	for len(items) > 0 {
		needs := map[journal.JobID]*collation.Need{}
		var later []*item
		for i, it := range items {
			if b.full() {
				b.repeats = append(append(b.repeats, later...), items[i:]...)
				return nil
			}
			if needs[it.msg.Job] != nil {
				later = append(later, it)
				continue
			}
			need, err := l.timed(ctx, b, it)
			if need != nil {
				if it.loads++; it.loads > maxLoads {
					it.reject = it.asksTooOften()
					need, err = l.timed(ctx, b, it)
				}
			}
			if err != nil {
				return err
			}
			if need == nil {
				b.finished++
				continue
			}
			needs[it.msg.Job] = need
			later = append(later, it)
		}
		if len(needs) > 0 {
			if err := tx.More(ctx, needs); err != nil {
				return err
			}
		}
		items = later
	}
	return nil
}

// one steps one item.
func (l *loop) one(ctx context.Context, b *batch, it *item) (*collation.Need, error) {
	job := it.msg.Job
	if it.msg.Kind == journal.MessageSignal {
		return l.hand(b, it)
	}
	state := b.loaded.States[job]
	switch {
	case b.open[it.msg.GUID]:
		b.repeats = append(b.repeats, it)
		return nil, nil
	case state == nil && b.loaded.Busy[job]:
		b.busy.items = append(b.busy.items, it)
		return nil, nil
	case state == nil && b.loaded.Orders[job] != nil:
		return nil, l.order(ctx, b, it, b.loaded.Orders[job])
	case state == nil:
		l.orphan(b, it)
		return nil, nil
	}
	if it.stolen(state.Rows[it.msg.Row]) {
		b.after = append(b.after, func(context.Context) { l.repel(it) })
		return nil, nil
	}
	if state.Flow == nil {
		back := l.progress.wait()
		f, err := l.flows.Get(ctx, state.Job.Flow)
		back()
		switch {
		case err == nil:
			state.Flow = f
		case errors.Is(err, store.ErrUnavailable) || errors.Is(err, context.DeadlineExceeded):
			return nil, err
		default: // this build cannot run the job; other jobs of the batch go on
			it.reject = err
		}
	}
	plan, need := l.step(b, state, it)
	if need != nil {
		return need, nil
	}
	b.decide(it, plan)
	switch {
	case plan.Entry != nil:
		b.take(plan, state.Now)
		chained := store.Chain(&state.Job, plan)
		state.Apply(plan)
		b.plans = append(b.plans, chained)
	case len(plan.Delete) > 0: // an interrupt of a closed job: its key is kept, without an entry (W12)
		state.Apply(plan)
		b.plans = append(b.plans, store.Chained{Plan: plan})
	}
	return nil, nil
}

// decide notes what became of an item.
func (b *batch) decide(it *item, p *collation.Plan) {
	it.plan = p
	b.decided = append(b.decided, it)
	b.open[it.msg.GUID] = !p.Done
}

// step calls collation.Step. A panic in it is a broken invariant: the job is quarantined, and
// the process goes on (J1).
func (l *loop) step(b *batch, s *collation.State, it *item) (plan *collation.Plan, need *collation.Need) {
	defer func() {
		if r := recover(); r != nil {
			l.log.Error("a broken invariant: the job is quarantined",
				"job", s.Job.Key, "message", it.msg.GUID.String(), "panic", r, "stack", string(debug.Stack()))
			plan, need = collation.Quarantine(s, &it.msg, b.steps, fmt.Errorf("panic: %v", r)), nil
		}
	}()
	if _, changed := errors.AsType[*store.ChangedError](it.reject); changed {
		return collation.Changed(s, &it.msg, b.steps, it.reject), nil
	}
	if it.reject != nil {
		return collation.Hold(s, &it.msg, b.steps, heldFor(it.reject), it.reject), nil
	}
	if s.Receipts[it.msg.GUID] == nil {
		if err := it.read(s.Rows[it.msg.Row]); err != nil {
			return collation.Hold(s, &it.msg, b.steps, collation.HeldStuck, err), nil
		}
	}
	mode := b.steps
	mode.Fold = mode.Fold && it.slow == 0 // then only what is slow by itself is held
	return collation.Step(s, &it.msg, mode)
}

// outgoing lists the rows to publish: those that the batch inserted or released as published
// and that still exist. here are the taken requests, others go by the bus. A row of another job
// names its destination itself.
func (b *batch) outgoing() (here, others []store.Outgoing) {
	gone := map[journal.GUID]bool{}
	last := map[journal.GUID]*collation.Row{} // the last value of each changed row
	for i := range b.plans {
		p := b.plans[i].Plan
		for n := range p.Update {
			last[p.Update[n].GUID] = &p.Update[n]
		}
		for _, g := range p.Delete {
			gone[g] = true
		}
		for _, k := range p.CancelStarts {
			gone[k.GUID] = true
		}
	}
	here, others = make([]store.Outgoing, 0, len(b.taken)), b.extra
	for i := range b.plans {
		p := b.plans[i].Plan
		st := b.loaded.States[p.Job]
		if st == nil {
			continue // a plan without a job puts what it sends into extra
		}
		job := &st.Job
		send := func(row *collation.Row) {
			_, taken := b.taken[row.GUID]
			o := store.Outgoing{Row: *row, Trace: job.Trace, Taken: taken}
			if row.Job == job.ID {
				o.JobKey, o.Generation, o.Flow = job.Key, job.Generation, job.Flow
				o.SetRoot(job.From)
			}
			if taken {
				here = append(here, o)
			} else {
				others = append(others, o)
			}
		}
		for n := range p.Insert {
			if row := &p.Insert[n]; row.Publication > 0 && !gone[row.GUID] {
				send(row)
			}
		}
		for n := range p.Update {
			if row := &p.Update[n]; row == last[row.GUID] &&
				(released(row, st.Now) || slices.Contains(p.Released, row.GUID) || b.has(row)) && !gone[row.GUID] {
				send(row)
			}
		}
	}
	return here, others
}

// released reports whether the row is that of an element whose turn has just come (1.11), or of
// a function that was just woken (E12). All other updated rows are left to the sweeper, but for
// the answers that the plan releases.
func released(row *collation.Row, now collation.Micros) bool {
	// a sleeping row may be claimed already
	return row.Kind == journal.MessageRequest && row.Held == "" && row.NextAt != collation.Never &&
		row.Publication > 0 && row.PublishedAt == now
}
