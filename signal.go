package quipu

import (
	"context"
	"crypto/rand"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/flow"
	"github.com/quipu-journal/quipu/internal/engine"
	"github.com/quipu-journal/quipu/internal/store"
	"github.com/quipu-journal/quipu/internal/wire"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/telemetry/observer"
)

// Limits of a signal.
const (
	MaxSignalTopic = flow.MaxTopic // bytes
	MaxSignalKey   = collation.MaxSignalKey
	// MaxPayload bounds the payload of a signal, in bytes of its canonical form. Each wait that
	// takes the signal stores a copy.
	MaxPayload = wire.MaxInline
	// DefaultKeep is how long a signal is kept while nobody waits for it.
	DefaultKeep = time.Duration(collation.KeepSignal) * time.Microsecond
	// MaxKeep is also how long the idempotency key of a signal is known.
	MaxKeep = store.SignalAge
	// MaxIdempotencyKey bounds an idempotency key, bytes.
	MaxIdempotencyKey = 512
)

// SignalState is the outcome of a signal: SignalConsumed, SignalKept or SignalMissed.
type SignalState string

// The outcomes of a signal.
const (
	SignalConsumed SignalState = SignalState(store.SignalConsumed) // a wait took it
	SignalKept     SignalState = SignalState(store.SignalKept)     // nobody waits yet: the next matching wait takes it
	// a SignalAll that met no wait, or a kept signal whose time has passed
	SignalMissed SignalState = SignalState(store.SignalMissed)
)

// SignalResult is the outcome of a signal.
type SignalResult struct {
	State SignalState
	// Duplicate says that this call did nothing: a signal with the same idempotency key came
	// before, or an earlier try of this call did, whose answer was lost. State is what became of
	// that signal so far.
	Duplicate bool
	// Reached is the number of waits that took the signal in this call.
	Reached int
}

// Signal sends a signal to the hook that has waited longest for the topic and the key (1.11), of
// 1…MaxSignalTopic and 1…MaxSignalKey bytes. If no hook waits, the signal is kept and the next
// wait takes it at once, so it does not matter which comes first (E13). payload becomes the
// output of the hook. It is anything that encoding/json marshals; json.RawMessage is taken as it
// is.
//
// With a database login of the role client an engine delivers the signal: the state is then
// SignalKept, or for a Duplicate what became of the first (S8).
//
// Errors: ErrInput, or the store's. With ErrUnavailable nothing was sent; with ErrUnknown it may
// have been, and the call may be repeated under an IdempotencyKey.
func (rt *Runtime) Signal(
	ctx context.Context, topic, key string, payload any, opts ...SignalOption,
) (SignalResult, error) {
	return rt.send(ctx, false, topic, key, payload, opts)
}

// SignalAll sends a signal to every hook that waits for the topic and the key, at most 10 000,
// the longest waiting first. The signal is not kept. Otherwise it is as Signal.
func (rt *Runtime) SignalAll(
	ctx context.Context, topic, key string, payload any, opts ...SignalOption,
) (SignalResult, error) {
	return rt.send(ctx, true, topic, key, payload, opts)
}

// SignalTx is Signal inside the caller's own transaction: the signal is sent when that commits
// (E17) and reaches a hook as soon as a job of StartTx begins. So its state is SignalKept, or for
// a Duplicate what became of the first. Errors are those of StartTx, or ErrInput.
func (rt *Runtime) SignalTx(
	ctx context.Context, tx Transaction, topic, key string, payload any, opts ...SignalOption,
) (SignalResult, error) {
	s, err := rt.signal(ctx, false, topic, key, payload, opts)
	if err != nil {
		return SignalResult{}, err
	}
	done, err := rt.committer.SignalTx(ctx, tx, *s)
	if err != nil {
		return SignalResult{}, fmt.Errorf("signal %s in a transaction: %w", topic, err)
	}
	return SignalResult{State: SignalState(done.State), Duplicate: done.Duplicate}, nil
}

func (rt *Runtime) send(
	ctx context.Context, all bool, topic, key string, payload any, opts []SignalOption,
) (SignalResult, error) {
	s, err := rt.signal(ctx, all, topic, key, payload, opts)
	if err != nil {
		return SignalResult{}, err
	}
	began := time.Now()
	send := rt.committer.Signal
	if !rt.proc.Decides() {
		send = rt.committer.Post // a login without the keys leaves the waits to the engines (S8)
	}
	done, err := send(ctx, *s)
	if err != nil {
		return SignalResult{}, fmt.Errorf("signal %s: %w", topic, err)
	}
	return rt.signalled(s, &done, began), nil
}

// signalled counts the outcome of a signal and adds a span to the traces of the jobs it reached.
func (rt *Runtime) signalled(s *collation.Signal, done *store.Signalled, began time.Time) SignalResult {
	o, outcome := rt.cfg.Observer, string(done.State)
	if done.Duplicate {
		outcome = "duplicate"
	}
	o.Count(observer.MetricSignals, 1, "outcome", outcome)
	for i := range done.Out {
		out := &done.Out[i]
		subject := engine.SignalSubject(rt.cfg.Space, out)
		subject.Topic, subject.Link = s.Topic, s.Trace
		o.Told(observer.Message{Job: out.Row.Job, Traceparent: out.Trace, GUID: out.Row.GUID},
			observer.Span{Name: observer.SpanSignal, Subject: subject, Start: began, End: time.Now()})
	}
	return SignalResult{State: SignalState(done.State), Duplicate: done.Duplicate, Reached: done.Reached}
}

// signal checks its arguments and builds the signal. The store sets the time (J5).
func (rt *Runtime) signal(
	ctx context.Context, all bool, topic, key string, payload any, opts []SignalOption,
) (*collation.Signal, error) {
	if err := checkSignal(topic, key); err != nil {
		return nil, err
	}
	key = rt.proc.Kept(key)
	o := signalOptions{code: collation.CodeOK, keep: DefaultKeep}
	for _, opt := range opts {
		if err := opt.toSignal(&o); err != nil {
			return nil, fmt.Errorf("%w: signal: %w", ErrInput, err)
		}
	}
	body, err := marshal(payload)
	if err == nil && len(body) > MaxPayload {
		err = fmt.Errorf("it has %d bytes in its canonical form, the limit is %d", len(body), MaxPayload)
	}
	if err != nil {
		return nil, fmt.Errorf("%w: signal %s, key %.80q: payload: %w", ErrInput, topic, key, err)
	}
	return &collation.Signal{
		GUID:  collation.SignalGUID(rt.cfg.Space, topic, key, o.id()),
		Topic: topic, Key: key, Code: o.code, Payload: body, All: all,
		Keep: collation.Micros(o.keep.Microseconds()), Trace: rt.cfg.Observer.Trace(ctx), Who: o.who,
	}, nil
}

// checkSignal refuses what no hook waits for.
func checkSignal(topic, key string) error {
	if err := flow.CheckTopic(topic); err != nil {
		return fmt.Errorf("%w: signal: %w", ErrInput, err)
	}
	switch {
	case key == "":
		return fmt.Errorf("%w: signal %s: it has no key: the hook that waits for it says which one", ErrInput, topic)
	case len(key) > MaxSignalKey:
		return fmt.Errorf("%w: signal %s: a key of %d bytes, the limit is %d: %.40q…", ErrInput, topic, len(key), MaxSignalKey, key)
	case !storable(key):
		return fmt.Errorf("%w: signal %s: key %.80q is no UTF-8, or has U+0000", ErrInput, topic, key)
	}
	return nil
}

// storable says whether the database can store the text.
func storable(s string) bool { return utf8.ValidString(s) && !strings.Contains(s, "\x00") }

// InterruptResult is the outcome of an interrupt.
type InterruptResult struct {
	// Job is the job that was meant. It has its key.
	Job Job
	// Duplicate says that this call did nothing: the job was sent an interrupt with the same
	// idempotency key before. The key of an interrupt that met a closed job is known as long as
	// that of a signal (W12).
	Duplicate bool
	// Closed says that the job had ended already, so this call changed nothing. With Duplicate,
	// the earlier interrupt may be what ended it.
	Closed bool
}

// Interrupt ends a job as soon as an engine handles the message. A job with an ID is that one: another
// job that has its key by now, because it was resumed or started anew, is left alone. A job with only
// a key is the one that has the key now. The job's open work is abandoned and cancelled (C15), and
// Wait returns a *JobError with the code and the reason. Children that it awaits go on, unless Descend
// is set. A job that has ended stays as it is: that is no error, and InterruptResult.Closed says it.
//
// Errors: ErrNotFound, ErrInput, or the store's. With ErrUnavailable nothing was sent; with
// ErrUnknown it may have been, and the call may be repeated, since a job is interrupted only
// once.
func (rt *Runtime) Interrupt(ctx context.Context, job Job, opts ...InterruptOption) (InterruptResult, error) {
	o := interruptOptions{order: collation.InterruptOrder{
		Code: collation.CodeInterrupted, Reason: "interrupted", Throw: true, From: "a client",
	}}
	for _, opt := range opts {
		if err := opt.toInterrupt(&o); err != nil {
			return InterruptResult{}, fmt.Errorf("%w: interrupt: %w", ErrInput, err)
		}
	}
	job, err := rt.known(ctx, job)
	if err != nil {
		return InterruptResult{}, err
	}
	// The store sets the due time (J5).
	row, err := o.order.Row(collation.AskedInterruptGUID(o.id(), job.ID), job.ID, collation.Never)
	if err != nil {
		return InterruptResult{}, err
	}
	done, err := rt.committer.Interrupt(ctx, row, !rt.proc.Decides())
	if err != nil {
		return InterruptResult{}, fmt.Errorf("interrupt job %.80q: %w", job.name(), err)
	}
	return InterruptResult{Job: Job{ID: job.ID, Key: done.Key}, Duplicate: !done.Fresh, Closed: done.Closed}, nil
}

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

func (r Reason) toResume(f *journal.From) { f.Reason = wire.CutText(string(r)) }

func (r Reason) toFork(f *journal.From) { r.toResume(f) }

// identified is the idempotency key of a signal or an interrupt: a call that is repeated under
// the same key does nothing (C8).
type identified struct{ key IdempotencyKey }

func (i *identified) id() string {
	if i.key != "" {
		return string(i.key)
	}
	return rand.Text()
}
