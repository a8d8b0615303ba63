package observer_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/telemetry/observer"
)

// empty panics at every call: it has no Observer in it.
type empty struct{ observer.Observer }

// nils returns nothing that can be used.
type nils struct{ observer.Nop }

func (nils) Attempt(context.Context, string, observer.Subject) (context.Context, func(error, []observer.Span)) {
	return nil, nil
}
func (nils) Ask(observer.Source) func() { return nil }

func TestAnObserverThatPanicsIsDoneWithout(t *testing.T) {
	t.Parallel()
	for _, o := range []observer.Observer{empty{}, nils{}} {
		var calls []string
		g := observer.Guard(o, func(call, panicked string) {
			require.NotEmpty(t, panicked)
			calls = append(calls, call)
		})
		ctx, end := g.Attempt(t.Context(), "", observer.Subject{})
		require.Equal(t, t.Context(), ctx)
		end(errors.New("x"), nil)
		g.Ask(nil)()
		require.Empty(t, g.Trace(ctx)+g.Under(observer.Message{}, 1))
		g.Told(observer.Message{})
		require.False(t, g.Traces() || g.Sampled(journal.JobID{}, ""))
		require.NoError(t, g.Trees(ctx))
		g.Count("x", 1)
		g.Observe("x", 1)
		if o == (nils{}) {
			require.Empty(t, calls)
			continue
		}
		require.Equal(t, []string{"Attempt", "Ask", "Trace", "Under", "Told", "Traces", "Sampled", "Trees", "Count", "Observe"}, calls)
	}
}
