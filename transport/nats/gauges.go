package nats

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"golang.org/x/sync/errgroup"

	"github.com/quipu-journal/quipu/transport"
)

// Limits of Queues, so that a look at the gauges costs little (O4).
const (
	MaxQueues  = 100 // topics
	maxOldest  = 50  // topics whose oldest request is looked at
	oldestOnce = 8   // looks at a time
)

// Queue is what waits for a topic.
type Queue struct {
	Topic  string
	Queued int64         // requests that no process has taken
	Oldest time.Duration // how long the oldest of them has been there; 0 beyond the 50 fullest queues
	Pulled bool          // somebody asks for its requests, or has some of them
}

// Queues are the queues of a space as NATS knows them.
type Queues struct {
	Topics   []Queue // the fullest first
	Unpulled int     // lanes from which nobody pulls, and of which nobody has a message
	// Fill is the part of each stream's bytes that is taken, by its queues; one without a limit is
	// absent.
	Fill map[transport.Kind]float64
}

// Queues reads what waits in the streams (O4). It needs the rights of an engine. Nothing may be
// concluded from it: it is for people.
func (b *Bus) Queues(ctx context.Context) (Queues, error) {
	if !b.nc.IsConnected() {
		return Queues{}, fmt.Errorf("queues: %w: not connected", transport.ErrUnavailable)
	}
	var q Queues
	pulled := 0
	err := b.consumersOf(ctx, transport.Lane, func(c *jetstream.ConsumerInfo) {
		if c.NumWaiting > 0 || c.NumAckPending > 0 {
			pulled++
		}
	})
	if err != nil {
		return Queues{}, ioError("queues of lanes", err)
	}
	q.Unpulled = max(0, b.cfg.Lanes-pulled)
	if q.Topics, err = b.topics(ctx); err != nil {
		return Queues{}, ioError("queues of topics", err)
	}
	if q.Fill, err = b.fill(ctx); err != nil {
		return Queues{}, ioError("fill of the streams", err)
	}
	return q, nil
}

// fill reads how full the streams are. One that is missing is absent.
func (b *Bus) fill(ctx context.Context) (map[transport.Kind]float64, error) {
	var fill map[transport.Kind]float64
	for _, kind := range kinds {
		stream, err := b.js.Stream(ctx, b.streamName(kind))
		if errors.Is(err, jetstream.ErrStreamNotFound) {
			continue
		}
		if err != nil {
			return nil, err
		}
		if info := stream.CachedInfo(); info.Config.MaxBytes > 0 {
			if fill == nil {
				fill = map[transport.Kind]float64{}
			}
			fill[kind] = float64(info.State.Bytes) / float64(info.Config.MaxBytes)
		}
	}
	return fill, nil
}

// consumersOf visits the consumers of a stream. A stream that is missing has none.
func (b *Bus) consumersOf(ctx context.Context, kind transport.Kind, visit func(*jetstream.ConsumerInfo)) error {
	stream, err := b.stream(ctx, kind)
	if err != nil {
		return notFound(err)
	}
	all := stream.ListConsumers(ctx)
	for c := range all.Info() {
		visit(c)
	}
	return notFound(all.Err())
}

// topics reads the queues of the topics. A topic without a consumer has requests that nobody ever
// served.
func (b *Bus) topics(ctx context.Context) ([]Queue, error) {
	prefix := b.subject(transport.ToWork(""))
	queued, after, pulled := map[string]int64{}, map[string]uint64{}, map[string]bool{}
	stream, err := b.js.Stream(ctx, b.streamName(transport.Work)) // Info writes into its handle
	if err != nil {
		return nil, notFound(err)
	}
	info, err := stream.Info(ctx, jetstream.WithSubjectFilter(prefix+">"))
	if err != nil {
		return nil, notFound(err)
	}
	for subject, n := range info.State.Subjects {
		queued[strings.TrimPrefix(subject, prefix)] = int64(n)
	}
	if err := b.consumersOf(ctx, transport.Work, func(c *jetstream.ConsumerInfo) {
		topic := strings.TrimPrefix(c.Config.FilterSubject, prefix)
		queued[topic], after[topic] = int64(c.NumPending), c.Delivered.Stream
		pulled[topic] = c.NumWaiting > 0 || c.NumAckPending > 0
	}); err != nil {
		return nil, err
	}
	all := make([]Queue, 0, len(queued))
	for _, topic := range slices.Sorted(maps.Keys(queued)) {
		all = append(all, Queue{Topic: topic, Queued: queued[topic], Pulled: pulled[topic]})
	}
	slices.SortStableFunc(all, func(a, c Queue) int { return cmp.Compare(c.Queued, a.Queued) })
	all = all[:min(len(all), MaxQueues)]
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(oldestOnce)
	for i := range all[:min(len(all), maxOldest)] {
		if q := &all[i]; q.Queued > 0 {
			group.Go(func() error {
				msg, err := b.next(ctx, stream, transport.ToWork(q.Topic), after[q.Topic]+1)
				if msg != nil {
					q.Oldest = max(0, info.TimeStamp.Sub(msg.Time))
				}
				return err
			})
		}
	}
	return all, group.Wait()
}

// Answers asks the server for a sign of life. The error is transport.ErrUnavailable, or that of
// ctx. A server that gives none for half of witnessWait or longer is a trouble until it gives one: the connection
// itself notices only after some missed pings.
func (b *Bus) Answers(ctx context.Context) error {
	if !b.nc.IsConnected() {
		return fmt.Errorf("nats: %w: not connected", transport.ErrUnavailable)
	}
	ctx, cancel := context.WithTimeout(ctx, pubAckWait) // a flush has to have a deadline
	defer cancel()
	began := time.Now()
	if err := b.nc.FlushWithContext(ctx); err != nil {
		if time.Since(began) >= witnessWait/2 {
			b.silent.Store(true)
			b.heed(false)
		}
		return errors.Join(transport.ErrUnavailable, err)
	}
	b.hear()
	return nil
}
