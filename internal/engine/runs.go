package engine

import (
	"context"
	"slices"
	"time"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/flow"
	"github.com/quipu-journal/quipu/internal/early"
	"github.com/quipu-journal/quipu/internal/store"
	"github.com/quipu-journal/quipu/internal/traffic"
	"github.com/quipu-journal/quipu/internal/wire"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/telemetry/observer"
	"github.com/quipu-journal/quipu/transport"
)

// maxStall is how long a batch waits without an answer of an early run, and at least how long it
// waits in all. More than that it waits at most half as long as the commits of its loop take.
const maxStall = 300 * time.Microsecond

// runs are the early runs of a batch: requests whose handlers run before the batch has committed
// (L4). Quick ones run one after another on one goroutine, and the batch waits for them; all others
// have goroutines of their own. A nil *runs has none.
type runs struct {
	*follower
	cause   *early.Cause // nil before the first run
	all     map[journal.GUID]*earlyRun
	begun   []*earlyRun // in their order
	wanting []wanted    // requests that have found no free slot
	queue   chan func() // quick runs; nil: there was none
	quick   int         // quick runs that have not answered
	waited  time.Duration
	stalled bool
	unsent  []transport.Message // answers that the batch has not decided
}

// wanted is a request that may begin early.
type wanted struct {
	plan  *collation.Plan
	row   *collation.Row
	round int
}

// earlyRun is a run that has begun.
type earlyRun struct {
	wanted
	quick bool // and the batch waits for it
	kept  bool // its answer was decided in the batch
}

// maxQuick bounds the quick runs of a batch that wait for their turn.
const maxQuick = 4096

// want begins the request if it may be early and there is a slot for it.
func (r *runs) want(ctx context.Context, w wanted) {
	st := r.loaded.States[w.plan.Job]
	may, quick := r.cfg.Early.May(w.row.Topic)
	switch {
	case !may, r.cfg.Local == nil, r.mode.Session == 0, st == nil, w.row.Holder != "", !released(w.row, st.Now):
	case w.row.Turn > 1, st.Job.Flow.Name == flow.UndoName, r.all[w.row.GUID] != nil:
	case len(w.row.Body) > wire.Inline(r.pub.Bus.MaxPayload()), r.flows.Cached(st.Job.Flow.Digest) == nil:
	case !r.begins(ctx, st, w, quick) && r.quick > 0:
		r.wanting = append(r.wanting, w)
	}
}

// begins begins a request, unless there is no free slot.
func (r *runs) begins(ctx context.Context, st *collation.State, w wanted, quick bool) bool {
	holder, ok := r.cfg.Local.Take(w.row.Topic)
	if !ok {
		return false
	}
	row := *w.row
	row.HandOver(holder, r.mode.Session)
	o := outgoing(st, &row, true)
	m, err := r.pub.message(ctx, &o)
	if r.cause == nil {
		r.cause, r.all = early.NewCause(), map[journal.GUID]*earlyRun{}
	}
	var run func()
	if err == nil {
		run, err = r.cfg.Local.Begin(&m, r.cause)
	}
	if err != nil {
		r.cfg.Local.Drop(w.row.Topic)
		return false
	}
	*w.row, w.plan.Session = row, r.mode.Session
	if applied := st.Rows[row.GUID]; applied != nil { // made by this batch's Apply, so nobody else has it
		applied.HandOver(holder, r.mode.Session)
	}
	quick = quick && !r.stalled && r.quick < maxQuick
	x := &earlyRun{wanted: w, quick: quick}
	r.all[row.GUID], r.begun = x, append(r.begun, x)
	if !quick {
		go run()
		return true
	}
	if r.queue == nil {
		queue := make(chan func(), maxQuick)
		r.cause.OnWait(func() { go serve(queue) })
		r.queue = queue
		go serve(queue)
	}
	r.quick++
	r.queue <- run
	return true
}

// serve runs what comes. A handler that ends its goroutine takes no other with it.
func serve(queue chan func()) {
	done := false
	defer func() {
		if !done {
			go serve(queue)
		}
	}()
	for run := range queue {
		run()
	}
	done = true
}

// await gathers answers of early runs, and waits for those of quick ones. It reports whether there is
// something to decide.
func (r *runs) await(ctx context.Context) bool {
	for {
		wanting := r.wanting
		r.wanting = nil
		for _, w := range wanting {
			r.want(ctx, w)
		}
		if r.cause == nil {
			return false
		}
		r.gather(r.cause.Take())
		limit := min(maxStall, max(maxStall, r.commits/2)-r.waited)
		switch {
		case len(r.due) > 0:
			return true
		case r.quick == 0 || r.stalled || limit <= 0 || r.full():
			return false
		}
		began := time.Now()
		timer := time.NewTimer(limit)
		select {
		case <-r.cause.Came():
		case <-timer.C:
			r.stalled = true
		}
		timer.Stop()
		r.waited += time.Since(began)
	}
}

// gather decides starts of effects, and makes messages of answers, for the batch to decide.
func (r *runs) gather(offers early.Offers) {
	for _, x := range offers.Starts {
		if run := r.all[x.Lease.Request]; run != nil {
			r.heard(run)
			r.start(run, x)
		}
	}
	answers := offers.Answers
	for i := range answers {
		m, err := decode(&inBatchAnswer{msg: answers[i]})
		if err == nil {
			if run := r.all[m.msg.Row]; run != nil {
				r.heard(run)
				if !m.refused {
					r.due = append(r.due, caused{message: m, round: run.round})
					continue
				}
			}
		}
		r.unsent = append(r.unsent, answers[i]) // its lane says what is wrong with it
	}
}

// heard ends the waiting for a run.
func (r *runs) heard(run *earlyRun) {
	if run.quick {
		run.quick = false
		r.quick--
	}
}

// start decides the start of a run's first effect on the row that this batch writes (L7): one that
// commits with its cause. The others wait for that, and then come as calls: what needs a load, and in
// a space that has gone on in another database each Guarded effect, since its job may be in doubt (S13).
func (r *runs) start(run *earlyRun, x *early.Start) {
	st := r.loaded.States[x.Lease.Job]
	switch {
	case st == nil, len(r.plans) >= store.MaxPlans, x.Lease.Resumes, !x.Lease.After.IsZero():
		return
	case x.Effect.Class == store.ClassGuarded && r.epoch() > 1:
		return
	}
	row := st.Rows[x.Lease.Request]
	if row == nil || row.Rev != run.row.Rev || row.Effects.Seq != 0 {
		return
	}
	chain := st.Chain(row)
	out, err := chain.Start(x.Lease, x.Effect, r.mode)
	if err != nil || out.Plan == nil {
		return
	}
	chain.Beside(out.Plan, row, run.row)
	r.write(out.Plan)
	r.loaded.Chains[x.Lease.Key()] = chain
	x.Row, x.Taken = out.EffectRow, out.Taken
}

// answered notes what became of an answer. One that was not decided is sent after the commit.
func (r *runs) answered(m *message, decided bool) {
	if !decided {
		r.unsent = append(r.unsent, *m.delivery.Message())
		return
	}
	r.all[m.msg.Row].kept = true
}

// stopWaiting takes no further answers. Quick runs that have not begun get goroutines of their own.
func (r *runs) stopWaiting() {
	if r.cause == nil {
		return
	}
	r.unsent = append(r.unsent, r.cause.Close()...)
	if r.queue == nil {
		return
	}
	close(r.queue)
	for run := range r.queue {
		go run()
	}
}

// has reports whether the request has begun.
func (r *runs) has(request journal.GUID) bool { return r != nil && r.all[request] != nil }

// begin tells the runs that their cause has committed: from now on they are runs like all others.
// It sends the answers that the batch has not decided.
func (r *runs) begin(ctx context.Context) {
	if r == nil || r.cause == nil {
		return
	}
	r.cause.Settle(true)
	r.count(false)
	if len(r.unsent) == 0 {
		return
	}
	bounded, cancel := context.WithTimeout(ctx, transactTime)
	defer cancel()
	msgs := slices.Clone(r.unsent)
	_ = r.pub.Bus.Send(bounded, msgs, func(i int, err error) { // it gets all outcomes
		for _, run := range r.begun {
			if err != nil && run.row.Holder == msgs[i].Holder {
				r.returnRow(ctx, run.row, err)
			}
		}
	})
}

// fail stops the runs, because their cause did not commit, or may not have: then the rows are handed
// back, should they be there (L6).
func (r *runs) fail(unsure bool) {
	if r == nil || r.cause == nil {
		return
	}
	if unsure {
		for _, run := range r.begun {
			r.cfg.Session.Return(leaseOf(run.row))
		}
	}
	r.cause.Settle(false)
	r.count(true)
}

// count adds the runs to the metrics.
func (r *runs) count(dropped bool) {
	by := map[string]store.EarlyRuns{}
	for _, run := range r.begun {
		n := by[run.row.Topic]
		switch {
		case dropped:
			n.Dropped++
		case run.kept:
			n.Kept++
			r.cfg.Traffic.Add(journal.MessageRequest, traffic.Folded, 1)
		default:
			n.Late++
			r.cfg.Traffic.Add(journal.MessageRequest, traffic.Memory, 1)
		}
		by[run.row.Topic] = n
	}
	for topic, n := range by {
		r.cfg.Early.Count(topic, n)
		for outcome, n := range map[string]int64{"kept": n.Kept, "late": n.Late, "dropped": n.Dropped} {
			if n > 0 {
				r.cfg.Observer.Count(observer.MetricEarly, n, "topic", topic, "outcome", outcome)
			}
		}
	}
}
