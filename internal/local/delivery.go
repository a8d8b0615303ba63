package local

import (
	"sync/atomic"
	"time"

	"github.com/quipu-journal/quipu/internal/early"
	"github.com/quipu-journal/quipu/internal/store"
	"github.com/quipu-journal/quipu/transport"
)

// delivery is a message that was handed over.
type delivery struct {
	msg      transport.Message
	finished atomic.Bool
	finish   func(again bool, delay time.Duration)
	outcome  *store.Completion // see Completion
}

func (d *delivery) end(again bool, delay time.Duration) error {
	if !d.finished.CompareAndSwap(false, true) {
		return transport.ErrFinished
	}
	d.finish(again, delay)
	return nil
}

// Completion is the outcome that is to be recorded together with a response (J8); nil: there is none. Who
// handles the delivery tells it before the Ack. After a Nak the message does not come again.
func (d *delivery) Completion() *store.Completion { return d.outcome }

// Message implements transport.Delivery.
func (d *delivery) Message() *transport.Message { return &d.msg }

// Err implements transport.Delivery.
func (d *delivery) Err() error { return nil }

// Count implements transport.Delivery.
func (d *delivery) Count() int { return 1 }

// Ack implements transport.Delivery.
func (d *delivery) Ack() error { return d.end(false, 0) }

// Nak implements transport.Delivery. A message for a lane goes by the bus beneath. A
// request does not: its holder hands back its row, which sends it.
func (d *delivery) Nak(delay time.Duration) error { return d.end(true, delay) }

// InProgress implements transport.Delivery. A handed-over message has no ack wait.
func (d *delivery) InProgress() error {
	if d.finished.Load() {
		return transport.ErrFinished
	}
	return nil
}

// Term implements transport.Delivery.
func (d *delivery) Term(string) error { return d.end(false, 0) }

// uncommitted is a request that is handed over before its cause has committed.
type uncommitted struct {
	delivery
	cause *early.Cause
	run   func()
}

// Cause implements early.Delivery.
func (d *uncommitted) Cause() *early.Cause { return d.cause }

// Serve implements early.Delivery.
func (d *uncommitted) Serve(run func()) { d.run = run }

// pulled is a request that came by the bus beneath; it has a slot until it is finished.
type pulled struct {
	transport.Delivery
	topic    *topic
	finished atomic.Bool
}

func (d *pulled) release() {
	if d.finished.CompareAndSwap(false, true) {
		d.topic.release()
	}
}

// Ack implements transport.Delivery.
func (d *pulled) Ack() error {
	defer d.release()
	return d.Delivery.Ack()
}

// Nak implements transport.Delivery.
func (d *pulled) Nak(delay time.Duration) error {
	defer d.release()
	return d.Delivery.Nak(delay)
}

// Term implements transport.Delivery.
func (d *pulled) Term(reason string) error {
	defer d.release()
	return d.Delivery.Term(reason)
}
