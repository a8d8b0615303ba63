package effect

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/effects"
	"github.com/quipu-journal/quipu/internal/canonical"
	"github.com/quipu-journal/quipu/internal/effect/port"
	"github.com/quipu-journal/quipu/internal/fault"
	"github.com/quipu-journal/quipu/internal/store"
	"github.com/quipu-journal/quipu/internal/usercode"
	"github.com/quipu-journal/quipu/internal/wire"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/telemetry/observer"
)

// function is the body of an effect; tx is the store's handle, only in class Tx.
type function func(ctx context.Context, tx any) ([]byte, error)

// errPanicked is the error that the other callers of a Once effect get.
var errPanicked = errors.New("the call panicked")

// do is one call of Do within a job.
func (s *Session) do(ctx context.Context, c *Call, fn function) ([]byte, error) {
	if c.err != nil {
		return nil, c.err
	}
	defer c.done()
	if err := s.step(ctx, c); err != nil {
		return nil, err
	}
	return s.carry(ctx, c, fn)
}

// carry gives the outcome of the call, once in this run.
func (s *Session) carry(ctx context.Context, c *Call, fn function) ([]byte, error) {
	if err := s.Doomed(); err != nil {
		return nil, err
	}
	p, first, err := s.enter(c)
	if err != nil {
		return nil, s.judge(c, err)
	}
	if !first {
		return s.share(ctx, c, p, fn)
	}
	s.arm(c)
	p.err = errPanicked
	defer s.leave(c, p)
	p.result, p.err = s.perform(ctx, c, fn)
	p.notDone = effects.IsNotDone(p.err)
	c.back()
	return p.result, p.err
}

// share waits for the outcome of an earlier call with the same key, see Once.
func (s *Session) share(ctx context.Context, c *Call, p *pending, fn function) ([]byte, error) {
	c.leave()
	select {
	case <-p.done:
	case <-ctx.Done():
		return nil, s.fails(c, context.Cause(ctx))
	}
	c.back()
	_, recorded := usercode.As[*effects.RecordedError](usercode.Chain(p.err))
	switch {
	case p.skipped:
		return s.carry(ctx, c, fn)
	case p.err != nil && !p.notDone && !recorded:
		return nil, s.fails(c, p.err) // unless the earlier call was in a branch that lost
	}
	return p.result, p.err
}

// leave publishes the outcome to those that share the call. A call in a branch that was
// stopped before the outcome is withdrawn, as if it had not been made.
func (s *Session) leave(c *Call, p *pending) {
	if p.skipped = c.place != nil && p.err == errPanicked && c.place.Stopping(); p.skipped {
		s.mu.Lock()
		delete(s.calls, c.pass())
		s.mu.Unlock()
	}
	close(p.done)
}

// enter registers the call in this run (E2). first is false where an earlier call of the
// run has the same key.
func (s *Session) enter(c *Call) (p *pending, first bool, err error) {
	label, pass := c.label(), c.pass()
	s.mu.Lock()
	defer s.mu.Unlock()
	if old := s.calls[pass]; old != nil && !old.again() {
		if !c.once || old.label != label {
			return nil, false, &DuplicateError{First: old.label, Second: label}
		}
		return old, false, nil
	}
	if c.place == nil && len(s.calls) >= MaxCalls {
		return nil, false, TooManyCalls(fmt.Sprintf("effect %q", c.name))
	}
	if s.calls == nil {
		s.calls = make(map[string]*pending)
	}
	p = &pending{label: label, done: make(chan struct{})}
	s.calls[pass] = p
	return p, true, nil
}

// again reports that the call ended as not done, so it may be made again.
func (p *pending) again() bool {
	select {
	case <-p.done:
		return p.notDone
	default:
		return false
	}
}

// perform returns the effect's recorded outcome, or brings one about (E4, E5).
func (s *Session) perform(ctx context.Context, c *Call, fn function) ([]byte, error) {
	rows, err := s.load(ctx)
	if err != nil {
		return nil, s.trouble(c, "read the recorded effects", err)
	}
	if c.keyed {
		if recorded, known := rows.labels[c.explicit]; known && recorded != c.label() {
			return nil, s.judge(c, &effects.NondeterminismError{
				Position: c.position, Key: c.explicit, Recorded: recorded, Asked: c.label(),
			})
		}
	}
	for n := range port.MaxAttempts {
		e := s.Effect(c, n)
		row, known := rows.ByKey[e.Key]
		if known {
			if err := c.strays(&row); err != nil {
				return nil, err
			}
		}
		taken := false
		if !known || row.State == store.EffectStarted {
			if err := s.outwards(ctx, c, known); err != nil {
				return nil, err
			}
			stood := row
			if row, taken, err = s.Begin(ctx, c, &e); err != nil {
				return nil, err
			}
			// When a takeover is repeated because its answer was lost, the store reports
			// the run's own start. So the row that was read before decides whose start it
			// was, and of which class: the handler may have changed the class since.
			if known && row.State == store.EffectStarted && stood.Fence < e.Fence {
				taken, row.Class = true, stood.Class
			}
		}
		switch {
		case row.State == store.EffectCompleted:
			if err := s.confirm(ctx, c, &row); err != nil {
				return nil, err
			}
			s.count(c, "replayed")
			return replay(c, row)
		case row.State == store.EffectNotDone:
			if known {
				if err := c.past(&row); err != nil {
					return nil, err
				}
			}
			continue
		case taken && (c.class == effects.Guarded || row.Class == string(effects.Guarded)):
			result, err := s.settle(ctx, c, e, nil)
			if effects.IsNotDone(err) {
				continue // it runs again, under the next key
			}
			return result, err
		}
		if c.class != effects.Tx {
			return s.run(ctx, c, e, taken, fn)
		}
		result, again, err := s.runTx(ctx, c, e, fn)
		if !again {
			return result, err
		}
	}
	return nil, fmt.Errorf("effect %q: %w: %d outcomes not done, the limit", c.name, effects.ErrUsage, port.MaxAttempts)
}

// Effect is the call as it is recorded after n outcomes "not done" (E5).
func (s *Session) Effect(c *Call, n int) journal.Effect {
	return journal.Effect{
		Key: s.cfg.Identity.key(c, n), Name: c.label(), Class: string(c.class), N: n, Turn: s.cfg.Lease.Turn,
		Position: c.position,
	}
}

// start commits the start of an effect, even when ctx ends.
func (s *Session) start(ctx context.Context, e journal.Effect) (row store.EffectRow, taken bool, err error) {
	sending, after := s.sending()
	err = insist(context.WithoutCancel(ctx), startAttempts, func(ctx context.Context) (err error) {
		l := s.current()
		l.After = after
		if row, taken, err = s.cfg.Store.StartEffect(ctx, l, e); sending == nil {
			return err
		}
		if <-sending.done; sending.err != nil {
			return sending.err
		}
		if sending, after = nil, (journal.Digest{}); errors.Is(err, store.ErrBehind) {
			row, taken, err = s.cfg.Store.StartEffect(ctx, s.current(), e)
		}
		return err
	})
	return row, taken, err
}

// Begin commits the start before the call, except for Pure and Tx; the first start of a run takes
// its lease too (E4). In a job that resumes another it takes over the earlier job's
// effect, of any class. The end of ctx does not interrupt it: an unnoticed start would
// park a Guarded effect that never ran.
func (s *Session) Begin(ctx context.Context, c *Call, e *journal.Effect) (row store.EffectRow, taken bool, err error) {
	if ctx.Err() != nil {
		return row, false, context.Cause(ctx)
	}
	bare := c.class == effects.Pure || c.class == effects.Tx
	if bare && !s.cfg.Lease.Resumes {
		e.Fence = s.current().Fence
		return store.EffectRow{State: store.EffectStarted, Fence: e.Fence, Class: e.Class}, false, nil
	}
	if row, taken, err = s.start(ctx, *e); err == nil {
		s.adopt(&row)
		e.Fence = s.current().Fence
		if row.State == store.EffectStarted && !taken && !bare && row.Fence != e.Fence {
			err = store.ErrLeased
		}
	}
	if err != nil {
		return row, false, s.trouble(c, "record its start", err)
	}
	return row, taken, nil
}

// run calls fn and records how it ended (E5).
func (s *Session) run(
	ctx context.Context, c *Call, e journal.Effect, taken bool, fn function,
) (result []byte, err error) {
	began := time.Now()
	defer func() { s.span(c, e.Key, began, err) }()
	last := c.last(e.N)
	if ctx.Err() != nil && !taken {
		// The start took longer than the run had left: fn was not called.
		last, err = false, effects.NotDone(context.Cause(ctx))
	} else {
		result, err = s.outside(ctx, c, e, fn)
		fault.At(fault.K7, c.name)
	}
	if c.class == effects.Pure && err != nil && c.place == nil {
		s.count(c, "failed")
		return nil, err
	}
	switch end := s.tell(err); {
	case err == nil:
		e.Result = result
	case end.final, end.notDone && !taken && last:
		e.Result, e.Error = codeJSON(end.code), end.failure
	case end.notDone && !taken:
		e.Error = end.failure
		return s.record(ctx, c, e, err)
	case c.class == effects.Guarded:
		return s.settle(ctx, c, e, err)
	default:
		// After a takeover fn can vouch for its own call, but not for the one that was
		// cut off. There "not done" means unknown, and the key stays.
		return nil, s.unknown(c, e.Key, err)
	}
	return s.record(ctx, c, e, nil)
}

// outside calls fn. A panic continues after the outcome was noted as unknown.
func (s *Session) outside(ctx context.Context, c *Call, e journal.Effect, fn function) (result []byte, err error) {
	returned := false
	s.fly(c, e.Key)
	defer func() {
		s.land(c)
		switch {
		case returned || c.class == effects.Pure:
		case c.class == effects.Guarded:
			_, _ = s.settle(ctx, c, e, errPanicked)
		default:
			_ = s.unknown(c, e.Key, errPanicked)
		}
	}()
	result, err = fn(port.WithEffect(ctx, e.Key.String()), nil)
	returned = true
	return result, err
}

func (s *Session) unknown(c *Call, key journal.Digest, cause error) error {
	switch c.class {
	case effects.Guarded:
		s.count(c, "parked")
		return s.judge(c, &effects.ParkedError{Name: c.name, Key: key.String(), Err: cause})
	case effects.Pure: // in a durable function
		s.count(c, "failed")
		return s.fails(c, cause)
	}
	s.count(c, "unknown")
	return s.judge(c, &effects.UnknownError{Name: c.name, Key: key.String(), Err: cause})
}

// fails makes the attempt of a durable function fail because of an effect's error that is
// not recorded: no later run would repeat what the function did with it. In other
// handlers it does nothing. It returns err unchanged.
func (s *Session) fails(c *Call, err error) error {
	if c.place != nil {
		_ = s.judge(c, fmt.Errorf("%s: %w", c, err))
	}
	return err
}

// record finishes the effect; with notDone set, as not done. Results are write-once, so
// the handler gets the stored outcome. A run that has its lease does not wait for a result to be
// stored.
func (s *Session) record(ctx context.Context, c *Call, e journal.Effect, notDone error) ([]byte, error) {
	if _, held := s.Lease(); held && notDone == nil {
		return s.send(ctx, c, e)
	}
	_ = s.Flush() // what follows an outcome is recorded after it
	var row store.EffectRow
	err := insist(context.WithoutCancel(ctx), finishAttempts, func(ctx context.Context) (err error) {
		row, err = s.cfg.Store.FinishEffect(ctx, s.current(), e, notDone != nil)
		return err
	})
	if err == nil {
		s.adopt(&row)
	}
	switch {
	case err != nil:
		return nil, s.trouble(c, "record its outcome", err)
	case row.State == store.EffectCompleted:
		s.count(c, "completed")
		return replay(c, row)
	case notDone != nil:
		s.count(c, "not_done")
		return nil, c.failed(e.Error, notDone)
	}
	// An operator decided meanwhile that it was not done; this run's view is stale.
	return nil, s.trouble(c, "record its outcome", store.ErrStale)
}

func (s *Session) trouble(c *Call, op string, err error) error {
	if errors.Is(err, store.ErrLeased) {
		return s.judge(c, &busyError{c.name, err})
	}
	return s.judge(c, &StoreError{Name: c.name, Op: op, Err: err})
}

// told is what an error of fn says, read once. Nothing behind it calls a method of the error.
type told struct {
	code    int
	failure *journal.Failure // as it is recorded; nil without an error
	final   bool             // the error is a result
	notDone bool
}

// tell reads an error of fn.
func (s *Session) tell(err error) told {
	if err == nil {
		return told{code: collation.CodeOK}
	}
	chain := usercode.Chain(err)
	t := told{
		code: collation.CodeInternal, notDone: effects.IsNotDone(err),
		failure: &journal.Failure{Class: "error", Message: wire.CutText(usercode.Text(err))},
	}
	if u, ok := err.(*unusable); ok {
		t.final, t.failure.Class = true, u.class
		return t
	}
	if s.cfg.Refusal == nil {
		return t
	}
	_, _ = usercode.Try(func() {
		code, f, final, ok := s.cfg.Refusal(chain)
		if !ok {
			return
		}
		if code < 400 || code > 599 { // E11
			code = collation.CodeInternal
		}
		f.Class, f.Message, f.Stack = wire.CutText(f.Class), wire.CutText(f.Message), wire.CutText(f.Stack)
		if data, bad := canonical.Payload(f.Data); f.Data != nil && bad == nil && len(data) <= wire.MaxFailureData {
			f.Data = data
		} else {
			f.Data = nil
		}
		t.code, t.failure, t.final = code, &f, final && !t.notDone
	})
	return t
}

// codeJSON is the result of an effect that ended with an error: the error's code.
func codeJSON(code int) []byte { return fmt.Appendf(nil, `{"code":%d}`, code) }

func replay(c *Call, row store.EffectRow) ([]byte, error) {
	c.key = row.Key
	if row.Error == nil {
		return row.Result, nil
	}
	recorded := struct {
		Code int `json:"code"`
	}{collation.CodeInternal}
	if len(row.Result) > 0 {
		if err := json.Unmarshal(row.Result, &recorded); err != nil {
			return nil, fmt.Errorf("effect %q: its recorded error has no readable code: %w", c.name, err)
		}
	}
	return nil, &effects.RecordedError{Name: c.name, Code: recorded.Code, Failure: *row.Error}
}

func (s *Session) count(c *Call, outcome string) {
	s.cfg.Observer.Count(observer.MetricEffects, 1, "class", string(c.class), "outcome", outcome)
}

func (s *Session) span(c *Call, key journal.Digest, began time.Time, err error) {
	id := &s.cfg.Identity
	span := observer.Span{
		Name: observer.SpanEffect, Start: began, End: time.Now(), Err: usercode.Read(err),
		Subject: observer.Subject{
			Space: id.Space, Job: id.Job.String(), Activity: id.Activity, DAD: id.DAD,
			GUID: key.String(), Topic: c.label(), Turn: s.cfg.Lease.Turn,
		},
	}
	s.mu.Lock()
	s.spans = append(s.spans, span)
	s.mu.Unlock()
}

// failed is the error that the handler gets for an outcome "not done". A durable function
// gets the same error in the run that recorded it and in later ones.
func (c *Call) failed(recorded *journal.Failure, err error) error {
	if c.place == nil || recorded == nil {
		return err
	}
	return &effects.FailedError{Name: c.name, Failure: *recorded, Cause: err}
}
