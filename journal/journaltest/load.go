package journaltest

import (
	"context"
	"errors"
	"fmt"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/journal/store"
)

var loads = map[string]func(*bench){
	"what was asked for, and nothing else (J2)":          loadAsked,
	"what is missing later comes by More (J2)":           loadMore,
	"held jobs are left out without wait (J3)":           loadBusy,
	"held jobs are waited for with wait (J3)":            loadWait,
	"a wait ends with its context":                       loadCancelled,
	"jobs are locked in one order (J3)":                  loadOrder,
	"a rollback leaves no trace":                         loadRollback,
	"a receipt with open steps brings its response (C5)": loadResponse,
	"unknown jobs are absent":                            loadUnknown,
	"results come out of their entries (J7)":             loadResults,
	"an output sent by digest is a result (E6)":          loadPayload,
}

func loadAsked(b *bench) {
	id := b.start(b.deploy(one), "k")
	row := b.row(id, journal.MessageStart, "start")
	absent := collation.InstanceKey{Activity: "work", DAD: ",0,0"}
	trigger := collation.InstanceKey{Activity: "start", DAD: collation.RootDAD}
	l, err := b.c.Load(b.ctx(), []store.Want{
		{Job: id, Receipt: id.Start(), Row: id.Start(), Instances: []collation.InstanceKey{trigger, absent}},
		{Job: id, Receipt: journal.GUID{9}, Row: journal.GUID{8}, Results: []collation.InstanceKey{trigger, absent}},
	}, true)
	require.NoError(b, err)
	require.Empty(b, l.Busy)
	require.Empty(b, l.Tombstones)
	require.Len(b, l.States, 1)
	st := l.States[id]
	require.Positive(b, l.Now)
	require.Equal(b, l.Now, st.Now)
	require.Equal(b, b.view(id).JobSummary.Job, st.Job)
	require.False(b, st.AllRows)
	require.Equal(b, map[collation.InstanceKey]*collation.Instance{
		trigger: {Ledger: collation.TriggerBorn, ResultSeq: 1, Code: collation.CodeOK}, absent: nil,
	}, st.Instances)
	require.Equal(b, map[journal.GUID]*collation.Row{id.Start(): &row, {8}: nil}, st.Rows)
	require.Len(b, st.Receipts, 2)
	require.Nil(b, st.Receipts[journal.GUID{9}])
	require.Contains(b, st.Receipts, journal.GUID{9})
	require.Equal(b, collation.StartBorn, st.Receipts[id.Start()].Ledger)
	require.Equal(b, journal.VerdictHandled, st.Receipts[id.Start()].Verdict)
	require.Len(b, st.Results, 2)
	require.Nil(b, st.Results[absent])
	require.Contains(b, st.Results, absent)
	require.JSONEq(b, `{"n":7}`, string(st.Results[trigger].Output))
	require.NoError(b, b.c.Rollback(b.ctx()))
}

func loadMore(b *bench) {
	id := b.requested(fork, "k")
	l := b.locked(b.c, store.Want{Job: id})
	st := l.States[id]
	require.Empty(b, st.Instances)
	require.Empty(b, st.Rows)
	require.Empty(b, st.Results)
	left := collation.InstanceKey{Activity: "left", DAD: ",0,0"}
	trigger := collation.InstanceKey{Activity: "start", DAD: collation.RootDAD}
	require.NoError(b, b.c.More(b.ctx(), map[journal.JobID]*collation.Need{id: {
		Instances: []collation.InstanceKey{left}, Results: []collation.InstanceKey{trigger}, AllRows: true,
	}}))
	require.Equal(b, "001100000000000", st.Instances[left].Ledger.String())
	require.JSONEq(b, `{"n":7}`, string(st.Results[trigger].Output))
	require.True(b, st.AllRows)
	want := map[journal.GUID]*collation.Row{}
	for _, r := range b.view(id).Rows {
		want[r.GUID] = &r
	}
	require.Len(b, want, 2)
	require.Equal(b, want, st.Rows)
	require.NoError(b, b.c.Rollback(b.ctx()))
}

func loadBusy(b *bench) {
	d := b.committer()
	f := b.deploy(one)
	held, free := b.start(f, "held"), b.start(f, "free")
	b.locked(b.c, store.Want{Job: held})
	wants := []store.Want{{Job: held, Row: held.Start()}, {Job: free, Row: free.Start()}}
	l, err := d.Load(b.ctx(), wants, false)
	require.NoError(b, err)
	require.Equal(b, map[journal.JobID]bool{held: true}, l.Busy)
	require.Len(b, l.States, 1)
	require.NotNil(b, l.States[free])
	require.NoError(b, d.Rollback(b.ctx()))
	require.NoError(b, b.c.Rollback(b.ctx()))
	l, err = d.Load(b.ctx(), wants, false)
	require.NoError(b, err)
	require.Empty(b, l.Busy)
	require.Len(b, l.States, 2)
	require.NoError(b, d.Rollback(b.ctx()))
}

func loadWait(b *bench) {
	d := b.committer()
	id := b.start(b.deploy(one), "k")
	m := message(&b.view(id).Rows[0])
	l := got(b.load(b.c, m))(b)
	ch := got(b.decide(b.c, l.States[id], m))(b)
	loaded := make(chan *store.Loaded, 1)
	go func() {
		l, err := d.Load(b.ctx(), []store.Want{b.want(m)}, true)
		b.check(err)
		loaded <- l
	}()
	require.NoError(b, b.c.Commit(b.ctx(), []store.Chained{ch}))
	st := (<-loaded).States[id]
	require.Nil(b, st.Rows[id.Start()], "what was committed meanwhile is read")
	require.NoError(b, d.Rollback(b.ctx()))
}

func loadCancelled(b *bench) {
	d := b.committer()
	id := b.start(b.deploy(one), "k")
	b.locked(b.c, store.Want{Job: id})
	ctx, cancel := context.WithCancel(b.ctx())
	ended := make(chan error, 1)
	go func() {
		_, err := d.Load(ctx, []store.Want{{Job: id}}, true)
		ended <- err
	}()
	cancel()
	require.Error(b, <-ended)
	require.NoError(b, b.c.Rollback(b.ctx()))
	e := b.committer()
	b.eventually(func() bool { // a server may notice later that its client has gone
		l, err := e.Load(b.ctx(), []store.Want{{Job: id}}, false)
		require.NoError(b, err)
		require.NoError(b, e.Rollback(b.ctx()))
		return len(l.Busy) == 0
	})
}

// loadOrder lets committers lock the same jobs in opposite orders. They would deadlock unless
// every Load locks in one order.
func loadOrder(b *bench) {
	f := b.deploy(one)
	var ids []journal.JobID
	for i := range 6 {
		ids = append(ids, b.start(f, fmt.Sprint(i)))
	}
	committers := []store.Committer{b.committer(), b.committer(), b.committer()}
	together(len(committers), func(n int) {
		for round := range 15 {
			var wants []store.Want
			for i := range ids {
				if n%2 == 1 {
					i = len(ids) - 1 - i
				}
				wants = append(wants, store.Want{Job: ids[(i+n+round)%len(ids)]})
			}
			l, err := committers[n].Load(b.ctx(), wants, true)
			if err != nil || len(l.States) != len(ids) {
				b.Errorf("load of all jobs: %v", err)
				return
			}
			if err := committers[n].Rollback(b.ctx()); err != nil {
				b.Errorf("rollback: %v", err)
			}
		}
	})
}

func loadRollback(b *bench) {
	require.NoError(b, b.c.Rollback(b.ctx()), "harmless without a transaction")
	id := b.start(b.deploy(one), "k")
	before := b.view(id)
	m := message(&before.Rows[0])
	l := got(b.load(b.c, m))(b)
	got(b.decide(b.c, l.States[id], m))(b)
	require.NoError(b, b.c.Rollback(b.ctx()))
	require.Equal(b, before, b.view(id))
	b.must(m)
}

func loadResponse(b *bench) {
	b.mode.Stepwise = true
	id := b.requested(one, "k")
	r := b.request(id, "work")
	m := response(&r, success(`{"paid":true}`))
	p := got(b.once(b.c, m))(b)
	require.False(b, p.Done)
	for _, want := range []string{"000000000000001", "000010000000001"} {
		l := got(b.load(b.c, m))(b)
		receipt := l.States[id].Receipts[m.GUID]
		require.Equal(b, want, receipt.Ledger.String())
		require.Equal(b, p.Entry.Response, receipt.Response, "the entry says what the message brought, not a redelivery (1.7)")
		require.NoError(b, b.c.Rollback(b.ctx()))
		got(b.once(b.c, response(&r, success(`{"paid":false}`))))(b)
	}
	p = got(b.handle(b.c, m))(b)
	require.True(b, p.Done)
	require.JSONEq(b, `{"got":{"paid":true}}`, string(b.view(id).Output))
	l := got(b.load(b.c, m))(b)
	require.Nil(b, l.States[id].Receipts[m.GUID].Response, "complete: there is nothing to go on with")
	require.NoError(b, b.c.Rollback(b.ctx()))
}

func loadUnknown(b *bench) {
	l := b.locked(b.c, store.Want{Job: journal.JobID{1}, Row: journal.GUID{1}})
	require.Empty(b, l.States)
	require.Empty(b, l.Busy)
	require.Empty(b, l.Tombstones)
	require.NoError(b, b.c.Rollback(b.ctx()))
	l = got(b.c.Load(b.ctx(), nil, false))(b)
	require.Empty(b, l.States)
	require.NoError(b, errors.Join(b.c.Rollback(b.ctx()), b.c.Rollback(b.ctx())))
}
