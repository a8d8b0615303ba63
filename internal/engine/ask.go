package engine

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"time"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/flow"
	"github.com/quipu-journal/quipu/internal/backoff"
	"github.com/quipu-journal/quipu/internal/canonical"
	"github.com/quipu-journal/quipu/internal/store"
	"github.com/quipu-journal/quipu/internal/wire"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/telemetry/observer"
)

// Bounds of a start that a client asks for.
const (
	// askWait is how long a client waits for an engine.
	askWait = 30 * time.Second
	// firstLook is the pause before the first look; it doubles up to lastLook.
	firstLook = 5 * time.Millisecond
	lastLook  = 200 * time.Millisecond
	// maxTrace bounds a client's traceparent, bytes.
	maxTrace = 128
	// maxDelay is the longest delay of a start.
	maxDelay = collation.Micros(flow.MaxSleep / time.Microsecond)
)

// ErrRefused says that an engine refused a start that a client had asked for (S8). No job has
// begun, and none will by that call.
var ErrRefused = errors.New("an engine refused the start")

// refusedError is ErrRefused with the reason. It is ErrFlowMoved, too: what the client checked is
// no longer so, and it may check again.
type refusedError struct{ why string }

func (e *refusedError) Error() string        { return ErrRefused.Error() + ": " + e.why }
func (e *refusedError) Is(target error) bool { return target == ErrRefused || target == ErrFlowMoved }

// errAsk says that the row of a client's start has what no start of Ask has.
var errAsk = errors.New("it is no start of a client")

// ask is a start by a process that has no keys, so that it may not write an inception (S8, S9).
// It writes a start row, which an engine answers, unless a job has the key already.
type ask struct {
	store.Start
	nonce   string
	id      journal.GUID // of the row and of its record
	written bool         // the row may stand
	open    bool         // nothing is known of its end
	out     store.Started
}

// Ask begins jobs as Start does, but by an engine: it writes start rows, and waits until they are
// answered, at most askWait (S8). Errors in the results are those of Start, and ErrFlowMoved where
// an engine refused the start because of the flow. With store.ErrUnknown an engine may begin the
// job later.
func (c *Committer) Ask(ctx context.Context, starts []store.Start) []store.Started {
	asks, calls := make([]*ask, len(starts)), make([]*call, len(starts))
	for i := range starts {
		a := c.asking(&starts[i])
		asks[i], calls[i] = a, &call{name: callStart, wants: a.want, decides: a.ask, size: len(a.Input)}
	}
	c.do(ctx, calls...)
	for i, a := range asks {
		switch a.open = calls[i].err == nil && a.written; {
		case calls[i].err != nil:
			a.out.Err = calls[i].err
		case a.open:
			a.out.Err = fmt.Errorf("start of %.80q: %w: no engine has begun the job yet", a.Key, store.ErrUnknown)
		}
	}
	ctx, cancel := context.WithTimeout(ctx, askWait)
	defer cancel()
	for n := 0; c.look(ctx, asks); n++ {
		select {
		case <-ctx.Done():
		case <-time.After(backoff.Delay(n, firstLook, lastLook, nil)):
		}
	}
	out := make([]store.Started, len(asks))
	for i, a := range asks {
		out[i] = a.out
	}
	return out
}

func (c *Committer) asking(s *store.Start) *ask {
	a := &ask{Start: *s, nonce: rand.Text()}
	a.id = collation.AskID(c.cfg.Space, a.Key, a.nonce).Start()
	return a
}

// AskTx writes the start row of a client inside the caller's transaction tx, the store's handle
// (E17, W9). An engine begins the job after the commit, unless it refuses to. The answer has no
// job, but the record that Asked reads, except where the key has a job already. Errors are those of
// Joiner.
func (c *Committer) AskTx(ctx context.Context, tx any, in store.Start) (store.Started, error) {
	a := c.asking(&in)
	err := c.cfg.Store.Join(ctx, tx, func(t store.Tx) error {
		loaded, err := t.Load(ctx, a.want(), true)
		if err != nil {
			return err
		}
		b := c.joined(loaded)
		if err := a.ask(b); err != nil || len(b.plans) == 0 {
			return err
		}
		return t.Commit(ctx, b.plans)
	})
	if err != nil {
		return store.Started{}, err
	}
	if a.written {
		a.out.Asked = a.id
	}
	return a.out, nil
}

// Asked reads what became of a start that AskTx has asked for. open: no engine has answered yet. If
// it is not open and there is no error, the job has begun, or the key had that very job, or there
// is no record (any more). Errors: ErrRefused, and those of Start.
func (c *Committer) Asked(ctx context.Context, record journal.GUID) (open bool, err error) {
	x := &call{
		name: callStart, wants: func() []store.Want { return []store.Want{{Known: askRecord(record)}} },
		decides: func(b *batch) error {
			open = b.loaded.Known[askRecord(record)] == store.SignalKept
			if why := b.loaded.Reasons[askRecord(record)]; why != "" {
				return &refusedError{why}
			}
			return nil
		},
	}
	if c.do(ctx, x); x.err != nil {
		return false, x.err
	}
	return open, nil
}

// look asks what became of the open rows. It returns false when none is left, or ctx has ended.
func (c *Committer) look(ctx context.Context, asks []*ask) bool {
	var calls []*call
	for _, a := range asks {
		if a.open {
			calls = append(calls, &call{name: callStart, wants: a.want, decides: a.see})
		}
	}
	if len(calls) == 0 || ctx.Err() != nil {
		return false
	}
	c.do(ctx, calls...) // after an error of one the row is as open as before
	return true
}

// askRecord names the record of a client's start, whose row is addressed to its own id.
func askRecord(id journal.GUID) collation.RowKey {
	return collation.RowKey{Job: journal.JobID(id), GUID: id}
}

func (a *ask) want() []store.Want {
	return []store.Want{{Key: a.Key}, {Known: askRecord(a.id)}}
}

// ask writes the row, unless somebody has the key.
func (a *ask) ask(b *batch) error {
	a.written, a.out = false, store.Started{}
	if held := b.keyHolder(a.Key); held != nil && held.State != journal.JobExpired {
		a.out = taken(&a.Start, held)
		return nil
	}
	order := collation.Ask{
		Flow: a.Flow.Name, Version: a.Flow.Version, Key: a.Key, Input: a.Input, Tags: a.Tags, Trace: a.Trace,
		Who: a.Who,
		At:  a.At, Delay: collation.Micros(a.Delay.Microseconds()),
	}
	if a.Active {
		order.Version = ""
	}
	p, err := order.Asked(b.cfg.Space, a.nonce, b.loaded.Now)
	if err != nil {
		return fmt.Errorf("%w: %w", store.ErrRejected, err)
	}
	a.written = true
	b.write(p)
	return nil
}

// see reads the record of the row, and who has the key.
func (a *ask) see(b *batch) error {
	held := b.keyHolder(a.Key)
	state, known := b.loaded.Known[askRecord(a.id)]
	switch there := held != nil && held.State != journal.JobExpired; {
	case known && state == store.SignalKept:
		return nil
	case there && state == store.SignalConsumed:
		a.out = store.Started{Job: held.ID}
	case there:
		a.out = taken(&a.Start, held)
	case state == store.SignalMissed:
		a.out = store.Started{Err: &refusedError{b.loaded.Reasons[askRecord(a.id)]}}
	default:
		return nil
	}
	a.open = false
	return nil
}

// asked begins the job that the start row of a client asks for, as a start of this process would,
// or refuses it. It reads the row, which is locked, and who has the key, but only after the key was
// lost to another. It decides on the inception with the first steps. It writes these, and the end
// of the row with its record.
func (m *message) asked(ctx context.Context, b *batch, row *collation.Row) (*collation.Plan, error) {
	s, f, err := m.prepareAsked(ctx, b, row)
	if errors.Is(err, flow.ErrStopped) {
		return m.halted(), nil
	}
	begun := false
	if err == nil {
		begun, err = b.beginAsked(&s, f)
	}
	why := ""
	if no, refused := errors.AsType[*refusal](err); refused {
		why = wire.CutText(no.Error())
		b.log.Warn("a client's start is refused", "key", s.Key, "flow", s.Flow.Name, "error", no)
	} else if err != nil {
		return nil, failed(err)
	}
	b.cfg.Observer.Count(observer.MetricAsked, 1, "outcome", askOutcome(begun, why))
	b.write(collation.Answered(row, begun, why))
	return nil, nil
}

// askOutcome names how the start of a client ended, for a metric.
func askOutcome(begun bool, refused string) string {
	switch {
	case begun:
		return "begun"
	case refused != "":
		return "refused"
	}
	return "existing"
}

// beginAsked begins the job of a client's start, unless the key has that very job. Error: *refusal
// if the key has another one.
func (b *batch) beginAsked(s *store.Start, f *flow.Flow) (begun bool, err error) {
	held := b.keyHolder(s.Key)
	p := collation.Begin(b.inception(s, f), held, b.mode)
	if p == nil {
		there, _ := errors.AsType[*store.AlreadyStartedError](taken(s, held).Err)
		if there.SameFlow && there.SameInput {
			return false, nil
		}
		return false, &refusal{cause: there}
	}
	b.begin(p, f)
	return true, nil
}

// prepareAsked checks what a client wrote as a start of this process is checked: nothing of it is
// trusted. Error: *refusal.
func (m *message) prepareAsked(
	ctx context.Context, b *batch, row *collation.Row,
) (s store.Start, f *flow.Flow, err error) {
	a, err := row.Ask()
	switch {
	case m.reject != nil:
		return s, nil, &refusal{cause: m.reject}
	case err != nil:
		return s, nil, &refusal{cause: err}
	case a.Flow == flow.UndoName || len(a.Trace) > maxTrace ||
		a.Delay < 0 || max(a.Delay, a.At-b.loaded.Now) > maxDelay:
		return s, nil, &refusal{cause: errAsk}
	}
	s = store.Start{
		Active: a.Version == "", Key: b.cfg.KeptKey(a.Key), Trace: a.Trace, Who: wire.CutText(a.Who),
		At: max(0, a.At), Delay: time.Duration(a.Delay) * time.Microsecond,
	}
	if s.Flow, f, err = b.resolve(ctx, a.Flow, a.Version); err != nil {
		if errors.Is(err, store.ErrNotFound) {
			err = &refusal{cause: err}
		}
		return s, nil, err
	}
	s.Trigger = f.Trigger().Name
	s.Input, err = canonical.Payload(a.Input)
	if err == nil {
		s.Key, err = CheckStart(f, s.Key, s.Input, b.cfg.KeptKey, b.tooSlow)
	}
	if err == nil && f.Identity() == flow.Strict && s.Key != b.cfg.KeptKey(f.StrictKey(s.Input)) {
		err = errAsk
	}
	if err == nil {
		s.Tags, err = CheckTags(a.Tags)
	}
	switch {
	case errors.Is(err, flow.ErrStopped):
		return s, nil, err
	case err != nil:
		return s, nil, &refusal{cause: err}
	}
	m.child.asks = s.Key
	return s, f, nil
}
