package engine_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/effects"
	"github.com/quipu-journal/quipu/internal/engine"
	"github.com/quipu-journal/quipu/internal/membus"
	"github.com/quipu-journal/quipu/internal/store"
	"github.com/quipu-journal/quipu/internal/traffic"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/transport"
	"github.com/quipu-journal/quipu/workers"
)

// chain is a flow of n steps of topic t.work, each of which adds 1.
func chain(n int) string {
	var b strings.Builder
	fmt.Fprintf(&b, "flow: chain\nversion: \"1\"\noutput: {got: \"${ s%d.output }\"}\nactivities:\n  start: {type: trigger}\n", n)
	for i := 1; i <= n; i++ {
		from := fmt.Sprintf("s%d.output", i-1)
		if i == 1 {
			from = "start.output.n"
		}
		fmt.Fprintf(&b, "  s%d: {type: worker, topic: t.work, input: \"${ %s }\"}\n", i, from)
	}
	b.WriteString("transitions:\n  start: [s1]\n")
	for i := 1; i < n; i++ {
		fmt.Fprintf(&b, "  s%d: [s%d]\n", i, i+1)
	}
	return b.String()
}

// carried are the messages by kind and way, as far as there are any.
func carried(c *traffic.Counts) map[string]int64 {
	got := map[string]int64{}
	c.Each(func(kind journal.MessageKind, way traffic.Way, n int64) {
		if n > 0 {
			got[string(kind)+" "+way.String()] = n
		}
	})
	return got
}

// L2, L4: a job of early steps commits once, with the entries that it has otherwise. Nothing carries
// its messages (O4).
func TestL4StepsOfEarlyHandlersShareTheCommitOfTheirCause(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		var commits atomic.Int64
		reg := workers.New()
		workers.Handle(reg, "t.work", func(_ context.Context, n int) (int, error) { return n + 1, nil }, workers.Early())
		var went traffic.Counts
		r := start(t, withEarly(engine.Config{Traffic: &went}), membus.Config{}, func(op string) error {
			if op == "commit" {
				commits.Add(1)
			}
			return nil
		}, reg)
		r.deploy(chain(10))
		synctest.Wait() // the workers serve their topics
		r.completed([]journal.JobID{r.publish("chain", "warm", `{"n": 1}`)}, `{"got": 11}`)
		before := commits.Load()
		id := r.publish("chain", "k", `{"n": 5}`)
		require.Equal(t, journal.JobCompleted, r.view(id).State, "it has ended with its start")
		require.EqualValues(t, 1, commits.Load()-before)
		r.completed([]journal.JobID{id}, `{"got": 15}`)
		r.proved(id)
		require.Len(t, r.entries(id), 12)
		require.Equal(t, map[string]int64{
			"leg1 folded": 20, "request folded": 19, "response folded": 19,
			"request memory": 1, "response memory": 1, // of the first run: the topic is not known to be quick
		}, carried(&went))
	})
}

// single is a flow of one step, which is early.
const single = `
flow: single
version: "1"
output: {got: "${ work.output }"}
activities:
  start: {type: trigger}
  work: {type: worker, topic: t.work, input: "${ start.output.n }", retry: {attempts: 1}}
transitions:
  start: [work]
`

// failing makes the next commits fail, as many as are asked for.
type failing struct {
	next    atomic.Int64
	err     error
	commits atomic.Int64
}

func (f *failing) fault(op string) error {
	if op != "commit" {
		return nil
	}
	f.commits.Add(1)
	if f.next.Add(-1) >= 0 {
		return f.err
	}
	return nil
}

// L6: a cause that conflicts once: its run is stopped once, its effect is never called, and its slot is
// free again. The attempt that commits has a run of its own.
func TestL6ARunWhoseCauseConflictsIsDropped(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		f := &failing{err: store.ErrLost}
		var runs, called, stopped atomic.Int64
		reg := workers.New()
		workers.Handle(reg, "t.work", func(ctx context.Context, n int) (int, error) {
			runs.Add(1)
			_, err := effects.Do(ctx, "outside", func(context.Context) (int, error) {
				called.Add(1)
				return n, nil
			})
			if errors.Is(context.Cause(ctx), workers.ErrUncommitted) {
				stopped.Add(1)
				require.ErrorIs(t, err, workers.ErrUncommitted)
			}
			return n + 1, err
		}, workers.Early(), workers.Concurrency(2))
		r := start(t, withEarly(engine.Config{}), membus.Config{}, f.fault, reg)
		r.deploy(single)
		synctest.Wait() // the workers serve their topics
		f.next.Store(1)
		id := r.publish("single", "k", `{"n": 5}`)
		r.completed([]journal.JobID{id}, `{"got": 6}`)
		require.EqualValues(t, 2, runs.Load())
		require.EqualValues(t, 1, stopped.Load())
		require.EqualValues(t, 1, called.Load())
		r.proved(id)
		id = r.publish("single", "again", `{"n": 6}`)
		synctest.Wait()
		require.Zero(t, r.bus.Len(transport.ToWork("t.work")), "the slot of the run is free")
		r.completed([]journal.JobID{id}, `{"got": 7}`)
	})
}

// L6: of a cause that is refused for good nothing follows, neither what a run reads nor what it does.
func TestL6NothingFollowsFromACauseThatIsRefused(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		f := &failing{err: fmt.Errorf("%w: as told", store.ErrRejected)}
		var runs, called atomic.Int64
		reg := workers.New()
		workers.Handle(reg, "t.work", func(ctx context.Context, n int) (int, error) {
			runs.Add(1)
			return effects.Do(ctx, "outside", func(context.Context) (int, error) {
				called.Add(1)
				return n, nil
			})
		}, workers.Early())
		r := start(t, withEarly(engine.Config{}), membus.Config{}, f.fault, reg)
		r.deploy(single)
		synctest.Wait() // the workers serve their topics
		f.next.Store(1000)
		out := r.eng.Committer().Start(t.Context(), []store.Start{r.asks("single", "k", `{"n": 5}`)})
		require.ErrorIs(t, out[0].Err, store.ErrRejected)
		f.next.Store(0)
		time.Sleep(time.Minute) // the bubble's clock
		require.Positive(t, runs.Load(), "it began")
		require.Zero(t, called.Load(), "L7: its effect waited for the commit")
		_, err := r.store.FindJob(t.Context(), "k")
		require.ErrorIs(t, err, store.ErrNotFound)
	})
}

// L4: a handler that hangs delays a batch by no more than the bound, and does not hold up the quick
// one beside it.
func TestL4AHangingHandlerDelaysNoBatch(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		var hangs atomic.Bool
		reg := workers.New()
		workers.Handle(reg, "t.work", func(_ context.Context, n int) (int, error) {
			if hangs.Load() {
				time.Sleep(time.Second)
			}
			return n + 1, nil
		}, workers.Early())
		workers.Handle(reg, "t.quick", func(_ context.Context, n int) (int, error) { return n + 1, nil }, workers.Early())
		r := start(t, withEarly(engine.Config{}), membus.Config{}, nil, reg)
		r.deploy(chain(3))
		r.deploy(strings.NewReplacer("chain", "quick", "t.work", "t.quick").Replace(chain(3)))
		synctest.Wait() // the workers serve their topics
		r.completed([]journal.JobID{r.publish("chain", "warm", `{"n": 1}`)}, `{"got": 4}`)
		r.completed([]journal.JobID{r.publish("quick", "warm quick", `{"n": 1}`)}, `{"got": 4}`)
		hangs.Store(true)
		began := time.Now()
		out := r.eng.Committer().Start(t.Context(), []store.Start{
			r.asks("chain", "slow", `{"n": 1}`), r.asks("quick", "fast", `{"n": 1}`),
		})
		require.LessOrEqual(t, time.Since(began), 300*time.Microsecond)
		for _, o := range out {
			require.NoError(t, o.Err)
		}
		r.completed([]journal.JobID{out[1].Job}, `{"got": 4}`)
		require.Less(t, time.Since(began), time.Second)
		r.completed([]journal.JobID{out[0].Job}, `{"got": 4}`)
		r.proved(out[0].Job, out[1].Job)
	})
}

const family = `
flow: family
version: "1"
output: {got: "${ a.output.got + b.output.got }"}
activities:
  start: {type: trigger}
  a: {type: await, flow: single, input: {n: 1}}
  b: {type: await, flow: single, input: {n: 2}}
  both: {type: worker, topic: t.work, input: 1}
transitions:
  start: [a, b]
  a: [both]
  b: [both]
`

// L2: children begin and end in the batch of their cause, and so do their outcomes.
func TestL2ChildrenShareTheCommitOfTheirCause(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		f := &failing{}
		reg := workers.New()
		workers.Handle(reg, "t.work", func(_ context.Context, n int) (int, error) { return n + 1, nil }, workers.Early())
		r := start(t, withEarly(engine.Config{}), membus.Config{}, f.fault, reg)
		r.deploy(single)
		r.deploy(family)
		synctest.Wait() // the workers serve their topics
		r.completed([]journal.JobID{r.publish("family", "warm", `{}`)}, `{"got": 5}`)
		before := f.commits.Load()
		id := r.publish("family", "k", `{}`)
		require.Equal(t, journal.JobCompleted, r.view(id).State, "it has ended with its start")
		require.EqualValues(t, 1, f.commits.Load()-before)
		r.proved(id)
		all, err := r.store.Jobs(t.Context(), store.JobFilter{})
		require.NoError(t, err)
		require.Len(t, all.Jobs, 6, "two jobs, with two children each")
		for _, one := range all.Jobs {
			require.Equal(t, journal.JobCompleted, one.State)
			r.proved(one.ID)
		}
	})
}

// L5: the answer of a run that is not the holder of the request does not count before the commit.
func TestL5TheAnswerOfAnotherHolderIsNotTaken(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		for name, honest := range map[string]bool{"the holder": true, "another": false} {
			reg := workers.New()
			workers.Handle(reg, "t.work", func(_ context.Context, n int) (int, error) { return n + 1, nil }, workers.Early())
			cfg := engine.Config{Local: handsOver{early: true, renames: !honest}}
			f := &failing{}
			r := start(t, cfg, membus.Config{}, f.fault, reg)
			r.deploy(chain(3))
			synctest.Wait()
			r.completed([]journal.JobID{r.publish("chain", "warm", `{"n": 1}`)}, `{"got": 4}`)
			before := f.commits.Load()
			r.completed([]journal.JobID{r.publish("chain", "k", `{"n": 1}`)}, `{"got": 4}`)
			require.Equal(t, honest, f.commits.Load() == before+1, name)
			r.close()
		}
	})
}

// L6: a run whose cause does not commit is stopped, although it asks for nothing.
func TestL6ARunIsStoppedOnce(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		f := &failing{err: store.ErrLost}
		var runs, stopped atomic.Int64
		reg := workers.New()
		workers.Handle(reg, "t.work", func(ctx context.Context, n int) (int, error) {
			if runs.Add(1) > 1 {
				return n + 1, nil
			}
			<-ctx.Done()
			require.ErrorIs(t, context.Cause(ctx), workers.ErrUncommitted)
			stopped.Add(1)
			return 0, context.Cause(ctx)
		}, workers.Early())
		r := start(t, withEarly(engine.Config{}), membus.Config{}, f.fault, reg)
		r.deploy(single)
		synctest.Wait() // the workers serve their topics
		f.next.Store(1)
		r.completed([]journal.JobID{r.publish("single", "k", `{"n": 5}`)}, `{"got": 6}`)
		require.EqualValues(t, 1, stopped.Load())
		require.EqualValues(t, 2, runs.Load())
	})
}

// L7: the effects of an early run wait for its cause, whichever loop carries them, and find its request.
func TestL7EffectsOfAnEarlyRunFindTheirRequest(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		var runs, called atomic.Int64
		reg := workers.New()
		workers.Handle(reg, "t.work", func(ctx context.Context, n int) (int, error) {
			if runs.Add(1); n == 0 {
				return 0, nil
			}
			return effects.Do(ctx, "outside", func(context.Context) (int, error) {
				called.Add(1)
				return n, nil
			})
		}, workers.Early())
		r := start(t, withEarly(engine.Config{}), membus.Config{}, nil, reg)
		r.deploy(single)
		synctest.Wait() // the workers serve their topics
		const jobs = 30
		for n := range jobs {
			key := fmt.Sprint("quick ", n) // the batch waits for the next run of the topic
			r.completed([]journal.JobID{r.publish("single", key, `{"n": 0}`)}, `{"got": 0}`)
			r.completed([]journal.JobID{r.publish("single", fmt.Sprint("k", n), `{"n": 7}`)}, `{"got": 7}`)
		}
		require.EqualValues(t, 2*jobs, runs.Load(), "none had to run again")
		require.EqualValues(t, jobs, called.Load())
	})
}
