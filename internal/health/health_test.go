package health_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/internal/health"
	"github.com/quipu-journal/quipu/internal/store"
	"github.com/quipu-journal/quipu/journal"
)

// at is a time in seconds.
func at(seconds int64) time.Time { return time.Unix(seconds, 0) }

func living(name string, engine bool, d store.Doing) store.ProcessView {
	return store.ProcessView{Process: store.Process{Name: name, Engine: engine}, Doing: d}
}

// What keeps messages from their way is told once, however many processes tell it, and what stops a
// process comes first.
func TestWhatProcessesTell(t *testing.T) {
	t.Parallel()
	room := store.Trouble{Kind: "room", Name: "charge", Queue: "work.charge", Text: "the topic charge has 5 of 4 bytes", Since: 90_000_000}
	earlier := room
	earlier.Since = 70_000_000
	full := store.Trouble{Kind: "refused", Name: "S", Queue: "work", Text: "the stream S takes no messages", Since: 99_000_000, Stops: true}
	away := store.Trouble{Kind: "away", Name: "NATS", Text: "NATS does not answer", Cause: "connection refused", Since: 98_000_000, Stops: true}
	told := []store.ProcessView{
		living("a", true, store.Doing{Troubles: []store.Trouble{room, full}}),
		living("b", false, store.Doing{Troubles: []store.Trouble{earlier, away}}),
	}
	require.Equal(t, []health.Finding{
		{Kind: "away", Text: "NATS does not answer: connection refused", Stops: true, N: 1, For: 2 * time.Second, Processes: []string{"b"}, Command: "quipu processes"},
		{Kind: "refused", Text: full.Text, Queue: "work", Stops: true, N: 1, For: time.Second, Processes: []string{"a"}, Command: "quipu processes"},
		{Kind: "room", Text: room.Text, Queue: "work.charge", N: 2, For: 30 * time.Second, Processes: []string{"a", "b"}, Command: "quipu processes"},
	}, health.Space(&health.Sight{Now: at(100), Living: told, Open: true}))
}

// A job needs an engine; a process that is not heard of keeps what it holds; an engine that is busy
// names its job.
func TestProcessesThatDoNotWork(t *testing.T) {
	t.Parallel()
	quiet := living("w", false, store.Doing{})
	quiet.Renewed = 88_000_000
	long := quiet
	long.Name, long.Renewed = "yesterday", 0
	all := health.Space(&health.Sight{Now: at(4000), Open: true, Silent: []store.ProcessView{long}})
	require.Len(t, all, 1)
	require.Equal(t, health.KindEngine, all[0].Kind)
	require.True(t, all[0].Stops)
	last := living("last", true, store.Doing{})
	last.Renewed = 3990_000_000
	first := last
	first.Name, first.Renewed = "first", 3000_000_000
	all = health.Space(&health.Sight{Now: at(4000), Open: true, Silent: []store.ProcessView{last, first, quiet}})
	require.Len(t, all, 1, "that nobody takes over from the others is no wonder")
	require.Equal(t, []any{health.KindEngine, 10 * time.Second, []string{"last"}},
		[]any{all[0].Kind, all[0].For, all[0].Processes})

	busy := living("e", true,
		store.Doing{Busy: store.Busy{For: 7 * time.Second, Job: journal.JobID{1}, Message: journal.GUID{2}}})
	all = health.Space(&health.Sight{
		Now: at(100), Open: true, Living: []store.ProcessView{busy}, Silent: []store.ProcessView{quiet},
	})
	require.Len(t, all, 2)
	require.Equal(t, []any{health.KindSilent, 12 * time.Second, []string{"w"}},
		[]any{all[0].Kind, all[0].For, all[0].Processes})
	require.Equal(t, []any{health.KindBusy, journal.JobID{1}, journal.GUID{2}, "quipu why " + journal.JobID{1}.String()},
		[]any{all[1].Kind, all[1].Job, all[1].Message, all[1].Command})
	require.Empty(t,
		health.Space(&health.Sight{Now: at(100), Living: []store.ProcessView{living("w", false, store.Doing{})}}), "nothing is open")
}

// What waits for a person, for a handler, or for too long.
func TestWhatTheTablesShow(t *testing.T) {
	t.Parallel()
	all := health.Space(&health.Sight{
		Now: at(100),
		Gauges: &store.Gauges{
			Dead: map[string]int64{"few": 1, "many": 7},
			Lost: map[string]store.LostRuns{"crash": {N: 2, Most: 3, Job: journal.JobID{1}}},
			Jobs: map[store.JobsOf]int64{
				{Flow: "f", State: journal.JobQuarantined}: 2, {Flow: "g", State: journal.JobQuarantined}: 0,
			},
			Overdue: store.Backlog{N: 3, Age: time.Minute},
		},
		Topics: []health.Topic{
			{Name: "nobody", Queued: 5, Oldest: time.Second},
			{Name: "blind", Queued: -1},
			{Name: "slow", Served: true, Queued: 9, Longest: health.LongRun},
		},
	})
	texts := make([]string, len(all))
	for i := range all {
		texts[i] = all[i].Text
	}
	require.Equal(t, []string{
		"requests whose runs end with their process, 3 of one so far: crash", "requests that nobody serves: nobody", "dead letters: many", "dead letters: few", "quarantined jobs of f",
		"a handler that has run for long: slow", "messages that are overdue",
	}, texts)
}

// What stops a process comes first, and the list has a bound.
func TestOrder(t *testing.T) {
	t.Parallel()
	all := health.Order([]store.Trouble{
		{Kind: "room"}, {Kind: "of another build"}, {Kind: "refused", Stops: true}, {Kind: health.KindAnother, Stops: true},
	})
	kinds := make([]string, len(all))
	for i := range all {
		kinds[i] = all[i].Kind
	}
	require.Equal(t, []string{health.KindAnother, "refused", "room", "of another build"}, kinds)
	away, commit := store.Trouble{Kind: "away", Stops: true}, store.Trouble{Kind: health.KindCommit, Stops: true}
	require.Equal(t, []store.Trouble{commit, away},
		health.Order([]store.Trouble{{Kind: health.KindWitness}, {Kind: "room"}, away, commit}), "NATS does not answer")
	require.Len(t, health.Order(make([]store.Trouble, store.MaxTroubles+1)), store.MaxTroubles)
}
