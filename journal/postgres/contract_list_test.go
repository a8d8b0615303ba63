package postgres

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/internal/store"
	"github.com/quipu-journal/quipu/internal/testkit/journaltest"
	"github.com/quipu-journal/quipu/journal"
)

// selects requires that a filter lists the jobs with these keys, newest first and in pages of any
// size, as they are, and counts them.
func (b *bench) selects(f store.JobFilter, want ...string) {
	b.Helper()
	for _, f.Limit = range []int{0, 1, 5} {
		keys, _ := b.listed(f)
		require.Equal(b, want, keys, "%+v", f)
	}
	states := map[journal.JobState]int64{}
	for _, key := range want {
		states[b.view(must(b.s.FindJob(b.ctx(), key))(b)).State]++
	}
	counts, _ := b.counted(f)
	require.Equal(b, states, counts, "%+v", f)
}

var _ = test("Lists", "pages cover the jobs, newest first", func(b *bench) {
	f := b.deploy(oneWorker)
	for batch := range 4 { // jobs of one batch may have the same start time
		var list []store.Start
		for i := range 6 {
			list = append(list, startOf(f, fmt.Sprint(batch, i), `{}`))
		}
		must(b.s.Start(b.ctx(), list, b.mode))(b)
	}
	all := must(b.lists.Jobs(b.ctx(), store.JobFilter{}))(b).Jobs
	require.Len(b, all, 24)
	require.True(b, slices.IsSortedFunc(all, func(x, y store.JobSummary) int {
		return cmp.Compare(y.Started, x.Started)
	}))
	require.Equal(b, all[5:], must(b.lists.Jobs(b.ctx(), store.JobFilter{Before: all[4].Cursor}))(b).Jobs)
	var keys []string
	for i := range all {
		keys = append(keys, all[i].Key)
		require.Equal(b, b.view(all[i].ID).JobSummary, all[i])
	}
	b.selects(store.JobFilter{}, keys...)
	require.Error(b, failed(b.lists.Jobs(b.ctx(), store.JobFilter{Before: "no cursor"})))
})

// counted counts the jobs of a filter, and says how many were looked at.
func (b *bench) counted(f store.JobFilter) (map[journal.JobState]int64, int) {
	b.Helper()
	counts, looked, err := b.lists.CountJobs(b.ctx(), f)
	require.NoError(b, err)
	return counts, int(looked)
}

var _ = test("Lists", "filters by state, flow and key", func(b *bench) {
	const done, open, forked, child = "order-1", "order-2", "invoice_1", "child-1"
	id := b.requested(oneWorker, done)
	b.answer(id, "work", journaltest.Success(`1`))
	parent := b.requested(oneWorker, open)
	from, to := b.view(parent).Started, b.view(b.requested(twoBranches, forked)).Started
	row := b.order(parent, 1, true)
	require.NoError(b, b.spawn(&row))
	isOpen, isDone := []journal.JobState{journal.JobOpen}, []journal.JobState{journal.JobCompleted}
	b.selects(store.JobFilter{}, child, forked, open, done)
	b.selects(store.JobFilter{States: isOpen}, child, forked, open)
	b.selects(store.JobFilter{States: isDone}, done)
	b.selects(store.JobFilter{States: []journal.JobState{journal.JobFailed}})
	b.selects(store.JobFilter{Flow: "fork"}, forked)
	b.selects(store.JobFilter{Flow: "on"})
	b.selects(store.JobFilter{Prefix: "order-"}, open, done)
	b.selects(store.JobFilter{Prefix: "invoice_"}, forked)
	for _, none := range []string{"rder", "order_", "%", `\`} {
		b.selects(store.JobFilter{Prefix: none})
	}
	b.selects(store.JobFilter{States: append(isDone, isOpen...), Flow: "one"}, child, open, done)
	b.selects(store.JobFilter{Version: "1", Flow: "fork"}, forked)
	b.selects(store.JobFilter{Version: "2"})
	b.selects(store.JobFilter{From: from}, child, forked, open)
	b.selects(store.JobFilter{To: from}, done)
	b.selects(store.JobFilter{From: b.view(id).Started, To: to}, open, done)
	b.selects(store.JobFilter{Parent: id})
	b.selects(store.JobFilter{Parent: parent}, child)
	b.selects(store.JobFilter{Prefix: "order", Flow: "one", States: isOpen}, open)
	_, looked := b.counted(store.JobFilter{Flow: "gone", From: from})
	require.EqualValues(b, 3, looked, "those of the time range")
	require.Equal(b, map[journal.JobState]int64{journal.JobOpen: 3, journal.JobCompleted: 1},
		must(b.lists.Counts(b.ctx()))(b))
	entries := b.chain(id, journal.MainChain)
	closing := slices.IndexFunc(entries, func(e *journal.Entry) bool {
		return slices.Contains(e.Marks, journal.MarkClosed)
	})
	require.EqualValues(b, entries[closing].Time, b.view(id).Closed, "as the journal tells it")
	require.Zero(b, b.view(parent).Closed)
})

var _ = test("Lists", "limits of pages, and the default one (T11)", func(b *bench) {
	require.Empty(b, must(b.lists.Flows(b.ctx()))(b))
	b.jobs(1)
	for _, limit := range []int{0, -1} { // the default
		require.Len(b, must(b.lists.Jobs(b.ctx(), store.JobFilter{Limit: limit}))(b).Jobs, 1)
	}
	require.ErrorIs(b, failed(b.lists.Jobs(b.ctx(), store.JobFilter{Limit: store.MaxPage + 1})), store.ErrRejected)
})

var _ = test("Lists", "jobs are found by their tags", func(b *bench) {
	f := b.deploy(oneWorker)
	tags := map[string][]string{"none": nil, "both": {"customer:42", "vip"}, "one": {"customer:42"}, "odd": {"a b", `c"d,{}\\`}}
	for _, key := range []string{"none", "both", "one", "odd"} {
		r := startOf(f, key, `{}`)
		r.Tags = tags[key]
		require.Equal(b, r.Tags, b.view(b.begin(r)[0]).Tags)
	}
	b.selects(store.JobFilter{Tags: []string{"customer:42"}}, "one", "both")
	b.selects(store.JobFilter{Tags: []string{"vip", "customer:42"}}, "both")
	b.selects(store.JobFilter{Tags: []string{`c"d,{}\\`}}, "odd")
	b.selects(store.JobFilter{Tags: []string{"customer"}})
	b.selects(store.JobFilter{Tags: []string{"vip", "a b"}})
	b.selects(store.JobFilter{Tags: []string{"customer:42"}, Prefix: "o"}, "one")
	_, looked := b.counted(store.JobFilter{Tags: []string{"customer:42"}, Prefix: "o"})
	require.EqualValues(b, 2, looked, "those with the tag")
})

var _ = test("Views", "a job's rows come by their entries, its waits by their age", func(b *bench) {
	id := b.jobs(1)[0]
	for _, n := range []int{9, 3, 7, 1, 5} {
		w := collation.Wait{GUID: guid(n), Topic: "t", Key: "k", Since: collation.Micros(100 - n)}
		row := collation.Row{GUID: guid(20 + n), Job: id, Kind: journal.MessageCycle, Activity: "work", DAD: ",0,0"}
		b.altered(id, waits(w), inserts(row))
		b.order(id, n, true)
	}
	v := b.view(id)
	require.Len(b, v.Rows, 11)
	require.True(b, slices.IsSortedFunc(v.Rows, func(x, y collation.Row) int {
		return cmp.Compare(x.Origin, y.Origin)
	}))
	require.Len(b, v.Waits, 5)
	require.True(b, slices.IsSortedFunc(v.Waits, func(x, y collation.Wait) int {
		return cmp.Compare(x.Since, y.Since)
	}))
})

func (b *bench) gauges() *store.Gauges {
	b.Helper()
	return must(b.lists.Gauges(b.ctx()))(b)
}

var _ = test("Lists", "gauges of what is open and late (O4)", func(b *bench) {
	require.Equal(b, &store.Gauges{
		Jobs: map[store.JobsOf]int64{}, Closed: map[store.JobsOf]int64{}, Running: map[string]store.Backlog{},
		Lost: map[string]store.LostRuns{}, Dead: map[string]int64{}, Processes: map[string]int64{},
	}, b.gauges(), "nothing is there")
	b.jobs(3) // their start rows are due
	b.finished("kept", b.now()+micros(hour))
	b.finished("expired", b.now()-micros(time.Minute))
	b.lease(b.request(b.requested(oneWorker, "held"), "work"), "w")
	late := b.request(b.requested(oneWorker, "late"), "work")
	b.rewrite(late, func(r *collation.Row, now collation.Micros) { r.NextAt = now - micros(hour) })
	b.altered(late.Job, func(p *collation.Plan, st *collation.State) {
		p.Insert = []collation.Row{{
			GUID: guid(1), Job: late.Job, Kind: journal.MessageWakeUp, Activity: "work", DAD: ",0,0", NextAt: st.Now,
		}}
	})
	for _, reason := range []string{"foreign", "foreign", "undecodable"} {
		require.NoError(b, b.s.DeadLetter(b.ctx(), collation.DeadLetter{Reason: reason}, nil))
	}
	b.open(store.Process{Name: "a", Lease: time.Minute, Roles: []string{"engine", "workers"}})
	b.open(store.Process{Name: "b", Lease: time.Minute, Roles: []string{"workers"}})

	g := b.gauges()
	require.Equal(b,
		map[store.JobsOf]int64{{Flow: "one", State: journal.JobOpen}: 5, {Flow: "one", State: journal.JobQuarantined}: 0}, g.Jobs)
	require.Equal(b, map[store.JobsOf]int64{{Flow: "one", State: journal.JobCompleted}: 2}, g.Closed, "a small table is counted")
	require.Len(b, g.Running, 1)
	require.EqualValues(b, 1, g.Running["t.work"].N)
	require.Less(b, g.Running["t.work"].Age, time.Minute)
	require.Empty(b, g.Lost)
	require.Equal(b, map[string]int64{"foreign": 2, "undecodable": 1}, g.Dead)
	require.Equal(b, map[string]int64{"engine": 1, "workers": 2}, g.Processes)
	require.Equal(b, []int64{int64(len(b.due(100))), 1, 1}, []int64{g.Overdue.N, g.Timers.N, g.Expired.N})
	require.InDelta(b, hour, g.Overdue.Age, float64(time.Minute))
	require.Less(b, g.Timers.Age, time.Minute)
	require.InDelta(b, time.Minute, g.Expired.Age, float64(50*time.Second))

	held := must(b.s.FindJob(b.ctx(), "held"))(b)
	b.rewrite(b.request(held, "work"), func(r *collation.Row, _ collation.Micros) { r.Runs = 4 })
	b.rewrite(late, func(r *collation.Row, _ collation.Micros) { r.Runs = 2 })
	require.Equal(b, map[string]store.LostRuns{"t.work": {N: 2, Most: 3, Job: held}}, b.gauges().Lost, "the run that lasts is not lost")
	awaited := must(b.lists.Awaited(b.ctx(), []journal.JobID{held, late.Job}))(b)
	require.Equal(b, []int{3, 2}, []int{awaited[held][0].Lost, awaited[late.Job][0].Lost})
})

var _ = test("Lists", "gauges of quarantined jobs (O4)", func(b *bench) {
	id := b.quarantined()
	g := b.gauges()
	require.EqualValues(b, 1, g.Jobs[store.JobsOf{Flow: b.view(id).Flow.Name, State: journal.JobQuarantined}])
	b.rewrite(b.request(id, "work"), func(r *collation.Row, now collation.Micros) { r.NextAt = now })
	require.Zero(b, b.gauges().Overdue, "its rows wait for a person")
	require.Empty(b, b.due(10), "the sweeper leaves it alone (C16)")
})

// ending returns how one job ended. It also checks that Ended agrees.
func (b *bench) ending(id journal.JobID) store.Outcome {
	b.Helper()
	o, there := must(b.s.Outcomes(b.ctx(), []journal.JobID{id}))(b)[id]
	require.True(b, there)
	require.Equal(b, map[journal.JobID]bool{id: o.Over()}, must(b.s.Ended(b.ctx(), []journal.JobID{id}))(b))
	return o
}

var _ = test("Views", "how jobs ended (W5)", func(b *bench) {
	ids := map[string]journal.JobID{"gone": b.tombstone("gone").ID}
	for _, key := range []string{"open", "failed", "quarantined"} {
		ids[key] = b.requested(twoBranches, key)
	}
	ids["done"], ids["again"] = b.requested(oneWorker, "done"), b.start(b.deploy(oneWorker), "gone")
	b.answer(ids["failed"], "left", failure(journal.ResponseTerminal, "declined"))
	b.answer(ids["done"], "work", journaltest.Success(`{"n":7}`))
	b.quarantine(ids["quarantined"])
	v := b.view(ids["failed"])
	require.Equal(b, "declined", v.Error.Message)
	want := map[journal.JobID]store.Outcome{}
	for key, o := range map[string]store.Outcome{
		"open":        {Key: "open", State: journal.JobOpen},
		"again":       {Key: "gone", State: journal.JobOpen},
		"gone":        {Key: "gone", State: journal.JobExpired, Ended: true},
		"quarantined": {Key: "quarantined", State: journal.JobQuarantined}, // nobody waits for it (J1)
		"failed":      {Key: "failed", State: journal.JobFailed, Ended: true, Code: collation.CodeInternal, Error: v.Error},
		"done":        {Key: "done", State: journal.JobCompleted, Ended: true, Code: collation.CodeOK, Output: []byte(`{"got":{"n":7}}`)},
	} {
		want[ids[key]] = o
		require.Equal(b, o, b.ending(ids[key]))
	}
	asked := []journal.JobID{{1}} // unknown ids are absent
	for id := range want {
		asked = append(asked, id, id)
	}
	require.Equal(b, want, must(b.s.Outcomes(b.ctx(), asked))(b))
})

var _ = test("Views", "a closed job has not ended before its completion tasks (W5)", func(b *bench) {
	b.mode.Stepwise = true
	for key, with := range map[string]*journal.Response{
		"well": journaltest.Success(`{"n":7}`), "ill": failure(journal.ResponseTerminal, "declined"),
	} {
		r := b.request(b.requested(oneWorker, key), "work")
		m, closed := journaltest.Response(&r, with), 0
		for done := false; !done; {
			done = must(b.once(m))(b).Done
			v, o := b.view(r.Job), b.ending(r.Job)
			require.Equal(b, v.Ended, o.Ended)
			if v.State.Closed() && !v.Ended {
				closed++
				require.Equal(b, store.Outcome{Key: key, State: v.State}, o)
			}
		}
		require.Equal(b, 1, closed)
		v := b.view(r.Job)
		require.Equal(b, store.Outcome{
			Key: key, State: v.State, Ended: true, Code: v.Code, Error: v.Error, Output: v.Output,
		}, b.ending(r.Job))
	}
})

var _ = test("Views", "what is not there is not found", func(b *bench) {
	ctx, id := b.ctx(), journal.JobID{1}
	for name, call := range map[string]func() error{
		"key": func() error { _, err := b.s.FindJob(ctx, "nobody"); return err },
		"job": func() error { _, err := b.s.Job(ctx, id); return err },
		"payload": func() error {
			return failed(b.lists.Payload(ctx, id, digest(1)))
		},
		"audit":    func() error { return b.s.Audit(ctx, id, nil) },
		"version":  func() error { _, err := b.s.Flow(ctx, "f", "1"); return err },
		"flow":     func() error { _, _, err := b.s.ActiveFlow(ctx, "f"); return err },
		"activate": func() error { return b.s.Activate(ctx, "f", "1", "") },
	} {
		require.ErrorIs(b, call(), store.ErrNotFound, name)
	}
	require.Empty(b, must(b.s.Ended(ctx, []journal.JobID{id}))(b))
	require.Empty(b, must(b.s.JobEffects(ctx, id))(b))
})

// waiters: two hooks and an await.
const waiters = `
flow: waiters
version: "1"
activities:
  start: {type: trigger}
  ask: {type: hook, signal: go.on, key: "${ job.id }"}
  rest: {type: hook, sleep: 1h}
  child: {type: await, flow: one, input: {n: 1}}
transitions:
  start: [ask, rest, child]
`

// listed are the jobs of a filter, page after page, and how many pages that were.
func (b *bench) listed(f store.JobFilter) (keys []string, pages int) {
	b.Helper()
	for {
		page := must(b.lists.Jobs(b.ctx(), f))(b)
		for i := range page.Jobs {
			keys = append(keys, page.Jobs[i].Key)
		}
		pages++
		if page.Searched != 0 {
			require.NotEmpty(b, page.Next)
		}
		if page.Next == "" {
			return keys, pages
		}
		f.Before = page.Next
	}
}

// begun begins a job and its activities, and handles nothing that they wait for.
func (b *bench) begun(id journal.JobID) {
	b.Helper()
	for handled := true; handled; {
		handled = false
		for _, r := range b.view(id).Rows {
			if handled = r.Kind == journal.MessageLeg1 || r.Kind == journal.MessageStart && r.Sender.IsZero(); handled {
				b.must(journaltest.Message(&r))
				break
			}
		}
	}
}

// O7: only open jobs wait, and each for what its rows and waits say.
var _ = test("Lists", "filters by what jobs wait for", func(b *bench) {
	b.requested(oneWorker, "works")
	parked := b.requested(oneWorker, "parked")
	b.answer(parked, "work",
		&journal.Response{Kind: journal.ResponseParked, Attempt: 1, Error: &journal.Failure{Class: "parked", Message: "who knows"}})
	done := b.requested(oneWorker, "done")
	b.answer(done, "work", journaltest.Success(`1`))
	b.begun(b.start(b.deploy(waiters), "waits"))
	b.deploy(oneWorker)
	for n, key := range []string{"parent", "starter"} { // the one awaits its child, the other does not
		row := b.order(b.start(b.flows["one 1"], key), n, n == 0)
		require.NoError(b, b.spawn(&row))
	}
	for waits, want := range map[string][]string{
		"topic": {"works"}, "topic:t.work": {"works"}, "topic:t.other": nil, "person": {"parked"},
		"signal": {"waits"}, "signal:go.on": {"waits"}, "signal:go": nil, "timer": {"waits"}, "child": {"parent", "waits"},
	} {
		b.selects(store.JobFilter{Waits: waits}, want...)
		b.selects(store.JobFilter{Waits: waits, States: []journal.JobState{journal.JobOpen, journal.JobFailed}},
			want...)
		b.selects(store.JobFilter{Waits: waits, Look: 1}, want...)
		b.selects(store.JobFilter{Waits: waits, States: []journal.JobState{journal.JobCompleted}})
		b.selects(store.JobFilter{Waits: waits, Flow: "gone"})
	}
	var ids []journal.JobID
	for _, key := range []string{"works", "parked", "done", "waits", "parent", "starter"} {
		ids = append(ids, must(b.s.FindJob(b.ctx(), key))(b))
	}
	told := map[string][]string{}
	for id, all := range must(b.lists.Awaited(b.ctx(), ids))(b) {
		key := b.view(id).Key
		for _, x := range all {
			if x.What != "" {
				told[key] = append(told[key], strings.TrimRight(x.What+":"+x.Activity+":"+x.Topic+":"+x.Key, ":"))
			}
		}
		slices.Sort(told[key])
	}
	require.Equal(b, map[string][]string{
		"works": {"topic:work:t.work"}, "parked": {"person:work:t.work"},
		"waits": {"child", "signal:ask:go.on:waits", "timer:rest"}, "parent": {"child:work"},
	}, told)
	for _, waits := range []string{"nothing", "timer:x", "topic:", ":"} {
		require.ErrorIs(b, failed(b.lists.Jobs(b.ctx(), store.JobFilter{Waits: waits})), store.ErrRejected, waits)
		_, _, err := b.lists.CountJobs(b.ctx(), store.JobFilter{Waits: waits})
		require.ErrorIs(b, err, store.ErrRejected, waits)
	}
})

// O7: the flows whose jobs failed are told, with how many of those that nobody has resumed did so lately.
var _ = test("Lists", "says which flows fail", func(b *bench) {
	var last collation.Micros
	for _, key := range []string{"first", "second", "third"} {
		id := b.requested(oneWorker, key)
		if key == "third" {
			b.answer(id, "work", journaltest.Success(`1`))
			continue
		}
		failed := &journal.Failure{Class: "x", Message: "no"}
		b.answer(id, "work", &journal.Response{Kind: journal.ResponseTerminal, Attempt: 1, Code: 500, Error: failed})
		require.Equal(b, journal.JobFailed, b.view(id).State)
		last = must(b.lists.Jobs(b.ctx(), store.JobFilter{Prefix: key}))(b).Jobs[0].Closed
	}
	require.Equal(b, []store.Failing{{Flow: "one", N: 2, Last: last}}, must(b.lists.Failing(b.ctx(), 0))(b))
	require.Equal(b, int64(1), must(b.lists.Failing(b.ctx(), last))(b)[0].N)
	require.Empty(b, must(b.lists.Failing(b.ctx(), last+1))(b))
})

// O7: a page ends where it has looked at so many jobs, and the next goes on there. A filter that an
// index answers alone looks at nothing else.
var _ = test("Lists", "pages end where much was looked at", func(b *bench) {
	var all, open []string
	for n := range 7 {
		key := fmt.Sprintf("job-%d", n)
		id := b.requested(oneWorker, key)
		if all = append([]string{key}, all...); n%3 == 0 {
			open = append([]string{key}, open...)
			continue
		}
		b.answer(id, "work", journaltest.Success(`1`))
	}
	for _, k := range []struct {
		filter store.JobFilter
		want   []string
		pages  int
	}{
		{store.JobFilter{}, all, 1},
		{store.JobFilter{Flow: "one"}, all, 4},
		{store.JobFilter{Flow: "gone"}, nil, 4},
		{store.JobFilter{Prefix: "job-0"}, []string{"job-0"}, 4},
		{store.JobFilter{States: []journal.JobState{journal.JobExpired}}, nil, 4},
		{store.JobFilter{States: []journal.JobState{journal.JobOpen}}, open, 1},
		{store.JobFilter{States: []journal.JobState{journal.JobOpen}, Flow: "one"}, open, 1},
		{store.JobFilter{States: []journal.JobState{journal.JobOpen}, Version: "2"}, nil, 2},
		{store.JobFilter{States: []journal.JobState{journal.JobFailed}}, nil, 1},
		{store.JobFilter{Waits: "topic:gone"}, nil, 2},
	} {
		k.filter.Look = 2
		keys, pages := b.listed(k.filter)
		require.Equal(b, k.want, keys, "%+v", k.filter)
		require.Equal(b, k.pages, pages, "%+v", k.filter)
	}
	page := must(b.lists.Jobs(b.ctx(), store.JobFilter{Flow: "gone", Look: 2}))(b)
	second := must(b.s.FindJob(b.ctx(), all[1]))(b)
	require.Equal(b, b.view(second).Started, page.Searched)
})
