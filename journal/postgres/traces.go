package postgres

import (
	"context"
	"fmt"
	"time"

	"github.com/quipu-journal/quipu/journal"
)

const (
	// tracePage bounds the jobs whose traces are sent together.
	tracePage = 100
	// traceSlack is how much later than its close a job may be seen: a transaction takes at most
	// 30 s, and the time of a close is read before it.
	traceSlack = 40 * time.Second
	// TraceAge bounds how long ago a job may have closed whose trace is sent by itself.
	TraceAge = 24 * time.Hour
)

// Traces sends the traces of ended jobs (O2). The mark of what was sent is in the database, and one
// process of the space at a time sends: what it has not marked, another sends after its death.
// Do not use it concurrently.
type Traces struct {
	s    *Store
	upto int64                   // the mark; 0: not read yet
	sent map[journal.JobID]int64 // when the jobs closed that were sent since the mark, less the slack
}

// Traces returns the sender of a process.
func (s *Store) Traces() *Traces { return &Traces{s: s, sent: map[journal.JobID]int64{}} }

// Send gives the jobs that have ended to deliver, at most 100 at a time, first what closed first,
// unless another process does so. A job whose delivery failed comes again with the next call. A job
// can come twice, after another process was the sender. Jobs that closed more than TraceAge ago are
// left out. Errors: those of deliver and of the database.
func (t *Traces) Send(ctx context.Context, deliver func([]journal.JobID) error) error {
	var failed error // of deliver, not to be classified
	err := t.s.call(ctx, "send traces", func(c *conn) error {
		return t.s.alone(ctx, c, "traces", func() error {
			err := c.query(ctx, "traces_begin", func(v row) error { t.upto = v.int(0); return nil }, pInt(TraceAge.Microseconds()))
			if err == nil {
				failed, err = t.pages(ctx, c, deliver)
			}
			return err
		})
	})
	if failed != nil {
		return fmt.Errorf("postgres: send traces: %w", failed)
	}
	return err
}

// pages sends what has ended since the mark, less the slack.
func (t *Traces) pages(ctx context.Context, c *conn, deliver func([]journal.JobID) error) (failed, err error) {
	closed, last := t.upto-traceSlack.Microseconds(), journal.JobID{}
	for id, at := range t.sent {
		if at <= closed {
			delete(t.sent, id)
		}
	}
	for {
		n := 0
		fresh := map[journal.JobID]int64{}
		var jobs []journal.JobID
		err := c.query(ctx, "traces_ended", func(v row) error {
			n++
			last, closed = v.job(0), v.int(1)
			if t.sent[last] == 0 {
				jobs, fresh[last] = append(jobs, last), closed
			}
			return nil
		}, pInt(closed), pUUID(last), pInt(tracePage))
		if err != nil {
			return nil, err
		}
		if len(jobs) > 0 {
			if err := deliver(jobs); err != nil {
				return err, nil
			}
			for id, at := range fresh {
				t.sent[id] = at
			}
			if err := c.query(ctx, "traces_sent", nil, pInt(closed)); err != nil {
				return nil, err
			}
		}
		if n < tracePage {
			return nil, nil
		}
	}
}
