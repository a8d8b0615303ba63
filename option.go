package quipu

import (
	"fmt"
	"time"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/flow"
	"github.com/quipu-journal/quipu/internal/wire"
	"github.com/quipu-journal/quipu/journal"
)

// StartOption changes a start: Version, Delay, At, Tags, Who.
type StartOption interface{ toStart(r *StartRequest) }

// Version is the flow version that a job starts on, instead of the active one.
type Version string

func (v Version) toStart(r *StartRequest) { r.Version = string(v) }

// Delay puts off the start of a job, counted from its inception by the database's clock; 0 to
// MaxDelay.
type Delay time.Duration

func (d Delay) toStart(r *StartRequest) { r.Delay = time.Duration(d) }

// At is the time when a job starts, by the database's clock, at most MaxDelay from now.
type At time.Time

func (a At) toStart(r *StartRequest) { r.At = time.Time(a) }

// Tags are labels by which Jobs finds a job: at most MaxTags, each of 1 to MaxTag bytes.
type Tags []string

func (t Tags) toStart(r *StartRequest) { r.Tags = append(r.Tags, t...) }

// SignalOption changes a signal: IdempotencyKey, Code, Keep, Who.
type SignalOption interface{ toSignal(o *signalOptions) error }

// InterruptOption changes an interrupt: IdempotencyKey, Code, Reason, Descend,
// Throw, Who.
type InterruptOption interface {
	toInterrupt(o *interruptOptions) error
}

type signalOptions struct {
	identified
	code int
	keep time.Duration
	who  string
}

type interruptOptions struct {
	identified
	order collation.InterruptOrder
}

// IdempotencyKey identifies a call. A second call with the same key, to the same topic and key or
// to the same job, does nothing; the key is known for 30 days. It has 1 to MaxIdempotencyKey
// bytes. A call without one is never taken for a repetition.
type IdempotencyKey string

func (k IdempotencyKey) check() error {
	if k == "" || len(k) > MaxIdempotencyKey || !storable(string(k)) {
		return fmt.Errorf("an idempotency key is 1 to %d bytes of UTF-8 without U+0000, this one is %.80q", MaxIdempotencyKey, string(k))
	}
	return nil
}

func (k IdempotencyKey) toSignal(o *signalOptions) error {
	o.key = k
	return k.check()
}

func (k IdempotencyKey) toInterrupt(o *interruptOptions) error {
	o.key = k
	return k.check()
}

// Code is the code of a signal: 200 (the default), 202 (a repeating hook stays open), or 400 to
// 599 (the hook ends with that error). For an interrupt it is the code with which the job ends:
// 400 to 599, 410 by default.
type Code int

func (c Code) isError() bool { return c >= 400 && c <= 599 }

func (c Code) toSignal(o *signalOptions) error {
	o.code = int(c)
	if c != collation.CodeOK && c != collation.CodePass && !c.isError() {
		return fmt.Errorf("code %d: a signal has 200, 202, or 400 to 599", c)
	}
	return nil
}

func (c Code) toInterrupt(o *interruptOptions) error {
	o.order.Code = int(c)
	if !c.isError() {
		return fmt.Errorf("code %d: an interrupt has 400 to 599", c)
	}
	return nil
}

// Keep says how long a signal is kept while nobody waits for it: up to MaxKeep, by default
// DefaultKeep.
type Keep time.Duration

func (k Keep) toSignal(o *signalOptions) error {
	o.keep = time.Duration(k)
	if o.keep < time.Microsecond || o.keep > MaxKeep {
		return fmt.Errorf("keep %s: more than 0, and at most %s", o.keep, MaxKeep)
	}
	return nil
}

// Reason is the message of the error with which an interrupt ends the job: at most flow.MaxReason
// bytes, "interrupted" by default. For a Resume it is the operator's reason, for the journal;
// empty by default.
type Reason string

func (r Reason) toInterrupt(o *interruptOptions) error {
	o.order.Reason = string(r)
	if len(r) > flow.MaxReason || !storable(string(r)) {
		return fmt.Errorf("a reason is UTF-8 without U+0000 of at most %d bytes, this one has %d", flow.MaxReason, len(r))
	}
	return nil
}

// Descend says that the interrupt also ends the children which the job awaits. Default: false.
type Descend bool

func (d Descend) toInterrupt(o *interruptOptions) error {
	o.order.Descend = bool(d)
	return nil
}

// Throw says how the job ends: true (the default) as interrupted, with code and reason; false as
// completed, with its output.
type Throw bool

func (t Throw) toInterrupt(o *interruptOptions) error {
	o.order.Throw = bool(t)
	return nil
}

// Who is the person who decides or asks, for the journal. It is an option of Resume, Start, Signal
// and Interrupt.
type Who string

func (w Who) toStart(r *StartRequest) { r.Who = string(w) }

func (w Who) toInterrupt(o *interruptOptions) error {
	o.order.Who = wire.CutText(string(w))
	return nil
}

func (w Who) toSignal(o *signalOptions) error {
	o.who = wire.CutText(string(w))
	return nil
}

func (w Who) toResume(f *journal.From) { f.Who = wire.CutText(string(w)) }

func (w Who) toFork(f *journal.From) { w.toResume(f) }

func (r Reason) toResume(f *journal.From) { f.Reason = wire.CutText(string(r)) }

func (r Reason) toFork(f *journal.From) { r.toResume(f) }
