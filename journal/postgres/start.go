package postgres

import (
	"context"
	"errors"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/internal/store"
	"github.com/quipu-journal/quipu/journal"
)

// readHolder reads the job that has a key, with the input that it was started with.
func (s *Store) readHolder(v row) (*collation.Holder, error) {
	h := &collation.Holder{
		ID: v.job(1), Generation: v.int(2), State: journal.JobState(v.text(3)), Flow: v.flow(4), Floor: v.int(8),
	}
	if v.null(7) {
		return h, nil
	}
	e, err := s.sealed(h.ID, v.bytes(7))
	if err == nil {
		h.Input = e.Input
	}
	return h, err
}

// abandon rolls the connection's transaction back. If that fails too, the pool closes the
// connection, since it is still in a transaction.
func abandon(ctx context.Context, c *conn) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), rollbackTimeout)
	defer cancel()
	_ = c.query(ctx, "rollback", nil)
}

// queueActive checks that the flow versions of new jobs are still active.
func (w *writes) queueActive(b *batch) {
	for i := range w.births {
		if p := w.births[i].Plan; p.Active && !slices.Contains(w.flows, *p.Entry.Flow) {
			w.flows = append(w.flows, *p.Entry.Flow)
		}
	}
	write(b, "write_flows_active", w.flows, func(c *columns, f journal.FlowRef) { c.text(f.Name); c.text(f.Version) })
}

// queueBirths inserts jobs as the batch leaves them.
func (w *writes) queueBirths(b *batch) {
	params := arrays(w.births, func(c *columns, x birth) {
		p := x.Plan
		e, j := p.Entry, x.job
		c.text(e.Activity)
		c.int(int64(classOf(p.Keep)))
		c.int(j.closeSeq)
		c.int(j.tasksSeq)
		c.int(int64(j.expires))
		record(c, jobColumns, &collation.Job{
			ID: e.Job, Key: e.Key, Generation: e.Generation, Flow: *e.Flow,
			State: j.state, Semaphore: j.semAfter, Head: journal.Head{Seq: j.seqAfter, Hash: j.hash},
			Started: collation.Micros(e.Time), Tags: e.Tags, Trace: e.Trace, Parent: e.Parent, From: e.From,
		})
	})
	*b = append(*b, step{"write_jobs_new", params, func(v row) error { w.born = v.numbers(0); return nil }})
	write(b, "write_floor", w.births, func(c *columns, x birth) { c.int(x.Plan.Entry.Generation) })
}

// lostTo matches what a test-and-set says that it lost.
var lostTo = regexp.MustCompile(`"quipu: lost (keys|flows|payloads|hot jobs|hot rows) ([0-9,]+)"`)

// lostSession is what write_marker raises.
const lostSession = `"quipu: lost sessions`

// says reports whether an error says what a test-and-set lost to.
func says(err error) bool {
	pg := serverError(err)
	return pg != nil && (strings.Contains(pg.Message, lostSession) || lostTo.MatchString(pg.Message))
}

// lost turns an error into a LostError if it says what was lost.
func (w *writes) lost(err error) error {
	pg := serverError(err)
	if pg == nil || !errors.Is(err, store.ErrLost) {
		return err
	}
	if strings.Contains(pg.Message, lostSession) {
		return &store.LostError{Session: true, Err: err}
	}
	said := lostTo.FindStringSubmatch(pg.Message)
	if said == nil {
		return err
	}
	e := &store.LostError{Err: err}
	for _, place := range strings.Split(said[2], ",") {
		n, failed := strconv.Atoi(place)
		switch {
		case failed != nil || n < 1:
		case said[1] == "keys" && n <= len(w.births):
			e.Keys = append(e.Keys, w.births[n-1].Plan.Entry.Key)
		case said[1] == "flows" && n <= len(w.flows):
			e.Flows = append(e.Flows, w.flows[n-1].Name)
		case said[1] == "payloads" && n <= len(w.payloads):
			e.Jobs = append(e.Jobs, w.payloads[n-1].job)
		case said[1] == "hot jobs" && n <= len(w.hot):
			e.Hot = append(e.Hot, w.hot[n-1].job)
		case said[1] == "hot rows":
			if job, found := w.hotRow(n); found {
				e.Hot = append(e.Hot, job)
			}
		}
	}
	return e
}
