package quipu

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/flow"
	"github.com/quipu-journal/quipu/internal/engine"
	"github.com/quipu-journal/quipu/internal/store"
	"github.com/quipu-journal/quipu/internal/wire"
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

// ErrSignal says that the topic, the key, the payload or an option of a signal is missing,
// malformed or over its limit. Nothing was sent.
var ErrSignal = errors.New("refused signal")

// SignalState is the outcome of a signal: SignalConsumed, SignalKept or SignalMissed.
type SignalState string

// The outcomes of a signal.
const (
	SignalConsumed SignalState = SignalState(store.SignalConsumed) // a wait took it
	SignalKept     SignalState = SignalState(store.SignalKept)     // nobody waits yet: the next matching wait takes it
	SignalMissed   SignalState = SignalState(store.SignalMissed)   // a SignalAll that met no wait, or a kept signal whose time has passed
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
// Errors: ErrSignal, or the store's. With ErrUnavailable nothing was sent; with ErrUnknown it may
// have been, and the call may be repeated under an IdempotencyKey.
func (rt *Runtime) Signal(ctx context.Context, topic, key string, payload any, opts ...SignalOption) (SignalResult, error) {
	return rt.send(ctx, false, topic, key, payload, opts)
}

// SignalAll sends a signal to every hook that waits for the topic and the key, at most 10 000,
// the longest waiting first. The signal is not kept. Otherwise it is as Signal.
func (rt *Runtime) SignalAll(ctx context.Context, topic, key string, payload any, opts ...SignalOption) (SignalResult, error) {
	return rt.send(ctx, true, topic, key, payload, opts)
}

func (rt *Runtime) send(ctx context.Context, all bool, topic, key string, payload any, opts []SignalOption) (SignalResult, error) {
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
func (rt *Runtime) signal(ctx context.Context, all bool, topic, key string, payload any, opts []SignalOption) (*collation.Signal, error) {
	if err := checkSignal(topic, key); err != nil {
		return nil, err
	}
	key = rt.proc.Kept(key)
	o := signalOptions{code: collation.CodeOK, keep: DefaultKeep}
	for _, opt := range opts {
		if err := opt.toSignal(&o); err != nil {
			return nil, fmt.Errorf("%w: %w", ErrSignal, err)
		}
	}
	body, err := marshal(payload)
	if err == nil && len(body) > MaxPayload {
		err = fmt.Errorf("it has %d bytes in its canonical form, the limit is %d", len(body), MaxPayload)
	}
	if err != nil {
		return nil, fmt.Errorf("%w %s, key %.80q: payload: %w", ErrSignal, topic, key, err)
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
		return fmt.Errorf("%w: %w", ErrSignal, err)
	}
	switch {
	case key == "":
		return fmt.Errorf("%w %s: it has no key: the hook that waits for it says which one", ErrSignal, topic)
	case len(key) > MaxSignalKey:
		return fmt.Errorf("%w %s: a key of %d bytes, the limit is %d: %.40q…", ErrSignal, topic, len(key), MaxSignalKey, key)
	case !storable(key):
		return fmt.Errorf("%w %s: key %.80q is no UTF-8, or has U+0000", ErrSignal, topic, key)
	}
	return nil
}

// storable says whether the database can store the text.
func storable(s string) bool { return utf8.ValidString(s) && !strings.Contains(s, "\x00") }

// identified is the idempotency key of a signal or an interrupt: a call that is repeated under
// the same key does nothing (C8).
type identified struct{ key IdempotencyKey }

func (i *identified) id() string {
	if i.key != "" {
		return string(i.key)
	}
	return rand.Text()
}
