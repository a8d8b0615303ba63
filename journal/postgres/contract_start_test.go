package postgres

import (
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/flow"
	"github.com/quipu-journal/quipu/internal/store"
	"github.com/quipu-journal/quipu/journal"
)

var _ = test("Start", "inception is one transaction, and its key names it (1.11)", func(b *bench) {
	f := b.deploy(oneWorker)
	id := b.start(f, "k")
	require.Equal(b, collation.NewJobID(b.space(), "k", 1), id, "C8")
	require.Equal(b, id, must(b.s.FindJob(b.ctx(), "k"))(b))
	v := b.view(id)
	require.Equal(b, collation.Job{
		ID: id, Space: b.space(), Key: "k", Generation: 1, Flow: collation.RefOf(f), State: journal.JobOpen, Semaphore: 1,
		Head: v.Head, Started: v.Started, Trace: startOf(f, "", "").Trace,
	}, v.Job)
	require.Equal(b, int64(1), v.Head.Seq)
	require.Positive(b, v.Started)
	require.Equal(b, []any{collation.Micros(0), false, collation.Never}, []any{v.Closed, v.Ended, v.ExpiresAt})
	require.Equal(b, []store.InstanceView{{
		Key:      collation.InstanceKey{Activity: "start", DAD: collation.RootDAD},
		Instance: collation.Instance{Ledger: collation.TriggerBorn, ResultSeq: 1, Code: collation.CodeOK},
	}}, v.Instances, "the trigger's output is the job's input")
	require.Len(b, v.Rows, 1)
	require.Equal(b, id.Start(), v.Rows[0].GUID)
	require.Equal(b, map[string]*collation.Holder{
		"k": {ID: id, Generation: 1, State: journal.JobOpen, Flow: collation.RefOf(f), Input: []byte(`{"n":7}`)},
	}, b.look(store.Want{Key: "k"}, store.Want{Key: "nobody"}).Holders)
	require.Equal(b, map[string]journal.JobID{"k": id, "nobody": {}}, b.more(id, collation.Need{Keys: []string{"k", "nobody"}}).Keys)
})

var _ = test("Start", "a start begins at the later of its times", func(b *bench) {
	later := startOf(b.deploy(oneWorker), "later", `{}`)
	later.Delay = time.Hour
	past := startOf(b.deploy(oneWorker), "past", `{}`)
	past.At = 1
	out := must(b.s.Start(b.ctx(), []store.Start{later, past}, b.mode))(b)
	for i, delay := range []collation.Micros{micros(time.Hour), 0} {
		v := b.view(out[i].Job)
		require.Equal(b, v.Started+delay, v.Rows[0].NextAt)
	}
})

// Several inceptions commit together without a look before. Those that lose a
// test-and-set are named, and nothing of the others is left.
var _ = test("Start", "an inception names what it was lost to (W3)", func(b *bench) {
	f := b.deploy(oneWorker)
	b.start(f, "held")
	begin := func(st store.Start) store.Chained {
		return born(collation.Begin(st.Inception(b.space(), 1), nil, b.mode))
	}
	other := startOf(f, "other", `{}`)
	other.Flow.Version, other.Active = "0", true
	active := startOf(f, "active", `{}`)
	active.Active = true
	for _, c := range []struct{ plans, keys, flows any }{
		{[]store.Chained{begin(active), begin(startOf(f, "held", `{}`)), begin(startOf(f, "free", `{}`))}, []string{"held"}, []string(nil)},
		{[]store.Chained{begin(active), begin(other)}, []string(nil), []string{f.Name()}},
	} {
		var lost *store.LostError
		err := b.c.Commit(b.ctx(), c.plans.([]store.Chained))
		require.ErrorAs(b, err, &lost)
		require.ErrorIs(b, err, store.ErrLost)
		require.Equal(b, []any{c.keys, c.flows}, []any{lost.Keys, lost.Flows})
	}
	require.Len(b, b.all(nil), 1)
	require.NoError(b, b.commit(begin(active)), "the connection goes on")
})

var _ = test("Start", "one of many starters at once begins it (1.11)", func(b *bench) {
	f := b.deploy(oneWorker)
	const starters, keys = 8, 5
	for _, k := range []int{1, 3} { // some were used before
		b.tombstone(fmt.Sprint(k))
	}
	var mu sync.Mutex
	born, ids := 0, map[journal.JobID]bool{}
	together(starters, func(i int) {
		var list []store.Start
		for k := range keys { // in different orders, so that starters could deadlock
			list = append(list, startOf(f, fmt.Sprint((k+i)%keys), `{"n":7}`))
		}
		out, err := b.s.Start(b.ctx(), list, b.mode)
		b.check(err)
		mu.Lock()
		defer mu.Unlock()
		for _, o := range out {
			if ids[o.Job] = true; o.Err == nil {
				born++
			}
		}
	})
	require.Equal(b, keys, born, "each key begins once")
	require.Len(b, ids, keys)
})

// order lets a job order its n-th child, of flow oneWorker, and returns the row.
func (b *bench) order(parent journal.JobID, n int, awaited bool) collation.Row {
	b.Helper()
	child := collation.ChildID(guid(n), 1)
	row := collation.Row{GUID: child.Start(), Job: child, Kind: journal.MessageStart, DAD: collation.RootDAD}
	b.altered(parent, func(p *collation.Plan, st *collation.State) {
		order := collation.StartOrder{
			Flow: "one", Key: fmt.Sprint("child-", n), Input: []byte(`{"n":3}`),
			Parent: journal.Parent{
				Space: b.space(), Job: parent, Activity: "work", DAD: ",0,0", Leg1: guid(n), Turn: 1, Awaited: awaited,
			},
		}
		if awaited {
			order.Parent.Depth = 1
		}
		body, err := json.Marshal(&order)
		require.NoError(b, err)
		if row.Body, row.NextAt, row.Origin = body, st.Now, p.Entry.Seq; awaited {
			row.Sender = parent
		}
		inserts(row)(p, st)
	})
	return row
}

// spawning returns what begins the child of an order.
func (b *bench) spawning(row *collation.Row) func() error {
	b.Helper()
	order := must(row.Order())(b)
	f := b.deploy(oneWorker)
	if order.Version != "" { // of compensations
		f = b.undoFlow()
	}
	st := startOf(f, order.Key, string(order.Input))
	return func() error { return b.s.Spawn(b.ctx(), row, st, b.mode) }
}

func (b *bench) spawn(row *collation.Row) error {
	b.Helper()
	return b.spawning(row)()
}

// reply returns an outcome of the order's child.
func (b *bench) reply(row *collation.Row, code int) *collation.Row {
	b.Helper()
	r := must(row.Order())(b).Refusal(row.Job, code, "class", "why", 1, b.mode)
	return &r
}

var _ = test("Children", "inception of a child is one transaction (1.11)", func(b *bench) {
	id := b.jobs(1)[0]
	row := b.order(id, 1, true)
	require.ErrorIs(b, b.alter(id, inserts(row)), store.ErrLost, "it is ordered once")
	order := must(row.Order())(b)
	require.Equal(b, map[journal.JobID]*collation.Row{row.Job: &row},
		b.look(store.Want{Order: row.Job}, store.Want{Order: id}).Orders)
	require.NoError(b, b.spawn(&row))
	v := b.view(row.Job)
	require.Equal(b, []any{journal.JobOpen, int64(1), int64(1), "child-1", &order.Parent},
		[]any{v.State, v.Semaphore, v.Generation, v.Key, v.Parent})
	require.Len(b, v.Instances, 1)
	want := row
	want.Sender, want.Activity, want.Origin, want.Rev = journal.JobID{}, "start", 1, row.Rev+1
	require.Equal(b, []collation.Row{want}, v.Rows, "the close of the parent takes nothing back any more")
	require.Equal(b, row.Job, must(b.s.FindJob(b.ctx(), "child-1"))(b))
	l := b.look(store.Want{Order: row.Job}, store.Want{Job: row.Job})
	require.Empty(b, l.Orders)
	require.Equal(b, v.Job, l.States[row.Job].Job, "the parent is part of what is loaded")
	require.ErrorIs(b, b.spawn(&row), store.ErrStale)
})

var _ = test("Children", "one of many at once begins it (P6)", func(b *bench) {
	id := b.jobs(1)[0]
	for n := range 5 {
		row := b.order(id, n, n%2 == 0)
		spawn := b.spawning(&row)
		require.Equal(b, map[bool]int{true: 1, false: 5}, atOnce(6, func(int) bool {
			return b.won(spawn(), store.ErrStale)
		}))
		require.Len(b, b.view(id).Rows, 1+(n+1)/2, "the job's own start, and one reply for each child that only had to begin")
	}
})

var _ = test("Children", "a start is taken back by test-and-set (C15)", func(b *bench) {
	ids := b.jobs(2)
	mine, begun, unawaited := b.order(ids[0], 1, true), b.order(ids[0], 2, true), b.order(ids[0], 3, false)
	require.NoError(b, b.spawn(&begun))
	before := b.view(ids[0])
	for _, k := range []collation.RowKey{keyOf(&begun), keyOf(&unawaited), {Job: journal.JobID{1}, GUID: guid(1)}} {
		require.ErrorIs(b, b.alter(ids[0], cancelsStart(keyOf(&mine)), cancelsStart(k)), store.ErrLost)
	}
	require.ErrorIs(b, b.alter(ids[1], cancelsStart(keyOf(&mine))), store.ErrLost, "the start of another's child")
	require.Equal(b, before, b.view(ids[0]), "nothing is written")
	b.altered(ids[0], cancelsStart(keyOf(&mine)))
	require.Nil(b, b.stored(ids[0], keyOf(&mine)))
	require.ErrorIs(b, b.spawn(&mine), store.ErrStale)
})

var _ = test("Children", "the close of a parent finds what it awaits (C15)", func(b *bench) {
	ids := b.jobs(2)
	mine, begun := b.order(ids[0], 1, true), b.order(ids[0], 2, true)
	_, _ = b.order(ids[0], 3, false), b.order(ids[1], 4, true)
	require.NoError(b, b.spawn(&begun))
	more := collation.More{Leg1: guid(2), Turn: 1, Attempt: 1, Child: begun.Job}
	b.altered(ids[0],
		ledgers(collation.LedgerWrite{Key: workKey, New: true, After: 1_100_000_000_000, More: more}),
		ledgers(collation.LedgerWrite{
			Key: collation.InstanceKey{Activity: "work", DAD: ",0,1"}, New: true, After: 1_100_000_000_000,
		}),
	)
	st := b.more(ids[0], collation.Need{AllRows: true})
	require.Equal(b, map[journal.GUID]*collation.Row{mine.GUID: &mine, ids[0].Start(): st.Rows[ids[0].Start()]},
		st.Rows)
	require.NotNil(b, st.Rows[ids[0].Start()])
	require.Equal(b, map[collation.InstanceKey]*collation.Instance{workKey: {Ledger: 1_100_000_000_000, More: more}},
		st.Instances)
	require.ElementsMatch(b, []collation.Row{mine, *st.Rows[ids[0].Start()]}, b.view(ids[0]).Rows)
})

func digest(n byte) journal.Digest { return journal.Digest{n} }

// version deploys content under a name and version, and says whether it was new.
func (b *bench) version(name, version string, content byte, activate bool) (bool, error) {
	done, err := b.s.Deploy(b.ctx(), store.Deployment{
		Ref:       journal.FlowRef{Name: name, Version: version, Digest: digest(content)},
		Canonical: []byte{content}, Activate: activate,
	})
	return done.Fresh, err
}

var _ = test("Flows", "a version is deployed once, with one content (5.1)", func(b *bench) {
	require.True(b, must(b.version("f", "1", '1', false))(b))
	require.False(b, must(b.version("f", "1", '1', false))(b), "the same content again changes nothing")
	require.ErrorIs(b, failed(b.version("f", "1", '2', false)), store.ErrVersionTaken)
	require.Equal(b, `1`, string(must(b.s.Flow(b.ctx(), "f", "1"))(b)))
	list := must(b.lists.Flows(b.ctx()))(b)
	require.Positive(b, list[0].Deployed)
	require.Equal(b, []store.FlowView{{
		Ref: journal.FlowRef{Name: "f", Version: "1", Digest: digest('1')}, Active: true,
		Deployed: list[0].Deployed,
	}}, list)
})

// It sets how long jobs are kept whose flow does not say it (W11).
var _ = test("Flows", "the space says how long jobs are kept (W11)", func(b *bench) {
	for _, d := range []time.Duration{0, flow.MinExpire, flow.MinExpire + 1, 720 * time.Hour, flow.MaxExpire} {
		require.NoError(b, b.s.SetExpireDefault(b.ctx(), d))
		require.Equal(b, d.Truncate(time.Microsecond), must(b.s.ExpireDefault(b.ctx()))(b))
	}
	for _, d := range []time.Duration{-1, 1, flow.MinExpire - 1, flow.MaxExpire + 1} {
		require.ErrorIs(b, b.s.SetExpireDefault(b.ctx(), d), store.ErrRejected)
	}
	require.Equal(b, flow.MaxExpire, must(b.s.ExpireDefault(b.ctx()))(b))
})

var _ = test("Flows", "the first version is active, then the activated", func(b *bench) {
	active := func(version string, why string) {
		b.Helper()
		ref, canonical, err := b.s.ActiveFlow(b.ctx(), "f")
		require.NoError(b, err)
		require.Equal(b, version, ref.Version, why)
		require.Equal(b, string(ref.Digest[:1]), string(canonical))
		for _, f := range must(b.lists.Flows(b.ctx()))(b) {
			require.Equal(b, f.Ref.Version == version, f.Active)
		}
	}
	for i, version := range []string{"1", "2", "10"} {
		must(b.version("f", version, byte(i), false))(b)
		active("1", "this deploy does not activate")
	}
	require.NoError(b, b.s.Activate(b.ctx(), "f", "10", ""))
	active("10", "")
	for range 2 {
		must(b.version("f", "11", 11, true))(b)
		active("11", "a new one is active at once")
	}
	require.NoError(b, b.s.Activate(b.ctx(), "f", "10", ""))
	must(b.version("f", "11", 11, true))(b)
	active("10", "one that was there takes nothing back")
	require.ErrorIs(b, b.s.Activate(b.ctx(), "f", "3", ""), store.ErrNotFound)
	active("10", "there is no other")
})

var _ = test("Flows", "deploying at once: one is fresh (T8)", func(b *bench) {
	require.Equal(b, map[bool]int{true: 1, false: 5}, atOnce(6, func(int) bool {
		fresh, err := b.version("f", "1", 1, false)
		b.check(err)
		return fresh
	}))
})

var _ = test("Flows", "the space has an epoch (T4)", func(b *bench) {
	epoch := must(b.s.Epoch(b.ctx()))(b)
	require.Positive(b, epoch)
	require.NoError(b, b.s.Migrate(b.ctx()), "migrating again changes nothing")
	require.Equal(b, epoch, must(b.s.Epoch(b.ctx()))(b))
})

func (b *bench) schedules() []store.Schedule {
	b.Helper()
	return must(b.s.Schedules(b.ctx()))(b)
}

var _ = test("Flows", "active versions, by name, with the position of their flow (5.1, E16)", func(b *bench) {
	require.Empty(b, b.schedules())
	for i, name := range []string{"b", "a"} {
		for _, version := range []string{"1", "2"} {
			must(b.version(name, version, byte(i), false))(b)
		}
	}
	list := b.schedules()
	require.Len(b, list, 2)
	for i, name := range []string{"a", "b"} {
		require.Equal(b, journal.FlowRef{Name: name, Version: "1", Digest: digest(byte(1 - i))}, list[i].Ref)
		require.Positive(b, list[i].Last)
		require.GreaterOrEqual(b, list[i].Now, list[i].Last)
	}
	require.GreaterOrEqual(b, list[0].Last, list[1].Last, "that of b was the first to be deployed")
	at := list[0].Last + 7
	require.NoError(b, b.s.MarkSchedule(b.ctx(), "a", list[0].Last, at))
	require.ErrorIs(b, b.s.MarkSchedule(b.ctx(), "a", at, at-1), store.ErrLost, "it moves forward only")
	goesOn := func(version, why string) {
		b.Helper()
		again := b.schedules()
		require.Equal(b, version, again[0].Ref.Version)
		require.Equal(b, at, again[0].Last, why)
		require.Equal(b, list[1].Last, again[1].Last)
	}
	require.NoError(b, b.s.Activate(b.ctx(), "a", "1", ""))
	goesOn("1", "it was active already")
	require.NoError(b, b.s.Activate(b.ctx(), "a", "2", ""))
	goesOn("2", "it was deployed before, and goes on")
	must(b.version("a", "3", 3, true))(b)
	goesOn("3", "a new version goes on")
	at += 7
	require.NoError(b, b.s.MarkSchedule(b.ctx(), "a", at-7, at))
	must(b.version("a", "4", 4, false))(b)
	goesOn("3", "this deploy does not activate")
	require.NoError(b, b.s.Activate(b.ctx(), "a", "1", ""))
	goesOn("1", "one that was active before goes on, too")
})

var _ = test("Flows", "schedulers at once: one moves it (C3, T8)", func(b *bench) {
	f := b.deploy(oneWorker)
	last := b.schedules()[0].Last
	require.ErrorIs(b, b.s.MarkSchedule(b.ctx(), f.Name(), last-1, last+1), store.ErrLost)
	require.ErrorIs(b, b.s.MarkSchedule(b.ctx(), "nobody", last, last+1), store.ErrLost)
	require.Equal(b, last, b.schedules()[0].Last)
	moved := atOnce(8, func(i int) collation.Micros {
		if at := last + collation.Micros(i) + 1; b.won(b.s.MarkSchedule(b.ctx(), f.Name(), last, at), store.ErrLost) {
			return at
		}
		return 0
	})
	require.Equal(b, map[collation.Micros]int{b.schedules()[0].Last: 1, 0: 7}, moved)
})
