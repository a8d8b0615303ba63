package engine

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/journal/store"
	"github.com/quipu-journal/quipu/observer"
)

// deliver hands signals to the waits of their keys (1.11). They belong to no
// job, so that they have no part in a job's transaction (J3): the store arbitrates
// under the lock of each key. through is as for carry.
func (l *loop) deliver(ctx context.Context, items []*item) (through bool) {
	if len(items) == 0 {
		return true
	}
	p := patience{since: time.Now()}
	for {
		began := time.Now()
		bounded, cancel := context.WithTimeout(ctx, transactTime)
		out, err := l.cfg.Store.Deliver(bounded, keysOf(items), l.mode)
		cancel()
		if errors.Is(err, collation.ErrSignal) {
			err = fmt.Errorf("%w: %w", store.ErrRejected, err)
		}
		switch {
		case err == nil:
			l.publish(ctx, out, Origin{})
			l.delivered(items, out, began)
			return true
		case l.again(&p, &work{items: items}, err):
		case refused(err) && len(items) > 1:
			l.singly(items, func(one []*item) bool { return l.deliver(ctx, one) })
			return true
		case refused(err):
			l.bury(ctx, items[0], reasonRefused, err)
			return true
		default:
			l.handBack(items, err)
			return false
		}
	}
}

// keysOf names the rows of the items, each once.
func keysOf(items []*item) []collation.RowKey {
	keys := make([]collation.RowKey, 0, len(items))
	seen := make(map[collation.RowKey]bool, len(items))
	for _, it := range items {
		if k := it.key(); !seen[k] {
			seen[k] = true
			keys = append(keys, k)
		}
	}
	return keys
}

// delivered acks the signals, counts what became of them, and tells each job that
// was reached.
func (l *loop) delivered(items []*item, out []store.Outgoing, began time.Time) {
	end := time.Now()
	consumed := map[journal.GUID]bool{}
	for i := range out {
		o := &out[i]
		if r, err := journal.DecodeResponse(o.Row.Body); err == nil {
			consumed[r.Signal] = true
		}
		if o.Trace != "" {
			l.cfg.Observer.Told(o.Trace, observer.Span{
				Name: observer.SpanSignal, Start: began, End: end, Subject: SignalSubject(l.cfg.Space, o),
			})
		}
	}
	for _, it := range items {
		outcome := string(store.SignalKept)
		if consumed[it.msg.GUID] {
			outcome = string(store.SignalConsumed)
		}
		l.cfg.Observer.Count(observer.MetricSignals, 1, "outcome", outcome)
		l.ack(it.delivery)
	}
}

// SignalSubject says of a wake-up that a signal made which job and activity it
// reached.
func SignalSubject(space string, o *store.Outgoing) observer.Subject {
	return observer.Subject{
		Space: space, Job: o.Row.Job.String(), Key: o.JobKey, Flow: o.Flow.Name,
		Activity: o.Row.Activity, DAD: string(o.Row.DAD), GUID: o.Row.GUID.String(), By: string(journal.BySignal),
	}
}
