package faults

import (
	"context"
	"errors"
	"fmt"
	"syscall"

	natsgo "github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"
)

// onStream does something to a stream.
type onStream func(context.Context, jetstream.JetStream, jetstream.Stream) error

// streams calls do with each stream of the cell's space that there is.
func (c *cell) streams(ctx context.Context, do onStream) error {
	nc, err := natsgo.Connect(c.lane.url)
	if err != nil {
		return err
	}
	defer nc.Close()
	js, err := jetstream.New(nc)
	for _, name := range []string{"LANES", "START", "WORK"} {
		if err != nil {
			return err
		}
		var s jetstream.Stream
		if s, err = js.Stream(ctx, "QUIPU_"+c.space+"_"+name); err == nil {
			err = do(ctx, js, s)
		}
		if errors.Is(err, jetstream.ErrStreamNotFound) { // being made again just now
			err = nil
		}
	}
	return err
}

// eachStream calls do with each stream; it must go well.
func (c *cell) eachStream(do onStream) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	require.NoError(c.t, c.streams(ctx, do))
}

// deleteStream takes a stream away, with consumers and messages (F10).
func deleteStream(ctx context.Context, js jetstream.JetStream, s jetstream.Stream) error {
	return js.DeleteStream(ctx, s.CachedInfo().Config.Name)
}

func purgeStream(ctx context.Context, _ jetstream.JetStream, s jetstream.Stream) error {
	return s.Purge(ctx)
}

func deleteConsumersOf(ctx context.Context, _ jetstream.JetStream, s jetstream.Stream) error {
	names := s.ConsumerNames(ctx)
	for name := range names.Name() {
		if err := s.DeleteConsumer(ctx, name); err != nil && !errors.Is(err, jetstream.ErrConsumerNotFound) {
			return err
		}
	}
	return names.Err()
}

// deleteStreams takes the streams away: messages that were delivered are held by
// the victim.
func (c *cell) deleteStreams() { c.eachStream(deleteStream) }

// deleteUndelivered takes the streams away while messages lie in them that nobody
// was given: the victim stands still while they are published.
func (c *cell) deleteUndelivered() {
	c.victim.Signal(syscall.SIGSTOP)
	for i := range jobs {
		c.startJob(fmt.Sprintf("late-%d", i))
	}
	c.deleteStreams()
	c.victim.Signal(syscall.SIGCONT)
}

// duplicate publishes every message that is in the streams so many times more,
// without the id by which JetStream would know it (F12).
func (c *cell) duplicate(times int) {
	copies := 0
	c.eachStream(func(ctx context.Context, js jetstream.JetStream, s jetstream.Stream) error {
		info, err := s.Info(ctx)
		if err != nil {
			return err
		}
		for seq := max(info.State.FirstSeq, 1); seq <= info.State.LastSeq; seq++ {
			m, err := s.GetMsg(ctx, seq)
			if errors.Is(err, jetstream.ErrMsgNotFound) {
				continue // acked
			}
			if err != nil {
				return err
			}
			again := &natsgo.Msg{Subject: m.Subject, Header: m.Header, Data: m.Data}
			again.Header.Del(jetstream.MsgIDHeader)
			for range times {
				if _, err := js.PublishMsg(ctx, again); err != nil {
					return err
				}
				copies++
			}
		}
		return nil
	})
	c.note = fmt.Sprintf("%d copies", copies)
}
