package engine_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/flow"
	"github.com/quipu-journal/quipu/internal/engine"
	"github.com/quipu-journal/quipu/internal/membus"
	"github.com/quipu-journal/quipu/internal/store"
	"github.com/quipu-journal/quipu/internal/wire"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/workers"
)

// 3.5: when somebody ends a function with compensations, a job of its own runs them. The engine
// deploys their flow when it is first needed; their input may be larger than that of any start, and
// their parent learns neither of their start nor of their end. If they cannot begin, that is
// reported and tried again, and nothing is lost.
func TestUndoThatCannotBeginIsTriedAgain(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(context.Background())
		defer stop()
		var undone atomic.Int64
		reg := workers.New()
		workers.HandleDurable(reg, "trip.book", func(ctx context.Context, _ any) (any, error) {
			if err := workers.Compensate(ctx, "flight", func(context.Context) error { undone.Add(1); return nil }); err != nil {
				return nil, err
			}
			return workers.Await[any](ctx, "confirmed", 0)
		})
		r := start(t, engine.Config{}, membus.Config{Seed: 1}, nil, reg)
		for name, activity := range map[string]string{
			"trip": `{type: worker, topic: trip.book, input: "${ start.output }"}}`, "brief": "{type: hook, signal: never, key: k}}\nexpire: 1s",
		} {
			r.deploy("flow: " + name + "\nversion: \"1\"\ntransitions: {start: [book]}\nactivities: {start: {type: trigger}, book: " + activity + "\n")
		}
		parent := r.run("trip", "k", `"`+strings.Repeat("<", wire.MaxResult-2)+`"`)
		time.Sleep(time.Minute) // the bubble's clock
		child := collation.UndoID(r.view(parent).Rows[0].GUID)
		key := fmt.Sprintf("k/book.undo-%x", child[:6])
		taken := r.run("brief", key, `{}`)
		r.interrupt(parent, stopped, "")
		r.ended([]journal.JobID{parent})
		told := len(r.entries(parent))
		time.Sleep(10 * time.Minute)
		letters := r.letters()
		require.NotEmpty(t, letters)
		require.Less(t, len(letters), 8, "ever more rarely")
		require.Equal(t, "unbegun", letters[0].Letter.Reason)
		require.Contains(t, letters[0].Letter.Message, child.String())
		require.Contains(t, letters[0].Letter.Message, key)
		require.NoError(t, r.eng.Committer().Act(ctx, store.Action{
			ID: letters[0].ID, Who: "me", Response: &journal.Response{
				Kind: journal.ResponseTerminal, Code: 410, Error: &journal.Failure{Class: "operator"},
			},
		}), "it can be ended")
		r.interrupt(taken, stopped, "")
		r.ended([]journal.JobID{taken})
		for range store.MaxUnclaimed + 1 { // S15: these drop each other, and not the letters of the row
			require.NoError(t, r.eng.Committer().DeadLetter(ctx, collation.DeadLetter{Reason: "undecodable"}, nil))
		}
		time.Sleep(time.Minute)
		for more := true; more; { // the job that has the key
			var err error
			more, err = r.store.Expire(ctx, 100)
			require.NoError(t, err)
		}
		r.ended([]journal.JobID{child})
		require.EqualValues(t, 1, undone.Load())
		v := r.view(child)
		require.Equal(t, []any{journal.JobCompleted, flow.UndoName, "trip.book", key, parent},
			[]any{v.State, v.Flow.Name, v.Flow.Version, v.Key, v.Parent.Job})
		r.proved(child)
		require.Len(t, r.entries(parent), told, "the order, and nothing else")
		strays, err := r.store.DeadLetters(ctx, store.DeadFilter{Reason: "undecodable", Limit: store.MaxPage})
		require.NoError(t, err)
		require.Len(t, strays, store.MaxUnclaimed)
		for _, l := range letters {
			_, err = r.store.Letter(ctx, l.ID)
			require.NoError(t, err)
		}
		stored, err := r.store.Flow(ctx, flow.UndoName, "trip.book")
		require.NoError(t, err)
		built, err := flow.Undo("trip.book")
		require.NoError(t, err)
		require.Equal(t, string(built.Canonical()), string(stored))
	})
}

// A built-in flow that another build has stored stays, and is used.
func TestBuiltinFlowOfAnotherBuild(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		r := start(t, engine.Config{}, membus.Config{}, nil, workers.New())
		ctx := context.Background()
		f, err := flow.Call("trip.book")
		require.NoError(t, err)
		older, err := flow.FromCanonical([]byte(strings.Replace(string(f.Canonical()), `"attempts":3`, `"attempts":4`, 1)))
		require.NoError(t, err)
		ref := journal.FlowRef{Name: flow.CallName, Version: "trip.book", Digest: journal.Digest(older.Digest())}
		_, err = r.store.Deploy(ctx, store.Deployment{Ref: ref, Canonical: older.Canonical()})
		require.NoError(t, err)
		flows := r.eng.Publisher().Flows
		got, _, err := flows.Resolve(ctx, flow.CallName, "trip.book")
		require.NoError(t, err)
		require.Equal(t, ref, got)
		for name, version := range map[string]string{flow.CallName: "", flow.UndoName: "No Topic", "quipu_new": "a"} {
			_, _, err = flows.Resolve(ctx, name, version)
			require.ErrorIs(t, err, store.ErrNotFound, name)
		}
	})
}
