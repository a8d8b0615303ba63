package e2e

import (
	"context"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu"
	"github.com/quipu-journal/quipu/effects"
	"github.com/quipu-journal/quipu/internal/below"
	"github.com/quipu-journal/quipu/internal/store"
	"github.com/quipu-journal/quipu/internal/testkit/devtest"
	"github.com/quipu-journal/quipu/view"
	"github.com/quipu-journal/quipu/workers"
)

// 3.5, E4: a function is ended by somebody else while a call of its is outside.
// What that call does can only be taken back after it: the compensations begin when
// the run has ended or its lease is out, as another run of the call would.
func TestSagaUndoneAfterTheCallUnderWay(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(*env, *quipu.Runtime, quipu.Job){
		"interrupt": func(e *env, rt *quipu.Runtime, job quipu.Job) {
			_, err := rt.Interrupt(e.t.Context(), job)
			require.NoError(e.t, err)
		},
		"within": func(*env, *quipu.Runtime, quipu.Job) {},
	} {
		t.Run(name, func(t *testing.T) {
			inAMode(t, func(t *testing.T, e *env) {
				var mu sync.Mutex
				var happened []string
				happens := func(what string) {
					mu.Lock()
					defer mu.Unlock()
					happened = append(happened, what)
				}
				outside := make(chan struct{})
				reg := workers.New()
				workers.HandleDurable(reg, "fn", func(ctx context.Context, in order) (map[string]string, error) {
					err := workers.Compensate(ctx, "room", func(context.Context) error { happens("cancel"); return nil })
					if err != nil {
						return nil, err
					}
					return effects.Do(ctx, "room", func(ctx context.Context) (map[string]string, error) {
						close(outside)
						<-ctx.Done()    // the run learns that it is lost
						happens("book") // what was asked for is done all the same
						return nil, context.Cause(ctx)
					}, effects.Idempotent)
				})
				rt, _ := e.run(reg)
				text := oneStep("fn")
				if name == "within" {
					text = replaced(text, "retry:", "within: 4s, retry:")
				}
				e.Deploy(rt, text)
				job := e.Start(rt, "one", "order-1", order{ID: "order-1"})
				devtest.Await(t, "the call outside", outside)
				end(e, rt, job)
				_, err := e.Wait(rt, job)
				require.Error(t, err)
				e.eventually("the end of the job that undoes", func() bool {
					page, err := rt.Jobs(t.Context(), quipu.JobFilter{})
					return err == nil && len(page.Jobs) == 2 && page.Jobs[0].State.Closed() &&
						page.Jobs[1].State.Closed()
				})
				e.eventually("the end of the call", func() bool {
					mu.Lock()
					defer mu.Unlock()
					return slices.Contains(happened, "book")
				})
				mu.Lock()
				defer mu.Unlock()
				require.Equal(t, []string{"book", "cancel"}, happened)
				foundWhereItRan(t, rt, job)
				e.Verify()
			})
		})
	}
}

// foundWhereItRan finds the compensation of a job by its key: both it and the job that
// undid it have it, and only the other ran it.
func foundWhereItRan(t *testing.T, rt *quipu.Runtime, job quipu.Job) {
	t.Helper()
	all, err := below.Of(rt).JobEffects(t.Context(), job.ID)
	require.NoError(t, err)
	compensations := 0
	for i := range all {
		if all[i].Class != store.ClassUndo {
			continue
		}
		compensations++
		f, err := rt.Effect(t.Context(), all[i].Key)
		require.NoError(t, err)
		require.Equal(t, view.EffectCompleted, f.State, f.Name)
		require.NotEqual(t, job.ID, f.Job)
	}
	require.Equal(t, 1, compensations)
}
