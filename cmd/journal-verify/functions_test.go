package main

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/replay/replaytest"
)

// Waits of functions are counted, and open items name their function.
func TestFunctionsAreCounted(t *testing.T) {
	t.Parallel()
	nap, ok := replaytest.Sleep("nap", "1", 3600e6), replaytest.Signal("ok", "2", "order.ok", "order-42", 0)
	kid := replaytest.Child("kid", "4", "child", `{"n":1}`)
	f := replaytest.NewFunction(collation.Mode{}).Effect("3", "pay", "guarded", `{"id":7}`).Suspend(nap, ok).Wake("nap").Suspend(ok, kid)
	name := save(t, exported(t, f.Journal()))
	r := files(t, name)
	require.Equal(t, exitProved, r.code, r.err)
	require.Contains(t, r.out, "Of the entries 2 are of effects, in 1 chains; 1 requests of functions suspended, 1 wakes came to them.")
	v := files(t, "--json", name).objects(t)[0]
	require.Equal(t, []int64{2, 1, 1, 1}, []int64{v.Counts.Effects, int64(v.Counts.Chains), int64(v.Counts.Functions), int64(v.Counts.Wakes)})
	require.Len(t, v.Open, 3)
	require.Equal(t, "request", v.Open[0].What)
	require.True(t, v.Open[0].Suspended)
	require.Equal(t, []int{2, 0}, []int{v.Open[0].Pauses, v.Open[0].Came})
	require.Equal(t, []string{"wait", "ok", v.Open[0].GUID}, []string{v.Open[1].What, v.Open[1].Name, v.Open[1].Request})
	require.NotEmpty(t, v.Open[2].Child)
}
