package engine_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/effects"
	"github.com/quipu-journal/quipu/internal/engine"
	"github.com/quipu-journal/quipu/internal/membus"
	"github.com/quipu-journal/quipu/internal/store"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/workers"
)

// stepper is a registry with topic t.work, each of whose runs adds 1 by one effect.
func stepper(body func(context.Context), class effects.Class, options ...workers.Option) *workers.Registry {
	reg := workers.New()
	workers.Handle(reg, "t.work", func(ctx context.Context, n int) (int, error) {
		return effects.Do(ctx, "add", func(ctx context.Context) (int, error) {
			body(ctx)
			return n + 1, nil
		}, class)
	}, options...)
	return reg
}

// L7, E4: the start of an early run's first effect commits with its cause, and an outcome with the response
// of its run. So a step with an effect costs one commit; one that is not early costs two, unless the
// effect has no start.
func TestE4EffectsShareTheCommitsOfTheirMessages(t *testing.T) {
	for _, class := range []effects.Class{effects.Guarded, effects.Idempotent, effects.Pure} {
		starts := int64(3)
		if class == effects.Pure {
			starts = 0
		}
		for name, x := range map[string]struct {
			cfg     engine.Config
			options []workers.Option
			commits int64
		}{
			"early":     {withEarly(engine.Config{}), []workers.Option{workers.Early()}, 1 + 3},
			"not early": {withLocal(engine.Config{}), nil, 1 + 3 + starts},
		} {
			t.Run(name+" "+string(class), func(t *testing.T) {
				inBubble(t, func(t *testing.T) {
					f := &failing{}
					var called atomic.Int64
					reg := stepper(func(context.Context) { called.Add(1) }, class, x.options...)
					r := start(t, x.cfg, membus.Config{}, f.fault, reg)
					r.deploy(chain(3))
					synctest.Wait() // the workers serve their topics
					r.completed([]journal.JobID{r.publish("chain", "warm", `{"n": 1}`)}, `{"got": 4}`)
					before := f.commits.Load()
					id := r.publish("chain", "k", `{"n": 5}`)
					r.completed([]journal.JobID{id}, `{"got": 8}`)
					require.Equal(t, x.commits, f.commits.Load()-before)
					require.EqualValues(t, 6, called.Load())
					r.proved(id)
				})
			})
		}
	}
}

// J8: an outcome and the response of its run that do not get through together are recorded one after the
// other. What was done outside is done once.
func TestJ8WhatDoesNotCommitTogetherCommitsApart(t *testing.T) {
	for _, err := range []error{
		store.ErrLost, store.ErrBusy, store.ErrUnavailable, store.ErrUnknown, store.ErrRejected,
	} {
		for _, after := range []bool{false, true} { // whether the commit has been done
			for _, class := range []effects.Class{effects.Guarded, effects.Pure} {
				t.Run(fmt.Sprint(err, " after ", after, " ", class), func(t *testing.T) {
					inBubble(t, func(t *testing.T) {
						var next, called atomic.Int64
						var requests []string
						op := map[bool]string{false: "commit", true: "commit.done"}[after]
						reg := stepper(func(ctx context.Context) {
							called.Add(1)
							requests = append(requests, workers.Info(ctx).Request)
							next.Store(1)
						}, class)
						r := start(t, withLocal(engine.Config{}), membus.Config{}, func(is string) error {
							if is == op && next.Add(-1) == 0 {
								return fmt.Errorf("%w: as told", err)
							}
							return nil
						}, reg)
						r.deploy(chain(2))
						synctest.Wait() // the workers serve their topics
						id := r.publish("chain", "k", `{"n": 5}`)
						r.completed([]journal.JobID{id}, `{"got": 7}`)
						require.EqualValues(t, 2, called.Load())
						for _, name := range requests {
							request, _ := journal.ParseGUID(name)
							rows, err := r.store.Effects(t.Context(), id, request)
							require.NoError(t, err)
							require.Len(t, rows, 1)
							require.Equal(t, store.EffectCompleted, rows[0].State)
						}
						r.proved(id)
					})
				})
			}
		}
	}
}

// E4: an outcome does not wait longer for the end of its handler than a commit takes.
func TestE4AnOutcomeDoesNotWaitForASlowHandler(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		reg := workers.New()
		var r *rig
		workers.Handle(reg, "t.work", func(ctx context.Context, n int) (int, error) {
			got, err := effects.Do(ctx, "add", func(context.Context) (int, error) { return n + 1, nil })
			time.Sleep(10 * time.Millisecond)
			at := workers.Info(ctx)
			job, _ := journal.ParseJobID(at.Job)
			request, _ := journal.ParseGUID(at.Request)
			rows, failed := r.store.Effects(ctx, job, request)
			require.NoError(t, failed)
			require.Len(t, rows, 1)
			require.Equal(t, store.EffectCompleted, rows[0].State)
			return got, err
		}, workers.Early())
		r = start(t, withEarly(engine.Config{}), membus.Config{}, nil, reg)
		r.deploy(chain(2))
		synctest.Wait() // the workers serve their topics
		r.completed([]journal.JobID{r.publish("chain", "k", `{"n": 5}`)}, `{"got": 7}`)
	})
}

// L6, L7: a start that rides with a cause which conflicts is not recorded, and its call is not made. The
// run of the attempt that commits makes it.
func TestL6AStartIsLostWithItsCause(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		f := &failing{err: store.ErrLost}
		var called atomic.Int64
		reg := stepper(func(context.Context) { called.Add(1) }, effects.Guarded, workers.Early())
		r := start(t, withEarly(engine.Config{}), membus.Config{}, f.fault, reg)
		r.deploy(single)
		synctest.Wait() // the workers serve their topics
		r.completed([]journal.JobID{r.publish("single", "warm", `{"n": 1}`)}, `{"got": 2}`)
		f.next.Store(1)
		id := r.publish("single", "k", `{"n": 5}`)
		r.completed([]journal.JobID{id}, `{"got": 6}`)
		require.EqualValues(t, 2, called.Load())
		r.proved(id)
	})
}
