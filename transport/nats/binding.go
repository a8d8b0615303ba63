package nats

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	natsgo "github.com/nats-io/nats.go"

	"github.com/quipu-journal/quipu/transport"
)

const (
	statusHeartbeat = "100"
	statusNotFound  = "404"
	statusExpired   = "408"
	statusConflict  = "409"
	statusWrongPin  = "423"
	pendingHeader   = "Nats-Pending-Messages"

	// 409s that end one pull request but not the binding.
	batchCompleted = "Batch Completed"
)

var (
	errSilent = errors.New("no heartbeat from the consumer")
	errBroke  = errors.New("connection lost")
)

// binding is one inbox with its open pull requests.
type binding struct {
	c        *consumer
	sub      *natsgo.Subscription
	inbox    string
	nextSubj string
	heard    atomic.Int64 // Unix nanoseconds of the server's last message
	failed   chan error   // capacity 1: the first error counts
	drained  chan struct{}
}

func bind(c *consumer) (*binding, error) {
	b := &binding{
		c:        c,
		inbox:    c.bus.nc.NewInbox() + ".",
		nextSubj: c.bus.api + "CONSUMER.MSG.NEXT." + c.bus.streamName(c.from.Kind) + "." + durableName(c.from),
		failed:   make(chan error, 1),
		drained:  make(chan struct{}),
	}
	b.heard.Store(time.Now().UnixNano())
	sub, err := c.bus.nc.Subscribe(b.inbox+"*", b.onMessage)
	if err != nil {
		return nil, ioError("subscribe to "+c.from.String(), err)
	}
	if err := sub.SetPendingLimits(-1, -1); err != nil { // bounded by slots
		return nil, ioError("subscribe to "+c.from.String(), err)
	}
	sub.SetClosedHandler(func(string) { close(b.drained) })
	b.sub = sub
	return b, nil
}

// pull opens a pull request for n messages.
func (b *binding) pull(n int) error {
	every, heartbeat := b.c.bus.pullTimes(b.c.from)
	body := make([]byte, 0, 160)
	body = append(body, `{"batch":`...)
	body = strconv.AppendInt(body, int64(n), 10)
	body = append(body, `,"expires":`...)
	body = strconv.AppendInt(body, int64(every), 10)
	body = append(body, `,"idle_heartbeat":`...)
	body = strconv.AppendInt(body, int64(heartbeat), 10)
	body = b.c.lane.ask(body)
	body = append(body, '}')
	b.heard.Store(time.Now().UnixNano()) // the heartbeat limit counts from here
	reply := b.inbox + pullToken(b.c.pulls.Add(1), n)
	if err := b.c.bus.nc.PublishRequest(b.nextSubj, reply, body); err != nil {
		return ioError("pull from "+b.c.from.String(), err)
	}
	return nil
}

func (b *binding) fail(err error) {
	select {
	case b.failed <- err:
	default:
	}
}

// onMessage runs on the subscription's own goroutine.
func (b *binding) onMessage(msg *natsgo.Msg) {
	b.heard.Store(time.Now().UnixNano())
	if msg.Reply != "" {
		b.c.lane.heard(msg.Header.Get(pinHeader), b.c.pulls.Load())
		b.c.accept(b, msg)
		return
	}
	status, description := msg.Header.Get(statusHeader), msg.Header.Get(descriptionHeader)
	switch {
	case status == statusHeartbeat:
	case status == statusNotFound, status == statusExpired, status == statusConflict && description == batchCompleted:
		pending, err := strconv.Atoi(msg.Header.Get(pendingHeader))
		if err != nil {
			b.fail(fmt.Errorf("%w: status %s %s without %s", transport.ErrUnavailable, status, description, pendingHeader))
			return
		}
		b.c.expired(b, pending)
	case status == statusWrongPin:
		pull, n := readPullToken(strings.TrimPrefix(msg.Subject, b.inbox))
		if pending, err := strconv.Atoi(msg.Header.Get(pendingHeader)); err == nil {
			n = pending
		}
		b.c.lane.refused(pull)
		b.c.expired(b, n)
	case status == statusNoResponders:
		b.c.bus.forget(b.c.from.Kind)
		b.fail(errGone)
	default:
		b.c.bus.forget(b.c.from.Kind)
		b.fail(fmt.Errorf("%w: status %s %s", transport.ErrUnavailable, status, description))
	}
}

// watch returns the reason when the binding is over.
func (b *binding) watch(ctx context.Context, breaks <-chan struct{}) error {
	limit := b.c.bus.cfg.Heartbeat * 5 / 2
	tick := time.NewTicker(b.c.bus.cfg.Heartbeat / 2)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-breaks:
			return errBroke
		case err := <-b.failed:
			return err
		case now := <-tick.C:
			if b.c.waiting(b) && now.UnixNano()-b.heard.Load() > int64(limit) {
				return errSilent
			}
		}
	}
}

// drain unsubscribes, which ends the open pull requests, and hands back messages that
// were under way. After a break there are none, and the subscription must be removed
// before the reconnect. Otherwise the client restores a draining subscription with its
// pull requests and never removes it, and those take messages that nobody handles (F11).
func (b *binding) drain(breaks <-chan struct{}) {
	select {
	case <-breaks:
		_ = b.sub.Unsubscribe()
		return
	default:
	}
	if err := b.sub.Drain(); err != nil {
		return // the connection is closed, so the subscription is gone
	}
	select {
	case <-b.drained:
	case <-breaks:
		_ = b.sub.Unsubscribe()
	case <-time.After(drainWait):
		_ = b.sub.Unsubscribe()
	}
}
