package nats

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/quipu-journal/quipu/transport"
)

// Bounds of one call of RemoveStale. A longer queue is looked through by several.
const (
	scanMessages = 500
	scanBytes    = 16 << 20 // of their bodies
	scanTimeout  = 30 * time.Second
)

// scanned remembers where the last call of RemoveStale ended: behind this message of this topic.
type scanned struct {
	mu    sync.Mutex
	topic string
	seq   uint64
}

// RemoveStale implements transport.Bus. It looks at requests that their consumer has not finished, topic
// by topic, and goes on where the call before it ended. Messages of lanes that the space does not
// have any more are removed as well. A process that makes no streams does nothing here.
func (b *Bus) RemoveStale(
	ctx context.Context, waited time.Duration, stale func(context.Context, []transport.Message) ([]bool, error),
) (int, error) {
	if b.cfg.LeaveStreams || !b.scanned.mu.TryLock() {
		return 0, nil
	}
	defer b.scanned.mu.Unlock()
	if !b.nc.IsConnected() {
		return 0, fmt.Errorf("look for stale requests: %w: not connected", transport.ErrUnavailable)
	}
	ctx, cancel := context.WithTimeout(ctx, scanTimeout)
	defer cancel()
	if err := b.purgeLanes(ctx); err != nil {
		return 0, ioError("look for stale messages in the lanes", err)
	}
	stream, err := b.js.Stream(ctx, b.streamName(transport.Work)) // Info writes into its handle
	if err != nil {
		return 0, ioError("look for stale requests", notFound(err))
	}
	if stream.CachedInfo().State.Msgs == 0 {
		return 0, nil
	}
	w := staleScan{b: b, stream: stream, before: stream.CachedInfo().TimeStamp.Add(-waited)}
	if err := w.look(ctx); err != nil {
		return 0, ioError("look for stale requests", err)
	}
	removed, err := w.remove(ctx, stale)
	if err != nil {
		return removed, ioError("look for stale requests", err)
	}
	return removed, nil
}

// purgeLanes removes what is in lanes that no engine pulls any more, because the space has fewer
// than before (T9). Rows send again what is open.
func (b *Bus) purgeLanes(ctx context.Context) error {
	stream, err := b.js.Stream(ctx, b.streamName(transport.Lane))
	if err != nil {
		return notFound(err)
	}
	if stream.CachedInfo().State.NumSubjects == 0 {
		return nil
	}
	prefix := b.subjects() + "lane."
	info, err := stream.Info(ctx, jetstream.WithSubjectFilter(prefix+"*"))
	if err != nil {
		return notFound(err)
	}
	for subject := range info.State.Subjects {
		if n, err := strconv.Atoi(strings.TrimPrefix(subject, prefix)); err == nil && n < b.cfg.Lanes {
			continue
		}
		if err := stream.Purge(ctx, jetstream.WithPurgeSubject(subject)); err != nil {
			return err
		}
		b.cfg.Log.Info("removed the messages of a lane that the space does not have any more", "space", b.cfg.Space, "subject", subject)
	}
	return nil
}

// staleScan is one call of RemoveStale.
type staleScan struct {
	b      *Bus
	stream jetstream.Stream
	before time.Time // later messages are left alone
	seqs   []uint64
	msgs   []transport.Message
	forged []uint64 // messages that nobody may act on (S2)
	looked int
	bytes  int
}

func (w *staleScan) full() bool { return w.looked >= scanMessages || w.bytes >= scanBytes }

// look gathers messages, from where the call before it ended.
func (w *staleScan) look(ctx context.Context) error {
	counts, err := w.b.counts(ctx, w.stream)
	if err != nil {
		return err
	}
	floors, prefix := map[string]uint64{}, w.b.subject(transport.ToWork(""))
	if err := w.b.consumersOf(ctx, transport.Work, func(c *jetstream.ConsumerInfo) {
		floors[strings.TrimPrefix(c.Config.FilterSubject, prefix)] = c.AckFloor.Stream
	}); err != nil {
		return err
	}
	topics := slices.Sorted(maps.Keys(counts))
	cursor := &w.b.scanned
	at, found := slices.BinarySearch(topics, cursor.topic)
	from := cursor.seq
	if !found {
		from = 0
	}
	for i := range topics {
		topic := topics[(at+i)%len(topics)]
		last, err := w.topic(ctx, topic, max(from, floors[topic]))
		if err != nil {
			return err
		}
		if cursor.topic, cursor.seq = topic, last; w.full() {
			return nil
		}
		from = 0
	}
	cursor.topic, cursor.seq = "", 0 // all were looked at
	return nil
}

// topic gathers the messages of a topic that come behind a sequence number, and returns the last
// one's.
func (w *staleScan) topic(ctx context.Context, topic string, seq uint64) (last uint64, err error) {
	d := transport.ToWork(topic)
	for !w.full() {
		msg, err := w.b.next(ctx, w.stream, d, seq+1)
		if err != nil || msg == nil || msg.Time.After(w.before) {
			return seq, err
		}
		seq = msg.Sequence
		w.looked, w.bytes = w.looked+1, w.bytes+len(msg.Data)
		m, err := transport.Decode(d, func(name string) string {
			if values := msg.Header[name]; len(values) > 0 {
				return values[0]
			}
			return ""
		}, msg.Data, w.b.cfg.Keys)
		switch {
		case err == nil:
			w.seqs, w.msgs = append(w.seqs, seq), append(w.msgs, m)
		case errors.Is(err, transport.ErrForged):
			w.forged = append(w.forged, seq)
		}
	}
	return seq, nil
}

// remove deletes the messages that are stale or forged.
func (w *staleScan) remove(
	ctx context.Context, stale func(context.Context, []transport.Message) ([]bool, error),
) (removed int, err error) {
	gone := w.forged
	if len(w.msgs) > 0 {
		is, err := stale(ctx, w.msgs)
		if err != nil {
			return 0, err
		}
		for i, seq := range w.seqs {
			if is[i] {
				gone = append(gone, seq)
			}
		}
	}
	for _, seq := range gone {
		switch err := w.stream.DeleteMsg(ctx, seq); {
		case err == nil:
			removed++
		case !errors.Is(err, jetstream.ErrMsgDeleteUnsuccessful): // another process was faster, or a worker
			return removed, err
		}
	}
	if removed > 0 {
		w.b.cfg.Log.Info("removed requests whose rows are gone or were sent again", "space", w.b.cfg.Space, "messages", removed)
		w.b.rooms.ask()
	}
	return removed, nil
}
