package engine

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/internal/store"
	"github.com/quipu-journal/quipu/telemetry/observer"
	"github.com/quipu-journal/quipu/transport"
)

// Times and limits of messages that the bus has refused (T5).
const (
	// refusedPace is the time between two rows of one queue that refuses: each of them waits its
	// turn, so that a few are tried again soon, and many do not keep the database busy.
	refusedPace = 5 * time.Millisecond
	// refusedProbes is how many rows of such a queue are sent in refusedWindow, to find out whether
	// it takes messages again.
	refusedProbes = 20
	refusedWindow = time.Second
	// refusedMost bounds the refusals that are not written yet. A row of which nothing is written is
	// looked for when it is due, as if its message was lost (T2).
	refusedMost = 10_000
)

// refusals are the messages that the bus has refused, until their rows say so, and the queues that
// refuse. Only the process that sweeps keeps them.
type refusals struct {
	some atomic.Bool // whether a queue refuses, for the way of every message

	mu     sync.Mutex
	rows   []store.Claim
	queues map[transport.Destination]*shortage
	alarm  *alarm // of the sweeper; nil: nobody sweeps here
}

// shortage is a queue that refuses messages.
type shortage struct {
	next   time.Time // when the next of its rows is tried again
	since  time.Time // of probes
	probes int
}

// queueOf is what refuses together: a topic, all lanes, the start queue.
func queueOf(d transport.Destination) transport.Destination {
	if d.Kind == transport.Lane {
		d.Lane = 0
	}
	return d
}

// sweptBy says whose alarm rings when a message was refused; nil: nobody's.
func (r *refusals) sweptBy(a *alarm) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.alarm = a
}

// watch returns what gets the bus's answers to messages; nil if nobody sweeps here. at says which of
// the rows each message is of; nil: the same.
func (p *Publisher) watch(msgs []transport.Message, out []store.Outgoing, at []int) func(i int, err error) {
	r := &p.refused
	r.mu.Lock()
	swept := r.alarm != nil
	r.mu.Unlock()
	if !swept {
		return nil
	}
	return func(i int, err error) {
		switch {
		case err == nil && r.some.Load():
			r.took(queueOf(msgs[i].To))
		case errors.Is(err, transport.ErrFull), errors.Is(err, transport.ErrSilent):
			to, n := msgs[i].To, i
			if at != nil {
				n = at[i]
			}
			p.countRefused(to)
			r.refuse(queueOf(to), &out[n].Row, time.Now())
		}
	}
}

func (p *Publisher) countRefused(to transport.Destination) {
	if p.Observer == nil {
		return
	}
	if to.Kind == transport.Work {
		p.Observer.Count(observer.MetricUnsent, 1, "queue", to.Kind.String(), "topic", to.Topic)
		return
	}
	p.Observer.Count(observer.MetricUnsent, 1, "queue", to.Kind.String())
}

// took notes that a queue takes messages.
func (r *refusals) took(d transport.Destination) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.queues, d)
	r.some.Store(len(r.queues) > 0)
}

// refuse notes that a row's message was refused.
func (r *refusals) refuse(d transport.Destination, row *collation.Row, now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	q := r.queues[d]
	if q == nil {
		if r.queues == nil {
			r.queues = map[transport.Destination]*shortage{}
		}
		q = &shortage{since: now, probes: refusedProbes} // it has just refused
		r.queues[d] = q
		r.some.Store(true)
	}
	if r.alarm == nil || len(r.rows) >= refusedMost {
		return
	}
	r.rows = append(r.rows, store.Claim{
		Row:     store.DueRow{Job: row.Job, GUID: row.GUID, Publication: row.Publication, Turn: row.Turn},
		Refused: true, Again: q.turn(now),
	})
	if len(r.rows) == 1 {
		r.alarm.set(now.Add(sweepLeast))
	}
}

// turn returns when another row of the queue is tried again.
func (q *shortage) turn(now time.Time) time.Duration {
	if first := now.Add(DefaultResend); q.next.Before(first) {
		q.next = first
	}
	if last := now.Add(maxAgain); q.next.After(last) {
		q.next = last
	}
	wait := q.next.Sub(now)
	q.next = q.next.Add(refusedPace)
	return wait
}

// wait says for how long a due row is left, because its queue refuses; 0: it is sent.
func (r *refusals) wait(d transport.Destination, now time.Time) time.Duration {
	if !r.some.Load() {
		return 0
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	q := r.queues[queueOf(d)]
	if q == nil {
		return 0
	}
	if now.Sub(q.since) >= refusedWindow {
		q.since, q.probes = now, 0
	}
	if q.probes < refusedProbes {
		q.probes++
		return 0
	}
	return q.turn(now)
}

// take returns at most n of the refusals that are to be written.
func (r *refusals) take(n int) []store.Claim {
	r.mu.Lock()
	defer r.mu.Unlock()
	n = min(n, len(r.rows))
	out := r.rows[:n:n]
	if r.rows = r.rows[n:]; len(r.rows) == 0 {
		r.rows = nil
	}
	return out
}

// noteRefused writes into their rows that messages were refused. What cannot be written is looked
// for when it is due.
func (s *sweeper) noteRefused(ctx context.Context) error {
	for {
		claims := s.e.pub.refused.take(sweepLimit)
		if len(claims) == 0 {
			return nil
		}
		bounded, cancel := context.WithTimeout(ctx, sweepTime)
		_, err := s.e.cfg.Store.Claim(bounded, claims)
		cancel()
		for i := range claims {
			s.e.committer.cache.drop(claims[i].Row.Job) // the claim changed the row (W6)
		}
		if err != nil {
			return err
		}
	}
}
