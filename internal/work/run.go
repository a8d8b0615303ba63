package work

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/internal/backoff"
	"github.com/quipu-journal/quipu/internal/durable"
	"github.com/quipu-journal/quipu/internal/early"
	"github.com/quipu-journal/quipu/internal/effect"
	"github.com/quipu-journal/quipu/internal/fault"
	"github.com/quipu-journal/quipu/internal/store"
	"github.com/quipu-journal/quipu/internal/wire"
	"github.com/quipu-journal/quipu/internal/work/port"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/telemetry/observer"
	"github.com/quipu-journal/quipu/transport"
	"github.com/quipu-journal/quipu/workers"
)

// run is one delivery of a request, from its arrival until it is finished. Its goroutine
// decodes, leases, calls the handler and sends the response. The bus's callback or the
// pulse finishes the delivery.
type run struct {
	rt     *Runtime
	h      *port.Handler
	d      transport.Delivery
	began  time.Time // when it arrived
	called time.Time // when its handler began; zero before

	req     *wire.Request
	job     journal.JobID
	request journal.GUID
	in      []byte
	order   *collation.UndoOrder // set for the compensations of another request
	own     store.Lease          // the lease that the run has, or would take
	taken   bool                 // the run has held the lease from its beginning
	cause   *early.Cause         // of a run that began before it had committed, else nil
	first   atomic.Int64         // how long it took to its first offer to the batch of cause; 0: none
	session *effect.Session
	durable *durable.Function // nil for other handlers
	stands  bool              // the durable function stays for the next turn
	top     int               // the turn in which the durable function last ran from its top

	ctx    context.Context // the handler's
	cancel context.CancelCauseFunc
	end    func(error, []observer.Span) // ends the attempt's span

	claimed atomic.Bool // set by what concludes the run: the handler's return, or giveUp
	settled atomic.Bool // the delivery is finished
	// returned says that the row is handed back, so that a run whose response is late
	// does it once.
	returned atomic.Bool

	noted    bool // its end is in the metrics
	pulse    pulse
	response [1]transport.Message
}

func (r *run) serve() {
	defer r.rt.active.Done()
	r.pulse.start(r)
	if !r.prepare() {
		return
	}
	stop := r.open()
	e := ending{err: durable.ErrGoexit}
	defer func() {
		if v := recover(); v != nil {
			e = ending{err: readError(durable.NewPanic(v))}
		}
		if r.claimed.CompareAndSwap(false, true) {
			r.conclude(e)
		} else {
			r.log().Warn("a handler returned after its run had been given up", "after", time.Since(r.began))
		}
		if r.durable != nil && !r.stands {
			r.durable.Drop()
		}
		stop()
	}()
	fault.At(fault.K6, r.h.Topic)
	e = r.call()
	fault.At(fault.K8, r.h.Topic)
}

// call runs the handler. Its error is read here, while the run can still be given up (toldOf).
func (r *run) call() (e ending) {
	e = r.body()
	e.err = readError(e.err)
	return e
}

func (r *run) body() (e ending) {
	if !r.h.Durable && r.order == nil {
		e.out, e.err = r.h.Call(r.ctx, r.in)
		return e
	}
	f := &function{h: r.h, req: r.req, in: r.in, session: r.session, durable: r.durable}
	switch {
	case !r.h.Durable:
		return f.parks(wire.ClassUndo, fmt.Errorf("topic %s is registered here, and not as a durable function: deploy the one that registered the compensations, then `quipu dead retry`", r.h.Topic))
	case r.order != nil:
		f.of(r.order)
	}
	r.top = r.req.Turn
	if from, ok := r.rt.standing.take(r.request, r.req.Turn); ok {
		if e, ok := f.goOn(r.ctx, from.Function); ok {
			r.top = from.top
			return e
		}
	}
	return f.run(r.ctx)
}

// open makes the handler's context. It ends with the drain, with the attempt's timeout
// (E9), or when the run loses its request.
func (r *run) open() (stop func()) {
	o := r.rt.cfg.Observer
	// Whoever sent the request may not trace, so the span is named here, too.
	ctx, end := o.Attempt(r.rt.base,
		o.Under(observer.Message{Job: r.job, Traceparent: r.trace(), GUID: r.request}, r.req.Turn), r.subject())
	ctx, cancel := context.WithCancelCause(ctx)
	leave := func() {}
	if ms := r.req.TimeoutMS; ms > 0 {
		ctx, leave = context.WithTimeoutCause(ctx, time.Duration(ms)*time.Millisecond, workers.ErrTimeout)
	}
	unwatch := context.AfterFunc(ctx, r.pulse.hurry)
	unheld := r.rt.cfg.Session.Watch(r.holds, cancel)
	forget := func() {}
	if r.cause != nil {
		forget = r.cause.OnFailure(cancel)
	}
	stop = func() { forget(); unheld(); unwatch(); leave(); cancel(context.Canceled) }
	ctx = port.WithLog(effect.With(ctx, r.session), r.rt.cfg.Logger)
	r.pulse.mu.Lock()
	defer r.pulse.mu.Unlock()
	r.ctx, r.cancel, r.end = port.WithRequest(ctx, r.req), cancel, end
	r.pulse.running = true
	r.called = time.Now()
	return stop
}

// holds is what the run has until its delivery is finished. A handler that goes on after that has
// nothing: if the answer of its run is lost, no run has the request (W8).
func (r *run) holds() (l store.Lease, held bool) {
	if r.settled.Load() || r.cause != nil && r.cause.Open() {
		return l, false
	}
	return r.session.Lease()
}

// conclude decides what follows from a run that ended. It is called once.
func (r *run) conclude(e ending) {
	if !r.together(e) {
		r.apart(e)
	}
}

// apart concludes a run after its outcomes are recorded.
func (r *run) apart(e ending) {
	_ = r.session.Flush() // its error is in the verdict
	verdict := r.session.Verdict()
	cause := context.Cause(r.ctx)
	if t := toldOf(e.err); t != nil && t.failure.Class == wire.ClassPanic {
		r.log().Warn("a handler panicked", "panic", t.failure.Message, "stack", t.failure.Stack)
	}
	timedOut := errors.Is(cause, workers.ErrTimeout)
	var trouble *effect.StoreError
	switch {
	case errors.Is(cause, early.ErrUncommitted), errors.Is(verdict, early.ErrUncommitted):
		r.finished("dropped", early.ErrUncommitted, 0)
		r.drop()
	case isLost(cause), errors.As(verdict, &trouble) && isLost(trouble.Err):
		r.lost(errors.Join(cause, verdict))
	case errors.Is(verdict, effect.ErrBusy):
		r.finished("busy", verdict, 0)
		r.nak(r.busyDelay())
	case errors.As(verdict, &trouble):
		r.finished("handed_back", verdict, 0)
		r.handBack("run the effects", verdict)
	default:
		response := e.response
		if response == nil {
			response = r.made(e, verdict, timedOut)
		}
		if response.Kind == journal.ResponseFailedAttempt && errors.Is(cause, workers.ErrDraining) {
			r.finished("drained", cause, 0)
			r.nak(transport.MinNakDelay) // the drain cut the attempt off, so it did not fail (E9)
			return
		}
		if response.Code != collation.CodeOK || response.Error != nil { // the output of success is judged there
			response = sendable(r.h.Topic, response)
		}
		r.finished(outcome(response), e.err, response.Code)
		if r.stands = response.Kind == journal.ResponseSuspended && r.durable != nil && r.durable.Stands(); r.stands {
			r.rt.standing.put(r.request, stood{Function: r.durable, turn: r.req.Turn, top: r.top})
		}
		r.respond(response)
	}
}

// errSilent is the error of a durable function's run that gave neither a response nor an error.
var errSilent = errors.New("the run ended without a response")

// made is the response of a run that has made none itself.
func (r *run) made(e ending, verdict error, timedOut bool) *wire.Response {
	if e.err == nil && r.durable != nil {
		e.err = errSilent
	}
	if e.err != nil {
		return overruled(failure(e.err, timedOut), e.err, verdict, timedOut)
	}
	return overruled(success(r.h.Topic, e.out), nil, verdict, timedOut)
}

// isLost reports that the request no longer belongs to the run, which must not answer
// (E9).
func isLost(err error) bool {
	return errors.Is(err, store.ErrStale) || errors.Is(err, store.ErrJobClosed) ||
		errors.Is(err, store.ErrLeased) && !errors.Is(err, effect.ErrBusy)
}

// lost ends a run whose request no longer belongs to it. If the job is closed, the
// message is acked. Otherwise the run that has the request may die, and may have this
// very message: it is handed back, and the row decides when it comes again (I8).
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

// handBack hands the request back after trouble with the infrastructure, which never
// becomes a response (C10). The run is not counted as one whose handler killed the
// process (E9); full lanes, for one, are backpressure (T5).
func (r *run) handBack(op string, err error) {
	r.log().Warn("a request is handed back", "op", op, "delivery", r.d.Count(), "error", err)
	r.nak(backoff.Delay(r.d.Count()-1, firstBackoff, maxBackoff, nil))
}

// nak hands back the message and the run's lease, which nobody else would get while this
// process lives (W8). A request that came by memory has no message that would come again:
// its row is due, and sends one.
func (r *run) nak(delay time.Duration) {
	if !r.returned.Swap(true) {
		r.returns()
	}
	r.settle(func() error { return r.d.Nak(delay) })
}

// returns gives up the run's lease, now or as soon as the database accepts it.
func (r *run) returns() {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.rt.base), storeWait)
	defer cancel()
	var err error
	switch {
	case r.session != nil:
		err = r.session.HandBack(ctx)
	case r.taken:
		err = r.store().HandBack(ctx, r.own)
	}
	if err != nil && !errors.Is(err, store.ErrStale) {
		r.log().Warn("a run could not end its lease; it is tried again", "error", err)
		r.rt.cfg.Session.Return(r.own)
	}
}

// unheard hands back a run whose response no bus can take; a later run would fare no
// better. So these runs are counted until the request is stuck (E9).
func (r *run) unheard(op string, err error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.rt.base), storeWait)
	defer cancel()
	l := &r.own
	// returns subtracts it again
	if _, err := r.rt.cfg.Store.Lease(ctx, l.Job, l.Request, l.Turn, l.Holder, l.Session); err != nil {
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
		// The message comes again after the ack wait, and its row decides then.
		r.log().Debug("a delivery could not be finished", "error", err)
	}
	r.rt.active.Done()
}

// Delays before a request that was handed back comes again. After trouble the delay grows with the
// count of deliveries, which has those that only waited for another run, too. So its limit is low.
const (
	firstBackoff = 250 * time.Millisecond
	maxBackoff   = 5 * time.Second
)

// busyDelay is the wait for another run, which may have died: a fraction of the time
// after which a death is noticed.
func (r *run) busyDelay() time.Duration { return min(r.rt.cfg.AckWait/6, maxBackoff) }

// finished notes how a run has ended, once.
func (r *run) finished(outcome string, err error, code int) {
	if r.noted {
		return
	}
	r.noted = true
	r.count(outcome)
	took := time.Since(r.called)
	r.rt.cfg.Ran(r.h.Topic)
	if r.cause != nil || !r.session.Moved() { // else its first effect has waited for a commit of its own
		r.offered()
		r.rt.cfg.Early.Ran(r.h.Topic, time.Duration(r.first.Load()))
	}
	r.rt.cfg.Observer.Observe(observer.MetricHandling, took.Seconds(), "topic", r.h.Topic)
	if err == nil && code >= wire.LowestErrorCode {
		err = fmt.Errorf("error %d", code)
	}
	r.end(err, r.session.Spans())
}

// outcome names a response for a metric: a terminal one is a success or an error.
func outcome(r *wire.Response) string {
	switch {
	case r.Kind != journal.ResponseTerminal:
		return string(r.Kind)
	case r.Code >= wire.LowestErrorCode:
		return "error"
	}
	return "success"
}

func (r *run) count(outcome string) {
	r.rt.cfg.Observer.Count(observer.MetricHandled, 1, "topic", r.h.Topic, "outcome", outcome)
}

func (r *run) trace() string {
	if r.req.Trace != "" {
		return r.req.Trace
	}
	return r.d.Message().Header.Traceparent
}

func (r *run) subject() observer.Subject {
	return observer.Subject{
		Space: r.req.Space, Job: r.req.Job, Key: r.req.Key, Flow: r.req.Flow, Activity: r.req.Activity, DAD: r.req.DAD,
		GUID: r.req.Request, Topic: r.h.Topic, Turn: r.req.Turn, Attempt: r.req.Attempt,
	}
}

func (r *run) log() *slog.Logger {
	if r.req == nil {
		return r.rt.cfg.Logger.With("topic", r.h.Topic)
	}
	return r.rt.cfg.Logger.With("topic", r.h.Topic, "job", r.req.Job, "activity", r.req.Activity, "dad", r.req.DAD, "turn", r.req.Turn, "attempt", r.req.Attempt)
}

// pulse does, with one timer, what a run needs over time: it keeps the delivery in
// progress, takes the lease of a long run, ends the grace of a handler whose context
// ended, and bounds the wait for the PubAck.
type pulse struct {
	mu       sync.Mutex
	r        *run
	timer    *time.Timer
	stopped  bool
	running  bool      // the handler's context exists
	kept     time.Time // last InProgress
	holds    bool      // the lease is taken, or just being taken
	ended    time.Time // when the handler's context ended; zero before
	answered time.Time // when the response was handed to the bus
}
