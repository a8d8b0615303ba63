package nats

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"time"

	natsgo "github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"golang.org/x/sync/errgroup"

	"github.com/quipu-journal/quipu/transport"
)

// ensureEvery keeps the loops of one stream from all ensuring it after its loss: one
// does, the others see that it is recent.
const ensureEvery = 200 * time.Millisecond

// ensureParallel bounds the consumers that Ensure makes at the same time.
const ensureParallel = 8

// errCodeConsumerStore is the server's error when it cannot write a consumer.
const errCodeConsumerStore = 10012

// unlimited: deliveries are not limited by number (T3), and messages only by bytes (T5).
const unlimited = -1

var kinds = [...]transport.Kind{transport.Lane, transport.Start, transport.Work}

// ensured remembers when each stream was last ensured, its handle, which spares a request
// for its state, and the topics consumed in this process.
type ensured struct {
	mu   sync.Mutex
	at   [transport.Work + 1]time.Time
	busy [transport.Work + 1]sync.Mutex
	// removed is when a stream without its directory was deleted.
	removed [transport.Work + 1]time.Time
	topics  map[string]struct{}
	handle  [transport.Work + 1]jetstream.Stream
}

// Ensure implements transport.Bus. It makes the three streams, the consumers of all lanes
// and of the start queue, and those of the topics that this process consumes (T5). From
// then on it makes the consumers that workers ask for (S4). A process that makes no
// streams does nothing here.
func (b *Bus) Ensure(ctx context.Context) error {
	if b.cfg.LeaveStreams {
		return nil
	}
	var err error
	if b.answering.Do(func() { err = b.answer() }); err != nil {
		return err
	}
	if err := b.Streams(ctx); err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(ensureParallel)
	for _, d := range b.destinations() {
		group.Go(func() error { return b.ensureConsumer(ctx, d) })
	}
	return group.Wait()
}

// Streams says whether the streams of the space can be had: it makes those that are missing. The
// error names the stream. ctx bounds it, and repairWait where another call makes the stream.
func (b *Bus) Streams(ctx context.Context) error {
	for _, kind := range kinds {
		if err := b.ensureStream(ctx, kind); err != nil {
			return err
		}
	}
	return nil
}

func (b *Bus) destinations() []transport.Destination {
	all := []transport.Destination{transport.ToStart()}
	for n := range b.cfg.Lanes {
		all = append(all, transport.ToLane(n))
	}
	b.streams.mu.Lock()
	defer b.streams.mu.Unlock()
	for topic := range b.streams.topics {
		all = append(all, transport.ToWork(topic))
	}
	return all
}

// ensureBeforeBreak gives up when the connection breaks, because a request under way is
// then never answered.
func (b *Bus) ensureBeforeBreak(ctx context.Context, breaks <-chan struct{}, d transport.Destination) error {
	ctx, cancel := context.WithTimeout(ctx, repairWait)
	defer cancel()
	watched := make(chan struct{})
	defer close(watched)
	go func() {
		select {
		case <-breaks:
			cancel()
		case <-watched:
		}
	}()
	if b.cfg.LeaveStreams {
		return b.ask(ctx, d)
	}
	return b.ensureDestination(ctx, d)
}

// ensureDestination makes what a consumer loop needs before it binds.
func (b *Bus) ensureDestination(ctx context.Context, d transport.Destination) error {
	b.streams.mu.Lock()
	recent := time.Since(b.streams.at[d.Kind]) < ensureEvery
	b.streams.mu.Unlock()
	if !recent {
		if err := b.ensureStream(ctx, d.Kind); err != nil {
			return err
		}
	}
	return b.ensureConsumer(ctx, d)
}

func (b *Bus) ensureStream(ctx context.Context, kind transport.Kind) error {
	b.streams.busy[kind].Lock()
	defer b.streams.busy[kind].Unlock()
	name := b.streamName(kind)
	stream, err := b.js.Stream(ctx, name)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		if stream, err = b.createStream(ctx, kind); errors.Is(err, jetstream.ErrStreamNameAlreadyInUse) {
			stream, err = b.js.Stream(ctx, name) // somebody was faster, perhaps with other settings
		}
	}
	if err == nil {
		stream, err = b.raiseStream(ctx, kind, stream)
	}
	if err != nil {
		return ioError("ensure stream "+name, err)
	}
	b.streams.mu.Lock()
	b.streams.at[kind] = time.Now()
	b.streams.handle[kind] = stream
	b.streams.mu.Unlock()
	return nil
}

// raiseStream gives a stream what Config asks for and it has less of, and refuses one
// that breaks the promise. An up-to-date stream is left alone, because many processes
// ensure the same streams while others make consumers on them.
func (b *Bus) raiseStream(ctx context.Context, kind transport.Kind, stream jetstream.Stream) (jetstream.Stream, error) {
	want, up := b.raised(stream.CachedInfo().Config, kind)
	if problems := b.streamProblems(&want, kind); len(problems) > 0 {
		return nil, &settingsError{problems, "change that, or delete the stream while the space is stopped: the rows send again what is open"}
	}
	if len(up) == 0 {
		return stream, nil
	}
	raised, err := b.js.UpdateStream(ctx, want)
	if err != nil {
		return nil, fmt.Errorf("raise %s: %w", strings.Join(up, ", "), err)
	}
	b.cfg.Log.Info("raised the settings of a stream", "stream", want.Name, "settings", up)
	return raised, nil
}

// settingsError says that a stream or consumer breaks the promise.
type settingsError struct {
	problems []string
	remedy   string
}

func (e *settingsError) Error() string {
	return "it breaks the promise: " + strings.Join(e.problems, "; ") + ": " + e.remedy
}

// remakeWait is how long a stream that somebody deleted is left alone before it is made
// again. The server answers a deletion before it has removed the files; a stream made in
// between loses its directory and then accepts no messages.
const remakeWait = 500 * time.Millisecond

func (b *Bus) createStream(ctx context.Context, kind transport.Kind) (jetstream.Stream, error) {
	b.streams.mu.Lock()
	known := b.streams.handle[kind] != nil
	b.streams.mu.Unlock()
	if known {
		sleep(ctx, remakeWait+rand.N(remakeWait/2))
	}
	cfg := b.streamConfig(kind)
	stream, err := b.js.CreateStream(ctx, cfg)
	if err != nil {
		err = fmt.Errorf("make it with Replicas %d, MaxBytes %d, MaxAge %s, Placement %s: %w", cfg.Replicas, cfg.MaxBytes, cfg.MaxAge, placementText(cfg.Placement), err)
	}
	return stream, err
}

func (b *Bus) ensureConsumer(ctx context.Context, d transport.Destination) error {
	stream := b.streamName(d.Kind)
	cfg := b.consumerConfig(d)
	consumer, err := b.raiseConsumer(ctx, stream, cfg)
	lost := hollow(err)
	if lost {
		b.remove(ctx, d.Kind)
	}
	if lost || errors.Is(err, jetstream.ErrStreamNotFound) { // another loop may be making the stream again
		if err := b.ensureStream(ctx, d.Kind); err != nil {
			return err
		}
		consumer, err = b.raiseConsumer(ctx, stream, cfg)
	}
	if err != nil {
		if errors.Is(err, jetstream.ErrStreamNotFound) {
			b.forget(d.Kind)
		}
		return ioError("ensure consumer "+cfg.Durable+" of stream "+stream, err)
	}
	if err := b.removeAcked(ctx, consumer, d); err != nil { // the next binding tries again
		b.cfg.Log.Warn("messages that were acked stay in the stream", "stream", stream, "from", d.String(), "error", err)
	}
	return nil
}

// raiseConsumer makes a consumer, or gives the one that is there the settings that every
// process relies on. One that breaks the promise is refused.
func (b *Bus) raiseConsumer(
	ctx context.Context, stream string, cfg jetstream.ConsumerConfig,
) (jetstream.Consumer, error) {
	consumer, err := b.js.Consumer(ctx, stream, cfg.Durable)
	if errors.Is(err, jetstream.ErrConsumerNotFound) {
		if consumer, err = b.js.CreateConsumer(ctx, stream, cfg); errors.Is(err, jetstream.ErrConsumerExists) {
			consumer, err = b.js.Consumer(ctx, stream, cfg.Durable) // somebody was faster
		}
	}
	if err != nil {
		return nil, err
	}
	want, changed := raisedConsumer(consumer.CachedInfo().Config, cfg)
	if problems := b.consumerProblems(&want); len(problems) > 0 {
		return nil, consumerFaults(problems)
	}
	if err := b.resume(ctx, consumer.CachedInfo()); err != nil {
		return nil, err
	}
	if !changed {
		return consumer, nil
	}
	return b.js.UpdateConsumer(ctx, stream, want)
}

// hollow reports a stream that lost its directory. It was made while the server was still
// removing one of the same name (remakeWait), by a process that did not know of that one.
// It accepts no consumer until it is made again.
func hollow(err error) bool {
	api, ok := errors.AsType[*jetstream.APIError](err)
	return ok && api.ErrorCode == errCodeConsumerStore && strings.Contains(api.Description, "no such file or directory")
}

// remove deletes a hollow stream, so that it is made again after remakeWait. Nothing is
// lost: the rows send open messages again (T1).
func (b *Bus) remove(ctx context.Context, kind transport.Kind) {
	b.streams.busy[kind].Lock()
	defer b.streams.busy[kind].Unlock()
	b.streams.mu.Lock()
	recent := time.Since(b.streams.removed[kind]) < repairWait
	b.streams.removed[kind] = time.Now()
	b.streams.mu.Unlock()
	if recent {
		return // another loop has just done it
	}
	name := b.streamName(kind)
	err := b.js.DeleteStream(ctx, name)
	b.cfg.Log.Error("a stream had lost its directory, it is made again", "stream", name, "error", err)
	b.forget(kind)
}

// stream is a handle on a stream by name, which stays valid when the stream is lost.
func (b *Bus) stream(ctx context.Context, kind transport.Kind) (jetstream.Stream, error) {
	b.streams.mu.Lock()
	handle := b.streams.handle[kind]
	b.streams.mu.Unlock()
	if handle != nil {
		return handle, nil
	}
	return b.js.Stream(ctx, b.streamName(kind))
}

// forget makes the next loop ensure the stream again at once.
func (b *Bus) forget(kind transport.Kind) {
	b.streams.mu.Lock()
	b.streams.at[kind] = time.Time{}
	b.streams.mu.Unlock()
}

// consumes notes a topic, so that Ensure makes its consumer too. It reports false for a
// topic beyond the limit.
func (b *Bus) consumes(d transport.Destination) bool {
	if d.Kind != transport.Work {
		return true
	}
	b.streams.mu.Lock()
	defer b.streams.mu.Unlock()
	if b.streams.topics == nil {
		b.streams.topics = make(map[string]struct{})
	}
	if len(b.streams.topics) < maxTopics {
		b.streams.topics[d.Topic] = struct{}{}
	}
	_, known := b.streams.topics[d.Topic]
	return known
}

func (b *Bus) streamName(kind transport.Kind) string {
	names := [...]string{transport.Lane: "LANES", transport.Start: "START", transport.Work: "WORK"}
	return strings.ToUpper(b.cfg.Prefix) + "_" + b.cfg.Space + "_" + names[kind]
}

// subjects begins every subject of the space.
func (b *Bus) subjects() string { return b.cfg.Prefix + "." + b.cfg.Space + "." }

func (b *Bus) subject(d transport.Destination) string {
	return b.subjects() + d.String()
}

// durableName is the consumer's name. A topic's dots become '=', which no topic contains,
// so that two topics never share a consumer.
func durableName(d transport.Destination) string {
	switch d.Kind {
	case transport.Lane:
		return "lane-" + strconv.Itoa(d.Lane)
	case transport.Work:
		return "work-" + strings.ReplaceAll(d.Topic, ".", "=")
	default:
		return d.Kind.String()
	}
}

// streamSubject is the subject of everything that goes into a stream.
func (b *Bus) streamSubject(kind transport.Kind) string {
	subjects := [...]string{transport.Lane: "lane.*", transport.Start: "start", transport.Work: "work.>"}
	return b.subjects() + subjects[kind]
}

// streamConfig is that of a new stream.
func (b *Bus) streamConfig(kind transport.Kind) jetstream.StreamConfig {
	cfg := jetstream.StreamConfig{
		Name:        b.streamName(kind),
		Description: "Quipu messages; safe to lose, the dispatch rows send again",
		Subjects:    []string{b.streamSubject(kind)},
		Retention:   jetstream.WorkQueuePolicy,
		Storage:     jetstream.FileStorage,
		Discard:     jetstream.DiscardNew,
		MaxBytes:    cmp.Or(b.cfg.MaxBytes, DefaultMaxBytes),
		MaxAge:      b.cfg.MaxAge,
		MaxMsgs:     unlimited,
		Replicas:    b.cfg.Replicas,
		Duplicates:  DuplicateWindow,
	}
	cfg.Placement = b.placed(nil)
	return cfg
}

func (b *Bus) consumerConfig(d transport.Destination) jetstream.ConsumerConfig {
	wait := b.cfg.LaneAckWait
	if d.Kind == transport.Work {
		wait = b.cfg.WorkAckWait
	}
	cfg := jetstream.ConsumerConfig{
		Durable:       durableName(d),
		FilterSubject: b.subject(d),
		DeliverPolicy: jetstream.DeliverAllPolicy,
		AckPolicy:     jetstream.AckExplicitPolicy,
		AckWait:       wait,
		MaxDeliver:    unlimited,
		MaxAckPending: MaxAckPending,
		MaxWaiting:    MaxWaiting,
	}
	if d.Kind == transport.Lane {
		cfg.PriorityPolicy, cfg.PriorityGroups, cfg.PinnedTTL = jetstream.PriorityPolicyPinned, []string{pinGroup},
			b.cfg.Pin
	}
	return cfg
}

// ioError wraps an error of the client once, with the operation. An error that a retry
// may cure becomes transport.ErrUnavailable, including a request without an answer in
// time and a consumer that was just deleted.
func ioError(op string, err error) error {
	var api *jetstream.APIError
	var settings *settingsError
	switch {
	case errors.As(err, &settings):
		return fmt.Errorf("%s: %w", op, err)
	case errors.As(err, &api) && api.Code < 500 && api.Code != 404 &&
		!errors.Is(err, jetstream.ErrConsumerDoesNotExist):
		return fmt.Errorf("%s: %w", op, err)
	case errors.Is(err, context.Canceled):
		return fmt.Errorf("%s: %w", op, err)
	case errors.Is(err, natsgo.ErrConnectionClosed):
		return fmt.Errorf("%s: %w", op, transport.ErrClosed)
	default:
		return fmt.Errorf("%s: %w: %w", op, transport.ErrUnavailable, err)
	}
}
