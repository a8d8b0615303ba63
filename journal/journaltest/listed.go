package journaltest

import (
	"fmt"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/journal/store"
)

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
		page, err := b.s.Jobs(b.ctx(), f)
		require.NoError(b, err)
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
				b.must(Message(&r))
				break
			}
		}
	}
}

// O7: only open jobs wait, and each for what its rows and waits say.
func listWaits(b *bench) {
	b.requested(one, "works")
	parked := b.requested(one, "parked")
	b.answer(parked, "work", &journal.Response{Kind: journal.ResponseParked, Attempt: 1, Error: &journal.Failure{Class: "parked", Message: "who knows"}})
	done := b.requested(one, "done")
	b.answer(done, "work", success(`1`))
	b.begun(b.start(b.deploy(waiters), "waits"))
	b.deploy(one)
	for n, key := range []string{"parent", "starter"} { // the one awaits its child, the other does not
		row := b.order(b.start(b.flows["one 1"], key), n, n == 0)
		require.NoError(b, b.spawn(&row, nil))
	}
	for waits, want := range map[string][]string{
		"topic": {"works"}, "topic:t.work": {"works"}, "topic:t.other": nil, "person": {"parked"},
		"signal": {"waits"}, "signal:go.on": {"waits"}, "signal:go": nil, "timer": {"waits"}, "child": {"parent", "waits"},
	} {
		for _, f := range []store.JobFilter{{Waits: waits}, {Waits: waits, States: []journal.JobState{journal.JobOpen, journal.JobFailed}}, {Waits: waits, Look: 1}} {
			keys, _ := b.listed(f)
			require.Equal(b, want, keys, "%+v", f)
		}
		keys, _ := b.listed(store.JobFilter{Waits: waits, States: []journal.JobState{journal.JobCompleted}})
		require.Empty(b, keys)
		keys, _ = b.listed(store.JobFilter{Waits: waits, Flow: "gone"})
		require.Empty(b, keys)
		counts, _, err := b.s.CountJobs(b.ctx(), store.JobFilter{Waits: waits})
		require.NoError(b, err)
		require.EqualValues(b, len(want), counts[journal.JobOpen], waits)
		require.LessOrEqual(b, len(counts), 1)
	}
	for _, waits := range []string{"nothing", "timer:x", "topic:", ":"} {
		_, err := b.s.Jobs(b.ctx(), store.JobFilter{Waits: waits})
		require.ErrorIs(b, err, store.ErrRejected, waits)
		_, _, err = b.s.CountJobs(b.ctx(), store.JobFilter{Waits: waits})
		require.ErrorIs(b, err, store.ErrRejected, waits)
	}
}

// O7: a page ends where it has looked at so many jobs, and the next goes on there. A filter that an
// index answers alone looks at nothing else.
func listLooks(b *bench) {
	var all, open []string
	for n := range 7 {
		key := fmt.Sprintf("job-%d", n)
		id := b.requested(one, key)
		if all = append([]string{key}, all...); n%3 == 0 {
			open = append([]string{key}, open...)
			continue
		}
		b.answer(id, "work", success(`1`))
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
	page, err := b.s.Jobs(b.ctx(), store.JobFilter{Flow: "gone", Look: 2})
	require.NoError(b, err)
	second, err := b.s.FindJob(b.ctx(), all[1])
	require.NoError(b, err)
	require.Equal(b, b.view(second).Started, page.Searched)
}
