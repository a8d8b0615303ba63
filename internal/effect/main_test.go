package effect

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/quipu-journal/quipu/effects"
	"github.com/quipu-journal/quipu/internal/effect/port"
	"github.com/quipu-journal/quipu/internal/store"
	"github.com/quipu-journal/quipu/internal/testkit/effectstest"
	"github.com/quipu-journal/quipu/internal/usercode"
	"github.com/quipu-journal/quipu/journal"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var (
	theJob     = journal.JobID{1}
	theRequest = journal.GUID{2}
)

// bench is one request and the runs of its handler.
type bench struct {
	t     *testing.T
	store *effectstest.Store
	runs  int
	turn  int
}

func newBench(t *testing.T) *bench {
	t.Parallel()
	b := &bench{t: t, store: effectstest.New(), turn: 1}
	b.store.Put(theJob, theRequest, nil)
	return b
}

// run makes a further run of the handler: the first has no lease, later ones have.
func (b *bench) run() (context.Context, *Session) {
	b.runs++
	holder := string(rune('a' + b.runs))
	l := store.Lease{Job: theJob, Request: theRequest, Turn: b.turn, Holder: holder, Session: 1}
	later := b.runs > 1
	if later {
		var err error
		l, err = b.store.Lease(b.t.Context(), theJob, theRequest, b.turn, holder, 1)
		require.NoError(b.t, err)
	}
	s := NewSession(Config{
		Store: b.store, Lease: l, Held: later, Replay: later, Refusal: refused,
		Identity: Identity{Space: "shop", Job: theJob, Generation: 1, Version: "1", Activity: "charge", DAD: ",0,0"},
	})
	return With(b.t.Context(), s), s
}

// refused reads the errors of these tests that are results.
func refused(chain []error) (code int, f journal.Failure, final, ok bool) {
	r, ok := usercode.As[interface {
		error
		Refusal() (int, journal.Failure, bool)
	}](chain)
	if ok {
		code, f, final = r.Refusal()
	}
	return code, f, final, ok
}

// catcher is a run that only looks at the call.
type catcher struct{ c *Call }

func (k *catcher) Do(_ context.Context, c *port.Call, _ func(context.Context, any) (any, error), _ any) error {
	k.c = readCall(c)
	return nil
}

// callOf is a call of Do.
func callOf(name string, options ...effects.Option) *Call {
	var k catcher
	_, _ = effects.Do(context.WithValue(context.Background(), port.RunKey{}, &k), name,
		func(context.Context) (int, error) { return 0, nil }, options...)
	return k.c
}

// again takes the request from the earlier run, as when its process died.
func (b *bench) again() (context.Context, *Session) {
	b.store.Expire(theRequest)
	return b.run()
}

// nextTurn makes the run after a failed attempt.
func (b *bench) nextTurn() (context.Context, *Session) {
	b.store.Turn(theRequest)
	b.turn++
	return b.run()
}

// counting is a body that counts its calls and returns a given value.
type counting[T any] struct {
	calls int
	keys  []string
	value T
	err   error
}

func (c *counting[T]) fn(ctx context.Context) (T, error) {
	c.calls++
	c.keys = append(c.keys, effects.Key(ctx))
	return c.value, c.err
}

// mustPanic runs f as a process that dies inside it.
func mustPanic(t *testing.T, f func()) {
	t.Helper()
	require.Panics(t, f)
}
