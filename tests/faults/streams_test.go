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

// streams calls do with each stream of the cell's space that there is.
func (c *cell) streams(do func(context.Context, jetstream.JetStream, jetstream.Stream) error) {
	nc, err := natsgo.Connect(c.lane.nats.URL())
	require.NoError(c.t, err)
	defer nc.Close()
	js, err := jetstream.New(nc)
	require.NoError(c.t, err)
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	for _, name := range []string{"LANES", "START", "WORK"} {
		s, err := js.Stream(ctx, "QUIPU_"+c.space+"_"+name)
		if err == nil {
			err = do(ctx, js, s)
		}
		if err != nil { // being made again just now
			require.ErrorIs(c.t, err, jetstream.ErrStreamNotFound)
		}
	}
}

// deleteStreams takes the streams away, with consumers and messages: those that
// were delivered are held by the victim (F10).
func (c *cell) deleteStreams() {
	c.streams(func(ctx context.Context, js jetstream.JetStream, s jetstream.Stream) error {
		return js.DeleteStream(ctx, s.CachedInfo().Config.Name)
	})
}

// deleteUndelivered takes the streams away while messages lie in them that nobody
// was given: the victim stands still while they are published.
func (c *cell) deleteUndelivered() {
	c.victim.signal(syscall.SIGSTOP)
	for i := range jobs {
		c.startJob(fmt.Sprintf("late-%d", i))
	}
	c.deleteStreams()
	c.victim.signal(syscall.SIGCONT)
}

func (c *cell) purgeStreams() {
	c.streams(func(ctx context.Context, _ jetstream.JetStream, s jetstream.Stream) error { return s.Purge(ctx) })
}

func (c *cell) deleteConsumers() {
	c.streams(func(ctx context.Context, _ jetstream.JetStream, s jetstream.Stream) error {
		names := s.ConsumerNames(ctx)
		for name := range names.Name() {
			if err := s.DeleteConsumer(ctx, name); err != nil && !errors.Is(err, jetstream.ErrConsumerNotFound) {
				return err
			}
		}
		return names.Err()
	})
}

// duplicate publishes every message that is in the streams so many times more,
// without the id by which JetStream would know it (F12).
func (c *cell) duplicate(times int) {
	copies := 0
	c.streams(func(ctx context.Context, js jetstream.JetStream, s jetstream.Stream) error {
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
