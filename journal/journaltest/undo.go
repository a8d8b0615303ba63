package journaltest

import (
	"encoding/json"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/flow"
	"github.com/quipu-journal/quipu/journal"
)

// orderUndo lets a job order the compensations of its request, and returns the row. That happens
// when anything but the function itself ends the request.
func (b *bench) orderUndo(parent journal.JobID, request journal.GUID, key string) collation.Row {
	b.Helper()
	child := collation.UndoID(request)
	body, err := json.Marshal(&collation.StartOrder{
		Flow: flow.UndoName, Version: "work", Key: key, Input: []byte(`{}`),
		Parent: journal.Parent{Space: b.space(), Job: parent, Activity: "work", DAD: ",0,0", Leg1: request},
	})
	require.NoError(b, err)
	row := collation.Row{
		GUID: child.Start(), Job: child, Kind: journal.MessageStart, DAD: collation.RootDAD, Body: body, NextAt: 1,
		Sender: parent, Undo: true,
	}
	b.altered(parent, func(p *collation.Plan, st *collation.State) {
		row.Origin = p.Entry.Seq
		inserts(row)(p, st)
	})
	return row
}

// undoFlow returns the stored flow of compensations.
func (b *bench) undoFlow() *flow.Flow {
	b.Helper()
	f, err := flow.Undo("work")
	require.NoError(b, err)
	got(b.s.Deploy(b.ctx(), ref(f), f.Canonical(), false))(b)
	b.flows[f.Name()+" "+f.Version()] = f
	return f
}

// expireUndo expires a job that has two jobs of compensations: one that ends, and one that is
// refused. The record that they read stays until both have ended, and no other job is held up.
func expireUndo(b *bench) {
	id := b.requested(one, "k")
	request := b.request(id, "work").GUID
	row, refused := b.orderUndo(id, request, "k/undo"), b.orderUndo(id, guid(7), "k/other")
	b.finish(id, b.now())
	other := b.finished("other", b.now())
	was := b.view(id)
	stays := func(why string) {
		b.Helper()
		require.Zero(b, b.expire(100), why)
		require.Equal(b, journal.JobCompleted, b.view(id).State, why)
		require.NotEmpty(b, b.chain(id, journal.MainChain), why)
	}
	stays("neither has begun")
	require.Equal(b, journal.JobExpired, b.view(other).State)
	require.NoError(b, b.s.Spawn(b.ctx(), &row, b.spawning(b.undoFlow(), &row), nil, b.mode))
	begun := b.view(row.Job).Rows
	require.Len(b, begun, 1)
	require.False(b, begun[0].Undo, "its own function has no compensations (V9)")
	stays("one has begun")
	require.NoError(b, b.s.Refuse(b.ctx(), &refused, nil))
	b.run(row.Job)
	stays("the other one was refused")
	b.answer(row.Job, "call", success(`null`))
	require.Equal(b, journal.JobCompleted, b.view(row.Job).State)
	b.expire(100)
	b.requireTombstone(was)
}
