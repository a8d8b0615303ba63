package replay_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/replay"
)

// J10: what a function waits for, at any seq.
func TestTimeTravelOverFunctions(t *testing.T) {
	t.Parallel()
	j := made("running")
	const request, due = `request to orders.fn`, "due 2023-11-14T23:13:20Z"
	timer := `timer, "nap" of a function, ` + due + `, since entry 4`
	wait := `waits for signal order.ok with key "order-42", "ok" of a function, since entry 4`
	bound := `timer, "ok" of a function, due 2023-11-15T00:13:20Z, since entry 4`
	for at, want := range map[int][]string{
		3: {"fn ,0,0: [" + request + ", since entry 3]"},
		4: {request + ", suspended, waits for 2, of which 0 came, turn 2, attempt 1, since entry 3", timer, bound, wait},
		5: {request + ", waits for 2, of which 1 came, turn 2, attempt 1, " + due + ", since entry 3", bound, wait},
		6: {request + ", waits for 2, of which 2 came, turn 2, attempt 1, " + due + ", since entry 3"},
		7: {
			request + ", waits for 2, of which 1 came, turn 3, attempt 1, " + due + ", since entry 3",
			`timer, "later" of a function, due 2023-11-15T00:13:20Z, since entry 7`,
		},
		8: nil,
	} {
		got := pending(apply(t, j, at))
		if at == 8 {
			require.Empty(t, got)
			continue
		}
		require.Len(t, got, 1)
		for _, part := range want {
			require.Contains(t, got[0], part, "at %d", at)
		}
	}
}

// J10: the pauses of each request, as they were named, came, and were cancelled.
func TestTimeTravelOverPauses(t *testing.T) {
	t.Parallel()
	type standing struct{ named, taken, came bool }
	at := func(j *replay.Job) map[string]standing {
		out := map[string]standing{}
		for _, p := range j.Pauses {
			out[p.Name] = standing{p.Named, p.Taken > 0, p.Came}
		}
		return out
	}
	j := made("moved")
	open, came, gone := standing{true, false, false}, standing{true, true, true}, standing{}
	require.Empty(t, at(apply(t, j, 3)))
	require.Equal(t, map[string]standing{"nap": open, "ok": open}, at(apply(t, j, 4)))
	require.Equal(t, map[string]standing{"nap": came, "ok": open}, at(apply(t, j, 5)))
	require.Equal(t, map[string]standing{"nap": {false, true, true}, "ok": gone, "later": open}, at(apply(t, j, 6)))
	require.Equal(t, map[string]standing{"nap": {false, true, true}, "ok": open, "later": {false, true, true}}, at(apply(t, j, 8)))

	// Stepwise: first accepted; the next run finds it only after step 2.
	s := made("steps")
	require.Equal(t, standing{true, true, false}, at(apply(t, s, 8))["inv"])
	require.Equal(t, came, at(apply(t, s, 10))["inv"])
	require.Equal(t, standing{false, true, true}, at(apply(t, s, 11))["inv"])

	job := apply(t, made("timedOut"), 5)
	for _, p := range job.Pauses {
		require.Equal(t, p.Name == "ok", p.ByTimeout, p.Name)
	}
	require.Empty(t, job.Waits)
	require.Len(t, apply(t, made("signalled"), 5).Signals, 1)
}

// J10: children of functions, and the jobs that run compensations.
func TestTimeTravelOverChildrenOfFunctions(t *testing.T) {
	t.Parallel()
	j := made("invoiced")
	job := apply(t, j, 4)
	require.Len(t, job.Children, 1)
	for g, c := range job.Children {
		require.Equal(t, job.Pauses[g].Request, c.Request)
		require.Zero(t, c.Turn)
	}
	require.Empty(t, apply(t, j, 5).Children)
	require.Empty(t, apply(t, made("booking"), 4).Undos)
	ended := apply(t, made("failed"), 4)
	require.Len(t, ended.Undos, 1)
	require.Empty(t, ended.Children, "it is no child")
	for request, seq := range ended.Undos {
		require.Equal(t, made("failed").Entries()[3].Response.Request, request)
		require.Equal(t, int64(4), seq)
	}
}

// J10: effects of functions have their places, and a voided result is no result.
func TestEffectsOfFunctionsAreRebuilt(t *testing.T) {
	t.Parallel()
	j := made("doubted")
	job := apply(t, j, len(j.Records))
	require.Len(t, job.Effects, 2)
	for _, f := range job.Effects {
		require.Equal(t, "1", f.Position)
		require.Equal(t, f.N == 0, f.Voided)
		want := map[bool]replay.EffectState{true: replay.EffectNotDone, false: replay.EffectCompleted}[f.Voided]
		require.Equal(t, want, f.State)
	}
	require.Equal(t, journal.JobCompleted, job.State)
}
