package engine

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/internal/store"
	"github.com/quipu-journal/quipu/journal"
)

// handOver comes between the decisions and the commit. It lists what the batch will publish. For
// a request among that it reserves a free slot of this process, if there is one: the row then
// names its holder from the start, and the request goes to it without a server (W7).
func (b *batch) handOver() {
	gone := map[journal.GUID]bool{}
	changed := map[journal.GUID]*collation.Row{} // the last value of each changed row
	rows := 0
	for i := range b.plans {
		p := b.plans[i].Plan
		rows += len(p.Insert) + len(p.Update)
		for n := range p.Update {
			changed[p.Update[n].GUID] = &p.Update[n]
		}
		for _, g := range p.Delete {
			gone[g] = true
		}
		for _, k := range p.CancelStarts {
			gone[k.GUID] = true
		}
	}
	b.out = slices.Grow(b.out, rows)
	for i := range b.plans {
		p := b.plans[i].Plan
		st := b.loaded.States[p.Job]
		if st == nil {
			continue // a plan without a job has listed what it sends itself
		}
		for n := range p.Insert {
			row := &p.Insert[n]
			if row.Publication > 0 && !gone[row.GUID] && changed[row.GUID] == nil {
				b.dispatch(st, p, row)
			}
		}
		for n := range p.Update {
			row := &p.Update[n]
			if row == changed[row.GUID] && !gone[row.GUID] &&
				(released(row, st.Now) || slices.Contains(p.Released, row.GUID)) {
				b.dispatch(st, p, row)
			}
		}
	}
}

// released reports whether the row is that of an element whose turn has just come (1.11), or of
// a function that was just woken (E12). All other updated rows are left to the sweeper, but for
// the answers that the plan releases.
func released(row *collation.Row, now collation.Micros) bool {
	return row.Kind == journal.MessageRequest && row.Held == "" &&
		row.NextAt != collation.Never && // a sleeping row may be claimed already
		row.Publication > 0 && row.PublishedAt == now
}

// dispatch lists a row of a plan to be published. A row of another job names its destination
// itself.
func (b *batch) dispatch(st *collation.State, p *collation.Plan, row *collation.Row) {
	if b.runs.has(row.GUID) {
		return // it has begun, and what follows comes by time
	}
	taken := b.reserve(st, p, row)
	b.out = append(b.out, outgoing(st, row, taken))
}

// outgoing is a row of a job, or of another one that the job sends it, on its way.
func outgoing(st *collation.State, row *collation.Row, taken bool) store.Outgoing {
	o := store.Outgoing{Row: *row, Trace: st.Job.Trace, Taken: taken}
	if row.Job == st.Job.ID {
		o.JobKey, o.Generation, o.Flow = st.Job.Key, st.Job.Generation, st.Job.Flow
		o.SetRoot(st.Job.From)
	}
	return o
}

// reserve gives the row to a run of this process, if a slot is free.
func (b *batch) reserve(st *collation.State, p *collation.Plan, row *collation.Row) bool {
	session := b.mode.Session
	if b.cfg.Local == nil || !b.sends || session == 0 || row.Holder != "" || !released(row, st.Now) {
		return false
	}
	holder, ok := b.cfg.Local.Take(row.Topic)
	if !ok {
		return false
	}
	row.HandOver(holder, session)
	p.Session = session
	if applied := st.Rows[row.GUID]; applied != nil { // made by this batch's Apply, so nobody else has it
		applied.HandOver(holder, session)
	}
	return true
}

// takeBack frees the slots that a batch has reserved and that is not committed. If it may be
// committed in spite of the error, it hands back the rows: the work is decided again and then found
// done, so nobody would run these requests.
func (b *batch) takeBack(err error) {
	unsure := !errors.Is(err, store.ErrLost) && !errors.Is(err, store.ErrBusy) && !refused(err)
	b.runs.fail(unsure)
	for i := range b.out {
		if !b.out[i].Taken {
			continue
		}
		row := &b.out[i].Row
		if unsure {
			b.cfg.Session.Return(leaseOf(row))
		}
		b.cfg.Local.Drop(row.Topic)
	}
}

// leaseOf is the lease of a request that was handed over.
func leaseOf(row *collation.Row) store.Lease {
	return store.Lease{Job: row.Job, Request: row.GUID, Turn: row.Turn, Holder: row.Holder}
}

// send publishes what the batch has committed, and gives the reserved requests to the workers of
// this process. A request that does not arrive is handed back: its row is due at once.
func (b *batch) send(ctx context.Context) {
	from := b.origin()
	taken := func(o store.Outgoing) bool { return o.Taken }
	if !slices.ContainsFunc(b.out, taken) {
		b.publish(ctx, b.out, from)
		return
	}
	var others []store.Outgoing
	for i := range b.out {
		if !b.out[i].Taken {
			others = append(others, b.out[i])
			continue
		}
		row := &b.out[i].Row
		var known atomic.Bool
		arrived := func(err error) { // it must not block
			if err != nil && known.CompareAndSwap(false, true) {
				b.handBack(ctx, row, err)
			}
		}
		arrived(b.pub.publish(ctx, b.out[i:i+1], from, func(_ int, err error) { arrived(err) }))
	}
	b.publish(ctx, others, from)
}

// handBack frees the slot of a request that did not arrive, and makes its row due.
func (l *loop) handBack(ctx context.Context, row *collation.Row, cause error) {
	l.cfg.Local.Drop(row.Topic)
	l.returnRow(ctx, row, cause)
}

// returnRow makes the row of a request due that no run of this process has any more. Run waits for it.
func (l *loop) returnRow(ctx context.Context, row *collation.Row, cause error) {
	l.returning.Go(func() {
		ctx, cancel := context.WithTimeout(ctx, transactTime)
		defer cancel()
		lease := leaseOf(row)
		err := l.cfg.Store.HandBack(ctx, lease)
		if err != nil && !errors.Is(err, store.ErrStale) {
			l.cfg.Session.Return(lease)
		}
		l.cache.drop(row.Job)
		l.log.Debug("a request, or its answer, was not handed over: its row sends it", "request", row.GUID.String(), "cause", cause, "error", err)
	})
}
