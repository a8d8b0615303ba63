package nats

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"golang.org/x/sync/errgroup"

	"github.com/quipu-journal/quipu/transport"
)

// Of the stream of requests a topic may have as much as is free. So one topic that nobody serves
// takes at most half of it, n such topics leave one part in n+1 to all others, and whoever has
// nothing in it can send. This is the rule of dynamic thresholds by which switches share their
// memory. A request that is refused waits in its row (T1, T5).
//
// The server counts the messages of each subject and the bytes of all. The bytes of a topic are
// told from both, and from the sizes of what this process sent. What comes of that estimate, and of
// senders who do not look, is put right by evict.
const (
	// looksFrom is the part of a stream above which its subjects are looked at one by one.
	looksFrom = 4
	// lookAgain is the part of what was free, after which this process looks again.
	lookAgain = 4
	// lookPause is the least time between two looks.
	lookPause = 20 * time.Millisecond
	// nearlyFull is the part of a stream which is kept free by evict.
	nearlyFull = 16
	// envelope is about what a message has beside its body: headers, subject, the server's record.
	envelope = 512
)

// rooms is what the topics have of the stream of requests.
type rooms struct {
	engines atomic.Int64  // that send into it, as far as is known
	asked   chan struct{} // capacity 1: somebody wants to look

	mu     sync.Mutex
	most   int64 // bytes that the stream may have; 0: no limit is known
	free   int64 // of them at the last look
	since  since
	topics map[string]*room
	sizes  map[string]int64 // mean size of a topic's messages
}

// room is what one topic has.
type room struct {
	held int64 // bytes at the last look
	since
}

// since is what this process has sent since the last look, in bytes. Of it acked is what the stream
// surely has: only that is found by a look which begins now.
type since struct{ sent, acked int64 }

// less is what remains of it after a look that found so much.
func (s since) less(found int64) since { return since{max(s.sent-found, 0), max(s.acked-found, 0)} }

func newRooms() *rooms {
	return &rooms{asked: make(chan struct{}, 1), topics: map[string]*room{}, sizes: map[string]int64{}}
}

// ask has somebody look.
func (r *rooms) ask() {
	select {
	case r.asked <- struct{}{}:
	default:
	}
}

// admit counts a request of that size, or refuses it with what its topic has and may have. A topic
// that has nothing in the stream is never refused.
func (r *rooms) admit(topic string, size int64) (has, may int64, ok bool) {
	engines := max(r.engines.Load(), 1)
	r.mu.Lock()
	defer r.mu.Unlock()
	x := r.topics[topic]
	if x == nil {
		if len(r.topics) >= maxTopics {
			return 0, 0, true
		}
		x = &room{}
		r.topics[topic] = x
	}
	has, may = x.held+x.sent*engines, r.free-r.since.sent*engines
	if r.most > 0 && has > 0 && has+size > may {
		r.ask()
		return has, max(may, 0), false
	}
	x.sent, r.since.sent = x.sent+size, r.since.sent+size
	if mean, known := r.sizes[topic]; known {
		r.sizes[topic] = mean + (size-mean)/8
	} else {
		r.sizes[topic] = size
	}
	if r.most == 0 || r.since.sent*engines > r.free/lookAgain {
		r.ask()
	}
	return has, may, true
}

// settle notes that the stream has an admitted request, or that it has not taken it.
func (r *rooms) settle(topic string, size int64, taken bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	x := r.topics[topic]
	if x == nil {
		return
	}
	if taken {
		x.acked, r.since.acked = x.acked+size, r.since.acked+size
		return
	}
	x.sent, r.since.sent = max(x.sent-size, 0), max(r.since.sent-size, 0)
}

// snapshot is what a look that begins now finds of what was sent.
func (r *rooms) snapshot() (all int64, by map[string]int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	by = make(map[string]int64, len(r.topics))
	for topic, x := range r.topics {
		if x.acked > 0 {
			by[topic] = x.acked
		}
	}
	return r.since.acked, by
}

// found takes over what a look has found, beside what it found of what was sent.
func (r *rooms) found(most, free int64, held map[string]int64, sent int64, by map[string]int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.most, r.free, r.since = most, free, r.since.less(sent)
	topics := make(map[string]*room, len(held))
	for topic, x := range r.topics {
		if left := x.less(by[topic]); left.sent > 0 {
			topics[topic] = &room{since: left}
		}
	}
	for topic, n := range held {
		if topics[topic] == nil {
			topics[topic] = &room{}
		}
		topics[topic].held = n
	}
	r.topics = topics
	for topic := range r.sizes {
		if len(r.sizes) > maxTopics {
			delete(r.sizes, topic)
		}
	}
}

// roomFor says whether a topic that was refused could send a message now.
func (r *rooms) roomFor(topic string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	x := r.topics[topic]
	return x == nil || x.held+x.sent+r.sizes[topic] <= r.free-r.since.sent
}

// filled says how full the stream of requests is, "" if that is not known.
func (r *rooms) filled(kind transport.Kind) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	if kind != transport.Work || r.most == 0 {
		return ""
	}
	return fmt.Sprintf(" (%d of %d bytes are taken)", min(r.most-r.free+r.since.sent, r.most), r.most)
}

// roomSize is about what a message with that body takes of a stream.
func roomSize(body int) int64 { return int64(body + envelope) }

// admit refuses a request whose topic has no room.
func (b *Bus) admit(m *transport.Message) error {
	if m.To.Kind != transport.Work || b.cfg.LeaveStreams {
		return nil
	}
	has, may, ok := b.rooms.admit(m.To.Topic, roomSize(len(m.Body)))
	if ok {
		b.relieved(transport.TroubleRoom, m.To.Topic)
		return nil
	}
	name := b.streamName(transport.Work)
	b.trouble(transport.Trouble{
		Kind: transport.TroubleRoom, Name: m.To.Topic, Queue: m.To.String(),
		Text: fmt.Sprintf("the topic %s has about %d bytes in the stream %s, and may have %d, as many as are free%s: its requests wait until a worker takes some of them, or until the stream has more room (--nats-max-mib)",
			m.To.Topic, has, name, may, b.rooms.filled(transport.Work)),
	})
	return fmt.Errorf("publish to %s: %w: its topic has about %d bytes in it and may have %d", b.subject(m.To), transport.ErrFull, has, may)
}

// settled notes that the stream has a message that was admitted, or that it has not taken it.
func (b *Bus) settled(kind transport.Kind, topic string, body int, taken bool) {
	if kind == transport.Work && !b.cfg.LeaveStreams {
		b.rooms.settle(topic, roomSize(body), taken)
	}
}

// watchRoom looks when somebody asks, until the bus ends.
func (b *Bus) watchRoom() {
	for {
		select {
		case <-b.ctx.Done():
			return
		case <-b.rooms.asked:
		}
		ctx, cancel := context.WithTimeout(b.ctx, pubAckWait)
		if err := b.lookAtRoom(ctx); err != nil && b.ctx.Err() == nil {
			b.cfg.Log.Debug("how full the stream of requests is could not be read", "space", b.cfg.Space, "error", err)
		}
		cancel()
		sleep(b.ctx, lookPause)
	}
}

// lookAtRoom reads how much of the stream of requests each topic has.
func (b *Bus) lookAtRoom(ctx context.Context) error {
	if !b.nc.IsConnected() {
		return transport.ErrUnavailable
	}
	sent, by := b.rooms.snapshot()
	stream, err := b.js.Stream(ctx, b.streamName(transport.Work))
	if err != nil {
		return notFound(err)
	}
	info := stream.CachedInfo()
	most, taken := info.Config.MaxBytes, int64(info.State.Bytes) //nolint:gosec // of a disk
	var held map[string]int64
	if most > 0 && taken > most/looksFrom {
		if held, err = b.heldBytes(ctx, stream, taken); err != nil {
			return err
		}
	}
	b.rooms.found(max(most, 0), max(most, 0)-taken, held, sent, by)
	for _, x := range b.troubles.list(time.Now()) {
		if x.Kind == transport.TroubleRoom && b.rooms.roomFor(x.Name) {
			b.relieved(transport.TroubleRoom, x.Name)
		}
	}
	if most > 0 && most-taken < most/nearlyFull {
		return b.evict(ctx, stream, held)
	}
	return nil
}

// heldBytes tells how many of the bytes of the stream each topic has.
func (b *Bus) heldBytes(ctx context.Context, stream jetstream.Stream, taken int64) (map[string]int64, error) {
	counts, err := b.counts(ctx, stream)
	if err != nil {
		return nil, err
	}
	sizes, err := b.meanSizes(ctx, stream, counts)
	if err != nil {
		return nil, err
	}
	all := 0.0
	for topic, n := range counts {
		all += float64(n) * float64(sizes[topic])
	}
	held := make(map[string]int64, len(counts))
	for topic, n := range counts {
		held[topic] = int64(float64(taken) * float64(n) * float64(sizes[topic]) / max(all, 1))
	}
	return held, nil
}

// counts are the messages of each topic.
func (b *Bus) counts(ctx context.Context, stream jetstream.Stream) (map[string]int64, error) {
	prefix := b.subject(transport.ToWork(""))
	info, err := stream.Info(ctx, jetstream.WithSubjectFilter(prefix+">"))
	if err != nil {
		return nil, err
	}
	counts := make(map[string]int64, len(info.State.Subjects))
	for subject, n := range info.State.Subjects {
		counts[strings.TrimPrefix(subject, prefix)] = int64(n) //nolint:gosec // a count
	}
	return counts, nil
}

// meanSizes are the mean sizes of the topics' messages. Of a topic to which this process has sent
// nothing the first message is looked at, of the fullest topics only.
func (b *Bus) meanSizes(
	ctx context.Context, stream jetstream.Stream, counts map[string]int64,
) (map[string]int64, error) {
	sizes, unknown := make(map[string]int64, len(counts)), []string(nil)
	b.rooms.mu.Lock()
	for topic := range counts {
		if sizes[topic] = b.rooms.sizes[topic]; sizes[topic] == 0 {
			sizes[topic], unknown = envelope, append(unknown, topic)
		}
	}
	b.rooms.mu.Unlock()
	slices.SortFunc(unknown, func(x, y string) int {
		return cmp.Or(cmp.Compare(counts[y], counts[x]), cmp.Compare(x, y))
	})
	unknown = unknown[:min(len(unknown), maxOldest)]
	found := make([]int64, len(unknown))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(oldestOnce)
	for i, topic := range unknown {
		group.Go(func() error {
			msg, err := b.next(ctx, stream, transport.ToWork(topic), 1)
			if msg != nil {
				found[i] = roomSize(len(msg.Data))
			}
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	b.rooms.mu.Lock()
	defer b.rooms.mu.Unlock()
	for i, topic := range unknown {
		if found[i] > 0 {
			sizes[topic] = found[i]
			b.rooms.sizes[topic] = cmp.Or(b.rooms.sizes[topic], found[i])
		}
	}
	return sizes, nil
}

// evict makes room in a stream that is nearly full, because somebody sends without looking, or its
// limit was lowered: the topic with most in it gives up half of its messages, the older ones. Their
// rows send them again when there is room (T1).
func (b *Bus) evict(ctx context.Context, stream jetstream.Stream, held map[string]int64) error {
	fullest := ""
	for topic, n := range held {
		if fullest == "" || n > held[fullest] || n == held[fullest] && topic < fullest {
			fullest = topic
		}
	}
	if fullest == "" {
		return nil
	}
	counts, err := b.counts(ctx, stream)
	if err != nil {
		return err
	}
	drop := (counts[fullest] + 1) / 2
	opts := []jetstream.StreamPurgeOpt{jetstream.WithPurgeSubject(b.subject(transport.ToWork(fullest)))}
	if keep := counts[fullest] - drop; keep > 0 {
		opts = append(opts, jetstream.WithPurgeKeep(uint64(keep))) //nolint:gosec // positive
	}
	if err := stream.Purge(ctx, opts...); err != nil {
		return fmt.Errorf("make room in the stream: %w", err)
	}
	b.cfg.Log.Info("the stream of requests was nearly full: requests of the topic with most in it wait in their rows",
		"space", b.cfg.Space, "stream", b.streamName(transport.Work), "topic", fullest, "messages", drop)
	b.rooms.ask()
	return nil
}
