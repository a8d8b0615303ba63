package engine_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/engine"
	"github.com/quipu-journal/quipu/flow"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/journal/store"
	busmem "github.com/quipu-journal/quipu/transport/memory"
	"github.com/quipu-journal/quipu/wire"
	"github.com/quipu-journal/quipu/workers"
)

// undoes makes a job order the compensations of a function, as if somebody else had ended it
// (3.5), and returns the compensating job.
func (r *rig) undoes(parent journal.JobID, key, input string) journal.JobID {
	r.t.Helper()
	ctx := context.Background()
	c, err := r.store.Committer(ctx, true)
	require.NoError(r.t, err)
	defer c.Close()
	l, err := c.Load(ctx, []store.Want{{Job: parent}}, true)
	require.NoError(r.t, err)
	st := l.States[parent]
	request := collation.RequestGUID(parent.Start(), 1)
	child := collation.UndoID(request)
	body, err := json.Marshal(&collation.StartOrder{
		Flow: flow.UndoName, Version: "trip.book", Key: key, Input: json.RawMessage(input),
		Parent: journal.Parent{Space: "test", Job: parent, Activity: "work", DAD: ",0,0", Leg1: request},
	})
	require.NoError(r.t, err)
	p := &collation.Plan{
		Job: parent, Message: request, Outcome: collation.Handled, Done: true,
		Semaphore: journal.SemaphoreMove{Before: st.Job.Semaphore, After: st.Job.Semaphore},
		Entry: &journal.Entry{
			Space: "test", Job: parent, Generation: 1, Seq: st.Job.Head.Seq + 1, Kind: journal.KindOperator, GUID: request,
			Operator: &journal.Operator{Action: "test", Who: "test"}, Time: int64(st.Now),
		},
		Insert: []collation.Row{{
			GUID: child.Start(), Job: child, Kind: journal.MessageStart, DAD: collation.RootDAD, Body: body,
			NextAt: st.Now, Origin: st.Job.Head.Seq + 1, Sender: parent, Undo: true,
		}},
	}
	require.NoError(r.t, c.Commit(ctx, []store.Chained{store.Chain(&st.Job, p)}))
	return child
}

// undoing is a rig in which nobody serves the function, with a job that sleeps.
func undoing(t *testing.T) (r *rig, parent journal.JobID) {
	r = start(t, engine.Config{}, busmem.Config{Seed: 1}, nil, workers.New())
	r.deploy(`
flow: nap
version: "1"
activities:
  start: {type: trigger}
  nap: {type: hook, sleep: 1000h}
transitions: {start: [nap]}
`)
	return r, r.run("nap", "k", `{}`)
}

// asking is the request of the only worker of a job that has begun.
func (r *rig) asking(id journal.JobID) collation.Row {
	r.t.Helper()
	v := r.view(id)
	require.Len(r.t, v.Rows, 1)
	require.Equal(r.t, journal.MessageRequest, v.Rows[0].Kind)
	return v.Rows[0]
}

// entered counts the entries of a job, once nothing happens any more.
func (r *rig) entered(id journal.JobID) int {
	time.Sleep(time.Minute) // the bubble's clock
	return len(r.entries(id))
}

// 3.5: the engine deploys the flow of compensations when it is first needed. Their input may be
// as large as that of a function with its surroundings. Their parent learns neither of their
// start nor of their end.
func TestUndoBegins(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		r, parent := undoing(t)
		before := r.entered(parent)
		input := `{"input":"` + strings.Repeat("<", wire.MaxResult) + `"}`
		child := r.undoes(parent, "k/work.undo", input)
		require.Equal(t, before+1, r.entered(parent), "the order, and nothing else")
		require.Equal(t, input, string(r.asking(child).Body))
		require.Equal(t, "trip.book", r.asking(child).Topic)
		v := r.view(child)
		require.Equal(t, []string{flow.UndoName, "trip.book", "k/work.undo"}, []string{v.Flow.Name, v.Flow.Version, v.Key})
		require.Equal(t, parent, v.Parent.Job)
		require.Equal(t, input, string(r.entries(child)[0].Input), "in its canonical form")
		r.interrupt(child, stopped, "")
		r.ended([]journal.JobID{child})
		require.Equal(t, before+1, r.entered(parent))
		require.Empty(t, r.letters())
		stored, err := r.store.Flow(context.Background(), flow.UndoName, "trip.book")
		require.NoError(t, err)
		built, err := flow.Undo("trip.book")
		require.NoError(t, err)
		require.Equal(t, string(built.Canonical()), string(stored))
	})
}

// Compensations that cannot begin are reported and tried again; nothing is lost.
func TestUndoThatCannotBeginIsTriedAgain(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		r, parent := undoing(t)
		r.deploy(`
flow: brief
version: "1"
expire: 1s
activities:
  start: {type: trigger}
  wait: {type: hook, signal: never, key: k}
transitions: {start: [wait]}
`)
		ctx, stop := context.WithCancel(context.Background())
		defer stop()
		taken := r.run("brief", "taken", `{}`)
		child := r.undoes(parent, "taken", `{}`)
		time.Sleep(10 * time.Minute) // the bubble's clock
		letters := r.letters()
		require.NotEmpty(t, letters)
		require.Less(t, len(letters), 8, "ever more rarely")
		require.Equal(t, "undo", letters[0].Letter.Reason)
		require.Contains(t, letters[0].Letter.Message, child.String())
		require.Contains(t, letters[0].Letter.Message, "taken")
		require.NoError(t, r.eng.Committer().Act(ctx, store.Action{
			ID: letters[0].ID, Who: "me", Response: &journal.Response{Kind: journal.ResponseTerminal, Code: 410, Error: &journal.Failure{Class: "operator"}},
		}), "it can be ended")
		r.interrupt(taken, stopped, "")
		r.ended([]journal.JobID{taken})
		for range store.MaxStrays + 1 { // S15: these drop each other, and not the letters of the row
			require.NoError(t, r.eng.Committer().DeadLetter(ctx, collation.DeadLetter{Reason: "undecodable"}, nil))
		}
		go func() { _ = engine.Retain(ctx, r.store, nil, r.eng.Config().Logger) }()
		time.Sleep(time.Hour)
		r.asking(child)
		require.Equal(t, "taken", r.view(child).Key)
		dropped, err := r.store.DroppedLetters(ctx)
		require.NoError(t, err)
		require.Equal(t, int64(1), dropped)
		for _, l := range letters {
			_, err = r.store.Letter(ctx, l.ID)
			require.NoError(t, err)
		}
	})
}

// A built-in flow that another build has stored stays, and is used.
func TestBuiltinFlowOfAnotherBuild(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		r, _ := undoing(t)
		ctx := context.Background()
		f, err := flow.Call("trip.book")
		require.NoError(t, err)
		older, err := flow.FromCanonical([]byte(strings.Replace(string(f.Canonical()), `"attempts":3`, `"attempts":4`, 1)))
		require.NoError(t, err)
		ref := journal.FlowRef{Name: flow.CallName, Version: "trip.book", Digest: journal.Digest(older.Digest())}
		_, err = r.store.Deploy(ctx, ref, older.Canonical(), false)
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
