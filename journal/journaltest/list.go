package journaltest

import (
	"fmt"
	"sync/atomic"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/flow"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/journal/store"
)

var flows = map[string]func(*bench){
	"a version is deployed once (5.1)":                flowDeploy,
	"other content under a version is refused (5.1)":  flowTaken,
	"the first version is active, then the activated": flowActivate,
	"what is not deployed is not found":               flowUnknown,
	"deploying at once: one is fresh (T8)":            flowRace,
	"the space has an epoch (T4)":                     flowEpoch,
	"the space says how long jobs are kept (W11)":     flowExpire,
}

var lists = map[string]func(*bench){
	"pages cover the jobs, newest first":   listPages,
	"filters by state, flow and key":       listFilters,
	"filters by what jobs wait for":        listWaits,
	"pages end where much was looked at":   listLooks,
	"jobs are counted by state":            listCounts,
	"gauges of what is open and late (O4)": listGauges,
	"gauges of quarantined jobs (O4)":      listGaugesQuarantined,
	"jobs are found by their tags":         listTags,
	"a delayed start is due at its time":   listDelayed,
}

func digest(n byte) journal.Digest { return journal.Digest{n} }

func flowDeploy(b *bench) {
	r := journal.FlowRef{Name: "f", Version: "1", Digest: digest(1)}
	fresh, err := b.s.Deploy(b.ctx(), r, []byte(`{"a":1}`), false)
	require.NoError(b, err)
	require.True(b, fresh)
	fresh, err = b.s.Deploy(b.ctx(), r, []byte(`{"a":1}`), false)
	require.NoError(b, err)
	require.False(b, fresh, "the same content again changes nothing")
	got, err := b.s.Flow(b.ctx(), "f", "1")
	require.NoError(b, err)
	require.Equal(b, `{"a":1}`, string(got))
	list, err := b.s.Flows(b.ctx())
	require.NoError(b, err)
	require.Len(b, list, 1)
	require.Equal(b, r, list[0].Ref)
	require.True(b, list[0].Active)
	require.Positive(b, list[0].Deployed)
}

func flowTaken(b *bench) {
	_, err := b.s.Deploy(b.ctx(), journal.FlowRef{Name: "f", Version: "1", Digest: digest(1)}, []byte(`1`), false)
	require.NoError(b, err)
	_, err = b.s.Deploy(b.ctx(), journal.FlowRef{Name: "f", Version: "1", Digest: digest(2)}, []byte(`2`), false)
	require.ErrorIs(b, err, store.ErrVersionTaken)
	got, err := b.s.Flow(b.ctx(), "f", "1")
	require.NoError(b, err)
	require.Equal(b, `1`, string(got))
}

// flowExpire sets how long jobs are kept whose flow does not say it (W11).
func flowExpire(b *bench) {
	for _, d := range []time.Duration{0, flow.MinExpire, flow.MinExpire + 1, 720 * time.Hour, flow.MaxExpire} {
		require.NoError(b, b.s.SetExpireDefault(b.ctx(), d))
		got, err := b.s.ExpireDefault(b.ctx())
		require.NoError(b, err)
		require.Equal(b, d.Truncate(time.Microsecond), got)
	}
	for _, d := range []time.Duration{-1, 1, flow.MinExpire - 1, flow.MaxExpire + 1} {
		require.ErrorIs(b, b.s.SetExpireDefault(b.ctx(), d), store.ErrRejected)
	}
	got, err := b.s.ExpireDefault(b.ctx())
	require.NoError(b, err)
	require.Equal(b, flow.MaxExpire, got)
}

func flowActivate(b *bench) {
	for i, version := range []string{"1", "2", "10"} {
		_, err := b.s.Deploy(b.ctx(), journal.FlowRef{Name: "f", Version: version, Digest: digest(byte(i))}, fmt.Append(nil, i), false)
		require.NoError(b, err)
		active, _, err := b.s.ActiveFlow(b.ctx(), "f")
		require.NoError(b, err)
		require.Equal(b, "1", active.Version, "this deploy does not activate")
	}
	require.NoError(b, b.s.Activate(b.ctx(), "f", "10"))
	active, canonical, err := b.s.ActiveFlow(b.ctx(), "f")
	require.NoError(b, err)
	require.Equal(b, journal.FlowRef{Name: "f", Version: "10", Digest: digest(2)}, active)
	require.Equal(b, `2`, string(canonical))
	list, err := b.s.Flows(b.ctx())
	require.NoError(b, err)
	require.Len(b, list, 3)
	for _, f := range list {
		require.Equal(b, f.Ref.Version == "10", f.Active)
	}
	for range 2 {
		_, err = b.s.Deploy(b.ctx(), journal.FlowRef{Name: "f", Version: "11", Digest: digest(11)}, []byte("11"), true)
		require.NoError(b, err)
		active, _, err = b.s.ActiveFlow(b.ctx(), "f")
		require.NoError(b, err)
		require.Equal(b, "11", active.Version, "a new one is active at once")
	}
	require.NoError(b, b.s.Activate(b.ctx(), "f", "10"))
	_, err = b.s.Deploy(b.ctx(), journal.FlowRef{Name: "f", Version: "11", Digest: digest(11)}, []byte("11"), true)
	require.NoError(b, err)
	active, _, err = b.s.ActiveFlow(b.ctx(), "f")
	require.NoError(b, err)
	require.Equal(b, "10", active.Version, "one that was there takes nothing back")
	require.ErrorIs(b, b.s.Activate(b.ctx(), "f", "3"), store.ErrNotFound)
	active, _, err = b.s.ActiveFlow(b.ctx(), "f")
	require.NoError(b, err)
	require.Equal(b, "10", active.Version)
}

func flowUnknown(b *bench) {
	_, err := b.s.Flow(b.ctx(), "f", "1")
	require.ErrorIs(b, err, store.ErrNotFound)
	_, _, err = b.s.ActiveFlow(b.ctx(), "f")
	require.ErrorIs(b, err, store.ErrNotFound)
	require.ErrorIs(b, b.s.Activate(b.ctx(), "f", "1"), store.ErrNotFound)
	list, err := b.s.Flows(b.ctx())
	require.NoError(b, err)
	require.Empty(b, list)
}

func flowRace(b *bench) {
	var fresh atomic.Int64
	together(6, func(int) {
		r := journal.FlowRef{Name: "f", Version: "1", Digest: digest(1)}
		ok, err := b.s.Deploy(b.ctx(), r, []byte(`1`), false)
		if err != nil {
			b.Errorf("deploy: %v", err)
		}
		if ok {
			fresh.Add(1)
		}
	})
	require.Equal(b, int64(1), fresh.Load())
}

func flowEpoch(b *bench) {
	epoch, err := b.s.Epoch(b.ctx())
	require.NoError(b, err)
	require.Positive(b, epoch)
	require.NoError(b, b.s.Migrate(b.ctx()), "migrating again changes nothing")
	again, err := b.s.Epoch(b.ctx())
	require.NoError(b, err)
	require.Equal(b, epoch, again)
}

func listPages(b *bench) {
	f := b.deploy(one)
	for batch := range 4 { // jobs of one batch may have the same start time
		var list []store.Start
		for i := range 6 {
			list = append(list, request(f, fmt.Sprint(batch, i), `{}`))
		}
		_, err := b.s.Start(b.ctx(), list, b.mode)
		require.NoError(b, err)
	}
	got, err := b.s.Jobs(b.ctx(), store.JobFilter{})
	all := got.Jobs
	require.NoError(b, err)
	require.Len(b, all, 24)
	for i := 1; i < len(all); i++ {
		require.GreaterOrEqual(b, all[i-1].Started, all[i].Started)
	}
	for _, limit := range []int{1, 5, 24, 100} {
		var paged []store.JobSummary
		before := ""
		for {
			got, err := b.s.Jobs(b.ctx(), store.JobFilter{Limit: limit, Before: before})
			page := got.Jobs
			require.NoError(b, err)
			if len(page) == 0 {
				break
			}
			require.LessOrEqual(b, len(page), limit)
			paged = append(paged, page...)
			before = page[len(page)-1].Cursor
		}
		require.Equal(b, all, paged, "pages of %d", limit)
	}
	_, err = b.s.Jobs(b.ctx(), store.JobFilter{Before: "no cursor"})
	require.Error(b, err)
}

func listFilters(b *bench) {
	c := b.committer()
	done := b.requested(c, one, "order-1")
	b.answer(c, done, "work", success(`1`))
	open := b.requested(c, one, "order-2")
	forked := b.requested(c, fork, "invoice_1")
	started := func(id journal.JobID) collation.Micros { return b.view(id).Started }
	for _, k := range []struct {
		filter store.JobFilter
		want   []journal.JobID
	}{
		{store.JobFilter{}, []journal.JobID{forked, open, done}},
		{store.JobFilter{States: []journal.JobState{journal.JobOpen}}, []journal.JobID{forked, open}},
		{store.JobFilter{States: []journal.JobState{journal.JobCompleted}}, []journal.JobID{done}},
		{store.JobFilter{States: []journal.JobState{journal.JobFailed}}, nil},
		{store.JobFilter{Flow: "one"}, []journal.JobID{open, done}},
		{store.JobFilter{Flow: "on"}, nil},
		{store.JobFilter{Prefix: "order-"}, []journal.JobID{open, done}},
		{store.JobFilter{Prefix: "order-2"}, []journal.JobID{open}},
		{store.JobFilter{Prefix: "rder"}, nil},
		{store.JobFilter{Prefix: "invoice_"}, []journal.JobID{forked}},
		{store.JobFilter{Prefix: "order_"}, nil},
		{store.JobFilter{Prefix: "%"}, nil},
		{store.JobFilter{Prefix: `\`}, nil},
		{store.JobFilter{States: []journal.JobState{journal.JobCompleted, journal.JobOpen}, Flow: "one"}, []journal.JobID{open, done}},
		{store.JobFilter{Version: "1", Flow: "fork"}, []journal.JobID{forked}},
		{store.JobFilter{Version: "2"}, nil},
		{store.JobFilter{From: started(open)}, []journal.JobID{forked, open}},
		{store.JobFilter{To: started(open)}, []journal.JobID{done}},
		{store.JobFilter{From: started(done), To: started(forked)}, []journal.JobID{open, done}},
		{store.JobFilter{Parent: done}, nil},
		{store.JobFilter{Prefix: "order", Flow: "one", States: []journal.JobState{journal.JobOpen}}, []journal.JobID{open}},
	} {
		listed, err := b.s.Jobs(b.ctx(), k.filter)
		page := listed.Jobs
		require.NoError(b, err)
		var got []journal.JobID
		for _, j := range page {
			got = append(got, j.ID)
			require.Equal(b, b.view(j.ID).JobSummary, j)
			require.Equal(b, j.ID == done, j.Closed != 0)
		}
		require.Equal(b, k.want, got, "%+v", k.filter)
		counts, _, err := b.s.CountJobs(b.ctx(), k.filter)
		require.NoError(b, err)
		all := map[journal.JobState]int64{}
		for i := range page {
			all[page[i].State]++
		}
		require.Equal(b, all, counts, "%+v", k.filter)
	}
	_, looked, err := b.s.CountJobs(b.ctx(), store.JobFilter{Flow: "gone", From: started(open)})
	require.NoError(b, err)
	require.EqualValues(b, 2, looked, "those of the time range")
}

func listCounts(b *bench) {
	counts, err := b.s.Counts(b.ctx())
	require.NoError(b, err)
	require.Zero(b, counts[journal.JobOpen])
	c := b.committer()
	f := b.deploy(one)
	for i := range 5 {
		b.start(f, fmt.Sprint(i))
	}
	id := b.requested(c, one, "done")
	b.answer(c, id, "work", success(`1`))
	counts, err = b.s.Counts(b.ctx())
	require.NoError(b, err)
	require.Equal(b, int64(5), counts[journal.JobOpen])
	require.Equal(b, int64(1), counts[journal.JobCompleted])
	require.Zero(b, counts[journal.JobFailed])
}

func listTags(b *bench) {
	f := b.deploy(one)
	ids := map[string]journal.JobID{}
	for key, tags := range map[string][]string{"none": nil, "both": {"customer:42", "vip"}, "one": {"customer:42"}, "odd": {"a b", `c"d,{}\\`}} {
		r := request(f, key, `{}`)
		r.Tags = tags
		out, err := b.s.Start(b.ctx(), []store.Start{r}, b.mode)
		require.NoError(b, err)
		require.NoError(b, out[0].Err)
		ids[key] = out[0].Job
		require.Equal(b, tags, b.view(out[0].Job).Tags)
	}
	for _, c := range []struct {
		tags []string
		want []string
	}{
		{[]string{"customer:42"}, []string{"both", "one"}},
		{[]string{"vip", "customer:42"}, []string{"both"}},
		{[]string{`c"d,{}\\`}, []string{"odd"}},
		{[]string{"customer"}, nil},
		{[]string{"vip", "a b"}, nil},
	} {
		listed, err := b.s.Jobs(b.ctx(), store.JobFilter{Tags: c.tags})
		page := listed.Jobs
		require.NoError(b, err)
		var got []string
		for i := range page {
			got = append(got, page[i].Key)
		}
		require.ElementsMatch(b, c.want, got, "%v", c.tags)
	}
	counts, looked, err := b.s.CountJobs(b.ctx(), store.JobFilter{Tags: []string{"customer:42"}, Prefix: "o"})
	require.NoError(b, err)
	require.Equal(b, map[journal.JobState]int64{journal.JobOpen: 1}, counts)
	require.EqualValues(b, 2, looked, "those with the tag")
	got, err := b.s.Jobs(b.ctx(), store.JobFilter{Tags: []string{"customer:42"}, Limit: 1})
	page := got.Jobs
	require.NoError(b, err)
	require.Len(b, page, 1)
	more, err := b.s.Jobs(b.ctx(), store.JobFilter{Tags: []string{"customer:42"}, Before: page[0].Cursor})
	rest := more.Jobs
	require.NoError(b, err)
	require.Len(b, rest, 1)
	require.NotEqual(b, page[0].Key, rest[0].Key)
}

func listDelayed(b *bench) {
	r := request(b.deploy(one), "later", `{}`)
	r.Delay = time.Hour
	out, err := b.s.Start(b.ctx(), []store.Start{r}, b.mode)
	require.NoError(b, err)
	v := b.view(out[0].Job)
	require.Len(b, v.Rows, 1)
	require.Equal(b, v.Started+3_600_000_000, v.Rows[0].NextAt)
	require.Zero(b, v.Rows[0].Publication)
	due, _, err := b.s.Due(b.ctx(), 10)
	require.NoError(b, err)
	require.Empty(b, due)

	past := request(b.deploy(one), "past", `{}`)
	past.At = v.Started - 1
	out, err = b.s.Start(b.ctx(), []store.Start{past}, b.mode)
	require.NoError(b, err)
	v = b.view(out[0].Job)
	require.Equal(b, v.Started, v.Rows[0].NextAt, "a time that has passed is now")
}
