package journaltest

import (
	"slices"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/journal/store"
)

// agreements are cases in which stores once gave different answers.
var agreements = map[string]func(*bench){
	"a job's rows come by their entries, its waits by their age":     agreeOrder,
	"inception leaves the due time of the start's row (1.11)":        agreeDue,
	"an effect stays with the request that started it (J8)":          agreeEffect,
	"a plan names a row and a wait once":                             agreeOnce,
	"the marker of a living session goes with its age (J4)":          agreeMarkers,
	"to keep a request of a job that has expired says that it ended": agreeExpired,
	"a result whose output is not stored is refused (E6)":            agreePayload,
	"a hand-back of a held request leaves its due time (E9)":         agreeHandBack,
	"the record of a kept signal stays as long as its row":           agreeKept,
	"a row that comes to a tombstone is not expired (C5)":            agreeToTombstone,
	"nobody holds the tombstone of a key that was used again (J7)":   agreeTombstones,
	"what is over a limit is refused (T11)":                          agreeLimits,
}

func agreeOrder(b *bench) {
	c := b.committer()
	id := b.jobs(1)[0]
	for _, n := range []int{9, 3, 7, 1, 5} {
		w := collation.Wait{GUID: guid(n), Topic: "t", Key: "k", Since: collation.Micros(100 - n)}
		row := collation.Row{GUID: guid(20 + n), Job: id, Kind: journal.MessageCycle, Activity: "work", DAD: ",0,0"}
		b.altered(c, id, all(waits(w), inserts(row)))
		b.order(c, id, n, true)
	}
	v := b.view(id)
	require.Len(b, v.Rows, 11)
	require.True(b, slices.IsSortedFunc(v.Rows, func(x, y collation.Row) int { return int(x.Origin - y.Origin) }))
	require.Len(b, v.Waits, 5)
	require.True(b, slices.IsSortedFunc(v.Waits, func(x, y collation.Wait) int { return int(x.Since - y.Since) }))
}

func agreeDue(b *bench) {
	c := b.committer()
	row := b.order(c, b.jobs(1)[0], 1, true)
	st := b.spawning(b.deploy(one), &row)
	require.Positive(b, b.mode.Resend)
	require.NoError(b, b.s.Spawn(b.ctx(), &row, st, nil, b.mode))
	require.Equal(b, row.NextAt, b.row(row.Job, journal.MessageStart, st.Trigger).NextAt)
}

func agreeEffect(b *bench) {
	c := b.committer()
	id := b.requested(c, fork, "k")
	left := b.lease(b.row(id, journal.MessageRequest, "left"), "w")
	right := b.lease(b.lone(id, "right", 1), "w")
	b.startEffect(left, effect("other", 0))
	for _, name := range []string{"pay", "log"} {
		b.startEffect(left, effect(name, 0))
	}
	row, taken, err := b.s.StartEffect(b.ctx(), right, effect("log", 0))
	require.NoError(b, err)
	require.True(b, taken, "its fence is newer")
	require.False(b, row.Live, "the lease that counts is that of the request which started it")
	b.finishEffect(right, completed(effect("pay", 0), `1`))
	for request, n := range map[journal.GUID]int{left.Request: 3, right.Request: 0} {
		list, err := b.s.Effects(b.ctx(), id, request)
		require.NoError(b, err)
		require.Len(b, list, n)
	}
	all, err := b.s.JobEffects(b.ctx(), id)
	require.NoError(b, err)
	require.Len(b, all, 3)
	for _, f := range all {
		require.Equal(b, left.Request, f.Request)
	}
}

// lone leases a request n times, so that its fence is higher than that of other requests.
func (b *bench) lone(id journal.JobID, activity string, n int) collation.Row {
	b.Helper()
	for range n {
		b.lease(b.row(id, journal.MessageRequest, activity), "w")
	}
	return b.row(id, journal.MessageRequest, activity)
}

func agreeOnce(b *bench) {
	c := b.committer()
	id := b.requested(c, one, "k")
	b.altered(c, id, waits(collation.Wait{GUID: guid(1), Topic: "t", Key: "k"}))
	row := b.row(id, journal.MessageRequest, "work")
	deletes := func(p *collation.Plan, _ *collation.State) { p.Delete = append(p.Delete, row.GUID) }
	before := b.view(id)
	for name, add := range map[string]change{
		"updated and deleted": all(replaces(&row), deletes),
		"deleted twice":       all(deletes, deletes),
		"updated twice":       all(replaces(&row), replaces(&row)),
		"inserted twice":      all(inserts(collation.Row{GUID: guid(2), Job: id}), inserts(collation.Row{GUID: guid(2), Job: id})),
		"taken back twice":    all(cancelsWait(guid(1), 0), cancelsWait(guid(1), 0)),
	} {
		require.ErrorIs(b, b.alter(c, id, add), store.ErrRejected, name)
		require.Equal(b, before, b.view(id), name)
	}
}

func agreeExpired(b *bench) {
	c := b.committer()
	id := b.requested(c, one, "k")
	l := b.lease(b.row(id, journal.MessageRequest, "work"), "w")
	b.finish(c, id, 1)
	b.expire(100)
	_, err := b.s.Keep(b.ctx(), l)
	require.ErrorIs(b, err, store.ErrJobClosed)
	require.ErrorIs(b, b.s.HandBack(b.ctx(), l), store.ErrStale)
	_, err = b.s.Lease(b.ctx(), id, l.Request, 1, "w", l.Session)
	require.ErrorIs(b, err, store.ErrStale)
}

func agreePayload(b *bench) {
	c := b.committer()
	id := b.requested(c, fork, "k")
	r := b.row(id, journal.MessageRequest, "left")
	b.altered(c, id, func(p *collation.Plan, _ *collation.State) {
		key := collation.InstanceKey{Activity: r.Activity, DAD: r.DAD}
		i := b.view(id).Instances[slices.IndexFunc(b.view(id).Instances, func(i store.InstanceView) bool { return i.Key == key })]
		p.Ledgers = append(p.Ledgers, collation.LedgerWrite{
			Key: key, Before: i.Ledger, After: i.Ledger, ResultSeq: p.Entry.Seq, Code: collation.CodeOK, More: i.More,
		})
		p.Entry.Activity, p.Entry.DAD = r.Activity, string(r.DAD)
		p.Entry.Response = &journal.Response{Kind: journal.ResponseTerminal, Code: collation.CodeOK, Ref: digest(7)}
	})
	key := collation.InstanceKey{Activity: r.Activity, DAD: r.DAD}
	for _, need := range []collation.Need{{Results: []collation.InstanceKey{key}}, {Latest: []string{r.Activity}}} {
		_, err := c.Load(b.ctx(), []store.Want{{Job: id}}, true)
		require.NoError(b, err)
		require.ErrorIs(b, c.More(b.ctx(), map[journal.JobID]*collation.Need{id: &need}), store.ErrRejected)
		require.NoError(b, c.Rollback(b.ctx()))
	}
	_, err := c.Load(b.ctx(), []store.Want{{Job: id, Results: []collation.InstanceKey{key}}}, true)
	require.ErrorIs(b, err, store.ErrRejected)
	require.NoError(b, c.Rollback(b.ctx()))
}

func agreeHandBack(b *bench) {
	c := b.committer()
	id := b.requested(c, one, "k")
	l := b.lease(b.row(id, journal.MessageRequest, "work"), "w")
	b.rewrite(c, id, b.row(id, journal.MessageRequest, "work"), func(r *collation.Row, _ collation.Micros) { r.Held = collation.HeldParked })
	at := b.row(id, journal.MessageRequest, "work").NextAt
	require.NoError(b, b.s.HandBack(b.ctx(), l))
	row := b.row(id, journal.MessageRequest, "work")
	require.Equal(b, at, row.NextAt)
	require.Zero(b, row.Runs)
	require.Empty(b, row.Holder)
}

func agreeMarkers(b *bench) {
	clock, ok := b.s.Store.(Clock)
	if !ok {
		return // the test cannot wait for MarkerAge
	}
	c := b.committer()
	b.requested(c, one, "k")
	clock.Advance(store.MarkerAge + 1000)
	n, err := b.s.Prune(b.ctx(), 100)
	require.NoError(b, err)
	require.Positive(b, n)
}

func agreeKept(b *bench) {
	clock, ok := b.s.Store.(Clock)
	if !ok {
		return // the test cannot wait for SignalAge
	}
	s := b.signal("t", "k", "x")
	s.Keep = 2 * micros(store.SignalAge)
	require.Equal(b, store.SignalKept, b.tell(s).State)
	clock.Advance(store.SignalAge + 1000)
	n, err := b.s.Prune(b.ctx(), 10)
	require.NoError(b, err)
	require.Equal(b, 1, n, "the marker of its commit")
	require.True(b, b.tell(s).Duplicate, "it is still there")
}

// agreeToTombstone: a late message ends when it is handled; Expire removes only what the job
// left.
func agreeToTombstone(b *bench) {
	c := b.committer()
	was := b.tombstone(c, "k")
	other := b.jobs(1)[0]
	late := b.interruptOf(was.ID, "x")
	b.altered(c, other, inserts(late))
	b.expire(100)
	require.NotNil(b, b.stored(c, other, keyOf(&late)))
	b.discard(keyOf(&late))
	require.Nil(b, b.stored(c, other, keyOf(&late)))
}

func agreeLimits(b *bench) {
	require.NoError(b, b.s.DeadLetter(b.ctx(), collation.DeadLetter{Kind: journal.MessageLeg1, Reason: "foreign"}, nil))
	b.jobs(1)
	for _, limit := range []int{0, -1} { // the default
		letters, err := b.s.DeadLetters(b.ctx(), store.DeadFilter{Limit: limit})
		require.NoError(b, err)
		require.Len(b, letters, 1)
		got, err := b.s.Jobs(b.ctx(), store.JobFilter{Limit: limit})
		jobs := got.Jobs
		require.NoError(b, err)
		require.Len(b, jobs, 1)
	}
	_, err := b.s.DeadLetters(b.ctx(), store.DeadFilter{Limit: store.MaxPage + 1})
	require.ErrorIs(b, err, store.ErrRejected)
	_, err = b.s.Jobs(b.ctx(), store.JobFilter{Limit: store.MaxPage + 1})
	require.ErrorIs(b, err, store.ErrRejected)
	_, _, err = b.s.Due(b.ctx(), store.MaxSweep+1)
	require.ErrorIs(b, err, store.ErrRejected)
	_, err = b.s.Claim(b.ctx(), make([]store.Claim, store.MaxSweep+1))
	require.ErrorIs(b, err, store.ErrRejected)
	none, err := b.s.Claim(b.ctx(), nil)
	require.NoError(b, err)
	require.Empty(b, none)
}

func agreeTombstones(b *bench) {
	c, d := b.committer(), b.committer()
	was := b.tombstone(c, "k")
	b.start(b.deploy(one), "k")
	for _, c := range []store.Committer{c, d} {
		l, err := c.Load(b.ctx(), []store.Want{{Job: was.ID}}, false)
		require.NoError(b, err)
		require.Equal(b, map[journal.JobID]bool{was.ID: true}, l.Tombstones)
		require.Empty(b, l.Busy)
	}
	require.NoError(b, c.Rollback(b.ctx()))
	require.NoError(b, d.Rollback(b.ctx()))
}
