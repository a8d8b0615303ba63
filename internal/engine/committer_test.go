package engine

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/flow"
	"github.com/quipu-journal/quipu/internal/memstore"
	"github.com/quipu-journal/quipu/internal/store"
	"github.com/quipu-journal/quipu/internal/testkit/journaltest"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/transport"
)

// counter has a committer over memory whose store counts commits and can be told to fail. op is
// "commit", or "commit.done" after the commit was done.
type counter struct {
	*Committer
	t       *testing.T
	store   *memstore.Store
	ref     journal.FlowRef
	commits atomic.Int64
	fault   atomic.Pointer[func(op string) error]
	stop    func() // ends Run
	refuse  string // the database refuses this key
	mu      sync.Mutex
	held    map[string]chan struct{} // keys that other transactions hold, until they are closed
	busy    atomic.Int64             // batches that were refused because of them
}

// committing makes a counter in the test's bubble, with a deployed flow.
func committing(t *testing.T, cfg Config) *counter {
	t.Helper()
	c := &counter{t: t}
	c.store = memstore.New(memstore.Config{Space: "test", Fault: func(op string) error {
		if op == "commit" {
			c.commits.Add(1)
		}
		if f := c.fault.Load(); f != nil && *f != nil {
			return (*f)(op)
		}
		return nil
	}})
	c.ref = deployed(t, c.store, oneWorker("1"))
	cfg.Store, cfg.Space = &hooked{Engine: c.store, commit: c.refuses, held: c.holds}, "test"
	all, err := NewCommitter(t.Context(), cfg)
	require.NoError(t, err)
	c.Committer = all
	ctx, stop := context.WithCancel(context.Background())
	c.stop = stop
	go func() { assert.NoError(t, c.Run(ctx)) }()
	t.Cleanup(func() {
		stop()
		<-c.gone
	})
	return c
}

// oneWorker is a flow of one worker.
func oneWorker(version string) *flow.Builder {
	return flow.New("one").Version(version).Trigger("start").Worker("a", "topic").Transition("start", "a")
}

// deployed stores a flow, as the active version if it is the first.
func deployed(t *testing.T, st *memstore.Store, b *flow.Builder) journal.FlowRef {
	t.Helper()
	f, err := b.Build()
	require.NoError(t, err)
	_, err = st.Deploy(t.Context(), store.Deployment{Ref: collation.RefOf(f), Canonical: f.Canonical()})
	require.NoError(t, err)
	return collation.RefOf(f)
}

// startsOne starts a job of a flow as the contract of the store does, without an engine.
func startsOne(t *testing.T, st *memstore.Store, ref journal.FlowRef, mode collation.Mode) journal.JobID {
	t.Helper()
	started, err := journaltest.Driven{Store: st}.Start(t.Context(),
		[]store.Start{{Flow: ref, Trigger: "start", Key: "k", Input: []byte(`{}`)}}, mode)
	require.NoError(t, err)
	return started[0].Job
}

// failing has the store's calls end as f says, from now on; nil: as they do.
func (c *counter) failing(f func(op string) error) { c.fault.Store(&f) }

// refuses is the hook of a database that refuses one key.
func (c *counter) refuses(plans []store.Chained) error {
	for i := range plans {
		if e := plans[i].Plan.Entry; e != nil && e.Key != "" && e.Key == c.refuse {
			return errors.Join(store.ErrRejected, errors.New("22P05"))
		}
	}
	return nil
}

func (c *counter) requests(n int) []store.Start {
	out := make([]store.Start, n)
	for i := range out {
		out[i] = store.Start{Flow: c.ref, Active: true, Trigger: "start", Key: fmt.Sprint("k", i), Input: []byte(`{}`)}
	}
	return out
}

// begin starts jobs, each by its own caller.
func (c *counter) begin(ctx context.Context, starts []store.Start) []store.Started {
	out := make([]store.Started, len(starts))
	var all sync.WaitGroup
	for i := range starts {
		all.Go(func() { out[i] = c.Start(ctx, starts[i:i+1])[0] })
	}
	all.Wait()
	return out
}

// behindEachOther begins jobs whose callers have all come before the first one commits.
func (c *counter) behindEachOther(starts []store.Start) []store.Started {
	gate := make(chan struct{})
	c.failing(func(op string) error {
		if op == "commit" {
			<-gate
		}
		return nil
	})
	done := make(chan []store.Started)
	ctx, cancel := context.WithTimeout(c.t.Context(), time.Minute) // the bubble's clock
	defer cancel()
	go func() { done <- c.begin(ctx, starts) }()
	synctest.Wait()
	c.failing(nil)
	close(gate)
	return <-done
}

// W3: of five hundred callers one is refused, by the database or because its key is taken. The
// others share commits and get their results.
func TestW3OneRefusedAmongFiveHundred(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		c := committing(t, Config{})
		require.NoError(t, c.begin(t.Context(), c.requests(1))[0].Err)
		c.commits.Store(0)
		out := c.behindEachOther(c.requests(500))
		for i, o := range out {
			if i == 0 {
				require.ErrorAs(t, o.Err, new(*store.AlreadyStartedError))
				continue
			}
			require.NoError(t, o.Err, "%d", i)
		}
		require.Less(t, c.commits.Load(), int64(50), "they share commits")

		starts := c.requests(500)
		for i := range starts {
			starts[i].Key = fmt.Sprint("x", i)
		}
		c.refuse = "x300"
		for i, o := range c.behindEachOther(starts) {
			if i == 300 {
				require.ErrorIs(t, o.Err, store.ErrRejected)
				continue
			}
			require.NoError(t, o.Err, "%d", i)
		}
	})
}

// W3: the end of a caller's context ends its waiting, and no batch. What no batch had taken is
// not committed. The outcome of what was in progress is not known to the caller.
func TestW3ACallerGoesAway(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		c := committing(t, Config{Committers: 1})
		gate := make(chan struct{})
		c.failing(func(op string) error {
			if op == "commit" {
				<-gate
			}
			return nil
		})
		starts := c.requests(3)
		ctx, cancel := context.WithCancel(t.Context())
		under, waits, stays := make(chan store.Started, 1), make(chan store.Started, 1), make(chan store.Started, 1)
		go func() { under <- c.Start(ctx, starts[:1])[0] }()
		synctest.Wait() // it is in progress
		go func() { waits <- c.Start(ctx, starts[1:2])[0] }()
		go func() { stays <- c.Start(t.Context(), starts[2:3])[0] }()
		synctest.Wait()
		cancel()
		require.ErrorIs(t, (<-under).Err, store.ErrUnknown)
		left := (<-waits).Err
		require.ErrorIs(t, left, store.ErrUnavailable)
		require.ErrorContains(t, left, "nothing was sent")
		close(gate)
		require.NoError(t, (<-stays).Err)
		_, err := c.store.FindJob(t.Context(), "k0")
		require.NoError(t, err, "its batch went on")
		_, err = c.store.FindJob(t.Context(), "k1")
		require.ErrorIs(t, err, store.ErrNotFound)
	})
}

// W3: a batch that decides for a caller who is just leaving writes nothing that the caller
// reads; the race detector checks it.
func TestW3ABatchDecidesForWhoLeaves(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		c := committing(t, Config{Committers: 1})
		job := c.Start(t.Context(), c.requests(1))[0].Job
		for name, ask := range map[string]func(context.Context) error{
			"signal": func(ctx context.Context) error {
				_, err := c.Signal(ctx,
					collation.Signal{GUID: journal.GUID{9}, Topic: "t", Key: "k", Code: 200, Payload: []byte(`1`)})
				return err
			},
			"interrupt": func(ctx context.Context) error {
				order := collation.InterruptOrder{Code: 410}
				row, err := order.Row(journal.GUID{8}, job, 0)
				require.NoError(t, err)
				_, err = c.Interrupt(ctx, row, false)
				return err
			},
		} {
			ctx, cancel := context.WithCancel(t.Context())
			c.failing(func(op string) error {
				if op == "load" {
					<-ctx.Done()
				}
				return nil
			})
			left := make(chan error, 1)
			go func() { left <- ask(ctx) }()
			synctest.Wait()
			cancel()
			require.ErrorIs(t, <-left, store.ErrUnknown, name)
			synctest.Wait()
		}
	})
}

// W3, J4: a commit of unknown outcome reaches all callers of its batch. A caller that repeats
// the call finds what it started.
func TestW3UnknownCommit(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		c := committing(t, Config{})
		c.failing(func(op string) error {
			if op == "commit.done" {
				return errors.New("the answer was lost")
			}
			return nil
		})
		for i, o := range c.begin(t.Context(), c.requests(100)) {
			require.ErrorIs(t, o.Err, store.ErrUnknown, "%d", i)
		}
		c.failing(nil)
		for _, o := range c.begin(t.Context(), c.requests(100)) {
			var again *store.AlreadyStartedError
			require.ErrorAs(t, o.Err, &again)
			require.True(t, again.SameFlow && again.SameInput)
		}
	})
}

// C10: while the database cannot be reached, a call makes a few attempts and then reports that
// nothing was begun. It is not held as long as a message.
func TestC10CallsDoNotWaitForLong(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		c := committing(t, Config{})
		c.failing(func(string) error { return errors.New("no route to host") })
		began := time.Now()
		require.ErrorIs(t, c.begin(t.Context(), c.requests(1))[0].Err, store.ErrUnavailable)
		require.Less(t, time.Since(began), 10*time.Second)
		c.failing(nil)
		require.NoError(t, c.begin(t.Context(), c.requests(1))[0].Err)
	})
}

// W9: a version that is no longer active begins nothing. A caller that asks again begins on the
// new one.
func TestW9TheActiveVersionIsHeldTo(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		c := committing(t, Config{})
		_, _, err := c.Flows().Resolve(t.Context(), "one", "")
		require.NoError(t, err)
		deployed(t, c.store, oneWorker("2"))
		require.NoError(t, c.store.Activate(t.Context(), "one", "2", ""))
		require.ErrorIs(t, c.begin(t.Context(), c.requests(1))[0].Err, ErrFlowMoved)
		ref, _, err := c.Flows().Resolve(t.Context(), "one", "")
		require.NoError(t, err)
		require.Equal(t, "2", ref.Version)
		old := c.requests(1)
		old[0].Active = false // this version was asked for
		require.NoError(t, c.begin(t.Context(), old)[0].Err)
	})
}

// W3: half of a batch is reserved for messages and half for calls, of which effects and signals
// have one half and all others the other: no flood starves anything else.
func TestW3LanesAndCallersEachHaveTheirShare(t *testing.T) {
	t.Parallel()
	const batch, all = 20, 100
	one, _ := over(t, &hooked{}, Config{MaxBatch: batch})
	l := one.loops[0]
	type queued struct{ lanes, starts, own, calls int }
	for _, c := range []struct{ has, took queued }{
		{queued{batch, 10, all, all}, queued{10, 0, 5, 5}}, // all flood: running jobs go before new ones
		{queued{batch, 10, 0, all}, queued{10, 0, 0, 10}},
		{queued{batch, 10, all, 0}, queued{10, 0, 10, 0}},
		{queued{3, 0, 0, all}, queued{3, 0, 0, 17}}, // what one does not need the others get
		{queued{0, 0, all, 3}, queued{0, 0, 17, 3}},
		{queued{0, 0, 3, all}, queued{0, 0, 3, 17}},
		{queued{batch, 0, 1, 1}, queued{18, 0, 1, 1}},
		{queued{3, 10, all, all}, queued{3, 7, 5, 5}},
		{queued{1, 0, 0, 0}, queued{1, 0, 0, 0}},
	} {
		var lanes, starts acked
		own, calls := &effect{}, (*effect)(nil)
		for range c.has.lanes {
			l.lanes <- fetched{Delivery: &lanes}
		}
		for range c.has.starts {
			l.starts <- fetched{Delivery: &starts}
		}
		for range c.has.own {
			l.own <- &call{effect: own}
		}
		for range c.has.calls {
			l.calls <- &call{effect: calls}
		}
		require.True(t, l.gather(t.Context()))
		var took queued
		for _, d := range l.taken.deliveries {
			if d.Delivery == transport.Delivery(&lanes) {
				took.lanes++
			} else {
				took.starts++
			}
		}
		for _, x := range l.taken.calls {
			if x.effect == own {
				took.own++
			} else {
				took.calls++
			}
		}
		require.Equal(t, c.took, took, "%+v", c.has)
		for len(l.lanes)+len(l.starts)+len(l.own)+len(l.calls) > 0 {
			require.True(t, l.gather(t.Context()))
		}
	}
	for range 10 { // nor does one of large calls
		l.own <- &call{size: maxBytes / 2}
	}
	l.calls <- &call{}
	require.True(t, l.gather(t.Context()))
	require.Empty(t, l.calls)
	require.Len(t, l.own, 8)
}

// T11: beyond what the queue holds callers wait to be let in, each as long as its context, and not
// longer than the committer. None of these has been sent.
func TestT11CallersWaitToBeLetIn(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		c := committing(t, Config{Committers: 1})
		gate := make(chan struct{})
		c.failing(func(op string) error {
			if op == "commit" {
				<-gate
			}
			return nil
		})
		starts := c.requests(4)
		answers := make([]chan store.Started, len(starts))
		start := func(ctx context.Context, i int) {
			answers[i] = make(chan store.Started, 1)
			go func() { answers[i] <- c.Start(ctx, starts[i:i+1])[0] }()
			synctest.Wait()
		}
		start(t.Context(), 0) // it is in progress
		for range maxCalls {
			gone := &call{}
			gone.place.Store(callLeft)
			c.calls <- gone
		}
		ctx, cancel := context.WithCancel(t.Context())
		start(ctx, 1)
		start(t.Context(), 2)
		cancel()
		left := (<-answers[1]).Err
		require.ErrorIs(t, left, store.ErrUnavailable)
		require.ErrorContains(t, left, "nothing was sent")
		require.Empty(t, answers[2])
		close(gate)
		require.NoError(t, (<-answers[2]).Err)
		c.stop()
		<-c.gone
		start(t.Context(), 3)
		require.ErrorIs(t, (<-answers[3]).Err, ErrClosed)
		for i, there := range []bool{true, false, true, false} {
			_, err := c.store.FindJob(t.Context(), starts[i].Key)
			require.Equal(t, there, err == nil)
		}
	})
}
