package nats

import (
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	natsgo "github.com/nats-io/nats.go"

	"github.com/quipu-journal/quipu/transport"
)

// MaxTermReason bounds the reason of a Term, in bytes; the rest is cut off.
const MaxTermReason = 256

var (
	ackPayload      = []byte("+ACK")
	progressPayload = []byte("+WPI")
)

// delivery is one message of one pull.
type delivery struct {
	c     *consumer
	reply string
	msg   transport.Message
	err   error
	count int
	done  atomic.Bool
}

var _ transport.Delivery = (*delivery)(nil)

func newDelivery(c *consumer, msg *natsgo.Msg) *delivery {
	d := &delivery{c: c, reply: msg.Reply, count: 1}
	d.msg, d.err = transport.Decode(c.from, func(name string) string {
		if values := msg.Header[name]; len(values) > 0 {
			return values[0]
		}
		return ""
	}, msg.Data, c.bus.cfg.Keys)
	if meta, err := msg.Metadata(); err == nil {
		d.count = int(meta.NumDelivered) //nolint:gosec // a count
	}
	return d
}

func (d *delivery) Message() *transport.Message { return &d.msg }

func (d *delivery) Err() error { return d.err }

func (d *delivery) Count() int { return d.count }

func (d *delivery) Ack() error { return d.finish(ackPayload) }

func (d *delivery) Nak(delay time.Duration) error { return d.finish(nakPayload(delay)) }

func (d *delivery) Term(reason string) error {
	reason = strings.Map(func(r rune) rune {
		if r < ' ' {
			return ' '
		}
		return r
	}, reason)
	return d.finish([]byte("+TERM " + reason[:min(len(reason), MaxTermReason)]))
}

func (d *delivery) InProgress() error {
	if d.done.Load() {
		return transport.ErrFinished
	}
	return d.publish(progressPayload)
}

// finish tells the server first, and frees the slot even if that fails: after a lost ack
// the message comes again (T3).
func (d *delivery) finish(payload []byte) error {
	if d.done.Swap(true) {
		return transport.ErrFinished
	}
	err := d.publish(payload)
	d.c.finished()
	return err
}

func (d *delivery) publish(payload []byte) error {
	if err := d.c.bus.nc.Publish(d.reply, payload); err != nil {
		return ioError("finish a delivery of "+d.c.from.String(), err)
	}
	return nil
}

// nakPayload always has a delay (T3).
func nakPayload(delay time.Duration) []byte {
	delay = max(delay, transport.MinNakDelay)
	return fmt.Appendf(nil, `-NAK {"delay": %s}`, strconv.FormatInt(int64(delay), 10))
}
