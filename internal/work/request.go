package work

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/internal/durable"
	"github.com/quipu-journal/quipu/internal/effect"
	"github.com/quipu-journal/quipu/internal/store"
	"github.com/quipu-journal/quipu/internal/wire"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/telemetry/observer"
)

// storeWait bounds each call of the store that no effect makes.
const storeWait = 10 * time.Second

// Reasons of dead letters.
const (
	reasonUndecodable = "undecodable"
	reasonForeign     = "foreign"
)

// errNoSession is why a run does not begin: other processes would take over what it
// takes.
var errNoSession = fmt.Errorf("%w: the session of this process is not renewed", store.ErrUnavailable)

// prepare reads the request, leases it where it was delivered or published before (E9),
// and gets its input. It reports false when there is nothing to run and the delivery is
// finished.
func (r *run) prepare() bool {
	if reason, err := r.decode(); err != nil {
		r.deadLetter(reason, err)
		return false
	}
	h := &r.d.Message().Header
	if want := r.rt.cfg.Epoch(); want != 0 && h.Epoch != want {
		r.count("other_epoch")
		r.settle(r.d.Ack)
		return false
	}
	session, alive := r.rt.cfg.Session.Current()
	again := r.d.Count() > 1 || h.Publication > 1
	r.own = store.Lease{
		Job: r.job, Request: r.request, Space: r.req.Space, Generation: r.req.Generation,
		Turn: r.req.Turn, Fence: r.req.Fence, Holder: r.holder(), Session: session,
		Timeout: time.Duration(r.req.TimeoutMS) * time.Millisecond,
	}
	if m := r.d.Message(); m.Holder != "" {
		r.own.Holder, r.taken = m.Holder, true
	}
	if !alive {
		r.handBack("begin a run", errNoSession)
		return false
	}
	if again && !r.taken {
		if r.d.Count() > 1 {
			r.rt.cfg.Observer.Count(observer.MetricRedelivered, 1, "topic", r.h.Topic)
		}
		if r.taken = r.lease(); !r.taken {
			return false
		}
	}
	if !r.input() {
		return false
	}
	identity := effect.Identity{
		Space: r.req.Space, Job: r.job, Generation: r.req.Generation, Version: r.req.Version,
		Activity: r.req.Activity, DAD: r.req.DAD, Element: r.req.Element,
	}
	original, err := r.ordered(&identity)
	if err == nil && r.order == nil {
		err = rooted(&identity, r.req.Root, r.req.RootGeneration)
		r.own.Resumes = r.req.Root != ""
	}
	if err != nil {
		r.deadLetter(reasonUndecodable, err)
		return false
	}
	cfg := effect.Config{
		Store: r.store(), Lease: r.own, Held: r.taken, Observer: r.rt.cfg.Observer,
		// An attempt before may have left effects. A start that takes one over, and whose answer is lost,
		// looks like a start of this run's own: only the row from before tells them apart (E4).
		Replay: again || r.req.Attempt > 1 || r.h.Durable && r.req.Turn > 1, Identity: identity,
		// effects use the handler's context, so this ends both
		Read: readError, Refusal: refusal, Lost: func(err error) { r.cancel(err) },
		Input: r.in, Hold: r.rt.hold, Verifier: r.rt.watch.verifier, Warn: func(message string, args ...any) {
			r.log().Warn(message, args...)
		},
	}
	if r.h.Durable {
		r.durable = durable.New(durable.Config{
			Config: cfg, Original: original, Room: r.rt.inline, Grace: r.rt.cfg.Grace, Stands: r.rt.cfg.Standing > 0,
		})
		r.session = r.durable.Session()
	} else {
		r.session = effect.NewSession(cfg)
	}
	return true
}

// ordered reads the order in a request of the flow of compensations. Such a request runs
// in the place of the original one.
func (r *run) ordered(identity *effect.Identity) (original *durable.Original, err error) {
	if r.order, original, err = undoOrder(r.req, r.in); r.order == nil {
		return original, err
	}
	identity.Job, identity.Generation, identity.Version = original.Job, r.order.Generation, r.order.Version
	identity.Activity, identity.DAD, identity.Element = r.order.Activity, r.order.DAD, r.order.Element
	return original, rooted(identity, r.order.Root, r.order.RootGeneration)
}

// rooted gives a job that resumes another the identity of the first job of that chain, so
// that the keys of its effects are the same (E1).
func rooted(identity *effect.Identity, root string, generation int64) error {
	if root == "" {
		return nil
	}
	id, err := journal.ParseJobID(root)
	if err != nil {
		return fmt.Errorf("root: %w", err)
	}
	identity.Job, identity.Generation = id, generation
	return nil
}

// decode reads the message; an error is permanent.
func (r *run) decode() (reason string, err error) {
	if err := r.d.Err(); err != nil {
		return reasonUndecodable, err
	}
	m := r.d.Message()
	if r.req, err = wire.Decode[wire.Request](m.Body); err != nil {
		return reasonUndecodable, err
	}
	if r.job, err = journal.ParseJobID(r.req.Job); err != nil {
		return reasonUndecodable, fmt.Errorf("job: %w", err)
	}
	if r.request, err = journal.ParseGUID(r.req.Request); err != nil {
		return reasonUndecodable, fmt.Errorf("request: %w", err)
	}
	if _, err = collation.ParseDAD(r.req.DAD); err != nil {
		return reasonUndecodable, err
	}
	switch {
	case r.req.Space != r.rt.cfg.Space:
		return reasonForeign, fmt.Errorf("it is of space %.40q, this worker serves %q", r.req.Space, r.rt.cfg.Space)
	case journal.GUID(m.Header.GUID) != r.request:
		return reasonUndecodable, fmt.Errorf("its header names %s, its body request %s", journal.GUID(m.Header.GUID), r.request)
	case r.req.Topic != r.h.Topic:
		return reasonUndecodable, fmt.Errorf("it came on topic %s and names topic %.200q", r.h.Topic, r.req.Topic)
	case r.req.Turn < 1 || r.req.Turn != m.Header.Turn:
		return reasonUndecodable, fmt.Errorf("its header names turn %d, its body turn %d", m.Header.Turn, r.req.Turn)
	case r.req.Activity == "":
		return reasonUndecodable, errors.New("it names no activity")
	}
	return "", nil
}

// deadLetter commits a dead letter, then terminates the message (T3).
func (r *run) deadLetter(reason string, err error) {
	r.count(reason)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.rt.base), storeWait)
	defer cancel()
	letter := collation.DeadLetter{Kind: journal.MessageRequest, Reason: reason, Message: wire.CutText(err.Error())}
	if r.req != nil {
		letter.Job, letter.Row, letter.Activity = r.job, r.request, r.req.Activity
	}
	if failed := r.rt.cfg.DeadLetter(ctx, letter, r.d.Message().Body); failed != nil {
		r.handBack("record a dead letter", failed)
		return
	}
	if !r.returned.Swap(true) {
		r.returns() // the row sends the request again, with growing delays (T2)
	}
	r.settle(func() error { return r.d.Term(reason) })
}

// holder names this run. Two runs in one process are two holders, so that a redelivery of
// a request that still runs here is handed back, not taken over.
func (r *run) holder() string {
	return r.rt.cfg.Holder + "#" + strconv.FormatUint(r.rt.runs.Add(1), 36)
}

// lease takes a request that may have been run before (E9).
func (r *run) lease() (taken bool) {
	ctx, cancel := context.WithTimeout(r.rt.base, storeWait)
	defer cancel()
	l, err := r.rt.cfg.Store.Lease(ctx, r.job, r.request, r.own.Turn, r.own.Holder, r.own.Session)
	switch {
	case err == nil:
		l.Space, l.Generation, l.Timeout = r.own.Space, r.own.Generation, r.own.Timeout
		r.own = l
		return true
	case errors.Is(err, store.ErrLeased):
		r.count("leased")
		r.nak(r.busyDelay())
	case errors.Is(err, store.ErrSession): // this says nothing about the request, so it is not acked (I8)
		r.handBack("lease the request", err)
	case errors.Is(err, store.ErrStale), errors.Is(err, store.ErrJobClosed), errors.Is(err, store.ErrNotFound):
		r.count("stale")
		r.settle(r.d.Ack)
	case errors.Is(err, store.ErrExhausted):
		r.count("exhausted")
		r.log().Error("a request is stuck: it was run too often without an answer", "limit", store.MaxRuns)
		r.settle(r.d.Ack)
	default:
		r.rt.cfg.Session.Return(r.own) // the lease may have committed
		r.handBack("lease the request", err)
	}
	return false
}

// input gets the input. One that is too large for a message is read from its row (T4).
func (r *run) input() bool {
	r.in = r.req.Input
	if r.in != nil {
		return true
	}
	ctx, cancel := context.WithTimeout(r.rt.base, storeWait)
	defer cancel()
	var err error
	r.in, err = r.rt.cfg.Store.Input(ctx, r.job, r.request)
	switch {
	case err == nil:
		return true
	case errors.Is(err, store.ErrNotFound), errors.Is(err, store.ErrStale):
		r.count("stale")
		r.settle(r.d.Ack)
	default:
		r.handBack("read the input", err)
	}
	return false
}
