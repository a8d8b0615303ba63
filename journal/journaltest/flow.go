package journaltest

import (
	"sync/atomic"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/flow"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/journal/store"
)

var flows = cases{
	"a version is deployed once, with one content (5.1)":       flowDeploy,
	"the first version is active, then the activated":          flowActivate,
	"deploying at once: one is fresh (T8)":                     flowRace,
	"the space has an epoch (T4)":                              flowEpoch,
	"the space says how long jobs are kept (W11)":              flowExpire,
	"active versions, by name, from their activation on (5.1)": scheduleList,
	"schedulers at once: one moves it (C3, T8)":                scheduleRace,
}

func digest(n byte) journal.Digest { return journal.Digest{n} }

// version deploys content under a name and version, and says whether it was new.
func (b *bench) version(name, version string, content byte, activate bool) (bool, error) {
	return b.s.Deploy(b.ctx(), journal.FlowRef{Name: name, Version: version, Digest: digest(content)}, []byte{content}, activate)
}

func flowDeploy(b *bench) {
	require.True(b, got(b.version("f", "1", '1', false))(b))
	require.False(b, got(b.version("f", "1", '1', false))(b), "the same content again changes nothing")
	_, err := b.version("f", "1", '2', false)
	require.ErrorIs(b, err, store.ErrVersionTaken)
	require.Equal(b, `1`, string(got(b.s.Flow(b.ctx(), "f", "1"))(b)))
	list := got(b.s.Flows(b.ctx()))(b)
	require.Positive(b, list[0].Deployed)
	require.Equal(b, []store.FlowView{{Ref: journal.FlowRef{Name: "f", Version: "1", Digest: digest('1')}, Active: true, Deployed: list[0].Deployed}}, list)
}

// flowExpire sets how long jobs are kept whose flow does not say it (W11).
func flowExpire(b *bench) {
	for _, d := range []time.Duration{0, flow.MinExpire, flow.MinExpire + 1, 720 * time.Hour, flow.MaxExpire} {
		require.NoError(b, b.s.SetExpireDefault(b.ctx(), d))
		require.Equal(b, d.Truncate(time.Microsecond), got(b.s.ExpireDefault(b.ctx()))(b))
	}
	for _, d := range []time.Duration{-1, 1, flow.MinExpire - 1, flow.MaxExpire + 1} {
		require.ErrorIs(b, b.s.SetExpireDefault(b.ctx(), d), store.ErrRejected)
	}
	require.Equal(b, flow.MaxExpire, got(b.s.ExpireDefault(b.ctx()))(b))
}

func flowActivate(b *bench) {
	active := func(version string, why string) {
		b.Helper()
		ref, canonical, err := b.s.ActiveFlow(b.ctx(), "f")
		require.NoError(b, err)
		require.Equal(b, version, ref.Version, why)
		require.Equal(b, string(ref.Digest[:1]), string(canonical))
		for _, f := range got(b.s.Flows(b.ctx()))(b) {
			require.Equal(b, f.Ref.Version == version, f.Active)
		}
	}
	for i, version := range []string{"1", "2", "10"} {
		got(b.version("f", version, byte(i), false))(b)
		active("1", "this deploy does not activate")
	}
	require.NoError(b, b.s.Activate(b.ctx(), "f", "10"))
	active("10", "")
	for range 2 {
		got(b.version("f", "11", 11, true))(b)
		active("11", "a new one is active at once")
	}
	require.NoError(b, b.s.Activate(b.ctx(), "f", "10"))
	got(b.version("f", "11", 11, true))(b)
	active("10", "one that was there takes nothing back")
	require.ErrorIs(b, b.s.Activate(b.ctx(), "f", "3"), store.ErrNotFound)
	active("10", "there is no other")
}

func flowRace(b *bench) {
	var fresh atomic.Int64
	together(6, func(int) {
		ok, err := b.version("f", "1", 1, false)
		if b.check(err); ok {
			fresh.Add(1)
		}
	})
	require.Equal(b, int64(1), fresh.Load())
}

func flowEpoch(b *bench) {
	epoch := got(b.s.Epoch(b.ctx()))(b)
	require.Positive(b, epoch)
	require.NoError(b, b.s.Migrate(b.ctx()), "migrating again changes nothing")
	require.Equal(b, epoch, got(b.s.Epoch(b.ctx()))(b))
}

func (b *bench) schedules() []store.Schedule {
	b.Helper()
	return got(b.s.Schedules(b.ctx()))(b)
}

func scheduleList(b *bench) {
	require.Empty(b, b.schedules())
	for i, name := range []string{"b", "a"} {
		for _, version := range []string{"1", "2"} {
			got(b.version(name, version, byte(i), false))(b)
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
	require.NoError(b, b.s.MarkSchedule(b.ctx(), "a", list[0].Last, 7))
	require.NoError(b, b.s.Activate(b.ctx(), "a", "1"))
	require.Equal(b, collation.Micros(7), b.schedules()[0].Last, "it was active already")
	require.NoError(b, b.s.Activate(b.ctx(), "a", "2"))
	again := b.schedules()
	require.Equal(b, "2", again[0].Ref.Version)
	require.GreaterOrEqual(b, again[0].Last, list[0].Now, "from its own activation on")
	require.Equal(b, list[1].Last, again[1].Last)
}

func scheduleRace(b *bench) {
	f := b.deploy(one)
	last := b.schedules()[0].Last
	require.ErrorIs(b, b.s.MarkSchedule(b.ctx(), f.Name(), last-1, last+1), store.ErrLost)
	require.ErrorIs(b, b.s.MarkSchedule(b.ctx(), "nobody", last, last+1), store.ErrLost)
	require.Equal(b, last, b.schedules()[0].Last)
	errs := make([]error, 8)
	together(len(errs), func(i int) { errs[i] = b.s.MarkSchedule(b.ctx(), f.Name(), last, last+collation.Micros(i)+1) })
	won := b.schedules()[0].Last - last - 1
	for i, err := range errs {
		if collation.Micros(i) == won {
			require.NoError(b, err)
		} else {
			require.ErrorIs(b, err, store.ErrLost)
		}
	}
}
