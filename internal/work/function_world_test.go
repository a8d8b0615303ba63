package work

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/effects"
	"github.com/quipu-journal/quipu/internal/durable"
	"github.com/quipu-journal/quipu/internal/effect"
	"github.com/quipu-journal/quipu/internal/store"
	"github.com/quipu-journal/quipu/internal/testkit/effectstest"
	"github.com/quipu-journal/quipu/internal/wire"
	"github.com/quipu-journal/quipu/internal/work/port"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/workers"
)

// errCrash is the store's error in a process that has died.
var errCrash = errors.New("the process is dead")

// world runs a durable function as its worker does, delivery by delivery, on a store in
// memory. It has no bus and plays the engine itself.
type world struct {
	t     testing.TB
	store *effectstest.Store
	reg   *workers.Registry
	q     wire.Request
	runs  int
	again bool // the next delivery is not the first
	undos int  // jobs of its compensations

	outer *outside // see play

	stands bool              // suspended functions stand, and go on
	from   *durable.Function // that stands for the next delivery
	wentOn int               // deliveries

	// crash, if set, decides at each operation of the store whether the process dies
	// there, and whether that operation is still carried out.
	crash *crash
}

type crash struct {
	mu    sync.Mutex
	left  int
	after bool // the last operation is carried out
	dead  bool
	ops   int
}

// dies decides about one operation.
func (c *crash) dies() (before, after bool) {
	if c == nil {
		return false, false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.dead {
		return true, true
	}
	c.ops++
	if c.left--; c.left > 0 {
		return false, false
	}
	c.dead = true
	return !c.after, true
}

// crashing is a store whose process dies.
type crashing struct {
	*effectstest.Store
	crash *crash
}

// dying does one operation of a process, unless the process dies before it.
func dying[T any](c *crash, do func() (T, error)) (out T, err error) {
	before, after := c.dies()
	if before {
		return out, errCrash
	}
	if out, err = do(); after {
		err = errCrash
	}
	return out, err
}

func (s crashing) StartEffect(
	ctx context.Context, l store.Lease, e journal.Effect,
) (row store.EffectRow, taken bool, err error) {
	row, err = dying(s.crash, func() (row store.EffectRow, err error) {
		row, taken, err = s.Store.StartEffect(ctx, l, e)
		return row, err
	})
	return row, taken, err
}

func (s crashing) FinishEffect(
	ctx context.Context, l store.Lease, e journal.Effect, notDone bool,
) (store.EffectRow, error) {
	return dying(s.crash, func() (store.EffectRow, error) { return s.Store.FinishEffect(ctx, l, e, notDone) })
}

func (s crashing) SendOutcome(
	ctx context.Context, l store.Lease, e journal.Effect, ended func(store.EffectRow, error),
) {
	ended(s.FinishEffect(context.WithoutCancel(ctx), l, e, false))
}

func (s crashing) TxEffect(
	ctx context.Context, l store.Lease, e journal.Effect, call store.TxCall,
) (store.EffectRow, error) {
	return dying(s.crash, func() (store.EffectRow, error) { return s.Store.TxEffect(ctx, l, e, call) })
}

func newWorld[In, Out any](t testing.TB, fn func(context.Context, In) (Out, error), input string) *world {
	w := &world{t: t, store: effectstest.New(), reg: workers.New(), q: ask("fn", 1, input)}
	workers.HandleDurable(w.reg, "fn", fn)
	w.store.Put(jobOf(t, w.q), w.id(), nil)
	return w
}

func (w *world) id() journal.GUID { return guid(w.t, w.q) }

// deploy replaces the function's code.
func deploy[In, Out any](w *world, fn func(context.Context, In) (Out, error)) {
	w.reg = workers.New()
	workers.HandleDurable(w.reg, "fn", fn)
}

func (w *world) function(ctx context.Context) *function {
	hs, _, err := port.Registered(w.reg)
	require.NoError(w.t, err)
	w.runs++
	job, err := journal.ParseJobID(w.q.Job)
	require.NoError(w.t, err)
	l := store.Lease{Job: job, Request: w.id(), Turn: w.q.Turn, Holder: "w" + string(rune('a'+w.runs)), Session: 1}
	if w.again {
		l, err = w.store.Lease(ctx, job, w.id(), w.q.Turn, l.Holder, 1)
		require.NoError(w.t, err)
	}
	r := run{req: &w.q, in: w.q.Input}
	identity := effect.Identity{
		Space: w.q.Space, Job: job, Generation: 1, Version: w.q.Version, Activity: w.q.Activity, DAD: w.q.DAD,
	}
	original, err := r.ordered(&identity)
	require.NoError(w.t, err)
	d := durable.New(durable.Config{Original: original, Grace: time.Second, Stands: w.stands, Config: effect.Config{
		Store: crashing{w.store, w.crash}, Lease: l, Held: w.again, Replay: w.again, Identity: identity,
		Read: readError, Refusal: refusal,
	}})
	w.again = true
	f := &function{h: hs[0], req: &w.q, in: w.q.Input, session: d.Session(), durable: d}
	if r.order != nil {
		f.of(r.order)
	}
	return f
}

// run makes one delivery; nil if its process died, or it handed the request back.
func (w *world) run() *wire.Response { return w.runIn(context.Background()) }

func (w *world) runIn(ctx context.Context) *wire.Response {
	e := w.deliver(ctx)
	if e.response == nil || w.crash != nil && w.crash.dead {
		w.store.Expire(w.id())
	}
	if w.crash != nil && w.crash.dead {
		w.dropped()
		w.crash = nil
		return nil
	}
	if e.response != nil {
		_, err := e.response.Journal()
		require.NoError(w.t, err, "the engine must be able to take it")
	}
	return e.response
}

// deliver runs the function, from its top or where it stands.
func (w *world) deliver(ctx context.Context) (e ending) {
	f, from, ok := w.function(ctx), w.from, false
	w.from = nil
	if from != nil {
		e, ok = f.goOn(ctx, from)
	}
	if ok {
		w.wentOn++
	} else {
		e = f.run(ctx)
	}
	if e.response != nil && e.response.Kind == journal.ResponseSuspended && f.durable.Stands() {
		w.from = f.durable
	} else {
		f.durable.Drop()
	}
	return e
}

// dropped forgets the function that stands, as the end of its process does.
func (w *world) dropped() {
	if w.from != nil {
		w.from.Drop()
		w.from = nil
	}
}

// heard plays the engine: the request gets its next turn.
func (w *world) heard(r *wire.Response) {
	switch r.Kind {
	case journal.ResponseSuspended:
		w.store.Suspend(w.id(), r.Pauses)
	case journal.ResponseFailedAttempt:
		w.store.Turn(w.id())
		w.q.Attempt++
	default:
		w.store.Turn(w.id())
	}
	w.q.Turn++
}

// next runs until there is a response, and accepts it.
func (w *world) next() *wire.Response {
	w.t.Helper()
	for range 1000 {
		if r := w.run(); r != nil {
			w.heard(r)
			return r
		}
	}
	require.FailNow(w.t, "no response")
	return nil
}

// wake ends a wait of the function.
func (w *world) wake(kind journal.PauseKind, name string, output string) {
	w.t.Helper()
	r := &journal.Response{Kind: journal.ResponseWake, Code: collation.CodeOK, Request: w.id(), Output: []byte(output)}
	switch kind {
	case journal.PauseSleep:
		r.By, r.Output = journal.ByTimer, nil
	case journal.PauseSignal:
		r.By = journal.BySignal
	}
	w.wakeWith(kind, name, r)
}

func (w *world) wakeWith(kind journal.PauseKind, name string, r *journal.Response) {
	w.t.Helper()
	require.True(w.t, w.store.Wake(w.id(), kind, name, r), "it does not wait for %s %s", kind, name)
}

// timeout lets the timeout of a signal pass.
func (w *world) timeout(name string) {
	w.t.Helper()
	w.wakeWith(journal.PauseSignal, name,
		&journal.Response{Kind: journal.ResponseWake, Code: collation.CodeOK, By: journal.ByTimer})
}

// waits are the names of the pauses in a response.
func waits(r *wire.Response) []string {
	var names []string
	for _, p := range r.Pauses {
		names = append(names, string(p.Kind)+" "+p.Name+" at "+p.Position)
	}
	return names
}

// recorded lists the recorded effects: position, name, state and result.
func (w *world) recorded() []string {
	var all []string
	for _, r := range w.store.Rows(w.id()) {
		all = append(all, r.Position+" "+r.Name+" "+string(r.State)+" "+string(r.Result))
	}
	return all
}

// replay runs the function against its record.
func (w *world) replay(ended ...bool) *Replayed {
	w.t.Helper()
	q := w.record()
	q.Ended = len(ended) > 0
	out, err := Replay(context.Background(), w.reg, q)
	require.NoError(w.t, err)
	return out
}

func (w *world) record() ReplayRequest {
	return ReplayRequest{
		Request: wire.Request{
			Space: w.q.Space, Job: w.q.Job, Key: w.q.Key, Generation: 1, Flow: w.q.Flow, Version: w.q.Version,
			Activity: w.q.Activity,
			DAD:      w.q.DAD, Topic: "fn", Request: w.q.Request, Turn: w.q.Turn, Attempt: w.q.Attempt,
			Attempts: w.q.Attempts,
			Input:    w.q.Input,
		},
		Effects: w.store.Rows(w.id()), Pauses: w.store.Waits(w.id()),
	}
}

// outside counts calls by key.
type outside struct {
	mu    sync.Mutex
	calls map[string]int
	names []string
}

// do is an effect that returns v.
func do[T any](ctx context.Context, o *outside, name string, v T, options ...effects.Option) (T, error) {
	return effects.Do(ctx, name, func(ctx context.Context) (T, error) {
		o.called(ctx, name)
		return v, nil
	}, append([]effects.Option{effects.Idempotent}, options...)...)
}

func (o *outside) called(ctx context.Context, name string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.calls == nil {
		o.calls = map[string]int{}
	}
	o.calls[effects.Key(ctx)]++
	o.names = append(o.names, name)
}

// keys is how many keys were called outside, and the highest number of calls for one key.
func (o *outside) keys() (n, most int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return len(o.calls), slices.Max(append(slices.Collect(maps.Values(o.calls)), 0))
}

func result[T any](t testing.TB, r *wire.Response) (v T) {
	t.Helper()
	require.Equal(t, journal.ResponseTerminal, r.Kind, "%+v", r.Error)
	require.Nil(t, r.Error, "%+v", r.Error)
	require.NoError(t, json.Unmarshal(r.Output, &v))
	return v
}

// failedWith requires a response with an error, whose message says some things.
func failedWith(t testing.TB, r *wire.Response, kind journal.ResponseKind, code int, class string, says ...string) {
	t.Helper()
	require.NotNil(t, r.Error, "%+v", r)
	require.Equal(t, []any{kind, code, class}, []any{r.Kind, r.Code, r.Error.Class}, r.Error.Message)
	for _, said := range says {
		require.Contains(t, r.Error.Message, said)
	}
}
