package journaltest

import (
	"fmt"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/journal/store"
)

func (b *bench) gauges() *store.Gauges {
	b.Helper()
	g, err := b.s.Gauges(b.ctx())
	require.NoError(b, err)
	return g
}

func listGauges(b *bench) {
	require.Equal(b, &store.Gauges{
		Jobs: map[store.JobsOf]int64{}, Closed: map[store.JobsOf]int64{}, Running: map[string]int64{}, Dead: map[string]int64{}, Processes: map[string]int64{},
	}, b.gauges(), "nothing is there")
	c := b.committer()
	f := b.deploy(one)
	for i := range 3 {
		b.start(f, fmt.Sprint(i)) // their start rows are due
	}
	b.finished(c, "kept", b.now(c)+collation.Micros(time.Hour.Microseconds()))
	b.finished(c, "expired", b.now(c)-collation.Micros(time.Minute.Microseconds()))
	held := b.row(b.requested(c, one, "held"), journal.MessageRequest, "work")
	b.lease(held, "w")
	late := b.requested(c, one, "late")
	b.rewrite(c, late, b.row(late, journal.MessageRequest, "work"), func(r *collation.Row, now collation.Micros) {
		r.NextAt = now - collation.Micros(time.Hour.Microseconds())
	})
	b.altered(c, late, func(p *collation.Plan, st *collation.State) {
		p.Insert = []collation.Row{{GUID: guid(1), Job: late, Kind: journal.MessageWakeUp, Activity: "work", DAD: ",0,0", NextAt: st.Now}}
	})
	for range 2 {
		require.NoError(b, b.s.DeadLetter(b.ctx(), collation.DeadLetter{Reason: "foreign"}, nil))
	}
	require.NoError(b, b.s.DeadLetter(b.ctx(), collation.DeadLetter{Reason: "undecodable"}, nil))
	b.open(store.Process{Name: "a", Lease: time.Minute, Roles: []string{"engine", "workers"}})
	b.open(store.Process{Name: "b", Lease: time.Minute, Roles: []string{"workers"}})

	g := b.gauges()
	require.Equal(b, map[store.JobsOf]int64{{Flow: f.Name(), State: journal.JobOpen}: 5, {Flow: f.Name(), State: journal.JobQuarantined}: 0}, g.Jobs)
	require.Equal(b, map[store.JobsOf]int64{{Flow: f.Name(), State: journal.JobCompleted}: 2}, g.Closed, "a small table is counted")
	require.Equal(b, map[string]int64{"t.work": 1}, g.Running)
	require.Equal(b, map[string]int64{"foreign": 2, "undecodable": 1}, g.Dead)
	require.Equal(b, map[string]int64{"engine": 1, "workers": 2}, g.Processes)
	due, _, err := b.s.Due(b.ctx(), 100)
	require.NoError(b, err)
	require.EqualValues(b, len(due), g.Overdue.N)
	require.InDelta(b, time.Hour, g.Overdue.Age, float64(time.Minute))
	require.EqualValues(b, 1, g.Timers.N)
	require.Less(b, g.Timers.Age, time.Minute)
	require.EqualValues(b, 1, g.Expired.N)
	require.InDelta(b, time.Minute, g.Expired.Age, float64(50*time.Second))
}

func listGaugesQuarantined(b *bench) {
	id := b.quarantined()
	g := b.gauges()
	require.EqualValues(b, 1, g.Jobs[store.JobsOf{Flow: b.view(id).Flow.Name, State: journal.JobQuarantined}])
	require.Zero(b, g.Overdue, "its rows wait for a person")
}
