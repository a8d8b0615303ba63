package postgres

import (
	"context"
	"crypto/sha256"
	"strings"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/flow"
	"github.com/quipu-journal/quipu/internal/store"
	"github.com/quipu-journal/quipu/internal/testkit/journaltest"
	"github.com/quipu-journal/quipu/journal"
)

var (
	startKey = collation.InstanceKey{Activity: "start", DAD: collation.RootDAD}
	workKey  = collation.InstanceKey{Activity: "work", DAD: ",0,0"} // of the instance that cases write by hand
)

var _ = test("Load", "what was asked for, and nothing else (J2)", func(b *bench) {
	id := b.start(b.deploy(oneWorker), "k")
	row := b.row(id, journal.MessageStart, "start")
	unknown := store.Want{Job: journal.JobID{1}, Row: journal.GUID{1}}
	l := b.look(
		store.Want{
			Job: id, Receipt: id.Start(), Row: id.Start(), Instances: []collation.InstanceKey{startKey, workKey},
		},
		store.Want{Job: id, Receipt: guid(9), Row: guid(8), Results: []collation.InstanceKey{startKey, workKey}},
		unknown,
	)
	require.Empty(b, l.Busy)
	require.Empty(b, l.Tombstones)
	require.Len(b, l.States, 1, "unknown jobs are absent")
	st := l.States[id]
	require.Positive(b, l.Now)
	require.Equal(b, l.Now, st.Now)
	require.Equal(b, b.view(id).Job, st.Job)
	require.False(b, st.AllRows)
	require.Equal(b, map[collation.InstanceKey]*collation.Instance{
		startKey: {Ledger: collation.TriggerBorn, ResultSeq: 1, Code: collation.CodeOK}, workKey: nil,
	}, st.Instances)
	require.Equal(b, map[journal.GUID]*collation.Row{id.Start(): &row, guid(8): nil}, st.Rows)
	require.Equal(b, map[journal.GUID]*collation.Receipt{
		id.Start(): {
			Ledger: collation.StartBorn, Verdict: journal.VerdictHandled, Seq: 1,
			Response: st.Receipts[id.Start()].Response,
		}, guid(9): nil,
	}, st.Receipts)
	require.Equal(b, map[collation.InstanceKey]*flow.Result{
		startKey: {Ran: true, Code: collation.CodeOK, Output: []byte(`{"n":7}`)}, workKey: nil,
	}, st.Results)
	require.Empty(b, b.look().States)
})

// It reads what Load does not: the rows of others, the waits of the job, everything that a
// close cancels.
var _ = test("Load", "what is missing later comes by More (J2)", func(b *bench) {
	id, other := b.requested(twoBranches, "k"), b.jobs(1)[0]
	b.altered(id, waits(collation.Wait{GUID: guid(1), Topic: "t", Key: "k"}))
	b.altered(other, waits(collation.Wait{GUID: guid(2), Topic: "t", Key: "k"}))
	child, k := b.order(other, 1, true), b.sent(other, b.signal("t", "k", "x"))
	left := collation.InstanceKey{Activity: "left", DAD: ",0,0"}
	view := b.view(id)
	wait := &view.Waits[0]
	st := b.more(id, collation.Need{
		Instances: []collation.InstanceKey{left}, Results: []collation.InstanceKey{startKey, left},
		Rows: []collation.RowKey{
			keyOf(&view.Rows[0]), keyOf(&child), k, {Job: other, GUID: other.Start()}, {Job: id, GUID: guid(9)},
		},
		Waits: []journal.GUID{guid(1), guid(2), guid(3)},
	})
	require.Equal(b, "001100000000000", st.Instances[left].Ledger.String())
	require.Equal(b, `{"n":7}`, string(st.Results[startKey].Output))
	require.Nil(b, st.Results[left], "asked for its answer, which has not come")
	require.Equal(b, map[journal.GUID]*collation.Row{
		view.Rows[0].GUID: &view.Rows[0], child.GUID: &child, k.GUID: b.stored(other, k),
		other.Start(): &b.view(other).Rows[0], guid(9): nil,
	}, st.Rows)
	require.Equal(b, map[journal.GUID]*collation.Wait{guid(1): wait, guid(2): nil, guid(3): nil}, st.Waits)
	require.False(b, st.AllRows)

	st = b.more(id, collation.Need{AllRows: true})
	require.True(b, st.AllRows)
	require.Equal(b,
		map[journal.GUID]*collation.Row{view.Rows[0].GUID: &view.Rows[0], view.Rows[1].GUID: &view.Rows[1]}, st.Rows)
	require.Equal(b, map[journal.GUID]*collation.Wait{guid(1): wait}, st.Waits)
})

// It asks for state that an earlier plan of the same transaction has changed.
var _ = test("Load", "More leaves what plans of the transaction moved (J6)", func(b *bench) {
	id := b.jobs(1)[0]
	b.altered(id, waits(collation.Wait{GUID: guid(1), Topic: "t", Key: "k"}),
		waits(collation.Wait{GUID: guid(2), Topic: "t", Key: "l"}),
		ledgers(collation.LedgerWrite{Key: workKey, New: true, After: 1_100_000_000_000, More: fullMore}), opens(3))
	st := b.locked(b.c, store.Want{Job: id}).States[id]
	need := map[journal.JobID]*collation.Need{id: {
		Instances: []collation.InstanceKey{workKey}, Results: []collation.InstanceKey{workKey},
		Waits: []journal.GUID{guid(1)}, Rows: []collation.RowKey{{Job: id, GUID: id.Start()}, {Job: id, GUID: guid(7)}},
		Latest: []string{"work"},
	}}
	require.NoError(b, b.c.More(b.ctx(), need))
	moved := fullMore
	moved.Open--
	st.Instances[workKey] = &collation.Instance{Ledger: 201_100_000_000_000, More: moved}
	st.Results[workKey] = &flow.Result{Ran: true, Code: 201}
	st.Latest["work"] = st.Results[workKey]
	st.Waits[guid(1)], st.Rows[id.Start()] = nil, nil
	st.Rows[guid(7)] = &collation.Row{GUID: guid(7), Job: id}
	need[id].AllRows = true
	require.NoError(b, b.c.More(b.ctx(), need))
	require.NoError(b, b.c.Rollback(b.ctx()))
	require.Equal(b, []any{"201100000000000", 2, 201, 201}, []any{
		st.Instances[workKey].Ledger.String(), st.Instances[workKey].Open, st.Results[workKey].Code, st.Latest["work"].Code,
	})
	require.Nil(b, st.Waits[guid(1)])
	require.NotNil(b, st.Waits[guid(2)])
	require.Nil(b, st.Rows[id.Start()])
	require.NotNil(b, st.Rows[guid(7)])
})

var _ = test("Load", "held jobs are left out without wait (J3)", func(b *bench) {
	d := b.committer()
	ids := b.jobs(2)
	b.locked(b.c, store.Want{Job: ids[0]})
	wants := []store.Want{{Job: ids[0], Row: ids[0].Start()}, {Job: ids[1], Row: ids[1].Start()}}
	l := must(d.Load(b.ctx(), wants, false))(b)
	require.Equal(b, map[journal.JobID]bool{ids[0]: true}, l.Busy)
	require.Len(b, l.States, 1)
	require.NotNil(b, l.States[ids[1]])
	require.NoError(b, d.Rollback(b.ctx()))
	require.NoError(b, b.c.Rollback(b.ctx()))
	l = must(d.Load(b.ctx(), wants, false))(b)
	require.Empty(b, l.Busy)
	require.Len(b, l.States, 2)
})

var _ = test("Load", "held jobs are waited for with wait (J3)", func(b *bench) {
	d := b.committer()
	id := b.jobs(1)[0]
	m := journaltest.Message(&b.view(id).Rows[0])
	loaded := make(chan *store.Loaded, 1)
	require.NoError(b, b.attempt(m, b.altering(func(*collation.Plan) {
		go func() {
			l, err := d.Load(b.ctx(), []store.Want{journaltest.WantOf(m)}, true)
			b.check(err)
			loaded <- l
		}()
	})))
	require.Nil(b, (<-loaded).States[id].Rows[id.Start()], "what was committed meanwhile is read")
})

var _ = test("Load", "a wait ends with its context", func(b *bench) {
	d := b.committer()
	id := b.jobs(1)[0]
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
	b.eventually(func() bool { // a server may notice later that its client has gone
		l := must(b.c.Load(b.ctx(), []store.Want{{Job: id}}, false))(b)
		require.NoError(b, b.c.Rollback(b.ctx()))
		return len(l.Busy) == 0
	})
})

// It lets committers lock the same jobs in opposite orders. They would deadlock unless
// every Load locks in one order.
var _ = test("Load", "jobs are locked in one order (J3)", func(b *bench) {
	ids := b.jobs(6)
	committers := []store.Committer{b.c, b.committer(), b.committer()}
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
			b.check(committers[n].Rollback(b.ctx()))
		}
	})
})

var _ = test("Load", "a receipt with open steps brings its response (C5)", func(b *bench) {
	b.mode.Stepwise = true
	r := b.asked()
	m := journaltest.Response(&r, journaltest.Success(`{"paid":true}`))
	receipt := func() *collation.Receipt { return b.look(journaltest.WantOf(m)).States[r.Job].Receipts[m.GUID] }
	p := must(b.once(m))(b)
	for _, want := range []string{"000000000000001", "000010000000001"} {
		require.False(b, p.Done)
		require.Equal(b, want, receipt().Ledger.String())
		require.Equal(b, p.Entry.Response, receipt().Response, "the entry says what the message brought, not a redelivery (1.7)")
		more := b.more(r.Job, collation.Need{Receipts: []journal.GUID{m.GUID, {1}}}).Receipts
		require.Equal(b, map[journal.GUID]*collation.Receipt{m.GUID: receipt(), {1}: nil}, more)
		must(b.once(journaltest.Response(&r, journaltest.Success(`{"paid":false}`))))(b)
	}
	require.True(b, must(b.handle(m))(b).Done)
	require.JSONEq(b, `{"got":{"paid":true}}`, string(b.view(r.Job).Output))
	require.Nil(b, receipt().Response, "complete: there is nothing to go on with")
})

var _ = test("Load", "an output sent by digest is a result (E6)", func(b *bench) {
	id := b.requested(oneWorker, "k")
	body := []byte(`{"large":"` + strings.Repeat("x", 300<<10) + `"}`)
	digest := journal.Digest(sha256.Sum256(body))
	for range 2 { // stored once
		require.NoError(b, b.s.PutPayload(b.ctx(), id, digest, body))
	}
	b.answer(id, "work", &journal.Response{Kind: journal.ResponseTerminal, Code: collation.CodeOK, Ref: digest})
	require.Equal(b, `{"got":`+string(body)+`}`, string(b.view(id).Output))
	l := b.look(store.Want{Job: id, Results: []collation.InstanceKey{workKey}})
	require.Equal(b, string(body), string(l.States[id].Results[workKey].Output))
	require.Equal(b, string(body), string(must(b.lists.Payload(b.ctx(), id, digest))(b)))
	require.ErrorIs(b, b.s.PutPayload(b.ctx(), journal.JobID{1}, digest, body), store.ErrNotFound)
})

var _ = test("Load", "a result whose output is not stored is refused (E6)", func(b *bench) {
	b.odd = true
	id := b.jobs(1)[0]
	b.altered(id, results(workKey, true, ``), func(p *collation.Plan, _ *collation.State) {
		p.Entry.Result = nil
		p.Entry.Response = &journal.Response{Kind: journal.ResponseTerminal, Code: collation.CodeOK, Ref: digest(7)}
	})
	keys := []collation.InstanceKey{workKey}
	for _, need := range []collation.Need{{Results: keys}, {Latest: []string{workKey.Activity}}} {
		b.locked(b.c, store.Want{Job: id})
		require.ErrorIs(b, b.c.More(b.ctx(), map[journal.JobID]*collation.Need{id: &need}), store.ErrRejected)
		require.NoError(b, b.c.Rollback(b.ctx()))
	}
	require.ErrorIs(b, failed(b.c.Load(b.ctx(), []store.Want{{Job: id, Results: keys}}, true)), store.ErrRejected)
})

var _ = test("Load", "how a job was closed", func(b *bench) {
	id := b.requested(oneWorker, "k")
	require.Nil(b, b.more(id, collation.Need{Close: true}).Close)
	b.answer(id, "work", failure(journal.ResponseTerminal, "declined"))
	x := b.more(id, collation.Need{Close: true}).Close
	require.Equal(b, []any{journal.JobFailed, collation.CodeInternal, "declined"}, []any{x.State, x.Code, x.Error.Message})
	require.Nil(b, b.more(id, collation.Need{AllRows: true}).Close, "not asked for")
})

// instance reads one instance of a job.
func (b *bench) instance(id journal.JobID, key collation.InstanceKey) *collation.Instance {
	b.Helper()
	return b.more(id, collation.Need{Instances: []collation.InstanceKey{key}}).Instances[key]
}

var fullMore = collation.More{
	Leg1: guid(1), Open: 3, Count: 5, Size: 1 << 40, Turn: 2, Attempt: 4, Child: journal.JobID(guid(2)),
}

var _ = test("Instances", "an instance keeps what is beside its digits, field by field", func(b *bench) {
	id := b.jobs(1)[0]
	b.altered(id, ledgers(collation.LedgerWrite{Key: workKey, New: true, After: 1_100_000_000_000, More: fullMore}),
		opens(3))
	want := collation.Instance{Ledger: 1_100_000_000_000, More: fullMore}
	require.Equal(b, &want, b.instance(id, workKey))
	require.Equal(b, store.InstanceView{Key: workKey, Instance: want}, b.view(id).Instances[1])
	require.Zero(b, b.instance(id, startKey).More)
})

// opens sets the number of open elements of that instance.
func opens(left int) change {
	return func(p *collation.Plan, _ *collation.State) {
		p.Entry.Activity, p.Entry.DAD = workKey.Activity, string(workKey.DAD)
		p.Entry.Open = &left
	}
}

// results adds a result of the plan's own entry, at an address.
func results(key collation.InstanceKey, fresh bool, output string) change {
	return func(p *collation.Plan, st *collation.State) {
		p.Entry.Result = &journal.Result{Code: collation.CodeOK, Output: []byte(output)}
		p.Entry.Activity, _, _ = strings.Cut(key.Activity, "[")
		p.Entry.DAD = string(key.DAD.Base())
		ledgers(collation.LedgerWrite{Key: key, New: fresh, ResultSeq: p.Entry.Seq, Code: collation.CodeOK})(p, st)
	}
}

var _ = test("Instances", "a row of ledger 0 points to an output and is no ledger (1.9)", func(b *bench) {
	id := b.jobs(1)[0]
	pass := collation.InstanceKey{Activity: "work", DAD: ",0,3"}
	b.altered(id, results(pass, true, `"third"`))
	v := b.view(id)
	require.Len(b, v.Instances, 1, "the trigger's")
	require.Equal(b, &collation.Instance{ResultSeq: v.Head.Seq, Code: collation.CodeOK}, b.instance(id, pass))
	require.Equal(b, map[collation.InstanceKey]*flow.Result{
		pass: {Ran: true, Code: collation.CodeOK, Output: []byte(`"third"`)}, workKey: nil,
	}, b.more(id, collation.Need{Results: []collation.InstanceKey{pass, workKey}}).Results)
	require.ErrorIs(b, b.alter(id, results(pass, true, `"again"`)), store.ErrLost)
	b.altered(id, results(pass, false, `"mapped"`))
	require.Equal(b, `"mapped"`, string(b.more(id, collation.Need{Results: []collation.InstanceKey{pass}}).Results[pass].Output))
})

var _ = test("Instances", "the latest result of an activity, whatever its address (5.1)", func(b *bench) {
	id := b.jobs(1)[0]
	latest := func() map[string]*flow.Result {
		return b.more(id, collation.Need{Latest: []string{"work", "start", "nobody"}}).Latest
	}
	trigger := &flow.Result{Ran: true, Code: collation.CodeOK, Output: []byte(`{"n":7}`)}
	require.Equal(b, map[string]*flow.Result{"work": nil, "start": trigger, "nobody": nil}, latest())
	b.altered(id, ledgers(collation.LedgerWrite{Key: workKey, New: true, After: 1_100_000_000_000}))
	require.Nil(b, latest()["work"], "it has no result yet")
	for _, step := range []struct {
		key          collation.InstanceKey
		output, want string
	}{
		{collation.InstanceKey{Activity: "work", DAD: ",0,5"}, `"5"`, `"5"`},
		{collation.InstanceKey{Activity: "work", DAD: ",0,2"}, `"2"`, `"2"`},
		{collation.InstanceKey{Activity: "work[0]", DAD: ",0,0"}, `"of an element"`, `"2"`},
		{collation.InstanceKey{Activity: "works", DAD: ",0,0"}, `"of another"`, `"2"`},
		{collation.InstanceKey{Activity: "work", DAD: ",0,0,0"}, `"0"`, `"0"`},
	} {
		b.altered(id, results(step.key, true, step.output))
		require.Equal(b, step.want, string(latest()["work"].Output), "after %v", step.key)
	}
})

// It lets one entry hold the result of an element and that of its list.
var _ = test("Instances", "results of elements and of the whole are told apart by address", func(b *bench) {
	b.odd = true
	id := b.jobs(1)[0]
	element := collation.InstanceKey{Activity: "work[1]", DAD: workKey.DAD}
	b.altered(id, func(p *collation.Plan, st *collation.State) {
		p.Entry.Kind, p.Entry.Operator = journal.KindLeg2, nil
		p.Entry.Response = &journal.Response{
			Kind: journal.ResponseTerminal, Code: collation.CodeOK, Output: []byte(`1`), Element: 1,
		}
		results(element, true, `[0,1]`)(p, st)
		ledgers(collation.LedgerWrite{
			Key: workKey, New: true, After: 1_100_000_000_000, ResultSeq: p.Entry.Seq, Code: collation.CodeOK,
		})(p, st)
	})
	st := b.more(id, collation.Need{Results: []collation.InstanceKey{element, workKey}, Latest: []string{"work"}})
	require.Equal(b, []string{`1`, `[0,1]`, `[0,1]`},
		[]string{string(st.Results[element].Output), string(st.Results[workKey].Output), string(st.Latest["work"].Output)})
})
