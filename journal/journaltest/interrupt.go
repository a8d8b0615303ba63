package journaltest

import (
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/journal/store"
)

var interrupts = map[string]func(*bench){
	"an interrupt is a row of its target, published by the caller": interruptRow,
	"one of many at once with the same GUID is fresh (C7)":         interruptRace,
	"a repetition while it is handled leaves nothing behind":       interruptHandled,
	"of a closed job only the key is recorded (W12)":               interruptLate,
}

var schedules = map[string]func(*bench){
	"active versions, by name, from their activation on (5.1)": scheduleList,
	"a schedule moves by test-and-set (C3)":                    scheduleMark,
	"schedulers at once: one moves it (T8)":                    scheduleRace,
}

func interruptRow(b *bench) {
	id := b.jobs(1)[0]
	row := b.interruptOf(id, "x")
	out, fresh, err := b.s.Interrupt(b.ctx(), row, b.mode)
	require.NoError(b, err)
	require.True(b, fresh)
	v := b.view(id)
	got := b.row(id, journal.MessageInterrupt, "")
	require.Equal(b, &store.Outgoing{Row: got, JobKey: v.Key, Generation: 1, Flow: v.Flow, Trace: v.Trace}, out)
	require.Greater(b, got.PublishedAt, collation.Micros(1), "the time is the store's (J5)")
	require.Equal(b, got.PublishedAt+b.mode.Resend, got.NextAt)
	row.Publication, row.PublishedAt, row.NextAt = 1, got.PublishedAt, got.NextAt
	require.Equal(b, row, got)
	require.Equal(b, journal.JobOpen, v.State, "a row, not yet a close")
}

func interruptRace(b *bench) {
	id := b.jobs(1)[0]
	row := b.interruptOf(id, "x")
	var fresh atomic.Int64
	together(8, func(int) {
		_, first, err := b.s.Interrupt(b.ctx(), row, b.mode)
		b.check(err)
		if first {
			fresh.Add(1)
		}
	})
	require.Equal(b, int64(1), fresh.Load())
	require.Len(b, b.view(id).Rows, 2)
}

// interruptHandled repeats interrupts while they are handled. A row that came after its receipt
// would stay for ever.
func interruptHandled(b *bench) {
	for _, id := range b.jobs(10) {
		row := b.interruptOf(id, "x")
		_, _, err := b.s.Interrupt(b.ctx(), row, b.mode)
		require.NoError(b, err)
		together(4, func(i int) {
			var err error
			if i == 0 {
				_, err = b.handle(b.c, message(&row))
			} else {
				_, _, err = b.s.Interrupt(b.ctx(), row, b.mode)
			}
			b.check(err)
		})
		v := b.view(id)
		require.Equal(b, journal.JobInterrupted, v.State)
		for _, r := range v.Rows {
			require.NotEqual(b, row.GUID, r.GUID)
		}
	}
}

// interruptLate interrupts a closed job, and handles an interrupt that was sent before the close.
func interruptLate(b *bench) {
	id := b.jobs(1)[0]
	first, before, after := b.interruptOf(id, "first"), b.interruptOf(id, "before"), b.interruptOf(id, "after")
	for _, row := range []collation.Row{first, before} {
		_, fresh, err := b.s.Interrupt(b.ctx(), row, b.mode)
		require.NoError(b, err)
		require.True(b, fresh)
	}
	b.must(message(&first))
	closed := b.view(id)
	require.Equal(b, journal.JobInterrupted, closed.State)

	out, fresh, err := b.s.Interrupt(b.ctx(), after, b.mode)
	require.NoError(b, err)
	require.True(b, fresh)
	require.Nil(b, out)
	p := got(b.handle(b.c, message(&before)))(b)
	require.Equal(b, collation.Stale, p.Outcome)
	for _, again := range []collation.Row{first, before, after} {
		_, fresh, err := b.s.Interrupt(b.ctx(), again, b.mode)
		require.NoError(b, err)
		require.False(b, fresh)
	}
	p = got(b.handle(b.c, message(&before)))(b)
	require.Equal(b, collation.Unlicensed, p.Outcome)
	v := b.view(id)
	require.Equal(b, closed.Head, v.Head)
	require.Len(b, v.Rows, 1, "what the job's start has left, no interrupt")
}

func (b *bench) schedules() []store.Schedule {
	b.Helper()
	list := got(b.s.Schedules(b.ctx()))(b)
	return list
}

func scheduleList(b *bench) {
	require.Empty(b, b.schedules())
	for i, name := range []string{"b", "a"} {
		for _, version := range []string{"1", "2"} {
			r := journal.FlowRef{Name: name, Version: version, Digest: digest(byte(i))}
			got(b.s.Deploy(b.ctx(), r, []byte(`1`), false))(b)
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

func scheduleMark(b *bench) {
	f := b.deploy(one)
	first := b.schedules()[0]
	next := first.Last + micros(time.Minute)
	require.ErrorIs(b, b.s.MarkSchedule(b.ctx(), f.Name(), first.Last-1, next), store.ErrLost)
	require.ErrorIs(b, b.s.MarkSchedule(b.ctx(), "nobody", first.Last, next), store.ErrLost)
	require.Equal(b, first.Last, b.schedules()[0].Last)
	require.NoError(b, b.s.MarkSchedule(b.ctx(), f.Name(), first.Last, next))
	require.Equal(b, next, b.schedules()[0].Last)
	require.ErrorIs(b, b.s.MarkSchedule(b.ctx(), f.Name(), first.Last, next), store.ErrLost)
}

func scheduleRace(b *bench) {
	f := b.deploy(one)
	last := b.schedules()[0].Last
	var mu sync.Mutex
	won := map[string]bool{}
	together(8, func(i int) {
		err := b.s.MarkSchedule(b.ctx(), f.Name(), last, last+collation.Micros(i)+1)
		mu.Lock()
		defer mu.Unlock()
		if err == nil {
			won[fmt.Sprint(last+collation.Micros(i)+1)] = true
			return
		}
		requireOneOf(b, err, store.ErrLost)
	})
	require.Equal(b, map[string]bool{fmt.Sprint(b.schedules()[0].Last): true}, won)
}
