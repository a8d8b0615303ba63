package nats

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	natsgo "github.com/nats-io/nats.go"

	"github.com/quipu-journal/quipu/transport"
)

const (
	// pubAckWait bounds the wait for a PubAck, and the look before a re-send.
	pubAckWait = 5 * time.Second
	// maxPublishAttempts bounds how often a message that no stream accepted is sent,
	// while the stream is made again.
	maxPublishAttempts = 3
	// publishRetryWait is the wait between those attempts.
	publishRetryWait = 250 * time.Millisecond

	statusHeader       = "Status"
	descriptionHeader  = "Description"
	statusNoResponders = "503"

	// Error codes of the server's PubAck.
	errCodeInsufficientResources = 10023
	errCodeInsufficientStorage   = 10047
	errCodeMessageTooLarge       = 10054
	errCodeStoreFailed           = 10077
	errCodeTooManyRequests       = 10167
)

// publisher sends without waiting and matches PubAcks to messages by the last
// token of the reply subject.
type publisher struct {
	nc     *natsgo.Conn
	sub    *natsgo.Subscription
	prefix string               // reply subjects: prefix + number in base 36
	slots  chan struct{}        // one per message in flight (T11)
	repair func(transport.Kind) // asks for a stream that does not answer
	// heard learns the outcome of each message that was handed to the server.
	heard func(*sent, error)

	mu       sync.Mutex
	next     uint64
	inFlight map[uint64]*sent
	closed   bool
}

type sent struct {
	msg      *natsgo.Msg
	kind     transport.Kind
	index    int
	done     func(int, error)
	deadline time.Time
	tries    int
}

func newPublisher(
	nc *natsgo.Conn, limit int, repair func(transport.Kind), heard func(*sent, error),
) (*publisher, error) {
	p := &publisher{
		nc: nc, prefix: nc.NewInbox() + ".", slots: make(chan struct{}, limit), repair: repair, heard: heard,
		inFlight: make(map[uint64]*sent, limit),
	}
	sub, err := nc.Subscribe(p.prefix+"*", p.onReply)
	if err != nil {
		return nil, ioError("subscribe to PubAcks", err)
	}
	if err := sub.SetPendingLimits(-1, -1); err != nil { // bounded by slots
		return nil, ioError("subscribe to PubAcks", err)
	}
	p.sub = sub
	return p, nil
}

// Send implements transport.Bus. Only done reports a message that can never be sent, or
// that meets a lost connection. Send itself fails when ctx ends or the bus is closed.
func (b *Bus) Send(ctx context.Context, msgs []transport.Message, done func(i int, err error)) error {
	limit := b.MaxPayload()
	failed := failures{done: done}
	defer failed.report()
	for i := range msgs {
		m := msgs[i]
		err := m.Sign(b.cfg.Keys)
		if err == nil {
			err = m.Validate(limit)
		}
		if err != nil {
			if done == nil {
				b.cfg.Log.Error("message cannot be sent", "space", b.cfg.Space, "error", err)
			}
			failed.add(i, err)
			continue
		}
		if err := b.admit(&m); err != nil {
			failed.add(i, err)
			continue
		}
		if err := b.pub.acquire(ctx, b.ctx); err != nil {
			b.settled(m.To.Kind, m.To.Topic, len(m.Body), false)
			for j := i; j < len(msgs); j++ {
				failed.add(j, err)
			}
			return fmt.Errorf("send: %d of %d messages handed over: %w", i, len(msgs), err)
		}
		if err := b.pub.send(b.wire(&m), m.To.Kind, i, done); err != nil {
			b.settled(m.To.Kind, m.To.Topic, len(m.Body), false)
			failed.add(i, err)
		}
	}
	return nil
}

func (b *Bus) wire(m *transport.Message) *natsgo.Msg {
	header := make(natsgo.Header, 10)
	values := make([]string, 0, 10) // one backing array for all values
	transport.EncodeHeader(m, func(name, value string) {
		values = append(values, value)
		header[name] = values[len(values)-1 : len(values) : len(values)]
	})
	return &natsgo.Msg{Subject: b.subject(m.To), Header: header, Data: m.Body}
}

// failures are reported from another goroutine, as Send promises.
type failures struct {
	done  func(int, error)
	index []int
	errs  []error
}

func (f *failures) add(i int, err error) {
	if f.done != nil {
		f.index, f.errs = append(f.index, i), append(f.errs, err)
	}
}

func (f *failures) report() {
	if len(f.index) == 0 {
		return
	}
	go func() {
		for n, i := range f.index {
			f.done(i, f.errs[n])
		}
	}()
}

func (p *publisher) acquire(ctx, life context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if life.Err() != nil {
		return transport.ErrClosed
	}
	select {
	case p.slots <- struct{}{}:
		return nil
	default:
	}
	select {
	case p.slots <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-life.Done():
		return transport.ErrClosed
	}
}

// send publishes a message. It frees the caller's slot if it fails.
func (p *publisher) send(msg *natsgo.Msg, kind transport.Kind, index int, done func(int, error)) error {
	if !p.nc.IsConnected() { // do not fill the reconnect buffer: the row sends again
		<-p.slots
		return fmt.Errorf("%w: not connected", transport.ErrUnavailable)
	}
	s := &sent{msg: msg, kind: kind, index: index, done: done, deadline: time.Now().Add(pubAckWait), tries: 1}
	p.mu.Lock()
	if p.closed {
		p.mu.Unlock()
		<-p.slots
		return transport.ErrClosed
	}
	p.next++
	id := p.next
	msg.Reply = p.prefix + strconv.FormatUint(id, 36)
	p.inFlight[id] = s
	p.mu.Unlock()
	if err := p.nc.PublishMsg(msg); err != nil {
		if p.take(id) == nil {
			return nil // settled meanwhile; its outcome is reported
		}
		<-p.slots
		return ioError("publish to "+msg.Subject, err)
	}
	return nil
}

// take removes a message in flight; nil if it was already removed.
func (p *publisher) take(id uint64) *sent {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.inFlight[id]
	delete(p.inFlight, id)
	return s
}

func (p *publisher) settle(s *sent, err error) {
	<-p.slots
	p.heard(s, err)
	if s.done != nil {
		s.done(s.index, err)
	}
}

func (p *publisher) onReply(reply *natsgo.Msg) {
	id, err := strconv.ParseUint(strings.TrimPrefix(reply.Subject, p.prefix), 36, 64)
	if err != nil {
		return // not one of ours
	}
	if reply.Header.Get(statusHeader) == statusNoResponders && p.retry(id) {
		return
	}
	if s := p.take(id); s != nil {
		p.settle(s, pubAckError(s.msg.Subject, reply))
	}
}

// retry repeats a message that no stream accepted. Its id is the same, so a stream that
// has it after all drops the second.
func (p *publisher) retry(id uint64) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.inFlight[id]
	if s == nil || s.tries >= maxPublishAttempts {
		return false
	}
	s.tries++
	p.repair(s.kind)
	time.AfterFunc(publishRetryWait, func() {
		p.mu.Lock()
		still := p.inFlight[id] == s
		p.mu.Unlock()
		if !still {
			return
		}
		if err := p.nc.PublishMsg(s.msg); err != nil && p.take(id) != nil {
			p.settle(s, ioError("publish to "+s.msg.Subject, err))
		}
	})
	return true
}

// expire fails messages whose PubAck is late.
func (p *publisher) expire(now time.Time) {
	p.mu.Lock()
	var late []*sent
	for id, s := range p.inFlight {
		if now.After(s.deadline) {
			late = append(late, s)
			delete(p.inFlight, id)
		}
	}
	p.mu.Unlock()
	for _, s := range late {
		p.settle(s, fmt.Errorf("publish to %s: %w: no PubAck within %s", s.msg.Subject, transport.ErrSilent, pubAckWait))
	}
}

func (p *publisher) failAll(err error) {
	p.mu.Lock()
	lost := p.inFlight
	p.inFlight = make(map[uint64]*sent, cap(p.slots))
	p.mu.Unlock()
	for _, s := range lost {
		p.settle(s, err)
	}
}

func (p *publisher) close() {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	p.failAll(transport.ErrClosed)
	_ = p.sub.Unsubscribe() // fails only without a connection, and then there is nothing to end
}

// pubAckError reads a PubAck. A duplicate is a success; nothing is concluded from either
// (4.1).
func pubAckError(subject string, reply *natsgo.Msg) error {
	if status := reply.Header.Get(statusHeader); status == statusNoResponders {
		return fmt.Errorf("publish to %s: %w: no stream takes this subject", subject, transport.ErrSilent)
	}
	var ack struct {
		Stream string `json:"stream"`
		Error  *struct {
			ErrCode     int    `json:"err_code"`
			Description string `json:"description"`
		} `json:"error"`
	}
	if err := json.Unmarshal(reply.Data, &ack); err != nil {
		return fmt.Errorf("publish to %s: %w: unreadable PubAck: %w", subject, transport.ErrUnavailable, err)
	}
	if ack.Error == nil {
		if ack.Stream == "" {
			return fmt.Errorf("publish to %s: %w: PubAck without a stream", subject, transport.ErrUnavailable)
		}
		return nil
	}
	kind := transport.ErrUnavailable
	switch ack.Error.ErrCode {
	case errCodeStoreFailed, errCodeInsufficientResources, errCodeInsufficientStorage, errCodeTooManyRequests:
		kind = transport.ErrFull
	case errCodeMessageTooLarge:
		kind = transport.ErrTooLarge
	}
	return fmt.Errorf("publish to %s: %w: %w", subject, kind, errors.New(ack.Error.Description))
}
