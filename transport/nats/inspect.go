package nats

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/quipu-journal/quipu/transport"
)

// inspectEvery is the time between two comparisons of the streams and consumers with what they
// must be. Somebody can change them at any time, and nothing else would tell.
const inspectEvery = 10 * time.Second

// inspect compares the streams and consumers of the space with what they must be, until the bus
// ends: it makes right what it may, and what it may not is a trouble (S5). It begins once this
// process has made them.
func (b *Bus) inspect() {
	tick := time.NewTicker(inspectEvery)
	defer tick.Stop()
	for {
		select {
		case <-b.ctx.Done():
			return
		case <-tick.C:
		}
		b.streams.mu.Lock()
		begun := b.streams.handle[transport.Work] != nil
		b.streams.mu.Unlock()
		if !begun || !b.nc.IsConnected() {
			continue
		}
		ctx, cancel := context.WithTimeout(b.ctx, inspectEvery)
		if err := b.Inspect(ctx); err != nil && b.ctx.Err() == nil {
			b.cfg.Log.Debug("streams and consumers could not be compared with what they must be", "space", b.cfg.Space, "error", err)
		}
		cancel()
		b.rooms.ask()
	}
}

// Inspect compares the streams and consumers of the space with what they must be, now. It makes
// right what it may; the rest is in Troubles. An engine does so every ten seconds. The error is of
// asking the server.
func (b *Bus) Inspect(ctx context.Context) error {
	var all error
	for _, kind := range kinds {
		name := b.streamName(kind)
		err := b.ensureStream(ctx, kind)
		if settings, is := errors.AsType[*settingsError](err); is {
			b.trouble(transport.Trouble{
				Kind: transport.TroubleStream, Name: name, Queue: kind.String(), Text: "the stream " + name + ": " + settings.Error(),
			})
			continue
		}
		if err == nil {
			b.relieved(transport.TroubleStream, name)
			err = b.inspectConsumers(ctx, kind)
		}
		all = errors.Join(all, err)
	}
	return all
}

// inspectConsumers compares the consumers of a stream.
func (b *Bus) inspectConsumers(ctx context.Context, kind transport.Kind) error {
	ours := map[string]transport.Destination{}
	for _, d := range b.destinations() {
		if d.Kind == kind {
			ours[durableName(d)] = d
		}
	}
	var have []*jetstream.ConsumerInfo
	if err := b.consumersOf(ctx, kind, func(c *jetstream.ConsumerInfo) { have = append(have, c) }); err != nil {
		return ioError("list the consumers of "+b.streamName(kind), err)
	}
	for _, x := range b.Troubles() { // of those that are not there any more
		stream, name, _ := strings.Cut(x.Name, " ")
		if x.Kind == transport.TroubleConsumer && stream == b.streamName(kind) &&
			!slices.ContainsFunc(have, func(c *jetstream.ConsumerInfo) bool { return c.Name == name }) {
			b.relieved(x.Kind, x.Name)
		}
	}
	var all error
	for _, c := range have {
		d, is := ours[c.Name]
		if !is && kind == transport.Work { // of a topic that only other processes serve
			topic := strings.ReplaceAll(strings.TrimPrefix(c.Name, "work-"), "=", ".")
			d = transport.ToWork(topic)
			is = d.Validate() == nil && durableName(d) == c.Name
		}
		if is {
			all = errors.Join(all, b.inspectConsumer(ctx, d, c))
		}
		delete(ours, c.Name)
	}
	for _, name := range slices.Sorted(maps.Keys(ours)) { // of those that somebody deleted
		all = errors.Join(all, b.ensureConsumer(ctx, ours[name]))
	}
	return all
}

// inspectConsumer gives a consumer the settings that every process relies on.
func (b *Bus) inspectConsumer(ctx context.Context, d transport.Destination, info *jetstream.ConsumerInfo) error {
	stream := b.streamName(d.Kind)
	want, changed := raisedConsumer(info.Config, b.consumerConfig(d))
	if problems := b.consumerProblems(&want); len(problems) > 0 {
		b.trouble(transport.Trouble{
			Kind: transport.TroubleConsumer, Name: stream + " " + info.Name, Queue: d.String(),
			Text: fmt.Sprintf("the consumer %s of the stream %s: %s", info.Name, stream, consumerFaults(problems)),
		})
		return nil
	}
	if changed {
		if _, err := b.js.UpdateConsumer(ctx, stream, want); err != nil {
			return ioError("change the consumer "+info.Name+" of stream "+stream, err)
		}
		b.cfg.Log.Warn("a consumer had other settings than every process relies on: it is put right",
			"space", b.cfg.Space, "stream", stream, "consumer", info.Name)
	}
	if err := b.resume(ctx, info); err != nil {
		b.trouble(transport.Trouble{
			Kind: transport.TroubleConsumer, Name: stream + " " + info.Name, Queue: d.String(),
			Text: fmt.Sprintf("the consumer %s of the stream %s is paused, and could not be resumed: nats consumer resume %s %s, and give engines the rights that quipu nats-permissions prints", info.Name, stream, stream, info.Name),
		})
		return ioError("consumer "+info.Name+" of stream "+stream, err)
	}
	b.relieved(transport.TroubleConsumer, stream+" "+info.Name)
	return nil
}

// consumerFaults refuses a consumer.
func consumerFaults(problems []string) error {
	return &settingsError{problems, "change that, or delete the consumer: it is made again"}
}
