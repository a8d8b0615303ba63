package workers

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"github.com/quipu-journal/quipu/backoff"
	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/durable"
	"github.com/quipu-journal/quipu/effects"
	"github.com/quipu-journal/quipu/fault"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/journal/store"
	"github.com/quipu-journal/quipu/observer"
	"github.com/quipu-journal/quipu/transport"
	"github.com/quipu-journal/quipu/wire"
)

// run is one delivery of a request, from its arrival until it is finished. Its
// goroutine decodes, leases, calls the handler and sends the response; the bus's
// callback, or the pulse, finishes the delivery.
type run struct {
	rt     *Runtime
	h      *handler
	d      transport.Delivery
	began  time.Time // it arrived
	called time.Time // its handler began; zero: not yet

	req     *wire.Request
	job     journal.JobID
	request journal.GUID
	in      []byte
	order   *collation.UndoOrder // of a request for the compensations of another
	own     store.Lease          // to take the request with
	taken   bool                 // the run has it from its beginning on
	session *effects.Session
	durable *durable.Function // nil of other handlers

	ctx    context.Context // the handler's
	cancel context.CancelCauseFunc
	end    func(error, []observer.Span) // of the attempt's span

	claimed atomic.Bool // who concludes: the handler's return, or giving up
	settled atomic.Bool // the delivery is finished
	// returned says that the row is handed back: a run whose response is late may be
	// given up twice.
	returned atomic.Bool

	pulse    pulse
	response [1]transport.Message
}

// serve is the goroutine of the run.
func (r *run) serve() {
	defer r.rt.active.add(-1)
	r.pulse.start(r)
	if !r.prepare() {
		return
	}
	stop := r.open()
	e := ending{err: durable.ErrGoexit}
	defer func() {
		if v := recover(); v != nil {
			e = ending{err: &panicError{value: v, stack: debug.Stack()}}
		}
		if r.claimed.CompareAndSwap(false, true) {
			r.conclude(e)
		} else {
			r.log().Warn("a handler returned after its run had been given up", "after", time.Since(r.began))
		}
		stop()
	}()
	fault.At(fault.K6, r.h.topic)
	e = r.call()
	fault.At(fault.K8, r.h.topic)
}

// call runs the handler.
func (r *run) call() (e ending) {
	if !r.h.durable && r.order == nil {
		e.out, e.err = r.h.invoke(r.ctx, r.in)
		return e
	}
	f := &function{h: r.h, req: r.req, in: r.in, session: r.session, durable: r.durable}
	switch {
	case !r.h.durable:
		return f.parks(ClassUndo, fmt.Errorf("topic %s is registered here, and not as a durable function: deploy the one that registered the compensations, then `quipu dead retry`", r.h.topic))
	case r.order != nil:
		f.of(r.order)
	}
	return f.run(r.ctx)
}

// open makes the handler's context: it ends with the drain, with the attempt's
// timeout (E9), or when the run is lost.
func (r *run) open() (stop func()) {
	ctx, end := r.rt.cfg.Observer.Attempt(r.rt.base, r.trace(), r.subject(0))
	ctx, cancel := context.WithCancelCause(ctx)
	leave := func() {}
	if ms := r.req.TimeoutMS; ms > 0 {
		ctx, leave = context.WithTimeoutCause(ctx, time.Duration(ms)*time.Millisecond, ErrTimeout)
	}
	unwatch := context.AfterFunc(ctx, r.pulse.hurry)
	unheld := r.rt.cfg.Session.Watch(r.session.Lease, cancel)
	stop = func() { unheld(); unwatch(); leave(); cancel(context.Canceled) }
	ctx = context.WithValue(effects.With(ctx, r.session), loggerKey{}, r.rt.cfg.Logger)
	r.pulse.mu.Lock()
	defer r.pulse.mu.Unlock()
	r.ctx, r.cancel, r.end = context.WithValue(ctx, callKey{}, r.req), cancel, end
	r.pulse.running = true
	r.called = time.Now()
	return stop
}

// conclude decides what a run that ended comes to. It is called once.
func (r *run) conclude(e ending) {
	verdict := r.session.Verdict()
	cause := context.Cause(r.ctx)
	var panicked *panicError
	if errors.As(e.err, &panicked) {
		r.log().Warn("a handler panicked", "panic", panicked.value, "stack", string(panicked.stack))
	}
	timedOut := errors.Is(cause, ErrTimeout)
	var trouble *effects.StoreError
	switch {
	case isLost(cause), errors.As(verdict, &trouble) && isLost(trouble.Err):
		r.lost(errors.Join(cause, verdict))
	case errors.Is(verdict, effects.ErrBusy):
		r.finished("busy", verdict, 0)
		r.nak(r.busyDelay())
	case errors.As(verdict, &trouble):
		r.finished("handed_back", verdict, 0)
		r.handBack("run the effects", verdict)
	default:
		response := e.response
		if response == nil {
			response = success(r.h.topic, e.out)
			if e.err != nil {
				response = failure(e.err, timedOut)
			}
			response = overruled(response, e.err, verdict, timedOut)
		}
		if response.Kind == journal.ResponseFailedAttempt && errors.Is(cause, ErrDraining) {
			r.finished("drained", cause, 0)
			r.nak(transport.MinNakDelay) // the drain cut it off (E9)
			return
		}
		r.finished(string(response.Kind), e.err, response.Code)
		r.respond(response)
	}
}

// isLost reports that the run's request is not its own any more: no answer (E9).
func isLost(err error) bool {
	return errors.Is(err, store.ErrStale) || errors.Is(err, store.ErrJobClosed) || errors.Is(err, store.ErrLeased) && !errors.Is(err, effects.ErrBusy)
}

// lost ends a run whose request is not its own any more. That of a closed job is
// over. Otherwise another run may have this very message, and die: it is handed back,
// and its row says what it is worth when it comes again (I8).
func (r *run) lost(why error) {
	r.finished("lost", why, 0)
	if errors.Is(why, store.ErrJobClosed) {
		r.settle(r.d.Ack)
		return
	}
	r.nak(r.busyDelay())
}

// giveUp concludes a run whose handler ignores the end of its context.
func (r *run) giveUp() {
	if !r.claimed.CompareAndSwap(false, true) {
		return
	}
	cause := context.Cause(r.ctx)
	r.log().Error("a handler ignores the end of its context: its run is given up", "cause", cause, "after", time.Since(r.began))
	r.session.Abandon(cause)
	r.conclude(ending{err: fmt.Errorf("the handler ignored the end of its context: %w", cause)})
}

// handBack is for trouble with the infrastructure: never a response (C10). Neither are
// full lanes, which are backpressure (T5), a handler that kills its process (E9): the
// run is not counted.
func (r *run) handBack(op string, err error) {
	r.log().Warn("a request is handed back", "op", op, "delivery", r.d.Count(), "error", err)
	r.nak(backoff.Delay(r.d.Count()-1, firstBackoff, maxBackoff, nil))
}

// nak hands the message back, and what the run holds: as long as this process lives
// nobody else would get it (W8). A request that was handed over has no message that
// comes again: its row is due, and sends one.
func (r *run) nak(delay time.Duration) {
	if !r.returned.Swap(true) {
		r.returns()
	}
	r.settle(func() error { return r.d.Nak(delay) })
}

// returns ends the run's lease, now or when the database takes it.
func (r *run) returns() {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.rt.base), storeWait)
	defer cancel()
	var err error
	switch {
	case r.session != nil:
		err = r.session.HandBack(ctx)
	case r.taken:
		err = r.rt.cfg.Store.HandBack(ctx, r.own)
	}
	if err != nil && !errors.Is(err, store.ErrStale) {
		r.log().Warn("a run could not end its lease; it is tried again", "error", err)
		r.rt.cfg.Session.Return(r.own)
	}
}

// unheard hands back a run whose response no bus takes, as none of a later run: each is
// counted until the request is stuck (E9).
func (r *run) unheard(op string, err error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.rt.base), storeWait)
	defer cancel()
	l := &r.own
	if _, err := r.rt.cfg.Store.Lease(ctx, l.Job, l.Request, l.Turn, l.Holder, l.Session); err != nil { // for what returns takes back
		r.log().Debug("a run is not counted", "error", err)
	}
	r.handBack(op, err)
}

// settle finishes the delivery, once.
func (r *run) settle(say func() error) {
	if !r.settled.CompareAndSwap(false, true) {
		return
	}
	r.pulse.stop()
	if err := say(); err != nil && !errors.Is(err, transport.ErrFinished) {
		// It comes again after the ack wait, and is met by its row.
		r.log().Debug("a delivery could not be finished", "error", err)
	}
	r.rt.active.add(-1)
}

// Delays before a request that was handed back comes again.
const (
	firstBackoff = 250 * time.Millisecond
	maxBackoff   = 30 * time.Second
	maxBusyDelay = 5 * time.Second
)

// busyDelay is the wait for another run, which may have died: a part of the time after
// which that is known.
func (r *run) busyDelay() time.Duration { return min(r.rt.cfg.AckWait/6, maxBusyDelay) }

// finished tells the observer how the attempt ended.
func (r *run) finished(outcome string, err error, code int) {
	r.count(outcome)
	if err == nil && code >= lowestErrorCode {
		err = fmt.Errorf("error %d", code)
	}
	r.end(err, r.session.Spans())
}

func (r *run) count(outcome string) {
	r.rt.cfg.Observer.Count(observer.MetricHandled, 1, "topic", r.h.topic, "outcome", outcome)
}

func (r *run) trace() string {
	if r.req.Trace != "" {
		return r.req.Trace
	}
	return r.d.Message().Header.Traceparent
}

func (r *run) subject(code int) observer.Subject {
	return observer.Subject{
		Space: r.req.Space, Job: r.req.Job, Key: r.req.Key, Flow: r.req.Flow, Activity: r.req.Activity, DAD: r.req.DAD,
		GUID: r.req.Request, Topic: r.h.topic, Code: code, Turn: r.req.Turn, Attempt: r.req.Attempt,
	}
}

func (r *run) log() *slog.Logger {
	if r.req == nil {
		return r.rt.cfg.Logger.With("topic", r.h.topic)
	}
	return r.rt.cfg.Logger.With("topic", r.h.topic, "job", r.req.Job, "activity", r.req.Activity, "dad", r.req.DAD, "turn", r.req.Turn, "attempt", r.req.Attempt)
}

// pulse keeps a run alive from one timer: deliveries in progress, the lease of one that
// takes long, the grace of a handler whose context ended, and the wait for a PubAck.
type pulse struct {
	mu       sync.Mutex
	r        *run
	timer    *time.Timer
	stopped  bool
	running  bool      // the handler's context exists
	kept     time.Time // last InProgress
	held     bool      // the run has its lease, as far as the pulse knows
	ended    time.Time // when the handler's context ended; zero before
	answered time.Time // when the response was handed to the bus
}
