package journaltest

import (
	"encoding/json"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/flow"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/journal/store"
)

// generationLate: a late message ends when it is handled; Expire removes only what the job left.
func generationLate(b *bench) {
	was := b.tombstone("k")
	id := b.start(b.deploy(one), "k")
	before := b.view(id)
	require.Equal(b, collation.NewJobID(b.space(), "k", 2), id)
	require.Equal(b, []any{int64(2), journal.JobOpen, collation.Never, collation.Micros(0), false}, []any{before.Generation, before.State, before.ExpiresAt, before.Closed, before.Ended})
	require.Equal(b, []journal.JobID{id, id}, []journal.JobID{got(b.s.FindJob(b.ctx(), "k"))(b), b.look(store.Want{Key: "k"}).Holders["k"].ID})
	l := b.look(store.Want{Job: was.ID, Row: was.ID.Start(), Receipt: was.ID.Start()}, store.Want{Job: id})
	require.Equal(b, map[journal.JobID]bool{was.ID: true}, l.Tombstones, "it is known that there was one")
	require.Len(b, l.States, 1)
	for _, c := range []store.Committer{b.c, b.committer()} { // nobody holds the tombstone
		l := b.locked(c, store.Want{Job: was.ID})
		require.Equal(b, []any{true, 0}, []any{l.Tombstones[was.ID], len(l.Busy)})
	}
	require.NoError(b, b.c.Rollback(b.ctx()))
	late := b.interruptOf(was.ID, "x")
	_, _, err := b.s.Interrupt(b.ctx(), late, b.mode)
	require.ErrorIs(b, err, store.ErrNotFound)
	b.altered(id, inserts(late)) // as from a job that held its id
	b.expire(100)
	require.Equal(b, late.GUID, b.stored(id, keyOf(&late)).GUID)
	b.discard(keyOf(&late))
	require.Nil(b, b.stored(id, keyOf(&late)))
	_, err = b.s.Job(b.ctx(), was.ID)
	require.ErrorIs(b, err, store.ErrNotFound)
	require.Equal(b, map[journal.JobID]bool{was.ID: true, id: false}, got(b.s.Ended(b.ctx(), []journal.JobID{was.ID, id}))(b),
		"who waits for the first is told that it is over")
	after := b.view(id)
	require.Equal(b, []any{before.Rows, before.Instances}, []any{after.Rows, after.Instances})
	b.listedOnce("k", id)
}

// generationRest begins the second generation while most rows of the first still exist.
func generationRest(b *bench) {
	was := b.heavy("k")
	require.True(b, got(b.s.Expire(b.ctx(), 1))(b))
	second := b.heavy("k")
	require.Equal(b, int64(2), second.Generation)
	for range 3 {
		got(b.s.Expire(b.ctx(), 1))(b)
	}
	b.expire(2)
	b.requireTombstone(second)
	require.Empty(b, b.letters(true))
	id := b.requested(one, "k")
	before := b.view(id)
	require.Equal(b, int64(3), before.Generation)
	b.expire(1)
	require.Equal(b, before, b.view(id))
	left := b.interruptOf(was.ID, "0")
	require.Nil(b, b.stored(id, keyOf(&left)))
}

func generationFloor(b *bench) {
	was := b.heavy("k")
	b.tombstone("gone")
	f := b.deploy(one)
	b.expire(100)
	second := b.start(f, "k")
	clock, ok := b.s.Store.(Clock)
	if !ok {
		return // the test cannot wait for TombstoneAge
	}
	known := func() bool { return b.look(store.Want{Job: was.ID}).Tombstones[was.ID] }
	for range 2 {
		clock.Advance(store.TombstoneAge + time.Second)
		b.expire(1)
		require.True(b, known(), "its history is there")
	}
	require.False(b, got(b.s.Retire(b.ctx(), nil))(b))
	clock.Advance(store.TombstoneAge + time.Second)
	b.expire(1)
	require.False(b, known())
	for key, generation := range map[string]int64{"gone": 2, "new": 2} {
		require.Equal(b, collation.NewJobID(b.space(), key, generation), b.start(f, key), key)
	}
	require.Equal(b, int64(2), b.view(second).Generation)
}

// orderUndo lets a job order the compensations of its request, and returns the row. That happens
// when anything but the function itself ends the request.
func (b *bench) orderUndo(parent journal.JobID, request journal.GUID, key string) collation.Row {
	b.Helper()
	child := collation.UndoID(request)
	order := got(json.Marshal(&collation.StartOrder{
		Flow: flow.UndoName, Version: "work", Key: key, Input: []byte(`{}`),
		Parent: journal.Parent{Space: b.space(), Job: parent, Activity: "work", DAD: ",0,0", Leg1: request},
	}))(b)
	row := collation.Row{
		GUID: child.Start(), Job: child, Kind: journal.MessageStart, DAD: collation.RootDAD, Body: order, NextAt: 1, Sender: parent, Undo: true,
	}
	b.altered(parent, inserts(row))
	row.Origin = b.view(parent).Head.Seq
	return row
}

// undoFlow returns the stored flow of compensations.
func (b *bench) undoFlow() *flow.Flow {
	b.Helper()
	f := got(flow.Undo("work"))(b)
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
	other, was := b.finished("other", b.now()), b.view(id)
	stays := func(why string) {
		b.Helper()
		require.Zero(b, b.expire(100), why)
		require.Equal(b, journal.JobCompleted, b.view(id).State, why)
	}
	stays("neither has begun")
	b.is(journal.JobExpired, other)
	require.NoError(b, b.spawn(&row, nil))
	require.False(b, b.view(row.Job).Rows[0].Undo, "its own function has no compensations (V9)")
	stays("one has begun")
	require.NoError(b, b.s.Refuse(b.ctx(), &refused, nil))
	b.run(row.Job)
	stays("the other one was refused")
	b.answer(row.Job, "call", success(`null`))
	b.is(journal.JobCompleted, row.Job)
	b.expire(100)
	b.requireTombstone(was)
}
